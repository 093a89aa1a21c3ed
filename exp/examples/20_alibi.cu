/* 20 ALiBi: a score hook, and what it costs.
 *
 * Press et al. (arXiv 2108.12409) tell a transformer where its tokens are by subtracting slope[head] * distance
 * from the scores. In the library that is FA_SCORE fa_alibi and a table of slopes; here it comes with FA_MASK
 * fa_causal, since any hook goes with any mask. The other instance is plain causal attention: the line shows how
 * little the hook adds.
 */
#define NO_MAIN
#include "10_first_use.cu"
#include "causal.h" /* run_causal() */

#define FA_NAME alibi
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_causal
#define FA_SCORE fa_alibi
#include <fa/attention.h>

static void run_alibi(const problem *p) {
    fa_attention_args a = attention_args(p);
    a.alibi_slopes = p->scratch;
    FA(alibi_forward(&a, 0));
}

/* The paper's slopes: a geometric series down to 2^-8. */
static float slope(const problem *p, int head) { return exp2f(-8.0f * (float)(head + 1) / (float)p->heads); }

static double reference(const problem *p, double score, int batch, int head, int query, int key) {
    (void)batch;
    return key <= query ? score - slope(p, head) * (query - key) : -INFINITY;
}

int main(void) {
    problem p = ladder_problem();
    float slopes[256];
    for (int head = 0; head < p.heads; head++) slopes[head] = slope(&p, head);
    p.scratch = (float *)device_alloc(sizeof slopes);
    to_device(p.scratch, slopes, sizeof slopes);
    example e = {"20_alibi", run_alibi, BF16, reference, 0.5 + 0.5 / p.seqlen, "causal, no ALiBi", run_causal};
    int status = example_report(&p, e);
    problem_free(&p);
    return status;
}
