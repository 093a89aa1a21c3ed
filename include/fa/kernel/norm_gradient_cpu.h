/* norm_gradient_cpu.h: the backward of norm_rows.h on the CPU, after norm_rows_cpu.h. The gradients of a row need
 * its means of w and of w n first. While a row is finished, piece by piece, those of the row that comes next are
 * found, if FA__LOOP(_row_BESIDE): memory is read and written all the time, and the weights are loaded once for
 * both. */

/* What the gradients of a piece are made of. */
typedef struct FA__LOOP(_terms) {
    const FA__ELEMENT *s, *d_y, *more; /* more: what reaches the sum in other ways, or NULL */
} FA__LOOP(_terms);

/* FA__LOOP(_row__ask_ahead)() by 3, but of an address that is computed as a number: as a pointer, which gcc shares
 * with loads, up to 4% slower (fp16). */
FA__FN void FA__LOOP(_ask_for)(const FA__ELEMENT *from, int i) {
    const uintptr_t ahead = 3 * FA__LOOP(_row_LENGTH) * sizeof(FA__ELEMENT);
    FA__LOOP(_row__ask_block)((uintptr_t)from + (uintptr_t)i * sizeof(FA__ELEMENT) + ahead);
}

FA__FN FA__CPU_OP(vec) FA__LOOP(_off)(FA__CPU_OP(vec) s, FA__CPU_OP(vec) mean) {
    if (FA__CENTERED) s -= mean;
    return s;
}
/* The sums over a row of w = d_y gamma and of w n, while they are found. */
typedef struct FA__LOOP(_means) {
    double w, wn;
    float mean, rstd;
} FA__LOOP(_means);
/* The same over some of its columns, in vectors, and of w n / rstd. */
typedef struct FA__LOOP(_partial) {
    FA__CPU_OP(vec) mean, w[FA__LOOP(_row_IN_BLOCK)], wn[FA__LOOP(_row_IN_BLOCK)];
} FA__LOOP(_partial);
FA__FN void FA__LOOP(_partial_begin)(FA__LOOP(_partial) * all, const FA__LOOP(_means) * m) {
    all->mean = FA__CPU_OP(splat)(m->mean);
    for (int j = 0; j < FA__LOOP(_row_IN_BLOCK); j++) all->w[j] = all->wn[j] = FA__CPU_OP(splat)(0.0f);
}
FA__FN void FA__LOOP(_partial_add)(FA__LOOP(_partial) * all, int j, FA__CPU_OP(vec) s, FA__CPU_OP(vec) d_y, const float *gamma) {
    const FA__CPU_OP(vec) w = d_y * *(const FA__CPU_OP(any) *)gamma;
    if (FA__CENTERED) all->w[j] += w;
    all->wn[j] = FA__CPU_OP(fma)(w, FA__LOOP(_off)(s, all->mean), all->wn[j]);
}
FA__FN void FA__LOOP(_partial_block)(FA__LOOP(_partial) * all, const FA__LOOP(_terms) * of, int i, const float *gamma) {
    FA__CPU_OP(vec) s[FA__LOOP(_row_IN_BLOCK)], d[FA__LOOP(_row_IN_BLOCK)];
    FA__LOOP(_ask_for)(of->s, i), FA__LOOP(_ask_for)(of->d_y, i);
    if (of->more) FA__LOOP(_ask_for)(of->more, i);
    FA__LOOP(_row__block)(s, of->s + i), FA__LOOP(_row__block)(d, of->d_y + i);
    for (int j = 0; j < FA__LOOP(_row_IN_BLOCK); j++) FA__LOOP(_partial_add)(all, j, s[j], d[j], gamma + i + j * FA__LOOP(_row_LANES));
}
/* The columns from number `i` on, which are less than a block; then all are added to those of the columns before. */
FA__FN void FA__LOOP(_partial_end)(FA__LOOP(_means) * m, FA__LOOP(_partial) * all, const FA__LOOP(_terms) * of, int i, int real, const float *gamma) {
    FA__ELEMENT rest[2][FA__LOOP(_row_LANES)];
    for (; i < real; i += FA__LOOP(_row_LANES))
        FA__LOOP(_partial_add)(all, 0, FA__LOOP(_row__widened)(FA__LOOP(_row__from)(rest[0], of->s, i, real)),
                               FA__LOOP(_row__widened)(FA__LOOP(_row__from)(rest[1], of->d_y, i, real)), gamma + i);
    for (int j = 1; j < FA__LOOP(_row_IN_BLOCK); j++) all->w[0] += all->w[j], all->wn[0] += all->wn[j];
    if (FA__CENTERED) m->w += (double)FA__LOOP(_reduce__join)(all->w[0], 0);
    m->wn += (double)(FA__LOOP(_reduce__join)(all->wn[0], 0) * m->rstd);
}
/* A piece of a row before which no other one is finished. */
FA__FN_CALLED void FA__LOOP(_add_up)(FA__LOOP(_means) * m, const FA__LOOP(_terms) * of, const float *gamma, int real) {
    const int blocks = real / FA__LOOP(_row_BLOCK) * FA__LOOP(_row_BLOCK);
    const FA__LOOP(_terms) terms = *of;
    FA__LOOP(_partial) all;
    FA__LOOP(_partial_begin)(&all, m);
    for (int i = 0; i < blocks; i += FA__LOOP(_row_BLOCK)) FA__LOOP(_partial_block)(&all, &terms, i, gamma);
    FA__LOOP(_partial_end)(m, &all, &terms, blocks, real, gamma);
}

