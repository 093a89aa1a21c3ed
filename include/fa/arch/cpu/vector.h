/* cpu/vector.h: exponentials, transposition, and what the softmax does to a column of scores, in vectors of the set
 * FA__ISA. cpu/ops.h includes it once for each. Of scalar code for these, compilers make vectors only where they
 * happen to keep its selections free of branches. */

#if !defined(FA__ISA_AVX512) || FA__ISA != FA__ISA_AVX512
/* 2^(f + 1) for |f| <= 1/2: the polynomial of fa__exp2_cpu(), or one of `fewer` terms less, one or two (minimax in
 * relative error, 9.2e-8, 2.6e-6). */
FA__CPU_INLINE(FA__ISA) FA__CPU_OP(vec) FA__CPU_OP(exp2_series)(FA__CPU_OP(vec) f, const int fewer) {
    FA__CPU_OP(vec) p = FA__CPU_OP(splat)(2.0f * (fewer == 2 ? 9.57010191e-3f : fewer ? 1.32646716e-3f : FA__EXP2_FIRST));
#define FA__TERM(coefficient) p = FA__CPU_OP(horner)(p, f, FA__CPU_OP(splat)(2.0f * coefficient));
    if (fewer == 2) {
        FA__TERM(5.59178603e-2f) FA__TERM(2.40247448e-1f) FA__TERM(6.93121815e-1f) FA__TERM(9.99999261e-1f)
    } else if (fewer) {
        FA__TERM(9.67147104e-3f) FA__TERM(5.55073355e-2f) FA__TERM(2.40222425e-1f) FA__TERM(6.93146982e-1f) FA__TERM(1.0f)
    } else {
        FA__EXP2_OTHERS(FA__TERM)
    }
#undef FA__TERM
    return p;
}
/* 2^(n - 1) of what has n + 126 in its low bits. */
FA__CPU_INLINE(FA__ISA) FA__CPU_OP(vec) FA__CPU_OP(exponent)(FA__CPU_OP(vec) shifted) {
    return (FA__CPU_OP(vec))((FA__CPU_OP(bits))shifted << 23);
}
FA__CPU_INLINE(FA__ISA) FA__CPU_OP(vec) FA__CPU_OP(exp2_by)(FA__CPU_OP(vec) x, const int fewer) {
    FA__IN_ORDER
    const FA__CPU_OP(vec) shift = FA__CPU_OP(splat)(FA__EXP2_SHIFT);
    FA__CPU_OP(vec) clamped = FA__CPU_OP(max)(FA__CPU_OP(splat)(FA__EXP2_LOWEST), x), shifted = clamped + shift;
    return FA__CPU_OP(exp2_series)(clamped - (shifted - shift), fewer) * FA__CPU_OP(exponent)(shifted);
}
#endif

/* 2^x as fa__exp2_cpu() has it. AVX-512 has two thirds as many operations: f = x - floor(x), the polynomial is
 * minimax in relative error (2.1e-9) for 0 <= f < 1, and the largest error 0.89 units in the last place. */
FA__CPU_INLINE(FA__ISA) FA__CPU_OP(vec) FA__CPU_OP(exp2)(FA__CPU_OP(vec) x) {
#if defined(FA__ISA_AVX512) && FA__ISA == FA__ISA_AVX512
    fa_cpu_vec_2 f = fa_cpu_fraction_2(x), p = fa_cpu_splat_2(2.15672568e-4f);
    p = fa_cpu_horner_2(p, f, fa_cpu_splat_2(1.24820229e-3f));
    p = fa_cpu_horner_2(p, f, fa_cpu_splat_2(9.67379287e-3f));
    p = fa_cpu_horner_2(p, f, fa_cpu_splat_2(5.54861799e-2f));
    p = fa_cpu_horner_2(p, f, fa_cpu_splat_2(2.40229085e-1f));
    p = fa_cpu_horner_2(p, f, fa_cpu_splat_2(6.93147063e-1f));
    return fa_cpu_raise_2(fa_cpu_horner_2(p, f, fa_cpu_splat_2(1.0f)), x, 0);
#else
    return FA__CPU_OP(exp2_by)(x, 0);
#endif
}

/* The same of `count` vectors, at most four, with one operation less, for sums and for what is rounded in the end:
 * the polynomial's error is 8.3e-8 in AVX-512, and that of the result 1.9 units in the last place at most. rough:
 * with one more operation less, for what is nothing but rounded to half types: the error is 2.7e-6, a hundredth of
 * what rounding to FA_F16 may lose. bounded: every x is -infinity or not below FA__EXP2_LOWEST (AVX-512). There they
 * go side by side from step to step: a core looks a few dozen operations ahead, and has more of them that do not
 * wait for each other. */
FA__CPU_INLINE(FA__ISA) void FA__CPU_OP(exp2_shorts)(FA__CPU_OP(vec) * x, const int count, const int bounded, const int rough) {
#if defined(FA__ISA_AVX512) && FA__ISA == FA__ISA_AVX512
    fa_cpu_vec_2 f[4], p[4];
    for (int j = 0; j < count; j++) f[j] = fa_cpu_fraction_2(x[j]), p[j] = fa_cpu_splat_2(rough ? 1.35341679e-2f : 1.86713008e-3f);
#define FA__TERM(coefficient) \
    for (int j = 0; j < count; j++) p[j] = fa_cpu_horner_2(p[j], f[j], fa_cpu_splat_2(coefficient));
    if (rough) {
        FA__TERM(5.20114606e-2f) FA__TERM(2.41442757e-1f) FA__TERM(6.93003834e-1f) FA__TERM(1.00000259f)
    } else {
        FA__TERM(9.01703029e-3f) FA__TERM(5.57999132e-2f) FA__TERM(2.40164450e-1f) FA__TERM(6.93151312e-1f) FA__TERM(1.0f)
    }
#undef FA__TERM
    for (int j = 0; j < count; j++) x[j] = fa_cpu_raise_2(p[j], x[j], bounded);
#else
    (void)bounded;
    for (int j = 0; j < count; j++) x[j] = FA__CPU_OP(exp2_by)(x[j], 1 + rough);
#endif
}
FA__CPU_INLINE(FA__ISA) FA__CPU_OP(vec) FA__CPU_OP(exp2_short)(FA__CPU_OP(vec) x, const int bounded, const int rough) {
    FA__CPU_OP(exp2_shorts)(&x, 1, bounded, rough);
    return x;
}

