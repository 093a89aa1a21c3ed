/* rows.c: fa/philox.h, fa/reduce.h and fa/row.h by themselves, in small kernels. The same source runs on the CPU and,
 * compiled by nvcc, on the GPU. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <fa/fa.h>
#include <fa/philox.h>

#include "../harness/matrix.h"
#include "../harness/number.h"
#include "../harness/tap.h"

#if defined(__CUDACC__)
#define KERNEL static __global__ void
#define SHARED __shared__
#define BLOCK ((int)blockIdx.x)
#if defined(TEST_SIMULATOR)
#include "launch.h"
#define LAUNCH(kernel, blocks, threads, ...) simulator_launch(kernel, (unsigned)(blocks), (unsigned)(threads), 0, __VA_ARGS__)
#define COUNT(counter) (++*(counter))
#else
#define LAUNCH(kernel, blocks, threads, ...) (kernel<<<(unsigned)(blocks), (unsigned)(threads)>>>(__VA_ARGS__), memory_launched())
#define COUNT(counter) atomicAdd(counter, 1)
#endif
#define PLACE MEMORY_DEVICE
#else
#define KERNEL static void
#define SHARED
static int the_block;
#define BLOCK the_block
#define LAUNCH(kernel, blocks, threads, ...)                                          \
    do {                                                                              \
        (void)(threads);                                                              \
        for (the_block = 0; the_block < (blocks); the_block++) kernel(__VA_ARGS__);   \
    } while (0)
#define COUNT(counter) (++*(counter))
#define PLACE MEMORY_HOST
#endif

static void finish(void) { memory_finish(PLACE); }

/* ---- Philox ---- */

KERNEL philox_words(const uint32_t *in, uint32_t *out) { /* 6 words in: counter, key; 4 out; then those of seed and counter */
    fa_random4 r = fa_philox4x32(in[0], in[1], in[2], in[3], in[4], in[5]);
    fa_random4 s = fa_philox((uint64_t)in[5] << 32 | in[4], (uint64_t)in[1] << 32 | in[0]);
    for (int i = 0; i < 4; i++) out[i] = r.word[i], out[4 + i] = s.word[i];
}

static void philox(void) {
    /* The published known answers for philox4x32 with 10 rounds: counter, key, result. */
    static const uint32_t known[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};
    uint32_t out[8], *from = (uint32_t *)memory_new(PLACE, 24), *to = (uint32_t *)memory_new(PLACE, sizeof out);
    for (int i = 0; i < 3; i++) {
        memory_put(PLACE, from, known[i], 24);
        LAUNCH(philox_words, 1, 1, from, to);
        finish();
        memory_get(PLACE, out, to, sizeof out);
        tap_ok(!memcmp(out, known[i] + 6, 16), "Philox 4x32-10: known answer %d: %08x %08x %08x %08x", i + 1, out[0], out[1], out[2], out[3]);
        if (i == 0) tap_ok(!memcmp(out + 4, known[i] + 6, 16), "a seed and a counter of 0");
    }
    {
        const uint32_t words[6] = {5, 6, 0, 0, 7, 8};
        memory_put(PLACE, from, words, 24);
        LAUNCH(philox_words, 1, 1, from, to);
        finish();
        memory_get(PLACE, out, to, sizeof out);
        tap_ok(!memcmp(out, out + 4, 16), "a seed and a counter of 64 bits are words, low ones first");
    }
    memory_delete(PLACE, from, 24), memory_delete(PLACE, to, sizeof out);

    tap_ok(fa_dropout_threshold(0) == 0 && fa_dropout_threshold(1) == (uint64_t)1 << 32 && fa_dropout_threshold(0.5f) == (uint64_t)1 << 31,
           "thresholds of 0, 1 and 1/2");
    tap_ok(fa_dropout_threshold(1e-10f) == 1 && fa_dropout_keeps(0, 0) && fa_dropout_keeps(0x80000000u, (uint64_t)1 << 31) &&
               !fa_dropout_keeps(0x7FFFFFFFu, (uint64_t)1 << 31) && !fa_dropout_keeps(0xFFFFFFFFu, (uint64_t)1 << 32),
           "a word is kept from probability * 2^32 on");
    int kept = 0;
    for (uint64_t i = 0; i < 25000; i++)
        for (int w = 0; w < 4; w++) kept += fa_dropout_keeps(fa_philox(3, i).word[w], fa_dropout_threshold(0.3f));
    tap_ok(abs(kept - 70000) < 700, "a probability of 0.3 drops 30 of 100 (kept %d of 100000)", kept);
    const fa_dropout half = fa_dropout_of(0.5f, 3, 9);
    int right = 1;
    for (int first = -8; first < 9; first++) /* a row's first vector may begin before element 0 */
        for (int count = 1; count <= 32; count++) {
            const uint32_t bits = fa_dropout_kept(&half, (uint64_t)first, count);
            for (int i = first < 0 ? -first : 0; i < 32; i++) {
                uint32_t word = fa_philox(3, 9 + (uint64_t)(first + i) / 4).word[(first + i) % 4];
                right &= (int)(bits >> i & 1) == (i < count && fa_dropout_keeps(word, half.threshold));
            }
        }
    const fa_dropout none = fa_dropout_of(0, 3, 9), every = fa_dropout_of(1, 3, 9);
    right &= fa_dropout_kept(&none, 6, 11) == 0x7FF && fa_dropout_kept(&none, 6, 32) == ~0u && fa_dropout_kept(&every, 6, 32) == 0;
    tap_ok(right, "elements from anywhere on are kept as their words say");
}

