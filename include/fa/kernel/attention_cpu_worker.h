/* attention_cpu_worker.h: the schedule of the forward on one core, for the instruction set FA__ISA.
 *
 * A work item is a group of neighbouring blocks of FA_BLOCK_M queries of one head. Each tile of FA_BLOCK_N keys is
 * brought into the core's cache once, as floats (for AMX as FA_BF16), for all blocks of the group that the mask lets
 * see it; S lives in the L1 cache between its product, the softmax and the next product. A core computes as it
 * loads: there is nothing to overlap, so the schedule is the algorithm as written (FlashAttention-2, Dao, arXiv
 * 2307.08691). */

#define FA__WIDE 1 /* finite scores of any size (fa/softmax.h, FA_WIDE) */
#include <fa/kernel/attention_parts.h>

/* With AMX only tiles and products are others than with AVX-512. Hooks, masks and the softmax are the same and are
 * compiled once: FA__COMMON(x) is the name in the variant that has them, and there the function is called, not
 * inlined. */
#if defined(FA__AMX)
#define FA__COMMON(x) FA__ATTN(FA__CAT(_cpu_avx512, x))
#else
#define FA__COMMON(x) FA__LOOP(x)
#endif
#if FA__HAS_AMX && FA__ISA == FA__ISA_AVX512
#define FA__FN_COMMON FA__FN_CALLED
#else
#define FA__FN_COMMON FA__FN
#endif

/* A block of queries. */
typedef struct FA__LOOP(_query_block) {
    FA__LOOP(_qtile_tile) q;
    FA__LOOP(_pv_acc) o;
    FA__COMMON(_softmax_state) state;
} FA__LOOP(_query_block);

/* What a core works on, on its thread's stack: a tile that the blocks of a group share, the scores and weights of
 * the one block that meets it at the moment, and the blocks themselves. Threads share none of it. */
typedef struct FA__LOOP(_local) {
    FA__LOOP(_ktile_tile) k;
    FA__LOOP(_vtile_tile) v;
    FA__LOOP(_qk_acc) s;
    FA__LOOP(_pv_a) weights;
    FA__LOOP(_query_block) blocks[FA__GROUP];
} FA__LOOP(_local);

/* ---- scores: hook, mask and the end of the sequence; the softmax ---- */

#if !defined(FA__AMX)

#if FA__HAS_MASK || FA__HAS_SCORE
/* Applies the score hook, if `hooked`, and then the mask, if `masked`, to rows `first` to `end` - 1 of the block's
 * scores; at.query, at.key and at.distance are set here. Hooks see neither a query nor a key beyond the end. `few`:
 * rows that are left over, or those of the last tile. */
FA__FN void FA__LOOP(_modify_rows)(float *s, const FA__PARAMS *p, fa_index at, fa_box box, int first, int end,
                                   int hooked, int masked, int few) {
    int cols = box.keys.end - box.keys.begin;
    float distance[FA_BLOCK_M]; /* of the first key */
    for (int r = 0; r < FA_BLOCK_M; r++)
        distance[r] = (float)(box.keys.begin - box.queries.begin - r - fa__shift(&p->args));
    for (int c = 0; c < cols; c++, s += FA_BLOCK_M)
        for (int r = first; r < end; r++) {
            float x = s[r];
            at.query = box.queries.begin + r;
            at.key = box.keys.begin + c;
            at.distance = distance[r] + (float)c;
#if FA__HAS_SCORE
            at.checked = !!(FA__SCORE_NEEDS);
            if (hooked) x = FA__SCORE_OF(p, x, at);
#endif
#if FA__HAS_MASK
            at.checked = !!(FA__MASK_NEEDS);
            if (masked) x = FA__CAT(FA_MASK, _keep)(FA__USER(p), at) ? x : -INFINITY;
#endif
            s[r] = x;
            if (few) __asm__ volatile(""); /* not worth the time to compile a vectorised copy */
        }
    (void)hooked, (void)masked;
}
#endif

#if FA__SCORE_NEEDS == FA__NEED_BIAS
/* Prefetches the bias of a tile, which comes from far away, row by row: it arrives while Q K^T is computed, in the L2
 * cache, since the L1 cache has no room for it beside S and the product. */
