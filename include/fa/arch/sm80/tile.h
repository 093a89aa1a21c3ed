/* sm80/tile.h: tiles in shared memory, filled by cp.async, 16 bytes a thread at a time. All operands share one layout
 * (layout.h). sm_90, whose layout is another, includes this for the loaders (sm90/tile.h). */
#include <fa/arch/sm80/bounds.h>
#include <fa/arch/sm80/layout.h>

/* Where a row goes, and which one a place has. */
#if defined(FA__PERMUTED_KEYS)
#define FA__ROW_PLACE(row) FA__SM80_PERMUTED(row)
#else
#define FA__ROW_PLACE(row) (row)
#endif

#if defined(FA__PAIRED)
#include <fa/arch/sm80/tile_pairs.h>
#else
#if FA__ARCH == 80
enum {
    FA__TILE(_PITCH) = FA__SM80_PITCH(FA_COLS, (int)sizeof(FA__ELEMENT)), /* bytes from row to row */
    FA__TILE(_UNITS) = FA__SM80_UNITS(FA_COLS, (int)sizeof(FA__ELEMENT)), /* 16-byte units of a row that are filled */
};

typedef struct FA__TILE(_tile) {
    unsigned char x[FA_ROWS * FA__SM80_PITCH(FA_COLS, (int)sizeof(FA__ELEMENT))] __attribute__((__aligned__(16)));
} FA__TILE(_tile);

/* Where 16-byte unit `unit` of a row lies, in bytes. */
#define FA__UNIT_AT(row, unit) ((row) * FA__TILE(_PITCH) + (unit) * 16)

/* The address of element (row, col). */
FA__FN FA__ELEMENT *FA__TILE(_at)(FA__TILE(_tile) * tile, int row, int col) {
    return (FA__ELEMENT *)(tile->x + row * FA__TILE(_PITCH)) + col;
}
#endif

#if FA_LOADER != FA_TMA
/* Starts the copies of part `part` of `parts`: a schedule spreads them between products, so that neither their
 * addresses nor their way through the memory pipe are waited for. A warp reads whole rows, as long as they are; what
 * lies outside the source is not read, and becomes zero. */
FA__FN void FA__TILE(_load_part)(FA__TILE(_tile) * tile, FA__TILE(_source) source, int thread, int part, int parts) {
    enum {
        FA__UNITS = FA__TILE(_UNITS),
        FA__THREADS = FA_WARPS * 32,
        FA__COPIES = (FA_ROWS * FA__UNITS + FA__THREADS - 1) / FA__THREADS, /* of a thread */
        FA__EVEN = FA__THREADS % FA__UNITS == 0, /* a thread stays in its column */
        FA__STEP = FA__EVEN ? FA__THREADS / FA__UNITS : 1,
        FA__APART = FA__EVEN && (FA__STEP & (FA__STEP - 1)) == 0, /* its first row has no bit in common with the steps to others */
        FA__WHOLE = FA_ROWS * FA__UNITS % FA__THREADS == 0
    };
    uint32_t to = fa_sm80_shared_address(tile->x);
    int first = thread / FA__UNITS, unit = thread % FA__UNITS, cols = FA__TILE(_cols)(source);
#if FA_LOADER == FA_BLOCK
    /* A thread that stays in its column reaches its rows by equal strides. */
    int64_t stride = source.stride_row * (int)sizeof(FA__ELEMENT);
    const unsigned char *column = (const unsigned char *)source.data + (source.row + first) * stride + unit * 16;
#endif
#pragma unroll
    for (int i = part * FA__COPIES / parts; i < (part + 1) * FA__COPIES / parts; i++) {
        int at = i * FA__THREADS + thread;
        int to_row = FA__EVEN ? first + i * (FA__THREADS / FA__UNITS) : at / FA__UNITS, to_unit = FA__EVEN ? unit : at % FA__UNITS;
        if (!FA__WHOLE && at >= FA_ROWS * FA__UNITS) continue;
#if FA_LOADER == FA_BLOCK
        const unsigned char *from = FA__EVEN ? column + i * (FA__THREADS / FA__UNITS) * stride
                                             : (const unsigned char *)source.data + (source.row + to_row) * stride + to_unit * 16;
        int inside = (unsigned)(source.row + to_row) < (unsigned)source.rows;
#else
        const unsigned char *row = (const unsigned char *)FA__TILE(_row)(source, to_row), *from = row + to_unit * 16;
        int inside = row != NULL;
#endif
        inside &= to_unit * (16 / (int)sizeof(FA__ELEMENT)) < cols;
        int place = FA__APART ? FA__ROW_PLACE(first) + FA__ROW_PLACE(i * FA__STEP) : FA__ROW_PLACE(to_row);
        fa_sm80_copy16(to + (uint32_t)FA__UNIT_AT(place, to_unit), from, inside ? fa__bytes_inside(to_unit * 16, cols * (int)sizeof(FA__ELEMENT)) : 0);
    }
}

