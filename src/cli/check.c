/* check: `tare check`: compares runs with a baseline and thresholds; exits with 1 if something got worse.
 * One thread.
 * Must not know how the result is found, nor how it is laid out. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emit/emit.h"
#include "inputs.h"
#include "views.h"

#define ME          "tare check"
#define DRIFT_FEW   5u /* revisions */
#define RERUNS_MANY 5u /* enough for a significant result against a baseline of several runs */

enum { CHECK_THRESHOLD, CHECK_GATE, CHECK_RERUNS, CHECK_WINDOW };

typedef tare__cli_check_settings check_settings;

static const tare__cli_option check_options[] = {
    {"baseline", 'b', "FILE",
     "baseline to compare against: a run, a model report or a saved baseline (default: the history)",
     TARE__CLI_TEXT(check_settings, baseline)},
    {"window", 0, "N", "number of recent revisions in the history to compare against (default 10)", CHECK_WINDOW},
    {"threshold", 't', "NAME:LIMIT",
     "maximum change of a figure (step:5%; step:5%,1ms: at least 1 ms as well) or limit (step:120ms, "
     "run.peak_rss:2GB); '*' matches anything; can be repeated",
     CHECK_THRESHOLD},
    {"gate", 0, "SHARE",
     "maximum change of all other figures (default 5%; 10% across machines or with one run per side)",
     CHECK_GATE},
    {"all", 0, NULL, "check and show every figure: spans, operators, layers, metrics",
     TARE__CLI_SETS(check_settings, all)},
    {"rerun", 0, "COMMAND", "before failing, profile this command again and repeat the check",
     TARE__CLI_TEXT(check_settings, rerun)},
    {"reruns", 0, "N", "number of reruns (default 1; 5 if the baseline has several runs)", CHECK_RERUNS},
    {"json", 0, NULL, "print the result as JSON", TARE__CLI_SETS(check_settings, json)},
    {"junit", 0, "FILE", "also write the result as JUnit XML", TARE__CLI_TEXT(check_settings, junit)},
    {"markdown", 0, "FILE", "also write a Markdown summary", TARE__CLI_TEXT(check_settings, markdown)},
    {"github", 0, NULL, "also write GitHub Actions annotations and a job summary",
     TARE__CLI_SETS(check_settings, github)},
    {"output", 'o', "FILE", "output file (written atomically)", TARE__CLI_TEXT(check_settings, output)},
    {"quiet", 'q', NULL, "print nothing; report through the exit status only", TARE__CLI_SETS(check_settings, quiet)},
    {"store", 0, "PLACE", "history to read: a directory, a file or a postgres:// URL",
     TARE__CLI_TEXT(check_settings, store)},
    {"no-history", 0, NULL, "do not read the history", TARE__CLI_SETS(check_settings, no_history)},
};

/* ---- settings ------------------------------------------------------------------------------------------- */
static int take_option(void *context, int key, const char *argument, tare__error *error)
{
    check_settings *settings = context;
    switch (key) {
    case CHECK_THRESHOLD: return tare__cli_check_threshold(settings, argument, NULL, "--threshold", error);
    case CHECK_GATE: return tare__cli_check_gate(settings, argument, "--gate", error);
    case CHECK_RERUNS: return tare__cli_check_reruns(settings, argument, "--reruns", error);
    default: return tare__cli_take_count("window", argument, 1, 100, &settings->window, error);
    }
}

static bool has_limit(const check_settings *settings)
{
    for (size_t i = 0; i < settings->n_thresholds; i++)
        if (settings->thresholds[i].kind == TARE__THRESHOLD_LIMIT)
            return true;
    return false;
}

static int read_settings(int argc, char **argv, check_settings *settings, tare__cli_words *words, tare__error *error)
{
    tare__error of_files = {""};
    int wrong = tare__cli_check_read_files(settings, &of_files);
    int status = tare__cli_read(&tare__cli_check, argc, argv, settings, words, error);
    if (status || words->help)
        return status;
    if (wrong)
        return tare__fail(error, wrong, "%s", of_files.text);
    if (words->rest)
        return tare__fail(error, TARE_E_USAGE, "unexpected --: pass recorded runs, not a command");
    if (words->count == 0)
        return tare__fail(error, TARE_E_USAGE, "missing run: tare check RUN... --baseline FILE");
    if (settings->baseline && settings->window)
        return tare__fail(error, TARE_E_USAGE, "--baseline and --window are mutually exclusive");
    if (settings->reruns && !settings->rerun)
        return tare__fail(error, TARE_E_USAGE, "--reruns requires --rerun COMMAND");
    return 0;
}

/* ---- running again ---------------------------------------------------------------------------------------- */
static tare__check_options options_of(const check_settings *settings)
{
    return (tare__check_options){settings->thresholds, settings->n_thresholds, settings->gate, settings->all};
}

