/* mma_half.h: the part of sm80/mma.h for FA_F16 and FA_BF16, whose fragments ldmatrix loads. */
#if FA_DTYPE == FA_F16
#define FA__HALF(name) fa_sm80_##name##_f16
#else
#define FA__HALF(name) fa_sm80_##name##_bf16
#endif

/* A fragments: for each block of 16 rows and step of 16 in K, four registers. */
typedef struct FA__MMA(_a) {
    uint32_t x[FA__MMA(_BLOCKS) * (FA__MMA(_K) / 16) * 4];
} FA__MMA(_a);

/* A fragments from the accumulator of a product whose N is this one's K: an accumulator's layout is that of A. */
FA__FN void FA__MMA(_pack)(FA__MMA(_a) * a, const float *acc) {
    enum { FA__OWNED = FA__MMA(_K) / 4 };
#pragma unroll
    for (int m = 0; m < FA__MMA(_BLOCKS); m++)
#pragma unroll
        for (int k = 0; k < FA__MMA(_K) / 16; k++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float *from = acc + (2 * m + i % 2) * FA__OWNED + 4 * k + i / 2 * 2;
                a->x[(m * (FA__MMA(_K) / 16) + k) * 4 + i] = FA__HALF(pack)(from[0], from[1]);
            }
}

/* A fragments of a warp's rows from an FA_OPERAND_A tile, for products that use them again and again. */
FA__FN void FA__MMA(_load_a)(FA__MMA(_a) * a, const void *a_tile, int thread) {
    uint32_t from = FA__MMA(_a_address)(a_tile, thread);
#pragma unroll
    for (int m = 0; m < FA__MMA(_BLOCKS); m++)
#pragma unroll
        for (int k = 0; k < FA__MMA(_K) / 16; k++)
            fa_sm80_ldmatrix(a->x + (m * (FA__MMA(_K) / 16) + k) * 4, from + (uint32_t)(m * 16 * FA__MMA(_A_PITCH) + k * 32));
}

/* One step of 16 in K: loads B's fragments, two blocks of 8 columns at a time, and multiplies. */
FA__FN void FA__MMA(_step)(FA__MMA(_acc) * acc, const uint32_t *a, int a_stride, uint32_t b, int k) {
#pragma unroll
    for (int n = 0; n < FA__MMA(_N) / 16; n++) {
        uint32_t f[4];
        if (FA_B == FA_OPERAND_B) fa_sm80_ldmatrix(f, b + (uint32_t)(n * 16 * FA__MMA(_B_PITCH) + k * 32));
        else fa_sm80_ldmatrix_transposed(f, b + (uint32_t)(k * 16 * FA__MMA(_B_PITCH) + n * 32));
#pragma unroll
        for (int m = 0; m < FA__MMA(_BLOCKS); m++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float *upper = acc->x + 2 * m * FA__MMA(_COLS) + 4 * n + 2 * i, *lower = upper + FA__MMA(_COLS);
                FA__HALF(mma)(upper, upper + 1, lower, lower + 1, a + m * a_stride, f[2 * i], f[2 * i + 1]);
            }
    }
}

/* The steps of K from `first` up to `last` (NAME_STEPS in all): a schedule may do something else between them. */
enum { FA__MMA(_STEPS) = FA__MMA(_K) / 16 };
#if FA_A == FA_FRAGMENT
FA__FN void FA__MMA(_mma_steps)(FA__MMA(_acc) * acc, const FA__MMA(_a) * a, const void *b_tile, int thread, int first, int last) {
    uint32_t b = FA__MMA(_b_address)(b_tile, thread);
#pragma unroll
    for (int k = first; k < last; k++) FA__MMA(_step)(acc, a->x + 4 * k, FA__MMA(_K) / 4, b, k);
}
#else
FA__FN void FA__MMA(_mma_steps)(FA__MMA(_acc) * acc, const void *a_tile, const void *b_tile, int thread, int first, int last) {
    uint32_t a = FA__MMA(_a_address)(a_tile, thread), b = FA__MMA(_b_address)(b_tile, thread);
#pragma unroll
    for (int k = first; k < last; k++) {
        uint32_t f[FA__MMA(_BLOCKS) * 4];
#pragma unroll
        for (int m = 0; m < FA__MMA(_BLOCKS); m++)
            fa_sm80_ldmatrix(f + 4 * m, a + (uint32_t)(m * 16 * FA__MMA(_A_PITCH) + k * 32));
        FA__MMA(_step)(acc, f, 4, b, k);
    }
}
#endif

/* C += A B with a K of eight, in FA_BF16 whatever FA_DTYPE is. In memory B has a row of these eight, 16 bytes, for
 * each of its FA_N columns, and room for a multiple of 32 rows. Of A a thread has a word for each of its rows, with
 * columns thread % 4 * 2 and the next: NAME_load_eight() takes them from such rows of a warp's, of 16 bytes, with
 * room for 32. */
FA__FN void FA__MMA(_load_eight)(uint32_t *a, const void *rows, int thread) {
    fa_sm80_ldmatrix(a, fa_sm80_shared_address(rows) + (uint32_t)(thread % 32 * 16));
}
FA__FN void FA__MMA(_mma_eight)(FA__MMA(_acc) * acc, const uint32_t *a, const void *b, int thread) {
    uint32_t from = fa_sm80_shared_address(b) + (uint32_t)(thread % 32 * 16);
#pragma unroll
    for (int n = 0; n < FA__MMA(_N) / 8; n += 4) {
        uint32_t f[4];
        fa_sm80_ldmatrix(f, from + (uint32_t)(n * 8 * 16));
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int m = 0; m < FA__MMA(_BLOCKS); m++) {
                float *upper = acc->x + 2 * m * FA__MMA(_COLS) + 2 * (n + i), *lower = upper + FA__MMA(_COLS);
                if (n + i < FA__MMA(_N) / 8) fa_sm80_mma_eight(upper, upper + 1, lower, lower + 1, a[2 * m], a[2 * m + 1], f[i]);
            }
    }
}

/* Writes the accumulator, rounded, into an FA_OPERAND_A tile of FA_M x FA_N. */
FA__FN void FA__MMA(_to_tile)(const FA__MMA(_acc) * acc, void *tile, int thread) {
    enum { FA__LINE_BYTES = FA__SM80_PITCH(FA_N, 2) };
    unsigned char *at = (unsigned char *)tile + FA__MMA(_row)(thread, 0) * FA__LINE_BYTES + FA__MMA(_col)(thread, 0) * 2;
#pragma unroll
    for (int r = 0; r < FA__MMA(_ROWS); r++)
#pragma unroll
        for (int c = 0; c < FA__MMA(_COLS); c += 2) {
            const float *from = acc->x + r * FA__MMA(_COLS) + c;
            *(uint32_t *)(at + (r / 2 * 16 + r % 2 * 8) * FA__LINE_BYTES + FA__MMA(_col_offset)(c) * 2) = FA__HALF(pack)(from[0], from[1]);
        }
}
#undef FA__HALF
