/**
 * @file sm80/ops.h
 * @brief The instruction layer of GPUs from sm_80 on: one small function a machine instruction.
 *
 * With math.h and convert.h of this folder and sm90/ops.h, the only place with inline assembly for GPUs; tests/simulator has another
 * machine in their place. Names follow the PTX ISA; every function is called by whole, converged warps unless it says otherwise.
 * Shared-memory addresses are 32-bit offsets in the shared window.
 */
#ifndef FA_ARCH_SM80_OPS_H
#define FA_ARCH_SM80_OPS_H

#include <fa/arch/math.h>

/** @cond PRIVATE */
#define FA__DEVICE static __device__ __forceinline__ FA_UNUSED

/* ---- arithmetic ---- */

FA__DEVICE float fa_sm80_fma(float a, float b, float c) { return fmaf(a, b, c); }
/* a * b, even if they or it are subnormal and the compiler was told to flush such numbers to 0 (PTX ISA, mul:
 * without .ftz). */
FA__DEVICE float fa_sm80_mul(float a, float b) {
    float x;
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
    return x;
}
/* a - b, never a part of a fused operation. */
FA__DEVICE float fa_sm80_sub(float a, float b) { return __fsub_rn(a, b); }

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
/* The value itself, which the compiler must take for a new one: keeps what derives from it inside a rare branch, where
 * it would otherwise be computed ahead and occupy registers. */
FA__DEVICE int fa_sm80_opaque(int x) {
    asm volatile("" : "+r"(x));
    return x;
}
/* The numbers of the thread block and the thread, read again where they are asked for: so is what derives from them,
 * and nothing of it occupies registers before. */
FA__DEVICE int fa_sm80_block_anew(void) {
    int x;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(x));
    return x;
}
FA__DEVICE int fa_sm80_thread_anew(void) {
    int x;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
    return x;
}
FA__DEVICE uint64_t fa_sm80_opaque_address(uint64_t x) {
    asm volatile("" : "+l"(x));
    return x;
}

/* A line of memory that is wanted soon, into the second-level cache (PTX ISA, prefetch). */
FA__DEVICE void fa_sm80_prefetch(const void *from) { asm volatile("prefetch.global.L2 [%0];" ::"l"(from)); }

/* The two halves of a word as floats, exactly. (Those of bf16: composed.h.) */
FA__DEVICE void fa_sm80_unpack_f16(float *low, float *high, uint32_t word) {
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }" : "=f"(*low), "=f"(*high) : "r"(word));
}
/* The lower word of two that are moved right together by up to 31 bits (PTX ISA, shf). */
FA__DEVICE uint32_t fa_sm80_shift_words(uint32_t low, uint32_t high, unsigned bits) { return __funnelshift_r(low, high, bits); }

