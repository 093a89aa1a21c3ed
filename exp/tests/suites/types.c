/* types.c: the number conversions and small helpers of fa.h, exhaustively where that is possible. */
#include <math.h>
#include <string.h>

#include <fa/fa.h>

#include "../harness/number.h"
#include "../harness/rng.h"
#include "../harness/tap.h"

enum { GUARD = 0xFD };

static uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}
static float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}
static int same(double x, double y) { return isnan(x) ? isnan(y) : x == y && !signbit(x) == !signbit(y); }

static void decoding(void) {
    int wrong_f16 = 0, wrong_bf16 = 0, back_f16 = 0, back_bf16 = 0;
    for (int i = 0; i < 65536; i++) {
        uint16_t h = (uint16_t)i;
        float f16 = fa_f16_to_float(h), bf16 = fa_bf16_to_float(h);
        wrong_f16 += !same((double)f16, number_from_f16(h));
        wrong_bf16 += !same((double)bf16, number_from_bf16(h));
        back_f16 += isnan(f16) ? !isnan(fa_f16_to_float(fa_f16_from_float(f16))) : fa_f16_from_float(f16) != h;
        back_bf16 += isnan(bf16) ? !isnan(fa_bf16_to_float(fa_bf16_from_float(bf16))) : fa_bf16_from_float(bf16) != h;
    }
    tap_ok(!wrong_f16, "fa_f16_to_float: all 65536 values (%d wrong)", wrong_f16);
    tap_ok(!wrong_bf16, "fa_bf16_to_float: all 65536 values (%d wrong)", wrong_bf16);
    tap_ok(!back_f16, "f16 to float and back: all 65536 values (%d wrong)", back_f16);
    tap_ok(!back_bf16, "bf16 to float and back: all 65536 values (%d wrong)", back_bf16);
}

static int encodes(float x) {
    uint16_t f16 = fa_f16_from_float(x), bf16 = fa_bf16_from_float(x);
    if (isnan(x)) return isnan(number_from_f16(f16)) && isnan(number_from_bf16(bf16));
    return f16 == number_to_f16((double)x) && bf16 == number_to_bf16((double)x);
}

static void encoding(void) {
    rng r = rng_new(rng_seed(), 1);
    long wrong = 0;
    uint32_t first = 0;
    /* Around every value of either format: the value itself, the ties between neighbours, and both sides of each. */
    for (uint32_t i = 0; i < 65536; i++) {
        float f16 = (float)number_from_f16((uint16_t)i), bf16 = (float)number_from_bf16((uint16_t)i);
        uint32_t around[] = {bits_of(f16), bits_of(f16) + 0x1000, bits_of(bf16), bits_of(bf16) + 0x8000};
        for (int j = 0; j < 4; j++)
            for (int off = -1; off <= 1; off++)
                if (!encodes(float_of(around[j] + (uint32_t)off)) && !wrong++) first = around[j] + (uint32_t)off;
    }
    /* The ties between f16 subnormals: odd multiples of 2^-25. */
    for (int i = 1; i < 2048; i += 2) {
        uint32_t tie = bits_of(ldexpf((float)i, -25));
        for (int off = -1; off <= 1; off++)
            if (!encodes(float_of(tie + (uint32_t)off)) && !wrong++) first = tie + (uint32_t)off;
    }
    for (int i = 0; i < 1000000; i++) {
        uint32_t u = (uint32_t)rng_next(&r);
        if (i % 2) u = (u & 0x8FFFFFFFu) | 0x30000000u; /* the range of f16 */
        if (!encodes(float_of(u)) && !wrong++) first = u;
    }
    if (wrong) tap_note("the first wrong one has the bits %#x", first);
    tap_ok(!wrong, "float to f16 and bf16, to nearest even: values, ties, neighbours and a million at random (%ld wrong)",
           wrong);
    tap_ok(fa_f16_from_float(65519.0f) == 0x7BFF && fa_f16_from_float(65520.0f) == 0x7C00, "f16 overflows at 65520");
    tap_ok(isnan(fa_f16_to_float(fa_f16_from_float(NAN))) && isnan(fa_bf16_to_float(fa_bf16_from_float(float_of(0x7F800001u)))),
           "NaN stays NaN, also one with only low bits set");
}

