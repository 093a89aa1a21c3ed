/* 09 the overlapped pipeline: exponentials under products.
 *
 * A tile costs a warpgroup 128 * 64 exponentials, of which a multiprocessor does 16 a cycle, and seven times as
 * many other operations of the softmax (three of them are exp2f()'s care for subnormals, which the library leaves out): with
 * head dimension 64, more time than its two products. Tensor cores that
 * wait for them are more than half idle. Two overlaps hide them (FlashAttention-3, Shah et al., arXiv 2407.08608).
 *
 * Within a warpgroup: products run in the background, so there should always be one while the softmax computes.
 * Q K^T of the next tile does not depend on the softmax of this one, nor does P V of this one on the next softmax:
 *
 *     S = Q K_0^T, softmax
 *     for each tile i:
 *         start S' = Q K_{i+1}^T
 *         start O += P V_i
 *         wait for S' only; softmax of S' while P V_i runs
 *         wait for O; rescale it; P = S'
 *
 * Between warpgroups (ping-pong): they take turns with the tensor cores. A consumer starts its products when the other one has
 * finished its own S' and is in its softmax:
 *
 *     consumer 0     products          softmax           products          softmax
 *     consumer 1                       products          softmax           products
 *
 * A turn is a named barrier (PTX ISA, bar.sync with an id): one warpgroup waits at it, the other only arrives.
 *
 * With this the loop is nearly that of the library's sm_90a schedule, include/fa/kernel/attention_warpgroups.h. What that
 * adds: blocks of threads that stay and work through many blocks of queries, masks and hooks, any lengths and strides. It
 * passes its turn earlier, when both products have started, and waits for O before the exponentials (doc/hopper.md).
 */
#if !defined(NO_MAIN)
#define NO_MAIN
#define MAIN_09
#endif
#include "harness.h"

#include <fa/fa.h>

#if ON_GPU && FA__COMPILES_90
#undef HEAD_DIM
#include "08_producer_consumers.cu" /* roles_begin(), produce(), ROLES_KERNEL() */

/* Barrier 0 is __syncthreads(). 256: a warpgroup that waits and one that arrives. */
DEVICE void take_turn(int consumer) { fa_sm90_bar_sync(1 + consumer, 256); }
DEVICE void pass_turn(int consumer) { fa_sm90_bar_arrive(1 + (consumer + 1) % CONSUMERS, 256); }

DEVICE void overlapped_consume(const problem *p, roles_shared *shared, int consumer, uint16_t *o) {
    const int leader = threadIdx.x % 128 == 0, last = p->seqlen / KEYS - 1;
    group_state w;
    float s[KEYS / 2], factor[2];
    uint32_t weights[KEYS / 4];
    group_begin(&w);
    fa_mbarrier_wait(&shared->q_full, 0);
    if (consumer == CONSUMERS - 1) pass_turn(consumer); /* the first turn is consumer 0's */

    wait_full(shared->k_full, 0);
    take_turn(consumer);
    start_scores(s, &shared->q[consumer], &shared->k[0]);
    wait_scores(s, 0);
    pass_turn(consumer);
    if (leader) fa_mbarrier_arrive(&shared->k_empty[0]);
    group_softmax(&w, s, factor, p->scale); /* O is still zero */
    group_pack(weights, s);

    for (int i = 0; i < last; i++) {
        wait_full(shared->k_full, i + 1);
        take_turn(consumer);
        start_scores(s, &shared->q[consumer], &shared->k[(i + 1) % STAGES]);
        wait_full(shared->v_full, i);
        start_outputs(w.o, weights, &shared->v[i % STAGES]);
        wait_scores(s, 1); /* all but the latest group: S' is there */
        pass_turn(consumer);
        if (leader) fa_mbarrier_arrive(&shared->k_empty[(i + 1) % STAGES]);
        group_softmax(&w, s, factor, p->scale);
        /* One wait, which all four warps share (PTX ISA, .aligned): not one in either arm of the question, which
         * each warp answers for itself. */
        wait_outputs(w.o, 0);
        /* Once a few tiles have been seen, most bring no larger score, and O stays. */
        if (__any_sync(0xFFFFFFFF, factor[0] != 1 || factor[1] != 1)) group_rescale(&w, factor);
        if (leader) fa_mbarrier_arrive(&shared->v_empty[i % STAGES]);
        group_pack(weights, s);
    }

    wait_full(shared->v_full, last);
    start_outputs(w.o, weights, &shared->v[last % STAGES]);
    wait_outputs(w.o, 0);
    if (consumer == 0) take_turn(consumer); /* the turn that is left over */
    group_end(&w, o);
}

ROLES_KERNEL(overlapped_kernel, overlapped_consume)

static UNUSED void overlapped_pipeline(const problem *p) {
    wgmma_launch(overlapped_kernel, p, CONSUMERS * QUERIES, ROLES_THREADS, sizeof(roles_shared));
}
#endif

#if defined(MAIN_09)
#if ON_GPU && FA__COMPILES_90
int main(void) { return hopper_main("09_overlapped_pipeline", overlapped_pipeline, "08_producer_consumers", producer_consumers); }
#else
int main(void) { return hopper_main("09_overlapped_pipeline", NULL, NULL, NULL); }
#endif
#endif
