/* runner: runs a model file with ONNX Runtime: load time, latency, throughput, memory.
 * Owned by the calling thread; the model runs in a child process, so that a crash is one line of the report.
 * Must not know how anything is shown. */
#ifndef TARE_MODEL_RUNNER_H
#define TARE_MODEL_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "sample/sample.h"
#include "stat/stat.h"

struct tare__model_report;
struct tare__model_options;

/* ---- what is asked for ------------------------------------------------------------------------------------------- */
#define TARE__RUNNER_RUNS_MAX 1000000u

typedef struct tare__runner_file {
    const char *input; /* NULL: of the only input */
    const char *path;  /* .npy, or the raw bytes of the tensor; NULL: the values that follow */
    double values[64]; /* as TARE__FILL_VALUES_MAX; a single one fills all elements */
    size_t n_values;
    int64_t dims[32];  /* shape in an .npy */
    int rank;          /* -1: nothing */
} tare__runner_file;
/* Reads the shape in an .npy; other files have none. */
void tare__runner_file_shape(tare__runner_file *file);

typedef struct tare__runner_options {
    const char *model;
    const char *runtime;        /* --runtime: a library, or a directory that contains it; NULL: search for it */
    const int64_t *batches;
    size_t n_batches;           /* 0: one, as in the model */
    const char *const *precisions; /* "fp32", "fp16", … */
    size_t n_precisions;        /* 0: that of the stored weights */
    const unsigned *threads;
    size_t n_threads;           /* 0: the runtime's default */
    uint64_t runs;              /* timed ones per configuration; 0: as many as fit in `seconds`, 30 to 1,000 */
    uint64_t warmup;            /* runs; 0: until run times are stable. */
    bool warmup_is_fixed;       /* … and 0 means none */
    double seconds;             /* for the timed runs of a configuration; 0: 3 */
    uint64_t seed;              /* of generated inputs */
    const tare__runner_file *files;
    size_t n_files;
    const char *pre, *post;     /* pre- and postprocessing commands; NULL: none */
    bool no_layers;             /* skip the profiled run */
    void (*progress)(void *context, const char *what, size_t done, size_t of);
    void *context;
} tare__runner_options;

/* ---- what was found ------------------------------------------------------------------------------------------- */
/* Quantiles of times, with intervals from order statistics; NaN bounds if there are too few. */
enum { TARE__RUNNER_P50, TARE__RUNNER_P95, TARE__RUNNER_P99, TARE__RUNNER_QUANTILES };
typedef struct tare__runner_times {
    const double *samples_ns; /* in order */
    size_t n;                 /* 0: nothing below is known */
    double min_ns, mean_ns, max_ns, deviation_ns;
    double quantile_ns[TARE__RUNNER_QUANTILES];
    tare__interval interval[TARE__RUNNER_QUANTILES]; /* at 95 % */
    size_t outliers; /* by Tukey's fences; none is dropped */
} tare__runner_times;

typedef struct tare__runner_rate {
    const char *unit;        /* "samples/s", "images/s", "tokens/s", "requests/s" */
    double value;            /* of the median window of the timed runs */
    const double *windows;   /* in order */
    size_t n_windows;
    double low, high;        /* 95 % interval of the value; NaN: too few */
} tare__runner_rate;
#define TARE__RUNNER_RATES_MAX 4u

/* One configuration. Unknown figures are NaN. */
typedef struct tare__runner_result {
    const char *name;        /* "batch=4,precision=fp16,threads=1": only the requested ones */
    int64_t batch;           /* 0: the model has no batch dimension */
    const char *precision;   /* as requested */
    bool converted;          /* the file has another precision: weights and constants were converted */
    unsigned threads;        /* 0: the runtime's default */
    const char *failure;     /* a sentence without its full stop: why it was not measured completely; NULL */
    bool ran;                /* there are timed runs */
    double runtime_ns, load_ns, first_ns;
    size_t warmup;           /* runs before the timed ones */
    bool steady;
    double warm_cv;          /* of the runs that were found stable */
    tare__runner_times latency;
    tare__runner_rate rates[TARE__RUNNER_RATES_MAX]; /* the first is the model's own unit */
    size_t n_rates;
    tare__runner_times end_to_end, pre, post; /* n is 0 if not requested */
    double memory_before_bytes; /* resident: the runtime, no model */
    double memory_loaded_bytes; /* … and the model */
    double memory_load_peak_bytes;
    double memory_peak_bytes;   /* while it ran */
    double memory_average_bytes;
    double memory_per_sample_bytes; /* memory that running adds to the loaded model, divided by the batch size */
    bool best;               /* no other configuration is better in latency, throughput and memory at once */
    const char *executed;    /* "float32", "float16, float32"; NULL: not profiled */
    const char *executed_reason; /* reason if it is NULL */
    size_t casts;            /* inserted by the runtime, if profiled */
    double casts_share;      /* of the time of all layers */
} tare__runner_result;

