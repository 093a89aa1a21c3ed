/**
 * @file amx.h
 * @brief The instruction layer of AMX, the matrix unit of Intel's server processors since Sapphire Rapids (Intel's Software Developer's
 *        Manual, "Programming with Intel AMX"): eight tiles of 16 rows of 64 bytes, and the product of two of FA_BF16.
 */
#ifndef FA_ARCH_CPU_AMX_H
#define FA_ARCH_CPU_AMX_H

#include <fa/arch/cpu/ops.h>
#include <fa/arch/cpu/threads.h> /* syscall() */

/* Whether the compiler and its assembler know it. clang checks assembly against the function's target, which it does
 * not say with __AVX512F__. */
#if defined(__x86_64__) && defined(__linux__) && FA__CPU_BF16 && \
    ((!defined(__clang__) && __GNUC__ >= 11) || defined(__AMX_BF16__) || defined(__AMXBF16__) || \
     (defined(__clang__) && __clang_major__ >= 12 && !defined(__AVX512F__)))
#define FA__CPU_AMX 1
#else
#define FA__CPU_AMX 0
#endif

/** @cond PRIVATE */
#if FA__CPU_AMX
/* Whether the processor has AMX and the system lets this process use it. The system has to be asked once, since it
 * then saves 8 KB more when it switches threads (Linux, Documentation/arch/x86/xstate.rst). If FA_CPU_ISA asks for
 * less, AMX is not used. */
static FA_UNUSED int fa__cpu_amx(void) {
    static int known = -1;
    enum { FA__ARCH_REQ_XCOMP_PERM = 0x1023, FA__XFEATURE_XTILE_DATA = 18, FA__AMX_BF16_BIT = 22, FA__AMX_TILE_BIT = 24 };
    int has = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (fa__cpu_isa() != FA__ISA_AVX512 || fa__cpu_isa_allowed() <= FA__ISA_AVX512) return 0;
    if (has < 0) {
        uint32_t a, d;
        fa__cpuid_7(0, &a, &d);
        has = (d >> FA__AMX_BF16_BIT & 1) && (d >> FA__AMX_TILE_BIT & 1) && fa__cpu_rounds_bf16() &&
              syscall(SYS_arch_prctl, FA__ARCH_REQ_XCOMP_PERM, FA__XFEATURE_XTILE_DATA) == 0;
        __atomic_store_n(&known, has, __ATOMIC_RELAXED);
    }
    return has;
}

/* Before the first of these instructions in a thread, and after the last: all tiles have 16 rows of 64 bytes. */
FA__CPU_INLINE(2) void fa_cpu_amx_begin(void) {
    const struct {
        uint8_t palette, start, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shapes = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    __asm__ volatile("ldtilecfg %0" ::"m"(shapes));
}
FA__CPU_INLINE(2) void fa_cpu_amx_end(void) { __asm__ volatile("tilerelease"); }

/* Of tile t, a number from 0 to 7: rows `stride` bytes apart from memory, and to memory; zeros. */
#define FA__AMX_LOAD(t, from, stride) __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"(from), "r"((int64_t)(stride)) : "memory")
#define FA__AMX_STORE(t, to, stride) __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"(to), "r"((int64_t)(stride)) : "memory")
#define FA__AMX_ZERO(t) __asm__ volatile("tilezero %%tmm" #t ::)
/* c += a * b: c[i][j] of floats, a[i][k] of FA_BF16, and b[k / 2][j], pairs of k and k + 1, over 32 of k. Subnormal
 * numbers are 0. */
#define FA__AMX_MULTIPLY(c, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)
#endif
/** @endcond */

#endif
