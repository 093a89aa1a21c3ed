/* mma_pairs.h: the part of sm80/mma.h for FA_F32 and FA_TF32 in attention: products of tiles of pairs
 * (tile_pairs.h). For FA_F32 they are three products of halves, small * big + big * small + big * big, for FA_TF32
 * only the last: at twice the rate of tf32.
 *
 * What FA_F32 leaves out, small * small, is at most 2^-22 of the product and of either sign. The matrix unit rounds
 * its sums towards zero, which a long accumulation turns into a bias: so a sum of FA__CHAIN steps of 16 takes the
 * small products first, and leaves by an ordinary addition. With one product the operands' rounding is a thousand
 * times more than that: FA__CHAIN is only how many steps' fragments are loaded before they are multiplied.
 *
 * Sums are in units of the scales of the rows: NAME_unscale() makes numbers of the product of two tiles. NAME_pack()
 * takes the scales of V's rows into the weights, and says when the units of O's rows change. */
#define FA__SPLIT (FA_DTYPE == FA_F32)
#define FA__CHAIN (FA__SPLIT ? 2 : FA_A == FA_FRAGMENT ? FA__MMA(_K) / 16 : 1)

/* A thread's columns of O, as tile_pairs.h leaves V's. */
#if FA_B == FA_OPERAND_BT
FA__FN int FA__MMA(_col_offset)(int c) { return c / 2 * 4 + c % 2; }
FA__FN int FA__MMA(_col)(int thread, int c) {
    int pair = thread % 4;
    return (pair < 2 ? 2 * pair : FA__MMA(_N) / 2 + 2 * pair - 4) + FA__MMA(_col_offset)(c);
}
#endif

/* The scales of a tile lie behind its rows. */
FA__FN const float *FA__MMA(_scales)(const void *tile, int rows, int pitch) {
    return (const float *)((const unsigned char *)tile + rows * pitch);
}

/* sums, of which a row has `pitch`, += one product of 4 * cols columns. */
FA__FN void FA__MMA(_blocks)(float *sums, int pitch, int cols, const uint32_t *a, const uint32_t *b) {
#pragma unroll
    for (int n = 0; n < cols / 2; n++)
#pragma unroll
        for (int m = 0; m < FA__MMA(_BLOCKS); m++) {
            float *upper = sums + 2 * m * pitch + 2 * n, *lower = upper + pitch;
            fa_sm80_mma_f16(upper, upper + 1, lower, lower + 1, a + 4 * m, b[2 * n], b[2 * n + 1]);
        }
}

#if FA_A == FA_FRAGMENT
/* Weights: for each step of 16 in K and block of 16 rows, four registers; and a unit for each row, a power of two.
 * For FA_F32 it is the unit of these weights, and sums become numbers as they leave. Sums of FA_TF32 stay in C,
 * whose unit it is: FA__SM80_PAIR_LEAST as long as C is 0. */
typedef struct FA__MMA(_a) {
    uint32_t big[FA__MMA(_K) / 16 * FA__MMA(_BLOCKS) * 4], small[FA__MMA(_K) / 16 * FA__MMA(_BLOCKS) * 4];
    float unit[FA__MMA(_ROWS)];
} FA__MMA(_a);

/* Before the first product. */
FA__FN void FA__MMA(_begin)(FA__MMA(_a) * a) {
#pragma unroll
    for (int r = 0; r < FA__MMA(_ROWS); r++) a->unit[r] = FA__SM80_PAIR_LEAST;
}

/* From the accumulator of the product before, for a product with the tile b_tile, where C becomes alpha[] times what
 * it was. The unit is that of the largest of a row's weights times V's scales: a key that weighs nothing takes no
 * bits from the others, however large it is. Returns whether alpha[] has changed, since the unit has; the same for
 * the whole warp. */
FA__FN int FA__MMA(_pack)(FA__MMA(_a) * a, float *alpha, const float *acc, const void *b_tile, int thread) {
    enum { FA__COLS = FA__MMA(_K) / 4 };
    const float2 *scales = (const float2 *)(FA__MMA(_scales)(b_tile, FA_K, FA__MMA(_B_PITCH)) + thread % 4 * 2);
    float x[FA__MMA(_ROWS) * FA__COLS];
    int changed = 0;
#pragma unroll
    for (int c = 0; c < FA__COLS; c += 2) {
        const float2 scale = scales[2 * c];
#pragma unroll
        for (int r = 0; r < FA__MMA(_ROWS); r++) {
            int at = r * FA__COLS + c;
            x[at] = fa_sm80_mul(acc[at], scale.x), x[at + 1] = fa_sm80_mul(acc[at + 1], scale.y);
        }
    }
#pragma unroll
    for (int r = 0; r < FA__MMA(_ROWS); r++) {
        uint32_t bits = 0; /* weights are not negative: their bits have their order. If one is NaN, so are all of the row's results */
#pragma unroll
        for (int c = 0; c < FA__COLS; c++) bits = fa_sm80_larger(fa__bits(x[r * FA__COLS + c]), bits);
        float unit = fa_sm80_pair_unit(fa_sm80_row_size(fa_sm80_size(fa__from_bits(bits)), 4)), up;
        if (FA__SPLIT) up = fa_sm80_pair_inverse(unit);
        else { /* at least what C needs, which may have become less */
            const float left = fa_sm80_mul(a->unit[r], alpha[r]);
            unit = fa__maxf(unit, fa__from_bits((fa__bits(left) + 0x007FFFFFu) & 0x7F800000u));
            up = fa_sm80_pair_inverse(unit);
            changed |= left != unit;
            alpha[r] = fa_sm80_mul(left, up);
        }
        a->unit[r] = unit;
#pragma unroll
        for (int c = 0; c < FA__COLS; c += 2) {
            int at = (c / 4 * FA__MMA(_BLOCKS) + r / 2) * 4 + c / 2 % 2 * 2 + r % 2;
            fa_sm80_pair(&a->big[at], &a->small[at], fa_sm80_mul(x[r * FA__COLS + c], up), fa_sm80_mul(x[r * FA__COLS + c + 1], up), FA__SPLIT);
        }
    }
    return !FA__SPLIT && FA__OP(any)(changed);
}

