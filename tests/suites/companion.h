/* companion.h: what the suites of the companion kernels share. A suite includes it behind its instances, once it has
 *
 *     ARGS              the type of its kernel's arguments
 *     KIND_MORE         if a kind has more to tell than its type: members of the struct
 *     MATRICES          an enum: the number of all that a call reads and writes, inputs and outputs; names[]: what messages call them
 *     form              a struct: sizes, layouts and options of a call; int gap[MATRICES] and tail[MATRICES] as matrix_new() has them
 *     NO_ROWS           if inputs are no matrices of rows and columns; else form has int64_t rows, cols, int threads, double spread
 *     BACKWARD, INTACT, CHANGES, DESCRIBE_OPTIONS, MOVE_VECTORS
 *                       if it has something of its own to do there: the names of functions; see below
 *
 * and then defines the functions that are declared below without a body. The same on the CPU, on the GPU, and on a simulated one.
 */
#ifndef COMPANION_H
#define COMPANION_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fa/fa.h>

#include "../harness/check.h"
#include "../harness/matrix.h"
#include "../harness/number.h"
#include "../harness/tap.h"

typedef fa_status call(const ARGS *args, fa_stream stream);
typedef struct kind {
    const char *name;
    call *forward, *backward;
    size_t (*workspace)(const ARGS *args);
    int dtype;
#if defined(KIND_MORE)
    KIND_MORE
#endif
} kind;
#define INSTANCE(name) name##_forward, name##_backward, name##_workspace

static memory_place place;

/* ---- a task: a call in both directions, and all that it has ---- */

typedef struct task {
    const kind *k;
    form s;
    matrix m[MATRICES];
    ARGS args;
    void *workspace;
    size_t workspace_bytes;
} task;

/* Filled, and uploaded; the arguments point to it. */
static task new_task(const kind *k, const form *s, rng *r);
static const char *describe(const kind *k, const form *s);
static form random_form(rng *r);
/* The largest errors of what is downloaded, as shares of what is allowed: of the forward's results; of the
 * gradients, from what the forward left. */
static double forward_error(const task *p), backward_error(const task *p);
/* The backward, where it gets other arguments than the forward. */
#if defined(BACKWARD)
static fa_status BACKWARD(const task *p);
#else
#define BACKWARD(p) (p)->k->backward(&(p)->args, 0)
#endif
/* Of a downloaded task: nothing was written where nothing should be. */
#if defined(INTACT)
static int INTACT(const task *p);
#else
#define INTACT all_intact
#endif
/* Whether a call changes matrix m although it reads it. */
#if defined(CHANGES)
static int CHANGES(const task *p, int m);
#else
#define CHANGES(p, m) 0
#endif

static task empty_task(const kind *k, const form *s) {
    task p;
    memset(&p, 0, sizeof p);
    p.k = k, p.s = *s;
    return p;
}
static void delete_task(task *p) {
    for (int m = 0; m < MATRICES; m++) matrix_delete(&p->m[m]);
    if (p->workspace) memory_delete(place, p->workspace, p->workspace_bytes);
}
static void upload(task *p) {
    for (int m = 0; m < MATRICES; m++) matrix_upload(&p->m[m]);
}
static void download(task *p) {
    for (int m = 0; m < MATRICES; m++) matrix_download(&p->m[m]);
}
static inline void poison(task *p) {
    for (int m = 0; m < MATRICES; m++)
        if (p->m[m].written) matrix_poison(&p->m[m]), matrix_upload(&p->m[m]);
}
static inline int all_intact(const task *p) {
    for (int m = 0; m < MATRICES; m++)
        if (!matrix_intact(&p->m[m])) return 0;
    return 1;
}
/* Downloads it: is it what was uploaded? */
static int unchanged(matrix *m) {
    unsigned char *before = (unsigned char *)malloc(m->bytes);
    memcpy(before, m->host, m->bytes);
    matrix_download(m);
    int same = !memcmp(before, m->host, m->bytes);
    free(before);
    return same;
}
/* Everything is downloaded: is all that is only read what was uploaded; is all of it? */
static int inputs_unchanged(task *p) {
    int all = 1;
    for (int m = 0; m < MATRICES; m++)
        if (p->m[m].written || CHANGES(p, m)) matrix_download(&p->m[m]);
        else all &= unchanged(&p->m[m]);
    return all;
}
static int untouched(task *p) {
    int all = 1;
    for (int m = 0; m < MATRICES; m++) all &= unchanged(&p->m[m]);
    return all;
}

