/* 04 tensor cores: let a warp multiply matrices.
 *
 * The loop is step 03's. What changes is who multiplies: one mma.sync instruction multiplies a 16 x 16 by a 16 x 8
 * matrix of bfloat16 and adds to a 16 x 8 one of floats, 2,048 multiplications for the 32 threads of a warp
 * together. By its data sheet an H100 does 989 TFLOP/s on its tensor cores (mma.sync reaches about half of that, step 07
 * the rest), and 67 in fp32 without them.
 *
 * The price is that the instruction says which thread holds what (PTX ISA, "Matrix Fragments for mma.m16n8k16"). Of
 * a 16 x 8 result, lane l has row l/4, columns 2(l%4) and 2(l%4)+1, and the same columns of row l/4 + 8:
 *
 *     lane    0  0  1  1  2  2  3  3      row 0         c[0] c[1]
 *             4  4  5  5  6  6  7  7      row 1
 *             ...                         ...
 *             0  0  1  1  2  2  3  3      row 8         c[2] c[3]
 *
 * Two things follow that make fused attention work so well (Dao, arXiv 2307.08691). A row lies in 4 neighbouring
 * lanes: its maximum and sum take two shuffles, and the online softmax stays in registers. And a result, rounded to
 * bf16, already lies as the left operand of the next product wants it: P goes from Q K^T to P V without touching
 * shared memory.
 *
 * A block is 4 warps; each has 16 of the block's 64 queries to itself and all of them share the tiles of 64 keys.
 */
#include "harness.h"

#if ON_GPU
#include <fa/arch/sm80/ops.h> /* one function a machine instruction */

#define HEAD_DIM 64
#define THREADS 128
#define BLOCK_M 64
#define BLOCK_N 64
#define PITCH (HEAD_DIM + 8) /* elements from row to row: 8 rows of 16 bytes then lie in 32 different banks */

typedef uint16_t tile_row[PITCH]; /* a tile in shared memory is an array of these */

/* ldmatrix: four 8 x 8 matrices from shared memory. Lane l gives the address of row l%8 of matrix l/8, and receives
 * of each matrix elements (l/4, 2(l%4)) and (l/4, 2(l%4)+1): what mma wants. */
DEVICE void load_matrices(uint32_t *r, const uint16_t *row) { fa_sm80_ldmatrix(r, fa_sm80_shared_address(row)); }
/* The same, each matrix transposed on the way. */
DEVICE void load_matrices_transposed(uint32_t *r, const uint16_t *row) {
    fa_sm80_ldmatrix_transposed(r, fa_sm80_shared_address(row));
}
/* mma: c (16 x 8 floats) += a (16 x 16 bf16) * b (16 x 8 bf16) */
DEVICE void multiply(float *c, const uint32_t *a, uint32_t b0, uint32_t b1) {
    fa_sm80_mma_bf16(&c[0], &c[1], &c[2], &c[3], a, b0, b1);
}

/* ---- what a thread keeps of its warp's 16 queries ---- */

typedef struct warp_state {
    uint32_t q[HEAD_DIM / 16][4]; /* left operands, loaded once */
    float o[HEAD_DIM / 8][4];     /* 16 x 64 outputs, 16 x 8 in each o[i] */
    float highest[2], sum[2];     /* of rows l/4 and l/4 + 8; sum is this lane's share */
} warp_state;

DEVICE void state_begin(warp_state *w, const tile_row *q) {
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    /* matrices 0 to 3: rows 0-7 and 8-15 of the left 8 columns, then of the right 8 */
    for (int i = 0; i < HEAD_DIM / 16; i++) load_matrices(w->q[i], &q[16 * warp + lane % 16][16 * i + lane / 16 * 8]);
    for (int i = 0; i < HEAD_DIM / 8; i++)
        for (int j = 0; j < 4; j++) w->o[i][j] = 0;
    for (int r = 0; r < 2; r++) w->highest[r] = -INFINITY, w->sum[r] = 0;
}

/* S = Q K^T: K's rows are the columns of K^T, so its 8 x 8 matrices are right operands as they lie. */
DEVICE void state_scores(const warp_state *w, float (*s)[4], const tile_row *k) {
    int lane = (int)threadIdx.x % 32;
    for (int n = 0; n < BLOCK_N / 8; n++)
        for (int i = 0; i < HEAD_DIM / 32; i++) {
            uint32_t b[4];
            load_matrices(b, &k[8 * n + lane % 8][32 * i + lane / 8 * 8]);
            multiply(s[n], w->q[2 * i], b[0], b[1]);
            multiply(s[n], w->q[2 * i + 1], b[2], b[3]);
        }
}

/* Online softmax, in place; O is rescaled. s[n][0], s[n][1] belong to row 0 of this thread's two, s[n][2], s[n][3] to
 * row 1. exp(x) is computed as 2^(x log2(e)), as the hardware does, with log2(e) folded into the scale. */
