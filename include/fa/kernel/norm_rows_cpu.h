/* norm_rows_cpu.h: the backward of norm_rows.h on the CPU, where a piece is an array in the first-level cache and every pass over it
 * takes its time: one to find the means of a row and one for all the rest. */

/* The sums over a piece of w = d_y gamma and of w n. */
FA__FN_CALLED void FA__LOOP(_add_up)(float *w_sum, float *wn_sum, const FA__ELEMENT *s, const FA__ELEMENT *d, const float *gamma, int real,
                                     const FA__LOOP(_flight) * f) {
    enum { LANES = FA__LOOP(_row_LANES), CHAINS = 2 };
    const FA__CPU_OP(vec) mean = FA__CPU_OP(splat)(f->mean), rstd = FA__CPU_OP(splat)(f->rstd);
    FA__CPU_OP(vec) all_w[CHAINS], all_wn[CHAINS];
    for (int j = 0; j < CHAINS; j++) all_w[j] = all_wn[j] = FA__CPU_OP(splat)(0.0f);
    for (int i = 0; i < real; i += CHAINS * LANES)
        for (int j = 0; j < CHAINS && i + j * LANES < real; j++) {
            const int at = i + j * LANES;
            FA__CPU_OP(vec) w = FA__LOOP(_row__vector)(d + at, real - at) * *(const FA__CPU_OP(any) *)(gamma + at);
            FA__CPU_OP(vec) n = (FA__LOOP(_row__vector)(s + at, real - at) - mean) * rstd;
            all_w[j] += w;
            all_wn[j] = FA__CPU_OP(fma)(w, n, all_wn[j]);
        }
    if (FA__CENTERED) *w_sum += FA__LOOP(_reduce__join)(all_w[0] + all_w[1], 0);
    *wn_sum += FA__LOOP(_reduce__join)(all_wn[0] + all_wn[1], 0);
}
/* What a piece adds to the sums of columns, if they are wanted, and its gradient, into x. */
FA__FN_CALLED void FA__LOOP(_gradient)(float *x, float *sum_wn, float *sum_w, const FA__ELEMENT *s, const FA__ELEMENT *d, const float *gamma,
                                       int real, const FA__LOOP(_flight) * f, float w_mean, float wn_mean) {
    enum { LANES = FA__LOOP(_row_LANES) };
    const FA__CPU_OP(vec) mean = FA__CPU_OP(splat)(f->mean), rstd = FA__CPU_OP(splat)(f->rstd);
    const FA__CPU_OP(vec) of_w = FA__CPU_OP(splat)(w_mean), of_wn = FA__CPU_OP(splat)(wn_mean);
    for (int i = 0; i < real; i += LANES) {
        FA__CPU_OP(vec) d_y = FA__LOOP(_row__vector)(d + i, real - i), w = d_y * *(const FA__CPU_OP(any) *)(gamma + i);
        FA__CPU_OP(vec) n = (FA__LOOP(_row__vector)(s + i, real - i) - mean) * rstd;
        if (sum_wn) {
            FA__CPU_OP(any) *wn_at = (FA__CPU_OP(any) *)(sum_wn + i), *w_at = (FA__CPU_OP(any) *)(sum_w + i);
            *wn_at = FA__CPU_OP(fma)(d_y, n, *wn_at);
            if (FA__CENTERED) *w_at += d_y;
        }
        *(FA__CPU_OP(any) *)(x + i) = FA__CPU_OP(fma)(n, of_wn, FA__CPU_OP(fma)(w, rstd, of_w));
    }
}

/* Asks for a segment of a row. */
FA__FN void FA__LOOP(_backward_ask)(const FA__PARAMS *p, int64_t row, int64_t segment, const fa_team *team) {
    FA__LOOP(_row_view) columns = FA__LOOP(_columns)(p, row, segment, team);
    FA__LOOP(_row_view) s = FA__LOOP(_part)(&p->sum, p, row, segment, &columns), d_y = FA__LOOP(_part)(&p->d_y, p, row, segment, &columns);
    FA__LOOP(_row__ask)((uintptr_t)s.first, (int)columns.cols), FA__LOOP(_row__ask)((uintptr_t)d_y.first, (int)columns.cols);
}

