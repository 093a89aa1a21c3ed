/* mask_span.h: how fa/mask.h tells the class of a block under fa_span: by what any of its queries see and what all of them do, and where that does not
 * tell, by all spans. */

FA_HOOK const int *fa__span_begins(fa_box box) { return box.args->span_begin + (int64_t)box.batch * box.args->seqlen_q; }
FA_HOOK const int *fa__span_ends(fa_box box) { return box.args->span_end + (int64_t)box.batch * box.args->seqlen_q; }
/* The spans of some queries: from the first key that any of them sees to the last one, and the keys that all of them see. */
typedef struct fa__spans {
    fa_range any, all;
} fa__spans;
FA_HOOK fa__spans fa__no_spans(void) {
    fa__spans of;
    of.any = fa__range(INT32_MAX, INT32_MIN);
    of.all = fa__range(INT32_MIN, INT32_MAX);
    return of;
}
FA_HOOK void fa__spans_add(fa__spans *of, int begin, int end) {
    int sees = begin < end;
    of->any.begin = fa__min(sees ? begin : INT32_MAX, of->any.begin);
    of->any.end = fa__max(sees ? end : INT32_MIN, of->any.end);
    of->all.begin = fa__max(begin, of->all.begin);
    of->all.end = fa__min(end, of->all.end);
}
#if defined(__CUDACC__)
FA_HOOK
#else /* not inlined, which would take long to compile */
static __attribute__((FA__NOINLINE, __unused__))
#endif
fa__spans fa__spans_of(const int *begins, const int *ends, fa_range queries) {
    fa__spans of = fa__no_spans();
    for (int i = queries.begin; i < queries.end; i++) fa__spans_add(&of, fa__load_int(begins + i), fa__load_int(ends + i));
    return of;
}
/* The keys of a box that its queries may see. */
FA_HOOK fa_range fa__spans_keys(fa__spans of, fa_range keys) {
    return fa__range(fa__clamp(of.any.begin, keys.begin, keys.end), fa__clamp(of.any.end, keys.begin, keys.end));
}
FA_HOOK int fa__lies_in(fa_range a, fa_range b) { return b.begin <= a.begin && a.end <= b.end; }
/* The class of some keys, or -1 if these do not tell whether it is FA_EMPTY or FA_PARTIAL. */
FA_HOOK int fa__spans_class(fa__spans of, fa_range keys) {
    if (keys.end <= of.any.begin || keys.begin >= of.any.end) return FA_EMPTY;
    return fa__lies_in(keys, of.all) ? FA_FULL : -1;
}
/* Whether a query with this span sees one of some keys. */
FA_HOOK int fa__span_meets(int begin, int end, fa_range keys) { return fa__max(begin, keys.begin) < fa__min(end, keys.end); }
/* The class of a box by all of its queries, from both ends: those in the middle seldom see what neither the first nor the last do. */
FA_HOOK fa_tile_class fa__span_class(fa_box box, fa__spans spans) {
    const int of = fa__spans_class(spans, box.keys), *begins = fa__span_begins(box), *ends = fa__span_ends(box);
    if (of >= 0) return (fa_tile_class)of;
    for (int i = box.queries.begin, j = box.queries.end - 1; i <= j; i++, j--)
        if (fa__span_meets(fa__load_int(begins + i), fa__load_int(ends + i), box.keys) ||
            fa__span_meets(fa__load_int(begins + j), fa__load_int(ends + j), box.keys))
            return FA_PARTIAL;
    return FA_EMPTY;
}
