/* sm80/tile.h: tiles in shared memory, filled by cp.async, 16 bytes a thread at a time. All operands share one layout
 * (layout.h). */
#include <fa/arch/sm80/layout.h>

enum {
    FA__TILE(_PITCH) = FA__SM80_PITCH(FA_COLS, (int)sizeof(FA__ELEMENT)), /* bytes from row to row */
    FA__TILE(_UNITS) = FA__SM80_UNITS(FA_COLS, (int)sizeof(FA__ELEMENT)), /* 16-byte units of a row that are filled */
    FA__TILE(_PADDING) = FA__SM80_PADDED(FA_COLS, (int)sizeof(FA__ELEMENT)) - FA_COLS, /* columns of zeros among them */
};

typedef struct FA__TILE(_tile) {
    unsigned char x[FA_ROWS * FA__SM80_PITCH(FA_COLS, (int)sizeof(FA__ELEMENT))] __attribute__((aligned(16)));
} FA__TILE(_tile);

/* The address of element (row, col). */
FA__FN FA__ELEMENT *FA__TILE(_at)(FA__TILE(_tile) * tile, int row, int col) {
    return (FA__ELEMENT *)(tile->x + row * FA__TILE(_PITCH)) + col;
}

/* Starts the copy of 16-byte unit `unit` of a row. What lies outside the source is not read. */
FA__FN void FA__TILE(_load_unit)(uint32_t to, FA__TILE(_source) source, const void *fallback, int row, int unit) {
    const unsigned char *from = (const unsigned char *)FA__TILE(_row)(source, row);
    int inside = from != NULL && unit * (16 / (int)sizeof(FA__ELEMENT)) < FA__TILE(_cols)(source);
    fa_sm80_copy16(to + (uint32_t)(row * FA__TILE(_PITCH) + unit * 16), inside ? from + unit * 16 : fallback, inside ? 16 : 0);
}

FA__FN void FA__TILE(_load)(FA__TILE(_tile) * tile, FA__TILE(_source) source, int thread) {
    enum { UNITS = FA__TILE(_UNITS), THREADS = FA_WARPS * 32 };
    uint32_t to = fa_sm80_shared_address(tile->x);
#if FA_LOADER == FA_POINTER
    const void *fallback = NULL; /* an address that is not read */
#else
    const void *fallback = source.data;
#endif
    enum { STRIDE = THREADS / UNITS > 0 ? THREADS / UNITS : 1, EVEN = THREADS % UNITS == 0 && FA_ROWS % STRIDE == 0 };
#if FA_LOADER == FA_BLOCK
    if (EVEN && FA__TILE(_PADDING) == 0 && source.row >= 0 && source.row + FA_ROWS <= source.rows && source.cols >= FA_COLS) {
        /* The usual case, all of it inside: a thread keeps its column and strides over rows by a running pointer. */
        int unit = thread % UNITS, first = thread / UNITS;
        const unsigned char *from = (const unsigned char *)FA__TILE(_row)(source, first) + unit * 16;
        int64_t stride = source.stride_row * (STRIDE * (int)sizeof(FA__ELEMENT));
        to += (uint32_t)(first * FA__TILE(_PITCH) + unit * 16);
#pragma unroll
        for (int row = 0; row < FA_ROWS; row += STRIDE, from += stride) fa_sm80_copy16(to + (uint32_t)(row * FA__TILE(_PITCH)), from, 16);
        return;
    }
#endif
#pragma unroll 1
    for (int i = thread; i < FA_ROWS * UNITS; i += THREADS) FA__TILE(_load_unit)(to, source, fallback, i / UNITS, i % UNITS);
}

/* Changes the sign of every element, after the tile has landed. */
FA__FN void FA__TILE(_negate)(FA__TILE(_tile) * tile, int thread) {
    uint32_t *x = (uint32_t *)tile->x, sign = sizeof(FA__ELEMENT) == 2 ? 0x80008000u : 0x80000000u;
    for (int i = thread; i < (int)(sizeof tile->x / 4); i += FA_WARPS * 32) x[i] ^= sign;
}

/* Writes the tile's rows and columns that lie inside `to`, 16 bytes a thread at a time. */
FA__FN void FA__TILE(_store)(FA__TILE(_tile) * tile, fa_block to, int thread) {
    enum { UNITS = FA_COLS * (int)sizeof(FA__ELEMENT) / 16, THREADS = FA_WARPS * 32 };
    for (int i = thread; i < FA_ROWS * UNITS; i += THREADS) {
        int row = i / UNITS, unit = i % UNITS, at = to.row + row;
        if (at < to.rows && unit * (16 / (int)sizeof(FA__ELEMENT)) < to.cols) {
            FA__ELEMENT *out = (FA__ELEMENT *)(uintptr_t)to.data + at * to.stride_row;
            *((uint4 *)out + unit) = *(const uint4 *)(tile->x + row * FA__TILE(_PITCH) + unit * 16);
        }
    }
}
