/* baseline: `tare baseline save`: saves the figures of one or more runs for later checks and comparisons.
 * One thread.
 * Must not know how figures are made. */
#include "cli.h"

#include <string.h>

#include "emit/emit.h"
#include "inputs.h"

#define ME "tare baseline"

typedef struct baseline_settings {
    const char *output;
    bool quiet;
} baseline_settings;

static const tare__cli_option baseline_options[] = {
    {"output", 'o', "FILE", "baseline file to write", TARE__CLI_TEXT(baseline_settings, output)},
    {"quiet", 'q', NULL, "print nothing on success", TARE__CLI_SETS(baseline_settings, quiet)},
};

static int read_settings(int argc, char **argv, baseline_settings *settings, tare__cli_words *words, tare__error *error)
{
    int status = tare__cli_read(&tare__cli_baseline, argc, argv, settings, words, error);
    if (status || words->help)
        return status;
    if (words->rest)
        return tare__fail(error, TARE_E_USAGE, "unexpected --: pass recorded runs, not a command");
    if (words->count == 0 || strcmp(words->words[0], "save") != 0)
        return tare__fail(error, TARE_E_USAGE, "missing subcommand: tare baseline save RUN... -o FILE");
    if (words->count == 1)
        return tare__fail(error, TARE_E_USAGE, "missing runs: tare baseline save RUN... -o FILE");
    if (!settings->output)
        return tare__fail(error, TARE_E_USAGE, "missing --output: tare baseline save RUN... -o FILE");
    return 0;
}

static int save(const tare__figures *figures, const char *path, tare__error *error)
{
    tare__text text = {0};
    tare__put_document(&text, &tare__document_baseline, figures, true);
    int status = tare__cli_write_text(&text, false, false, path, error);
    tare__text_free(&text);
    return status;
}

static int baseline_main(int argc, char **argv)
{
    char count[TARE__COUNTED_BYTES], runs[TARE__COUNTED_BYTES];
    tare__error error = {""};
    tare__cli_words words;
    baseline_settings settings = {0};
    tare__figures *figures = NULL;
    if (read_settings(argc, argv, &settings, &words, &error))
        return tare__cli_usage(ME, &error);
    if (words.help)
        return tare__cli_print_help(&tare__cli_baseline);
    int status = tare__cli_load_side(words.words + 1, (size_t)words.count - 1, &figures, &error);
    int exit_status = status ? tare__cli_load_exit(status) : 0;
    if (!status && save(figures, settings.output, &error))
        exit_status = TARE__EXIT_FAILED;
    if (exit_status)
        tare__cli_say(ME, "%s", error.text);
    else if (!settings.quiet)
        tare__cli_say(ME, "%s of %s %s in %s", tare__unit_counted(count, (double)figures->n, "figure", NULL),
                      tare__unit_counted(runs, figures->runs > 1 ? (double)figures->runs : 1, "run", NULL),
                      figures->n == 1 ? "is" : "are", settings.output);
    tare__figures_free(figures);
    return exit_status;
}

const tare__cli_command tare__cli_baseline = {
    .name = "baseline",
    .summary = "Save the figures of runs for `tare check` and `tare compare`",
    .usage = "save RUN... -o FILE",
    .details = "RUN is a trace or a model report. With several runs, each figure has one sample per\n"
               "run; 5 runs or more allow significance tests of whole-run figures.\n"
               "Exit status: 0 success; 1 the baseline could not be written; 2 invalid command\n"
               "line; 3 a run could not be read.\n",
    .examples = "  tare baseline save train.tare -o baseline.json\n"
                "  tare baseline save run1.tare run2.tare run3.tare -o main.json\n",
    .options = baseline_options,
    .option_count = TARE__COUNT_OF(baseline_options),
    .main = baseline_main,
};
