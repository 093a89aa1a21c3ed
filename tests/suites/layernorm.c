/* layernorm.c: fa/layernorm.h and fa/rmsnorm.h against float64: random shapes and layouts, with and without dropout,
 * residual, weights and statistics; gradients by finite differences, rows far from 0, special values, errors,
 * determinism. The same source runs on the CPU and, compiled by nvcc, on the GPU. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>

#include <fa/fa.h>

#define FA_NAME n_f32
#define FA_DTYPE FA_F32
#include <fa/layernorm.h>

#define FA_NAME n_f16
#define FA_DTYPE FA_F16
#define FA_API FA_EXTERN
#include <fa/layernorm.h>

#define FA_NAME n
#define FA_DTYPE FA_BF16
#define FA_SUB _bf16
#define FA_WEIGHT_DTYPE FA_BF16
#include <fa/layernorm.h>
#undef FA_NAME
#undef FA_DTYPE

#define FA_NAME r_f32
#define FA_DTYPE FA_F32
#define FA_WEIGHT_DTYPE FA_F16
#include <fa/rmsnorm.h>

#define FA_NAME r
#define FA_DTYPE FA_F16
#define FA_SUB _f16
#define FA_WEIGHT_DTYPE FA_F32
#include <fa/rmsnorm.h>
#undef FA_NAME
#undef FA_DTYPE

#define FA_NAME r_bf16
#define FA_DTYPE FA_BF16
#define FA_API FA_EXTERN
#include <fa/rmsnorm.h>

#if defined(__CUDACC__)
/* An instance for the CPU beside those for the GPU. */
#define FA_NAME n_host
#define FA_DTYPE FA_F32
#define FA_ARCH FA_CPU
#include <fa/layernorm.h>
#endif

/* Both kernels behind the arguments of the one that has more of them. */
static fa_rmsnorm_args less(const fa_layernorm_args *a) {
    fa_rmsnorm_args r;
    memset(&r, 0, sizeof r);
    if (!a) return r;
    r.x = a->x, r.y = a->y, r.residual = a->residual, r.sum = a->sum, r.gamma = a->gamma, r.rstd = a->rstd;
    r.rows = a->rows, r.cols = a->cols, r.eps = a->eps, r.dropout = a->dropout, r.seed = a->seed, r.offset = a->offset;
    r.d_y = a->d_y, r.d_sum = a->d_sum, r.d_x = a->d_x, r.d_residual = a->d_residual, r.d_gamma = a->d_gamma;
    r.workspace = a->workspace, r.workspace_bytes = a->workspace_bytes, r.threads = a->threads;
    return r;
}
#define RMS(name)                                                                    \
    static fa_status name##_less_forward(const fa_layernorm_args *a, fa_stream s) {  \
        fa_rmsnorm_args r = less(a);       \
        return name##_forward(a ? &r : NULL, s);                                     \
    }                                                                                \
    static fa_status name##_less_backward(const fa_layernorm_args *a, fa_stream s) { \
        fa_rmsnorm_args r = less(a);       \
        return name##_backward(a ? &r : NULL, s);                                    \
    }                                                                                \
    static size_t name##_less_workspace(const fa_layernorm_args *a) {                \
        fa_rmsnorm_args r = less(a);                                                 \
        return name##_workspace(&r);                                                 \
    }
RMS(r_f32)
RMS(r_f16)
RMS(r_bf16)

enum { X, RESIDUAL, D_Y, D_SUM, GAMMA, BETA, /* inputs */ SUM, Y, D_X, D_RESIDUAL, MEAN, RSTD, D_GAMMA, D_BETA, MATRICES };
static const char *const names[] = {"x", "residual", "d_y", "d_sum", "gamma", "beta", "sum", "y", "d_x", "d_residual", "mean", "rstd", "d_gamma", "d_beta"};
typedef struct form {
    int64_t rows, cols;
    int gap[MATRICES], tail[MATRICES];
    unsigned without; /* bits of what is NULL */
    int forget;       /* the backward gets no statistics, where the forward wrote some */
    float eps, dropout;
    uint64_t seed, offset;
    int threads;
    double spread, middle, start; /* of x; what its first 16 columns have besides */
} form;
static int has(const form *s, int which) { return !(s->without >> which & 1); }

#define ARGS fa_layernorm_args
#define KIND_MORE int weight_dtype, centered;
#define BACKWARD run_backward
#define INTACT intact
#define DESCRIBE_OPTIONS describe_options
#define MOVE_VECTORS(a, i) ((a).mean += (i), (a).rstd += (i))
#include "companion.h"

static const kind kinds[] = {{"n_f32", INSTANCE(n_f32), FA_F32, FA_F32, 1},      {"n_f16", INSTANCE(n_f16), FA_F16, FA_F32, 1},
                             {"n_bf16", INSTANCE(n_bf16), FA_BF16, FA_BF16, 1},  {"r_f32", INSTANCE(r_f32_less), FA_F32, FA_F16, 0},
                             {"r_f16", INSTANCE(r_f16_less), FA_F16, FA_F32, 0}, {"r_bf16", INSTANCE(r_bf16_less), FA_BF16, FA_F32, 0}};
enum { KINDS = 6 };

/* ---- a task ---- */

static int describe_options(const form *s, char *text, size_t bytes) {
    int at = snprintf(text, bytes, " eps=%g dropout=%g seed=%llu offset=%llu spread=%g middle=%g%s without", (double)s->eps, (double)s->dropout,
                      (unsigned long long)s->seed, (unsigned long long)s->offset, s->spread, s->middle, s->forget ? " forget" : "");
    for (int i = 0; i < MATRICES; i++)
        if (!has(s, i)) at += snprintf(text + at, bytes - (size_t)at, " %s", names[i]);
    return at;
}

static fa_matrix *of_args(fa_layernorm_args *a, int m) {
    fa_matrix *const all[MATRICES] = {&a->x, &a->residual, &a->d_y, &a->d_sum, NULL, NULL, &a->sum, &a->y, &a->d_x, &a->d_residual};
    return all[m];
}
static void connect(task *p) {
    fa_layernorm_args *a = &p->args;
    for (int m = 0; m < MATRICES; m++) {
        fa_matrix *of = of_args(a, m);
        if (of) *of = p->m[m].at;
        if (of && !has(&p->s, m)) of->data = NULL;
    }
#define VECTOR(which) (has(&p->s, which) ? p->m[which].at.data : NULL)
    a->gamma = VECTOR(GAMMA), a->beta = VECTOR(BETA), a->d_gamma = VECTOR(D_GAMMA), a->d_beta = VECTOR(D_BETA);
    a->mean = (float *)VECTOR(MEAN), a->rstd = (float *)VECTOR(RSTD);
#undef VECTOR
}
static task new_task(const kind *k, const form *s, rng *r) {
    task p = empty_task(k, s);
    for (int i = 0; i < MATRICES; i++) {
        int weight = i == GAMMA || i == BETA || i == D_GAMMA || i == D_BETA, per_row = i == MEAN || i == RSTD;
        p.m[i] = matrix_new(place, weight ? k->weight_dtype : per_row ? FA_F32 : k->dtype, weight || per_row ? 1 : s->rows,
                            per_row ? s->rows : s->cols, weight || per_row ? 0 : s->gap[i], s->tail[i], i >= SUM);
        if (i < SUM) matrix_fill(&p.m[i], i == X ? s->spread : 1, r);
    }
    for (int64_t i = 0; i < s->rows && s->middle != 0; i++)
        for (int64_t j = 0; j < s->cols; j++) matrix_set(&p.m[X], i, j, matrix_get(&p.m[X], i, j) + s->middle);
    for (int64_t i = 0; i < s->rows && s->start != 0; i++)
        for (int64_t j = 0; j < s->cols && j < 16; j++) matrix_set(&p.m[X], i, j, matrix_get(&p.m[X], i, j) + s->start);
    upload(&p);
    connect(&p);
    p.args.rows = s->rows, p.args.cols = s->cols, p.args.eps = s->eps, p.args.threads = s->threads;
    p.args.dropout = s->dropout, p.args.seed = s->seed, p.args.offset = s->offset;
    p.workspace_bytes = p.args.workspace_bytes = k->workspace(&p.args);
    p.workspace = p.args.workspace = p.workspace_bytes ? memory_new(place, p.workspace_bytes) : NULL;
    return p;
}

