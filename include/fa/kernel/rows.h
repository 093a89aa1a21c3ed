/**
 * @file rows.h
 * @brief What the kernels that work row by row share on the host: checks of their arguments, the shape of a launch.
 */
#ifndef FA_KERNEL_ROWS_H
#define FA_KERNEL_ROWS_H

#include <fa/kernel/check.h>

/** @cond PRIVATE */
/* Whether this is nvcc's compilation for the host, which needs only the names of kernels. */
#if defined(__CUDACC__) && !defined(__CUDA_ARCH__)
#define FA__HOST_PASS 1
#else
#define FA__HOST_PASS 0
#endif

/* The rows of a call, and how they are dealt out. */
typedef struct fa__rows {
    int threads;        /* of a block that share a row (GPU) */
    int teams;          /* that a block has: more than 1 within warps only (GPU) */
    int team_bits;      /* a thread's number shifted right by these is its team's (GPU) */
    int blocks;         /* of the cluster that shares a row (GPU) */
    uint64_t policy;    /* cache policy of what is read: to stay in the L2 cache, or to leave it first (GPU) */
    int64_t rows, cols;
    int64_t bytes;      /* of a matrix, if that is not rows * cols; else 0 (GPU) */
    int even;           /* rows of all matrices begin at multiples of 16 bytes; segments are equally long; rows of norms are of whole vectors (GPU) */
    int unit;           /* bytes, 16 if rows are even, or a smaller power of two: of vectors that rows consist of (norms; GPU) */
    int whole;          /* even, and rows are of whole vectors of 16 bytes; of segments, also fill what their teams hold, unless FA__CUT_PARTIAL (GPU) */
    int slot_bytes;     /* of shared memory in a block, or a team of norm_any.h, for each tensor that is held; 0: they are read again (GPU) */
    int chunk;          /* columns of a row that a block has in its slots at a time (norm_any.h) */
    int tensors;        /* that are held, of kernels with sums (GPU) */
    int rounds, rest;   /* vectors of an even row that every thread of a team has, and threads that have one more (GPU) */
    int none[2];        /* zeros, which the compiler does not know (GPU) */
    int64_t rows_an_item; /* CPU */
    int stream;           /* the result is larger than caches are, and bypasses them (CPU) */
} fa__rows;

/* Elements of a row's ends that a thread has where these are handled apart (FA__ENDS; GPU). */
#define FA__ENDS_EACH 4

/* Which row functions a variant needs (FA__DIRECTIONS). */
#define FA__ROWS_FORWARD 1
#define FA__ROWS_BACKWARD 2

/* Sums of columns over all rows, of kernels that have some (FA__SUMS): each worker, a block or a work item of the
 * CPU, adds up those of the rows that it takes, in an order that depends on the sizes, the device, and which
 * matrices there are and where; in the end those of all workers are added. */
typedef struct fa__sums {
    int count;        /* FA__SUMS */
    int wanted;       /* by anybody */
    float *partial;   /* (workers, count, pitch), in the workspace; NULL if they are not wanted */
    int64_t pitch;    /* floats; a multiple of 16 */
    int64_t workers;  /* among which the rows are divided; if these have several segments (GPU), so many for each segment */
    int64_t segments; /* of a row, which share nothing but what is found out about all of it before; 1: rows are whole (GPU) */
    int64_t length;   /* columns of a segment (GPU) */
    int pieces;       /* vectors of 16 bytes of a row that a thread has (GPU) */
    int whole;        /* rows are of whole vectors, or words, and not cut (GPU) */
    int scratch_bytes; /* of shared memory in a block for reductions (GPU) */
    int weights_bytes; /* the same for weights of columns (GPU) */
    size_t shared_bytes; /* of shared memory in a block (GPU) */
    int stages;       /* rows that a team has in shared memory, with those that are read ahead (GPU) */
    float *row_values; /* (row_values_count, rows), in the workspace: what is found out about whole rows before (GPU) */
    int row_values_count; /* its statistics, if they are missing; all, 4, if it has several segments (GPU) */
    void *totals[2];  /* (cols); NULL: not wanted */
} fa__sums;

static inline FA_UNUSED int64_t fa__sums_pitch(int64_t cols) { return (cols + 15) / 16 * 16; }
/* Bytes of the workspace: the partial sums, then the values of rows; SIZE_MAX, which nobody has, if a size_t of 32
 * bits cannot hold that. */
