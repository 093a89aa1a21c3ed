/* 25 sequences with lengths of their own: the mask fa_span.
 *
 * A server attends to chunks of many prompts at once: each brings some new queries, and its own cache of keys. Laid end
 * to end, they are one sequence of queries beside one of keys. The mask of 23 cannot describe that: there a query and its key
 * have the same position. All that a query has to know is where its keys begin and end. From these two numbers the library
 * also finds the tiles that no query of a block sees, and those that all of them see whole.
 */
#define NO_MAIN
#include "10_first_use.cu"
#include "causal.h" /* run_causal() */
#include "packs.h"  /* of each query, the first key that it sees, and the one after the last */

#define FA_NAME lengths
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_span
#include <fa/attention.h>

static void run_lengths(const problem *p) {
    struct pack mine;
    fa_attention_args a = pack_args(p, &mine); /* a.span_begin, a.span_end */
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
