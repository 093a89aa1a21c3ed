/**
 * @file rope.h
 * @brief Rotary position embedding of queries and keys, and its gradient. A template header.
 *
 *     pairs (a, b) of a head's first rotary_dim elements become (a cos - b sin, b cos + a sin)
 *     of the angle position * base^(-2 i / rotary_dim), or of row `position` of two tables, for pair i
 *
 * (Su et al., "RoFormer", arXiv 2104.09864). Pair i is elements i and i + rotary_dim / 2 (halves, as in GPT-NeoX and Llama),
 * or, interleaved, 2 i and 2 i + 1 (as in GPT-J). Elements from rotary_dim on are copied.
 *
 * q, q_out: (batch, heads, seqlen, head_dim); k, k_out: (batch, heads_kv, seqlen, head_dim); tables: (positions, rotary_dim / 2).
 *
 * @code{.c}
 * #include <fa/fa.h>
 *
 * #define FA_NAME  rope
 * #define FA_DTYPE FA_BF16
 * #include <fa/rope.h>   // defines rope_forward(), rope_backward(), rope_workspace()
 *
 * // One new token for each sequence, in place; base 10000.
 * static fa_status run(fa_bf16 *q, fa_bf16 *k, int batch, int heads, int heads_kv, int tokens_before, fa_stream stream) {
 *     fa_rope_args a;
 *     memset(&a, 0, sizeof a);
 *     a.q = a.q_out = fa_tensor_bshd(q, heads, 1, 128), a.k = a.k_out = fa_tensor_bshd(k, heads_kv, 1, 128);
 *     a.batch = batch, a.heads = heads, a.heads_kv = heads_kv, a.seqlen = 1, a.head_dim = 128;
 *     a.offset = tokens_before;
 *     return rope_forward(&a, stream);
 * }
 * @endcode
 *
 * | parameter  | required | default         | meaning |
 * |------------|----------|-----------------|---------|
 * | FA_NAME    | yes      |                 | prefix of every generated name |
 * | FA_DTYPE   | yes      |                 | FA_F32, FA_F16, FA_BF16 or FA_TF32 (the same as FA_F32): type of all tensors |
 * | FA_API     | no       | static          | linkage of the generated functions: FA_EXTERN for C linkage (the default with FA_DECLARE) |
 * | FA_DECLARE | no       |                 | defined: prototypes only, for the files that call an instance of another file |
 * | FA_ARCH    | no       | by the compiler | FA_CPU or 80, which is every GPU; without it nvcc makes 80, other compilers FA_CPU |
 * | FA_SUB     | no       |                 | second part of the prefix; FA_NAME, FA_DTYPE and FA_ARCH stay defined |
 *
 * Generates
 *
 *     fa_status NAME_forward(const fa_rope_args *args, fa_stream stream);    q and k, rotated, to q_out and k_out
 *     fa_status NAME_backward(const fa_rope_args *args, fa_stream stream);   d_q and d_k, rotated back, in place
 *     size_t    NAME_workspace(const fa_rope_args *args);
 *
 * On a GPU they launch and return: they neither allocate nor synchronise, and may be captured in a graph. On the CPU
 * they return when the result is written. An element's result depends on its pair and its position alone.
 *
 * Tensors are those of fa.h without their rule of 16 bytes: data is aligned to its elements, and strides are any that are not negative. A written
 * tensor may be the one read (q_out may be q, k_out k), with the same strides; otherwise they must not overlap (of tensors with different strides
 * a call notices only that both begin at the same address). Arithmetic is
 * in fp32, rounded once. Without tables, angles are computed in turns, in 64-bit fixed point, where range reduction loses
 * nothing: cosines and sines have errors below 2e-7 at every position up to 10^6 in size, and below 3e-7 at every int (5e-7
 * with a rotary_dim of thousands; below 3e-6, if it is up to 256, where long double is no wider than double). A sine below 7e-10 may be 0, and then
 * makes NaN of an infinite element's partner.
 */
#include <fa/fa.h>

#include <fa/arch/math.h>
#include <fa/kernel/rows.h>
#include <fa/kernel/segments.h>

