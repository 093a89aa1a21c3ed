/* norm_rows.h: layer normalisation of a row (FA__CENTERED 1) or its root-mean-square normalisation (0), and the gradients.
 *
 *     s = x, or dropout(x) + residual;  n = (s - mean) rstd;  y = n gamma + beta
 *
 * Backward, with w = d_y gamma:
 *
 *     d_s = rstd (w - mean of w - n mean of (w n)) + d_sum      without the mean of w if nothing was centered
 *     d_residual = d_s,  d_x = dropout(d_s),  d_gamma = sum over rows of d_y n,  d_beta = sum over rows of d_y
 */

/* What is known of a row before it is there. */
typedef struct FA__LOOP(_flight) {
    float mean, rstd;
} FA__LOOP(_flight);

/* The statistics of a row are found piece by piece, and those of pieces merged; or, where a row is held and pieces are got
 * cheaply, in two passes, of which the second needs the mean. */
enum { FA__LOOP(_PASSES) = FA__CENTERED && FA__LOOP(_row_KNOWN) ? 2 : 1 };
typedef struct FA__LOOP(_moments) {
    float number, mean, squares;
    float pivot; /* the first piece's mean, to which that of all pieces is relative: it is rounded after each of them */
} FA__LOOP(_moments);

/* A piece's share. Elements that are none of the row become what adds nothing. */
FA__FN_CALLED void FA__LOOP(_measure)(float *x, const FA__LOOP(_row_view) * in, int64_t piece, int pass, FA__LOOP(_moments) * m) {
    int count = FA__LOOP(_row_count)(in, piece);
    if (!FA__CENTERED) {
        m->squares += FA__LOOP(_reduce_dot_of)(x, x, count);
    } else if (FA__LOOP(_PASSES) == 2 && pass == 0) {
        m->mean += FA__LOOP(_reduce_sum_of)(x, count);
    } else if (FA__LOOP(_PASSES) == 2) {
        FA__LOOP(_row_pad)(x, in, piece, m->mean);
        m->squares += FA__LOOP(_reduce_squares_of)(x, count, m->mean);
    } else {
        int real = FA__LOOP(_row_real)(in, piece);
        float middle = real > 0 ? FA__LOOP(_reduce_sum_of)(x, count) / (float)real : 0.0f;
        FA__LOOP(_row_pad)(x, in, piece, middle);
        if (m->number == 0.0f) m->pivot = fabsf(middle) < INFINITY ? middle : 0.0f;
        FA__LOOP(_reduce_merge)(&m->number, &m->mean, &m->squares, (float)real, middle - m->pivot, FA__LOOP(_reduce_squares_of)(x, count, middle));
    }
}
/* After a pass over all pieces: of the whole row, from what the threads of the team know. */
FA__FN void FA__LOOP(_measured)(FA__LOOP(_flight) * f, const FA__PARAMS *p, int pass, FA__LOOP(_moments) * m, fa_team *team,
                                FA__LOOP(_place) * place) {
    if (FA__LOOP(_PASSES) == 2 && pass == 0) {
        m->mean = FA__LOOP(_reduce_sum)(m->mean, team, place->shared) * p->inverse_cols;
        return;
    }
    if (FA__CENTERED && FA__LOOP(_PASSES) == 1) {
        m->mean += m->pivot;
        FA__LOOP(_reduce_moments)(&m->number, &m->mean, &m->squares, team, place->shared);
    } else {
        m->squares = FA__LOOP(_reduce_sum)(m->squares, team, place->shared);
    }
    f->mean = m->mean;
    f->rstd = fa__rsqrt(m->squares * p->inverse_cols + p->eps);
}

/* ---- forward ---- */

