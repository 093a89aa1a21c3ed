/**
 * @file check.h
 * @brief What the host checks of tensors before an instance runs: bad input never launches.
 */
#ifndef FA_KERNEL_CHECK_H
#define FA_KERNEL_CHECK_H

#include <fa/fa.h>

/** @cond PRIVATE */
#define FA__CHECK(condition, ...)                                                              \
    do {                                                                                       \
        if (!(condition)) return FA__FAIL(FA_ERROR_ARGUMENT, __VA_ARGS__);                     \
    } while (0)

/* More elements than any address space has room for: numbers computed from their count may not fit in 64 bits. */
static inline FA_UNUSED int fa__too_many(int64_t rows, int64_t cols) { return cols > 0 && rows > ((int64_t)1 << 48) / cols; }
/* Bytes of an array of words of 4 bytes: of one that cannot exist, more than any address space has. */
static inline FA_UNUSED int64_t fa__bytes_of_words(int64_t rows, int64_t cols) { return fa__too_many(rows, cols) ? (int64_t)1 << 50 : rows * cols * 4; }

/* The strides of a tensor, and how many steps there are along each. */
typedef struct fa__stride_use {
    const char *which;
    int64_t stride;
    int size;
} fa__stride_use;
#define FA__STRIDES(t, batch, heads, seqlen) \
    {{"batch", (t)->stride_batch, batch}, {"head", (t)->stride_head, heads}, {"seq", (t)->stride_seq, seqlen}}

/* A field <tensor><joint>stride_<which>, of which there are `size` steps: what is only multiplied by 0 may be
 * anything. */
static inline FA_UNUSED fa_status fa__check_stride(const char *name, const char *tensor, const char *joint, const fa__stride_use *use, int row,
                                                   int element_bytes, int alignment, int written) {
    const int unit = alignment / element_bytes;
    const long long stride = use->stride;
    if (use->size <= 1) return FA_OK;
    FA__CHECK(stride >= 0, "%s: %s%sstride_%s is %lld: strides are not negative", name, tensor, joint, use->which, stride);
    FA__CHECK(!fa__too_many(use->size - 1, stride), "%s: %s%sstride_%s is %lld: the last of %d would begin more than 2^48 elements behind the first",
              name, tensor, joint, use->which, stride, use->size);
    FA__CHECK(stride % unit == 0, "%s: %s%sstride_%s is %lld elements: a multiple of %d (%d bytes) is needed", name, tensor, joint, use->which,
              stride, unit, alignment);
    FA__CHECK(!written || stride >= row, "%s: %s%sstride_%s is %lld: rows of %d elements would be written over each other", name, tensor, joint,
              use->which, stride, row);
    return FA_OK;
}

/* A tensor whose rows begin at multiples of `alignment` bytes. */
static inline FA_UNUSED fa_status fa__check_tensor(const char *name, const char *tensor, const fa_tensor *t, int batch, int heads, int seqlen,
                                                   int row, int element_bytes, int alignment, int written) {
    const fa__stride_use strides[] = FA__STRIDES(t, batch, heads, seqlen);
    if (batch == 0 || heads == 0 || seqlen == 0 || row == 0) return FA_OK;
    FA__CHECK(t->data, "%s: %s.data is NULL: (%d, %d, %d, %d) elements are needed", name, tensor, batch, heads, seqlen, row);
    FA__CHECK((uintptr_t)t->data % (uintptr_t)alignment == 0, "%s: %s.data is %p: it must be aligned to %d bytes", name, tensor, t->data,
              alignment);
    for (int i = 0; i < 3; i++) {
        fa_status status = fa__check_stride(name, tensor, ".", &strides[i], row, element_bytes, alignment, written);
        if (status != FA_OK) return status;
    }
    return FA_OK;
}

/* Rows of one tensor, or a single array, in memory: of batch 1, one head and one token. */
typedef struct fa__place {
    const void *data;
    int64_t row_bytes;
    int element_bytes;
    fa__stride_use strides[3]; /* in elements */
} fa__place;
#define FA__PLACE(t, batch, heads, seqlen, row, element_bytes) {(t)->data, (int64_t)(row) * (element_bytes), element_bytes, FA__STRIDES(t, batch, heads, seqlen)}
#define FA__PLACE_OF_ARRAY(data, bytes) {data, bytes, 1, {{"", 0, 1}, {"", 0, 1}, {"", 0, 1}}}

/* Rows of two tensors with the same strides: fa__rows_meet() tells whether any two have a byte in common. Along a
 * stride the row of the first tensor is `least` to `most` steps further than that of the second (below 0: behind
 * it). */