/* ---- the reference, a row at a time ---- */

static int kept(const form *s, int64_t row, int64_t col) {
    uint64_t element = (uint64_t)(row * s->cols + col);
    if (s->dropout == 0) return 1;
    return (double)fa_philox(s->seed, s->offset + element / 4).word[element % 4] >= (double)s->dropout * 4294967296.0;
}
static double scale_of(const form *s) { return s->dropout < 1 ? 1.0 / (1.0 - (double)s->dropout) : 0; }

/* What is normalised, and the sizes of what it is made of, whose roundings it has. */
static void sum_row(const task *p, int64_t row, double *sum, double *size) {
    const form *s = &p->s;
    for (int64_t j = 0; j < s->cols; j++) {
        double x = matrix_get(&p->m[X], row, j), add = has(s, RESIDUAL) ? matrix_get(&p->m[RESIDUAL], row, j) : 0;
        if (s->dropout != 0) x = kept(s, row, j) ? x * scale_of(s) : 0;
        sum[j] = x + add;
        if (size) size[j] = fabs(x) + fabs(add);
    }
}
typedef struct statistics {
    double mean, rstd, size, largest; /* and the mean of sizes, and the largest */
} statistics;
static statistics measure(const kind *k, const double *s, const double *size, int64_t cols, double eps) {
    statistics t = {0, 0, 0, 0};
    double squares = 0;
    for (int64_t j = 0; j < cols; j++) t.mean += k->centered ? s[j] / (double)cols : 0, t.size += (size ? size[j] : fabs(s[j])) / (double)cols;
    for (int64_t j = 0; j < cols; j++) t.largest = fmax(t.largest, size ? size[j] : fabs(s[j]));
    for (int64_t j = 0; j < cols; j++) squares += (s[j] - t.mean) * (s[j] - t.mean);
    t.rstd = 1 / sqrt(squares / (double)cols + eps);
    return t;
}
static double gamma_of(const task *p, int64_t j) { return has(&p->s, GAMMA) ? matrix_get(&p->m[GAMMA], 0, j) : 1; }
static double beta_of(const task *p, int64_t j) { return p->k->centered && has(&p->s, BETA) ? matrix_get(&p->m[BETA], 0, j) : 0; }

/* Roundings of fp32: of one operation, and what a sum of thousands of terms may be off by, as a share of their
 * sizes. */
static const double ONE = 1.2e-7, MANY = 3e-6;

/* What the mean may be off by: more where a thread adds small numbers to large ones, as any sum of the row in fp32
 * does; and where dropout leaves little of a row, it may be taken relative to a number much larger than itself. */
static double mean_off(const form *s, const statistics *t) {
    return (s->start != 0 ? MANY : 3 * ONE) * t->size + (s->dropout != 0 ? ONE * t->largest : 0);
}

/* The largest error of y, sum, mean and rstd, as a share of what is allowed. */
static double forward_error(const task *p) {
    const kind *k = p->k;
    const form *s = &p->s;
    double worst = 0, *sum = (double *)malloc(sizeof(double) * 2 * (size_t)(s->cols + 1)), *size = sum + s->cols;
    for (int64_t i = 0; i < s->rows; i++) {
        sum_row(p, i, sum, size);
        statistics t = measure(k, sum, size, s->cols, (double)s->eps);
        double off = k->centered ? mean_off(s, &t) : 0;
        double share = MANY + 4 * ONE * t.size * t.rstd; /* of rstd */
        for (int64_t j = 0; j < s->cols; j++) {
            double n = (sum[j] - t.mean) * t.rstd, gamma = gamma_of(p, j), beta = beta_of(p, j);
            double slack = fabs(gamma) * (t.rstd * (off + 2 * ONE * size[j]) + fabs(n) * (share + 2 * ONE)) + ONE * fabs(beta) + 1e-37;
            worst = number_worse(worst, matrix_error(matrix_get(&p->m[Y], i, j), n * gamma + beta, slack, k->dtype));
            if (has(s, SUM)) worst = number_worse(worst, matrix_error(matrix_get(&p->m[SUM], i, j), sum[j], 2 * ONE * size[j], k->dtype));
        }
        if (s->cols && has(s, RSTD)) worst = number_worse(worst, matrix_error(matrix_get(&p->m[RSTD], 0, i), t.rstd, t.rstd * share, FA_F32));
        if (s->cols && k->centered && has(s, MEAN)) worst = number_worse(worst, matrix_error(matrix_get(&p->m[MEAN], 0, i), t.mean, off + 1e-37, FA_F32));
    }
    free(sum);
    return worst;
}

/* The same of the gradients, from the sum and the statistics that the forward wrote. */
static double backward_error(const task *p) {
    const kind *k = p->k;
    const form *s = &p->s;
    const size_t n_cols = (size_t)s->cols + 1;
    const int known = has(s, RSTD) && (has(s, MEAN) || !k->centered) && !s->forget;
    double worst = 0, *sum = (double *)calloc(8 * n_cols, sizeof(double)), *d_gamma = sum + n_cols, *d_beta = d_gamma + n_cols;
    double *slack_gamma = d_beta + n_cols, *slack_beta = slack_gamma + n_cols, *n = slack_beta + n_cols, *w = n + n_cols, *off = w + n_cols;
    for (int64_t i = 0; i < s->rows; i++) {
        for (int64_t j = 0; j < s->cols; j++) sum[j] = matrix_get(&p->m[has(s, SUM) ? SUM : X], i, j);
        statistics t = measure(k, sum, NULL, s->cols, (double)s->eps);
        double share = ONE, off_mean = 0, scaled = s->dropout != 0 ? ONE : 0; /* dropout's factor is rounded, too */
        if (known) t.rstd = matrix_get(&p->m[RSTD], 0, i), t.mean = k->centered ? matrix_get(&p->m[MEAN], 0, i) : 0;
        else share = MANY + 4 * ONE * t.size * t.rstd, off_mean = mean_off(s, &t);
        double w_mean = 0, wn_mean = 0, w_size = 0, wn_size = 0, wn_off = 0;
        for (int64_t j = 0; j < s->cols; j++) {
            double d = matrix_get(&p->m[D_Y], i, j);
            n[j] = (sum[j] - t.mean) * t.rstd;
            off[j] = t.rstd * (off_mean + 2 * ONE * (fabs(sum[j]) + fabs(t.mean))) + fabs(n[j]) * (share + ONE);
            w[j] = d * gamma_of(p, j);
            w_mean += w[j], w_size += fabs(w[j]);
            wn_mean += w[j] * n[j], wn_size += fabs(w[j] * n[j]), wn_off += fabs(w[j]) * off[j];
            d_gamma[j] += d * n[j], slack_gamma[j] += fabs(d) * off[j] + 3e-6 * fabs(d * n[j]) + 1e-37;
            d_beta[j] += d, slack_beta[j] += 3e-6 * fabs(d);
        }
        double cols = (double)s->cols;
        w_mean = k->centered ? w_mean / cols : 0, w_size = k->centered ? w_size / cols : 0;
        wn_mean /= cols, wn_size /= cols, wn_off /= cols;
        for (int64_t j = 0; j < s->cols; j++) {
            double add = has(s, D_SUM) ? matrix_get(&p->m[D_SUM], i, j) : 0, d_s = t.rstd * (w[j] - w_mean - n[j] * wn_mean) + add;
            double slack = t.rstd * (3 * ONE * fabs(w[j]) + MANY * w_size + fabs(n[j]) * (MANY * wn_size + wn_off) + off[j] * fabs(wn_mean)) +
                           (share + 2 * ONE) * fabs(d_s - add) + ONE * fabs(add) + 1e-37;
            double through = kept(s, i, j) ? scale_of(s) : 0;
            if (has(s, D_RESIDUAL)) worst = number_worse(worst, matrix_error(matrix_get(&p->m[D_RESIDUAL], i, j), d_s, slack, k->dtype));
            if (has(s, D_X)) worst = number_worse(worst, matrix_error(matrix_get(&p->m[D_X], i, j), d_s * through, (slack + scaled * fabs(d_s)) * through * 1.0001, k->dtype));
        }
    }
    for (int64_t j = 0; j < s->cols; j++) {
        if (has(s, D_GAMMA)) worst = number_worse(worst, matrix_error(matrix_get(&p->m[D_GAMMA], 0, j), d_gamma[j], slack_gamma[j], k->weight_dtype));
        if (k->centered && has(s, D_BETA))
            worst = number_worse(worst, matrix_error(matrix_get(&p->m[D_BETA], 0, j), d_beta[j], slack_beta[j] + 1e-37, k->weight_dtype));
    }
    free(sum);
    return worst;
}

