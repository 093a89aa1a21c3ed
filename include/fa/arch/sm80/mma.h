/* sm80/mma.h: products of tiles by mma.sync. A warp computes FA_M / FA_WARPS rows (blocks of 16) of all FA_N
 * columns. Of every 16 x 8 block, lane l holds rows l / 4 and l / 4 + 8, columns l % 4 * 2 and the next: fragments are
 * kept as FA_M / FA_WARPS / 8 rows of FA_N / 4 columns. */
#include <fa/arch/sm80/layout.h>

FA__REQUIRE(FA_M % (FA_WARPS * 16) == 0, "FA_M is " FA__STR(FA_M) " and FA_WARPS is " FA__STR(FA_WARPS) ": FA_M has to be a multiple of 16 * FA_WARPS, the rows that the warps compute");
FA__REQUIRE(FA_B == FA_OPERAND_BT || FA_N % 16 == 0, "FA_N is " FA__STR(FA_N) ": FA_OPERAND_B needs a multiple of 16 on a GPU");
#if defined(FA__SUFFIX_DEFAULTED) /* in a product of our own C may be padded */
FA__REQUIRE(sizeof(FA__ELEMENT) == 4 || FA_B == FA_OPERAND_B || FA_N % 16 == 0,
            "FA_N is " FA__STR(FA_N) ": FA_OPERAND_BT of FA_F16 and FA_BF16 needs a multiple of 16 with FA_ARCH 80");
#endif
FA__REQUIRE((FA_A == FA_SHARED && FA_B == FA_OPERAND_B) || FA_K % 16 == 0,
            "FA_K is " FA__STR(FA_K) ": FA_FRAGMENT and FA_OPERAND_BT need a multiple of 16 on a GPU");
FA__REQUIRE(sizeof(FA__ELEMENT) == 2 || FA_A == FA_FRAGMENT || FA_B == FA_OPERAND_B,
            "FA_A FA_SHARED with FA_B FA_OPERAND_BT needs FA_F16 or FA_BF16 on a GPU: no instruction loads it for 4-byte elements");

#if defined(FA__PAIRED) /* tiles of pairs of halves, from attention */
#define FA__STEP_BYTES 2
#else
#define FA__STEP_BYTES (int)sizeof(FA__ELEMENT)
#endif
enum {
    FA__MMA(_BLOCKS) = FA_M / FA_WARPS / 16, /* of 16 rows, for each warp */
    FA__MMA(_ROWS) = 2 * FA__MMA(_BLOCKS),
    FA__MMA(_N) = FA__SM80_PADDED(FA_N, FA__STEP_BYTES), /* as V's columns are padded */
    FA__MMA(_COLS) = FA__MMA(_N) / 4,
    FA__MMA(_K) = FA__SM80_PADDED(FA_K, FA__STEP_BYTES),
    FA__MMA(_A_PITCH) = FA__SM80_PITCH(FA__MMA(_K), (int)sizeof(FA__ELEMENT)),
    FA__MMA(_B_PITCH) = FA__SM80_PITCH(FA_B == FA_OPERAND_B ? FA__MMA(_K) : FA__MMA(_N), (int)sizeof(FA__ELEMENT)),
};

typedef struct FA__MMA(_acc) {
    float x[FA__MMA(_ROWS) * FA__MMA(_COLS)];
} FA__MMA(_acc);

FA__FN int FA__MMA(_row)(int thread, int r) { return thread / 32 * (16 * FA__MMA(_BLOCKS)) + r / 2 * 16 + r % 2 * 8 + thread % 32 / 4; }

/* The addresses that a lane gives to ldmatrix: for A, of the four 8 x 8 matrices of 16 rows, the upper ones first;
 * for B in the order b0, b1 of the left block of columns, then of the right one. */
FA__FN uint32_t FA__MMA(_a_address)(const void *a_tile, int thread) {
    int lane = thread % 32, first_row = thread / 32 * (16 * FA__MMA(_BLOCKS));
    return fa_sm80_shared_address(a_tile) + (uint32_t)((first_row + lane % 16) * FA__MMA(_A_PITCH) + lane / 16 * 16);
}
FA__FN uint32_t FA__MMA(_b_address)(const void *b_tile, int thread) {
    int lane = thread % 32, row = lane % 8, upper = lane / 8 % 2, right = lane / 16;
    uint32_t b = fa_sm80_shared_address(b_tile);
    if (FA_B == FA_OPERAND_B) return b + (uint32_t)((row + right * 8) * FA__MMA(_B_PITCH) + upper * 16);
    return b + (uint32_t)((row + upper * 8) * FA__MMA(_B_PITCH) + right * 16);
}

/* A thread's columns are col(thread, 0) + col_offset(c), offsets known to the compiler: runs of two neighbours, or
 * of eight where the rows of B are in another order (layout.h). Pairs of V and tf32 have others. */
#if defined(FA__PAIRED) ? FA_B == FA_OPERAND_B : FA__IS_HALF
#if defined(FA__PERMUTED_KEYS)
enum { FA__MMA(_RUN) = 8 };
#else
enum { FA__MMA(_RUN) = 2 };
#endif
FA__FN int FA__MMA(_col_offset)(int c) { return c / FA__MMA(_RUN) * (4 * FA__MMA(_RUN)) + c % FA__MMA(_RUN); }
FA__FN int FA__MMA(_col)(int thread, int c) { return thread % 4 * FA__MMA(_RUN) + FA__MMA(_col_offset)(c); }
#endif

#if defined(FA__PAIRED)
#include <fa/arch/sm80/mma_pairs.h>
#elif FA__IS_HALF
#include <fa/arch/sm80/mma_half.h>
#else
#include <fa/arch/sm80/mma_tf32.h>
#endif

#if FA_A == FA_FRAGMENT
FA__FN void FA__MMA(_mma)(FA__MMA(_acc) * acc, const FA__MMA(_a) * a, const void *b_tile, int thread) {
#else
FA__FN void FA__MMA(_mma)(FA__MMA(_acc) * acc, const void *a, const void *b_tile, int thread) {
#endif
    FA__MMA(_mma_steps)(acc, a, b_tile, thread, 0, FA__MMA(_STEPS));
}
#undef FA__STEP_BYTES
