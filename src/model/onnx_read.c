/* onnx_read: converts the messages of an ONNX file to graphs, nodes, tensors. Data of weights is skipped.
 * Owned by the calling thread.
 * Must not know what operators do. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnx.h"
#include "tare.h"

/* Pages that the kernel mapped around the ends of a skipped weight are released from this size on. */
#define LARGE_BYTES (128u << 10)

#define GROW(model, array, n) ((array) = tare__onnx_grow(model, array, n, sizeof *(array)))

typedef int read_part(tare__onnx *model, const tare__wire_field *field, void *into);

static int no_memory(const tare__onnx *model)
{
    return tare__no_memory(model->error);
}

/* The message for a file that is damaged at `at`. */
static int broken(const tare__onnx *model, const uint8_t *at, const char *wrong)
{
    return tare__fail(model->error, TARE_E_INPUT, "'%.200s' is not an ONNX model or is damaged: %s, at byte %zu",
                      model->path, wrong, (size_t)(at - model->data));
}

void *tare__onnx_grow(tare__onnx *model, void *array, size_t n, size_t bytes)
{
    if (n & (n - 1) || (n == 0 && array)) /* there is space up to the next power of two */
        return array;
    char *larger = tare__arena_alloc(model->arena, (n ? 2 * n : 1) * bytes);
    if (larger && n)
        memcpy(larger, array, n * bytes);
    return larger;
}

/* ---- the file ------------------------------------------------------------------------------------------------ */
int tare__onnx_map(tare__onnx *model)
{
    struct stat about;
    int fd, status = tare__input_file(model->path, &fd, model->error);
    if (status)
        return status;
    bool known = fstat(fd, &about) == 0;
    void *data = known && about.st_size > 0 ? mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                                            : MAP_FAILED;
    int failure = errno;
    close(fd);
    if (known && about.st_size == 0)
        return tare__fail(model->error, TARE_E_INPUT, "'%.200s' is not an ONNX model: it is empty", model->path);
    if (data == MAP_FAILED)
        return tare__fail(model->error, TARE_E_INPUT, "cannot read '%.200s': %s", model->path, strerror(failure));
    model->data = data;
    model->bytes = (size_t)about.st_size;
    return 0;
}

void tare__onnx_unmap(tare__onnx *model)
{
    if (model->data)
        munmap((void *)(uintptr_t)model->data, model->bytes);
}

/* ---- messages ------------------------------------------------------------------------------------------------ */
/* Passes each field of a message to `read`. */
static int read_message(tare__onnx *model, tare__slice message, read_part *read, void *into)
{
    tare__wire wire = tare__wire_of(message);
    tare__wire_field field;
    int status = 0;
    while (!status && tare__wire_next(&wire, &field))
        status = read(model, &field, into);
    return status ? status : wire.wrong ? broken(model, wire.at, wire.wrong) : 0;
}

/* For a field that should be a message or a text; like protobuf, skips one of another type. */
static bool is_bytes(const tare__wire_field *field, uint32_t number)
{
    return field->number == number && field->type == TARE__WIRE_BYTES;
}

static bool is_number(const tare__wire_field *field, uint32_t number)
{
    return field->number == number && field->type == TARE__WIRE_VARINT;
}

static int add_slice(tare__onnx *model, tare__slice **list, size_t n, tare__slice slice)
{
    GROW(model, *list, n);
    if (!*list)
        return no_memory(model);
    (*list)[n] = slice;
    return 0;
}

/* ---- tensors ------------------------------------------------------------------------------------------------- */
/* Pages around the ends of a weight are mapped with those that are read; they would increase the resident size. */
static void give_back(const tare__onnx *model, tare__slice data)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (!model->mapped || data.length < LARGE_BYTES)
        return;
    uintptr_t from = ((uintptr_t)data.data + page - 1) & ~(page - 1);
    uintptr_t to = (uintptr_t)(data.data + data.length) & ~(page - 1);
    if (from < to)
        madvise((void *)from, to - from, MADV_DONTNEED);
}

