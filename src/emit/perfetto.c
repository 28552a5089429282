/* perfetto: the native protocol buffers of Perfetto, packet by packet. docs/EXPORT.md.
 * Owned by the calling thread; memory grows with threads, names and open spans, not with the file.
 * Must not know what the events add up to. */
#include "perfetto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attached.h"

/* ---- nested spans, marks --------------------------------------------------------------------------- */
static void annotate_numbers(perfetto *to, const tare__attached *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        double sum = list->numbers[i].sum;
        tare__text_clear(&to->part);
        tare__perfetto_put_name(to, &to->part, list->numbers[i].name, TOLD_ANNOTATION);
        if (tare__perfetto_is_whole(sum))
            tare__proto_number(&to->part, ANNOTATION_INT, (uint64_t)(int64_t)sum);
        else
            tare__proto_double(&to->part, ANNOTATION_DOUBLE, sum);
        tare__proto_message(&to->event, EVENT_DEBUG_ANNOTATIONS, &to->part);
    }
    if (list->left_out)
        tare__perfetto_annotate_whole(to, "(numbers left out)", list->left_out);
}

static span_category category(const perfetto *to, const tare__replay_span *span)
{
    const tare__trace_name *name = tare__trace_name_at(to->trace, span->name);
    if (span->restored)
        return RESTORED;
    return name && name->kind == TARE_KIND_STEP ? STEP : name && name->kind == TARE_KIND_EPOCH ? EPOCH : SPAN;
}

static void begin_named(perfetto *to, unsigned type, uint64_t track, uint32_t name, span_category category)
{
    tare__perfetto_begin_event(to, type, track);
    tare__proto_number(&to->event, EVENT_CATEGORY_IIDS, category);
    tare__perfetto_put_name(to, &to->event, name, TOLD_EVENT);
}

static int begin_span(void *context, uint32_t stream, tare__replay_span *span)
{
    perfetto *to = context;
    int status = tare__perfetto_at_stream(to, stream);
    if (status)
        return status;
    begin_named(to, SLICE_BEGIN, UUID(OF_THREAD, stream), span->name, category(to, span));
    return tare__perfetto_put_event(to, span->begin);
}

static int end_span(void *context, uint32_t stream, tare__replay_span *span)
{
    perfetto *to = context;
    tare__perfetto_begin_event(to, SLICE_END, UUID(OF_THREAD, stream));
    if (tare__lanes_how_ended(span->how))
        tare__perfetto_annotate_text(to, "(end)", tare__lanes_how_ended(span->how));
    if (span->own)
        annotate_numbers(to, span->own);
    free(span->own);
    span->own = NULL;
    return tare__perfetto_put_event(to, span->end);
}

static int take_number(void *context, uint32_t stream, tare__replay_span *innermost, uint32_t name,
                       double value)
{
    const perfetto *to = context;
    (void)stream;
    return innermost ? tare__emit_attach(to->trace, &innermost->own, name, value) : 0;
}

static int put_mark(void *context, uint32_t stream, uint32_t name, uint64_t ticks)
{
    perfetto *to = context;
    int status = tare__perfetto_at_stream(to, stream);
    if (status)
        return status;
    begin_named(to, INSTANT, UUID(OF_THREAD, stream), name, MARK);
    return tare__perfetto_put_event(to, ticks);
}

/* ---- counters, samples ----------------------------------------------------------------------------- */
static int put_value(perfetto *to, uint64_t track, uint64_t ticks, double value)
{
    tare__perfetto_begin_event(to, COUNTER, track);
    if (tare__perfetto_is_whole(value))
        tare__proto_number(&to->event, EVENT_COUNTER_VALUE, (uint64_t)(int64_t)value);
    else
        tare__proto_double(&to->event, EVENT_DOUBLE_COUNTER_VALUE, value);
    return tare__perfetto_put_event(to, ticks);
}

static int put_counter(void *context, uint32_t stream, uint32_t name, uint64_t ticks, double value)
{
    perfetto *to = context;
    if (!isfinite(value))
        return 0; /* nothing can be drawn */
    const int64_t key[2] = {tare__lanes_pid_of_stream(&to->lanes, stream), name};
    uint32_t known = tare__intern_count(to->counters);
    uint32_t at = tare__intern_add(to->counters, (const char *)key, sizeof key);
    int status = at == TARE__INTERN_NONE ? TARE_E_MEMORY : 0;
    if (!status)
        status = tare__perfetto_at_stream(to, stream);
    if (!status && at == known) {
        tare__text_clear(&to->scratch);
        tare__lanes_name(to->trace, name, &to->scratch);
        status = tare__perfetto_put_counter_track(
            to, UUID(OF_COUNTER, at), tare__perfetto_process_uuid(to, stream), &to->scratch, NULL);
    }
    return status ? status : put_value(to, UUID(OF_COUNTER, at), ticks, value);
}

static int put_machine(perfetto *to, uint64_t *parent)
{
    const tare__trace_run *run = tare__trace_run_of(to->trace);
    *parent = UUID(OF_MACHINE, 1);
    if (to->machine_told)
        return 0;
    to->machine_told = true;
    tare__text name = {0};
    tare__text_string(&name, run->host ? run->host : "machine");
    int status = tare__perfetto_put_named_track(to, *parent, 0, &name);
    tare__text_free(&name);
    return status;
}

