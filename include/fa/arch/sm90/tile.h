/* sm90/tile.h: tiles in shared memory in the layout of wgmma (layout.h), filled by the copy engine, or as on sm_80. */
#include <fa/arch/sm90/layout.h>

FA__REQUIRE(FA_ROWS % 8 == 0, "FA_ROWS is " FA__STR(FA_ROWS) ": the layout of FA_ARCH 90 needs a multiple of 8");

/* Columns that the copy engine brings: of whole panels, those outside the tensor as zeros; or (FA__EXACT: the tiles
 * of attention) only those that there are, since it is slower where it makes zeros. Then the threads write those
 * zeros that products read, once, by NAME_clear(). */
#if defined(FA__EXACT)
#define FA__BROUGHT (FA_COLS)
#else
#define FA__BROUGHT (FA__SM90_PANELS(FA_COLS) * FA__SM90_PANEL)
#endif

enum {
    FA__TILE(_PANEL_BYTES) = FA_ROWS * FA__SM90_ROW_BYTES,
    FA__TILE(_BYTES) = FA__SM90_BYTES(FA_ROWS, FA__BROUGHT), /* what a load of FA_TMA brings */
    FA__TILE(_MAPS) = FA__SM90_MAPS(FA__BROUGHT), /* side by side */
    FA__TILE(_UNITS) = (FA_COLS + 15) / 16 * 2, /* 16-byte units of a row that other loads fill: up to a step of wgmma's K */
};

typedef struct FA__TILE(_tile) {
    unsigned char x[FA__SM90_PANELS(FA_COLS) * FA_ROWS * FA__SM90_ROW_BYTES] __attribute__((__aligned__(1024)));
} FA__TILE(_tile);

/* Where 16-byte unit `unit` of a row lies, in bytes. */
#define FA__UNIT_AT(row, unit) FA__SM90_OFFSET(row, unit, FA__TILE(_PANEL_BYTES))

/* The address of element (row, col). */
FA__FN FA__ELEMENT *FA__TILE(_at)(FA__TILE(_tile) * tile, int row, int col) {
    return (FA__ELEMENT *)(tile->x + FA__UNIT_AT(row, col / 8)) + col % 8;
}

#if FA_LOADER == FA_TMA
/* Makes the map, or maps, of a (batch, heads, seqlen, FA_COLS) tensor, on the host. */
static FA_UNUSED fa_status FA__TILE(_map)(fa_tensor_map *map, fa_tensor tensor, int batch, int heads, int seqlen) {
    FA__REQUIRE(FA_ROWS <= 256, "FA_ROWS is " FA__STR(FA_ROWS) ": the copy engine brings at most 256 at once");
    return fa__tensor_map(FA__STR(FA_NAME), map, FA_DTYPE, tensor, batch, heads, seqlen, FA_COLS, FA_ROWS, FA__BROUGHT);
}
/* That for a panel. */
FA__FN const fa_tensor_map *FA__TILE(_map_of)(FA__TILE(_source) source, int panel) {
    return source.map + FA__SM90_MAP_OF(FA__BROUGHT, panel);
}
/* Starts the copy of a tile. Its NAME_BYTES bytes complete at the barrier (fa_mbarrier_address()), where some thread
 * must expect them (fa_mbarrier_expect()). One thread calls. */
FA__FN void FA__TILE(_load)(FA__TILE(_tile) * tile, FA__TILE(_source) source, uint32_t barrier) {
    uint32_t to = fa_sm90_shared_address(tile->x);
#pragma unroll
    for (int panel = 0; panel < FA__SM90_PANELS(FA_COLS); panel++)
        fa_sm90_load_box(to + (uint32_t)(panel * FA__TILE(_PANEL_BYTES)), FA__TILE(_map_of)(source, panel), barrier, panel * FA__SM90_PANEL, source.row, source.head, source.batch);
}
/* Expects the bytes of a tile at the barrier, which is one arrival there, and starts the copy. One thread calls. */
FA__FN void FA__TILE(_fetch)(FA__TILE(_tile) * tile, FA__TILE(_source) source, fa_mbarrier *barrier) {
    fa_mbarrier_expect(barrier, FA__TILE(_BYTES));
    FA__TILE(_load)(tile, source, fa_mbarrier_address(barrier));
}
/* Brings what a tile will hold into the L2 cache. One thread calls. */
FA__FN void FA__TILE(_prefetch)(FA__TILE(_source) source) {
#pragma unroll
    for (int panel = 0; panel < FA__SM90_PANELS(FA_COLS); panel++)
        fa_sm90_prefetch_box(FA__TILE(_map_of)(source, panel), panel * FA__SM90_PANEL, source.row, source.head, source.batch);
}
/* Starts the copy of a panel, 64 columns or the last ones, to where it would be loaded from, but for what lies
 * outside the tensor, if a condition holds. The row must not be negative: the engine takes that for an illegal
 * instruction, where a load brings zeros. The engine must see the panel (fa_sm90_proxy_fence() between what has
 * written it and this call: by the writers before a barrier, or by the caller behind one), and the panel must stay
 * until NAME_sent() has returned. */
FA__FN void FA__TILE(_send_panel)(const void *from, FA__TILE(_source) to, int panel, int condition) {
    fa_sm90_store_box_if(fa_sm90_shared_address(from), FA__TILE(_map_of)(to, panel), condition, panel * FA__SM90_PANEL, to.row, to.head, to.batch);
}
/* Closes a group of panels that are sent. */
FA__FN void FA__TILE(_send)(void) { fa_sm90_store_commit(); }
/* Returns when what the caller has sent may be written again. */
FA__FN void FA__TILE(_sent)(void) { fa_sm90_store_read(); }
#if defined(FA__EXACT)
/* Zeroes what pads rows to a step of 16 columns. All `threads` call, before NAME_barrier() and the first load. */
FA__FN void FA__TILE(_clear)(FA__TILE(_tile) * tile, int thread, int threads) {
    for (int row = thread; FA_COLS % 16 != 0 && row < FA_ROWS; row += threads) *(uint4 *)(tile->x + FA__UNIT_AT(row, FA_COLS / 8)) = make_uint4(0, 0, 0, 0);
}
/* Brings the maps themselves to where the copy engine finds them at once. */
FA__FN void FA__TILE(_prefetch_maps)(const fa_tensor_map *map) {
    for (int i = 0; i < FA__TILE(_MAPS); i++) fa_sm90_prefetch_map(map + i);
}
#endif
#endif

#undef FA__BROUGHT

#include <fa/arch/sm80/tile.h>
