/* arch/sm90/ops.h of the simulator: what sm_90a has besides, in C++. Functions mean what those of the library's file
 * do. */
#ifndef FA_ARCH_SM90_OPS_H
#define FA_ARCH_SM90_OPS_H

#include <fa/arch/sm90/same.h>

FA__DEVICE void fa_sm90_stmatrix(uint32_t address, const uint32_t *from) {
    const machine_words *all = machine_share(&address, 1);
    const int lane = machine_lane();
    for (int j = 0; j < 4; j++) memcpy(machine_at(all[8 * j + lane / 4].word[0], 16) + lane % 4 * 4, &from[j], 4);
    machine_wrote(address);
}

FA__DEVICE void fa_sm90_keep_apart(int thread) { (void)thread; }
FA__DEVICE int fa_sm90_uniform(int x) { return (int)machine_share((uint32_t *)&x, 1)[0].word[0]; }
FA__DEVICE uint32_t fa_sm90_take_number(uint32_t *counter) {
    uint32_t number = machine_lane() == 0 ? (*counter)++ : 0;
    return machine_share(&number, 1)[0].word[0];
}

/* ---- barriers ---- */

FA__DEVICE void fa_sm90_mbarrier_init(uint32_t barrier, int arrivals) { machine_mbarrier_init(barrier, arrivals); }
FA__DEVICE void fa_sm90_mbarrier_fence(void) {}
FA__DEVICE void fa_sm90_mbarrier_arrive(uint32_t barrier) { machine_mbarrier_arrive(barrier, 0); }
FA__DEVICE void fa_sm90_mbarrier_arrive_if(uint32_t barrier, int condition) {
    if (condition) machine_mbarrier_arrive(barrier, 0);
}
FA__DEVICE void fa_sm90_mbarrier_expect(uint32_t barrier, int bytes) { machine_mbarrier_arrive(barrier, bytes); }
FA__DEVICE void fa_sm90_mbarrier_wait(uint32_t barrier, int parity) { machine_mbarrier_wait(barrier, parity); }
FA__DEVICE void fa_sm90_mbarrier_wait_cluster(uint32_t barrier, int parity) { machine_mbarrier_wait(barrier, parity); }
FA__DEVICE int fa_sm90_mbarrier_test(uint32_t barrier, int parity) { return machine_mbarrier_test(barrier, parity); }
FA__DEVICE int fa_sm90_load_if(uint32_t address, int condition) { return condition ? *(const int *)machine_at(address, 4) : 0; }
FA__DEVICE void fa_sm90_bar_sync(int id, int threads) { machine_bar(id, threads, 1); }
FA__DEVICE void fa_sm90_bar_arrive(int id, int threads) { machine_bar(id, threads, 0); }

FA__DEVICE void fa_sm90_send(uint32_t to, float x, uint32_t barrier, int block) { machine_send(to, x, barrier, block); }

/* ---- the copy engine ---- */

FA__DEVICE void fa_sm90_prefetch_map(const void *map) { (void)map; }
FA__DEVICE void fa_sm90_load_box(uint32_t to, const void *map, uint32_t barrier, int c0, int c1, int c2, int c3) {
    machine_load_box(to, map, barrier, c0, c1, c2, c3);
}
FA__DEVICE void fa_sm90_prefetch_box(const void *map, int c0, int c1, int c2, int c3) { (void)map, (void)c0, (void)c1, (void)c2, (void)c3; }
FA__DEVICE void fa_sm90_store_box_if(uint32_t from, const void *map, int condition, int c0, int c1, int c2, int c3) {
    if (condition) machine_store_box(from, map, c0, c1, c2, c3);
}
FA__DEVICE void fa_sm90_store_commit(void) { machine_store_commit(); }
FA__DEVICE void fa_sm90_store_read(void) { machine_store_read(); }
FA__DEVICE void fa_sm90_proxy_fence(void) { machine_proxy_fence(); }
FA__DEVICE void fa_sm90_barrier(void) { machine_barrier(); }
#define fa_sm90_registers_raise(n)
#define fa_sm90_registers_lower(n)

/* ---- products of a warpgroup ---- */

