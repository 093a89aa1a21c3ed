/**
 * @file fa.h
 * @brief Types, status codes, arguments and helpers that every instance shares.
 *
 * `fa` is a header-only library: a header such as fa/attention.h is a template that you
 * instantiate by defining a few macros and including it. This file holds what is *not* a
 * template. It may be included any number of times. C11 or C++17; gcc and clang also take C99 and C++11.
 *
 * @code{.c}
 * #include <fa/fa.h>
 *
 * #define FA_NAME     attn
 * #define FA_DTYPE    FA_F32
 * #define FA_HEAD_DIM 64
 * #include <fa/attention.h>
 *
 * static fa_status run(float *q, float *k, float *v, float *o) {
 *     fa_attention_args a = fa_attention_defaults();
 *     a.batch = 1, a.heads = a.heads_kv = 4, a.seqlen_q = a.seqlen_k = 100;
 *     a.q = fa_tensor_bhsd(q, 4, 100, 64), a.k = fa_tensor_bhsd(k, 4, 100, 64);
 *     a.v = fa_tensor_bhsd(v, 4, 100, 64), a.o = fa_tensor_bhsd(o, 4, 100, 64);
 *     return attn_forward(&a, 0);
 * }
 * @endcode
 *
 * Host functions are thread-safe; none of them allocates device memory or synchronises
 * unless its description says so.
 *
 * @copyright SPDX-License-Identifier: MIT
 */
#ifndef FA_FA_H
#define FA_FA_H

#if !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
#error "fa is written in C11: compile with -std=c11 or a later one (or -std=gnu11), not as C90"
#endif
#if defined(__cplusplus) && __cplusplus < 201103L
#error "fa is written in C11 and C++17: compile with -std=c++17, -std=c++11 or a later one, not as C++98"
#endif

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <fa/arch/macros.h>

FA__NOT_PACKED;

/** Version of the library: major * 10000 + minor * 100 + patch. */
#define FA_VERSION 100

#if defined(__CUDACC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "fa needs compute capability 8.0 or newer: compile with -arch=sm_80, sm_89, sm_90a or sm_100a, in CMake CMAKE_CUDA_ARCHITECTURES (nvcc without -arch picks an older one)"
#endif

/* (-msse2 alone does not make floats use SSE2: __SSE2_MATH__ says whether they do. With -mfpmath=both some use the
 * x87 unit, and __FLT_EVAL_METHOD__ is -1.) */
#if (defined(__i386__) || defined(__x86_64__)) && (!defined(__SSE2_MATH__) || __FLT_EVAL_METHOD__ + 0 < 0)
#error "fa relies on floats that are rounded to float, which the x87 unit does not do: compile with -msse2 -mfpmath=sse"
#endif

#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "fa relies on infinities (masked scores, empty rows): compile without -ffast-math, -ffinite-math-only and -Ofast"
#elif defined(__ASSOCIATIVE_MATH__) || (defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 12 && defined(__GCC_IEC_559) && __GCC_IEC_559 == 0)
/* gcc from 12 on is caught by the first; clang, which does not announce it, is told where it matters (FA__IN_ORDER) */
#error "fa relies on the order of additions (2^x): compile without -ffast-math, -funsafe-math-optimizations and -fassociative-math"
#endif

/** @name Data types (values of FA_DTYPE)
 *  None of them is 0, since the preprocessor takes a misspelt name for 0; and none is the value of another parameter
 *  (FA_CPU; fa/arch/operand.h). So names that do not exist, or belong elsewhere, are caught.
 *  @{ */
#define FA_F32 1  /**< float. On GPUs: fp32-accurate products of split operands. */
#define FA_F16 2  /**< IEEE binary16, stored as ::fa_f16. */
#define FA_BF16 3 /**< bfloat16, stored as ::fa_bf16. */
#define FA_TF32 4 /**< float in memory, one product with the 11 bits of tf32 on GPUs; the same as FA_F32 on the CPU. */
/** @} */

/** Value of FA_ARCH: the schedule for the host's processor. GPU schedules are named by number: 80, 90. */
#define FA_CPU 5

typedef uint16_t fa_f16;  /**< Storage of an FA_F16 element (the bits of an IEEE binary16). */
typedef uint16_t fa_bf16; /**< Storage of an FA_BF16 element (the upper half of a float). */

/** @name Linkage of generated functions (values of FA_API) and of hooks
 *  @{ */
