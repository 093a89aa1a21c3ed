/**
 * @file mask.h
 * @brief Masks: which keys a query sees. The shipped ones, and how to write and combine your own.
 *
 * A mask is four functions whose names share a prefix; FA_MASK takes the prefix:
 *
 *     int           NAME_keep(user, at)      is this element of the score matrix visible?
 *     fa_tile_class NAME_tile(user, box)     FA_EMPTY, FA_FULL or FA_PARTIAL for a block
 *     fa_range      NAME_keys(user, box)     the keys of box.keys that some query of the box may see
 *     fa_range      NAME_queries(user, box)  the queries of box.queries that may see some key of the box
 *
 * `user` is a `const FA_USER_ARGS *`. The last three make a mask fast: what they leave out is never
 * visited, and FA_FULL blocks pay nothing. They may err only towards more work: FA_PARTIAL is always
 * allowed, and so is the whole range. With `keep` alone, one line supplies them:
 *
 * @code{.c}
 * #include <fa/fa.h>
 * #include <fa/mask.h>
 *
 * FA_HOOK int strided_keep(const FA_USER_ARGS *user, fa_index at) {
 *     (void)user;
 *     return (at.query - at.key) % 4 == 0;
 * }
 * FA_MASK_FROM_KEEP(strided)
 * FA_MASK_AND(strided_causal, strided, fa_causal)
 *
 * #define FA_NAME     attn
 * #define FA_DTYPE    FA_F32
 * #define FA_HEAD_DIM 64
 * #define FA_MASK     strided_causal
 * #include <fa/attention.h>
 * @endcode
 *
 * Positions align bottom-right, as in FlashAttention: with seqlen_q != seqlen_k, query i stands at
 * key i + seqlen_k - seqlen_q. fa_causal_top_left aligns the other way.
 *
 * Each call is made by a single thread: the functions must not synchronise. The forward uses keep, tile and keys; queries
 * is for loops over key blocks, such as those of a backward pass, which this version does not have, and for FA_MASK_AND and
 * FA_MASK_OR. `tile` may be asked about a block more than once, and by several threads, as `keys` may. `box` lies inside the
 * sequences and is never empty; `at` lies inside them, too. NAME_forward() refuses a NULL `prefix`, `document_q`,
 * `document_k`, `span_begin` or `span_end`; inside FA_MASK_AND and FA_MASK_OR, where the host cannot see it, NULL means that
 * there is no prefix, that no document matches, or that no query sees a key.
 */
#ifndef FA_MASK_H
#define FA_MASK_H

#include <fa/arch/math.h>
#include <fa/fa.h>

/** @cond PRIVATE */
FA_HOOK int fa__min(int a, int b) { return a < b ? a : b; }
FA_HOOK int fa__max(int a, int b) { return a > b ? a : b; }
FA_HOOK int fa__clamp(int64_t x, int low, int high) { return x < low ? low : x > high ? high : (int)x; }
FA_HOOK fa_range fa__range(int begin, int end) {
    fa_range r;
    r.begin = begin;
    r.end = end;
    return r;
}
/* Query i stands at key i + shift. */
FA_HOOK int fa__shift(const fa_attention_args *args) { return args->seqlen_k - args->seqlen_q; }
/* The class of a box whose kept elements are those with lowest <= key - query <= highest. On a box,
 * key - query takes every integer between its extremes, so the answer is exact. */
FA_HOOK fa_tile_class fa__band_tile(fa_box box, int64_t lowest, int64_t highest) {
    int64_t low = (int64_t)box.keys.begin - (box.queries.end - 1), high = (int64_t)(box.keys.end - 1) - box.queries.begin;
    return low > highest || high < lowest ? FA_EMPTY : low >= lowest && high <= highest ? FA_FULL : FA_PARTIAL;
}
FA_HOOK fa_range fa__band_keys(fa_box box, int64_t lowest, int64_t highest) {
    return fa__range(fa__clamp(box.queries.begin + lowest, box.keys.begin, box.keys.end),
                     fa__clamp(box.queries.end + highest, box.keys.begin, box.keys.end));
}
FA_HOOK fa_range fa__band_queries(fa_box box, int64_t lowest, int64_t highest) {
    return fa__range(fa__clamp(box.keys.begin - highest, box.queries.begin, box.queries.end),
                     fa__clamp(box.keys.end - lowest, box.queries.begin, box.queries.end));
}
#define FA__UNBOUNDED ((int64_t)1 << 40)
/** @endcond */

