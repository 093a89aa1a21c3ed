/* contracts.c: what the library promises besides right numbers: errors with messages, nothing written on an error,
 * empty rows, NaN, bitwise determinism, batch invariance, 64-bit offsets, concurrent calls, several instances in one
 * file and one instance in several. The same source runs on the CPU and, compiled by nvcc, on the GPU. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../harness/check.h"
#include "../harness/number.h"
#include "../harness/tap.h"
#include "hooks.h"

/* ---- instances ---- */

#define FA_NAME c_plain
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 16
#include <fa/attention.h>

#define FA_NAME c_half
#define FA_DTYPE FA_F16
#define FA_HEAD_DIM (32 + 32) /* an expression in parentheses is a number, too */
#define FA_MASK fa_causal
#include <fa/attention.h>

#define FA_NAME c_bf16
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 128
#define FA_MASK fa_sliding_window
#define FA_SCORE fa_alibi
#include <fa/attention.h>

#define FA_NAME c_narrow
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 16
#define FA_MASK fa_sliding_window
#include <fa/attention.h>

#define FA_NAME c_prefix
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 8
#define FA_MASK fa_prefix
#include <fa/attention.h>

#define FA_NAME c_document
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 8
#define FA_MASK fa_document
#include <fa/attention.h>

/* Of which Hopper's planner has fewer registers left. */
#define FA_NAME c_tilted_document
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 16
#define FA_MASK fa_document
#define FA_SCORE test_tilted
#define FA_USER_ARGS struct test_user
#include <fa/attention.h>

#define FA_NAME c_causal_document
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 8
#define FA_MASK fa_causal_document
#include <fa/attention.h>

/* Whose tiles Hopper visits from the diagonal on, and round. */
#define FA_NAME c_sloped_document
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 8
#define FA_MASK fa_document
#define FA_SCORE fa_alibi
#include <fa/attention.h>

#define FA_NAME c_span
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 8
#define FA_MASK fa_span
#include <fa/attention.h>

#define FA_NAME c_softcap
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 8
#define FA_SCORE fa_softcap
#include <fa/attention.h>

#define FA_NAME c_bias
#define FA_DTYPE FA_F16
#define FA_HEAD_DIM 8
#define FA_SCORE fa_bias
#include <fa/attention.h>

#define FA_NAME c_half_softcap
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_SCORE fa_softcap
#include <fa/attention.h>

#define FA_NAME c_causal_softcap
#define FA_DTYPE FA_F16
#define FA_HEAD_DIM 128
#define FA_MASK fa_causal
#define FA_SCORE fa_softcap
#include <fa/attention.h>

#define FA_NAME c_window_softcap
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_sliding_window
#define FA_SCORE fa_softcap
#include <fa/attention.h>

#define FA_NAME c_wide_bias
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 128
#define FA_SCORE fa_bias
#include <fa/attention.h>

#define FA_NAME c_key_bias
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 8
#define FA_SCORE fa_key_bias
#include <fa/attention.h>

#define FA_NAME c_half_key_bias
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_SCORE fa_key_bias
#include <fa/attention.h>

#define FA_NAME c_window_key_bias
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_sliding_window
#define FA_SCORE fa_key_bias
#include <fa/attention.h>

#define FA_NAME c_half_alibi
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_SCORE fa_alibi
#include <fa/attention.h>

#if defined(__CUDACC__)
#define FA_NAME c_half_alibi_80
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_SCORE fa_alibi
#define FA_ARCH 80
#include <fa/attention.h>
#endif

#define FA_NAME c_causal_alibi
#define FA_DTYPE FA_F16
#define FA_HEAD_DIM 128
#define FA_MASK fa_causal
#define FA_SCORE fa_alibi
#include <fa/attention.h>

#define FA_NAME c_user
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 8
#define FA_SCORE test_tilted
#define FA_USER_ARGS struct test_user
#include <fa/attention.h>

#define FA_NAME c_holes
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 32
#define FA_SCORE test_holes
#include <fa/attention.h>

/* Scores far below all that a schedule starts from. */
FA_HOOK float sink(const void *user, float score, fa_index at) {
    (void)user, (void)at;
    return score - 1e31f;
}
#define FA_NAME c_sunk
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 128
#define FA_MASK fa_sliding_window
#define FA_SCORE sink
#include <fa/attention.h>

/* What hooks are told lies inside the sequences, and the distance is that of the key: here, one that says so if not. */
struct spied {
    int *outside, queries, keys;
};
FA_HOOK float spy(const struct spied *user, float score, fa_index at) {
    const int inside = at.key >= 0 && at.key < user->keys && at.query >= 0 && at.query < user->queries;
    if (!inside || at.distance != (float)(at.key - at.query - (user->keys - user->queries))) *user->outside = 1;
    return score;
}
#define FA_NAME c_spy_f32
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 16
#define FA_SCORE spy
#define FA_USER_ARGS struct spied
#include <fa/attention.h>
#define FA_NAME c_spy
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_SCORE spy
#define FA_USER_ARGS struct spied
#include <fa/attention.h>
#define FA_NAME c_spy_causal
#define FA_DTYPE FA_F16
#define FA_HEAD_DIM 128
#define FA_MASK fa_causal
#define FA_SCORE spy
#define FA_USER_ARGS struct spied
#include <fa/attention.h>
#if defined(__CUDACC__) /* the other schedule of a GPU that has two */
#define FA_NAME c_spy_80
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_SCORE spy
#define FA_USER_ARGS struct spied
#define FA_ARCH 80
#include <fa/attention.h>
#define FA_NAME c_spy_80_causal
#define FA_DTYPE FA_F16
#define FA_HEAD_DIM 128
#define FA_MASK fa_causal
#define FA_SCORE spy
#define FA_USER_ARGS struct spied
#define FA_ARCH 80
#include <fa/attention.h>
#endif

/* The first 200 keys are visited and hidden, and every third query sees nothing. */
enum { LATE = 200 };
FA_HOOK int late_keep(const FA_USER_ARGS *user, fa_index at) {
    (void)user;
    return (at.key >= LATE) & (at.query % 3 != 0);
}
FA_MASK_FROM_KEEP(late)
#define FA_NAME c_late
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 16
#define FA_MASK late
#include <fa/attention.h>

/* The same from a score hook. */
FA_HOOK float late_score(const FA_USER_ARGS *user, float score, fa_index at) {
    (void)user;
    return at.key >= LATE && at.query % 3 != 0 ? score : -INFINITY;
}
#define FA_NAME c_late_score
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 16
#define FA_SCORE late_score
#include <fa/attention.h>

/* Masks and hooks put together, whose missing parameters the library cannot name: an error or NaN, never a crash. */
TEST_MASK_packed(c_both)
FA_MASK_AND(span_and_causal, fa_span, fa_causal)
#define FA_NAME c_causal_span
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 8
#define FA_MASK span_and_causal
#include <fa/attention.h>

#define FA_NAME c_packed
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 8
#define FA_MASK c_both
#include <fa/attention.h>
FA_SCORE_CHAIN(c_chained, fa_bias, fa_alibi)
FA_SCORE_CHAIN(c_capping, fa_softcap, fa_alibi)
#define FA_NAME c_capped
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 8
#define FA_SCORE c_capping
#include <fa/attention.h>
#define FA_NAME c_chain
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 8
#define FA_SCORE c_chained
#include <fa/attention.h>

/* A second part of the prefix: the name and type stay for the next. */
#define FA_NAME c_parts
#define FA_DTYPE FA_F32
#define FA_SUB _first
#define FA_HEAD_DIM 16
#include <fa/attention.h>
#define FA_SUB _second
#define FA_HEAD_DIM 24
#include <fa/attention.h>
#undef FA_NAME
#undef FA_DTYPE

/* Linkage: static by default (above), C linkage, own attributes, and instances of another file. */
#define FA_NAME c_extern
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 16
#define FA_API FA_EXTERN
#include <fa/attention.h>
#define FA_NAME c_hidden
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 16
#define FA_API FA_EXTERN __attribute__((visibility("hidden")))
#include <fa/attention.h>
#define FA_NAME c_elsewhere
#define FA_API FA_EXTERN
#define FA_DECLARE
#include <fa/attention.h>

/* Tile sizes of the user's. */
#define FA_NAME c_small_tiles
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 16
#define FA_BLOCK_M 32
#define FA_BLOCK_N 16
#define FA_WARPS 2
#include <fa/attention.h>

#if defined(__CUDACC__)
/* An instance for the CPU beside those for the GPU. */
#define FA_NAME c_host
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 16
#define FA_ARCH FA_CPU
#include <fa/attention.h>

/* One stage, which GPUs with little shared memory have: a bias of half types is then loaded in another way. */
#define FA_NAME c_one_stage
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_causal
#define FA_SCORE fa_bias
#define FA_ARCH 80
#define FA_STAGES 1
#include <fa/attention.h>

/* Tiles of 198 KB, which only some GPUs have room for. */
#define FA_NAME c_large_tiles
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 256
#define FA_ARCH 80
#define FA_BLOCK_M 64
#define FA_BLOCK_N 160
#define FA_STAGES 1
#include <fa/attention.h>
#endif

