/* report: `tare report`: shows a recorded run, after recovering data that a killed collector left behind.
 * One thread.
 * Must not know how anything is analyzed or laid out. */
#define _GNU_SOURCE
#include "cli.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine.h"
#include "inputs.h"
#include "views.h"

#define ME "tare report"

enum {
    REPORT_CSV, REPORT_PARQUET, REPORT_TENSORBOARD, REPORT_BY, REPORT_PHASE, REPORT_PROCESS,
    REPORT_STACKS /* and on: stack_formats */
};

static const char *const stack_formats[] = {"flamegraph", "folded", "speedscope", "pprof"};

typedef struct report_settings {
    const char *format, *output, *rules_file;
    const char *place; /* file or folder that the option of the format names */
    char *default_output; /* default name of a page */
    tare__analyze_options analyze;
    tare__stack_filter stacks;
    tare__emit_options emit;
} report_settings;

static const tare__cli_option report_options[] = {
    {"html", 0, NULL, "write an interactive HTML report", TARE__CLI_FORMAT(report_settings, format)},
    {"json", 0, NULL, "print every table as JSON", TARE__CLI_FORMAT(report_settings, format)},
    {"csv", 0, "DIR", "write every table as a CSV file to this directory", REPORT_CSV},
    {"parquet", 0, "DIR", "write every table as a Parquet file to this directory (requires PyArrow)", REPORT_PARQUET},
    {"chrome", 0, NULL, "print a Chrome trace (JSON) for chrome://tracing and ui.perfetto.dev",
     TARE__CLI_FORMAT(report_settings, format)},
    {"perfetto", 0, NULL, "write a Perfetto trace (protobuf) for ui.perfetto.dev",
     TARE__CLI_FORMAT(report_settings, format)},
    {"tensorboard", 0, "DIR", "write a profile for TensorBoard and HolisticTraceAnalysis to this directory",
     REPORT_TENSORBOARD},
    {"flamegraph", 0, "FILE", "write a flame graph of the stack samples (SVG)", REPORT_STACKS},
    {"folded", 0, "FILE", "write the stack samples as folded stacks for flamegraph.pl, inferno and speedscope",
     REPORT_STACKS + 1},
    {"speedscope", 0, "FILE", "write the stack samples (JSON) for speedscope.app", REPORT_STACKS + 2},
    {"pprof", 0, "FILE", "write the stack samples (profile.proto, gzip) for pprof", REPORT_STACKS + 3},
    {"events", 0, NULL, "print the raw event stream, one event per line", TARE__CLI_FORMAT(report_settings, format)},
    {"by", 0, "WHAT", "group the span tree by run (default), process or thread",
     REPORT_BY},
    {"within", 0, "SPAN", "use only stack samples inside spans of this name (a/b: b directly inside a)",
     TARE__CLI_TEXT(report_settings, stacks.within)},
    {"phase", 0, "PHASE", "use only stack samples of this phase: startup, steady or shutdown", REPORT_PHASE},
    {"process", 0, "PID", "use only stack samples of this process", REPORT_PROCESS},
    {"thread", 0, "THREAD", "use only stack samples of threads with this name or id",
     TARE__CLI_TEXT(report_settings, stacks.thread)},
    {"gpu-idle", 0, NULL, "use only stack samples taken while no GPU of the run was busy",
     TARE__CLI_SETS(report_settings, stacks.gpu_idle)},
    {"all", 0, NULL, "show every row; truncate nothing", TARE__CLI_SETS(report_settings, emit.all)},
    {"raw", 0, NULL, "show self times as measured, without subtracting overhead",
     TARE__CLI_SETS(report_settings, emit.raw)},
    {"source", 0, NULL, "show the code of the hottest lines in the HTML report (your own .py files only)",
     TARE__CLI_SETS(report_settings, emit.source)},
    {"rules", 0, "FILE", "add findings from user-defined rules", TARE__CLI_TEXT(report_settings, rules_file)},
    {"output", 'o', "FILE", "output file (written atomically)", TARE__CLI_TEXT(report_settings, output)},
    {"width", 0, "N", "width of the text output (default: terminal width, from 80 to 120)",
     TARE__CLI_WIDTH(report_settings, emit.width)},
};

