#include "problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "tap.h"

const char *mask_name(int mask) {
    static const char *const names[] = {"full",     "causal", "top_left", "window", "prefix",
                                        "document", "packed", "sinks",    "strided", "causal_document", "span"};
    return names[mask];
}
const char *score_name(int score) {
    static const char *const names[] = {"none",     "alibi",        "softcap", "bias",
                                        "key_bias", "capped_alibi", "tilted",  "holes"};
    return names[score];
}

shape shape_plain(int batch, int heads, int heads_kv, int seqlen_q, int seqlen_k) {
    shape s;
    memset(&s, 0, sizeof s);
    s.batch = batch, s.heads = heads, s.heads_kv = heads_kv, s.seqlen_q = seqlen_q, s.seqlen_k = seqlen_k;
    s.window_left = s.window_right = -1;
    s.softcap = 2;
    s.spread = 1;
    return s;
}

static void new_buffer(buffer *b, memory_place place, size_t bytes) {
    b->bytes = bytes;
    b->host = (unsigned char *)malloc(bytes ? bytes : 1);
    if (!b->host) tap_bail("out of memory");
    b->data = memory_new(place, bytes);
}

static void delete_buffer(buffer *b, memory_place place) {
    if (b->host) memory_delete(place, b->data, b->bytes);
    free(b->host);
}

/* Lays out and allocates one tensor. */
static fa_tensor new_tensor(problem *p, buffer *b, const layout *l, int heads, int rows, int cols) {
    int64_t unit = 16 / number_bytes(p->of.dtype), row = cols + l->pad_row * unit, elements = 0;
    int batch = p->shape.batch, batches = l->share_batch ? 1 : batch, kinds = l->share_head ? 1 : heads;
    int64_t sequence = l->share_seq ? 1 : rows;
    fa_tensor t;
    if (l->bshd) {
        t.stride_head = row;
        t.stride_seq = t.stride_head * kinds + l->pad_head * unit;
        t.stride_batch = t.stride_seq * (sequence + l->pad_seq) + l->pad_batch * unit;
    } else {
        t.stride_seq = row;
        t.stride_head = t.stride_seq * (sequence + l->pad_seq) + l->pad_head * unit;
        t.stride_batch = t.stride_head * kinds + l->pad_batch * unit;
    }
    if (batch && heads && rows)
        elements = t.stride_batch * (batches - 1) + t.stride_head * (kinds - 1) + t.stride_seq * (sequence - 1) + cols;
    if (l->share_batch) t.stride_batch = 0;
    if (l->share_head) t.stride_head = 0;
    if (l->share_seq) t.stride_seq = 0;
    elements += l->tail * unit;
    new_buffer(b, p->place, PROBLEM_FRONT + (size_t)elements * (size_t)number_bytes(p->of.dtype));
    t.data = (unsigned char *)b->data + PROBLEM_FRONT;
    return t;
}

int64_t problem_offset(const fa_tensor *t, int b, int h, int s, int c) {
    return t->stride_batch * b + t->stride_head * h + t->stride_seq * s + c;
}
double problem_get(const problem *p, const buffer *image, const fa_tensor *t, int b, int h, int s, int c) {
    return number_load(image->host + PROBLEM_FRONT, problem_offset(t, b, h, s, c), p->of.dtype);
}
void problem_set(problem *p, buffer *image, const fa_tensor *t, int b, int h, int s, int c, double value) {
    number_store(image->host + PROBLEM_FRONT, problem_offset(t, b, h, s, c), p->of.dtype, value);
}

static int uses_window(int mask) { return mask == MASK_window || mask == MASK_packed || mask == MASK_sinks; }
static int uses_documents(int mask) { return mask == MASK_document || mask == MASK_packed || mask == MASK_causal_document; }

