/* attention_columns_loop.h: what the schedule for every GPU does for hooks that are left to the product. */
#include <fa/kernel/attention_columns.h>

enum { FA__LOOP(_column_rows) = (FA_BLOCK_N + 31) / 32 * 32 }; /* as many as are read */

/* In shared memory: K's columns, the same for all tiles or each one's own; for ALiBi also Q's, each warp's, and the
 * slope up to the diagonal. */
typedef struct FA__LOOP(_column_room) {
#if FA__COLUMNS == FA__NEED_ALIBI
    uint4 k[1][FA__LOOP(_column_rows)], q[FA_WARPS][FA__LANES];
    float slope;
#else
    uint4 k[FA__STAGES][FA__LOOP(_column_rows)];
#endif
} FA__LOOP(_column_room);
enum { FA__LOOP(_column_stage_bytes) = FA__COLUMNS == FA__NEED_ALIBI ? 0 : FA__LOOP(_column_rows) * 16 };

/* What a thread has of the next tile's columns, in flight. */
typedef struct FA__LOOP(_column_state) {
#if FA__COLUMNS == FA__NEED_ALIBI
    int nothing;
#else
    float biases[FA__LOOP(_biases)];
#endif
} FA__LOOP(_column_state);

#if FA__COLUMNS == FA__NEED_ALIBI
/* Computes Q's columns for a warp's rows, one row by each lane. No barrier comes before: only this warp reads them,
 * and ldmatrix has read the ones that they replace for all lanes at once. */
FA__FN void FA__LOOP(_make_columns)(FA__LOOP(_column_room) * room, const FA__PARAMS *p, fa_box box, int key0, int thread) {
    const int warp = thread / FA__LANES, lane = thread % FA__LANES, shift = fa__shift(&p->args);
    const float slope = key0 < box.queries.end - 1 + shift ? room->slope : -room->slope;
    room->q[warp][lane] = FA__LOOP(_columns_of_row)(slope, slope * (float)(key0 - box.queries.begin - shift - warp * FA__WARP_ROWS - lane));
}
#endif

/* Columns of a tile, if there is one: loads of K's are started early, */
FA__FN void FA__LOOP(_ask_columns)(FA__LOOP(_column_state) * state, const FA__PARAMS *p, fa_box box, int tile, int thread) {
#if FA__COLUMNS == FA__NEED_ALIBI
    (void)state, (void)p, (void)box, (void)tile, (void)thread;
#else
    if (tile >= 0) FA__LOOP(_ask_for_biases)(state->biases, p, FA__LOOP(_row_of_biases)(p, box.batch, box.head), tile * FA_BLOCK_N, thread);
#endif
}
/* and stored where the product finds them once nobody reads what was there; Q's are computed. */
FA__FN void FA__LOOP(_put_columns)(const FA__LOOP(_column_state) * state, FA__LOOP(_column_room) * room, const FA__PARAMS *p, fa_box box,
                                   int tile, int stage, int thread) {
#if FA__COLUMNS == FA__NEED_ALIBI
    if (!FA__COLUMNS_BEHIND) FA__LOOP(_make_columns)(room, p, box, tile * FA_BLOCK_N, thread);
    (void)state, (void)stage;
#else
    const float scale = FA__LOOP(_column_scale)(p);
    if (tile >= 0) FA__LOOP(_put_biases)(room->k[stage], state->biases, scale, fa__reciprocal(scale), thread);
    (void)box;
#endif
}

/* All this for a block's first tile. */
FA__FN void FA__LOOP(_begin_columns)(FA__LOOP(_column_room) * room, const FA__PARAMS *p, fa_box box, int tile, int thread) {
    FA__LOOP(_column_state) state;
#if FA__COLUMNS == FA__NEED_ALIBI
    FA__LOOP(_constant_rows)(room->k[0]);
    if (thread == 0) room->slope = FA__LOOP(_slope_of)(p, box.head);
    if (!FA__COLUMNS_BEHIND) FA__OP(barrier)();
#endif
    FA__LOOP(_ask_columns)(&state, p, box, tile, thread);
    FA__LOOP(_put_columns)(&state, room, p, box, tile, 0, thread);
}

/* Their product, added to S of a part of the tile that begins at key0; and lines bent where they cross the diagonal. */
FA__FN void FA__LOOP(_multiply_columns)(FA__LOOP(_qk_acc) * s, FA__LOOP(_column_room) * room, const FA__PARAMS *p, fa_box box, int key0,
                                        int part, int stage, int thread) {
    uint32_t q[4];
#if FA__COLUMNS == FA__NEED_ALIBI
    const int warp = thread / FA__LANES, zero = box.queries.begin + fa__shift(&p->args);
    if (FA__COLUMNS_BEHIND && part == 0) {
        FA__LOOP(_make_columns)(room, p, box, key0, thread);
        FA__OP(warp_barrier)();
    }
    FA__LOOP(_qk_load_eight)(q, room->q[warp], thread);
    FA__LOOP(_qk_mma_eight)(s, q, room->k[0] + part * FA__PART_N, thread);
    if (FA__LOOP(_crosses)(p, box.queries, key0))
        FA__LOOP(_bend)(s->x, room->slope, zero + FA__LOOP(_qk_row)(thread, 0), key0 + part * FA__PART_N, thread);
    (void)stage;
#else
    FA__UNROLL
    for (int r = 0; r < 4; r++) q[r] = FA__LOOP(_column_of_ones)(thread);
    FA__LOOP(_qk_mma_eight)(s, q, room->k[stage] + part * FA__PART_N, thread);
    (void)p, (void)box, (void)key0;
#endif
}
