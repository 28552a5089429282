/* recording: options that run and attach share, and the end of a recording: summary, views, messages.
 * One thread. All messages go to standard error: standard output is the program's.
 * Must not know how recording works. */
#define _GNU_SOURCE
#include "recording.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/engine.h"
#include "views.h"

#define INTERVAL_MAX_NS 60000000000u
#define STACKS_MAX      10000.0
#define CARBON_MAX      10000.0 /* g/kWh: ten times the highest carbon intensity of any grid */

/* In the order of their options. */
static const char *const formats[TARE__RECORDING_VIEWS] = {
    "html", "json", TARE__VIEW_CSV, "chrome", "perfetto", TARE__VIEW_TENSORBOARD, "flamegraph", "folded", "speedscope",
    "pprof"};

/* ---- options -------------------------------------------------------------------------------------- */
static int take_interval(tare__cli_recording *recording, const char *argument, tare__error *error)
{
    uint64_t ns = 0;
    int status = tare__parse_duration(argument, "--interval", &ns, error);
    if (status)
        return status;
    if (ns < TARE__SAMPLE_INTERVAL_MIN_NS || ns > INTERVAL_MAX_NS)
        return tare__fail(error, TARE_E_USAGE, "--interval: '%.64s' is not between 1ms and 60s", argument);
    recording->record.interval_ns = ns;
    return 0;
}

