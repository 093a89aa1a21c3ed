/* One instance of a kernel that works row by row as a shared library. bench.mk gives FA_DTYPE and which kernel it is,
 * such as -DBENCH_softmax=1.
 *
 * Every library exports the same functions, so that no caller needs to know a struct: bench_tensor() lists the names of
 * the tensors that bench_run() takes, in order; what a direction does not use may be NULL. */
#include <fa/fa.h>

FA_EXTERN const char *bench_tensor(int i);
FA_EXTERN int bench_run(int backward, void *const *tensors, int64_t rows, int64_t cols, void *workspace,
                        size_t workspace_bytes, fa_stream stream);
FA_EXTERN size_t bench_workspace(int64_t rows, int64_t cols);
FA_EXTERN const char *bench_refusal(int64_t rows, int64_t cols);
FA_EXTERN const char *bench_last_error(void);

enum { DTYPE = FA_DTYPE, SEQLEN = 4096 };
#define FA_NAME kernel
#define MATRIX(i) fa_matrix_of(t[i], cols)

#if defined(BENCH_softmax)
#include <fa/row_softmax.h>
typedef fa_row_softmax_args kernel_args;
static const char *const names[] = {"x", "y", "d_y", "d_x"};
static void set(kernel_args *a, void *const *t, int64_t cols) {
    a->x = MATRIX(0), a->y = MATRIX(1), a->d_y = MATRIX(2), a->d_x = MATRIX(3);
}

#elif defined(BENCH_layernorm)
#include <fa/layernorm.h>
typedef fa_layernorm_args kernel_args;
static const char *const names[] = {"x", "y", "gamma", "beta", "mean", "rstd", "d_y", "d_x", "d_gamma", "d_beta"};
static void set(kernel_args *a, void *const *t, int64_t cols) {
    a->x = MATRIX(0), a->y = MATRIX(1), a->gamma = t[2], a->beta = t[3], a->eps = 1e-5f;
    a->mean = (float *)t[4], a->rstd = (float *)t[5];
    a->d_y = MATRIX(6), a->d_x = MATRIX(7), a->d_gamma = t[8], a->d_beta = t[9];
}

#elif defined(BENCH_layernorm_residual)
#include <fa/layernorm.h>
typedef fa_layernorm_args kernel_args;
static const char *const names[] = {"x",   "y",   "gamma", "beta", "mean",    "rstd",  "residual",
                                    "sum", "d_y", "d_sum", "d_x",  "d_gamma", "d_beta"};
static void set(kernel_args *a, void *const *t, int64_t cols) {
    a->x = MATRIX(0), a->y = MATRIX(1), a->gamma = t[2], a->beta = t[3], a->eps = 1e-5f;
    a->mean = (float *)t[4], a->rstd = (float *)t[5], a->residual = MATRIX(6), a->sum = MATRIX(7);
    a->d_y = MATRIX(8), a->d_sum = MATRIX(9), a->d_x = MATRIX(10), a->d_gamma = t[11], a->d_beta = t[12];
}

#elif defined(BENCH_rmsnorm)
#include <fa/rmsnorm.h>
typedef fa_rmsnorm_args kernel_args;
static const char *const names[] = {"x", "y", "gamma", "rstd", "d_y", "d_x", "d_gamma"};
static void set(kernel_args *a, void *const *t, int64_t cols) {
    a->x = MATRIX(0), a->y = MATRIX(1), a->gamma = t[2], a->rstd = (float *)t[3], a->eps = 1e-5f;
    a->d_y = MATRIX(4), a->d_x = MATRIX(5), a->d_gamma = t[6];
}

#elif defined(BENCH_rmsnorm_residual)
#include <fa/rmsnorm.h>
typedef fa_rmsnorm_args kernel_args;
static const char *const names[] = {"x", "y", "gamma", "rstd", "residual", "sum", "d_y", "d_sum", "d_x", "d_gamma"};
static void set(kernel_args *a, void *const *t, int64_t cols) {
    a->x = MATRIX(0), a->y = MATRIX(1), a->gamma = t[2], a->rstd = (float *)t[3], a->eps = 1e-5f;
    a->residual = MATRIX(4), a->sum = MATRIX(5);
    a->d_y = MATRIX(6), a->d_sum = MATRIX(7), a->d_x = MATRIX(8), a->d_gamma = t[9];
}

