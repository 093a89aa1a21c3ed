/* masks.c: the block functions of every mask against its keep(), and keep() against the definition, by brute force;
 * the derivatives of the score hooks by finite differences; and that the two checkers find what is wrong. */
#include <math.h>
#include <string.h>

#include "../harness/number.h"
#include "../harness/reference.h"
#include "../harness/tap.h"
#include "hooks.h"

/* ---- masks under test, and one function each that checks it ---- */

TEST_MASK_packed(packed)
TEST_MASK_sinks(sinks)
FA_MASK_AND(causal_and_document, fa_causal, fa_document)
FA_MASK_OR(causal_or_document, fa_causal, fa_document)
FA_MASK_AND(nested, sinks, causal_or_document)
FA_MASK_AND(packed_window, fa_causal_document, fa_sliding_window)
FA_MASK_OR(window_or_prefix, fa_sliding_window, fa_prefix)
FA_MASK_AND(span_and_window, fa_span, fa_sliding_window)
FA_MASK_OR(span_or_prefix, fa_span, fa_prefix)
FA_MASK_AND(both_causal, fa_causal, fa_causal_top_left)
FA_MASK_OR(either_causal, fa_causal, fa_causal_top_left)

#define FA_NAME check_causal
#define FA_MASK fa_causal
#include "../tools/check_mask.h"
#define FA_NAME check_top_left
#define FA_MASK fa_causal_top_left
#include "../tools/check_mask.h"
#define FA_NAME check_window
#define FA_MASK fa_sliding_window
#include "../tools/check_mask.h"
#define FA_NAME check_prefix
#define FA_MASK fa_prefix
#include "../tools/check_mask.h"
#define FA_NAME check_document
#define FA_MASK fa_document
#include "../tools/check_mask.h"
#define FA_NAME check_packed
#define FA_MASK packed
#include "../tools/check_mask.h"
#define FA_NAME check_sinks
#define FA_MASK sinks
#include "../tools/check_mask.h"
#define FA_NAME check_causal_document
#define FA_MASK fa_causal_document
#include "../tools/check_mask.h"
#define FA_NAME check_span
#define FA_MASK fa_span
#include "../tools/check_mask.h"
#define FA_NAME check_span_and_window
#define FA_MASK span_and_window
#include "../tools/check_mask.h"
#define FA_NAME check_span_or_prefix
#define FA_MASK span_or_prefix
#include "../tools/check_mask.h"
#define FA_NAME check_causal_and_document
#define FA_MASK causal_and_document
#include "../tools/check_mask.h"
#define FA_NAME check_packed_window
#define FA_MASK packed_window
#include "../tools/check_mask.h"
#define FA_NAME check_causal_or_document
#define FA_MASK causal_or_document
#include "../tools/check_mask.h"
#define FA_NAME check_nested
#define FA_MASK nested
#include "../tools/check_mask.h"
#define FA_NAME check_window_or_prefix
#define FA_MASK window_or_prefix
#include "../tools/check_mask.h"
#define FA_NAME check_both_causal
#define FA_MASK both_causal
#include "../tools/check_mask.h"
#define FA_NAME check_either_causal
#define FA_MASK either_causal
#include "../tools/check_mask.h"

/* With arguments of the user's. */
#define FA_USER_ARGS struct test_user
TEST_MASK_strided(strided)
FA_MASK_AND(strided_window, strided, fa_sliding_window)
#define FA_NAME check_strided
#define FA_MASK strided
#include "../tools/check_mask.h"
#define FA_USER_ARGS struct test_user
#define FA_NAME check_strided_window
#define FA_MASK strided_window
#include "../tools/check_mask.h"

/* Masks with one fault each, which the checker must find. */
#define WRONG_MASK(name, tile_answer, keys_answer, queries_answer)                                                     \
    FA_HOOK int name##_keep(const void *user, fa_index at) { return fa_causal_keep(user, at); }                        \
    FA_HOOK fa_tile_class name##_tile(const void *user, fa_box box) {                                                  \
        fa_tile_class right = fa_causal_tile(user, box);                                                               \
        return tile_answer;                                                                                            \
    }                                                                                                                  \
    FA_HOOK fa_range name##_keys(const void *user, fa_box box) {                                                       \
        fa_range right = fa_causal_keys(user, box);                                                                    \
        keys_answer;                                                                                                   \
        return right;                                                                                                  \
    }                                                                                                                  \
    FA_HOOK fa_range name##_queries(const void *user, fa_box box) {                                                    \
        fa_range right = fa_causal_queries(user, box);                                                                 \
        queries_answer;                                                                                                \
        return right;                                                                                                  \
    }
