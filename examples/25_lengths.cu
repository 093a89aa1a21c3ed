/* 25 sequences with lengths of their own: a mask that sees a span of the keys.
 *
 * A server attends to chunks of many prompts at once: each brings some new queries, and its own cache of keys. Laid end
 * to end, they are one sequence of queries beside one of keys, in which the documents of 23, one position for a query and
 * its key, are not enough. All that a query has to know is where its keys begin and end.
 *
 * No span begins earlier, or ends earlier, than that of the query before: so the first and the last query of a block tell
 * what all of them see, and tiles that none of them sees are not visited.
 */
#define NO_MAIN
#include "10_first_use.cu"
#include "causal.h" /* run_causal() */
#include "packs.h"  /* struct pack: (batch, seqlen_q), the first key that a query sees, and the one after the last */

FA_HOOK int64_t spans_row(fa_box box) { return (int64_t)box.batch * box.args->seqlen_q; }

FA_HOOK int spans_keep(const struct pack *u, fa_index at) {
    int64_t i = (int64_t)at.batch * at.args->seqlen_q + at.query;
    return (at.key >= u->begin[i]) & (at.key < u->end[i]);
}
FA_HOOK fa_tile_class spans_tile(const struct pack *u, fa_box box) {
    int64_t first = spans_row(box) + box.queries.begin, last = spans_row(box) + box.queries.end - 1;
    if (box.keys.end <= u->begin[first] || box.keys.begin >= u->end[last]) return FA_EMPTY;
    return box.keys.begin >= u->begin[last] && box.keys.end <= u->end[first] ? FA_FULL : FA_PARTIAL;
}
FA_HOOK fa_range spans_keys(const struct pack *u, fa_box box) {
    fa_range keys;
    keys.begin = clamp_to(u->begin[spans_row(box) + box.queries.begin], box.keys);
    keys.end = clamp_to(u->end[spans_row(box) + box.queries.end - 1], box.keys);
    return keys;
}
/* (A backward would ask: it finds the queries of some keys by their tiles.) */
FA_HOOK fa_range spans_queries(const struct pack *u, fa_box box) { return (void)u, box.queries; }

#define FA_NAME lengths
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK spans
#define FA_USER_ARGS struct pack
#include <fa/attention.h>

static void run_lengths(const problem *p) {
    struct pack mine;
    fa_attention_args a = pack_args(p, &mine);
    FA(lengths_forward(&a, 0));
}

static double reference(const problem *p, double score, int batch, int head, int query, int key) {
    (void)p, (void)batch, (void)head;
    return key >= begins[query] && key < ends[query] ? score : -INFINITY;
}

int main(void) {
    problem p = ladder_problem();
    double visible = 0;
    int sequences = 0, queries = 0, keys = 0;
    rng r = {5};
    pack_alloc(&p);
    while (queries < p.seqlen) { /* some new queries, and the keys of a cache that ends with theirs */
        int chunk = 1 + (int)(rng_uniform(&r) * p.seqlen / 16), cache = 1 + (int)(rng_uniform(&r) * p.seqlen / 8);
        if (chunk > p.seqlen - queries) chunk = p.seqlen - queries;
        if (cache > p.seqlen - keys) cache = p.seqlen - keys;
        for (int i = 0; i < chunk; i++) {
            int end = keys + cache - chunk + i + 1; /* aligned as the last query and the last key are */
            begins[queries + i] = keys, ends[queries + i] = end > keys ? end : keys;
            visible += ends[queries + i] - keys;
        }
        queries += chunk, keys += cache, sequences++;
    }
    example e = {"25_lengths",           run_lengths, BF16, reference, visible / p.seqlen / p.seqlen,
                 "causal, one sequence", run_causal};
    return pack_report(&p, e, lengths_plan, sequences, "sequences");
}
