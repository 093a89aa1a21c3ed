/* rows_gpu_even.h: the kernel of a variant FA__VARIANT of the forward for rows of whole vectors, of which a thread
 * has FA_PIECES of 16 bytes: blocks of up to FA__MOST threads, of which FA__RESIDENT should fit in a multiprocessor.
 * FA__DIRECTION: _forward_plain, or _forward also for rows that are more than plain. With FA_BLOCKS, clusters of up
 * to so many blocks share a row. FA_VECTOR and FA__ABREAST as in rows_primitives.h.
 *
 * There is no loop over rows: for more than a launch may have blocks (2^31, of 256 bytes of y and more) the host
 * takes another kernel. */
#if defined(FA_BLOCKS) && !(defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900)
#define FA__EVEN_TEAM FA__TEAM_OF(p)
#define FA__EVEN_ROW FA__CLUSTER_OF(blockIdx.x, p)
#else
#undef FA_BLOCKS /* no room for the sums of clusters in code for GPUs without these */
#define FA__EVEN_TEAM FA__LOOP(_reduce_team)(p.rows.threads)
#define FA__EVEN_ROW blockIdx.x
#endif
#define FA__DIRECTIONS FA__ROWS_FORWARD
#define FA_COLS FA__ROW_COLS(16)
#define FA_THREADS 1
#define FA_WHOLE 2
#define FA__EVEN 1
#define FA__MOST_WARPS (FA__MOST / 32)
#include <fa/kernel/rows_gpu_variant.h>
#define FA__EVEN_KERNEL(direction)                                                                         \
    FA__KERNEL(direction, FA__MOST, FA__RESIDENT)                                                          \
    FA__KERNEL_BODY({                                                                                      \
        __shared__ FA__LOOP(_reduce_shared) shared;                                                        \
        FA__LOOP(_place) place = {&shared, NULL};                                                          \
        fa_team team = FA__EVEN_TEAM;                                                                      \
        FA__LOOP(_reduce__greet)(&team, &shared);                                                          \
        const int64_t first = (int64_t)FA__EVEN_ROW * FA__LOOP(_ABREAST) * p.rows.teams;                   \
        FA__LOOP(direction)(&p, first + ((int)threadIdx.x >> p.rows.team_bits), &team, &place);            \
    })
FA__EVEN_KERNEL(FA__DIRECTION)
#undef FA__EVEN_KERNEL
#undef FA__EVEN_TEAM
#undef FA__EVEN_ROW
#undef FA__DIRECTION
#undef FA__MOST
#undef FA__RESIDENT
#undef FA__LOOP
#undef FA__VARIANT
