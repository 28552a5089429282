/* attach: `tare attach`: samples a running process until it ends or Ctrl-C, and shows the summary.
 * One thread.
 * Must not know how anything is measured. */
#define _GNU_SOURCE
#include "cli.h"
#include "dump.h"

#include <stdio.h>
#include <string.h>

#include "recording.h"

#define ME "tare attach"
#define KERNEL_THREAD 0x00200000u /* PF_KTHREAD, among the flags of /proc/PID/stat */

typedef struct attach_settings {
    tare__cli_recording recording;
    tare__attach_options attach;
    bool dump;
} attach_settings;

static const tare__cli_option attach_options[] = {
    TARE__RECORDING_OPTIONS(attach_settings),
    {"duration", 0, "TIME", "stop after this time (30s, 5m)", TARE__CLI_TIME(attach_settings, attach.for_ns)},
    {"dump", 0, NULL, "print the Python call stack of every thread once, and record nothing",
     TARE__CLI_SETS(attach_settings, dump)},
};

static int take_attach_option(void *context, int key, const char *argument, tare__error *error)
{
    attach_settings *settings = context;
    return tare__cli_recording_take(&settings->recording, key, argument, error);
}

/* After the command's name, which is in parentheses and may contain anything: state, six numbers, flags. */
static bool is_kernel_thread(pid_t pid)
{
    char path[64], line[1024];
    unsigned flags = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    size_t got = file ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file)
        fclose(file);
    line[got] = '\0';
    const char *after = strrchr(line, ')');
    return after && sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && (flags & KERNEL_THREAD);
}

static void on_progress(void *context, const tare__run_progress *progress)
{
    attach_settings *settings = context;
    tare__cli_live_update(&settings->recording.live, progress);
}

static int read_settings(int argc, char **argv, attach_settings *settings, tare__cli_words *words, tare__error *error)
{
    int status = tare__cli_read(&tare__cli_attach, argc, argv, settings, words, error);
    if (status || words->help)
        return status;
    settings->attach.record = settings->recording.record;
    settings->attach.record.on_progress = on_progress;
    settings->attach.record.context = settings;
    status = tare__cli_read_pid(ME, words, &settings->attach.pid, error);
    return status ? status : tare__cli_recording_check(&settings->recording, error);
}

static int exit_status_of(int status)
{
    return status == TARE_E_USAGE ? TARE__EXIT_USAGE : status == TARE_E_INPUT ? TARE__EXIT_INPUT : TARE__EXIT_FAILED;
}

static int attach(attach_settings *settings, tare__run_result *result, tare__error *error)
{
    int status = tare__cli_recording_begin(&settings->recording, error);
    if (status)
        return status;
    if (is_kernel_thread(settings->attach.pid))
        return tare__fail(error, TARE_E_INPUT, "%d is a kernel thread and cannot be profiled",
                          (int)settings->attach.pid);
    return tare__attach(&settings->attach, result, error);
}

static int dump(pid_t pid)
{
    tare__error error = {""};
    tare__text text = {0};
    int status = tare__cli_dump(pid, &text, &error);
    if (status)
        tare__cli_say(ME, "%s", error.text[0] ? error.text : tare_status_text(status));
    int printed = tare__cli_print(&text);
    tare__text_free(&text);
    return status ? exit_status_of(status) : printed;
}

static int attach_main(int argc, char **argv)
{
    tare__error error = {""};
    tare__cli_words words;
    attach_settings settings = {.recording.attached = true};
    int status = read_settings(argc, argv, &settings, &words, &error);
    if (status)
        return tare__cli_usage(ME, &error);
    if (words.help)
        return tare__cli_print_help(&tare__cli_attach);
    if (settings.dump)
        return dump(settings.attach.pid);
    static tare__run_result result; /* large: not on the stack */
    result = (tare__run_result){0};
    status = attach(&settings, &result, &error);
    if (status)
        tare__cli_say(ME, "%s", error.text[0] ? error.text : tare_status_text(status));
    result.launched = status == 0;
    tare__cli_recording_end(&settings.recording, ME, &result);
    return status ? exit_status_of(status) : TARE__EXIT_OK;
}

const tare__cli_command tare__cli_attach = {
    .name = "attach",
    .summary = "Profile a running process from outside",
    .usage = "[options] PID",
    .details = "Stops when the process exits, after --duration, or on Ctrl-C; the process itself\n"
               "continues. Exit status: 0 the trace was written; 1 permission denied, or the trace\n"
               "could not be written; 2 invalid command line; 3 no such process.\n",
    .examples = "  tare attach 4120\n"
                "  tare attach --duration 60s --html slow.html 4120\n"
                "  tare attach --dump 4120\n"
                "  tare attach --live $(pgrep -n -f train.py)\n",
    .options = attach_options,
    .option_count = TARE__COUNT_OF(attach_options),
    .settings = TARE__SETTINGS_RECORDING,
    .take = take_attach_option,
    .main = attach_main,
};
