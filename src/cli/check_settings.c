/* check_settings: settings of a check from files and options: thresholds, gate, baseline.
 * One thread. Texts that were read are kept until the process ends: settings point into them.
 * Must not know how a check is made. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct source {
    tare__cli_check_settings *to;
    const char *file;
} source;

int tare__cli_check_threshold(tare__cli_check_settings *settings, const char *name, const char *limit,
                              const char *what, tare__error *error)
{
    tare__threshold threshold;
    int status = limit ? tare__threshold_parse_limit(name, limit, what, &threshold, error)
                       : tare__threshold_parse(name, what, &threshold, error);
    if (status)
        return status;
    if (!tare__array_fit(&settings->thresholds, &settings->room, settings->n_thresholds + 1, sizeof threshold))
        return tare__no_memory(error);
    settings->thresholds[settings->n_thresholds++] = threshold;
    return 0;
}

int tare__cli_check_gate(tare__cli_check_settings *settings, const char *argument, const char *what, tare__error *error)
{
    tare__threshold gate;
    if (tare__threshold_parse_limit("*", argument, what, &gate, NULL) != 0 ||
        gate.kind != TARE__THRESHOLD_CHANGE || !isnan(gate.floor))
        return tare__fail(error, TARE_E_USAGE, "%s: '%.64s' is not a percentage; use for example 5%%", what, argument);
    settings->gate = gate.value;
    return 0;
}

int tare__cli_check_reruns(tare__cli_check_settings *settings, const char *argument, const char *what,
                           tare__error *error)
{
    char *end;
    errno = 0;
    long count = strtol(argument, &end, 10);
    if (end == argument || *end || errno || count < 1 || count > (long)TARE__CHECK_RUNS_MAX)
        return tare__fail(error, TARE_E_USAGE, "%s: '%.64s' is not a number from 1 to %u", what, argument,
                          TARE__CHECK_RUNS_MAX);
    settings->reruns = (unsigned)count;
    return 0;
}

static int take_text(const tare__toml_pair *pair, const char *file, char **owned, const char **into, tare__error *error)
{
    if (pair->kind != TARE__TOML_STRING || !*pair->value)
        return tare__fail(error, TARE_E_USAGE, "%.200s:%u: %s must be a string", file, pair->line, pair->key);
    char *copy = strdup(pair->value);
    if (!copy)
        return tare__no_memory(error);
    free(*owned);
    *into = *owned = copy;
    return 0;
}

static int take_pair(void *context, const tare__toml_pair *pair, tare__error *error)
{
    source *from = context;
    char what[300];
    snprintf(what, sizeof what, "%.200s:%u: %.64s", from->file, pair->line, pair->key);
    if (strcmp(pair->key, "baseline") == 0)
        return take_text(pair, from->file, &from->to->baseline_of_file, &from->to->baseline, error);
    if (strcmp(pair->key, "rerun") == 0)
        return tare__fail(error, TARE_E_USAGE,
                          "%s: a command can only be set with --rerun on the command line, not in a settings file",
                          what);
    if (strcmp(pair->key, "reruns") == 0)
        return tare__cli_check_reruns(from->to, pair->value, what, error);
    if (strcmp(pair->key, "gate") == 0)
        return tare__cli_check_gate(from->to, pair->value, what, error);
    if (strcmp(pair->key, "all") == 0 && pair->kind == TARE__TOML_SWITCH) {
        from->to->all = strcmp(pair->value, "true") == 0;
        return 0;
    }
    if (pair->kind == TARE__TOML_SWITCH)
        return tare__fail(error, TARE_E_USAGE, "%s: a threshold must be a string such as \"5%%\" or \"100ms\"", what);
    return tare__cli_check_threshold(from->to, pair->key, pair->value, what, error);
}

static int read_file(tare__cli_check_settings *settings, const char *file, const char *table, tare__error *error)
{
    source from = {settings, file};
    char *text;
    size_t bytes;
    const char *refused; /* already reported by the first reader of the file */
    int status = tare__toml_file(file, &text, &bytes, &refused, error);
    if (!status && text)
        status = tare__toml_read(text, bytes, file, table, take_pair, &from, error);
    free(text);
    return status;
}

int tare__cli_check_read_files(tare__cli_check_settings *settings, tare__error *error)
{
    int status = read_file(settings, "pyproject.toml", "tool.tare.check", error);
    return status ? status : read_file(settings, "tare.toml", "check", error);
}
