/**
 * @file cross_entropy.h
 * @brief Cross-entropy of the rows of a matrix of logits with a target class each, and its gradient. A template header.
 *
 *     z    = logits, or softcap tanh(logits / softcap)
 *     lse  = log(sum over the row of exp(z))
 *     loss = (1 - label_smoothing) (lse - z[target]) + label_smoothing (lse - mean of z) + z_loss lse^2
 *     d_logits = d_loss (exp(z - lse) (1 + 2 z_loss lse) - label_smoothing / cols - (1 - label_smoothing) [col = target]) dz
 *
 * with dz = 1, or 1 - (z / softcap)^2 with a soft cap; [col = target] is 1 in the target's column, 0 elsewhere.
 * logits, d_logits: (rows, cols); targets, loss, lse, d_loss: (rows).
 *
 * (Label smoothing: Szegedy et al., arXiv 1512.00567; z-loss: Chowdhery et al., arXiv 2204.02311; soft cap: Gemma 2, arXiv
 * 2408.00118.)
 *
 * @code{.c}
 * #include <fa/fa.h>
 *
 * #define FA_NAME  ce
 * #define FA_DTYPE FA_BF16
 * #include <fa/cross_entropy.h>   // defines ce_forward(), ce_backward(), ce_workspace()
 *
 * // Logits become their gradients.
 * static fa_status run(fa_bf16 *logits, const int *targets, float *loss, float *lse, int64_t rows, int64_t cols, fa_stream stream) {
 *     fa_cross_entropy_args a;
 *     memset(&a, 0, sizeof a);
 *     a.logits = a.d_logits = fa_matrix_of(logits, cols);
 *     a.targets = targets, a.loss = loss, a.lse = lse;
 *     a.rows = rows, a.cols = cols;
 *     fa_status status = ce_forward(&a, stream);
 *     return status == FA_OK ? ce_backward(&a, stream) : status;
 * }
 * @endcode
 *
 * | parameter  | required | default         | meaning |
 * |------------|----------|-----------------|---------|
 * | FA_NAME    | yes      |                 | prefix of every generated name |
 * | FA_DTYPE   | yes      |                 | FA_F32, FA_F16, FA_BF16 or FA_TF32 (the same as FA_F32): type of both matrices |
 * | FA_API     | no       | static          | linkage of the generated functions: FA_EXTERN for C linkage (the default with FA_DECLARE) |
 * | FA_DECLARE | no       |                 | defined: prototypes only, for the files that call an instance of another file |
 * | FA_ARCH    | no       | by the compiler | FA_CPU or 80, which is every GPU; without it nvcc makes 80, other compilers FA_CPU |
 * | FA_SUB     | no       |                 | second part of the prefix; FA_NAME, FA_DTYPE and FA_ARCH stay defined |
 *
 * Generates
 *
 *     fa_status NAME_forward(const fa_cross_entropy_args *args, fa_stream stream);    logits to loss and lse
 *     fa_status NAME_backward(const fa_cross_entropy_args *args, fa_stream stream);   logits, lse and d_loss to d_logits
 *     size_t    NAME_workspace(const fa_cross_entropy_args *args);
 *
 * On a GPU they launch and return: they neither allocate nor synchronise, and may be captured in a graph. On the CPU
 * they return when the result is written. Results are the same every time, whatever the number of rows or threads.
 *
 * The forward reads the logits once and writes nothing of their size; the backward reads and writes them once. Arithmetic
 * is in fp32.
 *
 * A row whose target is ignore_index has the loss 0 and the gradient 0, whatever is in it; its lse is written. Any
 * other target that is no class (below 0, or cols or more) makes the loss and the gradient of its row NaN; nothing is
 * read at such a target. A logit of -inf is a class of probability 0 (without a soft cap, which makes it -softcap). A
 * row of nothing but -inf, or with a NaN or (without a soft cap) +inf, has the loss NaN and a gradient of NaN, as in
 * the unfused computation.
 */
#include <fa/fa.h>

#include <fa/arch/math.h>
#include <fa/kernel/rows.h>
#include <fa/kernel/segments.h>

#ifndef FA_CROSS_ENTROPY_H
#define FA_CROSS_ENTROPY_H
/** The arguments of fa/cross_entropy.h, forward and backward. All-zero bytes are valid. Pointers are device pointers for a
 *  GPU instance and host pointers for a CPU one. */
