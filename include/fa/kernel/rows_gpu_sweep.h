/* rows_gpu_sweep.h: rows on GPUs, of kernels with sums of columns over all rows (FA__SUMS): the norms (kernel/norm.h), whose
 * parameters and helpers it takes.
 *
 * Forward: rows of whole vectors of 16 bytes (`even`) are held in registers by lanes, a block or a cluster, with kernels of their own where
 * only one tensor is read and one written (FA__PARAMS's `plain`); plain rows of vectors of 4 or 8 bytes by lanes or a block, too. Weights of columns come from
 * the L1 cache. Rows that begin anywhere, and longer ones, are held in shared memory, by lanes, a block or a cluster.
 *
 * Backward: blocks are persistent. A team takes row after row, with the next ones in flight into shared memory. A thread has
 * the same columns in every row; it keeps their weights in shared memory (for rows of any kind in registers), and their sums in
 * registers. In the end the teams of a block add theirs, each block writes what it has, and a second, small kernel adds that up
 * in an order that depends on their number alone: no atomics. Rows are swept by a few lanes, a warp, a block, or a cluster, each of whose blocks
 * has some of the columns; longer ones, and long ones that begin anywhere, by segments, each by blocks of its own, after a first pass over whole rows.
 */
#include <fa/kernel/gpu.h>
#include <fa/kernel/rows_launch.h>
#include <fa/kernel/rows_sweep.h>

/* ---- forward ---- */

#define FA__VARIANT _held
#define FA_PIECES 4
#define FA__MOST 512
#define FA__RESIDENT 2
#define FA__DIRECTION _forward_plain
#include <fa/kernel/rows_gpu_even.h>

/* Short rows, up to 128 bytes: a thread has a vector of each of four (2^28 elements of bf16 on an H200, of 8, 16,
 * 32, 64 columns: 2.2, 1.4, 1.4, 1.1 times as fast; but with two sums 0.9 of 40 and 48). Teams of 8 lanes are the
 * largest; for these the assembler would load the fourth row after the sums of others. */
#define FA__SHORT_ROWS 4
#define FA__SHORT_LEAST (FA__SUMS == 2 ? 112 : 0) /* bytes of a row of more than four vectors */
#define FA__VARIANT _short
#define FA_PIECES 1
#define FA__ABREAST FA__SHORT_ROWS
#define FA__MOST_LANES 16
#define FA__MOST 256
#define FA__RESIDENT (5 - FA__SUMS)
#define FA__DIRECTION _forward_plain
#include <fa/kernel/rows_gpu_even.h>

/* Halves with two sums, where three vectors a thread are enough for a row and two are not (768 columns: 1.06 times
 * as fast as with room for four; with 48 registers, for five blocks, 0.97). */
#define FA__THREES (FA__SUMS == 2 && FA__IS_HALF)
#if FA__THREES
#define FA__VARIANT _three
#define FA_PIECES 3
#define FA__MOST_LANES 32
#define FA__MOST 256
#define FA__RESIDENT 4
#define FA__DIRECTION _forward_plain
#include <fa/kernel/rows_gpu_even.h>
#endif

/* Rows that are more than plain, and layernorm's plain ones that a block cannot hold. */
#define FA__VARIANT _mixed
#define FA_PIECES 4
#define FA_BLOCKS FA__CLUSTER_BLOCKS
#define FA__MOST 512
#define FA__RESIDENT 2
#define FA__DIRECTION _forward
#include <fa/kernel/rows_gpu_even.h>

/* Rows of 2 to 4 KB within a warp, which needs no barrier; and long rows: three blocks of a multiprocessor take
 * turns in loading and storing. Clusters may take longer ones, but not with two weights (layernorm): there 8,192
 * columns would be 2 to 4 % slower for it, and the kernel above has these. */
