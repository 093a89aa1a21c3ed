/* attention_loop.h: the schedule of the forward for every GPU, with mma.sync and cp.async.
 *
 * A thread block of FA_WARPS warps takes FA_BLOCK_M queries of one head, walks the tiles of FA_BLOCK_N keys that the
 * mask leaves visible, and keeps O and the softmax state in registers (FlashAttention-2, Dao, arXiv 2307.08691).
 * Fragments say where their elements lie (fa/mma.h), so nothing here knows the layout of a matrix unit.
 *
 * Copies run ahead of the products, and are issued one by one between their steps, which hide the address
 * arithmetic. With one stage the next K is fetched during P V and V during Q K^T; with two, the whole next tile is
 * fetched during Q K^T, and one barrier per tile suffices.
 *
 * Two warps share a quarter of a multiprocessor. Each multiplies at nearly the same rate whether the other one
 * multiplies or not, so its products do not hide the other's softmax: a softmax is hidden only by products of its
 * own warp. So with two stages half types take a tile in halves (FA__AFTERWARDS): the exponentials of the first half
 * run between the steps of the second half's Q K^T, and those of the second half between the steps of the first
 * half's P V. That leaves no time to look for a maximum first: it is checked afterwards, while K is still there to
 * recompute the scores from. Where registers are short, or a bias is waited for (FA__PARTS 1), Q K^T is not split,
 * and the first half's exponentials are not hidden.
 *
 * The hook fa_bias need not be called for each score. Of a bias of half types each warp copies its rows of a tile to
 * a place of its own (FA__BIAS_ROOM: where there is room for it, and something is gained); else it is loaded into
 * registers before the products (attention_addends.h), for tiles that no mask looks at.
 *
 * FA_F32 multiplies pairs of halves, and FA_TF32 the first of each pair; each warp makes them of what it has loaded:
 * with one stage before the product, with two (for the next tiles) between the steps of P V.
 *
 * FA__AFTERWARDS, FA__KEEP_Q, FA__EARLY_Q, FA__ANEW and others are choices: attention_loop_choices.h has them, with
 * reasons; attention_tiles.h has FA__COLUMNS and the sizes, attention_hooks.h what begins with FA__MASK or
 * FA__SCORE. */

/* Half types have no instruction to spare, and their scores stay in range (fa/softmax.h, FA_WIDE). */
#define FA__WIDE (FA__WIDE_SCORE || !FA__IS_HALF)
#define FA__EAGER (!FA__HAS_MASK || FA__HAS_SCORE || !FA__IS_HALF) /* without NAME_exceeds(): registers are short */
#define FA__PART_N (FA_BLOCK_N / FA__PARTS)
/* With ALiBi, tiles are visited from the diagonal outwards, so that the maximum does not grow from tile to tile. */
#define FA__LINES (FA__AFTERWARDS && FA__COLUMNS == FA__NEED_ALIBI)
/* Biases are loaded into registers, 16 bytes at a time. */
#define FA__BY_EIGHT (FA__SCORE_NEEDS == FA__NEED_BIAS && !FA__BIAS_ROOM && (FA__AFTERWARDS || (FA__ADDENDS_AHEAD && FA_BLOCK_N % 32 == 0)))
#include <fa/kernel/attention_parts.h>
#include <fa/kernel/attention_scores.h>
#if FA__COLUMNS
#define FA__WITH_COLUMNS(...) __VA_ARGS__
/* Whether Q's extra columns are computed, and multiplied, after the product of the others: with two stages 2 to 4%
 * faster than before it, but at head dimension 128 there are no registers for that. Elsewhere they are computed
 * while the tile before is multiplied. */
#define FA__COLUMNS_BEHIND (FA__AFTERWARDS && FA__COLUMNS == FA__NEED_ALIBI && (FA__WIDEST <= 80 || FA__WIDEST > 128))
#include <fa/kernel/attention_columns_loop.h>
#else
#define FA__WITH_COLUMNS(...)
#endif
#if FA__BY_EIGHT || FA__ADDENDS_AHEAD
#include <fa/kernel/attention_addends.h>
#endif
#if FA__BIAS_ROOM
#define FA__WITH_BIAS(...) __VA_ARGS__
#include <fa/kernel/attention_bias_room.h>
#else
#define FA__WITH_BIAS(...)
#endif
#if FA__AFTERWARDS
#include <fa/kernel/attention_rest.h>
#endif

