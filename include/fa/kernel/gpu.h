/**
 * @file gpu.h
 * @brief What the host side of every GPU template shares: errors of the runtime, launching.
 */
#ifndef FA_KERNEL_GPU_H
#define FA_KERNEL_GPU_H

#include <fa/fa.h>

#include <fa/arch/targets.h>

/** @cond PRIVATE */
/* The one dynamic shared array of the library: one name, one type, one alignment. */
#if defined(__CUDACC__)
extern __shared__ __align__(1024) unsigned char fa__shared[];
#endif

#define FA__ARCHITECTURES_(...) #__VA_ARGS__
#define FA__ARCHITECTURES(...) FA__ARCHITECTURES_(__VA_ARGS__)
#if defined(__CUDA_ARCH_LIST__)
#define FA__COMPILED_FOR FA__ARCHITECTURES(__CUDA_ARCH_LIST__)
#else
#define FA__COMPILED_FOR "an unknown target"
#endif

/* A status for an error of the runtime. */
FA__CALLED fa_status fa__cuda_failed(cudaError_t error, const char *name, const char *doing) {
    int device = 0, major = 0, minor = 0;
    switch (error) {
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
        return FA__FAIL(FA_ERROR_NO_DEVICE, "%s: no usable GPU: %s (%s): a GPU and a driver for it are needed, or an instance with FA_ARCH FA_CPU",
                        name, cudaGetErrorString(error), cudaGetErrorName(error));
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInvalidPtx:
        if (cudaGetDevice(&device) == cudaSuccess) {
            cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
            cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
        }
        if (major < 8)
            return FA__FAIL(FA_ERROR_ARCHITECTURE, "%s: device %d has compute capability %d.%d: 8.0 or newer is needed, or an instance with FA_ARCH FA_CPU",
                            name, device, major, minor);
        return FA__FAIL(FA_ERROR_ARCHITECTURE, "%s: compiled for %s, but device %d has compute capability %d.%d: compile with -arch=sm_%d%d%s (%s)",
                        name, FA__COMPILED_FOR, device, major, minor, major, minor, major >= 9 ? "a" : "", cudaGetErrorName(error));
    default:
        return FA__FAIL(FA_ERROR_CUDA, "%s: %s: %s (%s)", name, doing, cudaGetErrorString(error), cudaGetErrorName(error));
    }
}

/* A function of the driver, found through the runtime, so that nothing links against libcuda. `cache` keeps it: every
 * thread would write the same. */
static inline FA_UNUSED cudaError_t fa__driver(const char *function, void **cache, void **entry) {
    *entry = __atomic_load_n(cache, __ATOMIC_RELAXED);
    if (*entry) return cudaSuccess;
#if CUDART_VERSION >= 12050
    cudaDriverEntryPointQueryResult found;
    cudaError_t error = cudaGetDriverEntryPointByVersion(function, entry, 12000, cudaEnableDefault, &found);
#elif CUDART_VERSION >= 12000
    cudaDriverEntryPointQueryResult found;
    cudaError_t error = cudaGetDriverEntryPoint(function, entry, cudaEnableDefault, &found);
#else
    cudaError_t error = cudaGetDriverEntryPoint(function, entry, cudaEnableDefault);
#endif
    if (error != cudaSuccess || !*entry) return error != cudaSuccess ? error : cudaErrorInvalidValue;
    __atomic_store_n(cache, *entry, __ATOMIC_RELAXED);
    return cudaSuccess;
}

/* The current device, and the shared memory that a block may have there. */
FA__CALLED cudaError_t fa__most_shared(int *device, int *most) {
    cudaError_t error = cudaGetDevice(device);
    return error == cudaSuccess ? cudaDeviceGetAttribute(most, cudaDevAttrMaxSharedMemoryPerBlockOptin, *device) : error;
}
/* Whether a block may have so much. */
FA__CALLED fa_status fa__check_shared(const char *name, size_t bytes, int most) {
    if (bytes <= (size_t)most) return FA_OK;
    return FA__FAIL(FA_ERROR_RESOURCE, "%s: a thread block needs %zu bytes of shared memory and the device offers %d: choose a smaller FA_BLOCK_N, FA_BLOCK_M or FA_STAGES",
                    name, bytes, most);
}
/* Allows a kernel without static shared memory `most` bytes of dynamic shared memory: all that there is, not what a
 * launch needs, because a call in another thread, which needs less, may come between this and the launch. Uses the
 * driver's function, because cudaFuncSetAttribute() would clear an error that the caller has not looked at yet. */
FA__CALLED cudaError_t fa__reserve_shared(const void *kernel, int most) {
    enum { FA__MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 }; /* of CUfunction_attribute */
    typedef int (*set_attribute)(void *function, int attribute, int value);
    static void *set = NULL;
    cudaFunction_t function;
    void *entry;
    cudaError_t error = cudaGetFuncBySymbol(&function, kernel);
    if (error == cudaSuccess) error = fa__driver("cuFuncSetAttribute", &set, &entry);
    if (error != cudaSuccess) return error;
    return (cudaError_t)((set_attribute)entry)(function, FA__MAX_DYNAMIC_SHARED_SIZE_BYTES, most); /* the driver numbers its errors as the runtime does */
}

