/* rope.c: fa/rope.h against float64: random shapes and layouts, tables and bases, positions up to the largest,
 * gradients by finite differences, errors, determinism. The same source runs on the CPU and, compiled by nvcc, on
 * the GPU. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <limits.h>

#include <fa/fa.h>

#define FA_NAME r_f32
#define FA_DTYPE FA_F32
#include <fa/rope.h>

#define FA_NAME r_f16
#define FA_DTYPE FA_F16
#define FA_API FA_EXTERN
#include <fa/rope.h>

#define FA_NAME r
#define FA_DTYPE FA_BF16
#define FA_SUB _bf16
#include <fa/rope.h>
#undef FA_NAME
#undef FA_DTYPE

#if defined(__CUDACC__)
/* An instance for the CPU beside those for the GPU. */
#define FA_NAME r_host
#define FA_DTYPE FA_F32
#define FA_ARCH FA_CPU
#include <fa/rope.h>
#endif

/* Tensors, a row a head of a token; tables; positions, which are ints; and what was in the tensors before. */
enum { Q, K, Q_OUT, K_OUT, D_Q, D_K, TENSORS, COS = TENSORS, SIN, POSITIONS, BEFORE, MATRICES = BEFORE + TENSORS };
static const char *const names[] = {"q", "k", "q_out", "k_out", "d_q", "d_k"};
typedef struct form {
    int batch, heads, heads_kv, seqlen, head_dim, rotary_dim, interleaved;
    int table, table_rows; /* 1: cos and sin; the rows that the kernel is told of */
    int table_tail;        /* floats behind them, and so where they begin */
    double base;
    int positions, offset; /* 1: an array, of positions around `offset` */
    int bshd[TENSORS], gap[MATRICES], tail[MATRICES];
    int in_place, threads;
} form;

#define ARGS fa_rope_args
#define NO_ROWS
#define INTACT intact
#define CHANGES changes
#include "companion.h"

static const kind kinds[] = {{"r_f32", INSTANCE(r_f32), FA_F32}, {"r_f16", INSTANCE(r_f16), FA_F16}, {"r_bf16", INSTANCE(r_bf16), FA_BF16}};
enum { KINDS = 3 };

/* ---- a task ---- */

static const char *describe(const kind *k, const form *s) {
    static char text[400];
    snprintf(text, sizeof text,
             "%s batch=%d heads=%d,%d seqlen=%d head_dim=%d rotary_dim=%d interleaved=%d table=%d,%d,%d base=%g positions=%d offset=%d layouts=%d%d%d%d%d%d "
             "gaps=%d,%d,%d,%d,%d,%d tails=%d,%d,%d,%d,%d,%d in_place=%d threads=%d",
             k->name, s->batch, s->heads, s->heads_kv, s->seqlen, s->head_dim, s->rotary_dim, s->interleaved, s->table, s->table_rows, s->table_tail, s->base,
             s->positions, s->offset, s->bshd[0], s->bshd[1], s->bshd[2], s->bshd[3], s->bshd[4], s->bshd[5], s->gap[0], s->gap[1], s->gap[2],
             s->gap[3], s->gap[4], s->gap[5], s->tail[0], s->tail[1], s->tail[2], s->tail[3], s->tail[4], s->tail[5], s->in_place, s->threads);
    return text;
}

static int heads_of(const form *s, int t) { return t % 2 ? s->heads_kv : s->heads; }
static int64_t row_of(const form *s, int t, int batch, int head, int token) {
    int heads = heads_of(s, t);
    return s->bshd[t] ? ((int64_t)batch * s->seqlen + token) * heads + head : ((int64_t)batch * heads + head) * s->seqlen + token;
}
static fa_tensor *of_args(fa_rope_args *a, int t) {
    fa_tensor *const all[] = {&a->q, &a->k, &a->q_out, &a->k_out, &a->d_q, &a->d_k};
    return all[t];
}
static fa_tensor tensor_of(const task *p, int t) {
    const form *s = &p->s;
    int64_t stride = p->m[t].stride;
    fa_tensor of;
    of.data = p->m[t].at.data;
    of.stride_batch = stride * s->seqlen * heads_of(s, t);
    of.stride_seq = s->bshd[t] ? stride * heads_of(s, t) : stride;
    of.stride_head = s->bshd[t] ? stride : stride * s->seqlen;
    return of;
}
static int rotary(const form *s) { return s->rotary_dim ? s->rotary_dim : s->head_dim; }
static int *position_at(const task *p, int64_t i) { return (int *)(void *)(p->m[POSITIONS].host + p->m[POSITIONS].front + 4 * (size_t)i); }
static int position_of(const task *p, int batch, int token) {
    return p->s.positions ? *position_at(p, (int64_t)batch * p->s.seqlen + token) : p->s.offset + token;
}
static int rows_of_table(const form *s) { return s->table_rows ? s->table_rows : s->offset + s->seqlen; }

