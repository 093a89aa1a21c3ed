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
 * | FA_SUB        | no       |                  | second part of the prefix; then FA_NAME and FA_DTYPE stay defined |
 * | FA_BLOCK_M    | no       | tuned            | queries per tile: a multiple of 16 up to 1024; on GPUs 16 or 32 per warp; with FA_ARCH 90: 64, 128 or 192 |
 * | FA_BLOCK_N    | no       | tuned            | keys per tile: a multiple of 16 up to 1024; with FA_ARCH 90: up to 256 |
 * | FA_WARPS      | no       | tuned            | warps of a thread block that compute products (GPU); with FA_ARCH 90: FA_BLOCK_M / 16 |
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
 * the device and waits for the result. NAME_workspace() is the size of the optional workspace: 4 bytes for document masks
 * and masks of your own with sm_90a, else 0. With a workspace, query blocks are handed out dynamically, one by one, which
 * pays where they take unequal time.
 */
#include <fa/fa.h>
#include <fa/kernel/check.h>
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
FA__REQUIRE(0, "FA_HEAD_DIM is " FA__STR(FA_HEAD_DIM) ": a multiple of 8 from 8 to 256 is needed, as a literal or a macro, which the preprocessor can compare, " FA__AS_A_NUMBER " (others: pad q and k with zeros and set args.scale)");
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
#define FA__PASSES 4 /* the last pass, the only one that a causal mask leaves unbalanced, is then a sixteenth of the work */
#define FA__SECTION_BYTES ((int64_t)24 << 20) /* of K and V: about half of an H100's L2 cache (50 MB), 60% of an A100's */

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
#else
#define FA__HAS_MASK 0
#define FA__MASK_NEEDS 0
#define FA__MASK_IS_BAND 0
#endif
#define FA__MASK_READS (FA__HAS_MASK && !FA__MASK_IS_BAND && FA__MASK_NEEDS != FA__NEED_PREFIX) /* whether the mask reads memory, or may; a prefix, one number a batch, does not count */
#if defined(FA_SCORE)
#define FA__HAS_SCORE 1
#define FA__SCORE_NEEDS FA__SHIPPED_NEEDS(FA_SCORE)
#else
#define FA__HAS_SCORE 0
#define FA__SCORE_NEEDS 0
#endif
/* Whether a hook, or the extra column of the product that replaces it, may make scores of any size (fa/softmax.h,
 * FA_WIDE); shipped hooks that are known to be bounded do not. */
#define FA__WIDE_SCORE (FA__COLUMNS == 2 || (FA__HAS_SCORE && FA__SCORE_NEEDS != FA__NEED_ALIBI && FA__SCORE_NEEDS != FA__NEED_SOFTCAP))
/* Whether work items go through heads in sections: under a mask, or where heads may share a bias (which is no bottleneck
 * in fp32, nor on the CPU, where sections are 1.5% slower). */
#define FA__MAY_SHARE_BIAS (FA__ARCH != FA_CPU && FA__SCORE_NEEDS == FA__NEED_BIAS && (FA_DTYPE == FA_F16 || FA_DTYPE == FA_BF16))
#define FA__IN_SECTIONS (FA__HAS_MASK || FA__MAY_SHARE_BIAS)
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
#define FA__SOFT_CAP (FA__ARCH != FA_CPU && FA__SCORE_NEEDS == FA__NEED_SOFTCAP && (FA_DTYPE == FA_F16 || FA_DTYPE == FA_BF16))
#define FA__PARAMS FA__ATTN(__params)
#include <fa/kernel/user.h>
#if FA__HAS_MASK
#define FA__KEEP_FITS                                                                                                                  \
    FA__IS_ONE_OF(FA__CAT(FA_MASK, _keep), FA__FUNCTION(int, FA__USER_TYPE, fa_index), FA__FUNCTION(_Bool, FA__USER_TYPE, fa_index),   \
                  FA__FUNCTION(unsigned, FA__USER_TYPE, fa_index), FA__FUNCTION(long, FA__USER_TYPE, fa_index))
FA__REQUIRE(FA__KEEP_FITS,
            "FA_MASK needs int " FA__STR(FA__CAT(FA_MASK, _keep)) "(const FA_USER_ARGS *user, fa_index at), and FA_USER_ARGS defined as the type that user points to");
