/* rows_cpu.h: rows on the CPU: a core takes some rows at a time, and of each a piece that fits in its L1 cache. */
#include <fa/arch/cpu/threads.h>

#define FA__CPU_PIECE 1280    /* floats: 5 KB, so that a few tensors' fit in an L1 cache, and lie at different addresses modulo 4 KB */
#define FA__CPU_KEEP 51       /* pieces that are kept, 256 KB, and one more, in the L2 cache, on the caller's stack; the rest is computed again */
#define FA__CPU_KEEP_OWN 103  /* the same on the stack of a thread of our own: 515 KB, which hold rows of 131,072 columns */
#define FA__CPU_KEEP_ROWS 16  /* rows of such a thread, at least: the pages of its stack are new in every call, and are filled with zeros first */
#define FA__CPU_STREAM ((int64_t)8 << 20) /* bytes from which on a result bypasses the caches: a core's share of an L3 cache */
#define FA__CPU_ITEM 65536    /* elements of a work item, at least */
#define FA__CPU_COST 8.0      /* floating-point operations that an element is worth */

#define FA__CPU_WORKERS 128   /* that add up sums of columns, at most: what they have is written, and read again in the end */
#define FA__CPU_ADDED 16      /* rows that one adds up at least, if there are enough for so many: */
#define FA__CPU_FEW 8
#define FA__CPU_HELD 65536    /* bytes of rows that a forward reads twice, in the L2 cache, beside as many that are prefetched */
#define FA__CPU_TOGETHER 4096 /* bytes of short rows whose statistics are found one after the other, and then their results: neither waits for the other */
#define FA__CPU_AHEAD 8192    /* bytes of rows of one piece that are prefetched */
#define FA__CPU_SEGMENT 768   /* columns of a segment of a row in a forward: its weights, of two threads, fit in an L1 cache */
#define FA__CPU_COLUMNS 512   /* of a work item, when the workers' sums are added */

#if FA__KEEPS_FORWARD
/* Pieces of a row that a thread keeps: one of our own, of so many, or the caller's. */
static FA_UNUSED int64_t FA__ROWS(__keeps)(const FA__PARAMS *p, int threads, int own) {
    const int64_t pieces = (p->rows.cols + FA__CPU_PIECE - 1) / FA__CPU_PIECE;
    const int64_t most = own && p->rows.rows >= FA__CPU_KEEP_ROWS * (int64_t)threads ? FA__CPU_KEEP_OWN : FA__CPU_KEEP;
    return pieces < most ? pieces : most;
}
#endif

#define FA__WORKER <fa/kernel/rows_cpu_worker.h>
#include <fa/arch/cpu/each_isa.h>

#if FA__SUMS
/* How rows are dealt out to workers: by their number alone, so that results do not depend on the threads. */
static FA_UNUSED fa_status FA__ROWS(__deal)(FA__PARAMS *p) {
    int64_t rows = p->rows.rows, least = (rows + FA__CPU_FEW - 1) / FA__CPU_FEW < FA__CPU_ADDED ? (rows + FA__CPU_FEW - 1) / FA__CPU_FEW : FA__CPU_ADDED;
    p->rows.rows_an_item = (rows + FA__CPU_WORKERS - 1) / FA__CPU_WORKERS;
    if (least < 1) least = 1;
    if (p->rows.rows_an_item < least) p->rows.rows_an_item = least;
    p->sums.count = FA__SUMS;
    p->sums.pitch = fa__sums_pitch(p->rows.cols);
    p->sums.workers = (rows + p->rows.rows_an_item - 1) / p->rows.rows_an_item;
    return FA_OK;
}
/* As many as any number of rows up to these has. */
static FA_UNUSED void FA__ROWS(__most_workers)(FA__PARAMS *p) {
    const int64_t rows = p->rows.rows, few = rows < FA__CPU_FEW ? rows : FA__CPU_FEW, many = (rows + FA__CPU_ADDED - 1) / FA__CPU_ADDED;
    p->sums.workers = many < few ? few : many < FA__CPU_WORKERS ? many : FA__CPU_WORKERS;
}
/* Adds what the workers have of some columns. */
static FA_UNUSED void FA__ROWS(__add)(fa__job *job) {
    const FA__PARAMS *p = (const FA__PARAMS *)job->params;
    for (int64_t item; (item = fa__job_next(job)) >= 0;) {
        float sum[FA__CPU_COLUMNS];
        int64_t first = item / FA__SUMS * FA__CPU_COLUMNS, left = p->rows.cols - first;
        int n = left < FA__CPU_COLUMNS ? (int)left : FA__CPU_COLUMNS, which = (int)(item % FA__SUMS);
        if (!p->sums.totals[which]) continue;
        for (int i = 0; i < n; i++) sum[i] = 0.0f;
        for (int64_t worker = 0; worker < p->sums.workers; worker++) {
            const float *part = p->sums.partial + (worker * FA__SUMS + which) * p->sums.pitch + first;
            for (int i = 0; i < n; i++) sum[i] += part[i];
        }
        for (int i = 0; i < n; i++) fa_store_element(p->sums.totals[which], first + i, FA_WEIGHT_DTYPE, sum[i]);
    }
}
#endif

