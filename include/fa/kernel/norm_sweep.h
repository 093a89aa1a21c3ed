/* norm_sweep.h: the backward of norm_rows.h on a GPU: threads keep their columns' weights and sums from row to row, and have the
 * next rows on their way in shared memory. */

/* Before the first row. */
FA__FN void FA__LOOP(_backward_keep)(const FA__PARAMS *p, int64_t segment, const fa_team *team, const FA__LOOP(_place) * place) {
    FA__LOOP(_row_view) columns = FA__LOOP(_columns)(p, 0, segment, team);
    float w[FA__LOOP(_row_PART)];
    FA__ROLL
    for (int piece = 0; piece < FA__LOOP(_row_held_pieces)(&columns); piece++) {
        FA__LOOP(_weights)(w, p, &columns, segment, piece, 0, 0);
        FA__LOOP(_row_pad)(w, &columns, piece, 0.0f);
        FA__LOOP(_keep)(place, piece, w);
    }
}
FA__FN void FA__LOOP(_backward_start)(const FA__PARAMS *p, int64_t row, int64_t segment, const fa_team *team,
                                      const FA__LOOP(_place) * place) {
    FA__LOOP(_row_held) held;
    FA__LOOP(_row_view) columns = FA__LOOP(_columns)(p, row, segment, team);
#if FA__EVEN
    FA__UNROLL
#else
    FA__ROLL
#endif
    for (int tensor = 0; tensor < 3; tensor++) {
        const fa_matrix *m = tensor == 0 ? &p->sum : tensor == 1 ? &p->d_y : &p->d_sum;
        if (tensor == 2 && !m->data) break;
        FA__LOOP(_row_view) part = FA__LOOP(_part)(m, p, row, segment, &columns);
        FA__LOOP(_row_hold)(&held, FA__LOOP(_slots)(place, p, tensor), &part, 0.0f);
    }
}

/* A piece of n and one of w = d_y gamma; `adds`: its share of the sums of columns, too. */
FA__FN_CALLED void FA__LOOP(_products)(float *n, float *w, const FA__PARAMS *p, const FA__LOOP(_terms) * of, const FA__LOOP(_flight) * f,
                                       const FA__LOOP(_place) * place, int64_t piece, int adds) {
    float buffer[FA__LOOP(_row_PART)], *sum_wn = adds ? FA__LOOP(_sums)(place, 0, piece) : NULL;
    int count = FA__LOOP(_row_count)(&of->s, piece);
    FA__LOOP(_row_get)(n, &of->held_s, &of->s, piece);
    FA__LOOP(_row_get)(w, &of->held_d, &of->d_y, piece);
    FA__UNROLL
    for (int i = 0; i < count; i++) {
#if FA__CENTERED
        n[i] = (n[i] - f->mean) * f->rstd;
#else
        n[i] *= f->rstd;
#endif
    }
    if (sum_wn) {
        FA__UNROLL
        for (int i = 0; i < count; i++) sum_wn[i] += w[i] * n[i];
#if FA__CENTERED
        float *sum_w = FA__LOOP(_sums)(place, 1, piece);
        FA__UNROLL
        for (int i = 0; i < count; i++) sum_w[i] += w[i];
#endif
    }
    FA__UNROLL
    for (int part = 0; part < FA__LOOP(_row_PARTS); part++) {
        const float *gamma = FA__LOOP(_kept)(buffer, place, (int)piece * FA__LOOP(_row_PARTS) + part);
        if (FA__LOOP(_row_PARTS) > 1) count = FA__LOOP(_row_PART);
        FA__UNROLL
        for (int i = 0; i < count; i++) w[part * FA__LOOP(_row_PART) + i] *= gamma[i];
    }
}

/* The statistics, if they were not given. */
FA__FN_CALLED void FA__LOOP(_again)(FA__LOOP(_flight) * f, const FA__PARAMS *p, const FA__LOOP(_terms) * of, int64_t row,
                                    fa_team *team, FA__LOOP(_place) * place) {
    float x[FA__LOOP(_row_LENGTH)];
    FA__LOOP(_looks) l = {0.0f, 0.0f, 0.0f, 0.0f};
    FA__ROLL
    for (int look = FA__LOOP(_FIRST_LOOK); look <= FA__LOOP(_SQUARES); look++) {
        FA__ROLL
        for (int piece = 0; piece < (int)FA__LOOP(_row_held_pieces)(&of->s); piece++) {
            FA__LOOP(_row_get)(x, &of->held_s, &of->s, piece);
            FA__LOOP(_look)(&l, look, x, &of->s, piece);
        }
        FA__LOOP(_looked)(&l, look, p, team, place);
    }
    f->mean = l.mean, f->rstd = l.rstd;
    if (row >= p->rows.rows) f->rstd = 0.0f; /* without eps that of nothing is infinite */
}

