/* ort_input: generates tensors for a model's inputs.
 * Pure but for the arena; the same seed gives the same values on every machine.
 * Must not know the runtime. */
#define _GNU_SOURCE
#include "ort.h"

#include <string.h>
#include <strings.h>

#include "half.h"
#include "model.h"
#include "tare.h"

#define ELEMENTS_MAX ((int64_t)1 << 36)

enum { FLOAT = 1, U8, I8, U16, I16, I32, I64, STRING, BOOL, F16, F64, U32, U64, C64, C128, BF16 };

static const struct {
    const char *name;
    size_t bytes;
} types[] = {
    [FLOAT] = {"float32", 4}, [U8] = {"uint8", 1},   [I8] = {"int8", 1},      [U16] = {"uint16", 2},
    [I16] = {"int16", 2},     [I32] = {"int32", 4},  [I64] = {"int64", 8},    [STRING] = {"string", 0},
    [BOOL] = {"bool", 1},     [F16] = {"float16", 2}, [F64] = {"float64", 8}, [U32] = {"uint32", 4},
    [U64] = {"uint64", 8},    [C64] = {"complex64", 8}, [C128] = {"complex128", 16}, [BF16] = {"bfloat16", 2},
};

static bool known(int type)
{
    return type > 0 && type < (int)TARE__COUNT_OF(types) && types[type].name;
}

size_t tare__ort_type_bytes(int type)
{
    return known(type) ? types[type].bytes : 0;
}

const char *tare__ort_type_name(int type)
{
    return known(type) ? types[type].name : NULL;
}

int64_t tare__ort_elements(const int64_t *dims, size_t rank)
{
    int64_t elements = 1;
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0 || (dims[i] && elements > ELEMENTS_MAX / dims[i]))
            return -1;
        elements *= dims[i];
    }
    return elements;
}

/* ---- what an input is for ------------------------------------------------------------------------------------- */
static bool whole_numbers(int type)
{
    return type == I64 || type == I32;
}

static tare__ort_kind kind_of(const tare__ort_tensor *tensor)
{
    const char *name = tensor->name;
    if (strcasestr(name, "mask"))
        return TARE__ORT_MASK;
    if (tensor->rank == 4 && (tensor->type == FLOAT || tensor->type == F16 || tensor->type == U8) &&
        (tensor->dims[1] == 1 || tensor->dims[1] == 3 || tensor->dims[1] == 4 || tensor->dims[3] == 1 ||
         tensor->dims[3] == 3 || tensor->dims[3] == 4))
        return TARE__ORT_IMAGE;
    if (!whole_numbers(tensor->type))
        return TARE__ORT_PLAIN;
    if (strcasestr(name, "token_type") || strcasestr(name, "segment"))
        return TARE__ORT_SEGMENTS;
    if (strcasestr(name, "position"))
        return TARE__ORT_POSITIONS;
    if (tensor->ids || strcasestr(name, "ids") || strcasestr(name, "token"))
        return TARE__ORT_IDS;
    return TARE__ORT_PLAIN;
}

static uint64_t count_ones(const tare__ort_tensor *mask)
{
    size_t size = tare__ort_type_bytes(mask->type);
    uint64_t ones = 0;
    for (size_t at = 0; size && at + size <= mask->bytes; at += size) {
        bool any = false;
        for (size_t i = 0; i < size; i++)
            any |= ((const char *)mask->data)[at + i] != 0;
        ones += any;
    }
    return ones;
}

uint64_t tare__ort_tokens(const tare__ort_tensor *tensors, size_t n)
{
    const tare__ort_tensor *ids = NULL, *mask = NULL;
    for (size_t i = 0; i < n; i++) {
        tare__ort_kind kind = kind_of(&tensors[i]);
        if (kind == TARE__ORT_IDS && tensors[i].rank == 2 && !ids)
            ids = &tensors[i];
        if (kind == TARE__ORT_MASK && tensors[i].rank == 2 && !mask)
            mask = &tensors[i];
    }
    if (!ids)
        return 0;
    /* A mask that includes the past is longer than the ids: then its ones are not those of this run. */
    bool same = mask && mask->dims[0] == ids->dims[0] && mask->dims[1] == ids->dims[1] && mask->data;
    return same ? count_ones(mask) : (uint64_t)tare__ort_elements(ids->dims, ids->rank);
}

