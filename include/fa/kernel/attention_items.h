/* attention_items.h: the work items of a call, each a block of queries of a head: their order, the keys that the
 * mask leaves them, and how many tiles those are. */
#define FA__PASSES 4 /* the last pass, the only one that a causal mask leaves unbalanced, is then a sixteenth of the work */
#define FA__SECTION_BYTES ((int64_t)24 << 20) /* of K and V: about half of an H100's L2 cache (50 MB), 60% of an A100's */
/* Whether work items go through heads in sections: under a mask, or where heads may share a bias (which is no
 * bottleneck in fp32, nor on the CPU, where sections are 1.5% slower). */
#define FA__MAY_SHARE_BIAS (FA__ARCH != FA_CPU && FA__SCORE_NEEDS == FA__NEED_BIAS && FA__IS_HALF)
#define FA__IN_SECTIONS (FA__HAS_MASK || FA__MAY_SHARE_BIAS)

/* The class of the tile of block_n keys that starts at key0. */
FA_HOOK fa_tile_class FA__ATTN(__classify)(const FA__PARAMS *p, fa_box box, int key0, int block_n) {
#if FA__HAS_MASK
    box.keys.begin = key0;
    box.keys.end = p->args.seqlen_k - key0 < block_n ? p->args.seqlen_k : key0 + block_n;
    return FA__CAT(FA_MASK, _tile)(FA__USER(p), box); /* not declared? FA_MASK_FROM_KEEP makes it of a keep (fa/mask.h) */
#else
    (void)p, (void)box, (void)key0, (void)block_n;
    return FA_FULL;
#endif
}

/* Query blocks are counted from the last one; `head` counts through the whole batch: sequence after sequence, or,
 * where these share a bias, head after head. */
FA_HOOK fa_box FA__ATTN(__block)(const FA__PARAMS *p, uint32_t head, uint32_t block, int block_m) {
    int begin = (p->blocks_m - 1 - (int)block) * block_m;
    fa_box box;
    box.args = &p->args;
    const int swapped = FA__MAY_SHARE_BIAS && p->sequences_first, outer = (int)fa__divide(head, p->by_heads);
    const int inner = (int)head - outer * (swapped ? p->args.batch : p->args.heads);
    box.batch = swapped ? inner : outer;
    box.head = swapped ? outer : inner;
    box.head_kv = (int)fa__divide((uint32_t)box.head, p->by_group);
    box.queries.begin = begin;
    box.queries.end = p->args.seqlen_q - begin < block_m ? p->args.seqlen_q : begin + block_m;
    box.keys.begin = 0;
    box.keys.end = p->args.seqlen_k;
    return box;
}

/* The queries and the head of a work item. Without a mask, the query blocks of a head follow each other and share
 * its K and V in the cache. With one, later query blocks come first: under a causal mask they take longest, and the
 * short ones fill the end. Going through all heads that way would read K and V from memory again for every block; so
 * blocks are taken in FA__PASSES passes, and within a pass heads are taken in sections whose K and V fit in the
 * cache. The same order serves a bias that all heads share, or all sequences, and that does not fit in the cache:
 * those of a section then share each block's part of it. */
FA_HOOK fa_box FA__ATTN(__box)(const FA__PARAMS *p, uint32_t item, int block_m) {
    uint32_t head, row;
#if FA__IN_SECTIONS
    uint32_t all = (uint32_t)p->args.batch * (uint32_t)p->args.heads, pass = fa__divide(item, p->by_pass);
    int last = (int)pass == p->passes - 1;
    uint32_t blocks = (uint32_t)(last ? p->last_pass_blocks : p->pass_blocks), in_pass = item - pass * all * (uint32_t)p->pass_blocks;
    uint32_t section = fa__divide(in_pass, last ? p->by_last_pass_section : p->by_section), first = section * (uint32_t)p->section;
    uint32_t in_section = in_pass - first * blocks, whole = all - first >= (uint32_t)p->section;
    uint32_t in_pass_row = fa__divide(in_section, whole ? p->by_section_heads : p->by_last_heads);
    head = first + in_section - in_pass_row * (whole ? (uint32_t)p->section : all - first);
    row = in_pass_row + pass * (uint32_t)p->pass_blocks;
#else
    head = fa__divide(item, p->by_blocks_m);
    row = item - head * (uint32_t)p->blocks_m;
#endif
    return FA__ATTN(__block)(p, head, row, block_m);
}

/* The keys of a box that its mask leaves visible: no schedule looks at others. The range may be empty, with an end
 * before its beginning. */
