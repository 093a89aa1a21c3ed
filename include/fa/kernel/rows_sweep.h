/**
 * @file rows_sweep.h
 * @brief How the rows of a sweep, whose blocks stay, are dealt out: by their length, their number, and the device.
 */
#ifndef FA_KERNEL_ROWS_SWEEP_H
#define FA_KERNEL_ROWS_SWEEP_H

#include <fa/kernel/gpu.h>
#include <fa/kernel/rows_launch.h>

/** @cond PRIVATE */
/* 512 threads with 128 registers each are what there is room for in a processor. Of each tensor of a row of whole vectors of 16
 * bytes, of at least so many, a thread has two vectors if at least 9 of 10 threads have work then, because their floats fit in
 * registers between the two looks at them (98 to 99 % of a copy's bandwidth on an H200, bf16), else four (92 to 96 %); of any other
 * row two. Longer rows are cut into segments. (Clusters were slower: a block that stays has one row at a time, and waits for the
 * others of its cluster in each.) */
#define FA__SWEEP_THREADS 512
#define FA__SWEEP_FAST 2
#define FA__SWEEP_EVEN 4
#define FA__SWEEP_EVEN_FROM 16
#define FA__SWEEP_ANY 2
#define FA__SWEEP_LANE_BLOCK 256 /* threads of a block whose teams are within warps; of rows of any kind */
#define FA__SWEEP_ANY_LANE_BLOCK 64
/* As many rows of a team are in shared memory as it takes to have so many bytes of a processor on their way while one is
 * looked at. */
#define FA__SWEEP_AHEAD (64 * 1024)
#define FA__SWEEP_STAGES 4 /* at most */

/* The warps' shares of the sums over a row, of two rows in turn. */
typedef struct __align__(128) fa__shares {
    float part[2][2][FA__SWEEP_THREADS / 32];
} fa__shares;

/* The forward of rows that begin anywhere: threads of a block, at most, with four vectors each, and such blocks of a processor. */
#define FA__ODD_THREADS 256
#define FA__ODD_RESIDENT 3
/* Bytes of the slots of so many pieces of a tensor, with those of the vectors behind (norm_vectors.h). */
static inline FA_UNUSED int fa__slots_bytes(const fa__rows *r, int pieces) {
    return (pieces * (r->threads * r->teams + r->teams) * 16 + 127) / 128 * 128;
}

/* `weights`: floats of every element's column that a thread keeps in shared memory. */
FA__CALLED fa_status fa__rows_sweep(fa__rows *r, fa__sums *s, const char *name, int element_bytes, int weights,
                                    size_t scratch) {
    int device, most, all, processors;
    cudaError_t error = fa__most_shared(&device, &most);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "asking for the properties of the device");
    s->pitch = fa__sums_pitch(r->cols);
    s->segments = 1;
    s->length = r->cols;
    r->blocks = 1;
    const int64_t row = fa__row_vectors(r, element_bytes, 1);
    const int kept = weights * (int)sizeof(float) * 16 / element_bytes; /* bytes for a vector's weights */
    const int64_t warps = 32 * FA__SWEEP_EVEN; /* vectors of one */
    const size_t even_bytes = (size_t)((row + warps - 1) / warps * warps) * (size_t)(16 * r->tensors + kept) + scratch;
    s->whole = r->even && row >= FA__SWEEP_EVEN_FROM && row <= FA__SWEEP_EVEN * FA__SWEEP_THREADS && even_bytes <= (size_t)most;
    s->pieces = s->whole ? FA__SWEEP_EVEN : FA__SWEEP_ANY;
    if (s->whole && row <= FA__SWEEP_FAST * FA__SWEEP_THREADS) {
        fa__rows_teams(r, (row + FA__SWEEP_FAST - 1) / FA__SWEEP_FAST, FA__SWEEP_LANE_BLOCK);
        const int64_t teams = FA__SWEEP_THREADS / (r->threads * r->teams) * r->teams;
        if (teams * row * 10 >= 9 * FA__SWEEP_FAST * FA__SWEEP_THREADS) s->pieces = FA__SWEEP_FAST;
    }
    const int pieces = s->pieces;
    int64_t needed = (row + pieces - 1) / pieces;
    int threads_most = FA__SWEEP_THREADS; /* of any other row two are in shared memory at least, and 1 KB for what lies behind */
    while (!s->whole && threads_most > 32 && (size_t)(threads_most * FA__SWEEP_ANY * (2 * 16 * r->tensors + kept)) + scratch + 1024 > (size_t)most)
        threads_most -= 32;
    if (needed > threads_most) {
        needed = threads_most;
        s->length = (int64_t)FA__SWEEP_ANY * threads_most * 16 / element_bytes;
        s->segments = (r->cols + s->length - 1) / s->length;
        if (s->segments > 1) s->known = 4;
    }
    fa__rows_teams(r, needed, s->whole ? FA__SWEEP_LANE_BLOCK : FA__SWEEP_ANY_LANE_BLOCK);
    const int threads = r->threads * r->teams;
    r->slot_bytes = s->whole ? threads * pieces * 16 : fa__slots_bytes(r, pieces);
    s->weights_bytes = threads * pieces * kept;
    scratch += (size_t)s->weights_bytes;
    const size_t stage = (size_t)r->tensors * (size_t)r->slot_bytes;
    /* As many blocks as the processors have room for, with as much on its way as possible; and no more than there is work
     * for. */
    const int64_t blocks = threads_most / threads, room = all / blocks - 1024 - (int64_t)scratch;
    for (s->stages = 2 - s->whole; s->stages < FA__SWEEP_STAGES; s->stages++)
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
FA__CALLED fa_status fa__rows_slots(fa__rows *r, const char *name, const void *kernel, int element_bytes, int aligned,
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
