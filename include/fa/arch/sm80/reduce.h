/* sm80/reduce.h: reductions on GPUs: a thread's elements in several chains, lanes by exchange, warps and the blocks
 * of a cluster through shared memory, which every warp then reduces for itself. */
#include <fa/arch/sm90/cluster.h>
#include <fa/arch/sm90/ops.h>

/* Whether there may be clusters: not in code for older GPUs. */
#if FA_BLOCKS > 1 && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900)
#define FA__CLUSTERS 1
#else
#define FA__CLUSTERS 0
#endif

#include <fa/arch/sm80/reduce_shared.h>

FA__FN fa_team FA__RED(_team)(int threads) {
    fa_team team;
    team.threads = threads <= 32 ? threads : (int)blockDim.x;
    team.thread = threads <= 32 ? (int)threadIdx.x & (threads - 1) : (int)threadIdx.x;
    team.block = 0;
    team.blocks = 1;
    team.round = team.whole = team.phase = 0;
    return team;
}
/* The blocks of a cluster do not start at the same time, and the shared memory of one exists only once it has
 * started. So each says that it is here and that its barriers are initialised (NAME__greet, or else the first
 * reduction), and waits for the others only in the first reduction. */
#define FA__UNMET (1 << 30)
#define FA__GREETED (1 << 29)
FA__FN fa_team FA__RED(_cluster)(int blocks) {
    fa_team team = FA__RED(_team)(64); /* a block, as for any number above 32 */
#if FA__CLUSTERS
    if (blocks > 1) {
        team.block = fa_sm90_cluster_rank();
        team.blocks = blocks;
        team.thread += team.block * (int)blockDim.x;
        team.threads *= blocks;
        team.round = FA__UNMET;
    }
#endif
    (void)blocks;
    return team;
}
FA__FN void FA__RED(__greet)(fa_team *team, FA__RED(_shared) * shared) {
#if FA__CLUSTERS
    if (!(team->round & FA__UNMET) || team->round & FA__GREETED) return;
    if (threadIdx.x == 0) {
        fa_sm90_mbarrier_init(fa_sm80_shared_address(&shared->sent[0]), 1);
        fa_sm90_mbarrier_init(fa_sm80_shared_address(&shared->sent[1]), 1);
        fa_sm90_mbarrier_fence();
    }
    fa_sm90_cluster_arrive_relaxed(); /* the fence before it orders the initialisation, and there is nothing else to order */
    team->round |= FA__GREETED;
#endif
    (void)team, (void)shared;
}

/* ---- one thread's elements ---- */

/* What the sums of a row's pieces are added in (of which a thread has a part), and the factor that makes a sum
 * relative to a base that is higher by -`down`. */
typedef float FA__RED(__total);
FA__FN float FA__RED(__rebased)(float down, float scale_log2) { return fa__exp2(down * scale_log2); }

#define FA__REDUCE(FIRST, STEP, FOLD)                                  \
    float chain[FA__CHAINS];                                           \
    FA__UNROLL                                                         \
    for (int c = 0; c < FA__CHAINS; c++) chain[c] = FIRST;             \
    FA__UNROLL                                                         \
    for (int i = 0; i < count; i++) {                                  \
        float *part = &chain[i % FA__CHAINS];                          \
        STEP                                                           \
    }                                                                  \
    FA__UNROLL                                                         \
    for (int c = 1; c < FA__CHAINS; c++) { FOLD }                      \
    return chain[0];

FA__FN float FA__RED(_max_of)(const float *x, int count, float start) {
    FA__REDUCE(start, *part = fa__maxf(x[i], *part);, chain[0] = fa__maxf(chain[c], chain[0]);)
}
FA__FN float FA__RED(_sum_of)(const float *x, int count) {
    FA__REDUCE(0.0f, *part += x[i];, chain[0] += chain[c];)
}
FA__FN float FA__RED(_dot_of)(const float *x, const float *y, int count) {
    FA__REDUCE(0.0f, *part = fmaf(x[i], y[i], *part);, chain[0] += chain[c];)
}
FA__FN float FA__RED(_squares_of)(const float *x, int count, float center) {
    FA__REDUCE(0.0f, *part = fmaf(x[i] - center, x[i] - center, *part);, chain[0] += chain[c];)
}
FA__FN float FA__RED(_exp_of)(float *x, int count, float base, float scale_log2) {
    FA__REDUCE(0.0f, x[i] = fa__exp2((x[i] - base) * scale_log2); *part += x[i];, chain[0] += chain[c];)
}
FA__FN float FA__RED(_exp_sum_of)(const float *x, int count, float base, float scale_log2) {
    FA__REDUCE(0.0f, *part += fa__exp2((x[i] - base) * scale_log2);, chain[0] += chain[c];)
}
/* One fused operation before the exponential; what the rounding of `offset` loses is in a factor. Where that would
 * be much, the base is subtracted before. */