#include <fa/kernel/attention_walk_loop.h>

/* What the warps of a worker share: tiles, and how the mask classifies the next tiles. O takes Q's place in the end. */
typedef struct FA__LOOP(_shared) {
    FA__LOOP(_qo) qo;
    FA__LOOP(_ktile_tile) k[FA__STAGES];
    FA__LOOP(_vtile_tile) v[FA__STAGES];
    FA__WITH_COLUMNS(FA__LOOP(_column_room) columns;)
    FA__WITH_BIAS(FA__LOOP(_bias_room) bias;)
#if FA__HAS_MASK
    FA__LOOP(_judged) judged;
#endif
} FA__LOOP(_shared);
enum { /* bytes of a stage */
    FA__LOOP(_stage_bytes) = sizeof(FA__LOOP(_ktile_tile)) + sizeof(FA__LOOP(_vtile_tile)) + FA__WITH_COLUMNS(FA__LOOP(_column_stage_bytes) +) 0,
    FA__LOOP(_bias_bytes) = FA__WITH_BIAS(sizeof(FA__LOOP(_bias_room)) +) 0 /* which there are with two stages only */
};

/* ---- the schedule ---- */

/* Whether a maximum is large, in natural units; with a key bias also whether there is none yet. */
#define FA__FAR FA__LOOP(_softmax_far)(&state, FA__LOOP(_to_natural)(p), FA__COLUMNS == FA__NEED_KEY_BIAS)

/* The copies issued with step `step` of Q K^T, counted over all parts. With two parts at head dimension 128 only the
 * second has registers for them. */
#define FA__LOAD_STEP(step, tile, stage, block) \
    if ((step) >= FA__NO_LOADS) tile(&stage, block, thread, (step) - FA__NO_LOADS, FA__PARTS * FA__QK - FA__NO_LOADS)
#define FA__LOAD(step) \
    FA__LOAD_STEP(step, FA__LOOP(_vtile_load_part), shared->v[stage ^ 1], v_block); \
    FA__LOAD_STEP(step, FA__LOOP(_ktile_load_part), shared->k[stage ^ 1], k_block)
/* How many columns of half a tile go with the steps before `step` of `steps`. With a hook the compiler must see that
 * all steps have equally many, where they do, or it leaves loops over a step's columns rolled, and scores in memory
 * (which took an instance twice the time); without one this costs 12 bytes of spills at head dimension 128 under a
 * causal mask. A bias comes in so many columns at once. */
#if FA__BIAS_ROOM
#define FA__SHARE(step, steps) ((step) * (FA__COLS / FA__LOOP(_bias_columns)) / (steps) * FA__LOOP(_bias_columns))
#else
#define FA__SHARE(step, steps) (FA__COLS % (steps) || !FA__HAS_SCORE ? (step) * FA__COLS / (steps) : (step) * (FA__COLS / (steps)))
#endif

