/* 32 the gradient of a root-mean-square norm: a sum along rows, and sums down columns.
 *
 *     n = x rstd,  w = d_y gamma
 *     d_x     = rstd (w - n mean of (w n))       for each row: example 30 again, with another sum
 *     d_gamma = sum over all rows of d_y n       for each column
 *
 * The second is what makes norms slow to train: a column crosses all rows. The teaching version gives each column to a
 * thread, which walks down all rows: everything is read a second time, by few threads. (Neighbouring threads have
 * neighbouring columns, so that their reads are one. With the loops the other way round it would be hopeless.)
 *
 * What fa/rmsnorm.h does differently:
 *
 *   - A team of threads takes row after row, and each thread always the same columns. So it adds up d_y n for its columns
 *     in registers, while it has both at hand for d_x: they are read once.
 *   - When a block is out of rows it writes its sums, one row of floats, to the workspace, and a second small kernel adds
 *     these rows. There are as many as the device has room for blocks, a few hundred, whatever the number of rows.
 *   - No atomics: the order of the additions is the same every time, and so is the result, bit by bit.
 */
#include "rows.h"

#define EPS 1e-5f

/* x is the input, x2 the gradient d_y; d_x goes to y, and rstd to value[], for the other kernel. */
KERNEL plain_rows_kernel(rows p) {
    SHARED float part[THREADS];
    const uint16_t *x = p.x + BLOCK * p.cols, *d_y = p.x2 + BLOCK * p.cols;
    uint16_t *d_x = p.y + BLOCK * p.cols;
    FOR_THREADS(t, THREADS) {
        part[t] = 0;
        for (int64_t j = t; j < p.cols; j += THREADS) part[t] += fa_bf16_to_float(x[j]) * fa_bf16_to_float(x[j]);
    }
    float rstd = 1 / sqrtf(block_reduce(part, 0) / (float)p.cols + EPS);
    FOR_THREADS(t, THREADS) {
        part[t] = 0;
        for (int64_t j = t; j < p.cols; j += THREADS)
            part[t] += fa_bf16_to_float(d_y[j]) * p.gamma[j] * fa_bf16_to_float(x[j]) * rstd;
        if (t == 0) p.value[BLOCK] = rstd;
    }
    float mean = block_reduce(part, 0) / (float)p.cols;
    FOR_THREADS(t, THREADS) {
        for (int64_t j = t; j < p.cols; j += THREADS)
            d_x[j] = fa_bf16_from_float(rstd *
                                        (fa_bf16_to_float(d_y[j]) * p.gamma[j] - fa_bf16_to_float(x[j]) * rstd * mean));
    }
}
/* One thread a column. */
KERNEL plain_columns_kernel(rows p) {
    FOR_THREADS(t, THREADS) {
        int64_t j = (int64_t)BLOCK * THREADS + t;
        float sum = 0;
        for (int64_t row = 0; row < p.rows; row++)
            sum += fa_bf16_to_float(p.x2[row * p.cols + j]) * fa_bf16_to_float(p.x[row * p.cols + j]) * p.value[row];
        p.weights[j] = sum;
    }
}
static void plain_backward(const rows *p) {
    rows_launch(plain_rows_kernel, p->rows, THREADS, p);
    rows_launch(plain_columns_kernel, p->cols / THREADS, THREADS, p);
}

#define FA_NAME rms
#define FA_DTYPE FA_BF16
#include <fa/rmsnorm.h> /* defines rms_forward(), rms_backward(), rms_workspace() */

static void *workspace; /* of the size that rms_workspace() tells */
static fa_rmsnorm_args arguments(const rows *p) {
    fa_rmsnorm_args a;
    memset(&a, 0, sizeof a);
    a.x = fa_matrix_of(p->x, p->cols), a.d_y = fa_matrix_of(p->x2, p->cols), a.d_x = fa_matrix_of(p->y, p->cols);
    a.gamma = p->gamma, a.d_gamma = p->weights, a.eps = EPS;
    a.rows = p->rows, a.cols = p->cols;
    return a;
}
static void fast_backward(const rows *p) {
    fa_rmsnorm_args a = arguments(p);
    a.workspace = workspace, a.workspace_bytes = rms_workspace(&a);
    FA(rms_backward(&a, 0));
}

static double exact_root(const rows *p, int64_t row) {
    double squares = 0;
    for (int64_t j = 0; j < p->cols; j++)
        squares += (double)p->host_x[row * p->cols + j] * p->host_x[row * p->cols + j];
    return 1 / sqrt(squares / (double)p->cols + (double)EPS);
}
static void *d_x(const rows *p) { return p->y; }
static void exact_d_x(const rows *p, int64_t row, double *exact) {
    const float *x = p->host_x + row * p->cols, *d_y = p->host_x2 + row * p->cols;
    double rstd = exact_root(p, row), mean = 0;
    for (int64_t j = 0; j < p->cols; j++) mean += (double)d_y[j] * p->host_gamma[j] * x[j] * rstd / (double)p->cols;
    for (int64_t j = 0; j < p->cols; j++) exact[j] = rstd * ((double)d_y[j] * p->host_gamma[j] - x[j] * rstd * mean);
}
static double *roots;
static void *d_gamma(const rows *p) { return p->weights; }
static void exact_d_gamma(const rows *p, int64_t j, double *exact) {
    *exact = 0;
    for (int64_t row = 0; row < p->rows; row++)
        *exact += (double)p->host_x2[row * p->cols + j] * p->host_x[row * p->cols + j] * roots[row];
}

int main(void) {
    rows p = rows_new(4096);
    fa_rmsnorm_args a = arguments(&p);
    workspace = device_alloc(rms_workspace(&a));
    roots = (double *)host_alloc(sizeof(double) * (size_t)p.rows);
    for (int64_t row = 0; row < p.rows; row++) roots[row] = exact_root(&p, row);
    rows_example e = {"32_rmsnorm_backward",
                      3,
                      plain_backward,
                      fast_backward,
                      "32 teaching",
                      d_x,
                      BF16,
                      p.rows,
                      p.cols,
                      exact_d_x,
                      2e-5};
    rows_example sums = e; /* the same run's other result: thousands of floats, added in any order */
    sums.of = d_gamma, sums.dtype = FP32, sums.count = p.cols, sums.length = 1, sums.exact = exact_d_gamma,
    sums.slack = 1e-3;
    int status = rows_report(&p, e);
    double error = fmax(rows_error(&p, plain_backward, &sums), rows_error(&p, fast_backward, &sums));
    if (!(error <= 1)) status = 1, printf("%-20s d_gamma: error %.2f of what is allowed  WRONG\n", e.name, error);
    free(roots), device_free(workspace);
    rows_free(&p);
    return status;
}
