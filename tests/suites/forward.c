/* forward.c: the instances of one file of the pair table, each on nasty and on random shapes, against the reference;
 * and what NAME_plan() counts, against brute force. One TAP line an instance and kind of test. */
#include "forward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/check.h"
#include "../harness/number.h"
#include "../harness/tap.h"

/* The masks that both keep what a mask keeps: tiles that neither part alone leaves empty may be visited (fa/fa.h). */
static void parts_of(int mask, int *parts) {
    parts[0] = mask == MASK_packed ? MASK_window : mask == MASK_causal_document ? MASK_causal : mask;
    parts[1] = mask == MASK_packed || mask == MASK_causal_document ? MASK_document : mask;
}

/* Does the plan of an instance count what keep() says, of each part of a mask? Exactly, but for masks that say
 * nothing of tiles. */
static int plan_is_right(const instance *of, const shape *s, rng *r) {
    problem p;
    fa_plan plan;
    fa_status status;
    int64_t total = 0, visible = 0, partial = 0;
    int exact = of->mask != MASK_sinks && of->mask != MASK_strided;
    int right, parts[2];
    char text[512];
    parts_of(of->mask, parts);
    problem_new(&p, of, s, check_place, r);
    memset(&plan, 0xFF, sizeof plan);
    status = of->plan(&p.args, &plan);
    if (status != FA_OK) {
        tap_note("%s_plan: %s: %s", of->name, fa_status_string(status), fa_last_error());
        problem_delete(&p);
        return 0;
    }
    for (int b = 0; b < s->batch; b++)
        for (int h = 0; h < s->heads; h++)
            for (int i0 = 0; i0 < s->seqlen_q; i0 += plan.block_m)
                for (int j0 = 0; j0 < s->seqlen_k; j0 += plan.block_n) {
                    int all_see = 1, some_hide = 0;
                    for (int part = 0; part < 1 + (parts[0] != parts[1]); part++) {
                        int seen = 0;
                        p.of.mask = parts[part];
                        for (int i = i0; i < i0 + plan.block_m && i < s->seqlen_q; i++)
                            for (int j = j0; j < j0 + plan.block_n && j < s->seqlen_k; j++)
                                reference_visible(&p, b, h, i, j) ? seen++ : some_hide++;
                        all_see &= seen != 0;
                    }
                    total++, visible += all_see, partial += all_see && some_hide;
                }
    p.of.mask = of->mask;
    right = plan.tiles_total == total && plan.tiles_visited + plan.tiles_skipped == total && plan.tiles_visited >= visible &&
            plan.tiles_masked >= partial && plan.tiles_masked <= plan.tiles_visited &&
            (!exact || (plan.tiles_visited == visible && plan.tiles_masked == partial)) &&
            plan.workspace_bytes == of->workspace(&p.args) && plan.schedule && *plan.schedule && plan.block_m > 0 &&
            plan.block_n > 0 && plan.warps > 0 && plan.threads > 0 && plan.stages > 0 &&
            (check_place == MEMORY_HOST ? plan.arch == FA_CPU : plan.arch == 80 || plan.arch == 90);
    if (!right)
        tap_note("%s_plan: total %lld visited %lld masked %lld skipped %lld, by brute force %lld %lld %lld %lld; tile %d x %d: %s",
                 of->name, (long long)plan.tiles_total, (long long)plan.tiles_visited, (long long)plan.tiles_masked,
                 (long long)plan.tiles_skipped, (long long)total, (long long)visible, (long long)partial,
                 (long long)(total - visible), plan.block_m, plan.block_n, problem_describe(&p, text, sizeof text));
    problem_delete(&p);
    return right;
}

int main(void) {
    const char *why = NULL, *wanted = getenv("FA_ROUNDS");
    int rounds = wanted && *wanted ? atoi(wanted) : 6;
    check_place = (memory_place)forward_place;
    if (check_place == MEMORY_DEVICE && !memory_has_device(&why)) {
        tap_skip("%d instances on the GPU: %s", forward_count, why);
        return tap_end();
    }
    for (int n = 0; n < forward_count; n++) {
        const instance *of = &forward_instances[n];
        uint64_t purpose = 1000;
        int set = n + (int)(rng_seed() % 4), shapes = 0, wrong = 0, plans = 0, wrong_plans = 0; /* by instance and seed, else a shape would always run in the same one */
        double worst = 0;
        rng r;
        shape s;
        for (const char *c = of->name; *c; c++) purpose = purpose * 31 + (uint64_t)*c;
        r = rng_new(rng_seed(), purpose);
        for (int i = 0; check_nasty_shape(of, i, &s, &r); i++, shapes++) {
            check_instruction_set(set++);
            wrong += !check_shape(of, &s, &r, &worst);
        }
        for (int i = 0; i < rounds; i++, shapes++) {
            check_instruction_set(set++);
            s = check_random_shape(of, &r, i == 0);
            wrong += !check_shape(of, &s, &r, &worst);
        }
        tap_ok(!wrong, "%s: %s %s %s d%d/%d: %d shapes, largest error %.2f of the allowed (%d wrong)", of->name,
               mask_name(of->mask), score_name(of->score),
               number_name(of->dtype),
               of->head_dim, of->head_dim_v, shapes, worst, wrong);
        for (; plans < 3; plans++) {
            s = check_random_shape(of, &r, 1);
            if (plans) s.seqlen_q *= 3, s.seqlen_k *= 2;
            wrong_plans += !plan_is_right(of, &s, &r);
        }
        tap_ok(!wrong_plans, "%s_plan counts tiles as brute force does (%d of %d wrong)", of->name, wrong_plans, plans);
    }
    return tap_end();
}
