/* rows_end.h: ends what kernel/rows_begin.h began. */
#undef FA__ROWS
#undef FA__ROWS_CALL
#undef FA__ELEMENT
#undef FA_WARPS
#undef FA_WEIGHT_DTYPE /* of those that take none, too */
#undef FA_ACTIVATION
#if defined(FA__SUB_DEFAULTED)
#undef FA__SUB_DEFAULTED
#undef FA_NAME
#undef FA_DTYPE
#undef FA_ARCH
#undef FA_USER_ARGS
#undef FA_MASK /* this and what follows is attention's: its next instance must not find it */
#undef FA_SCORE
#undef FA_HEAD_DIM
#undef FA_HEAD_DIM_V
#undef FA_BLOCK_M
#undef FA_BLOCK_N
#undef FA_STAGES
#endif
#undef FA_SUB
#undef FA_API
#undef FA_DECLARE