typedef struct external {
    tare__slice location, offset, length;
    tare__slice key, value;
} external;

static int read_entry(tare__onnx *model, const tare__wire_field *field, void *into)
{
    external *one = into;
    (void)model;
    if (is_bytes(field, 1))
        one->key = field->bytes;
    else if (is_bytes(field, 2))
        one->value = field->bytes;
    return 0;
}

static bool decimal(tare__slice text, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < text.length; i++) {
        unsigned digit = (unsigned)text.data[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(*value, 10u, value) || __builtin_add_overflow(*value, digit, value))
            return false;
    }
    return *value <= INT64_MAX;
}

typedef struct tensor_reading {
    tare__onnx_tensor *tensor;
    external outside;
    bool external;
} tensor_reading;

static int read_tensor_field(tare__onnx *model, const tare__wire_field *field, void *into)
{
    tensor_reading *reading = into;
    tare__onnx_tensor *tensor = reading->tensor;
    if (is_number(field, 2))
        tensor->type = (int)(field->value & INT32_MAX);
    else if (is_bytes(field, 8))
        tensor->name = field->bytes;
    else if (is_bytes(field, 9)) {
        tensor->raw = field->bytes;
        give_back(model, field->bytes);
    } else if (field->type == TARE__WIRE_BYTES && (field->number == 4 || field->number == 5 || field->number == 7)) {
        give_back(model, field->bytes);
    } else if (is_number(field, 14))
        reading->external = field->value == 1;
    else if (is_bytes(field, 13)) {
        external *outside = &reading->outside;
        outside->key = outside->value = (tare__slice){0};
        int status = read_message(model, field->bytes, read_entry, outside);
        if (status)
            return status;
        if (tare__slice_is(outside->key, "location"))
            outside->location = outside->value;
        else if (tare__slice_is(outside->key, "offset"))
            outside->offset = outside->value;
        else if (tare__slice_is(outside->key, "length"))
            outside->length = outside->value;
    }
    return 0;
}

static int read_dims(tare__onnx *model, tare__onnx_tensor *tensor)
{
    tare__wire_numbers numbers = tare__wire_numbers_of(tensor->message, 1, TARE__WIRE_VARINT);
    int64_t dims[TARE__MODEL_RANK_MAX];
    int rank = 0;
    for (uint64_t value; tare__wire_number(&numbers, &value); rank++) {
        if (rank == TARE__MODEL_RANK_MAX || value > INT64_MAX)
            return tare__fail(model->error, TARE_E_INPUT, "'%.200s': the tensor '%.*s' has an invalid shape",
                              model->path, TARE__SLICE_SHOWN(tensor->name));
        dims[rank] = (int64_t)value;
    }
    if (!tare__wire_numbers_sound(&numbers))
        return broken(model, tensor->message.data, "a tensor's shape cannot be read");
    tensor->rank = rank;
    tensor->dims = tare__arena_alloc(model->arena, sizeof *dims * (size_t)(rank + !rank));
    if (!tensor->dims)
        return no_memory(model);
    memcpy(tensor->dims, dims, sizeof *dims * (size_t)rank);
    return 0;
}

