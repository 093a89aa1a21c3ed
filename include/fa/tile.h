/**
 * @file tile.h
 * @brief Tiles of a matrix in shared memory (GPU) or in a core's cache (CPU), and the loaders that fill them.
 *
 * A tile holds FA_ROWS x FA_COLS elements in whatever layout the architecture's matrix unit reads fastest; fa/mma.h
 * takes it from there. Elements outside the source arrive as zeros; memory there is never read.
 *
 * @code{.c}
 * #include <fa/fa.h>
 *
 * #define FA_NAME    ktile
 * #define FA_DTYPE   FA_F32
 * #define FA_ROWS    64
 * #define FA_COLS    128
 * #define FA_OPERAND FA_OPERAND_B
 * #include <fa/tile.h>
 *
 * #if !defined(__CUDACC__)
 * static void load_rows_64_to_127(ktile_tile *tile, const float *matrix, int rows) { // (rows, 128), contiguous
 *     fa_block block = fa_block_at(matrix, rows, 128, 128);
 *     fa_block_advance(&block, 64);
 *     ktile_load(tile, block, 0);
 *     ktile_commit();
 *     ktile_wait(0);
 * }
 * #endif
 * @endcode
 *
 * With the copy engine of sm_90 (FA_TMA), one thread asks for a whole tile of a tensor of which the host has made a map. (In a
 * file that is also compiled for other GPUs, put the kernel's body between
 * `#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)` and `#else __trap(); #endif`, each on a line of its own: without the trap,
 * code that was compiled for the wrong GPU would do nothing, and say nothing.)
 *
 * @code{.c}
 * #include <fa/fa.h>
 *
 * #if defined(__CUDACC__) // nvcc -arch=sm_90a
 * #define FA_NAME    vtile
 * #define FA_DTYPE   FA_BF16
 * #define FA_ROWS    64
 * #define FA_COLS    128
 * #define FA_LOADER  FA_TMA
 * #define FA_ARCH    90
 * #include <fa/tile.h>
 *
 * __global__ void first_elements(const __grid_constant__ fa_tensor_map map, uint16_t *out) { // a block a tile
 *     __shared__ vtile_tile tile;
 *     __shared__ fa_mbarrier landed;
 *     vtile_source source = {&map, (int)blockIdx.x * 64, 0, 0}; // row, head, batch
 *     if (threadIdx.x == 0) {
 *         fa_mbarrier_init(&landed, 1);
 *         vtile_fetch(&tile, source, &landed);
 *     }
 *     __syncthreads(); // the barrier is there
 *     fa_mbarrier_wait(&landed, 0);
 *     if (threadIdx.x == 0) out[blockIdx.x] = *vtile_at(&tile, 0, 0);
 * }
 * static fa_status run(fa_tensor tensor, int batch, int heads, int seqlen, uint16_t *out) {
 *     fa_tensor_map map;
 *     fa_status status = vtile_map(&map, tensor, batch, heads, seqlen);
 *     if (status == FA_OK) first_elements<<<(seqlen + 63) / 64, 32>>>(map, out);
 *     return status;
 * }
 * #endif
 * @endcode
 *
 * | parameter      | required | default         | meaning |
 * |----------------|----------|-----------------|---------|
 * | FA_NAME        | yes      |                 | prefix of what is generated |
 * | FA_DTYPE       | yes      |                 | element type: FA_F32, FA_F16, FA_BF16, FA_TF32; with FA_ARCH 90 FA_F16, FA_BF16 |
 * | FA_ROWS        | yes      |                 | rows of the tile; with FA_ARCH 90 a multiple of 8 |
 * | FA_COLS        | yes      |                 | columns of the tile, a multiple of 8; padded with zeros to what the matrix unit needs |
 * | FA_OPERAND     | no       | FA_OPERAND_B    | the product's operand: FA_OPERAND_A (M x K), FA_OPERAND_B (N x K), FA_OPERAND_BT (K x N) |
 * | FA_LOADER      | no       | FA_BLOCK        | FA_BLOCK: a block pointer (fa_block: on GPUs rows begin at multiples of 16 bytes); FA_POINTER: any row address that is a multiple of 16 bytes, gathers included; FA_TMA: a tensor map (FA_ARCH 90) |
 * | FA_ROW_ADDRESS | FA_POINTER |               | function (user, row) that returns the address of a row, or NULL for a row of zeros |
 * | FA_USER_ARGS   | no       | none            | type that FA_ROW_ADDRESS's first argument points to |
 * | FA_WARPS       | no       | 4               | warps that load together (GPU) |
 * | FA_ARCH        | no       | by the compiler | FA_CPU, 80 or 90: a tile is for products with the same FA_ARCH |
 * | FA_SUB         | no       |                 | second part of the prefix, inside another template's instance; FA_NAME, FA_DTYPE, FA_ARCH and FA_USER_ARGS stay defined |
 *
 * Generates NAME_tile (a type to place in shared memory, aligned to 16 bytes, with FA_ARCH 90 to 1024; on the CPU anywhere, aligned to 64), NAME_source (what it
 * is loaded from), NAME_load(), NAME_commit(), NAME_wait(), NAME_barrier() and NAME_thread().
 * For results: NAME_at(), the address of an element of a tile, and NAME_store(), tile to memory.
 *
 * With FA_TMA: NAME_map(), which makes the fa_tensor_map of a (batch, heads, seqlen, FA_COLS) tensor on the host (strides:
 * multiples of 16 bytes, 0 included); NAME_fetch(tile, source, barrier), which starts a copy that completes at an fa_mbarrier
 * (fa/mbarrier.h); its halves, fa_mbarrier_expect() of NAME_BYTES and NAME_load(tile, source, fa_mbarrier_address(barrier)), for
 * several tiles at one barrier; NAME_prefetch(source), into the L2 cache. In the other direction, NAME_send_panel() starts the
 * copy of 64 columns, NAME_PANEL_BYTES bytes, to the tensor, beginning at a row that is not negative, NAME_send() closes a group
 * of such copies, and NAME_sent() returns when their source has been read (compute-sanitizer's initcheck does not see what they
 * write). FA_ROWS is at most 256. Pass a map to a kernel as a `const __grid_constant__` parameter, or inside one.
 *
 * All threads of the FA_WARPS warps call NAME_load() with their index; it only starts the copy. NAME_commit() closes a
 * group of loads, NAME_wait(n) returns when all but the latest n groups of the calling thread have landed; then NAME_barrier()
 * makes the tile visible to all threads. On the CPU a load is done when it returns.
 *
 * With FA_ARCH 90, NAME_barrier() also makes what threads have written (by these loads, through NAME_at()) visible to the copy
 * engine and to products, which __syncthreads() does not. With FA_TMA one thread calls the load, when all others are done
 * with the tile, and no NAME_barrier() is needed: a thread that has waited at its fa_mbarrier may read the tile, and multiply it.
 * But if threads have read it themselves (ldmatrix, NAME_at()), not only products, NAME_barrier() comes before the next load into it.
 *
 * Sources: cp.async, PTX ISA "Data Movement and Conversion Instructions"; the odd row pitch in units of 16 bytes, which
 * keeps ldmatrix free of bank conflicts, is standard practice.
 */
