/* tile_amx.h: the part of cpu/tile.h for the tiles of FA_BF16 that attention multiplies by AMX (amx.h), as they are in memory but for
 * their order.
 *
 * Products are computed transposed, C^T = B^T A^T, so that results lie column by column as those of the other instruction sets
 * (mma_amx.h). What the unit takes as its right operand, here A, consists of pairs along the dot products; its left one, of rows along
 * them. Dot products are padded to a multiple of 32 with zeros.
 *
 *   FA_OPERAND_A    word k / 2 * FA_ROWS + row: elements k and k + 1 of a row
 *   FA_OPERAND_B    row by row
 *   FA_OPERAND_BT   column by column: its rows, padded, are what the dot products are over; columns padded to a multiple of 16 */
enum {
    FA__TILE(_DEPTH) = ((FA_OPERAND == FA_OPERAND_BT ? FA_ROWS : FA_COLS) + 31) / 32 * 32,
    FA__TILE(_PAIRS) = FA__TILE(_DEPTH) / 2,
    FA__TILE(_LINES) = FA_OPERAND == FA_OPERAND_BT ? (FA_COLS + 15) / 16 * 16 : FA_ROWS,
};

typedef struct FA__TILE(_tile) {
    uint32_t x[FA__TILE(_PAIRS) * FA__TILE(_LINES)] __attribute__((__aligned__(64)));
} FA__TILE(_tile);

/* A row of the source, `bytes` of them, and zeros up to `most`, a multiple of 32. (Of memcpy() gcc makes "rep movs",
 * which takes long to start.) */
FA__FN void FA__TILE(__fetch)(void *to, const void *from, int bytes, const int most) {
    if (bytes == most)
        for (int i = 0; i < most; i += 32) *(fa_cpu_any_1 *)((char *)to + i) = *(const fa_cpu_any_1 *)((const char *)from + i);
    else {
        if (bytes > 0) memcpy(to, from, (size_t)bytes);
        memset((char *)to + bytes, 0, (size_t)(most - bytes));
    }
}

#if FA_OPERAND != FA_OPERAND_B
/* to[j * to_stride + i] = from[i * from_stride + j] for 16 i and n j, a multiple of 4. */
FA__FN void FA__TILE(__turn)(uint32_t *to, int to_stride, const uint32_t *from, int from_stride, int n) {
    for (int j = 0; j < n; j += 4) {
        FA__CPU_OP(vec) column[4];
        FA__CPU_OP(columns)(column, (const float *)(const void *)(from + j), from_stride);
        for (int i = 0; i < 4; i++) *(FA__CPU_OP(any) *)(void *)(to + (j + i) * to_stride) = column[i];
    }
}
#endif

FA__FN void FA__TILE(_load)(FA__TILE(_tile) * tile, FA__TILE(_source) source, int thread) {
    const int bytes = FA__TILE(_cols)(source) * (int)sizeof(FA__ELEMENT);
    (void)thread;
#if FA_OPERAND == FA_OPERAND_BT
    enum { FA__LINES = FA__TILE(_LINES) };
    fa_bf16 two[2][FA__LINES] __attribute__((__aligned__(64)));
    uint32_t words[16 * FA__LINES] __attribute__((__aligned__(64)));
    for (int pair = 0; pair < FA__TILE(_PAIRS); pair++) {
        for (int i = 0; i < 2; i++) {
            const int row = 2 * pair + i;
            const void *from = row < FA_ROWS ? FA__TILE(_row)(source, row) : NULL;
            FA__TILE(__fetch)(two[i], from, from ? bytes : 0, (int)sizeof two[i]);
        }
        for (int col = 0; col < FA__LINES; col++) words[pair % 16 * FA__LINES + col] = (uint32_t)two[0][col] | (uint32_t)two[1][col] << 16;
        if (pair % 16 == 15) FA__TILE(__turn)(tile->x + pair - 15, FA__TILE(_PAIRS), words, FA__LINES, FA__LINES);
    }
#else
    enum { FA__PAIRS_OF_ROW = FA__TILE(_PAIRS) };
#if FA_OPERAND == FA_OPERAND_A
    uint32_t rows[16 * FA__PAIRS_OF_ROW] __attribute__((__aligned__(64)));
#endif
    for (int row = 0; row < FA_ROWS; row++) {
        const void *from = FA__TILE(_row)(source, row);
#if FA_OPERAND == FA_OPERAND_A
        uint32_t *to = rows + row % 16 * FA__PAIRS_OF_ROW;
#else
        uint32_t *to = tile->x + row * FA__PAIRS_OF_ROW;
#endif
        FA__TILE(__fetch)(to, from, from ? bytes : 0, FA__PAIRS_OF_ROW * (int)sizeof *to);
#if FA_OPERAND == FA_OPERAND_A
        if (row % 16 == 15) FA__TILE(__turn)(tile->x + row - 15, FA_ROWS, rows, FA__PAIRS_OF_ROW, FA__PAIRS_OF_ROW);
#endif
    }
#endif
}

/* Changes the sign of every element. */
FA__FN void FA__TILE(_negate)(FA__TILE(_tile) * tile, int thread) {
    (void)thread;
    for (int i = 0; i < (int)(sizeof tile->x / sizeof *tile->x); i++) tile->x[i] ^= 0x80008000u;
}
