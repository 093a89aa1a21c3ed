/**
 * @file layernorm.h
 * @brief Layer normalisation of the rows of a matrix, with the dropout and the residual before it, and its gradients. A template
 * header.
 *
 * Ba, Kiros and Hinton, arXiv 1607.06450.
 *
 *     s = x, or dropout(x) + residual;  n = (s - mean) rstd,  rstd = 1 / sqrt(variance + eps);  y = n gamma + beta
 *     d_s = rstd (w - mean of w - n mean of (w n)) + d_sum,  w = d_y gamma;  d_residual = d_s,  d_x = dropout(d_s)
 *     d_gamma = sum over rows of d_y n,  d_beta = sum over rows of d_y
 *
 * x, residual, sum, y and their gradients: (rows, cols); gamma, beta: (cols); mean, rstd: (rows).
 *
 * @code{.c}
 * #include <fa/fa.h>
 *
 * #define FA_NAME  norm
 * #define FA_DTYPE FA_BF16
 * #include <fa/layernorm.h>   // defines norm_forward(), norm_backward(), norm_workspace()
 *
 * static fa_status run(const fa_bf16 *x, fa_bf16 *y, const float *gamma, const float *beta, int64_t rows, int64_t cols, fa_stream stream) {
 *     fa_layernorm_args a;
 *     memset(&a, 0, sizeof a);
 *     a.x = fa_matrix_of(x, cols), a.y = fa_matrix_of(y, cols);
 *     a.gamma = gamma, a.beta = beta, a.eps = 1e-5f;
 *     a.rows = rows, a.cols = cols;
 *     return norm_forward(&a, stream);
 * }
 * @endcode
 *
 * | parameter       | required | default         | meaning |
 * |-----------------|----------|-----------------|---------|
 * | FA_NAME         | yes      |                 | prefix of every generated name |
 * | FA_DTYPE        | yes      |                 | FA_F32, FA_F16, FA_BF16 or FA_TF32 (the same as FA_F32): type of all matrices |
 * | FA_WEIGHT_DTYPE | no       | FA_F32          | type of gamma and beta and their gradients |
 * | FA_API          | no       | static          | linkage of the generated functions: FA_EXTERN for C linkage (the default with FA_DECLARE) |
 * | FA_DECLARE      | no       |                 | defined: prototypes only, for the files that call an instance of another file |
 * | FA_ARCH         | no       | by the compiler | FA_CPU or 80, which is every GPU; without it nvcc makes 80, other compilers FA_CPU |
 * | FA_SUB          | no       |                 | second part of the prefix; FA_NAME, FA_DTYPE and FA_ARCH stay defined |
 *
 * Generates
 *
 *     fa_status NAME_forward(const fa_layernorm_args *args, fa_stream stream);    x (and residual) to y (and sum)
 *     fa_status NAME_backward(const fa_layernorm_args *args, fa_stream stream);   d_y and what was normalised to the gradients
 *     size_t    NAME_workspace(const fa_layernorm_args *args);                    bytes that the backward needs
 *
 * The backward reads d_y, and what was normalised: sum.data if that is set, else x.data, which is the same where the forward
 * had neither dropout nor residual; with either of them it needs the sum. If both mean and rstd are given, it uses them as the
 * forward wrote them; otherwise it recomputes them, for which a GPU reads the rows once more. Each of its results is written
 * if its pointer is not NULL. It needs the workspace for d_gamma and d_beta, and on a GPU for statistics that are not given,
 * and for rows that are longer than a block can hold.
 *
 * On a GPU they launch and return: they neither allocate nor synchronise, and may be captured in a graph. On the CPU
 * they return when the result is written, and take up to 300 KB of the caller's stack (480 KB without optimisation). Results are the same every time, and with any number of threads: there are no
 * atomics. A row's results do not depend on other rows. Sums over rows are added in an order that depends on their
 * number, on the device, on which matrices are given, and on how they are aligned.
 *
 * Arithmetic is in fp32; y is computed from the sum before it is rounded. The variance is that about the mean, however far from 0 the mean is.
 * For dropout see fa/philox.h: element (row, col) is
 * number row * cols + col. A written matrix may be one of those read, with the same stride (y or sum may be x or residual; d_x
 * and d_residual may be d_y, d_sum, x or sum); otherwise they must not overlap.
 */