static fa_status run_backward(const task *p) {
    fa_layernorm_args a = p->args;
    a.beta = (const void *)(uintptr_t)(p->s.forget ? 64 : 3); /* which a backward does not look at */
    if (p->s.forget) a.mean = a.rstd = NULL;
    return p->k->backward(&a, 0);
}
static int intact(const task *p) {
    const form *s = &p->s;
    int all = 1;
    for (int i = 0; i < MATRICES; i++) {
        int used = has(s, i) && (p->k->centered || (i != MEAN && i != D_BETA)) && s->cols && (s->rows || i >= D_GAMMA);
        if (!(i < SUM || used ? matrix_intact(&p->m[i]) : matrix_untouched(&p->m[i]))) tap_note("written around: %s", names[i]), all = 0;
    }
    return all;
}

static const unsigned SIMPLE = 1u << RESIDUAL | 1u << SUM | 1u << D_SUM | 1u << D_RESIDUAL;
static form plain(int64_t rows, int64_t cols) {
    form s;
    memset(&s, 0, sizeof s);
    s.rows = rows, s.cols = cols, s.spread = 2, s.eps = 1e-5f, s.without = SIMPLE;
    return s;
}
static form full(int64_t rows, int64_t cols) {
    form s = plain(rows, cols);
    s.without = 0, s.dropout = 0.25f, s.seed = 0x123456789ABCDEFull, s.offset = 77;
    return s;
}
static form random_form(rng *r) {
    form s = random_size(24, 5000, 40000, r);
    for (int m = 0; m < MATRICES; m++) {
        random_gap(&s, m, r);
        if (rng_one_in(r, 3)) s.without |= 1u << m;
        else s.without &= ~(1u << m);
    }
    often_alike(&s, r);
    s.dropout = rng_one_in(r, 2) ? 0 : 0.9f * (float)rng_uniform(r);
    s.seed = rng_next(r), s.offset = rng_one_in(r, 2) ? rng_next(r) : 0;
    if (rng_one_in(r, 4)) s.offset = 0 - (uint64_t)rng_int(r, 0, 500); /* counters that wrap around within a row */
    s.without &= ~(1u << X | 1u << Y | 1u << D_Y);
    if (s.dropout > 0 || has(&s, RESIDUAL)) s.without &= ~(1u << SUM);
    s.forget = rng_one_in(r, 3);
    s.eps = rng_one_in(r, 4) ? 0 : (float)exp(-5 - 10 * rng_uniform(r));
    s.threads = rng_int(r, 0, 3);
    s.spread = rng_one_in(r, 4) ? 30 : 2;
    s.middle = rng_one_in(r, 4) ? 50 : 0;
    /* Elements that may be all dropped, or all but one: their variance is 0, and only eps is left. */
    if ((s.cols < 40 || pow((double)s.dropout, (double)(s.cols - 1)) * (double)s.cols * (double)s.rows > 1e-6) && s.eps < 1e-3f) s.eps = 1e-3f;
    return s;
}

/* So long that a thread has many columns: a GPU has more of them than a simulated one. */
enum { LONG = 1 << (REAL_GPU ? 20 : 17) };

static void shapes(const kind *k, uint64_t seed) {
    static const int64_t nasty[] = {SHORT_LENGTHS, 768, LONGER_LENGTHS, 16383, 16384, 16385, 32768, 32769, 50257, 65537}; /* and clusters */
    /* Rows of whole vectors, which fill their threads or leave some without work. */
    static const int64_t even[] = {768, 1024, 1152, 1536, 1792, 2048, 2304, 2560, 3584, 4096, 5120, 8192, 8200, 10240, 11264, 11272, 12808, 16376, 16384};
    static const int64_t vectors[] = {SHORT_VECTORS};
    /* Of whole vectors of 4 and 8 bytes, in words: of lanes, a warp, blocks, with and without a rest. */
    static const int64_t words[] = {1, 7, 9, 15, 25, 33, 50, 127, 150, 250, 511, 1026, 1027, 2050, 4094, 4097};
    /* The same in vectors of 16 bytes: more than a thread block holds, and than a cluster of them does. */
#if REAL_GPU
    static const int64_t shared[] = {2049, 2304, 3000, 4096, 4097, 5120, 8192, 8200, 12288, 16384, 16385};
#else
    static const int64_t shared[] = {2049, 4097, 8200};
#endif
#ifdef TEST_SIMULATOR /* the others would take half a minute, and nothing else is done with them */
    static const int64_t huge[] = {131072, 131075};
#else
    static const int64_t huge[] = {131072, 131075, 262144, 500001};
#endif
    rng r = rng_new(seed, 400 + (uint64_t)k->dtype + 10 * (uint64_t)k->centered);
    tally t = new_tally(k, &r);
    for (int set = 0; (t.isa = instruction_set(set)) != NULL; set++) {
        for (size_t i = 0; i < sizeof nasty / sizeof nasty[0]; i++) {
            int64_t rows = nasty[i] < 1000 ? 37 : nasty[i] < 10000 ? 5 : 2;
            form s = (i + (size_t)set) % 2 ? plain(rows, nasty[i]) : full(rows, nasty[i]);
            s.eps = 1e-3f, s.forget = i % 4 < 2;
            check(&t, i % 3 == 0 ? s : spaced(s, i % 3 == 1 ? 3 : 8, 5));
        }
        tell(&t, "lengths around every limit");
        for (size_t i = 0; i < sizeof even / sizeof even[0]; i++) {
            form s = plain(3, even[i]);
            s.eps = 1e-3f, s.forget = i % 2 != 0;
            check(&t, s);
        }
        tell(&t, "rows of whole vectors");
        for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
            for (int all = 0; all < 3; all++) { /* more than a thread block takes, and fewer */
                const int64_t cols = vectors[i] * 16 / fa_dtype_bytes(k->dtype), rows = (i + (size_t)all) % 3 ? (i + (size_t)all) % 3 == 1 ? 1100 / vectors[i] : 6 : 1;
                form s = all == 1 ? full(rows, cols) : plain(rows, cols);
                s.eps = 1e-3f, s.forget = (i + (size_t)all) % 2 != 0;
                check(&t, s);
            }
        tell(&t, "short rows of whole vectors");
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
            form s = plain(i % 3 ? 37 : 5, words[i] * 4 / fa_dtype_bytes(k->dtype));
            s.eps = 1e-3f, s.forget = i % 2 != 0;
            check(&t, s);
            check(&t, spaced(s, 8 / fa_dtype_bytes(k->dtype), 5));
        }
        tell(&t, "rows of words");
        for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
            const int64_t cols = shared[i] * 16 / fa_dtype_bytes(k->dtype);
            form s = i % 2 == (size_t)k->centered ? full(3, cols) : plain(3, cols);
            if (i % 3 == 1) s.dropout = 0, s.without = i % 2 ? 1u << D_RESIDUAL : s.without;
            s.forget = i % 4 > 1;
            check(&t, s);
        }
        tell(&t, "rows of whole vectors that several thread blocks share");
#ifdef TEST_SIMULATOR
        const unsigned room = simulator_cluster_blocks;
        for (int i = 0; i < 6 && room > 1; i++) { /* for none, or for two */
            static const int64_t lengths[3] = {240000, 200000, 500002}; /* in registers, in shared memory, nowhere */
            const int64_t cols = lengths[i % 3] / fa_dtype_bytes(k->dtype);
            simulator_cluster_blocks = i / 3 ? 2 : 1;
            form s = i % 3 ? full(3, cols) : plain(5, cols);
            s.forget = i % 2;
            check(&t, s);
        }
        simulator_cluster_blocks = room;
        tell(&t, "the same on a part of a GPU without room for them");
