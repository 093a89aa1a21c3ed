/* rows_gpu.h: rows on GPUs. A row is read from memory only once, as long as there is room for it:
 *
 *   in registers       a few lanes, a warp or a block hold a row; the other teams of the multiprocessor hide its latency
 *   in shared memory   of a block, or of the blocks of a cluster (compute capability 9.0), where rows are longer
 *   nowhere            even longer rows, which are read again, and rows that are needed only once
 *
 * Of rows in registers that begin and end anywhere, whole vectors are held as in others, and what lies outside of them by elements.
 */
#include <fa/kernel/gpu.h>
#include <fa/kernel/rows_launch.h>

/* What a thread holds of a piece of a row in the forward. */
#if FA__ONCE_FORWARD
#define FA__FORWARD_BYTES FA__ONCE_BYTES
#else
#define FA__FORWARD_BYTES FA__TEAM_BYTES(FA__HELD_FORWARD)
#endif

#define FA__VARIANT _held
#define FA__BACKWARD 0
#include <fa/kernel/rows_gpu_team.h>
#if !FA__ONE_DIRECTION
#define FA__VARIANT _held_back
#define FA__BACKWARD 1
#include <fa/kernel/rows_gpu_team.h>
#endif
/* The same for rows of whole vectors, or segments that fill their teams, which have no ends to handle: half as many
 * instructions, which a kernel that runs for some microseconds has to fetch from memory first. */
#if !FA__ONCE_FORWARD
#define FA__VARIANT _whole
#define FA__BACKWARD 0
#define FA_WHOLE (2 - FA__CUT_FORWARD)
#include <fa/kernel/rows_gpu_team.h>
#endif
#if !FA__ONE_DIRECTION
#define FA__VARIANT _whole_back
#define FA__BACKWARD 1
#define FA_WHOLE (2 - FA__CUT_BACKWARD)
#include <fa/kernel/rows_gpu_team.h>
#endif

/* And for short ones. */
#if !FA__CUT_FORWARD && !FA__ONCE_FORWARD
#define FA__VARIANT _short
#define FA__BACKWARD 0
#define FA__SHORT
#include <fa/kernel/rows_gpu_team.h>
#endif
#if !FA__CUT_BACKWARD && !FA__ONE_DIRECTION
#define FA__VARIANT _short_back
#define FA__BACKWARD 1
#define FA__SHORT
#include <fa/kernel/rows_gpu_team.h>
#endif

/* And for short ones that are not of whole vectors. */
#if FA__PACKS
#define FA__VARIANT _packed
#define FA__BACKWARD 0
#include <fa/kernel/rows_gpu_packed.h>
#define FA__VARIANT _packed_back
#define FA__BACKWARD 1
#include <fa/kernel/rows_gpu_packed.h>
/* Whether these have been launched, or could not be. */
FA__CALLED int FA__ROWS(__run_packed)(FA__PARAMS *p, const char *name, int backward, fa_stream stream, fa_status *status) {
    fa_matrix all[3];
    const int reads = FA__ROWS(__reads)(all, p, backward);
    all[reads] = FA__ROWS(__written)(p, backward);
    if (!fa__rows_packed(&p->rows, all, reads + (all[reads].data != NULL), (int)sizeof(FA__ELEMENT))) return 0;
    fa__rows_policy(&p->rows, (int)sizeof(FA__ELEMENT), 0);
    *status = fa__launch_rows(name, backward ? (const void *)FA__ROWS(_packed_back_kernel_backward) : (const void *)FA__ROWS(_packed_kernel_forward), &p->rows,
                              (size_t)reads * (size_t)p->rows.slot_bytes, p, stream);
    return 1;
}
#endif

#if !FA__CUT_FORWARD
#define FA__VARIANT _slots
#define FA__DIRECTIONS FA__ROWS_FORWARD
#define FA_COLS FA__ROW_COLS(FA__FORWARD_BYTES)
#define FA_THREADS 1
#define FA_HOLD FA_SHARED
#define FA_BLOCKS FA__CLUSTER_BLOCKS
#define FA__MOST_WARPS (FA__SLOT_MOST / 32)
#include <fa/kernel/rows_gpu_variant.h>
#if FA__ONCE_FORWARD
FA__ROWS_KERNEL(_forward, FA__SLOT_THREADS, FA__ONCE_THREADS / FA__SLOT_THREADS, FA__SLOT_OPEN)
#else
FA__ROWS_KERNEL(_forward, FA__SLOT_MOST, 1, FA__SLOT_OPEN)
#endif
#undef FA__LOOP
#undef FA__VARIANT
#endif

#if !FA__CUT_BACKWARD && !FA__ONE_DIRECTION
#define FA__VARIANT _slots_back
#define FA__DIRECTIONS FA__ROWS_BACKWARD
#define FA_COLS FA__ROW_COLS(FA__TEAM_BYTES(FA__HELD_BACKWARD))
#define FA_THREADS 1
#define FA_HOLD FA_SHARED
#define FA_BLOCKS FA__CLUSTER_BLOCKS
#define FA__MOST_WARPS (FA__SLOT_MOST / 32)
#include <fa/kernel/rows_gpu_variant.h>
FA__ROWS_KERNEL(_backward, FA__SLOT_MOST, 1, FA__SLOT_OPEN)
#undef FA__LOOP
#undef FA__VARIANT
#endif