FA__REQUIRE(!FA__KEEP_FITS ||
                (FA__IS_ONE_OF(FA__CAT(FA_MASK, _tile), FA__FUNCTION(fa_tile_class, FA__USER_TYPE, fa_box), FA__FUNCTION(int, FA__USER_TYPE, fa_box)) &&
                 FA__IS_ONE_OF(FA__CAT(FA_MASK, _keys), FA__FUNCTION(fa_range, FA__USER_TYPE, fa_box))),
            "FA_MASK needs fa_tile_class " FA__STR(FA__CAT(FA_MASK, _tile)) "(const FA_USER_ARGS *user, fa_box box) and fa_range " FA__STR(FA__CAT(FA_MASK, _keys)) "() of the same (FA_MASK_FROM_KEEP makes them of a keep), and FA_USER_ARGS defined as the type that user points to");
#undef FA__KEEP_FITS
#endif
#if FA__HAS_SCORE
FA__REQUIRE(FA__IS_ONE_OF(FA_SCORE, FA__FUNCTIONS_OF_NUMBERS(FA__USER_TYPE, , fa_index)),
            "FA_SCORE needs float " FA__STR(FA_SCORE) "(const FA_USER_ARGS *user, float score, fa_index at), and FA_USER_ARGS defined as the type that user points to");
/* The only call of the hook: elsewhere a name of the library's may hide it. */
FA_HOOK float FA__ATTN(__score)(const FA__USER_TYPE *fa__user, float fa__score, fa_index fa__at) {
    return FA_SCORE(fa__user, fa__score, fa__at);
}
#endif

/* What a worker is given: the arguments, the user's, and what the host derived from them. */
typedef struct FA__PARAMS {
    fa_attention_args args;
    FA__USER_BYTES
    float scale;      /* applied before a score hook; includes its unit */
    float scale_log2; /* of the exponent: exp2(score * scale_log2) */
    int negate;       /* a negative scale, without a score hook: q changes sign, so that scale_log2 is positive */
#if FA__SOFT_CAP
    fa__cap_curve cap;
#endif
    int blocks_m;     /* query blocks of a head */
    uint32_t items;   /* blocks_m * batch * heads: see FA__ATTN(__box) for their order */
    int passes, pass_blocks, last_pass_blocks; /* query blocks of a pass, and of the last pass */
    int section;                               /* heads that are interleaved */
    fa__divider by_pass, by_section, by_last_pass_section, by_section_heads, by_last_heads, by_blocks_m, by_heads, by_group;
} FA__PARAMS;
FA__REQUIRE(sizeof(FA__PARAMS) <= 4096, "FA_USER_ARGS is too large for a kernel's parameters (4 KB in all): pass a pointer inside it");

/* The class of the tile of block_n keys that starts at key0. */
FA_HOOK fa_tile_class FA__ATTN(__classify)(const FA__PARAMS *p, fa_box box, int key0, int block_n) {
#if FA__HAS_MASK
    box.keys.begin = key0;
    box.keys.end = p->args.seqlen_k - key0 < block_n ? p->args.seqlen_k : key0 + block_n;
    return FA__CAT(FA_MASK, _tile)(FA__USER(p), box); /* not declared? FA_MASK_FROM_KEEP makes it of a keep (fa/mask.h) */
#else
    (void)p, (void)box, (void)key0, (void)block_n;
    return FA_FULL;
#endif
}

/* Query blocks are counted from the last one; `head` counts through the whole batch. */
FA_HOOK fa_box FA__ATTN(__block)(const FA__PARAMS *p, uint32_t head, uint32_t block, int block_m) {
    int begin = (p->blocks_m - 1 - (int)block) * block_m;
    fa_box box;
    box.args = &p->args;
    box.batch = (int)fa__divide(head, p->by_heads);
    box.head = (int)head - box.batch * p->args.heads;
    box.head_kv = (int)fa__divide((uint32_t)box.head, p->by_group);
    box.queries.begin = begin;
    box.queries.end = p->args.seqlen_q - begin < block_m ? p->args.seqlen_q : begin + block_m;
    box.keys.begin = 0;
    box.keys.end = p->args.seqlen_k;
    return box;
}

