/* row_softmax.c: fa/row_softmax.h against float64: random shapes and layouts, gradients by finite differences, special
 * values, errors, determinism. The same source runs on the CPU and, compiled by nvcc, on the GPU. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <fa/fa.h>

#include "../harness/check.h"
#include "../harness/matrix.h"
#include "../harness/number.h"
#include "../harness/tap.h"

#define FA_NAME s_f32
#define FA_DTYPE FA_F32
#include <fa/row_softmax.h>

#define FA_NAME s_f16
#define FA_DTYPE FA_F16
#define FA_API FA_EXTERN
#include <fa/row_softmax.h>

#define FA_NAME s
#define FA_DTYPE FA_BF16
#define FA_SUB _bf16
#include <fa/row_softmax.h>
#undef FA_NAME
#undef FA_DTYPE

#if defined(__CUDACC__)
/* An instance for the CPU beside those for the GPU. */
#define FA_NAME s_host
#define FA_DTYPE FA_F32
#define FA_ARCH FA_CPU
#include <fa/row_softmax.h>
#endif

typedef fa_status call(const fa_row_softmax_args *args, fa_stream stream);
typedef struct kind {
    const char *name;
    int dtype;
    call *forward, *backward;
    size_t (*workspace)(const fa_row_softmax_args *args);
} kind;
static const kind kinds[] = {{"s_f32", FA_F32, s_f32_forward, s_f32_backward, s_f32_workspace},
                             {"s_f16", FA_F16, s_f16_forward, s_f16_backward, s_f16_workspace},
                             {"s_bf16", FA_BF16, s_bf16_forward, s_bf16_backward, s_bf16_workspace}};
enum { KINDS = 3 };

static memory_place place;

/* ---- the reference, a row at a time ---- */

static void softmax_row(const double *x, double *y, int64_t cols, double temperature, int log_) {
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < cols; j++) largest = fmax(largest, x[j]);
    for (int64_t j = 0; j < cols; j++) sum += exp((x[j] - largest) / temperature);
    for (int64_t j = 0; j < cols; j++)
        y[j] = log_ ? (x[j] - largest) / temperature - log(sum) : exp((x[j] - largest) / temperature) / sum;
}
static void gradient_row(const double *y, const double *d_y, double *d_x, double *slack, int64_t cols, double temperature, int log_) {
    double sum = 0, size = 0;
    for (int64_t j = 0; j < cols; j++) sum += log_ ? d_y[j] : y[j] * d_y[j], size += fabs(log_ ? d_y[j] : y[j] * d_y[j]);
    for (int64_t j = 0; j < cols; j++) {
        double weight = log_ ? exp(y[j]) : y[j];
        d_x[j] = (log_ ? d_y[j] - weight * sum : weight * (d_y[j] - sum)) / temperature;
        /* fp32: some roundings of each term, an exponential of 2^-22, and one below 2^-125 may be 0. */
        double terms = (log_ ? fabs(d_y[j]) : weight * fabs(d_y[j])) + weight * size * (1 + (log_ ? fabs(y[j]) : 0));
        slack[j] = (1.5e-6 * terms + 2.5e-38 * (1 + size)) / temperature;
    }
}

/* ---- a problem: all matrices of both directions ---- */

typedef struct form {
    int64_t rows, cols;
    int gap[4], tail[4]; /* x, y, d_y, d_x */
    float temperature;
    int log, threads;
    double spread;
} form;

static const char *describe(const kind *k, const form *s) {
    static char text[300];
    snprintf(text, sizeof text, "%s rows=%lld cols=%lld gaps=%d,%d,%d,%d tails=%d,%d,%d,%d temperature=%g log=%d threads=%d", k->name,
             (long long)s->rows, (long long)s->cols, s->gap[0], s->gap[1], s->gap[2], s->gap[3], s->tail[0], s->tail[1], s->tail[2],
             s->tail[3], (double)s->temperature, s->log, s->threads);
    return text;
}

typedef struct problem4 {
    matrix x, y, d_y, d_x;
    fa_row_softmax_args args;
} problem4;