#endif
        for (int i = 0; i < 6; i++) { /* so many that a worker of the CPU has several, with all that their gradients may go to */
            static const unsigned without[6] = {0, 1u << D_RESIDUAL, 1u << D_X | 1u << D_RESIDUAL, 1u << D_X, 0, 1u << D_RESIDUAL};
            form s = i ? full(19, i % 2 ? 8232 : 8192) : plain(19, 8192);
            if (i) s.without = without[i];
            if (i < 5) s.dropout = 0;
            check(&t, s);
        }
        tell(&t, "many long rows");
        check_random(&t, 4);
        tell(&t, "random shapes");
    }
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        form s = i % 2 == (size_t)k->centered ? full(2, huge[i]) : plain(2, huge[i]);
        s.forget = i < 2;
        check(&t, s);
    }
    tell(&t, "long rows");
    check(&t, full(0, 7)), check(&t, full(5, 0));
    tell_shortly(&t, "no rows (the gradients of weights are 0), no columns");
    for (int all = 0; all < 2; all++) {
        form s = all ? full(30000, 3) : plain(30000, 3), streamed = all ? full(4090, 1029) : plain(4090, 1029);
        s.eps = streamed.eps = 1e-3f, streamed.dropout = 0;
        check(&t, s);
        if (place == MEMORY_HOST && k->dtype != FA_F32 && all == k->centered) check(&t, streamed); /* 8 MB of halves, which go past the caches */
    }
    for (int i = 0; REAL_GPU && i < 4; i++) { /* several for each of a GPU's teams */
        form s = i / 2 ? full(i % 2 ? 700 : 5000, i % 2 ? 4096 : 512) : plain(i % 2 ? 700 : 5000, i % 2 ? 4096 : 512);
        s.dropout = 0;
        if (i / 2) s.without = i % 2 ? 1u << D_RESIDUAL : 0;
        check(&t, s);
    }
    for (int i = 0; REAL_GPU && i < 3; i++) { /* and of its clusters */
        form s = i == 1 ? full(110, 18432) : plain(i ? 40 : 220, i ? 65536 : 16640);
        s.dropout = 0, s.forget = i == 2;
        check(&t, s);
    }
    tell_shortly(&t, "many rows");
    form odd = full(68, 40); /* the last teams of a block have no row, whose rstd would be infinite */
    odd.dropout = 0, odd.eps = 0, odd.forget = 1;
    check(&t, odd);
    tell_shortly(&t, "rows without eps, fewer than teams");
    for (int i = 0; i < (SIMULATED && k != &kinds[0] ? 3 : 4); i++) { /* far from 0, where a variance from sums of squares would be nothing but rounding */
        static const int64_t lengths[] = {37, 1000, 20000, 300000};
        form s = plain(3, lengths[i]);
        s.middle = k->dtype == FA_F32 ? 3000 : k->dtype == FA_F16 ? 1000 : 100, s.forget = i % 2;
        check(&t, s);
    }
    tell(&t, "rows far from 0");
    for (int i = 0; i < 7; i++) { /* whose beginning says nothing of them */
        form s = i < 2 ? plain(3, 20000) : i < 4 ? full(3, 20000) : i < 5 ? plain(7, 500) : plain(1, i < 6 ? LONG : 100003);
        if ((i == 5 && k->dtype != FA_F32) || (i == 6 && k->dtype != FA_BF16)) continue;
        s.start = i < 4 ? 100 : 30000, s.forget = i % 2, s.dropout = 0;
        check(&t, s);
    }
    tell(&t, "rows that begin far from their mean");
}

/* ---- gradients by finite differences: of L = the sum of d_y y and of d_sum sum, in double ---- */

static double loss(const task *p) {
    const form *s = &p->s;
    double sum[64], total = 0;
    for (int64_t i = 0; i < s->rows; i++) {
        sum_row(p, i, sum, NULL);
        statistics t = measure(p->k, sum, NULL, s->cols, (double)s->eps);
        for (int64_t j = 0; j < s->cols; j++) {
            double y = (sum[j] - t.mean) * t.rstd * gamma_of(p, j) + beta_of(p, j);
            total += matrix_get(&p->m[D_Y], i, j) * y + (has(s, D_SUM) ? matrix_get(&p->m[D_SUM], i, j) * sum[j] : 0);
        }
    }
    return total;
}
static void differences(const kind *k, const form *s, rng *r) {
    static const int of[] = {X, RESIDUAL, GAMMA, BETA}, gradient[] = {D_X, D_RESIDUAL, D_GAMMA, D_BETA};
    task p = new_task(k, s, r);
    must(k->forward(&p.args, 0)), must(run_backward(&p));
    for (int g = 0; g < 4; g++) {
        matrix *m = &p.m[of[g]], *d = &p.m[gradient[g]];
        double worst = 0;
        int saved = m->dtype;
        if (!has(s, of[g]) || !has(s, gradient[g]) || (of[g] == BETA && !k->centered)) continue;
        matrix_download(d);
        for (int64_t i = 0; i < m->rows; i++)
            for (int64_t j = 0; j < m->cols; j++) {
                /* Half-precision weights move by what they can represent. */
                double at = matrix_get(m, i, j), step = saved == FA_F32 ? 0.0078125 * (1 + fabs(at)) : 0.0625 * (1 + fabs(at)), side[2], to[2];
                for (int up = 0; up < 2; up++) {
                    matrix_set(m, i, j, at + (up ? step : -step));
                    to[up] = matrix_get(m, i, j);
                    side[up] = loss(&p);
                }
                double wide = (side[1] - side[0]) / (to[1] - to[0]);
                for (int up = 0; up < 2; up++) {
                    matrix_set(m, i, j, at + (up ? step : -step) / 2);
                    to[up] = matrix_get(m, i, j);
                    side[up] = loss(&p);
                }
                double narrow = (side[1] - side[0]) / (to[1] - to[0]);
                matrix_set(m, i, j, at);
                worst = number_worse(worst, fabs((4 * narrow - wide) / 3 - matrix_get(d, i, j)) / (1 + fabs(matrix_get(d, i, j))));
            }
        tap_ok(worst < (saved == FA_F32 ? 2e-4 : 2e-3), "%s: %s by finite differences, dropout=%g%s (largest difference %.2g)", k->name, names[gradient[g]],
               (double)s->dropout, s->forget ? ", statistics computed again" : "", worst);
    }
    delete_task(&p);
}

/* ---- special values ---- */

/* Rows that are NaN, infinite, constant, or 0 do not disturb others. */
static void special(const kind *k, int64_t cols, rng *r) {
    form s = plain(6, cols);
    s.without |= 1u << D_GAMMA | 1u << D_BETA; /* which a NaN in a row makes NaN */
    task p = new_task(k, &s, r);
    for (int64_t j = 0; j < cols; j++) {
        if (j == cols / 2) matrix_set(&p.m[X], 1, j, NAN);
        if (j == cols - 1) matrix_set(&p.m[X], 2, j, INFINITY); /* its mean is infinite, too */
        matrix_set(&p.m[X], 3, j, 1.5);
        matrix_set(&p.m[X], 4, j, 0);
    }
    matrix_upload(&p.m[X]);
    run(k, &p.args);
    download(&p);
    double error = forward_error(&p), back = backward_error(&p);
    tap_ok(error <= 1 && back <= 1, "%s, %lld columns: NaN, infinity, constant rows, zeros (%.2f and %.2f of what is allowed)", k->name,
           (long long)cols, error, back);
    delete_task(&p);
}

