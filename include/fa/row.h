/**
 * @file row.h
 * @brief Rows of a matrix in registers: a team of threads reads a row, each some of its elements as floats, and writes it.
 *
 * Accesses have 16 bytes where a row's alignment allows it, fewer elsewhere, and a single element at its ends; nothing before
 * the first element or after the last is read or written. The team is one thread on the CPU.
 *
 * @code{.c}
 * #include <fa/fa.h>
 *
 * #define FA_NAME row
 * #define FA_DTYPE FA_F16
 * #define FA_COLS 4096  // a row is at most that long
 * #define FA_THREADS 128
 * #include <fa/row.h>
 *
 * #if !defined(__CUDACC__)
 * static void clamp(const fa_f16 *from, fa_f16 *to, int64_t cols, const fa_team *team) { // a row
 *     float x[row_LENGTH];
 *     row_view in = row_at(from, cols, team), out = row_like(to, &in);
 *     row_load(x, &in, 0, 0.0f);
 *     for (int i = 0; i < row_count(&in, 0); i++) x[i] = x[i] < 0 ? 0 : x[i];
 *     row_store(&out, 0, x);
 * }
 * #endif
 * @endcode
 *
 * | parameter  | required | default         | meaning |
 * |------------|----------|-----------------|---------|
 * | FA_NAME    | yes      |                 | prefix of what is generated |
 * | FA_DTYPE   | yes      |                 | element type in memory: FA_F32, FA_F16, FA_BF16 or FA_TF32 |
 * | FA_COLS    | yes      |                 | columns that the team holds at a time: a piece of the row, or all of it; on a GPU at most 512 bytes a thread, unless FA_WHOLE |
 * | FA_THREADS | no       | 32              | threads of the team among which these are divided; the CPU has one |
 * | FA_HOLD    | no       | FA_FRAGMENT     | where NAME_hold() keeps a row: FA_FRAGMENT, a piece in registers, or FA_SHARED, shared memory (GPU) |
 * | FA_KEEP    | no       | 1               | pieces of a row that NAME_keeps() allows to be kept as floats (CPU) |
 * | FA_PIECES  | no       | 0: by the row   | pieces of every row, if known (some may be empty); FA_SHARED then always has slots, and FA_FRAGMENT holds all pieces (GPU) |
 * | FA_WHOLE   | no       | 0: any rows     | 1: every row starts at a multiple of 16 bytes and has as many columns as the team holds, or a multiple of that; 2: it starts there, and consists of vectors of 16 bytes, as many as the team holds or fewer (GPU) |
 * | FA_VECTOR  | no       | 16              | bytes of the vectors that threads hold side by side: 16, or 8 or 4 where FA_WHOLE is 2 and FA_PIECES are in registers: rows, and what lies between them, are then whole vectors of so many bytes, and of half types with 8 neighbouring threads' weights, if these are floats, are neighbouring 16 bytes; there is no NAME_scan then (GPU) |
 * | FA_ARCH    | no       | by the compiler | FA_CPU or 80, which is every GPU |
 * | FA_SUB     | no       |                 | second part of the prefix, inside another template's instance; FA_NAME, FA_DTYPE and FA_ARCH stay defined |
 *
 * Generates
 *
 *     NAME_LENGTH                            elements of a piece that a thread holds: float x[NAME_LENGTH]
 *     NAME_view NAME_at(row, cols, team)     a row; fa/reduce.h makes the team
 *     NAME_view NAME_like(row, view)         another row whose elements the threads hold as they do those of `view`
 *     int NAME_count(view, piece)            elements of the piece that x[] has: NAME_LENGTH on GPUs; on the CPU the row's, up to a multiple of 16
 *     int64_t NAME_col(view, piece, i)       the column of x[i]; below 0, or cols or more: not in the row
 *     int64_t NAME_pieces(view)              pieces that the row takes
 *     NAME_load(x, view, piece, fill)        x[] becomes the piece; elements outside the row become `fill`
 *     NAME_store(view, piece, x)             writes it
 *     NAME_store_times(view, piece, x, factor)   writes x[] times a factor
 *     int NAME_real(view, piece)             how many of x[] are elements of the row
 *     NAME_pad(x, view, piece, value)        the others become `value`
 *     NAME_PARTS, NAME_PART                  a piece in parts: how many, and elements of one; the CPU has one part
 *     const float *NAME_weights(w, view, piece, part, row, dtype, missing)   the elements of a row of any type, such as weights
 *                                            of columns, that belong to a part: in w[NAME_PART], or where they are; `missing`
 *                                            where there is none or `row` is NULL (FA_WHOLE 2: undefined where there is no column; `missing`
 *                                            must be 0 or 1, and a `row` have a vector of elements at least, even for a view without)
 *     NAME_drawn NAME_draw(view, first, dropout)   draws which elements are dropped (fa/philox.h); column 0 is element
 *                                            number `first` of its tensor (FA_WHOLE 2: a multiple of 4)
 *     NAME_dropout(x, view, piece, drawn)    makes dropped elements 0, and scales the others
 *     NAME_add_at(x, view, piece, col, value)   adds to the element of a column, in the thread that has it
 *     NAME_late(element)                     an element as a float; its load is waited for only here
 *     NAME_stream(view)                      later stores bypass the caches: for a large result that is not read again soon (CPU; a thread that
 *                                            reads it must have waited by a lock or a join, not for a plain flag)
 *
 * and, for rows that are needed more than once,
 *
 *     NAME_held                              holds a row; with FA_SHARED in slots, for which a block needs shared memory: NAME_LENGTH elements a thread
 *                                            and piece, for (cols + 15) / (NAME_LENGTH * threads of the team) + 1 pieces, or FA_PIECES if that is given
 *     NAME_hold(held, slot0, view, fill)     starts reading the row into slots from `slot0`, a multiple of 16 bytes, on; if that is
 *                                            NULL, leaves it where it is (not with FA_PIECES, all of which are written)
 *     NAME_wait()                            returns when all that this thread holds has arrived
 *     NAME_get(x, held, view, piece)         x[] becomes the piece
 *     const float *NAME_look(x, held, view, piece)   the piece: in x[], or where it is
 *     NAME_ahead(view, piece)                prefetches what follows the piece in memory, for code that computes long before
 *                                            it reads that (CPU)
 *     NAME_renew(held, none)                 for words in registers: from now on NAME_get() makes floats anew; `none` is a 0 that
 *                                            the compiler does not know (GPU, FA_FRAGMENT)
 *     int64_t NAME_held_pieces(view)         how many pieces of it NAME_get() can be asked for; FA_FRAGMENT holds FA_PIECES, or one if that is not known
 *     int NAME_keeps(view, tensors)          whether to keep the floats of all pieces of `tensors` rows rather than get them again:
 *                                            at most NAME_KEPT pieces
 *
 * and, for rows that are read only once, with a piece in flight while the one before is used (on the CPU it is read when it lands),
 *
 *     NAME_scan, NAME_scan_of(row, cols, team)   a row; NAME_flight is a piece of it in flight, in NAME_PARTS parts
 *     NAME_scan_begin(flight, scan, fill)    starts reading the first piece; elements outside the row become `fill`
 *     NAME_scan_full(scan), NAME_scan_more(scan)   whether all of the next piece is there (GPU: all vectors of this thread), and whether any of it is
 *     NAME_scan_land(x, flight, scan, part, fill)   x[] becomes a part of the piece: NAME_scan_count(scan) elements
 *     NAME_scan_start(flight, scan, part, full, fill)   starts reading that part of the next piece, once the part has landed
 *     NAME_scan_next(flight, scan)           goes on to the next piece, all of whose parts have been started
 *     NAME_scan_pad(x, flight, scan, part, value)   elements outside the row become `value`
 *     NAME_scan_max(flight, start)           the largest element of the piece, as NAME_max_of() of fa/reduce.h (GPU)
 *     NAME_scan_edges(scan), NAME_scan_edge(scan, i)   how many elements at the row's ends are in no piece, and their columns: the same in all
 *                                            threads of the team, each of which takes those with i % team.threads == team.thread
 *
 * in this order:
 *
 *     NAME_scan s = NAME_scan_of(row, cols, &team);
 *     NAME_scan_begin(&f, &s, fill);
 *     for (int more = 1; more;) {
 *         const int full = NAME_scan_full(&s);
 *         more = NAME_scan_more(&s);
 *         for (int part = 0; part < NAME_PARTS; part++) {
 *             NAME_scan_land(x, &f, &s, part, fill); // then x[] is free to be used
 *             NAME_scan_start(&f, &s, part, full, fill);
 *         }
 *         NAME_scan_next(&f, &s); // NAME_scan_count(), NAME_scan_pad(), NAME_scan_max() belong before it
 *     }
 *
 * Neighbouring threads hold neighbouring vectors of 16 bytes. These lie on the 16-byte boundaries of the first row
 * (NAME_at), so that rows of odd length are read as fast as even ones; rows that are aligned differently (NAME_like) take
 * narrower accesses. Nothing synchronises: a thread reads and holds only its own elements.
 */
