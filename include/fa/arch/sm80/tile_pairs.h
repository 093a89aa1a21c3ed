/* tile_pairs.h: the part of sm80/tile.h for the tiles of FA_F32 that attention multiplies as pairs of FA_F16
 * numbers; and for those of FA_TF32, of whose pairs it makes only the first number, which has as many bits as tf32.
 *
 * An element times a power of two is big + small, two halves of 11 bits each (after Ootomo and Yokota, arXiv
 * 2203.03341). The power of two is that of the element's row and brings the largest of it near the end of the range
 * of FA_F16: so what is left out is 2^-23 of an element, or 2^-39 of the largest of its row if that is more,
 * whatever their magnitude.
 *
 * Every warp loads whole rows, and splits them in place when they have landed. Units u and CHUNKS + u of 16 bytes,
 * four floats each, become a unit of eight big halves and one of eight small halves: the order of columns is then
 * not that of memory. A sum over them does not care; where those of O are is known to col() of the product. */
enum {
    FA__TILE(_PADDED) = FA__SM80_PADDED(FA_COLS, 2),
    FA__TILE(_PITCH) = FA__SM80_PITCH(FA__TILE(_PADDED), 4), /* bytes from row to row */
    FA__TILE(_UNITS) = FA__TILE(_PADDED) / 4,                /* of 16 bytes in a row */
    FA__TILE(_CHUNKS) = FA__TILE(_UNITS) / 2,
    FA__TILE(_WARP_ROWS) = (FA_ROWS + FA_WARPS - 1) / FA_WARPS, /* warp w has rows w, w + FA_WARPS, ... */
    FA__TILE(_WHOLE) = FA_ROWS % FA_WARPS == 0
};

typedef struct FA__TILE(_tile) {
    unsigned char x[FA_ROWS * FA__SM80_PITCH(FA__SM80_PADDED(FA_COLS, 2), 4)] __attribute__((__aligned__(16)));
    float scale[FA_ROWS]; /* a power of two: an element is (big + small) * scale */
} FA__TILE(_tile);

/* Starts the copies of part `part` of `parts`; what lies outside the source is not read, and becomes zero. */
FA__FN void FA__TILE(_load_part)(FA__TILE(_tile) * tile, FA__TILE(_source) source, int thread, int part, int parts) {
    enum {
        FA__UNITS = FA__TILE(_UNITS),
        FA__SIDE = FA__UNITS % 32 == 0 ? 32 : FA__UNITS % 16 == 0 ? 16 : FA__UNITS % 8 == 0 ? 8 : 4, /* lanes side by side in a row */
        FA__BELOW = 32 / FA__SIDE,
        /* (FA__ANEW: kernel/attention_loop_choices.h.) */
        FA__EVEN = FA__SIDE == 32 || FA__SIDE == FA__UNITS || ((FA__SIDE == 16 || FA__ANEW) && FA__TILE(_WARP_ROWS) % FA__BELOW == 0),
        FA__COPIES = (FA__TILE(_WARP_ROWS) * FA__UNITS + 31) / 32, /* of a lane */
        FA__FULL = FA__TILE(_WHOLE) && FA__TILE(_WARP_ROWS) * FA__UNITS % 32 == 0,
        FA__ACROSS = FA__UNITS / FA__SIDE,   /* copies of a lane in a row */
        FA__ROW_STEP = FA__BELOW * FA_WARPS, /* from copy to copy, once across */
        FA__APART = (FA__ROW_STEP & (FA__ROW_STEP - 1)) == 0 /* a lane's first row has no bit in common with the steps to others */
    };
    uint32_t to = fa_sm80_shared_address(tile->x);
    int lane = thread % 32, warp = thread / 32, cols = FA__TILE(_cols)(source);
    int first = lane / FA__SIDE * FA_WARPS + warp, unit = lane % FA__SIDE;
    int64_t stride = source.stride_row * 4;
    const unsigned char *column = (const unsigned char *)source.data + (source.row + FA__ROW_PLACE(first)) * stride + unit * 16;
#pragma unroll
    for (int i = part * FA__COPIES / parts; i < (part + 1) * FA__COPIES / parts; i++) {
        int down = i / FA__ACROSS * FA__ROW_STEP, right = i % FA__ACROSS * FA__SIDE, at = i * 32 + lane;
        int row = FA__EVEN ? first + down : at / FA__UNITS * FA_WARPS + warp, to_unit = FA__EVEN ? unit + right : at % FA__UNITS;
        int of = FA__EVEN && FA__APART ? FA__ROW_PLACE(first) + FA__ROW_PLACE(down) : FA__ROW_PLACE(row); /* the source's row */
        const unsigned char *from = FA__EVEN && FA__APART ? column + FA__ROW_PLACE(down) * stride + right * 16
                                                          : (const unsigned char *)source.data + (source.row + of) * stride + to_unit * 16;
        if (!FA__FULL && row >= FA_ROWS) continue;
        int inside = (unsigned)(source.row + of) < (unsigned)source.rows && to_unit * 4 < cols;
        fa_sm80_copy16(to + (uint32_t)(row * FA__TILE(_PITCH) + to_unit * 16), from, inside ? fa__bytes_inside(to_unit * 16, cols * 4) : 0);
    }
}

