/* check.h: runs an instance on a problem and holds the result against the reference and the accuracy contract. */
#ifndef CHECK_H
#define CHECK_H

#include "problem.h"
#include "reference.h"
#if defined(__cplusplus)
extern "C" {
#endif

/* Where the instances of this program run: set by the suite's first lines. */
extern memory_place check_place;

/* What the accuracy contract allows on one kind of problem. */
typedef struct tolerance {
    double o, lse; /* twice the largest error of the unfused low-precision computation */
} tolerance;

/* That of the problem as it is filled, of which `exact` is the reference. */
tolerance check_measure(const problem *p, const result *exact);

/* Fills the problem (as often as it takes to see `rows` rows: one lucky row is no measure of an error), computes the
 * tolerance and, in `exact`, the reference of the last filling. Upload afterwards. */
tolerance check_prepare(problem *p, result *exact, int rows, rng *r);

/* Compares a problem's downloaded outputs with the reference: values, lse, and that nothing else was written.
 * Returns 1 and the worst error as a share of what is allowed; or 0 after notes that say what is wrong, unless
 * quiet. */
int check_outputs(problem *p, const result *exact, tolerance allowed, double *worst, int quiet);

/* All of it for one shape: allocate, fill, run, compare, free. */
int check_shape(const instance *of, const shape *s, rng *r, double *worst);

/* A random shape that suits an instance. The larger ones span several tiles. */
shape check_random_shape(const instance *of, rng *r, int large);
/* Number `i` of a list of shapes that broke attention kernels before; returns 0 past its end. */
int check_nasty_shape(const instance *of, int i, shape *s, rng *r);

/* Has the CPU instances use their number i (mod 4) instruction set: the best, AVX2, plain, AVX-512. Returns its
 * name. What the processor lacks is replaced by what it has. */
const char *check_instruction_set(int i);

/* How many threads a call of the CPU uses: its hook calls check_meet(), where each thread waits, once, until
 * `expected` of them have come, or for ten seconds; check_met() tells how many came. */
void check_meet_begin(int expected);
void check_meet(void);
int check_met(void);

/* Runs the instance; 1 if it says FA_OK, else 0 after a note. */
int check_forward(problem *p);

#if defined(__cplusplus)
}
#endif
#endif