#include <fa/fa.h>

#include <fa/kernel/team.h>
#include <fa/philox.h>

#include <fa/arch/every_gpu.h>

#include <fa/arch/begin.h>
#define FA__ROW(x) FA__CAT4(FA_NAME, FA_SUB, FA__SUFFIX, x)
#include <fa/arch/dtype.h>
#if !defined(FA_COLS)
#define FA_COLS undefined
#endif
#if FA_COLS + 0 < 1 || FA__IS_BARE(FA_COLS)
FA__REQUIRE(0, "FA_COLS, the columns that the team holds at a time, is " FA__STR(FA_COLS) ": 1 or more is needed, " FA__AS_A_NUMBER);
#undef FA_COLS
#define FA_COLS 16
#endif
#if !defined(FA_THREADS)
#define FA_THREADS 32
#elif FA_THREADS + 0 < 1 || FA__IS_BARE(FA_THREADS)
FA__REQUIRE(0, "FA_THREADS, the threads that share a row, is " FA__STR(FA_THREADS) ": 1 or more is needed, " FA__AS_A_NUMBER);
#undef FA_THREADS
#define FA_THREADS 32
#endif
#if !defined(FA_HOLD)
#define FA_HOLD FA_FRAGMENT
#elif FA_HOLD + 0 != FA_FRAGMENT && FA_HOLD + 0 != FA_SHARED
FA__REQUIRE(0, "FA_HOLD is " FA__STR(FA_HOLD) ": FA_FRAGMENT or FA_SHARED is needed");
#undef FA_HOLD
#define FA_HOLD FA_FRAGMENT
#endif

