/* mma_amx.h: the part of cpu/mma.h for FA_BF16 in attention where there is AMX (amx.h): C[col * FA_M + row] as
 * elsewhere on a CPU, so that its tiles, of 16 columns by 16 rows, are those of a product of B's columns (left) and
 * A's rows (right; tile_amx.h).
 *
 * Two by two tiles of C share what is loaded of A and B: four loads for four products. */
enum {
    FA__MMA(_ROWS) = FA_M,
    FA__MMA(_COLS) = (FA_N + 15) / 16 * 16, /* as V's columns are padded */
    FA__MMA(_PAIRS) = (FA_K + 31) / 32 * 16
};

typedef struct FA__MMA(_acc) {
    float x[FA_M * ((FA_N + 15) / 16 * 16)] __attribute__((__aligned__(64)));
} FA__MMA(_acc);

/* The layout of an A tile. */
typedef struct FA__MMA(_a) {
    uint32_t x[FA__MMA(_PAIRS) * FA_M] __attribute__((__aligned__(64)));
} FA__MMA(_a);

FA__FN void FA__MMA(_pack)(FA__MMA(_a) * a, const float *acc) {
    for (int pair = 0; pair < FA_K / 2; pair++)
        for (int row = 0; row < FA_M; row += 16) {
            const float *low = acc + 2 * pair * FA_M + row;
            *(FA__CPU_OP(vec) *)(void *)(a->x + pair * FA_M + row) =
                fa_cpu_pairs_bf16_2(*(const FA__CPU_OP(vec) *)low, *(const FA__CPU_OP(vec) *)(low + FA_M));
        }
    memset(a->x + FA_K / 2 * FA_M, 0, (size_t)(FA__MMA(_PAIRS) - FA_K / 2) * FA_M * sizeof *a->x);
}

/* C, from there 16 or 32 (`wide`) columns and 16 or 32 (`tall`) rows, = or += a product. */
FA__FN void FA__MMA(__four)(float *c, const uint32_t *a, const uint32_t *b, int wide, int tall, int accumulate) {
    enum { FA__LINE = FA_M * 4, FA__DEPTH = FA__MMA(_PAIRS) };
    FA__AMX_ZERO(0);
    FA__AMX_ZERO(1);
    FA__AMX_ZERO(2);
    FA__AMX_ZERO(3);
    if (accumulate) {
        FA__AMX_LOAD(0, c, FA__LINE);
        if (tall) FA__AMX_LOAD(1, c + 16, FA__LINE);
        if (wide) FA__AMX_LOAD(2, c + 16 * FA_M, FA__LINE);
        if (wide && tall) FA__AMX_LOAD(3, c + 16 * FA_M + 16, FA__LINE);
    }
    for (int k = 0; k < FA__DEPTH; k += 16) {
        FA__AMX_LOAD(4, b + k, FA__DEPTH * 4);
        FA__AMX_LOAD(6, a + k * FA_M, FA__LINE);
        FA__AMX_MULTIPLY(0, 4, 6);
        if (tall) {
            FA__AMX_LOAD(7, a + k * FA_M + 16, FA__LINE);
            FA__AMX_MULTIPLY(1, 4, 7);
        }
        if (wide) {
            FA__AMX_LOAD(5, b + 16 * FA__DEPTH + k, FA__DEPTH * 4);
            FA__AMX_MULTIPLY(2, 5, 6);
        }
        if (wide && tall) FA__AMX_MULTIPLY(3, 5, 7);
    }
    FA__AMX_STORE(0, c, FA__LINE);
    if (tall) FA__AMX_STORE(1, c + 16, FA__LINE);
    if (wide) FA__AMX_STORE(2, c + 16 * FA_M, FA__LINE);
    if (wide && tall) FA__AMX_STORE(3, c + 16 * FA_M + 16, FA__LINE);
}

/* All of C, however little of it is asked for. Most of it by a copy that knows that there are four tiles. */
FA__FN void FA__MMA(__panels)(float *c, const uint32_t *a, const uint32_t *b, int accumulate, int rows, int cols, int depth) {
    enum { FA__COLUMNS_OF_C = FA__MMA(_COLS) };
    (void)rows, (void)cols, (void)depth;
    for (int n = 0; n < FA__COLUMNS_OF_C; n += 32)
        for (int m = 0; m < FA_M; m += 32) {
            float *at = c + n * FA_M + m;
            const uint32_t *left = b + n * FA__MMA(_PAIRS);
            if (n + 16 < FA__COLUMNS_OF_C && m + 16 < FA_M) FA__MMA(__four)(at, a + m, left, 1, 1, accumulate);
            else FA__MMA(__four)(at, a + m, left, n + 16 < FA__COLUMNS_OF_C, m + 16 < FA_M, accumulate);
        }
}
