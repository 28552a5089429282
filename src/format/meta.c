/* meta: encodes names, aggregate cells and clock syncs as blocks, and decodes them.
 * Owned by the calling thread.
 * Must not know how names are found or clocks are read. */
#include <string.h>

#include "format.h"
#include "tare.h"

/* ---- names ---------------------------------------------------------------------------------------- */
#define NAMES_MAX 4096u              /* in a block */
#define NAMES_BYTES_MAX (1u << 20)   /* of texts and of files in it */

const char *tare__span_kind_word(uint32_t kind)
{
    static const char *const words[] = {
        [TARE_KIND_SPAN] = "span",         [TARE_KIND_STEP] = "step",     [TARE_KIND_EPOCH] = "epoch",
        [TARE_KIND_OPERATOR] = "operator", [TARE_KIND_MODULE] = "module", [TARE_KIND_PHASE] = "phase"};
    return kind < sizeof words / sizeof *words && words[kind] ? words[kind] : "span";
}

enum { NAME_ID, NAME_KIND, NAME_LINE, NAME_TEXT_BYTES, NAME_FILE_BYTES, NAME_NUMBERS };
enum { NAME_TEXT = NAME_NUMBERS, NAME_FILE, NAME_COLUMNS };

static void fill_name(const tare__file_name *name, uint32_t before, uint8_t **at)
{
    at[NAME_ID] = tare__varint_write(at[NAME_ID], tare__zigzag((int64_t)name->id - (int64_t)before));
    at[NAME_KIND] = tare__varint_write(at[NAME_KIND], name->kind);
    at[NAME_LINE] = tare__varint_write(at[NAME_LINE], name->line);
    at[NAME_TEXT_BYTES] = tare__varint_write(at[NAME_TEXT_BYTES], name->text_bytes);
    at[NAME_FILE_BYTES] = tare__varint_write(at[NAME_FILE_BYTES], name->file_bytes);
    if (name->text_bytes)
        memcpy(at[NAME_TEXT], name->text, name->text_bytes);
    if (name->file_bytes)
        memcpy(at[NAME_FILE], name->file, name->file_bytes);
    at[NAME_TEXT] += name->text_bytes;
    at[NAME_FILE] += name->file_bytes;
}

static int seal_some_names(const tare__file_name *names, uint32_t n, size_t text_bytes, size_t file_bytes,
                           tare__squeezer *squeezer, tare__text *out)
{
    size_t each = (size_t)n * TARE__VARINT_BYTES;
    uint8_t *room = tare__squeezer_room(squeezer, each * NAME_NUMBERS + text_bytes + file_bytes);
    uint8_t *starts[NAME_COLUMNS], *ends[NAME_COLUMNS];
    if (!room)
        return TARE_E_MEMORY;
    for (unsigned i = 0; i <= NAME_TEXT; i++)
        starts[i] = room + i * each;
    starts[NAME_FILE] = starts[NAME_TEXT] + text_bytes;
    memcpy(ends, starts, sizeof ends);
    for (uint32_t i = 0; i < n; i++)
        fill_name(&names[i], i ? names[i - 1].id : 0, ends);
    tare__block_header header = {.kind = TARE__BLOCK_NAMES, .count = n};
    return tare__columns_seal(squeezer, &header, starts, ends, NAME_COLUMNS, out);
}

int tare__names_seal(const tare__file_name *names, uint32_t n, tare__squeezer *squeezer, tare__text *out)
{
    for (uint32_t from = 0, to = 0; from < n; from = to) {
        size_t text_bytes = 0, file_bytes = 0;
        for (; to < n && to - from < NAMES_MAX; to++) {
            if (names[to].text_bytes > NAMES_BYTES_MAX - text_bytes ||
                names[to].file_bytes > NAMES_BYTES_MAX - file_bytes)
                break;
            text_bytes += names[to].text_bytes;
            file_bytes += names[to].file_bytes;
        }
        if (to == from)
            return TARE_E_USAGE;
        int status = seal_some_names(names + from, to - from, text_bytes, file_bytes, squeezer, out);
        if (status)
            return status;
    }
    return 0;
}

static bool read_name(tare__reader *readers, uint32_t before, tare__file_name *name)
{
    int64_t id = (int64_t)((uint64_t)tare__unzigzag(tare__read_varint(&readers[NAME_ID])) + before);
    uint64_t kind = tare__read_varint(&readers[NAME_KIND]), line = tare__read_varint(&readers[NAME_LINE]);
    uint64_t text_bytes = tare__read_varint(&readers[NAME_TEXT_BYTES]);
    uint64_t file_bytes = tare__read_varint(&readers[NAME_FILE_BYTES]);
    const uint8_t *text = tare__read_bytes(&readers[NAME_TEXT], text_bytes);
    const uint8_t *file = tare__read_bytes(&readers[NAME_FILE], file_bytes);
    if (id < 1 || id > UINT32_MAX || kind > UINT32_MAX || line > UINT32_MAX)
        return false;
    *name = (tare__file_name){
        .id = (uint32_t)id,
        .kind = (uint32_t)kind,
        .line = (uint32_t)line,
        .text = (const char *)text,
        .file = (const char *)file,
        .text_bytes = (uint32_t)text_bytes,
        .file_bytes = (uint32_t)file_bytes,
    };
    for (unsigned i = 0; i < NAME_COLUMNS; i++)
        if (readers[i].failed)
            return false;
    return true;
}

