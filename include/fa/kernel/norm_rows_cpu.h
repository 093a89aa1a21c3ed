/* norm_rows_cpu.h: norm_rows.h on the CPU, where every pass over a row takes its time: one finds what has to be known of all of it, and
 * one does the rest, both from memory into registers and back. */

/* Where an element is; NULL if there is no such matrix. */
FA__FN FA__ELEMENT *FA__LOOP(_element)(const fa_matrix *m, int64_t row, int64_t col) {
    return m->data ? (FA__ELEMENT *)fa__address(m, row, col, sizeof(FA__ELEMENT)) : NULL;
}

/* ---- forward, where nothing is dropped, and elements are widened by instructions ----
 *
 * A row is looked at twice, and stays what it is in memory: halves take half of the room in caches that floats do, and are widened
 * once more in less time than floats are stored and loaded. */

/* The sums of all s - pivot and of their squares: of 16 elements they are near the mean if rows are anything like what norms are
 * made for. */
FA__FN_CALLED void FA__LOOP(_see)(float *sum, float *squares, const FA__ELEMENT *x, const FA__ELEMENT *r, int64_t cols, float pivot) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__AT_ONCE = FA__LOOP(_row_BLOCK), FA__VECTORS = FA__AT_ONCE / FA__FLOATS };
    const FA__CPU_OP(vec) pivots = FA__CPU_OP(splat)(pivot), none = FA__CPU_OP(splat)(0.0f);
    const uintptr_t ahead = FA__LOOP(_row_LENGTH) * sizeof(FA__ELEMENT);
    FA__CPU_OP(vec) all = none, all_squares = none, s[FA__VECTORS], add[FA__VECTORS];
    for (int64_t piece = 0; piece < cols; piece += FA__LOOP(_row_LENGTH)) { /* sums of sums: fewer roundings of large ones */
        const int64_t end = cols - piece < FA__LOOP(_row_LENGTH) ? cols : piece + FA__LOOP(_row_LENGTH);
        FA__CPU_OP(vec) part[FA__VECTORS], part_squares[FA__VECTORS];
        for (int j = 0; j < FA__VECTORS; j++) part[j] = part_squares[j] = none;
        for (int64_t i = piece; i < end; i += FA__AT_ONCE) {
            if (i + FA__AT_ONCE <= end) {
                FA__LOOP(_row__ask_block)((uintptr_t)(x + i) + ahead);
                if (r) FA__LOOP(_row__ask_block)((uintptr_t)(r + i) + ahead);
                FA__LOOP(_row__shuffled)(s, x + i);
                if (r) FA__LOOP(_row__shuffled)(add, r + i);
                FA__UNROLL
                for (int j = 0; j < FA__VECTORS; j++) {
                    if (r) s[j] += add[j];
                    if (FA__CENTERED) s[j] -= pivots;
                }
            } else {
                float rest[FA__AT_ONCE];
                for (int j = 0; j < FA__AT_ONCE; j++) {
                    rest[j] = 0.0f;
                    if (i + j < end) rest[j] = fa_load_element(x, i + j, FA_DTYPE) + (r ? fa_load_element(r, i + j, FA_DTYPE) : 0.0f) - pivot;
                }
                memcpy(s, rest, sizeof s);
            }
            FA__UNROLL
            for (int j = 0; j < FA__VECTORS; j++) {
                if (FA__CENTERED) part[j] += s[j];
                part_squares[j] = FA__CPU_OP(fma)(s[j], s[j], part_squares[j]);
            }
        }
        for (int j = 0; j < FA__VECTORS; j++) all += part[j], all_squares += part_squares[j];
    }
    if (FA__CENTERED) *sum = FA__LOOP(_reduce__join)(all, 0);
    *squares = FA__LOOP(_reduce__join)(all_squares, 0);
}
/* The statistics of a row, of x or of x + r. */
FA__FN_CALLED void FA__LOOP(_look)(FA__LOOP(_flight) * f, const FA__PARAMS *p, const FA__ELEMENT *x, const FA__ELEMENT *r) {
    const int64_t cols = p->rows.cols;
    float sum = 0.0f, squares, pivot = 0.0f;
    f->mean = 0.0f;
#if FA__CENTERED
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__FIRST = FA__LOOP(_row_UNIT) };
    const int some = cols < FA__FIRST ? (int)cols : FA__FIRST;
    FA__ELEMENT rest[2][FA__FLOATS];
    FA__CPU_OP(vec) first = FA__CPU_OP(splat)(0.0f);
    for (int i = 0; i < some; i += FA__FLOATS) {
        first += FA__LOOP(_row__vector)(FA__LOOP(_row__from)(rest[0], x, i, some));
        if (r) first += FA__LOOP(_row__vector)(FA__LOOP(_row__from)(rest[1], r, i, some));
    }
    pivot = FA__LOOP(_row__coarse)(FA__LOOP(_reduce__join)(first, 0) / (float)some);
    for (int again = 0; again < 2; again++) { /* where most of the squares are those of the pivot's distance, relative to the mean */
        if (!(fabsf(pivot) < INFINITY)) pivot = 0.0f; /* a row that begins with an infinity has a mean */
        FA__LOOP(_see)(&sum, &squares, x, r, cols, pivot);
        const float off = sum * p->inverse_cols, lost = sum * off;
        f->mean = pivot + off;
        if (lost <= 0.5f * squares && squares < INFINITY) again = 2;
        squares = lost > squares ? 0.0f : squares - lost; /* NaN remains */
        pivot = f->mean;
    }
