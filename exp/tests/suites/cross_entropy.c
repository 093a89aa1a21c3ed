/* cross_entropy.c: fa/cross_entropy.h against float64: random shapes, layouts and options, gradients by finite differences,
 * special values and targets, errors, determinism. The same source runs on the CPU and, compiled by nvcc, on the GPU. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <fa/fa.h>

#include "../harness/check.h"
#include "../harness/matrix.h"
#include "../harness/number.h"
#include "../harness/tap.h"

#define FA_NAME c_f32
#define FA_DTYPE FA_F32
#include <fa/cross_entropy.h>

#define FA_NAME c_f16
#define FA_DTYPE FA_F16
#define FA_API FA_EXTERN
#include <fa/cross_entropy.h>

#define FA_NAME c
#define FA_DTYPE FA_BF16
#define FA_SUB _bf16
#include <fa/cross_entropy.h>
#undef FA_NAME
#undef FA_DTYPE

#if defined(__CUDACC__)
/* An instance for the CPU beside those for the GPU. */
#define FA_NAME c_host
#define FA_DTYPE FA_F32
#define FA_ARCH FA_CPU
#include <fa/cross_entropy.h>
#endif

typedef fa_status call(const fa_cross_entropy_args *args, fa_stream stream);
typedef struct kind {
    const char *name;
    int dtype;
    call *forward, *backward;
    size_t (*workspace)(const fa_cross_entropy_args *args);
} kind;
static const kind kinds[] = {{"c_f32", FA_F32, c_f32_forward, c_f32_backward, c_f32_workspace},
                             {"c_f16", FA_F16, c_f16_forward, c_f16_backward, c_f16_workspace},
                             {"c_bf16", FA_BF16, c_bf16_forward, c_bf16_backward, c_bf16_workspace}};
enum { KINDS = 3 };

static memory_place place;

/* ---- the reference, a row at a time ---- */

typedef struct options {
    double smoothing, z_loss, cap;
    int ignore; /* as the kernel is given it */
} options;
static int ignored(const options *o, int target) { return target == (o->ignore ? o->ignore : -100); }
static int valid(int target, int64_t cols) { return target >= 0 && target < cols; }

/* What the float computation of a z may be away from it, apart from its own rounding. */
static double cap_slack(const options *o) { return o->cap > 0 ? 4e-7 * o->cap : 0; }

static void capped(const double *x, double *z, int64_t cols, const options *o) {
    for (int64_t j = 0; j < cols; j++) z[j] = o->cap > 0 ? o->cap * tanh(x[j] / o->cap) : x[j];
}
/* The logarithm of the sum of exponentials, in two parts: the largest, and the rest. */
static double lse_row(const double *z, int64_t cols, double *largest) {
    double sum = 0;
    *largest = -INFINITY;
    for (int64_t j = 0; j < cols; j++) *largest = fmax(*largest, z[j]);
    for (int64_t j = 0; j < cols; j++) sum += exp(z[j] - (*largest == -INFINITY ? 0 : *largest));
    return log(sum);
}
/* The loss, and how far a computation in float may be from it. */
static double loss_row(const double *z, int64_t cols, int target, const options *o, double *slack) {
    double largest, rest = lse_row(z, cols, &largest), lse = largest + rest, mean = 0, size = 0;
    *slack = 0;
    if (ignored(o, target)) return 0;
    if (!valid(target, cols)) return NAN;
    for (int64_t j = 0; j < cols; j++) mean += z[j] / (double)cols, size += fabs(z[j]) / (double)cols;
    double nll = largest - z[target] + rest;
    double loss = (o->smoothing > 0 ? (1 - o->smoothing) * nll + o->smoothing * (largest - mean + rest) : nll) + (o->z_loss > 0 ? o->z_loss * lse * lse : 0);
    *slack = 1.5e-6 + 2.5e-7 * fabs(largest - z[target]) + 2 * cap_slack(o) + 2e-7 * fabs(loss);
    if (o->smoothing > 0) *slack += o->smoothing * (1e-6 * size + 3e-7 * fabs(largest - mean));
    if (o->z_loss > 0) *slack += o->z_loss * fabs(lse) * (3e-6 + 5e-7 * fabs(lse) + 2 * cap_slack(o));
    if (!isfinite(*slack)) *slack = 0;
    return loss;
}
static void gradient_row(const double *z, double lse, double *d, double *slack, int64_t cols, int target, double d_loss, const options *o) {
    for (int64_t j = 0; j < cols; j++) {
        double p = exp(z[j] - lse), weight = o->z_loss > 0 ? 1 + 2 * o->z_loss * lse : 1, even = o->smoothing / (double)cols;
        double slope = o->cap > 0 ? 1 - z[j] / o->cap * (z[j] / o->cap) : 1, hit = j == target ? 1 - o->smoothing : 0;
        double inner = p * weight - even - hit, size = p * fabs(weight) * (1.5e-6 + 2.5e-7 * (p > 0 ? fabs(z[j] - lse) : 0) + cap_slack(o)) + 3e-7 * (even + hit) + 2.5e-38 * fabs(weight);
        d[j] = ignored(o, target) ? 0 : !valid(target, cols) ? NAN : d_loss * inner * slope;
        slack[j] = fabs(d_loss) * (size * (slope + (o->cap > 0 ? 1e-6 : 0)) + (o->cap > 0 ? 1.2e-6 * fabs(inner) : 0)) + 2.5e-7 * fabs(d[j]);
        if (!isfinite(slack[j]) || ignored(o, target)) slack[j] = 0;
    }
}

