/* matrix.h: matrices for the kernels that work row by row: anywhere in memory, with anything between their rows.
 *
 * Around an input there is NaN: before it, between its rows, behind it. Outputs are poisoned, and everything around their
 * elements must stay poison. On the host the last row ends right before a page that must not be touched, unless the
 * layout asks for something behind it, which shifts the start of the matrix.
 */
#ifndef MATRIX_H
#define MATRIX_H

#include <fa/fa.h>

#include "memory.h"
#include "rng.h"
#include "tap.h"
#if defined(__cplusplus)
extern "C" {
#endif

typedef struct matrix {
    int dtype, written;
    int64_t rows, cols, stride;
    memory_place place;
    unsigned char *host, *data; /* an image, and its copy where the kernel runs */
    size_t bytes, front;        /* of both; before the first element */
    fa_matrix at;               /* what the kernel is given */
} matrix;

/* `gap` elements between rows, `tail` elements behind the last. An output if `written`. */
matrix matrix_new(memory_place place, int dtype, int64_t rows, int64_t cols, int gap, int tail, int written);
void matrix_delete(matrix *m);
double matrix_get(const matrix *m, int64_t row, int64_t col);
void matrix_set(matrix *m, int64_t row, int64_t col, double value);
void matrix_fill(matrix *m, double deviation, rng *r);
/* An output is made poison again. */
void matrix_poison(matrix *m);
void matrix_upload(matrix *m);
void matrix_download(matrix *m);
/* Of a downloaded one: whether nothing was written around its elements; whether nothing was at all. */
int matrix_intact(const matrix *m);
int matrix_untouched(const matrix *m);

/* How far a result that is computed in float, and is then rounded to the type, may be from the exact one: by half a
 * unit in its last place, and by `slack`. Returns 0 if both are NaN or the same infinity, else the error as a share
 * of that. */
double matrix_error(double got, double exact, double slack, int dtype);

/* Where a suite's matrices are: on the device as nvcc compiles it, else on the host. Returns 0, with the reason as a
 * skip, if that cannot be. */
static inline int matrix_place(memory_place *place, const char *suite) {
#if defined(__CUDACC__)
    const char *why = NULL;
    *place = MEMORY_DEVICE;
    if (memory_has_device(&why)) return 1;
    tap_skip("%s on the GPU: %s", suite, why);
    return 0;
#else
    (void)suite;
    *place = MEMORY_HOST;
    return 1;
#endif
}

#if defined(__cplusplus)
}
#endif
#endif
