/* Times instances of fa/attention.h over a grid of shapes: a C program for the CPU (gcc -x c) and, compiled by nvcc,
 * for the GPU. An instance is a shared library whose file name says what it is (bench.mk): data type, head dimension,
 * variant, tile. Every cell is checked against float64 before it is timed.
 *
 *     bench [--grid default|full] [--tokens N] [--width N] [--seqlens 512,2048] [--variant-seqlen N] [--repeat N]
 *           [--json FILE] [--tsv FILE] [--markdown FILE] LIBRARY.so...
 *
 * A cell is batch * seqlen = tokens, heads * head_dim = width. Time is the median of `repeat` rounds; in each round
 * every instance of a cell runs once, so that a drift of the clock meets all of them. On a GPU a write of 256 MB before
 * each timing empties the L2 cache, and is long enough that both events and the launch are queued when it ends.
 * A kernel with no mask does 4 * batch * heads * seqlen^2 * head_dim operations, a causal one half of that, and another
 * mask as many as it shows elements. */
#include "bench.h"

#if ON_GPU
#define UNIT "TFLOP/s"
#define GIGA 1e12
#else
#include "peak.h"
#define UNIT "GFLOP/s"
#define GIGA 1e9
#endif

enum { MAX_INSTANCES = 256, MAX_REPEAT = 256, SAMPLED_ROWS = 24 };

typedef enum {
    FULL,
    CAUSAL,
    WINDOW,
    PREFIX,
    DOCUMENT,
    ALIBI,
    SOFTCAP,
    BIAS,
    KEYBIAS,
    OWN,
    CAUSALALIBI,
    CAUSALBIAS,
    CAUSALSOFTCAP,
    CAUSALOWN,
    PACKED,
    SPAN,
    PACKEDSPAN,
    VARIANTS
} variant_id;
static const char *const variant_names[VARIANTS] = {"full",  "causal",  "window", "prefix",  "document",
                                                    "alibi", "softcap", "bias",   "keybias", "own",
                                                    "causalalibi", "causalbias", "causalsoftcap", "causalown", "packed",
                                                    "span", "packedspan"};

typedef struct {
    char name[128], config[64];
    int dtype, dim, grouped;
    variant_id variant;
    fa_status (*forward)(const fa_attention_args *, fa_stream);
    fa_status (*plan)(const fa_attention_args *, fa_plan *);
    const char *(*last_error)(void);
    compilation compiled;
} instance;

typedef struct {
    int batch, heads, seqlen, dim;
} shape;

#if !ON_GPU
static peak_unit fma_unit;
static int cores;
#endif

typedef struct {
    const instance *it;
    const fa_attention_args *args;
} forward_call;
static void run_forward(const void *what) {
    const forward_call *call = (const forward_call *)what;
    if (call->it->forward(call->args, 0) != FA_OK) die(call->it->name, call->it->last_error());
}
static double time_forward(const instance *it, const fa_attention_args *args) {
    forward_call call = {it, args};
    return time_once(run_forward, &call);
}

/* -------------------------------------------------------------------- data */

static uint64_t random_state = 0x9E3779B97F4A7C15u;

/* Near normal, mean 0, variance 1: the sum of four 16-bit uniforms. */
static float random_normal(void) {
    random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
    uint64_t r = random_state;
    double sum = (double)(r & 0xFFFF) + (double)(r >> 16 & 0xFFFF) + (double)(r >> 32 & 0xFFFF) + (double)(r >> 48);
    return (float)((sum / 65535 - 2) * 1.7320508075688772);
}

/* Q, K and V in every type, made when first needed; the same values serve every shape of the grid. */
typedef struct {
    void *host[3], *device[3];
} tensors;
static tensors data[5];
static size_t elements;
static void *output; /* on the device, large enough for any type */
static float *lse;   /* on the device, (batch, heads, seqlen) */
static char *output_host;

static void make_data(int dtype) {
    if (data[dtype].host[0]) return;
    for (int t = 0; t < 3; t++) {
        size_t bytes = elements * (size_t)fa_dtype_bytes(dtype);
        data[dtype].host[t] = host_alloc(bytes);
        random_state = 0x9E3779B97F4A7C15u + (uint64_t)t;
        for (size_t i = 0; i < elements; i++) fa_store_element(data[dtype].host[t], (int64_t)i, dtype, random_normal());
        data[dtype].device[t] = device_alloc(bytes);
        upload(data[dtype].device[t], data[dtype].host[t], bytes);
    }
}

