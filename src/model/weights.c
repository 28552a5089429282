/* weights: tensors of the file: their use, number of parameters, bytes, and location.
 * Owned by the calling thread. Data is not read except for the few values from which shapes are computed.
 * Must not know how anything is run. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "rules.h"
#include "tare.h"

#define ZEROS_BYTES ((size_t)1 << 20)
#define FLOATS_MAX  16u /* floating-point values that are tracked: scales of a resampling; more would read weights */

void tare__weight_set(tare__walk *walk, const tare__onnx_tensor *tensor, tare__value *value)
{
    value->tensor = tensor;
    value->constant = true;
    value->activation = false;
    value->type = tensor->type;
    value->rank = tensor->rank;
    value->dims = tensor->dims;
    size_t most = tare__onnx_type_is_float(tensor->type) ? FLOATS_MAX : TARE__CONTENT_MAX;
    double values[TARE__CONTENT_MAX];
    if (tensor->elements > most || !tare__onnx_tensor_values(tensor, values, (size_t)tensor->elements))
        return;
    tare__step step = {.walk = walk, .out = &value, .n_out = 1};
    tare__set_content(&step, 0, values, (size_t)tensor->elements);
}

static int index_infos(tare__walk *walk, tare__frame *frame, const tare__onnx_graph *graph)
{
    bool sound = true;
    for (size_t i = 0; i < graph->n_outputs && sound; i++)
        sound = tare__slices_add(&frame->infos, graph->outputs[i].name, (uint32_t)(graph->n_infos + i));
    for (size_t i = 0; i < graph->n_infos && sound; i++)
        sound = tare__slices_add(&frame->infos, graph->infos[i].name, (uint32_t)i);
    return sound ? 0 : tare__walk_no_memory(walk);
}

int tare__walk_weights(tare__walk *walk, tare__frame *frame, const tare__onnx_graph *graph)
{
    for (size_t i = 0; i < graph->n_initializers && !walk->status; i++) {
        tare__value *value = tare__walk_add(walk, frame, graph->initializers[i].name);
        if (value)
            tare__weight_set(walk, &graph->initializers[i], value);
    }
    return walk->status ? walk->status : index_infos(walk, frame, graph);
}

/* ---- what they are used for ---------------------------------------------------------------------------------- */
/* By input: p parameter, s statistic, q quantization, c constant, z constant if it is zeros, '.' according to its
 * type. */
static const struct {
    const char *op, *uses;
} uses[] = {
    {"BatchNormalization", ".ppss"},
    {"QuantizeLinear", ".qq"},
    {"DequantizeLinear", "pqq"},
    {"QLinearConv", ".qqpqqqqp"},
    {"QLinearMatMul", "pqqpqqqq"},
    {"ConvInteger", "ppqq"},
    {"MatMulInteger", "ppqq"},
    {"QGemm", "pqqpqqpqq"},
    {"MatMulNBits", ".pqqcp"},
    {"MatMulBnb4", ".pq"},
    {"MatMulFpQ4", ".pc"},
    {"GatherBlockQuantized", "pcqq"},
    {"QAttention", ".ppqqcqq"},
    {"DynamicQuantizeMatMul", ".pqqp"},
    {"MatMulIntegerToFloat", "ppqqqqp"},
    {"QLinearAdd", "pqqpqqqq"},
    {"QLinearMul", "pqqpqqqq"},
    {"QLinearSigmoid", ".qqqq"},
    {"QLinearLeakyRelu", ".qqqq"},
    {"QLinearSoftmax", ".qqqq"},
    {"QLinearAveragePool", ".qqqq"},
    {"QLinearGlobalAveragePool", ".qqqq"},
    {"QLinearReduceMean", ".qqqq"},
    {"QLinearConcat", "qq.qq.qq.qq.qq.qq"},
    {"Resize", ".ccc"},
    {"Upsample", ".c"},
    {"Pad", ".ccc"},
    {"Clip", ".cc"},
    {"Pow", ".c"},
    {"LSTM", "....czz"},
    {"GRU", "....cz"},
    {"RNN", "....cz"},
    {"DynamicQuantizeLSTM", ".pp.czz.qqqq"},
    {"STFT", ".ccc"},
    {"SoftmaxCrossEntropyLoss", "..c"},
    {"NegativeLogLikelihoodLoss", "..c"},
};

static const char *uses_of(const tare__step *step)
{
    for (size_t i = 0; i < TARE__COUNT_OF(uses); i++) {
        if (tare__slice_is(step->node->op, uses[i].op))
            return uses[i].uses;
    }
    return "";
}

