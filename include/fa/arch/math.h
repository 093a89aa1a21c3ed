/**
 * @file math.h
 * @brief The few functions of a real number that the kernels need, for every architecture.
 *
 * The CPU versions have no branches, so that the compiler vectorises the loops around them. The
 * polynomials are minimax fits by the Remez exchange (see doc/how_it_works.md for their errors).
 */
#ifndef FA_ARCH_MATH_H
#define FA_ARCH_MATH_H

#include <math.h>

#include <fa/fa.h>

/** @cond PRIVATE */
#define FA__LOG2_E 1.4426950408889634f
#define FA__LN_2 0.6931471805599453f

FA_HOOK float fa__maxf(float a, float b) { return a > b ? a : b; }

/* 2^x for x <= 127, to 1 unit in the last place; 0 below -126 (no subnormal results); NaN stays NaN.
 * Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the sum. */
FA_HOOK float fa__exp2_cpu(float x) {
    float clamped = x < -126.5f ? -126.5f : x;
    float shifted = clamped + 12582912.0f;
    float f = clamped - (shifted - 12582912.0f);
    float p = 1.5403530e-4f;
    p = p * f + 1.3333558e-3f;
    p = p * f + 9.6181291e-3f;
    p = p * f + 5.5504109e-2f;
    p = p * f + 2.4022651e-1f;
    p = p * f + 6.9314718e-1f;
    p = p * f + 1.0f;
    float y = fa__from_bits(fa__bits(p) + (fa__bits(shifted) << 23));
    return x < -126.0f ? 0.0f : y;
}

/* tanh to a few units in the last place: a polynomial near 0, where 1 - 2 / (e^2x + 1) cancels. */
FA_HOOK float fa__tanh_accurate(float x, float exp2_of_2x_log2e) {
    float z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    float near = x + x * z * p;
    float far = 1.0f - 2.0f / (exp2_of_2x_log2e + 1.0f);
    return z < 0.390625f ? near : far;
}

#if defined(__CUDA_ARCH__)
/* ex2.approx.ftz: relative error 2^-22.5; ex2(-inf) = 0 (PTX ISA, ex2). */
FA_HOOK float fa__exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/* For half-precision inputs one instruction (relative error 2^-11), else the accurate one. */
FA_HOOK float fa__tanh(float x, int dtype) {
    if (dtype == FA_F16 || dtype == FA_BF16) {
        float y;
        asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
        return y;
    }
    return fa__tanh_accurate(x, fa__exp2(2.0f * FA__LOG2_E * x));
}
#else
FA_HOOK float fa__exp2(float x) { return fa__exp2_cpu(x); }
FA_HOOK float fa__tanh(float x, int dtype) {
    (void)dtype;
    float t = 2.0f * FA__LOG2_E * x;
    return fa__tanh_accurate(x, fa__exp2(t > 64.0f ? 64.0f : t));
}
#endif
/** @endcond */

#endif