DEVICE void state_softmax(warp_state *w, float (*s)[4], float scale) {
    float factor[2], scale_log2 = scale * 1.4426950408889634f;
    for (int r = 0; r < 2; r++) {
        float highest = w->highest[r];
        for (int n = 0; n < BLOCK_N / 8; n++) highest = fmaxf(highest, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
        highest = fmaxf(highest, __shfl_xor_sync(0xFFFFFFFF, highest, 1));
        highest = fmaxf(highest, __shfl_xor_sync(0xFFFFFFFF, highest, 2));
        factor[r] = exp2f((w->highest[r] - highest) * scale_log2);
        w->highest[r] = highest;
        w->sum[r] *= factor[r];
        for (int n = 0; n < BLOCK_N / 8; n++)
            for (int j = 2 * r; j < 2 * r + 2; j++) w->sum[r] += s[n][j] = exp2f((s[n][j] - highest) * scale_log2);
    }
    for (int i = 0; i < HEAD_DIM / 8; i++)
        for (int j = 0; j < 4; j++) w->o[i][j] *= factor[j / 2];
}

/* O += P V: P is the left operand, from registers. V's matrices have keys for rows: transposed they are right
 * operands. */
DEVICE void state_outputs(warp_state *w, float (*s)[4], const tile_row *v) {
    int lane = (int)threadIdx.x % 32;
    for (int n = 0; n < BLOCK_N / 16; n++) {
        uint32_t a[4];
        for (int i = 0; i < 4; i++)
            a[i] = fa_sm80_pack_bf16(s[2 * n + i / 2][i % 2 * 2], s[2 * n + i / 2][i % 2 * 2 + 1]);
        for (int i = 0; i < HEAD_DIM / 16; i++) {
            uint32_t b[4];
            load_matrices_transposed(b, &v[16 * n + lane % 16][16 * i + lane / 16 * 8]);
            multiply(w->o[2 * i], a, b[0], b[1]);
            multiply(w->o[2 * i + 1], a, b[2], b[3]);
        }
    }
}

/* Takes in a tile of keys and values. */
DEVICE void state_tile(warp_state *w, const tile_row *k, const tile_row *v, float scale) {
    float s[BLOCK_N / 8][4] = {{0}};
    state_scores(w, s, k);
    state_softmax(w, s, scale);
    state_outputs(w, s, v);
}

DEVICE void state_end(warp_state *w, uint16_t *o /* the block's first row in memory */) {
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    for (int r = 0; r < 2; r++) {
        uint16_t *row = o + (16 * warp + lane / 4 + 8 * r) * HEAD_DIM + lane % 4 * 2;
        float sum = w->sum[r];
        sum += __shfl_xor_sync(0xFFFFFFFF, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFF, sum, 2);
        for (int i = 0; i < HEAD_DIM / 8; i++)
            *(uint32_t *)(row + 8 * i) = fa_sm80_pack_bf16(w->o[i][2 * r] / sum, w->o[i][2 * r + 1] / sum);
    }
}

/* ---- the kernel ---- */

/* 64 rows of 64 from memory to shared memory, 16 bytes at a time. */
DEVICE void load_tile(tile_row *tile, const uint16_t *from) {
    for (int i = (int)threadIdx.x; i < BLOCK_N * HEAD_DIM / 8; i += THREADS)
        *(uint4 *)&tile[i / (HEAD_DIM / 8)][i % (HEAD_DIM / 8) * 8] = *(const uint4 *)(from + 8 * i);
}

KERNEL __launch_bounds__(THREADS) tensor_cores_kernel(problem p) {
    __shared__ __align__(16) tile_row q[BLOCK_M], k[BLOCK_N], v[BLOCK_N];
    int tiles = p.seqlen / BLOCK_M;
    int64_t head = BLOCK / tiles * (int64_t)p.seqlen * HEAD_DIM, first = head + BLOCK % tiles * BLOCK_M * HEAD_DIM;
    warp_state w;

    load_tile(q, p.q16 + first);
    __syncthreads();
    state_begin(&w, q);
    for (int key = 0; key < p.seqlen; key += BLOCK_N) {
        load_tile(k, p.k16 + head + key * HEAD_DIM);
        load_tile(v, p.v16 + head + key * HEAD_DIM);
        __syncthreads(); /* all have written: now read */
        state_tile(&w, k, v, p.scale);
        __syncthreads(); /* all have read: now overwrite */
    }
    state_end(&w, p.o16 + first);
}

static UNUSED void tensor_cores(const problem *p) {
    launch(tensor_cores_kernel, p->batch * p->heads * (p->seqlen / BLOCK_M), THREADS, p);
}
#endif

#ifndef NO_MAIN
#if ON_GPU
#define NO_MAIN
#undef HEAD_DIM
#undef THREADS
#undef BLOCK_M
#undef BLOCK_N
#include "03_tiled.cu"
int main(void) { return ladder_main("04_tensor_cores", tensor_cores, BF16, "03_tiled", tiled); }
#else
int main(void) { return skip_main("04_tensor_cores"); }
#endif
#endif
