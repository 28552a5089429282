/* model: analyzes a model file without running it: FLOPs, parameters, memory, per operator, per layer and in total.
 * Owned by the calling thread; a report is read-only and valid until it is freed. Weights are never read.
 * Must not know traces, nor how anything is shown. */
#ifndef TARE_MODEL_H
#define TARE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* An unknown dimension or figure. */
#define TARE__MODEL_UNKNOWN (-1)
#define TARE__MODEL_RANK_MAX 32u

/* ---- what the user says of a model --------------------------------------------------------------------------- */
typedef struct tare__model_dimension {
    const char *name; /* of the symbol in the file: "batch", "sequence" */
    int64_t value;    /* at least 1; 0 is allowed for an empty past */
    bool assumed;     /* in a report: not set by the user */
} tare__model_dimension;

typedef struct tare__model_shape {
    const char *input;
    size_t rank;
    const int64_t *dims;
} tare__model_shape;

struct tare__runner_file;
typedef struct tare__model_options {
    const tare__model_dimension *dimensions;
    size_t n_dimensions;
    const tare__model_shape *shapes;
    size_t n_shapes;
    int64_t
        batch; /* --batch: the first dimension of inputs if that is a symbol, and the symbol everywhere; 0: not set */
    const struct tare__runner_file *files; /* values of inputs */
    size_t n_files;
} tare__model_options;

/* ---- what was found ------------------------------------------------------------------------------------------ */
typedef struct tare__model_tensor {
    const char *name;
    const char *type;       /* "float32"; "sequence", "map", "optional"; NULL: unknown */
    int element_type;       /* ONNX's number */
    int rank;               /* TARE__MODEL_UNKNOWN */
    const int64_t *dims;    /* each may be TARE__MODEL_UNKNOWN */
    const char *const
        *symbols;           /* the file's name of each dimension, NULL if it has a number; inputs and outputs */
    int64_t bytes;          /* TARE__MODEL_UNKNOWN */
} tare__model_tensor;

/* Value of an input when the model is run; the static analysis also uses small ones. */
typedef enum tare__fill_kind {
    TARE__FILL_NORMAL,  /* random, normal distribution */
    TARE__FILL_UNIFORM, /* random, from low to high */
    TARE__FILL_WHOLE,   /* random integers from 0 to below high */
    TARE__FILL_RANGE,   /* 0, 1, 2 … in each row */
    TARE__FILL_VALUES,  /* these, repeated */
    TARE__FILL_FILE,    /* the user's file */
} tare__fill_kind;

#define TARE__FILL_VALUES_MAX 64u
typedef struct tare__model_fill {
    tare__fill_kind kind;
    double low, high;
    double values[TARE__FILL_VALUES_MAX];
    size_t n_values;
    const char *what;  /* "sample rate"; a file's path; NULL */
    bool given;        /* set by the user; else generated */
} tare__model_fill;

/* "16000 (sample rate)"; "integers" */
void tare__model_put_fill(tare__text *out, const tare__model_fill *fill);
const char *tare__model_fill_name(tare__fill_kind kind);

/* Whether and how an operator's cost was counted. */
typedef enum tare__model_state {
    TARE__MODEL_COUNTED,
    TARE__MODEL_NO_RULE,  /* there is no rule for this operator */
    TARE__MODEL_NO_SHAPE, /* there is a rule, but the shapes it needs are known only at run time */
} tare__model_state;

typedef struct tare__model_cost {
    uint64_t macs;         /* multiply-accumulates; FLOPs are twice that */
    uint64_t other; /* other operations: one per element by the rule of docs/MODELS.md */
    uint64_t parameters;   /* of weights used here first */
    uint64_t weight_bytes; /* of weights, statistics and constants used here first */
    uint64_t output_bytes; /* of tensors created here whose size is known */
} tare__model_cost;

