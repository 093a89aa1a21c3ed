/* attention_warpgroups.h: the forward for sm_90a: warps that plan and load, warpgroups that multiply (after
 * FlashAttention-3, Shah et al., arXiv 2407.08608; doc/hopper.md explains it, with the timeline).
 *
 * One thread block stays on each multiprocessor. It is a team, or two that share nothing but the multiprocessor
 * (FA__TEAMS), and each team works through its share of the blocks of FA_BLOCK_M queries. A warp, the planner, runs
 * ahead and writes a note for each tile of keys: which, whether the mask must look at it, or ALiBi's lines bend in
 * it, whether it is the first or last of its block. A thread of another warp follows the notes and has the copy engine bring tiles of Q, K and V
 * into rings of buffers. One to three consumer warpgroups take 64 queries each and read the same tiles. Where that
 * pays, two more warps send their O.
 *
 * A consumer's step starts S' = Q K'^T of the next tile, then O += P V of the current one. Hooks and masks of S' run
 * under P V; its exponentials run after that, under other warpgroups' products. The pipeline does not drain between
 * blocks: S' then belongs to the next block, whose Q was loaded while this one was computed, and the copy engine
 * writes O under the next products.
 *
 * What the compiler must see, or it serialises all products: control flow around them that is the same for the whole
 * warp, and no product, nor, while it runs, a definition of its registers, under a condition. So the very first step
 * multiplies a P and V that do not exist, and drops the result. */

#define FA__WIDE FA__WIDE_SCORE /* half types: other scores stay in range (fa/softmax.h, FA_WIDE) */
#define FA__LOADER FA_TMA
#define FA__EXACT /* to tiles (arch/sm90/tile.h) */

#include <fa/kernel/attention_warpgroups_choices.h>

/* A warpgroup works on its own: 64 queries, four warps. */
#define FA__WORKER_M 64
#define FA__LEAVING_M (FA__SENDS ? 64 : 16) /* rows of O that are sent together: a warpgroup's, or a warp's */
#undef FA_WARPS
#define FA_WARPS 4
#include <fa/kernel/attention_parts.h>
#undef FA__EXACT
#include <fa/kernel/attention_scores.h>
#if FA__BIAS_TILES
#include <fa/kernel/attention_bias_tiles.h>
#endif
#if FA__COLUMNS
#include <fa/kernel/attention_columns.h>
#endif

#include <fa/kernel/attention_rings.h>
#include <fa/kernel/attention_order.h>

/* What a launch is given: parameters, maps of the tensors, and the order. */
typedef struct FA__LOOP(_launch) {
    fa_tensor_map q[FA__LOOP(_qtile_MAPS)], k[FA__LOOP(_ktile_MAPS)], v[FA__LOOP(_vtile_MAPS)], o[FA__LOOP(_otile_MAPS)];
#if FA__BIAS_TILES
    fa_tensor_map bias[FA__SM90_MAPS(FA_BLOCK_N)];
    int bias_comes; /* by the copy engine */
#endif
    FA__PARAMS p;
    FA__LOOP(_order) order;
} FA__LOOP(_launch);

/* ---- the producers: a warp that plans, and a thread (a whole warp with key biases) that loads ---- */

#include <fa/kernel/attention_planner.h>
#include <fa/kernel/attention_producers.h>
#if FA__SENDS
#include <fa/kernel/attention_sender.h>
#endif

/* ---- a consumer: a warpgroup ---- */

