/* primitives.c: fa/tile.h, fa/mma.h, fa/softmax.h, fa/math.h and the soft cap of fa/score.h by themselves, in small
 * kernels of one block. The same source runs on the CPU and, compiled by nvcc, on the GPU. */
#include <math.h>
#include <string.h>

#include <fa/fa.h>
#include <fa/math.h>
#include <fa/score.h>
#if defined(__CUDACC__)
#include <fa/arch/sm80/ops.h>
#endif

#include "../harness/memory.h"
#include "../harness/number.h"
#include "../harness/rng.h"
#include "../harness/tap.h"

#if defined(__CUDACC__)
#define KERNEL static __global__ void
#define THREAD ((int)threadIdx.x)
#define THREADS 128
#define BARRIER __syncthreads()
#define SHARED __shared__
extern __shared__ __align__(1024) unsigned char fa__shared[]; /* dynamic shared memory, of which the simulator has this array alone */
#define DYNAMIC(type, name) type &name = *(type *)fa__shared
#if defined(TEST_SIMULATOR)
#include "launch.h"
#define LAUNCH_WITH(bytes, kernel, ...) simulator_launch(kernel, 1, THREADS, bytes, __VA_ARGS__)
#else
#define LAUNCH_WITH(bytes, kernel, ...) (kernel<<<1, THREADS, bytes>>>(__VA_ARGS__), memory_launched())
#endif
#define PLACE MEMORY_DEVICE
#define ON_GPU 1
#else
#define KERNEL static void
#define THREAD 0
#define THREADS 1
#define BARRIER ((void)0)
#define SHARED
#define DYNAMIC(type, name) type name
#define LAUNCH_WITH(bytes, kernel, ...) kernel(__VA_ARGS__)
#define PLACE MEMORY_HOST
#define ON_GPU 0
#endif
#define LAUNCH(kernel, ...) LAUNCH_WITH(0, kernel, __VA_ARGS__)
/* The products of half types: on the simulator of compute capability 9.0 by warpgroups, which suites/sm90.c tests on
 * a GPU. */
#if !defined(__CUDACC__)
#define HALF_ARCH FA_CPU
#elif defined(TEST_SIMULATOR) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HALF_ARCH 90
#else
#define HALF_ARCH 80
#endif

enum { M = 64, N = 32, K = 40 };

/* ---- products: C (64 x 32) = A (64 x 40) B^T, of rows that a block pointer bounds ---- */