FA__FN void FA__LOOP(_run)(const FA__PARAMS *p, fa_box box, FA__LOOP(_shared) * shared, int thread) {
    enum {
        FA__ROWS_HELD = FA__LOOP(_qk_ROWS),
        FA__TWO = FA__STAGES > 1,
        FA__QK = FA__LOOP(_qk_STEPS),
        FA__PV = FA__LOOP(_pv_STEPS) * FA__PARTS / 2, /* of half a tile */
        FA__COLS = FA__LOOP(_qk_COLS) * FA__PARTS / 2,
        FA__NO_LOADS = FA__PARTS == 2 && FA__WIDEST > 96 ? FA__QK : 0,
        /* Whether the maximum of a tile that a mask looks at is raised, which is possible once all products before it
         * are done; or only begun, for which registers suffice before sm_90. */
        FA__RAISES = FA__PARTS == 1 && FA__HAS_MASK && !(FA__BEFORE_90 && FA__WIDEST <= 128 && !FA__HAS_SCORE),
        /* With a hook, too, it is raised wherever the hook is not deferred, and then not checked afterwards. So a
         * part found to be behind had its hook deferred, and no mask. */
        FA__LEFT_ALONE = FA__RAISES && FA__HAS_SCORE,
        /* Exponents are computed as if no maximum were large, and recomputed where one is: this saves an instruction
         * per score, and a register. A bias of halves gains 3 to 6%, a user's hook 1%; before sm_90 a bias of FA_F16
         * would spill. */
        FA__NEAR = FA__COLUMNS == FA__NEED_KEY_BIAS || (FA__WIDE_SCORE && !FA__LEFT_ALONE &&
                                        (FA__WIDEST <= 96 || (!FA__HAS_MASK && FA__SCORE_NEEDS != FA__NEED_BIAS)) &&
                                        !(FA__BEFORE_90 && FA_DTYPE == FA_F16 && FA__SCORE_NEEDS == FA__NEED_BIAS))
    };
    const fa_attention_args *a = &p->args;
    FA__LOOP(_view) view;
    FA__LOOP(_open)(&view, p, box);
    fa_block k_block = view.k, v_block = view.v;
    fa_index at = view.at;

    FA__LOOP(_qk_acc) s[FA__PARTS];
    FA__LOOP(_pv_acc) o;
#if FA__AFTERWARDS
    int fresh = 1; /* the first tile */
    int far = 0;   /* a maximum is large */
#endif
    FA__LOOP(_softmax_state) state;
    float alpha[FA__ROWS_HELD], inverse[FA__ROWS_HELD], lse[FA__ROWS_HELD];
    FA__LOOP(_pv_zero)(&o);
#if FA__PAIRS
    FA__LOOP(_pv_a) weights;
    FA__LOOP(_pv_begin)(&weights);
#endif
    FA__LOOP(_softmax_init)(&state);
    FA__WITH_COLUMNS(FA__LOOP(_column_state) columns;)
    FA__LOOP(_walk) walk;
    /* Half types compute addresses for it alone (opaque(): the compiler must take `thread` for a new number), FA_F32
     * does not: either way fewer instances spill. */
    if (FA__EARLY_Q) FA__LOOP(_qtile_load)(&shared->qo.q, view.q, FA__PAIRS ? thread : FA__OP(opaque)(thread));
    FA__LOOP(_walk_start)(&walk, p, box, thread % FA__LANES);
#if FA__BY_WARPS
    if (walk.count > 0) FA__LOOP(_judge_first)(&walk, p, box, FA__JUDGED(shared), thread);
#endif
    int tile = FA__LOOP(_walk_next)(&walk, p, box, FA__JUDGED(shared), thread);
    if (tile >= 0) {
        if (!FA__EARLY_Q) FA__LOOP(_qtile_load)(&shared->qo.q, view.q, thread);
        k_block.row = v_block.row = tile * FA_BLOCK_N;
        FA__LOOP(_ktile_load)(&shared->k[0], k_block, thread);
        FA__LOOP(_ktile_commit)();
        if (FA__TWO) {
            FA__LOOP(_vtile_load)(&shared->v[0], v_block, thread);
            FA__LOOP(_vtile_commit)();
        }
#if FA__PAIRS
        FA__LOOP(_ktile_wait)(0);
        FA__LOOP(_qtile_split)(&shared->qo.q, thread);
        if (FA__TWO) FA__LOOP(_ktile_split)(&shared->k[0], thread);
        if (FA__TWO) FA__LOOP(_vtile_split)(&shared->v[0], thread);
#endif
        if (p->negate) { /* a negative scale, without a hook: the exponent's factor stays positive */
            FA__LOOP(_ktile_wait)(0);
            FA__OP(barrier)();
            FA__LOOP(_qtile_negate)(&shared->qo.q, thread);
        }
        FA__WITH_COLUMNS(FA__LOOP(_begin_columns)(&shared->columns, p, box, tile, thread);)
        FA__WITH_BIAS(FA__LOOP(_bring_bias)(&shared->bias, p, box, tile, thread);)
    } else if (FA__EARLY_Q) { /* O takes Q's place */
        FA__LOOP(_qtile_commit)();
        FA__LOOP(_qtile_wait)(0);
    }
#if FA__KEEP_Q
    FA__LOOP(_qk_a) q;
    if (tile >= 0) {
        FA__LOOP(_ktile_wait)(FA__TWO + FA__BIAS_ROOM);
        FA__OP(barrier)();
        FA__LOOP(_qk_load_a)(&q, &shared->qo.q, thread);
    }
#define FA__Q &q
#else
#define FA__Q &shared->qo.q
#endif
    for (int stage = 0; tile >= 0; stage ^= FA__TWO) {
        int key0 = tile * FA_BLOCK_N, masked = walk.masked | (key0 + FA_BLOCK_N > a->seqlen_k) | FA__LOOP(_ragged)(box);
        FA__LOOP(_ktile_wait)(FA__BIAS_ROOM); /* the latest copies are those of the tile's bias */
#if FA__PAIRS
        if (!FA__TWO) FA__LOOP(_ktile_split)(&shared->k[0], thread);
#endif
        FA__OP(barrier)(); /* K (and with two stages V) has landed for all; all are done with the tile before */
        tile = FA__LOOP(_walk_next)(&walk, p, box, FA__JUDGED(shared), thread);
        k_block.row = tile * FA_BLOCK_N;
        k_block.rows = tile >= 0 ? a->seqlen_k : 0; /* no next tile: nothing is read */
        v_block.row = FA__TWO ? k_block.row : key0;
        if (FA__TWO) v_block.rows = k_block.rows;
        FA__WITH_COLUMNS(FA__LOOP(_ask_columns)(&columns, p, box, tile, thread);)

#if FA__AFTERWARDS
        if (FA__ANEW) box.batch = at.batch = FA__OP(opaque)(box.batch); /* what follows from it is computed anew */
        FA__LOOP(_pv_a) weights;
        FA__LOOP(_rest) rest[FA__PARTS];
        FA__LOOP(_defer_rest)(&rest[0], p, box, key0, !(masked | fresh), thread);
        FA__WITH_BIAS(FA__UNROLL for (int i = 0; i < FA__PARTS; i++) rest[i].bias = FA__LOOP(_bias_part)(&shared->bias, i, thread);)
        FA__UNROLL
        for (int i = 0; i < FA__PARTS; i++) FA__LOOP(_qk_zero)(&s[i]);
        FA__WITH_COLUMNS(if (!FA__COLUMNS_BEHIND) FA__LOOP(_multiply_columns)(&s[0], &shared->columns, p, box, key0, 0, stage, thread);)
        FA__UNROLL
        for (int k = 0; k < FA__QK; k++) {
            FA__LOOP(_qk_mma_steps)(&s[0], FA__Q, &shared->k[stage], thread, k, k + 1);
            FA__LOAD(k);
        }
        FA__WITH_COLUMNS(if (FA__COLUMNS_BEHIND) FA__LOOP(_multiply_columns)(&s[0], &shared->columns, p, box, key0, 0, stage, thread);)
        if (FA__PARTS == 1) FA__LOOP(_vtile_commit)();
        FA__WITH_BIAS(FA__LOOP(_await_bias)(FA__PARTS == 1);)
        /* Half 0: its exponentials run between the steps of half 1's Q K^T, where that is a product of its own (two
         * parts). Half 1: its exponentials run between the steps of half 0's P V. Half 1's P V comes after the loop.
         * A half is part i, or, where there is one part, FA__COLS columns of it from `first` on. */
        FA__UNROLL
        for (int half = 0; half < 2; half++) {
            const int i = half * (FA__PARTS - 1), first = half * (2 - FA__PARTS) * FA__COLS, part0 = key0 + i * FA__PART_N;
            float *x = s[i].x, sum[FA__ROWS_HELD];
            if (half == i) {
                FA__LOOP(_apply)(&rest[i], x, p, at, box, part0, masked, thread);
                if (FA__LEFT_ALONE ? !rest[i].hook : masked || (half == 0 && fresh)) {
                    if (FA__RAISES && FA__LOOP(_softmax_raise)(&state, x, p->scale_log2, alpha)) {
                        FA__LOOP(_softmax_fade)(&state, alpha);
                        FA__LOOP(_pv_scale_rows)(&o, alpha);
                    }
                    if (!FA__RAISES) FA__LOOP(_softmax_begin)(&state, x, p->scale_log2);
                    if (FA__NEAR) far = FA__FAR;
                }
            }
            FA__UNROLL
            for (int r = 0; r < FA__ROWS_HELD; r++) sum[r] = 0.0f;
            if (half == 0 && FA__PARTS == 1) FA__LOOP(_weigh_rest)(&rest[0], &state, x, p, at, sum, 0, FA__COLS, FA__NEAR);
            if (half == 0 && FA__PARTS == 2) {
                const void *k_rest = FA__LOOP(_ktile_at)(&shared->k[stage], FA__PART_N, 0);
                FA__LOOP(_defer_rest)(&rest[FA__PARTS - 1], p, box, key0 + FA__PART_N, !masked, thread);
                FA__WITH_COLUMNS(if (!FA__COLUMNS_BEHIND) FA__LOOP(_multiply_columns)(&s[FA__PARTS - 1], &shared->columns, p, box, key0, 1, stage, thread);)
                FA__UNROLL
                for (int k = 0; k < FA__QK; k++) {
                    FA__LOOP(_qk_mma_steps)(&s[FA__PARTS - 1], FA__Q, k_rest, thread, k, k + 1);
                    FA__LOAD(FA__QK + k);
                    FA__LOOP(_weigh_rest)(&rest[0], &state, x, p, at, sum, FA__SHARE(k, FA__QK), FA__SHARE(k + 1, FA__QK), FA__NEAR);
                }
                FA__WITH_COLUMNS(if (FA__COLUMNS_BEHIND) FA__LOOP(_multiply_columns)(&s[FA__PARTS - 1], &shared->columns, p, box, key0, 1, stage, thread);)
                FA__LOOP(_vtile_commit)();
            }
            FA__UNROLL
            for (int k = 0; k < half * FA__PV; k++) { /* in half 1: P V of half 0, whose weights are packed */
                FA__LOOP(_pv_mma_steps)(&o, &weights, &shared->v[stage], thread, k, k + 1);
                FA__LOOP(_weigh_rest)(&rest[i], &state, x, p, at, sum, first + FA__SHARE(k, FA__PV), first + FA__SHARE(k + 1, FA__PV),
                                      FA__NEAR);
            }
            if ((FA__LOOP(_softmax_behind)(sum) || far) && (!FA__LEFT_ALONE || rest[i].hook)) { /* once more, starting with the product */
                int again = FA__OP(opaque)(thread);
                FA__LOOP(_qk_zero)(&s[i]);
                FA__WITH_COLUMNS(FA__LOOP(_multiply_columns)(&s[i], &shared->columns, p, box, key0, i, stage, again);)
                FA__LOOP(_qk_mma)(&s[i], FA__Q, FA__LOOP(_ktile_at)(&shared->k[stage], i * FA__PART_N, 0), again);
                FA__LOOP(_apply_all)(&rest[i], x, p, at, box, part0, FA__LEFT_ALONE ? 0 : masked, again);
                FA__LOOP(_softmax_raise)(&state, x, p->scale_log2, alpha);
                FA__LOOP(_softmax_fade)(&state, alpha);
                FA__LOOP(_pv_scale_rows)(&o, alpha);
                FA__UNROLL
                for (int r = 0; r < FA__ROWS_HELD; r++) sum[r] = 0.0f;
                FA__LOOP(_weigh_rest)(&rest[i], &state, x, p, at, sum, first, first + FA__COLS, 0);
                if (FA__NEAR) far = FA__FAR;
            }
            FA__UNROLL
            for (int r = 0; r < FA__ROWS_HELD; r++) state.sum[r] += sum[r];
            FA__LOOP(_pv_pack)(&weights, x);
        }
        fresh = 0;
        FA__WITH_BIAS(FA__LOOP(_bring_bias)(&shared->bias, p, box, tile, thread);)
        if (FA__PARTS == 1) FA__LOOP(_pv_mma_steps)(&o, &weights, &shared->v[stage], thread, FA__PV, 2 * FA__PV);
        else FA__LOOP(_pv_mma)(&o, &weights, FA__LOOP(_vtile_at)(&shared->v[stage], FA__PART_N, 0), thread);
#else
#if FA__ADDENDS_AHEAD
        FA__LOOP(_addends) addends;
        const int ahead = !masked && FA__LOOP(_fetchable)(p, box);
        if (ahead) FA__LOOP(_fetch)(&addends, p, box, key0, thread);
#endif
        FA__LOOP(_qk_zero)(&s[0]);
        FA__WITH_COLUMNS(FA__LOOP(_multiply_columns)(&s[0], &shared->columns, p, box, key0, 0, stage, thread);)
        FA__UNROLL
        for (int k = 0; k < FA__LOOP(_qk_STEPS); k++) {
            FA__LOOP(_qk_mma_steps)(&s[0], FA__Q, &shared->k[stage], thread, k, k + 1);
            FA__LOOP(_vtile_load_part)(&shared->v[stage ^ FA__TWO], v_block, thread, k, FA__LOOP(_qk_STEPS));
            if (FA__TWO) FA__LOOP(_ktile_load_part)(&shared->k[stage ^ FA__TWO], k_block, thread, k, FA__LOOP(_qk_STEPS));
        }
        FA__LOOP(_vtile_commit)();
#if FA__PAIRS
        FA__LOOP(_qk_unscale)(&s[0], &shared->qo.q, &shared->k[stage], thread);
#endif
#if FA__ANEW
        box = FA__LOOP(_box_anew)(p);
        at = FA__LOOP(_index)(p, box);
#endif
#if FA__ADDENDS_AHEAD
        if (ahead) FA__LOOP(_add_columns)(&addends, s[0].x, p->scale, 0, FA__LOOP(_qk_COLS));
        else
#endif
        FA__LOOP(_modify)(s[0].x, p, at, box, key0, masked, FA__ALL_THERE, FA__ANEW ? FA__OP(opaque)(thread) : thread);

        if (FA__LOOP(_softmax_update)(&state, s[0].x, p->scale_log2, alpha) && !FA__IN_UNITS) FA__LOOP(_pv_scale_rows)(&o, alpha);
#if FA__PAIRS
        FA__LOOP(_vtile_wait)(0); /* with two stages: the next tiles, split below */
        if (!FA__TWO) FA__LOOP(_vtile_split)(&shared->v[0], thread);
#else
        FA__LOOP(_pv_a) weights;
        FA__LOOP(_pv_pack)(&weights, s[0].x);
        if (!FA__TWO) FA__LOOP(_vtile_wait)(0);
#endif
        if (!FA__TWO) FA__OP(barrier)(); /* V has landed for all; all are done with K */
#if FA__PAIRS
        if (FA__LOOP(_pv_pack)(&weights, alpha, s[0].x, &shared->v[stage], thread)) FA__LOOP(_pv_scale_rows)(&o, alpha);
#endif
        FA__UNROLL
        for (int k = 0; k < FA__LOOP(_pv_STEPS); k++) {
            FA__LOOP(_pv_mma_steps)(&o, &weights, &shared->v[stage], thread, k, k + 1);
            if (!FA__TWO) FA__LOOP(_ktile_load_part)(&shared->k[0], k_block, thread, k, FA__LOOP(_pv_STEPS));
#if FA__PAIRS /* K early, V halfway */
            enum { FA__PIECES = FA__LOOP(_pv_STEPS) };
            if (FA__TWO) FA__LOOP(_ktile_split_part)(&shared->k[stage ^ 1], thread, FA__PIECES - 1 - k, FA__PIECES);
            int piece = (FA__PIECES + FA__PIECES / 2 - 1 - k) % FA__PIECES;
            if (FA__TWO) FA__LOOP(_vtile_split_part)(&shared->v[stage ^ 1], thread, piece, FA__PIECES);
#endif
        }
#endif
        FA__WITH_COLUMNS(FA__LOOP(_put_columns)(&columns, &shared->columns, p, box, tile, stage ^ FA__TWO, thread);)
        if (!FA__TWO) FA__LOOP(_ktile_commit)();
    }
#undef FA__Q

#if FA__ANEW
    box = FA__LOOP(_box_anew)(p);
    view.o = FA__LOOP(_out)(p, box);
    thread = FA__OP(thread_anew)();
#endif
    /* O is written by way of a tile, so that whole rows are stored. */
    FA__LOOP(_softmax_finish)(&state, p->scale_log2 * FA__LN_2, inverse, lse);
    FA__OP(barrier)(); /* all are done with Q */
    FA__LOOP(_pv_normalize)(&o, inverse);
#if FA__IN_UNITS
    FA__LOOP(_pv_scale_rows)(&o, weights.unit);
#endif
    FA__LOOP(_pv_to_tile)(&o, &shared->qo.o, thread);
    FA__LOOP(_write_lse)(p, box, lse, thread);
    FA__OP(barrier)();
    FA__LOOP(_otile_store)(&shared->qo.o, view.o, thread);
}
#undef FA__JUDGED
#undef FA__ALL_THERE
#undef FA__WORDS
#undef FA__BY_WARPS
#undef FA__LINES
#undef FA__WITH_COLUMNS
#undef FA__WITH_BIAS
#undef FA__COLUMNS_BEHIND
#undef FA__FAR
#undef FA__DEFERS
#undef FA__LOAD
#undef FA__LOAD_STEP
#undef FA__SHARE
#undef FA__READERS
