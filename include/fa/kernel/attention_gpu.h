/* attention_gpu.h: the forward on GPUs: the plain schedule as a kernel, and the call. */
#include <fa/kernel/gpu.h>

#define FA__VARIANT _sm80
#include <fa/kernel/attention_loop.h>

FA__REQUIRE(sizeof(FA__LOOP(_shared)) <= 227 * 1024,
            "the tiles do not fit in 227 KB of shared memory: choose a smaller FA_BLOCK_N, FA_BLOCK_M or FA_STAGES");

static __global__ void __launch_bounds__(FA_WARPS * 32, FA__RESIDENT) FA__LOOP(_kernel)(const __grid_constant__ FA__PARAMS p) {
    FA__LOOP(_run)(&p, FA__ATTN(__box)(&p, blockIdx.x, FA_BLOCK_M), (FA__LOOP(_shared) *)fa__shared, (int)threadIdx.x);
}

/** Attention forward: launches on the stream and returns. */
FA_API fa_status FA__ATTN(_forward)(const fa_attention_args *args, fa_stream stream) {
    FA__PARAMS p;
    fa_status status = FA__ATTN(__prepare)(args, &p);
    if (status != FA_OK || p.items == 0) return status;
    return fa__launch(FA__STR(FA__ATTN()), (const void *)FA__LOOP(_kernel), p.items, FA_WARPS * 32, sizeof(FA__LOOP(_shared)),
                      sizeof(FA__LOOP(_shared)) - (FA_STAGES - 1) * (sizeof(FA__LOOP(_ktile_tile)) + sizeof(FA__LOOP(_vtile_tile))), &p, stream);
}

/* Masks read device memory, so their tiles are counted there. */
#if FA__HAS_MASK
static __device__ unsigned long long FA__LOOP(_counts)[2];
static __global__ void FA__LOOP(_count_kernel)(const __grid_constant__ FA__PARAMS p) {
    int64_t visited = 0, masked = 0;
    uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= p.items) return;
    FA__ATTN(__count)(&p, item, &visited, &masked);
    atomicAdd(&FA__LOOP(_counts)[0], (unsigned long long)visited);
    atomicAdd(&FA__LOOP(_counts)[1], (unsigned long long)masked);
}
static FA_UNUSED fa_status FA__LOOP(_count_tiles)(FA__PARAMS *p, fa_plan *plan) {
    unsigned long long counts[2] = {0, 0};
    cudaError_t error = cudaMemcpyToSymbol(FA__LOOP(_counts), counts, sizeof counts, 0, cudaMemcpyHostToDevice);
    if (error != cudaSuccess) return fa__cuda_failed(error, FA__STR(FA__ATTN()), "clearing the tile counts");
    fa_status status = fa__launch(FA__STR(FA__ATTN()), (const void *)FA__LOOP(_count_kernel), (p->items + 127) / 128, 128, 0, 0, p, 0);
    if (status != FA_OK) return status;
    error = cudaMemcpyFromSymbol(counts, FA__LOOP(_counts), sizeof counts, 0, cudaMemcpyDeviceToHost);
    if (error != cudaSuccess) return fa__cuda_failed(error, FA__STR(FA__ATTN()), "counting tiles");
    plan->tiles_visited = (int64_t)counts[0];
    plan->tiles_masked = (int64_t)counts[1];
    return FA_OK;
}
#endif

/** Says what NAME_forward() would run with these arguments. With a mask it counts tiles on the device, on the default
 *  stream, and waits: not for captures, and one call at a time. */
FA_API fa_status FA__ATTN(_plan)(const fa_attention_args *args, fa_plan *plan) {
    FA__PARAMS p;
    fa_status status = FA__ATTN(__prepare)(args, &p);
    if (status != FA_OK) return status;
    if (!plan) return FA__FAIL(FA_ERROR_ARGUMENT, "%s: plan is NULL: point it to an fa_plan", FA__STR(FA__ATTN()));
    FA__ATTN(__describe)(&p, plan);
    plan->schedule = "sm_80";
    plan->arch = 80;
    plan->threads = FA_WARPS * 32;
    plan->shared_bytes = sizeof(FA__LOOP(_shared));
#if FA__HAS_MASK
    if (p.items > 0 && plan->tiles_total > 0 && (status = FA__LOOP(_count_tiles)(&p, plan)) != FA_OK) return status;
#endif
    plan->tiles_skipped = plan->tiles_total - plan->tiles_visited;
    return FA_OK;
}
#undef FA__LOOP
#undef FA__VARIANT
