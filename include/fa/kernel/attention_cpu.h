/* attention_cpu.h: the forward on the CPU: the schedule compiled for every instruction set, and the call. */
#include <fa/arch/cpu/amx.h>
#include <fa/arch/cpu/threads.h>
#include <fa/kernel/attention_tiles.h>

/* How many query blocks share a tile of keys and values: 1 to `most`, and no more than fit in `room` bytes, at
 * `bytes` each. More of them save loads and conversions, until their Q and O (beyond 128 KB) crowd the L2 cache. */
#define FA__BLOCKS_THAT_FIT(bytes, room, most) ((room) / (bytes) < 1 ? 1 : (room) / (bytes) > (most) ? (most) : (room) / (bytes))
enum { FA__ATTN(__group) = FA__BLOCKS_THAT_FIT(FA_BLOCK_M * (FA_HEAD_DIM + FA_HEAD_DIM_V) * 4, 131072, 4) };
#define FA__GROUP FA__ATTN(__group)

/* The class of a tile, of the queries and keys of a box: one function for all instruction sets, since searching a
 * mask takes long to compile. For documents the caller finds the smallest and the largest id of the queries, once
 * for all tiles, and of a tile's keys, once for all blocks of a group; for spans, what any and what all of the
 * queries see, once for all tiles. */
#if FA__MASK_NEEDS & FA__NEED_DOCUMENT
FA__HOOK_CALLED fa_tile_class FA__ATTN(__class)(const fa_box *box, fa__ids of_queries, fa__ids of_keys) {
    return fa__document_class(*box, of_queries, of_keys, FA__MASK_NEEDS & FA__WITH_CAUSAL);
}
#elif FA__MASK_NEEDS & FA__NEED_SPAN
FA__HOOK_CALLED fa_tile_class FA__ATTN(__class)(const fa_box *box, fa__spans of_queries) {
    return fa__span_class(*box, of_queries);
}
#else
FA__HOOK_CALLED fa_tile_class FA__ATTN(__class)(const FA__PARAMS *p, const fa_box *box) {
    return FA__ATTN(__classify)(p, *box, box->keys.begin, FA_BLOCK_N);
}
#endif

#if defined(FA__ISA_AVX2)
#define FA__HAS_AMX (FA__CPU_AMX && FA_DTYPE == FA_BF16)
#else
#define FA__HAS_AMX 0
#endif
#define FA__WORKER <fa/kernel/attention_cpu_worker.h>
#include <fa/arch/cpu/each_isa.h>
#if FA__HAS_AMX
/* Products are done so soon that bringing tiles into the cache counts more: so more blocks share them (200 KB),
 * whose Q is half as large. */
enum { FA__ATTN(__amx_group) = FA__BLOCKS_THAT_FIT(FA_BLOCK_M * (FA_HEAD_DIM * 2 + FA_HEAD_DIM_V * 4), 204800, 8) };
#undef FA__GROUP
#define FA__GROUP FA__ATTN(__amx_group)
#define FA__ISA FA__ISA_AVX512
#define FA__AMX
#define FA__VARIANT _cpu_amx
#include <fa/kernel/attention_cpu_worker.h>
#undef FA__AMX
#endif
#undef FA__GROUP
#undef FA__BLOCKS_THAT_FIT

#define FA__LOCAL FA__ATTN(FA__CAT(FA__CPU_LEAST, _local)) /* as large for all */
FA__REQUIRE(sizeof(FA__LOCAL) <= 1 << 20,
            "the tiles of FA_BLOCK_M queries and FA_BLOCK_N keys take more than 1 MB of a thread's stack: choose smaller ones");
#if FA__HAS_AMX /* whose groups are larger; one message is enough */
FA__REQUIRE(sizeof(FA__ATTN(_cpu_amx_local)) <= 1 << 20 || sizeof(FA__LOCAL) > 1 << 20,
            "with AMX the tiles of FA_BLOCK_M queries and FA_BLOCK_N keys take more than 1 MB of a thread's stack: choose smaller ones");
#endif

/* What is to be done, and by how many threads: p's blocks are put into groups, as large as is possible
 * with four of them or more for every thread. The result depends neither on the groups nor on the number of threads. */