#else
    FA__LOOP(_see)(&sum, &squares, x, r, cols, pivot);
#endif
    f->rstd = fa__rsqrt(squares * p->inverse_cols + p->eps);
}

/* y of a vector. */
FA__FN FA__CPU_OP(vec) FA__LOOP(_normal_of)(FA__CPU_OP(vec) s, FA__CPU_OP(vec) mean, FA__CPU_OP(vec) rstd, const float *gamma, const float *beta) {
    const FA__CPU_OP(vec) by = *(const FA__CPU_OP(any) *)gamma;
#if FA__CENTERED
    return FA__CPU_OP(fma)((s - mean) * rstd, by, *(const FA__CPU_OP(any) *)beta);
#else
    (void)mean, (void)beta;
    return s * rstd * by;
#endif
}
/* A block: the sum, if it is wanted, and y. gamma and beta: in the order of FA__LOOP(_row__bring)(). */
FA__FN void FA__LOOP(_normal_block)(FA__ELEMENT *y, FA__ELEMENT *sum, int sums, const FA__ELEMENT *x, const FA__ELEMENT *r, int adds, const float *gamma,
                                    const float *beta, FA__CPU_OP(vec) mean, FA__CPU_OP(vec) rstd, int streamed, int by_unit) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__VECTORS = FA__LOOP(_row_BLOCK) / FA__FLOATS };
    FA__CPU_OP(vec) s[FA__VECTORS], add[FA__VECTORS];
    FA__LOOP(_row__bring)(s, x);
    if (adds) {
        FA__LOOP(_row__bring)(add, r);
        FA__UNROLL
        for (int j = 0; j < FA__VECTORS; j++) s[j] += add[j];
    }
    if (sums) FA__LOOP(_row__bring_back)(sum, s, streamed, by_unit);
    FA__UNROLL
    for (int j = 0; j < FA__VECTORS; j++) s[j] = FA__LOOP(_normal_of)(s[j], mean, rstd, gamma + j * FA__FLOATS, beta + j * FA__FLOATS);
    FA__LOOP(_row__bring_back)(y, s, streamed, by_unit);
}
/* Results of `real` columns. What is neither x nor y may be NULL. */
FA__FN_CALLED void FA__LOOP(_normal)(FA__ELEMENT *y, FA__ELEMENT *sum, const FA__ELEMENT *x, const FA__ELEMENT *r, const float *gamma,
                                     const float *beta, int real, const FA__LOOP(_flight) * f, int streamed, uintptr_t next, uintptr_t next_r) {
    enum { FA__AT_ONCE = FA__LOOP(_row_BLOCK) };
    const FA__CPU_OP(vec) mean = FA__CPU_OP(splat)(f->mean), rstd = FA__CPU_OP(splat)(f->rstd);
    FA__CPU_ALIGNED FA__ELEMENT left[2][(int)FA__LOOP(_row_LENGTH) + FA__AT_ONCE]; /* what is not put where it belongs at once */
    FA__ELEMENT rest[2][FA__AT_ONCE];
    const int blocks = real / FA__AT_ONCE * FA__AT_ONCE, by_unit = fa__cpu_rounds_bf16(), sums = sum != NULL, adds = r != NULL;
    const int lines = FA__AT_ONCE * sizeof(FA__ELEMENT) >= 64; /* else two matrices by turns leave lines half full */
    const int fits = FA__LOOP(_row__fits)(y, blocks, streamed), both = !sums || ((lines || !streamed) && FA__LOOP(_row__fits)(sum, blocks, streamed));
    const int done = both ? fits : 0, streams = streamed && done > 0;
    FA__ELEMENT *to_y = done > 0 ? y : left[0], *to_sum = done > 0 && sums ? sum : left[1];
    if (!adds) r = x;
    for (int i = 0; i < blocks; i += FA__AT_ONCE) {
        if (next) {
            FA__LOOP(_row__ask_block)(next + (uintptr_t)i * sizeof(FA__ELEMENT));
            if (adds) FA__LOOP(_row__ask_block)(next_r + (uintptr_t)i * sizeof(FA__ELEMENT));
        }
        FA__LOOP(_normal_block)(to_y + i, to_sum + i, sums, x + i, r + i, adds, gamma + i, beta + i, mean, rstd, streams, by_unit);
    }
    if (blocks < real)
        FA__LOOP(_normal_block)(left[0] + blocks, left[1] + blocks, sums, FA__LOOP(_row__whole)(rest[0], x, blocks, real),
                                FA__LOOP(_row__whole)(rest[1], r, blocks, real), adds, gamma + blocks, beta + blocks, mean, rstd, 0, by_unit);
    if (done == real) return;
    if (sums) FA__LOOP(_row__deliver)(sum + done, left[1] + done, real - done, streamed);
    FA__LOOP(_row__deliver)(y + done, left[0] + done, real - done, streamed);
}

