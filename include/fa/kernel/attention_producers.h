/* attention_producers.h: the thread of the sm_90a schedule that follows the planner's notes and has the copy engine
 * bring tiles of K, V and Q, and of a bias, into their rings. */

/* Expects a tile at a barrier and starts its copy; `load` is the call, in which `full` is the barrier's address. */
#define FA__BRING(of, which, load) \
    do { \
        uint32_t full = fa_sm90_shared_address(&(of)->full); \
        fa_sm90_mbarrier_expect(full, FA__LOOP(which)); \
        load; \
    } while (0)

/* Where all lanes wait for a buffer, none may still do so when it is filled again: two phases behind, it would wait
 * for ever. */
FA__FN void FA__LOOP(_together)(void) {
    if (FA__COLUMNS == FA__NEED_KEY_BIAS) fa_sm90_warp_barrier();
}

/* Brings each warpgroup the Q of block number `number`, once it is done with what was there; at the end tells it
 * that there is no more. */
FA__FN void FA__LOOP(_bring_q)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared, FA__LOOP(_block) block, int number, int lane) {
    const FA__LOOP(_place) to = FA__LOOP(_place_of)((uint32_t)number, FA__LOOP(_q_stages));
    for (int group = 0; group < FA__LOOP(_groups); group++) {
        FA__LOOP(_wait_empty)(shared->of_q[group], to);
        FA__LOOP(_together)();
        FA__LOOP(_pair) *of = &shared->of_q[group][to.slot];
        FA__LOOP(_qtile_source) from = {launch->q, block.query + group * 64, block.head, block.batch};
        if (lane != 0) continue;
        if (block.batch >= 0) FA__BRING(of, _qtile_BYTES, FA__LOOP(_qtile_load)(&shared->q[group][to.slot], from, full));
        else FA__LOOP(_fill)(shared->of_q[group], to.slot);
    }
}

/* What each lane of the loader knows of biases of keys. Its time counts where tiles are small, so what can be is
 * computed once, or once a block. */
typedef struct FA__LOOP(_key_biases) {
#if FA__COLUMNS == FA__NEED_KEY_BIAS
    const float *row;                /* of the latest block's head */
    float scale, by;                 /* what biases are divided by, and nearly its reciprocal */
    float of_tile[FA__LOOP(_biases)]; /* its share of a tile's, in flight */
#else
    int none;
#endif
} FA__LOOP(_key_biases);
FA__FN FA__LOOP(_key_biases) FA__LOOP(_no_biases)(const FA__PARAMS *p) {
    FA__LOOP(_key_biases) biases;
    memset(&biases, 0, sizeof biases);
#if FA__COLUMNS == FA__NEED_KEY_BIAS
    biases.scale = FA__LOOP(_column_scale)(p);
    biases.by = fa__reciprocal(biases.scale);
#endif
    (void)p;
    return biases;
}
FA__FN void FA__LOOP(_begin_biases)(FA__LOOP(_key_biases) * biases, const FA__PARAMS *p, FA__LOOP(_block) block) {
#if FA__COLUMNS == FA__NEED_KEY_BIAS
    biases->row = FA__LOOP(_row_of_biases)(p, block.batch, block.head);
#endif
    (void)biases, (void)p, (void)block;
}
/* Starts loading those of a tile; */
FA__FN void FA__LOOP(_load_biases)(FA__LOOP(_key_biases) * biases, const FA__PARAMS *p, int key, int lane) {
#if FA__COLUMNS == FA__NEED_KEY_BIAS
    FA__LOOP(_ask_for_biases)(biases->of_tile, p, biases->row, key, lane);
#endif
    (void)biases, (void)p, (void)key, (void)lane;
}
/* and makes them K's columns, where the products that read what was there are done. */
FA__FN void FA__LOOP(_store_biases)(FA__LOOP(_shared) * shared, const FA__LOOP(_key_biases) * biases, int slot, int lane) {
#if FA__COLUMNS == FA__NEED_KEY_BIAS
    FA__LOOP(_put_biases)(shared->rows + 64 + slot * FA_BLOCK_N, biases->of_tile, biases->scale, biases->by, lane);
    fa_sm90_proxy_fence();
    fa_sm90_warp_barrier();
#endif
    (void)shared, (void)biases, (void)slot, (void)lane;
}

