/* targets.h: the devices that code is compiled for. */
#ifndef FA_ARCH_TARGETS_H
#define FA_ARCH_TARGETS_H

/* Whether sm_90 or sm_90a is among nvcc's targets. (Only the compilation for the device knows which of the two.) */
#if defined(__CUDA_ARCH_LIST__)
#define FA__COMPILES_90 FA__ANY_900(__CUDA_ARCH_LIST__, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
#define FA__ANY_900(...) FA__ANY_900_(__VA_ARGS__)
#define FA__ANY_900_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, ...)                                                           \
    ((a) == 900 || (b) == 900 || (c) == 900 || (d) == 900 || (e) == 900 || (f) == 900 || (g) == 900 || (h) == 900 || (i) == 900 || \
     (j) == 900 || (k) == 900 || (l) == 900 || (m) == 900 || (n) == 900 || (o) == 900)
#else
#define FA__COMPILES_90 0
#endif
/* Whether code for that compute capability, 89 for 8.9, is made for devices whose blocks have 99 KB of shared memory.
 * (sm_87 has 163 KB, but its code, too, takes only what fits in 99.) */
#define FA__SMALL_SHARED(capability) ((capability) >= 120 || ((capability) >= 86 && (capability) <= 89))
/* Whether it is made for devices whose blocks have 227 KB. */
#define FA__AMPLE_SHARED(capability) ((capability) >= 90 && (capability) < 120)

#endif
