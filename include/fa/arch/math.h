/**
 * @file math.h
 * @brief The few functions of a number that the kernels need, for every architecture.
 *
 * The CPU versions have no branches, so that the compiler vectorises the loops around them. The coefficients are
 * minimax fits of our own; errors were measured against double precision over all of the range.
 */
#ifndef FA_ARCH_MATH_H
#define FA_ARCH_MATH_H

#include <math.h>

#include <fa/fa.h>

/** @cond PRIVATE */
#define FA__LOG2_E 1.4426950408889634f
#define FA__LN_2 0.6931471805599453f
/* An exponent x * scale - offset is computed by one fused operation where offset = base * scale is below this in
 * size: nothing is lost then but what the rounding of `offset` loses, and a factor of the result makes up for that. */
#define FA__OFFSET_MOST 1e6f

/* The largest power of two, 16 at most, of which addresses and lengths are multiples: given one of them, or some
 * joined by an or. */
FA_HOOK int fa__unit(unsigned bits) {
    bits |= 16u;
    return (int)(bits & (0u - bits));
}
/* a where the condition holds, else b, by bits: of a choice between floats gcc makes a branch where more follows on
 * it, and then no vectors. */
FA_HOOK float fa__select(int condition, float a, float b) {
    uint32_t mask = 0u - (uint32_t)condition;
    return fa__from_bits((fa__bits(a) & mask) | (fa__bits(b) & ~mask));
}

/* Of 2^x: the polynomial 2 * 2^f for |f| <= 1/2, highest power first (minimax in relative error, 5.1e-9). */
#define FA__EXP2_FIRST 1.53458925e-4f
#define FA__EXP2_OTHERS(X) \
    X(1.33999763e-3f) X(9.61856078e-3f) X(5.55034280e-2f) X(2.40226462e-1f) X(6.93147182e-1f) X(1.0f)
#define FA__EXP2_LOWEST (-126.0f)
#define FA__EXP2_SHIFT (12582912.0f + 126.0f)

/* 2^x for x < 128, and 0 from -125.5 down, so that no result is subnormal (which would slow every product down); NaN
 * stays NaN. x = n + f with |f| <= 1/2: adding 1.5 * 2^23 + 126 leaves n + 126, the exponent of 2^(n - 1), in the
 * low bits of the sum, which is 0 for n = -126. The largest error is 0.83 units in the last place (1.09 without
 * fused multiply- add). The softmax has it in vectors (arch/cpu/vector.h). */
FA_HOOK float fa__exp2_cpu(float x) {
    FA__IN_ORDER
    float clamped = fa__select(FA__EXP2_LOWEST > x, FA__EXP2_LOWEST, x), shifted = clamped + FA__EXP2_SHIFT;
    float f = clamped - (shifted - FA__EXP2_SHIFT), p = 2.0f * FA__EXP2_FIRST;
#define FA__TERM(coefficient) p = p * f + 2.0f * coefficient;
    FA__EXP2_OTHERS(FA__TERM)
#undef FA__TERM
    return p * fa__from_bits(fa__bits(shifted) << 23);
}

/* What GPUs have instructions for, and what is made of these. */
#if defined(__CUDA_ARCH__)
#include <fa/arch/sm80/math.h>

/* tanh, where an exponential and a reciprocal are an instruction each: 1 - 2 t / (1 + t) with t = e^(-2 |x|), and up
 * to 0.55, where little is left of that, x (1 + x^2 P(x^2)) (minimax, 1.0e-9). The largest error, of all floats, is
 * 1.9 units in the last place, 1.4 from 1 on and 0.5 from 4 on. NaN is not beyond. */
FA_HOOK float fa__tanh_accurate(float x) {
    const float z = x * x, t = fa__exp2(fabsf(x) * (-2.0f * FA__LOG2_E)), far = copysignf(fmaf(-2.0f * t, fa__reciprocal(1.0f + t), 1.0f), x);
    float p = -6.274291552e-3f;
    p = fmaf(p, z, 2.107171363e-2f);
    p = fmaf(p, z, -5.385231773e-2f);
    p = fmaf(p, z, 1.333258621e-1f);
    p = fmaf(p, z, -3.333331756e-1f);
    return fabsf(x) > 0.55f ? far : x * fmaf(z, p, 1.0f); /* -0 stays -0 */
}
#else
/* The larger one; b where a is NaN. (A select: fmaxf is a call.) */
FA_HOOK float fa__maxf(float a, float b) { return a > b ? a : b; }

