/* number.h: the low-precision number formats, written apart from fa.h so that the tests do not believe the library. */
#ifndef NUMBER_H
#define NUMBER_H

#include <math.h>
#include <stdint.h>
#if defined(__cplusplus)
extern "C" {
#endif

/* Nearest value of a format with `digits` significant bits, smallest normal exponent 2^lowest, largest 2^highest;
 * ties to even, overflow to infinity, subnormals kept. */
double number_round_to(double x, int digits, int lowest, int highest);
/* Nearest value of a data type (FA_F32, FA_F16, FA_BF16; FA_TF32 is stored as a float). */
double number_round(double x, int dtype);
/* What one operand of a tf32 product keeps of a float: 11 significant bits. */
double number_round_tf32(double x);
/* Half a unit in the last place of a data type at x: the largest error that rounding x makes. */
double number_half_ulp(double x, int dtype);
/* Element i of an array of a data type. */
double number_load(const void *data, int64_t i, int dtype);
void number_store(void *data, int64_t i, int dtype, double x);
/* Decoding and encoding of the 16-bit formats by their definition. */
double number_from_f16(uint16_t bits);
double number_from_bf16(uint16_t bits);
uint16_t number_to_f16(double x);
uint16_t number_to_bf16(double x);
const char *number_name(int dtype);
int number_bytes(int dtype);
/* The larger of two errors. One that is no number is infinite (fmax() would leave it out). */
static inline double number_worse(double worst, double error) { return error <= worst ? worst : error < INFINITY ? error : INFINITY; }

#if defined(__cplusplus)
}
#endif
#endif
