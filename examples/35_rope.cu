/* 35 rotary position embedding: queries and keys turned by an angle that grows with their position.
 *
 *     a, b = a cos - b sin, b cos + a sin       elements i and i + 64 of a head, at the angle position * 10000^(-i / 64)
 *
 * The teaching version has a thread a pair, which computes its angle, its cosine and its sine: more work than the
 * rotation, and the same for every head of the token. The product position * frequency is rounded to a float, too: at
 * position 100,000 that is an error of 0.004 in an angle.
 *
 * What fa/rope.h does differently:
 *
 *   - 16 bytes a read: the first elements of eight neighbouring pairs, and then their second elements.
 *   - Cosines and sines from a table that a model has anyway, and that stays in the caches, as here; without one, angles
 *     in fixed point, in which nothing is lost by leaving out full turns.
 *   - q and k in one launch, of any strides, so that they may lie in one matrix, as they come out of one product.
 *   - In place if wanted, and the gradient is the rotation back.
 */
#include "rows.h"

enum { HALF = 64, HEAD = 2 * HALF, POSITIONS = 4096 };

/* A row is a token: the first half of its columns are heads of q, the second half heads of k. */
KERNEL plain_rope_kernel(rows p) {
    FOR_THREADS(t, THREADS) {
        int64_t i = (int64_t)BLOCK * THREADS + t, pair = i % HALF, head = i / HALF;
        int64_t position = head * HEAD / p.cols % POSITIONS;
        const uint16_t *x = p.x + head * HEAD + pair;
        float angle = (float)position * powf(10000, -(float)pair / HALF);
        float a = fa_bf16_to_float(x[0]), b = fa_bf16_to_float(x[HALF]);
        p.y[head * HEAD + pair] = fa_bf16_from_float(a * cosf(angle) - b * sinf(angle));
        p.y[head * HEAD + pair + HALF] = fa_bf16_from_float(b * cosf(angle) + a * sinf(angle));
    }
}
static void plain_rope(const rows *p) { rows_launch(plain_rope_kernel, p->rows * p->cols / 2 / THREADS, THREADS, p); }

#define FA_NAME rope
#define FA_DTYPE FA_BF16
#include <fa/rope.h> /* defines rope_forward(), rope_backward() */

static float *table; /* where the kernels run: cosines of all positions, then sines */

static void fast_rope(const rows *p) {
    fa_rope_args a;
    int heads = (int)(p->cols / HEAD); /* q's and k's together: the stride of a token */
    memset(&a, 0, sizeof a);
    a.q = fa_tensor_bshd(p->x, heads, POSITIONS, HEAD),
    a.k = fa_tensor_bshd(p->x + p->cols / 2, heads, POSITIONS, HEAD);
    a.q_out = fa_tensor_bshd(p->y, heads, POSITIONS, HEAD),
    a.k_out = fa_tensor_bshd(p->y + p->cols / 2, heads, POSITIONS, HEAD);
    a.heads = a.heads_kv = heads / 2, a.head_dim = HEAD;
    a.seqlen = p->rows < POSITIONS ? (int)p->rows : POSITIONS, a.batch = (int)(p->rows / a.seqlen);
    a.cos = table, a.sin = table + POSITIONS * HALF;
    FA(rope_forward(&a, 0));
}

static double angle_of(int64_t position, int64_t pair) { return (double)position * pow(10000, -(double)pair / HALF); }
static void *result(const rows *p) { return p->y; }
static void exact_rope(const rows *p, int64_t row, double *exact) {
    for (int64_t j = 0; j < p->cols; j++) {
        int64_t pair = j % HALF, first = j % HEAD < HALF;
        const float *x = p->host_x + row * p->cols + j;
        double angle = angle_of(row % POSITIONS, pair);
        exact[j] = first ? x[0] * cos(angle) - x[HALF] * sin(angle) : x[0] * cos(angle) + x[-HALF] * sin(angle);
    }
}

int main(void) {
    rows p = rows_new(4096);
    float *host = (float *)host_alloc(sizeof(float) * 2 * POSITIONS * HALF);
    for (int64_t i = 0; i < POSITIONS * HALF; i++) {
        host[i] = (float)cos(angle_of(i / HALF, i % HALF));
        host[POSITIONS * HALF + i] = (float)sin(angle_of(i / HALF, i % HALF));
    }
    table = (float *)device_alloc(sizeof(float) * 2 * POSITIONS * HALF);
    to_device(table, host, sizeof(float) * 2 * POSITIONS * HALF);
    free(host);
    /* 1e-3: the teaching version's angles. */
    rows_example e = {"35_rope", 2,      plain_rope, fast_rope,  "35 teaching", result,
                      BF16,      p.rows, p.cols,     exact_rope, 1e-3};
    int status = rows_report(&p, e);
    device_free(table);
    rows_free(&p);
    return status;
}
