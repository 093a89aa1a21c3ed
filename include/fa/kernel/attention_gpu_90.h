/* attention_gpu_90.h: the sm_90a schedule of an instance with one size of tiles, FA__VARIANT: kernel, launch and
 * plan. */

#include <fa/kernel/attention_tiles.h>
#include <fa/kernel/attention_warpgroups.h>
enum { FA__LOOP(_shared_bytes) = FA__TEAMS * (int)sizeof(FA__LOOP(_shared)) }; /* of a thread block */
FA__REQUIRE(FA__LOOP(_shared_bytes) <= 227 * 1024,
            "the tiles do not fit in 227 KB of shared memory: choose a smaller FA_BLOCK_N, FA_BLOCK_M or FA_STAGES");
/* Beyond that the assembler serialises the products, or gives up. */
FA__REQUIRE(FA_BLOCK_N / 2 + FA_BLOCK_N / 4 + FA_HEAD_DIM_V / 2 <= (FA__TEAMS > 1 ? 88 : FA_BLOCK_M > 128 ? 132 : 212),
            "the registers of a warpgroup do not hold S, P and O with FA_BLOCK_M " FA__STR(FA_BLOCK_M) ", FA_BLOCK_N " FA__STR(
                FA_BLOCK_N) " and FA_HEAD_DIM_V " FA__STR(FA_HEAD_DIM_V) ": choose a smaller FA_BLOCK_N, or, where FA_BLOCK_M is larger, 128 with FA_WARPS 8");

#if FA__FILL_90
static __global__ void __launch_bounds__(FA__LOOP(_threads), 1)
    FA__LOOP(_kernel)(const __grid_constant__ FA__LOOP(_launch) launch) {
    FA__LOOP(_run)(&launch, (FA__LOOP(_shared) *)fa__shared);
}
#else
static __global__ void __launch_bounds__(FA__EMPTY_THREADS)
    FA__LOOP(_kernel)(const __grid_constant__ FA__LOOP(_launch) launch) {
    (void)launch;
}
#endif

#if !FA__LONG
/* Without keys O is 0 and lse -inf. The schedule cannot do this: it begins a block with a tile, and there is no key to
 * call hooks with, not even the last one, which stands for those beyond the end. */
static __global__ void __launch_bounds__(FA__KEYLESS_THREADS) FA__ATTN(__keyless_kernel)(const __grid_constant__ FA__PARAMS p) {
#if FA__FILL_90
    enum { FA__VECTORS = FA_HEAD_DIM_V * (int)sizeof(FA__ELEMENT) / 16 };
    const uint32_t zeros[4] = {0, 0, 0, 0};
    const fa_box box = FA__ATTN(__box)(&p, blockIdx.x, FA_BLOCK_M);
    const fa_tensor *o = &p.args.o;
    char *head = (char *)o->data + (box.batch * o->stride_batch + box.head * o->stride_head) * (int64_t)sizeof(FA__ELEMENT);
    FA__ROLL
    for (int i = (int)threadIdx.x; i < (box.queries.end - box.queries.begin) * FA__VECTORS; i += FA__KEYLESS_THREADS) {
        const int query = box.queries.begin + i / FA__VECTORS, vector = i % FA__VECTORS;
        fa_sm80_store16(head + query * o->stride_seq * (int64_t)sizeof(FA__ELEMENT) + vector * 16, zeros);
        if (p.args.lse && vector == 0) p.args.lse[((int64_t)box.batch * p.args.heads + box.head) * p.args.seqlen_q + query] = -INFINITY;
    }
#else
    (void)p;
#endif
}
#endif

/* Whether maps of the tensors can be made. */
FA__CALLED fa_status FA__LOOP(_mappable)(const FA__PARAMS *p) {
    const fa_attention_args *a = &p->args;
    const char *const name[] = {FA__STR(FA__ATTN()) ": q", FA__STR(FA__ATTN()) ": o", FA__STR(FA__ATTN()) ": k", FA__STR(FA__ATTN()) ": v"};
    const fa_tensor *const mapped[] = {&a->q, &a->o, &a->k, &a->v};
    fa_status status = FA_OK;
    for (int i = 0; status == FA_OK && p->items > 0 && a->seqlen_k > 0 && i < 4; i++) /* without keys there are no maps */
        status = fa__mappable(name[i], *mapped[i], a->batch, i < 2 ? a->heads : a->heads_kv, i < 2 ? a->seqlen_q : a->seqlen_k);
    return status;
}

/* Thread blocks of a launch: persistent, one on each multiprocessor. */
FA__CALLED uint32_t FA__LOOP(_blocks_of)(const FA__PARAMS *p, fa_status *status) {
    int device, processors = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    *status = error == cudaSuccess ? FA_OK : fa__cuda_failed(error, FA__STR(FA__ATTN()), "asking for the multiprocessors of the device");
    const uint32_t most = (p->items + FA__TEAMS - 1) / FA__TEAMS;
    return p->args.seqlen_k == 0 ? p->items : most < (uint32_t)processors ? most : (uint32_t)processors; /* without keys they are not persistent */
}

