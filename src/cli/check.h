/* check: declarations shared by the files of `tare check`: its settings, their sources, and rerunning a command.
 * One thread.
 * Must not know how the result is found. */
#ifndef TARE_CLI_CHECK_H
#define TARE_CLI_CHECK_H

#include "analyze/analyze.h"
#include "cli.h"

#define TARE__CHECK_RUNS_MAX 100u

typedef struct tare__cli_check_settings {
    const char *baseline, *rerun, *junit, *markdown, *output;
    char *baseline_of_file; /* NULL: not set by a file */
    const char *store;
    uint64_t window; /* revisions of the history to compare with; 0: not given */
    bool no_history;
    unsigned reruns; /* 0: as many as the baseline requires */
    double gate;     /* NaN: depends on the machine */
    bool all, json, github, quiet;
    tare__threshold *thresholds; /* those of files first: the last one for a figure takes precedence */
    size_t n_thresholds, room;
} tare__cli_check_settings;

/* Adds a threshold. 0, or a status with a message. */
int tare__cli_check_threshold(tare__cli_check_settings *settings, const char *name, const char *limit,
                              const char *what, tare__error *error);
int tare__cli_check_gate(tare__cli_check_settings *settings, const char *argument, const char *what,
                         tare__error *error);
int tare__cli_check_reruns(tare__cli_check_settings *settings, const char *argument, const char *what,
                           tare__error *error);
/* Reads [tool.tare.check] of ./pyproject.toml and [check] of ./tare.toml, which takes precedence. */
int tare__cli_check_read_files(tare__cli_check_settings *settings, tare__error *error);

/* Recent runs of the same command on the same machine: one sample per revision, the median of its runs. */
#define TARE__CHECK_WINDOW 10u
typedef struct tare__check_window {
    tare__figures *figures; /* NULL: none */
    size_t n;               /* revisions */
    uint64_t oldest_ns;
    char name[80];
} tare__check_window;
/* At most this many revisions before the runs of `head`, of the default branch if the history has some. 0, even if
 * there are none; a status with a message if the history cannot be read. */
int tare__cli_check_window(const char *setting, const tare__figures *head, size_t most, tare__check_window *out,
                           tare__error *error);

/* Runs the shell command `times` times under `tare run`, with its output on standard error, and reads the figures. 0,
 * or a status with a message: the command failed, or could not be run. */
int tare__cli_check_again(const char *command, unsigned times, tare__figures **figures, tare__error *error);

#endif
