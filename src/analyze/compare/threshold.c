/* threshold: parses the limits that users set for figures, and matches them to figures.
 * Pure functions; any thread.
 * Must not know where thresholds are written. */
#include "threshold.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tare.h"

#define SHARE_MAX 100.0 /* 10,000 %: more is a typing error */

static int refuse(const char *what, const char *limit, tare__error *error)
{
    return tare__fail(error, TARE_E_USAGE,
                      "%s: '%.64s' is not a limit; write it as 5%%, 5%%,1ms, 100ms, 2GB, 1000samples/s or 0.25",
                      what, limit);
}

/* Bytes of the number at the start; 0: there is none. */
static size_t number_length(const char *text)
{
    size_t whole = strspn(text, "0123456789");
    size_t part = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
    return whole || part ? whole + (text[whole] == '.') + part : 0;
}

static bool is_duration(const char *unit)
{
    static const char *const units[] = {"ns", "us", "µs", "ms", "s", "m", "min", "h", "d"};
    return TARE__IS_ONE_OF(unit, units);
}

/* A number with its unit, converted to the unit of figures. */
static int read_limit(const char *limit, const char *what, double *value, char *unit, tare__error *error)
{
    size_t digits = number_length(limit);
    const char *rest = limit + digits + strspn(limit + digits, " ");
    uint64_t whole;
    if (!digits || strlen(rest) > TARE__THRESHOLD_UNIT_MAX)
        return refuse(what, limit, error);
    *value = tare__json_double_of(limit, digits);
    if (isnan(*value)) /* ".5", "5." */
        return refuse(what, limit, error);
    if (!*rest || strchr(rest, '/') || strcmp(rest, "%") == 0) {
        snprintf(unit, TARE__THRESHOLD_UNIT_MAX + 1, "%s", rest);
        return 0;
    }
    bool time = is_duration(rest);
    char together[64 + TARE__THRESHOLD_UNIT_MAX + 1];
    if (digits > 63)
        return refuse(what, limit, error);
    snprintf(together, sizeof together, "%.*s%s", (int)digits, limit, rest);
    tare__error inner;
    int status = time ? tare__parse_duration(together, what, &whole, &inner)
                      : tare__parse_bytes(together, what, &whole, &inner);
    if (status)
        return refuse(what, limit, error);
    *value = (double)whole;
    snprintf(unit, TARE__THRESHOLD_UNIT_MAX + 1, "%s", time ? "ns" : "bytes");
    return 0;
}

static int read_change(const char *limit, const char *comma, const char *what, tare__threshold *to, tare__error *error)
{
    char share[64];
    if ((size_t)(comma - limit) >= sizeof share)
        return refuse(what, limit, error);
    snprintf(share, sizeof share, "%.*s", (int)(comma - limit), limit);
    int status = read_limit(share, what, &to->value, to->unit, error);
    if (!status && *comma)
        status = read_limit(comma + 1, what, &to->floor, to->floor_unit, error);
    if (status)
        return status;
    if (strcmp(to->unit, "%") != 0 || strcmp(to->floor_unit, "%") == 0)
        return refuse(what, limit, error);
    to->kind = TARE__THRESHOLD_CHANGE;
    to->value /= 100;
    to->unit[0] = '\0';
    if (to->value > SHARE_MAX)
        return tare__fail(error, TARE_E_USAGE, "%s: '%.64s' allows everything; the most is 10000%%", what, limit);
    return 0;
}

int tare__threshold_parse_limit(const char *name, const char *limit, const char *what,
                                tare__threshold *threshold, tare__error *error)
{
    tare__threshold read = {.kind = TARE__THRESHOLD_LIMIT, .floor = NAN};
    if (!*name || strlen(name) > TARE__THRESHOLD_NAME_MAX)
        return tare__fail(error, TARE_E_USAGE, "%s: '%.64s' is not the name of a figure", what, name);
    memcpy(read.name, name, strlen(name) + 1);
    const char *percent = strchr(limit, '%');
    int status = percent ? read_change(limit, limit + strcspn(limit, ","), what, &read, error)
                         : read_limit(limit, what, &read.value, read.unit, error);
    if (!status)
        *threshold = read;
    return status;
}

