/* ops_avx.h: the part of cpu/ops.h that AVX2 and AVX-512 have under the same names, for vectors of the set FA__ISA.
 * FA__REGISTER is the constraint of those in assembly. */
FA__CPU_INLINE(FA__ISA) FA__CPU_OP(vec) FA__CPU_OP(fma)(FA__CPU_OP(vec) a, FA__CPU_OP(vec) b, FA__CPU_OP(vec) c) {
    __asm__("vfmadd231ps %2, %1, %0" : "+" FA__REGISTER(c) : FA__REGISTER(a), FA__REGISTER(b));
    return c;
}
FA__CPU_INLINE(FA__ISA) FA__CPU_OP(vec) FA__CPU_OP(horner)(FA__CPU_OP(vec) p, FA__CPU_OP(vec) x, FA__CPU_OP(vec) c) {
    __asm__("vfmadd213ps %2, %1, %0" : "+" FA__REGISTER(p) : FA__REGISTER(x), FA__REGISTER "m"(c));
    return p;
}
#define FA__OF_TWO(name, instruction)                                                                \
    FA__CPU_INLINE(FA__ISA) FA__CPU_OP(vec) FA__CPU_OP(name)(FA__CPU_OP(vec) a, FA__CPU_OP(vec) b) { \
        __asm__(instruction " %1, %0, %0" : "+" FA__REGISTER(a) : FA__REGISTER(b));                  \
        return a;                                                                                    \
    }
FA__OF_TWO(max, "vmaxps")
FA__OF_TWO(max16, "vpmaxsw")
FA__OF_TWO(low, "vunpcklps")
FA__OF_TWO(high, "vunpckhps")
FA__OF_TWO(low2, "vunpcklpd")
FA__OF_TWO(high2, "vunpckhpd")
FA__OF_TWO(wide, "vpmuludq")
#undef FA__OF_TWO