/* Brings a tile of K, and the biases of its keys. */
FA__FN void FA__LOOP(_bring_k)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared, FA__LOOP(_block) block, int key, FA__LOOP(_place) to,
                               const FA__LOOP(_key_biases) * biases, int lane) {
    FA__LOOP(_wait_empty)(shared->of_k, to);
    FA__LOOP(_store_biases)(shared, biases, to.slot, lane);
    FA__LOOP(_ktile_source) from = {launch->k, key, block.head_kv, block.batch};
    if (lane == 0) FA__BRING(&shared->of_k[to.slot], _ktile_BYTES, FA__LOOP(_ktile_load)(&shared->k[to.slot], from, full));
}
FA__FN void FA__LOOP(_bring_v)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared, FA__LOOP(_block) block, int key, FA__LOOP(_place) to, int lane) {
    FA__LOOP(_vtile_source) from = {launch->v, key, block.head_kv, block.batch};
    if (lane == 0) FA__BRING(&shared->of_v[to.slot], _vtile_BYTES, FA__LOOP(_vtile_load)(&shared->v[to.slot], from, full));
}

/* Follows the notes, and brings a tile's K, the V of the tile before it, at a block's beginning its Q, and the tile
 * of a bias, each once a buffer is free: this is the order in which buffers become free, but for Q that is asked for
 * ahead. With key biases all lanes of the warp take part, since they load those; where there are more than two
 * stages V comes before K, which can wait: biases are on their way meanwhile (up to 10% faster). */
FA__FN void FA__LOOP(_bring)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared, int lane) {
    FA__LOOP(_block) block = {-1, 0, 0, 0}, of_v = block; /* of_v and due: the tile whose V is next */
    int blocks = 0, due = 0;
    /* (Not where a warpgroup that has skipped as many tiles as it may waits for the next K before it gives back V.) */
    enum { FA__V_FIRST = FA__COLUMNS == FA__NEED_KEY_BIAS && FA_STAGES > 2 && (FA__LATE_K || !FA__OWN_NOTES) };
    FA__LOOP(_key_biases) biases = FA__LOOP(_no_biases)(&launch->p);
    if (FA__LOOP(_first_q)) { /* before the planner has begun with its tiles */
        fa_sm90_mbarrier_wait(fa_sm90_shared_address(&shared->of_first), 0);
        FA__LOOP(_bring_q)(launch, shared, shared->block[0], 0, lane);
    }
    FA__ROLL
    for (uint32_t number = 0;; number++) { /* a tile's, and its note's: 2^32 of them would take a team more than an hour */
        const FA__LOOP(_place) at = FA__LOOP(_place_of)(number, FA__LOOP(_notes));
        FA__LOOP(_wait_full)(shared->of_notes, at);
        const int word = shared->note[at.slot][0], end = word & FA__LOOP(_end), begins = word & (FA__LOOP(_first) | FA__LOOP(_end));
        if (begins) {
            block = shared->block[blocks++ % FA__LOOP(_blocks)];
            if (!end) FA__LOOP(_begin_biases)(&biases, &launch->p, block);
        }
        const int q_due = begins && !(FA__LOOP(_first_q) && blocks == 1);
        if (q_due && FA__LOOP(_q_ahead)) FA__LOOP(_bring_q)(launch, shared, block, blocks - 1, lane);
        const FA__LOOP(_place) of_k = FA__LOOP(_place_of)(number, FA_STAGES);
        if (!end) FA__LOOP(_load_biases)(&biases, &launch->p, FA__LOOP(_first_key)(word), lane);
        if (!end && !FA__V_FIRST) FA__LOOP(_bring_k)(launch, shared, block, FA__LOOP(_first_key)(word), of_k, &biases, lane);
        if (number > 0) {
            const FA__LOOP(_place) to = FA__LOOP(_place_of)(number - 1, FA_STAGES);
            FA__LOOP(_wait_empty)(shared->of_v, to);
            FA__LOOP(_together)();
            /* All threads that used the tile that was there have read its note. */
            if (number > FA_STAGES && lane == 0) FA__LOOP(_release)(shared->of_notes, (int)((number - 1 - FA_STAGES) % FA__LOOP(_notes)));
            FA__LOOP(_bring_v)(launch, shared, of_v, FA__LOOP(_first_key)(due), to, lane);
        }
        if (!end && FA__V_FIRST) FA__LOOP(_bring_k)(launch, shared, block, FA__LOOP(_first_key)(word), of_k, &biases, lane);
        if (q_due && !FA__LOOP(_q_ahead)) FA__LOOP(_bring_q)(launch, shared, block, blocks - 1, lane);
        if (end) return;
        due = word, of_v = block;
#if FA__BIAS_TILES
        if (launch->bias_comes) {
            const FA__LOOP(_place) to = FA__LOOP(_place_of)(number, FA__LOOP(_bias_stages));
            FA__LOOP(_wait_empty)(shared->of_bias, to);
            FA__BRING(&shared->of_bias[to.slot], _bias_tile_BYTES,
                      FA__LOOP(_bias_load)(shared->bias[to.slot], launch->bias, FA__LOOP(_first_key)(word), block.query, block.head, block.batch, full));
        }
#endif
    }
}
#undef FA__BRING
