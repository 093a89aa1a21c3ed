/* row_softmax_rows_cpu.h: the softmax of a row on the CPU: row_softmax_rows.h.
 *
 * A core has as many pieces of the row as place->keeps in its second-level cache, as exponentials. They are relative to the largest of the
 * first piece as long as no element is far above that, which is so in nearly all rows, and then none that is kept is computed twice. All
 * else is computed again, relative to what all are in the end, by the same operations: so the result does not depend on how much of a row a
 * thread has room for. */
#include <fa/kernel/rows_near.h>

FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    FA__LOOP(_row_held) held;
    FA__LOOP(_row_view) in = FA__LOOP(_row_at)((const FA__ELEMENT *)p->x.data + row * p->x.stride_row, p->rows.cols, team);
    FA__LOOP(_row_view) out = FA__LOOP(_row_like)((const FA__ELEMENT *)p->y.data + row * p->y.stride_row, &in);
    const int64_t pieces = FA__LOOP(_row_held_pieces)(&in);
    const int64_t keeps = p->log && !FA__LOOP(_row_COSTLY) ? 0 : place->keeps; /* of a logarithm floats, where they are not at hand */
    if (p->rows.stream) FA__LOOP(_row_stream)(&out);
    FA__LOOP(_row_hold)(&held, NULL, &in, -INFINITY);
    float max = -INFINITY, sum = 0.0f, factor = 1.0f;
    int64_t since = 0; /* the piece from which on all are relative to max, times `factor` */
    for (int64_t piece = 0; piece < pieces; piece++) {
        float *x = place->kept + (piece < keeps ? piece : keeps) * FA__LOOP(_row_LENGTH);
        if (!p->log) {
            const FA__ELEMENT *z = FA__LOOP(_row__piece)(&in, piece);
            const int real = FA__LOOP(_row_real)(&in, piece);
            const float near = max == -INFINITY ? FA__LOOP(_near_top)(z, real) : max;
            float part;
            if (FA__LOOP(_near_keep)(&part, x, z, real, near, p->scale_log2, &factor)) {
                max = near;
                sum += part;
                continue;
            }
        }
        FA__LOOP(_row_ahead)(&in, piece);
        const float *from = FA__LOOP(_row_look)(x, &held, &in, piece);
        const int count = FA__LOOP(_row_count)(&in, piece);
        const float base = FA__LOOP(__rise)(&max, &sum, from, count, p->scale_log2);
        sum += FA__LOOP(_reduce_exp_sum_of)(from, count, base, p->scale_log2);
        since = piece + 1;
    }

    /* A row of -inf has the sum 0: 0 / 0 and -inf - -inf are NaN, as in the unfused computation. */
    const float inverse = fa__reciprocal(sum), log_sum = p->log ? fa__log(sum) : 0.0f;
    for (int64_t piece = 0; piece < pieces; piece++) {
        float *x = place->kept + (piece < keeps ? piece : keeps) * FA__LOOP(_row_LENGTH), weight = factor;
        const int count = FA__LOOP(_row_count)(&in, piece), real = FA__LOOP(_row_real)(&in, piece);
        const FA__ELEMENT *z = FA__LOOP(_row__piece)(&in, piece);
        if (p->log) {
            const float *from = piece < keeps ? x : FA__LOOP(_row_look)(x, &held, &in, piece);
            FA__LOOP(__logarithms)(x, from, count, max, p->scale, log_sum);
        } else if ((piece < since || piece >= keeps) && !FA__LOOP(_near_again)(x, z, real, max, p->scale_log2, &weight)) {
            FA__LOOP(_reduce_exp_to)(x, FA__LOOP(_row_look)(x, &held, &in, piece), count, max, p->scale_log2);
            weight = 1.0f;
        }
        FA__LOOP(_row_store_times)(&out, piece, x, p->log ? 1.0f : inverse * weight);
    }
}
