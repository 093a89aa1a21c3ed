/* sm80/row_held.h: rows that are looked at more than once: held in registers (FA_FRAGMENT), or in shared memory. */

#if FA_HOLD == FA_FRAGMENT
enum { FA__ROW(_KEPT) = FA_PIECES > 0 ? FA_PIECES : 1 };
typedef struct FA__ROW(_held) {
    uint32_t raw[FA__ROW(_WORDS) * FA__ROW(_VECTORS) * FA__ROW(_KEPT)];
} FA__ROW(_held);
FA__FN void FA__ROW(_hold)(FA__ROW(_held) * held, void *slot0, const FA__ROW(_view) * v, float fill) {
    (void)slot0;
    FA__UNROLL
    for (int piece = 0; piece < FA__ROW(_KEPT); piece++)
        FA__ROW(__fetch)(held->raw + FA__ROW(_WORDS) * FA__ROW(_VECTORS) * piece, v, piece, FA__ROW(__fill)(fill));
}
FA__FN void FA__ROW(_wait)(void) {}
FA__FN int64_t FA__ROW(_held_pieces)(const FA__ROW(_view) * v) {
    (void)v;
    return FA__ROW(_KEPT);
}
/* The words anew, with a zero that the compiler does not know: else it keeps the floats that it once made of them. */
FA__FN void FA__ROW(_renew)(FA__ROW(_held) * held, int none) {
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_WORDS) * FA__ROW(_VECTORS) * FA__ROW(_KEPT); i++) held->raw[i] ^= (uint32_t)none;
}
/* Then piece `pieces` is number 0, and so on. */
FA__FN void FA__ROW(__skip)(FA__ROW(_held) * held, int pieces) {
    FA__UNROLL
    for (int i = FA__ROW(_WORDS) * FA__ROW(_VECTORS) * pieces; i < FA__ROW(_WORDS) * FA__ROW(_VECTORS) * FA__ROW(_KEPT); i++)
        held->raw[i - FA__ROW(_WORDS) * FA__ROW(_VECTORS) * pieces] = held->raw[i];
}
/* Of two tensors words are kept, since those of halves take fewer registers than floats do; words of fp32 are floats
 * already, and these are kept if there is one piece. */
FA__FN int FA__ROW(_keeps)(const FA__ROW(_view) * v, int tensors) {
    (void)v;
    return tensors == 1 || (FA__ROW(_VECTOR) == 4 && FA__ROW(_KEPT) == 1);
}
FA__FN void FA__ROW(_get)(float *x, const FA__ROW(_held) * held, const FA__ROW(_view) * v, int64_t piece) {
    (void)v;
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) {
        uint32_t words[FA__ROW(_WORDS)]; /* which the compiler must not find to be those of an earlier call, and keep its floats */
        FA__UNROLL
        for (int i = 0; i < FA__ROW(_WORDS); i++) words[i] = (uint32_t)fa_sm80_opaque((int)held->raw[FA__ROW(_WORDS) * ((int)piece * FA__ROW(_VECTORS) + j) + i]);
        FA__ROW(__unpack)(x + j * FA__ROW(_VECTOR), words);
    }
}
#else
enum { FA__ROW(_KEPT) = FA_PIECES };
/* A thread's vectors in shared memory, which nobody else looks at: no barrier is needed. */
typedef struct FA__ROW(_held) {
    uint4 *slot0; /* the first of this thread, whose others follow `apart` slots, the threads of the block, from each other; NULL: the row is read again */
    int apart;
    uint32_t fill;
} FA__ROW(_held);
FA__FN void FA__ROW(_hold)(FA__ROW(_held) * held, void *slot0, const FA__ROW(_view) * v, float fill) {
    held->fill = FA__ROW(__fill)(fill);
    held->apart = (int)blockDim.x;
    held->slot0 = FA_PIECES > 0 || slot0 ? (uint4 *)slot0 + threadIdx.x : NULL;
    if (FA_PIECES == 0 && !slot0) return;
    const int pieces = (int)FA__ROW(_pieces)(v), vectors = pieces * FA__ROW(_VECTORS);
    const int64_t stop = v->cols == 0 ? 0 : v->cols + v->shift;
    const int room = vectors * FA__ROW(_VECTOR) * v->threads, end = stop < room ? (int)stop : room;
    int ragged = 0;
#if FA_PIECES > 0
    FA__UNROLL
#endif
    for (int j = 0; j < vectors; j++) {
        int at = (j * v->threads + v->thread) * FA__ROW(_VECTOR);
        if (FA_WHOLE == 2 && held->fill && !FA__ROW(__there)(v, 0, j)) { /* a copy of nothing leaves zeros */
            held->slot0[j * held->apart] = make_uint4(held->fill, held->fill, held->fill, held->fill);
            continue;
        }
        if (FA__ROW(__no_ends)(v) || (v->width == 16 && at >= v->shift && at + FA__ROW(_VECTOR) <= end)) {
            uint32_t to = fa_sm80_shared_address(held->slot0 + j * held->apart);
            int bytes = FA__ROW(__there)(v, 0, j) ? 16 : 0;
            if (v->stream) fa_sm80_copy16_of(to, v->first + at, bytes, v->policy);
            else fa_sm80_copy16(to, v->first + at, bytes);
        } else if (at >= end || at + FA__ROW(_VECTOR) <= v->shift) {
            held->slot0[j * held->apart] = make_uint4(held->fill, held->fill, held->fill, held->fill);
        } else ragged = 1;
    }
    FA__ROLL
    for (int j = 0; ragged && j < vectors; j++) {
        int at = (j * v->threads + v->thread) * FA__ROW(_VECTOR);
        if (v->width == 16 && at >= v->shift && at + FA__ROW(_VECTOR) <= end) continue;
        uint32_t raw[4] = {held->fill, held->fill, held->fill, held->fill};
        if (at < end && at + FA__ROW(_VECTOR) > v->shift) FA__ROW(__gather)(raw, v->first + at, at, v->shift, end, v->width);
        held->slot0[j * held->apart] = make_uint4(raw[0], raw[1], raw[2], raw[3]);
    }
}
FA__FN void FA__ROW(_wait)(void) {
    fa_sm80_copy_commit();
    fa_sm80_copy_wait(0);
}
FA__FN int64_t FA__ROW(_held_pieces)(const FA__ROW(_view) * v) { return FA__ROW(_pieces)(v); }
FA__FN int FA__ROW(_keeps)(const FA__ROW(_view) * v, int tensors) {
    (void)v;
    return FA_PIECES > 0 && tensors * FA_PIECES <= 4; /* that is up to 32 floats */
}
FA__FN void FA__ROW(_get)(float *x, const FA__ROW(_held) * held, const FA__ROW(_view) * v, int64_t piece) {
    uint32_t raw[4 * FA__ROW(_VECTORS)];
    if (FA_PIECES > 0 || held->slot0) {
        FA__UNROLL
        for (int j = 0; j < FA__ROW(_VECTORS); j++) {
            uint4 slot = held->slot0[((int)piece * FA__ROW(_VECTORS) + j) * held->apart];
            raw[4 * j] = slot.x, raw[4 * j + 1] = slot.y, raw[4 * j + 2] = slot.z, raw[4 * j + 3] = slot.w;
        }
    } else {
        FA__ROW(__fetch)(raw, v, piece, held->fill);
    }
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) FA__ROW(__unpack)(x + j * FA__ROW(_VECTOR), raw + 4 * j);
}
#endif
