#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "memory.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tap.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }
static size_t whole_pages(size_t bytes) { return (bytes + page() - 1) / page() * page(); }

static void *new_host(size_t bytes) {
    size_t inner = whole_pages(bytes);
    char *base = (char *)mmap(NULL, inner + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) tap_bail("mmap of %zu bytes failed", bytes);
    if (inner && mprotect(base + page(), inner, PROT_READ | PROT_WRITE)) tap_bail("mprotect of %zu bytes failed", inner);
    return base + page() + (inner - bytes);
}

#if defined(__CUDACC__)
static void cuda_must(cudaError_t error, const char *what) {
    if (error != cudaSuccess) tap_bail("%s: %s", what, cudaGetErrorString(error));
}
#endif

int memory_has_device(const char **why) {
#if defined(__CUDACC__)
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0) return 1;
    *why = error == cudaSuccess ? "no GPU" : cudaGetErrorString(error);
    cudaGetLastError();
    return 0;
#else
    *why = "compiled without nvcc";
    return 0;
#endif
}

void *memory_new(memory_place place, size_t bytes) {
    if (place == MEMORY_HOST) return new_host(bytes);
#if defined(__CUDACC__)
    void *data = NULL;
    cuda_must(cudaMalloc(&data, bytes ? bytes : 1), "cudaMalloc");
    return data;
#else
    tap_bail("device memory without nvcc");
#endif
}

void memory_delete(memory_place place, void *data, size_t bytes) {
    if (place == MEMORY_HOST) {
        uintptr_t inner = (uintptr_t)data - (whole_pages(bytes) - bytes);
        munmap((void *)(inner - page()), whole_pages(bytes) + 2 * page());
        return;
    }
#if defined(__CUDACC__)
    cuda_must(cudaFree(data), "cudaFree");
#endif
}

void memory_put(memory_place place, void *destination, const void *source, size_t bytes) {
    if (!bytes) return;
    if (place == MEMORY_HOST) {
        memcpy(destination, source, bytes);
        return;
    }
#if defined(__CUDACC__)
    cuda_must(cudaMemcpy(destination, source, bytes, cudaMemcpyHostToDevice), "copy to the device");
#endif
}

void memory_get(memory_place place, void *destination, const void *source, size_t bytes) {
    if (!bytes) return;
    if (place == MEMORY_HOST) {
        memcpy(destination, source, bytes);
        return;
    }
#if defined(__CUDACC__)
    cuda_must(cudaMemcpy(destination, source, bytes, cudaMemcpyDeviceToHost), "copy to the host");
#endif
}

void memory_launched(void) {
#if defined(__CUDACC__)
    cuda_must(cudaGetLastError(), "a kernel was not launched");
#endif
}

const char *memory_wait(memory_place place) {
    if (place == MEMORY_HOST) return NULL;
#if defined(__CUDACC__)
    cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) return cudaGetErrorString(error);
#endif
    return NULL;
}

void memory_finish(memory_place place) {
    const char *late = memory_wait(place);
    if (late) tap_bail("%s", late);
}
