/* rows_gpu_sweep.h: the backward of kernels that add up columns over all rows. Blocks stay: a team takes row after row, and
 * a thread, which has the same columns in all of them, keeps its sums in registers. In the end the teams of a block add
 * theirs, each block writes what it has, and a second, small kernel adds that up, in the order of the blocks: no atomics.
 *
 *   a row in the shared memory of a block, or of the blocks of a cluster; the next one is read ahead
 *   longer rows by segments, each of them swept by blocks of its own, after a first pass over whole rows
 */
#define FA__VARIANT _sweep
#define FA_COLS FA__ROW_COLS(16)
#define FA_THREADS 1
#define FA_HOLD FA_SHARED
#define FA_PIECES FA__SWEEP_PIECES
#define FA_BLOCKS FA__CLUSTER_BLOCKS
#undef FA__UNROLL_PIECES
#define FA__UNROLL_PIECES FA__UNROLL
#include <fa/kernel/rows_parts.h>

static __global__ void __launch_bounds__(FA__SWEEP_THREADS, 1) FA__ROWS(_sweep_kernel)(const __grid_constant__ FA__PARAMS p) {
    enum { LENGTH = FA__LOOP(_row_LENGTH), HELD = FA__SWEEP_PIECES * LENGTH };
    float sums[FA__SUMS * HELD];
    unsigned char *slots = fa__shared + sizeof(FA__LOOP(_reduce_shared));
    const int stage_bytes = p.rows.tensors * p.rows.slot_bytes;
    FA__LOOP(_place) place = {(FA__LOOP(_reduce_shared) *)fa__shared, slots, sums, HELD}, ahead = place;
    FA__LOOP(_flight) flight, next;
    fa_team team = p.rows.threads <= 32 ? FA__LOOP(_reduce_team)(p.rows.threads) : FA__LOOP(_reduce_cluster)(p.rows.blocks);
    int mine = p.rows.teams > 1 ? (int)threadIdx.x >> fa_sm80_lowest_bit((uint32_t)p.rows.threads) : 0;
    int worker = (int)(blockIdx.x >> fa_sm80_lowest_bit((uint32_t)p.rows.blocks)), segment = 0;
    if (p.sums.segments > 1) segment = worker % (int)p.sums.segments, worker /= (int)p.sums.segments;
    const int64_t step = p.sums.workers * p.rows.teams;
    int64_t row = (int64_t)worker * p.rows.teams;
    int turn = 0;

    FA__UNROLL
    for (int i = 0; i < FA__SUMS * HELD; i++) sums[i] = 0.0f;
    FA__LOOP(_backward_hold)(&flight, &p, row + mine, segment, &team, &place);
    fa_sm80_copy_commit();
    for (; row < p.rows.rows; row += step) {
        if (p.sums.stages == 2) {
            turn ^= 1;
            ahead.slots = slots + (turn ? stage_bytes : 0);
            if (row + step < p.rows.rows) FA__LOOP(_backward_hold)(&next, &p, row + step + mine, segment, &team, &ahead);
            fa_sm80_copy_commit();
            fa_sm80_copy_wait(1);
        } else {
            fa_sm80_copy_wait(0);
        }
        FA__LOOP(_backward)(&p, row + mine, segment, &team, &place, &flight);
        if (p.sums.stages != 2 && row + step < p.rows.rows) {
            FA__LOOP(_backward_hold)(&next, &p, row + step + mine, segment, &team, &ahead);
            fa_sm80_copy_commit();
        }
        flight = next;
    }
    if (!p.sums.partial) return;

    /* The teams of a block: halves add halves, through the slots, which nobody reads any more. */
    float *shared = (float *)slots + threadIdx.x;
    const int apart = (int)blockDim.x, others = p.rows.threads;
    for (int half = p.rows.teams / 2; half > 0; half /= 2)
        FA__UNROLL
        for (int which = 0; which < FA__SUMS; which++) {
            __syncthreads();
            FA__UNROLL
            for (int i = 0; i < HELD; i++)
                if (mine >= half && mine < 2 * half) shared[i * apart] = sums[which * HELD + i];
            __syncthreads();
            FA__UNROLL
            for (int i = 0; i < HELD; i++)
                if (mine < half) sums[which * HELD + i] += shared[i * apart + half * others];
        }
    if (mine > 0) return;
    FA__LOOP(_row_view) columns = FA__LOOP(_columns)(&p, 0, segment, &team);
    FA__UNROLL
    for (int which = 0; which < FA__SUMS; which++)
        FA__UNROLL
        for (int piece = 0; piece < FA__SWEEP_PIECES; piece++)
            FA__LOOP(_row_put)(&columns, piece, p.sums.partial + (worker * FA__SUMS + which) * p.sums.pitch + segment * p.sums.length,
                               FA__LOOP(_sums)(&place, which, piece));
}
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

static FA_UNUSED fa_status FA__ROWS(__deal)(FA__PARAMS *p) {
    p->sums.count = FA__SUMS;
    return fa__rows_sweep(&p->rows, &p->sums, FA__STR(FA__ROWS()), (const void *)FA__ROWS(_sweep_kernel), (int)sizeof(FA__ELEMENT),
                          sizeof(FA__ROWS(_sweep_reduce_shared)));
}

static FA_UNUSED fa_status FA__ROWS(__sweep)(FA__PARAMS *p, fa_stream stream) {
    const char *name = FA__STR(FA__ROWS());
    fa_status status = FA_OK;
    if (p->sums.segments > 1) {
        const size_t scratch = sizeof(FA__ROWS(_slots_reduce_shared));
        const void *kernel = (const void *)FA__ROWS(_slots_kernel_first_pass);
        FA__PARAMS first = *p;
        first.sums.length = p->rows.cols;
        first.d_sum.data = NULL;
        status = fa__rows_split(&first.rows, name, kernel, (int)sizeof(FA__ELEMENT), 1, 2, scratch);
        if (status == FA_OK)
            status = fa__launch_rows(name, kernel, &first.rows, scratch + 2 * (size_t)first.rows.slot_bytes, &first, stream);
    }
    if (status == FA_OK && p->rows.rows > 0)
        status = fa__launch_blocks(name, (const void *)FA__ROWS(_sweep_kernel), p->sums.workers * p->sums.segments * p->rows.blocks,
                                   p->rows.threads * p->rows.teams, p->rows.blocks,
                                   sizeof(FA__ROWS(_sweep_reduce_shared)) + (size_t)(p->sums.stages * p->rows.tensors) * (size_t)p->rows.slot_bytes,
                                   p, stream);
    if (status == FA_OK && p->sums.wanted)
        status = fa__launch_blocks(name, (const void *)FA__ROWS(_add_kernel), (p->rows.cols + 31) / 32 * FA__SUMS, 32 * FA__ADD_WARPS, 1, 0,
                                   p, stream);
    return status;
}
#undef FA__ADD_WARPS
