/**
 * @file check.h
 * @brief What the host checks before an instance runs: bad input never launches.
 */
#ifndef FA_KERNEL_CHECK_H
#define FA_KERNEL_CHECK_H

#include <math.h>

#include <fa/fa.h>

/** @cond PRIVATE */
/* What an instance tells the checks about itself. */
typedef struct fa__instance {
    const char *name;
    int head_dim, head_dim_v, element_bytes, dtype;
    unsigned needs; /* FA__NEED_... of its shipped mask and score hook */
    int has_user;
} fa__instance;

#define FA__CHECK(condition, ...)                                                              \
    do {                                                                                       \
        if (!(condition)) return FA__FAIL(FA_ERROR_ARGUMENT, __VA_ARGS__);                     \
    } while (0)

/* More elements than any address space has room for: numbers computed from their count may not fit in 64 bits. */
static inline FA_UNUSED int fa__too_many(int64_t rows, int64_t cols) { return cols > 0 && rows > ((int64_t)1 << 48) / cols; }
/* Bytes of an array of words of 4 bytes: of one that cannot exist, more than any address space has. */
static inline FA_UNUSED int64_t fa__bytes_of_words(int64_t rows, int64_t cols) { return fa__too_many(rows, cols) ? (int64_t)1 << 50 : rows * cols * 4; }

static inline FA_UNUSED fa_status fa__check_stride(const char *name, const char *tensor, const char *which, int64_t stride, int size,
                                                   int row, int element_bytes, int alignment, int written) {
    int unit = alignment / element_bytes;
    if (size <= 1) return FA_OK; /* never multiplied by anything but 0 */
    FA__CHECK(stride >= 0, "%s: %s.stride_%s is %lld: strides are not negative", name, tensor, which, (long long)stride);
    FA__CHECK(!fa__too_many(size - 1, stride), "%s: %s.stride_%s is %lld: the last of %d would begin more than 2^48 elements behind the first",
              name, tensor, which, (long long)stride, size);
    FA__CHECK(stride % unit == 0, "%s: %s.stride_%s is %lld elements: a multiple of %d (%d bytes) is needed", name, tensor, which,
              (long long)stride, unit, alignment);
    FA__CHECK(!written || stride >= row, "%s: %s.stride_%s is %lld: rows of %d elements would be written over each other", name, tensor,
              which, (long long)stride, row);
    return FA_OK;
}

/* The strides of a tensor, and how many steps there are along each. */
typedef struct fa__stride_use {
    const char *which;
    int64_t stride;
    int size;
} fa__stride_use;
#define FA__STRIDES(t, batch, heads, seqlen) \
    {{"batch", (t)->stride_batch, batch}, {"head", (t)->stride_head, heads}, {"seq", (t)->stride_seq, seqlen}}

/* A tensor whose rows begin at multiples of `alignment` bytes. */
static inline FA_UNUSED fa_status fa__check_tensor(const char *name, const char *tensor, const fa_tensor *t, int batch, int heads, int seqlen,
                                                   int row, int element_bytes, int alignment, int written) {
    const fa__stride_use strides[] = FA__STRIDES(t, batch, heads, seqlen);
    if (batch == 0 || heads == 0 || seqlen == 0 || row == 0) return FA_OK;
    FA__CHECK(t->data, "%s: %s.data is NULL: (%d, %d, %d, %d) elements are needed", name, tensor, batch, heads, seqlen, row);
    FA__CHECK((uintptr_t)t->data % (uintptr_t)alignment == 0, "%s: %s.data is %p: it must be aligned to %d bytes", name, tensor, t->data,
              alignment);
    for (int i = 0; i < 3; i++) {
        fa_status status = fa__check_stride(name, tensor, strides[i].which, strides[i].stride, strides[i].size, row, element_bytes, alignment, written);
        if (status != FA_OK) return status;
    }
    return FA_OK;
}