WRONG_MASK(wrong_full, right == FA_PARTIAL ? FA_FULL : right, (void)0, (void)0)
WRONG_MASK(wrong_empty, right == FA_PARTIAL ? FA_EMPTY : right, (void)0, (void)0)
WRONG_MASK(wrong_class, right == FA_PARTIAL ? (fa_tile_class)3 : right, (void)0, (void)0)
WRONG_MASK(wrong_keys, right, right.end--, (void)0)
WRONG_MASK(wrong_queries, right, (void)0, right.begin++)
WRONG_MASK(outside_keys, right, right.end = box.keys.end + 1, (void)0)
WRONG_MASK(outside_queries, right, (void)0, right.begin = box.queries.begin - 1)
WRONG_MASK(right_mask, right, (void)0, (void)0)
WRONG_MASK(loose_mask, ((void)right, FA_PARTIAL), right = box.keys, right = box.queries)
#define FA_NAME check_wrong_full
#define FA_MASK wrong_full
#include "../tools/check_mask.h"
#define FA_NAME check_wrong_empty
#define FA_MASK wrong_empty
#include "../tools/check_mask.h"
#define FA_NAME check_wrong_class
#define FA_MASK wrong_class
#include "../tools/check_mask.h"
#define FA_NAME check_wrong_keys
#define FA_MASK wrong_keys
#include "../tools/check_mask.h"
#define FA_NAME check_wrong_queries
#define FA_MASK wrong_queries
#include "../tools/check_mask.h"
#define FA_NAME check_outside_keys
#define FA_MASK outside_keys
#include "../tools/check_mask.h"
#define FA_NAME check_outside_queries
#define FA_MASK outside_queries
#include "../tools/check_mask.h"
#define FA_NAME check_right_mask
#define FA_MASK right_mask
#include "../tools/check_mask.h"
#define FA_NAME check_loose_mask
#define FA_MASK loose_mask
#include "../tools/check_mask.h"

/* ---- random arguments ---- */

enum { LONGEST = 90, MOST_BATCHES = 3, ROUNDS = 60, BOXES = 200 };

/* The sizes and parameters of one call, with what masks read, in a problem that the reference understands. */
static problem random_problem(int mask, rng *r) {
    instance of;
    shape s = shape_plain(rng_int(r, 1, MOST_BATCHES), 2, 1, rng_int(r, 1, LONGEST), rng_int(r, 1, LONGEST));
    problem p;
    memset(&of, 0, sizeof of);
    of.name = "masks", of.mask = mask, of.dtype = FA_F32, of.head_dim = of.head_dim_v = 8;
    if (rng_one_in(r, 3)) s.seqlen_q = s.seqlen_k;
    s.window_left = rng_int(r, -1, rng_one_in(r, 2) ? 6 : LONGEST);
    s.window_right = rng_int(r, -1, rng_one_in(r, 2) ? 6 : LONGEST);
    if (rng_one_in(r, 20)) s.window_left = 0x7FFFFFFF;
    if (rng_one_in(r, 20)) s.window_right = 0x7FFFFFFF;
    s.documents = rng_int(r, 0, 4);
    problem_new(&p, &of, &s, MEMORY_HOST, r);
    return p;
}

/* All that any mask reads; and gives it to a problem. */
typedef struct read_by_masks {
    int prefix[MOST_BATCHES], ids_q[MOST_BATCHES * LONGEST], ids_k[MOST_BATCHES * LONGEST], begins[MOST_BATCHES * LONGEST], ends[MOST_BATCHES * LONGEST];
} read_by_masks;
static void complete(problem *p, read_by_masks *m, rng *r) {
    fa_attention_args *a = &p->args;
    int kind = rng_int(r, 0, 2);
    for (int b = 0; b < a->batch; b++) {
        int id = 0;
        m->prefix[b] = rng_int(r, 0, a->seqlen_k);
        for (int i = 0; i < a->seqlen_q; i++) m->ids_q[b * a->seqlen_q + i] = kind ? id += rng_one_in(r, 8) : rng_int(r, 0, 3);
        id = 0;
        for (int j = 0; j < a->seqlen_k; j++) m->ids_k[b * a->seqlen_k + j] = kind ? id += rng_one_in(r, 8) : rng_int(r, 0, 3);
        for (int i = 0, begin = 0; i < a->seqlen_q; i++) {
            begin = kind ? begin + rng_int(r, 0, 2) : rng_int(r, -5, a->seqlen_k + 5);
            m->begins[b * a->seqlen_q + i] = begin;
            m->ends[b * a->seqlen_q + i] = kind == 2 ? begin + 20 : rng_int(r, -5, a->seqlen_k + 5);
        }
    }
    a->window_left = p->shape.window_left, a->window_right = p->shape.window_right;
    a->prefix = m->prefix, a->document_q = m->ids_q, a->document_k = m->ids_k;
    a->span_begin = m->begins, a->span_end = m->ends;
}

