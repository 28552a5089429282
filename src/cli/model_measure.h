/* model_measure: the measured half of `tare model`: its options, the run, its thresholds, its figures. One thread.
 * Must not know how a model is run or laid out. */
#ifndef TARE_CLI_MODEL_MEASURE_H
#define TARE_CLI_MODEL_MEASURE_H

#include "analyze/analyze.h"
#include "cli.h"
#include "model/model.h"

#define TARE__MEASURE_LIST_MAX 16u

/* Keys of its options that are not simply stored. */
enum {
    TARE__MEASURE_RUNS = 1000,
    TARE__MEASURE_WARMUP,
    TARE__MEASURE_SECONDS,
    TARE__MEASURE_THREADS,
    TARE__MEASURE_PRECISION,
    TARE__MEASURE_INPUT,
    TARE__MEASURE_SEED,
    TARE__MEASURE_THRESHOLD
};

/* Rows of the option table of a command whose settings have a member `measure`. */
#define TARE__MEASURE_OPTIONS(settings)                                                                              \
    {"static", 0, NULL, "analyze the file only; do not run the model",                                               \
     TARE__CLI_SETS(settings, measure.only_static)},                                                                 \
    {"runs", 'n', "N", "timed runs per configuration (default: as many as fit in --duration, from 30 to 1,000)",     \
     TARE__MEASURE_RUNS},                                                                                            \
    {"duration", 0, "S", "time for the runs of a configuration (default 3s)", TARE__MEASURE_SECONDS},                \
    {"warmup", 0, "N", "number of warm-up runs (default: until run times are stable)", TARE__MEASURE_WARMUP},        \
    {"precision", 0, "P[,P…]",                                                                                       \
     "precisions to run: fp32, fp16, …; an fp32 model is converted for fp16 (default: as stored)",                   \
     TARE__MEASURE_PRECISION},                                                                                       \
    {"threads", 0, "N[,N…]", "intra-op threads (default: chosen by ONNX Runtime)", TARE__MEASURE_THREADS},           \
    {"input", 'i', "NAME=VALUE", "value of an input: 16000, 1,2,3 or a file (.npy, raw bytes); can be repeated",     \
     TARE__MEASURE_INPUT},                                                                                           \
    {"seed", 0, "N", "seed for generated inputs (default 0)", TARE__MEASURE_SEED},                                   \
    {"pre", 0, "CMD", "command that produces the inputs of each request, for end-to-end latency",                    \
     TARE__CLI_TEXT(settings, measure.options.pre)},                                                                 \
    {"post", 0, "CMD", "command that consumes the outputs of each request, for end-to-end latency",                  \
     TARE__CLI_TEXT(settings, measure.options.post)},                                                                \
    {"threshold", 't', "NAME:LIMIT",                                                                                 \
     "fail if exceeded: latency:100ms, throughput:1000samples/s, memory:2GB, p99:120ms; can be repeated",            \
     TARE__MEASURE_THRESHOLD},                                                                                       \
    {"no-layers", 0, NULL, "skip the profiled run that times layers",                                                \
     TARE__CLI_SETS(settings, measure.options.no_layers)},                                                           \
    {"runtime", 0, "PATH", "ONNX Runtime library, or a directory that contains it (default: search)",                \
     TARE__CLI_TEXT(settings, measure.options.runtime)},                                                             \
    {"quiet", 'q', NULL, "show no progress", TARE__CLI_SETS(settings, measure.quiet)}

typedef struct tare__cli_measure {
    tare__runner_options options;
    const char *precisions[TARE__MEASURE_LIST_MAX];
    unsigned threads[TARE__MEASURE_LIST_MAX];
    tare__runner_file files[TARE__MEASURE_LIST_MAX];
    tare__threshold thresholds[TARE__MEASURE_LIST_MAX];
    size_t n_thresholds;
    bool only_static;
    bool requested; /* an option was given that requires running the model */
    bool quiet;
} tare__cli_measure;

/* Parses one option; new texts are allocated in the arena. 0 or TARE_E_USAGE with a message. */
int tare__measure_take(tare__cli_measure *settings, int key, const char *argument, tare__arena *arena,
                       tare__error *error);
/* Whether a word that is not an option belongs to the preceding --threshold; then it is added. 0 and *taken, or
 * TARE_E_USAGE. */
int tare__measure_take_word(tare__cli_measure *settings, const char *word, bool *taken, tare__error *error);
/* After all options. 0 or TARE_E_USAGE. */
int tare__measure_check(tare__cli_measure *settings, const tare__cli_words *words, tare__error *error);

/* Runs the model and checks it against the thresholds. *measured is NULL with --static. 0, or a status with a
 * message. */
int tare__measure_run(tare__cli_measure *settings, const char *path, const int64_t *batches, size_t n_batches,
                      const tare__model_report *report, const tare__model_options *analyzed,
                      tare__model_measured **measured, tare__error *error);
/* The report's figures with a description of the machine. 0 or TARE_E_MEMORY. */
int tare__measure_figures(const char *path, const tare__model_options *analyzed, const tare__model_report *report,
                          const tare__model_measured *measured, tare__figures **figures);
/* The exit status of the command, with a message on standard error: 0; 1: a threshold is exceeded, or the runtime is
 * missing although measuring was requested; 3: the model cannot be run. */
int tare__measure_exit(const tare__cli_measure *settings, const tare__model_measured *measured);

/* ---- thresholds (model_limits.c) ------------------------------------------------------------------------- */
/* Whether a model has a figure of this name, and the unit matches it. 0 or TARE_E_USAGE. */
int tare__limits_check(const tare__threshold *threshold, tare__error *error);
/* Fills the limits of `measured`. 0 or TARE_E_MEMORY. */
int tare__limits_hold(const tare__threshold *thresholds, size_t n, tare__model_measured *measured);

#endif