/* The sums over a piece of w and of w n. */
FA__FN void FA__LOOP(_add_up)(float *w_sum, float *wn_sum, const float *n, const float *w, int count) {
    if (FA__CENTERED) *w_sum += FA__LOOP(_reduce_sum_of)(w, count);
    *wn_sum += FA__LOOP(_reduce_dot_of)(w, n, count);
}

/* Finishes a row that is there, in place->slots: its gradients, and what it adds to the sums of columns. */
FA__FN void FA__LOOP(_backward_finish)(const FA__PARAMS *p, int64_t row, int64_t segment, fa_team *team, FA__LOOP(_place) * place,
                                       FA__LOOP(_flight) * f) {
    float n[FA__LOOP(_row_LENGTH)], w[FA__LOOP(_row_LENGTH)], w_mean = 0.0f, wn_mean = 0.0f;
    FA__LOOP(_row_held) held_d_sum;
    FA__LOOP(_row_view) columns = FA__LOOP(_columns)(p, row, segment, team);
    FA__LOOP(_terms) of = FA__LOOP(_terms_of)(p, row, segment, &columns);
    FA__LOOP(_row_view) d_sum = FA__LOOP(_part)(&p->d_sum, p, row, segment, &columns);
    const int64_t pieces = FA__LOOP(_row_held_pieces)(&of.s);
    const int known = FA__CUT && p->sums.row_values != NULL;
    FA__LOOP(_row_reach)(&of.held_s, FA__LOOP(_slots)(place, p, 0), 0.0f);
    FA__LOOP(_row_reach)(&of.held_d, FA__LOOP(_slots)(place, p, 1), 0.0f);
    FA__LOOP(_row_reach)(&held_d_sum, FA__LOOP(_slots)(place, p, 2), 0.0f);
    const int drops = p->dropout.threshold > 0 && p->d_x.data;
    FA__LOOP(_row_drawn) drawn = FA__LOOP(_row_draw)(&of.s, (uint64_t)(row * p->rows.cols + segment * p->sums.length), &p->dropout);

    const float *found = p->sums.row_values + 4 * (row < p->rows.rows ? row : 0);
    if (known) f->mean = found[0], f->rstd = found[1];
    else if (!p->rstd) FA__LOOP(_again)(f, p, &of, row, team, place);
    FA__UNROLL_PIECES
    for (int64_t piece = 0; piece < pieces; piece++) {
        FA__LOOP(_products)(n, w, p, &of, f, place, piece, 1);
        FA__LOOP(_add_up)(&w_mean, &wn_mean, n, w, FA__LOOP(_row_count)(&of.s, piece));
    }
    if (known) w_mean = found[2], wn_mean = found[3];
    else FA__LOOP(_means)(&w_mean, &wn_mean, p, team, place);
    w_mean *= -f->rstd, wn_mean *= -f->rstd;

    if (!p->d_residual.data && !drops) { /* without branches, for the compiler to mix pieces */
        float weights[FA__LOOP(_row_LENGTH)];
        const float by = wn_mean * f->rstd;
        FA__LOOP(_row_view) d_x = FA__LOOP(_part)(&p->d_x, p, row, segment, &columns);
        FA__UNROLL
        for (int piece = 0; piece < pieces; piece++) {
            FA__LOOP(_row_get)(n, &of.held_s, &of.s, piece);
            FA__LOOP(_row_get)(w, &of.held_d, &of.d_y, piece);
            const float *gamma = FA__LOOP(_kept)(weights, place, piece);
            FA__UNROLL
            for (int i = 0; i < FA__LOOP(_row_LENGTH); i++) n[i] = fmaf(w[i] * gamma[i], f->rstd, fmaf(n[i] - f->mean, by, w_mean));
            if (p->d_sum.data) {
                FA__LOOP(_row_get)(w, &held_d_sum, &d_sum, piece);
                FA__UNROLL
                for (int i = 0; i < FA__LOOP(_row_LENGTH); i++) n[i] += w[i];
            }
            if (p->d_x.data) FA__LOOP(_row_store)(&d_x, piece, n);
        }
        return;
    }
    FA__ROLL
    for (int64_t piece = 0; piece < pieces; piece++) {
        const int count = FA__LOOP(_row_count)(&of.s, piece);
        FA__LOOP(_products)(n, w, p, &of, f, place, piece, 0);
        FA__UNROLL
        for (int i = 0; i < count; i++) n[i] = n[i] * wn_mean + (w[i] * f->rstd + w_mean);
        if (p->d_sum.data) {
            FA__LOOP(_row_get)(w, &held_d_sum, &d_sum, piece);
            FA__UNROLL
            for (int i = 0; i < count; i++) n[i] += w[i];
        }
        FA__ROLL
        for (int which = 0; which < 2; which++) {
            const fa_matrix *m = which ? &p->d_x : &p->d_residual;
            FA__LOOP(_row_view) to = FA__LOOP(_part)(m, p, row, segment, &columns);
            if (which && drops) FA__LOOP(_row_dropout)(n, &of.s, piece, &drawn);
            if (m->data) FA__LOOP(_row_store)(&to, piece, n);
        }
    }
}
