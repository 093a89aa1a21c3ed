/* forward.h: what a file of instances tells the forward suite: its table, and where its instances run. */
#ifndef FORWARD_H
#define FORWARD_H

#include "../harness/problem.h"

#if defined(__cplusplus)
extern "C" {
#endif
extern const instance forward_instances[];
extern const int forward_count;
extern const int forward_place; /* a memory_place */
#if defined(__CUDACC__)
const int forward_place = MEMORY_DEVICE;
#elif defined(FORWARD_INSTANCES)
const int forward_place = MEMORY_HOST;
#endif
#if defined(__cplusplus)
}
#endif

#define FORWARD_INSTANCE(name, mask, score, dtype, head_dim, head_dim_v)                                               \
    {#name, MASK_##mask, SCORE_##score, dtype, head_dim, head_dim_v, name##_forward, name##_plan, name##_workspace}

#endif
