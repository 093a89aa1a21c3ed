/* check_hook.h: what check_mask.h and check_score.h, which include it, share. */
#ifndef FA_TESTS_CHECK_HOOK_H
#define FA_TESTS_CHECK_HOOK_H

#include <stdint.h>
#include <stdio.h>

#include <fa/fa.h>

#define CHECK_HOOK_PASTE_(a, b) a##b
#define CHECK_HOOK_PASTE(a, b) CHECK_HOOK_PASTE_(a, b)
#define CHECK_HOOK_STRING_(a) #a
#define CHECK_HOOK_STRING(a) CHECK_HOOK_STRING_(a)

static inline uint64_t check_hook_random(uint64_t *state) { /* xorshift64*, Vigna 2016 */
    *state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}
/* Whether the arguments leave nothing to look at, or heads without one of K and V, which then is said in `message`.
 * `count`: of what is drawn at random, and called `what`. */
static inline int check_hook_nothing(const fa_attention_args *args, const char *what, int count, char *message, size_t bytes) {
    if (args->batch > 0 && args->heads > 0 && args->heads_kv > 0 && args->seqlen_q > 0 && args->seqlen_k > 0 && count > 0 &&
        args->heads % args->heads_kv == 0)
        return 0;
    snprintf(message, bytes, "nothing to look at: batch is %d, heads %d, heads_kv %d, seqlen_q %d, seqlen_k %d, %s %d: 1 or more of each is needed, and heads a multiple of heads_kv",
             args->batch, args->heads, args->heads_kv, args->seqlen_q, args->seqlen_k, what, count);
    return 1;
}

#endif