#define FA__WIDE_CLUSTERS (FA__SUMS == 1)
#define FA__VARIANT _wide
#define FA_PIECES 8
#if FA__WIDE_CLUSTERS
#define FA_BLOCKS FA__CLUSTER_BLOCKS
#endif
#define FA__MOST 256
#define FA__RESIDENT 3
#define FA__DIRECTION _forward_plain
#include <fa/kernel/rows_gpu_even.h>

/* Rows of halves with two weights of floats, which have more bytes than the rows: the L1 cache has much to deliver.
 * In the longest rows a thread has four columns side by side, so that a warp reads its weights, too, in one stretch
 * (4 % faster for 16k columns, but 5 to 18 % slower for rows that leave some threads without work). Of short ones it
 * has two rows at a time: 5 % faster for 4,096 rows of 1,024 columns, but 1 % slower for many such rows. From 3.5 KB
 * on two warps have a row (2,048 columns: 4 % slower for many rows, 15 % faster for 4,096), and from 6 KB to 8 KB
 * two warps instead of four (4,096 columns: 6 % faster for many, 3 % slower for 4,096). */
#define FA__HEAVY (FA_WEIGHT_DTYPE == FA_F32 && FA__SUMS == 2 && FA__IS_HALF)
#define FA__LONG_BYTES (22 * 1024)
#define FA__PAIR_BYTES 1024
#define FA__TWO_WARPS_BYTES 3584
#define FA__TWO_WIDE_BYTES 6144
#if FA__HEAVY
#define FA__VARIANT _long
#define FA_PIECES 8
#define FA_VECTOR 8
#define FA__MOST 256
#define FA__RESIDENT 3
#define FA__DIRECTION _forward_plain
#include <fa/kernel/rows_gpu_even.h>

#define FA__VARIANT _pair
#define FA_PIECES 4
#define FA__ABREAST 2
#define FA__MOST_LANES 32
#define FA__MOST 256
#define FA__RESIDENT 2
#define FA__DIRECTION _forward_plain
#include <fa/kernel/rows_gpu_even.h>
#endif

/* Plain rows of whole vectors of 4 bytes (rmsnorm of 100 and 2,052 columns of bf16: 1.6 and 2.2 times as fast as
 * rows of any kind). Where there is a kernel for vectors of 8 bytes, there is none for these, for the time that it
 * takes to compile. */
#if !FA__HEAVY
#define FA__VARIANT _narrow
#define FA_PIECES 4
#define FA_VECTOR 4
#define FA__MOST 512
#define FA__RESIDENT 2
#define FA__DIRECTION _forward_plain
#include <fa/kernel/rows_gpu_even.h>
#endif

/* Any other rows, in shared memory, or, if they are too long for that, read again; and the backward of such rows. */
#define FA__VARIANT _any
#define FA_COLS FA__ROW_COLS(16)
#define FA_THREADS 1
#define FA_BLOCKS FA__CLUSTER_BLOCKS
#define FA__MOST_WARPS (FA__SWEEP_THREADS / 32)
#include <fa/kernel/rows_gpu_variant.h>
#define FA__ANY_PLACE {(FA__LOOP(_reduce_shared) *)fa__shared, fa__shared + sizeof(FA__LOOP(_reduce_shared))}
FA__KERNEL(_forward, FA__SLOT_THREADS, FA__SLOT_RESIDENT) FA__KERNEL_BODY({
    FA__LOOP(_place) place = FA__ANY_PLACE;
    fa_team team = FA__TEAM_OF(p);
    FA__LOOP(_reduce__greet)(&team, place.shared);
    const int shift = fa_sm80_lowest_bit((uint32_t)p.rows.blocks), mine = (int)threadIdx.x >> p.rows.team_bits;
    int64_t row = (int64_t)(blockIdx.x >> shift) * p.rows.teams;
    for (; row < p.rows.rows; row += (int64_t)(gridDim.x >> shift) * p.rows.teams) FA__LOOP(_forward)(&p, row + mine, &team, &place);
})
FA__KERNEL(_backward, FA__SWEEP_THREADS, FA__ANY_RESIDENT) FA__KERNEL_BODY({
    FA__LOOP(_place) place = FA__ANY_PLACE;
    fa_team team = FA__LOOP(_reduce_team)(p.rows.threads);
    FA__LOOP(_backward)(&p, (int)blockIdx.x / p.sums.segments, (int)blockIdx.x % p.sums.segments, &team, &place);
})
#undef FA__ANY_PLACE
#undef FA__LOOP
#undef FA__VARIANT

