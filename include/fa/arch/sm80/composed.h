/**
 * @file sm80/composed.h
 * @brief What is made of functions of ops.h alone: another machine in the place of ops.h (tests/simulator) takes it as it is.
 */
#ifndef FA_ARCH_SM80_COMPOSED_H
#define FA_ARCH_SM80_COMPOSED_H

/** @cond PRIVATE */
FA__DEVICE void fa_sm80_unpack_bf16(float *low, float *high, uint32_t word) {
    *low = fa__from_bits(word << 16);
    *high = fa__from_bits(word & 0xFFFF0000u);
}
/* The two halves of a word, of either type. */
FA__DEVICE void fa_sm80_unpack(float *low, float *high, uint32_t word, int dtype) {
    if (dtype == FA_F16) fa_sm80_unpack_f16(low, high, word);
    else fa_sm80_unpack_bf16(low, high, word);
}
/* The same if a condition holds, else zeros: in bf16 without an instruction more. */
FA__DEVICE void fa_sm80_unpack_if(float *low, float *high, uint32_t word, int condition, int dtype) {
    if (dtype == FA_F16) fa_sm80_unpack_f16(low, high, condition ? word : 0);
    else {
        *low = fa__from_bits(fa_sm80_shift_words(0, word, condition ? 16 : 0));
        *high = fa__from_bits(word & (condition ? 0xFFFF0000u : 0));
    }
}

/* Floats as pairs of FA_F16 numbers (tile_pairs.h), in units of a power of two of which the largest is 2^14 or more,
 * but less than twice that. */
#define FA__SM80_PAIR_LEAST 1.17549435e-38f /* the smallest unit, 2^-126 */
/* The size of a finite number, which orders them; a smaller one for NaN and infinities. */
FA__DEVICE uint32_t fa_sm80_size(float x) { return (fa__bits(x) << 1) + 0x01000000u; }
FA__DEVICE uint32_t fa_sm80_larger(uint32_t a, uint32_t b) { return a > b ? a : b; }
/* The unit for the largest size, and 1 / a unit. */
FA__DEVICE float fa_sm80_pair_unit(uint32_t size) {
    uint32_t exponent = size >> 24; /* biased, plus 1 */
    return fa__from_bits(((exponent < 16 ? 16 : exponent) - 15) << 23);
}
FA__DEVICE float fa_sm80_pair_inverse(float unit) { return fa__from_bits(0x7F000000u - fa__bits(unit)); }
/* x and y as big + small, packed; without `both` as big alone. */
FA__DEVICE void fa_sm80_pair(uint32_t *big, uint32_t *small, float x, float y, int both) {
    float x_big, y_big;
    *big = fa_sm80_pack_f16(x, y);
    if (!both) return;
    fa_sm80_unpack_f16(&x_big, &y_big, *big);
    *small = fa_sm80_pack_f16(x - x_big, y - y_big);
}

/* Four words that begin so many bytes, 0 to 15, a multiple of 2, behind the first of eight. */
FA__DEVICE void fa_sm80_shift(uint32_t *to, const uint32_t *from, int bytes) {
    uint32_t half[6], word[5];
#pragma unroll
    for (int i = 0; i < 6; i++) half[i] = bytes & 8 ? from[i + 2] : from[i];
#pragma unroll
    for (int i = 0; i < 5; i++) word[i] = bytes & 4 ? half[i + 1] : half[i];
#pragma unroll
    for (int i = 0; i < 4; i++) to[i] = fa_sm80_shift_words(word[i], word[i + 1], (unsigned)bytes % 4u * 8u);
}

/* The largest value, the sum, or the largest size, among `owners` neighbouring lanes, which the compiler need not
 * know. */
FA__DEVICE float fa_sm80_row_max(float x, int owners) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2)
        if (step < owners) x = fa__maxf(fa_sm80_shuffle_f32(x, step), x);
    return x;
}
FA__DEVICE float fa_sm80_row_sum(float x, int owners) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2)
        if (step < owners) x += fa_sm80_shuffle_f32(x, step);
    return x;
}
FA__DEVICE uint32_t fa_sm80_row_size(uint32_t x, int owners) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2)
        if (step < owners) x = fa_sm80_larger(fa_sm80_shuffle(x, step), x);
    return x;
}

/* The address of eight weights of a type that are all 1, or all 0, for rows whose caller gives no weights. */
FA__DEVICE const void *fa_sm80_weights_of(float missing, int dtype) {
    static __device__ const __align__(16) float floats[16] = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0};
    static __device__ const __align__(16) uint32_t f16[8] = {0x3C003C00u, 0x3C003C00u, 0x3C003C00u, 0x3C003C00u};
    static __device__ const __align__(16) uint32_t bf16[8] = {0x3F803F80u, 0x3F803F80u, 0x3F803F80u, 0x3F803F80u};
    const int at = missing > 0.0f ? 0 : 1;
    return dtype == FA_F16 ? (const void *)(f16 + 4 * at) : dtype == FA_BF16 ? (const void *)(bf16 + 4 * at) : (const void *)(floats + 8 * at);
}
/** @endcond */

#endif