FA__DEVICE void fa_sm90_wgmma_fence(void) {}
FA__DEVICE void fa_sm90_wgmma_commit(void) { machine_products_commit(); }
FA__DEVICE void fa_sm90_wgmma_wait(int pending) { machine_products_wait(pending < 0 ? 0 : pending > 2 ? 2 : pending); }
FA__DEVICE uint64_t fa_sm90_descriptor(uint32_t low, uint32_t high) { return low | (uint64_t)high << 32; }

/* Where the descriptor of an operand says that its element (row, k) is, if rows run along k; (k, row), if they run
 * along the other side (`along_rows`). There follow those along the row up to the next multiple of 8. */
FA__DEVICE const uint16_t *simulated_elements(uint64_t descriptor, int along_rows, int row, int k) {
    const uint32_t low = (uint32_t)descriptor, high = (uint32_t)(descriptor >> 32);
    const uint32_t start = (low & 0x3FFFu) << 4, leading = (low >> 16 & 0x3FFFu) << 4, group = (high & 0x3FFFu) << 4;
    uint32_t at;
    if (high >> 30 == 0) at = start + (uint32_t)(row / 8) * group + (uint32_t)(row % 8 * 16) + (uint32_t)(k / 8) * leading + (uint32_t)(k % 8 * 2);
    else if (along_rows) at = start + (uint32_t)(row / 64) * leading + (uint32_t)(k / 8) * group + (uint32_t)(k % 8 * 128 + row % 64 * 2);
    else at = start + (uint32_t)(row / 8) * group + (uint32_t)(row % 8 * 128 + k * 2);
    if (high >> 30) at ^= (at >> 7 & 7) << 4;
    return (const uint16_t *)(const void *)machine_at(at, 2);
}
/* The 16 elements along k of a row. */
template <float (*WIDEN)(uint16_t)> static void simulated_row(float *to, uint64_t descriptor, int row) {
    for (int k = 0; k < 16; k += 8) {
        const uint16_t *from = simulated_elements(descriptor, 0, row, k);
        for (int i = 0; i < 8; i++) to[k + i] = WIDEN(from[i]);
    }
}
/* A thread's two rows of d (64 x n) = a (64 x 16) b (16 x n), plus d if `accumulate`: `held` has its part of a, if
 * that is in registers. */
template <float (*WIDEN)(uint16_t)>
static void simulated_wgmma(int n, int along_rows, float *d, uint64_t a, const uint32_t *held, uint64_t b, int accumulate) {
    const int lane = machine_lane(), first = (int)(threadIdx.x % 128 / 32 * 16) + lane / 4;
    machine_words rows[4]; /* of the lanes that share them */
    if (held) memcpy(rows, machine_share(held, 4) + lane / 4 * 4, sizeof rows);
    const int in_registers = held != NULL;
    machine_product([=] {
        float left[2][16], *to = d;
        for (int r = 0; r < 2; r++) {
            if (!in_registers) simulated_row<WIDEN>(left[r], a, first + 8 * r);
            for (int k = 0; in_registers && k < 16; k++) left[r][k] = WIDEN((uint16_t)(rows[k % 8 / 2].word[k / 8 * 2 + r] >> k % 2 * 16));
        }
        for (int first_col = lane % 4 * 2; first_col < n; first_col += 8, to += 4) {
            float right[2][16];
            for (int k = 0; along_rows && k < 16; k++) {
                const uint16_t *from = simulated_elements(b, 1, first_col, k);
                right[0][k] = WIDEN(from[0]), right[1][k] = WIDEN(from[1]);
            }
            for (int c = 0; !along_rows && c < 2; c++) simulated_row<WIDEN>(right[c], b, first_col + c);
            simulated_dots(to, left[0], left[1], right[0], right[1], 16, accumulate);
        }
    });
}
#define fa_sm90_wgmma_shared(n, type, b_major, d, a, b, accumulate) \
    (type[0] == 'b' ? simulated_wgmma<simulated_bf16> : simulated_wgmma<simulated_f16>)(n, b_major[0] == '1', d, a, NULL, b, accumulate)
#define fa_sm90_wgmma_registers(n, type, b_major, d, a, b, accumulate) \
    (type[0] == 'b' ? simulated_wgmma<simulated_bf16> : simulated_wgmma<simulated_f16>)(n, b_major[0] == '1', d, 0, a, b, accumulate)
#define fa_sm90_wgmma_arrived(n, d) ((void)(d))

#endif
