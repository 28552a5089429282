/* run: `tare run`: profiles a command, shows the summary, and exits with the command's status.
 * One thread. Standard output is the program's: all messages go to standard error.
 * Must not know how recording works. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording.h"

enum { RUN_LINES, RUN_SHAPES, RUN_STEPS, RUN_EVERY_EPOCHS };

typedef struct run_settings {
    tare__cli_recording recording;
    tare__run_options run;
    const char *lines; /* functions, separated by commas; NULL: none */
    const char *steps, *every_epochs; /* as given; NULL: all */
    bool no_sampling;
    bool operators;
    bool reported_of_waiting;
} run_settings;

static const tare__cli_option run_options[] = {
    TARE__RECORDING_OPTIONS(run_settings),
    {"no-sampling", 0, NULL, "record only the program's own spans; disable all samplers",
     TARE__CLI_SETS(run_settings, no_sampling)},
    {"lines", 0, "FUNC",
     "Python: time each line of these functions, separated by commas (step, Net.forward, train:*)", RUN_LINES},
    {"ops", 0, NULL, "PyTorch: record every operator and module", TARE__CLI_SETS(run_settings, operators)},
    {"steps", 0, "FROM:TO", "PyTorch: record only these training steps (50:70 is 50 to 69; 50: is 50 and later)",
     RUN_STEPS},
    {"every-epochs", 0, "N", "PyTorch: record only every Nth epoch, starting with the first", RUN_EVERY_EPOCHS},
    {"shapes", 0, NULL,
     "PyTorch: like --ops, and measure shapes, bytes and FLOPs of operators in one step",
     RUN_SHAPES},
    {"buffer-size", 0, "SIZE",
     "event buffer of each process (default 8M, extended up to 32M as needed)",
     TARE__CLI_BYTES(run_settings, run.pool_bytes)},
    {"no-wait", 0, NULL, "exit with the command, even if its child processes are still recording",
     TARE__CLI_SETS(run_settings, run.leave_children)},
};

/* An empty name is a mistake that is reported before the program runs. */
static int take_lines(run_settings *settings, const char *argument, tare__error *error)
{
    for (const char *at = argument;; at++) {
        size_t length = strcspn(at, ",");
        const char *colon = memchr(at, ':', length);
        if (strspn(at, " ") == length || colon == at || (colon && colon + 1 == at + length))
            return tare__fail(error, TARE_E_USAGE,
                              "--lines: '%.64s' is not a function name; use step, Net.forward or module:function",
                              argument);
        at += length;
        if (!*at)
            break;
    }
    settings->lines = argument;
    return 0;
}

/* Parses an integer at the start of a text; returns the position after it; NULL: none, or too large. */
static const char *read_count(const char *text, uint64_t *value)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 15)
        return NULL;
    *value = strtoull(text, NULL, 10);
    return text + digits;
}

static int take_steps(run_settings *settings, const char *argument, tare__error *error)
{
    uint64_t from = 0, to = UINT64_MAX;
    const char *at = argument[0] == ':' ? argument : read_count(argument, &from);
    bool good = at && *at == ':' && (at[1] || at > argument);
    if (good && at[1])
        good = (at = read_count(at + 1, &to)) && !*at;
    if (!good)
        return tare__fail(error, TARE_E_USAGE, "--steps: '%.64s' is not a range of steps; use 50:70, 50: or :70",
                          argument);
    if (from >= to)
        return tare__fail(error, TARE_E_USAGE, "--steps: '%.64s' is an empty range: the end is exclusive", argument);
    settings->steps = argument;
    return 0;
}

static int take_every_epochs(run_settings *settings, const char *argument, tare__error *error)
{
    uint64_t n = 0;
    const char *end = read_count(argument, &n);
    if (!end || *end || n == 0)
        return tare__fail(error, TARE_E_USAGE, "--every-epochs: '%.64s' is not a whole number of at least 1", argument);
    settings->every_epochs = argument;
    return 0;
}

static int take_run_option(void *context, int key, const char *argument, tare__error *error)
{
    run_settings *settings = context;
    switch (key) {
    case RUN_LINES: return take_lines(settings, argument, error);
    case RUN_SHAPES: settings->operators = settings->run.roofline = true; return 0;
    case RUN_STEPS: return take_steps(settings, argument, error);
    case RUN_EVERY_EPOCHS: return take_every_epochs(settings, argument, error);
    default: return tare__cli_recording_take(&settings->recording, key, argument, error);
    }
}

/* Suggests the corrected command line, shortened to a readable length. */
static int forgotten_dashes(const tare__cli_words *words, tare__error *error)
{
    char line[128];
    size_t used = 0;
    for (int i = 0; i < words->count; i++) {
        int more = snprintf(line + used, sizeof line - used, " %s", words->words[i]);
        if (more < 0 || (size_t)more >= sizeof line - used) {
            snprintf(line + used, sizeof line - used, "%s", sizeof line - used > 4 ? " …" : "");
            break;
        }
        used += (size_t)more;
    }
    return tare__fail(error, TARE_E_USAGE, "put -- before the command: tare run --%s", line);
}

