/* attention_cpu_worker.h: a thread's share of the work, for the instruction set of the loop included before. */
static FA_UNUSED FA__TARGET void FA__LOOP(_work)(fa__job *job) {
    const FA__PARAMS *p = (const FA__PARAMS *)job->params;
    FA__LOOP(_shared) shared;
    for (int64_t item; (item = fa__job_next(job)) >= 0;)
        FA__LOOP(_run)(p, FA__ATTN(__box)(p, (uint32_t)item, FA_BLOCK_M), &shared, 0);
}
#undef FA__LOOP
#undef FA__VARIANT
#undef FA__ISA
