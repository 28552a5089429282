/* complete: encodes spans with start and end as columns of varints, and decodes them.
 * Owned by the calling thread.
 * Must not know what tracks, parents and flows mean. */
#include "format.h"
#include "tare.h"

enum { NAME, TRACK, START, DURATION, ID, PARENT, FLOW, COLUMNS };

static void fill_columns(const tare__complete_span *spans, uint32_t n, uint64_t first_ticks, uint8_t **at)
{
    tare__complete_span before = {.start = first_ticks};
    for (uint32_t i = 0; i < n; i++) {
        const tare__complete_span *span = &spans[i];
        at[NAME] = tare__varint_write(at[NAME], tare__name_or_lost(span->name));
        at[TRACK] = tare__varint_write(at[TRACK], span->track);
        at[START] = tare__varint_write(at[START], tare__zigzag_from(span->start, before.start));
        at[DURATION] = tare__varint_write(at[DURATION], tare__zigzag_from(span->end, span->start));
        at[ID] = tare__varint_write(at[ID], tare__zigzag_from(span->id, before.id));
        at[PARENT] = tare__varint_write(at[PARENT], tare__zigzag_from(span->parent, before.parent));
        at[FLOW] = tare__varint_write(at[FLOW], tare__zigzag_from(span->flow, before.flow));
        before = *span;
    }
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

int tare__complete_seal(const tare__complete_span *spans, uint32_t n, tare__squeezer *squeezer,
                        tare__block_header *header, tare__text *out)
{
    if (n > TARE__EVENTS_MAX)
        return TARE_E_USAGE;
    size_t each = (size_t)n * TARE__VARINT_BYTES;
    uint8_t *room = tare__squeezer_room(squeezer, each * COLUMNS), *starts[COLUMNS], *ends[COLUMNS];
    if (!room)
        return TARE_E_MEMORY;
    header->kind = TARE__BLOCK_COMPLETE;
    header->count = header->spans = n;
    header->first_ticks = n ? UINT64_MAX : 0;
    header->last_ticks = 0;
    for (uint32_t i = 0; i < n; i++) {
        /* A caller's end may lie before its start. */
        header->first_ticks = earlier(header->first_ticks, earlier(spans[i].start, spans[i].end));
        header->last_ticks = later(header->last_ticks, later(spans[i].start, spans[i].end));
    }
    for (unsigned i = 0; i < COLUMNS; i++)
        starts[i] = ends[i] = room + i * each;
    fill_columns(spans, n, header->first_ticks, ends);
    return tare__columns_seal(squeezer, header, starts, ends, COLUMNS, out);
}

static uint64_t apart(tare__reader *reader, uint64_t before)
{
    return before + (uint64_t)tare__unzigzag(tare__read_varint(reader));
}

static bool read_span(tare__reader *readers, const tare__complete_span *before, tare__complete_span *span)
{
    uint64_t name = tare__read_varint(&readers[NAME]), track = tare__read_varint(&readers[TRACK]);
    span->name = (uint32_t)name;
    span->track = (uint32_t)track;
    span->start = apart(&readers[START], before->start);
    span->end = apart(&readers[DURATION], span->start);
    span->id = apart(&readers[ID], before->id);
    span->parent = apart(&readers[PARENT], before->parent);
    span->flow = apart(&readers[FLOW], before->flow);
    return name != 0 && name <= UINT32_MAX && track <= UINT32_MAX;
}

int tare__complete_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                        tare__complete_span *spans)
{
    tare__reader reader = {payload, payload + header->payload_bytes, false}, readers[COLUMNS];
    if (header->kind != TARE__BLOCK_COMPLETE || header->flags || header->count > TARE__EVENTS_MAX ||
        header->spans != header->count)
        return TARE_E_INPUT;
    int status = tare__columns_open(squeezer, &reader, readers, COLUMNS,
                                    (size_t)TARE__EVENTS_MAX * TARE__VARINT_BYTES);
    if (status)
        return status;
    tare__complete_span before = {.start = header->first_ticks};
    for (uint32_t i = 0; i < header->count; i++) {
        tare__complete_span *span = &spans[i];
        if (!read_span(readers, &before, span) || earlier(span->start, span->end) < header->first_ticks ||
            later(span->start, span->end) > header->last_ticks)
            return TARE_E_INPUT;
        before = *span;
    }
    return tare__columns_done(readers, COLUMNS) ? 0 : TARE_E_INPUT;
}