/* A step is a group of WIDTH blocks of 16 columns, over all of K: four sums of 16 x 8 at a time hide the unit's
 * latency. */
enum { FA__MMA(_WIDTH) = FA__MMA(_BLOCKS) == 1 && FA__MMA(_N) % 32 == 0 ? 2 : 1, FA__MMA(_STEPS) = FA__MMA(_N) / (16 * FA__MMA(_WIDTH)) };
FA__FN void FA__MMA(_mma_steps)(FA__MMA(_acc) * acc, const FA__MMA(_a) * a, const void *b_tile, int thread, int first, int last) {
    enum { FA__WIDTH = FA__MMA(_WIDTH), FA__COLS = 4 * FA__WIDTH, FA__ACROSS = FA__SPLIT ? FA__COLS : FA__MMA(_COLS), FA__ALL = FA__MMA(_K) / 16 };
    enum { FA__A_STEP = 4 * FA__MMA(_BLOCKS) };
    int lane = thread % 32;
    uint32_t b = fa_sm80_shared_address(b_tile) + (uint32_t)((lane % 8 + lane / 8 % 2 * 8) * FA__MMA(_B_PITCH) + lane / 16 * 16);
#pragma unroll
    for (int step = first; step < last; step++)
#pragma unroll
        for (int chain = 0; chain < FA__ALL; chain += FA__CHAIN) {
            float apart[FA__MMA(_ROWS) * FA__COLS] = {0.0f}, *sums = FA__SPLIT ? apart : acc->x + step * FA__COLS;
            uint32_t big[FA__CHAIN][4 * FA__WIDTH], small[4 * FA__WIDTH];
#pragma unroll
            for (int k = chain; k < chain + FA__CHAIN && k < FA__ALL; k++) {
#pragma unroll
                for (int w = 0; w < FA__WIDTH; w++) {
                    uint32_t at = b + (uint32_t)(k * 16 * FA__MMA(_B_PITCH) + (step * FA__WIDTH + w) * 32);
                    fa_sm80_ldmatrix_transposed(big[k - chain] + 4 * w, at);
                    if (FA__SPLIT) fa_sm80_ldmatrix_transposed(small + 4 * w, at + FA__MMA(_N) * 2);
                }
                if (!FA__SPLIT) continue;
                FA__MMA(_blocks)(sums, FA__ACROSS, FA__COLS, a->small + k * FA__A_STEP, big[k - chain]);
                FA__MMA(_blocks)(sums, FA__ACROSS, FA__COLS, a->big + k * FA__A_STEP, small);
            }
#pragma unroll
            for (int k = chain; k < chain + FA__CHAIN && k < FA__ALL; k++)
                FA__MMA(_blocks)(sums, FA__ACROSS, FA__COLS, a->big + k * FA__A_STEP, big[k - chain]);
#pragma unroll
            for (int r = 0; FA__SPLIT && r < FA__MMA(_ROWS); r++)
#pragma unroll
                for (int c = 0; c < FA__COLS; c++) {
                    float *x = acc->x + r * FA__MMA(_COLS) + step * FA__COLS + c;
                    *x = FA__OP(fma)(sums[r * FA__COLS + c], a->unit[r], *x);
                }
        }
}