/* What does not vary is nothing but the mean, whose rounding eps would make large. */
static void constant(const kind *k, rng *r) {
    static const int64_t lengths[] = {1, 32, 37, 128, 768, 1000, 1024, 4096, 5120, 20000, 100000};
    double worst = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths - (SIMULATED ? 2 : 0); i++) {
        form s = plain(3, lengths[i]);
        s.without |= 1u << GAMMA | 1u << BETA;
        task p = new_task(k, &s, r);
        for (int64_t j = 0; j < s.cols; j++) {
            matrix_set(&p.m[X], 0, j, k->dtype == FA_F32 ? 190000.375 : k->dtype == FA_BF16 ? 190464 : 60000);
            matrix_set(&p.m[X], 1, j, 1000.1);
            matrix_set(&p.m[X], 2, j, -3.3);
        }
        matrix_upload(&p.m[X]);
        must(k->forward(&p.args, 0));
        download(&p);
        for (int64_t row = 0; row < 3; row++)
            for (int64_t j = 0; j < s.cols; j++) worst = number_worse(worst, fabs(matrix_get(&p.m[Y], row, j)));
        delete_task(&p);
    }
    tap_ok(worst <= 1e-3, "%s: rows of equal numbers far from 0 become 0 (largest %.2g)", k->name, worst);
    int finite = 1;
    for (int i = 0; k->dtype == FA_BF16 && i < 5; i++) { /* their sum is a float, but their mean over sigma is none */
        static const int short_ones[] = {8, 24, 40, 136, 200};
        form s = plain(3, short_ones[i]);
        task p = new_task(k, &s, r);
        for (int64_t row = 0; row < 3; row++)
            for (int64_t j = 0; j < s.cols; j++) matrix_set(&p.m[X], row, j, (row ? 1.0 : -1.0) * 2e38 / (double)s.cols);
        matrix_upload(&p.m[X]);
        run(k, &p.args);
        download(&p);
        for (int64_t row = 0; row < 3; row++)
            for (int64_t j = 0; j < s.cols; j++) finite &= isfinite(matrix_get(&p.m[Y], row, j)) && isfinite(matrix_get(&p.m[D_X], row, j));
        delete_task(&p);
    }
    if (k->dtype == FA_BF16) tap_ok(finite, "%s: rows of equal numbers so far from 0 that 1 / sigma times them is infinite", k->name);
}

/* ---- the same bits: every time, in any company, with any number of threads, in place ---- */

static void determinism(const kind *k, int64_t cols, rng *r) {
    form s = full(cols < 1000 ? 70 : cols < 10000 ? 35 : 9, cols);
    rng again = *r;
    task p = new_task(k, &s, r), q = new_task(k, &s, &again);
    int threads = 1, in_place = 1;
    p.args.threads = 1;
    run(k, &p.args);
    download(&p);
    tell_columns(same_again(&p, &q, 1), &p, EVERY_TIME);
    for (int i = 1; i < 4; i++) threads &= same_again(&p, &q, some_threads(i));
    tell_columns(threads, &p, ANY_THREADS);
    /* Each row by itself: without dropout, whose words depend on the number of the row. The gradients of weights are
     * the last row's. */
    p.args.dropout = q.args.dropout = 0;
    run(k, &p.args);
    download(&p);
    run_rows(&q);
    int alone = same(&p.m[RSTD], &q.m[RSTD]) && (!k->centered || same(&p.m[MEAN], &q.m[MEAN]));
    for (int m = SUM; m <= D_RESIDUAL; m++) alone &= same(&p.m[m], &q.m[m]);
    tell_columns(alone, &p, BY_ITSELF);
    /* sum in the place of the residual and y in that of x; then sum in that of x and y in that of the residual. */
    p.args.dropout = q.args.dropout = 0.25f;
    run(k, &p.args);
    download(&p);
    for (int swap = 0; swap < 2; swap++) {
        matrix *sum = &q.m[swap ? X : RESIDUAL], *y = &q.m[swap ? RESIDUAL : X];
        matrix_upload(&p.m[X]), matrix_upload(&p.m[RESIDUAL]);
        memory_put(place, q.m[X].data, p.m[X].host, p.m[X].bytes), memory_put(place, q.m[RESIDUAL].data, p.m[RESIDUAL].host, p.m[RESIDUAL].bytes);
        q.args.sum = sum->at, q.args.y = y->at;
        must(k->forward(&q.args, 0));
        matrix_download(sum), matrix_download(y);
        in_place &= same(sum, &p.m[SUM]) && same(y, &p.m[Y]);
        /* d_x in the place of d_y and d_residual in that of d_sum; then d_x in that of the sum, and d_residual in
         * that of d_y. */
        memory_put(place, q.m[D_Y].data, p.m[D_Y].host, p.m[D_Y].bytes), memory_put(place, q.m[D_SUM].data, p.m[D_SUM].host, p.m[D_SUM].bytes);
        matrix *d_x = swap ? sum : &q.m[D_Y], *d_residual = swap ? &q.m[D_Y] : &q.m[D_SUM];
        q.args.d_x = d_x->at, q.args.d_residual = d_residual->at;
        must(k->backward(&q.args, 0));
        download(&q);
        in_place &= same(d_x, &p.m[D_X]) && same(d_residual, &p.m[D_RESIDUAL]) && same(&p.m[D_GAMMA], &q.m[D_GAMMA]) &&
                    (!k->centered || same(&p.m[D_BETA], &q.m[D_BETA]));
    }
    tell_columns(in_place, &p, IN_PLACE);
    delete_task(&p), delete_task(&q);
}

/* Dropout keeps the share that it should, and every call of its own numbers another. */
static void drops(const kind *k, rng *r) {
    form s = full(50, 1000), other;
    s.without |= 1u << RESIDUAL;
    task p = new_task(k, &s, r);
    int64_t zeros = 0, differ = 0;
    must(k->forward(&p.args, 0));
    download(&p);
    for (int64_t i = 0; i < 50; i++)
        for (int64_t j = 0; j < 1000; j++) zeros += matrix_get(&p.m[SUM], i, j) == 0;
    other = s, other.offset += 50 * 1000 / 4;
    for (int64_t i = 0; i < 50; i++)
        for (int64_t j = 0; j < 1000; j++) differ += kept(&s, i, j) != kept(&other, i, j);
    tap_ok(fabs((double)zeros - 12500) < 500 && differ > 15000, "%s: a dropout of 0.25 drops %lld of 50000, the next call others", k->name, (long long)zeros);
    p.args.dropout = 1;
    must(k->forward(&p.args, 0));
    download(&p);
    zeros = 0;
    for (int64_t i = 0; i < 50; i++)
        for (int64_t j = 0; j < 1000; j++) zeros += matrix_get(&p.m[SUM], i, j) == 0;
    tap_ok(zeros == 50000, "%s: a dropout of 1 drops all", k->name);
    delete_task(&p);
}

/* ---- sizes ---- */

static void far_apart(rng *r) {
    form s = plain(2, 64);
    task p = new_task(&kinds[2], &s, r);
    unsigned char *from = (unsigned char *)memory_new(place, FAR_BYTES), *to = (unsigned char *)memory_new(place, FAR_BYTES);
    far_put(from, &p.m[X]);
    p.args.x.data = from, p.args.y.data = to, p.args.x.stride_row = p.args.y.stride_row = FAR;
    p.args.d_x.data = to + 128 * 2, p.args.d_x.stride_row = FAR - 128;
    must(p.k->forward(&p.args, 0));
    download(&p);
    far_get(&p.m[Y], to, FAR);
    double worst = forward_error(&p);
    must(p.k->backward(&p.args, 0)); /* its second row where the forward's was */
    download(&p);
    far_get(&p.m[D_X], to + 128 * 2, FAR - 128);
    worst = number_worse(worst, backward_error(&p));
    tap_ok(worst <= 1, "rows that are 2^31 elements apart (%.2f of what is allowed)", worst);
    memory_delete(place, from, FAR_BYTES), memory_delete(place, to, FAR_BYTES);
    delete_task(&p);
}

/* ---- errors ---- */

