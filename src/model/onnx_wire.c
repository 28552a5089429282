/* onnx_wire: reads the protobuf wire format, field by field, directly from the mapped file.
 * A reader belongs to one thread. Trusts nothing it reads.
 * Must not know what the fields mean. */
#include "onnx_wire.h"

static bool broken(tare__wire *wire, const char *wrong)
{
    wire->wrong = wrong;
    return false;
}

static bool read_varint(tare__wire *wire, uint64_t *value)
{
    const uint8_t *at = wire->at;
    uint64_t sum = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (at == wire->end)
            return broken(wire, "it ends inside of a number");
        uint8_t byte = *at++;
        if (shift < 64)
            sum |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            wire->at = at;
            *value = sum;
            return true;
        }
    }
    return broken(wire, "a number is longer than any can be");
}

static bool read_fixed(tare__wire *wire, size_t bytes, uint64_t *value)
{
    if ((size_t)(wire->end - wire->at) < bytes)
        return broken(wire, "it ends inside of a number");
    *value = 0;
    for (size_t i = 0; i < bytes; i++)
        *value |= (uint64_t)wire->at[i] << (8 * i);
    wire->at += bytes;
    return true;
}

static bool read_element(tare__wire *wire, tare__wire_type type, uint64_t *value)
{
    switch (type) {
    case TARE__WIRE_VARINT: return read_varint(wire, value);
    case TARE__WIRE_FIXED64: return read_fixed(wire, 8, value);
    case TARE__WIRE_FIXED32: return read_fixed(wire, 4, value);
    default: return broken(wire, "a field is of no known kind");
    }
}

static bool read_bytes(tare__wire *wire, tare__slice *bytes)
{
    uint64_t length;
    if (!read_varint(wire, &length))
        return false;
    if (length > (uint64_t)(wire->end - wire->at))
        return broken(wire, "a field is longer than its message");
    *bytes = (tare__slice){wire->at, (size_t)length};
    wire->at += length;
    return true;
}

bool tare__wire_next(tare__wire *wire, tare__wire_field *field)
{
    uint64_t key;
    if (wire->wrong || wire->at == wire->end || !read_varint(wire, &key))
        return false;
    if (key >> 32 || key >> 3 == 0)
        return broken(wire, "a field has no valid number");
    field->number = (uint32_t)(key >> 3);
    field->type = (tare__wire_type)(key & 7);
    return field->type == TARE__WIRE_BYTES ? read_bytes(wire, &field->bytes)
                                           : read_element(wire, field->type, &field->value);
}

tare__wire_numbers tare__wire_numbers_of(tare__slice message, uint32_t number, tare__wire_type element)
{
    return (tare__wire_numbers){.wire = tare__wire_of(message), .number = number, .element = element};
}

bool tare__wire_number(tare__wire_numbers *numbers, uint64_t *value)
{
    tare__wire_field field;
    for (;;) {
        if (numbers->packed.at != numbers->packed.end)
            return read_element(&numbers->packed, numbers->element, value);
        if (!tare__wire_next(&numbers->wire, &field))
            return false;
        if (field.number != numbers->number)
            continue;
        if (field.type == numbers->element) {
            *value = field.value;
            return true;
        }
        if (field.type == TARE__WIRE_BYTES)
            numbers->packed = tare__wire_of(field.bytes);
    }
}
