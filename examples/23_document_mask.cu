/* 23 a mask of your own: packed documents.
 *
 * To waste nothing on padding, several documents are laid end to end in one sequence; a token may look back only to
 * the start of its own. (The library ships fa_document and fa_causal_document, for ids in any order, and fa_span, of which 25 is an example.
 * Here the same is written by hand, to show what a mask consists of.)
 *
 * A mask is four functions with a common prefix. packed_keep() alone would do, with FA_MASK_FROM_KEEP(packed) for
 * the rest; the other three are what makes it fast: they let the kernel skip tiles, and leave out the test in full
 * ones.
 */
#define NO_MAIN
#include "10_first_use.cu"
#include "causal.h" /* run_causal() */
#include "packs.h"  /* struct pack: of each token its document's first one, and the one after its last */

/* May this query see this key? */
FA_HOOK int packed_keep(const struct pack *u, fa_index at) {
    return (at.key >= u->begin[at.query]) & (at.key <= at.query);
}
/* A block of queries and keys: does it hold only visible pairs, or none? The keys that at least one of its queries sees
 * go from the beginning of the first query's document to the last query itself. The keys that every one of them sees go
 * from the beginning of the last query's document to the first query itself. */
FA_HOOK fa_tile_class packed_tile(const struct pack *u, fa_box box) {
    int first = box.queries.begin, last = box.queries.end - 1;
    if (box.keys.end <= u->begin[first] || box.keys.begin > last) return FA_EMPTY;
    return box.keys.begin >= u->begin[last] && box.keys.end - 1 <= first ? FA_FULL : FA_PARTIAL;
}
/* Which of these keys are worth a visit for these queries? */
FA_HOOK fa_range packed_keys(const struct pack *u, fa_box box) {
    fa_range keys;
    keys.begin = clamp_to(u->begin[box.queries.begin], box.keys);
    keys.end = clamp_to(box.queries.end, box.keys);
    return keys;
}
/* And which queries for these keys? (A backward would ask.) */
FA_HOOK fa_range packed_queries(const struct pack *u, fa_box box) {
    fa_range queries;
    queries.begin = clamp_to(box.keys.begin, box.queries);
    queries.end = clamp_to(u->end[box.keys.end - 1], box.queries);
    return queries;
}

#define FA_NAME documents
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK packed
#define FA_USER_ARGS struct pack
#include <fa/attention.h>

static void run_packed(const problem *p) {
    struct pack mine;
    fa_attention_args a = pack_args(p, &mine);
    FA(documents_forward(&a, 0));
}

static double reference(const problem *p, double score, int batch, int head, int query, int key) {
    (void)p, (void)batch, (void)head;
    return begins[key] == begins[query] && key <= query ? score : -INFINITY;
}

int main(void) {
    problem p = ladder_problem();
    double visible = 0;
    int documents = 0;
    rng r = {3};
    pack_alloc(&p);
    for (int begin = 0, end; begin < p.seqlen; begin = end, documents++) {
        end = begin + 1 + (int)(rng_uniform(&r) * p.seqlen / 4);
        end = end < p.seqlen ? end : p.seqlen;
        for (int i = begin; i < end; i++) begins[i] = begin, ends[i] = end, visible += i - begin + 1;
    }
    example e = {"23_document_mask",     run_packed, BF16, reference, visible / p.seqlen / p.seqlen,
                 "causal, one document", run_causal};
    return pack_report(&p, e, documents_plan, documents, "documents");
}