/* ---- backward ---- */

#define FA__VARIANT _sweep
#define FA__PIECES FA__SWEEP_EVEN
#define FA_BLOCKS FA__CLUSTER_BLOCKS
#include <fa/kernel/rows_gpu_sweep_kernel.h>
#define FA__VARIANT _sweep_fast
#define FA__PIECES FA__SWEEP_FAST
#include <fa/kernel/rows_gpu_sweep_kernel.h>

/* Adds the partial sums of columns: a lane has a column, and each warp some workers. */
#define FA__ADD_WARPS 16
static __global__ void __launch_bounds__(32 * FA__ADD_WARPS) FA__ROWS(_add_kernel)(const __grid_constant__ FA__PARAMS p) {
#if !FA__HOST_PASS
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
    fa_sm80_barrier();
    if (warp > 0 || column >= p.rows.cols) return;
    sum = 0.0f;
    FA__UNROLL
    for (int i = 0; i < FA__ADD_WARPS; i++) sum += part[i][lane];
    fa_store_element(p.sums.totals[which], column, FA_WEIGHT_DTYPE, sum);
#else
    (void)p;
#endif
}

/* ---- the host's side ---- */

FA__CALLED fa_status FA__ROWS(__deal)(FA__PARAMS *p) {
    p->sums.count = FA__SUMS;
    p->sums.row_values_count = p->rstd ? 0 : 2;
    return fa__rows_sweep(&p->rows, &p->sums, FA__ROWS_CALL(1), (const void *)FA__ROWS(_sweep_kernel_backward), (int)sizeof(FA__ELEMENT), p->plain,
                          offsetof(FA__ROWS(_sweep_reduce_shared), part[FA__SWEEP_THREADS / 32]), sizeof(FA__ROWS(_sweep_reduce_shared)),
                          sizeof(FA__ROWS(_any_reduce_shared)));
}

/* Fewer rows never have more workers. */
FA__CALLED void FA__ROWS(__most_workers)(FA__PARAMS *p) { (void)p; }

/* Rows of any kind. */
FA__CALLED fa_status FA__ROWS(__run_any)(FA__PARAMS *p, const char *name, fa_stream stream) {
    const void *kernel = (const void *)FA__ROWS(_any_kernel_forward);
    size_t shared_bytes;
    const int results = (p->y.data != NULL) + (p->sum.data != NULL);
    p->rows.tensors = 1 + (p->residual.data != NULL);
    fa_status status = fa__rows_any(&p->rows, name, kernel, (int)sizeof(FA__ELEMENT), results, sizeof(FA__ROWS(_any_reduce_shared)), &shared_bytes);
    return status != FA_OK ? status : fa__launch_rows(name, kernel, &p->rows, shared_bytes, p, stream);
}

