/* attention_gpu.h: the forward on GPUs: a kernel for each schedule that the compiler's targets can run, and the
 * call. */
#include <fa/kernel/gpu.h>

/* Whether the user has chosen the size of tiles. */
#if defined(FA_BLOCK_M) || defined(FA_BLOCK_N) || defined(FA_WARPS) || defined(FA_STAGES)
#define FA__SIZED 1
#else
#define FA__SIZED 0
#endif
/* Which schedules an instance has. sm_90a has one of its own, for half types; tile sizes without FA_ARCH are for the
 * one that runs everywhere. Each compilation for a device fills in the kernel for its target and leaves the other
 * empty. */
#if !defined(FA_ARCH) || FA__ARCH == 80
#define FA__HAS_80 1
#else
#define FA__HAS_80 0
#endif
#if defined(FA_ARCH) ? FA__ARCH == 90 : FA__COMPILES_90 && FA__IS_HALF && !FA__SIZED
#define FA__HAS_90 1
#else
#define FA__HAS_90 0
#endif
#if FA__HAS_90 && defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define FA__FILL_90 1
#else
#define FA__FILL_90 0
#endif
/* Whether query blocks may be handed out by a counter in a workspace: under a mask that reads memory, or may, it is
 * not known beforehand how long they take. A prefix only adds some keys to a causal mask; the schedule for every GPU
 * leaves the order to the hardware. */
#if FA__HAS_90 && FA__MASK_READS
#define FA__COUNTED 1
#else
#define FA__COUNTED 0
#endif
/* nvcc's preprocessor cannot tell -arch=sm_90 from the generic half of -arch=sm_90a, which is only translated to PTX.
 * So this kernel, which the assembler refuses for a real GPU, has the error message as its name. */
#if FA__HAS_90 && !FA__HAS_80 && defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900 && !FA__FILL_90
__global__ void FA__ATTN(__FA_ARCH_90_needs_nvcc_arch_sm_90a)(int *x) {
    __shared__ int too_much[70000];
    too_much[threadIdx.x] = *x;
    *x = too_much[*x];
}
#endif
/* An empty kernel is recognised by its launch bound: nothing else of a kernel's attributes shows whether it was
 * compiled for sm_90 or sm_90a. */
#define FA__EMPTY_THREADS 32
#define FA__KEYLESS_THREADS 128

