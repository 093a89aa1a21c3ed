/**
 * @file sm80/ops.h
 * @brief The instruction layer of GPUs from sm_80 on: one small function a machine instruction.
 *
 * With arch/math.h, the only place with inline assembly. Names follow the PTX ISA; every function is called by whole, converged
 * warps unless it says otherwise. Shared-memory addresses are 32-bit offsets in the shared window.
 */
#ifndef FA_ARCH_SM80_OPS_H
#define FA_ARCH_SM80_OPS_H

#include <fa/arch/math.h>

/** @cond PRIVATE */
#define FA__DEVICE static __device__ __forceinline__ FA_UNUSED

/* ---- arithmetic ---- */

FA__DEVICE float fa_sm80_fma(float a, float b, float c) { return fmaf(a, b, c); }

/* Two floats rounded to nearest even and packed, `low` in the lower half (PTX ISA, cvt). */
FA__DEVICE uint32_t fa_sm80_pack_bf16(float low, float high) {
    uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
FA__DEVICE uint32_t fa_sm80_pack_f16(float low, float high) {
    uint32_t r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
/* To tf32, to nearest, ties away from zero (PTX ISA, cvt.rna.tf32). */
FA__DEVICE uint32_t fa_sm80_to_tf32(float x) {
    uint32_t r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return r;
}

/* ---- across a warp ---- */

/* The largest value, or the sum, among `owners` neighbouring lanes. */
FA__DEVICE float fa_sm80_row_max(float x, int owners) {
#pragma unroll
    for (int step = 1; step < owners; step *= 2) x = fa__maxf(__shfl_xor_sync(0xFFFFFFFFu, x, step), x);
    return x;
}
FA__DEVICE float fa_sm80_row_sum(float x, int owners) {
#pragma unroll
    for (int step = 1; step < owners; step *= 2) x += __shfl_xor_sync(0xFFFFFFFFu, x, step);
    return x;
}
FA__DEVICE int fa_sm80_any(int x) { return __any_sync(0xFFFFFFFFu, x); }
FA__DEVICE uint32_t fa_sm80_ballot(int x) { return __ballot_sync(0xFFFFFFFFu, x); }
FA__DEVICE int fa_sm80_lowest_bit(uint32_t x) { return __ffs((int)x) - 1; }

/* ---- shared memory and copies ---- */

/* All threads of the block. */
FA__DEVICE void fa_sm80_barrier(void) { __syncthreads(); }

FA__DEVICE uint32_t fa_sm80_shared_address(const void *pointer) { return (uint32_t)__cvta_generic_to_shared(pointer); }

/* Starts copying 16 bytes into shared memory past the L1 cache; of the source only `bytes` (16 or 0) are read, the rest
 * is zero (PTX ISA, cp.async). */
FA__DEVICE void fa_sm80_copy16(uint32_t to, const void *from, int bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
FA__DEVICE void fa_sm80_copy_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
/* Returns when all but the latest `pending` (at most 3) groups of this thread have landed. */
FA__DEVICE void fa_sm80_copy_wait(int pending) {
    if (pending <= 0) asm volatile("cp.async.wait_group 0;" ::: "memory");
    else if (pending == 1) asm volatile("cp.async.wait_group 1;" ::: "memory");
    else if (pending == 2) asm volatile("cp.async.wait_group 2;" ::: "memory");
    else asm volatile("cp.async.wait_group 3;" ::: "memory");
}

/* 1, 2 or 4 words at an address aligned to their size. */
FA__DEVICE void fa_sm80_load_words(uint32_t *to, const void *from, int words) {
    if (words == 4) {
        uint4 x = *(const uint4 *)from;
        to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
    } else if (words == 2) {
        uint2 x = *(const uint2 *)from;
        to[0] = x.x, to[1] = x.y;
    } else to[0] = *(const uint32_t *)from;
}

/* Four 8 x 8 matrices of 16-bit elements; lane i gives the address of row i % 8 of matrix i / 8 and receives two
 * neighbouring elements of row lane / 4 of each, from column lane % 4 * 2 (PTX ISA, ldmatrix). */
FA__DEVICE void fa_sm80_ldmatrix(uint32_t *to, uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}
/* The same of the transposed matrices. */
FA__DEVICE void fa_sm80_ldmatrix_transposed(uint32_t *to, uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

/* ---- products: C += A * B for a warp; layouts in the PTX ISA, "Matrix Fragments for mma" ---- */

/* 16 x 8 += (16 x 16) * (16 x 8) */
#define FA__SM80_MMA16(name, type)                                                                           \
    FA__DEVICE void name(float *c0, float *c1, float *c2, float *c3, const uint32_t *a, uint32_t b0, uint32_t b1) { \
        asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                                  \
                     ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                  \
                     : "+f"(*c0), "+f"(*c1), "+f"(*c2), "+f"(*c3)                                            \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                        \
    }
FA__SM80_MMA16(fa_sm80_mma_bf16, "bf16")
FA__SM80_MMA16(fa_sm80_mma_f16, "f16")
#undef FA__SM80_MMA16

/* 16 x 8 += (16 x 8) * (8 x 8), operands in tf32 */
FA__DEVICE void fa_sm80_mma_tf32(float *c0, float *c1, float *c2, float *c3, const uint32_t *a, uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(*c0), "+f"(*c1), "+f"(*c2), "+f"(*c3)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/** @endcond */

#endif
