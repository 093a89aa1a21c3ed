/* norm.h: the host side of fa/layernorm.h (FA__CENTERED 1) and fa/rmsnorm.h (0): checks, parameters, and the two calls.
 * FA__NORM_ARGS is the type of the arguments. */
#include <fa/arch/bind.h>
#include <fa/arch/dtype.h>

#if !defined(FA_WEIGHT_DTYPE)
#define FA_WEIGHT_DTYPE FA_F32
#elif FA_WEIGHT_DTYPE + 0 < FA_F32 || FA_WEIGHT_DTYPE + 0 > FA_TF32
FA__REQUIRE(0, "FA_WEIGHT_DTYPE, the type of the weights, is " FA__STR(FA_WEIGHT_DTYPE) ": FA_F32, FA_F16, FA_BF16 or FA_TF32 is needed");
#undef FA_WEIGHT_DTYPE
#define FA_WEIGHT_DTYPE FA_F32
#elif FA_WEIGHT_DTYPE == FA_TF32 /* the same */
#undef FA_WEIGHT_DTYPE
#define FA_WEIGHT_DTYPE FA_F32
#endif

/* What a row function is given. */
#define FA__PARAMS FA__ROWS(__params)
typedef struct FA__PARAMS { /* what a forward reads lies together: constants are fetched from memory, too */
    fa__rows rows;
    fa_matrix x, residual, sum, y;           /* `sum` of the backward: what was normalised */
    const void *gamma, *beta;
    float *mean, *rstd; /* the backward's: NULL if they are to be computed again */
    float inverse_cols, eps;
    int plain; /* neither dropout, nor residual, nor sum; of the backward: one result, without dropout */
    int first_pass; /* of a backward: norm_any.h (GPU) */
    fa_dropout dropout;
    fa_matrix d_y, d_sum, d_x, d_residual;
    fa__sums sums;
} FA__PARAMS;

#define FA__BODY <fa/kernel/norm_rows.h>
#define FA__SUMS (1 + FA__CENTERED)
#include <fa/kernel/rows_run.h>

/* Checks that no array lies where another one is written, and says in *unit of how many bytes, at most 16, all rows
 * and the distances between them are multiples. With workspace_bytes > 0 it checks the workspace alone, of that
 * size, and `unit` may be NULL. */
FA__CALLED fa_status FA__ROWS(__check_places)(const FA__NORM_ARGS *a, int backward, size_t workspace_bytes, int *unit) {
    const char *name = FA__ROWS_CALL(backward);
    const int bytes = (int)sizeof(FA__ELEMENT), weight_bytes = fa_dtype_bytes(FA_WEIGHT_DTYPE);
    const fa__matrix_use all[] = {{"x", a->x, !backward || !a->sum.data, 0},
                                  {"residual", a->residual, !backward && a->residual.data, 0},
                                  {"sum", a->sum, a->sum.data != NULL, !backward},
                                  {"y", a->y, !backward, 1},
                                  {"d_y", a->d_y, backward, 0},
                                  {"d_sum", a->d_sum, backward && a->d_sum.data, 0},
                                  {"d_x", a->d_x, backward && a->d_x.data, 1},
                                  {"d_residual", a->d_residual, backward && a->d_residual.data, 1}};
    const fa__vector_use vectors[] = {{"gamma", a->gamma, 1, 0, weight_bytes, a->cols},
#if FA__CENTERED
                                      {"beta", a->beta, !backward, 0, weight_bytes, a->cols},
                                      {"mean", a->mean, 1, !backward, 4, a->rows},
                                      {"d_beta", a->d_beta, backward, 1, weight_bytes, a->cols},
#endif
                                      {"rstd", a->rstd, 1, !backward, 4, a->rows},
                                      {"d_gamma", a->d_gamma, backward, 1, weight_bytes, a->cols}};
    const fa__vector_use workspace = {"workspace", a->workspace, 1, 1, 1, (int64_t)workspace_bytes};
    enum { FA__MATRICES = sizeof all / sizeof all[0], FA__VECTORS = sizeof vectors / sizeof vectors[0] };
    if (workspace_bytes > 0) return fa__check_vector(name, &workspace, vectors, FA__VECTORS, all, FA__MATRICES, a->rows, a->cols, bytes);
    fa_status status = fa__check_matrices(name, all, FA__MATRICES, a->rows, a->cols, bytes);
    if (status != FA_OK) return status;
    uintptr_t bits = (uintptr_t)a->cols * (uintptr_t)bytes;
    for (int i = 0; i < FA__MATRICES; i++)
        if (all[i].used) bits |= (uintptr_t)all[i].matrix.data | (uintptr_t)all[i].matrix.stride_row * (uintptr_t)bytes;
    *unit = fa__unit((unsigned)bits);
    return fa__check_vectors(name, vectors, FA__VECTORS, all, FA__MATRICES, a->rows, a->cols, bytes);
}

