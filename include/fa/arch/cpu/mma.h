/* cpu/mma.h: the product on one core, which owns the whole of C, column by column: x[col * FA_M + row].
 *
 * Vectors run over rows. A panel of C (1 to 4 vectors of rows by 4 or 6 columns) stays in registers while k goes by;
 * each step takes a column of A, and one element of B for each of the panel's columns, spread over a vector (outer
 * products, as in Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008). 24 accumulators of
 * the 32 registers of AVX-512 and 12 of the 16 of AVX2 hide the latency of the multiply-add, and need fewer loads than
 * it has slots. FA_N is a multiple of 8, so six columns at a time leave 0, 2 or 4. Where they leave 2, one six is left
 * out, and two fours take the eight columns instead. */

FA__FN int FA__MMA(_row)(int thread, int r) {
    (void)thread;
    return r;
}
FA__FN int FA__MMA(_col)(int thread, int c) {
    (void)thread;
    return c;
}
FA__FN int FA__MMA(_col_offset)(int c) { return c; }

#if defined(FA__PAIRED)
#define FA__OPERANDS uint32_t
#include <fa/arch/cpu/mma_amx.h>
#else
#define FA__OPERANDS float
enum { FA__MMA(_ROWS) = FA_M, FA__MMA(_COLS) = FA_N };

typedef struct FA__MMA(_acc) {
    float x[FA_M * FA_N] __attribute__((__aligned__(64)));
} FA__MMA(_acc);

/* A fragment is the accumulator that it came from: [k][row], the layout of an A tile. */
typedef struct FA__MMA(_a) {
    const float *x;
} FA__MMA(_a);
FA__FN void FA__MMA(_pack)(FA__MMA(_a) * a, const float *acc) { a->x = acc; }

#define FA__VEC FA__CPU_OP(vec)
#define FA__EACH_ROW(X, n) X(0, n) X(1, n) X(2, n) X(3, n)
#define FA__EACH_COLUMN(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define FA__EACH_COLUMN_OF(X, k) X(0, k) X(1, k) X(2, k) X(3, k) X(4, k) X(5, k)
#define FA__AT_C(m, n) (*(FA__VEC *)(c + (n)*FA_M + (m)*FA__FLOATS))
#define FA__DECLARE_C(m, n) FA__VEC c##m##n = zero;
#define FA__ADD_C(m, n) \
    if (m < vectors && n < columns) FA__AT_C(m, n) += c##m##n;
#define FA__STORE_C(m, n) \
    if (m < vectors && n < columns) FA__AT_C(m, n) = c##m##n;
#define FA__STEP_C(m, n) \
    if (m < vectors) c##m##n = FA__CPU_OP(fma)(a##m, x, c##m##n);
#define FA__LOAD_A(m, k) FA__VEC a##m = m < vectors ? *(const FA__VEC *)(a + (k)*FA_M + m * FA__FLOATS) : zero;
#define FA__DECLARE(n) FA__EACH_ROW(FA__DECLARE_C, n)
#define FA__ADD(n) FA__EACH_ROW(FA__ADD_C, n)
#define FA__STORE(n) FA__EACH_ROW(FA__STORE_C, n)
#define FA__COLUMN(n, k) \
    if (n < columns) { \
        FA__VEC x = FA__CPU_OP(splat)(b[(n)*FA__B_COLUMN + (k)*FA__B_ROW]); \
        FA__EACH_ROW(FA__STEP_C, n) \
    }
#define FA__STEP(k) \
    { FA__EACH_ROW(FA__LOAD_A, k) FA__EACH_COLUMN_OF(FA__COLUMN, k) }

/* A panel of `vectors` vectors of rows by `columns` columns, which are compile-time constants, over `steps` of K: C
 * += A * B, or C = A * B. C is added in the end, not in the beginning: a long sum of tiles then has as few roundings
 * as tiles. */
FA__FN void FA__MMA(__panel)(float *c, const float *a, const float *b, int vectors, int columns, int steps,
                             int accumulate) {
    enum {
        FA__FLOATS = FA__CPU_LANES(FA__ISA),
        FA__B_ROW = FA_B == FA_OPERAND_B ? 1 : FA_N,
        FA__B_COLUMN = FA_B == FA_OPERAND_B ? FA_K : 1
    };
    const FA__VEC zero = FA__CPU_OP(splat)(0.0f);
    FA__EACH_COLUMN(FA__DECLARE)
    for (int k = 0; k < steps; k += 2, a += 2 * FA_M, b += 2 * FA__B_ROW) {
        FA__STEP(0) FA__STEP(1)
    }
    if (accumulate) {
        FA__EACH_COLUMN(FA__ADD)
    } else {
        FA__EACH_COLUMN(FA__STORE)
    }
}

/* `rows` by `cols` of C, or a few more, by `depth` of K, a multiple of 2. K goes in chunks whose panel of A (32 KB
 * with AVX-512) stays in the first-level cache for all columns. */