FA__FN void FA__TILE(_load)(FA__TILE(_tile) * tile, FA__TILE(_source) source, int thread) {
    FA__TILE(_load_part)(tile, source, thread, 0, 1);
}

/* Splits part `part` of `parts` of what this warp has loaded, after its lanes have waited for it. A NaN or an infinity
 * makes no other element less exact: the power of two is that of the finite ones. */
FA__FN void FA__TILE(_split_part)(FA__TILE(_tile) * tile, int thread, int part, int parts) {
    enum {
        FA__BOTH = FA_DTYPE == FA_F32,
        FA__HALF = FA__TILE(_CHUNKS) / 2, /* a lane has two chunks, of whose loads and maxima the latencies overlap */
        FA__OWNERS = FA__HALF <= 1 ? 1 : FA__HALF <= 2 ? 2 : FA__HALF <= 4 ? 4 : FA__HALF <= 8 ? 8 : 16, /* lanes of a row */
        FA__ROWS = 32 / FA__OWNERS,                                                                     /* at once */
        FA__STEPS = (FA__TILE(_WARP_ROWS) + FA__ROWS - 1) / FA__ROWS,
        FA__ALL = FA__TILE(_WHOLE) && FA__TILE(_WARP_ROWS) % FA__ROWS == 0 && FA__HALF == FA__OWNERS
    };
    int lane = thread % 32, chunk = lane % FA__OWNERS, first = lane / FA__OWNERS * FA_WARPS + thread / 32;
    int begin = part * FA__STEPS / parts, end = (part + 1) * FA__STEPS / parts;
    if (begin < end) fa_sm80_warp_barrier(); /* what any lane has loaded is visible to all */
#pragma unroll 1 /* unrolled, it takes the registers of O */
    for (int i = begin; i < end; i++) {
        int row = first + i * (FA__ROWS * FA_WARPS), mine = FA__ALL || (row < FA_ROWS && chunk < FA__HALF);
        float4 *at = (float4 *)(tile->x + row * FA__TILE(_PITCH)) + chunk, x[4];
        uint32_t size = 0;
#pragma unroll
        for (int c = 0; c < 4; c++) {
            x[c] = mine ? at[c * FA__HALF] : make_float4(0, 0, 0, 0);
            size = fa_sm80_larger(fa_sm80_larger(fa_sm80_size(x[c].x), fa_sm80_size(x[c].y)), size);
            size = fa_sm80_larger(fa_sm80_larger(fa_sm80_size(x[c].z), fa_sm80_size(x[c].w)), size);
        }
        const float unit = fa_sm80_pair_unit(fa_sm80_row_size(size, FA__OWNERS)), up = fa_sm80_pair_inverse(unit);
#pragma unroll
        for (int c = 0; c < 2; c++) {
            uint4 big, small;
            fa_sm80_pair(&big.x, &small.x, x[c].x * up, x[c].y * up, FA__BOTH);
            fa_sm80_pair(&big.y, &small.y, x[c].z * up, x[c].w * up, FA__BOTH);
            fa_sm80_pair(&big.z, &small.z, x[c + 2].x * up, x[c + 2].y * up, FA__BOTH);
            fa_sm80_pair(&big.w, &small.w, x[c + 2].z * up, x[c + 2].w * up, FA__BOTH);
            if (mine) *(uint4 *)&at[c * FA__HALF] = big;
            if (mine && FA__BOTH) *(uint4 *)&at[(c + 2) * FA__HALF] = small;
        }
        if (mine && chunk == 0) tile->scale[row] = unit;
    }
}

FA__FN void FA__TILE(_split)(FA__TILE(_tile) * tile, int thread) { FA__TILE(_split_part)(tile, thread, 0, 1); }
