/* swiglu.c: fa/swiglu.h and fa/activation.h against float64: random shapes and layouts, gradients by finite differences,
 * special values, errors, determinism. The same source runs on the CPU and, compiled by nvcc, on the GPU. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <fa/activation.h>
#include <fa/fa.h>

#include "../harness/check.h"
#include "../harness/matrix.h"
#include "../harness/number.h"
#include "../harness/tap.h"

struct swish {
    float beta;
};
FA_HOOK float swish(const struct swish *u, float x) { return x * fa_sigmoid(u->beta * x); }
FA_HOOK float swish_grad(const struct swish *u, float x) {
    float s = fa_sigmoid(u->beta * x);
    return s + u->beta * x * s * (1.0f - s);
}

#define FA_NAME g_f32
#define FA_DTYPE FA_F32
#include <fa/swiglu.h>

#define FA_NAME g_f16
#define FA_DTYPE FA_F16
#define FA_API FA_EXTERN
#define FA_ACTIVATION fa_gelu
#include <fa/swiglu.h>

#define FA_NAME g
#define FA_DTYPE FA_BF16
#define FA_SUB _bf16
#include <fa/swiglu.h>
#undef FA_NAME
#undef FA_DTYPE

#define FA_NAME g_relu
#define FA_DTYPE FA_F32
#define FA_ACTIVATION fa_relu
#include <fa/swiglu.h>

#define FA_NAME g_user
#define FA_DTYPE FA_BF16
#define FA_ACTIVATION swish
#define FA_USER_ARGS struct swish
#include <fa/swiglu.h>

#define FA_NAME g_gelu
#define FA_DTYPE FA_F32
#define FA_ACTIVATION fa_gelu
#include <fa/swiglu.h>

#define FA_NAME g_silu
#define FA_DTYPE FA_F16
#include <fa/swiglu.h>

#if defined(__CUDACC__)
/* An instance for the CPU beside those for the GPU. */
#define FA_NAME g_host
#define FA_DTYPE FA_F32
#define FA_ARCH FA_CPU
#include <fa/swiglu.h>
#endif

#if !defined(__CUDACC__)
/* Products, which show how results are rounded. NaN gets all bits that it may have, which must not be rounded up. */
FA_HOOK float itself(const void *user, float x) {
    const uint32_t bits = 0x7FFFFFFF;
    float nan;
    (void)user;
    memcpy(&nan, &bits, 4);
    return x == x ? x : nan;
}
FA_HOOK float itself_grad(const void *user, float x) {
    (void)user, (void)x;
    return 1.0f;
}
#define FA_NAME g_product_f16
#define FA_DTYPE FA_F16
#define FA_ACTIVATION itself
#include <fa/swiglu.h>
#define FA_NAME g_product_bf16
#define FA_DTYPE FA_BF16
#define FA_ACTIVATION itself
#include <fa/swiglu.h>
#endif

typedef fa_status call(const fa_swiglu_args *args, fa_stream stream);
typedef struct kind {
    const char *name;
    int dtype, activation; /* 0: silu, 1: gelu, 2: relu, 3: swish */
    call *forward, *backward;
    size_t (*workspace)(const fa_swiglu_args *args);
} kind;
static const kind kinds[] = {{"g_f32", FA_F32, 0, g_f32_forward, g_f32_backward, g_f32_workspace},
                             {"g_f16", FA_F16, 1, g_f16_forward, g_f16_backward, g_f16_workspace},
                             {"g_bf16", FA_BF16, 0, g_bf16_forward, g_bf16_backward, g_bf16_workspace},
                             {"g_relu", FA_F32, 2, g_relu_forward, g_relu_backward, g_relu_workspace},
                             {"g_user", FA_BF16, 3, g_user_forward, g_user_backward, g_user_workspace},
                             {"g_gelu", FA_F32, 1, g_gelu_forward, g_gelu_backward, g_gelu_workspace},
                             {"g_silu", FA_F16, 0, g_silu_forward, g_silu_backward, g_silu_workspace}};
enum { KINDS = 7 };

static memory_place place;
static const struct swish user = {1.7f};

/* ---- the reference ---- */

static double activation(int which, double x) {
    switch (which) {
    case 0: return x / (1 + exp(-x));
    case 1: return x * 0.5 * erfc(-x * 0.70710678118654752440);
    case 2: return x < 0 ? 0 : x;
    default: return x / (1 + exp(-(double)user.beta * x));
    }
}
static double derivative(int which, double x) {
    double beta = which == 0 ? 1 : (double)user.beta, s = 1 / (1 + exp(-beta * x));
    switch (which) {
    case 1: return 0.5 * erfc(-x * 0.70710678118654752440) + x * exp(-0.5 * x * x) * 0.39894228040143267794;
    case 2: return isnan(x) ? x : x > 0;
    default: return s + beta * x * s * (1 - s);
    }
}
/* What the float computation may be away from these: some roundings of the result and of the exponent, two instructions of
 * 2^-22 on GPUs, and nothing at all for the piecewise linear one. */
