/* sm80/row.h: rows on GPUs. A vector is 16 bytes; vector i of a piece is thread i % threads's number i / threads, so that
 * a warp's load is one stretch of 512 bytes, and a thread's loads of a piece are all under way before the first is used. */

enum {
    FA__ROW(_VECTOR) = 16 / (int)sizeof(FA__ELEMENT), /* elements of a vector */
    FA__ROW(_VECTORS) = ((FA_COLS + FA_THREADS - 1) / FA_THREADS + FA__ROW(_VECTOR) - 1) / FA__ROW(_VECTOR), /* of a piece */
    FA__ROW(_LENGTH) = FA__ROW(_VECTORS) * FA__ROW(_VECTOR),
    FA__ROW(_PARTS) = FA__ROW(_VECTORS),
    FA__ROW(_PART) = FA__ROW(_VECTOR),
    FA__ROW(_KNOWN) = FA_PIECES > 0,
    FA__ROW(_WHOLE) = FA_WHOLE
};

/* Whether vector j of a piece is the row's: rows of whole vectors (FA_WHOLE 2) may have fewer than their team holds. What the
 * threads have in common is by itself, here and in the address: then it needs no registers of theirs. */
FA__FN int FA__ROW(__there)(const FA__ROW(_view) * v, int64_t piece, int j) {
    return FA_WHOLE < 2 || v->thread * FA__ROW(_VECTOR) < (int)v->cols - ((int)piece * FA__ROW(_VECTORS) + j) * v->threads * FA__ROW(_VECTOR);
}
FA__FN FA__ELEMENT *FA__ROW(__vector)(const FA__ROW(_view) * v, int64_t piece, int j) {
    if (FA_WHOLE < 2) return v->first + piece * FA__ROW(_LENGTH) * v->threads + (j * v->threads + v->thread) * FA__ROW(_VECTOR);
    uint64_t mine = fa_sm80_opaque_address((uint64_t)(uintptr_t)(v->first + v->thread * FA__ROW(_VECTOR)));
    return (FA__ELEMENT *)(uintptr_t)mine + ((int)piece * FA__ROW(_VECTORS) + j) * v->threads * FA__ROW(_VECTOR);
}
/* The widest access that an address allows, up to 16 bytes. */
FA__FN int FA__ROW(__width)(const void *first) {
    unsigned bits = (unsigned)(uintptr_t)first | 16u;
    return (int)(bits & (0u - bits));
}
FA__FN FA__ROW(_view) FA__ROW(_at)(const void *row, int64_t cols, const fa_team *team) {
    FA__ROW(_view) v;
    v.first = (FA__ELEMENT *)(uintptr_t)row;
    v.cols = cols;
    v.shift = 0;
    v.width = 16;
    v.whole = FA_WHOLE > 0 || team->whole;
    if (!v.whole) {
        int64_t room = (int64_t)FA__ROW(_LENGTH) * (FA_PIECES > 0 ? FA_PIECES : 1) * team->threads;
        v.shift = (int)((unsigned)(uintptr_t)row % 16u) / (int)sizeof(FA__ELEMENT);
        if (cols <= room && cols + v.shift > room) v.shift = 0; /* the known pieces shall be enough: narrower accesses instead */
        v.first -= v.shift;
        v.width = FA__ROW(__width)(v.first);
    }
    v.stream = 0;
    v.thread = team->thread;
    v.threads = team->threads;
    return v;
}
FA__FN FA__ROW(_view) FA__ROW(_like)(const void *row, const FA__ROW(_view) * of) {
    FA__ROW(_view) v = *of;
    v.first = (FA__ELEMENT *)(uintptr_t)row;
    if (v.whole) return v;
    v.first -= v.shift;
    v.width = FA__ROW(__width)(v.first);
    return v;
}

FA__FN void FA__ROW(_stream)(FA__ROW(_view) * v) { v->stream = 1; } /* all do, from the first-level cache's point of view */