/* ---- a problem: all that both directions read and write ---- */

typedef struct form {
    int64_t rows, cols;
    int gap[2], tail[2]; /* logits, d_logits */
    options o;
    int weights, threads; /* whether there is a d_loss */
    double spread;
} form;

static const char *describe(const kind *k, const form *s) {
    static char text[300];
    snprintf(text, sizeof text, "%s rows=%lld cols=%lld gaps=%d,%d tails=%d,%d smoothing=%g z_loss=%g softcap=%g ignore=%d d_loss=%d threads=%d", k->name,
             (long long)s->rows, (long long)s->cols, s->gap[0], s->gap[1], s->tail[0], s->tail[1], s->o.smoothing, s->o.z_loss, s->o.cap,
             s->o.ignore, s->weights, s->threads);
    return text;
}

typedef struct problem5 {
    matrix logits, d_logits, targets, loss, lse, d_loss; /* the last four have one row; targets are ints in it */
    fa_cross_entropy_args args;
} problem5;

static int get_target(const problem5 *p, int64_t row) {
    int target;
    memcpy(&target, p->targets.host + p->targets.front + 4 * (size_t)row, 4);
    return target;
}
static void set_target(problem5 *p, int64_t row, int target) { memcpy(p->targets.host + p->targets.front + 4 * (size_t)row, &target, 4); }

static int any_target(int64_t cols, int ignore, rng *r) {
    static const int wrong[] = {-1, INT_MIN, INT_MAX, -100, -16};
    int last = cols > 0 ? (int)cols - 1 : 0, which = rng_int(r, 0, 23);
    if (which == 0) return ignore ? ignore : -100;
    if (which == 1) return wrong[rng_int(r, 0, 4)];
    if (which == 2) return (int)cols;
    return which < 6 ? 0 : which < 9 ? last : rng_int(r, 0, last);
}
static void upload(problem5 *p) {
    matrix *const all[] = {&p->logits, &p->d_logits, &p->targets, &p->loss, &p->lse, &p->d_loss};
    for (int i = 0; i < 6; i++) matrix_upload(all[i]);
}
static void download(problem5 *p) {
    matrix *const all[] = {&p->logits, &p->d_logits, &p->targets, &p->loss, &p->lse, &p->d_loss};
    for (int i = 0; i < 6; i++) matrix_download(all[i]);
}
static int intact(const problem5 *p) {
    return matrix_intact(&p->logits) && matrix_intact(&p->d_logits) && matrix_intact(&p->targets) && matrix_intact(&p->loss) &&
           matrix_intact(&p->lse) && matrix_intact(&p->d_loss);
}
static problem5 new_problem(const kind *k, const form *s, rng *r) {
    problem5 p;
    memset(&p, 0, sizeof p);
    p.logits = matrix_new(place, k->dtype, s->rows, s->cols, s->gap[0], s->tail[0], 0);
    p.d_logits = matrix_new(place, k->dtype, s->rows, s->cols, s->gap[1], s->tail[1], 1);
    p.targets = matrix_new(place, FA_F32, 1, s->rows, 0, 0, 0);
    p.loss = matrix_new(place, FA_F32, 1, s->rows, 0, 0, 1);
    p.lse = matrix_new(place, FA_F32, 1, s->rows, 0, 0, 1);
    p.d_loss = matrix_new(place, FA_F32, 1, s->rows, 0, 0, 0);
    matrix_fill(&p.logits, s->spread, r), matrix_fill(&p.d_loss, 1, r);
    for (int64_t i = 0; i < s->rows; i++) set_target(&p, i, any_target(s->cols, s->o.ignore, r));
    upload(&p);
    p.args.logits = p.logits.at, p.args.d_logits = p.d_logits.at;
    p.args.targets = (const int *)p.targets.at.data, p.args.loss = (float *)p.loss.at.data, p.args.lse = (float *)p.lse.at.data;
    p.args.d_loss = s->weights ? (const float *)p.d_loss.at.data : NULL;
    p.args.rows = s->rows, p.args.cols = s->cols, p.args.threads = s->threads;
    p.args.label_smoothing = (float)s->o.smoothing, p.args.z_loss = (float)s->o.z_loss, p.args.softcap = (float)s->o.cap, p.args.ignore_index = s->o.ignore;
    return p;
}
static void delete_problem(problem5 *p) {
    matrix_delete(&p->logits), matrix_delete(&p->d_logits), matrix_delete(&p->targets), matrix_delete(&p->loss), matrix_delete(&p->lse), matrix_delete(&p->d_loss);
}
static void run(const kind *k, const fa_cross_entropy_args *a) {
    if (k->forward(a, 0) != FA_OK || k->backward(a, 0) != FA_OK) tap_bail("%s", fa_last_error());
}

