/* attention_rest.h: hooks that are deferred to the exponentials, whose instructions run under products: in tiles that
 * no mask looks at, and with a maximum that is checked afterwards. For the schedule for every GPU. */

/* Whether a hook is deferred at all. A user's hook may read memory: applied to all scores at once it waits once, but
 * column by column, among products, it waits for each (1.5 to 5 times as slow). A hook of arithmetic alone is 5%
 * faster applied at once up to 96, and as fast from 97 to 128 without a mask; under a band it is faster deferred
 * there, under other masks, where registers are short, 3 to 10% faster at once. A soft cap up to 80 takes 0.92 to
 * 1.02 times as long at once, but not under a prefix. */
#define FA__DEFERS                                                                              \
    (FA__SCORE_NEEDS == FA__NEED_SOFTCAP ? FA__WIDEST > 80 || FA__MASK_IS_PREFIX                 \
                                         : FA__HAS_SCORE && (FA__SCORE_NEEDS || FA__WIDEST > 128 || (FA__WIDEST > 96 && FA__MASK_IS_BAND)))

/* What is deferred of the hook for a part of a tile. */
typedef struct FA__LOOP(_rest) {
    int hook; /* the hook is deferred */
#if FA__BIAS_ROOM
    uint32_t bias; /* where it is: NAME_bias_part() */
#elif FA__BY_EIGHT
    FA__LOOP(_addends) addends;
#elif FA__HOOKED
    int query, key; /* a thread's first ones */
    float distance; /* between them, as in fa_index */
#endif
} FA__LOOP(_rest);

/* Before the products of the part that begins at key0: decides what is deferred, everything possible if `all` and else
 * nothing, and starts loading what that needs from memory. */
FA__FN void FA__LOOP(_defer_rest)(FA__LOOP(_rest) * rest, const FA__PARAMS *p, fa_box box, int key0, int all, int thread) {
#if FA__BY_EIGHT
    rest->hook = all && FA__LOOP(_fetchable)(p, box);
    if (rest->hook) FA__LOOP(_fetch)(&rest->addends, p, box, key0, thread);
#else
    (void)p, (void)box, (void)key0, (void)thread;
    rest->hook = FA__DEFERS && all;
#endif
}

/* Applies hook and mask now; nothing is deferred. */
FA__FN void FA__LOOP(_apply_all)(FA__LOOP(_rest) * rest, float *s, const FA__PARAMS *p, fa_index at, fa_box box, int key0,
                                 int masked, int thread) {
#if FA__BIAS_ROOM
    FA__LOOP(_bias_add)(s, rest->bias, p->scale, 1, 0, FA__LOOP(_qk_COLS));
#endif
    FA__LOOP(_modify)(s, p, at, box, key0, masked, FA__ALL_THERE, thread);
    rest->hook = 0;
#if FA__BY_EIGHT
    memset(&rest->addends, 0, sizeof rest->addends);
#endif
}

/* After the products: applies hook and mask, unless the hook is deferred. */
FA__FN void FA__LOOP(_apply)(FA__LOOP(_rest) * rest, float *s, const FA__PARAMS *p, fa_index at, fa_box box, int key0,
                             int masked, int thread) {
#if FA__HOOKED && !FA__BY_EIGHT
    /* A result that will be dropped is of key 0 and the block's first query: this thread's own may not exist. */
    rest->key = rest->hook * (key0 + FA__LOOP(_qk_col)(thread, 0));
    rest->query = box.queries.begin + rest->hook * FA__LOOP(_qk_row)(thread, 0);
    rest->distance = (float)(rest->key - rest->query - fa__shift(&p->args));
#endif
    if (!rest->hook) FA__LOOP(_apply_all)(rest, s, p, at, box, key0, masked, thread);
}

/* Computes the weights of the columns from `first` up to `last`, in place of the scores; their sums are added to sum[].
 * No branches: where nothing is deferred, addends are zero, and the result of another hook is dropped. `near`, a
 * compile-time constant: as NAME_weigh_near() of fa/softmax.h. */
FA__FN void FA__LOOP(_weigh_rest)(const FA__LOOP(_rest) * rest, const FA__LOOP(_softmax_state) * state, float *s,
                                  const FA__PARAMS *p, fa_index at, float *sum, int first, int last, int near) {
    (void)rest, (void)at, (void)near;
#if FA__BIAS_ROOM
    FA__LOOP(_bias_add)(s, rest->bias, p->scale, rest->hook, first, last);
#elif FA__BY_EIGHT
    FA__LOOP(_add_columns)(&rest->addends, s, rest->hook ? p->scale : 1.0f, first, last);
#elif FA__HOOKED
    const float apart = (float)rest->hook;
    FA__UNROLL
    for (int c = first; c < last; c++) FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
        int offset = FA__LOOP(_qk_col_offset)(c), below = FA__LOOP(_below)(r);
        float *x = &s[FA__LOOP(_qk_AT)(r, c)];
        float y = FA__LOOP(_modify_one)(*x, p, at, rest->query + below * rest->hook, rest->key + offset * rest->hook,
                                        FA__OP(fma)((float)(offset - below), apart, rest->distance), 0, 0);
        *x = rest->hook ? y : *x;
    }
#endif
    if (near) FA__LOOP(_softmax_weigh_columns_near)(state, s, p->scale_log2, s, sum, first, last);
    else FA__LOOP(_softmax_weigh_columns)(state, s, p->scale_log2, s, sum, first, last);
}
