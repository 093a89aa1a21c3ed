#!/bin/sh
# undefined_test.sh: large results of odd rows, which go past the caches, and strides of tensors without elements, without undefined
# behaviour. Prints TAP.
. "$(dirname "$0")/harness/tap.sh"
flags="-std=c11 -O1 -fsanitize=undefined -fno-sanitize-recover=all"
echo 'int main(void) { return 0; }' >"$work/none.c"
if ! { $CC $flags "$work/none.c" -o "$work/none" && "$work/none"; } >/dev/null 2>&1; then
    skip "undefined behaviour of large results: $CC has no -fsanitize=undefined"
    tap_end
fi
cat >"$work/rows.c" <<'E2'
#include <fa/fa.h>
#include <stdlib.h>
#define FA_NAME  softmax
#define FA_DTYPE FA_BF16
#include <fa/row_softmax.h>
#define FA_NAME  norm
#define FA_DTYPE FA_F16
#include <fa/layernorm.h>
#define FA_NAME  loss
#define FA_DTYPE FA_BF16
#include <fa/cross_entropy.h>
#define FA_NAME  gate
#define FA_DTYPE FA_F16
#include <fa/swiglu.h>
#define FA_NAME  turn
#define FA_DTYPE FA_F32
#include <fa/rope.h>
#define FA_NAME     attend
#define FA_DTYPE    FA_F32
#define FA_HEAD_DIM 8
#include <fa/attention.h>

/* What has no elements may have any strides. */
static int nothing(void) {
    static float q[64], k[64], o[64], k_out[64];
    static int positions[4];
    int bad = 0;
    for (int i = 0; i < 2; i++) {
        const int64_t wild = i ? INT64_MIN + 1 : INT64_MAX / 2;
        fa_attention_args a = fa_attention_defaults();
        a.batch = 4, a.heads = a.heads_kv = 2, a.seqlen_q = 1, a.seqlen_k = 0;
        a.q = fa_tensor_bhsd(q, 2, 1, 8), a.o = fa_tensor_bhsd(o, 2, 1, 8);
        a.k.data = a.v.data = k;
        a.k.stride_batch = a.v.stride_head = a.k.stride_seq = wild;
        bad |= attend_forward(&a, 0) != FA_OK;
        fa_rope_args r;
        memset(&r, 0, sizeof r);
        r.batch = 2, r.heads_kv = 1, r.seqlen = 2, r.head_dim = 8;
        r.q = r.q_out = fa_tensor_bhsd(q, 0, 2, 8), r.q.stride_batch = wild, r.q_out.stride_batch = INT64_MIN;
        r.k = fa_tensor_bhsd(k, 1, 2, 8), r.k_out = fa_tensor_bhsd(k_out, 1, 2, 8);
        r.positions = positions;
        bad |= turn_forward(&r, 0) != FA_OK;
    }
    return bad;
}

int main(void) {
    int64_t rows = 4300, cols = 1001; /* 8 MB and more, at every phase of a line */
    uint16_t *x = (uint16_t *)calloc((size_t)(rows * cols), 2), *y = (uint16_t *)calloc((size_t)(rows * cols), 2);
    int *targets = (int *)calloc((size_t)rows, sizeof *targets);
    float *loss = (float *)calloc((size_t)rows, sizeof *loss), *lse = (float *)calloc((size_t)rows, sizeof *lse);
    fa_matrix in = fa_matrix_of(x, cols), out = fa_matrix_of(y, cols);
    fa_row_softmax_args s;
    memset(&s, 0, sizeof s);
    s.rows = rows, s.cols = cols, s.x = in, s.y = out;
    int bad = nothing() | (softmax_forward(&s, 0) != FA_OK);
    s.y = in, s.d_y = in, s.d_x = out;
    bad |= softmax_backward(&s, 0) != FA_OK;
    fa_layernorm_args n;
    memset(&n, 0, sizeof n);
    n.rows = rows, n.cols = cols, n.x = in, n.y = out, n.eps = 1;
    bad |= norm_forward(&n, 0) != FA_OK;
    fa_swiglu_args g;
    memset(&g, 0, sizeof g);
    g.rows = rows, g.cols = cols, g.gate = in, g.up = in, g.y = out;
    bad |= gate_forward(&g, 0) != FA_OK;
    fa_cross_entropy_args c;
    memset(&c, 0, sizeof c);
    c.rows = rows, c.cols = cols, c.logits = in, c.targets = targets, c.loss = loss, c.lse = lse;
    bad |= loss_forward(&c, 0) != FA_OK;
    c.d_loss = loss, c.d_logits = out;
    bad |= loss_backward(&c, 0) != FA_OK;
    c.cols = 0, c.logits.data = NULL, c.logits.stride_row = INT64_MAX; /* no column: nothing is asked of its place */
    for (int64_t i = 0; i < rows; i++) targets[i] = c.ignore_index = -100;
    bad |= loss_forward(&c, 0) != FA_OK;
    return bad;
}
E2
$CC $flags -I"$FA_INCLUDE" "$work/rows.c" -o "$work/rows" -lm -pthread >"$work/log" 2>&1
ok $? "large rows compile with -fsanitize=undefined" "$work/log"
for isa in base avx2 avx512; do
    FA_CPU_ISA=$isa "$work/rows" >"$work/log" 2>&1
    ok $? "no undefined behaviour in large results of odd rows, and of nothing ($isa, or what there is)" "$work/log"
done
tap_end
