/* attention_warpgroups.h: the forward for sm_90a: a warp that loads, warpgroups that multiply (FlashAttention-3, Shah et al., arXiv
 * 2407.08608; the timeline is in doc/how_it_works.md).
 *
 * One thread block stays on each multiprocessor and works through its share of the blocks of FA_BLOCK_M queries. Its first
 * warp, the producer, decides which tiles of keys come next and has the copy engine bring them into rings of buffers; with
 * each goes a note: which tile, whether the mask must look at it, whether it is the last of its block. FA_WARPS / 4
 * warpgroups of consumers take 64 queries each and read the same tiles.
 *
 * A consumer's step starts S' = Q K'^T of the next tile, then O += P V of the current one, and computes the softmax of S'
 * while P V runs. Between warpgroups: they take turns with the tensor cores, so that one's softmax falls under the other's
 * products. The stream of tiles does not break between blocks: S' then belongs to the next block, whose Q arrives while
 * the last softmax of this one runs.
 *
 * What the compiler must see, or it serialises all products: control flow around them that is the same for the whole warp,
 * and no product, nor a definition of its registers, under a condition. So the first step multiplies a P and V that do
 * not exist, and the last one a Q and K: their results are dropped. */

#define FA__WIDE FA__HAS_SCORE /* half types: scores stay in range without a hook (fa/softmax.h, FA_WIDE) */
#define FA__LOADER FA_TMA

/* Consumers, and what they and the producer get of a multiprocessor's registers, which are 512 times the 128 threads of a
 * warpgroup. */
#if FA_WARPS == 12
#define FA__GROUPS 3
#define FA__REGISTERS 160
#define FA__PRODUCER_REGISTERS 32
#else
#if FA_WARPS == 8
#define FA__GROUPS 2
#else
#define FA__GROUPS 1
#endif
#if FA__HAS_MASK /* the producer judges tiles */
#define FA__REGISTERS 232
#define FA__PRODUCER_REGISTERS 40
#else
#define FA__REGISTERS 240
#define FA__PRODUCER_REGISTERS 24
#endif
#endif

/* A warpgroup works on its own: 64 queries, four warps. */
#define FA__WORKER_M 64
#undef FA_WARPS
#define FA_WARPS 4
#include <fa/kernel/attention_parts.h>
#include <fa/kernel/attention_scores.h>

#if defined(FA_BENCH_NT)
#define FA__TURNS 0
#else
#define FA__TURNS 1
#endif
enum {
    FA__LOOP(_groups) = FA__GROUPS,
    FA__LOOP(_threads) = 128 * (FA__LOOP(_groups) + 1),
    FA__LOOP(_ring_bytes) = FA_STAGES * (int)(sizeof(FA__LOOP(_ktile_tile)) + sizeof(FA__LOOP(_vtile_tile))),
    /* Where there is room, Q of the next block comes before this one is done. */
    FA__LOOP(_q_stages) = FA__LOOP(_ring_bytes) + 2 * FA__LOOP(_groups) * (int)sizeof(FA__LOOP(_qtile_tile)) <= 226 * 1024 ? 2 : 1,
    FA__LOOP(_notes) = 2 * FA_STAGES, /* a note outlives its tile: every warp has read it before it is written again */
    FA__LOOP(_blocks) = 4, /* a warpgroup finishes a block when it has begun the next, whose successor may be on its way */
#if defined(FA_BENCH_T1)
    FA__LOOP(_tail) = 1,
#elif defined(FA_BENCH_T2)
    FA__LOOP(_tail) = 2,
#elif defined(FA_BENCH_T3)
    FA__LOOP(_tail) = 3,
#elif defined(FA_BENCH_T5)
    FA__LOOP(_tail) = 5,
#elif defined(FA_BENCH_T0)
    FA__LOOP(_tail) = 0,
#else
    FA__LOOP(_tail) = FA_HEAD_DIM_V <= 64 ? 4 : FA_HEAD_DIM_V <= 128 ? 2 : 1,
#endif
    FA__LOOP(_masked) = 1, FA__LOOP(_last) = 2, FA__LOOP(_note_bits) = 2,
    FA__LOOP(_turn_barrier) = 1 /* named barriers: 0 is __syncthreads() */
};

