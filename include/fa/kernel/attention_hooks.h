/* attention_hooks.h: FA_MASK and FA_SCORE of an instance: whether there are any, what is known of those that are
 * shipped, whether those of one's own are functions of the right type, and how a worker calls them. */
#if defined(FA_MASK) && FA__IS_NOTHING(FA_MASK)
FA__REQUIRE(0, "FA_MASK is empty: define it as the name of a mask, such as fa_causal, or not at all");
#undef FA_MASK
#endif
#if defined(FA_SCORE) && FA__IS_NOTHING(FA_SCORE)
FA__REQUIRE(0, "FA_SCORE is empty: define it as the name of a score hook, such as fa_alibi, or not at all");
#undef FA_SCORE
#endif
#if defined(FA_MASK)
#define FA__HAS_MASK 1
#define FA__MASK_NEEDS FA__SHIPPED_NEEDS(FA_MASK)
#define FA__MASK_IS_BAND FA__IS_BAND(FA_MASK)
#define FA__MASK_IS_OWN (!FA__MASK_NEEDS && !FA__MASK_IS_BAND) /* the user's, or one that combines others */
#else
#define FA__HAS_MASK 0
#define FA__MASK_NEEDS 0
#define FA__MASK_IS_BAND 0
#define FA__MASK_IS_OWN 0
#endif
#define FA__MASK_IS_PREFIX (FA__MASK_NEEDS == FA__NEED_PREFIX)
#define FA__MASK_READS (FA__HAS_MASK && !FA__MASK_IS_BAND && !FA__MASK_IS_PREFIX) /* whether the mask reads memory, or may; a prefix, one number a batch, does not count */
#if defined(FA_SCORE)
#define FA__HAS_SCORE 1
#define FA__SCORE_NEEDS FA__SHIPPED_NEEDS(FA_SCORE)
#else
#define FA__HAS_SCORE 0
#define FA__SCORE_NEEDS 0
#endif
/* Whether a hook, or the extra column of the product that replaces it, may make scores of any size (fa/softmax.h,
 * FA_WIDE); shipped hooks that are known to be bounded do not. */
#define FA__WIDE_SCORE (FA__COLUMNS == FA__NEED_KEY_BIAS || (FA__HAS_SCORE && FA__SCORE_NEEDS != FA__NEED_ALIBI && FA__SCORE_NEEDS != FA__NEED_SOFTCAP))
/* The score that a worker computes from q.k, and its unit. Under a soft cap the worker computes only tanh, in units of
 * the cap; the factors of the product and of the exponent include the cap. */
#if FA__SCORE_NEEDS == FA__NEED_SOFTCAP
#define FA__SCORE_OF(p, x, at) fa__tanh((x) * (p)->scale, (at).dtype)
#define FA__SCORE_UNIT(args) ((args)->softcap)
#elif FA__HAS_SCORE
#define FA__SCORE_OF(p, x, at) FA__ATTN(__score)(FA__USER(p), (x) * (p)->scale, at)
#define FA__SCORE_UNIT(args) 1.0f
#endif
/* Whether workers get a polynomial for it, too. */
#define FA__SOFT_CAP (FA__ARCH != FA_CPU && FA__SCORE_NEEDS == FA__NEED_SOFTCAP && FA__IS_HALF)
#if FA__HAS_MASK
#define FA__KEEP_FITS                                                                                                                  \
    FA__IS_ONE_OF(FA__CAT(FA_MASK, _keep), FA__FUNCTION(int, FA__USER_TYPE, fa_index), FA__FUNCTION(_Bool, FA__USER_TYPE, fa_index),   \
                  FA__FUNCTION(unsigned, FA__USER_TYPE, fa_index), FA__FUNCTION(long, FA__USER_TYPE, fa_index))
FA__REQUIRE(FA__KEEP_FITS,
            "FA_MASK needs int " FA__STR(FA__CAT(FA_MASK, _keep)) "(const FA_USER_ARGS *user, fa_index at), and FA_USER_ARGS defined as the type that user points to, above any of FA_MASK_FROM_KEEP, FA_MASK_AND and FA_MASK_OR");
FA__REQUIRE(!FA__KEEP_FITS ||
                (FA__IS_ONE_OF(FA__CAT(FA_MASK, _tile), FA__FUNCTION(fa_tile_class, FA__USER_TYPE, fa_box), FA__FUNCTION(int, FA__USER_TYPE, fa_box)) &&
                 FA__IS_ONE_OF(FA__CAT(FA_MASK, _keys), FA__FUNCTION(fa_range, FA__USER_TYPE, fa_box))),
            "FA_MASK needs fa_tile_class " FA__STR(FA__CAT(FA_MASK, _tile)) "(const FA_USER_ARGS *user, fa_box box) and fa_range " FA__STR(FA__CAT(FA_MASK, _keys)) "() of the same (FA_MASK_FROM_KEEP makes them of a keep), and FA_USER_ARGS defined as the type that user points to, above any of FA_MASK_FROM_KEEP, FA_MASK_AND and FA_MASK_OR");
#undef FA__KEEP_FITS
#endif
#if FA__HAS_SCORE
FA__REQUIRE(FA__IS_ONE_OF(FA_SCORE, FA__FUNCTIONS_OF_NUMBERS(FA__USER_TYPE, , fa_index)),
            "FA_SCORE needs float " FA__STR(FA_SCORE) "(const FA_USER_ARGS *user, float score, fa_index at), and FA_USER_ARGS defined as the type that user points to, above any FA_SCORE_CHAIN");
/* The only call of the hook. Elsewhere a parameter or a variable of the library may have the hook's name, and hide
 * it. */
FA_HOOK float FA__ATTN(__score)(const FA__USER_TYPE *fa__user, float fa__score, fa_index fa__at) {
    FA__RETURN_NUMBER(FA_SCORE(fa__user, fa__score, fa__at), "FA_SCORE needs a hook that returns float: " FA__STR(FA_SCORE) "() does not");
}
#endif
