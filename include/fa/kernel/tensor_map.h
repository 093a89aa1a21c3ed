/**
 * @file tensor_map.h
 * @brief Tensor maps: what the copy engine of sm_90 and newer knows of a tensor.
 */
#ifndef FA_KERNEL_TENSOR_MAP_H
#define FA_KERNEL_TENSOR_MAP_H

#include <fa/kernel/gpu.h>
#include <fa/arch/sm90/layout.h>

/** A tensor map: made on the host by NAME_map() of a tile with FA_LOADER FA_TMA, passed to a kernel as a
 *  `const __grid_constant__` parameter (or a part of one). Opaque; the size and alignment of a CUtensorMap. */
typedef struct fa_tensor_map {
    uint64_t opaque[16]; /**< the driver's own */
} __attribute__((__aligned__(64))) fa_tensor_map;

/** @cond PRIVATE */
/* Whether a dimension of a map may have this stride, in 16-bit elements. The stride of a dimension of size 1 is
 * ignored. */
static inline FA_UNUSED int fa__mappable_stride(int64_t stride, int size) {
    return size <= 1 || (stride >= 0 && stride % 8 == 0 && stride < (int64_t)1 << 39);
}
/* Whether a map of the tensor can be made. */
FA__CALLED fa_status fa__mappable(const char *name, fa_tensor tensor, int batch, int heads, int seqlen) {
    if (batch < 1 || heads < 1 || seqlen < 1)
        return FA__FAIL(FA_ERROR_ARGUMENT,
                        "%s: a tensor map of %d batches, %d heads and %d rows: each must be 1 or more", name, batch,
                        heads, seqlen);
    if (!tensor.data || (uintptr_t)tensor.data % 16 != 0)
        return FA__FAIL(FA_ERROR_ARGUMENT, "%s: data is %p: a tensor map needs an address aligned to 16 bytes", name,
                        tensor.data);
    for (int i = 0; i < 3; i++) {
        const char *const which[3] = {"seq", "head", "batch"};
        const int size[3] = {seqlen, heads, batch};
        const int64_t stride[3] = {tensor.stride_seq, tensor.stride_head, tensor.stride_batch};
        if (!fa__mappable_stride(stride[i], size[i]))
            return FA__FAIL(
                FA_ERROR_ARGUMENT,
                "%s: stride_%s is %lld elements: a tensor map needs a multiple of 8 (16 bytes) from 0 to 2^39 - 8 (FA_ARCH 80 needs no map)",
                name, which[i], (long long)stride[i]);
    }
    return FA_OK;
}

/* The map of a (batch, heads, seqlen, cols) tensor in half precision, for tiles of `tile_rows` rows by `tile_cols`
 * columns, in boxes of 64 columns in the 128-byte swizzle; elements of a box outside the tensor arrive as zeros.
 * Where the last 64 columns are fewer, they have a map of their own, the second one, or the first if there are no
 * others: in shared memory, rows of a narrower box are 128 bytes apart, too, and what is between them stays as it is
 * (CUDA C++ Programming Guide, "Tensor Memory Access": the swizzle's width is what rows take). Promotion is how much
 * the L2 cache is asked for at a time: with 256 bytes, rows whose last 16 begin a unit of 32 are 0.94 to 0.99 times
 * as fast, and others as fast (H200). The driver's function is found through the runtime, and its enumerations are
 * written out here, so that neither cuda.h nor libcuda is needed (CUDA driver API, cuTensorMapEncodeTiled). */
FA__CALLED fa_status fa__tensor_map(const char *name, fa_tensor_map *map, int dtype, fa_tensor tensor,
                                                 int batch, int heads, int seqlen, int cols, int tile_rows, int tile_cols) {
    enum {
        FA__FLOAT16 = 6,
        FA__BFLOAT16 = 9,
        FA__INTERLEAVE_NONE = 0,
        FA__SWIZZLE_128B = 3,
        FA__L2_PROMOTION_128B = 2,
        FA__OUTSIDE_IS_ZERO = 0
    };
    typedef int (*encode_tiled)(void *map, int type, uint32_t rank, void *address, const uint64_t *size,
                                const uint64_t *stride, const uint32_t *box, const uint32_t *element_stride,
                                int interleave, int swizzle, int promotion, int outside);
    static void *encode = NULL;
    void *entry;
    if (!map) return FA__FAIL(FA_ERROR_ARGUMENT, "%s: map is NULL: point it to an fa_tensor_map", name);
    fa_status status = fa__mappable(name, tensor, batch, heads, seqlen);
    if (status != FA_OK) return status;
    cudaError_t error = fa__driver("cuTensorMapEncodeTiled", &encode, &entry);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "finding cuTensorMapEncodeTiled in the driver");
    uint64_t size[4] = {(uint64_t)cols, (uint64_t)seqlen, (uint64_t)heads, (uint64_t)batch};
    uint64_t stride[3] = {(uint64_t)tensor.stride_seq * 2, (uint64_t)tensor.stride_head * 2,
                          (uint64_t)tensor.stride_batch * 2};
    uint32_t box[4] = {FA__SM90_PANEL, (uint32_t)tile_rows, 1, 1}, element_stride[4] = {1, 1, 1, 1};
    for (int i = 0; i < 3; i++)
        if (size[i + 1] == 1) stride[i] = ((uint64_t)cols * 2 + 15) / 16 * 16;
    int result = 0;
    for (int i = 0; result == 0 && i < FA__SM90_MAPS(tile_cols); i++) {
        if (i == FA__SM90_MAPS(tile_cols) - 1) box[0] = (uint32_t)FA__SM90_LAST(tile_cols);
        result = ((encode_tiled)entry)(map + i, dtype == FA_F16 ? FA__FLOAT16 : FA__BFLOAT16, 4, tensor.data, size, stride, box, element_stride,
                                       FA__INTERLEAVE_NONE, FA__SWIZZLE_128B, FA__L2_PROMOTION_128B, FA__OUTSIDE_IS_ZERO);
    }
    if (result != 0)
        return FA__FAIL(
            FA_ERROR_CUDA,
            "%s: the driver makes no tensor map (CUresult %d) of a tensor at %p with %d x %d x %d rows of %d, strides %lld, %lld, %lld",
            name, result, tensor.data, batch, heads, seqlen, cols, (long long)tensor.stride_batch,
            (long long)tensor.stride_head, (long long)tensor.stride_seq);
    return FA_OK;
}
/** @endcond */

#endif