#define INSTANCE(name, mask, score, dtype, d) \
    {#name, MASK_##mask, SCORE_##score, dtype, d, d, name##_forward, name##_plan, name##_workspace}
static const instance plain = INSTANCE(c_plain, full, none, FA_F32, 16);
static const instance half_causal = INSTANCE(c_half, causal, none, FA_F16, 64);
static const instance bf16_window = INSTANCE(c_bf16, window, alibi, FA_BF16, 128);
static const instance narrow = INSTANCE(c_narrow, window, none, FA_F32, 16);
static const instance prefix_lm = INSTANCE(c_prefix, prefix, none, FA_F32, 8);
static const instance document = INSTANCE(c_document, document, none, FA_BF16, 8);
static const instance tilted_document = INSTANCE(c_tilted_document, document, tilted, FA_BF16, 16);
static const instance sloped_document = INSTANCE(c_sloped_document, document, alibi, FA_BF16, 8);
static const instance causal_document = INSTANCE(c_causal_document, causal_document, none, FA_BF16, 8);
static const instance softcap = INSTANCE(c_softcap, full, softcap, FA_F32, 8);
static const instance bias = INSTANCE(c_bias, full, bias, FA_F16, 8);
static const instance half_softcap = INSTANCE(c_half_softcap, full, softcap, FA_BF16, 64);
static const instance causal_softcap = INSTANCE(c_causal_softcap, causal, softcap, FA_F16, 128);
static const instance window_softcap = INSTANCE(c_window_softcap, window, softcap, FA_BF16, 64);
static const instance wide_bias = INSTANCE(c_wide_bias, full, bias, FA_BF16, 128);
static const instance key_bias = INSTANCE(c_key_bias, full, key_bias, FA_F32, 8);
static const instance half_key_bias = INSTANCE(c_half_key_bias, full, key_bias, FA_BF16, 64);
static const instance sunk = INSTANCE(c_sunk, window, none, FA_BF16, 128);
static const instance window_key_bias = INSTANCE(c_window_key_bias, window, key_bias, FA_BF16, 64);
static const instance half_alibi = INSTANCE(c_half_alibi, full, alibi, FA_BF16, 64);
#if defined(__CUDACC__)
static const instance half_alibi_80 = INSTANCE(c_half_alibi_80, full, alibi, FA_BF16, 64);
static const instance one_stage = INSTANCE(c_one_stage, causal, bias, FA_BF16, 64);
static const instance large_tiles = INSTANCE(c_large_tiles, full, none, FA_BF16, 256);
#endif
static const instance causal_alibi = INSTANCE(c_causal_alibi, causal, alibi, FA_F16, 128);
static const instance user = INSTANCE(c_user, full, tilted, FA_F32, 8);
static const instance holes = INSTANCE(c_holes, full, holes, FA_F32, 32);
static const instance late = INSTANCE(c_late, full, none, FA_F32, 16);
static const instance late_by_score = INSTANCE(c_late_score, full, none, FA_F32, 16);
static const instance span = INSTANCE(c_span, span, none, FA_BF16, 8);
static const instance causal_span = INSTANCE(c_causal_span, span, none, FA_F32, 8);
static const instance packed = INSTANCE(c_packed, packed, none, FA_F32, 8);
static const instance chain = INSTANCE(c_chain, full, bias, FA_F32, 8);
static const instance capped = INSTANCE(c_capped, full, softcap, FA_F32, 8);
static const instance part_first = INSTANCE(c_parts_first, full, none, FA_F32, 16);
static const instance part_second = INSTANCE(c_parts_second, full, none, FA_F32, 24);
static const instance with_extern = INSTANCE(c_extern, full, none, FA_F32, 16);
static const instance with_hidden = INSTANCE(c_hidden, full, none, FA_F32, 16);
static const instance elsewhere = INSTANCE(c_elsewhere, causal, none, FA_F32, 16);
static const instance small_tiles = INSTANCE(c_small_tiles, full, none, FA_F32, 16);

static const instance spies[] = {
    INSTANCE(c_spy_f32, full, none, FA_F32, 16), INSTANCE(c_spy, full, none, FA_BF16, 64), INSTANCE(c_spy_causal, causal, none, FA_F16, 128),
#if defined(__CUDACC__)
    INSTANCE(c_spy_80, full, none, FA_BF16, 64), INSTANCE(c_spy_80_causal, causal, none, FA_F16, 128),
#endif
};

static rng random_numbers;

/* ---- errors ---- */

/* A problem whose outputs are poison, to be spoilt and called. */
static problem fresh(const instance *of, const shape *s) {
    problem p;
    problem_new(&p, of, s, check_place, &random_numbers);
    return p;
}

/* The call must fail with `status` and a message that starts with the instance's name and holds both words, and write
 * nothing; the plan must fail alike. Frees the problem. */
static void fails(problem *p, fa_status status, const char *first, const char *second) {
    size_t length = strlen(p->of.name);
    char message[600];
    fa_plan plan;
    fa_status got = p->of.forward(&p->args, 0), planned;
    int named, untouched;
    snprintf(message, sizeof message, "%s", fa_last_error());
    planned = p->of.plan(&p->args, &plan);
    named = !strncmp(message, p->of.name, length) && message[length] == ':' && strstr(message, first) && strstr(message, second);
    problem_download(p);
    untouched = problem_untouched(p) && problem_inputs_unchanged(p);
    if (got != status) tap_note("%s instead of %s", fa_status_string(got), fa_status_string(status));
    if (planned != status) tap_note("%s_plan: %s instead of %s", p->of.name, fa_status_string(planned), fa_status_string(status));
    if (!named) tap_note("the message does not start with the name, or lacks '%s' or '%s'", first, second);
    if (!untouched) tap_note("something was written");
    tap_ok(got == status && planned == status && named && untouched, "error: %s", got == FA_OK ? first : message);
    problem_delete(p);
}
/* Or it must succeed, since what is not in order is not read. */
static void passes(problem *p, const char *what) {
    fa_plan plan;
    const fa_status status = p->of.forward(&p->args, 0), planned = p->of.plan(&p->args, &plan);
    const int passed = status == FA_OK && planned == FA_OK;
    tap_ok(passed, "%s: %s (%s, %s_plan: %s)%s%s", p->of.name, what, fa_status_string(status), p->of.name, fa_status_string(planned), passed ? "" : ": ",
           passed ? "" : fa_last_error());
    problem_delete(p);
}

static void *off_by(void *data, int bytes) { return (char *)data + bytes; }

static void errors(void) {
    const shape s = shape_plain(2, 4, 2, 5, 7);
    const fa_status argument = FA_ERROR_ARGUMENT;
    static const char *const names[] = {"q", "k", "v", "o"};
    problem p;
    char word[64];

    fa_plan plan;
    p = fresh(&half_causal, &s);
    if (p.of.plan(&p.args, &plan) == FA_OK && plan.arch == 90) p.args.k.stride_seq = (int64_t)1 << 40, fails(&p, argument, "stride_seq is 1099511627776", "2^39");
    else problem_delete(&p);
    p = fresh(&plain, &s), p.args.seqlen_k = 2147482625, fails(&p, argument, "seqlen_k is 2147482625", "at most 2147482624");
    p = fresh(&plain, &s), p.args.seqlen_q = 2147483647, fails(&p, argument, "seqlen_q is 2147483647", "at most 2147482624");
    p = fresh(&plain, &s), p.args.batch = -1, fails(&p, argument, "batch is -1", "0 or more");
    p = fresh(&plain, &s), p.args.heads = -4, fails(&p, argument, "heads is -4", "0 or more");
    p = fresh(&plain, &s), p.args.heads_kv = -2, fails(&p, argument, "heads_kv is -2", "0 or more");
    p = fresh(&plain, &s), p.args.seqlen_q = -5, fails(&p, argument, "seqlen_q is -5", "0 or more");
    p = fresh(&plain, &s), p.args.seqlen_k = -7, fails(&p, argument, "seqlen_k is -7", "0 or more");
    p = fresh(&plain, &s), p.args.heads_kv = 3, fails(&p, argument, "heads_kv is 3", "multiple");
    p = fresh(&plain, &s), p.args.heads_kv = 0, fails(&p, argument, "heads_kv is 0", "multiple");
    p = fresh(&plain, &s), p.args.scale = NAN, fails(&p, argument, "scale is nan", "finite");
    p = fresh(&plain, &s), p.args.scale = INFINITY, fails(&p, argument, "scale is inf", "finite");
    p = fresh(&plain, &s), p.args.scale = 1e31f, fails(&p, argument, "scale is 1e+31", "between");
    p = fresh(&plain, &s), p.args.scale = -1e-31f, fails(&p, argument, "scale is -1e-31", "between");
    p = fresh(&plain, &s), p.args.threads = -1, fails(&p, argument, "threads is -1", "0");
    p = fresh(&plain, &s), p.args.lse = (float *)off_by(p.args.lse, 2), fails(&p, argument, "lse is", "aligned to 4 bytes");
    for (int i = 0; i < 4; i++) {
        fa_tensor *t;
#define TENSOR (t = i == 0 ? &p.args.q : i == 1 ? &p.args.k : i == 2 ? &p.args.v : &p.args.o)
        snprintf(word, sizeof word, "%s.data is NULL", names[i]);
        p = fresh(&plain, &s), TENSOR, t->data = NULL, fails(&p, argument, word, "elements are needed");
        snprintf(word, sizeof word, "%s.data is", names[i]);
        p = fresh(&plain, &s), TENSOR, t->data = off_by(t->data, 8), fails(&p, argument, word, "aligned to 16 bytes");
        snprintf(word, sizeof word, "%s.stride_batch is -16", names[i]);
        p = fresh(&plain, &s), TENSOR, t->stride_batch = -16, fails(&p, argument, word, "not negative");
        snprintf(word, sizeof word, "%s.stride_head is -16", names[i]);
        p = fresh(&plain, &s), TENSOR, t->stride_head = -16, fails(&p, argument, word, "not negative");
        snprintf(word, sizeof word, "%s.stride_seq is -16", names[i]);
        p = fresh(&plain, &s), TENSOR, t->stride_seq = -16, fails(&p, argument, word, "not negative");
        snprintf(word, sizeof word, "%s.stride_batch is 281474976710672", names[i]);
        p = fresh(&plain, &s), TENSOR, t->stride_batch = ((int64_t)1 << 48) + 16, fails(&p, argument, word, "more than 2^48 elements");
        snprintf(word, sizeof word, "%s.stride_head is 9223372036854775792", names[i]);
        p = fresh(&plain, &s), TENSOR, t->stride_head = INT64_MAX - 15, fails(&p, argument, word, "more than 2^48 elements");
        snprintf(word, sizeof word, "%s.stride_seq is 4611686018427387904", names[i]);
        p = fresh(&plain, &s), TENSOR, t->stride_seq = (int64_t)1 << 62, fails(&p, argument, word, "more than 2^48 elements");
        snprintf(word, sizeof word, "%s.stride_batch is 1026", names[i]);
        p = fresh(&plain, &s), TENSOR, t->stride_batch = 1026, fails(&p, argument, word, "16 bytes");
        snprintf(word, sizeof word, "%s.stride_head is 1026", names[i]);
        p = fresh(&plain, &s), TENSOR, t->stride_head = 1026, fails(&p, argument, word, "16 bytes");
        snprintf(word, sizeof word, "%s.stride_seq is 18", names[i]);
        p = fresh(&plain, &s), TENSOR, t->stride_seq = 18, fails(&p, argument, word, "16 bytes");
#undef TENSOR
    }
    p = fresh(&plain, &s), p.args.o.stride_batch = 0, fails(&p, argument, "o.stride_batch is 0", "written over");
    p = fresh(&plain, &s), p.args.o.stride_head = 0, fails(&p, argument, "o.stride_head is 0", "written over");
    p = fresh(&plain, &s), p.args.lse = (float *)p.args.o.data, fails(&p, argument, "lse, at ", "two arrays");
    p = fresh(&plain, &s), p.args.seqlen_k = 0, p.args.lse = (float *)p.args.o.data + 1, fails(&p, argument, "lse, at ", "share memory");
    p = fresh(&plain, &s), p.args.lse = (float *)p.args.q.data, fails(&p, argument, "q, at ", "has a place in lse");
    p = fresh(&plain, &s), p.args.o.stride_seq = 8, fails(&p, argument, "o.stride_seq is 8", "written over");
    p = fresh(&plain, &s), p.args.o.stride_head = p.args.o.stride_seq = 16, fails(&p, argument, "the strides of o are", "16 (head, 4) and 16 (seq, 5): rows of 16 elements would be written over");
    shape cube = shape_plain(2, 2, 2, 2, 2);
    p = fresh(&plain, &cube), p.args.o.stride_batch = 2016, p.args.o.stride_head = 2000, p.args.o.stride_seq = 16; /* one batch is a head and a row */
    fails(&p, argument, "the strides of o are 2016 (batch, of which there are 2), 2000 (head, 2) and 16 (seq, 2)", "written over");
    p = fresh(&plain, &s), p.args.o.data = p.args.q.data, fails(&p, argument, "q, at ", "has a place in o");
    p = fresh(&plain, &s), p.args.o.data = p.args.k.data, fails(&p, argument, "k, at ", "has a place in o");
    p = fresh(&plain, &s), p.args.o.data = p.args.v.data, fails(&p, argument, "v, at ", "has a place in o");

    p = fresh(&plain, &s), p.args.o.data = (float *)p.args.q.data + p.args.q.stride_seq, fails(&p, argument, "q, at ", "has a place in o");
    p = fresh(&plain, &s), p.args.o.data = (float *)p.args.q.data + p.args.q.stride_head - 4, fails(&p, argument, "q, at ", "has a place in o");
    p = fresh(&plain, &s), p.args.lse = (float *)p.args.k.data + 5, fails(&p, argument, "k, at ", "has a place in lse");
    p = fresh(&plain, &s), p.args.batch = 100, p.args.lse = NULL, p.args.o.data = (char *)p.args.v.data + 16, fails(&p, argument, "has a place in o", "if batch is 100, heads 4");
    p = fresh(&plain, &s), p.args.lse = (float *)p.args.o.data + 5, fails(&p, argument, "lse, at ", "two arrays");

    /* Strides by which rows of one step lie between those of another. */
    const shape interleaved = shape_plain(3, 1, 1, 1, 3);
    p = fresh(&plain, &interleaved), p.args.k.stride_batch = p.args.o.stride_batch = 48, p.args.k.stride_seq = 32;
    p.args.o.data = (float *)p.args.k.data + 64, fails(&p, argument, "k, at ", "has a place in o");
    p = fresh(&prefix_lm, &s), p.args.lse = (float *)(void *)(uintptr_t)p.args.prefix, fails(&p, argument, "prefix, at ", "has a place in lse");
    p = fresh(&document, &s), p.args.o.data = (void *)((uintptr_t)p.args.document_q / 16 * 16), fails(&p, argument, "document_q, at ", "has a place in o");
    p = fresh(&document, &s), p.args.lse = (float *)(void *)(uintptr_t)p.args.document_k + 1, fails(&p, argument, "document_k, at ", "has a place in lse");
    p = fresh(&span, &s), p.args.o.data = (void *)((uintptr_t)p.args.span_begin / 16 * 16), fails(&p, argument, "span_begin, at ", "has a place in o");
    p = fresh(&span, &s), p.args.lse = (float *)(void *)(uintptr_t)p.args.span_end + 1, fails(&p, argument, "span_end, at ", "has a place in lse");
    p = fresh(&bias, &s), p.args.o.data = (void *)(uintptr_t)p.args.bias, fails(&p, argument, "bias, at ", "has a place in o");
    p = fresh(&key_bias, &s), p.args.lse = (float *)(void *)(uintptr_t)p.args.key_bias + 2, fails(&p, argument, "key_bias, at ", "has a place in lse");
    p = fresh(&key_bias, &s), p.args.key_bias_stride_batch = p.args.key_bias_stride_head = 0; /* one array for all heads */
    p.args.key_bias = (float *)p.args.o.data + p.args.o.stride_seq, fails(&p, argument, "key_bias, at ", "has a place in o");
    p = fresh(&bf16_window, &s), p.args.lse = (float *)(void *)(uintptr_t)p.args.alibi_slopes + 1, fails(&p, argument, "alibi_slopes, at ", "has a place in lse");

    p = fresh(&half_causal, &s), p.args.q.stride_seq = 68, fails(&p, argument, "q.stride_seq is 68", "multiple of 8");
    p = fresh(&prefix_lm, &s), p.args.prefix = NULL, fails(&p, argument, "prefix is NULL", "2 ints");
    p = fresh(&document, &s), p.args.document_q = NULL, fails(&p, argument, "document_q is NULL", "ints");
    p = fresh(&document, &s), p.args.document_k = NULL, fails(&p, argument, "document_k is NULL", "fa_document needs");
    p = fresh(&causal_document, &s), p.args.document_k = NULL, fails(&p, argument, "document_k is NULL", "fa_causal_document needs");
    p = fresh(&span, &s), p.args.span_begin = NULL, fails(&p, argument, "span_begin is NULL", "fa_span needs where");
    p = fresh(&span, &s), p.args.span_end = NULL, fails(&p, argument, "span_end is NULL", "ints");
    p = fresh(&span, &s), p.args.span_begin = (const int *)(const void *)((const char *)p.args.span_begin + 2), fails(&p, argument, "span_begin is", "aligned to 4 bytes");
    p = fresh(&span, &s), p.args.span_end = (const int *)(const void *)((const char *)p.args.span_end + 1), fails(&p, argument, "span_end is", "aligned to 4 bytes");
    p = fresh(&bf16_window, &s), p.args.alibi_slopes = NULL, fails(&p, argument, "alibi_slopes is NULL", "4 floats");
    p = fresh(&softcap, &s), p.args.softcap = 0, fails(&p, argument, "softcap is 0", "fa_softcap needs a cap");
    p = fresh(&softcap, &s), p.args.softcap = -3, fails(&p, argument, "softcap is -3", "fa_softcap needs a cap");
    p = fresh(&softcap, &s), p.args.softcap = NAN, fails(&p, argument, "softcap is", "fa_softcap needs a cap");
    p = fresh(&softcap, &s), p.args.softcap = INFINITY, fails(&p, argument, "softcap is inf", "fa_softcap needs a cap");
    p = fresh(&softcap, &s), p.args.softcap = 1.001e8f, fails(&p, argument, "softcap is 1.001e+08", "from 1e-30 to 1e8");
    p = fresh(&softcap, &s), p.args.softcap = 0.99e-30f, fails(&p, argument, "softcap is 9.9e-31", "from 1e-30 to 1e8");
    p = fresh(&bias, &s), p.args.bias = NULL, fails(&p, argument, "bias is NULL", "seqlen_q, seqlen_k");
    p = fresh(&bias, &s), p.args.bias = (const char *)p.args.bias + 1, fails(&p, argument, "bias is", "aligned to 2 bytes");
    p = fresh(&bias, &s), p.args.bias_stride_batch = -1, fails(&p, argument, "bias_stride_batch is -1", "not negative");
    p = fresh(&bias, &s), p.args.bias_stride_head = -1, fails(&p, argument, "bias_stride_head is -1", "not negative");
    p = fresh(&bias, &s), p.args.bias_stride_query = -1, fails(&p, argument, "bias_stride_query is -1", "not negative");
    p = fresh(&bias, &s), p.args.bias_stride_batch = INT64_MAX, fails(&p, argument, "bias_stride_batch is 9223372036854775807", "more than 2^48 elements");
    p = fresh(&bias, &s), p.args.bias_stride_head = INT64_MAX, fails(&p, argument, "bias_stride_head is 9223372036854775807", "more than 2^48 elements");
    p = fresh(&bias, &s), p.args.bias_stride_query = INT64_MAX, fails(&p, argument, "bias_stride_query is 9223372036854775807", "more than 2^48 elements");
    p = fresh(&key_bias, &s), p.args.key_bias_stride_batch = INT64_MAX, fails(&p, argument, "key_bias_stride_batch is 9223372036854775807", "2^48 elements");
    p = fresh(&key_bias, &s), p.args.key_bias_stride_head = INT64_MAX, fails(&p, argument, "key_bias_stride_head is 9223372036854775807", "2^48 elements");
    p = fresh(&key_bias, &s), p.args.key_bias = NULL, fails(&p, argument, "key_bias is NULL", "floats");
    const shape single = shape_plain(1, 2, 2, 3, 4);
    p = fresh(&bias, &single), p.args.bias_stride_batch = p.args.q.stride_batch = -1, passes(&p, "strides of a batch of 1");
    p = fresh(&bias, &s), p.args.batch = 0, p.args.lse = (float *)off_by(p.args.lse, 1), p.args.bias = (const char *)p.args.bias + 1, passes(&p, "misaligned arrays, batch 0");
    p = fresh(&bias, &s), p.args.seqlen_k = 0, p.args.bias = (const char *)p.args.bias + 1, passes(&p, "a misaligned bias without keys");
    p = fresh(&key_bias, &s), p.args.key_bias_stride_batch = -1, fails(&p, argument, "key_bias_stride_batch is -1", "not negative");
    p = fresh(&key_bias, &s), p.args.key_bias_stride_head = -1, fails(&p, argument, "key_bias_stride_head is -1", "not negative");
    p = fresh(&user, &s), p.args.user = NULL, fails(&p, argument, "user is NULL", "FA_USER_ARGS");

#if defined(__CUDACC__)
    int room = 0;
    double worst = 0;
    cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    if (room < 198 << 10) {
        p = fresh(&large_tiles, &s);
        fails(&p, FA_ERROR_RESOURCE, "a thread block needs 202752 bytes of shared memory", "smaller FA_BLOCK_N");
    } else tap_ok(check_shape(&large_tiles, &s, &random_numbers, &worst), "tiles of 198 KB, which there is room for");
#endif
    tap_ok(c_plain_forward(NULL, 0) == FA_ERROR_ARGUMENT && !strncmp(fa_last_error(), "c_plain: args is NULL", 21), "error: %s",
           fa_last_error());
    p = fresh(&plain, &s);
    tap_ok(c_plain_plan(&p.args, NULL) == FA_ERROR_ARGUMENT && !strncmp(fa_last_error(), "c_plain: plan is NULL", 21),
           "error: %s", fa_last_error());
    c_plain_forward(NULL, 0);
    tap_ok(check_forward(&p) && strstr(fa_last_error(), "args is NULL"), "a successful call leaves fa_last_error() alone");
    problem_delete(&p);
}

/* Missing parameters of combined masks and hooks: documents of which none matches, and NaN. In a child, because the
 * question is whether it crashes. */
static void combined_parameters(void) {
    const shape s = shape_plain(1, 1, 1, 5, 7);
    static const char *const what[] = {"an AND of masks without document_q", "an AND of masks without document_k",
                                       "an AND of masks without span_begin", "an AND of masks without span_end",
                                       "a chain of hooks without bias", "a chain of hooks without alibi_slopes",
                                       "a chain of hooks without softcap"};
    if (check_place == MEMORY_DEVICE) return; /* CUDA does not survive fork(); the checks are the host's in any case */
    for (int i = 0; i < 7; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            problem p = fresh(i < 2 ? &packed : i < 4 ? &causal_span : i < 6 ? &chain : &capped, &s);
            float slopes[1] = {0.5f};
            int passed;
            p.args.alibi_slopes = slopes;
            if (i == 0) p.args.document_q = NULL;
            if (i == 1) p.args.document_k = NULL;
            if (i == 2) p.args.span_begin = NULL;
            if (i == 3) p.args.span_end = NULL;
            if (i == 4) p.args.bias = NULL;
            if (i == 5) p.args.alibi_slopes = NULL;
            if (i == 6) p.args.softcap = 0;
            if (p.of.forward(&p.args, 0) == FA_OK) {
                double got;
                problem_download(&p);
                got = problem_get(&p, &p.o, &p.args.o, 0, 0, 2, 3);
                passed = i < 4 ? got == 0 : isnan(got);
            } else passed = *fa_last_error() != 0;
            _exit(!passed);
        }
        waitpid(child, &status, 0);
        tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s %s, or is an error: no crash", what[i],
               i < 4 ? "sees nothing" : "gives NaN");
    }
}

