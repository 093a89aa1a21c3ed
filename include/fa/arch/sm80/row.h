/* sm80/row.h: rows on GPUs. A vector is FA_VECTOR bytes, by default 16. Vector i of a piece is held by thread i %
 * threads, as its number i / threads, so that a warp's load is one stretch of 512 bytes, and a thread's loads of a
 * piece are all under way before the first is used. */

/* Converted where it is used: at once, it would have to be waited for at once. */
FA__FN float FA__ROW(_late)(FA__ELEMENT element) {
#if FA__IS_HALF
    element = (uint16_t)fa_sm80_opaque(element);
#else
    element = fa__from_bits((uint32_t)fa_sm80_opaque((int)fa__bits(element)));
#endif
    return fa_load_element(&element, 0, FA_DTYPE);
}

/* A view of which nothing is known but its row and the caller's place in the team. */
FA__FN FA__ROW(_view) FA__ROW(__view_of)(const void *row, int64_t cols, const fa_team *team) {
    FA__ROW(_view) v;
    v.first = (FA__ELEMENT *)(uintptr_t)row;
    v.cols = cols;
    v.shift = 0;
    v.width = 16;
    v.whole = team->whole;
    v.stream = 0;
    v.policy = 0;
    v.thread = team->thread;
    v.threads = team->threads;
    return v;
}
FA__FN void FA__ROW(_stream)(FA__ROW(_view) * v) { (void)v; } /* stores that pass by the first-level cache were slower */

#if defined(FA__PACKED) /* kernel/rows_gpu_packed.h */
#include <fa/arch/sm80/row_packed.h>
#else
enum {
    FA__ROW(_VECTOR) = FA_VECTOR / (int)sizeof(FA__ELEMENT), /* elements of a vector */
    FA__ROW(_WORDS) = FA_VECTOR / 4,
    FA__ROW(_VECTORS) = ((FA_COLS + FA_THREADS - 1) / FA_THREADS + FA__ROW(_VECTOR) - 1) / FA__ROW(_VECTOR), /* of a piece */
    FA__ROW(_LENGTH) = FA__ROW(_VECTORS) * FA__ROW(_VECTOR),
    FA__ROW(_PARTS) = FA__ROW(_VECTORS),
    FA__ROW(_PART) = FA__ROW(_VECTOR),
    FA__ROW(_WHOLE) = FA_WHOLE,
#if defined(FA__ENDS) /* kernel/rows_primitives.h: and vectors of all rows but the first may lie anywhere */
    FA__ROW(__ENDS) = FA__ENDS
#else
    FA__ROW(__ENDS) = 0
#endif
};
FA__REQUIRE(FA_WHOLE > 0 || FA__ROW(_VECTORS) <= 32, /* a bit for each */
            "FA_COLS is " FA__STR(FA_COLS) " and FA_THREADS is " FA__STR(FA_THREADS) ": a thread of a GPU holds at most 32 vectors of 16 bytes of any row; more threads are needed");

/* Whether vector j of a piece is the row's: rows of whole vectors (FA_WHOLE 2) may have fewer than their team holds.
 * What is the same in all threads is computed apart from what is not, here and in the address: then it takes no
 * registers of each thread. */
FA__FN int FA__ROW(__there)(const FA__ROW(_view) * v, int64_t piece, int j) {
    return FA_WHOLE < 2 || v->thread * FA__ROW(_VECTOR) < (int)v->cols - ((int)piece * FA__ROW(_VECTORS) + j) * v->threads * FA__ROW(_VECTOR);
}
FA__FN FA__ELEMENT *FA__ROW(__place)(const FA__ROW(_view) * v, int64_t piece, int j) {
    if (FA_WHOLE < 2) return v->first + piece * FA__ROW(_LENGTH) * v->threads + (j * v->threads + v->thread) * FA__ROW(_VECTOR);
    uint64_t mine = fa_sm80_opaque_address((uint64_t)(uintptr_t)(v->first + v->thread * FA__ROW(_VECTOR)));
    return (FA__ELEMENT *)(uintptr_t)mine + ((int)piece * FA__ROW(_VECTORS) + j) * v->threads * FA__ROW(_VECTOR);
}
/* Whether it has no ends to look after. Where the parameter says so, the compiler drops what would do that before it
 * has looked at the view, which takes a third of its time. */
