/**
 * @file sm90/cluster.h
 * @brief Clusters of thread blocks, and their shared memory (PTX ISA, "Cluster of Cooperative Thread Arrays").
 *
 * By the compiler's built-in functions, so that there is no assembly here; where the target has no clusters, only their
 * names are there, for the host's compilation.
 */
#ifndef FA_ARCH_SM90_CLUSTER_H
#define FA_ARCH_SM90_CLUSTER_H

#include <fa/fa.h>

/** @cond PRIVATE */
#if defined(__CUDACC__)
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/* The caller's block in its cluster. */
static __device__ __forceinline__ FA_UNUSED int fa_sm90_cluster_rank(void) { return (int)__clusterRelativeBlockRank(); }
/* Says that this thread is here, without ordering memory. */
static __device__ __forceinline__ FA_UNUSED void fa_sm90_cluster_arrive_relaxed(void) { __cluster_barrier_arrive_relaxed(); }
/* Returns when all threads of the cluster have said so. */
static __device__ __forceinline__ FA_UNUSED void fa_sm90_cluster_wait(void) { __cluster_barrier_wait(); }
#else
static __device__ __forceinline__ FA_UNUSED int fa_sm90_cluster_rank(void) { return 0; }
static __device__ __forceinline__ FA_UNUSED void fa_sm90_cluster_arrive_relaxed(void) {}
static __device__ __forceinline__ FA_UNUSED void fa_sm90_cluster_wait(void) {}
#endif
#endif
/** @endcond */

#endif
