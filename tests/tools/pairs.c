/* pairs.c: the table of tested combinations: makes it, checks that it covers every pair, draws random ones, and
 * writes instances as source.
 *
 *     pairs table              prints pairs.h: rows that cover every pair of (mask, score, dtype, head_dim, kind of head_dim_v)
 *     pairs hooks              prints rows of shipped hooks at the head dimensions that schedules tell apart
 *     pairs check LIST         reports as TAP whether the rows of LIST cover every pair
 *     pairs random N SEED      prints N rows at random
 *     pairs emit LIST FIRST STEP   prints the source of every STEP-th instance of LIST, from number FIRST on
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/rng.h"
#include "../harness/tap.h"

enum { MASKS = 11, SCORES = 8, DTYPES = 4, DIMS = 32, RELATIONS = 3, FACTORS = 5, MOST_ROWS = 4096 };
static const char *const masks[MASKS] = {"full",     "causal", "top_left", "window",  "prefix",
                                         "document", "packed", "sinks",    "strided", "causal_document", "span"};
static const char *const scores[SCORES] = {"none",     "alibi",        "softcap", "bias",
                                           "key_bias", "capped_alibi", "tilted",  "holes"};
static const char *const dtypes[DTYPES] = {"F32", "F16", "BF16", "TF32"};
static const int levels[FACTORS] = {MASKS, SCORES, DTYPES, DIMS, RELATIONS};

typedef struct row {
    int level[FACTORS]; /* relation: head_dim_v is the same, smaller, larger */
    int head_dim_v;
} row;

/* Pairs that cannot be: nothing is smaller than 8 or larger than 256. */
static int impossible(int f, int x, int g, int y) {
    return f == 3 && g == 4 && ((x == 0 && y == 1) || (x == DIMS - 1 && y == 2));
}

static unsigned char covered[FACTORS][FACTORS][DIMS][DIMS];

/* Marks the pairs of a row, or only counts those that are new. */
static int cover(const row *r, int mark) {
    int fresh = 0;
    for (int f = 0; f < FACTORS; f++)
        for (int g = f + 1; g < FACTORS; g++) {
            unsigned char *at = &covered[f][g][r->level[f]][r->level[g]];
            fresh += !*at;
            if (mark) *at = 1;
        }
    return fresh;
}
static int missing(void) {
    int n = 0;
    for (int f = 0; f < FACTORS; f++)
        for (int g = f + 1; g < FACTORS; g++)
            for (int x = 0; x < levels[f]; x++)
                for (int y = 0; y < levels[g]; y++) n += !covered[f][g][x][y] && !impossible(f, x, g, y);
    return n;
}

static void random_row(row *r, rng *random) {
    do {
        for (int f = 0; f < FACTORS; f++) r->level[f] = rng_int(random, 0, levels[f] - 1);
    } while (impossible(3, r->level[3], 4, r->level[4]));
}
static void choose_head_dim_v(row *r, rng *random) {
    int d = r->level[3] + 1;
    r->head_dim_v = 8 * (r->level[4] == 0 ? d : r->level[4] == 1 ? rng_int(random, 1, d - 1) : rng_int(random, d + 1, DIMS));
}
static void print_row(int number, const row *r) {
    printf("PAIR(%d, %s, %s, %s, %d, %d)\n", number, masks[r->level[0]], scores[r->level[1]], dtypes[r->level[2]],
           8 * (r->level[3] + 1), r->head_dim_v);
}

/* Shipped hooks, the way schedules tell them apart. Of half types: tiles are taken in two parts or one, in an odd
 * number of steps, with Q in registers or not. Of others: a bias is loaded ahead of the product. */
static void print_hooks(void) {
    static const int dims[] = {64, 80, 96, 112, 128, 256}, of_scores[] = {1, 2, 3, 4};
    int rows = 0;
    for (int mask = 0; mask < 2; mask++)
        for (int dim = 0; dim < 6; dim++)
            for (int score = 0; score < 4; score++) {
                if (mask && dim % 2) continue; /* causal at every other one */
                row r = {{mask, of_scores[score], 1 + (dim + score + mask) % 2, dims[dim] / 8 - 1, 0}, dims[dim]};
                print_row(rows++, &r);
            }
    const row of_floats[] = {{{1, 3, 0, 64 / 8 - 1, 0}, 64}, {{0, 3, 3, 128 / 8 - 1, 0}, 128}};
    for (int i = 0; i < 2; i++) print_row(rows++, &of_floats[i]);
}

static int make_table(void) {
    enum { TRIES = 400 };
    rng random = rng_new(2, 0);
    int rows = 0;
    printf("/* pairs.h: the combinations that the tests instantiate; made by `pairs table` (tools/pairs.c).\n"
           " * Every pair of choices occurs: mask, score, dtype, head_dim, and head_dim_v the same, smaller or larger.\n"
           " * PAIR(number, mask, score, dtype, head_dim, head_dim_v) */\n");
    /* Greedy: masks and head dimensions have the most pairs, so a row for each, the rest chosen to cover the most. */
    while (missing())
        for (int mask = 0; mask < MASKS; mask++)
            for (int dim = 0; dim < DIMS; dim++) {
                row best, r;
                int most = 0;
                for (int i = 0; i < TRIES; i++) {
                    random_row(&r, &random);
                    r.level[0] = mask, r.level[3] = dim;
                    if (impossible(3, dim, 4, r.level[4])) continue;
                    int fresh = cover(&r, 0);
                    if (fresh > most) most = fresh, best = r;
                }
                if (!most) continue;
                choose_head_dim_v(&best, &random);
                cover(&best, 1);
                print_row(rows++, &best);
            }
    return 0;
}