/* What a warpgroup knows. The arrays lie in registers. */
typedef struct FA__LOOP(_consumer) {
    const FA__PARAMS *p;
    const fa_tensor_map *to; /* of O */
    FA__LOOP(_shared) * shared;
    int thread, group;
    int turns; /* the named barrier of the team's first warpgroup; `group` is its number in the team */
    uint32_t base, q_places, k_places, v_places; /* an address, and places (fa/mma.h), in units of 16 bytes: kept because they would be derived again in every step */
    FA__LOOP(_place) current, next;              /* rings: the tile whose weights are ready, and the one after it */
    int note, coming;                            /* their notes; coming is not known while the current tile is the last of its block */
    int q_slot;                                  /* where Q of the latest block is */
    int next_note;                               /* where it is in the ring of notes */
    int blocks;                                  /* how many have been read */
    int begun, summed;                           /* there is a current tile; O holds some of its block */
    FA__LOOP(_qk_acc) s;
    FA__LOOP(_pv_acc) o;
    FA__LOOP(_pv_a) weights;
    FA__LOOP(_softmax_state) state; /* without the current tile's sum */
    float sum[FA__LOOP(_qk_ROWS)];
    int far;   /* a maximum of the current tile's block is large (FA__FAR_KEPT) */
    int rough; /* the latest block has tiles that are not smooth (FA__SMOOTH) */
#if FA__COLUMNS == FA__NEED_ALIBI
    FA__LOOP(_columns) columns; /* of the latest block */
#endif
#if FA__COLUMNS
    uint32_t rows; /* the address of the additional columns */
#endif
#if FA__BIAS_TILES
    int bias_comes;
    FA__LOOP(_place) bias; /* ring */
#endif
} FA__LOOP(_consumer);

/* The address of a barrier. */
#define FA__BARRIER(c, of, slot, which) \
    ((c)->base + (uint32_t)(offsetof(FA__LOOP(_shared), of) + offsetof(FA__LOOP(_pair), which)) + \
     (uint32_t)(slot) * (uint32_t)sizeof(FA__LOOP(_pair)))

/* The block that is `back` blocks before the latest, from this warpgroup's first query on: to the block's last one,
 * or to its own where its notes are about its own queries alone (FA__OWN_NOTES). */
FA__FN fa_box FA__LOOP(_own_box)(const FA__LOOP(_consumer) * c, int back) {
    const fa_attention_args *a = &c->p->args;
    FA__LOOP(_block) block = c->shared->block[(c->blocks - 1 - back) % FA__LOOP(_blocks)];
    const int begin = block.query + c->group * 64;
    fa_range queries = {begin, fa__min(FA__OWN_NOTES ? begin + 64 : block.query + FA_BLOCK_M, a->seqlen_q)};
    fa_range keys = {0, a->seqlen_k};
    fa_box box = {a, block.batch, block.head, block.head_kv, queries, keys};
    return box;
}

/* The next tile's note, which is valid once the tile has landed; and taking it, which does not free its place: that
 * is given back with the tile's V. */
FA__FN int FA__LOOP(_note_of_next)(const FA__LOOP(_consumer) * c) { return c->shared->note[c->next_note][FA__OWN_NOTES ? c->group : 0]; }
/* The note if the tile is known to be there. (Without a branch, across which the assembler would move nothing.) */
FA__FN int FA__LOOP(_note_if)(const FA__LOOP(_consumer) * c, int there) {
    const size_t at = (size_t)c->next_note * sizeof c->shared->note[0] + (FA__OWN_NOTES ? (size_t)c->group * sizeof(int) : 0);
    return fa_sm90_load_if(c->base + (uint32_t)(offsetof(FA__LOOP(_shared), note) + at), there);
}
FA__FN void FA__LOOP(_take_note)(FA__LOOP(_consumer) * c, int word) {
    c->coming = fa_sm90_uniform(word);
    c->next_note = (int)((uint32_t)(c->next_note + 1) % FA__LOOP(_notes)); /* of unsigned numbers: an instruction, not four */
}

/* Waits for the next tile of keys, and returns its note. */
FA__FN int FA__LOOP(_await_tile)(const FA__LOOP(_consumer) * c) {
    fa_sm90_mbarrier_wait(FA__BARRIER(c, of_k, c->next.slot, full), c->next.phase);
    return FA__LOOP(_note_of_next)(c);
}

#if FA__BIAS_TILES
/* This warpgroup's rows of the next tile of the bias. */
FA__FN unsigned char *FA__LOOP(_bias_of_next)(const FA__LOOP(_consumer) * c) {
    return c->shared->bias[c->bias.slot] + c->group * 64 * FA__SM90_ROW_BYTES;
}

