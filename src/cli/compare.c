/* compare: `tare compare`: compares two runs, models or baselines, or runs two commands alternately.
 * One thread.
 * Must not know how figures are compared or shown. */
#define _GNU_SOURCE
#include "compare.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inputs.h"
#include "trace/trace.h"

#define ME TARE__COMPARE_ME
#define ROUNDS_DEFAULT 60
#define ROUNDS_MAX 1000

#define ONLY_AB "bare rounds max-time warmup keep show-output" /* options that require --ab */

enum { COMPARE_BASELINE, COMPARE_CANDIDATE, COMPARE_ROUNDS, COMPARE_WARMUP, COMPARE_MIN_CHANGE };

typedef struct names {
    char **rows;
    size_t n;
} names;

typedef struct compare_settings {
    names sides[2];
    char *pair[2];
    bool wants_ab;
    const char *output;
    const char *format; /* "json", "html"; NULL: text */
    tare__emit_options show;
    tare__cli_ab_options ab;
    double min_change;
} compare_settings;

static const tare__cli_option compare_options[] = {
    {"baseline", 0, "FILE...", "baseline runs; a directory means all runs in it", COMPARE_BASELINE},
    {"candidate", 0, "FILE...", "candidate runs", COMPARE_CANDIDATE},
    {"ab", 0, NULL, "both arguments are shell commands: run them alternately until a sequential test decides",
     TARE__CLI_SETS(compare_settings, wants_ab)},
    {"bare", 0, NULL, "with --ab: measure only elapsed time, CPU time and peak memory, without profiling",
     TARE__CLI_SETS(compare_settings, ab.bare)},
    {"rounds", 0, "N", "with --ab: maximum number of rounds, one run of each command per round (default 60)",
     COMPARE_ROUNDS},
    {"max-time", 0, "TIME", "with --ab: start no round after this time (default: no limit)",
     TARE__CLI_TIME(compare_settings, ab.seconds_ns)},
    {"warmup", 0, "N", "with --ab: number of warm-up rounds (default 1)", COMPARE_WARMUP},
    {"keep", 0, "DIR", "with --ab: keep the traces of all runs in this directory",
     TARE__CLI_TEXT(compare_settings, ab.keep)},
    {"show-output", 0, NULL, "with --ab: show the output of the commands on standard error",
     TARE__CLI_SETS(compare_settings, ab.passed_output)},
    {"min-change", 0, "PCT",
     "ignore changes smaller than this (default 5%; 10% with one run per side or across machines; 1% with --ab)",
     COMPARE_MIN_CHANGE},
    {"json", 0, NULL, "print the comparison as JSON", TARE__CLI_FORMAT(compare_settings, format)},
    {"html", 0, NULL, "write an HTML report", TARE__CLI_FORMAT(compare_settings, format)},
    {"all", 0, NULL, "show every row; truncate nothing", TARE__CLI_SETS(compare_settings, show.all)},
    {"output", 'o', "FILE", "output file (written atomically)", TARE__CLI_TEXT(compare_settings, output)},
    {"width", 0, "N", "width of the text output (default: terminal width, from 80 to 120)",
     TARE__CLI_WIDTH(compare_settings, show.width)},
    {"quiet", 'q', NULL, "with --ab: do not print progress", TARE__CLI_SETS(compare_settings, ab.quiet)},
};

/* ---- settings --------------------------------------------------------------------------------- */
static int take_min_change(compare_settings *settings, const char *argument, tare__error *error)
{
    char *end;
    double percent = strtod(argument, &end);
    if (end == argument || (*end && strcmp(end, "%") != 0) || !(percent >= 0 && percent < 100))
        return tare__fail(error, TARE_E_USAGE, "--min-change: '%.64s' is not a percentage from 0 to 99", argument);
    settings->min_change = percent / 100;
    return 0;
}

