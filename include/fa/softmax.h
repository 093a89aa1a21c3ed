/**
 * @file softmax.h
 * @brief Online softmax of rows that arrive in pieces: state, update, merge, finish.
 *
 * Milakov and Gimelshein (arXiv 1805.02867): keep the largest score seen so far and the sum of
 * exp(score - largest); when a larger one arrives, rescale what was accumulated. One owner (a thread of
 * a GPU, a core of a CPU) holds FA_ROWS rows by FA_COLS columns of a score tile as an array of floats.
 *
 * @code{.c}
 * #include <math.h>
 * #include <fa/fa.h>
 *
 * #define FA_NAME sm
 * #define FA_ARCH FA_CPU
 * #define FA_ROWS 1
 * #define FA_COLS 64
 * #include <fa/softmax.h>
 *
 * static float log_sum_exp(const float *x, int n) { // n a multiple of 64
 *     sm_state state;
 *     float tile[64], alpha[1], inverse[1], lse[1];
 *     sm_init(&state);
 *     for (int i = 0; i < n; i += 64) {
 *         memcpy(tile, x + i, sizeof tile);
 *         sm_update(&state, tile, 1.0f / logf(2.0f), alpha);
 *     }
 *     sm_finish(&state, 1.0f, inverse, lse);
 *     return lse[0];
 * }
 * @endcode
 *
 * | parameter  | required | default   | meaning |
 * |------------|----------|-----------|---------|
 * | FA_NAME    | yes      |           | prefix of what is generated |
 * | FA_M, FA_N | these    |           | the scores are the result of a product of fa/mma.h with these and FA_WARPS |
 * | FA_WARPS   | no       | 4         | warps that share the product (GPU) |
 * | FA_ROWS    | or these |           | rows of a tile that an owner holds |
 * | FA_COLS    | or these |           | columns of a tile that an owner holds |
 * | FA_OWNERS  | no       | 4 on GPUs, 1 on the CPU | neighbouring lanes that share the rows: 1, where each holds whole rows, 2, 4, ... 32 |
 * | FA_WIDE    | no       | 1         | 1: finite scores of any size; 0: magnitudes up to 1e9 (2e7 where weights are rounded to FA_F16), which saves one instruction per score |
 * | FA_DTYPE   | no       | FA_F32    | the type that weights are rounded to: with a half type exponentials (CPU) and the logarithm (GPU) take fewer instructions, and err more |
 * | FA_ARCH    | no       | by the compiler | FA_CPU, 80 or 90: that of the product |
 * | FA_SUB     | no       |           | second part of the prefix, inside another template's instance; FA_NAME, FA_DTYPE and FA_ARCH stay defined |
 *
 * Generates NAME_ROWS, NAME_COLS, NAME_state, NAME_init(), NAME_update(), NAME_merge(), NAME_finish() and NAME_AT(row, column),
 * the index of an element in the array: on GPUs in the product's layout, or with FA_ROWS and FA_COLS row-major, on the CPU column-major, since its vectors run
 * over rows.
 * NAME_update() consists of, in this order, NAME_exceeds(); NAME_raise(); NAME_fade(); NAME_weigh(). On GPUs, whose
 * exponential takes any number and becomes infinite where it overflows, there is NAME_weigh_columns(), too, and after NAME_begin() or NAME_raise_by() weights may
 * be computed before the maximum is looked for: by NAME_weigh(), after which NAME_behind() is asked; or, with
 * FA_WIDE, by NAME_weigh_near() or NAME_weigh_columns_near(), after which NAME_far() is asked, too. If either says
 * yes, NAME_raise(), NAME_fade() and NAME_weigh() follow.
 *
 * All lanes that share rows call together (GPU: whole warps, converged). Nothing else synchronises.
 */
#include <fa/fa.h>

#include <fa/arch/begin.h>
#define FA__SM(x) FA__CAT4(FA_NAME, FA_SUB, FA__SUFFIX, x)