/* ---- forward with dropout, or of elements that are costly to widen ---- */

/* What is read of a row. */
typedef struct FA__LOOP(_source) {
    FA__LOOP(_row_view) x, residual;
    FA__LOOP(_row_drawn) drawn;
} FA__LOOP(_source);
/* What is normalised, a piece of it, and zeros behind it. */
FA__FN_CALLED void FA__LOOP(_summand)(float *x, const FA__LOOP(_source) * from, int64_t piece, int drops) {
    FA__LOOP(_row_load)(x, &from->x, piece, 0.0f);
    if (drops) FA__LOOP(_row_dropout)(x, &from->x, piece, &from->drawn);
    if (from->residual.first) {
        float add[FA__LOOP(_row_LENGTH)];
        const int count = FA__LOOP(_row_count)(&from->x, piece);
        FA__LOOP(_row_load)(add, &from->residual, piece, 0.0f);
        for (int i = 0; i < count; i += FA__LOOP(_row_LANES)) *(FA__CPU_OP(any) *)(x + i) += *(const FA__CPU_OP(any) *)(add + i);
    }
}
/* A row, whose pieces are kept as floats if there are not too many: what is drawn or widened is not again. */
FA__FN_CALLED void FA__LOOP(_forward)(FA__LOOP(_flight) * f, const FA__PARAMS *p, int64_t row, float *gamma_of, float *beta_of, fa_team *team) {
    enum { FA__MEAN, FA__SQUARES, FA__RESULTS };
    float kept[(int)FA__LOOP(_row_KEPT) * FA__LOOP(_row_LENGTH)];
    double sum = 0.0, rest = 0.0, squares = 0.0;
    FA__LOOP(_source) from;
    from.x = FA__LOOP(_row_at)(FA__LOOP(_element)(&p->x, row, 0), p->rows.cols, team);
    from.residual = FA__LOOP(_row_like)(FA__LOOP(_element)(&p->residual, row, 0), &from.x);
    from.drawn = FA__LOOP(_row_draw)(&from.x, (uint64_t)(row * p->rows.cols), &p->dropout);
    const FA__LOOP(_row_view) to_sum = FA__LOOP(_row_like)(FA__LOOP(_element)(&p->sum, row, 0), &from.x);
    const FA__LOOP(_row_view) to_y = FA__LOOP(_row_like)(FA__LOOP(_element)(&p->y, row, 0), &from.x);
    const int keeps = FA__LOOP(_row_keeps)(&from.x, 1), first = FA__CENTERED ? FA__MEAN : FA__SQUARES;
    f->mean = 0.0f;
    for (int look = first; look <= FA__RESULTS; look++) {
        const FA__CPU_OP(vec) mean = FA__CPU_OP(splat)(f->mean), rstd = FA__CPU_OP(splat)(f->rstd);
        for (int64_t piece = 0; piece < FA__LOOP(_row_pieces)(&from.x); piece++) {
            float *x = kept + (keeps ? piece * FA__LOOP(_row_LENGTH) : 0);
            const int count = FA__LOOP(_row_count)(&from.x, piece), real = FA__LOOP(_row_real)(&from.x, piece);
            if (look == first) FA__LOOP(_row_ahead)(&from.x, piece);
            if (look == first || !keeps) FA__LOOP(_summand)(x, &from, piece, p->dropout.threshold > 0);
            if (look == FA__MEAN) {
                sum += (double)FA__LOOP(_reduce_sum_of)(x, count);
            } else if (look == FA__SQUARES) {
                FA__LOOP(_row_pad)(x, &from.x, piece, f->mean);
                squares += (double)FA__LOOP(_reduce_squares_of)(x, count, f->mean);
                float off[FA__LOOP(_row_LENGTH)];
                for (int i = 0; FA__CENTERED && i < count; i += FA__LOOP(_row_LANES))
                    *(FA__CPU_OP(any) *)(off + i) = *(const FA__CPU_OP(any) *)(x + i) - mean;
                if (FA__CENTERED) rest += (double)FA__LOOP(_reduce_sum_of)(off, count);
            } else {
                const float *gamma = FA__LOOP(_row_weights)(gamma_of, &from.x, piece, 0, p->gamma, FA_WEIGHT_DTYPE, 1.0f), *beta = gamma;
                if (FA__CENTERED) beta = FA__LOOP(_row_weights)(beta_of, &from.x, piece, 0, p->beta, FA_WEIGHT_DTYPE, 0.0f);
                /* The sum is written here and not above, so that it may take the place of what it is made of. */
                if (to_sum.first) FA__LOOP(_row__store_at)(FA__LOOP(_row__piece)(&to_sum, piece), x, real, p->rows.stream);
                for (int i = 0; i < count; i += FA__LOOP(_row_LANES)) {
                    FA__CPU_OP(any) *s = (FA__CPU_OP(any) *)(x + i);
                    *s = FA__LOOP(_normal_of)(*s, mean, rstd, gamma + i, beta + i);
                }
                FA__LOOP(_row__store_at)(FA__LOOP(_row__piece)(&to_y, piece), x, real, p->rows.stream);
            }
        }
        if (look == FA__MEAN) f->mean = (float)(sum / (double)p->rows.cols);
        if (look == FA__SQUARES) { /* what the mean was off by its roundings */
            const double off = rest / (double)p->rows.cols, lost = rest * off;
            f->mean += (float)off;
            squares = lost > squares ? 0.0 : squares - lost; /* NaN remains */
            f->rstd = fa__rsqrt((float)squares * p->inverse_cols + p->eps);
        }
    }
}