/* Elements from the start of a piece to the row's end: at most those of the piece, negative for none. */
FA__FN int FA__ROW(__left)(const FA__ROW(_view) * v, int64_t piece) {
    int room = FA__ROW(_LENGTH) * v->threads;
    int64_t left = v->cols == 0 ? 0 : v->cols + v->shift - piece * room;
    return left < room ? (int)left : room;
}
/* Whether every thread's vectors of a piece are the row's, from `begin` to `end`, and each is read or written at once. */
FA__FN int FA__ROW(__whole)(const FA__ROW(_view) * v, int begin, int end) {
    return v->width == 16 && begin == 0 && end == FA__ROW(_LENGTH) * v->threads;
}
FA__FN int64_t FA__ROW(_pieces)(const FA__ROW(_view) * v) {
    if (FA_PIECES > 0) return FA_PIECES;
    int64_t room = (int64_t)FA__ROW(_LENGTH) * v->threads;
    return (v->cols + v->shift + room - 1) / room;
}
FA__FN int FA__ROW(_count)(const FA__ROW(_view) * v, int64_t piece) {
    (void)v, (void)piece;
    return FA__ROW(_LENGTH);
}
FA__FN int64_t FA__ROW(_col)(const FA__ROW(_view) * v, int64_t piece, int i) {
    int in_piece = (i / FA__ROW(_VECTOR) * v->threads + v->thread) * FA__ROW(_VECTOR) + i % FA__ROW(_VECTOR) - v->shift;
    return piece * FA__ROW(_LENGTH) * v->threads + in_piece;
}

FA__FN int FA__ROW(_real)(const FA__ROW(_view) * v, int64_t piece) {
    int real = 0;
    if (v->whole) {
        FA__UNROLL
        for (int j = 0; j < FA__ROW(_VECTORS); j++) real += FA__ROW(__there)(v, piece, j) ? FA__ROW(_VECTOR) : 0;
        return real;
    }
    int begin = piece == 0 ? v->shift : 0, end = FA__ROW(__left)(v, piece);
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) {
        int at = (j * v->threads + v->thread) * FA__ROW(_VECTOR), stop = at + FA__ROW(_VECTOR);
        int n = (stop < end ? stop : end) - (at > begin ? at : begin);
        real += n > 0 ? n : 0;
    }
    return real;
}
FA__FN void FA__ROW(_pad)(float *x, const FA__ROW(_view) * v, int64_t piece, float value) {
    if (v->whole) {
        FA__UNROLL
        for (int i = 0; FA_WHOLE == 2 && i < FA__ROW(_LENGTH); i++)
            if (!FA__ROW(__there)(v, piece, i / FA__ROW(_VECTOR))) x[i] = value;
        return;
    }
    int begin = piece == 0 ? v->shift : 0, end = FA__ROW(__left)(v, piece);
    if (begin == 0 && end == FA__ROW(_LENGTH) * v->threads) return;
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) {
        int at = (j * v->threads + v->thread) * FA__ROW(_VECTOR);
        if (at >= begin && at + FA__ROW(_VECTOR) <= end) continue;
        FA__UNROLL
        for (int i = 0; i < FA__ROW(_VECTOR); i++)
            if (at + i < begin || at + i >= end) x[j * FA__ROW(_VECTOR) + i] = value;
    }
}

/* ---- weights ---- */