#define PRODUCT(type)                                                                                                  \
    KERNEL product_##type(const void *a, const void *b, float *c, int rows_a, int rows_b, int first) {                 \
        DYNAMIC(type##_a_tile, ta);                                                                                    \
        SHARED type##_b_tile tb;                                                                                       \
        type##_mm_acc acc;                                                                                             \
        fa_block from_a = fa_block_at(a, rows_a, K, K), from_b = fa_block_at(b, rows_b, K, K);                         \
        fa_block_advance(&from_a, first);                                                                              \
        type##_a_load(&ta, from_a, THREAD);                                                                            \
        type##_b_load(&tb, from_b, THREAD);                                                                            \
        type##_a_commit();                                                                                             \
        type##_a_wait(0);                                                                                              \
        type##_a_barrier();                                                                                            \
        type##_mm_zero(&acc);                                                                                          \
        type##_mm_mma(&acc, &ta, &tb, THREAD);                                                                         \
        for (int r = 0; r < type##_mm_ROWS; r++)                                                                       \
            for (int n = 0; n < type##_mm_COLS; n++)                                                                   \
                c[type##_mm_row(THREAD, r) * N + type##_mm_col(THREAD, n)] = acc.x[type##_mm_AT(r, n)];                \
    }

#define FA_NAME f32_a
#define FA_DTYPE FA_F32
#define FA_ROWS 64
#define FA_COLS 40
#define FA_OPERAND FA_OPERAND_A
#include <fa/tile.h>
#define FA_NAME f32_b
#define FA_DTYPE FA_F32
#define FA_ROWS 32
#define FA_COLS 40
#include <fa/tile.h>
#define FA_NAME f32_mm
#define FA_DTYPE FA_F32
#define FA_M 64
#define FA_N 32
#define FA_K 40
#include <fa/mma.h>
PRODUCT(f32)

#define FA_NAME f16_a
#define FA_DTYPE FA_F16
#define FA_ARCH HALF_ARCH
#define FA_ROWS 64
#define FA_COLS 40
#define FA_OPERAND FA_OPERAND_A
#include <fa/tile.h>
#define FA_NAME f16_b
#define FA_DTYPE FA_F16
#define FA_ARCH HALF_ARCH
#define FA_ROWS 32
#define FA_COLS 40
#include <fa/tile.h>
#define FA_NAME f16_mm
#define FA_DTYPE FA_F16
#define FA_ARCH HALF_ARCH
#define FA_M 64
#define FA_N 32
#define FA_K 40
#include <fa/mma.h>
PRODUCT(f16)

#define FA_NAME bf16_a
#define FA_DTYPE FA_BF16
#define FA_ARCH HALF_ARCH
#define FA_ROWS 64
#define FA_COLS 40
#define FA_OPERAND FA_OPERAND_A
#include <fa/tile.h>
#define FA_NAME bf16_b
#define FA_DTYPE FA_BF16
#define FA_ARCH HALF_ARCH
#define FA_ROWS 32
#define FA_COLS 40
#include <fa/tile.h>
#define FA_NAME bf16_mm
#define FA_DTYPE FA_BF16
#define FA_ARCH HALF_ARCH
#define FA_M 64
#define FA_N 32
#define FA_K 40
#include <fa/mma.h>
PRODUCT(bf16)

/* Fills an array of a type; its place gets a copy. Rows past the end are NaN. */
static void *filled(int dtype, int rows, int real_rows, unsigned char *host, rng *r) {
    size_t bytes = (size_t)(rows * K * number_bytes(dtype));
    void *data = memory_new(PLACE, bytes);
    for (int i = 0; i < rows * K; i++) number_store(host, i, dtype, i < real_rows * K ? rng_normal(r) : NAN);
    memory_put(PLACE, data, host, bytes);
    return data;
}

static void product(const char *name, int dtype, int which, rng *r) {
    enum { ROWS_A = 90, FIRST = 37, REAL_A = 77, REAL_B = 29 };
    static unsigned char a[ROWS_A * K * 4], b[N * K * 4];
    static float c[M * N];
    void *da = filled(dtype, ROWS_A, REAL_A, a, r), *db = filled(dtype, N, REAL_B, b, r);
    float *dc = (float *)memory_new(PLACE, sizeof c);
    double worst = 0;
    for (int i = 0; i < M * N; i++) c[i] = NAN;
    memory_put(PLACE, dc, c, sizeof c);
    if (which == 0) LAUNCH_WITH(sizeof(f32_a_tile), product_f32, da, db, dc, REAL_A, REAL_B, FIRST);
    if (which == 1) LAUNCH_WITH(sizeof(f16_a_tile), product_f16, da, db, dc, REAL_A, REAL_B, FIRST);
    if (which == 2) LAUNCH_WITH(sizeof(bf16_a_tile), product_bf16, da, db, dc, REAL_A, REAL_B, FIRST);
    memory_finish(PLACE);
    memory_get(PLACE, c, dc, sizeof c);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double exact = 0;
            for (int k = 0; k < K && FIRST + i < REAL_A && j < REAL_B; k++)
                exact += number_load(a, (FIRST + i) * K + k, dtype) * number_load(b, j * K + k, dtype);
            worst = number_worse(worst, isnan(c[i * N + j]) ? INFINITY : fabs((double)c[i * N + j] - exact));
        }
    tap_ok(worst < 1e-5, "%s: tiles from block pointers and their product; what lies past the end is 0 (largest error %.2g)", name,
           worst);
    memory_delete(PLACE, da, (size_t)(ROWS_A * K * number_bytes(dtype)));
    memory_delete(PLACE, db, (size_t)(N * K * number_bytes(dtype)));
    memory_delete(PLACE, dc, sizeof c);
}

/* ---- a gather: rows from a list, -1 for a row of zeros; stored to a bounded block ---- */

struct gather {
    const float *rows;
    const int *list;
};
FA_HOOK const void *listed_row(const struct gather *from, int row) {
    return from->list[row] < 0 ? NULL : from->rows + (int64_t)from->list[row] * K;
}
#define FA_NAME gather
#define FA_DTYPE FA_F32
#define FA_ROWS 48
#define FA_COLS 40
#define FA_OPERAND FA_OPERAND_A
#define FA_LOADER FA_POINTER
#define FA_ROW_ADDRESS listed_row
#define FA_USER_ARGS struct gather
#include <fa/tile.h>

KERNEL gather_rows(struct gather from, float *to, int rows) {
    SHARED gather_tile tile;
    gather_source source;
    fa_block out = fa_block_at(to, rows, K, K);
    source.user = &from;
    source.row = 2;
    gather_load(&tile, source, THREAD);
    gather_commit();
    gather_wait(0);
    BARRIER;
    /* The loaded layout is read back through NAME_store(), whose operand it is. */
    gather_store(&tile, out, THREAD);
}

static void gathers(rng *r) {
    enum { ROWS = 20, OUT = 45, LIST = 50 };
    static float rows[ROWS * K], out[(OUT + 1) * K];
    int list[LIST], wrong = 0;
    struct gather from;
    float *data = (float *)memory_new(PLACE, sizeof rows), *to = (float *)memory_new(PLACE, sizeof out);
    int *ids = (int *)memory_new(PLACE, sizeof list);
    for (int i = 0; i < ROWS * K; i++) rows[i] = (float)rng_normal(r);
    for (int i = 0; i < LIST; i++) list[i] = rng_int(r, -1, ROWS - 1);
    for (int i = 0; i < (OUT + 1) * K; i++) out[i] = 77;
    memory_put(PLACE, data, rows, sizeof rows), memory_put(PLACE, ids, list, sizeof list), memory_put(PLACE, to, out, sizeof out);
    from.rows = data, from.list = ids;
    LAUNCH(gather_rows, from, to, OUT);
    memory_finish(PLACE);
    memory_get(PLACE, out, to, sizeof out);
    for (int i = 0; i <= OUT; i++)
        for (int c = 0; c < K; c++)
            wrong += out[i * K + c] != (i == OUT ? 77 : list[i + 2] < 0 ? 0 : rows[list[i + 2] * K + c]);
    tap_ok(!wrong, "a tile gathered row by row, stored within its bounds (%d wrong)", wrong);
    memory_delete(PLACE, data, sizeof rows), memory_delete(PLACE, to, sizeof out), memory_delete(PLACE, ids, sizeof list);
}

/* ---- a tile of a matrix of which nothing is left: bounds of 0 and below ---- */

KERNEL load_nothing(const void *from, int rows, int cols, float *sum) {
    SHARED f32_a_tile tile;
    for (int i = THREAD; i < M * K; i += THREADS) *f32_a_at(&tile, i / K, i % K) = 1;
    BARRIER;
    f32_a_load(&tile, fa_block_at(from, rows, cols, K), THREAD);
    f32_a_commit();
    f32_a_wait(0);
    BARRIER;
    if (THREAD == 0) *sum -= 1; /* for having been here */
    for (int i = 0; i < M * K && THREAD == 0; i++) *sum += fabsf(*f32_a_at(&tile, i / K, i % K));
}
static void nothing_left(void) {
    static const int bounds[][2] = {{0, K}, {-1, K}, {-100, K}, {M, 0}, {M, -8}, {M, -64}, {-1, -8}};
    enum { BOUNDS = sizeof bounds / sizeof bounds[0] };
    static float rows[M * K];
    float sum = BOUNDS, *data = (float *)memory_new(PLACE, sizeof rows), *found = (float *)memory_new(PLACE, sizeof sum);
    for (int i = 0; i < M * K; i++) rows[i] = 1;
    memory_put(PLACE, data, rows, sizeof rows), memory_put(PLACE, found, &sum, sizeof sum);
    for (int i = 0; i < BOUNDS; i++) LAUNCH(load_nothing, data, bounds[i][0], bounds[i][1], found);
    memory_finish(PLACE);
    memory_get(PLACE, &sum, found, sizeof sum);
    tap_ok(sum == 0, "of a matrix with bounds of 0 or below a tile is zeros (%g)", (double)sum);
    memory_delete(PLACE, data, sizeof rows), memory_delete(PLACE, found, sizeof sum);
}

/* ---- bounds between the 16 bytes that are loaded and stored at a time ---- */

enum { WIDE = K + 8 }; /* elements from row to row */

#define CUT(type)                                                                                                         \
    KERNEL copy_##type(const void *from, int cols, void *to, int cols_to) {                                              \
        SHARED type##_tile tile;                                                                                         \
        type##_load(&tile, fa_block_at(from, M - 5, cols, WIDE), THREAD);                                                \
        type##_commit();                                                                                                 \
        type##_wait(0);                                                                                                  \
        type##_barrier();                                                                                                \
        type##_store(&tile, fa_block_at(to, M - 2, cols_to, WIDE), THREAD);                                              \
    }                                                                                                                    \
    static void cut_##type(int dtype, rng *r) {                                                                          \
        const size_t bytes = (size_t)(M * WIDE * fa_dtype_bytes(dtype));                                                 \
        char from[M * WIDE * 4], to[M * WIDE * 4];                                                                       \
        void *data = memory_new(PLACE, bytes), *out = memory_new(PLACE, bytes);                                          \
        int wrong = 0;                                                                                                   \
        for (int cols = 0; cols <= K; cols++) {                                                                          \
            const int cols_to = rng_int(r, 0, K);                                                                        \
            for (int i = 0; i < M * WIDE; i++) number_store(from, i, dtype, i % WIDE < cols && i / WIDE < M - 5 ? i % 97 + 1 : NAN), number_store(to, i, dtype, -77); \
            memory_put(PLACE, data, from, bytes), memory_put(PLACE, out, to, bytes);                                     \
            LAUNCH(copy_##type, data, cols, out, cols_to);                                                               \
            memory_finish(PLACE);                                                                                        \
            memory_get(PLACE, to, out, bytes);                                                                           \
            for (int i = 0; i < M * WIDE; i++) {                                                                         \
                const int row = i / WIDE, col = i % WIDE;                                                                \
                const double want = row >= M - 2 || col >= cols_to ? -77 : row < M - 5 && col < cols ? i % 97 + 1 : 0;   \
                wrong += !(number_load(to, i, dtype) == want);                                                           \
            }                                                                                                            \
        }                                                                                                                \
        tap_ok(!wrong, "%s: a tile of any number of columns, stored to any number of them (%d wrong)", #type, wrong);    \
        memory_delete(PLACE, data, bytes), memory_delete(PLACE, out, bytes);                                             \
    }
CUT(f32_a)
CUT(f16_a)
CUT(bf16_a)
#undef CUT

/* ---- all binary16 numbers as floats ---- */

enum { HALVES = 1 << 16 };

KERNEL widen(float *x) {
    for (int i = THREAD; i < HALVES; i += THREADS) x[i] = fa_f16_to_float((fa_f16)i);
}

static void halves(void) {
    static float x[HALVES];
    int wrong = 0;
    float *data = (float *)memory_new(PLACE, sizeof x);
    LAUNCH(widen, data);
    memory_finish(PLACE);
    memory_get(PLACE, x, data, sizeof x);
    for (int i = 0; i < HALVES; i++) {
        const float want = (float)number_from_f16((uint16_t)i);
        wrong += isnan(want) ? !isnan(x[i]) : x[i] != want || !signbit(x[i]) != !signbit(want);
    }
    tap_ok(!wrong, "fa_f16_to_float of every number (%d wrong)", wrong);
    memory_delete(PLACE, data, sizeof x);
}

/* ---- the soft cap in FA_F32, with a cap of 1: in units in the last place of tanh, and of 1 from 4 on ---- */

enum { CAPPED = 1 << 16 };

KERNEL cap_scores(float *x, int n) {
    fa_attention_args args;
    fa_index at;
    memset(&args, 0, sizeof args), memset(&at, 0, sizeof at);
    args.softcap = 1.0f, at.args = &args, at.dtype = FA_F32;
    for (int i = THREAD; i < n; i += THREADS) x[i] = fa_softcap(NULL, x[i], at);
}

static void caps(rng *r) {
    static float x[CAPPED], y[CAPPED];
    static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, 1e-40f, 9.0f, 10.0f, 3e38f};
    enum { SPECIAL = sizeof special / sizeof *special };
    double worst = 0, worst_reached = 0;
    float *data = (float *)memory_new(PLACE, sizeof x);
    memcpy(x, special, sizeof special);
    for (int i = SPECIAL; i < CAPPED; i++) /* of every size from 1e-9 to 16, and evenly up to 16 */
        x[i] = (float)(i % 2 ? rng_normal(r) * exp(-20 * rng_uniform(r)) : 32 * rng_uniform(r) - 16);
    x[CAPPED - 1] = NAN;
    memory_put(PLACE, data, x, sizeof x);
    LAUNCH(cap_scores, data, CAPPED);
    memory_finish(PLACE);
    memory_get(PLACE, y, data, sizeof y);
    for (int i = 0; i < CAPPED - 1; i++) {
        double want = tanh((double)x[i]), off = fabs((double)y[i] - want) / (2 * number_half_ulp(want, FA_F32));
        if (!(off < INFINITY) || signbit(x[i]) != signbit(y[i])) off = INFINITY;
        worst = number_worse(worst, off);
        if (fabsf(x[i]) >= 4) worst_reached = fmax(worst_reached, off);
    }
    tap_ok(worst < 5.5 && worst_reached < 0.76 && isnan(y[CAPPED - 1]),
           "fa_softcap in FA_F32: off by %.2f units in the last place, %.2f where the cap is reached", worst, worst_reached);
    memory_delete(PLACE, data, sizeof x);
}

/* ---- fa/math.h: errors in units in the last place, of numbers of every size, and what is said of the ends ---- */

enum { MATH_DIVIDE, MATH_EXP2, MATH_EXP, MATH_LOG, MATH_TANH, MATH_APPROXIMATE, MATH_SIGMOID, MATH_SELECT, MATH_MIN, MATH_MAX, MATH_COUNT };
enum { MATH_NUMBERS = 1 << 16 };
static const char *const math_names[] = {"fa_divide", "fa_exp2", "fa_exp", "fa_log", "fa_tanh", "fa_tanh_approximate", "fa_sigmoid", "fa_select", "fa_min", "fa_max"};

/* x is followed by another number, for the quotient, and then by results: as many each. */
KERNEL math_of(float *x, int n) {
    for (int i = THREAD; i < n; i += THREADS) {
        float *y = x + 2 * n + i, a = x[i], b = x[n + i];
        y[MATH_DIVIDE * n] = fa_divide(a, b), y[MATH_EXP2 * n] = fa_exp2(a), y[MATH_EXP * n] = fa_exp(a), y[MATH_LOG * n] = fa_log(a);
        y[MATH_TANH * n] = fa_tanh(a), y[MATH_APPROXIMATE * n] = fa_tanh_approximate(a), y[MATH_SIGMOID * n] = fa_sigmoid(a);
        y[MATH_SELECT * n] = fa_select(a > 0, a, b), y[MATH_MIN * n] = fa_min(a, b), y[MATH_MAX * n] = fa_max(a, b);
    }
}
static double math_want(int which, double a, double b) {
    switch (which) {
    case MATH_DIVIDE: return a / b;
    case MATH_EXP2: return exp2(a);
    case MATH_EXP: return exp(a);
    case MATH_LOG: return log(a);
    case MATH_SIGMOID: return 1 / (1 + exp(-a));
    case MATH_SELECT: return a > 0 ? a : b;
    case MATH_MIN: return b < a ? b : a;
    case MATH_MAX: return b > a ? b : a;
    default: return tanh(a);
    }
}
/* Units in the last place that are allowed. */
static double math_limit(int which, double a) {
    const double half = ON_GPU ? 0x1p-11 * 0x1p24 : 5.5;
    const double limits[MATH_COUNT] = {ON_GPU ? 2.5 : 0.5, 3, 3 + 2 * fabs(a), ON_GPU ? 5 : 2, 5.5, half, 5 + 2 * fabs(a), 1e-9, 1e-9, 1e-9};
    return limits[which];
}
static void hook_math(rng *r) {
    static float x[(2 + MATH_COUNT) * MATH_NUMBERS];
    static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -1.0f, 128.0f, -130.0f, 3e38f, 88.8f, -88.0f, 0x1p-126f};
    enum { SPECIAL = sizeof special / sizeof *special };
    const double least = 2e-38; /* what is smaller may be 0 */
    float *data = (float *)memory_new(PLACE, sizeof x);
    for (int i = 0; i < 2 * MATH_NUMBERS; i++) {
        const uint32_t bits = (uint32_t)rng_next(r);
        memcpy(&x[i], &bits, 4); /* of every size, and near 0 */
        if (i % 2) x[i] = (float)(rng_normal(r) * exp(8 * rng_uniform(r) - 4));
        if (i % 8 == 2) x[i] = (float)(1 + 0.01 * rng_normal(r));
        if (isnan(x[i]) || fabsf(x[i]) < 0x1p-126f) x[i] = 1.5f;
        if (i >= MATH_NUMBERS && fabsf(x[i]) > 0x1p126f) x[i] = -0.75f;
    }
    memcpy(x, special, sizeof special);
    memory_put(PLACE, data, x, sizeof x);
    LAUNCH(math_of, data, MATH_NUMBERS);
    memory_finish(PLACE);
    memory_get(PLACE, x, data, sizeof x);
    for (int which = 0; which < MATH_COUNT; which++) {
        double worst = 0;
        float at = 0;
        for (int i = 0; i < MATH_NUMBERS; i++) {
            const double a = (double)x[i], want = math_want(which, a, (double)x[MATH_NUMBERS + i]);
            const float got = x[(2 + which) * MATH_NUMBERS + i];
            double off = fabs((double)got - want) / (2 * number_half_ulp(want, FA_F32));
            if (isnan(want) || fabs(want) >= 0x1.ffffffp127) off = isnan(want) ? (isnan(got) ? 0 : INFINITY) : fabs((double)got) > 3.4e38 && (got > 0) == (want > 0) ? 0 : INFINITY;
            else if (fabs(want) < least) off = fabs((double)got) < least ? 0 : INFINITY;
            else if (which == MATH_LOG && ON_GPU && a >= 0.5 && a <= 2) off = fabs((double)got - want) < 2e-7 ? 0 : INFINITY;
            else if (!(off < INFINITY)) off = INFINITY;
            if (off > 0 && off < INFINITY) off /= math_limit(which, a); /* which is no number where a is none */
            if (!(off <= worst)) worst = off, at = x[i];
        }
        tap_ok(worst <= 1, "%s: %.2f of the error that is allowed (at %g)", math_names[which], worst, (double)at);
    }
    memory_delete(PLACE, data, sizeof x);
}

