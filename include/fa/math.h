/**
 * @file math.h
 * @brief Functions of a number for hooks of your own: on every architecture a few instructions, without branches.
 *
 * A score hook, or an activation, runs on every element inside a kernel. There, functions of the C library are calls,
 * which keep a CPU's compiler from using vectors; so does a choice between floats by `?:`, fminf() or fmaxf(), of
 * which gcc makes a branch. On a GPU an exact division, expf() or tanhf() is a dozen instructions or more, often with
 * a branch, before which the tensor cores' products must end. The functions of this header avoid all that:
 *
 * @code{.c}
 * #include <fa/fa.h>
 * #include <fa/math.h>
 *
 * struct bend { float per_cap; };
 * FA_HOOK float bend_score(const struct bend *u, float score, fa_index at) {
 *     (void)at;
 *     return fa_divide(score, 1.0f + fabsf(score) * u->per_cap);
 * }
 *
 * #define FA_NAME      bent
 * #define FA_DTYPE     FA_BF16
 * #define FA_HEAD_DIM  64
 * #define FA_SCORE     bend_score
 * #define FA_USER_ARGS struct bend
 * #include <fa/attention.h>
 * @endcode
 *
 * Numbers are fp32. Errors are the largest ones, relative to the result unless said otherwise; an ulp is a unit in
 * the result's last place, up to 1.2e-7 of it. A subnormal number, below 2^-126 in size, may count as 0, and a result
 * that would be one may be 0. NaN stays NaN. Results are the same from call to call on the CPU, and so they are on
 * all GPUs, but the CPU's are not the same as a GPU's.
 */
/* Where arch/math.h includes the C library's header of this name. */
#if defined(FA_ARCH_MATH_H) && !defined(FA__LOG2_E)
#error "<math.h> is fa/math.h, not the C library's: the folder above fa belongs on the include path (-I), and fa itself does not"
#endif

#ifndef FA_MATH_H
#define FA_MATH_H

#include <fa/arch/math.h>
#include <fa/fa.h>

/** condition ? a : b. */
FA_HOOK float fa_select(int condition, float a, float b) {
#if defined(__CUDA_ARCH__)
    return condition ? a : b;
#else
    return fa__select(condition != 0, a, b);
#endif
}

/** The smaller of a and b; NaN where a is NaN. b must be a number: a bound, say. */
FA_HOOK float fa_min(float a, float b) {
#if defined(__CUDA_ARCH__)
    return fa__min_or_nan(a, b);
#else
    return fa_select(b < a, b, a);
#endif
}

/** The larger of a and b, likewise. */
FA_HOOK float fa_max(float a, float b) { return -fa_min(-a, -b); }

/** a / b: within 2.5 ulp on GPUs, for b from 2^-126 to 2^126 in size (from there on it may be 0); exact on the CPU. */
FA_HOOK float fa_divide(float a, float b) {
#if defined(__CUDA_ARCH__)
    return a * fa__reciprocal(b);
#else
    return a / b;
#endif
}

/** 2 to the power of x: within 3 ulp; infinite from 128 on, 0 below -126, and on the CPU from -125.5 down. */
FA_HOOK float fa_exp2(float x) {
#if defined(__CUDA_ARCH__)
    return fa__exp2(x);
#else
    return fa__select(x >= 128.0f, INFINITY, fa__exp2(x));
#endif
}

/** e to the power of x: within 3 + 2 |x| ulp, since x is multiplied first; 0 below -87.4, and on the CPU below
 *  -86.99. */
FA_HOOK float fa_exp(float x) { return fa_exp2(FA__LOG2_E * x); }

/** The natural logarithm: within 2 ulp, on GPUs 5, and there from 0.5 to 2 within 2e-7 absolutely; of 0 -infinity, of
 *  numbers below it NaN. */
FA_HOOK float fa_log(float x) {
#if defined(__CUDA_ARCH__)
    return fa__log(x);
#else
    /* x = 2^n (1 + f) with 1 + f from sqrt(1/2) to sqrt(2); log(1 + f) = f - f^2 / 2 + f^3 P(f) (minimax in relative
     * error, 5.8e-9). The logarithm of 2 in two parts, of which n times the first is exact. */
    const float least = 1.17549435e-38f;
    const uint32_t bits = fa__bits(x);
    const int32_t n = (int32_t)(bits - 0x3F3504F3u) >> 23;
    const float f = fa__from_bits(bits - ((uint32_t)n << 23)) - 1.0f, whole = (float)n;
    float p = -0.07634437015f;
    p = p * f + 0.1276155438f;
    p = p * f - 0.1316019416f;
    p = p * f + 0.1420176179f;
    p = p * f - 0.1662335650f;
    p = p * f + 0.2000122670f;
    p = p * f - 0.2500082106f;
    p = p * f + 0.3333333171f;
    const float y = whole * 0.693145752f + (f + (whole * 1.42860677e-6f + f * f * (f * p - 0.5f)));
    const float beyond = fa__select(x > -least, -INFINITY, NAN);
    return fa__select(x < least, beyond, fa__select(x < INFINITY, y, x));
#endif
}

/** The hyperbolic tangent: within 5.5 ulp. */
FA_HOOK float fa_tanh(float x) { return fa__tanh_accurate(x); }

/** The same for results that become half types: on GPUs one instruction, within 2^-11 of the result; elsewhere
 *  fa_tanh(). */
FA_HOOK float fa_tanh_approximate(float x) { return fa__tanh(x, FA_BF16); }

/** 1 / (1 + exp(-x)): within 5 + 2 |x| ulp, also where the result is small; 0 below -87.4, and on the CPU below
 *  -86.99. */
FA_HOOK float fa_sigmoid(float x) {
#if defined(__CUDA_ARCH__)
    return fa__reciprocal(1.0f + fa__exp2(-FA__LOG2_E * x));
#else
    /* e / (1 + e) below 0 and 1 / (1 + e) above, e = exp(-|x|), which does not overflow. */
    float e = fa__exp2(-FA__LOG2_E * fabsf(x));
    return fa__select(x < 0.0f, e, 1.0f) / (1.0f + e);
#endif
}

#endif
