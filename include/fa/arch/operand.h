/**
 * @file operand.h
 * @brief Names that fa/tile.h and fa/mma.h share: operands, loaders, block pointers.
 */
#ifndef FA_ARCH_OPERAND_H
#define FA_ARCH_OPERAND_H

#include <fa/fa.h>

/** @name Values of FA_OPERAND, FA_B, FA_LOADER, FA_A and FA_HOLD
 *  @{ */
#define FA_OPERAND_A 11  /**< M rows by K columns */
#define FA_OPERAND_B 12  /**< N rows by K columns, as K is for Q K^T */
#define FA_OPERAND_BT 13 /**< K rows by N columns, as V is for P V */
#define FA_BLOCK 21      /**< loader: block pointer */
#define FA_POINTER 22    /**< loader: a function that gives every row's address */
#define FA_TMA 23        /**< loader: a tensor map, which the copy engine of sm_90 follows */
#define FA_SHARED 31     /**< FA_A: A is a tile; FA_HOLD: rows are held in shared memory */
#define FA_FRAGMENT 32   /**< FA_A: A is in registers; FA_HOLD: rows are */
/** @} */

/** A block pointer: a matrix in memory and the row at which the next tile starts. */
typedef struct fa_block {
    const void *data;   /**< element (0, 0); on GPUs aligned to 16 bytes */
    int64_t stride_row; /**< elements; on GPUs a multiple of 16 bytes; 0 repeats one row */
    int rows, cols;     /**< bounds, 0 or more: what lies outside reads as zero, and is not written */
    int row;            /**< first row of the next tile */
} fa_block;

/** A block pointer to the first row of a (rows, cols) matrix whose rows are stride_row elements apart. Bounds below 0, as of what is left
 *  of a matrix behind its last tile, become 0. */
FA_HOOK fa_block fa_block_at(const void *data, int rows, int cols, int64_t stride_row) {
    fa_block b;
    b.data = data;
    b.stride_row = stride_row;
    b.rows = rows > 0 ? rows : 0;
    b.cols = cols > 0 ? cols : 0;
    b.row = 0;
    return b;
}

/** Moves a block pointer down by some rows (up, if negative). */
FA_HOOK void fa_block_advance(fa_block *block, int rows) { block->row += rows; }
#endif
