/* norm_sweep.h: the backward of norm_rows.h on a GPU. Threads keep the weights and the sums of their columns from
 * row to row, with the next rows in flight into shared memory. Instructions are the limit: there are some 40 issue
 * slots for each element. */
/* Whether there are registers to keep a row between the two passes over it. */
enum { FA__LOOP(_HOLDS) = FA__PIECES * FA__LOOP(_row_LENGTH) <= 16 };

/* A row of a team. */
typedef struct FA__LOOP(_team_row) {
    int64_t row;
    int cols; /* 0: there is no such row */
} FA__LOOP(_team_row);
FA__FN int FA__LOOP(_column)(const fa_team *team, int piece) { return (piece * team->threads + team->thread) * FA__LOOP(_row_LENGTH); }

/* A row of a matrix. */
typedef struct FA__LOOP(_line) {
    char *first; /* of its elements */
    int cols;
} FA__LOOP(_line);
FA__FN FA__LOOP(_line) FA__LOOP(_line_of)(const fa_matrix *m, int64_t row, int cols) {
    FA__LOOP(_line) s;
    s.first = (char *)fa__address(m, row, 0, sizeof(FA__ELEMENT));
    s.cols = cols;
    return s;
}

/* Slots of a tensor: for each piece one per thread of a warp, piece by piece, so that a thread's slots are known
 * distances apart. A thread reads only what it has copied itself: waiting for its own copies is enough, without a
 * barrier. */
FA__FN uint4 *FA__LOOP(_slot)(unsigned char *slot0, int piece) {
    return (uint4 *)slot0 + ((int)threadIdx.x & ~31) * FA__PIECES + ((int)threadIdx.x & 31) + piece * 32;
}
/* Whether rows may also be of words. (Layernorm's backward of halves would be 3 to 5 % slower for the question.) */
enum { FA__LOOP(_NARROWS) = FA__PIECES == FA__SWEEP_FAST && FA__SUMS == 1 };
/* Starts copying a row into its slots; elements outside the row become 0. By words, where that is all that rows are
 * multiples of. */
FA__FN void FA__LOOP(_bring)(unsigned char *slot0, const FA__PARAMS *p, const FA__LOOP(_line) * from, const fa_team *team) {
    const int bytes = from->cols * (int)sizeof(FA__ELEMENT);
    FA__UNROLL
    for (int piece = 0; piece < FA__PIECES; piece++) {
        const int at = (piece * team->threads + team->thread) * 16, left = bytes - at;
        if (FA__LOOP(_NARROWS) && p->rows.unit < 16) {
            FA__ROLL
            for (int i = 0; i < 16; i += 4)
                fa_sm80_copy4(fa_sm80_shared_address(FA__LOOP(_slot)(slot0, piece)) + (uint32_t)i, from->first + (i < left ? at + i : 0), i < left);
            continue;
        }
        fa_sm80_copy16_of(fa_sm80_shared_address(FA__LOOP(_slot)(slot0, piece)), from->first + (left > 0 ? at : 0), left > 0 ? 16 : 0, p->rows.policy);
    }
}
/* A piece of what is there. */
FA__FN void FA__LOOP(_slot_load)(float *x, unsigned char *slot0, int piece) {
    const uint4 word = *FA__LOOP(_slot)(slot0, piece);
    FA__LOOP(_row__unpack)(x, (const uint32_t *)&word);
}
/* Writes the columns from `col` on. */
FA__FN void FA__LOOP(_put)(const FA__LOOP(_line) * to, const FA__PARAMS *p, int col, const float *x) {
    uint32_t raw[4];
    FA__LOOP(_row__pack)(raw, x);
    if (FA__LOOP(_NARROWS) && p->rows.unit < 16) {
        FA__UNROLL
        for (int i = 0; i < 4; i++)
            if (col + i * FA__LOOP(_row_LENGTH) / 4 < to->cols) fa_sm80_store(to->first + col * (int)sizeof(FA__ELEMENT) + 4 * i, raw + i, 1);
        return;
    }
    if (col < to->cols) fa_sm80_store16(to->first + col * (int)sizeof(FA__ELEMENT), raw);
}

