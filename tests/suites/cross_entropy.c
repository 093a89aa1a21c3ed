/* cross_entropy.c: fa/cross_entropy.h against float64: random shapes, layouts and options, gradients by finite
 * differences, special values and targets, errors, determinism. The same source runs on the CPU and, compiled by
 * nvcc, on the GPU. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <limits.h>

#include <fa/fa.h>

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

enum { LOGITS, D_LOGITS, TARGETS, LOSS, LSE, D_LOSS, MATRICES }; /* the last four have one row; targets are ints in it */
static const char *const names[] = {"logits", "d_logits", "targets", "loss", "lse", "d_loss"};
typedef struct options {
    double smoothing, z_loss, cap;
    int ignore; /* as the kernel is given it */
} options;
typedef struct form {
    int64_t rows, cols;
    int gap[MATRICES], tail[MATRICES]; /* of the first two */
    options o;
    int weights, threads; /* whether there is a d_loss */
    double spread;
} form;

#define ARGS fa_cross_entropy_args
#define DESCRIBE_OPTIONS describe_options
#define MOVE_VECTORS(a, i) ((a).targets += (i), (a).loss += (i), (a).lse += (i), (a).d_loss += (i))
#include "companion.h"

static const kind kinds[] = {{"c_f32", INSTANCE(c_f32), FA_F32}, {"c_f16", INSTANCE(c_f16), FA_F16}, {"c_bf16", INSTANCE(c_bf16), FA_BF16}};
enum { KINDS = 3 };

