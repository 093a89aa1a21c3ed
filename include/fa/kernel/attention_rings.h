/* attention_rings.h: what the warps of a team of the sm_90a schedule share: rings of buffers for Q, K and V, with a
 * barrier for each direction, and the notes and blocks by which the planner tells the others what these hold. */
enum {
    FA__LOOP(_groups) = FA__GROUPS,
    FA__LOOP(_knowable) = FA__TEAMS > 1 ? 1024 : FA__SENDS ? 160 : 192, /* tiles of keys of which the planner remembers something: as many as leave room for O at 128 */
    FA__LOOP(_threads) = 128 * (FA__TEAMS * FA__LOOP(_groups) + 1),
    FA__LOOP(_most) = 227 / FA__TEAMS * 1024, /* bytes of shared memory */
    FA__LOOP(_ring_bytes) = FA_STAGES * (int)(sizeof(FA__LOOP(_ktile_tile)) + sizeof(FA__LOOP(_vtile_tile))),
    FA__LOOP(_q_bytes) = FA__LOOP(_groups) * (int)sizeof(FA__LOOP(_qtile_tile)),
    FA__LOOP(_column_rows) = FA__COLUMNS == 0 ? 0 : FA__COLUMNS == FA__NEED_ALIBI ? FA_BLOCK_N : 64 + FA_STAGES * FA_BLOCK_N, /* of columns, 16 bytes each */
    FA__LOOP(_panels) = (int)sizeof(FA__LOOP(_otile_tile)) / FA__LOOP(_otile_PANEL_BYTES), /* of O, each of 64 columns */
    /* Small data: barriers, notes and blocks, 1,140 bytes at most, aligned to 128, and more notes; lse and barriers
     * of what is sent; columns; what the planner remembers. */
    FA__LOOP(_small) = 1152 + (FA__READERS - 1) * 128 + (FA__SENDS ? FA__LOOP(_groups) * (64 * (int)sizeof(float) + FA__LOOP(_panels) * 16) : 0) +
                       (FA__LOOP(_column_rows) * 16 + 1023) / 1024 * 1024 +
                       (FA__REMEMBERS ? FA__LOOP(_knowable) * (int)sizeof(fa__ids) : 0),
    /* Bytes that are needed; and with a bias. */
    FA__LOOP(_least) = FA__LOOP(_ring_bytes) + FA__LOOP(_q_bytes) + (FA__LOOP(_small) + 1023) / 1024 * 1024,
#if FA__BIAS_TILES
    FA__LOOP(_bias_stages) = FA__LOOP(_least) + 2 * FA__LOOP(_bias_tile_room) <= FA__LOOP(_most) ? 2 : 1,
    FA__LOOP(_taken) = FA__LOOP(_least) + FA__LOOP(_bias_stages) * FA__LOOP(_bias_tile_room),
#else
    FA__LOOP(_taken) = FA__LOOP(_least),
#endif
    /* Where there is room, the copy engine writes O from shared memory, as many panels of 64 columns at once as fit. */
    FA__LOOP(_spare) = FA__LOOP(_taken) < FA__LOOP(_most) ? FA__LOOP(_most) - FA__LOOP(_taken) : 0,
    FA__LOOP(_panel_bytes) = FA__LOOP(_groups) * 64 * FA__SM90_ROW_BYTES, /* of all warpgroups */
    /* Where there is more room, Q of the next block is loaded before this block is done. */
    FA__LOOP(_q_stages) = FA__LOOP(_spare) >= FA__LOOP(_q_bytes) + FA__LOOP(_panel_bytes) ? 2 : 1,
    FA__LOOP(_fit) = (FA__LOOP(_spare) - (FA__LOOP(_q_stages) - 1) * FA__LOOP(_q_bytes)) / FA__LOOP(_panel_bytes),
    FA__LOOP(_leaving) = FA__LOOP(_fit) < FA__LOOP(_panels) ? FA__LOOP(_fit) : FA__LOOP(_panels),
    FA__LOOP(_ring) = FA__LOOP(_leaving) ? FA__LOOP(_leaving) : 1, /* a number of places, for code and arrays that are not used where there is no room */
    /* Whether Q of the first block is asked for before it is known with which tile this begins; and whether that of
     * any other one is asked for before its first tile of K, where it has a buffer to itself. It comes from memory,
     * since no other block reads it, and would be late otherwise: up to 2% faster. (Two teams are not, of which one
     * has something to do meanwhile; and without a mask the warpgroups fall into a slower rhythm.) */
    FA__LOOP(_first_q) = FA__TEAMS == 1 && FA__HAS_MASK,
    FA__LOOP(_q_ahead) = FA__LOOP(_first_q) && FA__LOOP(_q_stages) > 1,
    FA__LOOP(_notes) = 16,  /* how far the planner may be ahead; at least FA_STAGES + 2: the loader gives a note back FA_STAGES + 1 notes later */
    FA__LOOP(_blocks) = 32, /* more than there can be from the one being sent, at most one before that being finished, to the one being planned: those after it have notes that are still used */
    FA__LOOP(_masked) = 1,
    FA__LOOP(_last) = 2,
    FA__LOOP(_first) = 4,
    FA__LOOP(_end) = 8,
    FA__LOOP(_unseen) = 16,
    FA__LOOP(_bent) = FA__BENDS_APART ? 32 : FA__LOOP(_masked),
    FA__LOOP(_note_bits) = FA__BENDS_APART ? 6 : FA__OWN_NOTES ? 5 : 4,
    FA__LOOP(_turn_barrier) = 1 /* the first warpgroup's; 0 is all threads' */
};