#if defined(__cplusplus)
#define FA_EXTERN extern "C" /**< External C linkage: one file instantiates, others use FA_DECLARE. */
#else
#define FA_EXTERN extern
#endif
#define FA_UNUSED __attribute__((__unused__)) /**< a function that a file need not call */
/** @cond PRIVATE */
/* Attributes are spelt with underscores, so that no macro of the program has their name; but some releases of CUDA
 * define __noinline__ as a macro. */
#if defined(__CUDACC__)
#define FA__NOINLINE noinline
#else
#define FA__NOINLINE __noinline__
#endif
/* A host function that runs once per call: its compile time matters more than its speed. (That saves a third of a
 * second per instance with nvcc, and a twentieth to a tenth of the CPU's time. Without any optimisation, gcc would
 * keep those that nothing calls.) */
#if defined(__GNUC__) && !defined(__clang__)
#define FA__CALLED static FA_UNUSED __attribute__((FA__NOINLINE, __cold__, __optimize__("Og")))
#else
#define FA__CALLED static FA_UNUSED __attribute__((FA__NOINLINE, __cold__))
#endif
/** @endcond */
#if defined(__CUDACC__)
/** Every hook starts with FA_HOOK: a function that is inlined into kernels, on every architecture. */
#define FA_HOOK static __host__ __device__ __forceinline__ FA_UNUSED
#define FA__HOOK_CALLED FA_HOOK
#else
#define FA_HOOK static inline __attribute__((__always_inline__, __unused__))
#define FA__HOOK_CALLED static __attribute__((FA__NOINLINE, __unused__)) /* of one that is long: inlined, it would take long to compile */
#endif
/** @} */

/** A CUDA stream (cudaStream_t); the CPU ignores it. 0 is the default stream. */
typedef struct CUstream_st *fa_stream;

#if defined(FA_USER_ARGS)
#error "include fa/fa.h before FA_USER_ARGS is defined: it has a type of that name for hooks without one"
#undef FA_USER_ARGS
#endif
/** What a hook's first argument points to when FA_USER_ARGS is not defined: nothing. */
typedef struct fa_FA_USER_ARGS_is_not_defined FA_USER_ARGS; /* the name is what a compiler prints where arguments were expected */

/* ------------------------------------------------------------------ errors */

/** What every host function returns. */
typedef enum fa_status {
    FA_OK = 0,             /**< Done; on a GPU: launched. */
    FA_ERROR_ARGUMENT,     /**< An argument is wrong: fa_last_error() says which, its value, what was wanted. */
    FA_ERROR_WORKSPACE,    /**< The workspace is missing, too small or not aligned: NAME_workspace() says what is needed. */
    FA_ERROR_NO_DEVICE,    /**< A GPU instance was called and there is no usable GPU or driver. */
    FA_ERROR_ARCHITECTURE, /**< The program holds no code for this GPU: the message names the flag to compile with. */
    FA_ERROR_RESOURCE,     /**< A thread block needs more than the device has, mostly shared memory: the message says how much. */
    FA_ERROR_CUDA          /**< The CUDA runtime refused: the message has its words. */
} fa_status;

/** The name of a status, such as "FA_ERROR_ARGUMENT". Never NULL. */
static inline FA_UNUSED const char *fa_status_string(fa_status status) {
    switch (status) {
    case FA_OK: return "FA_OK";
    case FA_ERROR_ARGUMENT: return "FA_ERROR_ARGUMENT";
    case FA_ERROR_WORKSPACE: return "FA_ERROR_WORKSPACE";
    case FA_ERROR_NO_DEVICE: return "FA_ERROR_NO_DEVICE";
    case FA_ERROR_ARCHITECTURE: return "FA_ERROR_ARCHITECTURE";
    case FA_ERROR_RESOURCE: return "FA_ERROR_RESOURCE";
    case FA_ERROR_CUDA: return "FA_ERROR_CUDA";
    }
    return "not an fa_status";
}

/** @cond PRIVATE */
#define FA__ERROR_BYTES 512
/* One buffer per thread for the whole program: a weak definition in every file. The linker merges these; across shared
 * libraries, even those that hide their symbols, the loader does. */
#if defined(__cplusplus)
extern "C" {
#endif
__attribute__((__weak__, __visibility__("default"))) __thread char fa__error[FA__ERROR_BYTES];
#if defined(__cplusplus)
}
#endif
/* Stores a message and returns the status. */
#define FA__FAIL(status, ...) (snprintf(fa__error, FA__ERROR_BYTES, __VA_ARGS__), (status))
/** @endcond */

