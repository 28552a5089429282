/* xplane: a trace as the XPlane that XProf and TensorBoard's profile plugin open. docs/EXPORT.md.
 * Owned by the calling thread. A plane is one message preceded by its length, so its events are collected first; their
 * number is limited.
 * Must not know how planes are laid out, nor how files are named. */
#include "xplane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter.h"
#include "kineto.h"
#include "tare.h"

#define EVENTS_MAX ((size_t)1 << 20) /* XProf's own viewer shows no more */

typedef struct gathering {
    tare__exporter out; /* first: callbacks of the exporter get this struct */
    tare__xplane *into;
    tare__intern *line_keys;
    uint64_t steps;
    tare__text name;
} gathering;

/* ---- lines ---------------------------------------------------------------------------------------------------- */
static uint32_t line_at(gathering *to, const char *key, const tare__xplane_line *line)
{
    tare__xplane *into = to->into;
    uint32_t known = tare__intern_count(to->line_keys),
             at = tare__intern_add(to->line_keys, key, strlen(key));
    if (at == TARE__INTERN_NONE ||
        !tare__array_fit(&into->lines, &into->line_room, (size_t)at + 1, sizeof *into->lines))
        return TARE__INTERN_NONE;
    if (at == known)
        into->lines[into->line_count++] = *line;
    return at;
}

static uint32_t host_line(gathering *to, const tare__export_place *place, const tare__text *name)
{
    char key[64];
    tare__xplane_line line = {.id = place->tid, .device = -1};
    snprintf(key, sizeof key, "%lld %lld", (long long)place->pid, (long long)place->tid);
    if (name && name->data)
        snprintf(line.name, sizeof line.name, "%.*s", (int)(name->length < 90 ? name->length : 90),
                 name->data);
    return line_at(to, key, &line);
}

static uint32_t gpu_line(gathering *to, int64_t device, int64_t stream)
{
    char key[64];
    tare__xplane_line line = {.id = stream, .device = device};
    snprintf(key, sizeof key, "gpu %lld %lld", (long long)device, (long long)stream);
    snprintf(line.name, sizeof line.name, "Stream #%lld(Compute)", (long long)stream);
    return line_at(to, key, &line);
}

static int put_process(void *context, int64_t pid, const tare__text *name, int64_t order)
{
    (void)context, (void)pid, (void)name, (void)order;
    return 0;
}

static int put_thread(void *context, const tare__export_place *place, const tare__text *name, int64_t order)
{
    (void)order;
    return host_line(context, place, name) == TARE__INTERN_NONE ? TARE_E_MEMORY : 0;
}

/* ---- names ---------------------------------------------------------------------------------------------------- */
/* Names that XProf recognizes. */
static const char *known_name(const tare__export_span *span, const char *text, bool gpu)
{
    static const struct {
        const char *start, *name;
    } copies[] = {
        {"Memcpy HtoD", "MemcpyHToD"}, {"Memcpy DtoH", "MemcpyDToH"}, {"Memcpy DtoD", "MemcpyDToD"}};
    for (size_t i = 0; gpu && i < TARE__COUNT_OF(copies); i++)
        if (strncmp(text, copies[i].start, strlen(copies[i].start)) == 0)
            return copies[i].name;
    if (span->category == TARE_KIND_STEP)
        return "train";
    if (span->category == TARE_KIND_PHASE && strcmp(text, "data") == 0)
        return "IteratorGetNextOp::DoCompute";
    return NULL;
}

static uint32_t name_of(gathering *to, const tare__export_span *span, bool gpu)
{
    const tare__trace_name *row = tare__trace_name_at(to->out.trace, span->name);
    const char *known = known_name(span, row && row->text ? row->text : "", gpu);
    tare__text_clear(&to->name);
    if (known)
        tare__text_string(&to->name, known);
    else
        tare__lanes_name(to->out.trace, span->name, &to->name);
    if (to->name.failed)
        return TARE__INTERN_NONE;
    return tare__intern_add(to->into->names, to->name.data ? to->name.data : "", to->name.length);
}