#if FA__DIRECTIONS & FA__ROWS_FORWARD
FA__FN FA__LOOP(_row_view) FA__LOOP(_whole)(const fa_matrix *m, const FA__PARAMS *p, int64_t row, const FA__LOOP(_row_view) * like) {
    return FA__LOOP(_row_like)(fa__address(m, row < p->rows.rows ? row : 0, 0, sizeof(FA__ELEMENT)), like);
}
FA__FN FA__LOOP(_row_view) FA__LOOP(_whole_x)(const FA__PARAMS *p, int64_t row, const fa_team *team) {
    const int real = row < p->rows.rows;
    return FA__LOOP(_row_at)(fa__address(&p->x, real ? row : 0, 0, sizeof(FA__ELEMENT)), real ? p->rows.cols : 0, team);
}

FA__FN void FA__LOOP(_forward_start)(const FA__PARAMS *p, int64_t row, int64_t segment, const fa_team *team, const FA__LOOP(_place) * place) {
    FA__LOOP(_row_held) held;
    FA__LOOP(_row_view) x = FA__LOOP(_whole_x)(p, row, team);
    (void)segment;
    FA__LOOP(_row_hold)(&held, FA__LOOP(_slots)(place, p, 0), &x, 0.0f);
    if (p->residual.data) {
        FA__LOOP(_row_view) residual = FA__LOOP(_whole)(&p->residual, p, row, &x);
        FA__LOOP(_row_hold)(&held, FA__LOOP(_slots)(place, p, 1), &residual, 0.0f);
    }
}
FA__FN void FA__LOOP(_forward_peek)(FA__LOOP(_flight) * f, const FA__PARAMS *p, int64_t row) {
    (void)p, (void)row;
    f->mean = f->rstd = 0.0f;
}

/* What is read of a row. */
typedef struct FA__LOOP(_source) {
    FA__LOOP(_row_view) x, residual;
    FA__LOOP(_row_held) held, held_residual;
    FA__LOOP(_row_drawn) drawn;
} FA__LOOP(_source);

/* What is normalised, a piece of it. */
FA__FN_CALLED void FA__LOOP(_summand)(float *x, const FA__PARAMS *p, const FA__LOOP(_source) * from, int64_t piece) {
    FA__LOOP(_row_get)(x, &from->held, &from->x, piece);
    if (p->dropout.threshold > 0) FA__LOOP(_row_dropout)(x, &from->x, piece, &from->drawn);
    if (p->residual.data) {
        float add[FA__LOOP(_row_LENGTH)];
        int count = FA__LOOP(_row_count)(&from->x, piece);
        FA__LOOP(_row_get)(add, &from->held_residual, &from->residual, piece);
        FA__UNROLL
        for (int i = 0; i < count; i++) x[i] += add[i];
    }
}