/* What is known of a row, in vectors. */
typedef struct FA__LOOP(_spread) {
    FA__CPU_OP(vec) mean, rstd, of_w, of_wn;
} FA__LOOP(_spread);
FA__FN FA__LOOP(_spread) FA__LOOP(_spread_of)(const FA__LOOP(_flight) * f) {
    const FA__LOOP(_spread) spread = {FA__CPU_OP(splat)(f->mean), FA__CPU_OP(splat)(f->rstd), FA__CPU_OP(splat)(f->of_w), FA__CPU_OP(splat)(f->of_wn)};
    return spread;
}
/* A vector of the gradient without what reaches the sum in other ways; what this row adds to the sums of columns is
 * added to these. */
FA__FN FA__CPU_OP(vec) FA__LOOP(_gradient_of)(FA__CPU_OP(vec) * wn, FA__CPU_OP(vec) * w, FA__CPU_OP(vec) s, FA__CPU_OP(vec) d_y, const float *gamma,
                                              const FA__LOOP(_spread) * f) {
    const FA__CPU_OP(vec) d_n = d_y * f->rstd, off = FA__LOOP(_off)(s, f->mean); /* n / rstd */
    *wn = FA__CPU_OP(fma)(d_n, off, *wn);
    if (FA__CENTERED) *w += d_y;
    return FA__CPU_OP(fma)(off, f->of_wn, FA__CPU_OP(fma)(d_n, *(const FA__CPU_OP(any) *)gamma, f->of_w));
}
/* A block of a row: its gradient; what it adds to the sums of columns is added to these. */
FA__FN void FA__LOOP(_gradient_block)(FA__CPU_OP(vec) * x, FA__CPU_OP(vec) * wn, FA__CPU_OP(vec) * w, const FA__LOOP(_terms) * of, int i, const float *gamma,
                                      const FA__LOOP(_spread) * f) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__VECTORS = FA__LOOP(_row_IN_BLOCK) };
    FA__CPU_OP(vec) d[FA__VECTORS];
    FA__LOOP(_row__block)(x, of->s + i), FA__LOOP(_row__block)(d, of->d_y + i);
    for (int j = 0; j < FA__VECTORS; j++)
        x[j] = FA__LOOP(_gradient_of)(&wn[j], &w[j], x[j], d[j], gamma + i + j * FA__FLOATS, f);
    if (of->more) {
        FA__LOOP(_row__block)(d, of->more + i);
        for (int j = 0; j < FA__VECTORS; j++) x[j] += d[j];
    }
}
/* Blocks of a piece: what they add to the sums of columns, if these are wanted, and their gradient, to where it
 * belongs or, if that is NULL, into x; and what the same columns of the row that comes next add to that row's sums,
 * if there is one. `usual`: known to have all three, where results go past the caches. All of a block is loaded
 * before anything is stored: the sums, and often gamma and the rows, lie at multiples of 4 KB from each other, and a
 * load waits for a store that has the same last 12 bits. */
