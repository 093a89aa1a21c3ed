/* 31 layer normalisation of a sum: x + residual, and its norm, in one pass.
 *
 *     s = x + residual;  y = (s - mean) / sqrt(variance + eps) * gamma + beta
 *
 * What a transformer does before each of its blocks. Two matrices come in, two go out: s, which is the next residual, and y.
 *
 * The teaching version adds first, as a program does that has a function for sums and one for norms, and then normalises: s
 * is written, and read three times more. (Its variance is that about the mean, as it should be: the mean of squares minus the
 * square of the mean cancels where the mean is large.)
 *
 * What fa/layernorm.h does differently, besides what example 30 tells of reading:
 *
 *   - The sum never leaves the registers before y is made of it; four matrices move, not seven.
 *   - y is made of the sum in fp32, which is rounded for memory only. The teaching version normalises the rounded one.
 *   - A row is in registers. Each warp finds its own mean, and the squares about that; one barrier later all warps know those of the
 *     row (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979).
 *   - gamma and beta are the same for all rows, and come from the caches.
 */
#include "rows.h"

#define EPS 1e-5f

KERNEL plain_add_kernel(rows p) {
    FOR_THREADS(t, THREADS) {
        for (int64_t j = t; j < p.cols; j += THREADS) {
            int64_t i = BLOCK * p.cols + j;
            p.y2[i] = fa_bf16_from_float(fa_bf16_to_float(p.x[i]) + fa_bf16_to_float(p.x2[i]));
        }
    }
}
KERNEL plain_norm_kernel(rows p) {
    SHARED float part[THREADS];
    const uint16_t *s = p.y2 + BLOCK * p.cols;
    uint16_t *y = p.y + BLOCK * p.cols;
    FOR_THREADS(t, THREADS) {
        part[t] = 0;
        for (int64_t j = t; j < p.cols; j += THREADS) part[t] += fa_bf16_to_float(s[j]);
    }
    float mean = block_reduce(part, 0) / (float)p.cols;
    FOR_THREADS(t, THREADS) {
        part[t] = 0;
        for (int64_t j = t; j < p.cols; j += THREADS) {
            float d = fa_bf16_to_float(s[j]) - mean;
            part[t] += d * d;
        }
    }
    float rstd = 1 / sqrtf(block_reduce(part, 0) / (float)p.cols + EPS);
    FOR_THREADS(t, THREADS) {
        for (int64_t j = t; j < p.cols; j += THREADS)
            y[j] = fa_bf16_from_float((fa_bf16_to_float(s[j]) - mean) * rstd * p.gamma[j] + p.beta[j]);
    }
}
static void plain_norm(const rows *p) {
    rows_launch(plain_add_kernel, p->rows, THREADS, p);
    rows_launch(plain_norm_kernel, p->rows, THREADS, p);
}

#define FA_NAME norm
#define FA_DTYPE FA_BF16
#include <fa/layernorm.h> /* defines norm_forward(), norm_backward(), norm_workspace() */

static void fast_norm(const rows *p) {
    fa_layernorm_args a;
    memset(&a, 0, sizeof a);
    a.x = fa_matrix_of(p->x, p->cols), a.residual = fa_matrix_of(p->x2, p->cols);
    a.sum = fa_matrix_of(p->y2, p->cols), a.y = fa_matrix_of(p->y, p->cols);
    a.gamma = p->gamma, a.beta = p->beta, a.eps = EPS;
    a.rows = p->rows, a.cols = p->cols;
    FA(norm_forward(&a, 0));
}

static void *result(const rows *p) { return p->y; }
static void exact_norm(const rows *p, int64_t row, double *exact) {
    const float *x = p->host_x + row * p->cols, *residual = p->host_x2 + row * p->cols;
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < p->cols; j++) mean += (exact[j] = (double)x[j] + residual[j]) / (double)p->cols;
    for (int64_t j = 0; j < p->cols; j++) variance += (exact[j] - mean) * (exact[j] - mean) / (double)p->cols;
    for (int64_t j = 0; j < p->cols; j++)
        exact[j] = (exact[j] - mean) / sqrt(variance + (double)EPS) * p->host_gamma[j] + p->host_beta[j];
}

int main(void) {
    rows p = rows_new(4096);
    /* 2^-8: the teaching version normalises a rounded sum. */
    rows_example e = {"31_layernorm", 4,      plain_norm, fast_norm,  "31 teaching", result,
                      BF16,           p.rows, p.cols,     exact_norm, 0x1p-8};
    int status = rows_report(&p, e);
    rows_free(&p);
    return status;
}
