/* attention_tiles.h: the tuning table of the forward: block_m x block_n, warps, stages and resident thread blocks for a
 * data type and head dimension. FA_BLOCK_M, FA_BLOCK_N, FA_WARPS and FA_STAGES override a row's numbers.
 *
 * What decides on a GPU with mma.sync (measured on an H200 with tests/bench/compare.py --configs; the numbers are in
 * doc/performance.md): a warp's K and V fragments come from shared memory, so 32 rows a warp halve that traffic; O and S take
 * M / warps * (D_v + N) / 32 registers a thread, Q another M / warps * D / 64 where it is kept; of 255 in all, about 210
 * leave the compiler enough to prefetch; two thread blocks on a multiprocessor hide each other's softmax. */
#if FA_HEAD_DIM > FA_HEAD_DIM_V
#define FA__WIDEST FA_HEAD_DIM
#else
#define FA__WIDEST FA_HEAD_DIM_V
#endif

#if FA__ARCH == FA_CPU
/* 64 rows are four vectors of AVX-512. S (16 KB) stays in the first-level cache, and the tiles, on the stack, in the
 * second-level one: 240 KB at most, together with the blocks that share them (attention_cpu.h). */
#define FA__TABLE_M 64
#if FA__WIDEST <= 192
#define FA__TABLE_N 64
#else
#define FA__TABLE_N 48
#endif
#define FA__TABLE_WARPS 1
#define FA__TABLE_STAGES 1
#define FA__TABLE_RESIDENT 1
#elif FA_DTYPE == FA_F16 || FA_DTYPE == FA_BF16
#if FA__WIDEST <= 128 /* 32 rows a warp */
#define FA__TABLE_M 128
#define FA__TABLE_N 64
#else /* O of 32 rows would not fit; 16 rows, and a smaller S, so that Q fits too */
#define FA__TABLE_M 64
#define FA__TABLE_N 32
#endif
#define FA__TABLE_WARPS 4
#define FA__TABLE_STAGES 2
#define FA__TABLE_RESIDENT 2
#else /* FA_F32, FA_TF32: four bytes an element, and for FA_F32 two registers a weight */
#if FA__WIDEST <= 128
#define FA__TABLE_M 64
#define FA__TABLE_N 32
#define FA__TABLE_STAGES 2
#elif FA__WIDEST <= 192
#define FA__TABLE_M 64
#define FA__TABLE_N 16
#define FA__TABLE_STAGES 1
#else
#define FA__TABLE_M 32
#define FA__TABLE_N 16
#define FA__TABLE_STAGES 1
#endif
#define FA__TABLE_WARPS (FA__TABLE_M / 16)
#define FA__TABLE_RESIDENT 2
#endif

#if !defined(FA_BLOCK_M)
#define FA_BLOCK_M FA__TABLE_M
#endif
#if !defined(FA_BLOCK_N)
#define FA_BLOCK_N FA__TABLE_N
#endif
#if FA__ARCH == FA_CPU
#undef FA_WARPS
#define FA_WARPS 1
#undef FA_STAGES
#endif
#if !defined(FA_WARPS)
#define FA_WARPS ((FA_BLOCK_M + FA__TABLE_M / FA__TABLE_WARPS - 1) / (FA__TABLE_M / FA__TABLE_WARPS)) /* as many rows a warp as the table has */
#endif
#if !defined(FA_STAGES)
#define FA_STAGES FA__TABLE_STAGES
#endif
#define FA__RESIDENT (FA_WARPS > 4 ? 1 : FA__TABLE_RESIDENT)

/* Whether Q's fragments stay in registers: where they fit, they save reading them for every tile. */
#define FA__WARP_ROWS (FA_BLOCK_M / FA_WARPS)
#define FA__KEEP_Q                                                                                                            \
    (FA__ARCH != FA_CPU && (FA_DTYPE == FA_F16 || FA_DTYPE == FA_BF16) && FA_HEAD_DIM % 16 == 0 &&                                                   \
     FA__WARP_ROWS * (FA_HEAD_DIM_V + FA_BLOCK_N) / 32 + FA__WARP_ROWS * FA_HEAD_DIM / 64 <= (FA__WARP_ROWS == 16 ? 210 : 190))

/* GPUs with 99 KB of shared memory a block (sm_86, sm_89, sm_120) get one stage: kernel and host decide alike. */
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
#define FA__STAGES 1
#else
#define FA__STAGES FA_STAGES
#endif