/* Whether all elements are the same number, and whether that is 0. Of long tensors they are not read. */
static bool repeats(const tare__onnx_tensor *tensor, bool *zero)
{
    tare__wire_numbers floats = tare__wire_numbers_of(tensor->message, 4, TARE__WIRE_FIXED32);
    uint64_t first = 0, bits, n = 0;
    if (tensor->external || tensor->elements == 0 || tensor->bytes > ZEROS_BYTES)
        return false;
    if (tensor->raw.data) {
        size_t each = tensor->raw.length / (size_t)tensor->elements;
        while (first < each && tensor->raw.data[first] == 0)
            first++;
        *zero = first == each;
        return each > 0 && memcmp(tensor->raw.data, tensor->raw.data + each, tensor->raw.length - each) == 0;
    }
    while (tare__wire_number(&floats, &bits) && (n == 0 || bits == first)) {
        first = bits;
        n++;
    }
    *zero = first == 0;
    return n == tensor->elements;
}

/* Initial states of recurrent layers are mostly zeros, and not trained. */
static bool is_zeros(const tare__onnx_tensor *tensor)
{
    bool zero;
    return repeats(tensor, &zero) && zero;
}

/* A tensor filled by a program. */
static bool is_one_number(const tare__onnx_tensor *tensor)
{
    bool zero;
    return tensor->elements == 1 || repeats(tensor, &zero);
}

/* Names that torch's exporters generate for values that are not attributes of a module: the creating function, and a
 * number. */
static bool is_made_up(tare__slice name)
{
    static const char *const makers[] = {"val",       "clone",         "full",       "full_like",       "new_full",
                                         "ones",      "ones_like",     "new_ones",   "zeros",           "zeros_like",
                                         "new_zeros", "scalar_tensor", "lift_fresh", "lift_fresh_copy", "_to_copy"};
    size_t length = name.length;
    while (length > 0 && name.data[length - 1] >= '0' && name.data[length - 1] <= '9')
        length--;
    if (length < name.length && length > 0 && name.data[length - 1] == '_')
        length--;
    return tare__slice_is_any((tare__slice){name.data, length}, makers, TARE__COUNT_OF(makers)) ||
           (name.length > 6 && memcmp(name.data, "onnx::", 6) == 0);
}

/* Operators whose inputs are often constants of the program rather than weights. */
static bool is_arithmetic(tare__slice op)
{
    static const char *const all[] = {"Add", "Sub", "Mul", "Div", "Where", "Max", "Min", "Mod", "Sum",
                                      "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"};
    return tare__slice_is_any(op, all, TARE__COUNT_OF(all));
}

/* Weights are floating point with at least one dimension; scalars and integers are part of the computation. */
static tare__role role_by_type(const tare__value *value, tare__slice op)
{
    bool weight = tare__onnx_type_is_float(value->type) && value->rank > 0;
    if (weight && value->written)
        weight = value->tensor->elements != 1 && !is_zeros(value->tensor);
    if (weight && is_arithmetic(op) && (value->written || is_made_up(value->tensor->name)))
        weight = !is_one_number(value->tensor);
    return weight ? TARE__ROLE_PARAMETER : TARE__ROLE_CONSTANT;
}

static tare__role role_of(const tare__value *value, char use, tare__slice op)
{
    switch (use) {
    case 'p': return TARE__ROLE_PARAMETER;
    case 's': return TARE__ROLE_STATISTIC;
    case 'q': return TARE__ROLE_QUANTIZATION;
    case 'c': return TARE__ROLE_CONSTANT;
    case 'z': return is_zeros(value->tensor) ? TARE__ROLE_CONSTANT : role_by_type(value, op);
    default: return role_by_type(value, op);
    }
}

/* The number of parameters in a packed weight. */
static uint64_t packed_parameters(const tare__step *step, size_t at, const tare__value *value)
{
    int64_t k = tare__attribute_int(step, "K", 0), n = tare__attribute_int(step, "N", 0), product;
    int64_t bits = tare__attribute_int(step, "bits", 4);
    bool blocks = at == 1 && step->node->domain.length && k > 0 && n > 0;
    if (blocks && tare__slice_is((tare__slice){step->node->op.data, step->node->op.length < 6 ? 0 : 6}, "MatMul"))
        return __builtin_mul_overflow(k, n, &product) ? 0 : (uint64_t)product;
    if (at == 0 && tare__slice_is(step->node->op, "GatherBlockQuantized") && value->type == TARE__ONNX_UINT8 &&
        bits > 0 && bits < 8)
        return value->tensor->elements < UINT64_MAX / 8 ? value->tensor->elements * 8 / (uint64_t)bits : 0;
    return 0;
}

static void claim(tare__walk *walk, tare__value *value)
{
    if (!tare__array_fit(&walk->claims, &walk->claims_room, walk->n_claims + 1, sizeof *walk->claims)) {
        tare__walk_no_memory(walk);
        return;
    }
    value->used_by = (uint32_t)(walk->n_layers - 1);
    walk->claims[walk->n_claims++] = value;
}

