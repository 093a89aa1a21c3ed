/* norm_rows_cpu.h: the forward of norm_rows.h on the CPU, where every pass over a row costs time: one finds what has
 * to be known of all of it, and one does the rest, both from memory into registers and back. The backward is in
 * norm_gradient_cpu.h. */

/* Where an element is; NULL if there is no such matrix. */
FA__FN FA__ELEMENT *FA__LOOP(_element)(const fa_matrix *m, int64_t row, int64_t col) {
    return m->data ? (FA__ELEMENT *)fa__address(m, row, col, sizeof(FA__ELEMENT)) : NULL;
}

/* ---- forward, where nothing is dropped, and elements are widened by instructions ----
 *
 * A row is read twice, and stays as it is in memory: halves take half the room of floats in caches, and are widened
 * again in less time than floats are stored and loaded. */

/* The sums of all s - pivot and of their squares. The pivot is at first the mean of the first 16 elements, nearly,
 * which is near that of all if rows are anything like what norms are made for. */
FA__FN void FA__LOOP(_shifted_sums_of)(float *sum, float *squares, const FA__ELEMENT *x, const FA__ELEMENT *r, int64_t cols, float pivot, const int adds) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__AT_ONCE = FA__LOOP(_row_BLOCK), FA__VECTORS = FA__LOOP(_row_IN_BLOCK) };
    enum { FA__RUN = FA__CPU_RUN * FA__AT_ONCE, FA__RUNS = 8 }; /* squares of halves, which are rounded alike, are added in runs, and some runs at a time */
    const FA__CPU_OP(vec) pivots = FA__CPU_OP(splat)(pivot), none = FA__CPU_OP(splat)(0.0f);
    /* Halves of one matrix are asked for here alone, not also when results are written: up to a fifth faster; of two
     * matrices, or floats, up to an eighth slower. */
    const int ahead = FA__IS_HALF && !adds ? 3 : 1;
    FA__CPU_OP(vec) s[FA__VECTORS], add[FA__VECTORS], runs = none, runs_squares = none;
    double all = 0.0, all_squares = 0.0; /* sums of sums: fewer roundings of large ones */
    for (int64_t run = 0; run < cols; run += FA__RUN) {
        const int64_t end = cols - run < FA__RUN ? cols : run + FA__RUN;
        FA__CPU_OP(vec) part[FA__VECTORS], part_squares[FA__VECTORS];
        for (int j = 0; j < FA__VECTORS; j++) part[j] = part_squares[j] = none;
        for (int64_t i = run; i < end; i += FA__AT_ONCE) {
            if (i + FA__AT_ONCE <= end) {
                FA__LOOP(_row__ask_ahead)(x + i, ahead);
                if (adds) FA__LOOP(_row__ask_ahead)(r + i, ahead);
                FA__LOOP(_row__shuffled)(s, x + i);
                if (adds) FA__LOOP(_row__shuffled)(add, r + i);
                FA__UNROLL
                for (int j = 0; j < FA__VECTORS; j++) {
                    if (adds) s[j] += add[j];
                    if (FA__CENTERED) s[j] -= pivots;
                }
            } else {
                float rest[FA__AT_ONCE];
                for (int j = 0; j < FA__AT_ONCE; j++) {
                    rest[j] = 0.0f;
                    if (i + j < end) rest[j] = fa_load_element(x, i + j, FA_DTYPE) + (adds ? fa_load_element(r, i + j, FA_DTYPE) : 0.0f) - pivot;
                }
                memcpy(s, rest, sizeof s);
            }
            FA__UNROLL
            for (int j = 0; j < FA__VECTORS; j++) {
                if (FA__CENTERED) part[j] += s[j];
                part_squares[j] = FA__CPU_OP(fma)(s[j], s[j], part_squares[j]);
            }
        }
        for (int j = 1; j < FA__VECTORS; j++) part[0] += part[j], part_squares[0] += part_squares[j];
        runs += part[0], runs_squares += part_squares[0];
        if (end < cols && end / FA__RUN % FA__RUNS) continue;
        if (FA__CENTERED) all += (double)FA__LOOP(_reduce__join)(runs, 0);
        all_squares += (double)FA__LOOP(_reduce__join)(runs_squares, 0);
        runs = runs_squares = none;
    }
    if (FA__CENTERED) *sum = (float)all;
    *squares = (float)all_squares;
}
FA__FN_CALLED void FA__LOOP(_shifted_sums)(float *sum, float *squares, const FA__ELEMENT *x, const FA__ELEMENT *r, int64_t cols, float pivot) {
    if (r) FA__LOOP(_shifted_sums_of)(sum, squares, x, r, cols, pivot, 1);
    else FA__LOOP(_shifted_sums_of)(sum, squares, x, x, cols, pivot, 0);
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
        first += FA__LOOP(_row__widened)(FA__LOOP(_row__from)(rest[0], x, i, some));
        if (r) first += FA__LOOP(_row__widened)(FA__LOOP(_row__from)(rest[1], r, i, some));
    }
    pivot = FA__LOOP(_row__coarse)(FA__LOOP(_reduce__join)(first, 0) / (float)some);
    for (int again = 0; again < 2; again++) { /* once more, about the mean, where most of the squares come from the pivot's distance to it */
        if (!(fabsf(pivot) < INFINITY)) pivot = 0.0f; /* the mean of a row that begins with an infinity is infinite, not NaN */
        FA__LOOP(_shifted_sums)(&sum, &squares, x, r, cols, pivot);
        const float off = sum * p->inverse_cols, lost = sum * off;
        f->mean = pivot + off;
        if (lost <= 0.5f * squares && squares < INFINITY) again = 2;
        squares = lost > squares ? 0.0f : fmaf(-sum, off, squares); /* NaN remains; fused, so that infinite squares of numbers do, too, where `lost` is infinite */
        pivot = f->mean;
    }
