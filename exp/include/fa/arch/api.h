/* api.h: what an instance's second name, FA_SUB, and its linkage, FA_API, are where they are not given. */
#if !defined(FA_SUB)
#define FA__SUB_DEFAULTED
#define FA_SUB FA__EMPTY
#endif
#if !defined(FA_API) && defined(FA_DECLARE)
#define FA_API FA_EXTERN
#elif !defined(FA_API)
#define FA_API static
#endif
