/* attention_warpgroups_leave.h: how the O of a consumer warpgroup leaves it at the end of a block, in the sm_90a
 * schedule. */

/* Has the copy engine write O, rounded, of the block before the latest, as far as its rows exist; and has lse
 * written. */
#if FA__SENDS
/* Panels are left to the warp that sends them (attention_sender.h), with lse beside the first one. The fence and the
 * barrier behind it would take consumers 300 clocks. */
FA__FN void FA__LOOP(_leave)(const FA__LOOP(_consumer) * c, const FA__LOOP(_pv_halves) * halves, fa_box box, const float *lse, int thread) {
    (void)box;
    FA__UNROLL
    for (int i = 0; i < FA__LOOP(_panels); i++) {
        const FA__LOOP(_place) at = FA__LOOP(_place_of_panel)(c->blocks - 2, i);
        FA__LOOP(_wait_empty)(c->shared->of_room[c->group], at);
        FA__LOOP(_pv_to_panel)(halves, i, FA__LOOP(_room_of)(c->shared, c->group) + at.slot * FA__LOOP(_otile_PANEL_BYTES) + thread / 32 * 16 * FA__SM90_ROW_BYTES, thread);
        if (i == 0 && FA__LOOP(_qk_col)(thread, 0) == 0) {
            FA__UNROLL
            for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) c->shared->lse[c->group][FA__LOOP(_qk_row)(thread, r)] = lse[r];
        }
        FA__LOOP(_fill)(c->shared->of_room[c->group], at.slot);
    }
}
/* After the last block: tells that warp. */
FA__FN void FA__LOOP(_leave_end)(const FA__LOOP(_consumer) * c) {
    const FA__LOOP(_place) at = FA__LOOP(_place_of_panel)(c->blocks - 1, 0);
    FA__LOOP(_wait_empty)(c->shared->of_room[c->group], at);
    FA__LOOP(_fill)(c->shared->of_room[c->group], at.slot); /* and there is no more */
}
#else
/* Each warp sends its 16 rows by itself. */
FA__FN void FA__LOOP(_leave)(const FA__LOOP(_consumer) * c, const FA__LOOP(_pv_halves) * halves, fa_box box, const float *lse, int thread) {
    enum { FA__AT_ONCE = FA__LOOP(_ring), FA__PANEL = FA__LOOP(_otile_PANEL_BYTES) };
    int warp = fa_sm90_uniform(thread / 32);
    unsigned char *room = FA__LOOP(_room_of)(c->shared, c->group * 4 + warp);
    FA__LOOP(_otile_source) to = {c->to, box.queries.begin + warp * 16, box.head, box.batch};
    FA__UNROLL
    for (int first = 0; first < FA__LOOP(_panels); first += FA__AT_ONCE) {
        int end = fa__min(first + FA__AT_ONCE, FA__LOOP(_panels));
        FA__LOOP(_otile_sent)();
        fa_sm90_warp_barrier(); /* what was there has been read */
        FA__UNROLL
        for (int i = first; i < end; i++) FA__LOOP(_pv_to_panel)(halves, i, room + (i - first) * FA__PANEL, thread);
        fa_sm90_proxy_fence();
        fa_sm90_warp_barrier();
        FA__UNROLL
        for (int i = first; i < end; i++)
            FA__LOOP(_otile_send_panel)(room + (i - first) * FA__PANEL, to, i, thread % 32 == 0);
        FA__LOOP(_otile_send)();
    }
    FA__LOOP(_write_lse)(c->p, box, lse, thread);
}
/* After the last block: waits until it has been read. */
FA__FN void FA__LOOP(_leave_end)(const FA__LOOP(_consumer) * c) {
    (void)c;
    FA__LOOP(_otile_sent)();
}
#endif

/* Normalises O of the block before the latest, whose softmax ended in `state`, and has it written, with lse. O is
 * rounded first, as a whole, so that writing it takes half the registers. */
FA__FN void FA__LOOP(_finish)(FA__LOOP(_consumer) * c, const FA__LOOP(_softmax_state) * state) {
    fa_box box = FA__LOOP(_own_box)(c, 1);
    int thread = FA__OP(opaque)(c->thread); /* addresses are recomputed here: they are not worth registers in between */
    float inverse[FA__LOOP(_qk_ROWS)], lse[FA__LOOP(_qk_ROWS)];
    FA__LOOP(_softmax_finish)(state, c->p->scale_log2 * FA__LN_2, inverse, lse);
    FA__LOOP(_pv_normalize)(&c->o, inverse);
    if (FA__LOOP(_leaving)) {
        FA__LOOP(_pv_halves) halves;
        FA__LOOP(_pv_round)(&halves, &c->o);
        FA__LOOP(_leave)(c, &halves, box, lse, thread);
    } else {
        FA__LOOP(_pv_store)(&c->o, FA__LOOP(_out)(c->p, box), thread);
        FA__LOOP(_write_lse)(c->p, box, lse, thread);
    }
}
