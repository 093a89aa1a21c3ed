/* sm90.h: what the suite of sm_90a's primitives and its generated products share. A product is an instance of
 * fa/mma.h with its tiles, and a kernel that multiplies once (sm90_product.h). */
#ifndef SM90_H
#define SM90_H

#include <fa/fa.h>

#include <fa/kernel/tensor_map.h>
#include <fa/mbarrier.h>

/* What a product's kernel is given. */
typedef struct product_call {
    fa_tensor_map a_map, b_map; /* where the copy engine loads */
    const void *a, *b;          /* rows of A; of B, or of B transposed */
    int a_rows, b_rows;         /* those that exist: NaN follows */
    float *c;                   /* 2 A B, FA_M x FA_N */
    void *half;                 /* the same, rounded, at a pitch of FA_N + 8, as far as half_rows and half_cols */
    int half_rows, half_cols;
} product_call;

typedef struct product {
    const char *name;
    int m, n, k, dtype, transposed, threads;
    const void *kernel;
    size_t shared_bytes;
    fa_status (*maps)(product_call *call);
} product;

typedef struct product_list {
    const product *list;
    int count;
} product_list;

#endif
