/* gpu.c: what is a GPU's alone: schedules, streams, graph capture, several devices, errors that were there before, a
 * program compiled for another architecture. Compiled by nvcc, with TEST_SCHEDULE, the schedule (80, 90) that an
 * instance should choose as the program is compiled. */
#include <cuda_runtime.h>
#include <string.h>

#include "../harness/check.h"
#include "../harness/number.h"
#include "../harness/tap.h"
#include "hooks.h"

#define FA_NAME g_bf16
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_causal
#include <fa/attention.h>

/* The schedule for all GPUs, also where there is a better one. */
#define FA_NAME g_80
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_causal
#define FA_ARCH 80
#include <fa/attention.h>
/* A hook whose scores leave no difference of products: on either side of 0, alike in the 32 rows of a warp, where a
 * row that is noticed helps the others; and some stay as they are. */
FA_HOOK float away(const void *user, float score, fa_index at) {
    (void)user;
    return score + 1.7e20f * (float)(at.query / 32 % 11 - 5);
}
#define FA_NAME g_away
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_SCORE away
#define FA_ARCH 80
#include <fa/attention.h>
/* Tiles so small that there are more of them than are judged at once. */
#define FA_NAME g_judged
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_document
#define FA_ARCH 80
#define FA_BLOCK_M 32
#define FA_BLOCK_N 16
#define FA_WARPS 1
#include <fa/attention.h>
#define FA_NAME g_sized
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_BLOCK_N 32
#include <fa/attention.h>
#define FA_NAME g_f32
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 64
#define FA_MASK fa_causal
#include <fa/attention.h>
/* Numbers of 11 bits, and O in units; and tiles of GPUs with much shared memory. */
#define FA_NAME g_tf32
#define FA_DTYPE FA_TF32
#define FA_HEAD_DIM 64
#define FA_MASK fa_causal
#include <fa/attention.h>
#define FA_NAME g_tf32_ample
#define FA_DTYPE FA_TF32
#define FA_HEAD_DIM 128
#define FA_MASK fa_causal
#include <fa/attention.h>
#define FA_NAME g_f32_ample
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 192
#define FA_MASK fa_causal
#include <fa/attention.h>
#if TEST_SCHEDULE == 90
#define FA_NAME g_90
#define FA_DTYPE FA_F16
#define FA_HEAD_DIM 72
#define FA_ARCH 90
#define FA_BLOCK_M 64
#define FA_BLOCK_N 48
#define FA_STAGES 3
#include <fa/attention.h>
/* Tiles of a bias, which the copy engine brings twice as often as it does with tiles of 128 keys: they must have
 * been read by then. */
#define FA_NAME g_bias
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 128
#define FA_SCORE fa_bias
#define FA_ARCH 90
#define FA_BLOCK_M 128
#define FA_BLOCK_N 64
#define FA_STAGES 3
#include <fa/attention.h>
/* Exponents that follow a line, in tiles that come from the diagonal outwards. */
#define FA_NAME g_line
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 72
#define FA_SCORE fa_alibi
#define FA_ARCH 90
#define FA_BLOCK_M 64
#define FA_BLOCK_N 48
#include <fa/attention.h>
/* The same tiles by one team of warpgroups and by two. */
#define FA_NAME g_team
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_causal
#define FA_ARCH 90
#define FA_BLOCK_M 128
#define FA_BLOCK_N 64
#define FA_WARPS 8
#include <fa/attention.h>
#define FA_NAME g_teams
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_causal
#define FA_ARCH 90
#define FA_BLOCK_M 128
#define FA_BLOCK_N 64
#define FA_WARPS 16
#include <fa/attention.h>
/* Two teams whose warpgroups skip tiles, and wait for the next tile of keys before they give back one of values. */
#define FA_NAME g_skipping
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 128
#define FA_MASK fa_sliding_window
#define FA_SCORE fa_key_bias
#define FA_ARCH 90
#define FA_BLOCK_M 128
#define FA_BLOCK_N 32
#define FA_WARPS 16
#define FA_STAGES 3
#include <fa/attention.h>
/* Blocks of queries that take equally long, and those of a head whose length the host does not know, come in another
 * order. */
