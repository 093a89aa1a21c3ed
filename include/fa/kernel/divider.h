/**
 * @file divider.h
 * @brief Division by a number that the host knows, as a multiplication: a GPU has no integer divider.
 */
#ifndef FA_KERNEL_DIVIDER_H
#define FA_KERNEL_DIVIDER_H

#include <fa/fa.h>

/** @cond PRIVATE */
typedef struct fa__divider {
    uint32_t multiplier, shift;
} fa__divider;

/* For divisors from 1 to 2^31 (Granlund and Montgomery, "Division by invariant integers using multiplication",
 * 1994). */
static inline FA_UNUSED fa__divider fa__divider_of(uint32_t divisor) {
    fa__divider d;
    d.shift = 0;
    while (((uint64_t)1 << d.shift) < divisor) d.shift++;
    d.multiplier = (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << d.shift) - divisor)) / divisor + 1);
    return d;
}

/* x / divisor for x below 2^31 */
FA_HOOK uint32_t fa__divide(uint32_t x, fa__divider d) {
    return ((uint32_t)((uint64_t)x * d.multiplier >> 32) + x) >> d.shift;
}
/** @endcond */

#endif
