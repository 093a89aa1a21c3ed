/* sm80/row_weights.h: rows of another type than the view's: weights of columns, and floats that are written. */

/* A vector's worth of weights by the widest loads, up to four floats or eight halves. */
FA__FN void FA__ROW(__weight_vector)(float *w, const void *from, int dtype) {
    enum { FA__EACH = FA__ROW(_VECTOR) < 4 ? FA__ROW(_VECTOR) : 4 };
    const int half = dtype == FA_F16 || dtype == FA_BF16;
    uint32_t words[FA__ROW(_VECTOR)];
    if (half && FA__EACH == 1) {
        w[0] = fa_load_element(from, 0, dtype);
        return;
    }
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_VECTOR); i += FA__EACH) {
        if (half) fa_sm80_load_const(words + i / 2, (const uint16_t *)from + i, FA__EACH / 2);
        else fa_sm80_load_const(words + i, (const float *)from + i, FA__EACH);
    }
    FA__UNROLL
    for (int i = 0; i < FA__ROW(_VECTOR); i++) {
        if (!half) w[i] = fa__from_bits(words[i]);
        else if (i % 2 == 0) fa_sm80_unpack(w + i, w + i + 1, words[i / 2], dtype);
    }
}
FA__FN const float *FA__ROW(_weights)(float *w, const FA__ROW(_view) * v, int64_t piece, int part, const void *row, int dtype,
                                      float missing) {
    if (FA_WHOLE == 2) {
        /* No branches: what is not there has the first weights, and where there are none, one vector of them is for
         * all. */
        const unsigned vector = (unsigned)(v->thread + ((int)piece * FA__ROW(_VECTORS) + part) * v->threads);
        const unsigned at = FA__ROW(__there)(v, piece, part) ? vector : 0, bytes = row ? FA__ROW(_VECTOR) * (unsigned)fa_dtype_bytes(dtype) : 0;
        const void *from = row ? row : fa_sm80_weights_of(missing, dtype);
        FA__ROW(__weight_vector)(w, (const char *)from + (uint64_t)at * bytes, dtype);
        return w;
    }
    const int at = (part * v->threads + v->thread) * FA__ROW(_VECTOR);
    const char *from = (const char *)row + (piece * FA__ROW(_LENGTH) * v->threads - v->shift + at) * fa_dtype_bytes(dtype);
    int begin = 0, end = 0, whole = FA__ROW(__no_ends)(v) && row;
    if (!whole) {
        begin = piece == 0 ? v->shift : 0, end = row ? FA__ROW(__left)(v, piece) : 0;
        whole = at >= begin && at + FA__ROW(_VECTOR) <= end &&
                ((unsigned)(uintptr_t)from & 15u & (unsigned)(FA__ROW(_VECTOR) * fa_dtype_bytes(dtype) - 1)) == 0;
    }
    if (whole) {
        FA__ROW(__weight_vector)(w, from, dtype);
    } else if (at >= begin && at + FA__ROW(_VECTOR) <= end) {
        FA__UNROLL
        for (int i = 0; i < FA__ROW(_VECTOR); i++) w[i] = fa_load_element(from, i, dtype);
    } else {
        FA__UNROLL
        for (int i = 0; i < FA__ROW(_VECTOR); i++)
            w[i] = at + i >= begin && at + i < end ? fa__load_or_nan(from, 0, i, dtype, 1, NULL) : missing;
    }
    return w;
}
