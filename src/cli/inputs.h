/* inputs: figures from the files that a user names: recorded runs, reports of models, baselines, folders of these.
 * One thread.
 * Must not know what is done with them. */
#ifndef TARE_CLI_INPUTS_H
#define TARE_CLI_INPUTS_H

#include "analyze/analyze.h"
#include "cli.h"

/* Figures of one file, whichever it is. An unfinished or damaged trace is no failure: its notes say so. 0;
 * TARE_E_INPUT, TARE_E_VERSION, … with a sentence. */
int tare__cli_load_figures(const char *path, tare__figures **figures, tare__error *error);
/* One side of a comparison: files, and of a folder all .tare and .json files in it. Of several, one sample a run.
 * 0, or a status with a sentence. */
int tare__cli_load_side(char *const *paths, size_t n, tare__figures **figures, tare__error *error);
/* What a command ends with that could not read its input: 1, 2 or 3. */
int tare__cli_load_exit(int status);

#endif