#define FA_NAME g_window
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_sliding_window
#include <fa/attention.h>
#define FA_NAME g_prefix
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_prefix
#include <fa/attention.h>
/* Blocks begin with the tile of the roundest number. */
#define FA_NAME g_wide_window
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 96
#define FA_MASK fa_sliding_window
#include <fa/attention.h>
/* O that warps of its own send: two panels in two places, in one, and none, since there is no room. */
#define FA_NAME g_sent
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 128
#define FA_MASK fa_document
#include <fa/attention.h>
#define FA_NAME g_sent_in_turn
#define FA_DTYPE FA_F16
#define FA_HEAD_DIM 128
#define FA_ARCH 90
#define FA_BLOCK_M 128
#define FA_BLOCK_N 176
#define FA_STAGES 2
#include <fa/attention.h>
#define FA_NAME g_not_sent
#define FA_DTYPE FA_F16
#define FA_HEAD_DIM 128
#define FA_ARCH 90
#define FA_BLOCK_M 128
#define FA_BLOCK_N 192
#define FA_STAGES 2
#include <fa/attention.h>
static_assert(g_sent_sm90_leaving == 2 && g_sent_in_turn_sm90_leaving == 1 && g_not_sent_sm90_leaving == 0, "as many places for panels as that says");
/* Two and three warpgroups. */
#define FA_NAME g_wide
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 80
#include <fa/attention.h>
#define FA_NAME g_wide_causal
#define FA_DTYPE FA_F16
#define FA_HEAD_DIM 88
#define FA_MASK fa_causal
#include <fa/attention.h>
#define FA_NAME g_documents
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_document
#include <fa/attention.h>
#define FA_NAME g_packed
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_causal_document
#include <fa/attention.h>
#define FA_NAME g_spans
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_span
#include <fa/attention.h>
static const instance spans = {"g_spans", MASK_span, SCORE_none, FA_BF16, 64, 64, g_spans_forward, g_spans_plan, g_spans_workspace};
static const instance causal_documents = {"g_packed", MASK_causal_document, SCORE_none, FA_BF16, 64, 64, g_packed_forward, g_packed_plan, g_packed_workspace};
static const instance wide = {"g_wide", MASK_full, SCORE_none, FA_BF16, 80, 80, g_wide_forward, g_wide_plan, g_wide_workspace};
static const instance wide_causal = {"g_wide_causal", MASK_causal, SCORE_none, FA_F16, 88, 88, g_wide_causal_forward, g_wide_causal_plan, g_wide_causal_workspace};
static const instance documents = {"g_documents", MASK_document, SCORE_none, FA_BF16, 64, 64, g_documents_forward, g_documents_plan, g_documents_workspace};
static const instance window = {"g_window", MASK_window, SCORE_none, FA_BF16, 64, 64, g_window_forward, g_window_plan, g_window_workspace};
static const instance wide_window = {"g_wide_window", MASK_window, SCORE_none, FA_BF16, 96, 96, g_wide_window_forward, g_wide_window_plan, g_wide_window_workspace};
static const instance prefix = {"g_prefix", MASK_prefix, SCORE_none, FA_BF16, 64, 64, g_prefix_forward, g_prefix_plan, g_prefix_workspace};
static const instance line = {"g_line", MASK_full, SCORE_alibi, FA_BF16, 72, 72, g_line_forward, g_line_plan, g_line_workspace};
static const instance biased = {"g_bias", MASK_full, SCORE_bias, FA_BF16, 128, 128, g_bias_forward, g_bias_plan, g_bias_workspace};
static const instance one_team = {"g_team", MASK_causal, SCORE_none, FA_BF16, 64, 64, g_team_forward, g_team_plan, g_team_workspace};
static const instance skipping = {"g_skipping", MASK_window, SCORE_key_bias, FA_BF16, 128, 128, g_skipping_forward, g_skipping_plan, g_skipping_workspace};
static const instance two_teams = {"g_teams", MASK_causal, SCORE_none, FA_BF16, 64, 64, g_teams_forward, g_teams_plan, g_teams_workspace};
static const instance sent = {"g_sent", MASK_document, SCORE_none, FA_BF16, 128, 128, g_sent_forward, g_sent_plan, g_sent_workspace};
static const instance sent_in_turn = {"g_sent_in_turn", MASK_full, SCORE_none, FA_F16, 128, 128, g_sent_in_turn_forward, g_sent_in_turn_plan, g_sent_in_turn_workspace};
static const instance not_sent = {"g_not_sent", MASK_full, SCORE_none, FA_F16, 128, 128, g_not_sent_forward, g_not_sent_plan, g_not_sent_workspace};
static const instance chosen_90 = {"g_90", MASK_full, SCORE_none, FA_F16, 72, 72, g_90_forward, g_90_plan, g_90_workspace};
#endif

static const instance bf16 = {"g_bf16", MASK_causal, SCORE_none, FA_BF16, 64, 64, g_bf16_forward, g_bf16_plan, g_bf16_workspace};
static const instance chosen_80 = {"g_80", MASK_causal, SCORE_none, FA_BF16, 64, 64, g_80_forward, g_80_plan, g_80_workspace};
static const instance sized = {"g_sized", MASK_full, SCORE_none, FA_BF16, 64, 64, g_sized_forward, g_sized_plan, g_sized_workspace};
static const instance f32 = {"g_f32", MASK_causal, SCORE_none, FA_F32, 64, 64, g_f32_forward, g_f32_plan, g_f32_workspace};
static const instance tf32 = {"g_tf32", MASK_causal, SCORE_none, FA_TF32, 64, 64, g_tf32_forward, g_tf32_plan, g_tf32_workspace};
static const instance tf32_ample = {"g_tf32_ample", MASK_causal, SCORE_none, FA_TF32, 128, 128, g_tf32_ample_forward, g_tf32_ample_plan, g_tf32_ample_workspace};
static const instance f32_ample = {"g_f32_ample", MASK_causal, SCORE_none, FA_F32, 192, 192, g_f32_ample_forward, g_f32_ample_plan, g_f32_ample_workspace};
static const instance judged = {"g_judged", MASK_document, SCORE_none, FA_BF16, 64, 64, g_judged_forward, g_judged_plan, g_judged_workspace};
static const instance shifted = {"g_away", MASK_full, SCORE_none, FA_BF16, 64, 64, g_away_forward, g_away_plan, g_away_workspace};
static rng random_numbers;