static int unknown_sampler(const char *word, tare__error *error)
{
    const char *names[16];
    size_t n = 0;
    for (; n < TARE__COUNT_OF(names) && tare__sampler_at(n); n++)
        names[n] = tare__sampler_at(n)->name;
    char list[160] = "";
    for (size_t i = 0, used = 0; i < n && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ",
                                 names[i]);
    const char *near = tare__cli_nearest(word, names, n);
    return tare__fail(error, TARE_E_USAGE, "--disable: '%.32s' is not %s%s%s%s", word, list,
                      near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static int take_without(tare__cli_recording *recording, const char *argument, tare__error *error)
{
    uint32_t left_out = 0;
    for (const char *at = argument; *at; at += strspn(at, ", ")) {
        char word[33];
        size_t length = strcspn(at, ", "), i = 0;
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        while (tare__sampler_at(i) && strcmp(tare__sampler_at(i)->name, word) != 0)
            i++;
        if (!tare__sampler_at(i))
            return unknown_sampler(word, error);
        left_out |= 1u << i;
        at += length;
    }
    recording->record.samplers_left_out = left_out;
    return 0;
}

static int take_stacks(tare__cli_recording *recording, const char *argument, tare__error *error)
{
    char *end;
    double rate = strtod(argument, &end);
    if (end == argument || *end || !(rate >= 1) || rate > STACKS_MAX)
        return tare__fail(error, TARE_E_USAGE, "--stacks: '%.64s' is not a rate from 1 to 10000 per second", argument);
    recording->record.stack_interval_ns = (uint64_t)(1e9 / rate);
    return 0;
}

static int take_carbon(tare__cli_recording *recording, const char *argument, tare__error *error)
{
    char *end;
    double grams = strtod(argument, &end);
    if (end == argument || *end || !(grams > 0) || grams > CARBON_MAX)
        return tare__fail(error, TARE_E_USAGE, "--carbon: '%.64s' is not a number of grams per kWh", argument);
    recording->record.carbon_g_per_kwh = grams;
    return 0;
}

int tare__cli_recording_take(tare__cli_recording *recording, int key, const char *argument, tare__error *error)
{
    switch (key) {
    case TARE__RECORDING_READABLE:
        recording->record.readable_by_others = true;
        tare__cli_output_readable();
        return 0;
    case TARE__RECORDING_INTERVAL: return take_interval(recording, argument, error);
    case TARE__RECORDING_WITHOUT: return take_without(recording, argument, error);
    case TARE__RECORDING_STACKS: return take_stacks(recording, argument, error);
    case TARE__RECORDING_NO_STACKS: recording->record.stack_interval_ns = TARE__RUN_NO_SAMPLES; return 0;
    case TARE__RECORDING_CARBON: return take_carbon(recording, argument, error);
    default: return tare__cli_keep_take_tags(&recording->keeping, argument, error);
    }
}

int tare__cli_recording_check(const tare__cli_recording *recording, tare__error *error)
{
    if (recording->record.native_stacks && recording->record.stack_interval_ns == TARE__RUN_NO_SAMPLES)
        return tare__fail(error, TARE_E_USAGE, "--native and --no-stacks are mutually exclusive");
    if (recording->record.overwrite && !recording->record.output)
        return tare__fail(error, TARE_E_USAGE, "--force requires --output");
    for (int i = 0; i < TARE__RECORDING_VIEWS; i++) {
        const char *path = recording->views[i];
        if (path && recording->record.output && strcmp(path, recording->record.output) == 0)
            return tare__fail(error, TARE_E_USAGE, "--%s and --output name the same file", formats[i]);
        for (int j = 0; path && j < i; j++)
            if (recording->views[j] && strcmp(path, recording->views[j]) == 0)
                return tare__fail(error, TARE_E_USAGE, "--%s and --%s name the same file", formats[j], formats[i]);
    }
    return 0;
}

int tare__cli_recording_begin(tare__cli_recording *recording, tare__error *error)
{
    int status = recording->rules_file ? tare__engine_read_rules(recording->rules_file, &recording->rules, error) : 0;
    for (int i = 0; i < TARE__RECORDING_VIEWS && !status; i++)
        if (recording->views[i])
            status = tare__view_try(formats[i], recording->views[i], error);
    if (!status && tare__leftovers_press()) /* this run may be killed, too, and never reach its end */
        tare__leftovers_tidy(true, NULL, NULL, &recording->tidied);
    if (!status)
        tare__cli_live_begin(&recording->live, recording->wants_live);
    return status;
}

/* ---- summary and views ------------------------------------------------------------------------------ */
static void show_summary(const tare__analysis *analysis, const char *trace)
{
    tare__emit_options options = {.trace = trace};
    tare__cli_output output = {.fd = STDERR_FILENO};
    tare__emit_sink sink = {.write = tare__cli_output_write, .context = &output};
    tare__emit_input input = {.analysis = analysis};
    tare__error error;
    tare__view_suit(&options, STDERR_FILENO, isatty(STDERR_FILENO));
    tare__cli_output_lines(&output, options.colour);
    tare__cli_output_write(&output, "\n", 1);
    tare__emit_text.emit(&input, &options, &sink, &error);
    tare__cli_output_close(&output, true, NULL);
}

static void write_views(const tare__cli_recording *recording, const char *me, tare__trace *trace,
                        const tare__analysis *analysis)
{
    for (int i = 0; i < TARE__RECORDING_VIEWS; i++) {
        tare__emit_options options = {.source = true};
        tare__error error = {""};
        bool unwritten;
        if (recording->views[i] && tare__view_write(formats[i], recording->views[i], trace, analysis, &options,
                                                    &unwritten, &error) != 0)
            tare__cli_say(me, "--%s: %s", formats[i], error.text[0] ? error.text : "cannot be written");
    }
}

/* `wanted`: some output was requested. */
static void show(const tare__cli_recording *recording, const char *me, const tare__run_result *result, bool wanted)
{
    const char *path = result->trace;
    bool keeps = tare__cli_keeps(&recording->keeping);
    bool analyses = wanted || (int64_t)result->trace_bytes <= TARE__KEEP_QUIET_BYTES;
    tare__error error = {""};
    tare__trace *trace = NULL;
    tare__analysis *analysis = NULL;
    tare__analyze_options options = {.rules = recording->rules, .samples = keeps};
    tare__cli_git git = TARE__GIT_NOT_ASKED;
    int status = tare__trace_open_at(result->trace_fd > 0 ? result->trace_fd : -1, path, &trace, &error);
    if (!status && keeps)
        tare__cli_keep_ask(&recording->keeping, trace, &git);
    if (!status && analyses)
        status = tare__analyze(trace, &options, &analysis, &error);
    if (status) {
        tare__cli_say(me, "the trace was written but could not be analyzed: %s",
                      error.text[0] ? error.text : tare_status_text(status));
    } else if (wanted) {
        if (!recording->quiet)
            show_summary(analysis, path);
        write_views(recording, me, trace, analysis);
    }
    if (!status && keeps)
        tare__cli_keep_run(&recording->keeping, trace, analysis, &git);
    tare__cli_git_answer(&git);
    tare__analysis_free(analysis);
    tare__trace_close(trace);
}

static bool wants_views(const tare__cli_recording *recording)
{
    for (int i = 0; i < TARE__RECORDING_VIEWS; i++)
        if (recording->views[i])
            return true;
    return false;
}

/* ---- messages --------------------------------------------------------------------------------------- */
/* "tare: wrote train.tare (113 KiB), train.html (1.2 MiB)", wrapped to the width of a terminal. */
static void say_what_was_written(const tare__cli_recording *recording, const tare__run_result *result, uint64_t bytes)
{
    char size[TARE__UNIT_BYTES];
    tare__text line = {0}, word = {0};
    tare__text_format(&line, "wrote %s (%s)", result->trace, tare__unit_bytes(size, (double)bytes));
    for (int i = 0; i < TARE__RECORDING_VIEWS && !line.failed; i++) {
        struct stat about;
        if (!recording->views[i] || stat(recording->views[i], &about) != 0)
            continue;
        tare__text_clear(&word);
        tare__text_string(&word, recording->views[i]);
        if (S_ISREG(about.st_mode))
            tare__text_format(&word, " (%s)", tare__unit_bytes(size, (double)about.st_size));
        if (line.length + word.length + 8 > TARE__EMIT_WIDTH) {
            tare__cli_say("tare", "%s", line.data);
            tare__text_clear(&line);
        }
        tare__text_format(&line, "%s%s", line.length ? ", " : "wrote ", word.failed ? "?" : word.data);
    }
    if (!line.failed)
        tare__cli_say("tare", "%s", line.data);
    tare__text_free(&line);
    tare__text_free(&word);
}

typedef struct left_behind {
    unsigned count;
    uint64_t bytes;
    time_t newest_at;
    char newest[TARE__PATH_BYTES];
} left_behind;

static void count_left(void *context, const tare__leftover *one)
{
    left_behind *left = context;
    if (one->state == TARE__LEFTOVER_SAVED || one->state == TARE__LEFTOVER_DAMAGED || one->state == TARE__LEFTOVER_PART)
        return;
    left->bytes += one->bytes;
    if (left->count++ == 0 || one->at >= left->newest_at) {
        left->newest_at = one->at;
        strcpy(left->newest, one->path);
    }
}

static void say_what_was_saved(unsigned count, uint64_t bytes)
{
    char size[TARE__UNIT_BYTES];
    if (count)
        tare__cli_say("tare", "saved %u killed %s to %s and freed %s", count, count == 1 ? "recording" : "recordings",
                      count == 1 ? "its trace" : "their traces", tare__unit_bytes(size, (double)bytes));
}

static void say_what_stays(const left_behind *left, const tare__tidied *tidied)
{
    char size[TARE__UNIT_BYTES];
    tare__unit_bytes(size, (double)left->bytes);
    if (left->count == 1)
        tare__cli_say("tare", "a recording was interrupted: tare report %s", left->newest);
    else if (left->count > 1)
        tare__cli_say("tare", "%u recordings were interrupted; newest: tare report %s", left->count, left->newest);
    if (left->count)
        tare__cli_say("tare", "tare clean saves %s to %s and frees %s", left->count == 1 ? "it" : "them",
                      left->count == 1 ? "its trace" : "their traces", size);
    if (tidied->unsavable)
        tare__cli_say("tare", "%u killed %s (%s) cannot be saved; tare clean shows why", tidied->unsavable,
                      tidied->unsavable == 1 ? "recording" : "recordings",
                      tare__unit_bytes(size, (double)tidied->unsavable_bytes));
}

/* Earlier killed recordings: their memory is freed once their data is in their traces. */
static void tidy_up(const tare__cli_recording *recording)
{
    left_behind left = {.count = 0};
    tare__tidied tidied;
    tare__leftovers_tidy(recording->quiet, count_left, &left, &tidied);
    if (recording->quiet)
        return;
    say_what_was_saved(recording->tidied.saved + tidied.saved, recording->tidied.saved_bytes + tidied.saved_bytes);
    say_what_stays(&left, &tidied);
}

/* The summary has them, too. A program whose stacks nobody asked for runs quietly: its trace has the notes. */
static void say_warnings(const char *lines)
{
    for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        tare__cli_say("tare", "warning: %.*s", (int)length, lines);
    }
}

/* Another run may have taken the name in the meantime, or the file may have been removed. */
static void keep_name(tare__run_result *result)
{
    bool reported = result->moved[0];
    tare__run_keep(result);
    if (result->moved[0] && !reported)
        tare__cli_say("tare", "%s", result->moved);
}

void tare__cli_recording_end(tare__cli_recording *recording, const char *me, tare__run_result *result)
{
    bool whole = result->launched && result->trace[0];
    tare__cli_live_end(&recording->live);
    signal(SIGPIPE, SIG_IGN); /* standard error may be closed; the exit status must still be right */
    bool wanted = !recording->quiet || wants_views(recording);
    if (whole && result->moved[0])
        tare__cli_say("tare", "%s", result->moved);
    uint64_t bytes = !whole ? 0 : result->lost ? result->trace_bytes : tare__cli_import_profiler(recording, me, result);
    if (whole && (wanted || tare__cli_keeps(&recording->keeping)))
        show(recording, me, result, wanted);
    if (whole && !result->lost)
        keep_name(result);
    if (whole && !recording->quiet && !result->lost)
        say_what_was_written(recording, result, bytes);
    if (result->problem[0])
        tare__cli_say("tare", "%s", result->problem);
    const tare__record_options *record = &recording->record;
    bool stacks_wanted = recording->attached || record->native_stacks || record->stack_interval_ns;
    if (recording->quiet && stacks_wanted)
        say_warnings(result->warnings);
    if (result->folder[0])
        tare__cli_say("tare", "the session folder %s was kept; tare report can read it", result->folder);
    if (whole)
        tidy_up(recording);
    tare__rules_free(recording->rules);
    recording->rules = NULL;
    if (whole && result->trace_fd > 0)
        close(result->trace_fd);
}
