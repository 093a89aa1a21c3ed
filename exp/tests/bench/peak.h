/* The cores' own FMA peak: every thread runs independent chains of fused multiply-adds in registers, with the widest
 * vectors that this processor and its operating system offer. fa's CPU kernels are measured against it. */
#ifndef FA_BENCH_PEAK_H
#define FA_BENCH_PEAK_H

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* Sixteen chains cover a latency of four cycles on two units twice over, and fit the registers everywhere but on
 * AVX2, which has sixteen in all and takes twelve. */
#define PEAK_CHAINS_16(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define PEAK_CHAINS_12(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

typedef struct {
    const char *name;
    double (*run)(long rounds); /* returns the number of floating-point operations done */
} peak_unit;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static double peak_avx512(long rounds) {
    typedef float vector __attribute__((vector_size(64)));
    vector c[16] = {{0}}, x = {0}, y = {0};
    for (long i = 0; i < rounds; i++) {
#define PEAK_STEP(n) __asm__ volatile("vfmadd231ps %1, %2, %0" : "+v"(c[n]) : "v"(x), "v"(y));
        PEAK_CHAINS_16(PEAK_STEP)
#undef PEAK_STEP
    }
    return 2.0 * 16 * 16 * (double)rounds;
}
__attribute__((target("avx2,fma"))) static double peak_avx2(long rounds) {
    typedef float vector __attribute__((vector_size(32)));
    vector c[12] = {{0}}, x = {0}, y = {0};
    for (long i = 0; i < rounds; i++) {
#define PEAK_STEP(n) __asm__ volatile("vfmadd231ps %1, %2, %0" : "+x"(c[n]) : "x"(x), "x"(y));
        PEAK_CHAINS_12(PEAK_STEP)
#undef PEAK_STEP
    }
    return 2.0 * 12 * 8 * (double)rounds;
}
static double peak_sse(long rounds) {
    typedef float vector __attribute__((vector_size(16)));
    vector c[12] = {{0}}, x = {0};
    for (long i = 0; i < rounds; i++) {
#define PEAK_STEP(n) __asm__ volatile("mulps %1, %0\n\taddps %1, %0" : "+x"(c[n]) : "x"(x));
        PEAK_CHAINS_12(PEAK_STEP)
#undef PEAK_STEP
    }
    return 2.0 * 12 * 4 * (double)rounds;
}
static peak_unit peak_find(void) {
    peak_unit avx512 = {"AVX-512", peak_avx512}, avx2 = {"AVX2", peak_avx2}, sse = {"SSE", peak_sse};
    return __builtin_cpu_supports("avx512f")                                 ? avx512
           : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? avx2
                                                                             : sse;
}
#elif defined(__aarch64__)
static double peak_neon(long rounds) {
    typedef float vector __attribute__((vector_size(16)));
    vector c[16] = {{0}}, x = {0}, y = {0};
    for (long i = 0; i < rounds; i++) {
#define PEAK_STEP(n) __asm__ volatile("fmla %0.4s, %1.4s, %2.4s" : "+w"(c[n]) : "w"(x), "w"(y));
        PEAK_CHAINS_16(PEAK_STEP)
#undef PEAK_STEP
    }
    return 2.0 * 16 * 4 * (double)rounds;
}
static peak_unit peak_find(void) {
    peak_unit neon = {"NEON", peak_neon};
    return neon;
}
#else
static double peak_plain(long rounds) {
    float c[16] = {0};
    volatile float source = 0;
    float x = source;
    for (long i = 0; i < rounds; i++) {
#define PEAK_STEP(n) \
    c[n] = c[n] * x + x; \
    __asm__ volatile("" : "+m"(c[n]));
        PEAK_CHAINS_16(PEAK_STEP)
#undef PEAK_STEP
    }
    return 2.0 * 16 * (double)rounds;
}
static peak_unit peak_find(void) {
    peak_unit plain = {"plain C", peak_plain};
    return plain;
}
#endif

typedef struct {
    pthread_t thread;
    pthread_barrier_t *start;
    peak_unit unit;
    long rounds;
    double rate;
} peak_worker;

static double peak_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *peak_work(void *argument) {
    peak_worker *w = (peak_worker *)argument;
    pthread_barrier_wait(w->start);
    double begin = peak_seconds(), operations = w->unit.run(w->rounds);
    w->rate = operations / (peak_seconds() - begin);
    return NULL;
}

/* FLOP/s of all threads together, over about `seconds`. 0 if the threads cannot be started. */
static double peak_measure(peak_unit unit, int threads, double seconds) {
    double begin = peak_seconds(), operations = unit.run(100000); /* a short run sizes the long one */
    long rounds = (long)(100000 * seconds / (peak_seconds() - begin + 1e-9)) + 1;
    (void)operations;
    peak_worker *workers = (peak_worker *)calloc((size_t)threads, sizeof *workers);
    pthread_barrier_t start;
    double rate = 0;
    int started = 1;
    if (!workers || pthread_barrier_init(&start, NULL, (unsigned)threads)) return 0;
    for (int i = 0; i < threads; i++) workers[i].start = &start, workers[i].unit = unit, workers[i].rounds = rounds;
    while (started < threads && !pthread_create(&workers[started].thread, NULL, peak_work, &workers[started]))
        started++;
    if (started == threads) {
        peak_work(&workers[0]);
        for (int i = 1; i < threads; i++) pthread_join(workers[i].thread, NULL);
        for (int i = 0; i < threads; i++) rate += workers[i].rate;
        pthread_barrier_destroy(&start);
        free(workers);
    }
    return rate;
}

#endif
