/* walk: walks the graph in execution order: shapes of the outputs of each node, their cost and lifetime.
 * Owned by the calling thread; stored in the arena of the report.
 * Must not know the format of the report. */
#ifndef TARE_MODEL_WALK_H
#define TARE_MODEL_WALK_H

#include "inputs.h"
#include "onnx.h"
#include "slices.h"

/* Values of tensors are tracked up to this many elements: shapes are computed from small ones. */
#define TARE__CONTENT_MAX   1024u
#define TARE__CONTENT_BYTES ((size_t)8 << 20) /* of all values together */
/* Number of nodes walked, with those of functions at each call: limits the time for a small file with many calls. */
#define TARE__WALK_MAX 1000000u

/* The use of a weight; if it has several, the earlier one here counts. */
typedef enum tare__role {
    TARE__ROLE_PARAMETER,
    TARE__ROLE_STATISTIC, /* running means and variances */
    TARE__ROLE_QUANTIZATION, /* scales and zero points */
    TARE__ROLE_CONSTANT,
    TARE__ROLE_UNUSED,
    TARE__ROLES
} tare__role;

typedef struct tare__value {
    tare__slice name;
    int type;      /* 0: unknown */
    int rank;      /* TARE__MODEL_UNKNOWN */
    int64_t *dims; /* each may be TARE__MODEL_UNKNOWN */
    double *content; /* all elements, NaN for unknown ones; NULL: unknown */
    size_t n_content;
    /* of weights */
    const tare__onnx_tensor *tensor; /* NULL: computed when the model runs */
    struct tare__value *source;      /* the weight of which this is an alias */
    tare__role role;
    uint64_t parameters; /* if different from its number of elements; 0 */
    bool written;        /* from a Constant node, which exporters use for values that are not parameters, and some
                          * for all values */
    bool duplicate;      /* another weight has the same bytes of the same file */
    uint32_t used_by;    /* the first layer that uses it; TARE__SLICES_NONE */
    bool constant;       /* a weight, or computed from weights alone */
    /* for others: lifetime in memory, in steps of the walk */
    struct tare__value *shares; /* the value whose memory it shares */
    uint32_t made, last;
    bool activation;
    bool optional; /* a sequence, a map, nothing that has a size */
    const char *container; /* its kind in the file; NULL */
} tare__value;

/* A graph or a function being walked. */
typedef struct tare__frame {
    tare__slices names; /* to indices of values */
    const struct tare__frame *outer; /* scope whose names are visible from here; NULL: none */
    const struct tare__frame *caller; /* of a function */
    const tare__onnx_function *function;
    const tare__onnx_node *call; /* its attributes are the function's parameters */
    const tare__onnx_graph *graph; /* NULL: a function */
    tare__slices infos; /* to the graph's infos */
    const char *prefix; /* of its nodes' names */
    uint64_t times;     /* how often each node runs */
    bool at_least;      /* … or more often: known only at run time */
    unsigned depth;
} tare__frame;

typedef struct tare__walk {
    tare__onnx *model;
    const tare__model_options *options;
    int status; /* the first failure; its message is in the model's error */
    tare__slices rules;
    tare__value **values;
    size_t n_values, values_room;
    tare__model_layer *layers;
    const tare__value **layer_outputs; /* beside the layers */
    size_t n_layers, layers_room, outputs_room;
    tare__value **claims; /* weights, in the order in which layers first used them */
    size_t n_claims, claims_room;
    uint32_t time;
    uint64_t walked;
    size_t content_bytes;
    bool infos_hold; /* shapes in the file are valid: no input was given another fixed shape */
    const char **notes;
    size_t n_notes;
    tare__model_dimension *dimensions;
    size_t n_dimensions;
    tare__value **inputs, **outputs; /* the model's own */
    size_t n_inputs, n_outputs;
    tare__model_fill *fills; /* of the inputs */
    tare__input_sizes sizes; /* of open dimensions */
    bool only_input; /* there is no alternative */
    bool sized_sequence, sized_side; /* … and which of these were used */
    bool open_branch; /* a branch not known to be taken was skipped */
    size_t misfits; /* nodes whose inputs do not match */
} tare__walk;

