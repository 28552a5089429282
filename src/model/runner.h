/* runner: a model file run through ONNX Runtime: how long it takes, how much it handles, what memory it needs.
 * Owned by the calling thread; what is run is run in a child process, so that its crash is one line of the report.
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
#define TARE__RUNNER_LIST_MAX 32u  /* batches, precisions, numbers of threads */
#define TARE__RUNNER_RUNS_MAX 1000000u

typedef struct tare__runner_file {
    const char *input; /* NULL: of the only one */
    const char *path;  /* .npy, or the bytes of the tensor and nothing else; NULL: the values that follow */
    double values[64]; /* as TARE__FILL_VALUES_MAX; one stands for all elements */
    size_t n_values;
    int64_t dims[32];  /* what an .npy says of its shape */
    int rank;          /* -1: nothing */
} tare__runner_file;
/* Reads what an .npy says of its shape; anything else has none. */
void tare__runner_file_shape(tare__runner_file *file);

typedef struct tare__runner_options {
    const char *model;
    const char *runtime;        /* --runtime: a library, or a folder that has it; NULL: it is looked for */
    const int64_t *batches;
    size_t n_batches;           /* 0: one, as the model has it */
    const char *const *precisions; /* "fp32", "fp16", … */
    size_t n_precisions;        /* 0: the one the weights are stored in */
    const unsigned *threads;
    size_t n_threads;           /* 0: as many as the runtime takes by itself */
    uint64_t runs;              /* timed ones of each configuration; 0: as many as `seconds` hold, 30 to 1,000 */
    uint64_t warmup;            /* runs; 0: until they are steady. */
    bool warmup_is_fixed;       /* … and 0 means none */
    double seconds;             /* for the timed runs of a configuration; 0: 3 */
    uint64_t seed;              /* of inputs that are generated */
    const tare__runner_file *files;
    size_t n_files;
    const char *pre, *post;     /* commands beside the model; NULL: none */
    bool no_layers;             /* leave out the profiled run */
    void (*progress)(void *context, const char *what, size_t done, size_t of);
    void *context;
} tare__runner_options;

/* ---- what was found ------------------------------------------------------------------------------------------- */
/* Quantiles of times, with intervals by order statistics; NaN bounds where there are too few. */
enum { TARE__RUNNER_P50, TARE__RUNNER_P95, TARE__RUNNER_P99, TARE__RUNNER_QUANTILES };
typedef struct tare__runner_times {
    const double *samples_ns; /* in order */
    size_t n;                 /* 0: nothing below is known */
    double min_ns, mean_ns, max_ns, deviation_ns;
    double quantile_ns[TARE__RUNNER_QUANTILES];
    tare__interval interval[TARE__RUNNER_QUANTILES]; /* at 95 % */
    size_t outliers; /* by Tukey's fences; none is left out */
} tare__runner_times;

typedef struct tare__runner_rate {
    const char *unit;        /* "samples/s", "images/s", "tokens/s", "requests/s" */
    double value;            /* of the median window of the timed runs */
    const double *windows;   /* in order */
    size_t n_windows;
    double low, high;        /* 95 % interval of the value; NaN: too few */
} tare__runner_rate;
#define TARE__RUNNER_RATES_MAX 4u

/* One configuration. Figures are NaN where they are not known. */
typedef struct tare__runner_result {
    const char *name;        /* "batch=4,precision=fp16,threads=1": what was asked for, and nothing else */
    int64_t batch;           /* 0: the model has none */
    const char *precision;   /* asked for */
    bool converted;          /* the file is stored in another: weights and constants were converted */
    unsigned threads;        /* 0: the runtime's own number */
    const char *failure;     /* a sentence without its full stop: it was not measured whole; NULL */
    bool ran;                /* there are timed runs */
    double runtime_ns, load_ns, first_ns;
    size_t warmup;           /* runs before the timed ones */
    bool steady;
    double warm_cv;          /* of the runs that were found steady */
    tare__runner_times latency;
    tare__runner_rate rates[TARE__RUNNER_RATES_MAX]; /* the first is the model's own unit */
    size_t n_rates;
    tare__runner_times end_to_end, pre, post; /* n is 0 where none was asked for */
    double memory_before_bytes; /* resident: the runtime, no model */
    double memory_loaded_bytes; /* … and the model */
    double memory_load_peak_bytes;
    double memory_peak_bytes;   /* while it ran */
    double memory_average_bytes;
    double memory_per_sample_bytes; /* what running adds to the loaded model, by the samples of a batch */
    bool best;               /* no other configuration is better in latency, throughput and memory at once */
    const char *executed;    /* "float32", "float16, float32"; NULL: it was not profiled */
    const char *executed_reason; /* why not, where it is NULL */
    size_t casts;            /* that the runtime inserted, where it was profiled */
    double casts_share;      /* of the time of all layers */
} tare__runner_result;

