/* model: declarations shared by the files of `tare model`: the parsed command line. One thread.
 * Must not know how a model is read or run. */
#ifndef TARE_CLI_MODEL_H
#define TARE_CLI_MODEL_H

#include "cli.h"
#include "emit/emit.h"
#include "keep.h"
#include "model/model.h"
#include "model_measure.h"

#define TARE__MODEL_BATCHES_MAX 32u

typedef struct tare__cli_model {
    const char *path; /* the model */
    const char *format, *output, *folder;
    int64_t batches[TARE__MODEL_BATCHES_MAX]; /* the file is analyzed at the first, measured at each */
    size_t n_batches;                         /* 0: not given */
    tare__model_options options;              /* batch: the first of them */
    tare__cli_measure measure;
    tare__emit_options emit;
    tare__cli_keeping keeping;
    char *default_output; /* default name of a page */
    tare__arena *arena;   /* of the options */
} tare__cli_model;

#endif
