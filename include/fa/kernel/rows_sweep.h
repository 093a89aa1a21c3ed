/**
 * @file rows_sweep.h
 * @brief How the rows of a sweep, whose blocks stay, are dealt out: by their length, their number, and the device.
 */
#ifndef FA_KERNEL_ROWS_SWEEP_H
#define FA_KERNEL_ROWS_SWEEP_H

#include <fa/kernel/gpu.h>
#include <fa/kernel/rows_launch.h>

/** @cond PRIVATE */
/* 512 threads with 128 registers each are what there is room for in a processor. A thread has four vectors of 16 bytes of each
 * tensor of a row of whole vectors, of at least so many, and two of any other. Longer rows are cut into segments. (Clusters were
 * slower: a block that stays has one row at a time, and waits for the others of its cluster in each.) */
#define FA__SWEEP_THREADS 512
#define FA__SWEEP_EVEN 4
#define FA__SWEEP_EVEN_FROM 16
#define FA__SWEEP_ANY 2
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
    const int64_t row = fa__row_vectors(r, element_bytes, 1), block = FA__SWEEP_ANY * FA__SWEEP_THREADS;
    const int kept = weights * (int)sizeof(float) * 16 / element_bytes; /* bytes for a vector's weights */
    const int64_t warps = 32 * FA__SWEEP_EVEN; /* vectors of one */
    const size_t even_bytes = (size_t)((row + warps - 1) / warps * warps) * (size_t)(16 * r->tensors + kept) + scratch;
    s->whole = r->even && row >= FA__SWEEP_EVEN_FROM && row <= FA__SWEEP_EVEN * FA__SWEEP_THREADS && even_bytes <= (size_t)most;
    s->pieces = s->whole ? FA__SWEEP_EVEN : FA__SWEEP_ANY;
    int64_t needed = (row + s->pieces - 1) / s->pieces;
    if (needed > FA__SWEEP_THREADS) {
        needed = FA__SWEEP_THREADS;
        s->length = block * 16 / element_bytes;
        s->segments = (r->cols + s->length - 1) / s->length;
    }
    fa__rows_teams(r, needed, FA__SWEEP_LANE_BLOCK);
    const int threads = r->threads * r->teams;
    r->slot_bytes = threads * s->pieces * 16;
    r->whole = r->even && s->length * element_bytes == r->slot_bytes && r->cols % s->length == 0 && r->teams == 1;
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

/* Rows of any kind in slots of shared memory (norm_slots.h): a team of one block takes a row of which a thread has four vectors,
 * longer ones are split. Vectors that a thread has at a time of a row that there is no room for, or that is looked at once. */
#define FA__SLOT_CHUNK 4
static inline FA_UNUSED fa_status fa__rows_slots(fa__rows *r, const char *name, const void *kernel, int element_bytes, int aligned,
                                                 size_t scratch) {
    const int64_t vectors = fa__row_vectors(r, element_bytes, aligned);
    r->chunk = 1 << 30; /* all */
    if (vectors <= FA__SLOT_CHUNK * FA__SLOT_THREADS) {
        fa__rows_teams(r, (vectors + FA__SLOT_CHUNK - 1) / FA__SLOT_CHUNK, 128);
        r->slot_bytes = FA__SLOT_CHUNK * r->threads * r->teams * 16;
        return FA_OK;
    }
    fa_status status = fa__rows_split(r, name, kernel, element_bytes, aligned, r->tensors, scratch);
    r->team_bits = 30; /* one team */
    if (r->slot_bytes == 0) r->chunk = FA__SLOT_CHUNK, r->slot_bytes = FA__SLOT_CHUNK * FA__SLOT_THREADS * 16;
    return status;
}
/** @endcond */

#endif
