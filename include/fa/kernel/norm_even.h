/* norm_even.h: the forward of norm_rows.h for rows of whole vectors (FA_WHOLE 2), which threads hold in registers (GPU).
 *
 * Each warp finds its mean and the squares about that, and one barrier later all warps know those of the row. Where rows are many,
 * instructions are the limit: there are 30 issue slots for each element that is read and written, and 60 with a residual and a sum. Where
 * they are few, latency is: that of memory, for the row and its weights, should be exposed only once.
 */

FA__FN FA__LOOP(_row_view) FA__LOOP(_open)(const fa_matrix *m, const FA__PARAMS *p, int64_t row, const FA__LOOP(_row_view) * like) {
    return FA__LOOP(_row_like)(fa__address(m, row < p->rows.rows ? row : 0, 0, sizeof(FA__ELEMENT)), like);
}

/* What is read of a row. */
typedef struct FA__LOOP(_source) {
    FA__LOOP(_row_view) x, residual;
    FA__LOOP(_row_held) held, held_residual;
    FA__LOOP(_row_drawn) drawn;
} FA__LOOP(_source);

/* Elements that the caller's warp has, or its team if that is part of a warp. */
FA__FN float FA__LOOP(_numbers)(const FA__PARAMS *p, const fa_team *team) {
    int more = p->rows.rest - (fa_sm80_opaque(team->thread) & ~31);
    more = more < 0 ? 0 : more > 32 ? 32 : more;
    return team->threads <= 32 ? (float)p->rows.cols : (float)((32 * p->rows.rounds + more) * FA__LOOP(_row_VECTOR));
}

/* The weights of a piece. */
FA__FN void FA__LOOP(_weights)(float *gamma, float *beta, const FA__PARAMS *p, const FA__LOOP(_row_view) * like, int piece) {
    FA__UNROLL
    for (int part = 0; part < FA__LOOP(_row_PARTS); part++) {
        FA__LOOP(_row_weights)(gamma + part * FA__LOOP(_row_PART), like, piece, part, p->gamma, FA_WEIGHT_DTYPE, 1.0f);
        FA__LOOP(_row_weights)(beta + part * FA__LOOP(_row_PART), like, piece, part, p->beta, FA_WEIGHT_DTYPE, 0.0f);
    }
}

/* Prefetches the weights of all columns into the L2 cache, by a block. */
FA__FN void FA__LOOP(_ask_for_weights)(const FA__PARAMS *p) {
    const int64_t bytes = p->rows.cols * fa_dtype_bytes(FA_WEIGHT_DTYPE);
    FA__ROLL
    for (int64_t at = (int64_t)threadIdx.x * 128; at < bytes; at += (int64_t)blockDim.x * 128) {
        if (p->gamma) fa_sm80_prefetch((const char *)p->gamma + at);
        if (p->beta) fa_sm80_prefetch((const char *)p->beta + at);
    }
}

/* `plain`: known to have neither dropout, nor residual, nor sum. Then there are FA__ABREAST rows, `row` and those as
 * many further on as a block has teams, whose rows lie side by side: a thread reads its weights once for all of
 * them. */