/* ---- forward, all of it ---- */

/* Rows are asked for some time before they are needed, also those of the item that comes next, if it is known. The row that comes
 * `ahead` rows later, or -1. */
FA__FN int64_t FA__LOOP(_later)(const FA__PARAMS *p, int64_t row, int64_t ahead, int64_t end, int64_t next_item) {
    int64_t later = row + ahead;
    if (later < end) return later;
    if (next_item < 0) return -1;
    later += next_item * p->rows.rows_an_item - end;
    return later < p->rows.rows ? later : -1;
}
/* Some rows. Of long ones several at a time, as many as the second-level cache holds: then segment by segment, whose weights stay in
 * the first-level cache. Rows that come next are asked for meanwhile. */
FA__FN void FA__LOOP(_forward_rows)(const FA__PARAMS *p, int64_t row, int64_t end, int64_t next_item, fa_team *team) {
    enum { FA__MOST = FA__CPU_HELD / (FA__CPU_PIECE * (int)sizeof(FA__ELEMENT)) + 1 };
    const int64_t cols = p->rows.cols, row_bytes = p->rows.tensors * cols * (int64_t)sizeof(FA__ELEMENT);
    const int64_t length = cols > FA__CPU_PIECE ? FA__CPU_SEGMENT : cols, held = cols > FA__CPU_PIECE ? FA__CPU_HELD / row_bytes + 1 : 1;
    const int64_t ahead = cols > FA__CPU_PIECE ? held : FA__CPU_AHEAD / row_bytes + 1;
    FA__CPU_ALIGNED float gamma_of[(int)FA__LOOP(_row_LENGTH) + FA__LOOP(_row_BLOCK)];
    FA__CPU_ALIGNED float beta_of[(int)FA__LOOP(_row_LENGTH) + FA__LOOP(_row_BLOCK)];
    const float *gamma = NULL, *beta = NULL;
    const int by_itself = FA__LOOP(_row_COSTLY) || p->dropout.threshold > 0;
    FA__LOOP(_flight) f[FA__MOST];
    for (int64_t stop; row < end; row = stop) {
        stop = end - row < held ? end : row + held;
        for (int64_t i = row; i < stop; i++) {
            if (by_itself) FA__LOOP(_forward)(&f[i - row], p, i, gamma_of, beta_of, team);
            else FA__LOOP(_look)(&f[i - row], p, FA__LOOP(_element)(&p->x, i, 0), FA__LOOP(_element)(&p->residual, i, 0));
            if (p->rstd) p->rstd[i] = f[i - row].rstd;
#if FA__CENTERED
            if (p->mean) p->mean[i] = f[i - row].mean;
#endif
        }
        for (int64_t first = by_itself ? cols : 0; first < cols; first += length) {
            const int real = cols - first < length ? (int)(cols - first) : (int)length;
            if (!gamma || length < cols) {
                const FA__LOOP(_row_view) of = FA__LOOP(_row_at)(NULL, real, team);
                const int64_t at = first * fa_dtype_bytes(FA_WEIGHT_DTYPE);
                gamma = FA__LOOP(_row_weights)(gamma_of, &of, 0, 0, p->gamma ? (const char *)p->gamma + at : NULL, FA_WEIGHT_DTYPE, 1.0f);
                beta = gamma = FA__LOOP(_row__arranged)(gamma_of, gamma, real);
                if (FA__CENTERED) {
                    beta = FA__LOOP(_row_weights)(beta_of, &of, 0, 0, p->beta ? (const char *)p->beta + at : NULL, FA_WEIGHT_DTYPE, 0.0f);
                    beta = FA__LOOP(_row__arranged)(beta_of, beta, real);
                }
            }
            for (int64_t i = row; i < stop; i++) {
                const int64_t later = FA__LOOP(_later)(p, i, ahead, end, next_item);
                FA__LOOP(_normal)(FA__LOOP(_element)(&p->y, i, first), FA__LOOP(_element)(&p->sum, i, first), FA__LOOP(_element)(&p->x, i, first), FA__LOOP(_element)(&p->residual, i, first), gamma,
                                  beta, real, &f[i - row], p->rows.stream, later >= 0 ? (uintptr_t)FA__LOOP(_element)(&p->x, later, first) : 0,
                                  later >= 0 ? (uintptr_t)FA__LOOP(_element)(&p->residual, later, first) : 0);
            }
        }
    }
}

