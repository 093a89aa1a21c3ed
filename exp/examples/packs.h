/* What 23 and 25 share: sequences laid end to end, and what their masks need to know of them. */
struct pack {
    const int *begin, *end; /* of each query: where keys begin, and where they end; they lie where the kernel runs */
};
static int *begins, *ends; /* the same on the host, for the reference */

FA_HOOK int clamp_to(int x, fa_range within) {
    return x < within.begin ? within.begin : x > within.end ? within.end : x;
}

static void pack_alloc(const problem *p) {
    begins = (int *)host_alloc(2 * sizeof(int) * (size_t)p->seqlen);
    ends = begins + p->seqlen;
}
static fa_attention_args pack_args(const problem *p, struct pack *mine) {
    fa_attention_args a = attention_args(p);
    mine->begin = (const int *)p->scratch;
    mine->end = mine->begin + p->seqlen;
    a.user = mine; /* for a mask of one's own; fa_span reads the same: */
    a.span_begin = mine->begin, a.span_end = mine->end;
    return a;
}

/* Runs an example on what begins[] and ends[] say, and tells what of the score matrix it visits. Frees all. */
static int pack_report(problem *p, example e, fa_status (*plan_of)(const fa_attention_args *, fa_plan *), int count,
                       const char *what) {
    size_t bytes = 2 * sizeof(int) * (size_t)p->seqlen;
    p->scratch = (float *)device_alloc(bytes);
    to_device(p->scratch, begins, bytes);
    int status = example_report(p, e);
    struct pack mine;
    fa_attention_args a = pack_args(p, &mine);
    fa_plan plan;
    FA(plan_of(&a, &plan));
    printf("    %d %s: of %lld tiles of %d x %d, %lld are visited, and %lld of these masked element by element\n",
           count, what, (long long)plan.tiles_total, plan.block_m, plan.block_n, (long long)plan.tiles_visited,
           (long long)plan.tiles_masked);
    free(begins);
    problem_free(p);
    return status;
}
