/* begin.h: the common start of the primitive templates: their prefix is FA_NAME, FA_SUB and FA__PART pasted. */
#if !defined(FA_NAME)
#error "fa: define FA_NAME, the prefix of every generated name, before including this header"
#define FA_NAME fa_unnamed
#endif
#if !defined(FA__PART)
#define FA__PART FA__EMPTY
#define FA__PART_DEFAULTED
#if !defined(FA_SUB)
#define FA_SUB FA__EMPTY
#define FA__SUB_DEFAULTED
#endif
#include <fa/arch/bind.h>
#if FA__ARCH == FA_CPU
#define FA__ISA FA__ISA_NATIVE
#endif
#endif
#if !defined(FA_WARPS)
#define FA_WARPS 4
#endif
FA__REQUIRE(FA_WARPS >= 1 && FA_WARPS <= 32, "FA_WARPS is outside 1 to 32");