#if (defined(FA_M) || defined(FA_N)) && (defined(FA_ROWS) || defined(FA_COLS))
FA__REQUIRE(0, "FA_M or FA_N is defined, and FA_ROWS or FA_COLS: those of the product that leaves the scores are needed, or else the rows and columns that an owner holds");
#undef FA_M
#undef FA_N
#undef FA_ROWS
#define FA_ROWS 1
#undef FA_COLS
#define FA_COLS 1
#endif
#if defined(FA_M) + defined(FA_N) == 1
FA__REQUIRE(0, "FA_M is defined and FA_N is not, or the other way round: both are needed, those of the product that leaves the scores, or else FA_ROWS and FA_COLS");
#undef FA_M
#define FA_M 64
#undef FA_N
#define FA_N 64
#endif
#if defined(FA_M) && defined(FA_N)
#if FA_M + 0 < 16 || (FA_M + 0) % 16 != 0 || FA__IS_BARE(FA_M) || FA_N + 0 < 8 || (FA_N + 0) % 8 != 0 || FA__IS_BARE(FA_N)
FA__REQUIRE(0, "FA_M is " FA__STR(FA_M) " and FA_N " FA__STR(FA_N) ": those of a product of fa/mma.h, multiples of 16 and 8, are needed, in parentheses if they are expressions, without suffixes");
#undef FA_M
#define FA_M 64
#undef FA_N
#define FA_N 64
#endif
#if FA__ARCH == 90
FA__REQUIRE(FA_M == FA_WARPS * 16 && FA_WARPS % 4 == 0 && FA_N <= 256,
            "FA_M is " FA__STR(FA_M) ", FA_N " FA__STR(FA_N) " and FA_WARPS " FA__STR(FA_WARPS) ": a product with FA_ARCH 90 has 16 rows for each warp, warps by fours, and at most 256 columns");
#elif FA__ARCH != FA_CPU
FA__REQUIRE(FA_M % (FA_WARPS * 16) == 0, "FA_M is " FA__STR(FA_M) " and FA_WARPS is " FA__STR(FA_WARPS) ": FA_M has to be a multiple of 16 * FA_WARPS, the rows that the warps compute");
#endif
#define FA_ROWS FA__FRAGMENT_ROWS(FA_M, FA_WARPS)
#define FA_COLS FA__FRAGMENT_COLS(FA_N)
#endif
#if !defined(FA_ROWS)
#define FA_ROWS undefined
#endif
#if FA_ROWS + 0 < 1 || FA__IS_BARE(FA_ROWS)
FA__REQUIRE(0, "FA_ROWS, the rows of a tile that an owner holds, is " FA__STR(FA_ROWS) ": 1 or more is needed, " FA__AS_A_NUMBER ", or FA_M and FA_N, as for the product that leaves the scores");
#undef FA_ROWS
#define FA_ROWS 1
#endif
#if !defined(FA_COLS)
#define FA_COLS undefined
#endif
#if FA_COLS + 0 < 1 || FA__IS_BARE(FA_COLS)
FA__REQUIRE(0, "FA_COLS, the columns of a tile that an owner holds, is " FA__STR(FA_COLS) ": 1 or more is needed, " FA__AS_A_NUMBER);
#undef FA_COLS
#define FA_COLS 1
#endif
#if !defined(FA_WIDE)
#define FA_WIDE 1
#endif
#if FA_WIDE + 0 < 0 || FA_WIDE + 0 > 1 || 0 - FA_WIDE - 1 > 0 /* the last: it is empty */
FA__REQUIRE(0, "FA_WIDE is " FA__STR(FA_WIDE) ": 1, for scores of any size, or 0 is needed");
#undef FA_WIDE
#define FA_WIDE 1
#endif
#if !defined(FA__EAGER)
#define FA__EAGER 0 /* 1: NAME_update() skips NAME_exceeds(), which needs registers */
#endif
#if !defined(FA_OWNERS)
#define FA_OWNERS FA__ROW_OWNERS
#endif
#if FA_OWNERS + 0 < 1 || FA_OWNERS + 0 > 32 || 32 % (FA_OWNERS + 0) != 0 || FA__IS_BARE(FA_OWNERS)
FA__REQUIRE(0, "FA_OWNERS, the owners of a row, is " FA__STR(FA_OWNERS) ": a power of two up to 32 is needed");
#undef FA_OWNERS
#define FA_OWNERS 1
#endif

/* For each row: the running maximum, which may be below the largest score so far, by as much as weights can stand
 * (FA__STALE_LIMIT, NAME_behind()); the owner's share of the sum of exp2((score - max) * scale); and on a GPU the
 * bits of the score at which `max` may have to change. */
