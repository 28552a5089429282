/* chrome: the trace event format, strict JSON that chrome://tracing and ui.perfetto.dev open. docs/EXPORT.md.
 * Owned by the calling thread; memory grows with threads, names, open spans and flows, not with the file.
 * Must not know what the events add up to. */
#include "flush.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attached.h"
#include "gauges.h"
#include "lanes.h"
#include "trace/trace.h"

/* Spans of one flow, so that its arrows start and end where they should. Kept for so many flows. */
#define FLOWS_MAX (1u << 18)
typedef struct flow {
    uint64_t first, last; /* start of its earliest and its latest span, ticks */
    uint32_t n;
    bool started, finished;
} flow;

typedef struct quoted { /* a name as JSON, in `quotes` */
    size_t at;
    uint32_t bytes; /* 0: not yet */
} quoted;

typedef struct chrome {
    tare__trace *trace;
    tare__text text;
    const tare__emit_sink *sink;
    tare__error *error;
    tare__lanes lanes;
    tare__gauges gauges;
    quoted *names; /* by id */
    size_t names_room;
    tare__text quotes, scratch;
    tare__intern *flow_ids;
    flow *flows;
    size_t flows_room;
    uint64_t spans, restored, async, flows_left_out, values_left_out;
    int64_t pid, tid; /* of `stream` */
    uint32_t stream;
    bool any;
} chrome;

static const char *const how_ended[] = {
    [TARE__REPLAY_ENDED] = NULL,
    [TARE__REPLAY_WITH_OUTER] = "left open: closed by the end of a span around it",
    [TARE__REPLAY_END_LOST] = "lost: closed where that was noticed",
    [TARE__REPLAY_STILL_OPEN] = "open at the end: closed there",
    [TARE__REPLAY_UNTIMED] = "not known: too many spans were open",
};

/* ---- pieces of an event -------------------------------------------------------------------------------- */
#define PUT(to, literal) tare__text_append(&(to)->text, literal, sizeof literal - 1)

static void put_whole(chrome *to, int64_t value)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0)
        *--at = '-';
    tare__text_append(&to->text, at, (size_t)(digits + sizeof digits - at));
}

/* Microseconds with the nanoseconds as their fraction. */
static void put_us(chrome *to, int64_t ns)
{
    uint64_t whole = ns < 0 ? -(uint64_t)ns : (uint64_t)ns, rest = whole % 1000;
    if (ns < 0)
        PUT(to, "-");
    put_whole(to, (int64_t)(whole / 1000));
    const char fraction[] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10), (char)('0' + rest % 10)};
    if (rest)
        tare__text_append(&to->text, fraction, sizeof fraction);
}

static int64_t ns_of(const chrome *to, uint64_t ticks)
{
    return (int64_t)llround(tare__trace_ns(to->trace, ticks));
}

static void put_text(chrome *to, const char *text)
{
    tare__json json;
    tare__json_begin(&json, &to->text, false);
    tare__json_string(&json, text);
}

static void put_double(chrome *to, double value)
{
    tare__json json;
    if (fabs(value) < 1e15 && value == floor(value)) {
        put_whole(to, (int64_t)value);
        return;
    }
    tare__json_begin(&json, &to->text, false);
    tare__json_double(&json, value);
}

static void quote_name(chrome *to, uint32_t id, tare__text *out)
{
    tare__json json;
    tare__text_clear(&to->scratch);
    tare__lanes_name(to->trace, id, &to->scratch);
    tare__json_begin(&json, out, false);
    tare__json_text(&json, to->scratch.data, to->scratch.length);
    to->text.failed |= to->scratch.failed;
}

/* Each name is escaped once. */
static void put_name(chrome *to, uint32_t id)
{
    size_t before = to->names_room;
    if (!tare__trace_name_at(to->trace, id) ||
        !tare__array_fit(&to->names, &to->names_room, (size_t)id + 1, sizeof *to->names)) {
        quote_name(to, id, &to->text);
        return;
    }
    memset(to->names + before, 0, (to->names_room - before) * sizeof *to->names);
    quoted *name = &to->names[id];
    if (!name->bytes) {
        name->at = to->quotes.length;
        quote_name(to, id, &to->quotes);
        name->bytes = (uint32_t)(to->quotes.length - name->at);
        to->text.failed |= to->quotes.failed;
    }
    if (!to->quotes.failed)
        tare__text_append(&to->text, to->quotes.data + name->at, name->bytes);
}

