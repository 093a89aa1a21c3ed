#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "number.h"
#include "tap.h"

memory_place check_place = MEMORY_HOST;

/* The largest finite difference; a NaN or infinity of the unfused computation (overflow of f16) measures nothing. */
static double largest_error(const double *x, const double *exact, int64_t n) {
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i]) && isfinite(exact[i]) && fabs(x[i] - exact[i]) > largest) largest = fabs(x[i] - exact[i]);
    return largest;
}

/* The largest value. */
static double largest_v(const problem *p) {
    const fa_attention_args *a = &p->args;
    double largest = 0;
    for (int b = 0; b < a->batch; b++)
        for (int h = 0; h < a->heads_kv; h++)
            for (int j = 0; j < a->seqlen_k; j++)
                for (int c = 0; c < p->of.head_dim_v; c++)
                    largest = fmax(largest, fabs(problem_get(p, &p->v, &a->v, b, h, j, c)));
    return largest;
}

tolerance check_measure(const problem *p, const result *exact) {
    tolerance t;
    result unfused = result_new(p);
    reference_unfused(p, &unfused);
    t.o = 2 * largest_error(unfused.o, exact->o, exact->rows * exact->cols);
    t.lse = 2 * largest_error(unfused.lse, exact->lse, exact->rows);
    result_delete(&unfused);
    return t;
}

tolerance check_prepare(problem *p, result *exact, int rows, rng *r) {
    enum { ENOUGH_ELEMENTS = 4096 };
    tolerance t = {0, 0}, measured;
    int64_t seen = 0; /* rows that see a key: in some shapes q and k seldom have documents in common */
    for (int i = 0; i < rows / 8 && (i == 0 || seen < rows || seen * exact->cols < ENOUGH_ELEMENTS); i++) {
        problem_fill(p, r);
        reference_attention(p, exact);
        measured = check_measure(p, exact);
        t.o = fmax(t.o, measured.o), t.lse = fmax(t.lse, measured.lse);
        for (int64_t row = 0; row < exact->rows; row++) seen += !isinf(exact->lse[row]);
        if (!exact->rows || !p->args.seqlen_k) break; /* nothing to compute */
    }
    /* With one visible key, or two equal ones, the unfused computation happens to be exact. The fused one still
     * rounds the unnormalised sum and its reciprocal: a unit of fp32. FA_F32 on a GPU multiplies with 22 bits of
     * either operand. */
    t.o = fmax(t.o, (p->of.dtype == FA_F32 && check_place == MEMORY_DEVICE ? 8 : 2) * number_half_ulp(largest_v(p), FA_F32));
    return t;
}

/* How far `got` is from `want`, as a share of what is allowed; more than 1 is wrong. */
static double share(double got, double want, double allowed) {
    if (isnan(want)) return isnan(got) ? 0 : INFINITY;
    if (isinf(want)) return got == want ? 0 : INFINITY;
    return isfinite(got) ? fabs(got - want) / allowed : INFINITY;
}

int check_outputs(problem *p, const result *exact, tolerance allowed, double *worst, int quiet) {
    const fa_attention_args *a = &p->args;
    int wrong = 0, notes = quiet ? 0 : 3;
    int64_t row = 0;
    char text[512];
    size_t bytes = (size_t)number_bytes(p->of.dtype);
    for (int b = 0; b < a->batch; b++)
        for (int h = 0; h < a->heads; h++)
            for (int i = 0; i < a->seqlen_q; i++, row++) {
                for (int c = 0; c < exact->cols; c++) {
                    double want = exact->o[row * exact->cols + c], got = problem_get(p, &p->o, &a->o, b, h, i, c);
                    double off = share(got, want, allowed.o + number_half_ulp(want, p->of.dtype));
                    *worst = fmax(*worst, off);
                    if (off > 1 && ++wrong && notes-- > 0)
                        tap_note("o[%d][%d][%d][%d] is %.9g, want %.9g: %.3g of the allowed error", b, h, i, c, got, want,
                                 off);
                    memset(p->o.host + PROBLEM_FRONT + (size_t)problem_offset(&a->o, b, h, i, c) * bytes, PROBLEM_POISON,
                           bytes);
                }
                if (a->lse) {
                    float *lse = problem_lse(p, row);
                    double want = exact->lse[row], got = (double)*lse;
                    /* A rounding of the result, and one of a score on its way to base 2 and back. */
                    double off = share(got, want, allowed.lse + 4 * number_half_ulp(fmax(fabs(want), 1), FA_F32));
                    *worst = fmax(*worst, off);
                    if (off > 1 && ++wrong && notes-- > 0)
                        tap_note("lse[%d][%d][%d] is %.9g, want %.9g: %.3g of the allowed error", b, h, i, got, want, off);
                    memset(lse, PROBLEM_POISON, sizeof *lse);
                }
            }
    for (size_t i = 0; i < p->o.bytes; i++)
        if (p->o.host[i] != PROBLEM_POISON && ++wrong && notes-- > 0)
            tap_note("a byte outside o was written, %lld from its start", (long long)i - PROBLEM_FRONT);
    for (size_t i = 0; i < p->lse.bytes; i++)
        if (p->lse.host[i] != PROBLEM_POISON && ++wrong && notes-- > 0)
            tap_note("a byte outside lse was written, %lld from its start", (long long)i - PROBLEM_FRONT);
    if (wrong && !quiet) tap_note("%d wrong: %s: %s", wrong, p->of.name, problem_describe(p, text, sizeof text));
    return !wrong;
}

