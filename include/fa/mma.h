/**
 * @file mma.h
 * @brief Matrix products of tiles: C (FA_M x FA_N) += A (FA_M x FA_K) * B, accumulated in fp32.
 *
 * The result is spread over owners (the threads of FA_WARPS warps; on the CPU the one core): each holds
 * NAME_ROWS x NAME_COLS of its elements in a NAME_acc, element (r, c) at x[NAME_AT(r, c)], and NAME_row(thread, r),
 * NAME_col(thread, c) say which element of C that is. So softmax, masks and epilogues are written once for all
 * architectures. A comes from a tile (fa/tile.h) or from the fragments of an earlier product, B from a tile.
 *
 * @code{.c}
 * #include <fa/fa.h>
 *
 * #define FA_NAME  qk
 * #define FA_DTYPE FA_F32
 * #define FA_ARCH  FA_CPU
 * #define FA_M     64
 * #define FA_N     32
 * #define FA_K     128
 * #include <fa/mma.h>
 *
 * static float corner(const void *q_tile, const void *k_tile) { // tiles of 64 x 128 and 32 x 128
 *     qk_acc s;
 *     qk_zero(&s);
 *     qk_mma(&s, q_tile, k_tile, 0);
 *     return s.x[qk_AT(0, 0)];
 * }
 * @endcode
 *
 * Warpgroups of sm_90a (FA_ARCH 90) multiply asynchronously: start a product, do something else, wait.
 *
 * @code{.c}
 * #include <fa/fa.h>
 *
 * #if defined(__CUDACC__) // nvcc -arch=sm_90a
 * #define FA_NAME  s
 * #define FA_DTYPE FA_BF16
 * #define FA_ARCH  90
 * #define FA_M     64
 * #define FA_N     128
 * #define FA_K     64
 * #include <fa/mma.h>
 *
 * static __device__ void two(s_acc *first, s_acc *second, const void *q, const void *k0, const void *k1, int thread) {
 *     uint32_t a = s_a_place(q, thread); // tiles of 64 x 64, 128 x 64, 128 x 64
 *     s_fence();
 *     s_start(first, a, s_b_place(k0), 0);
 *     s_commit();
 *     s_start(second, a, s_b_place(k1), 0);
 *     s_commit();
 *     s_wait(first, 1); // all but one group are done: first may be read, while second is under way
 *     s_scale_rows(first, (const float[2]){2.0f, 3.0f});
 *     s_wait(second, 0);
 * }
 * #endif
 * @endcode
 *
 * | parameter   | required | default         | meaning |
 * |-------------|----------|-----------------|---------|
 * | FA_NAME     | yes      |                 | prefix of what is generated |
 * | FA_DTYPE    | yes      |                 | FA_F16, FA_BF16; FA_TF32: one tf32 product (attention makes halves of its own); FA_F32: fp32-accurate, three tf32 products |
 * | FA_M        | yes      |                 | rows of C; on GPUs a multiple of 16 * FA_WARPS; with FA_ARCH 90, 16 * FA_WARPS |
 * | FA_N        | yes      |                 | columns of C, a multiple of 8 (16 when it feeds another product, and with FA_ARCH 80, but for FA_OPERAND_BT of 4-byte types); with FA_ARCH 90, up to 256 |
 * | FA_K        | yes      |                 | length of the dot products, a multiple of 8 (on GPUs 16 with FA_FRAGMENT or FA_OPERAND_BT) |
 * | FA_A        | no       | FA_SHARED       | FA_SHARED: A is an FA_OPERAND_A tile; FA_FRAGMENT: A is a NAME_a, which NAME_pack() makes of an accumulator (on the CPU it refers to that: use it before the accumulator changes), and NAME_load_a() of a tile |
 * | FA_B        | no       | FA_OPERAND_B    | B's tile: FA_OPERAND_B (N x K) or FA_OPERAND_BT (K x N; on GPUs with FA_SHARED for FA_F16 and FA_BF16 only) |
 * | FA_WARPS    | no       | 4               | warps that share the product (GPU); with FA_ARCH 90 a multiple of 4 |
 * | FA_ARCH     | no       | by the compiler | FA_CPU, 80, or 90 (FA_F16 and FA_BF16) |
 * | FA_SUB      | no       |                 | second part of the prefix, inside another template's instance; FA_NAME, FA_DTYPE and FA_ARCH stay defined |
 *
 * Generates NAME_acc, NAME_ROWS, NAME_COLS, NAME_AT(), NAME_row(), NAME_col(); NAME_zero(), NAME_mma() (C += A B), NAME_product()
 * (C = A B), NAME_scale_rows(), NAME_normalize(); NAME_a and NAME_pack() (A from an accumulator; for 4-byte types of a product with FA_OPERAND_B); NAME_to_tile() (C into an
 * FA_OPERAND_A tile of FA_M x FA_N). For half types on GPUs NAME_load_a() (A from a tile into registers).
 *
 * With FA_ARCH 90 also the parts of NAME_mma(): NAME_fence(), before products whose registers (C, or A's) the threads have written
 * since the last wait; NAME_start(acc, a, b, accumulate), where a is a NAME_a or NAME_a_place() of a tile and b NAME_b_place() of
 * one; NAME_commit(), which closes a group; NAME_wait(acc, n), which returns when all but the latest n groups (n up to 2) are
 * done. Until then do not touch the registers of C and A, and do not write the tiles. NAME_store(acc, block, thread) writes C,
 * rounded, straight to memory; with fewer instructions NAME_round() and NAME_to_panel() write 64 columns of a warp's 16 rows to
 * where a tile of FA_TMA can send them from. The compiler serialises the products (warnings C7510 and on) where control flow
 * around them is not the same for the whole warp, or where an accumulator is defined under a condition. Each call is one of all
 * four warps of a warpgroup (PTX ISA, `.aligned`): not one in either arm of a branch that every warp decides for itself.
 *
 * All threads of the FA_WARPS warps call together, converged. NAME_mma() reads tiles that a barrier has made visible,
 * and is done with them when it returns. `thread` is the caller's index among the FA_WARPS * 32 threads.
 *
 * Sources: fragment layouts, PTX ISA "Matrix Multiply-Accumulate Operation Using mma Instruction" and "Asynchronous Warpgroup
 * Level Matrix Multiply-Accumulate Instructions"; splitting an fp32
 * operand into two tf32 ones, Ootomo and Yokota (arXiv 2203.03341).
 */
