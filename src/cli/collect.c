/* collect: the helper behind tare_start: serves one process at the other end of a socket.
 * One thread, in a separate process next to the program.
 * Must not print to standard output, which is the program's. A failure to start goes to the program, which has
 * tare_start_error for it; only wrong settings are also reported on standard error. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "keep.h"
#include "recording.h"

enum { COLLECT_SOCKET };

typedef struct collect_settings {
    int socket;
    bool no_sampling;
    tare__cli_recording recording;
} collect_settings;

static int take(void *context, int key, const char *argument, tare__error *error)
{
    collect_settings *settings = context;
    char *end;
    if (key != COLLECT_SOCKET)
        return tare__cli_recording_take(&settings->recording, key, argument, error);
    long fd = strtol(argument, &end, 10);
    if (end == argument || *end || fd < 0 || fd > 1 << 20)
        return tare__fail(error, TARE_E_USAGE, "--socket: '%.64s' is not a file descriptor", argument);
    settings->socket = (int)fd;
    return 0;
}

static const tare__cli_option options[] = {
    {"socket", 0, "FD", "inherited socket", COLLECT_SOCKET},
    {"no-sampling", 0, NULL, "record only the program's own spans; disable all samplers",
     TARE__CLI_SETS(collect_settings, no_sampling)},
    {"interval", 0, "TIME", "sampling interval, from 1ms to 60s (default 100ms)",
     TARE__RECORDING_INTERVAL},
    {"disable", 0, "LIST",
     "samplers to disable, separated by commas: process, system, container, power, nvml",
     TARE__RECORDING_WITHOUT},
    {"carbon", 0, "GRAMS", "grid carbon intensity in g CO2/kWh", TARE__RECORDING_CARBON},
    {"tag", 0, "TAG", "tag the run in the history", TARE__RECORDING_TAG},
    {"no-history", 0, NULL, "do not add this run to the history",
     TARE__CLI_SETS(collect_settings, recording.keeping.off)},
    {"store", 0, "PLACE", "history to use", TARE__CLI_TEXT(collect_settings, recording.keeping.store)},
};

/* Temporary traces of the Python package, which it removes at once, are in folders tare-* of the temporary directory:
 * they are not runs. */
static bool is_passing(const char *trace)
{
    const char *temporary = tare__temporary_folder();
    size_t length = strlen(temporary);
    while (length > 1 && temporary[length - 1] == '/')
        length--;
    return strncmp(trace, temporary, length) == 0 && strncmp(trace + length, "/tare-", 6) == 0 &&
           strchr(trace + length + 6, '/');
}

/* The program already has its reply and does not wait for this. */
static void keep(const tare__cli_keeping *keeping, const char *path)
{
    struct stat about;
    tare__trace *trace = NULL;
    tare__analysis *analysis = NULL;
    if (!path[0] || is_passing(path) || !tare__cli_keeps(keeping) || stat(path, &about) != 0 ||
        tare__trace_open(path, &trace, NULL) != 0)
        return;
    bool small = about.st_size <= TARE__KEEP_QUIET_BYTES;
    tare__cli_git git = TARE__GIT_NOT_ASKED;
    tare__cli_keep_ask(keeping, trace, &git);
    if (!small || tare__analyze(trace, &(tare__analyze_options){.samples = true}, &analysis, NULL) == 0)
        tare__cli_keep_run(keeping, trace, analysis, &git);
    tare__cli_git_answer(&git);
    tare__analysis_free(analysis);
    tare__trace_close(trace);
}

static int collect_main(int argc, char **argv)
{
    tare__error error = {""};
    tare__cli_words words;
    collect_settings settings = {.socket = -1};
    int status = tare__cli_read(&tare__cli_collect, argc, argv, &settings, &words, &error);
    if (!status && (settings.socket < 0 || words.count > 0 || words.rest))
        status = tare__fail(&error, TARE_E_USAGE, "internal command; use tare run");
    tare__record_options serve = settings.recording.record;
    if (settings.no_sampling)
        serve.interval_ns = TARE__RUN_NO_SAMPLES;
    static char trace[TARE__PATH_BYTES];
    if (status && settings.socket >= 0)
        tare__serve_refuse(settings.socket, status, &error);
    if (!status)
        status = tare__serve_process(settings.socket, &serve, trace, &error);
    if (!status) {
        tare__tidied tidied;
        keep(&settings.recording.keeping, trace);
        tare__leftovers_tidy(true, NULL, NULL, &tidied);
        return TARE__EXIT_OK;
    }
    bool is_told = settings.socket >= 0 && status != TARE_E_USAGE && status != TARE_E_VERSION;
    if (error.text[0] && !is_told) /* a program may not look at tare_start_error; who misspelt a setting should know */
        tare__cli_say("tare collect", "%s", error.text);
    return status == TARE_E_USAGE ? TARE__EXIT_USAGE : TARE__EXIT_FAILED;
}

const tare__cli_command tare__cli_collect = {
    .name = "collect",
    .summary = "Collect events from a program that called tare_start (internal)",
    .usage = "--socket FD",
    .examples = "  (started by tare_start)\n",
    .options = options,
    .option_count = TARE__COUNT_OF(options),
    .settings = TARE__SETTINGS_RECORDING,
    .take = take,
    .main = collect_main,
};
