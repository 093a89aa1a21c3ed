/* norm_vectors.h: rows in shared memory as vectors of 16 bytes, wherever they begin (GPU). A thread has the same columns in every
 * row: its vectors begin at multiples of 16 bytes from column 0, not at those of memory, so that weights are whole vectors, too.
 *
 * Rows of whole vectors on boundaries of 16 bytes (FA__EVEN) are copied as they are. Of any other row memory's vectors are copied,
 * from the one in which it begins to the one in which it ends, and no more of that than there is; a thread makes each of its
 * vectors of two of them. Results go the other way: a lane's vector of memory begins in that of the lane before.
 */

/* How a row, or a segment of one, lies in memory. */
typedef struct FA__LOOP(_span) {
    char *first;               /* of its elements */
    FA__LOOP(_index) cols;     /* 0: there is no such row */
} FA__LOOP(_span);
FA__FN FA__LOOP(_span) FA__LOOP(_span_of)(const fa_matrix *m, int64_t row, int64_t first, FA__LOOP(_index) cols) {
    FA__LOOP(_span) s;
    s.first = (char *)fa__address(m, row, first, sizeof(FA__ELEMENT));
    s.cols = cols;
    return s;
}
/* Bytes from a boundary to the row. */
FA__FN int FA__LOOP(_phase)(const FA__LOOP(_span) * s) { return FA__EVEN ? 0 : (int)((unsigned)(uintptr_t)s->first & 15u); }

/* What is copied of one: bytes from the boundary on. Of the last rows of a matrix whole vectors alone: of 16 bytes that reach beyond it
 * no more than a row's would be read, too, but compute-sanitizer sees all of them. */
typedef struct FA__LOOP(_reading) {
    const char *from;
    FA__LOOP(_index) bytes;
    int left; /* bytes of the last vector, if it is not copied; else 0 */
    uint64_t policy;
} FA__LOOP(_reading);
FA__FN FA__LOOP(_reading) FA__LOOP(_read)(const fa_matrix *m, const FA__PARAMS *p, int64_t row, int64_t first, FA__LOOP(_index) cols) {
    const FA__LOOP(_span) s = FA__LOOP(_span_of)(m, row, first, cols);
    FA__LOOP(_reading) r;
    r.from = s.first - FA__LOOP(_phase)(&s);
    r.bytes = cols > 0 ? cols * (FA__LOOP(_index))sizeof(FA__ELEMENT) + FA__LOOP(_phase)(&s) : 0;
    r.left = !FA__EVEN && (p->rows.rows - 1 - row) * m->stride_row < 16 ? (int)(r.bytes & 15) : 0;
    r.bytes -= r.left;
    r.policy = p->rows.policy;
    return r;
}
/* Starts copying a vector of memory into a slot; what is none of the row and behind it becomes 0. */
FA__FN void FA__LOOP(_fetch)(void *slot, const FA__LOOP(_reading) * r, FA__LOOP(_index) vector) {
    const FA__LOOP(_index) left = r->bytes - vector * 16;
    fa_sm80_copy16_of(fa_sm80_shared_address(slot), r->from + (left > 0 ? vector * 16 : 0), left <= 0 ? 0 : left < 16 ? (int)left : 16, r->policy);
}
/* Brings the last vector, if this is it, and all copies that were started before have landed. */
FA__FN void FA__LOOP(_fetch_left)(void *slot, const FA__LOOP(_reading) * r, FA__LOOP(_index) vector) {
    if (vector * 16 != r->bytes) return;
    FA__ROLL
    for (int i = 0; i < r->left / (int)sizeof(FA__ELEMENT); i++) ((FA__ELEMENT *)slot)[i] = ((const FA__ELEMENT *)(r->from + r->bytes))[i];
}
/* The vector of columns that begins in a slot and ends in the next one. */
FA__FN void FA__LOOP(_get)(float *x, const uint4 *slot, const uint4 *next, const FA__LOOP(_span) * s) {
    uint4 word = *slot;
    const int phase = FA__LOOP(_phase)(s);
    if (phase) {
        uint32_t raw[8] = {word.x, word.y, word.z, word.w};
        word = *next;
        raw[4] = word.x, raw[5] = word.y, raw[6] = word.z, raw[7] = word.w;
        fa_sm80_shift((uint32_t *)&word, raw, phase);
    }
    FA__LOOP(_row__unpack)(x, (const uint32_t *)&word);
}
/* Writes the columns from `col` on. All lanes of a warp call it. */
FA__FN void FA__LOOP(_put)(const FA__LOOP(_span) * s, const fa_team *team, FA__LOOP(_index) col, const float *x) {
    enum { FA__LENGTH = FA__LOOP(_row_LENGTH), FA__BYTES = (int)sizeof(FA__ELEMENT) };
    char *to = s->first + col * FA__BYTES;
    uint32_t raw[8];
    FA__LOOP(_row__pack)(raw + 4, x);
#if FA__EVEN
    (void)team;
    if (col < s->cols) fa_sm80_store16(to, raw + 4);
#else
    /* The first lane has no vector before its own, the last one none behind: what they have of such a vector they write by
     * elements. So does whoever has the row's end. */
    const int phase = FA__LOOP(_phase)(s), own = phase ? FA__LENGTH - phase / FA__BYTES : FA__LENGTH, left = s->cols - col < 2 * FA__LENGTH ? (int)(s->cols - col) : 2 * FA__LENGTH;
    const int lanes = team->threads < 32 ? team->threads : 32, lane = (int)threadIdx.x & (lanes - 1);
    const int full = (!phase || lane > 0) && own <= left, next = !phase || (lane + 1 < lanes && FA__LENGTH + own <= left);
    uint32_t words[4];
    FA__UNROLL
    for (int i = 0; i < 4; i++) { /* whatever the phase: that of another team's row in the warp may differ */
        words[i] = fa_sm80_shuffle_up(raw[4 + i]);
        raw[i] = phase ? words[i] : raw[4 + i];
    }
    fa_sm80_shift(words, raw, (16 - phase) & 15);
    if (full) fa_sm80_store16(to - phase, words);
    if (full && next) return;
    FA__UNROLL
    for (int i = 0; i < FA__LENGTH; i++) {
        if ((i < own ? full : next) || i >= left) continue;
        if (FA__BYTES == 2) ((uint16_t *)to)[i] = (uint16_t)(raw[4 + i / 2] >> i % 2 * 16);
        else ((uint32_t *)to)[i] = raw[4 + i % 4];
    }
#endif
}
