/* onnx: a model as in the file: graphs, nodes, attributes, tensors. Names and data stay in the file.
 * Owned by the calling thread; stored in the arena of the report.
 * Must not know shapes that are not in the file, nor what anything costs. */
#ifndef TARE_MODEL_ONNX_H
#define TARE_MODEL_ONNX_H

#include "model.h"
#include "onnx_wire.h"

typedef struct tare__onnx_attribute {
    tare__slice name;
    tare__slice refers;  /* in a function: the attribute of the call that it refers to */
    tare__slice message; /* the values, read on demand */
} tare__onnx_attribute;

typedef struct tare__onnx_node {
    tare__slice op, domain, name;
    tare__slice module; /* from the exporter's metadata */
    tare__slice *inputs, *outputs;
    uint32_t n_inputs, n_outputs, n_attributes;
    tare__onnx_attribute *attributes;
} tare__onnx_node;

typedef struct tare__onnx_tensor {
    tare__slice name;
    int type;
    int rank;
    int64_t *dims;
    uint64_t elements, bytes; /* according to shape and type */
    bool external;
    tare__slice location; /* of external data */
    uint64_t offset;
    tare__slice message; /* values, read on demand */
    tare__slice raw;
} tare__onnx_tensor;

/* A dimension: a number, a name, or neither. */
typedef struct tare__onnx_dim {
    int64_t value; /* TARE__MODEL_UNKNOWN */
    tare__slice symbol;
} tare__onnx_dim;

typedef struct tare__onnx_info {
    tare__slice name;
    int type; /* 0: not a tensor, or unknown */
    const char *container; /* "sequence", "map", …; NULL: a tensor, or unknown */
    int rank; /* TARE__MODEL_UNKNOWN */
    tare__onnx_dim *dims;
} tare__onnx_info;
const tare__onnx_info *tare__onnx_info_of(const tare__onnx_info *infos, size_t n, tare__slice name); /* NULL: none */

typedef struct tare__onnx_graph {
    tare__slice name;
    tare__onnx_node *nodes; /* in execution order */
    tare__onnx_tensor *initializers;
    tare__onnx_info *inputs, *outputs, *infos;
    size_t n_nodes, n_initializers, n_inputs, n_outputs, n_infos;
} tare__onnx_graph;

typedef struct tare__onnx_function {
    tare__slice name, domain;
    tare__slice *inputs, *outputs;
    size_t n_inputs, n_outputs;
    tare__onnx_attribute *defaults;
    size_t n_defaults;
    tare__onnx_node *nodes;
    size_t n_nodes;
} tare__onnx_function;

typedef struct tare__onnx {
    tare__arena *arena;
    tare__error *error;
    const char *path;   /* as the user wrote it */
    const uint8_t *data;
    size_t bytes;
    bool mapped;
    bool beside; /* external files are searched for */
    size_t depth; /* of subgraphs being read */

    int64_t ir_version;
    tare__slice producer, producer_version;
    tare__model_opset *opsets;
    size_t n_opsets;
    tare__onnx_graph graph;
    tare__onnx_function *functions;
    size_t n_functions;
} tare__onnx;

#define TARE__ONNX_DEPTH_MAX 64u

/* ---- reading: 0 or a status with a sentence ------------------------------------------------------------------- */
/* Maps the file at the model's path. */
int tare__onnx_map(tare__onnx *model);
void tare__onnx_unmap(tare__onnx *model); /* nothing if it is not mapped */
int tare__onnx_read(tare__onnx *model);
/* A graph in an attribute. */
int tare__onnx_read_graph(tare__onnx *model, tare__slice message, tare__onnx_graph *graph);
int tare__onnx_read_tensor(tare__onnx *model, tare__slice message, tare__onnx_tensor *tensor);
/* Sorts nodes into execution order. `what` names the graph in the message of a failure. */
int tare__onnx_sort(tare__onnx *model, tare__onnx_node *nodes, size_t n, tare__slice what);
/* What kind of file could not be read, as part of a sentence; NULL: unknown. */
const char *tare__onnx_guess(const tare__onnx *model);
/* Appends an element of `bytes` to an array in the arena, zeroed; NULL: out of memory. */
void *tare__onnx_grow(tare__onnx *model, void *array, size_t n, size_t bytes);

/* ---- types of elements ------------------------------------------------------------------------------------- */
enum {
    TARE__ONNX_FLOAT = 1,
    TARE__ONNX_UINT8 = 2,
    TARE__ONNX_INT8 = 3,
    TARE__ONNX_INT32 = 6,
    TARE__ONNX_INT64 = 7,
    TARE__ONNX_STRING = 8,
    TARE__ONNX_BOOL = 9,
    TARE__ONNX_FLOAT16 = 10,
    TARE__ONNX_DOUBLE = 11
};
const char *tare__onnx_type_name(int type); /* NULL: unknown */
unsigned tare__onnx_type_bits(int type);    /* 0: unknown, or of no fixed size */
bool tare__onnx_type_is_float(int type);
/* Elements times their size, rounded up to bytes; false: more than 63 bits. */
bool tare__onnx_bytes_of(int type, uint64_t elements, uint64_t *bytes);
/* False: more than 63 bits. All dimensions must be known. */
bool tare__onnx_elements_of(int rank, const int64_t *dims, uint64_t *elements);
/* The values of a small tensor as doubles; false: not in the file, too many, or of another type. */
bool tare__onnx_tensor_values(const tare__onnx_tensor *tensor, double *values, size_t n);

#endif
