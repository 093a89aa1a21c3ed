/* attention_columns_loop.h: what the schedule for every GPU does for hooks that are left to the product. */
#include <fa/kernel/attention_columns.h>

/* In shared memory: K's columns, 16 bytes a key, the same for all tiles or each one's own; and Q's, each warp's. */
typedef struct FA__LOOP(_column_room) {
    uint4 k[FA__COLUMNS == 1 ? 1 : FA__STAGES][(FA_BLOCK_N + 31) / 32 * 32];
#if FA__COLUMNS == 1
    uint4 q[FA_WARPS][FA__LANES];
    float slope;
#endif
} FA__LOOP(_column_room);
enum { FA__LOOP(_column_stage_bytes) = FA__COLUMNS == 1 ? 0 : (FA_BLOCK_N + 31) / 32 * 512 };

/* What a thread keeps: biases of the next tile, on their way. */
typedef struct FA__LOOP(_column_state) {
#if FA__COLUMNS == 2
    float biases[FA__LOOP(_biases)];
#else
    int none;
#endif
} FA__LOOP(_column_state);

/* When a block begins. */
FA__FN FA__LOOP(_column_state) FA__LOOP(_begin_columns)(FA__LOOP(_column_room) * room, const FA__PARAMS *p, fa_box box, int thread) {
    FA__LOOP(_column_state) state;
    memset(&state, 0, sizeof state);
#if FA__COLUMNS == 1
    if (thread == 0) room->slope = FA__LOOP(_slope_of)(p, box.head);
    FA__LOOP(_constant_rows)(room->k[0]);
#else
    (void)room, (void)p, (void)box, (void)thread;
#endif
    return state;
}

/* Biases of a tile of keys, if there is one: asked for early, and put where its product finds them once nobody reads what was there. */
FA__FN void FA__LOOP(_ask_columns)(FA__LOOP(_column_state) * state, const FA__PARAMS *p, fa_box box, int tile, int thread) {
#if FA__COLUMNS == 2
    if (tile >= 0) FA__LOOP(_ask_for_biases)(state->biases, p, box.batch, box.head, tile * FA_BLOCK_N, thread);
#else
    (void)state, (void)p, (void)box, (void)tile, (void)thread;
#endif
}
FA__FN void FA__LOOP(_put_columns)(const FA__LOOP(_column_state) * state, FA__LOOP(_column_room) * room, const FA__PARAMS *p, int tile, int stage,
                                   int thread) {
#if FA__COLUMNS == 2
    const float scale = FA__LOOP(_column_scale)(p);
    if (tile >= 0) FA__LOOP(_put_biases)(room->k[stage], state->biases, scale, fa__reciprocal(scale), thread);
#else
    (void)state, (void)room, (void)p, (void)tile, (void)stage, (void)thread;
#endif
}

/* The columns' product, added to S of a part of the tile that begins at key0; Q's are made with the first part, a row by a lane. */
FA__FN void FA__LOOP(_multiply_columns)(FA__LOOP(_qk_acc) * s, FA__LOOP(_column_room) * room, const FA__PARAMS *p, fa_box box, int key0, int part,
                                     int stage, int thread) {
    uint32_t q[4];
#if FA__COLUMNS == 1
    const int shift = p->args.seqlen_k - p->args.seqlen_q, zero = box.queries.begin + shift, warp = thread / FA__LANES, lane = thread % FA__LANES;
    if (part == 0) {
        const float slope = key0 < box.queries.end - 1 + shift ? room->slope : -room->slope;
        room->q[warp][lane] = FA__LOOP(_columns_of_row)(slope, slope * (float)(key0 - zero - warp * FA__WARP_ROWS - lane));
        fa_sm80_warp_barrier();
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