const char *check_instruction_set(int i) {
    static const char *const names[] = {"", "avx2", "base", "avx512"}; /* the last is not the best where there is AMX */
    setenv("FA_CPU_ISA", names[i % 4], 1);
    return *names[i % 4] ? names[i % 4] : "the best";
}

static int meeting, expected_to_meet, met;
static __thread int joined; /* the meeting that a thread has come to */
void check_meet_begin(int expected) { meeting++, expected_to_meet = expected, met = 0; }
void check_meet(void) {
    if (joined == meeting) return;
    joined = meeting;
    __atomic_fetch_add(&met, 1, __ATOMIC_RELAXED);
    for (int ms = 0; ms < 10000 && __atomic_load_n(&met, __ATOMIC_RELAXED) < expected_to_meet; ms++) usleep(1000);
}
int check_met(void) { return met; }

int check_forward(problem *p) {
    char text[512];
    fa_status status = p->of.forward(&p->args, 0);
    const char *late = memory_wait(p->place);
    if (late) tap_bail("%s: %s after %s", p->of.name, late, problem_describe(p, text, sizeof text));
    if (status == FA_OK) return 1;
    tap_note("%s: %s: %s: %s", p->of.name, fa_status_string(status), fa_last_error(),
             problem_describe(p, text, sizeof text));
    return 0;
}

int check_shape(const instance *of, const shape *s, rng *r, double *worst) {
    /* The largest error of few rows says little about the unfused computation. In doubt it is measured on more, and
     * once more where little is missing: a hidden or saturated score has no error, and in some shapes few rows have
     * others. */
    enum { ROWS = 128, LITTLE = 4, DOUBTS = 2 };
    static const int rows_in_doubt[DOUBTS] = {8192, 65536};
    problem p;
    result exact;
    tolerance allowed;
    char text[256];
    double off = 0;
    int passed;
    problem_new(&p, of, s, check_place, r);
    problem_describe(&p, text, sizeof text);
    tap_context("%s: %s", of->name, text);
    exact = result_new(&p);
    allowed = check_prepare(&p, &exact, ROWS, r);
    problem_upload(&p);
    passed = check_forward(&p);
    if (passed) {
        problem_download(&p);
        passed = check_outputs(&p, &exact, allowed, &off, 1);
        for (int doubt = 0; !passed && doubt < DOUBTS && (doubt == 0 || off < LITTLE); doubt++) {
            problem more;
            tolerance measured;
            result ignored = result_new(&p);
            problem_new(&more, of, s, MEMORY_HOST, r);
            more.place = p.place; /* what the emulation goes by; nothing runs */
            measured = check_prepare(&more, &ignored, rows_in_doubt[doubt], r);
            allowed.o = fmax(allowed.o, measured.o), allowed.lse = fmax(allowed.lse, measured.lse);
            more.place = MEMORY_HOST;
            problem_delete(&more);
            result_delete(&ignored);
            problem_download(&p);
            off = 0;
            passed = check_outputs(&p, &exact, allowed, &off, 1);
        }
        if (!passed) { /* tell what is wrong */
            problem_download(&p);
            check_outputs(&p, &exact, allowed, &off, 0);
        }
        if (!problem_inputs_unchanged(&p)) {
            tap_note("an input was written: %s: %s", of->name, text);
            passed = 0;
        }
    }
    if (off > *worst) *worst = off;
    result_delete(&exact);
    problem_delete(&p);
    return passed;
}

static layout random_layout(rng *r) {
    layout l;
    memset(&l, 0, sizeof l);
    l.bshd = rng_one_in(r, 2);
    if (rng_one_in(r, 2)) {
        if (rng_one_in(r, 2)) l.pad_row = rng_int(r, 1, 3);
        if (rng_one_in(r, 2)) l.pad_seq = rng_int(r, 1, 70);
        if (rng_one_in(r, 3)) l.pad_head = rng_int(r, 1, 5);
        if (rng_one_in(r, 3)) l.pad_batch = rng_int(r, 1, 9);
        if (rng_one_in(r, 2)) l.tail = rng_int(r, 1, 2000);
    }
    return l;
}

