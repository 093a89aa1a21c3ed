/* attention_scores.h: what the schedules for GPUs do with the scores that a thread holds: hook, mask and the end of the
 * sequence, before the softmax; lse, after it. */

/* The factor that brings scores that may be of any size (FA__WIDE_SCORE) to natural units. Hooks see and return
 * scores in these units, so it is 1 unless a hook is left to the product (attention_columns.h). */
FA__FN float FA__LOOP(_to_natural)(const FA__PARAMS *p) { return FA__COLUMNS ? fabsf(p->scale) : 1.0f; }

/* One score. at.query, at.key and at.distance are set here. `edge`: some keys are beyond the end, which hooks never
 * see. */
FA__FN float FA__LOOP(_modify_one)(float x, const FA__PARAMS *p, fa_index at, int query, int key, float distance,
                                   int masked, int edge) {
    int last_key = p->args.seqlen_k - 1;
#if FA__HOOKED || FA__HAS_MASK
    at.query = query;
    at.key = edge && key > last_key ? last_key : key;
    at.distance = distance;
#else
    (void)at, (void)query, (void)distance;
#endif
#if FA__HOOKED
    at.checked = !!(FA__SCORE_NEEDS);
    x = FA__SCORE_OF(p, x, at);
#endif
#if FA__HAS_MASK
    at.checked = !!(FA__MASK_NEEDS);
    if (masked && !FA__CAT(FA_MASK, _keep)(FA__USER(p), at)) x = -INFINITY;
#else
    (void)masked;
#endif
    return edge && key > last_key ? -INFINITY : x;
}

/* The scores of a thread; `masked` and `edge` are compile-time constants. */
FA__FN void FA__LOOP(_modify_as)(float *s, const FA__PARAMS *p, fa_index at, fa_box box, int key0, int masked, int edge,
                                 int thread) {
    thread = FA__OP(opaque)(thread);
    int query[FA__LOOP(_qk_ROWS)]; /* hooks never see a query beyond the end */
    FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++)
        query[r] = fa__min(box.queries.begin + FA__LOOP(_qk_row)(thread, r), box.queries.end - 1);
    int first = key0 + FA__LOOP(_qk_col)(thread, 0);
    float distance[FA__LOOP(_qk_ROWS)], last[FA__LOOP(_qk_ROWS)];
    FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
        distance[r] = (float)(first - query[r] - fa__shift(&p->args));
        last[r] = (float)(p->args.seqlen_q - 1 - query[r]);
    }
    FA__UNROLL
    for (int c = 0; c < FA__LOOP(_qk_COLS); c++) FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
        int offset = FA__LOOP(_qk_col_offset)(c);
        float *x = &s[FA__LOOP(_qk_AT)(r, c)];
        const float far = distance[r] + (float)offset; /* at the edge no farther than the last key, which is the one that hooks see */
        *x = FA__LOOP(_modify_one)(*x, p, at, query[r], first + offset, edge ? fminf(far, last[r]) : far, masked, edge);
    }
}

/* Whether hooks, in tiles that the mask does not look at, rely on all of a worker's queries to exist. The compiler
 * then knows where a thread's rows lie relative to each other: a column of the first one is as far from it as the
 * column eight further on is from the second one, and what a hook makes of that distance is computed once for both:
 * up to 7% faster. */
#define FA__ALL_THERE (FA__HOOKED && FA__SCORE_NEEDS != FA__NEED_SOFTCAP && FA__SCORE_NEEDS != FA__NEED_KEY_BIAS && !FA__BY_EIGHT) /* the others do not look at queries, or clamp them themselves */
/* Whether they may not, since only some of the worker's queries exist. (A worker without any takes the last ones of
 * the sequence instead, unless there are fewer than it has rows.) */
FA__FN int FA__LOOP(_ragged)(fa_box box) {
    const int rows = FA__LOOP(_worker_rows), left = box.queries.end - box.queries.begin;
    return FA__ALL_THERE && ((left > 0 && left < rows) || box.queries.end < rows);
}

/* How far below a thread's first row its row r is, known to the compiler. */
FA__FN int FA__LOOP(_below)(int r) { return FA__LOOP(_qk_row)(0, r) - FA__LOOP(_qk_row)(0, 0); }

/* As _modify_as() without a mask or an edge, where no query is missing. A key is told by how far it is from the
 * first query, so that this one is left out of the difference of both. */
FA__FN void FA__LOOP(_modify_whole)(float *s, const FA__PARAMS *p, fa_index at, fa_box box, int key0, int thread) {
    thread = FA__OP(opaque)(thread);
    const int begin = fa__min(box.queries.begin, box.queries.end - FA__LOOP(_worker_rows));
    const int top = FA__OP(opaque)(begin + FA__LOOP(_qk_row)(thread, 0)), ahead = FA__OP(opaque)(key0 + FA__LOOP(_qk_col)(thread, 0) - top);
    FA__UNROLL
    for (int c = 0; c < FA__LOOP(_qk_COLS); c++) FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
        int offset = FA__LOOP(_qk_col_offset)(c), below = FA__LOOP(_below)(r);
        float *x = &s[FA__LOOP(_qk_AT)(r, c)];
        /* The distance of the first two is computed here: once for all, but not ahead of the loop (2 to 6% slower). */
        float far = (float)(ahead - fa__shift(&p->args)) + (float)(offset - below);
        *x = FA__LOOP(_modify_one)(*x, p, at, top + below, top + (ahead + offset), far, 0, 0);
    }
}

