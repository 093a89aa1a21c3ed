/* attention_line.h: ALiBi (fa/score.h, fa_alibi) where it is a line, in a tile on one side of the diagonal: instead of the hook on
 * every score, a term of its exponent. */

/* What ALiBi adds to the exponents of a tile: start + slope * (column - a thread's first), start by row. side is 0 if it does
 * not, and else the slope's sign. */
typedef struct FA__LOOP(_line) {
    int side;
    float slope, start[FA__LOOP(_qk_ROWS)];
} FA__LOOP(_line);

FA__FN void FA__LOOP(_draw_line)(FA__LOOP(_line) * line, const FA__PARAMS *p, fa_box box, int key0, int thread) {
    int shift = p->args.seqlen_k - p->args.seqlen_q;
    line->side = key0 + FA__PART_N <= box.queries.begin + shift + 1 ? 1 : key0 >= box.queries.end - 1 + shift ? -1 : 0;
    line->slope = (float)line->side * p->args.alibi_slopes[box.head] * p->scale_log2;
    FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
        int query = fa__min(box.queries.begin + FA__LOOP(_qk_row)(thread, r), box.queries.end - 1);
        line->start[r] = line->slope * (float)(key0 + FA__LOOP(_qk_col)(thread, 0) - query - shift);
    }
}

/* NAME_weigh_columns() of fa/softmax.h for scores to which a line is added, if side is not 0. */
FA__FN void FA__LOOP(_weigh_line_columns)(const FA__LOOP(_line) * line, const FA__LOOP(_softmax_state) * state, const float *s,
                                          const FA__PARAMS *p, float *weights, float *sum, int first, int last) {
    float start[FA__LOOP(_qk_ROWS)], scale = line->side ? p->scale * p->scale_log2 : p->scale_log2;
    FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++)
        start[r] = line->start[r] + FA__LOOP(_softmax_offset)(state->max[r], p->scale_log2);
    FA__UNROLL
    for (int c = first; c < last; c++) FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
        int at = FA__LOOP(_qk_AT)(r, c);
        float along = FA__OP(fma)(line->slope, (float)FA__LOOP(_qk_col_offset)(c), start[r]);
        weights[at] = fa__exp2(FA__OP(fma)(s[at], scale, along));
        sum[r] += weights[at];
    }
}

/* NAME_weigh() of fa/softmax.h for scores to which a line is added. */
FA__FN void FA__LOOP(_weigh_line)(const FA__LOOP(_line) * line, const FA__LOOP(_softmax_state) * state, const float *s,
                                  const FA__PARAMS *p, float *weights, float *sum) {
    FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) sum[r] = 0.0f;
    FA__LOOP(_weigh_line_columns)(line, state, s, p, weights, sum, 0, FA__LOOP(_qk_COLS));
}
