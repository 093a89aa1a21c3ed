/* attention_planner.h: the tile scheduler of sm_90a: a warp that runs ahead of all others, and writes a note for
 * each tile of keys that a query block sees. */

#include <fa/kernel/attention_walk.h>

/* What the planner remembers of a batch's documents. */
typedef struct FA__LOOP(_memory) {
    FA__LOOP(_shared) * shared;
#if FA__REMEMBERS
    fa__ids of_queries[FA__READERS]; /* of the block's parts */
    int batch;                       /* the one whose tiles are remembered */
    uint32_t known;                  /* which of a lane's tiles are, one of each 32 */
#endif
#if FA__OWN_NOTES
    uint32_t unseen[FA__READERS], whole[FA__READERS]; /* as walk->visit and walk->full: what each part sees nothing of, and all of */
    int kinds;                                        /* of the latest tile */
#endif
} FA__LOOP(_memory);
#if FA__OWN_NOTES
/* What a tile is to one of the two parts: the mask looks at it; the part sees nothing of it; ALiBi's lines bend in
 * it. Both parts' kinds are one number. */
enum { FA__LOOP(_looked_at) = 1, FA__LOOP(_not_seen) = 2, FA__LOOP(_is_bent) = 4, FA__LOOP(_kind_bits) = 3 };
FA__REQUIRE(FA__READERS == 2, "two warpgroups of a team have notes of their own");
#endif

#if FA__REMEMBERS
/* The ids of a few tiles from number `first` on, the first's for lane `to`, the next one's for the lane after it,
 * and so on. All lanes look at a tile's ids side by side; a lane by itself would read them far apart. */
enum { FA__LOOP(_at_once) = FA__TEAMS > 1 ? 4 : FA_BLOCK_N <= 64 ? 16 : 8 }; /* tiles whose loads do not wait for each other, as there are registers */
FA__FN fa__ids FA__LOOP(_ids_of_few)(const FA__PARAMS *p, fa_box box, int first, int to, int lane) {
    const int last = p->args.seqlen_k - 1, last_tile = last / FA_BLOCK_N;
    fa__ids of[FA__LOOP(_at_once)], own = {0, 0};
    FA__UNROLL
    for (int i = 0; i < FA__LOOP(_at_once); i++)
        of[i] = FA__LOOP(_ids_of_lane)(fa__document_keys(box), fa__min(first + i, last_tile) * FA_BLOCK_N, last, FA_BLOCK_N, lane);
    FA__UNROLL
    for (int i = 0; i < FA__LOOP(_at_once); i++) {
        of[i] = FA__LOOP(_ids_of_warp)(of[i]);
        if (to + i == lane) own = of[i];
    }
    return own;
}

/* The ids of the queries of each part. (An empty one gets those of the query before it.) */
FA__FN void FA__LOOP(_ids_of_parts)(fa__ids *of, fa_box box, int lane) {
    FA__UNROLL
    for (int part = 0; part < FA__READERS; part++) of[part] = FA__LOOP(_ids_of_queries)(FA__LOOP(_part_of)(box, part), FA__LOOP(_part_rows), lane);
}

/* How many tiles _learn() looks at: all that can be remembered, none if there are at most 32, for which the planner
 * suffices. */
FA__FN int FA__LOOP(_tiles_learnt)(const FA__PARAMS *p) {
    const int tiles = fa__min((p->args.seqlen_k - 1) / FA_BLOCK_N + 1, FA__LOOP(_knowable));
    return tiles > FA__LANES ? tiles : 0;
}

/* Before the warps of a thread block part: those of a team look at the ids that its first block needs, side by side.
 * By itself its planner would wait for memory again and again, and all others for it. With few tiles it takes no
 * longer, and does so. */
FA__FN void FA__LOOP(_learn)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared, uint32_t team, int warp, int lane) {
    enum { FA__WORKERS = FA__LOOP(_threads) / FA__LANES / FA__TEAMS };
    const int tiles = FA__LOOP(_tiles_learnt)(&launch->p);
    FA__LOOP(_course) course = {team, team, 0, 0};
    if (tiles == 0 || team >= launch->order.teams) return;
    const fa_box box = FA__LOOP(_next_block)(&launch->p, &launch->order, &course);
    if (warp == FA__WORKERS - 1) FA__LOOP(_ids_of_parts)(shared->ids_of_first, box, lane);
    FA__ROLL
    for (int first = warp * FA__LOOP(_at_once); first < tiles; first += FA__WORKERS * FA__LOOP(_at_once)) {
        const fa__ids of = FA__LOOP(_ids_of_few)(&launch->p, box, first, 0, lane);
        if (lane < FA__LOOP(_at_once) && first + lane < tiles) shared->ids[first + lane] = of;
    }
}
#endif

