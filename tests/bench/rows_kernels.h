/* The kernels that rows.cu times: their tensors, what a direction must move, the lengths of the rows, and each
 * direction in float64 for one row. */
#ifndef FA_BENCH_ROWS_KERNELS_H
#define FA_BENCH_ROWS_KERNELS_H

#include <math.h>
#include <string.h>

#include <fa/fa.h>

enum { MAX_TENSORS = 16, MAX_WRITTEN = 6 };

typedef enum {
    MATRIX,       /* (rows, cols), in the instance's type */
    ROW_VALUE,    /* a float for each row */
    COLUMN_VALUE, /* a float for each column */
    TARGET,       /* an int for each row, a column */
    COSINE,       /* floats (POSITIONS, ANGLES): row i of a matrix is at position i % POSITIONS */
    SINE
} tensor_form;
enum { POSITIONS = 4096, ANGLES = 64 };

typedef struct {
    const char *name;
    int slot; /* in check.value[] */
    tensor_form form;
    float deviation; /* of an input's values, whose mean is 0; 0: it is made by a kernel. An input that is written
                        is one that a kernel works on in place */
} tensor_spec;

/* One row, on its way through a check: value[slot] has a tensor's elements of this row. Or one column, likewise. */
typedef struct check {
    double *value[MAX_TENSORS];
    double *before; /* a row of the tensor that the kernel works on in place, as it was */
    int64_t rows, cols;
    int dtype;
    double worst; /* error as a share of what is allowed */
} check;

typedef struct {
    double useful; /* matrices that are read or written */
    int only_reads;
    const char *written[MAX_WRITTEN]; /* names of the results */
    void (*check_row)(check *c);
    void (*check_column)(check *c); /* NULL: nothing depends on a whole column */
} direction;

typedef struct {
    const char *name;
    tensor_spec tensors[MAX_TENSORS];
    direction way[2];
    int64_t columns[8];
} kernel_spec;

/* ------------------------------------------------------------------ elements */

/* 64 random bits for each i of a stream (splitmix64's finaliser: Steele, Lea and Flood 2014). */
FA_HOOK uint64_t hash(uint32_t stream, uint64_t i) {
    uint64_t z = (i + ((uint64_t)(stream + 1) << 40)) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
/* Near normal: the sum of four 16-bit uniforms, whose deviation is 65536 / sqrt(3). */
FA_HOOK float element(uint32_t stream, uint64_t i, float deviation) {
    uint64_t r = hash(stream, i);
    int sum = (int)(r & 0xFFFF) + (int)(r >> 16 & 0xFFFF) + (int)(r >> 32 & 0xFFFF) + (int)(r >> 48) - 131070;
    return (float)sum * (deviation * 2.6429e-5f);
}
FA_HOOK int is_nan(const void *from, size_t i, int dtype) {
    if (dtype == FA_BF16) return (((const uint16_t *)from)[i] & 0x7FFF) > 0x7F80;
    if (dtype == FA_F16) return (((const uint16_t *)from)[i] & 0x7FFF) > 0x7C00;
    return (((const uint32_t *)from)[i] & 0x7FFFFFFF) > 0x7F800000;
}

/* --------------------------------------------------------------------- check */

/* A result may differ from the exact one by half a unit in the last place of its type, and by `slack` of fp32
 * arithmetic. */
static void expect(check *c, double got, double exact, double slack, int dtype) {
    double unit = dtype == FA_BF16 ? 0x1p-8 : dtype == FA_F16 ? 0x1p-11 : 0x1p-24;
    double least = dtype == FA_F16 ? 0x1p-25 : dtype == FA_BF16 ? 0x1p-134 : 0x1p-150; /* below the normal numbers */
    double share = fabs(got - exact) / (fmax(unit * fabs(exact), least) + slack);
    if (!(share <= c->worst)) c->worst = share; /* a NaN is kept */
}

/* ------------------------------------------------------------------- softmax */

enum { SOFTMAX_X, SOFTMAX_Y, SOFTMAX_D_Y, SOFTMAX_D_X };
static void check_softmax_forward(check *c) {
    const double *x = c->value[SOFTMAX_X], *y = c->value[SOFTMAX_Y];
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < c->cols; j++) largest = fmax(largest, x[j]);
    for (int64_t j = 0; j < c->cols; j++) sum += exp(x[j] - largest);
    for (int64_t j = 0; j < c->cols; j++) {
        double exact = exp(x[j] - largest) / sum; /* fp32 rounds the exponent, a multiple of 2^-24 of it; a CPU's exponentials of halves, and their sum, are off by up to 2.7e-6 */
        expect(c, y[j], exact, exact * ((c->dtype == FA_F32 ? 2e-6 : 2e-6 + 2 * 2.7e-6) + 2e-7 * (largest - x[j])), c->dtype);
    }
}
static void check_softmax_backward(check *c) {
    const double *y = c->value[SOFTMAX_Y], *d_y = c->value[SOFTMAX_D_Y], *d_x = c->value[SOFTMAX_D_X];
    double sum = 0, size = 0;
    for (int64_t j = 0; j < c->cols; j++) sum += y[j] * d_y[j], size += fabs(y[j] * d_y[j]);
    for (int64_t j = 0; j < c->cols; j++)
        expect(c, d_x[j], y[j] * (d_y[j] - sum), 1.5e-6 * y[j] * (fabs(d_y[j]) + size), c->dtype);
}

