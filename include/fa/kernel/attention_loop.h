/* attention_loop.h: the plain schedule of the forward, for GPUs with mma.sync and cp.async.
 *
 * A thread block of FA_WARPS warps takes FA_BLOCK_M queries of one head, walks the tiles of FA_BLOCK_N keys that the mask
 * leaves it, and keeps O and the softmax state in registers (FlashAttention-2, Dao, arXiv 2307.08691). Fragments say where
 * their elements lie (fa/mma.h), so nothing here knows the layout of a matrix unit.
 *
 * Copies run ahead of the products, and go one by one between their steps, which hide the arithmetic of their addresses.
 * With one stage the next K is fetched during P V and V during Q K^T; with two, the whole next tile is fetched during
 * Q K^T, and one barrier a tile suffices.
 *
 * FA_F32 multiplies pairs of halves, into which each warp splits what it has loaded: with one stage before the product, with
 * two, the next tiles, between the steps of P V. */

/* Half types have no instruction to spare, and their scores stay in range (fa/softmax.h, FA_WIDE). */
#define FA__WIDE (FA__WIDE_SCORE || FA_DTYPE == FA_F32 || FA_DTYPE == FA_TF32)
#define FA__EAGER (!FA__HAS_MASK || FA__HAS_SCORE || FA_DTYPE == FA_F32 || FA_DTYPE == FA_TF32) /* registers are short */
#include <fa/kernel/attention_parts.h>
#include <fa/kernel/attention_scores.h>

/* What a worker shares: tiles, and what the mask says of the next tiles. O takes Q's place in the end. */
typedef struct FA__LOOP(_shared) {
    FA__LOOP(_qo) qo;
    FA__LOOP(_ktile_tile) k[FA__STAGES];
    FA__LOOP(_vtile_tile) v[FA__STAGES];
#if FA__HAS_MASK
    uint32_t visit[FA_WARPS], full[FA_WARPS];
#endif
} FA__LOOP(_shared);

/* ---- the walk over the tiles of a row of blocks ---- */

typedef struct FA__LOOP(_walk) {
    int begin, end; /* tiles */
    int word;       /* first tile of the word that is being consumed */
    uint32_t visit, full;
    int masked; /* of the tile that next() gave */
} FA__LOOP(_walk);

FA__FN void FA__LOOP(_walk_start)(FA__LOOP(_walk) * walk, const FA__PARAMS *p, fa_box box) {
    fa_range tiles = FA__LOOP(_tiles)(p, box);
    walk->begin = tiles.begin;
    walk->end = tiles.end;
    walk->word = tiles.begin - FA__LANES;
    walk->visit = walk->full = 0;
    walk->masked = 0;
}

/* The next tile that holds a visible element, or -1. The threads of a worker judge as many tiles as they are at once. */
FA__FN int FA__LOOP(_walk_next)(FA__LOOP(_walk) * walk, const FA__PARAMS *p, fa_box box, FA__LOOP(_shared) * shared,
                                int thread) {
#if FA__HAS_MASK
    while (!walk->visit) {
        walk->word += FA__LANES;
        if (walk->word >= walk->end) return -1;
        int word = (walk->word - walk->begin) / FA__LANES % FA_WARPS;
        if (word == 0) {
            int tile = walk->word + thread;
            fa_tile_class of = tile < walk->end ? FA__ATTN(__classify)(p, box, tile * FA_BLOCK_N, FA_BLOCK_N) : FA_EMPTY;
            uint32_t visit = FA__OP(ballot)(of != FA_EMPTY), full = FA__OP(ballot)(of == FA_FULL);
            FA__OP(barrier)(); /* the last words have been read */
            shared->visit[thread / FA__LANES] = visit;
            shared->full[thread / FA__LANES] = full;
            FA__OP(barrier)();
        }
        walk->visit = shared->visit[word];
        walk->full = shared->full[word];
    }
    int bit = FA__OP(lowest_bit)(walk->visit);
    walk->visit &= walk->visit - 1;
    walk->masked = !(walk->full >> bit & 1);
    return walk->word + bit;
#else
    (void)p, (void)box, (void)shared, (void)thread;
    int tile = walk->word + FA__LANES;
    walk->word++;
    return tile < walk->end ? tile : -1;
#endif
}

/* ---- the schedule ---- */