typedef struct fa_cross_entropy_args {
    fa_matrix logits;      /**< (rows, cols) FA_DTYPE, read by both */
    const int *targets;    /**< (rows) the class of each row, read by both */
    float *loss;           /**< (rows) written by the forward; NULL: not wanted (loss and lse cannot both be NULL there) */
    float *lse;            /**< (rows) log(sum of exp(z)), written by the forward, and read by the backward; NULL in the forward: not wanted.
                                NaN if a z is +inf. As it is a float, the backward's weights are off by up to 2^-24 |lse|, relatively */
    int64_t rows;          /**< 0 or more */
    int64_t cols;          /**< classes: 0 or more */
    float label_smoothing; /**< the share of the target that is spread over all classes: 0 to 1 */
    int ignore_index;      /**< the target of rows that do not count; 0 means -100 (to leave class 0 out, give its rows -100) */
    float z_loss;          /**< weight of lse^2 in the loss: 0 to 1e30 */
    float softcap;         /**< logits become softcap tanh(logits / softcap) first: 1e-30 to 1e30; 0: they do not. With half
                                types on a GPU the result is off by up to some 1e-7 of the cap, and the cap may be up to 1e4 */
    const float *d_loss;   /**< (rows) read by the backward; NULL: 1 for every row */
    fa_matrix d_logits;    /**< (rows, cols) FA_DTYPE, written by the backward; may be logits, with the same stride */
    void *workspace;       /**< not needed, and not read */
    size_t workspace_bytes; /**< likewise */
    int threads; /**< CPU: threads to use (more than 1,024 are taken for 1,024); 0: those of the environment variable FA_THREADS, or else as many cores as
                      there is work for. Never changes the result. */
} fa_cross_entropy_args;

/** @cond PRIVATE */
/* cap tanh(x / cap). On GPUs, for half types, by two instructions of the special function unit, with an absolute error
 * of some 1e-7 cap: the single instruction tanh.approx would spoil the loss, which is a float. */
FA_HOOK float fa__soft_cap(float x, float cap, float inverse, int dtype) {
#if defined(__CUDA_ARCH__)
    if (dtype == FA_F16 || dtype == FA_BF16)
        return cap - 2.0f * cap * fa__reciprocal(1.0f + fa__exp2(x * (2.0f * FA__LOG2_E * inverse)));
#endif
    (void)dtype;
    return cap * fa__tanh_accurate(x * inverse);
}
/** @endcond */
#endif

#if !defined(FA_NAME)
#error "fa/cross_entropy.h: define FA_NAME, the prefix of every generated name, before including it"
#define FA_NAME fa_unnamed
#endif
#include <fa/kernel/rows_begin.h>

FA_API fa_status FA__ROWS(_forward)(const fa_cross_entropy_args *args, fa_stream stream) FA_UNUSED;
FA_API fa_status FA__ROWS(_backward)(const fa_cross_entropy_args *args, fa_stream stream) FA_UNUSED;
FA_API size_t FA__ROWS(_workspace)(const fa_cross_entropy_args *args) FA_UNUSED;

#if !defined(FA_DECLARE)
#include <fa/arch/bind.h>
#include <fa/arch/dtype.h>

/* What a row function is given. */
#define FA__PARAMS FA__ROWS(__params)
typedef struct FA__PARAMS {
    fa__rows rows;    /* forward: of the matrix; backward: segments */
    fa__segments cut; /* backward */
    fa_matrix logits, d_logits;
    const int *targets;
    const float *d_loss;
    float *loss, *lse;
    float smoothing, smoothing_each, z_loss, cap, cap_inverse; /* _each: per class */
    int ignore;
} FA__PARAMS;

/* The matrix that both directions read, and the one that the backward writes. */
FA_HOOK int FA__ROWS(__reads)(fa_matrix *m, const FA__PARAMS *p, int backward) {
    (void)backward;
    m[0] = p->logits;
    return 1;
}
FA_HOOK fa_matrix FA__ROWS(__written)(const FA__PARAMS *p, int backward) {
    fa_matrix none = p->d_logits;
    if (!backward) none.data = NULL;
    return none;
}