/* ---- reductions ---- */

#define FA_NAME red
#define FA_BLOCKS 8
#include <fa/reduce.h>
#define FA_NAME red_one
#include <fa/reduce.h>

enum { VALUES = 32, RESULTS = 14, OF_WARPS = 10 };
/* Every thread: VALUES numbers in; the team's sum, maximum, softmax state out, and the number of threads. Several
 * times, so that the halves of the shared memory take turns. Then two sums at once; moments, to which every fifth
 * thread has nothing to add and the others numbers of different size; and, on a GPU, moments that warps have, every
 * third none, and a sum over a warp's lanes. */
KERNEL reductions(const float *in, float *out, int threads, int blocks) {
    SHARED red_shared shared;
    float x[VALUES], finite[VALUES], max, sum;
    fa_team team = blocks > 1 ? red_cluster(blocks) : red_team(threads);
#if defined(__CUDACC__)
    int index = (int)(blockIdx.x * blockDim.x + threadIdx.x);
#else
    int index = BLOCK;
#endif
    for (int i = 0; i < VALUES; i++) {
        x[i] = in[index * VALUES + i];
        finite[i] = x[i] == -INFINITY ? 0.5f : x[i];
    }
    for (int round = 0; round < 3; round++) {
        out[index * RESULTS] = red_sum(red_sum_of(finite, VALUES), &team, &shared);
        out[index * RESULTS + 1] = red_max(red_max_of(x, VALUES, -INFINITY), &team, &shared);
        max = red_max_of(x, VALUES, -INFINITY);
        sum = max == -INFINITY ? 0 : red_exp_sum_of(x, VALUES, max, 1.5f);
        red_softmax(&max, &sum, 1.5f, &team, &shared);
        out[index * RESULTS + 2] = max;
        out[index * RESULTS + 3] = sum;
    }
    out[index * RESULTS + 4] = (float)team.threads;
    float *more = out + index * RESULTS + 5;
    more[0] = red_sum_of(finite, VALUES), more[1] = red_squares_of(finite, VALUES, 1.0f);
    red_sum2(&more[0], &more[1], &team, &shared);
    float count = index % 5 == 3 ? 0.0f : (float)VALUES, mean = 0.0f, squares = 0.0f;
    if (count > 0.0f) {
        const float own = red_sum_of(finite, VALUES) / VALUES;
        mean = own + (float)(index % 7), squares = red_squares_of(finite, VALUES, own);
    }
    red_moments(&count, &mean, &squares, &team, &shared);
    more[2] = count, more[3] = mean, more[4] = squares;
#if defined(__CUDACC__)
    const int warp = (int)threadIdx.x / 32;
    count = warp % 3 == 0 ? 0.0f : 10.0f + (float)warp, mean = 3000.0f + 2.0f * (float)warp, squares = 1.0f + (float)warp; /* empty at the beginning */
    if (warp % 3 == 0) mean = squares = 0.0f;
    red_warps_moments(&count, &mean, &squares, &team, &shared);
    more[5] = count, more[6] = mean, more[7] = squares;
    more[8] = red_lanes_sum((float)(index % 11), &team);
#endif
}