/* ---- events --------------------------------------------------------------------------------------------------- */
static int add(gathering *to, const tare__export_span *span, uint32_t line, bool gpu, uint64_t number)
{
    tare__xplane *into = to->into;
    if (into->count == EVENTS_MAX) {
        into->left_out++;
        return 0;
    }
    uint32_t name = name_of(to, span, gpu);
    int64_t begin = tare__export_ns(&to->out, span->begin), end = tare__export_ns(&to->out, span->end);
    if (name == TARE__INTERN_NONE || line == TARE__INTERN_NONE ||
        !tare__array_fit(&into->events, &into->room, into->count + 1, sizeof *into->events))
        return TARE_E_MEMORY;
    into->events[into->count++] = (tare__xplane_event){
        .begin_ns = begin > 0 ? (uint64_t)begin : 0,
        .duration_ns = end > begin ? (uint64_t)(end - begin) : 0,
        .number = number,
        .line = line,
        .name = name,
        .kind = span->category == TARE_KIND_STEP && !gpu ? TARE__XPLANE_STEP : TARE__XPLANE_PLAIN,
    };
    return 0;
}

static uint64_t flow_of(const gathering *to, const tare__export_span *span)
{
    for (uint32_t i = 0; span->numbers && i < span->numbers->n; i++) {
        const tare__trace_name *name = tare__trace_name_at(to->out.trace, span->numbers->numbers[i].name);
        if (name && name->text && strcmp(name->text, TARE__NAME_FLOW) == 0 &&
            span->numbers->numbers[i].sum >= 0)
            return (uint64_t)span->numbers->numbers[i].sum;
    }
    return 0;
}

static int end_span(void *context, const tare__export_span *span)
{
    gathering *to = context;
    uint64_t number = flow_of(to, span);
    if (span->category == TARE_KIND_STEP)
        number = span->has_index ? span->index : to->steps++;
    return add(to, span, host_line(to, &span->place, NULL), false, number);
}

static int put_complete(void *context, const tare__export_span *span)
{
    gathering *to = context;
    int64_t device, stream;
    if (tare__gpu_track(to->out.trace, span->complete->track, &device, &stream))
        return add(to, span, gpu_line(to, device, stream), true, span->complete->flow);
    if (!span->place.lane) { /* it would overlap others */
        to->into->left_out++;
        return 0;
    }
    return add(to, span, host_line(to, &span->place, NULL), false, span->complete->flow);
}

static const tare__export_format format = {
    .process = put_process,
    .thread = put_thread,
    .end = end_span,
    .complete = put_complete,
};

/* ---- the output ------------------------------------------------------------------------------------------------ */
static int by_line(const void *a, const void *b)
{
    const tare__xplane_event *left = a, *right = b;
    if (left->line != right->line)
        return left->line < right->line ? -1 : 1;
    if (left->begin_ns != right->begin_ns)
        return left->begin_ns < right->begin_ns ? -1 : 1;
    return left->duration_ns > right->duration_ns ? -1 : left->duration_ns < right->duration_ns;
}

static int write_space(tare__xplane *from, const tare__emit_sink *sink, tare__error *error)
{
    tare__text space = {0};
    if (from->count)
        qsort(from->events, from->count, sizeof *from->events, by_line);
    tare__xplane_put_space(from, &space);
    int status = tare__emit_flush(&space, sink, error);
    tare__text_free(&space);
    return status;
}

int tare__emit_xplane(tare__trace *trace, const tare__emit_sink *sink, tare__error *error)
{
    tare__xplane into = {.trace = trace, .names = tare__intern_new()};
    gathering to = {.into = &into, .line_keys = tare__intern_new()};
    int status =
        into.names && to.line_keys ? tare__export(&to.out, &format, &to, trace, sink, error) : TARE_E_MEMORY;
    if (!status)
        status = write_space(&into, sink, error);
    else if (status == TARE_E_MEMORY)
        tare__fail(error, status, "out of memory");
    tare__text_free(&to.name);
    free(into.events);
    free(into.lines);
    if (into.names)
        tare__intern_free(into.names);
    if (to.line_keys)
        tare__intern_free(to.line_keys);
    return status;
}
