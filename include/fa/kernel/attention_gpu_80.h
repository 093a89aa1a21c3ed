/* attention_gpu_80.h: the schedule for every GPU of an instance with one size of tiles, FA__VARIANT: kernel, launch
 * and plan. */

#include <fa/kernel/attention_tiles.h>
#include <fa/kernel/attention_loop.h>
FA__REQUIRE(sizeof(FA__LOOP(_shared)) <= 227 * 1024,
            "the tiles do not fit in 227 KB of shared memory: choose a smaller FA_BLOCK_N, FA_BLOCK_M or FA_STAGES");
FA__REQUIRE(!FA__SCARCE || sizeof(FA__LOOP(_shared)) <= 99 * 1024, "the library's own tiles for GPUs with 99 KB of shared memory do not fit there");

#if FA__FILL_90 || (FA__HAS_OTHER && defined(__CUDA_ARCH__) && FA__OTHER_FOR(__CUDA_ARCH__ / 10) != FA__OTHER)
static __global__ void __launch_bounds__(FA__EMPTY_THREADS) FA__LOOP(_kernel)(const __grid_constant__ FA__PARAMS p) {
    (void)p;
}
#else
static __global__ void __launch_bounds__(FA_WARPS * 32, FA__RESIDENT)
    FA__LOOP(_kernel)(const __grid_constant__ FA__PARAMS p) {
    FA__LOOP(_run)(&p, FA__ATTN(__box)(&p, blockIdx.x, FA_BLOCK_M), (FA__LOOP(_shared) *)fa__shared, (int)threadIdx.x);
}
#endif

/* Bytes of shared memory that the kernel takes where it was compiled for a GPU with little of it: those of one
 * stage, unless its tiles are made for such GPUs (FA__SCARCE). FA__AMPLE tiles are never chosen there: theirs are
 * only for fa__launch()'s message. */
#if FA__AMPLE
enum { FA__LOOP(_less_shared) = FA__ATTN(_sm80_less_shared) };
#else
enum { FA__LOOP(_less_shared) = sizeof(FA__LOOP(_shared)) - (FA__SCARCE ? 0 : FA_STAGES - 1) * FA__LOOP(_stage_bytes) - FA__LOOP(_bias_bytes) };
#endif

FA__CALLED fa_status FA__LOOP(_forward)(const fa_attention_args *args, fa_stream stream) {
    FA__PARAMS p;
    fa_status status = FA__ATTN(__prepare)(args, &p, FA_BLOCK_M);
    if (status != FA_OK || p.items == 0) return status;
#if FA__COLUMNS
    FA__ATTN(__fold_scale)(&p, p.scale);
#endif
    return fa__launch(FA__STR(FA__ATTN()), (const void *)FA__LOOP(_kernel), p.items, FA_WARPS * 32, sizeof(FA__LOOP(_shared)),
                      FA__LOOP(_less_shared), &p, stream);
}
FA__CALLED fa_status FA__LOOP(_plan)(const fa_attention_args *args, FA__PARAMS *p, fa_plan *plan) {
    fa_status status = FA__ATTN(__prepare)(args, p, FA_BLOCK_M);
    if (status != FA_OK || !plan) return status;
    size_t shared_bytes = sizeof(FA__LOOP(_shared));
    int device;
    /* If there is a device to tell: tiles may be too large for it. */
    if (p->items > 0 && cudaGetDevice(&device) == cudaSuccess)
        status = fa__fit_shared(FA__STR(FA__ATTN()), (const void *)FA__LOOP(_kernel), &shared_bytes, FA__LOOP(_less_shared));
    if (status != FA_OK) return status;
    FA__ATTN(__describe)(p, plan, FA_BLOCK_M, FA_BLOCK_N, shared_bytes < sizeof(FA__LOOP(_shared)) ? 1 : FA_STAGES, FA_WARPS);
    plan->schedule = "sm_80";
    plan->arch = 80;
    plan->threads = FA_WARPS * 32;
    plan->shared_bytes = shared_bytes;
    return FA_OK;
}
#undef FA__LOOP
#undef FA__VARIANT
#include <fa/kernel/attention_tiles_end.h>
