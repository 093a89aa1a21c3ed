/* gpu.c: what is a GPU's alone: streams, graph capture, several devices, errors that were there before, a program
 * compiled for another architecture. Compiled by nvcc. */
#include <cuda_runtime.h>
#include <string.h>

#include "../harness/check.h"
#include "../harness/tap.h"
#include "hooks.h"

#define FA_NAME g_bf16
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#define FA_MASK fa_causal
#include <fa/attention.h>

static const instance bf16 = {"g_bf16", MASK_causal, SCORE_none, FA_BF16, 64, 64, g_bf16_forward, g_bf16_plan, g_bf16_workspace};
static rng random_numbers;

/* 1 if the downloaded outputs are those of the reference. */
static int outputs_right(problem *p, const result *exact, tolerance allowed) {
    double worst = 0;
    problem_download(p);
    return check_outputs(p, exact, allowed, &worst, 0);
}

static void streams(problem *p, const result *exact, tolerance allowed) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t launchable;
    fa_status status;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    problem_upload(p);
    status = p->of.forward(&p->args, stream);
    cudaStreamSynchronize(stream);
    tap_ok(status == FA_OK && outputs_right(p, exact, allowed), "a call in a stream");

    memset(p->o.host, PROBLEM_POISON, p->o.bytes), memset(p->lse.host, PROBLEM_POISON, p->lse.bytes);
    problem_upload(p);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    status = p->of.forward(&p->args, stream);
    tap_ok(cudaStreamEndCapture(stream, &graph) == cudaSuccess && status == FA_OK, "a call can be captured in a graph");
    problem_download(p);
    {
        int untouched = 1;
        for (size_t i = 0; i < p->o.bytes; i++) untouched &= p->o.host[i] == PROBLEM_POISON;
        tap_ok(untouched, "nothing runs during the capture");
    }
    tap_ok(cudaGraphInstantiate(&launchable, graph, 0) == cudaSuccess && cudaGraphLaunch(launchable, stream) == cudaSuccess &&
               cudaStreamSynchronize(stream) == cudaSuccess && outputs_right(p, exact, allowed),
           "the graph computes what the call does");
    cudaGraphExecDestroy(launchable);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
}

static void earlier_errors(problem *p, const result *exact, tolerance allowed) {
    fa_status status;
    memset(p->o.host, PROBLEM_POISON, p->o.bytes), memset(p->lse.host, PROBLEM_POISON, p->lse.bytes);
    problem_upload(p);
    cudaGetLastError();
    cudaSetDevice(9999); /* an error of the caller's own, which he has not looked at yet */
    status = p->of.forward(&p->args, 0);
    tap_ok(status == FA_OK, "an earlier CUDA error is not reported as ours (%s)", fa_status_string(status));
    tap_ok(cudaPeekAtLastError() == cudaErrorInvalidDevice, "an earlier CUDA error is not cleared");
    cudaGetLastError();
    tap_ok(outputs_right(p, exact, allowed), "the call after an earlier error computes");
}

static void devices(void) {
    int count = 0, device;
    cudaGetDeviceCount(&count);
    if (count < 2) {
        tap_skip("several devices: there is one");
        return;
    }
    for (device = 0; device < count && device < 4; device++) {
        shape s = shape_plain(1, 2, 2, 200, 300);
        double worst = 0;
        cudaSetDevice(device);
        tap_ok(check_shape(&bf16, &s, &random_numbers, &worst), "device %d of %d", device, count);
    }
    cudaSetDevice(0);
}

int main(void) {
    const char *why = NULL;
    shape s = shape_plain(1, 2, 1, 300, 333);
    problem p;
    result exact;
    tolerance allowed;
    check_place = MEMORY_DEVICE;
    random_numbers = rng_new(rng_seed(), 30);
    if (!memory_has_device(&why)) {
        tap_skip("streams, graphs and errors of the GPU: %s", why);
        return tap_end();
    }
#if defined(TEST_WRONG_ARCHITECTURE)
    {
        char flag[32];
        cudaDeviceProp properties;
        fa_status status;
        cudaGetDeviceProperties(&properties, 0);
        snprintf(flag, sizeof flag, "-arch=sm_%d%d", properties.major, properties.minor);
        problem_new(&p, &bf16, &s, check_place, &random_numbers);
        status = p.of.forward(&p.args, 0);
        tap_ok(status == FA_ERROR_ARCHITECTURE && strstr(fa_last_error(), flag) && !strncmp(fa_last_error(), "g_bf16:", 7),
               "compiled for another architecture: %s: %s", fa_status_string(status), fa_last_error());
        return tap_end();
    }
#endif
    problem_new(&p, &bf16, &s, check_place, &random_numbers);
    exact = result_new(&p);
    allowed = check_prepare(&p, &exact, 256, &random_numbers);
    streams(&p, &exact, allowed);
    earlier_errors(&p, &exact, allowed);
    result_delete(&exact);
    problem_delete(&p);
    devices();
    return tap_end();
}