/* ---- zero sizes ---- */

/* How many elements of a problem without keys are not 0, or -inf in lse. */
static int wrong_without_keys(problem *p) {
    int wrong = 0, queries = p->args.seqlen_q, rows = p->args.batch * p->args.heads * queries;
    problem_download(p);
    for (int row = 0; row < rows; row++) {
        for (int c = 0; c < p->of.head_dim_v; c++)
            wrong += problem_get(p, &p->o, &p->args.o, row / queries / p->args.heads, row / queries % p->args.heads, row % queries, c) != 0;
        wrong += *problem_lse(p, row) != -INFINITY;
    }
    return wrong;
}
static void zero_sizes(void) {
    fa_attention_args a = fa_attention_defaults();
    fa_plan plan;
    problem p;
    shape s = shape_plain(2, 2, 1, 3, 0);
    tap_ok(c_plain_forward(&a, 0) == FA_OK && c_plain_plan(&a, &plan) == FA_OK && plan.tiles_total == 0, "everything zero and NULL is fine");
    memset(&a, 0, sizeof a);
    tap_ok(c_plain_forward(&a, 0) == FA_OK, "all-zero bytes are valid");
    a.batch = 3, a.heads = a.heads_kv = 2, a.seqlen_k = 9;
    tap_ok(c_plain_forward(&a, 0) == FA_OK && c_half_forward(&a, 0) == FA_OK && c_document_forward(&a, 0) == FA_OK &&
               c_bias_forward(&a, 0) == FA_OK,
           "no queries: NULL is fine everywhere");
    a.seqlen_q = 9, a.batch = 0;
    tap_ok(c_plain_forward(&a, 0) == FA_OK, "no batch: NULL is fine everywhere");
    a.batch = 3, a.heads = a.heads_kv = 0;
    tap_ok(c_plain_forward(&a, 0) == FA_OK, "no heads: NULL is fine everywhere");
    p = fresh(&plain, &s);
    p.args.k.data = p.args.v.data = NULL;
    if (tap_ok(check_forward(&p), "no keys: k and v may be NULL")) {
        const int wrong = wrong_without_keys(&p);
        tap_ok(!wrong, "no keys: o is 0 and lse -inf (%d wrong)", wrong);
    }
    problem_delete(&p);
    const instance *const reading[] = {&document, &span};
    for (int i = 0; i < 2; i++) {
        p = fresh(reading[i], &s);
        p.args.k.data = p.args.v.data = NULL, p.args.document_q = p.args.document_k = p.args.span_begin = p.args.span_end = NULL;
        if (tap_ok(check_forward(&p), "no keys: what %s reads may be NULL", reading[i]->name)) {
            const int wrong = wrong_without_keys(&p);
            tap_ok(!wrong, "no keys, and nothing for %s to read: o is 0 and lse -inf (%d wrong)", reading[i]->name, wrong);
        }
        problem_delete(&p);
    }
    /* Nothing of what hooks read by keys is there, not even before its first element. */
    const instance *const by_key[] = {&bias, &half_key_bias, &key_bias, &document};
    for (size_t i = 0; i < sizeof by_key / sizeof *by_key; i++) {
        const shape few = shape_plain(2, 2, 1, 70, 0);
        p = fresh(by_key[i], &few);
        p.args.k.data = p.args.v.data = NULL, p.args.bias = NULL, p.args.key_bias = NULL, p.args.document_k = NULL;
        const fa_status status = p.of.forward(&p.args, 0);
        const int wrong = wrong_without_keys(&p);
        tap_ok(status == FA_OK && !wrong, "no keys: %s needs no array of them, and gives 0 and -inf (%s, %d wrong)", by_key[i]->name, fa_status_string(status), wrong);
        problem_delete(&p);
    }
    tap_ok(c_plain_workspace(&a) == 0 && c_half_workspace(&a) == 0, "no workspace is needed: NULL is fine");
}

/* What no mask and no hook of an instance reads is not looked at. */
static void unread(void) {
    const shape some = shape_plain(2, 2, 1, 70, 70);
    problem p = fresh(&plain, &some);
    const int *odd = (const int *)(uintptr_t)3; /* which nobody may read */
    p.args.bias = odd, p.args.key_bias = p.args.alibi_slopes = (const float *)(uintptr_t)3, p.args.softcap = NAN, p.args.bias_stride_query = -1;
    p.args.prefix = p.args.document_q = p.args.document_k = p.args.span_begin = p.args.span_end = odd;
    passes(&p, "arrays that no mask and no hook reads may be anything");
}

/* ---- rows whose first keys, or all, are hidden ---- */

/* Gives q's problem the queries of p and its visible keys. */
static void fill_visible_part(problem *q, const problem *p) {
    for (int i = 0; i < 75; i++)
        for (int c = 0; c < 16; c++) {
            for (int h = 0; h < 2; h++)
                problem_set(q, &q->q, &q->args.q, 0, h, i, c, problem_get(p, &p->q, &p->args.q, 0, h, i, c));
            if (i >= 61) continue;
            problem_set(q, &q->k, &q->args.k, 0, 0, i, c, problem_get(p, &p->k, &p->args.k, 0, 0, LATE + i, c));
            problem_set(q, &q->v, &q->args.v, 0, 0, i, c, problem_get(p, &p->v, &p->args.v, 0, 0, LATE + i, c));
        }
}

static void leading_keys(const instance *of, const char *what) {
    shape s = shape_plain(1, 2, 1, 75, LATE + 61), visible = shape_plain(1, 2, 1, 75, 61);
    problem p = fresh(of, &s), q = fresh(&plain, &visible);
    result exact = result_new(&q);
    int wrong = 0;
    double worst = 0;
    fill_visible_part(&q, &p);
    reference_attention(&q, &exact);
    if (tap_ok(check_forward(&p), "%s: runs", what)) {
        problem_download(&p);
        for (int h = 0; h < 2; h++)
            for (int i = 0; i < 75; i++) {
                float lse = *problem_lse(&p, h * 75 + i);
                for (int c = 0; c < 16; c++) {
                    double got = problem_get(&p, &p.o, &p.args.o, 0, h, i, c);
                    double want = i % 3 ? exact.o[(h * 75 + i) * 16 + c] : 0;
                    wrong += !(fabs(got - want) <= (i % 3 ? 1e-5 : 0));
                    worst = number_worse(worst, fabs(got - want));
                }
                wrong += i % 3 ? !(fabs((double)lse - exact.lse[h * 75 + i]) < 1e-5) : lse != -INFINITY;
            }
        tap_ok(!wrong, "%s: hidden keys weigh nothing, hidden rows are 0 with lse -inf (%d wrong, largest error %.2g)", what, wrong,
               worst);
    }
    result_delete(&exact);
    problem_delete(&p);
    problem_delete(&q);
}

/* ---- scores far from 0: only differences count, and hidden means -infinity ---- */

static void far_scores(const instance *of, double rounding) {
    enum { KEYS = 300 };
    static const float shifts[] = {-1e5f, -1e32f, -3.4e38f, 1e5f, 1e32f, 0, 1e9f, 3e8f, 7e8f};
    shape s = shape_plain(1, 1, 1, 70, KEYS);
    for (size_t n = 0; n < sizeof shifts / sizeof *shifts; n++) {
        problem p = fresh(of, &s);
        float *key_bias = (float *)(void *)p.key_bias.host;
        int wrong = 0, growing = shifts[n] == 0, late = shifts[n] > 1e6f && shifts[n] < 1e10f, first = growing ? KEYS - 20 : late ? 130 : 0, d = of->head_dim;
        /* So far away that a float holds no difference: all weights are equal. At 1e5 differences of 1/128 remain.
         * Or a few keys are ahead of all others, and those of the ones before them; or there are such scores from
         * the middle of a tile on. */
        for (int j = 0; j < KEYS; j++) key_bias[j] = late && j < first ? 0.0f : !growing ? shifts[n] : j < 75 ? -1e20f : j < 150 ? 0.0f : j < first ? 1e6f : 1e30f;
        for (size_t i = 0; i < KEYS * (size_t)d * fa_dtype_bytes(of->dtype); i += 4)
            if (fabsf(shifts[n]) < 1e10f) memset(p.k.host + PROBLEM_FRONT + i, 0, 4);
        problem_upload(&p);
        check_forward(&p);
        problem_download(&p);
        for (int c = 0; c < d; c++) {
            double mean = 0;
            for (int j = first; j < KEYS; j++) mean += problem_get(&p, &p.v, &p.args.v, 0, 0, j, c) / (KEYS - first);
            for (int i = 0; i < 70; i++)
                wrong += !(fabs(problem_get(&p, &p.o, &p.args.o, 0, 0, i, c) - mean) < 1e-6 + rounding * fabs(mean));
        }
        if (growing) tap_ok(!wrong, "%s: scores of 0, 1e6 and 1e30 leave the last (%d wrong)", of->name, wrong);
        else if (late) tap_ok(!wrong, "%s: scores of 0, and then of %g, which weigh alike (%d wrong)", of->name, (double)shifts[n], wrong);
        else tap_ok(!wrong, "%s: scores of about %g weigh alike (%d wrong)", of->name, (double)shifts[n], wrong);
        problem_delete(&p);
    }
}

/* How many elements of a query's O differ from the mean of what it sees of V: keys from `begin` on whose bias, if
 * there is one, is not -infinity. */