static problem4 new_problem(const kind *k, const form *s, rng *r) {
    problem4 p;
    memset(&p, 0, sizeof p);
    p.x = matrix_new(place, k->dtype, s->rows, s->cols, s->gap[0], s->tail[0], 0);
    p.y = matrix_new(place, k->dtype, s->rows, s->cols, s->gap[1], s->tail[1], 1);
    p.d_y = matrix_new(place, k->dtype, s->rows, s->cols, s->gap[2], s->tail[2], 0);
    p.d_x = matrix_new(place, k->dtype, s->rows, s->cols, s->gap[3], s->tail[3], 1);
    matrix_fill(&p.x, s->spread, r);
    matrix_fill(&p.d_y, 1, r);
    matrix_upload(&p.x), matrix_upload(&p.y), matrix_upload(&p.d_y), matrix_upload(&p.d_x);
    p.args.x = p.x.at, p.args.y = p.y.at, p.args.d_y = p.d_y.at, p.args.d_x = p.d_x.at;
    p.args.rows = s->rows, p.args.cols = s->cols;
    p.args.temperature = s->temperature, p.args.log = s->log, p.args.threads = s->threads;
    return p;
}
static void delete_problem(problem4 *p) {
    matrix_delete(&p->x), matrix_delete(&p->y), matrix_delete(&p->d_y), matrix_delete(&p->d_x);
}

/* The largest error of y as a share of what is allowed; slack of the float computation: roundings of (x - largest) /
 * temperature, absolute in the exponent, an exponential or logarithm of some 2^-22, and a sum of hundreds of terms in a
 * chain (1.5e-6). */
static double forward_error(const problem4 *p, const form *s) {
    double temperature = s->temperature == 0 ? 1 : (double)s->temperature, worst = 0;
    double *x = (double *)malloc(sizeof(double) * (size_t)(2 * s->cols + 1)), *y = x + s->cols;
    for (int64_t i = 0; i < s->rows; i++) {
        double largest = -INFINITY;
        for (int64_t j = 0; j < s->cols; j++) x[j] = matrix_get(&p->x, i, j), largest = fmax(largest, x[j]);
        softmax_row(x, y, s->cols, temperature, s->log);
        for (int64_t j = 0; j < s->cols; j++) {
            double distance = isfinite(x[j]) ? fabs(x[j] - largest) / temperature : 0;
            double slack = s->log ? 1.5e-6 + 2.5e-7 * distance + 2.5e-7 * fabs(isfinite(y[j]) ? y[j] : 0) : y[j] * (1.5e-6 + 2.5e-7 * distance) + 2e-38;
            worst = fmax(worst, matrix_error(matrix_get(&p->y, i, j), y[j], slack, p->y.dtype));
        }
    }
    free(x);
    return worst;
}
/* The same of d_x, from the y that was computed. */
static double backward_error(const problem4 *p, const form *s) {
    double temperature = s->temperature == 0 ? 1 : (double)s->temperature, worst = 0;
    size_t n = (size_t)s->cols + 1;
    double *y = (double *)malloc(sizeof(double) * 4 * n), *d_y = y + n, *d_x = d_y + n, *slack = d_x + n;
    for (int64_t i = 0; i < s->rows; i++) {
        for (int64_t j = 0; j < s->cols; j++) y[j] = matrix_get(&p->y, i, j), d_y[j] = matrix_get(&p->d_y, i, j);
        gradient_row(y, d_y, d_x, slack, s->cols, temperature, s->log);
        for (int64_t j = 0; j < s->cols; j++)
            worst = fmax(worst, matrix_error(matrix_get(&p->d_x, i, j), d_x[j], slack[j], p->d_x.dtype));
    }
    free(y);
    return worst;
}

/* One shape in both directions; 1 if all is well, else 0 after a note. */
static int check_rows(const kind *k, const form *s, rng *r, double *worst) {
    problem4 p = new_problem(k, s, r);
    fa_status forward, backward;
    double error = INFINITY, error_back = INFINITY;
    int intact = 0;
    tap_context("%s", describe(k, s));
    forward = k->forward(&p.args, 0);
    backward = k->backward(&p.args, 0);
    matrix_download(&p.x), matrix_download(&p.y), matrix_download(&p.d_y), matrix_download(&p.d_x);
    if (forward == FA_OK && backward == FA_OK) {
        error = forward_error(&p, s);
        error_back = backward_error(&p, s);
        intact = matrix_intact(&p.x) && matrix_intact(&p.y) && matrix_intact(&p.d_y) && matrix_intact(&p.d_x);
    } else {
        tap_note("%s: %s", describe(k, s), fa_last_error());
    }
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
    for (int i = 0; i < 4; i++) {
        s.gap[i] = rng_one_in(r, 2) ? 0 : rng_one_in(r, 2) ? 8 * rng_int(r, 1, 3) : rng_int(r, 1, 20);
        s.tail[i] = rng_one_in(r, 2) ? 0 : rng_int(r, 1, 20);
    }
    /* Often all alike, which is the fast way for odd rows. */
    if (rng_one_in(r, 2))
        for (int i = 1; i < 4; i++) s.gap[i] = s.gap[0], s.tail[i] = s.tail[0];
    s.temperature = rng_one_in(r, 2) ? 0 : (float)exp(2 * rng_normal(r) * 0.5);
    s.log = rng_one_in(r, 2);
    s.threads = rng_int(r, 0, 3);
    s.spread = rng_one_in(r, 4) ? 30 : 3;
    return s;
}

