/**
 * @file swiglu.h
 * @brief Gated linear units: an activation of one matrix times another (SwiGLU, GeGLU, ReGLU), and the gradients. A template
 * header.
 *
 *     y = activation(gate) up
 *     d_up = d_y activation(gate),  d_gate = d_y up activation'(gate)
 *
 * gate, up, y and their gradients: (rows, cols).
 *
 * @code{.c}
 * #include <fa/fa.h>
 *
 * #define FA_NAME  swiglu
 * #define FA_DTYPE FA_BF16
 * #include <fa/swiglu.h>   // defines swiglu_forward(), swiglu_backward(), swiglu_workspace()
 *
 * // Both factors from one product: (rows, 2 cols), gate in the left half.
 * static fa_status run(const fa_bf16 *gate_up, fa_bf16 *y, int64_t rows, int64_t cols, fa_stream stream) {
 *     fa_swiglu_args a;
 *     memset(&a, 0, sizeof a);
 *     a.gate = fa_matrix_of(gate_up, 2 * cols), a.up = fa_matrix_of(gate_up + cols, 2 * cols);
 *     a.y = fa_matrix_of(y, cols);
 *     a.rows = rows, a.cols = cols;
 *     return swiglu_forward(&a, stream);
 * }
 * @endcode
 *
 * | parameter     | required | default         | meaning |
 * |---------------|----------|-----------------|---------|
 * | FA_NAME       | yes      |                 | prefix of every generated name |
 * | FA_DTYPE      | yes      |                 | FA_F32, FA_F16, FA_BF16 or FA_TF32 (the same as FA_F32): type of all matrices |
 * | FA_ACTIVATION | no       | fa_silu         | fa_silu, fa_gelu, fa_relu (fa/activation.h) or your own, with NAME_grad |
 * | FA_USER_ARGS  | no       | none            | the type that args.user points to; the activation gets a pointer to a copy |
 * | FA_API        | no       | static          | linkage of the generated functions: FA_EXTERN for C linkage (the default with FA_DECLARE) |
 * | FA_DECLARE    | no       |                 | defined: prototypes only, for the files that call an instance of another file |
 * | FA_ARCH       | no       | by the compiler | FA_CPU or 80, which is every GPU; without it nvcc makes 80, other compilers FA_CPU |
 * | FA_SUB        | no       |                 | second part of the prefix; FA_NAME, FA_DTYPE, FA_ARCH and FA_USER_ARGS stay defined |
 *
 * Generates
 *
 *     fa_status NAME_forward(const fa_swiglu_args *args, fa_stream stream);    gate and up to y
 *     fa_status NAME_backward(const fa_swiglu_args *args, fa_stream stream);   gate, up and d_y to d_gate and d_up
 *     size_t    NAME_workspace(const fa_swiglu_args *args);
 *
 * On a GPU they launch and return: they neither allocate nor synchronise, and may be captured in a graph. On the CPU
 * they return when the result is written. An element's result depends on its own inputs alone.
 *
 * Arithmetic is in fp32, rounded once. A written matrix may be one of those read, with the same stride (y may be gate or
 * up; d_gate and d_up may be any two of gate, up and d_y); otherwise they must not overlap.
 */
#include <fa/fa.h>

#include <fa/activation.h>
#include <fa/kernel/rows.h>
#include <fa/kernel/segments.h>

#ifndef FA_SWIGLU_H
#define FA_SWIGLU_H
/** The arguments of fa/swiglu.h, forward and backward. All-zero bytes are valid. Pointers are device pointers for a GPU
 *  instance and host pointers for a CPU one, except `user`, which is always a host pointer. */
