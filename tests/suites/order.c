/* order.c: how the sm_90a schedule deals blocks of queries to its teams, on the simulator, where the host can call
 * what the planner calls: each block once, whatever the sizes; and under masks that are known beforehand, no team
 * much more than another. */
#include <stdlib.h>
#include <string.h>

#include <fa/fa.h>

#include "../harness/rng.h"
#include "../harness/tap.h"
#include "hooks.h"

TEST_MASK_sinks(sinks)

#define FA_NAME full
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 128
#include <fa/attention.h>
#define DEAL_NAME full
#define DEAL_SCHEDULE _sm90
#include "order_deal.h"

#define FA_NAME causal
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_causal
#include <fa/attention.h>
#define DEAL_NAME causal
#define DEAL_SCHEDULE _sm90
#include "order_deal.h"
#define DEAL_NAME causal
#define DEAL_SCHEDULE _sm90_long
#include "order_deal.h"

#define FA_NAME window
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 128
#define FA_MASK fa_sliding_window
#include <fa/attention.h>
#define DEAL_NAME window
#define DEAL_SCHEDULE _sm90
#include "order_deal.h"

#define FA_NAME prefix
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_prefix
#include <fa/attention.h>
#define DEAL_NAME prefix
#define DEAL_SCHEDULE _sm90
#include "order_deal.h"
#define DEAL_NAME prefix
#define DEAL_SCHEDULE _sm90_long
#include "order_deal.h"

#define FA_NAME span
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 128
#define FA_MASK fa_span
#include <fa/attention.h>
#define DEAL_NAME span
#define DEAL_SCHEDULE _sm90
#include "order_deal.h"

#define FA_NAME own
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 128
#define FA_MASK sinks
#include <fa/attention.h>
#define DEAL_NAME own
#define DEAL_SCHEDULE _sm90
#include "order_deal.h"

/* A schedule of an instance: rows of its tiles, and what a block takes whatever its keys, in keys. */
typedef struct dealer {
    const char *name;
    int (*deal)(const fa_attention_args *args, uint32_t teams, int block_m, int extra, uint32_t *times, int64_t *length);
    int block_m, extra;
} dealer;
enum { FULL, CAUSAL, CAUSAL_LONG, WINDOW, PREFIX, PREFIX_LONG, SPAN, OWN, DEALERS };
static const dealer dealers[DEALERS] = {
    {"full", full_sm90_deal, 128, 160},
    {"causal", causal_sm90_deal, 128, 192},
    {"causal, many keys", causal_sm90_long_deal, 192, 192},
    {"window", window_sm90_deal, 128, 160},
    {"prefix", prefix_sm90_deal, 128, 192},
    {"prefix, many keys", prefix_sm90_long_deal, 192, 192},
    {"span", span_sm90_deal, 128, 160},
    {"a mask of one's own", own_sm90_deal, 128, 160},
};
enum { BATCH = 64 };
static int prefixes[BATCH], spans[BATCH * 20000];

static fa_attention_args call_of(int batch, int heads, int queries, int keys) {
    fa_attention_args a;
    memset(&a, 0, sizeof a);
    a.batch = batch, a.heads = heads, a.heads_kv = 1, a.seqlen_q = queries, a.seqlen_k = keys;
    fa_tensor *const tensors[] = {&a.q, &a.k, &a.v, &a.o};
    for (int i = 0; i < 4; i++) { /* nobody looks into them */
        const int of_keys = i == 1 || i == 2;
        *tensors[i] = fa_tensor_bhsd((void *)(uintptr_t)((uint64_t)(i + 1) << 44), of_keys ? 1 : heads, of_keys ? keys : queries, 128);
    }
    a.prefix = prefixes, a.span_begin = a.span_end = spans;
    a.window_left = a.window_right = -1;
    return a;
}