/* Finishes a row, or a segment of one: its gradients, and what it adds to the sums of columns. */
FA__FN void FA__LOOP(_backward_finish)(const FA__PARAMS *p, int64_t row, int64_t segment, fa_team *team, FA__LOOP(_place) * place,
                                       FA__LOOP(_flight) * f) {
    float x[FA__LOOP(_row_LENGTH)], buffer[FA__LOOP(_row_LENGTH)], w_mean = 0.0f, wn_mean = 0.0f;
    FA__LOOP(_terms) of;
    FA__LOOP(_row_view) columns = FA__LOOP(_columns)(p, row, segment, team);
    of.s = FA__LOOP(_part)(&p->sum, p, row, segment, &columns);
    of.d_y = FA__LOOP(_part)(&p->d_y, p, row, segment, &columns);
    of.segment = segment;
    FA__LOOP(_row_view) d_sum = FA__LOOP(_part)(&p->d_sum, p, row, segment, &columns);
    const int64_t pieces = FA__LOOP(_row_held_pieces)(&of.s);
    const int known = p->sums.row_values != NULL, drops = p->dropout.threshold > 0 && p->d_x.data;
    FA__LOOP(_row_reach)(&of.held_s, NULL, 0.0f);
    FA__LOOP(_row_drawn) drawn = FA__LOOP(_row_draw)(&of.s, (uint64_t)(row * p->rows.cols + segment * p->sums.length), &p->dropout);

    if (known) {
        const float *found = p->sums.row_values + 4 * row;
        f->mean = found[0], f->rstd = found[1], w_mean = found[2], wn_mean = found[3];
    } else {
        if (!p->rstd) FA__LOOP(_again)(f, p, &of, row, team, place);
        for (int64_t piece = 0; piece < pieces; piece++) {
            FA__LOOP(_row_ahead)(&of.s, piece), FA__LOOP(_row_ahead)(&of.d_y, piece);
            FA__LOOP(_add_up)(&w_mean, &wn_mean, FA__LOOP(_row__piece)(&of.s, piece), FA__LOOP(_row__piece)(&of.d_y, piece),
                              FA__LOOP(_weights)(buffer, p, &of.s, segment, piece, 0, 0), FA__LOOP(_row_real)(&of.s, piece), f);
        }
        FA__LOOP(_means)(&w_mean, &wn_mean, p, team, place);
    }
    w_mean *= -f->rstd, wn_mean *= -f->rstd;

    FA__LOOP(_row_view) d_residual = FA__LOOP(_part)(&p->d_residual, p, row, segment, &columns);
    FA__LOOP(_row_view) d_x = FA__LOOP(_part)(&p->d_x, p, row, segment, &columns);
    if (p->rows.stream) FA__LOOP(_row_stream)(&d_x), FA__LOOP(_row_stream)(&d_residual);
    for (int64_t piece = 0; piece < pieces; piece++) {
        const int real = FA__LOOP(_row_real)(&of.s, piece);
        FA__LOOP(_gradient)(x, FA__LOOP(_sums)(place, 0, piece), FA__LOOP(_sums)(place, FA__CENTERED, piece),
                            FA__LOOP(_row__piece)(&of.s, piece), FA__LOOP(_row__piece)(&of.d_y, piece),
                            FA__LOOP(_weights)(buffer, p, &of.s, segment, piece, 0, 0), real, f, w_mean, wn_mean);
        for (int i = 0; p->d_sum.data && i < real; i += FA__LOOP(_row_LANES))
            *(FA__CPU_OP(any) *)(x + i) += FA__LOOP(_row__vector)(FA__LOOP(_row__piece)(&d_sum, piece) + i, real - i);
        FA__LOOP(_row_pad)(x, &of.s, piece, 0.0f);
        if (p->d_residual.data) FA__LOOP(_row_store)(&d_residual, piece, x);
        if (drops) FA__LOOP(_row_dropout)(x, &of.s, piece, &drawn);
        if (p->d_x.data) FA__LOOP(_row_store)(&d_x, piece, x);
    }
}

/* The first pass over rows of several segments: what they need to know of the whole row. */
FA__FN void FA__LOOP(_first_pass)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    float buffer[FA__LOOP(_row_LENGTH)], w_mean = 0.0f, wn_mean = 0.0f;
    FA__LOOP(_flight) f;
    FA__LOOP(_terms) of;
    FA__LOOP(_row_view) columns = FA__LOOP(_columns)(p, row, 0, team);
    of.s = FA__LOOP(_part)(&p->sum, p, row, 0, &columns);
    of.d_y = FA__LOOP(_part)(&p->d_y, p, row, 0, &columns);
    FA__LOOP(_row_reach)(&of.held_s, NULL, 0.0f);
    FA__LOOP(_backward_peek)(&f, p, row);
    if (!p->rstd) FA__LOOP(_again)(&f, p, &of, row, team, place);
    for (int64_t piece = 0; piece < FA__LOOP(_row_held_pieces)(&of.s); piece++) {
        FA__LOOP(_row_ahead)(&of.s, piece), FA__LOOP(_row_ahead)(&of.d_y, piece);
        FA__LOOP(_add_up)(&w_mean, &wn_mean, FA__LOOP(_row__piece)(&of.s, piece), FA__LOOP(_row__piece)(&of.d_y, piece),
                          FA__LOOP(_weights)(buffer, p, &of.s, 0, piece, 0, 0), FA__LOOP(_row_real)(&of.s, piece), &f);
    }
    FA__LOOP(_means)(&w_mean, &wn_mean, p, team, place);
    float *found = p->sums.row_values + 4 * row;
    found[0] = f.mean, found[1] = f.rstd, found[2] = w_mean, found[3] = wn_mean;
}
