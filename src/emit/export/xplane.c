/* xplane: a trace as the XPlane that XProf and TensorBoard's profile plugin open. docs/EXPORT.md.
 * Owned by the calling thread. A plane is one message preceded by its length, so its events are collected first; their
 * number is limited.
 * Must not know how files are named. */
#include "tensorboard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter.h"
#include "proto.h"

#define EVENTS_MAX ((size_t)1 << 20) /* XProf's own viewer shows no more */

typedef struct xplane_event {
    uint64_t begin_ns, duration_ns;
    uint64_t number; /* for a step its index, else the flow */
    uint32_t line, name;
    uint32_t kind;
} xplane_event;

enum { XPLANE_PLAIN, XPLANE_STEP };

typedef struct xplane_line {
    int64_t id;
    int64_t device; /* -1: the host */
    char name[96];
} xplane_line;

typedef struct xplane {
    tare__trace *trace;
    xplane_event *events; /* sorted by line and begin before planes are built */
    size_t count, room;
    uint64_t left_out;
    xplane_line *lines;
    size_t line_count, line_room;
    tare__intern *names; /* as XProf expects them */
} xplane;

/* ---- planes -------------------------------------------------------------------------------------------------- */
enum { SPACE_PLANES = 1, SPACE_WARNINGS = 3, SPACE_HOSTNAMES = 4 };
enum { PLANE_ID = 1, PLANE_NAME = 2, PLANE_LINES = 3, PLANE_EVENT_METADATA = 4, PLANE_STAT_METADATA = 5 };
enum { LINE_ID = 1, LINE_NAME = 2, LINE_TIMESTAMP_NS = 3, LINE_EVENTS = 4, LINE_DISPLAY_NAME = 11 };
enum { EVENT_METADATA = 1, EVENT_OFFSET_PS = 2, EVENT_DURATION_PS = 3, EVENT_STATS = 4 };
enum { STAT_METADATA = 1, STAT_UINT64 = 3, STAT_INT64 = 4 };
enum { METADATA_ID = 1, METADATA_NAME = 2, ENTRY_KEY = 1, ENTRY_VALUE = 2 };

/* Stats are identified by the names in their metadata. */
enum { STEP_NUM = 1, IS_ROOT, CORRELATION_ID, STATS };
static const char *const stat_names[STATS] = {
    [STEP_NUM] = "step_num", [IS_ROOT] = "_r", [CORRELATION_ID] = "correlation_id"};

typedef struct plane {
    xplane *from;
    tare__text text, line, event, part;
} plane;