/* 1 if the downloaded outputs are those of the reference. */
static int outputs_right(problem *p, const result *exact, tolerance allowed) {
    double worst = 0;
    problem_download(p);
    return check_outputs(p, exact, allowed, &worst, 0);
}

static __global__ void count_differences(const uint32_t *a, const uint32_t *b, size_t words, int *differences) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < words; i += (size_t)gridDim.x * blockDim.x)
        if (a[i] != b[i]) atomicAdd(differences, 1);
}

/* What one call wrote, on the device, with which those of others are compared there. */
typedef struct outputs {
    unsigned char *first;
    int *differences; /* words, of all that were compared */
} outputs;
static outputs outputs_of(const problem *p) {
    outputs all;
    cudaMalloc((void **)&all.first, p->o.bytes + p->lse.bytes);
    cudaMalloc((void **)&all.differences, sizeof *all.differences);
    cudaMemset(all.differences, 0, sizeof *all.differences);
    cudaMemcpy(all.first, p->o.data, p->o.bytes, cudaMemcpyDeviceToDevice);
    cudaMemcpy(all.first + p->o.bytes, p->lse.data, p->lse.bytes, cudaMemcpyDeviceToDevice);
    return all;
}
/* What a call leaves out would show. */
static void outputs_poison(const problem *p, cudaStream_t stream) {
    cudaMemsetAsync(p->o.data, PROBLEM_POISON, p->o.bytes, stream);
    cudaMemsetAsync(p->lse.data, PROBLEM_POISON, p->lse.bytes, stream);
}
static void outputs_compare(const outputs *all, const problem *p, cudaStream_t stream) {
    count_differences<<<264, 256, 0, stream>>>((const uint32_t *)all->first, (const uint32_t *)p->o.data, p->o.bytes / 4, all->differences);
    count_differences<<<264, 256, 0, stream>>>((const uint32_t *)(all->first + p->o.bytes), (const uint32_t *)p->lse.data, p->lse.bytes / 4, all->differences);
}
/* How many words differed; -1 if that is not known. */
static int outputs_different(outputs *all) {
    int count = -1;
    if (cudaMemcpy(&count, all->differences, sizeof count, cudaMemcpyDeviceToHost) != cudaSuccess) count = -1;
    cudaFree(all->first), cudaFree(all->differences);
    return count;
}

/* What NAME_plan() names is what was compiled and asked for, and it computes. */
static void schedule(const instance *of, int expected) {
    const char *name = expected == 90 ? "sm_90a" : "sm_80";
    shape s = shape_plain(2, 4, 2, 200, 333);
    problem p;
    fa_plan plan;
    double worst = 0;
    int passed;
    fa_status status;
    problem_new(&p, of, &s, check_place, &random_numbers);
    status = of->plan(&p.args, &plan);
    tap_ok(status == FA_OK && !strcmp(plan.schedule, name) && plan.arch == expected, "%s: the schedule is %s (%s, arch %d)", of->name, name,
           status == FA_OK ? plan.schedule : fa_last_error(), status == FA_OK ? plan.arch : 0);
    p.args.seqlen_k = 0;
    if (expected == 90) {
        const int small = of->plan(&p.args, &plan) == FA_OK && plan.threads < 256 && plan.shared_bytes == 0;
        tap_ok(small, "%s: without keys the plan is that of a small kernel", of->name);
    }
    problem_delete(&p);
    passed = check_shape(of, &s, &random_numbers, &worst);
    tap_ok(passed, "%s: it computes (largest error %.2g of what is allowed)", of->name, worst);
}

/* Many times as many blocks of queries as multiprocessors: what stays on one goes through several. */
static void rounds(const instance *of) {
    shape s = shape_plain(3, 128, 32, 65, 90);
    double worst = 0;
    int passed;
    passed = check_shape(of, &s, &random_numbers, &worst);
    tap_ok(passed, "%s: hundreds of blocks of queries (largest error %.2g of what is allowed)", of->name, worst);
}

#if TEST_SCHEDULE == 90
/* The same with windows, of which some leave most blocks of a head equally many keys, and some do not; and one of
 * more than 32 tiles, which the planner looks at in two parts. */