/* ---- backward ---- */

/* What the gradients of a piece are made of, and where the same of a row that comes later is, or 0. */
typedef struct FA__LOOP(_terms) {
    const FA__ELEMENT *s, *d_y, *more; /* more: what reaches the sum in other ways, or NULL */
    uintptr_t next_s, next_d, next_more;
} FA__LOOP(_terms);

FA__FN FA__CPU_OP(vec) FA__LOOP(_off)(FA__CPU_OP(vec) s, FA__CPU_OP(vec) mean) {
    if (FA__CENTERED) s -= mean;
    return s;
}
/* The sums over a piece of w = d_y gamma and of w n. */
FA__FN_CALLED void FA__LOOP(_add_up)(float *w_sum, float *wn_sum, const FA__ELEMENT *s, const FA__ELEMENT *d, const float *gamma, int real,
                                     const FA__LOOP(_flight) * f) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__AT_ONCE = FA__LOOP(_row_BLOCK), FA__VECTORS = FA__AT_ONCE / FA__FLOATS };
    const FA__CPU_OP(vec) mean = FA__CPU_OP(splat)(f->mean);
    FA__CPU_OP(vec) all_w[2], all_wn[2], off[FA__VECTORS], w[FA__VECTORS];
    FA__ELEMENT rest[2][FA__FLOATS];
    int i = 0;
    for (int j = 0; j < 2; j++) all_w[j] = all_wn[j] = FA__CPU_OP(splat)(0.0f);
    for (; i + FA__AT_ONCE <= real; i += FA__AT_ONCE) {
        FA__LOOP(_row__block)(off, s + i), FA__LOOP(_row__block)(w, d + i);
        for (int j = 0; j < FA__VECTORS; j++) {
            w[j] *= *(const FA__CPU_OP(any) *)(gamma + i + j * FA__FLOATS);
            if (FA__CENTERED) all_w[j % 2] += w[j];
            all_wn[j % 2] = FA__CPU_OP(fma)(w[j], FA__LOOP(_off)(off[j], mean), all_wn[j % 2]); /* of w n / rstd */
        }
    }
    for (; i < real; i += FA__FLOATS) {
        w[0] = FA__LOOP(_row__vector)(FA__LOOP(_row__from)(rest[1], d, i, real)) * *(const FA__CPU_OP(any) *)(gamma + i);
        if (FA__CENTERED) all_w[0] += w[0];
        all_wn[0] = FA__CPU_OP(fma)(w[0], FA__LOOP(_off)(FA__LOOP(_row__vector)(FA__LOOP(_row__from)(rest[0], s, i, real)), mean), all_wn[0]);
    }
    if (FA__CENTERED) *w_sum += FA__LOOP(_reduce__join)(all_w[0] + all_w[1], 0);
    *wn_sum += FA__LOOP(_reduce__join)(all_wn[0] + all_wn[1], 0) * f->rstd;
}
/* What is known of a row, in vectors. */
typedef struct FA__LOOP(_spread) {
    FA__CPU_OP(vec) mean, rstd, of_w, of_wn;
} FA__LOOP(_spread);
FA__FN FA__LOOP(_spread) FA__LOOP(_spread_of)(const FA__LOOP(_flight) * f) {
    const FA__LOOP(_spread) spread = {FA__CPU_OP(splat)(f->mean), FA__CPU_OP(splat)(f->rstd), FA__CPU_OP(splat)(f->of_w), FA__CPU_OP(splat)(f->of_wn)};
    return spread;
}
/* A vector of the gradient without what reaches the sum in other ways, and of the sums of columns with what this row adds to them. */
FA__FN FA__CPU_OP(vec) FA__LOOP(_gradient_of)(FA__CPU_OP(vec) * wn, FA__CPU_OP(vec) * w, FA__CPU_OP(vec) s, FA__CPU_OP(vec) d_y, const float *gamma,
                                              const float *sum_wn, const float *sum_w, const FA__LOOP(_spread) * f) {
    const FA__CPU_OP(vec) d_n = d_y * f->rstd, off = FA__LOOP(_off)(s, f->mean); /* n / rstd */
    *wn = FA__CPU_OP(fma)(d_n, off, *(const FA__CPU_OP(any) *)sum_wn);
    if (FA__CENTERED) *w = d_y + *(const FA__CPU_OP(any) *)sum_w;
    else *w = d_y;
    return FA__CPU_OP(fma)(off, f->of_wn, FA__CPU_OP(fma)(d_n, *(const FA__CPU_OP(any) *)gamma, f->of_w));
}
/* What a piece adds to the sums of columns, if they are wanted, and its gradient, to where it belongs or into x. All of a block is
 * loaded before anything is stored: the sums, and often gamma, lie at multiples of 4 KB from each other, and a load waits for a
 * store that has the same last 12 bits. */
