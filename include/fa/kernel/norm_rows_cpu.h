/* norm_rows_cpu.h: norm_rows.h on the CPU, where a piece is an array in the first-level cache and every pass over it takes its
 * time: in the backward one to find the means of a row, and one for all the rest. */

/* The statistics of a row are found piece by piece, and those of pieces merged. */
typedef struct FA__LOOP(_moments) {
    float number, mean, squares;
    float pivot; /* the first piece's mean, to which that of all pieces is relative: it is rounded after each of them */
} FA__LOOP(_moments);

/* A piece's share, in two steps: its mean, and the squares about that. Elements that are none of the row become what adds
 * nothing. */
FA__FN_CALLED float FA__LOOP(_middle)(const float *x, const FA__LOOP(_row_view) * in, int64_t piece) {
    int real = FA__CENTERED ? FA__LOOP(_row_real)(in, piece) : 0;
    return real > 0 ? FA__LOOP(_reduce_sum_of)(x, FA__LOOP(_row_count)(in, piece)) / (float)real : 0.0f;
}
FA__FN_CALLED void FA__LOOP(_measure)(float *x, const FA__LOOP(_row_view) * in, int64_t piece, float middle, FA__LOOP(_moments) * m) {
    int count = FA__LOOP(_row_count)(in, piece);
#if FA__CENTERED
    float real = (float)FA__LOOP(_row_real)(in, piece), squares;
    FA__LOOP(_row_pad)(x, in, piece, middle);
    squares = FA__LOOP(_reduce_squares_of)(x, count, middle);
    if (m->number == 0.0f) {
        m->pivot = fabsf(middle) < INFINITY ? middle : 0.0f;
        m->number = real, m->mean = middle - m->pivot, m->squares = squares;
    } else {
        FA__LOOP(_reduce_merge)(&m->number, &m->mean, &m->squares, real, middle - m->pivot, squares);
    }
#else
    (void)in, (void)piece, (void)middle;
    m->squares += FA__LOOP(_reduce_dot_of)(x, x, count);
#endif
}
/* After all pieces: of the whole row, from what the threads of the team know. */
FA__FN void FA__LOOP(_measured)(FA__LOOP(_flight) * f, const FA__PARAMS *p, FA__LOOP(_moments) * m, fa_team *team,
                                FA__LOOP(_place) * place) {
#if FA__CENTERED
    m->mean += m->pivot;
    FA__LOOP(_reduce_moments)(&m->number, &m->mean, &m->squares, team, place->shared);
#else
    m->squares = FA__LOOP(_reduce_sum)(m->squares, team, place->shared);
#endif
    f->mean = m->mean;
    f->rstd = fa__rsqrt(m->squares * p->inverse_cols + p->eps);
}

/* ---- forward ---- */

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

FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    enum { FA__KEPT = FA__LOOP(_row_KEPT) > 0 ? FA__LOOP(_row_KEPT) : 1 };
    const int real = row < p->rows.rows, first = real && team->thread == 0; /* who writes what there is one of */
    float kept[(int)FA__KEPT * FA__LOOP(_row_LENGTH)], buffer[FA__LOOP(_row_PART)], buffer2[FA__LOOP(_row_PART)];
    FA__LOOP(_source) from;
    FA__LOOP(_flight) f;
    from.x = FA__LOOP(_row_at)(fa__address(&p->x, real ? row : 0, 0, sizeof(FA__ELEMENT)), real ? p->rows.cols : 0, team);
    from.residual = FA__LOOP(_whole)(&p->residual, p, row, &from.x);
    const int keeps = FA__LOOP(_row_keeps)(&from.x, 1);
    int64_t pieces = FA__LOOP(_row_held_pieces)(&from.x);
    FA__LOOP(_row_hold)(&from.held, FA__LOOP(_slots)(place, p, 0), &from.x, 0.0f);
    if (p->residual.data) FA__LOOP(_row_hold)(&from.held_residual, FA__LOOP(_slots)(place, p, 1), &from.residual, 0.0f);
    from.drawn = FA__LOOP(_row_draw)(&from.x, (uint64_t)(row * p->rows.cols), &p->dropout);
    FA__LOOP(_row_wait)();

    FA__LOOP(_moments) m = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int64_t piece = 0; piece < pieces; piece++) {
        float *x = kept + (keeps ? piece * FA__LOOP(_row_LENGTH) : 0);
        FA__LOOP(_row_ahead)(&from.x, piece);
        FA__LOOP(_summand)(x, p, &from, piece);
        float middle = FA__LOOP(_middle)(x, &from.x, piece);
        FA__LOOP(_measure)(x, &from.x, piece, middle, &m);
    }
    FA__LOOP(_measured)(&f, p, &m, team, place);
    if (first && p->rstd) p->rstd[row] = f.rstd;