/* Adds it to the scores. */
FA__FN void FA__LOOP(_take_bias)(FA__LOOP(_consumer) * c) {
    if (c->bias_comes) fa_sm90_mbarrier_wait(FA__BARRIER(c, of_bias, c->bias.slot, full), c->bias.phase);
    FA__LOOP(_bias_add)(c->s.x, fa_sm90_shared_address(FA__LOOP(_bias_of_next)(c)), c->p->scale, c->thread);
    fa_sm90_proxy_fence(); /* what the copy engine writes comes after what has been read here */
    fa_sm90_warp_barrier();
    fa_sm90_mbarrier_arrive_if(FA__BARRIER(c, of_bias, c->bias.slot, empty), c->bias_comes && c->thread % FA__LANES == 0);
    FA__LOOP(_advance)(&c->bias, FA__LOOP(_bias_stages));
}
#endif

/* Hooks and the mask, where a tile needs them; `smooth`: _step(). */
FA__FN void FA__LOOP(_apply)(FA__LOOP(_consumer) * c, int plain, int smooth) {
    const int masked = plain ? 0 : c->note & FA__LOOP(_masked), bent = plain ? 0 : c->note & FA__LOOP(_bent);
#if FA__BIAS_TILES
    FA__LOOP(_take_bias)(c);
#endif
    if (!FA__HOOKED && !masked && !bent) return;
    const fa_box box = FA__LOOP(_own_box)(c, 0);
    const int key0 = FA__LOOP(_first_key)(c->note);
#if FA__COLUMNS == FA__NEED_ALIBI
    if (bent && FA__LOOP(_crosses)(c->p, box.queries, key0)) FA__LOOP(_bend)(c->s.x, c->columns.slope, c->columns.zero, key0, c->thread);
    if (!masked) return;
#endif
    if (masked && c->p->negate) { /* a negative scale, without a hook: the exponent's factor stays positive */
        FA__UNROLL
        for (int i = 0; i < (int)(sizeof c->s.x / sizeof c->s.x[0]); i++) c->s.x[i] = -c->s.x[i];
    }
    FA__LOOP(_modify)(c->s.x, c->p, FA__LOOP(_index)(c->p, box), box, key0, masked, smooth, c->thread);
}

#include <fa/kernel/attention_warpgroups_leave.h>

/* O += P V of the current tile; the first of its block sets O. */
FA__FN void FA__LOOP(_start_pv)(FA__LOOP(_consumer) * c) {
    enum { FA__V_STEP = (int)sizeof c->shared->v[0] / 16 };
    FA__LOOP(_pv_fence)();
    FA__LOOP(_pv_start)(&c->o, &c->weights, c->v_places + (uint32_t)(c->current.slot * FA__V_STEP), c->summed);
    FA__LOOP(_pv_commit)();
    c->summed = 1;
}

/* Turns (FlashAttention-3's ping-pong): a warpgroup starts the products of a step once the one before it has, or has
 * applied its hook (FA__TURN_LATE), and so computes its softmax while the others' products run. */
FA__FN void FA__LOOP(_await_turn)(const FA__LOOP(_consumer) * c) {
    if (FA__TURNS) fa_sm90_bar_sync(c->turns + c->group, 256);
}
FA__FN void FA__LOOP(_end_turn)(const FA__LOOP(_consumer) * c) {
    int next = c->group + 1 < FA__LOOP(_groups) ? c->group + 1 : 0;
    if (FA__TURNS) fa_sm90_bar_arrive(c->turns + next, 256);
}

/* Gives back the buffer of the latest block's Q: where it is the only one, in the step of its last product; where
 * there is another, when the next block begins, so that no step has to ask whether it is that one. */
FA__FN void FA__LOOP(_give_back_q)(const FA__LOOP(_consumer) * c, int condition) {
    fa_sm90_mbarrier_arrive_if(FA__BARRIER(c, of_q, c->group * FA__LOOP(_q_stages) + c->q_slot, empty), condition && c->thread == 0);
}

