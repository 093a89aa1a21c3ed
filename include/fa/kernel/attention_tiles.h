/* attention_tiles.h: what depends on an instance's type, head dimension, mask and hook: first which hooks are left
 * to the product or the copy engine, then the tuning table of the forward, block_m x block_n, warps and stages.
 * FA_BLOCK_M, FA_BLOCK_N, FA_WARPS and FA_STAGES override a row's numbers.
 *
 * What decides on a GPU with mma.sync (measured on an H200 with tests/bench/compare.py --configs; the numbers are in
 * doc/log.md): a warp's K and V fragments come from shared memory, so 32 rows per warp halve that traffic; O and S
 * take M / warps * (D_v + N) / 32 registers per thread, Q another M / warps * D / 64 where it is kept; of 255 in
 * all, about 210 leave the compiler enough to prefetch; of two thread blocks on a multiprocessor one computes while
 * the other begins, ends, or waits. */

/* With half types some hooks are left to the product (attention_columns.h), where a key's number in its tile has to be
 * exact in FA_BF16: all other code sees an instance without a hook. */
#if FA__ARCH != FA_CPU && FA__IS_HALF && !(defined(FA_BLOCK_N) && FA_BLOCK_N + 0 > 256) && \
    (FA__SCORE_NEEDS == FA__NEED_ALIBI || FA__SCORE_NEEDS == FA__NEED_KEY_BIAS)
#define FA__COLUMNS FA__SHIPPED_NEEDS(FA_SCORE) /* FA__NEED_ALIBI or FA__NEED_KEY_BIAS; FA__SCORE_NEEDS becomes 0 */
#else
#define FA__COLUMNS 0
#endif
#if FA__COLUMNS
#undef FA__HAS_SCORE
#undef FA__SCORE_NEEDS
#define FA__HAS_SCORE 0
#define FA__SCORE_NEEDS 0
#endif
/* A bias is loaded in tiles (attention_bias_tiles.h): a hook, but not one that is called for each score. */
#if FA__ARCH == 90 && FA__SCORE_NEEDS == FA__NEED_BIAS
#define FA__BIAS_TILES 1
#else
#define FA__BIAS_TILES 0
#endif
/* Hooks that are called for each score; FA__BIAS_ROOM: attention_loop_choices.h. */
#define FA__HOOKED (FA__HAS_SCORE && !FA__BIAS_TILES && !FA__BIAS_ROOM)

#if FA_HEAD_DIM > FA_HEAD_DIM_V
#define FA__WIDEST FA_HEAD_DIM
#else
#define FA__WIDEST FA_HEAD_DIM_V
#endif

/* Whether the schedule for every GPU has other tiles in a kernel of their own, for which GPUs (FA__OTHER_FOR), and
 * whether these are theirs (FA__OTHER): for 32-bit types, those with 227 KB of shared memory (FA__AMPLE); for half
 * types, those with 99 KB (FA__SCARCE). Where none of these is a target it would only take time to compile. */
#if FA__ARCH == 80 && !defined(FA__HAS_OTHER)
#define FA__OTHER_FOR(capability) (FA__IS_HALF ? FA__SMALL_SHARED(capability) : FA__AMPLE_SHARED(capability))
#define FA__OTHER_TARGET(target) FA__OTHER_FOR((target) / 10)
#if !FA__SIZED && FA__ANY_TARGET(FA__OTHER_TARGET, 1) &&                            \
    (FA__IS_HALF ? FA__WIDEST <= 112 || (FA__WIDEST > 128 && FA__WIDEST <= 224) \
                 : FA__WIDEST > 64 && (FA_DTYPE == FA_TF32 || FA__WIDEST <= 96 || FA__WIDEST > 128))
#define FA__HAS_OTHER 1
#else
#define FA__HAS_OTHER 0
#endif
#undef FA__OTHER_TARGET
#endif
#define FA__AMPLE (FA__ARCH == 80 && FA__OTHER && !FA__IS_HALF)
#define FA__SCARCE (FA__ARCH == 80 && FA__OTHER && FA__IS_HALF)

/* Compiled for a GPU before sm_90, where the same instructions leave the compiler fewer registers. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define FA__BEFORE_90 1
#else
#define FA__BEFORE_90 0
#endif

/* Keys of a tile where a warp has 32 rows, up to head dimension 128, and each product is one. A bias in flight needs
 * registers, too: of floats there are enough for 64 keys up to 80, of half types up to 96, and up to 112 where it
 * comes by way of shared memory instead (FA__BIAS_ROOM), of which sm_80 has too little for two thread blocks. */