#if FA__HAS_80
#define FA__OTHER 0
#define FA__VARIANT _sm80
#include <fa/kernel/attention_gpu_80.h>
#if FA__HAS_OTHER
#undef FA__OTHER
#define FA__OTHER 1
#define FA__VARIANT _sm80_other
#include <fa/kernel/attention_gpu_80.h>
/* Function `call` of whichever of the two was compiled for this device. */
#define FA__CHOOSE_80(call, ...)                                                                                                                \
    (FA__OTHER_FOR(fa__capability_of((const void *)FA__ATTN(_sm80_other_kernel))) ? FA__ATTN(_sm80_other##call)(__VA_ARGS__) \
                                                                                  : FA__ATTN(_sm80##call)(__VA_ARGS__))
#else
#define FA__CHOOSE_80(call, ...) FA__ATTN(_sm80##call)(__VA_ARGS__)
#endif
#undef FA__OTHER
#endif

#if FA__HAS_90
#include <fa/arch/unbind.h>
#define FA__BIND 90
#include <fa/arch/bind.h>
#define FA__LONG 0
#define FA__VARIANT _sm90
#include <fa/kernel/attention_gpu_90.h>
#if FA__LONG_FROM
#undef FA__LONG
#define FA__LONG 1
#define FA__VARIANT _sm90_long
#include <fa/kernel/attention_gpu_90.h>
#endif
#undef FA__LONG

/* Function `call` of whichever of the two is for these arguments. */
#if FA__LONG_FROM
/* Whether the last queries, which see most under a causal mask, see many keys. */
static FA_UNUSED int FA__ATTN(_sm90_is_long)(const FA__PARAMS *p) {
    const fa_attention_args *a = &p->args;
    fa_box last = {a, 0, 0, 0, {a->seqlen_q > 64 ? a->seqlen_q - 64 : 0, a->seqlen_q}, {0, a->seqlen_k}};
    if (p->items == 0 || a->seqlen_k == 0) return 0;
#if FA__MASK_IS_PREFIX /* the host cannot read prefixes; whatever they are, the last query sees all keys */
    const fa_range keys = last.keys;
#else
    const fa_range keys = FA__ATTN(__keys)(p, last);
#endif
    return keys.end - keys.begin >= FA__LONG_FROM;
}
#define FA__CHOOSE_90(call, ...) \
    (FA__ATTN(_sm90_is_long)(&p) ? FA__ATTN(_sm90_long##call)(__VA_ARGS__) : FA__ATTN(_sm90##call)(__VA_ARGS__))
#else
#define FA__CHOOSE_90(call, ...) FA__ATTN(_sm90##call)(__VA_ARGS__)
#endif

/* Whether this schedule can run on the current device: 1 or 0; -1 if it must (FA_ARCH 90) and cannot, with *status. */
FA__CALLED int FA__ATTN(_sm90_usable)(fa_status *status) {
    struct cudaFuncAttributes kernel;
    int device, major = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (error == cudaSuccess && major == 9)
        error = cudaFuncGetAttributes(&kernel, (const void *)FA__ATTN(_sm90_kernel));
    if (error != cudaSuccess) {
        *status = fa__cuda_failed(error, FA__STR(FA__ATTN()), "finding the kernel");
        return -1;
    }
    if (major == 9 && kernel.maxThreadsPerBlock > FA__EMPTY_THREADS) return 1;
    if (FA__HAS_80) return 0;
    *status = FA__FAIL(
        FA_ERROR_ARCHITECTURE,
        "%s: FA_ARCH 90 runs on compute capability 9.0, compiled for sm_90a; device %d has %d.x, and the program code for %s: write FA_ARCH 80, or nothing",
        FA__STR(FA__ATTN()), device, major, FA__COMPILED_FOR);
    return -1;
}
#endif

/** Attention forward: launches on the stream and returns. */
FA_API fa_status FA__ATTN(_forward)(const fa_attention_args *args, fa_stream stream) {
#if FA__HAS_90
    FA__PARAMS p;
    fa_status status =
        FA__ATTN(_sm90_plan)(args, &p, NULL); /* wrong arguments are wrong everywhere: no device is needed to refuse them */
    if (status != FA_OK || p.items == 0) return status;
    int usable = FA__ATTN(_sm90_usable)(&status);
    if (usable < 0) return status;
    if (usable) return FA__CHOOSE_90(_forward, args, stream);
#elif FA__HAS_OTHER
    FA__PARAMS p;
    const fa_status status = FA__ATTN(_sm80_plan)(args, &p, NULL); /* no device is needed to refuse them */
    if (status != FA_OK || p.items == 0) return status;
#endif
#if FA__HAS_80
    return FA__CHOOSE_80(_forward, args, stream);
#else
    return FA_OK; /* not reached */
#endif
}

/* Masks read device memory, so their tiles are counted there. */
#if FA__HAS_MASK
static __device__ unsigned long long FA__ATTN(__counts)[2];
typedef struct FA__ATTN(__count_call) {
    FA__PARAMS p;
    int block_m, block_n;
} FA__ATTN(__count_call);
static __global__ void FA__ATTN(__count_kernel)(const __grid_constant__ FA__ATTN(__count_call) call) {
    int64_t visited = 0, masked = 0;
    uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= call.p.items) return;
    FA__ATTN(__count)(&call.p, item, call.block_m, call.block_n, &visited, &masked);
    fa_sm80_add_to(&FA__ATTN(__counts)[0], visited);
    fa_sm80_add_to(&FA__ATTN(__counts)[1], masked);
}
FA__CALLED fa_status FA__ATTN(__count_tiles)(FA__PARAMS *p, fa_plan *plan) {
    const char *name = FA__STR(FA__ATTN());
    static char busy; /* threads of the host take turns with the counters */
    unsigned long long counts[2] = {0, 0};
    FA__ATTN(__count_call) call = {*p, plan->block_m, plan->block_n};
    void *arguments[1] = {&call};
    while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE)) {}
    cudaError_t error = cudaMemcpyToSymbol(FA__ATTN(__counts), counts, sizeof counts, 0, cudaMemcpyHostToDevice);
    if (error == cudaSuccess)
        error = cudaLaunchKernel((const void *)FA__ATTN(__count_kernel), dim3((p->items + 127) / 128, 1, 1),
                                 dim3(128, 1, 1), arguments, 0, 0);
    if (error == cudaSuccess)
        error = cudaMemcpyFromSymbol(counts, FA__ATTN(__counts), sizeof counts, 0, cudaMemcpyDeviceToHost);
    __atomic_clear(&busy, __ATOMIC_RELEASE);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "counting tiles");
    plan->tiles_visited = (int64_t)counts[0];
    plan->tiles_masked = (int64_t)counts[1];
    return FA_OK;
}
#endif

/** Says what NAME_forward() would run with these arguments. With a mask it counts tiles on the device, on the default
 *  stream, and waits: it cannot be captured in a graph. */
FA_API fa_status FA__ATTN(_plan)(const fa_attention_args *args, fa_plan *plan) {
    FA__PARAMS p;
    fa_status status;
    int usable = 0;
#if FA__HAS_90
    if ((status = FA__ATTN(_sm90_plan)(args, &p, NULL)) != FA_OK) return status;
#endif
#if FA__HAS_80
    if ((status = FA__ATTN(_sm80_plan)(args, &p, NULL)) != FA_OK) return status;
#endif
    if (!plan) return FA__FAIL(FA_ERROR_ARGUMENT, "%s: plan is NULL: point it to an fa_plan", FA__STR(FA__ATTN()));
#if FA__HAS_90
    if ((usable = FA__ATTN(_sm90_usable)(&status)) < 0) return status;
    if (usable && (status = FA__CHOOSE_90(_plan, args, &p, plan)) != FA_OK) return status;
#endif
#if FA__HAS_80
    if (!usable && (status = FA__CHOOSE_80(_plan, args, &p, plan)) != FA_OK) return status;
#endif
#if FA__HAS_MASK
    if (p.items > 0 && plan->tiles_total > 0 && (status = FA__ATTN(__count_tiles)(&p, plan)) != FA_OK) return status;
#endif
    plan->tiles_skipped = plan->tiles_total - plan->tiles_visited;
    plan->workspace_bytes = FA__ATTN(_workspace)(args);
    return FA_OK;
}

/** Bytes of workspace with which NAME_forward() balances the work under a mask whose cost it cannot foresee, or 0. The
 *  results are the same without it. */
FA_API size_t FA__ATTN(_workspace)(const fa_attention_args *args) {
    (void)args;
    return FA__COUNTED ? sizeof(uint32_t) : 0;
}
#undef FA__HAS_80
#undef FA__HAS_90
#undef FA__COUNTED
#undef FA__LONG_FROM
#undef FA__CHOOSE_90
#undef FA__CHOOSE_80
#undef FA__HAS_OTHER
#undef FA__OTHER_FOR
#undef FA__SIZED
#undef FA__FILL_90
#undef FA__EMPTY_THREADS
#undef FA__KEYLESS_THREADS
