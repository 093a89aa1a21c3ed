/* cpu/row.h: rows on the CPU: a piece is an array of floats in the first-level cache, and what is held stays in
 * memory. */

/* Two bf16 in a word of 32 bits are widened where they are, by an operation each, and rounded there; in their order
 * they take twice as many. */
#if FA_DTYPE == FA_BF16 && defined(FA__ISA_AVX2) && FA__ISA == FA__ISA_AVX2
#define FA__ROW_SPLIT 1
#else
#define FA__ROW_SPLIT 0
#endif
/* Whole vectors of every instruction set. */
enum {
    FA__ROW(_SPLIT) = FA__ROW_SPLIT,
    FA__ROW(_UNIT) = 16,
    FA__ROW(_LANES) = FA__CPU_LANES(FA__ISA),
    FA__ROW(_BLOCK) = FA__CPU_LANES(FA__ISA) < 16 ? 16 : 32, /* elements that are computed in registers at a time */
    FA__ROW(_IN_BLOCK) = FA__ROW(_BLOCK) / FA__ROW(_LANES), /* vectors */
    FA__ROW(_BESIDE) = !FA__ROW_SPLIT, /* whether there are registers for two rows: the first pass over one beside the second over another (bf16 by AVX2 would be 4 to 13 % slower) */
    FA__ROW(_COSTLY) = FA__ISA == FA__ISA_BASE && FA__IS_HALF, /* to widen: rather kept than widened again */
    FA__ROW(_LENGTH) = (FA_COLS + 15) / 16 * 16,
    FA__ROW(_KEPT) = FA_KEEP,
    FA__ROW(_PARTS) = 1,
    FA__ROW(_PART) = FA__ROW(_LENGTH),
    FA__ROW(_WHOLE) = 0
};

FA__FN FA__ROW(_view) FA__ROW(_at)(const void *row, int64_t cols, const fa_team *team) {
    FA__ROW(_view) v;
    v.first = (FA__ELEMENT *)(uintptr_t)row;
    v.cols = cols;
    v.shift = 0;
    v.width = (int)sizeof(FA__ELEMENT);
    v.whole = v.stream = 0;
    v.policy = 0;
    v.thread = team->thread;
    v.threads = team->threads;
    return v;
}
FA__FN FA__ROW(_view) FA__ROW(_like)(const void *row, const FA__ROW(_view) * of) {
    FA__ROW(_view) v = *of;
    v.first = (FA__ELEMENT *)(uintptr_t)row;
    return v;
}

FA__FN void FA__ROW(_stream)(FA__ROW(_view) * v) { v->stream = 1; }
FA__FN void FA__ROW(__set_policy)(FA__ROW(_view) * v, uint64_t policy) { (void)v, (void)policy; }
FA__FN int FA__ROW(__none)(const FA__ROW(_view) * v, int64_t piece) { return (void)v, (void)piece, 0; } /* known not to have anything */
enum { FA__ROW(__ENDS) = 0 }; /* a piece ends where its row does */
typedef int FA__ROW(__ends);
FA__FN FA__ROW(__ends) FA__ROW(__ends_of)(const FA__ELEMENT **first, int64_t *cols) {
    (void)first, (void)cols;
    return 0;
}
FA__FN int FA__ROW(__end)(int *col, const FA__ROW(__ends) * e, int i, const fa_team *team) {
    (void)e, (void)i, (void)team;
    return *col = 0;
}

FA__FN int64_t FA__ROW(_pieces)(const FA__ROW(_view) * v) { return (v->cols + FA__ROW(_LENGTH) - 1) / FA__ROW(_LENGTH); }
/* Elements of the row in a piece. */
FA__FN int FA__ROW(__real)(const FA__ROW(_view) * v, int64_t piece) {
    int64_t left = v->cols - piece * FA__ROW(_LENGTH);
    return left < 0 ? 0 : left < FA__ROW(_LENGTH) ? (int)left : FA__ROW(_LENGTH);
}
FA__FN int FA__ROW(_count)(const FA__ROW(_view) * v, int64_t piece) {
    return (FA__ROW(__real)(v, piece) + FA__ROW(_UNIT) - 1) / FA__ROW(_UNIT) * FA__ROW(_UNIT);
}
FA__FN int64_t FA__ROW(_col)(const FA__ROW(_view) * v, int64_t piece, int i) {
    (void)v;
    return piece * FA__ROW(_LENGTH) + i;
}

