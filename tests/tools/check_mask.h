/**
 * @file check_mask.h
 * @brief Compares the block functions of a mask with its keep(), by brute force. For the masks of users and ours.
 *
 * @code{.c}
 * #include <stdio.h>
 * #include <fa/fa.h>
 * #include <fa/mask.h>
 *
 * struct stripes { int width; };
 * FA_HOOK int stripes_keep(const struct stripes *user, fa_index at) {
 *     return at.key / user->width == at.query / user->width;
 * }
 * FA_HOOK fa_tile_class stripes_tile(const struct stripes *user, fa_box box) {
 *     int first = box.queries.begin / user->width, last = (box.queries.end - 1) / user->width;
 *     if (box.keys.begin / user->width > last || (box.keys.end - 1) / user->width < first) return FA_EMPTY;
 *     return FA_PARTIAL;
 * }
 * FA_HOOK fa_range stripes_keys(const struct stripes *user, fa_box box) { (void)user; return box.keys; }
 * FA_HOOK fa_range stripes_queries(const struct stripes *user, fa_box box) { (void)user; return box.queries; }
 *
 * #define FA_NAME      check_stripes
 * #define FA_MASK      stripes
 * #define FA_USER_ARGS struct stripes
 * #include "check_mask.h"
 *
 * int main(void) {
 *     struct stripes user = {5};
 *     fa_attention_args a = fa_attention_defaults();
 *     check_mask_report report;
 *     a.batch = a.heads = a.heads_kv = 1, a.seqlen_q = 40, a.seqlen_k = 30;
 *     report = check_stripes(&user, &a, 1000, 1);
 *     if (report.wrong) printf("%s\n", report.message);
 *     return report.wrong != 0;
 * }
 * @endcode
 *
 * | parameter    | required | meaning |
 * |--------------|----------|---------|
 * | FA_NAME      | yes      | name of the generated function |
 * | FA_MASK      | yes      | prefix of the mask's four functions |
 * | FA_USER_ARGS | no       | what `user` points to |
 *
 * Generates check_mask_report NAME(const FA_USER_ARGS *user, const fa_attention_args *args, int boxes, uint64_t seed).
 * It draws `boxes` random boxes (and all of one row or one column of tiles, and the whole matrix), asks keep() for every element of each,
 * and counts as wrong: FA_EMPTY with an element that is kept, FA_FULL with one that is not, a kept element outside
 * NAME_keys() or NAME_queries(), a range that leaves its box. `args` needs sizes and what the mask reads, all of it on
 * the host. Runs on the host only.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <fa/fa.h>

#include "check_hook.h"

#ifndef FA_TESTS_CHECK_MASK_H
#define FA_TESTS_CHECK_MASK_H
/** What a check found. */
typedef struct check_mask_report {
    long wrong;        /**< answers that contradict keep() */
    long loose;        /**< FA_PARTIAL for a box that is all kept or all hidden: allowed, but costs time */
    long loose_ranges; /**< ranges wider than the kept elements need: allowed, but costs time */
    char message[256]; /**< the first wrong answer, in words */
} check_mask_report;

static inline fa_range check_mask_range(int length, uint64_t *state) {
    fa_range r;
    int longest = check_hook_random(state) % 2 ? 9 : length;
    r.begin = (int)(check_hook_random(state) % (uint64_t)length);
    r.end = r.begin + 1 + (int)(check_hook_random(state) % (uint64_t)longest);
    r.end = r.end > length ? length : r.end;
    return r;
}
static inline const char *check_mask_class(int answer) {
    return answer == FA_EMPTY ? "FA_EMPTY" : answer == FA_FULL ? "FA_FULL" : answer == FA_PARTIAL ? "FA_PARTIAL" : "no class";
}
#endif

