/**
 * @file rows_launch.h
 * @brief How rows are dealt out to the threads of a GPU, by their length, their alignment and the device, and the launch.
 */
#ifndef FA_KERNEL_ROWS_LAUNCH_H
#define FA_KERNEL_ROWS_LAUNCH_H

#include <fa/arch/sm80/ops.h>
#include <fa/kernel/gpu.h>
#include <fa/kernel/rows.h>

/** @cond PRIVATE */
/* Elements of the instance's type in so many bytes. */
#define FA__ROW_COLS(bytes) ((bytes) / (FA__IS_HALF ? 2 : 4))

/* Rows in registers. */
#define FA__ROW_BYTES 64 /* that a thread reads before it uses them, of all tensors together: four loads */
/* The same of each of `tensors`. */
#define FA__TEAM_BYTES(tensors) ((tensors) * 16 > FA__ROW_BYTES ? 16 : FA__ROW_BYTES / 16 / (tensors) * 16)
/* Threads of the largest team, a block. Smaller teams share blocks of that size if they are within warps (a softmax
 * of 1,024 columns: 1 % faster than in blocks of 128 on an H200). */
#define FA__TEAM_THREADS 512
#define FA__TEAM_RESIDENT 2 /* such blocks that fit in a multiprocessor */
/* Short rows of whole vectors, of which a thread has one, in half as many registers, so that there are twice as many
 * threads. A forward has those that fill their teams (2^28 elements of bf16 on an H200, of 8, 16, 32, 64 columns:
 * 2.03, 1.17, 1.23, 1.03 times as fast; of 24, 40, 48, 56: 0.81 to 0.95), a backward all of them (of 8 to 160: 1.02
 * to 1.2). */
#define FA__SHORT_BYTES 128
#define FA__SHORT_BACK_BYTES 512
#define FA__SHORT_THREADS 256 /* of a block */
#define FA__SHORT_RESIDENT 8  /* such blocks */
/* Of the ends of a row that begins and ends anywhere, at most 14 elements, each thread has FA__ENDS_EACH, so that so
 * many threads are enough: */
#define FA__ENDS_THREADS 4
/* Short rows without gaps that are not of whole vectors (rows_gpu_packed.h): elements of a thread at most, threads
 * of a row at most, threads of a block, and such blocks. */
#define FA__PACKED_EACH 16
#define FA__PACKED_LANES 4
#define FA__PACKED_THREADS 256
#define FA__PACKED_RESIDENT 5
#define FA__CUT_THREADS 128 /* of a block that takes a segment (kernel/segments.h), FA__TEAM_BYTES each */
/* Rows in shared memory, processed in pieces of FA__TEAM_BYTES. */
#define FA__SLOT_THREADS 256      /* of a block; down to half as many, so that a row fills its pieces; and more, up to FA__SLOT_MOST, of a large one */
#define FA__SLOT_MOST (FA__SLOT_RESIDENT * FA__SLOT_THREADS)
#define FA__SLOT_BYTES (64 * 1024) /* that a block holds at most, as long as another one can be added to the cluster */
#define FA__SLOT_RESIDENT 3       /* blocks of a multiprocessor, which take turns in loading, reducing and storing */
#define FA__CLUSTER_BLOCKS 8      /* the most that code may count on (CUDA programming guide, "Thread Block Clusters"); small devices have room for fewer */
/* Rows that are read only once (FA__ONCE_FORWARD), piece by piece, the next one in flight while one is used.
 * (Persistent blocks, with the next row's first piece in flight as they finish one, were 10 % slower on an H200: not
 * all multiprocessors read equally fast, and what each does must not be settled beforehand.) */
#define FA__ONCE_BYTES 64       /* of a piece, per thread */
#define FA__ONCE_VECTORS 16     /* vectors of 16 bytes of a row per thread: so many that what it does once per row weighs little */
#define FA__ONCE_LANE_VECTORS 8 /* the same of a row that lanes of a warp share (16: 1 % faster for 2^18 rows of 1,024 columns, 7 % slower for 2^12) */
#define FA__ONCE_TEAM 256       /* threads of the largest team: many rows at a time, and yet many threads for few rows */
#define FA__ONCE_MOST 256       /* vectors that one of its threads has at most, before a cluster takes the row */
#define FA__ONCE_LANE_BLOCK 128 /* threads of a block whose teams are within warps */
#define FA__ONCE_THREADS 1024   /* threads that should fit in a multiprocessor */

/* From so many bytes on caches hold little of a matrix: what is read of it is evicted last, so that results are
 * written to memory early. On an H200 most kernels are 1 to 4 % faster for it. With smaller matrices they would be,
 * too (8 MB: 3 to 8 %), but data that nobody reads again would then displace what others read soon. */
#define FA__STREAM_BYTES ((int64_t)128 << 20)

