/* Times the kernels that work row by row beside a plain copy of the same memory: a C program for the CPU (gcc -x c) and,
 * compiled by nvcc, for the GPU. An instance is a shared library whose file name says what it is (bench.mk): data type and
 * kernel. Every cell is checked against float64 before it is timed.
 *
 *     rows [--grid default|full] [--elements N] [--columns 1024,4096] [--repeat N] [--json FILE] [--tsv FILE]
 *          [--markdown FILE] LIBRARY.so...
 *
 * A matrix has about `elements` elements, however long its rows are. Useful bytes count each matrix that a direction must
 * read or write once; weights and a value for each row are free. Time is the median of `repeat` rounds, in each of which
 * the copies and every instance, both ways, run once, in rotating order; bench.h empties the L2 cache before each.
 * The copy is the faster of two: the driver's and a kernel's on a GPU, memcpy() by all threads and, on x86-64, stores past the
 * caches on the CPU, where the same threads have touched the memory first. Where a direction only reads matrices, it is compared
 * with a kernel, or threads, that only read. */
#include "bench.h"
#include "rows_kernels.h"

#if !ON_GPU
#include <pthread.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif
#endif

enum { MAX_INSTANCES = 64, MAX_REPEAT = 256, MAX_COLUMNS = 16, SAMPLED = 24 };

typedef struct {
    char name[128];
    int dtype, tensors;
    const kernel_spec *kernel;
    const tensor_spec *tensor[MAX_TENSORS]; /* in the library's order */
    int (*run)(int, void *const *, int64_t, int64_t, void *, size_t, fa_stream);
    size_t (*workspace_bytes)(int64_t, int64_t);
    const char *(*refusal)(int64_t, int64_t);
    const char *(*last_error)(void);
    compilation compiled;
    void *data[MAX_TENSORS], *workspace; /* where the kernel runs */
    size_t workspace_size;
} instance;

/* ------------------------------------------------------------- copy and read */

typedef struct {
    const void *from;
    void *to;
    size_t bytes;
    size_t first; /* of fill(): the number of the first element, */
    int dtype;    /* and what they are */
    uint32_t stream;
    float deviation;
    size_t *found; /* by count_nan() */
} transfer;

