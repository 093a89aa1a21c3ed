/* attention_bias_room.h: the shipped hook fa_bias for half types in the schedule for every GPU. Each warp copies its
 * rows of a tile of the bias to a place of its own in shared memory, once it is done with those of the tile before.
 * No other warp reads them, so that no barrier of the thread block is needed, and nothing of a bias is held in
 * registers while it comes. From there ldmatrix hands each thread the elements of its scores, since its fragments
 * lie in registers as scores do. */

enum { FA__LOOP(_bias_pitch) = FA__SM80_PITCH(FA_BLOCK_N, 2) }; /* bytes from row to row */

/* The rows of all warps. */
typedef struct FA__LOOP(_bias_room) {
    unsigned char rows[FA_BLOCK_M * FA__LOOP(_bias_pitch)] __attribute__((__aligned__(16)));
} FA__LOOP(_bias_room);

FA__FN unsigned char *FA__LOOP(_bias_rows)(FA__LOOP(_bias_room) * room, int thread) {
    return room->rows + thread / FA__LANES * (FA__WARP_ROWS * FA__LOOP(_bias_pitch));
}

/* Starts copying the warp's rows of a tile, if there is one, once all its lanes are done with what was there: a
 * group of copies of its own. Zeros stand for queries and keys that do not exist. */
FA__FN void FA__LOOP(_bring_bias)(FA__LOOP(_bias_room) * room, const FA__PARAMS *p, fa_box box, int tile, int thread) {
    enum {
        FA__UNITS = FA_BLOCK_N / 8, /* 16 bytes of a row */
        FA__ROWS_AT_ONCE = FA__LANES / FA__UNITS,
        FA__COPIES = FA__WARP_ROWS / FA__ROWS_AT_ONCE,
        FA__AT_ONCE = 8
    };
    const fa_attention_args *a = &p->args;
    const int lane = thread % FA__LANES, row = lane / FA__UNITS, unit = lane % FA__UNITS;
    const int key0 = tile * FA_BLOCK_N, query0 = box.queries.begin + thread / FA__LANES * FA__WARP_ROWS;
    const int64_t stride = a->bias_stride_query;
    const uint16_t *head = (const uint16_t *)FA__LOOP(_bias_of_head)(p, box);
    unsigned char *rows = FA__LOOP(_bias_rows)(room, thread);
    const uint32_t to = fa_sm80_shared_address(rows) + (uint32_t)(row * FA__LOOP(_bias_pitch) + unit * 16);
    FA__OP(warp_barrier)();
    if (tile < 0) {
    } else if ((uintptr_t)head % 16 != 0 || stride % 8 != 0) { /* addresses that no copy may have */
        FA__ROLL
        for (int i = lane; i < FA__WARP_ROWS * FA_BLOCK_N; i += FA__AT_ONCE * FA__LANES) {
            uint16_t x[FA__AT_ONCE];
            FA__UNROLL
            for (int j = 0; j < FA__AT_ONCE; j++) {
                const int query = query0 + (i + j * FA__LANES) / FA_BLOCK_N, key = key0 + (i + j * FA__LANES) % FA_BLOCK_N;
                x[j] = query < a->seqlen_q && key < a->seqlen_k ? head[query * stride + key] : (uint16_t)0;
            }
            FA__UNROLL
            for (int j = 0; j < FA__AT_ONCE; j++)
                *(uint16_t *)(rows + (i + j * FA__LANES) / FA_BLOCK_N * FA__LOOP(_bias_pitch) + (i + j * FA__LANES) % FA_BLOCK_N * 2) = x[j];
        }
    } else if (query0 + FA__WARP_ROWS > a->seqlen_q || key0 + FA_BLOCK_N > a->seqlen_k) { /* some do not exist */
        const int keys = a->seqlen_k - key0 - unit * 8;
        FA__ROLL
        for (int i = 0; i < FA__WARP_ROWS; i += FA__ROWS_AT_ONCE) {
            const int query = query0 + row + i, there = query < a->seqlen_q ? keys : 0;
            const uint16_t *from = head + query * stride + key0 + unit * 8;
            if (there <= 0 || there >= 8) fa_sm80_copy16(to + (uint32_t)(i * FA__LOOP(_bias_pitch)), from, there > 0 ? 16 : 0);
            else /* part of a copy, which compute-sanitizer takes for a whole one */
                for (int j = 0; j < 8; j++)
                    *(uint16_t *)(rows + (row + i) * FA__LOOP(_bias_pitch) + (unit * 8 + j) * 2) = j < there ? from[j] : (uint16_t)0;
        }
    } else {
        const uint16_t *from = head + (query0 + row) * stride + key0 + unit * 8;
        FA__UNROLL
        for (int i = 0; i < FA__COPIES; i++, from += FA__ROWS_AT_ONCE * stride)
            fa_sm80_copy16(to + (uint32_t)(i * FA__ROWS_AT_ONCE * FA__LOOP(_bias_pitch)), from, 16);
    }
    FA__LOOP(_ktile_commit)();
}

/* Waits for them; `pending` groups of copies have been closed since. */
FA__FN void FA__LOOP(_await_bias)(int pending) {
    FA__LOOP(_ktile_wait)(pending);
    FA__OP(warp_barrier)();
}

/* What _bias_add() takes for part i of a tile: the address that ldmatrix wants of a thread, which hands out 32 rows
 * and 8 keys at once, or 16 rows and 16. */
FA__FN uint32_t FA__LOOP(_bias_part)(FA__LOOP(_bias_room) * room, int i, int thread) {
    const int lane = thread % FA__LANES;
    return fa_sm80_shared_address(FA__LOOP(_bias_rows)(room, thread)) +
           (uint32_t)(lane % FA__WARP_ROWS * FA__LOOP(_bias_pitch) + (i * FA__PART_N + lane / FA__WARP_ROWS * 8) * 2);
}

/* s = s * scale + bias in the columns from `first` up to `last`; or s = s, if not `there`. */
enum { FA__LOOP(_bias_columns) = 8 / FA__LOOP(_qk_ROWS) }; /* of a thread, at once */
FA__FN void FA__LOOP(_bias_add)(float *s, uint32_t from, float scale, int there, int first, int last) {
    if (!there) scale = 1.0f;
    FA__UNROLL
    for (int c = first; c < last; c += FA__LOOP(_bias_columns)) {
        uint32_t x[4];
        fa_sm80_ldmatrix(x, from + (uint32_t)(c * 8));
        FA__UNROLL
        for (int i = 0; i < 4; i++) {
            float low, high, *to = &s[FA__LOOP(_qk_AT)(i % FA__LOOP(_qk_ROWS), c + i / FA__LOOP(_qk_ROWS) * 2)];
            fa_sm80_unpack_if(&low, &high, x[i], there, FA_DTYPE);
            to[0] = FA__OP(fma)(to[0], scale, low);
            to[1] = FA__OP(fma)(to[1], scale, high);
        }
    }
}