/* ---- tests ---- */

typedef check_mask_report checker(const FA_USER_ARGS *user, const fa_attention_args *args, int boxes, uint64_t seed);

/* Of a mask that promises to find every box that is all kept or all hidden, and every range that could be smaller;
 * and that only the former. */
enum { LOOSE, EXACT_BOXES, EXACT };
static void block_functions(const char *name, checker *check, int exact) {
    static read_by_masks read;
    rng r = rng_new(rng_seed(), 10);
    long wrong = 0, loose = 0;
    tap_context("%s", name);
    for (int round = 0; round < ROUNDS; round++) {
        problem p = random_problem(MASK_full, &r);
        check_mask_report report;
        complete(&p, &read, &r);
        report = check(NULL, &p.args, BOXES, rng_next(&r));
        if (report.wrong && !wrong)
            tap_note("%s (seqlens %d, %d, window %d, %d)", report.message, p.args.seqlen_q, p.args.seqlen_k,
                     p.args.window_left, p.args.window_right);
        wrong += report.wrong;
        loose += report.loose + (exact == EXACT ? report.loose_ranges : 0);
        problem_delete(&p);
    }
    tap_ok(!wrong, "%s: tile, keys and queries agree with keep on %d boxes (%ld wrong)", name, ROUNDS * BOXES, wrong);
    if (exact) tap_ok(!loose, "%s: no box%s is looser than it need be (%ld loose)", name, exact == EXACT ? " or range" : "", loose);
}

static void block_functions_with_user(void) {
    static read_by_masks read;
    rng r = rng_new(rng_seed(), 11);
    long wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        problem p = random_problem(MASK_full, &r);
        complete(&p, &read, &r);
        wrong += check_strided(p.user, &p.args, BOXES, rng_next(&r)).wrong;
        wrong += check_strided_window(p.user, &p.args, BOXES, rng_next(&r)).wrong;
        problem_delete(&p);
    }
    tap_ok(!wrong, "masks with user arguments: tile, keys and queries agree with keep (%ld wrong)", wrong);
}

/* keep() of a mask, element by element, against the reference's definition. */
typedef int keeper(const void *user, fa_index at);
static int keep_strided(const void *user, fa_index at) { return strided_keep((const struct test_user *)user, at); }
static int keep_packed(const void *user, fa_index at) { return packed_keep((const FA_USER_ARGS *)user, at); }
static int keep_sinks(const void *user, fa_index at) { return sinks_keep((const FA_USER_ARGS *)user, at); }

static void definition(int mask, keeper *keep) {
    rng r = rng_new(rng_seed(), 12);
    long wrong = 0, kept = 0, hidden = 0;
    tap_context("definition of %s", mask_name(mask));
    for (int round = 0; round < 2 * ROUNDS; round++) {
        problem p = random_problem(mask, &r);
        for (int b = 0; b < p.args.batch; b++)
            for (int i = 0; i < p.args.seqlen_q; i++)
                for (int j = 0; j < p.args.seqlen_k; j++) {
                    fa_index at;
                    int visible = reference_visible(&p, b, 1, i, j);
                    memset(&at, 0, sizeof at);
                    at.args = &p.args, at.batch = b, at.head = 1, at.query = i, at.key = j;
                    wrong += !keep(p.user, at) != !visible;
                    kept += visible, hidden += !visible;
                }
        problem_delete(&p);
    }
    tap_ok(!wrong && kept && hidden, "%s_keep is its definition (%ld of %ld elements wrong)", mask_name(mask), wrong,
           kept + hidden);
}

