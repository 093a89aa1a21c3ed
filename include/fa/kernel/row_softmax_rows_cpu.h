/* row_softmax_rows_cpu.h: the softmax of a row, and its gradient, on the CPU: row_softmax_rows.h.
 *
 * Forward: a core keeps as many pieces of the row as place->keeps in its L2 cache, as exponentials. They are
 * relative to the largest element of the first piece as long as no element is far above that, which is so in nearly
 * all rows, and then none that is kept is computed twice. All others are computed again, relative to the final base,
 * by the same operations: so the result does not depend on how much of a row a thread has room for. */
#include <fa/kernel/rows_near.h>

FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    FA__LOOP(_row_held) held;
    FA__LOOP(_row_view) in = FA__LOOP(_row_at)((const FA__ELEMENT *)p->x.data + row * p->x.stride_row, p->rows.cols, team);
    FA__LOOP(_row_view) out = FA__LOOP(_row_like)((const FA__ELEMENT *)p->y.data + row * p->y.stride_row, &in);
    const int64_t pieces = FA__LOOP(_row_held_pieces)(&in);
    const int64_t keeps = p->log && !FA__LOOP(_row_COSTLY) ? 0 : place->keeps; /* of a logarithm x as floats, only where x is costly to widen again */
    if (p->rows.stream) FA__LOOP(_row_stream)(&out);
    FA__LOOP(_row_hold)(&held, NULL, &in, -INFINITY);
    float max = -INFINITY, factor = 1.0f;
    FA__LOOP(_reduce__total) sum = 0.0;
    int64_t since = 0; /* the piece from which on all are relative to max, times `factor` */
    for (int64_t piece = 0; piece < pieces; piece++) {
        float *x = place->kept + (piece < keeps ? piece : keeps) * FA__LOOP(_row_LENGTH);
        if (!p->log) {
            const FA__ELEMENT *z = FA__LOOP(_row__piece)(&in, piece);
            const int real = FA__LOOP(_row_real)(&in, piece);
            const float near = max == -INFINITY ? FA__LOOP(_near_top)(z, real) : max;
            float part;
            if (FA__LOOP(_near_keep)(&part, x, z, real, near, p->scale_log2, &factor, &place->far)) {
                max = near;
                sum += (double)part;
                continue;
            }
        }
        FA__LOOP(_row_ahead)(&in, piece);
        const float *from = FA__LOOP(_row_look)(x, &held, &in, piece);
        const int count = FA__LOOP(_row_count)(&in, piece);
        const float base = FA__LOOP(_reduce__rise)(&max, &sum, FA__LOOP(_reduce_max_of)(from, count, max), p->scale_log2);
        sum += (double)FA__LOOP(_reduce_exp_sum_of)(from, count, base, p->scale_log2);
        since = piece + 1;
    }

    /* A row of -inf has the sum 0: 0 / 0 and -inf - -inf are NaN, as in the unfused computation. */
    const float inverse = fa__reciprocal((float)sum), log_sum = p->log ? fa__log_accurate((float)sum) : 0.0f;
    for (int64_t piece = pieces; piece-- > 0;) { /* backwards: what was kept last, and where the next row will be, is in the L1 cache */
        float *x = place->kept + (piece < keeps ? piece : keeps) * FA__LOOP(_row_LENGTH), weight;
        const int count = FA__LOOP(_row_count)(&in, piece), real = FA__LOOP(_row_real)(&in, piece);
        const FA__ELEMENT *z = FA__LOOP(_row__piece)(&in, piece);
        FA__ELEMENT *to = FA__LOOP(_row__piece)(&out, piece);
        if (p->log) {
            const float *from = piece < keeps ? x : FA__LOOP(_row_look)(x, &held, &in, piece);
            FA__LOOP(__logarithms)(x, from, count, max, p->scale, log_sum);
            FA__LOOP(_row_store)(&out, piece, x);
        } else if (piece >= since && piece < keeps) {
            FA__LOOP(_row__scaled)(to, x, real, inverse * factor, 0.0f, p->rows.stream);
        } else if (FA__LOOP(_near_again)(x, z, real, max, p->scale_log2, &weight, &place->far)) {
            FA__LOOP(_row__scaled)(to, x, real, inverse * weight, 0.0f, p->rows.stream);
        } else {
            FA__LOOP(_reduce_exp_to)(x, FA__LOOP(_row_look)(x, &held, &in, piece), count, max, p->scale_log2);
            FA__LOOP(_row_store_times)(&out, piece, x, inverse);
        }
    }
}

