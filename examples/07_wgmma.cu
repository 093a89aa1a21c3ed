/* 07 wgmma: four warps multiply together, straight from shared memory.
 *
 * mma.sync multiplies what a warp holds in registers, and so a warp spends instructions and shared-memory traffic on
 * loading operands: in step 06, one load for every two products. Hopper's wgmma is an instruction of a warpgroup,
 * four warps; it multiplies 64 rows at a time, reads B (and, if one likes, A) from shared memory by itself, and runs
 * in the background:
 *
 *     fence                          registers that we wrote may be read now
 *     S = Q K^T     4 instructions of 64 x 128 x 16
 *     commit, wait                   S is there
 *
 * Operands in shared memory are named by a descriptor of 64 bits (PTX ISA, "Matrix Descriptor Format"): the address,
 * the distance to the next eight rows, 1024 bytes here, and the swizzle: the one that the copy engine wrote. Steps
 * along a row of 128 bytes add to the address. V, whose rows (keys) are what its product sums over, takes the same descriptor
 * and a bit in the instruction that says so.
 *
 * A result lies in registers as with mma.sync: warp w has rows 16 w to 16 w + 15; lane l of it rows l/4 and l/4 + 8,
 * and of every 8 columns two. So the softmax stays as it is, and P goes into the second product from registers.
 *
 * Tiles have 128 keys now: the larger the product, the less there is around it.
 */
#if !defined(NO_MAIN)
#define NO_MAIN
#define MAIN_07
#endif
#include "harness.h"

#include <fa/fa.h>

#if ON_GPU && FA__COMPILES_90
#undef HEAD_DIM
#include "06_tma_tile.cu" /* rows64_tile for Q, and mapped_problem */

#define KEYS 128   /* of a tile */
#define QUERIES 64 /* of a warpgroup */

#define FA_NAME keys /* keys_tile, keys_map(), keys_fetch() ... */
#define FA_DTYPE FA_BF16
#define FA_ROWS KEYS
#define FA_COLS HEAD_DIM
#define FA_LOADER FA_TMA
#define FA_ARCH 90
#include <fa/tile.h>

/* What a thread keeps of its warpgroup's 64 queries: of a matrix of 64 x N, N / 2 elements; those of row r (l/4, or
 * l/4 + 8) and columns 8 n + l%4 * 2 + j are x[4 * n + 2 * r + j]. */
typedef struct group_state {
    float o[HEAD_DIM / 2];
    float highest[2], sum[2]; /* sum is this lane's share */
} group_state;

DEVICE void group_begin(group_state *w) {
    for (int i = 0; i < HEAD_DIM / 2; i++) w->o[i] = 0;
    for (int r = 0; r < 2; r++) w->highest[r] = -INFINITY, w->sum[r] = 0;
}

/* The descriptor of a tile, from `bytes` into it on: bits 0 to 13 are the address, bits 32 to 45 the distance to the
 * next eight rows, both in units of 16 bytes; bits 62 and 63 say the layout, 1 for the 128-byte swizzle. */
DEVICE UNUSED uint64_t descriptor(const void *tile, int bytes) {
    uint32_t address = fa_sm80_shared_address(tile) + (uint32_t)bytes;
    return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 | (address & 0x3FFFF) >> 4;
}

/* Starts S = Q K^T. A step is 16 of the head dimension: 32 bytes along the rows of both. */
DEVICE void start_scores(float *s, const rows64_tile *q, const keys_tile *k) {
    fa_sm90_wgmma_fence();
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 16; i++)
        fa_sm90_wgmma_shared(KEYS, "bf16", "0", s, descriptor(q, 32 * i), descriptor(k, 32 * i), i > 0);
    fa_sm90_wgmma_commit();
}
/* Starts O += P V, with P in registers. A step is 16 keys: 16 rows of V. */
DEVICE void start_outputs(float *o, const uint32_t *p, const keys_tile *v) {
    fa_sm90_wgmma_fence();
#pragma unroll
    for (int i = 0; i < KEYS / 16; i++) fa_sm90_wgmma_registers(HEAD_DIM, "bf16", "1", o, p + 4 * i, descriptor(v, 16 * 128 * i), 1);
    fa_sm90_wgmma_commit();
}
/* Waits until all but the latest `pending` groups are done, and with them this result: the compiler reads it from
 * here on. */
DEVICE void wait_scores(float *s, int pending) {
    fa_sm90_wgmma_wait(pending);
    fa_sm90_wgmma_arrived(KEYS, s);
}
DEVICE void wait_outputs(float *o, int pending) {
    fa_sm90_wgmma_wait(pending);
    fa_sm90_wgmma_arrived(HEAD_DIM, o);
}

/* Scores become weights; what came before has to be multiplied by the factors. */
DEVICE void group_softmax(group_state *w, float *s, float *factor, float scale) {
    float scale_log2 = scale * 1.4426950408889634f;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float highest = w->highest[r];
#pragma unroll
        for (int i = 0; i < KEYS / 2; i += 4) highest = fmaxf(highest, fmaxf(s[i + 2 * r], s[i + 2 * r + 1]));
        highest = fmaxf(highest, __shfl_xor_sync(0xFFFFFFFF, highest, 1));
        highest = fmaxf(highest, __shfl_xor_sync(0xFFFFFFFF, highest, 2));
        factor[r] = exp2f((w->highest[r] - highest) * scale_log2);
        w->highest[r] = highest;
        w->sum[r] *= factor[r];
        float offset = highest * scale_log2;
#pragma unroll
        for (int i = 0; i < KEYS / 2; i += 4)
#pragma unroll
            for (int j = 2 * r; j < 2 * r + 2; j++) w->sum[r] += s[i + j] = exp2f(s[i + j] * scale_log2 - offset);
    }
}
DEVICE void group_rescale(group_state *w, const float *factor) {
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++) w->o[i] *= factor[i / 2 % 2];
}
/* Weights in bf16: the registers of a result are in the order of those of a left operand. */
DEVICE void group_pack(uint32_t *p, const float *s) {
#pragma unroll
    for (int i = 0; i < KEYS / 4; i++) p[i] = fa_sm80_pack_bf16(s[2 * i], s[2 * i + 1]);
}

