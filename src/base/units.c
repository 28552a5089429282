/* units: formats numbers for display, and parses sizes and durations.
 * Pure functions into the caller's buffer; any thread.
 * Must not know what is measured. */
#include "base.h"
#include "tare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* For small values. Without libm, which must not be loaded into the target. */
static bool is_whole(double value)
{
    return value == (double)(int64_t)value;
}

static int64_t nearest(double value)
{
    return (int64_t)(value < 0 ? value - 0.5 : value + 0.5);
}

/* ---- writing ---------------------------------------------------------------------------------------- */

/* Three significant digits: 1.24, 31.0, 812. Limits are those of rounding: 9.995 is shown as 10.0. */
static void put_three_digits(char out[TARE__UNIT_BYTES], double value)
{
    double size = fabs(value);
    int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
    tare__text_double(out, TARE__UNIT_BYTES, 'f', decimals, value);
}

static void put_unit(char out[TARE__UNIT_BYTES], const char *unit)
{
    size_t length = strlen(out);
    snprintf(out + length, TARE__UNIT_BYTES - length, "%s%s", *unit ? " " : "", unit);
}

/* Integers of the smallest unit have no decimals: 0 ns, 12 B. */
static void put_smallest(char out[TARE__UNIT_BYTES], double value)
{
    if (is_whole(value))
        tare__text_double(out, TARE__UNIT_BYTES, 'f', 0, value == 0 ? 0 : value);
    else
        put_three_digits(out, value);
}

static const char *not_a_number(char out[TARE__UNIT_BYTES])
{
    return strcpy(out, "n/a");
}

/* A minute and more: two units, the smaller one with two digits. */
static void put_long_time(char out[TARE__UNIT_BYTES], bool negative, double seconds)
{
    const char *sign = negative ? "-" : "";
    if (seconds >= 86400e6) { /* a million days: not meaningful, but shown */
        tare__text_double(out, TARE__UNIT_BYTES, 'g', 3, (negative ? -seconds : seconds) / 86400);
        put_unit(out, "d");
        return;
    }
    /* Each form rounds to its own smaller unit, so that 59m 59.9s is 1h 00m and not 59m 60s. */
    int64_t whole = nearest(seconds), minutes = nearest(seconds / 60), hours = nearest(seconds / 3600);
    if (whole < 3600)
        snprintf(out, TARE__UNIT_BYTES, "%s%dm %02ds", sign, (int)(whole / 60), (int)(whole % 60));
    else if (minutes < 24 * 60)
        snprintf(out, TARE__UNIT_BYTES, "%s%dh %02dm", sign, (int)(minutes / 60), (int)(minutes % 60));
    else
        snprintf(out, TARE__UNIT_BYTES, "%s%dd %02dh", sign, (int)(hours / 24), (int)(hours % 24));
}

const char *tare__unit_time(char out[TARE__UNIT_BYTES], double ns)
{
    static const char *const units[] = {"ns", "µs", "ms"};
    if (!isfinite(ns))
        return not_a_number(out);
    double value = ns;
    for (size_t i = 0; i < TARE__COUNT_OF(units); i++, value /= 1000) {
        if (fabs(value) >= 999.5)
            continue;
        if (i == 0)
            put_smallest(out, value);
        else
            put_three_digits(out, value);
        put_unit(out, units[i]);
        return out;
    }
    if (fabs(value) < 59.95) {
        put_three_digits(out, value);
        put_unit(out, "s");
    } else {
        put_long_time(out, value < 0, fabs(value));
    }
    return out;
}

const char *tare__unit_bytes(char out[TARE__UNIT_BYTES], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    const size_t last = TARE__COUNT_OF(units) - 1;
    if (!isfinite(bytes))
        return not_a_number(out);
    double value = bytes;
    size_t i = 0;
    for (; i < last && fabs(value) >= 1023.5; i++)
        value /= 1024;
    if (i == 0)
        put_smallest(out, value);
    else if (fabs(value) < 1023.5)
        put_three_digits(out, value);
    else
        tare__text_double(out, TARE__UNIT_BYTES, 'g', 3, value);
    put_unit(out, units[i]);
    return out;
}

static void put_grouped(char out[TARE__UNIT_BYTES], int value)
{
    int size = value < 0 ? -value : value;
    const char *sign = value < 0 ? "-" : "";
    if (size < 1000)
        snprintf(out, TARE__UNIT_BYTES, "%s%d", sign, size);
    else
        snprintf(out, TARE__UNIT_BYTES, "%s%d,%03d", sign, size / 1000, size % 1000);
}

