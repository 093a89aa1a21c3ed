/* attention_parts.h: what every schedule of the forward is made of, for the variant FA__VARIANT of an instance: tiles,
 * products and the online softmax from the public templates, and the tensors of a head as block pointers. */

#if !defined(FA__LOADER)
#define FA__LOADER FA_BLOCK
#endif
#if !defined(FA__WORKER_M) /* queries of a worker: a thread block, on sm_90a a warpgroup, on the CPU a core */
#define FA__WORKER_M FA_BLOCK_M
#endif
#if !defined(FA__PART_N) /* keys whose scores are computed at once */
#define FA__PART_N FA_BLOCK_N
#endif
#if !defined(FA__BY_EIGHT) /* 1: in an order in which a thread has eight neighbouring keys */
#define FA__BY_EIGHT 0
#endif
#if !defined(FA__LEAVING_M) /* queries whose O is written together */
#define FA__LEAVING_M FA__WORKER_M
#endif

#define FA__SUFFIX FA__CAT(FA__VARIANT, _otile)
#define FA_ROWS FA__LEAVING_M
#define FA_COLS FA_HEAD_DIM_V
#define FA_OPERAND FA_OPERAND_A
#define FA_LOADER FA__LOADER
#include <fa/tile.h>

/* To all other tiles and the products: elements are kept as the matrix unit takes them, floats as pairs of halves
 * (arch/sm80/tile_pairs.h), FA_BF16 on a CPU as pairs of neighbours (arch/cpu/tile_amx.h). */
#if FA__PAIRS || defined(FA__AMX)
#define FA__PAIRED
#endif
#define FA__SUFFIX FA__CAT(FA__VARIANT, _qtile)
#define FA_ROWS FA__WORKER_M
#define FA_COLS FA_HEAD_DIM
#define FA_OPERAND FA_OPERAND_A
#define FA_LOADER FA__LOADER
#include <fa/tile.h>

/* To the tile of K and its product, and to the tile of V, whose rows meet the same keys: rows of B in another order
 * (arch/sm80/layout.h, FA__SM80_PERMUTED). */
#if FA__BY_EIGHT
#define FA__PERMUTED_KEYS
#endif
#define FA__SUFFIX FA__CAT(FA__VARIANT, _ktile)
#define FA_ROWS FA_BLOCK_N
#define FA_COLS FA_HEAD_DIM
#define FA_OPERAND FA_OPERAND_B
#define FA_LOADER FA__LOADER
#include <fa/tile.h>

#define FA__SUFFIX FA__CAT(FA__VARIANT, _vtile)
#define FA_ROWS FA_BLOCK_N
#define FA_COLS FA_HEAD_DIM_V
#define FA_OPERAND FA_OPERAND_BT
#define FA_LOADER FA__LOADER
#include <fa/tile.h>

#define FA__SUFFIX FA__CAT(FA__VARIANT, _qk)
#define FA_M FA__WORKER_M
#define FA_N FA__PART_N
#define FA_K FA_HEAD_DIM
#if FA__KEEP_Q /* in registers */
#define FA_A FA_FRAGMENT
#endif
#include <fa/mma.h>
#undef FA__PERMUTED_KEYS

#define FA__SUFFIX FA__CAT(FA__VARIANT, _pv)
#define FA_M FA__WORKER_M
#define FA_N FA_HEAD_DIM_V
#define FA_K FA__PART_N
#define FA_A FA_FRAGMENT
#define FA_B FA_OPERAND_BT
#include <fa/mma.h>
#undef FA__PAIRED

#if !defined(FA__AMX) /* which has that of AVX-512 */
#define FA__SUFFIX FA__CAT(FA__VARIANT, _softmax)
#define FA_M FA__WORKER_M
#define FA_N FA__PART_N
#define FA_WIDE FA__WIDE
#include <fa/softmax.h>
#endif