#else
    FA__LOOP(_shifted_sums)(&sum, &squares, x, r, cols, pivot);
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
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__VECTORS = FA__LOOP(_row_IN_BLOCK) };
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
/* Results of `real` columns. */
FA__FN void FA__LOOP(_normal_as)(FA__ELEMENT *y, FA__ELEMENT *sum, const FA__ELEMENT *x, const FA__ELEMENT *r, const float *gamma,
                                const float *beta, int real, const FA__LOOP(_flight) * f, int streamed, uintptr_t next, uintptr_t next_r, const int sums,
                                const int adds) {
    enum { FA__AT_ONCE = FA__LOOP(_row_BLOCK) };
    const FA__CPU_OP(vec) mean = FA__CPU_OP(splat)(f->mean), rstd = FA__CPU_OP(splat)(f->rstd);
    FA__CPU_ALIGNED FA__ELEMENT left[2][(int)FA__LOOP(_row_LENGTH) + FA__AT_ONCE]; /* what is not written to its place at once */
    FA__ELEMENT rest[2][FA__AT_ONCE];
    const int blocks = real / FA__AT_ONCE * FA__AT_ONCE, by_unit = fa__cpu_rounds_bf16();
    const int lines = FA__AT_ONCE * sizeof(FA__ELEMENT) >= 64; /* else writing to two matrices by turns leaves lines half full */
    const int fits = FA__LOOP(_row__fits)(y, blocks, streamed), both = !sums || ((lines || !streamed) && FA__LOOP(_row__fits)(sum, blocks, streamed));
    const int done = both ? fits : 0, streams = streamed && done > 0;
    FA__ELEMENT *to_y = done > 0 ? y : left[0], *to_sum = done > 0 && sums ? sum : left[1];
    const int asks = next && (adds || !FA__IS_HALF);
    for (int i = 0; i < blocks; i += FA__AT_ONCE) {
        if (asks) {
            FA__LOOP(_row__ask_block)(next + (uintptr_t)i * sizeof(FA__ELEMENT));
            if (adds) FA__LOOP(_row__ask_block)(next_r + (uintptr_t)i * sizeof(FA__ELEMENT));
        }
        FA__LOOP(_normal_block)(to_y + i, to_sum + i, sums, x + i, r + i, adds, gamma + i, beta + i, mean, rstd, streams, by_unit);
    }
    if (blocks < real)
        FA__LOOP(_normal_block)(left[0] + blocks, left[1] + blocks, sums, FA__LOOP(_row__block_of)(rest[0], x, blocks, real),
                                FA__LOOP(_row__block_of)(rest[1], r, blocks, real), adds, gamma + blocks, beta + blocks, mean, rstd, 0, by_unit);
    if (done == real) return;
    if (sums) FA__LOOP(_row__deliver)(sum + done, left[1] + done, real - done, streamed);
    FA__LOOP(_row__deliver)(y + done, left[0] + done, real - done, streamed);
}
/* The same, where `sum` and `r` may be NULL. */
FA__FN_CALLED void FA__LOOP(_normal)(FA__ELEMENT *y, FA__ELEMENT *sum, const FA__ELEMENT *x, const FA__ELEMENT *r, const float *gamma,
                                     const float *beta, int real, const FA__LOOP(_flight) * f, int streamed, uintptr_t next, uintptr_t next_r) {
    if (!sum && !r) FA__LOOP(_normal_as)(y, NULL, x, x, gamma, beta, real, f, streamed, next, next_r, 0, 0);
    else FA__LOOP(_normal_as)(y, sum, x, r ? r : x, gamma, beta, real, f, streamed, next, next_r, sum != NULL, r != NULL);
}

