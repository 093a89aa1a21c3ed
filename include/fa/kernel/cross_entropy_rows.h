/* cross_entropy_rows.h: the loss of a row, and the gradient of a segment of one.
 *
 * Forward: piece by piece, a thread has the largest of its elements so far and the sum of exp(z - largest) (Milakov and
 * Gimelshein, arXiv 1805.02867), and the sum of z for label smoothing; nothing is kept. One thread of the team reads the
 * logit of the target by itself. Backward: with lse known, elements do not wait for each other. */

#if FA__DIRECTIONS & FA__ROWS_FORWARD
FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    const int there = row < p->rows.rows;
    int64_t cols = there ? p->rows.cols : 0;
    if (!there) row = 0;
    const FA__ELEMENT *logits = (const FA__ELEMENT *)p->logits.data + row * p->logits.stride_row;
    float x[FA__LOOP(_row_LENGTH)];
    FA__LOOP(_row_held) held;
    FA__LOOP(_row_view) in = FA__LOOP(_row_at)(logits, cols, team);
    FA__LOOP(_row_hold)(&held, FA__LOOP(_slots)(place, p, 0), &in, -INFINITY);
    const int target = fa__load_int(p->targets + row), ignored = target == p->ignore;
    float at_target = NAN;
    FA__LOOP(_row_wait)();
    if (there && team->thread == 0 && target >= 0 && target < cols) at_target = fa_load_element(logits, target, FA_DTYPE);

    const float cap = p->cap, inverse = p->cap_inverse, smoothing = p->smoothing;
    float max = -INFINITY, sum = 0.0f, total = 0.0f;
    for (int64_t piece = 0, pieces = FA__LOOP(_row_held_pieces)(&in); piece < pieces; piece++) {
        int count = FA__LOOP(_row_count)(&in, piece);
        FA__LOOP(_row_get)(x, &held, &in, piece);
        if (cap > 0.0f) {
            FA__UNROLL
            for (int i = 0; i < count; i++) x[i] = fa__soft_cap(x[i], cap, inverse, FA_DTYPE);
            FA__LOOP(_row_pad)(x, &in, piece, -INFINITY);
        }
        if (smoothing > 0.0f) {
            FA__LOOP(_row_pad)(x, &in, piece, 0.0f);
            total += FA__LOOP(_reduce_sum_of)(x, count);
            FA__LOOP(_row_pad)(x, &in, piece, -INFINITY);
        }
        float largest = FA__LOOP(_reduce_max_of)(x, count, max);
        float base = largest == -INFINITY ? 0.0f : largest; /* only -inf so far: their weights are 0 */
        sum *= fa__exp2((max - base) * FA__LOG2_E);
        sum += FA__LOOP(_reduce_exp_sum_of)(x, count, base, FA__LOG2_E);
        max = largest;
    }
    FA__LOOP(_reduce_softmax)(&max, &sum, FA__LOG2_E, team, place->shared);
    if (smoothing > 0.0f) total = FA__LOOP(_reduce_sum)(total, team, place->shared);

    if (there && team->thread == 0) {
        /* Not lse - z: of large numbers their difference is exact, and their sum with the logarithm is rounded. */
        float log_sum = fa__log(sum), lse = max + log_sum, loss;
        if (cap > 0.0f) at_target = fa__soft_cap(at_target, cap, inverse, FA_DTYPE);
        loss = (max - at_target) + log_sum;
        if (smoothing > 0.0f)
            loss = (1.0f - smoothing) * loss + smoothing * ((max - total / (float)cols) + log_sum);
        if (p->z_loss > 0.0f) loss += p->z_loss * lse * lse;
        if (p->loss) p->loss[row] = ignored ? 0.0f : loss;
        if (p->lse) p->lse[row] = lse;
    }
}
#endif

#if FA__DIRECTIONS & FA__ROWS_BACKWARD
FA__FN void FA__LOOP(_backward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    enum { NOWHERE = -16 }; /* not a column of a segment */
    fa__segment at = fa__segment_at(&p->cut, row, p->rows.rows);
    float x[FA__LOOP(_row_LENGTH)];
    FA__LOOP(_row_held) held;
    FA__LOOP(_row_view) in = FA__LOOP(_row_at)(fa__element(&p->logits, &at, sizeof(FA__ELEMENT)), at.cols, team);
    FA__LOOP(_row_view) out = FA__LOOP(_row_like)(fa__element(&p->d_logits, &at, sizeof(FA__ELEMENT)), &in);
    if (p->rows.stream) FA__LOOP(_row_stream)(&out);
    FA__LOOP(_row_hold)(&held, FA__LOOP(_slots)(place, p, 0), &in, 0.0f);
    const int target = fa__load_int(p->targets + at.row);
    const float lse = fa__load_float(p->lse_in + at.row), d_loss = p->d_loss ? fa__load_float(p->d_loss + at.row) : 1.0f;
    const int ignored = target == p->ignore, none = target < 0 || target >= p->cut.cols;
    const int64_t in_segment = target - at.first;
    const int mine = in_segment >= 0 && in_segment < at.cols ? (int)in_segment : NOWHERE;
    const float weight = none ? NAN : d_loss * (1.0f + 2.0f * p->z_loss * lse);
    const float even = d_loss * p->smoothing / (float)p->cut.cols, hit = d_loss * (1.0f - p->smoothing);
    const float cap = p->cap, inverse = p->cap_inverse;
    FA__LOOP(_row_wait)();
    for (int64_t piece = 0, pieces = FA__LOOP(_row_held_pieces)(&in); piece < pieces; piece++) {
        int count = FA__LOOP(_row_count)(&in, piece);
        FA__LOOP(_row_get)(x, &held, &in, piece);
        if (ignored) {
            FA__UNROLL
            for (int i = 0; i < count; i++) x[i] = 0.0f;
        } else if (cap > 0.0f) {
            FA__UNROLL
            for (int i = 0; i < count; i++) {
                float z = fa__soft_cap(x[i], cap, inverse, FA_DTYPE), t = z * inverse;
                float d = fa__exp2((z - lse) * FA__LOG2_E) * weight - even;
                d -= fa__select((int)FA__LOOP(_row_col)(&in, piece, i) == mine, hit, 0.0f);
                x[i] = d * (1.0f - t * t);
            }
        } else {
            FA__UNROLL
            for (int i = 0; i < count; i++) {
                float d = fa__exp2((x[i] - lse) * FA__LOG2_E) * weight - even;
                x[i] = d - fa__select((int)FA__LOOP(_row_col)(&in, piece, i) == mine, hit, 0.0f);
            }
        }
        FA__LOOP(_row_store)(&out, piece, x);
    }
}
#endif