FA__FN void FA__MMA(__panels)(float *c, const float *a, const float *b, int accumulate, int rows, int cols, int depth) {
    enum {
        FA__FLOATS = FA__CPU_LANES(FA__ISA),
        FA__MOST = FA__FLOATS == 16 ? 4 : 2, /* vectors of a panel: a divisor of the rows' */
        FA__VECTORS = FA_M / FA__FLOATS % FA__MOST == 0            ? FA__MOST
                      : FA_M / FA__FLOATS % 3 == 0 && FA__MOST > 3 ? 3
                      : FA_M / FA__FLOATS % 2 == 0                 ? 2
                                                                   : 1,
        FA__SIXES = FA__CPU_FUSED(FA__ISA) ? FA_N / 6 - (FA_N % 6 == 2) : 0, /* without it, products need registers too */
        FA__B_ROW = FA_B == FA_OPERAND_B ? 1 : FA_N,
        FA__B_COLUMN = FA_B == FA_OPERAND_B ? FA_K : 1,
        FA__CHUNKS = (FA_K + 127) / 128,
        FA__CHUNK = (FA_K / 4 + FA__CHUNKS - 1) / FA__CHUNKS * 4
    };
    for (int m = 0; m < rows; m += FA__VECTORS * FA__FLOATS)
        for (int k = 0; k < depth; k += FA__CHUNK) {
            int steps = depth - k < FA__CHUNK ? depth - k : FA__CHUNK, add = accumulate | (k > 0);
            const float *from = b + k * FA__B_ROW;
            for (int n = 0; n < FA__SIXES * 6 && n < cols; n += 6)
                FA__MMA(__panel)(c + n * FA_M + m, a + k * FA_M + m, from + n * FA__B_COLUMN, FA__VECTORS, 6, steps, add);
            for (int n = FA__SIXES * 6; n < cols; n += 4)
                FA__MMA(__panel)(c + n * FA_M + m, a + k * FA_M + m, from + n * FA__B_COLUMN, FA__VECTORS, 4, steps, add);
        }
}
#endif

#if FA_A == FA_FRAGMENT
typedef FA__MMA(_a) FA__MMA(__operand);
#define FA__OPERAND_DATA(a) ((a)->x)
#else
typedef void FA__MMA(__operand);
#define FA__OPERAND_DATA(a) ((const FA__OPERANDS *)(a))
#endif
/* The first `rows` rows of C += A * B, of which A's columns and B's rows from `depth` on are 0; and the first `rows`
 * rows and `cols` columns of C = A * B. Other rows and columns of C are not to be used. */
FA__FN void FA__MMA(__mma_of)(FA__MMA(_acc) * acc, const FA__MMA(__operand) * a, const void *b_tile, int rows, int depth) {
    FA__MMA(__panels)(acc->x, FA__OPERAND_DATA(a), (const FA__OPERANDS *)b_tile, 1, rows, FA__MMA(_COLS), (depth + 1) & ~1);
}
FA__FN void FA__MMA(__product_of)(FA__MMA(_acc) * acc, const FA__MMA(__operand) * a, const void *b_tile, int rows, int cols) {
    FA__MMA(__panels)(acc->x, FA__OPERAND_DATA(a), (const FA__OPERANDS *)b_tile, 0, rows, cols, FA_K);
}
/* C += A * B */
FA__FN void FA__MMA(_mma)(FA__MMA(_acc) * acc, const FA__MMA(__operand) * a, const void *b_tile, int thread) {
    (void)thread;
    FA__MMA(__mma_of)(acc, a, b_tile, FA_M, FA_K);
}
/* C = A * B */
FA__FN void FA__MMA(_product)(FA__MMA(_acc) * acc, const FA__MMA(__operand) * a, const void *b_tile, int thread) {
    (void)thread;
    FA__MMA(__product_of)(acc, a, b_tile, FA_M, FA__MMA(_COLS));
}
#undef FA__OPERAND_DATA
#undef FA__OPERANDS

/* Writes the accumulator into an FA_OPERAND_A tile of FA_M x FA_N. */
FA__FN void FA__MMA(_to_tile)(const FA__MMA(_acc) * acc, void *tile, int thread) {
    (void)thread;
    memcpy(tile, acc->x, FA_M * FA_N * sizeof *acc->x); /* the same layout */
}

#undef FA__VEC
#undef FA__EACH_ROW
#undef FA__EACH_COLUMN
#undef FA__EACH_COLUMN_OF
#undef FA__AT_C
#undef FA__DECLARE_C
#undef FA__ADD_C
#undef FA__STORE_C
#undef FA__STEP_C
#undef FA__LOAD_A
#undef FA__DECLARE
#undef FA__ADD
#undef FA__STORE
#undef FA__COLUMN
#undef FA__STEP