/* ---- the reference, a row at a time ---- */

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
/* How far numbers are from one of them below 1e30, or from 0, on average: the least of that for 16 of them. */
static double spread_of(const double *z, int64_t cols) {
    double least = INFINITY;
    for (int i = 0; i <= 16; i++) {
        const double from = i < 16 ? z[i * cols / 16] : 0;
        double size = 0;
        if (!(fabs(from) < 1e30)) continue;
        for (int64_t j = 0; j < cols; j++) size += fabs(z[j] - from) / (double)cols;
        if (size < least) least = size; /* not where it is NaN */
    }
    return least;
}
/* The loss, and how far a computation in float may be from it. */
static double loss_row(const double *z, int64_t cols, int target, const options *o, double *slack) {
    double largest, rest = lse_row(z, cols, &largest), lse = largest + rest, below = 0, size = 0; /* below: the mean of what z is below the largest */
    *slack = 0;
    if (ignored(o, target)) return 0;
    if (!valid(target, cols)) return NAN;
    for (int64_t j = 0; j < cols; j++) below += (largest - z[j]) / (double)cols, size += fabs(z[j]) / (double)cols;
    double nll = largest - z[target] + rest;
    double loss = (o->smoothing > 0 ? (1 - o->smoothing) * nll + o->smoothing * (below + rest) : nll) + (o->z_loss > 0 ? o->z_loss * lse * lse : 0);
    *slack = 1.5e-6 + 2.5e-7 * fabs(largest - z[target]) + 2 * cap_slack(o) + 2e-7 * fabs(loss);
    if (o->smoothing > 0) *slack += o->smoothing * (fmin(1e-6 * size, 2e-6 * spread_of(z, cols)) + 3e-7 * below);
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

/* ---- a task ---- */

static int describe_options(const form *s, char *text, size_t bytes) {
    return snprintf(text, bytes, " smoothing=%g z_loss=%g softcap=%g ignore=%d d_loss=%d", s->o.smoothing, s->o.z_loss, s->o.cap, s->o.ignore, s->weights);
}

static int get_target(const task *p, int64_t row) {
    int target;
    memcpy(&target, p->m[TARGETS].host + p->m[TARGETS].front + 4 * (size_t)row, 4);
    return target;
}
static void set_target(task *p, int64_t row, int target) { memcpy(p->m[TARGETS].host + p->m[TARGETS].front + 4 * (size_t)row, &target, 4); }

static int any_target(int64_t cols, int ignore, rng *r) {
    static const int wrong[] = {-1, INT_MIN, INT_MAX, -100, -16};
    int last = cols > 0 ? (int)cols - 1 : 0, which = rng_int(r, 0, 23);
    if (which == 0) return ignore ? ignore : -100;
    if (which == 1) return wrong[rng_int(r, 0, 4)];
    if (which == 2) return (int)cols;
    return which < 6 ? 0 : which < 9 ? last : rng_int(r, 0, last);
}
static fa_matrix *of_args(fa_cross_entropy_args *a, int m) { return m == LOGITS ? &a->logits : m == D_LOGITS ? &a->d_logits : NULL; }
static void connect(task *p) {
    p->args.logits = p->m[LOGITS].at, p->args.d_logits = p->m[D_LOGITS].at;
    p->args.targets = (const int *)p->m[TARGETS].at.data, p->args.loss = (float *)p->m[LOSS].at.data, p->args.lse = (float *)p->m[LSE].at.data;
    p->args.d_loss = p->s.weights ? (const float *)p->m[D_LOSS].at.data : NULL;
}
static task new_task(const kind *k, const form *s, rng *r) {
    task p = empty_task(k, s);
    for (int m = 0; m < MATRICES; m++) {
        const int written = m == D_LOGITS || m == LOSS || m == LSE;
        p.m[m] = m < TARGETS ? matrix_new(place, k->dtype, s->rows, s->cols, s->gap[m], s->tail[m], written) : matrix_new(place, FA_F32, 1, s->rows, 0, 0, written);
    }
    matrix_fill(&p.m[LOGITS], s->spread, r), matrix_fill(&p.m[D_LOSS], 1, r);
    for (int64_t i = 0; i < s->rows; i++) set_target(&p, i, any_target(s->cols, s->o.ignore, r));
    upload(&p);
    connect(&p);
    p.args.rows = s->rows, p.args.cols = s->cols, p.args.threads = s->threads;
    p.args.label_smoothing = (float)s->o.smoothing, p.args.z_loss = (float)s->o.z_loss, p.args.softcap = (float)s->o.cap, p.args.ignore_index = s->o.ignore;
    return p;
}

/* The options as the kernel has them: floats. */
static options options_of(const form *s) {
    const options o = {(double)(float)s->o.smoothing, (double)(float)s->o.z_loss, (double)(float)s->o.cap, s->o.ignore};
    return o;
}
static void z_row(const task *p, int64_t row, double *z, const options *o) {
    for (int64_t j = 0; j < p->s.cols; j++) z[j] = matrix_get(&p->m[LOGITS], row, j);
    capped(z, z, p->s.cols, o);
}
/* The largest error of the loss and lse that are downloaded, as a share of what is allowed. */
static double forward_error(const task *p) {
    const int64_t cols = p->s.cols;
    const options o = options_of(&p->s);
    double worst = 0, slack, *z = (double *)malloc(sizeof(double) * (size_t)(cols + 1));
    for (int64_t i = 0; i < p->s.rows; i++) {
        z_row(p, i, z, &o);
        double loss = loss_row(z, cols, get_target(p, i), &o, &slack), largest, rest = lse_row(z, cols, &largest), lse = largest + rest;
        worst = number_worse(worst, matrix_error(matrix_get(&p->m[LOSS], 0, i), loss, slack, FA_F32));
        if (o.smoothing == 0 && o.z_loss == 0 && matrix_get(&p->m[LOSS], 0, i) < 0) worst = INFINITY;
        worst = number_worse(worst, matrix_error(matrix_get(&p->m[LSE], 0, i), lse, 1.5e-6 + 1.2e-7 * fabs(isfinite(lse) ? lse : 0) + cap_slack(&o), FA_F32));
    }
    free(z);
    return worst;
}
/* The same of d_logits, from the lse that was computed. */
static double backward_error(const task *p) {
    const int64_t cols = p->s.cols;
    const options o = options_of(&p->s);
    double worst = 0, *z = (double *)malloc(sizeof(double) * (size_t)(3 * cols + 1)), *d = z + cols, *slacks = d + cols;
    for (int64_t i = 0; i < p->s.rows; i++) {
        z_row(p, i, z, &o);
        gradient_row(z, matrix_get(&p->m[LSE], 0, i), d, slacks, cols, get_target(p, i), p->s.weights ? matrix_get(&p->m[D_LOSS], 0, i) : 1, &o);
        for (int64_t j = 0; j < cols; j++) worst = number_worse(worst, matrix_error(matrix_get(&p->m[D_LOGITS], i, j), d[j], slacks[j], p->k->dtype));
    }
    free(z);
    return worst;
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
    form s = random_size(12, 6000, 60000, r);
    random_gap(&s, LOGITS, r), random_gap(&s, D_LOGITS, r);
    often_alike(&s, r);
    random_options(&s, r);
    s.threads = rng_int(r, 0, 3);
    s.spread = rng_one_in(r, 4) ? 30 : 3;
    return s;
}

static void shapes(const kind *k, uint64_t seed) {
    static const int64_t nasty[] = {SHORT_LENGTHS, LONGER_LENGTHS, 16383, 16384, 16385, 32000, 32769, 50257, 65537}; /* and a cluster, segments */
    static const int64_t without_gaps[] = {SHORT_WITHOUT_GAPS};
    static const int64_t huge[] = {128256, 131075, 262143, 262145, 500001, 524288, 600011};
    rng r = rng_new(seed, 500 + (uint64_t)k->dtype);
    tally t = new_tally(k, &r);
    for (int set = 0; (t.isa = instruction_set(set)) != NULL; set++) {
        for (size_t i = 0; i < sizeof nasty / sizeof nasty[0]; i++) {
            form s = plain(nasty[i] < 1000 ? 9 : 2, nasty[i]);
            check(&t, s);
            random_options(&s, &r);
            check(&t, spaced(s, 3, 5));
        }
        check_one_gap(&t, 8192);
        tell(&t, "lengths around every limit");
        for (size_t i = 0; i < sizeof without_gaps / sizeof without_gaps[0]; i++) {
            form s = plain(i % 3 ? 521 : i % 2 + 1, without_gaps[i]); /* more than two thread blocks take, and one row, or two */
            check(&t, s);
            random_options(&s, &r);
            check(&t, s);
        }
        tell(&t, "short rows without gaps");
        check_random(&t, 8);
        tell(&t, "random shapes and options");
    }
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        form s = plain(2, huge[i]);
        random_options(&s, &r);
        check(&t, s);
    }
    tell(&t, "long rows");
    check(&t, plain(0, 7)), check(&t, plain(50, 0));
    tell_shortly(&t, "no rows, no classes: lse is -inf and the loss NaN, or 0 where it is ignored");
    check(&t, plain(70000, 3));
    if (place == MEMORY_HOST && k->dtype != FA_F32) check(&t, plain(4090, 1029)); /* 8 MB of halves, which go past the caches */
    tell_shortly(&t, "many rows");
}

