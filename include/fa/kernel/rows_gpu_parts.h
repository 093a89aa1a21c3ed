/* rows_gpu_parts.h: the row functions of a variant, and FA__ROWS_KERNEL(), the kernel of one of them: teams take rows
 * until there are none. */
#include <fa/kernel/rows_parts.h>

#if !defined(FA__ROWS_KERNEL)
#define FA__ROWS_KERNEL(direction, MOST, RESIDENT, OPEN)                                                              \
    static __global__ void __launch_bounds__(MOST, RESIDENT) FA__LOOP(_kernel##direction)(const __grid_constant__ FA__PARAMS p) { \
        OPEN                                                                                                             \
        int mine = p.rows.teams > 1 ? (int)threadIdx.x >> fa_sm80_lowest_bit((uint32_t)p.rows.threads) : 0;              \
        int shift = fa_sm80_lowest_bit((uint32_t)p.rows.blocks); /* threads of small teams and blocks: powers of two */  \
        int64_t row = (int64_t)(blockIdx.x >> shift) * p.rows.teams, step = (int64_t)(gridDim.x >> shift) * p.rows.teams; \
        for (; row < p.rows.rows; row += step) FA__LOOP(direction)(&p, row + mine, &team, &place);                       \
    }
#define FA__TEAM_OPEN                                                        \
    __shared__ FA__LOOP(_reduce_shared) shared;                              \
    FA__LOOP(_place) place = {&shared, NULL, NULL, 0};                                \
    fa_team team = FA__LOOP(_reduce_team)(p.rows.threads);
#define FA__SLOT_OPEN                                                                                                          \
    FA__LOOP(_place) place = {(FA__LOOP(_reduce_shared) *)fa__shared,                                                          \
                              p.rows.slot_bytes > 0 ? fa__shared + sizeof(FA__LOOP(_reduce_shared)) : NULL, NULL, 0};                   \
    fa_team team = FA__LOOP(_reduce_cluster)(p.rows.blocks);
#endif
