/* rows_gpu_even.h: the kernel of a variant FA__VARIANT of the forward for rows of whole vectors, of which a thread has FA_PIECES of 16
 * bytes: blocks of up to FA__MOST threads, of which FA__RESIDENT should fit in a multiprocessor; with FA__MIXED also for rows that are more than
 * plain. FA_VECTOR and FA__ABREAST as in rows_primitives.h.
 *
 * A block has 1 KB of y or more, so that there are never more blocks than a launch may have (2^31, for 2 TB): no loop over rows. */
#define FA__DIRECTIONS FA__ROWS_FORWARD
#define FA_COLS FA__ROW_COLS(16)
#define FA_THREADS 1
#define FA_WHOLE 2
#define FA__EVEN 1
#include <fa/kernel/rows_gpu_variant.h>
#define FA__EVEN_KERNEL(direction)                                                                                       \
    FA__KERNEL(direction, FA__MOST, FA__RESIDENT) FA__KERNEL_BODY({                                                      \
        __shared__ FA__LOOP(_reduce_shared) shared;                                                                      \
        FA__LOOP(_place) place = {&shared, NULL};                                                               \
        fa_team team = FA__LOOP(_reduce_team)(p.rows.threads);                                                           \
        FA__LOOP(direction)(&p, FA__LOOP(_ABREAST) * ((int64_t)blockIdx.x * p.rows.teams + ((int)threadIdx.x >> p.rows.team_bits)), &team, &place); \
    })
FA__EVEN_KERNEL(_forward_plain)
#if defined(FA__MIXED)
FA__EVEN_KERNEL(_forward)
#undef FA__MIXED
#endif
#undef FA__EVEN_KERNEL
#undef FA__MOST
#undef FA__RESIDENT
#undef FA__LOOP
#undef FA__VARIANT
