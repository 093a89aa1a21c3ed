/* swiglu.c: fa/swiglu.h and fa/activation.h against float64: random shapes and layouts, gradients by finite
 * differences, special values, errors, determinism. The same source runs on the CPU and, compiled by nvcc, on the
 * GPU. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fa/activation.h>
#include <fa/fa.h>

#include "../harness/check.h"

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

/* One in which threads meet. */
FA_HOOK float meeting(const void *user, float x) {
    (void)user;
    check_meet();
    return x;
}
FA_HOOK float meeting_grad(const void *user, float x) { return meeting(user, x); }
#define FA_NAME g_meeting
#define FA_DTYPE FA_F32
#define FA_ACTIVATION meeting
#include <fa/swiglu.h>
#endif

enum { GATE, UP, Y, D_Y, D_GATE, D_UP, MATRICES };
static const char *const names[] = {"gate", "up", "y", "d_y", "d_gate", "d_up"};
static int is_written(int m) { return m == Y || m == D_GATE || m == D_UP; }
typedef struct form {
    int64_t rows, cols;
    int gap[MATRICES], tail[MATRICES], threads;
    double spread;
} form;

#define ARGS fa_swiglu_args
#define KIND_MORE int activation; /* 0: silu, 1: gelu, 2: relu, 3: swish */
#include "companion.h"

static const kind kinds[] = {{"g_f32", INSTANCE(g_f32), FA_F32, 0},   {"g_f16", INSTANCE(g_f16), FA_F16, 1},    {"g_bf16", INSTANCE(g_bf16), FA_BF16, 0},
                             {"g_relu", INSTANCE(g_relu), FA_F32, 2}, {"g_user", INSTANCE(g_user), FA_BF16, 3}, {"g_gelu", INSTANCE(g_gelu), FA_F32, 1},
                             {"g_silu", INSTANCE(g_silu), FA_F16, 0}};
enum { KINDS = 7 };

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
/* What the float computation may be away from these: some roundings of the result and of the exponent, two
 * instructions of 2^-22 on GPUs, and nothing at all for the piecewise linear one. */
static double activation_slack(int which, double x) {
    return which == 2 ? 0 : 6e-7 * fabs(activation(which, x)) + 2.5e-7 * fmin(fabs(x), 1) + 2.5e-38 * fabs(x);
}
static double derivative_slack(int which) { return which == 2 ? 0 : 1.5e-6; }

/* ---- a task ---- */

static fa_matrix *of_args(fa_swiglu_args *a, int m) {
    fa_matrix *const all[] = {&a->gate, &a->up, &a->y, &a->d_y, &a->d_gate, &a->d_up};
    return all[m];
}
static void connect(task *p) {
    for (int m = 0; m < MATRICES; m++) *of_args(&p->args, m) = p->m[m].at;
}
static task new_task(const kind *k, const form *s, rng *r) {
    task p = empty_task(k, s);
    for (int m = 0; m < MATRICES; m++) {
        p.m[m] = matrix_new(place, k->dtype, s->rows, s->cols, s->gap[m], s->tail[m], is_written(m));
        if (!is_written(m)) matrix_fill(&p.m[m], m == GATE ? s->spread : 1, r);
    }
    upload(&p);
    connect(&p);
    p.args.rows = s->rows, p.args.cols = s->cols, p.args.threads = s->threads;
    p.args.user = &user;
    return p;
}

/* The largest error of y, d_gate, d_up, where they are downloaded, as a share of what is allowed. */
static double forward_error(const task *p) {
    const kind *k = p->k;
    double worst = 0;
    for (int64_t i = 0; i < p->m[Y].rows; i++)
        for (int64_t j = 0; j < p->m[Y].cols; j++) {
            double x = matrix_get(&p->m[GATE], i, j), up = matrix_get(&p->m[UP], i, j), exact = activation(k->activation, x) * up;
            double slack = activation_slack(k->activation, x) * fabs(up) + 1.2e-7 * fabs(exact) + 1e-45;
            worst = number_worse(worst, matrix_error(matrix_get(&p->m[Y], i, j), exact, slack, k->dtype));
        }
    return worst;
}
static double backward_error(const task *p) {
    const kind *k = p->k;
    double worst = 0;
    for (int64_t i = 0; i < p->m[Y].rows; i++)
        for (int64_t j = 0; j < p->m[Y].cols; j++) {
            double x = matrix_get(&p->m[GATE], i, j), up = matrix_get(&p->m[UP], i, j), d_y = matrix_get(&p->m[D_Y], i, j);
            double d_up = activation(k->activation, x) * d_y, d_gate = d_y * up * derivative(k->activation, x);
            double slack_up = activation_slack(k->activation, x) * fabs(d_y) + 1.2e-7 * fabs(d_up) + 1e-45;
            double slack_gate = derivative_slack(k->activation) * fabs(d_y * up) + 1.8e-7 * fabs(d_gate) + 1e-45;
            worst = number_worse(worst, matrix_error(matrix_get(&p->m[D_UP], i, j), d_up, slack_up, k->dtype));
            worst = number_worse(worst, matrix_error(matrix_get(&p->m[D_GATE], i, j), d_gate, slack_gate, k->dtype));
        }
    return worst;
}

