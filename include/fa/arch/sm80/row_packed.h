/* sm80/row_packed.h: rows that lie in shared memory without a gap, as kernel/rows_gpu_packed.h brings them there, a
 * slot for each tensor, in which they begin as far behind a boundary of 16 bytes as in memory. A thread has some
 * neighbouring elements of its row, and takes them one by one, which shared memory delivers as fast as vectors,
 * wherever a row begins. Results take the place of the first tensor, which is why a thread reads all that it has
 * before it writes any of it. */
enum {
    FA__ROW(_LENGTH) = FA_COLS / FA_THREADS,
    FA__ROW(_PARTS) = 1,
    FA__ROW(_PART) = FA__ROW(_LENGTH),
    FA__ROW(_KEPT) = FA_PIECES,
    FA__ROW(_WHOLE) = 0,
    FA__ROW(__ENDS) = 0
};
FA__FN FA__ROW(_view) FA__ROW(_at)(const void *row, int64_t cols, const fa_team *team) {
    FA__ROW(_view) v = FA__ROW(__view_of)(row, cols, team);
    v.phase = team->phase;
    v.each = ((int)cols + team->threads - 1) >> fa_sm80_lowest_bit((uint32_t)team->threads);
    v.own = (int)cols - team->thread * v.each;
    if (v.own > v.each) v.own = v.each;
    return v;
}
FA__FN FA__ROW(_view) FA__ROW(_like)(const void *row, const FA__ROW(_view) * of) {
    (void)row;
    return *of;
}
FA__FN void FA__ROW(__set_policy)(FA__ROW(_view) * v, uint64_t policy) { (void)v, (void)policy; }
FA__FN int64_t FA__ROW(_pieces)(const FA__ROW(_view) * v) { return (void)v, FA_PIECES; }
FA__FN int FA__ROW(_count)(const FA__ROW(_view) * v, int64_t piece) { return (void)v, (void)piece, FA__ROW(_LENGTH); }
FA__FN int64_t FA__ROW(_col)(const FA__ROW(_view) * v, int64_t piece, int i) { return v->thread * v->each + (int)piece * FA__ROW(_LENGTH) + i; }
/* Whether no thread has anything of a piece; whether this one has its element i. */
FA__FN int FA__ROW(__none)(const FA__ROW(_view) * v, int64_t piece) { return piece > 0 && (int)piece * FA__ROW(_LENGTH) >= v->each; }
FA__FN int FA__ROW(__there)(const FA__ROW(_view) * v, int64_t piece, int i) { return (int)piece * FA__ROW(_LENGTH) + i < v->own; }
FA__FN void FA__ROW(_add_at)(float *x, const FA__ROW(_view) * v, int64_t piece, int64_t col, float value) {
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_LENGTH); i++) x[i] += FA__ROW(_col)(v, piece, i) == (int)col && FA__ROW(__there)(v, piece, i) ? value : 0.0f;
}

/* What lies outside of vectors: nothing. */
typedef struct FA__ROW(__ends) {
    int count;
} FA__ROW(__ends);
FA__FN FA__ROW(__ends) FA__ROW(__ends_of)(const FA__ELEMENT **first, int64_t *cols) {
    FA__ROW(__ends) e = {0};
    return (void)first, (void)cols, e;
}
FA__FN int FA__ROW(__end)(int *col, const FA__ROW(__ends) * e, int i, const fa_team *team) { return (void)col, (void)e, (void)i, (void)team, 0; }