/* A barrier for each direction: a buffer is full, a buffer is free again. */
typedef struct FA__LOOP(_pair) {
    uint64_t full, free;
} FA__LOOP(_pair);

/* A block of queries, of which all warpgroups have a part. */
typedef struct FA__LOOP(_block) {
    int batch, head, head_kv, query; /* batch is -1 after the last block */
} __attribute__((aligned(16))) FA__LOOP(_block);

typedef struct FA__LOOP(_shared) {
    FA__LOOP(_qtile_tile) q[FA__LOOP(_groups)][FA__LOOP(_q_stages)]; /* each warpgroup's own */
    FA__LOOP(_ktile_tile) k[FA_STAGES];
    FA__LOOP(_vtile_tile) v[FA_STAGES];
    FA__LOOP(_pair) of_q[FA__LOOP(_groups)][FA__LOOP(_q_stages)], of_k[FA_STAGES], of_v[FA_STAGES];
    FA__LOOP(_block) block[FA__LOOP(_blocks)];
    int note[FA__LOOP(_notes)]; /* tile << note_bits | last | masked */
} FA__LOOP(_shared);

/* What a launch is given: parameters, and maps of the tensors. */
typedef struct FA__LOOP(_launch) {
    fa_tensor_map q, k, v;
    FA__PARAMS p;
} FA__LOOP(_launch);

/* A place in a ring of buffers, and the parity of the phase in which it is full. */
typedef struct FA__LOOP(_place) {
    int slot, phase;
} FA__LOOP(_place);
FA__FN void FA__LOOP(_advance)(FA__LOOP(_place) * at, int slots) {
    at->slot++;
    if (at->slot == slots) {
        at->slot = 0;
        at->phase ^= 1;
    }
}
FA__FN void FA__LOOP(_wait_full)(FA__LOOP(_pair) * pairs, FA__LOOP(_place) at) {
    fa_sm90_mbarrier_wait(fa_sm90_shared_address(&pairs[at.slot].full), at.phase);
}
FA__FN void FA__LOOP(_wait_free)(FA__LOOP(_pair) * pairs, FA__LOOP(_place) at) {
    fa_sm90_mbarrier_wait(fa_sm90_shared_address(&pairs[at.slot].free), at.phase ^ 1);
}
FA__FN void FA__LOOP(_release)(FA__LOOP(_pair) * pairs, int slot) { fa_sm90_mbarrier_arrive(fa_sm90_shared_address(&pairs[slot].free)); }

/* The work item of a round: with a mask, where later items are shorter, every other round goes backwards, which evens out
 * what a thread block gets. */
FA__FN uint32_t FA__LOOP(_item)(uint32_t round) {
    uint32_t at = FA__HAS_MASK && (round & 1) ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    return round * gridDim.x + at;
}

/* ---- the producer: one warp ---- */

/* The walk over the tiles of a block of queries: each lane judges one of 32 tiles. */
typedef struct FA__LOOP(_walk) {
    int word, end; /* tiles: the first of the 32 that are being consumed; the end */
    uint32_t visit, full;
} FA__LOOP(_walk);

FA__FN void FA__LOOP(_walk_start)(FA__LOOP(_walk) * walk, const FA__PARAMS *p, fa_box box) {
    (void)p;
    fa_range keys = box.keys;
#if FA__HAS_MASK
    if (keys.begin < keys.end) keys = FA__CAT(FA_MASK, _keys)(FA__USER(p), box);
#endif
    int begin = keys.begin / FA_BLOCK_N;
    walk->end = keys.begin < keys.end ? (keys.end + FA_BLOCK_N - 1) / FA_BLOCK_N : begin;
    walk->word = begin - FA__LANES;
    walk->visit = walk->full = 0;
}