typedef struct FA__SM(_state) {
    float max[FA_ROWS], sum[FA_ROWS];
#if FA__ARCH != FA_CPU
    int high[FA_ROWS];
#endif
} FA__SM(_state);

enum { FA__SM(_ROWS) = FA_ROWS, FA__SM(_COLS) = FA_COLS };

/* Independent chains of a row's reduction: with few rows, a single chain waits for its own latency. */
enum { FA__SM(_CHAINS) = FA_ROWS >= FA__CHAINS || FA_COLS < FA__CHAINS ? 1 : FA__CHAINS / FA_ROWS };

#if FA__ARCH == 90 && !defined(FA_M) /* of no product, which has two rows and pairs of columns */
FA__FN int FA__SM(_AT)(int row, int col) { return row * FA_COLS + col; }
#else
FA__FN int FA__SM(_AT)(int row, int col) { return FA__AT(row, col, FA_ROWS, FA_COLS); }
#endif

#define FA__ANY_SCORE (-2147483647 - 1)

FA__FN void FA__SM(_init)(FA__SM(_state) * state) {
    FA__UNROLL
    for (int r = 0; r < FA_ROWS; r++) {
        state->max[r] = -INFINITY;
        state->sum[r] = 0.0f;
#if FA__ARCH != FA_CPU
        state->high[r] = FA__ANY_SCORE;
#endif
    }
}

/* Whether the scores are known to be of half types. */
#if defined(FA_DTYPE) && FA__IS_HALF
#define FA__SM_HALF 1
#else
#define FA__SM_HALF 0
#endif
/* How far the maximum may grow before the accumulators are rescaled, as a power of two (after FlashAttention-4). A
 * stale maximum cancels in the end, but for the roundings of exponents and of lse, which are as large as what
 * cancels: half types do not see them, and 2^8 keeps every term far from overflow; elsewhere they would be several
 * times those of an exact maximum. */
#define FA__STALE_LIMIT (FA__SM_HALF ? 8.0f : 2.0f)

/* What is added to a row's exponents, or if `wide` to its scores: finite even before any score is seen. */
FA__FN float FA__SM(_offset_as)(float max, float scale_log2, int wide) {
    return wide ? -fa__maxf(max, -3.40282347e38f) : -(fa__maxf(max, -1e30f) * scale_log2);
}
FA__FN float FA__SM(_offset)(float max, float scale_log2) { return FA__SM(_offset_as)(max, scale_log2, FA_WIDE); }

/* Sets the running maximum of a row, and the threshold that follows from it. */
FA__FN void FA__SM(_set_max)(FA__SM(_state) * state, int r, float max, float reach) {
    state->max[r] = max;
#if FA__ARCH != FA_CPU
    state->high[r] = max + reach >= 0.0f ? (int)fa__bits(max + reach) : FA__ANY_SCORE;
#else
    (void)reach;
#endif
}

/** Whether the tile may hold a score that raises a running maximum: the same answer for the whole warp. If not, neither
 *  NAME_raise() nor NAME_fade() is needed. */
FA__FN int FA__SM(_exceeds)(const FA__SM(_state) * state, const float *s) {
#if FA__ARCH == FA_CPU
    (void)state, (void)s;
    return 1;
#else
    /* Compared as integers, of which a GPU finds the largest of three at once: the bits of floats have the same order
     * as long as the limit is positive, and a limit that is not is below them all. No lane needs the scores of the
     * others that share its rows. */
    enum { FA__COUNT = FA__SM(_CHAINS) };
    int part[FA__COUNT * FA_ROWS], over = 0;
    FA__UNROLL
    for (int i = 0; i < FA__COUNT * FA_ROWS; i++) part[i] = FA__ANY_SCORE;
    FA__UNROLL
    for (int c = 0; c < FA_COLS; c += 2)
        FA__UNROLL
        for (int r = 0; r < FA_ROWS; r++) {
            int i = c / 2 % FA__COUNT * FA_ROWS + r, next = c + 1 < FA_COLS ? c + 1 : c;
            part[i] = fa__max3((int)fa__bits(s[FA__SM(_AT)(r, c)]), (int)fa__bits(s[FA__SM(_AT)(r, next)]), part[i]);
        }
    FA__UNROLL
    for (int i = 0; i < FA__COUNT * FA_ROWS; i++) over |= part[i] >= state->high[i % FA_ROWS];
    return FA__OP(any)(over);
#endif
}