/* x = 1 / (1 + exp(-x)) of `count` vectors, at most four, of what is not below FA__SIGMOID_LOWEST, to (2 + abs(x) /
 * 7) 1e-7 of itself with AVX2, elsewhere (2 + 3 abs(x) / 4) 1e-7. Above -FA__SIGMOID_LOWEST the exponential is that
 * of FA__SIGMOID_LOWEST instead of -x (but for AVX-512): the result is 1 in any case. NaN stays NaN. */
FA__CPU_INLINE(FA__ISA) void FA__CPU_OP(sigmoids)(FA__CPU_OP(vec) * x, const int count) {
    FA__IN_ORDER
#if defined(FA__ISA_AVX512) && FA__ISA == FA__ISA_AVX512
    for (int j = 0; j < count; j++) x[j] *= -FA__LOG2_E;
    fa_cpu_exp2_shorts_2(x, count, 0, 0);
    for (int j = 0; j < count; j++) x[j] += 1.0f;
    for (int j = 0; j < count; j++) x[j] = fa_cpu_inverse_2(x[j]);
#else
    const FA__CPU_OP(vec) shift = FA__CPU_OP(splat)(FA__EXP2_SHIFT), factor = FA__CPU_OP(splat)(FA__LOG2_E);
    for (int j = 0; j < count; j++) {
        FA__CPU_OP(vec) minus = FA__CPU_OP(max)(FA__CPU_OP(splat)(FA__SIGMOID_LOWEST), -x[j]), shifted = FA__CPU_OP(fma)(minus, factor, shift);
        FA__CPU_OP(vec) p = FA__CPU_OP(exp2_series)(FA__CPU_OP(fma)(minus, factor, shift - shifted), 1);
        x[j] = FA__CPU_OP(inverse)(FA__CPU_OP(fma)(p, FA__CPU_OP(exponent)(shifted), FA__CPU_OP(splat)(1.0f)));
    }
#endif
}

/* column[i] = four columns, of as many rows as a vector has elements. from: element (0, 0) of rows `stride` floats
 * apart. */
FA__CPU_INLINE(FA__ISA) void FA__CPU_OP(columns)(FA__CPU_OP(vec) column[4], const float *from, int64_t stride) {
    FA__CPU_OP(vec) a = FA__CPU_OP(pieces)(from, stride), b = FA__CPU_OP(pieces)(from + stride, stride);
    FA__CPU_OP(vec)
    c = FA__CPU_OP(pieces)(from + 2 * stride, stride),
    d = FA__CPU_OP(pieces)(from + 3 * stride, stride);
    FA__CPU_OP(vec) ab = FA__CPU_OP(low)(a, b), cd = FA__CPU_OP(low)(c, d);
    column[0] = FA__CPU_OP(low2)(ab, cd);
    column[1] = FA__CPU_OP(high2)(ab, cd);
    ab = FA__CPU_OP(high)(a, b), cd = FA__CPU_OP(high)(c, d);
    column[2] = FA__CPU_OP(low2)(ab, cd);
    column[3] = FA__CPU_OP(high2)(ab, cd);
}

/* x[i] = 2^x[i] */
FA__CPU_INLINE(FA__ISA) void FA__CPU_OP(exp2_rows)(float *x, int n) {
    enum { FA__FLOATS = FA__CPU_LANES(FA__ISA) };
    int i = 0;
    for (; i + FA__FLOATS <= n; i += FA__FLOATS) {
        FA__CPU_OP(any) *at = (FA__CPU_OP(any) *)(x + i);
        *at = FA__CPU_OP(exp2)(*at);
    }
    for (; i < n; i++) x[i] = fa__exp2_cpu(x[i]);
}

/* s[i] = 2^(s[i] * scale + offset[i]), or wide: 2^((s[i] + offset[i]) * scale); sum[i] += s[i]. shorter: by
 * exp2_short(), for half types */
FA__CPU_INLINE(FA__ISA)
void FA__CPU_OP(weights)(float *s, float *sum, float scale, const float *offset, int n, const int wide, const int shorter) {
    enum { FA__FLOATS = FA__CPU_LANES(FA__ISA) };
    int i = 0;
    for (; i + FA__FLOATS <= n; i += FA__FLOATS) {
        FA__CPU_OP(any) *at = (FA__CPU_OP(any) *)(s + i), *total = (FA__CPU_OP(any) *)(sum + i);
        FA__CPU_OP(vec) factor = FA__CPU_OP(splat)(scale), add = *(const FA__CPU_OP(any) *)(offset + i);
        FA__CPU_OP(vec)
        weight = wide ? FA__CPU_OP(horner)(*at + add, factor, FA__CPU_OP(splat)(0.0f))
                      : FA__CPU_OP(horner)(*at, factor, add);
        *at = weight = shorter ? FA__CPU_OP(exp2_short)(weight, 0, 0) : FA__CPU_OP(exp2)(weight);
        *total += weight;
    }
    for (; i < n; i++) sum[i] += s[i] = fa__exp2_cpu(wide ? (s[i] + offset[i]) * scale : s[i] * scale + offset[i]);
}
