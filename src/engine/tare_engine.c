/* tare_engine: implements tare_engine.h with the modules below.
 * An object is used by one thread at a time.
 * Must not know who shows the tables, nor print. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "engine.h"

int tare__engine_fail(int status, const char *sentence, char error[TARE_ENGINE_ERROR])
{
    snprintf(error, TARE_ENGINE_ERROR, "%s", *sentence ? sentence : tare_status_text(status));
    return status;
}

int tare__engine_finish(int status, const char *sentence, tare__text *text, tare_engine_write *write, void *context,
                        char error[TARE_ENGINE_ERROR])
{
    if (!status && text->failed)
        status = TARE_E_MEMORY;
    if (!status && write(context, text->data, text->length))
        status = TARE_E_SYSTEM;
    tare__text_free(text);
    return status ? tare__engine_fail(status, sentence, error) : 0;
}

int tare_engine_open(const char *path, const char *rules_path, const tare_engine_samples *samples,
                     tare_engine_notice *notice, void *context, tare_engine_report **report,
                     char error[TARE_ENGINE_ERROR])
{
    tare__stack_filter filter = {0};
    if (samples)
        filter = (tare__stack_filter){.within = samples->within, .phase = samples->phase, .pid = samples->process,
                                      .thread = samples->thread, .gpu_idle = samples->gpu_idle};
    tare__error why = {""};
    tare__rules *rules = NULL;
    tare__trace *trace = NULL;
    tare_engine_report *made = calloc(1, sizeof *made);
    int status = made ? 0 : TARE_E_MEMORY;
    if (!status && rules_path)
        status = tare__engine_read_rules(rules_path, &rules, &why);
    if (!status)
        status = tare__engine_open(path, notice, context, &trace, &why);
    if (!status && !(made->path = strdup(tare__trace_path(trace))))
        status = TARE_E_MEMORY;
    if (!status)
        status = tare__analyze(trace, &(tare__analyze_options){.rules = rules, .stacks = &filter}, &made->analysis,
                               &why);
    tare__trace_close(trace);
    tare__rules_free(rules);
    if (status) {
        tare_engine_close(made);
        return tare__engine_fail(status, why.text, error);
    }
    *report = made;
    return 0;
}

void tare_engine_close(tare_engine_report *report)
{
    if (!report)
        return;
    tare__analysis_free(report->analysis);
    free(report->path);
    free(report);
}

const char *tare_engine_table(size_t index)
{
    const tare__table *table = tare__schema_table(index);
    return table ? table->name : NULL;
}

int tare_engine_is_single(const char *name)
{
    const tare__table *table = tare__schema_find(name, strlen(name));
    return table && table->shape == TARE__SHAPE_SINGLE;
}

const char *tare_engine_absent(const tare_engine_report *report, const char *name, const char *column_name)
{
    const tare__table *table = tare__schema_find(name, strlen(name));
    const tare__schema_column *column =
        table ? tare__schema_find_column(table, column_name, strlen(column_name)) : NULL;
    tare__cells cells;
    tare__cells_begin(&cells, report->analysis);
    if (!column || table->shape != TARE__SHAPE_SINGLE || tare__table_rows(report->analysis, table) == 0)
        return NULL;
    const void *row = tare__table_row(report->analysis, table, 0);
    return tare__schema_cell(&cells, column, row, 0).type == TARE__TYPE_ABSENT ? tare__schema_absent(column, row)
                                                                               : NULL;
}

/* ---- a stream of one batch ------------------------------------------------------------------------- */
typedef struct batch {
    const tare__table *table;
    struct ArrowArray array; /* until it is taken */
} batch;

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    return tare__arrow_schema(((batch *)stream->private_data)->table, out) ? ENOMEM : 0;
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    batch *from = stream->private_data;
    *out = from->array;
    from->array.release = NULL;
    return 0;
}

static const char *stream_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return "out of memory";
}

static void stream_release(struct ArrowArrayStream *stream)
{
    batch *from = stream->private_data;
    if (from->array.release)
        from->array.release(&from->array);
    free(from);
    stream->release = NULL;
}

int tare_engine_arrow(const tare_engine_report *report, const char *name, struct ArrowArrayStream *stream,
                      char error[TARE_ENGINE_ERROR])
{
    const tare__table *table = tare__schema_find(name, strlen(name));
    if (!table) {
        snprintf(error, TARE_ENGINE_ERROR, "unknown table '%s'", name);
        return TARE_E_USAGE;
    }
    tare__cells cells;
    batch *made = calloc(1, sizeof *made);
    int status = made ? 0 : TARE_E_MEMORY;
    tare__cells_begin(&cells, report->analysis);
    if (!status) {
        made->table = table;
        status = tare__arrow_table(&cells, table, &made->array);
    }
    if (status) {
        free(made);
        return tare__engine_fail(status, "", error);
    }
    *stream = (struct ArrowArrayStream){stream_schema, stream_next, stream_error, stream_release, made};
    return 0;
}
