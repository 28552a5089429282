/* json_reader: JSON of any length, token by token, through a window of fixed size.
 * A reader belongs to one thread.
 * Must not know any schema. */
#include "base.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_BYTES ((size_t)256 << 10)
#define TOKEN_BYTES  ((size_t)128) /* words and numbers are shorter, and thus always completely in the window */

/* What may come next. */
enum {
    EXPECT_VALUE,
    EXPECT_VALUE_OR_END,
    EXPECT_KEY,
    EXPECT_KEY_OR_END,
    EXPECT_COMMA_OR_END,
    EXPECT_NOTHING
};

bool tare__json_reader_open(tare__json_reader *reader, tare__json_source *read, void *context)
{
    *reader = (tare__json_reader){.read = read, .context = context, .expect = EXPECT_VALUE};
    reader->window = malloc(WINDOW_BYTES);
    reader->scratch = malloc(TARE__JSON_STRING_MAX + 4);
    if (reader->window && reader->scratch)
        return true;
    tare__json_reader_close(reader);
    return false;
}

void tare__json_reader_close(tare__json_reader *reader)
{
    free(reader->window);
    free(reader->scratch);
    reader->window = reader->scratch = NULL;
}

/* ---- the window ------------------------------------------------------------------------------------ */
/* Reads more bytes after the unread ones; false: there are none. */
static bool refill(tare__json_reader *reader)
{
    if (reader->drained)
        return false;
    size_t left = reader->end - reader->at;
    memmove(reader->window, reader->window + reader->at, left);
    reader->base += reader->at;
    reader->at = 0;
    reader->end = left;
    int64_t got = reader->read(reader->context, reader->window + left, WINDOW_BYTES - left);
    if (got < 0)
        reader->failed = true;
    if (got <= 0)
        reader->drained = true;
    else
        reader->end += (size_t)got;
    return got > 0;
}

static bool has(tare__json_reader *reader, size_t bytes)
{
    while (reader->end - reader->at < bytes)
        if (!refill(reader))
            return false;
    return true;
}

static tare__json_token broken(tare__json_reader *reader, const char *wrong)
{
    reader->offset = reader->base + reader->at;
    reader->ended = reader->at == reader->end && reader->drained;
    reader->wrong = reader->ended ? "unexpected end of input" : wrong;
    reader->text = "";
    reader->length = 0;
    return TARE__JSON_BROKEN;
}

