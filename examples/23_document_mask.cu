/* 23 a mask of your own: packed documents.
 *
 * To waste nothing on padding, several documents are laid end to end in one sequence; a token may look back only to
 * the start of its own. (The library ships fa_document and fa_causal_document, for ids in any order. Knowing more, that documents
 * are contiguous, ours is simpler and tells exactly which tiles are empty.)
 *
 * A mask is four functions with a common prefix. packed_keep() alone would do, with FA_MASK_FROM_KEEP(packed) for
 * the rest; the other three are what makes it fast: they let the kernel skip tiles, and leave out the test in full
 * ones.
 */
#define NO_MAIN
#include "10_first_use.cu"
#include "causal.h" /* run_causal() */

/* What the mask needs to know. The arrays lie where the kernel runs. */
struct packed {
    const int *begin, *end; /* of each token: its document's first token, and the one after its last */
};

/* May this query see this key? */
FA_HOOK int packed_keep(const struct packed *u, fa_index at) {
    return (at.key >= u->begin[at.query]) & (at.key <= at.query);
}
/* A block of queries and keys: does it hold only visible pairs, or none? Together its queries see all from the
 * first one's document on to the last one itself; all of them see only what lies between the last one's document
 * and the first. */
FA_HOOK fa_tile_class packed_tile(const struct packed *u, fa_box box) {
    int first = box.queries.begin, last = box.queries.end - 1;
    if (box.keys.end <= u->begin[first] || box.keys.begin > last) return FA_EMPTY;
    return box.keys.begin >= u->begin[last] && box.keys.end - 1 <= first ? FA_FULL : FA_PARTIAL;
}
FA_HOOK int packed_clamp(int x, fa_range within) {
    return x < within.begin ? within.begin : x > within.end ? within.end : x;
}
/* Which of these keys are worth a visit for these queries? */
FA_HOOK fa_range packed_keys(const struct packed *u, fa_box box) {
    fa_range keys;
    keys.begin = packed_clamp(u->begin[box.queries.begin], box.keys);
    keys.end = packed_clamp(box.queries.end, box.keys);
    return keys;
}
/* And which queries for these keys? (A backward would ask.) */
FA_HOOK fa_range packed_queries(const struct packed *u, fa_box box) {
    fa_range queries;
    queries.begin = packed_clamp(box.keys.begin, box.queries);
    queries.end = packed_clamp(u->end[box.keys.end - 1], box.queries);
    return queries;
}

#define FA_NAME documents
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK packed
#define FA_USER_ARGS struct packed
#include <fa/attention.h>

static int *begins, *ends; /* on the host, for the reference */

static fa_attention_args packed_args(const problem *p, struct packed *mine) {
    fa_attention_args a = attention_args(p);
    mine->begin = (const int *)p->scratch;
    mine->end = mine->begin + p->seqlen;
    a.user = mine;
    return a;
}
static void run_packed(const problem *p) {
    struct packed mine;
    fa_attention_args a = packed_args(p, &mine);
    FA(documents_forward(&a, 0));
}

static double reference(const problem *p, double score, int batch, int head, int query, int key) {
    (void)p, (void)batch, (void)head;
    return begins[key] == begins[query] && key <= query ? score : -INFINITY;
}

int main(void) {
    problem p = ladder_problem();
    size_t bytes = sizeof(int) * (size_t)p.seqlen;
    double visible = 0;
    int documents = 0;
    rng r = {3};
    begins = (int *)host_alloc(2 * bytes), ends = begins + p.seqlen;
    for (int begin = 0, end; begin < p.seqlen; begin = end, documents++) {
        end = begin + 1 + (int)(rng_uniform(&r) * p.seqlen / 4);
        end = end < p.seqlen ? end : p.seqlen;
        for (int i = begin; i < end; i++) begins[i] = begin, ends[i] = end, visible += i - begin + 1;
    }
    p.scratch = (float *)device_alloc(2 * bytes);
    to_device(p.scratch, begins, 2 * bytes);

    example e = {"23_document_mask",     run_packed, BF16, reference, visible / p.seqlen / p.seqlen,
                 "causal, one document", run_causal};
    int status = example_report(&p, e);
    struct packed mine;
    fa_attention_args a = packed_args(&p, &mine);
    fa_plan plan;
    FA(documents_plan(&a, &plan));
    printf(
        "    %d documents: of %lld tiles of %d x %d, %lld are visited, and %lld of these masked element by element\n",
        documents, (long long)plan.tiles_total, plan.block_m, plan.block_n, (long long)plan.tiles_visited,
        (long long)plan.tiles_masked);
    free(begins);
    problem_free(&p);
    return status;
}