void problem_new(problem *p, const instance *of, const shape *s, memory_place place, rng *r) {
    fa_attention_args *a = &p->args;
    size_t rows = (size_t)s->batch * (size_t)s->heads * (size_t)s->seqlen_q;
    int mask = of->mask, score = of->score;
    memset(p, 0, sizeof *p);
    p->of = *of, p->shape = *s, p->place = place;
    p->user = (struct test_user *)malloc(sizeof *p->user);
    *a = fa_attention_defaults();
    a->batch = s->batch, a->heads = s->heads, a->heads_kv = s->heads_kv;
    a->seqlen_q = s->seqlen_q, a->seqlen_k = s->seqlen_k;
    a->scale = s->scale, a->threads = s->threads;
    a->q = new_tensor(p, &p->q, &s->q, s->heads, s->seqlen_q, of->head_dim);
    a->k = new_tensor(p, &p->k, &s->k, s->heads_kv, s->seqlen_k, of->head_dim);
    a->v = new_tensor(p, &p->v, &s->v, s->heads_kv, s->seqlen_k, of->head_dim_v);
    a->o = new_tensor(p, &p->o, &s->o, s->heads, s->seqlen_q, of->head_dim_v);
    if (!s->without_lse) {
        new_buffer(&p->lse, place, PROBLEM_FRONT + rows * 4);
        a->lse = (float *)(void *)((char *)p->lse.data + PROBLEM_FRONT);
    }
    if (uses_window(mask)) a->window_left = s->window_left, a->window_right = s->window_right;
    if (score == SCORE_softcap || score == SCORE_capped_alibi) a->softcap = s->softcap;
    if (score == SCORE_alibi || score == SCORE_capped_alibi) {
        new_buffer(&p->slopes, place, (size_t)s->heads * 4);
        a->alibi_slopes = (const float *)p->slopes.data;
    }
    if (score == SCORE_bias) {
        int batches = s->share_bias_batch ? 1 : s->batch, heads = s->share_bias_head ? 1 : s->heads;
        int64_t first = s->pad_bias == 2, row = s->pad_bias ? (s->seqlen_k + first + 7) / 8 * 8 : s->seqlen_k, queries = s->share_bias_query ? 1 : s->seqlen_q, size = queries * row;
        new_buffer(&p->bias, place, (size_t)(batches * heads * size * number_bytes(of->dtype)));
        a->bias = (const char *)p->bias.data + first * number_bytes(of->dtype);
        a->bias_stride_batch = s->share_bias_batch ? 0 : heads * size;
        a->bias_stride_head = s->share_bias_head ? 0 : size;
        a->bias_stride_query = s->share_bias_query ? 0 : row;
    }
    if (score == SCORE_key_bias) {
        int batches = s->share_bias_batch ? 1 : s->batch, heads = s->share_bias_head ? 1 : s->heads;
        new_buffer(&p->key_bias, place, (size_t)(batches * heads) * (size_t)s->seqlen_k * 4);
        a->key_bias = (const float *)p->key_bias.data;
        a->key_bias_stride_batch = s->share_bias_batch ? 0 : (int64_t)heads * s->seqlen_k;
        a->key_bias_stride_head = s->share_bias_head ? 0 : s->seqlen_k;
    }
    if (mask == MASK_prefix) {
        new_buffer(&p->prefix, place, (size_t)s->batch * 4);
        a->prefix = (const int *)p->prefix.data;
    }
    if (uses_documents(mask)) {
        new_buffer(&p->document_q, place, (size_t)s->batch * (size_t)s->seqlen_q * 4);
        new_buffer(&p->document_k, place, (size_t)s->batch * (size_t)s->seqlen_k * 4);
        a->document_q = (const int *)p->document_q.data;
        a->document_k = (const int *)p->document_k.data;
    }
    if (mask == MASK_span) {
        new_buffer(&p->span_begin, place, (size_t)s->batch * (size_t)s->seqlen_q * 4);
        new_buffer(&p->span_end, place, (size_t)s->batch * (size_t)s->seqlen_q * 4);
        a->span_begin = (const int *)p->span_begin.data;
        a->span_end = (const int *)p->span_end.data;
    }
    if (mask == MASK_strided || score == SCORE_tilted) a->user = p->user;
    if (of->workspace && !s->without_workspace) {
        a->workspace_bytes = of->workspace(a);
        if (a->workspace_bytes) {
            new_buffer(&p->workspace, place, a->workspace_bytes);
            a->workspace = p->workspace.data;
            memset(p->workspace.host, 0xFF, p->workspace.bytes);
        }
    }
    problem_fill(p, r);
    problem_upload(p);
}

static void fill_tensor(problem *p, buffer *b, const fa_tensor *t, int heads, int rows, int cols, double spread, rng *r) {
    memset(b->host, 0xFF, b->bytes); /* NaN in every type */
    for (int i = 0; i < p->shape.batch; i++)
        for (int h = 0; h < heads; h++)
            for (int s = 0; s < rows; s++)
                for (int c = 0; c < cols; c++) problem_set(p, b, t, i, h, s, c, spread * rng_normal(r));
}

