/* chrome: the trace event format, strict JSON that chrome://tracing and ui.perfetto.dev open. docs/EXPORT.md.
 * Owned by the calling thread; memory grows with threads, names, open spans and flows, not with the file.
 * Must not know what the events add up to. */
#include "chrome.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "attached.h"

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

static const char *category(const chrome *to, uint32_t id, bool restored)
{
    const tare__trace_name *name = tare__trace_name_at(to->trace, id);
    if (restored)
        return "restored";
    return tare__span_kind_word(name ? name->kind : TARE_KIND_SPAN);
}

static int end_span(void *context, uint32_t stream, tare__replay_span *span)
{
    chrome *to = context;
    int64_t begin = tare__chrome_ns_of(to, span->begin), end = tare__chrome_ns_of(to, span->end);
    const char *how = tare__lanes_how_ended(span->how);
    int status = tare__chrome_at_stream(to, stream);
    if (status)
        return status;
    *(span->restored ? &to->restored : &to->spans) += 1;
    tare__chrome_begin_named(to, "X", category(to, span->name, span->restored), span->name, begin);
    PUT(to, ",\"dur\":");
    tare__chrome_put_us(to, end > begin ? end - begin : 0);
    tare__chrome_put_place(to, to->pid, to->tid);
    if (how || span->own) {
        PUT(to, ",\"args\":{");
        if (how) {
            PUT(to, "\"(end)\":");
            tare__chrome_put_text(to, how);
        }
        if (span->own)
            put_attached(to, span->own, how != NULL);
        PUT(to, "}");
    }
    free(span->own);
    span->own = NULL;
    return tare__chrome_end_event(to);
}

static int take_number(void *context, uint32_t stream, tare__replay_span *innermost, uint32_t name,
                       double value)
{
    const chrome *to = context;
    (void)stream;
    return innermost ? tare__emit_attach(to->trace, &innermost->own, name, value) : 0;
}

/* ---- marks, counters, samples -------------------------------------------------------------------------- */
static int put_mark(void *context, uint32_t stream, uint32_t name, uint64_t ticks)
{
    chrome *to = context;
    int status = tare__chrome_at_stream(to, stream);
    if (status)
        return status;
    tare__chrome_begin_named(to, "i", "mark", name, tare__chrome_ns_of(to, ticks));
    tare__chrome_put_place(to, to->pid, to->tid);
    PUT(to, ",\"s\":\"t\"");
    return tare__chrome_end_event(to);
}

static int put_counter(void *context, uint32_t stream, uint32_t name, uint64_t ticks, double value)
{
    chrome *to = context;
    if (!isfinite(value)) {
        to->values_left_out++;
        return 0;
    }
    int status = tare__chrome_at_stream(to, stream);
    if (status)
        return status;
    tare__chrome_begin_named(to, "C", "counter", name, tare__chrome_ns_of(to, ticks));
    tare__chrome_put_place(to, to->pid, to->tid);
    PUT(to, ",\"args\":{\"value\":");
    tare__chrome_put_double(to, value);
    PUT(to, "}");
    return tare__chrome_end_event(to);
}

static int put_sample(chrome *to, const tare__trace_series *series, int64_t pid,
                      const tare__gauge_point *point)
{
    tare__json json;
    tare__chrome_begin_event(to, "C");
    PUT(to, ",\"cat\":\"sample\",\"name\":");
    tare__json_begin(&json, &to->text, false);
    tare__json_text(&json, to->scratch.data, to->scratch.length);
    PUT(to, ",\"ts\":");
    tare__chrome_put_us(to, tare__chrome_ns_of(to, point->ticks));
    tare__chrome_put_place(to, pid, 0);
    PUT(to, ",\"args\":{\"");
    tare__text_string(&to->text, tare__gauge_unit(series));
    PUT(to, "\":");
    tare__chrome_put_double(to, point->value);
    PUT(to, "}");
    return tare__chrome_end_event(to);
}

