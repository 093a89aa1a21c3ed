/* attention_columns.h: hooks that add a number to each score, which is the product of eight more columns of Q and of K: instead of
 * work on every score this costs a sixteenth of both products at head dimension 128, and half of that where a step may have eight
 * columns.
 * FA__COLUMNS says which: FA__NEED_ALIBI or FA__NEED_KEY_BIAS (fa/score.h). (That a bias of low rank can be left to the product is in FlashBias,
 * Wu et al., arXiv 2505.12044.)
 *
 * A float is the sum of three bf16 numbers, its parts, so that nothing of it is lost but what the accumulator rounds. It is added
 * before scores are multiplied by the scale, so it is divided by the scale first. Q's columns hold the following, or, where the
 * eight columns are multiplied twice (NAME_start_eight() of arch/sm90/mma.h), half of it:
 *
 *     fa_key_bias    of Q    1 1 1 0 0 0 0 0                  of K    the bias, in three parts, 0 0 0 0 0
 *     fa_alibi       of Q    slope and c, in three parts each, 0 0    of K    j j j 1 1 1 0 0
 *
 * ALiBi on one side of the diagonal is a line, slope * (key - zero), zero = query + seqlen_k - seqlen_q: in a tile whose first key is
 * key0 it is slope * j + c, where j = key - key0 and c = slope * (key0 - zero), rounded. Its rows of K are the same for all tiles. */

#if FA__ARCH == 90
#define FA__SHARE_OF_TWO 0.5f
#define FA__BIAS_LOADERS 32 /* a warp's lanes */
#else
#define FA__SHARE_OF_TWO 1.0f
#define FA__BIAS_LOADERS (FA_WARPS * 32) /* all threads */
#endif

/* What addends are divided by. A negative scale changes the sign of the sum of all products on sm_90a, and elsewhere
 * that of Q. */
FA__FN float FA__LOOP(_column_scale)(const FA__PARAMS *p) { return FA__ARCH == 90 ? p->scale : fabsf(p->scale); }

FA__FN float FA__LOOP(_first_part)(float x) { return fa__from_bits(fa__bits(x) & 0xFFFF0000u); }
/* The second and third part; only the upper 16 bits of the second count. */
FA__FN void FA__LOOP(_other_parts)(float *second, float *third, float x) {
    *second = x - FA__LOOP(_first_part)(x);
    *third = *second - FA__LOOP(_first_part)(*second);
}
FA__FN uint32_t FA__LOOP(_two_parts)(float low, float high) { return fa__bits(low) >> 16 | (fa__bits(high) & 0xFFFF0000u); }

#if FA__COLUMNS == FA__NEED_ALIBI
#define FA__STEEP 1e5f /* steeper slopes leave a row only its nearest key, as this one does, but their products would leave rounding errors */
/* The slope up to the diagonal, divided by the scale. */
FA__FN float FA__LOOP(_slope_of)(const FA__PARAMS *p, int head) {
    float slope = p->args.alibi_slopes[head];
    if (fabsf(slope) > FA__STEEP && fabsf(slope) < INFINITY) slope = copysignf(FA__STEEP, slope);
    return slope / FA__LOOP(_column_scale)(p);
}

#if FA__ARCH == 90
/* What a thread knows of a block's columns of Q: the slope up to the diagonal; the key where the line of its first row
 * is 0; the first key that is beyond the diagonal for all queries; and the words that are the same in all tiles before
 * that. Each of the lanes that share a row has two columns. */
typedef struct FA__LOOP(_columns) {
    float slope;
    int zero, beyond;
    uint32_t constant;
} FA__LOOP(_columns);