static int differ_from_mean(problem *p, int query, int begin, int end, const float *bias) {
    int wrong = 0;
    for (int c = 0; c < p->of.head_dim; c++) {
        double mean = 0, got = problem_get(p, &p->o, &p->args.o, 0, 0, query, c);
        int seen = 0;
        for (int j = begin; j < end; j++)
            if (!bias || bias[j] > -INFINITY) mean += problem_get(p, &p->v, &p->args.v, 0, 0, j, c), seen++;
        mean = seen ? mean / seen : 0;
        wrong += !(fabs(got - mean) < 1e-6 + 0x1p-8 * fabs(mean) + (seen ? 0x1p-9 : 0));
    }
    return wrong;
}

/* Scores as low, of which some rows see none in the first tiles: a window's, or those of biases of -infinity; all
 * that see one have the mean of what they see. */
static void late_low_scores(const instance *of) {
    enum { LENGTH = 256, LEFT = 100 };
    const float lows[] = {-1e30f, -1e32f, of->score == SCORE_key_bias ? -3.4e38f : -0x1.fep127f}; /* FA_BF16 has no larger ones */
    int wrong = 0;
    for (int n = 0; n < 6; n++) {
        shape s = shape_plain(1, 1, 1, LENGTH, LENGTH);
        const int windowed = of->mask == MASK_window;
        s.window_left = windowed ? LEFT : -1, s.window_right = windowed ? 0 : -1;
        problem p = fresh(of, &s);
        float bias[LENGTH];
        for (int j = 0; j < LENGTH; j++) bias[j] = (n < 3 ? windowed || j >= 130 : j % 16 % 2 || j % 16 > 6) ? lows[n % 3] : -INFINITY;
        if (of->score == SCORE_key_bias) memcpy(p.key_bias.host, bias, sizeof bias);
        else for (int64_t i = 0; i < LENGTH * LENGTH; i++) number_store(p.bias.host, i, of->dtype, (double)bias[i % LENGTH]);
        problem_upload(&p);
        wrong += !check_forward(&p);
        problem_download(&p);
        for (int i = 0; i < LENGTH; i++)
            wrong += differ_from_mean(&p, i, windowed && i > LEFT ? i - LEFT : 0, windowed ? i + 1 : LENGTH, bias);
        problem_delete(&p);
    }
    tap_ok(!wrong, "%s: scores of -1e30 and below behind tiles that show nothing (%d wrong)", of->name, wrong);
}

/* The same by a hook of one's own, which the schedule for every GPU does not promise (doc/numerics.md). */
static void sunk_scores(const instance *of) {
    enum { LENGTH = 256, LEFT = 64 };
    shape s = shape_plain(1, 1, 1, LENGTH, LENGTH);
    s.window_left = LEFT, s.window_right = 0;
    problem p = fresh(of, &s);
    fa_plan plan;
    const int promised = of->plan(&p.args, &plan) == FA_OK && plan.arch != 80;
    int wrong = !check_forward(&p);
    problem_download(&p);
    for (int i = 0; i < LENGTH && promised; i++) wrong += differ_from_mean(&p, i, i > LEFT ? i - LEFT : 0, i + 1, NULL);
    problem_delete(&p);
    tap_ok(!wrong, "%s: scores of -1e31 by a hook%s (%d wrong)", of->name, promised ? "" : " (whose weights are not promised here)", wrong);
}

/* A large scale makes large scores, of which the largest of a row is alone. */
static void large_scale(const instance *of, int queries, int times) {
    enum { KEYS = 300 };
    shape s = shape_plain(1, 1, 1, queries, KEYS);
    int wrong = 0, sure = 0;
    for (int time = 0; time < times; time++) {
        problem p = fresh(of, &s);
        result exact = result_new(&p);
        p.args.scale = 2e8f;
        memset(p.key_bias.host, 0, KEYS * 4);
        reference_attention(&p, &exact);
        problem_upload(&p);
        wrong += !check_forward(&p);
        problem_download(&p);
        for (int i = 0; i < queries; i++) {
            const double lse = (double)*problem_lse(&p, i);
            double best = -INFINITY, second = -INFINITY;
            for (int j = 0; j < KEYS; j++) {
                double dot = 0;
                for (int c = 0; c < of->head_dim; c++)
                    dot += problem_get(&p, &p.q, &p.args.q, 0, 0, i, c) * problem_get(&p, &p.k, &p.args.k, 0, 0, j, c);
                if (dot > best) second = best, best = dot;
                else if (dot > second) second = dot;
            }
            wrong += !(fabs(lse - exact.lse[i]) < 1e-5 * fabs(exact.lse[i]) + 2e4); /* 1e-4 of what is multiplied */
            if (best - second < 1e-3) continue; /* rounding decides */
            sure++;
            for (int c = 0; c < of->head_dim; c++) {
                const double want = exact.o[i * of->head_dim + c];
                wrong += !(fabs(problem_get(&p, &p.o, &p.args.o, 0, 0, i, c) - want) <= 0x1p-8 * fabs(want) + 1e-6);
            }
        }
        result_delete(&exact);
        problem_delete(&p);
    }
    tap_ok(!wrong && sure > queries * times / 2, "%s: a scale of 2e8 leaves the largest, of %d queries (%d wrong)", of->name, queries, wrong);
}

/* Runs a problem as it is filled, and compares it with the reference: up to what an unfused computation is off, but
 * of o at least `o`, and of lse `lse`, if that is not 0; and in any case up to `most`. *worst: the largest share of
 * it. */
static int agrees_up_to(problem *p, double o, double lse, tolerance most, double *worst) {
    result exact = result_new(p);
    reference_attention(p, &exact);
    tolerance allowed = check_measure(p, &exact);
    allowed.o = fmin(fmax(allowed.o, o), most.o);
    allowed.lse = fmin(lse > 0 ? lse : allowed.lse, most.lse);
    problem_upload(p);
    const int ran = check_forward(p);
    problem_download(p);
    const int right = check_outputs(p, &exact, allowed, worst, 0);
    result_delete(&exact);
    return ran && right;
}
static const tolerance unlimited = {INFINITY, INFINITY};
static int agrees(problem *p, double o, double lse, double *worst) { return agrees_up_to(p, o, lse, unlimited, worst); }

/* Scores that are alike, of products of 0 or (where they may be large) of large ones, whatever the scale: rows have
 * the mean of what they see, and those that see nothing are 0. */
static void any_scale(const instance *of) {
    enum { QUERIES = 350, KEYS = 300, LEFT = 30 };
    static const float scales[] = {1e-30f, 1e-29f, 1e-27f, 1e9f, 1e30f, -1e30f};
    int wrong = 0;
    for (size_t n = 0; n < sizeof scales / sizeof *scales; n++) {
        shape s = shape_plain(1, 2, 1, QUERIES, KEYS);
        s.window_left = of->mask == MASK_window ? LEFT : -1, s.window_right = of->mask == MASK_window ? 0 : -1;
        problem p = fresh(of, &s);
        double off = 0;
        const int small = fabsf(scales[n]) < 1e-25f, large = check_place == MEMORY_HOST && of->dtype == FA_BF16 && small;
        p.args.scale = scales[n];
        if (of->score == SCORE_softcap) p.args.softcap = small ? 1e-30f : 50;
        for (int h = 0; h < 2; h++)
            for (int i = 0; i < QUERIES; i++)
                for (int c = 0; c < of->head_dim; c++) problem_set(&p, &p.q, &p.args.q, 0, h, i, c, large ? 0x1p51 : 0);
        for (int j = 0; large && j < KEYS; j++)
            for (int c = 0; c < of->head_dim; c++) problem_set(&p, &p.k, &p.args.k, 0, 0, j, c, -0x1p51);
        if (p.slopes.host) memset(p.slopes.host, 0, 2 * 4);
        for (int j = 0; p.key_bias.host && j < 2 * KEYS; j++) ((float *)(void *)p.key_bias.host)[j] = -5000.0f;
        wrong += !agrees(&p, 2 * number_half_ulp(4, of->dtype), 1e-2, &off);
        if (wrong) tap_note("scale %g: %.2f of the allowed", (double)scales[n], off);
        problem_delete(&p);
    }
    tap_ok(!wrong, "%s: scores that are alike at scales from 1e-30 to 1e30 (%d wrong)", of->name, wrong);
}

/* A maximum that grows by less than what rescales the accumulators at once, from an early key to a late one: nothing of
 * lse is lost to the roundings of what cancels in the end. */
static void late_maximum(const instance *of) {
    enum { QUERIES = 500, KEYS = 512, EARLY = 3, LATE = 300 };
    shape s = shape_plain(1, 1, 1, QUERIES, KEYS);
    problem p = fresh(of, &s);
    double off = 0;
    p.args.scale = 1;
    for (int c = 0; c < of->head_dim; c++) {
        for (int i = 0; i < QUERIES; i++) problem_set(&p, &p.q, &p.args.q, 0, 0, i, c, c == 0 ? 1 : c == 1 ? (double)i / QUERIES : 0);
        for (int j = 0; j < KEYS; j++) {
            const double first = j == EARLY ? -2 : j == LATE ? 0.01 : -60;
            problem_set(&p, &p.k, &p.args.k, 0, 0, j, c, c == 0 ? first : c == 1 && j == EARLY ? -3.3 : 0);
        }
    }
    const int right = agrees(&p, 0, 0, &off);
    tap_ok(right, "%s: a maximum that comes late: largest error %.2f of the allowed", of->name, off);
    problem_delete(&p);
}

/* ALiBi so steep that a query has its nearest key alone. */
static void steep_lines(const instance *of) {
    static const float slopes[] = {1e6f, 1e35f, 3e38f};
    int wrong = 0;
    for (size_t n = 0; n < sizeof slopes / sizeof *slopes; n++) {
        const shape s = shape_plain(1, 1, 1, 300, 300);
        problem p = fresh(of, &s);
        memcpy(p.slopes.host, &slopes[n], 4);
        problem_upload(&p);
        wrong += !check_forward(&p);
        problem_download(&p);
        for (int i = 0; i < 300; i++)
            for (int c = 0; c < of->head_dim; c++)
                wrong += problem_get(&p, &p.o, &p.args.o, 0, 0, i, c) != problem_get(&p, &p.v, &p.args.v, 0, 0, i, c);
        problem_delete(&p);
    }
    tap_ok(!wrong, "%s: slopes of 1e6 and more leave the nearest key (%d wrong)", of->name, wrong);
}

/* What hooks add is added exactly, whatever the scale, the lengths, and the side of the diagonal, and infinities
 * hide. Where q is 0 the first cases see rounding nowhere else. */
static void added_scores(const instance *of) {
    enum { EXACT = 2 };
    static const struct {
        int queries, keys;
        float scale;
    } cases[] = {{300, 300, 0}, {130, 257, -0.2f}, {4, 3000, 0.01f}, {700, 5, 0}, {513, 200, 3}, {1, 1, -1}, {64, 128, 0.5f}};
    static const float slopes[2][4] = {{0.3f, 0.017f, 0, 0.1f}, {0.3f, -0.1f, 0, 2.7f}};
    double worst = 0;
    int wrong = 0;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        /* At most, in units of log2, in which scores are kept. */
        const double added = 1.45 * (of->score == SCORE_alibi ? (double)slopes[n % 2][n % 2 ? 3 : 0] * fmax(cases[n].queries, cases[n].keys) : n % 2 ? 1e4 : 100);
        /* An unfused computation rounds sums to half types, and is off by whole units: here only weights may be
         * rounded so. What is added is rounded when it is divided by the scale, and when it is multiplied. */
        const tolerance halves = {number_half_ulp(4, of->dtype) + 4 * 2 * number_half_ulp(added, FA_F32), 1e-4 + 4 * number_half_ulp(added, FA_F32)};
        shape s = shape_plain(2, 4, 2, cases[n].queries, cases[n].keys);
        problem p = fresh(of, &s);
        p.args.scale = cases[n].scale;
        if (p.slopes.host) memcpy(p.slopes.host, slopes[n % 2], sizeof slopes[0]);
        if (n < EXACT)
            for (size_t i = 0; i < (size_t)(8 * cases[n].queries * of->head_dim) * fa_dtype_bytes(of->dtype); i++) p.q.host[PROBLEM_FRONT + i] = 0;
        if (p.key_bias.host) {
            float *bias = (float *)(void *)p.key_bias.host;
            const uint32_t nan = 0x7F800001u;
            for (int i = 0; i < 8 * cases[n].keys; i++) { /* a head is hidden, one is down, and one far down in some cases */
                const int head = i / cases[n].keys % 4;
                bias[i] = head == 1 || rng_one_in(&random_numbers, 5) ? -INFINITY : (float)(3 * rng_normal(&random_numbers)) - (head == 0 ? 100.0f : head == 2 && n % 2 ? 1e4f : 0);
            }
            memcpy(&bias[3 * cases[n].keys], &nan, sizeof nan);
        }
        /* Where q is 0 all rows of a head are alike: too few to measure an error by. A key that outweighs the others
         * and comes early is rounded with each of the hundreds after it: at random, 1e-6 of values up to 4, of which
         * 2e-6 are allowed. Rounding what is added, at 100, would be 5e-6. 1e-4: 13 units of the last place of what
         * is added. */
        /* Where q is not 0 the largest error is that of a few rows in which two keys weigh alike: o is off by up to
         * a quarter of the difference of their values for what their scores are off by. With other roundings others
         * are the largest: of 600 times, one was off by 2.4 times the unfused one. */
        const double least = 8 * number_half_ulp(4, FA_F32), alike = n < EXACT || n % 2 ? 0 : 2 * number_half_ulp(added, FA_F32);
        wrong += !agrees_up_to(&p, fmax(least, alike), n < EXACT ? 1e-4 : 0, of->dtype == FA_F32 ? unlimited : halves, &worst);
        problem_delete(&p);
    }
    tap_ok(!wrong, "%s: what is added to scores of any scale, on both sides of the diagonal: largest error %.2f of the allowed (%d wrong)",
           of->name, worst, wrong);
}

