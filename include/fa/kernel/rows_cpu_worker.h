/* rows_cpu_worker.h: a thread's share of the rows, for the instruction set FA__ISA. */
#define FA_COLS FA__CPU_PIECE
#define FA_KEEP FA__CPU_KEEP
#include <fa/kernel/rows_primitives.h>

/* Room for what the forward keeps of a row: lines of 64 bytes, on the stack of this thread. */
#if FA__KEEPS_FORWARD
#define FA__ROOM_forward                                                                                           \
    place.keeps = FA__ROWS(__keeps)(p, job->threads, fa__job_is_own(job));                                         \
    place.kept = (float *)__builtin_alloca((size_t)(place.keeps + 1) * sizeof(float) * FA__CPU_PIECE + 63);        \
    place.kept = (float *)(((uintptr_t)place.kept + 63) / 64 * 64);
#else
#define FA__ROOM_forward
#endif
#define FA__ROOM_backward

#define FA__WORK(direction)                                                                                        \
    static FA_UNUSED FA__TARGET void FA__LOOP(_work##direction)(fa__job *job) {                                    \
        const FA__PARAMS *p = (const FA__PARAMS *)job->params;                                                     \
        FA__LOOP(_reduce_shared) shared;                                                                           \
        FA__LOOP(_place) place = {&shared, NULL, NULL, 0, NULL, 0, 0.0f, 0, -1, 0.0f};                             \
        fa_team team = FA__LOOP(_reduce_team)(1);                                                                  \
        FA__ROOM##direction                                                                                        \
        for (int64_t item; (item = fa__job_next(job)) >= 0;) {                                                     \
            int64_t row = item * p->rows.rows_an_item, end = row + p->rows.rows_an_item;                           \
            if (end > p->rows.rows) end = p->rows.rows;                                                            \
            place.end = end;                                                                                       \
            for (; row < end; row++) FA__LOOP(direction)(p, row, &team, &place);                                   \
        }                                                                                                          \
        if (p->rows.stream) fa_cpu_stream_end();                                                                   \
    }
#if !FA__SUMS
FA__WORK(_forward)
#if !FA__ONE_DIRECTION
FA__WORK(_backward)
#endif
#else
/* The item after this one, taken before this one is done, so that its rows can be prefetched, or its first one
 * looked at; -1 if others may want it. */
#define FA__EARLY(item) ((item) + 4 * job->threads < job->items ? fa__job_next(job) : -1)
static FA_UNUSED FA__TARGET void FA__LOOP(_work_forward)(fa__job *job) {
    const FA__PARAMS *p = (const FA__PARAMS *)job->params;
    fa_team team = FA__LOOP(_reduce_team)(1);
    for (int64_t item = fa__job_next(job), next; item >= 0; item = next) {
        const int64_t begin = item * p->rows.rows_an_item, end = begin + p->rows.rows_an_item;
        next = FA__EARLY(item);
        FA__LOOP(_forward_rows)(p, begin, end < p->rows.rows ? end : p->rows.rows, next, &team);
        if (next < 0) next = fa__job_next(job);
    }
    if (p->rows.stream) fa_cpu_stream_end();
}
/* An item is what a worker adds up. What has to be known of a row is found while the one before is finished, also of
 * the next item's first one. */
static FA_UNUSED FA__TARGET void FA__LOOP(_work_backward)(fa__job *job) {
    const FA__PARAMS *p = (const FA__PARAMS *)job->params;
    FA__LOOP(_reduce_shared) shared;
    FA__LOOP(_place) place = {&shared, NULL, NULL, p->sums.pitch, NULL, 0, 0.0f, 0, -1, 0.0f};
    FA__LOOP(_flight) flight;
    fa_team team = FA__LOOP(_reduce_team)(1);
    int64_t known = -1; /* the row that flight is about */
    for (int64_t worker = fa__job_next(job), next; worker >= 0; worker = next) {
        int64_t row = worker * p->rows.rows_an_item, end = row + p->rows.rows_an_item;
        if (end > p->rows.rows) end = p->rows.rows;
        next = FA__EARLY(worker);
        place.sums = p->sums.partial ? p->sums.partial + worker * FA__SUMS * p->sums.pitch : NULL;
        if (place.sums) memset(place.sums, 0, sizeof *place.sums * FA__SUMS * (size_t)p->sums.pitch);
        for (; row < end; row++) {
            if (row != known) FA__LOOP(_know)(&flight, p, row, &team);
            known = !FA__LOOP(_row_BESIDE) ? -1 : row + 1 < end ? row + 1 : next >= 0 ? next * p->rows.rows_an_item : -1;
            FA__LOOP(_backward_row)(p, row, known, &team, &place, &flight);
        }
        if (next < 0) next = fa__job_next(job);
    }
    if (p->rows.stream) fa_cpu_stream_end();
}
#undef FA__EARLY
#endif
#undef FA__WORK
#undef FA__ROOM_forward
#undef FA__ROOM_backward
#undef FA__LOOP
#undef FA__VARIANT
#undef FA__ISA