/* A vector's worth of weights by the widest loads, four floats or eight halves. */
FA__FN void FA__ROW(__weight_vector)(float *w, const void *from, int dtype) {
    uint32_t words[FA__ROW(_VECTOR)];
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_VECTOR); i += 4) {
        if (dtype == FA_F16 || dtype == FA_BF16) fa_sm80_load_const(words + i / 2, (const uint16_t *)from + i, 2);
        else fa_sm80_load_const(words + i, (const float *)from + i, 4);
    }
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_VECTOR); i += 2) {
        if (dtype == FA_F16) fa_sm80_unpack_f16(w + i, w + i + 1, words[i / 2]);
        else if (dtype == FA_BF16) fa_sm80_unpack_bf16(w + i, w + i + 1, words[i / 2]);
        else w[i] = fa__from_bits(words[i]), w[i + 1] = fa__from_bits(words[i + 1]);
    }
}
FA__FN const float *FA__ROW(_weights)(float *w, const FA__ROW(_view) * v, int64_t piece, int part, const void *row, int dtype,
                                      float missing) {
    if (FA_WHOLE == 2) {
        /* No branches: what is not there has the first weights, and where there are none, one vector of them is for all. */
        const unsigned vector = (unsigned)(v->thread + ((int)piece * FA__ROW(_VECTORS) + part) * v->threads);
        const unsigned at = FA__ROW(__there)(v, piece, part) ? vector : 0, bytes = row ? FA__ROW(_VECTOR) * (unsigned)fa_dtype_bytes(dtype) : 0;
        const void *from = row ? row : fa_sm80_weights_of(missing, dtype);
        FA__ROW(__weight_vector)(w, (const char *)from + (uint64_t)at * bytes, dtype);
        return w;
    }
    const int at = (part * v->threads + v->thread) * FA__ROW(_VECTOR);
    const char *from = (const char *)row + (piece * FA__ROW(_LENGTH) * v->threads - v->shift + at) * fa_dtype_bytes(dtype);
    int begin = 0, end = 0, whole = v->whole && row;
    if (!whole) {
        begin = piece == 0 ? v->shift : 0, end = row ? FA__ROW(__left)(v, piece) : 0;
        whole = at >= begin && at + FA__ROW(_VECTOR) <= end &&
                ((unsigned)(uintptr_t)from & 15u & (unsigned)(FA__ROW(_VECTOR) * fa_dtype_bytes(dtype) - 1)) == 0;
    }
    if (whole) {
        FA__ROW(__weight_vector)(w, from, dtype);
    } else if (at >= begin && at + FA__ROW(_VECTOR) <= end) {
        FA__UNROLL
        for (int i = 0; i < FA__ROW(_VECTOR); i++) w[i] = fa_load_element(from, i, dtype);
    } else {
        FA__UNROLL
        for (int i = 0; i < FA__ROW(_VECTOR); i++)
            w[i] = at + i >= begin && at + i < end ? fa__load_or_nan(from, 0, i, dtype, 1) : missing;
    }
    return w;
}
FA__FN void FA__ROW(_put)(const FA__ROW(_view) * v, int64_t piece, float *row, const float *x) {
    int end = FA__ROW(__left)(v, piece);
    row += piece * FA__ROW(_LENGTH) * v->threads - v->shift;
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) {
        int at = (j * v->threads + v->thread) * FA__ROW(_VECTOR);
        const float *from = x + j * FA__ROW(_VECTOR);
        FA__UNROLL
        for (int i = 0; i < FA__ROW(_VECTOR); i += 4)
            if (at < end) *(float4 *)(row + at + i) = make_float4(from[i], from[i + 1], from[i + 2], from[i + 3]);
    }
}

/* ---- a vector as four words ---- */

FA__FN void FA__ROW(__unpack)(float *x, const uint32_t *raw) {
    FA__UNROLL
    for (int i = 0; i < 4; i++) {
#if FA_DTYPE == FA_F16
        fa_sm80_unpack_f16(x + 2 * i, x + 2 * i + 1, raw[i]);
#elif FA_DTYPE == FA_BF16
        fa_sm80_unpack_bf16(x + 2 * i, x + 2 * i + 1, raw[i]);
#else
        x[i] = fa__from_bits(raw[i]);
#endif
    }
}
FA__FN void FA__ROW(__pack)(uint32_t *raw, const float *x) {
    FA__UNROLL
    for (int i = 0; i < 4; i++) {
#if FA_DTYPE == FA_F16
        raw[i] = fa_sm80_pack_f16(x[2 * i], x[2 * i + 1]);
#elif FA_DTYPE == FA_BF16
        raw[i] = fa_sm80_pack_bf16(x[2 * i], x[2 * i + 1]);
#else
        raw[i] = fa__bits(x[i]);
#endif
    }
}
FA__FN uint32_t FA__ROW(__fill)(float fill) {
    float x[FA__ROW(_VECTOR)];
    uint32_t raw[4];
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_VECTOR); i++) x[i] = fill;
    FA__ROW(__pack)(raw, x);
    return raw[0];
}

/* A vector that is not read, or written, in one piece: it has ends of the row in it, or an address that is not a
 * multiple of 16. Its elements are numbered from the start of the piece: `at` is its first, those from `begin` to `end`
 * are the row's. */
