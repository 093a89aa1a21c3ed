/* mask_span.h: how fa/mask.h tells the class of a block under fa_span: by what any of its queries see and what all
 * of them do, and where that does not tell, by all spans. */

/* Where the spans of a batch's queries are, and one of them. */
typedef struct fa__span_rows {
    const int *begins, *ends;
} fa__span_rows;
FA_HOOK fa__span_rows fa__span_rows_of(fa_box box) {
    const int64_t row = (int64_t)box.batch * box.args->seqlen_q;
    fa__span_rows rows;
    rows.begins = (const int *)fa__row_address(box.args->span_begin + row);
    rows.ends = (const int *)fa__row_address(box.args->span_end + row);
    return rows;
}
FA_HOOK fa_range fa__span_of(fa__span_rows rows, int query) { return fa__range(fa__load_int(rows.begins + query), fa__load_int(rows.ends + query)); }
/* The spans of some queries: from the first key that any of them sees to the last one, and the keys that all of them
 * see. */
typedef struct fa__spans {
    fa_range any, all;
} fa__spans;
FA_HOOK fa__spans fa__no_spans(void) {
    fa__spans of;
    of.any = fa__range(INT32_MAX, INT32_MIN);
    of.all = fa__range(INT32_MIN, INT32_MAX);
    return of;
}
FA_HOOK void fa__spans_add(fa__spans *of, fa_range span) {
    int sees = span.begin < span.end;
    of->any.begin = fa__min(sees ? span.begin : INT32_MAX, of->any.begin);
    of->any.end = fa__max(sees ? span.end : INT32_MIN, of->any.end);
    of->all.begin = fa__max(span.begin, of->all.begin);
    of->all.end = fa__min(span.end, of->all.end);
}
FA__HOOK_CALLED fa__spans fa__spans_of(fa__span_rows rows, fa_range queries) {
    fa__spans of = fa__no_spans();
    for (int i = queries.begin; i < queries.end; i++) fa__spans_add(&of, fa__span_of(rows, i));
    return of;
}
/* The keys of a box that its queries may see. */
FA_HOOK fa_range fa__spans_keys(fa__spans of, fa_range keys) {
    return fa__range(fa__clamp(of.any.begin, keys.begin, keys.end), fa__clamp(of.any.end, keys.begin, keys.end));
}
FA_HOOK int fa__lies_in(fa_range a, fa_range b) { return b.begin <= a.begin && a.end <= b.end; }
/* The class of some keys, or -1 if these do not tell whether it is FA_EMPTY or FA_PARTIAL. */
FA_HOOK int fa__spans_range_class(fa__spans of, fa_range keys) {
    if (keys.end <= of.any.begin || keys.begin >= of.any.end) return FA_EMPTY;
    return fa__lies_in(keys, of.all) ? FA_FULL : -1;
}
/* Whether a query with this span sees one of some keys. */
FA_HOOK int fa__span_meets(fa_range span, fa_range keys) { return fa__max(span.begin, keys.begin) < fa__min(span.end, keys.end); }
/* The class of a box by all of its queries, from both ends: those in the middle seldom see a key of it if neither the
 * first nor the last does. */
FA_HOOK fa_tile_class fa__span_class(fa_box box, fa__spans spans) {
    const int of = fa__spans_range_class(spans, box.keys);
    const fa__span_rows rows = fa__span_rows_of(box);
    if (of >= 0) return (fa_tile_class)of;
    for (int i = box.queries.begin, j = box.queries.end - 1; i <= j; i++, j--)
        if (fa__span_meets(fa__span_of(rows, i), box.keys) || fa__span_meets(fa__span_of(rows, j), box.keys)) return FA_PARTIAL;
    return FA_EMPTY;
}