FA__FN void FA__LOOP(_prefetch_bias)(const FA__PARAMS *p, fa_box box) {
    const fa_attention_args *a = &p->args;
    const FA__ELEMENT *bias = FA__LOOP(_bias_of_head)(p, box);
    for (int row = box.queries.begin; row < box.queries.end; row++)
        for (int key = box.keys.begin; key < box.keys.end; key += 64 / (int)sizeof *bias)
            __builtin_prefetch(bias + row * a->bias_stride_query + key, 0, 2);
}

/* The hook fa_bias for whole vectors of rows. A vector has the scores of one key and several queries, but neighbours
 * in memory are the biases of one query: a loop over the hook would gather them one by one, so here pieces of the
 * bias are transposed. */
FA__FN void FA__LOOP(_add_bias)(float *s, const FA__PARAMS *p, fa_box box, int rows) {
    enum { FA__FLOATS = FA__CPU_LANES(FA__ISA), FA__PIECE = FA_BLOCK_N <= 64 ? FA_BLOCK_N : FA_BLOCK_N % 64 ? 16 : 64 }; /* columns at once */
    const fa_attention_args *a = &p->args;
    const FA__ELEMENT *bias = FA__LOOP(_bias_of_head)(p, box) + box.queries.begin * a->bias_stride_query + box.keys.begin;
    const FA__CPU_OP(vec) scale = FA__CPU_OP(splat)(p->scale);
    for (int row = 0; row < rows; row += FA__FLOATS, bias += FA__FLOATS * a->bias_stride_query)
        for (int first = 0; first < FA_BLOCK_N; first += FA__PIECE) {
#if FA__IS_HALF
            float from[FA__FLOATS * FA__PIECE];
            for (int r = 0; r < FA__FLOATS; r++)
                for (int c = 0; c < FA__PIECE; c += 8)
                    FA__LOOP(_ktile__widen8)(from + r * FA__PIECE + c, bias + r * a->bias_stride_query + first + c);
            const int64_t stride = FA__PIECE;
#else
            const float *from = bias + first;
            const int64_t stride = a->bias_stride_query;
#endif
            for (int c = 0; c < FA__PIECE; c += 4) {
                FA__CPU_OP(vec) column[4];
                FA__CPU_OP(columns)(column, from + c, stride);
                for (int i = 0; i < 4; i++) {
                    FA__CPU_OP(vec) *at = (FA__CPU_OP(vec) *)(s + (first + c + i) * FA_BLOCK_M + row);
                    *at = FA__CPU_OP(horner)(*at, scale, column[i]);
                }
            }
        }
}
#endif

/* The scores of a tile, some of which the mask hides if `masked`, a compile-time constant; those beyond the end of
 * the keys are masked. */
FA__FN void FA__LOOP(_modify)(float *s, const FA__PARAMS *p, fa_index at, fa_box box, int masked) {
    int cols = box.keys.end - box.keys.begin;
#if FA__HAS_MASK || FA__HAS_SCORE
    if (FA__HAS_SCORE || masked) {
        int rows = box.queries.end - box.queries.begin, whole = rows & ~15; /* of these, vectors without a remainder */
#if FA__SCORE_NEEDS == FA__NEED_BIAS
        if (cols < FA_BLOCK_N) whole = 0;
        FA__LOOP(_add_bias)(s, p, box, whole);
        if (masked) FA__LOOP(_modify_rows)(s, p, at, box, 0, whole, 0, masked, 0);
#else
        FA__LOOP(_modify_rows)(s, p, at, box, 0, whole, 1, masked, 0);
#endif
        if (whole < rows) {
            __asm__("" : "+r"(rows)); /* or the few rows would be unrolled */
            FA__LOOP(_modify_rows)(s, p, at, box, whole, rows, 1, masked, 1);
        }
    }
#else
    (void)p, (void)at, (void)masked;
#endif
    for (int i = cols * FA_BLOCK_M; i < FA_BLOCK_N * FA_BLOCK_M; i++) s[i] = -INFINITY;
}