static void windows(const instance *of) {
    static const int left[] = {100, 600, -1}, right[] = {0, 40, -1};
    for (int i = 0; i < 10; i++) {
        shape s = i < 9 ? shape_plain(1, 48, 4, 1300, 1400) : shape_plain(1, 2, 1, 3333, 6333);
        double worst = 0;
        int passed;
        s.window_left = i < 9 ? left[i % 3] : 4500, s.window_right = i < 9 ? right[i / 3] : 100;
        passed = check_shape(of, &s, &random_numbers, &worst);
        tap_ok(passed, "%s: window %d, %d (largest error %.2g of what is allowed)", of->name,
               s.window_left, s.window_right, worst);
    }
}
#endif

#if TEST_SCHEDULE == 90
/* A window whose lowest tiles half of a team's queries do not see. */
static void skips(void) {
    static const int left[] = {224, 255, 256, 287, 500};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        shape s = shape_plain(1, 3, 3, 1500, 1500);
        double worst = 0;
        s.window_left = left[i], s.window_right = 0;
        const int passed = check_shape(&skipping, &s, &random_numbers, &worst);
        tap_ok(passed, "%s: window %d (largest error %.2g of what is allowed)", skipping.name, left[i], worst);
    }
}
#endif

/* Several blocks of queries, and batches, on a multiprocessor, which on Hopper remembers what it has learnt of
 * documents, and takes them by a counter in a workspace, or in a fixed order. */
static void packed(const instance *of, int heads, int queries, int keys) {
    for (int kind = 0; kind < 10; kind++) {
        shape s = shape_plain(3, heads, heads / 5, queries, keys);
        double worst = 0;
        int passed;
        s.documents = kind / 2, s.without_workspace = kind % 2;
        passed = check_shape(of, &s, &random_numbers, &worst);
        tap_ok(passed, "%s: documents of kind %d, %s workspace (largest error %.2g of what is allowed)", of->name, s.documents,
               s.without_workspace ? "no" : "a", worst);
    }
}

#if TEST_SCHEDULE == 90
/* A workspace changes nothing but the order, may hold anything, and is refused where it cannot be used. */
static void workspaces(const instance *of) {
    shape s = shape_plain(2, 30, 10, 1500, 1500);
    problem p;
    int status;
    problem_new(&p, of, &s, check_place, &random_numbers);
    tap_ok(of->workspace(&p.args) == 4 && p.args.workspace && !window.workspace(&p.args) && !chosen_80.workspace(&p.args),
           "%s: a workspace of 4 bytes, for masks that nobody can foresee alone", of->name);
    p.args.workspace = NULL;
    status = of->forward(&p.args, 0);
    outputs without = outputs_of(&p);
    p.args.workspace = p.workspace.data;
    for (int i = 0; i < 5 && status == FA_OK; i++) { /* the first time it is what it was filled with */
        outputs_poison(&p, 0);
        status = of->forward(&p.args, 0);
        outputs_compare(&without, &p, 0);
    }
    const int different = outputs_different(&without);
    tap_ok(status == FA_OK && !different, "%s: with a workspace, five times the same bits as without (%d, %d words differ)", of->name, status, different);
    p.args.workspace_bytes = 3;
    status = of->forward(&p.args, 0);
    tap_ok(status == FA_ERROR_WORKSPACE && strstr(fa_last_error(), "or 4 bytes, as "), "%s: 3 bytes are refused: %s", of->name, fa_last_error());
    p.args.workspace_bytes = 4, p.args.workspace = (char *)p.workspace.data + 8;
    status = of->forward(&p.args, 0);
    tap_ok(status == FA_ERROR_WORKSPACE && strstr(fa_last_error(), "aligned to 16"), "%s: so is one that is not aligned: %s", of->name, fa_last_error());
    const int spans_there = p.args.span_end != NULL;
    const int *of_keys = spans_there ? p.args.span_end : p.args.document_k;
    void *const taken[] = {p.args.o.data, p.args.lse, p.args.v.data, (void *)((uintptr_t)of_keys / 16 * 16)}; /* lse is aligned to 16 bytes */
    const char *const said[] = {"workspace, at 0x", "workspace, at 0x", "v, at 0x", spans_there ? "span_end, at 0x" : "document_k, at 0x"};
    static const char *const where[] = {"and o, at", "and lse, at", "in workspace", "in workspace"};
    for (int i = 0; i < 4; i++) {
        p.args.workspace = taken[i];
        status = of->forward(&p.args, 0);
        tap_ok(status == FA_ERROR_ARGUMENT && strstr(fa_last_error(), said[i]) && strstr(fa_last_error(), where[i]), "%s: so is one in other memory: %s", of->name,
               fa_last_error());
    }
    problem_delete(&p);
}
#endif

#if TEST_SCHEDULE == 90
/* Long blocks of queries and short ones, of more heads than are handed out singly: then blocks come in pairs, too,
 * of one head or of two, or in strips. */
