/* json: writes strict JSON, value by value, into a text.
 * Owned by the calling thread.
 * Must not know any schema. */
#include "base.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tare__json_begin(tare__json *json, tare__text *out, bool pretty)
{
    *json = (tare__json){.out = out, .pretty = pretty};
}

static void break_line(tare__json *json)
{
    static const char blanks[] = "                                ";
    if (!json->pretty)
        return;
    tare__text_append(json->out, "\n", 1);
    for (size_t left = (size_t)json->depth * 2, some; left > 0; left -= some) {
        some = left < sizeof blanks - 1 ? left : sizeof blanks - 1;
        tare__text_append(json->out, blanks, some);
    }
}

/* The separator between the previous member and the next one. */
static void separate(tare__json *json)
{
    if (json->depth == 0)
        return;
    if (json->need_comma)
        tare__text_append(json->out, ",", 1);
    break_line(json);
}

static void begin_value(tare__json *json)
{
    if (!json->after_key)
        separate(json);
    json->after_key = false;
    json->need_comma = true;
}

static void open_scope(tare__json *json, const char *bracket)
{
    begin_value(json);
    tare__text_append(json->out, bracket, 1);
    json->depth++;
    json->need_comma = false;
}

static void close_scope(tare__json *json, const char *bracket)
{
    if (json->depth > 0)
        json->depth--;
    if (json->need_comma) /* an empty one stays on its line */
        break_line(json);
    tare__text_append(json->out, bracket, 1);
    json->need_comma = true;
    json->after_key = false;
}

void tare__json_object(tare__json *json)
{
    open_scope(json, "{");
}

void tare__json_end_object(tare__json *json)
{
    close_scope(json, "}");
}

void tare__json_array(tare__json *json)
{
    open_scope(json, "[");
}

void tare__json_end_array(tare__json *json)
{
    close_scope(json, "]");
}

/* ---- strings ---------------------------------------------------------------------------------------- */
static void put_escape(tare__text *out, unsigned char byte)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *found = byte ? strchr(from, byte) : NULL;
    if (found)
        tare__text_append(out, (char[]){'\\', to[found - from]}, 2);
    else
        tare__text_format(out, "\\u%04x", byte);
}

static void put_quoted(tare__text *out, const char *bytes, size_t length)
{
    tare__text_append(out, "\"", 1);
    size_t clean = 0; /* start of the part that needs no change */
    for (size_t at = 0; at < length;) {
        unsigned char byte = (unsigned char)bytes[at];
        uint32_t code;
        size_t size = byte < 0x80 ? 1 : tare__utf8_decode(bytes + at, length - at, &code);
        bool plain = size > 0 && byte >= 0x20 && byte != '"' && byte != '\\';
        if (plain) {
            at += size;
            continue;
        }
        tare__text_append(out, bytes + clean, at - clean);
        if (size == 0)
            tare__text_append(out, "\xef\xbf\xbd", 3);
        else
            put_escape(out, byte);
        clean = ++at;
    }
    tare__text_append(out, bytes + clean, length - clean);
    tare__text_append(out, "\"", 1);
}

void tare__json_key(tare__json *json, const char *key)
{
    separate(json);
    put_quoted(json->out, key, strlen(key));
    tare__text_append(json->out, ": ", json->pretty ? 2 : 1);
    json->after_key = true;
}

void tare__json_text(tare__json *json, const char *bytes, size_t length)
{
    begin_value(json);
    put_quoted(json->out, length ? bytes : "", length);
}

void tare__json_string(tare__json *json, const char *string)
{
    if (string)
        tare__json_text(json, string, strlen(string));
    else
        tare__json_null(json);
}

/* ---- numbers and words ------------------------------------------------------------------------------ */
void tare__json_unsigned(tare__json *json, uint64_t value)
{
    begin_value(json);
    tare__text_format(json->out, "%" PRIu64, value);
}

void tare__json_signed(tare__json *json, int64_t value)
{
    begin_value(json);
    tare__text_format(json->out, "%" PRId64, value);
}

/* 15 digits represent any decimal, 17 any double: the shortest that reads back is between them. */
static int digits_needed(double value)
{
    for (int digits = 15; digits < 17; digits++) {
        char text[48];
        /* Written and read in the same locale, so its decimal point does not matter here. */
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return digits;
    }
    return 17;
}

void tare__json_double(tare__json *json, double value)
{
    if (!isfinite(value)) {
        tare__json_null(json);
        return;
    }
    char text[48];
    tare__text_double(text, sizeof text, 'g', digits_needed(value), value);
    begin_value(json);
    tare__text_string(json->out, text);
}

void tare__json_bool(tare__json *json, bool value)
{
    begin_value(json);
    tare__text_string(json->out, value ? "true" : "false");
}

void tare__json_null(tare__json *json)
{
    begin_value(json);
    tare__text_string(json->out, "null");
}

/* ---- members: a key and its value ---- */
void tare__json_put_string(tare__json *json, const char *key, const char *value)
{
    tare__json_key(json, key);
    tare__json_string(json, value);
}

void tare__json_put_unsigned(tare__json *json, const char *key, uint64_t value)
{
    tare__json_key(json, key);
    tare__json_unsigned(json, value);
}

void tare__json_put_bool(tare__json *json, const char *key, bool value)
{
    tare__json_key(json, key);
    tare__json_bool(json, value);
}