uint64_t tare__ort_images(const tare__ort_tensor *tensors, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (kind_of(&tensors[i]) == TARE__ORT_IMAGE)
            return (uint64_t)tensors[i].dims[0];
    return 0;
}

/* ---- values --------------------------------------------------------------------------------------------------- */
static void put_real(int type, void *data, size_t at, double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    switch (type) {
    case F64: ((double *)data)[at] = value; break;
    case F16: ((uint16_t *)data)[at] = tare__half_of(single); break;
    case BF16: ((uint16_t *)data)[at] = (uint16_t)(bits >> 16); break;
    default: ((float *)data)[at] = single; break;
    }
}

static void put_whole(int type, void *data, size_t at, int64_t value)
{
    switch (types[type].bytes) {
    case 1: ((int8_t *)data)[at] = (int8_t)value; break;
    case 2: ((int16_t *)data)[at] = (int16_t)value; break;
    case 4: ((int32_t *)data)[at] = (int32_t)value; break;
    default: ((int64_t *)data)[at] = value; break;
    }
}

static bool is_real(int type)
{
    return type == FLOAT || type == F64 || type == F16 || type == BF16;
}

static double next_value(const tare__model_fill *fill, int64_t i, int64_t row, tare__random *random)
{
    switch (fill->kind) {
    case TARE__FILL_UNIFORM: return fill->low + (fill->high - fill->low) * tare__random_unit(random);
    case TARE__FILL_WHOLE: return (double)tare__random_below(random, (uint64_t)fill->high);
    case TARE__FILL_RANGE: return (double)(i % row);
    case TARE__FILL_VALUES: return fill->n_values ? fill->values[(size_t)i % fill->n_values] : 0;
    default: return tare__random_normal(random);
    }
}

static void put_all(tare__ort_tensor *tensor, const tare__model_fill *fill, int64_t elements, tare__random *random)
{
    int64_t row = tensor->rank && tensor->dims[tensor->rank - 1] ? tensor->dims[tensor->rank - 1] : 1;
    for (int64_t i = 0; i < elements; i++) {
        double value = next_value(fill, i, row, random);
        if (is_real(tensor->type))
            put_real(tensor->type, tensor->data, (size_t)i, value);
        else
            put_whole(tensor->type, tensor->data, (size_t)i, (int64_t)value);
    }
}

int tare__ort_generate(tare__ort_tensor *tensor, const tare__model_fill *fill, uint64_t seed, tare__arena *arena,
                       tare__error *error)
{
    size_t size = tare__ort_type_bytes(tensor->type);
    int64_t elements = tare__ort_elements(tensor->dims, tensor->rank);
    if (elements < 0)
        return tare__fail(error, TARE_E_USAGE,
                          "the shape of input '%.100s' is open: --dim NAME=N or --shape '%.100s=N,N' closes it",
                          tensor->name, tensor->name);
    if (!size || tensor->type == C64 || tensor->type == C128) {
        const char *name = tare__ort_type_name(tensor->type);
        return tare__fail(error, TARE_E_USAGE, "input '%.100s' is of type %s, for which no values can be generated",
                          tensor->name, name ? name : "unknown");
    }
    tensor->bytes = (size_t)elements * size;
    tensor->data = tare__arena_alloc(arena, tensor->bytes ? tensor->bytes : 1);
    if (!tensor->data)
        return tare__fail(error, TARE_E_MEMORY, "out of memory: input '%.100s' has %zu bytes", tensor->name,
                          tensor->bytes);
    tare__random random;
    tare__random_seed(&random, seed ^ tare__hash_bytes(TARE__HASH_START, tensor->name, strlen(tensor->name)));
    put_all(tensor, fill, elements, &random);
    return 0;
}
