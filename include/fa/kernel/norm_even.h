/* norm_even.h: the forward of norm_rows.h for rows of whole vectors (FA_WHOLE 2), which threads hold in registers (GPU).
 *
 * Each warp finds its mean and the squares about that, and one barrier later all warps know those of the row. What counts is
 * instructions: there are 30 slots for each element that is read and written, and 60 with a residual and a sum.
 */

/* Elements that the caller's warp has, or its team if that is part of a warp. */
FA__FN float FA__LOOP(_numbers)(const FA__PARAMS *p, const fa_team *team) {
    int more = p->rows.rest - (fa_sm80_opaque(team->thread) & ~31);
    more = more < 0 ? 0 : more > 32 ? 32 : more;
    return team->threads <= 32 ? (float)p->rows.cols : (float)((32 * p->rows.rounds + more) * FA__LOOP(_row_VECTOR));
}

/* `plain`: known to have neither dropout, nor residual, nor sum. */
FA__FN void FA__LOOP(_normalize_even)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place, const int plain) {
    /* Words are kept where registers do not do for floats, and where these are made twice only. */
    enum { FA__HELD_PIECES = FA__LOOP(_row_KEPT), FA__LENGTH = FA__LOOP(_row_LENGTH) };
    const int words = FA__HELD_PIECES * FA__LENGTH > 32 || (plain && !FA__CENTERED);
    float kept[FA__HELD_PIECES * FA__LENGTH], gamma[FA__LENGTH], chain[2] = {0.0f, 0.0f}, middle = 0.0f, squares;
    FA__LOOP(_source) from;
    from.x = FA__LOOP(_row_at)(fa__address(&p->x, row < p->rows.rows ? row : 0, 0, sizeof(FA__ELEMENT)), p->rows.cols, team);
    if (plain && !FA__CENTERED && FA__HELD_PIECES > 4) FA__LOOP(_row__linger)(&from.x, p->rows.stream);
    FA__LOOP(_row_hold)(&from.held, NULL, &from.x, 0.0f);
    if (!plain) {
        from.residual = FA__LOOP(_whole)(&p->residual, p, row, &from.x);
        if (!p->residual.data) from.residual.cols = 0;
        FA__LOOP(_row_hold)(&from.held_residual, NULL, &from.residual, 0.0f);
        from.drawn = FA__LOOP(_row_draw)(&from.x, (uint64_t)(row * p->rows.cols), &p->dropout);
        if (p->dropout.threshold == 0) from.drawn.kept = ~0u;
    }
    FA__UNROLL
    for (int piece = 0; piece < FA__HELD_PIECES; piece++) {
        float *x = kept + (words ? 0 : piece * FA__LENGTH);
        FA__LOOP(_row_get)(x, &from.held, &from.x, piece);
        if (!plain) { /* Whatever there is of it: branches would take more registers. */
            float add[FA__LENGTH];
            FA__LOOP(_row_get)(add, &from.held_residual, &from.residual, piece);
            FA__LOOP(_row_dropout)(x, &from.x, piece, &from.drawn);
            FA__UNROLL
            for (int i = 0; i < FA__LENGTH; i++) x[i] += add[i];
        }
        FA__UNROLL
        for (int i = 0; i < FA__LENGTH; i++) chain[i % 2] = FA__CENTERED ? chain[i % 2] + x[i] : fmaf(x[i], x[i], chain[i % 2]);
    }
    if (!plain && p->sum.data) {
        FA__LOOP(_row_view) sum = FA__LOOP(_whole)(&p->sum, p, row, &from.x);
        if (row >= p->rows.rows) sum.cols = 0;
        FA__UNROLL
        for (int piece = 0; piece < FA__HELD_PIECES; piece++) FA__LOOP(_row_store)(&sum, piece, kept + piece * FA__LENGTH);
    }
    float mean = 0.0f, beta[FA__LENGTH];
#if FA__CENTERED
    float number = FA__LOOP(_numbers)(p, team);
    const int mine = p->rows.rounds + (team->thread < p->rows.rest); /* vectors, which are the first */
    middle = FA__LOOP(_reduce_lanes_sum)(chain[0] + chain[1], team) * (number > 0.0f ? fa__reciprocal(number) : 0.0f);
    chain[0] = chain[1] = 0.0f;
    if (words) FA__LOOP(_row_renew)(&from.held, p->rows.none[0]);
    FA__UNROLL
    for (int piece = 0; piece < FA__HELD_PIECES; piece++) {
        float *x = kept + (words ? 0 : piece * FA__LENGTH);
        if (words) FA__LOOP(_row_get)(x, &from.held, &from.x, piece);
        /* What is none of the row is 0, and adds nothing. */
        FA__UNROLL
        for (int i = 0; i < FA__LENGTH; i++) {
            x[i] -= piece * FA__LOOP(_row_VECTORS) + i / FA__LOOP(_row_VECTOR) < mine ? middle : 0.0f;
            chain[i % 2] = fmaf(x[i], x[i], chain[i % 2]);
        }
    }
    squares = FA__LOOP(_reduce_lanes_sum)(chain[0] + chain[1], team);
    mean = middle;
    FA__LOOP(_reduce_warps_moments_of)(p->inverse_cols, number, &mean, &squares, team, place->shared);
#else
    squares = FA__LOOP(_reduce_sum)(chain[0] + chain[1], team, place->shared);
#endif
    const float rstd = fa__rsqrt(squares * p->inverse_cols + p->eps), shift = (middle - mean) * rstd;
    row = (int64_t)fa_sm80_opaque_address((uint64_t)row); /* what follows from it is not kept in registers meanwhile */
    if (row >= p->rows.rows) return; /* after the last reduction */
    if (team->thread == 0 && p->rstd) p->rstd[row] = rstd;
    if (FA__CENTERED && team->thread == 0 && p->mean) p->mean[row] = mean;
    if (!p->y.data) return;

    if (words) FA__LOOP(_row_renew)(&from.held, p->rows.none[1]);
    FA__LOOP(_row_view) y = FA__LOOP(_whole)(&p->y, p, row, &from.x);
    /* What is plain in two halves, by code that is there once: the second one takes the place of the first. */
    const int turns = plain ? 2 : 1, together = FA__HELD_PIECES / turns;
    FA__ROLL
    for (int turn = 0; turn < turns; turn++) {
        FA__UNROLL
        for (int i = 0; i < together; i++) {
            const int piece = turn * together + i;
            float *x = kept + (words ? 0 : i * FA__LENGTH);
            if (words) FA__LOOP(_row_get)(x, &from.held, &from.x, i);
            FA__UNROLL
            for (int part = 0; part < FA__LOOP(_row_PARTS); part++) {
                FA__LOOP(_row_weights)(gamma + part * FA__LOOP(_row_PART), &from.x, piece, part, p->gamma, FA_WEIGHT_DTYPE, 1.0f);
                FA__LOOP(_row_weights)(beta + part * FA__LOOP(_row_PART), &from.x, piece, part, p->beta, FA_WEIGHT_DTYPE, 0.0f);
            }
            FA__UNROLL
            for (int j = 0; j < FA__LENGTH; j++) {
                if (words && FA__CENTERED) x[j] -= middle;
                x[j] = FA__CENTERED ? fmaf(fmaf(x[j], rstd, shift), gamma[j], beta[j]) : x[j] * rstd * gamma[j];
            }
            FA__LOOP(_row_store)(&y, piece, x);
        }
        if (turns == 1) return;
        if (words) FA__LOOP(_row_skip)(&from.held, together);
        FA__UNROLL
        for (int i = 0; !words && i < together * FA__LENGTH; i++) kept[i] = kept[together * FA__LENGTH + i];
    }
}
FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    FA__LOOP(_normalize_even)(p, row, team, place, 0);
}
FA__FN void FA__LOOP(_forward_plain)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    FA__LOOP(_normalize_even)(p, row, team, place, 1);
}