static FA_UNUSED check_mask_report FA_NAME(const FA_USER_ARGS *user, const fa_attention_args *args, int boxes,
                                           uint64_t seed) {
    check_mask_report report;
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
    memset(&report, 0, sizeof report);
    report.wrong = check_hook_nothing(args, "boxes", boxes, report.message, sizeof report.message);
    if (report.wrong) return report;
    for (int n = 0; n < boxes; n++) {
        fa_box box;
        fa_range keys, queries, seen_keys = {0, 0}, seen_queries = {0, 0};
        fa_tile_class answer;
        long kept = 0, hidden = 0;
        const char *fault = NULL;
        box.args = args;
        box.batch = (int)(check_hook_random(&state) % (uint64_t)args->batch);
        box.head = (int)(check_hook_random(&state) % (uint64_t)args->heads);
        box.head_kv = box.head / (args->heads / args->heads_kv);
        box.queries = check_mask_range(args->seqlen_q, &state);
        box.keys = check_mask_range(args->seqlen_k, &state);
        if (n % 8 == 0) box.queries.begin = 0, box.queries.end = args->seqlen_q;
        if (n % 16 < 2) box.keys.begin = 0, box.keys.end = args->seqlen_k;
        answer = CHECK_HOOK_PASTE(FA_MASK, _tile)(user, box);
        keys = CHECK_HOOK_PASTE(FA_MASK, _keys)(user, box);
        queries = CHECK_HOOK_PASTE(FA_MASK, _queries)(user, box);
        for (int i = box.queries.begin; i < box.queries.end; i++)
            for (int j = box.keys.begin; j < box.keys.end; j++) {
                fa_index at;
                memset(&at, 0, sizeof at);
                at.args = args, at.batch = box.batch, at.head = box.head, at.head_kv = box.head_kv;
                at.query = i, at.key = j, at.dtype = FA_F32;
                at.distance = (float)(j - (i + args->seqlen_k - args->seqlen_q));
                if (!CHECK_HOOK_PASTE(FA_MASK, _keep)(user, at)) {
                    hidden++;
                    continue;
                }
                if (!kept++) seen_keys.begin = j, seen_keys.end = j + 1, seen_queries.begin = i;
                if (j < seen_keys.begin) seen_keys.begin = j;
                if (j >= seen_keys.end) seen_keys.end = j + 1;
                seen_queries.end = i + 1;
            }
        if (answer == FA_EMPTY ? kept != 0 : answer == FA_FULL ? hidden != 0 : answer != FA_PARTIAL)
            fault = "_tile() contradicts _keep()";
        else if (kept && (keys.begin > seen_keys.begin || keys.end < seen_keys.end))
            fault = "_keys() leaves out a key that is seen";
        else if (kept && (queries.begin > seen_queries.begin || queries.end < seen_queries.end))
            fault = "_queries() leaves out a query that sees";
        else if (keys.begin < keys.end && (keys.begin < box.keys.begin || keys.end > box.keys.end))
            fault = "_keys() leaves the box";
        else if (queries.begin < queries.end && (queries.begin < box.queries.begin || queries.end > box.queries.end))
            fault = "_queries() leaves the box";
        if (fault && !report.wrong++)
            snprintf(report.message, sizeof report.message,
                     CHECK_HOOK_STRING(FA_MASK) "%s: batch %d head %d queries %d..%d keys %d..%d: %ld kept, %ld not; says %s, "
                                                "keys %d..%d, queries %d..%d",
                     fault, box.batch, box.head, box.queries.begin, box.queries.end, box.keys.begin, box.keys.end, kept,
                     hidden, check_mask_class(answer), keys.begin, keys.end, queries.begin, queries.end);
        report.loose += answer == FA_PARTIAL && (!kept || !hidden);
        report.loose_ranges += kept ? keys.begin < seen_keys.begin || keys.end > seen_keys.end ||
                                          queries.begin < seen_queries.begin || queries.end > seen_queries.end
                                    : keys.begin < keys.end && queries.begin < queries.end;
    }
    return report;
}

#undef FA_NAME
#undef FA_MASK
#undef FA_USER_ARGS