/* Only checks if there is no sink. */
static bool read_names(const tare__reader *from, uint32_t n, tare__name_sink *sink, void *context)
{
    tare__reader readers[NAME_COLUMNS];
    tare__file_name name = {.id = 0};
    memcpy(readers, from, sizeof readers);
    for (uint32_t i = 0; i < n; i++) {
        if (!read_name(readers, name.id, &name))
            return false;
        if (sink)
            sink(context, &name);
    }
    return tare__columns_done(readers, NAME_COLUMNS);
}

int tare__names_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                     tare__name_sink *sink, void *context)
{
    tare__reader readers[NAME_COLUMNS];
    tare__reader reader = {payload, payload + header->payload_bytes, false};
    if (header->kind != TARE__BLOCK_NAMES || header->flags)
        return TARE_E_INPUT;
    int status = tare__columns_open(squeezer, &reader, readers, NAME_COLUMNS, NAMES_BYTES_MAX);
    if (status)
        return status;
    if (!read_names(readers, header->count, NULL, NULL))
        return TARE_E_INPUT;
    read_names(readers, header->count, sink, context);
    return 0;
}

/* ---- aggregates ----------------------------------------------------------------------------------- */
enum { CELL_NAME, CELL_EVERY, CELL_COUNT, CELL_TIMED, CELL_TOTAL, CELL_MIN, CELL_MAX };
enum { CELL_BUCKETS = CELL_MAX + 1, CELL_COLUMNS };

#define BUCKETS_BYTES_MAX (2 + TARE__CELL_BUCKETS * 7) /* a gap takes up to 2 bytes, a count 5 */

/* Nonzero buckets: their number, then for each the number of empty buckets before it and its count. The program may
 * continue to count meanwhile, so each bucket is read once. */
static void put_buckets(tare__text *out, const uint32_t *live)
{
    uint32_t buckets[TARE__CELL_BUCKETS];
    uint8_t bytes[BUCKETS_BYTES_MAX];
    unsigned used = 0, empty = 0;
    for (unsigned i = 0; i < TARE__CELL_BUCKETS; i++) {
        buckets[i] = __atomic_load_n(&live[i], __ATOMIC_RELAXED);
        used += buckets[i] != 0;
    }
    uint8_t *at = tare__varint_write(bytes, used);
    for (unsigned i = 0; i < TARE__CELL_BUCKETS; i++) {
        if (!buckets[i]) {
            empty++;
            continue;
        }
        at = tare__varint_write(at, empty);
        at = tare__varint_write(at, buckets[i]);
        empty = 0;
    }
    tare__text_append(out, (const char *)bytes, (size_t)(at - bytes));
}

static void fill_numbers(const tare__aggregate *aggregate, uint8_t **at)
{
    const uint64_t numbers[CELL_BUCKETS] = {
        tare__name_or_lost(aggregate->name), aggregate->every, aggregate->count, aggregate->timed,
        aggregate->total,                    aggregate->min,   aggregate->max,
    };
    for (unsigned i = 0; i < CELL_BUCKETS; i++)
        at[i] = tare__varint_write(at[i], numbers[i]);
}

static int put_aggregates(const tare__aggregate *aggregates, uint32_t n, tare__squeezer *squeezer,
                          tare__text *buckets, tare__text *out)
{
    size_t each = (size_t)n * TARE__VARINT_BYTES;
    uint8_t *room = tare__squeezer_room(squeezer, each * CELL_BUCKETS), *ends[CELL_BUCKETS];
    if (!room)
        return TARE_E_MEMORY;
    for (unsigned i = 0; i < CELL_BUCKETS; i++)
        ends[i] = room + i * each;
    for (uint32_t i = 0; i < n; i++) {
        fill_numbers(&aggregates[i], ends);
        put_buckets(buckets, aggregates[i].buckets);
    }
    if (buckets->failed)
        return TARE_E_MEMORY;
    tare__column columns[CELL_COLUMNS];
    for (unsigned i = 0; i < CELL_BUCKETS; i++)
        columns[i] = (tare__column){.data = room + i * each, .bytes = (size_t)(ends[i] - (room + i * each))};
    columns[CELL_BUCKETS] = (tare__column){.data = (const uint8_t *)buckets->data, .bytes = buckets->length};
    return tare__columns_put(squeezer, columns, CELL_COLUMNS, out);
}

int tare__aggregates_seal(const tare__aggregate *aggregates, uint32_t n, tare__squeezer *squeezer,
                          tare__block_header *header, tare__text *out)
{
    if (n > TARE__EVENTS_MAX)
        return TARE_E_USAGE;
    tare__text buckets = {0};
    header->kind = TARE__BLOCK_AGGREGATES;
    header->count = n;
    header->spans = 0;
    header->first_ticks = header->last_ticks = 0;
    size_t at = tare__block_begin(out);
    int status = put_aggregates(aggregates, n, squeezer, &buckets, out);
    tare__text_free(&buckets);
    return tare__block_end(out, at, header, status);
}

