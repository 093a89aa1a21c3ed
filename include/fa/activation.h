/**
 * @file activation.h
 * @brief Activation hooks: what a gated unit applies to its gate, and its derivative.
 *
 * An activation is a function (user, x) of a float; FA_ACTIVATION of fa/swiglu.h takes its name. `user` is a
 * `const FA_USER_ARGS *`; without FA_USER_ARGS, ignore it. NAME_grad(user, x) is its derivative, for the backward.
 *
 * @code{.c}
 * #include <fa/fa.h>
 * #include <fa/activation.h>
 *
 * struct slope { float beta; };
 * FA_HOOK float swish(const struct slope *u, float x) { return x * fa_sigmoid(u->beta * x); }
 * FA_HOOK float swish_grad(const struct slope *u, float x) {
 *     float s = fa_sigmoid(u->beta * x);
 *     return s + u->beta * x * s * (1.0f - s);
 * }
 *
 * #define FA_NAME       gated
 * #define FA_DTYPE      FA_BF16
 * #define FA_ACTIVATION swish
 * #define FA_USER_ARGS  struct slope
 * #include <fa/swiglu.h>
 * @endcode
 *
 * A hook runs on every element: it should be a few instructions without branches, which the compiler then vectorises
 * on the CPU; fa_sigmoid() and the other functions of fa/math.h are of that kind. The shipped activations compute in
 * fp32; on the CPU the largest errors of fa_silu and fa_gelu are, for x above 0, 5e-7 of the value, and, below 0, 1e-7;
 * those of their derivatives 1e-6. NaN stays NaN. Of -inf fa_silu and fa_gelu, and of infinities their derivatives, may be NaN, as in the unfused
 * computation, since infinity is multiplied by 0 (on the CPU fa_silu counts what is below -87, -inf included, as -87, of which it is -1e-36).
 */
#ifndef FA_ACTIVATION_H
#define FA_ACTIVATION_H

#include <fa/fa.h>
#include <fa/math.h>

/** @name fa_silu: x / (1 + exp(-x)), the activation of SwiGLU (Shazeer, arXiv 2002.05202)
 *  @{ */
/** @cond PRIVATE */
/* Tells kernel/swiglu_rows.h that the CPU has a vectorised version, kernel/swiglu_rows_cpu.h. (Compilers vectorise
 * the scalar code equally well except for the division, which takes 16 clocks of an Intel Xeon.) */
#define FA__VECTORS_fa_silu ~, 1
/** @endcond */
FA_HOOK float fa_silu(const void *user, float x) {
    (void)user;
    return x * fa_sigmoid(x);
}
FA_HOOK float fa_silu_grad(const void *user, float x) {
    (void)user;
    float s = fa_sigmoid(x);
    return s + x * s * (1.0f - s);
}
/** @} */

/** @cond PRIVATE */
/* The normal distribution function at x; *density = exp(-x^2 / 2). Its tail beyond |x| is the density times t P(t),
 * with t = 1 / (1 + 0.27 |x|) and P a minimax fit of our own (relative error 2.3e-8 up to |x| = 13.5, where it is 0 in
 * float): the form of Hastings, "Approximations for digital computers" (1955). */
FA_HOOK float fa__normal(float x, float *density) {
    float size = fabsf(x), t = fa__reciprocal(1.0f + 0.27f * size);
    float p = 0.0288554177f;
    p = p * t - 0.125953386f;
    p = p * t + 0.168642006f;
    p = p * t - 0.0678444449f;
    p = p * t + 0.106836242f;
    p = p * t + 0.0724933451f;
    p = p * t + 0.101690545f;
    p = p * t + 0.107560749f;
    p = p * t + 0.107719538f;
    *density = fa__exp2(-0.5f * FA__LOG2_E * size * size);
    float tail = *density * (p * t);
    return fa__select(x < 0.0f, tail, 1.0f - tail);
}
/** @endcond */

/** @name fa_gelu: x times the normal distribution function at x, (1 + erf(x / sqrt(2))) / 2: the exact form, not that of tanh
 *  (Hendrycks and Gimpel, arXiv 1606.08415)
 *  @{ */
FA_HOOK float fa_gelu(const void *user, float x) {
    float density;
    (void)user;
    return x * fa__normal(x, &density);
}
FA_HOOK float fa_gelu_grad(const void *user, float x) {
    float density, below = fa__normal(x, &density);
    (void)user;
    return below + x * (density * 0.398942280f); /* 1 / sqrt(2 pi) */
}
/** @} */

/** @name fa_relu: x above 0, else 0; the derivative at 0 is 0
 *  @{ */
FA_HOOK float fa_relu(const void *user, float x) {
    (void)user;
    return fa__select(x < 0.0f, 0.0f, x);
}
FA_HOOK float fa_relu_grad(const void *user, float x) {
    (void)user;
    return fa__select(x > 0.0f, 1.0f, fa__select(x != x, x, 0.0f));
}
/** @} */

#endif