DEVICE void group_end(const group_state *w, uint16_t *o /* the warpgroup's first row in memory */) {
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32 % 4;
    for (int r = 0; r < 2; r++) {
        uint16_t *row = o + (16 * warp + lane / 4 + 8 * r) * HEAD_DIM + lane % 4 * 2;
        float sum = w->sum[r];
        sum += __shfl_xor_sync(0xFFFFFFFF, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFF, sum, 2);
        for (int i = 0; i < HEAD_DIM / 8; i++)
            *(uint32_t *)(row + 8 * i) = fa_sm80_pack_bf16(w->o[4 * i + 2 * r] / sum, w->o[4 * i + 2 * r + 1] / sum);
    }
}

/* ---- the kernel: step 06's loop, for one warpgroup ---- */

typedef struct wgmma_shared {
    rows64_tile q;
    keys_tile k[2], v[2];
    fa_mbarrier full[2], q_full;
} wgmma_shared;

KERNEL __launch_bounds__(128) wgmma_kernel(const __grid_constant__ mapped_problem m) {
    extern __shared__ __align__(1024) unsigned char memory[];
    wgmma_shared *shared = (wgmma_shared *)memory;
    int tiles = m.p.seqlen / QUERIES, last = m.p.seqlen / KEYS - 1;
    int head = BLOCK / tiles % m.p.heads, batch = BLOCK / tiles / m.p.heads, first = BLOCK % tiles * QUERIES;
    group_state w;
    float s[KEYS / 2], factor[2];
    uint32_t p[KEYS / 4];

    if (threadIdx.x == 0) {
        fa_mbarrier_init(&shared->q_full, 1);
        fa_mbarrier_init(&shared->full[0], 2);
        fa_mbarrier_init(&shared->full[1], 2);
        rows64_fetch(&shared->q, rows64_source{&m.q, first, head, batch}, &shared->q_full);
        keys_fetch(&shared->k[0], keys_source{&m.k, 0, head, batch}, &shared->full[0]);
        keys_fetch(&shared->v[0], keys_source{&m.v, 0, head, batch}, &shared->full[0]);
    }
    __syncthreads();
    fa_mbarrier_wait(&shared->q_full, 0);
    group_begin(&w);
    for (int i = 0; i <= last; i++) {
        int slot = i % 2, next = (i + 1) % 2;
        if (threadIdx.x == 0 && i < last) {
            keys_fetch(&shared->k[next], keys_source{&m.k, (i + 1) * KEYS, head, batch}, &shared->full[next]);
            keys_fetch(&shared->v[next], keys_source{&m.v, (i + 1) * KEYS, head, batch}, &shared->full[next]);
        }
        __syncwarp();
        fa_mbarrier_wait(&shared->full[slot], i / 2 % 2);
        start_scores(s, &shared->q, &shared->k[slot]);
        wait_scores(s, 0);
        group_softmax(&w, s, factor, m.p.scale);
        group_rescale(&w, factor);
        group_pack(p, s);
        start_outputs(w.o, p, &shared->v[slot]);
        wait_outputs(w.o, 0);
        /* All have read tile i: the next round overwrites it. They have read it by wgmma only, which needs no fence
         * before the copy engine's writes; step 06 read by ldmatrix, which does. */
        __syncthreads();
    }
    group_end(&w, m.p.o16 + ((int64_t)(batch * m.p.heads + head) * m.p.seqlen + first) * HEAD_DIM);
}

/* The maps of steps 07 to 09, and the launch: more than 48 KB of shared memory must be asked for. */
static void wgmma_launch(void (*kernel)(mapped_problem), const problem *p, int queries, int threads, size_t shared_bytes) {
    mapped_problem m;
    void *arguments[] = {&m};
    m.p = *p;
    FA(rows64_map(&m.q, fa_tensor_bhsd(p->q16, p->heads, p->seqlen, HEAD_DIM), p->batch, p->heads, p->seqlen));
    FA(keys_map(&m.k, fa_tensor_bhsd(p->k16, p->heads, p->seqlen, HEAD_DIM), p->batch, p->heads, p->seqlen));
    FA(keys_map(&m.v, fa_tensor_bhsd(p->v16, p->heads, p->seqlen, HEAD_DIM), p->batch, p->heads, p->seqlen));
    CUDA(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes));
    CUDA(cudaLaunchKernel((const void *)kernel, dim3((unsigned)(p->batch * p->heads * (p->seqlen / queries))), dim3((unsigned)threads), arguments,
                          shared_bytes, 0));
}
static UNUSED void wgmma(const problem *p) { wgmma_launch(wgmma_kernel, p, QUERIES, 128, sizeof(wgmma_shared)); }
#endif

#if defined(MAIN_07)
#if ON_GPU && FA__COMPILES_90
int main(void) { return hopper_main("07_wgmma", wgmma, "06_tma_tile", tma_tile); }
#else
int main(void) { return hopper_main("07_wgmma", NULL, NULL, NULL); }
#endif
#endif
