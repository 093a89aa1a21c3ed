/* launch.h: kernel<<<blocks, threads, shared_bytes>>>(arguments) on the simulated GPU, of any number of arguments:
 * the machine's own launch, as the library calls it, is of one. Returns when the kernel has ended.
 * simulator_launch_clusters(): by clusters of so many blocks. */
#ifndef SIMULATOR_LAUNCH_H
#define SIMULATOR_LAUNCH_H

#include <functional>

#include "machine.h"

static std::function<void()> simulator_body;
static void simulator_kernel(void) { simulator_body(); }

template <class... P, class... A>
static void simulator_launch_clusters(void (*kernel)(P...), unsigned blocks, unsigned threads, unsigned clustered, size_t shared_bytes, A... arguments) {
    static char none[2048]; /* what the machine takes for the kernel's parameters */
    void *parameters[1] = {none};
    cudaLaunchAttribute cluster = {cudaLaunchAttributeClusterDimension, {{clustered, 1, 1}}};
    const cudaLaunchConfig_t launch = {dim3(blocks), dim3(threads), shared_bytes, 0, &cluster, 1};
    simulator_body = [=] { kernel(arguments...); };
    const cudaError_t error = cudaLaunchKernelExC(&launch, (const void *)simulator_kernel, parameters);
    machine_must(error == cudaSuccess, "no such launch: blocks, threads, clusters or bytes of shared memory");
    cudaDeviceSynchronize();
}
template <class... P, class... A>
static void simulator_launch(void (*kernel)(P...), unsigned blocks, unsigned threads, size_t shared_bytes, A... arguments) {
    simulator_launch_clusters(kernel, blocks, threads, 1, shared_bytes, arguments...);
}

#endif