static void must(fa_status status) {
    if (status != FA_OK) tap_bail("%s", fa_last_error());
}
static void run(const kind *k, const ARGS *a) { must(k->forward(a, 0)), must(k->backward(a, 0)); }

/* ---- forms that are tried, of which a line of the output tells ---- */

typedef struct tally {
    const kind *k;
    rng *r;
    const char *isa; /* the instruction set, where a line is of one */
    int failed;
    double worst;
} tally;

static tally new_tally(const kind *k, rng *r) {
    tally t = {k, r, NULL, 0, 0};
    return t;
}
/* A form in both directions; what is wrong is said in a note. */
static void check(tally *t, form s) {
    task p = new_task(t->k, &s, t->r);
    double error = INFINITY, error_back = INFINITY;
    tap_context("%s", describe(t->k, &s));
    fa_status forward = t->k->forward(&p.args, 0), backward = forward == FA_OK ? BACKWARD(&p) : forward;
    int clean = inputs_unchanged(&p) & INTACT(&p);
    if (backward == FA_OK) error = forward_error(&p), error_back = backward_error(&p);
    else tap_note("%s: %s", describe(t->k, &s), fa_last_error());
    delete_task(&p);
    t->worst = number_worse(number_worse(t->worst, error), error_back);
    if (error <= 1 && error_back <= 1 && clean) return;
    t->failed++;
    tap_note("%s: errors of %.3g and %.3g of what is allowed; %s", describe(t->k, &s), error, error_back,
             clean ? "nothing was written around the results" : "something was written around the results, or into what is only read");
}
static void check_random(tally *t, int each) {
    const char *rounds = getenv("FA_ROUNDS");
    for (int i = 0; i < each * (rounds && *rounds ? atoi(rounds) : 6); i++) check(t, random_form(t->r));
}
/* The line; the next one begins anew. */
static void tell(tally *t, const char *what) {
    tap_ok(!t->failed, "%s%s%s: %s (worst error %.2f of what is allowed)", t->k->name, t->isa ? ", " : "", t->isa ? t->isa : "", what, t->worst);
    t->failed = 0, t->worst = 0;
}
static void tell_shortly(tally *t, const char *what) {
    tap_ok(!t->failed, "%s: %s", t->k->name, what);
    t->failed = 0, t->worst = 0;
}

/* Instruction set number `set`, which the CPU has from now on; behind the last NULL, and the CPU has the best one. A GPU has one.
 *
 *     for (int set = 0; (t.isa = instruction_set(set)) != NULL; set++) ...
 */
static const char *instruction_set(int set) {
    const int sets = place == MEMORY_HOST ? 3 : 1;
    const char *isa = place == MEMORY_HOST ? check_instruction_set(set % sets) : "GPU";
    return set < sets ? isa : NULL;
}

/* A random distance of rows; and often all alike, which is the fast way for odd rows. */
static void random_gap(form *s, int m, rng *r) {
    s->gap[m] = rng_one_in(r, 2) ? 0 : rng_one_in(r, 2) ? 8 * rng_int(r, 1, 3) : rng_int(r, 1, 20);
    s->tail[m] = rng_one_in(r, 2) ? 0 : rng_int(r, 1, 20);
}
static inline void often_alike(form *s, rng *r) {
    if (rng_one_in(r, 2))
        for (int m = 1; m < MATRICES; m++) s->gap[m] = s->gap[0], s->tail[m] = s->tail[0];
}