FA__FN int FA__ROW(_real)(const FA__ROW(_view) * v, int64_t piece) { return FA__ROW(__real)(v, piece); }
FA__FN FA__ELEMENT *FA__ROW(__piece)(const FA__ROW(_view) * v, int64_t piece) { return v->first + piece * FA__ROW(_LENGTH); }
FA__FN void FA__ROW(_pad)(float *x, const FA__ROW(_view) * v, int64_t piece, float value) {
    for (int i = FA__ROW(__real)(v, piece), count = FA__ROW(_count)(v, piece); i < count; i++) x[i] = value;
}
FA__FN_CALLED void FA__ROW(__weights_to)(float *w, const void *from, int real, int count, int dtype, float missing) {
    for (int i = 0; i < real; i++) w[i] = fa_load_element(from, i, dtype);
    for (int i = real; i < count; i++) w[i] = missing;
}
FA__FN const float *FA__ROW(_weights)(float *w, const FA__ROW(_view) * v, int64_t piece, int part, const void *row, int dtype,
                                      float missing) {
    const int real = row ? FA__ROW(__real)(v, piece) : 0, count = FA__ROW(_count)(v, piece);
    const char *from = row ? (const char *)row + piece * FA__ROW(_LENGTH) * fa_dtype_bytes(dtype) : NULL;
    (void)part;
    if (dtype != FA_F16 && dtype != FA_BF16 && real == count) return (const float *)(const void *)from; /* where they are */
    FA__ROW(__weights_to)(w, from, real, count, dtype, missing);
    return w;
}

#include <fa/arch/cpu/row_dropout.h>
#include <fa/arch/cpu/row_vectors.h>

/* n elements to floats and back: whole vectors, the rest one by one. */
FA__FN void FA__ROW(__widen)(float *to, const FA__ELEMENT *from, int n) {
    int i = 0;
#if FA_DTYPE == FA_F16
#if defined(FA__ISA_AVX512) && FA__ISA == FA__ISA_AVX512
    for (; i + 16 <= n; i += 16) *(fa_cpu_any_2 *)(to + i) = fa_cpu_of_f16_2(from + i);
#endif
    for (; i + 8 <= n; i += 8) FA__CPU_OP(widen)(to + i, from + i);
#elif FA_DTYPE == FA_BF16
    for (; i + FA__ROW(_UNIT) <= n; i += FA__ROW(_UNIT))
        for (int j = 0; j < FA__ROW(_UNIT); j++) to[i + j] = fa_bf16_to_float(from[i + j]);
#else
    if (n >= FA__CPU_COPIED) fa_cpu_copy(to, from, sizeof *to * (size_t)n), i = n;
    for (; i + FA__ROW(_LANES) <= n; i += FA__ROW(_LANES)) *(FA__CPU_OP(any) *)(to + i) = *(const FA__CPU_OP(any) *)(from + i);
#endif
    for (; i < n; i++) to[i] = fa_load_element(from, i, FA_DTYPE);
}
/* Times a factor; returns how many are done. Streamed: past the caches, from a multiple of 64 bytes on. */
FA__FN int FA__ROW(__narrow)(FA__ELEMENT *to, const float *from, int n, float factor, int streamed) {
    int i = 0;
    const FA__CPU_OP(vec) by = FA__CPU_OP(splat)(factor);
#if FA__IS_HALF
#if FA_DTYPE == FA_BF16
    const int by_unit = fa__cpu_rounds_bf16();
#endif
    for (; i + 2 * FA__ROW(_LANES) <= n; i += 2 * FA__ROW(_LANES)) {
        FA__CPU_OP(vec) a = *(const FA__CPU_OP(any) *)(from + i), b = *(const FA__CPU_OP(any) *)(from + i + FA__ROW(_LANES));
#if FA_DTYPE == FA_F16
        FA__CPU_OP(put_f16)(to + i, a * by, b * by, streamed);
#else
        FA__CPU_OP(put_bf16)(to + i, a * by, b * by, streamed, by_unit);
#endif
    }
#else
    for (; streamed && i + FA__ROW(_UNIT) <= n; i += FA__ROW(_UNIT)) {
        FA__CPU_OP(vec) line[FA__ROW(_UNIT) / FA__ROW(_LANES)];
        for (int j = 0; j < FA__ROW(_UNIT) / FA__ROW(_LANES); j++) line[j] = ((const FA__CPU_OP(any) *)(from + i))[j] * by;
        FA__CPU_OP(stream)(to + i, line);
    }
    for (; i + FA__ROW(_LANES) <= n; i += FA__ROW(_LANES)) *(FA__CPU_OP(any) *)(to + i) = *(const FA__CPU_OP(any) *)(from + i) * by;
#endif
    return i;
}
FA__FN_CALLED void FA__ROW(__narrow_rest)(FA__ELEMENT *to, const float *from, int n, float factor) {
    for (int i = 0; i < n; i++) fa_store_element(to, i, FA_DTYPE, from[i] * factor);
}