static bool read_buckets(tare__reader *reader, uint32_t *buckets)
{
    uint64_t used = tare__read_varint(reader), next = 0;
    memset(buckets, 0, TARE__CELL_BUCKETS * sizeof *buckets);
    for (uint64_t i = 0; i < used; i++) {
        uint64_t empty = tare__read_varint(reader), held = tare__read_varint(reader);
        if (reader->failed || empty >= TARE__CELL_BUCKETS - next || held == 0 || held > UINT32_MAX)
            return false;
        buckets[next + empty] = (uint32_t)held;
        next += empty + 1;
    }
    return true;
}

static bool read_aggregate(tare__reader *readers, tare__aggregate *aggregate, uint32_t *buckets)
{
    uint64_t numbers[CELL_BUCKETS];
    for (unsigned i = 0; i < CELL_BUCKETS; i++) {
        numbers[i] = tare__read_varint(&readers[i]);
        if (readers[i].failed)
            return false;
    }
    if (numbers[CELL_NAME] == 0 || numbers[CELL_NAME] > UINT32_MAX || numbers[CELL_EVERY] > UINT32_MAX)
        return false;
    *aggregate = (tare__aggregate){
        .name = (uint32_t)numbers[CELL_NAME],
        .every = (uint32_t)numbers[CELL_EVERY],
        .count = numbers[CELL_COUNT],
        .timed = numbers[CELL_TIMED],
        .total = numbers[CELL_TOTAL],
        .min = numbers[CELL_MIN],
        .max = numbers[CELL_MAX],
        .buckets = buckets,
    };
    return read_buckets(&readers[CELL_BUCKETS], buckets);
}

static bool read_aggregates(const tare__reader *from, uint32_t n, tare__aggregate_sink *sink,
                            void *context)
{
    tare__reader readers[CELL_COLUMNS];
    uint32_t buckets[TARE__CELL_BUCKETS];
    tare__aggregate aggregate;
    memcpy(readers, from, sizeof readers);
    for (uint32_t i = 0; i < n; i++) {
        if (!read_aggregate(readers, &aggregate, buckets))
            return false;
        if (sink)
            sink(context, &aggregate);
    }
    return tare__columns_done(readers, CELL_COLUMNS);
}

int tare__aggregates_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                          tare__aggregate_sink *sink, void *context)
{
    tare__reader readers[CELL_COLUMNS];
    tare__reader reader = {payload, payload + header->payload_bytes, false};
    if (header->kind != TARE__BLOCK_AGGREGATES || header->flags || header->count > TARE__EVENTS_MAX)
        return TARE_E_INPUT;
    int status = tare__columns_open(squeezer, &reader, readers, CELL_COLUMNS, TARE__COLUMNS_BYTES_MAX);
    if (status)
        return status;
    if (!read_aggregates(readers, header->count, NULL, NULL))
        return TARE_E_INPUT;
    read_aggregates(readers, header->count, sink, context);
    return 0;
}

/* ---- clock ---------------------------------------------------------------------------------------- */
static void put_difference(tare__text *out, uint64_t value, uint64_t before)
{
    tare__varint_put(out, tare__zigzag((int64_t)(value - before)));
}

int tare__clock_seal(const tare__clock_sync *syncs, uint32_t n, tare__text *out)
{
    tare__block_header header = {.kind = TARE__BLOCK_CLOCK, .count = n};
    tare__clock_sync before = {0};
    size_t at = tare__block_begin(out);
    for (uint32_t i = 0; i < n; i++) {
        put_difference(out, syncs[i].ticks, before.ticks);
        put_difference(out, syncs[i].monotonic_ns, before.monotonic_ns);
        put_difference(out, syncs[i].realtime_ns, before.realtime_ns);
        before = syncs[i];
    }
    if (n) {
        header.first_ticks = syncs[0].ticks;
        header.last_ticks = syncs[n - 1].ticks;
    }
    return tare__block_end(out, at, &header, 0);
}

static void read_difference(tare__reader *reader, uint64_t *value)
{
    *value += (uint64_t)tare__unzigzag(tare__read_varint(reader));
}

int tare__clock_read(const tare__block_header *header, const uint8_t *payload, tare__clock_sync *syncs,
                     uint32_t room, uint32_t *n)
{
    tare__reader reader = {payload, payload + header->payload_bytes, false};
    tare__clock_sync sync = {0};
    *n = 0;
    if (header->kind != TARE__BLOCK_CLOCK || header->flags)
        return TARE_E_INPUT;
    for (uint32_t i = 0; i < header->count; i++) {
        read_difference(&reader, &sync.ticks);
        read_difference(&reader, &sync.monotonic_ns);
        read_difference(&reader, &sync.realtime_ns);
        if (reader.failed)
            return TARE_E_INPUT;
        if (i < room)
            syncs[i] = sync;
    }
    *n = header->count < room ? header->count : room;
    return 0;
}
