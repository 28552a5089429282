/* scan: parses numbers and words in texts of the kernel, without sscanf, which costs more than reading the file.
 * Pure functions; any thread. Invalid input (truncated, too large, not a number) is false, never a guess.
 * Must not know what the texts mean. */
#ifndef TARE_SAMPLE_SCAN_H
#define TARE_SAMPLE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct tare__scan {
    const char *at, *end;
} tare__scan;

static inline tare__scan tare__scan_of(const char *text, int bytes)
{
    return (tare__scan){text, text + (bytes > 0 ? bytes : 0)};
}

/* The next complete line, without its newline. A last line without a newline was truncated and is ignored. */
static inline bool tare__scan_line(tare__scan *text, tare__scan *line)
{
    const char *end = text->at < text->end ? memchr(text->at, '\n', (size_t)(text->end - text->at)) : NULL;
    if (!end)
        return false;
    *line = (tare__scan){text->at, end};
    text->at = end + 1;
    return true;
}

static inline bool tare__scan_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static inline void tare__scan_blanks(tare__scan *text)
{
    while (text->at < text->end && tare__scan_blank(*text->at))
        text->at++;
}

/* Skips `word` if it comes next. */
static inline bool tare__scan_skip(tare__scan *text, const char *word)
{
    size_t bytes = strlen(word);
    if ((size_t)(text->end - text->at) < bytes || memcmp(text->at, word, bytes) != 0)
        return false;
    text->at += bytes;
    return true;
}

/* The next word, up to a space; empty at the end. */
static inline tare__scan tare__scan_word(tare__scan *text)
{
    tare__scan_blanks(text);
    tare__scan word = {text->at, text->at};
    while (word.end < text->end && !tare__scan_blank(*word.end))
        word.end++;
    text->at = word.end;
    return word;
}

static inline bool tare__scan_is(tare__scan word, const char *text)
{
    return (size_t)(word.end - word.at) == strlen(text) && memcmp(word.at, text, strlen(text)) == 0;
}

/* The next number, after spaces; stops at the first non-digit. Over INT64_MAX it fails. */
static inline bool tare__scan_number(tare__scan *text, int64_t *number)
{
    tare__scan_blanks(text);
    const char *at = text->at;
    bool negative = at < text->end && *at == '-';
    at += negative;
    const char *digits = at;
    int64_t value = 0;
    for (; at < text->end && *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *at - '0', &value))
            return false;
    if (at == digits)
        return false;
    text->at = at;
    *number = negative ? -value : value;
    return true;
}

/* value * by; false if that overflows, or the value is negative. */
static inline bool tare__scan_times(int64_t value, int64_t by, int64_t *out)
{
    return value >= 0 && !__builtin_mul_overflow(value, by, out);
}

#define TARE__SCAN_NONE INT64_MIN
/* A text that is one number, as most files of sysfs; NONE if it is not. */
static inline int64_t tare__scan_only(const char *text, int bytes)
{
    tare__scan scan = tare__scan_of(text, bytes);
    int64_t value;
    if (!tare__scan_number(&scan, &value))
        return TARE__SCAN_NONE;
    tare__scan_blanks(&scan);
    return scan.at == scan.end ? value : TARE__SCAN_NONE;
}

/* Lines of a key and a number ("MemTotal:  8 kB", "usage_usec 12"): the values of the requested keys, NONE for
 * missing ones. */
void tare__scan_keys(const char *text, int bytes, const char *const *keys, size_t n, int64_t *values);
/* The number of CPUs in a list like "0-3,8"; -1: not a list. */
int tare__scan_cpus(const char *text, int bytes);

#endif