static int take_compare_option(void *context, int key, const char *argument, tare__error *error)
{
    compare_settings *settings = context;
    tare__cli_ab_options *ab = &settings->ab;
    switch (key) {
    case COMPARE_ROUNDS: return tare__cli_take_count("rounds", argument, 1, ROUNDS_MAX, &ab->rounds, error);
    case COMPARE_WARMUP: return tare__cli_take_count("warmup", argument, 0, ROUNDS_MAX, &ab->warmup, error);
    case COMPARE_MIN_CHANGE: return take_min_change(settings, argument, error);
    default:
        return tare__fail(error, TARE_E_USAGE, "--%s requires files",
                          key == COMPARE_BASELINE ? "baseline" : "candidate");
    }
}

/* ---- options that take several words ---------------------------------------------------------- */
/* --baseline A B --candidate C D: removes these words; the table parses the rest. `all` is a copy of argv. */
static int take_lists(int *argc, char **argv, char **all, compare_settings *settings, tare__error *error)
{
    int kept = 1, count = *argc;
    memcpy(all, argv, (size_t)count * sizeof *all);
    for (int i = 1; i < count; i++) {
        bool candidate = strcmp(all[i], "--candidate") == 0;
        if (!candidate && strcmp(all[i], "--baseline") != 0) {
            argv[kept++] = all[i];
            continue;
        }
        names *side = &settings->sides[candidate];
        const char *word = all[i];
        if (side->n)
            return tare__fail(error, TARE_E_USAGE, "%s is given twice; list all its files after one option", word);
        side->rows = &all[i + 1];
        for (; i + 1 < count && all[i + 1][0] != '-'; i++)
            side->n++;
        if (!side->n)
            return tare__fail(error, TARE_E_USAGE, "%s requires files", word);
    }
    *argc = kept;
    return 0;
}

/* An HTML page is not written to a terminal. */
static int check_output(const compare_settings *settings, tare__error *error)
{
    if (settings->format && strcmp(settings->format, "html") == 0 && !settings->output && isatty(STDOUT_FILENO))
        return tare__fail(error, TARE_E_USAGE, "--html requires --output, for example -o compare.html");
    return 0;
}

static char *word_at(const tare__cli_words *words, int i)
{
    return i < words->count ? words->words[i] : words->rest[i - words->count];
}

static int check_commands(compare_settings *settings, const tare__cli_words *words, int count, tare__error *error)
{
    if (settings->sides[0].n || settings->sides[1].n)
        return tare__fail(error, TARE_E_USAGE, "--ab takes two commands and cannot be combined with files");
    if (count != 2)
        return tare__fail(error, TARE_E_USAGE, "--ab requires two quoted commands: --ab 'CMD' 'CMD'");
    for (int i = 0; i < 2; i++) {
        settings->ab.commands[i] = word_at(words, i);
        if (!settings->ab.commands[i][0])
            return tare__fail(error, TARE_E_USAGE, "--ab: a command is empty");
    }
    return 0;
}

static int check_words(compare_settings *settings, const tare__cli_words *words, tare__error *error)
{
    int count = words->count;
    while (words->rest && words->rest[count - words->count])
        count++;
    bool listed = settings->sides[0].n || settings->sides[1].n;
    const char *only_ab = tare__cli_given(&tare__cli_compare, words, ONLY_AB, true);
    if (settings->wants_ab)
        return check_commands(settings, words, count, error);
    if (only_ab)
        return tare__fail(error, TARE_E_USAGE, "--%s requires --ab", only_ab);
    if (listed && count && settings->sides[0].n && settings->sides[1].n)
        return tare__fail(error, TARE_E_USAGE,
                          "unexpected argument '%.200s' after --baseline and --candidate (use -o FILE for the output)",
                          word_at(words, 0));
    if (listed && (count || !settings->sides[0].n || !settings->sides[1].n))
        return tare__fail(error, TARE_E_USAGE, "--baseline and --candidate must be used together: tare compare "
                                               "--baseline FILE... --candidate FILE...");
    if (!listed && count < 2)
        return tare__fail(error, TARE_E_USAGE, "missing runs: tare compare BASELINE.tare CANDIDATE.tare");
    if (!listed && count > 2)
        return tare__fail(error, TARE_E_USAGE, "more than two files: use --baseline FILE... --candidate FILE..., and "
                                               "-o FILE for the output");
    for (int i = 0; i < 2 && !listed; i++) {
        settings->pair[i] = word_at(words, i);
        settings->sides[i] = (names){&settings->pair[i], 1};
    }
    return 0;
}

