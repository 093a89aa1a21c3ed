/* rope_rows.h: some heads of a token, rotated: a team computes or reads its angles once, and takes heads two at a
 * time.
 *
 * A thread holds the same columns of the first half of a head and of its second half. Unless pairs are neighbours,
 * these are the first and the second elements of its pairs. Where they are neighbours, it has pairs in each half,
 * and as many angles in all. Rotating back is rotating by the negated angles, by the same function. */

#if FA__DIRECTIONS & FA__ROWS_FORWARD
/* Whether the tables have that row. */
FA__FN int FA__LOOP(__known)(const FA__PARAMS *p, int position) {
    return position >= 0 && (p->table_rows == 0 || position < p->table_rows);
}
/* Cosines and sines of `count` pairs from `pair` on. */
FA__FN void FA__LOOP(__angles)(float *c, float *s, int count, const FA__PARAMS *p, int64_t pair, int position) {
    if (p->cos) {
        const int known = FA__LOOP(__known)(p, position);
        const int64_t at = (int64_t)position * p->half + pair;
        FA__UNROLL
        for (int i = 0; i < count; i++) {
            c[i] = s[i] = NAN;
            if (known && pair + i < p->half) c[i] = fa__load_float(p->cos + at + i), s[i] = p->sign * fa__load_float(p->sin + at + i);
        }
        return;
    }
    uint32_t turns[FA__LOOP(_row_LENGTH)];
    uint64_t angle = fa__rope_angle(&p->angles, (uint32_t)pair);
    FA__UNROLL
    for (int i = 0; i < count; i++) {
        turns[i] = (uint32_t)((uint64_t)(int64_t)position * angle >> 32);
        angle = fa__high64(angle, p->angles.power[0]);
    }
    FA__UNROLL
    for (int i = 0; i < count; i++) {
        float sine;
        fa__rope_sin_cos(&sine, &c[i], turns[i]);
        s[i] = p->sign * sine;
    }
}

/* Those of a view's columns in the tables, by wide loads. */
FA__FN void FA__LOOP(__look_up)(float *c, float *s, const FA__LOOP(_row_view) * view, const FA__PARAMS *p, int64_t first, int position) {
    const int known = FA__LOOP(__known)(p, position);
    const int64_t at = (int64_t)position * p->half + first;
    const int count = FA__LOOP(_row_count)(view, 0);
    const float *cosines = FA__LOOP(_row_weights)(c, view, 0, 0, known ? p->cos + at : NULL, FA_F32, NAN);
    const float *sines = FA__LOOP(_row_weights)(s, view, 0, 0, known ? p->sin + at : NULL, FA_F32, NAN);
    FA__UNROLL
    for (int i = 0; i < count; i++) c[i] = cosines[i], s[i] = p->sign * sines[i];
}

/* Pairs that are neighbours. */
FA__FN void FA__LOOP(__neighbours)(float *x, const float *c, const float *s, int pairs) {
    FA__UNROLL
    for (int j = 0; j < pairs; j++) {
        float a = x[2 * j], b = x[2 * j + 1];
        x[2 * j] = a * c[j] - b * s[j], x[2 * j + 1] = b * c[j] + a * s[j];
    }
}

/* Where a head of the token is. */
FA__FN FA__ELEMENT *FA__LOOP(__head)(const FA__PARAMS *p, const fa_tensor *tensors, int64_t batch, int64_t token, int head) {
    const int in_k = head >= p->heads;
    const fa_tensor *t = &tensors[in_k];
    return (FA__ELEMENT *)t->data + batch * t->stride_batch + (head - (in_k ? p->heads : 0)) * t->stride_head + token * t->stride_seq;
}
/* The one that a team takes after it: groups of FA__ROPE_HEADS, `step` apart. */
FA__FN int FA__LOOP(__next)(int head, int step) { return head + (head % FA__ROPE_HEADS == FA__ROPE_HEADS - 1 ? step - FA__ROPE_HEADS + 1 : 1); }

