/**
 * @file philox.h
 * @brief Random words that depend on nothing but a seed and a position: Philox 4x32-10, and dropout made of it.
 *
 * Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). A counter is encrypted in ten
 * rounds under a key; both together determine the words, so that a backward regenerates the mask of its forward, and the
 * CPU that of a GPU, whatever the launch looked like.
 *
 * @code{.c}
 * #include <fa/philox.h>
 *
 * static void dropout(float *x, int64_t count, float probability, uint64_t seed, uint64_t offset) {
 *     uint64_t threshold = fa_dropout_threshold(probability);
 *     for (int64_t i = 0; i < count; i++) {
 *         fa_random4 r = fa_philox(seed, offset + (uint64_t)i / 4);
 *         x[i] = fa_dropout_keeps(r.word[i % 4], threshold) ? x[i] / (1 - probability) : 0;
 *     }
 * }
 * @endcode
 *
 * Not a template: functions for the CPU and every GPU. Element i of a tensor (row * cols + col) takes word i % 4 of
 * counter offset + i / 4, and is kept if that word is at least probability * 2^32. A call that uses n elements uses the
 * (n + 3) / 4 counters from offset on: the next call's offset is offset + (n + 3) / 4.
 */
#ifndef FA_PHILOX_H
#define FA_PHILOX_H

#include <fa/arch/math.h>
#include <fa/fa.h>

/** Four random words. */
typedef struct fa_random4 {
    uint32_t word[4]; /**< each from 0 to 2^32 - 1, all equally likely */
} fa_random4;

/** @cond PRIVATE */
/* The multipliers and the key's increments are the paper's (section 4.3). The increments are the fractions of the
 * golden ratio and of sqrt(3), times 2^32. */
#define FA__PHILOX_ROUNDS 10
#define FA__PHILOX_STEP0 0x9E3779B9u
#define FA__PHILOX_STEP1 0xBB67AE85u
#define FA__PHILOX_BY0 0xD2511F53u
#define FA__PHILOX_BY1 0xCD9E8D57u
/* A round. */
FA_HOOK void fa__philox_round(uint32_t *c, uint32_t k0, uint32_t k1) {
    const uint32_t low0 = FA__PHILOX_BY0 * c[0], high0 = fa__high(FA__PHILOX_BY0, c[0]), low1 = FA__PHILOX_BY1 * c[2], high1 = fa__high(FA__PHILOX_BY1, c[2]);
    c[0] = high1 ^ c[1] ^ k0;
    c[1] = low1;
    c[2] = high0 ^ c[3] ^ k1;
    c[3] = low0;
}
/** @endcond */

/** Philox 4x32-10 of a counter (four words) and a key (two). */
FA_HOOK fa_random4 fa_philox4x32(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0, uint32_t k1) {
    fa_random4 r;
    r.word[0] = c0, r.word[1] = c1, r.word[2] = c2, r.word[3] = c3;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int round = 0; round < FA__PHILOX_ROUNDS; round++, k0 += FA__PHILOX_STEP0, k1 += FA__PHILOX_STEP1) fa__philox_round(r.word, k0, k1);
    return r;
}

/** The four words of a 64-bit counter under a 64-bit seed: low halves first, the counter's upper words 0. */
FA_HOOK fa_random4 fa_philox(uint64_t seed, uint64_t counter) {
    return fa_philox4x32((uint32_t)counter, (uint32_t)(counter >> 32), 0, 0, (uint32_t)seed, (uint32_t)(seed >> 32));
}

/** The least word that is kept, probability * 2^32 rounded up: 0 for a probability of 0, and 2^32, more than any word, for
 *  1. */
FA_HOOK uint64_t fa_dropout_threshold(float probability) {
    double least = (double)probability * 4294967296.0;
    uint64_t below = (uint64_t)least;
    return below + (uint64_t)((double)below < least);
}

/** Whether the element of this word is kept. */
FA_HOOK int fa_dropout_keeps(uint32_t word, uint64_t threshold) { return word >= threshold; }

/** The dropout of a call. */
typedef struct fa_dropout {
    uint64_t seed, offset; /**< the key, and the counter of the first four elements */
    uint64_t threshold;    /**< words below it drop their elements: 0 (none) to 2^32 (all) */
    float scale;           /**< the factor of elements that are kept */
} fa_dropout;

/** Dropout with a probability from 0 to 1; values outside that range, and NaN, are not checked here (the companions
 *  refuse them). */
FA_HOOK fa_dropout fa_dropout_of(float probability, uint64_t seed, uint64_t offset) {
    fa_dropout d;
    d.seed = seed;
    d.offset = offset;
    d.threshold = fa_dropout_threshold(probability);
    d.scale = probability < 1.0f ? 1.0f / (1.0f - probability) : 0.0f;
    return d;
}

/** @cond PRIVATE */
/* Which of the elements of one or two counters are kept: two are computed together, so that neither waits for its own
 * last result. The probability is not 0. */
FA_HOOK uint32_t fa__dropout_kept(const fa_dropout *d, uint64_t counter, const int counters) {
    const uint32_t last = (uint32_t)(d->threshold - 1); /* the largest word that is dropped: comparisons of 32 bits */
    uint32_t c[2][4] = {{(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0}, {(uint32_t)(counter + 1), (uint32_t)((counter + 1) >> 32), 0, 0}};
    uint32_t k0 = (uint32_t)d->seed, k1 = (uint32_t)(d->seed >> 32), kept = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int round = 0; round < FA__PHILOX_ROUNDS; round++, k0 += FA__PHILOX_STEP0, k1 += FA__PHILOX_STEP1)
        for (int j = 0; j < counters; j++) fa__philox_round(c[j], k0, k1);
    for (int i = 0; i < 4 * counters; i++) kept |= (uint32_t)(c[i / 4][i % 4] > last) << i;
    return kept;
}
/** @endcond */

/** Which of `count` elements, up to 32, from number `element` on are kept: bits from 0 on. Up to 8 of them may be before element 0:
 *  then `element` wraps. */
FA_HOOK uint32_t fa_dropout_kept(const fa_dropout *d, uint64_t element, int count) {
    const uint64_t counter = d->offset + (element + 8) / 4 - 2;
    const uint32_t all = count < 32 ? (1u << count) - 1 : ~0u;
    uint32_t kept = 0;
    if (d->threshold == 0) return all;
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (int i = 0, at = -(int)(element % 4); at < count; i++, at += 4) { /* the first words may belong to earlier elements */
        const uint32_t four = fa__dropout_kept(d, counter + (uint64_t)i, 1);
        kept |= at < 0 ? four >> -at : four << at;
    }
    return kept & all;
}

#endif