#if ON_GPU
enum { THREADS = 512, EACH = 4 }; /* vectors of 16 bytes that a thread has under way */
static __global__ void __launch_bounds__(THREADS) copy_kernel(const uint4 *from, uint4 *to, size_t vectors) {
    size_t i = (size_t)blockIdx.x * THREADS * EACH + threadIdx.x;
    uint4 v[EACH];
#pragma unroll
    for (int j = 0; j < EACH; j++)
        if (i + j * THREADS < vectors) v[j] = from[i + j * THREADS];
#pragma unroll
    for (int j = 0; j < EACH; j++)
        if (i + j * THREADS < vectors) to[i + j * THREADS] = v[j];
}
static __global__ void __launch_bounds__(THREADS) read_kernel(const uint4 *from, uint4 *to, size_t vectors) {
    size_t i = (size_t)blockIdx.x * THREADS * EACH + threadIdx.x;
    uint32_t all = 0;
#pragma unroll
    for (int j = 0; j < EACH; j++)
        if (i + j * THREADS < vectors) {
            uint4 v = from[i + j * THREADS];
            all |= v.x ^ v.y ^ v.z ^ v.w;
        }
    if (all == 0x80000001u) to[0].x = all; /* which the compiler cannot exclude */
}
static unsigned blocks_of(size_t vectors) { return (unsigned)((vectors + THREADS * EACH - 1) / (THREADS * EACH)); }
static void run_copy(const void *what) {
    const transfer *t = (const transfer *)what;
    copy_kernel<<<blocks_of(t->bytes / 16), THREADS>>>((const uint4 *)t->from, (uint4 *)t->to, t->bytes / 16);
}
static void run_driver_copy(const void *what) {
    const transfer *t = (const transfer *)what;
    cuda(cudaMemcpyAsync(t->to, t->from, t->bytes, cudaMemcpyDeviceToDevice, 0));
}
static void run_read(const void *what) {
    const transfer *t = (const transfer *)what;
    read_kernel<<<blocks_of(t->bytes / 16), THREADS>>>((const uint4 *)t->from, (uint4 *)t->to, t->bytes / 16);
}
static void (*const plain[])(const void *) = {run_copy, run_driver_copy, run_read};
#else
static int threads;
static volatile uint64_t sink;
static void *copy_part(void *part) {
    const transfer *t = (const transfer *)part;
    memcpy(t->to, t->from, t->bytes);
    return NULL;
}
#if defined(__x86_64__)
static void *stream_part(void *part) {
    const transfer *t = (const transfer *)part;
    for (size_t i = 0; i < t->bytes / 64; i++) {
        const __m128i *from = (const __m128i *)t->from + 4 * i;
        __m128i *to = (__m128i *)t->to + 4 * i, a = from[0], b = from[1], c = from[2], d = from[3];
        _mm_stream_si128(to, a), _mm_stream_si128(to + 1, b), _mm_stream_si128(to + 2, c), _mm_stream_si128(to + 3, d);
    }
    _mm_sfence();
    return NULL;
}
#endif
static void *read_part(void *part) {
    const transfer *t = (const transfer *)part;
    const uint64_t *from = (const uint64_t *)t->from;
    uint64_t sum[8] = {0};
    for (size_t i = 0; i < t->bytes / 64; i++)
        for (int j = 0; j < 8; j++) sum[j] ^= from[8 * i + (size_t)j];
    sink = sum[0] ^ sum[1] ^ sum[2] ^ sum[3] ^ sum[4] ^ sum[5] ^ sum[6] ^ sum[7];
    return NULL;
}
static void *fill_part(void *part) {
    const transfer *t = (const transfer *)part;
    for (size_t i = 0; i < t->bytes / (size_t)fa_dtype_bytes(t->dtype); i++)
        fa_store_element(t->to, (int64_t)i, t->dtype, element(t->stream, t->first + i, t->deviation));
    return NULL;
}
static void *count_part(void *part) {
    const transfer *t = (const transfer *)part;
    size_t found = 0;
    for (size_t i = 0; i < t->bytes / (size_t)fa_dtype_bytes(t->dtype); i++) found += (size_t)is_nan(t->to, i, t->dtype);
    __atomic_fetch_add(t->found, found, __ATOMIC_RELAXED);
    return NULL;
}
static void share(void *(*work)(void *), const void *what) {
    enum { MOST = 1024 };
    const transfer *all = (const transfer *)what;
    static transfer part[MOST];
    static pthread_t thread[MOST];
    int count = threads < MOST ? threads : MOST, started = 0;
    size_t each = ((all->bytes + (size_t)count - 1) / (size_t)count + 4095) / 4096 * 4096;
    for (int i = 0; i < count; i++) {
        size_t begin = (size_t)i * each < all->bytes ? (size_t)i * each : all->bytes;
        part[i] = *all;
        part[i].from = (const char *)all->from + begin, part[i].to = (char *)all->to + begin;
        part[i].first = begin / (size_t)fa_dtype_bytes(all->dtype ? all->dtype : FA_F32);
        part[i].bytes = all->bytes - begin < each ? all->bytes - begin : each;
    }
    while (started < count - 1 && !pthread_create(&thread[started], NULL, work, &part[started])) started++;
    for (int i = started; i < count; i++) work(&part[i]);
    for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
}
static void run_copy(const void *what) { share(copy_part, what); }
static void run_read(const void *what) { share(read_part, what); }
#if defined(__x86_64__)
static void run_stream(const void *what) { share(stream_part, what); }
static void (*const plain[])(const void *) = {run_copy, run_stream, run_read};
#else
static void (*const plain[])(const void *) = {run_copy, run_read};
#endif
#endif
enum { PLAIN = sizeof plain / sizeof plain[0] }; /* the last one reads */

