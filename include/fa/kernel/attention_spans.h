/* attention_spans.h: what the schedules for GPUs know of fa_span beyond its hooks. */

#if FA__MASK_NEEDS & FA__NEED_SPAN
/* The spans of a box's queries, `most` (a compile-time constant) at most. All lanes of a warp call, and share the
 * work. */
FA__FN fa__spans FA__LOOP(_spans_of_warp)(fa_box box, int most, int lane) {
    const fa__span_rows rows = fa__span_rows_of(box);
    fa__spans of = fa__no_spans();
    FA__UNROLL
    for (int i = 0; i < most; i += FA__LANES) fa__spans_add(&of, fa__span_of(rows, fa__min(box.queries.begin + i + lane, box.queries.end - 1)));
    of.any.begin = FA__OP(lowest)(of.any.begin);
    of.any.end = FA__OP(highest)(of.any.end);
    of.all.begin = FA__OP(highest)(of.all.begin);
    of.all.end = FA__OP(lowest)(of.all.end);
    return of;
}

/* Hides the keys of a tile that the spans of a thread's rows leave out, those beyond the end among them. A warp
 * looks at the edges that cross its part of the tile. */
FA__FN void FA__LOOP(_hide)(float *s, const FA__PARAMS *p, fa_box box, int key0, int thread) {
    const fa__span_rows rows = fa__span_rows_of(box);
    thread = FA__OP(opaque)(thread);
    int begin[FA__LOOP(_qk_ROWS)], end[FA__LOOP(_qk_ROWS)], first = key0 + FA__LOOP(_qk_col)(thread, 0), late = 0, early = 0;
    FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) { /* counted from the thread's first column */
        fa_range span = fa__span_of(rows, fa__min(box.queries.begin + FA__LOOP(_qk_row)(thread, r), box.queries.end - 1));
        begin[r] = fa__max(span.begin, 0) - first;
        end[r] = fa__max(fa__min(span.end, p->args.seqlen_k), 0) - first;
        late |= begin[r] > 0;
        early |= end[r] <= FA__LOOP(_qk_col_offset)(FA__LOOP(_qk_COLS) - 1);
    }
    if (FA__OP(any)(early)) {
        FA__UNROLL
        for (int c = 0; c < FA__LOOP(_qk_COLS); c++) FA__UNROLL
        for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
            float *x = &s[FA__LOOP(_qk_AT)(r, c)];
            *x = FA__LOOP(_qk_col_offset)(c) >= end[r] ? -INFINITY : *x;
        }
    }
    if (FA__OP(any)(late)) {
        FA__UNROLL
        for (int c = 0; c < FA__LOOP(_qk_COLS); c++) FA__UNROLL
        for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
            float *x = &s[FA__LOOP(_qk_AT)(r, c)];
            *x = FA__LOOP(_qk_col_offset)(c) < begin[r] ? -INFINITY : *x;
        }
    }
}
#endif