static void elements(void) {
    static const int dtypes[] = {FA_F32, FA_F16, FA_BF16, FA_TF32};
    for (int i = 0; i < 4; i++) {
        int dtype = dtypes[i], wrong = 0;
        unsigned char data[64];
        memset(data, GUARD, sizeof data);
        for (int j = 1; j <= 4; j++) fa_store_element(data, j, dtype, 0.1f * (float)j);
        for (int j = 1; j <= 4; j++) {
            wrong += !same((double)fa_load_element(data, j, dtype), number_round((double)(0.1f * (float)j), dtype));
            wrong += !same(number_load(data, j, dtype), number_round((double)(0.1f * (float)j), dtype));
        }
        for (int j = 0; j < number_bytes(dtype); j++) wrong += data[j] != GUARD;
        for (int j = 5 * number_bytes(dtype); j < 64; j++) wrong += data[j] != GUARD;
        tap_ok(!wrong && fa_dtype_bytes(dtype) == number_bytes(dtype),
               "fa_load_element and fa_store_element, %s: round trip, nothing else written", number_name(dtype));
    }
}

static void tensors(void) {
    float x[2 * 3 * 5 * 8];
    fa_tensor t = fa_tensor_bhsd(x, 3, 5, 8);
    tap_ok(t.data == (void *)x && t.stride_batch == 120 && t.stride_head == 40 && t.stride_seq == 8, "fa_tensor_bhsd");
    t = fa_tensor_bshd(x, 3, 5, 8);
    tap_ok(t.data == (void *)x && t.stride_batch == 120 && t.stride_head == 8 && t.stride_seq == 24, "fa_tensor_bshd");
    t = fa_tensor_bhsd(x, 1 << 16, 1 << 25, 128);
    tap_ok(t.stride_head == (int64_t)1 << 32 && t.stride_batch == (int64_t)1 << 48, "fa_tensor_bhsd: 64-bit strides");
    t = fa_tensor_bshd(x, 1 << 25, 1 << 16, 128);
    tap_ok(t.stride_seq == (int64_t)1 << 32 && t.stride_batch == (int64_t)1 << 48, "fa_tensor_bshd: 64-bit strides");
}

static void defaults(void) {
    fa_attention_args a = fa_attention_defaults(), zero;
    memset(&zero, 0, sizeof zero);
    tap_ok(a.window_left == -1 && a.window_right == -1, "fa_attention_defaults: windows are unbounded");
    a.window_left = a.window_right = 0;
    tap_ok(!memcmp(&a, &zero, sizeof a), "fa_attention_defaults: everything else is zero");
}

static void statuses(void) {
    static const char *const names[] = {"FA_OK",
                                        "FA_ERROR_ARGUMENT",
                                        "FA_ERROR_WORKSPACE",
                                        "FA_ERROR_NO_DEVICE",
                                        "FA_ERROR_ARCHITECTURE",
                                        "FA_ERROR_RESOURCE",
                                        "FA_ERROR_CUDA"};
    for (int i = FA_OK; i <= FA_ERROR_CUDA; i++)
        tap_ok(!strcmp(fa_status_string((fa_status)i), names[i]), "fa_status_string(%d) is %s", i, names[i]);
    tap_ok(fa_status_string((fa_status)99) != NULL, "fa_status_string of something else is not NULL");
    tap_ok(FA_OK == 0 && !*fa_last_error(), "fa_last_error is empty before the first failure");
}

int main(void) {
    decoding();
    encoding();
    elements();
    tensors();
    defaults();
    statuses();
    return tap_end();
}
