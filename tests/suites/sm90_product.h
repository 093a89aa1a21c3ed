/* sm90_product.h: a product of FA_ARCH 90 with its tiles, and a kernel that multiplies once. Included for every
 * instance, with P_NAME, P_DTYPE, P_N, P_K, P_WARPS, P_A (FA_SHARED, FA_FRAGMENT), P_B (FA_OPERAND_B,
 * FA_OPERAND_BT), P_LOAD_A and P_LOAD_B (FA_BLOCK, FA_TMA), and P_PACK: whether A's registers come from numbers (1)
 * or from a tile (0). tools/products.sh writes them. */
#define P_(x) FA__CAT(P_NAME, x)
#define P_M (P_WARPS * 16)
#if P_B == FA_OPERAND_B
#define P_B_ROWS P_N
#define P_B_COLS P_K
#else
#define P_B_ROWS P_K
#define P_B_COLS P_N
#endif

#define FA_NAME P_(_at)
#define FA_DTYPE P_DTYPE
#define FA_ARCH 90
#define FA_ROWS P_M
#define FA_COLS P_K
#define FA_WARPS P_WARPS
#define FA_OPERAND FA_OPERAND_A
#define FA_LOADER P_LOAD_A
#include <fa/tile.h>

#define FA_NAME P_(_bt)
#define FA_DTYPE P_DTYPE
#define FA_ARCH 90
#define FA_ROWS P_B_ROWS
#define FA_COLS P_B_COLS
#define FA_WARPS P_WARPS
#define FA_OPERAND P_B
#define FA_LOADER P_LOAD_B
#include <fa/tile.h>

#define FA_NAME P_(_mm)
#define FA_DTYPE P_DTYPE
#define FA_ARCH 90
#define FA_M P_M
#define FA_N P_N
#define FA_K P_K
#define FA_A P_A
#define FA_B P_B
#define FA_WARPS P_WARPS
#include <fa/mma.h>

typedef struct P_(_shared) {
    P_(_at_tile) a;
    P_(_bt_tile) b;
    fa_mbarrier landed;
} P_(_shared);

static __global__ void __launch_bounds__(P_WARPS * 32) P_(_kernel)(const __grid_constant__ product_call call) {
    extern __shared__ __align__(1024) unsigned char product_shared[];
    P_(_shared) *shared = (P_(_shared) *)product_shared;
    const int thread = P_(_at_thread)();
    P_(_mm_acc) c;

    /* NaN wherever a load does not write. */
    for (int i = thread; i < (int)(sizeof(P_(_shared)) / 4); i += P_WARPS * 32) ((uint32_t *)shared)[i] = 0xFFFFFFFFu;
    P_(_at_barrier)();
    if (thread == 0) fa_mbarrier_init(&shared->landed, (P_LOAD_A == FA_TMA) + (P_LOAD_B == FA_TMA) + 1);
    __syncthreads();
#if P_LOAD_A == FA_TMA
    if (thread == 0) P_(_at_fetch)(&shared->a, P_(_at_source){&call.a_map, 0, 0, 0}, &shared->landed);
#else
    P_(_at_load)(&shared->a, fa_block_at(call.a, call.a_rows, P_K, P_K), thread);
#endif
#if P_LOAD_B == FA_TMA
    if (thread == 0) P_(_bt_fetch)(&shared->b, P_(_bt_source){&call.b_map, 0, 0, 0}, &shared->landed);
#else
    P_(_bt_load)(&shared->b, fa_block_at(call.b, call.b_rows, P_B_COLS, P_B_COLS), thread);
#endif
    P_(_at_commit)();
    P_(_at_wait)(0);
    P_(_at_barrier)();
    if (thread == 0) fa_mbarrier_arrive(&shared->landed);
    fa_mbarrier_wait(&shared->landed, 0);

#if P_A == FA_FRAGMENT
    P_(_mm_a) a;
#if P_PACK
    float x[P_K / 2]; /* as an accumulator of P_K columns: rows, then pairs of columns */
    for (int i = 0; i < P_K / 2; i++) {
        int row = P_(_mm_row)(thread, i / 2 % 2), col = P_(_mm_col)(thread, i / 4 * 2 + i % 2);
        uint16_t bits = row < call.a_rows ? ((const uint16_t *)call.a)[row * P_K + col] : (uint16_t)0;
        x[i] = P_DTYPE == FA_F16 ? fa_f16_to_float(bits) : fa_bf16_to_float(bits);
    }
    P_(_mm_pack)(&a, x);
#else
    P_(_mm_load_a)(&a, &shared->a, thread);
#endif
    P_(_mm_product)(&c, &a, &shared->b, thread);
    P_(_mm_mma)(&c, &a, &shared->b, thread);
#else
    P_(_mm_product)(&c, &shared->a, &shared->b, thread);
    P_(_mm_mma)(&c, &shared->a, &shared->b, thread);
#endif
    for (int i = 0; i < P_(_mm_ROWS); i++)
        for (int j = 0; j < P_(_mm_COLS); j++) call.c[P_(_mm_row)(thread, i) * P_N + P_(_mm_col)(thread, j)] = c.x[P_(_mm_AT)(i, j)];
    P_(_mm_store)(&c, fa_block_at(call.half, call.half_rows, call.half_cols, P_N + 8), thread);
}

static fa_status P_(_maps)(product_call *call) {
    fa_status status = FA_OK;
    (void)call;
#if P_LOAD_A == FA_TMA
    status = P_(_at_map)(&call->a_map, fa_tensor_bhsd((void *)(uintptr_t)call->a, 1, call->a_rows, P_K), 1, 1, call->a_rows);
#endif
#if P_LOAD_B == FA_TMA
    if (status == FA_OK)
        status = P_(_bt_map)(&call->b_map, fa_tensor_bhsd((void *)(uintptr_t)call->b, 1, call->b_rows, P_B_COLS), 1, 1, call->b_rows);
#endif
    return status;
}

static const product P_(_product) = {FA__STR(P_NAME), P_M, P_N, P_K, P_DTYPE, P_B == FA_OPERAND_BT, P_WARPS * 32,
                                     (const void *)P_(_kernel), sizeof(P_(_shared)), P_(_maps)};
#undef P_
#undef P_M
#undef P_B_ROWS
#undef P_B_COLS
#undef P_NAME
#undef P_DTYPE
#undef P_N
#undef P_K
#undef P_WARPS
#undef P_A
#undef P_B
#undef P_LOAD_A
#undef P_LOAD_B
#undef P_PACK