static void shapes(const kind *k, uint64_t seed) {
    /* Around the limits of every way to hold a row: lanes, a warp, a block, a block's shared memory, a cluster's, nothing. */
    static const int64_t nasty[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 256, 257, 511, 513, 1023, 1024, 1025,
                                    2047, 2049, 4095, 4096, 4097, 8191, 8192, 8193, 16383, 16384, 16385, 32768, 32769, 50257, 65537};
    static const int64_t huge[] = {131072, 131075, 262144, 500001};
    const char *rounds = getenv("FA_ROUNDS");
    double worst = 0;
    int passed = 1;
    rng r = rng_new(seed, 300 + (uint64_t)k->dtype);
    for (int set = 0; set < (place == MEMORY_HOST ? 3 : 1); set++) {
        const char *isa = place == MEMORY_HOST ? check_instruction_set(set) : "GPU";
        for (size_t i = 0; i < sizeof nasty / sizeof nasty[0]; i++) {
            form s = plain(nasty[i] < 1000 ? 9 : 2, nasty[i]);
            s.log = (int)(i + (size_t)set) % 2;
            passed &= check_rows(k, &s, &r, &worst);
            s.log = !s.log;
            for (int t = 0; t < 4; t++) s.gap[t] = 3, s.tail[t] = 5;
            passed &= check_rows(k, &s, &r, &worst);
        }
        for (int64_t cols = 1; cols < 700; cols += 1 + cols / 3) { /* all begin on boundaries, and many end between them */
            form s = plain(9, cols);
            for (int t = 0; t < 4; t++) s.gap[t] = s.tail[t] = (int)((8 - cols % 8) % 8);
            passed &= check_rows(k, &s, &r, &worst);
        }
        for (int64_t cols = 1024; cols <= 32768; cols *= 2) /* they fill their threads, but rows of one matrix begin anywhere */
            for (int t = 0; t < 4; t++) {
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
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        form s = plain(2, huge[i]);
        s.log = (int)i % 2;
        passed &= check_rows(k, &s, &r, &worst);
    }
    tap_ok(passed, "%s: long rows (worst error %.2f of what is allowed)", k->name, worst);
    passed = 1, worst = 0;
    for (int rows = 0; rows < 2; rows++) {
        form s = plain(rows ? 5 : 0, rows ? 0 : 7);
        passed &= check_rows(k, &s, &r, &worst);
    }
    tap_ok(passed, "%s: no rows, no columns", k->name);
    {
        form s = plain(70000, 3), streamed = plain(4090, 1029);
        passed = check_rows(k, &s, &r, &worst);
        if (place == MEMORY_HOST && k->dtype != FA_F32) passed &= check_rows(k, &streamed, &r, &worst); /* 8 MB of halves, which go past the caches */
        tap_ok(passed, "%s: many rows", k->name);
    }
}

/* ---- gradients by finite differences: of L = the sum of w y, in double ---- */

static void differences(int log_, float temperature, rng *r) {
    form s = plain(2, 37);
    double x[37], y[37], worst = 0, t = temperature == 0 ? 1 : (double)temperature;
    s.log = log_, s.temperature = temperature;
    problem4 p = new_problem(&kinds[0], &s, r);
    if (s_f32_forward(&p.args, 0) != FA_OK || s_f32_backward(&p.args, 0) != FA_OK) tap_bail("%s", fa_last_error());
    matrix_download(&p.d_x);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 37; j++) {
            const double step = 1e-5;
            double loss[2] = {0, 0};
            for (int side = 0; side < 2; side++) {
                for (int c = 0; c < 37; c++) x[c] = matrix_get(&p.x, i, c) + (c == j ? (side ? step : -step) : 0);
                softmax_row(x, y, 37, t, log_);
                for (int c = 0; c < 37; c++) loss[side] += matrix_get(&p.d_y, i, c) * y[c];
            }
            worst = fmax(worst, fabs((loss[1] - loss[0]) / (2 * step) - matrix_get(&p.d_x, i, j)));
        }
    tap_ok(worst < 3e-5, "finite differences: log=%d temperature=%g (largest difference %.2g)", log_, (double)temperature, worst);
    delete_problem(&p);
}

