/* walk: the graph walked in the order of execution: shapes of what each node makes, what it costs, how long it lives.
 * Owned by the calling thread; all of it lives in the arena of the report.
 * Must not know how the report looks. */
#ifndef TARE_MODEL_WALK_H
#define TARE_MODEL_WALK_H

#include "inputs.h"
#include "onnx.h"
#include "slices.h"

/* Values of tensors are followed up to so many elements: shapes are computed from small ones. */
#define TARE__CONTENT_MAX   1024u
#define TARE__CONTENT_BYTES ((size_t)8 << 20) /* of all values together */
/* Nodes that are walked, those of functions at each call: a small file can ask for more than anyone can wait for. */
#define TARE__WALK_MAX 1000000u

/* What a weight is for; a later one gives way to an earlier one where it has several uses. */
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
    int type;      /* 0: not known */
    int rank;      /* TARE__MODEL_UNKNOWN */
    int64_t *dims; /* each may be TARE__MODEL_UNKNOWN */
    double *content; /* all elements, NaN where one is not known; NULL: nobody knows */
    size_t n_content;
    /* of weights */
    const tare__onnx_tensor *tensor; /* NULL: made when the model runs */
    struct tare__value *source;      /* the weight of which this is another name */
    tare__role role;
    uint64_t parameters; /* where that is not its number of elements; 0 */
    bool written;        /* by a node Constant, as exporters do with what is no parameter, and some with all there is */
    bool duplicate;      /* the same bytes of the same file are another weight's, too */
    uint32_t used_by;    /* the first layer that does; TARE__SLICES_NONE */
    bool constant;       /* a weight, or made of weights alone */
    /* of the others: from when to when it takes memory, in steps of the walk */
    struct tare__value *shares; /* the one whose memory it is a view of */
    uint32_t made, last;
    bool activation;
    bool optional; /* a sequence, a map, nothing that has a size */
    const char *container; /* what of these the file calls it; NULL */
} tare__value;

/* A graph or a function being walked. */
typedef struct tare__frame {
    tare__slices names; /* to indices of values */
    const struct tare__frame *outer; /* whose names are seen from here; NULL: none are */
    const struct tare__frame *caller; /* of a function */
    const tare__onnx_function *function;
    const tare__onnx_node *call; /* its attributes are the function's parameters */
    const tare__onnx_graph *graph; /* NULL: a function */
    tare__slices infos; /* to the graph's infos */
    const char *prefix; /* of its nodes' names */
    uint64_t times;     /* how often each node runs */
    bool at_least;      /* … or more often: nobody knows before the model runs */
    unsigned depth;
} tare__frame;

typedef struct tare__walk {
    tare__onnx *model;
    const tare__model_options *options;
    int status; /* the first failure; its sentence is in the model's error */
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
    bool infos_hold; /* shapes in the file still tell the truth: no input was given another fixed shape */
    const char **notes;
    size_t n_notes;
    tare__model_dimension *dimensions;
    size_t n_dimensions;
    tare__value **inputs, **outputs; /* the model's own */
    size_t n_inputs, n_outputs;
    tare__model_fill *fills; /* of the inputs */
    tare__input_sizes sizes; /* of dimensions that are left open */
    bool only_input; /* there is no other */
    bool sized_sequence, sized_side; /* … and what of these was used */
    bool open_branch; /* one that is not known to be taken was left out */
    size_t misfits; /* nodes whose inputs do not fit together */
} tare__walk;

/* A node being weighed; what a rule sees and fills. */
typedef struct tare__step {
    tare__walk *walk;
    const tare__frame *frame;
    const tare__onnx_node *node;
    tare__value **in, **out; /* NULL: left out */
    size_t n_in, n_out;
    uint64_t macs, other;
    tare__model_state state;
    const char *reason;
    bool macs_at_least, other_at_least; /* the figures are not whole */
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
/* Nodes that hold graphs, and functions. False: it is none of these. */
bool tare__walk_control(tare__walk *walk, tare__frame *frame, const tare__onnx_node *node);
/* Gives a symbol of the inputs a number; one that was only assumed gives way. NULL: no memory. */
tare__model_dimension *tare__walk_symbol(tare__walk *walk, tare__slice symbol, int64_t value, bool assumed);
/* Gives numbers to what is open in the inputs and follows from the weights. `weights` and `inputs` are their places;
 * what is an input under another name comes to the latter. */
int tare__walk_hints(tare__walk *walk, const tare__onnx_graph *graph, const tare__slices *weights,
                     tare__slices *inputs);
int tare__walk_weights(tare__walk *walk, tare__frame *frame, const tare__onnx_graph *graph);
tare__value *tare__walk_add(tare__walk *walk, tare__frame *frame, tare__slice name); /* NULL: no memory */
/* The index of its value, which is NULL where a call leaves an argument out; TARE__SLICES_NONE: there is none. */
uint32_t tare__walk_find(const tare__frame *frame, tare__slice name);
/* The sentence of a name with which something is wrong; the walk's status. */
int tare__walk_wrong(tare__walk *walk, tare__slice name, const char *what);
/* All that `value` needs is live now. */
void tare__walk_touch(tare__walk *walk, tare__value *value);
void tare__walk_note(tare__walk *walk, const char *format, ...) TARE__PRINTF(2, 3);
int tare__walk_no_memory(tare__walk *walk);
const char *tare__walk_copy(tare__walk *walk, tare__slice text); /* NUL added; "" when memory is out */
/* The step's inputs and outputs by their names; outputs are made. */
int tare__walk_open(tare__walk *walk, tare__frame *frame, const tare__onnx_node *node, tare__step *step);
/* Enters the step as a layer. */
int tare__walk_close(tare__step *step);
/* Takes layers out again, as if they had not been walked. */
void tare__walk_drop(tare__walk *walk, size_t from, size_t to);
/* The peak of what is live at once. */
int tare__walk_peak(tare__walk *walk, tare__model_report *report);

/* ---- weights ------------------------------------------------------------------------------------------------- */
/* Makes the value that of a tensor in the file. */
void tare__weight_set(tare__walk *walk, const tare__onnx_tensor *tensor, tare__value *value);
/* Notes what the step uses its weights for. */
void tare__weights_use(tare__step *step);
/* Looks at the files that hold them. */
int tare__weights_outside(tare__walk *walk, tare__model_report *report);
/* Counts them, for their layers, by type and by use. */
int tare__weights_count(tare__walk *walk, tare__model_report *report);

/* The report of a walk that is over. */
int tare__report_fill(tare__walk *walk, tare__model_report *report);

/* ---- rules --------------------------------------------------------------------------------------------------- */
const tare__rule *tare__rule_find(tare__walk *walk, const tare__onnx_node *node); /* NULL: nobody told */
int tare__rules_open(tare__walk *walk);
extern const tare__rule tare__rules_elementwise[], tare__rules_layout[], tare__rules_matrix[], tare__rules_window[],
    tare__rules_attention[], tare__rules_quantized[], tare__rules_signal[], tare__rules_classic[],
    tare__rules_text[];
extern const size_t tare__rules_elementwise_count, tare__rules_layout_count, tare__rules_matrix_count,
    tare__rules_window_count, tare__rules_attention_count, tare__rules_quantized_count, tare__rules_signal_count,
    tare__rules_classic_count, tare__rules_text_count;

#endif