/* A barrier for each direction: a buffer is full, a buffer is empty again. */
typedef struct FA__LOOP(_pair) {
    uint64_t full, empty;
} FA__LOOP(_pair);

/* A block of queries, of which all warpgroups of a team have a part. */
typedef struct FA__LOOP(_block) {
    int batch, head, head_kv, query; /* batch is -1 after the last block */
} __attribute__((__aligned__(16))) FA__LOOP(_block);

typedef struct FA__LOOP(_shared) {
#if FA__COLUMNS
    /* First the columns that are the same for all tiles, then those of each tile of K. They are at the beginning
     * because compute-sanitizer counts bytes that wgmma reads twice as twice as many. */
    uint4 rows[FA__LOOP(_column_rows)] __attribute__((__aligned__(128)));
#endif
    FA__LOOP(_qtile_tile) q[FA__LOOP(_groups)][FA__LOOP(_q_stages)]; /* each warpgroup's own */
    FA__LOOP(_ktile_tile) k[FA_STAGES];
    FA__LOOP(_vtile_tile) v[FA_STAGES];
#if FA__BIAS_TILES
    unsigned char bias[FA__LOOP(_bias_stages)][FA__LOOP(_bias_tile_room)] __attribute__((__aligned__(1024)));
#endif
    /* Where panels of O wait for the copy engine: a ring of them for each warpgroup, or places for each warp. */
    unsigned char room[FA__LOOP(_leaving) ? FA__LOOP(_leaving) * FA__LOOP(_panel_bytes) : 16] __attribute__((__aligned__(1024)));
    FA__LOOP(_pair)
    of_q[FA__LOOP(_groups)][FA__LOOP(_q_stages)], of_k[FA_STAGES], of_v[FA_STAGES], of_notes[FA__LOOP(_notes)];
#if FA__BIAS_TILES
    FA__LOOP(_pair) of_bias[FA__LOOP(_bias_stages)];
#endif
    FA__LOOP(_block) block[FA__LOOP(_blocks)];
#if FA__SENDS
    FA__LOOP(_pair) of_room[FA__LOOP(_groups)][FA__LOOP(_ring)];
    float lse[FA__LOOP(_groups)][64]; /* of the block whose O is sent */
#endif
    /* A tile of keys of such a block: its number << note_bits, and bits: the mask looks at it; it is the first or
     * the last of its block; there are no more; the warpgroup sees nothing of it; ALiBi's lines bend in it (without
     * FA__BENDS_APART the same bit as the first). */
    int note[FA__LOOP(_notes)][FA__READERS];
#if FA__PLANS_TIGHT
    int run[FA__READERS]; /* the planner's */
#endif
    uint64_t of_first; /* a barrier: the first block is known (FA__LOOP(_first_q)) */
#if FA__CURVED
    int steep[FA__LOOP(_groups)][3]; /* the latest block of a warpgroup whose scores come near the soft cap (attention_soft_cap.h) */
#endif
#if FA__REMEMBERS
    fa__ids ids[FA__LOOP(_knowable)], ids_of_first[FA__READERS]; /* of tiles of keys; of the first block's queries */
#endif
} FA__LOOP(_shared);