/* The parameters of the variants, on the host and on the device. */
enum { MAX_EXTRAS = 4 };
static void *extras[MAX_EXTRAS][2];
static int extra_count;

static void *extra(void *host, size_t bytes) {
    void *device = device_alloc(bytes);
    upload(device, host, bytes);
    extras[extra_count][0] = host, extras[extra_count++][1] = device;
    return device;
}
static void free_extras(void) {
    while (extra_count) {
        extra_count--;
        free(extras[extra_count][0]);
        device_free(extras[extra_count][1]);
    }
}

static int smaller(int a, int b) { return a < b ? a : b; }

/* Fills the arguments of one cell, for the host (which the reference reads) and for the device. */
static void make_arguments(const instance *it, shape s, fa_attention_args *host, fa_attention_args *device) {
    int part = smaller(1024, s.seqlen / 4 > 0 ? s.seqlen / 4 : 1); /* of the window, and of a document */
    fa_attention_args a = fa_attention_defaults();
    make_data(it->dtype);
    a.batch = s.batch, a.heads = a.heads_kv = s.heads, a.seqlen_q = a.seqlen_k = s.seqlen;
    *host = a;
    host->q = fa_tensor_bhsd(data[it->dtype].host[0], s.heads, s.seqlen, s.dim);
    host->k = fa_tensor_bhsd(data[it->dtype].host[1], s.heads, s.seqlen, s.dim);
    host->v = fa_tensor_bhsd(data[it->dtype].host[2], s.heads, s.seqlen, s.dim);
    *device = a;
    device->q = fa_tensor_bhsd(data[it->dtype].device[0], s.heads, s.seqlen, s.dim);
    device->k = fa_tensor_bhsd(data[it->dtype].device[1], s.heads, s.seqlen, s.dim);
    device->v = fa_tensor_bhsd(data[it->dtype].device[2], s.heads, s.seqlen, s.dim);
    device->o = fa_tensor_bhsd(output, s.heads, s.seqlen, s.dim);
    if (it->variant == WINDOW) {
        host->window_left = device->window_left = part - 1;
        host->window_right = device->window_right = 0;
    }
    if (it->variant == SOFTCAP || it->variant == CAUSALSOFTCAP) host->softcap = device->softcap = 30;
    if (it->variant == ALIBI || it->variant == CAUSALALIBI) {
        float *slopes = (float *)host_alloc((size_t)s.heads * 4);
        for (int h = 0; h < s.heads; h++) slopes[h] = exp2f(-8.0f * (float)(h + 1) / (float)s.heads);
        host->alibi_slopes = slopes, device->alibi_slopes = (const float *)extra(slopes, (size_t)s.heads * 4);
    }
    if (it->variant == PREFIX) {
        int *prefix = (int *)host_alloc((size_t)s.batch * 4);
        for (int b = 0; b < s.batch; b++) prefix[b] = s.seqlen / 2;
        host->prefix = prefix, device->prefix = (const int *)extra(prefix, (size_t)s.batch * 4);
    }
    if (it->variant == DOCUMENT || it->variant == PACKED) {
        size_t count = (size_t)s.batch * (size_t)s.seqlen;
        int *ids = (int *)host_alloc(count * 4);
        for (size_t i = 0; i < count; i++) ids[i] = (int)(i % (size_t)s.seqlen) / part;
        host->document_q = host->document_k = ids;
        device->document_q = device->document_k = (const int *)extra(ids, count * 4);
    }
    if (it->variant == SPAN || it->variant == PACKEDSPAN) { /* the same documents */
        size_t count = (size_t)s.batch * (size_t)s.seqlen;
        int *begins = (int *)host_alloc(count * 4), *ends = (int *)host_alloc(count * 4);
        for (size_t i = 0; i < count; i++) {
            int query = (int)(i % (size_t)s.seqlen), end = query / part * part + part;
            begins[i] = query / part * part;
            ends[i] = it->variant == PACKEDSPAN ? query + 1 : end < s.seqlen ? end : s.seqlen;
        }
        host->span_begin = begins, device->span_begin = (const int *)extra(begins, count * 4);
        host->span_end = ends, device->span_end = (const int *)extra(ends, count * 4);
    }
    if (it->variant == KEYBIAS) { /* (heads, seqlen), the same for every sequence */
        size_t count = (size_t)s.heads * (size_t)s.seqlen;
        float *bias = (float *)host_alloc(count * 4);
        for (size_t i = 0; i < count; i++) bias[i] = random_normal();
        host->key_bias = bias, device->key_bias = (const float *)extra(bias, count * 4);
        host->key_bias_stride_head = device->key_bias_stride_head = s.seqlen;
    }
    if (it->variant == BIAS || it->variant == CAUSALBIAS) { /* (seqlen, seqlen), the same for every sequence and head */
        size_t count = (size_t)s.seqlen * (size_t)s.seqlen, bytes = count * (size_t)fa_dtype_bytes(it->dtype);
        void *bias = host_alloc(bytes);
        for (size_t i = 0; i < count; i++) fa_store_element(bias, (int64_t)i, it->dtype, random_normal());
        host->bias = bias, device->bias = extra(bias, bytes);
        host->bias_stride_query = device->bias_stride_query = s.seqlen;
    }
}