#if FA__CENTERED
    if (first && p->mean) p->mean[row] = f.mean;
#endif
    if (!real) return; /* after the last reduction: a team that knows its rows to be whole has read another */

    FA__LOOP(_row_view) sum = FA__LOOP(_whole)(&p->sum, p, row, &from.x), y = FA__LOOP(_whole)(&p->y, p, row, &from.x);
    if (p->rows.stream) FA__LOOP(_row_stream)(&y), FA__LOOP(_row_stream)(&sum);
    /* The sum is written here and not above, so that it may take the place of what it is made of. */
    for (int64_t piece = 0; piece < pieces; piece++) {
        float *x = kept + (keeps ? piece * FA__LOOP(_row_LENGTH) : 0);
        int count = FA__LOOP(_row_count)(&from.x, piece);
        if (!keeps) FA__LOOP(_summand)(x, p, &from, piece);
        if (p->sum.data) FA__LOOP(_row_store)(&sum, piece, x);
        FA__UNROLL
        for (int part = 0; part < FA__LOOP(_row_PARTS); part++) {
            const float *gamma = FA__LOOP(_weights)(buffer, p, &from.x, 0, piece, part, 0);
            float *n = x + part * FA__LOOP(_row_PART);
            if (FA__LOOP(_row_PARTS) > 1) count = FA__LOOP(_row_PART);
#if FA__CENTERED
            const float *beta = FA__LOOP(_weights)(buffer2, p, &from.x, 0, piece, part, 1);
            FA__UNROLL
            for (int i = 0; i < count; i++) n[i] = (n[i] - f.mean) * f.rstd * gamma[i] + beta[i];
#else
            (void)buffer2;
            FA__UNROLL
            for (int i = 0; i < count; i++) n[i] = n[i] * f.rstd * gamma[i];
#endif
        }
        FA__LOOP(_row_store)(&y, piece, x);
    }
}

/* ---- backward ---- */

/* The statistics, if they were not given. */
FA__FN_CALLED void FA__LOOP(_again)(FA__LOOP(_flight) * f, const FA__PARAMS *p, const FA__LOOP(_terms) * of,
                                    fa_team *team, FA__LOOP(_place) * place) {
    float x[FA__LOOP(_row_LENGTH)];
    FA__LOOP(_moments) m = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int64_t piece = 0; piece < FA__LOOP(_row_held_pieces)(&of->s); piece++) {
        FA__LOOP(_row_get)(x, &of->held_s, &of->s, piece);
        FA__LOOP(_measure)(x, &of->s, piece, FA__LOOP(_middle)(x, &of->s, piece), &m);
    }
    FA__LOOP(_measured)(f, p, &m, team, place);
}

