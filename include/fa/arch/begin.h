/* begin.h: the common start of the primitive templates (fa/tile.h, mma.h, softmax.h, row.h, reduce.h): their prefix
 * is FA_NAME, FA_SUB and FA__SUFFIX pasted. FA__SUFFIX is defined only where another template of ours includes them,
 * such as attention. */
#if !defined(FA_NAME)
#error "fa: define FA_NAME, the prefix of every generated name, before including this header"
#define FA_NAME fa_unnamed
#endif
#if !defined(FA__SUFFIX)
#define FA__SUFFIX FA__EMPTY
#define FA__SUFFIX_DEFAULTED
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
#if FA_WARPS + 0 < 1 || FA_WARPS + 0 > 32 || FA__IS_BARE(FA_WARPS)
FA__REQUIRE(0, "FA_WARPS, the warps of a thread block, is " FA__STR(FA_WARPS) ": 1 to 32 are possible, " FA__AS_A_NUMBER);
#undef FA_WARPS
#define FA_WARPS 4
#endif
