/**
 * @file attention_check.h
 * @brief What the host checks of an fa_attention_args.
 */
#ifndef FA_KERNEL_ATTENTION_CHECK_H
#define FA_KERNEL_ATTENTION_CHECK_H

#include <math.h>

#include <fa/kernel/check.h>
#include <fa/kernel/shipped.h>

/** @cond PRIVATE */
/* What an instance tells the checks about itself. */
typedef struct fa__instance {
    const char *name;
    int head_dim, head_dim_v, element_bytes;
    unsigned needs; /* FA__NEED_... of its shipped mask and score hook */
    int has_user;
} fa__instance;

/* `workspace`: the bytes of it that are written, if there is one. */
FA__CALLED fa_status fa__check_attention(const fa__instance *of, const fa_attention_args *a, size_t workspace) {
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
    const int bytes = of->element_bytes;
    enum { FA__OUTPUTS = 3 };
    const struct {
        const char *name;
        fa__place at;
    } outputs[FA__OUTPUTS] = {{"o", FA__PLACE(&a->o, a->batch, a->heads, queries, of->head_dim_v, bytes)},
                              {"lse", FA__PLACE_OF_ARRAY(a->lse, fa__bytes_of_words((int64_t)a->batch * a->heads, queries))},
                              {"workspace", FA__PLACE_OF_ARRAY(a->workspace, (int64_t)workspace)}};
    const struct {
        const char *name;
        unsigned needed; /* by which hook; 0: always */
        int alignment;   /* in bytes; of q, k and v it has been checked */
        fa__place at;
    } inputs[] = {{"q", 0, 1, FA__PLACE(&a->q, a->batch, a->heads, queries, of->head_dim, bytes)},
                  {"k", 0, 1, FA__PLACE(&a->k, a->batch, a->heads_kv, keys, of->head_dim, bytes)},
                  {"v", 0, 1, FA__PLACE(&a->v, a->batch, a->heads_kv, keys, of->head_dim_v, bytes)},
                  {"prefix", FA__NEED_PREFIX, 4, FA__PLACE_OF_ARRAY(a->prefix, (int64_t)a->batch * 4)},
                  {"document_q", FA__NEED_DOCUMENT, 4, FA__PLACE_OF_ARRAY(a->document_q, fa__bytes_of_words(a->batch, queries))},
                  {"document_k", FA__NEED_DOCUMENT, 4, FA__PLACE_OF_ARRAY(a->document_k, fa__bytes_of_words(a->batch, keys))},
                  {"span_begin", FA__NEED_SPAN, 4, FA__PLACE_OF_ARRAY(a->span_begin, fa__bytes_of_words(a->batch, queries))},
                  {"span_end", FA__NEED_SPAN, 4, FA__PLACE_OF_ARRAY(a->span_end, fa__bytes_of_words(a->batch, queries))},
                  {"alibi_slopes", FA__NEED_ALIBI, 4, FA__PLACE_OF_ARRAY(a->alibi_slopes, (int64_t)a->heads * 4)},
                  {"bias", FA__NEED_BIAS, bytes,
                   {a->bias, (int64_t)keys * bytes, bytes,
                    {{"batch", a->bias_stride_batch, a->batch}, {"head", a->bias_stride_head, a->heads}, {"query", a->bias_stride_query, queries}}}},
                  {"key_bias", FA__NEED_KEY_BIAS, 4,
                   {a->key_bias, (int64_t)keys * 4, 4,
                    {{"batch", a->key_bias_stride_batch, a->batch}, {"head", a->key_bias_stride_head, a->heads}, {"", 0, 1}}}}};
    if (queries == 0) return FA_OK;
    FA__CHECK((uintptr_t)a->lse % 4 == 0, "%s: lse is %p: it must be aligned to 4 bytes", of->name, (void *)a->lse);
    if ((status = fa__check_apart(of->name, "o", &a->o, a->batch, a->heads, queries, of->head_dim_v)) != FA_OK) return status;
#define FA__SIZES "if batch is %d, heads %d, seqlen_q %d and seqlen_k %d"
    for (int i = 0; i < FA__OUTPUTS; i++)
        for (int j = 0; j < i; j++)
            FA__CHECK(!fa__share_memory(&outputs[i].at, &outputs[j].at), "%s: %s, at %p, and %s, at %p, share memory " FA__SIZES ": two arrays are needed", of->name,
                      outputs[i].name, outputs[i].at.data, outputs[j].name, outputs[j].at.data, a->batch, a->heads, a->seqlen_q, a->seqlen_k);
    if (keys == 0) return FA_OK; /* nothing else is read */
    if (of->needs & FA__NEED_PREFIX)
        FA__CHECK(a->prefix, "%s: prefix is NULL: fa_prefix needs %d ints, the keys that every query sees", of->name, a->batch);
    if (of->needs & FA__NEED_DOCUMENT)
        FA__CHECK(a->document_q && a->document_k,
                  "%s: %s is NULL: %s needs the document ids of queries (%d x %d ints) and keys (%d x %d ints)", of->name,
                  a->document_q ? "document_k" : "document_q", of->needs & FA__WITH_CAUSAL ? "fa_causal_document" : "fa_document", a->batch, a->seqlen_q, a->batch, a->seqlen_k);
    if (of->needs & FA__NEED_SPAN)
        FA__CHECK(a->span_begin && a->span_end, "%s: %s is NULL: fa_span needs where the keys of each query begin (%d x %d ints), and where they end (as many)",
                  of->name, a->span_begin ? "span_end" : "span_begin", a->batch, a->seqlen_q);
    if (of->needs & FA__NEED_ALIBI)
        FA__CHECK(a->alibi_slopes, "%s: alibi_slopes is NULL: fa_alibi needs %d floats, one a head", of->name, a->heads);
    if (of->needs & FA__NEED_SOFTCAP)
        FA__CHECK(a->softcap >= 1e-30f && a->softcap <= 1e8f, "%s: softcap is %g: fa_softcap needs a cap from 1e-30 to 1e8",
                  of->name, (double)a->softcap);
    if (of->needs & FA__NEED_BIAS) FA__CHECK(a->bias, "%s: bias is NULL: fa_bias needs a tensor (batch, heads, seqlen_q, seqlen_k)", of->name);
    if (of->needs & FA__NEED_KEY_BIAS)
        FA__CHECK(a->key_bias, "%s: key_bias is NULL: fa_key_bias needs a tensor (batch, heads, seqlen_k) of floats", of->name);
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        if (inputs[i].needed && !(inputs[i].needed & of->needs)) continue;
        FA__CHECK((uintptr_t)inputs[i].at.data % (uintptr_t)inputs[i].alignment == 0, "%s: %s is %p: it must be aligned to %d bytes", of->name,
                  inputs[i].name, inputs[i].at.data, inputs[i].alignment);
        for (int j = 0; j < 3; j++)
            if ((status = fa__check_stride(of->name, inputs[i].name, "_", &inputs[i].at.strides[j], 0, bytes, bytes, 0)) != FA_OK) return status;
        for (int j = 0; j < FA__OUTPUTS; j++)
            FA__CHECK(!fa__share_memory(&inputs[i].at, &outputs[j].at), "%s: %s, at %p, has a place in %s, at %p, " FA__SIZES ": what is written needs memory of its own",
                      of->name, inputs[i].name, inputs[i].at.data, outputs[j].name, outputs[j].at.data, a->batch, a->heads, a->seqlen_q, a->seqlen_k);
    }
#undef FA__SIZES
    return FA_OK;
}
/** @endcond */

#endif