static double activation_slack(int which, double x) {
    return which == 2 ? 0 : 6e-7 * fabs(activation(which, x)) + 2.5e-7 * fmin(fabs(x), 1) + 2.5e-38 * fabs(x);
}
static double derivative_slack(int which) { return which == 2 ? 0 : 1.5e-6; }

/* ---- a problem: all matrices of both directions ---- */

enum { GATE, UP, Y, D_Y, D_GATE, D_UP, MATRICES };
static const char *const names[] = {"gate", "up", "y", "d_y", "d_gate", "d_up"};
static int is_written(int m) { return m == Y || m == D_GATE || m == D_UP; }

typedef struct form {
    int64_t rows, cols;
    int gap[MATRICES], tail[MATRICES], threads;
    double spread;
} form;

static const char *describe(const kind *k, const form *s) {
    static char text[300];
    snprintf(text, sizeof text, "%s rows=%lld cols=%lld gaps=%d,%d,%d,%d,%d,%d tails=%d,%d,%d,%d,%d,%d threads=%d", k->name, (long long)s->rows,
             (long long)s->cols, s->gap[0], s->gap[1], s->gap[2], s->gap[3], s->gap[4], s->gap[5], s->tail[0], s->tail[1], s->tail[2],
             s->tail[3], s->tail[4], s->tail[5], s->threads);
    return text;
}

typedef struct problem6 {
    matrix m[MATRICES];
    fa_swiglu_args args;
} problem6;

static fa_matrix *of_args(fa_swiglu_args *a, int m) {
    fa_matrix *const all[] = {&a->gate, &a->up, &a->y, &a->d_y, &a->d_gate, &a->d_up};
    return all[m];
}
static problem6 new_problem(const kind *k, const form *s, rng *r) {
    problem6 p;
    memset(&p, 0, sizeof p);
    for (int m = 0; m < MATRICES; m++) {
        p.m[m] = matrix_new(place, k->dtype, s->rows, s->cols, s->gap[m], s->tail[m], is_written(m));
        if (!is_written(m)) matrix_fill(&p.m[m], m == GATE ? s->spread : 1, r);
        matrix_upload(&p.m[m]);
        *of_args(&p.args, m) = p.m[m].at;
    }
    p.args.rows = s->rows, p.args.cols = s->cols, p.args.threads = s->threads;
    p.args.user = &user;
    return p;
}
static void delete_problem(problem6 *p) {
    for (int m = 0; m < MATRICES; m++) matrix_delete(&p->m[m]);
}
static void run(const kind *k, const fa_swiglu_args *a) {
    if (k->forward(a, 0) != FA_OK || k->backward(a, 0) != FA_OK) tap_bail("%s", fa_last_error());
}

/* The largest error of y, d_gate, d_up, where they are downloaded, as a share of what is allowed. */
static double forward_error(const problem6 *p, const kind *k) {
    double worst = 0;
    for (int64_t i = 0; i < p->m[Y].rows; i++)
        for (int64_t j = 0; j < p->m[Y].cols; j++) {
            double x = matrix_get(&p->m[GATE], i, j), up = matrix_get(&p->m[UP], i, j), exact = activation(k->activation, x) * up;
            double slack = activation_slack(k->activation, x) * fabs(up) + 1.2e-7 * fabs(exact) + 1e-45;
            worst = fmax(worst, matrix_error(matrix_get(&p->m[Y], i, j), exact, slack, k->dtype));
        }
    return worst;
}
static double backward_error(const problem6 *p, const kind *k) {
    double worst = 0;
    for (int64_t i = 0; i < p->m[Y].rows; i++)
        for (int64_t j = 0; j < p->m[Y].cols; j++) {
            double x = matrix_get(&p->m[GATE], i, j), up = matrix_get(&p->m[UP], i, j), d_y = matrix_get(&p->m[D_Y], i, j);
            double d_up = activation(k->activation, x) * d_y, d_gate = d_y * up * derivative(k->activation, x);
            double slack_up = activation_slack(k->activation, x) * fabs(d_y) + 1.2e-7 * fabs(d_up) + 1e-45;
            double slack_gate = derivative_slack(k->activation) * fabs(d_y * up) + 1.8e-7 * fabs(d_gate) + 1e-45;
            worst = fmax(worst, matrix_error(matrix_get(&p->m[D_UP], i, j), d_up, slack_up, k->dtype));
            worst = fmax(worst, matrix_error(matrix_get(&p->m[D_GATE], i, j), d_gate, slack_gate, k->dtype));
        }
    return worst;
}

/* One shape in both directions; 1 if all is well, else 0 after a note. */
static int check_rows(const kind *k, const form *s, rng *r, double *worst) {
    problem6 p = new_problem(k, s, r);
    double error = INFINITY, error_back = INFINITY;
    int intact = 1;
    tap_context("%s", describe(k, s));
    fa_status forward = k->forward(&p.args, 0), backward = k->backward(&p.args, 0);
    for (int m = 0; m < MATRICES; m++) matrix_download(&p.m[m]), intact &= matrix_intact(&p.m[m]);
    if (forward == FA_OK && backward == FA_OK) error = forward_error(&p, k), error_back = backward_error(&p, k);
    else tap_note("%s: %s", describe(k, s), fa_last_error());
    delete_problem(&p);
    *worst = fmax(*worst, fmax(error, error_back));
    if (error <= 1 && error_back <= 1 && intact) return 1;
    tap_note("%s: errors of %.3g and %.3g of what is allowed; around the matrices %s", describe(k, s), error, error_back,
             intact ? "nothing was written" : "something was written");
    return 0;
}