static void errors(const kind *k, rng *r) {
    const form s = full(3, 10);
    task p;
    for (int backward = 0; backward < 2; backward++) {
        static const int matrices[] = {X, RESIDUAL, SUM, Y, D_Y, D_SUM, D_X, D_RESIDUAL};
        sizes_fail(k, s, backward, r);
        FRESH, p.args.eps = -1, fails(&p, backward, "eps is -1", "1e-5");
        FRESH, p.args.eps = NAN, fails(&p, backward, "eps is nan", "from 0 on");
        FRESH, p.args.eps = INFINITY, fails(&p, backward, "eps is inf", "from 0 on");
        FRESH, p.args.dropout = -0.5f, fails(&p, backward, "dropout is -0.5", "from 0 to 1");
        FRESH, p.args.dropout = 1.5f, fails(&p, backward, "dropout is 1.5", "from 0 to 1");
        FRESH, p.args.dropout = NAN, fails(&p, backward, "dropout is nan", "from 0 to 1");
        FRESH, p.args.threads = -1, fails(&p, backward, "threads is -1", "0 (all)");
        for (int i = 0; i < 8; i++) {
            const int m = matrices[i], needed = m == (backward ? D_Y : Y) || (m == X && !backward);
            if (backward ? m != X && m != RESIDUAL && m != Y : i < 4)
                matrix_fails(k, s, backward, m, needed, backward ? m == D_X || m == D_RESIDUAL : m == SUM || m == Y, r);
        }
        FRESH, p.args.gamma = (const char *)p.args.gamma + 1, fails(&p, backward, "gamma is 0x", "aligned to");
        if (backward) FRESH, p.args.d_gamma = (char *)p.args.d_gamma + 1, fails(&p, 1, "d_gamma is 0x", "aligned to");
        FRESH, p.args.rstd = (float *)(void *)((char *)p.args.rstd + 2), fails(&p, backward, "rstd is 0x", "aligned to 4");
        if (k->centered) {
            if (!backward) FRESH, p.args.beta = (const char *)p.args.beta + 1, fails(&p, 0, "beta is 0x", "aligned to");
            if (backward) FRESH, p.args.d_beta = (char *)p.args.d_beta + 1, fails(&p, 1, "d_beta is 0x", "aligned to");
            FRESH, p.args.mean = (float *)(void *)((char *)p.args.mean + 2), fails(&p, backward, "mean is 0x", "aligned to 4");
        }
    }
    FRESH, p.args.y.data = p.args.sum.data, fails(&p, 0, "sum.data and y.data are both", "two matrices");
    FRESH, p.args.rstd = (float *)p.args.y.data, fails(&p, 0, "has a place in y", "memory of its own");
    FRESH, p.args.rstd = (float *)(void *)((char *)p.args.x.data - 4), fails(&p, 0, "has a place in x", "memory of its own");
    FRESH, p.args.d_gamma = (char *)p.args.d_x.data + 8, fails(&p, 1, "has a place in d_x", "memory of its own");
#define UP(at, to) (((uintptr_t)(at) + (to) - 1) & ~(uintptr_t)((to) - 1))
    FRESH, p.args.rstd = (float *)UP(p.args.gamma, 4), fails(&p, 0, "gamma, ", "two arrays");
    FRESH, p.args.workspace = (void *)UP(p.args.d_x.data, 16), fails(&p, 1, "workspace, ", "memory of its own");
    FRESH, p.args.workspace = (void *)UP(p.args.d_gamma, 16), fails(&p, 1, "and workspace, ", "two arrays");
#undef UP
    FRESH, p.args.sum = p.args.x, p.args.sum.data = (char *)p.args.x.data + 8, fails(&p, 0, "sum, at", "share some of their");
    FRESH, p.args.sum = p.args.x, p.args.sum.data = (char *)p.args.x.data - 8, fails(&p, 0, "and x, at", "either all, or none");
    FRESH, p.args.d_x = p.args.d_y, p.args.d_x.data = (char *)p.args.d_y.data + 2 * p.args.d_y.stride_row * number_bytes(k->dtype) - 8, fails(&p, 1, "d_x, at", "share some of their");
    FRESH, p.args.sum = p.args.x, p.args.sum.stride_row++, fails(&p, 0, "sum is written in place of x", "the same is needed");
    FRESH, p.args.d_x = p.args.d_y, p.args.d_x.stride_row++, fails(&p, 1, "d_x is written in place of d_y", "the same is needed");
    FRESH, p.args.y.stride_row = INT64_MAX, fails(&p, 0, "y.stride_row is 9223372036854775807", "more than 2^48 elements");
    if (k->centered) {
        FRESH, p.args.mean = p.args.rstd, fails(&p, 0, "share memory", "two arrays");
        FRESH, p.args.mean = p.args.rstd + 1, fails(&p, 0, "and rstd, ", "two arrays");
        FRESH, p.args.d_beta = p.args.d_gamma, fails(&p, 1, "share memory", "two arrays");
        FRESH, p.args.d_beta = p.args.rstd, fails(&p, 1, "d_beta, ", "two arrays");
    }
    FRESH, p.args.d_x.data = p.args.d_residual.data, fails(&p, 1, "d_x.data and d_residual.data are both", "two matrices");
    FRESH, p.args.sum.data = NULL, fails(&p, 1, "sum.data is NULL", "dropout or a residual");
    FRESH, p.args.sum.data = NULL, p.args.dropout = 0, fails(&p, 1, "sum.data is NULL", "dropout or a residual");
    FRESH, p.args.sum.data = NULL, p.args.residual.data = NULL, fails(&p, 1, "sum.data is NULL", "dropout or a residual");
    FRESH, p.args.workspace = NULL, fails_with(FA_ERROR_WORKSPACE, &p, 1, "workspace is NULL", "bytes are needed");
    FRESH, p.args.workspace_bytes--, fails_with(FA_ERROR_WORKSPACE, &p, 1, "workspace_bytes is ", "_workspace() says");
    FRESH, p.args.workspace = (char *)p.args.workspace - 4, fails_with(FA_ERROR_WORKSPACE, &p, 1, "workspace is 0x", "aligned to 16");
    FRESH, p.args.rows = 0, p.args.rstd = (float *)(void *)((char *)p.args.d_gamma + 4);
    tap_ok(k->backward(&p.args, 0) == FA_OK, "%s: an array without elements may lie anywhere", k->name);
    delete_task(&p);
    fails_without_args(k, 0), fails_without_args(k, 1);
    {
        fa_layernorm_args zero;
        memset(&zero, 0, sizeof zero);
        tap_ok(succeeds(k, &zero) && k->workspace(&zero) == 0, "%s: all-zero arguments are valid", k->name);
        zero.rows = 1000;
        tap_ok(succeeds(k, &zero), "%s: without columns pointers may be NULL", k->name);
        zero.cols = 1000;
        size_t statistics = k->workspace(&zero);
        tap_ok(statistics == 0 || (place == MEMORY_DEVICE && statistics == 8000),
               "%s: room for statistics at most where no gradients of weights are wanted", k->name);
        zero.d_gamma = &zero;
        tap_ok(k->workspace(&zero) >= 4000 && k->workspace(&zero) % 64 == 0, "%s: else some is (%zu bytes)", k->name, k->workspace(&zero));
    }
}

/* NAME_workspace() does not know where matrices lie, and yet a backward never needs more than it says, nor more than
 * it says of more rows. Nothing is launched: there is no workspace, whose size the message tells; nor is any of the
 * memory there that these addresses are of. */
static void workspaces(const kind *k, rng *r) {
    static const int64_t cols[] = {24, 136, 768, 1000, 1024, 4096, 20000};
    const int bytes = fa_dtype_bytes(k->dtype);
    int wrong = 0;
    for (int i = 0; i < 4000 && sizeof(void *) == 8; i++) {
        fa_layernorm_args a;
        uintptr_t at = (uintptr_t)1 << 44;
        memset(&a, 0, sizeof a);
        a.rows = (int64_t)exp(rng_uniform(r) * log(40000)), a.eps = 1;
        a.cols = i % 2 ? cols[rng_int(r, 0, 6)] : (int64_t)exp(rng_uniform(r) * log(70000));
        const int shift = rng_one_in(r, 3) ? 0 : rng_int(r, 1, 15) / bytes * bytes, gap = rng_one_in(r, 2) ? 0 : rng_int(r, 1, 16);
        fa_matrix *const matrices[] = {&a.x, &a.d_y, &a.sum, &a.d_sum, &a.d_x, &a.d_residual};
        for (int m = 0; m < 6; m++, at += (uintptr_t)1 << 40)
            if (m < 2 || rng_one_in(r, 2)) *matrices[m] = fa_matrix_of((void *)(at + (uintptr_t)shift), a.cols + gap);
        if (a.sum.data && rng_one_in(r, 2)) a.dropout = 0.5f;
        a.d_gamma = (void *)at, a.gamma = rng_one_in(r, 2) ? (const void *)(at + 1024 * 1024) : NULL;
        if (rng_one_in(r, 2)) a.rstd = (float *)(at + 2048 * 1024), a.mean = k->centered ? (float *)(at + 3072 * 1024) : NULL;
        unsigned long long needed = 0;
        const unsigned long long says = k->workspace(&a);
        fa_layernorm_args fewer = a;
        fewer.rows = rng_int(r, 1, (int)a.rows);
        const fa_status status = k->backward(&a, 0);
        const char *number = strstr(fa_last_error(), "workspace is NULL: ");
        if (number) sscanf(number, "workspace is NULL: %llu bytes", &needed);
        if (status == FA_ERROR_WORKSPACE && needed == says && k->workspace(&fewer) <= says) continue;
        if (wrong++ < 3)
            tap_note("%s, %lld rows of %lld columns, shift %d bytes, gap %d: %llu bytes are needed, and workspace() says %llu, and of %lld rows %zu (%s)", k->name,
                     (long long)a.rows, (long long)a.cols, shift, gap, needed, says, (long long)fewer.rows, k->workspace(&fewer), fa_last_error());
    }
    tap_ok(wrong == 0, "%s: no backward needs more of a workspace than is said of it, or of more rows (%d of 4000 do)", k->name, wrong);
}

