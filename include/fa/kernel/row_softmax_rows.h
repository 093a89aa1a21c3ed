/* row_softmax_rows.h: the softmax of a row and its gradient.
 *
 * Forward: piece by piece, a thread has the largest of its elements so far and the sum of exp(x - largest) (Milakov
 * and Gimelshein, arXiv 1805.02867); the states of the team are merged in one reduction. Where the pieces are kept,
 * they are exponentials then, each piece relative to the running maximum of its time, which one factor for each
 * piece corrects.
 *
 * FA__LOOP(_row_...) are functions of fa/row.h, FA__LOOP(_reduce_...) of fa/reduce.h: kernel/rows_run.h. */

FA__FN void FA__LOOP(__logarithms)(float *to, const float *x, int count, float max, float scale, float log_sum) {
    FA__UNROLL
    for (int i = 0; i < count; i++) to[i] = (x[i] - max) * scale - log_sum;
}

#if FA__LANES == 1
#include <fa/kernel/row_softmax_rows_cpu.h>
#else
FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    enum { FA__KEPT = FA__LOOP(_row_KEPT) > 0 ? FA__LOOP(_row_KEPT) : 1 };
    int64_t cols = row < p->rows.rows ? p->rows.cols : 0;
    if (cols == 0) row = 0;
    float kept[(int)FA__KEPT * FA__LOOP(_row_LENGTH)], bases[FA__KEPT], factors[FA__KEPT], factor, ends[FA__ENDS_EACH];
    FA__LOOP(_row_held) held;
    const FA__ELEMENT *const row0 = (const FA__ELEMENT *)p->x.data + row * p->x.stride_row, *first = row0;
    const FA__LOOP(_row__ends) apart = FA__LOOP(_row__ends_of)(&first, &cols);
    int col;
    FA__LOOP(_row_view) in = FA__LOOP(_row_at)(first, cols, team);
    FA__LOOP(_row_view) out = FA__LOOP(_row_like)((const FA__ELEMENT *)p->y.data + row * p->y.stride_row + (first - row0), &in);
    const int keeps = FA__LOOP(_row_keeps)(&in, 1);
    int64_t pieces = FA__LOOP(_row_held_pieces)(&in);
    FA__LOOP(_row__set_policy)(&in, p->rows.policy);

    FA__LOOP(_row_hold)(&held, FA__LOOP(_slots)(place, p, 0), &in, -INFINITY);
    FA__UNROLL
    for (int i = 0; FA__LOOP(_row__ENDS) && i < FA__ENDS_EACH; i++)
        ends[i] = FA__LOOP(_row__end)(&col, &apart, i, team) ? fa_load_element(first, col, FA_DTYPE) : -INFINITY;
    FA__LOOP(_row_wait)();
    float max = -INFINITY, sum = 0.0f;
    for (int64_t piece = 0; piece < pieces; piece++) {
        if (FA__LOOP(_row__none)(&in, piece)) break;
        float *x = kept + (keeps ? piece * FA__LOOP(_row_LENGTH) : 0);
        int count = FA__LOOP(_row_count)(&in, piece);
        const float *from = FA__LOOP(_row_look)(x, &held, &in, piece);
        float base = FA__LOOP(_reduce__rise)(&max, &sum, FA__LOOP(_reduce_max_of)(from, count, max), p->scale_log2);
        factor = 1.0f;
        if (!p->log || !keeps) /* nobody needs x[] as it is */
            sum += FA__LOOP(_reduce__exp_near)(x, from, count, base, p->scale_log2, &factor);
        else sum += FA__LOOP(_reduce_exp_sum_of)(from, count, base, p->scale_log2);
        if (keeps) bases[piece] = max, factors[piece] = factor;
    }
    if (FA__LOOP(_row__ENDS)) {
        const float base = FA__LOOP(_reduce__rise)(&max, &sum, FA__LOOP(_reduce_max_of)(ends, FA__ENDS_EACH, max), p->scale_log2);
        sum += FA__LOOP(_reduce_exp_sum_of)(ends, FA__ENDS_EACH, base, p->scale_log2);
    }
    FA__LOOP(_reduce_softmax)(&max, &sum, p->scale_log2, team, place->shared);

    /* A row of -inf has the sum 0: 0 / 0 and -inf - -inf are NaN, as in the unfused computation. */
    float inverse = fa__reciprocal(sum), log_sum = p->log ? fa__log_accurate(sum) : 0.0f;
    if (FA__LOOP(_row__ENDS)) {
        float weight = 1.0f;
        if (p->log) FA__LOOP(__logarithms)(ends, ends, FA__ENDS_EACH, max, p->scale, log_sum);
        else FA__LOOP(_reduce__exp_near)(ends, ends, FA__ENDS_EACH, max, p->scale_log2, &weight), weight *= inverse;
        FA__UNROLL
        for (int i = 0; i < FA__ENDS_EACH; i++)
            if (FA__LOOP(_row__end)(&col, &apart, i, team)) fa_store_element(out.first, col, FA_DTYPE, ends[i] * weight);
    }
    for (int64_t piece = 0; piece < pieces; piece++) {
        if (FA__LOOP(_row__none)(&in, piece)) break;
        float *x = kept + (keeps ? piece * FA__LOOP(_row_LENGTH) : 0);
        int count = FA__LOOP(_row_count)(&in, piece);
        float weight = 1.0f;
        if (!keeps) FA__LOOP(_row_get)(x, &held, &in, piece);
        if (p->log) {
            FA__LOOP(__logarithms)(x, x, count, max, p->scale, log_sum);
        } else {
            if (!keeps) FA__LOOP(_reduce__exp_near)(x, x, count, max, p->scale_log2, &factor);
            else factor = factors[piece];
            weight = inverse * factor;
            if (keeps && bases[piece] != max) weight *= fa__exp2((bases[piece] - max) * p->scale_log2);
        }
        FA__LOOP(_row_store_times)(&out, piece, x, weight);
    }
}
#endif

