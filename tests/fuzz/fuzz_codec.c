/* fuzz_codec: every decoder of src/format/ on any bytes. The first byte picks the kind of block and whether
 * its header comes from the input (the next 64 bytes) or is made to fit. One thread.
 * Must not know files: the cursor over them has a fuzzer of its own. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/format.h"

static tare__squeezer *squeezer;
static tare__events_decoder decoder;
static tare__complete_span spans[TARE__EVENTS_MAX];
static tare__fact facts[TARE__FACTS_MAX];
static tare__stack_sample stack_samples[TARE__STACK_SAMPLES_MAX];
static volatile uint64_t sink; /* what was read must have been readable */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void read_events(const tare__block_header *header, const uint8_t *payload)
{
    tare__event event;
    uint32_t n = 0, begun = 0;
    uint64_t last = header->first_ticks;
    if (tare__events_open(&decoder, squeezer, header, payload))
        return;
    must(decoder.open.depth <= TARE__STACK_LISTED);
    while (tare__events_next(&decoder, &event)) {
        must(event.ticks >= last && event.ticks <= header->last_ticks);
        must((event.op == TARE__OP_END || event.op == TARE__OP_LOST_ENDS) == (event.name == 0));
        last = event.ticks;
        begun += event.op == TARE__OP_BEGIN || event.op == TARE__OP_NEXT;
        n++;
    }
    must(n == header->count && begun == header->spans && !decoder.values.failed);
}

static void read_complete(const tare__block_header *header, const uint8_t *payload)
{
    if (tare__complete_read(header, payload, squeezer, spans))
        return;
    for (uint32_t i = 0; i < header->count; i++)
        must(spans[i].name && spans[i].start >= header->first_ticks && spans[i].end <= header->last_ticks);
}

static void take_name(void *context, const tare__file_name *name)
{
    uint64_t sum = name->id;
    for (uint32_t i = 0; i < name->text_bytes; i++)
        sum += (uint8_t)name->text[i];
    for (uint32_t i = 0; i < name->file_bytes; i++)
        sum += (uint8_t)name->file[i];
    sink = sum;
    ++*(uint32_t *)context;
}

static void take_aggregate(void *context, const tare__aggregate *aggregate)
{
    must(aggregate->name != 0);
    for (unsigned i = 0; i < TARE__CELL_BUCKETS; i++)
        sink += aggregate->buckets[i];
    ++*(uint32_t *)context;
}

static void take_series(void *context, const tare__series *series)
{
    must(series->id != 0);
    const char *texts[] = {series->metric, series->label, series->absent};
    const uint32_t bytes[] = {series->metric_bytes, series->label_bytes, series->absent_bytes};
    for (unsigned i = 0; i < 3; i++)
        for (uint32_t at = 0; at < bytes[i]; at++)
            sink += (uint8_t)texts[i][at];
    ++*(uint32_t *)context;
}

static void take_samples(void *context, uint32_t series, const uint64_t *ticks, const int64_t *values, uint32_t n)
{
    must(series != 0 && n != 0);
    for (uint32_t i = 0; i < n; i++) {
        must(i == 0 || ticks[i] > ticks[i - 1]);
        sink += (uint64_t)values[i];
    }
    *(uint32_t *)context += n;
}

static void read_facts(const tare__block_header *header, const uint8_t *payload)
{
    if (tare__facts_read(header, payload, squeezer, facts))
        return;
    for (uint32_t i = 0; i < header->count; i++)
        must(facts[i].key && facts[i].ticks >= header->first_ticks && facts[i].ticks <= header->last_ticks);
}

static void read_text(const char *text, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        sink += (uint8_t)text[i];
}

static void take_function(void *context, uint32_t number, const tare__stack_function *function)
{
    must(number && number <= TARE__STACK_FUNCTIONS_MAX);
    read_text(function->name, function->name_bytes);
    read_text(function->file, function->file_bytes);
    ++*(uint32_t *)context;
}

static void take_thread(void *context, uint32_t number, const tare__stack_thread *thread)
{
    must(number && number <= TARE__STACK_THREADS_MAX);
    read_text(thread->name, thread->name_bytes);
    ++*(uint32_t *)context;
}

static void take_stack(void *context, uint32_t number, uint32_t caller, uint32_t function, uint64_t line)
{
    must(number <= TARE__STACKS_MAX && caller < number && function <= TARE__STACK_FUNCTIONS_MAX);
    sink += line;
    ++*(uint32_t *)context;
}