#define FA__TABLE_BESIDE_32 (FA__SCORE_NEEDS == FA__NEED_BIAS && FA__WIDEST > (!FA__IS_HALF ? 80 : FA__SIZED || FA__ANY_TARGET(FA__HAS_164_KB, 1) ? 96 : 112) ? 32 : 64)

#if FA__ARCH == FA_CPU
/* 64 rows are four vectors of AVX-512. S (16 KB) stays in the L1 cache, and the tiles, on the stack, in the L2 cache:
 * 285 KB at most, together with the blocks that share them (attention_cpu.h). */
#define FA__TABLE_M 64
#if FA__WIDEST <= 192 || FA_DTYPE == FA_BF16 /* AMX takes 32 keys at a time: 1.2 times as fast at 256, and vectors 1.01 */
#define FA__TABLE_N 64
#else
#define FA__TABLE_N 48
#endif
#define FA__TABLE_WARPS 1
#define FA__TABLE_STAGES 1
#elif FA__ARCH == 90
/* 64 rows per consumer warpgroup. S takes N / 2 registers per thread, P N / 4 and O D_v / 2, of the 240 that two
 * warpgroups have, the 160 of three, or the 112 of two teams of two; K and V in two stages and Q must fit in 227 KB,
 * with room for O, and Q twice if possible. More keys per step gain nothing (176 at head dimension 128, 80 at 256),
 * and waste more beyond a diagonal and beyond the last key. */

/* Up to 64 O is small: a third warpgroup hides more of the softmax, which is the bottleneck here. But a block of few
 * keys spends much of its time at its beginning and its end, and 192 rows waste much of a short diagonal: then there
 * are two teams of two warpgroups, each with blocks of its own, so that one multiplies while the other ends a block.
 * Without a mask they are slower from 1,536 keys on, and with biases or a user's hook always. */
#if FA__WIDEST <= 64 && !FA__LONG && !FA__SIZED && (FA__HAS_MASK || ((!FA__HAS_SCORE || FA__SOFT_CAP) && FA__COLUMNS != FA__NEED_KEY_BIAS))
#define FA__TABLE_TEAMS 2
#else
#define FA__TABLE_TEAMS 1
#endif
/* From 72 to 104 there is room for a third warpgroup beside an O of that size if a tile has fewer keys: 10 to 13 %
 * faster with many keys, 4 to 7 % slower with few. A causal mask or a prefix wants more of them, since 192 rows
 * waste much of a short diagonal; windows and documents gain nothing, a bias in tiles, which has to be brought for
 * more queries, loses a third, and a soft cap's polynomial needs registers. A tile is also brought for more queries:
 * where every other row begins inside a unit of 32 bytes, of which the L2 cache then delivers more, it pays from
 * fewer keys of the sequence on, if there is no hook on scores, or none but a bias of keys. */
#define FA__TABLE_THIRD \
    (FA__WIDEST > 64 && FA__WIDEST <= 104 && !FA__BIAS_TILES && !FA__SOFT_CAP && (!FA__HAS_MASK || FA__MASK_IS_BAND == 1 || FA__MASK_IS_PREFIX))
#define FA__TABLE_SOONER ((FA_HEAD_DIM % 16 != 0 || FA_HEAD_DIM_V % 16 != 0) && !FA__HAS_SCORE && FA__COLUMNS != FA__NEED_ALIBI)
/* Where few keys and many keys need different tiles there are two kernels: FA__LONG is for FA__LONG_FROM keys or
 * more. */