static int check_sizes(tare__onnx *model, tare__onnx_tensor *tensor, const external *outside)
{
    uint64_t offset = 0, length = 0;
    tare__slice name = tensor->name;
    if (!tare__onnx_elements_of(tensor->rank, tensor->dims, &tensor->elements) ||
        !tare__onnx_bytes_of(tensor->type, tensor->elements, &tensor->bytes))
        return tare__fail(model->error, TARE_E_INPUT, "'%.200s': the tensor '%.*s' is too large",
                          model->path, TARE__SLICE_SHOWN(name));
    if (!tensor->external && tensor->raw.data && tare__onnx_type_bits(tensor->type) &&
        tensor->raw.length != tensor->bytes)
        return tare__fail(model->error, TARE_E_INPUT,
                          "'%.200s' is damaged: the tensor '%.*s' has %zu bytes where its shape asks for %llu",
                          model->path, TARE__SLICE_SHOWN(name), tensor->raw.length, (unsigned long long)tensor->bytes);
    if (!tensor->external)
        return 0;
    if (!decimal(outside->offset, &offset) || !decimal(outside->length, &length) || outside->location.length == 0)
        return tare__fail(model->error, TARE_E_INPUT,
                          "'%.200s': the location of the data of the tensor '%.*s' is missing", model->path,
                          TARE__SLICE_SHOWN(name));
    if (outside->length.length && tare__onnx_type_bits(tensor->type) && length < tensor->bytes)
        return tare__fail(model->error, TARE_E_INPUT,
                          "'%.200s': the tensor '%.*s' has %llu bytes outside where its shape asks for %llu",
                          model->path, TARE__SLICE_SHOWN(name), (unsigned long long)length,
                          (unsigned long long)tensor->bytes);
    tensor->location = outside->location;
    tensor->offset = offset;
    return 0;
}

int tare__onnx_read_tensor(tare__onnx *model, tare__slice message, tare__onnx_tensor *tensor)
{
    tensor_reading reading = {.tensor = tensor};
    *tensor = (tare__onnx_tensor){.message = message};
    int status = read_message(model, message, read_tensor_field, &reading);
    tensor->external = reading.external;
    if (!status)
        status = read_dims(model, tensor);
    return status ? status : check_sizes(model, tensor, &reading.outside);
}

/* The values of a sparse tensor are a tensor; its name is that of the whole. */
static int read_sparse_field(tare__onnx *model, const tare__wire_field *field, void *into)
{
    return is_bytes(field, 1) ? tare__onnx_read_tensor(model, field->bytes, into) : 0;
}

/* ---- types and shapes ---------------------------------------------------------------------------------------- */
static int read_dim(tare__onnx *model, const tare__wire_field *field, void *into)
{
    tare__onnx_dim *dim = into;
    (void)model;
    if (is_number(field, 1))
        dim->value = field->value <= INT64_MAX ? (int64_t)field->value : TARE__MODEL_UNKNOWN;
    else if (is_bytes(field, 2))
        dim->symbol = field->bytes;
    return 0;
}

static int read_shape(tare__onnx *model, const tare__wire_field *field, void *into)
{
    tare__onnx_info *info = into;
    if (!is_bytes(field, 1))
        return 0;
    if (info->rank == TARE__MODEL_RANK_MAX)
        return broken(model, field->bytes.data, "a shape has too many dimensions");
    GROW(model, info->dims, (size_t)info->rank);
    if (!info->dims)
        return no_memory(model);
    tare__onnx_dim *dim = &info->dims[info->rank++];
    *dim = (tare__onnx_dim){.value = TARE__MODEL_UNKNOWN};
    return read_message(model, field->bytes, read_dim, dim);
}

static int read_tensor_type(tare__onnx *model, const tare__wire_field *field, void *into)
{
    tare__onnx_info *info = into;
    if (is_number(field, 1))
        info->type = (int)(field->value & INT32_MAX);
    if (!is_bytes(field, 2))
        return 0;
    info->rank = 0;
    info->dims = NULL;
    return read_message(model, field->bytes, read_shape, info);
}

static int read_type(tare__onnx *model, const tare__wire_field *field, void *into)
{
    static const struct {
        uint32_t number;
        const char *name;
    } containers[] = {{4, "sequence"}, {5, "map"}, {8, "sparse tensor"}, {9, "optional"}};
    for (size_t i = 0; i < TARE__COUNT_OF(containers); i++)
        if (is_bytes(field, containers[i].number))
            ((tare__onnx_info *)into)->container = containers[i].name;
    return is_bytes(field, 1) ? read_message(model, field->bytes, read_tensor_type, into) : 0;
}

