/* cpu/reduce.h: a core has the whole row: reductions of an array in vectors, in several chains that hide their
 * latency. */

typedef struct FA__RED(_shared) {
    char none;
} FA__RED(_shared);

FA__FN fa_team FA__RED(_team)(int threads) {
    fa_team team = {0, 1, 0, 1, 0, 0, 0};
    (void)threads;
    return team;
}
FA__FN fa_team FA__RED(_cluster)(int blocks) { return FA__RED(_team)(blocks); }

/* What the sums of a row's pieces are added in, and the factor that makes a sum relative to a base that is higher by
 * -`down`: pieces may be so many that what rounding loses of a float with each of them is a lot together. */
typedef double FA__RED(__total);
FA__FN double FA__RED(__rebased)(float down, float scale_log2) { return down == 0.0f ? 1.0 : exp2((double)down * (double)scale_log2); }

/* Four vectors at a time, what is left one at a time: NEXT(chain, i) takes in the vector at i, FOLD joins two
 * chains. After a run they are joined to `all`. */
#define FA__REDUCE_ROUND(NEXT) NEXT(c0, i) NEXT(c1, i + FA__FLOATS) NEXT(c2, i + 2 * FA__FLOATS) NEXT(c3, i + 3 * FA__FLOATS)
#define FA__REDUCE_JOIN(FOLD) FOLD(c0, c1) FOLD(c2, c3) FOLD(c0, c2) FOLD(all, c0)
#define FA__REDUCE(FIRST, NEXT, FOLD)                                                                            \
    enum { FA__FLOATS = FA__CPU_LANES(FA__ISA), FA__ROUND = 4 * FA__FLOATS, FA__RUN = FA__CPU_RUN * FA__ROUND }; \
    const FA__CPU_OP(vec) first = FA__CPU_OP(splat)(FIRST);                                                      \
    FA__CPU_OP(vec) all = first, c0 = first, c1 = first, c2 = first, c3 = first;                                 \
    int i = 0;                                                                                                   \
    for (; count - i >= FA__RUN; c0 = c1 = c2 = c3 = first) {                                                    \
        for (const int end = i + FA__RUN; i < end; i += FA__ROUND) { FA__REDUCE_ROUND(NEXT) }                    \
        FA__REDUCE_JOIN(FOLD)                                                                                    \
    }                                                                                                            \
    for (; i + FA__ROUND <= count; i += FA__ROUND) { FA__REDUCE_ROUND(NEXT) }                                    \
    for (; i + FA__FLOATS <= count; i += FA__FLOATS) { NEXT(c0, i) }                                             \
    FA__REDUCE_JOIN(FOLD)

#define FA__MAX_NEXT(c, at) c = FA__CPU_OP(max)(*(const FA__CPU_OP(any) *)(x + (at)), c);
#define FA__MAX_FOLD(a, b) a = FA__CPU_OP(max)(a, b);
#define FA__SUM_FOLD(a, b) a += b;

/* The elements of a vector, halves joined with halves: of 16 bytes at a time as long as there are some, since a loop
 * over elements is a loop. */
FA__FN float FA__RED(__join)(FA__CPU_OP(vec) v, const int largest) {
    fa_cpu_vec_0 part[FA__CPU_LANES(FA__ISA) / 4];
    memcpy(part, &v, sizeof part);
    FA__UNROLL
    for (int half = FA__CPU_LANES(FA__ISA) / 8; half > 0; half /= 2)
        FA__UNROLL
        for (int i = 0; i < half; i++) {
            if (largest) part[i] = fa_cpu_max_0(part[i + half], part[i]);
            else part[i] += part[i + half];
        }
    const float a = part[0][0], b = part[0][1], c = part[0][2], d = part[0][3];
    return largest ? fa__maxf(fa__maxf(d, b), fa__maxf(c, a)) : (a + c) + (b + d);
}

