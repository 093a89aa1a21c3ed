/* cpu/row_vectors.h: elements of a row from memory into vectors of floats and back, for what is computed in
 * registers: by vectors, and by blocks of them, in their order or in the one that costs least. Included by
 * cpu/row.h. */

/* A copy of `real` elements of `count`, and `fill` behind. */
FA__FN_CALLED const FA__ELEMENT *FA__ROW(__rest)(FA__ELEMENT *rest, const FA__ELEMENT *from, int real, int count, FA__ELEMENT fill) {
    for (int i = 0; i < count; i++) rest[i] = i < real ? from[i] : fill;
    return rest;
}
/* `count` elements from number `begin` on: where they are, or, if there are `real` before those are done, in `rest`,
 * with `fill` behind. */
FA__FN const FA__ELEMENT *FA__ROW(__some)(FA__ELEMENT *rest, const FA__ELEMENT *from, int begin, int real, const int count, FA__ELEMENT fill) {
    if (__builtin_expect(begin + count <= real, 1)) return from + begin;
    return FA__ROW(__rest)(rest, from + begin, real - begin, count, fill);
}
/* A vector of them, and zeros behind. */
FA__FN const FA__ELEMENT *FA__ROW(__from)(FA__ELEMENT *rest, const FA__ELEMENT *from, int begin, int real) {
    return FA__ROW(__some)(rest, from, begin, real, FA__ROW(_LANES), (FA__ELEMENT)0);
}
/* A vector of elements as floats. */
FA__FN FA__CPU_OP(vec) FA__ROW(__widened)(const FA__ELEMENT *from) {
#if FA_DTYPE == FA_F16
    return FA__CPU_OP(of_f16)(from);
#elif FA_DTYPE == FA_BF16
    return FA__CPU_OP(of_bf16)(from);
#else
    return *(const FA__CPU_OP(any) *)from;
#endif
}
/* Two vectors of them. */
FA__FN void FA__ROW(__two)(FA__CPU_OP(vec) * a, FA__CPU_OP(vec) * b, const FA__ELEMENT *from) {
#if FA_DTYPE == FA_BF16 && defined(FA__ISA_AVX512) && FA__ISA == FA__ISA_AVX512
    FA__CPU_OP(of_bf16_pair)(a, b, from);
#else
    *a = FA__ROW(__widened)(from), *b = FA__ROW(__widened)(from + FA__ROW(_LANES));
#endif
}
/* The same in any order: of bf16 without moving them. */
FA__FN void FA__ROW(__pair)(FA__CPU_OP(vec) * a, FA__CPU_OP(vec) * b, const FA__ELEMENT *from) {
#if FA_DTYPE == FA_BF16
    FA__CPU_OP(bits) words;
    memcpy(&words, from, sizeof words);
    *a = (FA__CPU_OP(vec))(words << 16), *b = (FA__CPU_OP(vec))(words & (int32_t)0xFFFF0000);
#else
    FA__ROW(__two)(a, b, from);
#endif
}
/* x with so few bits, about as many as an element has, that differences of elements and this, and sums of these, are
 * hardly rounded. */
FA__FN float FA__ROW(__coarse)(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= FA_DTYPE == FA_BF16 ? 0xFFFF0000u : FA_DTYPE == FA_F16 ? 0xFFFFE000u : 0xFFFFFF00u;
    memcpy(&x, &bits, sizeof x);
    return x;
}
/* Halves without instructions of their own take so much code that what converts a block of them is called. */
#if FA__ISA == FA__ISA_BASE && FA__IS_HALF
#define FA__ROW_FN FA__FN_CALLED
#else
#define FA__ROW_FN FA__FN
#endif
/* A block of them. */
FA__ROW_FN void FA__ROW(__block)(FA__CPU_OP(vec) * v, const FA__ELEMENT *from) {
#if FA__ISA == FA__ISA_BASE && FA__IS_HALF
    for (int i = 0; i < FA__ROW(_BLOCK); i++) ((float *)v)[i] = fa_load_element(from, i, FA_DTYPE); /* vectors, by the compiler */
#else
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_IN_BLOCK); j += 2) FA__ROW(__two)(v + j, v + j + 1, from + j * FA__ROW(_LANES));
#endif
}
/* The same in any order. */
FA__FN void FA__ROW(__shuffled)(FA__CPU_OP(vec) * v, const FA__ELEMENT *from) {
#if FA_DTYPE == FA_BF16
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_IN_BLOCK); j += 2) FA__ROW(__pair)(v + j, v + j + 1, from + j * FA__ROW(_LANES));
#else
    FA__ROW(__block)(v, from);
#endif
}
/* And back. Streamed: past the caches, to a multiple of 64 bytes; by_unit: as fa__cpu_rounds_bf16() says. */
FA__ROW_FN void FA__ROW(__put)(FA__ELEMENT *to, const FA__CPU_OP(vec) * v, int streamed, int by_unit) {
    enum { FA__VECTORS = FA__ROW(_IN_BLOCK), FA__TWO = 2 * FA__ROW(_LANES), FA__IN_A_LINE = FA__ROW(_UNIT) / FA__ROW(_LANES) };
    (void)by_unit;
#if FA__IS_HALF
    FA__UNROLL
    for (int j = 0; j < FA__VECTORS / 2; j++) {
#if FA_DTYPE == FA_F16
        FA__CPU_OP(put_f16)(to + j * FA__TWO, v[2 * j], v[2 * j + 1], streamed);
#else
        FA__CPU_OP(put_bf16)(to + j * FA__TWO, v[2 * j], v[2 * j + 1], streamed, by_unit);
#endif
    }
#else
    if (streamed) {
        FA__UNROLL
        for (int j = 0; j < FA__VECTORS; j += FA__IN_A_LINE) FA__CPU_OP(stream)(to + j * FA__ROW(_LANES), v + j);
    } else {
        FA__UNROLL
        for (int j = 0; j < FA__VECTORS; j++) *(FA__CPU_OP(any) *)(to + j * FA__ROW(_LANES)) = v[j];
    }
#endif
}
#undef FA__ROW_FN
/* A block in the order in which it is widened and rounded by the fewest operations, for what does not ask which
 * element is which. */