FA__FN_CALLED void FA__LOOP(_gradient)(FA__ELEMENT *to, float *x, float *sum_wn, float *sum_w, const FA__LOOP(_terms) * of, const float *gamma,
                                       int real, const FA__LOOP(_flight) * f, int streamed) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__AT_ONCE = FA__LOOP(_row_BLOCK), FA__VECTORS = FA__AT_ONCE / FA__FLOATS };
    const int by_unit = fa__cpu_rounds_bf16(), blocks = real / FA__AT_ONCE * FA__AT_ONCE;
    const FA__LOOP(_spread) spread = FA__LOOP(_spread_of)(f);
    const float *old_wn = sum_wn ? sum_wn : gamma, *old_w = sum_w ? sum_w : gamma; /* nobody looks at what becomes of gamma */
    const FA__ELEMENT *from_s = of->s, *from_d = of->d_y, *from_more = of->more;
    for (int i = 0; i < blocks; i += FA__AT_ONCE) {
        FA__CPU_OP(vec) s[FA__VECTORS], d[FA__VECTORS], wn[FA__VECTORS], w[FA__VECTORS], more[FA__VECTORS];
        if (of->next_s) {
            const uintptr_t at = (uintptr_t)i * sizeof(FA__ELEMENT);
            FA__LOOP(_row__ask_block)(of->next_s + at), FA__LOOP(_row__ask_block)(of->next_d + at);
            if (from_more) FA__LOOP(_row__ask_block)(of->next_more + at);
        }
        FA__LOOP(_row__block)(s, from_s + i), FA__LOOP(_row__block)(d, from_d + i);
        for (int j = 0; j < FA__VECTORS; j++)
            s[j] = FA__LOOP(_gradient_of)(&wn[j], &w[j], s[j], d[j], gamma + i + j * FA__FLOATS, old_wn + i + j * FA__FLOATS,
                                          old_w + i + j * FA__FLOATS, &spread);
        if (from_more) {
            FA__LOOP(_row__block)(more, from_more + i);
            for (int j = 0; j < FA__VECTORS; j++) s[j] += more[j];
        }
        for (int j = 0; j < FA__VECTORS && sum_wn; j++) {
            *(FA__CPU_OP(any) *)(sum_wn + i + j * FA__FLOATS) = wn[j];
            if (FA__CENTERED) *(FA__CPU_OP(any) *)(sum_w + i + j * FA__FLOATS) = w[j];
        }
        if (to) FA__LOOP(_row__put)(to + i, s, streamed, by_unit);
        else
            for (int j = 0; j < FA__VECTORS; j++) *(FA__CPU_OP(any) *)(x + i + j * FA__FLOATS) = s[j];
    }
    FA__ELEMENT rest[3][FA__FLOATS];
    for (int i = blocks; i < real; i += FA__FLOATS) {
        FA__CPU_OP(vec) wn, w, s = FA__LOOP(_row__vector)(FA__LOOP(_row__from)(rest[0], from_s, i, real));
        s = FA__LOOP(_gradient_of)(&wn, &w, s, FA__LOOP(_row__vector)(FA__LOOP(_row__from)(rest[1], from_d, i, real)), gamma + i,
                                   old_wn + i, old_w + i, &spread);
        if (from_more) s += FA__LOOP(_row__vector)(FA__LOOP(_row__from)(rest[2], from_more, i, real));
        if (sum_wn) {
            *(FA__CPU_OP(any) *)(sum_wn + i) = wn;
            if (FA__CENTERED) *(FA__CPU_OP(any) *)(sum_w + i) = w;
        }
        *(FA__CPU_OP(any) *)(x + i) = s;
    }
    if (to && blocks < real) FA__LOOP(_row__store_at)(to + blocks, x + blocks, real - blocks, 0);
}

/* Two rows of halves at a time, where there are registers for it: the sums of columns are loaded and stored once. */
enum { FA__LOOP(_PAIRS) = FA__LOOP(_row_LANES) == 16 && sizeof(FA__ELEMENT) == 2 };

/* Asks for a block of what comes later. */
FA__FN void FA__LOOP(_ask_terms)(const FA__LOOP(_terms) * of, int i) {
    const uintptr_t at = (uintptr_t)i * sizeof(FA__ELEMENT);
    if (!of->next_s) return;
    FA__LOOP(_row__ask_block)(of->next_s + at), FA__LOOP(_row__ask_block)(of->next_d + at);
    if (of->more) FA__LOOP(_row__ask_block)(of->next_more + at);
}
/* A block of a row: its gradient; what it adds to the sums of columns is added to these. */
FA__FN void FA__LOOP(_gradient_block)(FA__CPU_OP(vec) * x, FA__CPU_OP(vec) * wn, FA__CPU_OP(vec) * w, const FA__LOOP(_terms) * of, int i, const float *gamma,
                                      const FA__LOOP(_spread) * f) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__VECTORS = FA__LOOP(_row_BLOCK) / FA__FLOATS };
    FA__CPU_OP(vec) d[FA__VECTORS];
    FA__LOOP(_row__block)(x, of->s + i), FA__LOOP(_row__block)(d, of->d_y + i);
    for (int j = 0; j < FA__VECTORS; j++)
        x[j] = FA__LOOP(_gradient_of)(&wn[j], &w[j], x[j], d[j], gamma + i + j * FA__FLOATS, (const float *)&wn[j], (const float *)&w[j], f);
    if (of->more) {
        FA__LOOP(_row__block)(d, of->more + i);
        for (int j = 0; j < FA__VECTORS; j++) x[j] += d[j];
    }
}
/* The blocks of a piece of two rows, as above. What comes later is asked for of one row after the other, and what is written goes to memory one after the other,
 * the second by way of left[], since memory takes lines of two rows by turns later than that. */