#define FA__EXP_NEAR
FA__FN float FA__RED(__exp_chains)(float *x, int count, float offset, float scale_log2) {
    FA__REDUCE(0.0f, x[i] = fa__exp2(fmaf(x[i], scale_log2, -offset)); *part += x[i];, chain[0] += chain[c];)
}
FA__FN float FA__RED(__exp_near)(float *to, const float *x, int count, float base, float scale_log2, float *factor) {
    float offset = base * scale_log2;
    *factor = fa__exp2(-fmaf(base, scale_log2, -offset));
    FA__UNROLL
    for (int i = 0; i < count; i++) to[i] = x[i];
    if (!(fabsf(offset) < FA__OFFSET_MOST)) {
        FA__UNROLL
        for (int i = 0; i < count; i++) to[i] -= base;
        offset = 0.0f, *factor = 1.0f;
    }
    return FA__RED(__exp_chains)(to, count, offset, scale_log2) * *factor;
}
#undef FA__REDUCE

/* ---- warps and blocks ---- */

/* The values of a warp: [0] is the half that a pointer to them points to. */
typedef float FA__RED(__values)[2][3];
/* The half of the shared memory whose turn it is: nobody reads it any more, because all have sent their part of the
 * reduction in the other half, after they had read this one. */
FA__FN FA__RED(__values) * FA__RED(__turn)(fa_team *team, FA__RED(_shared) * shared) {
#if FA__CLUSTERS
    if (team->round & FA__UNMET) {
        FA__RED(__greet)(team, shared);
        fa_sm90_cluster_wait();
        team->round = 0;
    }
    if (team->blocks > 1) fa_sm80_warp_barrier(); /* what each lane has read comes before what the others send now: exchanges order no memory */
#endif
    team->round++;
    return (FA__RED(__values) *)shared->part[0][team->round & 1];
}

#if FA__CLUSTERS
/* Sends a value to its place in a block of the cluster, which may be its own. */
FA__FN void FA__RED(__send)(float *to, float x, const fa_team *team, FA__RED(_shared) * shared, int block) {
    fa_sm90_send(fa_sm80_shared_address(to), x, fa_sm80_shared_address(&shared->sent[team->round & 1]), block);
}
#endif
/* Returns when all have published so many values. In a cluster these are all that a block is sent: after its last
 * reduction it may end before the others do. */
FA__FN void FA__RED(__meet)(const fa_team *team, FA__RED(_shared) * shared, int values) {
#if FA__CLUSTERS
    if (team->blocks > 1) {
        uint32_t sent = fa_sm80_shared_address(&shared->sent[team->round & 1]);
        if (threadIdx.x == 0) fa_sm90_mbarrier_expect(sent, values * (team->threads >> 5) * (int)sizeof(float));
        fa_sm90_mbarrier_wait_cluster(sent, (team->round - 1) >> 1 & 1);
        return;
    }
#endif
    (void)team, (void)shared, (void)values;
    fa_sm80_barrier();
}
/* Puts a warp's values where every warp of the team will look, and waits for all others': in a cluster, into each
 * block's shared memory, where their bytes are counted. (A barrier of the cluster orders all memory, and took more
 * of the time of long rows the more blocks shared one.) */
FA__FN void FA__RED(__publish)(FA__RED(__values) * part, const float *x, int values, const fa_team *team, FA__RED(_shared) * shared) {
    const int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5;
    FA__UNROLL
    for (int i = 0; i < values; i++) {
#if FA__CLUSTERS
        if (team->blocks > 1) {
            float *to = &part[team->block * ((int)blockDim.x >> 5) + warp][0][i];
            if (lane < team->blocks) FA__RED(__send)(to, x[i], team, shared, lane);
            continue;
        }
#endif
        if (lane == 0) part[warp][0][i] = x[i];
    }
    FA__RED(__meet)(team, shared, values);
}
/* The values that a lane collects: one, or several of a cluster. */
#define FA__EACH_PART(i, team)                                                                     \
    _Pragma("unroll 1") for (int i = (int)threadIdx.x & 31, more = 1; more && i < (team)->threads >> 5; \
                             i += 32, more = FA__CLUSTERS)