/* ---- online softmax: rows in tiles, in one state or in two that are merged, and one more tile after that ---- */

#define FA_NAME sm
#define FA_M 64
#define FA_N 32
#include <fa/softmax.h>
enum { TILES = 5, LENGTH = TILES * N };
#define LOG2_E 1.44269504f

/* out: for each row, the shares of its owners of a weighted mean of values; then lse. wrong: threads that got
 * factors other than 1 without being told. */
KERNEL softmax_of(const float *scores, const float *values, int split, float *out, int *wrong) {
    sm_state state, other;
    float sum[sm_ROWS], other_sum[sm_ROWS], tile[sm_ROWS * sm_COLS], alpha[sm_ROWS], beta[sm_ROWS], lse[sm_ROWS];
    sm_init(&state), sm_init(&other);
    for (int r = 0; r < sm_ROWS; r++) sum[r] = other_sum[r] = 0;
    for (int t = 0; t < TILES; t++) {
        const int merged = t == TILES - 1, second = t >= split && !merged;
        if (merged) {
            sm_merge(&state, &other, LOG2_E, alpha, beta);
            for (int r = 0; r < sm_ROWS; r++) sum[r] = sum[r] * alpha[r] + other_sum[r] * beta[r];
        }
        for (int c = 0; c < sm_COLS; c++)
            for (int r = 0; r < sm_ROWS; r++) tile[sm_AT(r, c)] = scores[f32_mm_row(THREAD, r) * LENGTH + t * N + f32_mm_col(THREAD, c)];
        const int raised = second ? sm_update(&other, tile, LOG2_E, alpha) : sm_update(&state, tile, LOG2_E, alpha);
        for (int r = 0; r < sm_ROWS; r++) {
            float of_tile = 0;
            for (int c = 0; c < sm_COLS; c++) of_tile += tile[sm_AT(r, c)] * values[t * N + f32_mm_col(THREAD, c)];
            if (second) other_sum[r] = other_sum[r] * alpha[r] + of_tile;
            else sum[r] = sum[r] * alpha[r] + of_tile;
            if (!raised && alpha[r] != 1) wrong[THREAD] = 1;
        }
    }
    sm_finish(&state, 1.0f, alpha, lse);
    for (int r = 0; r < sm_ROWS; r++) {
        out[f32_mm_row(THREAD, r) * N + f32_mm_col(THREAD, 0)] = sum[r] * alpha[r];
        out[M * N + f32_mm_row(THREAD, r)] = lse[r];
    }
}

