/* perfetto: the native protocol buffers of Perfetto, packet by packet. docs/EXPORT.md.
 * Owned by the calling thread; memory grows with threads, names and open spans, not with the file.
 * Must not know what is computed from the events. */
#include "perfetto.h"

#include <stdlib.h>
#include <string.h>

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

static void begin_named(perfetto *to, unsigned type, uint64_t track, uint32_t name, uint32_t category)
{
    tare__perfetto_begin_event(to, type, track);
    tare__proto_number(&to->event, EVENT_CATEGORY_IIDS, category);
    tare__perfetto_put_name(to, &to->event, name, TOLD_EVENT);
}

static int begin_span(void *context, const tare__export_span *span)
{
    perfetto *to = context;
    begin_named(to, SLICE_BEGIN, UUID(OF_THREAD, span->place.stream), span->name, span->category);
    return tare__perfetto_put_event(to, span->begin);
}

static int end_span(void *context, const tare__export_span *span)
{
    perfetto *to = context;
    tare__perfetto_begin_event(to, SLICE_END, UUID(OF_THREAD, span->place.stream));
    if (span->how)
        tare__perfetto_annotate_text(to, "(end)", span->how);
    if (span->numbers)
        annotate_numbers(to, span->numbers);
    return tare__perfetto_put_event(to, span->end);
}

static int put_mark(void *context, const tare__export_place *place, uint32_t name, uint64_t ticks)
{
    perfetto *to = context;
    begin_named(to, INSTANT, UUID(OF_THREAD, place->stream), name, TARE_KIND_MARK);
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

static int put_counter(void *context, const tare__export_place *place, uint32_t name, uint64_t ticks,
                       double value)
{
    perfetto *to = context;
    const int64_t key[2] = {place->pid, name};
    uint32_t known = tare__intern_count(to->counters);
    uint32_t at = tare__intern_add(to->counters, (const char *)key, sizeof key);
    int status = at == TARE__INTERN_NONE ? TARE_E_MEMORY : 0;
    if (!status && at == known) {
        tare__text_clear(&to->out.scratch);
        tare__lanes_name(to->out.trace, name, &to->out.scratch);
        status = tare__perfetto_put_counter_track(to, UUID(OF_COUNTER, at), UUID(OF_PROCESS, place->pid),
                                                  &to->out.scratch, NULL);
    }
    return status ? status : put_value(to, UUID(OF_COUNTER, at), ticks, value);
}

static int tell_series(perfetto *to, int64_t pid, const tare__trace_series *series, const tare__text *name)
{
    size_t before = to->series_room;
    if (!tare__array_fit(&to->series_told, &to->series_room, (size_t)series->id + 1, 1))
        return TARE_E_MEMORY;
    memset(to->series_told + before, 0, to->series_room - before);
    if (to->series_told[series->id])
        return 0;
    to->series_told[series->id] = 1;
    return tare__perfetto_put_counter_track(to, UUID(OF_SERIES, series->id), UUID(OF_PROCESS, pid), name,
                                            tare__gauge_unit(series));
}

static int put_sample(void *context, int64_t pid, const tare__trace_series *series, const tare__text *name,
                      const tare__gauge_point *point)
{
    perfetto *to = context;
    int status = tell_series(to, pid, series, name);
    return status ? status : put_value(to, UUID(OF_SERIES, series->id), point->ticks, point->value);
}

/* ---- complete spans -------------------------------------------------------------------------------- */
/* Spans without a free lane get a track each; viewers merge tracks of the same name. */
static int put_lone_track(perfetto *to, const tare__export_span *span, uint64_t track)
{
    tare__text_clear(&to->out.scratch);
    tare__lanes_lane_name(&to->out.lanes, 0, span->place.stream, span->complete->track, &to->out.scratch);
    return tare__perfetto_put_named_track(to, track, UUID(OF_PROCESS, span->place.pid), &to->out.scratch);
}

static int put_complete(void *context, const tare__export_span *span)
{
    perfetto *to = context;
    const tare__complete_span *complete = span->complete;
    uint64_t track = span->place.lane ? UUID(OF_LANE, span->place.lane) : UUID(OF_SPAN, ++to->lone_spans);
    int status = span->place.lane ? 0 : put_lone_track(to, span, track);
    if (status)
        return status;
    begin_named(to, SLICE_BEGIN, track, span->name, span->category);
    if (complete->id)
        tare__perfetto_annotate_whole(to, "id", complete->id);
    if (complete->parent)
        tare__perfetto_annotate_whole(to, "parent", complete->parent);
    if (complete->flow)
        tare__proto_fixed64(&to->event, EVENT_FLOW_IDS, complete->flow);
    status = tare__perfetto_put_event(to, span->begin);
    if (status)
        return status;
    tare__perfetto_begin_event(to, SLICE_END, track);
    return tare__perfetto_put_event(to, span->end);
}

/* ---- the output ------------------------------------------------------------------------------------ */
static const tare__export_format format = {
    .head = tare__perfetto_put_head,
    .process = tare__perfetto_put_process,
    .thread = tare__perfetto_put_thread,
    .begin = begin_span,
    .end = end_span,
    .complete = put_complete,
    .mark = put_mark,
    .counter = put_counter,
    .sample = put_sample,
};

static int emit_perfetto(const tare__emit_input *input, const tare__emit_options *options,
                         const tare__emit_sink *sink, tare__error *error)
{
    (void)options;
    perfetto to = {.counters = tare__intern_new()};
    int status = to.counters ? tare__export(&to.out, &format, &to, input->trace, sink, error)
                             : tare__fail(error, TARE_E_MEMORY, "out of memory");
    tare__text *const texts[] = {&to.packet, &to.event, &to.part, &to.inner, &to.names};
    for (size_t i = 0; i < TARE__COUNT_OF(texts); i++)
        tare__text_free(texts[i]);
    if (to.counters)
        tare__intern_free(to.counters);
    free(to.told);
    free(to.series_told);
    return status;
}

const tare__emitter tare__emit_perfetto = {
    .name = "perfetto",
    .needs = TARE__EMIT_CURSOR,
    .emit = emit_perfetto,
};
