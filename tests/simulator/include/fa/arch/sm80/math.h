/* arch/sm80/math.h of the simulator: exact but for one rounding, where the instructions are approximate; subnormal
 * numbers are 0 where they are to these. */
#ifndef FA_ARCH_SM80_MATH_H
#define FA_ARCH_SM80_MATH_H

#include <fa/arch/cpu/loads.h>

FA_HOOK float fa__maxf(float a, float b) { return fmaxf(a, b); }
FA_HOOK float fa__min_or_nan(float a, float b) { return a != a || b < a ? (a != a ? a : b) : b != b ? b : a; }
FA_HOOK uint32_t fa__high(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
FA_HOOK uint64_t fa__high64(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }


FA_HOOK float simulated_flush(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x; }
FA_HOOK float fa__exp2(float x) { return simulated_flush(exp2f(simulated_flush(x))); }
FA_HOOK float fa__reciprocal(float x) { return simulated_flush(1.0f / simulated_flush(x)); }
FA_HOOK float fa__rsqrt(float x) { return 1.0f / sqrtf(x); }
FA_HOOK float fa__log(float x) { return log2f(simulated_flush(x)) * FA__LN_2; }
FA_HOOK float fa__log_accurate(float x) { return logf(x); }
FA_HOOK float fa__tanh_approximate(float x) { return tanhf(x); }

#endif
