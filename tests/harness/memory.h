/* memory.h: buffers on the host or on the device, behind one interface.
 *
 * A host buffer ends right before a page that may not be touched, so that reading or writing one byte past the end is
 * a crash, and starts right after another when its size is a multiple of the page. The same file compiled by nvcc adds
 * the device.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>
#if defined(__cplusplus)
extern "C" {
#endif

/* What a source that includes this is compiled for: a simulated GPU, which is slow, so that a suite repeats less
 * there; or a real one. */
#if defined(TEST_SIMULATOR)
#define SIMULATED 1
#else
#define SIMULATED 0
#endif
#if defined(__CUDACC__) && !SIMULATED
#define REAL_GPU 1
#else
#define REAL_GPU 0
#endif

typedef enum memory_place { MEMORY_HOST, MEMORY_DEVICE } memory_place;

/* 1 if the program can use a GPU; else 0 and, in `why`, the reason. */
int memory_has_device(const char **why);
void *memory_new(memory_place place, size_t bytes);
void memory_delete(memory_place place, void *data, size_t bytes);
/* Copies host bytes into a buffer. */
void memory_put(memory_place place, void *destination, const void *source, size_t bytes);
/* Waits for the device and copies a buffer's bytes to the host. */
void memory_get(memory_place place, void *destination, const void *source, size_t bytes);
/* Ends the program if the kernel before was not launched, which memory_wait() does not see. */
void memory_launched(void);
/* Waits for the device; returns NULL or the words of an asynchronous error. */
const char *memory_wait(memory_place place);
/* Waits for the device; ends the program with the words of an asynchronous error. */
void memory_finish(memory_place place);

#if defined(__cplusplus)
}
#endif
#endif
