/* ops_base.h: the part of cpu/ops.h for vectors of 16 bytes, which every target of the compiler has, or the compiler
 * emulates. */
typedef float fa_cpu_vec_0 __attribute__((__vector_size__(16), __may_alias__));
typedef float fa_cpu_any_0 __attribute__((__vector_size__(16), __may_alias__, __aligned__(4)));
typedef int32_t fa_cpu_bits_0 __attribute__((__vector_size__(16)));
typedef int16_t fa__words __attribute__((__vector_size__(16)));
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_splat_0(float x) {
    fa_cpu_vec_0 v = {x, x, x, x};
    return v;
}
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_fma_0(fa_cpu_vec_0 a, fa_cpu_vec_0 b, fa_cpu_vec_0 c) {
#if defined(__aarch64__)
    __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(c) : "w"(a), "w"(b));
    return c;
#elif defined(__x86_64__) && defined(__FMA__)
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
    return c;
#else
    return a * b + c;
#endif
}
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_horner_0(fa_cpu_vec_0 p, fa_cpu_vec_0 x, fa_cpu_vec_0 c) {
    return fa_cpu_fma_0(p, x, c);
}
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_max_0(fa_cpu_vec_0 a, fa_cpu_vec_0 b) {
    fa_cpu_bits_0 larger = (fa_cpu_bits_0)(a > b);
    return (fa_cpu_vec_0)((larger & (fa_cpu_bits_0)a) | (~larger & (fa_cpu_bits_0)b));
}
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_max16_0(fa_cpu_vec_0 a, fa_cpu_vec_0 b) {
    fa__words u = (fa__words)a, v = (fa__words)b, larger = (fa__words)(u > v);
    return (fa_cpu_vec_0)((larger & u) | (~larger & v));
}
/* A vector of pieces of four floats, of rows that are `stride` floats apart. */
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_pieces_0(const float *from, int64_t stride) {
    (void)stride;
    return *(const fa_cpu_any_0 *)from;
}
/* Within each piece, low: a0 b0 a1 b1; high: a2 b2 a3 b3; low2: a0 a1 b0 b1; high2: a2 a3 b2 b3. */
#if defined(__clang__) || __GNUC__ >= 12
#define FA__SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define FA__SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (fa_cpu_bits_0){i, j, k, l})
#endif
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_low_0(fa_cpu_vec_0 a, fa_cpu_vec_0 b) { return FA__SHUFFLE(a, b, 0, 4, 1, 5); }
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_high_0(fa_cpu_vec_0 a, fa_cpu_vec_0 b) { return FA__SHUFFLE(a, b, 2, 6, 3, 7); }
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_low2_0(fa_cpu_vec_0 a, fa_cpu_vec_0 b) { return FA__SHUFFLE(a, b, 0, 1, 4, 5); }
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_high2_0(fa_cpu_vec_0 a, fa_cpu_vec_0 b) { return FA__SHUFFLE(a, b, 2, 3, 6, 7); }
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_wide_0(fa_cpu_vec_0 a, fa_cpu_vec_0 b) {
#if defined(__x86_64__)
    __asm__("pmuludq %1, %0" : "+x"(a) : "x"(b));
    return a;
#else
    typedef uint64_t words __attribute__((__vector_size__(16)));
    return (fa_cpu_vec_0)(((words)a & 0xFFFFFFFFu) * ((words)b & 0xFFFFFFFFu));
#endif
}
/* Eight halves at a time, by integer arithmetic that the compiler vectorises. */
FA__CPU_INLINE(0) void fa_cpu_widen_0(float *to, const fa_f16 *from) {
    for (int i = 0; i < 8; i++) to[i] = fa_f16_to_float(from[i]);
}
FA__CPU_INLINE(0) void fa_cpu_narrow_0(fa_f16 *to, const float *from) {
    for (int i = 0; i < 8; i++) to[i] = fa_f16_from_float(from[i]);
}

FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_of_f16_0(const fa_f16 *from) {
    fa_cpu_vec_0 v = {fa_f16_to_float(from[0]), fa_f16_to_float(from[1]), fa_f16_to_float(from[2]), fa_f16_to_float(from[3])};
    return v;
}
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_of_bf16_0(const fa_bf16 *from) {
    fa_cpu_bits_0 v = {from[0], from[1], from[2], from[3]};
    return (fa_cpu_vec_0)(v << 16);
}
FA__CPU_INLINE(0) fa_cpu_vec_0 fa_cpu_inverse_0(fa_cpu_vec_0 x) { return 1.0f / x; }
FA__CPU_INLINE(0) void fa_cpu_put_f16_0(fa_f16 *to, fa_cpu_vec_0 a, fa_cpu_vec_0 b, int streamed) {
    float x[8];
    memcpy(x, &a, 16), memcpy(x + 4, &b, 16);
    (void)streamed;
    fa_cpu_narrow_0(to, x);
}
FA__CPU_INLINE(0) void fa_cpu_put_bf16_0(fa_bf16 *to, fa_cpu_vec_0 a, fa_cpu_vec_0 b, int streamed, int by_unit) {
    float x[8];
    memcpy(x, &a, 16), memcpy(x + 4, &b, 16);
    (void)streamed, (void)by_unit;
    for (int i = 0; i < 8; i++) to[i] = fa_bf16_from_float(x[i]);
}

FA__CPU_INLINE(0) void fa_cpu_stream_0(void *to, const void *from) {
#if defined(__x86_64__)
    for (int i = 0; i < 4; i++) {
        fa_cpu_vec_0 v;
        memcpy(&v, (const char *)from + (size_t)i * sizeof v, sizeof v); /* halves may lie where no float would */
        __asm__ volatile("movntps %1, %0" : "=m"(((fa_cpu_vec_0 *)to)[i]) : "x"(v));
    }
#else
    memcpy(to, from, 64);
#endif
}
/* Orders what was streamed before what this thread writes next. */
static inline FA_UNUSED void fa_cpu_stream_end(void) {
#if defined(__x86_64__)
    __asm__ volatile("sfence" ::: "memory");
#endif
}
