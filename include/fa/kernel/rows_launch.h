/**
 * @file rows_launch.h
 * @brief How rows are dealt out to the threads of a GPU, by their length alone, and the launch.
 */
#ifndef FA_KERNEL_ROWS_LAUNCH_H
#define FA_KERNEL_ROWS_LAUNCH_H

#include <fa/kernel/gpu.h>
#include <fa/kernel/rows.h>

/** @cond PRIVATE */
/* Rows in registers. Bytes that a thread reads before it uses them, of all tensors together: four loads of 16 bytes; and
 * of each of `tensors`. The largest team, of a block; blocks of that size that shall fit in a processor. */
#if !defined(FA__ROW_BYTES)
#define FA__ROW_BYTES 64
#endif
#define FA__TEAM_BYTES(tensors) ((tensors) * 16 > FA__ROW_BYTES ? 16 : FA__ROW_BYTES / 16 / (tensors) * 16)
#if !defined(FA__TEAM_THREADS)
#define FA__TEAM_THREADS 512
#endif
#if !defined(FA__TEAM_RESIDENT)
#define FA__TEAM_RESIDENT (1024 / FA__TEAM_THREADS)
#endif
/* Threads of a block whose teams are within warps. */
#if !defined(FA__LANE_BLOCK)
#define FA__LANE_BLOCK 128
#endif
/* Rows that are looked at once (FA__ONCE_FORWARD), piece by piece, the next one under way while one is looked at: bytes of a
 * piece, for a thread; vectors of 16 bytes that a thread shall have of rows that lanes of a warp share, and of longer ones,
 * so many that what a thread does once a row weighs little, and no more, so that there are many threads even of few rows;
 * threads that shall fit in a processor. */
#if !defined(FA__ONCE_BYTES)
#define FA__ONCE_BYTES 64
#endif
#if !defined(FA__ONCE_LANE_VECTORS)
#define FA__ONCE_LANE_VECTORS 8
#endif
#if !defined(FA__ONCE_VECTORS)
#define FA__ONCE_VECTORS 16
#endif
#if !defined(FA__ONCE_THREADS)
#define FA__ONCE_THREADS 1024
#endif
/* Rows in shared memory: threads of a block; bytes that it holds as long as another block can be added to the cluster,
 * so that three blocks a processor take turns in loading, reducing and storing; and the largest cluster that every
 * device with clusters has (CUDA programming guide, "Thread Block Clusters"). */
#if !defined(FA__SLOT_THREADS)
#define FA__SLOT_THREADS 256
#endif
#if !defined(FA__SLOT_ROW_BYTES)
#define FA__SLOT_ROW_BYTES 32 /* of a piece, for a thread */
#endif
#if !defined(FA__SLOT_BYTES)
#define FA__SLOT_BYTES (64 * 1024)
#endif
#define FA__CLUSTER_BLOCKS 8
#if !defined(FA__SLOT_RESIDENT)
#define FA__SLOT_RESIDENT (768 / FA__SLOT_THREADS)
#endif

/* Sweeps, whose blocks stay. A thread has these bytes of each tensor of a row: of half-precision elements and with two sums
 * it keeps 64 floats, so that 512 threads a processor, with 128 registers each, are what there is room for. As many rows
 * of a team are in shared memory as it takes to have enough on its way (FA__SWEEP_AHEAD bytes a processor) while one is
 * looked at. */
#define FA__SWEEP_PIECES 4 /* vectors of 16 bytes */
#define FA__SWEEP_THREADS 512
#if !defined(FA__SWEEP_LANE_BLOCK)
#define FA__SWEEP_LANE_BLOCK 256 /* threads of a block whose teams are within warps */
#endif
#if !defined(FA__SWEEP_AHEAD)
#define FA__SWEEP_AHEAD (64 * 1024)
#endif
#define FA__SWEEP_STAGES 4     /* at most */
#define FA__SWEEP_SEGMENT 256 /* threads that have a segment of a longer row */
#define FA__LONG_RESIDENT 2   /* blocks a processor that read rows again: they need more registers than those of slots */