static form plain(int64_t rows, int64_t cols) {
    form s;
    memset(&s, 0, sizeof s);
    s.rows = rows, s.cols = cols, s.spread = 3;
    return s;
}
static form random_form(rng *r) {
    form s = plain(rng_int(r, 1, 12), 0);
    s.cols = (int64_t)exp(rng_uniform(r) * log(rng_one_in(r, 8) ? 60000.0 : 6000.0));
    if (rng_one_in(r, 2)) s.cols = (s.cols + 7) / 8 * 8;
    if (s.cols < 100) s.rows = rng_int(r, 1, 300);
    for (int i = 0; i < MATRICES; i++) {
        s.gap[i] = rng_one_in(r, 2) ? 0 : rng_one_in(r, 2) ? 8 * rng_int(r, 1, 3) : rng_int(r, 1, 20);
        s.tail[i] = rng_one_in(r, 2) ? 0 : rng_int(r, 1, 20);
    }
    /* Often all alike, which is the fast way for odd rows; and often without gaps, which makes one row of all. */
    if (rng_one_in(r, 2))
        for (int i = 1; i < MATRICES; i++) s.gap[i] = s.gap[0], s.tail[i] = s.tail[0];
    if (rng_one_in(r, 3)) memset(s.gap, 0, sizeof s.gap);
    s.threads = rng_int(r, 0, 3);
    s.spread = rng_one_in(r, 4) ? 30 : 3;
    return s;
}

#if !defined(__CUDACC__)
/* Every 16-bit pattern times 64 others, exactly a float each: the result is that float, rounded to nearest even, bit for bit, with
 * ties, subnormal numbers and overflow; or some NaN. Few rows stay in the caches, many are written past them. */
static void rounding(rng *r) {
    enum { COLS = 65537, ROWS = 65 };
    uint16_t *gate = (uint16_t *)malloc(2 * COLS), *up = (uint16_t *)malloc(2 * COLS * ROWS), *y = (uint16_t *)malloc(2 * COLS * ROWS);
    if (!gate || !up || !y) tap_bail("no memory");
    static const uint16_t chosen[] = {0x3C01, 0x3F81, 0x3FFF, 0x0001, 0x8001, 0x7FFF, 0xFFFF, 0x7F80, 0x7C00, 0x7BFF, 0x7F7F, 0x1400, 0x1A01};
    for (int i = 0; i < COLS; i++) gate[i] = (uint16_t)i;
    for (int row = 0; row < ROWS; row++) {
        uint16_t pattern = row < (int)(sizeof chosen / sizeof chosen[0]) ? chosen[row] : (uint16_t)rng_next(r);
        for (int i = 0; i < COLS; i++) up[row * COLS + i] = pattern;
    }
    for (int set = 0; set < 3; set++) {
        const char *isa = check_instruction_set(set);
        for (int test = 0; test < 4; test++) {
            const int dtype = test % 2 ? FA_BF16 : FA_F16, rows = test < 2 ? 3 : ROWS;
            int wrong = 0;
            fa_swiglu_args a;
            memset(&a, 0, sizeof a);
            a.gate.data = gate, a.up = fa_matrix_of(up, COLS), a.y = fa_matrix_of(y, COLS);
            a.rows = rows, a.cols = COLS;
            wrong += (dtype == FA_F16 ? g_product_f16_forward(&a, 0) : g_product_bf16_forward(&a, 0)) != FA_OK;
            for (int64_t i = 0; i < (int64_t)rows * COLS; i++) {
                uint16_t rounded;
                float exact = fa_load_element(gate, i % COLS, dtype) * fa_load_element(up, i, dtype), got = fa_load_element(y, i, dtype);
                fa_store_element(&rounded, 0, dtype, exact);
                if (exact != exact ? got == got : y[i] != rounded) {
                    if (!wrong++) tap_note("%04x times %04x is %04x, not %04x", gate[i % COLS], up[i], y[i], rounded);
                }
            }
            tap_ok(!wrong, "%s, %s: products of all numbers are rounded to nearest even, %s the caches", dtype == FA_F16 ? "f16" : "bf16", isa,
                   rows == ROWS ? "past" : "in");
        }
    }
    check_instruction_set(0);
    free(gate), free(up), free(y);
}
#endif