#ifndef FA_ROPE_H
#define FA_ROPE_H
/** The arguments of fa/rope.h, forward and backward. All-zero bytes are valid. Pointers are device pointers for a GPU
 *  instance and host pointers for a CPU one. */
typedef struct fa_rope_args {
    fa_tensor q;          /**< (batch, heads, seqlen, head_dim) FA_DTYPE, read by the forward */
    fa_tensor k;          /**< (batch, heads_kv, seqlen, head_dim) FA_DTYPE, likewise; data NULL: there is none */
    fa_tensor q_out;      /**< as q, written by the forward; may be q */
    fa_tensor k_out;      /**< as k, written by the forward; may be k */
    int batch;            /**< sequences: 0 or more */
    int heads;            /**< of q: 0 or more */
    int heads_kv;         /**< of k: 0 or more; where k's data is not NULL, 1 or more */
    int seqlen;           /**< tokens of a sequence: 0 or more */
    int head_dim;         /**< elements of a head: 0 or more */
    int rotary_dim;       /**< of these, how many are rotated: even; 0 means head_dim, which must be even then */
    int interleaved;      /**< 1: pairs are neighbours; 0: halves */
    const float *cos;     /**< (table_rows, rotary_dim / 2) cosines of all positions; NULL: `base` gives the angles */
    const float *sin;     /**< (table_rows, rotary_dim / 2) sines; NULL if and only if cos is */
    int table_rows;       /**< rows of the tables: positions below 0, or table_rows or more, have no angle, and give
                               NaN (from `positions`; those of `offset` are refused); 0: not known, and only positions below 0 do */
    float base;           /**< without tables: greater than 1, up to 1e30; 0 means 10000 */
    const int *positions; /**< (batch, seqlen) the position of each token; NULL: offset + its number in the sequence */
    int offset;           /**< without positions: the position of the first token */
    fa_tensor d_q;        /**< (batch, heads, seqlen, head_dim) FA_DTYPE: the gradient of q_out becomes that of q in the backward */
    fa_tensor d_k;        /**< (batch, heads_kv, seqlen, head_dim) FA_DTYPE: likewise of k; data NULL: there is none */
    void *workspace;      /**< not needed, and not read */
    size_t workspace_bytes; /**< likewise */
    int threads; /**< CPU: threads to use (more than 1,024 are taken for 1,024); 0: those of the environment variable FA_THREADS, or else as many cores as
                      there is work for. Never changes the result. */
} fa_rope_args;

/** @cond PRIVATE */
/* Angles in turns, as fractions with the point before the highest bit: the bits of a product above it are whole
 * turns. */
#define FA__ROPE_POWERS 31
typedef struct fa__rope_angles {
    uint64_t power[FA__ROPE_POWERS]; /* ratio^(2^i), where `ratio` is that of the angles of neighbouring pairs */
} fa__rope_angles;

/* In long double, which has all bits of a fraction: a double would be off by 10^-16, and angles at position 2 * 10^9
 * by that times 2 * 10^9. */
static inline FA_UNUSED fa__rope_angles fa__rope_angles_of(double base, int rotary_dim) {
    fa__rope_angles a = {{0}};
    for (int i = 0; rotary_dim >> (i + 1); i++) { /* no pair needs more */
        long double power = ldexpl(powl((long double)base, -ldexpl(1.0L, i + 1) / (long double)rotary_dim), 64);
        a.power[i] = power < 18446744073709551615.0L ? (uint64_t)power : UINT64_MAX;
    }
    return a;
}
/* The angle of a pair at position 1. */
FA_HOOK uint64_t fa__rope_angle(const fa__rope_angles *a, uint32_t pair) {
    uint64_t angle = 0x28BE60DB9391054Au; /* of pair 0: 1 / (2 pi) */
    for (int i = 0; pair >> i; i++)
        if (pair >> i & 1) angle = fa__high64(angle, a->power[i]);
    return angle;
}
/* The sine and cosine of an angle in units of 2^-32 turns: of its distance from the nearest quarter turn by
 * polynomials (minimax, errors of 3.6e-9 of the sine and 1e-10 of the cosine), then exchanged and negated as that
 * quarter requires. */