FA__FN void FA__LOOP(_forward_finish)(const FA__PARAMS *p, int64_t row, int64_t segment, fa_team *team, FA__LOOP(_place) * place,
                                      FA__LOOP(_flight) * f) {
    enum { KEPT = FA__LOOP(_row_KEPT) > 0 ? FA__LOOP(_row_KEPT) : 1 };
    const int first = row < p->rows.rows && team->thread == 0; /* who writes what there is one of */
    float kept[KEPT * FA__LOOP(_row_LENGTH)], buffer[FA__LOOP(_row_PART)], buffer2[FA__LOOP(_row_PART)];
    FA__LOOP(_source) from;
    from.x = FA__LOOP(_whole_x)(p, row, team);
    from.residual = FA__LOOP(_whole)(&p->residual, p, row, &from.x);
    FA__LOOP(_row_view) sum = FA__LOOP(_whole)(&p->sum, p, row, &from.x), y = FA__LOOP(_whole)(&p->y, p, row, &from.x);
    const int keeps = FA__LOOP(_row_keeps)(&from.x, 1);
    int64_t pieces = FA__LOOP(_row_held_pieces)(&from.x);
    (void)segment;
    if (p->rows.stream) FA__LOOP(_row_stream)(&y), FA__LOOP(_row_stream)(&sum);
    FA__LOOP(_row_reach)(&from.held, FA__LOOP(_slots)(place, p, 0), 0.0f);
    FA__LOOP(_row_reach)(&from.held_residual, FA__LOOP(_slots)(place, p, 1), 0.0f);
    from.drawn = FA__LOOP(_row_draw)(&from.x, (uint64_t)(row * p->rows.cols), &p->dropout);

    FA__LOOP(_moments) m = {0.0f, 0.0f, 0.0f, 0.0f};
    FA__UNROLL
    for (int pass = 0; pass < FA__LOOP(_PASSES); pass++) {
        FA__UNROLL_PIECES
        for (int64_t piece = 0; piece < pieces; piece++) {
            float *x = kept + (keeps ? piece * FA__LOOP(_row_LENGTH) : 0);
            if (pass == 0 && pieces > 1) FA__LOOP(_row_ahead)(&from.x, piece);
            if (pass == 0 || !keeps) FA__LOOP(_summand)(x, p, &from, piece);
            FA__LOOP(_measure)(x, &from.x, piece, pass, &m);
        }
        FA__LOOP(_measured)(f, p, pass, &m, team, place);
    }
    if (first && p->rstd) p->rstd[row] = f->rstd;
#if FA__CENTERED
    if (first && p->mean) p->mean[row] = f->mean;
#endif

    /* The sum is written here and not above, so that it may take the place of what it is made of. */
    FA__UNROLL_PIECES
    for (int64_t piece = 0; piece < pieces; piece++) {
        float *x = kept + (keeps ? piece * FA__LOOP(_row_LENGTH) : 0);
        int count = FA__LOOP(_row_count)(&from.x, piece);
        if (!keeps) FA__LOOP(_summand)(x, p, &from, piece);
        if (p->sum.data) FA__LOOP(_row_store)(&sum, piece, x);
        FA__UNROLL
        for (int part = 0; part < FA__LOOP(_row_PARTS); part++) {
            const float *gamma = FA__LOOP(_row_weights)(buffer, &from.x, piece, part, p->gamma, FA_WEIGHT_DTYPE, 1.0f);
            float *n = x + part * FA__LOOP(_row_PART);
            if (FA__LOOP(_row_PARTS) > 1) count = FA__LOOP(_row_PART);
#if FA__CENTERED
            const float *beta = FA__LOOP(_row_weights)(buffer2, &from.x, piece, part, p->beta, FA_WEIGHT_DTYPE, 0.0f);
            FA__UNROLL
            for (int i = 0; i < count; i++) n[i] = (n[i] - f->mean) * f->rstd * gamma[i] + beta[i];
#else
            (void)buffer2;
            FA__UNROLL
            for (int i = 0; i < count; i++) n[i] = n[i] * f->rstd * gamma[i];
#endif
        }
        FA__LOOP(_row_store)(&y, piece, x);
    }
}

FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    FA__LOOP(_flight) f;
    FA__LOOP(_forward_start)(p, row, 0, team, place);
    FA__LOOP(_row_wait)();
    FA__LOOP(_forward_peek)(&f, p, row);
    FA__LOOP(_forward_finish)(p, row, 0, team, place, &f);
}
#endif

/* ---- backward ---- */

#if FA__DIRECTIONS & FA__ROWS_BACKWARD

/* Columns stay with their threads in every row, so that these can add them up: rows are divided as if they began at a
 * multiple of 16 bytes. */
FA__FN FA__LOOP(_row_view) FA__LOOP(_columns)(const FA__PARAMS *p, int64_t row, int64_t segment, const fa_team *team) {
    int64_t left = p->rows.cols - segment * p->sums.length, cols = left < p->sums.length ? left : p->sums.length;
    return FA__LOOP(_row_at)(NULL, row < p->rows.rows ? cols : 0, team);
}
FA__FN FA__LOOP(_row_view) FA__LOOP(_part)(const fa_matrix *m, const FA__PARAMS *p, int64_t row, int64_t segment,
                                           const FA__LOOP(_row_view) * columns) {
    return FA__LOOP(_row_like)(fa__address(m, row < p->rows.rows ? row : 0, segment * p->sums.length, sizeof(FA__ELEMENT)), columns);
}

