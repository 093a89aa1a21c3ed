/* sm80/row_once.h: rows that are looked at once, piece by piece, the next one under way while one is looked at.
 * Vectors lie on boundaries of 16 bytes; what a row has before the first and behind the last are its edges. */

typedef struct FA__ROW(_scan) {
    uint64_t next;       /* address of the next vector of this thread that is not under way */
    int64_t left;        /* vectors from there to the row's last, with it */
    int step;            /* bytes from one of this thread's to the next */
    int head;            /* elements before the first vector */
    int64_t inner, cols; /* elements of vectors; of the row */
    int thread, threads;
} FA__ROW(_scan);
typedef struct FA__ROW(_flight) {
    uint32_t raw[4 * FA__ROW(_VECTORS)];
    int has; /* vectors of the piece that exist, of all threads, from this thread's first on */
} FA__ROW(_flight);

FA__FN FA__ROW(_scan) FA__ROW(_scan_of)(const void *row, int64_t cols, const fa_team *team) {
    FA__ROW(_scan) s;
    const uint64_t first = fa_sm80_opaque_address((uint64_t)(uintptr_t)row); /* or what follows from it would stay in registers */
    s.head = (int)((0u - (unsigned)first) & 15u) / (int)sizeof(FA__ELEMENT);
    if (s.head > cols) s.head = (int)cols;
    const uint64_t vectors = (uint64_t)(cols - s.head) / FA__ROW(_VECTOR);
    s.cols = cols;
    s.inner = (int64_t)(vectors * FA__ROW(_VECTOR));
    s.thread = team->thread;
    s.threads = team->threads;
    s.step = s.threads * 16;
    s.left = (int64_t)vectors - s.thread;
    s.next = fa_sm80_opaque_address(first + (uint64_t)(unsigned)(s.head * (int)sizeof(FA__ELEMENT) + s.thread * 16));
    return s;
}
FA__FN int FA__ROW(__scan_room)(const FA__ROW(_scan) * s) {
    const int room = FA__ROW(_VECTORS) * s->threads;
    return s->left < room ? (int)s->left : room;
}
/* Whether all parts of the next piece are there, and whether any is. */
FA__FN int FA__ROW(_scan_full)(const FA__ROW(_scan) * s) { return s->left > (FA__ROW(_VECTORS) - 1) * s->threads; }
FA__FN int FA__ROW(_scan_more)(const FA__ROW(_scan) * s) { return s->left > 0; }
FA__FN int FA__ROW(_scan_count)(const FA__ROW(_scan) * s) {
    (void)s;
    return FA__ROW(_PART);
}
FA__FN int FA__ROW(_scan_edges)(const FA__ROW(_scan) * s) { return (int)(s->cols - s->inner); }
FA__FN int64_t FA__ROW(_scan_edge)(const FA__ROW(_scan) * s, int i) { return i < s->head ? i : s->inner + i; }

/* Starts a part of the next piece, which is full or not. */
FA__FN void FA__ROW(_scan_start)(FA__ROW(_flight) * f, const FA__ROW(_scan) * s, int part, const int full, float fill) {
    const void *from = (const void *)(uintptr_t)(s->next + (uint64_t)(unsigned)(part * s->step));
    if (full) {
        fa_sm80_load16(f->raw + 4 * part, from);
    } else {
        FA__UNROLL
        for (int i = 0; i < 4; i++) f->raw[4 * part + i] = FA__ROW(__fill)(fill);
        if (part * s->threads < FA__ROW(__scan_room)(s)) fa_sm80_load16(f->raw + 4 * part, from);
    }
}
FA__FN void FA__ROW(_scan_next)(FA__ROW(_flight) * f, FA__ROW(_scan) * s) {
    f->has = FA__ROW(__scan_room)(s);
    s->next = fa_sm80_opaque_address(s->next + (uint64_t)(unsigned)(FA__ROW(_VECTORS) * s->step));
    s->left -= FA__ROW(_VECTORS) * s->threads;
}
FA__FN void FA__ROW(_scan_begin)(FA__ROW(_flight) * f, FA__ROW(_scan) * s, float fill) {
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) FA__ROW(_scan_start)(f, s, j, 0, fill);
    FA__ROW(_scan_next)(f, s);
}
FA__FN void FA__ROW(_scan_land)(float *x, const FA__ROW(_flight) * f, const FA__ROW(_scan) * s, int part, float fill) {
    (void)s, (void)fill;
    FA__ROW(__unpack)(x, f->raw + 4 * part);
}
FA__FN void FA__ROW(_scan_pad)(float *x, const FA__ROW(_flight) * f, const FA__ROW(_scan) * s, int part, float value) {
    if (part * s->threads < f->has) return;
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_PART); i++) x[i] = value;
}
/* Of halves, two at a time. */
FA__FN float FA__ROW(_scan_max)(const FA__ROW(_flight) * f, float start) {
#if FA__IS_HALF
    uint32_t chain[2] = {f->raw[0], f->raw[1]};
    float low, high;
    FA__UNROLL
    for (int i = 2; i < 4 * FA__ROW(_VECTORS); i++)
        chain[i % 2] = FA_DTYPE == FA_F16 ? fa_sm80_max_f16(chain[i % 2], f->raw[i]) : fa_sm80_max_bf16(chain[i % 2], f->raw[i]);
    chain[0] = FA_DTYPE == FA_F16 ? fa_sm80_max_f16(chain[0], chain[1]) : fa_sm80_max_bf16(chain[0], chain[1]);
    fa_sm80_unpack(&low, &high, chain[0], FA_DTYPE);
    return fa__maxf(low, fa__maxf(high, start));
#else
    float chain[4] = {start, start, start, start};
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_LENGTH); i++) chain[i % 4] = fa__maxf(fa__from_bits(f->raw[i]), chain[i % 4]);
    return fa__maxf(fa__maxf(chain[0], chain[1]), fa__maxf(chain[2], chain[3]));
#endif
}