/* ---------------------------------------------------------------------- norm */

enum {
    NORM_X,
    NORM_Y,
    NORM_GAMMA,
    NORM_BETA,
    NORM_MEAN,
    NORM_RSTD,
    NORM_RESIDUAL,
    NORM_SUM,
    NORM_D_Y,
    NORM_D_SUM,
    NORM_D_X,
    NORM_D_GAMMA,
    NORM_D_BETA
};
/* What is not there in a root-mean-square norm, or without a residual, is NULL. */
static void check_norm_forward(check *c) {
    double *const *v = c->value, mean = 0, square = 0, size = 0;
    double n = (double)c->cols;
#define NORM_S(j) (v[NORM_X][j] + (v[NORM_RESIDUAL] ? v[NORM_RESIDUAL][j] : 0))
    for (int64_t j = 0; j < c->cols; j++) mean += NORM_S(j) / n, size += fabs(NORM_S(j)) / n;
    if (!v[NORM_MEAN]) mean = 0;
    for (int64_t j = 0; j < c->cols; j++) square += (NORM_S(j) - mean) * (NORM_S(j) - mean) / n;
    double rstd = 1 / sqrt(square + (double)1e-5f);
    if (v[NORM_MEAN]) expect(c, v[NORM_MEAN][0], mean, 1e-6 * size, FA_F32);
    expect(c, v[NORM_RSTD][0], rstd, 2e-6 * rstd, FA_F32);
    for (int64_t j = 0; j < c->cols; j++) {
        double beta = v[NORM_BETA] ? v[NORM_BETA][j] : 0, normal = (NORM_S(j) - mean) * rstd, gamma = v[NORM_GAMMA][j];
        expect(c, v[NORM_Y][j], normal * gamma + beta, 2e-6 * (fabs(gamma) * (fabs(normal) + 1) + fabs(beta)),
               c->dtype);
        if (v[NORM_SUM]) expect(c, v[NORM_SUM][j], NORM_S(j), 1e-7 * fabs(NORM_S(j)), c->dtype);
    }
#undef NORM_S
}
static double norm_normal(const check *c, int64_t j, int64_t row) {
    const double *s = c->value[NORM_SUM] ? c->value[NORM_SUM] : c->value[NORM_X];
    return (s[j] - (c->value[NORM_MEAN] ? c->value[NORM_MEAN][row] : 0)) * c->value[NORM_RSTD][row];
}
static void check_norm_backward(check *c) {
    double *const *v = c->value, rstd = v[NORM_RSTD][0], mean = 0, dot = 0, size = 0, dot_size = 0, n = (double)c->cols;
    for (int64_t j = 0; j < c->cols; j++) {
        double w = v[NORM_D_Y][j] * v[NORM_GAMMA][j], normal = norm_normal(c, j, 0);
        if (v[NORM_MEAN]) mean += w / n, size += fabs(w) / n;
        dot += w * normal / n, dot_size += fabs(w * normal) / n;
    }
    for (int64_t j = 0; j < c->cols; j++) {
        double w = v[NORM_D_Y][j] * v[NORM_GAMMA][j], normal = norm_normal(c, j, 0),
               d_sum = v[NORM_D_SUM] ? v[NORM_D_SUM][j] : 0;
        double slack = 2e-6 * (rstd * (fabs(w) + size + (fabs(normal) + 1) * dot_size) + fabs(d_sum));
        expect(c, v[NORM_D_X][j], rstd * (w - mean - normal * dot) + d_sum, slack, c->dtype);
    }
}
/* d_gamma and d_beta: thousands of floats are added, most of them in chains as long as a processor has rows. */
static void check_norm_weights(check *c) {
    double d_gamma = 0, d_beta = 0, gamma_size = 0, beta_size = 0;
    for (int64_t i = 0; i < c->rows; i++) {
        double d = c->value[NORM_D_Y][i], term = d * norm_normal(c, i, i);
        d_gamma += term, d_beta += d, gamma_size += fabs(term), beta_size += fabs(d);
    }
    expect(c, c->value[NORM_D_GAMMA][0], d_gamma, 3e-7 * gamma_size, FA_F32);
    if (c->value[NORM_D_BETA]) expect(c, c->value[NORM_D_BETA][0], d_beta, 3e-7 * beta_size, FA_F32);
}

