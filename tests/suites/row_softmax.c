/* row_softmax.c: fa/row_softmax.h against float64: random shapes and layouts, gradients by finite differences, special
 * values, errors, determinism. The same source runs on the CPU and, compiled by nvcc, on the GPU. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fa/fa.h>

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

enum { X, Y, D_Y, D_X, MATRICES };
static const char *const names[] = {"x", "y", "d_y", "d_x"};
typedef struct form {
    int64_t rows, cols;
    int gap[MATRICES], tail[MATRICES];
    float temperature;
    int log, threads;
    double spread;
} form;

#define ARGS fa_row_softmax_args
#define DESCRIBE_OPTIONS describe_options
#include "companion.h"

static const kind kinds[] = {{"s_f32", INSTANCE(s_f32), FA_F32}, {"s_f16", INSTANCE(s_f16), FA_F16}, {"s_bf16", INSTANCE(s_bf16), FA_BF16}};
enum { KINDS = 3 };

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

/* ---- a task ---- */

static int describe_options(const form *s, char *text, size_t bytes) {
    return snprintf(text, bytes, " temperature=%g log=%d", (double)s->temperature, s->log);
}
static double temperature_of(const form *s) { return s->temperature == 0 ? 1 : (double)s->temperature; }

static fa_matrix *of_args(fa_row_softmax_args *a, int m) {
    fa_matrix *const all[] = {&a->x, &a->y, &a->d_y, &a->d_x};
    return all[m];
}
static void connect(task *p) {
    for (int m = 0; m < MATRICES; m++) *of_args(&p->args, m) = p->m[m].at;
}
static task new_task(const kind *k, const form *s, rng *r) {
    task p = empty_task(k, s);
    for (int m = 0; m < MATRICES; m++) {
        p.m[m] = matrix_new(place, k->dtype, s->rows, s->cols, s->gap[m], s->tail[m], m == Y || m == D_X);
        if (!p.m[m].written) matrix_fill(&p.m[m], m == X ? s->spread : 1, r);
    }
    upload(&p);
    connect(&p);
    p.args.rows = s->rows, p.args.cols = s->cols;
    p.args.temperature = s->temperature, p.args.log = s->log, p.args.threads = s->threads;
    return p;
}

/* The largest error of y as a share of what is allowed; slack of the float computation: roundings of (x - largest) /
 * temperature, absolute in the exponent, an exponential or logarithm of some 2^-22, and a sum of hundreds of terms in a
 * chain (1.5e-6). Of half types a CPU's exponentials are off by up to 2.7e-6, and so is their sum. */
static double forward_error(const task *p) {
    const form *s = &p->s;
    const double exponentials = place == MEMORY_HOST && p->k->dtype != FA_F32 ? 1.5e-6 + 2 * 2.7e-6 : 1.5e-6;
    double temperature = temperature_of(s), worst = 0;
    double *x = (double *)malloc(sizeof(double) * (size_t)(2 * s->cols + 1)), *y = x + s->cols;
    for (int64_t i = 0; i < s->rows; i++) {
        double largest = -INFINITY;
        for (int64_t j = 0; j < s->cols; j++) x[j] = matrix_get(&p->m[X], i, j), largest = fmax(largest, x[j]);
        softmax_row(x, y, s->cols, temperature, s->log);
        for (int64_t j = 0; j < s->cols; j++) {
            double distance = isfinite(x[j]) ? fabs(x[j] - largest) / temperature : 0;
            double slack = s->log ? 1.5e-6 + 2.5e-7 * distance + 2.5e-7 * fabs(isfinite(y[j]) ? y[j] : 0) : y[j] * (exponentials + 2.5e-7 * distance) + 2e-38;
            worst = number_worse(worst, matrix_error(matrix_get(&p->m[Y], i, j), y[j], slack, p->k->dtype));
        }
    }
    free(x);
    return worst;
}
/* The same of d_x, from the y that was computed. */
static double backward_error(const task *p) {
    const form *s = &p->s;
    double temperature = temperature_of(s), worst = 0;
    size_t n = (size_t)s->cols + 1;
    double *y = (double *)malloc(sizeof(double) * 4 * n), *d_y = y + n, *d_x = d_y + n, *slack = d_x + n;
    for (int64_t i = 0; i < s->rows; i++) {
        for (int64_t j = 0; j < s->cols; j++) y[j] = matrix_get(&p->m[Y], i, j), d_y[j] = matrix_get(&p->m[D_Y], i, j);
        gradient_row(y, d_y, d_x, slack, s->cols, temperature, s->log);
        for (int64_t j = 0; j < s->cols; j++)
            worst = number_worse(worst, matrix_error(matrix_get(&p->m[D_X], i, j), d_x[j], slack[j], p->k->dtype));
    }
    free(y);
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
    often_alike(&s, r);
    s.temperature = rng_one_in(r, 2) ? 0 : (float)exp(2 * rng_normal(r) * 0.5);
    s.log = rng_one_in(r, 2);
    s.threads = rng_int(r, 0, 3);
    s.spread = rng_one_in(r, 4) ? 30 : 3;
    return s;
}

