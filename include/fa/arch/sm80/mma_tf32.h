/* mma_tf32.h: the part of sm80/mma.h for FA_TF32 (one tf32 product) and FA_F32 (three).
 *
 * FA_F32 splits x into big = tf32(x) and small = tf32(x - big), and adds small * big + big * small + big * big; what is
 * left out is 2^-22 of the product (Ootomo and Yokota, arXiv 2203.03341). The matrix unit rounds its sums towards zero,
 * which a long accumulation would turn into a bias: O therefore takes each tile's product from an accumulator of its own,
 * by an ordinary addition.
 *
 * The 4-byte elements of a K-major operand come through ldmatrix, which moves 8 x 4 of them as it does 8 x 8 halves. V is
 * read row by row: the lane that holds columns 2t and 2t + 1 of the weights, as the accumulator of S leaves them, takes
 * them as positions t and t + 4 of K, and so reads V's rows 2t and 2t + 1. It takes WIDTH neighbouring columns at once,
 * one for each of WIDTH blocks of 8; O's columns are permuted accordingly, and col() knows it. */
#define FA__SPLIT (FA_DTYPE == FA_F32)

enum { FA__MMA(_WIDTH) = FA_B == FA_OPERAND_B ? 1 : FA_N % 32 == 0 ? 4 : FA_N % 16 == 0 ? 2 : 1 };

FA__FN int FA__MMA(_col_offset)(int c) {
    enum { WIDTH = FA__MMA(_WIDTH) };
    int block = c / 2;
    return block / WIDTH * (8 * WIDTH) + block % WIDTH + c % 2 * WIDTH;
}
FA__FN int FA__MMA(_col)(int thread, int c) { return thread % 4 * (2 * FA__MMA(_WIDTH)) + FA__MMA(_col_offset)(c); }

/* n operands as tf32, and for FA_F32 their remainders. */
FA__FN void FA__MMA(_split)(uint32_t *big, uint32_t *small, const uint32_t *x, int n) {
#pragma unroll
    for (int i = 0; i < n; i++) {
        float value = __uint_as_float(x[i]);
        big[i] = fa_sm80_to_tf32(value);
        small[i] = FA__SPLIT ? fa_sm80_to_tf32(value - __uint_as_float(big[i])) : 0u;
    }
}

/* A fragments: for each block of 16 rows and step of 8 in K, four registers. */
typedef struct FA__MMA(_a) {
    uint32_t big[FA__MMA(_BLOCKS) * (FA__MMA(_K) / 8) * 4];
    uint32_t small[FA__MMA(_BLOCKS) * (FA__MMA(_K) / 8) * 4];
} FA__MMA(_a);

FA__FN void FA__MMA(_pack)(FA__MMA(_a) * a, const float *acc) {
    enum { COLS = FA__MMA(_K) / 4 };
#pragma unroll
    for (int m = 0; m < FA__MMA(_BLOCKS); m++)
#pragma unroll
        for (int k = 0; k < FA__MMA(_K) / 8; k++) {
            uint32_t x[4];
#pragma unroll
            for (int i = 0; i < 4; i++) x[i] = __float_as_uint(acc[(2 * m + i % 2) * COLS + 2 * k + i / 2]);
            int at = (m * (FA__MMA(_K) / 8) + k) * 4;
            FA__MMA(_split)(a->big + at, a->small + at, x, 4);
        }
}

/* A 16 x 8 block += one step of 8 in K, the small products first. c: column of the block in the fragment. */
FA__FN void FA__MMA(_block)(float *x, int cols, int m, int c, const uint32_t *a_big, const uint32_t *a_small,
                            const uint32_t *b_big, const uint32_t *b_small) {
    float *upper = x + 2 * m * cols + c, *lower = upper + cols;
    if (FA__SPLIT) {
        fa_sm80_mma_tf32(upper, upper + 1, lower, lower + 1, a_small, b_big[0], b_big[1]);
        fa_sm80_mma_tf32(upper, upper + 1, lower, lower + 1, a_big, b_small[0], b_small[1]);
    }
    fa_sm80_mma_tf32(upper, upper + 1, lower, lower + 1, a_big, b_big[0], b_big[1]);
}