/* The next tile that holds a visible element, with its bit for masking as in a note, or -1. */
FA__FN int FA__LOOP(_walk_next)(FA__LOOP(_walk) * walk, const FA__PARAMS *p, fa_box box, int lane) {
#if FA__HAS_MASK
    while (!walk->visit) {
        walk->word += FA__LANES;
        if (walk->word >= walk->end) return -1;
        int tile = walk->word + lane;
        fa_tile_class of = tile < walk->end ? FA__ATTN(__classify)(p, box, tile * FA_BLOCK_N, FA_BLOCK_N) : FA_EMPTY;
        walk->visit = FA__OP(ballot)(of != FA_EMPTY);
        walk->full = FA__OP(ballot)(of == FA_FULL && (tile + 1) * FA_BLOCK_N <= p->args.seqlen_k);
    }
    int bit = FA__OP(lowest_bit)(walk->visit);
    walk->visit &= walk->visit - 1;
    int tile = walk->word + bit, full = walk->full >> bit & 1;
#else
    (void)box, (void)lane;
    int tile = walk->word + FA__LANES;
    walk->word++;
    if (tile >= walk->end) return -1;
    int full = (tile + 1) * FA_BLOCK_N <= p->args.seqlen_k;
#endif
    return tile << FA__LOOP(_note_bits) | (full && !p->negate ? 0 : FA__LOOP(_masked));
}

/* Once a tile of K is free, the next one comes with its note; of V, likewise. */
FA__FN void FA__LOOP(_bring_k)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared, fa_box box, int note, int *notes,
                               FA__LOOP(_place) to, int lane) {
    FA__LOOP(_wait_free)(shared->of_k, to);
    if (lane == 0) {
        uint32_t full = fa_sm90_shared_address(&shared->of_k[to.slot].full);
        FA__LOOP(_ktile_source) from = {&launch->k, (note >> FA__LOOP(_note_bits)) * FA_BLOCK_N, box.head_kv, box.batch};
        shared->note[*notes] = note;
        if (launch->p.args.seqlen_k > 0) {
            fa_sm90_mbarrier_expect(full, FA__LOOP(_ktile_BYTES));
            FA__LOOP(_ktile_load)(&shared->k[to.slot], from, full);
        } else fa_sm90_mbarrier_arrive(full); /* there is no tensor to map */
    }
    *notes = (*notes + 1) % FA__LOOP(_notes);
}
FA__FN void FA__LOOP(_bring_v)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared, fa_box box, int note, FA__LOOP(_place) to,
                               int lane) {
    FA__LOOP(_wait_free)(shared->of_v, to);
    if (lane == 0) {
        uint32_t full = fa_sm90_shared_address(&shared->of_v[to.slot].full);
        FA__LOOP(_vtile_source) from = {&launch->v, (note >> FA__LOOP(_note_bits)) * FA_BLOCK_N, box.head_kv, box.batch};
        if (launch->p.args.seqlen_k > 0) {
            fa_sm90_mbarrier_expect(full, FA__LOOP(_vtile_BYTES));
            FA__LOOP(_vtile_load)(&shared->v[to.slot], from, full);
        } else fa_sm90_mbarrier_arrive(full);
    }
}
/* Once a warpgroup is done with its Q, the next one comes; or the word that there is none. */
FA__FN void FA__LOOP(_bring_q)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared, fa_box box, int count, int lane) {
    FA__LOOP(_block) block = {box.batch, box.head, box.head_kv, box.queries.begin};
    int slot = count % FA__LOOP(_q_stages);
    for (int group = 0; group < FA__LOOP(_groups); group++) {
        FA__LOOP(_place) to = {slot, count / FA__LOOP(_q_stages) & 1};
        FA__LOOP(_wait_free)(shared->of_q[group], to);
        if (lane == 0) {
            uint32_t full = fa_sm90_shared_address(&shared->of_q[group][slot].full);
            FA__LOOP(_qtile_source) from = {&launch->q, box.queries.begin + group * 64, box.head, box.batch};
            shared->block[count % FA__LOOP(_blocks)] = block;
            if (box.batch >= 0) {
                fa_sm90_mbarrier_expect(full, FA__LOOP(_qtile_BYTES));
                FA__LOOP(_qtile_load)(&shared->q[group][slot], from, full);
            } else fa_sm90_mbarrier_arrive(full);
        }
    }
}

