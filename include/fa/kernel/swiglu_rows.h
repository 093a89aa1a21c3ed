/* swiglu_rows.h: a segment of a row: y = activation(gate) up, and the gradients. Elements are independent of each
 * other. */

#if FA__LANES == 1 && FA__SECOND(FA__CAT(FA__VECTORS_, FA_ACTIVATION), 0, ~)
#include <fa/kernel/swiglu_rows_cpu.h>
#else
#if FA__DIRECTIONS & FA__ROWS_FORWARD
FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    fa__segment at = fa__segment_at(&p->cut, row, p->rows.rows, FA__LOOP(_row_WHOLE));
    float x[FA__LOOP(_row_LENGTH)];
    FA__LOOP(_row_held) held_x, held_up;
    FA__LOOP(_row_view) in = FA__LOOP(_row_at)(fa__element(&p->gate, &at, sizeof(FA__ELEMENT)), at.cols, team);
    FA__LOOP(_row__set_policy)(&in, p->rows.policy);
    FA__LOOP(_row_view) in_up = FA__LOOP(_row_like)(fa__element(&p->up, &at, sizeof(FA__ELEMENT)), &in);
    FA__LOOP(_row_view) out = FA__LOOP(_row_like)(fa__element(&p->y, &at, sizeof(FA__ELEMENT)), &in);
    if (p->rows.stream) FA__LOOP(_row_stream)(&out);
    FA__LOOP(_row_hold)(&held_x, FA__LOOP(_slots)(place, p, 0), &in, 0.0f);
    FA__LOOP(_row_hold)(&held_up, FA__LOOP(_slots)(place, p, 1), &in_up, 0.0f);
    FA__LOOP(_row_wait)();
    for (int64_t piece = 0, pieces = FA__LOOP(_row_held_pieces)(&in); piece < pieces; piece++) {
        FA__LOOP(_row_ahead)(&in, piece), FA__LOOP(_row_ahead)(&in_up, piece);
        float up[FA__LOOP(_row_LENGTH)];
        const int count = FA__LOOP(_row_count)(&in, piece);
        const float *gates = FA__LOOP(_row_look)(x, &held_x, &in, piece), *ups = FA__LOOP(_row_look)(up, &held_up, &in_up, piece);
        FA__UNROLL
        for (int i = 0; i < count; i++) x[i] = FA__ROWS(__activation)(FA__USER(p), gates[i]) * ups[i];
        FA__LOOP(_row_store)(&out, piece, x);
    }
}
#endif

#if FA__DIRECTIONS & FA__ROWS_BACKWARD
/* Backward: d_up = d_y activation(gate), d_gate = d_y up activation'(gate). */
FA__FN void FA__LOOP(_backward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    fa__segment at = fa__segment_at(&p->cut, row, p->rows.rows, FA__LOOP(_row_WHOLE));
    float x[FA__LOOP(_row_LENGTH)], d[FA__LOOP(_row_LENGTH)];
    FA__LOOP(_row_held) held_x, held_up, held_d;
    FA__LOOP(_row_view) in = FA__LOOP(_row_at)(fa__element(&p->gate, &at, sizeof(FA__ELEMENT)), at.cols, team);
    FA__LOOP(_row__set_policy)(&in, p->rows.policy);
    FA__LOOP(_row_view) in_up = FA__LOOP(_row_like)(fa__element(&p->up, &at, sizeof(FA__ELEMENT)), &in);
    FA__LOOP(_row_view) in_d = FA__LOOP(_row_like)(fa__element(&p->d_y, &at, sizeof(FA__ELEMENT)), &in);
    FA__LOOP(_row_view) out_x = FA__LOOP(_row_like)(fa__element(&p->d_gate, &at, sizeof(FA__ELEMENT)), &in);
    FA__LOOP(_row_view) out_up = FA__LOOP(_row_like)(fa__element(&p->d_up, &at, sizeof(FA__ELEMENT)), &in);
    if (p->rows.stream) FA__LOOP(_row_stream)(&out_x), FA__LOOP(_row_stream)(&out_up);
    FA__LOOP(_row_hold)(&held_x, FA__LOOP(_slots)(place, p, 0), &in, 0.0f);
    FA__LOOP(_row_hold)(&held_up, FA__LOOP(_slots)(place, p, 1), &in_up, 0.0f);
    FA__LOOP(_row_hold)(&held_d, FA__LOOP(_slots)(place, p, 2), &in_d, 0.0f);
    FA__LOOP(_row_wait)();
    for (int64_t piece = 0, pieces = FA__LOOP(_row_held_pieces)(&in); piece < pieces; piece++) {
        FA__LOOP(_row_ahead)(&in, piece), FA__LOOP(_row_ahead)(&in_up, piece), FA__LOOP(_row_ahead)(&in_d, piece);
        float up[FA__LOOP(_row_LENGTH)];
        const int count = FA__LOOP(_row_count)(&in, piece);
        const float *gates = FA__LOOP(_row_look)(x, &held_x, &in, piece), *ups = FA__LOOP(_row_look)(up, &held_up, &in_up, piece);
        const float *ds = FA__LOOP(_row_look)(d, &held_d, &in_d, piece);
        FA__UNROLL
        for (int i = 0; i < count; i++) {
            float gate = gates[i], d_y = ds[i];
            x[i] = d_y * ups[i] * FA__ROWS(__activation_grad)(FA__USER(p), gate);
            d[i] = d_y * FA__ROWS(__activation)(FA__USER(p), gate);
        }
        FA__LOOP(_row_store)(&out_x, piece, x);
        FA__LOOP(_row_store)(&out_up, piece, d);
    }
}
#endif
#endif
