/* attention_order.h: in which order the teams of sm_90a, of which a thread block has one or two, work through the
 * query blocks: static, computed from the number of the team; or, where a mask reads memory and the user gives a
 * workspace, dynamic, by a counter in it. */

/* Without a mask all query blocks take equally long, and are dealt to the teams in turn. Under a mask they are dealt in rounds that go forwards
 * and backwards alternately, so that who gets a longer one in one round gets a shorter one in the next. Neighbours get blocks of the same head at
 * the same time, and so share K and V in the cache. Three parts follow each other, any of which may be empty:
 *
 * 1. Pairs of blocks of a head, one from either end: under a causal mask all of them take equally long. Of an odd number the one in the middle would
 *    be left, half as long, and where pairs and teams have a divisor in common, always for the same teams (three blocks on 132 teams: the longest
 *    share 1.33 of the mean); so then the second block is one of the next head.
 * 2. Blocks of which none is known to take longer than others, head after head: those of documents and spans; under a window all but those at its ends.
 * 3. The others, the longest of all heads first: mostly later blocks take longer, as under a causal mask. Going through all heads with each block
 *    would read K and V from memory for every one; so a strip of neighbouring blocks is taken of each head, then the next strip.
 *
 * After pairs there are still the last heads, about a round of pairs, for the third part, in strips of one block. Of what the benchmark times
 * that comes within 1% of an even share under a causal mask (3% at worst), and within 3% under windows and prefixes (6% where a team has but a few
 * blocks): tests/suites/order.c. Each team gets one block at least: there are no more teams than blocks, and dealing leaves none out. */
typedef struct FA__LOOP(_order) {
    uint32_t teams;                                  /* that have blocks: all of the launch, or all but the last */
    uint32_t across, pairs;                          /* how many heads, 1 or 2, share pairs, and how many */
    uint32_t paired_heads, all_pairs, ahead;         /* heads dealt in pairs; their pairs; how many teams have had one more than the others */
    uint32_t heads, items;                           /* dealt in single blocks, and how many blocks these are */
    uint32_t first, alike, all_alike;                /* of these a head's blocks that take equally long: the first, their number, and that of all heads */
    uint32_t others, strip, last_strip;              /* a head's others; how many of them a strip has, and the last strip */
    fa__divider by_pairs, by_alike, by_strips, by_strip, by_last_strip; /* by_strips: strips of all heads */
#if FA__COUNTED
    uint32_t *counter; /* how many blocks have been taken, beyond each team's first; or NULL */
#endif
} FA__LOOP(_order);

#define FA__ALL_ALIKE (FA__MASK_NEEDS & (FA__NEED_DOCUMENT | FA__NEED_SPAN)) /* known at compile time, as is that there are pairs: */
#define FA__IN_PAIRS (FA__MASK_IS_BAND || FA__MASK_IS_OWN)

#if FA__MASK_IS_BAND
/* How many keys the mask leaves to a block: the more, the nearer it is to those that see most. */
static FA_UNUSED int64_t FA__LOOP(_length)(const FA__PARAMS *p, uint32_t block) {
    fa_range keys = FA__CAT(FA_MASK, _keys)(FA__USER(p), FA__ATTN(__block)(p, 0, block, FA_BLOCK_M));
    return keys.begin < keys.end ? (int64_t)keys.end - keys.begin : 0;
}
/* The last block, on the way from one with `most` keys to `to`, that has as many. */
static FA_UNUSED uint32_t FA__LOOP(_last_alike)(const FA__PARAMS *p, uint32_t from, uint32_t to, int64_t most) {
    while (from != to) {
        const uint32_t middle = from < to ? to - (to - from) / 2 : to + (from - to) / 2;
        if (FA__LOOP(_length)(p, middle) == most) from = middle;
        else to = from < to ? middle - 1 : middle + 1;
    }
    return from;
}
#endif

/* Finds the blocks that take equally long; whether others are dealt in pairs. Under a band, by the length of up to
 * 64 blocks, and a tile more for a block's beginning and end: pairs differ if a fifth of the blocks are alike, or if
 * many see nothing, so that the longest takes more than 9/4 of the mean. */