/* A node of the optimized graph, from separate runs. */
typedef struct tare__runner_layer {
    const char *name, *op, *provider;
    const char *types;       /* "float32" */
    double calls;            /* in one run */
    double time_ns;          /* of one run, the median */
    const double *samples_ns; /* of each run */
    size_t n_samples;
    double share;            /* of all layers */
    bool counted;            /* its MACs are known */
    uint64_t macs;           /* of one run */
    double bytes;            /* read and written */
    double flops;            /* per second; NaN */
    double roof_flops;       /* peak performance of the machine in this type at this arithmetic intensity; NaN */
    bool memory_bound;       /* limited by memory bandwidth */
    bool cast;               /* inserted by the runtime */
    const char *roof_absent; /* why it is not compared with its roof; NULL: it is, or computes nothing */
} tare__runner_layer;

/* Above this factor, the overhead of the runtime's profiler per node dominates: rates would be wrong. */
#define TARE__PROFILE_SLOWDOWN 1.5

/* A limit of --threshold for one configuration. */
typedef struct tare__runner_limit {
    const char *metric;      /* "latency", "throughput", "memory", "p99", … */
    const char *result;      /* the configuration's name */
    const char *unit;        /* "ns", "bytes", "samples/s" */
    bool at_least;           /* a minimum; else a maximum */
    double limit;
    double value;            /* NaN: not measured, which also fails */
    bool broken;
    double by;               /* excess as a share of the limit; NaN if not measured */
    const char *absent;      /* why there is no value; NULL */
} tare__runner_limit;

typedef struct tare__model_measured {
    const char *absent;      /* why nothing was measured: a sentence without its full stop; NULL */
    const char *runtime, *runtime_version; /* the library; NULL: not found */
    const char *stored_precision; /* of the weights; NULL: unknown */
    tare__runner_result *results;
    size_t n_results;
    const tare__runner_layer *layers; /* of the first result, the longest first */
    size_t n_layers;
    size_t layer_runs;
    double layers_ns;        /* of all in one run, the sum */
    double layers_slowdown;  /* that over the median latency of the same configuration; NaN: unknown */
    const char *layers_absent; /* why there are none; NULL */
    tare__peaks peaks;       /* of the machine, on as many threads as were used; NaN */
    const tare__runner_limit *limits;
    size_t n_limits, n_broken;
    const char *const *notes;
    size_t n_notes;
    tare__arena *arena;
} tare__model_measured;

/* Measures; failures of single configurations are part of the result. `report` is the static analysis of the file
 * with the options `analyzed`, which have dimensions and shapes of inputs. 0; TARE_E_INPUT: an input file cannot be
 * read or does not match; TARE_E_MEMORY. */
int tare__model_measure(const struct tare__model_report *report, const struct tare__model_options *analyzed,
                        const tare__runner_options *options, tare__model_measured **measured, tare__error *error);
void tare__model_measured_free(tare__model_measured *measured); /* NULL is allowed */

/* Finds the library: as requested, TARE_ONNXRUNTIME, the active virtual environment, the wheel of python3, the
 * loader's path. 0 and a path or a name for the loader; TARE_E_INPUT with a message: the requested one does not
 * exist. */
int tare__runner_find(const char *requested, tare__text *path, tare__error *error);

/* Whether there is one that can be opened. */
void tare__runner_doctor(tare__sample_check_sink *sink, void *context);

/* ---- the loop itself, for who measures it --------------------------------------------------------------------- */
typedef struct tare__ort tare__ort;
typedef struct tare__ort_session tare__ort_session;
/* Times `runs` runs; `begin_ns` and `took_ns` have space for them. Stops after `until_ns` of the monotonic clock
 * once there were `least`. *done is updated after each. 0, or TARE_E_INPUT with the runtime's message. */
int tare__ort_loop(tare__ort_session *session, size_t runs, size_t least, uint64_t until_ns, double *begin_ns,
                   double *took_ns, size_t *done, tare__error *error);

/* ---- parts of it, for who runs the model otherwise ------------------------------------------------------------- */
/* Writes the model at `path` to `out` in half precision; inputs and outputs are not changed. 0; TARE_E_USAGE: it
 * cannot be converted, with the reason; TARE_E_INPUT, TARE_E_MEMORY, TARE_E_SYSTEM. With a message. */
int tare__half_convert(const char *path, const char *out, tare__error *error);

typedef struct tare__runner_tensor {
    const char *name, *type; /* "float32" */
    const int64_t *dims;
    size_t rank, bytes;
    const void *data;
} tare__runner_tensor;
/* The values that the runner uses for an input of a report: the same for the same seed. Allocated in the arena. */
int tare__runner_generate(const struct tare__model_report *report, size_t input, uint64_t seed, tare__arena *arena,
                          tare__runner_tensor *tensor, tare__error *error);

/* A node of a profile that the runtime wrote. */
typedef struct tare__runner_node {
    const char *name, *op, *provider;
    const char *type;      /* of the first floating-point input; NULL: none */
    uint64_t calls;        /* in all runs */
    const double *run_ns;  /* own time in each run */
    double output_bytes;   /* NaN: unknown */
} tare__runner_node;
/* Reads it, except for its first run. At most 63 runs count. One thread of the process at a time. */
int tare__runner_profile(const char *path, tare__arena *arena, tare__runner_node **nodes, size_t *n, size_t *runs,
                         tare__error *error);

#endif
