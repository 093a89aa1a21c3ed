/* layout.h: where the elements of a tile lie in shared memory, for loaders and products alike.
 *
 * A tile is cut into panels of 64 columns, 128 bytes a row; within a panel, rows follow each other and the 16-byte
 * units of row r change places by exclusive or with r % 8: the 128-byte swizzle of the copy engine and of wgmma (PTX
 * ISA, "Swizzling Modes"). Panels start at multiples of 1024 bytes, after which the pattern repeats. */
#ifndef FA_ARCH_SM90_LAYOUT_H
#define FA_ARCH_SM90_LAYOUT_H
/** @cond PRIVATE */
#define FA__SM90_PANEL 64 /* columns */
#define FA__SM90_PANELS(cols) (((cols) + FA__SM90_PANEL - 1) / FA__SM90_PANEL)
#define FA__SM90_LAST(cols) (((cols) - 1) % FA__SM90_PANEL + 1) /* columns of the last panel */
#define FA__SM90_MAPS(cols) ((cols) > FA__SM90_PANEL && (cols) % FA__SM90_PANEL != 0 ? 2 : 1) /* tensor maps, each for boxes of one width */
#define FA__SM90_MAP_OF(cols, panel) ((panel) == FA__SM90_PANELS(cols) - 1 ? FA__SM90_MAPS(cols) - 1 : 0) /* which of them is for a panel */
#define FA__SM90_ROW_BYTES 128
#define FA__SM90_GROUP_BYTES 1024 /* eight rows of a panel */
#define FA__SM90_BYTES(rows, cols) ((rows) * ((FA__SM90_PANELS(cols) - 1) * FA__SM90_ROW_BYTES + FA__SM90_LAST(cols) * 2)) /* of the boxes of a tile */
/* Where 16-byte unit `unit` of a row lies, in bytes. */
#define FA__SM90_OFFSET(row, unit, panel_bytes) \
    ((unit) / 8 * (panel_bytes) + (row) * FA__SM90_ROW_BYTES + ((unit) % 8 ^ (row) % 8) * 16)
/* Halves of a descriptor: where in shared memory (address, and from panel to panel where the unit needs it), and the
 * pattern: from one group of eight rows to the next, 128-byte swizzle. */
#define FA__SM90_PLACE(address, panel_bytes) (((address) & 0x3FFFFu) >> 4 | (uint32_t)((panel_bytes) >> 4) << 16)
#define FA__SM90_PATTERN ((uint32_t)(FA__SM90_GROUP_BYTES >> 4) | 1u << 30)
/* The same number, but computed from a place, whose two highest bits are 0, so that the assembler does not know it.
 * What it knows it puts into a register anew for each product, what it does not know stays in one. */
#define FA__SM90_PATTERN_OF(place) (FA__SM90_PATTERN + ((place) >> 30))
/* The same where rows of 16 bytes follow each other, without a swizzle. */
#define FA__SM90_DENSE ((uint32_t)(8 * 16 >> 4))
/** @endcond */
#endif