static void shapes(const kind *k, uint64_t seed) {
    static const int64_t nasty[] = {SHORT_LENGTHS, LONGER_LENGTHS, 16383, 16384, 16385, 32768, 32769, 50257, 65537}; /* and a cluster's memory, nothing */
    static const int64_t huge[] = {131072, 131075, 262144, 500001};
    static const int64_t vectors[] = {SHORT_VECTORS}, without_gaps[] = {SHORT_WITHOUT_GAPS};
    /* In vectors of 16 bytes: more than registers hold, by blocks of 128 to 768 threads and clusters of these, with
     * and without a rest. */
    static const int64_t longer[] = {1025, 2304, 2560, 3001, 3136, 5120, 6288, 8193, 12544, 18992, 25008};
    rng r = rng_new(seed, 300 + (uint64_t)k->dtype);
    tally t = new_tally(k, &r);
    for (int set = 0; (t.isa = instruction_set(set)) != NULL; set++) {
        for (size_t i = 0; i < sizeof nasty / sizeof nasty[0]; i++) {
            form s = plain(nasty[i] < 1000 ? 9 : 2, nasty[i]);
            s.log = (int)(i + (size_t)set) % 2;
            check(&t, s);
            s.log = !s.log;
            check(&t, spaced(s, 3, 5));
        }
        for (int64_t cols = 1; cols < 700; cols += 1 + cols / 3) /* all begin on boundaries, and many end between them */
            check(&t, spaced(plain(9, cols), (int)((8 - cols % 8) % 8), (int)((8 - cols % 8) % 8)));
        check_one_gap(&t, 32768);
        tell(&t, "lengths around every limit");
        for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++) {
            form s = plain(3, longer[i] * 16 / fa_dtype_bytes(k->dtype));
            s.log = (int)(i + (size_t)set) % 2, s.spread = i % 3 ? s.spread : 30;
            check(&t, i % 2 ? s : spaced(s, 8, 8));
        }
        tell(&t, "longer rows of whole vectors");
        for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
            form s = plain(i % 3 ? i % 3 == 1 ? 301 : 6 : 1, vectors[i] * 16 / fa_dtype_bytes(k->dtype)); /* more than a thread block takes, and fewer */
            s.log = (int)(i + (size_t)set) % 2;
            check(&t, s);
            s.rows = i % 3 ? 1 : 301, s.log = !s.log;
            check(&t, i % 2 ? s : spaced(s, 8, 8));
        }
        tell(&t, "short rows of whole vectors");
        for (size_t i = 0; i < sizeof without_gaps / sizeof without_gaps[0]; i++) {
            form s = plain(i % 3 ? 521 : i % 2 + 1, without_gaps[i]); /* more than two thread blocks take, and one row, or two */
            s.log = (int)(i + (size_t)set) % 2;
            check(&t, s);
            s.rows = 300, s.log = !s.log, s.spread = 30;
            check(&t, s);
        }
        tell(&t, "short rows without gaps");
        check_random(&t, 8);
        tell(&t, "random shapes");
    }
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        form s = plain(2, huge[i]);
        s.log = (int)i % 2;
        check(&t, s);
    }
    tell(&t, "long rows");