/* --------------------------------------------------------------------- data */

static size_t elements;

#if ON_GPU
static __global__ void fill_kernel(void *to, size_t count, int dtype, uint32_t stream, float deviation) {
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        fa_store_element(to, (int64_t)i, dtype, element(stream, i, deviation));
}
static __global__ void nan_kernel(const void *from, size_t count, int dtype, unsigned long long *found) {
    size_t step = (size_t)gridDim.x * blockDim.x;
    unsigned long long mine = 0;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) mine += is_nan(from, i, dtype);
    if (mine) atomicAdd(found, mine);
}
static __global__ void gather_kernel(const void *from, float *to, int64_t rows, int64_t cols, int64_t col, int dtype) {
    int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) to[row] = fa_load_element(from, row * cols + col, dtype);
}
/* A column of a matrix, on the host. */
static void gather(float *to, const void *from, int64_t rows, int64_t cols, int64_t col, int dtype) {
    float *column = (float *)device_alloc((size_t)rows * sizeof *column);
    gather_kernel<<<(unsigned)((rows + 255) / 256), 256>>>(from, column, rows, cols, col, dtype);
    download(to, column, (size_t)rows * sizeof *column);
    device_free(column);
}
static void fill(void *to, size_t count, int dtype, uint32_t stream, float deviation) {
    fill_kernel<<<2048, 256>>>(to, count, dtype, stream, deviation);
}
static size_t count_nan(const void *from, size_t count, int dtype) {
    static unsigned long long *found;
    unsigned long long result;
    if (!found) found = (unsigned long long *)device_alloc(sizeof *found);
    cuda(cudaMemset(found, 0, sizeof *found));
    nan_kernel<<<2048, 256>>>(from, count, dtype, found);
    download(&result, found, sizeof result);
    return (size_t)result;
}
#else
static void gather(float *to, const void *from, int64_t rows, int64_t cols, int64_t col, int dtype) {
    for (int64_t row = 0; row < rows; row++) to[row] = fa_load_element(from, row * cols + col, dtype);
}
static void fill(void *to, size_t count, int dtype, uint32_t stream, float deviation) {
    transfer t = {to, to, count * (size_t)fa_dtype_bytes(dtype), 0, dtype, stream, deviation, NULL};
    share(fill_part, &t);
}
static size_t count_nan(const void *from, size_t count, int dtype) {
    size_t found = 0;
    transfer t = {from, (void *)(uintptr_t)from, count * (size_t)fa_dtype_bytes(dtype), 0, dtype, 0, 0, &found};
    share(count_part, &t);
    return found;
}
#endif

/* A tensor of a (rows, cols) problem. */
static size_t count_of(const tensor_spec *t, int64_t rows, int64_t cols) {
    if (t->form == COSINE || t->form == SINE) return (size_t)POSITIONS * ANGLES;
    return (size_t)(t->form == MATRIX ? rows * cols : t->form == COLUMN_VALUE ? cols : rows);
}
static int dtype_of(const instance *it, const tensor_spec *t) { return t->form == MATRIX ? it->dtype : FA_F32; }
static size_t size_of(const instance *it, const tensor_spec *t) { return (size_t)fa_dtype_bytes(dtype_of(it, t)); }