/* Vectors of 16 bytes that a row may touch. */
static inline FA_UNUSED int64_t fa__row_vectors(const fa__rows *r, int element_bytes, int aligned) {
    return (r->cols * element_bytes + 15) / 16 + !aligned;
}

/* Rows dealt to teams of so many threads, or a few more. */
static inline FA_UNUSED void fa__rows_teams(fa__rows *r, int64_t needed) {
    for (r->threads = 1; r->threads < needed && r->threads < 32;) r->threads *= 2;
    if (needed > 32) r->threads = (int)((needed + 31) / 32 * 32);
    r->teams = r->threads <= 32 ? FA__LANE_BLOCK / r->threads : 1;
    r->blocks = 1;
    r->slot_bytes = 0;
}
/* Whether a team of at most `most` threads holds a row in registers, `bytes` a thread; and its size, if so. */
static inline FA_UNUSED int fa__rows_fit(fa__rows *r, int element_bytes, int aligned, int bytes, int most) {
    int64_t needed = (fa__row_vectors(r, element_bytes, aligned) * 16 + bytes - 1) / bytes;
    if (needed > most) return 0;
    fa__rows_teams(r, needed);
    return 1;
}
/* Whether one block takes a row that is looked at once; and the size of its team, if so. */
static inline FA_UNUSED int fa__rows_once(fa__rows *r, int element_bytes, int aligned) {
    int64_t vectors = fa__row_vectors(r, element_bytes, aligned), needed = (vectors + FA__ONCE_VECTORS - 1) / FA__ONCE_VECTORS;
    if (needed > FA__TEAM_THREADS) return 0;
    if (needed < 32) {
        needed = (vectors + FA__ONCE_LANE_VECTORS - 1) / FA__ONCE_LANE_VECTORS;
        if (needed < 8) needed = (vectors + 3) / 4 < 8 ? (vectors + 3) / 4 : 8; /* neighbouring lanes read what lies together */
        if (needed > 32) needed = 32;
    }
    fa__rows_teams(r, needed);
    return 1;
}

/* How many blocks share a row, and what each holds of it. */
static inline FA_UNUSED fa_status fa__rows_split(fa__rows *r, const char *name, const void *kernel, int element_bytes, int aligned,
                                                 int tensors, size_t scratch) {
    struct cudaFuncAttributes compiled;
    int device, most, major, clusters;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "asking for the shared memory of the device");
    error = cudaFuncGetAttributes(&compiled, kernel);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "finding the kernel");
    clusters = major >= 9 && compiled.ptxVersion >= 90 ? FA__CLUSTER_BLOCKS : 1;
    int64_t vectors = fa__row_vectors(r, element_bytes, aligned), piece = FA__SLOT_ROW_BYTES / 16 * FA__SLOT_THREADS, bytes;
    r->threads = FA__SLOT_THREADS;
    r->teams = 1;
    for (r->blocks = 1;; r->blocks *= 2) {
        bytes = (vectors + piece * r->blocks - 1) / (piece * r->blocks) * piece * 16;
        if (r->blocks == clusters || bytes * tensors <= FA__SLOT_BYTES) break;
    }
    r->slot_bytes = bytes * tensors <= most - (int64_t)scratch ? (int)bytes : 0;
    return FA_OK;
}