static FA_UNUSED void FA__ATTN(__job)(FA__PARAMS *p, fa__job *job, const char **schedule) {
    const fa_attention_args *a = &p->args;
    int64_t heads = (int64_t)a->batch * a->heads, blocks = p->blocks_m;
    double flops = 2.0 * (double)heads * a->seqlen_q * a->seqlen_k * (FA_HEAD_DIM + FA_HEAD_DIM_V);
    memset(job, 0, sizeof *job);
    job->stack_bytes = sizeof(FA__LOCAL);
    job->group = FA__ATTN(__group);
    job->run = FA__ATTN(FA__CAT(FA__CPU_LEAST, _work));
    *schedule = "cpu";
#if defined(FA__ISA_AVX2)
#if FA__ISA_NATIVE <= FA__ISA_AVX2
    if (fa__cpu_isa() == FA__ISA_AVX2) job->run = FA__ATTN(_cpu_avx2_work), *schedule = "cpu-avx2";
#endif
    if (fa__cpu_isa() == FA__ISA_AVX512) job->run = FA__ATTN(_cpu_avx512_work), *schedule = "cpu-avx512";
#if FA__HAS_AMX
    if (fa__cpu_amx()) {
        job->stack_bytes = sizeof(FA__ATTN(_cpu_amx_local));
        job->group = FA__ATTN(__amx_group);
        job->run = FA__ATTN(_cpu_amx_work), *schedule = "cpu-amx";
    }
#endif
#endif
    job->threads = fa__thread_count(a->threads, p->items, flops);
    for (; job->group > 1; job->group--)
        if ((blocks + job->group - 1) / job->group * heads >= (int64_t)4 * job->threads || job->threads == 1) break;
    p->blocks_m = (int)((blocks + job->group - 1) / job->group);
    FA__ATTN(__order)(p);
    if (job->threads > (int64_t)p->items && p->items > 0) job->threads = (int)p->items;
    job->params = p;
    job->items = p->items;
}

/** Attention forward; returns when o (and lse) are written. The stream is ignored. */
FA_API fa_status FA__ATTN(_forward)(const fa_attention_args *args, fa_stream stream) {
    FA__PARAMS p;
    fa__job job;
    const char *schedule;
    (void)stream;
    fa_status status = FA__ATTN(__prepare)(args, &p, FA_BLOCK_M);
    if (status != FA_OK || p.items == 0) return status;
    FA__ATTN(__job)(&p, &job, &schedule);
    fa__job_run(&job);
    return FA_OK;
}

/** Says what NAME_forward() would run with these arguments. */
FA_API fa_status FA__ATTN(_plan)(const fa_attention_args *args, fa_plan *plan) {
    FA__PARAMS p;
    fa__job job;
    fa_status status = FA__ATTN(__prepare)(args, &p, FA_BLOCK_M);
    if (status != FA_OK) return status;
    if (!plan) return FA__FAIL(FA_ERROR_ARGUMENT, "%s: plan is NULL: point it to an fa_plan", FA__STR(FA__ATTN()));
    FA__ATTN(__describe)(&p, plan, FA_BLOCK_M, FA_BLOCK_N, FA_STAGES, FA_WARPS);
    if (FA__HAS_MASK)
        for (uint32_t i = 0; i < p.items; i++) FA__ATTN(__count)(&p, i, FA_BLOCK_M, FA_BLOCK_N, &plan->tiles_visited, &plan->tiles_masked);
    plan->tiles_skipped = plan->tiles_total - plan->tiles_visited;
    FA__ATTN(__job)(&p, &job, &plan->schedule);
    plan->blocks = p.items;
    plan->arch = FA_CPU;
    plan->threads = job.threads;
    plan->shared_bytes = job.stack_bytes;
    return FA_OK;
}
#undef FA__LOCAL
#undef FA__HAS_AMX
#include <fa/kernel/attention_tiles_end.h>

/** Bytes of workspace that NAME_forward() can use: none on the CPU. */
FA_API size_t FA__ATTN(_workspace)(const fa_attention_args *args) {
    (void)args;
    return 0;
}
