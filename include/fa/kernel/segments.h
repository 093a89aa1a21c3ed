/**
 * @file segments.h
 * @brief Rows cut into segments that a team takes at once, for kernels whose elements are independent of each other.
 *
 * Such a kernel hands segments to kernel/rows_run.h as if they were rows: whatever the matrix looks like, a team has a few
 * vectors per thread, all in flight together, and there are as many teams as there is work for.
 */
#ifndef FA_KERNEL_SEGMENTS_H
#define FA_KERNEL_SEGMENTS_H

#include <fa/kernel/divider.h>
#include <fa/kernel/rows.h>

/** @cond PRIVATE */
typedef struct fa__segments {
    int64_t length, count; /* of a segment; segments of a row */
    fa__divider divider;   /* by count */
    int64_t cols;          /* of the matrix */
} fa__segments;

/* The columns of a segment, `first` to `first + cols` of row `row`. */
typedef struct fa__segment {
    int64_t row, first, cols;
} fa__segment;

/* Cuts rows into segments of at most `most` bytes, a multiple of 128, at multiples of 128 bytes; all but the last
 * are equally long. */
static inline FA_UNUSED fa__segments fa__cut(fa__rows *r, int64_t rows, int64_t cols, int element_bytes, int aligned, int64_t most) {
    fa__segments s;
    const int64_t line = 128 / element_bytes;
    int64_t room = most / element_bytes;
    if (!aligned && room > line) room -= line; /* a segment then touches another vector at its end */
    s.cols = cols;
    s.count = (cols + room - 1) / room;
    if (s.count < 1) s.count = 1;
    s.length = ((cols + s.count - 1) / s.count + line - 1) / line * line;
    if (s.count == 1) s.length = cols;
    r->even = cols > 0 && cols % s.length == 0;
    s.divider = fa__divider_of(s.count <= INT32_MAX ? (uint32_t)s.count : 1u);
    r->rows = rows * s.count;
    r->cols = s.length;
    return s;
}

/* i / divisor, fast if i is known to be `small`. */
FA_HOOK int64_t fa__quotient(int64_t i, int64_t divisor, fa__divider by, int small) {
    return small ? (int64_t)fa__divide((uint32_t)i, by) : i / divisor;
}

/* Segment number i of `segments`: one without columns, at the beginning, if there is none. If they are `whole`, all are
 * equally long, number i exists, and they are fewer than 2^31. */
FA_HOOK fa__segment fa__segment_at(const fa__segments *s, int64_t i, int64_t segments, const int whole) {
    fa__segment at = {i, 0, s->cols};
    if (whole) {
        const uint32_t row = fa__divide((uint32_t)i, s->divider);
        at.row = row, at.cols = s->length;
        at.first = (int64_t)((uint64_t)((uint32_t)i - row * (uint32_t)s->count) * (uint32_t)s->length);
        return at;
    }
    if (s->count > 1) {
        at.row = fa__quotient(i, s->count, s->divider, segments <= INT32_MAX);
        at.first = (i - at.row * s->count) * s->length;
        at.cols = s->cols - at.first < s->length ? s->cols - at.first : s->length;
    }
    if (i >= segments) at.row = at.first = at.cols = 0;
    return at;
}

/* The first element of a segment of a matrix. */
FA_HOOK void *fa__element(const fa_matrix *m, const fa__segment *at, size_t element_bytes) {
    return (char *)m->data + (at->row * m->stride_row + at->first) * (int64_t)element_bytes;
}

/* Whether the matrices may be taken as one row each, since there is nothing between their rows. */
static inline FA_UNUSED int fa__flat(const fa_matrix *m, int count, int64_t rows, int64_t cols) { /* fa__too_many() has been asked */
    for (int i = 0; i < count; i++)
        if (rows > 1 && m[i].stride_row != cols) return 0;
    return 1;
}
/** @endcond */

#endif