FA__FN_CALLED void FA__ROW(_load)(float *x, const FA__ROW(_view) * v, int64_t piece, float fill) {
    int real = FA__ROW(__real)(v, piece), count = FA__ROW(_count)(v, piece);
    FA__ROW(__widen)(x, v->first + piece * FA__ROW(_LENGTH), real);
    for (int i = real; i < count; i++) x[i] = fill;
}
FA__FN void FA__ROW(__write_at)(FA__ELEMENT *to, const float *x, int real, float factor, int streamed) {
    int done = 0;
    if (streamed) {
        done = (int)((64u - (unsigned)(uintptr_t)to % 64u) % 64u) / (int)sizeof(FA__ELEMENT);
        if (done > real) done = real;
        FA__ROW(__narrow_rest)(to, x, done, factor);
        done += FA__ROW(__narrow)(to + done, x + done, real - done, factor, 1);
    } else {
        done = FA__ROW(__narrow)(to, x, real, factor, 0);
    }
    FA__ROW(__narrow_rest)(to + done, x + done, real - done, factor);
}
FA__FN_CALLED void FA__ROW(__store_at)(FA__ELEMENT *to, const float *x, int real, int streamed) {
    FA__ROW(__write_at)(to, x, real, 1.0f, streamed);
}
FA__FN void FA__ROW(_store)(const FA__ROW(_view) * v, int64_t piece, const float *x) {
    FA__ROW(__store_at)(FA__ROW(__piece)(v, piece), x, FA__ROW(__real)(v, piece), v->stream);
}
FA__FN_CALLED void FA__ROW(_store_times)(const FA__ROW(_view) * v, int64_t piece, const float *x, float factor) {
    FA__ROW(__write_at)(FA__ROW(__piece)(v, piece), x, FA__ROW(__real)(v, piece), factor, v->stream);
}

/* Asks for memory into the second-level cache. A hint, which reads nothing: what is behind a matrix may be nobody's. */
FA__FN void FA__ROW(__ask)(uintptr_t from, int count) {
    for (uintptr_t at = 0; at < (uintptr_t)count * sizeof(FA__ELEMENT); at += 64) __builtin_prefetch((const void *)(from + at), 0, 2);
}
/* The same of a block, from within a loop: memory is asked evenly, so that its queues are never full. */
FA__FN void FA__ROW(__ask_block)(uintptr_t from) {
    FA__UNROLL
    for (int at = 0; at < FA__ROW(_BLOCK) * (int)sizeof(FA__ELEMENT); at += 64) __builtin_prefetch((const void *)(from + (uintptr_t)at), 0, 2);
}
/* What lies so many pieces' lengths behind a block: of the same row, or, in most matrices, of those that come next. */
FA__FN void FA__ROW(__ask_ahead)(const FA__ELEMENT *block, int pieces) {
    FA__ROW(__ask_block)((uintptr_t)block + (uintptr_t)(pieces * FA__ROW(_LENGTH)) * sizeof *block);
}
/* As much as this piece is, a piece's length further on: the next piece, or rows that come next. */
FA__FN void FA__ROW(_ahead)(const FA__ROW(_view) * v, int64_t piece) {
    FA__ROW(__ask)((uintptr_t)v->first + (uintptr_t)(piece + 1) * (FA__ROW(_LENGTH) * sizeof(FA__ELEMENT)), FA__ROW(__real)(v, piece));
}