int tare__threshold_parse(const char *word, const char *what, tare__threshold *threshold, tare__error *error)
{
    char name[TARE__THRESHOLD_NAME_MAX + 1];
    const char *colon = strrchr(word, ':');
    if (!colon || colon == word || !colon[1])
        return tare__fail(error, TARE_E_USAGE,
                          "%s: '%.64s' is not NAME:LIMIT; write it as step:5%% or latency:100ms", what, word);
    if ((size_t)(colon - word) >= sizeof name)
        return tare__fail(error, TARE_E_USAGE, "%s: '%.64s' is not the name of a figure", what, word);
    memcpy(name, word, (size_t)(colon - word));
    name[colon - word] = '\0';
    return tare__threshold_parse_limit(name, colon + 1, what, threshold, error);
}

static bool is_rate(const char *unit)
{
    static const char *const rates[] = {"", "/s", "samples/s", "images/s", "tokens/s", "requests/s"};
    return TARE__IS_ONE_OF(unit, rates);
}

int tare__threshold_check(const tare__threshold *threshold, const char *unit, const char *what, tare__error *error)
{
    static const struct {
        const char *unit, *word, *example;
    } units[] = {{"ns", "time", "100ms"}, {"bytes", "bytes", "2GB"}, {"/s", "samples a second", "1000samples/s"},
                 {"", "a number", "25M"}};
    size_t i = 0;
    if (threshold->kind == TARE__THRESHOLD_CHANGE)
        return tare__fail(error, TARE_E_USAGE, "%s: '%.64s' is a relative change; use tare check for that", what,
                          threshold->name);
    if (*unit == '/' ? is_rate(threshold->unit) : strcmp(threshold->unit, unit) == 0)
        return 0;
    while (i + 1 < TARE__COUNT_OF(units) && strcmp(units[i].unit, unit) != 0)
        i++;
    return tare__fail(error, TARE_E_USAGE, "%s: the unit of %s is %s, for example %s", what, threshold->name,
                      units[i].word, units[i].example);
}

/* The factor of the prefix in "25M", which is removed from `word`. 1: there is none. */
static double take_prefix(char *word)
{
    static const char letters[] = "KMGT";
    static const double powers[] = {1e3, 1e6, 1e9, 1e12};
    size_t length = strlen(word);
    bool digit = length > 1 && strchr("0123456789", word[length - 2]);
    const char *letter = digit ? strchr(letters, word[length - 1]) : NULL;
    if (!letter)
        return 1;
    word[length - 1] = '\0';
    return powers[letter - letters];
}

int tare__threshold_parse_of(const char *word, const char *unit, const char *what, tare__threshold *threshold,
                             tare__error *error)
{
    char text[TARE__THRESHOLD_NAME_MAX + 128];
    tare__threshold read;
    if (snprintf(text, sizeof text, "%s", word) >= (int)sizeof text)
        return tare__fail(error, TARE_E_USAGE, "%s: '%.64s' is not the name of a figure", what, word);
    double times = *unit ? 1 : take_prefix(text);
    int status = tare__threshold_parse(text, what, &read, error);
    if (!status)
        status = tare__threshold_check(&read, unit, what, error);
    if (status)
        return status;
    read.value *= times;
    *threshold = read;
    return 0;
}

/* If matching fails after a '*', the '*' is extended by one character. */
bool tare__threshold_names(const tare__threshold *threshold, const char *figure)
{
    const char *pattern = threshold->name, *star = NULL, *tried = NULL;
    while (*figure) {
        if (*pattern == '*') {
            star = pattern++;
            tried = figure;
        } else if (*pattern == *figure) {
            pattern++;
            figure++;
        } else if (star) {
            pattern = star + 1;
            figure = ++tried;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

bool tare__threshold_fits(const char *limit_unit, const char *figure_unit)
{
    const char *slash = strchr(figure_unit, '/');
    if (strcmp(limit_unit, figure_unit) == 0)
        return true;
    if (!*limit_unit)
        return strcmp(figure_unit, "ns") != 0 && strcmp(figure_unit, "bytes") != 0;
    return slash && strcmp(limit_unit, slash) == 0;
}