static int put_samples(void *context, uint32_t id, const uint64_t *ticks, const int64_t *values, uint32_t n)
{
    chrome *to = context;
    const tare__trace_series *series = tare__trace_series_at(to->trace, id);
    if (!series) {
        to->values_left_out += n;
        return 0;
    }
    int64_t pid = tare__gauge_pid(series);
    const tare__trace_process *process = pid ? tare__lanes_process_of_pid(&to->lanes, pid) : NULL;
    pid = process ? tare__lanes_pid(&to->lanes, process) : pid ? pid : TARE__LANES_MACHINE;
    tare__text_clear(&to->scratch);
    tare__gauge_name(series, &to->scratch);
    to->text.failed |= to->scratch.failed;
    for (uint32_t i = 0; i < n; i++) {
        tare__gauge_point point;
        int status = tare__gauge_draw(&to->gauges, to->trace, series, ticks[i], values[i], &point);
        if (status > 0)
            status = put_sample(to, series, pid, &point);
        if (status)
            return status;
    }
    return 0;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */
static void put_absent(chrome *to, tare__json *json)
{
    size_t n;
    const tare__trace_series *rows = tare__trace_series_rows(to->trace, &n);
    tare__json_key(json, "absent");
    tare__json_array(json);
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].absent || !rows[i].absent[0] || tare__gauge_seen(&to->gauges, rows[i].id))
            continue; /* what ended had values */
        tare__text_clear(&to->scratch);
        tare__gauge_name(&rows[i], &to->scratch);
        tare__json_object(json);
        tare__json_key(json, "what");
        tare__json_text(json, to->scratch.data, to->scratch.length);
        tare__json_key(json, "reason");
        tare__json_string(json, rows[i].absent);
        tare__json_end_object(json);
    }
    tare__json_end_array(json);
}

/* What is no event. The time of day goes in as text: a double would lose its nanoseconds. */
static void put_others(chrome *to)
{
    const tare__trace_run *run = tare__trace_run_of(to->trace);
    const tare__trace_damage *damage = tare__trace_damage_of(to->trace);
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"spans", to->spans},
        {"restored_spans", to->restored},
        {"flow_points_left_out", to->flows_left_out},
        {"values_left_out", to->values_left_out},
        {"damaged_blocks", damage->blocks},
        {"damaged_spans", damage->spans},
    };
    char start[24];
    tare__json json;
    tare__json_begin(&json, &to->text, false);
    tare__json_object(&json);
    tare__json_key(&json, "writer");
    tare__json_string(&json, run->writer);
    tare__json_key(&json, "host");
    tare__json_string(&json, run->host);
    snprintf(start, sizeof start, "%" PRIu64, run->start_realtime_ns);
    tare__json_key(&json, "start_realtime_ns");
    tare__json_string(&json, run->start_realtime_ns ? start : NULL);
    tare__json_key(&json, "clock_known");
    tare__json_bool(&json, tare__trace_clock_known(to->trace));
    for (size_t i = 0; i < TARE__COUNT_OF(numbers); i++) {
        tare__json_key(&json, numbers[i].key);
        tare__json_unsigned(&json, numbers[i].value);
    }
    put_absent(to, &json);
    tare__json_end_object(&json);
}

static int put_all(chrome *to)
{
    const tare__replay_visitor flows = {.context = to, .complete = tare__chrome_note_flows};
    const tare__replay_visitor events = {.context = to,
                                         .end = end_span,
                                         .mark = put_mark,
                                         .counter = put_counter,
                                         .number = take_number,
                                         .complete = tare__chrome_put_completes,
                                         .samples = put_samples,
                                         .drop = free};
    int status = tare__trace_replay(to->trace, &flows, to->error);
    if (status)
        return status;
    PUT(to, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    status = tare__lanes_open(&to->lanes, to->trace);
    if (status)
        return tare__fail(to->error, status, "out of memory");
    status = tare__chrome_put_people(to);
    if (!status)
        status = tare__trace_replay(to->trace, &events, to->error);
    if (status)
        return status;
    PUT(to, "\n],\"otherData\":");
    put_others(to);
    PUT(to, "}\n");
    return tare__emit_flush(&to->text, to->sink, to->error);
}

static int emit_chrome(const tare__emit_input *input, const tare__emit_options *options,
                       const tare__emit_sink *sink, tare__error *error)
{
    (void)options;
    chrome to = {.trace = input->trace, .sink = sink, .error = error, .flow_ids = tare__intern_new()};
    int status = to.flow_ids ? put_all(&to) : tare__fail(error, TARE_E_MEMORY, "out of memory");
    tare__lanes_close(&to.lanes);
    tare__gauges_free(&to.gauges);
    if (to.flow_ids)
        tare__intern_free(to.flow_ids);
    free(to.flows);
    free(to.names);
    tare__text_free(&to.quotes);
    tare__text_free(&to.scratch);
    tare__text_free(&to.text);
    return status;
}

const tare__emitter tare__emit_chrome = {
    .name = "chrome",
    .description = "for chrome://tracing and ui.perfetto.dev: every span as trace event JSON",
    .needs = TARE__EMIT_CURSOR,
    .emit = emit_chrome,
};