/** NAME_raise() that looks at one of every `step` columns (a compile-time constant): enough if NAME_behind() is asked
 *  afterwards (GPU). */
FA__FN int FA__SM(_raise_by)(FA__SM(_state) * state, const float *s, float scale_log2, float *alpha, int step) {
    enum { FA__COUNT = FA__SM(_CHAINS) };
    float part[FA__COUNT * FA_ROWS], reach = FA__STALE_LIMIT * fa__reciprocal(scale_log2);
    int raised = 0;
    /* Several chains: the maximum and the sum are latency-bound otherwise. */
    FA__UNROLL
    for (int i = 0; i < FA__COUNT * FA_ROWS; i++) part[i] = state->max[i % FA_ROWS];
    FA__UNROLL
    for (int c = 0; c < FA_COLS; c += step)
        FA__UNROLL
        for (int r = 0; r < FA_ROWS; r++) {
            int i = c / step % FA__COUNT * FA_ROWS + r;
            part[i] = fa__maxf(s[FA__SM(_AT)(r, c)], part[i]);
        }
    FA__UNROLL
    for (int r = 0; r < FA_ROWS; r++) {
        float largest = part[r], old = state->max[r];
        FA__UNROLL
        for (int h = 1; h < FA__COUNT; h++) largest = fa__maxf(part[h * FA_ROWS + r], largest);
        largest = FA__OP(row_max)(largest, FA_OWNERS);
        int stale = largest <= old + reach; /* true when both are -inf: nothing changes */
        float max = stale ? old : largest, offset = FA__SM(_offset)(max, scale_log2);
        FA__SM(_set_max)(state, r, max, reach);
        alpha[r] = stale ? 0.0f : FA_WIDE ? (old + offset) * scale_log2 : old * scale_log2 + offset;
        raised |= !stale;
    }
    return FA__OP(any)(raised);
}

/** Second part of NAME_update(), unless NAME_exceeds() has said no: raises each running maximum that the tile exceeds
 *  by more than a little. Returns whether any was raised, on a GPU the same for the whole warp; alpha[] becomes the
 *  base-2 logarithms of the factors that NAME_update() gives. */
FA__FN int FA__SM(_raise)(FA__SM(_state) * state, const float *s, float scale_log2, float *alpha) {
    return FA__SM(_raise_by)(state, s, scale_log2, alpha, 1);
}

#if FA__ARCH != FA_CPU
/** Used instead when weights are computed first and NAME_behind() is asked afterwards: sets the running maximum of rows
 *  that have seen no score yet. */
FA__FN void FA__SM(_begin)(FA__SM(_state) * state, const float *s, float scale_log2) {
    FA__SM(_state) raised = *state;
    float alpha[FA_ROWS];
    int none = 0;
    FA__UNROLL
    for (int r = 0; r < FA_ROWS; r++) none |= state->max[r] == -INFINITY;
    if (!FA__OP(any)(none)) return;
    FA__SM(_raise)(&raised, s, scale_log2, alpha);
    FA__UNROLL
    for (int r = 0; r < FA_ROWS; r++) {
        int first = state->max[r] == -INFINITY;
        state->high[r] = first ? raised.high[r] : state->high[r];
        state->max[r] = first ? raised.max[r] : state->max[r];
    }
}
#endif

/** Third part, skipped for a tile that raises no maximum: turns the logarithms into factors and applies them to the
 *  sums. */
FA__FN void FA__SM(_fade)(FA__SM(_state) * state, float *alpha) {
#if FA__ARCH == FA_CPU
    FA__CPU_OP(exp2_rows)(alpha, FA_ROWS);
#else
    FA__UNROLL
    for (int r = 0; r < FA_ROWS; r++) alpha[r] = fa__exp2(alpha[r]);
#endif
    FA__UNROLL
    for (int r = 0; r < FA_ROWS; r++) state->sum[r] *= alpha[r];
}

#if FA__ARCH != FA_CPU
/* The weight of a score in a row with this offset (NAME_offset_as()). */
FA__FN float FA__SM(_weight)(float s, float offset, float scale_log2, int wide) {
    return fa__exp2(wide ? (s + offset) * scale_log2 : FA__OP(fma)(s, scale_log2, offset));
}
#endif