/* Waits for P V, and finishes its block if that was the last of it. */
FA__FN void FA__LOOP(_settle)(FA__LOOP(_consumer) * c, FA__LOOP(_softmax_state) * before, int last) {
    FA__LOOP(_pv_wait)(&c->o, 0);
    if (!last) return;
    if (c->begun) FA__LOOP(_finish)(c, before);
    c->summed = 0;
}

/* Computes the weights of the current tile, packed, and their sums; the scores are kept. `near`: as if no maximum
 * were large. */
FA__FN void FA__LOOP(_weigh)(FA__LOOP(_consumer) * c, int near) {
    float weights[FA__LOOP(_qk_ROWS) * FA__LOOP(_qk_COLS)];
    if (near) FA__LOOP(_softmax_weigh_near)(&c->state, c->s.x, c->p->scale_log2, weights, c->sum);
    else FA__LOOP(_softmax_weigh)(&c->state, c->s.x, c->p->scale_log2, weights, c->sum);
    FA__LOOP(_pv_pack)(&c->weights, weights);
}

#if FA__CURVED
#include <fa/kernel/attention_soft_cap.h>
#endif

/* Adds the current tile's sums to its block's. */
FA__FN void FA__LOOP(_sum_up)(FA__LOOP(_consumer) * c) {
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) c->state.sum[r] += c->sum[r];
}

/* Weighs the current tile once more: the maximum that it was weighed by was too low, and is raised; or it is large, and
 * weights were computed as if it were not (FA__NEAR); or scores had yet to be capped (FA__CURVED). */
FA__FN void FA__LOOP(_weigh_again)(FA__LOOP(_consumer) * c, int behind) {
    float alpha[FA__LOOP(_qk_ROWS)];
#if FA__CURVED
    if (behind >= FA__LOOP(_uncapped)) FA__LOOP(_cap)(c, behind);
#else
    (void)behind;
#endif
    FA__LOOP(_softmax_raise)(&c->state, c->s.x, c->p->scale_log2, alpha);
    if (FA__FAR_KEPT) c->far = FA__FAR(c);
    FA__LOOP(_softmax_fade)(&c->state, alpha);
    FA__LOOP(_pv_scale_rows)(&c->o, alpha);
    FA__LOOP(_weigh)(c, 0);
}

/* A step: P V of the current tile, Q K^T and the softmax of the next one. `inside`: both are of one block. `plain`:
 * no mask looks at the next one, and no line bends in it. `smooth`: what FA__SMOOTH says holds for it. */
