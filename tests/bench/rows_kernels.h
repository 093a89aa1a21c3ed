/* The kernels that rows.cu times: their tensors, what a direction must move, the lengths of the rows, and each direction
 * in float64 for one row. */
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
    TARGET        /* an int for each row, a column */
} tensor_form;

typedef struct {
    const char *name;
    int slot; /* in check.value[] */
    tensor_form form;
    float deviation; /* of an input's values, whose mean is 0; 0: it is made by a kernel */
} tensor_spec;

/* One row, on its way through a check: value[slot] has a tensor's elements of this row, or of all columns. */
typedef struct check {
    double *value[MAX_TENSORS];
    int64_t cols;
    int dtype;
    double worst; /* error as a share of what is allowed */
} check;

typedef struct {
    double useful; /* matrices that are read or written */
    int only_reads;
    const char *written[MAX_WRITTEN]; /* names of the results */
    void (*check_row)(check *c);
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

/* A result may differ from the exact one by half a unit in the last place of its type, and by `slack` of fp32 arithmetic. */
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
        double exact = exp(x[j] - largest) / sum; /* fp32 rounds the exponent, a multiple of 2^-24 of it */
        expect(c, y[j], exact, exact * (2e-6 + 2e-7 * (largest - x[j])), c->dtype);
    }
}
static void check_softmax_backward(check *c) {
    const double *y = c->value[SOFTMAX_Y], *d_y = c->value[SOFTMAX_D_Y], *d_x = c->value[SOFTMAX_D_X];
    double sum = 0, size = 0;
    for (int64_t j = 0; j < c->cols; j++) sum += y[j] * d_y[j], size += fabs(y[j] * d_y[j]);
    for (int64_t j = 0; j < c->cols; j++)
        expect(c, d_x[j], y[j] * (d_y[j] - sum), 1.5e-6 * y[j] * (fabs(d_y[j]) + size), c->dtype);
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
        double sigmoid = 1 / (1 + exp(-gate[j])), slope = sigmoid * (1 + gate[j] * (1 - sigmoid)), size = fabs(d_y[j] * up[j]);
        expect(c, c->value[SWIGLU_D_UP][j], d_y[j] * gate[j] * sigmoid, 2e-6 * fabs(d_y[j] * gate[j]) * sigmoid, c->dtype);
        expect(c, c->value[SWIGLU_D_GATE][j], d_y[j] * up[j] * slope, 2e-6 * size * (sigmoid + fabs(slope)), c->dtype);
    }
}

/* --------------------------------------------------------------------- table */

static const kernel_spec kernels[] = {
    {"softmax",
     {{"x", SOFTMAX_X, MATRIX, 3}, {"y", SOFTMAX_Y, MATRIX, 0}, {"d_y", SOFTMAX_D_Y, MATRIX, 1}, {"d_x", SOFTMAX_D_X, MATRIX, 0}},
     {{2, 0, {"y"}, check_softmax_forward}, {3, 0, {"d_x"}, check_softmax_backward}},
     {1024, 4096, 8192, 16384, 32768, 131072}},
    {"swiglu",
     {{"gate", SWIGLU_GATE, MATRIX, 2},
      {"up", SWIGLU_UP, MATRIX, 1},
      {"y", SWIGLU_Y, MATRIX, 0},
      {"d_y", SWIGLU_D_Y, MATRIX, 1},
      {"d_gate", SWIGLU_D_GATE, MATRIX, 0},
      {"d_up", SWIGLU_D_UP, MATRIX, 0}},
     {{3, 0, {"y"}, check_swiglu_forward}, {5, 0, {"d_gate", "d_up"}, check_swiglu_backward}},
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