/* ---- showing ---------------------------------------------------------------------------------- */
int tare__compare_write(const tare__emit_comparison *input, const char *format, const char *output,
                        const tare__emit_options *options, tare__error *error)
{
    bool unwritten;
    tare__emit_writer *write = !format                        ? tare__emit_comparison_text
                               : strcmp(format, "json") == 0 ? tare__emit_comparison_json
                                                             : tare__emit_comparison_html;
    return tare__view_one(output, options, !format, write, input, &unwritten, error) ? TARE__EXIT_FAILED
                                                                                     : TARE__EXIT_OK;
}

static int show(const compare_settings *settings, const tare__figures *base, const tare__figures *head,
                tare__emit_comparison *input, const tare__decision *decision, tare__error *error)
{
    tare__comparison *comparison;
    tare__compare_options options = {.min_change = settings->min_change, .paired = decision != NULL,
                                     .decided = decision ? input->ab->figure : NULL, .decision = decision};
    if (tare__compare(base, head, &options, &comparison)) {
        tare__no_memory(error);
        return TARE__EXIT_FAILED;
    }
    input->comparison = comparison;
    if (input->base && input->head && tare__compare_functions(comparison, input->base, input->head)) {
        tare__comparison_free(comparison);
        tare__no_memory(error);
        return TARE__EXIT_FAILED;
    }
    int exit_status = tare__compare_write(input, settings->format, settings->output, &settings->show, error);
    tare__comparison_free(comparison);
    return exit_status;
}

static void name_side(const names *side, char *out, size_t room)
{
    if (side->n == 1)
        snprintf(out, room, "%.200s", side->rows[0]);
    else
        snprintf(out, room, "%.180s and %zu more", side->rows[0], side->n - 1);
}

/* Tables of a single run on each side, for functions and the page's call tree. A side of several runs, of figures or
 * from a pipe has none. */
static void load_stacks(const compare_settings *settings, tare__analysis *runs[2])
{
    for (int i = 0; i < 2; i++) {
        struct stat about;
        tare__trace *trace = NULL;
        const names *side = &settings->sides[i];
        if (side->n != 1 || stat(side->rows[0], &about) != 0 || !S_ISREG(about.st_mode) ||
            tare__trace_open(side->rows[0], &trace, NULL) != 0)
            return;
        int status = tare__analyze(trace, NULL, &runs[i], NULL);
        tare__trace_close(trace);
        if (status)
            return;
    }
}

static int compare_files(const compare_settings *settings, tare__error *error)
{
    tare__figures *sides[2] = {NULL, NULL};
    char labels[2][256];
    int status = 0;
    for (int i = 0; i < 2 && !status; i++) {
        name_side(&settings->sides[i], labels[i], sizeof labels[i]);
        status = tare__cli_load_side(settings->sides[i].rows, settings->sides[i].n, &sides[i], error);
    }
    tare__emit_comparison input = {.base_name = labels[0], .head_name = labels[1]};
    tare__analysis *runs[2] = {NULL, NULL};
    if (!status) {
        load_stacks(settings, runs);
        input.base = runs[0];
        input.head = runs[1];
    }
    int exit_status = status ? tare__cli_load_exit(status) : show(settings, sides[0], sides[1], &input, NULL, error);
    tare__figures_free(sides[0]);
    tare__figures_free(sides[1]);
    tare__analysis_free(runs[0]);
    tare__analysis_free(runs[1]);
    return exit_status;
}