#define FA__BODY <fa/kernel/cross_entropy_rows.h>
#define FA__PACKS 1
#define FA__HELD_FORWARD 1
#define FA__HELD_BACKWARD 1
#define FA__ONCE_FORWARD 1
#define FA__CUT_BACKWARD 1
#include <fa/kernel/rows_run.h>

/* Checks the arguments of a direction, derives the parameters and runs. */
static FA_UNUSED fa_status FA__ROWS(__call)(const fa_cross_entropy_args *a, int backward, fa_stream stream) {
    const char *name = FA__ROWS_CALL(backward);
    const int bytes = (int)sizeof(FA__ELEMENT);
    FA__PARAMS p;
    fa_status status;
    FA__CHECK(a, "%s: args is NULL: point it to an fa_cross_entropy_args", name);
    if ((status = fa__check_rows(name, a->rows, a->cols, a->threads)) != FA_OK) return status;
    FA__CHECK(a->label_smoothing >= 0.0f && a->label_smoothing <= 1.0f, "%s: label_smoothing is %g: between 0 and 1 is needed", name,
              (double)a->label_smoothing);
    FA__CHECK(a->z_loss >= 0.0f && a->z_loss <= 1e30f, "%s: z_loss is %g: 0 or more is needed, up to 1e30", name, (double)a->z_loss);
    const float most = FA__ARCH != FA_CPU && FA__IS_HALF ? 1e4f : 1e30f; /* see fa__soft_cap() */
    FA__CHECK(a->softcap == 0.0f || (a->softcap >= 1e-30f && a->softcap <= most), "%s: softcap is %g: between 1e-30 and %g is needed (0 means none)", name,
              (double)a->softcap, (double)most);
    const fa__matrix_use all[] = {{"logits", a->logits, 1, 0}, {"d_logits", a->d_logits, backward, 1}};
    if ((status = fa__check_matrices(name, all, 2, a->rows, a->cols, bytes)) != FA_OK) return status;
    const fa__vector_use vectors[] = {{"targets", a->targets, 1, 0, 4, a->rows}, {"loss", a->loss, !backward, 1, 4, a->rows},
                                      {"lse", a->lse, 1, !backward, 4, a->rows}, {"d_loss", a->d_loss, backward, 0, 4, a->rows}};
    FA__CHECK(a->targets || a->rows == 0, "%s: targets is NULL: %lld ints are needed, one a row", name, (long long)a->rows);
    FA__CHECK(a->lse || !backward || a->rows == 0, "%s: lse is NULL: %lld floats are needed, one a row", name, (long long)a->rows);
    if ((status = fa__check_vectors(name, vectors, 4, all, 2, a->rows, a->cols, bytes)) != FA_OK) return status;
    if (!backward)
        FA__CHECK(a->loss || a->lse || a->rows == 0, "%s: loss and lse are NULL: %lld floats for one of them are needed", name,
                  (long long)a->rows);
    if (a->rows == 0 || (backward && a->cols == 0)) return FA_OK;
    memset(&p, 0, sizeof p);
    p.logits = a->logits, p.d_logits = a->d_logits;
    if (a->cols == 0) p.logits = p.d_logits = fa_matrix_of(a->targets, 0); /* they have not been checked, and addresses are made of them */
    p.targets = a->targets, p.loss = a->loss, p.lse = a->lse, p.d_loss = a->d_loss;
    p.smoothing = a->label_smoothing, p.smoothing_each = a->cols > 0 ? a->label_smoothing / (float)a->cols : 0.0f;
    p.z_loss = a->z_loss, p.cap = a->softcap;
    p.cap_inverse = a->softcap == 0.0f ? 0.0f : 1.0f / a->softcap;
    p.ignore = a->ignore_index == 0 ? -100 : a->ignore_index;
    int aligned = fa__aligned(a->logits, bytes);
    p.rows.rows = a->rows, p.rows.cols = a->cols;
    if (backward) {
        p.cut = fa__cut(&p.rows, a->rows, a->cols, bytes, aligned, FA__ROWS(__cut_backward));
        p.rows.even &= aligned && fa__aligned(a->d_logits, bytes);
    }
    return FA__ROWS(__run)(&p, backward, aligned, a->threads, stream);
}

#define FA__ARGS fa_cross_entropy_args
#include <fa/kernel/rows_calls.h>

#undef FA__PARAMS
#include <fa/arch/unbind.h>
#endif
#include <fa/kernel/rows_end.h>