static inline bool is_blank(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

/* The next byte that is not whitespace, or -1. */
static int peek(tare__json_reader *reader)
{
    for (;;) {
        while (reader->at < reader->end) {
            char byte = reader->window[reader->at];
            if (!is_blank(byte))
                return (unsigned char)byte;
            reader->at++;
        }
        if (!refill(reader))
            return -1;
    }
}

/* ---- strings --------------------------------------------------------------------------------------- */
#define EACH_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline uint64_t zero_bytes(uint64_t word)
{
    return (word - EACH_BYTE(1)) & ~word & EACH_BYTE(0x80);
}

/* Up to the next quote or backslash, or the end. */
static const char *plain_end(const char *at, const char *end)
{
    for (; end - at >= 8; at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        if (zero_bytes(word ^ EACH_BYTE('"')) | zero_bytes(word ^ EACH_BYTE('\\')))
            break;
    }
    while (at < end && *at != '"' && *at != '\\')
        at++;
    return at;
}

static void keep(tare__json_reader *reader, const char *bytes, size_t length)
{
    size_t room = TARE__JSON_STRING_MAX - reader->length;
    if (length > room) {
        length = room;
        reader->cut = true;
    }
    memcpy(reader->scratch + reader->length, bytes, length);
    reader->length += length;
}

static int hex_digit(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Four digits at the cursor, which does not move; -1: invalid. */
static int32_t hex_at(tare__json_reader *reader, size_t ahead)
{
    int32_t code = 0;
    if (!has(reader, ahead + 4))
        return -1;
    for (size_t i = 0; i < 4; i++) {
        int digit = hex_digit(reader->window[reader->at + ahead + i]);
        if (digit < 0)
            return -1;
        code = code << 4 | digit;
    }
    return code;
}

static void keep_code(tare__json_reader *reader, uint32_t code)
{
    char bytes[4];
    size_t n = 0;
    if (code < 0x80) {
        bytes[n++] = (char)code;
    } else if (code < 0x800) {
        bytes[n++] = (char)(0xC0 | code >> 6);
        bytes[n++] = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        bytes[n++] = (char)(0xE0 | code >> 12);
        bytes[n++] = (char)(0x80 | (code >> 6 & 0x3F));
        bytes[n++] = (char)(0x80 | (code & 0x3F));
    } else {
        bytes[n++] = (char)(0xF0 | code >> 18);
        bytes[n++] = (char)(0x80 | (code >> 12 & 0x3F));
        bytes[n++] = (char)(0x80 | (code >> 6 & 0x3F));
        bytes[n++] = (char)(0x80 | (code & 0x3F));
    }
    if (reader->length + n > TARE__JSON_STRING_MAX)
        reader->cut = true;
    else
        keep(reader, bytes, n);
}

/* After "\u". Half of a surrogate pair is not a character. */
static bool read_code(tare__json_reader *reader)
{
    int32_t code = hex_at(reader, 0);
    if (code < 0)
        return false;
    reader->at += 4;
    if (code >= 0xD800 && code < 0xDC00 && has(reader, 6) && reader->window[reader->at] == '\\' &&
        reader->window[reader->at + 1] == 'u') {
        int32_t low = hex_at(reader, 2);
        if (low >= 0xDC00 && low < 0xE000) {
            reader->at += 6;
            keep_code(reader, 0x10000u + ((uint32_t)(code - 0xD800) << 10) + (uint32_t)(low - 0xDC00));
            return true;
        }
    }
    keep_code(reader, code >= 0xD800 && code < 0xE000 ? 0xFFFD : (uint32_t)code);
    return true;
}

/* The cursor is on the backslash. */
static bool read_escape(tare__json_reader *reader)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (!has(reader, 2)) {
        reader->at = reader->end;
        return false;
    }
    char letter = reader->window[reader->at + 1];
    const char *found = letter ? strchr(from, letter) : NULL;
    if (!found && letter != 'u')
        return false;
    reader->at += 2;
    if (!found)
        return read_code(reader);
    keep(reader, &to[found - from], 1);
    return true;
}

/* The cursor is behind the opening quote; the text may be longer than the window. */
static const char *read_long_string(tare__json_reader *reader)
{
    reader->length = 0;
    for (;;) {
        if (!has(reader, 1))
            return "unterminated string";
        const char *at = reader->window + reader->at;
        const char *stop = plain_end(at, reader->window + reader->end);
        keep(reader, at, (size_t)(stop - at));
        reader->at += (size_t)(stop - at);
        if (reader->at == reader->end)
            continue;
        if (*stop == '"') {
            reader->at++;
            reader->text = reader->scratch;
            return NULL;
        }
        if (!read_escape(reader))
            return "invalid escape sequence";
    }
}

/* Control characters are accepted: programs forget to escape them, and they are unambiguous. */
static const char *read_string(tare__json_reader *reader)
{
    reader->at++;
    reader->cut = false;
    const char *at = reader->window + reader->at;
    const char *stop = plain_end(at, reader->window + reader->end);
    if (stop == reader->window + reader->end || *stop != '"' || (size_t)(stop - at) > TARE__JSON_STRING_MAX)
        return read_long_string(reader);
    reader->text = at;
    reader->length = (size_t)(stop - at);
    reader->at += reader->length + 1;
    return NULL;
}

/* ---- numbers and words ------------------------------------------------------------------------------- */
static size_t digits(const char *at, const char *end)
{
    const char *from = at;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return (size_t)(at - from);
}

/* Length of the number at the cursor; 0: not a number. Leading zeros are accepted. */
static size_t number_length(const char *from, const char *end)
{
    const char *at = from;
    at += at < end && *at == '-';
    size_t whole = digits(at, end);
    if (!whole)
        return 0;
    at += whole;
    if (at < end && *at == '.') {
        size_t part = digits(at + 1, end);
        if (!part)
            return 0;
        at += 1 + part;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '-' || *at == '+');
        size_t power = digits(at, end);
        if (!power)
            return 0;
        at += power;
    }
    return (size_t)(at - from);
}

static bool ends_word(char byte)
{
    return is_blank(byte) || byte == ',' || byte == ']' || byte == '}';
}

