/* rows_gpu_sweep_kernel.h: the sweep of the backward, by threads that have FA__PIECES vectors of 16 bytes of each tensor of a
 * row. FA__WHOLE 2: rows are known to be of whole vectors on boundaries of 16 bytes; 0: any. */
#define FA__DIRECTIONS FA__ROWS_BACKWARD
#define FA_COLS FA__ROW_COLS(16)
#define FA_THREADS 1
#define FA_HOLD FA_SHARED
#define FA_PIECES FA__PIECES
#define FA_WHOLE FA__WHOLE
#define FA__EVEN (FA__WHOLE > 0)
#define FA__CUT !FA__WHOLE
#include <fa/kernel/rows_gpu_parts.h>

#if !FA__HOST_PASS
/* Where a worker's sums from number `i` of a thread on go. There is room to a multiple of 16 columns. */
FA__FN float4 *FA__LOOP(_partial)(const FA__PARAMS *p, int64_t worker, int i, int64_t col) {
    const int which = i / (FA__PIECES * FA__LOOP(_row_LENGTH));
    return (float4 *)(p->sums.partial + (worker * FA__SUMS + which) * p->sums.pitch + col);
}
#endif
FA__KERNEL(_backward, FA__SWEEP_THREADS, 1) {
#if !FA__HOST_PASS
    enum { FA__LENGTH = FA__LOOP(_row_LENGTH), FA__HELD = FA__PIECES * FA__LENGTH };
    float sums[FA__SUMS * FA__HELD], n[FA__HELD], w[FA__HELD];
    fa__shares *shares = (fa__shares *)fa__shared;
    float4 *kept = (float4 *)(shares + 1);
    unsigned char *slots = (unsigned char *)kept + p.sums.weights_bytes;
    fa_team team = FA__LOOP(_reduce_team)(p.rows.threads);
    const int mine = (int)threadIdx.x >> p.rows.team_bits, stages = p.sums.stages, stage_bytes = p.rows.tensors * p.rows.slot_bytes;
    int64_t segment = 0, worker = (int)blockIdx.x;
    if (!FA__WHOLE && p.sums.segments > 1) segment = worker % p.sums.segments, worker /= p.sums.segments;
    const int64_t first = FA__WHOLE ? 0 : segment * p.sums.length, left = p.rows.cols - first;
    const int cols = FA__WHOLE ? (int)p.rows.cols : (int)(left < p.sums.length ? left : p.sums.length), step = (int)p.sums.workers * p.rows.teams;
    FA__UNROLL
    for (int i = 0; i < FA__SUMS * FA__HELD; i++) sums[i] = 0.0f;
    FA__ROLL
    for (int piece = 0; piece < FA__PIECES; piece++) {
        const int col = FA__LOOP(_column)(&team, piece);
        FA__UNROLL
        for (int i = 0; i < FA__LENGTH; i++) w[i] = p.gamma && col + i < cols ? fa_load_element(p.gamma, first + col + i, FA_WEIGHT_DTYPE) : 1.0f;
        FA__UNROLL
        for (int i = 0; i < FA__LENGTH; i += 4) FA__LOOP(_weight_slot)(kept, piece)[i / 4 * 32] = make_float4(w[i], w[i + 1], w[i + 2], w[i + 3]);
    }

    /* In turn i row i of the team is finished, and row i + stages - 1 started, where row i - 1 was. */
    FA__LOOP(_known) now, next;
    const int64_t begin = worker * p.rows.teams + mine;
    const int turns = (int)((p.rows.rows - worker * p.rows.teams + step - 1) / step); /* the same for all teams of a block */
    const int rows = begin + (int64_t)(turns - 1) * step < p.rows.rows ? turns : turns - 1;
    int here = 0;
    FA__LOOP(_peek)(&next, &p, begin, 0 < rows);
    for (int i = 1 - stages; i < turns; i++) {
        unsigned char *empty = slots + here * stage_bytes;
        const int started = i + stages - 1;
#if !FA__WHOLE /* others look at what a thread has copied */
        fa_sm80_copy_wait(stages - 2);
        if (team.threads > 32) fa_sm80_barrier();
        else fa_sm80_warp_barrier();
#endif
        if (started < turns) {
            const int64_t row = begin + (int64_t)started * step;
            enum { FA__AT_ONCE = FA__WHOLE ? 3 : 1 };
            _Pragma("unroll FA__AT_ONCE") for (int tensor = 0; tensor < 3; tensor++) {
                if (tensor == 2 && p.rows.tensors == 2) break;
                const FA__LOOP(_reading) r = FA__LOOP(_read)(tensor == 0 ? &p.sum : tensor == 1 ? &p.d_y : &p.d_sum, &p, row, first, started < rows ? cols : 0);
                FA__LOOP(_bring)(empty + tensor * p.rows.slot_bytes, &p, &r, &team);
            }
        }
        fa_sm80_copy_commit();
        here = here + 1 == stages ? 0 : here + 1;
        if (i < 0) continue;
        const FA__LOOP(_part) part = {begin + (int64_t)i * step, first, i < rows ? cols : 0};
        now = next;
        FA__LOOP(_peek)(&next, &p, part.row + step, i + 1 < rows);
#if FA__WHOLE
        fa_sm80_copy_wait(stages - 1);
#endif
        FA__LOOP(_sum_up)(&now, &p, &part, slots + here * stage_bytes, &team, shares, kept, sums, n, w);
        /* Addresses are made anew: kept, they would take registers that there are not. */
        fa_team same = team;
        same.thread = fa_sm80_opaque(team.thread);
        FA__LOOP(_write)(&now, &p, &part, slots + fa_sm80_opaque(here) * stage_bytes, &same, kept, n, w);
    }
    if (!p.sums.partial) return;

    if (FA__WHOLE && FA__PIECES == FA__SWEEP_FAST && p.rows.teams == 1) { /* 5 % for 4,096 rows, but code */
        FA__UNROLL
        for (int i = 0; i < FA__SUMS * FA__HELD; i += 4) {
            const int col = FA__LOOP(_column)(&team, i % FA__HELD / FA__LENGTH) + i % FA__LENGTH;
            if (col < cols) *FA__LOOP(_partial)(&p, worker, i, first + col) = make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
        }
        return;
    }
    /* The teams of a block add up theirs, in the room of the weights and slots, which nobody reads any more: of two tensors' slots
     * and one weight there is enough for two sums. */
    float4 *all = kept + threadIdx.x;
    fa_sm80_barrier();
    FA__UNROLL
    for (int i = 0; i < FA__SUMS * FA__HELD; i += 4) all[i / 4 * (int)blockDim.x] = make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
    fa_sm80_barrier();
    FA__ROLL
    for (int i = 4 * mine; i < FA__SUMS * FA__HELD; i += 4 * p.rows.teams) {
        const int col = FA__LOOP(_column)(&team, i % FA__HELD / FA__LENGTH) + i % FA__LENGTH;
        const float4 *one = kept + i / 4 * (int)blockDim.x + team.thread;
        float4 sum = *one;
        FA__ROLL
        for (int more = 1; more < p.rows.teams; more++) {
            one += p.rows.threads;
            sum = make_float4(sum.x + one->x, sum.y + one->y, sum.z + one->z, sum.w + one->w);
        }
        if (col < cols) *FA__LOOP(_partial)(&p, worker, i, first + col) = sum;
    }
#endif
}
#undef FA__LOOP
#undef FA__VARIANT
#undef FA__PIECES
#undef FA__WHOLE
