/**
 * @file cpu/ops.h
 * @brief The instruction layer of the CPU: what a kernel asks of its processor beyond plain C.
 *
 * Every instance is compiled for several instruction sets, of which fa__cpu_isa() picks one at run time. Operations
 * that differ carry the set's number at their end: FA__CPU_OP(name) is the one for FA__ISA.
 *
 *   vec     a vector of floats, which may alias any array of floats
 *   any     the same at any address
 *   splat   a vector of equal elements
 *   bits    its bits as integers
 *   fma     a * b + c, in one rounding where the set has that; c's register is reused
 *   horner  the same, where p's register is
 *   max     the larger ones; b's where one is NaN
 *   max16   the larger ones of integers of 16 bits
 *   top16   the same without a sign (AVX-512)
 *   widen   eight FA_F16 elements to floats, exactly
 *   of_f16, of_bf16   as many halves as a vector has elements, to floats
 *   of_bf16_pair   two vectors of them (AVX-512)
 *   narrow  eight floats to FA_F16, to nearest even
 *   put_f16, put_bf16   two vectors of floats to as many bytes as one has, to nearest even; streamed: past the caches, to a
 *           multiple of these; by_unit: as fa__cpu_rounds_bf16() says
 *   put_bf16_pair   put_bf16 of the elements at even places and of those at odd ones (AVX2)
 *   pairs_bf16   words of an element of either (AVX512-BF16)
 *   inverse 1 / x, to 2 units in the last place, of numbers between 2^-126 and 2^126
 *   fraction, raise   x - floor(x), also of -infinity; p 2^floor(x), and 0 if x is below FA__EXP2_LOWEST; bounded: only -infinity is
 *           (AVX-512)
 *   stream  writes a line of 64 bytes, at a multiple of 64, past the caches; fa_cpu_stream_end() after the last
 *   pieces, low, high, low2, high2   what a transposition is made of
 *
 * They are written with GNU vectors and a line of assembly each: including <immintrin.h> takes as long as half of an
 * instance.
 */
#ifndef FA_ARCH_CPU_OPS_H
#define FA_ARCH_CPU_OPS_H

#include <stdlib.h>

#include <fa/arch/math.h>

/** @cond PRIVATE */
/* One core owns whole rows, and what it loads is there: there is nobody to reduce with, or to wait for. */
FA_HOOK float fa_cpu_row_max(float x, int owners) {
    (void)owners;
    return x;
}
FA_HOOK float fa_cpu_row_sum(float x, int owners) {
    (void)owners;
    return x;
}
FA_HOOK float fa_cpu_fma(float a, float b, float c) { return a * b + c; }
FA_HOOK int fa_cpu_any(int x) { return x; }
FA_HOOK int fa_cpu_thread(void) { return 0; }
FA_HOOK void fa_cpu_barrier(void) {}
FA_HOOK void fa_cpu_copy_commit(void) {}
FA_HOOK void fa_cpu_copy_wait(int pending) { (void)pending; }

/* memcpy() itself, for this many floats or more. gcc makes "rep movs" of one whose length it knows to be a few KB at most, which takes long to start. */
#define FA__CPU_COPIED 512
static inline FA_UNUSED void fa_cpu_copy(void *to, const void *from, size_t bytes) {
    __asm__("" : "+r"(bytes));
    memcpy(to, from, bytes);
}

/* Where x / (1 + exp(-x)) is as good as 0. */
#define FA__SIGMOID_LOWEST (-87.0f)

/* Of an array that is gone through in vectors: none lies across two lines. */
#define FA__CPU_ALIGNED __attribute__((__aligned__(64)))

/* ---- the instruction sets ---- */

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

#define FA__CPU_TARGET(isa) FA__CAT(FA__CPU_TARGET_, isa)
#define FA__CPU_OP(name) FA__CAT3(fa_cpu_, name, FA__CAT(_, FA__ISA))
#define FA__CPU_INLINE(isa) static inline __attribute__((__always_inline__, __unused__)) FA__CPU_TARGET(isa)
/* Floats of a vector, and whether a fused multiply-add is one instruction (elsewhere it would be a call of libm). */
#define FA__CPU_LANES(isa) (FA__CAT(FA__CPU_VECTOR_, isa) / 4)
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__aarch64__)
#define FA__CPU_FUSED(isa) 1
#else
#define FA__CPU_FUSED(isa) ((isa) != FA__ISA_BASE)
#endif