FA__FN void FA__LOOP(_step)(FA__LOOP(_consumer) * c, int inside, int plain, int smooth) {
    enum { FA__K_STEP = (int)sizeof c->shared->k[0] / 16, FA__Q_STEP = (int)sizeof c->shared->q[0][0] / 16 };
    const int last = inside ? 0 : c->note & FA__LOOP(_last); /* the current tile is the last of its block, and the next one the first of its own */
    int leader = c->thread == 0, v_slot = c->current.slot, behind;
    float scale_log2 = c->p->scale_log2, alpha[FA__LOOP(_qk_ROWS)];
    if (!FA__SUMS_EARLY) FA__LOOP(_sum_up)(c);
    FA__LOOP(_softmax_state) before = c->state; /* of O's block: where S' begins another, c->state begins anew */

#if FA__BIAS_TILES
    if (!c->bias_comes)
        FA__LOOP(_bias_gather)(FA__LOOP(_bias_of_next)(c), c->p, FA__LOOP(_own_box)(c, 0), FA__LOOP(_first_key)(c->coming), c->thread);
#endif
    uint32_t q = c->q_places + (uint32_t)(c->q_slot * FA__Q_STEP);
    uint32_t k = c->k_places + (uint32_t)(c->next.slot * FA__K_STEP);
#if FA__COLUMNS == FA__NEED_ALIBI
    uint32_t columns[FA__LOOP(_qk_ROWS)];
    if (last) c->columns = FA__LOOP(_columns_of)(c->p, FA__LOOP(_own_box)(c, 0), c->thread);
    if (!FA__COLUMNS_LATE) FA__LOOP(_columns_at)(columns, &c->columns, FA__LOOP(_first_key)(c->coming), c->thread);
#endif
    FA__LOOP(_await_turn)(c);
#if FA__CURVED
    FA__LOOP(_look_for_steep)(c, FA__LOOP(_steep_place)(c));
#endif
    FA__LOOP(_qk_fence)();
    FA__LOOP(_qk_start)(&c->s, q, k, 0);
#if FA__COLUMNS == FA__NEED_ALIBI
    if (FA__COLUMNS_LATE) {
        FA__LOOP(_columns_at)(columns, &c->columns, FA__LOOP(_first_key)(c->coming), c->thread);
        FA__LOOP(_qk_fence)();
    }
    FA__LOOP(_qk_start_held_eight)(&c->s, columns, c->rows);
#elif FA__COLUMNS == FA__NEED_KEY_BIAS
    FA__LOOP(_qk_start_eight)(&c->s, c->rows, c->rows + (uint32_t)(64 + c->next.slot * FA_BLOCK_N) * 16);
#endif
    FA__LOOP(_qk_commit)();
    if (inside || c->begun) fa_sm90_mbarrier_wait(FA__BARRIER(c, of_v, c->current.slot, full), c->current.phase);
    FA__LOOP(_start_pv)(c);
    if (!FA__TURN_LATE) FA__LOOP(_end_turn)(c);
    /* From here on the current tile is that of S'. Of the one before there are still v_slot, `last` and `before`. */
    c->current = c->next;
    FA__LOOP(_advance)(&c->next, FA_STAGES);
    c->note = c->coming;
    int there = 1, word = 0;
    if (FA__LATE_K) there = fa_sm90_mbarrier_test(FA__BARRIER(c, of_k, c->next.slot, full), c->next.phase);
    FA__LOOP(_qk_wait)(&c->s, 1);
    fa_sm90_mbarrier_arrive_if(FA__BARRIER(c, of_k, c->current.slot, empty), leader); /* for all: the products that read K are of all four warps */
    if (FA__LOOP(_q_stages) == 1) FA__LOOP(_give_back_q)(c, c->note & FA__LOOP(_last));

    /* While P V runs. */
    if (!FA__CURVED || !smooth) FA__LOOP(_apply)(c, plain, smooth);
    if (FA__TURN_LATE) FA__LOOP(_end_turn)(c);
    if (last) FA__LOOP(_softmax_init)(&c->state);
    if (last && (!FA__GUESSES || c->note & (FA__LOOP(_masked) | FA__LOOP(_bent))))
        FA__LOOP(_softmax_raise)(&c->state, c->s.x, scale_log2, alpha);
    else if (last) FA__LOOP(_softmax_raise_by)(&c->state, c->s.x, scale_log2, alpha, 4);
    if (FA__FAR_KEPT && last) c->far = FA__FAR(c);
#if FA__CURVED
    if (last) FA__LOOP(_foresee_steep)(c);
#endif
    if (FA__LATE_K) word = FA__LOOP(_note_if)(c, there);
    else if (!(c->note & FA__LOOP(_last))) FA__LOOP(_take_note)(c, FA__LOOP(_await_tile)(c));
    FA__LOOP(_settle)(c, &before, last);

    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) c->state.sum[r] = last ? 0.0f : before.sum[r];
    fa_sm90_mbarrier_arrive_if(FA__BARRIER(c, of_v, v_slot, empty), inside || c->begun); /* by all threads, which frees their notes, too */
    if (FA__APART) fa_sm90_keep_apart(c->thread);
#if FA__CURVED
    if (smooth) behind = FA__LOOP(_weigh_uncapped)(c);
    else
