/* rows_run.h: runs the row functions of a kernel on all rows: the launches of the templates that work row by row.
 *
 * The template defines
 *
 *   FA__ROWS(x)           a name of the instance
 *   FA__PARAMS            the type of the parameters; its member `rows` is an fa__rows, of which rows and cols are set
 *   FA__BODY              the file that defines, with names FA__LOOP(x), what is to be done to a row:
 *                         _forward(p, row, team, place) and _backward(p, row, team, place)
 *   FA__ONE_DIRECTION     optional: 1 if there is only a _forward, which serves both; what is said of the backward below does not apply
 *   FA__HELD_FORWARD, FA__HELD_BACKWARD
 *                         tensors of a row that a direction holds (NAME_hold() of fa/row.h), among which what a thread reads at a time is divided
 *   FA__ONCE_FORWARD      optional: 1 if the forward reads its rows only once, piece by piece, so that they need not be held
 *   FA__KEEPS_FORWARD     optional: 1 if the forward keeps floats of place->keeps pieces of a row, and one more, in place->kept (CPU)
 *   FA__CUT_FORWARD, FA__CUT_BACKWARD
 *                         optional: 1 if what is passed as rows are segments of them (kernel/segments.h), of at most FA__ROWS(__cut_forward) or
 *                         FA__ROWS(__cut_backward) bytes
 *   FA__CUT_RESIDENT      optional: GPU blocks of FA__CUT_THREADS, which take a segment, that should fit in a multiprocessor (8)
 *   FA__CUT_WHOLE_RESIDENT  optional: the same of a forward whose segments are whole
 *   FA__CUT_PARTIAL       optional: 1 if these may be shorter than their teams, or missing: the row function handles that itself
 *
 *   FA__PACKS             optional: 1 if there are FA__ROWS(__reads)(m, p, backward), which puts the matrices that a direction reads into m[] and returns
 *                         how many, and FA__ROWS(__written)(p, backward), the one that it writes, or one whose data is NULL; both
 *                         directions hold a row at once if it is short
 *   FA__SUMS              optional, for the norms (kernel/norm.h), whose parameters, and types and helpers of norm_sweep.h, norm_even.h
 *                         and norm_gradient_cpu.h, it takes besides what follows: sums of columns over all rows, 1 or 2, that the
 *                         backward makes. Then FA__PARAMS has an fa__sums `sums`; rows.tensors, the tensors that are read, is set; and the file
 *                         defines
 *
 *     _forward_rows(p, row, end, next_item, team)                some rows; may prefetch those of the next item, unless that is -1 (CPU)
 *     _know(flight, p, row, team)                                finds what the backward needs to know of a whole row (CPU)
 *     _backward_row(p, row, next, team, place, flight)           finishes it, and adds to FA__LOOP(_sums)(place, which, piece); then *flight is what
 *                                                                is known of row number `next`, unless that is -1, as it is if not FA__LOOP(_row_BESIDE) (CPU)
 *     _forward(p, row, team, place)                              a whole row, with all that follows (GPU)
 *                                                                or, with p->first_pass, sums.row_values of a row of several segments
 *     _bring, _peek, _sum_up, _write                             the backward, for kernel/rows_gpu_sweep_kernel.h (GPU)
 *     _backward(p, worker, segment, team, place)                 the same of rows of any kind, all of a worker's (GPU)
 *
 *                         In the backward a thread has the same columns in every row. Pieces are looped over after
 *                         FA__UNROLL_PIECES. FA__ROWS(__deal)(p) comes before __run of the backward: it deals out the rows, and
 *                         tells what fa__sums_bytes() makes the workspace's size of.
 *
 * and gets fa_status FA__ROWS(__run)(p, backward, aligned, threads, stream). The file is compiled once for each way to
 * hold a row, or for each instruction set of the CPU. In it there are FA__LOOP(_row_...) of fa/row.h, FA__LOOP(_reduce_...)
 * of fa/reduce.h, and
 *
 *   FA__LOOP(_place)      a block's shared memory: ->shared for reductions; FA__LOOP(_slots)(place, p, i) is for
 *                         FA__LOOP(_row_hold)() of the i-th tensor
 *   row                   may be p->rows.rows or more in the last teams of a block: such a row has no columns, and all
 *                         take part in the reductions
 */
#if !defined(FA__SUMS)
#define FA__SUMS 0
#endif
#if !defined(FA__ONE_DIRECTION)
#define FA__ONE_DIRECTION 0
#endif
#define FA__UNROLL_PIECES
#if !defined(FA__CUT_RESIDENT)
#define FA__CUT_RESIDENT 8
#endif
#if !defined(FA__CUT_WHOLE_RESIDENT)
#define FA__CUT_WHOLE_RESIDENT FA__CUT_RESIDENT
#endif
#if !defined(FA__CUT_PARTIAL)
#define FA__CUT_PARTIAL 0
#endif
#if !defined(FA__ONCE_FORWARD)
#define FA__ONCE_FORWARD 0
#endif
#if !defined(FA__KEEPS_FORWARD)
#define FA__KEEPS_FORWARD 0
#endif
#if !defined(FA__PACKS)
#define FA__PACKS 0
#endif
#if !defined(FA__CUT_FORWARD)
#define FA__CUT_FORWARD 0
#endif
#if !defined(FA__CUT_BACKWARD)
#define FA__CUT_BACKWARD 0
#endif
#if FA__ARCH == FA_CPU
#include <fa/kernel/rows_cpu.h>
#elif FA__SUMS
#include <fa/kernel/rows_gpu_sweep.h>
#else
#include <fa/kernel/rows_gpu.h>
#endif
#if FA__CUT_FORWARD || FA__CUT_BACKWARD
enum { /* bytes of a segment, for fa__cut() */
#if FA__ARCH == FA_CPU
    FA__ROWS(__cut_forward) = FA__ROWS(FA__CAT(FA__CPU_LEAST, _row_LENGTH)) * (int)sizeof(FA__ELEMENT),
    FA__ROWS(__cut_backward) = FA__ROWS(__cut_forward)
#else
    FA__ROWS(__cut_forward) = FA__CUT_THREADS * FA__TEAM_BYTES(FA__HELD_FORWARD),
#if !FA__ONE_DIRECTION
    FA__ROWS(__cut_backward) = FA__CUT_THREADS * FA__TEAM_BYTES(FA__HELD_BACKWARD)
#endif
#endif
};
#endif
#undef FA__BODY
#undef FA__ONE_DIRECTION
#undef FA__HELD_FORWARD
#undef FA__HELD_BACKWARD
#undef FA__ONCE_FORWARD
#undef FA__KEEPS_FORWARD
#undef FA__CUT_FORWARD
#undef FA__CUT_BACKWARD
#undef FA__CUT_RESIDENT
#undef FA__CUT_WHOLE_RESIDENT
#undef FA__CUT_PARTIAL
#undef FA__SUMS
#undef FA__PACKS
#undef FA__UNROLL_PIECES
/* of rows_gpu_variant.h */
#undef FA__RESIDENT_THREADS
#undef FA__CLUSTER_OF
#undef FA__TEAM_OF
#undef FA__BLOCKS_THAT_FIT
#undef FA__KERNEL
#undef FA__KERNEL_BODY
#undef FA__ROWS_KERNEL
#undef FA__TEAM_KERNEL
#undef FA__SLOT_OPEN