/* --------------------------------------------------------------- reference */

/* The keys that a query sees: every mask here shows one range. */
static fa_range visible(const fa_attention_args *a, variant_id variant, int b, int query) {
    fa_range keys = {0, a->seqlen_k};
    const int *ids = a->document_q ? a->document_q + (int64_t)b * a->seqlen_q : NULL;
    switch (variant) {
    case CAUSAL:
    case CAUSALALIBI:
    case CAUSALBIAS:
    case CAUSALSOFTCAP:
    case CAUSALOWN: keys.end = query + 1; break;
    case WINDOW: keys.begin = query > a->window_left ? query - a->window_left : 0, keys.end = query + 1; break;
    case PREFIX: keys.end = query < a->prefix[b] ? a->prefix[b] : query + 1; break;
    case DOCUMENT:
    case PACKED:
        keys.begin = query, keys.end = query + 1;
        while (keys.begin > 0 && ids[keys.begin - 1] == ids[query]) keys.begin--;
        while (variant == DOCUMENT && keys.end < a->seqlen_k && ids[keys.end] == ids[query]) keys.end++;
        break;
    case SPAN:
    case PACKEDSPAN:
        keys.begin = a->span_begin[(int64_t)b * a->seqlen_q + query];
        keys.end = a->span_end[(int64_t)b * a->seqlen_q + query];
        break;
    default: break;
    }
    return keys;
}

static double modified(const fa_attention_args *a, variant_id variant, int dtype, double score, int h, int query,
                       int key) {
    switch (variant) {
    case ALIBI:
    case CAUSALALIBI: return score - (double)a->alibi_slopes[h] * abs(key - query);
    case SOFTCAP:
    case CAUSALSOFTCAP: return a->softcap * tanh(score / a->softcap);
    case BIAS:
    case CAUSALBIAS: return score + (double)fa_load_element(a->bias, query * a->bias_stride_query + key, dtype);
    case KEYBIAS: return score + (double)a->key_bias[h * a->key_bias_stride_head + key];
    case OWN:
    case CAUSALOWN: return score + 1e-4 * (key - query);
    default: return score;
    }
}

/* x as an operand or a stored value of the data type. */
static float rounded(float x, int dtype) {
    if (dtype == FA_BF16) return fa_bf16_to_float(fa_bf16_from_float(x));
    if (dtype == FA_F16) return fa_f16_to_float(fa_f16_from_float(x));
    if (dtype == FA_TF32 && ON_GPU && isfinite(x)) {
        uint32_t u;
        memcpy(&u, &x, 4);
        u = (u + 0x1000u) & 0xFFFFE000u; /* 10 bits of mantissa stay */
        memcpy(&x, &u, 4);
    }
    return x;
}

typedef struct {
    double error, limit;         /* of o: the largest over the sampled rows, and what the contract allows */
    double lse_error, lse_limit; /* of lse */
    int written;                 /* no element of o kept its poison */
} check;

/* One row in float64, and once more as an unfused computation would do it that keeps scores and probabilities in the
 * data type: twice the error of the latter, plus a rounding of the result, is what the numerics contract allows. */