/* Backward, where elements are widened by instructions, and not of a logarithm: both passes over a row are straight
 * from memory, and the results go from registers to memory. The first pass over a row is beside the second one over
 * the row before it, if FA__LOOP(_row_BESIDE), so that memory is read and written at the same time. */

enum { FA__LOOP(_RUN) = FA__CPU_RUN * FA__LOOP(_row_BLOCK) };

/* Some columns of a row. */
typedef struct FA__LOOP(__terms) {
    const FA__ELEMENT *y, *d;
} FA__LOOP(__terms);
/* What a block from column i of `real` adds to the sum of y d. Elements three pieces' lengths further on are
 * prefetched, two being as good. */
FA__FN void FA__LOOP(__product_block)(FA__CPU_OP(vec) * run, const FA__LOOP(__terms) * of, int i, int real) {
    const FA__ELEMENT *y = of->y + i, *d = of->d + i;
    FA__CPU_OP(vec) a[FA__LOOP(_row_IN_BLOCK)], b[FA__LOOP(_row_IN_BLOCK)];
    FA__ELEMENT rest[2][FA__LOOP(_row_BLOCK)];
    FA__LOOP(_row__ask_ahead)(y, 3), FA__LOOP(_row__ask_ahead)(d, 3);
    if (__builtin_expect(i + FA__LOOP(_row_BLOCK) > real, 0)) { /* of both at once: a branch less */
        y = FA__LOOP(_row__some)(rest[0], of->y, i, real, FA__LOOP(_row_BLOCK), (FA__ELEMENT)0);
        d = FA__LOOP(_row__some)(rest[1], of->d, i, real, FA__LOOP(_row_BLOCK), (FA__ELEMENT)0);
    }
    FA__LOOP(_row__shuffled)(a, y), FA__LOOP(_row__shuffled)(b, d);
    FA__UNROLL
    for (int j = 0; j < FA__LOOP(_row_IN_BLOCK); j++) run[j] = FA__CPU_OP(fma)(a[j], b[j], run[j]);
}
/* A block: to = y (d - sum) * scale */
FA__FN void FA__LOOP(__slopes_block)(FA__ELEMENT *to, const FA__LOOP(__terms) * of, int i, int real, FA__CPU_OP(vec) sums, FA__CPU_OP(vec) scales, int streamed,
                                     int by_unit) {
    FA__CPU_OP(vec) a[FA__LOOP(_row_IN_BLOCK)], b[FA__LOOP(_row_IN_BLOCK)];
    FA__ELEMENT rest[2][FA__LOOP(_row_BLOCK)];
    FA__LOOP(_row__bring)(a, FA__LOOP(_row__block_of)(rest[0], of->y, i, real)), FA__LOOP(_row__bring)(b, FA__LOOP(_row__block_of)(rest[1], of->d, i, real));
    FA__UNROLL
    for (int j = 0; j < FA__LOOP(_row_IN_BLOCK); j++) a[j] = a[j] * (b[j] - sums) * scales;
    FA__LOOP(_row__bring_back)(to, a, streamed, by_unit);
}
/* `real` columns: results of one row, unless `to` is NULL, and the sum of y d of another one, if there is one, else
 * 0. */