/* ---- gradients by finite differences, in double ---- */

static void differences(options o, rng *r) {
    const double step = 1e-5;
    form s = plain(3, 37);
    double x[37], z[37], worst = 0, slack;
    s.o = o;
    task p = new_task(&kinds[0], &s, r);
    for (int i = 0; i < 3; i++) set_target(&p, i, 17 * i);
    upload(&p);
    run(&kinds[0], &p.args);
    download(&p);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 37; j++) {
            double loss[2] = {0, 0};
            for (int side = 0; side < 2; side++) {
                for (int c = 0; c < 37; c++) x[c] = matrix_get(&p.m[LOGITS], i, c) + (c == j ? (side ? step : -step) : 0);
                capped(x, z, 37, &o);
                loss[side] = matrix_get(&p.m[D_LOSS], 0, i) * loss_row(z, 37, 17 * i, &o, &slack);
            }
            worst = number_worse(worst, fabs((loss[1] - loss[0]) / (2 * step) - matrix_get(&p.m[D_LOGITS], i, j)));
        }
    tap_ok(worst < 3e-5, "finite differences: smoothing=%g z_loss=%g softcap=%g (largest difference %.2g)", o.smoothing, o.z_loss, o.cap, worst);
    delete_task(&p);
}

/* ---- special values ---- */