/* Uploads what was set, and remembers it. */
static void begin(task *p) {
    for (int t = 0; t < TENSORS; t++) memcpy(p->m[BEFORE + t].host, p->m[t].host, p->m[t].bytes);
    upload(p);
}
static task new_task(const kind *k, const form *s, rng *r) {
    task p = empty_task(k, s);
    const int half = rotary(s) / 2;
    for (int t = 0; t < TENSORS; t++) {
        for (int m = t; m < MATRICES; m += BEFORE)
            p.m[m] = matrix_new(place, k->dtype, (int64_t)s->batch * heads_of(s, t) * s->seqlen, s->head_dim, s->gap[t], s->tail[t], t == Q_OUT || t == K_OUT);
        if (!p.m[t].written) matrix_fill(&p.m[t], 1, r);
        *of_args(&p.args, t) = tensor_of(&p, t);
    }
    p.m[COS] = matrix_new(place, FA_F32, s->table ? rows_of_table(s) : 0, half, 0, s->table_tail, 0);
    p.m[SIN] = matrix_new(place, FA_F32, s->table ? rows_of_table(s) : 0, half, 0, s->table_tail / 2, 0);
    matrix_fill(&p.m[COS], 1, r), matrix_fill(&p.m[SIN], 1, r); /* any numbers: no angle has them */
    p.m[POSITIONS] = matrix_new(place, FA_F32, 1, (int64_t)s->batch * s->seqlen, 0, 0, 0);
    for (int64_t i = 0; i < p.m[POSITIONS].cols; i++) {
        const int64_t near = (int64_t)s->offset + rng_int(r, -1000, 1000);
        *position_at(&p, i) = s->table ? rng_int(r, 0, rows_of_table(s) - 1) : (int)(near < INT_MIN ? INT_MIN : near > INT_MAX ? INT_MAX : near);
    }
    begin(&p);
    if (s->in_place) p.args.q_out = p.args.q, p.args.k_out = p.args.k;
    if (s->heads_kv == 0) p.args.k.data = p.args.k_out.data = p.args.d_k.data = NULL;
    p.args.batch = s->batch, p.args.heads = s->heads, p.args.heads_kv = s->heads_kv, p.args.seqlen = s->seqlen;
    p.args.head_dim = s->head_dim, p.args.rotary_dim = s->rotary_dim, p.args.interleaved = s->interleaved;
    if (s->table) p.args.cos = (const float *)p.m[COS].at.data, p.args.sin = (const float *)p.m[SIN].at.data;
    p.args.table_rows = s->table_rows, p.args.base = (float)s->base;
    p.args.positions = s->positions ? (const int *)p.m[POSITIONS].at.data : NULL;
    p.args.offset = s->offset, p.args.threads = s->threads;
    return p;
}
static int changes(const task *p, int m) { return m == D_Q || m == D_K || (p->s.in_place && (m == Q || m == K)); }
static int intact(const task *p) { return all_intact(p) && (!p->s.in_place || (matrix_untouched(&p->m[Q_OUT]) && matrix_untouched(&p->m[K_OUT]))); }

/* The angle of a pair at position 1; the base as the kernel has it: a float. */
static long double frequency(const form *s, int pair) {
    long double base = s->base == 0 ? 10000.0L : (long double)(float)s->base;
    return powl(base, -2.0L * pair / rotary(s));
}
/* The angle's cosine and sine. */
static void turn(const task *p, int position, int pair, long double at_1, double *c, double *s) {
    if (p->s.table) {
        int there = position >= 0 && position < rows_of_table(&p->s);
        *c = there ? matrix_get(&p->m[COS], position, pair) : NAN, *s = there ? matrix_get(&p->m[SIN], position, pair) : NAN;
    } else {
        long double angle = (long double)position * at_1;
        if (fabsl(angle) < 1e7L) *c = cos((double)angle), *s = sin((double)angle); /* far more exact than what is tested */
        else *c = (double)cosl(angle), *s = (double)sinl(angle);
    }
}
/* The largest error of a tensor as a share of what is allowed: 3e-7 of the size of a pair, of which 2e-7 are the
 * angle's. t_before: what it was made of. */
