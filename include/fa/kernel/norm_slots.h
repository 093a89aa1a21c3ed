/* norm_slots.h: rows of any length and alignment, in shared memory (GPU): the forward of norm_rows.h, and the first pass of its
 * backward over rows of several segments. A row that there is no room for is brought in chunks, each time that it is looked at.
 * Everything is in loops, and once: this is not the way of most rows, and compiles in a third of what it would take otherwise.
 */

FA__FN FA__LOOP(_row_view) FA__LOOP(_open)(const fa_matrix *m, const FA__PARAMS *p, int64_t row, const fa_team *team) {
    const int real = row < p->rows.rows;
    return FA__LOOP(_row_at)(fa__address(m, real ? row : 0, 0, sizeof(FA__ELEMENT)), real ? p->rows.cols : 0, team);
}
/* Of each tensor of a row a thread has a slot for each piece that is there; those of the second one follow those of the first. */
FA__FN uint4 *FA__LOOP(_second)(const FA__PARAMS *p, uint4 *slots) { return (uint4 *)((unsigned char *)slots + p->rows.slot_bytes); }

/* Starts bringing pieces of one or two tensors into the slots. */
FA__FN void FA__LOOP(_bring)(const FA__PARAMS *p, FA__LOOP(_row_view) view, const FA__LOOP(_row_view) * other, int tensors, uint4 *slots, int piece, int count) {
    FA__ROLL
    for (int tensor = 0; tensor < tensors; tensor++) {
        if (tensor) view = *other, slots = FA__LOOP(_second)(p, slots);
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
    enum { FA__LENGTH = FA__LOOP(_row_LENGTH), FA__MEAN = 0, FA__SQUARES, FA__RESULTS };
    float x[FA__LENGTH], gamma[FA__LENGTH], beta[FA__LENGTH], mean = 0.0f, rstd = 0.0f;
    const int apart = (int)blockDim.x, results = p->y.data || p->sum.data;
    const FA__LOOP(_row_view) view = FA__LOOP(_open)(&p->x, p, row, team);
    const int pieces = (int)FA__LOOP(_row_pieces)(&view), chunk = p->rows.chunk < pieces ? p->rows.chunk : pieces > 0 ? pieces : 1;
    FA__ROLL
    for (int look = FA__CENTERED ? FA__MEAN : FA__SQUARES, fresh = 1; look < FA__RESULTS + results; look++, fresh = chunk < pieces) {
        float sum = 0.0f, squares = 0.0f;
        FA__ROLL
        for (int from = 0; from < pieces; from += chunk) {
            uint4 *slot = (uint4 *)place->slots + threadIdx.x;
            const int stop = from + chunk < pieces ? from + chunk : pieces;
            if (fresh) {
                const FA__LOOP(_row_view) residual = FA__LOOP(_whole)(&p->residual, p, row, &view);
                FA__LOOP(_bring)(p, view, &residual, 1 + (p->residual.data != NULL), slot, from, stop - from);
                FA__LOOP(_row_wait)();
                if (p->rows.tensors > 1) FA__LOOP(_mix)(p, row, &view, slot, from, stop - from);
            }
            FA__ROLL
            for (int piece = from; look < FA__RESULTS && piece < stop; piece++, slot += apart) {
                FA__LOOP(_see)(x, p, slot);
                FA__LOOP(_row_pad)(x, &view, piece, mean);
                FA__UNROLL
                for (int i = 0; i < FA__LENGTH; i++) x[i] -= mean;
                sum += FA__LOOP(_reduce_sum_of)(x, FA__LENGTH), squares += FA__LOOP(_reduce_dot_of)(x, x, FA__LENGTH);
            }
            FA__ROLL
            for (int piece = from; look == FA__RESULTS && piece < stop; piece++, slot += apart) {
                FA__LOOP(_see)(x, p, slot);
                FA__LOOP(_row_weights)(gamma, &view, piece, 0, p->gamma, FA_WEIGHT_DTYPE, 1.0f);
                if (FA__CENTERED) FA__LOOP(_row_weights)(beta, &view, piece, 0, p->beta, FA_WEIGHT_DTYPE, 0.0f);
                /* The sum is written here and not above, so that it may take the place of what it is made of. */
                FA__ROLL
                for (int is_y = !p->sum.data; is_y < 2; is_y++) {
                    FA__LOOP(_row_view) to = FA__LOOP(_whole)(is_y ? &p->y : &p->sum, p, row, &view);
                    FA__UNROLL
                    for (int i = 0; is_y && i < FA__LENGTH; i++) x[i] = FA__CENTERED ? (x[i] - mean) * rstd * gamma[i] + beta[i] : x[i] * rstd * gamma[i];
                    FA__LOOP(_row_store)(&to, piece, x);
                }
            }
        }
        if (look == FA__RESULTS) return;
        /* The first look finds the mean nearly, the second one what it is off, and the squares about that. */
        FA__LOOP(_reduce_sum2)(&sum, &squares, team, place->shared);
        sum *= p->inverse_cols, squares *= p->inverse_cols;
        if (FA__CENTERED && (look == FA__MEAN || fabsf(sum) < INFINITY)) mean += sum; /* infinite, not NaN, if a number is */
        if (FA__CENTERED) squares -= sum * sum;
        rstd = fa__rsqrt((squares < 0.0f ? 0.0f : squares) + p->eps); /* NaN remains */
        if (look < FA__SQUARES || row >= p->rows.rows || team->thread > 0) continue;
        if (p->rstd) p->rstd[row] = rstd;
        if (FA__CENTERED && p->mean) p->mean[row] = mean;
    }
}

/* The first pass over rows of several segments, a row at a time, piece by piece: what their sweep needs to know of the whole row. */
FA__FN void FA__LOOP(_first_pass)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    enum { FA__LENGTH = FA__LOOP(_row_LENGTH), FA__AHEAD = FA__SLOT_CHUNK - 1 };
    float x[FA__LENGTH], w[FA__LENGTH], gamma[FA__LENGTH], a = 0.0f, b = 0.0f;
    uint4 *slots = (uint4 *)place->slots + threadIdx.x, word;
    const int real = row < p->rows.rows, apart = (int)blockDim.x;
    const FA__LOOP(_row_view) s = FA__LOOP(_open)(&p->sum, p, row, team), d_y = FA__LOOP(_whole)(&p->d_y, p, row, &s);
    const float mean = FA__CENTERED && real ? p->mean[row] : 0.0f;
    const int pieces = (int)FA__LOOP(_row_pieces)(&s);
    FA__ROLL
    for (int piece = -FA__AHEAD; piece < pieces; piece++) { /* slots take turns */
        const int next = piece + FA__AHEAD, turn = piece % FA__SLOT_CHUNK * apart;
        if (next < pieces) FA__LOOP(_bring)(p, s, &d_y, 2, slots + next % FA__SLOT_CHUNK * apart, next, 1);
        fa_sm80_copy_commit();
        if (piece < 0) continue;
        fa_sm80_copy_wait(FA__AHEAD);
        word = slots[turn];
        FA__LOOP(_row__unpack)(x, (const uint32_t *)&word);
        word = FA__LOOP(_second)(p, slots)[turn];
        FA__LOOP(_row__unpack)(w, (const uint32_t *)&word);
        FA__LOOP(_row_weights)(gamma, &s, piece, 0, p->gamma, FA_WEIGHT_DTYPE, 1.0f);
        FA__UNROLL
        for (int i = 0; i < FA__LENGTH; i++) x[i] -= mean, w[i] *= gamma[i];
        a += FA__LOOP(_reduce_sum_of)(w, FA__LENGTH), b += FA__LOOP(_reduce_dot_of)(w, x, FA__LENGTH);
    }
    FA__LOOP(_reduce_sum2)(&a, &b, team, place->shared);
    if (!real || team->thread > 0) return;
    p->sums.row_values[2 * p->rows.rows + row] = FA__CENTERED ? a * p->inverse_cols : 0.0f;
    p->sums.row_values[3 * p->rows.rows + row] = b * p->rstd[row] * p->inverse_cols;
}
