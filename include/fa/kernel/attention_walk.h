/* attention_walk.h: the walk over the tiles of keys of a query block, as far as the schedules for GPUs share it. */

/* Parts of a block's queries that are told apart (sm_90a: of warpgroups with notes of their own), of equal size but
 * for the last queries. */
#if !defined(FA__READERS)
#define FA__READERS 1
#endif
enum { FA__LOOP(_part_rows) = FA_BLOCK_M / FA__READERS };
/* Part number `part`, which may be empty. */
FA__FN fa_box FA__LOOP(_part_of)(fa_box box, int part) {
    if (FA__READERS == 1) return box;
    const int begin = box.queries.begin + part * FA__LOOP(_part_rows), end = box.queries.end;
    box.queries = fa__range(fa__min(begin, end), fa__min(begin + FA__LOOP(_part_rows), end));
    return box;
}

typedef struct FA__LOOP(_walk) {
    int begin, count;     /* tiles: the first; how many */
    int before;           /* how many come before the 32 that are being consumed; where they are taken one by one, the next one's number less 32 */
    int diagonal;         /* how many come before the diagonal */
    uint32_t visit, full; /* a bit for each of those 32: it is to be visited; the mask leaves all of it */
    int from;             /* the one of those 32 that the walk begins with: those before it come last */
    int left;             /* how many 32s are still to come, where the walk goes round (FA__ROUND_TRIP) */
    int masked;           /* the latest tile is one that the mask looks at */
#if FA__MASK_NEEDS & FA__NEED_SPAN
    fa_range seen_by_all[FA__READERS]; /* keys, not tiles, that all queries of a part see */
#endif
} FA__LOOP(_walk);

/* All lanes of a warp call: under fa_span they look at its queries together. */
FA__FN void FA__LOOP(_walk_start)(FA__LOOP(_walk) * walk, const FA__PARAMS *p, fa_box box, int lane) {
#if FA__MASK_NEEDS & FA__NEED_SPAN
    fa__spans spans = fa__no_spans();
    FA__UNROLL
    for (int part = 0; part < FA__READERS; part++) {
        const fa__spans of = p->args.seqlen_k > 0 ? FA__LOOP(_spans_of_warp)(FA__LOOP(_part_of)(box, part), FA__LOOP(_part_rows), lane) : fa__no_spans();
        spans.any = fa__range(fa__min(spans.any.begin, of.any.begin), fa__max(spans.any.end, of.any.end));
        walk->seen_by_all[part] = of.all;
    }
    const fa_range tiles = FA__LOOP(_tiles_of)(fa__spans_keys(spans, box.keys));
#else
    const fa_range tiles = FA__LOOP(_tiles)(p, box);
    (void)lane;
#endif
    int diagonal = (box.queries.end - 1 + fa__shift(&p->args)) / FA_BLOCK_N - tiles.begin;
    walk->begin = tiles.begin;
    walk->count = tiles.end - tiles.begin;
    walk->diagonal = fa__min(diagonal, walk->count - 1);
    walk->before = -FA__LANES;
    walk->visit = walk->full = 0;
    walk->masked = walk->from = 0;
}

/* The order of the tiles: ascending; or, where the schedule has FA__LINES (with ALiBi), from the diagonal back to
 * the first, and then those beyond the diagonal. */
FA__FN int FA__LOOP(_walk_tile)(const FA__LOOP(_walk) * walk, int i) {
    return walk->begin + (FA__LINES && i <= walk->diagonal ? walk->diagonal - i : i);
}

/* The keys of a tile. (Unsigned: lanes beyond the last tile ask, too, whose numbers may be too large.) */
FA__FN fa_range FA__LOOP(_keys_of_tile)(const FA__PARAMS *p, int tile) {
    const uint32_t begin = (uint32_t)tile * FA_BLOCK_N;
    return fa__range((int)begin, fa__min((int)(begin + FA_BLOCK_N), p->args.seqlen_k));
}

/* Those of the 32 tiles that come next, of which there must be one: from the one that the walk began with on, or
 * else the others. */
FA__FN uint32_t FA__LOOP(_walk_ahead)(const FA__LOOP(_walk) * walk) {
    const uint32_t later = walk->visit >> walk->from << walk->from;
    return later ? later : walk->visit;
}
/* The next of them. */
FA__FN int FA__LOOP(_walk_take)(FA__LOOP(_walk) * walk) {
    const uint32_t ahead = FA__LOOP(_walk_ahead)(walk);
    const int bit = FA__OP(lowest_bit)(ahead);
    walk->visit ^= ahead & (0u - ahead);
    walk->masked = !(walk->full >> bit & 1);
    return FA__LOOP(_walk_tile)(walk, walk->before + bit);
}