static double error_of(const task *p, int t_got, int t_before, int back) {
    const form *s = &p->s;
    const matrix *got = &p->m[t_got], *before = &p->m[BEFORE + t_before];
    int half = rotary(s) / 2;
    long double *at_1 = (long double *)malloc(sizeof *at_1 * (size_t)(half + 1));
    double worst = 0, *cosines = (double *)malloc(sizeof(double) * (size_t)(2 * half + 1)), *sines = cosines + half;
    for (int pair = 0; pair < half; pair++) at_1[pair] = frequency(s, pair);
    for (int batch = 0; batch < s->batch; batch++)
        for (int token = 0; token < s->seqlen; token++) {
            int position = position_of(p, batch, token);
            for (int pair = 0; pair < half; pair++) turn(p, position, pair, at_1[pair], &cosines[pair], &sines[pair]);
            double slack = fabs((double)position) > 1100000 ? 3e-7 : 2e-7;
            for (int i = 0; i < s->head_dim; i++) {
                int pair = i >= 2 * half ? -1 : s->interleaved ? i / 2 : i % half, second = s->interleaved ? i % 2 : i >= half;
                int other = s->interleaved ? i ^ 1 : second ? i - half : i + half;
                double c = pair >= 0 ? cosines[pair] : 1, sine = pair < 0 ? 0 : back ? -sines[pair] : sines[pair];
                for (int head = 0; head < heads_of(s, t_got); head++) {
                    int64_t row = row_of(s, t_got, batch, head, token), row_before = row_of(s, t_before, batch, head, token);
                    double x = matrix_get(before, row_before, i), y = pair >= 0 ? matrix_get(before, row_before, other) : 0;
                    double exact = pair < 0 ? x : x * c + (second ? y * sine : -y * sine);
                    double allowed = pair < 0 ? 0 : (s->table ? 0 : slack * (fabs(x) + fabs(y))) + 2e-7 * (fabs(x * c) + fabs(y * sine));
                    worst = number_worse(worst, matrix_error(matrix_get(got, row, i), exact, isfinite(allowed) ? allowed : 0, got->dtype));
                }
            }
        }
    free(at_1), free(cosines);
    return worst;
}

static double forward_error(const task *p) {
    const int q_out = p->s.in_place ? Q : Q_OUT, k_out = p->s.in_place ? K : K_OUT;
    return number_worse(error_of(p, q_out, Q, 0), error_of(p, k_out, K, 0));
}
static double backward_error(const task *p) { return number_worse(error_of(p, D_Q, D_Q, 1), error_of(p, D_K, D_K, 1)); }

static form plain(int head_dim) {
    form s;
    memset(&s, 0, sizeof s);
    s.batch = 2, s.heads = 3, s.heads_kv = 1, s.seqlen = 5, s.head_dim = head_dim;
    return s;
}
static form random_form(rng *r) {
    form s = plain(rng_one_in(r, 8) ? rng_int(r, 1, 1200) : rng_one_in(r, 3) ? 64 * rng_int(r, 1, 4) : rng_int(r, 1, 140));
    if (rng_one_in(r, 2) || s.head_dim % 2) s.rotary_dim = 2 * rng_int(r, 1, s.head_dim / 2 ? s.head_dim / 2 : 1);
    if (s.head_dim < 2) s.head_dim = 2;
    s.batch = rng_int(r, 1, 3), s.heads = rng_int(r, 0, 9), s.heads_kv = rng_int(r, s.heads == 0, 4), s.seqlen = rng_int(r, 1, s.head_dim < 200 ? 40 : 5);
    s.interleaved = rng_int(r, 0, 1);
    s.table = rng_one_in(r, 3), s.positions = rng_one_in(r, 2);
    s.offset = s.table ? rng_int(r, 0, 20) : rng_one_in(r, 2) ? rng_int(r, -5, 5) : rng_int(r, -1000000, 1000000);
    s.table_rows = s.table && rng_one_in(r, 2) ? s.offset + s.seqlen + rng_int(r, 0, 3) : 0;
    s.table_tail = rng_one_in(r, 2) ? 0 : rng_int(r, 1, 7);
    s.base = rng_one_in(r, 2) ? 0 : exp(rng_uniform(r) * 16 + 0.1);
    for (int t = 0; t < TENSORS; t++) {
        s.bshd[t] = rng_int(r, 0, 1);
        random_gap(&s, t, r);
    }
    s.in_place = rng_one_in(r, 3);
    s.threads = rng_int(r, 0, 3);
    return s;
}