#ifdef TEST_SIMULATOR
    const unsigned room = simulator_cluster_blocks;
    for (int i = 0; i < 4 && room > 1; i++) { /* for none, or for two blocks */
        simulator_cluster_blocks = i % 2 ? 2 : 1;
        check(&t, plain(2, i / 2 ? huge[i / 2] : 50257));
    }
    simulator_cluster_blocks = room;
    tell(&t, "the same on a part of a GPU without room for clusters");
#endif
    check(&t, plain(0, 7)), check(&t, plain(5, 0));
    tell_shortly(&t, "no rows, no columns");
    check(&t, plain(70000, 3));
    if (place == MEMORY_HOST && k->dtype != FA_F32) check(&t, plain(4090, 1029)); /* 8 MB of halves, which go past the caches */
    tell_shortly(&t, "many rows");
}

/* ---- gradients by finite differences: of L = the sum of w y, in double ---- */

static void differences(int log_, float temperature, rng *r) {
    form s = plain(2, 37);
    double x[37], y[37], worst = 0;
    s.log = log_, s.temperature = temperature;
    task p = new_task(&kinds[0], &s, r);
    run(p.k, &p.args);
    matrix_download(&p.m[D_X]);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 37; j++) {
            const double step = 1e-5;
            double loss[2] = {0, 0};
            for (int side = 0; side < 2; side++) {
                for (int c = 0; c < 37; c++) x[c] = matrix_get(&p.m[X], i, c) + (c == j ? (side ? step : -step) : 0);
                softmax_row(x, y, 37, temperature_of(&s), log_);
                for (int c = 0; c < 37; c++) loss[side] += matrix_get(&p.m[D_Y], i, c) * y[c];
            }
            worst = number_worse(worst, fabs((loss[1] - loss[0]) / (2 * step) - matrix_get(&p.m[D_X], i, j)));
        }
    tap_ok(worst < 3e-5, "finite differences: log=%d temperature=%g (largest difference %.2g)", log_, (double)temperature, worst);
    delete_task(&p);
}

/* ---- special values ---- */

/* Rows of `cols`: some -inf; all -inf; a NaN; +inf; the extremes of float; equal ones; in both directions as in the
 * unfused computation. */
static void special(const kind *k, int64_t cols, int log_, rng *r) {
    form s = plain(7, cols);
    double worst = 0, largest = k->dtype == FA_F16 ? 65504 : 1e38;
    s.log = log_;
    task p = new_task(k, &s, r);
    for (int64_t j = 0; j < cols; j++) {
        if (j % 3 != 1) matrix_set(&p.m[X], 0, j, -INFINITY);
        matrix_set(&p.m[X], 1, j, -INFINITY);
        if (j == cols / 2) matrix_set(&p.m[X], 2, j, NAN);
        if (j == cols - 1) matrix_set(&p.m[X], 3, j, INFINITY);
        matrix_set(&p.m[X], 4, j, j % 2 ? largest : -largest);
        matrix_set(&p.m[X], 5, j, largest);
        matrix_set(&p.m[X], 6, j, j == cols - 1 ? -300 : -INFINITY); /* one is left: the last, far below 0 */
    }
    matrix_upload(&p.m[X]);
    must(k->forward(&p.args, 0));
    matrix_download(&p.m[Y]);
    worst = forward_error(&p);
    /* A gradient that has a NaN makes all of its row one; the other rows do not notice. */
    for (int64_t j = 0; j < cols; j++)
        for (int i = 1; i < 4; i++) matrix_set(&p.m[Y], i, j, log_ ? -log((double)cols) : 1.0 / (double)cols);
    matrix_set(&p.m[D_Y], 2, cols / 3, NAN);
    matrix_upload(&p.m[Y]), matrix_upload(&p.m[D_Y]);
    must(k->backward(&p.args, 0));
    matrix_download(&p.m[D_X]);
    double back = backward_error(&p);
    tap_ok(worst <= 1 && back <= 1, "%s, %lld columns, log=%d: infinities, NaN, extremes (%.2f and %.2f of what is allowed)", k->name,
           (long long)cols, log_, worst, back);
    delete_task(&p);
}