/* Up to so many bytes of a matrix, and of a row, what is read is evicted first where nobody is likely to read it again:
 * results find room in the cache without anything being written to memory for it, and stay for whoever reads them next.
 * With 8 MB most kernels are 1 to 3 % faster for it, with 32 MB 1 to 4 % slower. */
#define FA__LEAVE_BYTES ((int64_t)16 << 20)
#define FA__LEAVE_ROW_BYTES (16 * 1024) /* a longer one may be read twice, for want of shared memory */

/* Chooses that policy; `again`: what the call reads is likely to be read again. Returns whether the matrix is below
 * FA__STREAM_BYTES. */
static inline FA_UNUSED int fa__rows_policy(fa__rows *r, int element_bytes, int again) {
    const int64_t row = r->cols * element_bytes, bytes = r->bytes > 0 ? r->bytes : r->rows * row;
    const int leave = bytes <= FA__LEAVE_BYTES && row <= FA__LEAVE_ROW_BYTES && !again;
    r->policy = bytes >= FA__STREAM_BYTES ? FA__SM80_EVICT_LAST : leave ? FA__SM80_EVICT_FIRST : FA__SM80_EVICT_UNCHANGED;
    return bytes < FA__STREAM_BYTES;
}

/* The most blocks of a launch, a multiple of a cluster. With more rows than that a block takes several; kernels whose
 * blocks take one each are not used for so many. */
#define FA__BLOCKS_MOST ((int64_t)INT32_MAX / 8 * 8)

/* Vectors of 16 bytes that a row may touch. */
static inline FA_UNUSED int64_t fa__row_vectors(int64_t cols, int element_bytes, int aligned) {
    return (cols * element_bytes + 15) / 16 + !aligned;
}

/* Deals rows to teams of `needed` threads, or a few more; teams of lanes share blocks of `block` threads. */
static inline FA_UNUSED void fa__rows_teams(fa__rows *r, int64_t needed, int block) {
    for (r->threads = 1; r->threads < needed && r->threads < 32;) r->threads *= 2;
    if (needed > 32) r->threads = (int)((needed + 31) / 32 * 32);
    r->teams = r->threads <= 32 ? block / r->threads : 1;
    for (r->team_bits = 0; 1 << r->team_bits < r->threads;) r->team_bits++;
    r->blocks = 1;
    r->slot_bytes = 0;
}
/* Whether a team of at most `most` threads holds a row in registers, `bytes` per thread. If so, sets the team's
 * size, and whether rows are whole: of whole vectors, and, if `full`, filling every team of every block. */
static inline FA_UNUSED int fa__rows_fit(fa__rows *r, int element_bytes, int aligned, int bytes, int most, int full) {
    int64_t needed = (fa__row_vectors(r->cols, element_bytes, aligned) * 16 + bytes - 1) / bytes;
    if (needed > most) return 0;
    fa__rows_teams(r, needed, most);
    r->whole = r->even && r->cols * element_bytes % 16 == 0 && r->rows <= FA__BLOCKS_MOST;
    if (full) r->whole &= r->cols * element_bytes == (int64_t)r->threads * bytes && r->rows % r->teams == 0;
    return 1;
}
/* The same of rows whose ends are handled apart. */
static inline FA_UNUSED int fa__rows_ends(fa__rows *r, int element_bytes, int bytes, int most) {
    const int64_t needed = (r->cols * element_bytes / 16 * 16 + bytes - 1) / bytes;
    if (needed > most) return 0;
    const int64_t of_ends = (r->cols + FA__ENDS_EACH - 1) / FA__ENDS_EACH, least = of_ends < FA__ENDS_THREADS ? of_ends : FA__ENDS_THREADS;
    fa__rows_teams(r, needed > least ? needed : least, most);
    r->whole = 0;
    return 1;
}
/* Whether a row is short, of at most `most` bytes, and, if `full`, fills its team; and the size of its team, if so. */
static inline FA_UNUSED int fa__rows_short(fa__rows *r, int element_bytes, int aligned, int most, int full) {
    const int64_t row = r->cols * element_bytes;
    return row <= most && fa__rows_fit(r, element_bytes, aligned, 16, FA__SHORT_THREADS, 0) && r->whole && !(full && row < r->threads * 16);
}
/* Whether rows of some matrices are short, without gaps, and not of whole vectors; and the size of their teams, if
 * so. It depends neither on their number nor on where they begin, so that a row's results do not, either. */