FA__FN_CALLED void FA__LOOP(_gradient_two)(FA__ELEMENT *const to[2], float *sum_wn, float *sum_w, const FA__LOOP(_terms) * of, const float *gamma, int blocks,
                                           const FA__LOOP(_flight) * f, int streamed) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__AT_ONCE = FA__LOOP(_row_BLOCK), FA__VECTORS = FA__AT_ONCE / FA__FLOATS };
    FA__CPU_ALIGNED FA__ELEMENT left[FA__LOOP(_row_LENGTH)];
    const int by_unit = fa__cpu_rounds_bf16();
    const FA__LOOP(_spread) first = FA__LOOP(_spread_of)(f), second = FA__LOOP(_spread_of)(f + 1);
    const FA__LOOP(_terms) one = of[0], two = of[1];
    for (int i = 0; i < blocks; i += FA__AT_ONCE) {
        FA__CPU_OP(vec) s[FA__VECTORS], t[FA__VECTORS], wn[FA__VECTORS], w[FA__VECTORS];
        for (int j = 0; j < FA__VECTORS; j++) {
            wn[j] = *(const FA__CPU_OP(any) *)(sum_wn + i + j * FA__FLOATS);
            w[j] = *(const FA__CPU_OP(any) *)(sum_w + i + j * FA__FLOATS);
        }
        for (int at = 2 * i; at < 2 * i + 2 * FA__AT_ONCE; at += FA__AT_ONCE) {
            if (at < blocks) FA__LOOP(_ask_terms)(&one, at);
            else FA__LOOP(_ask_terms)(&two, at - blocks);
        }
        FA__LOOP(_gradient_block)(s, wn, w, &one, i, gamma, &first), FA__LOOP(_gradient_block)(t, wn, w, &two, i, gamma, &second);
        for (int j = 0; j < FA__VECTORS; j++) {
            *(FA__CPU_OP(any) *)(sum_wn + i + j * FA__FLOATS) = wn[j];
            if (FA__CENTERED) *(FA__CPU_OP(any) *)(sum_w + i + j * FA__FLOATS) = w[j];
        }
        FA__LOOP(_row__put)(left + i, t, 0, by_unit), FA__LOOP(_row__put)(to[0] + i, s, streamed, by_unit);
    }
    FA__LOOP(_row__deliver)(to[1], left, blocks, streamed);
}

/* What the gradients of a row need to know of all of it: its statistics, if they were not given, and the means of w and of w n. */
FA__FN_CALLED void FA__LOOP(_know)(FA__LOOP(_flight) * f, const FA__PARAMS *p, int64_t row, fa_team *team) {
    float buffer[FA__LOOP(_row_LENGTH)], w_sum = 0.0f, wn_sum = 0.0f;
    const FA__LOOP(_row_view) s = FA__LOOP(_row_at)(FA__LOOP(_element)(&p->sum, row, 0), p->rows.cols, team);
    const FA__LOOP(_row_view) d_y = FA__LOOP(_row_like)(FA__LOOP(_element)(&p->d_y, row, 0), &s);
    if (!p->rstd) FA__LOOP(_look)(f, p, s.first, FA__LOOP(_element)(&p->residual, row, 0));
    else f->mean = FA__CENTERED ? p->mean[row] : 0.0f, f->rstd = p->rstd[row];
    for (int64_t piece = 0; piece < FA__LOOP(_row_pieces)(&s); piece++) {
        FA__LOOP(_add_up)(&w_sum, &wn_sum, FA__LOOP(_row__piece)(&s, piece), FA__LOOP(_row__piece)(&d_y, piece),
                          FA__LOOP(_row_weights)(buffer, &s, piece, 0, p->gamma, FA_WEIGHT_DTYPE, 1.0f), FA__LOOP(_row_real)(&s, piece), f);
    }
    f->of_w = w_sum * p->inverse_cols * -f->rstd;
    f->of_wn = wn_sum * p->inverse_cols * -f->rstd * f->rstd;
}

