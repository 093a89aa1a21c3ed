/* arch/sm80/ops.h of the simulator: the instruction layer in C++. Functions mean what those of the library's file
 * do; here is only what differs. */
#ifndef FA_ARCH_SM80_OPS_H
#define FA_ARCH_SM80_OPS_H

#include <fa/arch/math.h>

#include "machine.h"

#define FA__DEVICE static inline FA_UNUSED

/* ---- arithmetic ---- */

FA__DEVICE float fa_sm80_fma(float a, float b, float c) { return fmaf(a, b, c); }
FA__DEVICE float fa_sm80_mul(float a, float b) { return a * b; }
FA__DEVICE float fa_sm80_sub(float a, float b) { return a - b; }
FA__DEVICE uint32_t fa_sm80_pack_bf16(float low, float high) { return fa_bf16_from_float(low) | (uint32_t)fa_bf16_from_float(high) << 16; }
FA__DEVICE uint32_t fa_sm80_pack_f16(float low, float high) { return fa_f16_from_float(low) | (uint32_t)fa_f16_from_float(high) << 16; }
FA__DEVICE int fa_sm80_opaque(int x) { return x; }
FA__DEVICE int fa_sm80_block_anew(void) { return (int)blockIdx.x; }
FA__DEVICE int fa_sm80_thread_anew(void) { return (int)threadIdx.x; }
FA__DEVICE uint64_t fa_sm80_opaque_address(uint64_t x) { return x; }
FA__DEVICE void fa_sm80_prefetch(const void *from) { (void)from; }
FA__DEVICE void fa_sm80_unpack_f16(float *low, float *high, uint32_t word) {
    *low = fa_f16_to_float((fa_f16)word);
    *high = fa_f16_to_float((fa_f16)(word >> 16));
}
FA__DEVICE uint32_t fa_sm80_shift_words(uint32_t low, uint32_t high, unsigned bits) {
    return (uint32_t)(((uint64_t)high << 32 | low) >> (bits & 31));
}
FA__DEVICE uint32_t fa_sm80_max_f16(uint32_t a, uint32_t b) {
    float x[4];
    fa_sm80_unpack_f16(&x[0], &x[1], a), fa_sm80_unpack_f16(&x[2], &x[3], b);
    return fa_sm80_pack_f16(fmaxf(x[0], x[2]), fmaxf(x[1], x[3]));
}
FA__DEVICE uint32_t fa_sm80_max_bf16(uint32_t a, uint32_t b) {
    return fa_sm80_pack_bf16(fmaxf(fa__from_bits(a << 16), fa__from_bits(b << 16)), fmaxf(fa__from_bits(a & 0xFFFF0000u), fa__from_bits(b & 0xFFFF0000u)));
}

/* ---- across a warp ---- */

FA__DEVICE uint32_t fa_sm80_shuffle(uint32_t x, int bit) { return machine_share(&x, 1)[machine_lane() ^ bit].word[0]; }
FA__DEVICE float fa_sm80_shuffle_f32(float x, int bit) { return fa__from_bits(fa_sm80_shuffle(fa__bits(x), bit)); }
FA__DEVICE int fa_sm80_from_lane(int x, int lane) { return (int)machine_share((uint32_t *)&x, 1)[lane].word[0]; }
FA__DEVICE void fa_sm80_warp_barrier(void) { machine_warp_barrier(); }
FA__DEVICE int fa_sm80_lowest(int x) {
    const machine_words *all = machine_share((uint32_t *)&x, 1);
    for (int i = 0; i < 32; i++) x = (int)all[i].word[0] < x ? (int)all[i].word[0] : x;
    return x;
}
FA__DEVICE int fa_sm80_highest(int x) { return ~fa_sm80_lowest(~x); }
FA__DEVICE uint32_t fa_sm80_ballot(int x) {
    const machine_words *all = machine_share((uint32_t *)&x, 1);
    uint32_t bits = 0;
    for (int i = 0; i < 32; i++) bits |= (uint32_t)(all[i].word[0] != 0) << i;
    return bits;
}
FA__DEVICE int fa_sm80_any(int x) { return fa_sm80_ballot(x) != 0; }
FA__DEVICE void fa_sm80_hide_unset(float *x, uint32_t bits, int first) {
    static const int column[8] = {0, 1, 0, 1, 8, 9, 8, 9};
    for (int i = 0; i < 8; i++)
        if (!(bits >> (first + column[i]) & 1)) x[i] = -INFINITY;
}
FA__DEVICE int fa_sm80_lowest_bit(uint32_t x) { return __builtin_ffs((int)x) - 1; }

