/* tare_engine: reads traces into tables and shows them, for the command and the Python package. Private for now: its
 * functions may change. An object is used by one thread at a time; different ones by any threads.
 * Must not know where output goes, nor print. */
#ifndef TARE_ENGINE_H
#define TARE_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "arrow.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TARE_ENGINE_API   __attribute__((visibility("default")))
#define TARE_ENGINE_ERROR 512 /* bytes of a message */

/* A trace that was read, with all its tables. */
typedef struct tare_engine_report tare_engine_report;

/* A message that the user should see: data that was still in memory was added to the trace. */
typedef void tare_engine_notice(void *context, const char *sentence);

/* Which stack samples the tables contain, as the options of `tare report`; NULL and 0: all. */
typedef struct tare_engine_samples {
    const char *within, *phase, *thread;
    int64_t process;
    int gpu_idle;
} tare_engine_samples;

/* Reads a trace, or the session folder that a killed recording left, with the rules of a file (NULL: none). 0; or a
 * negative status as in tare.h with a message. `samples` and `notice` may be NULL. */
TARE_ENGINE_API int tare_engine_open(const char *path, const char *rules, const tare_engine_samples *samples,
                                     tare_engine_notice *notice, void *context, tare_engine_report **report,
                                     char error[TARE_ENGINE_ERROR]);
TARE_ENGINE_API void tare_engine_close(tare_engine_report *report); /* NULL is allowed */

/* Names of the tables, in order; NULL: past the last. */
TARE_ENGINE_API const char *tare_engine_table(size_t index);
/* Whether the table has a single row, as `run` and `usage` do. */
TARE_ENGINE_API int tare_engine_is_single(const char *table);
/* A table through the Arrow C data interface: one record batch, independent of the report. Columns have their unit and
 * meaning as metadata. */
TARE_ENGINE_API int tare_engine_arrow(const tare_engine_report *report, const char *table,
                                      struct ArrowArrayStream *stream, char error[TARE_ENGINE_ERROR]);
/* Why a value of a single-row table is null; NULL: it is not, or the reason is unknown. */
TARE_ENGINE_API const char *tare_engine_absent(const tare_engine_report *report, const char *table, const char *column);

/* ---- showing ---------------------------------------------------------------------------------------- */
/* Receives output in pieces. 0; otherwise nothing more is written. */
typedef int tare_engine_write(void *context, const void *data, size_t bytes);
/* Shows a report as `tare report` does: "text" (80 columns, control characters replaced), "json", "html", "events",
 * "chrome", "perfetto", "flamegraph", "folded", "speedscope", "pprof". Formats with events read the trace again. `all`:
 * every row. */
TARE_ENGINE_API int tare_engine_emit(const tare_engine_report *report, const char *format, int all,
                                     tare_engine_write *write, void *context, char error[TARE_ENGINE_ERROR]);

/* Formats with several files: `open` begins the next one, whose name may include directories; 0, otherwise nothing more
 * is written. */
typedef struct tare_engine_files {
    int (*open)(void *context, const char *name);
    tare_engine_write *write;
    void *context;
} tare_engine_files;
/* "csv": one file per table; "tensorboard": a Kineto trace for each process, and an XPlane. */
TARE_ENGINE_API int tare_engine_emit_files(const tare_engine_report *report, const char *format,
                                           const tare_engine_files *files, char error[TARE_ENGINE_ERROR]);

/* ---- other profilers' traces -------------------------------------------------------------------------- */
/* Converts a trace of torch.profiler, Chrome or ONNX Runtime; a file at `output` is replaced. */
TARE_ENGINE_API int tare_engine_import(const char *input, const char *output, char error[TARE_ENGINE_ERROR]);

/* ---- models: by one thread of the process at a time --------------------------------------------------------- */
#define TARE_ENGINE_VALUES_MAX 64

/* Known properties of an input of a model. */
typedef struct tare_engine_input {
    const char *name;
    const int64_t *dims;
    size_t rank;          /* 0: its shape is not given */
    const double *values; /* on which shapes or branches may depend */
    size_t n_values;      /* at most TARE_ENGINE_VALUES_MAX */
} tare_engine_input;
typedef struct tare_engine_model_options {
    int64_t batch; /* 0: as in the model */
    const tare_engine_input *inputs;
    size_t n_inputs;
} tare_engine_model_options;

/* The cost of an ONNX file, as `tare model --static --json` writes it, without its figures. */
TARE_ENGINE_API int tare_engine_model_json(const char *path, const tare_engine_model_options *options,
                                           tare_engine_write *write, void *context, char error[TARE_ENGINE_ERROR]);

