/* texts: the content of the blocks NAMES and SERIES: names and sampled series, each text stored once.
 * Owned by the thread that opened the trace. A later record replaces an earlier one.
 * Must not know events or samples. */
#include <string.h>

#include "inner.h"
#include "tare.h"

#define NAME_TEXTS_MAX ((size_t)24 << 20)
#define SERIES_TEXTS_MAX ((size_t)16 << 20)

/* ---- names --------------------------------------------------------------------------------------- */
typedef struct taker {
    tare__trace *trace;
    int status;
} taker;

static bool same_text(const char *kept, size_t kept_bytes, const char *text, size_t bytes)
{
    return kept && kept_bytes == bytes && memcmp(kept, text, bytes) == 0;
}

/* Names are repeated at the file's end; one that is already known takes no memory. */
static const char *keep_text(tare__trace *trace, const tare__trace_name *row, const tare__file_name *name)
{
    if (same_text(row->text, row->text_bytes, name->text, name->text_bytes))
        return row->text;
    trace->name_text_bytes += name->text_bytes + 1;
    if (trace->name_text_bytes > NAME_TEXTS_MAX)
        return "(too many names)";
    return tare__arena_copy(trace->name_texts, name->text, name->text_bytes);
}

static void take_name(void *context, const tare__file_name *name)
{
    taker *taker = context;
    bool refused;
    if (taker->status)
        return;
    tare__trace_name *row = tare__trace_make_row(&taker->trace->names, name->id, &refused);
    const char *text = row ? keep_text(taker->trace, row, name) : NULL;
    if (!text) {
        taker->status = refused ? 0 : TARE_E_MEMORY;
        return;
    }
    const char *file = NULL;
    if (name->file_bytes) {
        uint32_t at = tare__intern_add(taker->trace->files, name->file, name->file_bytes);
        file = tare__intern_text(taker->trace->files, at, NULL);
        if (!file)
            taker->status = TARE_E_MEMORY;
    }
    *row = (tare__trace_name){text, file, (uint32_t)strlen(text), name->kind, name->line, name->id};
}

int tare__trace_take_names(tare__trace *trace, const tare__trace_block *block)
{
    taker taker = {trace, 0};
    int status = tare__names_read(&block->header, block->payload, trace->squeezer, take_name, &taker);
    return status ? status : taker.status;
}

/* ---- series -------------------------------------------------------------------------------------- */
/* There are few names of metrics, labels and reasons, and they repeat: each text is stored once. */
static const char *keep_series_text(tare__trace *trace, const char *text, uint32_t bytes)
{
    bytes = bytes < TARE__TRACE_TEXT_MAX ? bytes : (uint32_t)TARE__TRACE_TEXT_MAX;
    uint32_t id = tare__intern_find(trace->series_texts, text, bytes);
    if (id == TARE__INTERN_NONE) {
        if (trace->series_text_bytes + bytes > SERIES_TEXTS_MAX)
            return "(too many texts)";
        trace->series_text_bytes += bytes + 1;
        id = tare__intern_add(trace->series_texts, text, bytes);
    }
    return tare__intern_text(trace->series_texts, id, NULL);
}

static void take_series(void *context, const tare__series *series)
{
    taker *taker = context;
    bool refused;
    if (taker->status)
        return;
    tare__trace_series *row = tare__trace_make_row(&taker->trace->series, series->id, &refused);
    if (!row) {
        taker->status = refused ? 0 : TARE_E_MEMORY;
        return;
    }
    *row = (tare__trace_series){
        .id = series->id,
        .unit = series->unit,
        .kind = series->kind,
        .subject = series->subject,
        .key = series->key,
        .owner = series->owner,
        .metric = keep_series_text(taker->trace, series->metric, series->metric_bytes),
        .label = keep_series_text(taker->trace, series->label, series->label_bytes),
        .absent = series->absent_bytes
                      ? keep_series_text(taker->trace, series->absent, series->absent_bytes)
                      : NULL,
    };
    if (!row->metric || !row->label || (series->absent_bytes && !row->absent))
        taker->status = TARE_E_MEMORY;
}

int tare__trace_take_series(tare__trace *trace, const tare__trace_block *block)
{
    taker taker = {trace, 0};
    int status = tare__series_read(&block->header, block->payload, trace->squeezer, take_series, &taker);
    return status ? status : taker.status;
}
