/* attention_documents.h: what the schedules for GPUs know of fa_document beyond its hooks. */

#if FA__MASK_NEEDS & FA__NEED_DOCUMENT
/* The keys of a tile that belong to a warp's document, a bit each; 0 if its queries belong to several. One load for 32
 * keys, where the hook would load for each. */
FA__FN int FA__LOOP(_own_keys)(uint32_t *own, const FA__PARAMS *p, fa_box box, int key0, int thread) {
    const int *ids_q = fa__document_queries(box), *ids_k = fa__document_keys(box);
    int lane = thread % FA__LANES, last = box.queries.end - 1, rows = FA__LOOP(_qk_ROWS) * 8;
    int query = box.queries.begin + FA__LOOP(_qk_row)(thread - lane, 0);
    int id = fa__load_int(ids_q + fa__min(query, last)), other = fa__load_int(ids_q + fa__min(query + lane % rows, last));
    FA__UNROLL
    for (int i = 0; i < (FA__PART_N + 31) / 32; i++) {
        int key = key0 + i * 32 + lane, there = key < p->args.seqlen_k;
        own[i] = FA__OP(ballot)(there && fa__load_int(ids_k + (there ? key : 0)) == id);
    }
    return !FA__OP(any)(other != id);
}

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

/* Hides all other keys. */
FA__FN void FA__LOOP(_hide)(float *s, const uint32_t *own, int thread) {
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
#endif

#if FA__MASK_NEEDS & FA__WITH_CAUSAL
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
#endif
