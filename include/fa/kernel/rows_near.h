/* rows_near.h: exponentials of a piece of a row relative to a number near its largest, straight from memory (CPU).
 * Every pass over a piece costs time there, one that looks for the largest, too: so weights are relative to what was
 * the largest of some piece before, unless a much larger one comes. Where exponentials of large numbers become
 * infinite, as they do in AVX-512, their sum shows it, and nobody looks for the largest. One fused operation, where
 * there is one, comes before an exponential; what the rounding of `offset` loses is in a factor. */

#define FA__NEAR_MUCH 1e7f
#define FA__NEAR_HIGHER 23.0f /* powers of two by which an element may be above the base */
#define FA__NEAR_PIECES 64.0f  /* whose exponentials are compared with 2^-126 after a piece where one was below that */

#if FA__IS_HALF
/* The largest of a vector's halves as integers with a sign. */
FA__FN int16_t FA__LOOP(__top_word)(FA__CPU_OP(vec) top) {
    fa_cpu_vec_0 part[FA__LOOP(_row_LANES) / 4];
    int16_t word[2];
    memcpy(part, &top, sizeof part);
    FA__UNROLL
    for (int half = FA__LOOP(_row_LANES) / 8; half > 0; half /= 2)
        FA__UNROLL
        for (int j = 0; j < half; j++) part[j] = fa_cpu_max16_0(part[j + half], part[j]);
    part[0] = fa_cpu_max16_0(part[0], FA__SHUFFLE(part[0], part[0], 2, 3, 0, 1));
    part[0] = fa_cpu_max16_0(part[0], FA__SHUFFLE(part[0], part[0], 1, 0, 3, 2));
    memcpy(word, part, sizeof word);
    return word[0] > word[1] ? word[0] : word[1];
}
/* The same of `count` halves, at least two vectors of floats full, all bits inverted or none. */
FA__FN int16_t FA__LOOP(__near_word)(const FA__ELEMENT *z, int count, const int inverted) {
    enum { FA__STRIDE = 2 * FA__LOOP(_row_LANES) };
    FA__CPU_OP(bits) words;
    FA__CPU_OP(vec) top[2];
    int i = 0;
#define FA__NEXT(chain, at) \
    memcpy(&words, z + (at), sizeof words), words = inverted ? ~words : words, top[chain] = FA__CPU_OP(max16)((FA__CPU_OP(vec))words, top[chain])
    memcpy(top, z, sizeof top[0]), top[0] = top[1] = inverted ? (FA__CPU_OP(vec))~(FA__CPU_OP(bits))top[0] : top[0];
    for (; i + 4 * FA__STRIDE <= count; i += 4 * FA__STRIDE)
        FA__UNROLL
        for (int j = 0; j < 4; j++) FA__NEXT(j % 2, i + j * FA__STRIDE);
    for (; i + FA__STRIDE <= count; i += FA__STRIDE) FA__NEXT(0, i);
    FA__NEXT(1, count - FA__STRIDE); /* what is left, and what comes before it once more */
#undef FA__NEXT
    return FA__LOOP(__top_word)(FA__CPU_OP(max16)(top[0], top[1]));
}
#endif
/* The largest of elements, if none is NaN. Halves are compared as integers, which is half of the operations:
 * positive ones are in the same order, and of negative ones, if there are no others, the largest is the least;
 * inverted, the largest. */
