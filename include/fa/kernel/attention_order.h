/* attention_order.h: in which order the teams of sm_90a, of which a thread block has one or two, work through the query
 * blocks: static, computed from the number of the team; or, where a mask reads memory and the user gives a workspace, dynamic,
 * by a counter in it. */

/* Without a mask all query blocks take equally long, and are dealt to the teams in turn. So they are,
 * too, under a mask that leaves each of them about as much (a window, documents, spans), but in rounds that go forwards and
 * backwards alternately, with neighbours at the same time. Under other masks later blocks mostly take longer, as under a
 * causal one. There a team takes pairs of blocks of a head, one from either end, and all pairs take equally long; heads
 * follow each other, so that neighbours share K and V in the cache. The last heads, about a round of pairs, are dealt out as single blocks, the
 * longest first, forwards and backwards alternately. That comes within 1% of an even share in most of what the benchmark
 * times (3% at worst) without a counter in memory. All blocks are dealt out singly where many see
 * nothing (causal queries before the first key): their pairs differ. Each team gets one block at least: there are no more
 * teams than blocks, and dealing leaves none out. */
typedef struct FA__LOOP(_order) {
    uint32_t teams; /* that have blocks: all of the launch, or all but the last */
    uint32_t even;  /* blocks take about equally long */
    uint32_t pairs, front_heads, front, rest_heads; /* pairs of a head; heads dealt in pairs, and their pairs; the other heads */
    fa__divider by_blocks, by_pairs, by_rest_heads;
#if FA__COUNTED
    uint32_t *counter; /* how many blocks have been taken, beyond each team's first; or NULL */
#endif
} FA__LOOP(_order);

enum { FA__LOOP(_alike), FA__LOOP(_paired), FA__LOOP(_uneven) }; /* how long blocks take */
#define FA__ALL_ALIKE (FA__MASK_NEEDS & (FA__NEED_DOCUMENT | FA__NEED_SPAN)) /* known at compile time */

/* How long blocks take. Under a band, by the keys that it leaves to up to 64 of them, and a tile more: alike if half of these take at least
 * 7/8 of the longest; uneven if the longest takes more than 9/4 of their mean. */
static FA_UNUSED int FA__LOOP(_spread)(const FA__PARAMS *p) {
#if FA__MASK_IS_BAND
    enum { FA__SAMPLES = 64 };
    int64_t length[FA__SAMPLES], most = 0, sum = 0;
    uint32_t blocks = (uint32_t)p->blocks_m, step = (blocks + FA__SAMPLES - 1) / FA__SAMPLES, count = 0, longest = 0;
    for (uint32_t block = 0; block < blocks; block += step, count++) {
        fa_range keys = FA__CAT(FA_MASK, _keys)(FA__USER(p), FA__ATTN(__block)(p, 0, block, FA_BLOCK_M));
        length[count] = keys.begin < keys.end ? keys.end - keys.begin + FA_BLOCK_N : FA_BLOCK_N;
        most = length[count] > most ? length[count] : most;
        sum += length[count];
    }
    for (uint32_t i = 0; i < count; i++) longest += length[i] * 8 >= most * 7;
    return longest * 2 >= count ? FA__LOOP(_alike) : most * count * 4 > sum * 9 ? FA__LOOP(_uneven) : FA__LOOP(_paired);
#else
    (void)p;
    return FA__ALL_ALIKE ? FA__LOOP(_alike) : FA__LOOP(_paired);
#endif
}
FA__CALLED void FA__LOOP(_order_of)(FA__LOOP(_order) * order, const FA__PARAMS *p, uint32_t teams) {
    uint32_t heads = (uint32_t)p->args.batch * (uint32_t)p->args.heads;
    int spread = FA__LOOP(_spread)(p);
    order->teams = teams;
    order->even = spread == FA__LOOP(_alike);
    order->pairs = ((uint32_t)p->blocks_m + 1) / 2;
    /* Heads dealt out singly: a little less than two blocks for each team, so that none gets two of the longest; a little more where a head
     * has too many blocks for that. */
    order->rest_heads = (teams - 1) / order->pairs;
    if (order->rest_heads * order->pairs * 12 < teams * 11) order->rest_heads = (teams + order->pairs - 1) / order->pairs;
    if (order->rest_heads > heads || spread == FA__LOOP(_uneven)) order->rest_heads = heads;
    order->front_heads = heads - order->rest_heads;
    order->front = order->front_heads * order->pairs;
    order->by_blocks = fa__divider_of((uint32_t)p->blocks_m);
    order->by_pairs = fa__divider_of(order->pairs);
    order->by_rest_heads = fa__divider_of(order->rest_heads);
#if FA__COUNTED
    order->counter = (uint32_t *)p->args.workspace;
#endif
}

/* Where a team is in the order; `me` is its number. */
typedef struct FA__LOOP(_course) {
    uint32_t me, pair, second, round;
} FA__LOOP(_course);

/* This team's item of the next round: rounds go forwards and backwards alternately. With a counter it is the
 * next item that nobody has taken. */
FA__FN uint32_t FA__LOOP(_item)(const FA__LOOP(_order) * order, FA__LOOP(_course) * at) {
    uint32_t all = order->teams, me = at->me, round = at->round++;
#if FA__COUNTED
    if (order->counter && round) return all + fa_sm90_take_number(order->counter);
#endif
    return round * all + (round & 1 ? all - 1 - me : me);
}

/* The next block of queries, or one whose batch is -1. All lanes of a warp ask together. */
FA__FN fa_box FA__LOOP(_next_block)(const FA__PARAMS *p, const FA__LOOP(_order) * order, FA__LOOP(_course) * at) {
    uint32_t all = order->teams;
    fa_box none;
    memset(&none, 0, sizeof none);
    none.batch = -1;
#if FA__HAS_MASK
    if (FA__ALL_ALIKE || order->even) {
        uint32_t item = FA__LOOP(_item)(order, at), head = fa__divide(item, order->by_blocks);
        return item < p->items ? FA__ATTN(__block)(p, head, item - head * (uint32_t)p->blocks_m, FA_BLOCK_M) : none;
    }
#if FA__COUNTED
    if (order->counter) { /* the order in which the hardware would start thread blocks: later blocks first, as they may be longer */
        uint32_t item = FA__LOOP(_item)(order, at);
        return item < p->items ? FA__ATTN(__box)(p, item, FA_BLOCK_M) : none;
    }
#endif
    while (at->pair < order->front) {
        uint32_t head = fa__divide(at->pair, order->by_pairs), block = at->pair - head * order->pairs;
        uint32_t other = (uint32_t)p->blocks_m - 1 - block, second = at->second;
        at->second ^= 1;
        if (second) at->pair += all;
        if (!second) return FA__ATTN(__block)(p, head, block, FA_BLOCK_M);
        if (other != block) return FA__ATTN(__block)(p, head, other, FA_BLOCK_M);
    }
    uint32_t ahead = order->front % all; /* so many teams have had a pair more */
    for (;;) {
        uint32_t item = FA__LOOP(_item)(order, at);
        if (item < ahead) continue;
        item -= ahead;
        uint32_t block = fa__divide(item, order->by_rest_heads);
        if (block >= (uint32_t)p->blocks_m) return none;
        return FA__ATTN(__block)(p, order->front_heads + item - block * order->rest_heads, block, FA_BLOCK_M);
    }
#else
    uint32_t item = at->round++ * all + at->me;
    return item < p->items ? FA__ATTN(__box)(p, item, FA_BLOCK_M) : none;
#endif
}
#undef FA__ALL_ALIKE