/* A node of the graph that the runtime made, from runs apart from the timed ones. */
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
    double flops;            /* a second; NaN */
    double roof_flops;       /* what the machine could do in this type at this many operations a byte; NaN */
    bool memory_bound;       /* the roof is the memory's */
    bool cast;               /* one that the runtime inserted */
    const char *roof_absent; /* why it is not set against its roof; NULL: it is, or computes nothing */
} tare__runner_layer;

/* From here on, what the runtime's profiler adds to each node is more than a part of its time: rates would be wrong. */
#define TARE__PROFILE_SLOWDOWN 1.5

/* A limit of --threshold against one configuration. */
typedef struct tare__runner_limit {
    const char *metric;      /* "latency", "throughput", "memory", "p99", … */
    const char *result;      /* the configuration's name */
    const char *unit;        /* "ns", "bytes", "samples/s" */
    bool at_least;           /* the value must not be below; else not above */
    double limit;
    double value;            /* NaN: not measured, which breaks it as well */
    bool broken;
    double by;               /* how far beyond it, as a share of it; NaN where it was not measured */
    const char *absent;      /* why there is no value; NULL */
} tare__runner_limit;

typedef struct tare__model_measured {
    const char *absent;      /* why nothing was measured: a sentence without its full stop; NULL */
    const char *runtime, *runtime_version; /* the library; NULL: none was found */
    const char *stored_precision; /* of the weights; NULL: not known */
    tare__runner_result *results;
    size_t n_results;
    const tare__runner_layer *layers; /* of the first result, the longest first */
    size_t n_layers;
    size_t layer_runs;
    double layers_ns;        /* of all in one run, the sum */
    double layers_slowdown;  /* that over the median latency of the same configuration; NaN: not known */
    const char *layers_absent; /* why there are none; NULL */
    tare__peaks peaks;       /* of the machine, on as many threads as were used; NaN */
    const tare__runner_limit *limits;
    size_t n_limits, n_broken;
    const char *const *notes;
    size_t n_notes;
    tare__arena *arena;
} tare__model_measured;

/* Measures; what cannot be is said in the result and is no failure. `report` is the file weighed with `weighed`, which
 * has dimensions and shapes of inputs. 0; TARE_E_INPUT: an input's file cannot be read or does not fit;
 * TARE_E_MEMORY. */
int tare__model_measure(const struct tare__model_report *report, const struct tare__model_options *weighed,
                        const tare__runner_options *options, tare__model_measured **measured, tare__error *error);
void tare__model_measured_free(tare__model_measured *measured); /* NULL is fine */

/* Where the library is: what was asked for, TARE_ONNXRUNTIME, the active virtual environment, the wheel of python3, the
 * loader's path. 0 and a path or a name for the loader; TARE_E_INPUT with a sentence: what was asked for is not
 * there. */
int tare__runner_find(const char *asked, tare__text *path, tare__error *error);

/* Whether there is one that can be opened. */
void tare__runner_doctor(tare__sample_check_sink *sink, void *context);

/* ---- the loop itself, for who measures it --------------------------------------------------------------------- */
typedef struct tare__ort tare__ort;
typedef struct tare__ort_session tare__ort_session;
/* Times `runs` runs; `begin_ns` and `took_ns` have room for them. Stops after `until_ns` of the monotonic clock once
 * there were `least`. *done counts them as they come. 0, or TARE_E_INPUT with the runtime's sentence. */
int tare__ort_loop(tare__ort_session *session, size_t runs, size_t least, uint64_t until_ns, double *begin_ns,
                   double *took_ns, size_t *done, tare__error *error);

/* ---- parts of it, for who runs the model otherwise ------------------------------------------------------------- */
/* Writes the model at `path` to `out` in half precision; inputs and outputs stay as they are. 0; TARE_E_USAGE: it
 * cannot be converted, and why; TARE_E_INPUT, TARE_E_MEMORY, TARE_E_SYSTEM. With a sentence. */
int tare__half_convert(const char *path, const char *out, tare__error *error);

typedef struct tare__runner_tensor {
    const char *name, *type; /* "float32" */
    const int64_t *dims;
    size_t rank, bytes;
    const void *data;
} tare__runner_tensor;
/* What the runner feeds an input of a report with: the same seed, the same values. All of it is the arena's. */
int tare__runner_generate(const struct tare__model_report *report, size_t input, uint64_t seed, tare__arena *arena,
                          tare__runner_tensor *tensor, tare__error *error);

/* A node of a profile that the runtime wrote. */
typedef struct tare__runner_node {
    const char *name, *op, *provider;
    const char *type;      /* of the first input that is a floating-point number; NULL: none is */
    uint64_t calls;        /* in all runs */
    const double *run_ns;  /* own time in each run */
    double output_bytes;   /* NaN: not told */
} tare__runner_node;
/* Reads it, but for its first run. At most 63 runs count. One thread of the process at a time. */
int tare__runner_profile(const char *path, tare__arena *arena, tare__runner_node **nodes, size_t *n, size_t *runs,
                         tare__error *error);

#endif
