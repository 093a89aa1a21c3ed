/* rng.h: seeded random numbers (splitmix64, Steele, Lea and Flood 2014), the same on every machine. */
#ifndef RNG_H
#define RNG_H

#include <stdint.h>
#if defined(__cplusplus)
extern "C" {
#endif

typedef struct rng {
    uint64_t state;
} rng;

/* The seed of this run: the environment's FA_SEED, or else the clock. Prints how to repeat the run. */
uint64_t rng_seed(void);
/* A generator for one purpose: the same seed and purpose give the same numbers, whatever else is drawn. */
rng rng_new(uint64_t seed, uint64_t purpose);
uint64_t rng_next(rng *r);
/* An integer in low..high, both included. */
int rng_int(rng *r, int low, int high);
/* 1 with a chance of one in n. */
int rng_one_in(rng *r, int n);
/* Uniform in [0, 1). */
double rng_uniform(rng *r);
/* Mean 0, variance 1, less than 5 away from 0: a sum of eight uniform numbers. */
double rng_normal(rng *r);

#if defined(__cplusplus)
}
#endif
#endif