FA_HOOK fa_range FA__ATTN(__keys)(const FA__PARAMS *p, fa_box box) {
    (void)p;
    fa_range keys = box.keys;
#if FA__HAS_MASK
    if (keys.begin < keys.end) keys = FA__CAT(FA_MASK, _keys)(FA__USER(p), box); /* not declared? FA_MASK_FROM_KEEP */
    if (FA__MASK_IS_OWN) { /* which may not have clipped the range */
        keys.begin = fa__min(fa__max(keys.begin, box.keys.begin), box.keys.end); /* of an empty range, too */
        keys.end = fa__min(keys.end, box.keys.end);
    }
#endif
    return keys;
}

/* Visited and masked tiles of a work item, which NAME_plan() sums up. */
FA_HOOK void FA__ATTN(__count)(const FA__PARAMS *p, uint32_t item, int block_m, int block_n, int64_t *visited, int64_t *masked) {
    const fa_box box = FA__ATTN(__box)(p, item, block_m);
    const fa_range keys = FA__ATTN(__keys)(p, box);
    if (keys.begin >= keys.end) return;
#if FA__MASK_IS_BAND /* without asking for each tile: a tile is masked unless every query sees all of it */
    fa_box first = box, last = box;
    first.queries.end = box.queries.begin + 1, last.queries.begin = box.queries.end - 1;
    const int64_t seen_begin = FA__ATTN(__keys)(p, last).begin, seen_end = FA__ATTN(__keys)(p, first).end, ends = p->args.seqlen_k;
    const int64_t tiles = (int64_t)(keys.end - 1) / block_n - keys.begin / block_n + 1;
    const int64_t full = (seen_end < ends ? seen_end : ends + block_n - 1) / block_n - (seen_begin + block_n - 1) / block_n;
    *visited += tiles;
    *masked += full > 0 ? tiles - full : tiles;
#else
    for (int64_t key0 = keys.begin - keys.begin % block_n; key0 < keys.end; key0 += block_n) {
        fa_tile_class of = FA__ATTN(__classify)(p, box, (int)key0, block_n);
        *visited += of != FA_EMPTY;
        *masked += of == FA_PARTIAL;
    }
#endif
}

/* Whether the bias of so many heads is too large for the cache to keep until it is read again. */
static FA_UNUSED int FA__ATTN(__large_bias)(const fa_attention_args *a, int heads) {
    return FA__MAY_SHARE_BIAS && (double)a->seqlen_q * a->seqlen_k * heads * (double)sizeof(FA__ELEMENT) > 2.0 * FA__SECTION_BYTES;
}

/* Derives the order of the work items, and their number, from p->blocks_m. */
FA__CALLED void FA__ATTN(__order)(FA__PARAMS *p) {
    const fa_attention_args *a = &p->args;
    int64_t heads = (int64_t)a->batch * a->heads, blocks = p->blocks_m;
    p->items = (uint32_t)(blocks * heads);
    if (p->items == 0) return;
    p->by_blocks_m = fa__divider_of((uint32_t)blocks);
    p->sequences_first = a->batch > 1 && a->bias_stride_batch == 0 && a->bias_stride_head != 0 && FA__ATTN(__large_bias)(a, a->heads);
    p->by_heads = fa__divider_of((uint32_t)(p->sequences_first ? a->batch : a->heads));
    p->by_group = fa__divider_of((uint32_t)(a->heads / a->heads_kv));
    int64_t bytes = (int64_t)a->seqlen_k * (FA_HEAD_DIM + FA_HEAD_DIM_V) * (int64_t)sizeof(FA__ELEMENT) + 1; /* of K and V of a head */
    int64_t fit = FA__SECTION_BYTES / bytes * (p->sequences_first ? 1 : a->heads / a->heads_kv);
    fit = fit < 1 ? 1 : fit > heads ? heads : fit;
    int passes = FA__PASSES;
    const int all_share = a->bias_stride_head == 0 && FA__ATTN(__large_bias)(a, 1);
    if (!FA__HAS_MASK && !all_share) fit = fa__min((int)fit, p->sequences_first ? a->batch : 1), passes = 1; /* head by head */
    int64_t sections = (heads + fit - 1) / fit, section = (heads + sections - 1) / sections; /* of equal size */
    p->section = (int)section;
    p->pass_blocks = (int)((blocks + passes - 1) / passes);
    p->passes = (int)((blocks + p->pass_blocks - 1) / p->pass_blocks);
    p->last_pass_blocks = (int)blocks - (p->passes - 1) * p->pass_blocks;
    p->by_pass = fa__divider_of((uint32_t)(heads * p->pass_blocks));
    p->by_section = fa__divider_of((uint32_t)(section * p->pass_blocks));
    p->by_last_pass_section = fa__divider_of((uint32_t)(section * p->last_pass_blocks));
    p->by_section_heads = fa__divider_of((uint32_t)section);
    p->by_last_heads = fa__divider_of((uint32_t)(heads % section ? heads % section : section));
}
