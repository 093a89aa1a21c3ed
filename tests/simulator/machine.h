/* machine.h: what the instruction layer of the simulator asks of its machine. Functions of whole warps and blocks,
 * as on a GPU. */
#ifndef SIMULATOR_MACHINE_H
#define SIMULATOR_MACHINE_H

#include <cuda_runtime.h>

#include <functional>

/* What a lane shows to its warp at once. */
typedef struct machine_words {
    uint32_t word[6];
} machine_words;

int machine_lane(void);
void machine_warp_barrier(void);
void machine_barrier(void);
/* Shows the caller's words to its warp, and returns those of all lanes. They stand until the warp's next but one
 * call. */
const machine_words *machine_share(const uint32_t *words, int count);

/* Addresses of shared memory as 32 bits, and back. */
uint32_t machine_address(const void *pointer);
unsigned char *machine_at(uint32_t address, int alignment);
/* The pointer, which must be aligned. */
const void *machine_aligned(const void *pointer, int alignment);

/* cp.async of 4 or 16 bytes, of which so many are read: a copy lands at once, or when it is waited for, by chance. */
void machine_copy(unsigned char *to, const void *from, int size, int bytes);
void machine_copy_commit(void);
void machine_copy_wait(int pending);

/* ---- of compute capability 9.0 ---- */

/* mbarrier: arrivals (and bytes that are expected besides), and phases that are over. */
void machine_mbarrier_init(uint32_t barrier, int arrivals);
void machine_mbarrier_arrive(uint32_t barrier, int bytes);
int machine_mbarrier_test(uint32_t barrier, int parity);
void machine_mbarrier_wait(uint32_t barrier, int parity);
/* bar.sync, and bar.arrive, which does not wait. */
void machine_bar(int id, int threads, int waits);
/* The copy engine: boxes of a tensor to shared memory, which arrive when they like; and back, of which those
 * committed are read by machine_store_read() at the latest. */
void machine_load_box(uint32_t to, const void *map, uint32_t barrier, int c0, int c1, int c2, int c3);
void machine_store_box(uint32_t from, const void *map, int c0, int c1, int c2, int c3);
void machine_store_commit(void);
void machine_store_read(void);
/* Clusters: the caller's block in its cluster; its barrier; a float for the shared memory of another block, whose
 * mbarrier counts it. */
int machine_cluster_rank(void);
void machine_cluster_arrive(void);
void machine_cluster_wait(void);
void machine_send(uint32_t to, float x, uint32_t barrier, int to_block);
/* stmatrix has written 16 bytes, which the copy engine reads only behind a fence of the same thread. */
void machine_wrote(uint32_t address);
void machine_proxy_fence(void);
/* wgmma: a thread's part of a product, which is done when it is waited for at the latest. */
void machine_product(const std::function<void()> &product);
void machine_products_commit(void);
void machine_products_wait(int pending);

/* Ends the program if a condition does not hold. */
void machine_must(int condition, const char *what);

#endif