/* The instruction set to use: the best that the processor and the system offer. FA_CPU_ISA in the environment (base,
 * avx2, or avx512, without AMX) asks for a lesser one, which is how the tests reach all of them. */
static FA_UNUSED int fa__cpu_isa(void) {
    int isa = FA__ISA_BASE;
#if defined(__x86_64__)
    const char *asked = getenv("FA_CPU_ISA");
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        isa = FA__ISA_AVX2; /* every processor with AVX2 has F16C */
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
            isa = FA__ISA_AVX512;
    }
    if (asked && strcmp(asked, "base") == 0) isa = FA__ISA_BASE;
    if (asked && strcmp(asked, "avx2") == 0 && isa > FA__ISA_AVX2) isa = FA__ISA_AVX2;
#endif
    return isa;
}

#if defined(__x86_64__)
/* The registers eax and edx of subleaf `of` of the processor's leaf of extended features. */
static inline FA_UNUSED void fa__cpuid_7(uint32_t of, uint32_t *eax, uint32_t *edx) {
    uint32_t a = 7, b = 0, c = of, d = 0;
    __asm__ volatile("cpuid" : "+a"(a), "+b"(b), "+c"(c), "+d"(d));
    *eax = a, *edx = d;
}
#endif
/* Whether AVX-512 code rounds to bf16 by one instruction. It takes subnormal numbers for 0, which are rounded in the other way. */
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

/* ---- vectors ---- */

typedef float fa_cpu_vec_0 __attribute__((__vector_size__(16), __may_alias__));
typedef float fa_cpu_any_0 __attribute__((__vector_size__(16), __may_alias__, __aligned__(4)));
typedef int32_t fa_cpu_bits_0 __attribute__((__vector_size__(16)));
typedef int16_t fa__words __attribute__((__vector_size__(16)));
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_splat_0(float x) {
    fa_cpu_vec_0 v = {x, x, x, x};
    return v;
}
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_fma_0(fa_cpu_vec_0 a, fa_cpu_vec_0 b, fa_cpu_vec_0 c) {
#if defined(__aarch64__)
    __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(c) : "w"(a), "w"(b));
    return c;
#elif defined(__x86_64__) && defined(__FMA__)
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
    return c;
#else
    return a * b + c;
#endif
}
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_horner_0(fa_cpu_vec_0 p, fa_cpu_vec_0 x, fa_cpu_vec_0 c) {
    return fa_cpu_fma_0(p, x, c);
}
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_max_0(fa_cpu_vec_0 a, fa_cpu_vec_0 b) {
    fa_cpu_bits_0 larger = (fa_cpu_bits_0)(a > b);
    return (fa_cpu_vec_0)((larger & (fa_cpu_bits_0)a) | (~larger & (fa_cpu_bits_0)b));
}
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_max16_0(fa_cpu_vec_0 a, fa_cpu_vec_0 b) {
    fa__words u = (fa__words)a, v = (fa__words)b, larger = (fa__words)(u > v);
    return (fa_cpu_vec_0)((larger & u) | (~larger & v));
}
/* A vector of pieces of four floats, of rows that are `stride` floats apart. */
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_pieces_0(const float *from, int64_t stride) {
    (void)stride;
    return *(const fa_cpu_any_0 *)from;
}
/* Within each piece: a0 b0 a1 b1, a2 b2 a3 b3, a0 a1 b0 b1, a2 a3 b2 b3. */
#if defined(__clang__) || __GNUC__ >= 12
#define FA__SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define FA__SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (fa_cpu_bits_0){i, j, k, l})
#endif
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_low_0(fa_cpu_vec_0 a, fa_cpu_vec_0 b) { return FA__SHUFFLE(a, b, 0, 4, 1, 5); }
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_high_0(fa_cpu_vec_0 a, fa_cpu_vec_0 b) { return FA__SHUFFLE(a, b, 2, 6, 3, 7); }
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_low2_0(fa_cpu_vec_0 a, fa_cpu_vec_0 b) { return FA__SHUFFLE(a, b, 0, 1, 4, 5); }
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_high2_0(fa_cpu_vec_0 a, fa_cpu_vec_0 b) { return FA__SHUFFLE(a, b, 2, 3, 6, 7); }
/* Eight halves at a time, by integer arithmetic that the compiler vectorises. */
FA__CPU_INLINE(0) void fa_cpu_widen_0(float *to, const fa_f16 *from) {
    for (int i = 0; i < 8; i++) to[i] = fa_f16_to_float(from[i]);
}
FA__CPU_INLINE(0) void fa_cpu_narrow_0(fa_f16 *to, const float *from) {
    for (int i = 0; i < 8; i++) to[i] = fa_f16_from_float(from[i]);
}

FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_of_f16_0(const fa_f16 *from) {
    fa_cpu_vec_0 v = {fa_f16_to_float(from[0]), fa_f16_to_float(from[1]), fa_f16_to_float(from[2]), fa_f16_to_float(from[3])};
    return v;
}
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_of_bf16_0(const fa_bf16 *from) {
    fa_cpu_bits_0 v = {from[0], from[1], from[2], from[3]};
    return (fa_cpu_vec_0)(v << 16);
}
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_inverse_0(fa_cpu_vec_0 x) { return 1.0f / x; }
FA__CPU_INLINE(0) void fa_cpu_put_f16_0(fa_f16 *to, fa_cpu_vec_0 a, fa_cpu_vec_0 b, int streamed) {
    float x[8];
    memcpy(x, &a, 16), memcpy(x + 4, &b, 16);
    (void)streamed;
    fa_cpu_narrow_0(to, x);
}
FA__CPU_INLINE(0) void fa_cpu_put_bf16_0(fa_bf16 *to, fa_cpu_vec_0 a, fa_cpu_vec_0 b, int streamed, int by_unit) {
    float x[8];
    memcpy(x, &a, 16), memcpy(x + 4, &b, 16);
    (void)streamed, (void)by_unit;
    for (int i = 0; i < 8; i++) to[i] = fa_bf16_from_float(x[i]);
}

FA__CPU_INLINE(0) void fa_cpu_stream_0(void *to, const void *from) {
#if defined(__x86_64__)
    for (int i = 0; i < 4; i++) {
        fa_cpu_vec_0 v;
        memcpy(&v, (const char *)from + (size_t)i * sizeof v, sizeof v); /* halves may lie where no float would */
        __asm__ volatile("movntps %1, %0" : "=m"(((fa_cpu_vec_0 *)to)[i]) : "x"(v));
    }
#else
    memcpy(to, from, 64);
#endif
}
/* Orders what was streamed before what this thread writes next. */
static inline FA_UNUSED void fa_cpu_stream_end(void) {
#if defined(__x86_64__)
    __asm__ volatile("sfence" ::: "memory");
#endif
}

#if defined(__x86_64__)
typedef float fa_cpu_vec_1 __attribute__((__vector_size__(32), __may_alias__));
typedef float fa_cpu_any_1 __attribute__((__vector_size__(32), __may_alias__, __aligned__(4)));
typedef int32_t fa_cpu_bits_1 __attribute__((__vector_size__(32)));
typedef float fa_cpu_vec_2 __attribute__((__vector_size__(64), __may_alias__));
typedef float fa_cpu_any_2 __attribute__((__vector_size__(64), __may_alias__, __aligned__(4)));
typedef float fa__halves_2 __attribute__((__vector_size__(64), __may_alias__, __aligned__(2))); /* two halves where a float would be */
typedef int32_t fa_cpu_bits_2 __attribute__((__vector_size__(64)));
typedef uint16_t fa__halves __attribute__((__vector_size__(16), __may_alias__));

FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_splat_1(float x) {
    fa_cpu_vec_1 v = {x, x, x, x, x, x, x, x};
    return v;
}
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_fma_1(fa_cpu_vec_1 a, fa_cpu_vec_1 b, fa_cpu_vec_1 c) {
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
    return c;
}
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_horner_1(fa_cpu_vec_1 p, fa_cpu_vec_1 x, fa_cpu_vec_1 c) {
    __asm__("vfmadd213ps %2, %1, %0" : "+x"(p) : "x"(x), "xm"(c));
    return p;
}
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_max_1(fa_cpu_vec_1 a, fa_cpu_vec_1 b) {
    __asm__("vmaxps %1, %0, %0" : "+x"(a) : "x"(b));
    return a;
}
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_max16_1(fa_cpu_vec_1 a, fa_cpu_vec_1 b) {
    __asm__("vpmaxsw %1, %0, %0" : "+x"(a) : "x"(b));
    return a;
}
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_pieces_1(const float *from, int64_t stride) {
    fa_cpu_vec_1 v;
    __asm__("vmovups %1, %x0" : "=x"(v) : "m"(*(const fa_cpu_any_0 *)from));
    __asm__("vinsertf128 $1, %1, %0, %0" : "+x"(v) : "m"(*(const fa_cpu_any_0 *)(from + 4 * stride)));
    return v;
}
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_low_1(fa_cpu_vec_1 a, fa_cpu_vec_1 b) {
    __asm__("vunpcklps %1, %0, %0" : "+x"(a) : "x"(b));
    return a;
}
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_high_1(fa_cpu_vec_1 a, fa_cpu_vec_1 b) {
    __asm__("vunpckhps %1, %0, %0" : "+x"(a) : "x"(b));
    return a;
}
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_low2_1(fa_cpu_vec_1 a, fa_cpu_vec_1 b) {
    __asm__("vunpcklpd %1, %0, %0" : "+x"(a) : "x"(b));
    return a;
}
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_high2_1(fa_cpu_vec_1 a, fa_cpu_vec_1 b) {
    __asm__("vunpckhpd %1, %0, %0" : "+x"(a) : "x"(b));
    return a;
}
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_of_f16_1(const fa_f16 *from) {
    fa_cpu_vec_1 v;
    __asm__("vcvtph2ps %1, %0" : "=x"(v) : "m"(*(const fa__halves *)from));
    return v;
}
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_of_bf16_1(const fa_bf16 *from) {
    fa_cpu_bits_1 v;
    __asm__("vpmovzxwd %1, %0" : "=x"(v) : "m"(*(const fa__halves *)from));
    return (fa_cpu_vec_1)(v << 16);
}
FA__CPU_INLINE(1) fa_cpu_vec_1 fa_cpu_inverse_1(fa_cpu_vec_1 x) { return 1.0f / x; } /* 2^-11, which vrcpps has, squared is not enough */
FA__CPU_INLINE(1) void fa_cpu_widen_1(float *to, const fa_f16 *from) {
    fa_cpu_any_1 wide;
    __asm__("vcvtph2ps %1, %0" : "=x"(wide) : "m"(*(const fa__halves *)from));
    *(fa_cpu_any_1 *)to = wide;
}
FA__CPU_INLINE(1) void fa_cpu_narrow_1(fa_f16 *to, const float *from) {
    __asm__("vcvtps2ph $0, %1, %0"
            : "=m"(*(fa__halves *)to)
            : "x"(*(const fa_cpu_any_1 *)from)); /* 0: to nearest even */
}

FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_splat_2(float x) {
    fa_cpu_vec_2 v = {x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
    return v;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_fma_2(fa_cpu_vec_2 a, fa_cpu_vec_2 b, fa_cpu_vec_2 c) {
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_horner_2(fa_cpu_vec_2 p, fa_cpu_vec_2 x, fa_cpu_vec_2 c) {
    __asm__("vfmadd213ps %2, %1, %0" : "+v"(p) : "v"(x), "vm"(c));
    return p;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_max_2(fa_cpu_vec_2 a, fa_cpu_vec_2 b) {
    __asm__("vmaxps %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_max16_2(fa_cpu_vec_2 a, fa_cpu_vec_2 b) {
    __asm__("vpmaxsw %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_top16_2(fa_cpu_vec_2 a, fa_cpu_vec_2 b) {
    __asm__("vpmaxuw %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_pieces_2(const float *from, int64_t stride) {
    fa_cpu_vec_2 v;
    __asm__("vmovups %1, %x0" : "=v"(v) : "m"(*(const fa_cpu_any_0 *)from));
    __asm__("vinsertf32x4 $1, %1, %0, %0" : "+v"(v) : "m"(*(const fa_cpu_any_0 *)(from + 4 * stride)));
    __asm__("vinsertf32x4 $2, %1, %0, %0" : "+v"(v) : "m"(*(const fa_cpu_any_0 *)(from + 8 * stride)));
    __asm__("vinsertf32x4 $3, %1, %0, %0" : "+v"(v) : "m"(*(const fa_cpu_any_0 *)(from + 12 * stride)));
    return v;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_low_2(fa_cpu_vec_2 a, fa_cpu_vec_2 b) {
    __asm__("vunpcklps %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_high_2(fa_cpu_vec_2 a, fa_cpu_vec_2 b) {
    __asm__("vunpckhps %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_low2_2(fa_cpu_vec_2 a, fa_cpu_vec_2 b) {
    __asm__("vunpcklpd %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_high2_2(fa_cpu_vec_2 a, fa_cpu_vec_2 b) {
    __asm__("vunpckhpd %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_of_f16_2(const fa_f16 *from) {
    fa_cpu_vec_2 v;
    __asm__("vcvtph2ps %1, %0" : "=v"(v) : "m"(*(const fa_cpu_any_1 *)(const void *)from));
    return v;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_of_bf16_2(const fa_bf16 *from) {
    fa_cpu_bits_2 v;
    __asm__("vpmovzxwd %1, %0" : "=v"(v) : "m"(*(const fa_cpu_any_1 *)(const void *)from));
    return (fa_cpu_vec_2)(v << 16);
}
/* 32 of them: one operation for a vector, on one unit, where of_bf16 has two. */
FA__CPU_INLINE(2) void fa_cpu_of_bf16_pair_2(fa_cpu_vec_2 *a, fa_cpu_vec_2 *b, const fa_bf16 *from) {
    static const uint16_t twice[64] __attribute__((__aligned__(64))) = {0,  0,  1,  1,  2,  2,  3,  3,  4,  4,  5,  5,  6,  6,  7,  7,
                                                                    8,  8,  9,  9,  10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15,
                                                                    16, 16, 17, 17, 18, 18, 19, 19, 20, 20, 21, 21, 22, 22, 23, 23,
                                                                    24, 24, 25, 25, 26, 26, 27, 27, 28, 28, 29, 29, 30, 30, 31, 31};
    const fa_cpu_vec_2 halves = *(const fa__halves_2 *)(const void *)from, low = *(const fa_cpu_vec_2 *)(const void *)twice,
                       high = *(const fa_cpu_vec_2 *)(const void *)(twice + 32);
    const uint32_t uppers = 0xAAAAAAAAu;
    fa_cpu_vec_2 first, second;
    __asm__("vpermw %1, %2, %0%{%3%}%{z%}" : "=v"(first) : "v"(halves), "v"(low), "Yk"(uppers));
    __asm__("vpermw %1, %2, %0%{%3%}%{z%}" : "=v"(second) : "v"(halves), "v"(high), "Yk"(uppers));
    *a = first, *b = second;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_inverse_2(fa_cpu_vec_2 x) {
    fa_cpu_vec_2 near; /* 2^-14 */
    __asm__("vrcp14ps %1, %0" : "=v"(near) : "v"(x));
    return near * fa_cpu_fma_2(-x, near, fa_cpu_splat_2(2.0f));
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_fraction_2(fa_cpu_vec_2 x) {
    fa_cpu_vec_2 fraction;
    __asm__("vreduceps $9, %1, %0" : "=v"(fraction) : "v"(x));
    return fraction;
}
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_raise_2(fa_cpu_vec_2 p, fa_cpu_vec_2 x, const int bounded) {
    if (bounded) __asm__("vscalefps %1, %0, %0" : "+v"(p) : "v"(x));
    else __asm__("vcmpnltps %2, %1, %%k1\n\tvscalefps %1, %0, %0%{%%k1%}%{z%}" : "+v"(p) : "v"(x), "v"(fa_cpu_splat_2(FA__EXP2_LOWEST)) : "k1");
    return p;
}
FA__CPU_INLINE(2) void fa_cpu_widen_2(float *to, const fa_f16 *from) {
    fa_cpu_any_1 wide;
    __asm__("vcvtph2ps %1, %0" : "=v"(wide) : "m"(*(const fa__halves *)from));
    *(fa_cpu_any_1 *)to = wide;
}
FA__CPU_INLINE(1) void fa_cpu_put_f16_1(fa_f16 *to, fa_cpu_vec_1 a, fa_cpu_vec_1 b, int streamed) {
    fa__halves low, high;
    __asm__("vcvtps2ph $0, %1, %0" : "=x"(low) : "x"(a));
    __asm__("vcvtps2ph $0, %1, %0" : "=x"(high) : "x"(b));
    if (streamed) {
        __asm__ volatile("vmovntps %1, %0" : "=m"(((fa__halves *)to)[0]) : "x"(low));
        __asm__ volatile("vmovntps %1, %0" : "=m"(((fa__halves *)to)[1]) : "x"(high));
    } else {
        memcpy(to, &low, 16), memcpy(to + 8, &high, 16);
    }
}
FA__CPU_INLINE(2) void fa_cpu_put_f16_2(fa_f16 *to, fa_cpu_vec_2 a, fa_cpu_vec_2 b, int streamed) {
    fa_cpu_vec_2 both;
    fa_cpu_vec_1 high;
    __asm__("vcvtps2ph $0, %1, %t0" : "=v"(both) : "v"(a));
    __asm__("vcvtps2ph $0, %1, %0" : "=v"(high) : "v"(b));
    __asm__("vinsertf64x4 $1, %1, %0, %0" : "+v"(both) : "v"(high));
    if (streamed) __asm__ volatile("vmovntps %1, %0" : "=m"(*(fa_cpu_vec_2 *)to) : "v"(both));
    else memcpy(to, &both, 64);
}
/* As fa_bf16_from_float() has it, in the upper halves: half of a unit is added, less the least if the result is even so far;
 * NaN becomes quiet. */
FA__CPU_INLINE(1) fa_cpu_bits_1 fa_cpu_round_number_bf16_1(fa_cpu_vec_1 v) {
    typedef uint32_t words __attribute__((__vector_size__(sizeof(fa_cpu_vec_1)))); /* whose sums may wrap around: those of NaN, which are dropped */
    const words u = (words)v;
    return (fa_cpu_bits_1)(u + ((u >> 16 & 1) + 0x7FFF));
}
FA__CPU_INLINE(1) fa_cpu_bits_1 fa_cpu_round_bf16_1(fa_cpu_vec_1 v) {
    fa_cpu_bits_1 quiet = (fa_cpu_bits_1)v | 0x400000, rounded = fa_cpu_round_number_bf16_1(v);
    __asm__("vblendvps %2, %1, %0, %0" : "+x"(rounded) : "x"(quiet), "x"(v != v));
    return rounded;
}
FA__CPU_INLINE(2) fa_cpu_bits_2 fa_cpu_round_bf16_2(fa_cpu_vec_2 v) {
    fa_cpu_bits_2 u = (fa_cpu_bits_2)v, add = ((u >> 16) & 1) + 0x7FFF, rounded = u | 0x400000;
    __asm__("vcmpordps %1, %1, %%k1\n\tvpaddd %2, %1, %0%{%%k1%}" : "+v"(rounded) : "v"(v), "v"(add) : "k1");
    return rounded;
}
/* Two vectors of them. NaN, of which there is none as a rule, takes another way. */
FA__CPU_INLINE(1) void fa_cpu_round_two_bf16_1(fa_cpu_bits_1 *low, fa_cpu_bits_1 *high, fa_cpu_vec_1 a, fa_cpu_vec_1 b) {
    fa_cpu_vec_1 nan;
    int some;
    __asm__("vcmpunordps %2, %1, %0" : "=x"(nan) : "x"(a), "x"(b));
    __asm__("vmovmskps %1, %0" : "=r"(some) : "x"(nan));
    if (__builtin_expect(some, 0)) *low = fa_cpu_round_bf16_1(a), *high = fa_cpu_round_bf16_1(b);
    else *low = fa_cpu_round_number_bf16_1(a), *high = fa_cpu_round_number_bf16_1(b);
}
FA__CPU_INLINE(1) void fa_cpu_put_words_1(fa_bf16 *to, fa_cpu_bits_1 x, int streamed) {
    if (streamed) __asm__ volatile("vmovntps %1, %0" : "=m"(*(fa_cpu_vec_1 *)to) : "x"(x));
    else memcpy(to, &x, 32);
}
FA__CPU_INLINE(1) void fa_cpu_put_bf16_1(fa_bf16 *to, fa_cpu_vec_1 a, fa_cpu_vec_1 b, int streamed, int by_unit) {
    fa_cpu_bits_1 low, high;
    (void)by_unit;
    fa_cpu_round_two_bf16_1(&low, &high, a, b);
    __asm__("vpsrld $16, %0, %0\n\tvpsrld $16, %1, %1\n\tvpackusdw %1, %0, %0\n\tvpermq $0xD8, %0, %0" : "+x"(low), "+x"(high));
    fa_cpu_put_words_1(to, low, streamed);
}
/* Of elements at even places, and at odd ones: what is rounded lies where it belongs, in the upper halves of words, so that a shift and a
 * choice are left. */
FA__CPU_INLINE(1) void fa_cpu_put_bf16_pair_1(fa_bf16 *to, fa_cpu_vec_1 even, fa_cpu_vec_1 odd, int streamed) {
    fa_cpu_bits_1 low, high;
    fa_cpu_round_two_bf16_1(&low, &high, even, odd);
    __asm__("vpsrld $16, %0, %0\n\tvpblendw $0xAA, %1, %0, %0" : "+x"(low) : "x"(high));
    fa_cpu_put_words_1(to, low, streamed);
}
FA__CPU_INLINE(2) void fa_cpu_put_bf16_2(fa_bf16 *to, fa_cpu_vec_2 a, fa_cpu_vec_2 b, int streamed, int by_unit) {
    static const uint16_t uppers[32] __attribute__((__aligned__(64))) = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                                                     33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    fa_cpu_bits_2 low;
    int subnormal = 1;
#if FA__CPU_BF16
    if (by_unit)
        __asm__("vfpclassps $0x20, %1, %%k1\n\tvfpclassps $0x20, %2, %%k2\n\tkortestw %%k1, %%k2"
                : "=@ccnz"(subnormal)
                : "v"(a), "v"(b)
                : "k1", "k2");
    if (!subnormal) __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(low) : "v"(a), "v"(b));
#else
    (void)by_unit;
#endif
    if (subnormal) {
        low = fa_cpu_round_bf16_2(a);
        __asm__("vpermt2w %2, %1, %0"
                : "+v"(low)
                : "v"(*(const fa_cpu_vec_2 *)(const void *)uppers), "v"(fa_cpu_round_bf16_2(b)));
    }
    if (streamed) __asm__ volatile("vmovntps %1, %0" : "=m"(*(fa_cpu_vec_2 *)to) : "v"(low));
    else memcpy(to, &low, 64);
}

#if FA__CPU_BF16
/* Words of two: those of a, and in the upper halves those of b; subnormal numbers become 0. For processors of which fa__cpu_rounds_bf16() says yes. */
FA__CPU_INLINE(2) fa_cpu_vec_2 fa_cpu_pairs_bf16_2(fa_cpu_vec_2 a, fa_cpu_vec_2 b) {
    static const uint16_t in_turn[32] __attribute__((__aligned__(64))) = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                                      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    fa_cpu_vec_2 both;
    __asm__("vcvtne2ps2bf16 %1, %2, %0\n\tvpermw %0, %3, %0" : "=&v"(both) : "v"(a), "v"(b), "v"(*(const fa_cpu_vec_2 *)(const void *)in_turn));
    return both;
}
#endif

FA__CPU_INLINE(1) void fa_cpu_stream_1(void *to, const void *from) {
    for (int i = 0; i < 2; i++) {
        fa_cpu_vec_1 v;
        memcpy(&v, (const char *)from + (size_t)i * sizeof v, sizeof v);
        __asm__ volatile("vmovntps %1, %0" : "=m"(((fa_cpu_vec_1 *)to)[i]) : "x"(v));
    }
}
FA__CPU_INLINE(2) void fa_cpu_stream_2(void *to, const void *from) {
    fa_cpu_vec_2 v;
    memcpy(&v, from, sizeof v);
    __asm__ volatile("vmovntps %1, %0" : "=m"(*(fa_cpu_vec_2 *)to) : "v"(v));
}
FA__CPU_INLINE(2) void fa_cpu_narrow_2(fa_f16 *to, const float *from) {
    __asm__("vcvtps2ph $0, %1, %0" : "=m"(*(fa__halves *)to) : "v"(*(const fa_cpu_any_1 *)from));
}
#endif

#define FA__ISA FA__ISA_BASE
#include <fa/arch/cpu/vector.h>
#undef FA__ISA
#if defined(FA__ISA_AVX2)
#define FA__ISA FA__ISA_AVX2
#include <fa/arch/cpu/vector.h>
#undef FA__ISA
#define FA__ISA FA__ISA_AVX512
#include <fa/arch/cpu/vector.h>
#undef FA__ISA
#endif
/** @endcond */

#endif
