/* facts: the content of the FACTS blocks, one row for each stream, key, location and text.
 * Owned by the thread that opened the trace.
 * Must not know what the keys mean. */
#include <math.h>
#include <string.h>

#include "inner.h"
#include "tare.h"

typedef struct identity {
    uint32_t stream, key, file, text, line;
} identity;

static void add(tare__trace_fact *row, const tare__fact *fact)
{
    bool fresh = row->count++ == 0;
    if (fresh || fact->ticks < row->first_ticks) {
        row->first_ticks = fact->ticks;
        row->first = fact->value;
    }
    if (fresh || fact->ticks >= row->last_ticks) {
        row->last_ticks = fact->ticks;
        row->last = fact->value;
    }
    row->sum = fresh ? fact->value : row->sum + fact->value;
    row->min = fresh ? fact->value : fmin(row->min, fact->value);
    row->max = fresh ? fact->value : fmax(row->max, fact->value);
}

int tare__trace_take_facts(tare__trace *trace, const tare__trace_block *block)
{
    tare__fact facts[TARE__FACTS_MAX];
    int status = tare__facts_read(&block->header, block->payload, trace->squeezer, facts);
    for (uint32_t i = 0; i < block->header.count && !status; i++) {
        const tare__fact *fact = &facts[i];
        identity key = {block->header.stream, fact->key, fact->file, fact->text, fact->line};
        if (trace->facts.n >= trace->facts.limit &&
            tare__intern_find(trace->fact_keys, (const char *)&key, sizeof key) == TARE__INTERN_NONE)
            continue; /* not damage: the file has more facts than are shown */
        uint32_t at = tare__intern_add(trace->fact_keys, (const char *)&key, sizeof key);
        bool refused;
        tare__trace_fact *row =
            at == TARE__INTERN_NONE ? NULL : tare__trace_make_row(&trace->facts, (uint64_t)at + 1, &refused);
        if (!row)
            return TARE_E_MEMORY;
        row->stream = key.stream;
        row->key = key.key;
        row->file = key.file;
        row->text = key.text;
        row->line = key.line;
        add(row, fact);
    }
    return status;
}

const tare__trace_fact *tare__trace_facts(const tare__trace *trace, size_t *n)
{
    *n = trace->facts.n;
    return (const tare__trace_fact *)(const void *)trace->facts.rows;
}

const char *tare__trace_fact_text(const tare__trace *trace, uint32_t id)
{
    const tare__trace_name *name = id ? tare__trace_name_at(trace, id) : NULL;
    return name && name->kind == TARE__NAME_FACT ? name->text : NULL;
}

bool tare__trace_fact_is(const tare__trace *trace, const tare__trace_fact *fact, const char *key)
{
    const char *text = tare__trace_fact_text(trace, fact->key);
    return text && strcmp(text, key) == 0;
}