static void check_row(const instance *it, const fa_attention_args *a, shape s, int b, int h, int query, const void *o,
                      double lse_got, check *result, double *low_error, double *low_lse_error, double *largest) {
    int dtype = it->dtype, d = s.dim, stored = dtype == FA_F16 || dtype == FA_BF16;
    int64_t base = ((int64_t)b * s.heads + h) * s.seqlen * d;
    double scale = 1 / sqrt((double)d), top = -INFINITY, sum = 0;
    double *p = (double *)host_alloc((size_t)s.seqlen * 8), *ref = (double *)host_alloc((size_t)d * 8);
    float *p_low = (float *)host_alloc((size_t)s.seqlen * 4), *o_low = (float *)host_alloc((size_t)d * 4);
    float top_low = -INFINITY, sum_low = 0;
    fa_range keys = visible(a, it->variant, b, query);
    for (int j = keys.begin; j < keys.end; j++) {
        double dot = 0;
        float dot_low = 0;
        for (int c = 0; c < d; c++) {
            float x = fa_load_element(a->q.data, base + (int64_t)query * d + c, dtype);
            float y = fa_load_element(a->k.data, base + (int64_t)j * d + c, dtype);
            dot += (double)x * y;
            dot_low += rounded(x, dtype) * rounded(y, dtype);
        }
        p[j] = modified(a, it->variant, dtype, dot * scale, h, query, j);
        float score = (stored ? rounded(dot_low, dtype) : dot_low) * (float)scale;
        p_low[j] = (float)modified(a, it->variant, dtype, stored ? rounded(score, dtype) : score, h, query, j);
        if (stored) p_low[j] = rounded(p_low[j], dtype);
        top = fmax(top, p[j]), top_low = fmaxf(top_low, p_low[j]);
    }
    for (int j = keys.begin; j < keys.end; j++) {
        sum += p[j] = exp(p[j] - top);
        sum_low += p_low[j] = expf(p_low[j] - top_low);
    }
    for (int c = 0; c < d; c++) ref[c] = 0, o_low[c] = 0;
    for (int j = keys.begin; j < keys.end; j++) {
        float weight = rounded(p_low[j] / sum_low, dtype);
        for (int c = 0; c < d; c++) {
            float y = fa_load_element(a->v.data, base + (int64_t)j * d + c, dtype);
            ref[c] += p[j] / sum * y;
            o_low[c] += weight * rounded(y, dtype);
        }
    }
    for (int c = 0; c < d; c++) {
        double error = fabs(fa_load_element(o, c, dtype) - ref[c]),
               low = fabs((stored ? rounded(o_low[c], dtype) : o_low[c]) - ref[c]);
        if (!(error <= result->error)) result->error = error; /* a NaN is kept */
        *low_error = fmax(*low_error, low);
        *largest = fmax(*largest, fabs(ref[c]));
    }
    double lse_ref = top + log(sum), lse_error = fabs(lse_got - lse_ref);
    if (!(lse_error <= result->lse_error)) result->lse_error = lse_error;
    *low_lse_error = fmax(*low_lse_error, fabs((double)top_low + logf(sum_low) - lse_ref));
    free(p), free(ref), free(p_low), free(o_low);
}

static check check_cell(const instance *it, const fa_attention_args *host, const fa_attention_args *device, shape s) {
    check result = {0, 0, 0, 0, 1};
    fa_attention_args a = *device;
    size_t count = (size_t)s.batch * (size_t)s.heads * (size_t)s.seqlen, size = (size_t)fa_dtype_bytes(it->dtype);
    size_t row_bytes = (size_t)s.dim * size;
    double low = 0, low_lse = 0, largest = 0;
    double unit = it->dtype == FA_BF16 ? 0x1p-8 : it->dtype == FA_F16 ? 0x1p-11 : 0x1p-24;
    device_poison(output, count * row_bytes);
    device_poison(lse, count * 4);
    a.lse = lse;
    if (it->forward(&a, 0) != FA_OK) die(it->name, it->last_error());
    device_wait();
    download(output_host, output, count * row_bytes);
    for (size_t i = 0; i < count * (size_t)s.dim && result.written; i++)
        result.written = !isnan(fa_load_element(output_host, (int64_t)i, it->dtype));
    for (int n = 0; n < SAMPLED_ROWS; n++) {
        /* the first and the last row of the first and the last head, then rows spread over everything */
        const size_t ends[] = {0, (size_t)s.seqlen - 1, count - (size_t)s.seqlen, count - 1};
        size_t row = n < 4 ? ends[n] : (count / SAMPLED_ROWS * (size_t)n + 61u * (size_t)n) % count;
        float lse_got;
        download(&lse_got, lse + row, 4);
        check_row(it, host, s, (int)(row / (size_t)s.seqlen / (size_t)s.heads),
                  (int)(row / (size_t)s.seqlen % (size_t)s.heads), (int)(row % (size_t)s.seqlen),
                  output_host + row * row_bytes, lse_got, &result, &low, &low_lse, &largest);
    }
    low = fmax(low, 4 * (it->dtype == FA_TF32 ? 0x1p-12 : 0x1p-24) * largest); /* the sample is small: an unfused error below four roundings is luck */
    result.limit = 2 * low + unit * largest;
    result.lse_limit = 2 * low_lse + 1e-5;
    return result;
}