static void pairs(const instance *of) {
    int processors = 132;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    for (int odd = 0; odd < 2; odd++) {
        const int blocks = odd ? 5 : 8, length = blocks * 128 - 24;
        const shape s = shape_plain(1, 4 * processors / blocks + 4 + odd, 1, length, length); /* of two teams on each */
        double worst = 0;
        const int passed = check_shape(of, &s, &random_numbers, &worst);
        tap_ok(passed, "%s: long blocks and short ones, %d of each head (largest error %.2g of what is allowed)", of->name, blocks, worst);
    }
}
#endif

/* A negative scale changes signs also where no mask looks. */
static void negative_scale(const instance *of) {
    double worst = 0;
    int passed;
    shape s = shape_plain(1, 4, 2, 333, 600);
    s.scale = -0.1f;
    passed = check_shape(of, &s, &random_numbers, &worst);
    tap_ok(passed, "%s: a negative scale (largest error %.2g of what is allowed)", of->name, worst);
}

/* Scores far below 0 that rise from tile to tile, beyond 0 in the end, in one half of the rows, and fall in the
 * other: the maximum is compared by its bits, which are in another order below 0. In two thirds of the rows a single
 * key, at an even place or an odd one, exceeds all others by so much that a maximum which misses it makes the
 * weights infinite. */
static void far_below(const instance *of) {
    static const int single[] = {201, 390};
    shape s = shape_plain(1, 2, 1, 200, 700);
    problem p;
    result exact;
    int wrong = 0, d = of->head_dim;
    s.scale = 0.5f;
    problem_new(&p, of, &s, check_place, &random_numbers);
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < s.seqlen_q; i++)
            for (int c = 0; c < 3; c++) problem_set(&p, &p.q, &p.args.q, 0, h, i, c, c == 0 ? (i % 2 ? 2 : -2) : i % 3 == c ? 2 : 0);
    for (int j = 0; j < s.seqlen_k; j++)
        for (int c = 0; c < 3; c++)
            problem_set(&p, &p.k, &p.args.k, 0, 0, j, c, c == 0 ? -600 + j / 128 * 250 : j == single[c - 1] ? 600 : 0);
    exact = result_new(&p);
    reference_attention(&p, &exact);
    problem_upload(&p);
    wrong += !check_forward(&p);
    problem_download(&p);
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < s.seqlen_q; i++) {
            size_t row = (size_t)(h * s.seqlen_q + i);
            double lse = (double)*problem_lse(&p, (int64_t)row);
            wrong += !(fabs(lse - exact.lse[row]) <= 1e-3);
            for (int c = 0; c < d; c++)
                wrong += !(fabs(problem_get(&p, &p.o, &p.args.o, 0, h, i, c) - exact.o[row * (size_t)d + (size_t)c]) < 0.05);
        }
    tap_ok(!wrong, "%s: scores from -600 to 650, rising and falling (%d wrong)", of->name, wrong);
    result_delete(&exact);
    problem_delete(&p);
}

/* Scores so far from 0 that a float holds no difference: all weights of a row are equal. Rows 160 to 191 stay as
 * they are. */
static void far_away(const instance *of) {
    shape s = shape_plain(1, 1, 1, 200, 300);
    problem p;
    result plain;
    int wrong = 0, d = of->head_dim;
    problem_new(&p, of, &s, check_place, &random_numbers);
    plain = result_new(&p);
    reference_attention(&p, &plain);
    problem_upload(&p);
    wrong += !check_forward(&p);
    problem_download(&p);
    for (int c = 0; c < d; c++) {
        double mean = 0;
        for (int j = 0; j < s.seqlen_k; j++) mean += problem_get(&p, &p.v, &p.args.v, 0, 0, j, c) / s.seqlen_k;
        for (int i = 0; i < s.seqlen_q; i++) {
            const double want = i / 32 % 11 == 5 ? plain.o[i * d + c] : mean;
            wrong += !(fabs(problem_get(&p, &p.o, &p.args.o, 0, 0, i, c) - want) < 1e-3 + 0.01 * fabs(want));
        }
    }
    tap_ok(!wrong, "%s: scores of -8.5e20 to 1.7e20 weigh alike (%d wrong)", of->name, wrong);
    result_delete(&plain);
    problem_delete(&p);
}

/* FA_F32 and FA_TF32 multiply numbers of few bits and a small range, with a power of two for each row: whatever the
 * magnitude of rows is, and of those that a query does not see, they must be as exact as an unfused computation in
 * their type. */
