/* attention_sender.h: a warp of the sm_90a schedule that sends O of a consumer warpgroup, which leaves it, rounded,
 * in shared memory, and multiplies on. */

/* Writes lse of the 64 queries from `query` on, as far as there are so many. */
FA__FN void FA__LOOP(_send_lse)(const FA__LOOP(_launch) * launch, const float *lse, FA__LOOP(_block) block, int query, int lane) {
    const fa_attention_args *a = &launch->p.args;
    if (!a->lse) return;
    float *out = a->lse + ((int64_t)block.batch * a->heads + block.head) * a->seqlen_q;
    FA__UNROLL
    for (int row = lane; row < 64; row += FA__LANES)
        if (query + row < a->seqlen_q) out[query + row] = lse[row];
}

/* Has the copy engine write each panel of O that the warpgroup leaves, and writes lse of a block with the first one.
 * A proxy fence orders what some threads wrote before what the copy engine reads wherever it stands between the two
 * (PTX ISA, memory consistency model, causality order): here, behind the barrier, so that no consumer waits for it. */
FA__FN void FA__LOOP(_send_blocks)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared, int group, int lane) {
    FA__ROLL
    for (int number = 0;; number++)
        FA__UNROLL
        for (int panel = 0; panel < FA__LOOP(_panels); panel++) {
            const FA__LOOP(_place) at = FA__LOOP(_place_of_panel)(number, panel);
            FA__LOOP(_wait_full)(shared->of_room[group], at);
            const FA__LOOP(_block) block = shared->block[number % FA__LOOP(_blocks)];
            if (block.batch < 0) return;
            const int query = block.query + group * 64;
            fa_sm90_proxy_fence();
            FA__LOOP(_otile_source) to = {launch->o, query, block.head, block.batch};
            FA__LOOP(_otile_send_panel)(FA__LOOP(_room_of)(shared, group) + at.slot * FA__LOOP(_otile_PANEL_BYTES), to, panel, lane == 0);
            FA__LOOP(_otile_send)();
            if (panel == 0) FA__LOOP(_send_lse)(launch, shared->lse[group], block, query, lane);
            FA__LOOP(_otile_sent)();
            fa_sm90_warp_barrier();
            if (lane == 0) FA__LOOP(_release)(shared->of_room[group], at.slot);
        }
}
