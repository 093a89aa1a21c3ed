/* norm_gradient_cpu.h: the backward of norm_rows.h on the CPU, after norm_rows_cpu.h. One pass over a row finds its means of w and of w n,
 * another one writes the gradients and adds to the sums of columns, segment by segment. */

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
FA__FN_CALLED void FA__LOOP(_add_up)(double *w_sum, double *wn_sum, const FA__ELEMENT *s, const FA__ELEMENT *d, const float *gamma, int real,
                                     const FA__LOOP(_flight) * f) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__AT_ONCE = FA__LOOP(_row_BLOCK), FA__VECTORS = FA__AT_ONCE / FA__FLOATS };
    const FA__CPU_OP(vec) mean = FA__CPU_OP(splat)(f->mean);
    FA__CPU_OP(vec) all_w[FA__VECTORS], all_wn[FA__VECTORS], off[FA__VECTORS], w[FA__VECTORS];
    FA__ELEMENT rest[2][FA__FLOATS];
    int i = 0;
    for (int j = 0; j < FA__VECTORS; j++) all_w[j] = all_wn[j] = FA__CPU_OP(splat)(0.0f);
    for (; i + FA__AT_ONCE <= real; i += FA__AT_ONCE) {
        FA__LOOP(_row__block)(off, s + i), FA__LOOP(_row__block)(w, d + i);
        for (int j = 0; j < FA__VECTORS; j++) {
            w[j] *= *(const FA__CPU_OP(any) *)(gamma + i + j * FA__FLOATS);
            if (FA__CENTERED) all_w[j] += w[j];
            all_wn[j] = FA__CPU_OP(fma)(w[j], FA__LOOP(_off)(off[j], mean), all_wn[j]); /* of w n / rstd */
        }
    }
    for (; i < real; i += FA__FLOATS) {
        w[0] = FA__LOOP(_row__widened)(FA__LOOP(_row__from)(rest[1], d, i, real)) * *(const FA__CPU_OP(any) *)(gamma + i);
        if (FA__CENTERED) all_w[0] += w[0];
        all_wn[0] = FA__CPU_OP(fma)(w[0], FA__LOOP(_off)(FA__LOOP(_row__widened)(FA__LOOP(_row__from)(rest[0], s, i, real)), mean), all_wn[0]);
    }
    for (int j = 1; j < FA__VECTORS; j++) all_w[0] += all_w[j], all_wn[0] += all_wn[j];
    if (FA__CENTERED) *w_sum += (double)FA__LOOP(_reduce__join)(all_w[0], 0);
    *wn_sum += (double)(FA__LOOP(_reduce__join)(all_wn[0], 0) * f->rstd);
}
/* What is known of a row, in vectors. */
typedef struct FA__LOOP(_spread) {
    FA__CPU_OP(vec) mean, rstd, of_w, of_wn;
} FA__LOOP(_spread);
FA__FN FA__LOOP(_spread) FA__LOOP(_spread_of)(const FA__LOOP(_flight) * f) {
    const FA__LOOP(_spread) spread = {FA__CPU_OP(splat)(f->mean), FA__CPU_OP(splat)(f->rstd), FA__CPU_OP(splat)(f->of_w), FA__CPU_OP(splat)(f->of_wn)};
    return spread;
}
/* A vector of the gradient without what reaches the sum in other ways; what this row adds to the sums of columns is added to these. */
FA__FN FA__CPU_OP(vec) FA__LOOP(_gradient_of)(FA__CPU_OP(vec) * wn, FA__CPU_OP(vec) * w, FA__CPU_OP(vec) s, FA__CPU_OP(vec) d_y, const float *gamma,
                                              const FA__LOOP(_spread) * f) {
    const FA__CPU_OP(vec) d_n = d_y * f->rstd, off = FA__LOOP(_off)(s, f->mean); /* n / rstd */
    *wn = FA__CPU_OP(fma)(d_n, off, *wn);
    if (FA__CENTERED) *w += d_y;
    return FA__CPU_OP(fma)(off, f->of_wn, FA__CPU_OP(fma)(d_n, *(const FA__CPU_OP(any) *)gamma, f->of_w));
}
/* Prefetches a block of the later row. */
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
        x[j] = FA__LOOP(_gradient_of)(&wn[j], &w[j], x[j], d[j], gamma + i + j * FA__FLOATS, f);
    if (of->more) {
        FA__LOOP(_row__block)(d, of->more + i);
        for (int j = 0; j < FA__VECTORS; j++) x[j] += d[j];
    }
}
/* What a piece adds to the sums of columns, if they are wanted, and its gradient, to where it belongs or into x. All of a block is
 * loaded before anything is stored: the sums, and often gamma, lie at multiples of 4 KB from each other, and a load waits for a
 * store that has the same last 12 bits. */
