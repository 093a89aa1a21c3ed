/* each_isa.h: includes FA__WORKER, the file of a schedule for FA__ISA and with names of FA__VARIANT, both of which it undefines, once for each
 * instruction set, from the least on that the compiler was told to assume. */
#if FA__ISA_NATIVE == FA__ISA_BASE
#define FA__ISA FA__ISA_BASE
#define FA__VARIANT _cpu_base
#include FA__WORKER
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
