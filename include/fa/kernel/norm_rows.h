/* norm_rows.h: layer normalisation of a row (FA__CENTERED 1) or its root-mean-square normalisation (0), and the gradients.
 *
 *     s = x, or dropout(x) + residual;  n = (s - mean) rstd;  y = n gamma + beta
 *
 * Backward, with w = d_y gamma:
 *
 *     d_s = rstd (w - mean of w - n mean of (w n)) + d_sum      without the mean of w if nothing was centered
 *     d_residual = d_s,  d_x = dropout(d_s),  d_gamma = sum over rows of d_y n,  d_beta = sum over rows of d_y
 */

/* A part of gamma, or of beta, for the columns of a view of a segment. */
FA__FN const float *FA__LOOP(_weights)(float *w, const FA__PARAMS *p, const FA__LOOP(_row_view) * view, int64_t segment, int64_t piece,
                                       int part, int is_beta) {
    const void *row = is_beta ? p->beta : p->gamma;
    if (row) row = (const char *)row + segment * p->sums.length * fa_dtype_bytes(FA_WEIGHT_DTYPE);
    return FA__LOOP(_row_weights)(w, view, piece, part, row, FA_WEIGHT_DTYPE, is_beta ? 0.0f : 1.0f);
}

FA__FN FA__LOOP(_row_view) FA__LOOP(_whole)(const fa_matrix *m, const FA__PARAMS *p, int64_t row, const FA__LOOP(_row_view) * like) {
    return FA__LOOP(_row_like)(fa__address(m, row < p->rows.rows ? row : 0, 0, sizeof(FA__ELEMENT)), like);
}

/* What is read of a row. */
typedef struct FA__LOOP(_source) {
    FA__LOOP(_row_view) x, residual;
    FA__LOOP(_row_held) held, held_residual;
    FA__LOOP(_row_drawn) drawn;
} FA__LOOP(_source);

#if FA__ARCH == FA_CPU
/* What is known of a row before it is there. */
typedef struct FA__LOOP(_flight) {
    float mean, rstd;
} FA__LOOP(_flight);

/* ---- backward ---- */

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

FA__FN FA__LOOP(_terms) FA__LOOP(_terms_of)(const FA__PARAMS *p, int64_t row, int64_t segment, const FA__LOOP(_row_view) * columns) {
    FA__LOOP(_terms) of;
    of.s = FA__LOOP(_part)(&p->sum, p, row, segment, columns);
    of.d_y = FA__LOOP(_part)(&p->d_y, p, row, segment, columns);
    of.segment = segment;
    return of;
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

#include <fa/kernel/norm_rows_cpu.h>
#else
#if FA__EVEN && FA__DIRECTIONS == FA__ROWS_FORWARD
#include <fa/kernel/norm_even.h>
#elif FA__DIRECTIONS == FA__ROWS_FORWARD
#include <fa/kernel/norm_odd.h>
#elif FA__DIRECTIONS == FA__ROWS_BACKWARD
#include <fa/kernel/norm_sweep.h>
#else
#include <fa/kernel/norm_slots.h>
#endif
#endif
