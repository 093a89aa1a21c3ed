/* attention_addends.h: what the shipped hook fa_bias adds to the scores of a tile, in the schedule for every GPU:
 * loaded before the tile's products. The hook itself would load only when it has the score, and stall. Half types
 * are loaded eight at a time, with the keys in an order that allows it (FA__BY_EIGHT): the lanes of a load are in
 * eight rows, and 4 bytes for each lane take as long as 16. Floats are loaded four at a time. Where tiles have too
 * few keys for that order, the two neighbours that a lane has are loaded. */
enum { FA__LOOP(_loaded_at_once) = FA__BY_EIGHT ? 16 / (int)sizeof(FA__ELEMENT) : 2 };
typedef struct FA__LOOP(_addends) {
    uint32_t x[FA__LOOP(_qk_ROWS) * FA__LOOP(_qk_COLS) * (int)sizeof(FA__ELEMENT) / 4]; /* by rows; halves two to a word */
} FA__LOOP(_addends);

/* Whether all loads of a head are aligned: whether those of others are must not decide how it is computed. */
FA__FN int FA__LOOP(_fetchable)(const FA__PARAMS *p, fa_box box) {
    enum { FA__ONCE = FA__LOOP(_loaded_at_once) };
    return (uintptr_t)FA__LOOP(_bias_of_head)(p, box) % (FA__ONCE * sizeof(FA__ELEMENT)) == 0 && p->args.bias_stride_query % FA__ONCE == 0;
}

/* Starts loading the addends of the tile whose first key is key0; all of its keys exist. */
FA__FN void FA__LOOP(_fetch)(FA__LOOP(_addends) * addends, const FA__PARAMS *p, fa_box box, int key0, int thread) {
    enum { FA__ONCE = FA__LOOP(_loaded_at_once), FA__ONCE_WORDS = FA__ONCE * (int)sizeof(FA__ELEMENT) / 4 };
    const fa_attention_args *a = &p->args;
    int first = key0 + FA__LOOP(_qk_col)(thread, 0);
    const FA__ELEMENT *head = FA__LOOP(_bias_of_head)(p, box);
    const void *from[FA__LOOP(_qk_ROWS)];
    FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
        int query = fa__min(box.queries.begin + FA__LOOP(_qk_row)(thread, r), box.queries.end - 1);
        from[r] = fa__row_address(head + query * a->bias_stride_query + first);
    }
    FA__UNROLL
    for (int c = 0; c < FA__LOOP(_qk_COLS); c += FA__ONCE) {
        int offset = FA__LOOP(_qk_col_offset)(c);
        FA__UNROLL
        for (int r = 0; r < FA__LOOP(_qk_ROWS); r++)
            fa_sm80_load_const(addends->x + (r * FA__LOOP(_qk_COLS) + c) / FA__ONCE * FA__ONCE_WORDS, (const FA__ELEMENT *)from[r] + offset, FA__ONCE_WORDS);
    }
}

/* s = s * scale + addends, in the columns from `first` up to `last`. */
FA__FN void FA__LOOP(_add_columns)(const FA__LOOP(_addends) * addends, float *s, float scale, int first, int last) {
    FA__UNROLL
    for (int c = first; c < last; c++) FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
        const int at = r * FA__LOOP(_qk_COLS) + c;
        float *x = &s[FA__LOOP(_qk_AT)(r, c)];
#if FA__IS_HALF
        float low, high;
        fa_sm80_unpack(&low, &high, addends->x[at / 2], FA_DTYPE);
        *x = FA__OP(fma)(*x, scale, c % 2 ? high : low);
#else
        *x = *x * scale + fa__from_bits(addends->x[at]); /* as the hook itself, which other heads' scores may go through: bits do not tell */
#endif
    }
}
