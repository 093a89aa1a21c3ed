/* 05 asynchronous copies: fetch the next tile while computing on this one.
 *
 * In step 04 everybody waits for a tile, then everybody computes while memory idles. cp.async (sm_80 and newer)
 * copies 16 bytes from global to shared memory in the background and without a detour through registers. With two
 * buffers for K and V,
 *
 *     start copying tile 0
 *     for each tile i:
 *         start copying tile i + 1 into the other buffer
 *         wait for tile i only
 *         compute on tile i
 *
 * the copy of one tile hides behind the arithmetic of the one before. The arithmetic itself is step 04's, unchanged.
 *
 * This is the loop of the library's sm_80 schedule (include/fa/kernel/attention_loop.h). What that adds is care: any length and head
 * dimension, masks, hooks, tiles tuned for each case. Hopper's TMA and wgmma take the idea further: one thread
 * asks for a whole tile, and a warp of its own does nothing but that.
 */
#if !defined(NO_MAIN)
#define NO_MAIN
#define MAIN_05
#endif
#include "harness.h"

#if ON_GPU
#undef HEAD_DIM
#include "04_tensor_cores.cu" /* warp_state and its functions */

/* load_tile() of step 04, in the background. */
DEVICE void start_tile(tile_row *tile, const uint16_t *from) {
    for (int i = (int)threadIdx.x; i < BLOCK_N * HEAD_DIM / 8; i += THREADS) {
        uint32_t to = fa_sm80_shared_address(&tile[i / (HEAD_DIM / 8)][i % (HEAD_DIM / 8) * 8]);
        fa_sm80_copy16(to, from + 8 * i, 16);
    }
}

KERNEL __launch_bounds__(THREADS) async_copies_kernel(problem p) {
    __shared__ __align__(16) tile_row q[BLOCK_M], k[2][BLOCK_N], v[2][BLOCK_N];
    int tiles = p.seqlen / BLOCK_M, last = p.seqlen / BLOCK_N - 1;
    int64_t head = BLOCK / tiles * (int64_t)p.seqlen * HEAD_DIM, first = head + BLOCK % tiles * BLOCK_M * HEAD_DIM;
    warp_state w;

    start_tile(q, p.q16 + first);
    start_tile(k[0], p.k16 + head);
    start_tile(v[0], p.v16 + head);
    fa_sm80_copy_commit();
    for (int i = 0; i <= last; i++) {
        if (i < last) {
            start_tile(k[(i + 1) % 2], p.k16 + head + (i + 1) * BLOCK_N * HEAD_DIM);
            start_tile(v[(i + 1) % 2], p.v16 + head + (i + 1) * BLOCK_N * HEAD_DIM);
        }
        fa_sm80_copy_commit(); /* closes a group, empty or not */
        fa_sm80_copy_wait(1);  /* all groups but the latest have landed: this thread's part of tile i ... */
        __syncthreads();       /* ... and now everybody's */
        if (i == 0) state_begin(&w, q);
        state_tile(&w, k[i % 2], v[i % 2], p.scale);
        __syncthreads(); /* all have read tile i: the next round overwrites it */
    }
    state_end(&w, p.o16 + first);
}

static UNUSED void async_copies(const problem *p) {
    launch(async_copies_kernel, p->batch * p->heads * (p->seqlen / BLOCK_M), THREADS, p);
}
#endif

#if defined(MAIN_05)
#if ON_GPU
int main(void) { return ladder_main("05_async_copies", async_copies, BF16, "04_tensor_cores", tensor_cores); }
#else
int main(void) { return skip_main("05_async_copies"); }
#endif
#endif
