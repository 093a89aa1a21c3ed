/* rows_gpu_team.h: the kernel of a variant FA__VARIANT in which a team is a block at most, for the direction
 * FA__BACKWARD; with FA_WHOLE, if its rows are whole; with FA__SHORT, if they are short besides. Others have ends,
 * which segments handle vector by vector, and rows apart (FA__ENDS). */
#if defined(FA__SHORT)
#define FA_WHOLE 2
#elif !defined(FA_WHOLE) && (FA__BACKWARD ? !FA__CUT_BACKWARD : !FA__CUT_FORWARD && !FA__ONCE_FORWARD)
#define FA_WHOLE 2
#define FA__ENDS 1
#endif
#define FA_THREADS 1
#if FA__BACKWARD
#define FA__DIRECTIONS FA__ROWS_BACKWARD
#if defined(FA__SHORT)
#define FA_COLS FA__ROW_COLS(16)
#define FA_PIECES 1
#elif defined(FA_WHOLE) && !FA__CUT_BACKWARD /* looked at vector by vector: fewer floats at a time (a softmax of 8,192 columns: 2 % faster) */
#define FA_COLS FA__ROW_COLS(16)
#define FA_PIECES (FA__TEAM_BYTES(FA__HELD_BACKWARD) / 16)
#undef FA__UNROLL_PIECES
#define FA__UNROLL_PIECES FA__UNROLL
#else
#define FA_COLS FA__ROW_COLS(FA__TEAM_BYTES(FA__HELD_BACKWARD))
#endif
#include <fa/kernel/rows_gpu_variant.h>
#undef FA__UNROLL_PIECES
#define FA__UNROLL_PIECES
#if FA__CUT_BACKWARD
FA__TEAM_KERNEL(_backward, FA__CUT_THREADS, FA__CUT_RESIDENT)
#elif defined(FA__SHORT)
FA__TEAM_KERNEL(_backward, FA__SHORT_THREADS, FA__SHORT_RESIDENT)
#else
FA__TEAM_KERNEL(_backward, FA__TEAM_THREADS, FA__TEAM_RESIDENT)
#endif
#else
#define FA__DIRECTIONS FA__ROWS_FORWARD
#if defined(FA__SHORT)
#define FA_COLS FA__ROW_COLS(16)
#else
#define FA_COLS FA__ROW_COLS(FA__FORWARD_BYTES)
#endif
#if defined(FA_WHOLE)
#define FA__FORWARD_RESIDENT FA__CUT_WHOLE_RESIDENT
#else
#define FA__FORWARD_RESIDENT FA__CUT_RESIDENT
#endif
#include <fa/kernel/rows_gpu_variant.h>
#if FA__CUT_FORWARD
FA__TEAM_KERNEL(_forward, FA__CUT_THREADS, FA__FORWARD_RESIDENT)
#elif defined(FA__SHORT)
FA__TEAM_KERNEL(_forward, FA__SHORT_THREADS, FA__SHORT_RESIDENT)
#elif FA__ONCE_FORWARD
FA__TEAM_KERNEL(_forward, FA__ONCE_TEAM, FA__ONCE_THREADS / FA__ONCE_TEAM)
#else
FA__TEAM_KERNEL(_forward, FA__TEAM_THREADS, FA__TEAM_RESIDENT)
#endif
#endif
#undef FA__FORWARD_RESIDENT
#undef FA__SHORT
#undef FA__LOOP
#undef FA__VARIANT
#undef FA__BACKWARD