/* Runs the command `times` more times and compares with the same baseline. */
static int ask_again(const check_settings *settings, tare__check *check, unsigned times, tare__error *error)
{
    tare__check_options options = options_of(settings);
    tare__figures *figures = NULL;
    tare__check *again = NULL;
    if (!settings->quiet)
        tare__cli_say(ME, "above the gate; rerun %u: %s", times, settings->rerun);
    int status = tare__cli_check_again(settings->rerun, times, &figures, error);
    if (!status)
        status = tare__check_figures(check->base, figures, &options, &again, error);
    if (!status)
        tare__check_confirm(check, again);
    tare__check_free(again);
    tare__figures_free(figures);
    return status;
}

/* A baseline of several runs is compared with runs; the samples of a single run are compared with those of one run at a
 * time. */
static int confirm(const check_settings *settings, tare__check *check, tare__error *error)
{
    bool many = check->base && check->base->runs > 1;
    unsigned runs = settings->reruns ? settings->reruns : many ? RERUNS_MANY : 1;
    int status = 0;
    if (!settings->rerun)
        return 0;
    if (many)
        return tare__check_wants_again(check) ? ask_again(settings, check, runs, error) : 0;
    for (unsigned i = 0; i < runs && !status && tare__check_wants_again(check); i++)
        status = ask_again(settings, check, 1, error);
    return status;
}

/* ---- showing --------------------------------------------------------------------------------------------------- */
static int show_answer(const check_settings *settings, const tare__check *check,
                       const tare__check_names *names, tare__error *error)
{
    tare__text text = {0};
    tare__emit_options style = {.all = settings->all};
    bool terminal = !settings->output && isatty(STDOUT_FILENO);
    tare__view_suit(&style, STDOUT_FILENO, terminal);
    if (settings->json)
        tare__emit_check_json(check, names, style.pretty, &text);
    else if (!settings->quiet)
        tare__emit_check_text(check, names, &style, &text);
    int status = settings->json || !settings->quiet
                     ? tare__cli_write_text(&text, !settings->json, style.colour, settings->output, error)
                     : 0;
    tare__text_free(&text);
    return status;
}

/* The file is appended to: the summary of a job contains those of all its steps. */
static int append_summary(const tare__text *text, const char *path, tare__error *error)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    int failure = fd < 0 ? errno : 0; /* ENXIO: a pipe without a reader, which is not waited for */
    if (fd >= 0)
        fcntl(fd, F_SETFL, O_APPEND);
    if (fd >= 0)
        failure = -tare__write_all(fd, text->data, text->length);
    if (fd >= 0 && close(fd) != 0 && !failure)
        failure = errno;
    return failure ? tare__fail(error, TARE_E_SYSTEM, "cannot write the job summary '%s': %s", path, strerror(failure))
                   : 0;
}

static int show_markdown(const check_settings *settings, const tare__check *check,
                         const tare__check_names *names, tare__error *error)
{
    const char *summary = settings->github ? getenv("GITHUB_STEP_SUMMARY") : NULL;
    tare__text text = {0};
    int status = 0;
    tare__emit_check_markdown(check, names, &text);
    if (settings->markdown)
        status = tare__cli_write_text(&text, false, false, settings->markdown, error);
    if (!status && summary && *summary)
        status = text.failed ? tare__no_memory(error) : append_summary(&text, summary, error);
    tare__text_free(&text);
    return status;
}

static int show_annotations(const check_settings *settings, const tare__check *check,
                            const tare__check_names *names, tare__error *error)
{
    tare__text text = {0};
    tare__emit_check_github(check, names, &text);
    int fd = settings->json && !settings->output ? STDERR_FILENO : STDOUT_FILENO;
    tare__cli_output output = {.fd = fd, .terminal = isatty(fd), .failure = text.failed ? ENOMEM : 0};
    tare__cli_output_write(&output, text.data, text.length);
    int failure = output.failure;
    tare__cli_output_close(&output, true, NULL);
    tare__text_free(&text);
    return failure && failure != EPIPE
               ? tare__fail(error, TARE_E_SYSTEM, "cannot write the annotations: %s", strerror(failure))
               : 0;
}