typedef struct fa_swiglu_args {
    fa_matrix gate;  /**< (rows, cols) FA_DTYPE, read: the input of the activation */
    fa_matrix up;    /**< (rows, cols) FA_DTYPE, read: the other factor */
    fa_matrix y;     /**< (rows, cols) FA_DTYPE, written by the forward */
    int64_t rows;    /**< 0 or more */
    int64_t cols;    /**< 0 or more */
    fa_matrix d_y;    /**< (rows, cols) FA_DTYPE, read by the backward */
    fa_matrix d_gate; /**< (rows, cols) FA_DTYPE, written by the backward */
    fa_matrix d_up;   /**< (rows, cols) FA_DTYPE, written by the backward */
    const void *user; /**< host pointer to an FA_USER_ARGS, copied by the call; required when FA_USER_ARGS is defined */
    void *workspace;  /**< not needed, and not read */
    size_t workspace_bytes; /**< likewise */
    int threads; /**< CPU: threads to use (more than 1,024 are taken for 1,024); 0: those of the environment variable FA_THREADS, or else as many cores as
                      there is work for. Never changes the result. */
} fa_swiglu_args;
#endif

#if !defined(FA_NAME)
#error "fa/swiglu.h: define FA_NAME, the prefix of every generated name, before including it"
#define FA_NAME fa_unnamed
#endif
#include <fa/kernel/rows_begin.h>

FA_API fa_status FA__ROWS(_forward)(const fa_swiglu_args *args, fa_stream stream) FA_UNUSED;
FA_API fa_status FA__ROWS(_backward)(const fa_swiglu_args *args, fa_stream stream) FA_UNUSED;
FA_API size_t FA__ROWS(_workspace)(const fa_swiglu_args *args) FA_UNUSED;

#if !defined(FA_DECLARE)
FA__STRICT_BEGIN
#include <fa/arch/bind.h>
#include <fa/arch/dtype.h>

#if defined(FA_ACTIVATION) && FA__IS_NOTHING(FA_ACTIVATION)
FA__REQUIRE(0, "FA_ACTIVATION is empty: define it as the name of an activation, such as fa_gelu, or not at all");
#undef FA_ACTIVATION
#endif
#if !defined(FA_ACTIVATION)
#define FA_ACTIVATION fa_silu
#endif

/* What a row function is given. */
#define FA__PARAMS FA__ROWS(__params)
#include <fa/kernel/user.h>
typedef struct FA__PARAMS {
    fa_matrix gate, up, y; /* what a forward reads lies together: constants are fetched from memory, too */
    fa__segments cut;
    fa__rows rows; /* segments */
    fa_matrix d_y, d_gate, d_up;
    FA__USER_BYTES
} FA__PARAMS;
FA__REQUIRE(sizeof(FA__PARAMS) <= 4096, "FA_USER_ARGS is too large: with the library's own parameters, some 0.3 KB, it may have 4 KB: pass a pointer inside it");

FA__REQUIRE(FA__IS_ONE_OF(FA_ACTIVATION, FA__FUNCTIONS_OF_NUMBERS(FA__USER_TYPE, )) &&
                FA__IS_ONE_OF(FA__CAT(FA_ACTIVATION, _grad), FA__FUNCTIONS_OF_NUMBERS(FA__USER_TYPE, )),
            "FA_ACTIVATION needs float " FA__STR(FA_ACTIVATION) "(const FA_USER_ARGS *user, float x), its derivative the same with _grad, and FA_USER_ARGS defined as the type that user points to");
/* The only call of the activation: elsewhere a name of the library's may hide it. */
FA_HOOK float FA__ROWS(__activation)(const FA__USER_TYPE *fa__user, float fa__x) {
    FA__RETURN_NUMBER(FA_ACTIVATION(fa__user, fa__x), "FA_ACTIVATION needs a function that returns float: " FA__STR(FA_ACTIVATION) "() does not");
}
FA_HOOK float FA__ROWS(__activation_grad)(const FA__USER_TYPE *fa__user, float fa__x) {
    FA__RETURN_NUMBER(FA__CAT(FA_ACTIVATION, _grad)(fa__user, fa__x),
                      "FA_ACTIVATION needs a derivative that returns float: " FA__STR(FA__CAT(FA_ACTIVATION, _grad)) "() does not");
}