/* Count, mean, and squares about it: of numbers; and whether those of several sets, added up as count, sum and
 * squares about 0, are what came out. */
static void moments_of(const float *x, int count, double *moments) {
    moments[0] = count, moments[1] = moments[2] = 0;
    for (int i = 0; i < count; i++) moments[1] += (double)x[i] / count;
    for (int i = 0; i < count; i++) moments[2] += ((double)x[i] - moments[1]) * ((double)x[i] - moments[1]);
}
static void add_moments(double *all, double count, double mean, double squares) {
    all[0] += count, all[1] += count * mean, all[2] += squares + count * mean * mean;
}
static int are_moments(const double *all, const float *of) {
    const double mean = all[0] > 0 ? all[1] / all[0] : 0, squares = all[2] - all[0] * mean * mean;
    return of[0] == (float)all[0] && fabs(of[1] - mean) <= 1e-5 * (1 + fabs(mean)) && fabs(of[2] - squares) <= 1e-5 * (1 + squares);
}

static void reduce_teams(int blocks, int threads, int lanes, int cluster, rng *r) {
    enum { MOST = 8192 };
    static float in[MOST * VALUES], out[MOST * RESULTS];
    int count = PLACE == MEMORY_DEVICE ? blocks * threads : blocks, wrong = 0, differ = 0;
    float *from = (float *)memory_new(PLACE, sizeof in), *to = (float *)memory_new(PLACE, sizeof out);
    for (int i = 0; i < count * VALUES; i++) in[i] = rng_one_in(r, 9) || i / VALUES % 5 == 3 ? -INFINITY : (float)(4 * rng_normal(r));
    memory_put(PLACE, from, in, sizeof in);
#if defined(TEST_SIMULATOR)
    simulator_launch_clusters(reductions, (unsigned)blocks, (unsigned)threads, (unsigned)cluster, 0, (const float *)from, to, lanes, cluster);
#elif defined(__CUDACC__)
    cudaLaunchConfig_t launch = {};
    cudaLaunchAttribute shape;
    launch.gridDim = dim3((unsigned)blocks), launch.blockDim = dim3((unsigned)threads);
    shape.id = cudaLaunchAttributeClusterDimension;
    shape.val.clusterDim.x = (unsigned)cluster, shape.val.clusterDim.y = shape.val.clusterDim.z = 1;
    launch.attrs = &shape, launch.numAttrs = cluster > 1;
    cudaLaunchKernelEx(&launch, reductions, (const float *)from, to, lanes, cluster);
#else
    LAUNCH(reductions, blocks, threads, from, to, lanes, cluster);
#endif
    finish();
    memory_get(PLACE, out, to, sizeof out);
    for (int i = 0; i < count;) {
        int team = PLACE == MEMORY_HOST ? 1 : cluster > 1 ? threads * cluster : lanes <= 32 ? lanes : threads;
        double sum = 0, size = 0, max = -INFINITY, weights = 0, about_one = 0;
        double of_threads[3] = {0, 0, 0}, of_warps[3] = {0, 0, 0};
        for (int t = i; t < i + team; t++) {
            float finite[VALUES];
            double own[3];
            for (int j = 0; j < VALUES; j++) {
                const float x = in[t * VALUES + j];
                finite[j] = isinf(x) ? 0.5f : x;
                sum += (double)finite[j], size += fabs((double)finite[j]), about_one += ((double)finite[j] - 1) * ((double)finite[j] - 1);
            }
            moments_of(finite, VALUES, own);
            if (t % 5 != 3) add_moments(of_threads, own[0], own[1] + t % 7, own[2]);
            const int warp = t % threads / 32;
            if (t % 32 == 0 && warp % 3 != 0) add_moments(of_warps, 10 + warp, 3000 + 2 * warp, 1 + warp);
        }
        for (int j = i * VALUES; j < (i + team) * VALUES; j++) max = fmax(max, (double)in[j]);
        for (int j = i * VALUES; j < (i + team) * VALUES; j++) weights += max == -INFINITY ? 0 : exp2(((double)in[j] - max) * 1.5);
        for (int t = i; t < i + team; t++) {
            const float *o = out + t * RESULTS;
            wrong += !(fabs((double)o[0] - sum) <= 1e-6 * size);
            wrong += (double)o[1] != max || (double)o[2] != max || !(fabs((double)o[3] - weights) <= 2e-6 * weights) || o[4] != (float)team;
            wrong += !(fabs((double)o[5] - sum) <= 1e-6 * size) || !(fabs((double)o[6] - about_one) <= 1e-6 * about_one) || !are_moments(of_threads, o + 7);
            differ += memcmp(o, out + i * RESULTS, sizeof *o * OF_WARPS) != 0;
            if (PLACE == MEMORY_HOST) continue;
            double lanes_sum = 0;
            const int first = t / (team < 32 ? team : 32) * (team < 32 ? team : 32);
            for (int j = first; j < first + team && j < first + 32; j++) lanes_sum += j % 11;
            wrong += team >= 32 && !are_moments(of_warps, o + OF_WARPS);
            wrong += (double)o[13] != lanes_sum;
        }
        i += team;
    }
    tap_ok(!wrong && !differ, "sums, maxima, moments and softmax states of teams of %d threads, %d blocks each (%d wrong, %d differ within a team)",
           PLACE == MEMORY_HOST ? 1 : lanes, cluster, wrong, differ);
    memory_delete(PLACE, from, sizeof in), memory_delete(PLACE, to, sizeof out);
}