/* ------------------------------------------------------------- cross-entropy */

enum { ENTROPY_LOGITS, ENTROPY_TARGETS, ENTROPY_LOSS, ENTROPY_LSE, ENTROPY_D_LOSS, ENTROPY_D_LOGITS };
static void check_entropy_forward(check *c) {
    const double *z = c->value[ENTROPY_LOGITS];
    double largest = -INFINITY, sum = 0, target = z[(int64_t)c->value[ENTROPY_TARGETS][0]];
    for (int64_t j = 0; j < c->cols; j++) largest = fmax(largest, z[j]);
    for (int64_t j = 0; j < c->cols; j++) sum += exp(z[j] - largest);
    double lse = largest + log(sum), slack = 2e-6 * (1 + fabs(lse) + fabs(target));
    expect(c, c->value[ENTROPY_LSE][0], lse, slack, FA_F32);
    expect(c, c->value[ENTROPY_LOSS][0], lse - target, slack, FA_F32);
}
static void check_entropy_backward(check *c) {
    const double *z = c->value[ENTROPY_LOGITS];
    double lse = c->value[ENTROPY_LSE][0], d_loss = c->value[ENTROPY_D_LOSS][0];
    for (int64_t j = 0; j < c->cols; j++) {
        double p = exp(z[j] - lse), is_target = j == (int64_t)c->value[ENTROPY_TARGETS][0];
        double slack = fabs(d_loss) * (p * (3e-6 + 2e-7 * fabs(z[j] - lse)) + 2e-7 * is_target);
        expect(c, c->value[ENTROPY_D_LOGITS][j], d_loss * (p - is_target), slack, c->dtype);
    }
}

/* -------------------------------------------------------------------- swiglu */

enum { SWIGLU_GATE, SWIGLU_UP, SWIGLU_Y, SWIGLU_D_Y, SWIGLU_D_GATE, SWIGLU_D_UP };
static void check_swiglu_forward(check *c) {
    const double *gate = c->value[SWIGLU_GATE], *up = c->value[SWIGLU_UP], *y = c->value[SWIGLU_Y];
    for (int64_t j = 0; j < c->cols; j++) {
        double exact = gate[j] / (1 + exp(-gate[j])) * up[j];
        expect(c, y[j], exact, 2e-6 * fabs(exact), c->dtype);
    }
}
static void check_swiglu_backward(check *c) {
    const double *gate = c->value[SWIGLU_GATE], *up = c->value[SWIGLU_UP], *d_y = c->value[SWIGLU_D_Y];
    for (int64_t j = 0; j < c->cols; j++) {
        double sigmoid = 1 / (1 + exp(-gate[j])), slope = sigmoid * (1 + gate[j] * (1 - sigmoid)),
               size = fabs(d_y[j] * up[j]);
        expect(c, c->value[SWIGLU_D_UP][j], d_y[j] * gate[j] * sigmoid, 2e-6 * fabs(d_y[j] * gate[j]) * sigmoid,
               c->dtype);
        expect(c, c->value[SWIGLU_D_GATE][j], d_y[j] * up[j] * slope, 2e-6 * size * (sigmoid + fabs(slope)), c->dtype);
    }
}