/* ---- GPUs: streams, graphs, errors that were there before ---- */

#if defined(__CUDACC__)
/* As many rows as keep all blocks of a sweep busy, whether accesses of 16 bytes can be made or not: the workspace is
 * enough. */
static void many_rows(const kind *k, int64_t cols) {
    const int64_t rows = 2200;
    const int bytes = fa_dtype_bytes(k->dtype);
    const size_t all = (size_t)(rows * cols * bytes);
    void *data = memory_new(place, all), *sums = memory_new(place, 2 * sizeof(float) * (size_t)cols);
    for (int odd = 0; odd < 2; odd++) {
        fa_layernorm_args a;
        memset(&a, 0, sizeof a);
        a.rows = rows - odd, a.cols = cols, a.eps = 1;
        a.x = a.d_y = a.d_x = fa_matrix_of((char *)data + odd * bytes, cols);
        a.d_gamma = sums, a.d_beta = k->centered ? (char *)sums + sizeof(float) * (size_t)cols : NULL;
        a.workspace_bytes = k->workspace(&a);
        a.workspace = memory_new(place, a.workspace_bytes);
        fa_status status = k->backward(&a, 0);
        tap_ok(status == FA_OK && cudaDeviceSynchronize() == cudaSuccess, "%s, %lld columns: the workspace is enough for many %s rows (%s)",
               k->name, (long long)cols, odd ? "odd" : "even", fa_status_string(status));
        memory_delete(place, a.workspace, a.workspace_bytes);
    }
    memory_delete(place, data, all), memory_delete(place, sums, 2 * sizeof(float) * (size_t)cols);
}

/* Rows of a matrix that is larger than caches are: each has the bits that it has by itself. */
static void large(const kind *k, int64_t cols, rng *r) {
    const int bytes = fa_dtype_bytes(k->dtype);
    const int64_t rows = ((int64_t)130 << 20) / (cols * bytes) + 3;
    const size_t row = (size_t)(cols * bytes), all = (size_t)rows * row;
    form s = plain(3, cols);
    task p = new_task(k, &s, r);
    fa_layernorm_args a = p.args;
    void *data = memory_new(place, all), *per_row = memory_new(place, 2 * sizeof(float) * (size_t)rows);
    unsigned char *y = (unsigned char *)malloc(all);
    float *found = (float *)malloc(2 * sizeof(float) * (size_t)rows), mean, rstd;
    a.rows = rows, a.x.stride_row = 0, a.y = fa_matrix_of(data, cols);
    a.mean = (float *)per_row, a.rstd = a.mean + rows;
    const fa_status status = k->forward(&a, 0) == FA_OK ? k->forward(&p.args, 0) : FA_ERROR_CUDA;
    memory_get(place, y, data, all), memory_get(place, found, per_row, 2 * sizeof(float) * (size_t)rows);
    download(&p);
    mean = (float)matrix_get(&p.m[MEAN], 0, 0), rstd = (float)matrix_get(&p.m[RSTD], 0, 0);
    int64_t others = 0;
    for (int64_t i = 0; i < rows; i++) {
        others += memcmp(y + (size_t)i * row, y, row) != 0 || found[rows + i] != rstd || (k->centered && found[i] != mean);
        for (int64_t j = 0; i == 0 && j < cols; j++) others += fa_load_element(y, j, k->dtype) != (float)matrix_get(&p.m[Y], 0, j);
    }
    tap_ok(status == FA_OK && others == 0, "%s, %lld columns: rows of a large matrix are as by themselves (%lld differ of %lld)", k->name,
           (long long)cols, (long long)others, (long long)rows);
    free(y), free(found);
    memory_delete(place, data, all), memory_delete(place, per_row, 2 * sizeof(float) * (size_t)rows);
    delete_task(&p);
}

/* Threads whose calls need different amounts of shared memory of one kernel. */
typedef struct caller {
    const kind *k;
    task p;
    int failed;
} caller;
static void *call_often(void *of) {
    caller *c = (caller *)of;
    for (int i = 0; i < 5000; i++) c->failed += c->k->backward(&c->p.args, 0) != FA_OK;
    return NULL;
}
static void concurrency(const kind *k, rng *r) {
    caller callers[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        form s = plain(64, i ? 4096 : 8192);
        caller c = {k, new_task(k, &s, r), 0};
        callers[i] = c;
    }
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, call_often, &callers[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL), delete_task(&callers[i].p);
    tap_ok(callers[0].failed + callers[1].failed == 0, "%s: two threads call at once with 8192 and 4096 columns (%d, %d of 5000 fail)", k->name,
           callers[0].failed, callers[1].failed);
}

#endif

/* A row of equal elements is nothing but its mean, also where that is rounded: 0 is left, and eps. With dropout of
 * next to nothing rows are looked at in another way. (Rows of whole vectors, on a GPU, may differ from 0 by the
 * rounding of what their mean was off by: constant().) */
static void equal_elements(const kind *k, float value, float dropout) {
    enum { MOST = 70000 };
    const size_t bytes = MOST * sizeof(float);
    float *x = (float *)malloc(bytes), rstd = NAN;
    double worst = 0, off = 0;
    int ran = 1;
    fa_layernorm_args a;
    memset(&a, 0, sizeof a);
    a.x = fa_matrix_of(memory_new(place, bytes), MOST), a.y = fa_matrix_of(memory_new(place, bytes), MOST);
    a.rstd = (float *)memory_new(place, sizeof rstd);
    a.rows = 1, a.eps = 1e-5f, a.dropout = dropout;
    for (a.cols = place == MEMORY_HOST ? 1280 : 1025; a.cols < MOST; a.cols = place == MEMORY_HOST ? 5 * a.cols + 1 : a.cols * 5 / 4 | 1) {
        for (int64_t i = 0; i < a.cols; i++) x[i] = value;
        memory_put(place, a.x.data, x, (size_t)a.cols * sizeof(float));
        for (int64_t i = 0; i < a.cols; i++) x[i] = NAN;
        memory_put(place, a.y.data, x, (size_t)a.cols * sizeof(float)), rstd = NAN, memory_put(place, a.rstd, &rstd, sizeof rstd);
        ran &= k->forward(&a, 0) == FA_OK;
        memory_get(place, x, a.y.data, (size_t)a.cols * sizeof(float)), memory_get(place, &rstd, a.rstd, sizeof rstd);
        for (int64_t i = 0; i < a.cols; i++) worst = number_worse(worst, fabs((double)x[i]));
        off = number_worse(off, fabs((double)rstd - 316.2278));
    }
    tap_ok(ran && worst == 0 && off < 1e-3, "%s: rows of elements that are all %g, dropout %g: y up to %g, rstd off by %g", k->name, (double)value,
           (double)dropout, worst, off);
    memory_delete(place, a.x.data, bytes), memory_delete(place, a.y.data, bytes), memory_delete(place, a.rstd, sizeof rstd);
    free(x);
}

/* Long rows with a few elements whose squares are far above all others, and gradients alike: sums that are large
 * from the beginning on take up many small terms. */