/* NAME_weigh(); `wide` is a compile-time constant. */
FA__FN void FA__SM(_weigh_as)(const FA__SM(_state) * state, const float *s, float scale_log2, float *weights, float *sum, int wide) {
    enum { FA__COUNT = FA__SM(_CHAINS) };
    float part[FA__COUNT * FA_ROWS], offset[FA_ROWS];
    FA__UNROLL
    for (int r = 0; r < FA_ROWS; r++) offset[r] = FA__SM(_offset_as)(state->max[r], scale_log2, wide);
    FA__UNROLL
    for (int i = 0; i < FA__COUNT * FA_ROWS; i++) part[i] = 0.0f;
    FA__UNROLL
    for (int c = 0; c < FA_COLS; c++) {
#if FA__ARCH == FA_CPU
        float *column = weights + FA__SM(_AT)(0, c);
        if (weights != s) memcpy(column, s + FA__SM(_AT)(0, c), FA_ROWS * sizeof *column);
        FA__CPU_OP(weights)(column, part, scale_log2, offset, FA_ROWS, wide, FA__SM_HALF);
#else
        FA__UNROLL
        for (int r = 0; r < FA_ROWS; r++) {
            int at = FA__SM(_AT)(r, c), i = c % FA__COUNT * FA_ROWS + r;
            weights[at] = FA__SM(_weight)(s[at], offset[r], scale_log2, wide);
            part[i] += weights[at];
        }
#endif
    }
    FA__UNROLL
    for (int r = 0; r < FA_ROWS; r++) {
        sum[r] = part[r];
        FA__UNROLL
        for (int h = 1; h < FA__COUNT; h++) sum[r] += part[h * FA_ROWS + r];
    }
}

/** Last part: weights[], which may be s[], receives the weights, and sum[] the owner's sums of them, still to be
 *  added to the state's. */
FA__FN void FA__SM(_weigh)(const FA__SM(_state) * state, const float *s, float scale_log2, float *weights, float *sum) {
    FA__SM(_weigh_as)(state, s, scale_log2, weights, sum, FA_WIDE);
}

#if FA__ARCH != FA_CPU /* whose exponential takes any number; the CPU's only those below 128 */
/** The same without FA_WIDE, for callers that ask NAME_far() afterwards and, if it says yes, call NAME_weigh(). */
FA__FN void FA__SM(_weigh_near)(const FA__SM(_state) * state, const float *s, float scale_log2, float *weights, float *sum) {
    FA__SM(_weigh_as)(state, s, scale_log2, weights, sum, 0);
}

/** Whether a running maximum is so large in magnitude that NAME_weigh_near() may have lost accuracy; on a GPU the same
 *  for the whole warp. `scale`: that of the scores, 1 if they are in natural units. `none`: whether a row without a
 *  maximum yet counts, too, since its scores below -1e30 are lost. */
FA__FN int FA__SM(_far)(const FA__SM(_state) * state, float scale, int none) {
    int far = 0;
    FA__UNROLL
    for (int r = 0; r < FA_ROWS; r++) {
        float size = fa__maxf(state->max[r], -state->max[r]);
        far |= size * scale > 65536.0f && (none || size < INFINITY);
    }
    return FA_WIDE && FA__OP(any)(far);
}

/* NAME_weigh_columns(); `wide` is a compile-time constant. */
FA__FN void FA__SM(_weigh_columns_as)(const FA__SM(_state) * state, const float *s, float scale_log2, float *weights, float *sum,
                                      int first, int last, int wide) {
    FA__UNROLL
    for (int c = first; c < last; c++) FA__UNROLL
    for (int r = 0; r < FA_ROWS; r++) {
        float offset = FA__SM(_offset_as)(state->max[r], scale_log2, wide);
        int at = FA__SM(_AT)(r, c);
        weights[at] = FA__SM(_weight)(s[at], offset, scale_log2, wide);
        sum[r] += weights[at];
    }
}

/** NAME_weigh() of the columns from `first` up to `last`, whose sums are added to sum[]: for callers that interleave
 *  it with other work. */
FA__FN void FA__SM(_weigh_columns)(const FA__SM(_state) * state, const float *s, float scale_log2, float *weights, float *sum,
                                   int first, int last) {
    FA__SM(_weigh_columns_as)(state, s, scale_log2, weights, sum, first, last, FA_WIDE);
}

