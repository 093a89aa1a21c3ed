/* The cores' own FMA peak: every thread runs independent chains of fused multiply-adds in registers, with the widest
 * vectors that this processor and its operating system offer. fa's CPU kernels are measured against it. */
#ifndef FA_BENCH_PEAK_H
#define FA_BENCH_PEAK_H

#include <pthread.h>
#include <stdlib.h>

#include "bench.h"

/* Sixteen chains cover a latency of four cycles on two units twice over, and fit the registers everywhere but on
 * AVX2 and SSE, which have sixteen in all and take twelve. */
#define PEAK_CHAINS_12(X, ...) \
    X(0, __VA_ARGS__) X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) \
    X(6, __VA_ARGS__) X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__) X(11, __VA_ARGS__)
#define PEAK_CHAINS_16(X, ...) \
    PEAK_CHAINS_12(X, __VA_ARGS__) X(12, __VA_ARGS__) X(13, __VA_ARGS__) X(14, __VA_ARGS__) X(15, __VA_ARGS__)

/* Defines peak_NAME(rounds), for instructions that `attribute` allows: multiply-adds of vectors of that size, in
 * registers of the assembler's class `in`; %0 is a chain, %1 and %2 what all share. */
#define PEAK_VECTORS(name, attribute, bytes, chains, in, instructions)          \
    attribute static double peak_##name(long rounds) {                          \
        typedef float vector __attribute__((vector_size(bytes)));               \
        vector c[chains] = {{0}}, x = {0}, y = {0};                             \
        for (long i = 0; i < rounds; i++) {                                     \
            PEAK_CHAINS_##chains(PEAK_STEP, in, instructions)                   \
        }                                                                       \
        return 2.0 * chains * (bytes / 4) * (double)rounds;                     \
    }
#define PEAK_STEP(n, in, instructions) __asm__ volatile(instructions : "+" in(c[n]) : in(x), in(y));

typedef struct {
    const char *name;
    double (*run)(long rounds); /* returns the number of floating-point operations done */
} peak_unit;

#if defined(__x86_64__)
PEAK_VECTORS(avx512, __attribute__((target("avx512f"))), 64, 16, "v", "vfmadd231ps %1, %2, %0")
PEAK_VECTORS(avx2, __attribute__((target("avx2,fma"))), 32, 12, "x", "vfmadd231ps %1, %2, %0")
PEAK_VECTORS(sse, , 16, 12, "x", "mulps %1, %0\n\taddps %1, %0")
static peak_unit peak_find(void) {
    peak_unit avx512 = {"AVX-512", peak_avx512}, avx2 = {"AVX2", peak_avx2}, sse = {"SSE", peak_sse};
    return __builtin_cpu_supports("avx512f")                                 ? avx512
           : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? avx2
                                                                             : sse;
}
#elif defined(__aarch64__)
PEAK_VECTORS(neon, , 16, 16, "w", "fmla %0.4s, %1.4s, %2.4s")
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
#define PEAK_PLAIN(n, ...) \
    c[n] = c[n] * x + x;   \
    __asm__ volatile("" : "+m"(c[n]));
        PEAK_CHAINS_16(PEAK_PLAIN, )
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

static void *peak_work(void *argument) {
    peak_worker *w = (peak_worker *)argument;
    pthread_barrier_wait(w->start);
    double begin = wall_seconds(), operations = w->unit.run(w->rounds);
    w->rate = operations / (wall_seconds() - begin);
    return NULL;
}

/* FLOP/s of all threads together, over about `seconds`. */
static double peak_measure(peak_unit unit, int threads, double seconds) {
    double begin = wall_seconds(), operations = unit.run(100000); /* a short run sizes the long one */
    long rounds = (long)(100000 * seconds / (wall_seconds() - begin + 1e-9)) + 1;
    (void)operations;
    peak_worker *workers = (peak_worker *)calloc((size_t)threads, sizeof *workers);
    pthread_barrier_t start;
    double rate = 0;
    if (!workers || pthread_barrier_init(&start, NULL, (unsigned)threads)) die("FMA peak", "no memory for so many threads");
    for (int i = 0; i < threads; i++) {
        workers[i].start = &start, workers[i].unit = unit, workers[i].rounds = rounds;
        if (i > 0 && pthread_create(&workers[i].thread, NULL, peak_work, &workers[i])) die("FMA peak", "so many threads cannot be started");
    }
    peak_work(&workers[0]);
    for (int i = 1; i < threads; i++) pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < threads; i++) rate += workers[i].rate;
    pthread_barrier_destroy(&start);
    free(workers);
    return rate;
}

#endif
