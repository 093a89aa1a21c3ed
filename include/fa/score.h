/**
 * @file score.h
 * @brief Score hooks: what happens to a score between the product and the softmax.
 *
 * A score hook is a function (user, score, at) of the scaled score that returns the score to use;
 * FA_SCORE takes its name. `user` is a `const FA_USER_ARGS *`. NAME_grad(user, score, at), if there is one, is its derivative
 * with respect to `score`, at the score that the hook was given: for a backward pass, which this version does not have.
 * Returning -INFINITY masks an element exactly.
 *
 * @code{.c}
 * #include <fa/fa.h>
 * #include <fa/mask.h>
 * #include <fa/score.h>
 *
 * FA_SCORE_CHAIN(capped_alibi, fa_softcap, fa_alibi)
 *
 * #define FA_NAME     attn
 * #define FA_DTYPE    FA_F32
 * #define FA_HEAD_DIM 64
 * #define FA_MASK     fa_causal
 * #define FA_SCORE    capped_alibi
 * #include <fa/attention.h>
 * @endcode
 *
 * A hook runs on every element of every visited block: it should be a few instructions without branches. `at` always
 * lies inside the sequences. Shipped hooks find their parameters in `at.args`. NAME_forward() refuses a missing one (NULL, or
 * a softcap out of range); inside FA_SCORE_CHAIN, where the host cannot see it, NULL and a softcap that is not a positive number give NaN.
 */
#ifndef FA_SCORE_H
#define FA_SCORE_H

#include <math.h>

#include <fa/arch/math.h>
#include <fa/fa.h>

/** @name fa_alibi: minus alibi_slopes[head] * |key - (query + seqlen_k - seqlen_q)| (Press et al., arXiv 2108.12409)
 *  @{ */
FA_HOOK float fa_alibi(const void *user, float score, fa_index at) {
    (void)user;
    float slope = fa__load_or_nan(at.args->alibi_slopes, 0, at.head, FA_F32, at.checked, at.args->q.data);
    return score - slope * fabsf(at.distance);
}
FA_HOOK float fa_alibi_grad(const void *user, float score, fa_index at) {
    (void)user, (void)score, (void)at;
    return 1.0f;
}
/** @} */

/** @name fa_softcap: softcap * tanh(score / softcap), as in Gemma 2 (arXiv 2408.00118)
 *  @{ */
/** @cond PRIVATE */
FA_HOOK float fa__cap_or_nan(fa_index at) { return at.checked || at.args->softcap > 0.0f ? at.args->softcap : NAN; }
/** @endcond */
FA_HOOK float fa_softcap(const void *user, float score, fa_index at) {
    (void)user;
    float cap = fa__cap_or_nan(at);
    return cap * fa__tanh(score * fa__reciprocal(cap), at.dtype);
}
FA_HOOK float fa_softcap_grad(const void *user, float score, fa_index at) {
    (void)user;
    float t = fa__tanh(score * fa__reciprocal(fa__cap_or_nan(at)), at.dtype);
    return 1.0f - t * t;
}
/** @} */

/** @name fa_bias: + bias[batch][head][query][key], an FA_DTYPE tensor
 *  @{ */
FA_HOOK float fa_bias(const void *user, float score, fa_index at) {
    (void)user;
    const fa_attention_args *a = at.args;
    int64_t row = at.batch * a->bias_stride_batch + at.head * a->bias_stride_head + at.query * a->bias_stride_query;
    return score + fa__load_or_nan(a->bias, row, at.key, at.dtype, at.checked, a->q.data);
}
FA_HOOK float fa_bias_grad(const void *user, float score, fa_index at) {
    (void)user, (void)score, (void)at;
    return 1.0f;
}
/** @} */

/** @name fa_key_bias: + key_bias[batch][head][key], floats
 *  @{ */
FA_HOOK float fa_key_bias(const void *user, float score, fa_index at) {
    (void)user;
    const fa_attention_args *a = at.args;
    int64_t row = at.batch * a->key_bias_stride_batch + at.head * a->key_bias_stride_head;
    return score + fa__load_or_nan(a->key_bias, row, at.key, FA_F32, at.checked, a->q.data);
}
FA_HOOK float fa_key_bias_grad(const void *user, float score, fa_index at) {
    (void)user, (void)score, (void)at;
    return 1.0f;
}
/** @} */

/** Defines the hook `name` that applies f, then g. Goes after FA_USER_ARGS, if there is one.
 *  FA_SCORE_CHAIN_GRAD(name, f, g) defines its derivative, name_grad, if f and g have theirs. */
#define FA_SCORE_CHAIN(name, f, g)                                                             \
    FA__STRICT_BEGIN                                                                           \
    FA_HOOK float name(const FA_USER_ARGS *fa__user, float fa__score, fa_index fa__at) {       \
        return g(fa__user, f(fa__user, fa__score, fa__at), fa__at);                            \
    }                                                                                          \
    FA__STRICT_END
#define FA_SCORE_CHAIN_GRAD(name, f, g) FA__SCORE_CHAIN_GRAD(name, f, g) /* whose arguments may be macros */
#define FA__SCORE_CHAIN_GRAD(name, f, g)                                                       \
    FA__STRICT_BEGIN                                                                           \
    FA_HOOK float name##_grad(const FA_USER_ARGS *fa__user, float fa__score, fa_index fa__at) { \
        return g##_grad(fa__user, f(fa__user, fa__score, fa__at), fa__at) * f##_grad(fa__user, fa__score, fa__at); \
    }                                                                                          \
    FA__STRICT_END

#endif