/* The larger of two halves, twice; the other one where one is NaN (PTX ISA, max). */
FA__DEVICE uint32_t fa_sm80_max_f16(uint32_t a, uint32_t b) {
    uint32_t r;
    asm("max.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}
FA__DEVICE uint32_t fa_sm80_max_bf16(uint32_t a, uint32_t b) {
    uint32_t r;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

/* ---- across a warp ---- */

/* The value of the lane whose number differs in `bit`. */
FA__DEVICE uint32_t fa_sm80_shuffle(uint32_t x, int bit) { return __shfl_xor_sync(0xFFFFFFFFu, x, bit); }
FA__DEVICE float fa_sm80_shuffle_f32(float x, int bit) { return __shfl_xor_sync(0xFFFFFFFFu, x, bit); }
/* The value of a lane. */
FA__DEVICE int fa_sm80_from_lane(int x, int lane) { return __shfl_sync(0xFFFFFFFFu, x, lane); }
/* All lanes of the warp; what they have written each of them sees. */
FA__DEVICE void fa_sm80_warp_barrier(void) { __syncwarp(); }

FA__DEVICE int fa_sm80_lowest(int x) { return __reduce_min_sync(0xFFFFFFFFu, x); }
FA__DEVICE int fa_sm80_highest(int x) { return __reduce_max_sync(0xFFFFFFFFu, x); }
FA__DEVICE int fa_sm80_any(int x) { return __any_sync(0xFFFFFFFFu, x); }
FA__DEVICE uint32_t fa_sm80_ballot(int x) { return __ballot_sync(0xFFFFFFFFu, x); }
/* Of a thread's eight elements of 16 rows and 16 columns of a product, makes those -infinity whose column has no
 * bit; `first` is the thread's first column. Mostly all have one, or none: bits are the same for all lanes. In one
 * piece, because of branches in C around them nvcc makes copies of all accumulators. */
FA__DEVICE void fa_sm80_hide_unset(float *x, uint32_t bits, int first) {
#define FA__HIDE(bit, above, below)                                                                                        \
    "and.b32 t, own, " #bit ";\nsetp.eq.u32 p, t, 0;\n@p mov.b32 %" #above ", 0fFF800000;\n@p mov.b32 %" #below ", 0fFF800000;\n"
    asm volatile("{\n.reg .pred p;\n.reg .b32 own, t;\n"
                 "setp.eq.u32 p, %8, 0xFFFF;\n@p bra.uni DONE;\nsetp.eq.u32 p, %8, 0;\n@p bra.uni NONE;\nshr.u32 own, %8, %9;\n"
                 FA__HIDE(1, 0, 2) FA__HIDE(2, 1, 3) FA__HIDE(256, 4, 6) FA__HIDE(512, 5, 7)
                 "bra.uni DONE;\nNONE:\n"
                 "mov.b32 %0, 0fFF800000;\nmov.b32 %1, 0fFF800000;\nmov.b32 %2, 0fFF800000;\nmov.b32 %3, 0fFF800000;\n"
                 "mov.b32 %4, 0fFF800000;\nmov.b32 %5, 0fFF800000;\nmov.b32 %6, 0fFF800000;\nmov.b32 %7, 0fFF800000;\nDONE:\n}"
                 : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]), "+f"(x[4]), "+f"(x[5]), "+f"(x[6]), "+f"(x[7])
                 : "r"(bits), "r"(first));
#undef FA__HIDE
}
FA__DEVICE int fa_sm80_lowest_bit(uint32_t x) { return __ffs((int)x) - 1; }

/* ---- shared memory and copies ---- */

FA__DEVICE int fa_sm80_thread(void) { return (int)threadIdx.x; }

/* Adds to a counter in memory that all threads share. */
FA__DEVICE void fa_sm80_add_to(unsigned long long *counter, int64_t x) { atomicAdd(counter, (unsigned long long)x); }

/* All threads of the block. */
FA__DEVICE void fa_sm80_barrier(void) { __syncthreads(); }

FA__DEVICE uint32_t fa_sm80_shared_address(const void *pointer) { return (uint32_t)__cvta_generic_to_shared(pointer); }

/* How long what an access with a hint touches stays in the second-level cache: as without a hint, longer than
 * anything else, or less long. What createpolicy makes (PTX ISA; evict_unchanged, evict_last and evict_first, of
 * all), the same from sm_80 to sm_120, which tests compare on the device at hand. The host chooses: a kernel that
 * did would make all, by 15 instructions before its first load. */
#define FA__SM80_EVICT_UNCHANGED UINT64_C(0x10F0000000000000)
#define FA__SM80_EVICT_LAST UINT64_C(0x14F0000000000000)
#define FA__SM80_EVICT_FIRST UINT64_C(0x12F0000000000000)
/* Starts copying 16 bytes into shared memory past the L1 cache; of the source only `bytes` (0 to 16) are read, the rest
 * is zero (PTX ISA, cp.async). */
FA__DEVICE void fa_sm80_copy16(uint32_t to, const void *from, int bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
/* The same; what is read stays by a policy, one of the above. */
FA__DEVICE void fa_sm80_copy16_of(uint32_t to, const void *from, int bytes, uint64_t policy) {
    asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2, %3;" ::"r"(to), "l"(from), "r"(bytes), "l"(policy)
                 : "memory");
}
/* A word, or zeros. */
FA__DEVICE void fa_sm80_copy4(uint32_t to, const void *from, int there) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(there ? 4 : 0) : "memory");
}
FA__DEVICE void fa_sm80_copy_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
/* Returns when all but the latest `pending` (at most 3) groups of this thread have landed. */
FA__DEVICE void fa_sm80_copy_wait(int pending) {
    if (pending <= 0) asm volatile("cp.async.wait_group 0;" ::: "memory");
    else if (pending == 1) asm volatile("cp.async.wait_group 1;" ::: "memory");
    else if (pending == 2) asm volatile("cp.async.wait_group 2;" ::: "memory");
    else asm volatile("cp.async.wait_group 3;" ::: "memory");
}

/* 16 bytes of global memory at an address aligned to them (PTX ISA, ld and st). Plain ones, although they are read
 * once: with L1::no_allocate in both, a copy was 5 % slower on an H200, and a softmax as much. Volatile: loads stay
 * where they are, ahead of what is done with the first of them. */
