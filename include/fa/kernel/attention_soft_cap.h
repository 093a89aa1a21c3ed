/* attention_soft_cap.h: a consumer's weights under a soft cap by the polynomial of soft_cap.h, while scores are far
 * from the cap: three and a half instructions a score instead of a second operation of the unit for exponentials.
 * Scores stay as they are, so that a tile with larger ones can be weighed once more with fa__tanh(); the rest of its
 * block then goes that way from the beginning. All warps of the group must go that way together, since together they
 * multiply: a warp says so in shared memory before a turn begins, and all look after that. */

enum { FA__LOOP(_uncapped) = 2, FA__LOOP(_steep) = 3 }; /* how a maximum may be behind: the scores have yet to be capped; and some are beyond the polynomial's reach */

/* The weights of the current tile, whose scores are not capped, and their sums. Returns whether their maximum is
 * behind. */
FA__FN int FA__LOOP(_weigh_uncapped)(FA__LOOP(_consumer) * c) {
    enum { FA__ROWS = FA__LOOP(_qk_ROWS), FA__COLS = FA__LOOP(_qk_COLS) };
    const fa__cap_curve *cap = &c->p->cap;
    float weights[FA__ROWS * FA__COLS], offset[FA__ROWS];
    int largest = 0; /* s^2 */
    FA__UNROLL
    for (int r = 0; r < FA__ROWS; r++) {
        offset[r] = FA__LOOP(_softmax_offset)(c->state.max[r], c->p->scale_log2);
        c->sum[r] = 0.0f;
    }
    FA__UNROLL
    for (int first = 0; first < FA__COLS; first += 2) FA__UNROLL
    for (int r = 0; r < FA__ROWS; r++) {
        float square[2];
        FA__UNROLL
        for (int i = 0; i < 2; i++) {
            int at = FA__LOOP(_qk_AT)(r, first + i);
            float s = c->s.x[at], z = s * s, slope = FA__OP(fma)(FA__OP(fma)(cap->fifth, z, cap->third), z, cap->first);
            weights[at] = FA__LOOP(_softmax_weight)(s, offset[r], slope, 0);
            c->sum[r] += weights[at];
            square[i] = z;
        }
        largest = fa__max3((int)fa__bits(square[0]), (int)fa__bits(square[1]), largest);
    }
    FA__LOOP(_pv_pack)(&c->weights, weights);
    if (FA__OP(any)(largest > cap->reach)) return FA__LOOP(_steep);
    return FA__LOOP(_softmax_behind)(c->sum) ? FA__LOOP(_uncapped) : 0;
}

/* A warp says that scores of the latest block are beyond the polynomial's reach; and, after a barrier, all look.
 * Tiles have two places by turns: while a warp still looks, another may say so of the next tile. The first tile of a
 * block has a third one. */
FA__FN int FA__LOOP(_steep_place)(const FA__LOOP(_consumer) * c) { return c->next_note % 2; }
enum { FA__LOOP(_first_place) = 2 };
FA__FN void FA__LOOP(_say_steep)(const FA__LOOP(_consumer) * c, int place) { c->shared->steep[c->group][place] = c->blocks; }
FA__FN void FA__LOOP(_look_for_steep)(FA__LOOP(_consumer) * c, int place) {
    c->rough |= fa_sm90_uniform(c->shared->steep[c->group][place]) == c->blocks;
}

/* After a block's first tile, in which they are capped, its largest scores are known, or those of a quarter of its
 * columns, and the next one is seldom weighed twice. */
FA__FN void FA__LOOP(_foresee_steep)(FA__LOOP(_consumer) * c) {
    int steep = 0;
    FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) steep |= c->state.max[r] > FA__SOFT_CAP_REACHED;
    if (FA__OP(any)(steep)) FA__LOOP(_say_steep)(c, FA__LOOP(_first_place));
    fa_sm90_bar_sync(c->turns + FA__TEAMS * FA__LOOP(_groups) + c->group, 128);
    FA__LOOP(_look_for_steep)(c, FA__LOOP(_first_place));
}

/* Caps the scores of a tile that has to be weighed once more. */
FA__FN void FA__LOOP(_cap)(FA__LOOP(_consumer) * c, int behind) {
    FA__UNROLL
    for (int i = 0; i < (int)(sizeof c->s.x / sizeof c->s.x[0]); i++) c->s.x[i] = fa__tanh(c->s.x[i] * c->p->scale, FA_DTYPE);
    if (behind == FA__LOOP(_steep) && !(c->note & FA__LOOP(_last))) FA__LOOP(_say_steep)(c, FA__LOOP(_steep_place)(c));
}
