/* values: parses option arguments: a name, an integer, a width, one output format. Every command rejects an invalid
 * argument with the same message.
 * Pure; any thread.
 * Must not know any command, nor print. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "emit/emit.h"

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

static int take_width(const char *argument, unsigned *columns, tare__error *error)
{
    uint64_t width;
    int status = tare__cli_take_count("width", argument, TARE__EMIT_WIDTH_MIN, TARE__EMIT_WIDTH_MAX, &width, error);
    if (!status)
        *columns = (unsigned)width;
    return status;
}

int tare__cli_take(const tare__cli_command *command, const tare__cli_option *option, void *settings,
                   const char *argument, tare__error *error)
{
    char what[64];
    void *at = (char *)settings + (option->key & ((1 << TARE__CLI_KIND_AT) - 1));
    snprintf(what, sizeof what, "--%s", option->name);
    switch (option->key < 0 ? 0 : option->key >> TARE__CLI_KIND_AT) {
    case TARE__CLI_KIND_SWITCH: *(bool *)at = true; return 0;
    case TARE__CLI_KIND_TEXT: return tare__cli_take_text(option->name, argument, at, error);
    case TARE__CLI_KIND_FORMAT: return tare__cli_take_format(option->name, at, error);
    case TARE__CLI_KIND_WIDTH: return take_width(argument, at, error);
    case TARE__CLI_KIND_BYTES: return tare__parse_bytes(argument, what, at, error);
    case TARE__CLI_KIND_TIME: return tare__parse_duration(argument, what, at, error);
    case TARE__CLI_KIND_COUNT:
        return tare__cli_take_count(option->name, argument, 0, TARE__CLI_COUNT_MAX, at, error);
    default: return command->take(settings, option->key, argument, error);
    }
}

int tare__cli_one_word(const tare__cli_words *words, const char *what, const char *usage, const char **word,
                       tare__error *error)
{
    int rest = 0;
    while (words->rest && words->rest[rest])
        rest++;
    if (words->count + rest == 0)
        return tare__fail(error, TARE_E_USAGE, "missing %s: %s", what, usage);
    *word = words->count ? words->words[0] : words->rest[0];
    if (words->count + rest > 1)
        return tare__fail(error, TARE_E_USAGE, "only one %s is allowed; unexpected argument '%.64s'%s", what,
                          words->count > 1 ? words->words[1] : words->rest[words->count ? 0 : 1],
                          strcmp(what, "trace") == 0 ? " (use -o FILE for the output)" : "");
    return 0;
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