static int show(const check_settings *settings, const tare__check *check, const tare__check_names *names,
                tare__error *error)
{
    int status = show_answer(settings, check, names, error);
    if (!status && settings->junit) {
        tare__text text = {0};
        tare__emit_check_junit(check, names, &text);
        status = tare__cli_write_text(&text, false, false, settings->junit, error);
        tare__text_free(&text);
    }
    if (!status)
        status = show_markdown(settings, check, names, error);
    if (!status && settings->github)
        status = show_annotations(settings, check, names, error);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------------------------- */
/* A saved baseline may become outdated as its machine changes: recent runs show whether it has. If they cannot be read,
 * the check does not fail. */
static void check_drift(const check_settings *settings, tare__check *check)
{
    tare__check_options options = options_of(settings);
    tare__check_window window;
    tare__check *recent = NULL;
    bool alike = check->base && !check->other_machine && check->base->command && check->head->command &&
                 strcmp(check->base->command, check->head->command) == 0;
    if (!settings->baseline || settings->no_history || !alike ||
        tare__cli_check_window(settings->store, check->head, TARE__CHECK_WINDOW, &window, NULL) != 0)
        return;
    if (window.figures && window.n >= DRIFT_FEW &&
        tare__check_figures(check->base, window.figures, &options, &recent, NULL) == 0)
        tare__check_warn_of_drift(check, recent, window.n);
    tare__check_free(recent);
    tare__figures_free(window.figures);
}

static int check(const check_settings *settings, const tare__figures *base, const tare__figures *head,
                 const tare__check_names *names, tare__error *error)
{
    tare__check_options options = options_of(settings);
    tare__check *made = NULL;
    int status = tare__check_figures(base, head, &options, &made, error);
    if (status)
        return tare__cli_load_exit(status);
    /* A failed rerun must not clear a figure. */
    if (confirm(settings, made, error))
        tare__check_fail_again(made, error->text);
    if (made->unconfirmed && (settings->quiet || settings->json || settings->output))
        tare__cli_say(ME, "%s", error->text);
    check_drift(settings, made);
    status = show(settings, made, names, error);
    bool passed = tare__check_passed(made);
    tare__check_free(made);
    if (status)
        tare__cli_say(ME, "%s", error->text);
    error->text[0] = '\0';
    return status || !passed ? TARE__EXIT_FAILED : TARE__EXIT_OK;
}

/* Without a baseline: recent runs of the history, unless only limits were given. */
static int load_window(const check_settings *settings, const tare__figures *head, tare__check_window *window,
                       tare__error *error)
{
    if (has_limit(settings) && !settings->window)
        return 0;
    int status = settings->no_history
                     ? 0
                     : tare__cli_check_window(settings->store, head,
                                              settings->window ? settings->window : TARE__CHECK_WINDOW, window, error);
    if (status || window->figures)
        return status;
    return tare__fail(error, TARE_E_USAGE,
                      "no baseline: the history has no earlier revision of this command on this machine; pass "
                      "--baseline FILE or an absolute limit such as --threshold step:120ms");
}

static int load_and_check(const check_settings *settings, const tare__cli_words *words, tare__error *error)
{
    tare__figures *base = NULL, *head = NULL;
    char several[256], *baseline[] = {(char *)settings->baseline};
    tare__check_names names = {words->words[0], settings->baseline};
    tare__check_window window = {.n = 0};
    if (words->count > 1) {
        snprintf(several, sizeof several, "%.200s and %d more", words->words[0], words->count - 1);
        names.head = several;
    }
    int status = tare__cli_load_side(words->words, (size_t)words->count, &head, error);
    if (!status && settings->baseline)
        status = tare__cli_load_side(baseline, 1, &base, error);
    else if (!status)
        status = load_window(settings, head, &window, error);
    if (window.figures) {
        base = window.figures;
        names.base = window.name;
    }
    int exit_status = status ? tare__cli_load_exit(status) : check(settings, base, head, &names, error);
    tare__figures_free(base);
    tare__figures_free(head);
    return exit_status;
}

static int check_main(int argc, char **argv)
{
    tare__error error = {""};
    tare__cli_words words;
    check_settings settings = {.gate = NAN};
    int status = read_settings(argc, argv, &settings, &words, &error);
    int exit_status;
    if (status) {
        exit_status = tare__cli_usage(ME, &error);
    } else if (words.help) {
        exit_status = tare__cli_print_help(&tare__cli_check);
    } else {
        signal(SIGPIPE, SIG_IGN);
        exit_status = load_and_check(&settings, &words, &error);
        if (exit_status && error.text[0])
            tare__cli_say(ME, "%s", error.text);
    }
    free(settings.thresholds);
    free(settings.baseline_of_file);
    return exit_status;
}

const tare__cli_command tare__cli_check = {
    .name = "check",
    .summary = "Fail if a run is slower or larger than a baseline (for CI)",
    .usage = "RUN... [--baseline FILE] [options]",
    .details = "Without --baseline, runs are compared with the last 10 revisions of the same\n"
               "command on the same machine in the history, one sample per revision.\n"
               "A figure fails if its change is significant (Mann-Whitney, p < 0.02), larger than\n"
               "the gate and larger than 1 us or 1 MiB; or if it exceeds an absolute limit.\n"
               "Checked are run, steps, epochs, requests and models, figures with a threshold, and\n"
               "exact figures such as FLOPs, for which any increase fails. With one run per side\n"
               "only figures with many samples per run can fail (steps, requests, latencies); with\n"
               "5 runs per side all of them can. Thresholds can also be set in [check] in\n"
               "./tare.toml. Exit status: 0 passed; 1 failed, or the result could not be written;\n"
               "2 invalid command line; 3 a file could not be read.\n",
    .examples = "  tare check run1.tare run2.tare run3.tare\n"
                "  tare check train.tare --baseline main.json\n"
                "  tare check train.tare -b main.json -t step:8% -t run.peak_rss:4GB\n"
                "  tare check new.tare -b main.json --rerun './train' --junit check.xml --github\n",
    .options = check_options,
    .option_count = TARE__COUNT_OF(check_options),
    .take = take_option,
    .settings = TARE__SETTINGS_SHOWING,
    .main = check_main,
};