#if !FA__LONG
#if FA__SIZED || (FA__WIDEST > 64 && (!FA__TABLE_THIRD || (FA__TABLE_SOONER && !FA__HAS_MASK)))
#define FA__LONG_FROM 0
#elif FA__WIDEST > 64 && FA__HAS_MASK && FA__TABLE_SOONER
#define FA__LONG_FROM 2048
#elif FA__WIDEST > 64 && FA__HAS_MASK
#define FA__LONG_FROM 3072
#elif FA__WIDEST <= 64 && (FA__HAS_MASK ? FA__MASK_READS || (FA__BIAS_TILES && FA_HEAD_DIM_V <= 56) : FA__TABLE_TEAMS == 1)
#define FA__LONG_FROM 0
#elif !FA__HAS_MASK
#define FA__LONG_FROM 1536
#elif FA__BIAS_TILES || FA__COLUMNS
#define FA__LONG_FROM 4096
#else
#define FA__LONG_FROM 6144
#endif
#endif
#if FA__TABLE_TEAMS == 2
#define FA__TABLE_M 128
#define FA__TABLE_N 64
#define FA__TABLE_STAGES 3
#elif FA__WIDEST <= 64 && (FA__LONG || !FA__HAS_MASK)
#define FA__TABLE_M 192
#if FA__LONG && FA__SOFT_CAP
#define FA__TABLE_N (FA_HEAD_DIM_V <= 48 ? 112 : FA__HAS_MASK ? 96 : 128) /* 96: with 112 or 128 up to 4% slower */
#elif FA__LONG && FA__HOOKED
#define FA__TABLE_N (FA__MASK_IS_BAND > 1 ? 96 : FA_HEAD_DIM_V <= (FA__MASK_IS_BAND ? 56 : 32) ? 112 : 128) /* those with more keys spill */
#elif FA__HAS_SCORE ? FA_HEAD_DIM_V <= (FA__BIAS_TILES ? 56 : 40) : FA__COLUMNS == FA__NEED_ALIBI && FA__MASK_IS_BAND > 1 && FA_HEAD_DIM_V <= 48
#define FA__TABLE_N 112 /* where 128 keys spill (FA__APART is another cure) */
#else
#define FA__TABLE_N 128
#endif
#define FA__TABLE_STAGES 2
#elif FA__TABLE_THIRD && (FA__LONG || (FA__TABLE_SOONER && !FA__HAS_MASK))
#define FA__TABLE_M 192
#if FA__HOOKED
#define FA__TABLE_N (FA__WIDEST <= 72 ? 112 : FA__WIDEST <= 96 ? 96 : 80)
#elif FA__COLUMNS == FA__NEED_ALIBI /* more keys spill */
#define FA__TABLE_N (FA__WIDEST <= 88 ? 112 : 96)
#else
#define FA__TABLE_N (FA__WIDEST <= 72 ? 128 : FA__WIDEST <= 96 ? 112 : 96)
#endif
#define FA__TABLE_STAGES 2
#elif FA__WIDEST <= 128
#define FA__TABLE_M 128
#define FA__TABLE_N 128
#define FA__TABLE_STAGES (FA__WIDEST <= 64 ? 3 : 2)
#elif FA__WIDEST > 176 && FA__WIDEST <= 192 && FA__HAS_MASK && !FA__HAS_SCORE && !FA__COLUMNS /* 7 to 10% faster at 512, 0 to 5% from 2,048 on; at 160 5% slower there */
#define FA__TABLE_M 128
#define FA__TABLE_N 64
#define FA__TABLE_STAGES 3
#elif FA__WIDEST <= 192
#define FA__TABLE_M 128
#define FA__TABLE_N (FA__BIAS_TILES ? 64 : 96)
#define FA__TABLE_STAGES 2
#else
#define FA__TABLE_M 128
#define FA__TABLE_N 64
#define FA__TABLE_STAGES 2
#endif
#define FA__TABLE_WARPS (FA__TABLE_TEAMS * FA__TABLE_M / 16)
#elif FA__SCARCE /* two thread blocks in 99 KB, with two stages if these fit, too; beyond 128 one of eight warps. Measured where no more than 99 KB could be had */
#define FA__TABLE_M 128
#define FA__TABLE_N (FA__WIDEST <= 48 ? 64 : 32)
#define FA__TABLE_WARPS (FA__WIDEST <= 128 ? 4 : 8)
#define FA__TABLE_STAGES (FA__WIDEST <= 80 ? 2 : 1)
#elif FA__IS_HALF
#if FA__WIDEST <= 128 /* 32 rows a warp */
#define FA__TABLE_M 128
#define FA__TABLE_N FA__TABLE_BESIDE_32
#else /* O of 32 rows would not fit; 16 rows, and a smaller S, so that Q fits too */
#define FA__TABLE_M 64
#define FA__TABLE_N 32
#endif
#define FA__TABLE_WARPS 4
#define FA__TABLE_STAGES 2
/* 32-bit types, whose FA__AMPLE tiles are faster where there are any. They are kept as halves, but land as floats,
 * so that a row of Q takes as much room as a key of a tile. */
