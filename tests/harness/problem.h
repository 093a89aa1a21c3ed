/* problem.h: one call of attention: its kind (mask, score, types), its shape and layouts, and its buffers, filled.
 *
 * Inputs are surrounded by NaN: rows past the sequence's end, padding columns, gaps between heads and batches.
 * Outputs are poisoned, and everything around them must stay poison.
 */
#ifndef PROBLEM_H
#define PROBLEM_H

#include <fa/fa.h>

#include "memory.h"
#include "rng.h"
#if defined(__cplusplus)
extern "C" {
#endif

/* What the tests' user hooks get. */
struct test_user {
    int modulus, offset;
    float slope;
};

/* The masks and scores that the tests combine: hooks.h has them for the library, reference.c by formula. */
typedef enum mask_kind {
    MASK_full,
    MASK_causal,
    MASK_top_left,
    MASK_window,
    MASK_prefix,
    MASK_document,
    MASK_packed,  /* window AND document */
    MASK_sinks,   /* the first three keys OR window */
    MASK_strided, /* the user's: keep() only, with arguments */
    MASK_causal_document,
    MASK_span,
    MASK_COUNT
} mask_kind;
typedef enum score_kind {
    SCORE_none,
    SCORE_alibi,
    SCORE_softcap,
    SCORE_bias,
    SCORE_key_bias,
    SCORE_capped_alibi, /* softcap, then ALiBi */
    SCORE_tilted,       /* the user's, with arguments: depends on batch, heads, query and key */
    SCORE_holes,        /* -INFINITY for some elements, and for all of some rows */
    SCORE_COUNT
} score_kind;
const char *mask_name(int mask);
const char *score_name(int score);

typedef fa_status attention_function(const fa_attention_args *args, fa_stream stream);
typedef fa_status plan_function(const fa_attention_args *args, fa_plan *plan);
typedef size_t workspace_function(const fa_attention_args *args);

/* An instance under test. */
typedef struct instance {
    const char *name;
    int mask, score, dtype, head_dim, head_dim_v;
    attention_function *forward;
    plan_function *plan;
    workspace_function *workspace;
} instance;

/* How a tensor lies in memory. Paddings are in units of 16 bytes, but for pad_seq: rows after each sequence. */
typedef struct layout {
    int bshd, pad_row, pad_seq, pad_head, pad_batch;
    int share_batch, share_head, share_seq; /* stride 0 */
    int tail;                               /* units of 16 bytes after the last row; 0: a page that must not be touched */
} layout;

typedef struct shape {
    int batch, heads, heads_kv, seqlen_q, seqlen_k;
    layout q, k, v, o;
    float scale, softcap;
    int window_left, window_right;
    int documents; /* 0: ids that do not decrease, 1: any order, 2: one document, 3: none of q's ids in k, 4: as 0, but longer ones; and so of spans */
    int share_bias_batch, share_bias_head, share_bias_query;
    int pad_bias; /* 1: rows of a bias begin at multiples of 16 bytes, 2: an element behind them; with NaN in between */
    int without_lse, without_workspace, threads;
    double spread; /* standard deviation of q: larger ones make softmax peaked */
} shape;

/* A host image and its copy where the instance runs. */
typedef struct buffer {
    unsigned char *host;
    void *data;
    size_t bytes;
} buffer;

typedef struct problem {
    instance of;
    shape shape;
    memory_place place;
    struct test_user *user; /* of its own, so that a problem may be moved */
    fa_attention_args args; /* points into the buffers' data */
    buffer q, k, v, o, lse, slopes, bias, key_bias, prefix, document_q, document_k, span_begin, span_end, workspace;
} problem;

enum { PROBLEM_FRONT = 256, PROBLEM_POISON = 0xFD }; /* bytes before a tensor; what outputs hold before the call */

/* A shape with defaults: contiguous, one batch, scale 0, unbounded windows. */
shape shape_plain(int batch, int heads, int heads_kv, int seqlen_q, int seqlen_k);
/* Allocates a problem and fills it with random values. */
void problem_new(problem *p, const instance *of, const shape *s, memory_place place, rng *r);
/* Fills the inputs' host images anew; problem_upload() copies all images to the data. */
void problem_fill(problem *p, rng *r);
void problem_upload(problem *p);
/* Copies the outputs' data back to their images. */
void problem_download(problem *p);
/* Makes the outputs' images poison again, for problem_upload(); whether downloaded ones still are. */
void problem_poison(problem *p);
int problem_untouched(const problem *p);
/* Row `row` of the downloaded lse, (batch, heads, seqlen_q) contiguous. */
float *problem_lse(const problem *p, int64_t row);
/* Whether the inputs' data are what was uploaded. */
int problem_inputs_unchanged(problem *p);
void problem_delete(problem *p);

/* Element offset of (b, h, s, c) from a tensor's start, which lies PROBLEM_FRONT bytes into the image. */
int64_t problem_offset(const fa_tensor *t, int b, int h, int s, int c);
/* A tensor's element in the host image. */
double problem_get(const problem *p, const buffer *image, const fa_tensor *t, int b, int h, int s, int c);
void problem_set(problem *p, buffer *image, const fa_tensor *t, int b, int h, int s, int c, double value);
/* The shape in words. */
const char *problem_describe(const problem *p, char *text, size_t bytes);

#if defined(__cplusplus)
}
#endif
#endif