FA__FN_CALLED void FA__LOOP(_gradient)(FA__ELEMENT *to, float *x, float *sum_wn, float *sum_w, const FA__LOOP(_terms) * of, const float *gamma,
                                       int real, const FA__LOOP(_flight) * f, int streamed) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__AT_ONCE = FA__LOOP(_row_BLOCK), FA__VECTORS = FA__AT_ONCE / FA__FLOATS };
    const int by_unit = fa__cpu_rounds_bf16(), blocks = real / FA__AT_ONCE * FA__AT_ONCE;
    const FA__LOOP(_spread) spread = FA__LOOP(_spread_of)(f);
    const float *old_wn = sum_wn ? sum_wn : gamma, *old_w = sum_w ? sum_w : gamma; /* what is computed from gamma is not used */
    const FA__LOOP(_terms) terms = *of;
    for (int i = 0; i < blocks; i += FA__AT_ONCE) {
        FA__CPU_OP(vec) s[FA__VECTORS], wn[FA__VECTORS], w[FA__VECTORS];
        for (int j = 0; j < FA__VECTORS; j++) {
            wn[j] = *(const FA__CPU_OP(any) *)(old_wn + i + j * FA__FLOATS);
            w[j] = *(const FA__CPU_OP(any) *)(old_w + i + j * FA__FLOATS);
        }
        FA__LOOP(_ask_terms)(&terms, i);
        FA__LOOP(_gradient_block)(s, wn, w, &terms, i, gamma, &spread);
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
        FA__CPU_OP(vec) wn = *(const FA__CPU_OP(any) *)(old_wn + i), w = *(const FA__CPU_OP(any) *)(old_w + i);
        FA__CPU_OP(vec) s = FA__LOOP(_row__widened)(FA__LOOP(_row__from)(rest[0], terms.s, i, real));
        s = FA__LOOP(_gradient_of)(&wn, &w, s, FA__LOOP(_row__widened)(FA__LOOP(_row__from)(rest[1], terms.d_y, i, real)), gamma + i, &spread);
        if (terms.more) s += FA__LOOP(_row__widened)(FA__LOOP(_row__from)(rest[2], terms.more, i, real));
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

/* The blocks of a piece of two rows, as above. Later rows are prefetched one after the other, and results go to memory
 * one row after the other, the second by way of left[], since memory takes lines of two rows by turns later than that. */
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
    float buffer[FA__LOOP(_row_LENGTH)];
    double w_sum = 0.0, wn_sum = 0.0;
    const FA__LOOP(_row_view) s = FA__LOOP(_row_at)(FA__LOOP(_element)(&p->sum, row, 0), p->rows.cols, team);
    const FA__LOOP(_row_view) d_y = FA__LOOP(_row_like)(FA__LOOP(_element)(&p->d_y, row, 0), &s);
    if (!p->rstd) FA__LOOP(_look)(f, p, s.first, FA__LOOP(_element)(&p->residual, row, 0));
    else f->mean = FA__CENTERED ? p->mean[row] : 0.0f, f->rstd = p->rstd[row];
    for (int64_t piece = 0; piece < FA__LOOP(_row_pieces)(&s); piece++) {
        FA__LOOP(_add_up)(&w_sum, &wn_sum, FA__LOOP(_row__piece)(&s, piece), FA__LOOP(_row__piece)(&d_y, piece),
                          FA__LOOP(_row_weights)(buffer, &s, piece, 0, p->gamma, FA_WEIGHT_DTYPE, 1.0f), FA__LOOP(_row_real)(&s, piece), f);
    }
    f->of_w = (float)w_sum * p->inverse_cols * -f->rstd;
    f->of_wn = (float)wn_sum * p->inverse_cols * -f->rstd * f->rstd;
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
