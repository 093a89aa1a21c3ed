/* norm_odd.h: the forward of norm_rows.h for rows that begin anywhere and have any length, of which a thread has FA_PIECES vectors
 * (GPU), without dropout. They come by way of shared memory (norm_vectors.h); from there on threads hold them as floats.
 */
typedef int FA__LOOP(_index);
#include <fa/kernel/norm_vectors.h>

/* Four weights at a time while there are four; the last ones by themselves. */
FA__FN void FA__LOOP(_near)(float *w, const void *row, int col, int cols, float missing) {
    const int bytes = fa_dtype_bytes(FA_WEIGHT_DTYPE);
    FA__UNROLL
    for (int i = 0; i < FA__LOOP(_row_LENGTH); i += 4) {
        const char *from = (const char *)row + (int64_t)(col + i) * bytes;
        const int left = row ? cols - col - i : 0;
        uint32_t words[4];
        FA__UNROLL
        for (int j = 0; j < 4; j++) w[i + j] = missing;
        if (left >= 4) {
            fa_sm80_load_const(words, from, bytes);
            FA__UNROLL
            for (int j = 0; j < 4; j++) {
                if (FA_WEIGHT_DTYPE == FA_F16) fa_sm80_unpack_f16(w + i + j / 2 * 2, w + i + j / 2 * 2 + 1, words[j / 2]);
                else if (FA_WEIGHT_DTYPE == FA_BF16) fa_sm80_unpack_bf16(w + i + j / 2 * 2, w + i + j / 2 * 2 + 1, words[j / 2]);
                else w[i + j] = fa__from_bits(words[j]);
            }
        } else if (left > 0) {
            FA__UNROLL
            for (int j = 0; j < 3; j++)
                if (j < left) w[i + j] = fa_load_element(from, j, FA_WEIGHT_DTYPE);
        }
    }
}

