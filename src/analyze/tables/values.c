/* values: records that are not nested: counters, marks, aggregate spans, complete spans on their tracks.
 * Owned by the thread that analyzes.
 * Must not know how rows are displayed. */
#include <stdlib.h>
#include <string.h>

#include "analyze/inner.h"

/* ---- rows by name -------------------------------------------------------------------------------- */
/* The row of a name, created and zeroed if missing. NULL: out of memory. */
static void *row_of(by_name *table, const canons *names, uint32_t name, bool *fresh)
{
    if (!table->row_of)
        table->row_of = calloc(names->n, sizeof *table->row_of);
    if (!table->row_of)
        return NULL;
    *fresh = !table->row_of[name];
    if (*fresh) {
        if (!tare__array_fit(&table->rows, &table->room, table->n + 1, table->row_bytes))
            return NULL;
        memset(table->rows + table->n * table->row_bytes, 0, table->row_bytes);
        table->row_of[name] = (uint32_t)++table->n;
    }
    return table->rows + (table->row_of[name] - 1) * table->row_bytes;
}

/* ---- counters, marks ----------------------------------------------------------------------------- */
/* Blocks of several streams are not in order of time: first and last are determined by timestamp. */
int tare__analyze_counter(work *work, uint32_t name, uint64_t ticks, double value)
{
    bool fresh;
    counter *counter = row_of(&work->counters, &work->names, name, &fresh);
    if (!counter)
        return TARE_E_MEMORY;
    counter->name = name;
    tare__moments_add(&counter->moments, value);
    if (fresh || ticks < counter->first_at) {
        counter->first = value;
        counter->first_at = ticks;
    }
    if (fresh || ticks >= counter->last_at) {
        counter->last = value;
        counter->last_at = ticks;
    }
    if (work->samples)
        return tare__analyze_sample_value(work, name, value);
    return work->timeline ? tare__analyze_draw_value(work, name, ticks, value) : 0;
}

int tare__analyze_mark(work *work, uint32_t name, uint64_t ticks)
{
    bool fresh;
    mark *mark = row_of(&work->marks, &work->names, name, &fresh);
    if (!mark)
        return TARE_E_MEMORY;
    mark->name = name;
    mark->n++;
    if (fresh || ticks < mark->first_at)
        mark->first_at = ticks;
    if (fresh || ticks > mark->last_at)
        mark->last_at = ticks;
    return 0;
}

/* ---- aggregates ---------------------------------------------------------------------------------- */
static int add_buckets(tare__hist *hist, const uint32_t *buckets)
{
    int status = 0;
    for (uint32_t i = 0; i < TARE__CELL_BUCKETS && !status; i++)
        if (buckets[i])
            status = tare__hist_add(hist, tare__hist_low(i, TARE__CELL_BITS), buckets[i]);
    return status;
}

int tare__analyze_aggregate(void *context, uint32_t id, const tare__aggregate *from)
{
    work *work = context;
    bool fresh;
    uint32_t name = canon_of(&work->names, from->name);
    cell *cell = row_of(&work->cells, &work->names, name, &fresh);
    stream *stream = tare__analyze_stream(work, id);
    if (!cell || !stream)
        return TARE_E_MEMORY;
    if (fresh)
        *cell = (struct cell){.name = name, .min = UINT64_MAX, .hist = {.bits = TARE__CELL_BITS}};
    cell->every = from->every > cell->every ? from->every : cell->every;
    cell->calls += from->count;
    cell->timed += from->timed;
    cell->total += from->total;
    if (from->timed) {
        cell->min = from->min < cell->min ? from->min : cell->min;
        cell->max = from->max > cell->max ? from->max : cell->max;
    }
    stream->aggregate_calls += from->count;
    stream->aggregate_timed += from->timed;
    return add_buckets(&cell->hist, from->buckets);
}

/* ---- complete spans ------------------------------------------------------------------------------ */
static int add_complete(work *work, const tare__complete_span *span)
{
    nodes *nodes = &work->nodes;
    const canons *names = &work->names;
    uint32_t track_name = span->track ? canon_of(names, span->track) : CANON_THREAD;
    node *track = find_child(nodes, names, work->tracks, track_name);
    node *node = track ? find_child(nodes, names, track, canon_of(names, span->name)) : NULL;
    if (!node)
        return TARE_E_MEMORY;
    uint64_t duration = span->end > span->start ? span->end - span->start : 0;
    node->self += duration;
    node->flows += span->flow != 0;
    node->with_parent += span->parent != 0;
    int status = count_call(nodes, node, duration);
    if (work->samples && !status) {
        uint32_t kind = names->rows[track_name].kind;
        status =
            tare__analyze_sample_complete(work, node, kind > TARE__NAME_TRACK ? kind - TARE__NAME_TRACK : 0, duration);
    }
    return status;
}

int tare__analyze_complete(void *context, uint32_t id, tare__complete_span *spans, uint32_t n)
{
    work *work = context;
    stream *stream = tare__analyze_stream(work, id);
    int status = stream ? 0 : TARE_E_MEMORY;
    for (uint32_t i = 0; i < n && !status; i++)
        status = add_complete(work, &spans[i]);
    if (!status && work->timeline)
        status = tare__analyze_draw_complete(work, stream, spans, n);
    if (!status) {
        stream->events += n;
        stream->complete += n;
    }
    return status;
}
