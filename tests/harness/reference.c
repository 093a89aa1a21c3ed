#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "reference.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "number.h"
#include "tap.h"

enum { MAX_HEAD_DIM = 256 };

int reference_visible(const problem *p, int b, int h, int i, int j) {
    const fa_attention_args *a = &p->args;
    const int *prefix = (const int *)(const void *)p->prefix.host;
    const int *ids_q = (const int *)(const void *)p->document_q.host;
    const int *ids_k = (const int *)(const void *)p->document_k.host;
    const int *begins = (const int *)(const void *)p->span_begin.host;
    const int *ends = (const int *)(const void *)p->span_end.host;
    int64_t position = (int64_t)i + a->seqlen_k - a->seqlen_q;
    int window = (a->window_left < 0 || j >= position - a->window_left) &&
                 (a->window_right < 0 || j <= position + a->window_right);
    int same = ids_q ? ids_q[(int64_t)b * a->seqlen_q + i] == ids_k[(int64_t)b * a->seqlen_k + j] : 0;
    (void)h;
    switch (p->of.mask) {
    case MASK_full: return 1;
    case MASK_causal: return j <= position;
    case MASK_top_left: return j <= i;
    case MASK_window: return window;
    case MASK_prefix: return j < prefix[b] || j <= position;
    case MASK_document: return same;
    case MASK_packed: return window && same;
    case MASK_causal_document: return j <= position && same;
    case MASK_span: return j >= begins[(int64_t)b * a->seqlen_q + i] && j < ends[(int64_t)b * a->seqlen_q + i];
    case MASK_sinks: return j < 3 || window;
    case MASK_strided: return (j - i - p->user->offset) % p->user->modulus == 0;
    }
    tap_bail("mask %d", p->of.mask);
}

double reference_score(const problem *p, double score, int b, int h, int i, int j) {
    const fa_attention_args *a = &p->args;
    double position = (double)i + a->seqlen_k - a->seqlen_q, cap = a->softcap;
    int64_t at;
    switch (p->of.score) {
    case SCORE_none: return score;
    case SCORE_alibi: return score - (double)((const float *)(const void *)p->slopes.host)[h] * fabs(position - j);
    case SCORE_softcap: return cap * tanh(score / cap);
    case SCORE_bias:
        at = b * a->bias_stride_batch + h * a->bias_stride_head + i * a->bias_stride_query + j;
        return score + number_load(p->bias.host, at + (p->shape.pad_bias == 2), p->of.dtype);
    case SCORE_key_bias:
        at = b * a->key_bias_stride_batch + h * a->key_bias_stride_head + j;
        return score + (double)((const float *)(const void *)p->key_bias.host)[at];
    case SCORE_capped_alibi:
        return cap * tanh(score / cap) - (double)((const float *)(const void *)p->slopes.host)[h] * fabs(position - j);
    case SCORE_tilted:
        return score + (double)p->user->slope * (j - position) + 0.25 * (h % 3) - 0.125 * b +
               0.0625 * (h / (a->heads / a->heads_kv)) + (i + 2 * j) % 4 * 0.5;
    case SCORE_holes: return (i + j) % 3 == 0 || i % 5 == 2 ? -INFINITY : score;
    }
    tap_bail("score %d", p->of.score);
}

/* The same as separate operations on floats, as an unfused computation would do them: each of them rounds. */
static float score_in_float(const problem *p, float score, int b, int h, int i, int j) {
    const fa_attention_args *a = &p->args;
    float distance = (float)(j - (i + a->seqlen_k - a->seqlen_q)), cap = a->softcap, term;
    switch (p->of.score) {
    case SCORE_alibi:
    case SCORE_capped_alibi:
        if (p->of.score == SCORE_capped_alibi) score = score / cap, score = tanhf(score), score = cap * score;
        term = ((const float *)(const void *)p->slopes.host)[h] * fabsf(distance);
        return score - term;
    case SCORE_softcap: score = score / cap, score = tanhf(score); return cap * score;
    case SCORE_tilted:
        term = p->user->slope * distance;
        score = score + term, score = score + 0.25f * (float)(h % 3), score = score - 0.125f * (float)b;
        score = score + 0.0625f * (float)(h / (a->heads / a->heads_kv));
        return score + (float)((i + 2 * j) % 4) * 0.5f;
    }
    return (float)reference_score(p, (double)score, b, h, i, j); /* one operation, one rounding */
}

