/* 34 SwiGLU: an activation times a matrix, and an activation of one's own.
 *
 *     y = up * gate / (1 + exp(-gate))
 *
 * No sums: elements do not know of each other. The teaching version is a thread an element, which is nearly all there is to
 * say. What fa/swiglu.h does differently is about having enough reads under way:
 *
 *   - 16 bytes a read, not 2: a warp's request is 512 bytes, and there are an eighth as many.
 *   - A thread asks for 32 bytes of each input before it uses any of them.
 *   - No division to find an element's place: rows that lie one behind the other are one long row.
 *   - What is read is marked as the last to leave the second-level cache, so that results leave early: here nobody reads them soon.
 *
 * The activation is a hook, a function with its derivative: shipped ones are fa_silu, fa_gelu and fa_relu. The last line checks
 * an instance with one that nobody ships, the square of relu (So et al., arXiv 2109.08668).
 */
#include "rows.h"

KERNEL plain_swiglu_kernel(rows p) {
    FOR_THREADS(t, THREADS) {
        int64_t i = (int64_t)BLOCK * THREADS + t, row = i / p.cols, j = i % p.cols;
        float gate = fa_bf16_to_float(p.x[row * p.cols + j]), up = fa_bf16_to_float(p.x2[row * p.cols + j]);
        p.y[row * p.cols + j] = fa_bf16_from_float(up * gate / (1 + expf(-gate)));
    }
}
static void plain_swiglu(const rows *p) { rows_launch(plain_swiglu_kernel, p->rows * p->cols / THREADS, THREADS, p); }

#define FA_NAME swiglu
#define FA_DTYPE FA_BF16
#include <fa/swiglu.h> /* defines swiglu_forward(), swiglu_backward() */

/* relu(x)^2, and its derivative, which the backward wants. A hook gets the user's struct, here none. */
FA_HOOK float relu_squared(const FA_USER_ARGS *user, float x) { return (void)user, x > 0 ? x * x : 0; }
FA_HOOK float relu_squared_grad(const FA_USER_ARGS *user, float x) { return (void)user, x > 0 ? 2 * x : 0; }

#define FA_NAME squared
#define FA_DTYPE FA_BF16
#define FA_ACTIVATION relu_squared
#include <fa/swiglu.h>

static fa_swiglu_args arguments(const rows *p) {
    fa_swiglu_args a;
    memset(&a, 0, sizeof a);
    a.gate = fa_matrix_of(p->x, p->cols), a.up = fa_matrix_of(p->x2, p->cols), a.y = fa_matrix_of(p->y, p->cols);
    a.rows = p->rows, a.cols = p->cols;
    return a;
}
static void fast_swiglu(const rows *p) {
    fa_swiglu_args a = arguments(p);
    FA(swiglu_forward(&a, 0));
}
static void fast_squared(const rows *p) {
    fa_swiglu_args a = arguments(p);
    FA(squared_forward(&a, 0));
}

static void *result(const rows *p) { return p->y; }
static void exact_swiglu(const rows *p, int64_t row, double *exact) {
    const float *gate = p->host_x + row * p->cols, *up = p->host_x2 + row * p->cols;
    for (int64_t j = 0; j < p->cols; j++) exact[j] = (double)up[j] * gate[j] / (1 + exp(-gate[j]));
}
static void exact_squared(const rows *p, int64_t row, double *exact) {
    const float *gate = p->host_x + row * p->cols, *up = p->host_x2 + row * p->cols;
    for (int64_t j = 0; j < p->cols; j++) exact[j] = gate[j] > 0 ? (double)up[j] * gate[j] * gate[j] : 0;
}

int main(void) {
    rows p = rows_new(4096);
    rows_example e = {"34_swiglu", 3,      plain_swiglu, fast_swiglu,  "34 teaching", result,
                      BF16,        p.rows, p.cols,       exact_swiglu, 1e-6};
    rows_example own = e;
    own.name = "34_own_activation", own.fast = fast_squared, own.exact = exact_squared;
    int status = rows_report(&p, e);
    double error = rows_error(&p, fast_squared, &own);
    printf("%-20s %-4s error %.2f of what is allowed%s\n", own.name, "bf16", error, error <= 1 ? "" : "  WRONG");
    rows_free(&p);
    return status || !(error <= 1);
}