static void shapes(const kind *k, uint64_t seed) {
    /* Around what a vector, a team, a segment holds; and what models have. */
    static const int dims[] = {2, 4, 6, 8, 10, 14, 16, 18, 30, 32, 34, 48, 62, 64, 66, 72, 80, 96, 112, 126, 128, 130, 160, 192, 256, 258, 512, 1024, 4096, 8190, 8200, 20000};
    rng r = rng_new(seed, 600 + (uint64_t)k->dtype);
    tally t = new_tally(k, &r);
    for (int set = 0; (t.isa = instruction_set(set)) != NULL; set++) {
        for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
            for (int way = 0; way < 5; way++) {
                form s = plain(dims[i]);
                s.interleaved = way % 2, s.bshd[Q] = s.bshd[K_OUT] = 1;
                if (dims[i] > 1000) s.seqlen = 2, s.batch = 1, s.heads = 2;
                if (way >= 2) s.head_dim += (int)i % 5 + (way == 3) * 133, s.rotary_dim = dims[i];
                if (way == 4) s.head_dim = (dims[i] + 7) / 8 * 8 + (int)i % 5 * 8; /* all in vectors of 16 bytes, if the halves are */
                for (int m = 0; m < TENSORS && way == 1; m++) s.gap[m] = m, s.tail[m] = 2 * m + 1;
                check(&t, s);
            }
        tell(&t, "dimensions around every limit");
        check_random(&t, 12);
        tell(&t, "random shapes");
    }
    form large = plain(64), many = plain(8); /* large: 8 MB of halves, which the CPU writes past its caches */
    large.batch = 2, large.heads = 33, large.heads_kv = 7, large.seqlen = 840, large.bshd[Q] = large.bshd[Q_OUT] = 1;
    many.batch = 300, many.seqlen = 70;
    check(&t, large), check(&t, many);
    large.head_dim = large.rotary_dim = 72; /* halves of heads begin anywhere in a line */
    if (place == MEMORY_HOST) check(&t, large);
    tell_shortly(&t, "many heads, many sequences");
    for (int i = 0; i < 16; i++) {
        form s = plain(i % 2 ? 64 : 128);
        s.table = 1, s.table_tail = i / 4, s.interleaved = i / 2 % 2;
        check(&t, s);
    }
    tell_shortly(&t, "tables that begin anywhere");
    for (int none = 0; none < 5; none++) {
        form s = plain(none == 4 ? 0 : 8);
        if (none == 0) s.batch = 0;
        if (none == 1) s.heads = s.heads_kv = 0;
        if (none == 2) s.seqlen = 0;
        if (none == 3) s.heads_kv = 0;
        check(&t, s);
    }
    tell_shortly(&t, "no sequences, heads, tokens, elements; no k");
    form s = plain(8);
    s.heads = 0, s.heads_kv = 3;
    task p = new_task(k, &s, &r);
    p.args.q.data = p.args.k.data; /* any address */
    p.args.q_out = p.args.q, p.args.q_out.stride_seq += 8;
    tap_ok(k->forward(&p.args, 0) == FA_OK, "%s: strides of no heads may differ, at one address, too", k->name);
    delete_task(&p);
}

/* ---- angles: at every size of position, unit vectors become cosines and sines ---- */

static void angles(double base, int rotary_dim) {
    static const int offsets[] = {0, 1, 1000, 65536, 999990, -999999, 16777216, 1 << 30, INT_MAX - 8, INT_MIN};
    rng r = rng_new(1, 1);
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        form s = plain(rotary_dim);
        double worst = 0, c, sine;
        s.batch = 1, s.heads = 1, s.heads_kv = 0, s.seqlen = 9, s.offset = offsets[i], s.base = base;
        task p = new_task(&kinds[0], &s, &r);
        for (int token = 0; token < 9; token++)
            for (int j = 0; j < rotary_dim; j++) matrix_set(&p.m[Q], token, j, j < rotary_dim / 2);
        matrix_upload(&p.m[Q]);
        run(&kinds[0], &p.args);
        matrix_download(&p.m[Q_OUT]);
        for (int token = 0; token < 9; token++)
            for (int j = 0; j < rotary_dim / 2; j++) {
                turn(&p, offsets[i] + token, j, frequency(&s, j), &c, &sine);
                worst = number_worse(worst, fabs(matrix_get(&p.m[Q_OUT], token, j) - c));
                worst = number_worse(worst, fabs(matrix_get(&p.m[Q_OUT], token, j + rotary_dim / 2) - sine));
            }
        tap_ok(worst < (abs(offsets[i] + 8) > 1000000 ? 3e-7 : 2e-7), "base %g, rotary_dim %d: angles of positions from %d on (largest error %.2g)", base, rotary_dim,
               offsets[i], worst);
        delete_task(&p);
    }
}

