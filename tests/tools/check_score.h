/**
 * @file check_score.h
 * @brief Compares a score hook's derivative NAME_grad() with finite differences. For the hooks of users and ours.
 *
 * @code{.c}
 * #include <stdio.h>
 * #include <fa/fa.h>
 *
 * FA_HOOK float squared(const FA_USER_ARGS *user, float score, fa_index at) {
 *     (void)user, (void)at;
 *     return score * score;
 * }
 * FA_HOOK float squared_grad(const FA_USER_ARGS *user, float score, fa_index at) {
 *     (void)user, (void)at;
 *     return 2.0f * score;
 * }
 *
 * #define FA_NAME  check_squared
 * #define FA_SCORE squared
 * #include "check_score.h"
 *
 * int main(void) {
 *     fa_attention_args a = fa_attention_defaults();
 *     check_score_report report;
 *     a.batch = a.heads = a.heads_kv = 1, a.seqlen_q = a.seqlen_k = 30;
 *     report = check_squared(NULL, &a, FA_F32, 8.0f, 1000, 1);
 *     if (report.wrong) printf("%s\n", report.message);
 *     return report.wrong != 0;
 * }
 * @endcode
 *
 * | parameter    | required | meaning |
 * |--------------|----------|---------|
 * | FA_NAME      | yes      | name of the generated function |
 * | FA_SCORE     | yes      | the hook; FA_SCORE##_grad is its derivative |
 * | FA_USER_ARGS | no       | what `user` points to |
 *
 * Generates check_score_report NAME(const FA_USER_ARGS *user, const fa_attention_args *args, int dtype, float widest,
 * int points, uint64_t seed): at `points` random places of the score matrix and scores in -widest..widest, the derivative
 * must agree with the central difference within what float arithmetic allows. A point where the hook gives -INFINITY is
 * passed over; a kink, such as |score| has at 0, may be reported. Runs on the host only.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <fa/fa.h>

#include "check_hook.h"

#ifndef FA_TESTS_CHECK_SCORE_H
#define FA_TESTS_CHECK_SCORE_H
/** What a check found. */
typedef struct check_score_report {
    long wrong;        /**< points where the derivative is off */
    long compared;     /**< points where it could be compared */
    char message[256]; /**< the first wrong answer, in words */
} check_score_report;

#endif

static FA_UNUSED check_score_report FA_NAME(const FA_USER_ARGS *user, const fa_attention_args *args, int dtype,
                                            float widest, int points, uint64_t seed) {
    check_score_report report;
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
    memset(&report, 0, sizeof report);
    report.wrong = check_hook_nothing(args, "points", points, report.message, sizeof report.message);
    if (report.wrong) return report;
    for (int n = 0; n < points; n++) {
        fa_index at;
        float x, step, below, above, here, slope, claimed;
        memset(&at, 0, sizeof at);
        at.args = args, at.dtype = dtype;
        at.batch = (int)(check_hook_random(&state) % (uint64_t)args->batch);
        at.head = (int)(check_hook_random(&state) % (uint64_t)args->heads);
        at.head_kv = at.head / (args->heads / args->heads_kv);
        at.query = (int)(check_hook_random(&state) % (uint64_t)args->seqlen_q);
        at.key = (int)(check_hook_random(&state) % (uint64_t)args->seqlen_k);
        at.distance = (float)(at.key - (at.query + args->seqlen_k - args->seqlen_q));
        x = widest * ((float)(check_hook_random(&state) >> 40) * 0x1p-23f - 1.0f);
        /* A float has 24 bits: a step of the cube root of that balances truncation and rounding. */
        step = 0x1p-8f * (1.0f + fabsf(x));
        below = FA_SCORE(user, x - step, at), above = FA_SCORE(user, x + step, at), here = FA_SCORE(user, x, at);
        if (isinf(below) || isinf(above) || isinf(here)) continue;
        slope = (above - below) / ((x + step) - (x - step));
        claimed = CHECK_HOOK_PASTE(FA_SCORE, _grad)(user, x, at);
        report.compared++;
        /* Rounding of the two values, and what the curvature does over the step. */
        if (!(fabsf(slope - claimed) <=
              0x1p-22f * (fabsf(below) + fabsf(above) + 1.0f) / step + fabsf(above - 2.0f * here + below) +
                  0x1p-9f * (fabsf(slope) + 0.25f)) &&
            !report.wrong++)
            snprintf(report.message, sizeof report.message,
                     CHECK_HOOK_STRING(FA_SCORE) "_grad() is %g at score %g (batch %d head %d query %d key %d); the slope is %g",
                     (double)claimed, (double)x, at.batch, at.head, at.query, at.key, (double)slope);
    }
    return report;
}

#undef FA_NAME
#undef FA_SCORE
#undef FA_USER_ARGS
