/* cuda_runtime.h of the simulator: what the library and its tests use of CUDA C++ and of the CUDA runtime, for a C++
 * compiler of the host. It is found in place of the toolkit's; machine.cpp implements it. */
#ifndef SIMULATOR_CUDA_RUNTIME_H
#define SIMULATOR_CUDA_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

/* ---- the language ---- */

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ __attribute__((section("shared"))) thread_local /* of the thread that runs a block: static where it is in a function */

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1) : x(of_x), y(of_y), z(of_z) {}
};
typedef struct uint2 {
    uint32_t x, y;
} uint2;
typedef struct float2 {
    float x, y;
} float2;
typedef struct __align__(16) uint4 {
    uint32_t x, y, z, w;
} uint4;
typedef struct __align__(16) float4 {
    float x, y, z, w;
} float4;
static inline uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

extern dim3 threadIdx, blockIdx, blockDim, gridDim;
void machine_barrier(void);
static inline void __syncthreads(void) { machine_barrier(); }
int machine_cluster_rank(void);
void machine_cluster_arrive(void);
void machine_cluster_wait(void);
static inline unsigned __clusterRelativeBlockRank(void) { return (unsigned)machine_cluster_rank(); }
static inline void __cluster_barrier_arrive_relaxed(void) { machine_cluster_arrive(); }
static inline void __cluster_barrier_wait(void) { machine_cluster_wait(); }

/* ---- the runtime ---- */

#define CUDART_VERSION 13000

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorInsufficientDriver = 35,
    cudaErrorStubLibrary = 34,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorInvalidPtx = 218,
    cudaErrorUnsupportedPtxVersion = 222,
    cudaErrorSystemDriverMismatch = 803,
    cudaErrorCompatNotSupportedOnDevice = 804
} cudaError_t;
enum cudaDeviceAttr {
    cudaDevAttrMaxSharedMemoryPerBlockOptin,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor,
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrComputeCapabilityMajor,
    cudaDevAttrComputeCapabilityMinor
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal };
enum { cudaStreamNonBlocking = 1, cudaEnableDefault = 0 };
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess };
enum cudaLaunchAttributeID { cudaLaunchAttributeClusterDimension };

typedef struct CUstream_st *cudaStream_t;
typedef struct simulator_graph *cudaGraph_t, *cudaGraphExec_t;
typedef void *cudaFunction_t;
struct cudaDeviceProp {
    int major, minor, multiProcessorCount;
    size_t totalGlobalMem;
};
struct cudaFuncAttributes {
    int ptxVersion, binaryVersion, maxThreadsPerBlock;
};
typedef struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    struct {
        struct {
            unsigned x, y, z;
        } clusterDim;
    } val;
} cudaLaunchAttribute;
typedef struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
} cudaLaunchConfig_t;

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize(void);

cudaError_t cudaMalloc(void **data, size_t bytes);
cudaError_t cudaFree(void *data);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
/* Variables of kernels are variables. */
#define cudaMemcpyToSymbol(symbol, from, bytes, offset, kind) cudaMemcpy((char *)&(symbol) + (offset), from, bytes, kind)
#define cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind) cudaMemcpy(to, (const char *)&(symbol) + (offset), bytes, kind)
cudaError_t cudaMemset(void *data, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *data, int value, size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *launchable, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t launchable, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t launchable);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel);
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *kernel);
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version, unsigned long long flags,
                                             cudaDriverEntryPointQueryResult *found);
/* A kernel has one parameter, a struct of up to 1 KB, or 2 KB of the GPU of capability 9.0. */
cudaError_t cudaLaunchKernel(const void *kernel, dim3 blocks, dim3 threads, void **arguments, size_t shared_bytes,
                             cudaStream_t stream);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *launch, const void *kernel, void **arguments);
extern unsigned simulator_cluster_blocks; /* there is no room for a cluster of more; a test may lower it */
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *kernel, const cudaLaunchConfig_t *launch);

#endif
