/**
 * @file rows_sweep.h
 * @brief How the rows of a sweep, whose blocks are persistent, are dealt out: by their length, their number, and the device.
 */
#ifndef FA_KERNEL_ROWS_SWEEP_H
#define FA_KERNEL_ROWS_SWEEP_H

#include <fa/kernel/gpu.h>
#include <fa/kernel/rows_launch.h>

/** @cond PRIVATE */
/* A multiprocessor has room for 512 threads with 128 registers each. Of each tensor of a row of whole vectors of 16
 * bytes, at least FA__SWEEP_EVEN_FROM, a thread has two vectors if there is one result, and if enough threads then
 * have work (fa__sweep_pieces()), because their floats fit in registers between the two passes over them (98 to 100
 * % of a copy's bandwidth on an H200, bf16), else four (94 to 97 %); of any other row one. Rows of whole vectors
 * that a block cannot hold are shared by a cluster (77 to 99 %): two blocks of half the threads a multiprocessor, as
 * long as a cluster may have so many, since each waits for the others of its cluster in every row. Other long rows
 * are cut into segments. */
#define FA__SWEEP_THREADS 512
#define FA__SWEEP_FAST 2
#define FA__SWEEP_EVEN 4
#define FA__SWEEP_EVEN_FROM 3 /* of three to twelve vectors 1.3 to 2.5 times as fast as one vector a thread (2^28 elements of bf16), of one 0.63 */
#define FA__SWEEP_LANE_BLOCK 256 /* threads of a block whose teams are within warps */
/* A team has as many rows in shared memory as it takes to have so many bytes per multiprocessor in flight while one
 * row is used. */
#define FA__SWEEP_AHEAD (64 * 1024)
#define FA__SWEEP_STAGES 4 /* at most */

/* Rows of any kind (norm_any.h). */
#define FA__ANY_VECTORS 4      /* vectors of 16 bytes of a row that a thread of a forward has: few, so that many rows are in flight */
#define FA__ANY_LANE_BLOCK 128 /* threads of a block whose teams are lanes */
#define FA__ANY_RESIDENT 2     /* blocks of a backward that fit in a multiprocessor */
#define FA__ANY_ROWS 8         /* that each of its teams takes, unless there are too few: its sums of columns are written and read once for them */
/* Shared memory for so many columns, which may begin anywhere in a vector. */
static inline FA_UNUSED int fa__any_bytes(int64_t cols, int element_bytes) { return (int)((cols * element_bytes + 30) / 16 * 16); }
/* Slots for what a block has of rows, so many vectors of each; returns the shared memory for these and `scratch`. */
static inline FA_UNUSED size_t fa__any_slots(fa__rows *r, int64_t vectors, int element_bytes, int slot_count, size_t scratch) {
    r->chunk = (int)(vectors * 16 / element_bytes);
    r->slot_bytes = fa__any_bytes(r->chunk, element_bytes);
    return scratch + (size_t)(r->teams * slot_count) * (size_t)r->slot_bytes;
}
/* Each tensor of a row has a slot, and so has each of `results`, unless rows are even, which are written without. A
 * team takes a row, or the row is split. */
FA__CALLED fa_status fa__rows_any(fa__rows *r, const char *name, const void *kernel, int element_bytes, int results, size_t scratch, size_t *shared_bytes) {
    const int slot_count = r->tensors + (r->even ? 0 : results);
    const int64_t vectors = fa__row_vectors(r->cols, element_bytes, 1), needed = (vectors + FA__ANY_VECTORS - 1) / FA__ANY_VECTORS;
    if (needed <= FA__SLOT_THREADS) {
        fa__rows_teams(r, needed, FA__ANY_LANE_BLOCK);
        *shared_bytes = fa__any_slots(r, vectors, element_bytes, slot_count, scratch);
        return FA_OK;
    }
    int device, most;
    const cudaError_t error = fa__most_shared(&device, &most);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "asking for the shared memory of the device");
    for (int room = 0, most_blocks = FA__CLUSTER_BLOCKS; !room; most_blocks = r->blocks / 2) {
        /* A second result is no reason to have more blocks. */
        fa_status status = fa__rows_split(r, name, kernel, element_bytes, 1, r->tensors + !r->even, scratch, FA__SLOT_THREADS, most_blocks);
        if (status != FA_OK) return status;
        const int fits = r->slot_bytes > 0 && (size_t)slot_count * (size_t)(r->slot_bytes + 32) + scratch <= (size_t)most;
        r->threads = FA__SLOT_THREADS; /* these rows have no pieces to fill */
        r->team_bits = 30; /* one team */
        *shared_bytes =
            fa__any_slots(r, fits ? (vectors + r->blocks - 1) / r->blocks : FA__SLOT_BYTES / 16 / slot_count, element_bytes, slot_count, scratch);
        status = fa__rows_room(r, name, kernel, *shared_bytes, &room);
        if (status != FA_OK) return status;
    }
    return FA_OK;
}