/* Matrices have the same elements, however long their rows are. */
static void make_data(instance *it, int64_t fewest_cols, int64_t most_cols) {
    for (int i = 0; i < it->tensors; i++) {
        const tensor_spec *t = it->tensor[i];
        size_t count = t->form == MATRIX ? elements : count_of(t, (int64_t)elements / fewest_cols, most_cols);
        it->data[i] = device_alloc(count * size_of(it, t));
        if (t->form == TARGET) continue;
        if (t->form == COSINE || t->form == SINE) {
            float *table = (float *)host_alloc(count * sizeof *table);
            for (size_t j = 0; j < count; j++) {
                double angle = (double)(j / ANGLES) * pow(10000, -(double)(j % ANGLES) / ANGLES);
                table[j] = (float)(t->form == COSINE ? cos(angle) : sin(angle));
            }
            upload(it->data[i], table, count * sizeof *table);
            free(table);
            continue;
        }
        if (t->deviation > 0) fill(it->data[i], count, dtype_of(it, t), (uint32_t)i, t->deviation);
        else fill(it->data[i], count, dtype_of(it, t), 0, 1); /* its pages are there */
    }
}
static void free_data(instance *it) {
    for (int i = 0; i < it->tensors; i++) device_free(it->data[i]);
    if (it->workspace) device_free(it->workspace);
    it->workspace = NULL, it->workspace_size = 0;
}
/* What depends on the shape. */
static void shape_data(instance *it, int64_t rows, int64_t cols) {
    size_t needed = it->workspace_bytes(rows, cols);
    for (int i = 0; i < it->tensors; i++) {
        if (it->tensor[i]->form != TARGET) continue;
        int *targets = (int *)host_alloc((size_t)rows * sizeof *targets);
        for (int64_t row = 0; row < rows; row++)
            targets[row] = (int)(hash((uint32_t)i, (uint64_t)row) % (uint64_t)cols);
        upload(it->data[i], targets, (size_t)rows * sizeof *targets);
        free(targets);
    }
    if (needed > it->workspace_size) {
        if (it->workspace) device_free(it->workspace);
        it->workspace = device_alloc(needed), it->workspace_size = needed;
    }
}

/* -------------------------------------------------------------------- check */

typedef struct {
    instance *it;
    int way;
    int64_t rows, cols;
} kernel_call;

static void run_kernel(const void *what) {
    const kernel_call *c = (const kernel_call *)what;
    if (c->it->run(c->way, c->it->data, c->rows, c->cols, c->it->workspace, c->it->workspace_size, 0) != FA_OK)
        die(c->it->name, c->it->last_error());
}

/* Values of a tensor, as doubles: those of a row, or all of them if there is one for each column. */
static void load_row(double *to, const instance *it, int tensor, int64_t row, int64_t cols) {
    const tensor_spec *t = it->tensor[tensor];
    int table = t->form == COSINE || t->form == SINE;
    size_t count = t->form == MATRIX || t->form == COLUMN_VALUE ? (size_t)cols
                   : table                                      ? ANGLES
                                                                : 1,
           size = size_of(it, t);
    size_t first = t->form == MATRIX ? (size_t)(row * cols) : t->form == COLUMN_VALUE ? 0 : (size_t)row;
    if (table) first = (size_t)(row % POSITIONS) * ANGLES;
    void *raw = host_alloc(count * size);
    download(raw, (const char *)it->data[tensor] + first * size, count * size);
    for (size_t i = 0; i < count; i++)
        to[i] = t->form == TARGET ? ((const int *)raw)[i] : fa_load_element(raw, (int64_t)i, dtype_of(it, t));
    free(raw);
}
/* A row of a matrix as fill() made it. */
static void load_filled(double *to, const instance *it, int tensor, int64_t row, int64_t cols) {
    uint32_t stored;
    for (int64_t j = 0; j < cols; j++) {
        fa_store_element(&stored, 0, it->dtype,
                         element((uint32_t)tensor, (uint64_t)(row * cols + j), it->tensor[tensor]->deviation));
        to[j] = fa_load_element(&stored, 0, it->dtype);
    }
}
/* Values of a tensor that belong to a column. */
static void load_column(double *to, const instance *it, int tensor, int64_t col, int64_t rows, int64_t cols) {
    const tensor_spec *t = it->tensor[tensor];
    size_t count = t->form == COLUMN_VALUE ? 1 : (size_t)rows;
    float *values = (float *)host_alloc(count * sizeof *values);
    memset(values, 0, count * sizeof *values);
    if (t->form == MATRIX) gather(values, it->data[tensor], rows, cols, col, it->dtype);
    else if (t->form == ROW_VALUE || t->form == COLUMN_VALUE)
        download(values, (const float *)it->data[tensor] + (t->form == COLUMN_VALUE ? col : 0), count * sizeof *values);
    for (size_t i = 0; i < count; i++) to[i] = values[i];
    free(values);
}

