/* rows_primitives.h: the primitives that row functions are made of, for the variant FA__VARIANT of an instance.
 * Takes parameters of fa/row.h and fa/reduce.h, and four of its own. FA__DIRECTIONS: which row functions are needed
 * (default: both). FA__EVEN: whether rows are of whole vectors (FA_WHOLE 2), and a piece is one for each thread
 * (default: 0; GPU). FA__ABREAST: how many of such rows a team has at a time (default: 1). FA__ENDS: whether rows
 * may begin and end anywhere although FA_WHOLE is 2, since row functions look after their ends themselves (default:
 * 0). FA__PACKED: defined if rows are short ones in shared memory (kernel/rows_gpu_packed.h). */
#if !defined(FA__EVEN)
#define FA__EVEN 0
#endif
#if !defined(FA__ABREAST)
#define FA__ABREAST 1
#endif
#if !defined(FA__ENDS)
#define FA__ENDS 0
#endif
/* A name of this variant. */
#define FA__LOOP(x) FA__CAT4(FA_NAME, FA_SUB, FA__VARIANT, x)
#if !FA__HOST_PASS || FA__ARCH == FA_CPU
#define FA__SUFFIX FA__CAT(FA__VARIANT, _reduce)
#include <fa/reduce.h>
#define FA__SUFFIX FA__CAT(FA__VARIANT, _row)
#include <fa/row.h>

typedef struct FA__LOOP(_place) {
    FA__LOOP(_reduce_shared) * shared;
    unsigned char *slot0;
#if defined(FA__PACKED)
    int phase[2]; /* of each tensor: bytes from a boundary of 16 to the block's first row */
#endif
#if FA__LANES == 1
    float *sums; /* of columns: a worker's */
    int64_t pitch;
    float *kept; /* of kernels with FA__KEEPS_FORWARD: pieces of a row that there is room for, and one more */
    int64_t keeps;
    float far; /* of kernels with rows_near.h: its *far */
    int64_t end; /* row after the last one of this work item */
    int64_t known; /* the row of which `found` was found while the one before was finished; -1: of none */
    float found;
#endif
} FA__LOOP(_place);
FA__FN void *FA__LOOP(_slots)(const FA__LOOP(_place) * place, const FA__PARAMS *p, int tensor) {
#if defined(FA__PACKED)
    return place->slot0 + tensor * p->rows.slot_bytes + place->phase[tensor];
#else
    return place->slot0 ? place->slot0 + tensor * p->rows.slot_bytes : NULL;
#endif
}
#if FA__LANES == 1
/* Sums number `which` for what the caller holds of a piece; NULL if nobody wants them. */
FA__FN float *FA__LOOP(_sums)(const FA__LOOP(_place) * place, int which, int64_t piece) {
    return place->sums ? place->sums + which * place->pitch + piece * FA__LOOP(_row_LENGTH) : NULL;
}
#endif
#include <fa/arch/dtype.h>
#if !defined(FA__DIRECTIONS)
#define FA__DIRECTIONS (FA__ROWS_FORWARD | FA__ROWS_BACKWARD)
#endif
#include FA__BODY
#else
#if !defined(FA_BLOCKS)
#define FA_BLOCKS 1
#endif
#define FA__RED(x) FA__LOOP(_reduce##x)
#include <fa/arch/sm80/reduce_shared.h>
#undef FA__RED
#undef FA_BLOCKS
#undef FA_COLS
#undef FA_THREADS
#undef FA_HOLD
#undef FA_PIECES
#undef FA_WHOLE
#undef FA_VECTOR
#endif
#undef FA__DIRECTIONS
#undef FA__EVEN
#undef FA__ABREAST
#undef FA__ENDS