FA__FN FA__LOOP(_columns) FA__LOOP(_columns_of)(const FA__PARAMS *p, fa_box box, int thread) {
    const int lane = thread % 4, shift = fa__shift(&p->args);
    FA__LOOP(_columns) of;
    of.slope = FA__LOOP(_slope_of)(p, box.head);
    of.zero = box.queries.begin + FA__LOOP(_qk_row)(thread, 0) + shift;
    of.beyond = box.queries.end - 1 + shift;
    const float share = FA__SHARE_OF_TWO * of.slope;
    float second, third;
    FA__LOOP(_other_parts)(&second, &third, share);
    of.constant = lane == 0 ? FA__LOOP(_two_parts)(share, second) : lane == 1 ? FA__LOOP(_two_parts)(third, 0.0f) : 0;
    return of;
}

/* The thread's part of Q's columns, for the tile from key0 on. In a tile with keys on both sides of the diagonal the
 * line goes on straight. */
FA__FN void FA__LOOP(_columns_at)(uint32_t *columns, const FA__LOOP(_columns) * of, int key0, int thread) {
    const int lane = thread % 4, up = key0 < of->beyond;
    const uint32_t constant = of->constant ^ (up || lane > 1 ? 0 : lane ? 0x8000u : 0x80008000u);
    const uint32_t own = lane == 0 || lane == 3 ? 0 : lane == 1 ? 0xFFFF0000u : 0xFFFFFFFFu;
    const float share = up ? FA__SHARE_OF_TWO * of->slope : -FA__SHARE_OF_TWO * of->slope, without = lane == 2 ? -1.0f : 0.0f;
    float c = share * (float)(key0 - of->zero);
    FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++, c = FA__OP(fma)(share, -8.0f, c)) {
        const float x = FA__OP(fma)(FA__LOOP(_first_part)(c), without, c); /* lane 1 has the first part of c, lane 2 the others */
        columns[r] = (FA__LOOP(_two_parts)(x - FA__LOOP(_first_part)(x), x) & own) | constant;
    }
}
#else
/* Q's columns of a row whose line is c at a tile's first key. */
FA__FN uint4 FA__LOOP(_columns_of_row)(float slope, float c) {
    float second, third, second_of_c, third_of_c;
    FA__LOOP(_other_parts)(&second, &third, slope);
    FA__LOOP(_other_parts)(&second_of_c, &third_of_c, c);
    return make_uint4(FA__LOOP(_two_parts)(slope, second), FA__LOOP(_two_parts)(third, c), FA__LOOP(_two_parts)(second_of_c, third_of_c), 0);
}
#endif

/* Writes K's columns, by all threads of the block. */
FA__FN void FA__LOOP(_constant_rows)(uint4 *rows) {
    for (int j = (int)threadIdx.x; j < FA_BLOCK_N; j += (int)blockDim.x) {
        const float x = (float)j;
        rows[j] = make_uint4(FA__LOOP(_two_parts)(x, x), FA__LOOP(_two_parts)(x, 1.0f), FA__LOOP(_two_parts)(1.0f, 1.0f), 0);
    }
}

/* Whether a tile has keys on both sides of the diagonal of some of the queries. */
FA__FN int FA__LOOP(_crosses)(const FA__PARAMS *p, fa_range queries, int key0) {
    const int shift = fa__shift(&p->args);
    return key0 < queries.end - 1 + shift && key0 + FA_BLOCK_N - 1 > queries.begin + shift;
}

/* Bends the lines of such a tile where they cross the diagonal, in the columns from key0 on; `zero`: the key where
 * the line of a thread's first row is 0. */
