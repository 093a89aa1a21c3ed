/* What the programs of the benchmark share: memory where kernels run, the clock, the instances' libraries and what
 * their compilation took, what machine this is. A program is C for the CPU and, compiled by nvcc, for the GPU. */
#ifndef FA_BENCH_BENCH_H
#define FA_BENCH_BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <fa/fa.h>

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#define ON_GPU 1
#else
#define ON_GPU 0
#endif

static const char *const dtype_names[5] = {"", "fp32", "fp16", "bf16", "tf32"};

static FILE *json;
static int json_cells;

static void die(const char *what, const char *why) {
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

/* An option's value, a whole number from 1 to `most`; or the first of several, and what follows it. */
static long whole_first(const char *option, const char *value, long most, char **rest) {
    long n = strtol(value, rest, 10);
    char why[64];
    snprintf(why, sizeof why, "a whole number from 1 to %ld is needed", most);
    if (*rest == value || n < 1 || n > most || (**rest && **rest != ',')) die(option, why);
    return n;
}
static long whole(const char *option, const char *value, long most) {
    char *rest;
    long n = whole_first(option, value, most, &rest);
    if (*rest) die(option, "a single whole number is needed");
    return n;
}
/* A list of them, separated by commas. */
static int whole_list(const char *option, const char *list, long most, int64_t *to, int room) {
    int count = 0;
    char *rest;
    for (const char *p = list;; p = rest + 1) {
        if (count == room) die(option, "too many numbers");
        to[count++] = whole_first(option, p, most, &rest);
        if (!*rest) return count;
    }
}
static int is_full(const char *grid) {
    if (strcmp(grid, "default") && strcmp(grid, "full")) die("--grid", "default or full is needed");
    return !strcmp(grid, "full");
}
static FILE *opened(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) die(path, "cannot be written");
    return file;
}

/* ------------------------------------------------------------------ memory */

static void *host_alloc(size_t bytes) {
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes ? bytes : 64)) die("host memory", "out of it");
    return p;
}