/* As many blocks as there is work for, up to what the multiprocessors have room for. */
static inline FA_UNUSED void fa__rows_workers(fa__sums *s, const fa__rows *r, int64_t room) {
    const int64_t teams = (r->rows + r->teams - 1) / r->teams;
    s->workers = room / s->segments;
    if (s->workers < 1) s->workers = 1;
    if (s->workers > teams) s->workers = teams;
}
/* Of the threads of a multiprocessor those that have work, in percent, if each has so many vectors of a row. */
static inline FA_UNUSED int fa__sweep_busy(int64_t row, int vectors) {
    fa__rows r;
    fa__rows_teams(&r, (row + vectors - 1) / vectors, FA__SWEEP_LANE_BLOCK);
    const int teams = FA__SWEEP_THREADS / (r.threads * r.teams) * r.teams;
    return (int)(teams * row * 100 / (vectors * FA__SWEEP_THREADS));
}
/* The vectors of a row that a thread has. Two are 1.1 to 1.3 times as fast as four where they keep more threads busy
 * and there are two sums or three tensors (1,152, 1,280, 1,408 and 2,304 columns of bf16), and with three tensors
 * 1.02 to 1.07 times where they keep as many busy; with two tensors and one sum 0.97 times in either case. */
static inline FA_UNUSED int fa__sweep_pieces(const fa__rows *r, const fa__sums *s, int64_t row) {
    const int fast = fa__sweep_busy(row, FA__SWEEP_FAST), even = fa__sweep_busy(row, FA__SWEEP_EVEN);
    return fast >= 90 || (r->tensors > 2 && fast >= 70) || (s->count == 2 && 6 * fast > 7 * even) ? FA__SWEEP_FAST : FA__SWEEP_EVEN;
}
/* `plain`: there is one result, without dropout; `kernel`: the sweep of FA__SWEEP_EVEN vectors, the only one of
 * clusters; `block_scratch` and `cluster_scratch`: bytes of shared memory that it needs by itself and there, besides
 * rows and weights; `any_scratch`: what a sweep of rows of any kind needs besides rows. */