#elif defined(BENCH_cross_entropy)
#include <fa/cross_entropy.h>
typedef fa_cross_entropy_args kernel_args;
static const char *const names[] = {"logits", "targets", "loss", "lse", "d_loss", "d_logits"};
static void set(kernel_args *a, void *const *t, int64_t cols) {
    a->logits = MATRIX(0), a->targets = (const int *)t[1], a->loss = (float *)t[2], a->lse = (float *)t[3];
    a->d_loss = (const float *)t[4], a->d_logits = MATRIX(5);
}

#elif defined(BENCH_swiglu)
#include <fa/swiglu.h>
typedef fa_swiglu_args kernel_args;
static const char *const names[] = {"gate", "up", "y", "d_y", "d_gate", "d_up"};
static void set(kernel_args *a, void *const *t, int64_t cols) {
    a->gate = MATRIX(0), a->up = MATRIX(1), a->y = MATRIX(2);
    a->d_y = MATRIX(3), a->d_gate = MATRIX(4), a->d_up = MATRIX(5);
}

#elif defined(BENCH_rope)
#include <fa/rope.h>
typedef fa_rope_args kernel_args;
/* A row is a token: half of its columns are heads of q, the other half are heads of k, 128 each. */
static const char *const names[] = {"x", "y", "cos", "sin", "d"};
static void set(kernel_args *a, void *const *t, int64_t cols) {
    const int heads = (int)(cols / 256);
    void *const half[] = {t[0], t[1], t[4]};
    fa_tensor *q[] = {&a->q, &a->q_out, &a->d_q}, *k[] = {&a->k, &a->k_out, &a->d_k};
    for (int i = 0; i < 3; i++) {
        *q[i] = *k[i] = fa_tensor_bshd(half[i], 2 * heads, a->seqlen, 128);
        k[i]->data = (char *)half[i] + cols / 2 * fa_dtype_bytes(DTYPE);
    }
    a->heads = a->heads_kv = heads, a->head_dim = 128;
    a->cos = (const float *)t[2], a->sin = (const float *)t[3];
}

#else
#error "rows_instance.cu: -DBENCH_KERNEL=1, where KERNEL is one of those above, says which kernel it is"
#endif

static kernel_args arguments(void *const *tensors, int64_t rows, int64_t cols) {
    kernel_args a;
    memset(&a, 0, sizeof a);
#if defined(BENCH_rope)
    a.seqlen = rows < SEQLEN ? (int)rows : SEQLEN, a.batch = (int)(rows / a.seqlen);
#else
    a.rows = rows, a.cols = cols;
#endif
    set(&a, tensors, cols);
    return a;
}

const char *bench_tensor(int i) { return i >= 0 && i < (int)(sizeof names / sizeof names[0]) ? names[i] : NULL; }

int bench_run(int backward, void *const *tensors, int64_t rows, int64_t cols, void *workspace, size_t workspace_bytes,
              fa_stream stream) {
    kernel_args a = arguments(tensors, rows, cols);
    a.workspace = workspace, a.workspace_bytes = workspace_bytes;
    return backward ? kernel_backward(&a, stream) : kernel_forward(&a, stream);
}

/* Of a call with all tensors. */
size_t bench_workspace(int64_t rows, int64_t cols) {
    static char some;
    void *tensors[sizeof names / sizeof names[0]];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) tensors[i] = &some;
    kernel_args a = arguments(tensors, rows, cols);
    return kernel_workspace(&a);
}

/* Why this instance has no problem of this shape, or NULL: it has. */
const char *bench_refusal(int64_t rows, int64_t cols) {
#if defined(BENCH_rope)
    if (cols % 256) return "its columns, heads of q and of k with 128 each, must be a multiple of 256";
    if (rows > SEQLEN && rows % SEQLEN) return "its rows, sequences of 4,096 tokens, must be at most that or a multiple of it";
#endif
    (void)rows, (void)cols;
    return NULL;
}

/* The message of the last failure: every library has a store of its own when it is loaded by dlopen. */
const char *bench_last_error(void) { return fa_last_error(); }