/* The largest errors of the downloaded loss and lse, and of d_logits from the lse that was computed, as shares of what is
 * allowed. The options as the kernel has them: floats. */
static double errors_of(const problem5 *p, const form *s, double *back) {
    const options o = {(double)(float)s->o.smoothing, (double)(float)s->o.z_loss, (double)(float)s->o.cap, s->o.ignore};
    double worst = 0, slack, *x = (double *)malloc(sizeof(double) * (size_t)(4 * s->cols + 1)), *z = x + s->cols, *d = z + s->cols, *slacks = d + s->cols;
    *back = 0;
    for (int64_t i = 0; i < s->rows; i++) {
        for (int64_t j = 0; j < s->cols; j++) x[j] = matrix_get(&p->logits, i, j);
        capped(x, z, s->cols, &o);
        double loss = loss_row(z, s->cols, get_target(p, i), &o, &slack), largest, rest = lse_row(z, s->cols, &largest), lse = largest + rest, got = matrix_get(&p->lse, 0, i);
        worst = fmax(worst, matrix_error(matrix_get(&p->loss, 0, i), loss, slack, FA_F32));
        if (o.smoothing == 0 && o.z_loss == 0 && matrix_get(&p->loss, 0, i) < 0) worst = INFINITY;
        worst = fmax(worst, matrix_error(got, lse, 1.5e-6 + 1.2e-7 * fabs(isfinite(lse) ? lse : 0) + cap_slack(&o), FA_F32));
        gradient_row(z, got, d, slacks, s->cols, get_target(p, i), s->weights ? matrix_get(&p->d_loss, 0, i) : 1, &o);
        for (int64_t j = 0; j < s->cols; j++) *back = fmax(*back, matrix_error(matrix_get(&p->d_logits, i, j), d[j], slacks[j], p->d_logits.dtype));
    }
    free(x);
    return worst;
}

/* One shape in both directions; 1 if all is well, else 0 after a note. */
static int check_rows(const kind *k, const form *s, rng *r, double *worst) {
    problem5 p = new_problem(k, s, r);
    double error = INFINITY, error_back = INFINITY;
    tap_context("%s", describe(k, s));
    fa_status forward = k->forward(&p.args, 0), backward = k->backward(&p.args, 0);
    download(&p);
    int clean = intact(&p);
    if (forward == FA_OK && backward == FA_OK) error = errors_of(&p, s, &error_back);
    else tap_note("%s: %s", describe(k, s), fa_last_error());
    delete_problem(&p);
    *worst = fmax(*worst, fmax(error, error_back));
    if (error <= 1 && error_back <= 1 && clean) return 1;
    tap_note("%s: errors of %.3g and %.3g of what is allowed; around the matrices %s", describe(k, s), error, error_back,
             clean ? "nothing was written" : "something was written");
    return 0;
}

static form plain(int64_t rows, int64_t cols) {
    form s;
    memset(&s, 0, sizeof s);
    s.rows = rows, s.cols = cols, s.spread = 3, s.weights = 1;
    return s;
}
static void random_options(form *s, rng *r) {
    s->o.smoothing = rng_one_in(r, 2) ? 0 : rng_one_in(r, 4) ? 1 : 0.1;
    s->o.z_loss = rng_one_in(r, 2) ? 0 : 1e-3;
    s->o.cap = rng_one_in(r, 2) ? 0 : rng_one_in(r, 2) ? 2 : rng_one_in(r, 2) ? 30 : 1e4;
    s->o.ignore = rng_one_in(r, 2) ? 0 : rng_int(r, -9, 3);
    s->weights = rng_int(r, 0, 1);
}
static form random_form(rng *r) {
    form s = plain(rng_int(r, 1, 12), 0);
    s.cols = (int64_t)exp(rng_uniform(r) * log(rng_one_in(r, 8) ? 60000.0 : 6000.0));
    if (rng_one_in(r, 2)) s.cols = (s.cols + 7) / 8 * 8;
    if (s.cols < 100) s.rows = rng_int(r, 1, 300);
    for (int i = 0; i < 2; i++) {
        s.gap[i] = rng_one_in(r, 2) ? 0 : rng_one_in(r, 2) ? 8 * rng_int(r, 1, 3) : rng_int(r, 1, 20);
        s.tail[i] = rng_one_in(r, 2) ? 0 : rng_int(r, 1, 20);
    }
    if (rng_one_in(r, 2)) s.gap[1] = s.gap[0], s.tail[1] = s.tail[0]; /* the fast way for odd rows */
    random_options(&s, r);
    s.threads = rng_int(r, 0, 3);
    s.spread = rng_one_in(r, 4) ? 30 : 3;
    return s;
}

