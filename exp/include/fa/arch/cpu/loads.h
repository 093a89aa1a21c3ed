/**
 * @file cpu/loads.h
 * @brief The loads of arch/math.h where a GPU's instructions are not: on the CPU, and on a GPU that is simulated there.
 */
#ifndef FA_ARCH_CPU_LOADS_H
#define FA_ARCH_CPU_LOADS_H

#include <fa/fa.h>

/** @cond PRIVATE */
/* Loads of what does not change during a kernel. */
FA_HOOK float fa__load_float(const float *from) { return *from; }
FA_HOOK int fa__load_int(const int *from) { return *from; }
FA_HOOK uint16_t fa__load_half(const uint16_t *from) { return *from; }
FA_HOOK int fa__load_int_if(int there, const int *from, int i, int missing, const void *safe) {
    (void)safe;
    return there ? from[i] : missing;
}
FA_HOOK uint16_t fa__load_half_if(int there, const uint16_t *from, int i, uint16_t missing) {
    return there ? from[i] : missing;
}
FA_HOOK const void *fa__row_address(const void *row) { return row; }
/** @endcond */

#endif