/* The forward of a task by each instruction set. */
static void forward_by_each(task *p, const char *what) {
    const char *isa;
    for (int set = 0; (isa = instruction_set(set)) != NULL; set++) {
        matrix_upload(&p->m[X]);
        must(p->k->forward(&p->args, 0));
        matrix_download(&p->m[Y]);
        double worst = forward_error(p);
        tap_ok(worst <= 1, "%s, %s, %lld columns: %s (%.2f of what is allowed)", p->k->name, isa, (long long)p->s.cols, what, worst);
    }
}

/* One number behind many that are much smaller. */
static void lonely(const kind *k, int64_t cols, rng *r) {
    form s = plain(36, cols);
    task p = new_task(k, &s, r);
    /* near the end, or among many others that are looked at with it; and where all are negative */
    for (int i = 0; i < 36; i++) {
        matrix_set(&p.m[X], i, i % 18 < 9 ? cols - 2 : cols * 7 / 8, lonely_height(i));
        for (int64_t j = 0; i >= 18 && j < cols; j++) matrix_set(&p.m[X], i, j, matrix_get(&p.m[X], i, j) - 400);
    }
    forward_by_each(&p, "a lonely large number");
    delete_task(&p);
}

static void large(const kind *k, int64_t cols, rng *r) {
    form s = plain(8, cols);
    task p = new_task(k, &s, r);
    set_large(&p.m[X], r);
    matrix_upload(&p.m[X]);
    must(k->forward(&p.args, 0));
    matrix_download(&p.m[Y]);
    double worst = forward_error(&p);
    tap_ok(worst <= 1, "%s, %lld columns: large numbers (%.2f of what is allowed)", k->name, (long long)cols, worst);
    delete_task(&p);
}

/* A few elements, and then very many that are far below, in both directions: the gradients of y are all 1, and of
 * logarithms they are as large as the exponentials are. */
static void top_heavy(const kind *k, int64_t cols, int log_, rng *r) {
    form s = plain(TOP_HEAVY, cols);
    s.log = log_;
    task p = new_task(k, &s, r);
    set_top_heavy(&p.m[X]);
    for (int i = 0; i < TOP_HEAVY; i++)
        for (int64_t j = 0; j < cols; j++) matrix_set(&p.m[D_Y], i, j, !log_ || is_top(i, j) ? 1 : exp(-top_height(i)));
    const char *isa;
    for (int set = 0; (isa = instruction_set(set)) != NULL; set++) {
        upload(&p);
        run(k, &p.args);
        download(&p);
        double error = forward_error(&p), back = backward_error(&p);
        tap_ok(error <= 1 && back <= 1, "%s, %s, %lld columns, log=%d: a few elements, and then many far below (%.2f and %.2f of what is allowed)", k->name, isa,
               (long long)cols, log_, error, back);
    }
    delete_task(&p);
}

/* A sum that is made relative to a larger element again and again. */
static void rising(const kind *k, int64_t cols, rng *r) {
    form s = plain(1, cols);
    s.log = 1;
    task p = new_task(k, &s, r);
    for (int64_t j = 0; j < cols; j++) matrix_set(&p.m[X], 0, j, rising_by(j));
    forward_by_each(&p, "elements that rise slowly");
    delete_task(&p);
}

/* The backward where what is to be subtracted, divided by the temperature, would be infinite, but no gradient is:
 * all weight is on the first element, whose own gradient is small, and nothing of it reaches the others. */