#if FA__LANES == 1
/* A block of both halves of a head. */
FA__FN void FA__LOOP(__rotate_block)(FA__ELEMENT *to, FA__ELEMENT *to_second, const FA__ELEMENT *from, const FA__ELEMENT *second, const float *c, const float *s,
                                     int streams, int by_unit) {
    enum { FA__VECTORS = FA__LOOP(_row_BLOCK) / FA__LOOP(_row_LANES) };
    FA__CPU_OP(vec) a[FA__VECTORS], b[FA__VECTORS];
    FA__LOOP(_row__bring)(a, from), FA__LOOP(_row__bring)(b, second);
    FA__UNROLL
    for (int j = 0; j < FA__VECTORS; j++) {
        const FA__CPU_OP(vec) x = a[j], cosine = ((const FA__CPU_OP(any) *)c)[j], sine = ((const FA__CPU_OP(any) *)s)[j];
        a[j] = FA__CPU_OP(fma)(x, cosine, -(b[j] * sine)), b[j] = FA__CPU_OP(fma)(b[j], cosine, x * sine);
    }
    FA__LOOP(_row__bring_back)(to, a, streams, by_unit), FA__LOOP(_row__bring_back)(to_second, b, streams, by_unit);
}
/* Prefetches what comes a piece's length behind a block of both. */
FA__FN void FA__LOOP(__ask)(const FA__ELEMENT *from, int64_t second) {
    const uintptr_t ahead = FA__LOOP(_row_LENGTH) * sizeof(FA__ELEMENT);
    FA__LOOP(_row__ask_block)((uintptr_t)from + ahead), FA__LOOP(_row__ask_block)((uintptr_t)(from + second) + ahead);
}
/* `cols` columns, from column `first` of both halves on, of a token's heads from `begin` on, FA__ROPE_HEADS of every
 * `step`. One call: with one for each head, which has two blocks of halves, a core would spend more time on calls
 * than on heads. */
FA__FN_CALLED void FA__LOOP(__rotate)(const FA__PARAMS *p, int64_t batch, int64_t token, int begin, int end, int step, int64_t first, int cols, const float *c,
                                      const float *s) {
    enum { FA__AT_ONCE = FA__LOOP(_row_BLOCK) };
    FA__CPU_ALIGNED FA__ELEMENT left[2][(int)FA__LOOP(_row_LENGTH) + FA__AT_ONCE];
    FA__ELEMENT part[2][FA__AT_ONCE];
    const int streams = p->rows.stream, by_unit = fa__cpu_rounds_bf16();
    const int64_t second = p->second;
    for (int head = begin; head < end; head = FA__LOOP(__next)(head, step)) {
        const FA__ELEMENT *from = FA__LOOP(__head)(p, p->from, batch, token, head) + first;
        FA__ELEMENT *to = FA__LOOP(__head)(p, p->to, batch, token, head) + first;
        const int fits = FA__LOOP(_row__fits)(to + second, FA__LOOP(_row__fits)(to, cols, streams), streams);
        int i = 0;
        for (; i < fits; i += FA__AT_ONCE) { /* 1.04 to 1.08 times as fast as one loop for these and the others */
            FA__LOOP(__ask)(from + i, second);
            FA__LOOP(__rotate_block)(to + i, to + second + i, from + i, from + second + i, c + i, s + i, streams, by_unit);
        }
        if (i == cols) continue;
        for (; i < cols; i += FA__AT_ONCE) {
            FA__LOOP(__ask)(from + i, second);
            FA__LOOP(__rotate_block)(left[0] + i, left[1] + i, FA__LOOP(_row__block_of)(part[0], from, i, cols),
                                     FA__LOOP(_row__block_of)(part[1], from + second, i, cols), c + i, s + i, 0, by_unit);
        }
        FA__LOOP(_row__deliver)(to + fits, left[0] + fits, cols - fits, streams);
        FA__LOOP(_row__deliver)(to + second + fits, left[1] + fits, cols - fits, streams);
    }
}
#endif