result result_new(const problem *p) {
    result r;
    r.rows = (int64_t)p->args.batch * p->args.heads * p->args.seqlen_q;
    r.cols = p->of.head_dim_v;
    r.o = (double *)malloc((size_t)(r.rows * r.cols + 1) * sizeof *r.o);
    r.lse = (double *)malloc((size_t)(r.rows + 1) * sizeof *r.lse);
    if (!r.o || !r.lse) tap_bail("out of memory");
    return r;
}
void result_delete(result *r) {
    free(r->o);
    free(r->lse);
}

/* One tf32 product rounds its operands; the CPU computes FA_TF32 as FA_F32. */
static int one_tf32_product(const problem *p) { return p->of.dtype == FA_TF32 && p->place == MEMORY_DEVICE; }

/* The rows of one head of a tensor as contiguous doubles. */
static double *rows_of(const problem *p, const buffer *image, const fa_tensor *t, int b, int h, int rows, int cols,
                       int tf32) {
    double *out = (double *)malloc(((size_t)rows * (size_t)cols + 1) * sizeof *out);
    if (!out) tap_bail("out of memory");
    for (int s = 0; s < rows; s++)
        for (int c = 0; c < cols; c++) {
            double x = problem_get(p, image, t, b, h, s, c);
            out[(size_t)s * (size_t)cols + (size_t)c] = tf32 ? number_round_tf32(x) : x;
        }
    return out;
}

/* One row in double precision: scores, softmax, weighted sum. */
static void exact_row(const problem *p, const double *q, const double *k, const double *v, double scale, double *s,
                      int b, int h, int i, double *o, double *lse) {
    int d = p->of.head_dim, dv = p->of.head_dim_v, keys = p->args.seqlen_k;
    double top = -INFINITY, sum = 0;
    for (int j = 0; j < keys; j++) {
        double dot[4] = {0, 0, 0, 0};
        s[j] = -INFINITY;
        if (!reference_visible(p, b, h, i, j)) continue;
        for (int c = 0; c < d; c += 4)
            for (int e = 0; e < 4; e++) dot[e] += q[c + e] * k[(size_t)j * (size_t)d + (size_t)(c + e)];
        s[j] = reference_score(p, scale * ((dot[0] + dot[1]) + (dot[2] + dot[3])), b, h, i, j);
        if (s[j] > top || isnan(s[j])) top = s[j];
        if (isnan(top)) break;
    }
    for (int c = 0; c < dv; c++) o[c] = 0;
    if (isnan(top)) {
        for (int c = 0; c < dv; c++) o[c] = NAN;
        *lse = NAN;
        return;
    }
    *lse = -INFINITY;
    if (top == -INFINITY) return;
    for (int j = 0; j < keys; j++) sum += s[j] = s[j] == -INFINITY ? 0 : exp(s[j] - top);
    for (int j = 0; j < keys; j++) {
        double weight = s[j] / sum;
        for (int c = 0; weight != 0 && c < dv; c++) o[c] += weight * v[(size_t)j * (size_t)dv + (size_t)c];
    }
    *lse = top + log(sum);
}