typedef struct fa__lattice {
    int64_t row, other_row;
    int64_t stride[3], least[3], most[3]; /* longest stride first */
    int left; /* combinations of steps that are still looked at: strides that are no layout may have any number */
} fa__lattice;
FA__CALLED int64_t fa__quotient_below(int64_t a, int64_t b) { return a / b - (a % b < 0); }
/* Whether such rows meet. Steps along the strides before `depth` are chosen: with these the second row begins
 * `apart` bytes behind the first. Those from `depth` on are tried. (Bytes, or elements, throughout.) */
FA__CALLED int fa__rows_meet(fa__lattice *of, int64_t apart, int depth) {
    int64_t low = 1 - of->row, high = of->other_row - 1; /* rows meet where -apart lies from low to high */
    if (depth == 3) return low <= -apart && -apart <= high;
    if (of->stride[depth] == 0) return fa__rows_meet(of, apart, depth + 1);
    for (int i = depth + 1; i < 3; i++) low -= of->stride[i] * of->most[i], high -= of->stride[i] * of->least[i];
    int64_t begin = -fa__quotient_below(-(apart + low), of->stride[depth]), end = fa__quotient_below(apart + high, of->stride[depth]);
    if (begin < of->least[depth]) begin = of->least[depth];
    if (end > of->most[depth]) end = of->most[depth];
    for (int64_t i = begin; i <= end && of->left-- > 0; i++)
        if (fa__rows_meet(of, apart - i * of->stride[depth], depth + 1)) return 1;
    return 0;
}
/* Puts a stride and its steps among the `count` that are there. */
FA__CALLED void fa__lattice_add(fa__lattice *of, int count, int64_t stride, int64_t least, int64_t most) {
    for (; count > 0 && of->stride[count - 1] < stride; count--)
        of->stride[count] = of->stride[count - 1], of->least[count] = of->least[count - 1], of->most[count] = of->most[count - 1];
    of->stride[count] = stride, of->least[count] = least, of->most[count] = most;
}
/* Checks that no two rows of a written tensor have an element in common. Of two different rows the later one is at
 * least one step further along the first stride in which they differ; along the strides after that it is any number
 * of steps further, or behind. */
FA__CALLED fa_status fa__check_apart(const char *name, const char *tensor, const fa_tensor *t, int batch, int heads, int seqlen, int row) {
    const fa__stride_use all[] = FA__STRIDES(t, batch, heads, seqlen);
    if (batch == 0 || heads == 0 || seqlen == 0 || row == 0) return FA_OK;
    for (int differ = 0; differ < 3; differ++) {
        fa__lattice of;
        if (all[differ].size <= 1) continue;
        for (int i = 0; i < 3; i++) {
            const int64_t most = i < differ ? 0 : (int64_t)all[i].size - 1;
            fa__lattice_add(&of, i, most > 0 ? all[i].stride : 0, i == differ ? 1 : -most, most);
        }
        of.row = of.other_row = row, of.left = 10000;
        FA__CHECK(!fa__rows_meet(&of, 0, 0), "%s: the strides of %s are %lld (batch, of which there are %d), %lld (head, %d) and %lld (seq, %d): rows of "
                  "%d elements would be written over each other", name, tensor, (long long)t->stride_batch, batch, (long long)t->stride_head, heads,
                  (long long)t->stride_seq, seqlen, row);
    }
    return FA_OK;
}
/* How many places there are along a stride: one if it is 0. */
static inline FA_UNUSED int fa__places_along(const fa__stride_use *use) { return use->stride ? use->size : 1; }
/* Whether two tensors share memory. This is found out where they begin at the same address or have the same strides
 * (those of 0 do not count); in all other cases the answer is no, even if they do. */
FA__CALLED int fa__share_memory(const fa__place *a, const fa__place *b) {
    fa__lattice of;
    if (!a->data || !b->data || a->row_bytes <= 0 || b->row_bytes <= 0) return 0;
    for (int i = 0; i < 3; i++)
        if (a->strides[i].size < 1 || b->strides[i].size < 1) return 0; /* whose strides may be anything */
    if (a->data == b->data) return 1;
    for (int i = 0; i < 3; i++) {
        const int in = fa__places_along(&a->strides[i]), other = fa__places_along(&b->strides[i]);
        const int64_t own = in > 1 ? a->strides[i].stride * a->element_bytes : 0, its = other > 1 ? b->strides[i].stride * b->element_bytes : 0;
        if (in > 1 && other > 1 && own != its) return 0;
        fa__lattice_add(&of, i, in > 1 ? own : its, 1 - (int64_t)other, (int64_t)in - 1);
    }
    of.row = a->row_bytes, of.other_row = b->row_bytes, of.left = 10000;
    const int64_t apart = (int64_t)((uintptr_t)b->data - (uintptr_t)a->data), farthest = (int64_t)1 << 60;
    return apart < farthest && apart > -farthest && fa__rows_meet(&of, apart, 0);
}
/** @endcond */

#endif