/* ------------------------------------------------------------------ timing */

static FILE *tsv;

/* What --markdown prints in the end: a row for each instance, a column for each length. */
typedef struct {
    const instance *it;
    int seqlen;
    double rate, percent;
} result_cell;
static result_cell results[MAX_INSTANCES * 32];
static int result_count;
static int repeat = 15, failures;

/* A causal kernel counts half, as is the custom; other masks count what they show (of the first sequence). */
static double operations(shape s, variant_id variant, const fa_attention_args *host) {
    double seen = 0, square = (double)s.seqlen * s.seqlen;
    for (int i = 0; i < s.seqlen; i++) {
        fa_range keys = visible(host, variant, 0, i);
        seen += keys.end - keys.begin;
    }
    if (variant == CAUSAL || variant == CAUSALALIBI || variant == CAUSALBIAS || variant == CAUSALSOFTCAP || variant == CAUSALOWN) seen = square / 2;
    return 4.0 * s.batch * s.heads * seen * s.dim;
}

/* What a cell's line of the JSON begins with. */
static void begin_cell(const instance *it, shape s, int plain) {
    fprintf(json,
            "%s\n  {\"instance\": \"%s\", \"dtype\": \"%s\", \"head_dim\": %d, \"variant\": \"%s\", \"config\": \"%s\", \"group\": \"%s\", "
            "\"batch\": %d, \"heads\": %d, \"seqlen\": %d, ",
            json_cells++ ? "," : "", it->name, dtype_names[it->dtype], it->dim, variant_names[it->variant], it->config,
            plain ? "variants" : "grid", s.batch, s.heads, s.seqlen);
}

/* Checks, then times the instances of one cell together that are right. With `plain`, the others are variants of
 * instance 0. */
