/* onnx_tensor: types of elements, sizes, and the values of small tensors.
 * Pure; any thread.
 * Must not know graphs. */
#include <math.h>

#include "onnx.h"

static const struct {
    const char *name;
    unsigned bits;
    bool is_float;
} types[] = {
    [1] = {"float32", 32, true},     [2] = {"uint8", 8, false},         [3] = {"int8", 8, false},
    [4] = {"uint16", 16, false},     [5] = {"int16", 16, false},        [6] = {"int32", 32, false},
    [7] = {"int64", 64, false},      [8] = {"string", 0, false},        [9] = {"bool", 8, false},
    [10] = {"float16", 16, true},    [11] = {"float64", 64, true},      [12] = {"uint32", 32, false},
    [13] = {"uint64", 64, false},    [14] = {"complex64", 64, true},    [15] = {"complex128", 128, true},
    [16] = {"bfloat16", 16, true},   [17] = {"float8e4m3fn", 8, true},  [18] = {"float8e4m3fnuz", 8, true},
    [19] = {"float8e5m2", 8, true},  [20] = {"float8e5m2fnuz", 8, true}, [21] = {"uint4", 4, false},
    [22] = {"int4", 4, false},       [23] = {"float4e2m1", 4, true},    [24] = {"float8e8m0", 8, true},
    [25] = {"uint2", 2, false},      [26] = {"int2", 2, false},
};

static bool is_type(int type)
{
    return type > 0 && (size_t)type < TARE__COUNT_OF(types);
}

const char *tare__onnx_type_name(int type)
{
    return is_type(type) ? types[type].name : NULL;
}

unsigned tare__onnx_type_bits(int type)
{
    return is_type(type) ? types[type].bits : 0;
}

bool tare__onnx_type_is_float(int type)
{
    return is_type(type) && types[type].is_float;
}

bool tare__onnx_bytes_of(int type, uint64_t elements, uint64_t *bytes)
{
    unsigned __int128 bits = (unsigned __int128)elements * tare__onnx_type_bits(type);
    *bytes = (uint64_t)((bits + 7) / 8);
    return (bits + 7) / 8 <= INT64_MAX;
}

bool tare__onnx_elements_of(int rank, const int64_t *dims, uint64_t *elements)
{
    uint64_t product = 1;
    bool empty = false;
    for (int i = 0; i < rank; i++)
        empty = empty || dims[i] == 0;
    *elements = 0;
    if (empty)
        return true;
    for (int i = 0; i < rank; i++) {
        if (__builtin_mul_overflow(product, (uint64_t)dims[i], &product) || product > INT64_MAX)
            return false;
    }
    *elements = product;
    return true;
}

/* ---- values -------------------------------------------------------------------------------------------------- */
static double half_of(uint16_t bits)
{
    int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    double value = exponent == 31  ? (fraction ? NAN : INFINITY)
                   : exponent == 0 ? ldexp(fraction, -24)
                                   : ldexp(1024 + fraction, exponent - 25);
    return bits >> 15 ? -value : value;
}

/* An element from its bytes, unaligned. NaN: of a type that is not used for shapes. */
static double element_of(int type, const uint8_t *at)
{
    union {
        float f;
        double d;
        int8_t i8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
    } as = {.u64 = 0};
    memcpy(&as, at, tare__onnx_type_bits(type) / 8);
    switch (type) {
    case 1: return as.f;
    case 2:
    case 9: return at[0];
    case 3: return as.i8;
    case 4: return as.u16;
    case 5: return as.i16;
    case 6: return as.i32;
    case 7: return (double)as.i64;
    case 10: return half_of(as.u16);
    case 11: return as.d;
    case 12: return as.u32;
    case 13: return (double)as.u64;
    case 16: as.u32 = (uint32_t)as.u16 << 16; return as.f;
    default: return NAN;
    }
}

/* The field that has values of this type, and their layout. */
static bool typed_field(int type, uint32_t *number, tare__wire_type *element)
{
    *element = TARE__WIRE_VARINT;
    switch (type) {
    case 1: *number = 4, *element = TARE__WIRE_FIXED32; return true;
    case 11: *number = 10, *element = TARE__WIRE_FIXED64; return true;
    case 7: *number = 7; return true;
    case 12:
    case 13: *number = 11; return true;
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
    case 9:
    case 10:
    case 16: *number = 5; return true;
    default: return false;
    }
}

bool tare__onnx_tensor_values(const tare__onnx_tensor *tensor, double *values, size_t n)
{
    unsigned bytes = tare__onnx_type_bits(tensor->type) / 8;
    uint32_t number;
    tare__wire_type element;
    size_t got = 0;
    if (tensor->external || tensor->elements != n || bytes == 0 || bytes > 8)
        return false;
    if (tensor->raw.data) {
        for (; got < n; got++)
            values[got] = element_of(tensor->type, tensor->raw.data + got * bytes);
        return true;
    }
    if (!typed_field(tensor->type, &number, &element))
        return false;
    tare__wire_numbers numbers = tare__wire_numbers_of(tensor->message, number, element);
    for (uint64_t value; got < n && tare__wire_number(&numbers, &value); got++)
        values[got] = element_of(tensor->type, (const uint8_t *)&value);
    return got == n;
}