FA__CALLED int FA__LOOP(_find_alike)(FA__LOOP(_order) * order, const FA__PARAMS *p) {
    order->first = 0;
    order->alike = FA__ALL_ALIKE ? (uint32_t)p->blocks_m : 0;
#if FA__MASK_IS_BAND
    enum { FA__SAMPLES = 64 };
    const uint32_t blocks = (uint32_t)p->blocks_m, step = (blocks + FA__SAMPLES - 1) / FA__SAMPLES;
    int64_t most = -1, sum = 0, count = 0;
    uint32_t longest = 0;
    for (uint32_t block = 0; block < blocks; block += step, count++) {
        const int64_t length = FA__LOOP(_length)(p, block);
        if (length > most) most = length, longest = block;
        sum += length + FA_BLOCK_N;
    }
    const uint32_t first = FA__LOOP(_last_alike)(p, longest, 0, most), alike = FA__LOOP(_last_alike)(p, longest, blocks - 1, most) + 1 - first;
    if (alike > 1 && alike >= blocks / 5) order->first = first, order->alike = alike;
    return !order->alike && (most + FA_BLOCK_N) * count * 4 <= sum * 9;
#else
    return FA__MASK_IS_OWN; /* FA__IN_PAIRS, of which clang says that it is constant */
#endif
}
FA__CALLED void FA__LOOP(_order_of)(FA__LOOP(_order) * order, const FA__PARAMS *p, uint32_t teams) {
    const uint32_t blocks = (uint32_t)p->blocks_m, all_heads = (uint32_t)p->args.batch * (uint32_t)p->args.heads;
    const int paired = FA__LOOP(_find_alike)(order, p);
    order->teams = teams;
    order->across = 1 + blocks % 2;
    order->pairs = blocks * order->across / 2;
    order->heads = all_heads;
    if (paired) { /* a little less than two blocks for each team, so that none gets two of the longest; a little more where a head has too many for that */
        order->heads = 2 * (teams - 1) / blocks;
        if (order->heads * blocks * 12 < 2 * teams * 11) order->heads = (2 * teams + blocks - 1) / blocks;
        if (order->heads > all_heads) order->heads = all_heads;
        if ((all_heads - order->heads) % order->across) order->heads = order->heads > 1 ? order->heads - 1 : 2;
    }
    order->paired_heads = all_heads - order->heads;
    order->all_pairs = order->paired_heads / order->across * order->pairs;
    order->ahead = order->all_pairs % teams;
    order->items = order->heads * blocks;
    order->all_alike = order->heads * order->alike;
    order->others = blocks - order->alike;
    /* A quarter of the others; single blocks where so few heads have less than two rounds of strips: they all run at
     * about the same time anyway. */
    order->strip = order->others < 16 ? 4 : order->others / 4;
    if (order->strip > order->others) order->strip = order->others;
    if (paired || order->strip * (uint64_t)order->heads < 2 * (uint64_t)teams) order->strip = 1;
    order->last_strip = order->others % order->strip ? order->others % order->strip : order->strip;
    order->by_pairs = fa__divider_of(order->pairs);
    order->by_alike = fa__divider_of(order->alike ? order->alike : 1);
    order->by_strips = fa__divider_of(order->strip * order->heads);
    order->by_strip = fa__divider_of(order->strip);
    order->by_last_strip = fa__divider_of(order->last_strip);
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
    uint32_t item;
    fa_box none;
    memset(&none, 0, sizeof none);
    none.batch = -1;
#if !FA__HAS_MASK
    item = at->round++ * order->teams + at->me;
    return item < p->items ? FA__ATTN(__box)(p, item, FA_BLOCK_M) : none;
#else
#if FA__COUNTED
    if (!FA__ALL_ALIKE && order->counter) { /* the order in which the hardware would start thread blocks: later blocks first, as they may be longer */
        item = FA__LOOP(_item)(order, at);
        return item < p->items ? FA__ATTN(__box)(p, item, FA_BLOCK_M) : none;
    }
#endif
#if FA__IN_PAIRS
    if (at->pair < order->all_pairs) {
        const uint32_t unit = fa__divide(at->pair, order->by_pairs), block = at->pair - unit * order->pairs, head = unit * order->across, second = at->second;
        at->second ^= 1;
        if (!second) return FA__ATTN(__block)(p, head, block, FA_BLOCK_M);
        at->pair += order->teams;
        return FA__ATTN(__block)(p, head + order->across - 1, (uint32_t)p->blocks_m - 1 - block, FA_BLOCK_M);
    }
#endif
    do item = FA__LOOP(_item)(order, at);
    while (item < order->ahead);
    item -= order->ahead;
    if (item >= order->items) return none;
    uint32_t head, block;
    if (FA__ALL_ALIKE || item < order->all_alike) {
        head = fa__divide(item, order->by_alike);
        block = order->first + item - head * order->alike;
    } else {
        item -= order->all_alike;
        const uint32_t strip = fa__divide(item, order->by_strips), begin = strip * order->strip, last = begin + order->strip >= order->others;
        item -= begin * order->heads;
        head = fa__divide(item, last ? order->by_last_strip : order->by_strip);
        block = begin + item - head * (last ? order->last_strip : order->strip);
        block = block < order->first ? order->first - 1 - block : block + order->alike;
    }
    return FA__ATTN(__block)(p, order->paired_heads + head, block, FA_BLOCK_M);
#endif
}
#undef FA__ALL_ALIKE
#undef FA__IN_PAIRS