FA__FN void FA__ROW(__gather)(uint32_t *raw, const FA__ELEMENT *from, int at, int begin, int end, int width) {
    if (at < begin || at + FA__ROW(_VECTOR) > end) width = (int)sizeof(FA__ELEMENT);
    if (width == 8) {
        FA__UNROLL
        for (int i = 0; i < 2; i++) {
            uint2 two = ((const uint2 *)from)[i];
            raw[2 * i] = two.x, raw[2 * i + 1] = two.y;
        }
#if FA_DTYPE == FA_F16 || FA_DTYPE == FA_BF16
    } else if (width == 4) {
        FA__UNROLL
        for (int i = 0; i < 4; i++) raw[i] = ((const uint32_t *)from)[i];
    } else {
        FA__UNROLL
        for (int i = 0; i < 8; i++)
            if (at + i >= begin && at + i < end)
                raw[i / 2] = i % 2 ? (raw[i / 2] & 0xFFFFu) | (uint32_t)from[i] << 16 : (raw[i / 2] & 0xFFFF0000u) | from[i];
#else
    } else {
        FA__UNROLL
        for (int i = 0; i < 4; i++)
            if (at + i >= begin && at + i < end) raw[i] = fa__bits(from[i]);
#endif
    }
}
FA__FN void FA__ROW(__scatter)(FA__ELEMENT *to, const uint32_t *raw, int at, int begin, int end, int width) {
    if (at < begin || at + FA__ROW(_VECTOR) > end) width = (int)sizeof(FA__ELEMENT);
    if (width == 8) {
        FA__UNROLL
        for (int i = 0; i < 2; i++) ((uint2 *)to)[i] = make_uint2(raw[2 * i], raw[2 * i + 1]);
#if FA_DTYPE == FA_F16 || FA_DTYPE == FA_BF16
    } else if (width == 4) {
        FA__UNROLL
        for (int i = 0; i < 4; i++) ((uint32_t *)to)[i] = raw[i];
    } else {
        FA__UNROLL
        for (int i = 0; i < 8; i++)
            if (at + i >= begin && at + i < end) to[i] = (uint16_t)(i % 2 ? raw[i / 2] >> 16 : raw[i / 2]);
#else
    } else {
        FA__UNROLL
        for (int i = 0; i < 4; i++)
            if (at + i >= begin && at + i < end) to[i] = fa__from_bits(raw[i]);
#endif
    }
}

/* ---- pieces ---- */

/* Vectors of a piece, as words; those that hold nothing of the row are made of `fill`. The ragged ones come last, in a
 * loop that is not unrolled: few rows have more than two, and the code for one is long. */
FA__FN void FA__ROW(__fetch)(uint32_t *raw, const FA__ROW(_view) * v, int64_t piece, uint32_t fill) {
    const FA__ELEMENT *from = v->first + piece * FA__ROW(_LENGTH) * v->threads;
    int begin = 0, end = 0, whole = v->whole;
    uint32_t ragged = 0;
    if (!whole) {
        begin = piece == 0 ? v->shift : 0, end = FA__ROW(__left)(v, piece);
        whole = FA__ROW(__whole)(v, begin, end);
    }
    if (whole) {
        FA__UNROLL
        for (int j = 0; j < FA__ROW(_VECTORS); j++) {
            const FA__ELEMENT *at = FA__ROW(__vector)(v, piece, j);
            if (FA_WHOLE < 2) {
                fa_sm80_load16(raw + 4 * j, at);
            } else {
                FA__UNROLL
                for (int i = 0; i < 4; i++) raw[4 * j + i] = fill;
                fa_sm80_load16_if(FA__ROW(__there)(v, piece, j), raw + 4 * j, at);
            }
        }
        return;
    }
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) {
        int at = (j * v->threads + v->thread) * FA__ROW(_VECTOR);
        FA__UNROLL
        for (int i = 0; i < 4; i++) raw[4 * j + i] = fill;
        if (v->width == 16 && at >= begin && at + FA__ROW(_VECTOR) <= end) fa_sm80_load16(raw + 4 * j, from + at);
        else if (at < end && at + FA__ROW(_VECTOR) > begin) ragged |= 1u << j;
    }
    for (; ragged; ragged &= ragged - 1) {
        int which = fa_sm80_lowest_bit(ragged), at = (which * v->threads + v->thread) * FA__ROW(_VECTOR);
        uint32_t words[4] = {fill, fill, fill, fill};
        FA__ROW(__gather)(words, from + at, at, begin, end, v->width);
        FA__UNROLL
        for (int i = 0; i < 4 * FA__ROW(_VECTORS); i++) raw[i] = i / 4 == which ? words[i % 4] : raw[i];
    }
}

