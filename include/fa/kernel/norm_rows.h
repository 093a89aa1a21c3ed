/* norm_rows.h: layer normalisation of a row (FA__CENTERED 1) or its root-mean-square normalisation (0), and the gradients.
 *
 *     s = x, or dropout(x) + residual;  n = (s - mean) rstd;  y = n gamma + beta
 *
 * Backward, with w = d_y gamma:
 *
 *     d_s = rstd (w - mean of w - n mean of (w n)) + d_sum      without the mean of w if nothing was centered
 *     d_residual = d_s,  d_x = dropout(d_s),  d_gamma = sum over rows of d_y n,  d_beta = sum over rows of d_y
 */

#if FA__ARCH == FA_CPU
/* What is known of a row: its statistics, and in the backward its mean of w times -rstd and its mean of w n times
 * -rstd^2. */
typedef struct FA__LOOP(_flight) {
    float mean, rstd, of_w, of_wn;
} FA__LOOP(_flight);

#include <fa/kernel/norm_rows_cpu.h>

#include <fa/kernel/norm_gradient_cpu.h> /* uses that */
#elif !FA__EVEN
#include <fa/kernel/norm_any.h>
#elif FA__DIRECTIONS == FA__ROWS_FORWARD
#include <fa/kernel/norm_even.h>
#else
#include <fa/kernel/norm_sweep.h>
#endif
