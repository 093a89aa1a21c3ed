/* cross_entropy_rows.h: the loss of a row, and the gradient of a segment of one.
 *
 * Forward: piece by piece, a thread has the largest of its elements so far and the sum of exp(z - largest) (Milakov
 * and Gimelshein, arXiv 1805.02867), and for label smoothing the sum of z, relative to a number near it; nothing is
 * kept. One thread of the team reads the logit of the target by itself. Backward: with lse known, elements are
 * independent of each other. */

#if FA__LANES == 1
#include <fa/kernel/rows_near.h>
#endif

#if FA__DIRECTIONS & FA__ROWS_FORWARD
/* What a thread knows of the elements that it has seen: the largest, the sum of exp(z - largest), and for label
 * smoothing the sum of z - pivot. `far`: how large that largest, times log2(e), ever was in size; on the CPU it is
 * *far of rows_near.h instead. */
typedef struct FA__LOOP(_seen) {
    float max, far;
    FA__LOOP(_reduce__total) sum, total;
    float pivot; /* a number that most of the row's are near: where they are all large, a sum of z itself would lose what they differ by */
} FA__LOOP(_seen);

/* The median of three of the row's logits, since one may be far from all others, as that of a class that must not be
 * chosen is; 0 if it is infinite, NaN or so large that sums relative to it could overflow where sums of z do not. */
#define FA__PIVOT_MOST 1e30f
FA__FN float FA__LOOP(__pivot_of)(const FA__PARAMS *p, const FA__ELEMENT *logits, int64_t cols) {
    if (cols == 0 || !(p->smoothing > 0.0f)) return 0.0f;
    const float a = fa_load_element(logits, cols / 4, FA_DTYPE), b = fa_load_element(logits, cols / 2, FA_DTYPE), c = fa_load_element(logits, cols * 3 / 4, FA_DTYPE);
    float z = fa__maxf(-fa__maxf(-a, -b), -fa__maxf(-fa__maxf(a, b), -c)); /* the larger of the smaller of a and b, and the smaller of c and the larger */
    if (p->cap > 0.0f) z = fa__soft_cap(z, p->cap, p->cap_inverse, FA_DTYPE);
    return fabsf(z) < FA__PIVOT_MOST ? z : 0.0f;
}
#undef FA__PIVOT_MOST

#if FA__LANES > 1
/* A piece, which is in flight: while it is used, the next one is started: `full`, or what there is of it. Without a
 * soft cap and without the sum of z, and if z log2(e) is below FA__OFFSET_MOST in size: then one fused operation
 * comes before the exponential, and what the rounding of `offset` loses is in a factor. */
