/* attention_walk_loop.h: which tile comes next in the schedule for every GPU. All threads of a block classify tiles
 * together. */
#include <fa/kernel/attention_walk.h>

/* As many tiles are classified at once as there are threads, with two exceptions. Those of a band are classified one by
 * one where that saves registers. The first ones of documents, eight times as many as there are threads, are classified
 * by warps whose lanes look at ids together: registers suffice for that where O is narrow, with two stages (but not
 * before sm_90 with a bias at 128). */
#define FA__WORDS (FA__MASK_NEEDS & FA__NEED_DOCUMENT && FA__IS_HALF && FA__WIDEST <= 192 ? 8 * FA_WARPS : FA_WARPS)
#define FA__BY_WARPS                             \
    (FA__WORDS > FA_WARPS && FA__STAGES == 2 && \
     !(FA__BEFORE_90 && FA__SCORE_NEEDS == FA__NEED_BIAS && FA__WIDEST > 96 && FA__WIDEST <= 128))
#define FA__JUDGES_MANY (FA__HAS_MASK && !(FA__MASK_IS_BAND && (FA__AFTERWARDS || (FA__ANEW && FA__HAS_SCORE && !FA__BEFORE_90))))

/* The query block, recomputed from the number of the thread block (FA__ANEW). */
FA__FN fa_box FA__LOOP(_box_anew)(const FA__PARAMS *p) {
    return FA__ATTN(__box)(p, (uint32_t)FA__OP(block_anew)(), FA_BLOCK_M);
}

/* The classes of the next tiles, in shared memory: of one size whichever way they are found, since the host does not
 * know the target. */
typedef struct FA__LOOP(_judged) {
    uint32_t visit[FA__WORDS], full[FA__WORDS];
} FA__LOOP(_judged);
#if FA__HAS_MASK
#define FA__JUDGED(shared) &(shared)->judged
#else
#define FA__JUDGED(shared) NULL
#endif

#if FA__BY_WARPS
/* The classes of the walk's first tiles, as many as there are bits in FA__WORDS. All lanes of a warp look at a
 * tile's ids side by side; a lane by itself would read them far apart. All lanes make the same number of iterations:
 * redux waits for all. */
FA__FN void FA__LOOP(_judge_first)(const FA__LOOP(_walk) * walk, const FA__PARAMS *p, fa_box box,
                                   FA__LOOP(_judged) * judged, int thread) {
    enum { FA__BATCH = 8 }; /* tiles whose loads do not wait for each other */
    const int lane = thread % FA__LANES;
    const fa__ids of_queries = FA__LOOP(_ids_of_queries)(box, FA_BLOCK_M, lane);
    for (int word = thread / FA__LANES; word < FA__WORDS && word * FA__LANES < walk->count; word += FA_WARPS) {
        const int first = word * FA__LANES, tile = FA__LOOP(_walk_tile)(walk, first + lane);
        fa__ids of_keys = of_queries;
        for (int j = 0; j < FA__LANES && first + j < walk->count; j += FA__BATCH) {
            fa__ids of[FA__BATCH];
            FA__UNROLL
            for (int k = 0; k < FA__BATCH; k++) {
                int key0 = FA__LOOP(_walk_tile)(walk, fa__min(first + j + k, walk->count - 1)) * FA_BLOCK_N;
                of[k] = FA__LOOP(_ids_of_lane)(fa__document_keys(box), key0, p->args.seqlen_k - 1, FA_BLOCK_N, lane);
            }
            FA__UNROLL
            for (int k = 0; k < FA__BATCH; k++) {
                of[k] = FA__LOOP(_ids_of_warp)(of[k]);
                if (j + k == lane) of_keys = of[k];
            }
        }
        fa_tile_class of = FA_EMPTY;
        if (first + lane < walk->count) {
            box.keys = FA__LOOP(_keys_of_tile)(p, tile);
            of = fa__document_class(box, of_queries, of_keys, FA__MASK_NEEDS & FA__WITH_CAUSAL);
        }
        uint32_t visit = FA__OP(ballot)(of != FA_EMPTY), full = FA__OP(ballot)(of == FA_FULL);
        judged->visit[word] = visit;
        judged->full[word] = full;
    }
    FA__OP(barrier)();
}
#endif

/* The next tile that holds a visible element, or -1. */
FA__FN int FA__LOOP(_walk_next)(FA__LOOP(_walk) * walk, const FA__PARAMS *p, fa_box box, FA__LOOP(_judged) * judged,
                                int thread) {
#if FA__JUDGES_MANY
    while (!walk->visit) {
#if FA__ANEW /* of the walk only the next tiles and the diagonal have been kept: the rest is recomputed, too */
        FA__LOOP(_walk) start;
        box = FA__LOOP(_box_anew)(p);
        FA__LOOP(_walk_start)(&start, p, box, thread % FA__LANES);
        walk->begin = start.begin;
        walk->count = start.count;
#endif
        walk->before += FA__LANES;
        if (walk->before >= walk->count) return -1;
        int word = walk->before / FA__LANES, known = FA__BY_WARPS && word < FA__WORDS;
        if (!known) word %= FA_WARPS;
        if (!known && word == 0) {
            int i = walk->before + thread, tile = FA__LOOP(_walk_tile)(walk, i);
#if FA__MASK_NEEDS & FA__NEED_SPAN /* found once more, not held in registers */
            const fa__spans spans = FA__LOOP(_spans_of_warp)(box, FA_BLOCK_M, thread % FA__LANES);
            box.keys = FA__LOOP(_keys_of_tile)(p, tile);
            fa_tile_class of = i < walk->count ? fa__span_class(box, spans) : FA_EMPTY;
#else
            fa_tile_class of = i < walk->count ? FA__ATTN(__classify)(p, box, tile * FA_BLOCK_N, FA_BLOCK_N) : FA_EMPTY;
#endif
            uint32_t visit = FA__OP(ballot)(of != FA_EMPTY), full = FA__OP(ballot)(of == FA_FULL);
            FA__OP(barrier)(); /* the last words have been read */
            judged->visit[thread / FA__LANES] = visit;
            judged->full[thread / FA__LANES] = full;
            FA__OP(barrier)();
        }
        walk->visit = judged->visit[word];
        walk->full = judged->full[word];
    }
    return FA__LOOP(_walk_take)(walk);
#else
    (void)judged, (void)thread;
    int i = walk->before + FA__LANES;
    walk->before++;
    if (i >= walk->count) return -1;
    int tile = FA__LOOP(_walk_tile)(walk, i);
    walk->masked = FA__HAS_MASK && FA__ATTN(__classify)(p, box, tile * FA_BLOCK_N, FA_BLOCK_N) != FA_FULL;
    return tile;
#endif
}
#undef FA__JUDGES_MANY