void tare__weights_use(tare__step *step)
{
    const char *how = uses_of(step);
    size_t reported = strlen(how);
    bool renamed = step->node->domain.length == 0 && tare__slice_is(step->node->op, "Identity");
    for (size_t i = 0; i < step->n_in && !renamed; i++) {
        tare__value *value = step->in[i];
        if (value && value->source)
            value = value->source;
        if (!value || !value->tensor)
            continue;
        tare__role role = role_of(value, i < reported ? how[i] : '.', step->node->op);
        value->role = role < value->role ? role : value->role;
        if (!value->parameters)
            value->parameters = packed_parameters(step, i, value);
        if (value->used_by == TARE__SLICES_NONE)
            claim(step->walk, value);
    }
}

/* ---- where they lie ------------------------------------------------------------------------------------------ */
static int wrong_place(tare__walk *walk, const tare__onnx_tensor *tensor, const char *what)
{
    return walk->status = tare__fail(
               walk->model->error, TARE_E_INPUT, "'%.200s': the weights of '%.*s' are in '%.*s', %s",
               walk->model->path, (int)(tensor->name.length < 80 ? tensor->name.length : 80),
               (const char *)tensor->name.data, (int)(tensor->location.length < 80 ? tensor->location.length : 80),
               (const char *)tensor->location.data, what);
}

/* Only files in the model's own directory are accessed. */
static bool stays_inside(tare__slice location)
{
    const char *text = (const char *)location.data;
    if (location.length == 0 || text[0] == '/' || memchr(text, '\0', location.length))
        return false;
    for (size_t at = 0; at < location.length;) {
        const char *slash = memchr(text + at, '/', location.length - at);
        size_t end = slash ? (size_t)(slash - text) : location.length;
        if (end - at == 2 && memcmp(text + at, "..", 2) == 0)
            return false;
        at = end + 1;
    }
    return true;
}

/* Bytes of the file; UINT64_MAX: it does not exist. */
static uint64_t size_of(tare__walk *walk, tare__slice location)
{
    char whole[PATH_MAX];
    struct stat about;
    const char *slash = strrchr(walk->model->path, '/');
    int folder = slash ? (int)(slash + 1 - walk->model->path) : 0;
    int length = snprintf(whole, sizeof whole, "%.*s%.*s", folder, walk->model->path,
                          (int)(location.length < INT_MAX ? location.length : INT_MAX), (const char *)location.data);
    bool there = length > 0 && (size_t)length < sizeof whole && stat(whole, &about) == 0 && S_ISREG(about.st_mode);
    return there ? (uint64_t)about.st_size : UINT64_MAX;
}

typedef struct places {
    tare__slices numbers; /* of files, by name */
    uint64_t *sizes;
    size_t n;
} places;

static int check_external(tare__walk *walk, places *files, const tare__onnx_tensor *tensor, tare__model_report *report)
{
    uint32_t number = tare__slices_find(&files->numbers, tensor->location);
    if (number == TARE__SLICES_NONE) {
        if (!stays_inside(tensor->location))
            return wrong_place(walk, tensor, "outside of the model's folder: refused");
        files->sizes = tare__onnx_grow(walk->model, files->sizes, files->n, sizeof *files->sizes);
        if (!files->sizes || !tare__slices_add(&files->numbers, tensor->location, (uint32_t)files->n))
            return tare__walk_no_memory(walk);
        uint64_t size = walk->model->beside ? size_of(walk, tensor->location) : UINT64_MAX;
        number = (uint32_t)files->n++;
        files->sizes[number] = size;
        report->external_files++;
        if (size != UINT64_MAX)
            report->external_bytes += size;
        else
            tare__walk_note(walk, "the file '%.*s' with weights does not exist: their size is computed from their "
                                  "shapes",
                            (int)(tensor->location.length < 200 ? tensor->location.length : 200),
                            (const char *)tensor->location.data);
    }
    uint64_t end;
    if (files->sizes[number] != UINT64_MAX &&
        (__builtin_add_overflow(tensor->offset, tensor->bytes, &end) || end > files->sizes[number]))
        return wrong_place(walk, tensor, "which ends before they do");
    return 0;
}

typedef struct outside {
    tare__value *value;
    const tare__onnx_tensor *tensor;
} outside;