/* Begins a block. */
FA__FN void FA__LOOP(_recall)(FA__LOOP(_memory) * memory, const FA__PARAMS *p, fa_box box, int lane) {
#if FA__REMEMBERS
    const int learnt = memory->batch < 0 ? FA__LOOP(_tiles_learnt)(p) : 0;
    if (learnt) {
        for (int part = 0; part < FA__READERS; part++) memory->of_queries[part] = memory->shared->ids_of_first[part];
        memory->known = (2u << (learnt - 1) / FA__LANES) - 1;
    } else {
        FA__LOOP(_ids_of_parts)(memory->of_queries, box, lane);
        if (box.batch != memory->batch) memory->known = 0;
    }
    memory->batch = box.batch;
#else
    (void)memory, (void)p, (void)box, (void)lane;
#endif
}

#if FA__REMEMBERS
/* The ids of 32 tiles from number `first` on, a tile's for each lane. They would be read again for every query
 * block, by the planner, while all others wait for it: so each lane remembers those of its tiles, in shared memory;
 * a bit for 32 tiles tells whether it does. */
FA__FN fa__ids FA__LOOP(_ids_of_tiles)(FA__LOOP(_memory) * memory, const FA__PARAMS *p, fa_box box, int first, int lane) {
    const int word = first / FA__LANES, last_tile = (p->args.seqlen_k - 1) / FA_BLOCK_N;
    fa__ids own = {0, 0};
    if (first < FA__LOOP(_knowable) && memory->known >> word & 1) return memory->shared->ids[first + lane];
    FA__ROLL
    for (int i = 0; i < FA__LANES && first + i <= last_tile; i += FA__LOOP(_at_once)) {
        const fa__ids of = FA__LOOP(_ids_of_few)(p, box, first + i, i, lane);
        if (lane >= i) own = of; /* and what comes later replaces it */
    }
    if (first < FA__LOOP(_knowable)) {
        memory->shared->ids[first + lane] = own;
        memory->known |= 1u << word;
    }
    return own;
}

/* Whether any query of a part has the id of a key of a tile: lanes have the keys' ids. */
FA__FN int FA__LOOP(_sees)(const FA__PARAMS *p, fa_box box, int tile, int lane) {
    enum { FA__EACH = (FA_BLOCK_N + FA__LANES - 1) / FA__LANES };
    const int *ids_q = fa__document_queries(box) + box.queries.begin, *ids_k = fa__document_keys(box), queries = box.queries.end - box.queries.begin;
    int id[FA__EACH], shares = 0;
    FA__UNROLL
    for (int i = 0; i < FA__EACH; i++) id[i] = fa__load_int(ids_k + fa__min(tile * FA_BLOCK_N + fa__min(i * FA__LANES + lane, FA_BLOCK_N - 1), p->args.seqlen_k - 1));
    FA__ROLL
    for (int query = 0; query < queries; query++) {
        const int of_query = fa__load_int(ids_q + query);
        FA__UNROLL
        for (int i = 0; i < FA__EACH; i++) shares |= id[i] == of_query;
    }
    return FA__OP(any)(shares);
}
#elif FA__MASK_NEEDS & FA__NEED_SPAN
/* Whether any query of a part sees a key of a tile: lanes have the queries' spans. */
FA__FN int FA__LOOP(_sees)(const FA__PARAMS *p, fa_box box, int tile, int lane) {
    const fa__span_rows rows = fa__span_rows_of(box);
    const fa_range keys = FA__LOOP(_keys_of_tile)(p, tile);
    int sees = 0;
    FA__ROLL
    for (int i = 0; i < FA__LOOP(_part_rows); i += FA__LANES)
        sees |= fa__span_meets(fa__span_of(rows, fa__min(box.queries.begin + i + lane, box.queries.end - 1)), keys);
    return FA__OP(any)(sees);
}
#endif