/* Documents of which each begins in another block of queries: what one block sees is not what those beside it do. */
static void documents_apart(const instance *of) {
    enum { LENGTH = 1000, TOKENS = 125 };
    shape s = shape_plain(1, 1, 1, LENGTH, LENGTH);
    s.threads = 1;
    problem p = fresh(of, &s);
    double off = 0;
    for (int i = 0; i < LENGTH; i++) ((int *)(void *)p.document_q.host)[i] = ((int *)(void *)p.document_k.host)[i] = i / TOKENS * 7 % 8;
    const int right = agrees(&p, 0, 0, &off);
    tap_ok(right, "%s: documents that begin in blocks of their own: largest error %.2f of the allowed", of->name, off);
    problem_delete(&p);
}

/* More tiles of keys than a warp looks at at once, whose documents come more than once, and two batches. (With 9,000
 * keys Hopper's planner goes more than twice round the ring of its notes.) */
static void many_documents(const instance *of, int keys) {
    enum { QUERIES = 300 };
    shape s = shape_plain(2, 1, 1, QUERIES, keys);
    problem p = fresh(of, &s);
    double off = 0;
    for (int i = 0; i < 2 * QUERIES; i++) ((int *)(void *)p.document_q.host)[i] = i / 47 * 7 % 8;
    for (int j = 0; j < 2 * keys; j++) ((int *)(void *)p.document_k.host)[j] = j / 190 * 3 % 8;
    const int right = agrees(&p, 0, 0, &off);
    tap_ok(right, "%s: many tiles of documents, %d keys: largest error %.2f of the allowed", of->name, keys, off);
    problem_delete(&p);
}

/* Spans of neighbouring queries far apart, with tiles between them that none of them sees, and one query in the
 * middle that sees some of these; and those of a causal mask: tiles that all see, and a diagonal. */
static void spans(const instance *of) {
    enum { QUERIES = 310, KEYS = 2300 };
    for (int causal = 0; causal < 2; causal++) {
        shape s = shape_plain(1, 2, 1, QUERIES, KEYS);
        problem p = fresh(of, &s);
        double off = 0;
        for (int i = 0; i < QUERIES; i++) {
            const int begin = causal ? 7 : i % 128 == 64 ? 1111 : i % 2 ? 2100 : 130;
            ((int *)(void *)p.span_begin.host)[i] = begin, ((int *)(void *)p.span_end.host)[i] = causal ? KEYS - QUERIES + i + 1 : begin + 90;
        }
        const int right = agrees(&p, 0, 0, &off);
        tap_ok(right, "%s: spans %s: largest error %.2f of the allowed", of->name, causal ? "of a causal mask" : "far apart", off);
        problem_delete(&p);
    }
}

/* Hooks are asked about what there is, also where nobody looks at the answer. */
static void hooks_inside(void) {
    static const int lengths[][2] = {{1, 1}, {1, 65}, {70, 7}, {63, 127}, {150, 300}, {300, 150}, {129, 513},
                                    {127, 130}, {160, 129}, {256, 257}, {40, 600}, {100, 600}}; /* few queries missing, none, and all of a worker's */
    int *outside = (int *)memory_new(check_place, sizeof *outside), none = 0;
    memory_put(check_place, outside, &none, sizeof none);
    for (size_t i = 0; i < sizeof spies / sizeof *spies; i++) {
        int told = 0, wrong = 0;
        for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
            const shape s = shape_plain(2, 3, 1, lengths[n][0], lengths[n][1]);
            const struct spied user = {outside, lengths[n][0], lengths[n][1]};
            problem p = fresh(&spies[i], &s);
            p.args.user = &user;
            wrong += !check_forward(&p);
            memory_get(check_place, &told, outside, sizeof told);
            if (told) tap_note("%d queries and %d keys", lengths[n][0], lengths[n][1]);
            problem_delete(&p);
            if (told) break;
        }
        memory_put(check_place, outside, &none, sizeof none);
        tap_ok(!told && !wrong, "%s: what a hook is told lies inside the sequences", spies[i].name);
    }
    memory_delete(check_place, outside, sizeof *outside);
}

/* Soft caps that scores are far from, or near to, wherever in a row: what is computed differently must not show. */
static void near_caps(const instance *of, int tokens) {
    const int far_key = tokens / 3, far_query = tokens - 20;
    static const struct {
        const char *what;
        float cap;
        double score, far; /* what the first components of q and k add up to, and to what with far_key; */
        int all;           /* of all queries, or of far_query alone */
    } cases[] = {
        {"all scores far from it", 60, 0, 0, 1},          {"all scores near it", 1, 0, 0, 1},
        {"all scores about a third of it", 20, 7, 7, 1},  {"a key with scores near it", 20, 7, 19, 1},
        {"a key with scores near -cap", 20, 7, -25, 1},   {"one score near it", 20, 7, 19, 0},
        {"a large score that is far from it", 90, 0, 45, 1}, {"a key with infinite scores", 20, 0, INFINITY, 1},
    };
    const double q = 4, k = sqrt(of->head_dim) / q;
    shape s = shape_plain(1, 1, 1, tokens, tokens);
    if (of->mask == MASK_window) s.window_left = tokens * 2 / 3, s.window_right = 0;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        problem p = fresh(of, &s);
        double off = 0;
        p.args.softcap = cases[n].cap;
        for (int i = 0; i < tokens; i++) {
            problem_set(&p, &p.q, &p.args.q, 0, 0, i, 0, cases[n].all || i == far_query ? q : 0);
            problem_set(&p, &p.k, &p.args.k, 0, 0, i, 0, k * (i == far_key ? cases[n].far : cases[n].score));
        }
        const int right = agrees(&p, 0, 0, &off);
        tap_ok(right, "%s: a soft cap, %s, %d tokens (%.2f of the allowed error)", of->name, cases[n].what, tokens, off);
        problem_delete(&p);
    }
}

/* Soft caps and scales at the ends of what is accepted. */
static void far_caps(void) {
    static const float caps[] = {1e-30f, 1e-3f, 50, 1e8f}, scales[] = {2e-30f, 0.3f, 1e25f};
    shape s = shape_plain(1, 1, 1, 70, 150);
    for (int n = 0; n < 12; n++) {
        float cap = caps[n / 3], scale = scales[n % 3];
        if (cap > 1 && scale > 1) continue; /* rounding alone decides */
        problem p = fresh(&softcap, &s);
        result exact = result_new(&p);
        int wrong = 0;
        p.args.softcap = cap, p.args.scale = scale;
        for (int i = 0; i < 150; i++) /* eighths, whose dot products are exact: a large scale makes a score of what rounding leaves of 0 */
            for (int c = 0; c < 8; c++) {
                if (i < 70) problem_set(&p, &p.q, &p.args.q, 0, 0, i, c, rint(8 * problem_get(&p, &p.q, &p.args.q, 0, 0, i, c)) / 8);
                problem_set(&p, &p.k, &p.args.k, 0, 0, i, c, rint(8 * problem_get(&p, &p.k, &p.args.k, 0, 0, i, c)) / 8);
            }
        for (int c = 0; c < 8; c++) problem_set(&p, &p.q, &p.args.q, 0, 0, 0, c, 0); /* scores of 0, too */
        reference_attention(&p, &exact);
        problem_upload(&p);
        wrong += !check_forward(&p);
        problem_download(&p);
        for (int i = 0; i < 70; i++) {
            float lse = *problem_lse(&p, i);
            wrong += !(fabs((double)lse - exact.lse[i]) < 1e-5);
            for (int c = 0; c < 8; c++) wrong += !(fabs(problem_get(&p, &p.o, &p.args.o, 0, 0, i, c) - exact.o[i * 8 + c]) < 1e-5);
        }
        tap_ok(!wrong, "a soft cap of %g, a scale of %g (%d wrong)", (double)cap, (double)scale, wrong);
        result_delete(&exact);
        problem_delete(&p);
    }
}

/* Many heads: more work items than 16 bits hold, and a head count that is no power of two. */
static void many_heads(void) {
    shape s = shape_plain(7, 12345, 4115, 1, 2);
    double worst = 0;
    tap_ok(check_shape(&half_causal, &s, &random_numbers, &worst), "7 batches of 12345 heads in groups of 3");
}

/* Every block of queries is computed, whatever number of threads, blocks and heads there are, and however few heads'
 * keys fit in the cache: q, k and v are one row, repeated, so that many keys take no memory, and the window shows
 * each query one key. Every output is that row. */
static void every_block(void) {
#if defined(__CUDACC__) /* which has no use for `threads` */
    enum { D = 16, MOST = 12 * 128 * 7 * D, THREADS = 1 };
#else
    enum { D = 16, MOST = 12 * 128 * 7 * D, THREADS = 5 };
#endif
    float *row = (float *)memory_new(check_place, D * 4), *out = (float *)memory_new(check_place, MOST * 4), one[D];
    float *got = (float *)malloc(MOST * 4);
    int wrong = 0;
    for (int i = 0; i < D; i++) one[i] = (float)(i + 1);
    memory_put(check_place, row, one, sizeof one);
    for (int threads = 1; threads <= THREADS; threads++)
        for (int blocks = 1; blocks <= 12; blocks += SIMULATED ? 3 : 1)
            for (int heads = 1; heads <= 7; heads += SIMULATED ? 6 : 2) {
                fa_attention_args a = fa_attention_defaults();
                a.batch = 1, a.heads = a.heads_kv = heads, a.seqlen_q = blocks * 128 - 7, a.seqlen_k = 100000;
                a.window_left = a.window_right = 0, a.threads = threads;
                a.q.data = a.k.data = a.v.data = row;
                a.o = fa_tensor_bhsd(out, heads, a.seqlen_q, D);
                for (int i = 0; i < MOST; i++) got[i] = NAN;
                memory_put(check_place, out, got, MOST * 4);
                wrong += c_narrow_forward(&a, 0) != FA_OK;
                memory_get(check_place, got, out, MOST * 4);
                for (int i = 0; i < heads * a.seqlen_q * D; i++) wrong += got[i] != one[i % D];
            }
    tap_ok(!wrong, "every block of queries is computed, for any number of threads, blocks and heads (%d wrong)", wrong);
    memory_delete(check_place, row, D * 4);
    memory_delete(check_place, out, MOST * 4);
    free(got);
}

/* The same with a bias, by the order of the blocks alone: without a mask each would visit all keys. Heads that have
 * in common what no cache keeps take each block together, and so do sequences; all others one head after the other. */
static void every_block_of_a_bias(void) {
    enum { BLOCK = 128, HEADS = 7, BATCH = 3, MOST = 12, ALL = 0, SEQUENCES = 1, NOBODY = 2 }; /* who shares a bias */
    static uint16_t room[32]; /* which nobody reads */
    char *const at = (char *)(((uintptr_t)room + 15) / 16 * 16);
    int wrong = 0, heads_together = 0, sequences_together = 0, apart = 0;
    for (int blocks = 1; blocks <= MOST; blocks++)
        for (int heads = 1; heads <= HEADS; heads++)
            for (int kind = 0; kind < 6; kind++) {
                const int sharers = kind / 2, large = kind % 2;
                int seen[BATCH][HEADS][MOST] = {{{0}}};
                fa_attention_args a = fa_attention_defaults();
                c_bias__params p;
                a.batch = BATCH, a.heads = a.heads_kv = heads, a.seqlen_q = blocks * BLOCK - 7;
                a.seqlen_k = (large ? 30000000 : 20000000) / (a.seqlen_q * (sharers == SEQUENCES ? heads : 1));
                a.q = a.k = a.v = fa_tensor_bhsd(at, heads, a.seqlen_k, 8);
                a.o = fa_tensor_bhsd(at + 16, heads, a.seqlen_q, 8);
                a.bias = at + 32, a.bias_stride_query = 1;
                a.bias_stride_head = sharers == ALL ? 0 : a.seqlen_q, a.bias_stride_batch = sharers == NOBODY ? heads * a.seqlen_q : 0;
                if (c_bias__prepare(&a, &p, BLOCK) != FA_OK) {
                    tap_ok(0, "blocks under a bias: %s", fa_last_error());
                    return;
                }
                wrong += p.items != (uint32_t)(BATCH * heads * blocks);
                for (uint32_t i = 0; i < p.items; i++) {
                    const fa_box box = c_bias__box(&p, i, BLOCK);
                    seen[box.batch][box.head][box.queries.begin / BLOCK]++;
                    if (i == 0 || heads == 1 || blocks == 1) continue;
                    const fa_box before = c_bias__box(&p, i - 1, BLOCK);
                    if (before.queries.begin != box.queries.begin) continue;
                    if (large && sharers == ALL) heads_together++;
                    else if (large && sharers == SEQUENCES && before.head == box.head) sequences_together++;
                    else apart++;
                }
                for (int b = 0; b < BATCH; b++)
                    for (int h = 0; h < heads; h++)
                        for (int j = 0; j < blocks; j++) wrong += seen[b][h][j] != 1;
            }
    tap_ok(!wrong, "every block of queries under a bias is computed, for any number of blocks and heads (%d wrong)", wrong);
#if defined(__CUDACC__) /* of a CPU's cores each walks by itself, and has a cache of its own */
    tap_ok(heads_together > 0 && sequences_together > 0 && !apart, "heads (%d times) and sequences (%d times) that share a bias that no cache keeps take blocks together, and others do not (%d times)",
           heads_together, sequences_together, apart);
#else
    tap_ok(!heads_together && !sequences_together && !apart, "heads do not take blocks together, whether they (%d times), or sequences (%d times), share a bias or not (%d times)",
           heads_together, sequences_together, apart);
#endif
}

/* ---- NaN and infinity ---- */

static int64_t bits_at(const problem *p, int b, int h, int i, int c) {
    int64_t bits = 0;
    memcpy(&bits, p->o.host + PROBLEM_FRONT + problem_offset(&p->args.o, b, h, i, c) * number_bytes(p->of.dtype),
           (size_t)number_bytes(p->of.dtype));
    return bits;
}

/* Whether some of the `rows` queries that a query is looked at with see a key of the tile, of `cols`, that holds a
 * key. */
static int visited(const problem *p, int rows, int cols, int query, int key) {
    const int first = query / rows * rows, tile = key / cols * cols;
    for (int i = first; i < first + rows && i < p->args.seqlen_q; i++)
        for (int j = tile; j < tile + cols && j < p->args.seqlen_k; j++)
            if (reference_visible(p, 0, 0, i, j)) return 1;
    return 0;
}

