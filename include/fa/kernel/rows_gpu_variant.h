/* rows_gpu_variant.h: the row functions of a variant, and the kernel of one of them, in which teams take rows until
 * there are none: FA__TEAM_KERNEL() for teams of a block at most, FA__ROWS_KERNEL() for blocks and clusters. */
#include <fa/kernel/rows_primitives.h>

#if !defined(FA__ROWS_KERNEL)
/* Multiprocessors with less shared memory also have room for fewer threads: 1,536, not 2,048; and so have those of
 * sm_110. */
#if defined(__CUDA_ARCH__) && (FA__SMALL_SHARED(__CUDA_ARCH__ / 10) || __CUDA_ARCH__ / 10 == 110)
#define FA__RESIDENT_THREADS 1536
#else
#define FA__RESIDENT_THREADS 2048
#endif
/* The number of a block's cluster, of p.rows.blocks, a power of two, known to be 1 in code for GPUs without
 * clusters; and a team of lanes, a block, or a cluster. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define FA__CLUSTER_OF(block, p) (block)
#else
#define FA__CLUSTER_OF(block, p) ((block) >> fa_sm80_lowest_bit((uint32_t)(p).rows.blocks))
#endif
#define FA__TEAM_OF(p) ((p).rows.threads <= 32 ? FA__LOOP(_reduce_team)((p).rows.threads) : FA__LOOP(_reduce_cluster)((p).rows.blocks))
#define FA__BLOCKS_THAT_FIT(MOST, RESIDENT) ((RESIDENT) * (MOST) > FA__RESIDENT_THREADS ? FA__RESIDENT_THREADS / (MOST) : (RESIDENT))
#define FA__KERNEL(direction, MOST, RESIDENT) \
    static __global__ void __launch_bounds__(MOST, FA__BLOCKS_THAT_FIT(MOST, RESIDENT)) FA__LOOP(_kernel##direction)(const __grid_constant__ FA__PARAMS p)
#if FA__HOST_PASS
#define FA__KERNEL_BODY(...) { (void)p; }
#else
#define FA__KERNEL_BODY(...) __VA_ARGS__
#endif
#define FA__ROWS_KERNEL(direction, MOST, RESIDENT, OPEN)                                                              \
    FA__KERNEL(direction, MOST, RESIDENT) FA__KERNEL_BODY({                                                              \
        OPEN                                                                                                             \
        int shift = fa_sm80_lowest_bit((uint32_t)p.rows.blocks); /* a power of two */                                    \
        int64_t row = (int64_t)(blockIdx.x >> shift), step = (int64_t)(gridDim.x >> shift);                              \
        for (; row < p.rows.rows; row += step) FA__LOOP(direction)(&p, row, &team, &place);                              \
    })
/* A block that starts has rows to do: few instructions before its first load. Rows without ends to handle, of which
 * there are fewer than 2^31, need no loop, which would have all parameters fetched first. */
#define FA__TEAM_KERNEL(direction, MOST, RESIDENT)                                                                       \
    FA__KERNEL(direction, MOST, RESIDENT) FA__KERNEL_BODY({                                                              \
        __shared__ FA__LOOP(_reduce_shared) shared;                                                                      \
        FA__LOOP(_place) place = {&shared, NULL};                                                               \
        fa_team team = FA__LOOP(_reduce_team)(p.rows.threads);                                                           \
        int64_t row = (int64_t)blockIdx.x * p.rows.teams;                                                                \
        int mine = (int)threadIdx.x >> p.rows.team_bits;                                                                 \
        team.whole = FA__LOOP(_row_WHOLE);                                                                               \
        if (FA__LOOP(_row_WHOLE) && !FA__LOOP(_row__ENDS)) {                                                             \
            team.thread = (int)threadIdx.x - (mine << p.rows.team_bits), team.threads = p.rows.threads;                  \
            FA__LOOP(direction)(&p, (int64_t)((uint32_t)row + (uint32_t)mine), &team, &place);                           \
        } else {                                                                                                         \
            do FA__LOOP(direction)(&p, row + mine, &team, &place);                                                       \
            while ((row += (int64_t)gridDim.x * p.rows.teams) < p.rows.rows);                                            \
        }                                                                                                                \
    })
#define FA__SLOT_OPEN                                                                                                          \
    FA__LOOP(_place) place = {(FA__LOOP(_reduce_shared) *)fa__shared,                                                          \
                              p.rows.slot_bytes > 0 ? fa__shared + sizeof(FA__LOOP(_reduce_shared)) : NULL};                   \
    fa_team team = FA__LOOP(_reduce_cluster)(p.rows.blocks);                                                                   \
    FA__LOOP(_reduce__greet)(&team, place.shared);                                                                             \
    team.whole = p.rows.whole;
#endif
