/**
 * @file rows.h
 * @brief What the examples from 30 on share: matrices whose rows a kernel works on, a check in double, a line of the table.
 *
 * They are about memory, not arithmetic: a line tells the useful bytes a second, which count each matrix that must be
 * read or written once. An example has two functions that do the same: a teaching version, in which a block of THREADS
 * threads takes a row and does the obvious, and the library's. Both are checked, and timed in turns.
 */
#ifndef ROWS_H
#define ROWS_H

#include "harness.h"

#include <fa/fa.h>

/** Threads of a block in the teaching versions. */
#define THREADS 256

/** Matrices of (rows, cols) bf16, where the kernels run, and what some kernels need besides. host_x and host_x2 have the same
 *  values as x and x2. */
typedef struct rows {
    int64_t rows, cols;
    uint16_t *x, *x2;      /* inputs, normal, x with a deviation of 3 */
    uint16_t *y, *y2;      /* results */
    float *gamma, *beta;   /* (cols), normal */
    float *value, *value2; /* (rows) results */
    float *weights;        /* (cols) results */
    int *target;           /* (rows), columns */
    float *host_x, *host_x2, *host_gamma, *host_beta;
    int *host_target;
} rows;

/** 2^26 elements on a GPU, more than its caches hold; fewer on the CPU. */
static UNUSED rows rows_new(int64_t cols) {
    rows p;
    rng r = {1};
    float *unused;
    size_t count;
    memset(&p, 0, sizeof p);
    p.cols = cols, p.rows = (ON_GPU ? (int64_t)1 << 26 : (int64_t)1 << 22) / cols;
    count = (size_t)(p.rows * p.cols);
    harness_tensor(count, 3, &r, &p.host_x, &unused, &p.x), device_free(unused);
    harness_tensor(count, 1, &r, &p.host_x2, &unused, &p.x2), device_free(unused);
    uint16_t *unused16;
    harness_tensor((size_t)cols, 1, &r, &p.host_gamma, &p.gamma, &unused16), device_free(unused16);
    harness_tensor((size_t)cols, 1, &r, &p.host_beta, &p.beta, &unused16), device_free(unused16);
    p.y = (uint16_t *)device_alloc(2 * count), p.y2 = (uint16_t *)device_alloc(2 * count);
    p.value = (float *)device_alloc(4 * (size_t)p.rows), p.value2 = (float *)device_alloc(4 * (size_t)p.rows);
    p.weights = (float *)device_alloc(4 * (size_t)cols);
    p.host_target = (int *)host_alloc(sizeof(int) * (size_t)p.rows);
    for (int64_t row = 0; row < p.rows; row++) p.host_target[row] = (int)(rng_uniform(&r) * (double)cols);
    p.target = (int *)device_alloc(sizeof(int) * (size_t)p.rows);
    to_device(p.target, p.host_target, sizeof(int) * (size_t)p.rows);
    return p;
}
static UNUSED void rows_free(rows *p) {
    void *device[] = {p->x, p->x2, p->y, p->y2, p->gamma, p->beta, p->value, p->value2, p->weights, p->target};
    for (int i = 0; i < 10; i++) device_free(device[i]);
    free(p->host_x), free(p->host_x2), free(p->host_gamma), free(p->host_beta), free(p->host_target);
}

#define PROBLEM rows
#define LAUNCH rows_launch
#define SECONDS rows_seconds
#include "run.h"

/** All threads of a block wait for each other, outside of FOR_THREADS. */
#if ON_GPU
#define BARRIER() __syncthreads()
#else
#define BARRIER() ((void)0)
#endif

/** The sum, or the largest, of part[0] to part[THREADS - 1], in shared memory, which it uses up: in halves, all threads
 *  waiting for each other after every step. */
DEVICE UNUSED float block_reduce(float *part, int largest) {
    for (int half = THREADS / 2; half > 0; half /= 2) FOR_THREADS(t, half) {
            if (t < half) part[t] = largest ? fmaxf(part[t], part[t + half]) : part[t] + part[t + half];
        }
    float result = part[0];
    BARRIER(); /* nobody writes to part[] before all have read */
    return result;
}