static inline FA_UNUSED size_t fa__sums_bytes(const fa__sums *s, const fa__rows *r) {
    const int64_t floats = (s->wanted ? s->workers * s->count * s->pitch : 0) + r->rows * s->row_values_count;
    return (uint64_t)floats > SIZE_MAX / sizeof(float) ? SIZE_MAX : (size_t)floats * sizeof(float);
}
static inline FA_UNUSED void fa__sums_place(fa__sums *s, void *workspace) {
    float *at = (float *)workspace;
    s->partial = s->wanted ? at : NULL;
    if (s->wanted && at) at += s->workers * s->count * s->pitch;
    s->row_values = s->row_values_count ? at : NULL;
}
FA__CALLED fa_status fa__check_workspace(const char *name, const char *says, const void *workspace, size_t bytes, size_t needed) {
    if (needed == 0) return FA_OK;
    if (!workspace)
        return FA__FAIL(FA_ERROR_WORKSPACE, "%s: workspace is NULL: %zu bytes are needed, as %s() says of these arguments", name, needed, says);
    if (bytes < needed)
        return FA__FAIL(FA_ERROR_WORKSPACE, "%s: workspace_bytes is %zu: %zu are needed, as %s() says of these arguments", name, bytes, needed, says);
    if ((uintptr_t)workspace % 16 != 0)
        return FA__FAIL(FA_ERROR_WORKSPACE, "%s: workspace is %p: it must be aligned to 16 bytes", name, workspace);
    return FA_OK;
}

FA__CALLED fa_status fa__check_rows(const char *name, int64_t rows, int64_t cols, int threads) {
    FA__CHECK(rows >= 0, "%s: rows is %lld: 0 or more is needed", name, (long long)rows);
    FA__CHECK(cols >= 0, "%s: cols is %lld: 0 or more is needed", name, (long long)cols);
    FA__CHECK(!fa__too_many(rows > 0 ? rows : 1, cols > 0 ? cols : 1), "%s: rows is %lld and cols is %lld: at most 2^48 elements are possible", name, (long long)rows,
              (long long)cols);
    FA__CHECK(threads >= 0, "%s: threads is %d: 0 (all) or more is needed", name, threads);
    return FA_OK;
}

FA__CALLED fa_status fa__check_matrix(const char *name, const char *matrix, fa_matrix m, int64_t rows, int64_t cols,
                                      int element_bytes, int written) {
    if (rows == 0 || cols == 0) return FA_OK;
    FA__CHECK(m.data, "%s: %s.data is NULL: (%lld, %lld) elements are needed", name, matrix, (long long)rows, (long long)cols);
    FA__CHECK((uintptr_t)m.data % (uintptr_t)element_bytes == 0, "%s: %s.data is %p: it must be aligned to %d bytes", name, matrix,
              m.data, element_bytes);
    if (rows == 1) return FA_OK; /* the stride is never multiplied by anything but 0 */
    FA__CHECK(m.stride_row >= 0, "%s: %s.stride_row is %lld: strides are not negative", name, matrix, (long long)m.stride_row);
    FA__CHECK(!written || m.stride_row >= cols, "%s: %s.stride_row is %lld: rows of %lld elements would be written over each other",
              name, matrix, (long long)m.stride_row, (long long)cols);
    FA__CHECK(!fa__too_many(rows - 1, m.stride_row), "%s: %s.stride_row is %lld: the last of %lld rows would begin more than 2^48 elements behind the first",
              name, matrix, (long long)m.stride_row, (long long)rows);
    return FA_OK;
}
/* Whether two matrices of the same stride that begin `apart` bytes from each other share some elements, but not all:
 * one that is further apart than a row may lie beside the other's rows, as the halves of a packed matrix do. */
static inline FA_UNUSED int fa__interlock(uintptr_t apart, uintptr_t stride, uintptr_t row_bytes, uintptr_t rows) {
    if (apart == 0 || rows == 1) return apart > 0 && apart < row_bytes;
    const uintptr_t skipped = apart / stride, rest = apart % stride;
    return (skipped < rows && rest < row_bytes) || (skipped + 1 < rows && stride - rest < row_bytes);
}
/* Whether some memory lies outside all rows of a matrix: before the first, behind the last, or between two. In
 * bytes. */
static inline FA_UNUSED int fa__outside(uintptr_t at, uintptr_t length, uintptr_t matrix, uintptr_t stride, uintptr_t row_bytes, uintptr_t rows) {
    const uintptr_t into = at > matrix && stride > row_bytes ? (at - matrix) % stride : 0;
    return at + length <= matrix || at >= matrix + (rows - 1) * stride + row_bytes || (into >= row_bytes && into + length <= stride);
}
/* The matrices of a call. One that is written in place of one that is read must have the same stride; two that are
 * written must not overlap. (Where strides differ, only an overlap of the first elements is detected, and a single
 * row that is read for all in one that is written.) */