#define EXIT_INTERRUPTED 130 /* as in a shell */

static int compare_commands(compare_settings *settings, tare__error *error)
{
    static tare__cli_ab_result result;
    settings->ab.min_change = settings->min_change;
    int status = tare__cli_ab(&settings->ab, &result, error);
    int exit_status = status == TARE_E_USAGE ? TARE__EXIT_USAGE : status ? TARE__EXIT_FAILED : TARE__EXIT_OK;
    if (result.sides[0]) {
        tare__emit_comparison input = {.base_name = "first command", .head_name = "second command", .ab = &result.ab};
        tare__error failed = {""};
        int shown =
            show(settings, result.sides[0], result.sides[1], &input, &result.decision, status ? &failed : error);
        exit_status = exit_status ? exit_status : shown;
    } else if (result.ab.interrupted) {
        tare__fail(error, TARE_E_SYSTEM, "interrupted before the first round was finished: no result");
    }
    tare__figures_free(result.sides[0]);
    tare__figures_free(result.sides[1]);
    return exit_status == TARE__EXIT_OK && result.ab.interrupted ? EXIT_INTERRUPTED : exit_status;
}

static int compare_main(int argc, char **argv)
{
    tare__error error = {""};
    tare__cli_words words = {0};
    compare_settings settings = {.min_change = NAN, .ab = {.rounds = ROUNDS_DEFAULT, .warmup = 1, .seed = 1}};
    char **all = malloc(((size_t)argc + 1) * sizeof(char *));
    int status = all ? take_lists(&argc, argv, all, &settings, &error) : tare__no_memory(&error);
    if (!status)
        status = tare__cli_read(&tare__cli_compare, argc, argv, &settings, &words, &error);
    if (!status && !words.help)
        status = check_words(&settings, &words, &error);
    if (!status && !words.help)
        status = check_output(&settings, &error);
    if (status || words.help) {
        free(all);
        return status ? tare__cli_usage(ME, &error) : tare__cli_print_help(&tare__cli_compare);
    }
    signal(SIGPIPE, SIG_IGN); /* a reader that closes the pipe early is not a failure */
    int exit_status = settings.wants_ab ? compare_commands(&settings, &error) : compare_files(&settings, &error);
    if (exit_status && error.text[0])
        tare__cli_say(ME, "%s", error.text);
    free(all);
    return exit_status;
}

const tare__cli_command tare__cli_compare = {
    .name = "compare",
    .summary = "Compare two runs, models or commands",
    .usage = "[options] BASELINE CANDIDATE | --baseline FILE... --candidate FILE... | --ab 'CMD' 'CMD'",
    .details = "FILE is a recorded run (.tare), a report of `tare model --json` or a baseline; a\n"
               "directory means all runs in it. With several runs per side, each run is one\n"
               "sample; with one, the samples within the runs are compared, and variation between\n"
               "runs is unknown. The verdicts are those of `tare check`. --ab stops when a\n"
               "sequential test of the elapsed time decides; the other figures are tested once.\n"
               "Exit status: 0 success, whatever changed; 1 the comparison could not be written,\n"
               "or a command of --ab failed; 2 invalid command line; 3 a file could not be read;\n"
               "130 --ab was interrupted (the results so far are shown).\n",
    .examples = "  tare compare before.tare after.tare\n"
                "  tare compare --baseline runs/main --candidate runs/branch --html -o change.html\n"
                "  tare compare --ab 'python3 old.py' 'python3 new.py'\n"
                "  tare compare --ab --bare './sort -a' './sort -b' --rounds 100\n",
    .options = compare_options,
    .option_count = TARE__COUNT_OF(compare_options),
    .take = take_compare_option,
    .main = compare_main,
};