/* Rows of `cols`: some -inf; all -inf; a NaN; +inf; the extremes; equal ones; a target of no weight; NaN and
 * infinity where the target is ignored; a target that is no class. */
static void special(const kind *k, int64_t cols, rng *r) {
    form s = plain(9, cols);
    double largest = k->dtype == FA_F16 ? 65504 : 1e38;
    random_options(&s, r);
    if (cols % 2) s.o.smoothing = s.o.cap = 0;
    s.o.ignore = 0;
    if (largest > 1e10) s.o.z_loss = 0;                 /* its square is no float */
    if (largest > 1e10 && s.o.smoothing > 0) largest = 1e30; /* nor the sum of many of them */
    task p = new_task(k, &s, r);
    for (int64_t j = 0; j < cols; j++) {
        if (j % 3 != 1) matrix_set(&p.m[LOGITS], 0, j, -INFINITY);
        matrix_set(&p.m[LOGITS], 1, j, -INFINITY);
        if (j == cols / 2) matrix_set(&p.m[LOGITS], 2, j, NAN);
        if (j == cols - 1) matrix_set(&p.m[LOGITS], 3, j, INFINITY);
        matrix_set(&p.m[LOGITS], 4, j, j % 2 ? largest : -largest);
        matrix_set(&p.m[LOGITS], 5, j, largest);
        matrix_set(&p.m[LOGITS], 6, j, j == cols - 1 ? -300 : -INFINITY); /* one is left: the last, far below 0 */
        matrix_set(&p.m[LOGITS], 7, j, j % 2 ? NAN : INFINITY);
    }
    for (int i = 0; i < 9; i++) set_target(&p, i, i == 7 ? -100 : i == 8 ? (int)cols + 1 : i == 4 ? 0 : 1);
    matrix_set(&p.m[D_LOSS], 0, 7, NAN);
    upload(&p);
    run(k, &p.args);
    download(&p);
    double error = forward_error(&p), back = backward_error(&p);
    tap_ok(error <= 1 && back <= 1, "%s: infinities, NaN, extremes, targets that are none (%.2f and %.2f of what is allowed)", describe(k, &s), error, back);
    delete_task(&p);
}

static void large(const kind *k, int64_t cols, double smoothing, rng *r) {
    form s = plain(10, cols);
    s.spread = 1e5; /* of the last row but one: some of its elements are near, and some are not */
    s.o.smoothing = smoothing;
    task p = new_task(k, &s, r);
    set_large(&p.m[LOGITS], r);
    for (int64_t j = 0; j < cols; j++) matrix_set(&p.m[LOGITS], 9, j, j == 0 ? -1e6 : rng_normal(r)); /* the first is not like the others */
    for (int i = 0; i < 10; i++) set_target(&p, i, rng_int(r, 0, (int)cols - 1));
    upload(&p);
    run(k, &p.args);
    download(&p);
    double error = forward_error(&p), back = backward_error(&p);
    tap_ok(error <= 1 && back <= 1, "%s, %lld columns, smoothing %g: large numbers (%.2f and %.2f of what is allowed)", k->name, (long long)cols, smoothing, error, back);
    delete_task(&p);
}

/* One number behind many that are much smaller. */
static void lonely(const kind *k, int64_t cols, rng *r) {
    form s = plain(18, cols);
    task p = new_task(k, &s, r);
    /* near the end, or among many others that are looked at with it */
    for (int i = 0; i < 18; i++) matrix_set(&p.m[LOGITS], i, i < 9 ? cols - 2 : cols * 7 / 8, lonely_height(i)), set_target(&p, i, 1);
    const char *isa;
    for (int set = 0; (isa = instruction_set(set)) != NULL; set++) {
        upload(&p);
        run(k, &p.args);
        download(&p);
        double error = forward_error(&p), back = backward_error(&p);
        tap_ok(error <= 1 && back <= 1, "%s, %s, %lld columns: a lonely large number (%.2f and %.2f of what is allowed)", k->name, isa,
               (long long)cols, error, back);
    }
    delete_task(&p);
}

