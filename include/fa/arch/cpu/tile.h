/* cpu/tile.h: tiles of a core. An A operand is stored column by column, so that vectors run over its rows; a B operand
 * row by row. Half-precision elements become floats on the way in: once a tile instead of once a product. */
#define FA__TRANSPOSED (FA_OPERAND == FA_OPERAND_A)

/* Eight elements to floats. */
FA__FN void FA__TILE(__widen8)(float *to, const FA__ELEMENT *from) {
#if FA_DTYPE == FA_F16
    FA__CPU_OP(widen)(to, from);
#else
    for (int i = 0; i < 8; i++) to[i] = fa_load_element(from, i, FA_DTYPE);
#endif
}

#if defined(FA__PAIRED)
#include <fa/arch/cpu/tile_amx.h>
#else
typedef struct FA__TILE(_tile) {
    float x[FA_ROWS * FA_COLS] __attribute__((__aligned__(64)));
} FA__TILE(_tile);

/* The address of element (row, col). */
FA__FN float *FA__TILE(_at)(FA__TILE(_tile) * tile, int row, int col) {
    return &tile->x[FA__TRANSPOSED ? col * FA_ROWS + row : row * FA_COLS + col];
}

/* A row to floats, `cols` of them from memory and zeros after them. */
FA__FN void FA__TILE(__widen)(float *to, const FA__ELEMENT *from, int cols) {
    const int eights = FA_DTYPE == FA_F16 ? cols / 8 * 8 : 0;
    for (int col = 0; col < eights; col += 8) FA__TILE(__widen8)(to + col, from + col);
    for (int col = eights; col < cols; col++) to[col] = fa_load_element(from, col, FA_DTYPE);
    for (int col = cols; col < FA_COLS; col++) to[col] = 0.0f;
}

FA__FN void FA__TILE(__narrow)(FA__ELEMENT *to, const float *from, int cols) {
    const int eights = FA_DTYPE == FA_F16 ? cols / 8 * 8 : 0;
#if FA_DTYPE == FA_F16
    for (int col = 0; col < eights; col += 8) FA__CPU_OP(narrow)(to + col, from + col);
#endif
    for (int col = eights; col < cols; col++) fa_store_element(to, col, FA_DTYPE, from[col]);
}

#if FA_OPERAND == FA_OPERAND_A
/* Rows that are transposed together: 16 fill whole cache lines of the columns. */
enum { FA__TILE(_TOGETHER) = FA_ROWS % 16 == 0 ? 16 : 1 };

/* Copies NAME_TOGETHER rows of FA_COLS elements between an array of rows and the tile, in which they begin at x. */
FA__FN void FA__TILE(__transpose)(float *x, float *rows, int to_tile) {
    enum { FA__TOGETHER = FA__TILE(_TOGETHER), FA__STRIDE = FA__TOGETHER == 16 ? 4 : 1, FA__FLOATS = FA__CPU_LANES(FA__ISA) };
    for (int col = 0; col < FA_COLS; col += FA__STRIDE)
        for (int row = 0; row < FA__TOGETHER; row += FA__STRIDE == 1 ? 1 : to_tile ? FA__FLOATS : 4) {
            float *in_tile = x + col * FA_ROWS + row, *in_rows = rows + row * FA_COLS + col;
            if (FA__STRIDE == 1 && to_tile) *in_tile = *in_rows;
            else if (FA__STRIDE == 1) *in_rows = *in_tile;
            else if (to_tile) {
                FA__CPU_OP(vec) column[4];
                FA__CPU_OP(columns)(column, in_rows, FA_COLS);
                for (int i = 0; i < 4; i++) *(FA__CPU_OP(any) *)(in_tile + i * FA_ROWS) = column[i];
            } else {
                fa_cpu_vec_0 row_of[4];
                fa_cpu_columns_0(row_of, in_tile, FA_ROWS);
                for (int i = 0; i < 4; i++) *(fa_cpu_any_0 *)(in_rows + i * FA_COLS) = row_of[i];
            }
        }
}
#endif

FA__FN void FA__TILE(_load)(FA__TILE(_tile) * tile, FA__TILE(_source) source, int thread) {
    int cols = FA__TILE(_cols)(source);
    (void)thread;
#if FA_OPERAND == FA_OPERAND_A
    float rows[FA__TILE(_TOGETHER) * FA_COLS];
    for (int row = 0; row < FA_ROWS; row++) {
        int i = row % FA__TILE(_TOGETHER);
        float *to = rows + i * FA_COLS;
#else
    for (int row = 0; row < FA_ROWS; row++) {
        float *to = tile->x + row * FA_COLS;
#endif
        const FA__ELEMENT *from = (const FA__ELEMENT *)FA__TILE(_row)(source, row);
        if (from && cols == FA_COLS) FA__TILE(__widen)(to, from, FA_COLS);
        else FA__TILE(__widen)(to, from, from ? cols : 0);
#if FA_OPERAND == FA_OPERAND_A
        if (i == FA__TILE(_TOGETHER) - 1) FA__TILE(__transpose)(tile->x + row - i, rows, 1);
#endif
    }
}

/* Changes the sign of every element. */
FA__FN void FA__TILE(_negate)(FA__TILE(_tile) * tile, int thread) {
    (void)thread;
    for (int i = 0; i < FA_ROWS * FA_COLS; i++) tile->x[i] = -tile->x[i];
}

FA__FN void FA__TILE(_store)(FA__TILE(_tile) * tile, fa_block to, int thread) {
    int rows = to.rows - to.row < FA_ROWS ? to.rows - to.row : FA_ROWS, cols = to.cols < FA_COLS ? to.cols : FA_COLS;
    (void)thread;
#if FA_OPERAND == FA_OPERAND_A
    float values[FA__TILE(_TOGETHER) * FA_COLS];
#endif
    for (int row = 0; row < rows; row++) {
#if FA_OPERAND == FA_OPERAND_A
        int i = row % FA__TILE(_TOGETHER);
        if (i == 0) FA__TILE(__transpose)(tile->x + row, values, 0);
        const float *from = values + i * FA_COLS;
#else
        const float *from = tile->x + row * FA_COLS;
#endif
        if (to.row + row < 0) continue;
        FA__TILE(__narrow)((FA__ELEMENT *)(uintptr_t)to.data + (to.row + row) * to.stride_row, from, cols);
    }
}
#endif
#undef FA__TRANSPOSED
