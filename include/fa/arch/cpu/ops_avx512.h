/* ops_avx512.h: the part of cpu/ops.h for AVX-512 (F, BW, VL, DQ): vectors of 64 bytes. Rounds to FA_BF16 by
 * AVX512-BF16 where there is that, too. */
typedef float fa_cpu_vec_2 __attribute__((__vector_size__(64), __may_alias__));
typedef float fa_cpu_any_2 __attribute__((__vector_size__(64), __may_alias__, __aligned__(4)));
typedef float fa__halves_2 __attribute__((__vector_size__(64), __may_alias__, __aligned__(2))); /* two halves where a float would be */
typedef uint16_t fa__sixteen_halves __attribute__((__vector_size__(32), __may_alias__, __aligned__(2)));
typedef int32_t fa_cpu_bits_2 __attribute__((__vector_size__(64)));
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_splat_2(float x) {
    fa_cpu_vec_2 v = {x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
    return v;
}
#define FA__REGISTER "v"
#include <fa/arch/cpu/ops_avx.h>
#undef FA__REGISTER
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_top16_2(fa_cpu_vec_2 a, fa_cpu_vec_2 b) {
    __asm__("vpmaxuw %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_pieces_2(const float *from, int64_t stride) {
    fa_cpu_vec_2 v;
    __asm__("vmovups %1, %x0" : "=v"(v) : "m"(*(const fa_cpu_any_0 *)from));
    __asm__("vinsertf32x4 $1, %1, %0, %0" : "+v"(v) : "m"(*(const fa_cpu_any_0 *)(from + 4 * stride)));
    __asm__("vinsertf32x4 $2, %1, %0, %0" : "+v"(v) : "m"(*(const fa_cpu_any_0 *)(from + 8 * stride)));
    __asm__("vinsertf32x4 $3, %1, %0, %0" : "+v"(v) : "m"(*(const fa_cpu_any_0 *)(from + 12 * stride)));
    return v;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_of_f16_2(const fa_f16 *from) {
    fa_cpu_vec_2 v;
    __asm__("vcvtph2ps %1, %0" : "=v"(v) : "m"(*(const fa__sixteen_halves *)(const void *)from));
    return v;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_of_bf16_2(const fa_bf16 *from) {
    fa_cpu_bits_2 v;
    __asm__("vpmovzxwd %1, %0" : "=v"(v) : "m"(*(const fa__sixteen_halves *)(const void *)from));
    return (fa_cpu_vec_2)(v << 16);
}
/* 32 of them: one operation for a vector, on one unit, where of_bf16 has two. */
FA__CPU_INLINE(2) void fa_cpu_of_bf16_pair_2(fa_cpu_vec_2 *a, fa_cpu_vec_2 *b, const fa_bf16 *from) {
    static const uint16_t twice[64] __attribute__((__aligned__(64))) = {0,  0,  1,  1,  2,  2,  3,  3,  4,  4,  5,  5,  6,  6,  7,  7,
                                                                    8,  8,  9,  9,  10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15,
                                                                    16, 16, 17, 17, 18, 18, 19, 19, 20, 20, 21, 21, 22, 22, 23, 23,
                                                                    24, 24, 25, 25, 26, 26, 27, 27, 28, 28, 29, 29, 30, 30, 31, 31};
    const fa_cpu_vec_2 halves = *(const fa__halves_2 *)(const void *)from, low = *(const fa_cpu_vec_2 *)(const void *)twice,
                       high = *(const fa_cpu_vec_2 *)(const void *)(twice + 32);
    const uint32_t uppers = 0xAAAAAAAAu;
    fa_cpu_vec_2 first, second;
    __asm__("vpermw %1, %2, %0%{%3%}%{z%}" : "=v"(first) : "v"(halves), "v"(low), "Yk"(uppers));
    __asm__("vpermw %1, %2, %0%{%3%}%{z%}" : "=v"(second) : "v"(halves), "v"(high), "Yk"(uppers));
    *a = first, *b = second;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_inverse_2(fa_cpu_vec_2 x) {
    fa_cpu_vec_2 near, correction; /* near: to 2^-14 */
    __asm__("vrcp14ps %1, %0" : "=v"(near) : "v"(x));
    correction = near;
    __asm__("vfnmadd213ps %2, %1, %0" : "+v"(correction) : "v"(x), "v"(fa_cpu_splat_2(2.0f))); /* 2 - x near */
    return near * correction;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_fraction_2(fa_cpu_vec_2 x) {
    fa_cpu_vec_2 fraction;
    __asm__("vreduceps $9, %1, %0" : "=v"(fraction) : "v"(x));
    return fraction;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_raise_2(fa_cpu_vec_2 p, fa_cpu_vec_2 x, const int bounded) {
    if (bounded) __asm__("vscalefps %1, %0, %0" : "+v"(p) : "v"(x));
    else __asm__("vcmpnltps %2, %1, %%k1\n\tvscalefps %1, %0, %0%{%%k1%}%{z%}" : "+v"(p) : "v"(x), "v"(fa_cpu_splat_2(FA__EXP2_LOWEST)) : "k1");
    return p;
}
FA__CPU_INLINE(2) void fa_cpu_widen_2(float *to, const fa_f16 *from) {
    fa_cpu_any_1 wide;
    __asm__("vcvtph2ps %1, %0" : "=v"(wide) : "m"(*(const fa__halves *)from));
    *(fa_cpu_any_1 *)to = wide;
}
FA__CPU_INLINE(2) void fa_cpu_put_f16_2(fa_f16 *to, fa_cpu_vec_2 a, fa_cpu_vec_2 b, int streamed) {
    fa_cpu_vec_2 both;
    fa_cpu_vec_1 high;
    __asm__("vcvtps2ph $0, %1, %t0" : "=v"(both) : "v"(a));
    __asm__("vcvtps2ph $0, %1, %0" : "=v"(high) : "v"(b));
    __asm__("vinsertf64x4 $1, %1, %0, %0" : "+v"(both) : "v"(high));
    if (streamed) __asm__ volatile("vmovntps %1, %0" : "=m"(*(fa_cpu_vec_2 *)(void *)to) : "v"(both));
    else memcpy(to, &both, 64);
}
FA__CPU_INLINE(2) fa_cpu_bits_2 fa_cpu_round_bf16_2(fa_cpu_vec_2 v) {
    fa_cpu_bits_2 u = (fa_cpu_bits_2)v, add = ((u >> 16) & 1) + 0x7FFF, rounded = u | 0x400000;
    __asm__("vcmpordps %1, %1, %%k1\n\tvpaddd %2, %1, %0%{%%k1%}" : "+v"(rounded) : "v"(v), "v"(add) : "k1");
    return rounded;
}
FA__CPU_INLINE(2) void fa_cpu_put_bf16_2(fa_bf16 *to, fa_cpu_vec_2 a, fa_cpu_vec_2 b, int streamed, int by_unit) {
    static const uint16_t uppers[32] __attribute__((__aligned__(64))) = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                                                     33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    fa_cpu_bits_2 low;
    int subnormal = 1;
#if FA__CPU_BF16
    if (by_unit)
        __asm__("vfpclassps $0x20, %1, %%k1\n\tvfpclassps $0x20, %2, %%k2\n\tkortestw %%k1, %%k2"
                : "=@ccnz"(subnormal)
                : "v"(a), "v"(b)
                : "k1", "k2");
    if (!subnormal) __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(low) : "v"(a), "v"(b));
#else
    (void)by_unit;
#endif
    if (subnormal) {
        low = fa_cpu_round_bf16_2(a);
        __asm__("vpermt2w %2, %1, %0"
                : "+v"(low)
                : "v"(*(const fa_cpu_vec_2 *)(const void *)uppers), "v"(fa_cpu_round_bf16_2(b)));
    }
    if (streamed) __asm__ volatile("vmovntps %1, %0" : "=m"(*(fa_cpu_vec_2 *)(void *)to) : "v"(low));
    else memcpy(to, &low, 64);
}
#if FA__CPU_BF16
/* Words of two: those of a, and in the upper halves those of b; subnormal numbers become 0. For processors of which
 * fa__cpu_rounds_bf16() says yes. */
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_pairs_bf16_2(fa_cpu_vec_2 a, fa_cpu_vec_2 b) {
    static const uint16_t in_turn[32] __attribute__((__aligned__(64))) = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                                      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    fa_cpu_vec_2 both;
    __asm__("vcvtne2ps2bf16 %1, %2, %0\n\tvpermw %0, %3, %0" : "=&v"(both) : "v"(a), "v"(b), "v"(*(const fa_cpu_vec_2 *)(const void *)in_turn));
    return both;
}
#endif
FA__CPU_INLINE(2) void fa_cpu_stream_2(void *to, const void *from) {
    fa_cpu_vec_2 v;
    memcpy(&v, from, sizeof v);
    __asm__ volatile("vmovntps %1, %0" : "=m"(*(fa_cpu_vec_2 *)(void *)to) : "v"(v));
}
FA__CPU_INLINE(2) void fa_cpu_narrow_2(fa_f16 *to, const float *from) {
    __asm__("vcvtps2ph $0, %1, %0" : "=m"(*(fa__halves *)to) : "v"(*(const fa_cpu_any_1 *)from));
}
