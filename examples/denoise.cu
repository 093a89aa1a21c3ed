/* denoise: non-local means denoising, which is attention.
 *
 * Buades, Coll and Morel (CVPR 2005) replace each pixel by a mean of all pixels, weighted by how much alike their
 * surroundings look:
 *
 *     out[i] = sum_j w(i, j) pixel[j] / sum_j w(i, j)        w(i, j) = exp(-|patch[i] - patch[j]|^2 / h^2)
 *
 * Take the patches for queries and keys and the pixels for values: that is softmax attention. For, with p for patch[i], the
 * query's, and q for patch[j], the key's:
 *
 *     -|p - q|^2 / h^2  =  (2/h^2) p.q  -  |q|^2 / h^2  -  |p|^2 / h^2
 *
 * The first term is a scaled dot product: scale = 2/h^2. The second depends on the key alone: fa_key_bias. The
 * third is the same for all keys of a query, and cancels in the softmax. A 256 x 256 photo has 65,536 tokens;
 * written out, its scores would fill 16 GiB. Here they exist only a tile at a time.
 *
 * Two things of our own show how attention is varied: a score hook (a pixel resembles itself too well, noise and
 * all), and a mask for --window R, which looks only at pixels within R columns and R rows, and tells which blocks
 * hold none of those.
 *
 * cc -O3 -x c -I../include denoise.cu -lm -pthread      or      nvcc -O3 -arch=sm_90a -I../include denoise.cu
 */
#include "harness.h"
#include "image.h"

#include <sys/stat.h>

#include <fa/fa.h>
#include <fa/mask.h>
#include <fa/score.h>

struct nlm {
    int width;  /* of the photo: token = y * width + x */
    int first;  /* token of query 0: a call denoises a part of the photo, and its queries count from 0 */
    int radius; /* of the window; negative: everything */
    float self; /* added to a pixel's score with itself */
};

/* The squared distance of a noisy patch, of D numbers, from a second noisy picture of the same thing is 2 D sigma^2 on
 * average. From itself it is 0, which would give the pixel's own noise most of the weight. So its squared distance from
 * itself is set to that mean. */
FA_HOOK float nlm_self(const struct nlm *u, float score, fa_index at) {
    return score + (at.key == u->first + at.query ? u->self : 0.0f);
}

/* The rows and columns that a range of tokens touches. */
struct area {
    int top, bottom, left, right; /* inclusive */
};
FA_HOOK struct area nlm_area(const struct nlm *u, fa_range tokens, int first) {
    struct area a;
    int begin = tokens.begin + first, last = tokens.end - 1 + first;
    a.top = begin / u->width, a.bottom = last / u->width;
    a.left = a.top == a.bottom ? begin % u->width : 0;
    a.right = a.top == a.bottom ? last % u->width : u->width - 1;
    return a;
}
FA_HOOK int nlm_larger(int a, int b) { return a > b ? a : b; }
FA_HOOK int nlm_clamp(int x, int low, int high) { return x < low ? low : x > high ? high : x; }