/* ---- determinism ---- */

/* The same bits; a NaN may have any. */
static inline int same(const matrix *a, const matrix *b) {
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) {
            double u = matrix_get(a, i, j), v = matrix_get(b, i, j);
            if (memcmp(&u, &v, sizeof u) && !(isnan(u) && isnan(v))) return 0;
        }
    return 1;
}
static inline int same_results(const task *p, const task *q) {
    for (int m = 0; m < MATRICES; m++)
        if (p->m[m].written && !same(&p->m[m], &q->m[m])) return 0;
    return 1;
}
static int some_threads(int i) { return i == 0 ? 1 : i == 1 ? 2 : i == 2 ? 7 : 0; }

/* ---- errors ---- */

/* Whether an error's message begins with the call that made it, NAME_forward or NAME_backward, and then `text`. */
static int message_begins(const char *message, const char *name, int backward, const char *text) {
    char begin[96];
    snprintf(begin, sizeof begin, "%s_%s: %s", name, backward ? "backward" : "forward", text);
    return !strncmp(message, begin, strlen(begin));
}
/* The call fails with a message that starts with the instance's name and has both words in it, and writes nothing.
 * The task is deleted. */
static void fails_with(fa_status wanted, task *p, int backward, const char *first, const char *second) {
    fa_status status = (backward ? p->k->backward : p->k->forward)(&p->args, 0);
    char message[600];
    snprintf(message, sizeof message, "%s", fa_last_error());
    int named = message_begins(message, p->k->name, backward, "") && strstr(message, first) && strstr(message, second), nothing = untouched(p);
    if (!named) tap_note("the message does not start with the name, or lacks '%s' or '%s'", first, second);
    if (!nothing) tap_note("something was written");
    tap_ok(status == wanted && named && nothing, "error: %s", status == FA_OK ? first : message);
    delete_task(p);
}
static void fails(task *p, int backward, const char *first, const char *second) { fails_with(FA_ERROR_ARGUMENT, p, backward, first, second); }
#define FRESH p = new_task(k, &s, r)

static void fails_without_args(const kind *k, int backward) {
    fa_status status = (backward ? k->backward : k->forward)(NULL, 0);
    tap_ok(status == FA_ERROR_ARGUMENT && message_begins(fa_last_error(), k->name, backward, "args is NULL"), "error: %s", fa_last_error());
}
static int succeeds(const kind *k, const ARGS *a) { return k->forward(a, 0) == FA_OK && k->backward(a, 0) == FA_OK; }

/* ---- two rows of 64 BF16 that are more than 2^31 elements apart: untouched pages between them take no memory on
 * the host ---- */

static const int64_t FAR = ((int64_t)1 << 31) + 5;
static const size_t FAR_BYTES = (((size_t)1 << 31) + 69) * 2;

static void far_put(void *far, const matrix *from) {
    for (int i = 0; i < 2; i++) {
        uint16_t row[64];
        for (int j = 0; j < 64; j++) number_store(row, j, FA_BF16, matrix_get(from, i, j));
        memory_put(place, (unsigned char *)far + (size_t)i * (size_t)FAR * 2, row, sizeof row);
    }
}
static void far_get(matrix *to, const void *far, int64_t stride) {
    memory_finish(place);
    for (int i = 0; i < 2; i++) {
        uint16_t row[64];
        memory_get(place, row, (const unsigned char *)far + (size_t)i * (size_t)stride * 2, sizeof row);
        for (int j = 0; j < 64; j++) matrix_set(to, i, j, number_load(row, j, FA_BF16));
    }
}

/* ---- kernels of rows ---- */