/* How the rows of a sweep are dealt out to blocks that stay: by their length, their number, and the device. */
static inline FA_UNUSED fa_status fa__rows_sweep(fa__rows *r, fa__sums *s, const char *name, const void *kernel, int element_bytes,
                                                 int aligned, size_t scratch) {
    struct cudaFuncAttributes compiled;
    const int piece = FA__SWEEP_PIECES * 16;
    int device, most, all, major, processors, clusters;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "asking for the properties of the device");
    error = cudaFuncGetAttributes(&compiled, kernel);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "finding the kernel");
    clusters = major >= 9 && compiled.ptxVersion >= 90 ? FA__CLUSTER_BLOCKS : 1;
    s->pitch = fa__sums_pitch(r->cols);
    s->clusters = clusters;
    s->segments = 1;
    s->length = r->cols;
    int64_t needed = (fa__row_vectors(r, element_bytes, aligned) * 16 + piece - 1) / piece;
    for (r->blocks = 1; r->blocks < clusters && needed > (int64_t)FA__SWEEP_THREADS * r->blocks;) r->blocks *= 2;
    needed = (needed + r->blocks - 1) / r->blocks;
    size_t stage = (size_t)r->tensors * FA__SWEEP_THREADS * (size_t)piece;
    if (needed > FA__SWEEP_THREADS || (needed > 32 && stage + scratch > (size_t)most)) { /* a cluster does not hold a row */
        r->blocks = 1;
        needed = FA__SWEEP_SEGMENT;
        s->length = FA__SWEEP_SEGMENT * piece / element_bytes;
        s->segments = (r->cols + s->length - 1) / s->length;
    }
    for (r->threads = 1; r->threads < needed && r->threads < 32;) r->threads *= 2;
    if (needed > 32) r->threads = (int)((needed + 31) / 32 * 32);
    r->teams = r->threads <= 32 ? FA__SWEEP_LANE_BLOCK / r->threads : 1;
    const int threads = r->threads * r->teams;
    r->slot_bytes = threads * piece;
    stage = (size_t)r->tensors * (size_t)r->slot_bytes;
    /* As many blocks as the processors have room for, with as much on its way as possible; and no more than there is work
     * for. */
    const int64_t blocks = FA__SWEEP_THREADS / threads, room = all / blocks - 1024 - (int64_t)scratch;
    for (s->stages = 1; s->stages < FA__SWEEP_STAGES; s->stages++)
        if ((int64_t)stage * (s->stages - 1) * blocks >= FA__SWEEP_AHEAD || (int64_t)stage * (s->stages + 1) > room ||
            stage * (size_t)(s->stages + 1) + scratch > (size_t)most)
            break;
    int64_t resident = all / (int64_t)(s->stages * stage + scratch + 1024);
    if (resident > blocks) resident = blocks;
    if (resident < 1) resident = 1;
    int64_t teams = (r->rows + r->teams - 1) / r->teams;
    s->workers = processors * resident / (r->blocks * s->segments);
    if (s->workers < 1) s->workers = 1;
    if (s->workers > teams) s->workers = teams;
    return FA_OK;
}

static inline FA_UNUSED fa_status fa__launch_blocks(const char *name, const void *kernel, int64_t blocks, int threads, int clustered,
                                                    size_t shared_bytes, void *params, fa_stream stream) {
    const int64_t most = (int64_t)1 << 30; /* of the blocks of a launch; then each takes several rows */
    cudaError_t error;
    cudaLaunchAttribute cluster;
    cudaLaunchConfig_t launch = {};
    void *arguments[1] = {params};
    if (shared_bytes > 48 * 1024) {
        error = fa__reserve_shared(kernel, shared_bytes);
        if (error != cudaSuccess) return fa__cuda_failed(error, name, "reserving shared memory");
    }
    launch.gridDim = dim3((unsigned)(blocks < most ? blocks : most), 1, 1);
    launch.blockDim = dim3((unsigned)threads, 1, 1);
    launch.dynamicSmemBytes = shared_bytes;
    launch.stream = stream;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = (unsigned)clustered;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    launch.attrs = &cluster;
    launch.numAttrs = clustered > 1;
    error = cudaLaunchKernelExC(&launch, kernel, arguments);
    return error == cudaSuccess ? FA_OK : fa__cuda_failed(error, name, "launching");
}
static inline FA_UNUSED fa_status fa__launch_rows(const char *name, const void *kernel, const fa__rows *r, size_t shared_bytes,
                                                  void *params, fa_stream stream) {
    return fa__launch_blocks(name, kernel, (r->rows + r->teams - 1) / r->teams * r->blocks, r->threads * r->teams, r->blocks,
                             shared_bytes, params, stream);
}
/** @endcond */

#endif