static void shapes(const kind *k, uint64_t seed) {
    static const int64_t nasty[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 256, 257, 511, 513, 1023, 1024, 1025,
                                    2047, 2049, 4095, 4096, 4097, 8191, 8192, 8193, 16385, 32769, 50257};
    const char *rounds = getenv("FA_ROUNDS");
    double worst = 0;
    int passed = 1;
    rng r = rng_new(seed, 400 + (uint64_t)(k - kinds));
    for (int set = 0; set < (place == MEMORY_HOST ? 3 : 1); set++) {
        const char *isa = place == MEMORY_HOST ? check_instruction_set(set) : "GPU";
        for (size_t i = 0; i < sizeof nasty / sizeof nasty[0]; i++) {
            form s = plain(nasty[i] < 1000 ? 9 : 2, nasty[i]);
            passed &= check_rows(k, &s, &r, &worst);
            for (int t = 0; t < MATRICES; t++) s.gap[t] = 3, s.tail[t] = 5;
            passed &= check_rows(k, &s, &r, &worst);
        }
        for (int64_t cols = 1024; cols <= 8192; cols *= 2) /* segments are whole, but rows of one matrix begin anywhere */
            for (int t = 0; t < MATRICES; t++) {
                form s = plain(4, cols);
                s.gap[t] = 3;
                passed &= check_rows(k, &s, &r, &worst);
            }
        tap_ok(passed, "%s, %s: lengths around every limit (worst error %.2f of what is allowed)", k->name, isa, worst);
        passed = 1, worst = 0;
        for (int i = 0; i < 8 * (rounds ? atoi(rounds) : 6); i++) {
            form s = random_form(&r);
            passed &= check_rows(k, &s, &r, &worst);
        }
        tap_ok(passed, "%s, %s: random shapes (worst error %.2f of what is allowed)", k->name, isa, worst);
        passed = 1, worst = 0;
    }
    if (place == MEMORY_HOST) check_instruction_set(0);
    for (int rows = 0; rows < 2; rows++) {
        form s = plain(rows ? 5 : 0, rows ? 0 : 7);
        passed &= check_rows(k, &s, &r, &worst);
    }
    tap_ok(passed, "%s: no rows, no columns", k->name);
    form many = plain(70000, 3), large = plain(3, 800000);
    passed = check_rows(k, &many, &r, &worst);
    many.gap[Y] = many.gap[D_UP] = 2;
    passed &= check_rows(k, &many, &r, &worst) & check_rows(k, &large, &r, &worst);
    if (place == MEMORY_HOST && k->dtype != FA_F32) { /* 8 MB of halves, which go past the caches, in rows that begin anywhere in a line */
        form streamed = plain(4090, 1029);
        passed &= check_rows(k, &streamed, &r, &worst);
    }
    for (int i = 0; i < 3; i++) { /* odd columns without gaps, which fill segments of a GPU */
        static const int64_t cols[] = {1, 3, 7};
        form s = plain(2048, cols[i]);
        passed &= check_rows(k, &s, &r, &worst);
    }
    tap_ok(passed, "%s: many rows, long rows", k->name);
}

/* ---- the shipped activations by themselves, on the host: the errors that fa/activation.h states ---- */

static void accuracy(void) {
    double above[2] = {0, 0}, below[2] = {0, 0}, slope[2] = {0, 0};
    for (uint32_t u = 0; u < 0x43000000u; u += 4099) /* to 128 */
        for (uint32_t sign = 0; sign < 2; sign++) {
            uint32_t bits = u | sign << 31;
            float x;
            memcpy(&x, &bits, 4);
            for (int which = 0; which < 2; which++) {
                double exact = activation(which, (double)x), error = fabs((double)(which ? fa_gelu(NULL, x) : fa_silu(NULL, x)) - exact);
                if (sign) below[which] = fmax(below[which], error);
                else above[which] = fmax(above[which], error / (exact + 1e-37));
                error = fabs((double)(which ? fa_gelu_grad(NULL, x) : fa_silu_grad(NULL, x)) - derivative(which, (double)x));
                slope[which] = fmax(slope[which], error);
            }
        }
    for (int which = 0; which < 2; which++)
        tap_ok(above[which] < 5e-7 && below[which] < 1e-7 && slope[which] < 1e-6, "%s: errors of %.2g relatively above 0, %.2g below, %.2g of the derivative",
               which ? "fa_gelu" : "fa_silu", above[which], below[which], slope[which]);
    tap_ok(fa_sigmoid(-80.0f) > 0 && fabs((double)fa_sigmoid(-80.0f) / (1 / (1 + exp(80.0))) - 1) < 5e-6 && fa_sigmoid(200.0f) == 1.0f,
           "fa_sigmoid: its small values are as exact as its large ones");
    tap_ok(isnan(fa_silu(NULL, NAN)) && isnan(fa_gelu(NULL, NAN)) && isnan(fa_relu(NULL, NAN)) && isnan(fa_silu_grad(NULL, NAN)) &&
               isnan(fa_gelu_grad(NULL, NAN)) && isnan(fa_relu_grad(NULL, NAN)) && isnan(fa_sigmoid(NAN)),
           "activations of NaN are NaN");
    tap_ok(fa_relu(NULL, -3.0f) == 0 && fa_relu(NULL, 3.0f) == 3 && fa_relu_grad(NULL, 0.0f) == 0 && fa_relu_grad(NULL, 2.0f) == 1 &&
               fa_relu_grad(NULL, -2.0f) == 0,
           "fa_relu");
}