FA__DEVICE void fa_sm80_load16(uint32_t *to, const void *from) {
    asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "l"(from));
}
/* 2 or 4 words if `there`, else what `to` has: a predicate, not a branch. */
FA__DEVICE void fa_sm80_load_if(int there, uint32_t *to, const void *from, int words) {
    if (words == 4)
        asm volatile("{.reg .pred p;\n\tsetp.ne.b32 p, %5, 0;\n\t@p ld.global.v4.b32 {%0, %1, %2, %3}, [%4];}"
                     : "+r"(to[0]), "+r"(to[1]), "+r"(to[2]), "+r"(to[3])
                     : "l"(from), "r"(there));
    else if (words == 2)
        asm volatile("{.reg .pred p;\n\tsetp.ne.b32 p, %3, 0;\n\t@p ld.global.v2.b32 {%0, %1}, [%2];}"
                     : "+r"(to[0]), "+r"(to[1])
                     : "l"(from), "r"(there));
    else asm volatile("{.reg .pred p;\n\tsetp.ne.b32 p, %2, 0;\n\t@p ld.global.b32 %0, [%1];}" : "+r"(to[0]) : "l"(from), "r"(there));
}
/* And what is read stays by a policy. */
FA__DEVICE void fa_sm80_load_of(int there, uint32_t *to, const void *from, int words, uint64_t policy) {
    if (words == 4)
        asm volatile("{.reg .pred p;\n\tsetp.ne.b32 p, %5, 0;\n\t@p ld.global.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %6;}"
                     : "+r"(to[0]), "+r"(to[1]), "+r"(to[2]), "+r"(to[3])
                     : "l"(from), "r"(there), "l"(policy));
    else if (words == 2)
        asm volatile("{.reg .pred p;\n\tsetp.ne.b32 p, %3, 0;\n\t@p ld.global.L2::cache_hint.v2.b32 {%0, %1}, [%2], %4;}"
                     : "+r"(to[0]), "+r"(to[1])
                     : "l"(from), "r"(there), "l"(policy));
    else
        asm volatile("{.reg .pred p;\n\tsetp.ne.b32 p, %2, 0;\n\t@p ld.global.L2::cache_hint.b32 %0, [%1], %3;}"
                     : "+r"(to[0])
                     : "l"(from), "r"(there), "l"(policy));
}
/* Words that nobody writes meanwhile, 1, 2 or 4 at an address aligned to their size: such as weights, which stay in
 * the first-level cache. */
FA__DEVICE void fa_sm80_load_const(uint32_t *to, const void *from, int words) {
    if (words == 4) fa_sm80_load16(to, from);
    else if (words == 2) asm volatile("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "l"(from));
    else asm volatile("ld.global.b32 %0, [%1];" : "=r"(to[0]) : "l"(from));
}
FA__DEVICE void fa_sm80_store16(void *to, const uint32_t *from) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]) : "memory");
}
/* 1, 2 or 4 words. */
FA__DEVICE void fa_sm80_store(void *to, const uint32_t *from, int words) {
    if (words == 4) fa_sm80_store16(to, from);
    else if (words == 2) asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(from[0]), "r"(from[1]) : "memory");
    else asm volatile("st.global.b32 [%0], %1;" ::"l"(to), "r"(from[0]) : "memory");
}

/* 1, 2 or 4 words at an address aligned to their size (PTX ISA, ld). */
FA__DEVICE void fa_sm80_load_words(uint32_t *to, uint32_t from, int words) {
    if (words == 4)
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from) : "memory");
    else if (words == 2) asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"(from) : "memory");
    else asm volatile("ld.shared.b32 %0, [%1];" : "=r"(to[0]) : "r"(from) : "memory");
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
/* 16 x 8 += (16 x 8) * (8 x 8) of FA_BF16; a0 is of row lane / 4 of A, a1 of the one 8 below */
FA__DEVICE void fa_sm80_mma_eight(float *c0, float *c1, float *c2, float *c3, uint32_t a0, uint32_t a1, uint32_t b) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(*c0), "+f"(*c1), "+f"(*c2), "+f"(*c3)
        : "r"(a0), "r"(a1), "r"(b));
}

/* 16 x 8 = C + (16 x 8) * (8 x 8), operands in tf32: of the floats given, the unit ignores the lower 13 bits. The
 * row r, column c of a lane's part of a block is at d[r * stride + c]; without an addend, C is zero. */
FA__DEVICE void fa_sm80_mma_tf32(float *d, int stride, const uint32_t *a, const uint32_t *b, int accumulate) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[stride]), "=f"(d[stride + 1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(accumulate ? d[0] : 0.0f),
          "f"(accumulate ? d[1] : 0.0f), "f"(accumulate ? d[stride] : 0.0f), "f"(accumulate ? d[stride + 1] : 0.0f));
}
/** @endcond */

#include <fa/arch/sm80/composed.h>

#endif
