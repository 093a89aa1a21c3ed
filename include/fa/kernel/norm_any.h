/* norm_any.h: norm_rows.h for rows that begin anywhere and have any length (GPU). Rows are copied into shared memory by
 * vectors of 16 bytes, from the one in which a row begins to the one in which it ends. A thread has the same columns in
 * every row: its vectors begin at multiples of 16 bytes from column 0, not at those of memory, and each is assembled
 * from two of these. Results go by way of shared memory, too, unless they are aligned to 16 bytes. All code is in
 * loops, and there only once: few rows take this way, but it is compiled with every instance. */
enum { FA__LOOP(_VECTOR) = 16 / (int)sizeof(FA__ELEMENT) };

/* The threads of a team that are in this block, and so have its shared memory in common. */
typedef struct FA__LOOP(_crew) {
    int thread, threads;
} FA__LOOP(_crew);
FA__FN FA__LOOP(_crew) FA__LOOP(_crew_of)(const fa_team *team) {
    FA__LOOP(_crew) c;
    c.thread = team->threads <= 32 ? team->thread : (int)threadIdx.x;
    c.threads = team->threads <= 32 ? team->threads : (int)blockDim.x;
    return c;
}
FA__FN void FA__LOOP(_meet)(const FA__LOOP(_crew) * c) {
    if (c->threads > 32) fa_sm80_barrier();
    else fa_sm80_warp_barrier();
}

/* Some columns of a row: where they begin in memory, `phase` bytes behind a boundary of 16 bytes, and end, `bytes`
 * behind it; `careful`: fewer than 16 elements of the matrix may lie behind the row. */
typedef struct FA__LOOP(_span) {
    char *from; /* the boundary */
    int phase, bytes, careful;
} FA__LOOP(_span);
FA__FN int FA__LOOP(_phase)(const fa_matrix *m, int64_t row, int64_t first) {
    return (int)((unsigned)(uintptr_t)fa__address(m, row, first, sizeof(FA__ELEMENT)) & 15u);
}
FA__FN FA__LOOP(_span) FA__LOOP(_span_of)(const fa_matrix *m, const FA__PARAMS *p, int64_t row, int64_t first, int count) {
    FA__LOOP(_span) s;
    s.phase = FA__LOOP(_phase)(m, row, first);
    s.from = (char *)fa__address(m, row, first, sizeof(FA__ELEMENT)) - s.phase;
    s.bytes = count > 0 ? count * (int)sizeof(FA__ELEMENT) + s.phase : 0;
    s.careful = (p->rows.rows - 1 - row) * m->stride_row < 16;
    return s;
}
/* Its elements from byte `at` to byte `end`, from one place to another. */
FA__FN void FA__LOOP(_copy)(void *to, const void *from, int at, int end) {
    FA__ROLL
    for (; at < end; at += (int)sizeof(FA__ELEMENT)) *(FA__ELEMENT *)((char *)to + at) = *(const FA__ELEMENT *)((const char *)from + at);
}
/* Starts copying them. The copy of the last vector reads no further than they go, but compute-sanitizer takes it for
 * a read of all 16 bytes: so in the last rows of a matrix (`careful`) its elements are copied one by one. The copy
 * of the first vector also reads the end of the row before, which another team may be writing, if the result takes
 * the place of what is read: these bytes are dropped. */
FA__FN void FA__LOOP(_bring)(unsigned char *slot, const FA__LOOP(_span) * s, uint64_t policy, const FA__LOOP(_crew) * c) {
    FA__ROLL
    for (int at = 16 * c->thread; at < s->bytes; at += 16 * c->threads) {
        const int left = s->bytes - at < 16 ? s->bytes - at : 16;
        if (left < 16 && s->careful) FA__LOOP(_copy)(slot, s->from, at > s->phase ? at : s->phase, at + left);
        else fa_sm80_copy16_of(fa_sm80_shared_address(slot + at), s->from + at, left, policy);
    }
}
/* Vector `v` of a slot's columns, of which `left` remain from there on; elements after these become `missing`. If none
 * remain the first vector is read: what follows a slot may be being written. */