/* The class of a lane's tile, of the 32 that come next in the walk, for a part of the block. */
FA__FN fa_tile_class FA__LOOP(_judge)(FA__LOOP(_memory) * memory, const FA__LOOP(_walk) * walk, const FA__PARAMS *p, fa_box box, int part, int lane) {
    const int i = walk->before + lane, tile = FA__LOOP(_walk_tile)(walk, i);
#if FA__REMEMBERS || FA__MASK_NEEDS & FA__NEED_SPAN
    int of = FA_EMPTY;
    box.keys = FA__LOOP(_keys_of_tile)(p, tile);
#if FA__REMEMBERS /* the walk over the keys of a document mask always begins at tile 0 */
    const fa__ids of_keys = FA__LOOP(_ids_of_tiles)(memory, p, box, walk->before, lane);
    if (i < walk->count) of = fa__document_range_class(box, memory->of_queries[part], of_keys, FA__MASK_NEEDS & FA__WITH_CAUSAL);
#else
    (void)memory;
    if (i < walk->count) of = fa__lies_in(box.keys, walk->seen_by_all[part]) ? FA_FULL : -1; /* some query may see each of the walk's tiles */
#endif
    for (uint32_t unsure = FA__OP(ballot)(of < 0); unsure; unsure &= unsure - 1) {
        const int other = FA__OP(lowest_bit)(unsure), sees = FA__LOOP(_sees)(p, box, FA__LOOP(_walk_tile)(walk, walk->before + other), lane);
        if (lane == other) of = sees ? FA_PARTIAL : FA_EMPTY;
    }
    return (fa_tile_class)of;
#else
    (void)memory, (void)part;
    return i < walk->count ? FA__ATTN(__classify)(p, box, tile * FA_BLOCK_N, FA_BLOCK_N) : FA_EMPTY;
#endif
}

#if FA__OWN_NOTES
/* memory->kinds of the tile that is `bit` of the 32. */
FA__FN int FA__LOOP(_kinds_of)(const FA__LOOP(_memory) * memory, const FA__PARAMS *p, fa_box box, int bit, int tile) {
    int kinds = 0;
    FA__UNROLL
    for (int part = 0; part < FA__READERS; part++) {
        const int whole = memory->whole[part] >> bit & 1;
#if FA__COLUMNS == FA__NEED_ALIBI
        kinds |= FA__LOOP(_crosses)(p, FA__LOOP(_part_of)(box, part).queries, tile * FA_BLOCK_N) * FA__LOOP(_is_bent) << part * FA__LOOP(_kind_bits);
#endif
        kinds |= (!whole || p->negate) * FA__LOOP(_looked_at) << part * FA__LOOP(_kind_bits);
        kinds |= (int)(memory->unseen[part] >> bit & 1) * FA__LOOP(_not_seen) << part * FA__LOOP(_kind_bits);
    }
    (void)box, (void)tile;
    return kinds;
}
/* The note of a part's warpgroup, made of that of a tile. It skips what it sees nothing of, but takes a tile of each
 * block, and if it can a block's first tile: otherwise it would have to know the note before it starts products. And
 * it skips fewer tiles in a row than V has buffers, since of the tile before them it still has to multiply weights
 * by V, and may wait for the K of the tile after the next one before it does (attention_producers.h, FA__V_FIRST). `run`: how many it has skipped in a row. */
FA__FN int FA__LOOP(_own_note)(int word, int kinds, int part, int *run) {
    const int first = word & FA__LOOP(_first), last = word & FA__LOOP(_last), kind = kinds >> part * FA__LOOP(_kind_bits);
    const int skipped = kind & FA__LOOP(_not_seen) && *run < FA_STAGES - 1 && !(last && (first || *run > 0)) && (FA__SKIPS_FIRST || !first);
    *run = skipped ? *run + 1 : 0;
    word &= ~(FA__LOOP(_masked) | FA__LOOP(_bent));
    return word | (kind & FA__LOOP(_looked_at) || skipped ? FA__LOOP(_masked) : 0) | (kind & FA__LOOP(_is_bent) ? FA__LOOP(_bent) : 0) | (skipped ? FA__LOOP(_unseen) : 0);
}
#endif

#if FA__ROUND_TRIP
/* The walk, which is about to start, begins with the tile where the diagonal crosses the block's first query, and
 * the 32 that are remembered with that one. */