/* ---- special values ---- */

/* Rows of `cols`: some -inf; all -inf; a NaN; +inf; the extremes of float; equal ones; in both directions as in the
 * unfused computation. */
static void special(const kind *k, int64_t cols, int log_, rng *r) {
    form s = plain(7, cols);
    problem4 p;
    double worst = 0, largest = k->dtype == FA_F16 ? 65504 : 1e38;
    s.log = log_;
    p = new_problem(k, &s, r);
    for (int64_t j = 0; j < cols; j++) {
        if (j % 3 != 1) matrix_set(&p.x, 0, j, -INFINITY);
        matrix_set(&p.x, 1, j, -INFINITY);
        if (j == cols / 2) matrix_set(&p.x, 2, j, NAN);
        if (j == cols - 1) matrix_set(&p.x, 3, j, INFINITY);
        matrix_set(&p.x, 4, j, j % 2 ? largest : -largest);
        matrix_set(&p.x, 5, j, largest);
        matrix_set(&p.x, 6, j, j == cols - 1 ? -300 : -INFINITY); /* one is left: the last, far below 0 */
    }
    matrix_upload(&p.x);
    if (k->forward(&p.args, 0) != FA_OK) tap_bail("%s", fa_last_error());
    matrix_download(&p.y);
    worst = forward_error(&p, &s);
    /* A gradient that has a NaN makes all of its row one; the other rows do not notice. */
    for (int64_t j = 0; j < cols; j++)
        for (int i = 1; i < 4; i++) matrix_set(&p.y, i, j, log_ ? -log((double)cols) : 1.0 / (double)cols);
    matrix_set(&p.d_y, 2, cols / 3, NAN);
    matrix_upload(&p.y), matrix_upload(&p.d_y);
    if (k->backward(&p.args, 0) != FA_OK) tap_bail("%s", fa_last_error());
    matrix_download(&p.d_x);
    double back = backward_error(&p, &s);
    tap_ok(worst <= 1 && back <= 1, "%s, %lld columns, log=%d: infinities, NaN, extremes (%.2f and %.2f of what is allowed)", k->name,
           (long long)cols, log_, worst, back);
    delete_problem(&p);
}

/* One number behind many that are much smaller, by so much that a float exponential relative to them is infinite, or wraps around. */
static void lonely(const kind *k, int64_t cols, rng *r) {
    static const double heights[] = {12, 20, 60, 89, 95, 110, 150, 200, 300};
    form s = plain(36, cols);
    problem4 p = new_problem(k, &s, r);
    /* near the end, or among many others that are looked at with it; and where all are negative */
    for (int i = 0; i < 36; i++) {
        matrix_set(&p.x, i, i % 18 < 9 ? cols - 2 : cols * 7 / 8, heights[i % 9]);
        for (int64_t j = 0; i >= 18 && j < cols; j++) matrix_set(&p.x, i, j, matrix_get(&p.x, i, j) - 400);
    }
    for (int set = 0; set < (place == MEMORY_HOST ? 3 : 1); set++) {
        const char *isa = place == MEMORY_HOST ? check_instruction_set(set) : "GPU";
        matrix_upload(&p.x);
        if (k->forward(&p.args, 0) != FA_OK) tap_bail("%s", fa_last_error());
        matrix_download(&p.y);
        double worst = forward_error(&p, &s);
        tap_ok(worst <= 1, "%s, %s, %lld columns: a lonely large number (%.2f of what is allowed)", k->name, isa, (long long)cols, worst);
    }
    if (place == MEMORY_HOST) check_instruction_set(0);
    delete_problem(&p);
}

