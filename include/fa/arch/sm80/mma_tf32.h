/* mma_tf32.h: the part of sm80/mma.h for FA_TF32 (one tf32 product) and FA_F32 (three).
 *
 * FA_F32 splits x into big, x rounded to the 11 significant bits of tf32, and small = x - big, and adds big * big +
 * big * small + small * big; what is left out is 2^-22 of the product and of either sign (Ootomo and Yokota, arXiv
 * 2203.03341). The matrix unit rounds its sums towards zero, which a long accumulation turns into a bias: so the
 * small products have accumulators of their own, and the big ones leave theirs by an ordinary addition after every
 * FA__CHAIN steps.
 *
 * The 4-byte elements of a K-major operand come through ldmatrix, which moves 8 x 4 of them as it does 8 x 8 halves.
 * V is read row by row: the lane that holds columns 2t and 2t + 1 of the weights, as the accumulator of S leaves
 * them, takes them as positions t and t + 4 of K, and so reads V's rows 2t and 2t + 1. It takes WIDTH neighbouring
 * columns at once, one for each of WIDTH blocks of 8; O's columns are permuted accordingly, and col() knows it. */
#define FA__CHAIN 4
#define FA__SPLIT (FA_DTYPE == FA_F32)

enum { FA__MMA(_WIDTH) = FA_B == FA_OPERAND_B ? 1 : FA_N % 32 == 0 ? 4 : FA_N % 16 == 0 ? 2 : 1 };

FA__FN int FA__MMA(_col_offset)(int c) {
    enum { FA__BLOCKS_WIDE = FA__MMA(_WIDTH) };
    int block = c / 2;
    return block / FA__BLOCKS_WIDE * (8 * FA__BLOCKS_WIDE) + block % FA__BLOCKS_WIDE + c % 2 * FA__BLOCKS_WIDE;
}
FA__FN int FA__MMA(_col)(int thread, int c) { return thread % 4 * (2 * FA__MMA(_WIDTH)) + FA__MMA(_col_offset)(c); }

/* n operands as tf32, to nearest, and for FA_F32 their remainders: three instructions, where cvt.rna.tf32 alone
 * takes four on sm_90. A carry out of a NaN's bits may lose it from `big`; the remainder is then still NaN. (That of
 * an infinity is NaN too.) */
FA__FN void FA__MMA(_split)(uint32_t *big, uint32_t *small, const uint32_t *x, int n) {
#pragma unroll
    for (int i = 0; i < n; i++) {
        big[i] = (x[i] + 0x1000u) & 0xFFFFE000u;
        small[i] = FA__SPLIT ? fa__bits(fa_sm80_sub(fa__from_bits(x[i]), fa__from_bits(big[i]))) : 0u;
        if (!FA__SPLIT) big[i] = (x[i] & 0x7FFFFFFFu) > 0x7F800000u ? x[i] : big[i];
    }
}

/* A fragments: for each block of 16 rows and step of 8 in K, four registers. */
typedef struct FA__MMA(_a) {
    uint32_t big[FA__MMA(_BLOCKS) * (FA__MMA(_K) / 8) * 4];
    uint32_t small[FA__MMA(_BLOCKS) * (FA__MMA(_K) / 8) * 4];
} FA__MMA(_a);

FA__FN void FA__MMA(_pack)(FA__MMA(_a) * a, const float *acc) {
    enum { FA__OWNED = FA__MMA(_K) / 4 };
#pragma unroll
    for (int m = 0; m < FA__MMA(_BLOCKS); m++)
#pragma unroll
        for (int k = 0; k < FA__MMA(_K) / 8; k++) {
            uint32_t x[4];
#pragma unroll
            for (int i = 0; i < 4; i++) x[i] = fa__bits(acc[(2 * m + i % 2) * FA__OWNED + 2 * k + i / 2]);
            int at = (m * (FA__MMA(_K) / 8) + k) * 4;
            FA__MMA(_split)(a->big + at, a->small + at, x, 4);
        }
}