static void on_progress(void *context, const tare__run_progress *progress)
{
    run_settings *settings = context;
    tare__cli_live_update(&settings->recording.live, progress);
}

static void copy_settings(run_settings *settings)
{
    settings->run.record = settings->recording.record;
    if (settings->no_sampling)
        settings->run.record.interval_ns = settings->run.record.stack_interval_ns = TARE__RUN_NO_SAMPLES;
    settings->run.record.on_progress = on_progress;
    settings->run.record.context = settings;
}

/* Passes the settings of the Python package in the program's environment. If operators cannot be recorded, the program
 * runs without them. */
static int tell_package(const run_settings *settings, tare__error *error)
{
    const struct {
        const char *name, *value;
    } reported[] = {{"TARE_LINES", settings->lines},
                {"TARE_STEPS", settings->steps},
                {"TARE_EVERY_EPOCHS", settings->every_epochs}};
    bool failed = false;
    for (size_t i = 0; i < TARE__COUNT_OF(reported); i++)
        failed = failed || (reported[i].value && setenv(reported[i].name, reported[i].value, 1) != 0);
    if (settings->operators) {
        tare__error why = {""};
        bool listens = tare__inject_operators(&why);
        if (why.text[0])
            tare__cli_say("tare run", "--ops: %s", why.text);
        if (listens && settings->run.roofline)
            failed = failed || setenv("TARE_SHAPES", "1", 1) != 0;
        failed = failed || (listens ? setenv("TARE_OPS", "1", 1) : unsetenv("TARE_OPS")) != 0;
    }
    return failed ? tare__no_memory(error) : 0;
}

static int read_settings(int argc, char **argv, run_settings *settings, tare__cli_words *words, tare__error *error)
{
    int status = tare__cli_read(&tare__cli_run, argc, argv, settings, words, error);
    if (status || words->help)
        return status;
    if (words->count > 0)
        return forgotten_dashes(words, error);
    if (!words->rest || !words->rest[0])
        return tare__fail(error, TARE_E_USAGE, "missing command: tare run -- COMMAND");
    copy_settings(settings);
    settings->run.command = words->rest;
    int wrong = tare__cli_recording_check(&settings->recording, error);
    return wrong ? wrong : tell_package(settings, error);
}

static void on_waiting(void *context, unsigned still_recording)
{
    run_settings *settings = context;
    if (settings->recording.quiet || settings->reported_of_waiting)
        return;
    settings->reported_of_waiting = true;
    tare__cli_live_end(&settings->recording.live);
    tare__cli_say("tare", "the command has exited; waiting for %u of its processes that are still recording%s",
                  still_recording, " (--no-wait to disable)");
}

static int run_main(int argc, char **argv)
{
    tare__error error = {""};
    tare__cli_words words;
    run_settings settings = {0};
    int status = read_settings(argc, argv, &settings, &words, &error);
    if (status)
        return tare__cli_usage("tare run", &error);
    if (words.help)
        return tare__cli_print_help(&tare__cli_run);
    settings.run.on_waiting = on_waiting;
    static tare__run_result result; /* large: not on the stack */
    result = (tare__run_result){0};
    status = tare__cli_recording_begin(&settings.recording, &error);
    if (!status)
        status = tare__run(&settings.run, &result, &error);
    if (status || !result.launched)
        tare__cli_say("tare run", "%s", error.text[0] ? error.text : tare_status_text(status));
    tare__cli_recording_end(&settings.recording, "tare run", &result);
    return status ? TARE__EXIT_OWN : result.exit_status;
}

const tare__cli_command tare__cli_run = {
    .name = "run",
    .summary = "Profile a command and its child processes",
    .usage = "[options] -- COMMAND [ARGUMENT...]",
    .details = "The command's input and output are unchanged. Exit status: that of the command\n"
               "(128 + N if it was killed by signal N); 2 invalid command line, 125 tare failed,\n"
               "126 the command could not be executed, 127 it was not found. Options can also be\n"
               "set in TARE_* variables (TARE_INTERVAL=50ms), ./tare.toml (interval = \"50ms\") or\n"
               "[tool.tare] in ./pyproject.toml.\n",
    .examples = "  tare run -- python3 train.py --epochs 3\n"
                "  tare run --html train.html -- ./train\n"
                "  tare run -o big.tare --max-size 500M -- ./serve\n"
                "  tare run --last 60s --live -- python3 train.py\n"
                "  tare run --lines train_step -- python3 train.py\n"
                "  tare run --steps 50:70 -- torchrun --nproc_per_node 2 train.py\n",
    .options = run_options,
    .option_count = TARE__COUNT_OF(run_options),
    .settings = TARE__SETTINGS_RECORDING,
    .command_follows = true,
    .take = take_run_option,
    .main = run_main,
};