KERNEL of_one_thread(const float *in, float *out) { /* 64 numbers, twice */
    float x[64], y[64], e[64];
    for (int i = 0; i < 64; i++) x[i] = e[i] = in[i], y[i] = in[64 + i];
    out[0] = red_one_max_of(x, 64, -1.0f);
    out[1] = red_one_max_of(x, 16, 100.0f);
    out[2] = red_one_sum_of(x, 48);
    out[3] = red_one_dot_of(x, y, 64);
    out[4] = red_one_exp_sum_of(x, 64, 2.0f, 0.75f);
    out[5] = red_one_exp_of(e, 64, 2.0f, 0.75f);
    for (int i = 0; i < 64; i++) out[6 + i] = e[i];
    out[70] = red_one_exp_to(e, x, 64, 2.0f, 0.75f);
    for (int i = 0; i < 64; i++) out[71] = i == 0 ? 0.0f : out[71] + (e[i] != out[6 + i]);
    out[72] = red_one_squares_of(x, 32, 0.25f);
}
static void reduce_elements(rng *r) {
    float in[128], out[73], *from = (float *)memory_new(PLACE, sizeof in), *to = (float *)memory_new(PLACE, sizeof out);
    double max = -1, sum = 0, dot = 0, weights = 0, worst = 0, squares = 0;
    for (int i = 0; i < 128; i++) in[i] = (float)rng_normal(r);
    memory_put(PLACE, from, in, sizeof in);
    LAUNCH(of_one_thread, 1, 1, from, to);
    finish();
    memory_get(PLACE, out, to, sizeof out);
    for (int i = 0; i < 64; i++) {
        double e = exp2(((double)in[i] - 2) * 0.75);
        max = fmax(max, (double)in[i]), sum += i < 48 ? (double)in[i] : 0, dot += (double)in[i] * (double)in[64 + i], weights += e;
        worst = number_worse(worst, fabs((double)out[6 + i] - e) / e);
        squares += i < 32 ? ((double)in[i] - 0.25) * ((double)in[i] - 0.25) : 0;
    }
    tap_ok((double)out[0] == max && out[1] == 100, "the maximum of a thread's elements, and of a start");
    tap_ok(fabs((double)out[2] - sum) < 1e-5 && fabs((double)out[3] - dot) < 1e-5, "a sum and a dot product of a thread's elements");
    tap_ok(fabs((double)out[4] - weights) < 1e-5 * weights && fabs((double)out[5] - weights) < 1e-5 * weights && worst < 1e-6,
           "exponentials of a thread's elements, and their sum (largest error %.2g)", worst);
    tap_ok(out[70] == out[5] && out[71] <= 0 && fabs((double)out[72] - squares) < 1e-5 * squares, "the same written elsewhere; squares about a number");
    memory_delete(PLACE, from, sizeof in), memory_delete(PLACE, to, sizeof out);
}

