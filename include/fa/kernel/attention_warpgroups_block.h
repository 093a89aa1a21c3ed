/* attention_warpgroups_block.h: a thread block of the sm_90a schedule: barriers are made, registers move from the
 * producers' warpgroup to the consumers', and each warp gets its part. */

/* Makes a team's barriers ready. */
FA__FN void FA__LOOP(_init)(FA__LOOP(_shared) * shared) {
    for (int i = 0; i < FA__LOOP(_groups); i++)
        for (int j = 0; j < FA__LOOP(_q_stages); j++) FA__LOOP(_init_pair)(&shared->of_q[i][j], 1, 1);
    for (int i = 0; i < FA_STAGES; i++) {
        FA__LOOP(_init_pair)(&shared->of_k[i], 1, FA__LOOP(_groups));
        FA__LOOP(_init_pair)(&shared->of_v[i], 1, 128 * FA__LOOP(_groups)); /* all threads */
    }
#if FA__BIAS_TILES
    for (int i = 0; i < FA__LOOP(_bias_stages); i++) FA__LOOP(_init_pair)(&shared->of_bias[i], 1, 4 * FA__LOOP(_groups)); /* warps */
#endif
    for (int i = 0; i < FA__LOOP(_notes); i++) FA__LOOP(_init_pair)(&shared->of_notes[i], 1, 1);
#if FA__SENDS
    for (int i = 0; i < FA__LOOP(_groups); i++)
        for (int j = 0; j < FA__LOOP(_leaving); j++) FA__LOOP(_init_pair)(&shared->of_room[i][j], 128, 1);
#endif
    if (FA__LOOP(_first_q)) fa_sm90_mbarrier_init(fa_sm90_shared_address(&shared->of_first), 1);
#if FA__CURVED
    for (int i = 0; i < FA__LOOP(_groups); i++) shared->steep[i][0] = shared->steep[i][1] = shared->steep[i][2] = 0;
#endif
}

/* Zeroes what the copy engine leaves of Q's and K's rows, by all threads. */
FA__FN void FA__LOOP(_clear)(FA__LOOP(_shared) * shared, int thread) {
    for (int i = 0; i < FA__LOOP(_groups); i++)
        for (int j = 0; j < FA__LOOP(_q_stages); j++) FA__LOOP(_qtile_clear)(&shared->q[i][j], thread, FA__LOOP(_threads));
    for (int i = 0; i < FA_STAGES; i++) FA__LOOP(_ktile_clear)(&shared->k[i], thread, FA__LOOP(_threads));
}

/* The number of a thread block's team among all. Two of one thread block are far apart, so that they seldom both
 * have long blocks. */
FA__FN uint32_t FA__LOOP(_number)(int team) { return (uint32_t)team * gridDim.x + blockIdx.x; }

FA__FN void FA__LOOP(_run)(const FA__LOOP(_launch) * launch, FA__LOOP(_shared) * shared) {
    const int thread = (int)threadIdx.x, warpgroup = fa_sm90_uniform(thread / 128);
    if (thread == 0) {
        FA__LOOP(_qtile_prefetch_maps)(launch->q);
        FA__LOOP(_ktile_prefetch_maps)(launch->k);
        FA__LOOP(_vtile_prefetch_maps)(launch->v);
        for (int team = 0; team < FA__TEAMS; team++) FA__LOOP(_init)(&shared[team]);
        fa_sm90_mbarrier_fence();
    }
    for (int team = 0; team < FA__TEAMS; team++) FA__LOOP(_clear)(&shared[team], thread);
#if FA__COLUMNS
    for (int team = 0; team < FA__TEAMS; team++) FA__LOOP(_constant_rows)(shared[team].rows);
#endif
#if FA__REMEMBERS
    const int among = fa_sm90_uniform(thread / 32), learner = among % FA__TEAMS; /* warps of both teams by turns */
    FA__LOOP(_learn)(launch, &shared[learner], FA__LOOP(_number)(learner), among / FA__TEAMS, thread % 32);
#endif
    FA__OP(barrier)();
    if (warpgroup == 0) {
        fa_sm90_registers_lower(FA__PRODUCER_REGISTERS);
        const int warp = fa_sm90_uniform(thread / 32), lane = thread % 32, team = warp % FA__TEAMS;
        const uint32_t number = FA__LOOP(_number)(team);
        if (number >= launch->order.teams) return;
        if (warp < FA__TEAMS) {
            if (FA__HAS_MASK || lane == 0) FA__LOOP(_plan_tiles)(launch, &shared[team], number, lane);
        } else if (warp < 2 * FA__TEAMS && (lane == 0 || FA__COLUMNS == FA__NEED_KEY_BIAS)) FA__LOOP(_bring)(launch, &shared[team], lane);
#if FA__SENDS
        else if (warp >= 2 && FA__LOOP(_leaving)) FA__LOOP(_send_blocks)(launch, shared, warp - 2, lane);
#endif
    } else {
        fa_sm90_registers_raise(FA__REGISTERS);
        const int team = (warpgroup - 1) / FA__LOOP(_groups), group = (warpgroup - 1) % FA__LOOP(_groups);
        if (FA__LOOP(_number)(team) < launch->order.teams) FA__LOOP(_consume)(launch, &shared[team], thread % 128, team, group);
    }
}
