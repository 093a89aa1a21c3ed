/**
 * @file sm80/math.h
 * @brief The functions of arch/math.h that a GPU has instructions for.
 */
#ifndef FA_ARCH_SM80_MATH_H
#define FA_ARCH_SM80_MATH_H

/** @cond PRIVATE */
/* The larger one; b where a is NaN. */
FA_HOOK float fa__maxf(float a, float b) { return fmaxf(a, b); }

/* The smaller one; NaN where either is (PTX ISA, min). */
FA_HOOK float fa__min_or_nan(float a, float b) {
    float y;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}

/* The upper half of a product. As a product of 64 bits nvcc makes one instruction more of it and the lower half. */
FA_HOOK uint32_t fa__high(uint32_t a, uint32_t b) { return __umulhi(a, b); }
FA_HOOK uint64_t fa__high64(uint64_t a, uint64_t b) { return __umul64hi(a, b); }

/* Loads of what does not change during a kernel, through the read-only cache: they may leave loops that write
 * memory. */
FA_HOOK float fa__load_float(const float *from) { return __ldg(from); }
FA_HOOK int fa__load_int(const int *from) { return __ldg(from); }
FA_HOOK uint16_t fa__load_half(const uint16_t *from) { return __ldg(from); }
/* Element i of an array if it is there, else `missing`, without a branch. Ints may be the same for many scores. A
 * predicated load, which is an asm statement, would be repeated for each of them; so theirs is a plain load, from an
 * address that is safe to read. Halves are those of a bias, another one for each score. */
FA_HOOK int fa__load_int_if(int there, const int *from, int i, int missing, const void *safe) {
    int x = __ldg((there ? from : (const int *)safe) + (there ? i : 0));
    return there ? x : missing;
}
FA_HOOK uint16_t fa__load_half_if(int there, const uint16_t *from, int i, uint16_t missing) {
    uint16_t x;
    asm("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %2, 0;\n\tmov.b16 %0, %3;\n\t@p ld.global.nc.b16 %0, [%1];\n\t}"
        : "=&h"(x)
        : "l"(from + i), "r"(there), "h"(missing));
    return x;
}
/* A row of an array, as one value however many of its elements are read: the compiler would else add each element's
 * number to the row's offset first, in 64 bits. */
FA_HOOK const void *fa__row_address(const void *row) {
    asm("mov.b64 %0, %1;" : "=l"(row) : "l"(row));
    return row;
}

/* ex2.approx.ftz: relative error 2^-22.5; ex2(-inf) = 0 (PTX ISA, ex2). */
FA_HOOK float fa__exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/* rcp.approx and lg2.approx: 1 unit in the last place, and 2^-22 absolutely near 1 (PTX ISA). */
FA_HOOK float fa__reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
FA_HOOK float fa__rsqrt(float x) { return rsqrtf(x); } /* 2 units in the last place */
FA_HOOK float fa__log(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y * FA__LN_2;
}
FA_HOOK float fa__log_accurate(float x) { return logf(x); } /* 1 unit in the last place, without --use_fast_math */
/* tanh.approx: relative error 2^-11 (PTX ISA, tanh). */
FA_HOOK float fa__tanh_approximate(float x) {
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/** @endcond */

#endif