FA__FN void FA__LOOP(_run)(const FA__PARAMS *p, fa_box box, FA__LOOP(_shared) * shared, int thread) {
    enum { FA__ROWS_HELD = FA__LOOP(_qk_ROWS), FA__TWO = FA__STAGES > 1 };
    const fa_attention_args *a = &p->args;
    FA__LOOP(_view) view;
    FA__LOOP(_open)(&view, p, box);
    fa_block k_block = view.k, v_block = view.v;
    fa_index at = view.at;

    FA__LOOP(_qk_acc) s;
    FA__LOOP(_pv_acc) o;
    FA__LOOP(_softmax_state) state;
    float alpha[FA__ROWS_HELD], inverse[FA__ROWS_HELD], lse[FA__ROWS_HELD];
    FA__LOOP(_pv_zero)(&o);
    FA__LOOP(_softmax_init)(&state);
    FA__LOOP(_walk) walk;
    /* Half types with addresses of its own, FA_F32 without: either way fewer instances spill. */
    if (FA__EARLY_Q) FA__LOOP(_qtile_load)(&shared->qo.q, view.q, FA__PAIRS ? thread : FA__OP(opaque)(thread));
    FA__LOOP(_walk_start)(&walk, p, box);
    int tile = FA__LOOP(_walk_next)(&walk, p, box, shared, thread);
    if (tile >= 0) {
        if (!FA__EARLY_Q) FA__LOOP(_qtile_load)(&shared->qo.q, view.q, thread);
        k_block.row = v_block.row = tile * FA_BLOCK_N;
        FA__LOOP(_ktile_load)(&shared->k[0], k_block, thread);
        FA__LOOP(_ktile_commit)();
        if (FA__TWO) {
            FA__LOOP(_vtile_load)(&shared->v[0], v_block, thread);
            FA__LOOP(_vtile_commit)();
        }
#if FA__PAIRS
        FA__LOOP(_ktile_wait)(0);
        FA__LOOP(_qtile_split)(&shared->qo.q, thread);
        if (FA__TWO) FA__LOOP(_ktile_split)(&shared->k[0], thread);
        if (FA__TWO) FA__LOOP(_vtile_split)(&shared->v[0], thread);
#endif
        if (p->negate) { /* a negative scale, without a hook: the exponent's factor stays positive */
            FA__LOOP(_ktile_wait)(0);
            FA__OP(barrier)();
            FA__LOOP(_qtile_negate)(&shared->qo.q, thread);
        }
    } else if (FA__EARLY_Q) { /* O takes Q's place */
        FA__LOOP(_qtile_commit)();
        FA__LOOP(_qtile_wait)(0);
    }
#if FA__KEEP_Q
    FA__LOOP(_qk_a) q;
    if (tile >= 0) {
        FA__LOOP(_ktile_wait)(FA__TWO);
        FA__OP(barrier)();
        FA__LOOP(_qk_load_a)(&q, &shared->qo.q, thread);
    }
#define FA__Q &q
#else
#define FA__Q &shared->qo.q
#endif
    for (int stage = 0; tile >= 0; stage ^= FA__TWO) {
        int key0 = tile * FA_BLOCK_N, masked = walk.masked | (key0 + FA_BLOCK_N > a->seqlen_k);
        FA__LOOP(_ktile_wait)(0);
#if FA__PAIRS
        if (!FA__TWO) FA__LOOP(_ktile_split)(&shared->k[0], thread);
#endif
        FA__OP(barrier)(); /* K (and with two stages V) has landed for all; all have left the tile before */
        tile = FA__LOOP(_walk_next)(&walk, p, box, shared, thread);
        k_block.row = tile * FA_BLOCK_N;
        k_block.rows = tile >= 0 ? a->seqlen_k : 0; /* no next tile: nothing is read */
        v_block.row = FA__TWO ? k_block.row : key0;
        if (FA__TWO) v_block.rows = k_block.rows;

        FA__LOOP(_qk_zero)(&s);
        FA__UNROLL
        for (int k = 0; k < FA__LOOP(_qk_STEPS); k++) {
            FA__LOOP(_qk_mma_steps)(&s, FA__Q, &shared->k[stage], thread, k, k + 1);
            FA__LOOP(_vtile_load_part)(&shared->v[stage ^ FA__TWO], v_block, thread, k, FA__LOOP(_qk_STEPS));
            if (FA__TWO) FA__LOOP(_ktile_load_part)(&shared->k[stage ^ FA__TWO], k_block, thread, k, FA__LOOP(_qk_STEPS));
        }
        FA__LOOP(_vtile_commit)();
#if FA__PAIRS
        FA__LOOP(_qk_unscale)(&s, &shared->qo.q, &shared->k[stage], thread);
#endif
        FA__LOOP(_modify)(s.x, p, at, box, key0, masked, thread);

        if (FA__LOOP(_softmax_update)(&state, s.x, p->scale_log2, alpha)) FA__LOOP(_pv_scale_rows)(&o, alpha);
        FA__LOOP(_pv_a) weights;
#if FA__PAIRS
        FA__LOOP(_vtile_wait)(0); /* with two stages for the next tiles, split below */
        if (!FA__TWO) FA__LOOP(_vtile_split)(&shared->v[0], thread);
#else
        FA__LOOP(_pv_pack)(&weights, s.x);
        if (!FA__TWO) FA__LOOP(_vtile_wait)(0);
#endif
        if (!FA__TWO) FA__OP(barrier)(); /* V has landed for all; all have left K */
#if FA__PAIRS
        FA__LOOP(_pv_pack)(&weights, s.x, &shared->v[stage], thread);
#endif
        FA__UNROLL
        for (int k = 0; k < FA__LOOP(_pv_STEPS); k++) {
            FA__LOOP(_pv_mma_steps)(&o, &weights, &shared->v[stage], thread, k, k + 1);
            if (!FA__TWO) FA__LOOP(_ktile_load_part)(&shared->k[0], k_block, thread, k, FA__LOOP(_pv_STEPS));
#if FA__PAIRS /* K early, V halfway */
            enum { FA__PARTS = FA__LOOP(_pv_STEPS) };
            if (FA__TWO) FA__LOOP(_ktile_split_part)(&shared->k[stage ^ 1], thread, FA__PARTS - 1 - k, FA__PARTS);
            int part = (FA__PARTS + FA__PARTS / 2 - 1 - k) % FA__PARTS;
            if (FA__TWO) FA__LOOP(_vtile_split_part)(&shared->v[stage ^ 1], thread, part, FA__PARTS);
#endif
        }
        if (!FA__TWO) FA__LOOP(_ktile_commit)();
    }
#undef FA__Q

    /* O leaves through a tile, so that whole rows are written. */
    FA__LOOP(_softmax_finish)(&state, p->scale_log2 * FA__LN_2, inverse, lse);
    FA__OP(barrier)(); /* all have left Q */
    FA__LOOP(_pv_normalize)(&o, inverse);
    FA__LOOP(_pv_to_tile)(&o, &shared->qo.o, thread);
    FA__LOOP(_write_lse)(p, box, lse, thread);
    FA__OP(barrier)();
    FA__LOOP(_otile_store)(&shared->qo.o, view.o, thread);
}
