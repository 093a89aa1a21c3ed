/* amx.h: the instruction layer of AMX in C, in place of include/fa's, so that what is built on it is tested on any
 * processor with AVX-512. */
#ifndef FA_ARCH_CPU_AMX_H
#define FA_ARCH_CPU_AMX_H

#include <fa/arch/cpu/ops.h>

#define FA__CPU_AMX FA__CPU_BF16

typedef struct simulated_tile {
    uint32_t x[16][16];
} simulated_tile;
static __thread simulated_tile simulated_tiles[8];
static __thread int simulated_amx; /* between begin and end */

static inline FA_UNUSED int fa__cpu_amx(void) {
    return fa__cpu_isa() == FA__ISA_AVX512 && fa__cpu_isa_allowed() > FA__ISA_AVX512 && fa__cpu_rounds_bf16();
}
static inline FA_UNUSED void fa_cpu_amx_begin(void) {
    if (simulated_amx++) abort();
    memset(simulated_tiles, 0xFF, sizeof simulated_tiles);
}
static inline FA_UNUSED void fa_cpu_amx_end(void) {
    if (--simulated_amx) abort();
}
static inline FA_UNUSED void simulated_amx_load(int t, const void *from, int64_t stride) {
    if (!simulated_amx) abort();
    for (int row = 0; row < 16; row++) memcpy(simulated_tiles[t].x[row], (const char *)from + row * stride, 64);
}
static inline FA_UNUSED void simulated_amx_store(int t, void *to, int64_t stride) {
    if (!simulated_amx) abort();
    for (int row = 0; row < 16; row++) memcpy((char *)to + row * stride, simulated_tiles[t].x[row], 64);
}
static inline FA_UNUSED float simulated_amx_half(uint32_t word, int upper) {
    float x = fa_bf16_to_float((fa_bf16)(upper ? word >> 16 : word));
    return fabsf(x) < 0x1p-126f ? 0.0f : x;
}
static inline FA_UNUSED void simulated_amx_multiply(int c, int a, int b) {
    if (!simulated_amx) abort();
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            float sum;
            memcpy(&sum, &simulated_tiles[c].x[i][j], 4);
            for (int k = 0; k < 16; k++)
                for (int upper = 0; upper < 2; upper++)
                    sum += simulated_amx_half(simulated_tiles[a].x[i][k], upper) * simulated_amx_half(simulated_tiles[b].x[k][j], upper);
            memcpy(&simulated_tiles[c].x[i][j], &sum, 4);
        }
}
#define FA__AMX_LOAD(t, from, stride) simulated_amx_load(t, from, stride)
#define FA__AMX_STORE(t, to, stride) simulated_amx_store(t, to, stride)
#define FA__AMX_ZERO(t) memset(&simulated_tiles[t], 0, sizeof simulated_tiles[t])
#define FA__AMX_MULTIPLY(c, a, b) simulated_amx_multiply(c, a, b)

#endif