static void begin_event(chrome *to, const char *phase)
{
    if (to->any)
        PUT(to, ",\n{\"ph\":\"");
    else
        PUT(to, "\n{\"ph\":\"");
    to->any = true;
    tare__text_append(&to->text, phase, 1);
    PUT(to, "\"");
}

static void put_place(chrome *to, int64_t pid, int64_t tid)
{
    PUT(to, ",\"pid\":");
    put_whole(to, pid);
    PUT(to, ",\"tid\":");
    put_whole(to, tid);
}

static int end_event(chrome *to)
{
    PUT(to, "}");
    return tare__emit_flush_piece(&to->text, to->sink, to->error);
}

/* ---- who is who ---------------------------------------------------------------------------------------- */
/* Sets a name or a place in the order: `key` is "name" or "sort_index". */
static int put_about(chrome *to, const char *what, int64_t pid, int64_t tid, const tare__text *name, int64_t order)
{
    begin_event(to, "M");
    put_place(to, pid, tid);
    tare__text_format(&to->text, ",\"name\":\"%s\",\"args\":{", what);
    if (name) {
        tare__json json;
        PUT(to, "\"name\":");
        tare__json_begin(&json, &to->text, false);
        tare__json_text(&json, name->data, name->length);
        to->text.failed |= name->failed;
    } else {
        PUT(to, "\"sort_index\":");
        put_whole(to, order);
    }
    PUT(to, "}");
    return end_event(to);
}

static int put_process(chrome *to, int64_t pid, int64_t order)
{
    int status = put_about(to, "process_name", pid, 0, &to->scratch, 0);
    return status ? status : put_about(to, "process_sort_index", pid, 0, NULL, order);
}

static int put_processes(chrome *to)
{
    size_t n;
    const tare__trace_process *rows = tare__trace_processes(to->trace, &n);
    int status = 0;
    for (size_t i = 0; i < n && !status; i++) {
        tare__text_clear(&to->scratch);
        tare__lanes_process_name(&to->lanes, &rows[i], &to->scratch);
        status = put_process(to, tare__lanes_pid(&to->lanes, &rows[i]), (int64_t)i);
    }
    return status;
}

static int put_threads(chrome *to)
{
    size_t n = tare__trace_stream_count(to->trace);
    int status = 0;
    for (size_t i = 0; i < n && !status; i++) {
        uint32_t id = tare__trace_stream_row(to->trace, i)->id;
        int64_t pid = tare__lanes_pid_of_stream(&to->lanes, id), tid = tare__lanes_tid(&to->lanes, id);
        tare__text_clear(&to->scratch);
        tare__lanes_thread_name(&to->lanes, id, &to->scratch);
        status = put_about(to, "thread_name", pid, tid, &to->scratch, 0);
        if (!status)
            status = put_about(to, "thread_sort_index", pid, tid, NULL, (int64_t)i);
    }
    return status;
}

/* Processes that were only looked at from outside, and the machine. */
static int put_sampled(chrome *to)
{
    size_t n;
    const tare__trace_series *rows = tare__trace_series_rows(to->trace, &n);
    bool machine = false;
    int status = 0;
    for (size_t i = 0; i < n && !status; i++) {
        int64_t pid = tare__gauge_pid(&rows[i]);
        bool first = !pid && !machine;
        machine |= !pid;
        tare__text_clear(&to->scratch);
        if (rows[i].subject == TARE__SUBJECT_PROCESS && !tare__lanes_process_of_pid(&to->lanes, pid)) {
            tare__text_string(&to->scratch, rows[i].label && rows[i].label[0] ? rows[i].label : "process");
            status = put_about(to, "process_name", pid, 0, &to->scratch, 0);
        } else if (first) {
            tare__text_string(&to->scratch, "machine");
            status = put_process(to, TARE__LANES_MACHINE, -1);
        }
    }
    return status;
}

static int at_stream(chrome *to, uint32_t stream)
{
    if (to->stream == stream && to->pid)
        return 0;
    to->stream = stream;
    to->pid = tare__lanes_pid_of_stream(&to->lanes, stream);
    to->tid = tare__lanes_tid(&to->lanes, stream);
    if (!tare__lanes_is_stray(&to->lanes, stream))
        return 0;
    tare__text_clear(&to->scratch);
    tare__lanes_process_name(&to->lanes, NULL, &to->scratch);
    int status = put_about(to, "process_name", to->pid, 0, &to->scratch, 0);
    tare__text_clear(&to->scratch);
    tare__lanes_thread_name(&to->lanes, stream, &to->scratch);
    return status ? status : put_about(to, "thread_name", to->pid, to->tid, &to->scratch, 0);
}