/** What an example hands over. */
typedef struct rows_example {
    const char *name;
    double useful; /* matrices that must be read or written */
    void (*plain)(const rows *);
    void (*fast)(const rows *);
    const char *plain_name;
    /* The result is `of(p)`, (count, length) floats or bf16, and row i of it is exact[0] to exact[length - 1]. */
    void *(*of)(const rows *);
    int dtype;
    int64_t count, length;
    void (*exact)(const rows *p, int64_t i, double *exact);
    double
        slack; /* what an error may be besides the last rounding, as a share of the row's largest result: 2e-5 for sums
                     in fp32, in any order */
} rows_example;

/* bf16 results are rounded by up to 2^-8 of them; the slack is a share of the largest. */
static UNUSED double rows_error(const rows *p, void (*run)(const rows *), const rows_example *e) {
    size_t all = (size_t)(e->count * e->length), bytes = all * (e->dtype == BF16 ? 2 : 4);
    void *host = host_alloc(bytes);
    double *exact = (double *)host_alloc(sizeof(double) * (size_t)e->length), error = 0;
    rng r = {2};
    memset(host, 0xFF, bytes); /* all bits set is a NaN in both types */
    to_device(e->of(p), host, bytes);
    run(p);
    device_wait();
    to_host(host, e->of(p), bytes);
    for (size_t i = 0; i < all; i++) {
        float x = e->dtype == BF16 ? harness_from_bf16(((uint16_t *)host)[i]) : ((float *)host)[i];
        if (!isfinite(x)) error = INFINITY;
    }
    for (int sample = 0; sample < 64; sample++) {
        int64_t row = sample == 0 ? 0 : sample == 1 ? e->count - 1 : (int64_t)(rng_uniform(&r) * (double)e->count);
        double largest = 0;
        e->exact(p, row, exact);
        for (int64_t j = 0; j < e->length; j++) largest = fmax(largest, fabs(exact[j]));
        for (int64_t j = 0; j < e->length; j++) {
            size_t i = (size_t)(row * e->length + j);
            double x = e->dtype == BF16 ? harness_from_bf16(((uint16_t *)host)[i]) : ((float *)host)[i];
            double allowed = (e->dtype == BF16 ? 0x1p-8 * fabs(exact[j]) : 0) + e->slack * fmax(largest, 1e-3);
            error = fmax(error, fabs(x - exact[j]) / allowed);
        }
    }
    free(host), free(exact);
    return error;
}

/** Checks both, times them in turns (median), prints a line for each. Returns what main() returns. */
static UNUSED int rows_report(const rows *p, rows_example e) {
    enum { ROUNDS = ON_GPU ? 15 : 5 };
    void (*run[2])(const rows *) = {e.plain, e.fast};
    double seconds[2][ROUNDS], error[2], median[2], least = ON_GPU ? 2e-3 : 2e-2; /* that a timing should last */
    int repeats[2], status = 0;
    char shape[64];
    for (int k = 0; k < 2; k++) {
        error[k] = rows_error(p, run[k], &e);
        repeats[k] = 1 + (int)(least / rows_seconds(p, run[k], 1));
    }
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < 2; k++) seconds[k][i] = rows_seconds(p, run[k], repeats[k]);
    for (int k = 0; k < 2; k++)
        qsort(seconds[k], ROUNDS, sizeof(double), harness_order), median[k] = seconds[k][ROUNDS / 2];
    if (!getenv("EXAMPLES_NO_HEADING"))
        printf("%-20s %-4s %-21s %10s %12s %9s %9s  %s\n", "example", "type", "rows,cols", "ms", "GB/s", "error",
               "allowed", "time of another / this one's");
    snprintf(shape, sizeof shape, "%lld,%lld", (long long)p->rows, (long long)p->cols);
    for (int k = 0; k < 2; k++) {
        printf("%-20s %-4s %-21s %10.3f %7.1f GB/s %9.2f %9.2f  ", k ? e.name : e.plain_name, "bf16", shape,
               1e3 * median[k], 2e-9 * e.useful * (double)(p->rows * p->cols) / median[k], error[k], 1.0);
        if (k) printf("%.2f (%s)", median[0] / median[1], e.plain_name);
        else printf("-");
        if (!(error[k] <= 1)) status = 1, printf("  WRONG");
        printf("\n");
    }
    return status;
}

#endif