static int read_info(tare__onnx *model, const tare__wire_field *field, void *into)
{
    tare__onnx_info *info = into;
    if (is_bytes(field, 1))
        info->name = field->bytes;
    return is_bytes(field, 2) ? read_message(model, field->bytes, read_type, info) : 0;
}

static int add_info(tare__onnx *model, tare__onnx_info **list, size_t *n, tare__slice message)
{
    GROW(model, *list, *n);
    if (!*list)
        return no_memory(model);
    tare__onnx_info *info = &(*list)[(*n)++];
    *info = (tare__onnx_info){.rank = TARE__MODEL_UNKNOWN};
    return read_message(model, message, read_info, info);
}

/* ---- nodes --------------------------------------------------------------------------------------------------- */
static int read_attribute(tare__onnx *model, const tare__wire_field *field, void *into)
{
    tare__onnx_attribute *attribute = into;
    (void)model;
    if (is_bytes(field, 1))
        attribute->name = field->bytes;
    else if (is_bytes(field, 21))
        attribute->refers = field->bytes;
    return 0;
}

static int add_attribute(tare__onnx *model, tare__onnx_attribute **list, size_t n, tare__slice message)
{
    GROW(model, *list, n);
    if (!*list)
        return no_memory(model);
    (*list)[n] = (tare__onnx_attribute){.message = message};
    return read_message(model, message, read_attribute, &(*list)[n]);
}

/* torch's exporter records the module of each node. */
static int read_metadata(tare__onnx *model, tare__slice message, tare__onnx_node *node)
{
    external entry = {0};
    int status = read_message(model, message, read_entry, &entry);
    if (!status && tare__slice_is(entry.key, "pkg.torch.onnx.name_scopes"))
        node->module = entry.value;
    return status;
}

static int read_node(tare__onnx *model, const tare__wire_field *field, void *into)
{
    tare__onnx_node *node = into;
    if (field->type != TARE__WIRE_BYTES)
        return 0;
    switch (field->number) {
    case 1: return add_slice(model, &node->inputs, node->n_inputs++, field->bytes);
    case 2: return add_slice(model, &node->outputs, node->n_outputs++, field->bytes);
    case 3: node->name = field->bytes; return 0;
    case 4: node->op = field->bytes; return 0;
    case 5: return add_attribute(model, &node->attributes, node->n_attributes++, field->bytes);
    case 7: node->domain = field->bytes; return 0;
    case 9: return read_metadata(model, field->bytes, node);
    default: return 0;
    }
}

static int add_node(tare__onnx *model, tare__onnx_node **list, size_t *n, tare__slice message)
{
    GROW(model, *list, *n);
    if (!*list)
        return no_memory(model);
    tare__onnx_node *node = &(*list)[(*n)++];
    *node = (tare__onnx_node){0};
    int status = read_message(model, message, read_node, node);
    if (tare__slice_is(node->domain, "ai.onnx")) /* two names of one domain */
        node->domain.length = 0;
    return status;
}

/* ---- graphs -------------------------------------------------------------------------------------------------- */
static int add_initializer(tare__onnx *model, tare__onnx_graph *graph, tare__slice message, bool sparse)
{
    GROW(model, graph->initializers, graph->n_initializers);
    if (!graph->initializers)
        return no_memory(model);
    tare__onnx_tensor *tensor = &graph->initializers[graph->n_initializers++];
    *tensor = (tare__onnx_tensor){.dims = NULL};
    return sparse ? read_message(model, message, read_sparse_field, tensor)
                  : tare__onnx_read_tensor(model, message, tensor);
}