static form plain(int64_t rows, int64_t cols) {
    form s;
    memset(&s, 0, sizeof s);
    s.rows = rows, s.cols = cols, s.spread = 3;
    return s;
}
static form random_form(rng *r) {
    form s = random_size(12, 6000, 60000, r);
    for (int m = 0; m < MATRICES; m++) random_gap(&s, m, r);
    often_alike(&s, r); /* and often without gaps, which makes one row of all */
    if (rng_one_in(r, 3)) memset(s.gap, 0, sizeof s.gap);
    s.threads = rng_int(r, 0, 3);
    s.spread = rng_one_in(r, 4) ? 30 : 3;
    return s;
}

#if !defined(__CUDACC__)
/* Every 16-bit pattern times 64 others, exactly a float each: the result is that float, rounded to nearest even, bit
 * for bit, with ties, subnormal numbers and overflow; or some NaN. Few rows stay in the caches, many are written
 * past them. */
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
    const char *isa;
    for (int set = 0; (isa = instruction_set(set)) != NULL; set++) {
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
    free(gate), free(up), free(y);
}
#endif

#if !defined(__CUDACC__)
/* Kernels of rows use as many threads as they are asked for. */
static void threads_asked_for(void) {
    enum { ROWS = 500, COLS = 1000 };
    static const int asked[] = {1, 2, 3, 5};
    static float in[ROWS * COLS], out[2][ROWS * COLS];
    fa_swiglu_args a;
    memset(&a, 0, sizeof a);
    a.gate = a.up = a.d_y = fa_matrix_of(in, COLS), a.y = a.d_gate = fa_matrix_of(out[0], COLS), a.d_up = fa_matrix_of(out[1], COLS);
    a.rows = ROWS, a.cols = COLS;
    for (int i = 0; i < 8; i++) {
        a.threads = asked[i / 2];
        check_meet_begin(a.threads);
        const fa_status status = i % 2 ? g_meeting_backward(&a, 0) : g_meeting_forward(&a, 0);
        tap_ok(status == FA_OK && check_met() == a.threads, "%s: %d threads are asked for, and %d meet", i % 2 ? "backward" : "forward", a.threads,
               check_met());
    }
}
#endif