/* ---- gradients by finite differences: of L = the sum of w y, in double ---- */

static void differences(const kind *k, rng *r) {
    const double step = 1e-5;
    form s = plain(2, 37);
    double worst = 0;
    problem6 p = new_problem(k, &s, r);
    run(k, &p.args);
    matrix_download(&p.m[D_GATE]), matrix_download(&p.m[D_UP]);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 37; j++) {
            double x = matrix_get(&p.m[GATE], i, j), up = matrix_get(&p.m[UP], i, j), w = matrix_get(&p.m[D_Y], i, j);
            double by_gate = w * up * (activation(k->activation, x + step) - activation(k->activation, x - step)) / (2 * step);
            double by_up = w * activation(k->activation, x) * ((up + step) - (up - step)) / (2 * step);
            worst = fmax(worst, fmax(fabs(by_gate - matrix_get(&p.m[D_GATE], i, j)), fabs(by_up - matrix_get(&p.m[D_UP], i, j))));
        }
    tap_ok(worst < 3e-5, "%s: finite differences (largest difference %.2g)", k->name, worst);
    delete_problem(&p);
}

/* ---- special values: an element that is one leaves the others alone ---- */

static void special(const kind *k, rng *r) {
    static const double values[] = {NAN, INFINITY, 0.0, -0.0, 200, -200, 1e4, -1e4};
    form s = plain(3, 200);
    problem6 p = new_problem(k, &s, r);
    for (int j = 0; j < 64; j++) {
        matrix_set(&p.m[GATE], 0, 3 * j, values[j % 8]);
        if (j % 8 != 1) matrix_set(&p.m[UP], 1, 3 * j, values[j / 8]);
        if (j % 8 != 1) matrix_set(&p.m[D_Y], 2, 3 * j, values[j / 8]);
    }
    for (int m = 0; m < MATRICES; m++) matrix_upload(&p.m[m]);
    run(k, &p.args);
    for (int m = 0; m < MATRICES; m++) matrix_download(&p.m[m]);
    double error = forward_error(&p, k), back = 0;
    /* The derivative at infinity is infinity minus itself in part. */
    for (int j = 0; j < 64; j++) matrix_set(&p.m[GATE], 0, 3 * j, values[j % 8] > 1e5 ? 1 : matrix_get(&p.m[GATE], 0, 3 * j));
    matrix_upload(&p.m[GATE]);
    run(k, &p.args);
    for (int m = 0; m < MATRICES; m++) matrix_download(&p.m[m]);
    back = backward_error(&p, k);
    tap_ok(error <= 1 && back <= 1, "%s: NaN, infinities, extremes (%.2f and %.2f of what is allowed)", k->name, error, back);
    delete_problem(&p);
}

/* ---- the same bits: every time, in any company, with any number of threads, in place ---- */

static int same(const matrix *a, const matrix *b) {
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) {
            double u = matrix_get(a, i, j), v = matrix_get(b, i, j);
            if (memcmp(&u, &v, sizeof u)) return 0;
        }
    return 1;
}
static void again(problem6 *q) {
    for (int m = 0; m < MATRICES; m++)
        if (is_written(m)) matrix_poison(&q->m[m]), matrix_upload(&q->m[m]);
}
static int same_results(problem6 *p, problem6 *q) {
    int all = 1;
    for (int m = 0; m < MATRICES; m++)
        if (is_written(m)) matrix_download(&q->m[m]), all &= same(&p->m[m], &q->m[m]);
    return all;
}
static void determinism(const kind *k, int64_t cols, rng *r) {
    enum { ROWS = 40 };
    form s = plain(ROWS, cols);
    problem6 p = new_problem(k, &s, r), q = p;
    int threads = 1, in_place = 1;
    for (int m = 0; m < MATRICES; m++) {
        if (!is_written(m)) continue;
        q.m[m] = matrix_new(place, k->dtype, ROWS, cols, 5, 1, 1); /* not in one row, and aligned otherwise */
        *of_args(&q.args, m) = q.m[m].at;
    }
    p.args.threads = 1;
    run(k, &p.args);
    same_results(&p, &p);
    for (int t = 0; t < 4; t++) {
        q.args.threads = t == 0 ? 1 : t == 1 ? 2 : t == 2 ? 7 : 0;
        again(&q);
        run(k, &q.args);
        threads &= same_results(&p, &q);
    }
    tap_ok(threads, "%s, %lld columns: the same bits every time, with any number of threads, in any layout", k->name, (long long)cols);
    again(&q);
    for (int i = 0; i < ROWS; i++) {
        fa_swiglu_args one = q.args;
        for (int m = 0; m < MATRICES; m++) {
            fa_matrix *at = of_args(&one, m);
            at->data = (char *)at->data + i * at->stride_row * number_bytes(k->dtype);
        }
        one.rows = 1;
        run(k, &one);
    }
    tap_ok(same_results(&p, &q), "%s, %lld columns: a row by itself has the bits that it has among others", k->name, (long long)cols);
    /* y in the place of gate and of up; d_gate and d_up in those of two of gate, up, d_y. */
    static const int pairs[][2] = {{GATE, UP}, {UP, GATE}, {D_Y, UP}, {UP, D_Y}, {GATE, D_Y}, {D_Y, GATE}};
    for (int c = 0; c < 6; c++) {
        fa_swiglu_args a = p.args;
        a.y = *of_args(&a, c % 2 ? GATE : UP);
        if (k->forward(&a, 0) != FA_OK) tap_bail("%s", fa_last_error());
        matrix result = p.m[c % 2 ? GATE : UP];
        result.host = q.m[Y].host; /* a buffer that is not smaller */
        matrix_download(&result);
        in_place &= same(&p.m[Y], &result);
        for (int m = 0; m < MATRICES; m++)
            if (!is_written(m)) matrix_upload(&p.m[m]);
        a = p.args;
        a.d_gate = *of_args(&a, pairs[c][0]), a.d_up = *of_args(&a, pairs[c][1]);
        if (k->backward(&a, 0) != FA_OK) tap_bail("%s", fa_last_error());
        for (int side = 0; side < 2; side++) {
            result = p.m[pairs[c][side]];
            result.host = q.m[Y].host;
            matrix_download(&result);
            in_place &= same(&p.m[side ? D_UP : D_GATE], &result);
        }
        for (int m = 0; m < MATRICES; m++)
            if (!is_written(m)) matrix_upload(&p.m[m]);
    }
    tap_ok(in_place, "%s, %lld columns: results in the place of what is read", k->name, (long long)cols);
    for (int m = 0; m < MATRICES; m++)
        if (is_written(m)) matrix_delete(&q.m[m]);
    delete_problem(&p);
}

