/**
 * @file harness.h
 * @brief What the examples share, so that each of them can be about its one idea.
 *
 * A problem with random inputs (in host memory, and where the kernels run), a reference in double, a
 * comparison, a clock, and a line of a table. The same file serves nvcc (kernels on the GPU) and a C compiler
 * (the same kernels on the CPU, where a loop over t stands for the threads of a block):
 *
 *     KERNEL twice(problem p) {                       launch(twice, blocks, 64, &p);
 *         FOR_THREADS(t, 64) { p.o[64 * BLOCK + t] = 2 * p.v[64 * BLOCK + t]; }
 *     }
 *
 * An example ends with
 *
 *     int main(void) { return ladder_main("03_tiled", tiled, FP32, "02_online_softmax", online_softmax); }
 *
 * which checks the example's function, times it and the one before it in turns, and prints the line. A step of the
 * ladder gets at the one before it by including its file, with NO_MAIN defined.
 */
#ifndef HARNESS_H
#define HARNESS_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* clock_gettime, sysconf and sched_getaffinity, under -std=c11 too */
#endif
#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if !defined(__CUDACC__)
#include <pthread.h>
#endif

#define UNUSED __attribute__((unused))

/* ------------------------------------------------------------------ kernels on two machines */

#if defined(__CUDACC__)
#define ON_GPU 1
#define KERNEL static __global__ void
#define DEVICE static __device__ __forceinline__
#define SHARED __shared__
#define BLOCK ((int)blockIdx.x)
/** The threads of a block do this, then wait for each other: t is the thread. */
#define FOR_THREADS(t, count) for (int t = (int)threadIdx.x, t##_once = 1; t##_once; t##_once = 0, __syncthreads())
/** The length of a local array in which each thread keeps a value from one FOR_THREADS to the next, at x[OWN(t)]. On a GPU
 *  every thread has such an array to itself; on the CPU there is one for all threads of the block. */
#define PER_THREAD(count) 1
#define OWN(t) 0
#else
#define ON_GPU 0
#define KERNEL static void
#define DEVICE static inline
#define SHARED
static _Thread_local int harness_block;
#define BLOCK harness_block
#define FOR_THREADS(t, count) for (int t = 0; t < (count); t++)
#define PER_THREAD(count) count
#define OWN(t) t
#endif

/** Ends the program with a message. */
#define DIE(...) (fflush(stdout), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))