FA__FN_CALLED float FA__LOOP(_near_top)(const FA__ELEMENT *z, int count) {
    enum { FA__STRIDE = 2 * FA__LOOP(_row_LANES) };
    float largest = -INFINITY;
    int i = 0;
#if FA__IS_HALF
    if (count >= FA__STRIDE) {
        int16_t word = FA__LOOP(__near_word)(z, count, 0);
        if (word < 0) word = (int16_t)~FA__LOOP(__near_word)(z, count, 1);
        return fa_load_element(&word, 0, FA_DTYPE);
    }
#else
    const FA__CPU_OP(vec) lowest = FA__CPU_OP(splat)(-INFINITY);
    FA__CPU_OP(vec) top[4] = {lowest, lowest, lowest, lowest}; /* chains, which hide their latency */
    for (; i + 2 * FA__STRIDE <= count; i += 2 * FA__STRIDE)
        for (int j = 0; j < 4; j++) top[j] = FA__CPU_OP(max)(FA__LOOP(_row__widened)(z + i + j * FA__LOOP(_row_LANES)), top[j]);
    largest = FA__LOOP(_reduce__join)(FA__CPU_OP(max)(FA__CPU_OP(max)(top[0], top[1]), FA__CPU_OP(max)(top[2], top[3])), 1);
#endif
    for (; i < count; i++) largest = fa__maxf(fa_load_element(z, i, FA_DTYPE), largest);
    return largest;
}

/* The largest element, if none is NaN, from what a loop over all has kept: the largest floats; of halves, the
 * largest words, which say it unless all are negative. */
FA__FN float FA__LOOP(__highest)(FA__CPU_OP(vec) top, const FA__ELEMENT *z, int count) {
#if FA__IS_HALF
    const int16_t word = FA__LOOP(__top_word)(top);
    return word < 0 ? FA__LOOP(_near_top)(z, count) : fa_load_element(&word, 0, FA_DTYPE);
#else
    (void)z, (void)count;
    return FA__LOOP(_reduce__join)(top, 1);
#endif
}

/* The lowest of halves, or 0 if none is negative: as words without a sign these are above all others, and the
 * largest is the lowest. `top`: the largest ones of whole blocks. */
#if FA__IS_HALF && defined(FA__ISA_AVX512) && FA__ISA == FA__ISA_AVX512
#define FA__NEAR_LOWEST(words, top) fa_cpu_top16_2(words, top)
FA__FN float FA__LOOP(__lowest)(FA__CPU_OP(vec) top, const FA__ELEMENT *z, int count) {
    FA__CPU_OP(vec) last;
    memcpy(&last, z + count - 2 * FA__LOOP(_row_LANES), sizeof last);
    const FA__CPU_OP(bits) words = (FA__CPU_OP(bits))FA__NEAR_LOWEST(last, top) ^ (int32_t)0x80008000; /* in the order of words with a sign */
    const int16_t word = (int16_t)(FA__LOOP(__top_word)((FA__CPU_OP(vec))words) ^ 0x8000);
    return word < 0 ? fa_load_element(&word, 0, FA_DTYPE) : 0.0f;
}
#endif

/* What is the same in all of a loop over elements. */
typedef struct FA__LOOP(_near) {
    FA__CPU_OP(vec) scale, offsets, bases;
} FA__LOOP(_near);
/* A round of it: of two vectors of elements from z[i] on, or of what there is before z[count] if they are not
 * `whole`, the exponentials, to to[i] and so on if `keeps`, and added to run[] if `sums`; *top becomes what
 * FA__LOOP(__highest)() or FA__LOOP(__lowest)() is given. As many elements, `ahead` bytes further on, are
 * prefetched. `bounded` and `rough`: exp2_shorts() of arch/cpu/vector.h. */
FA__FN void FA__LOOP(__near_round)(FA__CPU_OP(vec) * run, FA__CPU_OP(vec) * top, float *to, const FA__ELEMENT *z, int i, int count, const int whole,
                                   const FA__LOOP(_near) * by, const size_t ahead, const int keeps, const int sums, const int bounded, const int rough) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__STRIDE = 2 * FA__FLOATS, FA__SHOWS = FA__FLOATS == 16, FA__FUSED = FA__CPU_FUSED(FA__ISA) };
    enum { FA__HALVES = FA__IS_HALF };
    FA__ELEMENT rest[FA__STRIDE], lowest;
    FA__CPU_OP(vec) a, b, words;
    fa_store_element(&lowest, 0, FA_DTYPE, -INFINITY);
    const FA__ELEMENT *from = whole ? z + i : FA__LOOP(_row__some)(rest, z, i, count, FA__STRIDE, lowest);
    if (ahead) FA__LOOP(_row__ask_block)((uintptr_t)(z + i) + ahead);
    if (keeps && !FA__LOOP(_row_SPLIT)) FA__LOOP(_row__two)(&a, &b, from);
    else FA__LOOP(_row__pair)(&a, &b, from);