static int read_graph_field(tare__onnx *model, const tare__wire_field *field, void *into)
{
    tare__onnx_graph *graph = into;
    if (field->type != TARE__WIRE_BYTES)
        return 0;
    switch (field->number) {
    case 1: return add_node(model, &graph->nodes, &graph->n_nodes, field->bytes);
    case 2: graph->name = field->bytes; return 0;
    case 5: return add_initializer(model, graph, field->bytes, false);
    case 11: return add_info(model, &graph->inputs, &graph->n_inputs, field->bytes);
    case 12: return add_info(model, &graph->outputs, &graph->n_outputs, field->bytes);
    case 13: return add_info(model, &graph->infos, &graph->n_infos, field->bytes);
    case 15: return add_initializer(model, graph, field->bytes, true);
    default: return 0;
    }
}

int tare__onnx_read_graph(tare__onnx *model, tare__slice message, tare__onnx_graph *graph)
{
    *graph = (tare__onnx_graph){.nodes = NULL};
    int status = read_message(model, message, read_graph_field, graph);
    return status ? status : tare__onnx_sort(model, graph->nodes, graph->n_nodes, graph->name);
}

static int read_function_field(tare__onnx *model, const tare__wire_field *field, void *into)
{
    tare__onnx_function *function = into;
    if (field->type != TARE__WIRE_BYTES)
        return 0;
    switch (field->number) {
    case 1: function->name = field->bytes; return 0;
    case 4: return add_slice(model, &function->inputs, function->n_inputs++, field->bytes);
    case 5: return add_slice(model, &function->outputs, function->n_outputs++, field->bytes);
    case 7: return add_node(model, &function->nodes, &function->n_nodes, field->bytes);
    case 10: function->domain = field->bytes; return 0;
    case 11: return add_attribute(model, &function->defaults, function->n_defaults++, field->bytes);
    default: return 0;
    }
}

static int add_function(tare__onnx *model, tare__slice message)
{
    GROW(model, model->functions, model->n_functions);
    if (!model->functions)
        return no_memory(model);
    tare__onnx_function *function = &model->functions[model->n_functions++];
    *function = (tare__onnx_function){.nodes = NULL};
    int status = read_message(model, message, read_function_field, function);
    return status ? status : tare__onnx_sort(model, function->nodes, function->n_nodes, function->name);
}

static int read_opset_field(tare__onnx *model, const tare__wire_field *field, void *into)
{
    tare__model_opset *opset = into;
    if (is_number(field, 2))
        opset->version = (int64_t)field->value;
    if (!is_bytes(field, 1))
        return 0;
    opset->domain = tare__arena_copy(model->arena, (const char *)field->bytes.data, field->bytes.length);
    return opset->domain ? 0 : no_memory(model);
}

static int add_opset(tare__onnx *model, tare__slice message)
{
    GROW(model, model->opsets, model->n_opsets);
    if (!model->opsets)
        return no_memory(model);
    tare__model_opset *opset = &model->opsets[model->n_opsets++];
    *opset = (tare__model_opset){.domain = ""};
    return read_message(model, message, read_opset_field, opset);
}

static int read_model_field(tare__onnx *model, const tare__wire_field *field, void *into)
{
    tare__slice *graph = into;
    if (is_number(field, 1))
        model->ir_version = (int64_t)field->value;
    if (field->type != TARE__WIRE_BYTES)
        return 0;
    switch (field->number) {
    case 2: model->producer = field->bytes; return 0;
    case 3: model->producer_version = field->bytes; return 0;
    case 7: *graph = field->bytes; return 0;
    case 8: return add_opset(model, field->bytes);
    case 25: return add_function(model, field->bytes);
    default: return 0;
    }
}

int tare__onnx_read(tare__onnx *model)
{
    tare__slice graph = {0};
    tare__slice whole = {model->data, model->bytes};
    int status = read_message(model, whole, read_model_field, &graph);
    if (status)
        return status;
    /* Almost any bytes are valid protobuf; a model has a version and a graph. */
    if (!graph.data || model->ir_version <= 0)
        return tare__fail(model->error, TARE_E_INPUT, "'%.200s' is not an ONNX model: it has no %s", model->path,
                          graph.data ? "version" : "graph");
    return tare__onnx_read_graph(model, graph, &model->graph);
}