FA__FN int FA__ROW(__no_ends)(const FA__ROW(_view) * v) { return FA_WHOLE > 0 || v->whole; }
/* The widest access that an address allows, up to 16 bytes. */
FA__FN int FA__ROW(__width)(const void *first) {
    return fa__unit((unsigned)(uintptr_t)first);
}
FA__FN FA__ROW(_view) FA__ROW(_at)(const void *row, int64_t cols, const fa_team *team) {
    FA__ROW(_view) v = FA__ROW(__view_of)(row, cols, team);
    v.whole = FA_WHOLE > 0 || team->whole;
    if (!FA__ROW(__no_ends)(&v)) {
        int64_t room = (int64_t)FA__ROW(_LENGTH) * (FA_PIECES > 0 ? FA_PIECES : 1) * team->threads;
        v.shift = (int)((unsigned)(uintptr_t)row % 16u) / (int)sizeof(FA__ELEMENT);
        if (cols <= room && cols + v.shift > room) v.shift = 0; /* a row that fits must fit with its shift, too: narrower accesses instead */
        v.first -= v.shift;
        v.width = FA__ROW(__width)(v.first);
    }
    return v;
}
FA__FN FA__ROW(_view) FA__ROW(_like)(const void *row, const FA__ROW(_view) * of) {
    FA__ROW(_view) v = *of;
    v.first = (FA__ELEMENT *)(uintptr_t)row;
    if (FA__ROW(__ENDS)) v.width = FA__ROW(__width)(v.first);
    if (FA__ROW(__no_ends)(&v)) return v;
    v.first -= v.shift;
    v.width = FA__ROW(__width)(v.first);
    return v;
}

/* Of a row that begins and ends anywhere, what does not lie in whole vectors, at most 14 elements, is handled by
 * themselves: `head` of them come first. (Vectors with ends in them took a third of the instructions of a softmax.) */
typedef struct FA__ROW(__ends) {
    int head, count, inner; /* of all elements; those of whole vectors */
} FA__ROW(__ends);
/* Of the row at *first, which becomes the address of its first whole vector, and *cols what is in whole vectors;
 * without FA__ENDS there are none, and neither changes. */
FA__FN FA__ROW(__ends) FA__ROW(__ends_of)(const FA__ELEMENT **first, int64_t *cols) {
    FA__ROW(__ends) e = {0, 0, 0};
    if (!FA__ROW(__ENDS)) return e;
    const int gap = (int)((0u - (unsigned)(uintptr_t)*first) & 15u) / (int)sizeof(FA__ELEMENT);
    e.head = gap < *cols ? gap : (int)*cols;
    e.inner = ((int)*cols - e.head) / FA__ROW(_VECTOR) * FA__ROW(_VECTOR);
    e.count = (int)*cols - e.inner;
    *first += e.head;
    *cols = e.inner;
    return e;
}
/* Number i of a thread: whether there is one, and its column from the first whole vector on. */
FA__FN int FA__ROW(__end)(int *col, const FA__ROW(__ends) * e, int i, const fa_team *team) {
    const int which = i * team->threads + team->thread;
    *col = which - e->head + (which < e->head ? 0 : e->inner);
    return which < e->count;
}

/* Whether no thread has anything of a piece: not known. */
FA__FN int FA__ROW(__none)(const FA__ROW(_view) * v, int64_t piece) { return (void)v, (void)piece, 0; }

/* What is read of it stays in the second-level cache by a policy. */
FA__FN void FA__ROW(__set_policy)(FA__ROW(_view) * v, uint64_t policy) {
    v->stream = 1;
    v->policy = policy;
}

/* Elements from the start of a piece to the row's end: at most those of the piece, negative for none. */
FA__FN int FA__ROW(__left)(const FA__ROW(_view) * v, int64_t piece) {
    int room = FA__ROW(_LENGTH) * v->threads;
    int64_t left = v->cols == 0 ? 0 : v->cols + v->shift - piece * room;
    return left < room ? (int)left : room;
}
/* Whether a piece of which the row has the elements from `begin` to `end` is all the row's, and each vector is read
 * or written at once. */
FA__FN int FA__ROW(__whole)(const FA__ROW(_view) * v, int begin, int end) {
    return v->width == 16 && begin == 0 && end == FA__ROW(_LENGTH) * v->threads;
}
FA__FN int64_t FA__ROW(_pieces)(const FA__ROW(_view) * v) {
    if (FA_PIECES > 0) return FA_PIECES;
    int64_t room = (int64_t)FA__ROW(_LENGTH) * v->threads;
    return (v->cols + v->shift + room - 1) / room;
}
FA__FN int FA__ROW(_count)(const FA__ROW(_view) * v, int64_t piece) {
    (void)v, (void)piece;
    return FA__ROW(_LENGTH);
}
FA__FN int64_t FA__ROW(_col)(const FA__ROW(_view) * v, int64_t piece, int i) {
    int in_piece = (i / FA__ROW(_VECTOR) * v->threads + v->thread) * FA__ROW(_VECTOR) + i % FA__ROW(_VECTOR) - v->shift;
    return piece * FA__ROW(_LENGTH) * v->threads + in_piece;
}

