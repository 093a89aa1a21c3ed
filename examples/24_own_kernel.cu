/* 24 a kernel of your own: paged attention from the library's pieces.
 *
 * A server that writes many texts at once keeps keys and values in pages, 16 tokens each, wherever a page was free
 * (Kwon et al., arXiv 2309.06180); a table says where. fa/attention.h wants rows at a fixed stride, so this calls
 * for a kernel of one's own. It takes the same three template headers that attention.h is made of:
 *
 *     fa/tile.h      loaders: q and o by block pointers, k and v row by row, from wherever a function of ours says
 *     fa/mma.h       products of tiles: S = Q K^T, and O += P V with P as it comes out of the first
 *     fa/softmax.h   the online softmax between them
 *
 * What remains is the loop of step 03, and it reads like it. There is nothing about tensor cores or lanes in it,
 * and it runs on the CPU as well (at its best with -march=native: attn_forward() chooses its instructions when it
 * runs, pieces get those that the compiler was told of). The line compares it with attn_forward() on the same
 * tokens, not in pages.
 */
#define NO_MAIN
#include "10_first_use.cu"

#define BLOCK_M 64
#define BLOCK_N 64
#define PAGE 16 /* tokens */
#define WARPS 4 /* the default of FA_WARPS, with which the three headers are instantiated below */

/* The cache of one sequence: a pool of pages, each with PAGE tokens of every head, and the table of this sequence's
 * pages. */
struct cache {
    const uint16_t *pool; /* (pages, heads, PAGE, 64) */
    const int *pages;     /* pages[token / PAGE] */
    int seqlen, heads, head;
};
/* The address of a row, for the loader: NULL beyond the end, which loads zeros. */
FA_HOOK const void *cache_row(const struct cache *u, int token) {
    if (token >= u->seqlen) return NULL;
    return u->pool + (((int64_t)u->pages[token / PAGE] * u->heads + u->head) * PAGE + token % PAGE) * 64;
}

#define FA_NAME q_rows /* q_rows_tile, q_rows_load() ... */
#define FA_DTYPE FA_BF16
#define FA_ROWS BLOCK_M
#define FA_COLS 64
#define FA_OPERAND FA_OPERAND_A
#include <fa/tile.h>

#define FA_NAME k_rows
#define FA_DTYPE FA_BF16
#define FA_ROWS BLOCK_N
#define FA_COLS 64
#define FA_OPERAND FA_OPERAND_B
#define FA_LOADER FA_POINTER
#define FA_ROW_ADDRESS cache_row
#define FA_USER_ARGS struct cache
#include <fa/tile.h>

#define FA_NAME v_rows
#define FA_DTYPE FA_BF16
#define FA_ROWS BLOCK_N
#define FA_COLS 64
#define FA_OPERAND FA_OPERAND_BT
#define FA_LOADER FA_POINTER
#define FA_ROW_ADDRESS cache_row
#define FA_USER_ARGS struct cache
#include <fa/tile.h>

#define FA_NAME qk /* qk_acc, qk_mma() ... */
#define FA_DTYPE FA_BF16
#define FA_M BLOCK_M
#define FA_N BLOCK_N
#define FA_K 64
#include <fa/mma.h>

#define FA_NAME pv
#define FA_DTYPE FA_BF16
#define FA_M BLOCK_M
#define FA_N 64
#define FA_K BLOCK_N
#define FA_A FA_FRAGMENT
#define FA_B FA_OPERAND_BT
#include <fa/mma.h>

#define FA_NAME online /* online_state, online_update() ... */
#define FA_M BLOCK_M   /* of what the product qk leaves */
#define FA_N BLOCK_N
#include <fa/softmax.h>

