/* hooks.h: masks and score hooks of the tests, as a user would write them. reference.c has the same by formula. */
#ifndef HOOKS_H
#define HOOKS_H

#include <math.h>

#include <fa/fa.h>
#include <fa/mask.h>
#include <fa/score.h>

#include "../harness/problem.h"

FA_HOOK int test_first_keep(const void *user, fa_index at) {
    (void)user;
    return at.key < 3;
}
FA_HOOK int test_strided_keep(const struct test_user *user, fa_index at) {
    /* key - query - offset is a multiple of the modulus; made positive, since % keeps the sign. */
    return (at.key - at.query - user->offset + 1000000 * user->modulus) % user->modulus == 0;
}
FA_HOOK float test_tilted(const struct test_user *user, float score, fa_index at) {
    return score + user->slope * at.distance + 0.25f * (float)(at.head % 3) - 0.125f * (float)at.batch +
           0.0625f * (float)at.head_kv + (float)((at.query + 2 * at.key) % 4) * 0.5f;
}
FA_HOOK float test_tilted_grad(const struct test_user *user, float score, fa_index at) {
    (void)user, (void)score, (void)at;
    return 1.0f;
}
FA_HOOK float test_holes(const void *user, float score, fa_index at) {
    (void)user;
    return (at.query + at.key) % 3 == 0 || at.query % 5 == 2 ? -INFINITY : score;
}

/* Masks and hooks that are put together: TEST_MASK_kind(name) and TEST_SCORE_kind(name) define the one called name. */
#define TEST_MASK_packed(name) FA_MASK_AND(name, fa_sliding_window, fa_document)
#define TEST_MASK_sinks(name)                                                                                          \
    FA_HOOK int name##_first_keep(const FA_USER_ARGS *user, fa_index at) { return test_first_keep(user, at); }         \
    FA_MASK_FROM_KEEP(name##_first)                                                                                    \
    FA_MASK_OR(name, name##_first, fa_sliding_window)
#define TEST_MASK_strided(name)                                                                                        \
    FA_HOOK int name##_keep(const FA_USER_ARGS *user, fa_index at) { return test_strided_keep(user, at); }             \
    FA_MASK_FROM_KEEP(name)
#define TEST_SCORE_capped_alibi(name) FA_SCORE_CHAIN(name, fa_softcap, fa_alibi)

#endif
