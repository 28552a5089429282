/* samples: collects values tick by tick and writes them series by series, since values of a series are similar;
 * and reads them. A collector belongs to one thread.
 * Must not know what the values mean. */
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "tare.h"

/* A run is the values of a series at consecutive ticks. */
enum { TICKS, RUN_SERIES, RUN_FIRST, RUN_COUNT, VALUES, COLUMNS };

#define NONE UINT32_MAX
#define SERIES_ID_MAX (1u << 20) /* the table of series grows with their ids */

typedef struct entry {
    int64_t value;
    uint32_t next; /* of the same series; NONE: the last */
    uint32_t tick;
} entry;

typedef struct chain { /* of one series */
    uint32_t first, last;
} chain;

struct tare__samples {
    uint64_t ticks[TARE__SAMPLES_TICKS_MAX];
    uint32_t n_ticks, n_entries, n_runs;
    uint32_t tick_entries; /* when the current tick began */
    entry *entries;
    size_t entries_room;
    chain *chains; /* by series; first is NONE: none */
    size_t chains_room, n_chains;
    uint32_t *used; /* series with a chain */
    size_t used_room;
    uint32_t n_used;
};

tare__samples *tare__samples_new(void)
{
    return calloc(1, sizeof(tare__samples));
}

void tare__samples_free(tare__samples *samples)
{
    if (!samples)
        return;
    free(samples->entries);
    free(samples->chains);
    free(samples->used);
    free(samples);
}

uint32_t tare__samples_values(const tare__samples *samples)
{
    return samples->n_entries;
}

/* ---- collecting ------------------------------------------------------------------------------------ */
bool tare__samples_tick(tare__samples *samples, uint64_t ticks)
{
    uint32_t n = samples->n_ticks, before = samples->n_entries - samples->tick_entries;
    /* Expects as many values as last time. */
    if (samples->n_entries && before > TARE__SAMPLES_VALUES_MAX - samples->n_entries)
        return false;
    if (n && !before)
        n--; /* a tick without a value is dropped */
    if (n == TARE__SAMPLES_TICKS_MAX)
        return false;
    if (n && ticks <= samples->ticks[n - 1]) {
        if (samples->ticks[n - 1] == UINT64_MAX)
            return false;
        ticks = samples->ticks[n - 1] + 1;
    }
    samples->ticks[n] = ticks;
    samples->n_ticks = n + 1;
    samples->tick_entries = samples->n_entries;
    return true;
}

static chain *chain_of(tare__samples *samples, uint32_t series)
{
    if (series < samples->n_chains)
        return &samples->chains[series];
    if (!series || series > SERIES_ID_MAX ||
        !tare__array_fit(&samples->chains, &samples->chains_room, (size_t)series + 1, sizeof *samples->chains))
        return NULL;
    for (; samples->n_chains < samples->chains_room; samples->n_chains++)
        samples->chains[samples->n_chains] = (chain){NONE, NONE};
    return &samples->chains[series];
}

bool tare__samples_put(tare__samples *samples, uint32_t series, int64_t value)
{
    chain *chain = samples->n_ticks ? chain_of(samples, series) : NULL;
    if (!chain || series == 0)
        return false;
    uint32_t tick = samples->n_ticks - 1, at = samples->n_entries;
    bool fresh = chain->first == NONE;
    if (!fresh && samples->entries[chain->last].tick == tick) {
        samples->entries[chain->last].value = value; /* given twice: the newer one counts */
        return true;
    }
    if (at == TARE__SAMPLES_VALUES_MAX ||
        !tare__array_fit(&samples->entries, &samples->entries_room, (size_t)at + 1, sizeof *samples->entries) ||
        !tare__array_fit(&samples->used, &samples->used_room, (size_t)samples->n_used + fresh,
                         sizeof *samples->used))
        return false;
    samples->entries[at] = (entry){value, NONE, tick};
    if (fresh) {
        samples->used[samples->n_used++] = series;
        chain->first = at;
    } else {
        samples->entries[chain->last].next = at;
    }
    samples->n_runs += fresh || samples->entries[chain->last].tick + 1 != tick;
    chain->last = at;
    samples->n_entries++;
    return true;
}