#else
/* A step is FA__CHAIN steps of 16 in K (what is left, in the last), for all columns. */
enum { FA__MMA(_STEPS) = (FA__MMA(_K) / 16 + FA__CHAIN - 1) / FA__CHAIN };
FA__FN void FA__MMA(_mma_steps)(FA__MMA(_acc) * acc, const void *a_tile, const void *b_tile, int thread, int first, int last) {
    enum { FA__COLS = FA__MMA(_COLS), FA__ALL = FA__MMA(_K) / 16, FA__SMALL = FA__MMA(_K) * 2 /* bytes from big to small */ };
    int lane = thread % 32, first_row = thread / 32 * (16 * FA__MMA(_BLOCKS));
    uint32_t a = fa_sm80_shared_address(a_tile) + (uint32_t)((first_row + lane % 16) * FA__MMA(_A_PITCH) + lane / 16 * 16);
    uint32_t b = fa_sm80_shared_address(b_tile) + (uint32_t)((lane % 8 + lane / 16 * 8) * FA__MMA(_B_PITCH) + lane / 8 % 2 * 16);
#pragma unroll
    for (int step = first; step < last; step++) {
        float apart[FA__MMA(_ROWS) * FA__COLS] = {0.0f}, *sums = FA__SPLIT ? apart : acc->x;
        uint32_t a_big[FA__CHAIN][4 * FA__MMA(_BLOCKS)], a_small[4 * FA__MMA(_BLOCKS)];
        uint32_t b_big[FA__CHAIN][FA__COLS], b_small[FA__COLS];
        int chain = step * FA__CHAIN;
#pragma unroll
        for (int k = chain; k < chain + FA__CHAIN && k < FA__ALL; k++) {
#pragma unroll
            for (int m = 0; m < FA__MMA(_BLOCKS); m++) {
                uint32_t at = a + (uint32_t)(m * 16 * FA__MMA(_A_PITCH) + k * 32);
                fa_sm80_ldmatrix(a_big[k - chain] + 4 * m, at);
                if (FA__SPLIT) fa_sm80_ldmatrix(a_small + 4 * m, at + FA__SMALL);
            }
#pragma unroll
            for (int n = 0; n < FA_N / 16; n++) {
                uint32_t at = b + (uint32_t)(n * 16 * FA__MMA(_B_PITCH) + k * 32);
                fa_sm80_ldmatrix(b_big[k - chain] + 4 * n, at);
                if (FA__SPLIT) fa_sm80_ldmatrix(b_small + 4 * n, at + FA__SMALL);
            }
            if (!FA__SPLIT) continue;
            FA__MMA(_blocks)(sums, FA__COLS, FA__COLS, a_small, b_big[k - chain]);
            FA__MMA(_blocks)(sums, FA__COLS, FA__COLS, a_big[k - chain], b_small);
        }
#pragma unroll
        for (int k = chain; k < chain + FA__CHAIN && k < FA__ALL; k++)
            FA__MMA(_blocks)(sums, FA__COLS, FA__COLS, a_big[k - chain], b_big[k - chain]);
#pragma unroll
        for (int i = 0; FA__SPLIT && i < FA__MMA(_ROWS) * FA__COLS; i++)
            acc->x[i] += sums[i];
    }
}

/* Makes numbers of sums. The two scales are multiplied first: one may be huge and the other tiny. */
FA__FN void FA__MMA(_unscale)(FA__MMA(_acc) * acc, const void *a_tile, const void *b_tile, int thread) {
    const float *rows = FA__MMA(_scales)(a_tile, FA_M, FA__MMA(_A_PITCH));
    const float2 *cols = (const float2 *)(FA__MMA(_scales)(b_tile, FA_N, FA__MMA(_B_PITCH)) + thread % 4 * 2); /* by places, whatever rows they have */
    float row[FA__MMA(_ROWS)];
#pragma unroll
    for (int r = 0; r < FA__MMA(_ROWS); r++) row[r] = rows[FA__MMA(_row)(thread, r)];
#pragma unroll
    for (int c = 0; c < FA__MMA(_COLS); c += 2) {
        float2 col = cols[c / 2 * 4];
#pragma unroll
        for (int r = 0; r < FA__MMA(_ROWS); r++) {
            float *x = acc->x + r * FA__MMA(_COLS) + c;
            x[0] = fa_sm80_mul(x[0], fa_sm80_mul(row[r], col.x)), x[1] = fa_sm80_mul(x[1], fa_sm80_mul(row[r], col.y));
        }
    }
}
#endif

/* Writes the accumulator into an FA_OPERAND_A tile of FA_M x FA_N floats. */
FA__FN void FA__MMA(_to_tile)(const FA__MMA(_acc) * acc, void *tile, int thread) {
    enum { FA__LINE_BYTES = FA__SM80_PITCH(FA_N, 4) };
    int col = FA__MMA(_col)(thread, 0);
    unsigned char *at = (unsigned char *)tile + FA__MMA(_row)(thread, 0) * FA__LINE_BYTES + col * 4;
#pragma unroll
    for (int r = 0; r < FA__MMA(_ROWS); r++)
#pragma unroll
        for (int c = 0; c < FA__MMA(_COLS); c += 2) {
            const float *from = acc->x + r * FA__MMA(_COLS) + c;
            if (FA__MMA(_N) == FA_N || col + FA__MMA(_col_offset)(c) < FA_N)
                *(float2 *)(at + (r / 2 * 16 + r % 2 * 8) * FA__LINE_BYTES + FA__MMA(_col_offset)(c) * 4) = make_float2(from[0], from[1]);
        }
}
#undef FA__SPLIT
#undef FA__CHAIN