/* Where a series is drawn; a process that was only looked at from outside gets its track here. */
static int find_parent(perfetto *to, const tare__trace_series *series, uint64_t *parent)
{
    int64_t pid = tare__gauge_pid(series);
    const tare__trace_process *process = pid ? tare__lanes_process_of_pid(&to->lanes, pid) : NULL;
    *parent = UUID(OF_PROCESS, process ? tare__lanes_pid(&to->lanes, process) : pid);
    if (!pid)
        return put_machine(to, parent);
    if (process || series->subject != TARE__SUBJECT_PROCESS)
        return 0;
    tare__text name = {0};
    tare__text_string(&name, series->label && series->label[0] ? series->label : "process");
    int status = tare__perfetto_put_process_track(to, *parent, pid, &name);
    tare__text_free(&name);
    return status;
}

static int tell_series(perfetto *to, const tare__trace_series *series)
{
    size_t before = to->series_room;
    if (!tare__array_fit(&to->series_told, &to->series_room, (size_t)series->id + 1, 1))
        return TARE_E_MEMORY;
    memset(to->series_told + before, 0, to->series_room - before);
    if (to->series_told[series->id])
        return 0;
    to->series_told[series->id] = 1;
    uint64_t parent;
    int status = find_parent(to, series, &parent);
    if (status)
        return status;
    tare__text_clear(&to->scratch);
    tare__gauge_name(series, &to->scratch);
    return tare__perfetto_put_counter_track(to, UUID(OF_SERIES, series->id), parent, &to->scratch,
                                            tare__gauge_unit(series));
}

static int put_samples(void *context, uint32_t id, const uint64_t *ticks, const int64_t *values, uint32_t n)
{
    perfetto *to = context;
    const tare__trace_series *series = tare__trace_series_at(to->trace, id);
    int status = series ? tell_series(to, series) : 0;
    for (uint32_t i = 0; series && i < n && !status; i++) {
        tare__gauge_point point;
        status = tare__gauge_draw(&to->gauges, to->trace, series, ticks[i], values[i], &point);
        if (status > 0)
            status = put_value(to, UUID(OF_SERIES, id), point.ticks, point.value);
    }
    return status;
}

/* ---- complete spans -------------------------------------------------------------------------------- */
static int put_complete(perfetto *to, uint64_t track, const tare__complete_span *span)
{
    begin_named(to, SLICE_BEGIN, track, span->name, COMPLETE);
    if (span->id)
        tare__perfetto_annotate_whole(to, "id", span->id);
    if (span->parent)
        tare__perfetto_annotate_whole(to, "parent", span->parent);
    if (span->flow)
        tare__proto_fixed64(&to->event, EVENT_FLOW_IDS, span->flow);
    int status = tare__perfetto_put_event(to, span->start);
    if (status)
        return status;
    tare__perfetto_begin_event(to, SLICE_END, track);
    return tare__perfetto_put_event(to, span->end > span->start ? span->end : span->start);
}

/* Spans for which no lane is left have a track each; viewers draw those of one name together. */
static int put_completes(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n)
{
    perfetto *to = context;
    int status = tare__perfetto_at_stream(to, stream);
    tare__lanes_sort(spans, n);
    for (uint32_t i = 0; i < n && !status; i++) {
        uint32_t lane;
        bool fresh;
        status = tare__lanes_place(&to->lanes, stream, &spans[i], &lane, &fresh);
        if (status)
            return status;
        uint64_t track = lane ? UUID(OF_LANE, lane) : UUID(OF_SPAN, ++to->lone_spans);
        if (fresh || !lane) {
            tare__text_clear(&to->scratch);
            tare__lanes_lane_name(&to->lanes, lane, stream, spans[i].track, &to->scratch);
            status = tare__perfetto_put_named_track(to, track, tare__perfetto_process_uuid(to, stream),
                                                    &to->scratch);
        }
        if (!status)
            status = put_complete(to, track, &spans[i]);
    }
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------------- */
static int put_all(perfetto *to)
{
    const tare__replay_visitor visitor = {.context = to,
                                          .begin = begin_span,
                                          .end = end_span,
                                          .mark = put_mark,
                                          .counter = put_counter,
                                          .number = take_number,
                                          .complete = put_completes,
                                          .samples = put_samples,
                                          .drop = free};
    int status = tare__trace_prescan(to->trace, to->error);
    if (status)
        return status;
    status = tare__lanes_open(&to->lanes, to->trace);
    if (status)
        return tare__fail(to->error, status, "out of memory");
    status = tare__perfetto_put_head(to);
    if (!status)
        status = tare__perfetto_put_people(to);
    if (!status)
        status = tare__trace_replay(to->trace, &visitor, to->error);
    return status ? status : tare__emit_flush(&to->text, to->sink, to->error);
}

static int emit_perfetto(const tare__emit_input *input, const tare__emit_options *options,
                         const tare__emit_sink *sink, tare__error *error)
{
    (void)options;
    perfetto to = {.trace = input->trace, .sink = sink, .error = error, .counters = tare__intern_new()};
    int status = to.counters ? put_all(&to) : tare__fail(error, TARE_E_MEMORY, "out of memory");
    tare__text *const texts[] = {&to.text,  &to.packet, &to.event,  &to.part,
                                 &to.inner, &to.names,  &to.scratch};
    for (size_t i = 0; i < TARE__COUNT_OF(texts); i++)
        tare__text_free(texts[i]);
    tare__lanes_close(&to.lanes);
    tare__gauges_free(&to.gauges);
    if (to.counters)
        tare__intern_free(to.counters);
    free(to.told);
    free(to.series_told);
    return status;
}

const tare__emitter tare__emit_perfetto = {
    .name = "perfetto",
    .description = "for ui.perfetto.dev and its trace processor: every span as native protocol buffers",
    .needs = TARE__EMIT_CURSOR,
    .emit = emit_perfetto,
};
