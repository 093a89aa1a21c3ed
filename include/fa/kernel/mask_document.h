/* mask_document.h: how fa/mask.h tells the class of a block under fa_document and fa_causal_document: by the
 * smallest and the largest id of its queries and of its keys, and where these do not tell, by all ids. */

FA_HOOK const int *fa__document_queries(fa_box box) { return box.args->document_q + (int64_t)box.batch * box.args->seqlen_q; }
FA_HOOK const int *fa__document_keys(fa_box box) { return box.args->document_k + (int64_t)box.batch * box.args->seqlen_k; }
/* The ids of a range: the smallest and the largest. */
typedef struct fa__ids {
    int lowest, highest;
} fa__ids;
typedef struct fa__four_ints {
    int x[4];
} __attribute__((__aligned__(16))) fa__four_ints;
FA_HOOK void fa__ids_add(fa__ids *ids, int a, int b) { /* a GPU finds the smallest of three at once */
    ids->lowest = fa__min(fa__min(a, b), ids->lowest);
    ids->highest = fa__max(fa__max(a, b), ids->highest);
}
FA__HOOK_CALLED fa__ids fa__ids_of(const int *ids, fa_range at) {
    fa__ids of = {INT32_MAX, INT32_MIN};
    int i = at.begin;
#if defined(__CUDA_ARCH__) /* A single thread reads the ids, and waits for every load: many of them at once. */
    for (; i < at.end && (uintptr_t)(ids + i) % 16 != 0; i++) {
        int id = fa__load_int(ids + i);
        fa__ids_add(&of, id, id);
    }
    for (; i + 32 <= at.end; i += 32) {
        fa__four_ints many[8];
        for (int j = 0; j < 8; j++) many[j] = ((const fa__four_ints *)(const void *)(ids + i))[j];
        for (int j = 0; j < 32; j += 2) fa__ids_add(&of, many[j / 4].x[j % 4], many[j / 4].x[j % 4 + 1]);
    }
#endif
    for (; i < at.end; i++) {
        int id = fa__load_int(ids + i);
        fa__ids_add(&of, id, id);
    }
    return of;
}
/* Whether no id of a range is below the one before it. */
FA_HOOK int fa__ids_ordered(const int *ids, fa_range at) {
    int ordered = 1;
    for (int i = at.begin + 1; i < at.end; i++) ordered &= fa__load_int(ids + i - 1) <= fa__load_int(ids + i);
    return ordered;
}
/* The position of the first id of an ordered range that is not below `id`, or the end. */
FA_HOOK int fa__first_id(const int *ids, int begin, int end, int id) {
    while (begin < end) {
        int middle = begin + (end - begin) / 2;
        if (fa__load_int(ids + middle) < id) begin = middle + 1;
        else end = middle;
    }
    return begin;
}
/* Whether two ordered ranges have an id in common. Each in turn jumps to the other's next id. */
FA_HOOK int fa__ids_meet(const int *a, fa_range at_a, const int *b, fa_range at_b) {
    int i = at_a.begin, j = at_b.begin;
    while (i < at_a.end && j < at_b.end) {
        int id = fa__load_int(b + j);
        i = fa__first_id(a, i, at_a.end, id);
        if (i == at_a.end) break;
        int other = fa__load_int(a + i);
        if (other == id) return 1;
        j = fa__first_id(b, j, at_b.end, other);
    }
    return 0;
}

/* The class of a box by the lowest and highest ids of its queries and keys, or -1 if these do not tell whether it is
 * FA_EMPTY or FA_PARTIAL. The mask may be `causal`, too. */
FA_HOOK int fa__document_range_class(fa_box box, fa__ids of_q, fa__ids of_k, int causal) {
    const int of = causal ? (int)fa_causal_tile(NULL, box) : (int)FA_FULL;
    if (of == FA_EMPTY || of_q.highest < of_k.lowest || of_k.highest < of_q.lowest) return FA_EMPTY;
    if (of_q.lowest == of_q.highest && of_k.lowest == of_k.highest) return of;
    int same_end = of_q.lowest == of_k.lowest || of_q.highest == of_k.highest;
    return same_end || of_q.lowest == of_k.highest || of_q.highest == of_k.lowest ? FA_PARTIAL : -1; /* they share an id */
}
/* The class by all ids. */
FA_HOOK fa_tile_class fa__document_class(fa_box box, fa__ids of_q, fa__ids of_k, int causal) {
    const int *ids_q = fa__document_queries(box), *ids_k = fa__document_keys(box), of = fa__document_range_class(box, of_q, of_k, causal);
    if (of >= 0) return (fa_tile_class)of;
    if (fa__ids_ordered(ids_q, box.queries) && fa__ids_ordered(ids_k, box.keys))
        return fa__ids_meet(ids_q, box.queries, ids_k, box.keys) ? FA_PARTIAL : FA_EMPTY;
    for (int i = box.queries.begin; i < box.queries.end; i++) {
        int id = fa__load_int(ids_q + i);
        for (int j = box.keys.begin; id >= of_k.lowest && id <= of_k.highest && j < box.keys.end; j++)
            if (id == fa__load_int(ids_k + j)) return FA_PARTIAL;
    }
    return FA_EMPTY;
}
FA_HOOK fa_tile_class fa__document_tile(fa_box box, int causal) {
    if (!box.args->document_q || !box.args->document_k) return FA_EMPTY;
    return fa__document_class(box, fa__ids_of(fa__document_queries(box), box.queries),
                              fa__ids_of(fa__document_keys(box), box.keys), causal);
}
