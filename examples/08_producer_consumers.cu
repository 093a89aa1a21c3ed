/* 08 a producer and consumers (warp specialisation): warps that only load, warps that only multiply.
 *
 * In step 07 every block of 64 queries brings all keys and values for itself, and its warpgroup stops twice a tile: at
 * __syncthreads(), since a buffer may only be filled again when everybody has read it, and to start the copies. Here
 * a block has 128 queries, so that a tile that is brought once is used twice, and its warps have roles:
 *
 *     producer, 1 thread:               consumers, 2 warpgroups of 64 queries:
 *         for each tile                     for each tile
 *             wait until its buffer             wait until its buffer
 *             is empty                          is full
 *             start the copy                    multiply, softmax, multiply
 *                                               say that the buffer is empty
 *
 * Nobody meets anybody at a block barrier any more. A buffer has two barriers, full and empty; the producer runs ahead
 * as far as there are buffers, and the two consumers drift apart: while one computes exponentials, the other has
 * the tensor cores. K and V have barriers of their own: Q K^T of a tile begins before its V is there.
 *
 * A producer needs few registers and consumers many, but a kernel has one number for all threads. setmaxnreg moves
 * them at run time: 384 threads at 168 registers become 128 at 24 and 256 at 240.
 */
#if !defined(NO_MAIN)
#define NO_MAIN
#define MAIN_08
#endif
#include "harness.h"

#include <fa/fa.h>

#if ON_GPU && FA__COMPILES_90
#undef HEAD_DIM
#include "07_wgmma.cu" /* group_state and its functions, start_scores() and start_outputs() */

#define CONSUMERS 2
#define STAGES 4 /* buffers for K, and for V */
#define ROLES_THREADS (128 * (CONSUMERS + 1))

typedef struct roles_shared {
    rows64_tile q[CONSUMERS];
    keys_tile k[STAGES], v[STAGES];
    fa_mbarrier q_full, k_full[STAGES], k_empty[STAGES], v_full[STAGES], v_empty[STAGES];
} roles_shared;

/* Tile i lies in buffer i % STAGES, which it fills in phase i / STAGES. */
DEVICE void wait_full(const fa_mbarrier *full, int i) { fa_mbarrier_wait(&full[i % STAGES], i / STAGES % 2); }
/* The tile before it in the buffer has been read; a barrier's phase "before the first" counts as ended. */
DEVICE void wait_empty(const fa_mbarrier *empty, int i) { fa_mbarrier_wait(&empty[i % STAGES], i / STAGES % 2 ^ 1); }

/* Prepares the barriers; the first warpgroup produces, the others consume. Returns the number of the warpgroup, which
 * the compiler must know to be the same for a whole warp. */
DEVICE int roles_begin(roles_shared *shared) {
    if (threadIdx.x == 0) {
        fa_mbarrier_init(&shared->q_full, CONSUMERS);
        for (int i = 0; i < STAGES; i++) {
            fa_mbarrier_init(&shared->k_full[i], 1), fa_mbarrier_init(&shared->v_full[i], 1);
            fa_mbarrier_init(&shared->k_empty[i], CONSUMERS), fa_mbarrier_init(&shared->v_empty[i], CONSUMERS);
        }
    }
    __syncthreads();
    return __shfl_sync(0xFFFFFFFF, (int)threadIdx.x / 128, 0);
}

/* The producer's life, in steps 08 and 09. */
DEVICE void produce(const mapped_problem *m, roles_shared *shared, int first, int head, int batch) {
    for (int i = 0; i < CONSUMERS; i++) rows64_fetch(&shared->q[i], rows64_source{&m->q, first + i * QUERIES, head, batch}, &shared->q_full);
    for (int i = 0; i < m->p.seqlen / KEYS; i++) {
        wait_empty(shared->k_empty, i);
        keys_fetch(&shared->k[i % STAGES], keys_source{&m->k, i * KEYS, head, batch}, &shared->k_full[i % STAGES]);
        wait_empty(shared->v_empty, i);
        keys_fetch(&shared->v[i % STAGES], keys_source{&m->v, i * KEYS, head, batch}, &shared->v_full[i % STAGES]);
    }
}

DEVICE void roles_consume(const problem *p, roles_shared *shared, int consumer, uint16_t *o) {
    /* Says for its warpgroup that a buffer is empty. It may, without a barrier: it has waited for the products that
     * read the buffer, and those belong to all four warps. */
    const int leader = threadIdx.x % 128 == 0;
    group_state w;
    float s[KEYS / 2], factor[2];
    uint32_t weights[KEYS / 4];
    group_begin(&w);
    fa_mbarrier_wait(&shared->q_full, 0);
    for (int i = 0; i < p->seqlen / KEYS; i++) {
        int slot = i % STAGES;
        wait_full(shared->k_full, i);
        start_scores(s, &shared->q[consumer], &shared->k[slot]);
        wait_scores(s, 0);
        if (leader) fa_mbarrier_arrive(&shared->k_empty[slot]);
        group_softmax(&w, s, factor, p->scale);
        group_rescale(&w, factor);
        group_pack(weights, s);
        wait_full(shared->v_full, i);
        start_outputs(w.o, weights, &shared->v[slot]);
        wait_outputs(w.o, 0);
        if (leader) fa_mbarrier_arrive(&shared->v_empty[slot]);
    }
    group_end(&w, o);
}

/* A thread block's life, in steps 08 and 09, which differ in what a consumer does. */
#define ROLES_KERNEL(name, consume) \
    KERNEL __launch_bounds__(ROLES_THREADS, 1) name(const __grid_constant__ mapped_problem m) { \
        extern __shared__ __align__(1024) unsigned char memory[]; \
        roles_shared *shared = (roles_shared *)memory; \
        int tiles = m.p.seqlen / (CONSUMERS * QUERIES), group = roles_begin(shared); \
        int head = BLOCK / tiles % m.p.heads, batch = BLOCK / tiles / m.p.heads, first = BLOCK % tiles * (CONSUMERS * QUERIES); \
        if (group == 0) { \
            fa_sm90_registers_lower(24); \
            if (threadIdx.x == 0) produce(&m, shared, first, head, batch); \
        } else { \
            fa_sm90_registers_raise(240); \
            first += (group - 1) * QUERIES; \
            consume(&m.p, shared, group - 1, m.p.o16 + ((int64_t)(batch * m.p.heads + head) * m.p.seqlen + first) * HEAD_DIM); \
        } \
    }
ROLES_KERNEL(roles_kernel, roles_consume)

static UNUSED void producer_consumers(const problem *p) {
    wgmma_launch(roles_kernel, p, CONSUMERS * QUERIES, ROLES_THREADS, sizeof(roles_shared));
}
#endif

#if defined(MAIN_08)
#if ON_GPU && FA__COMPILES_90
int main(void) { return hopper_main("08_producer_consumers", producer_consumers, "07_wgmma", wgmma); }
#else
int main(void) { return hopper_main("08_producer_consumers", NULL, NULL, NULL); }
#endif
#endif