#if FA__ONE_DIRECTION
#define FA__WORKER(variant, backward) FA__ROWS(FA__CAT(variant, _work_forward))
#else
#define FA__WORKER(variant, backward) ((backward) ? FA__ROWS(FA__CAT(variant, _work_backward)) : FA__ROWS(FA__CAT(variant, _work_forward)))
#endif
static FA_UNUSED fa_status FA__ROWS(__run)(FA__PARAMS *p, int backward, int aligned, int threads, fa_stream stream) {
    fa__job job;
    int64_t cols = p->rows.cols > 0 ? p->rows.cols : 1;
    (void)aligned, (void)stream;
    if (!(FA__SUMS && backward)) p->rows.rows_an_item = cols < FA__CPU_ITEM ? FA__CPU_ITEM / cols : 1;
    memset(&job, 0, sizeof job);
    job.params = p;
    job.items = (p->rows.rows + p->rows.rows_an_item - 1) / p->rows.rows_an_item;
    job.threads = fa__thread_count(threads, job.items, FA__CPU_COST * (double)p->rows.rows * (double)cols);
    job.stack_bytes = (FA__CPU_KEEP + 3) * sizeof(float) * FA__CPU_PIECE;
#if FA__KEEPS_FORWARD
    if (!backward) job.stack_bytes = (size_t)(FA__ROWS(__keeps)(p, job.threads, 1) + 3) * sizeof(float) * FA__CPU_PIECE;
#endif
    p->rows.stream = p->rows.rows * cols * (int64_t)sizeof(FA__ELEMENT) >= FA__CPU_STREAM;
    job.run = FA__WORKER(FA__CPU_LEAST, backward);
#if defined(FA__ISA_AVX2)
#if FA__ISA_NATIVE <= FA__ISA_AVX2
    if (fa__cpu_isa() == FA__ISA_AVX2) job.run = FA__WORKER(_cpu_avx2, backward);
#endif
    if (fa__cpu_isa() == FA__ISA_AVX512) job.run = FA__WORKER(_cpu_avx512, backward);
#endif
    fa__job_run(&job);
#if FA__SUMS
    if (backward && p->sums.wanted) {
        job.run = FA__ROWS(__add);
        job.next = 0;
        job.items = (cols + FA__CPU_COLUMNS - 1) / FA__CPU_COLUMNS * FA__SUMS;
        job.threads = fa__thread_count(threads, job.items, 2.0 * (double)p->sums.workers * FA__SUMS * (double)cols);
        fa__job_run(&job);
    }
#endif
    return FA_OK;
}
#undef FA__WORKER
#undef FA__CPU_PIECE
#undef FA__CPU_KEEP
#undef FA__CPU_KEEP_OWN
#undef FA__CPU_KEEP_ROWS
#undef FA__CPU_STREAM
#undef FA__CPU_ITEM
#undef FA__CPU_COST
#undef FA__CPU_WORKERS
#undef FA__CPU_ADDED
#undef FA__CPU_FEW
#undef FA__CPU_HELD
#undef FA__CPU_AHEAD
#undef FA__CPU_TOGETHER
#undef FA__CPU_SEGMENT
#undef FA__CPU_COLUMNS
