/**
 * @file attention.h
 * @brief Exact fused attention, forward: softmax(scale * Q K^T, masked and modified) V. A template header.
 *
 * After FlashAttention (Dao et al., arXiv 2205.14135 and 2307.08691; Shah et al., 2407.08608); grouped queries: Ainslie et al., 2305.13245.
 *
 * @code{.c}
 * #include <fa/fa.h>
 *
 * struct my_args { float slope; };
 * FA_HOOK float my_bias(const struct my_args *u, float score, fa_index at) {
 *     return score + u->slope * at.distance;
 * }
 *
 * #define FA_NAME      attn
 * #define FA_DTYPE     FA_BF16
 * #define FA_HEAD_DIM  128
 * #define FA_MASK      fa_causal
 * #define FA_SCORE     my_bias
 * #define FA_USER_ARGS struct my_args
 * #include <fa/attention.h>   // defines attn_forward(), attn_plan(), attn_workspace()
 * @endcode
 *
 * | parameter     | required | default          | meaning |
 * |---------------|----------|------------------|---------|
 * | FA_NAME       | yes      |                  | prefix of every generated name |
 * | FA_DTYPE      | yes      |                  | FA_F32, FA_F16, FA_BF16 or FA_TF32: type of q, k, v and o |
 * | FA_HEAD_DIM   | yes      |                  | head dimension of q and k: a multiple of 8 from 8 to 256 |
 * | FA_HEAD_DIM_V | no       | FA_HEAD_DIM      | head dimension of v and o, likewise |
 * | FA_MASK       | no       | every key        | a mask: fa_causal, ... (fa/mask.h) or your own |
 * | FA_SCORE      | no       | unchanged        | a score hook: fa_alibi, ... (fa/score.h) or your own |
 * | FA_USER_ARGS  | no       | none             | the type that args.user points to, without const or commas, and no bare pointer (name it by a typedef); every hook gets a const pointer to a copy |
 * | FA_API        | no       | static           | linkage of the generated functions: FA_EXTERN for C linkage (the default with FA_DECLARE) |
 * | FA_DECLARE    | no       |                  | defined: prototypes only, for the files that call an instance of another file |
 * | FA_ARCH       | no       | by the compiler  | FA_CPU, 80 or 90; by default nvcc makes 80 and, for half types under -arch=sm_90a, also 90 (the device decides which runs); other compilers make FA_CPU |
 * | FA_SUB        | no       |                  | second part of the prefix; FA_NAME, FA_DTYPE, FA_ARCH and FA_USER_ARGS stay defined |
 * | FA_BLOCK_M    | no       | tuned            | queries per tile: a multiple of 16 up to 1024; on GPUs 16 or 32 per warp; with FA_ARCH 90: 64, 128 or 192 |
 * | FA_BLOCK_N    | no       | tuned            | keys per tile: a multiple of 16 up to 1024; with FA_ARCH 90: up to 256 |
 * | FA_WARPS      | no       | tuned            | warps of a thread block that compute products (GPU); with FA_ARCH 90: FA_BLOCK_M / 16, or 16 for two teams of FA_BLOCK_M 128 each |
 * | FA_STAGES     | no       | tuned            | pipeline stages, tiles of K and V in flight (GPU): 1 or 2; with FA_ARCH 90: up to 4 |
 *
 * Under nvcc, defining any of the last four leaves out the schedule for sm_90a, unless FA_ARCH is 90.
 *
 * Generates
 *
 *     fa_status NAME_forward(const fa_attention_args *args, fa_stream stream);
 *     fa_status NAME_plan(const fa_attention_args *args, fa_plan *plan);
 *     size_t    NAME_workspace(const fa_attention_args *args);
 *
 * NAME_forward() on a GPU launches and returns: it neither allocates nor synchronises, and may be captured in a graph. On
 * the CPU it returns when o is written. NAME_plan() says what would run; on a GPU, with a mask, it counts the tiles on
 * the device and waits for the result. NAME_workspace() is the size of the optional workspace: 4 bytes for documents,
 * spans and masks of your own in code for sm_90a (doc/instantiate.md), else 0. With a workspace, query blocks are handed out dynamically, one by one, which
 * pays where they take unequal time.
 */
#include <fa/fa.h>
#include <fa/kernel/attention_check.h>
#include <fa/kernel/divider.h>
#include <fa/kernel/soft_cap.h>
#include <fa/mask.h>
#include <fa/score.h>