FA__FN void FA__LOOP(_gradient_blocks)(FA__ELEMENT *to, float *x, float *sum_wn, float *sum_w, const FA__LOOP(_terms) * of, const float *gamma, int blocks,
                                       const FA__LOOP(_spread) * f, int streamed, FA__LOOP(_partial) * all, const FA__LOOP(_terms) * coming, const int usual) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__AT_ONCE = FA__LOOP(_row_BLOCK), FA__VECTORS = FA__LOOP(_row_IN_BLOCK) };
    const int by_unit = fa__cpu_rounds_bf16();
    const float *old_wn = usual || sum_wn ? sum_wn : gamma, *old_w = usual || sum_wn ? sum_w : gamma; /* what is computed from gamma is not used */
    for (int i = 0; i < blocks; i += FA__AT_ONCE) {
        FA__CPU_OP(vec) s[FA__VECTORS], wn[FA__VECTORS], w[FA__VECTORS];
        if (usual || (FA__LOOP(_row_BESIDE) && coming->s)) FA__LOOP(_partial_block)(all, coming, i, gamma);
        for (int j = 0; j < FA__VECTORS; j++) {
            wn[j] = *(const FA__CPU_OP(any) *)(old_wn + i + j * FA__FLOATS);
            w[j] = *(const FA__CPU_OP(any) *)(old_w + i + j * FA__FLOATS);
        }
        FA__LOOP(_gradient_block)(s, wn, w, of, i, gamma, f);
        for (int j = 0; j < FA__VECTORS && (usual || sum_wn); j++) {
            *(FA__CPU_OP(any) *)(sum_wn + i + j * FA__FLOATS) = wn[j];
            if (FA__CENTERED) *(FA__CPU_OP(any) *)(sum_w + i + j * FA__FLOATS) = w[j];
        }
        if (usual || to) FA__LOOP(_row__put)(to + i, s, streamed, by_unit);
        else
            for (int j = 0; j < FA__VECTORS; j++) *(FA__CPU_OP(any) *)(x + i + j * FA__FLOATS) = s[j];
    }
}
/* The same of a piece. */
FA__FN_CALLED void FA__LOOP(_gradient)(FA__ELEMENT *to, float *x, float *sum_wn, float *sum_w, const FA__LOOP(_terms) * of, const float *gamma,
                                       int real, const FA__LOOP(_flight) * f, int streamed, FA__LOOP(_means) * m, const FA__LOOP(_terms) * next) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES) };
    const int blocks = real / FA__LOOP(_row_BLOCK) * FA__LOOP(_row_BLOCK);
    const FA__LOOP(_spread) spread = FA__LOOP(_spread_of)(f);
    const float *old_wn = sum_wn ? sum_wn : gamma, *old_w = sum_wn ? sum_w : gamma;
    const FA__LOOP(_terms) terms = *of, coming = *next;
    FA__LOOP(_partial) all;
    FA__LOOP(_partial_begin)(&all, m);
    if (FA__LOOP(_row_BESIDE) && to && sum_wn && coming.s && streamed) FA__LOOP(_gradient_blocks)(to, x, sum_wn, sum_w, &terms, gamma, blocks, &spread, 1, &all, &coming, 1);
    else FA__LOOP(_gradient_blocks)(to, x, sum_wn, sum_w, &terms, gamma, blocks, &spread, streamed, &all, &coming, 0);
    if (FA__LOOP(_row_BESIDE) && coming.s) FA__LOOP(_partial_end)(m, &all, &coming, blocks, real, gamma);
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

