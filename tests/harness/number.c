#include "number.h"

#include <math.h>
#include <string.h>

#include <fa/fa.h>

/* 2^exponent, a normal number; and the exponent of one, or of a subnormal one less than we ask for. (A sixth of the
 * time of companions' tests was ldexp() and frexp().) */
static double power(int exponent) {
    uint64_t u = (uint64_t)(1023 + exponent) << 52;
    double x;
    memcpy(&x, &u, 8);
    return x;
}
static int exponent_of(double x) {
    uint64_t u;
    memcpy(&u, &x, 8);
    return (int)(u >> 52 & 2047) - 1023;
}

double number_round_to(double x, int digits, int lowest, int highest) {
    uint64_t u;
    double rounded, unit;
    if (x == 0 || !isfinite(x)) return x;
    if (fabs(x) >= power(lowest)) {
        /* Normal: round the mantissa of the double in place, half to even. */
        int drop = 53 - digits;
        uint64_t half = (uint64_t)1 << (drop - 1), odd;
        memcpy(&u, &x, 8);
        odd = (u >> drop) & 1;
        u = (u + half - 1 + odd) >> drop << drop;
        memcpy(&rounded, &u, 8);
        return fabs(rounded) >= power(highest + 1) ? copysign(INFINITY, x) : rounded;
    }
    unit = power(lowest - digits + 1);
    return copysign(rint(x / unit) * unit, x);
}

double number_round(double x, int dtype) {
    return dtype == FA_F16    ? number_round_to(x, 11, -14, 15)
           : dtype == FA_BF16 ? number_round_to(x, 8, -126, 127)
                              : (double)(float)x;
}

double number_round_tf32(double x) { return number_round_to(x, 11, -126, 127); }

double number_half_ulp(double x, int dtype) {
    int digits = dtype == FA_F16 ? 11 : dtype == FA_BF16 ? 8 : 24, lowest = dtype == FA_F16 ? -14 : -126, exponent;
    if (x == 0 || !isfinite(x)) return power(lowest - digits);
    exponent = exponent_of(x);
    return power((exponent < lowest ? lowest : exponent) - digits);
}

double number_from_f16(uint16_t bits) {
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double sign = bits >> 15 ? -1 : 1;
    if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
    return exponent ? sign * (1024 + mantissa) * power(exponent - 25) : sign * mantissa * power(-24);
}

double number_from_bf16(uint16_t bits) {
    int exponent = bits >> 7 & 255, mantissa = bits & 127;
    double sign = bits >> 15 ? -1 : 1;
    if (exponent == 255) return mantissa ? NAN : sign * INFINITY;
    return exponent ? sign * (128 + mantissa) * power(exponent - 134) : sign * mantissa * power(-133);
}

/* Bits of a value that the format represents, or of what it rounds to. */
static uint16_t encode(double x, int digits, int lowest, int highest) {
    int fraction = digits - 1;
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    int top = highest - lowest + 2; /* the exponent field of infinity */
    double magnitude;
    uint64_t u;
    if (isnan(x)) return (uint16_t)(sign | (unsigned)top << fraction | 1u << (fraction - 1));
    magnitude = fabs(number_round_to(x, digits, lowest, highest));
    if (isinf(magnitude)) return (uint16_t)(sign | (unsigned)top << fraction);
    if (magnitude < power(lowest)) return (uint16_t)(sign | (unsigned)(magnitude * power(fraction - lowest)));
    /* Exponent and mantissa lie as in a double, whose exponents count from -1023, and those here from lowest - 1. */
    memcpy(&u, &magnitude, 8);
    return (uint16_t)(sign | ((u >> (52 - fraction)) - ((uint64_t)(1022 + lowest) << fraction)));
}
uint16_t number_to_f16(double x) { return encode(x, 11, -14, 15); }
uint16_t number_to_bf16(double x) { return encode(x, 8, -126, 127); }

double number_load(const void *data, int64_t i, int dtype) {
    static float f16[65536];
    static int known;
    if (dtype == FA_F16) {
        if (!__atomic_load_n(&known, __ATOMIC_ACQUIRE)) {
            for (int bits = 0; bits < 65536; bits++) f16[bits] = (float)number_from_f16((uint16_t)bits);
            __atomic_store_n(&known, 1, __ATOMIC_RELEASE);
        }
        return f16[((const uint16_t *)data)[i]];
    }
    if (dtype == FA_BF16) {
        uint32_t u = (uint32_t)((const uint16_t *)data)[i] << 16;
        float x;
        memcpy(&x, &u, 4);
        return x;
    }
    return ((const float *)data)[i];
}

void number_store(void *data, int64_t i, int dtype, double x) {
    if (dtype == FA_F16) ((uint16_t *)data)[i] = number_to_f16(x);
    else if (dtype == FA_BF16) ((uint16_t *)data)[i] = number_to_bf16(x);
    else ((float *)data)[i] = (float)x;
}

const char *number_name(int dtype) {
    return dtype == FA_F16 ? "f16" : dtype == FA_BF16 ? "bf16" : dtype == FA_TF32 ? "tf32" : "f32";
}
int number_bytes(int dtype) { return dtype == FA_F16 || dtype == FA_BF16 ? 2 : 4; }
