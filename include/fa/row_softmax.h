/**
 * @file row_softmax.h
 * @brief Softmax of the rows of a matrix, its logarithm, and their gradients. A template header.
 *
 *     y = exp(x / temperature) / sum over the row of exp(x / temperature), or the logarithm of that
 *     d_x = y (d_y - sum of y d_y) / temperature, or (d_y - exp(y) sum of d_y) / temperature
 *
 * x, y, d_y, d_x: (rows, cols).
 *
 * @code{.c}
 * #include <fa/fa.h>
 *
 * #define FA_NAME  soft
 * #define FA_DTYPE FA_BF16
 * #include <fa/row_softmax.h>   // defines soft_forward(), soft_backward(), soft_workspace()
 *
 * static fa_status run(const fa_bf16 *x, fa_bf16 *y, int64_t rows, int64_t cols, fa_stream stream) {
 *     fa_row_softmax_args a;
 *     memset(&a, 0, sizeof a);
 *     a.x = fa_matrix_of(x, cols), a.y = fa_matrix_of(y, cols);
 *     a.rows = rows, a.cols = cols;
 *     return soft_forward(&a, stream);
 * }
 * @endcode
 *
 * | parameter  | required | default         | meaning |
 * |------------|----------|-----------------|---------|
 * | FA_NAME    | yes      |                 | prefix of every generated name |
 * | FA_DTYPE   | yes      |                 | FA_F32, FA_F16, FA_BF16 or FA_TF32 (the same as FA_F32): type of all matrices |
 * | FA_API     | no       | static          | linkage of the generated functions: FA_EXTERN for C linkage (the default with FA_DECLARE) |
 * | FA_DECLARE | no       |                 | defined: prototypes only, for the files that call an instance of another file |
 * | FA_ARCH    | no       | by the compiler | FA_CPU or 80, which is every GPU; without it nvcc makes 80, other compilers FA_CPU |
 * | FA_SUB     | no       |                 | second part of the prefix; FA_NAME, FA_DTYPE and FA_ARCH stay defined |
 *
 * Generates
 *
 *     fa_status NAME_forward(const fa_row_softmax_args *args, fa_stream stream);    x to y
 *     fa_status NAME_backward(const fa_row_softmax_args *args, fa_stream stream);   y and d_y to d_x
 *     size_t    NAME_workspace(const fa_row_softmax_args *args);
 *
 * On a GPU they launch and return: they neither allocate nor synchronise, and may be captured in a graph. On the CPU
 * they return when the result is written, and take up to 300 KB of the caller's stack (480 KB without optimisation). Results are the same every time, whatever the number of rows or threads.
 *
 * Arithmetic is in fp32. -inf has the weight 0. A row of nothing but -inf, or with a NaN or +inf, becomes NaN, as in
 * the unfused computation. A written matrix may be one of those read (y may be x, d_x may be d_y or y), with the same stride;
 * otherwise they must not overlap.
 */
#include <fa/fa.h>

#include <fa/kernel/rows.h>

#ifndef FA_ROW_SOFTMAX_H
#define FA_ROW_SOFTMAX_H
/** The arguments of fa/row_softmax.h, forward and backward. All-zero bytes are valid. Pointers are device pointers for a
 *  GPU instance and host pointers for a CPU one. */
typedef struct fa_row_softmax_args {
    fa_matrix x;       /**< (rows, cols) FA_DTYPE, read by the forward */
    fa_matrix y;       /**< (rows, cols) FA_DTYPE, written by the forward, read by the backward */
    int64_t rows;      /**< 0 or more */
    int64_t cols;      /**< 0 or more; with 0 nothing is read or written */
    float temperature; /**< divides x: 1e-30 to 1e30; 0 means 1 */
    int log;           /**< 1: y is the logarithm of the softmax; 0: the softmax */
    fa_matrix d_y;     /**< (rows, cols) FA_DTYPE, read by the backward */
    fa_matrix d_x;     /**< (rows, cols) FA_DTYPE, written by the backward */
    void *workspace;   /**< not needed, and not read */
    size_t workspace_bytes; /**< likewise */
    int threads; /**< CPU: threads to use (more than 1,024 are taken for 1,024); 0: those of the environment variable FA_THREADS, or else as many cores as
                      there is work for. Never changes the result. */
} fa_row_softmax_args;
#endif