#elif FA_DTYPE == FA_F32 /* pairs of halves: a fragment is read for three products, but has twice the bytes */
#if FA__AMPLE && FA__WIDEST <= 96 /* 32 rows a warp; a block of 256 is 5 to 10% slower under a short diagonal, and up to 5% faster elsewhere */
#define FA__TABLE_M (FA__HAS_MASK ? 128 : 256)
#define FA__TABLE_N 32
#define FA__TABLE_WARPS (FA__HAS_MASK ? 4 : 8)
#define FA__TABLE_STAGES 2
#elif FA__AMPLE /* 16 rows a warp */
#define FA__TABLE_M 128
#define FA__TABLE_N 32
#define FA__TABLE_WARPS 8
#define FA__TABLE_STAGES (FA__WIDEST <= 192 ? 2 : 1)
#elif FA__WIDEST <= 64 /* 32 rows a warp */
#define FA__TABLE_M 128
#define FA__TABLE_N 32
#define FA__TABLE_WARPS 4
#define FA__TABLE_STAGES 2
#elif FA__WIDEST <= 128 /* with a smaller S; one stage fits in 99 KB */
#define FA__TABLE_M 128
#define FA__TABLE_N 16
#define FA__TABLE_WARPS 4
#if FA__WIDEST > 96 && FA__MASK_READS && FA__HAS_SCORE /* no registers are left to split the next tiles under P V (as an expression gcc warns of it) */
#define FA__TABLE_STAGES 1
#else
#define FA__TABLE_STAGES 2
#endif
#else /* 16 rows a warp; two thread blocks fit in 227 KB, one in 99 KB */
#define FA__TABLE_M 64
#define FA__TABLE_N 16
#define FA__TABLE_WARPS 4
#define FA__TABLE_STAGES 1
#endif
#else /* FA_TF32: only the first halves of the pairs, so more keys */
#define FA__TABLE_STAGES (FA__WIDEST <= 96 || (FA__WIDEST <= 128 && !FA__AMPLE) ? 2 : 1)
#define FA__TABLE_WARPS (FA__AMPLE ? 8 : 4)
#if FA__AMPLE && FA__WIDEST <= 128 /* 32 rows a warp, as in two thread blocks of half the size, with twice the keys that these have room for */
#define FA__TABLE_M 256
#define FA__TABLE_N FA__TABLE_BESIDE_32
#elif FA__AMPLE
#define FA__TABLE_M 128
#define FA__TABLE_N (FA__WIDEST <= 192 ? 64 : FA__WIDEST <= 224 ? 48 : 32)
#elif FA__WIDEST <= 128
#define FA__TABLE_M 128
#define FA__TABLE_N (FA__WIDEST <= 64 ? 64 : FA__WIDEST <= 96 ? 32 : 16)
#else /* one stage, as of the others, fits in 99 KB */
#define FA__TABLE_M 64
#define FA__TABLE_N (FA__WIDEST <= 192 ? 32 : 16)
#endif
#endif

#if !defined(FA_BLOCK_M)
#define FA_BLOCK_M FA__TABLE_M
#endif
#if !defined(FA_BLOCK_N)
#define FA_BLOCK_N FA__TABLE_N
#endif
#if !defined(FA_WARPS) && FA__ARCH == FA_CPU
#define FA_WARPS 1
#elif !defined(FA_WARPS)
#define FA_WARPS (FA_BLOCK_M / (FA_BLOCK_M > 512 ? 32 : FA_BLOCK_M % (FA__TABLE_M / FA__TABLE_WARPS) ? 16 : FA__TABLE_M / FA__TABLE_WARPS)) /* as many rows per warp as in the table, if possible */
#endif
#if !defined(FA_STAGES)
#define FA_STAGES FA__TABLE_STAGES
#endif
#include <fa/kernel/attention_tiles_check.h>

#if FA__ARCH == 90 && FA_WARPS == FA_BLOCK_M / 8
#define FA__TEAMS 2 /* of warpgroups of a thread block, each with query blocks of its own */
#else
#define FA__TEAMS 1
#endif
/* User-defined sizes may leave no room for tiles of a bias: then it is a hook like others. (In bytes, with 4 KB for
 * a team's small data.) */
#define FA__PANELS(cols) (((cols) + 63) / 64 * 128)
#if FA__BIAS_TILES && FA_BLOCK_M * (FA__PANELS(FA_HEAD_DIM) + FA__PANELS(FA_BLOCK_N)) + \
                          FA_STAGES * FA_BLOCK_N * (FA__PANELS(FA_HEAD_DIM) + FA__PANELS(FA_HEAD_DIM_V)) > (227 / FA__TEAMS - 4) * 1024
#undef FA__BIAS_TILES
#define FA__BIAS_TILES 0
#endif
#undef FA__PANELS
#define FA__RESIDENT (FA_WARPS > 4 ? 1 : 2) /* thread blocks of the schedule for every GPU that share a multiprocessor */

#include <fa/kernel/attention_loop_choices.h>