FA__FN float FA__LOOP(__columns)(FA__ELEMENT *to, const FA__LOOP(__terms) * of, float sum, float scale, int streamed, const FA__LOOP(__terms) * next, int real,
                                 const int finishes, const int adds) {
    enum { FA__AT_ONCE = FA__LOOP(_row_BLOCK) };
    const FA__CPU_OP(vec) sums = FA__CPU_OP(splat)(sum), scales = FA__CPU_OP(splat)(scale), none = FA__CPU_OP(splat)(0.0f);
    const int fits = finishes ? FA__LOOP(_row__fits)(to, real, streamed) : 0, by_unit = fa__cpu_rounds_bf16();
    FA__CPU_ALIGNED FA__ELEMENT left[(int)FA__LOOP(_row_LENGTH) + FA__AT_ONCE]; /* the end, and rows that lie across lines */
    FA__CPU_OP(vec) all = none;
    for (int i = 0; i < real;) {
        const int end = adds && real - i > FA__LOOP(_RUN) ? i + FA__LOOP(_RUN) : real;
        FA__CPU_OP(vec) run[FA__LOOP(_row_IN_BLOCK)];
        for (int j = 0; j < FA__LOOP(_row_IN_BLOCK); j++) run[j] = none;
        for (; i < end; i += FA__AT_ONCE) {
            if (adds) FA__LOOP(__product_block)(run, next, i, real);
            if (finishes) FA__LOOP(__slopes_block)(i < fits ? to + i : left + i, of, i, real, sums, scales, streamed && i < fits, by_unit);
        }
        for (int j = 1; j < FA__LOOP(_row_IN_BLOCK); j++) run[0] += run[j];
        all += run[0];
    }
    if (finishes && fits < real) FA__LOOP(_row__deliver)(to + fits, left + fits, real - fits, streamed);
    return FA__LOOP(_reduce__join)(all, 0);
}
FA__FN_CALLED float FA__LOOP(__product)(const FA__LOOP(__terms) * next, int real) { return FA__LOOP(__columns)(NULL, NULL, 0.0f, 0.0f, 0, next, real, 0, 1); }
FA__FN_CALLED float FA__LOOP(__slopes)(FA__ELEMENT *to, const FA__LOOP(__terms) * of, float sum, float scale, int streamed, const FA__LOOP(__terms) * next, int real) {
    const FA__LOOP(__terms) one = *of, other = *next;
    if (other.y) return FA__LOOP(__columns)(to, &one, sum, scale, streamed, &other, real, 1, FA__LOOP(_row_BESIDE));
    return FA__LOOP(__columns)(to, &one, sum, scale, streamed, &other, real, 1, 0);
}
FA__FN FA__LOOP(__terms) FA__LOOP(__terms_of)(const FA__PARAMS *p, int64_t row, int64_t col) {
    const FA__LOOP(__terms) of = {(const FA__ELEMENT *)fa__address(&p->y, row, col, sizeof(FA__ELEMENT)),
                                  (const FA__ELEMENT *)fa__address(&p->d_y, row, col, sizeof(FA__ELEMENT))};
    return of;
}
FA__FN void FA__LOOP(__backward_plain)(const FA__PARAMS *p, int64_t row, FA__LOOP(_place) * place) {
    enum { FA__LENGTH = FA__LOOP(_row_LENGTH) };
    const int64_t cols = p->rows.cols;
    const int beside = FA__LOOP(_row_BESIDE) && row + 1 < place->end;
    FA__LOOP(_reduce__total) total = 0.0;
    float sum = place->found;
    if (place->known != row) {
        for (int64_t i = 0; i < cols; i += FA__LENGTH) {
            const FA__LOOP(__terms) of = FA__LOOP(__terms_of)(p, row, i);
            total += (double)FA__LOOP(__product)(&of, cols - i < FA__LENGTH ? (int)(cols - i) : FA__LENGTH);
        }
        sum = (float)total, total = 0.0;
    }
    for (int64_t i = 0; i < cols; i += FA__LENGTH) {
        const FA__LOOP(__terms) of = FA__LOOP(__terms_of)(p, row, i), none = {NULL, NULL}, next = beside ? FA__LOOP(__terms_of)(p, row + 1, i) : none;
        total += (double)FA__LOOP(__slopes)((FA__ELEMENT *)fa__address(&p->d_x, row, i, sizeof(FA__ELEMENT)), &of, sum, p->scale, p->rows.stream, &next,
                                            cols - i < FA__LENGTH ? (int)(cols - i) : FA__LENGTH);
    }
    if (beside) place->known = row + 1, place->found = (float)total;
}