/* acc += A * B, where B is N x K. */
FA__FN void FA__MMA(_step)(FA__MMA(_acc) * acc, const uint32_t *a_big, const uint32_t *a_small, int a_stride, uint32_t b, int k) {
#pragma unroll
    for (int n = 0; n < FA_N / 16; n++) {
        uint32_t f[4], big[4], small[4];
        fa_sm80_ldmatrix(f, b + (uint32_t)(n * 16 * FA__MMA(_B_PITCH) + k * 32));
        FA__MMA(_split)(big, small, f, 4);
#pragma unroll
        for (int m = 0; m < FA__MMA(_BLOCKS); m++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                FA__MMA(_block)(acc->x, FA__MMA(_COLS), m, 4 * n + 2 * i, a_big + m * a_stride, a_small + m * a_stride, big + 2 * i,
                                small + 2 * i);
    }
}

/* acc += A * B, where B is K x N: WIDTH blocks of columns at a time, over all of K. */
FA__FN void FA__MMA(_columns)(FA__MMA(_acc) * acc, const uint32_t *a_big, const uint32_t *a_small, const unsigned char *b, int group) {
    enum { WIDTH = FA__MMA(_WIDTH), STEPS = FA__MMA(_K) / 8, COLS = 2 * WIDTH, ROWS = FA__MMA(_ROWS) };
    float part[ROWS * COLS];
#pragma unroll
    for (int i = 0; i < ROWS * COLS; i++) part[i] = 0.0f;
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        uint32_t rows[2][WIDTH];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const unsigned char *from = b + (8 * k + i) * FA__MMA(_B_PITCH) + group * (8 * WIDTH * 4);
            fa_sm80_load_words(rows[i], from, WIDTH);
        }
#pragma unroll
        for (int w = 0; w < WIDTH; w++) {
            uint32_t x[2] = {rows[0][w], rows[1][w]}, big[2], small[2];
            FA__MMA(_split)(big, small, x, 2);
#pragma unroll
            for (int m = 0; m < FA__MMA(_BLOCKS); m++)
                FA__MMA(_block)(part, COLS, m, 2 * w, a_big + (m * STEPS + k) * 4, a_small + (m * STEPS + k) * 4, big, small);
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int c = 0; c < COLS; c++) acc->x[r * FA__MMA(_COLS) + group * COLS + c] += part[r * COLS + c];
}

#if FA_A == FA_FRAGMENT
FA__FN void FA__MMA(_mma)(FA__MMA(_acc) * acc, const FA__MMA(_a) * a, const void *b_tile, int thread) {
    enum { STEPS = FA__MMA(_K) / 8, PITCH = FA__MMA(_B_PITCH), WIDTH = FA__MMA(_WIDTH) };
    const unsigned char *b = (const unsigned char *)b_tile;
    int group_of_lane = thread % 32 / 4, in_group = thread % 4;
#if FA_B == FA_OPERAND_BT
    b += 2 * in_group * PITCH + group_of_lane * (WIDTH * 4);
#pragma unroll
    for (int group = 0; group < FA_N / (8 * WIDTH); group++) FA__MMA(_columns)(acc, a->big, a->small, b, group);
#else /* K's positions t and t + 4 are columns 2t and 2t + 1 here too */
    b += group_of_lane * PITCH + in_group * 8;
#pragma unroll
    for (int k = 0; k < STEPS; k++)
#pragma unroll
        for (int n = 0; n < FA_N / 8; n++) {
            uint32_t x[2], big[2], small[2];
            fa_sm80_load_words(x, b + n * 8 * PITCH + k * 32, 2);
            FA__MMA(_split)(big, small, x, 2);
#pragma unroll
            for (int m = 0; m < FA__MMA(_BLOCKS); m++)
                FA__MMA(_block)(acc->x, FA__MMA(_COLS), m, 2 * n, a->big + (m * STEPS + k) * 4, a->small + (m * STEPS + k) * 4, big, small);
        }
    (void)WIDTH;
#endif
}
#else
FA__FN void FA__MMA(_mma)(FA__MMA(_acc) * acc, const void *a_tile, const void *b_tile, int thread) {
    int lane = thread % 32, first_row = thread / 32 * (16 * FA__MMA(_BLOCKS));
    uint32_t a = fa_sm80_shared_address(a_tile) + (uint32_t)((first_row + lane % 16) * FA__MMA(_A_PITCH) + lane / 16 * 16);
    uint32_t b = fa_sm80_shared_address(b_tile) + (uint32_t)((lane % 8 + lane / 16 * 8) * FA__MMA(_B_PITCH) + lane / 8 % 2 * 16);
#pragma unroll
    for (int k = 0; k < FA__MMA(_K) / 8; k++) {
        uint32_t f[4], big[FA__MMA(_BLOCKS) * 4], small[FA__MMA(_BLOCKS) * 4];
#pragma unroll
        for (int m = 0; m < FA__MMA(_BLOCKS); m++) {
            fa_sm80_ldmatrix(f, a + (uint32_t)(m * 16 * FA__MMA(_A_PITCH) + k * 32));
            FA__MMA(_split)(big + 4 * m, small + 4 * m, f, 4);
        }
        FA__MMA(_step)(acc, big, small, 4, b, k);
    }
}
#endif

/* Writes the accumulator into an FA_OPERAND_A tile of FA_M x FA_N. */
FA__FN void FA__MMA(_to_tile)(const FA__MMA(_acc) * acc, void *tile, int thread) {
    enum { PITCH = FA__SM80_PITCH(FA_N, 4) };
    unsigned char *at = (unsigned char *)tile + FA__MMA(_row)(thread, 0) * PITCH + FA__MMA(_col)(thread, 0) * 4;
#pragma unroll
    for (int r = 0; r < FA__MMA(_ROWS); r++)
#pragma unroll
        for (int c = 0; c < FA__MMA(_COLS); c++)
            *(float *)(at + (r / 2 * 16 + r % 2 * 8) * PITCH + FA__MMA(_col_offset)(c) * 4) = acc->x[r * FA__MMA(_COLS) + c];
}
#undef FA__SPLIT
