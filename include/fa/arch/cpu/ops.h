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
 *   wide    64-bit products of the lower halves of words of 64 bits
 *   pieces, low, high, low2, high2   what a transposition is made of (columns: cpu/vector.h, with exponentials and others made of these)
 *
 * They are written with GNU vectors and a line of assembly each: including <immintrin.h> takes as long as half of an
 * instance.
 */
#ifndef FA_ARCH_CPU_OPS_H
#define FA_ARCH_CPU_OPS_H

#include <fa/arch/cpu/isa.h>
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
FA_HOOK int fa_cpu_any(int x) { return x; }
FA_HOOK int fa_cpu_thread(void) { return 0; }
FA_HOOK void fa_cpu_barrier(void) {}
FA_HOOK void fa_cpu_copy_commit(void) {}
FA_HOOK void fa_cpu_copy_wait(int pending) { (void)pending; }

/* A call of memcpy(), for this many floats or more, whose length is hidden from the compiler: where gcc knows a
 * length to be a few KB at most, it replaces the call by "rep movs", which takes long to start. */
#define FA__CPU_COPIED 512
static inline FA_UNUSED void fa_cpu_copy(void *to, const void *from, size_t bytes) {
    __asm__("" : "+r"(bytes));
    memcpy(to, from, bytes);
}

/* Additions to a sum one after the other, or a few more: what they give is added to what others gave. An addition
 * loses up to half a unit in the last place of the sum, and where the first terms are by far the largest, this may
 * be all of what it adds, every time. */
#define FA__CPU_RUN 16

/* Where x / (1 + exp(-x)) is as good as 0. */
#define FA__SIGMOID_LOWEST (-87.0f)

/* Of an array that is gone through in vectors: none lies across two lines. */
#define FA__CPU_ALIGNED __attribute__((__aligned__(64)))

#define FA__ISA FA__ISA_BASE
#include <fa/arch/cpu/ops_base.h>
#include <fa/arch/cpu/vector.h>
#undef FA__ISA
#if defined(FA__ISA_AVX2)
#define FA__ISA FA__ISA_AVX2
#include <fa/arch/cpu/ops_avx2.h>
#include <fa/arch/cpu/vector.h>
#undef FA__ISA
#define FA__ISA FA__ISA_AVX512
#include <fa/arch/cpu/ops_avx512.h>
#include <fa/arch/cpu/vector.h>
#undef FA__ISA
#endif
/** @endcond */

#endif