/* ---- strides, sizes ---- */

static void broadcast(const kind *k, rng *r) {
    form s = plain(5, 300);
    problem6 p = new_problem(k, &s, r);
    p.args.gate.stride_row = p.args.up.stride_row = p.args.d_y.stride_row = 0;
    run(k, &p.args);
    matrix_download(&p.m[Y]), matrix_download(&p.m[D_GATE]), matrix_download(&p.m[D_UP]);
    for (int m = 0; m < MATRICES; m++)
        for (int i = 1; i < 5 && !is_written(m); i++)
            for (int j = 0; j < 300; j++) matrix_set(&p.m[m], i, j, matrix_get(&p.m[m], 0, j));
    double worst = fmax(forward_error(&p, k), backward_error(&p, k));
    tap_ok(worst <= 1, "%s: a stride of 0 repeats a row (%.2f of what is allowed)", k->name, worst);
    delete_problem(&p);
}

/* Two rows that are more than 2^31 elements apart: untouched pages between them take no memory on the host. */
static void far_apart(rng *r) {
    const int64_t stride = ((int64_t)1 << 31) + 5;
    const size_t bytes = (size_t)(stride + 64) * 2;
    unsigned char *from = (unsigned char *)memory_new(place, bytes), *to = (unsigned char *)memory_new(place, bytes);
    uint16_t x[2][64], y[2][64];
    double worst = 0;
    fa_swiglu_args a;
    memset(&a, 0, sizeof a);
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 64; j++) number_store(x[i], j, FA_BF16, rng_normal(r));
        memory_put(place, from + (size_t)i * (size_t)stride * 2, x[i], sizeof x[i]);
    }
    a.gate.data = a.up.data = from, a.y.data = to, a.gate.stride_row = a.up.stride_row = a.y.stride_row = stride, a.rows = 2, a.cols = 64;
    fa_status status = g_bf16_forward(&a, 0);
    if (memory_wait(place)) tap_bail("%s", memory_wait(place));
    for (int i = 0; i < 2; i++) {
        memory_get(place, y[i], to + (size_t)i * (size_t)stride * 2, sizeof y[i]);
        for (int j = 0; j < 64; j++) {
            double v = number_load(x[i], j, FA_BF16);
            worst = fmax(worst, matrix_error(number_load(y[i], j, FA_BF16), activation(0, v) * v, 2e-6, FA_BF16));
        }
    }
    tap_ok(status == FA_OK && worst <= 1, "rows that are 2^31 elements apart (%.2f of what is allowed)", worst);
    memory_delete(place, from, bytes), memory_delete(place, to, bytes);
}

/* Segments, of any size of matrix: each column of each row is in exactly one, and none is longer than it may be. Equally long ones are found
 * by fewer steps, too. */
