/**
 * @file image.h
 * @brief Pictures for the examples: reads PGM and PPM, writes PGM, PPM and PNG. No library needed.
 *
 * A picture is rows of pixels of 1 (gray) or 3 (red, green, blue) floats on a scale of 0 to 255, whatever the
 * file's own maximum was; that is kept in `maxval`, for writing.
 */
#ifndef IMAGE_H
#define IMAGE_H

#include "harness.h"

#include <errno.h>

typedef struct image {
    int width, height, channels, maxval;
    float *data; /* height * width * channels */
} image;

static UNUSED image image_new(int width, int height, int channels, int maxval) {
    image p;
    p.width = width, p.height = height, p.channels = channels, p.maxval = maxval;
    p.data = (float *)host_alloc(sizeof(float) * (size_t)width * (size_t)height * (size_t)channels);
    return p;
}
static UNUSED size_t image_count(image p) { return (size_t)p.width * (size_t)p.height * (size_t)p.channels; }

/** The number a file would hold for x. */
static UNUSED int image_sample(image p, float x) {
    float scaled = x * (float)p.maxval / 255 + 0.5f;
    return scaled <= 0 ? 0 : scaled >= (float)p.maxval ? p.maxval : (int)scaled;
}
/** Rounds a picture to what a file of it would hold. */
static UNUSED void image_round(image p) {
    for (size_t i = 0; i < image_count(p); i++) p.data[i] = (float)image_sample(p, p.data[i]) * 255 / (float)p.maxval;
}

/* ------------------------------------------------------------------ reading */

typedef struct image_file {
    const char *name;
    unsigned char *bytes;
    size_t size, at;
} image_file;

static UNUSED int image_white(int byte) { return byte && strchr(" \t\r\n\v\f", byte); }

/** The next number of a header or of a text picture; # starts a comment. */
static UNUSED int image_number(image_file *f, const char *what, int least, int most) {
    int64_t number = 0;
    for (;; f->at++) {
        if (f->at >= f->size) DIE("%s: the file ends where its %s should be", f->name, what);
        if (f->bytes[f->at] == '#')
            while (f->at + 1 < f->size && f->bytes[f->at] != '\n') f->at++;
        else if (!image_white(f->bytes[f->at])) break;
    }
    if (f->bytes[f->at] < '0' || f->bytes[f->at] > '9')
        DIE("%s: byte %zu: a number was expected (%s)", f->name, f->at, what);
    for (; f->at < f->size && f->bytes[f->at] >= '0' && f->bytes[f->at] <= '9'; f->at++)
        if (number <= most) number = 10 * number + (f->bytes[f->at] - '0');
    if (number < least || number > most)
        DIE("%s: %s is %s: it should be %d to %d", f->name, what, number < least ? "too small" : "too large", least,
            most);
    return (int)number;
}

/** Reads a PGM or PPM, text (P2, P3) or binary (P5, P6). A file that is not one ends the program with the reason. */
static UNUSED image image_read(const char *name) {
    FILE *stream = fopen(name, "rb");
    image_file f = {name, NULL, 0, 2};
    if (!stream) DIE("%s: cannot open it for reading: %s", name, strerror(errno));
    for (size_t room = 1 << 16;; room *= 2) {
        f.bytes = (unsigned char *)realloc(f.bytes, room);
        if (!f.bytes) DIE("%s: no memory for it", name);
        f.size += fread(f.bytes + f.size, 1, room - f.size, stream);
        if (f.size < room) break;
    }
    if (ferror(stream)) DIE("%s: cannot read it: %s", name, strerror(errno));
    fclose(stream);

    int kind = f.size > 2 && f.bytes[0] == 'P' ? f.bytes[1] : 0;
    if (!strchr("2356", kind) || !kind)
        DIE("%s: not a PGM or PPM picture (it should start with P2, P3, P5 or P6)\n"
            "ImageMagick makes one of almost any picture: convert photo.jpg -resize 256x256 photo.ppm",
            name);
    int channels = kind == '3' || kind == '6' ? 3 : 1, binary = kind >= '5';
    int width = image_number(&f, "width", 1, 1 << 14), height = image_number(&f, "height", 1, 1 << 14);
    image p = image_new(width, height, channels, image_number(&f, "largest value", 1, 65535));
    size_t count = image_count(p), each = p.maxval > 255 ? 2 : 1;
    if (binary && f.at < f.size && !image_white(f.bytes[f.at]))
        DIE("%s: byte %zu is %d: white space was expected, which ends the header", name, f.at, f.bytes[f.at]);
    f.at++; /* one byte of white space ends a binary header */
    if (binary && (f.at > f.size || f.size - f.at < count * each))
        DIE("%s: %d x %d pixels need %zu bytes, but only %zu follow the header", name, width, height, count * each,
            f.at > f.size ? (size_t)0 : f.size - f.at);
    for (size_t i = 0; i < count; i++) {
        int x;
        if (!binary) x = image_number(&f, "next pixel", 0, p.maxval);
        else x = each == 1 ? f.bytes[f.at + i] : 256 * f.bytes[f.at + 2 * i] + f.bytes[f.at + 2 * i + 1];
        if (x > p.maxval) DIE("%s: a pixel is %d, more than the largest value %d", name, x, p.maxval);
        p.data[i] = (float)x * 255 / (float)p.maxval;
    }
    free(f.bytes);
    return p;
}