static void top_heavy(const kind *k, int64_t cols, rng *r) {
    form s = plain(3, cols);
    s.without |= 1u << GAMMA | 1u << BETA;
    s.start = 1; /* so that the mean may be off by what small numbers after large ones may */
    task p = new_task(k, &s, r);
    for (int i = 0; i < 3; i++)
        for (int64_t j = 0; j < cols; j++) {
            const double x = j < 64 ? 4000 << i : j % 2 ? 1 : -1;
            matrix_set(&p.m[X], i, j, x), matrix_set(&p.m[D_Y], i, j, x);
        }
    const char *isa;
    for (int set = 0; (isa = instruction_set(set)) != NULL; set++) {
        upload(&p);
        must(k->forward(&p.args, 0)), must(run_backward(&p));
        download(&p);
        double error = forward_error(&p), back = backward_error(&p);
        tap_ok(error <= 1 && back <= 1, "%s, %s, %lld columns: a few elements, and then many far below (%.2f and %.2f of what is allowed)", k->name, isa,
               (long long)cols, error, back);
    }
    delete_task(&p);
}

/* Numbers whose squares are above what a float can be: rstd and y are 0, and nothing is NaN. */
static void huge_numbers(const kind *k, int64_t cols, rng *r) {
    form s = plain(2, cols);
    s.without |= 1u << GAMMA | 1u << BETA;
    task p = new_task(k, &s, r);
    const char *isa;
    for (int set = 0; (isa = instruction_set(set)) != NULL; set++) {
        int wrong = 0;
        double first = 0;
        for (double size = 1e21; size < 2e33; size *= 10) {
            for (int i = 0; i < 2; i++)
                for (int64_t j = 0; j < cols; j++) matrix_set(&p.m[X], i, j, (j % 2 ? -size : size) * (0.5 + 0.5 * rng_uniform(r)));
            upload(&p);
            must(k->forward(&p.args, 0));
            download(&p);
            for (int i = 0; i < 2; i++) {
                int bad = !(matrix_get(&p.m[RSTD], 0, i) == 0);
                for (int64_t j = 0; j < cols; j++) bad += !(matrix_get(&p.m[Y], i, j) == 0);
                if (bad && !wrong) first = size;
                wrong += bad;
            }
        }
        tap_ok(!wrong, "%s, %s, %lld columns: rstd and y are 0 where squares are infinite (%d are not, from numbers of %g on)", k->name, isa, (long long)cols, wrong,
               first);
    }
    delete_task(&p);
}

/* rstd, a float, of halves that are spread evenly, whose squares are rounded alike: as good as in fp32, whatever y's
 * type. */
static void precise_statistics(const kind *k, int64_t cols, rng *r) {
    enum { ROWS = 100 };
    form s = plain(ROWS, cols);
    task p = new_task(k, &s, r);
    double expected[ROWS];
    for (int i = 0; i < ROWS; i++) {
        double mean = 0, squares = 0;
        for (int64_t j = 0; j < cols; j++) matrix_set(&p.m[X], i, j, 2 * rng_uniform(r) - 1), mean += matrix_get(&p.m[X], i, j) / (double)cols;
        for (int64_t j = 0; j < cols; j++) squares += pow(matrix_get(&p.m[X], i, j) - (k->centered ? mean : 0), 2);
        expected[i] = 1 / sqrt(squares / (double)cols + (double)s.eps);
    }
    const char *isa;
    for (int set = 0; (isa = instruction_set(set)) != NULL; set++) {
        double worst = 0;
        upload(&p);
        must(k->forward(&p.args, 0));
        download(&p);
        for (int i = 0; i < ROWS; i++) worst = number_worse(worst, fabs(matrix_get(&p.m[RSTD], 0, i) / expected[i] - 1));
        tap_ok(worst <= 4e-7, "%s, %s, %lld columns: rstd is off by %.2g of itself", k->name, isa, (long long)cols, worst);
    }
    delete_task(&p);
}

/* The same of a long row whose squares are all alike, so that a float that they were added up in would be rounded to
 * the same side many times. */
static void long_statistics(const kind *k, int64_t cols, rng *r) {
    form s = plain(1, cols);
    task p = new_task(k, &s, r);
    for (int64_t j = 0; j < cols; j++) matrix_set(&p.m[X], 0, j, j % 2 ? -1.321 : 1.321);
    const double x = matrix_get(&p.m[X], 0, 0), expected = 1 / sqrt(x * x + (double)s.eps);
    const char *isa;
    for (int set = 0; (isa = instruction_set(set)) != NULL; set++) {
        upload(&p);
        must(k->forward(&p.args, 0));
        download(&p);
        const double off = fabs(matrix_get(&p.m[RSTD], 0, 0) / expected - 1);
        tap_ok(off <= 4e-7, "%s, %s, %lld columns that are all alike: rstd is off by %.2g of itself", k->name, isa, (long long)cols, off);
    }
    delete_task(&p);
}

int main(void) {
    uint64_t seed;
    rng r;
    if (!matrix_place(&place, "layernorm")) return tap_end();
    seed = rng_seed();
    r = rng_new(seed, 410);
    errors(&kinds[0], &r);
    errors(&kinds[5], &r);
    for (int i = 0; i < KINDS; i++) shapes(&kinds[i], seed);
    for (int i = 0; i < KINDS; i += 3) {
        form s = plain(5, 21), all = full(5, 21);
        differences(&kinds[i], &s, &r), s.forget = 1, differences(&kinds[i], &s, &r);
        differences(&kinds[i], &all, &r), all.forget = 1, all.dropout = 0, differences(&kinds[i], &all, &r);
    }
    for (int i = 0; i < KINDS; i++) {
        const int64_t lengths[] = {100, 3001, 40001, 140001};
        for (int c = 0; c < (SIMULATED && i != 2 ? 3 : 4); c++) special(&kinds[i], lengths[c], &r); /* simulated, one type will do for what takes longest */
        special(&kinds[i], 32, &r);
        if (kinds[i].centered) constant(&kinds[i], &r);
        for (int c = 0; c < (SIMULATED && i != 2 ? 2 : 3); c++) determinism(&kinds[i], lengths[c], &r);
        determinism(&kinds[i], 512, &r); /* rows that fill some lanes, of which a block has more than there are rows */
        broadcast(&kinds[i], full(5, 300), &r);
        drops(&kinds[i], &r);
        workspaces(&kinds[i], &r);
    }
    far_apart(&r);
    for (int i = 0; i < KINDS; i++) {
        const int64_t lengths[] = {200, 768, 3001, 4096, 16384, 40000};
        for (int c = 0; i % 3 != 1 && c < (SIMULATED ? 4 : 6); c++) huge_numbers(&kinds[i], lengths[c], &r);
        precise_statistics(&kinds[i], 1280, &r), precise_statistics(&kinds[i], 1283, &r);
    }
    for (int i = 0; i < KINDS && place == MEMORY_HOST; i += 3) top_heavy(&kinds[i], 400001, &r), long_statistics(&kinds[i], 1 << 20, &r);
    for (int i = 0; i < 4; i++) equal_elements(&kinds[0], i / 2 ? 77777.77f : 12345.67f, i % 2 ? 1e-9f : 0);
#if defined(__CUDACC__)
    streams(&kinds[0], full(6, 1000), "n_f32, 1000 columns: ", 1, &r), streams(&kinds[5], full(6, 1000), "r_bf16, 1000 columns: ", 1, &r);
    streams(&kinds[2], full(6, 18432), "n_bf16, 18432 columns: ", 1, &r), streams(&kinds[3], full(6, 65536), "r_f32, 65536 columns: ", 1, &r); /* clusters */
#if !defined(TEST_SIMULATOR) /* it would take minutes */
    streams(&kinds[0], full(6, 300000), "n_f32, 300000 columns: ", 1, &r), streams(&kinds[5], full(6, 300000), "r_bf16, 300000 columns: ", 1, &r);
    for (int i = 0; i < KINDS; i++) determinism(&kinds[i], 40000, &r);
    for (int i = 0; i < KINDS; i += 2) determinism(&kinds[i], 400001, &r); /* more than a cluster holds */
    for (int64_t cols = 64; cols <= 65536; cols *= 4) many_rows(&kinds[2], cols), many_rows(&kinds[3], cols);
    for (int i = 1; i < KINDS; i += 3) large(&kinds[i], 768, &r), large(&kinds[i], 1024, &r), large(&kinds[i], 8192, &r);
    for (int i = 2; i < KINDS; i += 3) concurrency(&kinds[i], &r);
#endif
    const kind host = {"n_host", INSTANCE(n_host), FA_F32, FA_F32, 1};
    on_the_host(&host, full(9, 777), &r);
#endif
    return tap_end();
}