/* The current node; input and output of a rule. */
typedef struct tare__step {
    tare__walk *walk;
    const tare__frame *frame;
    const tare__onnx_node *node;
    tare__value **in, **out; /* NULL: omitted */
    size_t n_in, n_out;
    uint64_t macs, other;
    tare__model_state state;
    const char *reason;
    bool macs_at_least, other_at_least; /* the figures are incomplete */
} tare__step;

typedef struct tare__rule {
    const char *op; /* "Conv", "com.microsoft:Attention" */
    void (*shape)(tare__step *step);
    void (*cost)(tare__step *step);
    unsigned factor; /* of a cost by elements */
} tare__rule;

/* ---- the walk: 0, or a status with a sentence ------------------------------------------------------------------ */
int tare__walk_model(tare__walk *walk);
void tare__walk_free(tare__walk *walk);
int tare__walk_nodes(tare__walk *walk, tare__frame *frame, const tare__onnx_node *nodes, size_t n);
/* Nodes with subgraphs, and functions. False: neither. */
bool tare__walk_control(tare__walk *walk, tare__frame *frame, const tare__onnx_node *node);
/* Sets a symbol of the inputs; replaces a default. NULL: out of memory. */
tare__model_dimension *tare__walk_symbol(tare__walk *walk, tare__slice symbol, int64_t value, bool assumed);
/* Sets open dimensions of the inputs that follow from the weights. `weights` and `inputs` are their indices; aliases
 * of inputs are added to the latter. */
int tare__walk_hints(tare__walk *walk, const tare__onnx_graph *graph, const tare__slices *weights,
                     tare__slices *inputs);
int tare__walk_weights(tare__walk *walk, tare__frame *frame, const tare__onnx_graph *graph);
tare__value *tare__walk_add(tare__walk *walk, tare__frame *frame, tare__slice name); /* NULL: out of memory */
/* The index of its value, which is NULL if a call omits an argument; TARE__SLICES_NONE: there is none. */
uint32_t tare__walk_find(const tare__frame *frame, tare__slice name);
/* The message about a name; sets the walk's status. */
int tare__walk_wrong(tare__walk *walk, tare__slice name, const char *what);
void tare__walk_note(tare__walk *walk, const char *format, ...) TARE__PRINTF(2, 3);
int tare__walk_no_memory(tare__walk *walk);
const char *tare__walk_copy(tare__walk *walk, tare__slice text); /* NUL added; "" if out of memory */
/* The step's inputs and outputs by name; outputs are created. */
int tare__walk_open(tare__walk *walk, tare__frame *frame, const tare__onnx_node *node, tare__step *step);
/* Adds the step as a layer. */
int tare__walk_close(tare__step *step);
/* Removes layers again, as if they had not been walked. */
void tare__walk_drop(tare__walk *walk, size_t from, size_t to);

/* ---- weights ------------------------------------------------------------------------------------------------- */
/* Sets the value to a tensor in the file. */
void tare__weight_set(tare__walk *walk, const tare__onnx_tensor *tensor, tare__value *value);
/* Records how the step uses its weights. */
void tare__weights_use(tare__step *step);
/* Checks the external files. */
int tare__weights_outside(tare__walk *walk, tare__model_report *report);
/* Counts them, for their layers, by type and by use. */
int tare__weights_count(tare__walk *walk, tare__model_report *report);

/* The report of a complete walk. */
int tare__report_fill(tare__walk *walk, tare__model_report *report);

/* ---- rules --------------------------------------------------------------------------------------------------- */
const tare__rule *tare__rule_find(tare__walk *walk, const tare__onnx_node *node); /* NULL: unknown */
int tare__rules_open(tare__walk *walk);
/* Each ends with a row without a name. */
extern const tare__rule tare__rules_elementwise[], tare__rules_layout[], tare__rules_matrix[], tare__rules_window[],
    tare__rules_attention[], tare__rules_quantized[], tare__rules_signal[], tare__rules_classic[],
    tare__rules_text[];

#endif