enum { FA__LOOP(_ABREAST) = FA__ABREAST };
FA__FN void FA__LOOP(_normalize_even)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place, const int plain) {
    /* Words are kept where there are no registers for floats, and where floats are made only twice. */
    enum { FA__HELD_PIECES = FA__LOOP(_row_KEPT), FA__LENGTH = FA__LOOP(_row_LENGTH), FA__FLOATS = FA__HELD_PIECES * FA__LENGTH };
    const int words = FA__FLOATS > 32 || (plain && !FA__CENTERED), rows = plain ? FA__ABREAST : 1;
    const int apart = p->rows.teams, lanes_only = FA__LOOP(_reduce_WITHIN); /* no team is larger than a warp */
    /* Plain rows of several pieces are done in two halves, or piece by piece, by code that is there once: what
     * follows takes the place of the first. */
    const int turns = !plain || FA__HELD_PIECES == 1 ? 1 : FA__HELD_PIECES % 2 ? FA__HELD_PIECES : 2, together = FA__HELD_PIECES / turns;
    /* A warp leaves out the last quarter of its pieces if it has nothing there (of 768 and 1,280 columns: 1.03 and
     * 1.1 times as fast in layernorm). With several rows at a time rows that fill these pieces would be 0.83 times
     * as fast for it. */
    enum { FA__SURE = FA__ABREAST > 1 ? FA__HELD_PIECES : FA__HELD_PIECES - FA__HELD_PIECES / 4 };
    enum { FA__VECTORS_SURE = FA__SURE * FA__LOOP(_row_VECTORS) };
    const int all = p->rows.rounds > FA__VECTORS_SURE || (p->rows.rounds == FA__VECTORS_SURE && p->rows.rest > (team->thread & ~31));
    /* Where registers suffice, the first half's weights are loaded together with the row, and the others as soon as
     * these are used: the latency of memory is exposed once. Else the first block prefetches all of them, so that
     * the L2 cache has them in time. */
    const int early = FA__HELD_PIECES == 1 || (plain && FA_WEIGHT_DTYPE == FA_F32 && FA__HELD_PIECES == 4 &&
                                               (!FA__CENTERED || FA__ABREAST > 1 || FA__LENGTH <= 4));
    float kept[FA__ABREAST][FA__FLOATS], gamma[FA__FLOATS], beta[FA__FLOATS]; /* weights: of a piece, or of half of them */
    float middle[FA__ABREAST], squares[FA__ABREAST]; /* sums first */
    FA__LOOP(_source) from[FA__ABREAST];
    FA__UNROLL
    for (int r = 0; r < rows; r++) {
        from[r].x = FA__LOOP(_row_at)(fa__address(&p->x, row + r * apart < p->rows.rows ? row + r * apart : 0, 0, sizeof(FA__ELEMENT)), p->rows.cols, team);
        FA__LOOP(_row__set_policy)(&from[r].x, p->rows.policy);
        FA__LOOP(_row_hold)(&from[r].held, NULL, &from[r].x, 0.0f);
    }
    FA__UNROLL
    for (int i = 0; early && i < together; i++) FA__LOOP(_weights)(gamma + i * FA__LENGTH, beta + i * FA__LENGTH, p, &from[0].x, i);
    if (!early && blockIdx.x == 0) FA__LOOP(_ask_for_weights)(p);
    if (!plain) {
        from[0].residual = FA__LOOP(_open)(&p->residual, p, row, &from[0].x);
        if (!p->residual.data) from[0].residual.cols = 0;
        FA__LOOP(_row_hold)(&from[0].held_residual, NULL, &from[0].residual, 0.0f);
        from[0].drawn = FA__LOOP(_row_draw)(&from[0].x, (uint64_t)(row * p->rows.cols), &p->dropout);
    }
    FA__UNROLL
    for (int r = 0; r < rows; r++) {
        float chain[2] = {0.0f, 0.0f};
        FA__UNROLL
        for (int piece = 0; piece < FA__HELD_PIECES; piece++) {
            if (piece >= FA__SURE && !all) break;
            float *x = kept[r] + (words ? 0 : piece * FA__LENGTH);
            FA__LOOP(_row_get)(x, &from[r].held, &from[r].x, piece);
            if (!plain) { /* Whatever there is of it: branches would take more registers. */
                float add[FA__LENGTH];
                FA__LOOP(_row_get)(add, &from[r].held_residual, &from[r].residual, piece);
                FA__LOOP(_row_dropout)(x, &from[r].x, piece, &from[r].drawn);
                FA__UNROLL
                for (int i = 0; i < FA__LENGTH; i++) x[i] += add[i];
            }
            FA__UNROLL
            for (int i = 0; i < FA__LENGTH; i++) chain[i % 2] = FA__CENTERED ? chain[i % 2] + x[i] : fmaf(x[i], x[i], chain[i % 2]);
        }
        squares[r] = chain[0] + chain[1];
    }
    if (!plain && p->sum.data) {
        FA__LOOP(_row_view) sum = FA__LOOP(_open)(&p->sum, p, row, &from[0].x);
        if (row >= p->rows.rows) sum.cols = 0;
        FA__UNROLL
        for (int piece = 0; piece < FA__HELD_PIECES; piece++) FA__LOOP(_row_store)(&sum, piece, kept[0] + piece * FA__LENGTH);
    }
    float mean[FA__ABREAST], rstd[FA__ABREAST], shift[FA__ABREAST];
#if FA__CENTERED
    float number = FA__LOOP(_numbers)(p, team), off[FA__ABREAST];
    const int exact = FA__IS_HALF && plain; /* sums of equal halves are: an exactly divided mean then leaves 0 of each; else what the mean is off by is found below */
    const float share = number > 0.0f ? fa__reciprocal(number) : 0.0f;
    const int mine = p->rows.rounds + (team->thread < p->rows.rest); /* vectors, which are the first */
    FA__UNROLL
    for (int r = 0; r < rows; r++) {
        const float sum = FA__LOOP(_reduce_lanes_sum)(squares[r], team);
        middle[r] = sum * share;
        if (exact && fabsf(middle[r]) < INFINITY) middle[r] = fmaf(fmaf(-middle[r], number, sum), share, middle[r]);
    }
    FA__UNROLL
    for (int r = 0; r < rows; r++) {
        float chain[2] = {0.0f, 0.0f}, away = 0.0f;
        if (words) FA__LOOP(_row_renew)(&from[r].held, p->rows.none[0]);
        FA__UNROLL
        for (int piece = 0; piece < FA__HELD_PIECES; piece++) {
            if (piece >= FA__SURE && !all) break;
            float *x = kept[r] + (words ? 0 : piece * FA__LENGTH);
            if (words) FA__LOOP(_row_get)(x, &from[r].held, &from[r].x, piece);
            /* Elements outside the row are 0, and add nothing. */
            FA__UNROLL
            for (int i = 0; i < FA__LENGTH; i++) {
                x[i] -= piece * FA__LOOP(_row_VECTORS) + i / FA__LOOP(_row_VECTOR) < mine ? middle[r] : 0.0f;
                chain[i % 2] = fmaf(x[i], x[i], chain[i % 2]);
                if (!exact) away += x[i];
            }
        }
        squares[r] = chain[0] + chain[1], off[r] = away;
    }
    FA__UNROLL
    for (int r = 0; r < rows; r++) squares[r] = FA__LOOP(_reduce_lanes_sum)(squares[r], team), mean[r] = middle[r];
    FA__UNROLL
    for (int r = 0; r < rows && !exact; r++) { /* what the first mean is off by */
        off[r] = FA__LOOP(_reduce_lanes_sum)(off[r], team);
        mean[r] = fabsf(middle[r]) < INFINITY ? fmaf(off[r], share, middle[r]) : middle[r];
        squares[r] = fmaf(off[r] * -share, off[r], squares[r]);
        squares[r] = squares[r] < 0.0f ? 0.0f : squares[r]; /* NaN remains */
    }
    FA__ROLL
    for (int r = 0; !lanes_only && r < rows; r++) { /* each in the place of the first: the code is there once */
        float first = mean[0], of_first = squares[0];
        FA__LOOP(_reduce__warps_moments_of)(p->inverse_cols, number, &first, &of_first, team, place->shared);
        FA__UNROLL
        for (int i = 1; i < rows; i++) mean[i - 1] = mean[i], squares[i - 1] = squares[i];
        mean[rows - 1] = first, squares[rows - 1] = of_first;
    }
#else
    FA__UNROLL
    for (int r = 0; r < rows; r++) {
        middle[r] = mean[r] = 0.0f;
        squares[r] = lanes_only ? FA__LOOP(_reduce_lanes_sum)(squares[r], team) : FA__LOOP(_reduce_sum)(squares[r], team, place->shared);
    }
#endif
    row = (int64_t)fa_sm80_opaque_address((uint64_t)row); /* what follows from it is not kept in registers meanwhile */
    FA__UNROLL
    for (int r = 0; r < rows; r++) {
        rstd[r] = fa__rsqrt(squares[r] * p->inverse_cols + p->eps), shift[r] = (middle[r] - mean[r]) * rstd[r];
        if (row + r * apart >= p->rows.rows || team->thread > 0) continue;
        if (p->rstd) p->rstd[row + r * apart] = rstd[r];
        if (FA__CENTERED && p->mean) p->mean[row + r * apart] = mean[r];
    }
    if (row >= p->rows.rows || !p->y.data) return; /* after the last reduction */

    FA__LOOP(_row_view) y[FA__ABREAST];
    FA__UNROLL
    for (int r = 0; r < rows; r++) {
        if (words) FA__LOOP(_row_renew)(&from[r].held, p->rows.none[1]);
        y[r] = FA__LOOP(_open)(&p->y, p, row + r * apart, &from[r].x);
        if (r > 0 && row + r * apart >= p->rows.rows) y[r].cols = 0;
    }
    FA__ROLL
    for (int turn = 0; turn < turns; turn++) {
        FA__UNROLL
        for (int i = 0; i < together; i++) {
            const int piece = turn * together + i;
            if (piece >= FA__SURE && !all) break;
            float *g = gamma + (early ? i * FA__LENGTH : 0), *b = beta + (early ? i * FA__LENGTH : 0);
            if (!early) FA__LOOP(_weights)(g, b, p, &from[0].x, piece);
            FA__UNROLL
            for (int r = 0; r < rows; r++) {
                float *x = kept[r] + (words ? 0 : i * FA__LENGTH);
                if (words) FA__LOOP(_row_get)(x, &from[r].held, &from[r].x, i);
                FA__UNROLL
                for (int j = 0; j < FA__LENGTH; j++) {
                    if (words && FA__CENTERED) x[j] -= middle[r];
                    x[j] = FA__CENTERED ? fmaf(fmaf(x[j], rstd[r], shift[r]), g[j], b[j]) : x[j] * rstd[r] * g[j];
                }
                FA__LOOP(_row_store)(&y[r], piece, x);
            }
            if (early && piece + together < FA__HELD_PIECES) FA__LOOP(_weights)(g, b, p, &from[0].x, piece + together);
        }
        if (turns == 1) return;
        FA__UNROLL
        for (int r = 0; r < rows; r++) {
            if (words) FA__LOOP(_row__skip)(&from[r].held, together);
            FA__UNROLL
            for (int i = 0; !words && i < (turns - 1) * together * FA__LENGTH; i++) kept[r][i] = kept[r][together * FA__LENGTH + i];
        }
    }
}
FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    FA__LOOP(_normalize_even)(p, row, team, place, 0);
}
FA__FN void FA__LOOP(_forward_plain)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    FA__LOOP(_normalize_even)(p, row, team, place, 1);
}
