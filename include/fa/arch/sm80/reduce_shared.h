/* sm80/reduce_shared.h: the shared memory of sm80/reduce.h, whose size the host needs to know. */
#if !defined(FA__MOST_WARPS) /* of a block */
#define FA__MOST_WARPS 32
#endif
#if defined(FA__MOST_LANES) /* of a team: there are none but within warps */
enum { FA__RED(_WITHIN) = 1, FA__RED(_LANES) = FA__MOST_LANES };
#else
enum { FA__RED(_WITHIN) = 0, FA__RED(_LANES) = 32 };
#endif
enum { FA__RED(_PARTS) = FA__MOST_WARPS * FA_BLOCKS }; /* warps of a cluster */
#undef FA__MOST_WARPS
#undef FA__MOST_LANES
typedef struct __align__(128) FA__RED(_shared) { /* what lies behind it is as well aligned */
    uint64_t sent[16]; /* two barriers that count what the blocks of a cluster send to them; and room, so that what lies behind stays aligned
                          to 128 bytes: copies into it are 5 % faster then */
    float part[FA__RED(_PARTS)][2][3]; /* of a warp, in two halves that take turns, up to three values: a block by itself uses only the beginning */
} FA__RED(_shared);
