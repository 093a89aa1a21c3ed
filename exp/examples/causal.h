/* What 20, 21, 23 and 25 are compared with: plain causal attention. */
#define FA_NAME causal
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_causal
#include <fa/attention.h>

static void run_causal(const problem *p) {
    fa_attention_args a = attention_args(p);
    FA(causal_forward(&a, 0));
}