FA__FN void FA__LOOP(__see_plain)(FA__LOOP(_seen) * seen, FA__LOOP(_row_flight) * flight, FA__LOOP(_row_scan) * in, const int full) {
    enum { FA__IN_A_PART = FA__LOOP(_row_PART) };
    float x[FA__IN_A_PART], sum[4];
    const float largest = FA__LOOP(_row_scan_max)(flight, seen->max);
    const float base = largest == -INFINITY ? 0.0f : largest; /* only -inf so far: their weights are 0 */
    const float offset = base * FA__LOG2_E, lost = fmaf(base, FA__LOG2_E, -offset);
    FA__UNROLL
    for (int part = 0; part < FA__LOOP(_row_PARTS); part++) {
        FA__LOOP(_row_scan_land)(x, flight, in, part, -INFINITY);
        FA__LOOP(_row_scan_start)(flight, in, part, full, -INFINITY);
        FA__UNROLL
        for (int i = 0; i < FA__IN_A_PART; i++) {
            float weight = fa__exp2(fmaf(x[i], FA__LOG2_E, -offset));
            sum[i % 4] = part * FA__IN_A_PART + i < 4 ? weight : sum[i % 4] + weight;
        }
    }
    FA__LOOP(_row_scan_next)(flight, in);
    seen->sum = seen->sum * fa__exp2((seen->max - base) * FA__LOG2_E) + ((sum[0] + sum[1]) + (sum[2] + sum[3])) * fa__exp2(-lost);
    seen->max = largest;
    seen->far = fa__maxf(fabsf(offset), seen->far);
}
#endif
/* The same of any numbers. */
FA__FN_CALLED void FA__LOOP(__see)(FA__LOOP(_seen) * seen, FA__LOOP(_row_flight) * flight, FA__LOOP(_row_scan) * in, const FA__PARAMS *p) {
    const float cap = p->cap, inverse = p->cap_inverse;
    const int count = FA__LOOP(_row_scan_count)(in);
    float x[FA__LOOP(_row_PART)];
#if FA__LANES == 1
    if (!(cap > 0.0f) && !(p->smoothing > 0.0f)) {
        const FA__ELEMENT *z = FA__LOOP(_row__piece)(&in->view, in->piece);
        const int real = FA__LOOP(_row_real)(&in->view, in->piece);
        float base = seen->max, sum;
        if (base == -INFINITY) base = FA__LOOP(_near_top)(z, real);
        if (FA__LOOP(_near_sum)(&sum, z, real, base, FA__LOG2_E, &seen->far)) {
            seen->max = base, seen->sum += (double)sum;
            FA__LOOP(_row_scan_next)(flight, in);
            return;
        }
    }
#endif
    FA__UNROLL
    for (int part = 0; part < FA__LOOP(_row_PARTS); part++) {
        FA__LOOP(_row_scan_land)(x, flight, in, part, -INFINITY);
        FA__LOOP(_row_scan_start)(flight, in, part, 0, -INFINITY);
        if (cap > 0.0f) {
            FA__UNROLL
            for (int i = 0; i < count; i++) x[i] = fa__soft_cap(x[i], cap, inverse, FA_DTYPE);
            FA__LOOP(_row_scan_pad)(x, flight, in, part, -INFINITY);
        }
        if (p->smoothing > 0.0f) {
            float above[FA__LOOP(_row_PART)];
            FA__UNROLL
            for (int i = 0; i < count; i++) above[i] = x[i] - seen->pivot;
            FA__LOOP(_row_scan_pad)(above, flight, in, part, 0.0f);
            seen->total += (FA__LOOP(_reduce__total))FA__LOOP(_reduce_sum_of)(above, count);
        }
        const float base = FA__LOOP(_reduce__rise)(&seen->max, &seen->sum, FA__LOOP(_reduce_max_of)(x, count, seen->max), FA__LOG2_E);
        seen->sum += (FA__LOOP(_reduce__total))FA__LOOP(_reduce_exp_sum_of)(x, count, base, FA__LOG2_E);
    }
    FA__LOOP(_row_scan_next)(flight, in);
}
/* The elements of a row that are in no piece, a few at its ends. */
FA__FN void FA__LOOP(__see_edges)(FA__LOOP(_seen) * seen, const FA__LOOP(_row_scan) * in, const FA__PARAMS *p, const FA__ELEMENT *logits) {
    FA__ROLL
    for (int i = in->thread, edges = FA__LOOP(_row_scan_edges)(in); i < edges; i += in->threads) {
        float z = fa_load_element(logits, FA__LOOP(_row_scan_edge)(in, i), FA_DTYPE);
        if (p->cap > 0.0f) z = fa__soft_cap(z, p->cap, p->cap_inverse, FA_DTYPE);
        const float largest = fa__maxf(z, seen->max), base = largest == -INFINITY ? 0.0f : largest;
        const float weight = fa__exp2((z - base) * FA__LOG2_E); /* before the sum is rescaled: elsewhere rows of 1,024 columns are 1 % slower */
        FA__LOOP(_reduce__rise)(&seen->max, &seen->sum, largest, FA__LOG2_E);
        seen->sum += (FA__LOOP(_reduce__total))weight;
        seen->total += (FA__LOOP(_reduce__total))(z - seen->pivot);
    }
}

FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    const int there = row < p->rows.rows;
    int64_t cols = there ? p->rows.cols : 0;
    if (!there) row = 0;
    const FA__ELEMENT *logits = (const FA__ELEMENT *)p->logits.data + row * p->logits.stride_row;
    const float cap = p->cap, smoothing = p->smoothing;
    const FA__LOOP(_seen) nothing = {-INFINITY, 0.0f, 0, 0, FA__LOOP(__pivot_of)(p, logits, cols)};
    FA__LOOP(_seen) seen = nothing;
    FA__ELEMENT picked = 0;
    int target = 0;
    FA__ROLL
    for (int special = FA__LANES == 1 || cap > 0.0f || smoothing > 0.0f;; special = 1) { /* again if numbers are too large to be plain */
        FA__LOOP(_row_flight) flight;
        FA__LOOP(_row_scan) in = FA__LOOP(_row_scan_of)(logits, cols, team);
        seen = nothing;
#if FA__LANES == 1
        seen.far = place->far;
#endif
        FA__LOOP(_row_scan_begin)(&flight, &in, -INFINITY);
        target = fa__load_int(p->targets + row);
        if (there && team->thread == 0 && target >= 0 && target < cols) picked = logits[target]; /* nobody waits for it before the end */
        FA__LOOP(__see_edges)(&seen, &in, p, logits);
        if (special) {
            FA__ROLL
            for (int more = 1; more;) {
                more = FA__LOOP(_row_scan_more)(&in);
                FA__LOOP(__see)(&seen, &flight, &in, p);
            }
            break;
        }
#if FA__LANES > 1
        FA__ROLL
        while (FA__LOOP(_row_scan_full)(&in)) FA__LOOP(__see_plain)(&seen, &flight, &in, 1);
        FA__ROLL
        for (int more = 1 + FA__LOOP(_row_scan_more)(&in); more > 0; more--) FA__LOOP(__see_plain)(&seen, &flight, &in, 0);
        if (seen.far < FA__OFFSET_MOST) break;
#endif
    }
#if FA__LANES == 1
    place->far = seen.far;
#endif
    float max = seen.max, sum = (float)seen.sum, total = (float)seen.total;
    FA__LOOP(_reduce_softmax)(&max, &sum, FA__LOG2_E, team, place->shared);
    if (smoothing > 0.0f) total = FA__LOOP(_reduce_sum)(total, team, place->shared);

    if (there && team->thread == 0) {
        /* Not lse - z: where numbers are large, max - z is exact, while lse, max plus the logarithm, is rounded. */
        const int hit = target >= 0 && target < cols, ignored = target == p->ignore;
        float log_sum = fa__log_accurate(sum), lse = max + log_sum, loss, at_target = hit ? FA__LOOP(_row_late)(picked) : NAN;
        if (cap > 0.0f) at_target = fa__soft_cap(at_target, cap, p->cap_inverse, FA_DTYPE);
        loss = (max - at_target) + log_sum;
        if (loss < 0.0f) loss = 0.0f; /* by the sum's rounding, where the target has nearly all of it */
        if (smoothing > 0.0f)
            loss = (1.0f - smoothing) * loss + smoothing * ((max - nothing.pivot) - total / (float)cols + log_sum);
        if (p->z_loss > 0.0f) loss += p->z_loss * lse * lse;
        if (p->loss) p->loss[row] = ignored ? 0.0f : loss;
        if (p->lse) p->lse[row] = lse;
    }
}
#endif

