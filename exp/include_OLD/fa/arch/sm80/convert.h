/**
 * @file sm80/convert.h
 * @brief The conversion of fa.h that a GPU has an instruction for.
 */
#ifndef FA_ARCH_SM80_CONVERT_H
#define FA_ARCH_SM80_CONVERT_H

/** @cond PRIVATE */
FA_HOOK float fa__float_of_f16(uint16_t half) { /* one instruction instead of seven (PTX ISA, cvt) */
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
    return x;
}
#define FA__FLOAT_OF_F16 fa__float_of_f16
/** @endcond */

#endif
