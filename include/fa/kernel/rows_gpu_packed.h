/* rows_gpu_packed.h: the kernel of a variant FA__VARIANT for short rows that follow each other without a gap but are
 * not of whole vectors, for the direction FA__BACKWARD. A block copies its rows to shared memory as if they were
 * one, and their results back: but for the ends of all of them, no access to memory is narrower than 16 bytes. There
 * one thread, or a few, have a row (sm80/row_packed.h). */
#define FA__PACKED 1
#define FA_COLS 8
#define FA_THREADS 1
#define FA_PIECES (FA__PACKED_EACH / 8)
#if FA__BACKWARD
#define FA__DIRECTIONS FA__ROWS_BACKWARD
#else
#define FA__DIRECTIONS FA__ROWS_FORWARD
#endif
#include <fa/kernel/rows_gpu_variant.h>
#define FA__PACKED_KERNEL(direction)                                                                                              \
    FA__KERNEL(direction, FA__PACKED_THREADS, FA__PACKED_RESIDENT)                                                                \
    FA__KERNEL_BODY({                                                                                                             \
        fa_matrix reads[2];                                                                                                       \
        const fa_matrix written = FA__ROWS(__written)(&p, FA__BACKWARD);                                                          \
        FA__LOOP(_place) place = {NULL, fa__shared, {0, 0}};                                                                      \
        fa_team team = FA__LOOP(_reduce_team)(p.rows.threads & (2 * FA__PACKED_LANES - 1)); /* known to be no more */             \
        const int64_t first = (int64_t)blockIdx.x * p.rows.teams;                                                                 \
        const int64_t from = first * p.rows.cols * (int64_t)sizeof(FA__ELEMENT);                                                  \
        const int rows = (int)(p.rows.rows - first < p.rows.teams ? p.rows.rows - first : p.rows.teams);                          \
        const int bytes = rows * (int)p.rows.cols * (int)sizeof(FA__ELEMENT);                                                     \
        const int tensors = FA__ROWS(__reads)(reads, &p, FA__BACKWARD);                                                           \
        FA__UNROLL                                                                                                                \
        for (int i = 0; i < tensors; i++) {                                                                                       \
            place.phase[i] = (int)(((unsigned)(uintptr_t)reads[i].data + (unsigned)from) & 15u);                                  \
            FA__LOOP(_row_bring)(fa__shared + i * p.rows.slot_bytes, (const char *)reads[i].data + from, bytes, p.rows.policy);   \
        }                                                                                                                         \
        team.phase = place.phase[0];                                                                                              \
        fa_sm80_copy_commit();                                                                                                    \
        fa_sm80_copy_wait(0);                                                                                                     \
        fa_sm80_barrier();                                                                                                        \
        FA__LOOP(direction)(&p, first + ((int)threadIdx.x >> p.rows.team_bits), &team, &place);                                   \
        if (written.data) {                                                                                                       \
            fa_sm80_barrier();                                                                                                    \
            FA__LOOP(_row_send)((char *)written.data + from, fa__shared + place.phase[0], bytes);                                 \
        }                                                                                                                         \
    })
#if FA__BACKWARD
FA__PACKED_KERNEL(_backward)
#else
FA__PACKED_KERNEL(_forward)
#endif
#undef FA__PACKED_KERNEL
#undef FA__PACKED
#undef FA__LOOP
#undef FA__VARIANT
#undef FA__BACKWARD