#if !defined(FA_KEEP)
#define FA_KEEP 1
#elif FA_KEEP + 0 < 1 || FA__IS_BARE(FA_KEEP)
FA__REQUIRE(0, "FA_KEEP, the pieces that may be kept as floats, is " FA__STR(FA_KEEP) ": 1 or more is needed, " FA__AS_A_NUMBER);
#undef FA_KEEP
#define FA_KEEP 1
#endif
#if !defined(FA_PIECES)
#define FA_PIECES 0
#elif FA_PIECES + 0 < 0 || 0 - FA_PIECES - 1 > 0 || (FA_PIECES + 0 != 0 && FA__IS_BARE(FA_PIECES)) /* the second: it is empty */
FA__REQUIRE(0, "FA_PIECES, the pieces of every row, is " FA__STR(FA_PIECES) ": 0, if that is not known, or more is needed, " FA__AS_A_NUMBER);
#undef FA_PIECES
#define FA_PIECES 0
#endif
#if !defined(FA_WHOLE)
#define FA_WHOLE 0
#elif FA_WHOLE + 0 < 0 || FA_WHOLE + 0 > 2 || 0 - FA_WHOLE - 1 > 0 /* the last: it is empty */
FA__REQUIRE(0, "FA_WHOLE is " FA__STR(FA_WHOLE) ": 0, for any rows, 1 or 2 is needed");
#undef FA_WHOLE
#define FA_WHOLE 0
#endif
#if !defined(FA_VECTOR)
#define FA_VECTOR 16
#elif FA_VECTOR + 0 != 16 && !((FA_VECTOR + 0 == 8 || FA_VECTOR + 0 == 4) && FA_WHOLE == 2 && FA_HOLD == FA_FRAGMENT)
FA__REQUIRE(0, "FA_VECTOR, the bytes of a vector, is " FA__STR(FA_VECTOR) ": 16 is needed, or 8 or 4 with FA_WHOLE 2 and FA_HOLD FA_FRAGMENT");
#undef FA_VECTOR
#define FA_VECTOR 16
#endif

/* A row, as a thread of its team sees it. */
typedef struct FA__ROW(_view) {
    FA__ELEMENT *first;  /* element 0 of vector 0: `shift` elements before the row */
    int64_t cols;        /* of the row */
    int shift;           /* elements of vector 0 that are before the row */
    int width;           /* bytes of an access */
    int whole;           /* known to begin and end on 16-byte boundaries: fa_team (GPU) */
    int stream;          /* results bypass the caches (CPU); `policy` is set (GPU) */
    uint64_t policy;     /* of what is read: to stay in the L2 cache, or to leave it first (GPU) */
    int thread, threads; /* which of how many */
#if defined(FA__PACKED)
    int each, own; /* elements of a thread, and of this one: the last ones have fewer */
    int phase;     /* fa_team */
#endif
} FA__ROW(_view);

#include FA__LAYER(row)

#if !defined(FA__LOOKS) /* where the architecture has nothing better */
FA__FN const float *FA__ROW(_look)(float *x, const FA__ROW(_held) * held, const FA__ROW(_view) * v, int64_t piece) {
    FA__ROW(_get)(x, held, v, piece);
    return x;
}
FA__FN void FA__ROW(_ahead)(const FA__ROW(_view) * v, int64_t piece) { (void)v, (void)piece; }
FA__FN void FA__ROW(_store_times)(const FA__ROW(_view) * v, int64_t piece, const float *x, float factor) {
    float y[FA__ROW(_LENGTH)];
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_LENGTH); i++) y[i] = x[i] * factor;
    FA__ROW(_store)(v, piece, y);
}
#endif
#undef FA__LOOKS