FA__FN void FA__ROW(__bring)(FA__CPU_OP(vec) * v, const FA__ELEMENT *from) {
    if (FA__ROW(_SPLIT)) FA__ROW(__shuffled)(v, from);
    else FA__ROW(__block)(v, from);
}
FA__FN void FA__ROW(__bring_back)(FA__ELEMENT *to, const FA__CPU_OP(vec) * v, int streamed, int by_unit) {
#if FA__ROW_SPLIT
    (void)by_unit;
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_IN_BLOCK); j += 2) fa_cpu_put_bf16_pair_1(to + j * FA__ROW(_LANES), v[j], v[j + 1], streamed);
#else
    FA__ROW(__put)(to, v, streamed, by_unit);
#endif
}
/* Where element i is among floats that are in that order. */
FA__FN int FA__ROW(__order)(int i) {
    const int at = i % (2 * FA__ROW(_LANES));
    return FA__ROW(_SPLIT) ? i - at + at % 2 * FA__ROW(_LANES) + at / 2 : i;
}
/* Floats for `real` columns in that order, up to a whole block: in to[], if they are not `from` already, which has a
 * whole number of units. */
FA__FN_CALLED const float *FA__ROW(__arranged)(float *to, const float *from, int real) {
#if FA__ROW_SPLIT
    enum { FA__FLOATS = FA__ROW(_LANES) };
    for (int i = 0; i < real; i += 2 * FA__FLOATS) {
        float even[FA__FLOATS], odd[FA__FLOATS];
        for (int j = 0; j < FA__FLOATS; j++) even[j] = from[i + 2 * j], odd[j] = from[i + 2 * j + 1];
        memcpy(to + i, even, sizeof even), memcpy(to + i + FA__FLOATS, odd, sizeof odd);
    }
#else
    if (real % FA__ROW(_BLOCK) == 0) return from;
    if (to != from) memcpy(to, from, sizeof *to * (size_t)real);
    for (int i = real; i % FA__ROW(_BLOCK) != 0; i++) to[i] = 0.0f;
#endif
    return to;
}
/* A block of a row: where it is, or, if it is not whole, a copy of what there is, in `rest`, and zeros behind it. */
FA__FN const FA__ELEMENT *FA__ROW(__block_of)(FA__ELEMENT *rest, const FA__ELEMENT *row, int i, int cols) {
    return FA__ROW(__some)(rest, row, i, cols, FA__ROW(_BLOCK), (FA__ELEMENT)0);
}
/* Results in the first-level cache to where they belong: by pieces, since memory takes a few KB of one matrix after
 * another sooner than lines of several by turns. */
FA__FN_CALLED void FA__ROW(__deliver)(FA__ELEMENT *to, const FA__ELEMENT *from, int n, int streamed) {
    const int line = 64 / (int)sizeof(FA__ELEMENT);
    int i = 0;
    if (streamed) {
        i = (int)(-(uintptr_t)to % 64 / sizeof(FA__ELEMENT));
        if (i > n) i = n;
        memcpy(to, from, sizeof *to * (size_t)i);
        for (; i + line <= n; i += line) FA__CPU_OP(stream)(to + i, from + i);
    }
    memcpy(to + i, from + i, sizeof *to * (size_t)(n - i));
}
/* Elements of `real` whose blocks may be put where they belong. */
FA__FN int FA__ROW(__fits)(const FA__ELEMENT *to, int real, int streamed) {
    return streamed && (uintptr_t)to % 64 != 0 ? 0 : real / FA__ROW(_BLOCK) * FA__ROW(_BLOCK);
}
/* from * factor + add of `real` floats, in the order of __bring(), to where they belong. */
FA__FN_CALLED void FA__ROW(__scaled)(FA__ELEMENT *to, const float *from, int real, float factor, float add, int streamed) {
    enum { FA__VECTORS = FA__ROW(_IN_BLOCK) };
    const FA__CPU_OP(vec) factors = FA__CPU_OP(splat)(factor), adds = FA__CPU_OP(splat)(add);
    FA__CPU_ALIGNED FA__ELEMENT left[(int)FA__ROW(_LENGTH) + FA__ROW(_BLOCK)]; /* the end, and rows that lie across lines */
    const int fits = FA__ROW(__fits)(to, real, streamed), streams = streamed && fits > 0, by_unit = fa__cpu_rounds_bf16();
    FA__ELEMENT *blocks = fits > 0 ? to : left;
    for (int i = 0; i < real; i += FA__ROW(_BLOCK)) {
        FA__CPU_OP(vec) v[FA__VECTORS];
        const int whole = i + FA__ROW(_BLOCK) <= real;
        FA__UNROLL
        for (int j = 0; j < FA__VECTORS; j++) v[j] = FA__CPU_OP(horner)(((const FA__CPU_OP(any) *)(from + i))[j], factors, adds);
        if (__builtin_expect(whole, 1)) FA__ROW(__bring_back)(blocks + i, v, streams, by_unit);
        else FA__ROW(__bring_back)(left + i, v, 0, by_unit);
    }
    if (fits < real) FA__ROW(__deliver)(to + fits, left + fits, real - fits, streamed);
}
