/* 36 a fused kernel of your own: softmax of a masked, biased row.
 *
 *     y = softmax(x + bias) over the columns up to the last one that the row sees
 *
 * Whatever a row goes through between being read and being written costs nothing: the reading and the writing take the time.
 * So what would otherwise be a pass over memory of its own, such as adding a bias or hiding what a token must not see,
 * belongs in the kernel before or after it. With the primitives that fa's own kernels are made of it takes fifteen lines:
 *
 *     fa/row.h      rows in registers: who holds which columns; 16 bytes a read, also of odd rows
 *     fa/reduce.h   sums, maxima and softmax states over the threads that share a row
 *
 * The teaching version has a pass that adds and hides, and then calls fa/row_softmax.h. (On the CPU the primitives use
 * only the instructions that the compiler was told of, fa's own kernels all that the processor has: -march=native makes it fair.)
 */
#include "rows.h"

#define COLS 4096
#define TEAM 128 /* threads that share a row: 32 columns each */

#define FA_NAME reduce
#include <fa/reduce.h>

#define FA_NAME row
#define FA_DTYPE FA_BF16
#define FA_COLS COLS
#define FA_THREADS TEAM
#include <fa/row.h>

/* The last column that a row sees. */
FA_HOOK int64_t last_seen(int64_t row) { return row % COLS; }

/* The fifteen lines. */
KERNEL own_kernel(rows p) {
    SHARED reduce_shared shared;
    fa_team team = reduce_team(TEAM);
    row_view x = row_at(p.x + BLOCK * p.cols, p.cols, &team), bias = row_like(p.x2 + BLOCK * p.cols, &x);
    row_view y = row_like(p.y + BLOCK * p.cols, &x);
    float s[row_LENGTH], b[row_LENGTH];
    const int count = row_count(&x, 0);
    row_load(s, &x, 0, -INFINITY);
    row_load(b, &bias, 0, 0.0f);
    for (int i = 0; i < count; i++) s[i] = row_col(&x, 0, i) <= last_seen(BLOCK) ? s[i] + b[i] : -INFINITY;
    float own = fmaxf(reduce_max_of(s, count, -INFINITY), -1e30f), largest = own; /* a thread may see nothing at all */
    float sum = reduce_exp_of(s, count, own, 1.4426950408889634f); /* s becomes exp(s - own); 2^x is one instruction */
    reduce_softmax(&largest, &sum, 1.4426950408889634f, &team, &shared);
    const float weight = expf(own - largest) / sum;
    for (int i = 0; i < count; i++) s[i] *= weight;
    row_store(&y, 0, s);
}
static void own(const rows *p) { rows_launch(own_kernel, p->rows, TEAM, p); }

KERNEL bias_kernel(rows p) {
    FOR_THREADS(t, THREADS) {
        for (int64_t j = t; j < p.cols; j += THREADS) {
            float s = fa_bf16_to_float(p.x[BLOCK * p.cols + j]) + fa_bf16_to_float(p.x2[BLOCK * p.cols + j]);
            p.y2[BLOCK * p.cols + j] = fa_bf16_from_float(j <= last_seen(BLOCK) ? s : -INFINITY);
        }
    }
}

#define FA_NAME soft
#define FA_DTYPE FA_BF16
#include <fa/row_softmax.h>

static void two_passes(const rows *p) {
    fa_row_softmax_args a;
    memset(&a, 0, sizeof a);
    a.x = fa_matrix_of(p->y2, p->cols), a.y = fa_matrix_of(p->y, p->cols);
    a.rows = p->rows, a.cols = p->cols;
    rows_launch(bias_kernel, p->rows, THREADS, p);
    FA(soft_forward(&a, 0));
}

static void *result(const rows *p) { return p->y; }
static void exact_own(const rows *p, int64_t row, double *exact) {
    const float *x = p->host_x + row * p->cols, *bias = p->host_x2 + row * p->cols;
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < p->cols; j++) {
        exact[j] = j <= last_seen(row) ? (double)x[j] + bias[j] : -INFINITY;
        largest = fmax(largest, exact[j]);
    }
    for (int64_t j = 0; j < p->cols; j++) sum += exact[j] = exp(exact[j] - largest);
    for (int64_t j = 0; j < p->cols; j++) exact[j] /= sum;
}

int main(void) {
    rows p = rows_new(COLS);
    /* 2^-5: two passes round x + bias to bf16, an error in the exponent. */
    rows_example e = {"36_own_rows", 3,      two_passes, own,       "36 two passes", result,
                      BF16,          p.rows, p.cols,     exact_own, 0x1p-5};
    int status = rows_report(&p, e);
    e.slack = 2e-5;
    double error = rows_error(&p, own, &e);
    if (!(error <= 1)) status = 1, printf("%-20s error %.2f of what fp32 may make  WRONG\n", e.name, error);
    rows_free(&p);
    return status;
}