#if !defined(FA_NAME)
#error "fa/row_softmax.h: define FA_NAME, the prefix of every generated name, before including it"
#define FA_NAME fa_unnamed
#endif
#include <fa/kernel/rows_begin.h>

FA_API fa_status FA__ROWS(_forward)(const fa_row_softmax_args *args, fa_stream stream) FA_UNUSED;
FA_API fa_status FA__ROWS(_backward)(const fa_row_softmax_args *args, fa_stream stream) FA_UNUSED;
FA_API size_t FA__ROWS(_workspace)(const fa_row_softmax_args *args) FA_UNUSED;

#if !defined(FA_DECLARE)
#include <fa/arch/bind.h>
#include <fa/arch/dtype.h>

/* What a row function is given. */
#define FA__PARAMS FA__ROWS(__params)
typedef struct FA__PARAMS { /* what is needed before a kernel's first load, in as few cache lines of constants as possible: these are fetched, too */
    fa_matrix x, y, d_y, d_x;
    float scale, scale_log2; /* 1 / temperature, and that times log2(e): exp(x / temperature) = 2^(x * scale_log2) */
    int log;
    fa__rows rows;
} FA__PARAMS;

/* The matrices that a direction reads, and the one that it writes. */
FA_HOOK int FA__ROWS(__reads)(fa_matrix *m, const FA__PARAMS *p, int backward) {
    m[0] = backward ? p->y : p->x;
    m[1] = p->d_y;
    return 1 + backward;
}
FA_HOOK fa_matrix FA__ROWS(__written)(const FA__PARAMS *p, int backward) { return backward ? p->d_x : p->y; }

#define FA__BODY <fa/kernel/row_softmax_rows.h>
#define FA__PACKS 1
#define FA__HELD_FORWARD 1
#define FA__HELD_BACKWARD 2
#define FA__KEEPS_FORWARD 1
#include <fa/kernel/rows_run.h>

/* Checks the arguments of a direction, derives the parameters and runs. */
static FA_UNUSED fa_status FA__ROWS(__call)(const fa_row_softmax_args *a, int backward, fa_stream stream) {
    const char *name = FA__ROWS_CALL(backward);
    const int bytes = (int)sizeof(FA__ELEMENT);
    FA__PARAMS p;
    fa_status status;
    FA__CHECK(a, "%s: args is NULL: point it to an fa_row_softmax_args", name);
    if ((status = fa__check_rows(name, a->rows, a->cols, a->threads)) != FA_OK) return status;
    FA__CHECK(a->temperature == 0.0f || (a->temperature >= 1e-30f && a->temperature <= 1e30f),
              "%s: temperature is %g: between 1e-30 and 1e30 is needed (0 means 1)", name, (double)a->temperature);
    FA__CHECK(a->log == 0 || a->log == 1, "%s: log is %d: 0 (softmax) or 1 (its logarithm) is needed", name, a->log);
    const fa__matrix_use all[] = {{"x", a->x, !backward, 0}, {"y", a->y, 1, !backward}, {"d_y", a->d_y, backward, 0}, {"d_x", a->d_x, backward, 1}};
    if ((status = fa__check_matrices(name, all, 4, a->rows, a->cols, bytes)) != FA_OK) return status;
    if (a->rows == 0 || a->cols == 0) return FA_OK;
    memset(&p, 0, sizeof p);
    p.rows.rows = a->rows;
    p.rows.cols = a->cols;
    p.x = a->x, p.y = a->y, p.d_y = a->d_y, p.d_x = a->d_x;
    p.scale = a->temperature == 0.0f ? 1.0f : 1.0f / a->temperature;
    p.scale_log2 = p.scale * FA__LOG2_E;
    p.log = a->log;
    fa_matrix used[3];
    const int reads = FA__ROWS(__reads)(used, &p, backward);
    used[reads] = FA__ROWS(__written)(&p, backward);
    p.rows.even = fa__all_aligned(used, reads + 1, bytes);
    return FA__ROWS(__run)(&p, backward, fa__aligned(used[0], bytes), a->threads, stream);
}

#define FA__ARGS fa_row_softmax_args
#include <fa/kernel/rows_calls.h>

#undef FA__PARAMS
#include <fa/arch/unbind.h>
#endif
#include <fa/kernel/rows_end.h>