#include <fa/fa.h>

#include <fa/kernel/rows.h>
#include <fa/philox.h>

#ifndef FA_LAYERNORM_H
#define FA_LAYERNORM_H
/** The arguments of fa/layernorm.h, forward and backward. All-zero bytes are valid. Pointers are device pointers for a GPU
 *  instance and host pointers for a CPU one. Members that may be NULL say so. */
typedef struct fa_layernorm_args {
    fa_matrix x;        /**< (rows, cols) FA_DTYPE, read by the forward; by the backward if sum.data is NULL */
    fa_matrix y;        /**< (rows, cols) FA_DTYPE, written by the forward */
    fa_matrix residual; /**< (rows, cols) FA_DTYPE, added to x before the normalisation; NULL: none */
    fa_matrix sum;      /**< (rows, cols) FA_DTYPE, dropout(x) + residual: written by the forward and read by the backward; NULL: not
                             written, and the backward reads x (refused with dropout or a residual) */
    const void *gamma;  /**< (cols) FA_WEIGHT_DTYPE; NULL: 1 */
    const void *beta;   /**< (cols) FA_WEIGHT_DTYPE; NULL: 0 */
    float *mean;        /**< (rows), written by the forward and read by the backward; NULL: not written, and computed again */
    float *rstd;        /**< (rows), 1 / sqrt(variance + eps), likewise; NULL: the same */
    int64_t rows;       /**< 0 or more */
    int64_t cols;       /**< 0 or more; with 0 nothing is read or written */
    float eps;          /**< 0 or more */
    float dropout;      /**< probability that an element of x is dropped; the others are multiplied by 1 / (1 - dropout) */
    uint64_t seed;      /**< of dropout */
    uint64_t offset;    /**< of dropout: the next call's is this + (rows * cols + 3) / 4 */
    fa_matrix d_y;        /**< (rows, cols) FA_DTYPE, read by the backward */
    fa_matrix d_sum;      /**< (rows, cols) FA_DTYPE, the gradient that reaches sum in other ways; NULL: none */
    fa_matrix d_x;        /**< (rows, cols) FA_DTYPE, written by the backward; NULL: not wanted */
    fa_matrix d_residual; /**< (rows, cols) FA_DTYPE, written by the backward; NULL: not wanted. Without dropout the same as d_x */
    void *d_gamma;        /**< (cols) FA_WEIGHT_DTYPE, written by the backward; NULL: not wanted */
    void *d_beta;         /**< (cols) FA_WEIGHT_DTYPE, written by the backward; NULL: not wanted */
    void *workspace;      /**< NAME_workspace() bytes at a multiple of 16, for the backward, that no other call uses meanwhile; NULL if that is 0 */
    size_t workspace_bytes; /**< bytes of it: NAME_workspace() or more */
    int threads; /**< CPU: threads to use (more than 1,024 are taken for 1,024); 0: those of the environment variable FA_THREADS, or else as many cores as
                      there is work for. Never changes the result. */
} fa_layernorm_args;
#endif

#if !defined(FA_NAME)
#error "fa/layernorm.h: define FA_NAME, the prefix of every generated name, before including it"
#define FA_NAME fa_unnamed
#endif
#include <fa/kernel/rows_begin.h>

/** Normalises the rows of x, or of dropout(x) + residual. */
FA_API fa_status FA__ROWS(_forward)(const fa_layernorm_args *args, fa_stream stream) FA_UNUSED;
/** The gradients of the loss, from d_y (the gradient of y) and what was normalised. */
FA_API fa_status FA__ROWS(_backward)(const fa_layernorm_args *args, fa_stream stream) FA_UNUSED;
/** Bytes of workspace that are enough for the backward with these arguments, or with fewer rows. It looks at rows, cols, whether there is a d_sum,
 *  and whether gradients of weights are wanted. (A call with mean and rstd, but without gradients of weights, needs none for rows
 *  that a block can hold, whatever this returns.) On a GPU it depends on the current device; 0 if there is none. */
FA_API size_t FA__ROWS(_workspace)(const fa_layernorm_args *args) FA_UNUSED;

#if !defined(FA_DECLARE)
#define FA__CENTERED 1
#define FA__NORM_ARGS fa_layernorm_args
#include <fa/kernel/norm.h>
#endif
#include <fa/kernel/rows_end.h>