static int find(const char *const *names, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name)) return i;
    fprintf(stderr, "pairs: %s is not known\n", name);
    exit(1);
}

static int read_list(const char *path, row *rows) {
    FILE *file = fopen(path, "r");
    char line[256], mask[32], score[32], dtype[32];
    int n = 0, number, d, dv;
    if (!file) {
        fprintf(stderr, "pairs: cannot read %s\n", path);
        exit(1);
    }
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "PAIR(", 5)) continue;
        if (sscanf(line, "PAIR(%d, %31[a-z_], %31[a-z_], %31[A-Z0-9], %d, %d)", &number, mask, score, dtype, &d, &dv) != 6) {
            fprintf(stderr, "pairs: %s: not a row: %s", path, line);
            exit(1);
        }
        row *r = &rows[n++];
        r->level[0] = find(masks, MASKS, mask), r->level[1] = find(scores, SCORES, score);
        r->level[2] = find(dtypes, DTYPES, dtype), r->level[3] = d / 8 - 1;
        r->level[4] = dv == d ? 0 : dv < d ? 1 : 2, r->head_dim_v = dv;
        if (number != n - 1 || d % 8 || d < 8 || d > 8 * DIMS || dv % 8 || dv < 8 || dv > 8 * DIMS || n == MOST_ROWS) {
            fprintf(stderr, "pairs: %s: bad row %d\n", path, number);
            exit(1);
        }
    }
    fclose(file);
    return n;
}

static int check(const char *path) {
    static row rows[MOST_ROWS];
    static const char *const names[FACTORS] = {"mask", "score", "dtype", "head_dim", "kind of head_dim_v"};
    int n = read_list(path, rows);
    for (int i = 0; i < n; i++) cover(&rows[i], 1);
    for (int f = 0; f < FACTORS; f++)
        for (int g = f + 1; g < FACTORS; g++) {
            int left = 0;
            for (int x = 0; x < levels[f]; x++)
                for (int y = 0; y < levels[g]; y++) left += !covered[f][g][x][y] && !impossible(f, x, g, y);
            tap_ok(!left, "%d combinations cover every pair of %s and %s (%d left out)", n, names[f], names[g], left);
        }
    return tap_end();
}

static void emit(const row *r, const char *prefix, int number) {
    const char *mask = masks[r->level[0]], *score = scores[r->level[1]];
    int own_mask = !strcmp(mask, "packed") || !strcmp(mask, "sinks") || !strcmp(mask, "strided"), own_score = !strcmp(score, "capped_alibi");
    if (!strcmp(mask, "strided") || !strcmp(score, "tilted")) printf("#define FA_USER_ARGS struct test_user\n");
    if (own_mask) printf("TEST_MASK_%s(%s_%d_mask)\n#define FA_MASK %s_%d_mask\n", mask, prefix, number, prefix, number);
    else if (r->level[0]) printf("#define FA_MASK fa_%s\n", !strcmp(mask, "window") ? "sliding_window" : !strcmp(mask, "top_left") ? "causal_top_left" : mask);
    if (own_score) printf("TEST_SCORE_%s(%s_%d_score)\n#define FA_SCORE %s_%d_score\n", score, prefix, number, prefix, number);
    else if (r->level[1]) printf("#define FA_SCORE %s%s\n", r->level[1] >= 6 ? "test_" : "fa_", score);
    printf("#define FA_NAME %s_%d\n#define FA_DTYPE FA_%s\n#define FA_HEAD_DIM %d\n", prefix, number, dtypes[r->level[2]],
           8 * (r->level[3] + 1));
    if (r->level[4]) printf("#define FA_HEAD_DIM_V %d\n", r->head_dim_v);
    printf("#include <fa/attention.h>\n\n");
}

static int emit_list(const char *path, int first, int step) {
    static row rows[MOST_ROWS];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *prefix = strstr(name, "random") ? "random" : strstr(name, "hooks") ? "hooks" : "pair";
    int n = read_list(path, rows);
    printf("/* Made by tools/pairs.c. */\n#define FORWARD_INSTANCES\n#include \"suites/hooks.h\"\n\n");
    for (int i = first; i < n; i += step) emit(&rows[i], prefix, i);
    printf("#include \"suites/forward.h\"\n\nconst instance forward_instances[] = {\n");
    for (int i = first; i < n; i += step)
        printf("    FORWARD_INSTANCE(%s_%d, %s, %s, FA_%s, %d, %d),\n", prefix, i, masks[rows[i].level[0]],
               scores[rows[i].level[1]], dtypes[rows[i].level[2]], 8 * (rows[i].level[3] + 1), rows[i].head_dim_v);
    printf("};\nconst int forward_count = %d;\n", first < n ? (n - first + step - 1) / step : 0);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "table")) return make_table();
    if (argc == 2 && !strcmp(argv[1], "hooks")) {
        print_hooks();
        return 0;
    }
    if (argc == 3 && !strcmp(argv[1], "check")) return check(argv[2]);
    if (argc == 5 && !strcmp(argv[1], "emit")) return emit_list(argv[2], atoi(argv[3]), atoi(argv[4]));
    if (argc == 4 && !strcmp(argv[1], "random")) {
        rng random = rng_new(strtoull(argv[3], NULL, 0), 99);
        for (int i = 0; i < atoi(argv[2]); i++) {
            row r;
            random_row(&r, &random);
            choose_head_dim_v(&r, &random);
            print_row(i, &r);
        }
        return 0;
    }
    fprintf(stderr, "usage: pairs table | hooks | check LIST | random N SEED | emit LIST FIRST STEP\n");
    return 2;
}
