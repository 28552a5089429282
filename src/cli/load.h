/* load: the figures of what a word names: a recorded run, a model's report, a baseline. One thread.
 * Must not know what is done with them. */
#ifndef TARE_CLI_LOAD_H
#define TARE_CLI_LOAD_H

#include "analyze/analyze.h"
#include "cli.h"

/* Of one file. 0, or a status with a sentence that names the file. */
int tare__cli_load_figures(const char *path, tare__figures **figures, tare__error *error);
/* Of several files that are runs of one thing: one sample a run. Of a single one its own. */
int tare__cli_load_runs(char *const *paths, size_t n, tare__figures **figures, tare__error *error);
/* What a command ends with that could not read its input: 1, 2 or 3. */
int tare__cli_load_exit(int status);

#endif