FA__FN void FA__LOOP(_slot_load)(float *x, const unsigned char *slot, int v, int phase, int left, float missing) {
    const uint4 *from = (const uint4 *)slot + (left > 0 ? v : 0);
    uint4 word = from[0];
    uint32_t raw[8] = {word.x, word.y, word.z, word.w};
    if (phase) {
        word = from[1];
        raw[4] = word.x, raw[5] = word.y, raw[6] = word.z, raw[7] = word.w;
        fa_sm80_shift(raw, raw, phase);
    }
    FA__LOOP(_row__unpack)(x, raw);
    if (left >= FA__LOOP(_VECTOR)) return;
    FA__UNROLL
    for (int i = 0; i < FA__LOOP(_VECTOR); i++) x[i] = i < left ? x[i] : missing;
}
/* Writes vector `v` of a span: into a slot, unless it is a whole aligned vector of memory. FA__LOOP(_send) then
 * writes what is in the slot. */
FA__FN void FA__LOOP(_slot_store)(unsigned char *slot, const FA__LOOP(_span) * s, int v, const float *x) {
    uint32_t raw[4];
    FA__LOOP(_row__pack)(raw, x);
    if (!s->phase && 16 * v + 16 <= s->bytes) {
        fa_sm80_store16(s->from + 16 * v, raw);
        return;
    }
    FA__ELEMENT *to = (FA__ELEMENT *)(slot + s->phase) + v * FA__LOOP(_VECTOR);
    FA__UNROLL
    for (int i = 0; i < FA__LOOP(_VECTOR); i++) {
        if (sizeof *to == 2) to[i] = (FA__ELEMENT)(raw[i / 2] >> i % 2 * 16);
        else ((uint32_t *)to)[i] = raw[i % 4];
    }
}
FA__FN void FA__LOOP(_send)(const unsigned char *slot, const FA__LOOP(_span) * s, const FA__LOOP(_crew) * c) {
    FA__LOOP(_meet)(c);
    FA__ROLL
    for (int at = (s->phase ? 0 : s->bytes & ~15) + 16 * c->thread; at < s->bytes; at += 16 * c->threads) {
        if (at >= s->phase && at + 16 <= s->bytes) {
            const uint4 word = *(const uint4 *)(slot + at);
            fa_sm80_store16(s->from + at, (const uint32_t *)&word);
        } else {
            FA__LOOP(_copy)(s->from, slot, at > s->phase ? at : s->phase, at + 16 < s->bytes ? at + 16 : s->bytes);
        }
    }
    FA__LOOP(_meet)(c);
}
/* Weights from column `col` on, of which there are `left`. */
FA__FN void FA__LOOP(_weights)(float *w, const void *row, int64_t col, int left, float missing) {
    const char *from = (const char *)row + col * fa_dtype_bytes(FA_WEIGHT_DTYPE);
    FA__UNROLL
    for (int i = 0; i < FA__LOOP(_VECTOR); i++) w[i] = missing;
    if (!row) return;
    if (left >= FA__LOOP(_VECTOR) && ((uintptr_t)from & (unsigned)(4 * fa_dtype_bytes(FA_WEIGHT_DTYPE) - 1)) == 0) {
        FA__UNROLL
        for (int i = 0; i < FA__LOOP(_VECTOR); i += 4) {
            uint32_t words[4];
            fa_sm80_load_const(words, from + i * fa_dtype_bytes(FA_WEIGHT_DTYPE), fa_dtype_bytes(FA_WEIGHT_DTYPE));
            FA__UNROLL
            for (int j = 0; j < 4; j++) w[i + j] = fa_load_element(words, j, FA_WEIGHT_DTYPE);
        }
        return;
    }
    FA__UNROLL
    for (int i = 0; i < FA__LOOP(_VECTOR); i++)
        if (i < left) w[i] = fa_load_element(from, i, FA_WEIGHT_DTYPE);
}
/* Sets the dropped ones of some elements to 0, of which the first is number `first` of its tensor. A thread has the
 * elements of a counter. */
