/* cpu/mma.h: the product on one core, which owns the whole of C, column by column: x[col * FA_M + row]. */
enum { FA__MMA(_ROWS) = FA_M, FA__MMA(_COLS) = FA_N };

typedef struct FA__MMA(_acc) {
    float x[FA_M * FA_N] __attribute__((aligned(64)));
} FA__MMA(_acc);

/* A fragment is the accumulator that it came from: [k][row], the layout of an A tile. */
typedef struct FA__MMA(_a) {
    const float *x;
} FA__MMA(_a);

FA__FN int FA__MMA(_row)(int thread, int r) {
    (void)thread;
    return r;
}
FA__FN int FA__MMA(_col)(int thread, int c) {
    (void)thread;
    return c;
}
FA__FN int FA__MMA(_col_offset)(int c) { return c; }

FA__FN void FA__MMA(_pack)(FA__MMA(_a) * a, const float *acc) { a->x = acc; }

#if FA_A == FA_FRAGMENT
FA__FN void FA__MMA(_mma)(FA__MMA(_acc) * acc, const FA__MMA(_a) * fragment, const void *b_tile, int thread) {
    const float *a = fragment->x;
#else
FA__FN void FA__MMA(_mma)(FA__MMA(_acc) * acc, const void *a_tile, const void *b_tile, int thread) {
    const float *a = (const float *)a_tile;
#endif
    const float *b = (const float *)b_tile;
    (void)thread;
    for (int n = 0; n < FA_N; n++)
        for (int k = 0; k < FA_K; k++)
            for (int m = 0; m < FA_M; m++)
                acc->x[n * FA_M + m] += a[k * FA_M + m] * b[FA_B == FA_OPERAND_B ? n * FA_K + k : k * FA_N + n];
}

/* Writes the accumulator into an FA_OPERAND_A tile of FA_M x FA_N. */
FA__FN void FA__MMA(_to_tile)(const FA__MMA(_acc) * acc, void *tile, int thread) {
    (void)thread;
    memcpy(tile, acc->x, sizeof acc->x); /* the same layout */
}