/* The sums over a piece of w = d_y gamma and of w n. */
FA__FN_CALLED void FA__LOOP(_add_up)(float *w_sum, float *wn_sum, const FA__ELEMENT *s, const FA__ELEMENT *d, const float *gamma, int real,
                                     const FA__LOOP(_flight) * f) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES), FA__STRANDS = 2 };
    const FA__CPU_OP(vec) mean = FA__CPU_OP(splat)(f->mean);
    FA__CPU_OP(vec) all_w[FA__STRANDS], all_wn[FA__STRANDS];
    FA__ELEMENT rest[2][FA__FLOATS];
    for (int j = 0; j < FA__STRANDS; j++) all_w[j] = all_wn[j] = FA__CPU_OP(splat)(0.0f);
    for (int begin = 0, end; begin < real; begin = end) {
        const FA__ELEMENT *s_at = FA__LOOP(_row__from)(rest[0], s, begin, real), *d_at = FA__LOOP(_row__from)(rest[1], d, begin, real);
        end = FA__LOOP(_row__end)(begin, real);
        for (int i = begin; i < end; i += FA__STRANDS * FA__FLOATS)
            for (int j = 0; j < FA__STRANDS && i + j * FA__FLOATS < end; j++) {
                const int at = i + j * FA__FLOATS;
                FA__CPU_OP(vec) w = FA__LOOP(_row__vector)(d_at + (at - begin)) * *(const FA__CPU_OP(any) *)(gamma + at);
                all_w[j] += w;
                all_wn[j] = FA__CPU_OP(fma)(w, FA__LOOP(_row__vector)(s_at + (at - begin)) - mean, all_wn[j]); /* of w n / rstd */
            }
    }
    if (FA__CENTERED) *w_sum += FA__LOOP(_reduce__join)(all_w[0] + all_w[1], 0);
    *wn_sum += FA__LOOP(_reduce__join)(all_wn[0] + all_wn[1], 0) * f->rstd;
}
/* What a piece adds to the sums of columns, if they are wanted, and its gradient, into x. */
FA__FN_CALLED void FA__LOOP(_gradient)(float *x, float *sum_wn, float *sum_w, const FA__ELEMENT *s, const FA__ELEMENT *d, const float *gamma,
                                       int real, const FA__LOOP(_flight) * f, float w_mean, float wn_mean) {
    enum { FA__FLOATS = FA__LOOP(_row_LANES) };
    const FA__CPU_OP(vec) mean = FA__CPU_OP(splat)(f->mean), rstd = FA__CPU_OP(splat)(f->rstd);
    const FA__CPU_OP(vec) of_w = FA__CPU_OP(splat)(w_mean), of_wn = FA__CPU_OP(splat)(wn_mean * f->rstd);
    FA__ELEMENT rest[2][FA__FLOATS];
    for (int begin = 0, end; begin < real; begin = end) {
        const FA__ELEMENT *s_at = FA__LOOP(_row__from)(rest[0], s, begin, real), *d_at = FA__LOOP(_row__from)(rest[1], d, begin, real);
        end = FA__LOOP(_row__end)(begin, real);
        for (int i = begin; i < end; i += FA__FLOATS) {
            /* All is loaded before anything is stored: the sums, and often gamma, lie at multiples of 4 KB from each other, and a load
             * waits for a store that has the same last 12 bits. */
            FA__CPU_OP(vec) d_y = FA__LOOP(_row__vector)(d_at + (i - begin)), d_n = d_y * rstd;
            FA__CPU_OP(vec) off = FA__LOOP(_row__vector)(s_at + (i - begin)) - mean; /* n / rstd */
            const FA__CPU_OP(vec) d_s = FA__CPU_OP(fma)(off, of_wn, FA__CPU_OP(fma)(d_n, *(const FA__CPU_OP(any) *)(gamma + i), of_w));
            if (sum_wn) {
                FA__CPU_OP(any) *wn_at = (FA__CPU_OP(any) *)(sum_wn + i), *w_at = (FA__CPU_OP(any) *)(sum_w + i);
                const FA__CPU_OP(vec) wn = FA__CPU_OP(fma)(d_n, off, *wn_at), w = *w_at + d_y;
                *wn_at = wn;
                if (FA__CENTERED) *w_at = w;
            }
            *(FA__CPU_OP(any) *)(x + i) = d_s;
        }
    }
}