FA__FN void FA__LOOP(_drop)(unsigned char *x, const fa_dropout *dropout, uint64_t first, int count, const FA__LOOP(_crew) * c) {
    FA__ROLL
    for (int i = 4 * c->thread - (int)(first % 4); i < count; i += 4 * c->threads) {
        const uint32_t kept = fa__dropout_kept(dropout, dropout->offset + (first + (uint64_t)(int64_t)i) / 4, 1);
        FA__UNROLL
        for (int j = 0; j < 4; j++)
            if (i + j >= 0 && i + j < count && !(kept >> j & 1)) ((FA__ELEMENT *)x)[i + j] = 0;
    }
}

/* One pass over a row is for its statistics, and one for its results. A thread's squares are about the mean of its
 * first vector: its elements may be far from 0, but are mostly not far from that mean compared with their own
 * spread. Where they are, so that more than half of a row's squares are that distance, another pass takes them about
 * the row's mean. The row's columns are in shared memory, a share in each block of a cluster; or as many as there is
 * room for at a time, copied anew for each pass. With p->first_pass it finds what a backward of several segments
 * needs to know of the whole row, its means of w and of w n: x is then what was normalised, and the residual d_y. */
FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    enum { FA__LENGTH = FA__LOOP(_VECTOR), FA__MEAN = 0, FA__SQUARES, FA__AGAIN, FA__RESULTS };
    const FA__LOOP(_crew) crew = FA__LOOP(_crew_of)(team);
    const int there = row < p->rows.rows, first_pass = p->first_pass;
    const int64_t share = ((p->rows.cols + team->blocks - 1) / team->blocks + FA__LENGTH - 1) / FA__LENGTH * FA__LENGTH, begin = team->block * share;
    const int64_t stop = begin + share < p->rows.cols ? begin + share : p->rows.cols, end = there ? stop : begin;
    const int held = p->rows.tensors + (p->rows.even ? 0 : (p->y.data != NULL) + (p->sum.data != NULL));
    unsigned char *const slot0 = place->slot0 + ((int)threadIdx.x >> p->rows.team_bits) * held * p->rows.slot_bytes;
    unsigned char *const of_sum = slot0 + p->rows.tensors * p->rows.slot_bytes, *const of_y = slot0 + (held - 1) * p->rows.slot_bytes;
    float mean = first_pass && FA__CENTERED && there ? p->mean[row] : 0.0f, rstd = first_pass && there ? p->rstd[row] : 0.0f;
    float number = 0.0f, middle = 0.0f, sum = 0.0f, squares = 0.0f; /* of what a thread sees; sums are relative to `middle` */
    int fresh = 1;
    FA__ROLL
    for (int look = FA__CENTERED && !first_pass ? FA__MEAN : FA__SQUARES; look < FA__RESULTS + (first_pass ? 0 : p->y.data || p->sum.data); look++) {
        const int known = FA__CENTERED && !first_pass && look == FA__SQUARES;
        int64_t from = begin;
        if (!known) do { /* at least once: all take part */
            const int count = from < end ? (int)(end - from < p->rows.chunk ? end - from : p->rows.chunk) : 0;
            int phase[2] = {0, 0};
            if (fresh) FA__LOOP(_meet)(&crew); /* nobody reads what was there */
            FA__UNROLL
            for (int tensor = 0; tensor < 2; tensor++) {
                if (tensor && !p->residual.data) break;
                const FA__LOOP(_span) s = FA__LOOP(_span_of)(tensor ? &p->residual : &p->x, p, there ? row : 0, from, count);
                if (fresh) FA__LOOP(_bring)(slot0 + tensor * p->rows.slot_bytes, &s, p->rows.policy, &crew);
                phase[tensor] = s.phase;
            }
            if (fresh) {
                fa_sm80_copy_commit();
                fa_sm80_copy_wait(0);
                FA__LOOP(_meet)(&crew);
                if (p->dropout.threshold > 0) {
                    FA__LOOP(_drop)(slot0 + phase[0], &p->dropout, (uint64_t)(row * p->rows.cols + from), count, &crew);
                    FA__LOOP(_meet)(&crew);
                }
            }
            const FA__LOOP(_span) sum_span = FA__LOOP(_span_of)(&p->sum, p, there ? row : 0, from, count), y_span = FA__LOOP(_span_of)(&p->y, p, there ? row : 0, from, count);
            FA__ROLL
            for (int v = crew.thread; v * FA__LENGTH < count; v += crew.threads) {
                const int left = count - v * FA__LENGTH;
                float x[FA__LENGTH], w[FA__LENGTH];
                FA__LOOP(_slot_load)(x, slot0, v, phase[0], left, mean);
                if (p->residual.data) FA__LOOP(_slot_load)(w, slot0 + p->rows.slot_bytes, v, phase[1], left, 0.0f);
                if (first_pass) {
                    float gamma[FA__LENGTH];
                    FA__LOOP(_weights)(gamma, p->gamma, from + v * FA__LENGTH, left, 1.0f);
                    FA__UNROLL
                    for (int i = 0; i < FA__LENGTH; i++) w[i] *= gamma[i], x[i] = (x[i] - mean) * rstd;
                    sum += FA__LOOP(_reduce_sum_of)(w, FA__LENGTH), squares += FA__LOOP(_reduce_dot_of)(w, x, FA__LENGTH);
                    continue;
                }
                FA__UNROLL
                for (int i = 0; i < FA__LENGTH && !p->plain; i++) x[i] = fmaf(x[i], p->dropout.scale, p->residual.data ? w[i] : 0.0f);
                if (look < FA__RESULTS) {
                    if (FA__CENTERED) {
                        const float real = left < FA__LENGTH ? (float)left : (float)FA__LENGTH;
                        if (number == 0.0f) middle = FA__LOOP(_reduce_sum_of)(x, FA__LENGTH) * fa__reciprocal(real);
                        number += real;
                        FA__UNROLL
                        for (int i = 0; i < FA__LENGTH; i++) x[i] = i < left ? x[i] - middle : 0.0f;
                        sum += FA__LOOP(_reduce_sum_of)(x, FA__LENGTH);
                    }
                    squares += FA__LOOP(_reduce_dot_of)(x, x, FA__LENGTH);
                    continue;
                }
                /* The sum is written here and not above, so that it may take the place of what it is made of. */
                if (p->sum.data) FA__LOOP(_slot_store)(of_sum, &sum_span, v, x);
                if (!p->y.data) continue;
                float gamma[FA__LENGTH];
                FA__LOOP(_weights)(gamma, p->gamma, from + v * FA__LENGTH, left, 1.0f);
                FA__LOOP(_weights)(w, p->beta, from + v * FA__LENGTH, left, 0.0f);
                FA__UNROLL
                for (int i = 0; i < FA__LENGTH; i++) x[i] = fmaf((x[i] - mean) * rstd, gamma[i], w[i]);
                FA__LOOP(_slot_store)(of_y, &y_span, v, x);
            }
            if (look == FA__RESULTS && p->sum.data) FA__LOOP(_send)(of_sum, &sum_span, &crew);
            if (look == FA__RESULTS && p->y.data) FA__LOOP(_send)(of_y, &y_span, &crew);
        } while ((from += p->rows.chunk) < stop);
        fresh = p->rows.chunk < share; /* each pass copies them anew */
        if (look == FA__RESULTS) return;
        float taken = 0.0f;
        if (look == FA__MEAN && number > 0.0f) { /* a thread's own mean, and the squares about that */
            const float off = fabsf(middle) < INFINITY ? sum * fa__reciprocal(number) : 0.0f; /* an infinite mean, not NaN, if a number is */
            taken = off * sum, squares = fmaf(-off, sum, squares), middle += off, sum = number * p->inverse_cols * middle;
        }
        if (known) { /* NaN remains */
            sum = number > 0.0f ? number * (middle - mean) : 0.0f;
            squares = number > 0.0f ? fmaf(sum, middle - mean, squares < 0.0f ? 0.0f : squares) : 0.0f;
        }
        /* First the row's mean, nearly; then what it is off, and the squares about it. */
        float all = look == FA__MEAN ? sum : sum * p->inverse_cols, all_squares = (look == FA__MEAN ? taken : squares) * p->inverse_cols;
        FA__LOOP(_reduce_sum2)(&all, &all_squares, team, place->shared);
        if (look != FA__AGAIN || rstd < 0.0f) {
            if ((known || look == FA__AGAIN) && fabsf(all) < INFINITY) {
                mean += all, all_squares = fmaf(-all, all, all_squares);
                if (all_squares < 0.0f) all_squares = 0.0f;
            } else if (look == FA__MEAN || first_pass) {
                mean = all;
            }
            /* After the first look, rstd is what of the squares is only the distance of the threads' means from
             * those of their first vectors. After the second it is 1 / sqrt(variance + eps), but negative if that
             * distance was more than the rest: then this row is looked at again, and so are those in the same warp. */
            const int doubtful = known && rstd > all_squares;
            rstd = first_pass || look == FA__MEAN ? all_squares : fa__rsqrt(all_squares + p->eps);
            if (doubtful) rstd = -rstd;
        }
        if (known && FA__OP(any)(rstd < 0.0f)) {
            number = 1e-30f, middle = mean, sum = squares = 0.0f; /* nearly 0, so that `middle` stays */
            continue;
        }
        if (look == FA__SQUARES) look++;
        if (look < FA__SQUARES || !there || team->thread > 0) continue;
        float *means = first_pass ? p->sums.row_values + 2 * p->rows.rows : p->mean, *others = first_pass ? means + p->rows.rows : p->rstd;
        if (others) others[row] = rstd;
        if (means) means[row] = mean;
    }
}

