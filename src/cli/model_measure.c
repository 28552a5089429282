/* model_measure: the measured half of `tare model`: its options, the run, its final messages.
 * One thread.
 * Must not know how a model is run or laid out. */
#define _GNU_SOURCE
#include "model_measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/engine.h"

#define ME "tare model"
#define THREADS_MAX 4096

/* ---- options -------------------------------------------------------------------------------------------------- */
static int take_threads(tare__cli_measure *settings, const char *argument, tare__error *error)
{
    const char *at = argument;
    settings->options.n_threads = 0;
    for (;; at++) {
        char *end;
        unsigned long value = strtoul(at, &end, 10);
        if (*at < '1' || *at > '9' || (*end && *end != ',') || value > THREADS_MAX)
            return tare__fail(error, TARE_E_USAGE,
                              "--threads: '%.64s' is not a number of threads or a comma-separated list of them",
                              argument);
        if (settings->options.n_threads == TARE__MEASURE_LIST_MAX)
            return tare__fail(error, TARE_E_USAGE, "--threads: at most %u are allowed", TARE__MEASURE_LIST_MAX);
        settings->threads[settings->options.n_threads++] = (unsigned)value;
        at = end;
        if (!*at)
            return 0;
    }
}

static int take_precisions(tare__cli_measure *settings, const char *argument, tare__error *error)
{
    static const char *const names[] = {"fp32", "fp16", "bf16", "fp64", "int8"};
    const char *at = argument;
    settings->options.n_precisions = 0;
    for (;; at++) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < TARE__COUNT_OF(names) && (strlen(names[i]) != length || strncmp(names[i], at, length) != 0))
            i++;
        if (i == TARE__COUNT_OF(names))
            return tare__fail(error, TARE_E_USAGE, "--precision: '%.*s' is not one of fp32, fp16, bf16, fp64, int8",
                              (int)(length < 64 ? length : 64), at);
        if (settings->options.n_precisions == TARE__MEASURE_LIST_MAX)
            return tare__fail(error, TARE_E_USAGE, "--precision: at most %u are allowed", TARE__MEASURE_LIST_MAX);
        settings->precisions[settings->options.n_precisions++] = names[i];
        at += length;
        if (!*at)
            return 0;
    }
}

/* Parses one number; *after points to what follows it. "true" and "false" are 1 and 0. */
static bool read_value(const char *text, double *value, const char **after)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"true", 1}, {"false", 0}};
    for (size_t i = 0; i < TARE__COUNT_OF(words); i++)
        if (strncmp(text, words[i].word, strlen(words[i].word)) == 0) {
            *value = words[i].value;
            *after = text + strlen(words[i].word);
            return true;
        }
    char *end;
    *value = strtod(text, &end);
    *after = end;
    return end != text && !strchr(" \t\n", *text) && *value == *value;
}

/* Numbers separated by ','; false: something else, most likely a file. */
static bool read_values(const char *text, tare__runner_file *file)
{
    for (file->n_values = 0; file->n_values < TARE__COUNT_OF(file->values); text++) {
        if (!read_value(text, &file->values[file->n_values], &text) || (*text && *text != ','))
            return false;
        file->n_values++;
        if (!*text)
            return true;
    }
    return false;
}

/* NAME=FILE, unless there is a file of exactly that name; or NAME=VALUES. */
static int take_input(tare__cli_measure *settings, const char *argument, tare__arena *arena, tare__error *error)
{
    const char *equals = access(argument, F_OK) == 0 ? NULL : strchr(argument, '=');
    if (!*argument || equals == argument || (equals && !equals[1]))
        return tare__fail(error, TARE_E_USAGE, "--input: '%.64s' is not FILE, NAME=FILE or NAME=VALUE,…", argument);
    if (settings->options.n_files == TARE__MEASURE_LIST_MAX)
        return tare__fail(error, TARE_E_USAGE, "--input: at most %u are allowed", TARE__MEASURE_LIST_MAX);
    tare__runner_file *file = &settings->files[settings->options.n_files++];
    file->path = equals ? equals + 1 : argument;
    file->input = equals && arena ? tare__arena_copy(arena, argument, (size_t)(equals - argument)) : NULL;
    file->rank = -1;
    bool is_file = access(file->path, F_OK) == 0;
    if (!is_file && read_values(file->path, file))
        file->path = NULL;
    else
        tare__runner_file_shape(file);
    return equals && !file->input ? tare__no_memory(error) : 0;
}

static int take_threshold(tare__cli_measure *settings, const char *argument, tare__error *error)
{
    tare__threshold threshold;
    int status = tare__threshold_parse(argument, "--threshold", &threshold, error);
    if (!status)
        status = tare__limits_check(&threshold, error);
    if (!status && settings->n_thresholds == TARE__MEASURE_LIST_MAX)
        status = tare__fail(error, TARE_E_USAGE, "--threshold: at most %u are allowed", TARE__MEASURE_LIST_MAX);
    if (!status)
        settings->thresholds[settings->n_thresholds++] = threshold;
    return status;
}

static int take_seconds(tare__cli_measure *settings, const char *argument, tare__error *error)
{
    uint64_t ns;
    int status = tare__parse_duration(argument, "--duration", &ns, error);
    if (!status && ns == 0)
        status = tare__fail(error, TARE_E_USAGE, "--duration: 0 is too short");
    if (!status)
        settings->options.seconds = (double)ns / 1e9;
    return status;
}