static inline FA_UNUSED int fa__rows_packed(fa__rows *r, const fa_matrix *m, int count, int element_bytes) {
    const int64_t row = r->cols * element_bytes;
    if (r->cols > FA__PACKED_EACH * FA__PACKED_LANES || row % 16 == 0) return 0;
    for (int i = 0; i < count; i++)
        if (m[i].stride_row != r->cols) return 0;
    fa__rows_teams(r, (r->cols + FA__PACKED_EACH - 1) / FA__PACKED_EACH, FA__PACKED_THREADS);
    r->whole = 0;
    r->slot_bytes = r->teams * (int)row + 16;
    return (r->rows + r->teams - 1) / r->teams <= FA__BLOCKS_MOST;
}
/* Whether one block takes a row that is read only once; and the size of its team, if so. */
static inline FA_UNUSED int fa__rows_once(fa__rows *r, int element_bytes, int aligned) {
    const int64_t vectors = fa__row_vectors(r->cols, element_bytes, aligned);
    int threads = 1;
    if (vectors > (int64_t)FA__ONCE_MOST * FA__ONCE_TEAM) return 0;
    while (threads < 8 && 4 * threads < vectors) threads *= 2; /* neighbouring lanes read what lies together */
    while (threads < 32 && threads * FA__ONCE_LANE_VECTORS < vectors) threads *= 2;
    while (threads < FA__ONCE_TEAM && threads * FA__ONCE_VECTORS < vectors) threads *= 2;
    fa__rows_teams(r, threads, FA__ONCE_LANE_BLOCK);
    return 1;
}

/* How many blocks of a kernel, a power of two, share a row that needs `needed` threads, or whatever it is of which
 * one has `most`. As few as that takes, and no more than there may be in a cluster: 1 on GPUs without clusters, and
 * in code for these. */
FA__CALLED fa_status fa__rows_cluster(const char *name, const void *kernel, int64_t needed, int64_t most, int *blocks) {
    int device, major, capability;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "asking for the compute capability of the device");
    error = fa__compiled_for(kernel, &capability);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "finding the kernel");
    const int limit = major >= 9 && capability >= 90 ? FA__CLUSTER_BLOCKS : 1;
    for (*blocks = 1; *blocks < limit && needed > *blocks * most;) *blocks *= 2;
    return FA_OK;
}
/* Whether the device has room for the blocks that share a row; it may be a part of a GPU. (The question takes a host
 * half a microsecond.) */
FA__CALLED fa_status fa__rows_room(const fa__rows *r, const char *name, const void *kernel, size_t shared_bytes, int *room) {
    int64_t clusters = 1;
    const fa_status status = r->blocks > 1 ? fa__most_clusters(name, kernel, r->threads, r->blocks, shared_bytes, &clusters) : FA_OK;
    *room = clusters > 0;
    return status;
}
/* How many blocks, up to `most_blocks`, of at most `limit` threads share a row, and what each holds of it. */
FA__CALLED fa_status fa__rows_split(fa__rows *r, const char *name, const void *kernel, int element_bytes, int aligned,
                                    int tensors, size_t scratch, int limit, int most_blocks) {
    int device, most, clusters, all;
    cudaError_t error = fa__most_shared(&device, &most);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    if (error != cudaSuccess) return fa__cuda_failed(error, name, "asking for the shared memory of the device");
    const fa_status status = fa__rows_cluster(name, kernel, INT64_MAX, 1, &clusters);
    if (status != FA_OK) return status;
    if (clusters > most_blocks) clusters = most_blocks;
    const int64_t vectors = fa__row_vectors(r->cols, element_bytes, aligned);
    int64_t bytes = 0;
    r->teams = 1;
    for (r->blocks = 1;; r->blocks *= 2) {
        /* Blocks of which a multiprocessor has room for fewer than usual have more threads. But the last piece takes
         * its time however little of the row it has: blocks have fewer where 3 % less, or more, is held for nothing. */
        const int64_t resident = all / ((vectors + r->blocks - 1) / r->blocks * 16 * tensors + (int64_t)scratch + 1024);
        int first = resident < 1 || resident >= FA__SLOT_RESIDENT ? FA__SLOT_THREADS : FA__SLOT_MOST / (int)resident;
        if (first > limit) first = limit;
        for (int threads = first; threads >= first / 2; threads -= 32) {
            const int64_t piece = FA__TEAM_BYTES(tensors) / 16 * threads * r->blocks;
            const int64_t held = (vectors + piece - 1) / piece * piece / r->blocks * 16;
            if (threads == first || held * 33 < bytes * 32) bytes = held, r->threads = threads;
        }
        if (r->blocks == clusters || bytes * tensors <= FA__SLOT_BYTES) break;
    }
    r->slot_bytes = bytes * tensors <= most - (int64_t)scratch ? (int)bytes : 0;
    r->whole = r->even && r->cols * element_bytes == bytes * r->blocks;
    return FA_OK;
}

static inline FA_UNUSED fa_status fa__launch_rows(const char *name, const void *kernel, const fa__rows *r, size_t shared_bytes,
                                                  void *params, fa_stream stream) {
    const int64_t blocks = (r->rows + r->teams - 1) / r->teams * r->blocks;
    return fa__launch_blocks(name, kernel, blocks < FA__BLOCKS_MOST ? blocks : FA__BLOCKS_MOST, r->threads * r->teams, r->blocks,
                             shared_bytes, params, stream);
}
/** @endcond */

#endif