/* ---- shared memory and copies ---- */

FA__DEVICE int fa_sm80_thread(void) { return (int)threadIdx.x; }
FA__DEVICE void fa_sm80_add_to(unsigned long long *counter, int64_t x) { *counter += (unsigned long long)x; }
FA__DEVICE void fa_sm80_barrier(void) { machine_barrier(); }
FA__DEVICE uint32_t fa_sm80_shared_address(const void *pointer) { return machine_address(pointer); }

#define FA__SM80_EVICT_UNCHANGED UINT64_C(1)
#define FA__SM80_EVICT_LAST UINT64_C(2)
#define FA__SM80_EVICT_FIRST UINT64_C(3)
FA__DEVICE void fa_sm80_copy16(uint32_t to, const void *from, int bytes) { machine_copy(machine_at(to, 16), from, 16, bytes); }
FA__DEVICE void fa_sm80_copy16_of(uint32_t to, const void *from, int bytes, uint64_t policy) {
    machine_must(policy >= FA__SM80_EVICT_UNCHANGED && policy <= FA__SM80_EVICT_FIRST, "a copy with a policy that is none");
    fa_sm80_copy16(to, from, bytes);
}
FA__DEVICE void fa_sm80_copy4(uint32_t to, const void *from, int there) { machine_copy(machine_at(to, 4), from, 4, there ? 4 : 0); }
FA__DEVICE void fa_sm80_copy_commit(void) { machine_copy_commit(); }
FA__DEVICE void fa_sm80_copy_wait(int pending) { machine_copy_wait(pending); }

FA__DEVICE void fa_sm80_load16(uint32_t *to, const void *from) { memcpy(to, machine_aligned(from, 16), 16); }
FA__DEVICE void fa_sm80_load_if(int there, uint32_t *to, const void *from, int words) {
    if (there) memcpy(to, machine_aligned(from, 4 * words), 4 * (size_t)words);
}
FA__DEVICE void fa_sm80_load_of(int there, uint32_t *to, const void *from, int words, uint64_t policy) {
    machine_must(policy >= FA__SM80_EVICT_UNCHANGED && policy <= FA__SM80_EVICT_FIRST, "a load with a policy that is none");
    fa_sm80_load_if(there, to, from, words);
}
FA__DEVICE void fa_sm80_load_const(uint32_t *to, const void *from, int words) { fa_sm80_load_if(1, to, from, words); }
FA__DEVICE void fa_sm80_store(void *to, const uint32_t *from, int words) { memcpy((void *)machine_aligned(to, 4 * words), from, 4 * (size_t)words); }
FA__DEVICE void fa_sm80_store16(void *to, const uint32_t *from) { fa_sm80_store(to, from, 4); }
FA__DEVICE void fa_sm80_load_words(uint32_t *to, uint32_t from, int words) { memcpy(to, machine_at(from, 4 * words), 4 * (size_t)words); }

/* Of matrix j, whose rows the lanes from 8 j on give, two elements. */
FA__DEVICE void fa_sm80_ldmatrix(uint32_t *to, uint32_t address) {
    const machine_words *all = machine_share(&address, 1);
    const int lane = machine_lane();
    for (int j = 0; j < 4; j++) memcpy(&to[j], machine_at(all[8 * j + lane / 4].word[0], 16) + lane % 4 * 4, 4);
}
FA__DEVICE void fa_sm80_ldmatrix_transposed(uint32_t *to, uint32_t address) {
    const machine_words *all = machine_share(&address, 1);
    const int lane = machine_lane();
    for (int j = 0; j < 4; j++) {
        uint16_t two[2];
        for (int i = 0; i < 2; i++) memcpy(&two[i], machine_at(all[8 * j + lane % 4 * 2 + i].word[0], 16) + lane / 4 * 2, 2);
        memcpy(&to[j], two, 4);
    }
}

/* ---- products ---- */

/* Two rows of `depth` times two columns, and what there is already. Four sums at a time, each of which waits for
 * itself. */
