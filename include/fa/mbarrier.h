/**
 * @file mbarrier.h
 * @brief Barriers in shared memory that count arrivals and bytes: where the copies of a tile (fa/tile.h, FA_TMA) complete.
 *
 * A barrier goes through phases. A phase ends when as many arrivals have come as fa_mbarrier_init() was told, and all
 * the expected bytes; the next one begins by itself. A waiting thread gives the parity of the phase: 0 for the first,
 * 1 for the second, 0 for the third. A thread may be one phase behind, not more.
 *
 * @code{.c}
 * #include <fa/fa.h>
 * #include <fa/mbarrier.h>
 *
 * #if defined(__CUDACC__) // nvcc -arch=sm_90a
 * __global__ void hand_over(int *out) { // 64 threads: a warp writes words for another, again and again
 *     __shared__ fa_mbarrier full, empty;
 *     __shared__ int word[32];
 *     if (threadIdx.x == 0) fa_mbarrier_init(&full, 32), fa_mbarrier_init(&empty, 32);
 *     __syncthreads();
 *     for (int round = 0; round < 10; round++) {
 *         if (threadIdx.x < 32) {
 *             if (round > 0) fa_mbarrier_wait(&empty, (round - 1) % 2);
 *             word[threadIdx.x] = round;
 *             fa_mbarrier_arrive(&full);
 *         } else {
 *             fa_mbarrier_wait(&full, round % 2);
 *             out[32 * round + threadIdx.x - 32] = word[63 - threadIdx.x];
 *             fa_mbarrier_arrive(&empty);
 *         }
 *     }
 * }
 * #endif
 * @endcode
 *
 * No parameters: a plain header. Without nvcc it has no functions; kernels that use it run on compute capability 9.0 and
 * newer. What a thread does before its arrival is ordered before what another thread does after its wait, but what it has read
 * not before what the copy engine then writes: threads that have read a tile themselves (ldmatrix, NAME_at()), and not only by
 * products, call fa_mbarrier_proxy_fence() before they arrive.
 *
 * Source: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".
 */
#ifndef FA_MBARRIER_H
#define FA_MBARRIER_H

#include <fa/fa.h>

/** A barrier. Place it in shared memory; kernel launches must not share one. */
typedef struct fa_mbarrier {
    uint64_t opaque; /**< the unit's own */
} fa_mbarrier;

#if defined(__CUDACC__)
#include <fa/arch/sm90/ops.h>

/** The shared-memory address of a barrier, as NAME_load() takes it. */
static __device__ __forceinline__ FA_UNUSED uint32_t fa_mbarrier_address(const fa_mbarrier *barrier) { return fa_sm90_shared_address(barrier); }

/** Prepares a barrier whose phases end with `arrivals` arrivals. One thread calls it; after a block barrier others
 *  may use it. */
static __device__ __forceinline__ FA_UNUSED void fa_mbarrier_init(fa_mbarrier *barrier, int arrivals) {
    fa_sm90_mbarrier_init(fa_mbarrier_address(barrier), arrivals);
    fa_sm90_mbarrier_fence();
}

/** One arrival. */
static __device__ __forceinline__ FA_UNUSED void fa_mbarrier_arrive(fa_mbarrier *barrier) { fa_sm90_mbarrier_arrive(fa_mbarrier_address(barrier)); }

/** One arrival, and `bytes` more bytes that copies must bring before the phase ends. Call it before those copies
 *  start. */
static __device__ __forceinline__ FA_UNUSED void fa_mbarrier_expect(fa_mbarrier *barrier, int bytes) {
    fa_sm90_mbarrier_expect(fa_mbarrier_address(barrier), bytes);
}

/** Returns when the phase of that parity (0 or 1) has ended. Its bytes are then visible to the caller and to wgmma. */
static __device__ __forceinline__ FA_UNUSED void fa_mbarrier_wait(const fa_mbarrier *barrier, int parity) {
    fa_sm90_mbarrier_wait(fa_mbarrier_address(barrier), parity);
}

/** Orders what the caller has read from shared memory before what the copy engine writes there after the caller's next arrival, and what
 *  it has written there before what the engine and wgmma read (PTX ISA, fence.proxy.async). */
static __device__ __forceinline__ FA_UNUSED void fa_mbarrier_proxy_fence(void) { fa_sm90_proxy_fence(); }
#endif

#endif