/* ------------------------------------------------------------------ writing */

/** One row as bytes, two a sample (the higher first) when maxval needs them, as PNM and PNG both want it. */
static UNUSED size_t image_row(image p, int y, unsigned char *to) {
    size_t row = (size_t)p.width * (size_t)p.channels, n = 0;
    for (size_t i = 0; i < row; i++) {
        int x = image_sample(p, p.data[(size_t)y * row + i]);
        if (p.maxval > 255) to[n++] = (unsigned char)(x >> 8);
        to[n++] = (unsigned char)x;
    }
    return n;
}
static UNUSED void image_close(FILE *stream, const char *name) {
    int failed = ferror(stream);
    if (fclose(stream) || failed) DIE("%s: cannot write it: %s", name, strerror(errno));
}
/** Writes a binary PGM or PPM. */
static UNUSED void image_write_pnm(image p, const char *name) {
    unsigned char *row = (unsigned char *)host_alloc(2 * (size_t)p.width * (size_t)p.channels);
    FILE *stream = fopen(name, "wb");
    if (!stream) DIE("%s: cannot open it for writing: %s", name, strerror(errno));
    fprintf(stream, "P%d\n%d %d\n%d\n", p.channels == 3 ? 6 : 5, p.width, p.height, p.maxval);
    for (int y = 0; y < p.height; y++) fwrite(row, 1, image_row(p, y, row), stream);
    free(row);
    image_close(stream, name);
}

static UNUSED void image_put32(unsigned char *to, uint32_t x) {
    for (int i = 0; i < 4; i++) to[i] = (unsigned char)(x >> (24 - 8 * i));
}
/** A PNG chunk: length, type, data, CRC-32 of type and data. `chunk` has 8 bytes before the data and 4 after. */
static UNUSED void image_chunk(FILE *stream, const char *type, unsigned char *chunk, size_t size) {
    uint32_t crc = 0xFFFFFFFFu;
    image_put32(chunk, (uint32_t)size);
    memcpy(chunk + 4, type, 4);
    for (size_t i = 4; i < 8 + size; i++) {
        crc ^= chunk[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    image_put32(chunk + 8 + size, ~crc);
    fwrite(chunk, 1, 12 + size, stream);
}
/** Writes a PNG (RFC 2083) without compressing it: "stored" blocks (RFC 1951) in a zlib wrapper (RFC 1950).
 *  PNG has 8 and 16 bits a sample and nothing between, so the samples are scaled to 255 or 65535. */
static UNUSED void image_write_png(image p, const char *name) {
    p.maxval = p.maxval > 255 ? 65535 : 255;
    size_t line = 1 + (size_t)p.width * (size_t)p.channels * (p.maxval > 255 ? 2 : 1); /* a filter byte, then a row */
    size_t raw = line * (size_t)p.height, blocks = (raw + 65534) / 65535, n = 8;
    unsigned char *lines = (unsigned char *)host_alloc(raw);
    unsigned char *chunk = (unsigned char *)host_alloc(raw + 5 * blocks + 18);
    uint32_t low = 1, high = 0; /* Adler-32 */
    FILE *stream = fopen(name, "wb");
    if (!stream) DIE("%s: cannot open it for writing: %s", name, strerror(errno));
    fwrite("\x89PNG\r\n\x1a\n", 1, 8, stream);
    image_put32(chunk + 8, (uint32_t)p.width);
    image_put32(chunk + 12, (uint32_t)p.height);
    chunk[16] = p.maxval > 255 ? 16 : 8;
    chunk[17] = p.channels == 3 ? 2 : 0; /* colour or gray */
    chunk[18] = chunk[19] = chunk[20] = 0;
    image_chunk(stream, "IHDR", chunk, 13);

    for (int y = 0; y < p.height; y++) {
        lines[(size_t)y * line] = 0; /* no filter */
        image_row(p, y, lines + (size_t)y * line + 1);
    }
    chunk[n++] = 0x78, chunk[n++] = 0x01;
    for (size_t at = 0; at < raw; at += 65535) {
        size_t size = raw - at < 65535 ? raw - at : 65535;
        chunk[n++] = at + size == raw; /* the last block? */
        chunk[n++] = (unsigned char)size, chunk[n++] = (unsigned char)(size >> 8);
        chunk[n++] = (unsigned char)~size, chunk[n++] = (unsigned char)(~size >> 8);
        memcpy(chunk + n, lines + at, size);
        n += size;
    }
    for (size_t i = 0; i < raw; i++) low = (low + lines[i]) % 65521, high = (high + low) % 65521;
    image_put32(chunk + n, high << 16 | low);
    image_chunk(stream, "IDAT", chunk, n + 4 - 8);
    image_chunk(stream, "IEND", chunk, 0);
    free(lines), free(chunk);
    image_close(stream, name);
}

#endif