/* Checks that no row of a written tensor is reached both by some steps along one stride and by one step along another. */
static inline FA_UNUSED fa_status fa__check_apart(const char *name, const char *tensor, const fa_tensor *t, int batch, int heads, int seqlen, int row) {
    const fa__stride_use all[] = FA__STRIDES(t, batch, heads, seqlen);
    if (batch == 0 || heads == 0 || seqlen == 0 || row == 0) return FA_OK;
    for (int i = 0; i < 9; i++) {
        const int a = i / 3, b = i % 3;
        if (a == b || all[a].size <= 1 || all[b].size <= 1 || all[a].stride > all[b].stride) continue;
        const int64_t steps = all[b].stride / all[a].stride, off = all[b].stride % all[a].stride;
        FA__CHECK((off >= row || steps >= all[a].size) && (all[a].stride - off >= row || steps + 1 >= all[a].size),
                  "%s: %s.stride_%s is %lld and %s.stride_%s %lld: rows of %d elements would be written over each other", name, tensor,
                  all[a].which, (long long)all[a].stride, tensor, all[b].which, (long long)all[b].stride, row);
    }
    return FA_OK;
}

/* Rows of one tensor, or a single array, in memory: of batch 1, one head and one token. */
typedef struct fa__place {
    const void *data;
    int64_t row_bytes;
    int element_bytes;
    fa__stride_use strides[3]; /* in elements */
} fa__place;
#define FA__PLACE(t, batch, heads, seqlen, row, element_bytes) {(t)->data, (int64_t)(row) * (element_bytes), element_bytes, FA__STRIDES(t, batch, heads, seqlen)}
#define FA__PLACE_OF_ARRAY(data, bytes) {data, bytes, 1, {{"", 0, 1}, {"", 0, 1}, {"", 0, 1}}}

/* Whether rows of two tensors with the same strides have a byte in common. Steps along a stride go from least to most: the difference of
 * those of the two. */
typedef struct fa__lattice {
    int64_t row, other_row;
    int64_t stride[3], least[3], most[3]; /* longest stride first */
    int left;                             /* combinations of steps that are still looked at: strides that are no layout may have any number */
} fa__lattice;
FA__CALLED int64_t fa__quotient_below(int64_t a, int64_t b) { return a / b - (a % b < 0); }
/* Whether some do, if the second tensor's rows began `apart` bytes behind those of the first: of the steps from `depth` on. */
FA__CALLED int fa__rows_meet(fa__lattice *of, int64_t apart, int depth) {
    int64_t low = 1 - of->row, high = of->other_row - 1; /* steps that lead this far from `apart` meet */
    if (depth == 3) return low <= -apart && -apart <= high;
    if (of->stride[depth] == 0) return fa__rows_meet(of, apart, depth + 1);
    for (int i = depth + 1; i < 3; i++) low -= of->stride[i] * of->most[i], high -= of->stride[i] * of->least[i];
    int64_t begin = -fa__quotient_below(-(apart + low), of->stride[depth]), end = fa__quotient_below(apart + high, of->stride[depth]);
    if (begin < of->least[depth]) begin = of->least[depth];
    if (end > of->most[depth]) end = of->most[depth];
    for (int64_t i = begin; i <= end && of->left-- > 0; i++)
        if (fa__rows_meet(of, apart - i * of->stride[depth], depth + 1)) return 1;
    return 0;
}
/* Whether two tensors share memory: known if they begin at the same address or have the same strides, else taken for no. */
FA__CALLED int fa__share_memory(const fa__place *a, const fa__place *b) {
    fa__lattice of;
    if (!a->data || !b->data || a->row_bytes <= 0 || b->row_bytes <= 0) return 0;
    for (int i = 0; i < 3; i++)
        if (a->strides[i].size < 1 || b->strides[i].size < 1) return 0; /* whose strides may be anything */
    if (a->data == b->data) return 1;
    for (int i = 0; i < 3; i++) {
        const fa__stride_use *in = &a->strides[i], *other = &b->strides[i];
        const int64_t own = in->size > 1 ? in->stride * a->element_bytes : 0, its = other->size > 1 ? other->stride * b->element_bytes : 0;
        if (in->size > 1 && other->size > 1 && own != its) return 0;
        const int64_t s = in->size > 1 ? own : its;
        int at = i;
        for (; at > 0 && of.stride[at - 1] < s; at--)
            of.stride[at] = of.stride[at - 1], of.least[at] = of.least[at - 1], of.most[at] = of.most[at - 1];
        of.stride[at] = s, of.least[at] = 1 - (int64_t)other->size, of.most[at] = (int64_t)in->size - 1;
    }
    of.row = a->row_bytes, of.other_row = b->row_bytes, of.left = 10000;
    const int64_t apart = (int64_t)((uintptr_t)b->data - (uintptr_t)a->data), farthest = (int64_t)1 << 60;
    return apart < farthest && apart > -farthest && fa__rows_meet(&of, apart, 0);
}