/* Numbers about as large as those from which on the exponents are computed otherwise: 10^6 / log2(e), and many times that. */
static void large(const kind *k, int64_t cols, rng *r) {
    static const double sizes[] = {6.9e5, -6.9e5, 6.94e5, -6.94e5, 3e6, -3e6, 2e9, -2e9};
    form s = plain(8, cols);
    problem4 p = new_problem(k, &s, r);
    for (int i = 0; i < 8; i++) {
        double at = sizes[i], apart = fabs(at) * (k->dtype == FA_BF16 ? 0x1p-8 : 0x1p-23); /* about what lies between neighbours */
        for (int64_t j = 0; j < cols; j++) matrix_set(&p.x, i, j, at + rng_int(r, -6, 0) * apart);
    }
    matrix_upload(&p.x);
    if (k->forward(&p.args, 0) != FA_OK) tap_bail("%s", fa_last_error());
    matrix_download(&p.y);
    double worst = forward_error(&p, &s);
    tap_ok(worst <= 1, "%s, %lld columns: large numbers (%.2f of what is allowed)", k->name, (long long)cols, worst);
    delete_problem(&p);
}

/* The backward where what is to be subtracted, divided by the temperature, would be infinite, but no gradient is: all weight is on the first
 * element, whose own gradient is small, and nothing of it reaches the others. */