static void steep(const kind *k, int64_t cols, int log_, rng *r) {
    form s = plain(1, cols);
    s.temperature = 1e-30f, s.log = log_;
    task p = new_task(k, &s, r);
    double worst = 0;
    for (int64_t j = 0; j < cols; j++) {
        matrix_set(&p.m[Y], 0, j, log_ ? (j ? -300 : 0) : j == 0);
        matrix_set(&p.m[D_Y], 0, j, j ? 0 : 1e9);
    }
    if (log_) matrix_set(&p.m[D_Y], 0, cols - 1, -1);
    matrix_upload(&p.m[Y]), matrix_upload(&p.m[D_Y]);
    must(k->backward(&p.args, 0));
    matrix_download(&p.m[D_X]);
    for (int64_t j = log_; j < cols; j++) /* a logarithm's first gradient is what the sum's rounding leaves */
        worst = number_worse(worst, matrix_error(matrix_get(&p.m[D_X], 0, j), log_ && j == cols - 1 ? -1e30 : 0, 1e24, k->dtype));
    tap_ok(worst <= 1, "%s, %lld columns, log=%d: a sum that is infinite divided by the temperature (%.2f of what is allowed)", k->name,
           (long long)cols, log_, worst);
    delete_task(&p);
}

/* ---- the same bits: every time, in any company, with any number of threads, in place ---- */

/* `gap`: columns between the rows of a matrix. */
static void determinism(const kind *k, int64_t cols, int gap, rng *r) {
    form s = spaced(plain(40, cols), gap, 0);
    task p = new_task(k, &s, r), q = other_results(&p, gap, 0);
    int threads = 1, in_place = 1;
    p.args.threads = 1;
    run(k, &p.args);
    download(&p);
    tell_columns(same_again(&p, &q, 1), &p, EVERY_TIME);
    for (int i = 1; i < 4; i++) threads &= same_again(&p, &q, some_threads(i));
    tell_columns(threads, &p, ANY_THREADS);
    run_rows(&q);
    tell_columns(same_results(&p, &q), &p, BY_ITSELF);
    if (cols < 64 && gap == 0) { /* all rows but the first, to rows that begin elsewhere between boundaries of 16 bytes */
        fa_row_softmax_args a = q.args;
        int shifted = 1;
        a.rows--;
        a.x.data = (char *)a.x.data + a.x.stride_row * fa_dtype_bytes(k->dtype), a.d_y.data = (char *)a.d_y.data + a.d_y.stride_row * fa_dtype_bytes(k->dtype);
        run(k, &a);
        matrix_download(&q.m[Y]), matrix_download(&q.m[D_X]);
        for (int64_t i = 0; i < a.rows; i++)
            for (int64_t j = 0; j < cols; j++)
                shifted &= matrix_get(&q.m[Y], i, j) == matrix_get(&p.m[Y], i + 1, j) && matrix_get(&q.m[D_X], i, j) == matrix_get(&p.m[D_X], i + 1, j);
        tell_columns(shifted, &p, "the same from elsewhere, to elsewhere");
    }
    /* y in the place of x, d_x in that of d_y, and in that of y. */
    q.args.y = q.args.x, q.args.d_x = q.args.d_y;
    run(k, &q.args);
    matrix_download(&q.m[X]), matrix_download(&q.m[D_Y]);
    in_place = same(&p.m[Y], &q.m[X]) && same(&p.m[D_X], &q.m[D_Y]);
    matrix_upload(&p.m[Y]);
    matrix_fill(&p.m[D_Y], 1, r); /* d_y was overwritten: a new one, and what it gives */
    matrix_upload(&p.m[D_Y]);
    must(k->backward(&p.args, 0));
    matrix_download(&p.m[D_X]);
    p.args.d_x = p.args.y;
    must(k->backward(&p.args, 0));
    matrix_download(&p.m[Y]);
    in_place &= same(&p.m[Y], &p.m[D_X]);
    tell_columns(in_place, &p, IN_PLACE);
    delete_results(&q);
    delete_task(&p);
}

/* ---- sizes ---- */