static tare__json_token read_word(tare__json_reader *reader)
{
    static const struct {
        const char *word;
        tare__json_token token;
    } words[] = {
        {"true", TARE__JSON_TRUE}, {"false", TARE__JSON_FALSE},   {"null", TARE__JSON_NULL},
        {"NaN", TARE__JSON_NULL},  {"Infinity", TARE__JSON_NULL}, {"-Infinity", TARE__JSON_NULL},
        {"nan", TARE__JSON_NULL},  {"-nan", TARE__JSON_NULL},     {"inf", TARE__JSON_NULL},
        {"-inf", TARE__JSON_NULL},
    };
    const char *at = reader->window + reader->at;
    size_t left = reader->end - reader->at;
    for (size_t i = 0; i < TARE__COUNT_OF(words); i++) {
        size_t length = strlen(words[i].word);
        if (left >= length && memcmp(at, words[i].word, length) == 0 &&
            (left == length || ends_word(at[length]))) {
            reader->text = at;
            reader->length = length;
            reader->at += length;
            return words[i].token;
        }
    }
    return broken(reader, "expected a value");
}

static tare__json_token read_scalar(tare__json_reader *reader)
{
    has(reader, TOKEN_BYTES + 1); /* and what ends it */
    const char *at = reader->window + reader->at, *end = reader->window + reader->end;
    size_t length = number_length(at, end - at > (ptrdiff_t)TOKEN_BYTES ? at + TOKEN_BYTES : end);
    if (!length)
        return read_word(reader);
    if (at + length < end && !ends_word(at[length]))
        return broken(reader, "invalid number");
    reader->text = at;
    reader->length = length;
    reader->at += length;
    return TARE__JSON_NUMBER;
}

/* ---- tokens ---------------------------------------------------------------------------------------- */
static void value_done(tare__json_reader *reader)
{
    reader->expect = reader->depth ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
}

static tare__json_token open_scope(tare__json_reader *reader, bool object)
{
    if (reader->depth == TARE__JSON_DEPTH_MAX)
        return broken(reader, "nested too deeply");
    reader->at++;
    reader->is_object[reader->depth++] = object;
    reader->expect = object ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END;
    return object ? TARE__JSON_OBJECT : TARE__JSON_ARRAY;
}

static tare__json_token close_scope(tare__json_reader *reader)
{
    reader->at++;
    bool object = reader->is_object[--reader->depth];
    value_done(reader);
    return object ? TARE__JSON_END_OBJECT : TARE__JSON_END_ARRAY;
}

static tare__json_token read_value(tare__json_reader *reader, int byte)
{
    if (byte == '{' || byte == '[')
        return open_scope(reader, byte == '{');
    tare__json_token token = TARE__JSON_STRING;
    if (byte == '"') {
        const char *wrong = read_string(reader);
        if (wrong)
            return broken(reader, wrong);
    } else {
        token = read_scalar(reader);
    }
    if (token != TARE__JSON_BROKEN)
        value_done(reader);
    return token;
}

static tare__json_token read_key(tare__json_reader *reader, int byte)
{
    if (byte != '"')
        return broken(reader, "expected a quoted name");
    const char *wrong = read_string(reader);
    if (wrong)
        return broken(reader, wrong);
    /* Searching for the colon must not move the window under the name. */
    if (reader->text != reader->scratch && (reader->at == reader->end || reader->window[reader->at] != ':')) {
        memcpy(reader->scratch, reader->text, reader->length);
        reader->text = reader->scratch;
    }
    const char *text = reader->text;
    size_t length = reader->length;
    if (peek(reader) != ':')
        return broken(reader, "expected a colon");
    reader->at++;
    reader->text = text;
    reader->length = length;
    reader->expect = EXPECT_VALUE;
    return TARE__JSON_KEY;
}

tare__json_token tare__json_next(tare__json_reader *reader)
{
    if (!reader->begun) { /* a byte-order mark, as some editors write it */
        reader->begun = true;
        if (has(reader, 3) && memcmp(reader->window + reader->at, "\xef\xbb\xbf", 3) == 0)
            reader->at += 3;
    }
    if (reader->wrong)
        return TARE__JSON_BROKEN;
    int byte = peek(reader);
    reader->offset = reader->base + reader->at;
    if (reader->expect == EXPECT_NOTHING)
        return byte < 0 && !reader->failed ? TARE__JSON_END
                                           : broken(reader, "unexpected data after the end");
    if (byte < 0)
        return broken(reader, "unexpected end of input");
    bool in_object = reader->depth && reader->is_object[reader->depth - 1];
    if (reader->expect == EXPECT_COMMA_OR_END) {
        if (byte == (in_object ? '}' : ']'))
            return close_scope(reader);
        if (byte != ',')
            return broken(reader, "expected a comma");
        reader->at++;
        reader->expect = in_object ? EXPECT_KEY : EXPECT_VALUE;
        byte = peek(reader);
        reader->offset = reader->base + reader->at;
        if (byte < 0)
            return broken(reader, "unexpected end of input");
    }
    if ((reader->expect == EXPECT_KEY_OR_END && byte == '}') ||
        (reader->expect == EXPECT_VALUE_OR_END && byte == ']'))
        return close_scope(reader);
    if (reader->expect == EXPECT_KEY || reader->expect == EXPECT_KEY_OR_END)
        return read_key(reader, byte);
    return read_value(reader, byte);
}