static void shapes(const kind *k, uint64_t seed) {
    /* Around the limits of every way to take a row: lanes, a warp, a block, a cluster, segments. */
    static const int64_t nasty[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 256, 257, 511, 513, 1023, 1024, 1025,
                                    2047, 2049, 4095, 4096, 4097, 8191, 8192, 8193, 16383, 16384, 16385, 32000, 32769, 50257, 65537};
    static const int64_t huge[] = {128256, 131075, 262143, 262145, 500001, 524288, 600011};
    const char *rounds = getenv("FA_ROUNDS");
    double worst = 0;
    int passed = 1;
    rng r = rng_new(seed, 500 + (uint64_t)k->dtype);
    for (int set = 0; set < (place == MEMORY_HOST ? 3 : 1); set++) {
        const char *isa = place == MEMORY_HOST ? check_instruction_set(set) : "GPU";
        for (size_t i = 0; i < sizeof nasty / sizeof nasty[0]; i++) {
            form s = plain(nasty[i] < 1000 ? 9 : 2, nasty[i]);
            passed &= check_rows(k, &s, &r, &worst);
            random_options(&s, &r);
            for (int t = 0; t < 2; t++) s.gap[t] = 3, s.tail[t] = 5;
            passed &= check_rows(k, &s, &r, &worst);
        }
        for (int64_t cols = 1024; cols <= 8192; cols *= 2) /* segments are whole, but rows of one matrix begin anywhere */
            for (int t = 0; t < 2; t++) {
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
        tap_ok(passed, "%s, %s: random shapes and options (worst error %.2f of what is allowed)", k->name, isa, worst);
        passed = 1, worst = 0;
    }
    if (place == MEMORY_HOST) check_instruction_set(0);
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        form s = plain(2, huge[i]);
        random_options(&s, &r);
        passed &= check_rows(k, &s, &r, &worst);
    }
    tap_ok(passed, "%s: long rows (worst error %.2f of what is allowed)", k->name, worst);
    passed = 1, worst = 0;
    for (int rows = 0; rows < 2; rows++) {
        form s = plain(rows ? 50 : 0, rows ? 0 : 7);
        passed &= check_rows(k, &s, &r, &worst);
    }
    tap_ok(passed, "%s: no rows, no classes: lse is -inf and the loss NaN, or 0 where it is ignored", k->name);
    form many = plain(70000, 3), streamed = plain(4090, 1029);
    passed = check_rows(k, &many, &r, &worst);
    if (place == MEMORY_HOST && k->dtype != FA_F32) passed &= check_rows(k, &streamed, &r, &worst); /* 8 MB of halves, which go past the caches */
    tap_ok(passed, "%s: many rows", k->name);
}

/* ---- gradients by finite differences, in double ---- */

static void differences(options o, rng *r) {
    const double step = 1e-5;
    form s = plain(3, 37);
    double x[37], z[37], worst = 0, slack;
    s.o = o;
    problem5 p = new_problem(&kinds[0], &s, r);
    for (int i = 0; i < 3; i++) set_target(&p, i, 17 * i);
    upload(&p);
    run(&kinds[0], &p.args);
    download(&p);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 37; j++) {
            double loss[2] = {0, 0};
            for (int side = 0; side < 2; side++) {
                for (int c = 0; c < 37; c++) x[c] = matrix_get(&p.logits, i, c) + (c == j ? (side ? step : -step) : 0);
                capped(x, z, 37, &o);
                loss[side] = matrix_get(&p.d_loss, 0, i) * loss_row(z, 37, 17 * i, &o, &slack);
            }
            worst = fmax(worst, fabs((loss[1] - loss[0]) / (2 * step) - matrix_get(&p.d_logits, i, j)));
        }
    tap_ok(worst < 3e-5, "finite differences: smoothing=%g z_loss=%g softcap=%g (largest difference %.2g)", o.smoothing, o.z_loss, o.cap, worst);
    delete_problem(&p);
}

/* ---- special values ---- */

/* Rows of `cols`: some -inf; all -inf; a NaN; +inf; the extremes; equal ones; a target of no weight; NaN and infinity where
 * the target is ignored; a target that is no class. */
