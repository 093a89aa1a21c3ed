/* sm80/reduce.h: reductions on GPUs: a thread's elements in several chains, lanes by exchange, warps and the blocks of a
 * cluster through shared memory, which every warp then reduces for itself. */
#include <fa/arch/sm90/cluster.h>

enum { FA__RED(_PARTS) = 32 * FA_BLOCKS }; /* warps of a cluster */
typedef struct FA__RED(_shared) {
    float part[2][3][FA__RED(_PARTS)]; /* of up to three values; two halves take turns */
} FA__RED(_shared);

FA__FN fa_team FA__RED(_team)(int threads) {
    fa_team team;
    team.threads = threads <= 32 ? threads : (int)blockDim.x;
    team.thread = threads <= 32 ? (int)threadIdx.x & (threads - 1) : (int)threadIdx.x;
    team.block = 0;
    team.blocks = 1;
    team.round = 0;
    return team;
}
/* The blocks of a cluster begin when they like, and one's shared memory is there only then: all say that they are here,
 * and wait for that as late as they can, in the first reduction. */
#define FA__UNMET 2
FA__FN fa_team FA__RED(_cluster)(int blocks) {
    fa_team team = FA__RED(_team)(64);
#if FA_BLOCKS > 1
    if (blocks > 1) {
        fa_sm90_cluster_arrive_relaxed();
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
/* ---- one thread's elements ---- */

enum { FA__RED(_CHAINS) = FA__CHAINS };
#define FA__REDUCE(FIRST, STEP, FOLD)                                  \
    float chain[FA__RED(_CHAINS)];                                     \
    FA__UNROLL                                                         \
    for (int c = 0; c < FA__RED(_CHAINS); c++) chain[c] = FIRST;       \
    FA__UNROLL                                                         \
    for (int i = 0; i < count; i++) {                                  \
        float *part = &chain[i % FA__RED(_CHAINS)];                    \
        STEP                                                           \
    }                                                                  \
    FA__UNROLL                                                         \
    for (int c = 1; c < FA__RED(_CHAINS); c++) { FOLD }                \
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
#undef FA__REDUCE

/* ---- lanes ---- */

FA__FN float FA__RED(__lanes_max)(float x, int lanes) {
    FA__UNROLL
    for (int step = 1; step < 32; step *= 2)
        if (step < lanes) x = fa__maxf(__shfl_xor_sync(0xFFFFFFFFu, x, step), x);
    return x;
}
FA__FN float FA__RED(__lanes_sum)(float x, int lanes) {
    FA__UNROLL
    for (int step = 1; step < 32; step *= 2)
        if (step < lanes) x += __shfl_xor_sync(0xFFFFFFFFu, x, step);
    return x;
}

/* ---- warps and blocks ---- */

/* The half of the shared memory whose turn it is: nobody reads it any more, because all have passed the barrier of the
 * reduction in the other half. */
FA__FN void FA__RED(__turn)(fa_team *team) {
#if FA_BLOCKS > 1
    if (team->round & FA__UNMET) {
        fa_sm90_cluster_wait();
        team->round = 0;
    }
#endif
    team->round ^= 1;
}

/* Puts a warp's value where every warp of the team will look. */
FA__FN void FA__RED(__publish)(float *parts, float x, const fa_team *team) {
    int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5;
#if FA_BLOCKS > 1
    if (team->blocks > 1) {
        float *mine = parts + team->block * ((int)blockDim.x >> 5) + warp;
        if (lane < team->blocks) *(float *)fa_sm90_cluster_address(mine, lane) = x;
        return;
    }
#endif
    (void)team;
    if (lane == 0) parts[warp] = x;
}
FA__FN void FA__RED(__meet)(const fa_team *team) {
#if FA_BLOCKS > 1
    if (team->blocks > 1) {
        fa_sm90_cluster_arrive();
        fa_sm90_cluster_wait();
        return;
    }
#endif
    (void)team;
    __syncthreads();
}
/* The values that a lane collects: one, or several of a cluster. */
#define FA__EACH_PART(i, team)                                                                     \
    _Pragma("unroll 1") for (int i = (int)threadIdx.x & 31, more = 1; more && i < (team)->threads >> 5; \
                             i += 32, more = FA_BLOCKS > 1)
FA__FN float FA__RED(__collect_max)(const float *parts, const fa_team *team) {
    float x = -INFINITY;
    FA__EACH_PART(i, team) x = fa__maxf(parts[i], x);
    return FA__RED(__lanes_max)(x, 32);
}

FA__FN float FA__RED(_max)(float x, fa_team *team, FA__RED(_shared) * shared) {
    x = FA__RED(__lanes_max)(x, team->threads);
    if (team->threads <= 32) return x;
    FA__RED(__turn)(team);
    FA__RED(__publish)(shared->part[team->round][0], x, team);
    FA__RED(__meet)(team);
    return FA__RED(__collect_max)(shared->part[team->round][0], team);
}
FA__FN float FA__RED(_sum)(float x, fa_team *team, FA__RED(_shared) * shared) {
    x = FA__RED(__lanes_sum)(x, team->threads);
    if (team->threads <= 32) return x;
    FA__RED(__turn)(team);
    FA__RED(__publish)(shared->part[team->round][0], x, team);
    FA__RED(__meet)(team);
    x = 0.0f;
    FA__EACH_PART(i, team) x += shared->part[team->round][0][i];
    return FA__RED(__lanes_sum)(x, 32);
}
FA__FN void FA__RED(_sum2)(float *a, float *b, fa_team *team, FA__RED(_shared) * shared) {
    float x = FA__RED(__lanes_sum)(*a, team->threads), y = FA__RED(__lanes_sum)(*b, team->threads);
    if (team->threads > 32) {
        FA__RED(__turn)(team);
        FA__RED(__publish)(shared->part[team->round][0], x, team);
        FA__RED(__publish)(shared->part[team->round][1], y, team);
        FA__RED(__meet)(team);
        x = y = 0.0f;
        FA__EACH_PART(i, team) x += shared->part[team->round][0][i], y += shared->part[team->round][1][i];
        x = FA__RED(__lanes_sum)(x, 32), y = FA__RED(__lanes_sum)(y, 32);
    }
    *a = x;
    *b = y;
}

/* Of the lanes' moments, those of all of them. An empty lane has the mean 0, which must not be in the squares. */
FA__FN void FA__RED(__lanes_moments)(float *count, float *mean, float *squares, int lanes) {
    float total = FA__RED(__lanes_sum)(*count, lanes), sum = FA__RED(__lanes_sum)(*count * *mean, lanes);
    float middle = total > 0.0f ? sum / total : 0.0f, off = *mean - middle;
    *squares = FA__RED(__lanes_sum)(*count > 0.0f ? fmaf(*count * off, off, *squares) : 0.0f, lanes);
    *count = total;
    *mean = middle;
}
FA__FN void FA__RED(_moments)(float *count, float *mean, float *squares, fa_team *team, FA__RED(_shared) * shared) {
    FA__RED(__lanes_moments)(count, mean, squares, team->threads);
    if (team->threads <= 32) return;
    FA__RED(__turn)(team);
    float(*part)[FA__RED(_PARTS)] = shared->part[team->round];
    FA__RED(__publish)(part[0], *count, team);
    FA__RED(__publish)(part[1], *mean, team);
    FA__RED(__publish)(part[2], *squares, team);
    FA__RED(__meet)(team);
    *count = *mean = *squares = 0.0f;
    FA__EACH_PART(i, team) FA__RED(_merge)(count, mean, squares, part[0][i], part[1][i], part[2][i]);
    FA__RED(__lanes_moments)(count, mean, squares, 32);
}

/* 2^((max - largest) * scale), and 0 for an empty state beside another empty one. */
FA__FN float FA__RED(__weight)(float max, float largest, float scale_log2) {
    return max == -INFINITY ? 0.0f : fa__exp2((max - largest) * scale_log2);
}
FA__FN void FA__RED(_softmax)(float *max, float *sum, float scale_log2, fa_team *team, FA__RED(_shared) * shared) {
    float own = *max, largest = FA__RED(__lanes_max)(own, team->threads);
    float total = FA__RED(__lanes_sum)(*sum * FA__RED(__weight)(own, largest, scale_log2), team->threads);
    if (team->threads > 32) {
        float part = largest;
        FA__RED(__turn)(team);
        FA__RED(__publish)(shared->part[team->round][0], part, team);
        FA__RED(__publish)(shared->part[team->round][1], total, team);
        FA__RED(__meet)(team);
        largest = FA__RED(__collect_max)(shared->part[team->round][0], team);
        total = 0.0f;
        FA__EACH_PART(i, team)
            total += shared->part[team->round][1][i] * FA__RED(__weight)(shared->part[team->round][0][i], largest, scale_log2);
        total = FA__RED(__lanes_sum)(total, 32);
    }
    *max = largest;
    *sum = total;
}
#undef FA__EACH_PART
#undef FA__UNMET
