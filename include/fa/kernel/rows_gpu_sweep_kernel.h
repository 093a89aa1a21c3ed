/* rows_gpu_sweep_kernel.h: the sweep of the backward over rows of whole vectors of 16 bytes on such boundaries, or
 * of words on theirs (norm_sweep.h: _NARROWS), by threads that have FA__PIECES times 16 bytes of each tensor of a
 * row. */
#define FA__DIRECTIONS FA__ROWS_BACKWARD
#define FA_COLS FA__ROW_COLS(16)
#define FA_THREADS 1
#define FA_HOLD FA_SHARED
#define FA_PIECES FA__PIECES
#define FA_WHOLE 2
#define FA__EVEN 1
#define FA__MOST_WARPS (FA__SWEEP_THREADS / 32)
#include <fa/kernel/rows_gpu_variant.h>

#if !FA__HOST_PASS
/* The caller's team in its block, its worker, and the team's first row. On 9.0 they are computed where they are
 * needed: kept, they would take registers that are not there. (For others the assembler finds room.) */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
#define FA__ANEW(x) fa_sm80_opaque(x)
#else
#define FA__ANEW(x) (x)
#endif
FA__FN int FA__LOOP(_mine)(const FA__PARAMS *p) { return FA__ANEW((int)threadIdx.x) >> p->rows.team_bits; }
FA__FN int FA__LOOP(_worker)(const FA__PARAMS *p) { return FA__CLUSTER_OF(FA__ANEW((int)blockIdx.x), *p); }
FA__FN int FA__LOOP(_begin)(const FA__PARAMS *p) { return FA__LOOP(_worker)(p) * p->rows.teams + FA__LOOP(_mine)(p); }