static void run_group(instance *const *all, int all_count, shape s, int plain) {
    instance *group[MAX_INSTANCES];
    int count = 0;
    static double times[MAX_INSTANCES][MAX_REPEAT];
    double plain_seconds = 0;
    for (int g = 0; g < all_count; g++) all[g]->grouped = 1;
    for (int g = 0; g < all_count; g++) {
        /* Each instance has its arguments to itself while it is checked; the timing makes them again. */
        fa_attention_args host, device;
        make_arguments(all[g], s, &host, &device);
        check c = check_cell(all[g], &host, &device, s);
        free_extras();
        int good = c.written && c.error <= c.limit && c.lse_error <= c.lse_limit;
        if (!good) {
            printf("WRONG  %s s %d: %s, error %.2e (allowed %.2e), lse error %.2e (allowed %.2e); not timed\n", all[g]->name,
                   s.seqlen, c.written ? "all written" : "NaN or not all written", c.error, c.limit, c.lse_error,
                   c.lse_limit);
            failures++;
            if (json) begin_cell(all[g], s, plain), fprintf(json, "\"correct\": false}");
            if (plain && g == 0) return; /* nothing to compare with */
            continue;
        }
        group[count++] = all[g];
    }
    fflush(stdout);
    fa_attention_args host[MAX_INSTANCES], device[MAX_INSTANCES];
    void *kept[MAX_INSTANCES * MAX_EXTRAS][2];
    int kept_count = 0;
#if !ON_GPU
    static double peaks[MAX_REPEAT];
#endif
    for (int g = 0; g < count; g++) {
        make_arguments(group[g], s, &host[g], &device[g]);
        while (extra_count)
            extra_count--, kept[kept_count][0] = extras[extra_count][0], kept[kept_count++][1] = extras[extra_count][1];
        time_forward(group[g], &device[g]); /* warm-up */
    }
    for (int r = 0; r < repeat; r++) {
#if !ON_GPU
        peaks[r] = peak_measure(fma_unit, cores, 0.02);
#endif
        for (int g = 0; g < count; g++) {
            int turn = (g + r) % count; /* nobody always follows the same neighbour */
            times[turn][r] = time_forward(group[turn], &device[turn]);
        }
    }
    for (int g = 0; g < count; g++) {
        instance *it = group[g];
        double seconds = median(times[g], repeat), rate = operations(s, it->variant, &host[g]) / seconds / GIGA;
        fa_plan plan;
        memset(&plan, 0, sizeof plan);
        if (it->plan(&device[g], &plan) != FA_OK) printf("%s: no plan: %s\n", it->name, it->last_error());
        double percent = 0;
        double part = plan.tiles_total ? (double)plan.tiles_visited / (double)plan.tiles_total : 1;
        if (g == 0) plain_seconds = seconds;
        printf("%-5s d%-4d%-12s%-16s s %-6d b %-3d h %-3d %9.3f ms  %8.1f " UNIT, dtype_names[it->dtype], it->dim,
               variant_names[it->variant], it->config, s.seqlen, s.batch, s.heads, 1e3 * seconds, rate);
        if (json) {
            begin_cell(it, s, plain);
            print_times(times[g], repeat, seconds);
            fprintf(json,
                    "\"rate\": %.2f, \"unit\": \"" UNIT "\", \"schedule\": \"%s\", \"block_m\": %d, \"block_n\": %d, \"stages\": %d, \"warps\": %d, "
                    "\"tile_fraction\": %.5f",
                    rate, plan.schedule ? plan.schedule : "", plan.block_m, plan.block_n, plan.stages, plan.warps, part);
        }
#if !ON_GPU
        double peak = median(peaks, repeat);
        percent = 100 * rate * GIGA / peak;
        printf("  %5.1f%% of FMA peak", percent);
        if (json) fprintf(json, ", \"percent_of_peak\": %.2f", percent);
#endif
        if (plain && g > 0) {
            double ratio = seconds / (plain_seconds * part);
            printf("  %.3f of plain x %.4f of the tiles", ratio, part);
            if (json) fprintf(json, ", \"over_plain\": %.4f", ratio);
        }
        printf("  %s %dx%d stages %d warps %d\n", plan.schedule ? plan.schedule : "", plan.block_m, plan.block_n,
               plan.stages, plan.warps);
        if (json) fprintf(json, "}");
        if (!plain && result_count < (int)(sizeof results / sizeof *results)) {
            result_cell *cell = &results[result_count++];
            cell->it = it, cell->seqlen = s.seqlen, cell->rate = rate, cell->percent = percent;
        }
        if (tsv && !plain)
            fprintf(tsv, "%s, d%d %s (" UNIT ")\t%s%s%s\t%d\t%.2f\n", ON_GPU ? "GPU" : "CPU", it->dim,
                    variant_names[it->variant], dtype_names[it->dtype], *it->config ? " " : "", it->config, s.seqlen,
                    rate);
    }
    fflush(stdout);
    while (kept_count) kept_count--, free(kept[kept_count][0]), device_free(kept[kept_count][1]);
}

/* --------------------------------------------------------------- instances */

static instance load_instance(const char *path) {
    instance it;
    char name[128];
    memset(&it, 0, sizeof it);
    instance_name(it.name, sizeof it.name, path);
    snprintf(name, sizeof name, "%s", it.name);
    char *rest = NULL, *dtype = strtok_r(name, "_", &rest), *dim = strtok_r(NULL, "_", &rest),
         *variant = strtok_r(NULL, "_", &rest);
    if (!dtype || !dim || !variant) die(path, "the name is not TYPE_dDIM_VARIANT");
    for (int t = 1; t < 5; t++)
        if (!strcmp(dtype, dtype_names[t])) it.dtype = t;
    it.variant = VARIANTS;
    for (int v = 0; v < VARIANTS; v++)
        if (!strcmp(variant, variant_names[v])) it.variant = (variant_id)v;
    it.dim = atoi(dim + 1);
    if (!it.dtype || it.dim <= 0) die(path, "the name is not TYPE_dDIM_VARIANT");
    if (it.variant == VARIANTS) die(path, "this program does not time that variant; compare.py times every mask with every hook");
    snprintf(it.config, sizeof it.config, "%s", rest ? rest : "");

    void *library = open_library(path);
    *(void **)&it.forward = find_function(library, path, "bench_forward");
    *(void **)&it.plan = find_function(library, path, "bench_plan");
    *(void **)&it.last_error = find_function(library, path, "bench_last_error");
    it.compiled = load_compilation(path);
    return it;
}

