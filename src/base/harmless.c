/* harmless: removes passwords from messages, and makes lines safe for terminals and CI systems.
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

/* "5432", "5432/db", "5432?x", "5432)": a port, not a password that lost its '@'. */
static bool is_port(const char *at, size_t length)
{
    size_t digits = 0;
    while (digits < length && isdigit((unsigned char)at[digits]))
        digits++;
    return digits <= 5 && (digits == length || strchr("/?,", at[digits]) ||
                           (strchr("'\")];:.", at[digits]) && strspn(at + digits, "'\")];:.,") == length - digits));
}

/* ':' or its escape. */
static char *first_colon(char *at, const char *end)
{
    for (; at < end; at++)
        if (*at == ':' || strncasecmp(at, "%3a", 3) == 0)
            return at;
    return NULL;
}

/* The part after "://": from the first ':' to the last '@' of all, since the password may contain an unescaped space
 * or '@'; hiding too much is preferable. Without an '@' to the end of the word, unless a port follows. The part
 * after '?' may contain a password as well. */
static char *hide_in_address(char *at)
{
    char *end = at + strcspn(at, " \t\r\n");
    const char *sign = strrchr(at, '@');
    char *colon = first_colon(at, sign ? sign : end);
    if (colon && sign)
        cut(colon, sign);
    else if (!sign && colon && at[0] != '[' && !is_port(colon + 1, (size_t)(end - colon - 1)))
        cut(colon, end);
    at += strcspn(at, " \t\r\n?");
    if (*at == '?') {
        size_t length = strcspn(at, " \t\r\n'\"");
        cut(at, at + length);
    }
    return at;
}

/* "user:password@host" in one word, without a scheme or with a malformed one. */
static void hide_in_words(char *text)
{
    for (char *at = text; *at; at += strspn(at, " \t\r\n")) {
        char *end = at + strcspn(at, " \t\r\n"), *sign = memrchr(at, '@', (size_t)(end - at));
        char *scheme = strstr(at, "://");
        char *colon = scheme && scheme < end ? NULL : sign ? first_colon(at, sign) : NULL;
        if (colon && strncasecmp(at + strspn(at, "'\"("), "postgres", 8) == 0 && colon[1] == '/')
            colon = first_colon(colon + 1, sign);
        if (colon) {
            cut(colon, sign);
            end = at + strcspn(at, " \t\r\n");
        }
        at = end;
    }
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* password=…, sslpassword=…: everything after it. */
static void hide_values(char *text)
{
    static const char *const keys[] = {"password", "passwd", "pass", "pwd", "secret", "token"};
    for (size_t i = 0; i < TARE__COUNT_OF(keys); i++) {
        char *at = text;
        while ((at = strcasestr(at, keys[i])) != NULL) {
            at += strlen(keys[i]);
            char *value = at + strspn(at, " ");
            if (*value != '=' || is_word(*at))
                continue;
            value[1] = '\0'; /* its end is unknown: spaces and quotes may be part of it */
            break;
        }
    }
}

void tare__redact(char *text)
{
    char *at = text;
    while ((at = strstr(at, "://")) != NULL)
        at = hide_in_address(at + 3);
    hide_in_words(text);
    hide_values(text);
}

/* ---- lines ------------------------------------------------------------------------------------------------ */
/* Bytes of a color sequence (ESC [ digits and semicolons m), as our own; or 0. */
static size_t colour(const char *at, size_t left)
{
    size_t n = 2;
    if (left < 3 || at[0] != '\x1b' || at[1] != '[')
        return 0;
    while (n < left && (isdigit((unsigned char)at[n]) || at[n] == ';'))
        n++;
    return n < left && at[n] == 'm' ? n + 1 : 0;
}

/* CI systems interpret lines that begin with "::", after spaces, as commands, and "##[" and "##vso[" anywhere. */
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

/* ---- data on a terminal ----------------------------------------------------------------------------------- */
void tare__harmless_data(const char *text, size_t bytes, bool colours, tare__text *out)
{
    for (size_t i = 0, size; i < bytes; i += size) {
        uint32_t code = 0;
        size_t left = bytes - i, kept = colours ? colour(text + i, left) : 0;
        size = kept ? kept : tare__utf8_decode(text + i, left, &code);
        bool ends = text[i] == '\n' || text[i] == '\t' || (text[i] == '\r' && left > 1 && text[i + 1] == '\n');
        if (size == 0)
            tare__text_format(out, "\\x%02x", (unsigned)(unsigned char)text[i]);
        else if (!kept && !ends && tare__utf8_control(code))
            tare__text_format(out, "\\u%04x", (unsigned)code);
        else
            tare__text_append(out, text + i, size);
        size = size ? size : 1;
    }
}

size_t tare__harmless_whole(const char *text, size_t bytes)
{
    for (size_t back = 1; back <= 3 && back <= bytes; back++) {
        unsigned char byte = (unsigned char)text[bytes - back];
        size_t needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : byte == '\r' ? 2 : 1;
        if (byte < 0x80 || byte >= 0xc0)
            return needs > back ? bytes - back : bytes;
    }
    return bytes;
}