/* Runs where equal outputs would say nothing if the call had failed. */
static void must_run(problem *p) {
    if (!check_forward(p)) tap_bail("%s", fa_last_error());
    problem_download(p);
}

/* Runs again with one value changed. `p` keeps the outputs from before. */
static problem rerun(const problem *p, int which, int row, int col, double value) {
    problem q = fresh(&p->of, &p->shape);
    memcpy(q.q.host, p->q.host, p->q.bytes), memcpy(q.k.host, p->k.host, p->k.bytes), memcpy(q.v.host, p->v.host, p->v.bytes);
    if (p->slopes.host) memcpy(q.slopes.host, p->slopes.host, p->slopes.bytes);
    if (which == 'q') problem_set(&q, &q.q, &q.args.q, 0, 0, row, col, value);
    if (which == 'k') problem_set(&q, &q.k, &q.args.k, 0, 0, row, col, value);
    if (which == 'v') problem_set(&q, &q.v, &q.args.v, 0, 0, row, col, value);
    problem_upload(&q);
    must_run(&q);
    return q;
}

/* A row whose weights grow from tile to tile, beside one that is NaN, which may be held by the same threads. */
static void nan_beside(const instance *of) {
    enum { QUERIES = 16, KEYS = 700 };
    int wrong = 0;
    for (int growing = 0; growing < QUERIES; growing += 5) {
        shape s = shape_plain(1, 1, 1, QUERIES, KEYS);
        problem p, q;
        s.window_left = KEYS, s.window_right = 0;
        p = fresh(of, &s);
        for (int i = 0; i < QUERIES; i++)
            for (int c = 0; c < of->head_dim; c++) problem_set(&p, &p.q, &p.args.q, 0, 0, i, c, i == growing && c == 1 ? 64.0 : 0.0);
        for (int j = 0; j < KEYS; j++) problem_set(&p, &p.k, &p.args.k, 0, 0, j, 1, j / 16.0);
        problem_upload(&p);
        must_run(&p);
        q = rerun(&p, 'q', growing ^ 8, 3, NAN);
        fa_plan plan;
        if (of->plan(&p.args, &plan) != FA_OK) tap_bail("%s", fa_last_error());
        for (int c = 0; c < of->head_dim; c++) {
            wrong += !isnan(problem_get(&q, &q.o, &q.args.o, 0, 0, growing ^ 8, c));
            const double apart = problem_get(&q, &q.o, &q.args.o, 0, 0, growing, c) - problem_get(&p, &p.o, &p.args.o, 0, 0, growing, c);
            /* There rows of a warp change their maximum together, within a tile, and weights are rounded relative to
             * that. */
            wrong += plan.arch == 80 ? !(fabs(apart) <= 0x1p-9) : bits_at(&q, 0, 0, growing, c) != bits_at(&p, 0, 0, growing, c);
        }
        problem_delete(&q);
        problem_delete(&p);
    }
    tap_ok(!wrong, "%s: NaN in a row leaves alone another, of which every tile has a larger maximum (%d wrong)", of->name, wrong);
}

static void nan_spreads(const instance *of) {
    enum { ROWS = 150, AT = 77, COL = 5 };
    shape s = shape_plain(1, 1, 1, ROWS, ROWS);
    problem p, q;
    fa_plan plan;
    int d = of->head_dim, wrong_rows = 0, wrong_others = 0, v_wrong = 0, v_others = 0, infinite = 0;
    s.window_left = 40, s.window_right = 0;
    p = fresh(of, &s);
    must_run(&p);
    if (of->plan(&p.args, &plan) != FA_OK) tap_bail("%s", fa_last_error());

    q = rerun(&p, 'q', AT, 3, NAN);
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < d; c++) {
            if (i == AT) wrong_rows += !isnan(problem_get(&q, &q.o, &q.args.o, 0, 0, i, c));
            else wrong_others += bits_at(&q, 0, 0, i, c) != bits_at(&p, 0, 0, i, c);
        }
    wrong_rows += !isnan(*problem_lse(&q, AT));
    tap_ok(!wrong_rows && !wrong_others, "%s: NaN in a query makes its row NaN, lse too, and no other (%d, %d wrong)", of->name,
           wrong_rows, wrong_others);
    problem_delete(&q);

    wrong_rows = wrong_others = 0;
    q = rerun(&p, 'k', AT, 3, NAN);
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < d; c++) {
            if (reference_visible(&p, 0, 0, i, AT)) wrong_rows += !isnan(problem_get(&q, &q.o, &q.args.o, 0, 0, i, c));
            else wrong_others += bits_at(&q, 0, 0, i, c) != bits_at(&p, 0, 0, i, c);
        }
    for (int i = 0; i < ROWS; i++) {
        if (reference_visible(&p, 0, 0, i, AT)) wrong_rows += !isnan(*problem_lse(&q, i));
        else wrong_others += memcmp(problem_lse(&p, i), problem_lse(&q, i), 4) != 0;
    }
    tap_ok(!wrong_rows && !wrong_others, "%s: NaN in a key reaches the rows that see it, and no other (%d, %d wrong)", of->name,
           wrong_rows, wrong_others);
    problem_delete(&q);

    q = rerun(&p, 'v', AT, COL, NAN);
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < d; c++) {
            /* Hidden from a row, it is 0 * NaN: only a tile that is not visited does nothing. (A warpgroup may skip
             * what a block visits.) */
            const int rows = plan.arch == 90 ? 64 : plan.block_m;
            if (c == COL && visited(&p, rows, plan.block_n, i, AT)) v_wrong += !isnan(problem_get(&q, &q.o, &q.args.o, 0, 0, i, c));
            else if (c != COL || !visited(&p, plan.block_m, plan.block_n, i, AT)) v_others += bits_at(&q, 0, 0, i, c) != bits_at(&p, 0, 0, i, c);
        }
    tap_ok(!v_wrong && !v_others, "%s: NaN in a value reaches its column in the rows that visit its tile, and nothing else (%d, %d wrong)",
           of->name, v_wrong, v_others);
    problem_delete(&q);

    /* FA_F32 on a GPU splits values into two parts, of which that of an infinity is NaN (doc/numerics.md). */
    q = rerun(&p, 'v', AT, COL, INFINITY);
#if defined(__CUDACC__)
    const int nan_too = of->dtype == FA_F32;
#else
    const int nan_too = 0;
#endif
    for (int i = 0; i < ROWS; i++)
        if (reference_visible(&p, 0, 0, i, AT)) {
            double got = problem_get(&q, &q.o, &q.args.o, 0, 0, i, COL);
            infinite += !(got == INFINITY || (nan_too && isnan(got)));
        }
    tap_ok(!infinite, "%s: infinity in a value gives infinity%s in the rows that see it (%d wrong)", of->name, nan_too ? " or NaN" : "",
           infinite);
    problem_delete(&q);
    problem_delete(&p);
}

/* What lies past the ends and between the rows may hold anything. */
static void beyond_ends(const instance *of) {
    static const int fillings[] = {0xFF, 0x00, 0x7C, 0x7F, -1}; /* NaN; 0; huge floats, NaN as f16; large or NaN; infinity */
    shape s = shape_plain(2, 4, 2, 77, 131);
    problem p;
    int wrong = 0;
    s.window_left = 50, s.window_right = 20;
    s.q.pad_row = s.k.pad_row = s.v.pad_row = s.o.pad_row = 2;
    s.q.pad_seq = s.k.pad_seq = s.v.pad_seq = s.o.pad_seq = 70;
    s.q.tail = s.k.tail = s.v.tail = s.o.tail = 4000;
    p = fresh(of, &s);
    must_run(&p);
    for (size_t n = 1; n < sizeof fillings / sizeof *fillings; n++) {
        problem q = fresh(of, &s);
        buffer *from[] = {&p.q, &p.k, &p.v}, *to[] = {&q.q, &q.k, &q.v};
        const fa_tensor *tensors[] = {&p.args.q, &p.args.k, &p.args.v};
        for (int t = 0; t < 3; t++) {
            if (fillings[n] >= 0) memset(to[t]->host, fillings[n], to[t]->bytes);
            else
                for (int64_t i = 0; i < (int64_t)to[t]->bytes / number_bytes(of->dtype); i++) number_store(to[t]->host, i, of->dtype, INFINITY);
            for (int b = 0; b < 2; b++)
                for (int h = 0; h < (t ? 2 : 4); h++)
                    for (int i = 0; i < (t ? 131 : 77); i++) {
                        size_t at = PROBLEM_FRONT + (size_t)(problem_offset(tensors[t], b, h, i, 0) * number_bytes(of->dtype));
                        memcpy(to[t]->host + at, from[t]->host + at, (size_t)(of->head_dim * number_bytes(of->dtype)));
                    }
        }
        if (p.slopes.host) memcpy(q.slopes.host, p.slopes.host, p.slopes.bytes);
        problem_upload(&q);
        must_run(&q);
        wrong += memcmp(p.o.host, q.o.host, p.o.bytes) != 0 || memcmp(p.lse.host, q.lse.host, p.lse.bytes) != 0;
        problem_delete(&q);
    }
    tap_ok(!wrong, "%s: what lies beyond the ends and in paddings changes nothing, bitwise (%d of 4 differ)", of->name, wrong);
    problem_delete(&p);
}

/* ---- determinism ---- */

/* Runs a problem again into poison; 1 if every byte of the outputs is as it was. */
static int same_again(problem *p) {
    buffer o = p->o, lse = p->lse;
    int same;
    p->o.host = (unsigned char *)malloc(o.bytes), p->lse.host = (unsigned char *)malloc(lse.bytes);
    problem_poison(p);
    problem_upload(p);
    same = check_forward(p);
    problem_download(p);
    same = same && !memcmp(o.host, p->o.host, o.bytes) && !memcmp(lse.host, p->lse.host, lse.bytes);
    free(o.host), free(lse.host);
    return same;
}

static void determinism(const instance *of) {
    static const int threads[] = {2, 3, 7, 64, 0};
    shape s = shape_plain(2, 6, 2, 301, 277);
    problem p;
    int wrong = 0;
    s.window_left = 100, s.window_right = 50, s.threads = 1;
    p = fresh(of, &s);
    check_forward(&p);
    problem_download(&p);
    for (int i = 0; i < (SIMULATED ? 1 : 5); i++) wrong += !same_again(&p);
    tap_ok(!wrong, "%s: more runs give the same bits (%d differ)", of->name, wrong);
    if (check_place == MEMORY_HOST) {
        for (int i = wrong = 0; i < 5; i++) p.args.threads = threads[i], wrong += !same_again(&p);
        tap_ok(!wrong, "%s: the same bits with 1, 2, 3, 7, 64 and all threads (%d differ)", of->name, wrong);
    }
    /* Each sequence, and each head of it, alone. */
    wrong = 0;
    for (int b = 0; b < 2; b++)
        for (int h = 0; h < 6; h++) {
            problem one;
            size_t bytes = (size_t)number_bytes(of->dtype), row = (size_t)of->head_dim_v * bytes;
            shape t = s;
            t.batch = 1, t.heads = t.heads_kv = 1;
            one = fresh(of, &t);
            memcpy(one.q.host + PROBLEM_FRONT, p.q.host + PROBLEM_FRONT + (size_t)problem_offset(&p.args.q, b, h, 0, 0) * bytes, 301 * row);
            memcpy(one.k.host + PROBLEM_FRONT, p.k.host + PROBLEM_FRONT + (size_t)problem_offset(&p.args.k, b, h / 3, 0, 0) * bytes, 277 * row);
            memcpy(one.v.host + PROBLEM_FRONT, p.v.host + PROBLEM_FRONT + (size_t)problem_offset(&p.args.v, b, h / 3, 0, 0) * bytes, 277 * row);
            if (one.slopes.host) memcpy(one.slopes.host, p.slopes.host + 4 * h, 4);
            problem_upload(&one);
            check_forward(&one);
            problem_download(&one);
            wrong += memcmp(one.o.host + PROBLEM_FRONT, p.o.host + PROBLEM_FRONT + (size_t)problem_offset(&p.args.o, b, h, 0, 0) * bytes,
                            301 * row) != 0;
            wrong += memcmp(problem_lse(&one, 0), problem_lse(&p, (b * 6 + h) * 301), 301 * 4) != 0;
            problem_delete(&one);
        }
    tap_ok(!wrong, "%s: a head gives the same bits alone and in a batch (%d of 24 differ)", of->name, wrong);
    problem_delete(&p);
}

#if defined(__CUDACC__)
/* Rows of a bias that can be loaded 16 bytes at a time, or cannot; whole tiles and others. */
static void biases_in_one_stage(void) {
    static const int keys[] = {1, 64, 136, 192, 200, 202, 333};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        shape s = shape_plain(2, 4, 2, keys[i] + 3 * (int)(i % 2), keys[i]);
        double worst = 0;
        tap_ok(check_shape(&one_stage, &s, &random_numbers, &worst), "a bias of half types where there is one stage, %d keys", keys[i]);
    }
}
#endif

/* The same of a sequence whose bias the copy engine can bring if it is alone, and the warps gather if it is not:
 * what they put beside the queries that there are must be the same, since a warp's rows are weighed anew together.
 * One key outweighs the others: its product is -5, its bias 12.3. */