/* The compute capability, 89 for 8.9, of the code that a kernel was translated from. */
FA__CALLED cudaError_t fa__compiled_for(const void *kernel, int *capability) {
    struct cudaFuncAttributes compiled;
    cudaError_t error = cudaFuncGetAttributes(&compiled, kernel);
    *capability = error == cudaSuccess ? compiled.ptxVersion : 0;
    return error;
}
/* The same, or 0 if there is no device to tell. */
FA__CALLED int fa__capability_of(const void *kernel) {
    int capability;
    return fa__compiled_for(kernel, &capability) == cudaSuccess ? capability : 0;
}

/* The shape of a launch, in clusters of `clustered` blocks, and room for its attribute. */
typedef struct fa__shape {
    cudaLaunchConfig_t config;
    cudaLaunchAttribute cluster;
} fa__shape;
FA__CALLED cudaError_t fa__shape_of(fa__shape *s, const void *kernel, int64_t blocks, int threads, int clustered,
                                    size_t shared_bytes, fa_stream stream) {
    int device, most;
    cudaError_t error = cudaSuccess;
    if (shared_bytes > 48 * 1024) {
        error = fa__most_shared(&device, &most);
        if (error == cudaSuccess) error = fa__reserve_shared(kernel, most);
    }
    s->config.gridDim = dim3((unsigned)blocks, 1, 1);
    s->config.blockDim = dim3((unsigned)threads, 1, 1);
    s->config.dynamicSmemBytes = shared_bytes;
    s->config.stream = stream;
    s->cluster.id = cudaLaunchAttributeClusterDimension;
    s->cluster.val.clusterDim.x = (unsigned)clustered;
    s->cluster.val.clusterDim.y = s->cluster.val.clusterDim.z = 1;
    s->config.attrs = &s->cluster;
    s->config.numAttrs = clustered > 1;
    return error;
}
/* Launches a kernel with one parameter block. */
FA__CALLED fa_status fa__launch_blocks(const char *name, const void *kernel, int64_t blocks, int threads, int clustered,
                                       size_t shared_bytes, void *params, fa_stream stream) {
    fa__shape shape = {};
    void *arguments[1] = {params};
    cudaError_t error = fa__shape_of(&shape, kernel, blocks, threads, clustered, shared_bytes, stream);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "reserving shared memory");
    error = cudaLaunchKernelExC(&shape.config, kernel, arguments);
    return error == cudaSuccess ? FA_OK : fa__cuda_failed(error, name, "launching");
}
/* How many clusters the device has room for at a time. */
FA__CALLED fa_status fa__most_clusters(const char *name, const void *kernel, int threads, int clustered,
                                       size_t shared_bytes, int64_t *clusters) {
    fa__shape shape = {};
    int count = 0;
    cudaError_t error = fa__shape_of(&shape, kernel, clustered, threads, clustered, shared_bytes, NULL);
    if (error == cudaSuccess) error = cudaOccupancyMaxActiveClusters(&count, kernel, &shape.config);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "asking for the room for clusters");
    *clusters = count;
    return FA_OK;
}

/* Whether what a kernel needs fits: *shared_bytes of shared memory, which become less_bytes where it was compiled
 * for a GPU that has little (kernel/attention_loop_choices.h). */
FA__CALLED fa_status fa__fit_shared(const char *name, const void *kernel, size_t *shared_bytes, size_t less_bytes) {
    int device, most, capability = 0, major = 0, minor = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "asking for the current device");
    if (less_bytes < *shared_bytes) {
        error = fa__compiled_for(kernel, &capability);
        if (error != cudaSuccess) return fa__cuda_failed(error, name, "finding the kernel");
        if (FA__SMALL_SHARED(capability)) *shared_bytes = less_bytes;
    }
    if (*shared_bytes <= 48 * 1024) return FA_OK;
    error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "asking for the shared memory of the device");
    if (*shared_bytes > (size_t)most && less_bytes <= (size_t)most) {
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
        if (FA__SMALL_SHARED(major * 10 + minor))
            return FA__FAIL(FA_ERROR_ARCHITECTURE, "%s: compiled for compute capability %d.%d, whose tiles do not fit in the shared memory of device %d: compile with -arch=sm_%d%d",
                            name, capability / 10, capability % 10, device, major, minor);
    }
    return fa__check_shared(name, *shared_bytes, most);
}
/* fa__launch_blocks() without clusters, if what the kernel needs fits. */
FA__CALLED fa_status fa__launch(const char *name, const void *kernel, unsigned blocks, int threads, size_t shared_bytes,
                                size_t less_bytes, void *params, fa_stream stream) {
    const fa_status status = fa__fit_shared(name, kernel, &shared_bytes, less_bytes);
    return status == FA_OK ? fa__launch_blocks(name, kernel, blocks, threads, 1, shared_bytes, params, stream) : status;
}
/** @endcond */

#endif