FA__CALLED fa_status FA__LOOP(_forward)(const fa_attention_args *args, fa_stream stream) {
    FA__LOOP(_launch) launch;
    fa_status status = FA__ATTN(__prepare)(args, &launch.p, FA_BLOCK_M);
    if (status != FA_OK || launch.p.items == 0) return status;
    const fa_attention_args *a = &launch.p.args;
    if (a->seqlen_k == 0)
        return fa__launch(FA__STR(FA__ATTN()), (const void *)FA__ATTN(__keyless_kernel), launch.p.items, FA__KEYLESS_THREADS, 0, 0, &launch.p,
                          stream);
    if ((status = FA__LOOP(_mappable)(&launch.p)) != FA_OK) return status; /* the error of making a map cannot say which tensor it is about */
    if ((status = FA__LOOP(_qtile_map)(launch.q, a->q, a->batch, a->heads, a->seqlen_q)) != FA_OK) return status;
    if ((status = FA__LOOP(_otile_map)(launch.o, a->o, a->batch, a->heads, a->seqlen_q)) != FA_OK) return status;
    if ((status = FA__LOOP(_ktile_map)(launch.k, a->k, a->batch, a->heads_kv, a->seqlen_k)) != FA_OK) return status;
    if ((status = FA__LOOP(_vtile_map)(launch.v, a->v, a->batch, a->heads_kv, a->seqlen_k)) != FA_OK) return status;
#if FA__BIAS_TILES
    launch.bias_comes = FA__LOOP(_bias_mappable)(&launch.p);
    if (launch.bias_comes && (status = FA__LOOP(_bias_map)(launch.bias, &launch.p)) != FA_OK) return status;
#endif
    const uint32_t blocks = FA__LOOP(_blocks_of)(&launch.p, &status), teams = FA__TEAMS * blocks;
    if (status != FA_OK) return status;
    FA__LOOP(_order_of)(&launch.order, &launch.p, teams < launch.p.items ? teams : launch.p.items);
#if FA__COUNTED
    const cudaError_t error = launch.order.counter ? cudaMemsetAsync(launch.order.counter, 0, sizeof *launch.order.counter, stream) : cudaSuccess;
    if (error != cudaSuccess) return fa__cuda_failed(error, FA__STR(FA__ATTN()), "setting the workspace to 0");
#endif
#if FA__COLUMNS
    FA__ATTN(__fold_scale)(&launch.p, launch.p.scale);
#endif
    return fa__launch(FA__STR(FA__ATTN()), (const void *)FA__LOOP(_kernel), blocks, FA__LOOP(_threads),
                      FA__LOOP(_shared_bytes), FA__LOOP(_shared_bytes), &launch, stream);
}
FA__CALLED fa_status FA__LOOP(_plan)(const fa_attention_args *args, FA__PARAMS *p, fa_plan *plan) {
    fa_status status = FA__ATTN(__prepare)(args, p, FA_BLOCK_M);
    if (status != FA_OK) return status;
#if FA__COUNTED
    const fa_attention_args *a = &p->args;
    if (a->workspace && (a->workspace_bytes < sizeof(uint32_t) || (uintptr_t)a->workspace % 16 != 0))
        return FA__FAIL(FA_ERROR_WORKSPACE, "%s: workspace is %p with workspace_bytes %zu: it is optional, NULL, or %zu bytes, as %s_workspace() says, aligned to 16",
                        FA__STR(FA__ATTN()), a->workspace, a->workspace_bytes, sizeof(uint32_t), FA__STR(FA__ATTN()));
#endif
    if (!plan || (status = FA__LOOP(_mappable)(p)) != FA_OK) return status;
    FA__ATTN(__describe)(p, plan, FA_BLOCK_M, FA_BLOCK_N, FA_STAGES, FA__TEAMS * FA__LOOP(_groups) * 4);
    plan->schedule = "sm_90a";
    plan->arch = 90;
    plan->threads = FA__LOOP(_threads);
    plan->shared_bytes = FA__LOOP(_shared_bytes);
    plan->blocks = FA__LOOP(_blocks_of)(p, &status);
    if (p->args.seqlen_k == 0) plan->threads = FA__KEYLESS_THREADS, plan->shared_bytes = 0;
    return status;
}
FA__REQUIRE(CUDART_VERSION >= 12010 || sizeof(FA__LOOP(_launch)) <= 4096, "FA_USER_ARGS is too large: before CUDA 12.1 a kernel's parameters hold 4 KB, of which the library's own leave some 2.2 KB: pass a pointer inside it");
#undef FA__LOOP
#undef FA__VARIANT
#include <fa/kernel/attention_tiles_end.h>