/** The same for NAME_weigh_near(). */
FA__FN void FA__SM(_weigh_columns_near)(const FA__SM(_state) * state, const float *s, float scale_log2, float *weights,
                                        float *sum, int first, int last) {
    FA__SM(_weigh_columns_as)(state, s, scale_log2, weights, sum, first, last, 0);
}

/** For callers that compute weights first: whether the sums of a tile show that its scores are far above the running
 *  maximum, or are the first seen; the same for the whole warp. If so, NAME_raise(), NAME_fade() and once more
 *  NAME_weigh() must follow. If not, the weights fit into FA_F16. */
FA__FN int FA__SM(_behind)(const float *sum) {
    int behind = 0;
    FA__UNROLL
    for (int r = 0; r < FA_ROWS; r++) behind |= !(sum[r] < 32768.0f);
    return FA__OP(any)(behind);
}
#endif

/**
 * Takes a tile of scores into the state. s[] becomes the weights exp2((s - max) * scale_log2), and alpha[] the
 * factors by which results accumulated with earlier weights must be multiplied. Returns whether any factor differs
 * from 1. scale_log2 is positive: log2(e) for scores in natural units. Scores may be -inf, even a whole row of them.
 * A schedule that interleaves other work calls the parts: NAME_exceeds(); if it says yes, NAME_raise(); if that says yes,
 * NAME_fade(); then NAME_weigh(). Or, on a GPU, it computes weights first, and asks NAME_behind().
 */
FA__FN int FA__SM(_update)(FA__SM(_state) * state, float *s, float scale_log2, float *alpha) {
    float sum[FA_ROWS];
    int raised = (FA__EAGER || FA__SM(_exceeds)(state, s)) && FA__SM(_raise)(state, s, scale_log2, alpha);
    if (FA__EAGER || raised) FA__SM(_fade)(state, alpha);
    FA__UNROLL
    for (int r = 0; r < FA_ROWS; r++) alpha[r] = FA__EAGER || raised ? alpha[r] : 1.0f;
    FA__SM(_weigh)(state, s, scale_log2, s, sum);
    FA__UNROLL
    for (int r = 0; r < FA_ROWS; r++) state->sum[r] += sum[r];
    return raised;
}

/** Merges two states of the same rows over different columns into `state`. weight[] and other_weight[] are the factors
 *  for the results accumulated with each. */
FA__FN void FA__SM(_merge)(FA__SM(_state) * state, const FA__SM(_state) * other, float scale_log2, float *weight,
                           float *other_weight) {
    FA__UNROLL
    for (int r = 0; r < FA_ROWS; r++) {
        float largest = fa__maxf(other->max[r], state->max[r]);
        float base = largest == -INFINITY ? 0.0f : largest;
        weight[r] = fa__exp2((state->max[r] - base) * scale_log2);
        other_weight[r] = fa__exp2((other->max[r] - base) * scale_log2);
        state->sum[r] = state->sum[r] * weight[r] + other->sum[r] * other_weight[r];
        FA__SM(_set_max)(state, r, largest, FA__STALE_LIMIT * fa__reciprocal(scale_log2));
    }
}

/* Once per row: the accurate logarithm, unless it is of half types. */
#if FA__SM_HALF
#define FA__SM_LOG fa__log
#else
#define FA__SM_LOG fa__log_accurate
#endif
/** Completes the sums across the owners of a row. inverse[] is 1 / sum, and 0 for a row with nothing visible;
 *  lse[] is the natural log of the sum of exp(score * scale), and -inf for such a row. scale = scale_log2 * ln 2. */
FA__FN void FA__SM(_finish)(const FA__SM(_state) * state, float scale, float *inverse, float *lse) {
    FA__UNROLL
    for (int r = 0; r < FA_ROWS; r++) {
        float sum = FA__OP(row_sum)(state->sum[r], FA_OWNERS);
        inverse[r] = sum == 0.0f ? 0.0f : fa__reciprocal(sum);
        lse[r] = sum == 0.0f ? -INFINITY : state->max[r] * scale + FA__SM_LOG(sum);
    }
}

#undef FA__STALE_LIMIT
#undef FA__ANY_SCORE
#undef FA__SM_LOG
#undef FA__SM_HALF
#undef FA__SM
#undef FA_M
#undef FA_N
#undef FA_ROWS
#undef FA_COLS
#undef FA_OWNERS
#undef FA__EAGER
#undef FA_WIDE
#include <fa/arch/end.h>