/* The mask. Hidden is what is more than radius rows or columns away. */
FA_HOOK int nlm_window_keep(const struct nlm *u, fa_index at) {
    int query = at.query + u->first;
    int dy = at.key / u->width - query / u->width, dx = at.key % u->width - query % u->width;
    return (u->radius < 0) | ((dy <= u->radius) & (-dy <= u->radius) & (dx <= u->radius) & (-dx <= u->radius));
}
/* A block: empty if even its nearest pixels are too far apart, full if its farthest are near enough. */
FA_HOOK fa_tile_class nlm_window_tile(const struct nlm *u, fa_box box) {
    if (u->radius < 0) return FA_FULL;
    struct area q = nlm_area(u, box.queries, u->first), k = nlm_area(u, box.keys, 0);
    int nearest =
        nlm_larger(nlm_larger(k.top - q.bottom, q.top - k.bottom), nlm_larger(k.left - q.right, q.left - k.right));
    int farthest =
        nlm_larger(nlm_larger(k.bottom - q.top, q.bottom - k.top), nlm_larger(k.right - q.left, q.right - k.left));
    return nearest > u->radius ? FA_EMPTY : farthest <= u->radius ? FA_FULL : FA_PARTIAL;
}
/* The keys worth a visit: from the first row in reach to the last. */
FA_HOOK fa_range nlm_window_keys(const struct nlm *u, fa_box box) {
    if (u->radius < 0) return box.keys;
    struct area q = nlm_area(u, box.queries, u->first);
    fa_range keys;
    keys.begin = nlm_clamp((q.top - u->radius) * u->width, box.keys.begin, box.keys.end);
    keys.end = nlm_clamp((q.bottom + u->radius + 1) * u->width, keys.begin, box.keys.end);
    return keys;
}
FA_HOOK fa_range nlm_window_queries(const struct nlm *u, fa_box box) {
    if (u->radius < 0) return box.queries;
    struct area k = nlm_area(u, box.keys, 0);
    fa_range queries;
    queries.begin = nlm_clamp((k.top - u->radius) * u->width - u->first, box.queries.begin, box.queries.end);
    queries.end = nlm_clamp((k.bottom + u->radius + 1) * u->width - u->first, queries.begin, box.queries.end);
    return queries;
}

/* The bias first, then nlm_self(). The chain needs FA_USER_ARGS, and so do the instances, each of which undefines
 * it. */
#define FA_USER_ARGS struct nlm
FA_SCORE_CHAIN(nlm_score, fa_key_bias, nlm_self)

/* Patches of a colour photo: 5 x 5 x 3 = 75 numbers, in rows of 80. A head dimension is a multiple of 8; zeros
 * change nothing. */
#define FA_NAME nlm_colour
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 80
#define FA_HEAD_DIM_V 8
#define FA_MASK nlm_window
#define FA_SCORE nlm_score
#define FA_USER_ARGS struct nlm
#include <fa/attention.h>

/* Patches of a gray one: 7 x 7 = 49 numbers, in rows of 56. */
#define FA_NAME nlm_gray
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 56
#define FA_HEAD_DIM_V 8
#define FA_MASK nlm_window
#define FA_SCORE nlm_score
#define FA_USER_ARGS struct nlm
#include <fa/attention.h>

enum { VALUES = 8 }; /* a pixel's 1 or 3 numbers, in rows of 8 */

/* ------------------------------------------------------------------ the photo as tokens */

/* Beyond its edges a photo goes on as its mirror image. */
static int mirrored(int x, int size) {
    while (x < 0 || x >= size) x = x < 0 ? -1 - x : 2 * size - 1 - x;
    return x;
}

/* The patches as rows of `dim` floats, and each one's squared length. 128 is subtracted from all numbers: dot
 * products of numbers near 0 keep more of their digits, and distances stay the same. */
static void make_patches(image photo, int radius, int dim, float *patches, float *squares) {
    for (int y = 0; y < photo.height; y++)
        for (int x = 0; x < photo.width; x++) {
            size_t token = (size_t)y * (size_t)photo.width + (size_t)x;
            float *to = patches + token * (size_t)dim;
            double square = 0;
            int n = 0;
            for (int dy = -radius; dy <= radius; dy++)
                for (int dx = -radius; dx <= radius; dx++) {
                    size_t pixel = (size_t)mirrored(y + dy, photo.height) * (size_t)photo.width;
                    pixel += (size_t)mirrored(x + dx, photo.width);
                    for (int c = 0; c < photo.channels; c++, n++) {
                        to[n] = photo.data[pixel * (size_t)photo.channels + (size_t)c] - 128;
                        square += (double)to[n] * to[n];
                    }
                }
            for (; n < dim; n++) to[n] = 0;
            squares[token] = (float)square;
        }
}

