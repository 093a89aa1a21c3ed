/* swiglu_rows_cpu.h: swiglu_rows.h of fa_silu on the CPU, in vectors.
 *
 * A segment of halves is gone through twice, in the L1 cache: a core looks at a few dozen operations ahead, and finds more that do
 * not wait for each other where each number takes fewer: of bf16, 9 instead of 11 clocks for 8 numbers (Zen 3, AVX2). Floats, which take fewer in
 * any case, would take 1.2 times as long. */

/* How far ahead of a block the same tensor is prefetched: a segment, the next one of the same row or rows. */
#define FA__AHEAD(from) FA__LOOP(_row__ask_block)((uintptr_t)(from) + FA__LOOP(_row_LENGTH) * sizeof(FA__ELEMENT))

enum {
    FA__LOOP(_halves) = FA__IS_HALF,
    FA__LOOP(_block) = FA__LOOP(_row_BLOCK),
    FA__LOOP(_vectors) = FA__LOOP(_block) / FA__LOOP(_row_LANES),
    FA__LOOP(_room) = FA__LOOP(_row_LENGTH) + FA__LOOP(_block) /* elements of a segment, in blocks */
};
FA__FN FA__CPU_OP(vec) FA__LOOP(__bounded)(FA__CPU_OP(vec) gate) { return FA__CPU_OP(max)(FA__CPU_OP(splat)(FA__SIGMOID_LOWEST), gate); }
/* sigmoid(gate) of a segment of halves. */
FA__FN void FA__LOOP(__shares)(float *share, const FA__ELEMENT *gates, int cols) {
    FA__ELEMENT rest[FA__LOOP(_block)];
    FA__CPU_OP(vec) gate[FA__LOOP(_vectors)];
    for (int i = 0; i < cols && FA__LOOP(_halves); i += FA__LOOP(_block)) {
        FA__AHEAD(gates + i);
        FA__LOOP(_row__bring)(gate, FA__LOOP(_row__block_of)(rest, gates, i, cols));
        FA__UNROLL
        for (int j = 0; j < FA__LOOP(_vectors); j++) ((FA__CPU_OP(any) *)(share + i))[j] = FA__CPU_OP(sigmoid)(FA__LOOP(__bounded)(gate[j]));
    }
}
/* The same of a vector, `gate`, which is bounded; share: where that of halves is. */
FA__FN FA__CPU_OP(vec) FA__LOOP(__share)(const float *share, FA__CPU_OP(vec) gate) {
    return FA__LOOP(_halves) ? *(const FA__CPU_OP(any) *)share : FA__CPU_OP(sigmoid)(gate);
}

#if FA__DIRECTIONS & FA__ROWS_FORWARD
FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    const fa__segment at = fa__segment_at(&p->cut, row, p->rows.rows, 0);
    const FA__ELEMENT *gates = (const FA__ELEMENT *)fa__element(&p->gate, &at, sizeof(FA__ELEMENT));
    const FA__ELEMENT *ups = (const FA__ELEMENT *)fa__element(&p->up, &at, sizeof(FA__ELEMENT));
    const int cols = (int)at.cols, by_unit = fa__cpu_rounds_bf16();
    FA__CPU_ALIGNED FA__ELEMENT y[FA__LOOP(_room)];
    FA__CPU_ALIGNED float shares[FA__LOOP(_room)];
    FA__ELEMENT rest[2][FA__LOOP(_block)];
    FA__CPU_OP(vec) gate[FA__LOOP(_vectors)], up[FA__LOOP(_vectors)];
    (void)team, (void)place;
    FA__LOOP(__shares)(shares, gates, cols);
    for (int i = 0; i < cols; i += FA__LOOP(_block)) {
        FA__AHEAD(ups + i);
        if (!FA__LOOP(_halves)) FA__AHEAD(gates + i);
        FA__LOOP(_row__bring)(gate, FA__LOOP(_row__block_of)(rest[0], gates, i, cols));
        FA__LOOP(_row__bring)(up, FA__LOOP(_row__block_of)(rest[1], ups, i, cols));
        FA__UNROLL
        for (int j = 0; j < FA__LOOP(_vectors); j++) {
            const FA__CPU_OP(vec) x = FA__LOOP(__bounded)(gate[j]);
            gate[j] = x * FA__LOOP(__share)(shares + i + j * FA__LOOP(_row_LANES), x) * up[j];
        }
        FA__LOOP(_row__bring_back)(y + i, gate, 0, by_unit);
    }
    FA__LOOP(_row__deliver)((FA__ELEMENT *)fa__element(&p->y, &at, sizeof(FA__ELEMENT)), y, cols, p->rows.stream);
}
#endif

#if FA__DIRECTIONS & FA__ROWS_BACKWARD
FA__FN void FA__LOOP(_backward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    const fa__segment at = fa__segment_at(&p->cut, row, p->rows.rows, 0);
    const FA__ELEMENT *gates = (const FA__ELEMENT *)fa__element(&p->gate, &at, sizeof(FA__ELEMENT));
    const FA__ELEMENT *ups = (const FA__ELEMENT *)fa__element(&p->up, &at, sizeof(FA__ELEMENT));
    const FA__ELEMENT *ds = (const FA__ELEMENT *)fa__element(&p->d_y, &at, sizeof(FA__ELEMENT));
    const int cols = (int)at.cols, by_unit = fa__cpu_rounds_bf16();
    FA__CPU_ALIGNED FA__ELEMENT d_gate[FA__LOOP(_room)], d_up[FA__LOOP(_room)];
    FA__CPU_ALIGNED float shares[FA__LOOP(_room)];
    FA__ELEMENT rest[3][FA__LOOP(_block)];
    FA__CPU_OP(vec) gate[FA__LOOP(_vectors)], up[FA__LOOP(_vectors)], d[FA__LOOP(_vectors)];
    (void)team, (void)place;
    FA__LOOP(__shares)(shares, gates, cols);
    for (int i = 0; i < cols; i += FA__LOOP(_block)) {
        FA__AHEAD(ups + i), FA__AHEAD(ds + i);
        if (!FA__LOOP(_halves)) FA__AHEAD(gates + i);
        FA__LOOP(_row__bring)(gate, FA__LOOP(_row__block_of)(rest[0], gates, i, cols));
        FA__LOOP(_row__bring)(up, FA__LOOP(_row__block_of)(rest[1], ups, i, cols));
        FA__LOOP(_row__bring)(d, FA__LOOP(_row__block_of)(rest[2], ds, i, cols));
        FA__UNROLL
        for (int j = 0; j < FA__LOOP(_vectors); j++) {
            const FA__CPU_OP(vec) x = FA__LOOP(__bounded)(gate[j]), share = FA__LOOP(__share)(shares + i + j * FA__LOOP(_row_LANES), x), y = x * share;
            gate[j] = d[j] * up[j] * (share + y * (1.0f - share));
            up[j] = d[j] * y;
        }
        FA__LOOP(_row__bring_back)(d_gate + i, gate, 0, by_unit), FA__LOOP(_row__bring_back)(d_up + i, up, 0, by_unit);
    }
    FA__LOOP(_row__deliver)((FA__ELEMENT *)fa__element(&p->d_gate, &at, sizeof(FA__ELEMENT)), d_gate, cols, p->rows.stream);
    FA__LOOP(_row__deliver)((FA__ELEMENT *)fa__element(&p->d_up, &at, sizeof(FA__ELEMENT)), d_up, cols, p->rows.stream);
}
#endif
#undef FA__AHEAD