KERNEL paged_kernel(problem p) {
    SHARED union { /* o takes the place of q in the end */
        q_rows_tile q, o;
    } qo;
    SHARED k_rows_tile k;
    SHARED v_rows_tile v;
    const int thread = q_rows_thread();
    int tiles = (p.seqlen + BLOCK_M - 1) / BLOCK_M, head = BLOCK / tiles, count = p.seqlen / PAGE;
    struct cache keys, values;
    keys.pages = (const int *)p.scratch, keys.pool = (const uint16_t *)(keys.pages + count);
    keys.seqlen = p.seqlen, keys.heads = p.heads, keys.head = head;
    values = keys, values.pool += p.count;
    k_rows_source k_source = {&keys, 0};
    v_rows_source v_source = {&values, 0};
    fa_block q_block = fa_block_at(p.q16 + (int64_t)head * p.seqlen * 64, p.seqlen, 64, 64);
    fa_block o_block = fa_block_at(p.o16 + (int64_t)head * p.seqlen * 64, p.seqlen, 64, 64);
    fa_block_advance(&q_block, BLOCK % tiles * BLOCK_M);
    fa_block_advance(&o_block, BLOCK % tiles * BLOCK_M);

    const float scale_log2 = p.scale * 1.4426950408889634f; /* exp(x) is computed as 2^(x log2(e)) */
    online_state state;
    qk_acc s;
    pv_acc o;
    pv_a weights;
    float alpha[qk_ROWS], inverse[qk_ROWS], lse[qk_ROWS];
    online_init(&state);
    pv_zero(&o);
    q_rows_load(&qo.q, q_block, thread);
    for (int key = 0; key < p.seqlen; key += BLOCK_N) {
        k_source.row = v_source.row = key;
        k_rows_load(&k, k_source, thread);
        v_rows_load(&v, v_source, thread);
        k_rows_commit();
        k_rows_wait(0);
        q_rows_barrier(); /* the tiles are there, for everybody */
        qk_zero(&s);
        qk_mma(&s, &qo.q, &k, thread);
        for (int c = 0; c < qk_COLS; c++) /* keys beyond the end do not count */
            for (int r = 0; r < qk_ROWS; r++)
                if (key + qk_col(thread, c) >= p.seqlen) s.x[qk_AT(r, c)] = -INFINITY;
        online_update(&state, s.x, scale_log2, alpha); /* s becomes weights */
        pv_scale_rows(&o, alpha);
        pv_pack(&weights, s.x);
        pv_mma(&o, &weights, &v, thread);
        q_rows_barrier(); /* everybody is done with the tiles */
    }
    online_finish(&state, p.scale, inverse, lse);
    pv_normalize(&o, inverse);
    pv_to_tile(&o, &qo.o, thread);
    q_rows_barrier();
    q_rows_store(&qo.o, o_block, thread);
}

static void paged(const problem *p) {
    launch(paged_kernel, p->heads * ((p->seqlen + BLOCK_M - 1) / BLOCK_M), WARPS * 32, p);
}

/* One tensor from (heads, seqlen, 64) to pages. */
static void fill_pool(const problem *p, const float *from, const int *pages, uint16_t *pool) {
    for (int64_t head = 0; head < p->heads; head++)
        for (int64_t token = 0; token < p->seqlen; token++) {
            int64_t row = (pages[token / PAGE] * p->heads + head) * PAGE + token % PAGE;
            for (int d = 0; d < 64; d++)
                pool[row * 64 + d] = fa_bf16_from_float(from[(head * p->seqlen + token) * 64 + d]);
        }
}

int main(void) {
    problem p = ladder_problem(); /* one sequence, of a multiple of PAGE tokens */
    int count = p.seqlen / PAGE;
    size_t table_bytes = sizeof(int) * (size_t)count, bytes = table_bytes + 4 * p.count;
    int *pages = (int *)host_alloc(bytes);
    uint16_t *pool = (uint16_t *)(pages + count);
    rng r = {4};
    for (int i = 0; i < count; i++) { /* pages in random order (Fisher and Yates) */
        int j = (int)(rng_uniform(&r) * (i + 1));
        pages[i] = pages[j], pages[j] = i;
    }
    fill_pool(&p, p.host_k, pages, pool);
    fill_pool(&p, p.host_v, pages, pool + p.count);
    p.scratch = (float *)device_alloc(bytes);
    to_device(p.scratch, pages, bytes);
    example e = {"24_own_kernel", paged, BF16, NULL, 1, "10_first_use", first_use};
    int status = example_report(&p, e);
    free(pages);
    problem_free(&p);
    return status;
}