FA__FN void FA__LOOP(_forward)(const FA__PARAMS *p, int64_t row, fa_team *team, FA__LOOP(_place) * place) {
    enum { FA__HELD_PIECES = FA__LOOP(_row_KEPT), FA__LENGTH = FA__LOOP(_row_LENGTH) };
    const int there = row < p->rows.rows, cols = there ? (int)p->rows.cols : 0, tensors = 1 + (p->residual.data != NULL);
    const int last = team->thread + 1 == team->threads;
    const int behind = FA__HELD_PIECES * (int)blockDim.x + ((int)threadIdx.x >> p->rows.team_bits);
    float x[FA__HELD_PIECES * FA__LENGTH], y[FA__LENGTH], chain[2] = {0.0f, 0.0f}, number = 0.0f, mean, squares;
    FA__UNROLL
    for (int i = 0; i < FA__HELD_PIECES * FA__LENGTH; i++) x[i] = 0.0f;
    int ragged = 0; /* tensors of which a last vector is brought by itself */
    FA__ROLL
    for (int tensor = 0; tensor < tensors; tensor++) {
        const FA__LOOP(_reading) r = FA__LOOP(_read)(tensor ? &p->residual : &p->x, p, there ? row : 0, 0, cols);
        uint4 *slots = (uint4 *)(place->slots + tensor * p->rows.slot_bytes);
        ragged |= (r.left > 0) << tensor;
        FA__ROLL
        for (int piece = 0; piece < FA__HELD_PIECES; piece++) {
            const int vector = piece * team->threads + team->thread;
            FA__LOOP(_fetch)(slots + threadIdx.x + piece * (int)blockDim.x, &r, vector);
            if (last) FA__LOOP(_fetch)(slots + behind + piece * p->rows.teams, &r, vector + 1);
        }
    }
    fa_sm80_copy_commit();
    fa_sm80_copy_wait(0);
    FA__ROLL
    for (int tensor = 0; ragged; tensor++, ragged >>= 1) {
        const FA__LOOP(_reading) r = FA__LOOP(_read)(tensor ? &p->residual : &p->x, p, there ? row : 0, 0, cols);
        uint4 *slots = (uint4 *)(place->slots + tensor * p->rows.slot_bytes);
        FA__ROLL
        for (int piece = 0; piece < FA__HELD_PIECES; piece++) {
            const int vector = piece * team->threads + team->thread;
            FA__LOOP(_fetch_left)(slots + threadIdx.x + piece * (int)blockDim.x, &r, vector);
            if (last) FA__LOOP(_fetch_left)(slots + behind + piece * p->rows.teams, &r, vector + 1);
        }
    }
    if (team->threads > 32) fa_sm80_barrier();
    else fa_sm80_warp_barrier();
    FA__ROLL
    for (int tensor = 0; tensor < tensors; tensor++) {
        const FA__LOOP(_span) s = FA__LOOP(_span_of)(tensor ? &p->residual : &p->x, there ? row : 0, 0, cols);
        const uint4 *slots = (const uint4 *)(place->slots + tensor * p->rows.slot_bytes);
        FA__UNROLL
        for (int piece = 0; piece < FA__HELD_PIECES; piece++) {
            const uint4 *slot = slots + threadIdx.x + piece * (int)blockDim.x;
            FA__LOOP(_get)(y, slot, last ? slots + behind + piece * p->rows.teams : slot + 1, &s);
            FA__UNROLL
            for (int i = 0; i < FA__LENGTH; i++) x[piece * FA__LENGTH + i] += y[i];
        }
    }
    FA__UNROLL
    for (int piece = 0; piece < FA__HELD_PIECES; piece++) {
        const int left = cols - (piece * team->threads + team->thread) * FA__LENGTH;
        number += (float)(left < 0 ? 0 : left < FA__LENGTH ? left : FA__LENGTH);
        FA__UNROLL
        for (int i = 0; i < FA__LENGTH; i++) chain[i % 2] = FA__CENTERED ? chain[i % 2] + x[piece * FA__LENGTH + i] : fmaf(x[piece * FA__LENGTH + i], x[piece * FA__LENGTH + i], chain[i % 2]);
    }
#if FA__CENTERED
    number = FA__LOOP(_reduce_lanes_sum)(number, team);
    mean = FA__LOOP(_reduce_lanes_sum)(chain[0] + chain[1], team) * (number > 0.0f ? fa__reciprocal(number) : 0.0f);
    chain[0] = chain[1] = 0.0f;
    FA__UNROLL
    for (int piece = 0; piece < FA__HELD_PIECES; piece++) {
        const int left = cols - (piece * team->threads + team->thread) * FA__LENGTH;
        FA__UNROLL
        for (int i = 0; i < FA__LENGTH; i++) {
            const float off = i < left ? x[piece * FA__LENGTH + i] - mean : 0.0f;
            chain[i % 2] = fmaf(off, off, chain[i % 2]);
        }
    }
    squares = FA__LOOP(_reduce_lanes_sum)(chain[0] + chain[1], team);
    FA__LOOP(_reduce_warps_moments_of)(p->inverse_cols, number, &mean, &squares, team, place->shared);
#else
    (void)number;
    mean = 0.0f;
    squares = FA__LOOP(_reduce_sum)(chain[0] + chain[1], team, place->shared);
#endif
    const float rstd = fa__rsqrt(squares * p->inverse_cols + p->eps);
    if (there && team->thread == 0 && p->rstd) p->rstd[row] = rstd;
    if (FA__CENTERED && there && team->thread == 0 && p->mean) p->mean[row] = mean;
    /* In two halves, by code that is there once: the second one takes the place of the first. */
    enum { FA__HALF = FA__HELD_PIECES / 2 };
    FA__ROLL
    for (int turn = 0; turn < 2; turn++) {
        FA__ROLL
        for (int is_y = !p->sum.data; is_y < 1 + (p->y.data != NULL); is_y++) {
            const FA__LOOP(_span) to = FA__LOOP(_span_of)(is_y ? &p->y : &p->sum, there ? row : 0, 0, cols);
            FA__UNROLL
            for (int piece = 0; piece < FA__HALF; piece++) {
                const int col = ((turn * FA__HALF + piece) * team->threads + team->thread) * FA__LENGTH;
                if (is_y) {
                    FA__LOOP(_near)(y, p->gamma, col, cols, 1.0f);
                    FA__UNROLL
                    for (int i = 0; i < FA__LENGTH; i++) x[piece * FA__LENGTH + i] = (x[piece * FA__LENGTH + i] - mean) * rstd * y[i];
                    if (FA__CENTERED) FA__LOOP(_near)(y, p->beta, col, cols, 0.0f);
                    FA__UNROLL
                    for (int i = 0; FA__CENTERED && i < FA__LENGTH; i++) x[piece * FA__LENGTH + i] += y[i];
                }
                FA__LOOP(_put)(&to, team, col, x + piece * FA__LENGTH);
            }
        }
        FA__UNROLL
        for (int i = 0; i < FA__HALF * FA__LENGTH; i++) x[i] = x[FA__HALF * FA__LENGTH + i];
    }
}