/* This thread's first element, where rows begin in a slot. */
FA__FN FA__ELEMENT *FA__ROW(__mine)(void *slot, const FA__ROW(_view) * v) {
    return (FA__ELEMENT *)slot + ((int)threadIdx.x >> fa_sm80_lowest_bit((uint32_t)v->threads)) * (int)v->cols + v->thread * v->each;
}
typedef struct FA__ROW(_held) {
    float x[FA_PIECES * FA__ROW(_LENGTH)];
} FA__ROW(_held);
FA__FN void FA__ROW(__take)(float *x, void *slot, const FA__ROW(_view) * v, int64_t piece, float fill) {
    const FA__ELEMENT *from = FA__ROW(__mine)(slot, v) + piece * FA__ROW(_LENGTH);
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_LENGTH); i++) x[i] = FA__ROW(__there)(v, piece, i) ? fa_load_element(from, i, FA_DTYPE) : fill;
}
FA__FN void FA__ROW(_hold)(FA__ROW(_held) * held, void *slot0, const FA__ROW(_view) * v, float fill) {
    FA__UNROLL
    for (int piece = 0; piece < FA_PIECES; piece++) {
        if (FA__ROW(__none)(v, piece)) break;
        FA__ROW(__take)(held->x + piece * FA__ROW(_LENGTH), slot0, v, piece, fill);
    }
}
FA__FN void FA__ROW(_wait)(void) {}
FA__FN int64_t FA__ROW(_held_pieces)(const FA__ROW(_view) * v) { return (void)v, FA_PIECES; }
FA__FN int FA__ROW(_keeps)(const FA__ROW(_view) * v, int tensors) { return (void)v, tensors == 1; }
FA__FN void FA__ROW(_get)(float *x, const FA__ROW(_held) * held, const FA__ROW(_view) * v, int64_t piece) {
    (void)v;
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_LENGTH); i++) x[i] = held->x[(int)piece * FA__ROW(_LENGTH) + i];
}
FA__FN void FA__ROW(_store)(const FA__ROW(_view) * v, int64_t piece, const float *x) {
    FA__ELEMENT *to = FA__ROW(__mine)(fa__shared + v->phase, v) + piece * FA__ROW(_LENGTH), raw[FA__ROW(_LENGTH)];
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_LENGTH); i++) {
#if FA__IS_HALF
        if (i % 2) continue; /* two are rounded at once */
        const uint32_t two = FA_DTYPE == FA_F16 ? fa_sm80_pack_f16(x[i], x[i + 1]) : fa_sm80_pack_bf16(x[i], x[i + 1]);
        raw[i] = (FA__ELEMENT)two, raw[i + 1] = (FA__ELEMENT)(two >> 16);
#else
        raw[i] = x[i];
#endif
    }
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_LENGTH); i++)
        if (FA__ROW(__there)(v, piece, i)) to[i] = raw[i];
}
/* A row that is looked at once. */
typedef struct FA__ROW(_scan) {
    FA__ROW(_view) view;
    int piece, thread, threads;
} FA__ROW(_scan);
typedef struct FA__ROW(_flight) {
    float x[FA__ROW(_LENGTH)];
} FA__ROW(_flight);
FA__FN FA__ROW(_scan) FA__ROW(_scan_of)(const void *row, int64_t cols, const fa_team *team) {
    const FA__ROW(_scan) s = {FA__ROW(_at)(row, cols, team), 0, team->thread, team->threads};
    return s;
}
FA__FN int FA__ROW(_scan_full)(const FA__ROW(_scan) * s) { return (void)s, 0; }
FA__FN int FA__ROW(_scan_more)(const FA__ROW(_scan) * s) { return !FA__ROW(__none)(&s->view, s->piece); }
FA__FN int FA__ROW(_scan_count)(const FA__ROW(_scan) * s) { return (void)s, FA__ROW(_LENGTH); }
FA__FN int FA__ROW(_scan_edges)(const FA__ROW(_scan) * s) { return (void)s, 0; }
FA__FN int64_t FA__ROW(_scan_edge)(const FA__ROW(_scan) * s, int i) { return (void)s, i; }
FA__FN void FA__ROW(_scan_start)(FA__ROW(_flight) * f, const FA__ROW(_scan) * s, int part, const int full, float fill) {
    (void)part, (void)full;
    FA__ROW(__take)(f->x, fa__shared + s->view.phase, &s->view, s->piece, fill);
}
FA__FN void FA__ROW(_scan_next)(FA__ROW(_flight) * f, FA__ROW(_scan) * s) { (void)f, s->piece++; }
FA__FN void FA__ROW(_scan_begin)(FA__ROW(_flight) * f, FA__ROW(_scan) * s, float fill) {
    FA__ROW(_scan_start)(f, s, 0, 0, fill);
    FA__ROW(_scan_next)(f, s);
}
FA__FN void FA__ROW(_scan_land)(float *x, const FA__ROW(_flight) * f, const FA__ROW(_scan) * s, int part, float fill) {
    (void)s, (void)part, (void)fill;
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_LENGTH); i++) x[i] = f->x[i];
}
FA__FN void FA__ROW(_scan_pad)(float *x, const FA__ROW(_flight) * f, const FA__ROW(_scan) * s, int part, float value) {
    (void)f, (void)part;
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_LENGTH); i++) x[i] = FA__ROW(__there)(&s->view, s->piece - 1, i) ? x[i] : value;
}
FA__FN float FA__ROW(_scan_max)(const FA__ROW(_flight) * f, float start) {
    float largest = start;
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_LENGTH); i++) largest = fa__maxf(f->x[i], largest);
    return largest;
}

/* Starts copying some bytes to a slot, by all threads of a block. What lies before them in the first vector is
 * copied, too; what is in the last one, if that is not theirs, element by element. */
FA__FN void FA__ROW(_bring)(unsigned char *slot, const char *from, int bytes, uint64_t policy) {
    enum { FA__SIZE = sizeof(FA__ELEMENT) };
    const int phase = (int)((unsigned)(uintptr_t)from & 15u), end = phase + bytes, whole = end & ~15;
    from -= phase;
    FA__ROLL
    for (int at = 16 * (int)threadIdx.x; at < whole; at += 16 * (int)blockDim.x) {
        /* Opaque: of an address whose base is the same in all threads, beside a policy, CUDA 13.0's assembler makes
         * an illegal instruction. */
        const int to = fa_sm80_opaque((int)fa_sm80_shared_address(slot + at));
        fa_sm80_copy16_of((uint32_t)to, from + at, 16, policy);
    }
    FA__ROLL
    for (int at = (whole > phase ? whole : phase) + FA__SIZE * (int)threadIdx.x; at < end; at += FA__SIZE * (int)blockDim.x)
        *(FA__ELEMENT *)(slot + at) = *(const FA__ELEMENT *)(from + at);
}
/* Copies them back, from where they begin in a slot: by elements, what lies in no whole vector, or all if they do
 * not begin at the same phase. */
FA__FN void FA__ROW(_send)(char *to, const unsigned char *slot, int bytes) {
    enum { FA__SIZE = sizeof(FA__ELEMENT) };
    const unsigned phase = (unsigned)(uintptr_t)to & 15u;
    const int before = phase == ((unsigned)(uintptr_t)slot & 15u) ? (int)(0u - phase & 15u) : bytes, head = before < bytes ? before : bytes;
    const int inner = (bytes - head) & ~15;
    FA__ROLL
    for (int at = head + 16 * (int)threadIdx.x; at < head + inner; at += 16 * (int)blockDim.x) {
        const uint4 words = *(const uint4 *)(slot + at);
        fa_sm80_store16(to + at, (const uint32_t *)&words);
    }
    FA__ROLL
    for (int i = FA__SIZE * (int)threadIdx.x; i < bytes - inner; i += FA__SIZE * (int)blockDim.x) {
        const int at = i < head ? i : i + inner;
        *(FA__ELEMENT *)(to + at) = *(const FA__ELEMENT *)(slot + at);
    }
}
