/* attention_planner.h: the tile scheduler of sm_90a: a warp that runs ahead of all others, and writes a note for each tile of keys that a query block sees. */

#include <fa/kernel/attention_walk.h>

/* What the planner remembers of a batch's documents. */
typedef struct FA__LOOP(_memory) {
    FA__LOOP(_shared) * shared;
#if FA__REMEMBERS
    fa__ids of_queries; /* of the block */
    int batch;          /* the one whose tiles are remembered */
    uint32_t known;     /* which of a lane's tiles are, one of each 32 */
#endif
} FA__LOOP(_memory);

FA__FN void FA__LOOP(_recall)(FA__LOOP(_memory) * memory, fa_box box) {
#if FA__REMEMBERS
    memory->of_queries = fa__ids_of(fa__document_queries(box), box.queries);
    if (box.batch != memory->batch) memory->known = 0;
    memory->batch = box.batch;
#else
    (void)memory, (void)box;
#endif
}

/* The class of a tile. The ids of documents, FA_BLOCK_N for each tile, would be read again for every query block: by the
 * planner, while all others wait for it. So each lane remembers, in shared memory, what it has learnt of its tiles; a bit
 * for 32 of them is enough, since the walk over the keys of a document mask always begins at tile 0, and lanes go on 32 tiles at a time. */
FA__FN fa_tile_class FA__LOOP(_judge)(FA__LOOP(_memory) * memory, const FA__PARAMS *p, fa_box box, int tile) {
#if FA__REMEMBERS
    fa__ids of_keys;
    box.keys.begin = tile * FA_BLOCK_N;
    box.keys.end = fa__min(box.keys.begin + FA_BLOCK_N, p->args.seqlen_k);
    if (tile < FA__LOOP(_known) && memory->known >> tile / FA__LANES & 1) of_keys = memory->shared->ids[tile];
    else of_keys = fa__ids_of(fa__document_keys(box), box.keys);
    if (tile < FA__LOOP(_known)) {
        memory->shared->ids[tile] = of_keys;
        memory->known |= 1u << tile / FA__LANES;
    }
    return fa__document_class(box, memory->of_queries, of_keys, FA__MASK_NEEDS & FA__WITH_CAUSAL);
#else
    (void)memory;
    return FA__ATTN(__classify)(p, box, tile * FA_BLOCK_N, FA_BLOCK_N);
#endif
}

/* The next tile that holds a visible element, with the mask bit of a note, or -1. */
FA__FN int FA__LOOP(_walk_next)(FA__LOOP(_walk) * walk, FA__LOOP(_memory) * memory, const FA__PARAMS *p, fa_box box, int lane) {
#if FA__HAS_MASK
    while (!walk->visit) {
        walk->word += FA__LANES;
        if (walk->word >= walk->count) return -1;
        int i = walk->word + lane, tile = FA__LOOP(_walk_tile)(walk, i);
        fa_tile_class of = i < walk->count ? FA__LOOP(_judge)(memory, p, box, tile) : FA_EMPTY;
        walk->visit = FA__OP(ballot)(of != FA_EMPTY);
        walk->full = FA__OP(ballot)(of == FA_FULL && (tile + 1) * FA_BLOCK_N <= p->args.seqlen_k);
    }
    int tile = FA__LOOP(_walk_take)(walk), full = !walk->masked;
#else
    (void)memory, (void)lane;
    int i = walk->word + FA__LANES, tile = FA__LOOP(_walk_tile)(walk, i);
    walk->word++;
    if (i >= walk->count) return -1;
    int full = (tile + 1) * FA_BLOCK_N <= p->args.seqlen_k;
#endif
    (void)box;
#if FA__COLUMNS == FA__NEED_ALIBI
    full = full && !FA__LOOP(_crosses)(p, box.queries, tile * FA_BLOCK_N);
#endif
    return tile << FA__LOOP(_note_bits) | (full && !p->negate ? 0 : FA__LOOP(_masked));
}

/* Writes the notes, in order: for each query block of this thread block, one for each tile that the mask leaves. */
FA__FN void FA__LOOP(_plan_tiles)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared, int lane) {
    const FA__PARAMS *p = &launch->p;
    FA__LOOP(_course) course = {blockIdx.x, 0, 0};
    FA__LOOP(_place) at = {0, 0};
    FA__LOOP(_walk) walk;
    FA__LOOP(_memory) memory;
    memory.shared = shared;
#if FA__REMEMBERS
    memory.batch = -1;
#endif
    for (uint32_t count = 0;; count++) {
        fa_box box = FA__LOOP(_next_block)(p, &launch->order, &course);
        int word = FA__LOOP(_end) | FA__LOOP(_last), next = -1, end = box.batch < 0;
        if (!end) {
            FA__LOOP(_recall)(&memory, box);
            FA__LOOP(_walk_start)(&walk, p, box);
            word = FA__LOOP(_walk_next)(&walk, &memory, p, box, lane);
            /* A block that sees no key gets one tile, all of which is masked. */
            if (word < 0) word = (walk.begin + walk.count) << FA__LOOP(_note_bits) | FA__LOOP(_masked);
            next = FA__LOOP(_walk_next)(&walk, &memory, p, box, lane);
            /* Consumers have most to do at a block's first tile: better one that needs no mask. */
            if (!FA__LINES && word & FA__LOOP(_masked) && next >= 0 && !(next & FA__LOOP(_masked))) {
                int second = word;
                word = next;
                next = second;
            }
            word |= FA__LOOP(_first);
        }
        if (lane == 0) {
            FA__LOOP(_block) block = {box.batch, box.head, box.head_kv, box.queries.begin};
            shared->block[count % FA__LOOP(_blocks)] = block;
        }
        while (word >= 0) {
            FA__LOOP(_wait_empty)(shared->of_notes, at);
            if (lane == 0) {
                FA__LOOP(_note) note = {next < 0 ? word | FA__LOOP(_last) : word, box.batch, box.head, box.head_kv};
                shared->note[at.slot] = note;
                fa_sm90_mbarrier_arrive(fa_sm90_shared_address(&shared->of_notes[at.slot].full));
            }
            FA__LOOP(_advance)(&at, FA__LOOP(_notes));
            word = next;
            if (word >= 0) next = FA__LOOP(_walk_next)(&walk, &memory, p, box, lane);
        }
        if (end) return;
    }
}
