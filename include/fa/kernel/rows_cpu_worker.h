/* rows_cpu_worker.h: a thread's share of the rows, for the instruction set FA__ISA. */
#define FA_COLS FA__CPU_PIECE
#define FA_KEEP FA__CPU_KEEP
#include <fa/kernel/rows_parts.h>

#define FA__WORK(direction)                                                                                        \
    static FA_UNUSED FA__TARGET void FA__LOOP(_work##direction)(fa__job *job) {                                    \
        const FA__PARAMS *p = (const FA__PARAMS *)job->params;                                                     \
        FA__LOOP(_reduce_shared) shared;                                                                           \
        FA__LOOP(_place) place = {&shared, NULL, NULL, 0};                                                                 \
        fa_team team = FA__LOOP(_reduce_team)(1);                                                                  \
        for (int64_t item; (item = fa__job_next(job)) >= 0;) {                                                     \
            int64_t row = item * p->rows.rows_an_item, end = row + p->rows.rows_an_item;                           \
            if (end > p->rows.rows) end = p->rows.rows;                                                            \
            for (; row < end; row++) FA__LOOP(direction)(p, row, &team, &place);                                   \
        }                                                                                                          \
        if (p->rows.stream) fa_cpu_stream_end();                                                                   \
    }
FA__WORK(_forward)
#if !FA__SUMS
FA__WORK(_backward)
#else
/* An item is what a worker adds up. Rows of several segments are taken some at a time, as many as the second-level cache holds: first
 * what they need to know of themselves is found, then they are finished segment by segment, so that a segment's weights and sums
 * stay in the first-level cache, and the rows that come next are asked for meanwhile. */
static FA_UNUSED FA__TARGET void FA__LOOP(_work_backward)(fa__job *job) {
    const FA__PARAMS *p = (const FA__PARAMS *)job->params;
    FA__PARAMS whole = *p;
    FA__LOOP(_reduce_shared) shared;
    FA__LOOP(_place) place = {&shared, NULL, NULL, p->sums.pitch};
    FA__LOOP(_flight) flight;
    fa_team team = FA__LOOP(_reduce_team)(1);
    const int64_t row_bytes = p->rows.tensors * p->rows.cols * (int64_t)sizeof(FA__ELEMENT), held = FA__CPU_HELD / row_bytes + 1;
    whole.sums.length = p->rows.cols;
    for (int64_t worker; (worker = fa__job_next(job)) >= 0;) {
        int64_t row = worker * p->rows.rows_an_item, end = row + p->rows.rows_an_item;
        float *sums = p->sums.partial ? p->sums.partial + worker * FA__SUMS * p->sums.pitch : NULL;
        if (end > p->rows.rows) end = p->rows.rows;
        if (sums) memset(sums, 0, sizeof *sums * FA__SUMS * (size_t)p->sums.pitch);
        for (int64_t stop; row < end; row = stop) {
            stop = end - row < held ? end : row + held;
            for (int64_t i = row; p->sums.segments > 1 && i < stop; i++) FA__LOOP(_first_pass)(&whole, i, &team, &place);
            for (int64_t segment = 0; segment < p->sums.segments; segment++) {
                place.sums = sums ? sums + segment * p->sums.length : NULL;
                for (int64_t i = row; i < stop; i++) {
                    if (p->sums.segments > 1 && i + held < end) FA__LOOP(_backward_ask)(p, i + held, segment, &team);
                    FA__LOOP(_backward_peek)(&flight, p, i);
                    FA__LOOP(_backward_finish)(p, i, segment, &team, &place, &flight);
                }
            }
        }
    }
    if (p->rows.stream) fa_cpu_stream_end();
}
#endif
#undef FA__WORK
#undef FA__LOOP
#undef FA__VARIANT
#undef FA__ISA