/* A part is a piece, which is read when it lands. */
typedef struct FA__ROW(_scan) {
    FA__ROW(_view) view;
    int64_t piece, pieces;
    int thread, threads;
} FA__ROW(_scan);
typedef struct FA__ROW(_flight) {
    char none;
} FA__ROW(_flight);
FA__FN FA__ROW(_scan) FA__ROW(_scan_of)(const void *row, int64_t cols, const fa_team *team) {
    FA__ROW(_scan) s;
    s.view = FA__ROW(_at)(row, cols, team);
    s.piece = 0;
    s.pieces = FA__ROW(_pieces)(&s.view);
    s.thread = team->thread;
    s.threads = team->threads;
    return s;
}
FA__FN int FA__ROW(_scan_full)(const FA__ROW(_scan) * s) { return (s->piece + 2) * FA__ROW(_LENGTH) <= s->view.cols; }
FA__FN int FA__ROW(_scan_more)(const FA__ROW(_scan) * s) { return s->piece + 1 < s->pieces; }
FA__FN int FA__ROW(_scan_count)(const FA__ROW(_scan) * s) { return FA__ROW(_count)(&s->view, s->piece); }
FA__FN int FA__ROW(_scan_edges)(const FA__ROW(_scan) * s) {
    (void)s;
    return 0;
}
FA__FN int64_t FA__ROW(_scan_edge)(const FA__ROW(_scan) * s, int i) {
    (void)s;
    return i;
}
FA__FN void FA__ROW(_scan_start)(FA__ROW(_flight) * f, const FA__ROW(_scan) * s, int part, const int full, float fill) {
    (void)f, (void)s, (void)part, (void)full, (void)fill;
}
FA__FN void FA__ROW(_scan_next)(FA__ROW(_flight) * f, FA__ROW(_scan) * s) {
    (void)f;
    s->piece++;
}
FA__FN void FA__ROW(_scan_begin)(FA__ROW(_flight) * f, FA__ROW(_scan) * s, float fill) {
    f->none = 0;
    (void)s, (void)fill;
}
FA__FN void FA__ROW(_scan_land)(float *x, const FA__ROW(_flight) * f, const FA__ROW(_scan) * s, int part, float fill) {
    (void)f, (void)part;
    FA__ROW(_ahead)(&s->view, s->piece);
    FA__ROW(_load)(x, &s->view, s->piece, fill);
}
FA__FN void FA__ROW(_scan_pad)(float *x, const FA__ROW(_flight) * f, const FA__ROW(_scan) * s, int part, float value) {
    (void)f, (void)part;
    FA__ROW(_pad)(x, &s->view, s->piece, value);
}
FA__FN void FA__ROW(_add_at)(float *x, const FA__ROW(_view) * v, int64_t piece, int64_t col, float value) {
    int64_t at = col - piece * FA__ROW(_LENGTH);
    if (at >= 0 && at < FA__ROW(__real)(v, piece)) x[at] += value;
}
FA__FN float FA__ROW(_late)(FA__ELEMENT element) { return fa_load_element(&element, 0, FA_DTYPE); }

typedef struct FA__ROW(_held) {
    float fill;
} FA__ROW(_held);
FA__FN void FA__ROW(_hold)(FA__ROW(_held) * held, void *slot0, const FA__ROW(_view) * v, float fill) {
    (void)slot0, (void)v;
    held->fill = fill;
}
FA__FN void FA__ROW(_wait)(void) {}
FA__FN int64_t FA__ROW(_held_pieces)(const FA__ROW(_view) * v) { return FA__ROW(_pieces)(v); }
FA__FN int FA__ROW(_keeps)(const FA__ROW(_view) * v, int tensors) {
    return FA__ROW(_pieces)(v) <= (tensors == 1 ? FA__ROW(_KEPT) : 1);
}
FA__FN void FA__ROW(_get)(float *x, const FA__ROW(_held) * held, const FA__ROW(_view) * v, int64_t piece) {
    FA__ROW(_load)(x, v, piece, held->fill);
}
/* Whole units of floats are looked at where they are. */
FA__FN const float *FA__ROW(_look)(float *x, const FA__ROW(_held) * held, const FA__ROW(_view) * v, int64_t piece) {
#if !FA__IS_HALF
    if (FA__ROW(__real)(v, piece) % FA__ROW(_UNIT) == 0) return v->first + piece * FA__ROW(_LENGTH);
#endif
    FA__ROW(_load)(x, v, piece, held->fill);
    return x;
}
#define FA__LOOKS
#undef FA__ROW_SPLIT