/** @name fa_causal: query i sees key j if j <= i + seqlen_k - seqlen_q (bottom-right)
 *  @{ */
FA_HOOK int fa_causal_keep(const void *user, fa_index at) {
    (void)user;
    return at.key <= at.query + fa__shift(at.args);
}
FA_HOOK fa_tile_class fa_causal_tile(const void *user, fa_box box) {
    (void)user;
    return fa__band_tile(box, -FA__UNBOUNDED, fa__shift(box.args));
}
FA_HOOK fa_range fa_causal_keys(const void *user, fa_box box) {
    (void)user;
    return fa__band_keys(box, -FA__UNBOUNDED, fa__shift(box.args));
}
FA_HOOK fa_range fa_causal_queries(const void *user, fa_box box) {
    (void)user;
    return fa__band_queries(box, -FA__UNBOUNDED, fa__shift(box.args));
}
/** @} */

/** @name fa_causal_top_left: query i sees key j if j <= i
 *  @{ */
FA_HOOK int fa_causal_top_left_keep(const void *user, fa_index at) {
    (void)user;
    return at.key <= at.query;
}
FA_HOOK fa_tile_class fa_causal_top_left_tile(const void *user, fa_box box) {
    (void)user;
    return fa__band_tile(box, -FA__UNBOUNDED, 0);
}
FA_HOOK fa_range fa_causal_top_left_keys(const void *user, fa_box box) {
    (void)user;
    return fa__band_keys(box, -FA__UNBOUNDED, 0);
}
FA_HOOK fa_range fa_causal_top_left_queries(const void *user, fa_box box) {
    (void)user;
    return fa__band_queries(box, -FA__UNBOUNDED, 0);
}
/** @} */

/** @name fa_sliding_window: keys around the query's own position
 *
 *  (Beltagy et al., arXiv 2004.05150.) From position - window_left to position + window_right, where the query's position is query + seqlen_k - seqlen_q and a
 *  negative bound means none. Causal with a window: window_right = 0.
 *  @{ */
FA_HOOK int64_t fa__window_lowest(const fa_attention_args *args) {
    return args->window_left < 0 ? -FA__UNBOUNDED : (int64_t)fa__shift(args) - args->window_left;
}
FA_HOOK int64_t fa__window_highest(const fa_attention_args *args) {
    return args->window_right < 0 ? FA__UNBOUNDED : (int64_t)fa__shift(args) + args->window_right;
}
/* A window bound, at most `most`; a negative one, which means none, becomes `most`. */
FA_HOOK int fa__bound(int bound, int most) { return (uint32_t)bound < (uint32_t)most ? bound : most; }
FA_HOOK int fa_sliding_window_keep(const void *user, fa_index at) {
    (void)user;
    int position = at.query + fa__shift(at.args), room = fa__max(position, 0); /* no key is below 0 */
    int lowest = position - fa__bound(at.args->window_left, room);
    int highest = position + fa__bound(at.args->window_right, INT32_MAX - room);
    return at.key >= lowest && at.key <= highest;
}
FA_HOOK fa_tile_class fa_sliding_window_tile(const void *user, fa_box box) {
    (void)user;
    return fa__band_tile(box, fa__window_lowest(box.args), fa__window_highest(box.args));
}
FA_HOOK fa_range fa_sliding_window_keys(const void *user, fa_box box) {
    (void)user;
    return fa__band_keys(box, fa__window_lowest(box.args), fa__window_highest(box.args));
}
FA_HOOK fa_range fa_sliding_window_queries(const void *user, fa_box box) {
    (void)user;
    return fa__band_queries(box, fa__window_lowest(box.args), fa__window_highest(box.args));
}
/** @} */

/** @name fa_prefix: a visible prefix, causal beyond it
 *
 *  Prefix language modelling (Raffel et al., arXiv 1910.10683): every query sees the first prefix[batch] keys; beyond them it sees what causal attention
 *  (bottom-right) shows it.
 *  @{ */