FA__FN int FA__ROW(_real)(const FA__ROW(_view) * v, int64_t piece) {
    int real = 0;
    if (FA__ROW(__no_ends)(v)) {
        FA__UNROLL
        for (int j = 0; j < FA__ROW(_VECTORS); j++) real += FA__ROW(__there)(v, piece, j) ? FA__ROW(_VECTOR) : 0;
        return real;
    }
    int begin = piece == 0 ? v->shift : 0, end = FA__ROW(__left)(v, piece);
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) {
        int at = (j * v->threads + v->thread) * FA__ROW(_VECTOR), stop = at + FA__ROW(_VECTOR);
        int n = (stop < end ? stop : end) - (at > begin ? at : begin);
        real += n > 0 ? n : 0;
    }
    return real;
}
FA__FN void FA__ROW(_pad)(float *x, const FA__ROW(_view) * v, int64_t piece, float value) {
    if (FA__ROW(__no_ends)(v)) {
        FA__UNROLL
        for (int i = 0; FA_WHOLE == 2 && i < FA__ROW(_LENGTH); i++)
            if (!FA__ROW(__there)(v, piece, i / FA__ROW(_VECTOR))) x[i] = value;
        return;
    }
    int begin = piece == 0 ? v->shift : 0, end = FA__ROW(__left)(v, piece);
    if (begin == 0 && end == FA__ROW(_LENGTH) * v->threads) return;
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) {
        int at = (j * v->threads + v->thread) * FA__ROW(_VECTOR);
        if (at >= begin && at + FA__ROW(_VECTOR) <= end) continue;
        FA__UNROLL
        for (int i = 0; i < FA__ROW(_VECTOR); i++)
            if (at + i < begin || at + i >= end) x[j * FA__ROW(_VECTOR) + i] = value;
    }
}

#include <fa/arch/sm80/row_words.h>

/* ---- pieces ---- */

/* Vectors of a piece, as words; those that hold nothing of the row are made of `fill`. The ragged ones come last, in a
 * loop that is not unrolled: few rows have more than two, and the code for one is long. */
FA__FN void FA__ROW(__fetch)(uint32_t *raw, const FA__ROW(_view) * v, int64_t piece, uint32_t fill) {
    int begin = 0, end = 0, whole = FA__ROW(__no_ends)(v);
    const int narrow = FA__ROW(__ENDS) && v->width < 16;
    uint32_t ragged = 0;
    if (!whole) {
        begin = piece == 0 ? v->shift : 0, end = FA__ROW(__left)(v, piece);
        whole = FA__ROW(__whole)(v, begin, end);
    }
    if (whole) {
        FA__UNROLL
        for (int j = 0; j < FA__ROW(_VECTORS); j++) {
            const FA__ELEMENT *at = FA__ROW(__place)(v, piece, j);
            uint32_t *to = raw + FA__ROW(_WORDS) * j;
            if (FA_WHOLE == 1 && v->stream) {
                fa_sm80_load_of(1, to, at, FA__ROW(_WORDS), v->policy);
            } else if (FA_WHOLE < 2) {
                fa_sm80_load16(to, at);
            } else {
                FA__UNROLL
                for (int i = 0; i < FA__ROW(_WORDS); i++) to[i] = fill;
                int there = FA__ROW(__there)(v, piece, j);
                if (FA__ROW(__ENDS)) ragged |= (uint32_t)(there & narrow) << j, there &= !narrow;
                if (v->stream) fa_sm80_load_of(there, to, at, FA__ROW(_WORDS), v->policy);
                else fa_sm80_load_if(there, to, at, FA__ROW(_WORDS));
            }
        }
        if (!ragged) return;
        end = INT32_MAX;
    }
#if FA_VECTOR == 16
    const FA__ELEMENT *from = v->first + piece * FA__ROW(_LENGTH) * v->threads;
    FA__UNROLL
    for (int j = 0; !whole && j < FA__ROW(_VECTORS); j++) {
        int at = (j * v->threads + v->thread) * FA__ROW(_VECTOR);
        FA__UNROLL
        for (int i = 0; i < 4; i++) raw[4 * j + i] = fill;
        if (v->width == 16 && at >= begin && at + FA__ROW(_VECTOR) <= end) fa_sm80_load16(raw + 4 * j, from + at);
        else if (at < end && at + FA__ROW(_VECTOR) > begin) ragged |= 1u << j;
    }
    for (; ragged; ragged &= ragged - 1) {
        int which = fa_sm80_lowest_bit(ragged), at = (which * v->threads + v->thread) * FA__ROW(_VECTOR);
        uint32_t words[4] = {fill, fill, fill, fill};
        FA__ROW(__gather)(words, from + at, at, begin, end, v->width);
        FA__UNROLL
        for (int i = 0; i < 4 * FA__ROW(_VECTORS); i++) raw[i] = i / 4 == which ? words[i % 4] : raw[i];
    }
#endif
}

