/* attention_addends.h: what the shipped hooks fa_bias (of half types) and fa_key_bias add to the scores of a whole tile, brought
 * from memory before the tile's products, and halves two at once. The hook itself, which asks when it has the score, stands and
 * waits. */

#if FA__SCORE_NEEDS == FA__NEED_BIAS
#define FA__ADDENDS 1 /* pairs of halves, for each row */
#elif FA__SCORE_NEEDS == FA__NEED_KEY_BIAS
#define FA__ADDENDS 2 /* floats, for all rows */
#else
#define FA__ADDENDS 0
#endif

#if FA__ADDENDS
typedef struct FA__LOOP(_addends) {
    uint32_t x[FA__LOOP(_qk_COLS)]; /* by pairs of columns; of halves both rows, of floats both columns */
} FA__LOOP(_addends);

/* Whether pairs of halves are aligned everywhere. */
FA__FN int FA__LOOP(_fetchable)(const FA__PARAMS *p) {
#if FA__ADDENDS == 1
    const fa_attention_args *a = &p->args;
    return (uintptr_t)a->bias % 4 == 0 && (a->bias_stride_batch | a->bias_stride_head | a->bias_stride_query) % 2 == 0;
#else
    (void)p;
    return 1;
#endif
}

/* Asks for the addends of the tile whose first key is key0, all of whose keys there are. */
FA__FN void FA__LOOP(_fetch)(FA__LOOP(_addends) * addends, const FA__PARAMS *p, fa_box box, int key0, int thread) {
    const fa_attention_args *a = &p->args;
    int first = key0 + FA__LOOP(_qk_col)(thread, 0);
#if FA__ADDENDS == 1
    const uint16_t *head = (const uint16_t *)a->bias + box.batch * a->bias_stride_batch + box.head * a->bias_stride_head;
    const void *from[FA__LOOP(_qk_ROWS)];
    FA__REQUIRE(FA__LOOP(_qk_ROWS) == 2, "a thread has two rows");
    FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
        int query = fa__min(box.queries.begin + FA__LOOP(_qk_row)(thread, r), box.queries.end - 1);
        from[r] = fa__row_address(head + query * a->bias_stride_query + first);
    }
#else
    const float *head = a->key_bias + box.batch * a->key_bias_stride_batch + box.head * a->key_bias_stride_head;
    const void *from = fa__row_address(head + first);
#endif
    FA__UNROLL
    for (int c = 0; c < FA__LOOP(_qk_COLS); c += 2) {
        int offset = FA__LOOP(_qk_col_offset)(c);
        FA__UNROLL
        for (int i = 0; i < 2; i++) {
#if FA__ADDENDS == 1
            addends->x[c + i] = (uint32_t)fa__load_int((const int *)((const uint16_t *)from[i] + offset));
#else
            addends->x[c + i] = (uint32_t)fa__load_int((const int *)from + offset + i);
#endif
        }
    }
}

/* s = s * scale + addends. */
FA__FN void FA__LOOP(_add)(const FA__LOOP(_addends) * addends, float *s, const FA__PARAMS *p) {
    FA__UNROLL
    for (int c = 0; c < FA__LOOP(_qk_COLS); c++) FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
        float *x = &s[FA__LOOP(_qk_AT)(r, c)];
#if FA__ADDENDS == 1
        uint32_t pair = addends->x[c / 2 * 2 + r];
#if FA_DTYPE == FA_BF16
        float y = fa__from_bits(c % 2 ? pair & 0xFFFF0000u : pair << 16);
#else
        float y = fa_f16_to_float((uint16_t)(c % 2 ? pair >> 16 : pair));
#endif
#else
        float y = fa__from_bits(addends->x[c]);
#endif
        *x = FA__OP(fma)(*x, p->scale, y);
    }
}
#endif