/* What the next block begins with comes into the L2 cache while this one is computed. */
FA__FN void FA__LOOP(_foresee)(const FA__LOOP(_launch) * launch, uint32_t round, int lane) {
    const FA__PARAMS *p = &launch->p;
    uint32_t item = FA__LOOP(_item)(round);
    if (item >= p->items || lane != 0) return;
    fa_box box = FA__ATTN(__box)(p, item, FA_BLOCK_M);
    for (int group = 0; group < FA__LOOP(_groups); group++) {
        FA__LOOP(_qtile_source) q = {&launch->q, box.queries.begin + group * 64, box.head, box.batch};
        FA__LOOP(_qtile_prefetch)(q);
    }
}

FA__FN void FA__LOOP(_produce)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared, int lane) {
    const FA__PARAMS *p = &launch->p;
    FA__LOOP(_place) to = {0, 0};
    int notes = 0, count = 0;
    for (;; count++) {
        uint32_t item = FA__LOOP(_item)((uint32_t)count);
        if (item >= p->items) break;
        fa_box box = FA__ATTN(__box)(p, item, FA_BLOCK_M);
        FA__LOOP(_walk) walk;
        FA__LOOP(_walk_start)(&walk, p, box);
        int note = FA__LOOP(_walk_next)(&walk, p, box, lane);
        /* A block that sees no key gets one tile, all of which is masked. */
        if (note < 0) note = walk.end << FA__LOOP(_note_bits) | FA__LOOP(_masked);
#if !defined(FA_BENCH_NOPF)
        FA__LOOP(_foresee)(launch, (uint32_t)count + 1, lane);
#endif
        for (int first = 1; note >= 0; first = 0) {
            int next = FA__LOOP(_walk_next)(&walk, p, box, lane);
            note |= next < 0 ? FA__LOOP(_last) : 0;
            FA__LOOP(_bring_k)(launch, shared, box, note, &notes, to, lane);
            if (first) FA__LOOP(_bring_q)(launch, shared, box, count, lane);
            FA__LOOP(_bring_v)(launch, shared, box, note, to, lane);
            FA__LOOP(_advance)(&to, FA_STAGES);
            note = next;
        }
    }
    fa_box none;
    memset(&none, 0, sizeof none);
    none.batch = -1;
    FA__LOOP(_bring_q)(launch, shared, none, count, lane);
}

/* ---- a consumer: a warpgroup ---- */

/* Turns with the tensor cores: a warpgroup waits at its barrier, where the one before it arrives. */
FA__FN void FA__LOOP(_take_turn)(int group) {
    if (FA__LOOP(_groups) > 1 && FA__TURNS) fa_sm90_bar_sync(FA__LOOP(_turn_barrier) + group, 256);
}
FA__FN void FA__LOOP(_pass_turn)(int group) {
    if (FA__LOOP(_groups) > 1 && FA__TURNS) fa_sm90_bar_arrive(FA__LOOP(_turn_barrier) + (group + 1 == FA__LOOP(_groups) ? 0 : group + 1), 256);
}

/* Normalises O and writes it, and lse. */
FA__FN void FA__LOOP(_finish)(FA__LOOP(_pv_acc) * o, const FA__LOOP(_softmax_state) * state, const FA__PARAMS *p, fa_box box, int thread) {
    const fa_attention_args *a = &p->args;
    float inverse[FA__LOOP(_qk_ROWS)], lse[FA__LOOP(_qk_ROWS)];
    FA__LOOP(_softmax_finish)(state, p->scale_log2 * FA__LN_2, inverse, lse);
    FA__LOOP(_pv_normalize)(o, inverse);
    fa_block to = FA__LOOP(_out)(p, box);
    FA__LOOP(_pv_store)(o, to, thread);
    if (a->lse && FA__LOOP(_qk_col)(thread, 0) == 0) {
        float *out = a->lse + ((int64_t)box.batch * a->heads + box.head) * a->seqlen_q;
        FA__UNROLL
        for (int r = 0; r < FA__LOOP(_qk_ROWS); r++) {
            int row = box.queries.begin + FA__LOOP(_qk_row)(thread, r);
            if (row < a->seqlen_q) out[row] = lse[r];
        }
    }
}