FA__FN float FA__RED(__collect_max)(const FA__RED(__values) * part, const fa_team *team) {
    float x = -INFINITY;
    FA__EACH_PART(i, team) x = fa__maxf(part[i][0][0], x);
    return fa_sm80_row_max(x, 32);
}

FA__FN float FA__RED(_max)(float x, fa_team *team, FA__RED(_shared) * shared) {
    x = fa_sm80_row_max(x, team->threads);
    if (team->threads <= 32) return x;
    FA__RED(__values) *part = FA__RED(__turn)(team, shared);
    FA__RED(__publish)(part, &x, 1, team, shared);
    return FA__RED(__collect_max)(part, team);
}
FA__FN float FA__RED(_sum)(float x, fa_team *team, FA__RED(_shared) * shared) {
    x = fa_sm80_row_sum(x, team->threads);
    if (team->threads <= 32) return x;
    FA__RED(__values) *part = FA__RED(__turn)(team, shared);
    FA__RED(__publish)(part, &x, 1, team, shared);
    x = 0.0f;
    FA__EACH_PART(i, team) x += part[i][0][0];
    return fa_sm80_row_sum(x, 32);
}
/* The sum over the lanes of a warp that are in the caller's team. */
FA__FN float FA__RED(_lanes_sum)(float x, const fa_team *team) {
    FA__UNROLL
    for (int step = 1; step < FA__RED(_LANES); step *= 2) { /* no branches: latency counts */
        const float other = fa_sm80_shuffle_f32(x, step);
        x = step < team->threads ? x + other : x;
    }
    return x;
}
/* In a loop: few teams within warps need two sums, and they are in no hurry. */
FA__FN void FA__RED(__lanes_sum2)(float *x, float *y, int lanes) {
    FA__ROLL
    for (int step = 1; step < lanes; step *= 2) *x += fa_sm80_shuffle_f32(*x, step), *y += fa_sm80_shuffle_f32(*y, step);
}
/* Even lanes add up the one, odd lanes the other: half the exchanges. */
FA__FN void FA__RED(_sum2)(float *a, float *b, fa_team *team, FA__RED(_shared) * shared) {
    const int lane = (int)threadIdx.x & 31, odd = lane & 1, warp = (int)threadIdx.x >> 5;
    if (team->threads <= 32) {
        FA__RED(__lanes_sum2)(a, b, team->threads);
        return;
    }
    FA__RED(__values) *part = FA__RED(__turn)(team, shared);
    float mine = (odd ? *b : *a) + fa_sm80_shuffle_f32(odd ? *a : *b, 1);
    FA__UNROLL
    for (int step = 2; step < 32; step *= 2) mine += fa_sm80_shuffle_f32(mine, step);
#if FA__CLUSTERS
    if (team->blocks > 1) {
        if (lane < 2 * team->blocks) FA__RED(__send)(&part[team->thread >> 5][0][odd], mine, team, shared, lane >> 1);
    } else
#endif
        if (lane < 2) part[warp][0][odd] = mine;
    FA__RED(__meet)(team, shared, 2);
    mine = 0.0f;
    FA__ROLL
    for (int i = lane >> 1; i < team->threads >> 5; i += 16) mine += part[i][0][odd];
    FA__UNROLL
    for (int step = 2; step < 32; step *= 2) mine += fa_sm80_shuffle_f32(mine, step);
    const float other = fa_sm80_shuffle_f32(mine, 1);
    *a = odd ? other : mine, *b = odd ? mine : other;
}