/* The noise of a photo: its mean response to a filter that no plane or gentle curve excites (Immerkaer 1996). */
static double estimate_noise(image p) {
    static const float filter[3][3] = {{1, -2, 1}, {-2, 4, -2}, {1, -2, 1}};
    double sum = 0;
    if (p.width < 3 || p.height < 3) DIE("the photo is too small to estimate its noise: say it with --noise");
    for (int y = 1; y < p.height - 1; y++)
        for (int x = 1; x < p.width - 1; x++)
            for (int c = 0; c < p.channels; c++) {
                double response = 0;
                for (int i = 0; i < 9; i++) {
                    size_t pixel = (size_t)(y + i / 3 - 1) * (size_t)p.width + (size_t)(x + i % 3 - 1);
                    response += filter[i / 3][i % 3] * p.data[pixel * (size_t)p.channels + (size_t)c];
                }
                sum += fabs(response);
            }
    return sqrt(1.5707963267948966) / 6 * sum / ((double)(p.width - 2) * (p.height - 2) * p.channels);
}

/* The definition, in double, for one pixel: what the result is checked with. */
static void denoise_one(image photo, const float *patches, int dim, const struct nlm *u, double h2, int token,
                        double *out) {
    double sum = 0;
    for (int c = 0; c < photo.channels; c++) out[c] = 0;
    for (int other = 0; other < photo.width * photo.height; other++) {
        const float *p = patches + (size_t)token * (size_t)dim, *q = patches + (size_t)other * (size_t)dim;
        int dx = abs(other % photo.width - token % photo.width), dy = abs(other / photo.width - token / photo.width);
        double distance = other == token ? -(double)u->self * h2 : 0;
        if (u->radius >= 0 && (dx > u->radius || dy > u->radius)) continue;
        for (int d = 0; d < dim; d++) distance += ((double)p[d] - q[d]) * ((double)p[d] - q[d]);
        double weight = exp(-distance / h2);
        sum += weight;
        for (int c = 0; c < photo.channels; c++)
            out[c] += weight * photo.data[(size_t)other * (size_t)photo.channels + (size_t)c];
    }
    for (int c = 0; c < photo.channels; c++) out[c] /= sum;
}

/* Peak signal-to-noise ratio in decibels: 20 log10(255 / root mean square error). */
static double psnr(image a, image b) {
    double square = 0;
    for (size_t i = 0; i < image_count(a); i++) square += (double)(a.data[i] - b.data[i]) * (a.data[i] - b.data[i]);
    return 10 * log10(255.0 * 255.0 * (double)image_count(a) / square);
}

static void show_progress(double part, double begin) {
    static int shown = -1;
    int terminal = isatty(2), percent = (int)(100 * part);
    double passed = now() - begin;
    if (terminal) fprintf(stderr, "\r  %3d%%  %6.1f s, %.1f s left   ", percent, passed, passed / part - passed);
    else if (percent / 25 != shown && passed > 1) fprintf(stderr, "  %3d%%  %6.1f s\n", percent, passed);
    if (terminal && part == 1) fputs("\r                                   \r", stderr);
    shown = percent / 25;
}

/* ------------------------------------------------------------------ the program */

struct options {
    const char *photo, *out;
    double sigma, noise, strength;
    int window, seed, threads;
};

static const char usage[] =
    "usage: denoise [options] photo.ppm\n"
    "Denoises a PGM or PPM photo: every pixel becomes a mean over all pixels with similar surroundings.\n\n"
    "  --sigma S     add Gaussian noise of this standard deviation first (0 to 255; default 25), and\n"
    "                compare with the photo as it was; 0: the photo is noisy already\n"
    "  --noise S     with --sigma 0: the noise that is in the photo (default: estimated from it)\n"
    "  --strength X  larger removes more noise and more detail (default 0.4)\n"
    "  --window R    look only at pixels within R rows and R columns (default: at all pixels)\n"
    "  --out DIR     where noisy.png, denoised.png and denoised.ppm (denoised.pgm of a gray photo) go\n"
    "                (default .)\n"
    "  --seed N      of the noise (default 1)\n"
    "  --threads N   CPU threads (default: all)\n";

