/* fields: varints, the frame of a block, and the tagged fields of RUN, PROCESS, STREAM and END.
 * Owned by the calling thread.
 * Must not know what the tags mean. */
#include <string.h>

#include "format.h"
#include "tare.h"

void tare__varint_put(tare__text *out, uint64_t value)
{
    uint8_t bytes[TARE__VARINT_BYTES];
    uint8_t *end = tare__varint_write(bytes, value);
    tare__text_append(out, (const char *)bytes, (size_t)(end - bytes));
}

static uint64_t fail_read(tare__reader *reader)
{
    reader->failed = true;
    reader->at = reader->end;
    return 0;
}

uint64_t tare__read_long_varint(tare__reader *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
        uint8_t byte = *reader->at++;
        if (shift == 63 && byte > 1)
            break; /* more than 64 bits */
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return value;
    }
    return fail_read(reader);
}

const uint8_t *tare__read_bytes(tare__reader *reader, uint64_t bytes)
{
    if (reader->failed || bytes > (uint64_t)(reader->end - reader->at)) {
        fail_read(reader);
        return NULL;
    }
    const uint8_t *data = reader->at;
    reader->at += bytes;
    return data;
}

size_t tare__block_begin(tare__text *out)
{
    static const char blank[sizeof(tare__block_header)];
    size_t at = out->length;
    tare__text_append(out, blank, sizeof blank);
    return at;
}

static void cut(tare__text *out, size_t length)
{
    if (out->length <= length)
        return;
    out->length = length;
    out->data[length] = '\0';
}

int tare__block_end(tare__text *out, size_t at, tare__block_header *header, int status)
{
    size_t payload_at = at + sizeof *header;
    if (!status && out->failed)
        status = TARE_E_MEMORY;
    if (!status && out->length - payload_at > TARE__BLOCK_PAYLOAD_MAX)
        status = TARE_E_USAGE;
    if (status) {
        cut(out, at);
        return status;
    }
    header->flags = 0;
    header->reserved = 0;
    header->payload_bytes = (uint32_t)(out->length - payload_at);
    tare__block_header_seal(header, out->data + payload_at);
    memcpy(out->data + at, header, sizeof *header);
    return 0;
}

void tare__field_bytes(tare__text *fields, tare__field tag, const void *data, size_t bytes)
{
    tare__varint_put(fields, tag);
    tare__varint_put(fields, bytes);
    tare__text_append(fields, data, bytes);
}

void tare__field_number(tare__text *fields, tare__field tag, uint64_t value)
{
    uint8_t bytes[TARE__VARINT_BYTES];
    uint8_t *end = tare__varint_write(bytes, value);
    tare__field_bytes(fields, tag, bytes, (size_t)(end - bytes));
}

void tare__field_some(tare__text *fields, tare__field tag, uint64_t value)
{
    if (value)
        tare__field_number(fields, tag, value);
}

void tare__field_string(tare__text *fields, tare__field tag, const char *string)
{
    tare__field_bytes(fields, tag, string, strlen(string));
}

static uint32_t count_fields(const tare__text *fields)
{
    const uint8_t *data = (const uint8_t *)fields->data;
    tare__reader reader = {data, data + fields->length, false};
    uint32_t tag, n = 0;
    size_t bytes;
    while (tare__field_next(&reader, &tag, &data, &bytes))
        n++;
    return n;
}

int tare__fields_seal(tare__block_kind kind, uint32_t stream, const tare__text *fields, tare__text *out)
{
    if (fields->failed)
        return TARE_E_MEMORY;
    tare__block_header header = {.kind = (uint16_t)kind, .stream = stream};
    size_t at = tare__block_begin(out);
    if (fields->length) {
        header.count = count_fields(fields);
        tare__text_append(out, fields->data, fields->length);
    }
    return tare__block_end(out, at, &header, 0);
}

bool tare__field_next(tare__reader *reader, uint32_t *tag, const uint8_t **data, size_t *bytes)
{
    if (reader->at == reader->end)
        return false;
    uint64_t number = tare__read_varint(reader);
    uint64_t length = tare__read_varint(reader);
    const uint8_t *content = tare__read_bytes(reader, length);
    if (!content)
        return false;
    /* No defined tag is that large: a reader skips it like any unknown tag. */
    *tag = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
    *data = content;
    *bytes = (size_t)length;
    return true;
}

uint64_t tare__field_value(const uint8_t *data, size_t bytes)
{
    tare__reader reader = {data, data + bytes, false};
    return tare__read_varint(&reader);
}