static inline void simulated_dots(float *c, const float *a0, const float *a1, const float *b0, const float *b1, int depth, int accumulate) {
    double c00 = accumulate ? c[0] : 0.0, c01 = accumulate ? c[1] : 0.0, c10 = accumulate ? c[2] : 0.0, c11 = accumulate ? c[3] : 0.0;
    for (int k = 0; k < depth; k++) {
        const double x0 = a0[k], x1 = a1[k], y0 = b0[k], y1 = b1[k];
        c00 += x0 * y0, c01 += x0 * y1, c10 += x1 * y0, c11 += x1 * y1;
    }
    c[0] = (float)c00, c[1] = (float)c01, c[2] = (float)c10, c[3] = (float)c11;
}
/* A lane's four elements of C, from what the lanes have of A (words 0 to 3, of rows g and g + 8, two columns of 16
 * each) and of B (4 and 5). */
template <float (*WIDEN)(uint16_t)> static inline void simulated_mma16(float *c0, float *c1, float *c2, float *c3, const uint32_t *a, uint32_t b0, uint32_t b1) {
    const uint32_t own[6] = {a[0], a[1], a[2], a[3], b0, b1};
    const machine_words *all = machine_share(own, 6);
    const int lane = machine_lane(), row = lane / 4 * 4, col = lane % 4 * 8; /* the first of the lanes that have them */
    float of_a[2][16], of_b[2][16];
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 16; k++) {
            of_a[i][k] = WIDEN((uint16_t)(all[row + k % 8 / 2].word[k / 8 * 2 + i] >> k % 2 * 16));
            of_b[i][k] = WIDEN((uint16_t)(all[col + i * 4 + k % 8 / 2].word[4 + k / 8] >> k % 2 * 16));
        }
    float c[4] = {*c0, *c1, *c2, *c3};
    simulated_dots(c, of_a[0], of_a[1], of_b[0], of_b[1], 16, 1);
    *c0 = c[0], *c1 = c[1], *c2 = c[2], *c3 = c[3];
}
/* All of them, which computed for each product would take half of a test's time. */
static const struct simulated_f16_table {
    float of[1 << 16];
    simulated_f16_table() {
        for (int x = 0; x < 1 << 16; x++) of[x] = fa_f16_to_float((uint16_t)x);
    }
} simulated_all_f16;
static inline float simulated_f16(uint16_t x) { return simulated_all_f16.of[x]; }
static inline float simulated_bf16(uint16_t x) { return fa_bf16_to_float(x); }
FA__DEVICE void fa_sm80_mma_bf16(float *c0, float *c1, float *c2, float *c3, const uint32_t *a, uint32_t b0, uint32_t b1) {
    simulated_mma16<simulated_bf16>(c0, c1, c2, c3, a, b0, b1);
}
FA__DEVICE void fa_sm80_mma_f16(float *c0, float *c1, float *c2, float *c3, const uint32_t *a, uint32_t b0, uint32_t b1) {
    simulated_mma16<simulated_f16>(c0, c1, c2, c3, a, b0, b1);
}
FA__DEVICE void fa_sm80_mma_eight(float *c0, float *c1, float *c2, float *c3, uint32_t a0, uint32_t a1, uint32_t b) {
    const uint32_t a[4] = {a0, a1, 0, 0};
    fa_sm80_mma_bf16(c0, c1, c2, c3, a, b, 0);
}
FA__DEVICE void fa_sm80_mma_tf32(float *d, int stride, const uint32_t *a, const uint32_t *b, int accumulate) {
    const uint32_t own[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    const machine_words *all = machine_share(own, 6);
    const int lane = machine_lane(), row = lane / 4 * 4, col = lane % 4 * 8;
    float of_a[2][8], of_b[2][8];
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 8; k++) {
            of_a[i][k] = fa__from_bits(all[row + k % 4].word[k / 4 * 2 + i] & 0xFFFFE000u);
            of_b[i][k] = fa__from_bits(all[col + i * 4 + k % 4].word[4 + k / 4] & 0xFFFFE000u);
        }
    float c[4] = {d[0], d[1], d[stride], d[stride + 1]};
    simulated_dots(c, of_a[0], of_a[1], of_b[0], of_b[1], 8, accumulate);
    d[0] = c[0], d[1] = c[1], d[stride] = c[2], d[stride + 1] = c[3];
}

#include <fa/arch/sm80/composed.h>

#endif
