/**
 * @file rows_sweep.h
 * @brief How the rows of a sweep, whose blocks stay, are dealt out: by their length, their number, and the device.
 */
#ifndef FA_KERNEL_ROWS_SWEEP_H
#define FA_KERNEL_ROWS_SWEEP_H

#include <fa/kernel/gpu.h>
#include <fa/kernel/rows_launch.h>

/** @cond PRIVATE */
/* 512 threads with 128 registers each are what there is room for in a processor. A thread has two vectors of 16 bytes of each
 * tensor of a row; or four, if rows are whole and a block holds them only so. Longer rows are cut into segments. (Clusters were
 * slower: a block that stays has one row at a time, and waits for the others of its cluster in each.) */
#define FA__SWEEP_THREADS 512
#define FA__SWEEP_LANE_BLOCK 256 /* threads of a block whose teams are within warps */
/* As many rows of a team are in shared memory as it takes to have so many bytes of a processor on their way while one is
 * looked at. */
#define FA__SWEEP_AHEAD (64 * 1024)
#define FA__SWEEP_STAGES 4 /* at most */

/* `weights`: floats of every element's column that a thread keeps in shared memory. */
static inline FA_UNUSED fa_status fa__rows_sweep(fa__rows *r, fa__sums *s, const char *name, int element_bytes, int weights,
                                                 size_t scratch) {
    int device, most, all, processors;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "asking for the properties of the device");
    s->pitch = fa__sums_pitch(r->cols);
    s->segments = 1;
    s->length = r->cols;
    r->blocks = 1;
    const int64_t row = fa__row_vectors(r, element_bytes, 1), block = 2 * FA__SWEEP_THREADS;
    const int kept = weights * (int)sizeof(float) * 16 / element_bytes; /* bytes for a vector's weights */
    const size_t wide = (size_t)row * (size_t)(16 * r->tensors + kept) + scratch;
    s->pieces = 2;
    s->whole = r->even && r->cols * element_bytes % 1024 == 0 && row > 64 && row <= block;
    if (r->even && row > block && row <= 2 * block && row % 128 == 0 && wide <= (size_t)most) s->pieces = 4, s->whole = 1;
    int64_t needed = (row + s->pieces - 1) / s->pieces;
    if (needed > FA__SWEEP_THREADS) {
        needed = FA__SWEEP_THREADS;
        s->length = block * 16 / element_bytes;
        s->segments = (r->cols + s->length - 1) / s->length;
    }
    const int vectors = s->pieces * 16;
    for (r->threads = 1; r->threads < needed && r->threads < 32;) r->threads *= 2;
    if (needed > 32) r->threads = (int)((needed + 31) / 32 * 32);
    r->teams = r->threads <= 32 ? FA__SWEEP_LANE_BLOCK / r->threads : 1;
    for (r->team_bits = 0; 1 << r->team_bits < r->threads;) r->team_bits++;
    r->whole = r->even && s->length * element_bytes == (int64_t)r->threads * vectors && r->cols % s->length == 0 && r->teams == 1;
    const int threads = r->threads * r->teams;
    r->slot_bytes = threads * vectors;
    s->weights_bytes = threads * s->pieces * kept;
    scratch += (size_t)s->weights_bytes;
    const size_t stage = (size_t)r->tensors * (size_t)r->slot_bytes;
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
    s->workers = processors * resident / s->segments;
    if (s->workers < 1) s->workers = 1;
    if (s->workers > teams) s->workers = teams;
    return FA_OK;
}
/** @endcond */

#endif