#include <fa/fa.h>

#include <fa/arch/begin.h>
#define FA__TILE(x) FA__CAT4(FA_NAME, FA_SUB, FA__SUFFIX, x)
#include <fa/arch/dtype.h>
#if !defined(FA_ROWS)
#define FA_ROWS undefined
#endif
#if FA_ROWS + 0 < 1 || FA__IS_BARE(FA_ROWS)
FA__REQUIRE(0, "FA_ROWS, the rows of the tile, is " FA__STR(FA_ROWS) ": 1 or more is needed, " FA__AS_A_NUMBER);
#undef FA_ROWS
#define FA_ROWS 16
#endif
#if !defined(FA_COLS)
#define FA_COLS undefined
#endif
#if FA_COLS + 0 < 8 || (FA_COLS + 0) % 8 != 0 || FA__IS_BARE(FA_COLS)
FA__REQUIRE(0, "FA_COLS, the columns of the tile, is " FA__STR(FA_COLS) ": a multiple of 8 is needed, " FA__AS_A_NUMBER);
#undef FA_COLS
#define FA_COLS 8
#endif
#if (FA_ROWS + 0) > 16777216 / (FA_COLS + 0) /* offsets in a tile are ints, of bytes, with what pads its rows */
FA__REQUIRE(0, "FA_ROWS is " FA__STR(FA_ROWS) " and FA_COLS is " FA__STR(FA_COLS) ": a tile has at most 2^24 elements");
#undef FA_ROWS
#define FA_ROWS 16
#undef FA_COLS
#define FA_COLS 8
#endif
#if !defined(FA_OPERAND)
#define FA_OPERAND FA_OPERAND_B
#elif FA_OPERAND + 0 != FA_OPERAND_A && FA_OPERAND + 0 != FA_OPERAND_B && FA_OPERAND + 0 != FA_OPERAND_BT
FA__REQUIRE(0, "FA_OPERAND is " FA__STR(FA_OPERAND) ": FA_OPERAND_A, FA_OPERAND_B or FA_OPERAND_BT is needed");
#undef FA_OPERAND
#define FA_OPERAND FA_OPERAND_B
#endif
#if !defined(FA_LOADER)
#define FA_LOADER FA_BLOCK
#elif FA_LOADER + 0 != FA_BLOCK && FA_LOADER + 0 != FA_POINTER && FA_LOADER + 0 != FA_TMA
FA__REQUIRE(0, "FA_LOADER is " FA__STR(FA_LOADER) ": FA_BLOCK, FA_POINTER or FA_TMA is needed");
#undef FA_LOADER
#define FA_LOADER FA_BLOCK
#elif FA_LOADER == FA_TMA && FA__ARCH != 90
#if !defined(FA__ARCH_STANDS_IN) /* else that has been said */
FA__REQUIRE(0, "FA_LOADER FA_TMA needs a copy engine: write FA_ARCH 90, and compile with -arch=sm_90a");
#endif
#undef FA_LOADER
#define FA_LOADER FA_BLOCK
#endif