/* Losses far below what is added up for them, which the many small terms are a part of; and sums of logits, besides. */
static void top_heavy(const kind *k, int64_t cols, rng *r) {
    form s = plain(TOP_HEAVY, cols);
    const char *isa;
    for (int set = 0; (isa = instruction_set(set)) != NULL; set++)
        for (int smoothed = 0; smoothed < 2; smoothed++) {
            s.o.smoothing = smoothed ? 0.1 : 0;
            task p = new_task(k, &s, r);
            set_top_heavy(&p.m[LOGITS]);
            for (int i = 0; i < TOP_HEAVY; i++) set_target(&p, i, 0);
            upload(&p);
            must(k->forward(&p.args, 0));
            download(&p);
            double error = forward_error(&p);
            tap_ok(error <= 1, "%s, %s, %lld columns, smoothing %g: a few logits, and then many far below (%.2f of what is allowed)", k->name, isa, (long long)cols,
                   s.o.smoothing, error);
            delete_task(&p);
        }
}
/* A sum that is made relative to a larger logit again and again. */
static void rising(const kind *k, int64_t cols, rng *r) {
    form s = plain(1, cols);
    const char *isa;
    s.o.smoothing = 0.1;
    task p = new_task(k, &s, r);
    for (int64_t j = 0; j < cols; j++) matrix_set(&p.m[LOGITS], 0, j, rising_by(j));
    set_target(&p, 0, (int)cols - 1);
    for (int set = 0; (isa = instruction_set(set)) != NULL; set++) {
        upload(&p);
        must(k->forward(&p.args, 0));
        download(&p);
        double error = forward_error(&p);
        tap_ok(error <= 1, "%s, %s, %lld columns: logits that rise slowly (%.2f of what is allowed)", k->name, isa, (long long)cols, error);
    }
    delete_task(&p);
}

/* ---- the same bits: every time, in any company, with any number of threads, in place ---- */

/* `gap`: columns between the rows of a matrix. */
static void determinism(const kind *k, int64_t cols, int gap, rng *r) {
    form s = spaced(plain(40, cols), gap, 0);
    s.o.smoothing = 0.1, s.o.z_loss = 1e-3;
    task p = new_task(k, &s, r), q = other_results(&p, gap, 0);
    int threads = 1;
    p.args.threads = 1;
    run(k, &p.args);
    download(&p);
    for (int i = 0; i < 4; i++) threads &= same_again(&p, &q, some_threads(i));
    tell_columns(threads, &p, EVERY_TIME ", " ANY_THREADS);
    run_rows(&q);
    tell_columns(same_results(&p, &q), &p, BY_ITSELF);
    poison(&q);
    q.args.d_logits = q.args.logits;
    run(k, &q.args);
    matrix_download(&q.m[LOGITS]);
    tell_columns(same(&p.m[D_LOGITS], &q.m[LOGITS]), &p, "the gradient in the place of the logits");
    delete_results(&q);
    delete_task(&p);
}

/* What may be absent. */
static void absent(const kind *k, rng *r) {
    form s = plain(5, 300);
    task p = new_task(k, &s, r);
    p.args.lse = NULL;
    fa_status first = k->forward(&p.args, 0);
    p.args.lse = (float *)p.m[LSE].at.data, p.args.loss = NULL;
    fa_status second = k->forward(&p.args, 0);
    p.args.logits.stride_row = 0; /* the first row five times */
    fa_status third = k->backward(&p.args, 0);
    p.args.logits.stride_row = p.m[LOGITS].stride;
    fa_status fourth = k->backward(&p.args, 0);
    download(&p);
    double error = forward_error(&p), back = backward_error(&p);
    tap_ok(first == FA_OK && second == FA_OK && third == FA_OK && fourth == FA_OK && error <= 1 && back <= 1, "%s: loss and lse by themselves", k->name);
    p.args.loss = (float *)p.m[LOSS].at.data;
    repeat_row(&p);
    error = forward_error(&p), back = backward_error(&p);
    tap_ok(error <= 1 && back <= 1, "%s: a stride of 0 repeats a row (%.2f and %.2f of what is allowed)", k->name, error, back);
    delete_task(&p);
}

