/* attention_tiles_check.h: what a user's FA_BLOCK_M, FA_BLOCK_N, FA_WARPS and FA_STAGES may be (attention_tiles.h).
 * Where one cannot be, the table's number, or one that fits the others, stands in, so that one mistake gives one
 * message. */

/* A CPU ignores FA_WARPS and FA_STAGES; values that no GPU could use are an error there, too. */
#if FA__ARCH == FA_CPU
#if FA_WARPS + 0 < 1 || FA_WARPS + 0 > 32 || FA__IS_BARE(FA_WARPS)
FA__REQUIRE(0, "FA_WARPS, the warps of a thread block that multiply, is " FA__STR(FA_WARPS) ": 1 to 32 are possible, " FA__AS_A_NUMBER);
#endif
#undef FA_WARPS
#define FA_WARPS 1
#endif
/* At most 1024: a band is asked for its keys that far outside a tile (attention_scores.h), and a tile may end that far
 * beyond the last query or key (attention_check.h). */
#if FA_BLOCK_M + 0 < 16 || FA_BLOCK_M + 0 > 1024 || (FA_BLOCK_M + 0) % 16 != 0 || FA__IS_BARE(FA_BLOCK_M)
FA__REQUIRE(0, "FA_BLOCK_M, the queries of a tile, is " FA__STR(FA_BLOCK_M) ": a multiple of 16 up to 1024 is needed, " FA__AS_A_NUMBER);
#undef FA_BLOCK_M
#define FA_BLOCK_M FA__TABLE_M
#elif FA__ARCH == 80 && FA_BLOCK_M > 512 && FA_BLOCK_M % 32 != 0
FA__REQUIRE(0, "FA_BLOCK_M, the queries of a tile, is " FA__STR(FA_BLOCK_M) ": beyond 512 a multiple of 32 is needed, since a thread block has at most 32 warps, each of 16 or 32 queries");
#undef FA_BLOCK_M
#define FA_BLOCK_M FA__TABLE_M
#undef FA_WARPS
#define FA_WARPS FA__TABLE_WARPS
#endif
#if FA_BLOCK_N + 0 < 16 || FA_BLOCK_N + 0 > 1024 || (FA_BLOCK_N + 0) % 16 != 0 || FA__IS_BARE(FA_BLOCK_N)
FA__REQUIRE(0, "FA_BLOCK_N, the keys of a tile, is " FA__STR(FA_BLOCK_N) ": a multiple of 16 up to 1024 is needed, " FA__AS_A_NUMBER);
#undef FA_BLOCK_N
#define FA_BLOCK_N FA__TABLE_N
#endif
#if FA_STAGES + 0 < 1 || FA_STAGES + 0 > (FA__ARCH == 80 ? 2 : 4) || FA__IS_BARE(FA_STAGES)
FA__REQUIRE(0, "FA_STAGES, the tiles of K and V in flight, is " FA__STR(FA_STAGES) ": 1 or 2 (FA_ARCH 90: 1 to 4) are possible, " FA__AS_A_NUMBER);
#undef FA_STAGES
#define FA_STAGES 1
#elif FA__ARCH == FA_CPU
#undef FA_STAGES
#define FA_STAGES 1
#endif
#define FA__NEEDS_90 ": FA_ARCH 90 needs FA_BLOCK_M 64, 128 or 192, and FA_WARPS (those that multiply) FA_BLOCK_M / 16, or not defined; or FA_BLOCK_M 128 and FA_WARPS 16, two teams"
#if FA__ARCH == 90 && (FA_BLOCK_M > 192 || FA_BLOCK_M % 64 != 0 || (FA_WARPS != FA_BLOCK_M / 16 && !(FA_BLOCK_M == 128 && FA_WARPS == 16)))
#if FA_BLOCK_M > 192 || FA_BLOCK_M % 64 != 0 /* then FA_WARPS may be a default, made of it */
FA__REQUIRE(0, "FA_BLOCK_M is " FA__STR(FA_BLOCK_M) FA__NEEDS_90);
#else
FA__REQUIRE(0, "FA_BLOCK_M is " FA__STR(FA_BLOCK_M) " and FA_WARPS is " FA__STR(FA_WARPS) FA__NEEDS_90);
#endif
#undef FA_BLOCK_M
#define FA_BLOCK_M FA__TABLE_M
#undef FA_WARPS
#define FA_WARPS FA__TABLE_WARPS
#elif FA__ARCH == 90 && FA_BLOCK_N > 256
FA__REQUIRE(0, "FA_BLOCK_N, the keys of a tile, is " FA__STR(FA_BLOCK_N) ": FA_ARCH 90 multiplies at most 256");
#undef FA_BLOCK_N
#define FA_BLOCK_N FA__TABLE_N
#elif FA__ARCH != FA_CPU && (FA_WARPS + 0 < 1 || FA_WARPS + 0 > 32 || FA__IS_BARE(FA_WARPS) || (FA_BLOCK_M != FA_WARPS * 16 && FA_BLOCK_M != FA_WARPS * 32 && !(FA__ARCH == 90 && FA_BLOCK_M == FA_WARPS * 8)))
FA__REQUIRE(0, "FA_BLOCK_M is " FA__STR(FA_BLOCK_M) " and FA_WARPS is " FA__STR(FA_WARPS)
                ": 16 or 32 times as many are needed, the rows that a warp can hold, " FA__AS_A_NUMBER);
#undef FA_WARPS
#define FA_WARPS (FA_BLOCK_M / (FA_BLOCK_M > 512 ? 32 : 16))
#endif
#undef FA__NEEDS_90
