/* 30 row softmax: as fast as memory.
 *
 *     y = exp(x - max) / sum over the row of exp(x - max)
 *
 * Nothing here is worth computing faster: a row is read once and written once, and the time that takes is the goal. The
 * teaching version below gives a row to a block and walks along it three times, an element at a time: for the largest, for
 * the sum, and to write. The second and the third walk find the row in a cache, if they are lucky.
 *
 * What fa/row_softmax.h does differently:
 *
 *   - It reads the row once. Neighbouring threads read neighbouring 16 bytes, eight elements, and keep them in registers. A
 *     thread has four such reads under way before it uses the first: waiting for memory is what takes time, and
 *     this waits for four at once.
 *   - As many threads as a row needs, and no more: a few lanes of a warp for a short one, of which a block has
 *     several, a block for a longer one. Longer rows are in shared memory, of the blocks of a cluster if need be.
 *   - The largest and the sum come from one reduction. Each thread has its own largest so far and a sum relative to that
 *     (step 02's online softmax), and the states are merged: lanes by exchanges, warps through shared memory with one
 *     barrier. The tree in rows.h, by which sums are made below, has nine, twice.
 *   - Elements go from registers, already exponentials, to memory: no second look at x.
 */
#include "rows.h"

KERNEL plain_softmax_kernel(rows p) {
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
static void plain_softmax(const rows *p) { rows_launch(plain_softmax_kernel, p->rows, THREADS, p); }

#define FA_NAME soft
#define FA_DTYPE FA_BF16
#include <fa/row_softmax.h> /* defines soft_forward(), soft_backward() */

static void fast_softmax(const rows *p) {
    fa_row_softmax_args a;
    memset(&a, 0, sizeof a);
    a.x = fa_matrix_of(p->x, p->cols), a.y = fa_matrix_of(p->y, p->cols);
    a.rows = p->rows, a.cols = p->cols;
    FA(soft_forward(&a, 0));
}

static void *result(const rows *p) { return p->y; }
static void exact_softmax(const rows *p, int64_t row, double *exact) {
    const float *x = p->host_x + row * p->cols;
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < p->cols; j++) largest = fmax(largest, x[j]);
    for (int64_t j = 0; j < p->cols; j++) sum += exact[j] = exp(x[j] - largest);
    for (int64_t j = 0; j < p->cols; j++) exact[j] /= sum;
}

int main(void) {
    rows p = rows_new(4096);
    rows_example e = {"30_row_softmax", 2,      plain_softmax, fast_softmax, "30 teaching", result, BF16,
                      p.rows,           p.cols, exact_softmax, 2e-5};
    int status = rows_report(&p, e);
    rows_free(&p);
    return status;
}