/* ---- settings ------------------------------------------------------------------------------------ */
static int take_by(report_settings *settings, const char *what, tare__error *error)
{
    static const char *const names[] = {
        [TARE__BY_RUN] = "run", [TARE__BY_PROCESS] = "process", [TARE__BY_THREAD] = "thread"};
    for (size_t i = 0; i < TARE__COUNT_OF(names); i++) {
        if (strcmp(names[i], what) == 0) {
            settings->analyze.by = (tare__by)i;
            return 0;
        }
    }
    const char *near = tare__cli_nearest(what, names, TARE__COUNT_OF(names));
    return tare__fail(error, TARE_E_USAGE, "--by: '%.64s' is not run, process or thread%s%s%s", what,
                      near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static int take_phase(report_settings *settings, const char *phase, tare__error *error)
{
    static const char *const names[] = {"startup", "steady", "shutdown"};
    for (size_t i = 0; i < TARE__COUNT_OF(names); i++)
        if (strcmp(names[i], phase) == 0)
            settings->stacks.phase = names[i];
    const char *near = tare__cli_nearest(phase, names, TARE__COUNT_OF(names));
    return settings->stacks.phase && strcmp(settings->stacks.phase, phase) == 0
               ? 0
               : tare__fail(error, TARE_E_USAGE, "--phase: '%.64s' is not startup, steady or shutdown%s%s%s", phase,
                            near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static int take_process(report_settings *settings, const char *pid, tare__error *error)
{
    char *end;
    settings->stacks.pid = strtoll(pid, &end, 10);
    return settings->stacks.pid > 0 && !*end
               ? 0
               : tare__fail(error, TARE_E_USAGE, "--process: '%.64s' is not a process id", pid);
}

static int take_placed(report_settings *settings, const char *format, const char *argument, tare__error *error)
{
    int status = tare__cli_take_format(format, &settings->format, error);
    return status ? status : tare__cli_take_text(format, argument, &settings->place, error);
}

static int take_report_option(void *context, int key, const char *argument, tare__error *error)
{
    report_settings *settings = context;
    switch (key) {
    case REPORT_CSV: return take_placed(settings, TARE__VIEW_CSV, argument, error);
    case REPORT_PARQUET: return take_placed(settings, TARE__VIEW_PARQUET, argument, error);
    case REPORT_TENSORBOARD: return take_placed(settings, TARE__VIEW_TENSORBOARD, argument, error);
    case REPORT_BY: return take_by(settings, argument, error);
    case REPORT_PHASE: return take_phase(settings, argument, error);
    case REPORT_PROCESS: return take_process(settings, argument, error);
    default: return take_placed(settings, stack_formats[key - REPORT_STACKS], argument, error);
    }
}

/* ---- output file --------------------------------------------------------------------------------- */
/* A page or a binary trace is not written to a terminal: it is placed next to the trace, as NAME.html, unless a file of
 * that name exists that cannot be a page of Tare. */
static int find_place(report_settings *settings, const char *path, tare__error *error)
{
    static const struct {
        const char *format, *ending;
    } places[] = {{"html", ".html"}, {"perfetto", ".pftrace"}};
    for (size_t i = 0; i < TARE__COUNT_OF(places); i++) {
        if (!settings->format || strcmp(settings->format, places[i].format) != 0 || settings->output ||
            !isatty(STDOUT_FILENO))
            continue;
        int status = tare__cli_place_beside(path, ".tare", places[i].ending, &settings->default_output, error);
        if (status)
            return status;
        settings->output = settings->default_output;
    }
    return 0;
}

/* ---- the report ---------------------------------------------------------------------------------- */
static int analyze(tare__trace *trace, report_settings *settings, tare__analysis **analysis, tare__error *error)
{
    tare__rules *rules = NULL;
    int status = settings->rules_file ? tare__engine_read_rules(settings->rules_file, &rules, error) : 0;
    settings->analyze.rules = rules;
    settings->analyze.stacks = &settings->stacks;
    if (!status)
        status = tare__analyze(trace, &settings->analyze, analysis, error);
    settings->analyze.rules = NULL;
    tare__rules_free(rules);
    return status;
}

static int report(tare__trace *trace, report_settings *settings, tare__error *error)
{
    const char *format = settings->format ? settings->format : "text";
    tare__analysis *analysis = NULL;
    bool unwritten = false;
    int status = tare__view_needs_tables(format) ? analyze(trace, settings, &analysis, error) : 0;
    if (!status)
        status = tare__view_write(format, settings->place ? settings->place : settings->output, trace, analysis,
                                  &settings->emit, &unwritten, error);
    tare__analysis_free(analysis);
    if (!status && settings->default_output)
        tare__cli_say(ME, "wrote %s", settings->default_output);
    if (unwritten)
        return status == TARE_E_USAGE ? TARE__EXIT_USAGE : TARE__EXIT_FAILED;
    return status ? tare__cli_load_exit(status) : TARE__EXIT_OK;
}

static int read_settings(int argc, char **argv, report_settings *settings, tare__cli_words *words, const char **path,
                         tare__error *error)
{
    int status = tare__cli_read(&tare__cli_report, argc, argv, settings, words, error);
    if (status || words->help)
        return status;
    status = tare__cli_one_word(words, "trace", "tare report FILE.tare", path, error);
    if (!status && settings->output && settings->place)
        return tare__fail(error, TARE_E_USAGE, "--%s and --output are mutually exclusive", settings->format);
    if (!status && settings->emit.source && (!settings->format || strcmp(settings->format, "html") != 0))
        return tare__fail(error, TARE_E_USAGE, "--source requires --html");
    if (!status && tare__stack_filter_is_set(&settings->stacks) && settings->format &&
        !tare__view_needs_tables(settings->format))
        return tare__fail(error, TARE_E_USAGE,
                          "--within, --phase, --process, --thread and --gpu-idle do not apply to --%s: it contains no "
                          "stack samples", settings->format);
    bool is_file = false;
    for (size_t i = 0; i < TARE__COUNT_OF(stack_formats) && settings->place; i++)
        is_file = is_file || strcmp(settings->format, stack_formats[i]) == 0;
    const char *output = settings->output ? settings->output : is_file ? settings->place : NULL;
    if (!status && output && tare__cli_same_file(*path, output))
        return tare__fail(error, TARE_E_USAGE, "--%s is the trace itself; choose another file",
                          settings->output ? "output" : settings->format);
    return status ? status : find_place(settings, *path, error);
}

static void say(void *context, const char *sentence)
{
    (void)context;
    tare__cli_say(ME, "%s", sentence);
}

static int report_main(int argc, char **argv)
{
    tare__error error = {""};
    tare__cli_words words;
    report_settings settings = {0};
    const char *path = NULL;
    int status = read_settings(argc, argv, &settings, &words, &path, &error);
    if (!status && words.help)
        return tare__cli_print_help(&tare__cli_report);
    if (status) {
        free(settings.default_output);
        return tare__cli_usage(ME, &error);
    }
    if (settings.format && strcmp(settings.format, TARE__VIEW_PARQUET) == 0) {
        tare__cli_parquet(settings.place, path, settings.rules_file, &settings.stacks, &error);
        tare__cli_say(ME, "%s", error.text);
        return TARE__EXIT_FAILED;
    }
    signal(SIGPIPE, SIG_IGN); /* a reader that closes the pipe early is not a failure */
    tare__trace *trace = NULL;
    status = tare__engine_open(path, say, NULL, &trace, &error);
    settings.emit.trace = status ? path : tare__trace_path(trace);
    int exit_status = status ? tare__cli_load_exit(status) : report(trace, &settings, &error);
    tare__trace_close(trace);
    free(settings.default_output);
    if (exit_status)
        tare__cli_say(ME, "%s", error.text[0] ? error.text : tare_status_text(status));
    return exit_status;
}

const tare__cli_command tare__cli_report = {
    .name = "report",
    .summary = "Show a recorded run as text, HTML, JSON, CSV or a trace for other tools",
    .usage = "[options] FILE|FOLDER",
    .details = "FOLDER is the session folder of a killed recording; its events are first saved to\n"
               "its trace. Exit status: 0 success; 1 the report could not be written; 2 invalid\n"
               "command line; 3 the trace could not be read.\n",
    .examples = "  tare report train.tare\n"
                "  tare report --html -o train.html train.tare\n"
                "  tare report --by thread --all train.tare\n"
                "  tare report --within data train.tare\n"
                "  tare report --json train.tare | jq '.spans[] | {name, self_ns}'\n"
                "  tare report --events train.tare | sort -ns\n",
    .options = report_options,
    .option_count = TARE__COUNT_OF(report_options),
    .settings = TARE__SETTINGS_SHOWING,
    .take = take_report_option,
    .main = report_main,
};
