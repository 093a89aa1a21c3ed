/* targets.h: the devices that code is compiled for. */
#ifndef FA_ARCH_TARGETS_H
#define FA_ARCH_TARGETS_H

/* Whether `test` holds for one of nvcc's targets, 890 for sm_89 (0 is none); `unknown` where the compiler does not
 * name them. */
#if defined(__CUDA_ARCH_LIST__)
#define FA__ANY_TARGET(test, unknown) FA__ANY_OF(test, __CUDA_ARCH_LIST__, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
#define FA__ANY_OF(...) FA__ANY_OF_(__VA_ARGS__)
#define FA__ANY_OF_(test, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, ...)                                                            \
    (test(a) || test(b) || test(c) || test(d) || test(e) || test(f) || test(g) || test(h) || test(i) || test(j) || test(k) || test(l) || \
     test(m) || test(n) || test(o))
#else
#define FA__ANY_TARGET(test, unknown) unknown
#endif
/* Whether sm_90 or sm_90a is among them. (Only the compilation for the device knows which of the two.) */
#define FA__IS_900(target) ((target) == 900)
#define FA__COMPILES_90 FA__ANY_TARGET(FA__IS_900, 0)
/* Whether code for that compute capability, 89 for 8.9, is made for devices whose blocks have 99 KB of shared memory.
 * (sm_87 has 163 KB, but its code, too, takes only what fits in 99.) */
#define FA__SMALL_SHARED(capability) ((capability) >= 120 || ((capability) >= 86 && (capability) <= 89))
/* Whether it is made for devices whose blocks have 227 KB. */
#define FA__AMPLE_SHARED(capability) ((capability) >= 90 && (capability) < 120)
/* To FA__ANY_TARGET(): whether a target's multiprocessors have 164 KB (sm_80). */
#define FA__HAS_164_KB(target) ((target) != 0 && !FA__AMPLE_SHARED((target) / 10) && !FA__SMALL_SHARED((target) / 10))

#endif
