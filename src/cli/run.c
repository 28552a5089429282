/* run: `tare run`: profiles a command, says what was written, and ends as the command ended.
 * One thread. Standard output is the program's: everything said here goes to standard error.
 * Must not know how recording works. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

#include "collect/collect.h"
#include "tare.h"

enum { RUN_OUTPUT, RUN_FORCE, RUN_QUIET, RUN_MAX_SIZE, RUN_LAST, RUN_POOL, RUN_READABLE, RUN_NO_WAIT };

static const tare__cli_option run_options[] = {
    {"output", 'o', "FILE",
     "write the trace here; without it, it is named after the script (train.tare), "
     "with a number when that name is taken (train.2.tare)",
     RUN_OUTPUT},
    {"force", 'f', NULL, "overwrite the file that -o names", RUN_FORCE},
    {"quiet", 'q', NULL, "say nothing at the end, unless the trace is not whole", RUN_QUIET},
    {"max-size", 0, "SIZE", "keep the file below this (500M, 2G): the oldest events make room for the newest",
     RUN_MAX_SIZE},
    {"last", 0, "TIME", "keep only the events of the last while (60s, 5m)", RUN_LAST},
    {"pool", 0, "SIZE", "memory for events on their way to the file, of each process (8M; up to 32M for one that records a lot)", RUN_POOL},
    {"readable", 0, NULL, "let others read the trace: without it, only its owner may", RUN_READABLE},
    {"no-wait", 0, NULL, "end with the command, even while children of it still record", RUN_NO_WAIT},
};

typedef struct run_settings {
    tare__run_options run;
    bool quiet;
    bool told_of_waiting;
} run_settings;

static int take_run_option(void *context, int key, const char *argument, tare__error *error)
{
    run_settings *settings = context;
    tare__run_options *run = &settings->run;
    switch (key) {
    case RUN_OUTPUT:
        if (!*argument)
            return tare__fail(error, TARE_E_USAGE, "--output: the name is empty");
        run->output = argument;
        return 0;
    case RUN_FORCE: run->overwrite = true; return 0;
    case RUN_QUIET: settings->quiet = true; return 0;
    case RUN_READABLE: run->readable_by_others = true; return 0;
    case RUN_NO_WAIT: run->leave_children = true; return 0;
    case RUN_MAX_SIZE: return tare__parse_bytes(argument, "--max-size", &run->max_bytes, error);
    case RUN_LAST: return tare__parse_duration(argument, "--last", &run->last_ns, error);
    default: return tare__parse_bytes(argument, "--pool", &run->pool_bytes, error);
    }
}

/* The command line as it should have been, as far as it is good to read. */
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

static int read_settings(int argc, char **argv, run_settings *settings, tare__cli_words *words,
                         tare__error *error)
{
    int status = tare__cli_parse(&tare__cli_run, argc, argv, settings, words, error);
    if (status || words->help)
        return status;
    if (words->count > 0)
        return forgotten_dashes(words, error);
    if (!words->rest || !words->rest[0])
        return tare__fail(error, TARE_E_USAGE, "which command? It comes after --: tare run -- ./program");
    if (settings->run.overwrite && !settings->run.output)
        return tare__fail(error, TARE_E_USAGE, "--force goes with --output: name the file to overwrite");
    settings->run.command = words->rest;
    return 0;
}

static void on_waiting(void *context, unsigned still_recording)
{
    run_settings *settings = context;
    if (settings->quiet || settings->told_of_waiting)
        return;
    settings->told_of_waiting = true;
    tare__cli_say("tare", "the command has ended; waiting for %u of its processes that still record%s",
                  still_recording, " (--no-wait would not)");
}

static void say_what_was_written(const tare__run_result *result)
{
    char size[TARE__UNIT_BYTES], spans[TARE__UNIT_BYTES], took[TARE__UNIT_BYTES], of[64] = "";
    tare__unit_bytes(size, (double)result->trace_bytes);
    tare__unit_count(spans, (double)result->spans);
    tare__unit_time(took, (double)result->elapsed_ns);
    if (result->processes > 1)
        snprintf(of, sizeof of, " of %u processes", result->processes);
    tare__cli_say("tare", "wrote %s (%s): %s span%s%s in %s", result->trace, size, spans,
                  result->spans == 1 ? "" : "s", of, took);
}

static void say_what_is_missing(const tare__run_result *result)
{
    char count[TARE__UNIT_BYTES];
    if (result->processes == 0)
        tare__cli_say("tare", "no process recorded anything: is the program built with tare.h and -ltare?");
    if (result->dropped_spans > 0)
        tare__cli_say("tare", "%s spans were dropped, the memory for them was full; --pool gives more",
                      tare__unit_count(count, (double)result->dropped_spans));
    if (result->left_running > 0)
        tare__cli_say("tare", "%u process%s still running and no longer recorded", result->left_running,
                      result->left_running == 1 ? " is" : "es are");
}

static void say_results(const run_settings *settings, const tare__run_result *result)
{
    if (result->launched && !settings->quiet && result->trace[0]) {
        say_what_was_written(result);
        say_what_is_missing(result);
    }
    if (result->trouble[0])
        tare__cli_say("tare", "%s", result->trouble);
    if (result->folder[0])
        tare__cli_say("tare", "the session folder %s is left; tare report reads it", result->folder);
    if (result->launched && !settings->quiet && result->trace[0])
        tare__cli_say("tare", "see it with: tare report %s", result->trace);
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
    settings.run.context = &settings;
    static tare__run_result result;
    status = tare__run(&settings.run, &result, &error);
    if (status || !result.launched)
        tare__cli_say("tare run", "%s", error.text[0] ? error.text : tare_status_text(status));
    say_results(&settings, &result);
    return status ? TARE__EXIT_OWN : result.exit_status;
}

const tare__cli_command tare__cli_run = {
    .name = "run",
    .summary = "profiles a command and its children, and writes a trace",
    .usage = "[options] -- COMMAND [ARGUMENT...]",
    .details = "The command keeps its input, output and exit status (128 and the number of the\n"
               "signal that ended it). Otherwise: 2 this command line was wrong, 125 tare\n"
               "itself failed, 126 the command could not be executed, 127 it was not found.\n",
    .examples = "  tare run -- ./train --epochs 3\n"
                "  tare run -o big.tare --max-size 500M -- ./serve\n"
                "  tare run --last 60s -- python3 train.py\n",
    .options = run_options,
    .option_count = TARE__COUNT_OF(run_options),
    .command_follows = true,
    .take = take_run_option,
    .main = run_main,
};
