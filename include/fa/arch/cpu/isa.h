/**
 * @file cpu/isa.h
 * @brief The CPU's instruction sets: how functions for each are compiled, and which of them a processor gets.
 */
#ifndef FA_ARCH_CPU_ISA_H
#define FA_ARCH_CPU_ISA_H

#include <stdlib.h>

#include <fa/fa.h>

/** @cond PRIVATE */
#define FA__ISA_BASE 0 /* 16-byte vectors: what every target of the compiler has, or the compiler emulates */
#define FA__CPU_TARGET_0
#define FA__CPU_VECTOR_0 16
#if defined(__x86_64__)
#define FA__ISA_AVX2 1
#define FA__ISA_AVX512 2
#define FA__CPU_VECTOR_1 32
#define FA__CPU_VECTOR_2 64
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define FA__CPU_TARGET_1 /* the compiler was told with -march */
#else
#define FA__CPU_TARGET_1 __attribute__((__target__("avx2,fma,f16c")))
#endif
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#define FA__CPU_TARGET_2
#elif defined(__clang__) && __clang_major__ >= 12
#define FA__CPU_TARGET_2 __attribute__((__target__("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16,fma,f16c")))
#elif defined(__clang__)
#define FA__CPU_TARGET_2 __attribute__((__target__("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma,f16c")))
#elif __GNUC__ >= 10
#define FA__CPU_TARGET_2 __attribute__((__target__("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma,f16c,prefer-vector-width=512")))
#else
#define FA__CPU_TARGET_2 __attribute__((__target__("avx512f,avx512bw,avx512vl,avx512dq,fma,f16c,prefer-vector-width=512")))
#endif
/* Whether its functions may have instructions of AVX512-BF16 in them, which they use if the processor knows them. */
#if defined(__AVX512BF16__) || (!defined(__AVX512F__) && (defined(__clang__) || __GNUC__ >= 10))
#define FA__CPU_BF16 1
#else
#define FA__CPU_BF16 0
#endif
#endif

/* What a template that is used by itself is compiled for: what the compiler was told to assume. */
#if defined(__x86_64__) && defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && \
    defined(__AVX512DQ__)
#define FA__ISA_NATIVE FA__ISA_AVX512
#elif defined(__x86_64__) && defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define FA__ISA_NATIVE FA__ISA_AVX2
#else
#define FA__ISA_NATIVE FA__ISA_BASE
#endif

/* The lowest instruction set that there is code for, and how its names begin. It is the one that the compiler was
 * told to assume: a processor without it could not run the rest of the program either. */
#if FA__ISA_NATIVE == FA__ISA_BASE
#define FA__CPU_LEAST _cpu_base
#elif FA__ISA_NATIVE == FA__ISA_AVX2
#define FA__CPU_LEAST _cpu_avx2
#else
#define FA__CPU_LEAST _cpu_avx512
#endif

#define FA__CPU_TARGET(isa) FA__CAT(FA__CPU_TARGET_, isa)
#define FA__CPU_OP(name) FA__CAT3(fa_cpu_, name, FA__CAT(_, FA__ISA))
#define FA__CPU_INLINE(isa) static inline __attribute__((__always_inline__, __unused__)) FA__CPU_TARGET(isa)
/* Floats of a vector, and whether a fused multiply-add is one instruction (elsewhere it would be a call of libm). */
#define FA__CPU_LANES(isa) (FA__CAT(FA__CPU_VECTOR_, isa) / 4)
#if (defined(__x86_64__) && defined(__FMA__)) || defined(__aarch64__) /* where fa_cpu_fma_0() is one: a compiler need not contract a * b + c */
#define FA__CPU_FUSED(isa) 1
#else
#define FA__CPU_FUSED(isa) ((isa) != FA__ISA_BASE)
#endif

#if defined(__x86_64__)
/* The most that FA_CPU_ISA in the environment allows: base, avx2, or avx512, without AMX. More than all of these if
 * it says nothing. The tests reach all instruction sets by it. */
static FA_UNUSED int fa__cpu_isa_allowed(void) {
    static const char *const names[] = {"base", "avx2", "avx512"}; /* FA__ISA_BASE and so on */
    const char *asked = getenv("FA_CPU_ISA");
    int isa = FA__ISA_BASE;
    while (isa <= FA__ISA_AVX512 && !(asked && strcmp(asked, names[isa]) == 0)) isa++;
    return isa;
}
#endif

/* The instruction set to use: the best that the processor and the system offer and FA_CPU_ISA allows, of those that
 * there is code for. */
static FA_UNUSED int fa__cpu_isa(void) {
    int isa = FA__ISA_BASE;
#if defined(__x86_64__)
    const int allowed = fa__cpu_isa_allowed();
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        isa = FA__ISA_AVX2; /* every processor with AVX2 has F16C */
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
            isa = FA__ISA_AVX512;
    }
    if (isa > allowed) isa = allowed;
#endif
    return isa > FA__ISA_NATIVE ? isa : FA__ISA_NATIVE;
}

#if defined(__x86_64__)
/* The registers eax and edx of subleaf `of` of the processor's leaf of extended features. */
static inline FA_UNUSED void fa__cpuid_7(uint32_t of, uint32_t *eax, uint32_t *edx) {
    uint32_t a = 7, b = 0, c = of, d = 0;
    __asm__ volatile("cpuid" : "+a"(a), "+b"(b), "+c"(c), "+d"(d));
    *eax = a, *edx = d;
}
#endif
/* Whether AVX-512 code rounds to bf16 by one instruction. The instruction takes subnormal numbers for
 * 0, so put_bf16 (cpu/ops.h) rounds vectors that have one by integer arithmetic. */
static FA_UNUSED int fa__cpu_rounds_bf16(void) {
#if defined(__x86_64__) && FA__CPU_BF16
    static int known = -1; /* written once: all threads read it all the time */
    int has = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (has < 0) {
        uint32_t a, d;
        fa__cpuid_7(1, &a, &d);
        has = (int)(a >> 5 & 1);
        __atomic_store_n(&known, has, __ATOMIC_RELAXED);
    }
    return has;
#else
    return 0;
#endif
}
/** @endcond */

#endif