static void far_apart(rng *r) {
    form s = plain(2, 64);
    task p = new_task(&kinds[2], &s, r);
    void *from = memory_new(place, FAR_BYTES);
    far_put(from, &p.m[LOGITS]);
    p.args.logits.data = from, p.args.logits.stride_row = FAR, p.args.d_logits = p.args.logits;
    run(p.k, &p.args);
    download(&p);
    far_get(&p.m[D_LOGITS], from, FAR);
    double error = forward_error(&p), back = backward_error(&p);
    tap_ok(error <= 1 && back <= 1, "rows that are 2^31 elements apart (%.2f and %.2f of what is allowed)", error, back);
    memory_delete(place, from, FAR_BYTES);
    delete_task(&p);
}

/* A row of more than 2^31 classes, all of them 0, but for a few that have all the weight. (On the host, where
 * untouched pages take no memory.) */
static void wide_row(void) {
    const int64_t cols = ((int64_t)1 << 31) + 1000, heavy[] = {0, ((int64_t)1 << 31) - 1, (int64_t)1 << 31, cols - 1};
    const size_t bytes = 2 * (size_t)cols;
    const double high = 60, exact = high + log(4);
    unsigned char *logits = (unsigned char *)memory_new(MEMORY_HOST, bytes);
    float loss = NAN, lse = NAN;
    int target = 5;
    fa_cross_entropy_args a;
    memset(&a, 0, sizeof a);
    for (int i = 0; i < 4; i++) number_store(logits, heavy[i], FA_BF16, high);
    a.logits.data = logits, a.rows = 1, a.cols = cols, a.targets = &target, a.loss = &loss, a.lse = &lse;
    const fa_status status = c_bf16_forward(&a, 0);
    tap_ok(status == FA_OK && fabs((double)lse - exact) < 1e-4 && fabs((double)loss - exact) < 1e-4,
           "a row of %lld columns: lse %.6f, loss %.6f, exactly %.6f", (long long)cols, (double)lse, (double)loss, exact);
    memory_delete(MEMORY_HOST, logits, bytes);
}

/* ---- errors ---- */