/* The queries and the head of a work item. Without a mask, the query blocks of a head follow each other and share its K
 * and V in the cache. With one, later query blocks come first: under a causal mask they take longest, and the short
 * ones fill the end. Going through all heads that way would read K and V from memory again for every block; so blocks
 * are taken in FA__PASSES passes, and within a pass heads are taken in sections whose K and V fit in the cache. The
 * same order serves a bias that all heads share and that does not fit in the cache: the heads of a section then share each block's part of it. */
FA_HOOK fa_box FA__ATTN(__box)(const FA__PARAMS *p, uint32_t item, int block_m) {
    uint32_t head, row;
#if FA__IN_SECTIONS
    uint32_t all = (uint32_t)p->args.batch * (uint32_t)p->args.heads, pass = fa__divide(item, p->by_pass);
    int last = (int)pass == p->passes - 1;
    uint32_t blocks = (uint32_t)(last ? p->last_pass_blocks : p->pass_blocks), in_pass = item - pass * all * (uint32_t)p->pass_blocks;
    uint32_t section = fa__divide(in_pass, last ? p->by_last_pass_section : p->by_section), first = section * (uint32_t)p->section;
    uint32_t in_section = in_pass - first * blocks, whole = all - first >= (uint32_t)p->section;
    uint32_t in_pass_row = fa__divide(in_section, whole ? p->by_section_heads : p->by_last_heads);
    head = first + in_section - in_pass_row * (whole ? (uint32_t)p->section : all - first);
    row = in_pass_row + pass * (uint32_t)p->pass_blocks;
#else
    head = fa__divide(item, p->by_blocks_m);
    row = item - head * (uint32_t)p->blocks_m;
#endif
    return FA__ATTN(__block)(p, head, row, block_m);
}

/* The keys of a box that its mask leaves visible: no schedule looks at others. */
FA_HOOK fa_range FA__ATTN(__keys)(const FA__PARAMS *p, fa_box box) {
    (void)p;
    fa_range keys = box.keys;
#if FA__HAS_MASK
    if (keys.begin < keys.end) keys = FA__CAT(FA_MASK, _keys)(FA__USER(p), box); /* not declared? FA_MASK_FROM_KEEP */
    if (!FA__MASK_NEEDS && !FA__MASK_IS_BAND) { /* a user's mask, which may not have clipped the range */
        keys.begin = fa__min(fa__max(keys.begin, box.keys.begin), box.keys.end); /* of an empty range, too */
        keys.end = fa__min(keys.end, box.keys.end);
    }
#endif
    return keys;
}

/* Visited and masked tiles of a work item, which NAME_plan() sums up. */
FA_HOOK void FA__ATTN(__count)(const FA__PARAMS *p, uint32_t item, int block_m, int block_n, int64_t *visited, int64_t *masked) {
    const fa_box box = FA__ATTN(__box)(p, item, block_m);
    const fa_range keys = FA__ATTN(__keys)(p, box);
#if FA__MASK_IS_BAND /* without asking for each tile: a tile is masked unless every query sees all of it */
    fa_box first = box, last = box;
    first.queries.end = box.queries.begin + 1, last.queries.begin = box.queries.end - 1;
    const int64_t seen_begin = FA__ATTN(__keys)(p, last).begin, seen_end = FA__ATTN(__keys)(p, first).end, ends = p->args.seqlen_k;
    const int64_t tiles = keys.begin < keys.end ? (int64_t)(keys.end - 1) / block_n - keys.begin / block_n + 1 : 0;
    const int64_t full = (seen_end < ends ? seen_end : ends + block_n - 1) / block_n - (seen_begin + block_n - 1) / block_n;
    *visited += tiles;
    *masked += full > 0 ? tiles - full : tiles;
#else
    for (int64_t key0 = keys.begin - keys.begin % block_n; key0 < keys.end; key0 += block_n) {
        fa_tile_class of = FA__ATTN(__classify)(p, box, (int)key0, block_n);
        *visited += of != FA_EMPTY;
        *masked += of == FA_PARTIAL;
    }
#endif
}

/* Whether all heads share a bias that is too large for the cache to keep until the next head reads it. */
static FA_UNUSED int FA__ATTN(__shares_bias)(const fa_attention_args *a) {
    return FA__MAY_SHARE_BIAS && a->bias_stride_head == 0 &&
           (int64_t)a->seqlen_q * a->seqlen_k > 2 * FA__SECTION_BYTES / (int64_t)sizeof(FA__ELEMENT);
}