/* What a warpgroup knows. The arrays lie in registers. */
typedef struct FA__LOOP(_consumer) {
    const FA__PARAMS *p;
    const FA__LOOP(_shared) * shared;
    int thread, group;
    uint32_t base, q_places, k_places, v_places; /* addresses, kept because they would be derived again in every step */
    FA__LOOP(_place) current, next;             /* rings: the tile whose weights are ready, and the one after it */
    int note, coming;                           /* their notes; coming is not known before a block's first tile */
    int q_slot;                                 /* where Q of the latest block is */
    int notes, blocks;                          /* how many have been read */
    int begun, summed;                          /* there is a current tile; O has some of its block */
    FA__LOOP(_qk_acc) s;
    FA__LOOP(_pv_acc) o;
    FA__LOOP(_pv_a) weights;
    FA__LOOP(_softmax_state) state;
} FA__LOOP(_consumer);

/* The address of a barrier. */
#define FA__BARRIER(c, of, slot, which)                                                                      \
    ((c)->base + (uint32_t)(offsetof(FA__LOOP(_shared), of) + offsetof(FA__LOOP(_pair), which)) +              \
     (uint32_t)(slot) * (uint32_t)sizeof(FA__LOOP(_pair)))

/* This warpgroup's part of the block that is `back` before the latest. */
FA__FN fa_box FA__LOOP(_part)(const FA__LOOP(_consumer) * c, int back) {
    const fa_attention_args *a = &c->p->args;
    FA__LOOP(_block) block = c->shared->block[(c->blocks - 1 - back) % FA__LOOP(_blocks)];
    fa_box box = {a, block.batch, block.head, block.head_kv, {block.query + c->group * 64, fa__min(block.query + FA_BLOCK_M, a->seqlen_q)}, {0, a->seqlen_k}};
    return box;
}

/* Waits for the next tile of keys, and reads its note. */
FA__FN void FA__LOOP(_await_tile)(FA__LOOP(_consumer) * c) {
    fa_sm90_mbarrier_wait(FA__BARRIER(c, of_k, c->next.slot, full), c->next.phase);
    c->coming = fa_sm90_uniform(c->shared->note[c->notes]);
    c->notes = (c->notes + 1) % FA__LOOP(_notes);
}

/* Hooks and the mask, where a tile needs them. */
FA__FN void FA__LOOP(_apply)(FA__LOOP(_consumer) * c, int plain) {
    int masked = plain ? 0 : c->note & FA__LOOP(_masked);
    if (!FA__HAS_SCORE && !masked) return;
    if (masked && c->p->negate) /* a negative scale, without a hook: the exponent's factor stays positive */
        FA__UNROLL
        for (int i = 0; i < (int)(sizeof c->s.x / sizeof c->s.x[0]); i++) c->s.x[i] = -c->s.x[i];
    fa_box box = FA__LOOP(_part)(c, 0);
    FA__LOOP(_modify)(c->s.x, c->p, FA__LOOP(_index)(c->p, box), box, (c->note >> FA__LOOP(_note_bits)) * FA_BLOCK_N, masked, c->thread);
}

/* O += P V of the current tile, in two groups, the second of which is the last `tail` of its steps. */
FA__FN void FA__LOOP(_start_pv)(FA__LOOP(_consumer) * c, int accumulate) {
    enum { FA__V_STEP = (int)sizeof c->shared->v[0] / 16, FA__MOST = FA__LOOP(_pv_STEPS) - FA__LOOP(_tail) };
    uint32_t place = c->v_places + (uint32_t)(c->current.slot * FA__V_STEP);
    FA__LOOP(_pv_start_steps)(&c->o, &c->weights, place, accumulate, 0, FA__MOST);
    FA__LOOP(_pv_commit)();
    FA__LOOP(_pv_start_steps)(&c->o, &c->weights, place, 1, FA__MOST, FA__LOOP(_pv_STEPS));
    FA__LOOP(_pv_commit)();
}