FA__FN float FA__RED(_max_of)(const float *x, int count, float start) {
    FA__REDUCE(start, FA__MAX_NEXT, FA__MAX_FOLD)
    return FA__RED(__join)(all, 1);
}
FA__FN float FA__RED(_sum_of)(const float *x, int count) {
#define FA__NEXT(c, at) c += *(const FA__CPU_OP(any) *)(x + (at));
    FA__REDUCE(0.0f, FA__NEXT, FA__SUM_FOLD)
#undef FA__NEXT
    return FA__RED(__join)(all, 0);
}
FA__FN float FA__RED(_dot_of)(const float *x, const float *y, int count) {
#define FA__NEXT(c, at) c = FA__CPU_OP(fma)(*(const FA__CPU_OP(any) *)(x + (at)), *(const FA__CPU_OP(any) *)(y + (at)), c);
    FA__REDUCE(0.0f, FA__NEXT, FA__SUM_FOLD)
#undef FA__NEXT
    return FA__RED(__join)(all, 0);
}
FA__FN float FA__RED(_squares_of)(const float *x, int count, float center) {
    FA__CPU_OP(vec) centers = FA__CPU_OP(splat)(center);
#define FA__NEXT(c, at) { FA__CPU_OP(vec) d = *(const FA__CPU_OP(any) *)(x + (at)) - centers; c = FA__CPU_OP(fma)(d, d, c); }
    FA__REDUCE(0.0f, FA__NEXT, FA__SUM_FOLD)
#undef FA__NEXT
    return FA__RED(__join)(all, 0);
}
#define FA__EXP(at) FA__CPU_OP(exp2)((*(const FA__CPU_OP(any) *)(x + (at)) - bases) * scales)
FA__FN float FA__RED(_exp_to)(float *to, const float *x, int count, float base, float scale_log2) {
    FA__CPU_OP(vec) bases = FA__CPU_OP(splat)(base), scales = FA__CPU_OP(splat)(scale_log2);
#define FA__NEXT(c, at) { FA__CPU_OP(vec) e = FA__EXP(at); *(FA__CPU_OP(any) *)(to + (at)) = e; c += e; }
    FA__REDUCE(0.0f, FA__NEXT, FA__SUM_FOLD)
#undef FA__NEXT
    return FA__RED(__join)(all, 0);
}
FA__FN float FA__RED(_exp_of)(float *x, int count, float base, float scale_log2) {
    return FA__RED(_exp_to)(x, x, count, base, scale_log2);
}
FA__FN float FA__RED(_exp_sum_of)(const float *x, int count, float base, float scale_log2) {
    FA__CPU_OP(vec) bases = FA__CPU_OP(splat)(base), scales = FA__CPU_OP(splat)(scale_log2);
#define FA__NEXT(c, at) c += FA__EXP(at);
    FA__REDUCE(0.0f, FA__NEXT, FA__SUM_FOLD)
#undef FA__NEXT
    return FA__RED(__join)(all, 0);
}
#define FA__EXP_TO
#undef FA__EXP
#undef FA__MAX_NEXT
#undef FA__MAX_FOLD
#undef FA__SUM_FOLD
#undef FA__REDUCE
#undef FA__REDUCE_ROUND
#undef FA__REDUCE_JOIN

FA__FN float FA__RED(_max)(float x, fa_team *team, FA__RED(_shared) * shared) {
    (void)team, (void)shared;
    return x;
}
FA__FN float FA__RED(_sum)(float x, fa_team *team, FA__RED(_shared) * shared) {
    (void)team, (void)shared;
    return x;
}
FA__FN void FA__RED(_softmax)(float *max, float *sum, float scale_log2, fa_team *team, FA__RED(_shared) * shared) {
    (void)max, (void)sum, (void)scale_log2, (void)team, (void)shared;
}
FA__FN void FA__RED(_sum2)(float *a, float *b, fa_team *team, FA__RED(_shared) * shared) {
    (void)a, (void)b, (void)team, (void)shared;
}
FA__FN void FA__RED(_moments)(float *count, float *mean, float *squares, fa_team *team, FA__RED(_shared) * shared) {
    (void)count, (void)mean, (void)squares, (void)team, (void)shared;
}