KERNEL merge_sets(const float *in, float *out) { /* count, mean, squares of two sets; of both */
    for (int i = 0; i < 3; i++) out[i] = in[i];
    red_one_merge(&out[0], &out[1], &out[2], in[3], in[4], in[5]);
}
static void merges(rng *r) {
    static const int counts[][2] = {{5, 7}, {1, 1}, {1, 300}, {300, 200}, {0, 7}, {5, 0}, {0, 0}};
    float x[500], in[6], out[3], *from = (float *)memory_new(PLACE, sizeof in), *to = (float *)memory_new(PLACE, sizeof out);
    double worst = 0;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        const int first = counts[c][0], all = first + counts[c][1];
        double of[3][3];
        for (int i = 0; i < all; i++) x[i] = (float)(rng_normal(r) + (i < first ? 3 : -2));
        moments_of(x, first, of[0]), moments_of(x + first, all - first, of[1]), moments_of(x, all, of[2]);
        for (int i = 0; i < 6; i++) in[i] = (float)of[i / 3][i % 3];
        memory_put(PLACE, from, in, sizeof in);
        LAUNCH(merge_sets, 1, 1, from, to);
        finish();
        memory_get(PLACE, out, to, sizeof out);
        for (int i = 0; i < 3; i++) worst = number_worse(worst, fabs((double)out[i] - of[2][i]) / (1 + fabs(of[2][i])));
    }
    tap_ok(worst < 2e-6, "count, mean and squares of two sets of numbers become those of both (largest error %.2g)", worst);
    memory_delete(PLACE, from, sizeof in), memory_delete(PLACE, to, sizeof out);
}

/* ---- rows ---- */

#define FA_NAME f32
#define FA_DTYPE FA_F32
#define FA_COLS 512
#define FA_THREADS 64
#include <fa/row.h>
#define FA_NAME f16
#define FA_DTYPE FA_F16
#define FA_COLS 512
#include <fa/row.h>
#define FA_NAME bf16
#define FA_DTYPE FA_BF16
#define FA_COLS 768
#define FA_THREADS 96
#define FA_HOLD FA_SHARED
#include <fa/row.h>
/* Rows of whole vectors, some of whose slots stay empty. */
#define FA_NAME vectors
#define FA_DTYPE FA_F16
#define FA_COLS 512
#define FA_THREADS 64
#define FA_HOLD FA_SHARED
#define FA_PIECES 2
#define FA_WHOLE 2
#include <fa/row.h>

/* A block copies a row, with the parity of the column added, so that an element in the wrong column shows; by loads,
 * or from where it is held; and counts elements outside the row that are not what they were to be filled with. */
