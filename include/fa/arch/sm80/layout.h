/* layout.h: where the elements of a tile lie in shared memory, for loaders and products alike.
 *
 * Rows follow each other at a pitch of an odd number of 16-byte units: eight neighbouring rows then start in eight
 * different groups of banks, and ldmatrix, 16-byte stores and the column-wise reads of 4-byte types all pass without
 * conflicts. Columns are padded with zeros to a step of the matrix unit's K (16 for half types, 8 for the others). */
#ifndef FA_ARCH_SM80_LAYOUT_H
#define FA_ARCH_SM80_LAYOUT_H
/** @cond PRIVATE */
#define FA__SM80_STEP(element_bytes) ((element_bytes) == 2 ? 16 : 8)
#define FA__SM80_PADDED(cols, element_bytes) \
    (((cols) + FA__SM80_STEP(element_bytes) - 1) / FA__SM80_STEP(element_bytes) * FA__SM80_STEP(element_bytes))
#define FA__SM80_UNITS(cols, element_bytes) (FA__SM80_PADDED(cols, element_bytes) * (element_bytes) / 16)
#define FA__SM80_PITCH(cols, element_bytes) ((FA__SM80_UNITS(cols, element_bytes) | 1) * 16) /* bytes */
/* With FA__PERMUTED_KEYS, where a row goes, and which one a place has, 32 rows at a time: a product leaves lane i of
 * 4 the columns 8 b + 2 i + e, e 0 or 1, of its blocks b; these are the rows 8 i + 2 b + e, eight neighbours. */
#define FA__SM80_PERMUTED(row) (((row) & ~30) | ((row) & 6) << 2 | ((row) & 24) >> 2)
/** @endcond */
#endif