/* Runs a direction into poisoned outputs, all of which must be written, and compares some rows, and columns, with
 * float64. Returns the largest error as a share of what is allowed. */
static double check_cell(const kernel_call *call, const char **what) {
    instance *it = call->it;
    const direction *way = &it->kernel->way[call->way];
    check c;
    memset(&c, 0, sizeof c);
    c.rows = call->rows, c.cols = call->cols, c.dtype = it->dtype;
    *what = "";
    int in_place = -1;
    for (int i = 0; i < it->tensors; i++) {
        const tensor_spec *t = it->tensor[i];
        size_t count = count_of(t, call->rows, call->cols);
        if (!writes(way, t)) continue;
        if (t->deviation > 0) in_place = i, fill(it->data[i], count, dtype_of(it, t), (uint32_t)i, t->deviation);
        else device_poison(it->data[i], count * size_of(it, t));
    }
    run_kernel(call);
    device_wait();
    for (int i = 0; i < it->tensors; i++) {
        const tensor_spec *t = it->tensor[i];
        if (writes(way, t) && count_nan(it->data[i], count_of(t, call->rows, call->cols), dtype_of(it, t))) {
            *what = t->name;
            return INFINITY;
        }
    }
    size_t longest = (size_t)(call->cols > call->rows ? call->cols : call->rows);
    if (longest < ANGLES) longest = ANGLES;
    for (int i = 0; i < it->tensors; i++) c.value[it->tensor[i]->slot] = (double *)host_alloc(longest * sizeof(double));
    c.before = (double *)host_alloc(longest * sizeof(double));
    for (int n = 0; n < SAMPLED; n++) {
        int64_t row = n == 0 ? 0 : n == 1 ? call->rows - 1 : (int64_t)(hash(99, (uint64_t)n) % (uint64_t)call->rows);
        for (int i = 0; i < it->tensors; i++) load_row(c.value[it->tensor[i]->slot], it, i, row, call->cols);
        if (in_place >= 0) load_filled(c.before, it, in_place, row, call->cols);
        way->check_row(&c);
    }
    for (int n = 0; n < SAMPLED / 3 && way->check_column; n++) {
        int64_t col = n == 0 ? 0 : n == 1 ? call->cols - 1 : (int64_t)(hash(98, (uint64_t)n) % (uint64_t)call->cols);
        for (int i = 0; i < it->tensors; i++)
            load_column(c.value[it->tensor[i]->slot], it, i, col, call->rows, call->cols);
        way->check_column(&c);
    }
    for (int i = 0; i < it->tensors; i++) free(c.value[it->tensor[i]->slot]);
    free(c.before);
    return c.worst;
}

/* ------------------------------------------------------------------- timing */

typedef struct {
    const instance *it;
    int way;
    int64_t cols;
    double rate, percent;
} result;
static result results[MAX_INSTANCES * 2 * MAX_COLUMNS];
static int result_count, repeat = 15, failures;
static FILE *tsv;
static const char *const way_names[2] = {"forward", "backward"};

/* What a cell's line of the JSON begins with. */
static void begin_cell(const kernel_call *call) {
    fprintf(json, "%s\n  {\"instance\": \"%s\", \"kernel\": \"%s\", \"dtype\": \"%s\", \"direction\": \"%s\", \"rows\": %lld, \"cols\": %lld, ",
            json_cells++ ? "," : "", call->it->name, call->it->kernel->name, dtype_names[call->it->dtype], way_names[call->way], (long long)call->rows,
            (long long)call->cols);
}

