/* rows_gpu_sweep.h: rows on GPUs, of kernels whose rows have something in common: weights of columns, and sums of columns
 * over all rows (FA__SUMS). Blocks stay: a team takes row after row, of which the next ones are on their way into shared
 * memory. In the backward a thread has the same columns in every row and keeps its sums in registers. In the end the teams
 * of a block add theirs, each block writes what it has, and a second, small kernel adds that up in the order of the blocks:
 * no atomics.
 *
 *   swept         a row in a few lanes, a warp, a block, or the blocks of a cluster (compute capability 9.0)
 *   longer rows   the forward reads twice where shared memory does not hold them; the backward sweeps segments, each with
 *                 blocks of its own, after a first pass over whole rows
 */
#include <fa/kernel/gpu.h>
#include <fa/kernel/rows_launch.h>

#if FA_DTYPE == FA_F16 || FA_DTYPE == FA_BF16
#define FA__ROW_COLS(bytes) ((bytes) / 2)
#else
#define FA__ROW_COLS(bytes) ((bytes) / 4)
#endif

/* ---- longer rows, which are read again from memory ---- */

#define FA__VARIANT _long
#define FA_COLS FA__ROW_COLS(FA__SLOT_ROW_BYTES)
#define FA_THREADS 1
#define FA_HOLD FA_SHARED
#define FA_BLOCKS FA__CLUSTER_BLOCKS
#include <fa/kernel/rows_gpu_parts.h>
#define FA__LONG_OPEN                                            \
    __shared__ FA__LOOP(_reduce_shared) shared;                  \
    FA__LOOP(_place) place = {&shared, NULL, NULL, 0};           \
    fa_team team = FA__LOOP(_reduce_cluster)(p.rows.blocks);
FA__ROWS_KERNEL(_forward, FA__SLOT_THREADS, FA__LONG_RESIDENT, FA__LONG_OPEN)
FA__ROWS_KERNEL(_first_pass, FA__SLOT_THREADS, FA__LONG_RESIDENT, FA__LONG_OPEN)
#undef FA__LONG_OPEN
#undef FA__LOOP
#undef FA__VARIANT

/* ---- sweeps ---- */

#define FA__VARIANT _sweep
#define FA_COLS FA__ROW_COLS(16)
#define FA_THREADS 1
#define FA_HOLD FA_SHARED
#define FA_PIECES FA__SWEEP_PIECES
#define FA_BLOCKS FA__CLUSTER_BLOCKS
#undef FA__UNROLL_PIECES
#define FA__UNROLL_PIECES FA__UNROLL
#include <fa/kernel/rows_gpu_parts.h>

/* Which rows a team takes, and its part in them. */
typedef struct FA__LOOP(_share) {
    int mine;       /* the team's number in its block */
    int segment;    /* of every row */
    int64_t worker; /* the block's number among those of the segment, or the cluster's */
    int64_t step;   /* from a row of the block to its next */
} FA__LOOP(_share);
FA__FN FA__LOOP(_share) FA__LOOP(_share_of)(const FA__PARAMS *p) {
    FA__LOOP(_share) s;
    s.mine = p->rows.teams > 1 ? (int)threadIdx.x >> fa_sm80_lowest_bit((uint32_t)p->rows.threads) : 0;
    s.worker = (int)(blockIdx.x >> fa_sm80_lowest_bit((uint32_t)p->rows.blocks));
    s.segment = 0;
    if (p->sums.segments > 1) s.segment = (int)(s.worker % p->sums.segments), s.worker /= p->sums.segments;
    s.step = p->sums.workers * p->rows.teams;
    return s;
}
FA__FN fa_team FA__LOOP(_team_of)(const FA__PARAMS *p) {
    return p->rows.threads <= 32 ? FA__LOOP(_reduce_team)(p->rows.threads) : FA__LOOP(_reduce_cluster)(p->rows.blocks);
}

/* All rows of a block. Before one is finished, that which comes `ahead_by` later is started, in the slots of the one
 * before. The first rows are started while there is none to finish: their numbers are negative. */