static void bias_alone(const instance *of) {
    enum { KEYS = 512, ONE = 300 };
    shape s = shape_plain(1, 1, 1, 1, KEYS), t = shape_plain(2, 1, 1, 1, KEYS + 4);
    problem p = fresh(of, &s), q = fresh(of, &t);
    const double product = -5, per = product * sqrt((double)of->head_dim) / of->head_dim;
    q.args.seqlen_k = KEYS;
    for (int b = 0; b < 2; b++) {
        for (int c = 0; c < of->head_dim; c++) {
            for (int j = 0; j < KEYS; j++) {
                problem_set(&q, &q.k, &q.args.k, b, 0, j, c, j == ONE ? per : problem_get(&p, &p.k, &p.args.k, 0, 0, j, c) / 8);
                problem_set(&q, &q.v, &q.args.v, b, 0, j, c, problem_get(&p, &p.v, &p.args.v, 0, 0, j, c));
            }
            problem_set(&q, &q.q, &q.args.q, b, 0, 0, c, 1);
        }
        for (int j = 0; j < KEYS; j++) number_store(q.bias.host, b * (KEYS + 4) + j, of->dtype, j == ONE ? 12.3 : 0);
    }
    unsigned char *o[2], *lse[2];
    int ran = 0;
    for (int i = 0; i < 2; i++) {
        q.args.batch = 1 + i;
        problem_poison(&q);
        problem_upload(&q);
        ran += check_forward(&q);
        problem_download(&q);
        o[i] = (unsigned char *)malloc(q.o.bytes), lse[i] = (unsigned char *)malloc(q.lse.bytes);
        memcpy(o[i], q.o.host, q.o.bytes), memcpy(lse[i], q.lse.host, q.lse.bytes);
    }
    const size_t row = (size_t)of->head_dim_v * (size_t)number_bytes(of->dtype);
    tap_ok(ran == 2 && !memcmp(o[0] + PROBLEM_FRONT, o[1] + PROBLEM_FRONT, row) && !memcmp(lse[0] + PROBLEM_FRONT, lse[1] + PROBLEM_FRONT, 4),
           "%s: a sequence with a bias whose strides depend on the batch gives the same bits alone and in a batch", of->name);
    for (int i = 0; i < 2; i++) free(o[i]), free(lse[i]);
    problem_delete(&p);
    problem_delete(&q);
}

/* ---- offsets beyond 2^31 elements ---- */

/* Memory of which only the pages that are touched are taken, on the host; NULL if the system does not lend so much. */
static unsigned char *new_space(size_t bytes) {
    if (check_place == MEMORY_DEVICE) return (unsigned char *)memory_new(check_place, bytes);
    void *space = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return space == MAP_FAILED ? NULL : (unsigned char *)space;
}
static void delete_space(unsigned char *space, size_t bytes) {
    if (check_place == MEMORY_DEVICE) memory_delete(check_place, space, bytes);
    else if (space) munmap(space, bytes);
}
/* Elements of a space that the strides below stay in. */
static const size_t FAR_ELEMENTS = ((size_t)1 << 31) + ((size_t)1 << 30);

/* A tensor with rows far apart, of which only the rows themselves are touched. */
static void far_tensor(fa_tensor *t, const fa_tensor *near, const buffer *image, unsigned char *space, const int64_t *strides, int batch,
                       int heads, int rows, int cols, size_t bytes, int out) {
    fa_tensor far_away;
    far_away.data = space;
    far_away.stride_batch = strides[0], far_away.stride_head = strides[1], far_away.stride_seq = strides[2];
    for (int b = 0; b < batch; b++)
        for (int h = 0; h < heads; h++)
            for (int i = 0; i < rows; i++) {
                unsigned char *at = space + (size_t)problem_offset(&far_away, b, h, i, 0) * bytes;
                unsigned char *from = image->host + PROBLEM_FRONT + (size_t)problem_offset(near, b, h, i, 0) * bytes;
                if (out == 2) memory_get(check_place, from, at, (size_t)cols * bytes);
                else if (out == 0) memory_put(check_place, at, from, (size_t)cols * bytes);
            }
    *t = far_away;
}

static void far_offsets(const instance *of) {
    /* Batch, head and row strides such that the last elements lie beyond 2^31 elements by one of them. */
    static const int64_t strides[3][3] = {{(int64_t)1 << 31, 1 << 20, 1 << 12}, {1 << 20, (int64_t)1 << 31, 1 << 12}, {0, 1 << 20, 1 << 28}};
    static const char *const names[] = {"batch", "head", "seq"};
    for (int n = 0; n < 3; n++) {
        shape s = shape_plain(n == 2 ? 1 : 2, 2, 2, 11, 10);
        size_t bytes = (size_t)number_bytes(of->dtype), space = FAR_ELEMENTS * bytes;
        problem p, q;
        unsigned char *spaces[4];
        result exact;
        tolerance allowed;
        double worst = 0;
        int passed;
        fa_tensor *tensors[4];
        const fa_tensor *near[4];
        buffer *images[4];
        s.window_left = 6, s.window_right = 2;
        for (int i = 0; i < 4; i++) {
            spaces[i] = new_space(space);
            if (!spaces[i]) {
                for (int j = 0; j < i; j++) delete_space(spaces[j], space);
                tap_skip("offsets beyond 2^31 elements: the system lends no %zu bytes of address space", space);
                return;
            }
        }
        p = fresh(of, &s);
        exact = result_new(&p);
        allowed = check_prepare(&p, &exact, 4096, &random_numbers);
        problem_upload(&p);
        q = p;
        tensors[0] = &q.args.q, tensors[1] = &q.args.k, tensors[2] = &q.args.v, tensors[3] = &q.args.o;
        near[0] = &p.args.q, near[1] = &p.args.k, near[2] = &p.args.v, near[3] = &p.args.o;
        images[0] = &p.q, images[1] = &p.k, images[2] = &p.v, images[3] = &p.o;
        for (int i = 0; i < 4; i++)
            far_tensor(tensors[i], near[i], images[i], spaces[i], strides[n], s.batch, 2, i == 0 || i == 3 ? 11 : 10, of->head_dim, bytes,
                       i == 3);
        passed = check_forward(&q);
        problem_download(&p);
        far_tensor(tensors[3], near[3], images[3], spaces[3], strides[n], s.batch, 2, 11, of->head_dim, bytes, 2);
        passed = passed && check_outputs(&p, &exact, allowed, &worst, 0);
        tap_ok(passed, "%s: offsets beyond 2^31 elements by stride_%s", of->name, names[n]);
        for (int i = 0; i < 4; i++) delete_space(spaces[i], space);
        result_delete(&exact);
        problem_delete(&p);
    }
}

/* The same of what hooks read: a bias, or one of keys, has the most elements of all. */
static void far_biases(const instance *of) {
    enum { QUERIES = 11, KEYS = 10 };
    static const int64_t strides[3][3] = {{(int64_t)1 << 31, 1 << 20, 1 << 12}, {1 << 20, (int64_t)1 << 31, 1 << 12}, {0, 1 << 20, 1 << 28}};
    static const char *const names[] = {"batch", "head", "query"};
    const int of_keys = of->score == SCORE_key_bias;
    const size_t bytes = of_keys ? 4 : (size_t)number_bytes(of->dtype), space = FAR_ELEMENTS * bytes;
    unsigned char *far = new_space(space);
    tap_context("%s: biases beyond 2^31 elements", of->name);
    if (!far) {
        tap_skip("biases beyond 2^31 elements: the system lends no %zu bytes of address space", space);
        return;
    }
    for (int n = 0; n < 3 - of_keys; n++) {
        const int64_t *stride = strides[n];
        const shape s = shape_plain(n == 2 ? 1 : 2, 2, 2, QUERIES, KEYS);
        double worst = 0;
        problem p = fresh(of, &s), q;
        result exact = result_new(&p);
        const tolerance allowed = check_prepare(&p, &exact, 4096, &random_numbers);
        const unsigned char *from = of_keys ? p.key_bias.host : p.bias.host;
        problem_upload(&p);
        q = p; /* whose results are p's */
        for (int row = 0; row < s.batch * 2 * (of_keys ? 1 : QUERIES); row++, from += KEYS * bytes) {
            const int i = of_keys ? 0 : row % QUERIES, head = of_keys ? row : row / QUERIES;
            memory_put(check_place, far + (size_t)(head / 2 * stride[0] + head % 2 * stride[1] + i * stride[2]) * bytes, from, KEYS * bytes);
        }
        if (of_keys) q.args.key_bias = (const float *)(const void *)far;
        else q.args.bias = far;
        q.args.key_bias_stride_batch = q.args.bias_stride_batch = stride[0];
        q.args.key_bias_stride_head = q.args.bias_stride_head = stride[1], q.args.bias_stride_query = stride[2];
        int passed = check_forward(&q);
        problem_download(&p);
        passed = passed && check_outputs(&p, &exact, allowed, &worst, 0);
        tap_ok(passed, "%s: biases beyond 2^31 elements by the stride of a %s", of->name, names[n]);
        result_delete(&exact);
        problem_delete(&p);
    }
    delete_space(far, space);
}

/* The most keys that are accepted: positions come near the largest int. Queries, keys and values are one row,
 * repeated, and a window shows few of them: o is that row, and lse tells whether the distances are right. */
static void longest_sequence(const instance *of) {
    enum { QUERIES = 70, KEYS = 2147482624, LEFT = 100 };
    shape s = shape_plain(1, 1, 1, QUERIES, 1);
    s.window_left = LEFT, s.window_right = 0;
    s.q.share_seq = s.k.share_seq = s.v.share_seq = 1;
    problem p = fresh(of, &s);
    double product = 0, sum = 0;
    tap_context("%s: the longest sequence of keys", of->name);
    const double slope = p.slopes.host ? (double)*(const float *)(const void *)p.slopes.host : 0;
    int wrong = 0;
    for (int c = 0; c < of->head_dim; c++)
        product += problem_get(&p, &p.q, &p.args.q, 0, 0, 0, c) * problem_get(&p, &p.k, &p.args.k, 0, 0, 0, c) / sqrt(of->head_dim);
    for (int back = 0; back <= LEFT; back++) sum += exp(-slope * back);
    for (int fewer = 0; fewer < 3; fewer++) { /* whole tiles, and not */
        p.args.seqlen_k = KEYS - (fewer == 2 ? 63 : fewer);
        problem_poison(&p), problem_upload(&p);
        wrong += !check_forward(&p);
        problem_download(&p);
        for (int i = 0; i < QUERIES; i++) {
            wrong += !(fabs((double)*problem_lse(&p, i) - (product + log(sum))) < 1e-3);
            for (int c = 0; c < of->head_dim_v; c++) {
                const double want = problem_get(&p, &p.v, &p.args.v, 0, 0, 0, c);
                wrong += !(fabs(problem_get(&p, &p.o, &p.args.o, 0, 0, i, c) - want) <= 0x1p-8 * fabs(want));
            }
        }
    }
    tap_ok(!wrong, "%s: the longest sequence of keys (%d wrong)", of->name, wrong);
    problem_delete(&p);
}

/* ---- concurrent calls ---- */

typedef struct caller {
    problem p;
    int runs, same, message;
} caller;

static void *call(void *argument) {
    caller *c = (caller *)argument;
    for (int i = 0; i < c->runs; i++) {
        fa_attention_args bad = c->p.args;
        char word[40];
        c->same += same_again(&c->p);
        bad.batch = -1 - c->p.shape.seqlen_k;
        c->p.of.forward(&bad, 0);
        snprintf(word, sizeof word, "batch is %d:", bad.batch);
        c->message += strstr(fa_last_error(), word) != NULL;
    }
    return NULL;
}

static void concurrency(void) {
    enum { CALLERS = 6, RUNS = 8 };
    static caller callers[CALLERS];
    pthread_t threads[CALLERS];
    int same = 0, messages = 0;
    for (int i = 0; i < CALLERS; i++) {
        shape s = shape_plain(1, 2, 1, 100 + i, 120 + 7 * i);
        s.threads = 1 + i % 3;
        callers[i].p = fresh(i % 2 ? &plain : &half_causal, &s);
        callers[i].runs = RUNS;
        check_forward(&callers[i].p);
        problem_download(&callers[i].p);
    }
    for (int i = 0; i < CALLERS; i++) pthread_create(&threads[i], NULL, call, &callers[i]);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        same += callers[i].same, messages += callers[i].message;
        problem_delete(&callers[i].p);
    }
    tap_ok(same == CALLERS * RUNS, "%d threads call at once and get what they get alone (%d of %d)", CALLERS, same, CALLERS * RUNS);
    tap_ok(messages == CALLERS * RUNS, "each thread reads its own error (%d of %d)", messages, CALLERS * RUNS);
}

/* ---- forms of instances ---- */

static void forms(void) {
    static const struct {
        const instance *of;
        const char *what;
    } list[] = {{&plain, "a static instance"},
                {&part_first, "FA_SUB, the first part"},
                {&part_second, "FA_SUB, the second part, with the name and type of the first"},
                {&with_extern, "FA_API FA_EXTERN"},
                {&with_hidden, "FA_API with an attribute"},
                {&elsewhere, "FA_DECLARE: an instance of another file"},
                {&small_tiles, "FA_BLOCK_M 32 and FA_BLOCK_N 16"},
                {&half_causal, "an f16 instance in the same file"},
                {&bf16_window, "a bf16 instance in the same file"},
                {&user, "user arguments"}};
    fa_plan plan;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        double worst = 0;
        int wrong = 0;
        for (int n = 0; n < 4; n++) {
            shape s = check_random_shape(list[i].of, &random_numbers, n == 0);
            wrong += !check_shape(list[i].of, &s, &random_numbers, &worst);
        }
        tap_ok(!wrong, "%s: right on 4 shapes", list[i].what);
    }
    {
        shape s = shape_plain(1, 1, 1, 100, 100);
        problem p = fresh(&small_tiles, &s);
        tap_ok(c_small_tiles_plan(&p.args, &plan) == FA_OK && plan.block_m == 32 && plan.block_n == 16 && plan.tiles_total == 4 * 7,
               "the plan tells the tile that FA_BLOCK_M and FA_BLOCK_N asked for");
        problem_delete(&p);
    }
    {
        fa_attention_args a = fa_attention_defaults();
        a.heads = -9;
        tap_ok(c_elsewhere_forward(&a, 0) == FA_ERROR_ARGUMENT && !strncmp(fa_last_error(), "c_elsewhere: heads is -9", 24),
               "an error in another file is read here: %s", fa_last_error());
    }
#if defined(__CUDACC__)
    {
        const instance host = INSTANCE(c_host, full, none, FA_F32, 16);
        memory_place place = check_place;
        double worst = 0;
        shape s = shape_plain(1, 2, 1, 90, 110);
        check_place = MEMORY_HOST;
        tap_ok(check_shape(&host, &s, &random_numbers, &worst), "FA_ARCH FA_CPU beside GPU instances in one file");
        check_place = place;
    }
#endif
}

/* ---- what the plan says is what the kernel does (the CPU can count, also as a simulated GPU) ---- */

