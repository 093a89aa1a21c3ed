/* attention_parts.h: what every schedule of the forward is made of, for the variant FA__VARIANT of an instance: tiles, products
 * and the online softmax from the public templates, and the tensors of a head as block pointers. */

#define FA__PART FA__CAT(FA__VARIANT, _qtile)
#define FA_ROWS FA_BLOCK_M
#define FA_COLS FA_HEAD_DIM
#define FA_OPERAND FA_OPERAND_A
#include <fa/tile.h>

#define FA__PART FA__CAT(FA__VARIANT, _ktile)
#define FA_ROWS FA_BLOCK_N
#define FA_COLS FA_HEAD_DIM
#define FA_OPERAND FA_OPERAND_B
#include <fa/tile.h>

#define FA__PART FA__CAT(FA__VARIANT, _vtile)
#define FA_ROWS FA_BLOCK_N
#define FA_COLS FA_HEAD_DIM_V
#define FA_OPERAND FA_OPERAND_BT
#include <fa/tile.h>

#define FA__PART FA__CAT(FA__VARIANT, _otile)
#define FA_ROWS FA_BLOCK_M
#define FA_COLS FA_HEAD_DIM_V
#define FA_OPERAND FA_OPERAND_A
#include <fa/tile.h>

#define FA__PART FA__CAT(FA__VARIANT, _qk)
#define FA_M FA_BLOCK_M
#define FA_N FA_BLOCK_N
#define FA_K FA_HEAD_DIM
#if FA__KEEP_Q /* in registers */
#define FA_A FA_FRAGMENT
#endif
#include <fa/mma.h>

#define FA__PART FA__CAT(FA__VARIANT, _pv)
#define FA_M FA_BLOCK_M
#define FA_N FA_HEAD_DIM_V
#define FA_K FA_BLOCK_N
#define FA_A FA_FRAGMENT
#define FA_B FA_OPERAND_BT
#include <fa/mma.h>

#define FA__PART FA__CAT(FA__VARIANT, _softmax)
#define FA_M FA_BLOCK_M
#define FA_N FA_BLOCK_N
#define FA_WIDE FA__WIDE
#include <fa/softmax.h>

#include <fa/arch/dtype.h>
#define FA__LOOP(x) FA__CAT4(FA_NAME, FA_SUB, FA__VARIANT, x)

/* The tensors of the head of `box`, q and o at its first query, and what hooks are told of it. */
typedef struct FA__LOOP(_view) {
    fa_block q, k, v, o;
    fa_index at;
} FA__LOOP(_view);

FA__FN void FA__LOOP(_open)(FA__LOOP(_view) * view, const FA__PARAMS *p, fa_box box) {
    const fa_attention_args *a = &p->args;
    int64_t batch = box.batch, head = box.head, head_kv = box.head_kv;
    view->q = fa_block_at((const FA__ELEMENT *)a->q.data + batch * a->q.stride_batch + head * a->q.stride_head, a->seqlen_q,
                          FA_HEAD_DIM, a->q.stride_seq);
    view->k = fa_block_at((const FA__ELEMENT *)a->k.data + batch * a->k.stride_batch + head_kv * a->k.stride_head, a->seqlen_k,
                          FA_HEAD_DIM, a->k.stride_seq);
    view->v = fa_block_at((const FA__ELEMENT *)a->v.data + batch * a->v.stride_batch + head_kv * a->v.stride_head, a->seqlen_k,
                          FA_HEAD_DIM_V, a->v.stride_seq);
    view->o = fa_block_at((const FA__ELEMENT *)a->o.data + batch * a->o.stride_batch + head * a->o.stride_head, a->seqlen_q,
                          FA_HEAD_DIM_V, a->o.stride_seq);
    view->q.row = view->o.row = box.queries.begin;
    memset(&view->at, 0, sizeof view->at);
    view->at.args = a;
    view->at.batch = box.batch;
    view->at.head = box.head;
    view->at.head_kv = box.head_kv;
    view->at.dtype = FA_DTYPE;
}

/* Q, and O, which takes its place in the end. */
typedef union FA__LOOP(_qo) {
    FA__LOOP(_qtile_tile) q;
    FA__LOOP(_otile_tile) o;
} FA__LOOP(_qo);

#undef FA__WIDE
