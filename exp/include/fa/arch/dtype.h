/* dtype.h: checks FA_DTYPE and defines FA__ELEMENT, the type that stores an element. */
#if !defined(FA_DTYPE)
FA__REQUIRE(0, "define FA_DTYPE, the type of the elements: FA_F32, FA_F16, FA_BF16 or FA_TF32");
#define FA_DTYPE FA_BF16
#elif FA_DTYPE + 0 < FA_F32 || FA_DTYPE + 0 > FA_TF32
FA__REQUIRE(0, "FA_DTYPE is " FA__STR(FA_DTYPE) ": FA_F32, FA_F16, FA_BF16 or FA_TF32 is needed");
#undef FA_DTYPE
#define FA_DTYPE FA_BF16
#elif FA__ARCH == 90 && !FA__IS_HALF
FA__REQUIRE(0, "FA_ARCH 90 has FA_F16 and FA_BF16: write FA_ARCH 80 for other types");
#undef FA_DTYPE
#define FA_DTYPE FA_BF16
#endif
#if FA__IS_HALF
#define FA__ELEMENT uint16_t
#else
#define FA__ELEMENT float
#endif