FA__CALLED fa_status FA__ROWS(__run_forward)(FA__PARAMS *p, const char *name, fa_stream stream) {
    const int element = (int)sizeof(FA__ELEMENT);
    const int64_t row = p->rows.cols * element;
    const int small = fa__rows_policy(&p->rows, element, p->plain); /* then x is read again: what follows from y is added to it soon; or a sweep reads it */
    const struct {
        const void *kernel;
        int bytes, over, vector, most, plain; /* bytes of a thread, at most, and more than; of a vector; threads of a team at most; only plain rows */
        int64_t least;                        /* bytes of a row at least */
        int small, abreast;                   /* only matrices below FA__STREAM_BYTES (results are the same bits); rows of a team at a time */
        int clusters;                         /* of blocks can share a row */
    } ways[] = {
        {(const void *)FA__ROWS(_short_kernel_forward_plain), 16, 0, 16, 4, 1, 0, 0, FA__SHORT_ROWS, 0},
        {(const void *)FA__ROWS(_short_kernel_forward_plain), 16, 0, 16, 8, 1, FA__SHORT_LEAST, 0, FA__SHORT_ROWS, 0},
#if FA__HEAVY
        {(const void *)FA__ROWS(_pair_kernel_forward_plain), 64, 0, 16, 32, 1, FA__PAIR_BYTES + 1, 1, 2, 0},
#endif
#if FA__THREES
        {(const void *)FA__ROWS(_three_kernel_forward_plain), 48, 32, 16, 32, 1, 0, 0, 1, 0},
#endif
        {(const void *)FA__ROWS(_held_kernel_forward_plain), 64, 0, 16, 32, 1, 0, 0, 1, 0},
#if FA__HEAVY
        {(const void *)FA__ROWS(_held_kernel_forward_plain), 64, 0, 16, 64, 1, FA__TWO_WARPS_BYTES, 0, 1, 0},
        {(const void *)FA__ROWS(_wide_kernel_forward_plain), 128, 0, 16, 64, 1, FA__TWO_WIDE_BYTES, 0, 1, 0},
#endif
        {(const void *)FA__ROWS(_wide_kernel_forward_plain), 128, 0, 16, 32, 1, 0, 0, 1, 0}, /* within warps if that can be */
        {(const void *)FA__ROWS(_held_kernel_forward_plain), 64, 0, 16, 128, 1, 0, 0, 1, 0},
#if FA__HEAVY
        {(const void *)FA__ROWS(_long_kernel_forward_plain), 128, 0, 8, 256, 1, FA__LONG_BYTES, 0, 1, 0},
#endif
        {(const void *)FA__ROWS(_wide_kernel_forward_plain), 128, 0, 16, 256, 1, 0, 0, 1, FA__WIDE_CLUSTERS},
        {(const void *)FA__ROWS(_mixed_kernel_forward), 64, 0, 16, 512, 0, 0, 0, 1, 1},
#if FA__HEAVY
        {(const void *)FA__ROWS(_long_kernel_forward_plain), 128, 0, 8, 256, 1, 0, 0, 1, 0}};
#else
        {(const void *)FA__ROWS(_narrow_kernel_forward_plain), 64, 0, 4, 512, 1, 0, 0, 1, 0}};
#endif
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        int64_t needed = (row + ways[i].bytes - 1) / ways[i].bytes;
        if (ways[i].vector > p->rows.unit || row < ways[i].least || ways[i].plain > p->plain || ways[i].small > small) continue;
        int shared_by = 1; /* blocks */
        if (needed > ways[i].most && ways[i].clusters) {
            const fa_status status = fa__rows_cluster(name, ways[i].kernel, needed, ways[i].most, &shared_by);
            if (status != FA_OK) return status;
            needed = (needed + shared_by - 1) / shared_by;
        }
        if (needed > ways[i].most) continue;
        /* Blocks of 64 threads, 4 KB, are 1 to 3 % faster than of 256 for many rows (of 1,024 columns), or for four
         * tensors; for few rows of two tensors they are 1 to 3 % slower. */
        fa__rows_teams(&p->rows, needed, p->rows.rows > 1 << 15 || !p->plain ? 64 : 256);
        if (row <= (int64_t)ways[i].over * p->rows.threads) continue;
        p->rows.blocks = shared_by;
        int room;
        const fa_status status = fa__rows_room(&p->rows, name, ways[i].kernel, 0, &room);
        if (status != FA_OK) return status;
        if (!room) continue;
        const int vectors = (int)(row / ways[i].vector), threads = p->rows.threads * shared_by;
        p->rows.rounds = vectors / threads;
        p->rows.rest = vectors % threads;
        const int64_t rows = (int64_t)ways[i].abreast * p->rows.teams; /* of a block */
        const int64_t blocks = (p->rows.rows + rows - 1) / rows * shared_by;
        if (blocks > FA__BLOCKS_MOST) break; /* of one row, repeated */
        return fa__launch_blocks(name, ways[i].kernel, blocks, p->rows.threads * p->rows.teams, shared_by, 0, p, stream);
    }
    return FA__ROWS(__run_any)(p, name, stream);
}

