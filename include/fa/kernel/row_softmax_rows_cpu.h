/* row_softmax_rows_cpu.h: the softmax of a row, and its gradient, on the CPU: row_softmax_rows.h.
 *
 * Forward: a core keeps as many pieces of the row as place->keeps in its L2 cache, as exponentials. They are relative to the
 * largest element of the first piece as long as no element is far above that, which is so in nearly all rows, and then none that is
 * kept is computed twice. All others are computed again, relative to the final base, by the same operations: so the result
 * does not depend on how much of a row a thread has room for. */
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
 * from memory, and the results go from registers to memory. */

/* The sum of y d of `real` elements. Elements three pieces' lengths further on are prefetched, two being as good. */
FA__FN_CALLED float FA__LOOP(__product)(const FA__ELEMENT *y, const FA__ELEMENT *d, int real) {
    enum { FA__AT_ONCE = FA__LOOP(_row_BLOCK), FA__VECTORS = FA__AT_ONCE / FA__LOOP(_row_LANES), FA__RUN = FA__CPU_RUN * FA__AT_ONCE };
    const uintptr_t ahead = 3 * FA__LOOP(_row_LENGTH) * sizeof(FA__ELEMENT);
    const FA__CPU_OP(vec) none = FA__CPU_OP(splat)(0.0f);
    FA__CPU_OP(vec) all = none, a[FA__VECTORS], b[FA__VECTORS];
    FA__ELEMENT rest[2][FA__AT_ONCE];
    for (int i = 0; i < real;) {
        const int end = real - i < FA__RUN ? real : i + FA__RUN;
        FA__CPU_OP(vec) run[FA__VECTORS];
        for (int j = 0; j < FA__VECTORS; j++) run[j] = none;
        for (; i < end; i += FA__AT_ONCE) {
            const FA__ELEMENT *from_y = y + i, *from_d = d + i;
            FA__LOOP(_row__ask_block)((uintptr_t)from_y + ahead), FA__LOOP(_row__ask_block)((uintptr_t)from_d + ahead);
            if (__builtin_expect(i + FA__AT_ONCE > real, 0)) { /* of both at once: a branch less */
                from_y = FA__LOOP(_row__some)(rest[0], y, i, real, FA__AT_ONCE, (FA__ELEMENT)0);
                from_d = FA__LOOP(_row__some)(rest[1], d, i, real, FA__AT_ONCE, (FA__ELEMENT)0);
            }
            FA__LOOP(_row__shuffled)(a, from_y), FA__LOOP(_row__shuffled)(b, from_d);
            FA__UNROLL
            for (int j = 0; j < FA__VECTORS; j++) run[j] = FA__CPU_OP(fma)(a[j], b[j], run[j]);
        }
        for (int j = 1; j < FA__VECTORS; j++) run[0] += run[j];
        all += run[0];
    }
    return FA__LOOP(_reduce__join)(all, 0);
}
/* to = y (d - sum) * scale */
FA__FN_CALLED void FA__LOOP(__slopes)(FA__ELEMENT *to, const FA__ELEMENT *y, const FA__ELEMENT *d, int real, float sum, float scale, int streamed) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__AT_ONCE = FA__LOOP(_row_BLOCK), FA__VECTORS = FA__AT_ONCE / FA__FLOATS };
    const FA__CPU_OP(vec) sums = FA__CPU_OP(splat)(sum), scales = FA__CPU_OP(splat)(scale);
    const int fits = FA__LOOP(_row__fits)(to, real, streamed), by_unit = fa__cpu_rounds_bf16();
    FA__CPU_ALIGNED FA__ELEMENT left[(int)FA__LOOP(_row_LENGTH) + FA__AT_ONCE]; /* the end, and rows that lie across lines */
    FA__ELEMENT rest[2][FA__AT_ONCE];
    for (int i = 0; i < real; i += FA__AT_ONCE) {
        FA__CPU_OP(vec) a[FA__VECTORS], b[FA__VECTORS];
        FA__LOOP(_row__bring)(a, FA__LOOP(_row__block_of)(rest[0], y, i, real)), FA__LOOP(_row__bring)(b, FA__LOOP(_row__block_of)(rest[1], d, i, real));
        FA__UNROLL
        for (int j = 0; j < FA__VECTORS; j++) a[j] = a[j] * (b[j] - sums) * scales;
        FA__LOOP(_row__bring_back)(i < fits ? to + i : left + i, a, streamed && i < fits, by_unit);
    }
    if (fits < real) FA__LOOP(_row__deliver)(to + fits, left + fits, real - fits, streamed);
}
FA__FN void FA__LOOP(__backward_plain)(const FA__PARAMS *p, int64_t row) {
    const FA__ELEMENT *y = (const FA__ELEMENT *)p->y.data + row * p->y.stride_row, *d = (const FA__ELEMENT *)p->d_y.data + row * p->d_y.stride_row;
    FA__ELEMENT *to = (FA__ELEMENT *)p->d_x.data + row * p->d_x.stride_row;
    const int64_t cols = p->rows.cols;
    FA__LOOP(_reduce__total) total = 0.0;
    for (int64_t i = 0; i < cols; i += FA__LOOP(_row_LENGTH))
        total += (double)FA__LOOP(__product)(y + i, d + i, cols - i < FA__LOOP(_row_LENGTH) ? (int)(cols - i) : FA__LOOP(_row_LENGTH));
    const float sum = (float)total;
    for (int64_t i = 0; i < cols; i += FA__LOOP(_row_LENGTH))
        FA__LOOP(__slopes)(to + i, y + i, d + i, cols - i < FA__LOOP(_row_LENGTH) ? (int)(cols - i) : FA__LOOP(_row_LENGTH), sum, p->scale, p->rows.stream);
}
