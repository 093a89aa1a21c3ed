/* launch.h: kernel<<<blocks, threads>>>(arguments) on the simulated GPU, of any number of arguments: the machine's own launch, as the library
 * calls it, is of one. Returns when the kernel has ended. */
#ifndef SIMULATOR_LAUNCH_H
#define SIMULATOR_LAUNCH_H

#include <functional>

static std::function<void()> simulator_body;
static void simulator_kernel(void) { simulator_body(); }

template <class... P, class... A>
static void simulator_launch(void (*kernel)(P...), unsigned blocks, unsigned threads, A... arguments) {
    static char none[4096]; /* what the machine takes for the kernel's parameters */
    void *parameters[1] = {none};
    simulator_body = [=] { kernel(arguments...); };
    cudaLaunchKernel((const void *)simulator_kernel, dim3(blocks), dim3(threads), parameters, 0, 0);
    cudaDeviceSynchronize();
}

#endif
