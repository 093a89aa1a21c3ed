/* One instance of a kernel that works row by row as a shared library. bench.mk gives FA_DTYPE and which kernel it is,
 * such as -DBENCH_softmax=1.
 *
 * Every library exports the same functions, so that no caller needs to know a struct: bench_tensor() lists the names of
 * the tensors that bench_run() takes, in order; what a direction does not use may be NULL. */
#include <fa/fa.h>

FA_EXTERN const char *bench_tensor(int i);
FA_EXTERN int bench_run(int backward, void *const *tensors, int64_t rows, int64_t cols, void *workspace, size_t workspace_bytes,
                        fa_stream stream);
FA_EXTERN size_t bench_workspace(int64_t rows, int64_t cols);
FA_EXTERN const char *bench_last_error(void);

#define FA_NAME kernel
#define MATRIX(i) fa_matrix_of(t[i], cols)

#if defined(BENCH_softmax)
#include <fa/row_softmax.h>
typedef fa_row_softmax_args kernel_args;
static const char *const names[] = {"x", "y", "d_y", "d_x"};
static void set(kernel_args *a, void *const *t, int64_t cols) {
    a->x = MATRIX(0), a->y = MATRIX(1), a->d_y = MATRIX(2), a->d_x = MATRIX(3);
}

#elif defined(BENCH_swiglu)
#include <fa/swiglu.h>
typedef fa_swiglu_args kernel_args;
static const char *const names[] = {"gate", "up", "y", "d_y", "d_gate", "d_up"};
static void set(kernel_args *a, void *const *t, int64_t cols) {
    a->gate = MATRIX(0), a->up = MATRIX(1), a->y = MATRIX(2);
    a->d_y = MATRIX(3), a->d_gate = MATRIX(4), a->d_up = MATRIX(5);
}

#else
#error "rows_instance.cu: -DBENCH_KERNEL=1, where KERNEL is one of those above, says which kernel it is"
#endif

static kernel_args arguments(void *const *tensors, int64_t rows, int64_t cols) {
    kernel_args a;
    memset(&a, 0, sizeof a);
    a.rows = rows, a.cols = cols;
    set(&a, tensors, cols);
    return a;
}

const char *bench_tensor(int i) { return i >= 0 && i < (int)(sizeof names / sizeof names[0]) ? names[i] : NULL; }

int bench_run(int backward, void *const *tensors, int64_t rows, int64_t cols, void *workspace, size_t workspace_bytes, fa_stream stream) {
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

/* The message of the last failure: every library has a store of its own when it is loaded by dlopen. */
const char *bench_last_error(void) { return fa_last_error(); }
