/* swiglu_rows_cpu.h: swiglu_rows.h of fa_silu on the CPU, in vectors.
 *
 * A segment of halves is gone through twice, in the L1 cache: a core looks at a few dozen operations ahead, and
 * finds more that do not wait for each other where each number takes fewer: of bf16, 9 instead of 11 clocks for 8
 * numbers (Zen 3, AVX2). Floats, which take fewer in any case, would take 1.2 times as long. */

enum {
    FA__LOOP(_halves) = FA__IS_HALF,
    FA__LOOP(_block) = FA__LOOP(_row_BLOCK),
    FA__LOOP(_vectors) = FA__LOOP(_row_IN_BLOCK),
    FA__LOOP(_abreast) = FA__LOOP(_row_LANES) == 16 ? 2 : 1, /* blocks whose sigmoids are computed side by side */
    FA__LOOP(_room) = FA__LOOP(_row_LENGTH) + FA__LOOP(_abreast) * FA__LOOP(_block) /* elements of a segment, in blocks */
};
/* Vectors of gates, bounded, so that their sigmoids are not 0. */
FA__FN void FA__LOOP(__bound)(FA__CPU_OP(vec) * gate, const int vectors) {
    FA__UNROLL
    for (int j = 0; j < vectors; j++) gate[j] = FA__CPU_OP(max)(FA__CPU_OP(splat)(FA__SIGMOID_LOWEST), gate[j]);
}
/* sigmoid(gate) of a segment of halves, from column `begin` on. `whole`: all blocks are. */
FA__FN void FA__LOOP(__shares_from)(float *share, const FA__ELEMENT *gates, int begin, int end, int cols, const int whole) {
    enum { FA__AT_ONCE = FA__LOOP(_abreast) * FA__LOOP(_block), FA__GATES = FA__LOOP(_abreast) * FA__LOOP(_vectors) };
    FA__ELEMENT rest[FA__LOOP(_block)];
    FA__CPU_OP(vec) gate[FA__GATES];
    for (int i = begin; i < end; i += FA__AT_ONCE) {
        FA__UNROLL
        for (int j = 0; j < FA__LOOP(_abreast); j++) {
            const int at = whole || i + j * FA__LOOP(_block) < cols ? i + j * FA__LOOP(_block) : i; /* there is room for more than there are */
            FA__LOOP(_row__ask_ahead)(gates + at, 1);
            FA__LOOP(_row__bring)(gate + j * FA__LOOP(_vectors), whole ? gates + at : FA__LOOP(_row__block_of)(rest, gates, at, cols));
        }
        FA__LOOP(__bound)(gate, FA__GATES);
        FA__CPU_OP(sigmoids)(gate, FA__GATES);
        FA__UNROLL
        for (int j = 0; j < FA__GATES; j++) ((FA__CPU_OP(any) *)(share + i))[j] = gate[j];
    }
}
FA__FN_CALLED void FA__LOOP(__shares)(float *share, const FA__ELEMENT *gates, int cols) {
    const int whole = FA__LOOP(_halves) ? cols / (FA__LOOP(_abreast) * FA__LOOP(_block)) * FA__LOOP(_abreast) * FA__LOOP(_block) : 0;
    FA__LOOP(__shares_from)(share, gates, 0, whole, cols, 1);
    if (FA__LOOP(_halves)) FA__LOOP(__shares_from)(share, gates, whole, cols, cols, 0);
}
/* The same of a block of gates, which are bounded; share: where those of halves are. */
FA__FN void FA__LOOP(__shares_of)(FA__CPU_OP(vec) * s, const FA__CPU_OP(vec) * gate, const float *share) {
    FA__UNROLL
    for (int j = 0; j < FA__LOOP(_vectors); j++) s[j] = FA__LOOP(_halves) ? ((const FA__CPU_OP(any) *)share)[j] : gate[j];
    if (!FA__LOOP(_halves)) FA__CPU_OP(sigmoids)(s, FA__LOOP(_vectors));
}

#if FA__DIRECTIONS & FA__ROWS_FORWARD
/* Blocks of a segment, from column `begin` on. */
FA__FN void FA__LOOP(__forward_blocks)(FA__ELEMENT *to, const FA__ELEMENT *gates, const FA__ELEMENT *ups, const float *shares, int begin, int end, int cols, int by_unit,
                                       const int streams, const int whole) {
    FA__ELEMENT rest[2][FA__LOOP(_block)];
    FA__CPU_OP(vec) gate[FA__LOOP(_vectors)], up[FA__LOOP(_vectors)], share[FA__LOOP(_vectors)];
    for (int i = begin; i < end; i += FA__LOOP(_block)) {
        FA__LOOP(_row__ask_ahead)(ups + i, 1);
        if (!FA__LOOP(_halves)) FA__LOOP(_row__ask_ahead)(gates + i, 1);
        FA__LOOP(_row__bring)(gate, whole ? gates + i : FA__LOOP(_row__block_of)(rest[0], gates, i, cols));
        FA__LOOP(_row__bring)(up, whole ? ups + i : FA__LOOP(_row__block_of)(rest[1], ups, i, cols));
        FA__LOOP(__bound)(gate, FA__LOOP(_vectors));
        FA__LOOP(__shares_of)(share, gate, shares + i);
        FA__UNROLL
        for (int j = 0; j < FA__LOOP(_vectors); j++) gate[j] = gate[j] * share[j] * up[j];
        FA__LOOP(_row__bring_back)(to + i, gate, streams, by_unit);
    }
}
FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    const fa__segment at = fa__segment_at(&p->cut, row, p->rows.rows, 0);
    const FA__ELEMENT *gates = (const FA__ELEMENT *)fa__element(&p->gate, &at, sizeof(FA__ELEMENT));
    const FA__ELEMENT *ups = (const FA__ELEMENT *)fa__element(&p->up, &at, sizeof(FA__ELEMENT));
    FA__ELEMENT *to = (FA__ELEMENT *)fa__element(&p->y, &at, sizeof(FA__ELEMENT));
    const int cols = (int)at.cols, by_unit = fa__cpu_rounds_bf16(), fits = FA__LOOP(_row__fits)(to, cols, p->rows.stream);
    FA__CPU_ALIGNED FA__ELEMENT left[FA__LOOP(_room)];
    FA__CPU_ALIGNED float shares[FA__LOOP(_room)];
    (void)team, (void)place;
    FA__LOOP(__shares)(shares, gates, cols);
    if (p->rows.stream) FA__LOOP(__forward_blocks)(to, gates, ups, shares, 0, fits, cols, by_unit, 1, 1);
    else FA__LOOP(__forward_blocks)(to, gates, ups, shares, 0, fits, cols, by_unit, 0, 1);
    if (fits == cols) return;
    FA__LOOP(__forward_blocks)(left, gates, ups, shares, fits, cols, cols, by_unit, 0, 0);
    FA__LOOP(_row__deliver)(to + fits, left + fits, cols - fits, p->rows.stream);
}
#endif