/* All instances of a kernel at one length of the rows. */
static void run_cell(instance *const *group, int count, int64_t cols) {
    static double times[PLAIN + 2 * MAX_INSTANCES][MAX_REPEAT];
    double shares[2 * MAX_INSTANCES], seconds[PLAIN];
    kernel_call calls[2 * MAX_INSTANCES];
    int64_t rows = (int64_t)elements / cols;
    int contestants = PLAIN + 2 * count;
    const char *refusal = group[0]->refusal(rows, cols);
    transfer t;
    if (refusal) {
        printf("SKIPPED  %s, %lld x %lld: %s\n", group[0]->kernel->name, (long long)rows, (long long)cols, refusal);
        return;
    }
    memset(&t, 0, sizeof t);
    t.from = group[0]->data[0], t.bytes = elements * (size_t)fa_dtype_bytes(group[0]->dtype);
    t.to = device_alloc(t.bytes);
    fill(t.to, elements, group[0]->dtype, 0, 1); /* its pages are there */
    for (int i = 0; i < 2 * count; i++) {
        kernel_call call = {group[i / 2], i % 2, rows, cols};
        const char *what;
        calls[i] = call;
        if (i % 2 == 0) shape_data(group[i / 2], rows, cols);
        shares[i] = check_cell(&call, &what);
        if (shares[i] <= 1) continue;
        failures++;
        printf("WRONG  %s %s, %lld x %lld: ", group[i / 2]->name, way_names[i % 2], (long long)rows, (long long)cols);
        if (*what) printf("%s has NaN, or was not all written\n", what);
        else printf("the error is %.3g times what is allowed\n", shares[i]);
        if (json) begin_cell(&call), fprintf(json, "\"correct\": false}");
    }
    for (int r = -1; r < repeat; r++) /* once to warm up */
        for (int i = 0; i < contestants; i++) {
            int turn = (i + r + 1) % contestants;
            if (turn >= PLAIN && !(shares[turn - PLAIN] <= 1)) continue; /* what is wrong is not timed */
            double s = turn < PLAIN ? time_once(plain[turn], &t) : time_once(run_kernel, &calls[turn - PLAIN]);
            if (r >= 0) times[turn][r] = s;
        }
    for (int i = 0; i < PLAIN; i++) seconds[i] = median(times[i], repeat);
    double copy = 0, read = (double)t.bytes / seconds[PLAIN - 1];
    for (int i = 0; i < PLAIN - 1; i++) copy = fmax(copy, 2.0 * (double)t.bytes / seconds[i]);
    for (int i = 0; i < 2 * count; i++) {
        const instance *it = calls[i].it;
        const direction *way = &it->kernel->way[i % 2];
        if (!(shares[i] <= 1)) continue;
        double s = median(times[PLAIN + i], repeat),
               bytes = way->useful * (double)(rows * cols * fa_dtype_bytes(it->dtype));
        double rate = bytes / s, bar = way->only_reads ? read : copy, percent = 100 * rate / bar;
        printf(
            "%-5s%-19s%-9s %8lld x %-7lld%9.3f ms %8.1f GB/s %6.1f%% of a %s at %.1f GB/s   error %.2f of its limit\n",
            dtype_names[it->dtype], it->kernel->name, way_names[i % 2], (long long)rows, (long long)cols, 1e3 * s,
            1e-9 * rate, percent, way->only_reads ? "read" : "copy", 1e-9 * bar, shares[i]);
        if (json)
            begin_cell(&calls[i]), print_times(times[PLAIN + i], repeat, s),
                fprintf(json, "\"rate\": %.2f, \"unit\": \"GB/s\", \"gb_per_s\": %.2f, \"plain_gb_per_s\": %.2f, \"percent\": %.2f, \"error_share\": %.4f}",
                        1e-9 * rate, 1e-9 * rate, 1e-9 * bar, percent, shares[i]);
        if (tsv)
            fprintf(tsv, "%s, %s %s (%% of a plain %s)\t%s\t%lld\t%.2f\tcolumns\n", ON_GPU ? "GPU" : "CPU",
                    it->kernel->name, way_names[i % 2], way->only_reads ? "read" : "copy", dtype_names[it->dtype],
                    (long long)cols, percent);
        result found = {it, i % 2, cols, rate, percent};
        if (result_count < (int)(sizeof results / sizeof *results)) results[result_count++] = found;
    }
    fflush(stdout);
    device_free(t.to);
}