FA_HOOK void fa__rope_sin_cos(float *sine, float *cosine, uint32_t turns) {
    uint32_t quarter = (turns + 0x20000000u) >> 30;
    float y = (float)(int32_t)(turns - (quarter << 30)) * 1.46291808e-9f; /* 2 pi / 2^32 */
    float z = y * y;
    float s = -1.95172674e-4f, c = 2.44384155e-5f;
    s = s * z + 8.332178e-3f;
    s = s * z - 0.166666552f;
    s = s * z * y + y;
    c = c * z - 1.38873677e-3f;
    c = c * z + 0.0416666456f;
    c = c * z - 0.5f;
    c = c * z + 1.0f;
    int odd = (int)(quarter & 1u);
    *sine = fa__from_bits(fa__bits(fa__select(odd, c, s)) ^ (quarter & 2u) << 30);
    *cosine = fa__from_bits(fa__bits(fa__select(odd, s, c)) ^ ((quarter + 1u) & 2u) << 30);
}

/* Whether all heads begin at a multiple of 16 bytes. */
static inline FA_UNUSED int fa__rope_aligned(const fa_tensor *t, int element_bytes) {
    return ((uintptr_t)t->data | (uintptr_t)(t->stride_batch | t->stride_head | t->stride_seq) * (uintptr_t)element_bytes) % 16 == 0;
}
/* Heads whose elements a team has in flight at a time; and how many it takes one after the other, so that its angles
 * are computed once: all on the CPU; on a GPU at most a few, so that many teams have little to do each, fewer if the
 * angles are read from tables, and few enough to leave work for enough threads. (bf16 on an H200, percent of a copy
 * at 1,024 to 16,384 columns, by heads: from tables 98 to 99 with 2, 99 to 100 with 4, 94 to 99 with 8; computed 94
 * with 4, 98 with 8.) */
#define FA__ROPE_HEADS 2
#define FA__ROPE_HEADS_MOST (1 << 30) /* one past the last head of a team must be an int, too */
#define FA__ROPE_GROUP 8
#define FA__ROPE_GROUP_READ 4
static inline FA_UNUSED int fa__rope_group(int heads, int64_t tokens, int team, int lanes, int read) {
    const int64_t threads = 1 << 16;
    int group = heads;
    if (lanes == 1) return heads;
    const int most = read ? FA__ROPE_GROUP_READ : FA__ROPE_GROUP;
    if (group > most) group = most;
    while (group > FA__ROPE_HEADS && tokens * ((heads + group - 1) / group) * team < threads) group = group < 2 * FA__ROPE_HEADS ? FA__ROPE_HEADS : group / 2;
    return group;
}
/** @endcond */
#endif

#if !defined(FA_NAME)
#error "fa/rope.h: define FA_NAME, the prefix of every generated name, before including it"
#define FA_NAME fa_unnamed
#endif
#include <fa/kernel/rows_begin.h>

FA_API fa_status FA__ROWS(_forward)(const fa_rope_args *args, fa_stream stream) FA_UNUSED;
FA_API fa_status FA__ROWS(_backward)(const fa_rope_args *args, fa_stream stream) FA_UNUSED;
FA_API size_t FA__ROWS(_workspace)(const fa_rope_args *args) FA_UNUSED;

#if !defined(FA_DECLARE)
#include <fa/arch/bind.h>
#include <fa/arch/dtype.h>

/* What a row function is given: rows are tokens with some of their heads, columns those of the first half. */
#define FA__PARAMS FA__ROWS(__params)
typedef struct FA__PARAMS {
    fa__rows rows;
    fa__segments cut;
    fa_tensor from[2], to[2];    /* q and k */
    int heads, all_heads;        /* of q; of both */
    int groups;                  /* teams of a token: each takes some of its heads */
    int by_token, inner, outer;  /* 1: teams are numbered token by token, each with `inner` groups; 0: the other way */
    fa__divider by_inner, by_outer;
    int seqlen;
    int half, second;            /* pairs; where the second half begins: a boundary of pairs */
    int head_dim, tail_step;     /* elements of the tail for each segment */
    int interleaved;
    const float *cos, *sin;
    int table_rows;
    const int *positions;
    int offset;
    float sign;                  /* of the angle: -1 in the backward */
    fa__rope_angles angles;
} FA__PARAMS;

