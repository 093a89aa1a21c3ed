/* rows_cpu_worker.h: a thread's share of the rows, for the instruction set FA__ISA. */
#define FA_COLS FA__CPU_PIECE
#define FA_KEEP FA__CPU_KEEP
#include <fa/kernel/rows_parts.h>

#define FA__WORK(direction)                                                                                        \
    static FA_UNUSED FA__TARGET void FA__LOOP(_work##direction)(fa__job *job) {                                    \
        const FA__PARAMS *p = (const FA__PARAMS *)job->params;                                                     \
        FA__LOOP(_reduce_shared) shared;                                                                           \
        FA__LOOP(_place) place = {&shared, NULL, NULL, 0};                                                                 \
        fa_team team = FA__LOOP(_reduce_team)(1);                                                                  \
        for (int64_t item; (item = fa__job_next(job)) >= 0;) {                                                     \
            int64_t row = item * p->rows.rows_an_item, end = row + p->rows.rows_an_item;                           \
            if (end > p->rows.rows) end = p->rows.rows;                                                            \
            for (; row < end; row++) FA__LOOP(direction)(p, row, &team, &place);                                   \
        }                                                                                                          \
        if (p->rows.stream) fa_cpu_stream_end();                                                                   \
    }
FA__WORK(_forward)
#if !FA__SUMS
FA__WORK(_backward)
#else
/* An item is what a worker adds up. */
static FA_UNUSED FA__TARGET void FA__LOOP(_work_backward)(fa__job *job) {
    const FA__PARAMS *p = (const FA__PARAMS *)job->params;
    FA__LOOP(_reduce_shared) shared;
    FA__LOOP(_place) place = {&shared, NULL, NULL, p->sums.pitch};
    fa_team team = FA__LOOP(_reduce_team)(1);
    for (int64_t worker; (worker = fa__job_next(job)) >= 0;) {
        int64_t first = worker * p->rows.rows_an_item, left = p->rows.rows - first;
        if (p->sums.partial) {
            place.sums = p->sums.partial + worker * FA__SUMS * p->sums.pitch;
            memset(place.sums, 0, sizeof *place.sums * FA__SUMS * (size_t)p->sums.pitch);
        }
        for (int64_t i = 0; i < left && i < p->rows.rows_an_item; i++) FA__LOOP(_backward)(p, first + i, &team, &place);
    }
    if (p->rows.stream) fa_cpu_stream_end();
}
#endif
#undef FA__WORK
#undef FA__LOOP
#undef FA__VARIANT
#undef FA__ISA