static void shapes(const kind *k, uint64_t seed) {
    static const int64_t nasty[] = {SHORT_LENGTHS, LONGER_LENGTHS, 16385, 32769, 50257};
    rng r = rng_new(seed, 400 + (uint64_t)(k - kinds));
    tally t = new_tally(k, &r);
    for (int set = 0; (t.isa = instruction_set(set)) != NULL; set++) {
        for (size_t i = 0; i < sizeof nasty / sizeof nasty[0]; i++) {
            form s = plain(nasty[i] < 1000 ? 9 : 2, nasty[i]);
            check(&t, s), check(&t, spaced(s, 3, 5));
        }
        check_one_gap(&t, 8192);
        tell(&t, "lengths around every limit");
        check_random(&t, 8);
        tell(&t, "random shapes");
    }
    check(&t, plain(0, 7)), check(&t, plain(5, 0));
    tell_shortly(&t, "no rows, no columns");
    form many = plain(70000, 3);
    check(&t, many);
    many.gap[Y] = many.gap[D_UP] = 2;
    check(&t, many), check(&t, plain(3, 800000));
    /* 8 MB of halves, which go past the caches, in rows that begin anywhere in a line */
    if (place == MEMORY_HOST && k->dtype != FA_F32) check(&t, plain(4090, 1029));
    check(&t, plain(2048, 1)), check(&t, plain(2048, 3)), check(&t, plain(2048, 7)); /* odd columns without gaps, which fill segments of a GPU */
    tell_shortly(&t, "many rows, long rows");
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
                if (sign) below[which] = number_worse(below[which], error);
                else above[which] = number_worse(above[which], error / (exact + 1e-37));
                error = fabs((double)(which ? fa_gelu_grad(NULL, x) : fa_silu_grad(NULL, x)) - derivative(which, (double)x));
                slope[which] = number_worse(slope[which], error);
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
    task p = new_task(k, &s, r);
    run(k, &p.args);
    matrix_download(&p.m[D_GATE]), matrix_download(&p.m[D_UP]);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 37; j++) {
            double x = matrix_get(&p.m[GATE], i, j), up = matrix_get(&p.m[UP], i, j), w = matrix_get(&p.m[D_Y], i, j);
            double by_gate = w * up * (activation(k->activation, x + step) - activation(k->activation, x - step)) / (2 * step);
            double by_up = w * activation(k->activation, x) * ((up + step) - (up - step)) / (2 * step);
            worst = number_worse(worst, fabs(by_gate - matrix_get(&p.m[D_GATE], i, j))), worst = number_worse(worst, fabs(by_up - matrix_get(&p.m[D_UP], i, j)));
        }
    tap_ok(worst < 3e-5, "%s: finite differences (largest difference %.2g)", k->name, worst);
    delete_task(&p);
}

/* ---- special values: an element that is one leaves the others alone ---- */

static void special(const kind *k, rng *r) {
    static const double values[] = {NAN, INFINITY, 0.0, -0.0, 200, -200, 1e4, -1e4};
    form s = plain(3, 200);
    task p = new_task(k, &s, r);
    for (int j = 0; j < 64; j++) {
        matrix_set(&p.m[GATE], 0, 3 * j, values[j % 8]);
        if (j % 8 != 1) matrix_set(&p.m[UP], 1, 3 * j, values[j / 8]);
        if (j % 8 != 1) matrix_set(&p.m[D_Y], 2, 3 * j, values[j / 8]);
    }
    upload(&p);
    run(k, &p.args);
    download(&p);
    double error = forward_error(&p), back = 0;
    /* The derivative at infinity is infinity minus itself in part. */
    for (int j = 0; j < 64; j++) matrix_set(&p.m[GATE], 0, 3 * j, values[j % 8] > 1e5 ? 1 : matrix_get(&p.m[GATE], 0, 3 * j));
    matrix_upload(&p.m[GATE]);
    run(k, &p.args);
    download(&p);
    back = backward_error(&p);
    tap_ok(error <= 1 && back <= 1, "%s: NaN, infinities, extremes (%.2f and %.2f of what is allowed)", k->name, error, back);
    delete_task(&p);
}

/* ---- the same bits: every time, in any company, with any number of threads, in place ---- */

static void upload_inputs(task *p) {
    for (int m = 0; m < MATRICES; m++)
        if (!is_written(m)) matrix_upload(&p->m[m]);
}
static void determinism(const kind *k, int64_t cols, rng *r) {
    form s = plain(40, cols);
    task p = new_task(k, &s, r), q = other_results(&p, 5, 1); /* not in one row, and aligned otherwise */
    int threads = 1, in_place = 1;
    p.args.threads = 1;
    run(k, &p.args);
    download_results(&p);
    for (int i = 0; i < 4; i++) threads &= same_again(&p, &q, some_threads(i));
    tell_columns(threads, &p, EVERY_TIME ", " ANY_THREADS ", in any layout");
    run_rows(&q);
    tell_columns(same_results(&p, &q), &p, BY_ITSELF);
    /* y in the place of gate and of up; d_gate and d_up in those of two of gate, up, d_y. */
    static const int pairs[][2] = {{GATE, UP}, {UP, GATE}, {D_Y, UP}, {UP, D_Y}, {GATE, D_Y}, {D_Y, GATE}};
    for (int c = 0; c < 6; c++) {
        fa_swiglu_args a = p.args;
        a.y = *of_args(&a, c % 2 ? GATE : UP);
        must(k->forward(&a, 0));
        matrix result = p.m[c % 2 ? GATE : UP];
        result.host = q.m[Y].host; /* a buffer that is not smaller */
        matrix_download(&result);
        in_place &= same(&p.m[Y], &result);
        upload_inputs(&p);
        a = p.args;
        a.d_gate = *of_args(&a, pairs[c][0]), a.d_up = *of_args(&a, pairs[c][1]);
        must(k->backward(&a, 0));
        for (int side = 0; side < 2; side++) {
            result = p.m[pairs[c][side]];
            result.host = q.m[Y].host;
            matrix_download(&result);
            in_place &= same(&p.m[side ? D_UP : D_GATE], &result);
        }
        upload_inputs(&p);
    }
    tell_columns(in_place, &p, IN_PLACE);
    delete_results(&q);
    delete_task(&p);
}