/** The message of this thread's last failed call: which argument was wrong, its value, what was wanted.
 *  "" before the first failure; a successful call leaves it alone. */
static inline FA_UNUSED const char *fa_last_error(void) { return fa__error; }

/* --------------------------------------------------------------- arguments */

/** A (batch, heads, seqlen, head_dim) tensor: strides in elements, the head dimension contiguous.
 *  Strides are non-negative multiples of 16 bytes (0 broadcasts); data is 16-byte aligned. */
typedef struct fa_tensor {
    void *data;                                    /**< element (0, 0, 0, 0) */
    int64_t stride_batch, stride_head, stride_seq; /**< elements from one sequence, head or token to the next */
} fa_tensor;

/** A contiguous (batch, heads, seqlen, head_dim) tensor; no stride depends on the batch.
 *  @param data     element (0, 0, 0, 0)
 *  @param heads    of this tensor: heads_kv for k and v
 *  @param seqlen   of this tensor
 *  @param head_dim of this tensor
 *  @return the tensor, whose strides are in elements */
static inline FA_UNUSED fa_tensor fa_tensor_bhsd(const void *data, int heads, int seqlen, int head_dim) {
    fa_tensor t;
    t.data = (void *)(uintptr_t)data;
    t.stride_seq = head_dim;
    t.stride_head = (int64_t)seqlen * head_dim;
    t.stride_batch = (int64_t)heads * seqlen * head_dim;
    return t;
}

/** A contiguous (batch, seqlen, heads, head_dim) tensor; parameters as of fa_tensor_bhsd(). */
static inline FA_UNUSED fa_tensor fa_tensor_bshd(const void *data, int heads, int seqlen, int head_dim) {
    fa_tensor t;
    t.data = (void *)(uintptr_t)data;
    t.stride_head = head_dim;
    t.stride_seq = (int64_t)heads * head_dim;
    t.stride_batch = (int64_t)seqlen * heads * head_dim;
    return t;
}

/** A (rows, cols) matrix, row-major: the stride in elements, a row's elements contiguous. The data is aligned to its
 *  elements, and rows may start anywhere. A matrix that is only read may have stride 0, which repeats one row. */
typedef struct fa_matrix {
    void *data;         /**< element (0, 0) */
    int64_t stride_row; /**< elements from one row to the next */
} fa_matrix;

/** A contiguous (rows, cols) matrix.
 *  @param data element (0, 0)
 *  @param cols elements of a row, and from one row to the next */
static inline FA_UNUSED fa_matrix fa_matrix_of(const void *data, int64_t cols) {
    fa_matrix m;
    m.data = (void *)(uintptr_t)data;
    m.stride_row = cols;
    return m;
}

/** The arguments of every attention instance. Pointers are device pointers for a GPU instance and
 *  host pointers for a CPU one, except `user`, which is always a host pointer. Tensors are aligned to 16 bytes, a bias to its
 *  elements, other arrays to 4 bytes. batch * heads * query blocks (fa_plan) is at most 2^31 - 1.
 *  All-zero bytes are valid; fa_attention_defaults() differs from them only in the two windows (-1). */