#if !defined(NO_ROWS)
static form plain(int64_t rows, int64_t cols);
/* The argument that is matrix m; NULL of what is none. */
static fa_matrix *of_args(ARGS *a, int m);
static int is_matrix(int m) {
    ARGS any;
    return of_args(&any, m) != NULL;
}
/* Has the arguments point to the matrices. */
static void connect(task *p);
/* The form's options in words, if it has any. */
#if defined(DESCRIBE_OPTIONS)
static int DESCRIBE_OPTIONS(const form *s, char *text, size_t bytes);
#else
#define DESCRIBE_OPTIONS(s, text, bytes) 0
#endif
/* Moves what has an element a row on to row i; of_args() tells of the rest. */
#if !defined(MOVE_VECTORS)
#define MOVE_VECTORS(a, i) ((void)0)
#endif

static const char *describe(const kind *k, const form *s) {
    static char text[600];
    size_t at = (size_t)snprintf(text, sizeof text, "%s rows=%lld cols=%lld", k->name, (long long)s->rows, (long long)s->cols);
    for (int tails = 0; tails < 2; tails++)
        for (int m = 0, first = 1; m < MATRICES; m++) {
            if (!is_matrix(m)) continue;
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", first ? tails ? " tails=" : " gaps=" : ",", tails ? s->tail[m] : s->gap[m]);
            first = 0;
        }
    at += (size_t)DESCRIBE_OPTIONS(s, text + at, sizeof text - at);
    snprintf(text + at, sizeof text - at, " threads=%d", s->threads);
    return text;
}

/* Around the limits of every way to hold a row: lanes, a warp, a block, a block's shared memory. */
#define SHORT_LENGTHS 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 256, 257, 511, 513
/* Vectors of 16 bytes of short rows, which fill lanes of a warp or leave some without work. */
#define SHORT_VECTORS 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, 16, 17, 24, 25, 31, 32, 33, 48
/* Columns of short rows that are not of whole vectors. */
#define SHORT_WITHOUT_GAPS 1, 2, 3, 5, 7, 9, 10, 15, 17, 20, 31, 33, 47, 50, 63, 65
#define LONGER_LENGTHS 1023, 1024, 1025, 2047, 2049, 4095, 4096, 4097, 8191, 8192, 8193

/* Up to `rows` rows, seldom more than `cols` columns, and then at most `most`. */
static form random_size(int rows, double cols, double most, rng *r) {
    form s = plain(rng_int(r, 1, rows), 0);
    s.cols = (int64_t)exp(rng_uniform(r) * log(rng_one_in(r, 8) ? most : cols));
    if (rng_one_in(r, 2)) s.cols = (s.cols + 7) / 8 * 8;
    if (s.cols < 100) s.rows = rng_int(r, 1, 25 * rows);
    return s;
}
static form spaced(form s, int gap, int tail) {
    for (int m = 0; m < MATRICES; m++) s.gap[m] = gap, s.tail[m] = tail;
    return s;
}
/* Rows fill their threads, or segments, but those of one matrix begin anywhere. */
static inline void check_one_gap(tally *t, int64_t longest) {
    for (int64_t cols = 1024; cols <= longest; cols *= 2)
        for (int m = 0; m < MATRICES; m++) {
            form s = plain(4, cols);
            s.gap[m] = 3;
            if (is_matrix(m)) check(t, s);
        }
}

/* Of kernels with exponentials: numbers about as large as those from which on exponents are computed otherwise, 10^6
 * / log2(e), and many times that, in eight rows; and numbers far above their row's others, relative to which a float
 * exponential is infinite, or wraps around. */
static inline void set_large(matrix *m, rng *r) {
    static const double sizes[] = {6.9e5, -6.9e5, 6.94e5, -6.94e5, 3e6, -3e6, 2e9, -2e9};
    for (int i = 0; i < 8; i++) {
        double at = sizes[i], apart = fabs(at) * (m->dtype == FA_BF16 ? 0x1p-8 : 0x1p-23); /* about what lies between neighbours */
        for (int64_t j = 0; j < m->cols; j++) matrix_set(m, i, j, at + rng_int(r, -6, 0) * apart);
    }
}
static inline double lonely_height(int i) {
    static const double heights[] = {12, 20, 60, 89, 95, 110, 150, 200, 300};
    return heights[i % 9];
}