FA__FN void FA__LOOP(_start_trip)(FA__LOOP(_walk) * walk, const FA__PARAMS *p, fa_box box) {
    const int tile = fa__max(fa__min((box.queries.begin + fa__shift(&p->args)) / FA_BLOCK_N, walk->count - 1), 0);
    walk->from = tile % FA__LANES;
    walk->before = tile - walk->from - FA__LANES;
    walk->left = (walk->count + FA__LANES - 1) / FA__LANES;
}
#endif

/* The next tile that holds a visible element, with the mask bit of a note, or -1. The first of a block (but with ALiBi, where the walk
 * says which) is one that needs no mask, if there is one among the 32 that are looked at, or else one of which all parts see something:
 * consumers have most to do there, and rows that see nothing of their first tile would be weighed twice in the next
 * one. Where FA__ROUND_FIRST says so, it is the one with the roundest number, and the walk goes on from there. */
FA__FN int FA__LOOP(_walk_next)(FA__LOOP(_walk) * walk, FA__LOOP(_memory) * memory, const FA__PARAMS *p, fa_box box, int first, int lane) {
#if FA__HAS_MASK
    while (!walk->visit) {
        walk->before += FA__LANES;
        if (FA__ROUND_TRIP ? walk->left-- == 0 : walk->before >= walk->count) return -1;
        if (FA__ROUND_TRIP && walk->before >= walk->count) walk->before = 0;
        const int tile = FA__LOOP(_walk_tile)(walk, walk->before + lane);
        const int ends_inside = ((uint32_t)tile + 1) * FA_BLOCK_N <= (uint32_t)p->args.seqlen_k; /* without a sign: for some lanes it is no tile of the walk's */
        walk->visit = 0, walk->full = ~0u;
        if (!FA__ROUND_TRIP) walk->from = 0;
        FA__UNROLL
        for (int part = 0; part < FA__READERS; part++) {
            const fa_box of_part = FA__LOOP(_part_of)(box, part);
            const fa_tile_class of = FA__LOOP(_judge)(memory, walk, p, of_part, part, lane);
            const int empty = FA__READERS > 1 && of_part.queries.begin == of_part.queries.end;
            const uint32_t seen = FA__OP(ballot)(of != FA_EMPTY && !empty), whole = FA__OP(ballot)((of == FA_FULL || empty) && ends_inside);
            walk->visit |= seen, walk->full &= whole;
#if FA__OWN_NOTES
            memory->unseen[part] = ~seen, memory->whole[part] = whole;
#endif
        }
    }
    uint32_t best = walk->visit & walk->full;
#if FA__OWN_NOTES
    if (!best) best = walk->visit & ~(memory->unseen[0] | memory->unseen[1]);
#endif
    if (FA__ROUND_FIRST && first) {
        FA__UNROLL
        for (int step = 2; step <= 16; step *= 2) {
            const uint32_t rounder = best & FA__OP(ballot)(FA__LOOP(_walk_tile)(walk, walk->before + lane) % step == 0);
            if (rounder) best = rounder;
        }
    }
    first = FA__COLUMNS == FA__NEED_ALIBI || !first || !best ? -1 : FA__OP(lowest_bit)(best);
    const int bit = first < 0 ? FA__OP(lowest_bit)(FA__LOOP(_walk_ahead)(walk)) : first;
    if (first >= 0) walk->visit ^= 1u << first;
    if (FA__ROUND_FIRST && first >= 0) walk->from = first;
    int tile = first < 0 ? FA__LOOP(_walk_take)(walk) : FA__LOOP(_walk_tile)(walk, walk->before + first), full = first >= 0 || !walk->masked;
#else
    (void)memory, (void)first, (void)lane;
    int i = walk->before + FA__LANES, tile = FA__LOOP(_walk_tile)(walk, i);
    walk->before++;
    if (i >= walk->count) return -1;
    int full = (tile + 1) * FA_BLOCK_N <= p->args.seqlen_k;
#endif
    (void)box;
    int word = tile << FA__LOOP(_note_bits) | (full && !p->negate ? 0 : FA__LOOP(_masked));
#if FA__COLUMNS == FA__NEED_ALIBI
    if (FA__LOOP(_crosses)(p, box.queries, tile * FA_BLOCK_N)) word |= FA__LOOP(_bent);
#endif
#if FA__OWN_NOTES
    memory->kinds = FA__LOOP(_kinds_of)(memory, p, box, bit, tile);
#elif FA__HAS_MASK
    (void)bit;
#endif
    return word;
}