/* Segments, which fit in a block as they are cut. */
FA__CALLED fa_status FA__ROWS(__run_cut)(FA__PARAMS *p, const char *name, int bytes, int aligned, const void *held, const void *whole, fa_stream stream) {
    fa__rows_policy(&p->rows, (int)sizeof(FA__ELEMENT), 0);
    if (fa__rows_fit(&p->rows, (int)sizeof(FA__ELEMENT), aligned, bytes, FA__CUT_THREADS, !FA__CUT_PARTIAL))
        return fa__launch_rows(name, p->rows.whole ? whole : held, &p->rows, 0, p, stream);
    return FA__FAIL(FA_ERROR_RESOURCE, "%s: a segment of %lld elements does not fit in a block of %d threads", name, (long long)p->rows.cols,
                    FA__CUT_THREADS);
}
/* Rows: `brief`, if there is one, for short ones; `held` or `whole` if they fit in a block, else `split`. */
FA__CALLED fa_status FA__ROWS(__run_rows)(FA__PARAMS *p, const char *name, int backward, int tensors, int once, int aligned, const void *brief,
                                          const void *held, const void *whole, const void *split, size_t scratch, fa_stream stream) {
    const int element = (int)sizeof(FA__ELEMENT);
    fa__rows_policy(&p->rows, element, 0);
    if (brief && fa__rows_short(&p->rows, element, aligned, backward ? FA__SHORT_BACK_BYTES : FA__SHORT_BYTES, !backward))
        return fa__launch_rows(name, brief, &p->rows, 0, p, stream);
    if (once ? fa__rows_once(&p->rows, element, aligned)
             : (fa__rows_fit(&p->rows, element, aligned, FA__TEAM_BYTES(tensors), FA__TEAM_THREADS, 0) && p->rows.whole) ||
                   fa__rows_ends(&p->rows, element, FA__TEAM_BYTES(tensors), FA__TEAM_THREADS))
        return fa__launch_rows(name, p->rows.whole ? whole : held, &p->rows, 0, p, stream);
    size_t shared_bytes = scratch;
    for (int room = 0, most = FA__CLUSTER_BLOCKS; !room; most = p->rows.blocks / 2) {
        fa_status status = fa__rows_split(&p->rows, name, split, element, aligned, tensors, scratch, once ? FA__SLOT_THREADS : FA__SLOT_MOST, most);
        if (once) p->rows.slot_bytes = 0;
        shared_bytes = scratch + (size_t)tensors * (size_t)p->rows.slot_bytes;
        if (status == FA_OK) status = fa__rows_room(&p->rows, name, split, shared_bytes, &room);
        if (status != FA_OK) return status;
    }
    return fa__launch_rows(name, split, &p->rows, shared_bytes, p, stream);
}
FA__CALLED fa_status FA__ROWS(__run)(FA__PARAMS *p, int backward, int aligned, int threads, fa_stream stream) {
    const char *name = FA__ROWS_CALL(backward);
    (void)threads;
#if FA__PACKS
    fa_status status;
    if (FA__ROWS(__run_packed)(p, name, backward, stream, &status)) return status;
#endif
#if !FA__ONE_DIRECTION
    if (backward) {
        const void *held = (const void *)FA__ROWS(_held_back_kernel_backward), *whole = (const void *)FA__ROWS(_whole_back_kernel_backward);
#if FA__CUT_BACKWARD
        return FA__ROWS(__run_cut)(p, name, FA__TEAM_BYTES(FA__HELD_BACKWARD), aligned, held, whole, stream);
#else
        return FA__ROWS(__run_rows)(p, name, 1, FA__HELD_BACKWARD, 0, aligned, (const void *)FA__ROWS(_short_back_kernel_backward), held, whole,
                                    (const void *)FA__ROWS(_slots_back_kernel_backward), sizeof(FA__ROWS(_slots_back_reduce_shared)), stream);
#endif
    }
#endif
    const void *held = (const void *)FA__ROWS(_held_kernel_forward);
#if FA__ONCE_FORWARD
    const void *whole = held;
#else
    const void *whole = (const void *)FA__ROWS(_whole_kernel_forward);
#endif
#if FA__CUT_FORWARD
    return FA__ROWS(__run_cut)(p, name, FA__TEAM_BYTES(FA__HELD_FORWARD), aligned, held, whole, stream);
#else
#if FA__ONCE_FORWARD
    const void *brief = NULL;
#else
    const void *brief = (const void *)FA__ROWS(_short_kernel_forward);
#endif
    return FA__ROWS(__run_rows)(p, name, 0, FA__HELD_FORWARD, FA__ONCE_FORWARD, aligned, brief, held, whole,
                                (const void *)FA__ROWS(_slots_kernel_forward), sizeof(FA__ROWS(_slots_reduce_shared)), stream);
#endif
}
#undef FA__FORWARD_BYTES