/* Eight rows that begin with one element, or, every second of them, with 64, far above all others, which are alike:
 * of a sum of exponentials, very many terms that are about as large as half a unit in the last place of a sum that
 * has the first ones, or than as much of a piece's terms together. */
enum { TOP_HEAVY = 8 };
static inline double top_height(int i) {
    static const double heights[TOP_HEAVY] = {15.5, 15.5, 16.75, 16.5, 19.5, 18, 20.75, 19.75};
    return heights[i];
}
static inline int is_top(int i, int64_t j) { return j < (i % 2 ? 64 : 1); }
static inline void set_top_heavy(matrix *m) {
    for (int i = 0; i < TOP_HEAVY; i++)
        for (int64_t j = 0; j < m->cols; j++) matrix_set(m, i, j, is_top(i, j) ? top_height(i) : 0);
}
/* Column j of a row that rises slowly: every piece that a core of the CPU takes at a time is above the one before. */
static inline double rising_by(int64_t j) { return 1e-4 * (double)(j / 1280); }

/* The same task with results of its own, somewhere else. */
static inline task other_results(const task *p, int gap, int tail) {
    task q = *p;
    for (int m = 0; m < MATRICES; m++)
        if (p->m[m].written) q.m[m] = matrix_new(place, p->m[m].dtype, p->m[m].rows, p->m[m].cols, is_matrix(m) ? gap : 0, tail, 1);
    connect(&q);
    return q;
}
static inline void delete_results(task *q) {
    for (int m = 0; m < MATRICES; m++)
        if (q->m[m].written) matrix_delete(&q->m[m]);
}
static void download_results(task *q) {
    for (int m = 0; m < MATRICES; m++)
        if (q->m[m].written) matrix_download(&q->m[m]);
}
/* Results that are computed anew: are they the same as p's? */
static int same_again(const task *p, task *q, int threads) {
    q->args.threads = threads;
    poison(q);
    run(q->k, &q->args);
    download_results(q);
    return same_results(p, q);
}
/* Each row by itself. */
static void run_rows(task *q) {
    poison(q);
    for (int i = 0; i < q->s.rows; i++) {
        ARGS one = q->args;
        for (int m = 0; m < MATRICES; m++) {
            fa_matrix *at = of_args(&one, m);
            if (at) at->data = (char *)at->data + i * at->stride_row * number_bytes(q->m[m].dtype);
        }
        MOVE_VECTORS(one, i);
        one.rows = 1;
        run(q->k, &one);
    }
    download_results(q);
}
static void tell_columns(int passed, const task *p, const char *what) { tap_ok(passed, "%s, %lld columns: %s", p->k->name, (long long)p->s.cols, what); }
#define EVERY_TIME "the same bits every time"
#define ANY_THREADS "with any number of threads"
#define BY_ITSELF "a row by itself has the bits that it has among others"
#define IN_PLACE "results in the place of what is read"

/* The first row of all inputs, again and again. */
static inline void repeat_row(task *p) {
    for (int m = 0; m < MATRICES; m++)
        if (is_matrix(m) && !p->m[m].written) of_args(&p->args, m)->stride_row = 0;
    run(p->k, &p->args);
    download(p);
    for (int m = 0; m < MATRICES; m++)
        for (int64_t i = 1; i < p->s.rows && is_matrix(m) && !p->m[m].written; i++)
            for (int64_t j = 0; j < p->s.cols; j++) matrix_set(&p->m[m], i, j, matrix_get(&p->m[m], 0, j));
}
static inline void broadcast(const kind *k, form s, rng *r) {
    task p = new_task(k, &s, r);
    repeat_row(&p);
    double worst = number_worse(forward_error(&p), backward_error(&p));
    tap_ok(worst <= 1, "%s: a stride of 0 repeats a row (%.2f of what is allowed)", k->name, worst);
    delete_task(&p);
}