static void checker_finds_faults(void) {
    static const struct {
        const char *name;
        checker *check;
    } faulty[] = {{"a partial box called full", check_wrong_full},  {"a partial box called empty", check_wrong_empty},
                  {"an answer that is no class", check_wrong_class}, {"a key too few", check_wrong_keys},
                  {"a query too few", check_wrong_queries},         {"a key outside the box", check_outside_keys},
                  {"a query outside the box", check_outside_queries}};
    fa_attention_args a = fa_attention_defaults();
    check_mask_report report;
    a.batch = a.heads = a.heads_kv = 1, a.seqlen_q = 40, a.seqlen_k = 50;
    for (size_t i = 0; i < sizeof faulty / sizeof *faulty; i++) {
        report = faulty[i].check(NULL, &a, BOXES, 1);
        tap_ok(report.wrong && *report.message, "the mask checker finds %s", faulty[i].name);
    }
    report = check_right_mask(NULL, &a, BOXES, 1);
    tap_ok(!report.wrong && !report.loose && !report.loose_ranges && !*report.message,
           "the mask checker finds nothing wrong with a right mask");
    report = check_loose_mask(NULL, &a, BOXES, 1);
    tap_ok(!report.wrong && report.loose && report.loose_ranges, "the mask checker tells loose from wrong");
}

/* ---- derivatives of the score hooks ---- */

FA_SCORE_CHAIN(capped_alibi, fa_softcap, fa_alibi)
FA_SCORE_CHAIN_GRAD(capped_alibi, fa_softcap, fa_alibi)
FA_SCORE_CHAIN(capped_twice, fa_softcap, fa_softcap)
FA_SCORE_CHAIN_GRAD(capped_twice, fa_softcap, fa_softcap)
FA_SCORE_CHAIN(bias_capped, fa_bias, fa_softcap)
FA_SCORE_CHAIN_GRAD(bias_capped, fa_bias, fa_softcap)
FA_HOOK float cubed(const void *user, float score, fa_index at) {
    (void)user, (void)at;
    return score * score * score;
}
FA_HOOK float cubed_grad(const void *user, float score, fa_index at) {
    (void)user, (void)at;
    return 3.1f * score * score;
}
#define FA_NAME check_alibi
#define FA_SCORE fa_alibi
#include "../tools/check_score.h"
#define FA_NAME check_softcap
#define FA_SCORE fa_softcap
#include "../tools/check_score.h"
#define FA_NAME check_bias
#define FA_SCORE fa_bias
#include "../tools/check_score.h"
#define FA_NAME check_key_bias
#define FA_SCORE fa_key_bias
#include "../tools/check_score.h"
#define FA_NAME check_capped_alibi
#define FA_SCORE capped_alibi
#include "../tools/check_score.h"
#define FA_NAME check_capped_twice
#define FA_SCORE capped_twice
#include "../tools/check_score.h"
#define FA_NAME check_bias_capped
#define FA_SCORE bias_capped
#include "../tools/check_score.h"
#define FA_NAME check_cubed
#define FA_SCORE cubed
#include "../tools/check_score.h"
#define FA_USER_ARGS struct test_user
#define FA_NAME check_tilted
#define FA_SCORE test_tilted
#include "../tools/check_score.h"

static void derivatives(void) {
    enum { POINTS = 4000, SEQLEN = 12 };
    static const struct {
        const char *name;
        check_score_report (*check)(const FA_USER_ARGS *, const fa_attention_args *, int, float, int, uint64_t);
    } hooks[] = {{"fa_alibi", check_alibi},
                 {"fa_softcap", check_softcap},
                 {"fa_bias", check_bias},
                 {"fa_key_bias", check_key_bias},
                 {"softcap, then ALiBi", check_capped_alibi},
                 {"softcap twice", check_capped_twice},
                 {"bias, then softcap", check_bias_capped}};
    static float bias[SEQLEN * SEQLEN], slopes[2] = {0.5f, 0.25f};
    rng r = rng_new(rng_seed(), 13);
    fa_attention_args a = fa_attention_defaults();
    struct test_user user = {2, 0, 0.5f};
    check_score_report report;
    for (int i = 0; i < SEQLEN * SEQLEN; i++) bias[i] = (float)rng_normal(&r);
    a.batch = 1, a.heads = 2, a.heads_kv = 1, a.seqlen_q = a.seqlen_k = SEQLEN;
    a.softcap = 3, a.alibi_slopes = slopes, a.bias = bias, a.bias_stride_query = SEQLEN, a.key_bias = bias;
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++) {
        report = hooks[i].check(NULL, &a, FA_F32, 6.0f, POINTS, rng_next(&r));
        if (report.wrong) tap_note("%s", report.message);
        tap_ok(!report.wrong && report.compared == POINTS, "the derivative of %s agrees with finite differences (%ld of %ld off)",
               hooks[i].name, report.wrong, report.compared);
    }
    report = check_tilted(&user, &a, FA_F32, 6.0f, POINTS, rng_next(&r));
    tap_ok(!report.wrong && report.compared == POINTS, "the derivative of a hook with user arguments");
    report = check_cubed(NULL, &a, FA_F32, 6.0f, POINTS, rng_next(&r));
    tap_ok(report.wrong > POINTS / 2 && *report.message, "the derivative checker finds a factor of 3.1 for 3");
}

