/* sm80/row_words.h: a vector of a row as four words, to floats and back; and one that is not read, or written, at
 * once. */

FA__FN void FA__ROW(__unpack)(float *x, const uint32_t *raw) {
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_WORDS); i++) {
#if FA__IS_HALF
        fa_sm80_unpack(x + 2 * i, x + 2 * i + 1, raw[i], FA_DTYPE);
#else
        x[i] = fa__from_bits(raw[i]);
#endif
    }
}
FA__FN void FA__ROW(__pack)(uint32_t *raw, const float *x) {
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_WORDS); i++) {
#if FA_DTYPE == FA_F16
        raw[i] = fa_sm80_pack_f16(x[2 * i], x[2 * i + 1]);
#elif FA_DTYPE == FA_BF16
        raw[i] = fa_sm80_pack_bf16(x[2 * i], x[2 * i + 1]);
#else
        raw[i] = fa__bits(x[i]);
#endif
    }
}
FA__FN uint32_t FA__ROW(__fill)(float fill) {
    float x[FA__ROW(_VECTOR)];
    uint32_t raw[FA__ROW(_WORDS)];
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_VECTOR); i++) x[i] = fill;
    FA__ROW(__pack)(raw, x);
    return raw[0];
}

#if FA_VECTOR == 16
/* A vector that is not read, or written, by one access: it has ends of the row in it, or an address that is not a
 * multiple of 16. Its elements are numbered from the start of the piece: `at` is its first, those from `begin` to `end`
 * are the row's. */
FA__FN void FA__ROW(__gather)(uint32_t *raw, const FA__ELEMENT *from, int at, int begin, int end, int width) {
    if (at < begin || at + FA__ROW(_VECTOR) > end) width = (int)sizeof(FA__ELEMENT);
    if (width == 8) {
        FA__UNROLL
        for (int i = 0; i < 2; i++) {
            uint2 two = ((const uint2 *)from)[i];
            raw[2 * i] = two.x, raw[2 * i + 1] = two.y;
        }
#if FA__IS_HALF
    } else if (width == 4) {
        FA__UNROLL
        for (int i = 0; i < 4; i++) raw[i] = ((const uint32_t *)from)[i];
    } else {
        FA__UNROLL
        for (int i = 0; i < 8; i++)
            if (at + i >= begin && at + i < end)
                raw[i / 2] = i % 2 ? (raw[i / 2] & 0xFFFFu) | (uint32_t)from[i] << 16 : (raw[i / 2] & 0xFFFF0000u) | from[i];
#else
    } else {
        FA__UNROLL
        for (int i = 0; i < 4; i++)
            if (at + i >= begin && at + i < end) raw[i] = fa__bits(from[i]);
#endif
    }
}
FA__FN void FA__ROW(__scatter)(FA__ELEMENT *to, const uint32_t *raw, int at, int begin, int end, int width) {
    if (at < begin || at + FA__ROW(_VECTOR) > end) width = (int)sizeof(FA__ELEMENT);
    if (width == 8) {
        FA__UNROLL
        for (int i = 0; i < 2; i++) ((uint2 *)to)[i] = make_uint2(raw[2 * i], raw[2 * i + 1]);
#if FA__IS_HALF
    } else if (width == 4) {
        FA__UNROLL
        for (int i = 0; i < 4; i++) ((uint32_t *)to)[i] = raw[i];
    } else {
        FA__UNROLL
        for (int i = 0; i < 8; i++)
            if (at + i >= begin && at + i < end) to[i] = (uint16_t)(i % 2 ? raw[i / 2] >> 16 : raw[i / 2]);
#else
    } else {
        FA__UNROLL
        for (int i = 0; i < 4; i++)
            if (at + i >= begin && at + i < end) to[i] = fa__from_bits(raw[i]);
#endif
    }
}
#endif
