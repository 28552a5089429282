/* values: parses option arguments: a name, an integer, a width, one output format. Every command rejects an invalid
 * argument with the same message.
 * Pure; any thread.
 * Must not know any command, nor print. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "emit/emit.h"
#include "tare.h"

int tare__cli_take_text(const char *option, const char *argument, const char **into, tare__error *error)
{
    if (!*argument)
        return tare__fail(error, TARE_E_USAGE, "--%s: the value is empty", option);
    *into = argument;
    return 0;
}

int tare__cli_take_count(const char *option, const char *argument, uint64_t least, uint64_t most, uint64_t *into,
                         tare__error *error)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(argument, &end, 10);
    if (*argument < '0' || *argument > '9' || *end || errno || value < least || value > most)
        return tare__fail(error, TARE_E_USAGE, "--%s: '%.64s' is not a whole number from %llu to %llu", option,
                          argument, (unsigned long long)least, (unsigned long long)most);
    *into = value;
    return 0;
}

int tare__cli_take_width(const char *argument, unsigned *columns, tare__error *error)
{
    uint64_t width;
    int status =
        tare__cli_take_count("width", argument, TARE__EMIT_WIDTH_MIN, TARE__EMIT_WIDTH_MAX, &width, error);
    if (!status)
        *columns = (unsigned)width;
    return status;
}

int tare__cli_take_format(const char *format, const char **into, tare__error *error)
{
    if (*into && strcmp(*into, format) != 0)
        return tare__fail(error, TARE_E_USAGE, "--%s and --%s are mutually exclusive", *into, format);
    *into = format;
    return 0;
}