static inline FA_UNUSED fa_status fa__check_bias_stride(const fa__instance *of, const char *name, int64_t stride, int size) {
    FA__CHECK(stride >= 0, "%s: %s is %lld: strides are not negative", of->name, name, (long long)stride);
    FA__CHECK(!fa__too_many(size - 1, stride), "%s: %s is %lld: the last of %d would begin more than 2^48 elements behind the first",
              of->name, name, (long long)stride, size);
    return FA_OK;
}

static inline FA_UNUSED fa_status fa__check_attention(const fa__instance *of, const fa_attention_args *a) {
    enum { FA__LONGEST = INT32_MAX - 1023 }; /* the end of the tile that holds the last one must be an int, too */
    fa_status status;
    FA__CHECK(a, "%s: args is NULL: point it to an fa_attention_args", of->name);
    FA__CHECK(a->batch >= 0, "%s: batch is %d: 0 or more is needed", of->name, a->batch);
    FA__CHECK(a->heads >= 0, "%s: heads is %d: 0 or more is needed", of->name, a->heads);
    FA__CHECK(a->heads_kv >= 0, "%s: heads_kv is %d: 0 or more is needed", of->name, a->heads_kv);
    FA__CHECK(a->seqlen_q >= 0, "%s: seqlen_q is %d: 0 or more is needed", of->name, a->seqlen_q);
    FA__CHECK(a->seqlen_k >= 0, "%s: seqlen_k is %d: 0 or more is needed", of->name, a->seqlen_k);
    FA__CHECK(a->seqlen_q <= FA__LONGEST, "%s: seqlen_q is %d: at most %d are possible", of->name, a->seqlen_q, FA__LONGEST);
    FA__CHECK(a->seqlen_k <= FA__LONGEST, "%s: seqlen_k is %d: at most %d are possible", of->name, a->seqlen_k, FA__LONGEST);
    FA__CHECK(a->heads == 0 || (a->heads_kv > 0 && a->heads % a->heads_kv == 0),
              "%s: heads is %d and heads_kv is %d: heads must be a multiple of heads_kv", of->name, a->heads, a->heads_kv);
    FA__CHECK(isfinite(a->scale), "%s: scale is %g: a finite number is needed (0 means 1/sqrt(%d))", of->name, (double)a->scale,
              of->head_dim);
    FA__CHECK(a->scale == 0.0f || (fabsf(a->scale) >= 1e-30f && fabsf(a->scale) <= 1e30f),
              "%s: scale is %g: between 1e-30 and 1e30 in size is needed (0 means 1/sqrt(%d))", of->name, (double)a->scale,
              of->head_dim);
    FA__CHECK(a->threads >= 0, "%s: threads is %d: 0 (all) or more is needed", of->name, a->threads);
    FA__CHECK(!of->has_user || a->user, "%s: user is NULL: it must point to the FA_USER_ARGS that the hooks read", of->name);
    int queries = a->batch && a->heads ? a->seqlen_q : 0; /* nothing to compute: nothing is read */
    int keys = queries ? a->seqlen_k : 0;
    const struct {
        const char *name;
        const fa_tensor *at;
        int heads, seqlen, row, written;
    } tensors[] = {{"q", &a->q, a->heads, queries, of->head_dim, 0},
                   {"k", &a->k, a->heads_kv, keys, of->head_dim, 0},
                   {"v", &a->v, a->heads_kv, keys, of->head_dim_v, 0},
                   {"o", &a->o, a->heads, queries, of->head_dim_v, 1}};
    for (int i = 0; i < 4; i++)
        if ((status = fa__check_tensor(of->name, tensors[i].name, tensors[i].at, a->batch, tensors[i].heads, tensors[i].seqlen, tensors[i].row,
                                       of->element_bytes, 16, tensors[i].written)) != FA_OK)
            return status;
    const struct {
        const char *name;
        const void *data;
    } words[] = {{"lse", a->lse},           {"alibi_slopes", a->alibi_slopes}, {"key_bias", a->key_bias},
                 {"prefix", a->prefix}, {"document_q", a->document_q},     {"document_k", a->document_k}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        FA__CHECK((uintptr_t)words[i].data % 4 == 0, "%s: %s is %p: it must be aligned to 4 bytes", of->name, words[i].name,
                  words[i].data);
    FA__CHECK(queries == 0 || (const void *)a->lse != a->o.data, "%s: lse and o.data are both %p: two arrays are needed", of->name, (void *)a->lse);
    if ((status = fa__check_apart(of->name, "o", &a->o, a->batch, a->heads, queries, of->head_dim_v)) != FA_OK) return status;
    if (queries == 0) return FA_OK;
    const fa__place lse = FA__PLACE_OF_ARRAY(a->lse, fa__bytes_of_words((int64_t)a->batch * a->heads, queries));
    const fa__place o = FA__PLACE(&a->o, a->batch, a->heads, queries, of->head_dim_v, of->element_bytes);
#define FA__SIZES "if batch is %d, heads %d, seqlen_q %d and seqlen_k %d"
    FA__CHECK(!fa__share_memory(&o, &lse), "%s: o, at %p, and lse, at %p, share memory " FA__SIZES ": two arrays are needed", of->name, a->o.data,
              (void *)a->lse, a->batch, a->heads, a->seqlen_q, a->seqlen_k);
    if (keys == 0) return FA_OK; /* nothing else is read */
    for (int i = 0; i < 3; i++) {
        FA__CHECK((const void *)a->lse != tensors[i].at->data, "%s: lse and %s.data are both %p: lse needs memory of its own", of->name, tensors[i].name,
                  (void *)a->lse);
        FA__CHECK(a->o.data != tensors[i].at->data, "%s: o.data and %s.data are both %p: o needs memory of its own", of->name, tensors[i].name,
                  a->o.data);
    }
    const int bytes = of->element_bytes;
    const struct {
        const char *name;
        unsigned needed; /* by which hook; 0: always */
        fa__place at;
    } inputs[] = {{"q", 0, FA__PLACE(&a->q, a->batch, a->heads, queries, of->head_dim, bytes)},
                  {"k", 0, FA__PLACE(&a->k, a->batch, a->heads_kv, keys, of->head_dim, bytes)},
                  {"v", 0, FA__PLACE(&a->v, a->batch, a->heads_kv, keys, of->head_dim_v, bytes)},
                  {"prefix", FA__NEED_PREFIX, FA__PLACE_OF_ARRAY(a->prefix, (int64_t)a->batch * 4)},
                  {"document_q", FA__NEED_DOCUMENT, FA__PLACE_OF_ARRAY(a->document_q, fa__bytes_of_words(a->batch, queries))},
                  {"document_k", FA__NEED_DOCUMENT, FA__PLACE_OF_ARRAY(a->document_k, fa__bytes_of_words(a->batch, keys))},
                  {"alibi_slopes", FA__NEED_ALIBI, FA__PLACE_OF_ARRAY(a->alibi_slopes, (int64_t)a->heads * 4)},
                  {"bias", FA__NEED_BIAS,
                   {a->bias, (int64_t)keys * bytes, bytes,
                    {{"batch", a->bias_stride_batch, a->batch}, {"head", a->bias_stride_head, a->heads}, {"query", a->bias_stride_query, queries}}}},
                  {"key_bias", FA__NEED_KEY_BIAS,
                   {a->key_bias, (int64_t)keys * 4, 4,
                    {{"batch", a->key_bias_stride_batch, a->batch}, {"head", a->key_bias_stride_head, a->heads}, {"", 0, 1}}}}};
    if (of->needs & FA__NEED_PREFIX)
        FA__CHECK(a->prefix, "%s: prefix is NULL: fa_prefix needs %d ints, the keys that every query sees", of->name, a->batch);
    if (of->needs & FA__NEED_DOCUMENT)
        FA__CHECK(a->document_q && a->document_k,
                  "%s: %s is NULL: %s needs the document ids of queries (%d x %d ints) and keys (%d x %d ints)", of->name,
                  a->document_q ? "document_k" : "document_q", of->needs & FA__WITH_CAUSAL ? "fa_causal_document" : "fa_document", a->batch, a->seqlen_q, a->batch, a->seqlen_k);
    if (of->needs & FA__NEED_ALIBI)
        FA__CHECK(a->alibi_slopes, "%s: alibi_slopes is NULL: fa_alibi needs %d floats, one a head", of->name, a->heads);
    if (of->needs & FA__NEED_SOFTCAP)
        FA__CHECK(a->softcap >= 1e-30f && a->softcap <= 1e8f, "%s: softcap is %g: fa_softcap needs a cap from 1e-30 to 1e8",
                  of->name, (double)a->softcap);
    if (of->needs & FA__NEED_BIAS) {
        FA__CHECK(a->bias, "%s: bias is NULL: fa_bias needs a tensor (batch, heads, seqlen_q, seqlen_k)", of->name);
        FA__CHECK((uintptr_t)a->bias % (uintptr_t)of->element_bytes == 0, "%s: bias is %p: it must be aligned to %d bytes", of->name,
                  a->bias, of->element_bytes);
        if ((status = fa__check_bias_stride(of, "bias_stride_batch", a->bias_stride_batch, a->batch)) != FA_OK) return status;
        if ((status = fa__check_bias_stride(of, "bias_stride_head", a->bias_stride_head, a->heads)) != FA_OK) return status;
        if ((status = fa__check_bias_stride(of, "bias_stride_query", a->bias_stride_query, a->seqlen_q)) != FA_OK) return status;
    }
    if (of->needs & FA__NEED_KEY_BIAS) {
        FA__CHECK(a->key_bias, "%s: key_bias is NULL: fa_key_bias needs a tensor (batch, heads, seqlen_k) of floats", of->name);
        if ((status = fa__check_bias_stride(of, "key_bias_stride_batch", a->key_bias_stride_batch, a->batch)) != FA_OK) return status;
        if ((status = fa__check_bias_stride(of, "key_bias_stride_head", a->key_bias_stride_head, a->heads)) != FA_OK) return status;
    }
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        if (inputs[i].needed && !(inputs[i].needed & of->needs)) continue;
        const int in_o = fa__share_memory(&inputs[i].at, &o);
        FA__CHECK(!in_o && !fa__share_memory(&inputs[i].at, &lse),
                  "%s: %s, at %p, has a place in %s, at %p, " FA__SIZES ": what is written needs memory of its own", of->name, inputs[i].name,
                  inputs[i].at.data, in_o ? "o" : "lse", in_o ? a->o.data : (void *)a->lse, a->batch, a->heads, a->seqlen_q, a->seqlen_k);
    }
#undef FA__SIZES
    return FA_OK;
}
/** @endcond */

#endif
