/* rows_gpu_sweep_kernel.h: the sweep of the backward, by threads that have FA__PIECES vectors of 16 bytes of each tensor of a
 * row. FA__WHOLE 2: rows are known to be of whole vectors, and not cut; 0: any. */
#define FA__DIRECTIONS FA__ROWS_BACKWARD
#define FA_COLS FA__ROW_COLS(16)
#define FA_THREADS 1
#define FA_HOLD FA_SHARED
#define FA_PIECES FA__PIECES
#define FA__KEEPS 1
#define FA__CUT !FA__WHOLE
#define FA_WHOLE FA__WHOLE
#define FA__EVEN (FA__WHOLE > 0)
#undef FA__UNROLL_PIECES
#define FA__UNROLL_PIECES FA__UNROLL
#include <fa/kernel/rows_gpu_parts.h>

/* Which rows a team takes, and its part in them. */
typedef struct FA__LOOP(_share) {
    int mine;       /* the team's number in its block */
    int segment;    /* of every row */
    int64_t worker; /* the block's number among those of the segment */
    int64_t step;   /* from a row of the block to its next */
} FA__LOOP(_share);
FA__FN FA__LOOP(_share) FA__LOOP(_share_of)(const FA__PARAMS *p) {
    FA__LOOP(_share) s;
    s.mine = (int)threadIdx.x >> p->rows.team_bits;
    s.worker = (int)blockIdx.x;
    s.segment = 0;
    if (!FA__WHOLE && p->sums.segments > 1) s.segment = (int)(s.worker % p->sums.segments), s.worker /= p->sums.segments;
    s.step = p->sums.workers * p->rows.teams;
    return s;
}

static __global__ void __launch_bounds__(FA__SWEEP_THREADS, 1) FA__LOOP(_kernel_backward)(const __grid_constant__ FA__PARAMS p) {
    enum { HELD = FA__PIECES * FA__LOOP(_row_LENGTH) };
    float sums[FA__SUMS * HELD];
    unsigned char *weights = fa__shared + sizeof(FA__LOOP(_reduce_shared)), *slots = weights + p.sums.weights_bytes;
    FA__LOOP(_place) place = {(FA__LOOP(_reduce_shared) *)fa__shared, slots, sums, HELD, (float4 *)weights + threadIdx.x};
    const FA__LOOP(_share) share = FA__LOOP(_share_of)(&p);
    fa_team team = FA__LOOP(_reduce_team)(p.rows.threads);
    team.whole = p.rows.whole;
    FA__UNROLL
    for (int i = 0; i < FA__SUMS * HELD; i++) sums[i] = 0.0f;
    FA__LOOP(_backward_keep)(&p, share.segment, &team, &place);

    /* Before a row is finished, that which comes `ahead_by` later is started, in the slots of the one before. The first rows
     * are started while there is none to finish: their numbers are negative. */
    FA__LOOP(_place) ahead = place;
    FA__LOOP(_flight) flight, next;
    const int stage_bytes = p.rows.tensors * p.rows.slot_bytes, ahead_by = p.sums.stages - 1;
    const int64_t far = ahead_by * share.step;
    int64_t row = share.worker * p.rows.teams - far;
    int turn = 0;
    FA__LOOP(_backward_peek)(&next, &p, row + share.mine);
    for (; row < p.rows.rows; row += share.step) {
        ahead.slots = slots + turn * stage_bytes;
        if (row + far < p.rows.rows) FA__LOOP(_backward_start)(&p, row + far + share.mine, share.segment, &team, &ahead);
        fa_sm80_copy_commit();
        turn = turn == ahead_by ? 0 : turn + 1;
        flight = next;
        FA__LOOP(_backward_peek)(&next, &p, row + share.step + share.mine);
        if (row < 0) continue;
        fa_sm80_copy_wait(ahead_by);
        place.slots = slots + turn * stage_bytes;
        FA__LOOP(_backward_finish)(&p, row + share.mine, share.segment, &team, &place, &flight);
    }
    if (!p.sums.partial) return;

    /* The teams of a block: halves add halves, through the slots, which nobody reads any more. */
    float4 *shared = (float4 *)slots + threadIdx.x;
    FA__ROLL
    for (int half = p.rows.teams / 2; half > 0; half /= 2)
        FA__UNROLL
        for (int i = 0; i < FA__SUMS * HELD; i += 4) { /* as many as a slot has room for */
            __syncthreads();
            if (share.mine >= half && share.mine < 2 * half) shared[0] = make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
            __syncthreads();
            if (share.mine >= half) continue;
            const float4 more = shared[half * p.rows.threads];
            sums[i] += more.x, sums[i + 1] += more.y, sums[i + 2] += more.z, sums[i + 3] += more.w;
        }
    if (share.mine > 0) return;
    FA__LOOP(_row_view) columns = FA__LOOP(_columns)(&p, 0, share.segment, &team);
    FA__UNROLL
    for (int which = 0; which < FA__SUMS; which++)
        FA__UNROLL
        for (int piece = 0; piece < FA__PIECES; piece++)
            FA__LOOP(_row_put)(&columns, piece,
                               p.sums.partial + (share.worker * FA__SUMS + which) * p.sums.pitch + share.segment * p.sums.length,
                               sums + which * HELD + piece * FA__LOOP(_row_LENGTH));
}
#undef FA__LOOP
#undef FA__VARIANT
#undef FA__PIECES
#undef FA__WHOLE
