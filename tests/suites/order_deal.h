/* order_deal.h: a function that deals all blocks of queries of a call to teams, in the order of one sm_90a schedule
 * of an instance that is compiled for the simulator. Parameters: DEAL_NAME, the instance, and DEAL_SCHEDULE, _sm90
 * or _sm90_long. Included as often as wanted. */
#define DEAL_CAT(a, b, c) DEAL_CAT_(a, b, c)
#define DEAL_CAT_(a, b, c) a##b##c
#define DEAL_OF(x) DEAL_CAT(DEAL_NAME, , x)
#define DEAL_IN(x) DEAL_CAT(DEAL_NAME, DEAL_SCHEDULE, x)

static int DEAL_IN(_deal)(const fa_attention_args *args, uint32_t teams, int block_m, int extra, uint32_t *times, int64_t *length) {
    DEAL_OF(__params) p;
    DEAL_IN(_order) order;
    if (DEAL_OF(__prepare)(args, &p, block_m) != FA_OK) return 0;
    if (teams > p.items) teams = p.items;
    DEAL_IN(_order_of)(&order, &p, teams);
    for (uint32_t team = 0; team < teams; team++) {
        DEAL_IN(_course) course = {team, team, 0, 0};
        for (uint32_t i = 0; i <= p.items; i++) { /* one more than there are, at most: a team that does not end shows */
            const fa_box box = DEAL_IN(_next_block)(&p, &order, &course);
            if (box.batch < 0) break;
            const fa_range keys = DEAL_OF(__keys)(&p, box);
            const int64_t head = (int64_t)box.batch * args->heads + box.head, block = box.queries.begin / block_m;
            if (head < 0 || head >= (int64_t)args->batch * args->heads || block < 0 || block >= p.blocks_m) return 0;
            times[head * p.blocks_m + block]++;
            length[team] += extra + (keys.begin < keys.end ? keys.end - keys.begin : 0);
        }
    }
    return (int)teams;
}

#undef DEAL_CAT
#undef DEAL_CAT_
#undef DEAL_OF
#undef DEAL_IN
#undef DEAL_NAME
#undef DEAL_SCHEDULE