/* From column `at` on of a row, or of none (-1). */
FA__FN FA__LOOP(_terms) FA__LOOP(_terms_of)(const FA__PARAMS *p, int64_t row, int64_t at) {
    FA__LOOP(_terms) of = {NULL, NULL, NULL};
    if (row < 0) return of;
    of.s = FA__LOOP(_element)(&p->sum, row, at), of.d_y = FA__LOOP(_element)(&p->d_y, row, at), of.more = FA__LOOP(_element)(&p->d_sum, row, at);
    return of;
}
/* A row's statistics, which are computed again if they were not given, and no sums yet. */
FA__FN FA__LOOP(_means) FA__LOOP(_means_of)(const FA__PARAMS *p, int64_t row) {
    FA__LOOP(_means) m = {0.0, 0.0, 0.0f, 0.0f};
    FA__LOOP(_flight) f;
    if (row < 0) return m;
    if (!p->rstd) FA__LOOP(_look)(&f, p, FA__LOOP(_element)(&p->sum, row, 0), FA__LOOP(_element)(&p->residual, row, 0));
    else f.mean = FA__CENTERED ? p->mean[row] : 0.0f, f.rstd = p->rstd[row];
    m.mean = f.mean, m.rstd = f.rstd;
    return m;
}
/* What is known of a row when all of it has been added up. */
FA__FN void FA__LOOP(_means_end)(FA__LOOP(_flight) * f, const FA__PARAMS *p, const FA__LOOP(_means) * m) {
    f->mean = m->mean, f->rstd = m->rstd;
    f->of_w = (float)m->w * p->inverse_cols * -m->rstd;
    f->of_wn = (float)m->wn * p->inverse_cols * -m->rstd * m->rstd;
}
/* What the gradients of a row need to know of all of it, where no other one is finished meanwhile. */
FA__FN_CALLED void FA__LOOP(_know)(FA__LOOP(_flight) * f, const FA__PARAMS *p, int64_t row, fa_team *team) {
    float buffer[FA__LOOP(_row_LENGTH)];
    FA__LOOP(_means) m = FA__LOOP(_means_of)(p, row);
    const FA__LOOP(_row_view) all = FA__LOOP(_row_at)(NULL, p->rows.cols, team);
    for (int64_t piece = 0; piece < FA__LOOP(_row_pieces)(&all); piece++) {
        const FA__LOOP(_terms) of = FA__LOOP(_terms_of)(p, row, piece * FA__LOOP(_row_LENGTH));
        FA__LOOP(_add_up)(&m, &of, FA__LOOP(_row_weights)(buffer, &all, piece, 0, p->gamma, FA_WEIGHT_DTYPE, 1.0f), FA__LOOP(_row_real)(&all, piece));
    }
    FA__LOOP(_means_end)(f, p, &m);
}
/* Finishes a row: its gradients, and what it adds to the sums of columns. Then *f is what is known of row `next`, or
 * -1. */
FA__FN void FA__LOOP(_backward_row)(const FA__PARAMS *p, int64_t row, int64_t next, fa_team *team, FA__LOOP(_place) * place, FA__LOOP(_flight) * f) {
    float x[FA__LOOP(_row_LENGTH)], buffer[FA__LOOP(_row_LENGTH)];
    const int drops = p->dropout.threshold > 0 && p->d_x.data;
    const fa_matrix *out = p->d_x.data ? &p->d_x : &p->d_residual;
    const FA__LOOP(_row_view) all = FA__LOOP(_row_at)(NULL, p->rows.cols, team);
    FA__LOOP(_row_drawn) drawn = FA__LOOP(_row_draw)(&all, (uint64_t)(row * p->rows.cols), &p->dropout);
    FA__LOOP(_means) m = FA__LOOP(_means_of)(p, next);
    for (int64_t piece = 0; piece < FA__LOOP(_row_pieces)(&all); piece++) {
        const int64_t at = piece * FA__LOOP(_row_LENGTH);
        const int real = FA__LOOP(_row_real)(&all, piece);
        const float *gamma = FA__LOOP(_row_weights)(buffer, &all, piece, 0, p->gamma, FA_WEIGHT_DTYPE, 1.0f);
        const FA__LOOP(_terms) of = FA__LOOP(_terms_of)(p, row, at), coming = FA__LOOP(_terms_of)(p, next, at);
        FA__ELEMENT *to = FA__LOOP(_element)(out, row, at), *to_residual = FA__LOOP(_element)(&p->d_residual, row, at);
        const int straight = !drops && !(p->d_x.data && to_residual) && FA__LOOP(_row__fits)(to, real, p->rows.stream);
        FA__LOOP(_gradient)(straight ? to : NULL, x, FA__LOOP(_sums)(place, 0, piece), FA__LOOP(_sums)(place, FA__CENTERED, piece), &of, gamma, real, f,
                            p->rows.stream, &m, &coming);
        if (straight) continue;
        if (to_residual) FA__LOOP(_row__store_at)(to_residual, x, real, p->rows.stream);
        if (drops) FA__LOOP(_row_dropout)(x, &all, piece, &drawn);
        if (p->d_x.data) FA__LOOP(_row__store_at)(to, x, real, p->rows.stream);
    }
    FA__LOOP(_means_end)(f, p, &m);
}