static void steep(const kind *k, int64_t cols, int log_, rng *r) {
    form s = plain(1, cols);
    s.temperature = 1e-30f, s.log = log_;
    problem4 p = new_problem(k, &s, r);
    double worst = 0;
    for (int64_t j = 0; j < cols; j++) {
        matrix_set(&p.y, 0, j, log_ ? (j ? -300 : 0) : j == 0);
        matrix_set(&p.d_y, 0, j, j ? 0 : 1e9);
    }
    if (log_) matrix_set(&p.d_y, 0, cols - 1, -1);
    matrix_upload(&p.y), matrix_upload(&p.d_y);
    if (k->backward(&p.args, 0) != FA_OK) tap_bail("%s", fa_last_error());
    matrix_download(&p.d_x);
    for (int64_t j = log_; j < cols; j++) /* a logarithm's first gradient is what the sum's rounding leaves */
        worst = fmax(worst, matrix_error(matrix_get(&p.d_x, 0, j), log_ && j == cols - 1 ? -1e30 : 0, 1e24, k->dtype));
    tap_ok(worst <= 1, "%s, %lld columns, log=%d: a sum that is infinite divided by the temperature (%.2f of what is allowed)", k->name,
           (long long)cols, log_, worst);
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
static void determinism(const kind *k, int64_t cols, rng *r) {
    enum { ROWS = 40 };
    form s = plain(ROWS, cols);
    problem4 p = new_problem(k, &s, r), q = p;
    int again = 1, alone = 1, threads = 1, in_place = 1;
    q.y = matrix_new(place, k->dtype, ROWS, cols, 0, 0, 1), q.d_x = matrix_new(place, k->dtype, ROWS, cols, 0, 0, 1);
    p.args.threads = 1;
    if (k->forward(&p.args, 0) != FA_OK || k->backward(&p.args, 0) != FA_OK) tap_bail("%s", fa_last_error());
    matrix_download(&p.y), matrix_download(&p.d_x);
    q.args = p.args, q.args.y = q.y.at, q.args.d_x = q.d_x.at;
    for (int run = 0; run < 4; run++) {
        q.args.threads = run == 0 ? 1 : run == 1 ? 2 : run == 2 ? 7 : 0;
        matrix_poison(&q.y), matrix_poison(&q.d_x), matrix_upload(&q.y), matrix_upload(&q.d_x);
        if (k->forward(&q.args, 0) != FA_OK || k->backward(&q.args, 0) != FA_OK) tap_bail("%s", fa_last_error());
        matrix_download(&q.y), matrix_download(&q.d_x);
        *(run == 0 ? &again : &threads) &= same(&p.y, &q.y) && same(&p.d_x, &q.d_x);
    }
    /* Each row by itself. */
    matrix_poison(&q.y), matrix_poison(&q.d_x), matrix_upload(&q.y), matrix_upload(&q.d_x);
    for (int i = 0; i < ROWS; i++) {
        fa_row_softmax_args one = q.args;
        fa_matrix *all[] = {&one.x, &one.y, &one.d_y, &one.d_x};
        for (int m = 0; m < 4; m++) all[m]->data = (char *)all[m]->data + i * all[m]->stride_row * number_bytes(k->dtype);
        one.rows = 1;
        if (k->forward(&one, 0) != FA_OK || k->backward(&one, 0) != FA_OK) tap_bail("%s", fa_last_error());
    }
    matrix_download(&q.y), matrix_download(&q.d_x);
    alone = same(&p.y, &q.y) && same(&p.d_x, &q.d_x);
    /* y in the place of x, d_x in that of d_y, and in that of y. */
    q.args.y = q.args.x, q.args.d_x = q.args.d_y;
    if (k->forward(&q.args, 0) != FA_OK || k->backward(&q.args, 0) != FA_OK) tap_bail("%s", fa_last_error());
    matrix_download(&q.x), matrix_download(&q.d_y);
    in_place = same(&p.y, &q.x) && same(&p.d_x, &q.d_y);
    matrix_upload(&p.y);
    for (int64_t i = 0; i < ROWS; i++) /* d_y was overwritten: a new one, and what it gives */
        for (int64_t j = 0; j < cols; j++) matrix_set(&p.d_y, i, j, rng_normal(r));
    matrix_upload(&p.d_y);
    p.args.d_x = p.d_x.at, p.args.d_y = p.d_y.at;
    if (k->backward(&p.args, 0) != FA_OK) tap_bail("%s", fa_last_error());
    matrix_download(&p.d_x);
    p.args.d_x = p.args.y;
    if (k->backward(&p.args, 0) != FA_OK) tap_bail("%s", fa_last_error());
    matrix_download(&p.y);
    in_place &= same(&p.y, &p.d_x);
    tap_ok(again, "%s, %lld columns: the same bits every time", k->name, (long long)cols);
    tap_ok(threads, "%s, %lld columns: with any number of threads", k->name, (long long)cols);
    tap_ok(alone, "%s, %lld columns: a row by itself has the bits that it has among others", k->name, (long long)cols);
    tap_ok(in_place, "%s, %lld columns: results in the place of what is read", k->name, (long long)cols);
    matrix_delete(&q.y), matrix_delete(&q.d_x);
    delete_problem(&p);
}

/* ---- strides ---- */

static void broadcast(const kind *k, rng *r) {
    form s = plain(5, 300), one = plain(1, 300);
    problem4 p = new_problem(k, &s, r);
    double worst = 0;
    p.args.x.stride_row = p.args.d_y.stride_row = 0;
    if (k->forward(&p.args, 0) != FA_OK || k->backward(&p.args, 0) != FA_OK) tap_bail("%s", fa_last_error());
    matrix_download(&p.y), matrix_download(&p.d_x);
    for (int i = 1; i < 5; i++)
        for (int j = 0; j < 300; j++) {
            matrix_set(&p.x, i, j, matrix_get(&p.x, 0, j));
            matrix_set(&p.d_y, i, j, matrix_get(&p.d_y, 0, j));
        }
    (void)one;
    worst = fmax(forward_error(&p, &s), backward_error(&p, &s));
    tap_ok(worst <= 1, "%s: a stride of 0 repeats a row (%.2f of what is allowed)", k->name, worst);
    delete_problem(&p);
}

/* Two rows that are more than 2^31 elements apart: untouched pages between them take no memory on the host. */
static void far_apart(rng *r) {
    const int64_t stride = ((int64_t)1 << 31) + 5;
    const size_t bytes = (size_t)(stride + 64) * 2;
    unsigned char *from = (unsigned char *)memory_new(place, bytes), *to = (unsigned char *)memory_new(place, bytes);
    uint16_t x[2][64], y[2][64];
    double row[64], exact[64], worst = 0;
    fa_row_softmax_args a;
    memset(&a, 0, sizeof a);
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 64; j++) number_store(x[i], j, FA_BF16, rng_normal(r));
        memory_put(place, from + (size_t)i * (size_t)stride * 2, x[i], sizeof x[i]);
    }
    a.x.data = from, a.y.data = to, a.x.stride_row = a.y.stride_row = stride, a.rows = 2, a.cols = 64;
    fa_status status = s_bf16_forward(&a, 0);
    if (memory_wait(place)) tap_bail("%s", memory_wait(place));
    for (int i = 0; i < 2; i++) {
        memory_get(place, y[i], to + (size_t)i * (size_t)stride * 2, sizeof y[i]);
        for (int j = 0; j < 64; j++) row[j] = number_load(x[i], j, FA_BF16);
        softmax_row(row, exact, 64, 1, 0);
        for (int j = 0; j < 64; j++) worst = fmax(worst, matrix_error(number_load(y[i], j, FA_BF16), exact[j], 2e-6 * exact[j], FA_BF16));
    }
    tap_ok(status == FA_OK && worst <= 1, "rows that are 2^31 elements apart (%.2f of what is allowed)", worst);
    memory_delete(place, from, bytes), memory_delete(place, to, bytes);
}