#if FA__DIRECTIONS & FA__ROWS_BACKWARD
/* The same of the backward, which leaves d_up in the L1 cache. */
FA__FN void FA__LOOP(__backward_blocks)(FA__ELEMENT *to, FA__ELEMENT *d_up, const FA__ELEMENT *gates, const FA__ELEMENT *ups, const FA__ELEMENT *ds, const float *shares,
                                        int begin, int end, int cols, int by_unit, const int streams, const int whole) {
    FA__ELEMENT rest[3][FA__LOOP(_block)];
    FA__CPU_OP(vec) gate[FA__LOOP(_vectors)], up[FA__LOOP(_vectors)], d[FA__LOOP(_vectors)], share[FA__LOOP(_vectors)];
    for (int i = begin; i < end; i += FA__LOOP(_block)) {
        FA__LOOP(_row__ask_ahead)(ups + i, 1), FA__LOOP(_row__ask_ahead)(ds + i, 1);
        if (!FA__LOOP(_halves)) FA__LOOP(_row__ask_ahead)(gates + i, 1);
        FA__LOOP(_row__bring)(gate, whole ? gates + i : FA__LOOP(_row__block_of)(rest[0], gates, i, cols));
        FA__LOOP(_row__bring)(up, whole ? ups + i : FA__LOOP(_row__block_of)(rest[1], ups, i, cols));
        FA__LOOP(_row__bring)(d, whole ? ds + i : FA__LOOP(_row__block_of)(rest[2], ds, i, cols));
        FA__LOOP(__bound)(gate, FA__LOOP(_vectors));
        FA__LOOP(__shares_of)(share, gate, shares + i);
        FA__UNROLL
        for (int j = 0; j < FA__LOOP(_vectors); j++) {
            const FA__CPU_OP(vec) y = gate[j] * share[j];
            gate[j] = d[j] * up[j] * (share[j] + y * (1.0f - share[j]));
            up[j] = d[j] * y;
        }
        FA__LOOP(_row__bring_back)(to + i, gate, streams, by_unit), FA__LOOP(_row__bring_back)(d_up + i, up, 0, by_unit);
    }
}
FA__FN void FA__LOOP(_backward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    const fa__segment at = fa__segment_at(&p->cut, row, p->rows.rows, 0);
    const FA__ELEMENT *gates = (const FA__ELEMENT *)fa__element(&p->gate, &at, sizeof(FA__ELEMENT));
    const FA__ELEMENT *ups = (const FA__ELEMENT *)fa__element(&p->up, &at, sizeof(FA__ELEMENT));
    const FA__ELEMENT *ds = (const FA__ELEMENT *)fa__element(&p->d_y, &at, sizeof(FA__ELEMENT));
    FA__ELEMENT *to = (FA__ELEMENT *)fa__element(&p->d_gate, &at, sizeof(FA__ELEMENT)), *to_up = (FA__ELEMENT *)fa__element(&p->d_up, &at, sizeof(FA__ELEMENT));
    const int cols = (int)at.cols, by_unit = fa__cpu_rounds_bf16(), streams = p->rows.stream, fits = FA__LOOP(_row__fits)(to, cols, streams);
    FA__CPU_ALIGNED FA__ELEMENT d_gate[FA__LOOP(_room)], d_up[FA__LOOP(_room)];
    FA__CPU_ALIGNED float shares[FA__LOOP(_room)];
    (void)team, (void)place;
    FA__LOOP(__shares)(shares, gates, cols);
    if (streams) FA__LOOP(__backward_blocks)(to, d_up, gates, ups, ds, shares, 0, fits, cols, by_unit, 1, 1);
    else FA__LOOP(__backward_blocks)(to, d_up, gates, ups, ds, shares, 0, fits, cols, by_unit, 0, 1);
    if (fits < cols) {
        FA__LOOP(__backward_blocks)(d_gate, d_up, gates, ups, ds, shares, fits, cols, cols, by_unit, 0, 0);
        FA__LOOP(_row__deliver)(to + fits, d_gate + fits, cols - fits, streams);
    }
    FA__LOOP(_row__deliver)(to_up, d_up, cols, streams);
}
#endif