static double number(const char *option, const char *text, double least, double most) {
    char *end = NULL;
    double x = text ? strtod(text, &end) : 0;
    if (!text || end == text || *end || !(x >= least && x <= most))
        DIE("%s wants a number from %.10g to %.10g, not \"%s\"", option, least, most, text ? text : "");
    return x;
}
static int whole(const char *option, const char *text, int least, int most) {
    double x = number(option, text, least, most);
    if (x != (int)x) DIE("%s wants a whole number, not \"%s\"", option, text);
    return (int)x;
}

static struct options parse(int count, char **words) {
    struct options o = {NULL, ".", 25, 0, 0.4, -1, 1, 0};
    for (int i = 1; i < count; i++) {
        const char *word = words[i], *next = i + 1 < count ? words[i + 1] : NULL;
        if (!strcmp(word, "--help") || !strcmp(word, "-h")) fputs(usage, stdout), exit(0);
        else if (!strcmp(word, "--sigma")) o.sigma = number(word, next, 0, 255), i++;
        else if (!strcmp(word, "--noise")) o.noise = number(word, next, 1, 255), i++;
        else if (!strcmp(word, "--strength")) o.strength = number(word, next, 0.2, 100), i++;
        else if (!strcmp(word, "--window")) o.window = whole(word, next, 0, 16384), i++;
        else if (!strcmp(word, "--seed")) o.seed = whole(word, next, 0, 2147483647), i++;
        else if (!strcmp(word, "--threads")) o.threads = whole(word, next, 1, 1024), i++;
        else if (!strcmp(word, "--out") && next) o.out = next, i++;
        else if (word[0] == '-') DIE("denoise: unknown or incomplete option %s\n\n%s", word, usage);
        else if (o.photo) DIE("denoise: one photo at a time: %s or %s", o.photo, word);
        else o.photo = word;
    }
    if (!o.photo || !*o.photo) DIE("denoise: which photo?\n\n%s", usage);
    if (o.noise > 0 && o.sigma > 0) DIE("--noise %g is for a photo that is noisy already: with --sigma 0, not %g", o.noise, o.sigma);
    return o;
}

static char *path_in(const char *folder, const char *name) {
    size_t room = strlen(folder) + strlen(name) + 2;
    char *path = (char *)host_alloc(room);
    snprintf(path, room, "%s/%s", folder, name);
    return path;
}
/* Can it be written, and is it not the photo itself? Asked before the work, not after it. */
static void try_picture(const char *photo, const char *folder, const char *name) {
    char *path = path_in(folder, name);
    struct stat of_photo, of_path;
    int is_new = lstat(path, &of_path) != 0; /* a link that leads nowhere is not ours to remove */
    if (!stat(photo, &of_photo) && !stat(path, &of_path) && of_photo.st_dev == of_path.st_dev && of_photo.st_ino == of_path.st_ino)
        DIE("%s: this result would overwrite the photo %s: name another folder with --out", path, photo);
    FILE *stream = fopen(path, "ab");
    if (!stream) DIE("%s: cannot open it for writing: %s", path, strerror(errno));
    fclose(stream);
    if (is_new) remove(path);
    free(path);
}
static void write_picture(image p, const char *folder, const char *name, int png) {
    char *path = path_in(folder, name);
    if (png) image_write_png(p, path);
    else image_write_pnm(p, path);
    printf("wrote     %s\n", path);
    free(path);
}

static void print_size(double bytes) {
    if (bytes < 1024) printf("%.0f bytes", bytes);
    else if (bytes < 1048576) printf("%.1f KiB", bytes / 1024);
    else printf("%.1f MiB", bytes / 1048576);
}

/* The queries from nlm->first on, a.seqlen_q of them, and their results. */
static void part_of(fa_attention_args *a, const struct nlm *nlm, float *patches, int dim, float *out) {
    a->q = fa_tensor_bhsd(patches + (size_t)nlm->first * (size_t)dim, 1, a->seqlen_q, dim);
    a->o = fa_tensor_bhsd(out + (size_t)nlm->first * VALUES, 1, a->seqlen_q, VALUES);
}

