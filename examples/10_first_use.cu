/* 10 first use: the library in place of steps 01 to 09.
 *
 * Define what the instance should be, include fa/attention.h, and there is a function: attn_forward(). It takes any
 * lengths and batch, and strides in multiples of 16 bytes, on this machine: compiled by nvcc it runs on the GPU,
 * compiled as C on the CPU, on all cores.
 *
 *     nvcc -O3 -arch=sm_90a -I../include 10_first_use.cu     (or what the GPU is: sm_80, sm_89, sm_100a)
 * or
 *     cc -O3 -x c -I../include 10_first_use.cu -lm -pthread
 */
#include "harness.h"

#include <fa/fa.h>

#define FA_NAME attn
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#include <fa/attention.h> /* defines attn_forward(), attn_plan(), attn_workspace() */

/* The arguments of this and of the following examples. */
static fa_attention_args attention_args(const problem *p) {
    fa_attention_args a = fa_attention_defaults(); /* scale 0 stands for 1/sqrt(head_dim) */
    a.batch = p->batch;
    a.heads = a.heads_kv = p->heads;
    a.seqlen_q = a.seqlen_k = p->seqlen;
    a.q = fa_tensor_bhsd(p->q16, p->heads, p->seqlen, 64);
    a.k = fa_tensor_bhsd(p->k16, p->heads, p->seqlen, 64);
    a.v = fa_tensor_bhsd(p->v16, p->heads, p->seqlen, 64);
    a.o = fa_tensor_bhsd(p->o16, p->heads, p->seqlen, 64);
    return a;
}

static UNUSED void first_use(const problem *p) {
    fa_attention_args a = attention_args(p);
    FA(attn_forward(&a, 0)); /* FA_OK, or the program ends with fa_last_error() */
}

#ifndef NO_MAIN
#define NO_MAIN
#if ON_GPU
#include "05_async_copies.cu"
int main(void) { return ladder_main("10_first_use", first_use, BF16, "05_async_copies", async_copies); }
#else
#include "03_tiled.cu"
int main(void) { return ladder_main("10_first_use", first_use, BF16, "03_tiled", tiled); }
#endif
#endif