/* A step: P V of the current tile, Q K^T and the softmax of the next one. If it is plain, both are of one block, and no
 * mask looks at the next one. */
FA__FN void FA__LOOP(_step)(FA__LOOP(_consumer) * c, int plain) {
    enum { FA__K_STEP = (int)sizeof c->shared->k[0] / 16 };
    int leader = c->thread == 0, last = plain ? 0 : c->note & FA__LOOP(_last);
    float scale_log2 = c->p->scale_log2, alpha[FA__LOOP(_qk_ROWS)];
    FA__LOOP(_softmax_state) ended;
    FA__LOOP(_softmax_step) step;

    FA__LOOP(_take_turn)(c->group);
    FA__LOOP(_qk_fence)();
    FA__LOOP(_qk_start)(&c->s, c->q_places + (uint32_t)(c->q_slot * (int)sizeof c->shared->q[0][0] / 16), c->k_places + (uint32_t)(c->next.slot * FA__K_STEP), 0);
    FA__LOOP(_qk_commit)();
    if (plain || c->begun) fa_sm90_mbarrier_wait(FA__BARRIER(c, of_v, c->current.slot, full), c->current.phase);
    FA__LOOP(_start_pv)(c, c->summed);
    c->summed = 1;

    int v_slot = c->current.slot;
    c->current = c->next;
    FA__LOOP(_advance)(&c->next, FA_STAGES);
    c->note = c->coming;
    if (!plain && last) {
        ended = c->state;
        FA__LOOP(_softmax_init)(&c->state);
    }
    FA__LOOP(_qk_wait)(&c->s, 2);
    fa_sm90_mbarrier_arrive_if(FA__BARRIER(c, of_k, c->current.slot, free), leader);
    fa_sm90_mbarrier_arrive_if(FA__BARRIER(c, of_q, c->group * FA__LOOP(_q_stages) + c->q_slot, free), leader && c->note & FA__LOOP(_last));
    FA__LOOP(_apply)(c, plain);
    int rescale = FA__LOOP(_softmax_raise)(&c->state, &step, c->s.x, scale_log2, alpha);

    /* The turn goes on a little before P V is done, so that no product waits for it. */
    FA__LOOP(_pv_wait)(&c->o, 1);
    FA__LOOP(_pass_turn)(c->group);
    FA__LOOP(_pv_wait)(&c->o, 0);
    fa_sm90_mbarrier_arrive_if(FA__BARRIER(c, of_v, v_slot, free), leader && (plain || c->begun));
    if (!(c->note & FA__LOOP(_last))) FA__LOOP(_await_tile)(c);
    if (last) {
        if (c->begun) FA__LOOP(_finish)(&c->o, &ended, c->p, FA__LOOP(_part)(c, 1), c->thread);
        c->summed = 0;
    } else if (FA__OP(any)(rescale)) {
        FA__LOOP(_softmax_fade)(&c->state, alpha);
        FA__LOOP(_pv_scale_rows)(&c->o, alpha);
    }
    FA__LOOP(_softmax_weigh)(&c->state, &step, c->s.x, scale_log2, 0, FA__LOOP(_softmax_COLS));
    FA__LOOP(_pv_pack)(&c->weights, c->s.x);
    c->begun = 1;
}