typedef struct tare_engine_tensor {
    const char *name, *type; /* "float32" */
    const int64_t *dims;
    size_t rank, bytes;
    const void *data;
} tare_engine_tensor;
/* A sink returns 0, or a status that stops the call and is returned by it. */
typedef int tare_engine_tensor_sink(void *context, const tare_engine_tensor *tensor);
/* The generated inputs of a model; the same seed gives the same values. */
TARE_ENGINE_API int tare_engine_model_generate(const char *path, const tare_engine_model_options *options,
                                               uint64_t seed, tare_engine_tensor_sink *sink, void *context,
                                               char error[TARE_ENGINE_ERROR]);
/* Writes the model to `out` in half precision; its inputs and outputs keep their types. */
TARE_ENGINE_API int tare_engine_model_half(const char *path, const char *out, char error[TARE_ENGINE_ERROR]);

/* A node of a profile by ONNX Runtime. */
typedef struct tare_engine_node {
    const char *name, *op, *provider;
    const char *type;     /* "float16": of its first input in floating point; NULL: it has none */
    uint64_t calls;       /* in all runs */
    const double *run_ns; /* in each run, without the nodes of its subgraphs */
    size_t runs;          /* the first run of the profile does not count */
    double output_bytes;  /* NaN: unknown */
} tare_engine_node;
typedef int tare_engine_node_sink(void *context, const tare_engine_node *node);
TARE_ENGINE_API int tare_engine_runtime_profile(const char *path, tare_engine_node_sink *sink, void *context,
                                                char error[TARE_ENGINE_ERROR]);

/* ---- this machine ------------------------------------------------------------------------------------- */
/* Writes a JSON object: host, cpu_model, kernel, cpus, memory_bytes, fingerprint, and the revision of the process's
 * current directory. */
TARE_ENGINE_API int tare_engine_machine(tare_engine_write *write, void *context, char error[TARE_ENGINE_ERROR]);

/* ---- figures ------------------------------------------------------------------------------------------ */
/* Reads the JSON of a baseline, or of a report that contains one, and writes the baseline; `name` is for messages. */
TARE_ENGINE_API int tare_engine_figures(const char *json, size_t bytes, const char *name, tare_engine_write *write,
                                        void *context, char error[TARE_ENGINE_ERROR]);

/* How much a figure may get worse: 0.05 is 5 %. '*' in a name matches any text. */
typedef struct tare_engine_gate {
    const char *name;
    double share;
} tare_engine_gate;
/* Checks figures against a baseline, both as JSON, and writes the result as `tare check --json` does. `share` is the
 * gate of the figures that no gate matches; NaN: the default. */
TARE_ENGINE_API int tare_engine_check(const char *baseline, size_t baseline_bytes, const char *head, size_t head_bytes,
                                      double share, const tare_engine_gate *gates, size_t n_gates,
                                      tare_engine_write *write, void *context, char error[TARE_ENGINE_ERROR]);

/* Reads NAME:LIMIT for a figure in `unit` ("ns", "bytes", "/s", "": a count): its value, and the unit as written of a
 * rate, which may be "" or "/s". */
#define TARE_ENGINE_UNIT 32
TARE_ENGINE_API int tare_engine_threshold(const char *threshold, const char *unit, double *value,
                                          char written[TARE_ENGINE_UNIT], char error[TARE_ENGINE_ERROR]);

/* ---- pages --------------------------------------------------------------------------------------------- */
/* A section of a page whose text the caller supplies; all of it is escaped. */
typedef struct tare_engine_section {
    const char *kind; /* "tiles": rows of label, value, detail; "table"; "notes", "list": rows of one text;
                       * "distribution": y are latencies in ns, x their p50 and p95; "course": values y at positions x,
                       * in the unit `columns`, with three texts; "trade-off": latencies x in ns, rates y in the unit
                       * `columns`, z 1 for the best, a text each */
    const char *title, *note; /* "": none */
    const char *columns;      /* of a table, separated by '|'; '#' before numbers, '%' before percentages, with bars */
    const char *const *cells; /* row by row */
    size_t n_cells;
    const double *x, *y, *z;
    size_t n_x, n_y, n_z;
} tare_engine_section;
/* A self-contained HTML page without a script. */
TARE_ENGINE_API int tare_engine_page(const char *title, const char *lead, const tare_engine_section *sections, size_t n,
                                     tare_engine_write *write, void *context, char error[TARE_ENGINE_ERROR]);

#ifdef __cplusplus
}
#endif

#endif