static void special(const kind *k, int64_t cols, rng *r) {
    form s = plain(9, cols);
    double largest = k->dtype == FA_F16 ? 65504 : 1e38;
    random_options(&s, r);
    if (cols % 2) s.o.smoothing = s.o.cap = 0;
    s.o.ignore = 0;
    if (largest > 1e10) s.o.z_loss = 0;                 /* its square is no float */
    if (largest > 1e10 && s.o.smoothing > 0) largest = 1e30; /* nor the sum of many of them */
    problem5 p = new_problem(k, &s, r);
    for (int64_t j = 0; j < cols; j++) {
        if (j % 3 != 1) matrix_set(&p.logits, 0, j, -INFINITY);
        matrix_set(&p.logits, 1, j, -INFINITY);
        if (j == cols / 2) matrix_set(&p.logits, 2, j, NAN);
        if (j == cols - 1) matrix_set(&p.logits, 3, j, INFINITY);
        matrix_set(&p.logits, 4, j, j % 2 ? largest : -largest);
        matrix_set(&p.logits, 5, j, largest);
        matrix_set(&p.logits, 6, j, j == cols - 1 ? -300 : -INFINITY); /* one is left: the last, far below 0 */
        matrix_set(&p.logits, 7, j, j % 2 ? NAN : INFINITY);
    }
    for (int i = 0; i < 9; i++) set_target(&p, i, i == 7 ? -100 : i == 8 ? (int)cols + 1 : i == 4 ? 0 : 1);
    matrix_set(&p.d_loss, 0, 7, NAN);
    upload(&p);
    run(k, &p.args);
    download(&p);
    double back, error = errors_of(&p, &s, &back);
    tap_ok(error <= 1 && back <= 1, "%s: infinities, NaN, extremes, targets that are none (%.2f and %.2f of what is allowed)", describe(k, &s), error, back);
    delete_problem(&p);
}

/* Numbers about as large as those from which on the exponents are computed otherwise: 10^6 / log2(e), and many times that. */
static void large(const kind *k, int64_t cols, rng *r) {
    static const double sizes[] = {6.9e5, -6.9e5, 6.94e5, -6.94e5, 3e6, -3e6, 2e9, -2e9};
    form s = plain(9, cols);
    s.spread = 1e5; /* of the last row: some of its elements are near, and some are not */
    problem5 p = new_problem(k, &s, r);
    for (int i = 0; i < 8; i++) {
        double at = sizes[i], apart = fabs(at) * (k->dtype == FA_BF16 ? 0x1p-8 : 0x1p-23); /* about what lies between neighbours */
        for (int64_t j = 0; j < cols; j++) matrix_set(&p.logits, i, j, at + rng_int(r, -6, 0) * apart);
    }
    for (int i = 0; i < 9; i++) set_target(&p, i, rng_int(r, 0, (int)cols - 1));
    upload(&p);
    run(k, &p.args);
    download(&p);
    double back, error = errors_of(&p, &s, &back);
    tap_ok(error <= 1 && back <= 1, "%s, %lld columns: large numbers (%.2f and %.2f of what is allowed)", k->name, (long long)cols, error, back);
    delete_problem(&p);
}

/* One number behind many that are much smaller, by so much that a float exponential relative to them is infinite, or wraps around. */
static void lonely(const kind *k, int64_t cols, rng *r) {
    static const double heights[] = {12, 20, 60, 89, 95, 110, 150, 200, 300};
    form s = plain(18, cols);
    problem5 p = new_problem(k, &s, r);
    /* near the end, or among many others that are looked at with it */
    for (int i = 0; i < 18; i++) matrix_set(&p.logits, i, i < 9 ? cols - 2 : cols * 7 / 8, heights[i % 9]), set_target(&p, i, 1);
    for (int set = 0; set < (place == MEMORY_HOST ? 3 : 1); set++) {
        const char *isa = place == MEMORY_HOST ? check_instruction_set(set) : "GPU";
        upload(&p);
        run(k, &p.args);
        download(&p);
        double back, error = errors_of(&p, &s, &back);
        tap_ok(error <= 1 && back <= 1, "%s, %s, %lld columns: a lonely large number (%.2f and %.2f of what is allowed)", k->name, isa,
               (long long)cols, error, back);
    }
    if (place == MEMORY_HOST) check_instruction_set(0);
    delete_problem(&p);
}

/* ---- the same bits: every time, in any company, with any number of threads, in place ---- */