/* Whether tiles on a band's edge are masked with few comparisons: where a thread's columns lie as in a plain product,
 * and not for FA_F32 and FA_TF32, since the code needs registers. */
#define FA__BANDED (FA__MASK_IS_BAND && !FA__BY_EIGHT && FA__IS_HALF)
#if FA__BANDED
/* Hides the keys after the last visible one (`behind`), or before the first. `edge` is that key's column in the
 * thread's first row, counted from the thread's first column; in each following row it is one further. So column c of a
 * row and column c + 8 of the row eight further down need the same comparison. */
FA__FN void FA__LOOP(_hide_beyond)(float *s, int edge, int behind) {
    FA__UNROLL
    for (int c = 2 - 2 * FA__LOOP(_qk_ROWS); c < FA__LOOP(_qk_COLS); c++) {
        int column = FA__LOOP(_qk_col_offset)(c + 2 * FA__LOOP(_qk_ROWS)) - 8 * FA__LOOP(_qk_ROWS);
        int hidden = behind ? column > edge : column < edge;
        FA__UNROLL
        for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
            if (c + 2 * r < 0 || c + 2 * r >= FA__LOOP(_qk_COLS)) continue;
            float *x = &s[FA__LOOP(_qk_AT)(r, c + 2 * r)];
            *x = hidden ? -INFINITY : *x;
        }
    }
}

/* Hides what a band leaves out of a tile. */
FA__FN void FA__LOOP(_hide_band)(float *s, const FA__PARAMS *p, fa_box box, int key0, int thread) {
    enum { FA__MARGIN = 1024 }; /* keys on either side of the tile, which has no more: enough for every row of the box */
    (void)p; /* for FA__USER */
    fa_range queries = box.queries;
    box.queries.end = box.queries.begin + 1;
    box.keys = fa__range(key0 - FA__MARGIN, fa__min(key0, INT32_MAX - FA__MARGIN) + FA__MARGIN);
    fa_range seen = FA__CAT(FA_MASK, _keys)(FA__USER(p), box); /* what the first query sees */
    thread = FA__OP(opaque)(thread);
    int own = FA__LOOP(_qk_row)(thread, 0) - FA__LOOP(_qk_col)(thread, 0) - key0;
    if (FA__MASK_IS_BAND == 1 || seen.end < key0 + FA__PART_N) FA__LOOP(_hide_beyond)(s, seen.end - 1 + own, 1);
    if (FA__MASK_IS_BAND > 1 && seen.begin + (queries.end - queries.begin) > key0 + 1) FA__LOOP(_hide_beyond)(s, seen.begin + own, 0);
}
#endif

#include <fa/kernel/attention_documents.h>
#include <fa/kernel/attention_spans.h>

/* Hook and mask for the scores of FA__PART_N keys from key0 on, each case in code of its own; `masked`: the mask leaves
 * some of them out, or there are keys beyond the end. `whole`, a compile-time constant: unless `masked`, all of the
 * worker's queries exist, and hooks rely on that (FA__ALL_THERE); `masked` may then also mean that some do not. */
FA__FN void FA__LOOP(_modify)(float *s, const FA__PARAMS *p, fa_index at, fa_box box, int key0, int masked,
                              int whole, int thread) {
#if FA__MASK_NEEDS & (FA__NEED_DOCUMENT | FA__NEED_SPAN)
    if (masked) { /* what these hide is told by tiles, not by asking about each score */
        if (FA__HOOKED) FA__LOOP(_modify_as)(s, p, at, box, key0, 0, 1, thread);
        FA__LOOP(_hide)(s, p, box, key0, thread);
    } else
#endif
    if (masked && (key0 + FA__PART_N > p->args.seqlen_k || (whole && !FA__HAS_MASK)))
        FA__LOOP(_modify_as)(s, p, at, box, key0, 1, 1, thread);
#if FA__BANDED
    else if (masked) {
        if (FA__HOOKED) FA__LOOP(_modify_as)(s, p, at, box, key0, 0, 0, thread);
        FA__LOOP(_hide_band)(s, p, box, key0, thread);
    }
#else
    else if (masked && FA__HAS_MASK) FA__LOOP(_modify_as)(s, p, at, box, key0, 1, 0, thread);
#endif
    else if (whole) FA__LOOP(_modify_whole)(s, p, at, box, key0, thread);
    else if (FA__HOOKED) FA__LOOP(_modify_as)(s, p, at, box, key0, 0, 0, thread);
}

/* Writes lse of a thread's rows; of the threads that share a row, one writes. */
FA__FN void FA__LOOP(_write_lse)(const FA__PARAMS *p, fa_box box, const float *lse, int thread) {
    const fa_attention_args *a = &p->args;
    if (!a->lse || FA__LOOP(_qk_col)(thread, 0) != 0) return;
    float *out = a->lse + ((int64_t)box.batch * a->heads + box.head) * a->seqlen_q;
    FA__UNROLL
    for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
        int row = box.queries.begin + FA__LOOP(_qk_row)(thread, r);
        if (row < a->seqlen_q) out[row] = lse[r];
    }
}
#undef FA__BANDED