/* What is known of a row. */
typedef struct FA__LOOP(_known) {
    float mean, rstd;
    float w, wn; /* the means of w and of w n */
} FA__LOOP(_known);

/* The statistics of a row that is there. */
FA__FN void FA__LOOP(_peek)(FA__LOOP(_known) * k, const FA__PARAMS *p, int64_t row, int there) {
    k->mean = k->rstd = 0.0f;
    if (!there) return;
    k->mean = FA__CENTERED ? p->mean[row] : 0.0f;
    k->rstd = p->rstd[row];
}

/* A thread's weights of a piece, in slots like those. */
FA__FN float4 *FA__LOOP(_weight_slot)(float4 *kept, int piece) {
    enum { FA__FOURS = FA__LOOP(_row_LENGTH) / 4 };
    return kept + ((int)threadIdx.x & ~31) * FA__PIECES * FA__FOURS + ((int)threadIdx.x & 31) + piece * 32 * FA__FOURS;
}
FA__FN void FA__LOOP(_kept)(float *w, float4 *kept, int piece) {
    FA__UNROLL
    for (int i = 0; i < FA__LOOP(_row_LENGTH); i += 4) {
        const float4 four = FA__LOOP(_weight_slot)(kept, piece)[i / 4 * 32];
        w[i] = four.x, w[i + 1] = four.y, w[i + 2] = four.z, w[i + 3] = four.w;
    }
}

/* Adds a row, which has arrived in its slots, to the sums of columns, and finds its means of w and w n. */
FA__FN void FA__LOOP(_sum_up)(FA__LOOP(_known) * k, const FA__PARAMS *p, unsigned char *slot0, fa_team *team,
                              FA__LOOP(_reduce_shared) * shared, float4 *kept, float *sums, float *n_kept,
                              float *w_kept) {
    enum { FA__LENGTH = FA__LOOP(_row_LENGTH) };
    float x[FA__LENGTH], d[FA__LENGTH], gamma[FA__LENGTH], w_sum = 0.0f, wn_sum = 0.0f;
    FA__UNROLL
    for (int piece = 0; piece < FA__PIECES; piece++) {
        FA__LOOP(_slot_load)(x, slot0, piece);
        FA__LOOP(_slot_load)(d, slot0 + p->rows.slot_bytes, piece);
        FA__UNROLL
        for (int i = 0; i < FA__LENGTH; i++) { /* the weights come later: now there are no registers for them */
            float *sum = sums + piece * FA__LENGTH + i;
            x[i] = FA__CENTERED ? (x[i] - k->mean) * k->rstd : x[i] * k->rstd;
            sum[0] = fmaf(d[i], x[i], sum[0]);
            if (FA__CENTERED) sum[FA__PIECES * FA__LENGTH] += d[i];
        }
        FA__LOOP(_kept)(gamma, kept, piece);
        FA__UNROLL
        for (int i = 0; i < FA__LENGTH; i++) {
            d[i] *= gamma[i];
            if (FA__LOOP(_HOLDS)) n_kept[piece * FA__LENGTH + i] = x[i], w_kept[piece * FA__LENGTH + i] = d[i];
        }
        if (FA__CENTERED) w_sum += FA__LOOP(_reduce_sum_of)(d, FA__LENGTH);
        /* Outside the row, where elements are 0, |mean| / sigma may be infinite though no n is, and d is 0: that is
         * no NaN of the row's. */
        const float wn = FA__LOOP(_reduce_dot_of)(d, x, FA__LENGTH);
        wn_sum += FA__CENTERED && wn != wn ? 0.0f : wn;
    }
    k->w = w_sum, k->wn = wn_sum;
    if (team->threads <= 32) {
        if (FA__CENTERED) k->w = FA__LOOP(_reduce_lanes_sum)(k->w, team);
        k->wn = FA__LOOP(_reduce_lanes_sum)(k->wn, team);
    } else {
        FA__LOOP(_reduce_sum2)(&k->w, &k->wn, team, shared);
    }
    k->w *= p->inverse_cols, k->wn *= p->inverse_cols;
}