/* ---- the gradient by finite differences: of L = the sum of w q_out, in double ---- */

static void differences(int interleaved, rng *r) {
    const double step = 1e-5;
    form s = plain(12);
    double worst = 0, c, sine;
    s.rotary_dim = 10, s.interleaved = interleaved, s.offset = 3;
    task p = new_task(&kinds[0], &s, r);
    run(&kinds[0], &p.args);
    matrix_download(&p.m[D_Q]);
    for (int batch = 0; batch < s.batch; batch++)
        for (int head = 0; head < s.heads; head++)
            for (int token = 0; token < s.seqlen; token++)
                for (int i = 0; i < s.head_dim; i++) {
                    int64_t row = row_of(&s, D_Q, batch, head, token), source = row_of(&s, Q, batch, head, token);
                    double loss[2] = {0, 0};
                    for (int side = 0; side < 2; side++)
                        for (int o = 0; o < s.head_dim; o++) { /* output o of the row with element i moved */
                            int pair = o >= 10 ? -1 : interleaved ? o / 2 : o % 5, second = interleaved ? o % 2 : o >= 5, other = interleaved ? o ^ 1 : second ? o - 5 : o + 5;
                            double x = matrix_get(&p.m[Q], source, o) + (o == i ? (side ? step : -step) : 0), y = 0;
                            if (pair >= 0) y = matrix_get(&p.m[Q], source, other) + (other == i ? (side ? step : -step) : 0);
                            c = 1, sine = 0;
                            if (pair >= 0) turn(&p, position_of(&p, batch, token), pair, frequency(&s, pair), &c, &sine);
                            loss[side] += matrix_get(&p.m[BEFORE + D_Q], row, o) * (x * c + (second ? y * sine : -y * sine));
                        }
                    worst = number_worse(worst, fabs((loss[1] - loss[0]) / (2 * step) - matrix_get(&p.m[D_Q], row, i)));
                }
    tap_ok(worst < 3e-5, "finite differences: interleaved=%d (largest difference %.2g)", interleaved, worst);
    delete_task(&p);
}

/* ---- special values ---- */

/* NaN and infinity stay in their pair; a position that a table has no row for makes NaN of what is rotated. */
static void special(const kind *k, rng *r) {
    form s = plain(20);
    double error = 0;
    s.rotary_dim = 16, s.interleaved = k->dtype == FA_F16;
    task p = new_task(k, &s, r);
    for (int64_t row = 0; row < p.m[Q].rows; row++) {
        matrix_set(&p.m[Q], row, (int)(row % 20), NAN);
        matrix_set(&p.m[D_Q], row, (int)(row % 20), NAN);
        matrix_set(&p.m[Q], row, 19 - (int)(row % 3), INFINITY); /* not rotated */
    }
    begin(&p);
    run(k, &p.args);
    matrix_download(&p.m[Q_OUT]), matrix_download(&p.m[D_Q]);
    error = number_worse(error_of(&p, Q_OUT, Q, 0), error_of(&p, D_Q, D_Q, 1));
    tap_ok(error <= 1, "%s: NaN and infinity stay in their pair (%.2f of what is allowed)", k->name, error);
    delete_task(&p);

    for (int told = 0; told < 2; told++) {
        static const int wrong[] = {-1, INT_MIN, 7, INT_MAX, 1 << 20, -2, 6, 0};
        s.table = s.positions = 1, s.table_rows = told ? 7 : 0, s.offset = 2; /* 7 rows */
        p = new_task(k, &s, r);
        for (int i = 0; i < s.batch * s.seqlen; i++) *position_at(&p, i) = i % 8 == 0 || i % 8 == 5 || told ? wrong[i % 8] : 3;
        matrix_upload(&p.m[POSITIONS]);
        run(k, &p.args);
        matrix_download(&p.m[Q_OUT]);
        error = error_of(&p, Q_OUT, Q, 0);
        tap_ok(error <= 1, "%s: positions that are in no table give NaN, and copy the rest (%.2f of what is allowed)", k->name, error);
        delete_task(&p);
    }
}

/* ---- the same bits: every time, in any company, with any number of threads, in any layout, in place ---- */