static void read_stacks(const tare__block_header *header, const uint8_t *payload)
{
    uint32_t seen = 0;
    const tare__stacks_sink all = {take_function, take_thread, take_stack, &seen};
    int status = tare__stacks_read(header, payload, squeezer, &all);
    must(seen == (status ? 0 : header->count));
}

static void read_stack_samples(const tare__block_header *header, const uint8_t *payload)
{
    uint32_t n;
    int status = tare__stack_samples_read(header, payload, squeezer, stack_samples, &n);
    must(n == (status ? 0 : header->count));
    for (uint32_t i = 0; i < n; i++) {
        const tare__stack_sample *sample = &stack_samples[i];
        must(sample->thread && sample->thread <= TARE__STACK_THREADS_MAX && sample->stack <= TARE__STACKS_MAX);
        must(sample->ticks >= (i ? sample[-1].ticks : header->first_ticks) && sample->ticks <= header->last_ticks);
    }
}

static void read_clock(const tare__block_header *header, const uint8_t *payload)
{
    tare__clock_sync syncs[16];
    uint32_t n;
    if (tare__clock_read(header, payload, syncs, 16, &n) == 0)
        must(n == (header->count < 16 ? header->count : 16));
}

static void read_fields(const tare__block_header *header, const uint8_t *payload)
{
    tare__reader reader = {payload, payload + header->payload_bytes, false};
    const uint8_t *data;
    uint32_t tag;
    size_t bytes;
    while (tare__field_next(&reader, &tag, &data, &bytes))
        sink += tare__field_value(data, bytes) + tag;
}

static void take_symbol(void *context, const tare__stack_symbol *row)
{
    ++*(uint32_t *)context;
    for (uint32_t i = 0; i < row->n; i++)
        sink += row->frames[i].function + row->frames[i].line;
}

static void read_symbols(const tare__block_header *header, const uint8_t *payload)
{
    uint32_t seen = 0;
    if (tare__stack_symbols_read(header, payload, squeezer, take_symbol, &seen) == 0)
        must(seen == header->count);
    else
        must(seen == 0);
}

static void read_block(const tare__block_header *header, const uint8_t *payload)
{
    uint32_t seen = 0;
    switch (header->kind) {
    case TARE__BLOCK_NAMES:
        if (tare__names_read(header, payload, squeezer, take_name, &seen) == 0)
            must(seen == header->count);
        break;
    case TARE__BLOCK_AGGREGATES:
        if (tare__aggregates_read(header, payload, squeezer, take_aggregate, &seen) == 0)
            must(seen == header->count);
        break;
    case TARE__BLOCK_SERIES:
        if (tare__series_read(header, payload, squeezer, take_series, &seen) == 0)
            must(seen == header->count);
        break;
    case TARE__BLOCK_SAMPLES:
        if (tare__samples_read(header, payload, squeezer, take_samples, &seen) == 0)
            must(seen == header->count);
        else
            must(seen == 0);
        break;
    case TARE__BLOCK_EVENTS:
        read_events(header, payload);
        break;
    case TARE__BLOCK_COMPLETE:
        read_complete(header, payload);
        break;
    case TARE__BLOCK_FACTS:
        read_facts(header, payload);
        break;
    case TARE__BLOCK_STACKS:
        read_stacks(header, payload);
        break;
    case TARE__BLOCK_SYMBOLS:
        read_symbols(header, payload);
        break;
    case TARE__BLOCK_STACK_SAMPLES:
        read_stack_samples(header, payload);
        break;
    case TARE__BLOCK_CLOCK:
        read_clock(header, payload);
        break;
    default:
        read_fields(header, payload);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (!squeezer && !(squeezer = tare__squeezer_new()))
        return 0;
    if (bytes < 1)
        return 0;
    tare__block_header header = {.kind = data[0] & 15, .count = 1, .last_ticks = UINT64_MAX};
    bool with_header = data[0] & 16;
    header.spans = header.kind == TARE__BLOCK_COMPLETE || (data[0] & 32);
    data++;
    bytes--;
    if (with_header && bytes >= sizeof header) {
        uint16_t kind = header.kind;
        memcpy(&header, data, sizeof header);
        header.kind = kind;
        header.flags = 0;
        data += sizeof header;
        bytes -= sizeof header;
    }
    header.payload_bytes = (uint32_t)bytes;
    read_block(&header, data);
    return 0;
}
