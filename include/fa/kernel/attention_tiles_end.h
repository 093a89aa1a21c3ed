/* attention_tiles_end.h: forgets what attention_tiles.h chose. */
#undef FA__WIDEST
#undef FA__TABLE_M
#undef FA__TABLE_N
#undef FA__TABLE_WARPS
#undef FA__TABLE_STAGES
#undef FA__TABLE_CROWDED
#undef FA__TABLE_RESIDENT
#undef FA__RESIDENT
#undef FA__WARP_ROWS
#undef FA__KEEP_Q
#undef FA__EARLY_Q
#undef FA__PAIRS
#undef FA__STAGES
#undef FA_BLOCK_M
#undef FA_BLOCK_N
#undef FA_WARPS
#undef FA_STAGES
