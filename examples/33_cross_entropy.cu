/* 33 cross-entropy: a loss from logits without the probabilities.
 *
 *     loss = log(sum over the row of exp(logits)) - logits[target]
 *
 * A row is a token and has an element for every word that might follow, 32,000 here. The teaching version takes the
 * definition at its word: probabilities by example 30's softmax, a matrix as large as the logits, then the logarithm of one
 * of each row. It writes and reads what nobody wants.
 *
 * What fa/cross_entropy.h does differently:
 *
 *   - It reads the logits once and writes two floats a row. The largest and the sum come together, in one pass
 *     (step 02's online softmax), and the target's logit is one more read.
 *   - So a row need not be kept anywhere: its pieces are read, several at a time, and forgotten. Only reading limits it.
 *   - lse, the logarithm of the sum, is written too: with it the gradient, exp(logit - lse) - [target], needs the logits
 *     once more, and no reduction at all. It may take the logits' place.
 *   - The loss never overflows, and is never log(0): a probability of 1e-50 is 0 in fp32, but its logarithm, -115, is not
 *     special.
 */
#include "rows.h"

KERNEL plain_probabilities_kernel(rows p) {
    SHARED float part[THREADS];
    const uint16_t *x = p.x + BLOCK * p.cols;
    uint16_t *y = p.y + BLOCK * p.cols;
    FOR_THREADS(t, THREADS) {
        part[t] = -INFINITY;
        for (int64_t j = t; j < p.cols; j += THREADS) part[t] = fmaxf(part[t], fa_bf16_to_float(x[j]));
    }
    float largest = block_reduce(part, 1);
    FOR_THREADS(t, THREADS) {
        part[t] = 0;
        for (int64_t j = t; j < p.cols; j += THREADS) part[t] += expf(fa_bf16_to_float(x[j]) - largest);
    }
    float sum = block_reduce(part, 0);
    FOR_THREADS(t, THREADS) {
        for (int64_t j = t; j < p.cols; j += THREADS)
            y[j] = fa_bf16_from_float(expf(fa_bf16_to_float(x[j]) - largest) / sum);
    }
}
/* One thread a row. */
KERNEL plain_loss_kernel(rows p) {
    FOR_THREADS(t, THREADS) {
        int64_t row = (int64_t)BLOCK * THREADS + t;
        if (row < p.rows) p.value[row] = -logf(fa_bf16_to_float(p.y[row * p.cols + p.target[row]]));
    }
}
static void plain_loss(const rows *p) {
    rows_launch(plain_probabilities_kernel, p->rows, THREADS, p);
    rows_launch(plain_loss_kernel, (p->rows + THREADS - 1) / THREADS, THREADS, p);
}

#define FA_NAME ce
#define FA_DTYPE FA_BF16
#include <fa/cross_entropy.h> /* defines ce_forward(), ce_backward() */

static void fast_loss(const rows *p) {
    fa_cross_entropy_args a;
    memset(&a, 0, sizeof a);
    a.logits = fa_matrix_of(p->x, p->cols), a.targets = p->target;
    a.loss = p->value, a.lse = p->value2;
    a.rows = p->rows, a.cols = p->cols;
    FA(ce_forward(&a, 0));
}

static void *loss(const rows *p) { return p->value; }
static void exact_loss(const rows *p, int64_t row, double *exact) {
    const float *x = p->host_x + row * p->cols;
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < p->cols; j++) largest = fmax(largest, x[j]);
    for (int64_t j = 0; j < p->cols; j++) sum += exp(x[j] - largest);
    *exact = largest + log(sum) - x[p->host_target[row]];
}

int main(void) {
    rows p = rows_new(32000);
    /* 2^-8: the teaching version takes the logarithm of a rounded probability. */
    rows_example e = {"33_cross_entropy", 1,     plain_loss, fast_loss, "33 teaching", loss, FP32, p.rows, 1,
                      exact_loss,         0x1p-8};
    int status = rows_report(&p, e);
    rows_free(&p);
    return status;
}
