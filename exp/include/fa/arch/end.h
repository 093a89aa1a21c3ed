/* end.h: the common end of the primitive templates. An instance of its own leaves nothing defined; a part of another
 * template's instance (FA_SUB: the user's; FA__SUFFIX: ours) undefines its own parameters only. */
#if defined(FA__SUFFIX_DEFAULTED)
#undef FA_WARPS
#if defined(FA__SUB_DEFAULTED)
#undef FA_NAME
#undef FA_DTYPE
#undef FA_ARCH
#undef FA_USER_ARGS
#endif
#undef FA__SUB_DEFAULTED
#undef FA__SUFFIX_DEFAULTED
#undef FA_SUB
#undef FA__ISA
#include <fa/arch/unbind.h>
#endif
#undef FA__SUFFIX