static void softmax_rows(rng *r) {
    static float scores[M * LENGTH], values[LENGTH], out[M * N + M];
    static int wrong[THREADS];
    float *of_rows = (float *)memory_new(PLACE, sizeof scores), *of_columns = (float *)memory_new(PLACE, sizeof values);
    float *to = (float *)memory_new(PLACE, sizeof out);
    int *told = (int *)memory_new(PLACE, sizeof wrong), untold = 0, hidden_wrong = 0;
    double worst_lse = 0, worst_mean = 0;
    for (int split = 0; split < TILES; split++) { /* tiles of the first state */
        for (int i = 0; i < M; i++)
            for (int j = 0; j < LENGTH; j++) {
                /* Rows whose maximum grows, shrinks, jumps; a hidden tile at the start; a hidden row. */
                const int kind = i % 8;
                double x = 4 * rng_normal(r) + (kind == 1 ? j * 0.5 : kind == 2 ? -j * 0.5 : kind == 3 && j == 100 ? 90 : 0);
                scores[i * LENGTH + j] = kind == 7 || (kind == 4 && j < N) || (kind == 5 && j >= N) ? -INFINITY : (float)x;
            }
        for (int j = 0; j < LENGTH; j++) values[j] = (float)rng_normal(r);
        memset(out, 0, sizeof out), memset(wrong, 0, sizeof wrong);
        memory_put(PLACE, of_rows, scores, sizeof scores), memory_put(PLACE, of_columns, values, sizeof values);
        memory_put(PLACE, to, out, sizeof out), memory_put(PLACE, told, wrong, sizeof wrong);
        LAUNCH(softmax_of, of_rows, of_columns, split, to, told);
        memory_finish(PLACE);
        memory_get(PLACE, out, to, sizeof out), memory_get(PLACE, wrong, told, sizeof wrong);
        for (int i = 0; i < THREADS; i++) untold += wrong[i];
        for (int i = 0; i < M; i++) {
            const double lse = (double)out[M * N + i];
            double largest = -INFINITY, sum = 0, mean = 0, got = 0;
            for (int owner = 0; owner < N; owner++) got += (double)out[i * N + owner];
            for (int j = 0; j < LENGTH; j++) largest = fmax(largest, (double)scores[i * LENGTH + j]);
            if (largest == -INFINITY) {
                hidden_wrong += got != 0 || lse != -INFINITY;
                continue;
            }
            for (int j = 0; j < LENGTH; j++) {
                double e = exp((double)scores[i * LENGTH + j] - largest);
                sum += e, mean += e * (double)values[j];
            }
            worst_lse = number_worse(worst_lse, fabs(lse - (largest + log(sum))));
            worst_mean = number_worse(worst_mean, fabs(got - mean / sum));
        }
    }
    tap_ok(worst_lse < 1e-4 && worst_mean < 1e-5, "softmax in tiles, and merged from two states (largest errors %.2g, %.2g)", worst_lse,
           worst_mean);
    tap_ok(!hidden_wrong && !untold, "softmax of hidden tiles and hidden rows; the return value tells of factors other than 1 (%d, %d wrong)",
           hidden_wrong, untold);
    memory_delete(PLACE, of_rows, sizeof scores), memory_delete(PLACE, of_columns, sizeof values);
    memory_delete(PLACE, to, sizeof out), memory_delete(PLACE, told, sizeof wrong);
}