/* Checks what both directions need, and derives the parameters. */
FA__CALLED fa_status FA__ROWS(__params_of)(FA__PARAMS *p, const FA__NORM_ARGS *a, int backward) {
    const char *name = FA__ROWS_CALL(backward);
    fa_status status;
    FA__CHECK(a, "%s: args is NULL: point it to an " FA__STR(FA__NORM_ARGS), name);
    if ((status = fa__check_rows(name, a->rows, a->cols, a->threads)) != FA_OK) return status;
    FA__CHECK(a->eps >= 0.0f && a->eps < INFINITY, "%s: eps is %g: a finite number from 0 on is needed, such as 1e-5", name, (double)a->eps);
    FA__CHECK(a->dropout >= 0.0f && a->dropout <= 1.0f, "%s: dropout is %g: a probability from 0 to 1 is needed", name,
              (double)a->dropout);
    const int summed = a->dropout > 0.0f || a->residual.data; /* then x is not enough for the backward */
    const int source_is_sum = a->sum.data != NULL;
    int unit;
    FA__CHECK(a->rows == 0 || a->cols == 0 || !backward || !summed || source_is_sum,
              "%s: sum.data is NULL: with dropout or a residual the backward reads the sum that the forward wrote", name);
    if ((status = FA__ROWS(__check_places)(a, backward, 0, &unit)) != FA_OK) return status;
    memset(p, 0, sizeof *p);
    p->rows.rows = a->rows;
    p->rows.cols = a->cols;
    p->x = a->x, p->residual = a->residual, p->sum = backward && !source_is_sum ? a->x : a->sum, p->y = a->y;
    if (backward) p->residual.data = NULL; /* it is in the sum */
    p->d_y = a->d_y, p->d_sum = a->d_sum, p->d_x = a->d_x, p->d_residual = a->d_residual;
    p->gamma = a->gamma;
    p->rstd = a->rstd;
    p->sums.totals[0] = a->d_gamma;
#if FA__CENTERED
    p->beta = backward ? NULL : a->beta;
    p->mean = a->mean;
    p->sums.totals[1] = a->d_beta;
    if (backward && !(a->mean && a->rstd)) p->mean = p->rstd = NULL;
#endif
    p->rows.unit = ((uintptr_t)p->gamma | (uintptr_t)p->beta) % 16 == 0 ? unit : 0;
    p->rows.even = p->rows.unit == 16;
    p->sums.wanted = p->sums.totals[0] || p->sums.totals[1];
    p->rows.tensors = backward ? 2 + (a->d_sum.data != NULL) : 1 + summed;
    p->inverse_cols = a->cols > 0 ? 1.0f / (float)a->cols : 0.0f;
    p->eps = a->eps;
    p->plain = backward ? !a->d_residual.data && !(a->dropout > 0.0f && a->d_x.data) : !summed && !source_is_sum;
    p->dropout = fa_dropout_of(a->dropout, a->seed, a->offset);
    return FA_OK;
}

FA_API fa_status FA__ROWS(_forward)(const FA__NORM_ARGS *args, fa_stream stream) {
    FA__PARAMS p;
    fa_status status = FA__ROWS(__params_of)(&p, args, 0);
    if (status != FA_OK || p.rows.rows == 0 || p.rows.cols == 0) return status;
    return FA__ROWS(__run)(&p, 0, fa__aligned(p.x, (int)sizeof(FA__ELEMENT)), args->threads, stream);
}

FA_API fa_status FA__ROWS(_backward)(const FA__NORM_ARGS *args, fa_stream stream) {
    FA__PARAMS p;
    fa_status status = FA__ROWS(__params_of)(&p, args, 1);
    if (status != FA_OK || p.rows.cols == 0 || (p.rows.rows == 0 && !p.sums.wanted)) return status;
    if ((status = FA__ROWS(__deal)(&p)) != FA_OK) return status;
    /* If any is needed, ask for what NAME_workspace() says, which is enough. */
    const size_t needed = fa__sums_bytes(&p.sums, &p.rows), enough = needed > 0 ? FA__ROWS(_workspace)(args) : 0;
    status = fa__check_workspace(FA__ROWS_CALL(1), FA__STR(FA__ROWS(_workspace)), args->workspace, args->workspace_bytes,
                                 needed > enough ? needed : enough);
    if (status == FA_OK && needed > 0) status = FA__ROWS(__check_places)(args, 1, needed, NULL);
    if (status != FA_OK) return status;
    fa__sums_place(&p.sums, args->workspace);
    return FA__ROWS(__run)(&p, 1, 1, args->threads, stream);
}

FA_API size_t FA__ROWS(_workspace)(const FA__NORM_ARGS *args) {
    FA__PARAMS p;
    if (!args) return 0;
    memset(&p, 0, sizeof p);
    if (args->rows <= 0 || args->cols <= 0 || fa__too_many(args->rows, args->cols)) return 0;
    p.rows.rows = args->rows, p.rows.cols = args->cols;
    p.rows.tensors = 2 + (args->d_sum.data != NULL);
    p.sums.totals[0] = args->d_gamma;
#if FA__CENTERED
    p.sums.totals[1] = args->d_beta;
#endif
    p.sums.wanted = p.sums.totals[0] || p.sums.totals[1];
    const int unit = fa__unit((unsigned)args->cols * (unsigned)sizeof(FA__ELEMENT));
    size_t most = 0;
    for (int way = 0; way < 4; way++) { /* for all layouts of the matrices, and without statistics */
        p.rows.unit = way == 0 ? 0 : way == 3 && unit > 4 ? 4 : unit;
        p.rows.even = p.rows.unit == 16;
        p.plain = way > 1;
        if (FA__ROWS(__deal)(&p) != FA_OK) return 0;
        FA__ROWS(__most_workers)(&p); /* a workspace for some rows is large enough for fewer */
        const size_t bytes = fa__sums_bytes(&p.sums, &p.rows);
        if (bytes > most) most = bytes;
    }
    return most;
}

#undef FA__PARAMS
#undef FA__NORM_ARGS
#undef FA__CENTERED
#include <fa/arch/unbind.h>