int main(int count, char **words) {
    struct options option = parse(count, words);
    image clean = image_read(option.photo), noisy = image_new(clean.width, clean.height, clean.channels, clean.maxval);
    int tokens = clean.width * clean.height, colour = clean.channels == 3;
    int dim = colour ? 80 : 56, radius = colour ? 2 : 3, numbers = (2 * radius + 1) * (2 * radius + 1) * clean.channels;
    rng r = {(uint64_t)option.seed};
    const char *names[] = {"noisy.png", "denoised.png", colour ? "denoised.ppm" : "denoised.pgm"};
    if (mkdir(option.out, 0777) && errno != EEXIST) DIE("%s: cannot make this folder: %s", option.out, strerror(errno));
    for (int i = 0; i < 3; i++) try_picture(option.photo, option.out, names[i]);
    memcpy(noisy.data, clean.data, sizeof(float) * image_count(clean));
    if (option.sigma > 0) {
        for (size_t i = 0; i < image_count(noisy); i++) noisy.data[i] += (float)(option.sigma * rng_normal(&r));
        image_round(noisy); /* as a camera would: whole numbers within 0 and the maximum */
    }
    double has = option.sigma > 0 ? option.sigma : option.noise > 0 ? option.noise : estimate_noise(noisy);
    double noise = has > 1 ? has : 1; /* less would ask more digits of the scores than a float has */
    double h2 = option.strength * option.strength * noise * noise * numbers;
    const char *known = option.sigma > 0 ? "added" : option.noise > 0 ? "as told" : "estimated";
    printf("photo     %s: %d x %d %s, %d tokens; noise %.1f (%s%s)\n", option.photo, clean.width, clean.height,
           colour ? "colour" : "gray", tokens, has, known, noise > has ? ", taken as 1.0" : "");

    /* The tensors: patches serve as queries and as keys. */
    size_t patch_bytes = sizeof(float) * (size_t)tokens * (size_t)dim, bias_bytes = sizeof(float) * (size_t)tokens;
    size_t value_bytes = sizeof(float) * (size_t)tokens * VALUES;
    float *patches = (float *)host_alloc(patch_bytes), *bias = (float *)host_alloc(bias_bytes);
    float *values = (float *)host_alloc(value_bytes);
    make_patches(noisy, radius, dim, patches, bias);
    size_t channels = (size_t)clean.channels;
    for (size_t i = 0; i < (size_t)tokens; i++) {
        bias[i] = (float)(-bias[i] / h2);
        for (size_t c = 0; c < VALUES; c++) values[i * VALUES + c] = c < channels ? noisy.data[i * channels + c] : 0;
    }
    float *device_patches = (float *)device_alloc(patch_bytes), *device_bias = (float *)device_alloc(bias_bytes);
    float *device_values = (float *)device_alloc(value_bytes), *device_out = (float *)device_alloc(value_bytes);
    to_device(device_patches, patches, patch_bytes);
    to_device(device_bias, bias, bias_bytes);
    to_device(device_values, values, value_bytes);

    struct nlm nlm = {clean.width, 0, option.window, (float)(-2 * noise * noise * numbers / h2)};
    fa_attention_args a = fa_attention_defaults();
    a.batch = a.heads = a.heads_kv = 1;
    a.seqlen_k = tokens;
    a.k = fa_tensor_bhsd(device_patches, 1, tokens, dim);
    a.v = fa_tensor_bhsd(device_values, 1, tokens, VALUES);
    a.key_bias = device_bias;
    a.scale = (float)(2 / h2);
    a.threads = option.threads;
    a.user = &nlm;
    fa_status (*forward)(const fa_attention_args *, fa_stream) = colour ? nlm_colour_forward : nlm_gray_forward;
    fa_status (*plan)(const fa_attention_args *, fa_plan *) = colour ? nlm_colour_plan : nlm_gray_plan;

    fflush(stdout);
    /* A part of the queries at a time, for the sake of the progress line; the first call, of a few, warms up. */
    int part = ON_GPU ? 32768 : (tokens / 64 / 256 + 1) * 256;
    double begin = 0, visited = 0, total = 0;
    fa_plan way;
    for (int first = -1; first < tokens;) {
        int warm_up = first < 0;
        nlm.first = warm_up ? 0 : first;
        a.seqlen_q = warm_up ? (tokens < 64 ? tokens : 64) : tokens - first < part ? tokens - first : part;
        part_of(&a, &nlm, device_patches, dim, device_out);
        FA(forward(&a, 0));
        device_wait();
        if (warm_up) begin = now();
        first = warm_up ? 0 : first + a.seqlen_q;
        if (!warm_up) show_progress((double)first / tokens, begin);
    }
    double seconds = now() - begin;
    for (nlm.first = 0; nlm.first < tokens; nlm.first += part) {
        a.seqlen_q = tokens - nlm.first < part ? tokens - nlm.first : part;
        part_of(&a, &nlm, device_patches, dim, device_out);
        FA(plan(&a, &way));
        visited += (double)way.tiles_visited, total += (double)way.tiles_total;
    }
    to_host(values, device_out, value_bytes);

    double largest = 0;
    enum { CHECKED = 16 };
    for (int i = 0; i < CHECKED; i++) {
        int token = (int)(rng_uniform(&r) * tokens);
        double wanted[3];
        denoise_one(noisy, patches, dim, &nlm, h2, token, wanted);
        for (size_t c = 0; c < channels; c++)
            largest = fmax(largest, fabs(wanted[c] - values[(size_t)token * VALUES + c]));
    }

    image out = image_new(clean.width, clean.height, clean.channels, clean.maxval);
    for (size_t i = 0; i < (size_t)tokens; i++)
        for (size_t c = 0; c < channels; c++) out.data[i * channels + c] = values[i * VALUES + c];
    image_round(out);
    for (size_t i = 0; i < image_count(out); i++)
        if (!isfinite(out.data[i])) DIE("denoise: a pixel of the result is not a number");

    double pairs = (double)tokens * tokens * visited / total, unfused = 4.0 * tokens * tokens;
    double ours = 2.0 * (double)value_bytes + (double)patch_bytes + (double)bias_bytes;
    double rate = 2 * pairs * (dim + VALUES) / seconds;
    printf("schedule  %s, tiles of %d x %d: %.0f of %.0f visited (%.1f%%)\n", way.schedule, way.block_m, way.block_n,
           visited, total, 100 * visited / total);
    printf("time      %.3f s, %.*f GFLOP/s (2 * (%d + %d) a visited pair)\n", seconds, rate < 1e12 ? 1 : 0, 1e-9 * rate,
           dim, VALUES);
    printf("memory    ");
    print_size(ours);
    printf(" of tensors; unfused, the score matrix alone: ");
    print_size(unfused);
    printf(" (%.*f times as much)\n", unfused < 10 * ours ? 2 : 0, unfused / ours);
    printf("check     %d pixels by the definition, in double: differ by at most %.1e of 255\n", CHECKED, largest);
    if (option.sigma > 0) printf("PSNR      %.2f dB before, %.2f dB after\n", psnr(clean, noisy), psnr(clean, out));
    write_picture(noisy, option.out, names[0], 1);
    write_picture(out, option.out, names[1], 1);
    write_picture(out, option.out, names[2], 0);

    if (!(largest < 0.1)) DIE("denoise: the result is wrong: its pixels should differ by less than 0.1");
    void *device[] = {device_patches, device_bias, device_values, device_out};
    for (int i = 0; i < 4; i++) device_free(device[i]);
    free(patches), free(bias), free(values), free(clean.data), free(noisy.data), free(out.data);
    return 0;
}