/* --------------------------------------------------------------------- main */

static instance load_instance(const char *path) {
    instance it;
    char name[128];
    memset(&it, 0, sizeof it);
    instance_name(it.name, sizeof it.name, path);
    snprintf(name, sizeof name, "%s", it.name);
    char *kernel = strchr(name, '_');
    if (!kernel) die(path, "the name is not TYPE_KERNEL");
    *kernel++ = 0;
    if (strstr(kernel, "_x")) *strstr(kernel, "_x") = 0; /* an experiment's (bench.mk) */
    for (int t = 1; t < 5; t++)
        if (!strcmp(name, dtype_names[t])) it.dtype = t;
    for (int k = 0; k < KERNELS; k++)
        if (!strcmp(kernel, kernels[k].name)) it.kernel = &kernels[k];
    if (!it.dtype || !it.kernel) die(path, "the name is not TYPE_KERNEL");

    void *library = open_library(path);
    const char *(*tensor)(int);
    *(void **)&tensor = find_function(library, path, "bench_tensor");
    *(void **)&it.run = find_function(library, path, "bench_run");
    *(void **)&it.workspace_bytes = find_function(library, path, "bench_workspace");
    *(void **)&it.refusal = find_function(library, path, "bench_refusal");
    *(void **)&it.last_error = find_function(library, path, "bench_last_error");
    for (; tensor(it.tensors); it.tensors++) {
        if (it.tensors == MAX_TENSORS) die(path, "too many tensors");
        it.tensor[it.tensors] = find_tensor(it.kernel, tensor(it.tensors));
        if (!it.tensor[it.tensors]) die(tensor(it.tensors), "no such tensor in rows_kernels.h");
    }
    it.compiled = load_compilation(path);
    return it;
}

static void print_markdown(FILE *file) {
    const kernel_spec *kernel = NULL;
    int64_t columns[MAX_COLUMNS];
    int lengths = 0;
    for (int i = 0; i < result_count; i++) {
        const instance *it = results[i].it;
        int first = 1;
        for (int j = 0; j < i; j++) first &= results[j].it != it || results[j].way != results[i].way;
        if (!first) continue;
        if (it->kernel != kernel) { /* a table for each kernel, since their columns differ */
            kernel = it->kernel, lengths = 0;
            for (int j = i; j < result_count && results[j].it->kernel == kernel; j++) {
                int n = 0;
                while (n < lengths && columns[n] != results[j].cols) n++;
                if (n == lengths) columns[lengths++] = results[j].cols;
            }
            fprintf(file, "\n| %s, GB/s (share of a plain copy, or read) |", kernel->name);
            for (int n = 0; n < lengths; n++) fprintf(file, " %lld |", (long long)columns[n]);
            fprintf(file, "\n|---|");
            for (int n = 0; n < lengths; n++) fprintf(file, "---|");
            fprintf(file, "\n");
        }
        fprintf(file, "| %s %s |", dtype_names[it->dtype], way_names[results[i].way]);
        for (int n = 0; n < lengths; n++) {
            int j = i;
            while (j < result_count && (results[j].it != it || results[j].way != results[i].way || results[j].cols != columns[n])) j++;
            if (j < result_count) fprintf(file, " %.0f (%.0f%%) |", 1e-9 * results[j].rate, results[j].percent);
            else fprintf(file, " |"); /* a wrong cell is not timed */
        }
        fprintf(file, "\n");
    }
}

