/* model: weighs a model file without running it: FLOPs, parameters, memory, per operator, per layer and in total.
 * Owned by the calling thread; a report is read-only and lives until it is freed. Weights are never read.
 * Must not know traces, nor how anything is shown. */
#ifndef TARE_MODEL_H
#define TARE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* A dimension or a figure that is not known. */
#define TARE__MODEL_UNKNOWN (-1)
#define TARE__MODEL_RANK_MAX 32u

/* ---- what the user says of a model --------------------------------------------------------------------------- */
typedef struct tare__model_dimension {
    const char *name; /* of the symbol in the file: "batch", "sequence" */
    int64_t value;    /* 1 at least; 0 is allowed, too: an empty past */
    bool assumed;     /* in a report: nobody said so */
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
        batch; /* --batch: the first dimension of inputs where that is a symbol, and the symbol everywhere; 0: not
                * said */
    const struct tare__runner_file *files; /* values of inputs */
    size_t n_files;
} tare__model_options;

/* ---- what was found ------------------------------------------------------------------------------------------ */
typedef struct tare__model_tensor {
    const char *name;
    const char *type;       /* "float32"; "sequence", "map", "optional"; NULL: not known */
    int element_type;       /* ONNX's number */
    int rank;               /* TARE__MODEL_UNKNOWN */
    const int64_t *dims;    /* each may be TARE__MODEL_UNKNOWN */
    const char *const
        *symbols;           /* the file's name of each dimension, NULL where it has a number; inputs and outputs */
    int64_t bytes;          /* TARE__MODEL_UNKNOWN */
} tare__model_tensor;

/* What an input is filled with when the model is run; small ones are known to the walk, too. */
typedef enum tare__fill_kind {
    TARE__FILL_NORMAL,  /* random, of mean 0 and deviation 1 */
    TARE__FILL_UNIFORM, /* random, from low to high */
    TARE__FILL_WHOLE,   /* random whole numbers from 0 to below high */
    TARE__FILL_RANGE,   /* 0, 1, 2 … in each row */
    TARE__FILL_VALUES,  /* these, again and again */
    TARE__FILL_FILE,    /* the user's file */
} tare__fill_kind;

#define TARE__FILL_VALUES_MAX 64u
typedef struct tare__model_fill {
    tare__fill_kind kind;
    double low, high;
    double values[TARE__FILL_VALUES_MAX];
    size_t n_values;
    const char *what;  /* "sample rate"; a file's path; NULL */
    bool given;        /* by the user; else generated */
} tare__model_fill;

/* "16000 (sample rate)"; "integers" */
void tare__model_put_fill(tare__text *out, const tare__model_fill *fill);
const char *tare__model_fill_name(tare__fill_kind kind);

/* Whether and how an operator's cost was counted. */
typedef enum tare__model_state {
    TARE__MODEL_COUNTED,
    TARE__MODEL_NO_RULE,  /* nobody told what this operator costs */
    TARE__MODEL_NO_SHAPE, /* there is a rule, but the shapes it needs are known only when the model runs */
} tare__model_state;

typedef struct tare__model_cost {
    uint64_t macs;         /* multiply-accumulates; FLOPs are twice that */
    uint64_t other; /* operations of everything else: one for each element touched by the rule of docs/MODELS.md */
    uint64_t parameters;   /* of weights used here first */
    uint64_t weight_bytes; /* of weights, statistics and constants used here first */
    uint64_t output_bytes; /* of tensors made here whose size is known */
} tare__model_cost;

/* A node of the graph, those inside of functions and of sub-graphs as well, in the order of execution. */
typedef struct tare__model_layer {
    const char *name;     /* the file's, after those of the nodes it is inside of: "block/attn/MatMul" */
    const char *node;     /* the file's own */
    const char *op, *domain; /* "" is ONNX's own */
    const char *module;   /* the part of the model it came from where the exporter told; NULL */
    tare__model_state state;
    const char *reason;   /* why its cost is not counted, or not whole; NULL */
    bool macs_at_least, other_at_least; /* its figures are not whole: not counted, or a loop's one iteration */
    uint64_t times;       /* how often it runs in one run of the model: more than 1 inside of loops */
    tare__model_cost cost; /* of all those times */
    const tare__model_tensor *output; /* the first one; NULL: none */
    const char *inputs[2]; /* names of the first ones, "" where there is none */
} tare__model_layer;

typedef struct tare__model_operator {
    const char *op, *domain;
    uint64_t nodes;
    uint64_t not_counted; /* of these */
    const char *reason;   /* why; NULL */
    bool macs_at_least, other_at_least; /* some of them are not counted, or not whole */
    tare__model_cost cost;
} tare__model_operator;

/* Weights by their type; or by what they are for. */
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
    const char *graph, *producer, *producer_version; /* "" where the file has none */
    int64_t ir_version;
    const tare__model_opset *opsets;
    size_t n_opsets;

    uint64_t file_bytes;
    uint64_t external_bytes; /* of the files that hold weights beside it */
    size_t external_files;

    const tare__model_dimension *dimensions; /* symbols of the inputs, and what they were taken for */
    size_t n_dimensions;
    const tare__model_tensor *inputs, *outputs; /* inputs that are no weights */
    size_t n_inputs, n_outputs;
    const tare__model_fill *fills; /* of the inputs */

    const tare__model_layer *layers;
    size_t n_layers;
    const tare__model_operator *operators; /* the most MACs first */
    size_t n_operators;
    const tare__model_weights *types, *uses; /* the most bytes first; in the order above */
    size_t n_types, n_uses;

    tare__model_cost total; /* output_bytes: the sum of all, were nothing freed */
    uint64_t not_counted;   /* nodes */
    bool macs_at_least;     /* the total's MACs are a lower bound: some nodes that may multiply are not counted */
    bool other_at_least;    /* the same of the other operations */
    bool activations_known; /* false: the peak is of those tensors whose size is known */
    uint64_t activation_peak_bytes; /* the most that is live at once, see docs/MODELS.md */
    uint64_t activation_sum_bytes;  /* of all of them, inputs too, were nothing freed */
    const char *activation_peak_at; /* the layer; NULL: none */

    const char *const *notes; /* sentences without their full stop: what was assumed or left out */
    size_t n_notes;
} tare__model_report;

/* Reads and weighs the file. 0; or TARE_E_INPUT (the file or what belongs to it), TARE_E_USAGE (the options do not fit
 * this model), TARE_E_MEMORY, with a sentence. */
int tare__model_weigh(const char *path, const tare__model_options *options, tare__model_report **report,
                      tare__error *error);
/* The same of a file in memory, which must outlive nothing; weights beside it are not looked for. */
int tare__model_weigh_bytes(const void *data, size_t bytes, const tare__model_options *options,
                            tare__model_report **report, tare__error *error);
void tare__model_free(tare__model_report *report); /* NULL is fine */
/* Whether an operator of this name, in whatever domain, multiplies and accumulates, or might: it is not known. */
bool tare__model_multiplies(const char *op);

#include "runner.h" /* the other half: the model run */

#endif
