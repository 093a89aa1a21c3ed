/* attention_cpu.h: the forward on the CPU: the plain schedule compiled for every instruction set, and the call. */
#include <fa/arch/cpu/threads.h>

#define FA__ISA FA__ISA_BASE
#define FA__VARIANT _cpu_base
#include <fa/kernel/attention_loop.h>
#include <fa/kernel/attention_cpu_worker.h>
#if defined(FA__ISA_AVX2)
#define FA__ISA FA__ISA_AVX2
#define FA__VARIANT _cpu_avx2
#include <fa/kernel/attention_loop.h>
#include <fa/kernel/attention_cpu_worker.h>
#define FA__ISA FA__ISA_AVX512
#define FA__VARIANT _cpu_avx512
#include <fa/kernel/attention_loop.h>
#include <fa/kernel/attention_cpu_worker.h>
#endif

static FA_UNUSED fa_status FA__ATTN(__job)(const FA__PARAMS *p, fa__job *job, const char **schedule) {
    memset(job, 0, sizeof *job);
    job->params = p;
    job->items = p->items;
    job->run = FA__ATTN(_cpu_base_work);
    *schedule = "cpu";
#if defined(FA__ISA_AVX2)
    if (fa__cpu_isa() == FA__ISA_AVX512) job->run = FA__ATTN(_cpu_avx512_work), *schedule = "cpu-avx512";
    else if (fa__cpu_isa() == FA__ISA_AVX2) job->run = FA__ATTN(_cpu_avx2_work), *schedule = "cpu-avx2";
#endif
    return FA_OK;
}

/** Attention forward; returns when o (and lse) are written. The stream is ignored. */
FA_API fa_status FA__ATTN(_forward)(const fa_attention_args *args, fa_stream stream) {
    FA__PARAMS p;
    fa__job job;
    const char *schedule;
    (void)stream;
    fa_status status = FA__ATTN(__prepare)(args, &p);
    if (status != FA_OK || p.items == 0) return status;
    FA__ATTN(__job)(&p, &job, &schedule);
    fa__job_run(&job, fa__thread_count(args->threads, job.items));
    return FA_OK;
}

/** Says what NAME_forward() would run with these arguments. */
FA_API fa_status FA__ATTN(_plan)(const fa_attention_args *args, fa_plan *plan) {
    FA__PARAMS p;
    fa__job job;
    fa_status status = FA__ATTN(__prepare)(args, &p);
    if (status != FA_OK) return status;
    if (!plan) return FA__FAIL(FA_ERROR_ARGUMENT, "%s: plan is NULL: point it to an fa_plan", FA__STR(FA__ATTN()));
    FA__ATTN(__describe)(&p, plan);
    FA__ATTN(__job)(&p, &job, &plan->schedule);
    plan->arch = FA_CPU;
    plan->threads = fa__thread_count(args->threads, job.items);
    plan->shared_bytes = sizeof(FA__ATTN(_cpu_base_shared));
    if (FA__HAS_MASK)
        for (uint32_t i = 0; i < p.items; i++) FA__ATTN(__count)(&p, i, &plan->tiles_visited, &plan->tiles_masked);
    plan->tiles_skipped = plan->tiles_total - plan->tiles_visited;
    return FA_OK;
}