static void sizes_fail(const kind *k, form s, int backward, rng *r) {
    task p;
    FRESH, p.args.rows = -1, fails(&p, backward, "rows is -1", "0 or more");
    FRESH, p.args.cols = -2, fails(&p, backward, "cols is -2", "0 or more");
    FRESH, p.args.rows = 0, p.args.cols = INT64_MAX, fails(&p, backward, "cols is 9223372036854775807", "at most 2^48");
    FRESH, p.args.rows = (int64_t)1 << 40, p.args.cols = (int64_t)1 << 40, fails(&p, backward, "rows is 1099511627776", "at most 2^48");
}
/* Of (3, 10) elements. */
static void matrix_fails(const kind *k, form s, int backward, int m, int needed, int written, rng *r) {
    char what[64], aligned[64];
    task p;
    snprintf(aligned, sizeof aligned, "aligned to %d bytes", number_bytes(k->dtype));
    snprintf(what, sizeof what, ": %s.data is NULL", names[m]);
    if (needed) FRESH, of_args(&p.args, m)->data = NULL, fails(&p, backward, what, "(3, 10) elements");
    snprintf(what, sizeof what, ": %s.data is 0x", names[m]);
    FRESH, of_args(&p.args, m)->data = (char *)of_args(&p.args, m)->data + number_bytes(k->dtype) / 2, fails(&p, backward, what, aligned);
    snprintf(what, sizeof what, ": %s.stride_row is -10", names[m]);
    FRESH, of_args(&p.args, m)->stride_row = -10, fails(&p, backward, what, "not negative");
    snprintf(what, sizeof what, ": %s.stride_row is 9", names[m]);
    if (written) FRESH, of_args(&p.args, m)->stride_row = 9, fails(&p, backward, what, "written over each other");
}
#endif

/* ---- GPUs: streams, graphs, errors that were there before ---- */

#if defined(__CUDACC__)
/* `of`: what the calls are of. `both`: after an error, too, and not only the forward. */
static void streams(const kind *k, form s, const char *of, int both, rng *r) {
    task p = new_task(k, &s, r);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t launchable;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    fa_status status = k->forward(&p.args, stream), back = k->backward(&p.args, stream);
    tap_ok(cudaStreamEndCapture(stream, &graph) == cudaSuccess && status == FA_OK && back == FA_OK, "%scalls are captured in a graph", of);
    tap_ok(untouched(&p), "nothing runs during the capture");
    tap_ok(cudaGraphInstantiate(&launchable, graph, 0) == cudaSuccess && cudaGraphLaunch(launchable, stream) == cudaSuccess &&
               cudaStreamSynchronize(stream) == cudaSuccess,
           "the graph runs");
    download(&p);
    tap_ok(forward_error(&p) <= 1 && backward_error(&p) <= 1, "and computes what the calls do");
    cudaGraphExecDestroy(launchable), cudaGraphDestroy(graph), cudaStreamDestroy(stream);

    poison(&p);
    cudaGetLastError();
    cudaSetDevice(9999); /* an error of the caller's own, which he has not looked at yet */
    status = k->forward(&p.args, 0), back = both ? k->backward(&p.args, 0) : FA_OK;
    tap_ok(status == FA_OK && back == FA_OK && k->workspace(&p.args) == p.workspace_bytes && cudaPeekAtLastError() == cudaErrorInvalidDevice,
           "an earlier CUDA error is neither reported as ours nor cleared (%s%s%s)", fa_status_string(status), both ? ", " : "",
           both ? fa_status_string(back) : "");
    cudaGetLastError();
    download(&p);
    tap_ok(forward_error(&p) <= 1 && (!both || backward_error(&p) <= 1),
           both ? "the calls after an earlier error compute" : "the call after an earlier error computes");
    delete_task(&p);
}

static void on_the_host(const kind *host, form s, rng *r) {
    tally t = new_tally(host, r);
    place = MEMORY_HOST;
    check(&t, s);
    tap_ok(!t.failed, "an instance for the CPU beside those for the GPU (%.2f of what is allowed)", t.worst);
    place = MEMORY_DEVICE;
}
#endif

#endif