FA__FN void FA__LOOP(_backward_start)(const FA__PARAMS *p, int64_t row, int64_t segment, const fa_team *team,
                                      const FA__LOOP(_place) * place) {
    FA__LOOP(_row_held) held;
    FA__LOOP(_row_view) columns = FA__LOOP(_columns)(p, row, segment, team);
    FA__LOOP(_row_view) s = FA__LOOP(_part)(&p->sum, p, row, segment, &columns);
    FA__LOOP(_row_view) d_y = FA__LOOP(_part)(&p->d_y, p, row, segment, &columns);
    FA__LOOP(_row_hold)(&held, FA__LOOP(_slots)(place, p, 0), &s, 0.0f);
    FA__LOOP(_row_hold)(&held, FA__LOOP(_slots)(place, p, 1), &d_y, 0.0f);
    if (p->d_sum.data) {
        FA__LOOP(_row_view) d_sum = FA__LOOP(_part)(&p->d_sum, p, row, segment, &columns);
        FA__LOOP(_row_hold)(&held, FA__LOOP(_slots)(place, p, 2), &d_sum, 0.0f);
    }
}
FA__FN void FA__LOOP(_backward_peek)(FA__LOOP(_flight) * f, const FA__PARAMS *p, int64_t row) {
    f->mean = f->rstd = 0.0f;
    if (!p->rstd || row < 0 || row >= p->rows.rows) return;
#if FA__CENTERED
    f->mean = p->mean[row];
#endif
    f->rstd = p->rstd[row];
}

/* A piece of n and one of d_y. */
FA__FN_CALLED void FA__LOOP(_normal)(float *n, float *d, const FA__LOOP(_flight) * f, const FA__LOOP(_row_held) * held_s,
                              const FA__LOOP(_row_view) * s, const FA__LOOP(_row_held) * held_d, const FA__LOOP(_row_view) * d_y,
                              int64_t piece) {
    int count = FA__LOOP(_row_count)(s, piece);
    FA__LOOP(_row_get)(n, held_s, s, piece);
    FA__LOOP(_row_get)(d, held_d, d_y, piece);
    FA__UNROLL
    for (int i = 0; i < count; i++) {
#if FA__CENTERED
        n[i] = (n[i] - f->mean) * f->rstd;
#else
        n[i] *= f->rstd;
#endif
    }
}