/* ---- forward with dropout, or of elements that are costly to widen ---- */

/* What is read of a row. */
typedef struct FA__LOOP(_source) {
    FA__LOOP(_row_view) x, residual;
    FA__LOOP(_row_drawn) drawn;
} FA__LOOP(_source);
/* A piece of what is normalised, with zeros after it. */
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
/* A row, whose pieces are kept as floats if there are not too many: then nothing is drawn or widened twice. */
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
        if (look == FA__SQUARES) { /* how far rounding put the mean off */
            const double off = rest / (double)p->rows.cols, lost = rest * off;
            f->mean += (float)off;
            squares = lost > squares ? 0.0 : squares - lost; /* NaN remains */
            f->rstd = fa__rsqrt((float)squares * p->inverse_cols + p->eps);
        }
    }
}

/* ---- forward, all of it ---- */

/* Rows are prefetched some time before they are needed, also those of the next item, if it is known. Returns the row
 * that comes `ahead` rows later, or -1. */
FA__FN int64_t FA__LOOP(_later)(const FA__PARAMS *p, int64_t row, int64_t ahead, int64_t end, int64_t next_item) {
    int64_t later = row + ahead;
    if (later < end) return later;
    if (next_item < 0) return -1;
    later += next_item * p->rows.rows_an_item - end;
    return later < p->rows.rows ? later : -1;
}
/* Some rows. Long ones are taken several at a time, as many as the L2 cache holds, and then segment by segment
 * (short ones: FA__CPU_TOGETHER), so that a segment's weights stay in the L1 cache. The next rows are prefetched
 * meanwhile, or by FA__LOOP(_shifted_sums_of)(). */
FA__FN void FA__LOOP(_forward_rows)(const FA__PARAMS *p, int64_t row, int64_t end, int64_t next_item, fa_team *team) {
    enum { FA__MOST = FA__CPU_HELD / (FA__CPU_PIECE * (int)sizeof(FA__ELEMENT)) + 1 };
    const int64_t cols = p->rows.cols, row_bytes = p->rows.tensors * cols * (int64_t)sizeof(FA__ELEMENT);
    const int64_t length = cols > FA__CPU_PIECE ? FA__CPU_SEGMENT : cols, few = FA__CPU_TOGETHER / row_bytes < FA__MOST ? FA__CPU_TOGETHER / row_bytes : (int64_t)FA__MOST;
    const int64_t held = cols > FA__CPU_PIECE ? FA__CPU_HELD / row_bytes + 1 : few > 1 ? few : 1;
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
