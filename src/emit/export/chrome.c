/* chrome: the trace event format, strict JSON that chrome://tracing and ui.perfetto.dev open. docs/EXPORT.md.
 * Owned by the calling thread; memory grows with threads, names, open spans and flows, not with the file.
 * Must not know what is computed from the events. */
#include "chrome.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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
        PUT(to, ",\"(numbers left out)\":");
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

/* ---- marks, counters, samples -------------------------------------------------------------------------- */
static int put_mark(void *context, const tare__export_place *place, uint32_t name, uint64_t ticks)
{
    chrome *to = context;
    tare__chrome_begin_named(to, "i", TARE_KIND_MARK, name, ticks);
    tare__chrome_put_place(to, place->pid, place->tid);
    PUT(to, ",\"s\":\"t\"");
    return tare__chrome_end_event(to);
}

static int put_counter(void *context, const tare__export_place *place, uint32_t name, uint64_t ticks,
                       double value)
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
    .look_ahead = tare__chrome_note_flows,
    .head = put_head,
    .process = tare__chrome_put_process,
    .thread = tare__chrome_put_thread,
    .end = end_span,
    .complete = tare__chrome_put_complete,
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
    int status = to.flow_ids ? tare__export(&to.out, &format, &to, input->trace, sink, error)
                             : tare__fail(error, TARE_E_MEMORY, "out of memory");
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