/* ---- nested spans -------------------------------------------------------------------------------------- */
static void put_attached(chrome *to, const tare__attached *list, bool comma)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (comma || i)
            PUT(to, ",");
        put_name(to, list->numbers[i].name);
        PUT(to, ":");
        put_double(to, list->numbers[i].sum);
    }
    if (list->left_out) {
        PUT(to, ",\"(numbers left out)\":");
        put_whole(to, (int64_t)list->left_out);
    }
}

static const char *category(const chrome *to, uint32_t id, bool restored)
{
    const tare__trace_name *name = tare__trace_name_at(to->trace, id);
    if (restored)
        return "restored";
    return name && name->kind == TARE_KIND_STEP ? "step" : name && name->kind == TARE_KIND_EPOCH ? "epoch" : "span";
}

static void begin_span(chrome *to, const char *phase, const char *category, uint32_t name, int64_t at_ns)
{
    begin_event(to, phase);
    PUT(to, ",\"cat\":\"");
    tare__text_string(&to->text, category);
    PUT(to, "\",\"name\":");
    put_name(to, name);
    PUT(to, ",\"ts\":");
    put_us(to, at_ns);
}

static int end_span(void *context, uint32_t stream, tare__replay_span *span)
{
    chrome *to = context;
    int64_t begin = ns_of(to, span->begin), end = ns_of(to, span->end);
    const char *how = how_ended[span->how];
    int status = at_stream(to, stream);
    if (status)
        return status;
    *(span->restored ? &to->restored : &to->spans) += 1;
    begin_span(to, "X", category(to, span->name, span->restored), span->name, begin);
    PUT(to, ",\"dur\":");
    put_us(to, end > begin ? end - begin : 0);
    put_place(to, to->pid, to->tid);
    if (how || span->own) {
        PUT(to, ",\"args\":{");
        if (how) {
            PUT(to, "\"(end)\":");
            put_text(to, how);
        }
        if (span->own)
            put_attached(to, span->own, how != NULL);
        PUT(to, "}");
    }
    free(span->own);
    span->own = NULL;
    return end_event(to);
}

static int take_number(void *context, uint32_t stream, tare__replay_span *innermost, uint32_t name, double value)
{
    const chrome *to = context;
    (void)stream;
    return innermost ? tare__emit_attach(to->trace, &innermost->own, name, value) : 0;
}

/* ---- marks, counters, samples -------------------------------------------------------------------------- */
static int put_mark(void *context, uint32_t stream, uint32_t name, uint64_t ticks)
{
    chrome *to = context;
    int status = at_stream(to, stream);
    if (status)
        return status;
    begin_span(to, "i", "mark", name, ns_of(to, ticks));
    put_place(to, to->pid, to->tid);
    PUT(to, ",\"s\":\"t\"");
    return end_event(to);
}

static int put_counter(void *context, uint32_t stream, uint32_t name, uint64_t ticks, double value)
{
    chrome *to = context;
    if (!isfinite(value)) {
        to->values_left_out++;
        return 0;
    }
    int status = at_stream(to, stream);
    if (status)
        return status;
    begin_span(to, "C", "counter", name, ns_of(to, ticks));
    put_place(to, to->pid, to->tid);
    PUT(to, ",\"args\":{\"value\":");
    put_double(to, value);
    PUT(to, "}");
    return end_event(to);
}