/* ---- sizes ---- */

static void far_apart(rng *r) {
    void *from = memory_new(place, FAR_BYTES), *to = memory_new(place, FAR_BYTES);
    matrix x = matrix_new(place, FA_BF16, 2, 64, 0, 0, 0), y = matrix_new(place, FA_BF16, 2, 64, 0, 0, 1);
    double worst = 0;
    fa_swiglu_args a;
    memset(&a, 0, sizeof a);
    matrix_fill(&x, 1, r);
    far_put(from, &x);
    a.gate.data = a.up.data = from, a.y.data = to, a.gate.stride_row = a.up.stride_row = a.y.stride_row = FAR, a.rows = 2, a.cols = 64;
    fa_status status = g_bf16_forward(&a, 0);
    far_get(&y, to, FAR);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 64; j++) {
            double v = matrix_get(&x, i, j);
            worst = number_worse(worst, matrix_error(matrix_get(&y, i, j), activation(0, v) * v, 2e-6, FA_BF16));
        }
    tap_ok(status == FA_OK && worst <= 1, "rows that are 2^31 elements apart (%.2f of what is allowed)", worst);
    matrix_delete(&x), matrix_delete(&y);
    memory_delete(place, from, FAR_BYTES), memory_delete(place, to, FAR_BYTES);
}

/* Segments, of any size of matrix: each column of each row is in exactly one, and none is longer than it may be.
 * Equally long ones are found by fewer steps, too. */
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

static void errors(rng *r) {
    const form s = plain(3, 10);
    const kind *k = &kinds[0];
    task p;
    for (int backward = 0; backward < 2; backward++) {
        k = &kinds[0];
        sizes_fail(k, s, backward, r);
        FRESH, p.args.threads = -1, fails(&p, backward, "threads is -1", "0 (all)");
        for (int m = 0; m < MATRICES; m++)
            if (backward ? m != Y : m <= Y) matrix_fails(k, s, backward, m, 1, is_written(m), r);
        k = &kinds[4];
        FRESH, p.args.user = NULL, fails(&p, backward, "user is NULL", "FA_USER_ARGS");
    }
    k = &kinds[0];
    FRESH, p.args.d_up = p.args.d_gate, fails(&p, 1, "d_gate.data and d_up.data are both", "two matrices");
    fails_without_args(&kinds[0], 0), fails_without_args(&kinds[2], 1);
    fa_swiglu_args zero;
    memset(&zero, 0, sizeof zero);
    tap_ok(succeeds(k, &zero), "all-zero arguments are valid");
    zero.rows = 1000;
    tap_ok(succeeds(k, &zero), "without columns pointers may be NULL");
    tap_ok(k->workspace(&zero) == 0, "no workspace is needed");
}

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
    threads_asked_for();
#endif
    for (int i = 0; i < KINDS; i++) shapes(&kinds[i], seed);
    differences(&kinds[0], &r), differences(&kinds[3], &r), differences(&kinds[5], &r);
    for (int i = 0; i < KINDS; i++) special(&kinds[i], &r);
    for (int i = 0; i < 3; i++) {
        const int64_t lengths[] = {100, 3000, 40001};
        for (int c = 0; c < 3; c++) determinism(&kinds[i], lengths[c], &r);
        broadcast(&kinds[i], plain(5, 300), &r);
    }
    far_apart(&r);
#if defined(__CUDACC__)
    streams(&kinds[2], plain(6, 10000), "", 0, &r);
    const kind host = {"g_host", INSTANCE(g_host), FA_F32, 0};
    on_the_host(&host, plain(9, 777), &r);
#endif
    return tap_end();
}