#include <fa/fa.h>

#include <fa/arch/begin.h>
#define FA__MMA(x) FA__CAT4(FA_NAME, FA_SUB, FA__SUFFIX, x)
#include <fa/arch/dtype.h>
#if !defined(FA_M)
#define FA_M undefined
#endif
#if FA_M + 0 < 16 || (FA_M + 0) % 16 != 0 || FA__IS_BARE(FA_M)
FA__REQUIRE(0, "FA_M, the rows of the product, is " FA__STR(FA_M) ": a multiple of 16 is needed, " FA__AS_A_NUMBER);
#undef FA_M
#define FA_M 64
#endif
#if !defined(FA_N)
#define FA_N undefined
#endif
#if FA_N + 0 < 8 || (FA_N + 0) % 8 != 0 || FA__IS_BARE(FA_N)
FA__REQUIRE(0, "FA_N, the columns of the product, is " FA__STR(FA_N) ": a multiple of 8 is needed, " FA__AS_A_NUMBER);
#undef FA_N
#define FA_N 16
#endif
#if !defined(FA_K)
#define FA_K undefined
#endif
#if FA_K + 0 < 8 || (FA_K + 0) % 8 != 0 || FA__IS_BARE(FA_K)
FA__REQUIRE(0, "FA_K, the length of the dot products, is " FA__STR(FA_K) ": a multiple of 8 is needed, " FA__AS_A_NUMBER);
#undef FA_K
#define FA_K 16
#endif
#if !defined(FA_A)
#define FA_A FA_SHARED
#elif FA_A + 0 != FA_SHARED && FA_A + 0 != FA_FRAGMENT
FA__REQUIRE(0, "FA_A is " FA__STR(FA_A) ": FA_SHARED or FA_FRAGMENT is needed");
#undef FA_A
#define FA_A FA_SHARED
#endif
#if !defined(FA_B)
#define FA_B FA_OPERAND_B
#elif FA_B + 0 != FA_OPERAND_B && FA_B + 0 != FA_OPERAND_BT
FA__REQUIRE(0, "FA_B is " FA__STR(FA_B) ": FA_OPERAND_B or FA_OPERAND_BT is needed");
#undef FA_B
#define FA_B FA_OPERAND_B
#endif

#include FA__LAYER(mma)

/* Where element (row, col) of an owner's part lies in its array. */
FA__FN int FA__MMA(_AT)(int row, int col) { return FA__AT(row, col, FA__MMA(_ROWS), FA__MMA(_COLS)); }

/* Sets an accumulator to zero. */
FA__FN void FA__MMA(_zero)(FA__MMA(_acc) * acc) {
    FA__UNROLL
    for (int i = 0; i < FA__MMA(_ROWS) * FA__MMA(_COLS); i++) acc->x[i] = 0.0f;
}

#if FA__ARCH != FA_CPU
/* C = A * B; the CPU has its own version, which saves reading C. */
#if FA_A == FA_FRAGMENT
FA__FN void FA__MMA(_product)(FA__MMA(_acc) * acc, const FA__MMA(_a) * a, const void *b_tile, int thread) {
#else
FA__FN void FA__MMA(_product)(FA__MMA(_acc) * acc, const void *a, const void *b_tile, int thread) {
#endif
    FA__MMA(_zero)(acc);
    FA__MMA(_mma)(acc, a, b_tile, thread);
}
#endif

/* Multiplies every row by its factor. */
FA__FN void FA__MMA(_scale_rows)(FA__MMA(_acc) * acc, const float *factor) {
    FA__UNROLL
    for (int c = 0; c < FA__MMA(_COLS); c++)
        FA__UNROLL
        for (int r = 0; r < FA__MMA(_ROWS); r++) acc->x[FA__MMA(_AT)(r, c)] *= factor[r];
}

/* Multiplies every row by 1 / its sum of weights; 0 stands for a row without weights, which becomes exactly 0. */
FA__FN void FA__MMA(_normalize)(FA__MMA(_acc) * acc, const float *inverse) {
    int empty = 0;
    FA__UNROLL
    for (int r = 0; r < FA__MMA(_ROWS); r++) empty |= inverse[r] == 0.0f;
    FA__MMA(_scale_rows)(acc, inverse);
    if (!FA__OP(any)(empty)) return;
    FA__UNROLL
    for (int c = 0; c < FA__MMA(_COLS); c++) /* 0 * NaN is NaN */
        FA__UNROLL
        for (int r = 0; r < FA__MMA(_ROWS); r++) {
            float *x = &acc->x[FA__MMA(_AT)(r, c)];
            *x = inverse[r] == 0.0f ? 0.0f : *x;
        }
}

#undef FA__ELEMENT
#undef FA__MMA
#undef FA_M
#undef FA_N
#undef FA_K
#undef FA_A
#undef FA_B
#include <fa/arch/end.h>
