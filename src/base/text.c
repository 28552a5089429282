/* text: a growing string, and fitting names into columns of a table.
 * Owned by the calling thread.
 * Must not know where the text goes. */
#include "base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM ((size_t)64)

/* Makes space for `more` bytes and a NUL. */
static bool reserve(tare__text *text, size_t more)
{
    if (text->failed)
        return false;
    if (text->data && more < text->room - text->length)
        return true;
    size_t room = text->room ? text->room : FIRST_ROOM;
    while (room - text->length <= more) {
        if (room > SIZE_MAX / 2) {
            text->failed = true;
            return false;
        }
        room *= 2;
    }
    char *data = realloc(text->data, room);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->room = room;
    return true;
}

void tare__text_append(tare__text *text, const char *bytes, size_t length)
{
    if (!reserve(text, length))
        return;
    if (length)
        memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void tare__text_string(tare__text *text, const char *string)
{
    tare__text_append(text, string, strlen(string));
}

void tare__text_format(tare__text *text, const char *format, ...)
{
    if (!reserve(text, 0))
        return;
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    size_t room = text->room - text->length;
    int length = vsnprintf(text->data + text->length, room, format, args);
    if (length < 0)
        text->failed = true;
    else if ((size_t)length >= room && reserve(text, (size_t)length))
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
    if (!text->failed)
        text->length += (size_t)length;
    text->data[text->length] = '\0';
    va_end(again);
    va_end(args);
}

bool tare__is_one_of(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

void tare__text_pad_to(tare__text *text, size_t column)
{
    size_t start = text->length;
    while (start > 0 && text->data[start - 1] != '\n')
        start--;
    size_t at = text->length > start ? tare__text_columns(text->data + start, text->length - start) : 0;
    if (at >= column || !reserve(text, column - at))
        return;
    memset(text->data + text->length, ' ', column - at);
    text->length += column - at;
    text->data[text->length] = '\0';
}

void tare__text_clear(tare__text *text)
{
    text->length = 0;
    if (text->data)
        text->data[0] = '\0';
}

void tare__text_free(tare__text *text)
{
    free(text->data);
    *text = (tare__text){0};
}

void tare__text_end(tare__text *text, tare__text *whole)
{
    whole->failed |= text->failed;
    tare__text_free(text);
}

/* ---- columns --------------------------------------------------------------------------------------- */

/* Bytes of the color sequence that starts here (ESC [ digits and semicolons m), or 0. */
static size_t colour_sequence(const char *bytes, size_t length)
{
    if (length < 3 || bytes[0] != '\x1b' || bytes[1] != '[')
        return 0;
    size_t at = 2;
    while (at < length && ((bytes[at] >= '0' && bytes[at] <= '9') || bytes[at] == ';'))
        at++;
    return at < length && bytes[at] == 'm' ? at + 1 : 0;
}

size_t tare__text_columns(const char *bytes, size_t length)
{
    size_t columns = 0;
    while (length > 0) {
        uint32_t code;
        size_t size = colour_sequence(bytes, length);
        if (size == 0) {
            size = tare__utf8_decode(bytes, length, &code);
            columns += size ? tare__utf8_columns(code) : 1;
            size = size ? size : 1;
        }
        bytes += size;
        length -= size;
    }
    return columns;
}

/* One character as tare__text_fit shows it. */
typedef struct glyph {
    const char *shown;
    size_t shown_bytes;
    size_t bytes; /* taken from the source */
    size_t columns;
} glyph;

static glyph next_glyph(const char *at, const char *end)
{
    uint32_t code;
    size_t size = tare__utf8_decode(at, (size_t)(end - at), &code);
    if (size == 0 || tare__utf8_control(code))
        return (glyph){.shown = "?", .shown_bytes = 1, .bytes = size ? size : 1, .columns = 1};
    return (glyph){.shown = at, .shown_bytes = size, .bytes = size, .columns = tare__utf8_columns(code)};
}

typedef struct sink {
    char *at;
    char *end; /* one byte is kept free for the NUL */
} sink;

static void put(sink *to, const char *bytes, size_t length)
{
    if (length > (size_t)(to->end - to->at)) {
        to->end = to->at; /* nothing after a character that did not fit */
        return;
    }
    memcpy(to->at, bytes, length);
    to->at += length;
}

/* Copies characters while they stay within `columns`; combining marks are kept with their character. */
static void put_columns(sink *to, const char *at, const char *end, size_t columns)
{
    while (at < end) {
        glyph next = next_glyph(at, end);
        if (next.columns > columns)
            return;
        put(to, next.shown, next.shown_bytes);
        columns -= next.columns;
        at += next.bytes;
    }
}

static size_t shown_columns(const char *at, const char *end)
{
    size_t columns = 0;
    while (at < end) {
        glyph next = next_glyph(at, end);
        columns += next.columns;
        at += next.bytes;
    }
    return columns;
}

/* Start of the longest suffix of at most `columns`, not on a combining mark. */
static const char *find_tail(const char *at, const char *end, size_t total, size_t columns)
{
    while (at < end) {
        glyph next = next_glyph(at, end);
        if (total <= columns && next.columns > 0)
            break;
        total -= next.columns;
        at += next.bytes;
    }
    return at;
}

size_t tare__text_fit(char *out, size_t out_bytes, const char *string, size_t columns)
{
    if (out_bytes == 0)
        return 0;
    sink to = {.at = out, .end = out + out_bytes - 1};
    const char *end = string + strlen(string);
    size_t total = shown_columns(string, end);
    if (total <= columns) {
        put_columns(&to, string, end, columns);
    } else if (columns > 0) {
        size_t head = columns / 2, tail = columns - 1 - head;
        put_columns(&to, string, end, head);
        put(&to, "…", sizeof "…" - 1);
        put_columns(&to, find_tail(string, end, total, tail), end, tail);
    }
    *to.at = '\0';
    return (size_t)(to.at - out);
}

/* ---- numbers ---------------------------------------------------------------------------------------- */
void tare__text_double(char *out, size_t out_bytes, char style, int digits, double value)
{
    if (style == 'f')
        snprintf(out, out_bytes, "%.*f", digits, value);
    else
        snprintf(out, out_bytes, "%.*g", digits, value);
    /* The locale's decimal point may be several bytes; all other characters of a number are these. */
    size_t point = strspn(out, "+-0123456789eEinfaINFA");
    if (out[point] == '\0')
        return;
    size_t bytes = strcspn(out + point, "0123456789");
    out[point] = '.';
    memmove(out + point + 1, out + point + bytes, strlen(out + point + bytes) + 1);
}