/* The means over a whole row of w and of w n; and mean and rstd, if they were not given. */
FA__FN void FA__LOOP(_row_means)(float *w_mean, float *wn_mean, FA__LOOP(_flight) * f, const FA__PARAMS *p,
                                 const FA__LOOP(_row_held) * held_s, const FA__LOOP(_row_view) * s, const FA__LOOP(_row_held) * held_d,
                                 const FA__LOOP(_row_view) * d_y, fa_team *team, FA__LOOP(_place) * place) {
    float n[FA__LOOP(_row_LENGTH)], d[FA__LOOP(_row_LENGTH)], buffer[FA__LOOP(_row_PART)];
    int64_t pieces = FA__LOOP(_row_held_pieces)(s);
    if (!p->rstd) {
        FA__LOOP(_moments) m = {0.0f, 0.0f, 0.0f, 0.0f};
        FA__ROLL
        for (int pass = 0; pass < FA__LOOP(_PASSES); pass++) {
            FA__ROLL
            for (int64_t piece = 0; piece < pieces; piece++) {
                FA__LOOP(_row_get)(n, held_s, s, piece);
                FA__LOOP(_measure)(n, s, piece, pass, &m);
            }
            FA__LOOP(_measured)(f, p, pass, &m, team, place);
        }
    }
    float w_sum = 0.0f, wn_sum = 0.0f;
    FA__UNROLL_PIECES
    for (int64_t piece = 0; piece < pieces; piece++) {
        FA__LOOP(_normal)(n, d, f, held_s, s, held_d, d_y, piece);
        FA__UNROLL
        for (int part = 0; part < FA__LOOP(_row_PARTS); part++) {
            float *w = d + part * FA__LOOP(_row_PART);
            const int count = FA__LOOP(_row_PARTS) > 1 ? (int)FA__LOOP(_row_PART) : FA__LOOP(_row_count)(s, piece);
            const float *gamma = FA__LOOP(_row_weights)(buffer, s, piece, part, p->gamma, FA_WEIGHT_DTYPE, 1.0f);
            FA__UNROLL
            for (int i = 0; i < count; i++) w[i] *= gamma[i];
            if (FA__CENTERED) w_sum += FA__LOOP(_reduce_sum_of)(w, count);
            wn_sum += FA__LOOP(_reduce_dot_of)(w, n + part * FA__LOOP(_row_PART), count);
        }
    }
#if FA__CENTERED
    FA__LOOP(_reduce_sum2)(&w_sum, &wn_sum, team, place->shared);
#else
    wn_sum = FA__LOOP(_reduce_sum)(wn_sum, team, place->shared);
#endif
    *w_mean = w_sum * p->inverse_cols;
    *wn_mean = wn_sum * p->inverse_cols;
}

/* Finishes a row that is there, in place->slots: its gradients, and what it adds to the sums of columns. */
FA__FN void FA__LOOP(_backward_finish)(const FA__PARAMS *p, int64_t row, int64_t segment, fa_team *team, FA__LOOP(_place) * place,
                                       FA__LOOP(_flight) * f) {
    float n[FA__LOOP(_row_LENGTH)], d[FA__LOOP(_row_LENGTH)], buffer[FA__LOOP(_row_PART)], w_mean, wn_mean;
    FA__LOOP(_row_held) held_s, held_d, held_d_sum;
    FA__LOOP(_row_view) columns = FA__LOOP(_columns)(p, row, segment, team);
    FA__LOOP(_row_view) s = FA__LOOP(_part)(&p->sum, p, row, segment, &columns);
    FA__LOOP(_row_view) d_y = FA__LOOP(_part)(&p->d_y, p, row, segment, &columns);
    FA__LOOP(_row_view) d_sum = FA__LOOP(_part)(&p->d_sum, p, row, segment, &columns);
    FA__LOOP(_row_view) d_residual = FA__LOOP(_part)(&p->d_residual, p, row, segment, &columns);
    FA__LOOP(_row_view) d_x = FA__LOOP(_part)(&p->d_x, p, row, segment, &columns);
    const char *weights = p->gamma ? (const char *)p->gamma + segment * p->sums.length * fa_dtype_bytes(FA_WEIGHT_DTYPE) : NULL;
    int64_t pieces = FA__LOOP(_row_held_pieces)(&s);
    FA__LOOP(_row_reach)(&held_s, FA__LOOP(_slots)(place, p, 0), 0.0f);
    FA__LOOP(_row_reach)(&held_d, FA__LOOP(_slots)(place, p, 1), 0.0f);
    FA__LOOP(_row_reach)(&held_d_sum, FA__LOOP(_slots)(place, p, 2), 0.0f);
    if (p->rows.stream) FA__LOOP(_row_stream)(&d_x), FA__LOOP(_row_stream)(&d_residual);
    const int drops = p->dropout.threshold > 0 && p->d_x.data;
    FA__LOOP(_row_drawn) drawn = FA__LOOP(_row_draw)(&s, (uint64_t)(row * p->rows.cols + segment * p->sums.length), &p->dropout);
    if (p->sums.row_values) {
        const float *found = p->sums.row_values + 4 * (row < p->rows.rows ? row : 0);
        f->mean = found[0], f->rstd = found[1], w_mean = found[2], wn_mean = found[3];
    } else {
        FA__LOOP(_row_means)(&w_mean, &wn_mean, f, p, &held_s, &s, &held_d, &d_y, team, place);
    }
    FA__UNROLL_PIECES
    for (int64_t piece = 0; piece < pieces; piece++) {
        int count = FA__LOOP(_row_count)(&s, piece);
        float *sum_wn = FA__LOOP(_sums)(place, 0, piece);
        FA__LOOP(_normal)(n, d, f, &held_s, &s, &held_d, &d_y, piece);
        if (sum_wn) {
            FA__UNROLL
            for (int i = 0; i < count; i++) sum_wn[i] += d[i] * n[i];
#if FA__CENTERED
            float *sum_w = FA__LOOP(_sums)(place, 1, piece);
            FA__UNROLL
            for (int i = 0; i < count; i++) sum_w[i] += d[i];
#endif
        }
        FA__UNROLL
        for (int part = 0; part < FA__LOOP(_row_PARTS); part++) {
            float *to = n + part * FA__LOOP(_row_PART);
            if (FA__LOOP(_row_PARTS) > 1) count = FA__LOOP(_row_PART);
            const float *gamma = FA__LOOP(_row_weights)(buffer, &s, piece, part, weights, FA_WEIGHT_DTYPE, 1.0f);
            FA__UNROLL
            for (int i = 0; i < count; i++) to[i] = f->rstd * (d[part * FA__LOOP(_row_PART) + i] * gamma[i] - w_mean - to[i] * wn_mean);
        }
        if (p->d_sum.data) {
            count = FA__LOOP(_row_count)(&s, piece);
            FA__LOOP(_row_get)(d, &held_d_sum, &d_sum, piece);
            FA__UNROLL
            for (int i = 0; i < count; i++) n[i] += d[i];
        }
        if (p->d_residual.data) FA__LOOP(_row_store)(&d_residual, piece, n);
        if (drops) FA__LOOP(_row_dropout)(n, &s, piece, &drawn);
        if (p->d_x.data) FA__LOOP(_row_store)(&d_x, piece, n);
    }
}