/* The upper half of a product. */
FA_HOOK uint32_t fa__high(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
FA_HOOK uint64_t fa__high64(uint64_t a, uint64_t b) {
    uint64_t low = (uint32_t)a * (uint64_t)(uint32_t)b >> 32, first = (a >> 32) * (uint32_t)b + low;
    uint64_t second = (uint32_t)a * (b >> 32) + (uint32_t)first;
    return (a >> 32) * (b >> 32) + (first >> 32) + (second >> 32);
}

#include <fa/arch/cpu/loads.h>

FA_HOOK float fa__exp2(float x) { return fa__exp2_cpu(x); }
FA_HOOK float fa__reciprocal(float x) { return 1.0f / x; }
FA_HOOK float fa__rsqrt(float x) { return 1.0f / sqrtf(x); }
FA_HOOK float fa__log(float x) { return logf(x); }
FA_HOOK float fa__log_accurate(float x) { return logf(x); }

/* tanh from that of half of x, n / q with n = x P(x^2) and q = Q(x^2) up to 10 (minimax, 1.1e-8 in tanh(x)): 2 n q /
 * (q^2 + n^2), and beyond 3/4 the same as 1 - (q - n)^2 / (q^2 + n^2), which leaves little of an error of n or q.
 * (Scores that reach a soft cap are so nearly alike that such errors would outweigh their differences.) The largest
 * error is 4.6 units in the last place (5.5 without fused multiply-add), 2.2 (2.3) from 1 on and 0.75 from 4 on.
 * Bounds, sign, NaN and the choice are dealt with as integers: gcc makes branches of selections between floats,
 * which keep it from vectorising. */
FA_HOOK float fa__tanh_accurate(float x) {
    const int32_t most = 0x41200000, small = 0x3F400000; /* 10, where tanh rounds to 1; 3/4 */
    int32_t u = (int32_t)fa__bits(x), size = u & 0x7FFFFFFF, is_nan = -(int32_t)(size > 0x7F800000);
    uint32_t large = 0u - (uint32_t)(size > small);
    size = size < most ? size : most;
    float y = fa__from_bits((uint32_t)size), z = y * y;
    float n = 5.72349491e-05f;
    n = n * z + 0.0148929348f;
    n = n * z + 0.5f;
    n = n * y;
    float q = 1.23231712e-06f;
    q = q * z + 0.00120775367f;
    q = q * z + 0.113119207f;
    q = q * z + 1.0f;
    float apart = (q - n) * (q - n), minus = -2.0f * n * q;
    uint32_t part = (fa__bits(apart) & large) | (fa__bits(minus) & ~large);
    uint32_t t = fa__bits(fa__from_bits(fa__bits(1.0f) & large) - fa__from_bits(part) / (q * q + n * n));
    return fa__from_bits(t | ((uint32_t)u & 0x80000000u) | ((uint32_t)is_nan & 0x7FC00000u));
}
#endif
/* Of half types, on GPUs, one instruction. */
FA_HOOK float fa__tanh(float x, int dtype) {
#if defined(__CUDA_ARCH__)
    if (dtype == FA_F16 || dtype == FA_BF16) return fa__tanh_approximate(x);
#endif
    (void)dtype;
    return fa__tanh_accurate(x);
}

/* Element i of row `row` (an offset in elements) of an array of ints, if the array is there; `otherwise`, if not.
 * `known`: it is certainly there. `safe`: 4 bytes of memory that may be read. */
FA_HOOK int fa__load_int_of(const int *array, int64_t row, int i, int there, int known, int otherwise, const void *safe) {
    const int *from = (const int *)((uintptr_t)array + (uintptr_t)(there ? row * 4 : 0)); /* C knows no NULL + 0 */
    return known ? fa__load_int((const int *)fa__row_address(from) + i) : fa__load_int_if(there, from, i, otherwise, safe);
}

/* The same of an array of a data type; NaN where there is no array, unless it is known to be there. */
FA_HOOK float fa__load_or_nan(const void *array, int64_t row, int i, int dtype, int known, const void *safe) {
    int there = known || array;
    if (dtype == FA_BF16 || dtype == FA_F16) {
        const void *address = (const void *)((uintptr_t)array + (uintptr_t)(there ? row * 2 : 0));
        const uint16_t *halves = (const uint16_t *)(known ? fa__row_address(address) : address);
        uint16_t x = known ? fa__load_half(halves + i) : fa__load_half_if(there, halves, i, 0xFFFF);
        return dtype == FA_BF16 ? fa_bf16_to_float(x) : fa_f16_to_float(x);
    }
    return fa__from_bits((uint32_t)fa__load_int_of((const int *)array, row, i, there, known, -1, safe));
}

/* The largest of three; one instruction from sm_90 on. */
FA_HOOK int fa__max3(int a, int b, int c) {
    int d = b > c ? b : c;
    return a > d ? a : d;
}
/** @endcond */

#endif