/* Writes the gradients of a row. */
FA__FN void FA__LOOP(_write)(const FA__LOOP(_known) * k, const FA__PARAMS *p, const FA__LOOP(_team_row) * own, unsigned char *slot0,
                             const fa_team *team, float4 *kept, const float *n_kept, const float *w_kept) {
    enum { FA__LENGTH = FA__LOOP(_row_LENGTH) };
    const float by = -k->wn * k->rstd * k->rstd, base = -k->w * k->rstd;
    const FA__LOOP(_line) d_x = FA__LOOP(_line_of)(&p->d_x, own->row, own->cols);
    const int drops = p->dropout.threshold > 0 && p->d_x.data;
    float x[FA__LENGTH], d[FA__LENGTH], gamma[FA__LENGTH];
#define FA__GRADIENT(held)                                                                                                                                       \
    if (held) {                                                                                                                                                  \
        FA__UNROLL                                                                                                                                               \
        for (int i = 0; i < FA__LENGTH; i++) x[i] = fmaf(n_kept[piece * FA__LENGTH + i], -k->wn * k->rstd, fmaf(w_kept[piece * FA__LENGTH + i], k->rstd, base)); \
    } else {                                                                                                                                                     \
        FA__LOOP(_slot_load)(x, slot0, piece);                                                                                                                   \
        FA__LOOP(_slot_load)(d, slot0 + p->rows.slot_bytes, piece);                                                                                              \
        FA__LOOP(_kept)(gamma, kept, piece);                                                                                                                     \
        FA__UNROLL                                                                                                                                               \
        for (int i = 0; i < FA__LENGTH; i++) x[i] = fmaf(d[i] * gamma[i], k->rstd, FA__CENTERED ? fmaf(x[i] - k->mean, by, base) : x[i] * by);                   \
    }                                                                                                                                                            \
    if (p->d_sum.data) {                                                                                                                                         \
        FA__LOOP(_slot_load)(d, slot0 + 2 * p->rows.slot_bytes, piece);                                                                                          \
        FA__UNROLL                                                                                                                                               \
        for (int i = 0; i < FA__LENGTH; i++) x[i] += d[i];                                                                                                       \
    }
    if (FA__PIECES == FA__SWEEP_FAST || (!p->d_residual.data && !drops)) { /* without branches, so that the compiler can interleave pieces */
        if (!p->d_x.data) return;
        enum { FA__TOGETHER = FA__LOOP(_HOLDS) ? FA__PIECES : 2 };
        _Pragma("unroll FA__TOGETHER") for (int piece = 0; piece < FA__PIECES; piece++) {
            FA__GRADIENT(FA__LOOP(_HOLDS))
            FA__LOOP(_put)(&d_x, p, FA__LOOP(_column)(team, piece), x);
        }
        return;
    }
    const FA__LOOP(_line) d_residual = FA__LOOP(_line_of)(&p->d_residual, own->row, own->cols);
    const FA__LOOP(_row_view) columns = FA__LOOP(_row_at)(NULL, own->cols, team);
    const FA__LOOP(_row_drawn) drawn = FA__LOOP(_row_draw)(&columns, (uint64_t)(own->row * p->rows.cols), &p->dropout);
    FA__ROLL
    for (int piece = 0; piece < FA__PIECES; piece++) {
        FA__GRADIENT(0)
        if (p->d_residual.data) FA__LOOP(_put)(&d_residual, p, FA__LOOP(_column)(team, piece), x);
        if (drops) FA__LOOP(_row_dropout)(x, &columns, piece, &drawn);
        if (p->d_x.data) FA__LOOP(_put)(&d_x, p, FA__LOOP(_column)(team, piece), x);
    }
#undef FA__GRADIENT
}