typedef struct FA__ROW(_drawn) {
    const fa_dropout *dropout;
    uint64_t first;
    uint32_t kept; /* of all elements, if there are no more than 32 (GPU) */
} FA__ROW(_drawn);
#if defined(FA__DROPS) /* what the architecture has for whole pieces */
FA__FN FA__ROW(_drawn) FA__ROW(_draw)(const FA__ROW(_view) * v, uint64_t first, const fa_dropout *dropout) {
    const FA__ROW(_drawn) d = {dropout, first, 0};
    (void)v;
    return d;
}
FA__FN void FA__ROW(_dropout)(float *x, const FA__ROW(_view) * v, int64_t piece, const FA__ROW(_drawn) * d) {
    FA__ROW(__drop)(x, FA__ROW(_count)(v, piece), d->first + (uint64_t)FA__ROW(_col)(v, piece, 0), d->dropout);
}
#else
/* Which of up to 32 elements are kept; those of a part are neighbours. */
FA__FN uint32_t FA__ROW(__draw)(const FA__ROW(_view) * v, int64_t piece, int base, int count, uint64_t first, const fa_dropout *dropout) {
    const int together = FA__ROW(_PART) < 32 ? FA__ROW(_PART) : 32;
    uint32_t kept = 0;
    FA__ROLL
    for (int i = 0; i < count; i += together)
        kept |= fa_dropout_kept(dropout, first + (uint64_t)FA__ROW(_col)(v, piece, base + i), count - i < together ? count - i : together) << i;
    return kept;
}
enum { FA__ROW(__EARLY) = FA_PIECES > 0 && FA_PIECES * FA__ROW(_LENGTH) <= 32 };
FA__FN FA__ROW(_drawn) FA__ROW(_draw)(const FA__ROW(_view) * v, uint64_t first, const fa_dropout *dropout) {
    FA__ROW(_drawn) d;
    d.dropout = dropout;
    d.first = first;
    d.kept = 0;
#if FA_WHOLE == 2 && FA_VECTOR * (1 + FA__IS_HALF) >= 16
    /* The row begins at a counter, and so does each vector: two counters at a time, to hide each other's latency. */
    uint64_t counter = dropout->offset + (first + (uint64_t)FA__ROW(_col)(v, 0, 0)) / 4;
    FA__ROLL
    for (int at = 0; dropout->threshold > 0 && at < FA_PIECES * FA__ROW(_LENGTH) && at * v->threads < (int)v->cols; at += FA__ROW(_LENGTH)) {
        FA__UNROLL
        for (int i = 0; i < FA__ROW(_LENGTH); i += FA__ROW(_VECTOR))
            d.kept |= fa__dropout_kept(dropout, counter + (uint64_t)(unsigned)(i / 4 * v->threads), FA__ROW(_VECTOR) / 4) << ((at + i) % 32);
        counter += (uint64_t)(unsigned)(FA__ROW(_LENGTH) / 4 * v->threads);
    }
#else
    FA__ROLL
    for (int piece = 0; FA__ROW(__EARLY) && dropout->threshold > 0 && piece < FA_PIECES; piece++)
        d.kept |= FA__ROW(__draw)(v, piece, 0, FA__ROW(_LENGTH), first, dropout) << piece * FA__ROW(_LENGTH) % 32;
#endif
    if (dropout->threshold == 0) d.kept = ~0u;
    return d;
}
FA__FN_CALLED void FA__ROW(_dropout)(float *x, const FA__ROW(_view) * v, int64_t piece, const FA__ROW(_drawn) * d) {
    const int count = FA__ROW(_count)(v, piece);
    FA__UNROLL
    for (int base = 0; base < count; base += 32) {
        const int n = count - base < 32 ? count - base : 32;
        uint32_t kept = FA__ROW(__EARLY) ? d->kept >> piece * FA__ROW(_LENGTH) % 32 : FA__ROW(__draw)(v, piece, base, n, d->first, d->dropout);
        FA__UNROLL
        for (int i = 0; i < n; i++) x[base + i] = kept >> i & 1 ? x[base + i] * d->dropout->scale : 0.0f;
    }
}
#endif
#undef FA__DROPS

#undef FA__ELEMENT
#undef FA__ROW
#undef FA_COLS
#undef FA_THREADS
#undef FA_HOLD
#undef FA_KEEP
#undef FA_PIECES
#undef FA_WHOLE
#undef FA_VECTOR
#include <fa/arch/end.h>
