/* 06 tiles by the copy engine: one thread asks for a whole tile.
 *
 * In step 05 all 128 threads compute 8 addresses each, and issue 8 copies, for every tile of keys and values. Hopper
 * has a copy engine for this, the tensor memory accelerator (TMA). The host describes a tensor once, in a tensor map:
 * its address, sizes, strides, and the box that a copy brings. A kernel then names the map and coordinates:
 *
 *     thread 0:       the barrier expects 16,384 bytes; copy the boxes of K and V at (row, head) to this place
 *     everybody:      wait at the barrier
 *
 * Copies arrive at a barrier in shared memory that counts arrivals and bytes (fa/mbarrier.h). When all that it was told of
 * have come, its phase ends and the next one begins by itself. Who waits says by its parity which phase has to end: tile
 * i is there when phase i / 2 of its buffer's barrier, counted from 0, has ended.
 *
 * What lies beyond an end of the tensor arrives as zeros; nobody tests anything. And the engine stores the tile so
 * that reading columns of it causes no bank conflicts: without padding, by moving the eight 16-byte units of row r to
 * the places unit ^ (r % 8) (PTX ISA, "Swizzling Modes"). at() below is all there is to that.
 *
 *     row 0    0 1 2 3 4 5 6 7
 *     row 1    1 0 3 2 5 4 7 6        the place p of row r holds unit p ^ r
 *     row 2    2 3 0 1 6 7 4 5
 *     ...
 *
 * The arithmetic is step 04's, but for at(). It reads the swizzled tiles with the instructions of sm_80; the next
 * step has better ones, which know this layout.
 */
#if !defined(NO_MAIN)
#define NO_MAIN
#define MAIN_06
#endif
#include "harness.h"

#include <fa/fa.h>

#if ON_GPU && FA__COMPILES_90
#undef HEAD_DIM
#include "05_async_copies.cu" /* and with it 04: warp_state and its functions */

#define FA_NAME rows64 /* rows64_tile, rows64_map(), rows64_fetch() ... */
#define FA_DTYPE FA_BF16
#define FA_ROWS 64
#define FA_COLS HEAD_DIM
#define FA_LOADER FA_TMA
#define FA_ARCH 90
#include <fa/tile.h>

/* What the kernel gets. Maps must lie in a parameter that is __grid_constant__: the engine reads them there. */
typedef struct mapped_problem {
    fa_tensor_map q, k, v;
    problem p;
} mapped_problem;

/* Where the copy engine has put element (row, column) of a tile. */
DEVICE const uint16_t *at(const rows64_tile *tile, int row, int column) {
    return (const uint16_t *)tile->x + row * HEAD_DIM + (column / 8 ^ row % 8) * 8 + column % 8;
}

/* state_begin(), state_scores() and state_outputs() of step 04, on such tiles. */
DEVICE void swizzled_begin(warp_state *w, const rows64_tile *q) {
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    for (int i = 0; i < HEAD_DIM / 16; i++) load_matrices(w->q[i], at(q, 16 * warp + lane % 16, 16 * i + lane / 16 * 8));
    for (int i = 0; i < HEAD_DIM / 8; i++)
        for (int j = 0; j < 4; j++) w->o[i][j] = 0;
    for (int r = 0; r < 2; r++) w->highest[r] = -INFINITY, w->sum[r] = 0;
}
DEVICE void swizzled_scores(const warp_state *w, float (*s)[4], const rows64_tile *k) {
    int lane = (int)threadIdx.x % 32;
    for (int n = 0; n < BLOCK_N / 8; n++)
        for (int i = 0; i < HEAD_DIM / 32; i++) {
            uint32_t b[4];
            load_matrices(b, at(k, 8 * n + lane % 8, 32 * i + lane / 8 * 8));
            multiply(s[n], w->q[2 * i], b[0], b[1]);
            multiply(s[n], w->q[2 * i + 1], b[2], b[3]);
        }
}
DEVICE void swizzled_outputs(warp_state *w, float (*s)[4], const rows64_tile *v) {
    int lane = (int)threadIdx.x % 32;
    for (int n = 0; n < BLOCK_N / 16; n++) {
        uint32_t a[4];
        for (int i = 0; i < 4; i++)
            a[i] = fa_sm80_pack_bf16(s[2 * n + i / 2][i % 2 * 2], s[2 * n + i / 2][i % 2 * 2 + 1]);
        for (int i = 0; i < HEAD_DIM / 16; i++) {
            uint32_t b[4];
            load_matrices_transposed(b, at(v, 16 * n + lane % 16, 16 * i + lane / 16 * 8));
            multiply(w->o[2 * i], a, b[0], b[1]);
            multiply(w->o[2 * i + 1], a, b[2], b[3]);
        }
    }
}