/* Tells the other warps which block is number `count`. */
FA__FN void FA__LOOP(_tell_block)(FA__LOOP(_shared) * shared, uint32_t count, fa_box box) {
    const FA__LOOP(_block) block = {box.batch, box.head, box.head_kv, box.queries.begin};
    shared->block[count % FA__LOOP(_blocks)] = block;
}

/* Writes the notes of a team, in order: for each of its query blocks, one for each tile that the mask leaves. */
FA__FN void FA__LOOP(_plan_tiles)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared, uint32_t team, int lane) {
    const FA__PARAMS *p = &launch->p;
    FA__LOOP(_course) course = {team, team, 0, 0};
    FA__LOOP(_place) at = {0, 0};
    int turn = 0; /* the same as one number, from 0 to 2 _notes - 1: with FA__PLANS_TIGHT, where two numbers do not fit in registers */
    FA__LOOP(_walk) walk;
    FA__LOOP(_memory) memory;
    memory.shared = shared;
#if FA__REMEMBERS
    memory.batch = -1;
#endif
#if FA__PLANS_TIGHT
    int *run = shared->run; /* but for zeros only lane 0's, after a barrier of the warp */
#elif FA__OWN_NOTES
    int run[FA__READERS];
#endif
#if FA__OWN_NOTES
    for (int part = 0; part < FA__READERS; part++) run[part] = 0;
#endif
    for (uint32_t count = 0;; count++) {
        const fa_box box = FA__LOOP(_next_block)(p, &launch->order, &course);
        const int end = box.batch < 0;
        int word = -1; /* the note that is written next, once it is known whether the block has another one */
#if FA__OWN_NOTES
        int kinds = 0; /* of that note */
#endif
        const int at_once = FA__LOOP(_first_q) && count == 0; /* not all blocks: two teams would be up to 1.5% slower */
        if (at_once && lane == 0) {
            FA__LOOP(_tell_block)(shared, count, box);
            fa_sm90_mbarrier_arrive(fa_sm90_shared_address(&shared->of_first));
        }
        if (!end) {
            FA__LOOP(_recall)(&memory, p, box, lane);
            FA__LOOP(_walk_start)(&walk, p, box, lane);
#if FA__ROUND_TRIP
            FA__LOOP(_start_trip)(&walk, p, box);
#endif
        }
        int first = 1;
        FA__ROLL
        do { /* one call of _walk_next(), in which masks are inlined (or two, FA__PLANS_TWICE) */
            int next = end ? -1 : FA__LOOP(_walk_next)(&walk, &memory, p, box, first, lane);
            if (first) {
                first = 0;
                if (!at_once && lane == 0) FA__LOOP(_tell_block)(shared, count, box);
                word = end ? FA__LOOP(_end) : next | FA__LOOP(_first);
                if (!end && next < 0) /* a block that sees no key gets one tile, all of which is masked */
                    word = (walk.begin + walk.count) << FA__LOOP(_note_bits) | FA__LOOP(_masked) | FA__LOOP(_first);
#if FA__OWN_NOTES
                kinds = next < 0 ? FA__LOOP(_looked_at) | FA__LOOP(_looked_at) << FA__LOOP(_kind_bits) : memory.kinds;
#endif
                if (next >= 0) {
                    if (!FA__PLANS_TWICE) continue;
                    next = FA__LOOP(_walk_next)(&walk, &memory, p, box, 0, lane);
                }
            }
            if (FA__PLANS_TIGHT) at = FA__LOOP(_place_of)((uint32_t)turn, FA__LOOP(_notes));
            FA__LOOP(_wait_empty)(shared->of_notes, at);
            if (FA__HAS_MASK) fa_sm90_warp_barrier(); /* a lane that fell two phases behind would wait for ever */
            if (lane == 0) {
                if (next < 0) word |= FA__LOOP(_last);
#if FA__OWN_NOTES
                for (int part = 0; part < FA__READERS; part++) shared->note[at.slot][part] = FA__LOOP(_own_note)(word, kinds, part, &run[part]);
#else
                shared->note[at.slot][0] = word;
#endif
                FA__LOOP(_fill)(shared->of_notes, at.slot);
            }
            FA__LOOP(_advance)(&at, FA__LOOP(_notes));
            turn = turn + 1 < 2 * FA__LOOP(_notes) ? turn + 1 : 0;
            word = next;
#if FA__OWN_NOTES
            kinds = memory.kinds;
#endif
        } while (word >= 0);
        if (end) return;
    }
}
