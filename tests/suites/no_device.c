/* no_device.c: what calls of instances for GPUs answer where there is no GPU: a status and a message, and nothing is
 * written. */
#include <string.h>

#include "../harness/memory.h"
#include "../harness/tap.h"

#include <fa/fa.h>

#define FA_NAME n_attention
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 16
#include <fa/attention.h>

#define FA_NAME n_plain
#define FA_DTYPE FA_F32
#define FA_HEAD_DIM 16
#include <fa/attention.h>

#define FA_NAME n_softmax
#define FA_DTYPE FA_F32
#include <fa/row_softmax.h>

#define FA_NAME n_rmsnorm
#define FA_DTYPE FA_F32
#include <fa/rmsnorm.h>

enum { NUMBERS = 16 };
static float given[NUMBERS] __attribute__((__aligned__(16))), result[NUMBERS] __attribute__((__aligned__(16)));

static void refuses(const char *name, fa_status status) {
    const size_t length = strlen(name);
    int untouched = 1;
    for (int i = 0; i < NUMBERS; i++) untouched &= result[i] == 7.0f;
    tap_ok(status == FA_ERROR_NO_DEVICE && !strncmp(fa_last_error(), name, length) && fa_last_error()[length] == ':' && untouched,
           "%s without a GPU: %s: %s", name, fa_status_string(status), fa_last_error());
}

int main(void) {
    const char *why = NULL;
    if (memory_has_device(&why)) {
        tap_skip("calls without a GPU: there is one");
        return tap_end();
    }
    for (int i = 0; i < NUMBERS; i++) given[i] = 1.0f, result[i] = 7.0f;

    fa_attention_args a = fa_attention_defaults();
    a.batch = a.heads = a.heads_kv = a.seqlen_q = a.seqlen_k = 1;
    a.q = a.k = a.v = fa_tensor_bhsd(given, 1, 1, 16);
    a.o = fa_tensor_bhsd(result, 1, 1, 16);
    refuses("n_attention", n_attention_forward(&a, 0));
    refuses("n_plain", n_plain_forward(&a, 0));
    fa_plan plan;
    refuses("n_attention", n_attention_plan(&a, &plan));

    fa_row_softmax_args s;
    memset(&s, 0, sizeof s);
    s.rows = 1, s.cols = NUMBERS;
    s.x.data = given, s.y.data = result;
    s.x.stride_row = s.y.stride_row = NUMBERS;
    refuses("n_softmax_forward", n_softmax_forward(&s, 0));
    s.y.data = s.d_y.data = given, s.d_x.data = result;
    s.d_y.stride_row = s.d_x.stride_row = NUMBERS;
    refuses("n_softmax_backward", n_softmax_backward(&s, 0));

    fa_rmsnorm_args n;
    memset(&n, 0, sizeof n);
    n.rows = 1, n.cols = NUMBERS, n.eps = 1e-5f;
    n.x.data = given, n.y.data = result;
    n.x.stride_row = n.y.stride_row = NUMBERS;
    refuses("n_rmsnorm_forward", n_rmsnorm_forward(&n, 0));
    tap_ok(n_rmsnorm_workspace(&n) == 0, "nor is there a workspace that would help");
    tap_skip("kernels on a GPU: %s", why);
    return tap_end();
}