/* ---- the kernel ---- */

KERNEL __launch_bounds__(THREADS) tma_tile_kernel(const __grid_constant__ mapped_problem m) {
    __shared__ rows64_tile q, k[2], v[2];
    __shared__ fa_mbarrier full[2];
    int tiles = m.p.seqlen / BLOCK_M, last = m.p.seqlen / BLOCK_N - 1;
    int head = BLOCK / tiles % m.p.heads, batch = BLOCK / tiles / m.p.heads, first = BLOCK % tiles * BLOCK_M;
    warp_state w;

    if (threadIdx.x == 0) {
        fa_mbarrier_init(&full[0], 3); /* arrivals: those of rows64_fetch() for q, k and v ... */
        fa_mbarrier_init(&full[1], 2);
        rows64_fetch(&q, rows64_source{&m.q, first, head, batch}, &full[0]);
        rows64_fetch(&k[0], rows64_source{&m.k, 0, head, batch}, &full[0]);
        rows64_fetch(&v[0], rows64_source{&m.v, 0, head, batch}, &full[0]);
    }
    __syncthreads(); /* the barriers are there */
    for (int i = 0; i <= last; i++) {
        int slot = i % 2, next = (i + 1) % 2;
        if (threadIdx.x == 0 && i < last) {
            rows64_fetch(&k[next], rows64_source{&m.k, (i + 1) * BLOCK_N, head, batch}, &full[next]);
            rows64_fetch(&v[next], rows64_source{&m.v, (i + 1) * BLOCK_N, head, batch}, &full[next]);
            if (next == 0) fa_mbarrier_arrive(&full[0]); /* ... and this one in the place of q's */
        }
        __syncwarp(); /* load_matrices() and multiply() are instructions of a whole warp, which thread 0 had left */
        fa_mbarrier_wait(&full[slot], i / 2 % 2);
        if (i == 0) swizzled_begin(&w, &q);
        float s[BLOCK_N / 8][4] = {{0}};
        swizzled_scores(&w, s, &k[slot]);
        state_softmax(&w, s, m.p.scale);
        swizzled_outputs(&w, s, &v[slot]);
        /* All have read tile i: the next round overwrites it. __syncthreads() alone orders what threads do among
         * themselves; this has a fence before it, which puts their reads before the copy engine's writes, too. */
        rows64_barrier();
    }
    state_end(&w, m.p.o16 + ((int64_t)(batch * m.p.heads + head) * m.p.seqlen + first) * HEAD_DIM);
}

static UNUSED void tma_tile(const problem *p) {
    mapped_problem m;
    m.p = *p;
    FA(rows64_map(&m.q, fa_tensor_bhsd(p->q16, p->heads, p->seqlen, HEAD_DIM), p->batch, p->heads, p->seqlen));
    FA(rows64_map(&m.k, fa_tensor_bhsd(p->k16, p->heads, p->seqlen, HEAD_DIM), p->batch, p->heads, p->seqlen));
    FA(rows64_map(&m.v, fa_tensor_bhsd(p->v16, p->heads, p->seqlen, HEAD_DIM), p->batch, p->heads, p->seqlen));
    tma_tile_kernel<<<p->batch * p->heads * (p->seqlen / BLOCK_M), THREADS>>>(m);
    CUDA(cudaGetLastError());
}
#endif

#if defined(MAIN_06)
#if ON_GPU && FA__COMPILES_90
int main(void) { return hopper_main("06_tma_tile", tma_tile, "05_async_copies", async_copies); }
#else
int main(void) { return hopper_main("06_tma_tile", NULL, NULL, NULL); }
#endif
#endif