static void print_machine(void) {
#if ON_GPU
    print_gpu();
    printf("columns: time, " UNIT
           ", tile. name, driver, SM clock, memory clock, maximum SM clock, power, temperature:\n");
#else
    char model[256];
    cpu_model(model, sizeof model);
    cores = cpu_threads();
    fma_unit = peak_find();
    double peak[5];
    for (int i = 0; i < 5; i++) peak[i] = peak_measure(fma_unit, cores, 0.05);
    printf("CPU: %s, %d threads; measured FMA peak %.1f GFLOP/s (%s), measured again in every round of every cell\n",
           model, cores, median(peak, 5) / 1e9, fma_unit.name);
    if (json)
        fprintf(json, "\"device\": \"%s\", \"threads\": %d, \"fma_peak_gflops\": %.1f, \"fma_unit\": \"%s\",\n", model,
                cores, median(peak, 5) / 1e9, fma_unit.name);
#endif
}

static void print_markdown(FILE *file, const int *seqlens, int seqlen_count) {
    fprintf(file, "| " UNIT "%s |", ON_GPU ? "" : " (share of the FMA peak)");
    for (int n = 0; n < seqlen_count; n++) fprintf(file, " %d |", seqlens[n]);
    fprintf(file, "\n|---|");
    for (int n = 0; n < seqlen_count; n++) fprintf(file, "---|");
    for (int i = 0; i < result_count; i++) {
        const instance *it = results[i].it;
        int first = 1;
        for (int j = 0; j < i; j++) first &= results[j].it != it;
        if (!first) continue;
        fprintf(file, "\n| %s d%d %s%s%s |", dtype_names[it->dtype], it->dim, variant_names[it->variant],
                *it->config ? " " : "", it->config);
        for (int n = 0; n < seqlen_count; n++) {
            int j = i;
            while (j < result_count && (results[j].it != it || results[j].seqlen != seqlens[n])) j++;
            if (j < result_count) fprintf(file, ON_GPU ? " %.0f |" : " %.0f (%.0f%%) |", results[j].rate, results[j].percent);
            else fprintf(file, " |"); /* a wrong cell is not timed */
        }
    }
    fprintf(file, "\n");
}

static void usage(void) {
    fprintf(stderr,
            "usage: bench [--grid default|full] [--tokens N] [--width N] [--seqlens N,N...] [--variant-seqlen N]\n"
            "             [--repeat N] [--json FILE] [--tsv FILE] [--markdown FILE] LIBRARY.so...\n");
    exit(2);
}

