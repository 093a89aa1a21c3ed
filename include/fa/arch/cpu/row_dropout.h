/* cpu/row_dropout.h: dropout of a piece, the words of many counters at a time (fa/philox.h). Included by cpu/row.h. */
#define FA__DROPS

/* The words of `counters` counters from number `counter` on, in their order, and of some more. A counter's four
 * words are the lower halves of words of 64 bits, as products want them; the upper halves may hold anything until
 * the end. */
typedef uint64_t FA__ROW(__wide_words) __attribute__((__vector_size__(4 * FA__CPU_LANES(FA__ISA))));
enum {
    FA__ROW(__COUNTERS) = FA__CPU_LANES(FA__ISA) / 2, /* of a vector */
    FA__ROW(__DRAWN) = 4 * FA__CPU_LANES(FA__ISA)     /* words that are drawn together: of two vectors, so that neither waits for its own last result */
};
FA__FN_CALLED void FA__ROW(__draw_words)(uint32_t *words, int counters, uint64_t counter, uint64_t seed) {
    typedef FA__ROW(__wide_words) wide;
    enum { FA__TWO = 2, FA__AT_ONCE = FA__ROW(__COUNTERS) };
    wide first, by0, by1;
    for (int i = 0; i < FA__AT_ONCE; i++) { /* lanes are in such an order that words come to lie side by side in the end */
        first[i] = (uint64_t)(i / 2 + i % 2 * (FA__AT_ONCE / 2));
        by0[i] = FA__PHILOX_BY0, by1[i] = FA__PHILOX_BY1;
    }
    for (int done = 0; done < counters; done += FA__TWO * FA__AT_ONCE) {
        wide c[FA__TWO][4];
        uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
        FA__UNROLL
        for (int j = 0; j < FA__TWO; j++) {
            c[j][0] = first + (counter + (uint64_t)(done + j * FA__AT_ONCE));
            c[j][1] = c[j][0] >> 32;
            c[j][2] = c[j][3] = c[j][0] ^ c[j][0];
        }
        FA__UNROLL
        for (int round = 0; round < FA__PHILOX_ROUNDS; round++, k0 += FA__PHILOX_STEP0, k1 += FA__PHILOX_STEP1) {
            FA__UNROLL
            for (int j = 0; j < FA__TWO; j++) {
                const wide x = (wide)FA__CPU_OP(wide)((FA__CPU_OP(vec))c[j][0], (FA__CPU_OP(vec))by0);
                const wide y = (wide)FA__CPU_OP(wide)((FA__CPU_OP(vec))c[j][2], (FA__CPU_OP(vec))by1);
                c[j][0] = y >> 32 ^ c[j][1] ^ (uint64_t)k0;
                c[j][1] = y;
                c[j][2] = x >> 32 ^ c[j][3] ^ (uint64_t)k1;
                c[j][3] = x;
            }
        }
        FA__UNROLL
        for (int j = 0; j < FA__TWO; j++) {
            wide two[2];
            for (int i = 0; i < 2; i++) { /* two words, the first one in front */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
                two[i] = c[j][2 * i] << 32 | (c[j][2 * i + 1] & 0xFFFFFFFFu);
#else
                two[i] = (c[j][2 * i] & 0xFFFFFFFFu) | c[j][2 * i + 1] << 32;
#endif
            }
            FA__CPU_OP(any) *to = (FA__CPU_OP(any) *)(void *)(words + 4 * (done + j * FA__AT_ONCE));
            to[0] = FA__CPU_OP(low2)((FA__CPU_OP(vec))two[0], (FA__CPU_OP(vec))two[1]);
            to[1] = FA__CPU_OP(high2)((FA__CPU_OP(vec))two[0], (FA__CPU_OP(vec))two[1]);
        }
    }
}
/* Drops of `count` elements of a piece, a multiple of 16, of which the first is number `element`, and scales the
 * others. */
FA__FN_CALLED void FA__ROW(__drop)(float *x, int count, uint64_t element, const fa_dropout *dropout) {
    uint32_t words[(int)FA__ROW(_LENGTH) + 4 + (int)FA__ROW(__DRAWN)];
    const int sign = INT32_MIN, shift = (int)(element % 4); /* words before the first one's */
    const int last = (int)(uint32_t)(dropout->threshold - 1) ^ sign; /* the largest word that is dropped, in an order that knows signs */
    const FA__CPU_OP(vec) scale = FA__CPU_OP(splat)(dropout->scale);
    if (dropout->threshold > 0) FA__ROW(__draw_words)(words, (count + shift + 3) / 4, dropout->offset + element / 4, dropout->seed);
    for (int i = 0; i < count; i += FA__ROW(_LANES)) {
        FA__CPU_OP(any) *at = (FA__CPU_OP(any) *)(x + i);
        *at *= scale;
        if (dropout->threshold > 0) {
            const FA__CPU_OP(bits) word = (FA__CPU_OP(bits))*(const FA__CPU_OP(any) *)(const void *)(words + shift + i);
            *at = (FA__CPU_OP(vec))((FA__CPU_OP(bits))*at & ((word ^ sign) > last));
        }
    }
}