tare__json_token tare__json_skip(tare__json_reader *reader, tare__json_token token)
{
    if (token != TARE__JSON_OBJECT && token != TARE__JSON_ARRAY)
        return token;
    uint32_t outside = reader->depth - 1;
    do
        token = tare__json_next(reader);
    while (token != TARE__JSON_BROKEN && reader->depth > outside);
    return token;
}

bool tare__json_reader_resume(tare__json_reader *reader, uint32_t depth)
{
    enum { NOTHING, BRACE, COMMA, OPENED } seen = NOTHING;
    if (!reader->wrong || depth == 0 || depth > reader->depth || reader->is_object[depth - 1] ||
        depth == TARE__JSON_DEPTH_MAX)
        return false;
    for (int byte; (byte = peek(reader)) >= 0; reader->at++) {
        if (seen == OPENED && byte == '"')
            break;
        seen = byte == '}'                    ? BRACE
               : byte == ',' && seen == BRACE ? COMMA
               : byte == '{' && seen == COMMA ? OPENED
                                              : NOTHING;
    }
    if (reader->at == reader->end)
        return false;
    reader->wrong = NULL;
    reader->depth = depth + 1;
    reader->is_object[depth] = true;
    reader->expect = EXPECT_KEY_OR_END;
    return true;
}

/* ---- values of numbers ------------------------------------------------------------------------------- */
/* For more digits than a double has, only strtod rounds correctly; its decimal point is the locale's. */
static double rounded(const char *number)
{
    char local[TOKEN_BYTES + 17];
    const char *point = strchr(number, '.');
    if (!point)
        return strtod(number, NULL);
    snprintf(local, sizeof local, "%.*s%.16s%s", (int)(point - number), number, localeconv()->decimal_point, point + 1);
    return strtod(local, NULL);
}

double tare__json_double_of(const char *text, size_t length)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10,
                                  1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    char copy[TOKEN_BYTES + 1];
    if (length == 0 || length > TOKEN_BYTES || number_length(text, text + length) != length)
        return NAN;
    memcpy(copy, text, length);
    copy[length] = '\0';
    double mantissa = 0;
    unsigned digits = 0, behind = 0;
    const char *at = copy + (copy[0] == '-');
    for (bool after = false; *at && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            after = true;
            continue;
        }
        mantissa = mantissa * 10 + (*at - '0');
        digits += mantissa != 0;
        behind += after;
    }
    /* Both are exact then, and their quotient has one rounding: the usual case, and much cheaper. */
    if (*at || digits > 15 || behind >= TARE__COUNT_OF(tens))
        return rounded(copy);
    mantissa /= tens[behind];
    return copy[0] == '-' ? -mantissa : mantissa;
}

bool tare__json_scaled(const char *text, size_t length, int64_t scale, int64_t *value)
{
    const char *at = text, *end = text + length;
    bool negative = at < end && *at == '-';
    int64_t whole = 0, part = 0, place = scale;
    at += negative;
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, *at - '0', &whole))
            return false;
    if (__builtin_mul_overflow(whole, scale, &whole))
        return false;
    if (at < end && *at == '.')
        for (at++; at < end && *at >= '0' && *at <= '9'; at++) {
            place /= 10;
            part += place * (*at - '0');
        }
    if (at != end) { /* 1.7e15 */
        double rough = tare__json_double_of(text, length) * (double)scale;
        if (!(rough > -9e18 && rough < 9e18))
            return false;
        *value = (int64_t)rough;
        return true;
    }
    if (length == negative || __builtin_add_overflow(whole, part, &whole))
        return false;
    *value = negative ? -whole : whole;
    return true;
}

int64_t tare__memory_read(void *source, void *into, size_t bytes)
{
    tare__memory_source *from = source;
    size_t n = from->left < bytes ? from->left : bytes;
    if (n == 0)
        return 0; /* memory may be exhausted */
    memcpy(into, from->at, n);
    from->at = (const char *)from->at + n;
    from->left -= n;
    return (int64_t)n;
}