static int same(const matrix *a, const matrix *b) {
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) {
            double u = matrix_get(a, i, j), v = matrix_get(b, i, j);
            if (memcmp(&u, &v, sizeof u) && !(isnan(u) && isnan(v))) return 0;
        }
    return 1;
}
static int same_results(const problem5 *p, problem5 *q) {
    matrix_download(&q->loss), matrix_download(&q->lse), matrix_download(&q->d_logits);
    return same(&p->loss, &q->loss) && same(&p->lse, &q->lse) && same(&p->d_logits, &q->d_logits);
}
static void again(problem5 *q) {
    matrix *const all[] = {&q->loss, &q->lse, &q->d_logits};
    for (int i = 0; i < 3; i++) matrix_poison(all[i]), matrix_upload(all[i]);
}
static void determinism(const kind *k, int64_t cols, rng *r) {
    enum { ROWS = 40 };
    form s = plain(ROWS, cols);
    s.o.smoothing = 0.1, s.o.z_loss = 1e-3;
    problem5 p = new_problem(k, &s, r), q = p;
    int threads = 1;
    q.loss = matrix_new(place, FA_F32, 1, ROWS, 0, 0, 1), q.lse = matrix_new(place, FA_F32, 1, ROWS, 0, 0, 1);
    q.d_logits = matrix_new(place, k->dtype, ROWS, cols, 0, 0, 1);
    p.args.threads = 1;
    run(k, &p.args);
    download(&p);
    q.args = p.args, q.args.loss = (float *)q.loss.at.data, q.args.lse = (float *)q.lse.at.data, q.args.d_logits = q.d_logits.at;
    for (int t = 0; t < 4; t++) {
        q.args.threads = t == 0 ? 1 : t == 1 ? 2 : t == 2 ? 7 : 0;
        again(&q);
        run(k, &q.args);
        threads &= same_results(&p, &q);
    }
    tap_ok(threads, "%s, %lld columns: the same bits every time, with any number of threads", k->name, (long long)cols);
    again(&q);
    for (int i = 0; i < ROWS; i++) {
        fa_cross_entropy_args one = q.args;
        fa_matrix *all[] = {&one.logits, &one.d_logits};
        for (int m = 0; m < 2; m++) all[m]->data = (char *)all[m]->data + i * all[m]->stride_row * number_bytes(k->dtype);
        one.targets += i, one.loss += i, one.lse += i, one.d_loss += i;
        one.rows = 1;
        run(k, &one);
    }
    tap_ok(same_results(&p, &q), "%s, %lld columns: a row by itself has the bits that it has among others", k->name, (long long)cols);
    again(&q);
    q.args.d_logits = q.args.logits;
    run(k, &q.args);
    matrix_download(&q.logits);
    tap_ok(same(&p.d_logits, &q.logits), "%s, %lld columns: the gradient in the place of the logits", k->name, (long long)cols);
    matrix_delete(&q.loss), matrix_delete(&q.lse), matrix_delete(&q.d_logits);
    delete_problem(&p);
}

/* What may be absent. */
static void absent(const kind *k, rng *r) {
    form s = plain(5, 300);
    problem5 p = new_problem(k, &s, r);
    double back;
    p.args.lse = NULL;
    fa_status first = k->forward(&p.args, 0);
    p.args.lse = (float *)p.lse.at.data, p.args.loss = NULL;
    fa_status second = k->forward(&p.args, 0);
    p.args.logits.stride_row = 0; /* the first row five times */
    fa_status third = k->backward(&p.args, 0);
    p.args.logits.stride_row = p.logits.stride;
    fa_status fourth = k->backward(&p.args, 0);
    download(&p);
    double error = errors_of(&p, &s, &back);
    tap_ok(first == FA_OK && second == FA_OK && third == FA_OK && fourth == FA_OK && error <= 1 && back <= 1, "%s: loss and lse by themselves", k->name);
    p.args.loss = (float *)p.loss.at.data;
    p.args.logits.stride_row = 0;
    run(k, &p.args);
    download(&p);
    for (int i = 1; i < 5; i++)
        for (int j = 0; j < 300; j++) matrix_set(&p.logits, i, j, matrix_get(&p.logits, 0, j));
    error = errors_of(&p, &s, &back);
    tap_ok(error <= 1 && back <= 1, "%s: a stride of 0 repeats a row (%.2f and %.2f of what is allowed)", k->name, error, back);
    delete_problem(&p);
}

/* Two rows that are more than 2^31 elements apart: untouched pages between them take no memory on the host. */
static void far_apart(rng *r) {
    const int64_t stride = ((int64_t)1 << 31) + 5;
    const size_t bytes = (size_t)(stride + 64) * 2;
    form s = plain(2, 64);
    problem5 p = new_problem(&kinds[2], &s, r);
    unsigned char *from = (unsigned char *)memory_new(place, bytes);
    uint16_t row[64];
    double back;
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 64; j++) number_store(row, j, FA_BF16, matrix_get(&p.logits, i, j));
        memory_put(place, from + (size_t)i * (size_t)stride * 2, row, sizeof row);
    }
    p.args.logits.data = from, p.args.logits.stride_row = stride, p.args.d_logits = p.args.logits;
    run(&kinds[2], &p.args);
    download(&p);
    for (int i = 0; i < 2; i++) {
        memory_get(place, row, from + (size_t)i * (size_t)stride * 2, sizeof row);
        for (int j = 0; j < 64; j++) matrix_set(&p.d_logits, i, j, number_load(row, j, FA_BF16));
    }
    double error = errors_of(&p, &s, &back);
    tap_ok(error <= 1 && back <= 1, "rows that are 2^31 elements apart (%.2f and %.2f of what is allowed)", error, back);
    memory_delete(place, from, bytes);
    delete_problem(&p);
}

/* ---- errors ---- */

