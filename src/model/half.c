/* half: rewrites a model's graph for half precision, field by field: weights and constants are converted, casts to
 * single precision become casts to half, and inputs and outputs get a cast. Owned by the calling thread.
 * Must not know the runtime, which reports itself what it cannot run. */
#define _GNU_SOURCE
#include "half.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tare.h"

#define FILE_MAX  ((size_t)2000 << 20) /* protobuf reads less than 2 GiB */

/* Numbers of fields. */
enum { MODEL_GRAPH = 7 };
enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_INFO = 13, GRAPH_SPARSE = 15 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_F = 2, ATTRIBUTE_I = 3, ATTRIBUTE_T = 5, ATTRIBUTE_G = 6, ATTRIBUTE_FLOATS = 7,
       ATTRIBUTE_GRAPHS = 11, ATTRIBUTE_TYPE = 20 };
enum { TYPE_INT = 2, TYPE_TENSOR = 4 };

static int no_memory(tare__half *half)
{
    return tare__no_memory(half->model.error);
}

int tare__half_refuse(tare__half *half, const char *why)
{
    return tare__fail(half->model.error, TARE_E_USAGE, "the model is stored as fp32 and is not converted to fp16: %s",
                      why);
}

/* ---- names ---------------------------------------------------------------------------------------------------- */
static void put_name(tare__half *half, tare__text *out, uint32_t field, tare__slice name)
{
    const tare__slice parts[] = {name, TARE__HALF_INSIDE};
    tare__half_put_parts(out, field, parts, tare__half_has(&half->renamed, name) ? 2 : 1);
}

/* ---- attributes ----------------------------------------------------------------------------------------------- */
typedef struct attribute {
    tare__slice name;
    bool single_type; /* i is ONNX's number for single precision */
    bool has_graph;
    tare__slice tensor;
    float one;
    float floats[1024];
    size_t n_floats;
    bool too_many;
} attribute;

