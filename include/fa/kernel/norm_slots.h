/* norm_slots.h: rows of any length and alignment, in shared memory (GPU): the forward of norm_rows.h, and the first pass of its
 * backward over rows of several segments. A row that there is no room for is brought in chunks, each time that it is looked at.
 * Everything is in loops, and once: this is not the way of most rows, and compiles in a third of what it would take otherwise.
 */

/* A look at a piece. */
FA__FN void FA__LOOP(_look)(FA__LOOP(_looks) * l, int look, float *x, const FA__LOOP(_row_view) * in, int64_t piece) {
    FA__LOOP(_row_pad)(x, in, piece, l->mean);
    if (look == FA__LOOP(_MEAN)) l->number += (float)FA__LOOP(_row_real)(in, piece);
    FA__UNROLL
    for (int i = 0; i < FA__LOOP(_row_LENGTH); i++) x[i] -= l->mean;
    l->all += look == FA__LOOP(_MEAN) ? FA__LOOP(_reduce_sum_of)(x, FA__LOOP(_row_LENGTH)) : FA__LOOP(_reduce_dot_of)(x, x, FA__LOOP(_row_LENGTH));
}

FA__FN FA__LOOP(_row_view) FA__LOOP(_open)(const fa_matrix *m, const FA__PARAMS *p, int64_t row, const fa_team *team) {
    const int real = row < p->rows.rows;
    return FA__LOOP(_row_at)(fa__address(m, real ? row : 0, 0, sizeof(FA__ELEMENT)), real ? p->rows.cols : 0, team);
}
/* Of each tensor of a row a thread has a slot for each piece that is there; those of the second one follow those of the first. */
FA__FN uint4 *FA__LOOP(_second)(const FA__PARAMS *p, uint4 *slots) { return (uint4 *)((unsigned char *)slots + p->rows.slot_bytes); }

/* Starts bringing pieces of x, and of the residual, into the slots. */
FA__FN void FA__LOOP(_bring)(const FA__PARAMS *p, int64_t row, FA__LOOP(_row_view) view, uint4 *slots, int piece, int count) {
    FA__ROLL
    for (int tensor = 0; tensor < 1 + (p->residual.data != NULL); tensor++) {
        if (tensor) view = FA__LOOP(_whole)(&p->residual, p, row, &view), slots = FA__LOOP(_second)(p, slots);
        FA__ROLL
        for (int i = 0; i < count; i++) FA__LOOP(_row_bring)(slots + i * (int)blockDim.x, &view, piece + i);
    }
}
/* Makes of x and the residual, which are there, what is normalised: floats, in the place of both. */
FA__FN void FA__LOOP(_mix)(const FA__PARAMS *p, int64_t row, const FA__LOOP(_row_view) * x_view, uint4 *first, int piece, int count) {
    enum { FA__LENGTH = FA__LOOP(_row_LENGTH) };
    float x[FA__LENGTH], add[FA__LENGTH];
    FA__LOOP(_row_drawn) drawn = FA__LOOP(_row_draw)(x_view, (uint64_t)(row * p->rows.cols), &p->dropout);
    FA__ROLL
    for (int i = 0; i < count; i++, first += (int)blockDim.x) {
        uint4 *second = FA__LOOP(_second)(p, first), word = *first;
        FA__LOOP(_row__unpack)(x, (const uint32_t *)&word);
        if (p->dropout.threshold > 0) FA__LOOP(_row_dropout)(x, x_view, piece + i, &drawn);
        if (p->residual.data) {
            word = *second;
            FA__LOOP(_row__unpack)(add, (const uint32_t *)&word);
            FA__UNROLL
            for (int k = 0; k < FA__LENGTH; k++) x[k] += add[k];
        }
        FA__UNROLL
        for (int k = 0; k < FA__LENGTH; k += 4) *(k ? second : first) = make_uint4(fa__bits(x[k]), fa__bits(x[k + 1]), fa__bits(x[k + 2]), fa__bits(x[k + 3]));
    }
}
/* A piece of what is normalised. */
FA__FN void FA__LOOP(_see)(float *x, const FA__PARAMS *p, uint4 *first) {
    uint4 word = *first;
    if (p->rows.tensors == 1) {
        FA__LOOP(_row__unpack)(x, (const uint32_t *)&word);
        return;
    }
    FA__UNROLL
    for (int i = 0; i < FA__LOOP(_row_LENGTH); i += 4) {
        if (i) word = *FA__LOOP(_second)(p, first);
        x[i] = fa__from_bits(word.x), x[i + 1] = fa__from_bits(word.y), x[i + 2] = fa__from_bits(word.z), x[i + 3] = fa__from_bits(word.w);
    }
}

FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    enum { FA__LENGTH = FA__LOOP(_row_LENGTH), FA__RESULTS = FA__LOOP(_SQUARES) + 1 };
    float x[FA__LENGTH], gamma[FA__LENGTH], beta[FA__LENGTH];
    FA__LOOP(_looks) l = {0.0f, 0.0f, 0.0f, 0.0f};
    const int apart = (int)blockDim.x;
    const FA__LOOP(_row_view) view = FA__LOOP(_open)(&p->x, p, row, team);
    const int pieces = (int)FA__LOOP(_row_pieces)(&view), chunk = p->rows.chunk < pieces ? p->rows.chunk : pieces > 0 ? pieces : 1;
    FA__ROLL
    for (int look = FA__LOOP(_FIRST_LOOK), fresh = 1; look <= FA__RESULTS; look++, fresh = chunk < pieces) {
        FA__ROLL
        for (int from = 0; from < pieces; from += chunk) {
            uint4 *slot = (uint4 *)place->slots + threadIdx.x;
            const int stop = from + chunk < pieces ? from + chunk : pieces;
            if (fresh) {
                FA__LOOP(_bring)(p, row, view, slot, from, stop - from);
                FA__LOOP(_row_wait)();
                if (p->rows.tensors > 1) FA__LOOP(_mix)(p, row, &view, slot, from, stop - from);
            }
            FA__ROLL
            for (int piece = from; look < FA__RESULTS && piece < stop; piece++, slot += apart) {
                FA__LOOP(_see)(x, p, slot);
                FA__LOOP(_look)(&l, look, x, &view, piece);
            }
            FA__ROLL
            for (int piece = from; look == FA__RESULTS && piece < stop; piece++, slot += apart) {
                FA__LOOP(_see)(x, p, slot);
                FA__LOOP(_weights)(gamma, p, &view, 0, piece, 0, 0);
                if (FA__CENTERED) FA__LOOP(_weights)(beta, p, &view, 0, piece, 0, 1);
                /* The sum is written here and not above, so that it may take the place of what it is made of. */
                FA__ROLL
                for (int is_y = !p->sum.data; is_y < 2; is_y++) {
                    FA__LOOP(_row_view) to = FA__LOOP(_whole)(is_y ? &p->y : &p->sum, p, row, &view);
                    FA__UNROLL
                    for (int i = 0; is_y && i < FA__LENGTH; i++) x[i] = FA__CENTERED ? (x[i] - l.mean) * l.rstd * gamma[i] + beta[i] : x[i] * l.rstd * gamma[i];
                    FA__LOOP(_row_store)(&to, piece, x);
                }
            }
        }
        if (look == FA__RESULTS) break;
        FA__LOOP(_looked)(&l, look, p, team, place);
        if (look < FA__LOOP(_SQUARES) || row >= p->rows.rows || team->thread > 0) continue;
        if (p->rstd) p->rstd[row] = l.rstd;
        if (FA__CENTERED && p->mean) p->mean[row] = l.mean;
    }
}

/* The first pass over rows of several segments, a row at a time, piece by piece: what their sweep needs to know of the whole row. */
FA__FN void FA__LOOP(_first_pass)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    enum { FA__LENGTH = FA__LOOP(_row_LENGTH), FA__PRODUCTS = FA__LOOP(_SQUARES) + 1, FA__AHEAD = FA__SLOT_CHUNK - 1 };
    float x[FA__LENGTH], w[FA__LENGTH], gamma[FA__LENGTH], a = 0.0f, b = 0.0f;
    FA__LOOP(_looks) l = {0.0f, 0.0f, 0.0f, 0.0f};
    uint4 *slots = (uint4 *)place->slots + threadIdx.x, word;
    const int real = row < p->rows.rows;
    const FA__LOOP(_row_view) s = FA__LOOP(_open)(&p->sum, p, row, team), d_y = FA__LOOP(_whole)(&p->d_y, p, row, &s);
    if (p->rstd && real) l.mean = FA__CENTERED ? p->mean[row] : 0.0f, l.rstd = p->rstd[row];
    const int pieces = (int)FA__LOOP(_row_pieces)(&s), apart = (int)blockDim.x;
    FA__ROLL
    for (int look = p->rstd ? FA__PRODUCTS : FA__LOOP(_FIRST_LOOK); look <= FA__PRODUCTS; look++) {
        FA__ROLL
        for (int piece = -FA__AHEAD; piece < pieces; piece++) { /* slots take turns */
            const int next = piece + FA__AHEAD, turn = piece % FA__SLOT_CHUNK * apart;
            if (next < pieces) {
                uint4 *slot = slots + next % FA__SLOT_CHUNK * apart;
                FA__LOOP(_row_bring)(slot, &s, next);
                FA__LOOP(_row_bring)(FA__LOOP(_second)(p, slot), &d_y, next);
            }
            fa_sm80_copy_commit();
            if (piece < 0) continue;
            fa_sm80_copy_wait(FA__AHEAD);
            word = slots[turn];
            FA__LOOP(_row__unpack)(x, (const uint32_t *)&word);
            if (look < FA__PRODUCTS) {
                FA__LOOP(_look)(&l, look, x, &s, piece);
                continue;
            }
            FA__UNROLL
            for (int i = 0; i < FA__LENGTH; i++) x[i] -= l.mean;
            word = FA__LOOP(_second)(p, slots)[turn];
            FA__LOOP(_row__unpack)(w, (const uint32_t *)&word);
            FA__LOOP(_weights)(gamma, p, &s, 0, piece, 0, 0);
            FA__UNROLL
            for (int i = 0; i < FA__LENGTH; i++) w[i] *= gamma[i];
            a += FA__LOOP(_reduce_sum_of)(w, FA__LENGTH), b += FA__LOOP(_reduce_dot_of)(w, x, FA__LENGTH);
        }
        if (look < FA__PRODUCTS) FA__LOOP(_looked)(&l, look, p, team, place);
    }
    FA__LOOP(_reduce_sum2)(&a, &b, team, place->shared);
    if (!real || team->thread > 0) return;
    float *found = p->sums.row_values + 4 * row;
    found[0] = l.mean, found[1] = l.rstd, found[2] = FA__CENTERED ? a * p->inverse_cols : 0.0f, found[3] = b * l.rstd * p->inverse_cols;
}