/* The first event of a line: events are sorted by line. */
static size_t first_of(const xplane *from, uint32_t line)
{
    size_t low = 0, high = from->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (from->events[middle].line < line)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void put_stat(plane *to, unsigned metadata, unsigned field, uint64_t value)
{
    tare__text_clear(&to->part);
    tare__proto_number(&to->part, STAT_METADATA, metadata);
    tare__proto_number(&to->part, field, value);
    tare__proto_message(&to->event, EVENT_STATS, &to->part);
}

static void put_event(plane *to, const xplane_event *event)
{
    tare__text_clear(&to->event);
    tare__proto_number(&to->event, EVENT_METADATA, (uint64_t)event->name + 1);
    tare__proto_number(&to->event, EVENT_OFFSET_PS, event->begin_ns * 1000);
    tare__proto_number(&to->event, EVENT_DURATION_PS, event->duration_ns * 1000);
    if (event->kind == XPLANE_STEP) {
        put_stat(to, STEP_NUM, STAT_INT64, event->number);
        put_stat(to, IS_ROOT, STAT_INT64, 1);
    } else if (event->number) {
        put_stat(to, CORRELATION_ID, STAT_UINT64, event->number);
    }
    tare__proto_message(&to->line, LINE_EVENTS, &to->event);
}

static void put_line(plane *to, uint32_t index)
{
    const xplane_line *line = &to->from->lines[index];
    const tare__trace_run *run = tare__trace_run_of(to->from->trace);
    tare__text_clear(&to->line);
    tare__proto_number(&to->line, LINE_ID, (uint64_t)line->id);
    tare__proto_text(&to->line, LINE_NAME, line->name, strlen(line->name));
    tare__proto_number(&to->line, LINE_TIMESTAMP_NS, run->start_realtime_ns);
    size_t first = first_of(to->from, index), i = first;
    for (; i < to->from->count && to->from->events[i].line == index; i++)
        put_event(to, &to->from->events[i]);
    if (i > first)
        tare__proto_message(&to->text, PLANE_LINES, &to->line);
}

static void put_metadata(plane *to, unsigned field, uint64_t id, const char *name, size_t length)
{
    tare__text_clear(&to->part);
    tare__proto_number(&to->part, METADATA_ID, id);
    tare__proto_text(&to->part, METADATA_NAME, name, length);
    tare__text_clear(&to->event);
    tare__proto_number(&to->event, ENTRY_KEY, id);
    tare__proto_message(&to->event, ENTRY_VALUE, &to->part);
    tare__proto_message(&to->text, field, &to->event);
}

static void put_plane(plane *to, int64_t device, tare__text *out)
{
    char name[48];
    const xplane *from = to->from;
    tare__text_clear(&to->text);
    snprintf(name, sizeof name, device < 0 ? "/host:CPU" : "/device:GPU:%lld", (long long)device);
    tare__proto_number(&to->text, PLANE_ID, (uint64_t)(device + 1));
    tare__proto_text(&to->text, PLANE_NAME, name, strlen(name));
    for (uint32_t i = 0; i < from->line_count; i++)
        if (from->lines[i].device == device)
            put_line(to, i);
    for (uint32_t i = 0; i < tare__intern_count(from->names); i++) {
        size_t length;
        const char *text = tare__intern_text(from->names, i, &length);
        put_metadata(to, PLANE_EVENT_METADATA, (uint64_t)i + 1, text, length);
    }
    for (unsigned i = 1; i < STATS; i++)
        put_metadata(to, PLANE_STAT_METADATA, i, stat_names[i], strlen(stat_names[i]));
    tare__proto_message(out, SPACE_PLANES, &to->text);
}

static void put_space(xplane *from, tare__text *out)
{
    plane to = {.from = from};
    const char *host = tare__trace_run_of(from->trace)->host;
    int64_t most = -1;
    for (size_t i = 0; i < from->line_count; i++)
        most = from->lines[i].device > most ? from->lines[i].device : most;
    put_plane(&to, -1, out);
    for (int64_t device = 0; device <= most && device < 1024; device++)
        put_plane(&to, device, out);
    if (from->left_out) {
        tare__text_clear(&to.part);
        char events[TARE__COUNTED_BYTES];
        tare__text_format(&to.part, "%s omitted: too many for one plane",
                          tare__unit_counted(events, (double)from->left_out, "event was", "events were"));
        tare__proto_message(out, SPACE_WARNINGS, &to.part);
    }
    if (host && host[0])
        tare__proto_text(out, SPACE_HOSTNAMES, host, strlen(host));
    tare__text_free(&to.text);
    tare__text_free(&to.line);
    tare__text_free(&to.event);
    tare__text_free(&to.part);
}

/* ---- collected events ---------------------------------------------------------------------------------------- */
typedef struct gathering {
    tare__exporter out; /* first: callbacks of the exporter get this struct */
    xplane *into;
    tare__intern *line_keys;
    uint64_t steps;
    tare__text name;
} gathering;

/* ---- lines ---------------------------------------------------------------------------------------------------- */
static uint32_t line_at(gathering *to, const char *key, const xplane_line *line)
{
    xplane *into = to->into;
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
    xplane_line line = {.id = place->tid, .device = -1};
    snprintf(key, sizeof key, "%lld %lld", (long long)place->pid, (long long)place->tid);
    if (name && name->data)
        snprintf(line.name, sizeof line.name, "%.*s", (int)(name->length < 90 ? name->length : 90), name->data);
    return line_at(to, key, &line);
}

static uint32_t gpu_line(gathering *to, int64_t device, int64_t stream)
{
    char key[64];
    xplane_line line = {.id = stream, .device = device};
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
    xplane *into = to->into;
    if (into->count == EVENTS_MAX) {
        into->left_out++;
        return 0;
    }
    uint32_t name = name_of(to, span, gpu);
    int64_t begin = tare__export_ns(&to->out, span->begin), end = tare__export_ns(&to->out, span->end);
    if (name == TARE__INTERN_NONE || line == TARE__INTERN_NONE ||
        !tare__array_fit(&into->events, &into->room, into->count + 1, sizeof *into->events))
        return TARE_E_MEMORY;
    into->events[into->count++] = (xplane_event){
        .begin_ns = begin > 0 ? (uint64_t)begin : 0,
        .duration_ns = end > begin ? (uint64_t)(end - begin) : 0,
        .number = number,
        .line = line,
        .name = name,
        .kind = span->category == TARE_KIND_STEP && !gpu ? XPLANE_STEP : XPLANE_PLAIN,
    };
    return 0;
}

static uint64_t flow_of(const gathering *to, const tare__export_span *span)
{
    for (uint32_t i = 0; span->numbers && i < span->numbers->n; i++) {
        const tare__trace_name *name = tare__trace_name_at(to->out.trace, span->numbers->numbers[i].name);
        if (name && name->text && strcmp(name->text, TARE__NAME_FLOW) == 0 && span->numbers->numbers[i].sum >= 0)
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
TARE__ORDER(by_line, xplane_event, TARE__RISING(line) TARE__RISING(begin_ns) TARE__FALLING(duration_ns))

static int write_space(xplane *from, const tare__emit_sink *sink, tare__error *error)
{
    tare__text space = {0};
    if (from->count)
        qsort(from->events, from->count, sizeof *from->events, by_line);
    put_space(from, &space);
    return tare__emit_end(&space, 0, sink, error);
}

int tare__emit_xplane(tare__trace *trace, const tare__emit_sink *sink, tare__error *error)
{
    xplane into = {.trace = trace, .names = tare__intern_new()};
    gathering to = {.into = &into, .line_keys = tare__intern_new()};
    int status = into.names && to.line_keys ? tare__export(&to.out, &format, &to, trace, sink, error) : TARE_E_MEMORY;
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
