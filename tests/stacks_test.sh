#!/bin/sh
# stacks_test.sh: threads of our own have stack enough, whatever the program keeps for each thread, which glibc takes from the same memory. Prints TAP.
. "$(dirname "$0")/harness/tap.sh"
cat >"$work/stacks.c" <<'C'
#include <fa/fa.h>
#define FA_NAME     attend
#define FA_DTYPE    FA_F32
#define FA_HEAD_DIM 64
#include <fa/attention.h>
enum { HEADS = 4, TOKENS = 300, COUNT = HEADS * TOKENS * 64 };
static __thread char of_each_thread[PER_THREAD];
static char *volatile used;
static float q[COUNT], o[COUNT];
int main(void) {
    fa_attention_args a = fa_attention_defaults();
    used = of_each_thread;
    for (int i = 0; i < COUNT; i++) q[i] = (float)(i % 7) - 3.0f, o[i] = NAN;
    a.batch = 1, a.heads = a.heads_kv = HEADS, a.seqlen_q = a.seqlen_k = TOKENS, a.threads = 4;
    a.q = a.k = a.v = fa_tensor_bhsd(q, HEADS, TOKENS, 64), a.o = fa_tensor_bhsd(o, HEADS, TOKENS, 64);
    if (attend_forward(&a, 0) != FA_OK) return 1;
    for (int i = 0; i < COUNT; i++)
        if (!(o[i] >= -3.0f && o[i] <= 3.0f)) return 1;
    return 0;
}
C
for bytes in 1 3000000 8200000 30000000; do
    $CC -std=c11 -O1 -Wall -Wextra -Werror -I"$FA_INCLUDE" -DPER_THREAD=$bytes -o "$work/stacks" "$work/stacks.c" -lm -pthread >"$work/log" 2>&1 &&
        (ulimit -s 8192 2>/dev/null; "$work/stacks") >>"$work/log" 2>&1
    ok $? "four threads of a program with $bytes bytes for each of them" "$work/log"
done
tap_end