/* Of the lanes' moments, those of all of them. An empty lane has the mean 0, which must not be in the squares. */
FA__FN void FA__RED(__lanes_moments)(float *count, float *mean, float *squares, int lanes) {
    float total = fa_sm80_row_sum(*count, lanes), sum = fa_sm80_row_sum(*count * *mean, lanes);
    float middle = total > 0.0f ? sum / total : 0.0f, off = *mean - middle;
    *squares = fa_sm80_row_sum(*count > 0.0f ? fmaf(*count * off, off, *squares) : 0.0f, lanes);
    *count = total;
    *mean = middle;
}
/* Of the warps' moments, those of the team. Sums are taken of differences from the mean of the first warp that has
 * numbers (of the first of all, if N is `known`). With n numbers in that warp and N in all, N (mean - first mean)^2,
 * which is subtracted in the end, is at most N / n times what remains. `inverse` is 1 / N if that is `known`; else
 * *count becomes N. */
FA__FN void FA__RED(__merge_warps)(float *count, float *mean, float *squares, fa_team *team, FA__RED(_shared) * shared, const int known,
                                   float inverse) {
    if (team->threads <= 32) return;
    FA__RED(__values) *part = FA__RED(__turn)(team, shared);
    const float mine[] = {*count, *mean, *squares};
    FA__RED(__publish)(part, mine, 3, team, shared);
    int of = 0;
    FA__ROLL
    while (!known && of + 1 < team->threads >> 5 && !(part[of][0][0] > 0.0f)) of++;
    float first = part[of][0][1], total = 0.0f, sum = 0.0f, q = 0.0f;
    if (!(fabsf(first) < INFINITY)) first = 0.0f; /* the mean is infinite, not NaN, if a number is */
    FA__EACH_PART(i, team) {
        float n = part[i][0][0], off = n > 0.0f ? part[i][0][1] - first : 0.0f;
        total += n, sum += n * off, q += fmaf(n * off, off, part[i][0][2]);
    }
    float off;
    if (known) {
        sum = FA__RED(_lanes_sum)(sum, team), q = FA__RED(_lanes_sum)(q, team);
        off = sum * inverse;
    } else {
        total = fa_sm80_row_sum(total, 32), sum = fa_sm80_row_sum(sum, 32), q = fa_sm80_row_sum(q, 32);
        off = total > 0.0f ? sum * fa__reciprocal(total) : 0.0f;
        *count = total;
    }
    *mean = first + off;
    q = fmaf(-sum, off, q); /* fused, so that infinite squares of numbers remain, where the product alone is infinite, too */
    *squares = q < 0.0f ? 0.0f : q; /* NaN remains */
}
FA__FN void FA__RED(_warps_moments)(float *count, float *mean, float *squares, fa_team *team, FA__RED(_shared) * shared) {
    FA__RED(__merge_warps)(count, mean, squares, team, shared, 0, 0.0f);
}
/* The same for a team of `1 / inverse` numbers. */
FA__FN void FA__RED(__warps_moments_of)(float inverse, float count, float *mean, float *squares, fa_team *team, FA__RED(_shared) * shared) {
    FA__RED(__merge_warps)(&count, mean, squares, team, shared, 1, inverse);
}
FA__FN void FA__RED(_moments)(float *count, float *mean, float *squares, fa_team *team, FA__RED(_shared) * shared) {
    FA__RED(__lanes_moments)(count, mean, squares, team->threads);
    FA__RED(_warps_moments)(count, mean, squares, team, shared);
}

/* 2^((max - largest) * scale), and 0 for an empty state beside another empty one. */
FA__FN float FA__RED(__weight)(float max, float largest, float scale_log2) {
    return max == -INFINITY ? 0.0f : fa__exp2((max - largest) * scale_log2);
}
FA__FN void FA__RED(_softmax)(float *max, float *sum, float scale_log2, fa_team *team, FA__RED(_shared) * shared) {
    float own = *max, largest = fa_sm80_row_max(own, team->threads);
    float total = fa_sm80_row_sum(*sum * FA__RED(__weight)(own, largest, scale_log2), team->threads);
    if (team->threads > 32) {
        FA__RED(__values) *part = FA__RED(__turn)(team, shared);
        const float mine[] = {largest, total};
        FA__RED(__publish)(part, mine, 2, team, shared);
        largest = FA__RED(__collect_max)(part, team);
        total = 0.0f;
        FA__EACH_PART(i, team) total += part[i][0][1] * FA__RED(__weight)(part[i][0][0], largest, scale_log2);
        total = fa_sm80_row_sum(total, 32);
    }
    *max = largest;
    *sum = total;
}
#undef FA__EACH_PART
#undef FA__CLUSTERS
#undef FA__UNMET
#undef FA__GREETED