typedef struct fa_attention_args {
    fa_tensor q;    /**< (batch, heads, seqlen_q, FA_HEAD_DIM) */
    fa_tensor k;    /**< (batch, heads_kv, seqlen_k, FA_HEAD_DIM) */
    fa_tensor v;    /**< (batch, heads_kv, seqlen_k, FA_HEAD_DIM_V) */
    fa_tensor o;    /**< (batch, heads, seqlen_q, FA_HEAD_DIM_V), written: must overlap neither itself nor an input */
    float *lse;     /**< (batch, heads, seqlen_q) contiguous, written: natural log of the sum of exp(score); NULL: not wanted */
    int batch;      /**< number of sequences; 0 is allowed, and nothing is written */
    int heads;      /**< query heads; a multiple of heads_kv */
    int heads_kv;   /**< key and value heads: heads (MHA), fewer (GQA) or 1 (MQA) */
    int seqlen_q;   /**< queries per sequence: 0 to 2^31 - 1024 */
    int seqlen_k;   /**< keys per sequence: 0 to 2^31 - 1024 */
    float scale;    /**< multiplies q.k: 1e-30 to 1e30 in magnitude, of either sign (half types on a GPU clamp it to 1e-25 to 2e8,
                         unless a score hook sees the scores: doc/numerics.md); 0 means 1/sqrt(FA_HEAD_DIM) */
    int window_left;  /**< fa_sliding_window: keys before the query's own position; negative: unbounded */
    int window_right; /**< fa_sliding_window: keys after it; negative: unbounded */
    float softcap;    /**< fa_softcap: the cap, from 1e-30 to 1e8 */
    const float *alibi_slopes; /**< fa_alibi: (heads) */
    const void *bias;          /**< fa_bias: FA_DTYPE, (batch, heads, seqlen_q, seqlen_k) by the strides below, key stride 1 */
    int64_t bias_stride_batch, bias_stride_head, bias_stride_query; /**< elements; 0 broadcasts. On a GPU fastest where
                                                                       address and strides are multiples of 16 bytes */
    const float *key_bias;     /**< fa_key_bias: (batch, heads, seqlen_k) by the strides below, key stride 1 */
    int64_t key_bias_stride_batch, key_bias_stride_head; /**< elements; 0 broadcasts */
    const int *prefix;         /**< fa_prefix: (batch) keys that every query sees: none if 0 or less, all from seqlen_k on */
    const int *document_q;     /**< fa_document, fa_causal_document: (batch, seqlen_q) ids */
    const int *document_k;     /**< fa_document, fa_causal_document: (batch, seqlen_k) ids */
    const int *span_begin;     /**< fa_span: (batch, seqlen_q), the first key that each query sees; below 0: as 0 */
    const int *span_end;       /**< fa_span: (batch, seqlen_q), the key after the last one that it sees; from seqlen_k on: as seqlen_k */
    const void *user;          /**< host pointer to an FA_USER_ARGS, copied by the call; required when FA_USER_ARGS is defined */
    void *workspace;           /**< optional: NAME_workspace() bytes, aligned to 16, that no other call uses at the same time; only changes the time */
    size_t workspace_bytes;    /**< bytes of it: NAME_workspace() or more */
    int threads; /**< CPU: threads to use (more than 1,024 are taken for 1,024); 0: those of the environment variable FA_THREADS, or else as many cores as
                      there is work for. Never changes the result. */
} fa_attention_args;

/** Arguments with nothing set: all zero, except for unbounded windows. */
static inline FA_UNUSED fa_attention_args fa_attention_defaults(void) {
    fa_attention_args a;
    memset(&a, 0, sizeof a);
    a.window_left = a.window_right = -1;
    return a;
}

/** What NAME_plan() says: which kernel would run, and how much of the score matrix it visits. */
typedef struct fa_plan {
    const char *schedule; /**< "cpu", "cpu-avx2", "cpu-avx512", "cpu-amx", "sm_80" or "sm_90a" */
    int arch;             /**< FA_CPU, 80 or 90: which schedule */
    int block_m, block_n; /**< queries and keys per tile */
    int stages;           /**< pipeline stages: tiles of K and V in flight */
    int warps;            /**< warps of a thread block that compute products (CPU: 1) */
    int threads;          /**< threads of a thread block; CPU: worker threads */
    int64_t blocks;       /**< thread blocks of the launch; CPU: work items */
    size_t shared_bytes;  /**< dynamic shared memory of a block; CPU: tile memory of each thread, including the caller, on its stack (callers need 256 KB of stack beyond that, 550 KB in all with the default tiles) */
    size_t workspace_bytes; /**< what NAME_workspace() says */
    int64_t tiles_total;    /**< tiles of the score matrix, over batch and heads */
    int64_t tiles_visited;  /**< tiles that are computed: all with a visible element; for combined masks
                               (fa_causal_document combines causal and document) also those that are empty
                               only because of both parts together, and for your own mask those that it does not call empty */
    int64_t tiles_masked;   /**< visited tiles where the mask is applied element by element: not those that only reach beyond the last key */
    int64_t tiles_skipped;  /**< total minus visited */
} fa_plan;

/* ------------------------------------------------- what hooks are told */

/** A half-open range of positions. Empty when end <= begin. */
typedef struct fa_range {
    int begin, end;
} fa_range;

/** One element of the score matrix, as a hook sees it. */
typedef struct fa_index {
    const fa_attention_args *args; /**< the call's arguments, readable where the hook runs (never read args->user) */
    int batch, head, head_kv; /**< head: of the queries; head_kv: the one of the keys that it reads, head / (heads / heads_kv) */
    int query, key;           /**< positions: 0 to seqlen_q - 1, 0 to seqlen_k - 1 */
    float distance; /**< key - (query + seqlen_k - seqlen_q): 0 on the bottom-right aligned diagonal, whatever the mask, negative before it */
    int dtype;      /**< FA_DTYPE of the instance, a compile-time constant */
    int checked;    /**< a compile-time constant: 1 where the host has verified the hook's arrays, so that it need not look for NULL */
} fa_index;