/* One row as separate low-precision steps. */
static void unfused_row(const problem *p, const double *q, const double *k, const double *v, double scale, double *s,
                        int b, int h, int i, double *o, double *lse) {
    int d = p->of.head_dim, dv = p->of.head_dim_v, keys = p->args.seqlen_k, dtype = p->of.dtype;
    float total[MAX_HEAD_DIM] = {0}, sum = 0;
    double top = -INFINITY;
    for (int j = 0; j < keys; j++) {
        float dot = 0;
        s[j] = -INFINITY;
        if (!reference_visible(p, b, h, i, j)) continue;
        for (int c = 0; c < d; c++) dot += (float)q[c] * (float)k[(size_t)j * (size_t)d + (size_t)c];
        s[j] = number_round(number_round(dot, dtype) * (float)scale, dtype);
        s[j] = number_round(score_in_float(p, (float)s[j], b, h, i, j), dtype);
        if (s[j] > top) top = s[j];
    }
    for (int c = 0; c < dv; c++) o[c] = 0;
    *lse = -INFINITY;
    if (top == -INFINITY) return;
    for (int j = 0; j < keys; j++) sum += (float)(s[j] = s[j] == -INFINITY ? 0 : expf((float)s[j] - (float)top));
    for (int j = 0; j < keys; j++) {
        float weight = (float)number_round((float)s[j] / sum, dtype);
        if (one_tf32_product(p)) weight = (float)number_round_tf32(weight);
        for (int c = 0; weight != 0 && c < dv; c++) total[c] += weight * (float)v[(size_t)j * (size_t)dv + (size_t)c];
    }
    for (int c = 0; c < dv; c++) o[c] = number_round(total[c], dtype);
    *lse = (float)top + logf(sum);
}

typedef void row_function(const problem *, const double *, const double *, const double *, double, double *, int, int,
                          int, double *, double *);

/* All heads, which threads take one after the other. */
typedef struct heads {
    const problem *p;
    result *r;
    row_function *row;
    int tf32, next;
} heads;

static void *some_heads(void *argument) {
    heads *work = (heads *)argument;
    const problem *p = work->p;
    const fa_attention_args *a = &p->args;
    int d = p->of.head_dim, dv = p->of.head_dim_v, head;
    double scale = a->scale != 0 ? (double)a->scale : 1 / sqrt(d);
    double *s = (double *)malloc(((size_t)a->seqlen_k + 1) * sizeof *s);
    if (!s) tap_bail("out of memory");
    while ((head = __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED)) < a->batch * a->heads) {
        int b = head / a->heads, h = head % a->heads, kv = h / (a->heads / a->heads_kv);
        double *q = rows_of(p, &p->q, &a->q, b, h, a->seqlen_q, d, work->tf32);
        double *k = rows_of(p, &p->k, &a->k, b, kv, a->seqlen_k, d, work->tf32);
        double *v = rows_of(p, &p->v, &a->v, b, kv, a->seqlen_k, dv, work->tf32);
        for (int i = 0; i < a->seqlen_q; i++) {
            size_t at = (size_t)head * (size_t)a->seqlen_q + (size_t)i;
            work->row(p, q + (size_t)i * (size_t)d, k, v, scale, s, b, h, i, work->r->o + at * (size_t)dv, work->r->lse + at);
        }
        free(q), free(k), free(v);
    }
    free(s);
    return NULL;
}

static void all_rows(const problem *p, result *r, row_function *row, int tf32) {
    enum { MOST = 64 };
    const double worth = 3e7; /* products for which a thread is */
    const fa_attention_args *a = &p->args;
    double products = (double)a->batch * a->heads * a->seqlen_q * a->seqlen_k * (p->of.head_dim + p->of.head_dim_v);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    heads work = {p, r, row, tf32, 0};
    pthread_t thread[MOST];
    int threads = 0;
    while (threads < MOST && threads + 1 < cores && (threads + 1) * worth < products &&
           !pthread_create(&thread[threads], NULL, some_heads, &work))
        threads++;
    some_heads(&work);
    while (threads > 0) pthread_join(thread[--threads], NULL);
}

void reference_attention(const problem *p, result *r) { all_rows(p, r, exact_row, 0); }
void reference_unfused(const problem *p, result *r) { all_rows(p, r, unfused_row, one_tf32_product(p)); }