FA__FN void FA__ROW(_load)(float *x, const FA__ROW(_view) * v, int64_t piece, float fill) {
    uint32_t raw[4 * FA__ROW(_VECTORS)];
    FA__ROW(__fetch)(raw, v, piece, FA__ROW(__fill)(fill));
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) FA__ROW(__unpack)(x + j * FA__ROW(_VECTOR), raw + 4 * j);
}

FA__FN void FA__ROW(_store)(const FA__ROW(_view) * v, int64_t piece, const float *x) {
    FA__ELEMENT *to = v->first + piece * FA__ROW(_LENGTH) * v->threads;
    int begin = 0, end = 0, whole = v->whole;
    uint32_t raw[4 * FA__ROW(_VECTORS)], ragged = 0;
    if (!whole) {
        begin = piece == 0 ? v->shift : 0, end = FA__ROW(__left)(v, piece);
        whole = FA__ROW(__whole)(v, begin, end);
    }
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) FA__ROW(__pack)(raw + 4 * j, x + j * FA__ROW(_VECTOR));
    if (whole) {
        FA__UNROLL
        for (int j = 0; j < FA__ROW(_VECTORS); j++)
            if (FA__ROW(__there)(v, piece, j)) fa_sm80_store16(FA__ROW(__vector)(v, piece, j), raw + 4 * j);
        return;
    }
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) {
        int at = (j * v->threads + v->thread) * FA__ROW(_VECTOR);
        if (v->width == 16 && at >= begin && at + FA__ROW(_VECTOR) <= end) fa_sm80_store16(to + at, raw + 4 * j);
        else if (at < end && at + FA__ROW(_VECTOR) > begin) ragged |= 1u << j;
    }
    for (; ragged; ragged &= ragged - 1) {
        int which = fa_sm80_lowest_bit(ragged), at = (which * v->threads + v->thread) * FA__ROW(_VECTOR);
        uint32_t words[4] = {raw[0], raw[1], raw[2], raw[3]};
        FA__UNROLL
        for (int i = 4; i < 4 * FA__ROW(_VECTORS); i++) words[i % 4] = i / 4 == which ? raw[i] : words[i % 4];
        FA__ROW(__scatter)(to + at, words, at, begin, end, v->width);
    }
}

/* ---- rows that are looked at once, or an element of one ---- */

/* Vectors lie on boundaries of 16 bytes. What a row has before the first and behind the last are its edges. */
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
    int has; /* from this thread's first vector to the last of the piece */
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
#if FA_DTYPE == FA_F16 || FA_DTYPE == FA_BF16
    uint32_t chain[2] = {f->raw[0], f->raw[1]};
    float low, high;
    FA__UNROLL
    for (int i = 2; i < 4 * FA__ROW(_VECTORS); i++)
        chain[i % 2] = FA_DTYPE == FA_F16 ? fa_sm80_max_f16(chain[i % 2], f->raw[i]) : fa_sm80_max_bf16(chain[i % 2], f->raw[i]);
    chain[0] = FA_DTYPE == FA_F16 ? fa_sm80_max_f16(chain[0], chain[1]) : fa_sm80_max_bf16(chain[0], chain[1]);
    if (FA_DTYPE == FA_F16) fa_sm80_unpack_f16(&low, &high, chain[0]);
    else fa_sm80_unpack_bf16(&low, &high, chain[0]);
    return fa__maxf(low, fa__maxf(high, start));
