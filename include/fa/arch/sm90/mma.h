/* sm90/mma.h: products of tiles by wgmma. A warpgroup (four warps) computes 64 rows of all FA_N columns; lane l of
 * warp w holds rows 16 w + l / 4 and 8 below, and of every 8 columns l % 4 * 2 and the next, as mma.sync does. */
#include <fa/arch/sm80/bounds.h>
#include <fa/arch/sm90/layout.h>

FA__REQUIRE(
    FA_WARPS % 4 == 0 && FA_M == FA_WARPS * 16,
    "FA_M is " FA__STR(FA_M) " and FA_WARPS is " FA__STR(FA_WARPS) ": FA_ARCH 90 needs FA_WARPS to be a multiple of 4 and FA_M to be 16 * FA_WARPS, 64 for each warpgroup");
#if FA_N > 256
FA__REQUIRE(0, "FA_N is " FA__STR(FA_N) ": FA_ARCH 90 multiplies at most 256");
#undef FA_N
#define FA_N 256
#endif
FA__REQUIRE((FA_A == FA_SHARED && FA_B == FA_OPERAND_B) || FA_K % 16 == 0,
            "FA_K is " FA__STR(FA_K) ": FA_FRAGMENT and FA_OPERAND_BT need a multiple of 16 on a GPU");

#if FA_DTYPE == FA_F16
#define FA__HALF(name) fa_sm90_##name##_f16
#define FA__HALF_TYPE "f16"
#else
#define FA__HALF(name) fa_sm90_##name##_bf16
#define FA__HALF_TYPE "bf16"
#endif
#if FA_B == FA_OPERAND_B
#define FA__B_MAJOR "0"
#else
#define FA__B_MAJOR "1"
#endif

enum {
    FA__MMA(_ROWS) = 2,
    FA__MMA(_COLS) = FA_N / 4,
    FA__MMA(_K) = (FA_K + 15) / 16 * 16,
    FA__MMA(_STEPS) = (FA_K + 15) / 16,
    FA__MMA(_A_PANEL) = FA_M * FA__SM90_ROW_BYTES, /* bytes from panel to panel */
    FA__MMA(_B_PANEL) = (FA_B == FA_OPERAND_B ? FA_N : FA__MMA(_K)) * FA__SM90_ROW_BYTES,
};

typedef struct FA__MMA(_acc) {
    float x[FA__MMA(_ROWS) * FA__MMA(_COLS)];
} FA__MMA(_acc);

FA__FN int FA__MMA(_row)(int thread, int r) {
    unsigned at = (unsigned)thread; /* divides by a shift */
    return (int)(at / 32 * 16 + at % 32 / 4) + r * 8;
}
/* A thread's columns are col(thread, 0) + col_offset(c), offsets known to the compiler. */
FA__FN int FA__MMA(_col_offset)(int c) { return c / 2 * 8 + c % 2; }
FA__FN int FA__MMA(_col)(int thread, int c) { return (int)((unsigned)thread % 4) * 2 + FA__MMA(_col_offset)(c); }

/* A fragments, for each step of 16 in K four registers. */
typedef struct FA__MMA(_a) {
    uint32_t x[FA__MMA(_STEPS) * 4];
} FA__MMA(_a);

/* A fragments from the accumulator of a product whose N is this one's K: the layouts are the same. */
FA__FN void FA__MMA(_pack)(FA__MMA(_a) * a, const float *acc) {
#pragma unroll
    for (int i = 0; i < FA__MMA(_STEPS) * 4; i++) a->x[i] = FA__HALF(pack)(acc[2 * i], acc[2 * i + 1]);
}

/* A fragments from an FA_OPERAND_A tile, for products that use them again and again. */
FA__FN void FA__MMA(_load_a)(FA__MMA(_a) * a, const void *a_tile, int thread) {
    int lane = thread % 32, row = thread / 32 * 16 + lane % 16;
    uint32_t from = fa_sm90_shared_address(a_tile);
#pragma unroll
    for (int k = 0; k < FA__MMA(_STEPS); k++)
        fa_sm90_ldmatrix(a->x + 4 * k, from + (uint32_t)FA__SM90_OFFSET(row, 2 * k + lane / 16, FA__MMA(_A_PANEL)));
}

/* Where a tile lies, as wgmma wants to be told; another tile is (distance in bytes / 16) further. */
FA__FN uint32_t FA__MMA(_a_place)(const void *a_tile, int thread) {
    return FA__SM90_PLACE(fa_sm90_shared_address(a_tile) +
                              (uint32_t)((FA_WARPS == 4 ? 0 : fa_sm90_uniform(thread / 128)) * 64 * FA__SM90_ROW_BYTES),
                          0);
}
FA__FN uint32_t FA__MMA(_b_place)(const void *b_tile) {
    return FA__SM90_PLACE(fa_sm90_shared_address(b_tile), FA__MMA(_B_PANEL));
}