#if !defined(FA_NAME)
#error "fa/attention.h: define FA_NAME, the prefix of every generated name, before including it"
#define FA_NAME fa_unnamed
#endif
#include <fa/arch/api.h>
#define FA__ATTN(x) FA__CAT3(FA_NAME, FA_SUB, x)

FA_API fa_status FA__ATTN(_forward)(const fa_attention_args *args, fa_stream stream) FA_UNUSED;
FA_API fa_status FA__ATTN(_plan)(const fa_attention_args *args, fa_plan *plan) FA_UNUSED;
FA_API size_t FA__ATTN(_workspace)(const fa_attention_args *args) FA_UNUSED;

#if !defined(FA_DECLARE)
FA__STRICT_BEGIN
#include <fa/arch/bind.h>
#include <fa/arch/dtype.h>
#if !defined(FA_HEAD_DIM)
FA__REQUIRE(0, "define FA_HEAD_DIM, the head dimension: a multiple of 8 from 8 to 256");
#define FA_HEAD_DIM 64
#elif FA_HEAD_DIM + 0 < 8 || FA_HEAD_DIM + 0 > 256 || (FA_HEAD_DIM + 0) % 8 != 0 || FA__IS_BARE(FA_HEAD_DIM)
FA__REQUIRE(0, "FA_HEAD_DIM is " FA__STR(FA_HEAD_DIM) ": a multiple of 8 from 8 to 256 is needed, as a literal or a macro, which the preprocessor can compare, " FA__AS_A_NUMBER " (smaller ones: pad q and k with zeros and set args.scale)");
#undef FA_HEAD_DIM
#define FA_HEAD_DIM 64
#endif
#if !defined(FA_HEAD_DIM_V)
#define FA_HEAD_DIM_V FA_HEAD_DIM
#elif FA_HEAD_DIM_V + 0 < 8 || FA_HEAD_DIM_V + 0 > 256 || (FA_HEAD_DIM_V + 0) % 8 != 0 || FA__IS_BARE(FA_HEAD_DIM_V)
FA__REQUIRE(0, "FA_HEAD_DIM_V, the head dimension of v, is " FA__STR(FA_HEAD_DIM_V) ": a multiple of 8 from 8 to 256 is needed, " FA__AS_A_NUMBER);
#undef FA_HEAD_DIM_V
#define FA_HEAD_DIM_V FA_HEAD_DIM
#endif
#define FA__PARAMS FA__ATTN(__params)
#include <fa/kernel/user.h>
#include <fa/kernel/attention_hooks.h>

/* What a worker is given: the arguments, the user's, and what the host derived from them. */
typedef struct FA__PARAMS {
    fa_attention_args args;
    FA__USER_BYTES
    float scale;      /* applied before a score hook; divided by the hook's unit, which under a soft cap is the cap */
    float scale_log2; /* of the exponent: exp2(score * scale_log2) */
    int negate;       /* a negative scale, without a score hook: q changes sign, so that scale_log2 is positive */
#if FA__SOFT_CAP
    fa__cap_curve cap;
#endif
    int blocks_m;     /* query blocks of a head; on the CPU groups of them, once a call knows how large these are */
    uint32_t items;   /* blocks_m * batch * heads: see FA__ATTN(__box) for their order */
    int passes, pass_blocks, last_pass_blocks; /* query blocks of a pass, and of the last pass */
    int section;                               /* heads that are interleaved */
    fa__divider by_pass, by_section, by_last_pass_section, by_section_heads, by_last_heads, by_blocks_m, by_heads, by_group;
    int sequences_first; /* heads are counted through all sequences, not through all heads of a sequence: by_heads is then by their number */
} FA__PARAMS;
FA__REQUIRE(sizeof(FA__PARAMS) <= 4096, "FA_USER_ARGS is too large: with the library's own parameters, some 0.5 KB, it may have 4 KB: pass a pointer inside it");

#include <fa/kernel/attention_items.h>

/* The factor of the exponents. For half types on a GPU it is clamped: while a row has no maximum yet, fa/softmax.h
 * takes -1e30 for it. The product of the two must not be infinite, but large enough in size for weights to become
 * infinite, which shows that there is no maximum yet. */
static FA_UNUSED float FA__ATTN(__bounded)(float factor) {
    if (FA__ARCH == FA_CPU || !FA__IS_HALF) return factor;
    return factor < 1e-25f ? 1e-25f : factor > 2e8f ? 2e8f : factor;
}

/* Folds the scale into the exponents: there is no hook that needs scaled scores. */
static FA_UNUSED void FA__ATTN(__fold_scale)(FA__PARAMS *p, float scale) {
    const float size = FA__ATTN(__bounded)(fabsf(scale));
    p->negate = scale < 0.0f;
    p->scale = copysignf(size, scale);
    p->scale_log2 = size * FA__LOG2_E;
}

