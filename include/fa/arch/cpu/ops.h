/**
 * @file cpu/ops.h
 * @brief The instruction layer of the CPU: what a kernel asks of its processor beyond plain C.
 */
#ifndef FA_ARCH_CPU_OPS_H
#define FA_ARCH_CPU_OPS_H

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
FA_HOOK uint32_t fa_cpu_ballot(int x) { return x != 0; }
FA_HOOK int fa_cpu_lowest_bit(uint32_t x) {
    (void)x;
    return 0;
}
FA_HOOK void fa_cpu_barrier(void) {}
FA_HOOK void fa_cpu_copy_commit(void) {}
FA_HOOK void fa_cpu_copy_wait(int pending) { (void)pending; }

/* Instruction sets that every instance is compiled for; the best one is chosen at run time. */
#define FA__ISA_BASE 0
#define FA__CPU_TARGET(isa)
/** @endcond */

#endif
