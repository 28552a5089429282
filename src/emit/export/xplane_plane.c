/* xplane_plane: the collected events as an XSpace: a plane for the host and one for each GPU; a line per thread or
 * stream.
 * Owned by the calling thread.
 * Must not know where events come from. */
#include "xplane.h"

#include <stdio.h>

#include "proto.h"
#include "trace/trace.h"

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
    tare__xplane *from;
    tare__text text, line, event, part;
} plane;

/* The first event of a line: events are sorted by line. */
static size_t first_of(const tare__xplane *from, uint32_t line)
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

static void put_event(plane *to, const tare__xplane_event *event)
{
    tare__text_clear(&to->event);
    tare__proto_number(&to->event, EVENT_METADATA, (uint64_t)event->name + 1);
    tare__proto_number(&to->event, EVENT_OFFSET_PS, event->begin_ns * 1000);
    tare__proto_number(&to->event, EVENT_DURATION_PS, event->duration_ns * 1000);
    if (event->kind == TARE__XPLANE_STEP) {
        put_stat(to, STEP_NUM, STAT_INT64, event->number);
        put_stat(to, IS_ROOT, STAT_INT64, 1);
    } else if (event->number) {
        put_stat(to, CORRELATION_ID, STAT_UINT64, event->number);
    }
    tare__proto_message(&to->line, LINE_EVENTS, &to->event);
}

static void put_line(plane *to, uint32_t index)
{
    const tare__xplane_line *line = &to->from->lines[index];
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
    const tare__xplane *from = to->from;
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

void tare__xplane_put_space(tare__xplane *from, tare__text *out)
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
        tare__text_format(&to.part, "%s left out: there are too many for one plane",
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