static void magnitudes(const instance *of) {
    static const char *const kinds[] = {"large values", "tiny values", "rows of many magnitudes", "a hidden key with huge values",
                                        "values that shrink as scores rise", "values that grow"};
    enum { ROWS = 300 };
    for (int kind = 0; kind < 6; kind++) {
        shape s = shape_plain(1, 2, 1, ROWS, ROWS);
        problem p;
        result exact, unfused;
        double largest = 0, allowed = 0, worst = 0;
        int wrong = 0, d = of->head_dim, rows = kind == 3 ? ROWS - 1 : ROWS; /* the last key is what only the last query sees */
        int first = kind > 3 ? ROWS - 16 : 0; /* rows whose results are about as large */
        s.scale = kind == 1 ? 1e27f : 0.125f;
        problem_new(&p, of, &s, check_place, &random_numbers);
        for (int h = 0; h < 2; h++)
            for (int i = 0; i < ROWS; i++)
                for (int c = 0; c < d; c++) {
                    double q = kind == 0 ? 1e14 : kind == 1 ? 1e-14 : 1, k = kind < 2 ? 1e-14 : 1;
                    double v = kind == 0 ? 1e30 : kind == 1 ? 1e-30 : 1;
                    if (kind == 2) k = ldexp(1, -(i % 21)), v = ldexp(1, -(i * 7 % 31));
                    if (kind == 3 && i == ROWS - 1) k = 1e30, v = 1e37;
                    if (kind > 3) v = ldexp(1, kind == 4 ? -i / 5 : i / 3);
                    problem_set(&p, &p.q, &p.args.q, 0, h, i, c, kind == 4 ? 1 : q * problem_get(&p, &p.q, &p.args.q, 0, h, i, c));
                    if (h == 1) continue; /* one head of keys */
                    problem_set(&p, &p.k, &p.args.k, 0, 0, i, c, kind == 4 ? i * 800.0 / (ROWS * d) : k * problem_get(&p, &p.k, &p.args.k, 0, 0, i, c));
                    problem_set(&p, &p.v, &p.args.v, 0, 0, i, c, v * problem_get(&p, &p.v, &p.args.v, 0, 0, i, c));
                }
        exact = result_new(&p), unfused = result_new(&p);
        reference_attention(&p, &exact);
        reference_unfused(&p, &unfused);
        problem_upload(&p);
        wrong += !check_forward(&p);
        problem_download(&p);
        for (int h = 0; h < 2; h++)
            for (int i = first; i < rows; i++)
                for (int c = 0; c < d; c++) {
                    size_t at = (size_t)((h * ROWS + i) * d + c);
                    largest = fmax(largest, fabs(exact.o[at]));
                    allowed = fmax(allowed, 2 * fabs(unfused.o[at] - exact.o[at]));
                }
        /* The sample is small: no error below four roundings of an operand counts as the unfused one. */
        allowed = fmax(allowed, 8 * ldexp(largest, of->dtype == FA_TF32 ? -12 : -24)) + ldexp(largest, -22);
        for (int h = 0; h < 2; h++)
            for (int i = first; i < rows; i++)
                for (int c = 0; c < d; c++) {
                    double off = fabs(problem_get(&p, &p.o, &p.args.o, 0, h, i, c) - exact.o[(h * ROWS + i) * d + c]) / allowed;
                    wrong += !(off <= 1);
                    worst = number_worse(worst, off);
                }
        tap_ok(!wrong, "%s: %s (%d wrong, %.2g of the allowed error)", of->name, kinds[kind], wrong, worst);
        result_delete(&exact), result_delete(&unfused);
        problem_delete(&p);
    }
}

/* As many blocks of queries as keep every multiprocessor busy several times over, with lengths that are no multiple
 * of a tile. */
static shape busy_shape(void) {
    shape s = shape_plain(3, 64, 16, 333, 700);
    s.q.bshd = s.k.bshd = 1;
    return s;
}

#if TEST_SCHEDULE == 90
/* With many keys an instance may take other tiles than with few, or with a window: it must say so, and be right with
 * either. */
static void many_keys(const instance *of) {
    int tiles[3];
    double worst = 0;
    int passed;
    for (int i = 0; i < 3; i++) {
        shape s = shape_plain(1, 2, 1, 333, i ? 6333 : 777);
        if (i == 2) s.window_left = 1000;
        problem p;
        fa_plan plan;
        memset(&plan, 0, sizeof plan);
        problem_new(&p, of, &s, check_place, &random_numbers);
        const int planned = of->plan(&p.args, &plan) == FA_OK;
        if (!planned) tap_note("%s_plan: %s", of->name, fa_last_error());
        tiles[i] = plan.block_m * 1000 + plan.block_n;
        problem_delete(&p);
        passed = check_shape(of, &s, &random_numbers, &worst);
        tap_ok(passed && planned, "%s: %d keys, tiles of %d x %d (largest error %.2g of what is allowed)", of->name,
               s.seqlen_k, plan.block_m, plan.block_n, worst);
    }
    tap_ok(tiles[0] != tiles[1], "%s: other tiles for many keys", of->name);
    if (of->mask == MASK_window) tap_ok(tiles[0] == tiles[2], "%s: but not if a window leaves few of them", of->name);
}
#endif