#else
    float chain[4] = {start, start, start, start};
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_LENGTH); i++) chain[i % 4] = fa__maxf(fa__from_bits(f->raw[i]), chain[i % 4]);
    return fa__maxf(fa__maxf(chain[0], chain[1]), fa__maxf(chain[2], chain[3]));
#endif
}
FA__FN void FA__ROW(_add_at)(float *x, const FA__ROW(_view) * v, int64_t piece, int64_t col, float value) {
    const int64_t from_first = col - FA__ROW(_col)(v, piece, 0);
    if ((uint64_t)from_first >= (uint64_t)(FA__ROW(_LENGTH) * v->threads)) return;
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) {
        unsigned at = (unsigned)from_first - (unsigned)(j * FA__ROW(_VECTOR) * v->threads);
        if (at < FA__ROW(_VECTOR)) {
            FA__UNROLL
            for (int i = 0; i < FA__ROW(_VECTOR); i++) x[j * FA__ROW(_VECTOR) + i] += (int)at == i ? value : 0.0f;
        }
    }
}
/* Converted where it is used: at once, it would have to be waited for at once. */
FA__FN float FA__ROW(_late)(FA__ELEMENT element) {
#if FA_DTYPE == FA_F16 || FA_DTYPE == FA_BF16
    element = (uint16_t)fa_sm80_opaque(element);
#else
    element = fa__from_bits((uint32_t)fa_sm80_opaque((int)fa__bits(element)));
#endif
    return fa_load_element(&element, 0, FA_DTYPE);
}

/* ---- rows that are looked at more than once ---- */