#if defined(FA__NEAR_LOWEST)
    if (bounded && __builtin_expect(from != rest, 1)) memcpy(&words, from, sizeof words), *top = FA__NEAR_LOWEST(words, *top);
#endif
    if (!FA__SHOWS && FA__HALVES) memcpy(&words, from, sizeof words), *top = FA__CPU_OP(max16)(words, *top);
    else if (!FA__SHOWS) *top = FA__CPU_OP(max)(a, FA__CPU_OP(max)(b, *top));
    if (FA__FUSED) a = FA__CPU_OP(horner)(a, by->scale, by->offsets), b = FA__CPU_OP(horner)(b, by->scale, by->offsets);
    else a = (a - by->bases) * by->scale, b = (b - by->bases) * by->scale;
    a = FA__CPU_OP(exp2_short)(a, bounded, rough), b = FA__CPU_OP(exp2_short)(b, bounded, rough);
    if (keeps) {
        *(FA__CPU_OP(any) *)(to + i) = a;
        if (whole || FA__LOOP(_row_SPLIT) || i + FA__FLOATS < count) *(FA__CPU_OP(any) *)(to + i + FA__FLOATS) = b;
    }
    if (sums) run[0] += a, run[1] += b;
}
/* *sum becomes the sum of 2^((z - base) * scale_log2) of `count` elements, if `sums`; to[], if `keeps`, becomes these
 * powers before they are multiplied by *factor, up to a whole number of units, in the order of FA__LOOP(_row__bring)().
 * Returns whether that is so: else numbers are large, infinite, or NaN, and something else has to be done; or, if it is
 * claimed that none is below 2^-126 (`bounded`), -1 if one is. As much memory as this is, `ahead` bytes further on, is
 * prefetched meanwhile, if that is not 0. */
FA__FN int FA__LOOP(__near_as)(float *sum, float *to, const FA__ELEMENT *z, int count, float base, float scale_log2, float *factor, const size_t ahead,
                               const int keeps, const int sums, const int bounded, const int rough) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__STRIDE = 2 * FA__FLOATS, FA__SHOWS = FA__FLOATS == 16, FA__FUSED = FA__CPU_FUSED(FA__ISA) };
    enum { FA__HALVES = FA__IS_HALF, FA__RUN = FA__CPU_RUN * FA__STRIDE };
    const size_t at_once = FA__STRIDE * sizeof(FA__ELEMENT) % 64 == 0 ? 0 : ahead, evenly = ahead - at_once; /* whole lines in each round */
    const float offset = base * scale_log2;
    const FA__CPU_OP(vec) none = FA__CPU_OP(splat)(0.0f);
    const FA__LOOP(_near) by = {FA__CPU_OP(splat)(scale_log2), FA__CPU_OP(splat)(-offset), FA__CPU_OP(splat)(base)};
    FA__CPU_OP(vec) all = none, run[2] = {none, none}, top = FA__CPU_OP(splat)(base);
    int i = 0;
    if (bounded) top = FA__CPU_OP(splat)(0.0f);
    else if (FA__HALVES) top = FA__CPU_OP(splat)(-0.0f), top = (FA__CPU_OP(vec))((FA__CPU_OP(bits))top | 0x8000); /* the least of such words */
    if (at_once) FA__LOOP(_row__ask)((uintptr_t)z + at_once, count);
    *factor = FA__FUSED ? fa__exp2(-fmaf(base, scale_log2, -offset)) : 1.0f;
    /* Runs, two rounds at a time: with a branch for each, and one that asks for the row's end, the ends of runs,
     * which a processor did not foresee, cost 6 %. */
    for (; sums && i + FA__RUN <= count; all += run[0] + run[1], run[0] = run[1] = none)
        for (const int end = i + FA__RUN; i < end; i += 2 * FA__STRIDE) {
            FA__LOOP(__near_round)(run, &top, to, z, i, count, 1, &by, evenly, keeps, sums, bounded, rough);
            FA__LOOP(__near_round)(run, &top, to, z, i + FA__STRIDE, count, 1, &by, evenly, keeps, sums, bounded, rough);
        }
    for (; i < count; i += FA__STRIDE) FA__LOOP(__near_round)(run, &top, to, z, i, count, 0, &by, evenly, keeps, sums, bounded, rough);
    all += run[0] + run[1];
