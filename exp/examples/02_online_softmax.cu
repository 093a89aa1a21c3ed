/* 02 online softmax: no score matrix.
 *
 * Softmax looks as though it needed a row's scores twice: once for the largest and the sum, once for the weights.
 * It does not (Milakov and Gimelshein, arXiv 1805.02867). Walk along the keys with three things in hand:
 *
 *     highest    the largest score so far
 *     sum        the sum of exp(s - highest) so far
 *     o          the sum of exp(s - highest) * v so far
 *
 * When a larger score turns up, what was summed relative to the old maximum becomes relative to the new one by a single
 * factor, exp(old - new). At the end o / sum is the answer, exactly: no approximation is involved.
 *
 * One thread now does a whole row. It keeps q and o in registers, a score lives for a moment, and memory holds Q,
 * K, V and O, nothing else. This is the idea that makes attention fit in memory; the next steps make it fast.
 */
#include "harness.h"

#define HEAD_DIM 64
#define THREADS 128

KERNEL online_softmax_kernel(problem p) {
    FOR_THREADS(t, THREADS) {
        int64_t row = (int64_t)BLOCK * THREADS + t, head = row / p.seqlen;
        const float *k = p.k + head * p.seqlen * HEAD_DIM, *v = p.v + head * p.seqlen * HEAD_DIM;
        float q[HEAD_DIM], o[HEAD_DIM], highest = -INFINITY, sum = 0;
        for (int d = 0; d < HEAD_DIM; d++) q[d] = p.scale * p.q[row * HEAD_DIM + d], o[d] = 0;

        for (int key = 0; key < p.seqlen; key++, k += HEAD_DIM, v += HEAD_DIM) {
            float s = 0;
            for (int d = 0; d < HEAD_DIM; d++) s += q[d] * k[d];
            if (s > highest) { /* rare once the largest scores have been seen: about log(seqlen) times a row */
                float factor = expf(highest - s); /* exp(-infinity) = 0 the first time */
                for (int d = 0; d < HEAD_DIM; d++) o[d] *= factor;
                sum *= factor;
                highest = s;
            }
            float weight = expf(s - highest);
            sum += weight;
            for (int d = 0; d < HEAD_DIM; d++) o[d] += weight * v[d];
        }
        for (int d = 0; d < HEAD_DIM; d++) p.o[row * HEAD_DIM + d] = o[d] / sum;
    }
}

static void online_softmax(const problem *p) {
    launch(online_softmax_kernel, (int)((int64_t)p->batch * p->heads * p->seqlen / THREADS), THREADS, p);
}
#undef THREADS

#ifndef NO_MAIN
#define NO_MAIN
#undef HEAD_DIM
#include "01_naive.cu"
int main(void) {
    problem p = ladder_problem();
    example e = {"02_online_softmax", online_softmax, FP32, NULL, 1, "01_naive", naive};
    p.scratch = (float *)device_alloc(naive_bytes(&p)); /* only for 01 */
    int status = example_report(&p, e);
    problem_free(&p);
    return status;
}
#endif
