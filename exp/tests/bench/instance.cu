/* One instance of fa/attention.h as a shared library. bench.mk gives its parameters with -D: FA_DTYPE, FA_HEAD_DIM
 * and, by the instance's name, FA_MASK, FA_SCORE, FA_BLOCK_M and so on. */
#include <fa/fa.h>
#include <fa/mask.h>
#include <fa/score.h>

/* A hook that no header has, for -DFA_SCORE=bench_own: later keys count for more. */
FA_HOOK float bench_own(const FA_USER_ARGS *user, float score, fa_index at) {
    (void)user;
    return score + 1e-4f * at.distance;
}

#define FA_NAME bench
#define FA_API FA_EXTERN
#include <fa/attention.h>

FA_EXTERN const char *bench_last_error(void);
FA_EXTERN size_t bench_layout(int what);

/* The message of the last failure: every library has a store of its own when it is loaded by dlopen. */
const char *bench_last_error(void) { return fa_last_error(); }

/* Sizes and offsets, by which a caller in another language checks its own picture of the structs. */
size_t bench_layout(int what) {
    switch (what) {
    case 0: return sizeof(fa_attention_args);
    case 1: return offsetof(fa_attention_args, scale);
    case 2: return offsetof(fa_attention_args, prefix);
    case 3: return offsetof(fa_attention_args, threads);
    case 4: return sizeof(fa_plan);
    case 5: return offsetof(fa_plan, tiles_skipped);
    default: return 0;
    }
}
