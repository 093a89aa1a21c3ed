/**
 * @file threads.h
 * @brief Runs work items on all cores: threads live as long as the call, and take items from a counter.
 */
#ifndef FA_ARCH_CPU_THREADS_H
#define FA_ARCH_CPU_THREADS_H

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include <fa/fa.h>

/** @cond PRIVATE */
#define FA__MAX_THREADS 1024

/* A job: run(job) takes items with fa__job_next() until none is left. */
typedef struct fa__job {
    void (*run)(struct fa__job *job);
    const void *params;
    int64_t items;
    int64_t next __attribute__((__aligned__(8))); /* i386 aligns it to 4, and clang would call libatomic */
    size_t stack_bytes; /* that run() needs beyond a few KB */
    int group;          /* blocks of an item */
    int threads;        /* to use, the caller's among them */
    pthread_t caller;   /* fa__job_run()'s */
} fa__job;

/* The next item, or -1. */
static inline FA_UNUSED int64_t fa__job_next(fa__job *job) {
    int64_t item = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
    return item < job->items ? item : -1;
}

/* Whether this thread was started for the job, and so has stack_bytes of stack. The caller's has what it has. */
static inline FA_UNUSED int fa__job_is_own(const fa__job *job) { return !pthread_equal(job->caller, pthread_self()); }

static FA_UNUSED void *fa__job_thread(void *job) {
    ((fa__job *)job)->run((fa__job *)job);
    return NULL;
}

#if defined(__linux__) && !defined(__cplusplus) && !defined(__USE_MISC)
extern long syscall(long number, ...); /* which glibc hides from -std=c11 */
#endif
/* Processors that this process may run on: fewer than there are, under taskset or in a cpuset. */
static inline FA_UNUSED long fa__processors(void) {
    long n = 0;
#if defined(__linux__) && defined(SYS_sched_getaffinity)
    unsigned long mask[64] = {0};
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    for (long i = 0; i < bytes / (long)sizeof mask[0]; i++) n += __builtin_popcountl(mask[i]);
#endif
    return n > 0 ? n : sysconf(_SC_NPROCESSORS_ONLN);
}

/* A thread takes some 30 us to start, in which a core does this much. */
#define FA__FLOPS_WORTH_A_THREAD 4e6

/* How many threads to use: as asked, or FA_THREADS from the environment, or one a processor if there is work for them;
 * never more than items. */
static inline FA_UNUSED int fa__thread_count(int asked, int64_t items, double flops) {
    const char *from_environment = getenv("FA_THREADS");
    long n = asked;
    if (n <= 0 && from_environment) {
        char *end;
        n = strtol(from_environment, &end, 10);
        if (*end) n = 0; /* not a number */
    }
    if (n <= 0) {
        n = fa__processors();
        if ((double)n > flops / FA__FLOPS_WORTH_A_THREAD) n = (long)(flops / FA__FLOPS_WORTH_A_THREAD);
    }
    if (n > FA__MAX_THREADS) n = FA__MAX_THREADS;
    if (n > items) n = (long)items;
    return n < 1 ? 1 : (int)n;
}

/* Runs the job. If the system gives fewer threads, those do it all. */
static inline FA_UNUSED void fa__job_run(fa__job *job) {
    pthread_t others[FA__MAX_THREADS];
    pthread_attr_t attributes;
    job->caller = pthread_self();
    int started = 0, with_attributes = pthread_attr_init(&attributes) == 0;
#if !defined(__ANDROID__)
    int cancel; /* the other threads use what is on this one's stack */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
#endif
    /* The default stack need not hold the tiles: it may be small (128 KB with musl), and what the program has for
     * each thread takes most of it, or all, with glibc. So theirs is as much larger. */
    size_t least = (job->stack_bytes + (2 << 20)) / 65536 * 65536, usual = 0;
    if (with_attributes) {
        if (pthread_attr_getstacksize(&attributes, &usual) != 0) usual = 0;
        pthread_attr_setstacksize(&attributes, least + usual);
    }
    while (started < job->threads - 1 &&
           pthread_create(&others[started], with_attributes ? &attributes : NULL, fa__job_thread, job) == 0)
        started++;
    if (with_attributes) pthread_attr_destroy(&attributes);
    job->run(job);
    for (int i = 0; i < started; i++) pthread_join(others[i], NULL);
#if !defined(__ANDROID__)
    pthread_setcancelstate(cancel, NULL);
#endif
}
/** @endcond */

#endif