/* Backward: d_x = y (d_y - sum of y d_y) / temperature; of the logarithm, (d_y - exp(y) sum of d_y) / temperature.
 * The logarithm is marked as unlikely, so that its code is out of the usual one's way: 1 % faster for 4,096 rows of
 * 1,024 columns, and as much for rows of 8,192. */
FA__FN void FA__LOOP(_backward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
#if FA__LANES == 1
    if (__builtin_expect(!p->log, 1) && !FA__LOOP(_row_COSTLY)) {
        FA__LOOP(__backward_plain)(p, row, place);
        return;
    }
#endif
    int64_t cols = row < p->rows.rows ? p->rows.cols : 0;
    if (cols == 0) row = 0;
    float y[FA__LOOP(_row_LENGTH)], d[FA__LOOP(_row_LENGTH)];
    FA__LOOP(_row_held) held_y, held_d;
    const FA__ELEMENT *const row0 = (const FA__ELEMENT *)p->y.data + row * p->y.stride_row, *first = row0;
    const FA__LOOP(_row__ends) apart = FA__LOOP(_row__ends_of)(&first, &cols);
    float ends_y[FA__ENDS_EACH], ends_d[FA__ENDS_EACH];
    int col;
    FA__LOOP(_row_view) in = FA__LOOP(_row_at)(first, cols, team);
    FA__LOOP(_row_view) in_d = FA__LOOP(_row_like)((const FA__ELEMENT *)p->d_y.data + row * p->d_y.stride_row + (first - row0), &in);
    FA__LOOP(_row_view) out = FA__LOOP(_row_like)((const FA__ELEMENT *)p->d_x.data + row * p->d_x.stride_row + (first - row0), &in);
    const int keeps = FA__LOOP(_row_keeps)(&in, 2);
    int64_t pieces = FA__LOOP(_row_held_pieces)(&in);
    if (p->rows.stream) FA__LOOP(_row_stream)(&out);
    FA__LOOP(_row__set_policy)(&in, p->rows.policy), FA__LOOP(_row__set_policy)(&in_d, p->rows.policy);

    FA__LOOP(_row_hold)(&held_y, FA__LOOP(_slots)(place, p, 0), &in, 0.0f);
    FA__LOOP(_row_hold)(&held_d, FA__LOOP(_slots)(place, p, 1), &in_d, 0.0f);
    FA__UNROLL
    for (int i = 0; FA__LOOP(_row__ENDS) && i < FA__ENDS_EACH; i++) {
        const int there = FA__LOOP(_row__end)(&col, &apart, i, team);
        ends_y[i] = there ? fa_load_element(in.first, col, FA_DTYPE) : 0.0f, ends_d[i] = there ? fa_load_element(in_d.first, col, FA_DTYPE) : 0.0f;
    }
    FA__LOOP(_row_wait)();
    FA__LOOP(_reduce__total) total = 0;
    const float *from_y = y, *from_d = d;
    FA__UNROLL_PIECES
    for (int64_t piece = 0; piece < pieces; piece++) {
        if (FA__LOOP(_row__none)(&in, piece)) break;
        int count = FA__LOOP(_row_count)(&in, piece);
        FA__LOOP(_row_ahead)(&in, piece), FA__LOOP(_row_ahead)(&in_d, piece);
        if (__builtin_expect(!p->log, 1) || keeps) from_y = FA__LOOP(_row_look)(y, &held_y, &in, piece);
        from_d = FA__LOOP(_row_look)(d, &held_d, &in_d, piece);
        const float part = __builtin_expect(p->log, 0) ? FA__LOOP(_reduce_sum_of)(from_d, count) : FA__LOOP(_reduce_dot_of)(from_y, from_d, count);
        total += (FA__LOOP(_reduce__total))part;
    }
    FA__UNROLL
    for (int i = 0; FA__LOOP(_row__ENDS) && i < FA__ENDS_EACH; i++) total += (FA__LOOP(_reduce__total))(p->log ? ends_d[i] : ends_y[i] * ends_d[i]);
    const float sum = FA__LOOP(_reduce_sum)((float)total, team, place->shared); /* not divided yet: that may be infinite where no result is */
    FA__UNROLL
    for (int i = 0; FA__LOOP(_row__ENDS) && i < FA__ENDS_EACH; i++) {
        const float e = p->log ? fa__exp2(ends_y[i] * FA__LOG2_E) : ends_y[i];
        if (FA__LOOP(_row__end)(&col, &apart, i, team))
            fa_store_element(out.first, col, FA_DTYPE, (p->log ? ends_d[i] - e * sum : e * (ends_d[i] - sum)) * p->scale);
    }
    FA__UNROLL_PIECES
    for (int64_t piece = 0; piece < pieces; piece++) {
        if (FA__LOOP(_row__none)(&in, piece)) break;
        int count = FA__LOOP(_row_count)(&in, piece);
        if (!keeps) {
            from_y = FA__LOOP(_row_look)(y, &held_y, &in, piece);
            from_d = FA__LOOP(_row_look)(d, &held_d, &in_d, piece);
        }
        if (__builtin_expect(p->log, 0)) {
            FA__LOOP(_reduce_exp_to)(y, from_y, count, 0.0f, FA__LOG2_E);
            FA__UNROLL
            for (int i = 0; i < count; i++) d[i] = (from_d[i] - y[i] * sum) * p->scale;
        } else {
            FA__UNROLL
            for (int i = 0; i < count; i++) d[i] = from_y[i] * (from_d[i] - sum) * p->scale;
        }
        FA__LOOP(_row_store)(&out, piece, d);
    }
}