/* The statistics of a backward that are missing, by a forward without results. */
FA__CALLED fa_status FA__ROWS(__run_statistics)(FA__PARAMS *p, fa_stream stream) {
    FA__PARAMS forward = *p;
    forward.mean = p->mean = p->sums.row_values;
    forward.rstd = p->rstd = p->mean + p->rows.rows;
    forward.x = p->sum;
    forward.residual.data = forward.sum.data = forward.y.data = NULL;
    forward.gamma = NULL;
    forward.dropout = fa_dropout_of(0.0f, 0, 0); /* its scale, too: kernels of more than plain rows multiply by it */
    forward.plain = 1;
    return FA__ROWS(__run_forward)(&forward, FA__ROWS_CALL(1), stream);
}

/* The first pass over rows that are swept by segments: finds their means of w and of w n. */
FA__CALLED fa_status FA__ROWS(__run_first_pass)(const FA__PARAMS *p, fa_stream stream) {
    FA__PARAMS first = *p;
    first.x = p->sum;
    first.residual = p->d_y;
    first.sum.data = first.y.data = NULL;
    first.dropout = fa_dropout_of(0.0f, 0, 0);
    first.first_pass = 1;
    fa__rows_policy(&first.rows, (int)sizeof(FA__ELEMENT), 1); /* by the sweep */
    return FA__ROWS(__run_any)(&first, FA__ROWS_CALL(1), stream);
}

FA__CALLED fa_status FA__ROWS(__run)(FA__PARAMS *p, int backward, int aligned, int threads, fa_stream stream) {
    const char *name = FA__ROWS_CALL(backward);
    (void)aligned, (void)threads;
    if (!backward) return FA__ROWS(__run_forward)(p, name, stream);
    fa__rows_policy(&p->rows, (int)sizeof(FA__ELEMENT), 0);
    const void *kernel = !p->sums.whole ? (const void *)FA__ROWS(_any_kernel_backward)
                         : p->sums.pieces == FA__SWEEP_FAST ? (const void *)FA__ROWS(_sweep_fast_kernel_backward)
                                                            : (const void *)FA__ROWS(_sweep_kernel_backward);
    fa_status status = !p->rstd && p->rows.rows > 0 ? FA__ROWS(__run_statistics)(p, stream) : FA_OK;
    if (status == FA_OK && p->sums.segments > 1 && p->rows.rows > 0) status = FA__ROWS(__run_first_pass)(p, stream);
    if (status == FA_OK && p->rows.rows > 0)
        status = fa__launch_blocks(name, kernel, p->sums.workers * p->sums.segments * p->rows.blocks,
                                   p->rows.threads * p->rows.teams, p->rows.blocks, p->sums.shared_bytes, p, stream);
    if (status == FA_OK && p->sums.wanted)
        status = fa__launch_blocks(name, (const void *)FA__ROWS(_add_kernel), (p->rows.cols + 31) / 32 * FA__SUMS, 32 * FA__ADD_WARPS, 1, 0,
                                   p, stream);
    return status;
}
#undef FA__ADD_WARPS
#undef FA__HEAVY
#undef FA__THREES
#undef FA__SHORT_ROWS
#undef FA__SHORT_LEAST
#undef FA__WIDE_CLUSTERS
#undef FA__LONG_BYTES
#undef FA__PAIR_BYTES
#undef FA__TWO_WARPS_BYTES
#undef FA__TWO_WIDE_BYTES