/* Starts the copy of a tile. */
FA__FN void FA__TILE(_load)(FA__TILE(_tile) * tile, FA__TILE(_source) source, int thread) {
    FA__TILE(_load_part)(tile, source, thread, 0, 1);
}
#endif

/* Writes the tile's rows and columns that lie inside `to`, 16 bytes a thread at a time: a batch of four is read from
 * shared memory before it is written, so that its reads do not wait for each other. */
FA__FN void FA__TILE(_store)(FA__TILE(_tile) * tile, fa_block to, int thread) {
    enum {
        FA__UNITS = FA_COLS * (int)sizeof(FA__ELEMENT) / 16,
        FA__THREADS = FA_WARPS * 32,
        FA__COPIES = (FA_ROWS * FA__UNITS + FA__THREADS - 1) / FA__THREADS,
        FA__EVEN = FA__THREADS % FA__UNITS == 0, /* a thread stays in its column, and its rows have equal strides */
        FA__ROW_STEP = FA__EVEN ? FA__THREADS / FA__UNITS : 0,
        FA__SAME_PLACE = FA__EVEN && FA__ROW_STEP % 8 == 0, /* in the pattern of the layout, which repeats after 8 rows */
        FA__WHOLE = FA_ROWS * FA__UNITS % FA__THREADS == 0,
        FA__BATCH = FA__COPIES < 4 ? FA__COPIES : 4
    };
    unsigned first = (unsigned)thread / FA__UNITS, unit = (unsigned)thread % FA__UNITS;
    int64_t stride = to.stride_row * (int)sizeof(FA__ELEMENT);
    unsigned char *out = (unsigned char *)(uintptr_t)to.data + (to.row + (int)first) * stride + unit * 16;
#pragma unroll
    for (int batch = 0; batch < FA__COPIES; batch += FA__BATCH) {
        uint4 x[FA__BATCH];
#pragma unroll
        for (int i = 0; i < FA__BATCH && batch + i < FA__COPIES; i++) {
            unsigned at = (unsigned)((batch + i) * FA__THREADS + thread);
            unsigned step = (unsigned)((batch + i) * FA__ROW_STEP);
            unsigned from = FA__SAME_PLACE ? FA__UNIT_AT(first, unit) + FA__UNIT_AT(step, 0)
                            : FA__EVEN     ? FA__UNIT_AT(first + step, unit)
                                           : FA__UNIT_AT(at / FA__UNITS, at % FA__UNITS);
            if (FA__WHOLE || at < FA_ROWS * FA__UNITS) x[i] = *(const uint4 *)(tile->x + from);
        }
#pragma unroll
        for (int i = 0; i < FA__BATCH && batch + i < FA__COPIES; i++) {
            unsigned at = (unsigned)((batch + i) * FA__THREADS + thread);
            if (!FA__EVEN) first = at / FA__UNITS, unit = at % FA__UNITS;
            if (!FA__EVEN) out = (unsigned char *)(uintptr_t)to.data + (to.row + (int)first) * stride + unit * 16;
            int row = to.row + (int)first + (batch + i) * FA__ROW_STEP;
            int inside = (unsigned)row < (unsigned)to.rows && (int)unit * (16 / (int)sizeof(FA__ELEMENT)) < to.cols;
            if ((FA__WHOLE || at < FA_ROWS * FA__UNITS) && inside)
                fa__store_bytes(out, &x[i], fa__bytes_inside((int)unit * 16, to.cols * (int)sizeof(FA__ELEMENT)), (int)sizeof(FA__ELEMENT));
            out += FA__ROW_STEP * stride;
        }
    }
}
#undef FA__UNIT_AT
#endif

#if defined(FA__PAIRED) || FA__IS_HALF
#define FA__TILE_OF_HALVES 1
#else
#define FA__TILE_OF_HALVES 0
#endif
/* Changes the sign of every element, after the tile has landed, and has been split if it is one of pairs. */
FA__FN void FA__TILE(_negate)(FA__TILE(_tile) * tile, int thread) {
    uint32_t *x = (uint32_t *)tile->x, sign = FA__TILE_OF_HALVES ? 0x80008000u : 0x80000000u;
    for (int i = thread; i < (int)(sizeof tile->x / 4); i += FA_WARPS * 32) x[i] ^= sign;
}
#undef FA__TILE_OF_HALVES
#undef FA__ROW_PLACE