#define FA__BODY <fa/kernel/swiglu_rows.h>
#define FA__HELD_FORWARD 2
#define FA__HELD_BACKWARD 2 /* it holds three: 32 bytes a thread of each (with 16, 4,096 rows of 1,024 columns take 1 to 2 % longer) */
#define FA__CUT_FORWARD 1
#define FA__CUT_WHOLE_RESIDENT 16 /* 3 % for 4,096 rows of 1,024 columns */
#define FA__CUT_BACKWARD 1
#include <fa/kernel/rows_run.h>

/* Checks the arguments of a direction, derives the parameters and runs. */
static FA_UNUSED fa_status FA__ROWS(__call)(const fa_swiglu_args *a, int backward, fa_stream stream) {
    const char *name = FA__ROWS_CALL(backward);
    const int bytes = (int)sizeof(FA__ELEMENT);
    FA__PARAMS p;
    fa_status status;
    FA__CHECK(a, "%s: args is NULL: point it to an fa_swiglu_args", name);
    if ((status = fa__check_rows(name, a->rows, a->cols, a->threads)) != FA_OK) return status;
    FA__CHECK(!FA__HAS_USER || a->user, "%s: user is NULL: it must point to the FA_USER_ARGS that the activation reads", name);
    const fa__matrix_use all[] = {{"gate", a->gate, 1, 0},        {"up", a->up, 1, 0},
                                  {"y", a->y, !backward, 1},      {"d_y", a->d_y, backward, 0},
                                  {"d_gate", a->d_gate, backward, 1}, {"d_up", a->d_up, backward, 1}};
    if ((status = fa__check_matrices(name, all, 6, a->rows, a->cols, bytes)) != FA_OK) return status;
    if (a->rows == 0 || a->cols == 0) return FA_OK;
    memset(&p, 0, sizeof p);
    p.gate = a->gate, p.up = a->up, p.y = a->y, p.d_y = a->d_y, p.d_gate = a->d_gate, p.d_up = a->d_up;
#if FA__HAS_USER
    memcpy(p.user, a->user, sizeof p.user);
#endif
    fa_matrix used[] = {a->gate, a->up, backward ? a->d_y : a->y, a->d_gate, a->d_up};
    const int count = backward ? 5 : 3, flat = fa__flat(used, count, a->rows, a->cols);
    int aligned = flat ? (uintptr_t)a->gate.data % 16 == 0 : fa__aligned(a->gate, bytes);
    int64_t rows = flat ? 1 : a->rows, cols = flat ? a->rows * a->cols : a->cols;
    const int64_t most = backward ? FA__ROWS(__cut_backward) : FA__ROWS(__cut_forward);
    p.cut = fa__cut(&p.rows, rows, cols, bytes, aligned, most);
    if (flat && p.rows.even) { /* equally long segments of one row are rows themselves, whose numbers need no division */
        p.cut = fa__cut(&p.rows, p.cut.count, p.cut.length, bytes, aligned, most);
        p.gate.stride_row = p.up.stride_row = p.y.stride_row = p.cut.cols;
        p.d_y.stride_row = p.d_gate.stride_row = p.d_up.stride_row = p.cut.cols;
        for (int i = 0; i < count; i++) used[i].stride_row = p.cut.cols;
    }
    p.rows.even &= fa__all_aligned(used, count, bytes);
    return FA__ROWS(__run)(&p, backward, aligned, a->threads, stream);
}

#define FA__ARGS fa_swiglu_args
#include <fa/kernel/rows_calls.h>

#undef FA__PARAMS
#include <fa/kernel/user_end.h>
#include <fa/arch/unbind.h>
FA__STRICT_END
#endif
#include <fa/kernel/rows_end.h>
