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

#if FA__ARCH == FA_CPU
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
#else
/* The statistics of a row are found in two looks at its pieces: the sum, of which the mean of a warp is made, and the squares about
 * that. */
enum { FA__LOOP(_MEAN), FA__LOOP(_SQUARES), FA__LOOP(_FIRST_LOOK) = FA__CENTERED ? FA__LOOP(_MEAN) : FA__LOOP(_SQUARES) };
typedef struct FA__LOOP(_looks) {
    float all, number, mean, rstd;
} FA__LOOP(_looks);
FA__FN void FA__LOOP(_look)(FA__LOOP(_looks) * l, int look, float *x, const FA__LOOP(_row_view) * in, int64_t piece) {
    FA__LOOP(_row_pad)(x, in, piece, l->mean);
    if (look == FA__LOOP(_MEAN)) l->number += (float)FA__LOOP(_row_real)(in, piece);
    FA__UNROLL
    for (int i = 0; i < FA__LOOP(_row_LENGTH); i++) x[i] -= l->mean;
    l->all += look == FA__LOOP(_MEAN) ? FA__LOOP(_reduce_sum_of)(x, FA__LOOP(_row_LENGTH)) : FA__LOOP(_reduce_dot_of)(x, x, FA__LOOP(_row_LENGTH));
}
/* After all pieces; after the second look the mean and rstd are those of the row. */
FA__FN void FA__LOOP(_looked)(FA__LOOP(_looks) * l, int look, const FA__PARAMS *p, fa_team *team, FA__LOOP(_place) * place) {
#if FA__CENTERED
    l->all = FA__LOOP(_reduce_lanes_sum)(l->all, team);
    if (look == FA__LOOP(_MEAN)) {
        l->number = FA__LOOP(_reduce_lanes_sum)(l->number, team);
        l->mean = l->number > 0.0f ? l->all * fa__reciprocal(l->number) : 0.0f;
        l->all = 0.0f;
        return;
    }
    FA__LOOP(_reduce_warps_moments)(&l->number, &l->mean, &l->all, team, place->shared);
#else
    (void)look;
    l->all = FA__LOOP(_reduce_sum)(l->all, team, place->shared);
#endif
    l->rstd = fa__rsqrt(l->all * p->inverse_cols + p->eps);
}
#endif

/* A part of gamma, or of beta, for the columns of a view of a segment. */
FA__FN const float *FA__LOOP(_weights)(float *w, const FA__PARAMS *p, const FA__LOOP(_row_view) * view, int64_t segment, int64_t piece,
                                       int part, int is_beta) {
    const void *row = is_beta ? p->beta : p->gamma;
    if (row) row = (const char *)row + segment * p->sums.length * fa_dtype_bytes(FA_WEIGHT_DTYPE);
    return FA__LOOP(_row_weights)(w, view, piece, part, row, FA_WEIGHT_DTYPE, is_beta ? 0.0f : 1.0f);
}

/* ---- forward ---- */

#if FA__DIRECTIONS & FA__ROWS_FORWARD
FA__FN FA__LOOP(_row_view) FA__LOOP(_whole)(const fa_matrix *m, const FA__PARAMS *p, int64_t row, const FA__LOOP(_row_view) * like) {
    return FA__LOOP(_row_like)(fa__address(m, row < p->rows.rows ? row : 0, 0, sizeof(FA__ELEMENT)), like);
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

#if FA__EVEN
#include <fa/kernel/norm_even.h>
#elif FA__ARCH == FA_CPU
FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    enum { KEPT = FA__LOOP(_row_KEPT) > 0 ? FA__LOOP(_row_KEPT) : 1 };
    const int real = row < p->rows.rows, first = real && team->thread == 0; /* who writes what there is one of */
    float kept[KEPT * FA__LOOP(_row_LENGTH)], buffer[FA__LOOP(_row_PART)], buffer2[FA__LOOP(_row_PART)];
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
    FA__UNROLL_PIECES
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
    FA__UNROLL_PIECES
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
#endif
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

#if FA__KEEPS
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
#endif
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
FA__FN void FA__LOOP(_backward_peek)(FA__LOOP(_flight) * f, const FA__PARAMS *p, int64_t row) {
    f->mean = f->rstd = 0.0f;
    if (!p->rstd || row < 0 || row >= p->rows.rows) return;
#if FA__CENTERED
    f->mean = p->mean[row];
#endif
    f->rstd = p->rstd[row];
}

/* What the gradients of a row are made of. */
typedef struct FA__LOOP(_terms) {
    FA__LOOP(_row_view) s, d_y;
    FA__LOOP(_row_held) held_s, held_d;
    int64_t segment;
} FA__LOOP(_terms);

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
#if FA__KEEPS
        const float *gamma = FA__LOOP(_kept)(buffer, place, (int)piece * FA__LOOP(_row_PARTS) + part);
#else
        const float *gamma = FA__LOOP(_weights)(buffer, p, &of->s, of->segment, piece, part, 0);
#endif
        if (FA__LOOP(_row_PARTS) > 1) count = FA__LOOP(_row_PART);
        FA__UNROLL
        for (int i = 0; i < count; i++) w[part * FA__LOOP(_row_PART) + i] *= gamma[i];
    }
}

/* The statistics, if they were not given. */
FA__FN_CALLED void FA__LOOP(_again)(FA__LOOP(_flight) * f, const FA__PARAMS *p, const FA__LOOP(_terms) * of, int64_t row,
                                    fa_team *team, FA__LOOP(_place) * place) {
    float x[FA__LOOP(_row_LENGTH)];
#if FA__ARCH == FA_CPU
    FA__LOOP(_moments) m = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int64_t piece = 0; piece < FA__LOOP(_row_held_pieces)(&of->s); piece++) {
        FA__LOOP(_row_get)(x, &of->held_s, &of->s, piece);
        FA__LOOP(_measure)(x, &of->s, piece, FA__LOOP(_middle)(x, &of->s, piece), &m);
    }
    FA__LOOP(_measured)(f, p, &m, team, place);
#else
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
#endif
    if (row >= p->rows.rows) f->rstd = 0.0f; /* without eps that of nothing is infinite */
}

/* The means over a row of w and of w n, of their sums. */
FA__FN void FA__LOOP(_means)(float *w_sum, float *wn_sum, const FA__PARAMS *p, fa_team *team, FA__LOOP(_place) * place) {
#if FA__CENTERED
    FA__LOOP(_reduce_sum2)(w_sum, wn_sum, team, place->shared);
#else
    *wn_sum = FA__LOOP(_reduce_sum)(*wn_sum, team, place->shared);
#endif
    *w_sum *= p->inverse_cols;
    *wn_sum *= p->inverse_cols;
}

#if FA__LANES == 1
#include <fa/kernel/norm_rows_cpu.h>
#else
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
    FA__LOOP(_terms) of;
    FA__LOOP(_row_view) columns = FA__LOOP(_columns)(p, row, segment, team);
    of.s = FA__LOOP(_part)(&p->sum, p, row, segment, &columns);
    of.d_y = FA__LOOP(_part)(&p->d_y, p, row, segment, &columns);
    of.segment = segment;
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

#if FA__KEEPS
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
#endif
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
#endif
#endif
#if FA__DIRECTIONS == (FA__ROWS_FORWARD | FA__ROWS_BACKWARD) && FA__ARCH != FA_CPU
#include <fa/kernel/norm_slots.h>
#endif