int tare__measure_take(tare__cli_measure *settings, int key, const char *argument, tare__arena *arena,
                       tare__error *error)
{
    tare__runner_options *options = &settings->options;
    switch (key) {
    case TARE__MEASURE_RUNS:
        return tare__cli_take_count("runs", argument, 1, TARE__RUNNER_RUNS_MAX, &options->runs, error);
    case TARE__MEASURE_SEED: return tare__cli_take_count("seed", argument, 0, UINT64_MAX, &options->seed, error);
    case TARE__MEASURE_WARMUP:
        options->warmup_is_fixed = true;
        return tare__cli_take_count("warmup", argument, 0, 1000, &options->warmup, error);
    case TARE__MEASURE_SECONDS: return take_seconds(settings, argument, error);
    case TARE__MEASURE_THREADS: return take_threads(settings, argument, error);
    case TARE__MEASURE_PRECISION: return take_precisions(settings, argument, error);
    case TARE__MEASURE_INPUT: return take_input(settings, argument, arena, error);
    default: return take_threshold(settings, argument, error);
    }
}

int tare__measure_take_word(tare__cli_measure *settings, const char *word, bool *taken, tare__error *error)
{
    *taken = settings->n_thresholds && strchr(word, ':') && access(word, F_OK) != 0;
    return *taken ? take_threshold(settings, word, error) : 0;
}

int tare__measure_check(tare__cli_measure *settings, const tare__cli_words *words, tare__error *error)
{
    settings->requested = tare__cli_given(&tare__cli_model_command, words,
                                      "runs duration warmup precision threads seed pre post threshold runtime", true);
    if (settings->only_static && settings->requested)
        return tare__fail(error, TARE_E_USAGE, "--static cannot be combined with options for running the model");
    return 0;
}

/* ---- the run -------------------------------------------------------------------------------------------------- */
static void show_progress(void *context, const char *what, size_t done, size_t of)
{
    (void)context;
    char fitted[256];
    tare__text_fit(fitted, sizeof fitted, what && *what ? what : "running it", 60);
    if (what)
        fprintf(stderr, "\r\033[K" ME ": %zu of %zu: %s", done + 1, of, fitted);
    else
        fputs("\r\033[K", stderr);
}

int tare__measure_run(tare__cli_measure *settings, const char *path, const int64_t *batches, size_t n_batches,
                      const tare__model_report *report, const tare__model_options *analyzed,
                      tare__model_measured **measured, tare__error *error)
{
    tare__runner_options *options = &settings->options;
    *measured = NULL;
    if (settings->only_static)
        return 0;
    options->model = path;
    options->batches = batches;
    options->n_batches = n_batches;
    options->precisions = settings->precisions;
    options->threads = settings->threads;
    options->files = settings->files;
    if (!settings->quiet && isatty(STDERR_FILENO))
        options->progress = show_progress;
    int status = tare__model_measure(report, analyzed, options, measured, error);
    if (!status && settings->n_thresholds)
        status = tare__limits_hold(settings->thresholds, settings->n_thresholds, *measured);
    if (status == TARE_E_MEMORY)
        tare__fail(error, status, "out of memory");
    return status;
}

/* ---- figures -------------------------------------------------------------------------------------------------- */
/* Options that make it a different measurement: the names of figures include batch, precision and threads, but not the
 * rest. */
static void put_command(tare__text *command, const char *path, const tare__model_options *analyzed)
{
    tare__text_string(command, "tare model");
    for (size_t i = 0; i < analyzed->n_dimensions; i++)
        tare__text_format(command, " --dim %s=%lld", analyzed->dimensions[i].name,
                          (long long)analyzed->dimensions[i].value);
    for (size_t i = 0; i < analyzed->n_shapes; i++) {
        tare__text_format(command, " --shape %s=", analyzed->shapes[i].input);
        for (size_t k = 0; k < analyzed->shapes[i].rank; k++)
            tare__text_format(command, "%s%lld", k ? "," : "", (long long)analyzed->shapes[i].dims[k]);
    }
    tare__text_format(command, " %s", path);
}

int tare__measure_figures(const char *path, const tare__model_options *analyzed, const tare__model_report *report,
                          const tare__model_measured *measured, tare__figures **figures)
{
    tare__text command = {0};
    int status = tare__figures_of_model(report, measured, figures);
    if (status)
        return status;
    put_command(&command, path, analyzed);
    (*figures)->when_ns = tare__clock_ns(CLOCK_REALTIME);
    (*figures)->command = command.failed ? NULL : tare__figures_text(*figures, command.data);
    tare__text_free(&command);
    return tare__engine_describe(*figures);
}

/* ---- the end -------------------------------------------------------------------------------------------------- */
int tare__measure_exit(const tare__cli_measure *settings, const tare__model_measured *measured)
{
    size_t ran = 0;
    if (!measured)
        return TARE__EXIT_OK;
    if (measured->absent && (settings->requested || settings->options.n_files))
        tare__cli_say(ME, "%s", measured->absent);
    for (size_t i = 0; i < measured->n_results; i++) {
        ran += measured->results[i].ran && !measured->results[i].failure;
        if (measured->results[i].failure)
            tare__cli_say(ME, "%s%s%s", measured->results[i].name, *measured->results[i].name ? ": " : "",
                          measured->results[i].failure);
    }
    if (measured->n_broken)
        tare__cli_say(ME, "%zu of %zu thresholds exceeded", measured->n_broken, measured->n_limits);
    if (measured->n_results && ran < measured->n_results && (settings->requested || settings->options.n_files) && !ran)
        return TARE__EXIT_INPUT;
    return measured->n_broken || (measured->absent && (settings->requested || settings->options.n_files))
               ? TARE__EXIT_FAILED
               : TARE__EXIT_OK;
}
