/* attention_tiles_end.h: forgets what attention_tiles.h chose. */
#if FA__COLUMNS
#undef FA__HAS_SCORE
#undef FA__SCORE_NEEDS
#define FA__HAS_SCORE 1
#define FA__SCORE_NEEDS FA__SHIPPED_NEEDS(FA_SCORE)
#endif
#undef FA__COLUMNS
#undef FA__BIAS_TILES
#undef FA__HOOKED
#undef FA__WIDEST
#undef FA__BEFORE_90
#undef FA__TABLE_M
#undef FA__TABLE_N
#undef FA__TABLE_WARPS
#undef FA__TABLE_STAGES
#undef FA__TABLE_TEAMS
#undef FA__TABLE_THIRD
#undef FA__TABLE_BOUND_BY_COPIES
#undef FA__RESIDENT
#undef FA__TEAMS
#undef FA__WARP_ROWS
#undef FA__KEEP_Q
#undef FA__KEEP_MOST
#undef FA__EARLY_Q
#undef FA__PAIRS
#undef FA__ADDENDS_AHEAD
#undef FA__IN_UNITS
#undef FA__STAGES
#undef FA_BLOCK_M
#undef FA_BLOCK_N
#undef FA_WARPS
#undef FA_STAGES
#undef FA__AFTERWARDS
#undef FA__HOOK_IN_PARTS
#undef FA__MASK_IN_PARTS
#undef FA__ONE_PART
#undef FA__BIAS_HALVES
#undef FA__OWN_SCORE
#undef FA__PARTS
#undef FA__ANEW
#undef FA__ANEW_FLOATS
#undef FA__ANEW_HOOK
#undef FA__ANEW_MASK
#undef FA__ANEW_BIAS
#undef FA__ANEW_HALVES
#undef FA__PART_N
#undef FA__BY_EIGHT
