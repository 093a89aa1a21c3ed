/* machine.h: what the instruction layer of the simulator asks of its machine. Functions of whole warps and blocks, as on a GPU. */
#ifndef SIMULATOR_MACHINE_H
#define SIMULATOR_MACHINE_H

#include <cuda_runtime.h>

/* What a lane shows to its warp at once. */
typedef struct machine_words {
    uint32_t word[6];
} machine_words;

int machine_lane(void);
void machine_warp_barrier(void);
void machine_barrier(void);
/* Shows the caller's words to its warp, and returns those of all lanes. They stand until the warp's next but one call. */
const machine_words *machine_share(const uint32_t *words, int count);

/* Addresses of shared memory as 32 bits, and back. */
uint32_t machine_address(const void *pointer);
unsigned char *machine_at(uint32_t address, int alignment);
/* The pointer, which must be aligned. */
const void *machine_aligned(const void *pointer, int alignment);

/* cp.async: a copy lands at once, or when it is waited for, by chance. */
void machine_copy16(unsigned char *to, const void *from, int bytes);
void machine_copy_commit(void);
void machine_copy_wait(int pending);

/* Ends the program if a condition does not hold. */
void machine_must(int condition, const char *what);

#endif