static void segments(rng *r) {
    int tiled = 1, fits = 1, same = 1, wholes = 0;
    for (int round = 0; round < 300; round++) {
        int bytes = rng_one_in(r, 2) ? 2 : 4, aligned = rng_one_in(r, 2);
        int64_t most = 1024 << rng_int(r, 0, 4), rows = 1 + (int64_t)exp(rng_uniform(r) * log(rng_one_in(r, 3) ? 1e11 : 20));
        int64_t cols = (int64_t)exp(rng_uniform(r) * log(rng_one_in(r, 3) ? 1e7 : 1e5)) + rng_int(r, 0, 1);
        fa__rows shape;
        memset(&shape, 0, sizeof shape);
        fa__segments s = fa__cut(&shape, rows, cols, bytes, aligned, most);
        fits &= shape.cols * bytes + (aligned || s.count == 1 ? 0 : 16) <= most && shape.rows == rows * s.count;
        for (int probe = 0; probe < 3; probe++) {
            int64_t row = probe == 0 ? 0 : probe == 1 ? rows - 1 : (int64_t)(rng_uniform(r) * (double)rows), next = 0;
            for (int64_t i = 0; i < s.count; i++) {
                fa__segment at = fa__segment_at(&s, row * s.count + i, shape.rows, 0);
                if (shape.even && shape.rows <= INT32_MAX) {
                    fa__segment whole = fa__segment_at(&s, row * s.count + i, shape.rows, 1);
                    same &= whole.row == at.row && whole.first == at.first && whole.cols == at.cols, wholes++;
                }
                tiled &= at.row == row && at.first == next && at.cols > 0 - (cols == 0) && at.cols <= shape.cols;
                next = at.first + at.cols;
            }
            tiled &= next == cols;
        }
        tiled &= fa__segment_at(&s, shape.rows, shape.rows, 0).cols == 0;
    }
    tap_ok(tiled, "segments cover every row once");
    tap_ok(fits, "segments are as long as they may be");
    tap_ok(same && wholes > 0, "equally long ones in few steps: %d", wholes);
}

#if defined(__CUDACC__)
/* And a block that is as large as a segment's is meant to be holds it, whatever that size is. */
static void segments_fit(rng *r) {
    int fits = 1;
    for (int round = 0; round < 3000; round++) {
        int threads = 32 << rng_int(r, 0, 4), bytes = 16 * rng_int(r, 1, 4), element = rng_one_in(r, 2) ? 2 : 4, aligned = rng_one_in(r, 2);
        int64_t cols = (int64_t)exp(rng_uniform(r) * log(1e6)) + rng_int(r, 0, 1);
        if (rng_one_in(r, 2)) cols = (cols + 63) / 64 * 64;
        fa__rows shape;
        memset(&shape, 0, sizeof shape);
        fa__cut(&shape, 3, cols, element, aligned, (int64_t)threads * bytes);
        int held = fa__rows_fit(&shape, element, aligned, bytes, threads, round % 2);
        if (!held || shape.threads * shape.teams > threads) {
            fits = 0;
            tap_note("%lld columns of %d bytes%s: no room in %d threads of %d bytes", (long long)cols, element, aligned ? ", aligned" : "", threads, bytes);
        }
    }
    tap_ok(fits, "a block of the size that segments are cut for holds one");
}
#endif

/* ---- errors ---- */

/* The call fails with a message that starts with the instance's name and has both words in it, and writes nothing. */
static void fails(problem6 *p, const kind *k, int backward, const char *first, const char *second) {
    fa_status status = (backward ? k->backward : k->forward)(&p->args, 0);
    char message[600];
    int named, untouched = 1;
    snprintf(message, sizeof message, "%s", fa_last_error());
    named = message_begins(message, k->name, backward, "") && strstr(message, first) && strstr(message, second);
    for (int m = 0; m < MATRICES; m++)
        if (is_written(m)) matrix_download(&p->m[m]), untouched &= matrix_untouched(&p->m[m]);
    if (!named) tap_note("the message does not start with the name, or lacks '%s' or '%s'", first, second);
    if (!untouched) tap_note("something was written");
    tap_ok(status == FA_ERROR_ARGUMENT && named && untouched, "error: %s", status == FA_OK ? first : message);
    delete_problem(p);
}

