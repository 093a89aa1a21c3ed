/* attention_bias_tiles.h: the shipped hook fa_bias on sm_90a. For each tile of scores the copy engine brings a tile of
 * the bias to shared memory, like those of K and V; from there ldmatrix hands each thread the elements of its scores,
 * since fragments of 8 x 8 elements lie in registers as the scores of wgmma do. Loaded by the threads themselves, a
 * bias would keep the L1 cache busy for twice as long as the products take, since the lanes of a warp are in eight
 * rows, and would occupy registers meanwhile. */

enum { /* in the layout of tiles (arch/sm90/layout.h) */
    FA__LOOP(_bias_panels) = FA__SM90_PANELS(FA_BLOCK_N),
    FA__LOOP(_bias_panel_bytes) = FA_BLOCK_M * FA__SM90_ROW_BYTES,
    FA__LOOP(_bias_tile_room) = FA__LOOP(_bias_panels) * FA__LOOP(_bias_panel_bytes),
    FA__LOOP(_bias_tile_BYTES) = FA__SM90_BYTES(FA_BLOCK_M, FA_BLOCK_N), /* what the copy engine brings */
};

/* Whether the copy engine can bring it. */
FA__CALLED int FA__LOOP(_bias_mappable)(const FA__PARAMS *p) {
    const fa_attention_args *a = &p->args;
    return (uintptr_t)a->bias % 16 == 0 && fa__mappable_stride(a->bias_stride_query, a->seqlen_q) &&
           fa__mappable_stride(a->bias_stride_head, a->heads) && fa__mappable_stride(a->bias_stride_batch, a->batch);
}
FA__CALLED fa_status FA__LOOP(_bias_map)(fa_tensor_map *map, const FA__PARAMS *p) {
    const fa_attention_args *a = &p->args;
    const fa_tensor bias = {(void *)(uintptr_t)a->bias, a->bias_stride_batch, a->bias_stride_head, a->bias_stride_query};
    return fa__tensor_map(FA__STR(FA__ATTN()) ": bias", map, FA_DTYPE, bias, a->batch, a->heads, a->seqlen_q, a->seqlen_k, FA_BLOCK_M, FA_BLOCK_N);
}

/* Starts the copy of a tile, with zeros for queries and keys that do not exist. One thread calls. */
FA__FN void FA__LOOP(_bias_load)(void *tile, const fa_tensor_map *map, int key0, int query, int head, int batch, uint32_t barrier) {
    FA__UNROLL
    for (int i = 0; i < FA__LOOP(_bias_panels); i++)
        fa_sm90_load_box(fa_sm90_shared_address(tile) + (uint32_t)(i * FA__LOOP(_bias_panel_bytes)),
                         map + FA__SM90_MAP_OF(FA_BLOCK_N, i), barrier, key0 + i * FA__SM90_PANEL, query,
                         head, batch);
}

/* Where the copy engine cannot bring the bias, each warp gathers it for its own 16 rows, before the products, when the
 * scores' registers are free. `tile`: its warpgroup's rows, those of `box`. */
FA__FN void FA__LOOP(_bias_gather)(unsigned char *tile, const FA__PARAMS *p, fa_box box, int key0, int thread) {
    enum {
        FA__PER_LANE = (FA_BLOCK_N + FA__LANES - 1) / FA__LANES, /* of a row */
        FA__MOST = 32 / FA__PER_LANE,                            /* rows, for 32 registers */
        FA__AT_ONCE = FA__MOST >= 16 ? 16 : FA__MOST >= 8 ? 8 : 4
    };
    thread = FA__OP(opaque)(thread); /* addresses are recomputed here: they are not worth registers elsewhere */
    const fa_attention_args *a = &p->args;
    const uint16_t *head = (const uint16_t *)FA__LOOP(_bias_of_head)(p, box);
    const int warp = (int)((unsigned)thread / FA__LANES), lane = (int)((unsigned)thread % FA__LANES);
    fa_sm90_warp_barrier(); /* what was there has been read */
    FA__ROLL
    for (int first = warp * 16; first < warp * 16 + 16; first += FA__AT_ONCE) {
        uint16_t x[FA__AT_ONCE][FA__PER_LANE];
        FA__UNROLL
        for (int i = 0; i < FA__AT_ONCE; i++) {
            const int query = box.queries.begin + first + i, keys = query < box.queries.end ? a->seqlen_k : 0; /* zeros, as the copy engine brings */
            const uint16_t *row = head + query * a->bias_stride_query;
            FA__UNROLL
            for (int j = 0; j < FA__PER_LANE; j++) {
                const int key = key0 + j * FA__LANES + lane;
                x[i][j] = key < keys ? row[key] : (uint16_t)0;
            }
        }
        FA__UNROLL
        for (int i = 0; i < FA__AT_ONCE; i++) FA__UNROLL
        for (int j = 0; j < FA__PER_LANE; j++) {
            const int col = j * FA__LANES + lane;
            *(uint16_t *)(tile + FA__SM90_OFFSET(first + i, col / 8, FA__LOOP(_bias_panel_bytes)) + col % 8 * 2) = x[i][j];
        }
    }
    fa_sm90_warp_barrier();
}

/* s = s * scale + bias, for a warpgroup's rows of a tile, which begin at `from`. */
FA__FN void FA__LOOP(_bias_add)(float *s, uint32_t from, float scale, int thread) {
    const unsigned lane = (unsigned)thread % FA__LANES, row = (unsigned)thread / FA__LANES * 16 + lane % 16;
    FA__UNROLL
    for (int c = 0; c < FA__LOOP(_qk_COLS); c += 4) { /* of a thread, 16 of a row */
        uint32_t x[4];
        fa_sm90_ldmatrix(x, from + FA__SM90_OFFSET(row, (unsigned)c / 2 + lane / 16, (unsigned)FA__LOOP(_bias_panel_bytes)));
        FA__UNROLL
        for (int i = 0; i < 4; i++) {
            float low, high, *left = &s[FA__LOOP(_qk_AT)(i % 2, c + i / 2 * 2)], *right = &s[FA__LOOP(_qk_AT)(i % 2, c + i / 2 * 2 + 1)];
            fa_sm90_unpack(&low, &high, x[i], FA_DTYPE);
            *left = FA__OP(fma)(*left, scale, low);
            *right = FA__OP(fma)(*right, scale, high);
        }
    }
}