static void usage(void) {
    fprintf(
        stderr,
        "usage: rows [--grid default|full] [--elements N] [--columns N,N...] [--repeat N] [--json FILE] [--tsv FILE]\n"
        "            [--markdown FILE] LIBRARY.so...\n");
    exit(2);
}

int main(int argc, char **argv) {
    static instance instances[MAX_INSTANCES];
    instance *group[MAX_INSTANCES];
    int count = 0, full_grid = ON_GPU;
    const char *list = NULL;
    FILE *markdown = NULL;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2)) {
            if (count == MAX_INSTANCES) die("too many instances", argv[i]);
            instances[count++] = load_instance(argv[i]);
            continue;
        }
        const char *option = argv[i], *value = i + 1 < argc ? argv[++i] : (usage(), "");
        if (!strcmp(option, "--grid")) full_grid = is_full(value);
        else if (!strcmp(option, "--elements")) elements = (size_t)whole(option, value, LONG_MAX);
        else if (!strcmp(option, "--columns")) list = value;
        else if (!strcmp(option, "--repeat")) repeat = (int)whole(option, value, MAX_REPEAT);
        else if (!strcmp(option, "--json")) json = opened(value);
        else if (!strcmp(option, "--tsv")) tsv = opened(value);
        else if (!strcmp(option, "--markdown")) markdown = opened(value);
        else usage();
    }
    if (!count) usage();
    if (!elements) elements = (size_t)1 << (full_grid ? 28 : 26);

    begin_json(repeat);
#if ON_GPU
    print_gpu();
#else
    char model[256];
    cpu_model(model, sizeof model);
    threads = cpu_threads();
    printf("CPU: %s, %d threads\n", model, threads);
    if (json) fprintf(json, "\"device\": \"%s\", \"threads\": %d,\n", model, threads);
#endif
    print_state("before");
    if (json) fprintf(json, "\"compile\": [");
    for (int i = 0; i < count; i++) print_compilation(i, instances[i].name, &instances[i].compiled);
    if (json) fprintf(json, "],\n\"cells\": [");

    printf("\nmatrices of %zu elements; median of %d\n", elements, repeat);
    for (int k = 0; k < KERNELS; k++) {
        int members = 0, lengths = 0;
        int64_t columns[MAX_COLUMNS], fewest = INT64_MAX, most = 0;
        for (int i = 0; i < count; i++)
            if (instances[i].kernel == &kernels[k]) group[members++] = &instances[i];
        if (!members) continue;
        if (list) lengths = whole_list("--columns", list, LONG_MAX, columns, MAX_COLUMNS);
        else /* the default on the CPU: every other one */
            for (int n = 0; kernels[k].columns[n]; n++)
                if (full_grid || n % 2 == 0) columns[lengths++] = kernels[k].columns[n];
        for (int n = 0; n < lengths; n++) {
            if (columns[n] < 1 || (size_t)columns[n] > elements) die("columns", "from 1 to the elements of a matrix");
            fewest = columns[n] < fewest ? columns[n] : fewest, most = columns[n] > most ? columns[n] : most;
        }
        for (int i = 0; i < members; i++) make_data(group[i], fewest, most);
        for (int n = 0; n < lengths; n++) run_cell(group, members, columns[n]);
        for (int i = 0; i < members; i++) free_data(group[i]);
    }
    if (json) fprintf(json, "],\n");
    printf("\n");
    print_state("after");
    if (json) fprintf(json, "\"failures\": %d\n}\n", failures), fclose(json);
    if (tsv) fclose(tsv);
    print_markdown(stdout);
    if (markdown) print_markdown(markdown), fclose(markdown);
    if (failures) printf("%d cells are WRONG\n", failures);
    return failures != 0;
}
