/* check: what the files of `tare check` share: its settings, where they come from, and running a command again.
 * One thread.
 * Must not know how the answer is found. */
#ifndef TARE_CLI_CHECK_H
#define TARE_CLI_CHECK_H

#include "analyze/analyze.h"
#include "cli.h"

#define TARE__CHECK_RUNS_MAX 100u

typedef struct tare__cli_check_settings {
    const char *baseline, *rerun, *junit, *markdown, *output;
    char *baseline_of_file, *rerun_of_file; /* NULL: no file names one */
    unsigned reruns; /* 0: as many as the baseline asks for */
    double gate;     /* NaN: by machine */
    bool all, json, github, quiet;
    tare__threshold *thresholds; /* those of files first: the last one that names a figure counts */
    size_t n_thresholds, room;
} tare__cli_check_settings;

/* One threshold more. 0, or a status with a sentence. */
int tare__cli_check_threshold(tare__cli_check_settings *settings, const char *name, const char *limit,
                              const char *what, tare__error *error);
int tare__cli_check_gate(tare__cli_check_settings *settings, const char *argument, const char *what,
                         tare__error *error);
int tare__cli_check_reruns(tare__cli_check_settings *settings, const char *argument, const char *what,
                           tare__error *error);
/* What stands in [tool.tare.check] of ./pyproject.toml and in [check] of ./tare.toml, which goes before it. */
int tare__cli_check_read_files(tare__cli_check_settings *settings, tare__error *error);

/* Runs the shell's command `times` times under `tare run`, its output on standard error, and reads the figures. 0, or
 * a status with a sentence: the command failed, or could not be run. */
int tare__cli_check_again(const char *command, unsigned times, tare__figures **figures, tare__error *error);

#endif