static void errors(rng *r) {
    const form s = plain(3, 10);
    const kind *k = &kinds[0];
    task p;
    for (int backward = 0; backward < 2; backward++) {
        sizes_fail(k, s, backward, r);
        FRESH, p.args.threads = -1, fails(&p, backward, "threads is -1", "0 (all)");
        FRESH, p.args.label_smoothing = -0.5f, fails(&p, backward, "label_smoothing is -0.5", "between 0 and 1");
        FRESH, p.args.label_smoothing = 1.5f, fails(&p, backward, "label_smoothing is 1.5", "between 0 and 1");
        FRESH, p.args.label_smoothing = NAN, fails(&p, backward, "label_smoothing is nan", "between 0 and 1");
        FRESH, p.args.z_loss = -1, fails(&p, backward, "z_loss is -1", "0 or more");
        FRESH, p.args.z_loss = INFINITY, fails(&p, backward, "z_loss is inf", "0 or more");
        FRESH, p.args.softcap = -30, fails(&p, backward, "softcap is -30", "0 means none");
        FRESH, p.args.softcap = 0.99e-30f, fails(&p, backward, "softcap is 9.9e-31", "between 1e-30");
        FRESH, p.args.softcap = 2e30f, fails(&p, backward, "softcap is 2e+30", "between 1e-30 and 1e+30");
        if (place != MEMORY_HOST) k = &kinds[2], FRESH, p.args.softcap = 2e4f, fails(&p, backward, "softcap is 20000", "between 1e-30 and 10000"), k = &kinds[0];
        FRESH, p.args.softcap = NAN, fails(&p, backward, "softcap is nan", "0 means none");
        matrix_fails(k, s, backward, LOGITS, 1, 0, r);
        FRESH, p.args.targets = NULL, fails(&p, backward, "targets is NULL", "3 ints");
        FRESH, p.args.targets = (const int *)((const char *)p.args.targets + 1), fails(&p, backward, "targets is 0x", "aligned to 4 bytes");
        FRESH, p.args.lse = (float *)((char *)p.args.lse + 2), fails(&p, backward, "lse is 0x", "aligned to 4 bytes");
    }
    FRESH, p.args.loss = (float *)((char *)p.args.loss + 2), fails(&p, 0, "loss is 0x", "aligned to 4 bytes");
    FRESH, p.args.loss = NULL, p.args.lse = NULL, fails(&p, 0, "loss and lse are NULL", "3 floats");
    FRESH, p.args.loss = (float *)p.args.logits.data, fails(&p, 0, "has a place in logits", "memory of its own");
    FRESH, p.args.lse = (float *)(void *)((char *)p.args.d_logits.data + 4), fails(&p, 1, "has a place in d_logits", "memory of its own");
    FRESH, p.args.loss = p.args.lse, fails(&p, 0, "share memory", "two arrays");
    FRESH, p.args.loss = (float *)(void *)(uintptr_t)p.args.targets, fails(&p, 0, "targets, ", "two arrays");
    FRESH, p.args.lse = p.args.loss + 1, fails(&p, 0, "and lse, ", "two arrays");
    FRESH, p.args.d_logits = p.args.logits, p.args.d_logits.stride_row++, fails(&p, 1, "d_logits is written in place of logits", "the same is needed");
    FRESH, p.args.logits.stride_row = INT64_MAX, fails(&p, 0, "logits.stride_row is 9223372036854775807", "more than 2^48 elements");
    FRESH, p.args.lse = NULL, fails(&p, 1, "lse is NULL", "3 floats");
    FRESH, p.args.d_loss = (const float *)((const char *)p.args.d_loss + 2), fails(&p, 1, "d_loss is 0x", "aligned to 4 bytes");
    FRESH, p.args.d_logits.data = NULL, fails(&p, 1, "d_logits.data is NULL", "(3, 10) elements");
    FRESH, p.args.d_logits.stride_row = 9, fails(&p, 1, "d_logits.stride_row is 9", "written over each other");
    fails_without_args(&kinds[0], 0), fails_without_args(&kinds[2], 1);
    fa_cross_entropy_args zero;
    memset(&zero, 0, sizeof zero);
    tap_ok(succeeds(k, &zero), "all-zero arguments are valid");
    tap_ok(k->workspace(&zero) == 0, "no workspace is needed");
}

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
        for (int c = 0; c < 4 && kinds[i].dtype != FA_F16; c++) large(&kinds[i], lengths[c], 0, &r), large(&kinds[i], lengths[c], 0.1, &r);
        for (int c = 0; c < 4; c++) lonely(&kinds[i], lengths[c], &r);
        for (int c = 0; c < 6; c += 2) determinism(&kinds[i], lengths[c], 0, &r);
        for (int c = 0; c < 6; c++) determinism(&kinds[i], 3 + 17 * (c / 2), c % 2 ? 7 : 0, &r);
        absent(&kinds[i], &r);
    }
    far_apart(&r);
    for (int i = 0; i < KINDS && place == MEMORY_HOST; i++) top_heavy(&kinds[i], 1280, &r), top_heavy(&kinds[i], 150001, &r);
    if (place == MEMORY_HOST) rising(&kinds[0], 800000, &r);
    if (place == MEMORY_HOST) wide_row();
#if defined(__CUDACC__)
    streams(&kinds[2], plain(6, 1000), "1000 columns: ", 0, &r);
    streams(&kinds[2], plain(6, 200000), "200000 columns: ", 0, &r);
    const kind host = {"c_host", INSTANCE(c_host), FA_F32};
    on_the_host(&host, plain(9, 777), &r);
#endif
    return tap_end();
}
