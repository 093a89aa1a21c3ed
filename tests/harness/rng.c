#include "rng.h"

#include <stdlib.h>
#include <time.h>

#include "tap.h"

uint64_t rng_seed(void) {
    static uint64_t seed;
    static int known;
    if (!known) {
        const char *wanted = getenv("FA_SEED");
        seed = wanted && *wanted ? strtoull(wanted, NULL, 0) : (uint64_t)time(NULL);
        known = 1;
        tap_note("seed %llu (FA_SEED=%llu repeats this run)", (unsigned long long)seed, (unsigned long long)seed);
    }
    return seed;
}

rng rng_new(uint64_t seed, uint64_t purpose) {
    rng r;
    r.state = seed * 0x9E3779B97F4A7C15u + purpose;
    r.state = rng_next(&r);
    return r;
}

uint64_t rng_next(rng *r) {
    uint64_t z = r->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

int rng_int(rng *r, int low, int high) { return low + (int)(rng_next(r) % (uint64_t)((int64_t)high - low + 1)); }
int rng_one_in(rng *r, int n) { return rng_int(r, 1, n) == 1; }
double rng_uniform(rng *r) { return (double)(rng_next(r) >> 11) * 0x1p-53; }

double rng_normal(rng *r) {
    /* Eight uniform numbers of 16 bits, from two draws: their sum has variance 8/12. (Four sums of two at once, in
     * lanes of 32 bits.) */
    const uint64_t lanes = 0x0000FFFF0000FFFFu;
    uint64_t u = rng_next(r), v = rng_next(r), sums = (u & lanes) + (u >> 16 & lanes) + (v & lanes) + (v >> 16 & lanes);
    double sum = (double)((sums & 0xFFFFFFFF) + (sums >> 32) + 4); /* each counts from a half */
    return (sum * 0x1p-16 - 4) * 1.2247448713915890;                /* sqrt(12/8) */
}
