/* show: a report in the formats of emit, and the conversion of other profilers' traces.
 * An object is used by one thread at a time.
 * Must not know where output goes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit/emit.h"
#include "engine.h"

static int unknown_format(const char *format, char error[TARE_ENGINE_ERROR])
{
    snprintf(error, TARE_ENGINE_ERROR, "unknown format '%.64s'", format);
    return TARE_E_USAGE;
}

/* ---- one file --------------------------------------------------------------------------------------- */
static int keep(void *context, const void *data, size_t bytes)
{
    tare__text *text = context;
    tare__text_append(text, data, bytes);
    return text->failed;
}

/* Text is shown on terminals: control characters are replaced, which requires complete lines. */
static int emit_text(const tare__emit_input *input, const tare__emit_options *options, const tare__emit_sink *sink,
                     tare__error *why)
{
    tare__text text = {0}, harmless = {0};
    const tare__emit_sink kept = {.write = keep, .context = &text};
    int status = tare__emit_text.emit(input, options, &kept, why);
    if (!status)
        tare__harmless_lines(text.data, text.length, false, &harmless);
    if (text.failed || harmless.failed)
        status = TARE_E_MEMORY;
    if (!status && sink->write(sink->context, harmless.data, harmless.length))
        status = TARE_E_SYSTEM;
    tare__text_free(&text);
    tare__text_free(&harmless);
    return status;
}

int tare_engine_emit(const tare_engine_report *report, const char *format, int all, tare_engine_write *write,
                     void *context, char error[TARE_ENGINE_ERROR])
{
    const tare__emitter *emitter = tare__emit_find(format);
    const tare__emit_sink sink = {.write = write, .context = context};
    const tare__emit_options options = {.width = TARE__EMIT_WIDTH, .all = all, .trace = report->path};
    tare__error why = {""};
    tare__emit_input input = {.analysis = report->analysis};
    tare__timeline *timeline = NULL;
    if (!emitter)
        return unknown_format(format, error);
    bool reads = emitter->needs & (TARE__EMIT_CURSOR | TARE__EMIT_TIMELINE);
    int status = reads ? tare__trace_open(report->path, &input.trace, &why) : 0;
    if (!status && emitter->needs & TARE__EMIT_TIMELINE)
        status = tare__analyze_timeline(input.trace, TARE__EMIT_BOXES, &timeline, &why);
    input.timeline = timeline;
    if (!status)
        status = emitter == &tare__emit_text ? emit_text(&input, &options, &sink, &why)
                                             : emitter->emit(&input, &options, &sink, &why);
    tare__timeline_free(timeline);
    tare__trace_close(input.trace);
    return status ? tare__engine_fail(status, why.text, error) : 0;
}

/* ---- several files ----------------------------------------------------------------------------------- */
typedef struct folder {
    const tare_engine_files *files;
    tare__emit_sink sink;
} folder;

static const tare__emit_sink *open_file(void *context, const char *name)
{
    folder *to = context;
    return to->files->open(to->files->context, name) ? NULL : &to->sink;
}

static int close_file(void *context)
{
    (void)context;
    return 0;
}

int tare_engine_emit_files(const tare_engine_report *report, const char *format, const tare_engine_files *files,
                           char error[TARE_ENGINE_ERROR])
{
    folder to = {files, {.write = files->write, .context = files->context}};
    const tare__emit_files made = {.open = open_file, .close = close_file, .context = &to};
    tare__error why = {""};
    tare__trace *trace = NULL;
    int status;
    if (strcmp(format, "csv") == 0) {
        status = tare__emit_csv(&tare__document_report, report->analysis, &made, &why);
    } else if (strcmp(format, "tensorboard") == 0) {
        status = tare__trace_open(report->path, &trace, &why);
        if (!status)
            status = tare__emit_tensorboard(trace, &made, &why);
        tare__trace_close(trace);
    } else {
        return unknown_format(format, error);
    }
    return status ? tare__engine_fail(status, why.text, error) : 0;
}

/* ---- pages --------------------------------------------------------------------------------------------- */
static bool take_section(const tare_engine_section *from, tare__page_section *to)
{
    static const char *const kinds[] = {
        [TARE__PAGE_TILES] = "tiles",   [TARE__PAGE_TABLE] = "table",   [TARE__PAGE_NOTES] = "notes",
        [TARE__PAGE_LIST] = "list",     [TARE__PAGE_DISTRIBUTION] = "distribution",
        [TARE__PAGE_COURSE] = "course", [TARE__PAGE_TRADE_OFF] = "trade-off"};
    size_t kind = 0;
    while (kind < TARE__COUNT_OF(kinds) && strcmp(kinds[kind], from->kind) != 0)
        kind++;
    *to = (tare__page_section){.kind = (tare__page_kind)kind, .title = from->title, .note = from->note,
                               .columns = from->columns, .cells = from->cells, .n_cells = from->n_cells,
                               .x = from->x, .y = from->y, .z = from->z,
                               .n_x = from->n_x, .n_y = from->n_y, .n_z = from->n_z};
    return kind < TARE__COUNT_OF(kinds);
}

int tare_engine_page(const char *title, const char *lead, const tare_engine_section *sections, size_t n,
                     tare_engine_write *write, void *context, char error[TARE_ENGINE_ERROR])
{
    const tare__emit_sink sink = {.write = write, .context = context};
    tare__error why = {""};
    tare__page_section *made = calloc(n + 1, sizeof *made);
    int status = made ? 0 : TARE_E_MEMORY;
    for (size_t i = 0; i < n && !status; i++)
        if (!take_section(&sections[i], &made[i]))
            status = tare__fail(&why, TARE_E_USAGE, "a page has no section '%.64s'", sections[i].kind);
    if (!status)
        status = tare__emit_sections(title, lead, made, n, &sink, &why);
    free(made);
    return status ? tare__engine_fail(status, why.text, error) : 0;
}

/* ---- other profilers' traces --------------------------------------------------------------------------- */
int tare_engine_import(const char *input, const char *output, char error[TARE_ENGINE_ERROR])
{
    tare__error why = {""};
    tare__import_file *file = NULL;
    tare__import_report *report = malloc(sizeof *report);
    const tare__import_options options = {.output = output, .overwrite = true, .input_name = input};
    int status = report ? tare__import_open(input, &file, &why) : TARE_E_MEMORY;
    if (!status)
        status = tare__import(tare__import_read, file, &options, report, &why);
    tare__import_close(file);
    free(report);
    return status ? tare__engine_fail(status, why.text, error) : 0;
}
