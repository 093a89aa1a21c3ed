/* every_gpu.h: FA_ARCH of the templates that have one schedule for every GPU, whose number is 80: what cannot be is
 * said once, as in arch/bind.h. */
#if defined(FA_ARCH) && FA_ARCH + 0 != FA_CPU && FA_ARCH + 0 != 80
FA__REQUIRE(0, "FA_ARCH is " FA__STR(FA_ARCH) ": write FA_CPU, or 80, which is every GPU, or leave it out");
#undef FA_ARCH
#if defined(__CUDACC__)
#define FA_ARCH 80
#else
#define FA_ARCH FA_CPU
#endif
#endif