/* From column `at` on of a row. */
FA__FN FA__LOOP(_terms) FA__LOOP(_terms_of)(const FA__PARAMS *p, int64_t row, int64_t later, int64_t at) {
    FA__LOOP(_terms) of = {NULL, NULL, NULL, 0, 0, 0};
    of.s = FA__LOOP(_element)(&p->sum, row, at), of.d_y = FA__LOOP(_element)(&p->d_y, row, at), of.more = FA__LOOP(_element)(&p->d_sum, row, at);
    if (later >= 0) {
        of.next_s = (uintptr_t)FA__LOOP(_element)(&p->sum, later, at), of.next_d = (uintptr_t)FA__LOOP(_element)(&p->d_y, later, at);
        of.next_more = (uintptr_t)FA__LOOP(_element)(&p->d_sum, later, at);
    }
    return of;
}
/* Finishes a row, or a segment of one: its gradients, and what it adds to the sums of columns. Asks for a row that comes later, if
 * there is one. */
FA__FN void FA__LOOP(_backward_finish)(const FA__PARAMS *p, int64_t row, int64_t later, int64_t segment, fa_team *team,
                                       FA__LOOP(_place) * place, const FA__LOOP(_flight) * f) {
    float x[FA__LOOP(_row_LENGTH)], buffer[FA__LOOP(_row_LENGTH)];
    const int64_t first = segment * p->sums.length, left = p->rows.cols - first, cols = left < p->sums.length ? left : p->sums.length;
    const int drops = p->dropout.threshold > 0 && p->d_x.data;
    const fa_matrix *out = p->d_x.data ? &p->d_x : &p->d_residual;
    const FA__LOOP(_row_view) all = FA__LOOP(_row_at)(NULL, cols, team);
    FA__LOOP(_row_drawn) drawn = FA__LOOP(_row_draw)(&all, (uint64_t)(row * p->rows.cols + first), &p->dropout);
    const char *weights = p->gamma ? (const char *)p->gamma + first * fa_dtype_bytes(FA_WEIGHT_DTYPE) : NULL;
    for (int64_t piece = 0, at = first; at < first + cols; piece++, at += FA__LOOP(_row_LENGTH)) {
        const int real = FA__LOOP(_row_real)(&all, piece);
        const float *gamma = FA__LOOP(_row_weights)(buffer, &all, piece, 0, weights, FA_WEIGHT_DTYPE, 1.0f);
        const FA__LOOP(_terms) of = FA__LOOP(_terms_of)(p, row, later, at);
        FA__ELEMENT *to = FA__LOOP(_element)(out, row, at), *to_residual = FA__LOOP(_element)(&p->d_residual, row, at);
        const int straight = !drops && !(p->d_x.data && to_residual) && FA__LOOP(_row__fits)(to, real, p->rows.stream);
        FA__LOOP(_gradient)(straight ? to : NULL, x, FA__LOOP(_sums)(place, 0, piece), FA__LOOP(_sums)(place, FA__CENTERED, piece), &of, gamma, real, f,
                            p->rows.stream);
        if (straight) continue;
        if (to_residual) FA__LOOP(_row__store_at)(to_residual, x, real, p->rows.stream);
        if (drops) FA__LOOP(_row_dropout)(x, &all, piece, &drawn);
        if (p->d_x.data) FA__LOOP(_row__store_at)(to, x, real, p->rows.stream);
    }
}
/* The same of a segment of two rows, if all of it consists of whole blocks whose results may be put where they belong; returns whether that is so. */
FA__FN_CALLED int FA__LOOP(_backward_pair)(const FA__PARAMS *p, int64_t row, const int64_t later[2], int64_t segment, fa_team *team,
                                           FA__LOOP(_place) * place, const FA__LOOP(_flight) * f) {
    const int64_t first = segment * p->sums.length, left = p->rows.cols - first, cols = left < p->sums.length ? left : p->sums.length;
    const FA__LOOP(_row_view) all = FA__LOOP(_row_at)(NULL, cols, team);
    const fa_matrix *out = p->d_x.data ? &p->d_x : &p->d_residual;
    FA__ELEMENT *const to[2] = {FA__LOOP(_element)(out, row, first), FA__LOOP(_element)(out, row + 1, first)};
    float buffer[FA__LOOP(_row_LENGTH)], *sum_wn = FA__LOOP(_sums)(place, 0, 0), *sum_w = FA__LOOP(_sums)(place, FA__CENTERED, 0);
    if (p->dropout.threshold > 0 || !out->data || (p->d_x.data && p->d_residual.data) || cols > FA__LOOP(_row_LENGTH) || !sum_wn) return 0;
    for (int i = 0; i < 2; i++)
        if (FA__LOOP(_row__fits)(to[i], (int)cols, p->rows.stream) != cols) return 0;
    const FA__LOOP(_terms) of[2] = {FA__LOOP(_terms_of)(p, row, later[0], first), FA__LOOP(_terms_of)(p, row + 1, later[1], first)};
    const char *weights = p->gamma ? (const char *)p->gamma + first * fa_dtype_bytes(FA_WEIGHT_DTYPE) : NULL;
    const float *gamma = FA__LOOP(_row_weights)(buffer, &all, 0, 0, weights, FA_WEIGHT_DTYPE, 1.0f);
    FA__LOOP(_gradient_two)(to, sum_wn, sum_w, of, gamma, (int)cols, f, p->rows.stream);
    return 1;
}