/* Derives the order of the work items, and their number, from p->blocks_m. */
static FA_UNUSED void FA__ATTN(__order)(FA__PARAMS *p) {
    const fa_attention_args *a = &p->args;
    int64_t heads = (int64_t)a->batch * a->heads, blocks = p->blocks_m;
    p->items = (uint32_t)(blocks * heads);
    if (p->items == 0) return;
    p->by_blocks_m = fa__divider_of((uint32_t)blocks);
    p->by_heads = fa__divider_of((uint32_t)a->heads);
    p->by_group = fa__divider_of((uint32_t)(a->heads / a->heads_kv));
    int64_t bytes = (int64_t)a->seqlen_k * (FA_HEAD_DIM + FA_HEAD_DIM_V) * (int64_t)sizeof(FA__ELEMENT) + 1; /* of K and V of a head */
    int64_t fit = FA__SECTION_BYTES / bytes * (a->heads / a->heads_kv);
    fit = fit < 1 ? 1 : fit > heads ? heads : fit;
    int passes = FA__PASSES;
    if (!FA__HAS_MASK && !FA__ATTN(__shares_bias)(a)) fit = passes = 1; /* head by head */
    int64_t sections = (heads + fit - 1) / fit, section = (heads + sections - 1) / sections; /* of equal size */
    p->section = (int)section;
    p->pass_blocks = (int)((blocks + passes - 1) / passes);
    p->passes = (int)((blocks + p->pass_blocks - 1) / p->pass_blocks);
    p->last_pass_blocks = (int)blocks - (p->passes - 1) * p->pass_blocks;
    p->by_pass = fa__divider_of((uint32_t)(heads * p->pass_blocks));
    p->by_section = fa__divider_of((uint32_t)(section * p->pass_blocks));
    p->by_last_pass_section = fa__divider_of((uint32_t)(section * p->last_pass_blocks));
    p->by_section_heads = fa__divider_of((uint32_t)section);
    p->by_last_heads = fa__divider_of((uint32_t)(heads % section ? heads % section : section));
}

/* The factor of the exponents. For half types on a GPU it is clamped, so that its product with the least maximum of
 * fa/softmax.h is neither infinite nor so small that weights would not show that there is no maximum yet. */
static FA_UNUSED float FA__ATTN(__bounded)(float factor) {
    if (FA__ARCH == FA_CPU || (FA_DTYPE != FA_F16 && FA_DTYPE != FA_BF16)) return factor;
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
static FA_UNUSED fa_status FA__ATTN(__prepare)(const fa_attention_args *args, FA__PARAMS *p, int block_m) {
    static const fa__instance instance = {FA__STR(FA__ATTN()), FA_HEAD_DIM, FA_HEAD_DIM_V, (int)sizeof(FA__ELEMENT), FA_DTYPE,
                                          FA__MASK_NEEDS | FA__SCORE_NEEDS, FA__HAS_USER};
    fa_status status = fa__check_attention(&instance, args);
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
static FA_UNUSED void FA__ATTN(__describe)(const FA__PARAMS *p, fa_plan *plan, int block_m, int block_n, int stages, int warps) {
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
#undef FA__MASK_READS
#undef FA__HAS_SCORE
#undef FA__SCORE_NEEDS
#undef FA__WIDE_SCORE
#undef FA__MAY_SHARE_BIAS
#undef FA__IN_SECTIONS
#undef FA__SCORE_OF
#undef FA__SCORE_UNIT
#undef FA__SOFT_CAP
#undef FA__HAS_USER
#undef FA__USER
#undef FA__USER_TYPE
#undef FA__USER_BYTES
#undef FA__ELEMENT
#include <fa/arch/unbind.h>
FA__STRICT_END
#endif

#undef FA__ATTN
#if defined(FA__SUB_DEFAULTED)
#undef FA__SUB_DEFAULTED
#undef FA_NAME
#undef FA_DTYPE
#endif
#undef FA_SUB
#undef FA_ARCH
#undef FA_HEAD_DIM
#undef FA_HEAD_DIM_V
#undef FA_MASK
#undef FA_SCORE
#undef FA_USER_ARGS
#undef FA_API
#undef FA_DECLARE
#undef FA_BLOCK_M
#undef FA_BLOCK_N
#undef FA_WARPS
#undef FA_STAGES
