/* cpu/tile.h: tiles of a core. An A operand is stored column by column, so that vectors run over its rows; a B operand
 * row by row. Half-precision elements become floats on the way in: once a tile instead of once a product. */
#define FA__TRANSPOSED (FA_OPERAND == FA_OPERAND_A)

typedef struct FA__TILE(_tile) {
    float x[FA_ROWS * FA_COLS] __attribute__((aligned(64)));
} FA__TILE(_tile);

/* The address of element (row, col). */
FA__FN float *FA__TILE(_at)(FA__TILE(_tile) * tile, int row, int col) {
    return &tile->x[FA__TRANSPOSED ? col * FA_ROWS + row : row * FA_COLS + col];
}

FA__FN void FA__TILE(_load)(FA__TILE(_tile) * tile, FA__TILE(_source) source, int thread) {
    (void)thread;
    int cols = FA__TILE(_cols)(source);
    for (int row = 0; row < FA_ROWS; row++) {
        const FA__ELEMENT *from = (const FA__ELEMENT *)FA__TILE(_row)(source, row);
        for (int col = 0; col < FA_COLS; col++)
            *FA__TILE(_at)(tile, row, col) = from && col < cols ? fa_load_element(from, col, FA_DTYPE) : 0.0f;
    }
}

FA__FN void FA__TILE(_store)(FA__TILE(_tile) * tile, fa_block to, int thread) {
    (void)thread;
    for (int row = 0; row < FA_ROWS && to.row + row < to.rows; row++) {
        FA__ELEMENT *at = (FA__ELEMENT *)(uintptr_t)to.data + (to.row + row) * to.stride_row;
        for (int col = 0; col < FA_COLS && col < to.cols; col++)
            fa_store_element(at, col, FA_DTYPE, *FA__TILE(_at)(tile, row, col));
    }
}
#undef FA__TRANSPOSED