/* The call fails with a message that starts with the instance's name and has both words in it, and writes nothing. */
static void fails(problem5 *p, const kind *k, int backward, const char *first, const char *second) {
    fa_status status = (backward ? k->backward : k->forward)(&p->args, 0);
    char message[600];
    snprintf(message, sizeof message, "%s", fa_last_error());
    int named = message_begins(message, k->name, backward, "") && strstr(message, first) && strstr(message, second);
    download(p);
    int untouched = matrix_untouched(&p->loss) && matrix_untouched(&p->lse) && matrix_untouched(&p->d_logits);
    if (!named) tap_note("the message does not start with the name, or lacks '%s' or '%s'", first, second);
    if (!untouched) tap_note("something was written");
    tap_ok(status == FA_ERROR_ARGUMENT && named && untouched, "error: %s", status == FA_OK ? first : message);
    delete_problem(p);
}

static void errors(rng *r) {
    const form s = plain(3, 10);
    const kind *k = &kinds[0];
    problem5 p;
#define FRESH p = new_problem(k, &s, r)
    for (int backward = 0; backward < 2; backward++) {
        FRESH, p.args.rows = -1, fails(&p, k, backward, "rows is -1", "0 or more");
        FRESH, p.args.cols = -2, fails(&p, k, backward, "cols is -2", "0 or more");
        FRESH, p.args.rows = 0, p.args.cols = INT64_MAX, fails(&p, k, backward, "cols is 9223372036854775807", "at most 2^48");
        FRESH, p.args.rows = (int64_t)1 << 40, p.args.cols = (int64_t)1 << 40, fails(&p, k, backward, "rows is 1099511627776", "at most 2^48");
        FRESH, p.args.threads = -1, fails(&p, k, backward, "threads is -1", "0 (all)");
        FRESH, p.args.label_smoothing = -0.5f, fails(&p, k, backward, "label_smoothing is -0.5", "between 0 and 1");
        FRESH, p.args.label_smoothing = 1.5f, fails(&p, k, backward, "label_smoothing is 1.5", "between 0 and 1");
        FRESH, p.args.label_smoothing = NAN, fails(&p, k, backward, "label_smoothing is nan", "between 0 and 1");
        FRESH, p.args.z_loss = -1, fails(&p, k, backward, "z_loss is -1", "0 or more");
        FRESH, p.args.z_loss = INFINITY, fails(&p, k, backward, "z_loss is inf", "0 or more");
        FRESH, p.args.softcap = -30, fails(&p, k, backward, "softcap is -30", "0 means none");
        FRESH, p.args.softcap = 2e30f, fails(&p, k, backward, "softcap is 2e+30", "between 1e-30 and 1e+30");
        if (place != MEMORY_HOST) k = &kinds[2], FRESH, p.args.softcap = 2e4f, fails(&p, k, backward, "softcap is 20000", "between 1e-30 and 10000"), k = &kinds[0];
        FRESH, p.args.softcap = NAN, fails(&p, k, backward, "softcap is nan", "0 means none");
        FRESH, p.args.logits.data = NULL, fails(&p, k, backward, "logits.data is NULL", "(3, 10) elements");
        FRESH, p.args.logits.data = (char *)p.args.logits.data + 2, fails(&p, k, backward, "logits.data is 0x", "aligned to 4 bytes");
        FRESH, p.args.logits.stride_row = -10, fails(&p, k, backward, "logits.stride_row is -10", "not negative");
        FRESH, p.args.targets = NULL, fails(&p, k, backward, "targets is NULL", "3 ints");
        FRESH, p.args.targets = (const int *)((const char *)p.args.targets + 1), fails(&p, k, backward, "targets is 0x", "aligned to 4 bytes");
        FRESH, p.args.lse = (float *)((char *)p.args.lse + 2), fails(&p, k, backward, "lse is 0x", "aligned to 4 bytes");
    }
    FRESH, p.args.loss = (float *)((char *)p.args.loss + 2), fails(&p, k, 0, "loss is 0x", "aligned to 4 bytes");
    FRESH, p.args.loss = NULL, p.args.lse = NULL, fails(&p, k, 0, "loss and lse are NULL", "3 floats");
    FRESH, p.args.loss = (float *)p.args.logits.data, fails(&p, k, 0, "has a place in logits", "memory of its own");
    FRESH, p.args.lse = (float *)(void *)((char *)p.args.d_logits.data + 4), fails(&p, k, 1, "has a place in d_logits", "memory of its own");
    FRESH, p.args.loss = p.args.lse, fails(&p, k, 0, "share memory", "two arrays");
    FRESH, p.args.loss = (float *)(void *)(uintptr_t)p.args.targets, fails(&p, k, 0, "targets, ", "two arrays");
    FRESH, p.args.lse = p.args.loss + 1, fails(&p, k, 0, "and lse, ", "two arrays");
    FRESH, p.args.d_logits = p.args.logits, p.args.d_logits.stride_row++, fails(&p, k, 1, "d_logits is written in place of logits", "the same is needed");
    FRESH, p.args.logits.stride_row = INT64_MAX, fails(&p, k, 0, "logits.stride_row is 9223372036854775807", "more than 2^48 elements");
    FRESH, p.args.lse = NULL, fails(&p, k, 1, "lse is NULL", "3 floats");
    FRESH, p.args.d_loss = (const float *)((const char *)p.args.d_loss + 2), fails(&p, k, 1, "d_loss is 0x", "aligned to 4 bytes");
    FRESH, p.args.d_logits.data = NULL, fails(&p, k, 1, "d_logits.data is NULL", "(3, 10) elements");
    FRESH, p.args.d_logits.stride_row = 9, fails(&p, k, 1, "d_logits.stride_row is 9", "written over each other");
#undef FRESH
    tap_ok(c_f32_forward(NULL, 0) == FA_ERROR_ARGUMENT && message_begins(fa_last_error(), "c_f32", 0, "args is NULL"), "error: %s", fa_last_error());
    tap_ok(c_bf16_backward(NULL, 0) == FA_ERROR_ARGUMENT && message_begins(fa_last_error(), "c_bf16", 1, "args is NULL"), "error: %s", fa_last_error());
    fa_cross_entropy_args zero;
    memset(&zero, 0, sizeof zero);
    tap_ok(c_f32_forward(&zero, 0) == FA_OK && c_f32_backward(&zero, 0) == FA_OK, "all-zero arguments are valid");
    tap_ok(c_f32_workspace(&zero) == 0, "no workspace is needed");
}