#if !defined(__CUDACC__) || defined(TEST_SIMULATOR)
static long scores_asked, keeps_asked;
FA_HOOK float counting_score(const FA_USER_ARGS *user_args, float score, fa_index at) {
    (void)user_args, (void)at;
    __atomic_fetch_add(&scores_asked, 1, __ATOMIC_RELAXED);
    return score;
}
FA_HOOK int counting_keep(const FA_USER_ARGS *user_args, fa_index at) {
    __atomic_fetch_add(&keeps_asked, 1, __ATOMIC_RELAXED);
    return fa_sliding_window_keep(user_args, at);
}
FA_HOOK fa_tile_class counting_tile(const FA_USER_ARGS *user_args, fa_box box) { /* never empty: only its keys tell what is */
    return fa_sliding_window_tile(user_args, box) == FA_FULL ? FA_FULL : FA_PARTIAL;
}
FA_HOOK fa_range counting_keys(const FA_USER_ARGS *user_args, fa_box box) { return fa_sliding_window_keys(user_args, box); }
FA_HOOK fa_range counting_queries(const FA_USER_ARGS *user_args, fa_box box) { return fa_sliding_window_queries(user_args, box); }
#define FA_NAME c_counting
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 8
#define FA_MASK counting
#define FA_SCORE counting_score
#include <fa/attention.h>
/* Masks that schedules look at in ways of their own. */
#define FA_NAME c_counting_documents
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 8
#define FA_MASK fa_document
#define FA_SCORE counting_score
#include <fa/attention.h>
#define FA_NAME c_counting_packed
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 8
#define FA_MASK fa_causal_document
#define FA_SCORE counting_score
#include <fa/attention.h>
#define FA_NAME c_counting_spans
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 8
#define FA_MASK fa_span
#define FA_SCORE counting_score
#include <fa/attention.h>

/* `keeps`: the mask counts, too. */
static void counted(const instance *of, int keeps) {
    fa_plan plan;
    shape s = shape_plain(2, 2, 1, 0, 0);
    problem p;
    int64_t area;
    p = fresh(of, &s);
    of->plan(&p.args, &plan);
    problem_delete(&p);
    s.seqlen_q = 5 * plan.block_m, s.seqlen_k = s.seqlen_q / plan.block_n * plan.block_n; /* whole tiles */
    s.window_left = 3 * plan.block_n, s.window_right = plan.block_n;
    s.threads = 1; /* so that blocks of queries share tiles */
    p = fresh(of, &s);
    for (int i = 0; p.document_q.host && i < 2 * s.seqlen_q; i++) ((int *)(void *)p.document_q.host)[i] = i % s.seqlen_q / 90;
    for (int j = 0; p.document_k.host && j < 2 * s.seqlen_k; j++) ((int *)(void *)p.document_k.host)[j] = j % s.seqlen_k / 90;
    problem_upload(&p);
    area = (int64_t)plan.block_m * plan.block_n;
    of->plan(&p.args, &plan);
    scores_asked = keeps_asked = 0;
    check_forward(&p);
    tap_ok(scores_asked == plan.tiles_visited * area && plan.tiles_visited > 0 && plan.tiles_visited < plan.tiles_total,
           "%s: the kernel visits the tiles that the plan says: %ld scores, %lld tiles of %lld", of->name, scores_asked,
           (long long)plan.tiles_visited, (long long)area);
    if (keeps)
        tap_ok(keeps_asked == plan.tiles_masked * area && (check_place == MEMORY_DEVICE || plan.tiles_masked < plan.tiles_visited),
               "%s: full tiles are not masked: keep is asked %ld times, for %lld tiles of %lld", of->name, keeps_asked,
               (long long)plan.tiles_masked, (long long)area);
    problem_delete(&p);
}
static void all_counted(void) {
    const instance window = INSTANCE(c_counting, window, none, FA_F32, 8), documents = INSTANCE(c_counting_documents, document, none, FA_F32, 8);
    const instance both = INSTANCE(c_counting_packed, causal_document, none, FA_F32, 8), spans_of = INSTANCE(c_counting_spans, span, none, FA_F32, 8);
    counted(&window, 1), counted(&documents, 0), counted(&both, 0), counted(&spans_of, 0);
}
#endif

/* ---- as many threads as are asked for, by the arguments or by the environment ---- */

#if !defined(__CUDACC__)
FA_HOOK float meeting_score(const FA_USER_ARGS *user_args, float score, fa_index at) {
    (void)user_args, (void)at;
    check_meet();
    return score;
}
#define FA_NAME c_meeting
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 8
#define FA_SCORE meeting_score
#include <fa/attention.h>

static void threads_asked_for(void) {
    static const int asked[] = {1, 2, 3, 5};
    const instance meeting = INSTANCE(c_meeting, full, none, FA_F32, 8);
    const shape s = shape_plain(1, 4, 4, 400, 3);
    problem p = fresh(&meeting, &s);
    for (int i = 0; i < 8; i++) {
        char number[16];
        fa_plan plan;
        snprintf(number, sizeof number, "%d", asked[i % 4]);
        if (i < 4) p.args.threads = asked[i];
        else p.args.threads = 0, setenv("FA_THREADS", number, 1);
        const int planned = p.of.plan(&p.args, &plan) == FA_OK ? plan.threads : 0;
        check_meet_begin(asked[i % 4]);
        const int ran = check_forward(&p);
        tap_ok(ran && check_met() == asked[i % 4] && planned == asked[i % 4], "%d threads by %s: %d meet, the plan says %d", asked[i % 4],
               i < 4 ? "the arguments" : "FA_THREADS", check_met(), planned);
    }
    unsetenv("FA_THREADS");
    problem_delete(&p);
}
#endif

/* A mask of one's own that gives more than the keys it was asked about. */
FA_HOOK int c_wide_keep(const void *user, fa_index at) {
    (void)user;
    return at.key <= at.query;
}
FA_HOOK fa_tile_class c_wide_tile(const void *user, fa_box box) {
    (void)user, (void)box;
    return FA_PARTIAL;
}
FA_HOOK fa_range c_wide_keys(const void *user, fa_box box) {
    fa_range keys = {box.queries.begin - 1000, box.queries.end + 100000};
    (void)user;
    return keys;
}
FA_HOOK fa_range c_wide_queries(const void *user, fa_box box) {
    (void)user;
    return box.queries;
}
#define FA_NAME c_wide
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK c_wide
#include <fa/attention.h>
/* One that sees nothing, says so by a range that begins anywhere, and would see what is no key. */
FA_HOOK int c_blind_keep(const void *user, fa_index at) {
    (void)user;
    return at.key < 0 || at.key >= at.args->seqlen_k;
}
FA_HOOK fa_tile_class c_blind_tile(const void *user, fa_box box) {
    (void)user, (void)box;
    return FA_PARTIAL;
}
FA_HOOK fa_range c_blind_keys(const void *user, fa_box box) {
    fa_range none = {INT32_MAX, INT32_MIN};
    (void)user, (void)box;
    return none;
}
FA_HOOK fa_range c_blind_queries(const void *user, fa_box box) { return c_blind_keys(user, box); }
#define FA_NAME c_blind
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK c_blind
#include <fa/attention.h>
static void empty_ranges(void) {
    const instance blind = INSTANCE(c_blind, causal, none, FA_BF16, 64);
    const shape s = shape_plain(1, 2, 1, 150, 150);
    problem p = fresh(&blind, &s);
    const fa_status status = p.of.forward(&p.args, 0);
    const int wrong = wrong_without_keys(&p);
    fa_plan plan;
    tap_ok(status == FA_OK && wrong == 0, "a range that is empty, wherever it begins, shows no key (%s, %d elements wrong)",
           fa_status_string(status), wrong);
    const int planned = p.of.plan(&p.args, &plan) == FA_OK;
    tap_ok(planned && plan.tiles_visited == 0 && plan.tiles_masked == 0,
           "and its plan visits no tile, whatever the mask says of them (%lld)", (long long)plan.tiles_visited);
    problem_delete(&p);
}

static void wide_ranges(void) {
    const instance wide = INSTANCE(c_wide, causal, none, FA_BF16, 64);
    const shape s = shape_plain(1, 2, 1, 150, 150);
    problem p = fresh(&wide, &s);
    double off = 0;
    const int right = agrees(&p, 0, 0, &off);
    fa_plan plan;
    const int planned = p.of.plan(&p.args, &plan) == FA_OK;
    tap_ok(planned && plan.tiles_visited <= plan.tiles_total && plan.blocks > 0, "their plan counts no tile twice, or beyond (%lld of %lld)",
           (long long)plan.tiles_visited, (long long)plan.tiles_total);
    tap_ok(right, "keys beyond those that a mask was asked about are not visited (%.2f of the allowed error)", off);
    problem_delete(&p);
}

static void numerics(void) {
    hooks_inside();
#if !defined(__CUDACC__) || defined(TEST_SIMULATOR)
    all_counted();
#endif
    far_caps();
    near_caps(&half_softcap, 520);
    near_caps(&causal_softcap, 520);
    near_caps(&window_softcap, 520);
    if (REAL_GPU) near_caps(&window_softcap, 3200); /* which has a kernel of its own */
    wide_ranges();
    empty_ranges();
    leading_keys(&late, "leading tiles hidden by a mask");
    leading_keys(&late_by_score, "leading tiles hidden by a score hook");
    far_scores(&key_bias, 0);
    far_scores(&half_key_bias, 0x1p-8);
    late_low_scores(&key_bias);
    late_low_scores(&half_key_bias);
    late_low_scores(&window_key_bias);
    late_low_scores(&wide_bias);
    sunk_scores(&sunk);
    bias_alone(&wide_bias);
#if defined(__CUDACC__)
    biases_in_one_stage();
    bias_alone(&one_stage);
#endif
    documents_apart(&document);
    documents_apart(&sloped_document);
    many_documents(&document, 2300);
    many_documents(&causal_document, 2300);
    many_documents(&sloped_document, 2300);
    many_documents(&tilted_document, 9000);
    spans(&span);
    large_scale(&key_bias, 200, 1);
    large_scale(&half_key_bias, 200, 1);
    large_scale(&half_key_bias, 1, 12); /* rows of a warp are weighed once more together */
    any_scale(&plain);
    late_maximum(&plain);
    any_scale(&half_causal);
    any_scale(&bf16_window);
    any_scale(&half_key_bias);
    any_scale(&window_key_bias);
    any_scale(&window_softcap);
    any_scale(&half_alibi);
    steep_lines(&half_alibi);
    steep_lines(&causal_alibi);
    added_scores(&key_bias);
    added_scores(&half_key_bias);
    added_scores(&half_alibi);
    added_scores(&causal_alibi);
#if defined(__CUDACC__)
    if (!SIMULATED) added_scores(&half_alibi_80); /* simulated, half_alibi has that schedule, too */
    any_scale(&half_alibi_80);
    steep_lines(&half_alibi_80);
#endif
    nan_beside(&plain);
    nan_beside(&half_causal);
    nan_spreads(&plain);
    nan_spreads(&half_causal);
    nan_spreads(&bf16_window);
    beyond_ends(&plain);
    beyond_ends(&half_causal);
    beyond_ends(&bf16_window);
    determinism(&plain);
    determinism(&half_causal);
    determinism(&bf16_window);
    determinism(&holes);
}

#if !defined(__CUDACC__) && defined(__x86_64__)
/* The best instruction set that the processor has is used, but no better one than FA_CPU_ISA asks for, unless the
 * compiler was told to assume it. */
static void instruction_sets_asked_for(void) {
    static const char *const names[] = {"base", "avx2", "avx512", ""}, *const schedules[] = {"cpu", "cpu-avx2", "cpu-avx512"};
    const shape s = shape_plain(1, 1, 1, 64, 64);
    problem p = fresh(&bf16_window, &s);
    __builtin_cpu_init();
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                       __builtin_cpu_supports("avx512dq");
    for (int asked = FA__ISA_BASE; asked <= FA__ISA_AVX512 + 1; asked++) { /* the last: anything */
        const int has = avx512 ? FA__ISA_AVX512 : avx2 ? FA__ISA_AVX2 : FA__ISA_BASE, best = asked < has ? asked : has;
        const char *due = schedules[best > FA__ISA_NATIVE ? best : FA__ISA_NATIVE];
        fa_plan plan;
        setenv("FA_CPU_ISA", names[asked], 1);
#if FA__CPU_AMX
        if (fa__cpu_amx()) due = "cpu-amx";
#endif
        const fa_status status = p.of.plan(&p.args, &plan);
        tap_ok(status == FA_OK && !strcmp(plan.schedule, due), "FA_CPU_ISA=%s, in code for %s or more: the schedule is %s, and should be %s",
               names[asked], names[FA__ISA_NATIVE], status == FA_OK ? plan.schedule : fa_last_error(), due);
    }
    problem_delete(&p);
    check_instruction_set(0);
}
#endif

int main(void) {
    const char *why = NULL;
#if defined(__CUDACC__)
    check_place = MEMORY_DEVICE;
    if (!memory_has_device(&why)) {
        tap_skip("contracts on the GPU: %s", why);
        return tap_end();
    }
#endif
    (void)why;
    random_numbers = rng_new(rng_seed(), 20);
    errors();
    combined_parameters();
    zero_sizes();
    unread();
    int sets = check_place == MEMORY_HOST ? 3 : 1;
#if defined(FA__CPU_AMX) && FA__CPU_AMX
    sets += check_place == MEMORY_HOST && fa__cpu_amx();
#endif
    for (int i = 0; i < sets; i++) {
        tap_note("instruction set: %s", check_instruction_set(i));
        numerics();
    }
    check_instruction_set(0);
#if !defined(__CUDACC__) && defined(__x86_64__)
    instruction_sets_asked_for();
#endif
#if !defined(TEST_SIMULATOR) /* it would take minutes */
    many_heads();
#endif
    every_block();
    every_block_of_a_bias();
    far_offsets(&plain);
    far_offsets(&half_causal);
    far_biases(&bias), far_biases(&wide_bias);
    far_biases(&key_bias), far_biases(&half_key_bias);
    longest_sequence(&narrow);
    longest_sequence(&bf16_window);
#if !defined(__CUDACC__)
    threads_asked_for();
#endif
    concurrency();
    forms();
    return tap_end();
}