typedef struct fa__matrix_use {
    const char *name;
    fa_matrix matrix;
    int used, written;
} fa__matrix_use;
FA__CALLED fa_status fa__check_matrices(const char *name, const fa__matrix_use *all, int count, int64_t rows, int64_t cols, int element_bytes) {
    fa_status status;
    for (int i = 0; i < count; i++)
        if (all[i].used && (status = fa__check_matrix(name, all[i].name, all[i].matrix, rows, cols, element_bytes, all[i].written)) != FA_OK)
            return status;
    if (rows == 0 || cols == 0) return FA_OK;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) {
            const fa__matrix_use *to = &all[i], *other = &all[j];
            if (i == j || !to->used || !to->written || !other->used) continue;
            const uintptr_t a = (uintptr_t)to->matrix.data, b = (uintptr_t)other->matrix.data, bytes = (uintptr_t)element_bytes;
            FA__CHECK((rows > 1 && to->matrix.stride_row != other->matrix.stride_row) ||
                          !fa__interlock(a < b ? b - a : a - b, (uintptr_t)to->matrix.stride_row * bytes, (uintptr_t)cols * bytes, (uintptr_t)rows),
                      "%s: %s, at %p, and %s, at %p, share some of their %lld x %lld elements: either all, or none, are possible", name, to->name,
                      to->matrix.data, other->name, other->matrix.data, (long long)rows, (long long)cols);
            FA__CHECK(rows == 1 || other->written || other->matrix.stride_row > 0 ||
                          fa__outside(b, (uintptr_t)cols * bytes, a, (uintptr_t)to->matrix.stride_row * bytes, (uintptr_t)cols * bytes, (uintptr_t)rows),
                      "%s: %s, at %p, whose rows are all the same, has a place in %s, at %p: memory of its own is needed", name, other->name,
                      other->matrix.data, to->name, to->matrix.data);
            if (a != b) continue;
            FA__CHECK(!other->written, "%s: %s.data and %s.data are both %p: two matrices are needed", name, to->name, other->name, to->matrix.data);
            FA__CHECK(rows == 1 || to->matrix.stride_row == other->matrix.stride_row,
                      "%s: %s is written in place of %s with a stride_row of %lld, not %lld: the same is needed", name, to->name, other->name,
                      (long long)to->matrix.stride_row, (long long)other->matrix.stride_row);
        }
    return FA_OK;
}
/* The vectors of a call, which may be NULL. A written vector must not overlap another vector or a matrix, and one that
 * is read must not overlap a written matrix. */
typedef struct fa__vector_use {
    const char *name;
    const void *data;
    int used, written, element_bytes;
    int64_t count;
} fa__vector_use;
FA__CALLED fa_status fa__check_vector(const char *name, const fa__vector_use *of, const fa__vector_use *others, int count, const fa__matrix_use *all,
                                      int matrices, int64_t rows, int64_t cols, int element_bytes) {
    const uintptr_t v = (uintptr_t)of->data, length = (uintptr_t)of->count * (uintptr_t)of->element_bytes;
    if (!of->used || !v || length == 0) return FA_OK;
    FA__CHECK(v % (uintptr_t)of->element_bytes == 0, "%s: %s is %p: it must be aligned to %d bytes", name, of->name, of->data, of->element_bytes);
    for (int i = 0; i < count; i++) {
        const fa__vector_use *other = &others[i];
        const uintptr_t o = (uintptr_t)other->data;
        if (!other->used || !o || other->count == 0 || !(of->written || other->written)) continue;
        FA__CHECK(v + length <= o || o + (uintptr_t)other->count * (uintptr_t)other->element_bytes <= v,
                  "%s: %s, %lld %s at %p, and %s, %lld at %p, share memory: two arrays are needed", name, other->name,
                  (long long)other->count, other->element_bytes == 1 ? "bytes" : "elements", other->data, of->name, (long long)of->count, of->data);
    }
    for (int i = 0; i < matrices && rows > 0 && cols > 0; i++) {
        if (!all[i].used || !(of->written || all[i].written)) continue;
        const uintptr_t m = (uintptr_t)all[i].matrix.data, row = (uintptr_t)cols * (uintptr_t)element_bytes;
        const uintptr_t stride = rows == 1 ? 0 : (uintptr_t)all[i].matrix.stride_row * (uintptr_t)element_bytes;
        FA__CHECK(fa__outside(v, length, m, stride, row, (uintptr_t)rows), "%s: %s, %lld %s at %p, has a place in %s, at %p: memory of its own is needed", name, of->name, (long long)of->count,
                  of->element_bytes == 1 ? "bytes" : "elements", of->data, all[i].name, all[i].matrix.data);
    }
    return FA_OK;
}
FA__CALLED fa_status fa__check_vectors(const char *name, const fa__vector_use *vectors, int count, const fa__matrix_use *all, int matrices,
                                       int64_t rows, int64_t cols, int element_bytes) {
    fa_status status = FA_OK;
    for (int i = 0; i < count && status == FA_OK; i++)
        status = fa__check_vector(name, &vectors[i], vectors, i, all, matrices, rows, cols, element_bytes);
    return status;
}
/* The address of element (row, col) of a matrix, or one that is not used if there is none. */
FA_HOOK void *fa__address(const fa_matrix *m, int64_t row, int64_t col, size_t element_bytes) {
    return (void *)((uintptr_t)m->data + (uintptr_t)((row * m->stride_row + col) * (int64_t)element_bytes));
}
/* Whether all rows begin at a multiple of 16 bytes; and those of several matrices. */
static inline FA_UNUSED int fa__aligned(fa_matrix m, int element_bytes) {
    return (uintptr_t)m.data % 16 == 0 && (uintptr_t)m.stride_row * (uintptr_t)element_bytes % 16 == 0;
}
static inline FA_UNUSED int fa__all_aligned(const fa_matrix *m, int count, int element_bytes) {
    for (int i = 0; i < count; i++)
        if (!fa__aligned(m[i], element_bytes)) return 0;
    return 1;
}
/** @endcond */

#endif