#if ON_GPU
static void cuda(cudaError_t e) {
    if (e != cudaSuccess) die("CUDA", cudaGetErrorString(e));
}
static void *device_alloc(size_t bytes) {
    void *p = NULL;
    cuda(cudaMalloc(&p, bytes ? bytes : 64));
    return p;
}
static void device_free(void *p) { cuda(cudaFree(p)); }
static FA_UNUSED void upload(void *to, const void *from, size_t bytes) {
    cuda(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
}
static void download(void *to, const void *from, size_t bytes) {
    cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
}
static void device_poison(void *p, size_t bytes) { cuda(cudaMemset(p, 0xFF, bytes)); }
static void device_wait(void) { cuda(cudaDeviceSynchronize()); }
#else
static void *device_alloc(size_t bytes) { return host_alloc(bytes); }
static void device_free(void *p) { free(p); }
static FA_UNUSED void upload(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }
static void download(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }
static void device_poison(void *p, size_t bytes) { memset(p, 0xFF, bytes); }
static void device_wait(void) {}
#endif

/* ------------------------------------------------------------------- clock */

static FA_UNUSED double wall_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of run(what). On a GPU a write of 256 MB before it empties the L2 cache, and is long enough that both
 * events and the launch are queued when it ends. What earlier kernels have marked to leave that cache last would
 * survive the write. */
static double time_once(void (*run)(const void *what), const void *what) {
#if ON_GPU
    static cudaEvent_t begin, end;
    static void *flush;
    const size_t flush_bytes = (size_t)256 << 20;
    float ms;
    if (!flush) {
        flush = device_alloc(flush_bytes);
        cuda(cudaEventCreate(&begin));
        cuda(cudaEventCreate(&end));
    }
    cuda(cudaCtxResetPersistingL2Cache());
    cuda(cudaMemsetAsync(flush, 0, flush_bytes, 0));
    cuda(cudaEventRecord(begin, 0));
    run(what);
    cuda(cudaEventRecord(end, 0));
    cuda(cudaEventSynchronize(end));
    cuda(cudaEventElapsedTime(&ms, begin, end));
    return 1e-3 * ms;
#else
    double begin = wall_seconds();
    run(what);
    return wall_seconds() - begin;
#endif
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double median(double *x, int n) {
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* What the JSON begins with. */
static void begin_json(int rounds) {
    if (json) fprintf(json, "{\n\"fa_version\": %d, \"repeat\": %d,\n", FA_VERSION, rounds);
}
/* A right cell's times, which median() has sorted: that, and between which half of them lie. */
static void print_times(const double *sorted, int n, double middle) {
    fprintf(json, "\"correct\": true, \"ms\": %.5f, \"ms_quartiles\": [%.5f, %.5f], ", 1e3 * middle, 1e3 * sorted[n / 4], 1e3 * sorted[n - 1 - n / 4]);
}

/* --------------------------------------------------------------- libraries */

static void *open_library(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) die(path, dlerror());
    return library;
}
/* A function of a library: read what this returns through a pointer to a function. */
static void *find_function(void *library, const char *path, const char *name) {
    void *function = dlsym(library, name);
    if (!function) die(path, dlerror());
    return function;
}
/* An instance's name: that of its file, without the ending. */
static void instance_name(char *name, size_t size, const char *path) {
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    snprintf(name, size, "%.*s", (int)strcspn(base, "."), base);
}

/* What an instance's compilation took (measure.c); registers and spills are -1 where they are not known. */
typedef struct {
    double seconds, cpu_seconds, peak_mb;
    int registers, spill_bytes;
} compilation;

static compilation load_compilation(const char *path) {
    compilation c = {0, 0, 0, -1, -1};
    char note[4096], word[64];
    double value;
    snprintf(note, sizeof note, "%.*s.compile", (int)(strlen(path) - 3), path);
    FILE *file = fopen(note, "r");
    while (file && fscanf(file, "%63s %lf", word, &value) == 2) {
        if (!strcmp(word, "seconds")) c.seconds = value;
        if (!strcmp(word, "cpu_seconds")) c.cpu_seconds = value;
        if (!strcmp(word, "peak_mb")) c.peak_mb = value;
        if (!strcmp(word, "registers")) c.registers = (int)value;
        if (!strcmp(word, "spill_bytes")) c.spill_bytes = (int)value;
    }
    if (file) fclose(file);
    return c;
}

/* A line of the table of compilations, which number 0 begins; and the same in the JSON's list. */
static void print_compilation(int number, const char *name, const compilation *c) {
    if (number == 0)
        printf("\n%-34s%10s%10s%10s%12s%10s\n", "instance", "compile s", "cpu s", "peak MB", "registers", "spills B");
    printf("%-34s%10.2f%10.2f%10.0f", name, c->seconds, c->cpu_seconds, c->peak_mb);
    if (c->registers >= 0) printf("%12d%10d", c->registers, c->spill_bytes);
    printf("\n");
    if (json)
        fprintf(json,
                "%s\n  {\"instance\": \"%s\", \"seconds\": %.2f, \"cpu_seconds\": %.2f, \"peak_mb\": %.0f, "
                "\"registers\": %d, \"spill_bytes\": %d}",
                number ? "," : "", name, c->seconds, c->cpu_seconds, c->peak_mb, c->registers, c->spill_bytes);
}

/* ----------------------------------------------------------------- machine */

/* Prints the state of the clocks, and puts it into the JSON. */
static void print_state(const char *when) {
#if ON_GPU
    char line[512];
    FILE *p = popen(
        "nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.draw,temperature.gpu "
        "--format=csv,noheader 2>/dev/null",
        "r");
    if (json) fprintf(json, "\"state_%s\": \"", when);
    while (p && fgets(line, sizeof line, p)) {
        line[strcspn(line, "\n")] = 0;
        printf("%s: %s\n", when, line);
        if (json) fprintf(json, "%s", line);
    }
    if (p) pclose(p);
    if (json) fprintf(json, "\",\n");
#else
    (void)when;
#endif
}

#if ON_GPU
static void print_gpu(void) {
    int runtime = 0, driver = 0;
    struct cudaDeviceProp properties;
    cuda(cudaRuntimeGetVersion(&runtime));
    cuda(cudaDriverGetVersion(&driver));
    cuda(cudaGetDeviceProperties(&properties, 0));
    printf("GPU: %s, %d multiprocessors, compute capability %d.%d, CUDA runtime %d.%d, driver API %d.%d\n",
           properties.name, properties.multiProcessorCount, properties.major, properties.minor, runtime / 1000,
           runtime % 1000 / 10, driver / 1000, driver % 1000 / 10);
    if (json) fprintf(json, "\"device\": \"%s\", \"runtime\": %d,\n", properties.name, runtime);
}
#else
/* Threads that fa will use. */
static int cpu_threads(void) {
    int count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set)) count = CPU_COUNT(&set);
    if (getenv("FA_THREADS") && atoi(getenv("FA_THREADS")) > 0) count = atoi(getenv("FA_THREADS"));
    return count;
}
static void cpu_model(char *model, size_t size) {
    char line[256];
    FILE *info = fopen("/proc/cpuinfo", "r");
    snprintf(model, size, "an unnamed processor");
    while (info && fgets(line, sizeof line, info))
        if (!strncmp(line, "model name", 10) && strchr(line, ':')) {
            snprintf(model, size, "%s", strchr(line, ':') + 2);
            model[strcspn(model, "\n")] = 0;
            break;
        }
    if (info) fclose(info);
}
#endif

#endif