static void share_strides(layout *l, rng *r) {
    l->share_batch = rng_one_in(r, 8);
    l->share_head = rng_one_in(r, 8);
    l->share_seq = rng_one_in(r, 24);
}

static void random_parameters(const instance *of, shape *s, rng *r) {
    int longest = s->seqlen_k > s->seqlen_q ? s->seqlen_k : s->seqlen_q;
    s->scale = rng_one_in(r, 3) ? (float)(0.02 + 0.3 * rng_uniform(r)) : 0;
    if (rng_one_in(r, 12)) s->scale = -0.1f;
    s->softcap = (float)(0.5 + 20 * rng_uniform(r));
    s->window_left = rng_one_in(r, 5) ? -1 : rng_int(r, 0, rng_one_in(r, 2) ? 20 : longest);
    s->window_right = rng_one_in(r, 5) ? -1 : rng_one_in(r, 3) ? 0 : rng_int(r, 0, rng_one_in(r, 2) ? 20 : longest);
    if (rng_one_in(r, 40)) s->window_left = 0x7FFFFFFF;
    if (rng_one_in(r, 40)) s->window_right = 0x7FFFFFFF;
    s->documents = rng_one_in(r, 2) ? 0 : rng_int(r, 1, 4);
    s->share_bias_batch = rng_one_in(r, 3);
    s->share_bias_head = rng_one_in(r, 3);
    s->share_bias_query = rng_one_in(r, 4);
    s->pad_bias = rng_int(r, 0, 2);
    s->threads = rng_int(r, 1, 3);
    s->without_lse = rng_one_in(r, 5);
    s->spread = rng_one_in(r, 4) ? 8 : 1;
    s->without_workspace = rng_one_in(r, 2);
    (void)of;
}

shape check_random_shape(const instance *of, rng *r, int large) {
    static const int primes[] = {2, 3, 5, 7, 13, 17, 31, 37, 61, 67, 97, 101, 127, 131, 137};
    shape s;
    int most = large ? 330 : 140, ratio = rng_one_in(r, 2) ? 1 : rng_int(r, 1, 4);
    s = shape_plain(large ? 1 : rng_int(r, 1, 3), 0, large ? 1 : rng_int(r, 1, 2), 0, 0);
    s.heads = s.heads_kv * (large ? rng_int(r, 1, 2) : ratio);
    if (s.batch * s.heads > 6) s.batch = 1;
    s.seqlen_q = rng_one_in(r, 3) ? primes[rng_int(r, 0, 14)] : rng_int(r, large ? most / 2 : 1, most);
    s.seqlen_k = rng_one_in(r, 3) ? primes[rng_int(r, 0, 14)] : rng_int(r, large ? most / 2 : 1, most);
    if (rng_one_in(r, 3)) s.seqlen_q = s.seqlen_k;
    s.q = random_layout(r), s.k = random_layout(r), s.v = random_layout(r), s.o = random_layout(r);
    share_strides(&s.q, r), share_strides(&s.k, r), share_strides(&s.v, r);
    random_parameters(of, &s, r);
    return s;
}

int check_nasty_shape(const instance *of, int i, shape *s, rng *r) {
    /* batch, heads, heads_kv, seqlen_q, seqlen_k */
    static const int sizes[][5] = {
        {1, 1, 1, 1, 1},     /* a single element */
        {2, 2, 1, 3, 0},     /* no key: o = 0, lse = -inf */
        {1, 2, 2, 0, 5},     /* no query: nothing to do */
        {1, 1, 1, 1, 259},   /* one query */
        {1, 1, 1, 257, 1},   /* one key; with causal, nearly all rows empty */
        {1, 4, 1, 190, 67},  /* more queries than keys: leading rows see nothing under causal */
        {1, 1, 1, 65, 321},  /* more keys than queries */
        {2, 6, 2, 64, 64},   /* whole tiles */
        {1, 1, 1, 128, 256}, /* whole tiles, more keys */
        {1, 2, 1, 200, 264}, /* several blocks of several tiles */
        {1, 1, 1, 289, 131}, /* queries on either side of the keys' end; under fa_causal_top_left, ALiBi's diagonal crosses other tiles than the mask's edge */
    };
    if (i >= (int)(sizeof sizes / sizeof *sizes)) return 0;
    *s = shape_plain(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], sizes[i][4]);
    if (i % 2) s->q = s->k = s->v = s->o = random_layout(r);
    random_parameters(of, s, r);
    return 1;
}