/* Where a worker's sums go, from a thread's number `i` on. There is room to a multiple of 16 columns. */
FA__FN float4 *FA__LOOP(_partial)(const FA__PARAMS *p, int64_t worker, int i, int64_t col) {
    const int which = i / (FA__PIECES * FA__LOOP(_row_LENGTH));
    return (float4 *)(p->sums.partial + (worker * FA__SUMS + which) * p->sums.pitch + col);
}
#endif
FA__KERNEL(_backward, FA__SWEEP_THREADS, 1) {
#if !FA__HOST_PASS
    enum { FA__LENGTH = FA__LOOP(_row_LENGTH), FA__HELD = FA__PIECES * FA__LENGTH };
    float sums[FA__SUMS * FA__HELD], n[FA__HELD], w[FA__HELD];
    FA__LOOP(_reduce_shared) *shared = (FA__LOOP(_reduce_shared) *)fa__shared;
    float4 *kept = (float4 *)(fa__shared + p.sums.scratch_bytes);
    unsigned char *slot0 = (unsigned char *)kept + p.sums.weights_bytes;
    fa_team team = FA__TEAM_OF(p);
    FA__LOOP(_reduce__greet)(&team, shared);
    const int stages = p.sums.stages, stage_bytes = p.rows.tensors * p.rows.slot_bytes;
    const int cols = (int)p.rows.cols, step = (int)p.sums.workers * p.rows.teams;
    FA__UNROLL
    for (int i = 0; i < FA__SUMS * FA__HELD; i++) sums[i] = 0.0f;
    FA__ROLL
    for (int piece = 0; piece < FA__PIECES; piece++) {
        const int col = FA__LOOP(_column)(&team, piece);
        FA__UNROLL
        for (int i = 0; i < FA__LENGTH; i++) w[i] = p.gamma && col + i < cols ? fa_load_element(p.gamma, col + i, FA_WEIGHT_DTYPE) : 1.0f;
        FA__UNROLL
        for (int i = 0; i < FA__LENGTH; i += 4) FA__LOOP(_weight_slot)(kept, piece)[i / 4 * 32] = make_float4(w[i], w[i + 1], w[i + 2], w[i + 3]);
    }

    /* In iteration i row i of the team is finished, and row i + stages - 1 is started, in the stage that row i - 1
     * had. */
    FA__LOOP(_known) now, next;
    const int before = FA__LOOP(_worker)(&p) * p.rows.teams; /* rows of other workers */
    const int turns = (int)((p.rows.rows - before + step - 1) / step); /* the same for all teams of a block */
    const int rows = FA__LOOP(_begin)(&p) + (int64_t)(turns - 1) * step < p.rows.rows ? turns : turns - 1;
    int here = 0;
    FA__LOOP(_peek)(&next, &p, FA__LOOP(_begin)(&p), 0 < rows);
    for (int i = 1 - stages; i < turns; i++) {
        unsigned char *empty = slot0 + here * stage_bytes;
        const int started = i + stages - 1;
        if (started < turns) {
            const int64_t row = FA__LOOP(_begin)(&p) + (int64_t)started * step;
            FA__UNROLL
            for (int tensor = 0; tensor < 3; tensor++) {
                if (tensor == 2 && p.rows.tensors == 2) break;
                const FA__LOOP(_line) from = FA__LOOP(_line_of)(tensor == 0 ? &p.sum : tensor == 1 ? &p.d_y : &p.d_sum, row, started < rows ? cols : 0);
                FA__LOOP(_bring)(empty + tensor * p.rows.slot_bytes, &p, &from, &team);
            }
        }
        fa_sm80_copy_commit();
        here = here + 1 == stages ? 0 : here + 1;
        if (i < 0) continue;
        const FA__LOOP(_team_row) own = {FA__LOOP(_begin)(&p) + (int64_t)i * step, i < rows ? cols : 0};
        now = next;
        FA__LOOP(_peek)(&next, &p, own.row + step, i + 1 < rows);
        fa_sm80_copy_wait(stages - 1);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
        team.blocks = p.rows.blocks; /* as it is, but known to be a constant; so is the next */
        team.threads = p.rows.threads * p.rows.blocks;
#endif
        FA__LOOP(_sum_up)(&now, &p, slot0 + here * stage_bytes, &team, shared, kept, sums, n, w);
        /* Addresses are recomputed: kept, they would take registers that are not there. */
        fa_team same = team;
        same.thread = fa_sm80_opaque(team.thread);
        FA__LOOP(_write)(&now, &p, &own, slot0 + fa_sm80_opaque(here) * stage_bytes, &same, kept, n, w);
    }
    if (!p.sums.partial) return;

    if (FA__PIECES == FA__SWEEP_FAST && p.rows.teams == 1) { /* 5 % faster for 4,096 rows, but more code */
        FA__UNROLL
        for (int i = 0; i < FA__SUMS * FA__HELD; i += 4) {
            const int col = FA__LOOP(_column)(&team, i % FA__HELD / FA__LENGTH) + i % FA__LENGTH;
            if (col < cols)
                *FA__LOOP(_partial)(&p, FA__LOOP(_worker)(&p), i, col) =
                    make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
        }
        return;
    }
    /* The teams of a block add up theirs, in the room of the weights and slots, which nobody reads any more: that of
     * two tensors' slots and one weight is enough for two sums. */
    float4 *all = kept + threadIdx.x;
    fa_sm80_barrier();
    FA__UNROLL
    for (int i = 0; i < FA__SUMS * FA__HELD; i += 4) all[i / 4 * (int)blockDim.x] = make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
    fa_sm80_barrier();
    FA__ROLL
    for (int i = 4 * FA__LOOP(_mine)(&p); i < FA__SUMS * FA__HELD; i += 4 * p.rows.teams) {
        const int col = FA__LOOP(_column)(&team, i % FA__HELD / FA__LENGTH) + i % FA__LENGTH;
        const float4 *one = kept + i / 4 * (int)blockDim.x + ((int)threadIdx.x & ((1 << p.rows.team_bits) - 1));
        float4 sum = *one;
        FA__ROLL
        for (int more = 1; more < p.rows.teams; more++) {
            one += p.rows.threads;
            sum = make_float4(sum.x + one->x, sum.y + one->y, sum.z + one->z, sum.w + one->w);
        }
        if (col < cols) *FA__LOOP(_partial)(&p, FA__LOOP(_worker)(&p), i, col) = sum;
    }
#else
    (void)p;
#endif
}
#undef FA__LOOP
#undef FA__VARIANT
#undef FA__PIECES
#undef FA__ANEW
