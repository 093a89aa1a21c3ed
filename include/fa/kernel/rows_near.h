/* rows_near.h: exponentials of a piece of a row relative to a number near its largest, straight from memory (CPU). A pass over a piece
 * takes time there, and so does a pass that looks for the largest: weights may as well be relative to what was the largest of some
 * piece before, unless a much larger one comes. Their sum would show that where exponentials become infinite, as they do in AVX-512:
 * there nobody looks for it. One fused operation, where there is one, comes before an exponential; what the rounding of `offset` loses is in a factor. */

#define FA__NEAR_FAR 1e6f /* numbers times scale_log2 that are below this in size lose nothing else */
#define FA__NEAR_MUCH 1e7f
#define FA__NEAR_HIGHER 23.0f /* powers of two by which an element may be above the base */

/* The largest of elements; NaN are left out. */
FA__FN_CALLED float FA__LOOP(_near_top)(const FA__ELEMENT *z, int count) {
    enum { FA__STRIDE = 2 * FA__LOOP(_row_LANES) };
    const FA__CPU_OP(vec) lowest = FA__CPU_OP(splat)(-INFINITY);
    FA__CPU_OP(vec) a, b, top[4] = {lowest, lowest, lowest, lowest}; /* chains, which hide their latency */
    float largest;
    int i = 0;
    for (; i + 2 * FA__STRIDE <= count; i += 2 * FA__STRIDE) {
        FA__LOOP(_row__pair)(&a, &b, z + i);
        top[0] = FA__CPU_OP(max)(a, top[0]), top[1] = FA__CPU_OP(max)(b, top[1]);
        FA__LOOP(_row__pair)(&a, &b, z + i + FA__STRIDE);
        top[2] = FA__CPU_OP(max)(a, top[2]), top[3] = FA__CPU_OP(max)(b, top[3]);
    }
    largest = FA__LOOP(_reduce__join)(FA__CPU_OP(max)(FA__CPU_OP(max)(top[0], top[1]), FA__CPU_OP(max)(top[2], top[3])), 1);
    for (; i < count; i++) largest = fa__maxf(fa_load_element(z, i, FA_DTYPE), largest);
    return largest;
}

/* sum = the sum of 2^((z - base) * scale_log2) of `count` elements; to[], if there is one, are these before they are multiplied by *factor, up
 * to a whole number of units. Returns whether that is so: else numbers are large, infinite, or NaN, and something else has to be done. */
FA__FN int FA__LOOP(__near)(float *sum, float *to, const FA__ELEMENT *z, int count, float base, float scale_log2, float *factor) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__STRIDE = 2 * FA__FLOATS, FA__SHOWS = FA__FLOATS == 16, FA__FUSED = FA__CPU_FUSED(FA__ISA) };
    const float offset = base * scale_log2;
    const FA__CPU_OP(vec) scale = FA__CPU_OP(splat)(scale_log2), offsets = FA__CPU_OP(splat)(-offset), bases = FA__CPU_OP(splat)(base);
    FA__CPU_OP(vec) a, b, sums[2] = {FA__CPU_OP(splat)(0.0f), FA__CPU_OP(splat)(0.0f)}, top = FA__CPU_OP(splat)(base);
    float rest[FA__STRIDE];
    if (!(fabsf(offset) < FA__NEAR_FAR)) return 0; /* infinite before the first piece */
    *factor = FA__FUSED ? fa__exp2(-fmaf(base, scale_log2, -offset)) : 1.0f;
    for (int i = 0; i < count; i += FA__STRIDE) {
        if (i + FA__STRIDE > count) {
            for (int j = 0; j < FA__STRIDE; j++) rest[j] = i + j < count ? fa_load_element(z, i + j, FA_DTYPE) : -INFINITY;
            a = *(const FA__CPU_OP(any) *)rest, b = *(const FA__CPU_OP(any) *)(rest + FA__FLOATS);
        } else if (to) {
            a = FA__LOOP(_row__vector)(z + i), b = FA__LOOP(_row__vector)(z + i + FA__FLOATS);
        } else {
            FA__LOOP(_row__pair)(&a, &b, z + i);
        }
        if (!FA__SHOWS) top = FA__CPU_OP(max)(a, FA__CPU_OP(max)(b, top));
        if (FA__FUSED) a = FA__CPU_OP(horner)(a, scale, offsets), b = FA__CPU_OP(horner)(b, scale, offsets);
        else a = (a - bases) * scale, b = (b - bases) * scale;
        a = FA__CPU_OP(exp2)(a), b = FA__CPU_OP(exp2)(b);
        if (to) {
            *(FA__CPU_OP(any) *)(to + i) = a;
            if (i + FA__FLOATS < count) *(FA__CPU_OP(any) *)(to + i + FA__FLOATS) = b;
        }
        if (sum) sums[0] += a, sums[1] += b;
    }
    if (!sum) return 1;
    *sum = FA__LOOP(_reduce__join)(sums[0] + sums[1], 0) * *factor;
    return *sum < FA__NEAR_MUCH && (FA__SHOWS || (FA__LOOP(_reduce__join)(top, 1) - base) * scale_log2 < FA__NEAR_HIGHER); /* NaN is neither */
}
FA__FN_CALLED int FA__LOOP(_near_sum)(float *sum, const FA__ELEMENT *z, int count, float base, float scale_log2) {
    float factor;
    return FA__LOOP(__near)(sum, NULL, z, count, base, scale_log2, &factor);
}
FA__FN_CALLED int FA__LOOP(_near_keep)(float *sum, float *to, const FA__ELEMENT *z, int count, float base, float scale_log2, float *factor) {
    return FA__LOOP(__near)(sum, to, z, count, base, scale_log2, factor);
}
FA__FN_CALLED int FA__LOOP(_near_again)(float *to, const FA__ELEMENT *z, int count, float base, float scale_log2, float *factor) {
    return FA__LOOP(__near)(NULL, to, z, count, base, scale_log2, factor);
}
#undef FA__NEAR_FAR
#undef FA__NEAR_MUCH
#undef FA__NEAR_HIGHER