#include <fa/arch/sm90/plain_n.h>

/* Starts C = A B, plus C if `accumulate`, in steps of 16 in K, of which four fill a row of a panel where rows run along
 * K. The caller fences before, commits after, and waits before reading C, or writing A's registers. */
#if FA_A == FA_FRAGMENT
FA__FN void FA__MMA(_start)(FA__MMA(_acc) * acc, const FA__MMA(_a) * a, uint32_t b, int accumulate) {
#else
FA__FN void FA__MMA(_start)(FA__MMA(_acc) * acc, uint32_t a, uint32_t b, int accumulate) {
#endif
#pragma unroll
    for (int k = 0; k < FA__MMA(_STEPS); k++) {
        uint32_t along_k = (uint32_t)(k % 4 * 32 >> 4),
                 b_step = FA_B == FA_OPERAND_B ? (uint32_t)(k / 4 * FA__MMA(_B_PANEL) >> 4) + along_k
                                               : (uint32_t)(k * 16 * FA__SM90_ROW_BYTES >> 4);
        uint64_t from_b = fa_sm90_descriptor(b + b_step, FA__SM90_PATTERN_OF(b));
#if FA_A == FA_FRAGMENT
        fa_sm90_wgmma_registers(FA__PLAIN_N, FA__HALF_TYPE, FA__B_MAJOR, acc->x, a->x + 4 * k, from_b, accumulate | (k > 0));
#else
        uint64_t from_a =
            fa_sm90_descriptor(a + (uint32_t)(k / 4 * FA__MMA(_A_PANEL) >> 4) + along_k, FA__SM90_PATTERN_OF(a));
        fa_sm90_wgmma_shared(FA__PLAIN_N, FA__HALF_TYPE, FA__B_MAJOR, acc->x, from_a, from_b, accumulate | (k > 0));
#endif
    }
}

/* Starts C += 2 A B with a K of eight, in FA_BF16 whatever FA_DTYPE is. In memory B has a row of these eight, 16
 * bytes, for each of its FA_N columns, at `b`, a multiple of 128 bytes. A has 64 such rows at `a`, the same for
 * every warpgroup; or, held in registers, a thread has of its two rows of A what the first two registers of a
 * fragment hold. wgmma takes 16 of K: these eight twice, hence the 2, by a descriptor whose halves of a row are at a
 * distance of 0. (With zeros in the other eight of A, infinite numbers of B would make NaN.) */
FA__FN uint64_t FA__MMA(_eight_at)(uint32_t address) { return fa_sm90_descriptor(FA__SM90_PLACE(address, 0), FA__SM90_DENSE); }
FA__FN void FA__MMA(_start_eight)(FA__MMA(_acc) * acc, uint32_t a, uint32_t b) {
    fa_sm90_wgmma_shared(FA__PLAIN_N, "bf16", "0", acc->x, FA__MMA(_eight_at)(a), FA__MMA(_eight_at)(b), 1);
}
FA__FN void FA__MMA(_start_held_eight)(FA__MMA(_acc) * acc, const uint32_t *a, uint32_t b) {
    const uint32_t twice[4] = {a[0], a[1], a[0], a[1]};
    (void)twice; /* compiled for the generic compute_90 */
    fa_sm90_wgmma_registers(FA__PLAIN_N, "bf16", "0", acc->x, twice, FA__MMA(_eight_at)(b), 1);
}

/* Orders registers that the threads have written before the products that follow. */
FA__FN void FA__MMA(_fence)(void) { fa_sm90_wgmma_fence(); }
/* Closes a group of products. */
FA__FN void FA__MMA(_commit)(void) { fa_sm90_wgmma_commit(); }
/* Waits until all but the latest `pending` groups are done; C may be read then. */
FA__FN void FA__MMA(_wait)(FA__MMA(_acc) * acc, int pending) {
    fa_sm90_wgmma_wait(pending);
    fa_sm90_wgmma_arrived(FA__PLAIN_N, acc->x);
}

/* C += A B, done when it returns. */
#if FA_A == FA_FRAGMENT
FA__FN void FA__MMA(_mma)(FA__MMA(_acc) * acc, const FA__MMA(_a) * a, const void *b_tile, int thread) {
    (void)thread;
    FA__MMA(_fence)();
    FA__MMA(_start)(acc, a, FA__MMA(_b_place)(b_tile), 1);
#else
FA__FN void FA__MMA(_mma)(FA__MMA(_acc) * acc, const void *a_tile, const void *b_tile, int thread) {
    FA__MMA(_fence)();
    FA__MMA(_start)(acc, FA__MMA(_a_place)(a_tile, thread), FA__MMA(_b_place)(b_tile), 1);
#endif
    FA__MMA(_commit)();
    FA__MMA(_wait)(acc, 0);
}

/* The accumulator, rounded: of each group of 8 columns the pairs of rows 0 and 8. */
typedef struct FA__MMA(_halves) {
    uint32_t x[FA_N / 8 * 2];
} FA__MMA(_halves);
FA__FN void FA__MMA(_round)(FA__MMA(_halves) * halves, const FA__MMA(_acc) * acc) {
#pragma unroll
    for (int i = 0; i < FA_N / 8 * 2; i++) {
        int at = FA__AT(i % 2, i / 2 * 2, 2, 0);
        halves->x[i] = FA__HALF(pack)(acc->x[at], acc->x[at + 1]);
    }
}

/* Writes 16 columns of `halves`, from those of group `group` of 8 on, zeros beyond FA_N, to the addresses of
 * stmatrix. */
FA__FN void FA__MMA(_put)(uint32_t to, const FA__MMA(_halves) * halves, int group) {
    uint32_t x[4];
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = group + i / 2 < FA_N / 8 ? halves->x[group * 2 + i] : 0;
    fa_sm90_stmatrix(to, x);
}

/* Writes the accumulator, rounded, into an FA_OPERAND_A tile of FA_M x FA_N, with the zeros that pad it. */
FA__FN void FA__MMA(_to_tile)(const FA__MMA(_acc) * acc, void *tile, int thread) {
    enum { FA__GROUPS_OF_8 = FA_N / 8 };
    unsigned lane = (unsigned)thread % 32, row = (unsigned)thread / 32 * 16 + lane % 16;
    uint32_t to = fa_sm90_shared_address(tile);
    FA__MMA(_halves) halves;
    FA__MMA(_round)(&halves, acc);
#pragma unroll
    for (unsigned unit = 0; unit < FA__GROUPS_OF_8; unit += 2)
        FA__MMA(_put)(to + FA__SM90_OFFSET(row, unit + lane / 16, (unsigned)FA__MMA(_A_PANEL)), &halves, (int)unit);
}

/* Writes 64 columns of each warp's 16 rows into a panel of its own, 16 rows of a tile. */
FA__FN void FA__MMA(_to_panel)(const FA__MMA(_halves) * halves, int panel, void *to, int thread) {
    unsigned lane = (unsigned)thread % 32;
#pragma unroll
    for (unsigned unit = 0; unit < FA__SM90_PANEL / 8; unit += 2)
        if (panel * FA__SM90_PANEL + (int)unit * 8 < FA_N)
            FA__MMA(_put)(fa_sm90_shared_address(to) + FA__SM90_OFFSET(lane % 16, unit + lane / 16, 0u), halves,
                          panel * (FA__SM90_PANEL / 8) + (int)unit);
}

/* Exchanges two words with the lane whose number differs in `bit`: afterwards the lane without that bit has both of the
 * first ones, its own before the other's, and the lane with it both of the second ones. */
FA__FN void FA__MMA(_trade)(uint32_t *first, uint32_t *second, int lane, int bit) {
    uint32_t got = fa_sm90_shuffle(lane & bit ? *first : *second, bit);
    if (lane & bit) *first = got;
    else *second = got;
}

/* Writes the accumulator, rounded, to the rows and columns of a block that starts at to.row, without a detour through
 * shared memory: of four neighbouring lanes, which share a row, each collects the 16 bytes of one of four groups of 8
 * columns. */
FA__FN void FA__MMA(_store)(const FA__MMA(_acc) * acc, fa_block to, int thread) {
    int lane = thread % 4;
#pragma unroll
    for (int r = 0; r < FA__MMA(_ROWS); r++) {
        int row = to.row + FA__MMA(_row)(thread, r);
        FA__ELEMENT *out = (FA__ELEMENT *)(uintptr_t)to.data + row * to.stride_row + lane * 8;
#pragma unroll
        for (int c = 0; c < FA__MMA(_COLS); c += 8) {
            uint32_t word[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                word[i] = c + 2 * i < FA__MMA(_COLS) ? FA__HALF(pack)(acc->x[FA__AT(r, c + 2 * i, 2, 0)],
                                                                      acc->x[FA__AT(r, c + 2 * i + 1, 2, 0)])
                                                     : 0;
            FA__MMA(_trade)(&word[0], &word[1], lane, 1);
            FA__MMA(_trade)(&word[2], &word[3], lane, 1);
            FA__MMA(_trade)(&word[0], &word[2], lane, 2);
            FA__MMA(_trade)(&word[1], &word[3], lane, 2);
            int col = c * 4 + lane * 8, inside = (unsigned)row < (unsigned)to.rows && col < to.cols;
            const uint4 all = {word[0], word[1], word[2], word[3]};
            if (inside && col < FA_N) fa__store_bytes(out + c * 4, &all, fa__bytes_inside(col * 2, to.cols * 2), 2);
        }
    }
}

#undef FA__HALF
#undef FA__HALF_TYPE
#undef FA__B_MAJOR
#undef FA__PLAIN_N