const char *tare__unit_count(char out[TARE__UNIT_BYTES], double count)
{
    static const char units[] = "kMGTPE";
    double size = fabs(count);
    if (!isfinite(count))
        return not_a_number(out);
    if (size < 99999.5) {
        if (is_whole(count) || size >= 99.95)
            put_grouped(out, (int)nearest(count));
        else if (size < 0.00995)
            tare__text_double(out, TARE__UNIT_BYTES, 'g', 3, count); /* 0.00 would hide a value that is not 0 */
        else
            put_three_digits(out, count);
        return out;
    }
    double value = count / 1000;
    size_t i = 0;
    for (; i + 2 < sizeof units && fabs(value) >= 999.5; i++)
        value /= 1000;
    if (fabs(value) < 999.5)
        put_three_digits(out, value);
    else
        tare__text_double(out, TARE__UNIT_BYTES, 'g', 3, value);
    size_t length = strlen(out);
    out[length] = units[i];
    out[length + 1] = '\0';
    return out;
}

const char *tare__unit_counted(char out[TARE__COUNTED_BYTES], double count, const char *one, const char *many)
{
    char number[TARE__UNIT_BYTES];
    bool single = count == 1;
    snprintf(out, TARE__COUNTED_BYTES, "%s %s%s", tare__unit_count(number, count), single || !many ? one : many,
             single || many ? "" : "s");
    return out;
}

const char *tare__unit_percent(char out[TARE__UNIT_BYTES], double share)
{
    double percent = share * 100, size = fabs(percent);
    if (!isfinite(percent))
        return not_a_number(out);
    if (percent != 0 && size < 0.1)
        return strcpy(out, percent > 0 ? "<0.1 %" : ">-0.1 %");
    if (size < 99.95)
        tare__text_double(out, TARE__UNIT_BYTES, 'f', 1, percent == 0 ? 0 : percent);
    else if (size < 1e6)
        tare__text_double(out, TARE__UNIT_BYTES, 'f', 0, percent);
    else
        tare__text_double(out, TARE__UNIT_BYTES, 'g', 3, percent);
    put_unit(out, "%");
    return out;
}

/* ---- values of figures ------------------------------------------------------------------------------ */
typedef struct known_unit {
    const char *name;
    double scale;
    const char *(*write)(char out[TARE__UNIT_BYTES], double value);
    const char *tail; /* what the number does not include */
} known_unit;

#define WORD_COLUMNS 24 /* for a user-defined unit */

static const known_unit known_units[] = {
    {"ns", 1, tare__unit_time, ""},         {"s", 1e9, tare__unit_time, ""},
    {"bytes", 1, tare__unit_bytes, ""},     {"bytes/s", 1, tare__unit_bytes, "/s"},
    {"share", 1, tare__unit_percent, ""},   {"", 1, tare__unit_count, ""},
};

static const known_unit *find_unit(const char *name)
{
    for (size_t i = 0; i < TARE__COUNT_OF(known_units); i++)
        if (strcmp(known_units[i].name, name) == 0)
            return &known_units[i];
    return NULL;
}

bool tare__unit_is_said(const char *unit)
{
    const known_unit *known = find_unit(unit);
    return known && !*known->tail;
}

const char *tare__unit_number(char out[TARE__UNIT_BYTES], const char *unit, double value)
{
    const known_unit *known = find_unit(unit);
    if (!isfinite(value))
        return not_a_number(out);
    return known ? known->write(out, value * known->scale) : tare__unit_count(out, value);
}

const char *tare__unit_value(char out[TARE__VALUE_BYTES], const char *unit, double value)
{
    const known_unit *known = find_unit(unit);
    tare__unit_number(out, unit, value);
    if (!isfinite(value))
        return out;
    size_t length = strlen(out);
    if (!known)
        out[length++] = ' ';
    tare__text_fit(out + length, TARE__VALUE_BYTES - length, known ? known->tail : unit, WORD_COLUMNS);
    return out;
}

const char *tare__unit_points(char out[TARE__UNIT_BYTES], double share)
{
    double percent = share * 100, size = fabs(percent);
    if (!isfinite(percent))
        return not_a_number(out);
    if (size < 0.05)
        return strcpy(out, "0.0");
    out[0] = '+';
    bool huge = size >= 1e6;
    tare__text_double(out + (percent > 0), TARE__UNIT_BYTES - 1, huge ? 'g' : 'f', huge ? 3 : size < 99.95, percent);
    return out;
}

const char *tare__unit_change(char out[TARE__UNIT_BYTES], double share)
{
    if (isinf(share))
        return strcpy(out, share > 0 ? "from 0" : "below 0");
    if (share >= 9.995) { /* ten times and more is not readable as a percentage */
        bool huge = share >= 1e6;
        out[0] = 'x';
        tare__text_double(out + 1, TARE__UNIT_BYTES - 1, huge ? 'g' : 'f', huge ? 3 : share < 99, share + 1);
        return out;
    }
    tare__unit_points(out, share);
    if (!isnan(share))
        put_unit(out, "%");
    return out;
}