#if defined(__CUDACC__) && !defined(TEST_SIMULATOR)
/* ---- the marks for the second-level cache: those that createpolicy makes on this device ---- */

KERNEL make_policies(uint64_t *to) {
    asm("createpolicy.fractional.L2::evict_unchanged.b64 %0, 1.0;" : "=l"(to[0]));
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(to[1]));
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(to[2]));
}
static void policies(void) {
    uint64_t made[3] = {0, 0, 0}, *data = (uint64_t *)memory_new(PLACE, sizeof made);
    memory_put(PLACE, data, made, sizeof made);
    LAUNCH(make_policies, data);
    memory_finish(PLACE);
    memory_get(PLACE, made, data, sizeof made);
    tap_ok(made[0] == FA__SM80_EVICT_UNCHANGED && made[1] == FA__SM80_EVICT_LAST && made[2] == FA__SM80_EVICT_FIRST,
           "marks for the second-level cache: %llx, %llx, %llx", (unsigned long long)made[0], (unsigned long long)made[1],
           (unsigned long long)made[2]);
    memory_delete(PLACE, data, sizeof made);
}
#endif

int main(void) {
    rng r;
    const char *why = NULL;
    if (PLACE == MEMORY_DEVICE && !memory_has_device(&why)) {
        tap_skip("primitives on the GPU: %s", why);
        return tap_end();
    }
    r = rng_new(rng_seed(), 40);
    product("f32", FA_F32, 0, &r);
    product("f16", FA_F16, 1, &r);
    product("bf16", FA_BF16, 2, &r);
    gathers(&r);
    nothing_left();
    cut_f32_a(FA_F32, &r), cut_f16_a(FA_F16, &r), cut_bf16_a(FA_BF16, &r);
    halves();
    caps(&r);
    hook_math(&r);
    softmax_rows(&r);
#if defined(__CUDACC__) && !defined(TEST_SIMULATOR)
    policies();
#endif
    return tap_end();
}
