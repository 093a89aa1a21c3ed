/* cross_entropy_rows.h: the loss of a row, and the gradient of a segment of one.
 *
 * Forward: piece by piece, a thread has the largest of its elements so far and the sum of exp(z - largest) (Milakov and
 * Gimelshein, arXiv 1805.02867), and the sum of z for label smoothing; nothing is kept. One thread of the team reads the
 * logit of the target by itself. Backward: with lse known, elements do not wait for each other. */

#if FA__DIRECTIONS & FA__ROWS_FORWARD
/* What a thread knows of the elements that it has seen: the largest, the sum of exp(z - largest), the sum of z. */
typedef struct FA__LOOP(_seen) {
    float max, sum, total;
} FA__LOOP(_seen);

/* All pieces of a row, of which the first is under way. Plain: no soft cap, no sum of z. */
FA__FN void FA__LOOP(__see)(FA__LOOP(_seen) * seen, FA__LOOP(_row_flight) * flight, const FA__PARAMS *p, const FA__LOOP(_row_view) * in,
                            const int plain) {
    const float cap = plain ? 0.0f : p->cap, inverse = p->cap_inverse, smoothing = plain ? 0.0f : p->smoothing;
    float x[FA__LOOP(_row_LENGTH)];
    FA__ROLL
    for (int64_t piece = 0, pieces = FA__LOOP(_row_pieces)(in); piece < pieces; piece++) {
        const int count = FA__LOOP(_row_count)(in, piece);
        float largest;
        FA__LOOP(_row_land)(x, flight, in, piece, -INFINITY);
#if FA__LANES > 1
        if (plain) largest = FA__LOOP(_row_landed_max)(x, flight, count, seen->max);
        if (piece + 1 < pieces) FA__LOOP(_row_start)(flight, in, piece + 1, -INFINITY);
#endif
        if (cap > 0.0f) {
            FA__UNROLL
            for (int i = 0; i < count; i++) x[i] = fa__soft_cap(x[i], cap, inverse, FA_DTYPE);
            FA__LOOP(_row_pad)(x, in, piece, -INFINITY);
        }
        if (smoothing > 0.0f) {
            FA__LOOP(_row_pad)(x, in, piece, 0.0f);
            seen->total += FA__LOOP(_reduce_sum_of)(x, count);
            FA__LOOP(_row_pad)(x, in, piece, -INFINITY);
        }
#if FA__LANES > 1
        if (!plain)
#endif
            largest = FA__LOOP(_reduce_max_of)(x, count, seen->max);
        float base = largest == -INFINITY ? 0.0f : largest; /* only -inf so far: their weights are 0 */
        seen->sum *= fa__exp2((seen->max - base) * FA__LOG2_E);
        seen->sum += FA__LOOP(_reduce_exp_sum_of)(x, count, base, FA__LOG2_E);
        seen->max = largest;
    }
}

FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    const int there = row < p->rows.rows;
    int64_t cols = there ? p->rows.cols : 0;
    if (!there) row = 0;
    const FA__ELEMENT *logits = (const FA__ELEMENT *)p->logits.data + row * p->logits.stride_row;
    const float cap = p->cap, smoothing = p->smoothing;
    FA__LOOP(_seen) seen = {-INFINITY, 0.0f, 0.0f};
    FA__LOOP(_row_flight) flight;
    FA__LOOP(_row_view) in = FA__LOOP(_row_at)(logits, cols, team);
    FA__LOOP(_row_start)(&flight, &in, 0, -INFINITY);
    const int target = fa__load_int(p->targets + row), ignored = target == p->ignore;
    const int hit = there && team->thread == 0 && target >= 0 && target < cols;
    FA__ELEMENT picked = 0; /* nobody waits for it before the end */
    if (hit) picked = logits[target];
#if FA__LANES > 1
    if (cap == 0.0f && smoothing == 0.0f) FA__LOOP(__see)(&seen, &flight, p, &in, 1);
    else
#endif
        FA__LOOP(__see)(&seen, &flight, p, &in, 0);
    float max = seen.max, sum = seen.sum, total = seen.total;
    FA__LOOP(_reduce_softmax)(&max, &sum, FA__LOG2_E, team, place->shared);
    if (smoothing > 0.0f) total = FA__LOOP(_reduce_sum)(total, team, place->shared);

    if (there && team->thread == 0) {
        /* Not lse - z: of large numbers their difference is exact, and their sum with the logarithm is rounded. */
        float log_sum = fa__log(sum), lse = max + log_sum, loss, at_target = hit ? FA__LOOP(_row_late)(picked) : NAN;
        if (cap > 0.0f) at_target = fa__soft_cap(at_target, cap, p->cap_inverse, FA_DTYPE);
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
        } else if (plain) {
            FA__UNROLL
            for (int i = 0; i < count; i++) x[i] = fa__exp2(FA__FMA(x[i], FA__LOG2_E, -offset)) * weight_near - even;
            FA__LOOP(_row_add_at)(x, &in, piece, mine, -hit);
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