int main(int argc, char **argv) {
    static instance instances[MAX_INSTANCES];
    instance *group[MAX_INSTANCES];
    int64_t wanted[32];
    int count = 0, seqlens[32], seqlen_count = 0, variant_seqlen = ON_GPU ? 8192 : 2048, full_grid = ON_GPU;
    long tokens = 0, width = 0;
    const char *list = NULL;
    FILE *markdown = NULL;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2)) {
            if (count == MAX_INSTANCES) die("too many instances", argv[i]);
            instances[count++] = load_instance(argv[i]);
            continue;
        }
        const char *option = argv[i], *value = i + 1 < argc ? argv[++i] : (usage(), "");
        if (!strcmp(option, "--grid")) full_grid = is_full(value);
        else if (!strcmp(option, "--tokens")) tokens = whole(option, value, 1 << 30);
        else if (!strcmp(option, "--width")) width = whole(option, value, 1 << 20);
        else if (!strcmp(option, "--seqlens")) list = value;
        else if (!strcmp(option, "--variant-seqlen")) variant_seqlen = (int)whole(option, value, 1 << 30);
        else if (!strcmp(option, "--repeat")) repeat = (int)whole(option, value, MAX_REPEAT);
        else if (!strcmp(option, "--json")) json = opened(value);
        else if (!strcmp(option, "--tsv")) tsv = opened(value);
        else if (!strcmp(option, "--markdown")) markdown = opened(value);
        else usage();
    }
    if (!count) usage();
    if (!tokens) tokens = full_grid ? 16384 : 4096;
    if (!width) width = full_grid ? 2048 : 512;
    if (!list) list = full_grid ? "512,1024,2048,4096,8192,16384" : "512,2048";
    seqlen_count = whole_list("--seqlens", list, 1 << 30, wanted, 32);
    for (int n = 0; n < seqlen_count; n++) seqlens[n] = (int)wanted[n];

    begin_json(repeat);
    print_machine();
    print_state("before");

    for (int i = 0; i < count; i++) {
        size_t heads = (size_t)(width / instances[i].dim > 0 ? width / instances[i].dim : 1);
        for (int n = 0; n <= seqlen_count; n++) {
            size_t s = (size_t)(n < seqlen_count ? seqlens[n] : variant_seqlen),
                   batch = (size_t)tokens / s > 0 ? (size_t)tokens / s : 1;
            size_t needed = batch * s * heads * (size_t)instances[i].dim;
            elements = needed > elements ? needed : elements;
        }
    }
    output = device_alloc(elements * 4);
    output_host = (char *)host_alloc(elements * 4);
    lse = (float *)device_alloc(elements * 4 / 8);

    if (json) fprintf(json, "\"compile\": [");
    for (int i = 0; i < count; i++) print_compilation(i, instances[i].name, &instances[i].compiled);
    if (json) fprintf(json, "],\n\"cells\": [");

    printf("\ngrid: batch x seqlen = %ld, heads x head_dim = %ld; median of %d\n", tokens, width, repeat);
    for (int i = 0; i < count; i++) {
        /* One group for each (head dimension, full or causal) that an instance opens. */
        int first = instances[i].variant <= CAUSAL;
        for (int j = 0; j < i; j++)
            first &= !(instances[j].dim == instances[i].dim && instances[j].variant == instances[i].variant);
        if (!first) continue;
        for (int n = 0; n < seqlen_count; n++) {
            int members = 0;
            shape s = {(int)(tokens / seqlens[n] > 0 ? tokens / seqlens[n] : 1),
                       (int)(width / instances[i].dim > 0 ? width / instances[i].dim : 1), seqlens[n],
                       instances[i].dim};
            for (int j = i; j < count; j++)
                if (instances[j].dim == instances[i].dim && instances[j].variant == instances[i].variant)
                    group[members++] = &instances[j];
            run_group(group, members, s, 0);
        }
    }
    for (int i = 0; i < count; i++) {
        /* The variants beside the plain kernel of the same type, head dimension and tile. */
        if (instances[i].variant != FULL) continue;
        int members = 1;
        group[0] = &instances[i];
        for (int j = 0; j < count; j++)
            if (instances[j].variant > CAUSAL && instances[j].dim == instances[i].dim &&
                instances[j].dtype == instances[i].dtype && !strcmp(instances[j].config, instances[i].config))
                group[members++] = &instances[j];
        if (members == 1) continue;
        for (int j = 0; j < count; j++)
            if (instances[j].variant == CAUSAL && instances[j].dim == instances[i].dim &&
                instances[j].dtype == instances[i].dtype && !strcmp(instances[j].config, instances[i].config))
                group[members++] = &instances[j];
        printf("\nvariants, with their time over (time of the plain kernel x share of the tiles that are visited)\n");
        shape s = {(int)(tokens / variant_seqlen > 0 ? tokens / variant_seqlen : 1),
                   (int)(width / instances[i].dim > 0 ? width / instances[i].dim : 1), variant_seqlen,
                   instances[i].dim};
        run_group(group, members, s, 1);
    }
    for (int i = 0; i < count; i++) {
        if (instances[i].grouped) continue;
        printf("MISSING  %s_d%d_full%s%s, beside which %s would have been checked and timed\n", dtype_names[instances[i].dtype], instances[i].dim,
               *instances[i].config ? "_" : "", instances[i].config, instances[i].name);
        failures++;
    }
    if (json) fprintf(json, "],\n");
    printf("\n");
    print_state("after");
    if (json) fprintf(json, "\"failures\": %d\n}\n", failures), fclose(json);
    if (tsv) fclose(tsv);
    if (markdown) print_markdown(markdown, seqlens, seqlen_count), fclose(markdown);
    if (failures) printf("%d cells are WRONG, or have no plain kernel to be compared with\n", failures);
    return failures != 0;
}