static void errors(rng *r) {
    const form s = plain(3, 10);
    const kind *k = &kinds[0];
    problem6 p;
    char word[64];
#define FRESH p = new_problem(k, &s, r)
    for (int backward = 0; backward < 2; backward++) {
        k = &kinds[0];
        FRESH, p.args.rows = -1, fails(&p, k, backward, "rows is -1", "0 or more");
        FRESH, p.args.cols = -2, fails(&p, k, backward, "cols is -2", "0 or more");
        FRESH, p.args.rows = 0, p.args.cols = INT64_MAX, fails(&p, k, backward, "cols is 9223372036854775807", "at most 2^48");
        FRESH, p.args.rows = (int64_t)1 << 40, p.args.cols = (int64_t)1 << 40, fails(&p, k, backward, "rows is 1099511627776", "at most 2^48");
        FRESH, p.args.threads = -1, fails(&p, k, backward, "threads is -1", "0 (all)");
        for (int m = 0; m < MATRICES; m++) {
            if (backward ? m == Y : m > Y) continue;
            snprintf(word, sizeof word, ": %s.data is NULL", names[m]);
            FRESH, of_args(&p.args, m)->data = NULL, fails(&p, k, backward, word, "(3, 10) elements");
            snprintf(word, sizeof word, ": %s.data is 0x", names[m]);
            FRESH, of_args(&p.args, m)->data = (char *)of_args(&p.args, m)->data + 2, fails(&p, k, backward, word, "aligned to 4 bytes");
            snprintf(word, sizeof word, ": %s.stride_row is -10", names[m]);
            FRESH, of_args(&p.args, m)->stride_row = -10, fails(&p, k, backward, word, "not negative");
            snprintf(word, sizeof word, ": %s.stride_row is 9", names[m]);
            if (is_written(m)) FRESH, of_args(&p.args, m)->stride_row = 9, fails(&p, k, backward, word, "written over each other");
        }
        k = &kinds[4];
        FRESH, p.args.user = NULL, fails(&p, k, backward, "user is NULL", "FA_USER_ARGS");
    }
    k = &kinds[0];
    FRESH, p.args.d_up = p.args.d_gate, fails(&p, k, 1, "d_gate.data and d_up.data are both", "two matrices");
#undef FRESH
    tap_ok(g_f32_forward(NULL, 0) == FA_ERROR_ARGUMENT && message_begins(fa_last_error(), "g_f32", 0, "args is NULL"), "error: %s", fa_last_error());
    tap_ok(g_bf16_backward(NULL, 0) == FA_ERROR_ARGUMENT && message_begins(fa_last_error(), "g_bf16", 1, "args is NULL"), "error: %s", fa_last_error());
    fa_swiglu_args zero;
    memset(&zero, 0, sizeof zero);
    tap_ok(g_f32_forward(&zero, 0) == FA_OK && g_f32_backward(&zero, 0) == FA_OK, "all-zero arguments are valid");
    zero.rows = 1000;
    tap_ok(g_f32_forward(&zero, 0) == FA_OK && g_f32_backward(&zero, 0) == FA_OK, "without columns pointers may be NULL");
    tap_ok(g_f32_workspace(&zero) == 0, "no workspace is needed");
}

/* ---- GPUs: streams, graphs, errors that were there before ---- */

#if defined(__CUDACC__)
static void streams(rng *r) {
    const kind *k = &kinds[2];
    form s = plain(6, 10000);
    problem6 p = new_problem(k, &s, r);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t launchable;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    fa_status status = g_bf16_forward(&p.args, stream), back = g_bf16_backward(&p.args, stream);
    tap_ok(cudaStreamEndCapture(stream, &graph) == cudaSuccess && status == FA_OK && back == FA_OK, "calls are captured in a graph");
    matrix_download(&p.m[Y]), matrix_download(&p.m[D_UP]);
    tap_ok(matrix_untouched(&p.m[Y]) && matrix_untouched(&p.m[D_UP]), "nothing runs during the capture");
    tap_ok(cudaGraphInstantiate(&launchable, graph, 0) == cudaSuccess && cudaGraphLaunch(launchable, stream) == cudaSuccess &&
               cudaStreamSynchronize(stream) == cudaSuccess,
           "the graph runs");
    matrix_download(&p.m[Y]), matrix_download(&p.m[D_GATE]), matrix_download(&p.m[D_UP]);
    tap_ok(forward_error(&p, k) <= 1 && backward_error(&p, k) <= 1, "and computes what the calls do");
    cudaGraphExecDestroy(launchable), cudaGraphDestroy(graph), cudaStreamDestroy(stream);

    matrix_poison(&p.m[Y]), matrix_upload(&p.m[Y]);
    cudaGetLastError();
    cudaSetDevice(9999); /* an error of the caller's own, which he has not looked at yet */
    status = g_bf16_forward(&p.args, 0);
    tap_ok(status == FA_OK && cudaPeekAtLastError() == cudaErrorInvalidDevice, "an earlier CUDA error is neither reported as ours nor cleared (%s)",
           fa_status_string(status));
    cudaGetLastError();
    matrix_download(&p.m[Y]);
    tap_ok(forward_error(&p, k) <= 1, "the call after an earlier error computes");
    delete_problem(&p);
}

static void on_the_host(rng *r) {
    const kind host = {"g_host", FA_F32, 0, g_host_forward, g_host_backward, g_host_workspace};
    form s = plain(9, 777);
    double worst = 0;
    place = MEMORY_HOST;
    tap_ok(check_rows(&host, &s, r, &worst), "an instance for the CPU beside those for the GPU (%.2f of what is allowed)", worst);
    place = MEMORY_DEVICE;
}
#endif

int main(void) {
    if (!matrix_place(&place, "swiglu")) return tap_end();
    uint64_t seed = rng_seed();
    rng r = rng_new(seed, 410);
    errors(&r);
    accuracy();
    segments(&r);
#if defined(__CUDACC__)
    segments_fit(&r);
#else
    rounding(&r);
#endif
    for (int i = 0; i < KINDS; i++) shapes(&kinds[i], seed);
    differences(&kinds[0], &r), differences(&kinds[3], &r), differences(&kinds[5], &r);
    for (int i = 0; i < KINDS; i++) special(&kinds[i], &r);
    for (int i = 0; i < 3; i++) {
        const int64_t lengths[] = {100, 3000, 40001};
        for (int c = 0; c < 3; c++) determinism(&kinds[i], lengths[c], &r);
        broadcast(&kinds[i], &r);
    }
    far_apart(&r);
#if defined(__CUDACC__)
    streams(&r);
    on_the_host(&r);
#endif
    return tap_end();
}
