/* attention_producers.h: the threads of the sm_90a schedule that follow the planner's notes and have the copy engine bring tiles of K,
 * V and Q, and of a bias, into their rings. */

/* Expects a tile at a barrier and starts its copy; `load` is the call, in which `full` is the barrier's address. */
#define FA__BRING(of, which, load) \
    do { \
        uint32_t full = fa_sm90_shared_address(&(of)->full); \
        fa_sm90_mbarrier_expect(full, FA__LOOP(which)); \
        load; \
    } while (0)

/* Follows the notes, and brings each tile of K once a buffer is free, and then the tile of a bias; all lanes of the warp load key biases. */
FA__FN void FA__LOOP(_bring_k)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared, int lane) {
    FA__LOOP(_place) at = {0, 0}, to = {0, 0};
#if FA__COLUMNS == FA__NEED_KEY_BIAS
    const float scale = FA__LOOP(_column_scale)(&launch->p), by = fa__reciprocal(scale);
#endif
#if FA__BIAS_TILES
    FA__LOOP(_place) bias_to = {0, 0};
    int query = 0, blocks = 0;
#endif
    for (;;) {
        FA__LOOP(_wait_full)(shared->of_notes, at);
        FA__LOOP(_note) note = shared->note[at.slot];
        if (FA__COLUMNS == FA__NEED_KEY_BIAS) fa_sm90_warp_barrier();
        if (lane == 0) FA__LOOP(_release)(shared->of_notes, at.slot);
        if (note.word & FA__LOOP(_end)) return;
#if FA__COLUMNS == FA__NEED_KEY_BIAS
        float biases[FA__LOOP(_biases)];
        FA__LOOP(_ask_for_biases)(biases, &launch->p, note.batch, note.head, FA__LOOP(_first_key)(note.word), lane);
#endif
        FA__LOOP(_wait_empty)(shared->of_k, to);
#if FA__COLUMNS == FA__NEED_KEY_BIAS
        FA__LOOP(_put_biases)(shared->rows + 64 + to.slot * FA_BLOCK_N, biases, scale, by, lane);
        fa_sm90_proxy_fence();
        fa_sm90_warp_barrier();
#endif
        FA__LOOP(_ktile_source)
        from = {&launch->k, FA__LOOP(_first_key)(note.word), note.head_kv, note.batch};
        if (lane == 0) FA__BRING(&shared->of_k[to.slot], _ktile_BYTES, FA__LOOP(_ktile_load)(&shared->k[to.slot], from, full));
#if FA__BIAS_TILES
        if (note.word & FA__LOOP(_first)) query = shared->block[blocks++ % FA__LOOP(_blocks)].query;
        if (launch->bias_comes) {
            FA__LOOP(_wait_empty)(shared->of_bias, bias_to);
            FA__BRING(&shared->of_bias[bias_to.slot], _bias_tile_BYTES,
                      FA__LOOP(_bias_load)(shared->bias[bias_to.slot], &launch->bias, from.row, query, note.head, note.batch, full));
            FA__LOOP(_advance)(&bias_to, FA__LOOP(_bias_stages));
        }
#endif
        FA__LOOP(_advance)(&to, FA_STAGES);
        FA__LOOP(_advance)(&at, FA__LOOP(_notes));
    }
}
FA__FN void FA__LOOP(_bring_v)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared) {
    FA__LOOP(_place) at = {0, 0}, to = {0, 0};
    for (int read = -FA_STAGES;; read = read + 1 < FA__LOOP(_notes) ? read + 1 : 0) { /* of the note before the last FA_STAGES */
        FA__LOOP(_wait_full)(shared->of_notes, at);
        FA__LOOP(_note) note = shared->note[at.slot];
        if (note.word & FA__LOOP(_end)) return;
        FA__LOOP(_wait_empty)(shared->of_v, to);
        /* All threads that used the tile there have read its note. */
        if (read >= 0) FA__LOOP(_release)(shared->of_notes, read);
        FA__LOOP(_vtile_source)
        from = {&launch->v, FA__LOOP(_first_key)(note.word), note.head_kv, note.batch};
        FA__BRING(&shared->of_v[to.slot], _vtile_BYTES, FA__LOOP(_vtile_load)(&shared->v[to.slot], from, full));
        FA__LOOP(_advance)(&to, FA_STAGES);
        FA__LOOP(_advance)(&at, FA__LOOP(_notes));
    }
}
/* Brings the Q of each block to each warpgroup that is done with the one before; at the end passes on that there is none. */
FA__FN void FA__LOOP(_bring_q)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared) {
    FA__LOOP(_place) at = {0, 0}, to = {0, 0};
    for (int count = 0;;) {
        FA__LOOP(_wait_full)(shared->of_notes, at);
        int word = shared->note[at.slot].word;
        FA__LOOP(_release)(shared->of_notes, at.slot);
        if (word & (FA__LOOP(_first) | FA__LOOP(_end))) {
            FA__LOOP(_block) block = shared->block[count++ % FA__LOOP(_blocks)];
            for (int group = 0; group < FA__LOOP(_groups); group++) {
                FA__LOOP(_wait_empty)(shared->of_q[group], to);
                FA__LOOP(_pair) *of = &shared->of_q[group][to.slot];
                FA__LOOP(_qtile_source) from = {&launch->q, block.query + group * 64, block.head, block.batch};
                if (block.batch >= 0) FA__BRING(of, _qtile_BYTES, FA__LOOP(_qtile_load)(&shared->q[group][to.slot], from, full));
                else fa_sm90_mbarrier_arrive(fa_sm90_shared_address(&of->full));
            }
            FA__LOOP(_advance)(&to, FA__LOOP(_q_stages));
        }
        if (word & FA__LOOP(_end)) return;
        FA__LOOP(_advance)(&at, FA__LOOP(_notes));
    }
}
#undef FA__BRING