static void fill_floats(buffer *b, double middle, double spread, rng *r) {
    for (size_t i = 0; i < b->bytes / 4; i++) ((float *)(void *)b->host)[i] = (float)(middle + spread * rng_normal(r));
}

/* Ids of documents of about five to sixty tokens, or a hundred to four hundred, or of any order. */
static void fill_documents(buffer *b, int rows, int batch, int kind, int first, rng *r) {
    int *ids = (int *)(void *)b->host;
    if (!ids) return;
    for (int i = 0; i < batch; i++) {
        int id = first, length = kind == 4 ? rng_int(r, 100, 400) : rng_int(r, 5, 60);
        for (int s = 0; s < rows; s++) {
            if ((kind == 0 || kind == 4) && s && s % length == 0) id += rng_int(r, 1, 2);
            ids[(size_t)i * (size_t)rows + (size_t)s] = kind == 1 ? rng_int(r, -2, 2) : id;
        }
    }
}

/* Spans of queries, of the kinds that documents have: sequences end to end, each with queries and keys of its own
 * and a causal mask; any spans, also beyond either end, and of no key; all keys; no key. */
static void fill_spans(problem *p, rng *r) {
    const shape *s = &p->shape;
    int *begins = (int *)(void *)p->span_begin.host, *ends = (int *)(void *)p->span_end.host, longest = s->documents == 4 ? 400 : 60;
    if (!begins || !ends) return;
    for (int b = 0; b < s->batch; b++)
        for (int i = 0, queries = 0, first = 0, keys = 0, begin = 0; i < s->seqlen_q; i++, begins++, ends++) {
            if (i == first + queries) begin += keys, first = i, queries = rng_int(r, 1, longest), keys = rng_int(r, 0, longest);
            *begins = begin, *ends = begin + keys - queries + (i - first) + 1;
            if (*ends > s->seqlen_k) *ends = s->seqlen_k;
            if (s->documents == 1) *begins = rng_int(r, -9, s->seqlen_k + 9), *ends = rng_int(r, -9, s->seqlen_k + 9);
            if (s->documents == 1 && rng_one_in(r, 8)) *begins = rng_one_in(r, 2) ? -0x7FFFFFFF - 1 : 0x7FFFFFFF;
            if (s->documents == 1 && rng_one_in(r, 8)) *ends = rng_one_in(r, 2) ? -0x7FFFFFFF - 1 : 0x7FFFFFFF;
            if (s->documents == 2) *begins = 0, *ends = 0x7FFFFFFF;
            if (s->documents == 3) *ends = *begins;
        }
}

/* Whether element i of the memory of a bias is behind a row, or before it. */
static int bias_is_padding(const shape *s, int64_t i) {
    const int first = s->pad_bias == 2, row = (s->seqlen_k + first + 7) / 8 * 8;
    return s->pad_bias && (i % row < first || i % row >= first + s->seqlen_k);
}

void problem_fill(problem *p, rng *r) {
    const shape *s = &p->shape;
    const fa_attention_args *a = &p->args;
    fill_tensor(p, &p->q, &a->q, s->heads, s->seqlen_q, p->of.head_dim, s->spread, r);
    fill_tensor(p, &p->k, &a->k, s->heads_kv, s->seqlen_k, p->of.head_dim, 1, r);
    fill_tensor(p, &p->v, &a->v, s->heads_kv, s->seqlen_k, p->of.head_dim_v, 1, r);
    problem_poison(p);
    fill_floats(&p->slopes, 0.2, 0.05, r);
    fill_floats(&p->key_bias, 0, 1, r);
    for (int64_t i = 0; i < (int64_t)(p->bias.bytes / (size_t)number_bytes(p->of.dtype)); i++)
        number_store(p->bias.host, i, p->of.dtype, bias_is_padding(s, i) ? NAN : rng_normal(r));
    for (size_t i = 0; i < p->prefix.bytes / 4; i++)
        ((int *)(void *)p->prefix.host)[i] = rng_int(r, 0, s->seqlen_k);
    fill_documents(&p->document_q, s->seqlen_q, s->batch, s->documents, 0, r);
    fill_documents(&p->document_k, s->seqlen_k, s->batch, s->documents, s->documents == 3 ? 1000 : 0, r);
    fill_spans(p, r);
    p->user->modulus = rng_int(r, 2, 5), p->user->offset = rng_int(r, 0, 4);
    p->user->slope = (float)(0.05 * rng_normal(r));
}