/* ---- sealing --------------------------------------------------------------------------------------- */
TARE__ORDER(by_number, uint32_t, TARE__RISING_VALUE)

/* Samplers use the same order of series each time: they are usually sorted already. */
static void sort_used(tare__samples *samples)
{
    for (uint32_t i = 1; i < samples->n_used; i++)
        if (samples->used[i - 1] > samples->used[i]) {
            qsort(samples->used, samples->n_used, sizeof *samples->used, by_number);
            return;
        }
}

static uint32_t run_length(const tare__samples *samples, uint32_t at)
{
    uint32_t n = 1;
    for (uint32_t next; (next = samples->entries[at].next) != NONE; at = next, n++)
        if (samples->entries[next].tick != samples->entries[at].tick + 1)
            break;
    return n;
}

static void fill_series(const tare__samples *samples, uint32_t series, uint32_t *before_series, uint8_t **at)
{
    uint64_t before = 0;
    uint32_t left = 0;
    for (uint32_t i = samples->chains[series].first; i != NONE; i = samples->entries[i].next, left--) {
        const entry *entry = &samples->entries[i];
        if (!left) {
            left = run_length(samples, i);
            at[RUN_SERIES] = tare__varint_write(at[RUN_SERIES], series - *before_series);
            at[RUN_FIRST] = tare__varint_write(at[RUN_FIRST], entry->tick);
            at[RUN_COUNT] = tare__varint_write(at[RUN_COUNT], left);
            *before_series = series;
        }
        at[VALUES] = tare__varint_write(at[VALUES], tare__zigzag((int64_t)((uint64_t)entry->value - before)));
        before = (uint64_t)entry->value;
    }
}

static void fill_columns(const tare__samples *samples, uint32_t n_ticks, uint8_t **at)
{
    uint64_t before = samples->ticks[0];
    uint32_t series = 0;
    for (uint32_t i = 0; i < n_ticks; i++) {
        at[TICKS] = tare__varint_write(at[TICKS], samples->ticks[i] - before);
        before = samples->ticks[i];
    }
    for (uint32_t i = 0; i < samples->n_used; i++)
        fill_series(samples, samples->used[i], &series, at);
}

static void start_anew(tare__samples *samples)
{
    for (uint32_t i = 0; i < samples->n_used; i++)
        samples->chains[samples->used[i]] = (chain){NONE, NONE};
    samples->n_ticks = samples->n_entries = samples->n_runs = samples->n_used = samples->tick_entries = 0;
}