static int same_tensor(const task *p, int t, const task *q, int u) {
    const form *s = &p->s;
    for (int b = 0; b < s->batch; b++)
        for (int h = 0; h < heads_of(s, t); h++)
            for (int n = 0; n < s->seqlen; n++)
                for (int i = 0; i < s->head_dim; i++) {
                    double x = matrix_get(&p->m[t], row_of(&p->s, t, b, h, n), i), y = matrix_get(&q->m[u], row_of(&q->s, u, b, h, n), i);
                    if (memcmp(&x, &y, sizeof x)) return 0;
                }
    return 1;
}
/* What was in a tensor of another task's. */
static void copy_tensor(task *to, int t, const task *from) {
    const form *s = &to->s;
    for (int b = 0; b < s->batch; b++)
        for (int h = 0; h < heads_of(s, t); h++)
            for (int n = 0; n < s->seqlen; n++)
                for (int i = 0; i < s->head_dim; i++) matrix_set(&to->m[t], row_of(s, t, b, h, n), i, matrix_get(&from->m[BEFORE + t], row_of(&from->s, t, b, h, n), i));
}
static void determinism(const kind *k, int head_dim, int interleaved, rng *r) {
    form s = plain(head_dim), other;
    int same = 1, alone = 1;
    s.heads = 6, s.heads_kv = 2, s.seqlen = 50, s.interleaved = interleaved, s.rotary_dim = head_dim / 4 * 2, s.threads = 1, s.offset = 70000;
    task p = new_task(k, &s, r);
    run(k, &p.args);
    download(&p);
    for (int t = 0; t < 4; t++) {
        other = s, other.threads = some_threads(t), other.in_place = t == 3;
        for (int i = 0; i < TENSORS; i++) other.bshd[i] = t & 1, other.gap[i] = t == 2 ? 3 : 0, other.tail[i] = t == 2;
        task q = new_task(k, &other, r);
        copy_tensor(&q, Q, &p), copy_tensor(&q, K, &p), copy_tensor(&q, D_Q, &p), copy_tensor(&q, D_K, &p);
        upload(&q);
        run(k, &q.args);
        download(&q);
        same &= same_tensor(&p, Q_OUT, &q, other.in_place ? Q : Q_OUT) && same_tensor(&p, K_OUT, &q, other.in_place ? K : K_OUT) && same_tensor(&p, D_Q, &q, D_Q) &&
                same_tensor(&p, D_K, &q, D_K);
        delete_task(&q);
    }
    tap_ok(same, "%s, head_dim %d, interleaved=%d: the same bits with any threads, in any layout, in place", k->name, head_dim, interleaved);
    /* A head of one token by itself. */
    for (int n = 0; n < s.seqlen; n += 7)
        for (int h = 0; h < s.heads; h++) {
            form one = s;
            one.batch = one.heads = one.seqlen = 1, one.heads_kv = 0, one.offset = s.offset + n;
            task q = new_task(k, &one, r);
            for (int i = 0; i < head_dim; i++) matrix_set(&q.m[Q], 0, i, matrix_get(&p.m[Q], row_of(&s, Q, 1, h, n), i));
            matrix_upload(&q.m[Q]);
            must(k->forward(&q.args, 0));
            matrix_download(&q.m[Q_OUT]);
            for (int i = 0; i < head_dim; i++) alone &= matrix_get(&q.m[Q_OUT], 0, i) == matrix_get(&p.m[Q_OUT], row_of(&s, Q_OUT, 1, h, n), i);
            delete_task(&q);
        }
    tap_ok(alone, "%s, head_dim %d, interleaved=%d: a head by itself has the bits that it has among others", k->name, head_dim, interleaved);
    delete_task(&p);
}

static void far_apart(rng *r) {
    form s = plain(64);
    s.heads = s.seqlen = 1, s.heads_kv = 0;
    task p = new_task(&kinds[2], &s, r);
    void *from = memory_new(place, FAR_BYTES), *to = memory_new(place, FAR_BYTES);
    far_put(from, &p.m[Q]);
    p.args.q.data = from, p.args.q_out.data = to, p.args.q.stride_batch = p.args.q_out.stride_batch = FAR;
    fa_status status = r_bf16_forward(&p.args, 0);
    far_get(&p.m[Q_OUT], to, FAR);
    double error = forward_error(&p);
    tap_ok(status == FA_OK && error <= 1, "sequences that are 2^31 elements apart (%.2f of what is allowed)", error);
    memory_delete(place, from, FAR_BYTES), memory_delete(place, to, FAR_BYTES);
    delete_task(&p);
}

/* ---- errors ---- */

