/* plain_n.h: FA__PLAIN_N, which is FA_N as a number that names can be made of (ops.h), whatever expression it is. */
#undef FA__PLAIN_N
#if FA_N == 8
#define FA__PLAIN_N 8
#elif FA_N == 16
#define FA__PLAIN_N 16
#elif FA_N == 24
#define FA__PLAIN_N 24
#elif FA_N == 32
#define FA__PLAIN_N 32
#elif FA_N == 40
#define FA__PLAIN_N 40
#elif FA_N == 48
#define FA__PLAIN_N 48
#elif FA_N == 56
#define FA__PLAIN_N 56
#elif FA_N == 64
#define FA__PLAIN_N 64
#elif FA_N == 72
#define FA__PLAIN_N 72
#elif FA_N == 80
#define FA__PLAIN_N 80
#elif FA_N == 88
#define FA__PLAIN_N 88
#elif FA_N == 96
#define FA__PLAIN_N 96
#elif FA_N == 104
#define FA__PLAIN_N 104
#elif FA_N == 112
#define FA__PLAIN_N 112
#elif FA_N == 120
#define FA__PLAIN_N 120
#elif FA_N == 128
#define FA__PLAIN_N 128
#elif FA_N == 136
#define FA__PLAIN_N 136
#elif FA_N == 144
#define FA__PLAIN_N 144
#elif FA_N == 152
#define FA__PLAIN_N 152
#elif FA_N == 160
#define FA__PLAIN_N 160
#elif FA_N == 168
#define FA__PLAIN_N 168
#elif FA_N == 176
#define FA__PLAIN_N 176
#elif FA_N == 184
#define FA__PLAIN_N 184
#elif FA_N == 192
#define FA__PLAIN_N 192
#elif FA_N == 200
#define FA__PLAIN_N 200
#elif FA_N == 208
#define FA__PLAIN_N 208
#elif FA_N == 216
#define FA__PLAIN_N 216
#elif FA_N == 224
#define FA__PLAIN_N 224
#elif FA_N == 232
#define FA__PLAIN_N 232
#elif FA_N == 240
#define FA__PLAIN_N 240
#elif FA_N == 248
#define FA__PLAIN_N 248
#elif FA_N == 256
#define FA__PLAIN_N 256
#endif