/* Checks the arguments and derives the parameters, for blocks of block_m queries. */
FA__CALLED fa_status FA__ATTN(__prepare)(const fa_attention_args *args, FA__PARAMS *p, int block_m) {
    static const fa__instance instance = {FA__STR(FA__ATTN()), FA_HEAD_DIM, FA_HEAD_DIM_V, (int)sizeof(FA__ELEMENT),
                                          FA__MASK_NEEDS | FA__SCORE_NEEDS, FA__HAS_USER};
    fa_status status = fa__check_attention(&instance, args, FA__ATTN(_workspace)(args));
    if (status != FA_OK) return status;
    memset((void *)p, 0, sizeof *p);
    p->args = *args;
#if FA__HAS_USER
    memcpy(p->user, args->user, sizeof p->user);
#endif
    float scale = args->scale == 0.0f ? 1.0f / sqrtf((float)FA_HEAD_DIM) : args->scale;
#if FA__HAS_SCORE
    float unit = FA__SCORE_UNIT(args), largest = 3e38f * (unit < 1.0f ? unit : 1.0f);
    p->scale = (fabsf(scale) < largest ? scale : copysignf(largest, scale)) / unit;
    p->scale_log2 = FA__ATTN(__bounded)(unit) * FA__LOG2_E;
#if FA__SOFT_CAP
    p->cap = fa__cap_curve_of(p->scale, p->scale_log2);
#endif
#else
    FA__ATTN(__fold_scale)(p, scale);
#endif
    int64_t blocks = ((int64_t)args->seqlen_q + block_m - 1) / block_m, heads = (int64_t)args->batch * args->heads;
    if (heads > 0 && blocks > (int64_t)INT32_MAX / heads)
        return FA__FAIL(FA_ERROR_ARGUMENT, "%s: batch * heads * blocks of %d queries is %lld * %lld: at most 2^31 - 1 are possible in one call",
                        instance.name, block_m, (long long)heads, (long long)blocks);
    p->blocks_m = (int)blocks;
    FA__ATTN(__order)(p);
    return FA_OK;
}

/* The part of NAME_plan() that all architectures share. */
FA__CALLED void FA__ATTN(__describe)(const FA__PARAMS *p, fa_plan *plan, int block_m, int block_n, int stages, int warps) {
    memset(plan, 0, sizeof *plan);
    plan->block_m = block_m;
    plan->block_n = block_n;
    plan->stages = stages;
    plan->warps = warps;
    plan->blocks = p->items;
    plan->tiles_total = (int64_t)p->items * (((int64_t)p->args.seqlen_k + block_n - 1) / block_n);
    if (!FA__HAS_MASK) plan->tiles_visited = plan->tiles_total;
}

#if FA__ARCH == FA_CPU
#include <fa/kernel/attention_cpu.h>
#else
#include <fa/kernel/attention_gpu.h>
#endif

#undef FA__PARAMS
#undef FA__PASSES
#undef FA__SECTION_BYTES
#undef FA__HAS_MASK
#undef FA__MASK_NEEDS
#undef FA__MASK_IS_BAND
#undef FA__MASK_IS_OWN
#undef FA__MASK_IS_PREFIX
#undef FA__MASK_READS
#undef FA__HAS_SCORE
#undef FA__SCORE_NEEDS
#undef FA__WIDE_SCORE
#undef FA__MAY_SHARE_BIAS
#undef FA__IN_SECTIONS
#undef FA__SCORE_OF
#undef FA__SCORE_UNIT
#undef FA__SOFT_CAP
#include <fa/kernel/user_end.h>
#undef FA__ELEMENT
#include <fa/arch/unbind.h>
FA__STRICT_END
#endif

#undef FA__ATTN
#if defined(FA__SUB_DEFAULTED)
#undef FA__SUB_DEFAULTED
#undef FA_NAME
#undef FA_DTYPE
#undef FA_ARCH
#undef FA_USER_ARGS
#endif
#undef FA_SUB
#undef FA_HEAD_DIM
#undef FA_HEAD_DIM_V
#undef FA_MASK
#undef FA_SCORE
#undef FA_API
#undef FA_DECLARE
#undef FA_BLOCK_M
#undef FA_BLOCK_N
#undef FA_WARPS
#undef FA_STAGES
#undef FA_WEIGHT_DTYPE /* this and FA_ACTIVATION are companions': their next instance must not find them */
#undef FA_ACTIVATION