/* A tensor that begins some elements further on. */
static fa_tensor moved(fa_tensor t, int64_t elements, int dtype) {
    t.data = (char *)t.data + elements * number_bytes(dtype);
    return t;
}

static void errors(rng *r) {
    form s = plain(10);
    const kind *k = &kinds[0];
    task p;
    char word[128];
    s.table = 1, s.offset = 2, s.table_rows = 7;
    for (int backward = 0; backward < 2; backward++) {
        FRESH, p.args.batch = -1, fails(&p, backward, "batch is -1", "0 or more");
        FRESH, p.args.heads = -1, fails(&p, backward, "heads is -1", "0 or more");
        FRESH, p.args.heads_kv = -3, fails(&p, backward, "heads_kv is -3", "0 or more");
        FRESH, p.args.heads_kv = 0, fails(&p, backward, backward ? "heads_kv is 0 and d_k.data" : "heads_kv is 0 and k.data", "number of its heads");
        FRESH, p.args.seqlen = -1, fails(&p, backward, "seqlen is -1", "0 or more");
        FRESH, p.args.batch = INT_MAX, p.args.heads = INT_MAX / 2, fails(&p, backward, "(2147483647, 1073741823 + ", "at most 2^48");
        FRESH, p.args.head_dim = -8, fails(&p, backward, "head_dim is -8", "0 or more");
        FRESH, p.args.rotary_dim = -2, fails(&p, backward, "rotary_dim is -2", "0 or more");
        FRESH, p.args.rotary_dim = 12, fails(&p, backward, "rotary_dim is 12", "head_dim, 10, or less");
        FRESH, p.args.rotary_dim = 5, fails(&p, backward, "rotary_dim is 5", "even");
        FRESH, p.args.head_dim = 9, fails(&p, backward, "rotary_dim is 9 (that of head_dim)", "even");
        FRESH, p.args.interleaved = 2, fails(&p, backward, "interleaved is 2", "0 (halves) or 1");
        FRESH, p.args.threads = -1, fails(&p, backward, "threads is -1", "0 (all)");
        if (!backward) FRESH, p.args.q_out = p.args.q, p.args.q_out.stride_seq += 16, fails(&p, 0, "q_out is written in place of q with other strides", "the same are needed");
        if (!backward) FRESH, p.args.k_out = p.args.q_out, fails(&p, 0, "q_out.data and k_out.data are both", "two tensors are needed");
        if (!backward) FRESH, p.args.q_out = p.args.k, fails(&p, 0, "q_out is written in place of k", "only of q is possible");
        if (!backward) FRESH, p.args.k_out = p.args.q, fails(&p, 0, "k_out is written in place of q", "only of k is possible");
        if (!backward) { /* tensors that begin elsewhere, and share rows */
            FRESH, p.args.q_out = moved(p.args.q, p.args.q.stride_seq, k->dtype), fails(&p, 0, "q_out, at ", "either all, or none");
            FRESH, p.args.positions = (const int *)p.args.q_out.data, fails(&p, 0, "positions, at ", "memory of its own");
            FRESH, p.args.cos = (const float *)p.args.k_out.data, fails(&p, 0, "cos, at ", "memory of its own");
            FRESH, p.args.q_out = moved(p.args.q, 1, k->dtype), fails(&p, 0, "q_out, at ", "either all, or none");
            FRESH, p.args.k_out = moved(p.args.q_out, p.args.q_out.stride_seq, k->dtype), fails(&p, 0, "k_out, at ", "two tensors are needed");
            FRESH, p.args.k_out = moved(p.args.q, p.args.q.stride_seq, k->dtype), fails(&p, 0, "k_out, at ", "two tensors are needed");
        }
        if (backward) FRESH, p.args.d_k = p.args.d_q, fails(&p, 1, "d_q.data and d_k.data are both", "two tensors are needed");
        FRESH, p.args.heads = (1 << 30) + 1, fails(&p, backward, "heads is 1073741825", "together 1073741824 or less");
        FRESH, (backward ? &p.args.d_q : &p.args.q)->stride_seq = INT64_MAX, fails(&p, backward, "stride_seq is 9223372036854775807", "2^48");
        FRESH, p.args.cos = NULL, fails(&p, backward, "cos is NULL and sin is not", "both tables");
        FRESH, p.args.sin = NULL, fails(&p, backward, "sin is NULL and cos is not", "both tables");
        FRESH, p.args.cos = (const float *)((const char *)p.args.cos + 2), fails(&p, backward, "cos is 0x", "aligned to 4 bytes");
        FRESH, p.args.table_rows = -1, fails(&p, backward, "table_rows is -1", "0 (not known)");
        FRESH, p.args.table_rows = 6, fails(&p, backward, "table_rows is 6", "must have row 6");
        FRESH, p.args.offset = -1, fails(&p, backward, "offset is -1", "no row below 0");
        FRESH, p.args.offset = INT_MAX - 3, fails(&p, backward, "offset is 2147483644", "above 2147483647");
        FRESH, p.args.positions = (const int *)((const char *)p.m[POSITIONS].at.data + 1), fails(&p, backward, "positions is 0x", "aligned to 4 bytes");
        FRESH, p.args.cos = p.args.sin = NULL, p.args.base = 1, fails(&p, backward, "base is 1", "0 means 10000");
        FRESH, p.args.cos = p.args.sin = NULL, p.args.base = NAN, fails(&p, backward, "base is nan", "more than 1");
        for (int t = backward ? D_Q : Q; t < (backward ? TENSORS : D_Q); t++) {
            int written = t >= 2;
            snprintf(word, sizeof word, ": %s.data is NULL", names[t]);
            if (t != D_K) FRESH, of_args(&p.args, t)->data = NULL, fails(&p, backward, word, t == K ? "k_out.data is not" : "elements are needed");
            snprintf(word, sizeof word, ": %s.data is 0x", names[t]);
            FRESH, of_args(&p.args, t)->data = (char *)of_args(&p.args, t)->data + 2, fails(&p, backward, word, "aligned to 4 bytes");
            snprintf(word, sizeof word, ": %s.stride_seq is -10", names[t]);
            FRESH, of_args(&p.args, t)->stride_seq = -10, fails(&p, backward, word, "not negative");
            snprintf(word, sizeof word, ": %s.stride_batch is 9", names[t]);
            if (written) FRESH, of_args(&p.args, t)->stride_batch = 9, fails(&p, backward, word, "written over each other");
            snprintf(word, sizeof word, ": %s.stride_head is 9", names[t]);
            if (written && t % 2 == 0) FRESH, of_args(&p.args, t)->stride_head = 9, fails(&p, backward, word, "written over each other");
            /* token 1 of a head where head 1 of a token is; one step and three; three and a half; two, with half a
             * row in common */
            const struct {
                int64_t head, seq;
            } crossing[] = {{10, 10}, {10, 30}, {35, 10}, {30, 55}};
            for (int i = 0; written && i < 4; i++) {
                FRESH, p.args.heads = 4, p.args.heads_kv = 4, p.args.batch = 1;
                of_args(&p.args, t)->stride_head = crossing[i].head, of_args(&p.args, t)->stride_seq = crossing[i].seq;
                snprintf(word, sizeof word, ": the strides of %s are %lld (batch, of which there are 1), %d (head, 4) and %d (seq, %d)", names[t],
                         (long long)of_args(&p.args, t)->stride_batch, (int)crossing[i].head, (int)crossing[i].seq, p.args.seqlen);
                fails(&p, backward, word, "written over each other");
            }
        }
    }
    fails_without_args(&kinds[0], 0), fails_without_args(&kinds[2], 1);
    fa_rope_args zero;
    memset(&zero, 0, sizeof zero);
    tap_ok(succeeds(k, &zero), "all-zero arguments are valid");
    zero.batch = 5, zero.heads = 2, zero.seqlen = 7;
    tap_ok(succeeds(k, &zero), "without elements pointers may be NULL");
    tap_ok(k->workspace(&zero) == 0, "no workspace is needed");
}

int main(void) {
    if (!matrix_place(&place, "rope")) return tap_end();
    uint64_t seed = rng_seed();
    rng r = rng_new(seed, 610);
    errors(&r);
    angles(0, 128), angles(500000, 64), angles(1.5, 256), angles(1e9, 2), angles(10000, 1000), angles(1.0001, 4096), angles(100, 20240);
    for (int i = 0; i < KINDS; i++) shapes(&kinds[i], seed);
    differences(0, &r), differences(1, &r);
    for (int i = 0; i < KINDS; i++) {
        special(&kinds[i], &r);
        for (int c = 0; c < 4; c++) determinism(&kinds[i], c / 2 ? 128 : 44, c % 2, &r);
    }
    far_apart(&r);
#if defined(__CUDACC__)
    streams(&kinds[2], plain(128), "", 0, &r);
    const kind host = {"r_host", INSTANCE(r_host), FA_F32};
    on_the_host(&host, plain(80), &r);
#endif
    return tap_end();
}