#if ON_GPU
/** Every CUDA call goes through this: an error ends the program with its name and place. */
#define CUDA(call) \
    do { \
        cudaError_t error_ = (call); \
        if (error_ != cudaSuccess) DIE("%s:%d: %s: %s", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
    } while (0)
#endif

/** Every library call goes through this. */
#define FA(call) \
    do { \
        if ((call) != FA_OK) DIE("%s:%d: %s", __FILE__, __LINE__, fa_last_error()); \
    } while (0)

/* ------------------------------------------------------------------ memory */

/** Memory where the kernels run. */
static UNUSED void *device_alloc(size_t bytes) {
    void *memory = NULL;
#if ON_GPU
    CUDA(cudaMalloc(&memory, bytes ? bytes : 1));
#else
    memory = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (!memory) DIE("no memory for %zu bytes", bytes);
#endif
    return memory;
}
static UNUSED void device_free(void *memory) {
#if ON_GPU
    CUDA(cudaFree(memory));
#else
    free(memory);
#endif
}
static UNUSED void to_device(void *device, const void *host, size_t bytes) {
#if ON_GPU
    CUDA(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
#else
    memcpy(device, host, bytes);
#endif
}
static UNUSED void to_host(void *host, const void *device, size_t bytes) {
#if ON_GPU
    CUDA(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
#else
    memcpy(host, device, bytes);
#endif
}
static UNUSED void *host_alloc(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) DIE("no memory for %zu bytes", bytes);
    return memory;
}
/** Waits until the device has done all that it was given. */
static UNUSED void device_wait(void) {
#if ON_GPU
    CUDA(cudaDeviceSynchronize());
#endif
}
/** A wall clock, in seconds. */
static UNUSED double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
/** Threads to use, as the library counts: FA_THREADS from the environment, else the processors that this process may
 *  run on. */
static UNUSED int cores(void) {
    const char *wanted = getenv("FA_THREADS");
    char *end = NULL;
    long count = wanted ? strtol(wanted, &end, 10) : 0;
    cpu_set_t set;
    if (count < 1 || *end) count = sched_getaffinity(0, sizeof set, &set) ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);
    return count < 1 ? 1 : count > 256 ? 256 : (int)count;
}

/* ------------------------------------------------------------------ random numbers, seeded */

typedef struct rng {
    uint64_t state;
} rng;
/** Uniform in (0, 1): splitmix64 (Steele, Lea and Flood 2014). */
static UNUSED double rng_uniform(rng *r) {
    uint64_t z = (r->state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return ((double)(z >> 11) + 0.5) * 0x1p-53;
}
/** Standard normal (Box and Muller 1958). */
static UNUSED double rng_normal(rng *r) {
    double radius = sqrt(-2 * log(rng_uniform(r)));
    return radius * cos(6.283185307179586 * rng_uniform(r));
}

/* ------------------------------------------------------------------ the problem */

/** Self-attention on contiguous (batch, heads, seqlen, head_dim) tensors. The inputs are normal, q with a deviation of
 *  4, so that scores spread and an online softmax has to rescale. They are exact in bfloat16 and stand ready in both
 *  types, so that fp32 and bf16 steps work on the same numbers. */
typedef struct problem {
    int batch, heads, seqlen, head_dim;
    float scale;                     /* 1/sqrt(head_dim) */
    size_t count;                    /* elements of a tensor */
    float *q, *k, *v, *o;            /* fp32, where the kernels run */
    uint16_t *q16, *k16, *v16, *o16; /* bf16, where the kernels run */
    float *scratch;                  /* an example's own; freed with the problem */
    float *host_q, *host_k, *host_v;
} problem;

static UNUSED uint16_t harness_to_bf16(float x) { /* to nearest even; no NaN comes here */
    uint32_t u;
    memcpy(&u, &x, 4);
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}
static UNUSED float harness_from_bf16(uint16_t h) {
    uint32_t u = (uint32_t)h << 16;
    float x;
    memcpy(&x, &u, 4);
    return x;
}
static UNUSED void harness_tensor(size_t count, double deviation, rng *r, float **host, float **device,
                                  uint16_t **device16) {
    uint16_t *half = (uint16_t *)host_alloc(2 * count);
    *host = (float *)host_alloc(4 * count);
    for (size_t i = 0; i < count; i++) {
        half[i] = harness_to_bf16((float)(deviation * rng_normal(r)));
        (*host)[i] = harness_from_bf16(half[i]);
    }
    *device = (float *)device_alloc(4 * count);
    *device16 = (uint16_t *)device_alloc(2 * count);
    to_device(*device, *host, 4 * count);
    to_device(*device16, half, 2 * count);
    free(half);
}
static UNUSED problem problem_new(int batch, int heads, int seqlen, int head_dim) {
    problem p;
    rng r = {1};
    p.batch = batch, p.heads = heads, p.seqlen = seqlen, p.head_dim = head_dim;
    p.scale = 1 / sqrtf((float)head_dim);
    p.count = (size_t)batch * (size_t)heads * (size_t)seqlen * (size_t)head_dim;
    harness_tensor(p.count, 4, &r, &p.host_q, &p.q, &p.q16);
    harness_tensor(p.count, 1, &r, &p.host_k, &p.k, &p.k16);
    harness_tensor(p.count, 1, &r, &p.host_v, &p.v, &p.v16);
    p.o = (float *)device_alloc(4 * p.count);
    p.o16 = (uint16_t *)device_alloc(2 * p.count);
    p.scratch = NULL;
    return p;
}
static UNUSED void problem_free(problem *p) {
    void *device[] = {p->q, p->k, p->v, p->o, p->q16, p->k16, p->v16, p->o16, p->scratch};
    for (int i = 0; i < 9; i++) device_free(device[i]);
    free(p->host_q), free(p->host_k), free(p->host_v);
}

/* --------------------------------------------------------- launch and clock */

#define PROBLEM problem
#define LAUNCH launch
#define SECONDS harness_seconds
#include "run.h"

/* ------------------------------------------------------------------ check */

enum { FP32, BF16 };

/** What an example computes: the scaled score in, the score out; -INFINITY hides the key. NULL: plain attention. */
typedef double (*score_function)(const problem *p, double score, int batch, int head, int query, int key);

/** One row of attention in double, exactly as the formula reads. */
static UNUSED void reference_row(const problem *p, score_function score, int batch, int head, int query,
                                 double *weights, double *o) {
    size_t base = ((size_t)batch * (size_t)p->heads + (size_t)head) * (size_t)p->seqlen;
    const float *q = p->host_q + (base + (size_t)query) * (size_t)p->head_dim;
    const float *k = p->host_k + base * (size_t)p->head_dim, *v = p->host_v + base * (size_t)p->head_dim;
    double highest = -INFINITY, sum = 0;
    for (int j = 0; j < p->seqlen; j++) {
        double dot = 0;
        for (int d = 0; d < p->head_dim; d++) dot += (double)q[d] * k[(size_t)j * (size_t)p->head_dim + (size_t)d];
        dot *= p->scale;
        weights[j] = score ? score(p, dot, batch, head, query, j) : dot;
        highest = fmax(highest, weights[j]);
    }
    memset(o, 0, sizeof(double) * (size_t)p->head_dim);
    if (highest == -INFINITY) return; /* a query that sees nothing gets zero */
    for (int j = 0; j < p->seqlen; j++) sum += weights[j] = exp(weights[j] - highest);
    for (int j = 0; j < p->seqlen; j++)
        for (int d = 0; d < p->head_dim; d++) o[d] += weights[j] / sum * v[(size_t)j * (size_t)p->head_dim + (size_t)d];
}

/** What rounding may do to a row of outputs, relative to its largest. Outputs are weighted means. In bf16 each
 *  weight and each output is rounded by up to 2^-9 of the power of two above it, and the outputs of a row may all be small
 *  beside the values that they are means of: so 2^-6 is allowed. One key too many or too few among hundreds makes a larger
 *  difference. fp32 steps only sum in another order: 2e-5. */
static UNUSED double allowed_error(int dtype) { return dtype == BF16 ? 0x1p-6 : 2e-5; }

/** Runs and compares: the largest error, relative to the largest output of its row, over the first and the last row and
 *  126 random ones. Of all the others it sees that they were written (the output starts as NaN). */
static UNUSED double largest_error(const problem *p, void (*run)(const problem *), int dtype, score_function score) {
    size_t bytes = p->count * (dtype == BF16 ? 2 : 4);
    void *device = dtype == BF16 ? (void *)p->o16 : (void *)p->o, *host = host_alloc(bytes);
    double *weights = (double *)host_alloc(sizeof(double) * (size_t)p->seqlen);
    double *o = (double *)host_alloc(sizeof(double) * (size_t)p->head_dim), error = 0;
    int rows = p->batch * p->heads * p->seqlen;
    rng r = {2};
    memset(host, 0xFF, bytes); /* all bits set is a NaN in both types */
    to_device(device, host, bytes);
    run(p);
    device_wait();
    to_host(host, device, bytes);
    for (size_t i = 0; i < p->count; i++) {
        float x = dtype == BF16 ? harness_from_bf16(((uint16_t *)host)[i]) : ((float *)host)[i];
        if (!isfinite(x)) error = INFINITY;
    }
    for (int sample = 0; sample < 128; sample++) {
        int row = sample == 0 ? 0 : sample == 1 ? rows - 1 : (int)(rng_uniform(&r) * rows);
        double difference = 0, largest = 0;
        reference_row(p, score, row / p->seqlen / p->heads, row / p->seqlen % p->heads, row % p->seqlen, weights, o);
        for (int d = 0; d < p->head_dim; d++) {
            size_t i = (size_t)row * (size_t)p->head_dim + (size_t)d;
            double x = dtype == BF16 ? harness_from_bf16(((uint16_t *)host)[i]) : ((float *)host)[i];
            difference = fmax(difference, fabs(x - o[d]));
            largest = fmax(largest, fabs(o[d]));
        }
        if (difference > 0) error = fmax(error, difference / largest); /* infinite where zeros were due */
    }
    free(host), free(weights), free(o);
    return error;
}

static UNUSED int harness_order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ------------------------------------------------------------------ the line */

/** What an example hands over: a function to check and time, and the one to compare it with. */
typedef struct example {
    const char *name;
    void (*run)(const problem *);
    int dtype;
    score_function score; /* the reference's; NULL: plain attention */
    double visible;       /* part of the score matrix that is not masked: FLOPs count only that */
    const char *previous; /* NULL: there is none */
    void (*run_previous)(const problem *);
} example;

/** Checks, times in turns (median), prints a line of the table. Returns what main() returns. */
static UNUSED int example_report(const problem *p, example e) {
    enum { ROUNDS = ON_GPU ? 15 : 5 };
    double allowed = allowed_error(e.dtype), error = largest_error(p, e.run, e.dtype, e.score);
    double mine[ROUNDS], other[ROUNDS];
    double least = ON_GPU ? 5e-3 : 5e-2; /* seconds a timing should last */
    int repeats = 1 + (int)(least / harness_seconds(p, e.run, 1));
    int repeats_previous = e.run_previous ? 1 + (int)(least / harness_seconds(p, e.run_previous, 1)) : 0;
    double pairs = (double)p->batch * p->heads * p->seqlen * p->seqlen * e.visible, flops = 4 * pairs * p->head_dim;
    static int headed = 0;
    char shape[64];
    for (int i = 0; i < ROUNDS; i++) {
        mine[i] = harness_seconds(p, e.run, repeats);
        if (e.run_previous) other[i] = harness_seconds(p, e.run_previous, repeats_previous);
    }
    qsort(mine, ROUNDS, sizeof(double), harness_order);
    if (e.run_previous) qsort(other, ROUNDS, sizeof(double), harness_order);
    if (!headed++ && !getenv("EXAMPLES_NO_HEADING"))
        printf("%-22s %-4s %-21s %10s %10s %9s %9s  %s\n", "example", "type", "batch,heads,seq,dim", "ms", "GFLOP/s",
               "error", "allowed", "time of another / this one's");
    snprintf(shape, sizeof shape, "%d,%d,%d,%d", p->batch, p->heads, p->seqlen, p->head_dim);
    printf("%-22s %-4s %-21s %10.3f %10.1f %9.1e %9.1e  ", e.name, e.dtype == BF16 ? "bf16" : "fp32", shape,
           1e3 * mine[ROUNDS / 2], 1e-9 * flops / mine[ROUNDS / 2], error, allowed);
    if (e.run_previous) printf("%.2f (%s)", other[ROUNDS / 2] / mine[ROUNDS / 2], e.previous);
    else printf("-");
    printf("%s\n", error <= allowed ? "" : "  WRONG");
    return error <= allowed ? 0 : 1;
}

/** The problem of the ladder, of a size that the machine takes well; head dimension 64. */
static UNUSED problem ladder_problem(void) {
    return ON_GPU ? problem_new(1, 16, 4096, 64) : problem_new(1, 4, 1024, 64);
}

/** main() of a step of the ladder. */
static UNUSED int ladder_main(const char *name, void (*run)(const problem *), int dtype, const char *previous,
                              void (*run_previous)(const problem *)) {
    problem p = ladder_problem();
    example e = {name, run, dtype, NULL, 1, previous, run_previous};
    int status = example_report(&p, e);
    problem_free(&p);
    return status;
}

/** main() of an example that has nothing to run on a CPU. */
static UNUSED int skip_main(const char *name) {
    printf("%-22s skipped: it needs a GPU and nvcc\n", name);
    return 0;
}

/** ladder_main() for the steps that need sm_90a. Where this GPU is not of compute capability 9.0, or the step was not
 *  compiled for sm_90a (`run` is NULL), it only says so. */
static UNUSED int hopper_main(const char *name, void (*run)(const problem *), const char *previous, void (*run_previous)(const problem *)) {
#if ON_GPU
    int device, major, minor;
    CUDA(cudaGetDevice(&device));
    CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    if (run && major == 9 && minor == 0) return ladder_main(name, run, BF16, previous, run_previous);
    printf("%-22s skipped: it needs a GPU of compute capability 9.0%s\n", name, run ? "" : " and nvcc -arch=sm_90a");
    return 0;
#else
    (void)run, (void)previous, (void)run_previous;
    return skip_main(name);
#endif
}

#endif
