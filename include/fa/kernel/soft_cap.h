/**
 * @file soft_cap.h
 * @brief A soft cap by a polynomial, for scores that are not near it.
 */
#ifndef FA_KERNEL_SOFT_CAP_H
#define FA_KERNEL_SOFT_CAP_H

#include <math.h>
#include <string.h>

#include <fa/fa.h>

/** @cond PRIVATE */
/* Up to |x| = 0.6, tanh(x) = x (1 + c3 x^2 + c5 x^4), off by 7.9e-5 of it at most, and by less near 0 (minimax);
 * tanh.approx, which takes as long as an exponential, by 4.9e-4. So what an exponent gets from s, a product q.k, is
 * s (first + third s^2 + fifth s^4). (In this order, in which no pair of them is loaded at once that registers then
 * hold together: at head dimension 64 none are left.) */
typedef struct fa__cap_curve {
    int reach; /* the bits of the largest s^2 for which this holds, or -1: never. Of integers a GPU finds the largest of three at once. */
    float first, fifth, third;
} fa__cap_curve;

#define FA__SOFT_CAP_REACH 0.6
#define FA__SOFT_CAP_REACHED 0.537f /* tanh of that */

/* That of factor * tanh(scale * s). */
static inline FA_UNUSED fa__cap_curve fa__cap_curve_of(float scale, float factor) {
    const double k = (double)scale, times = (double)factor, root = FA__SOFT_CAP_REACH / k;
    fa__cap_curve c = {-1, 0, 0, 0};
    if (fabs(k) > 1e-6 && fabs(k) < 1e6) { /* all of it is in the range of floats */
        const float square = (float)(root * root);
        memcpy(&c.reach, &square, sizeof c.reach);
        c.first = (float)(k * times);
        c.third = (float)(-0.3308597714 * k * k * k * times);
        c.fifth = (float)(0.1100518223 * k * k * k * k * k * times);
    }
    return c;
}
/** @endcond */

#endif