FA__FN void FA__LOOP(_bend)(float *s, float slope, int zero, int key0, int thread) {
    const float first = (float)(key0 + FA__LOOP(_qk_col)(thread, 0) - zero);
    FA__UNROLL
    for (int c = 0; c < FA__LOOP(_qk_COLS); c++) FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
        float *x = &s[FA__LOOP(_qk_AT)(r, c)];
        *x = FA__OP(fma)(fa__maxf(first + (float)(FA__LOOP(_qk_col_offset)(c) - 8 * r), 0.0f), -2.0f * slope, *x);
    }
}
#undef FA__STEEP
#else
#if FA__ARCH == 90
/* Writes Q's columns, of 64 rows, by all threads of the block. */
FA__FN void FA__LOOP(_constant_rows)(uint4 *rows) {
    for (int i = (int)threadIdx.x; i < 64; i += (int)blockDim.x)
        rows[i] = make_uint4(FA__LOOP(_two_parts)(FA__SHARE_OF_TWO, FA__SHARE_OF_TWO), FA__LOOP(_two_parts)(FA__SHARE_OF_TWO, 0.0f), 0, 0);
}
#else
/* A thread's part of them, the same in all rows. */
FA__FN uint32_t FA__LOOP(_column_of_ones)(int thread) {
    const int lane = thread % 4;
    return lane == 0 ? FA__LOOP(_two_parts)(FA__SHARE_OF_TWO, FA__SHARE_OF_TWO) : lane == 1 ? FA__LOOP(_two_parts)(FA__SHARE_OF_TWO, 0.0f) : 0;
}
#endif

enum { FA__LOOP(_biases) = (FA_BLOCK_N + FA__BIAS_LOADERS - 1) / FA__BIAS_LOADERS }; /* keys of a tile that a loader has */

/* The biases of a head. */
FA__FN const float *FA__LOOP(_row_of_biases)(const FA__PARAMS *p, int batch, int head) {
    return p->args.key_bias + batch * p->args.key_bias_stride_batch + head * p->args.key_bias_stride_head;
}
/* Starts loading those of a tile, by all loaders. */
FA__FN void FA__LOOP(_ask_for_biases)(float *biases, const FA__PARAMS *p, const float *row, int key0, int loader) {
    FA__UNROLL
    for (int i = 0; i < FA__LOOP(_biases); i++) {
        const int key = key0 + i * FA__BIAS_LOADERS + loader;
        biases[i] = i * FA__BIAS_LOADERS + loader < FA_BLOCK_N && key < p->args.seqlen_k ? row[key] : 0.0f;
    }
}

/* Writes K's columns of a tile: the biases divided by the scale, of which `by` is nearly the reciprocal. `plain`, a
 * compile-time constant: no quotient overflows. An infinite bias has no second part; a finite one whose quotient
 * would overflow stays finite; NaN is 0x7FFFFFFF, whose first part is NaN, too. */
FA__FN void FA__LOOP(_put_biases_as)(uint4 *rows, const float *biases, float scale, float by, int plain, int loader) {
    FA__UNROLL
    for (int i = 0; i < FA__LOOP(_biases); i++) {
        const float bias = biases[i], product = bias * by, off = FA__OP(fma)(product, -scale, bias);
        const int finite = plain || fabsf(bias) < INFINITY;
        const float x = plain || fabsf(product) < 3e38f ? FA__OP(fma)(off, by, product) : finite ? copysignf(3e38f, product) : product;
        const float rest = finite ? x - FA__LOOP(_first_part)(x) : 0.0f, last = rest - FA__LOOP(_first_part)(rest);
        if (i * FA__BIAS_LOADERS + loader < FA_BLOCK_N)
            rows[i * FA__BIAS_LOADERS + loader] = make_uint4(FA__LOOP(_two_parts)(x, rest), FA__LOOP(_two_parts)(last, 0.0f), 0, 0);
    }
}
/* Mostly none does: asked once for all lanes of a warp (1 to 5% faster). */
FA__FN void FA__LOOP(_put_biases)(uint4 *rows, const float *biases, float scale, float by, int loader) {
    int plain = 1;
    FA__UNROLL
    for (int i = 0; i < FA__LOOP(_biases); i++) plain &= fabsf(biases[i] * by) < 3e38f;
    if (FA__OP(any)(!plain)) FA__LOOP(_put_biases_as)(rows, biases, scale, by, 0, loader);
    else FA__LOOP(_put_biases_as)(rows, biases, scale, by, 1, loader);
}
#endif
#undef FA__SHARE_OF_TWO
#undef FA__BIAS_LOADERS