#if TEST_SCHEDULE == 90
/* Two teams share the blocks of queries that one has otherwise: the results are the same, bit by bit, for one block,
 * where the second team has none, an odd number of them, and more than there are teams. */
static void teams(void) {
    int processors = 132;
    fa_plan plan;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    const int blocks[] = {1, 3, processors + 1, 2 * processors + 1, 5 * processors};
    for (int i = 0; i < 5; i++) {
        shape s = shape_plain(1, blocks[i], 1, 100, 333);
        problem p;
        double worst = 0;
        int failed, same, half = (blocks[i] + 1) / 2, thread_blocks = half < processors ? half : processors;
        problem_new(&p, &one_team, &s, check_place, &random_numbers);
        problem_upload(&p);
        failed = one_team.forward(&p.args, 0) != FA_OK;
        outputs first = outputs_of(&p);
        outputs_poison(&p, 0);
        failed += two_teams.forward(&p.args, 0) != FA_OK || two_teams.plan(&p.args, &plan) != FA_OK;
        outputs_compare(&first, &p, 0);
        same = !outputs_different(&first);
        problem_delete(&p);
        tap_ok(!failed && same && plan.warps == 16 && plan.blocks == thread_blocks,
               "two teams compute %d blocks of queries as one does, in %d thread blocks (%d failed)", blocks[i], thread_blocks, failed);
        same = check_shape(&two_teams, &s, &random_numbers, &worst);
        tap_ok(same, "%s: and rightly (largest error %.2g of what is allowed)", two_teams.name, worst);
    }
}
#endif

static void repeats(const instance *of) {
    enum { RUNS = 1000 };
    shape s = busy_shape();
    s.pad_bias = 1;
    problem p;
    problem_new(&p, of, &s, check_place, &random_numbers);
    problem_upload(&p);
    int failed = of->forward(&p.args, 0) != FA_OK;
    outputs first = outputs_of(&p);
    for (int run = 1; run < RUNS; run++) {
        outputs_poison(&p, 0);
        failed += of->forward(&p.args, 0) != FA_OK;
        outputs_compare(&first, &p, 0);
    }
    const int different = outputs_different(&first);
    tap_ok(!failed && !different, "%s: %d runs are bitwise equal (%d failed, %d words differ)", of->name, RUNS, failed, different);
    problem_delete(&p);
}

/* Two calls at a time, in two streams, with other numbers: the same as one after the other. */
static void two_streams(const instance *of) {
    enum { CALLS = 40 };
    shape s = busy_shape();
    problem p[2];
    outputs alone[2];
    cudaStream_t stream[2];
    int failed = 0, different = 0;
    for (int i = 0; i < 2; i++) {
        problem_new(&p[i], of, &s, check_place, &random_numbers);
        problem_upload(&p[i]);
        failed += of->forward(&p[i].args, 0) != FA_OK;
        alone[i] = outputs_of(&p[i]);
        cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking);
    }
    cudaDeviceSynchronize();
    for (int call = 0; call < CALLS; call++)
        for (int i = 0; i < 2; i++) {
            outputs_poison(&p[i], stream[i]);
            failed += of->forward(&p[i].args, stream[i]) != FA_OK;
            outputs_compare(&alone[i], &p[i], stream[i]);
        }
    for (int i = 0; i < 2; i++) {
        cudaStreamSynchronize(stream[i]);
        different += outputs_different(&alone[i]);
        cudaStreamDestroy(stream[i]);
        problem_delete(&p[i]);
    }
    tap_ok(!failed && !different, "%s: two streams at once (%d calls failed, %d words differ)", of->name, failed, different);
}

static void streams(problem *p, const result *exact, tolerance allowed) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t launchable;
    fa_status status;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    problem_upload(p);
    status = p->of.forward(&p->args, stream);
    cudaStreamSynchronize(stream);
    tap_ok(status == FA_OK && outputs_right(p, exact, allowed), "%s: a call in a stream", p->of.name);

    problem_poison(p), problem_upload(p);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    status = p->of.forward(&p->args, stream);
    tap_ok(cudaStreamEndCapture(stream, &graph) == cudaSuccess && status == FA_OK, "%s: a call can be captured in a graph", p->of.name);
    problem_download(p);
    tap_ok(problem_untouched(p), "%s: nothing runs during the capture", p->of.name);
    tap_ok(cudaGraphInstantiate(&launchable, graph, 0) == cudaSuccess, "%s: the graph can be instantiated", p->of.name);
    for (int replay = 0; replay < 3; replay++) {
        problem_poison(p), problem_upload(p);
        tap_ok(cudaGraphLaunch(launchable, stream) == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess && outputs_right(p, exact, allowed),
               "%s: replay %d of the graph computes what the call does", p->of.name, replay);
    }
    cudaGraphExecDestroy(launchable);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
}