/* ---- errors ---- */

/* The call fails with a message that starts with the instance's name and has both words in it, and writes nothing. */
static void fails(problem4 *p, const kind *k, int backward, const char *first, const char *second) {
    fa_status status = (backward ? k->backward : k->forward)(&p->args, 0);
    char message[600];
    int named, untouched;
    snprintf(message, sizeof message, "%s", fa_last_error());
    named = message_begins(message, k->name, backward, "") && strstr(message, first) && strstr(message, second);
    matrix_download(&p->y), matrix_download(&p->d_x);
    untouched = matrix_untouched(&p->y) && matrix_untouched(&p->d_x);
    if (!named) tap_note("the message does not start with the name, or lacks '%s' or '%s'", first, second);
    if (!untouched) tap_note("something was written");
    tap_ok(status == FA_ERROR_ARGUMENT && named && untouched, "error: %s", status == FA_OK ? first : message);
    delete_problem(p);
}

static void errors(rng *r) {
    const form s = plain(3, 10);
    const kind *k = &kinds[0];
    static const char *const names[] = {"x", "y", "d_y", "d_x"};
    problem4 p;
    char word[64];
#define FRESH p = new_problem(k, &s, r)
    for (int backward = 0; backward < 2; backward++) {
        FRESH, p.args.rows = -1, fails(&p, k, backward, "rows is -1", "0 or more");
        FRESH, p.args.cols = -2, fails(&p, k, backward, "cols is -2", "0 or more");
        FRESH, p.args.rows = 0, p.args.cols = INT64_MAX, fails(&p, k, backward, "cols is 9223372036854775807", "at most 2^48");
        FRESH, p.args.rows = (int64_t)1 << 40, p.args.cols = (int64_t)1 << 40, fails(&p, k, backward, "rows is 1099511627776", "at most 2^48");
        FRESH, p.args.temperature = -1, fails(&p, k, backward, "temperature is -1", "0 means 1");
        FRESH, p.args.temperature = NAN, fails(&p, k, backward, "temperature is nan", "0 means 1");
        FRESH, p.args.temperature = INFINITY, fails(&p, k, backward, "temperature is inf", "between");
        FRESH, p.args.temperature = 1e-31f, fails(&p, k, backward, "temperature is 1e-31", "between");
        FRESH, *(backward ? &p.args.d_y : &p.args.x) = (fa_matrix){(char *)(backward ? p.args.d_x : p.args.y).data + 12, 0},
            fails(&p, k, backward, "whose rows are all the same", "memory of its own");
        FRESH, p.args.log = 2, fails(&p, k, backward, "log is 2", "0 (softmax) or 1");
        FRESH, p.args.threads = -1, fails(&p, k, backward, "threads is -1", "0 (all)");
        for (int i = backward ? 1 : 0; i < (backward ? 4 : 2); i++) {
            fa_matrix *m;
            int written = i == (backward ? 3 : 1);
#define MATRIX (m = i == 0 ? &p.args.x : i == 1 ? &p.args.y : i == 2 ? &p.args.d_y : &p.args.d_x)
            snprintf(word, sizeof word, ": %s.data is NULL", names[i]);
            FRESH, MATRIX, m->data = NULL, fails(&p, k, backward, word, "(3, 10) elements");
            snprintf(word, sizeof word, ": %s.data is 0x", names[i]);
            FRESH, MATRIX, m->data = (char *)m->data + 2, fails(&p, k, backward, word, "aligned to 4 bytes");
            snprintf(word, sizeof word, ": %s.stride_row is -10", names[i]);
            FRESH, MATRIX, m->stride_row = -10, fails(&p, k, backward, word, "not negative");
            snprintf(word, sizeof word, ": %s.stride_row is 9", names[i]);
            if (written) FRESH, MATRIX, m->stride_row = 9, fails(&p, k, backward, word, "written over each other");
#undef MATRIX
        }
    }
#undef FRESH
    tap_ok(s_f32_forward(NULL, 0) == FA_ERROR_ARGUMENT && message_begins(fa_last_error(), "s_f32", 0, "args is NULL"), "error: %s", fa_last_error());
    tap_ok(s_bf16_backward(NULL, 0) == FA_ERROR_ARGUMENT && message_begins(fa_last_error(), "s_bf16", 1, "args is NULL"), "error: %s", fa_last_error());
    {
        fa_row_softmax_args zero;
        memset(&zero, 0, sizeof zero);
        tap_ok(s_f32_forward(&zero, 0) == FA_OK && s_f32_backward(&zero, 0) == FA_OK, "all-zero arguments are valid");
        zero.rows = 1000;
        tap_ok(s_f32_forward(&zero, 0) == FA_OK && s_f32_backward(&zero, 0) == FA_OK, "without columns pointers may be NULL");
        tap_ok(s_f32_workspace(&zero) == 0, "no workspace is needed");
    }
}