/* ---- reading ---------------------------------------------------------------------------------------- */
typedef struct unit_name {
    const char *name;
    uint64_t scale;
} unit_name;

static const unit_name byte_units[] = {
    {"", 1}, {"B", 1},
    {"K", UINT64_C(1) << 10}, {"KiB", UINT64_C(1) << 10}, {"KB", 1000},
    {"M", UINT64_C(1) << 20}, {"MiB", UINT64_C(1) << 20}, {"MB", 1000000},
    {"G", UINT64_C(1) << 30}, {"GiB", UINT64_C(1) << 30}, {"GB", 1000000000},
    {"T", UINT64_C(1) << 40}, {"TiB", UINT64_C(1) << 40}, {"TB", UINT64_C(1000000000000)},
};

static const unit_name duration_units[] = {
    {"", 1000000000}, {"s", 1000000000}, {"ns", 1}, {"us", 1000}, {"µs", 1000}, {"ms", 1000000},
    {"m", UINT64_C(60000000000)}, {"min", UINT64_C(60000000000)}, {"h", UINT64_C(3600000000000)},
    {"d", UINT64_C(86400000000000)},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ASCII only and independent of the locale; strcasecmp and strtod are neither. */
static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        char x = *a >= 'a' && *a <= 'z' ? (char)(*a - 'a' + 'A') : *a;
        char y = *b >= 'a' && *b <= 'z' ? (char)(*b - 'a' + 'A') : *b;
        if (x != y)
            return false;
    }
    return *a == *b;
}

__extension__ typedef unsigned __int128 uint128; /* no whole * scale overflows it */

/* A decimal number as whole + fraction / fraction_scale; moves *at past it. */
typedef struct decimal {
    uint64_t whole, fraction, fraction_scale;
} decimal;

static bool read_decimal(const char **at, decimal *number, bool *too_large)
{
    const char *from = *at;
    *number = (decimal){.fraction_scale = 1};
    for (; is_digit(**at); ++*at) {
        uint64_t digit = (uint64_t)(**at - '0');
        if (number->whole > (UINT64_MAX - digit) / 10)
            *too_large = true;
        else
            number->whole = number->whole * 10 + digit;
    }
    if (*at == from)
        return false;
    if (**at != '.')
        return true;
    const char *point = (*at)++;
    for (; is_digit(**at); ++*at) {
        if (number->fraction_scale > UINT64_C(100000000000000000))
            continue; /* below anything a unit can show */
        number->fraction = number->fraction * 10 + (uint64_t)(**at - '0');
        number->fraction_scale *= 10;
    }
    return *at > point + 1;
}

/* False if it is not such a quantity, with *too_large if it is out of range. */
static bool read_quantity(const char *string, const unit_name *units, size_t count, uint64_t *value,
                          bool *too_large)
{
    decimal number;
    *too_large = false;
    if (!read_decimal(&string, &number, too_large))
        return false;
    if (*string == ' ' && string[1])
        string++;
    for (size_t i = 0; i < count; i++) {
        if (!same_name(string, units[i].name))
            continue;
        uint128 exact = (uint128)number.whole * units[i].scale +
                        (uint128)number.fraction * units[i].scale / number.fraction_scale;
        *too_large = *too_large || exact > UINT64_MAX;
        if (!*too_large)
            *value = (uint64_t)exact;
        return !*too_large;
    }
    *too_large = false;
    return false;
}

int tare__parse_bytes(const char *string, const char *what, uint64_t *bytes, tare__error *error)
{
    bool too_large;
    if (read_quantity(string, byte_units, TARE__COUNT_OF(byte_units), bytes, &too_large))
        return 0;
    if (too_large)
        return tare__fail(error, TARE_E_USAGE, "%s: '%.64s' is too large; the maximum is 16777215T", what,
                          string);
    return tare__fail(error, TARE_E_USAGE, "%s: '%.64s' is not a size; use 512, 64K, 100MB or 2GiB",
                      what, string);
}

int tare__parse_duration(const char *string, const char *what, uint64_t *ns, tare__error *error)
{
    bool too_large;
    if (read_quantity(string, duration_units, TARE__COUNT_OF(duration_units), ns, &too_large))
        return 0;
    if (too_large)
        return tare__fail(error, TARE_E_USAGE, "%s: '%.64s' is too long; the maximum is 213503d", what, string);
    return tare__fail(error, TARE_E_USAGE, "%s: '%.64s' is not a duration; use 500ms, 60s, 5m or 2h",
                      what, string);
}