static void earlier_errors(problem *p, const result *exact, tolerance allowed) {
    fa_status status;
    problem_poison(p), problem_upload(p);
    cudaGetLastError();
    cudaSetDevice(9999); /* an error of the caller's own, which he has not looked at yet */
    status = p->of.forward(&p->args, 0);
    tap_ok(status == FA_OK, "an earlier CUDA error is not reported as ours (%s)", fa_status_string(status));
    tap_ok(cudaPeekAtLastError() == cudaErrorInvalidDevice, "an earlier CUDA error is not cleared");
    cudaGetLastError();
    tap_ok(outputs_right(p, exact, allowed), "the call after an earlier error computes");
}

/* What the library may be called in. */
static void surroundings(const instance *of, const shape *s) {
    problem p;
    result exact;
    tolerance allowed;
    problem_new(&p, of, s, check_place, &random_numbers);
    exact = result_new(&p);
    allowed = check_prepare(&p, &exact, 256, &random_numbers);
    streams(&p, &exact, allowed);
    earlier_errors(&p, &exact, allowed);
    result_delete(&exact);
    problem_delete(&p);
}

static void devices(void) {
    int count = 0, device;
    cudaGetDeviceCount(&count);
    if (count < 2) {
        tap_skip("several devices: there is one");
        return;
    }
    for (device = 0; device < count && device < 4; device++) {
        shape s = shape_plain(1, 2, 2, 200, 300);
        double worst = 0;
        cudaSetDevice(device);
        tap_ok(check_shape(&bf16, &s, &random_numbers, &worst), "device %d of %d", device, count);
    }
    cudaSetDevice(0);
}

int main(void) {
    const char *why = NULL;
    shape s = shape_plain(1, 2, 1, 300, 333);
#if TEST_SCHEDULE == 90
    shape many = shape_plain(3, 50, 10, 400, 600);
#endif
    check_place = MEMORY_DEVICE;
    random_numbers = rng_new(rng_seed(), 30);
    if (!memory_has_device(&why)) {
        tap_skip("streams, graphs and errors of the GPU: %s", why);
        return tap_end();
    }
#if defined(TEST_WRONG_ARCHITECTURE)
    {
        char flag[32];
        cudaDeviceProp properties;
        problem p;
        fa_status status;
        cudaGetDeviceProperties(&properties, 0);
        snprintf(flag, sizeof flag, "-arch=sm_%d%d", properties.major, properties.minor);
        problem_new(&p, &bf16, &s, check_place, &random_numbers);
        status = p.of.forward(&p.args, 0);
        tap_ok(status == FA_ERROR_ARCHITECTURE && strstr(fa_last_error(), flag) && !strncmp(fa_last_error(), "g_bf16:", 7),
               "compiled for another architecture: %s: %s", fa_status_string(status), fa_last_error());
        return tap_end();
    }
#endif
    schedule(&bf16, TEST_SCHEDULE);
    schedule(&chosen_80, 80);
    schedule(&sized, 80); /* sizes of a tile without FA_ARCH are for the schedule that runs everywhere */
    schedule(&f32, 80);
    packed(&judged, 5, 70, 4500);
    far_away(&shifted);
    schedule(&tf32_ample, 80);
    schedule(&f32_ample, 80);
    magnitudes(&f32);
    magnitudes(&f32_ample);
    magnitudes(&tf32);
    magnitudes(&tf32_ample);
#if TEST_SCHEDULE == 90
    schedule(&chosen_90, 90);
    rounds(&chosen_90);
    many_keys(&bf16);
    many_keys(&window);
    many_keys(&prefix);
    many_keys(&wide);
    many_keys(&wide_causal);
    windows(&window);
    windows(&wide_window);
    skips();
    rounds(&prefix);
    pairs(&prefix);
    packed(&documents, 50, 400, 600);
    packed(&causal_documents, 30, 400, 600);
    packed(&documents, 10, 400, 2300); /* more tiles than a warp looks at at once */
    packed(&spans, 50, 400, 600);
    workspaces(&documents);
    workspaces(&causal_documents);
    workspaces(&spans);
    surroundings(&documents, &many);
    two_streams(&documents);
    repeats(&documents);
    pairs(&bf16);
    far_below(&chosen_90);
    far_below(&line);
    repeats(&chosen_90);
    teams();
    repeats(&two_teams);
    schedule(&biased, 90);
    repeats(&biased);
    packed(&sent, 50, 400, 600);
    repeats(&sent);
    schedule(&sent_in_turn, 90);
    rounds(&sent_in_turn);
    schedule(&not_sent, 90);
    rounds(&not_sent);
#else
    tap_skip("the schedule and the primitives of sm_90a: the GPU, or what this was compiled for, is another");
#endif
    for (int i = 0; i < 2; i++) {
        const instance *of = i ? &chosen_80 : &bf16;
        surroundings(of, &s);
        rounds(of);
        negative_scale(of);
        far_below(of);
        two_streams(of);
        repeats(of);
    }
    devices();
    return tap_end();
}