/* Inputs, and behind them what is written. */
enum { INPUTS = 11, BUFFERS = 14 };
typedef struct buffers {
    buffer *of[BUFFERS];
} buffers;
static buffers buffers_of(problem *p) {
    buffers all = {{&p->q, &p->k, &p->v, &p->slopes, &p->bias, &p->key_bias, &p->prefix, &p->document_q, &p->document_k, &p->span_begin,
                    &p->span_end, &p->o, &p->lse, &p->workspace}};
    return all;
}

void problem_upload(problem *p) {
    buffers all = buffers_of(p);
    for (int i = 0; i < BUFFERS; i++)
        if (all.of[i]->host) memory_put(p->place, all.of[i]->data, all.of[i]->host, all.of[i]->bytes);
}

int problem_inputs_unchanged(problem *p) {
    buffers all = buffers_of(p);
    int unchanged = 1;
    for (int i = 0; i < INPUTS; i++) {
        size_t bytes = all.of[i]->host ? all.of[i]->bytes : 0;
        unsigned char *now = (unsigned char *)malloc(bytes + 1);
        if (!now) tap_bail("out of memory");
        memory_get(p->place, now, all.of[i]->data, bytes);
        unchanged &= !bytes || !memcmp(now, all.of[i]->host, bytes);
        free(now);
    }
    return unchanged;
}

void problem_poison(problem *p) {
    memset(p->o.host, PROBLEM_POISON, p->o.bytes);
    if (p->lse.host) memset(p->lse.host, PROBLEM_POISON, p->lse.bytes);
}

int problem_untouched(const problem *p) {
    for (size_t i = 0; i < p->o.bytes; i++)
        if (p->o.host[i] != PROBLEM_POISON) return 0;
    for (size_t i = 0; i < p->lse.bytes; i++)
        if (p->lse.host[i] != PROBLEM_POISON) return 0;
    return 1;
}

float *problem_lse(const problem *p, int64_t row) { return (float *)(void *)(p->lse.host + PROBLEM_FRONT) + row; }

void problem_download(problem *p) {
    memory_get(p->place, p->o.host, p->o.data, p->o.bytes);
    if (p->lse.host) memory_get(p->place, p->lse.host, p->lse.data, p->lse.bytes);
}

void problem_delete(problem *p) {
    buffers all = buffers_of(p);
    for (int i = 0; i < BUFFERS; i++) delete_buffer(all.of[i], p->place);
    free(p->user);
}

static void describe_layout(const layout *l, char *text, size_t bytes) {
    snprintf(text, bytes, "%s%s%s%s%s%s%s", l->bshd ? "bshd" : "bhsd", l->pad_row ? "+row" : "",
             l->pad_seq || l->pad_head || l->pad_batch ? "+gap" : "", l->share_batch ? " batch0" : "",
             l->share_head ? " head0" : "", l->share_seq ? " seq0" : "", l->tail ? "+tail" : "");
}

const char *problem_describe(const problem *p, char *text, size_t bytes) {
    const shape *s = &p->shape;
    const char *isa = p->place == MEMORY_HOST ? getenv("FA_CPU_ISA") : NULL;
    char q[64], k[64], v[64], o[64];
    describe_layout(&s->q, q, sizeof q), describe_layout(&s->k, k, sizeof k);
    describe_layout(&s->v, v, sizeof v), describe_layout(&s->o, o, sizeof o);
    snprintf(text, bytes,
             "%s %s %s d%d/%d b%d h%d/%d sq%d sk%d scale %g window %d,%d softcap %g documents %d spread %g threads %d "
             "q %s k %s v %s o %s%s%s%s%s",
             number_name(p->of.dtype), mask_name(p->of.mask), score_name(p->of.score), p->of.head_dim, p->of.head_dim_v,
             s->batch, s->heads, s->heads_kv, s->seqlen_q, s->seqlen_k, (double)s->scale, p->args.window_left,
             p->args.window_right, (double)s->softcap, s->documents, s->spread, s->threads, q, k, v, o,
             s->without_lse ? " no lse" : "", p->workspace.bytes ? " with workspace" : "", isa && *isa ? " FA_CPU_ISA=" : "", isa ? isa : "");
    return text;
}