/* ---- GPUs: streams, graphs, errors that were there before ---- */

#if defined(__CUDACC__)
static void streams(int64_t cols, rng *r) {
    form s = plain(6, cols);
    problem4 p = new_problem(&kinds[2], &s, r);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t launchable;
    fa_status status, back;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    status = s_bf16_forward(&p.args, stream), back = s_bf16_backward(&p.args, stream);
    tap_ok(cudaStreamEndCapture(stream, &graph) == cudaSuccess && status == FA_OK && back == FA_OK, "%lld columns: calls are captured in a graph", (long long)cols);
    matrix_download(&p.y), matrix_download(&p.d_x);
    tap_ok(matrix_untouched(&p.y) && matrix_untouched(&p.d_x), "nothing runs during the capture");
    tap_ok(cudaGraphInstantiate(&launchable, graph, 0) == cudaSuccess && cudaGraphLaunch(launchable, stream) == cudaSuccess &&
               cudaStreamSynchronize(stream) == cudaSuccess,
           "the graph runs");
    matrix_download(&p.y), matrix_download(&p.d_x);
    tap_ok(forward_error(&p, &s) <= 1 && backward_error(&p, &s) <= 1, "and computes what the calls do");
    cudaGraphExecDestroy(launchable), cudaGraphDestroy(graph), cudaStreamDestroy(stream);

    matrix_poison(&p.y), matrix_upload(&p.y);
    cudaGetLastError();
    cudaSetDevice(9999); /* an error of the caller's own, which he has not looked at yet */
    status = s_bf16_forward(&p.args, 0);
    tap_ok(status == FA_OK && cudaPeekAtLastError() == cudaErrorInvalidDevice, "an earlier CUDA error is neither reported as ours nor cleared (%s)",
           fa_status_string(status));
    cudaGetLastError();
    matrix_download(&p.y);
    tap_ok(forward_error(&p, &s) <= 1, "the call after an earlier error computes");
    delete_problem(&p);
}

static void on_the_host(rng *r) {
    const kind host = {"s_host", FA_F32, s_host_forward, s_host_backward, s_host_workspace};
    form s = plain(9, 777);
    double worst = 0;
    place = MEMORY_HOST;
    tap_ok(check_rows(&host, &s, r, &worst), "an instance for the CPU beside those for the GPU (%.2f of what is allowed)", worst);
    place = MEMORY_DEVICE;
}
#endif

int main(void) {
    uint64_t seed;
    rng r;
    if (!matrix_place(&place, "row_softmax")) return tap_end();
    seed = rng_seed();
    r = rng_new(seed, 310);
    errors(&r);
    for (int i = 0; i < KINDS; i++) shapes(&kinds[i], seed);
    for (int i = 0; i < 4; i++) differences(i % 2, i < 2 ? 0 : 0.7f, &r);
    for (int i = 0; i < KINDS; i++) {
        const int64_t lengths[] = {100, 3000, 40001, 600000};
        for (int c = 0; c < 3 && kinds[i].dtype != FA_F16; c++) large(&kinds[i], lengths[c], &r);
        for (int c = 0; c < 8 && kinds[i].dtype != FA_F16; c++) steep(&kinds[i], lengths[c / 2], c % 2, &r);
        for (int c = 0; c < 4; c++) lonely(&kinds[i], lengths[c], &r);
        for (int c = 0; c < 4; c++) special(&kinds[i], lengths[c], (i + c) % 2, &r), special(&kinds[i], lengths[c], (i + c + 1) % 2, &r);
        for (int c = 0; c < 3; c++) determinism(&kinds[i], lengths[c], &r);
        determinism(&kinds[i], 70000, &r); /* threads of the CPU keep more of such a row than their caller */
        broadcast(&kinds[i], &r);
    }
    far_apart(&r);
#if defined(__CUDACC__)
    streams(1000, &r);
    streams(200000, &r);
    on_the_host(&r);
#endif
    return tap_end();
}