#define COPY(type, element)                                                                                            \
    KERNEL copy_##type(fa_matrix from, fa_matrix to, int64_t cols, int hold, int stream, int *wrong) {                 \
        fa_team team = red_one_team(64);                                                                               \
        float x[type##_LENGTH];                                                                                        \
        type##_held held;                                                                                              \
        type##_view in = type##_at((const element *)from.data + BLOCK * from.stride_row, cols, &team);                 \
        type##_view out = type##_like((const element *)to.data + BLOCK * to.stride_row, &in);                          \
        if (stream) type##_stream(&out);                                                                               \
        SHARED __attribute__((aligned(16))) unsigned char slots[36864];                                                \
        if (hold) type##_hold(&held, hold == 2 ? slots : NULL, &in, 77.0f);                                            \
        if (hold) type##_wait();                                                                                       \
        for (int64_t piece = 0; piece < (hold ? type##_held_pieces(&in) : type##_pieces(&in)); piece++) {              \
            if (hold) type##_get(x, &held, &in, piece);                                                                \
            else type##_load(x, &in, piece, 77.0f);                                                                    \
            for (int i = 0; i < type##_count(&in, piece); i++) {                                                       \
                int64_t col = type##_col(&in, piece, i);                                                               \
                if (col < 0 || col >= cols) {                                                                          \
                    if (x[i] != 77.0f) COUNT(wrong);                                                                   \
                } else {                                                                                               \
                    x[i] += (float)(col % 2);                                                                          \
                }                                                                                                      \
            }                                                                                                          \
            type##_store(&out, piece, x);                                                                              \
        }                                                                                                              \
    }
COPY(f32, float)
COPY(f16, uint16_t)
COPY(bf16, uint16_t)
COPY(vectors, uint16_t)
enum { OF_VECTORS = 3 }; /* a value of `hold` */

static int copied(int dtype, int threads, int64_t cols, const int *gap, const int *tail, int hold, int stream, rng *r) {
    matrix x = matrix_new(PLACE, dtype, 3, cols, gap[0], tail[0], 0), y = matrix_new(PLACE, dtype, 3, cols, gap[1], tail[1], 1);
    int wrong = 0, intact, *counter = (int *)memory_new(PLACE, sizeof *counter);
    tap_context("rows: type %d, %lld columns, gaps %d %d, tails %d %d, hold %d", dtype, (long long)cols, gap[0], gap[1], tail[0], tail[1], hold);
    for (int i = 0; i < 3; i++)
        for (int64_t j = 0; j < cols; j++) matrix_set(&x, i, j, rng_int(r, -100, 100));
    matrix_upload(&x), matrix_upload(&y), memory_put(PLACE, counter, &wrong, sizeof wrong);
    if (dtype == FA_F32) LAUNCH(copy_f32, 3, threads, x.at, y.at, cols, hold, stream, counter);
    if (dtype == FA_F16 && hold != OF_VECTORS) LAUNCH(copy_f16, 3, threads, x.at, y.at, cols, hold, stream, counter);
    if (hold == OF_VECTORS) LAUNCH(copy_vectors, 3, threads, x.at, y.at, cols, 2, stream, counter);
    if (dtype == FA_BF16) LAUNCH(copy_bf16, 3, threads, x.at, y.at, cols, hold, stream, counter);
    matrix_download(&x), matrix_download(&y), memory_get(PLACE, &wrong, counter, sizeof wrong);
    for (int i = 0; i < 3; i++)
        for (int64_t j = 0; j < cols; j++) wrong += matrix_get(&y, i, j) != matrix_get(&x, i, j) + (double)(j % 2);
    intact = matrix_intact(&x) && matrix_intact(&y);
    if (wrong || !intact)
        tap_note("%s, %lld columns, gaps %d %d, tails %d %d, %d threads, hold %d: %d wrong; around it %s", number_name(dtype), (long long)cols, gap[0],
                 gap[1], tail[0], tail[1], threads, hold, wrong, intact ? "nothing was written" : "something was written");
    matrix_delete(&x), matrix_delete(&y), memory_delete(PLACE, counter, sizeof *counter);
    return !wrong && intact;
}
static void rows(int dtype, rng *r) {
    /* Lengths around those of a vector and of a piece (512 columns among 64 threads: 8 a thread; f16 16, bf16 8). */
    static const int64_t cols[] = {1, 2, 7, 8, 9, 16, 31, 255, 505, 511, 512, 513, 768, 1000, 1025, 3001};
    static const int threads[] = {64, 96, 256};
    for (int hold = 0; hold < 3; hold++) {
        int passed = 1;
        for (size_t c = 0; c < sizeof cols / sizeof *cols; c++)
            for (int t = 0; t < 3; t++)
                for (int round = 0; round < 6; round++) {
                    /* Contiguous; aligned alike but oddly; any two. */
                    int gap[2] = {round < 2 ? 0 : rng_int(r, 0, 17), 0}, tail[2] = {round == 0 ? 0 : rng_int(r, 0, 9), 0};
                    gap[1] = round < 4 ? gap[0] : rng_int(r, 0, 17), tail[1] = round < 4 ? tail[0] : rng_int(r, 0, 9);
                    /* Registers hold one piece: 8 or 16 columns a thread. */
                    if (hold && dtype != FA_BF16 && PLACE == MEMORY_DEVICE && cols[c] > threads[t] * (dtype == FA_F32 ? 8 : 16)) continue;
                    passed &= copied(dtype, threads[t], cols[c], gap, tail, hold, round % 2, r);
                }
        tap_ok(passed, "%s: rows of any length and place, %s", number_name(dtype), hold == 0 ? "loaded" : hold == 1 ? "held or read again" : "held in slots");
    }
}
static void rows_of_vectors(rng *r) {
    static const int64_t cols[] = {8, 64, 504, 512, 520, 1016, 1024};
    const int none[2] = {0, 0};
    int passed = 1;
    for (size_t c = 0; c < sizeof cols / sizeof *cols; c++) passed &= copied(FA_F16, 64, cols[c], none, none, OF_VECTORS, 0, r);
    tap_ok(passed, "f16: rows of whole vectors held in slots, which are filled where there is no column");
}

/* ---- dropout of rows: drawn at once where there are few elements, or piece by piece ---- */

#define FA_NAME few
#define FA_DTYPE FA_F32
#define FA_COLS 16
#define FA_THREADS 4
#define FA_PIECES 1
#include <fa/row.h>

#define DROP(type)                                                                              \
    KERNEL drop_##type(const float *in, float *out, int cols, uint64_t first, float probability) { \
        fa_team team = red_team(4); /* all teams of a block do the same */                      \
        float x[type##_LENGTH];                                                                 \
        const fa_dropout dropout = fa_dropout_of(probability, 3, 9);                            \
        type##_view from = type##_at(in, cols, &team), to = type##_like(out, &from);            \
        type##_drawn drawn = type##_draw(&from, first, &dropout);                               \
        for (int64_t piece = 0; piece < type##_pieces(&from); piece++) {                        \
            type##_load(x, &from, piece, 0.0f);                                                 \
            type##_dropout(x, &from, piece, &drawn);                                            \
            type##_store(&to, piece, x);                                                        \
        }                                                                                       \
    }
DROP(few)
DROP(f32)

static void drops(void) {
    enum { DROPPED = 16 };
    static const float probabilities[] = {0, 0.5f, 1};
    float x[DROPPED], y[2][DROPPED], nothing[DROPPED], *in = (float *)memory_new(PLACE, sizeof x), *out = (float *)memory_new(PLACE, sizeof x);
    int wrong = 0;
    for (int i = 0; i < DROPPED; i++) x[i] = (float)(i + 1), nothing[i] = NAN;
    memory_put(PLACE, in, x, sizeof x);
    for (int p = 0; p < 3; p++)
        for (uint64_t first = 40; first < 43; first++) {
            const fa_dropout dropout = fa_dropout_of(probabilities[p], 3, 9);
            memory_put(PLACE, out, nothing, sizeof nothing);
            LAUNCH(drop_few, 1, 32, in, out, DROPPED, first, probabilities[p]);
            finish(), memory_get(PLACE, y[0], out, sizeof x);
            memory_put(PLACE, out, nothing, sizeof nothing);
            LAUNCH(drop_f32, 1, 32, in, out, DROPPED, first, probabilities[p]);
            finish(), memory_get(PLACE, y[1], out, sizeof x);
            for (int i = 0; i < 2 * DROPPED; i++) {
                const uint64_t element = first + (uint64_t)(i % DROPPED);
                const int keeps = fa_dropout_keeps(fa_philox(3, 9 + element / 4).word[element % 4], dropout.threshold);
                wrong += y[i / DROPPED][i % DROPPED] != (keeps ? x[i % DROPPED] * dropout.scale : 0);
            }
        }
    tap_ok(!wrong, "dropout of a row, with probabilities 0, 0.5 and 1 (%d elements wrong)", wrong);
    memory_delete(PLACE, in, sizeof x), memory_delete(PLACE, out, sizeof x);
}

/* ---- what a CPU's scan says of the piece that comes next ---- */

#if !defined(__CUDACC__)
static void scans(void) {
    static const int64_t cols[] = {1, 511, 512, 513, 600, 1023, 1024, 1025};
    static float row[1025];
    int right = 1;
    const fa_team team = red_one_team(1);
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
        const f32_scan scan = f32_scan_of(row, cols[i], &team);
        right &= f32_scan_more(&scan) == (cols[i] > 512) && f32_scan_full(&scan) == (cols[i] >= 1024);
    }
    tap_ok(right, "whether all of a row's second piece is there, or any of it");
}
#endif

