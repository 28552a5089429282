/* inputs: figures from the files that a user names: recorded runs, reports of models, baselines, folders of these.
 * One thread.
 * Must not know what they are used for. */
#ifndef TARE_CLI_INPUTS_H
#define TARE_CLI_INPUTS_H

#include "analyze/analyze.h"
#include "cli.h"

/* Figures of one file of any kind. An unfinished or damaged trace is not a failure: its notes state it. 0;
 * TARE_E_INPUT, TARE_E_VERSION, … with a message. */
int tare__cli_load_figures(const char *path, tare__figures **figures, tare__error *error);
/* One side of a comparison: files, and all .tare and .json files of a folder. Of several, one sample per run.
 * 0, or a status with a message. */
int tare__cli_load_side(char *const *paths, size_t n, tare__figures **figures, tare__error *error);
/* Joins the figures of `n` sources, each of which `load` reads. 0, or a status with a message. */
typedef int tare__cli_load_one(const void *context, size_t i, tare__figures **figures, tare__error *error);
int tare__cli_load_joined(size_t n, tare__cli_load_one *load, const void *context, tare__figures **figures,
                          tare__error *error);
/* Exit status of a command that could not read its input: 1, 2 or 3. */
int tare__cli_load_exit(int status);

#endif
