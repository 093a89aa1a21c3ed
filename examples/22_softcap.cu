/* 22 soft cap: a shipped hook, and one of your own beside it.
 *
 * Gemma 2 (arXiv 2408.00118) keeps its scores within +-cap by cap * tanh(score / cap). The library has it: FA_SCORE
 * fa_softcap. The second instance caps with a function of our own, the softer score / (1 + |score| / cap), which needs no
 * tanh. FA_SCORE takes the name of a function; the struct that it reads is ours, too, and fa/math.h has functions that are
 * fast inside a kernel. (Kernels know more of a shipped hook: of this one they fold the two factors, 1 / cap and cap, into the
 * scale of the scores and into the factor of the exponent, which are applied in any case.)
 */
#define NO_MAIN
#include "10_first_use.cu"

#include <fa/math.h>

#define CAP 8.0f /* low, so that it bites: these random scores have a deviation of 4 */

#define FA_NAME softcap
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_SCORE fa_softcap
#include <fa/attention.h>

struct bend {
    float per_cap; /* 1 / cap */
};
FA_HOOK float bend_score(const struct bend *u, float score, fa_index at) {
    (void)at; /* batch, head, query, key: a hook may use them; this one does not */
    return fa_divide(score, 1.0f + fabsf(score) * u->per_cap); /* two instructions; an exact division is a dozen, and a branch, at which products wait */
}

#define FA_NAME bent
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_SCORE bend_score
#define FA_USER_ARGS struct bend
#include <fa/attention.h>

static void run_softcap(const problem *p) {
    fa_attention_args a = attention_args(p);
    a.softcap = CAP;
    FA(softcap_forward(&a, 0));
}
static void run_bent(const problem *p) {
    struct bend mine = {1 / CAP};
    fa_attention_args a = attention_args(p);
    a.user = &mine; /* copied by the call: it may go away afterwards */
    FA(bent_forward(&a, 0));
}

static double softcap_reference(const problem *p, double score, int batch, int head, int query, int key) {
    (void)p, (void)batch, (void)head, (void)query, (void)key;
    return CAP * tanh(score / CAP);
}
static double bent_reference(const problem *p, double score, int batch, int head, int query, int key) {
    (void)p, (void)batch, (void)head, (void)query, (void)key;
    return score / (1 + fabs(score) / CAP);
}

int main(void) {
    problem p = ladder_problem();
    example tanh_cap = {"22_softcap", run_softcap, BF16, softcap_reference, 1, "10_first_use", first_use};
    example own_cap = {"22_softcap (own)", run_bent, BF16, bent_reference, 1, "10_first_use", first_use};
    int status = example_report(&p, tanh_cap);
    status |= example_report(&p, own_cap);
    problem_free(&p);
    return status;
}