/* Partial sums of a part of C, as many columns as its user says: those of the big and those of the small products. */
typedef struct FA__MMA(_part) {
    float big[FA__MMA(_ROWS) * FA__MMA(_COLS)], small[FA__MMA(_ROWS) * FA__MMA(_COLS)];
} FA__MMA(_part);

/* One step of K for the 16 x 8 block at row block m and column c of `cols`. A sum that does not continue starts at
 * 0. */
FA__FN void FA__MMA(_block)(float *big_sums, float *small_sums, int cols, int m, int c, const uint32_t *a_big, const uint32_t *a_small,
                            const uint32_t *b_big, const uint32_t *b_small, int continue_big, int continue_small) {
    int at = 2 * m * cols + c;
    if (FA__SPLIT) {
        fa_sm80_mma_tf32(small_sums + at, cols, a_small, b_big, continue_small);
        fa_sm80_mma_tf32(small_sums + at, cols, a_big, b_small, 1);
    }
    fa_sm80_mma_tf32(big_sums + at, cols, a_big, b_big, continue_big);
}

/* acc, from column `first` of `all`, += sums of `cols` columns. */
FA__FN void FA__MMA(_collect)(float *acc, int all, int first, const float *sums, int cols) {
#pragma unroll
    for (int r = 0; r < FA__MMA(_ROWS); r++)
#pragma unroll
        for (int c = 0; c < cols; c++) acc[r * all + first + c] += sums[r * cols + c];
}

/* acc, from column `first` of `all`, += the sums of a part of `cols` columns. */
FA__FN void FA__MMA(_collect_part)(float *acc, int all, int first, const FA__MMA(_part) * part, int cols) {
    if (FA__SPLIT) FA__MMA(_collect)(acc, all, first, part->small, cols);
    FA__MMA(_collect)(acc, all, first, part->big, cols);
}