static float float_of(uint64_t bits)
{
    uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* If a field is repeated, the last one counts. */
static void read_attribute(tare__slice message, attribute *found)
{
    tare__wire wire = tare__wire_of(message);
    tare__wire_field field;
    memset(found, 0, offsetof(attribute, floats));
    found->n_floats = 0;
    found->too_many = false;
    while (tare__wire_next(&wire, &field)) {
        if (field.number == ATTRIBUTE_I && field.type == TARE__WIRE_VARINT)
            found->single_type = field.value == TARE__ONNX_FLOAT;
        if (field.number == ATTRIBUTE_F && field.type == TARE__WIRE_FIXED32)
            found->one = float_of(field.value);
        if (field.type != TARE__WIRE_BYTES)
            continue;
        if (field.number == ATTRIBUTE_NAME)
            found->name = field.bytes;
        if (field.number == ATTRIBUTE_T)
            found->tensor = field.bytes;
        found->has_graph |= field.number == ATTRIBUTE_G || field.number == ATTRIBUTE_GRAPHS;
    }
    tare__wire_numbers numbers = tare__wire_numbers_of(message, ATTRIBUTE_FLOATS, TARE__WIRE_FIXED32);
    uint64_t bits;
    while (tare__wire_number(&numbers, &bits)) {
        found->too_many |= found->n_floats >= TARE__COUNT_OF(found->floats);
        if (!found->too_many)
            found->floats[found->n_floats++] = float_of(bits);
    }
}

static void put_tensor_attribute(tare__text *out, const tare__text *tensor)
{
    tare__text attribute = {0};
    tare__half_put_bytes(&attribute, ATTRIBUTE_NAME, "value", 5);
    tare__half_put_bytes(&attribute, ATTRIBUTE_T, tensor->data, tensor->length);
    tare__half_put_number(&attribute, ATTRIBUTE_TYPE, TYPE_TENSOR);
    out->failed |= attribute.failed || tensor->failed;
    if (!out->failed)
        tare__half_put_bytes(out, NODE_ATTRIBUTE, attribute.data, attribute.length);
    tare__text_free(&attribute);
}

static void put_type_attribute(tare__text *out, tare__slice name)
{
    tare__text attribute = {0};
    tare__half_put_bytes(&attribute, ATTRIBUTE_NAME, name.data, name.length);
    tare__half_put_number(&attribute, ATTRIBUTE_I, TARE__ONNX_FLOAT16);
    tare__half_put_number(&attribute, ATTRIBUTE_TYPE, TYPE_INT);
    out->failed |= attribute.failed;
    if (!out->failed)
        tare__half_put_bytes(out, NODE_ATTRIBUTE, attribute.data, attribute.length);
    tare__text_free(&attribute);
}

static int put_attribute(tare__half *half, tare__slice op, tare__slice message, tare__text *out)
{
    static attribute found;
    tare__text tensor = {0};
    int status = 0;
    read_attribute(message, &found);
    bool constant = tare__slice_is(op, "Constant");
    bool value = constant || tare__slice_is(op, "ConstantOfShape");
    if (found.has_graph)
        return tare__half_refuse(half, "it has graphs inside of nodes");
    if (found.single_type && (tare__slice_is(found.name, "to") || tare__slice_is(found.name, "dtype"))) {
        put_type_attribute(out, found.name);
    } else if (value && found.tensor.data && tare__slice_is(found.name, "value")) {
        status = tare__half_put_tensor(half, found.tensor, &tensor);
        put_tensor_attribute(out, &tensor);
    } else if (constant && tare__slice_is(found.name, "value_float")) {
        tare__half_put_floats(&found.one, 1, 0, &tensor);
        put_tensor_attribute(out, &tensor);
    } else if (constant && tare__slice_is(found.name, "value_floats")) {
        if (found.too_many)
            return tare__half_refuse(half, "a constant is a long list of numbers");
        tare__half_put_floats(found.floats, found.n_floats, 1, &tensor);
        put_tensor_attribute(out, &tensor);
    } else {
        tare__half_put_bytes(out, NODE_ATTRIBUTE, message.data, message.length);
    }
    tare__text_free(&tensor);
    return status;
}

/* ---- nodes ---------------------------------------------------------------------------------------------------- */
typedef struct head {
    tare__slice op;
    size_t n_attributes;
    bool kept; /* its output must not be converted */
} head;

static head head_of(const tare__half *half, tare__slice message)
{
    tare__wire wire = tare__wire_of(message);
    tare__wire_field field;
    head found = {0};
    while (tare__wire_next(&wire, &field)) {
        if (field.type != TARE__WIRE_BYTES)
            continue;
        if (field.number == NODE_OP)
            found.op = field.bytes;
        if (field.number == NODE_OUTPUT)
            found.kept |= tare__half_has(&half->kept, field.bytes);
        found.n_attributes += field.number == NODE_ATTRIBUTE;
    }
    return found;
}

static int put_node(tare__half *half, tare__slice message)
{
    static const float zero = 0;
    head of = head_of(half, message);
    tare__wire wire = tare__wire_of(message);
    tare__wire_field field;
    tare__text node = {0}, value = {0};
    int status = 0;
    while (!status && tare__wire_next(&wire, &field)) {
        bool bytes = field.type == TARE__WIRE_BYTES;
        if (bytes && (field.number == NODE_INPUT || field.number == NODE_OUTPUT))
            put_name(half, &node, field.number, field.bytes);
        else if (bytes && field.number == NODE_ATTRIBUTE && !of.kept)
            status = put_attribute(half, of.op, field.bytes, &node);
        else
            tare__half_put_field(&node, &field);
    }
    if (!status && tare__slice_is(of.op, "Constant") && of.n_attributes > 1)
        status = tare__half_refuse(half, "a constant has more than one value");
    if (!status && !of.n_attributes && tare__slice_is(of.op, "ConstantOfShape") && !of.kept) { /* zeros, and single */
        tare__half_put_floats(&zero, 1, 1, &value);
        put_tensor_attribute(&node, &value);
    }
    if (!status && node.failed)
        status = no_memory(half);
    if (!status)
        tare__half_put_bytes(&half->out, GRAPH_NODE, node.data, node.length);
    tare__text_free(&value);
    tare__text_free(&node);
    return status;
}

/* A cast at an input or an output. */
static void put_cast(tare__half *half, tare__slice name, bool inwards)
{
    tare__text node = {0}, attribute = {0};
    const tare__slice label[] = {{(const uint8_t *)"tare_half_", 10}, name};
    tare__half_put_bytes(&attribute, ATTRIBUTE_NAME, "to", 2);
    tare__half_put_number(&attribute, ATTRIBUTE_I, inwards ? TARE__ONNX_FLOAT16 : TARE__ONNX_FLOAT);
    tare__half_put_number(&attribute, ATTRIBUTE_TYPE, TYPE_INT);
    if (inwards)
        tare__half_put_bytes(&node, NODE_INPUT, name.data, name.length);
    else
        put_name(half, &node, NODE_INPUT, name);
    if (inwards)
        put_name(half, &node, NODE_OUTPUT, name);
    else
        tare__half_put_bytes(&node, NODE_OUTPUT, name.data, name.length);
    tare__half_put_parts(&node, NODE_NAME, label, TARE__COUNT_OF(label));
    tare__half_put_bytes(&node, NODE_OP, "Cast", 4);
    half->out.failed |= attribute.failed;
    if (!attribute.failed)
        tare__half_put_bytes(&node, NODE_ATTRIBUTE, attribute.data, attribute.length);
    half->out.failed |= node.failed;
    if (!node.failed)
        tare__half_put_bytes(&half->out, GRAPH_NODE, node.data, node.length);
    tare__text_free(&attribute);
    tare__text_free(&node);
}

static void put_casts(tare__half *half, const tare__onnx_info *ends, size_t n, bool inwards)
{
    for (size_t i = 0; i < n; i++)
        if (tare__half_has(&half->renamed, ends[i].name) && ends[i].type == TARE__ONNX_FLOAT)
            put_cast(half, ends[i].name, inwards);
}

/* ---- graph and model ------------------------------------------------------------------------------------------ */
static int put_initializer(tare__half *half, tare__slice message)
{
    tare__onnx_tensor tensor = {0};
    tare__text out = {0};
    int status = tare__onnx_read_tensor(&half->model, message, &tensor);
    if (!status && tare__half_has(&half->kept, tensor.name) && tensor.external)
        status = tare__half_refuse(half, "a scale is in a file beside it");
    if (status)
        return status;
    if (tare__half_has(&half->kept, tensor.name)) {
        tare__half_put_bytes(&half->out, GRAPH_INITIALIZER, message.data, message.length);
        return 0;
    }
    bool other = tensor.external && tensor.type != TARE__ONNX_FLOAT;
    if (tensor.external && tensor.elements > (FILE_MAX - half->out.length) / sizeof(uint16_t))
        status = tare__half_refuse(half, "it would be larger than protobuf reads");
    else
        status = other ? tare__half_refuse(half, "weights of another type are beside it")
                       : tare__half_put_tensor(half, message, &out);
    if (!status && out.failed)
        status = no_memory(half);
    if (!status)
        tare__half_put_bytes(&half->out, GRAPH_INITIALIZER, out.data, out.length);
    tare__text_free(&out);
    return status;
}

static int put_graph(tare__half *half, tare__slice message)
{
    tare__wire wire = tare__wire_of(message);
    tare__wire_field field;
    int status = 0;
    put_casts(half, half->model.graph.inputs, half->model.graph.n_inputs, true);
    while (!status && tare__wire_next(&wire, &field)) {
        if (half->out.length > FILE_MAX)
            status = tare__half_refuse(half, "it would be larger than protobuf reads");
        else if (field.type != TARE__WIRE_BYTES)
            tare__half_put_field(&half->out, &field);
        else if (field.number == GRAPH_SPARSE)
            status = tare__half_refuse(half, "it has sparse weights");
        else if (field.number == GRAPH_NODE)
            status = put_node(half, field.bytes);
        else if (field.number == GRAPH_INITIALIZER)
            status = put_initializer(half, field.bytes);
        else if (field.number != GRAPH_INFO) /* types inside have changed */
            tare__half_put_field(&half->out, &field);
    }
    put_casts(half, half->model.graph.outputs, half->model.graph.n_outputs, false);
    return !status && half->out.failed ? no_memory(half) : status;
}

/* If a graph is repeated, the last one counts, as in any reader. */
static tare__slice last_graph(tare__slice model)
{
    tare__wire wire = tare__wire_of(model);
    tare__wire_field field;
    tare__slice graph = {0};
    while (tare__wire_next(&wire, &field))
        if (field.number == MODEL_GRAPH && field.type == TARE__WIRE_BYTES)
            graph = field.bytes;
    return graph;
}

/* Everything but the graph, which stays separate: a second copy of it would be as large as the file. */
static int put_model(tare__half *half, tare__text *file)
{
    tare__slice whole = {half->model.data, half->model.bytes};
    tare__wire wire = tare__wire_of(whole);
    tare__wire_field field;
    int status = half->model.n_functions ? tare__half_refuse(half, "it has functions of its own") : 0;
    if (!status)
        status = put_graph(half, last_graph(whole));
    while (!status && tare__wire_next(&wire, &field))
        if (field.number != MODEL_GRAPH)
            tare__half_put_field(file, &field);
    if (!status)
        tare__half_put_length(file, MODEL_GRAPH, half->out.length);
    return !status && file->failed ? no_memory(half) : status;
}

static int write_file(const char *path, const tare__text *file, const tare__text *graph, tare__error *error)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int failure = fd < 0 ? -errno : tare__write_all(fd, file->data, file->length);
    if (!failure && graph->length)
        failure = tare__write_all(fd, graph->data, graph->length);
    if (fd >= 0 && close(fd) != 0 && !failure)
        failure = -errno;
    return failure ? tare__fail(error, TARE_E_SYSTEM, "the model in fp16 cannot be written: %s", strerror(-failure))
                   : 0;
}