int tare__samples_seal(tare__samples *samples, tare__squeezer *squeezer, tare__text *out)
{
    if (!samples->n_entries) {
        start_anew(samples);
        return 0;
    }
    uint32_t n_ticks = samples->n_ticks - (samples->tick_entries == samples->n_entries);
    const size_t records[COLUMNS] = {n_ticks, samples->n_runs, samples->n_runs, samples->n_runs,
                                     samples->n_entries};
    size_t all = 0;
    for (unsigned i = 0; i < COLUMNS; i++)
        all += records[i] * TARE__VARINT_BYTES;
    uint8_t *room = tare__squeezer_room(squeezer, all), *ends[COLUMNS], *starts[COLUMNS];
    if (!room)
        return TARE_E_MEMORY;
    for (unsigned i = 0; i < COLUMNS; room += records[i] * TARE__VARINT_BYTES, i++)
        starts[i] = ends[i] = room;
    sort_used(samples);
    fill_columns(samples, n_ticks, ends);
    tare__block_header header = {
        .kind = TARE__BLOCK_SAMPLES,
        .count = samples->n_entries,
        .first_ticks = samples->ticks[0],
        .last_ticks = samples->ticks[n_ticks - 1],
    };
    int status = tare__columns_seal(squeezer, &header, starts, ends, COLUMNS, out);
    if (!status)
        start_anew(samples);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------------- */
/* Ticks grow, from the header's first to its last. */
static bool read_ticks(tare__reader *reader, const tare__block_header *header, uint64_t *ticks, uint32_t *n)
{
    uint64_t now = header->first_ticks;
    *n = 0;
    while (reader->at < reader->end) {
        uint64_t step = tare__read_varint(reader);
        if (*n == TARE__SAMPLES_TICKS_MAX || (*n ? step == 0 : step != 0) || __builtin_add_overflow(now, step, &now))
            return false;
        ticks[(*n)++] = now;
    }
    return !reader->failed && *n && now == header->last_ticks;
}

typedef struct run {
    uint64_t series, first, count;
} run;

static bool next_run(tare__reader *readers, run *run)
{
    if (readers[RUN_SERIES].at == readers[RUN_SERIES].end)
        return false;
    uint64_t step = tare__read_varint(&readers[RUN_SERIES]);
    run->series = step > UINT32_MAX ? UINT64_MAX : run->series + step;
    run->first = tare__read_varint(&readers[RUN_FIRST]);
    run->count = tare__read_varint(&readers[RUN_COUNT]);
    return true;
}

/* Series grow, and so do the ticks within each: none has two values of one tick. */
static bool runs_are_good(tare__reader *readers, uint32_t n_ticks, uint32_t n_values)
{
    run run = {0}, before = {0};
    uint64_t values = 0;
    while (next_run(readers, &run)) {
        bool again = run.series == before.series;
        if (!run.series || run.series > UINT32_MAX || !run.count || run.count > n_ticks ||
            run.first > n_ticks - run.count || (again && run.first < before.first + before.count))
            return false;
        values += run.count;
        before = run;
    }
    for (unsigned i = RUN_SERIES; i <= RUN_COUNT; i++)
        if (readers[i].failed || readers[i].at != readers[i].end)
            return false;
    return values == n_values;
}

static void decode_values(tare__reader *readers, int64_t *values)
{
    run run = {0};
    uint64_t series = 0, value = 0;
    while (next_run(readers, &run)) {
        if (run.series != series)
            value = 0;
        series = run.series;
        for (uint64_t i = 0; i < run.count; i++) {
            value += (uint64_t)tare__unzigzag(tare__read_varint(&readers[VALUES]));
            *values++ = (int64_t)value;
        }
    }
}

int tare__samples_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                       tare__samples_sink *sink, void *context)
{
    tare__reader reader = {payload, payload + header->payload_bytes, false}, from[COLUMNS], readers[COLUMNS];
    uint32_t n_ticks;
    if (header->kind != TARE__BLOCK_SAMPLES || header->flags || !header->count ||
        header->count > TARE__SAMPLES_VALUES_MAX)
        return TARE_E_INPUT;
    int status = tare__columns_open(squeezer, &reader, from, COLUMNS,
                                    (size_t)TARE__SAMPLES_VALUES_MAX * TARE__VARINT_BYTES);
    if (status)
        return status;
    uint64_t *ticks = (uint64_t *)(void *)tare__squeezer_room(
        squeezer, (TARE__SAMPLES_TICKS_MAX + (size_t)header->count) * sizeof *ticks);
    if (!ticks)
        return TARE_E_MEMORY;
    int64_t *values = (int64_t *)(void *)(ticks + TARE__SAMPLES_TICKS_MAX);
    memcpy(readers, from, sizeof readers);
    if (!read_ticks(&readers[TICKS], header, ticks, &n_ticks) ||
        !runs_are_good(readers, n_ticks, header->count))
        return TARE_E_INPUT;
    memcpy(readers, from, sizeof readers);
    decode_values(readers, values);
    if (readers[VALUES].failed || readers[VALUES].at != readers[VALUES].end)
        return TARE_E_INPUT;
    memcpy(readers, from, sizeof readers);
    for (run run = {0}; next_run(readers, &run); values += run.count)
        sink(context, (uint32_t)run.series, ticks + run.first, values, (uint32_t)run.count);
    return 0;
}
