/**
 * @file reduce.h
 * @brief Reductions over the elements of a thread, and over the threads that share a row: sums, maxima, softmax states.
 *
 * @code{.c}
 * #include <fa/fa.h>
 *
 * #define FA_NAME reduce
 * #include <fa/reduce.h>
 *
 * #if !defined(__CUDACC__)
 * static float norm(const float *x, int count, reduce_shared *shared) { // count a multiple of 16
 *     fa_team team = reduce_team(1);
 *     return sqrtf(reduce_sum(reduce_dot_of(x, x, count), &team, shared));
 * }
 * #endif
 * @endcode
 *
 * | parameter  | required | default         | meaning |
 * |------------|----------|-----------------|---------|
 * | FA_NAME    | yes      |                 | prefix of what is generated |
 * | FA_BLOCKS  | no       | 1               | blocks that a cluster has at most: 1 to 16 (GPUs from compute capability 9.0 on) |
 * | FA_ARCH    | no       | by the compiler | FA_CPU or 80, which is every GPU |
 * | FA_SUB     | no       |                 | second part of the prefix, inside another template's instance; FA_NAME, FA_DTYPE and FA_ARCH stay defined |
 *
 * Generates
 *
 *     fa_team NAME_team(threads)             the caller's team: neighbouring lanes (1, 2, 4, ... 32), or else its block, of whole warps, however many
 *     fa_team NAME_cluster(blocks)           all threads of a cluster of that many blocks
 *     NAME_shared                            shared memory of a block for the reductions of a team
 *
 * of one thread's elements, x[0] to x[count - 1] (count: a constant on GPUs, a multiple of 16 on the CPU),
 *
 *     float NAME_max_of(x, count, start)     the largest, or start; NaNs are ignored
 *     float NAME_sum_of(x, count)
 *     float NAME_dot_of(x, y, count)         the sum of x[i] * y[i]
 *     float NAME_squares_of(x, count, center)   the sum of (x[i] - center)^2
 *     float NAME_exp_of(x, count, base, scale_log2)   the sum of what x[i] becomes: 2^((x[i] - base) * scale_log2)
 *     float NAME_exp_to(to, x, count, base, scale_log2)   the same, but written to to[]
 *     float NAME_exp_sum_of(x, count, base, scale_log2)   the same sum; x[] is left alone
 *
 * of two sets of numbers,
 *
 *     NAME_merge(count, mean, squares, other_count, other_mean, other_squares)   *count numbers with *mean, and *squares, the
 *                                            sum of (x - *mean)^2, become those of both sets
 *
 * and of one value of each thread of the team, with the same result in all of them,
 *
 *     float NAME_max(x, team, shared)
 *     float NAME_sum(x, team, shared)
 *     NAME_sum2(a, b, team, shared)          *a becomes the sum of all threads' *a, *b that of all *b
 *     NAME_moments(count, mean, squares, team, shared)   merges the threads' numbers: *squares / *count is the variance
 *     NAME_lanes_sum(x, team)                the sum over the threads of a warp that are in the team (GPU)
 *     NAME_warps_moments(count, mean, squares, team, shared)   the same of the warps', which all threads of a warp must have already (GPU)
 *     NAME_softmax(max, sum, scale_log2, team, shared)   merges the states of an online softmax: *max becomes the largest
 *                                            and *sum the sum of sums, each times 2^((its max - largest) * scale_log2)
 *
 * Make the team once, before any loop, and pass its address: it counts the reductions. A second team,
 * or a copy, would begin with the half of the shared memory that others still read; a second team of a cluster would
 * initialise barriers that are in use.
 *
 * All threads of the team call together; all teams within a warp call at once. There is one barrier in the reduction of
 * a block, and none after it: two halves of the shared memory take turns. The blocks of a cluster send each other their
 * values, and wait for no more than these: nothing else in memory is ordered. The order of additions depends on the number
 * of threads alone, so that results are the same every time.
 */
#include <fa/fa.h>

#include <fa/kernel/team.h>

#include <fa/arch/every_gpu.h>

#include <fa/arch/begin.h>
#define FA__RED(x) FA__CAT4(FA_NAME, FA_SUB, FA__SUFFIX, x)
#if !defined(FA_BLOCKS)
#define FA_BLOCKS 1
#elif FA_BLOCKS + 0 < 1 || FA_BLOCKS + 0 > 16 || FA__IS_BARE(FA_BLOCKS)
FA__REQUIRE(0, "FA_BLOCKS, the blocks of a cluster, is " FA__STR(FA_BLOCKS) ": 1 to 16 are possible, " FA__AS_A_NUMBER);
#undef FA_BLOCKS
#define FA_BLOCKS 1
#endif

/* Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979): nothing
 * cancels, however far the mean is from 0. Empty sets have mean 0 and squares 0. */
FA__FN void FA__RED(_merge)(float *count, float *mean, float *squares, float other_count, float other_mean, float other_squares) {
    float total = *count + other_count, share = total > 0.0f ? other_count / total : 0.0f, off = other_mean - *mean;
    *squares += other_squares + (*count > 0.0f && other_count > 0.0f ? off * (off * (*count * share)) : 0.0f);
    *mean = *count > 0.0f ? *mean * (1.0f - share) + other_mean * share : other_mean; /* infinite if one is */
    *count = total;
}

#include FA__LAYER(reduce)

/* Raises the running maximum of a sum of exponentials to `largest`, which is no less, and rescales the sum; returns
 * what exponentials are then relative to. */
FA__FN float FA__RED(__rise)(float *max, FA__RED(__total) * sum, float largest, float scale_log2) {
    const float base = largest == -INFINITY ? 0.0f : largest; /* only -inf so far: their weights are 0 */
    *sum *= FA__RED(__rebased)(*max - base, scale_log2);
    *max = largest;
    return base;
}

#if !defined(FA__EXP_TO)
FA__FN float FA__RED(_exp_to)(float *to, const float *x, int count, float base, float scale_log2) {
    FA__UNROLL
    for (int i = 0; i < count; i++) to[i] = x[i];
    return FA__RED(_exp_of)(to, count, base, scale_log2);
}
#endif
#undef FA__EXP_TO
/* The same, but to[i] still has to be multiplied by *factor. */
#if !defined(FA__EXP_NEAR)
FA__FN float FA__RED(__exp_near)(float *to, const float *x, int count, float base, float scale_log2, float *factor) {
    *factor = 1.0f;
    return FA__RED(_exp_to)(to, x, count, base, scale_log2);
}
#endif
#undef FA__EXP_NEAR

#undef FA__RED
#undef FA_BLOCKS
#include <fa/arch/end.h>
