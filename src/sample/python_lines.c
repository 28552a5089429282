/* python_lines: line tables and names of CPython's code objects, decoded.
 * Any thread: pure functions.
 * Must not know where the bytes come from, nor trust them. */
#include "python_inner.h"

typedef struct lines {
    tare__python_line *at; /* room for one more than the entries of the table */
    uint32_t n;
    int32_t first;
} lines;

/* Instructions that the compiler adds have no line (jumps back to a loop, the end of an `except`): they belong to the
 * line before them. */
static void add_line(lines *lines, uint64_t start, int64_t line, uint32_t code_bytes)
{
    if (start >= code_bytes)
        return;
    int32_t before = lines->n ? lines->at[lines->n - 1].line : lines->first;
    int32_t shown = line > 0 && line <= INT32_MAX ? (int32_t)line : before;
    if (lines->n && lines->at[lines->n - 1].start == start)
        lines->n--;
    if (lines->n && lines->at[lines->n - 1].line == shown)
        return;
    lines->at[lines->n++] = (tare__python_line){(uint32_t)start, shown};
}

/* 3.9, Objects/lnotab_notes.txt: pairs of (bytes of code, signed lines). */
static void decode_lnotab(lines *out, const unsigned char *bytes, size_t n, int64_t line, uint32_t code_bytes)
{
    uint64_t start = 0;
    add_line(out, 0, line, code_bytes);
    for (size_t i = 0; i + 1 < n; i += 2) {
        start += bytes[i];
        line += (signed char)bytes[i + 1];
        add_line(out, start, line, code_bytes);
    }
}

/* 3.10: pairs of (bytes of code, signed lines from the previous one), -128: no line. */
static void decode_linetable(lines *out, const unsigned char *bytes, size_t n, int64_t line, uint32_t code_bytes)
{
    uint64_t start = 0;
    for (size_t i = 0; i + 1 < n; i += 2) {
        int delta = (signed char)bytes[i + 1];
        if (delta != -128)
            line += delta;
        if (bytes[i])
            add_line(out, start, delta == -128 ? 0 : line, code_bytes);
        start += bytes[i];
    }
}

/* Groups of 6 bits, the lowest first; bit 6: another one follows. */
static uint64_t read_varint(const unsigned char *bytes, size_t n, size_t *at)
{
    uint64_t value = 0;
    for (unsigned shift = 0; *at < n && shift < 36; shift += 6) {
        unsigned char byte = bytes[(*at)++];
        value |= (uint64_t)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return value;
}

/* 3.11+, Objects/locations.md: an entry starts with 1, its kind (4 bits) and its code units less one (3 bits). */
static void decode_locations(lines *out, const unsigned char *bytes, size_t n, int64_t line, uint32_t code_bytes)
{
    uint64_t start = 0;
    for (size_t i = 0; i < n;) {
        unsigned char first = bytes[i++];
        if (!(first & 128)) /* columns of the last entry */
            continue;
        unsigned kind = first >> 3 & 15;
        if (kind == 13 || kind == 14) {
            uint64_t value = read_varint(bytes, n, &i);
            line += value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
        } else if (kind >= 10 && kind <= 12) {
            line += kind - 10;
        }
        add_line(out, start, kind == 15 ? 0 : line, code_bytes);
        start += 2u * ((first & 7u) + 1);
    }
}

tare__python_line *tare__python_lines(tare__arena *memory, tare__python_table table, const unsigned char *bytes,
                                      size_t n, uint32_t first_line, uint32_t code_bytes, uint32_t *n_lines)
{
    static void (*const decode[])(lines *, const unsigned char *, size_t, int64_t, uint32_t) = {
        [TARE__PYTHON_LNOTAB] = decode_lnotab,
        [TARE__PYTHON_LINETABLE] = decode_linetable,
        [TARE__PYTHON_LOCATIONS] = decode_locations,
    };
    lines out = {tare__arena_alloc(memory, (n + 1) * sizeof(tare__python_line)), 0, (int32_t)first_line};
    if (!out.at)
        return NULL;
    decode[table](&out, bytes, n, first_line, code_bytes);
    *n_lines = out.n;
    return out.at;
}

int32_t tare__python_line_of(const tare__python_function *function, uint32_t offset)
{
    uint32_t low = 0, high = function->n_lines;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (function->lines[middle].start <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? function->lines[low - 1].line : 0;
}

static size_t put_utf8(char *out, uint32_t code)
{
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        code = 0xfffd;
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 63));
        out[2] = (char)(0x80 | (code & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 63));
    out[2] = (char)(0x80 | (code >> 6 & 63));
    out[3] = (char)(0x80 | (code & 63));
    return 4;
}

char *tare__python_utf8(tare__arena *memory, const unsigned char *bytes, size_t characters, unsigned kind, bool ascii)
{
    /* A damaged "ASCII" string may have other bytes, which take two. */
    size_t most = kind == 1 ? (ascii && !memchr(bytes, 0, characters) ? 2 : 3) : kind == 2 ? 3 : 4;
    char *out = tare__arena_alloc(memory, characters * most + 1);
    size_t n = 0;
    for (size_t i = 0; out && i < characters; i++) {
        uint32_t code = bytes[i];
        if (kind == 2)
            code = (uint32_t)bytes[2 * i] | (uint32_t)bytes[2 * i + 1] << 8;
        else if (kind == 4)
            code = tare__python_u32(bytes + 4 * i);
        n += put_utf8(out + n, code);
    }
    if (out)
        out[n] = '\0';
    return out;
}
