/* harmless: passwords taken out of sentences, and lines that neither move a cursor nor command a CI system.
 * Owned by the calling thread; not in libtare.
 * Must not know where the text came from. */
#define _GNU_SOURCE
#include "base.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* ---- passwords -------------------------------------------------------------------------------------------- */
static void cut(char *from, const char *to)
{
    memmove(from, to, strlen(to) + 1);
}

/* "5432", "5432/db", "5432?x": a port, not a password that lost its '@'. */
static bool is_port(const char *at, size_t length)
{
    size_t digits = 0;
    while (digits < length && isdigit((unsigned char)at[digits]))
        digits++;
    return digits <= 5 && (digits == length || strchr("/?,'\")]#;", at[digits]));
}

static const char *last_at(const char *from, const char *end)
{
    while (end > from)
        if (*--end == '@')
            return end;
    return NULL;
}

/* What follows "://": up to the last '@' of the word, since one that should have been written %40 may be part of the
 * password. A blank may be part of it, too: then the word has no '@', and the first that follows ends it. What is behind
 * '?' may name a password as well. */
static char *hide_in_address(char *at)
{
    char *end = at + strcspn(at, " \t\r\n");
    char *colon = memchr(at, ':', (size_t)(end - at));
    const char *sign = last_at(at, end);
    if (colon && !sign && colon[1] != '[' && at[0] != '[' && !is_port(colon + 1, (size_t)(end - colon - 1))) {
        sign = strchr(end, '@');
        sign = sign ? sign : end;
    }
    if (colon && sign && colon < sign)
        cut(colon, sign);
    at += strcspn(at, " \t\r\n?");
    if (*at == '?') {
        size_t length = strcspn(at, " \t\r\n'\"");
        cut(at, at + length);
    }
    return at;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* password=…, also in quotes. */
static void hide_values(char *text)
{
    static const char *const keys[] = {"password", "passwd", "pwd", "secret", "token"};
    for (size_t i = 0; i < TARE__COUNT_OF(keys); i++) {
        char *at = text;
        while ((at = strcasestr(at, keys[i])) != NULL) {
            at += strlen(keys[i]);
            char *value = at + strspn(at, " ");
            if (*value != '=' || is_word(*at))
                continue;
            value += 1 + strspn(value + 1, " ");
            size_t length = *value == '\'' || *value == '"' ? strlen(value) : strcspn(value, " \t\r\n&");
            if (*value == '\'' || *value == '"') {
                const char *closing = strrchr(value + 1, *value);
                length = closing ? (size_t)(closing - value) + 1 : length;
            }
            cut(value, value + length);
            at = value;
        }
    }
}

void tare__redact(char *text)
{
    char *at = text;
    while ((at = strstr(at, "://")) != NULL)
        at = hide_in_address(at + 3);
    hide_values(text);
}

/* ---- lines ------------------------------------------------------------------------------------------------ */
/* Bytes of a colour sequence (ESC [ digits and semicolons m), as our own; or 0. */
static size_t colour(const char *at, size_t left)
{
    size_t n = 2;
    if (left < 3 || at[0] != '\x1b' || at[1] != '[')
        return 0;
    while (n < left && (isdigit((unsigned char)at[n]) || at[n] == ';'))
        n++;
    return n < left && at[n] == 'm' ? n + 1 : 0;
}

/* A CI system takes lines that begin with "::", after blanks, for commands to it, and "##[" and "##vso[" anywhere. */
static bool is_command(const char *text, size_t left, bool only_blanks)
{
    if (only_blanks && left >= 2 && text[0] == ':' && text[1] == ':')
        return true;
    return left >= 3 && text[0] == '#' && text[1] == '#' &&
           (text[2] == '[' || (left >= 6 && strncasecmp(text + 2, "vso[", 4) == 0));
}

void tare__harmless_lines(const char *text, size_t bytes, bool colours, tare__text *out)
{
    bool only_blanks = true;
    for (size_t i = 0; i < bytes;) {
        uint32_t code = 0;
        size_t left = bytes - i, size = colours ? colour(text + i, left) : 0;
        if (size) {
            tare__text_append(out, text + i, size);
            i += size;
            continue;
        }
        size = tare__utf8_decode(text + i, left, &code);
        if (is_command(text + i, left, only_blanks)) {
            tare__text_append(out, text + i, 1);
            tare__text_string(out, " ");
            i++;
            only_blanks = false;
            continue;
        }
        if (text[i] == '\n' || text[i] == '\t')
            tare__text_append(out, text + i, 1);
        else if (size == 0 || tare__utf8_control(code))
            tare__text_string(out, "?");
        else
            tare__text_append(out, text + i, size);
        only_blanks = text[i] == '\n' || (only_blanks && (text[i] == ' ' || text[i] == '\t'));
        i += size ? size : 1;
    }
}
