/* compare: declarations shared by the files of `tare compare`. One thread.
 * Must not know how figures are compared or shown. */
#ifndef TARE_CLI_COMPARE_H
#define TARE_CLI_COMPARE_H

#include "analyze/analyze.h"
#include "cli.h"
#include "emit/emit.h"
#include "views.h"

#define TARE__COMPARE_ME "tare compare"

typedef struct tare__cli_ab_options {
    const char *commands[2];
    bool bare, quiet, passed_output;
    const char *keep;     /* folder for the traces; NULL: they are removed */
    uint64_t rounds, warmup, seconds_ns; /* maximum; seconds_ns 0: no limit */
    double min_change;    /* NaN: the default */
    uint64_t seed;
} tare__cli_ab_options;

/* Writes a comparison, completely or not at all. `format` NULL: text; `output` NULL: standard output. Returns the exit
 * status. */
int tare__compare_write(const tare__emit_comparison *input, const char *format, const char *output,
                        const tare__emit_options *options, tare__error *error);

/* The result of the rounds. The caller shows and frees `ab` and the two lists. */
typedef struct tare__cli_ab_result {
    tare__figures *sides[2]; /* NULL: no round was finished */
    tare__compare_ab ab;
    tare__decision decision; /* of the figure that decides */
    char answer[512];
} tare__cli_ab_result;

/* Runs both commands alternately until there is a decision. 0, also if interrupted; TARE_E_INPUT if a command failed,
 * else another status; with a message. */
int tare__cli_ab(const tare__cli_ab_options *options, tare__cli_ab_result *result, tare__error *error);

#endif