#if FA_LOADER == FA_POINTER
#if !defined(FA_ROW_ADDRESS)
FA__REQUIRE(0, "FA_LOADER FA_POINTER needs FA_ROW_ADDRESS, a function (user, row) that returns the address of a row or NULL");
#define FA_ROW_ADDRESS(user, row) NULL
#elif FA__IS_NOTHING(FA_ROW_ADDRESS)
FA__REQUIRE(0, "FA_ROW_ADDRESS is empty: define it as the name of a function (user, row) that returns the address of a row or NULL");
#undef FA_ROW_ADDRESS
#define FA_ROW_ADDRESS(user, row) NULL
#endif
#if defined(FA_USER_ARGS)
#if FA__IS_NO_TYPE(FA__NO_TYPE FA_USER_ARGS (), 0, ~)
FA__REQUIRE(0, "FA_USER_ARGS is empty: define it as the type that FA_ROW_ADDRESS gets a pointer to, or not at all");
#undef FA_USER_ARGS
#define FA_USER_ARGS int
#endif
#endif
/* What the loader reads from: the caller's data, and the row of it at which the tile starts. */
typedef struct FA__TILE(_source) {
    const FA_USER_ARGS *user;
    int row;
} FA__TILE(_source);
FA__STRICT_BEGIN
FA__FN const void *FA__TILE(_row)(FA__TILE(_source) fa__source, int fa__row) { /* names that FA_ROW_ADDRESS cannot have */
    return FA_ROW_ADDRESS(fa__source.user, fa__source.row + fa__row);
}
FA__STRICT_END
FA__FN int FA__TILE(_cols)(FA__TILE(_source) source) {
    (void)source;
    return FA_COLS;
}
#elif FA_LOADER == FA_TMA
#include <fa/kernel/tensor_map.h>
#include <fa/mbarrier.h>
/* What the loader reads from: a head of a mapped tensor, and the row at which the tile starts. */
typedef struct FA__TILE(_source) {
    const fa_tensor_map *map;
    int row, head, batch;
} FA__TILE(_source);
#else
typedef fa_block FA__TILE(_source);
FA__FN const void *FA__TILE(_row)(fa_block block, int row) {
    if (FA__ARCH == FA_CPU && (unsigned)(row + block.row) >= (unsigned)block.rows) return NULL; /* before an address is made that no array has */
    const FA__ELEMENT *first = (const FA__ELEMENT *)block.data + block.row * block.stride_row;
    return (unsigned)(row + block.row) < (unsigned)block.rows ? first + row * block.stride_row : NULL;
}
FA__FN int FA__TILE(_cols)(fa_block block) { return block.cols < FA_COLS ? block.cols : FA_COLS; }
#endif

#include FA__LAYER(tile)

/* Closes a group of loads. */
FA__FN void FA__TILE(_commit)(void) { FA__OP(copy_commit)(); }
/* Waits until all but the latest `pending` groups of this thread have landed. */
FA__FN void FA__TILE(_wait)(int pending) { FA__OP(copy_wait)(pending); }

/* The block barrier: afterwards all threads see what any thread has waited for or written. */
FA__FN void FA__TILE(_barrier)(void) { FA__OP(barrier)(); }
/* The caller's index in its thread block. */
FA__FN int FA__TILE(_thread)(void) { return FA__OP(thread)(); }

#undef FA__ELEMENT
#undef FA__TILE
#undef FA_ROWS
#undef FA_COLS
#undef FA_OPERAND
#undef FA_LOADER
#undef FA_ROW_ADDRESS
#include <fa/arch/end.h>