/* ---- the CPU's vectors of halves, in both orders: every bit as fa_bf16_from_float() has it, NaN whatever its bits
 * are ---- */

#if !defined(__CUDACC__) && defined(__x86_64__)
#include <fa/arch/cpu/ops.h>
static FA__CPU_TARGET(FA__ISA_AVX2) int rounds_as_one(rng *r) {
    static const uint32_t special[] = {0xFFFFFFFF, 0x7FFFFFFF, 0x7F800001, 0xFF800001, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x00008000,
                                       0x00018000, 0x3F808000, 0x3F818000, 0x3F808001, 0xBF80FFFF, 0x80000000, 0x00000001, 0x7FC00000};
    for (int round = 0; round < 100000; round++) {
        uint32_t bits[16];
        float x[16];
        fa_bf16 side[16], split[16];
        fa_cpu_vec_1 a, b;
        for (int i = 0; i < 16; i++) {
            bits[i] = (uint32_t)rng_next(r);
            if (round % 2 && i == round / 2 % 16) bits[i] = special[round / 32 % 16];
            if (round % 4 == 0 && (bits[i] & 0x7F800000) == 0x7F800000) bits[i] ^= 0x40000000; /* none but numbers */
        }
        memcpy(x, bits, sizeof x), memcpy(&a, x, sizeof a), memcpy(&b, x + 8, sizeof b);
        fa_cpu_put_bf16_1(side, a, b, 0, 0), fa_cpu_put_bf16_pair_1(split, a, b, 0);
        for (int i = 0; i < 16; i++)
            if (side[i] != fa_bf16_from_float(x[i]) || split[i % 8 * 2 + i / 8] != fa_bf16_from_float(x[i])) return 0;
    }
    return 1;
}
static void vectors(rng *r) {
    if (fa__cpu_isa() == FA__ISA_BASE) tap_skip("bf16 of vectors of floats: no AVX2");
    else tap_ok(rounds_as_one(r), "bf16 of vectors of floats are those of the floats, NaN and ties too");
}
#endif