#define FA__SWEEP(direction)                                                                                                    \
    FA__LOOP(_place) ahead = place;                                                                                             \
    FA__LOOP(_flight) flight, next;                                                                                             \
    const int stage_bytes = p.rows.tensors * p.rows.slot_bytes, ahead_by = p.sums.stages - 1;                                   \
    const int64_t far = ahead_by * share.step;                                                                                  \
    int64_t row = share.worker * p.rows.teams - far;                                                                            \
    int turn = 0;                                                                                                               \
    FA__LOOP(direction##_peek)(&next, &p, row + share.mine);                                                                    \
    for (; row < p.rows.rows; row += share.step) {                                                                              \
        ahead.slots = slots + turn * stage_bytes;                                                                               \
        if (row + far < p.rows.rows) FA__LOOP(direction##_start)(&p, row + far + share.mine, share.segment, &team, &ahead);     \
        fa_sm80_copy_commit();                                                                                                  \
        turn = turn == ahead_by ? 0 : turn + 1;                                                                                 \
        flight = next;                                                                                                          \
        FA__LOOP(direction##_peek)(&next, &p, row + share.step + share.mine);                                                   \
        if (row < 0) continue;                                                                                                  \
        fa_sm80_copy_wait(ahead_by);                                                                                            \
        place.slots = slots + turn * stage_bytes;                                                                               \
        FA__LOOP(direction##_finish)(&p, row + share.mine, share.segment, &team, &place, &flight);                              \
    }

static __global__ void __launch_bounds__(FA__SWEEP_THREADS, 1) FA__ROWS(_sweep_kernel_forward)(const __grid_constant__ FA__PARAMS p) {
    unsigned char *slots = fa__shared + sizeof(FA__LOOP(_reduce_shared));
    FA__LOOP(_place) place = {(FA__LOOP(_reduce_shared) *)fa__shared, slots, NULL, 0};
    const FA__LOOP(_share) share = FA__LOOP(_share_of)(&p);
    fa_team team = FA__LOOP(_team_of)(&p);
    FA__SWEEP(_forward)
}

static __global__ void __launch_bounds__(FA__SWEEP_THREADS, 1) FA__ROWS(_sweep_kernel_backward)(const __grid_constant__ FA__PARAMS p) {
    enum { HELD = FA__SWEEP_PIECES * FA__LOOP(_row_LENGTH) };
    float sums[FA__SUMS * HELD];
    unsigned char *slots = fa__shared + sizeof(FA__LOOP(_reduce_shared));
    FA__LOOP(_place) place = {(FA__LOOP(_reduce_shared) *)fa__shared, slots, sums, HELD};
    const FA__LOOP(_share) share = FA__LOOP(_share_of)(&p);
    fa_team team = FA__LOOP(_team_of)(&p);
    FA__UNROLL
    for (int i = 0; i < FA__SUMS * HELD; i++) sums[i] = 0.0f;
    FA__SWEEP(_backward)
    if (!p.sums.partial) return;

    /* The teams of a block: halves add halves, through the slots, which nobody reads any more. */
    float *shared = (float *)slots + threadIdx.x;
    const int apart = (int)blockDim.x;
    for (int half = p.rows.teams / 2; half > 0; half /= 2)
        FA__UNROLL
        for (int which = 0; which < FA__SUMS; which++) {
            __syncthreads();
            FA__UNROLL
            for (int i = 0; i < HELD; i++)
                if (share.mine >= half && share.mine < 2 * half) shared[i * apart] = sums[which * HELD + i];
            __syncthreads();
            FA__UNROLL
            for (int i = 0; i < HELD; i++)
                if (share.mine < half) sums[which * HELD + i] += shared[i * apart + half * p.rows.threads];
        }
    if (share.mine > 0) return;
    FA__LOOP(_row_view) columns = FA__LOOP(_columns)(&p, 0, share.segment, &team);
    FA__UNROLL
    for (int which = 0; which < FA__SUMS; which++)
        FA__UNROLL
        for (int piece = 0; piece < FA__SWEEP_PIECES; piece++)
            FA__LOOP(_row_put)(&columns, piece,
                               p.sums.partial + (share.worker * FA__SUMS + which) * p.sums.pitch + share.segment * p.sums.length,
                               sums + which * HELD + piece * FA__LOOP(_row_LENGTH));
}
#undef FA__SWEEP
#undef FA__LOOP
#undef FA__VARIANT

/* Adds the partial sums of columns: a lane has a column, and each warp some workers. */
#define FA__ADD_WARPS 16
static __global__ void __launch_bounds__(32 * FA__ADD_WARPS) FA__ROWS(_add_kernel)(const __grid_constant__ FA__PARAMS p) {
    __shared__ float part[FA__ADD_WARPS][32];
    const int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5, which = (int)(blockIdx.x % FA__SUMS);
    const int64_t column = (int64_t)(blockIdx.x / FA__SUMS) * 32 + lane, apart = FA__SUMS * p.sums.pitch;
    if (!p.sums.totals[which]) return;
    float sum = 0.0f;
    if (column < p.rows.cols) {
        const float *from = p.sums.partial + which * p.sums.pitch + column;
        _Pragma("unroll 8") for (int64_t worker = warp; worker < p.sums.workers; worker += FA__ADD_WARPS) sum += from[worker * apart];
    }
    part[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || column >= p.rows.cols) return;
    sum = 0.0f;
    FA__UNROLL
    for (int i = 0; i < FA__ADD_WARPS; i++) sum += part[i][lane];
    fa_store_element(p.sums.totals[which], column, FA_WEIGHT_DTYPE, sum);
}

/* ---- the host's side ---- */

static FA_UNUSED fa_status FA__ROWS(__deal)(FA__PARAMS *p, int backward, int aligned) {
    const void *kernel = backward ? (const void *)FA__ROWS(_sweep_kernel_backward) : (const void *)FA__ROWS(_sweep_kernel_forward);
    p->sums.count = FA__SUMS;
    return fa__rows_sweep(&p->rows, &p->sums, FA__STR(FA__ROWS()), kernel, (int)sizeof(FA__ELEMENT), aligned,
                          sizeof(FA__ROWS(_sweep_reduce_shared)));
}

/* Rows that are not swept, or a first pass over those that are swept by segments. */
static FA_UNUSED fa_status FA__ROWS(__run_long)(const FA__PARAMS *p, int backward, fa_stream stream) {
    const void *kernel = backward ? (const void *)FA__ROWS(_long_kernel_first_pass) : (const void *)FA__ROWS(_long_kernel_forward);
    FA__PARAMS whole = *p;
    whole.sums.segments = 1;
    whole.sums.length = p->rows.cols;
    whole.rows.blocks = p->sums.clusters;
    whole.rows.threads = FA__SLOT_THREADS;
    whole.rows.teams = 1;
    return fa__launch_rows(FA__STR(FA__ROWS()), kernel, &whole.rows, 0, &whole, stream);
}

static FA_UNUSED fa_status FA__ROWS(__run)(FA__PARAMS *p, int backward, int aligned, int threads, fa_stream stream) {
    const char *name = FA__STR(FA__ROWS());
    const void *kernel = backward ? (const void *)FA__ROWS(_sweep_kernel_backward) : (const void *)FA__ROWS(_sweep_kernel_forward);
    const size_t shared = sizeof(FA__ROWS(_sweep_reduce_shared)) + (size_t)(p->sums.stages * p->rows.tensors) * (size_t)p->rows.slot_bytes;
    fa_status status = FA_OK;
    (void)aligned, (void)threads;
    if (p->sums.segments > 1) {
        status = FA__ROWS(__run_long)(p, backward, stream);
        if (!backward) return status;
    }
    if (status == FA_OK && p->rows.rows > 0)
        status = fa__launch_blocks(name, kernel, p->sums.workers * p->sums.segments * p->rows.blocks, p->rows.threads * p->rows.teams,
                                   p->rows.blocks, shared, p, stream);
    if (status == FA_OK && backward && p->sums.wanted)
        status = fa__launch_blocks(name, (const void *)FA__ROWS(_add_kernel), (p->rows.cols + 31) / 32 * FA__SUMS, 32 * FA__ADD_WARPS, 1, 0,
                                   p, stream);
    return status;
}
#undef FA__ADD_WARPS
#undef FA__ROW_COLS
#undef FA__ROWS_KERNEL
#undef FA__TEAM_OPEN
#undef FA__SLOT_OPEN