#if FA_A == FA_FRAGMENT
/* A step is a group of WIDTH blocks of columns, over all of K. */
enum { FA__MMA(_STEPS) = FA_N / (8 * FA__MMA(_WIDTH)) };
FA__FN void FA__MMA(_mma_steps)(FA__MMA(_acc) * acc, const FA__MMA(_a) * a, const void *b_tile, int thread, int first, int last) {
    enum { FA__STEPS = FA__MMA(_K) / 8, FA__PITCH = FA__MMA(_B_PITCH), FA__WIDTH = FA__MMA(_WIDTH), FA__COLS = 2 * FA__WIDTH };
    uint32_t b = fa_sm80_shared_address(b_tile);
    int row = thread % 32 / 4, pair = thread % 4; /* K's positions t and t + 4 are columns 2t and 2t + 1 of A */
    b += (uint32_t)(FA_B == FA_OPERAND_BT ? 2 * pair * FA__PITCH + row * (FA__WIDTH * 4) : row * FA__PITCH + pair * 8);
#pragma unroll
    for (int group = first; group < last; group++) {
        FA__MMA(_part) part;
#pragma unroll
        for (int k = 0; k < FA__STEPS; k++) {
            uint32_t x[2 * FA__WIDTH], big[2], small[2]; /* two rows of WIDTH columns */
            if (FA_B == FA_OPERAND_BT) {
                fa_sm80_load_words(x, b + (uint32_t)(8 * k * FA__PITCH + group * (8 * FA__WIDTH * 4)), FA__WIDTH);
                fa_sm80_load_words(x + FA__WIDTH, b + (uint32_t)((8 * k + 1) * FA__PITCH + group * (8 * FA__WIDTH * 4)), FA__WIDTH);
            } else fa_sm80_load_words(x, b + (uint32_t)(group * 8 * FA__PITCH + k * 32), 2);
#pragma unroll
            for (int w = 0; w < FA__WIDTH; w++) {
                uint32_t of_block[2] = {x[w], x[FA__WIDTH + w]};
                FA__MMA(_split)(big, small, of_block, 2);
#pragma unroll
                for (int m = 0; m < FA__MMA(_BLOCKS); m++) {
                    int at = (m * FA__STEPS + k) * 4;
                    FA__MMA(_block)(part.big, part.small, FA__COLS, m, 2 * w, a->big + at, a->small + at, big, small, k % FA__CHAIN > 0, k > 0);
                }
            }
            if (k % FA__CHAIN == FA__CHAIN - 1 && k != FA__STEPS - 1)
                FA__MMA(_collect)(acc->x, FA__MMA(_COLS), group * FA__COLS, part.big, FA__COLS);
        }
        FA__MMA(_collect_part)(acc->x, FA__MMA(_COLS), group * FA__COLS, &part, FA__COLS);
    }
}
#else
/* A step is FA__CHAIN steps of 8 in K (what is left, in the last), for all columns. */
enum { FA__MMA(_STEPS) = (FA__MMA(_K) / 8 + FA__CHAIN - 1) / FA__CHAIN };
FA__FN void FA__MMA(_mma_steps)(FA__MMA(_acc) * acc, const void *a_tile, const void *b_tile, int thread, int first, int last) {
    enum { FA__COLS = FA__MMA(_COLS) };
    uint32_t a = FA__MMA(_a_address)(a_tile, thread), b = FA__MMA(_b_address)(b_tile, thread);
#pragma unroll
    for (int step = first; step < last; step++) {
        FA__MMA(_part) part;
#pragma unroll
        for (int k = step * FA__CHAIN; k < (step + 1) * FA__CHAIN && k < FA__MMA(_K) / 8; k++) {
            uint32_t f[4], big[FA__MMA(_BLOCKS) * 4], small[FA__MMA(_BLOCKS) * 4], b_big[4], b_small[4];
            int more = k > step * FA__CHAIN;
#pragma unroll
            for (int m = 0; m < FA__MMA(_BLOCKS); m++) {
                fa_sm80_ldmatrix(f, a + (uint32_t)(m * 16 * FA__MMA(_A_PITCH) + k * 32));
                FA__MMA(_split)(big + 4 * m, small + 4 * m, f, 4);
            }
#pragma unroll
            for (int n = 0; n < FA_N / 16; n++) {
                fa_sm80_ldmatrix(f, b + (uint32_t)(n * 16 * FA__MMA(_B_PITCH) + k * 32));
                FA__MMA(_split)(b_big, b_small, f, 4);
#pragma unroll
                for (int i = 0; i < 2; i++)
#pragma unroll
                    for (int m = 0; m < FA__MMA(_BLOCKS); m++)
                        FA__MMA(_block)(part.big, part.small, FA__COLS, m, 4 * n + 2 * i, big + 4 * m, small + 4 * m, b_big + 2 * i, b_small + 2 * i, more, more);
            }
        }
        FA__MMA(_collect_part)(acc->x, FA__COLS, 0, &part, FA__COLS);
    }
}
#endif

/* Writes the accumulator into an FA_OPERAND_A tile of FA_M x FA_N. */
FA__FN void FA__MMA(_to_tile)(const FA__MMA(_acc) * acc, void *tile, int thread) {
    enum { FA__LINE_BYTES = FA__SM80_PITCH(FA_N, 4) };
    unsigned char *at = (unsigned char *)tile + FA__MMA(_row)(thread, 0) * FA__LINE_BYTES + FA__MMA(_col)(thread, 0) * 4;
#pragma unroll
    for (int r = 0; r < FA__MMA(_ROWS); r++)
#pragma unroll
        for (int c = 0; c < FA__MMA(_COLS); c++)
            *(float *)(at + (r / 2 * 16 + r % 2 * 8) * FA__LINE_BYTES + FA__MMA(_col_offset)(c) * 4) = acc->x[r * FA__MMA(_COLS) + c];
}
#undef FA__SPLIT
#undef FA__CHAIN