/* Deals: 1 if each block came once. *share: the longest team's over the mean. */
static int deal(const dealer *of, const fa_attention_args *a, uint32_t teams, double *share) {
    const int64_t blocks = (a->seqlen_q + of->block_m - 1) / of->block_m, items = (int64_t)a->batch * a->heads * blocks;
    uint32_t *times = (uint32_t *)calloc((size_t)items, sizeof *times);
    int64_t *length = (int64_t *)calloc(teams, sizeof *length), sum = 0, most = 0;
    int once = of->deal(a, teams, of->block_m, of->extra, times, length);
    for (int64_t i = 0; i < items; i++) once = once && times[i] == 1;
    for (uint32_t i = 0; i < teams; i++) sum += length[i], most = length[i] > most ? length[i] : most;
    *share = sum > 0 ? (double)most * teams / (double)sum : 1;
    free(times), free(length);
    return once;
}

/* Sizes and masks of all kinds. */
static void each_once(const dealer *of, rng *r) {
    int right = 1, calls = 0;
    for (; calls < 300 && right; calls++) {
        const int keys = rng_int(r, 1, calls % 5 ? 3000 : 300);
        const uint32_t teams = (uint32_t)(calls % 2 ? rng_int(r, 1, 300) : calls % 4 ? 132 : 264);
        double share;
        fa_attention_args a = call_of(rng_int(r, 1, BATCH), rng_int(r, 1, 40), rng_int(r, 1, calls % 3 ? 3000 : 700), keys);
        for (int b = 0; b < BATCH; b++) prefixes[b] = rng_int(r, 0, keys);
        a.window_left = rng_int(r, -1, 1500), a.window_right = rng_int(r, -1, 900);
        right = deal(of, &a, teams, &share);
        if (!right)
            tap_note("batch %d, heads %d, %d queries, %d keys, window %d, %d, %u teams", a.batch, a.heads, a.seqlen_q, a.seqlen_k,
                     a.window_left, a.window_right, teams);
    }
    tap_ok(right, "%s: each block of queries once, %d calls", of->name, calls);
}

/* As many tokens and columns as the benchmark has, on 132 multiprocessors: the longest share of the work is at most
 * `most` of the mean. Sizes whose blocks do not go evenly into a few rounds have no better order. */
static void even(const dealer *of, int head_dim, int teams, int from, double most) {
    for (int s = from; s <= 16384; s *= 2) {
        double share;
        fa_attention_args a = call_of(16384 / s, 2048 / head_dim, s, s);
        for (int b = 0; b < BATCH; b++) prefixes[b] = s / 2;
        a.window_left = s < 2048 ? s / 4 : 1024, a.window_right = 0;
        const int once = deal(of, &a, (uint32_t)teams, &share);
        tap_ok(once && share <= most, "%s: head dimension %d, %d tokens: the longest share is %.3f of the mean, at most %.3f", of->name, head_dim, s,
               share, most);
    }
}

int main(void) {
    rng r = rng_new(rng_seed(), 58);
    for (int i = 0; i < DEALERS; i++) each_once(&dealers[i], &r);
    even(&dealers[CAUSAL], 64, 264, 512, 1.035);
    for (int blocks = 3; blocks < 8; blocks += 2) even(&dealers[CAUSAL], 128, 132, blocks * 128, 1.035); /* 384, 640, 896: odd numbers of blocks */
    even(&dealers[CAUSAL_LONG], 64, 132, 4096, 1.035);
    even(&dealers[WINDOW], 64, 264, 512, 1.035);
    even(&dealers[WINDOW], 128, 132, 512, 1.035);
    even(&dealers[WINDOW], 256, 132, 512, 1.065); /* 7.8 blocks of equal length for each team are 8 for some */
    even(&dealers[PREFIX], 64, 264, 1024, 1.035);
    even(&dealers[PREFIX], 128, 132, 1024, 1.035);
    even(&dealers[PREFIX], 256, 132, 1024, 1.035);
    even(&dealers[PREFIX_LONG], 64, 132, 4096, 1.035);
    return tap_end();
}