FA__FN_COMMON void FA__LOOP(_apply)(float *s, const FA__PARAMS *p, fa_index at, fa_box box, int masked) {
    if (FA__HAS_MASK && masked) FA__LOOP(_modify)(s, p, at, box, 1);
    else FA__LOOP(_modify)(s, p, at, box, 0);
}
FA__FN_COMMON int FA__LOOP(_weigh)(FA__LOOP(_softmax_state) * state, float *s, float scale_log2, float *alpha) {
    return FA__LOOP(_softmax_update)(state, s, scale_log2, alpha);
}
FA__FN_COMMON void FA__LOOP(_finish)(const FA__LOOP(_softmax_state) * state, float scale, float *inverse, float *lse) {
    FA__LOOP(_softmax_finish)(state, scale, inverse, lse);
}
#endif

/* ---- the schedule ---- */

/* One query block meets one tile of keys. Products leave out queries and keys that do not exist, but for those of
 * panels (cpu/mma.h): with AVX2 a query by itself takes half of the time of a block, and 77 keys take two thirds of
 * that of two tiles. */
FA__FN void FA__LOOP(_step)(const FA__PARAMS *p, fa_index at, fa_box box, FA__LOOP(_local) * local,
                            FA__LOOP(_query_block) * block, fa_tile_class of) {
    float alpha[FA_BLOCK_M];
    const int rows = box.queries.end - box.queries.begin, keys = box.keys.end - box.keys.begin;
#if FA__SCORE_NEEDS == FA__NEED_BIAS
    FA__COMMON(_prefetch_bias)(p, box);
#endif
    FA__LOOP(_qk__product_of)(&local->s, &block->q, &local->k, rows, keys);
    FA__COMMON(_apply)(local->s.x, p, at, box, of == FA_PARTIAL);
    if (FA__COMMON(_weigh)(&block->state, local->s.x, p->scale_log2, alpha))
        FA__LOOP(_pv_scale_rows)(&block->o, alpha);
    FA__LOOP(_pv_pack)(&local->weights, local->s.x);
    FA__LOOP(_pv__mma_of)(&block->o, &local->weights, &local->v, rows, keys);
}

/* Block number `i` of `box`, of FA_BLOCK_M queries. */
FA__FN fa_box FA__LOOP(_block)(fa_box box, int i) {
    box.queries.begin += i * FA_BLOCK_M;
    box.queries.end = fa__min(box.queries.begin + FA_BLOCK_M, box.queries.end);
    return box;
}

