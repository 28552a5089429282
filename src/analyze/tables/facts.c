/* facts: the table of facts that hooks into libraries record, and its lookup functions for rules.
 * Owned by the thread that analyzes.
 * Must not know what the keys mean. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/inner.h"

#define BY_IDENTITY TARE__RISING(process) TARE__RISING(line) TARE__BY_TEXT(key) TARE__BY_TEXT_IF_ANY(file) \
    TARE__BY_TEXT_IF_ANY(text)

TARE__ORDER(by_identity, tare__fact_row, BY_IDENTITY)

TARE__ORDER(by_first_time, tare__fact_row, TARE__RISING(first_at_ns) BY_IDENTITY)

/* Merges the same fact recorded by another thread of the process. */
static void merge(tare__fact_row *row, const tare__fact_row *other)
{
    row->mean = (row->mean * (double)row->count + other->mean * (double)other->count) /
                (double)(row->count + other->count);
    row->count += other->count;
    row->min = fmin(row->min, other->min);
    row->max = fmax(row->max, other->max);
    if (other->first_at_ns < row->first_at_ns) {
        row->first = other->first;
        row->first_at_ns = other->first_at_ns;
    }
    if (other->last_at_ns > row->last_at_ns) {
        row->value = other->value;
        row->last_at_ns = other->last_at_ns;
    }
}

static void fill(const work *work, tare__arena *arena, const tare__trace_fact *from, tare__fact_row *row)
{
    const char *key = tare__trace_fact_text(work->trace, from->key);
    const tare__trace_stream *stream = tare__trace_stream_at(work->trace, from->stream);
    *row = (tare__fact_row){
        .key = copied(arena, key ? key : "(name lost)"),
        .file = copied(arena, tare__trace_fact_text(work->trace, from->file)),
        .text = copied(arena, tare__trace_fact_text(work->trace, from->text)),
        .line = from->line,
        .process = stream ? tare__analyze_process_row(work, stream->process) : TARE__NO_ROW,
        .count = from->count,
        .value = from->last,
        .first = from->first,
        .min = from->min,
        .mean = from->sum / (double)from->count,
        .max = from->max,
        .first_at_ns = tare__trace_ns(work->trace, from->first_ticks),
        .last_at_ns = tare__trace_ns(work->trace, from->last_ticks),
    };
}

int tare__analyze_facts_table(work *work, tare__analysis *analysis)
{
    size_t n, kept = 0;
    const tare__trace_fact *from = tare__trace_facts(work->trace, &n);
    tare__fact_row *rows = tare__arena_alloc(analysis->arena, (n + 1) * sizeof *rows);
    if (!rows)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        fill(work, analysis->arena, &from[i], &rows[i]);
    qsort(rows, n, sizeof *rows, by_identity);
    for (size_t i = 0; i < n; i++)
        if (kept && by_identity(&rows[kept - 1], &rows[i]) == 0)
            merge(&rows[kept - 1], &rows[i]);
        else
            rows[kept++] = rows[i];
    qsort(rows, kept, sizeof *rows, by_first_time);
    analysis->facts = rows;
    analysis->n_facts = kept;
    return 0;
}

const tare__fact_row *tare__fact_find(const tare__analysis *of, const char *key)
{
    const tare__fact_row *last = NULL;
    for (size_t i = 0; i < of->n_facts; i++)
        if (strcmp(of->facts[i].key, key) == 0 && (!last || of->facts[i].last_at_ns > last->last_at_ns))
            last = &of->facts[i];
    return last;
}

bool tare__fact_sum(const tare__analysis *of, const char *key, tare__fact_row *sum)
{
    bool found = false;
    for (size_t i = 0; i < of->n_facts; i++) {
        if (strcmp(of->facts[i].key, key) != 0)
            continue;
        if (found)
            merge(sum, &of->facts[i]);
        else
            *sum = of->facts[i];
        found = true;
    }
    return found;
}