/** A block of the score matrix, as a mask's block functions see it. */
typedef struct fa_box {
    const fa_attention_args *args; /**< the call's arguments */
    int batch, head, head_kv;      /**< as in fa_index */
    fa_range queries, keys;        /**< inside the sequences */
} fa_box;

/** How a mask classifies a box. */
typedef enum fa_tile_class {
    FA_EMPTY = 0, /**< no element is kept: the block is skipped */
    FA_PARTIAL,   /**< some may be kept: keep() is asked for every element */
    FA_FULL       /**< every element is kept: the block pays for no masking */
} fa_tile_class;

/* ------------------------------------------------------------- conversions */

/** @cond PRIVATE */
FA_HOOK uint32_t fa__bits(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}
FA_HOOK float fa__from_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}
/** @endcond */
#if defined(__CUDA_ARCH__)
#include <fa/arch/sm80/convert.h>
#endif

/** bfloat16 to float, exactly. */
FA_HOOK float fa_bf16_to_float(fa_bf16 h) { return fa__from_bits((uint32_t)h << 16); }

/** float to bfloat16, to nearest even; NaN stays NaN. */
FA_HOOK fa_bf16 fa_bf16_from_float(float x) {
    uint32_t u = fa__bits(x);
    uint32_t rounded = (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16;
    uint32_t nan = (u >> 16) | 0x40u;
    return (fa_bf16)((u & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded);
}

/** binary16 to float, exactly. */
FA_HOOK float fa_f16_to_float(fa_f16 h) {
#if defined(FA__FLOAT_OF_F16)
    return FA__FLOAT_OF_F16(h);
#else
    /* Shift exponent and mantissa into place and add the difference of the biases. A subnormal gets the exponent of
     * 2^-14, whose implicit leading 1 is then subtracted: no operand is a subnormal float, which a processor may be set
     * to treat as 0. Infinity and NaN need an exponent of all ones. */
    uint32_t magnitude = (uint32_t)(h & 0x7FFFu) << 13, exponent = h & 0x7C00u;
    uint32_t subnormal = fa__bits(fa__from_bits(magnitude + 0x38800000u) - 6.103515625e-5f /* 2^-14 */);
    uint32_t u = exponent == 0x7C00u ? magnitude | 0x7F800000u : exponent == 0 ? subnormal : magnitude + 0x38000000u;
    return fa__from_bits(u | (uint32_t)(h & 0x8000u) << 16);
#endif
}

/** float to binary16, to nearest even, overflowing to infinity; NaN stays NaN. */
FA_HOOK fa_f16 fa_f16_from_float(float x) {
    uint32_t u = fa__bits(x), sign = (u >> 16) & 0x8000u;
    u &= 0x7FFFFFFFu;
    /* Subnormal results: adding 0.5 leaves the value, rounded to units of 2^-24, in the low bits. */
    uint32_t subnormal = fa__bits(fa__from_bits(u) + 0.5f) - 0x3F000000u;
    uint32_t normal = (u + 0xC8000FFFu + ((u >> 13) & 1u)) >> 13;
    uint32_t h = u < 0x38800000u ? subnormal : normal;
    h = u >= 0x477FF000u ? 0x7C00u : h;
    h = u > 0x7F800000u ? 0x7E00u : h;
    return (fa_f16)(sign | h);
}

/** Bytes of an element of a data type. */
FA_HOOK int fa_dtype_bytes(int dtype) { return dtype == FA_F16 || dtype == FA_BF16 ? 2 : 4; }

/** Reads element i of an array of a data type. */
FA_HOOK float fa_load_element(const void *data, int64_t i, int dtype) {
    return dtype == FA_BF16 ? fa_bf16_to_float(((const fa_bf16 *)data)[i])
           : dtype == FA_F16 ? fa_f16_to_float(((const fa_f16 *)data)[i])
                             : ((const float *)data)[i];
}

/** Writes element i of an array of a data type, rounding to nearest even. */
FA_HOOK void fa_store_element(void *data, int64_t i, int dtype, float x) {
    if (dtype == FA_BF16) ((fa_bf16 *)data)[i] = fa_bf16_from_float(x);
    else if (dtype == FA_F16) ((fa_f16 *)data)[i] = fa_f16_from_float(x);
    else ((float *)data)[i] = x;
}

#include <fa/arch/operand.h> /* the values of parameters */

#endif
