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

int tare__cli_read_pid(const char *me, const tare__cli_words *words, pid_t *pid, tare__error *error)
{
    const char *word = words->count > 0 ? words->words[0] : words->rest ? words->rest[0] : NULL;
    if (!word)
        return tare__fail(error, TARE_E_USAGE, "missing process id: %s PID", me);
    if (words->count + (words->rest && words->rest[0]) > 1)
        return tare__fail(error, TARE_E_USAGE, "only one process id is allowed; its child processes are included");
    char *end;
    long number = strtol(word, &end, 10);
    if (end == word || *end || number <= 0 || number > INT32_MAX)
        return tare__fail(error, TARE_E_USAGE, "'%.64s' is not a process id", word);
    *pid = (pid_t)number;
    return 0;
}