static int by_place(const void *left, const void *right)
{
    const tare__onnx_tensor *a = ((const outside *)left)->tensor, *b = ((const outside *)right)->tensor;
    size_t shorter = a->location.length < b->location.length ? a->location.length : b->location.length;
    int order = memcmp(a->location.data, b->location.data, shorter);
    if (order || a->location.length != b->location.length)
        return order ? order : a->location.length < b->location.length ? -1 : 1;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* One range of a file may have several names: tied weights. */
static void mark_duplicates(outside *all, size_t n)
{
    qsort(all, n, sizeof *all, by_place);
    for (size_t i = 1; i < n; i++) {
        if (by_place(&all[i - 1], &all[i]) != 0 || all[i].tensor->bytes == 0)
            continue;
        tare__value *kept = all[i - 1].value, *value = all[i].value;
        value->duplicate = true;
        kept->role = value->role < kept->role ? value->role : kept->role;
        kept->used_by = value->used_by < kept->used_by ? value->used_by : kept->used_by;
        all[i].value = kept; /* for the next of the same */
    }
}

int tare__weights_outside(tare__walk *walk, tare__model_report *report)
{
    places files = {0};
    outside *all = NULL;
    size_t n = 0, room = 0;
    for (size_t i = 0; i < walk->n_values && !walk->status; i++) {
        tare__value *value = walk->values[i];
        if (!value || !value->tensor || !value->tensor->external || check_external(walk, &files, value->tensor, report))
            continue;
        if (!tare__array_fit(&all, &room, n + 1, sizeof *all))
            tare__walk_no_memory(walk);
        else
            all[n++] = (outside){value, value->tensor};
    }
    if (!walk->status && n)
        mark_duplicates(all, n);
    free(all);
    tare__slices_free(&files.numbers);
    return walk->status;
}

/* ---- counted ------------------------------------------------------------------------------------------------- */
static bool add_to(uint64_t *sum, uint64_t more)
{
    return !__builtin_add_overflow(*sum, more, sum);
}

static bool count_one(tare__model_weights *row, uint64_t elements, uint64_t bytes)
{
    row->tensors++;
    return add_to(&row->elements, elements) && add_to(&row->bytes, bytes);
}

TARE__ORDER(by_bytes, tare__model_weights, TARE__FALLING(bytes))

static bool count_value(tare__walk *walk, const tare__value *value, tare__model_weights *types,
                        tare__model_weights *uses_rows, tare__model_report *report)
{
    const tare__onnx_tensor *tensor = value->tensor;
    uint64_t parameters =
        value->role == TARE__ROLE_PARAMETER ? (value->parameters ? value->parameters : tensor->elements) : 0;
    const char *type = tare__onnx_type_name(tensor->type);
    size_t row = type ? (size_t)tensor->type : 0;
    types[row].what = type ? type : "unknown";
    uint64_t elements = value->role == TARE__ROLE_PARAMETER ? parameters : tensor->elements;
    if (!count_one(&types[row], tensor->elements, tensor->bytes) ||
        !count_one(&uses_rows[value->role], elements, tensor->bytes) ||
        !add_to(&report->total.parameters, parameters) || !add_to(&report->total.weight_bytes, tensor->bytes))
        return false;
    if (value->used_by != TARE__SLICES_NONE && value->used_by < walk->n_layers) {
        walk->layers[value->used_by].cost.parameters += parameters;
        walk->layers[value->used_by].cost.weight_bytes += tensor->bytes;
    }
    return true;
}

int tare__weights_count(tare__walk *walk, tare__model_report *report)
{
    static const char *const names[TARE__ROLES] = {"parameters", "statistics", "quantization", "constants", "unused"};
    enum { TYPES = 40 };
    tare__model_weights *types = tare__arena_alloc(walk->model->arena, TYPES * sizeof *types);
    tare__model_weights *rows = tare__arena_alloc(walk->model->arena, TARE__ROLES * sizeof *rows);
    if (!types || !rows)
        return tare__walk_no_memory(walk);
    for (size_t i = 0; i < walk->n_outputs; i++) { /* a weight that is an output is used */
        tare__value *value = walk->outputs[i];
        if (value->tensor && value->role == TARE__ROLE_UNUSED)
            value->role = role_by_type(value, (tare__slice){0});
    }
    for (size_t i = 0; i < TARE__ROLES; i++)
        rows[i].what = names[i];
    for (size_t i = 0; i < walk->n_values; i++) {
        const tare__value *value = walk->values[i];
        if (value && value->tensor && !value->duplicate && !count_value(walk, value, types, rows, report))
            return walk->status =
                       tare__fail(walk->model->error, TARE_E_INPUT,
                                  "'%.200s': its weights are larger than can be counted", walk->model->path);
    }
    qsort(types, TYPES, sizeof *types, by_bytes);
    for (size_t i = 0; i < TYPES; i++) {
        if (types[i].tensors)
            types[report->n_types++] = types[i];
    }
    for (size_t i = 0; i < TARE__ROLES; i++) {
        if (rows[i].tensors)
            rows[report->n_uses++] = rows[i];
    }
    report->types = types;
    report->uses = rows;
    return 0;
}
