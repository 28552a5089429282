/* series: encodes sampled series as columns of numbers and texts, and decodes them.
 * Owned by the calling thread.
 * Must not know what metrics and subjects mean. */
#include <string.h>

#include "format.h"
#include "tare.h"

#define SERIES_MAX 4096u            /* in a block */
#define TEXTS_BYTES_MAX (1u << 20)  /* of each of the three texts in it */

enum { ID, UNIT, KIND, SUBJECT, KEY, OWNER, METRIC_BYTES, LABEL_BYTES, ABSENT_BYTES, NUMBERS };
enum { METRIC = NUMBERS, LABEL, ABSENT, COLUMNS };
enum { TEXTS = COLUMNS - NUMBERS };

static const uint32_t *text_bytes(const tare__series *series, unsigned text)
{
    const uint32_t *const bytes[TEXTS] = {&series->metric_bytes, &series->label_bytes, &series->absent_bytes};
    return bytes[text];
}

static const char *text_of(const tare__series *series, unsigned text)
{
    const char *const texts[TEXTS] = {series->metric, series->label, series->absent};
    return texts[text];
}

static void fill_series(const tare__series *series, const tare__series *before, uint8_t **at)
{
    const uint64_t numbers[NUMBERS] = {
        tare__zigzag_from(series->id, before->id),
        series->unit,
        series->kind,
        series->subject,
        tare__zigzag_from(series->key, before->key),
        tare__zigzag_from(series->owner, before->owner),
        series->metric_bytes,
        series->label_bytes,
        series->absent_bytes,
    };
    for (unsigned i = 0; i < NUMBERS; i++)
        at[i] = tare__varint_write(at[i], numbers[i]);
    for (unsigned i = 0; i < TEXTS; i++) {
        uint32_t bytes = *text_bytes(series, i);
        if (bytes)
            memcpy(at[NUMBERS + i], text_of(series, i), bytes);
        at[NUMBERS + i] += bytes;
    }
}

static int seal_some(const tare__series *series, uint32_t n, const size_t bytes[TEXTS], tare__squeezer *squeezer,
                     tare__text *out)
{
    static const tare__series none;
    size_t each = (size_t)n * TARE__VARINT_BYTES;
    uint8_t *room = tare__squeezer_room(squeezer, each * NUMBERS + bytes[0] + bytes[1] + bytes[2]);
    uint8_t *starts[COLUMNS], *ends[COLUMNS];
    if (!room)
        return TARE_E_MEMORY;
    for (unsigned i = 0; i <= METRIC; i++)
        starts[i] = room + i * each;
    for (unsigned i = 1; i < TEXTS; i++)
        starts[NUMBERS + i] = starts[NUMBERS + i - 1] + bytes[i - 1];
    memcpy(ends, starts, sizeof ends);
    for (uint32_t i = 0; i < n; i++)
        fill_series(&series[i], i ? &series[i - 1] : &none, ends);
    tare__block_header header = {.kind = TARE__BLOCK_SERIES, .count = n};
    return tare__columns_seal(squeezer, &header, starts, ends, COLUMNS, out);
}

/* Whether its texts still fit into the block; if so, counts them. */
static bool add_texts(const tare__series *series, size_t bytes[TEXTS])
{
    for (unsigned i = 0; i < TEXTS; i++)
        if (*text_bytes(series, i) > TEXTS_BYTES_MAX - bytes[i])
            return false;
    for (unsigned i = 0; i < TEXTS; i++)
        bytes[i] += *text_bytes(series, i);
    return true;
}

int tare__series_seal(const tare__series *series, uint32_t n, tare__squeezer *squeezer, tare__text *out)
{
    size_t before = out->length;
    int status = 0;
    for (uint32_t from = 0, to = 0; from < n && !status; from = to) {
        size_t bytes[TEXTS] = {0};
        while (to < n && to - from < SERIES_MAX && add_texts(&series[to], bytes))
            to++;
        status = to == from ? TARE_E_USAGE : seal_some(series + from, to - from, bytes, squeezer, out);
    }
    if (status && out->length > before) {
        out->length = before; /* all or nothing */
        out->data[before] = '\0';
    }
    return status;
}

static bool read_texts(tare__reader *readers, tare__series *series)
{
    const char **const texts[TEXTS] = {&series->metric, &series->label, &series->absent};
    uint32_t *const bytes[TEXTS] = {&series->metric_bytes, &series->label_bytes, &series->absent_bytes};
    for (unsigned i = 0; i < TEXTS; i++) {
        uint64_t length = tare__read_varint(&readers[METRIC_BYTES + i]);
        const uint8_t *text = tare__read_bytes(&readers[NUMBERS + i], length);
        if (!text || readers[METRIC_BYTES + i].failed)
            return false;
        *texts[i] = (const char *)text;
        *bytes[i] = (uint32_t)length;
    }
    return true;
}

static bool read_series(tare__reader *readers, tare__series *series)
{
    uint64_t id = series->id + (uint64_t)tare__unzigzag(tare__read_varint(&readers[ID]));
    uint64_t unit = tare__read_varint(&readers[UNIT]), kind = tare__read_varint(&readers[KIND]);
    uint64_t subject = tare__read_varint(&readers[SUBJECT]);
    series->key += (uint64_t)tare__unzigzag(tare__read_varint(&readers[KEY]));
    series->owner += (uint64_t)tare__unzigzag(tare__read_varint(&readers[OWNER]));
    series->id = (uint32_t)id;
    series->unit = (uint32_t)unit;
    series->kind = (uint32_t)kind;
    series->subject = (uint32_t)subject;
    return id && id <= UINT32_MAX && unit <= UINT32_MAX && kind <= UINT32_MAX && subject <= UINT32_MAX &&
           read_texts(readers, series);
}

/* Only checks if there is no sink. */
static bool read_all(const tare__reader *from, uint32_t n, tare__series_sink *sink, void *context)
{
    tare__reader readers[COLUMNS];
    tare__series series = {0};
    memcpy(readers, from, sizeof readers);
    for (uint32_t i = 0; i < n; i++) {
        if (!read_series(readers, &series))
            return false;
        if (sink)
            sink(context, &series);
    }
    return tare__columns_done(readers, COLUMNS);
}

int tare__series_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                      tare__series_sink *sink, void *context)
{
    tare__reader readers[COLUMNS];
    tare__reader reader = {payload, payload + header->payload_bytes, false};
    if (header->kind != TARE__BLOCK_SERIES || header->flags || header->count > TEXTS_BYTES_MAX)
        return TARE_E_INPUT;
    int status = tare__columns_open(squeezer, &reader, readers, COLUMNS, TEXTS_BYTES_MAX);
    if (status)
        return status;
    if (!read_all(readers, header->count, NULL, NULL))
        return TARE_E_INPUT;
    read_all(readers, header->count, sink, context);
    return 0;
}
