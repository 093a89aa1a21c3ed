/**
 * @file threads.h
 * @brief Runs work items on all cores: threads live as long as the call, and take items from a counter.
 */
#ifndef FA_ARCH_CPU_THREADS_H
#define FA_ARCH_CPU_THREADS_H

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <fa/fa.h>

/** @cond PRIVATE */
#define FA__MAX_THREADS 256

/* A job: run(job) takes items with fa__job_next() until none is left. */
typedef struct fa__job {
    void (*run)(struct fa__job *job);
    const void *params;
    int64_t items;
    int64_t next;
} fa__job;

/* The next item, or -1. */
static inline FA_UNUSED int64_t fa__job_next(fa__job *job) {
    int64_t item = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
    return item < job->items ? item : -1;
}

static FA_UNUSED void *fa__job_thread(void *job) {
    ((fa__job *)job)->run((fa__job *)job);
    return NULL;
}

/* How many threads to use: as asked, or FA_THREADS from the environment, or one a core; never more than items. */
static inline FA_UNUSED int fa__thread_count(int asked, int64_t items) {
    const char *from_environment = getenv("FA_THREADS");
    long n = asked;
    if (n <= 0 && from_environment) n = strtol(from_environment, NULL, 10);
    if (n <= 0) n = sysconf(_SC_NPROCESSORS_ONLN);
    if (n > FA__MAX_THREADS) n = FA__MAX_THREADS;
    if (n > items) n = (long)items;
    return n < 1 ? 1 : (int)n;
}

/* Runs the job on `threads` threads, the caller's among them. If the system gives fewer, those do it all. */
static inline FA_UNUSED void fa__job_run(fa__job *job, int threads) {
    pthread_t others[FA__MAX_THREADS];
    int started = 0;
    while (started < threads - 1 && pthread_create(&others[started], NULL, fa__job_thread, job) == 0) started++;
    job->run(job);
    for (int i = 0; i < started; i++) pthread_join(others[i], NULL);
}
/** @endcond */

#endif
