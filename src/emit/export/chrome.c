/* chrome: the trace event format, strict JSON that chrome://tracing and ui.perfetto.dev open. docs/EXPORT.md.
 * Owned by the calling thread; memory grows with threads, names, open spans and flows, not with the file.
 * Must not know what is computed from the events. */
#include "chrome.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FLOWS_MAX (1u << 18) /* flows with arrows */

/* ---- nested spans -------------------------------------------------------------------------------------- */
static void put_attached(chrome *to, const tare__attached *list, bool comma)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (comma || i)
            PUT(to, ",");
        tare__chrome_put_name(to, list->numbers[i].name);
        PUT(to, ":");
        tare__chrome_put_double(to, list->numbers[i].sum);
    }
    if (list->left_out) {
        PUT(to, ",\"(numbers omitted)\":");
        tare__chrome_put_whole(to, (int64_t)list->left_out);
    }
}

static int end_span(void *context, const tare__export_span *span)
{
    chrome *to = context;
    tare__chrome_begin_named(to, "X", span->category, span->name, span->begin);
    tare__chrome_put_lasts(to, span);
    tare__chrome_put_place(to, span->place.pid, span->place.tid);
    if (span->how || span->numbers) {
        PUT(to, ",\"args\":{");
        if (span->how) {
            PUT(to, "\"(end)\":");
            tare__chrome_put_text(to, span->how);
        }
        if (span->numbers)
            put_attached(to, span->numbers, span->how != NULL);
        PUT(to, "}");
    }
    return tare__chrome_end_event(to);
}

/* ---- complete spans, and the arrows of their flows --------------------------------------------------------- */
static int note_flows(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n)
{
    chrome *to = context;
    (void)stream;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t known = tare__intern_count(to->flow_ids);
        const char *key = (const char *)&spans[i].flow;
        if (!spans[i].flow || (known >= FLOWS_MAX &&
                               tare__intern_find(to->flow_ids, key, sizeof(uint64_t)) == TARE__INTERN_NONE))
            continue;
        uint32_t at = tare__intern_add(to->flow_ids, key, sizeof(uint64_t));
        if (at == TARE__INTERN_NONE || !tare__array_fit(&to->flows, &to->flows_room, (size_t)at + 1, sizeof *to->flows))
            return TARE_E_MEMORY;
        flow *flow = &to->flows[at];
        if (at == known)
            *flow = (struct flow){.first = spans[i].start, .last = spans[i].start};
        flow->first = spans[i].start < flow->first ? spans[i].start : flow->first;
        flow->last = spans[i].start > flow->last ? spans[i].start : flow->last;
        flow->n++;
    }
    return 0;
}

static const char *flow_phase(flow *flow, uint64_t start)
{
    if (start == flow->first && !flow->started) {
        flow->started = true;
        return "s";
    }
    if (start == flow->last && !flow->finished) {
        flow->finished = true;
        return "f";
    }
    return "t";
}

static int put_flow(chrome *to, const tare__export_span *span)
{
    uint64_t id = span->complete->flow;
    uint32_t at = tare__intern_find(to->flow_ids, (const char *)&id, sizeof id);
    if (at == TARE__INTERN_NONE || !span->place.lane) {
        to->flows_left_out++;
        return 0;
    }
    if (to->flows[at].n < 2)
        return 0; /* an arrow has two ends */
    const char *phase = flow_phase(&to->flows[at], span->begin);
    tare__chrome_begin_event(to, phase);
    PUT(to, ",\"cat\":\"flow\",\"name\":\"flow\",\"id\":");
    tare__text_format(&to->out.text, "\"0x%" PRIx64 "\",\"ts\":", id);
    tare__chrome_put_us(to, tare__export_ns(&to->out, span->begin));
    tare__chrome_put_place(to, span->place.pid, span->place.tid);
    if (*phase == 'f')
        PUT(to, ",\"bp\":\"e\"");
    return tare__chrome_end_event(to);
}

static void put_ids(chrome *to, const tare__complete_span *span)
{
    const struct {
        const char *key;
        uint64_t value;
    } ids[] = {{"id", span->id}, {"parent", span->parent}, {"flow", span->flow}};
    bool any = false;
    for (size_t i = 0; i < TARE__COUNT_OF(ids); i++) {
        if (!ids[i].value)
            continue;
        /* As text: readers that parse numbers as doubles would change it. */
        tare__text_format(&to->out.text, "%s\"%s\":\"%" PRIu64 "\"", any ? "," : ",\"args\":{", ids[i].key,
                          ids[i].value);
        any = true;
    }
    if (any)
        PUT(to, "}");
}

/* Used if no lane is left: as an async event, which may overlap others, with its own id. */
static int put_async(chrome *to, const char *phase, const tare__export_span *span)
{
    bool begins = *phase == 'b';
    tare__chrome_begin_named(to, phase, span->category, span->name, begins ? span->begin : span->end);
    tare__text_format(&to->out.text, ",\"id\":\"0x%" PRIx64 "\"", to->async);
    tare__chrome_put_place(to, span->place.pid, span->place.tid);
    if (begins)
        put_ids(to, span->complete);
    return tare__chrome_end_event(to);
}

static int put_on_lane(chrome *to, const tare__export_span *span)
{
    tare__chrome_begin_named(to, "X", span->category, span->name, span->begin);
    tare__chrome_put_lasts(to, span);
    tare__chrome_put_place(to, span->place.pid, span->place.tid);
    put_ids(to, span->complete);
    return tare__chrome_end_event(to);
}