#endif
    {
        FA__LOOP(_weigh)(c, FA__NEAR);
        behind = ((FA__GUESSES || !last) && FA__LOOP(_softmax_behind)(c->sum)) || (FA__NEAR && (FA__FAR_KEPT ? c->far : FA__FAR(c)));
    }
    c->begun = 1;
    if (FA__LATE_K && !(c->note & FA__LOOP(_last))) {
        if (FA__OP(any)(!there)) word = FA__LOOP(_await_tile)(c);
        FA__LOOP(_take_note)(c, word);
    }
    /* In this step, not in the next one: the assembler before CUDA 12.9 serialises all products if scores of one
     * step are read in another. And at its end: earlier it would compute exponentials ahead of the wait for P V. */
    if (behind) FA__LOOP(_weigh_again)(c, behind);
    if (FA__SUMS_EARLY) FA__LOOP(_sum_up)(c);
}

#if FA__OWN_NOTES
/* Gives back the next tile, of which this warpgroup sees nothing. */
FA__FN void FA__LOOP(_skip)(FA__LOOP(_consumer) * c) {
    const int word = c->coming;
    fa_sm90_bar_sync(c->turns + c->group, 128); /* all four warps know that K is there: none waits for it any more when it is brought anew */
    fa_sm90_mbarrier_arrive_if(FA__BARRIER(c, of_k, c->next.slot, empty), c->thread == 0);
    if (FA__LOOP(_q_stages) == 1) FA__LOOP(_give_back_q)(c, word & FA__LOOP(_last));
    fa_sm90_mbarrier_wait(FA__BARRIER(c, of_v, c->next.slot, full), c->next.phase);
    fa_sm90_mbarrier_arrive(FA__BARRIER(c, of_v, c->next.slot, empty));
    FA__LOOP(_advance)(&c->next, FA_STAGES);
    if (word & FA__LOOP(_last)) c->note |= FA__LOOP(_last);
    else FA__LOOP(_take_note)(c, FA__LOOP(_await_tile)(c));
}
#endif

/* What comes after the current tile: with bit _last, another block; otherwise, with _masked or _bent, a tile of this
 * block that the mask looks at, or in which lines bend, or 0, any other one. One number, since the compiler makes a branch of each question. */
FA__FN int FA__LOOP(_ahead)(const FA__LOOP(_consumer) * c) {
    return (c->note & FA__LOOP(_last)) | (c->coming & (FA__LOOP(_masked) | FA__LOOP(_bent)));
}
#define FA__PLAIN_AHEAD(c) (!(FA__ASKS_TWICE && (c)->note & FA__LOOP(_last)) && !FA__LOOP(_ahead)(c)) /* in a function it would be one question */

FA__FN void FA__LOOP(_consume)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared, int thread, int team, int group) {
    FA__LOOP(_consumer) own, *c = &own;
    c->p = &launch->p;
    c->to = launch->o;
    c->shared = shared;
    c->thread = thread;
    c->group = group;
    c->turns = FA__LOOP(_turn_barrier) + team * FA__LOOP(_groups);
    c->base = (uint32_t)fa_sm90_uniform((int)fa_sm90_shared_address(shared));
    c->q_places = (uint32_t)fa_sm90_uniform((int)FA__LOOP(_qk_a_place)(&shared->q[group][0], 0));
    c->k_places = (uint32_t)fa_sm90_uniform((int)FA__LOOP(_qk_b_place)(shared->k));
    c->v_places = (uint32_t)fa_sm90_uniform((int)FA__LOOP(_pv_b_place)(shared->v));
    /* As if a block had just ended, its last tile in the place before the first: the first step begins a block like
     * any other, but as nothing has `begun` it waits for no V, gives none back, and finishes no O. (The copy engine
     * may be filling the V that it multiplies: the result is dropped, whatever it is.) */
    c->current.slot = FA_STAGES - 1, c->current.phase = 1;
    c->next.slot = c->next.phase = 0;
    c->note = FA__LOOP(_last);
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) c->sum[r] = 0.0f;
    c->far = c->rough = c->coming = c->next_note = c->blocks = c->begun = c->summed = c->q_slot = 0;
    FA__UNROLL
    for (int i = 0; i < (int)(sizeof c->weights.x / sizeof c->weights.x[0]); i++) c->weights.x[i] = 0;
    FA__LOOP(_pv_zero)(&c->o);
    FA__LOOP(_softmax_init)(&c->state);