#define FA__BODY <fa/kernel/rope_rows.h>
#define FA__CUT_RESIDENT 6 /* its angles take registers */
#define FA__ONE_DIRECTION 1 /* rotating back is rotating by the negated angles */
#define FA__HELD_FORWARD 4 /* 16 bytes of each half of a head */
#define FA__CUT_PARTIAL 1
#define FA__CUT_FORWARD 1
#include <fa/kernel/rows_run.h>

/* Checks the arguments of a direction, derives the parameters and runs. */
static FA_UNUSED fa_status FA__ROWS(__call)(const fa_rope_args *a, int backward, fa_stream stream) {
    const char *name = FA__ROWS_CALL(backward);
    const int bytes = (int)sizeof(FA__ELEMENT);
    FA__PARAMS p;
    fa_status status;
    FA__CHECK(a, "%s: args is NULL: point it to an fa_rope_args", name);
    const struct {
        const char *name;
        int value;
    } sizes[] = {{"batch", a->batch},   {"heads", a->heads},       {"heads_kv", a->heads_kv},
                 {"seqlen", a->seqlen}, {"head_dim", a->head_dim}, {"rotary_dim", a->rotary_dim}};
    for (int i = 0; i < 6; i++)
        FA__CHECK(sizes[i].value >= 0, "%s: %s is %d: 0 or more is needed", name, sizes[i].name, sizes[i].value);
    FA__CHECK(a->threads >= 0, "%s: threads is %d: 0 (all) or more is needed", name, a->threads);
    const int rotary_dim = a->rotary_dim ? a->rotary_dim : a->head_dim;
    FA__CHECK(rotary_dim <= a->head_dim, "%s: rotary_dim is %d: head_dim, %d, or less is needed", name, rotary_dim, a->head_dim);
    FA__CHECK(rotary_dim % 2 == 0, "%s: rotary_dim is %d%s: an even number is needed", name, rotary_dim,
              a->rotary_dim ? "" : " (that of head_dim)");
    FA__CHECK(a->interleaved == 0 || a->interleaved == 1, "%s: interleaved is %d: 0 (halves) or 1 (neighbours) is needed", name,
              a->interleaved);
    FA__CHECK(!a->cos == !a->sin, "%s: %s is NULL and %s is not: both tables are needed, or base", name, a->cos ? "sin" : "cos",
              a->cos ? "cos" : "sin");
    FA__CHECK(a->cos || a->base == 0.0f || (a->base > 1.0f && a->base <= 1e30f), "%s: base is %g: more than 1 is needed, up to 1e30 (0 means 10000)",
              name, (double)a->base);
    FA__CHECK(a->table_rows >= 0, "%s: table_rows is %d: 0 (not known) or more is needed", name, a->table_rows);
    const struct {
        const char *name;
        const void *data;
    } words[] = {{"cos", a->cos}, {"sin", a->sin}, {"positions", a->positions}};
    for (int i = 0; i < 3; i++)
        FA__CHECK((uintptr_t)words[i].data % 4 == 0, "%s: %s is %p: it must be aligned to 4 bytes", name, words[i].name, words[i].data);
    if (!a->positions && a->seqlen > 0) {
        long long last = (long long)a->offset + a->seqlen - 1;
        FA__CHECK(last <= INT32_MAX, "%s: offset is %d: the position of the last of %d tokens is above %d", name, a->offset, a->seqlen, INT32_MAX);
        FA__CHECK(!a->cos || a->offset >= 0, "%s: offset is %d: tables have no row below 0", name, a->offset);
        FA__CHECK(!a->cos || a->table_rows == 0 || last < a->table_rows,
                  "%s: table_rows is %d: the tables must have row %lld, for the last token (offset is %d and seqlen %d)", name, a->table_rows,
                  last, a->offset, a->seqlen);
    }
    const fa_tensor *q = backward ? &a->d_q : &a->q, *k = backward ? &a->d_k : &a->k;
    const fa_tensor *q_out = backward ? q : &a->q_out, *k_out = backward ? k : &a->k_out;
    const int heads_kv = k->data ? a->heads_kv : 0;
    FA__CHECK(backward || k->data || !k_out->data, "%s: k.data is NULL and k_out.data is not: both are needed, or neither", name);
    const struct {
        const char *name;
        const fa_tensor *at;
        int heads, written;
    } tensors[] = {{backward ? "d_q" : "q", q, a->heads, backward},
                   {backward ? "d_k" : "k", k, heads_kv, backward},
                   {backward ? "d_q" : "q_out", q_out, a->heads, 1},
                   {backward ? "d_k" : "k_out", k_out, heads_kv, 1}};
    FA__CHECK(!k->data || heads_kv > 0 || a->batch == 0 || a->seqlen == 0,
              "%s: heads_kv is 0 and %s.data is not NULL: the number of its heads is needed", name, tensors[1].name);
    for (int i = 0; i < 4; i++)
        if ((status = fa__check_tensor(name, tensors[i].name, tensors[i].at, a->batch, tensors[i].heads, a->seqlen, a->head_dim, bytes, bytes,
                                       tensors[i].written)) != FA_OK)
            return status;
    const int both = a->batch && a->heads && heads_kv && a->seqlen && a->head_dim;
    FA__CHECK(!both || q_out->data != k_out->data, "%s: %s.data and %s.data are both %p: two tensors are needed", name, tensors[2].name,
              tensors[3].name, q_out->data);
    for (int i = 0; i < 2; i++) {
        const fa_tensor *in = i ? k : q, *other = i ? q : k, *out = i ? k_out : q_out;
        const int empty = !(a->batch && tensors[i].heads && a->seqlen && a->head_dim);
        const int same = (a->batch < 2 || in->stride_batch == out->stride_batch) && (a->seqlen < 2 || in->stride_seq == out->stride_seq) &&
                         (tensors[i].heads < 2 || in->stride_head == out->stride_head);
        FA__CHECK(empty || same || !in->data || in->data != out->data, "%s: %s_out is written in place of %s with other strides: the same are needed",
                  name, tensors[i].name, tensors[i].name);
        FA__CHECK(!both || out->data != other->data, "%s: %s_out is written in place of %s, which is still needed: only of %s is possible",
                  name, tensors[i].name, tensors[1 - i].name, tensors[i].name);
    }
    FA__CHECK((int64_t)a->heads + heads_kv <= FA__ROPE_HEADS_MOST, "%s: heads is %d and heads_kv is %d: together %d or less are needed", name,
              a->heads, heads_kv, FA__ROPE_HEADS_MOST);
    const int64_t tokens = (int64_t)a->batch * a->seqlen;
    FA__CHECK(!fa__too_many(tokens, ((int64_t)a->heads + heads_kv) * a->head_dim),
              "%s: (%d, %d + %d, %d, %d): at most 2^48 elements are possible", name, a->batch, a->heads, heads_kv, a->seqlen, a->head_dim);
    if (a->batch == 0 || a->seqlen == 0 || a->head_dim == 0 || a->heads + heads_kv == 0) return FA_OK;
    for (int i = 2; i < 4; i++)
        if ((status = fa__check_apart(name, tensors[i].name, tensors[i].at, a->batch, tensors[i].heads, a->seqlen, a->head_dim)) != FA_OK) return status;
    const int64_t table = fa__bytes_of_words(a->table_rows > 0 ? a->table_rows : a->positions ? 1 : a->offset + (int64_t)a->seqlen, rotary_dim / 2);
    for (int i = 2; i < 4; i++) { /* each written tensor: that it shares nothing with the others, or is the one that it is made of */
        const fa__place to = FA__PLACE(tensors[i].at, a->batch, tensors[i].heads, a->seqlen, a->head_dim, bytes);
        for (int j = 0; j < i; j++) {
            const fa__place at = FA__PLACE(tensors[j].at, a->batch, tensors[j].heads, a->seqlen, a->head_dim, bytes);
            FA__CHECK((j == i - 2 && at.data == to.data) || (backward && j < 2) || !fa__share_memory(&to, &at),
                      "%s: %s, at %p, and %s, at %p, share some of their elements if batch is %d, heads %d, heads_kv %d and seqlen %d: %s", name, tensors[i].name,
                      to.data, tensors[j].name, at.data, a->batch, a->heads, heads_kv, a->seqlen, j == i - 2 ? "either all, or none, are possible" : "two tensors are needed");
        }
        for (int j = 0; j < 3; j++) {
            const fa__place at = FA__PLACE_OF_ARRAY(words[j].data, j < 2 ? table : fa__bytes_of_words(a->batch, a->seqlen));
            FA__CHECK(!fa__share_memory(&to, &at), "%s: %s, at %p, has a place in %s, at %p: memory of its own is needed", name, words[j].name, at.data,
                      tensors[i].name, to.data);
        }
    }

    memset(&p, 0, sizeof p);
    p.from[0] = *q, p.from[1] = *k, p.to[0] = *q_out, p.to[1] = *k_out;
    p.heads = a->heads, p.all_heads = a->heads + heads_kv;
    p.seqlen = a->seqlen, p.head_dim = a->head_dim;
    p.half = rotary_dim / 2;
    p.interleaved = a->interleaved;
    p.second = p.half + (p.interleaved ? p.half & 1 : 0);
    p.cos = a->cos, p.sin = a->sin, p.table_rows = a->table_rows;
    p.positions = a->positions, p.offset = a->offset;
    p.sign = backward ? -1.0f : 1.0f;
    if (!p.cos) p.angles = fa__rope_angles_of(a->base == 0.0f ? 10000.0 : (double)a->base, rotary_dim);
    const int group = fa__rope_group(p.all_heads, tokens, (int)(((int64_t)p.second * bytes + 15) / 16), FA__LANES, p.cos != NULL);
    p.groups = (p.all_heads + group - 1) / group;
    /* Neighbouring teams take neighbouring memory. */
    p.by_token = q->stride_head <= q->stride_seq;
    p.inner = p.by_token ? p.groups : p.seqlen, p.outer = p.by_token ? p.seqlen : p.groups;
    p.by_inner = fa__divider_of((uint32_t)p.inner), p.by_outer = fa__divider_of((uint32_t)p.outer);
    /* Teams begin at the first element of a half, wherever that is: no alignment shifts what they hold. */
    p.cut = fa__cut(&p.rows, tokens * p.groups, p.second, bytes, 1, FA__ROWS(__cut_forward));
    p.rows.even &= ((uintptr_t)p.cos | (uintptr_t)p.sin) % 16 == 0; /* their rows are as long as halves of a head, and are read in the same way */
    p.rows.even &= p.second == p.half && (int64_t)p.second * bytes % 16 == 0 && (int64_t)p.head_dim * bytes % 16 == 0;
    p.rows.even &= p.cut.count == 1 || rotary_dim == p.head_dim; /* one team has what is not rotated */
    for (int i = 0; i < 2; i++) p.rows.even &= fa__rope_aligned(&p.from[i], bytes) && fa__rope_aligned(&p.to[i], bytes);
    int64_t step = (p.head_dim - rotary_dim + p.cut.count - 1) / p.cut.count, line = 128 / bytes;
    const int64_t lines = (step + line - 1) / line * line;
    p.tail_step = lines < INT32_MAX ? (int)lines : INT32_MAX; /* all that one team can have */
    p.rows.bytes = tokens * p.all_heads * p.head_dim * bytes;
    if (FA__LANES == 1) p.rows.cols = ((int64_t)p.all_heads * p.head_dim + p.cut.count - 1) / p.cut.count; /* what a row, or its segment, costs a core */
    return FA__ROWS(__run)(&p, 0, 1, a->threads, stream);
}

#define FA__ARGS fa_rope_args
#include <fa/kernel/rows_calls.h>

#undef FA__PARAMS
#include <fa/arch/unbind.h>
#endif
#include <fa/kernel/rows_end.h>
