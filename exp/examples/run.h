/**
 * @file run.h
 * @brief Runs kernels of one argument, a struct, and takes their time. Included with
 *
 *     PROBLEM    the struct
 *     LAUNCH     name of the function that runs a kernel
 *     SECONDS    name of the one that times a function of a PROBLEM
 *
 * defined, all of which it undefines.
 */
#define RUN_JOIN(a, b) a##b
#define RUN_NAME(name, end) RUN_JOIN(name, end)

#if ON_GPU
/** Runs a kernel; returns at once. */
static UNUSED void LAUNCH(void (*kernel)(PROBLEM), int64_t blocks, int threads, const PROBLEM *p) {
    void *arguments[] = {(void *)p};
    CUDA(cudaLaunchKernel((const void *)kernel, dim3((unsigned)blocks), dim3((unsigned)threads), arguments, 0, 0));
}
#else
typedef struct RUN_NAME(LAUNCH, _job) {
    void (*kernel)(PROBLEM);
    const PROBLEM *p;
    int begin, end;
} RUN_NAME(LAUNCH, _job);
static UNUSED void *RUN_NAME(LAUNCH, _work)(void *argument) {
    RUN_NAME(LAUNCH, _job) job = *(RUN_NAME(LAUNCH, _job) *)argument;
    for (harness_block = job.begin; harness_block < job.end; harness_block++) job.kernel(*job.p);
    return NULL;
}
/** Runs the blocks on all cores, a contiguous part each. */
static UNUSED void LAUNCH(void (*kernel)(PROBLEM), int64_t blocks, int threads, const PROBLEM *p) {
    pthread_t thread[256];
    RUN_NAME(LAUNCH, _job) job[256];
    int workers = cores();
    (void)threads;
    for (int i = 0; i < workers; i++) {
        job[i].kernel = kernel, job[i].p = p;
        job[i].begin = (int)(blocks * i / workers), job[i].end = (int)(blocks * (i + 1) / workers);
        if (pthread_create(&thread[i], NULL, RUN_NAME(LAUNCH, _work), &job[i])) DIE("cannot start a thread");
    }
    for (int i = 0; i < workers; i++) pthread_join(thread[i], NULL);
}
#endif

/** Seconds that one of `repeats` runs in a row takes. */
static UNUSED double SECONDS(const PROBLEM *p, void (*run)(const PROBLEM *), int repeats) {
#if ON_GPU
    cudaEvent_t begin, end;
    float ms;
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    run(p); /* work ahead of the first event: the GPU never waits for the host */
    CUDA(cudaEventRecord(begin, 0));
    for (int i = 0; i < repeats; i++) run(p);
    CUDA(cudaEventRecord(end, 0));
    CUDA(cudaEventSynchronize(end));
    CUDA(cudaEventElapsedTime(&ms, begin, end));
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    return 1e-3 * ms / repeats;
#else
    double begin = now();
    for (int i = 0; i < repeats; i++) run(p);
    return (now() - begin) / repeats;
#endif
}

#undef RUN_JOIN
#undef RUN_NAME
#undef PROBLEM
#undef LAUNCH
#undef SECONDS