static int put_sample(chrome *to, const tare__trace_series *series, int64_t pid, const tare__gauge_point *point)
{
    tare__json json;
    begin_event(to, "C");
    PUT(to, ",\"cat\":\"sample\",\"name\":");
    tare__json_begin(&json, &to->text, false);
    tare__json_text(&json, to->scratch.data, to->scratch.length);
    PUT(to, ",\"ts\":");
    put_us(to, ns_of(to, point->ticks));
    put_place(to, pid, 0);
    PUT(to, ",\"args\":{\"");
    tare__text_string(&to->text, tare__gauge_unit(series));
    PUT(to, "\":");
    put_double(to, point->value);
    PUT(to, "}");
    return end_event(to);
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

/* ---- complete spans and their flows -------------------------------------------------------------------- */
/* Before all else: where each flow starts and ends. */
static int note_flows(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n)
{
    chrome *to = context;
    (void)stream;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t known = tare__intern_count(to->flow_ids);
        const char *key = (const char *)&spans[i].flow;
        if (!spans[i].flow ||
            (known >= FLOWS_MAX && tare__intern_find(to->flow_ids, key, sizeof(uint64_t)) == TARE__INTERN_NONE))
            continue;
        uint32_t at = tare__intern_add(to->flow_ids, key, sizeof(uint64_t));
        if (at == TARE__INTERN_NONE ||
            !tare__array_fit(&to->flows, &to->flows_room, (size_t)at + 1, sizeof *to->flows))
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

static int put_flow(chrome *to, const tare__complete_span *span, uint32_t lane)
{
    uint32_t at = tare__intern_find(to->flow_ids, (const char *)&span->flow, sizeof span->flow);
    if (at == TARE__INTERN_NONE || !lane) {
        to->flows_left_out++;
        return 0;
    }
    if (to->flows[at].n < 2)
        return 0; /* an arrow has two ends */
    const char *phase = flow_phase(&to->flows[at], span->start);
    begin_event(to, phase);
    PUT(to, ",\"cat\":\"flow\",\"name\":\"flow\",\"id\":");
    tare__text_format(&to->text, "\"0x%" PRIx64 "\",\"ts\":", span->flow);
    put_us(to, ns_of(to, span->start));
    put_place(to, to->pid, tare__lanes_lane_tid(lane));
    if (*phase == 'f')
        PUT(to, ",\"bp\":\"e\"");
    return end_event(to);
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
        /* As text: readers that take numbers as doubles would change it. */
        tare__text_format(&to->text, "%s\"%s\":\"%" PRIu64 "\"", any ? "," : ",\"args\":{", ids[i].key, ids[i].value);
        any = true;
    }
    if (any)
        PUT(to, "}");
}

static int put_async_end(chrome *to, const tare__complete_span *span, int64_t end_ns)
{
    begin_span(to, "e", "complete", span->name, end_ns);
    put_place(to, to->pid, to->tid);
    tare__text_format(&to->text, ",\"id\":\"0x%" PRIx64 "\"", to->async);
    return end_event(to);
}

static int put_complete(chrome *to, const tare__complete_span *span, uint32_t lane)
{
    uint64_t end = span->end > span->start ? span->end : span->start;
    int64_t begin_ns = ns_of(to, span->start), end_ns = ns_of(to, end);
    to->spans++;
    begin_span(to, lane ? "X" : "b", "complete", span->name, begin_ns);
    if (lane) {
        PUT(to, ",\"dur\":");
        put_us(to, end_ns > begin_ns ? end_ns - begin_ns : 0);
    } else {
        tare__text_format(&to->text, ",\"id\":\"0x%" PRIx64 "\"", ++to->async);
    }
    put_place(to, to->pid, lane ? tare__lanes_lane_tid(lane) : to->tid);
    put_ids(to, span);
    int status = end_event(to);
    if (!status && !lane)
        status = put_async_end(to, span, end_ns > begin_ns ? end_ns : begin_ns);
    return status || !span->flow ? status : put_flow(to, span, lane);
}

static int put_lane(chrome *to, uint32_t lane, uint32_t stream, uint32_t track)
{
    int64_t pid = tare__lanes_pid_of_stream(&to->lanes, stream), tid = tare__lanes_lane_tid(lane);
    tare__text_clear(&to->scratch);
    tare__lanes_lane_name(&to->lanes, lane, stream, track, &to->scratch);
    int status = put_about(to, "thread_name", pid, tid, &to->scratch, 0);
    return status ? status : put_about(to, "thread_sort_index", pid, tid, NULL, tid);
}

static int put_completes(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n)
{
    chrome *to = context;
    int status = at_stream(to, stream);
    tare__lanes_sort(spans, n);
    for (uint32_t i = 0; i < n && !status; i++) {
        uint32_t lane;
        bool fresh;
        status = tare__lanes_place(&to->lanes, stream, &spans[i], &lane, &fresh);
        if (!status && fresh)
            status = put_lane(to, lane, stream, spans[i].track);
        if (!status)
            status = put_complete(to, &spans[i], lane);
    }
    return status;
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
    const tare__replay_visitor flows = {.context = to, .complete = note_flows};
    const tare__replay_visitor events = {.context = to,
                                         .end = end_span,
                                         .mark = put_mark,
                                         .counter = put_counter,
                                         .number = take_number,
                                         .complete = put_completes,
                                         .samples = put_samples,
                                         .drop = free};
    int status = tare__trace_replay(to->trace, &flows, to->error);
    if (status)
        return status;
    PUT(to, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    status = tare__lanes_open(&to->lanes, to->trace);
    if (status)
        return tare__fail(to->error, status, "out of memory");
    status = put_processes(to);
    if (!status)
        status = put_threads(to);
    if (!status)
        status = put_sampled(to);
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