FA__FN void FA__ROW(_load)(float *x, const FA__ROW(_view) * v, int64_t piece, float fill) {
    uint32_t raw[FA__ROW(_WORDS) * FA__ROW(_VECTORS)];
    FA__ROW(__fetch)(raw, v, piece, FA__ROW(__fill)(fill));
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) FA__ROW(__unpack)(x + j * FA__ROW(_VECTOR), raw + FA__ROW(_WORDS) * j);
}

FA__FN void FA__ROW(_store)(const FA__ROW(_view) * v, int64_t piece, const float *x) {
    int begin = 0, end = 0, whole = FA__ROW(__no_ends)(v);
    uint32_t raw[FA__ROW(_WORDS) * FA__ROW(_VECTORS)];
    if (!whole) {
        begin = piece == 0 ? v->shift : 0, end = FA__ROW(__left)(v, piece);
        whole = FA__ROW(__whole)(v, begin, end);
    }
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) FA__ROW(__pack)(raw + FA__ROW(_WORDS) * j, x + j * FA__ROW(_VECTOR));
    const int narrow = FA__ROW(__ENDS) && v->width < 16;
    uint32_t ragged = 0;
    if (whole) {
        FA__UNROLL
        for (int j = 0; j < FA__ROW(_VECTORS); j++) {
            if (!FA__ROW(__there)(v, piece, j)) continue;
            if (narrow) ragged |= 1u << j;
            else fa_sm80_store(FA__ROW(__place)(v, piece, j), raw + FA__ROW(_WORDS) * j, FA__ROW(_WORDS));
        }
        if (!ragged) return;
        end = INT32_MAX;
    }
#if FA_VECTOR == 16
    FA__ELEMENT *to = v->first + piece * FA__ROW(_LENGTH) * v->threads;
    FA__UNROLL
    for (int j = 0; !whole && j < FA__ROW(_VECTORS); j++) {
        int at = (j * v->threads + v->thread) * FA__ROW(_VECTOR);
        if (v->width == 16 && at >= begin && at + FA__ROW(_VECTOR) <= end) fa_sm80_store16(to + at, raw + 4 * j);
        else if (at < end && at + FA__ROW(_VECTOR) > begin) ragged |= 1u << j;
    }
    for (; ragged; ragged &= ragged - 1) {
        int which = fa_sm80_lowest_bit(ragged), at = (which * v->threads + v->thread) * FA__ROW(_VECTOR);
        uint32_t words[4] = {raw[0], raw[1], raw[2], raw[3]};
        FA__UNROLL
        for (int i = 4; i < 4 * FA__ROW(_VECTORS); i++) words[i % 4] = i / 4 == which ? raw[i] : words[i % 4];
        FA__ROW(__scatter)(to + at, words, at, begin, end, v->width);
    }
#endif
}
FA__FN void FA__ROW(_add_at)(float *x, const FA__ROW(_view) * v, int64_t piece, int64_t col, float value) {
    const int64_t from_first = col - FA__ROW(_col)(v, piece, 0);
    if ((uint64_t)from_first >= (uint64_t)(FA__ROW(_LENGTH) * v->threads)) return;
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) {
        unsigned at = (unsigned)from_first - (unsigned)(j * FA__ROW(_VECTOR) * v->threads);
        if (at < FA__ROW(_VECTOR)) {
            FA__UNROLL
            for (int i = 0; i < FA__ROW(_VECTOR); i++) x[j * FA__ROW(_VECTOR) + i] += (int)at == i ? value : 0.0f;
        }
    }
}
#include <fa/arch/sm80/row_held.h>
#if FA_VECTOR == 16
#include <fa/arch/sm80/row_once.h>
#endif
#include <fa/arch/sm80/row_weights.h>
#endif