/* A worker's rows, and of these the columns of a segment, of which a thread has a vector. The next row is in flight
 * while one is used. */
FA__FN void FA__LOOP(_backward)(const FA__PARAMS *p, int64_t worker, int64_t segment, fa_team *team, FA__LOOP(_place) * place) {
    enum { FA__LENGTH = FA__LOOP(_VECTOR), FA__ALL = FA__SUMS * FA__LENGTH };
    const FA__LOOP(_crew) crew = FA__LOOP(_crew_of)(team);
    const int64_t first = segment * p->sums.length, begin = worker * p->rows.teams, step = p->sums.workers * p->rows.teams;
    const int own = (int)(p->rows.cols - first < p->sums.length ? p->rows.cols - first : p->sums.length), teams = p->rows.teams, v = crew.thread;
    const int mine = (int)threadIdx.x >> p->rows.team_bits, stage = p->rows.tensors * p->rows.slot_bytes;
    const int turns = (int)((p->rows.rows - begin + step - 1) / step); /* the same for all teams of a block */
    unsigned char *const slot0 = place->slot0 + mine * (2 * stage + p->rows.slot_bytes), *const result = slot0 + 2 * stage;
    float sums[FA__ALL], n[FA__LENGTH], w[FA__LENGTH], gamma[FA__LENGTH];
    FA__UNROLL
    for (int i = 0; i < FA__ALL; i++) sums[i] = 0.0f;
    FA__LOOP(_weights)(gamma, p->gamma, first + v * FA__LENGTH, own - v * FA__LENGTH, 1.0f);
    FA__ROLL
    for (int turn = -1; turn < turns; turn++) {
        const int64_t here = begin + mine + turn * step, coming = here + step;
        const int there = turn >= 0 && here < p->rows.rows, left = there ? own - v * FA__LENGTH : 0;
        unsigned char *now = slot0 + (turn & 1) * stage;
        fa_sm80_copy_wait(0);
        FA__LOOP(_meet)(&crew);
        FA__ROLL
        for (int tensor = 0; tensor < p->rows.tensors && turn + 1 < turns && coming < p->rows.rows; tensor++) {
            const FA__LOOP(_span) s = FA__LOOP(_span_of)(tensor == 0 ? &p->sum : tensor == 1 ? &p->d_y : &p->d_sum, p, coming, first, own);
            FA__LOOP(_bring)(slot0 + (~turn & 1) * stage + tensor * p->rows.slot_bytes, &s, p->rows.policy, &crew);
        }
        fa_sm80_copy_commit();
        if (turn < 0) continue;
        const float mean = FA__CENTERED && there ? p->mean[here] : 0.0f, rstd = there ? p->rstd[here] : 0.0f;
        FA__LOOP(_slot_load)(n, now, v, FA__LOOP(_phase)(&p->sum, here, first), left, mean);
        FA__LOOP(_slot_load)(w, now + p->rows.slot_bytes, v, FA__LOOP(_phase)(&p->d_y, here, first), left, 0.0f);
        FA__UNROLL
        for (int i = 0; i < FA__LENGTH; i++) {
            n[i] = (n[i] - mean) * rstd;
            sums[i] = fmaf(w[i], n[i], sums[i]);
            if (FA__CENTERED) sums[FA__ALL - FA__LENGTH + i] += w[i];
            w[i] *= gamma[i];
        }
        float of_w = FA__LOOP(_reduce_sum_of)(w, FA__LENGTH), of_wn = FA__LOOP(_reduce_dot_of)(w, n, FA__LENGTH);
        if (p->sums.segments > 1) {
            const float *found = p->sums.row_values + 2 * p->rows.rows + here; /* there is one team, and so a row */
            of_w = found[0], of_wn = found[p->rows.rows];
        } else {
            FA__LOOP(_reduce_sum2)(&of_w, &of_wn, team, place->shared);
            of_w *= p->inverse_cols, of_wn *= p->inverse_cols;
        }
        FA__UNROLL
        for (int i = 0; i < FA__LENGTH; i++) n[i] = (w[i] - (FA__CENTERED ? of_w : 0.0f) - n[i] * of_wn) * rstd;
        if (p->d_sum.data) {
            FA__LOOP(_slot_load)(w, now + 2 * p->rows.slot_bytes, v, FA__LOOP(_phase)(&p->d_sum, here, first), left, 0.0f);
            FA__UNROLL
            for (int i = 0; i < FA__LENGTH; i++) n[i] += w[i];
        }
        FA__ROLL
        for (int is_x = !p->d_residual.data; is_x < 1 + (p->d_x.data != NULL); is_x++) {
            const FA__LOOP(_span) to = FA__LOOP(_span_of)(is_x ? &p->d_x : &p->d_residual, p, there ? here : 0, first, there ? own : 0);
            if (is_x && p->dropout.threshold > 0) {
                const uint32_t kept = fa_dropout_kept(&p->dropout, (uint64_t)(here * p->rows.cols + first + v * FA__LENGTH), FA__LENGTH);
                FA__UNROLL
                for (int i = 0; i < FA__LENGTH; i++) n[i] = kept >> i & 1 ? n[i] * p->dropout.scale : 0.0f;
            }
            if (left > 0) FA__LOOP(_slot_store)(result, &to, v, n);
            FA__LOOP(_send)(result, &to, &crew);
        }
    }
    if (!p->sums.partial) return;
    /* The teams of a block add up theirs. */
    float *all = (float *)place->slot0;
    fa_sm80_barrier();
    FA__UNROLL
    for (int i = 0; i < FA__ALL; i++) all[i * (int)blockDim.x + (int)threadIdx.x] = sums[i];
    fa_sm80_barrier();
    FA__ROLL
    for (int i = mine; i < FA__ALL; i += teams) {
        const int col = v * FA__LENGTH + i % FA__LENGTH;
        float sum = 0.0f;
        FA__ROLL
        for (int t = 0; t < teams; t++) sum += all[i * (int)blockDim.x + t * crew.threads + v];
        if (col < own) p->sums.partial[(worker * FA__SUMS + i / FA__LENGTH) * p->sums.pitch + first + col] = sum;
    }
}
