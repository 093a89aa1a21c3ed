/* 03 tiled: read a number from memory once, use it many times.
 *
 * In step 02 each thread reads every key and every value for its one query: a multiplication for each number read.
 * Here a block of threads takes a tile of 64 queries and walks along the keys in tiles of 32. A tile is loaded once
 * into shared memory and serves all 64 queries; and within it each thread computes a patch of 4 x 4 scores and 4 x
 * 8 outputs in registers, so that 8 numbers read from shared memory feed 16 multiplications.
 *
 *     for each tile of 32 keys:
 *         load       K tile, V tile     -> shared memory
 *         scores     S = Q K^T          64 x 32, 4 x 4 a thread      -> shared memory
 *         softmax    row by row         the online update of step 02, a tile at a time: one factor a row and tile
 *         output     O = factor O + P V 64 x 64, 4 x 8 a thread, in registers
 *
 * Between two phases the threads wait for each other (each FOR_THREADS ends with __syncthreads()): one reads what another
 * wrote. This is the loop of
 * FlashAttention (Dao et al., arXiv 2205.14135, and 2307.08691 for its order); all that follows does the same, only
 * with faster hardware.
 *
 * On the CPU a "block" is a call, shared memory is the cache, and a phase is a loop over the threads.
 */
#include "harness.h"

#define HEAD_DIM 64
#define THREADS 128
#define BLOCK_M 64 /* queries of a tile */
#define BLOCK_N 32 /* keys of a tile */
#define PAD 4      /* shifts each row to other banks of shared memory than the row above */

KERNEL tiled_kernel(problem p) {
    SHARED __attribute__((aligned(16))) float q[BLOCK_M][HEAD_DIM + PAD];
    SHARED __attribute__((aligned(16))) float k[HEAD_DIM][BLOCK_N + PAD]; /* transposed: keys side by side */
    SHARED __attribute__((aligned(16))) float v[BLOCK_N][HEAD_DIM];
    SHARED float s[BLOCK_M][BLOCK_N + PAD];                       /* scores, then weights */
    SHARED float highest[BLOCK_M], sum[BLOCK_M], factor[BLOCK_M]; /* the online softmax of each row */
    float o[PER_THREAD(THREADS)][4][8];                           /* registers that outlive a phase */
    int tiles = p.seqlen / BLOCK_M, head = BLOCK / tiles, first_query = BLOCK % tiles * BLOCK_M;
    int64_t base = (int64_t)head * p.seqlen; /* the head's first row in q, k, v and o */

    FOR_THREADS(t, THREADS) {
        for (int i = t; i < BLOCK_M * HEAD_DIM; i += THREADS)
            q[i / HEAD_DIM][i % HEAD_DIM] = p.scale * p.q[(base + first_query) * HEAD_DIM + i];
        for (int i = t; i < BLOCK_M; i += THREADS) highest[i] = -INFINITY, sum[i] = 0;
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 8; j++) o[OWN(t)][i][j] = 0;
    }
    for (int first_key = 0; first_key < p.seqlen; first_key += BLOCK_N) {
        FOR_THREADS(t, THREADS) { /* load: neighbouring threads read neighbouring addresses */
            for (int i = t; i < BLOCK_N * HEAD_DIM; i += THREADS) {
                k[i % HEAD_DIM][i / HEAD_DIM] = p.k[(base + first_key) * HEAD_DIM + i];
                v[i / HEAD_DIM][i % HEAD_DIM] = p.v[(base + first_key) * HEAD_DIM + i];
            }
        }
        FOR_THREADS(t, THREADS) { /* scores: thread t has rows t/8 + 16 i and columns t%8 * 4 + j */
            float patch[4][4] = {{0}};
            for (int d = 0; d < HEAD_DIM; d++)
                for (int i = 0; i < 4; i++)
                    for (int j = 0; j < 4; j++) patch[i][j] += q[t / 8 + 16 * i][d] * k[d][t % 8 * 4 + j];
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) s[t / 8 + 16 * i][t % 8 * 4 + j] = patch[i][j];
        }
        FOR_THREADS(t, THREADS) { /* softmax: a row a thread; half of the threads have none */
            if (t >= BLOCK_M) continue;
            float new_highest = highest[t], row_sum = 0;
            for (int j = 0; j < BLOCK_N; j++) new_highest = fmaxf(new_highest, s[t][j]);
            for (int j = 0; j < BLOCK_N; j++) row_sum += s[t][j] = expf(s[t][j] - new_highest);
            factor[t] = expf(highest[t] - new_highest);
            sum[t] = sum[t] * factor[t] + row_sum;
            highest[t] = new_highest;
        }
        FOR_THREADS(t, THREADS) { /* output: thread t has rows t/8 + 16 i and columns t%8 * 8 + j */
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 8; j++) o[OWN(t)][i][j] *= factor[t / 8 + 16 * i];
            for (int key = 0; key < BLOCK_N; key++)
                for (int i = 0; i < 4; i++)
                    for (int j = 0; j < 8; j++) o[OWN(t)][i][j] += s[t / 8 + 16 * i][key] * v[key][t % 8 * 8 + j];
        }
    }
    FOR_THREADS(t, THREADS) {
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 8; j++)
                p.o[(base + first_query + t / 8 + 16 * i) * HEAD_DIM + t % 8 * 8 + j] =
                    o[OWN(t)][i][j] / sum[t / 8 + 16 * i];
    }
}

static void tiled(const problem *p) { launch(tiled_kernel, p->batch * p->heads * (p->seqlen / BLOCK_M), THREADS, p); }
#undef THREADS
#undef BLOCK_M
#undef BLOCK_N
#undef PAD

#ifndef NO_MAIN
#define NO_MAIN
#undef HEAD_DIM
#include "02_online_softmax.cu"
int main(void) { return ladder_main("03_tiled", tiled, FP32, "02_online_softmax", online_softmax); }
#endif