static int convert(tare__half *half, tare__text *file)
{
    half->model.arena = tare__arena_new();
    int status = half->model.arena ? tare__onnx_read(&half->model) : no_memory(half);
    if (!status)
        status = tare__half_find_names(half);
    if (!status)
        status = put_model(half, file);
    tare__slices_free(&half->renamed);
    tare__slices_free(&half->kept);
    tare__arena_free(half->model.arena);
    return status;
}

int tare__half_convert_bytes(const void *data, size_t bytes, tare__text *file, tare__error *error)
{
    tare__half half = {.model = {.error = error, .path = "(memory)", .data = data, .bytes = bytes}};
    int status = convert(&half, file);
    if (!status && half.out.length)
        tare__text_append(file, half.out.data, half.out.length);
    tare__text_free(&half.out);
    return !status && file->failed ? no_memory(&half) : status;
}

int tare__half_convert(const char *path, const char *out, tare__error *error)
{
    tare__half half = {.model = {.error = error, .path = path, .beside = true}};
    tare__text file = {0};
    int status = tare__onnx_map(&half.model);
    if (!status)
        status = convert(&half, &file);
    tare__onnx_unmap(&half.model);
    if (!status)
        status = write_file(out, &file, &half.out, error);
    tare__text_free(&half.out);
    tare__text_free(&file);
    return status;
}
