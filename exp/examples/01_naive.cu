/* 01 naive: attention as the formula reads.
 *
 *     S = scale * Q K^T     one score for every pair of a query and a key
 *     P = softmax(S)        each row on its own: exp(s - max) / sum
 *     O = P V               a mean of the values, weighted by P
 *
 * Three kernels, one after the other, and between them the whole score matrix lies in memory: heads * seqlen^2
 * floats. For 16 heads and 4,096 tokens that is 1 GiB to write three times and to read four times, while Q, K and V
 * together are 48 MiB. The matrix, not the arithmetic, is what makes this slow, and what makes it impossible for
 * long sequences.
 */
#include "harness.h"

#define HEAD_DIM 64
#define THREADS 256

/* One thread a score. A row is a query of one head: row = head * seqlen + query. */
KERNEL naive_scores(problem p) {
    FOR_THREADS(t, THREADS) {
        int64_t i = (int64_t)BLOCK * THREADS + t, row = i / p.seqlen, key = i % p.seqlen;
        const float *q = p.q + row * HEAD_DIM, *k = p.k + (row / p.seqlen * p.seqlen + key) * HEAD_DIM;
        float dot = 0;
        for (int d = 0; d < HEAD_DIM; d++) dot += q[d] * k[d];
        p.scratch[i] = p.scale * dot;
    }
}

/* One thread a row. Subtracting the largest score changes nothing in the quotient and keeps exp() from overflowing. */
KERNEL naive_softmax(problem p) {
    FOR_THREADS(t, THREADS) {
        float *s = p.scratch + ((int64_t)BLOCK * THREADS + t) * p.seqlen;
        float highest = -INFINITY, sum = 0;
        for (int key = 0; key < p.seqlen; key++) highest = fmaxf(highest, s[key]);
        for (int key = 0; key < p.seqlen; key++) sum += s[key] = expf(s[key] - highest);
        for (int key = 0; key < p.seqlen; key++) s[key] /= sum;
    }
}

/* One thread an element of O. */
KERNEL naive_output(problem p) {
    FOR_THREADS(t, THREADS) {
        int64_t i = (int64_t)BLOCK * THREADS + t, row = i / HEAD_DIM, d = i % HEAD_DIM;
        const float *v = p.v + row / p.seqlen * p.seqlen * HEAD_DIM + d;
        float sum = 0;
        for (int key = 0; key < p.seqlen; key++) sum += p.scratch[row * p.seqlen + key] * v[key * HEAD_DIM];
        p.o[i] = sum;
    }
}

static void naive(const problem *p) {
    int64_t rows = (int64_t)p->batch * p->heads * p->seqlen; /* a multiple of THREADS in the ladder's problems */
    launch(naive_scores, (int)(rows * p->seqlen / THREADS), THREADS, p);
    launch(naive_softmax, (int)(rows / THREADS), THREADS, p);
    launch(naive_output, (int)(rows * HEAD_DIM / THREADS), THREADS, p);
}
#undef THREADS

/* The score matrix's memory, allocated by whoever runs this. */
static size_t naive_bytes(const problem *p) {
    return sizeof(float) * (size_t)p->batch * (size_t)p->heads * (size_t)p->seqlen * (size_t)p->seqlen;
}

#ifndef NO_MAIN
int main(void) {
    problem p = ladder_problem();
    example e = {"01_naive", naive, FP32, NULL, 1, NULL, NULL};
    p.scratch = (float *)device_alloc(naive_bytes(&p));
    int status = example_report(&p, e);
    problem_free(&p);
    return status;
}
#endif