#if FA__COLUMNS
    c->rows = (uint32_t)fa_sm90_uniform((int)fa_sm90_shared_address(shared->rows));
#endif
#if FA__COLUMNS == FA__NEED_ALIBI
    memset(&c->columns, 0, sizeof c->columns);
#endif

#if FA__BIAS_TILES
    c->bias_comes = launch->bias_comes;
    c->bias.slot = c->bias.phase = 0;
#endif

    if (group == FA__LOOP(_groups) - 1) FA__LOOP(_end_turn)(c); /* the first turn is the first group's */
    for (;;) {
        while (FA__PLAIN_AHEAD(c) && !c->rough) FA__LOOP(_step)(c, 1, 1, FA__SMOOTH);
#if FA__SMOOTH && (FA__ALL_THERE || !FA__HAS_MASK || FA__LONG) /* with a mask, another copy of a step costs short rows 5% */
        while (FA__PLAIN_AHEAD(c)) FA__LOOP(_step)(c, 1, 1, 0);
#endif
#if FA__MASKED_INSIDE
        while (FA__LOOP(_ahead)(c) == FA__LOOP(_masked)) {
#if FA__OWN_NOTES
            if (c->coming & FA__LOOP(_unseen)) {
                FA__LOOP(_skip)(c);
                continue;
            }
#endif
            FA__LOOP(_step)(c, 1, 0, 0);
        }
        if (!(c->note & FA__LOOP(_last)) && !c->rough) continue;
#endif
        if (c->note & FA__LOOP(_last)) {
            if (FA__LOOP(_q_stages) > 1) FA__LOOP(_give_back_q)(c, c->begun);
            c->q_slot = c->blocks % FA__LOOP(_q_stages);
            fa_sm90_mbarrier_wait(FA__BARRIER(c, of_q, group * FA__LOOP(_q_stages) + c->q_slot, full),
                                  c->blocks / FA__LOOP(_q_stages) & 1);
            int more = fa_sm90_uniform(shared->block[c->blocks % FA__LOOP(_blocks)].batch) >= 0;
            c->blocks++;
            if (!more) break;
            c->rough = FA__LOOP(_ragged)(FA__LOOP(_own_box)(c, 0));
            FA__LOOP(_take_note)(c, FA__LOOP(_await_tile)(c));
#if FA__SKIPS_FIRST
            while (c->coming & FA__LOOP(_unseen)) FA__LOOP(_skip)(c);
#endif
#if FA__OWN_NOTES
        } else if (c->coming & FA__LOOP(_unseen)) {
            FA__LOOP(_skip)(c);
            continue;
#endif
        }
        FA__LOOP(_step)(c, 0, 0, 0);
    }
    if (!FA__SUMS_EARLY) FA__LOOP(_sum_up)(c);
    if (group == 0) FA__LOOP(_await_turn)(c); /* the turn left over: at the end of a thread block no arrival may lack its wait */
    /* The last tile's P V. */
    fa_sm90_mbarrier_wait(FA__BARRIER(c, of_v, c->current.slot, full), c->current.phase);
    FA__LOOP(_start_pv)(c);
    FA__LOOP(_pv_wait)(&c->o, 0);
    FA__LOOP(_finish)(c, &c->state);
    if (FA__LOOP(_leaving)) FA__LOOP(_leave_end)(c);
}
#undef FA__BARRIER
#undef FA__PLAIN_AHEAD

/* ---- the thread block ---- */

#include <fa/kernel/attention_warpgroups_block.h>

#include <fa/kernel/attention_warpgroups_choices_end.h>
#undef FA__ALL_THERE
