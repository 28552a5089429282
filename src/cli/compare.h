/* compare: what the files of `tare compare` share. One thread.
 * Must not know how figures are compared or shown. */
#ifndef TARE_CLI_COMPARE_H
#define TARE_CLI_COMPARE_H

#include "analyze/analyze.h"
#include "cli.h"
#include "emit/emit.h"

#define TARE__COMPARE_ME "tare compare"

typedef struct tare__cli_ab_options {
    const char *commands[2];
    bool bare, quiet, passed_output;
    const char *keep;     /* folder for the traces; NULL: they go */
    uint64_t rounds, warmup, seconds_ns; /* at most; seconds_ns 0: no limit */
    double min_change;    /* NaN: the default */
    uint64_t seed;
} tare__cli_ab_options;

/* What the rounds came to. `ab` and the two lists are the caller's to show and free. */
typedef struct tare__cli_ab_result {
    tare__figures *sides[2]; /* NULL: not a single round was finished */
    tare__compare_ab ab;
    tare__decision decision; /* of the figure that decides */
    char answer[512];
} tare__cli_ab_result;

/* Runs both commands in turn until it decides. 0, also when it was interrupted; TARE_E_INPUT when a command
 * failed, else another status; with a sentence. */
int tare__cli_ab(const tare__cli_ab_options *options, tare__cli_ab_result *result, tare__error *error);

#endif