FA__CALLED fa_status fa__rows_sweep(fa__rows *r, fa__sums *s, const char *name, const void *kernel, int element_bytes,
                                    int plain, size_t block_scratch, size_t cluster_scratch, size_t any_scratch) {
    int device, most, all, processors;
    cudaError_t error = fa__most_shared(&device, &most);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "asking for the properties of the device");
    s->pitch = fa__sums_pitch(r->cols);
    s->segments = 1;
    s->length = r->cols;
    r->blocks = 1;
    const int64_t row = fa__row_vectors(r->cols, element_bytes, 1);
    const int kept = (int)sizeof(float) * 16 / element_bytes; /* bytes for a vector's weights */
    const int64_t warps = 32 * FA__SWEEP_EVEN;               /* vectors of one */
    const int64_t held = FA__SWEEP_EVEN * FA__SWEEP_THREADS; /* by a block */
    int blocks = 1;
    if (r->even && row > held) {
        const fa_status status = fa__rows_cluster(name, kernel, row, held / 2, &blocks);
        if (status != FA_OK) return status;
    }
    size_t scratch = blocks > 1 ? cluster_scratch : block_scratch;
    const int64_t share = (row + blocks - 1) / blocks;
    const size_t even_bytes =
        (size_t)((share + warps - 1) / warps * warps) * (size_t)(16 * r->tensors + kept) + scratch;
    const int narrow = !r->even && r->unit >= 4 && s->count == 1 && plain && row <= FA__SWEEP_FAST * FA__SWEEP_THREADS; /* norm_sweep.h: _NARROWS */
    s->whole = (r->even || narrow) && row >= FA__SWEEP_EVEN_FROM && share <= held && even_bytes <= (size_t)most;
    if (!s->whole) {
        /* A thread has a vector: two rows of each tensor and what is written are in shared memory, in the end the sums.
         * Two blocks should fit in a multiprocessor. */
        const int slot_count = 2 * r->tensors + 1, vector = 16 / element_bytes;
        const int64_t room = (all / 2 - 1024 < most ? all / 2 - 1024 : most) - (int64_t)any_scratch - 32 * slot_count;
        int64_t longest = room / (slot_count * element_bytes) / 32 * 32;
        if (longest > FA__SWEEP_THREADS * vector) longest = FA__SWEEP_THREADS * vector;
        s->segments = (r->cols + longest - 1) / longest;
        if (s->segments > 1) { /* equally long ones */
            s->row_values_count = 4;
            s->length = ((r->cols + s->segments - 1) / s->segments + vector - 1) / vector * vector;
        }
        fa__rows_teams(r, fa__row_vectors(s->length, element_bytes, 1), FA__ANY_LANE_BLOCK);
        r->slot_bytes = fa__any_bytes(s->length, element_bytes);
        const size_t rows = (size_t)(r->teams * slot_count) * (size_t)r->slot_bytes, sums = sizeof(float) * (size_t)(s->count * vector * r->threads * r->teams);
        s->shared_bytes = any_scratch + (rows > sums ? rows : sums);
        int64_t resident = all / (int64_t)(s->shared_bytes + 1024), fitting = FA__ANY_RESIDENT * FA__SWEEP_THREADS / (r->threads * r->teams);
        if (resident > fitting) resident = fitting;
        const int64_t few = r->rows / r->teams / FA__ANY_ROWS * s->segments; /* partial sums are written and read, too */
        resident = processors * (resident > 1 ? resident : 1);
        fa__rows_workers(s, r, few < processors ? processors : few < resident ? few : resident);
        return FA_OK;
    }
    s->pieces = FA__SWEEP_EVEN;
    if (plain && row <= FA__SWEEP_FAST * FA__SWEEP_THREADS) s->pieces = narrow ? FA__SWEEP_FAST : fa__sweep_pieces(r, s, row);
    fa__rows_teams(r, (share + s->pieces - 1) / s->pieces, FA__SWEEP_LANE_BLOCK);
    r->blocks = blocks;
    s->scratch_bytes = (int)scratch;
    const int threads = r->threads * r->teams;
    r->slot_bytes = threads * s->pieces * 16;
    s->weights_bytes = threads * s->pieces * kept;
    scratch += (size_t)s->weights_bytes;
    const size_t stage = (size_t)r->tensors * (size_t)r->slot_bytes;
    /* As many blocks as the multiprocessors have room for, with as much in flight as possible. */
    const int64_t beside = FA__SWEEP_THREADS / threads, room = all / beside - 1024 - (int64_t)scratch;
    for (s->stages = 1; s->stages < FA__SWEEP_STAGES; s->stages++)
        if ((int64_t)stage * (s->stages - 1) * beside >= FA__SWEEP_AHEAD || (int64_t)stage * (s->stages + 1) > room ||
            stage * (size_t)(s->stages + 1) + scratch > (size_t)most)
            break;
    s->shared_bytes = scratch + (size_t)s->stages * stage;
    int64_t resident = all / (int64_t)(s->shared_bytes + 1024);
    if (resident > beside) resident = beside;
    if (resident < 1) resident = 1;
    int64_t workers = processors * resident;
    if (blocks > 1) {
        const fa_status status = fa__most_clusters(name, kernel, threads, blocks, s->shared_bytes, &workers);
        if (status != FA_OK) return status;
        if (workers == 0) { /* a part of a GPU without room for one: by segments */
            r->even = 0;
            return fa__rows_sweep(r, s, name, kernel, element_bytes, plain, block_scratch, cluster_scratch, any_scratch);
        }
    }
    fa__rows_workers(s, r, workers);
    return FA_OK;
}
/** @endcond */

#endif
