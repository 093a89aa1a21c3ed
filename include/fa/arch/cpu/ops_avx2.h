/* ops_avx2.h: the part of cpu/ops.h for AVX2, with FMA and F16C: vectors of 32 bytes. */
typedef float fa_cpu_vec_1 __attribute__((__vector_size__(32), __may_alias__));
typedef float fa_cpu_any_1 __attribute__((__vector_size__(32), __may_alias__, __aligned__(4)));
typedef int32_t fa_cpu_bits_1 __attribute__((__vector_size__(32)));
typedef uint16_t fa__halves __attribute__((__vector_size__(16), __may_alias__, __aligned__(2)));
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_splat_1(float x) {
    fa_cpu_vec_1 v = {x, x, x, x, x, x, x, x};
    return v;
}
#define FA__REGISTER "x"
#include <fa/arch/cpu/ops_avx.h>
#undef FA__REGISTER
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_pieces_1(const float *from, int64_t stride) {
    fa_cpu_vec_1 v;
    __asm__("vmovups %1, %x0" : "=x"(v) : "m"(*(const fa_cpu_any_0 *)from));
    __asm__("vinsertf128 $1, %1, %0, %0" : "+x"(v) : "m"(*(const fa_cpu_any_0 *)(from + 4 * stride)));
    return v;
}
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_of_f16_1(const fa_f16 *from) {
    fa_cpu_vec_1 v;
    __asm__("vcvtph2ps %1, %0" : "=x"(v) : "m"(*(const fa__halves *)from));
    return v;
}
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_of_bf16_1(const fa_bf16 *from) {
    fa_cpu_bits_1 v;
    __asm__("vpmovzxwd %1, %0" : "=x"(v) : "m"(*(const fa__halves *)from));
    return (fa_cpu_vec_1)(v << 16);
}
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_inverse_1(fa_cpu_vec_1 x) { return 1.0f / x; } /* 2^-11, which vrcpps has, squared is not enough */
FA__CPU_INLINE(1) void fa_cpu_widen_1(float *to, const fa_f16 *from) {
    *(fa_cpu_any_1 *)to = fa_cpu_of_f16_1(from);
}
FA__CPU_INLINE(1) void fa_cpu_narrow_1(fa_f16 *to, const float *from) {
    __asm__("vcvtps2ph $0, %1, %0"
            : "=m"(*(fa__halves *)to)
            : "x"(*(const fa_cpu_any_1 *)from)); /* 0: to nearest even */
}
FA__CPU_INLINE(1) void fa_cpu_put_f16_1(fa_f16 *to, fa_cpu_vec_1 a, fa_cpu_vec_1 b, int streamed) {
    fa__halves low, high;
    __asm__("vcvtps2ph $0, %1, %0" : "=x"(low) : "x"(a));
    __asm__("vcvtps2ph $0, %1, %0" : "=x"(high) : "x"(b));
    if (streamed) {
        __asm__ volatile("vmovntps %1, %0" : "=m"(((fa__halves *)to)[0]) : "x"(low));
        __asm__ volatile("vmovntps %1, %0" : "=m"(((fa__halves *)to)[1]) : "x"(high));
    } else {
        memcpy(to, &low, 16), memcpy(to + 8, &high, 16);
    }
}
/* As fa_bf16_from_float() has it, in the upper halves of words: 0x8000, half of a unit, is added, or 0x7FFF if the
 * upper half is even, so that ties become even; NaN becomes quiet. */
FA__CPU_INLINE(1) fa_cpu_bits_1 fa_cpu_round_number_bf16_1(fa_cpu_vec_1 v) {
    typedef uint32_t words __attribute__((__vector_size__(sizeof(fa_cpu_vec_1)))); /* whose sums may wrap around: those of NaN, which are dropped */
    const words u = (words)v;
    return (fa_cpu_bits_1)(u + ((u >> 16 & 1) + 0x7FFF));
}
FA__CPU_INLINE(1) fa_cpu_bits_1 fa_cpu_round_bf16_1(fa_cpu_vec_1 v) {
    fa_cpu_bits_1 quiet = (fa_cpu_bits_1)v | 0x400000, rounded = fa_cpu_round_number_bf16_1(v);
    __asm__("vblendvps %2, %1, %0, %0" : "+x"(rounded) : "x"(quiet), "x"(v != v));
    return rounded;
}
/* Two vectors of them. NaN, of which there is none as a rule, takes another way. */
FA__CPU_INLINE(1) void fa_cpu_round_two_bf16_1(fa_cpu_bits_1 *low, fa_cpu_bits_1 *high, fa_cpu_vec_1 a, fa_cpu_vec_1 b) {
    fa_cpu_vec_1 nan;
    int some;
    __asm__("vcmpunordps %2, %1, %0" : "=x"(nan) : "x"(a), "x"(b));
    __asm__("vmovmskps %1, %0" : "=r"(some) : "x"(nan));
    if (__builtin_expect(some, 0)) *low = fa_cpu_round_bf16_1(a), *high = fa_cpu_round_bf16_1(b);
    else *low = fa_cpu_round_number_bf16_1(a), *high = fa_cpu_round_number_bf16_1(b);
}
FA__CPU_INLINE(1) void fa_cpu_put_words_1(fa_bf16 *to, fa_cpu_bits_1 x, int streamed) {
    if (streamed) __asm__ volatile("vmovntps %1, %0" : "=m"(*(fa_cpu_vec_1 *)(void *)to) : "x"(x));
    else memcpy(to, &x, 32);
}
FA__CPU_INLINE(1) void fa_cpu_put_bf16_1(fa_bf16 *to, fa_cpu_vec_1 a, fa_cpu_vec_1 b, int streamed, int by_unit) {
    fa_cpu_bits_1 low, high;
    (void)by_unit;
    fa_cpu_round_two_bf16_1(&low, &high, a, b);
    __asm__("vpsrld $16, %0, %0\n\tvpsrld $16, %1, %1\n\tvpackusdw %1, %0, %0\n\tvpermq $0xD8, %0, %0" : "+x"(low), "+x"(high));
    fa_cpu_put_words_1(to, low, streamed);
}
/* Of elements at even places, and at odd ones: what is rounded lies where it belongs, in the upper halves of words,
 * so that a shift and a choice are left. */
FA__CPU_INLINE(1) void fa_cpu_put_bf16_pair_1(fa_bf16 *to, fa_cpu_vec_1 even, fa_cpu_vec_1 odd, int streamed) {
    fa_cpu_bits_1 low, high;
    fa_cpu_round_two_bf16_1(&low, &high, even, odd);
    __asm__("vpsrld $16, %0, %0\n\tvpblendw $0xAA, %1, %0, %0" : "+x"(low) : "x"(high));
    fa_cpu_put_words_1(to, low, streamed);
}
FA__CPU_INLINE(1) void fa_cpu_stream_1(void *to, const void *from) {
    for (int i = 0; i < 2; i++) {
        fa_cpu_vec_1 v;
        memcpy(&v, (const char *)from + (size_t)i * sizeof v, sizeof v);
        __asm__ volatile("vmovntps %1, %0" : "=m"(((fa_cpu_vec_1 *)to)[i]) : "x"(v));
    }
}
