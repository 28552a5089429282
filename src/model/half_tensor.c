/* half_tensor: converts tensors of single precision to half precision, and writes protobuf.
 * Owned by the calling thread.
 * Must not know graphs. */
#define _GNU_SOURCE
#include "half.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tare.h"

/* Fields of TensorProto. */
enum { DIMS = 1, DATA_TYPE = 2, FLOAT_DATA = 4, NAME = 8, RAW_DATA = 9 };

uint16_t tare__half_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return sign | 0x7e00u; /* NaN */
    if (magnitude == 0x7f800000u)
        return sign | 0x7c00u;
    if (magnitude >= 0x477fe000u + 0x1000u)
        return sign | 0x7bffu;
    if (magnitude < 0x38800000u) { /* below the smallest normal one: counted in steps of 2^-24 */
        float scaled;
        memcpy(&scaled, &magnitude, sizeof scaled);
        scaled *= 0x1p24f;
        uint32_t whole = (uint32_t)scaled;
        float rest = scaled - (float)whole;
        whole += rest > 0.5f || (rest == 0.5f && (whole & 1));
        return sign | (uint16_t)whole;
    }
    uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1);
    return sign | (uint16_t)((rounded - 0x38000000u) >> 13);
}

/* ---- the wire ------------------------------------------------------------------------------------------------- */
static void put_varint(tare__text *out, uint64_t value)
{
    char bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[n++] = (char)(value | 0x80);
    bytes[n++] = (char)value;
    tare__text_append(out, bytes, n);
}

void tare__half_put_number(tare__text *out, uint32_t field, uint64_t value)
{
    put_varint(out, (uint64_t)field << 3 | TARE__WIRE_VARINT);
    put_varint(out, value);
}

void tare__half_put_length(tare__text *out, uint32_t field, size_t bytes)
{
    put_varint(out, (uint64_t)field << 3 | TARE__WIRE_BYTES);
    put_varint(out, bytes);
}

void tare__half_put_bytes(tare__text *out, uint32_t field, const void *data, size_t bytes)
{
    tare__half_put_length(out, field, bytes);
    if (bytes)
        tare__text_append(out, data, bytes);
}

void tare__half_put_parts(tare__text *out, uint32_t field, const tare__slice *parts, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += parts[i].length;
    tare__half_put_length(out, field, bytes);
    for (size_t i = 0; i < n; i++)
        if (parts[i].length)
            tare__text_append(out, (const char *)parts[i].data, parts[i].length);
}

void tare__half_put_field(tare__text *out, const tare__wire_field *field)
{
    size_t fixed = field->type == TARE__WIRE_FIXED64 ? 8 : 4;
    if (field->type == TARE__WIRE_VARINT) {
        tare__half_put_number(out, field->number, field->value);
    } else if (field->type == TARE__WIRE_BYTES) {
        tare__half_put_bytes(out, field->number, field->bytes.data, field->bytes.length);
    } else {
        put_varint(out, (uint64_t)field->number << 3 | field->type);
        tare__text_append(out, (const char *)&field->value, fixed); /* little-endian, like this machine */
    }
}

/* ---- values --------------------------------------------------------------------------------------------------- */
static void put_values(tare__text *out, const unsigned char *floats, size_t n)
{
    uint16_t piece[4096];
    tare__half_put_length(out, RAW_DATA, n * sizeof *piece);
    for (size_t at = 0; at < n && !out->failed;) {
        size_t count = n - at < TARE__COUNT_OF(piece) ? n - at : TARE__COUNT_OF(piece);
        for (size_t i = 0; i < count; i++) {
            float value;
            memcpy(&value, floats + (at + i) * sizeof value, sizeof value);
            piece[i] = tare__half_of(value);
        }
        tare__text_append(out, (const char *)piece, count * sizeof *piece);
        at += count;
    }
}

/* float_data, packed or not, one after the other. */
static int put_listed(tare__half *half, const tare__onnx_tensor *tensor, tare__text *out)
{
    tare__wire_numbers numbers = tare__wire_numbers_of(tensor->message, FLOAT_DATA, TARE__WIRE_FIXED32);
    tare__text floats = {0};
    uint64_t bits;
    while (floats.length < tensor->elements * sizeof(float) && !floats.failed && tare__wire_number(&numbers, &bits)) {
        uint32_t word = (uint32_t)bits;
        tare__text_append(&floats, (const char *)&word, sizeof word);
    }
    int status = floats.failed ? tare__no_memory(half->model.error) : 0;
    if (!status && floats.length != tensor->elements * sizeof(float))
        status = tare__fail(half->model.error, TARE_E_INPUT, "a weight of the model has fewer values than its shape");
    if (!status)
        put_values(out, (const unsigned char *)floats.data, tensor->elements);
    tare__text_free(&floats);
    return status;
}

/* External; the static analysis has checked that it is inside the model's directory. */
static int put_external(tare__half *half, const tare__onnx_tensor *tensor, tare__text *out)
{
    const char *slash = strrchr(half->model.path, '/');
    char path[4096];
    struct stat about;
    if (!half->model.beside)
        return tare__half_refuse(half, "its weights are in files beside it");
    snprintf(path, sizeof path, "%.*s%.*s", slash ? (int)(slash + 1 - half->model.path) : 0, half->model.path,
             (int)tensor->location.length, (const char *)tensor->location.data);
    const char *is;
    int fd = tare__input_open(path, false, &is);
    bool sound = fd >= 0 && fstat(fd, &about) == 0 && about.st_size > 0 &&
                 tensor->offset <= (uint64_t)about.st_size && tensor->bytes <= (uint64_t)about.st_size - tensor->offset;
    void *data = sound ? mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    if (data == MAP_FAILED)
        return tare__fail(half->model.error, TARE_E_INPUT, "cannot read weights in '%.200s'", path);
    put_values(out, (const unsigned char *)data + tensor->offset, tensor->elements);
    munmap(data, (size_t)about.st_size);
    return 0;
}

int tare__half_put_tensor(tare__half *half, tare__slice message, tare__text *out)
{
    tare__onnx_tensor tensor = {0};
    int status = tare__onnx_read_tensor(&half->model, message, &tensor);
    if (status)
        return status;
    if (tensor.type != TARE__ONNX_FLOAT) {
        tare__text_append(out, (const char *)message.data, message.length);
        return 0;
    }
    for (int i = 0; i < tensor.rank; i++)
        tare__half_put_number(out, DIMS, (uint64_t)tensor.dims[i]);
    tare__half_put_number(out, DATA_TYPE, TARE__ONNX_FLOAT16);
    if (tensor.name.length)
        tare__half_put_bytes(out, NAME, tensor.name.data, tensor.name.length);
    if (tensor.external)
        return put_external(half, &tensor, out);
    if (!tensor.raw.data)
        return put_listed(half, &tensor, out);
    put_values(out, tensor.raw.data, tensor.elements);
    return 0;
}

void tare__half_put_floats(const float *values, size_t n, int rank, tare__text *out)
{
    if (rank)
        tare__half_put_number(out, DIMS, n);
    tare__half_put_number(out, DATA_TYPE, TARE__ONNX_FLOAT16);
    put_values(out, (const unsigned char *)values, n);
}