/** @cond PRIVATE */
FA_HOOK int fa__prefix(const fa_attention_args *args, int batch, int known) {
    return known ? fa__load_int(args->prefix + batch) : fa__load_int_if(args->prefix != NULL, args->prefix, batch, 0, args->q.data);
}
/** @endcond */
FA_HOOK int fa_prefix_keep(const void *user, fa_index at) {
    (void)user;
    return at.key < fa__max(fa__prefix(at.args, at.batch, at.checked), at.query + fa__shift(at.args) + 1);
}
FA_HOOK fa_tile_class fa_prefix_tile(const void *user, fa_box box) {
    fa_tile_class causal = fa_causal_tile(user, box);
    int prefix = fa__prefix(box.args, box.batch, 0);
    return box.keys.end <= prefix ? FA_FULL : box.keys.begin < prefix && causal == FA_EMPTY ? FA_PARTIAL : causal;
}
FA_HOOK fa_range fa_prefix_keys(const void *user, fa_box box) {
    fa_range keys = fa_causal_keys(user, box);
    keys.end = fa__max(keys.end, fa__min(fa__prefix(box.args, box.batch, 0), box.keys.end));
    return keys;
}
FA_HOOK fa_range fa_prefix_queries(const void *user, fa_box box) {
    return box.keys.begin < fa__prefix(box.args, box.batch, 0) ? box.queries : fa_causal_queries(user, box);
}
/** @} */

/** @cond PRIVATE */
#include <fa/kernel/mask_document.h>
#include <fa/kernel/mask_span.h>
/** @endcond */

/** @name fa_document: keys of the query's own document
 *
 *  Packed documents (Krell et al., arXiv 2107.02027): a query sees the keys whose id equals its own, document_q[batch][query] == document_k[batch][key]. Any
 *  ids in any order give correct results; documents that stay together are fast.
 *  @{ */
FA_HOOK int fa_document_keep(const void *user, fa_index at) {
    (void)user;
    const fa_attention_args *a = at.args;
    int there = at.checked || (a->document_q && a->document_k);
    return fa__load_int_of(a->document_q, (int64_t)at.batch * a->seqlen_q, at.query, there, at.checked, 0, a->q.data) ==
           fa__load_int_of(a->document_k, (int64_t)at.batch * a->seqlen_k, at.key, there, at.checked, 1, a->q.data);
}
FA_HOOK fa_tile_class fa_document_tile(const void *user, fa_box box) {
    (void)user;
    return fa__document_tile(box, 0);
}
/* Ids may come in any order, so no range can be left out: blocks are classified one by one. */
FA_HOOK fa_range fa_document_keys(const void *user, fa_box box) {
    (void)user;
    return box.keys;
}
FA_HOOK fa_range fa_document_queries(const void *user, fa_box box) {
    (void)user;
    return box.queries;
}
/** @} */

/** @name fa_causal_document: keys of the query's own document up to its own position
 *
 *  What fa_causal and fa_document both keep: packed documents, as language models are trained on. Positions are those in
 *  the pack, so each document must have as many queries as keys. FA_MASK_AND would keep the same; this is faster, since kernels
 *  know its two parts.
 *  @{ */
FA_HOOK int fa_causal_document_keep(const void *user, fa_index at) {
    return fa_causal_keep(user, at) && fa_document_keep(user, at);
}
FA_HOOK fa_tile_class fa_causal_document_tile(const void *user, fa_box box) {
    (void)user;
    return fa__document_tile(box, 1);
}
FA_HOOK fa_range fa_causal_document_keys(const void *user, fa_box box) { return fa_causal_keys(user, box); }
FA_HOOK fa_range fa_causal_document_queries(const void *user, fa_box box) { return fa_causal_queries(user, box); }
/** @} */

/** @name fa_span: a span of the keys for each query
 *
 *  A query sees the keys from span_begin[batch][query] up to, not including, span_end[batch][query]; what lies outside the sequence does not count,
 *  and an end that is not above its beginning means no key. So sequences of any lengths may lie end to end, be padded, or continue a
 *  cache of keys, and be causal or have a window besides. (Wang et al., arXiv 2410.01359, give each key spans of queries that it is hidden from.)
 *  Any spans in any order give correct results; neighbours that see about the same are fast.
 *  @{ */