/* A number below 2^31, which it is in any case: where registers are few it takes one, not two. */
#define FA__SMALL(x) (FA__LOOP(_row_WHOLE) ? (int)(x) : (x))
FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    enum { FA__HEADS = FA__ROPE_HEADS, FA__LENGTH = FA__LOOP(_row_LENGTH) };
    FA__STATIC_ASSERT(FA__LANES == 1 || FA__LENGTH * sizeof(FA__ELEMENT) == 16, "a thread's elements of a half are neighbours");
    float a[FA__LENGTH], b[FA__LENGTH], c[FA__LENGTH], s[FA__LENGTH];
    fa__segment at = fa__segment_at(&p->cut, row, p->rows.rows, 0); /* a block's last teams may have none */
    const int small = FA__LOOP(_row_WHOLE) || p->rows.rows <= INT32_MAX;
    const int idle = FA__LOOP(_row_WHOLE) && team->thread * FA__LENGTH >= (int)at.cols; /* whole halves of fewer vectors than there are threads */
    const int64_t outer = fa__quotient(at.row, p->inner, p->by_inner, small), number = at.row - outer * p->inner;
    const int64_t batch = FA__SMALL(fa__quotient(outer, p->outer, p->by_outer, small)), other = outer - batch * p->outer;
    const int64_t token = FA__SMALL(p->by_token ? other : number);
    /* The groups of a token take turns, HEADS heads each: what they read at a time lies together. */
    const int begin = (int)(p->by_token ? number : other) * FA__HEADS, step = p->groups * FA__HEADS, end = at.cols == 0 ? begin : p->all_heads;
    const int64_t rest = 2 * (int64_t)p->half - p->second - at.first;
    const int position = p->positions ? fa__load_int(p->positions + batch * p->seqlen + token) : p->offset + (int)token;
    FA__LOOP(_row_view) first = FA__LOOP(_row_at)(NULL, at.cols, team), second = first;
    if (!FA__LOOP(_row_WHOLE)) second = FA__LOOP(_row_at)(NULL, rest < at.cols ? rest : at.cols, team);
    FA__LOOP(_row__set_policy)(&first, p->rows.policy), FA__LOOP(_row__set_policy)(&second, p->rows.policy);
    const int count = FA__LOOP(_row_count)(&first, 0), looks = p->cos && !p->interleaved;

    for (int head = idle ? end : begin; head < end; head += step) {
        /* Before the first loads: 2 to 3 % faster for few tokens than after them on an H200. */
        if (head == begin && looks) FA__LOOP(__look_up)(c, s, &first, p, at.first, position);
        const FA__ELEMENT *from[FA__HEADS];
        FA__LOOP(_row_held) held[FA__HEADS][2];
        FA__UNROLL
        for (int i = 0; i < FA__HEADS; i++) {
            from[i] = FA__LOOP(__head)(p, p->from, batch, token, head + i < end ? head + i : head) + at.first;
            FA__LOOP(_row_view) in = FA__LOOP(_row_like)(from[i], &first), in2 = FA__LOOP(_row_like)(from[i] + p->second, &second);
            FA__LOOP(_row_hold)(&held[i][0], FA__LOOP(_slots)(place, p, 2 * i), &in, 0.0f);
            FA__LOOP(_row_hold)(&held[i][1], FA__LOOP(_slots)(place, p, 2 * i + 1), &in2, 0.0f);
        }
        if (head == begin && !looks) { /* while the first loads are in flight */
            const int64_t col = at.first + FA__LOOP(_row_col)(&first, 0, 0);
            FA__UNROLL
            for (int h = 0; h < 2; h++) {
                int64_t pair = p->interleaved ? (col + h * p->second) / 2 : col + h * (count / 2);
                FA__LOOP(__angles)(c + h * (count / 2), s + h * (count / 2), count / 2, p, pair, position);
            }
        }
        FA__LOOP(_row_wait)();
#if FA__LANES == 1
        if (!p->interleaved) {
            if (head == begin) FA__LOOP(_row__arranged)(c, c, (int)at.cols), FA__LOOP(_row__arranged)(s, s, (int)at.cols);
            FA__LOOP(__rotate)(p, batch, token, begin, end, step, at.first, (int)at.cols, c, s);
            break;
        }
#endif
        FA__UNROLL
        for (int i = 0; i < FA__HEADS; i++) {
            if (head + i < end) {
                FA__ELEMENT *to = FA__LOOP(__head)(p, p->to, batch, token, head + i) + at.first;
                FA__LOOP(_row_view) in = FA__LOOP(_row_like)(from[i], &first), in2 = FA__LOOP(_row_like)(from[i] + p->second, &second);
                FA__LOOP(_row_view) out = FA__LOOP(_row_like)(to, &first), out2 = FA__LOOP(_row_like)(to + p->second, &second);
                if (p->rows.stream) FA__LOOP(_row_stream)(&out), FA__LOOP(_row_stream)(&out2);
                FA__LOOP(_row_ahead)(&in, 0), FA__LOOP(_row_ahead)(&in2, 0);
                FA__LOOP(_row_get)(a, &held[i][0], &in, 0);
                FA__LOOP(_row_get)(b, &held[i][1], &in2, 0);
                if (p->interleaved) {
                    FA__LOOP(__neighbours)(a, c, s, count / 2);
                    FA__LOOP(__neighbours)(b, c + count / 2, s + count / 2, count / 2);
                } else {
                    FA__UNROLL
                    for (int j = 0; j < count; j++) {
                        float x = a[j], y = b[j];
                        a[j] = x * c[j] - y * s[j], b[j] = y * c[j] + x * s[j];
                    }
                }
                FA__LOOP(_row_store)(&out, 0, a);
                FA__LOOP(_row_store)(&out2, 0, b);
            }
        }
    }

    /* What is not rotated: this segment's share of it, unless it is in its place. */
    const int64_t tail = 2 * (int64_t)p->half + (!FA__LOOP(_row_WHOLE) && p->cut.count > 1 ? at.first / p->cut.length * p->tail_step : 0);
    const int64_t left = p->head_dim - tail;
    for (int head = left > 0 ? begin : end; head < end; head = FA__LOOP(__next)(head, step)) {
        const FA__ELEMENT *from = FA__LOOP(__head)(p, p->from, batch, token, head) + tail;
        FA__ELEMENT *to = FA__LOOP(__head)(p, p->to, batch, token, head) + tail;
        if (from == to) continue;
#if FA__LANES > 1
        if (FA__LOOP(_row_WHOLE)) { /* vectors, of which there may be more or fewer than threads */
            FA__ROLL
            for (int i = team->thread * FA__LENGTH; i < (int)left; i += team->threads * FA__LENGTH) {
                uint32_t raw[4];
                fa_sm80_load16(raw, from + i);
                fa_sm80_store16(to + i, raw);
            }
            continue;
        }
#endif
        FA__LOOP(_row_view) in = FA__LOOP(_row_at)(from, left < p->tail_step ? left : p->tail_step, team);
        FA__LOOP(_row_view) out = FA__LOOP(_row_like)(to, &in);
        if (p->rows.stream) FA__LOOP(_row_stream)(&out);
        for (int64_t piece = 0, pieces = FA__LOOP(_row_pieces)(&in); piece < pieces; piece++) {
            FA__LOOP(_row_load)(a, &in, piece, 0.0f);
            FA__LOOP(_row_store)(&out, piece, a);
        }
    }
}
#undef FA__SMALL
#endif