FA__FN void FA__LOOP(_consume)(const FA__PARAMS *p, FA__LOOP(_shared) * shared, int thread, int group) {
    FA__LOOP(_consumer) own, *c = &own;
    c->p = p;
    c->shared = shared;
    c->thread = thread;
    c->group = group;
    c->base = (uint32_t)fa_sm90_uniform((int)fa_sm90_shared_address(shared));
    c->q_places = (uint32_t)fa_sm90_uniform((int)FA__LOOP(_qk_a_place)(&shared->q[group][0], 0));
    c->k_places = (uint32_t)fa_sm90_uniform((int)FA__LOOP(_qk_b_place)(shared->k));
    c->v_places = (uint32_t)fa_sm90_uniform((int)FA__LOOP(_pv_b_place)(shared->v));
    c->current.slot = FA_STAGES - 1, c->current.phase = 1;
    c->next.slot = c->next.phase = 0;
    c->note = FA__LOOP(_last);
    c->coming = c->notes = c->blocks = c->begun = c->summed = c->q_slot = 0;
    FA__UNROLL
    for (int i = 0; i < (int)(sizeof c->weights.x / sizeof c->weights.x[0]); i++) c->weights.x[i] = 0;
    FA__LOOP(_pv_zero)(&c->o);
    FA__LOOP(_softmax_init)(&c->state);
    if (group == FA__LOOP(_groups) - 1) FA__LOOP(_pass_turn)(group);

    for (;;) {
        while (!(c->note & FA__LOOP(_last)) && !(c->coming & FA__LOOP(_masked))) FA__LOOP(_step)(c, 1);
        if (c->note & FA__LOOP(_last)) {
            c->q_slot = c->blocks % FA__LOOP(_q_stages);
            fa_sm90_mbarrier_wait(FA__BARRIER(c, of_q, group * FA__LOOP(_q_stages) + c->q_slot, full), c->blocks / FA__LOOP(_q_stages) & 1);
            int more = fa_sm90_uniform(shared->block[c->blocks % FA__LOOP(_blocks)].batch) >= 0;
            c->blocks++;
            if (!more) break;
            FA__LOOP(_await_tile)(c);
        }
        FA__LOOP(_step)(c, 0);
    }
    /* The last tile's P V. */
    FA__LOOP(_take_turn)(group);
    fa_sm90_mbarrier_wait(FA__BARRIER(c, of_v, c->current.slot, full), c->current.phase);
    FA__LOOP(_pv_fence)();
    FA__LOOP(_start_pv)(c, c->summed);
    FA__LOOP(_pv_wait)(&c->o, 0);
    FA__LOOP(_pass_turn)(group);
    FA__LOOP(_finish)(&c->o, &c->state, p, FA__LOOP(_part)(c, 1), thread);
    if (group == 0) FA__LOOP(_take_turn)(group); /* the one that is left over */
}
#undef FA__BARRIER

/* ---- the thread block ---- */

FA__FN void FA__LOOP(_run)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared) {
    int thread = (int)threadIdx.x, group = fa_sm90_uniform(thread / 128);
    if (thread == 0) {
        for (int i = 0; i < FA__LOOP(_groups); i++) {
            for (int j = 0; j < FA__LOOP(_q_stages); j++) {
                fa_sm90_mbarrier_init(fa_sm90_shared_address(&shared->of_q[i][j].full), 1);
                fa_sm90_mbarrier_init(fa_sm90_shared_address(&shared->of_q[i][j].free), 1);
            }
        }
        for (int i = 0; i < FA_STAGES; i++) {
            fa_sm90_mbarrier_init(fa_sm90_shared_address(&shared->of_k[i].full), 1);
            fa_sm90_mbarrier_init(fa_sm90_shared_address(&shared->of_k[i].free), FA__LOOP(_groups));
            fa_sm90_mbarrier_init(fa_sm90_shared_address(&shared->of_v[i].full), 1);
            fa_sm90_mbarrier_init(fa_sm90_shared_address(&shared->of_v[i].free), FA__LOOP(_groups));
        }
        fa_sm90_mbarrier_fence();
    }
    FA__OP(barrier)();
    if (group == 0) {
        fa_sm90_registers_lower(FA__PRODUCER_REGISTERS);
        if (fa_sm90_uniform(thread / 32) == 0) FA__LOOP(_produce)(launch, shared, thread % 32);
    } else {
        fa_sm90_registers_raise(FA__REGISTERS);
        FA__LOOP(_consume)(&launch->p, shared, thread % 128, group - 1);
    }
}
#undef FA__GROUPS
#undef FA__REGISTERS
#undef FA__PRODUCER_REGISTERS