static int put_complete(void *context, const tare__export_span *span)
{
    chrome *to = context;
    to->async += !span->place.lane;
    int status = span->place.lane ? put_on_lane(to, span) : put_async(to, "b", span);
    if (!status && !span->place.lane)
        status = put_async(to, "e", span);
    return status || !span->complete->flow ? status : put_flow(to, span);
}

/* ---- marks, counters, samples -------------------------------------------------------------------------- */
static int put_mark(void *context, const tare__export_place *place, uint32_t name, uint64_t ticks)
{
    chrome *to = context;
    tare__chrome_begin_named(to, "i", TARE_KIND_MARK, name, ticks);
    tare__chrome_put_place(to, place->pid, place->tid);
    PUT(to, ",\"s\":\"t\"");
    return tare__chrome_end_event(to);
}

static int put_counter(void *context, const tare__export_place *place, uint32_t name, uint64_t ticks, double value)
{
    chrome *to = context;
    tare__chrome_begin_named(to, "C", TARE_KIND_COUNTER, name, ticks);
    tare__chrome_put_place(to, place->pid, place->tid);
    PUT(to, ",\"args\":{\"value\":");
    tare__chrome_put_double(to, value);
    PUT(to, "}");
    return tare__chrome_end_event(to);
}

static int put_sample(void *context, int64_t pid, const tare__trace_series *series, const tare__text *name,
                      const tare__gauge_point *point)
{
    chrome *to = context;
    tare__json json;
    tare__chrome_begin_event(to, "C");
    PUT(to, ",\"cat\":\"sample\",\"name\":");
    tare__json_begin(&json, &to->out.text, false);
    tare__json_text(&json, name->data, name->length);
    PUT(to, ",\"ts\":");
    tare__chrome_put_us(to, tare__export_ns(&to->out, point->ticks));
    tare__chrome_put_place(to, pid, 0);
    PUT(to, ",\"args\":{\"");
    tare__text_string(&to->out.text, tare__gauge_unit(series));
    PUT(to, "\":");
    tare__chrome_put_double(to, point->value);
    PUT(to, "}");
    return tare__chrome_end_event(to);
}

/* ---- the output ---------------------------------------------------------------------------------------- */
static void put_absent(chrome *to, tare__json *json)
{
    size_t n;
    const tare__trace_series *rows = tare__trace_series_rows(to->out.trace, &n);
    tare__json_key(json, "absent");
    tare__json_array(json);
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].absent || !rows[i].absent[0] || tare__gauge_seen(&to->out.gauges, rows[i].id))
            continue; /* a series that ended had values */
        tare__text_clear(&to->out.scratch);
        tare__gauge_name(&rows[i], &to->out.scratch);
        tare__json_object(json);
        tare__json_key(json, "what");
        tare__json_text(json, to->out.scratch.data, to->out.scratch.length);
        tare__json_put_string(json, "reason", rows[i].absent);
        tare__json_end_object(json);
    }
    tare__json_end_array(json);
}

/* Everything that is not an event. The time of day is text: a double would lose its nanoseconds. */
static void put_others(chrome *to)
{
    const tare__trace_run *run = tare__trace_run_of(to->out.trace);
    const tare__trace_damage *damage = tare__trace_damage_of(to->out.trace);
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"spans", to->out.spans},
        {"restored_spans", to->out.restored},
        {"flow_points_left_out", to->flows_left_out},
        {"values_left_out", to->out.values_left_out},
        {"damaged_blocks", damage->blocks},
        {"damaged_spans", damage->spans},
    };
    char start[24];
    tare__json json;
    tare__json_begin(&json, &to->out.text, false);
    tare__json_object(&json);
    tare__json_put_string(&json, "writer", run->writer);
    tare__json_put_string(&json, "host", run->host);
    snprintf(start, sizeof start, "%" PRIu64, run->start_realtime_ns);
    tare__json_put_string(&json, "start_realtime_ns", run->start_realtime_ns ? start : NULL);
    tare__json_put_bool(&json, "clock_known", tare__trace_clock_known(to->out.trace));
    for (size_t i = 0; i < TARE__COUNT_OF(numbers); i++) {
        tare__json_key(&json, numbers[i].key);
        tare__json_unsigned(&json, numbers[i].value);
    }
    put_absent(to, &json);
    tare__json_end_object(&json);
}

static int put_head(void *context)
{
    chrome *to = context;
    PUT(to, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    return 0;
}

static int put_tail(void *context)
{
    chrome *to = context;
    PUT(to, "\n],\"otherData\":");
    put_others(to);
    PUT(to, "}\n");
    return 0;
}

static const tare__export_format format = {
    .look_ahead = note_flows,
    .head = put_head,
    .process = tare__chrome_put_process,
    .thread = tare__chrome_put_thread,
    .end = end_span,
    .complete = put_complete,
    .mark = put_mark,
    .counter = put_counter,
    .sample = put_sample,
    .tail = put_tail,
};

static int emit_chrome(const tare__emit_input *input, const tare__emit_options *options,
                       const tare__emit_sink *sink, tare__error *error)
{
    (void)options;
    chrome to = {.flow_ids = tare__intern_new()};
    int status = to.flow_ids ? tare__export(&to.out, &format, &to, input->trace, sink, error) : tare__no_memory(error);
    if (to.flow_ids)
        tare__intern_free(to.flow_ids);
    free(to.flows);
    free(to.names);
    tare__text_free(&to.quotes);
    return status;
}

const tare__emitter tare__emit_chrome = {
    .name = "chrome",
    .needs = TARE__EMIT_CURSOR,
    .emit = emit_chrome,
};
