/* 21 sliding window: a mask that pays.
 *
 * Each query sees itself and the WINDOW keys before it (Beltagy et al., arXiv 2004.05150). Of the tiles that causal
 * attention visits, most then hold nothing that anybody may see. The mask says so for a whole tile at a time, and
 * those tiles are neither loaded nor computed. NAME_plan() counts them.
 */
#define NO_MAIN
#include "10_first_use.cu"
#include "causal.h" /* run_causal() */

#define WINDOW (ON_GPU ? 512 : 128)

#define FA_NAME window
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_sliding_window
#include <fa/attention.h>

static fa_attention_args window_args(const problem *p) {
    fa_attention_args a = attention_args(p);
    a.window_left = WINDOW;
    a.window_right = 0; /* causal */
    return a;
}
static void run_window(const problem *p) {
    fa_attention_args a = window_args(p);
    FA(window_forward(&a, 0));
}

static double reference(const problem *p, double score, int batch, int head, int query, int key) {
    (void)p, (void)batch, (void)head;
    return key <= query && key >= query - WINDOW ? score : -INFINITY;
}

int main(void) {
    problem p = ladder_problem();
    double visible = 0;
    for (int query = 0; query < p.seqlen; query++) visible += query < WINDOW ? query + 1 : WINDOW + 1;
    visible /= (double)p.seqlen * p.seqlen;
    example e = {"21_sliding_window", run_window, BF16, reference, visible, "causal, no window", run_causal};
    int status = example_report(&p, e);

    fa_attention_args a = window_args(&p);
    fa_plan plan;
    FA(window_plan(&a, &plan));
    printf("    of %lld tiles of %d x %d, %lld are visited, and %lld of these masked element by element\n",
           (long long)plan.tiles_total, plan.block_m, plan.block_n, (long long)plan.tiles_visited,
           (long long)plan.tiles_masked);
    problem_free(&p);
    return status;
}