FA__FN void FA__LOOP(_backward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    FA__LOOP(_flight) f;
    FA__LOOP(_backward_start)(p, row, 0, team, place);
    FA__LOOP(_row_wait)();
    FA__LOOP(_backward_peek)(&f, p, row);
    FA__LOOP(_backward_finish)(p, row, 0, team, place, &f);
}

/* The first pass over rows of several segments: what they need to know of the whole row. */
FA__FN void FA__LOOP(_first_pass)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    FA__LOOP(_flight) f;
    FA__LOOP(_row_held) held_s, held_d;
    float w_mean, wn_mean;
    const int first = row < p->rows.rows && team->thread == 0;
    FA__LOOP(_row_view) columns = FA__LOOP(_columns)(p, row, 0, team);
    FA__LOOP(_row_view) s = FA__LOOP(_part)(&p->sum, p, row, 0, &columns), d_y = FA__LOOP(_part)(&p->d_y, p, row, 0, &columns);
    FA__LOOP(_row_hold)(&held_s, FA__LOOP(_slots)(place, p, 0), &s, 0.0f);
    FA__LOOP(_row_hold)(&held_d, FA__LOOP(_slots)(place, p, 1), &d_y, 0.0f);
    FA__LOOP(_row_wait)();
    FA__LOOP(_backward_peek)(&f, p, row);
    FA__LOOP(_row_means)(&w_mean, &wn_mean, &f, p, &held_s, &s, &held_d, &d_y, team, place);
    if (first) {
        float *found = p->sums.row_values + 4 * row;
        found[0] = f.mean, found[1] = f.rstd, found[2] = w_mean, found[3] = wn_mean;
    }
}
#endif
