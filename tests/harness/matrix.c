#include "matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "tap.h"

enum { FRONT = 256, POISON = 0xFD, AROUND = 0xFF }; /* all bits set is a NaN in every type */

static size_t place_of(const matrix *m, int64_t row, int64_t col) {
    return m->front + (size_t)(row * m->stride + col) * (size_t)number_bytes(m->dtype);
}

matrix matrix_new(memory_place place, int dtype, int64_t rows, int64_t cols, int gap, int tail, int written) {
    matrix m;
    size_t payload, behind;
    memset(&m, 0, sizeof m);
    m.dtype = dtype, m.written = written, m.rows = rows, m.cols = cols, m.stride = cols + gap, m.place = place;
    payload = rows ? (size_t)((rows - 1) * m.stride + cols) * (size_t)number_bytes(dtype) : 0;
    behind = (size_t)tail * (size_t)number_bytes(dtype);
    /* The end is at the end of a page: on a device the start is as far from a multiple of 16 as it is on the host. */
    m.front = FRONT + (16 - (payload + behind) % 16) % 16;
    m.bytes = m.front + payload + behind;
    m.host = (unsigned char *)malloc(m.bytes);
    if (!m.host) tap_bail("no memory for %zu bytes", m.bytes);
    m.data = (unsigned char *)memory_new(place, m.bytes);
    m.at.data = m.data + m.front;
    m.at.stride_row = m.stride;
    memset(m.host, written ? POISON : AROUND, m.bytes);
    return m;
}
void matrix_delete(matrix *m) {
    memory_delete(m->place, m->data, m->bytes);
    free(m->host);
}
double matrix_get(const matrix *m, int64_t row, int64_t col) { return number_load(m->host + place_of(m, row, col), 0, m->dtype); }
void matrix_set(matrix *m, int64_t row, int64_t col, double value) { number_store(m->host + place_of(m, row, col), 0, m->dtype, value); }
void matrix_fill(matrix *m, double deviation, rng *r) {
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++) matrix_set(m, i, j, deviation * rng_normal(r));
}
void matrix_poison(matrix *m) { memset(m->host, POISON, m->bytes); }
void matrix_upload(matrix *m) { memory_put(m->place, m->data, m->host, m->bytes); }
void matrix_download(matrix *m) {
    memory_finish(m->place);
    memory_get(m->place, m->host, m->data, m->bytes);
}
static int is(const matrix *m, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++)
        if (m->host[i] != (m->written ? POISON : AROUND)) return 0;
    return 1;
}
int matrix_intact(const matrix *m) {
    size_t end = m->front;
    for (int64_t i = 0; i < m->rows; i++) {
        if (!is(m, end, place_of(m, i, 0))) return 0;
        end = place_of(m, i, m->cols);
    }
    return is(m, end, m->bytes) && is(m, 0, m->front);
}
int matrix_untouched(const matrix *m) { return is(m, 0, m->bytes); }

double matrix_error(double got, double exact, double slack, int dtype) {
    if (!(slack < INFINITY)) slack = 2e-6 * fabs(exact); /* of what became infinite or NaN on the way: not of this number */
    double allowed = number_half_ulp(exact, dtype) + slack, error = fabs(got - exact);
    if (isnan(exact)) return isnan(got) ? 0 : INFINITY;
    if (got == exact) return 0;
    /* What rounds to infinity may be the largest number, and the other way round. */
    if (isinf(got) && number_round(exact + (exact > 0 ? slack : -slack), dtype) == got) return 0;
    return isfinite(error) ? error / allowed : INFINITY;
}