/* What the gradients of a row need to know of all of it: its statistics, if they were not given, and the means of w and of w n. */
FA__FN void FA__LOOP(_know)(FA__LOOP(_flight) * f, float *w_mean, float *wn_mean, const FA__PARAMS *p, FA__LOOP(_terms) * of,
                            fa_team *team, FA__LOOP(_place) * place) {
    float buffer[FA__LOOP(_row_LENGTH)];
    FA__LOOP(_row_reach)(&of->held_s, NULL, 0.0f);
    if (!p->rstd) FA__LOOP(_again)(f, p, of, team, place);
    for (int64_t piece = 0; piece < FA__LOOP(_row_held_pieces)(&of->s); piece++) {
        FA__LOOP(_row_ahead)(&of->s, piece), FA__LOOP(_row_ahead)(&of->d_y, piece);
        FA__LOOP(_add_up)(w_mean, wn_mean, FA__LOOP(_row__piece)(&of->s, piece), FA__LOOP(_row__piece)(&of->d_y, piece),
                          FA__LOOP(_weights)(buffer, p, &of->s, of->segment, piece, 0, 0), FA__LOOP(_row_real)(&of->s, piece), f);
    }
    FA__LOOP(_means)(w_mean, wn_mean, p, team, place);
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
    FA__LOOP(_row_view) columns = FA__LOOP(_columns)(p, row, segment, team);
    FA__LOOP(_terms) of = FA__LOOP(_terms_of)(p, row, segment, &columns);
    FA__LOOP(_row_view) d_sum = FA__LOOP(_part)(&p->d_sum, p, row, segment, &columns);
    const int64_t pieces = FA__LOOP(_row_held_pieces)(&of.s);
    FA__LOOP(_row_held) held_sum;
    const int known = p->sums.row_values != NULL, drops = p->dropout.threshold > 0 && p->d_x.data;
    FA__LOOP(_row_drawn) drawn = FA__LOOP(_row_draw)(&of.s, (uint64_t)(row * p->rows.cols + segment * p->sums.length), &p->dropout);

    if (known) {
        const float *found = p->sums.row_values + 4 * row;
        f->mean = found[0], f->rstd = found[1], w_mean = found[2], wn_mean = found[3];
    } else FA__LOOP(_know)(f, &w_mean, &wn_mean, p, &of, team, place);
    w_mean *= -f->rstd, wn_mean *= -f->rstd;
    FA__LOOP(_row_reach)(&held_sum, NULL, 0.0f);

    FA__LOOP(_row_view) d_residual = FA__LOOP(_part)(&p->d_residual, p, row, segment, &columns);
    FA__LOOP(_row_view) d_x = FA__LOOP(_part)(&p->d_x, p, row, segment, &columns);
    if (p->rows.stream) FA__LOOP(_row_stream)(&d_x), FA__LOOP(_row_stream)(&d_residual);
    for (int64_t piece = 0; piece < pieces; piece++) {
        const int real = FA__LOOP(_row_real)(&of.s, piece);
        FA__LOOP(_gradient)(x, FA__LOOP(_sums)(place, 0, piece), FA__LOOP(_sums)(place, FA__CENTERED, piece),
                            FA__LOOP(_row__piece)(&of.s, piece), FA__LOOP(_row__piece)(&of.d_y, piece),
                            FA__LOOP(_weights)(buffer, p, &of.s, segment, piece, 0, 0), real, f, w_mean, wn_mean);
        if (p->d_sum.data) {
            const float *more = FA__LOOP(_row_look)(buffer, &held_sum, &d_sum, piece);
            for (int i = 0; i < real; i++) x[i] += more[i];
        }
        FA__LOOP(_row_pad)(x, &of.s, piece, 0.0f);
        if (p->d_residual.data) FA__LOOP(_row_store)(&d_residual, piece, x);
        if (drops) FA__LOOP(_row_dropout)(x, &of.s, piece, &drawn);
        if (p->d_x.data) FA__LOOP(_row_store)(&d_x, piece, x);
    }
}

/* The first pass over rows of several segments: what they need to know of the whole row. */
FA__FN void FA__LOOP(_first_pass)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    float w_mean = 0.0f, wn_mean = 0.0f;
    FA__LOOP(_flight) f;
    FA__LOOP(_row_view) columns = FA__LOOP(_columns)(p, row, 0, team);
    FA__LOOP(_terms) of = FA__LOOP(_terms_of)(p, row, 0, &columns);
    FA__LOOP(_backward_peek)(&f, p, row);
    FA__LOOP(_know)(&f, &w_mean, &wn_mean, p, &of, team, place);
    float *found = p->sums.row_values + 4 * row;
    found[0] = f.mean, found[1] = f.rstd, found[2] = w_mean, found[3] = wn_mean;
}