int main(void) {
    const char *why = NULL;
    rng r;
    if (PLACE == MEMORY_DEVICE && !memory_has_device(&why)) {
        tap_skip("row primitives on the GPU: %s", why);
        return tap_end();
    }
    (void)why;
    r = rng_new(rng_seed(), 320);
    philox();
    reduce_elements(&r);
    merges(&r);
#if defined(__CUDACC__)
    for (int lanes = 1; lanes <= 32; lanes *= 2) reduce_teams(3, 128, lanes, 1, &r);
    reduce_teams(3, 64, 64, 1, &r), reduce_teams(3, 96, 96, 1, &r), reduce_teams(2, 1024, 1024, 1, &r);
    {
        int major = 0;
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
        if (major < 9) tap_skip("reductions of a cluster: the GPU has none");
        for (int cluster = 2; major >= 9 && cluster <= 8; cluster *= 2) reduce_teams(8, 96, 96, cluster, &r), reduce_teams(8, 1024, 1024, cluster, &r);
    }
#else
    reduce_teams(7, 1, 1, 1, &r);
    scans();
#if defined(__x86_64__)
    vectors(&r);
#endif
#endif
    rows(FA_F32, &r);
    rows(FA_F16, &r);
    rows(FA_BF16, &r);
    rows_of_vectors(&r);
    drops();
    return tap_end();
}
