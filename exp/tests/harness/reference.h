/* reference.h: attention in double precision, and the unfused low-precision computation whose error sets the tolerance.
 *
 * Masks and scores are written here by their definition, from the documentation, apart from the library's hooks.
 */
#ifndef REFERENCE_H
#define REFERENCE_H

#include "problem.h"
#if defined(__cplusplus)
extern "C" {
#endif

/* Does query i of (b, h) see key j? */
int reference_visible(const problem *p, int b, int h, int i, int j);
/* The score that becomes of a scaled product. */
double reference_score(const problem *p, double score, int b, int h, int i, int j);

/* (batch, heads, seqlen_q, head_dim_v) and (batch, heads, seqlen_q), contiguous. */
typedef struct result {
    double *o, *lse;
    int64_t rows;
    int cols;
} result;
result result_new(const problem *p);
void result_delete(result *r);

/* Float64 throughout, from the values that the inputs' images hold. */
void reference_attention(const problem *p, result *r);
/* S = Q K^T, softmax, O = P V as separate steps that store S, P and O in the problem's type, with float in between. */
void reference_unfused(const problem *p, result *r);

#if defined(__cplusplus)
}
#endif
#endif
