/* each_isa.h: includes FA__WORKER, the file of a schedule, once for each instruction set, from the one on that the
 * compiler was told to assume. The file takes the set from FA__ISA and the beginning of its names from FA__VARIANT,
 * and undefines both. */
#if FA__ISA_NATIVE == FA__ISA_BASE
#define FA__ISA FA__ISA_BASE
#define FA__VARIANT _cpu_base
#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(__clang__) && !defined(__CUDACC__) /* nvcc warns of the second pragma */
/* Hardly an x86-64 processor in use is without AVX2, and everybody compiles for those that are: a tenth to a quarter
 * of an instance's time less, for 1.05 to 1.5 times theirs (doc/log.md). */
#pragma GCC push_options
#pragma GCC optimize("O1")
#include FA__WORKER
#pragma GCC pop_options
#else
#include FA__WORKER
#endif
#endif
#if defined(FA__ISA_AVX2)
#if FA__ISA_NATIVE <= FA__ISA_AVX2
#define FA__ISA FA__ISA_AVX2
#define FA__VARIANT _cpu_avx2
#include FA__WORKER
#endif
#define FA__ISA FA__ISA_AVX512
#define FA__VARIANT _cpu_avx512
#include FA__WORKER
#endif
#undef FA__WORKER