/* `writers` arrive at `full`, and `readers` at `empty`. */
FA__FN void FA__LOOP(_init_pair)(FA__LOOP(_pair) * pair, int writers, int readers) {
    fa_sm90_mbarrier_init(fa_sm90_shared_address(&pair->full), writers);
    fa_sm90_mbarrier_init(fa_sm90_shared_address(&pair->empty), readers);
}

FA__FN int FA__LOOP(_first_key)(int word) { return (word >> FA__LOOP(_note_bits)) * FA_BLOCK_N; }

/* A place in a ring of buffers, and the parity of the phase in which it is full. */
typedef struct FA__LOOP(_place) {
    int slot, phase;
} FA__LOOP(_place);
/* That of number `number` of what goes through a ring of so many places. */
FA__FN FA__LOOP(_place) FA__LOOP(_place_of)(uint32_t number, uint32_t places) {
    const FA__LOOP(_place) place = {(int)(number % places), (int)(number / places & 1)};
    return place;
}
FA__FN void FA__LOOP(_advance)(FA__LOOP(_place) * at, int count) {
    at->slot++;
    if (at->slot == count) {
        at->slot = 0;
        at->phase ^= 1;
    }
}
FA__FN void FA__LOOP(_wait_full)(FA__LOOP(_pair) * pairs, FA__LOOP(_place) at) {
    fa_sm90_mbarrier_wait(fa_sm90_shared_address(&pairs[at.slot].full), at.phase);
}
FA__FN void FA__LOOP(_wait_empty)(FA__LOOP(_pair) * pairs, FA__LOOP(_place) at) {
    fa_sm90_mbarrier_wait(fa_sm90_shared_address(&pairs[at.slot].empty), at.phase ^ 1);
}
FA__FN void FA__LOOP(_fill)(FA__LOOP(_pair) * pairs, int slot) {
    fa_sm90_mbarrier_arrive(fa_sm90_shared_address(&pairs[slot].full));
}
FA__FN void FA__LOOP(_release)(FA__LOOP(_pair) * pairs, int slot) {
    fa_sm90_mbarrier_arrive(fa_sm90_shared_address(&pairs[slot].empty));
}

/* The room of warpgroup number `number`, or where warps send by themselves of warp number `number`: for so many
 * panels. */
FA__FN unsigned char *FA__LOOP(_room_of)(FA__LOOP(_shared) * shared, int number) {
    return shared->room + number * FA__LOOP(_leaving) * FA__LOOP(_otile_PANEL_BYTES);
}
#if FA__SENDS
/* The place of a panel of O in its ring: `block` is the number of its block in the team's order. */
FA__FN FA__LOOP(_place) FA__LOOP(_place_of_panel)(int block, int panel) {
    return FA__LOOP(_place_of)((uint32_t)(block * FA__LOOP(_panels) + panel), FA__LOOP(_ring));
}
#endif