/* ---------------------------------------------------------------------- rope */

enum { ROPE_X, ROPE_Y, ROPE_COS, ROPE_SIN, ROPE_D };
/* Halves: elements i and i + ANGLES of a head are a pair. */
static void check_rotation(check *c, const double *from, const double *to, double direction) {
    for (int64_t head = 0; head < c->cols; head += 2 * ANGLES)
        for (int i = 0; i < ANGLES; i++) {
            double a = from[head + i], b = from[head + ANGLES + i], slack = 4e-7 * (fabs(a) + fabs(b));
            double cosine = c->value[ROPE_COS][i], sine = c->value[ROPE_SIN][i] * direction;
            expect(c, to[head + i], a * cosine - b * sine, slack, c->dtype);
            expect(c, to[head + ANGLES + i], b * cosine + a * sine, slack, c->dtype);
        }
}
static void check_rope_forward(check *c) { check_rotation(c, c->value[ROPE_X], c->value[ROPE_Y], 1); }
static void check_rope_backward(check *c) { check_rotation(c, c->before, c->value[ROPE_D], -1); }

/* --------------------------------------------------------------------- table */

static const kernel_spec kernels[] = {
    {"softmax",
     {{"x", SOFTMAX_X, MATRIX, 3},
      {"y", SOFTMAX_Y, MATRIX, 0},
      {"d_y", SOFTMAX_D_Y, MATRIX, 1},
      {"d_x", SOFTMAX_D_X, MATRIX, 0}},
     {{2, 0, {"y"}, check_softmax_forward, NULL}, {3, 0, {"d_x"}, check_softmax_backward, NULL}},
     {1024, 4096, 8192, 16384, 32768, 131072}},
    {"layernorm",
     {{"x", NORM_X, MATRIX, 2},
      {"y", NORM_Y, MATRIX, 0},
      {"gamma", NORM_GAMMA, COLUMN_VALUE, 1},
      {"beta", NORM_BETA, COLUMN_VALUE, 1},
      {"mean", NORM_MEAN, ROW_VALUE, 0},
      {"rstd", NORM_RSTD, ROW_VALUE, 0},
      {"d_y", NORM_D_Y, MATRIX, 1},
      {"d_x", NORM_D_X, MATRIX, 0},
      {"d_gamma", NORM_D_GAMMA, COLUMN_VALUE, 0},
      {"d_beta", NORM_D_BETA, COLUMN_VALUE, 0}},
     {{2, 0, {"y", "mean", "rstd"}, check_norm_forward, NULL},
      {3, 0, {"d_x", "d_gamma", "d_beta"}, check_norm_backward, check_norm_weights}},
     {1024, 4096, 8192, 16384}},
    {"layernorm_residual", /* the pre-norm form */
     {{"x", NORM_X, MATRIX, 2},
      {"y", NORM_Y, MATRIX, 0},
      {"gamma", NORM_GAMMA, COLUMN_VALUE, 1},
      {"beta", NORM_BETA, COLUMN_VALUE, 1},
      {"mean", NORM_MEAN, ROW_VALUE, 0},
      {"rstd", NORM_RSTD, ROW_VALUE, 0},
      {"residual", NORM_RESIDUAL, MATRIX, 1},
      {"sum", NORM_SUM, MATRIX, 0},
      {"d_y", NORM_D_Y, MATRIX, 1},
      {"d_sum", NORM_D_SUM, MATRIX, 1},
      {"d_x", NORM_D_X, MATRIX, 0},
      {"d_gamma", NORM_D_GAMMA, COLUMN_VALUE, 0},
      {"d_beta", NORM_D_BETA, COLUMN_VALUE, 0}},
     {{4, 0, {"y", "sum", "mean", "rstd"}, check_norm_forward, NULL},
      {4, 0, {"d_x", "d_gamma", "d_beta"}, check_norm_backward, check_norm_weights}},
     {1024, 4096, 8192, 16384}},
    {"rmsnorm",
     {{"x", NORM_X, MATRIX, 2},
      {"y", NORM_Y, MATRIX, 0},
      {"gamma", NORM_GAMMA, COLUMN_VALUE, 1},
      {"rstd", NORM_RSTD, ROW_VALUE, 0},
      {"d_y", NORM_D_Y, MATRIX, 1},
      {"d_x", NORM_D_X, MATRIX, 0},
      {"d_gamma", NORM_D_GAMMA, COLUMN_VALUE, 0}},
     {{2, 0, {"y", "rstd"}, check_norm_forward, NULL},
      {3, 0, {"d_x", "d_gamma"}, check_norm_backward, check_norm_weights}},
     {1024, 4096, 8192, 16384}},
    {"rmsnorm_residual",
     {{"x", NORM_X, MATRIX, 2},
      {"y", NORM_Y, MATRIX, 0},
      {"gamma", NORM_GAMMA, COLUMN_VALUE, 1},
      {"rstd", NORM_RSTD, ROW_VALUE, 0},
      {"residual", NORM_RESIDUAL, MATRIX, 1},
      {"sum", NORM_SUM, MATRIX, 0},
      {"d_y", NORM_D_Y, MATRIX, 1},
      {"d_sum", NORM_D_SUM, MATRIX, 1},
      {"d_x", NORM_D_X, MATRIX, 0},
      {"d_gamma", NORM_D_GAMMA, COLUMN_VALUE, 0}},
     {{4, 0, {"y", "sum", "rstd"}, check_norm_forward, NULL},
      {4, 0, {"d_x", "d_gamma"}, check_norm_backward, check_norm_weights}},
     {1024, 4096, 8192, 16384}},
    {"cross_entropy",
     {{"logits", ENTROPY_LOGITS, MATRIX, 3},
      {"targets", ENTROPY_TARGETS, TARGET, 0},
      {"loss", ENTROPY_LOSS, ROW_VALUE, 0},
      {"lse", ENTROPY_LSE, ROW_VALUE, 0},
      {"d_loss", ENTROPY_D_LOSS, ROW_VALUE, 1},
      {"d_logits", ENTROPY_D_LOGITS, MATRIX, 0}},
     {{1, 1, {"loss", "lse"}, check_entropy_forward, NULL}, {2, 0, {"d_logits"}, check_entropy_backward, NULL}},
     {1024, 4096, 8192, 16384, 32000, 128256}},
    {"swiglu",
     {{"gate", SWIGLU_GATE, MATRIX, 2},
      {"up", SWIGLU_UP, MATRIX, 1},
      {"y", SWIGLU_Y, MATRIX, 0},
      {"d_y", SWIGLU_D_Y, MATRIX, 1},
      {"d_gate", SWIGLU_D_GATE, MATRIX, 0},
      {"d_up", SWIGLU_D_UP, MATRIX, 0}},
     {{3, 0, {"y"}, check_swiglu_forward, NULL}, {5, 0, {"d_gate", "d_up"}, check_swiglu_backward, NULL}},
     {1024, 4096, 8192, 16384}},
    {"rope", /* q and k of a token in a row */
     {{"x", ROPE_X, MATRIX, 1},
      {"y", ROPE_Y, MATRIX, 0},
      {"cos", ROPE_COS, COSINE, 0},
      {"sin", ROPE_SIN, SINE, 0},
      {"d", ROPE_D, MATRIX, 1}},
     {{2, 0, {"y"}, check_rope_forward, NULL}, {2, 0, {"d"}, check_rope_backward, NULL}},
     {1024, 4096, 8192, 16384}},
};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

static const tensor_spec *find_tensor(const kernel_spec *kernel, const char *name) {
    for (int i = 0; i < MAX_TENSORS && kernel->tensors[i].name; i++)
        if (!strcmp(kernel->tensors[i].name, name)) return &kernel->tensors[i];
    return NULL;
}
static int writes(const direction *way, const tensor_spec *tensor) {
    for (int i = 0; i < MAX_WRITTEN && way->written[i]; i++)
        if (!strcmp(way->written[i], tensor->name)) return 1;
    return 0;
}

#endif