/* A node of the graph, including those in functions and subgraphs, in execution order. */
typedef struct tare__model_layer {
    const char *name;     /* name in the file, prefixed with those of the enclosing nodes: "block/attn/MatMul" */
    const char *node;     /* the file's own */
    const char *op, *domain; /* "" is ONNX's own */
    const char *module;   /* the module it came from, if the exporter recorded it; NULL */
    tare__model_state state;
    const char *reason;   /* why its cost is not counted, or not completely; NULL */
    bool macs_at_least, other_at_least; /* its figures are incomplete: not counted, or only one iteration of a loop */
    uint64_t times;       /* number of executions per run of the model: more than 1 inside of loops */
    tare__model_cost cost; /* of all executions */
    const tare__model_tensor *output; /* the first one; NULL: none */
    const char *inputs[2]; /* names of the first ones, "" for none */
} tare__model_layer;

typedef struct tare__model_operator {
    const char *op, *domain;
    uint64_t nodes;
    uint64_t not_counted; /* of these */
    const char *reason;   /* why; NULL */
    bool macs_at_least, other_at_least; /* some of them are not counted, or not completely */
    tare__model_cost cost;
} tare__model_operator;

/* Weights by type; or by use. */
typedef struct tare__model_weights {
    const char *what; /* "float32"; "parameters", "statistics", "quantization", "constants", "unused" */
    uint64_t tensors, elements, bytes;
} tare__model_weights;

typedef struct tare__model_opset {
    const char *domain;
    int64_t version;
} tare__model_opset;

typedef struct tare__model_report {
    const char *path, *format; /* "onnx" */
    const char *graph, *producer, *producer_version; /* "" if the file has none */
    int64_t ir_version;
    const tare__model_opset *opsets;
    size_t n_opsets;

    uint64_t file_bytes;
    uint64_t external_bytes; /* of external weight files */
    size_t external_files;

    const tare__model_dimension *dimensions; /* symbols of the inputs, and their values */
    size_t n_dimensions;
    const tare__model_tensor *inputs, *outputs; /* inputs that are not weights */
    size_t n_inputs, n_outputs;
    const tare__model_fill *fills; /* of the inputs */

    const tare__model_layer *layers;
    size_t n_layers;
    const tare__model_operator *operators; /* the most MACs first */
    size_t n_operators;
    const tare__model_weights *types, *uses; /* the most bytes first; in the order above */
    size_t n_types, n_uses;

    tare__model_cost total; /* output_bytes: the sum of all, as if nothing were freed */
    uint64_t not_counted;   /* nodes */
    bool macs_at_least;     /* the total's MACs are a lower bound: some nodes that may multiply are not counted */
    bool other_at_least;    /* the same for the other operations */
    bool activations_known; /* false: the peak covers only tensors of known size */
    uint64_t activation_peak_bytes; /* peak of simultaneously live tensors, see docs/MODELS.md */
    uint64_t activation_sum_bytes;  /* of all of them, including inputs, as if nothing were freed */
    const char *activation_peak_at; /* the layer; NULL: none */

    const char *const *notes; /* sentences without their full stop: what was assumed or not counted */
    size_t n_notes;
} tare__model_report;

/* Reads and analyzes the file. 0; or TARE_E_INPUT (the file or its external data), TARE_E_USAGE (the options do not
 * match this model), TARE_E_MEMORY, with a message. */
int tare__model_analyze(const char *path, const tare__model_options *options, tare__model_report **report,
                      tare__error *error);
/* The same for a file in memory, which may be freed afterwards; external weights are not searched for. */
int tare__model_analyze_bytes(const void *data, size_t bytes, const tare__model_options *options,
                            tare__model_report **report, tare__error *error);
void tare__model_free(tare__model_report *report); /* NULL is allowed */
/* Whether an operator of this name, in any domain, multiplies and accumulates, or may do so (unknown). */
bool tare__model_multiplies(const char *op);

#include "runner.h" /* the other half: the model run */

#endif