FA_HOOK int fa_span_keep(const void *user, fa_index at) {
    (void)user;
    const fa_attention_args *a = at.args;
    int there = at.checked || (a->span_begin && a->span_end);
    const int64_t row = (int64_t)at.batch * a->seqlen_q;
    int begin = fa__load_int_of(a->span_begin, row, at.query, there, at.checked, 0, a->q.data);
    int end = fa__load_int_of(a->span_end, row, at.query, there, at.checked, 0, a->q.data);
    return at.key >= begin && at.key < end;
}
FA_HOOK fa_tile_class fa_span_tile(const void *user, fa_box box) {
    (void)user;
    if (!box.args->span_begin || !box.args->span_end) return FA_EMPTY;
    return fa__span_class(box, fa__spans_of(fa__span_rows_of(box), box.queries));
}
FA_HOOK fa_range fa_span_keys(const void *user, fa_box box) {
    (void)user;
    if (!box.args->span_begin || !box.args->span_end) return fa__range(box.keys.begin, box.keys.begin);
    return fa__spans_keys(fa__spans_of(fa__span_rows_of(box), box.queries), box.keys);
}
/* Some query of the box may see any key. */
FA_HOOK fa_range fa_span_queries(const void *user, fa_box box) {
    (void)user;
    return box.queries;
}
/** @} */

/** Supplies the block functions of a mask that has only NAME_keep(): every block is visited and masked. Goes after
 *  FA_USER_ARGS, if there is one. */
#define FA_MASK_FROM_KEEP(name) FA__MASK_FROM_KEEP(name) /* whose arguments may be macros */
#define FA__MASK_FROM_KEEP(name)                                                               \
    FA_HOOK fa_tile_class name##_tile(const FA_USER_ARGS *user, fa_box box) {                  \
        (void)user, (void)box;                                                                 \
        return FA_PARTIAL;                                                                     \
    }                                                                                          \
    FA_HOOK fa_range name##_keys(const FA_USER_ARGS *user, fa_box box) {                       \
        (void)user;                                                                            \
        return box.keys;                                                                       \
    }                                                                                          \
    FA_HOOK fa_range name##_queries(const FA_USER_ARGS *user, fa_box box) {                    \
        (void)user;                                                                            \
        return box.queries;                                                                    \
    }

/** Defines the mask `name` that keeps what both a and b keep. Goes after FA_USER_ARGS, if there is one. */
#define FA_MASK_AND(name, a, b) FA__MASK_OF_TWO(name, a, b, &&, FA_EMPTY, fa__class_and, fa__range_and)
/** Defines the mask `name` that keeps what a or b keeps. Goes after FA_USER_ARGS, if there is one. */
#define FA_MASK_OR(name, a, b) FA__MASK_OF_TWO(name, a, b, ||, FA_FULL, fa__class_or, fa__range_or)
/* `decides`: a class of a's that settles that of both. */
#define FA__MASK_OF_TWO(name, a, b, join, decides, join_classes, join_ranges)                  \
    FA__STRICT_BEGIN                                                                           \
    FA_HOOK int name##_keep(const FA_USER_ARGS *user, fa_index at) {                           \
        return a##_keep(user, at) join b##_keep(user, at);                                     \
    }                                                                                          \
    FA_HOOK fa_tile_class name##_tile(const FA_USER_ARGS *user, fa_box box) {                  \
        fa_tile_class of = a##_tile(user, box);                                                \
        return of == decides ? of : join_classes(of, b##_tile(user, box));                     \
    }                                                                                          \
    FA_HOOK fa_range name##_keys(const FA_USER_ARGS *user, fa_box box) {                       \
        return join_ranges(a##_keys(user, box), b##_keys(user, box));                          \
    }                                                                                          \
    FA_HOOK fa_range name##_queries(const FA_USER_ARGS *user, fa_box box) {                    \
        return join_ranges(a##_queries(user, box), b##_queries(user, box));                    \
    }                                                                                          \
    FA__STRICT_END

/** @cond PRIVATE */
FA_HOOK fa_tile_class fa__class_and(fa_tile_class a, fa_tile_class b) {
    return a == FA_EMPTY || b == FA_EMPTY ? FA_EMPTY : a == FA_FULL && b == FA_FULL ? FA_FULL : FA_PARTIAL;
}
FA_HOOK fa_tile_class fa__class_or(fa_tile_class a, fa_tile_class b) {
    return a == FA_FULL || b == FA_FULL ? FA_FULL : a == FA_EMPTY && b == FA_EMPTY ? FA_EMPTY : FA_PARTIAL;
}
FA_HOOK fa_range fa__range_and(fa_range a, fa_range b) {
    return fa__range(fa__max(a.begin, b.begin), fa__min(a.end, b.end));
}
FA_HOOK fa_range fa__range_or(fa_range a, fa_range b) {
    if (a.begin >= a.end) return b;
    if (b.begin >= b.end) return a;
    return fa__range(fa__min(a.begin, b.begin), fa__max(a.end, b.end));
}
/** @endcond */

#endif