/* ---- values of the score hooks ---- */

static void values(void) {
    enum { SEQLEN_Q = 9, SEQLEN_K = 13 };
    static const int kinds[] = {SCORE_alibi, SCORE_softcap, SCORE_bias, SCORE_key_bias, SCORE_capped_alibi};
    static float (*const hooks[])(const void *, float, fa_index) = {fa_alibi, fa_softcap, fa_bias, fa_key_bias, NULL};
    static const int dtypes[] = {FA_F32, FA_F16, FA_BF16};
    rng r = rng_new(rng_seed(), 14);
    for (int k = 0; k < 5; k++) {
        double worst = 0;
        for (int d = 0; d < 3; d++) {
            instance of;
            shape s = shape_plain(2, 4, 2, SEQLEN_Q, SEQLEN_K);
            problem p;
            memset(&of, 0, sizeof of);
            of.name = "scores", of.score = kinds[k], of.dtype = dtypes[d], of.head_dim = of.head_dim_v = 8;
            problem_new(&p, &of, &s, MEMORY_HOST, &r);
            for (int n = 0; n < 2000; n++) {
                fa_index at;
                float score = (float)(4 * rng_normal(&r)), got;
                double want;
                memset(&at, 0, sizeof at);
                at.args = &p.args, at.batch = rng_int(&r, 0, 1), at.head = rng_int(&r, 0, 3), at.head_kv = at.head / 2;
                at.query = rng_int(&r, 0, SEQLEN_Q - 1), at.key = rng_int(&r, 0, SEQLEN_K - 1), at.dtype = dtypes[d];
                at.distance = (float)(at.key - (at.query + SEQLEN_K - SEQLEN_Q));
                want = reference_score(&p, (double)score, at.batch, at.head, at.query, at.key);
                got = hooks[k] ? hooks[k](NULL, score, at) : capped_alibi(NULL, score, at);
                worst = number_worse(worst, fabs((double)got - want) / (1 + fabs(want)));
            }
            problem_delete(&p);
        }
        tap_ok(worst < 1e-6, "%s has the values of its definition (largest relative error %.2g)", score_name(kinds[k]), worst);
    }
}

int main(void) {
    definition(MASK_causal, fa_causal_keep);
    definition(MASK_top_left, fa_causal_top_left_keep);
    definition(MASK_window, fa_sliding_window_keep);
    definition(MASK_prefix, fa_prefix_keep);
    definition(MASK_document, fa_document_keep);
    definition(MASK_causal_document, fa_causal_document_keep);
    definition(MASK_span, fa_span_keep);
    definition(MASK_packed, keep_packed);
    definition(MASK_sinks, keep_sinks);
    definition(MASK_strided, keep_strided);
    block_functions("fa_causal", check_causal, EXACT);
    block_functions("fa_causal_top_left", check_top_left, EXACT);
    block_functions("fa_sliding_window", check_window, EXACT);
    block_functions("fa_prefix", check_prefix, EXACT);
    block_functions("fa_document", check_document, EXACT_BOXES);
    block_functions("window AND document", check_packed, LOOSE);
    block_functions("first keys OR window", check_sinks, LOOSE);
    block_functions("fa_causal_document", check_causal_document, LOOSE);
    block_functions("fa_span", check_span, EXACT_BOXES);
    block_functions("span AND window", check_span_and_window, LOOSE);
    block_functions("span OR prefix", check_span_or_prefix, LOOSE);
    block_functions("causal AND document", check_causal_and_document, LOOSE);
    block_functions("causal document AND window", check_packed_window, LOOSE);
    block_functions("causal OR document", check_causal_or_document, LOOSE);
    block_functions("(first keys OR window) AND (causal OR document)", check_nested, LOOSE);
    block_functions("window OR prefix", check_window_or_prefix, LOOSE);
    block_functions("causal AND causal top-left", check_both_causal, EXACT);
    block_functions("causal OR causal top-left", check_either_causal, EXACT);
    block_functions_with_user();
    checker_finds_faults();
    values();
    derivatives();
    return tap_end();
}