#if defined(FA__NEAR_LOWEST)
    if (bounded && !(fmaf(FA__LOOP(__lowest)(top, z, count), scale_log2, -offset) >= FA__EXP2_LOWEST)) return -1;
#endif
    if (!sums) return 1;
    *sum = FA__LOOP(_reduce__join)(all, 0) * *factor;
    if (!(*sum < FA__NEAR_MUCH)) return 0; /* nor is NaN */
    return FA__SHOWS || (FA__LOOP(__highest)(top, z, count) - base) * scale_log2 < FA__NEAR_HIGHER;
}
/* The same, but in AVX-512 exponentials of halves are first computed without asking whether one is below 2^-126: if one
 * was, they are computed once more. *far: the pieces for which that is not tried, since one was so lately: such numbers
 * take long. The results do not depend on it. */
FA__FN int FA__LOOP(__near)(float *sum, float *to, const FA__ELEMENT *z, int count, float base, float scale_log2, float *factor, float *far, const size_t ahead,
                            const int keeps, const int sums, const int rough) {
    if (!(fabsf(base * scale_log2) < FA__OFFSET_MOST)) return 0; /* infinite before the first piece */
#if defined(FA__NEAR_LOWEST)
    if (*far == 0.0f && count >= 2 * FA__LOOP(_row_LANES)) {
        const int done = FA__LOOP(__near_as)(sum, to, z, count, base, scale_log2, factor, ahead, keeps, sums, 1, rough);
        if (done >= 0) return done;
        *far = FA__NEAR_PIECES;
    }
    *far -= (float)(*far > 0.0f);
#else
    (void)far;
#endif
    return FA__LOOP(__near_as)(sum, to, z, count, base, scale_log2, factor, ahead, keeps, sums, 0, rough);
}
#undef FA__NEAR_LOWEST
/* Three pieces' lengths further on, two to four being alike: the rows that come next, and these in time for the look
 * for their largest. */
#define FA__NEAR_AHEAD (3 * FA__LOOP(_row_LENGTH) * sizeof(FA__ELEMENT))
FA__FN_CALLED int FA__LOOP(_near_sum)(float *sum, const FA__ELEMENT *z, int count, float base, float scale_log2, float *far) {
    float factor;
    return FA__LOOP(__near)(sum, NULL, z, count, base, scale_log2, &factor, far, FA__NEAR_AHEAD, 0, 1, 0);
}
FA__FN_CALLED int FA__LOOP(_near_keep)(float *sum, float *to, const FA__ELEMENT *z, int count, float base, float scale_log2, float *factor, float *far) {
    return FA__LOOP(__near)(sum, to, z, count, base, scale_log2, factor, far, FA__NEAR_AHEAD, 1, 1, FA__IS_HALF);
}
FA__FN_CALLED int FA__LOOP(_near_again)(float *to, const FA__ELEMENT *z, int count, float base, float scale_log2, float *factor, float *far) {
    return FA__LOOP(__near)(NULL, to, z, count, base, scale_log2, factor, far, 0, 1, 0, FA__IS_HALF);
}
FA__FN_CALLED int FA__LOOP(_near_once)(float *to, const FA__ELEMENT *z, int count, float base, float scale_log2, float *factor, float *far) {
    return FA__LOOP(__near)(NULL, to, z, count, base, scale_log2, factor, far, FA__NEAR_AHEAD, 1, 0, 0);
}
#undef FA__NEAR_AHEAD
#undef FA__NEAR_MUCH
#undef FA__NEAR_HIGHER
#undef FA__NEAR_PIECES