FA__FN void FA__LOOP(_run)(const FA__PARAMS *p, fa_box box, FA__LOOP(_local) * local) {
    const fa_attention_args *a = &p->args;
    FA__LOOP(_view) view;
    FA__LOOP(_open)(&view, p, box);
    fa_block q_block = view.q, k_block = view.k, v_block = view.v, o_block = view.o;
    fa_index at = view.at;
    int blocks = FA__GROUP == 1 ? 1 : (box.queries.end - box.queries.begin + FA_BLOCK_M - 1) / FA_BLOCK_M;

    for (int i = 0; i < blocks; i++) {
        FA__LOOP(_query_block) *block = &local->blocks[i];
        q_block.row = box.queries.begin + i * FA_BLOCK_M;
        FA__LOOP(_qtile_load)(&block->q, q_block, 0);
        if (p->negate)
            FA__LOOP(_qtile_negate)(&block->q, 0); /* a negative scale: the exponent's factor stays positive */
        FA__LOOP(_pv_zero)(&block->o);
        FA__COMMON(_softmax_init)(&block->state);
    }

    fa_range tiles = FA__LOOP(_tiles)(p, box);
#if FA__MASK_NEEDS & FA__NEED_DOCUMENT
    fa__ids of_queries[FA__GROUP];
    for (int i = 0; i < blocks; i++)
        if (tiles.begin < tiles.end) of_queries[i] = fa__ids_of(fa__document_queries(box), FA__LOOP(_block)(box, i).queries);
#elif FA__MASK_NEEDS & FA__NEED_SPAN
    fa__spans of_queries[FA__GROUP];
    for (int i = 0; i < blocks; i++)
        if (tiles.begin < tiles.end) of_queries[i] = fa__spans_of(fa__span_rows_of(box), FA__LOOP(_block)(box, i).queries);
#elif FA__MASK_IS_OWN /* whose NAME_tile() need not know what its NAME_keys() leaves out */
    fa_range seen[FA__GROUP];
    for (int i = 0; i < blocks; i++) seen[i] = FA__ATTN(__keys)(p, FA__LOOP(_block)(box, i));
#endif
    for (int tile = tiles.begin; tile < tiles.end; tile++) {
        fa_tile_class of[FA__GROUP];
        int visited = 0;
        box.keys.begin = tile * FA_BLOCK_N;
        box.keys.end = a->seqlen_k - box.keys.begin < FA_BLOCK_N ? a->seqlen_k : box.keys.begin + FA_BLOCK_N;
#if FA__MASK_NEEDS & FA__NEED_DOCUMENT
        const fa__ids of_keys = fa__ids_of(fa__document_keys(box), box.keys);
#endif
        for (int i = 0; i < blocks; i++) {
            fa_box part = FA__LOOP(_block)(box, i);
#if FA__MASK_NEEDS & FA__NEED_DOCUMENT
            of[i] = FA__ATTN(__class)(&part, of_queries[i], of_keys);
#elif FA__MASK_NEEDS & FA__NEED_SPAN
            of[i] = FA__ATTN(__class)(&part, of_queries[i]);
#elif FA__MASK_IS_OWN
            of[i] = fa__max(box.keys.begin, seen[i].begin) < fa__min(box.keys.end, seen[i].end) ? FA__ATTN(__class)(p, &part) : FA_EMPTY; /* what is seen may be less than nothing */
#else
            of[i] = FA__HAS_MASK ? FA__ATTN(__class)(p, &part) : FA_FULL;
#endif
            visited |= of[i] != FA_EMPTY;
        }
        if (!visited) continue;
        k_block.row = v_block.row = box.keys.begin;
        FA__LOOP(_ktile_load)(&local->k, k_block, 0);
        FA__LOOP(_vtile_load)(&local->v, v_block, 0);
        for (int i = 0; i < blocks; i++)
            if (of[i] != FA_EMPTY) FA__LOOP(_step)(p, at, FA__LOOP(_block)(box, i), local, &local->blocks[i], of[i]);
    }

    for (int i = 0; i < blocks; i++) {
        FA__LOOP(_query_block) *block = &local->blocks[i];
        float inverse[FA_BLOCK_M], lse[FA_BLOCK_M];
        o_block.row = box.queries.begin + i * FA_BLOCK_M;
        FA__COMMON(_finish)(&block->state, p->scale_log2 * FA__LN_2, inverse, lse);
        FA__LOOP(_pv_normalize)(&block->o, inverse);
        FA__LOOP(_otile_store)((FA__LOOP(_otile_tile) *)&block->o, o_block, 0); /* the same layout (cpu/mma.h, NAME_to_tile()) */
        int count = fa__min(FA_BLOCK_M, a->seqlen_q - o_block.row);
        if (a->lse)
            memcpy(a->lse + ((int64_t)box.batch * a->heads + box.head) * a->seqlen_q + o_block.row, lse, (size_t)count * sizeof *lse);
    }
}

/* A thread's share of the work. */
static FA_UNUSED FA__TARGET void FA__LOOP(_work)(fa__job *job) {
    const FA__PARAMS p =
        *(const FA__PARAMS *)job->params; /* a copy, whose fields compilers may load before a loop over hooks, not in it */
    FA__LOOP(_local) local;
    memset(&local.s, 0, sizeof local.s); /* rows of queries that do not exist are not computed */
#if defined(FA__AMX)
    fa_cpu_amx_begin();
#endif
    for (int64_t item; (item = fa__job_next(job)) >= 0;)
        FA__LOOP(_run)(&p, FA__ATTN(__box)(&p, (uint32_t)item, job->group * FA_BLOCK_M), &local);
#if defined(FA__AMX)
    fa_cpu_amx_end();
#endif
}
#undef FA__COMMON
#undef FA__FN_COMMON
#undef FA__LOOP
#undef FA__VARIANT
#undef FA__ISA