static void far_apart(rng *r) {
    void *from = memory_new(place, FAR_BYTES), *to = memory_new(place, FAR_BYTES);
    matrix x = matrix_new(place, FA_BF16, 2, 64, 0, 0, 0), y = matrix_new(place, FA_BF16, 2, 64, 0, 0, 1);
    double row[64], exact[64], worst = 0;
    fa_row_softmax_args a;
    memset(&a, 0, sizeof a);
    matrix_fill(&x, 1, r);
    far_put(from, &x);
    a.x.data = from, a.y.data = to, a.x.stride_row = a.y.stride_row = FAR, a.rows = 2, a.cols = 64;
    fa_status status = s_bf16_forward(&a, 0);
    far_get(&y, to, FAR);
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 64; j++) row[j] = matrix_get(&x, i, j);
        softmax_row(row, exact, 64, 1, 0);
        for (int j = 0; j < 64; j++) worst = number_worse(worst, matrix_error(matrix_get(&y, i, j), exact[j], 2e-6 * exact[j], FA_BF16));
    }
    tap_ok(status == FA_OK && worst <= 1, "rows that are 2^31 elements apart (%.2f of what is allowed)", worst);
    matrix_delete(&x), matrix_delete(&y);
    memory_delete(place, from, FAR_BYTES), memory_delete(place, to, FAR_BYTES);
}

/* ---- errors ---- */

static void errors(rng *r) {
    const form s = plain(3, 10);
    const kind *k = &kinds[0];
    task p;
    for (int backward = 0; backward < 2; backward++) {
        sizes_fail(k, s, backward, r);
        FRESH, p.args.temperature = -1, fails(&p, backward, "temperature is -1", "0 means 1");
        FRESH, p.args.temperature = NAN, fails(&p, backward, "temperature is nan", "0 means 1");
        FRESH, p.args.temperature = INFINITY, fails(&p, backward, "temperature is inf", "between");
        FRESH, p.args.temperature = 1.01e30f, fails(&p, backward, "temperature is 1.01e+30", "between");
        FRESH, p.args.temperature = 1e-31f, fails(&p, backward, "temperature is 1e-31", "between");
        FRESH, *(backward ? &p.args.d_y : &p.args.x) = (fa_matrix){(char *)(backward ? p.args.d_x : p.args.y).data + 12, 0},
            fails(&p, backward, "whose rows are all the same", "memory of its own");
        FRESH, p.args.log = 2, fails(&p, backward, "log is 2", "0 (softmax) or 1");
        FRESH, p.args.threads = -1, fails(&p, backward, "threads is -1", "0 (all)");
        for (int m = backward ? Y : X; m <= (backward ? D_X : Y); m++) matrix_fails(k, s, backward, m, 1, m == (backward ? D_X : Y), r);
    }
    fails_without_args(&kinds[0], 0), fails_without_args(&kinds[2], 1);
    fa_row_softmax_args zero;
    memset(&zero, 0, sizeof zero);
    tap_ok(succeeds(k, &zero), "all-zero arguments are valid");
    zero.rows = 1000;
    tap_ok(succeeds(k, &zero), "without columns pointers may be NULL");
    tap_ok(k->workspace(&zero) == 0, "no workspace is needed");
}

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
        for (int c = 0; c < 4; c++) special(&kinds[i], c / 2 ? 32 : 8, c % 2, &r);
        for (int c = 0; c < 3; c++) determinism(&kinds[i], lengths[c], 0, &r);
        for (int c = 0; c < 6; c++) determinism(&kinds[i], 3 + 17 * (c / 2), c % 2 ? 7 : 0, &r);
        determinism(&kinds[i], 70000, 0, &r); /* threads of the CPU keep more of such a row than their caller */
        broadcast(&kinds[i], plain(5, 300), &r);
    }
    for (int i = 0; i < KINDS && place == MEMORY_HOST; i++)
        for (int log_ = 0; log_ < 2; log_++) top_heavy(&kinds[i], 1280, log_, &r), top_heavy(&kinds[i], 150001, log_, &r);
    if (place == MEMORY_HOST) rising(&kinds[0], 800000, &r);
    far_apart(&r);
#if defined(__CUDACC__)
    streams(&kinds[2], plain(6, 1000), "1000 columns: ", 0, &r);
    streams(&kinds[2], plain(6, 200000), "200000 columns: ", 0, &r);
    const kind host = {"s_host", INSTANCE(s_host), FA_F32};
    on_the_host(&host, plain(9, 777), &r);
#endif
    return tap_end();
}
