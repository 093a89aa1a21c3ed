/* attention_documents.h: what the schedules for GPUs know of fa_document and fa_causal_document beyond their hooks. */

#if FA__MASK_NEEDS & FA__NEED_DOCUMENT
/* The lowest and highest of `count` ids (a compile-time constant) from number `begin` on, but none after number `last`:
 * of a lane's share, and, combined, of the warp's if all lanes call. */
FA__FN fa__ids FA__LOOP(_ids_of_lane)(const int *ids, int begin, int last, int count, int lane) {
    fa__ids of = {INT32_MAX, INT32_MIN};
    const int *from = (const int *)fa__row_address(ids);
    FA__UNROLL
    for (int i = 0; i < count; i += FA__LANES) {
        int id = fa__load_int(from + fa__min(begin + fa__min(i + lane, count - 1), last));
        fa__ids_add(&of, id, id);
    }
    return of;
}
FA__FN fa__ids FA__LOOP(_ids_of_warp)(fa__ids of) {
    of.lowest = FA__OP(lowest)(of.lowest);
    of.highest = FA__OP(highest)(of.highest);
    return of;
}

/* The lowest and highest ids of a box's queries, `rows` (a compile-time constant) at most, found by all lanes of a
 * warp. */
FA__FN fa__ids FA__LOOP(_ids_of_queries)(fa_box box, int rows, int lane) {
    return FA__LOOP(_ids_of_warp)(FA__LOOP(_ids_of_lane)(fa__document_queries(box), box.queries.begin, box.queries.end - 1, rows, lane));
}

/* Hides the keys that are not set in a document's bits. */
FA__FN void FA__LOOP(_hide_unset)(float *s, const uint32_t *own, int thread) {
#if FA__ARCH == 90
    FA__UNROLL
    for (int i = 0; i < FA__PART_N / 16; i++)
        fa_sm90_hide_unset(s + FA__LOOP(_qk_AT)(0, i * 4), own[i / 2] >> i % 2 * 16 & 0xFFFF, FA__LOOP(_qk_col)(thread, 0));
#else
    FA__UNROLL
    for (int c = 0; c < FA__LOOP(_qk_COLS); c++) {
        int offset = FA__LOOP(_qk_col_offset)(c), seen = own[offset / 32] >> FA__LOOP(_qk_col)(thread, 0) >> offset % 32 & 1;
        FA__UNROLL
        for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
            float *x = &s[FA__LOOP(_qk_AT)(r, c)];
            *x = seen ? *x : -INFINITY;
        }
    }
#endif
}

/* Hides the keys of a tile that come after the query, if the diagonal crosses it. */
FA__FN void FA__LOOP(_hide_later)(float *s, const FA__PARAMS *p, fa_box box, int key0, int thread) {
    int own = box.queries.begin + fa__shift(&p->args) - key0; /* the first query's place, counted from the first key */
    if (own >= FA__PART_N - 1) return;
    thread = FA__OP(opaque)(thread);
    FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
        int last = own + FA__LOOP(_qk_row)(thread, r) - FA__LOOP(_qk_col)(thread, 0);
        FA__UNROLL
        for (int c = 0; c < FA__LOOP(_qk_COLS); c++) {
            float *x = &s[FA__LOOP(_qk_AT)(r, c)];
            *x = FA__LOOP(_qk_col_offset)(c) > last ? -INFINITY : *x;
        }
    }
}

/* Which of 32 keys, one for each lane, belong to a document: one load, where the hook would load for each. */
FA__FN uint32_t FA__LOOP(_keys_of_document)(const FA__PARAMS *p, const int *ids_k, int key, int id) {
    int there = key < p->args.seqlen_k;
    return FA__OP(ballot)(there && fa__load_int(ids_k + (there ? key : 0)) == id);
}

/* Hides the keys of a tile that are of other documents than a thread's rows, those beyond the end among them, and
 * under a causal mask later ones. A warp looks for the keys of one document after the other, of those that its
 * queries have: mostly one. (It reads their ids anew each time; kept over the loop, they were spilled.) */
FA__FN void FA__LOOP(_hide)(float *s, const FA__PARAMS *p, fa_box box, int key0, int thread) {
    enum { FA__WORDS_N = (FA__PART_N + 31) / 32, FA__WARP_M = FA__LOOP(_qk_ROWS) * 8 };
    const int *ids_k = fa__document_keys(box), lane = thread % FA__LANES, warp_row = FA__LOOP(_qk_row)(thread - lane, 0);
    const int id_of_lane = fa__load_int(fa__document_queries(box) + fa__min(box.queries.begin + warp_row + lane % FA__WARP_M, box.queries.end - 1));
    int id = FA__OP(from_lane)(id_of_lane, 0);
    uint32_t own[FA__WORDS_N];
    FA__UNROLL
    for (int i = 0; i < FA__WORDS_N; i++) own[i] = FA__LOOP(_keys_of_document)(p, ids_k, key0 + i * 32 + lane, id);
    uint32_t others = FA__OP(ballot)(id_of_lane != id);
    if (!others) FA__LOOP(_hide_unset)(s, own, thread);
    else {
        if (FA__ARCH == 80) thread = FA__OP(opaque)(thread); /* fewer spills, and up to 2% faster */
        uint32_t seen[FA__LOOP(_qk_ROWS)][FA__WORDS_N]; /* of each row's document */
        int mine[FA__LOOP(_qk_ROWS)];
        FA__UNROLL
        for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
            mine[r] = FA__OP(from_lane)(id_of_lane, FA__LOOP(_qk_row)(thread, r) - warp_row);
            FA__UNROLL
            for (int i = 0; i < FA__WORDS_N; i++) seen[r][i] = own[i];
        }
        FA__ROLL
        while (others) {
            id = FA__OP(from_lane)(id_of_lane, FA__OP(lowest_bit)(others));
            others &= ~FA__OP(ballot)(id_of_lane == id);
            FA__UNROLL
            for (int i = 0; i < FA__WORDS_N; i++) {
                uint32_t bits = FA__LOOP(_keys_of_document)(p, ids_k, key0 + i * 32 + lane, id);
                FA__UNROLL
                for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) seen[r][i] = mine[r] == id ? bits : seen[r][i];
            }
        }
        FA__UNROLL
        for (int c = 0; c < FA__LOOP(_qk_COLS); c++) FA__UNROLL
        for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
            int offset = FA__LOOP(_qk_col_offset)(c);
            float *x = &s[FA__LOOP(_qk_AT)(r, c)];
            *x = seen[r][offset / 32] >> FA__LOOP(_qk_col)(thread, 0) >> offset % 32 & 1 ? *x : -INFINITY;
        }
    }
    if (FA__MASK_NEEDS & FA__WITH_CAUSAL) FA__LOOP(_hide_later)(s, p, box, key0, thread);
}
#endif
