/* recording: shared by `tare run` and `tare attach`: options, the status line, and messages and files at the end. One
 * thread.
 * Must not know how recording works. */
#ifndef TARE_CLI_RECORDING_H
#define TARE_CLI_RECORDING_H

#include <time.h>

#include "cli.h"
#include "collect/collect.h"
#include "keep.h"

/* ---- options -------------------------------------------------------------------------------------- */
enum {
    TARE__RECORDING_READABLE = 100,
    TARE__RECORDING_INTERVAL,
    TARE__RECORDING_WITHOUT,
    TARE__RECORDING_STACKS,
    TARE__RECORDING_NO_STACKS,
    TARE__RECORDING_CARBON,
    TARE__RECORDING_TAG
};
#define TARE__RECORDING_VIEWS 10

/* Rows of the option table of a command whose settings have a member `recording`. */
#define TARE__RECORDING_OPTIONS(settings)                                                                              \
    {"output", 'o', "FILE",                                                                                            \
     "trace file to write (default: named after the script, train.tare; train.2.tare if it exists)",                   \
     TARE__CLI_TEXT(settings, recording.record.output)},                                                               \
    {"force", 'f', NULL, "overwrite the output file", TARE__CLI_SETS(settings, recording.record.overwrite)},           \
    {"quiet", 'q', NULL, "print errors and warnings only, no summary", TARE__CLI_SETS(settings, recording.quiet)},     \
    {"html", 0, "FILE", "write an interactive HTML report", TARE__CLI_TEXT(settings, recording.views[0])},             \
    {"json", 0, "FILE", "write every table as JSON", TARE__CLI_TEXT(settings, recording.views[1])},                    \
    {"csv", 0, "DIR", "write every table as a CSV file to this directory",                                             \
     TARE__CLI_TEXT(settings, recording.views[2])},                                                                    \
    {"chrome", 0, "FILE", "write a Chrome trace (JSON) for chrome://tracing and ui.perfetto.dev",                      \
     TARE__CLI_TEXT(settings, recording.views[3])},                                                                    \
    {"perfetto", 0, "FILE", "write a Perfetto trace (protobuf) for ui.perfetto.dev",                                   \
     TARE__CLI_TEXT(settings, recording.views[4])},                                                                    \
    {"tensorboard", 0, "DIR", "write a TensorBoard profile to this directory",                                         \
     TARE__CLI_TEXT(settings, recording.views[5])},                                                                    \
    {"flamegraph", 0, "FILE", "write a flame graph of the stack samples (SVG)",                                        \
     TARE__CLI_TEXT(settings, recording.views[6])},                                                                    \
    {"folded", 0, "FILE", "write the stack samples as folded stacks for flamegraph.pl, inferno and speedscope",        \
     TARE__CLI_TEXT(settings, recording.views[7])},                                                                    \
    {"speedscope", 0, "FILE", "write the stack samples (JSON) for speedscope.app",                                     \
     TARE__CLI_TEXT(settings, recording.views[8])},                                                                    \
    {"pprof", 0, "FILE", "write the stack samples (profile.proto, gzip) for pprof",                                    \
     TARE__CLI_TEXT(settings, recording.views[9])},                                                                    \
    {"interval", 0, "TIME", "sampling interval, from 1ms to 60s (default 100ms)", TARE__RECORDING_INTERVAL},           \
    {"disable", 0, "LIST", "samplers to disable, separated by commas: process, system, container, power, nvml",        \
     TARE__RECORDING_WITHOUT},                                                                                         \
    {"stacks", 0, "HZ", "sample call stacks of Python programs HZ times per second, from 1 to 10000 (default 100)",    \
     TARE__RECORDING_STACKS},                                                                                          \
    {"native", 0, NULL, "also sample native call stacks (C, C++, Rust) of all programs",                               \
     TARE__CLI_SETS(settings, recording.record.native_stacks)},                                                        \
    {"no-stacks", 0, NULL, "do not sample call stacks", TARE__RECORDING_NO_STACKS},                                    \
    {"carbon", 0, "GRAMS", "grid carbon intensity in g CO2/kWh", TARE__RECORDING_CARBON},                              \
    {"rules", 0, "FILE", "add findings from user-defined rules", TARE__CLI_TEXT(settings, recording.rules_file)},      \
    {"live", 0, NULL, "show a status line while the program runs (terminal only)",                                     \
     TARE__CLI_SETS(settings, recording.wants_live)},                                                                  \
    {"max-size", 0, "SIZE", "maximum size of the trace (500M, 2G); the oldest events are dropped first",               \
     TARE__CLI_BYTES(settings, recording.record.max_bytes)},                                                           \
    {"last", 0, "TIME", "keep only the last TIME of events (60s, 5m)",                                                 \
     TARE__CLI_TIME(settings, recording.record.last_ns)},                                                              \
    {"readable", 0, NULL, "make the trace readable by other users (default: owner only)", TARE__RECORDING_READABLE},   \
    {"tag", 0, "TAG", "tag the run in the history; can be repeated", TARE__RECORDING_TAG},                             \
    {"no-history", 0, NULL, "do not add this run to the history", TARE__CLI_SETS(settings, recording.keeping.off)},    \
    {"store", 0, "PLACE",                                                                                              \
     "history to use: a directory, a file, a postgres:// URL, or off (default: in the user's data directory)",         \
     TARE__CLI_TEXT(settings, recording.keeping.store)}

/* ---- the status line -------------------------------------------------------------------------------- */
typedef struct tare__cli_live {
    bool on, shown;
    uint64_t at_ns, steps; /* of the current line */
} tare__cli_live;

void tare__cli_live_begin(tare__cli_live *live, bool wanted); /* nothing is shown without a terminal */
void tare__cli_live_update(tare__cli_live *live, const tare__run_progress *progress);
void tare__cli_live_words(tare__cli_live *live, const tare__run_progress *progress, tare__text *out);
void tare__cli_live_end(tare__cli_live *live); /* removes the line */

/* ---- the recording ---------------------------------------------------------------------------------- */
typedef struct tare__cli_recording {
    tare__record_options record;
    const char *rules_file;
    bool quiet, wants_live;
    bool attached; /* to a process that runs already: its stacks are most of what can be seen of it */
    const char *views[TARE__RECORDING_VIEWS]; /* html, json, csv, …: output path; NULL: not wanted */
    struct tare__rules *rules;
    tare__cli_live live;
    tare__cli_keeping keeping;
    tare__tidied tidied; /* earlier killed recordings, before this one began */
} tare__cli_recording;

/* One option of the rows above that is not simply stored. 0, or TARE_E_USAGE with a message. */
int tare__cli_recording_take(tare__cli_recording *recording, int key, const char *argument, tare__error *error);
/* Checks combinations once all options are known: 0, or TARE_E_USAGE with a message. */
int tare__cli_recording_check(const tare__cli_recording *recording, tare__error *error);
/* Checks before the program runs, so that nothing is lost when it ends: the rules can be read, the views can be
 * written. 0, or a status with a message. */
int tare__cli_recording_begin(tare__cli_recording *recording, tare__error *error);
/* Writes summary, views and messages; then frees the rules. `me` is the command, for error messages. */
void tare__cli_recording_end(tare__cli_recording *recording, const char *me, tare__run_result *result);

/* ---- the program's own profiler ------------------------------------------------------------------------- */
/* Adds what it wrote during the recording to the trace, before that is shown. Returns the trace's bytes. */
uint64_t tare__cli_import_profiler(const tare__cli_recording *recording, const char *me,
                              const tare__run_result *result);

#endif