/* ---- GPUs: streams, graphs, errors that were there before ---- */

#if defined(__CUDACC__)
static void streams(int64_t cols, rng *r) {
    form s = plain(6, cols);
    problem5 p = new_problem(&kinds[2], &s, r);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t launchable;
    double back;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    fa_status status = c_bf16_forward(&p.args, stream), second = c_bf16_backward(&p.args, stream);
    tap_ok(cudaStreamEndCapture(stream, &graph) == cudaSuccess && status == FA_OK && second == FA_OK, "%lld columns: calls are captured in a graph", (long long)cols);
    download(&p);
    tap_ok(matrix_untouched(&p.loss) && matrix_untouched(&p.d_logits), "nothing runs during the capture");
    tap_ok(cudaGraphInstantiate(&launchable, graph, 0) == cudaSuccess && cudaGraphLaunch(launchable, stream) == cudaSuccess &&
               cudaStreamSynchronize(stream) == cudaSuccess,
           "the graph runs");
    download(&p);
    tap_ok(errors_of(&p, &s, &back) <= 1 && back <= 1, "and computes what the calls do");
    cudaGraphExecDestroy(launchable), cudaGraphDestroy(graph), cudaStreamDestroy(stream);

    matrix_poison(&p.loss), matrix_upload(&p.loss);
    cudaGetLastError();
    cudaSetDevice(9999); /* an error of the caller's own, which he has not looked at yet */
    status = c_bf16_forward(&p.args, 0);
    tap_ok(status == FA_OK && cudaPeekAtLastError() == cudaErrorInvalidDevice, "an earlier CUDA error is neither reported as ours nor cleared (%s)",
           fa_status_string(status));
    cudaGetLastError();
    download(&p);
    tap_ok(errors_of(&p, &s, &back) <= 1, "the call after an earlier error computes");
    delete_problem(&p);
}

static void on_the_host(rng *r) {
    const kind host = {"c_host", FA_F32, c_host_forward, c_host_backward, c_host_workspace};
    form s = plain(9, 777);
    double worst = 0;
    place = MEMORY_HOST;
    tap_ok(check_rows(&host, &s, r, &worst), "an instance for the CPU beside those for the GPU (%.2f of what is allowed)", worst);
    place = MEMORY_DEVICE;
}
#endif

int main(void) {
    if (!matrix_place(&place, "cross_entropy")) return tap_end();
    uint64_t seed = rng_seed();
    rng r = rng_new(seed, 510);
    errors(&r);
    for (int i = 0; i < KINDS; i++) shapes(&kinds[i], seed);
    for (int i = 0; i < 8; i++) {
        const options o = {i & 1 ? 0.2 : 0, i & 2 ? 0.05 : 0, i & 4 ? 2.5 : 0, 0};
        differences(o, &r);
    }
    for (int i = 0; i < KINDS; i++) {
        const int64_t lengths[] = {101, 100, 3001, 40001, 40002, 300001, 600001};
        for (int c = 0; c < 7; c++) special(&kinds[i], lengths[c], &r);
        for (int c = 0; c < 4 && kinds[i].dtype != FA_F16; c++) large(&kinds[i], lengths[c], &r);
        for (int c = 0; c < 4; c++) lonely(&kinds[i], lengths[c], &r);
        for (int c = 0; c < 6; c += 2) determinism(&kinds[i], lengths[c], &r);
        absent(&kinds[i], &r);
    }
    far_apart(&r);
#if defined(__CUDACC__)
    streams(1000, &r);
    streams(200000, &r);
    on_the_host(&r);
#endif
    return tap_end();
}