#if FA_HOLD == FA_FRAGMENT
enum { FA__ROW(_KEPT) = FA_PIECES > 0 ? FA_PIECES : 1 };
typedef struct FA__ROW(_held) {
    uint32_t raw[4 * FA__ROW(_VECTORS) * FA__ROW(_KEPT)];
} FA__ROW(_held);
FA__FN size_t FA__ROW(_held_bytes)(const FA__ROW(_view) * v) {
    (void)v;
    return 0;
}
FA__FN void FA__ROW(_hold)(FA__ROW(_held) * held, void *slots, const FA__ROW(_view) * v, float fill) {
    (void)slots;
    FA__UNROLL
    for (int piece = 0; piece < FA__ROW(_KEPT); piece++)
        FA__ROW(__fetch)(held->raw + 4 * FA__ROW(_VECTORS) * piece, v, piece, FA__ROW(__fill)(fill));
}
FA__FN void FA__ROW(_wait)(void) {}
FA__FN int64_t FA__ROW(_held_pieces)(const FA__ROW(_view) * v) {
    (void)v;
    return FA__ROW(_KEPT);
}
/* The words anew, with a zero that the compiler does not know: else it keeps the floats that it once made of them. */
FA__FN void FA__ROW(_renew)(FA__ROW(_held) * held, int none) {
    FA__UNROLL
    for (int i = 0; i < 4 * FA__ROW(_VECTORS) * FA__ROW(_KEPT); i++) held->raw[i] ^= (uint32_t)none;
}
/* Of two tensors, the words take fewer registers than the floats do. */
FA__FN int FA__ROW(_keeps)(const FA__ROW(_view) * v, int tensors) {
    (void)v;
    return tensors == 1 || FA__ROW(_VECTOR) == 4;
}
FA__FN void FA__ROW(_get)(float *x, const FA__ROW(_held) * held, const FA__ROW(_view) * v, int64_t piece) {
    (void)v;
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) {
        uint32_t words[4]; /* which the compiler must not find to be those of an earlier call, and keep its floats */
        FA__UNROLL
        for (int i = 0; i < 4; i++) words[i] = (uint32_t)fa_sm80_opaque((int)held->raw[4 * ((int)piece * FA__ROW(_VECTORS) + j) + i]);
        FA__ROW(__unpack)(x + j * FA__ROW(_VECTOR), words);
    }
}
#else
enum { FA__ROW(_KEPT) = FA_PIECES };
/* A thread's vectors in shared memory, which nobody else looks at: no barrier is needed. */
typedef struct FA__ROW(_held) {
    uint4 *slots; /* of this thread, one for each thread of the block apart; NULL: the row is read again */
    int apart;
    uint32_t fill;
} FA__ROW(_held);
FA__FN size_t FA__ROW(_held_bytes)(const FA__ROW(_view) * v) {
    return (size_t)FA__ROW(_pieces)(v) * FA__ROW(_VECTORS) * blockDim.x * 16;
}
FA__FN void FA__ROW(_reach)(FA__ROW(_held) * held, void *slots, float fill) {
    held->fill = FA__ROW(__fill)(fill);
    held->apart = (int)blockDim.x;
    held->slots = FA_PIECES > 0 || slots ? (uint4 *)slots + threadIdx.x : NULL;
}
/* Starts bringing the vector of a piece of one vector into a slot; what is none of the row becomes 0. */
FA__FN void FA__ROW(_bring)(void *slot, const FA__ROW(_view) * v, int64_t piece) {
    const int at = v->thread * FA__ROW(_VECTOR), begin = piece == 0 ? v->shift : 0, end = FA__ROW(__left)(v, piece);
    const FA__ELEMENT *from = v->first + piece * FA__ROW(_LENGTH) * v->threads + at;
    if (v->whole || (v->width == 16 && at >= begin && at + FA__ROW(_VECTOR) <= end)) {
        fa_sm80_copy16(fa_sm80_shared_address(slot), from, 16);
    } else {
        uint32_t raw[4] = {0, 0, 0, 0};
        if (at < end && at + FA__ROW(_VECTOR) > begin) FA__ROW(__gather)(raw, from, at, begin, end, v->width);
        *(uint4 *)slot = make_uint4(raw[0], raw[1], raw[2], raw[3]);
    }
}
FA__FN void FA__ROW(_hold)(FA__ROW(_held) * held, void *slots, const FA__ROW(_view) * v, float fill) {
    FA__ROW(_reach)(held, slots, fill);
    if (FA_PIECES == 0 && !slots) return;
    const int pieces = (int)FA__ROW(_pieces)(v), vectors = pieces * FA__ROW(_VECTORS);
    const int64_t stop = v->cols == 0 ? 0 : v->cols + v->shift;
    const int room = vectors * FA__ROW(_VECTOR) * v->threads, end = stop < room ? (int)stop : room;
    int ragged = 0;
#if FA_PIECES > 0
    FA__UNROLL
#endif
    for (int j = 0; j < vectors; j++) {
        int at = (j * v->threads + v->thread) * FA__ROW(_VECTOR);
        if (v->whole || (v->width == 16 && at >= v->shift && at + FA__ROW(_VECTOR) <= end))
            fa_sm80_copy16(fa_sm80_shared_address(held->slots + j * held->apart), v->first + at, FA__ROW(__there)(v, 0, j) ? 16 : 0);
        else ragged = 1;
    }
    FA__ROLL
    for (int j = 0; ragged && j < vectors; j++) {
        int at = (j * v->threads + v->thread) * FA__ROW(_VECTOR);
        if (v->width == 16 && at >= v->shift && at + FA__ROW(_VECTOR) <= end) continue;
        uint32_t raw[4] = {held->fill, held->fill, held->fill, held->fill};
        if (at < end && at + FA__ROW(_VECTOR) > v->shift) FA__ROW(__gather)(raw, v->first + at, at, v->shift, end, v->width);
        held->slots[j * held->apart] = make_uint4(raw[0], raw[1], raw[2], raw[3]);
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
    if (FA_PIECES > 0 || held->slots) {
        FA__UNROLL
        for (int j = 0; j < FA__ROW(_VECTORS); j++) {
            uint4 slot = held->slots[((int)piece * FA__ROW(_VECTORS) + j) * held->apart];
            raw[4 * j] = slot.x, raw[4 * j + 1] = slot.y, raw[4 * j + 2] = slot.z, raw[4 * j + 3] = slot.w;
        }
    } else {
        FA__ROW(__fetch)(raw, v, piece, held->fill);
    }
    FA__UNROLL
    for (int j = 0; j < FA__ROW(_VECTORS); j++) FA__ROW(__unpack)(x + j * FA__ROW(_VECTOR), raw + 4 * j);
}
#endif