#include <fa/arch/dtype.h>
/* Names of a variant of an instance: FA_NAME, FA_SUB, FA__VARIANT and x pasted together (those of the instance
 * itself are FA__ATTN(x)). So FA__LOOP(_ktile_load) is the NAME_load() of fa/tile.h for the tile of K,
 * FA__LOOP(_qk_mma) that of fa/mma.h for Q K^T, and FA__LOOP(_softmax_update) that of fa/softmax.h; FA__OP(x) is an
 * operation of the instruction layer (arch/bind.h). */
#define FA__LOOP(x) FA__CAT4(FA_NAME, FA_SUB, FA__VARIANT, x)

/* What hooks are told of a head. */
FA__FN fa_index FA__LOOP(_index)(const FA__PARAMS *p, fa_box box) {
    fa_index at;
    memset(&at, 0, sizeof at);
    at.args = &p->args;
    at.batch = box.batch;
    at.head = box.head;
    at.head_kv = box.head_kv;
    at.dtype = FA_DTYPE;
    return at;
}

/* The tiles of keys in which some of these lie. */
FA__FN fa_range FA__LOOP(_tiles_of)(fa_range keys) {
    fa_range tiles;
    tiles.begin = keys.begin / FA_BLOCK_N;
    tiles.end = keys.begin < keys.end ? (keys.end - 1) / FA_BLOCK_N + 1 : tiles.begin;
    return tiles;
}
/* Those in which the block may see something, at most. */
FA__FN fa_range FA__LOOP(_tiles)(const FA__PARAMS *p, fa_box box) { return FA__LOOP(_tiles_of)(FA__ATTN(__keys)(p, box)); }

/* The tensors of the head of `box`, q and o at its first query, and what hooks are told of it. */
typedef struct FA__LOOP(_view) {
    fa_block q, k, v, o;
    fa_index at;
} FA__LOOP(_view);

FA__FN fa_block FA__LOOP(_of_head)(const fa_tensor *t, int64_t batch, int64_t head, int rows, int cols) {
    const FA__ELEMENT *data = (const FA__ELEMENT *)t->data;
    if (FA__ARCH != FA_CPU || rows > 0) data += batch * t->stride_batch + head * t->stride_head; /* no keys: any address and strides */
    fa_block b = fa_block_at(data, 0, cols, t->stride_seq);
    b.rows = rows; /* which the host has checked */
    return b;
}
/* The bias of a head, whose rows are bias_stride_query apart. */
FA__FN const FA__ELEMENT *FA__LOOP(_bias_of_head)(const FA__PARAMS *p, fa_box box) {
    return (const FA__ELEMENT *)p->args.bias + box.batch * p->args.bias_stride_batch + box.head * p->args.bias_stride_head;
}
/* The block's rows of o. */
FA__FN fa_block FA__LOOP(_out)(const FA__PARAMS *p, fa_box box) {
    fa_block to = FA__LOOP(_of_head)(&p->args.o, box.batch, box.head, p->args.seqlen_q, FA_HEAD_DIM_V);
    to.row = box.queries.begin;
    return to;
}
FA__FN void FA__LOOP(_open)(FA__LOOP(_view) * view, const FA__PARAMS *p, fa_box box) {
    const fa_attention_args *a = &p->args;
    view->q = FA__LOOP(_of_head)(&a->q, box.batch, box.head, a->seqlen_q, FA_HEAD_DIM);
    view->k = FA__LOOP(_of_head)(&a->k, box.batch, box.head_kv, a->seqlen_k, FA_HEAD_DIM);
    view->v = FA__LOOP(_of_head)(&a->v, box.batch, box.head_kv, a->seqlen_k, FA_HEAD_DIM_V);
    view->o = FA__LOOP(_out)(p, box);
    view->q.row = box.queries.begin;
    view->at = FA__LOOP(_index)(p, box);
}

/* Q, and O, which takes its place in the end. */
typedef union FA__LOOP(_qo) {
    FA__LOOP(_qtile_tile) q;
    FA__LOOP(_otile_tile) o;
} FA__LOOP(_qo);

enum { FA__LOOP(_worker_rows) = FA__WORKER_M };
#undef FA__WIDE
#undef FA__LOADER
#undef FA__WORKER_M
#undef FA__LEAVING_M