#if FA__DIRECTIONS & FA__ROWS_BACKWARD
FA__FN void FA__LOOP(_backward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    enum { FA__NOWHERE = -16 }; /* not a column of a segment */
    fa__segment at = fa__segment_at(&p->cut, row, p->rows.rows, FA__LOOP(_row_WHOLE));
    float x[FA__LOOP(_row_LENGTH)];
    FA__LOOP(_row_held) held;
    FA__LOOP(_row_view) in = FA__LOOP(_row_at)(fa__element(&p->logits, &at, sizeof(FA__ELEMENT)), at.cols, team);
    FA__LOOP(_row__set_policy)(&in, p->rows.policy);
    FA__LOOP(_row_hold)(&held, FA__LOOP(_slots)(place, p, 0), &in, 0.0f);
    const int target = fa__load_int(p->targets + at.row);
    const float lse = fa__load_float(p->lse + at.row), d_loss = p->d_loss ? fa__load_float(p->d_loss + at.row) : 1.0f;
    const int ignored = target == p->ignore, none = target < 0 || target >= p->cut.cols;
    const int64_t in_segment = target - at.first;
    const int mine = in_segment >= 0 && in_segment < at.cols ? (int)in_segment : FA__NOWHERE;
    const float weight = none ? NAN : d_loss * (1.0f + 2.0f * p->z_loss * lse);
    const float each = d_loss * p->smoothing_each, hit = d_loss * (1.0f - p->smoothing);
    const float cap = p->cap, inverse = p->cap_inverse;
#if FA__LANES > 1
    const float offset = lse * FA__LOG2_E, weight_near = weight * fa__exp2(-fmaf(lse, FA__LOG2_E, -offset));
#endif
    FA__LOOP(_row_view) out = FA__LOOP(_row_like)(fa__element(&p->d_logits, &at, sizeof(FA__ELEMENT)), &in);
    if (p->rows.stream) FA__LOOP(_row_stream)(&out);
    FA__LOOP(_row_wait)();
    for (int64_t piece = 0, pieces = FA__LOOP(_row_held_pieces)(&in); piece < pieces; piece++) {
        if (FA__LOOP(_row__none)(&in, piece)) break;
        int count = FA__LOOP(_row_count)(&in, piece);
#if FA__LANES == 1
        if (!ignored && !(cap > 0.0f) && !FA__LOOP(_row_COSTLY)) {
            const FA__ELEMENT *z = FA__LOOP(_row__piece)(&in, piece);
            const int real = FA__LOOP(_row_real)(&in, piece);
            float factor;
            if (FA__LOOP(_near_once)(x, z, real, lse, FA__LOG2_E, &factor, &place->far) && weight * factor != 0.0f) {
                if (mine >= 0 && mine < real) x[FA__LOOP(_row__order)(mine)] -= hit / (weight * factor);
                FA__LOOP(_row__scaled)(FA__LOOP(_row__piece)(&out, piece), x, real, weight * factor, -each, p->rows.stream);
                continue;
            }
        }
#endif
        FA__LOOP(_row_ahead)(&in, piece);
        FA__LOOP(_row_get)(x, &held, &in, piece);
        if (ignored) {
            FA__UNROLL
            for (int i = 0; i < count; i++) x[i] = 0.0f;
        } else if (cap > 0.0f) {
            FA__UNROLL
            for (int i = 0; i < count; i++) {
                float z = fa__soft_cap(x[i], cap, inverse, FA_DTYPE), t = z * inverse;
                float d = fa__exp2((z - lse) * FA__LOG2_E) * weight - each;
                d -= fa__select((int)FA__LOOP(_row_col)(&in, piece, i) == mine, hit, 0.0f);
                x[i] = d * (1.0f - t * t);
            }
        } else {
#if FA__LANES > 1 /* one fused operation before the exponential: what the rounding of `offset` loses is in a factor */
            if (fabsf(offset) < FA__OFFSET_MOST) {
                FA__UNROLL
                for (int i = 0; i < count; i++) x[i] = fa__exp2(fmaf(x[i], FA__LOG2_E, -offset)) * weight_near - each;
            } else
#endif
            {
                FA__UNROLL
                for (int i = 0; i < count; i++) x[i] = fa__exp2((x[i] - lse) * FA__LOG2_E) * weight - each;
            }
            FA__LOOP(_row_add_at)(x, &in, piece, mine, -hit);
        }
        FA__LOOP(_row_store)(&out, piece, x);
    }
}
#endif
