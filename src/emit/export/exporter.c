/* exporter: shared by formats that show every event of a trace: first processes and threads, then the events in order.
 * Owned by the calling thread.
 * Must not know the formats. */
#include "exporter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ATTACHED_MAX 64u /* different names on one span */
#define ORDER_LAST   INT32_MAX /* of rows that the file does not describe */

const char *tare__export_category(uint32_t category)
{
    static const char *const words[] = {[TARE_KIND_MARK] = "mark",
                                        [TARE_KIND_COUNTER] = "counter",
                                        [TARE__EXPORT_RESTORED] = "restored",
                                        [TARE__EXPORT_COMPLETE] = "complete",
                                        [TARE__EXPORT_SAMPLE] = "sample"};
    if (category < TARE__COUNT_OF(words) && words[category])
        return words[category];
    bool span = category == TARE_KIND_SPAN || strcmp(tare__span_kind_word(category), "span") != 0;
    return span ? tare__span_kind_word(category) : NULL;
}

int64_t tare__export_ns(const tare__exporter *out, uint64_t ticks)
{
    return (int64_t)llround(tare__trace_ns(out->trace, ticks));
}

/* ---- processes and threads ----------------------------------------------------------------------------- */
static int put_process(tare__exporter *out, int64_t pid, int64_t order)
{
    out->text.failed |= out->name.failed;
    return out->format->process(out->to, pid, &out->name, order);
}

static int put_thread(tare__exporter *out, const tare__export_place *place, int64_t order)
{
    out->text.failed |= out->name.failed;
    return out->format->thread(out->to, place, &out->name, order);
}

static tare__export_place place_of(const tare__exporter *out, uint32_t stream)
{
    return (tare__export_place){tare__lanes_pid_of_stream(&out->lanes, stream),
                                tare__lanes_tid(&out->lanes, stream), stream, 0};
}

static int put_processes(tare__exporter *out)
{
    size_t n;
    const tare__trace_process *rows = tare__trace_processes(out->trace, &n);
    int status = 0;
    for (size_t i = 0; i < n && !status; i++) {
        tare__text_clear(&out->name);
        tare__lanes_process_name(&out->lanes, &rows[i], &out->name);
        status = put_process(out, tare__lanes_pid(&out->lanes, &rows[i]), (int64_t)i);
    }
    return status;
}

static int put_threads(tare__exporter *out)
{
    size_t n = tare__trace_stream_count(out->trace);
    int status = 0;
    for (size_t i = 0; i < n && !status; i++) {
        tare__export_place place = place_of(out, tare__trace_stream_row(out->trace, i)->id);
        tare__text_clear(&out->name);
        tare__lanes_thread_name(&out->lanes, place.stream, &out->name);
        status = put_thread(out, &place, (int64_t)i);
    }
    return status;
}

/* Processes that were only sampled, and the machine. */
static int put_sampled(tare__exporter *out)
{
    const tare__trace_run *run = tare__trace_run_of(out->trace);
    size_t n;
    const tare__trace_series *rows = tare__trace_series_rows(out->trace, &n);
    bool machine = false;
    int status = 0;
    for (size_t i = 0; i < n && !status; i++) {
        int64_t pid = tare__gauge_pid(&rows[i]);
        bool first = !pid && !machine;
        machine |= !pid;
        tare__text_clear(&out->name);
        if (rows[i].subject == TARE__SUBJECT_PROCESS && !tare__lanes_process_of_pid(&out->lanes, pid)) {
            tare__text_string(&out->name, rows[i].label && rows[i].label[0] ? rows[i].label : "process");
            status = put_process(out, pid, ORDER_LAST);
        } else if (first) {
            tare__text_string(&out->name, run->host && run->host[0] ? run->host : "machine");
            status = put_process(out, TARE__LANES_MACHINE, -1);
        }
    }
    return status;
}

static int put_stray(tare__exporter *out)
{
    tare__text_clear(&out->name);
    tare__lanes_process_name(&out->lanes, NULL, &out->name);
    int status = put_process(out, out->here.pid, ORDER_LAST);
    tare__text_clear(&out->name);
    tare__lanes_thread_name(&out->lanes, out->here.stream, &out->name);
    return status ? status : put_thread(out, &out->here, ORDER_LAST);
}

/* Called before an event of a stream. */
static int go_to(tare__exporter *out, uint32_t stream)
{
    if (out->is_here && out->here.stream == stream)
        return 0;
    out->here = place_of(out, stream);
    out->is_here = true;
    return tare__lanes_is_stray(&out->lanes, stream) ? put_stray(out) : 0;
}

/* ---- numbers of a span that is still open ------------------------------------------------------------- */
static tare__attached *make_room(tare__attached *list)
{
    uint32_t room = list ? list->room * 2 : 2;
    tare__attached *grown = realloc(list, sizeof *grown + room * sizeof grown->numbers[0]);
    if (grown && !list)
        *grown = (tare__attached){.n = 0};
    if (grown)
        grown->room = room;
    return grown;
}

/* Two call sites may have created separate ids for one name. */
static bool same_name(const tare__trace *trace, uint32_t left, uint32_t right)
{
    if (left == right)
        return true;
    const tare__trace_name *a = tare__trace_name_at(trace, left), *b = tare__trace_name_at(trace, right);
    return a && b && a->text && b->text && strcmp(a->text, b->text) == 0;
}

/* Adds to the list at *own, which is created if necessary. 0 or TARE_E_MEMORY. */
static int attach(const tare__trace *trace, void **own, uint32_t name, double value)
{
    tare__attached *list = *own;
    for (uint32_t i = 0; list && i < list->n; i++) {
        if (same_name(trace, list->numbers[i].name, name)) {
            list->numbers[i].sum += value;
            return 0;
        }
    }
    if (list && list->n == ATTACHED_MAX) {
        list->left_out++;
        return 0;
    }
    if (!list || list->n == list->room) {
        list = make_room(list);
        if (!list)
            return TARE_E_MEMORY;
        *own = list;
    }
    list->numbers[list->n++] = (struct tare__attached_number){value, name};
    return 0;
}

/* ---- nested spans -------------------------------------------------------------------------------------- */
static uint32_t kind_of(const tare__exporter *out, uint32_t id)
{
    const tare__trace_name *name = tare__trace_name_at(out->trace, id);
    uint32_t kind = name ? name->kind : TARE_KIND_SPAN;
    return strcmp(tare__span_kind_word(kind), "span") == 0 ? TARE_KIND_SPAN : kind;
}

static void find_index(const tare__exporter *out, tare__export_span *span)
{
    if ((span->category != TARE_KIND_STEP && span->category != TARE_KIND_EPOCH) || !span->numbers)
        return;
    for (uint32_t i = 0; i < span->numbers->n && !span->has_index; i++) {
        const tare__trace_name *name = tare__trace_name_at(out->trace, span->numbers->numbers[i].name);
        double value = span->numbers->numbers[i].sum;
        if (!name || !name->text || strcmp(name->text, "index") != 0 || !(value >= 0 && value < 0x1p63))
            continue;
        span->has_index = true;
        span->index = (uint64_t)value;
    }
}

typedef struct open_span {
    tare__replay_span span; /* its bits: RESTORED */
    void *numbers;          /* tare__attached; NULL: none */
    uint32_t own[2];        /* for the format */
} open_span;

#define RESTORED 1u

static tare__export_span nested(const tare__exporter *out, tare__replay_span *span, uint64_t end)
{
    open_span *open = (open_span *)span;
    return (tare__export_span){
        .place = out->here,
        .begin = span->begin,
        .end = end,
        .name = span->name,
        .category = span->bits & RESTORED ? TARE__EXPORT_RESTORED : kind_of(out, span->name),
        .own = open->own,
        .around = open[-1].own,
    };
}

static int begin_span(void *context, tare__replay_stream *stream, tare__replay_span *span, tare__replay_begin how)
{
    tare__exporter *out = context;
    int status = go_to(out, stream->id);
    span->bits = how == TARE__REPLAY_RESTORED ? RESTORED : 0;
    if (status || !out->format->begin)
        return status;
    tare__export_span made = nested(out, span, span->begin);
    return out->format->begin(out->to, &made);
}

static void drop_span(void *context, tare__replay_span *span)
{
    open_span *open = (open_span *)span;
    (void)context;
    free(open->numbers);
    open->numbers = NULL;
}

static int end_span(void *context, tare__replay_stream *stream, tare__replay_span *span, uint64_t ticks,
                    tare__replay_how how)
{
    tare__exporter *out = context;
    int status = go_to(out, stream->id);
    tare__export_span made = nested(out, span, ticks);
    made.how = tare__lanes_how_ended(how);
    made.numbers = ((open_span *)span)->numbers;
    find_index(out, &made);
    *(span->bits & RESTORED ? &out->restored : &out->spans) += 1;
    if (!status)
        status = out->format->end(out->to, &made);
    drop_span(context, span);
    return status;
}

static int take_number(void *context, tare__replay_stream *stream, tare__replay_span *innermost, uint32_t name,
                       uint64_t ticks, double value)
{
    const tare__exporter *out = context;
    (void)stream;
    (void)ticks;
    return innermost ? attach(out->trace, &((open_span *)innermost)->numbers, name, value) : 0;
}

/* ---- complete spans: on lanes, so that no two overlap ---------------------------------------------------- */
static int place_complete(tare__exporter *out, const tare__complete_span *span, tare__export_place *place)
{
    bool fresh;
    *place = out->here;
    int status = tare__lanes_place(&out->lanes, place->stream, span, &place->lane, &fresh);
    if (status || !place->lane)
        return status;
    place->tid = tare__lanes_lane_tid(place->lane);
    if (!fresh)
        return 0;
    tare__text_clear(&out->name);
    tare__lanes_lane_name(&out->lanes, place->lane, place->stream, span->track, &out->name);
    return put_thread(out, place, place->tid);
}

static int put_completes(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n)
{
    tare__exporter *out = context;
    int status = go_to(out, stream);
    tare__lanes_sort(spans, n);
    for (uint32_t i = 0; i < n && !status; i++) {
        uint32_t kind = kind_of(out, spans[i].name);
        tare__export_span made = {
            .begin = spans[i].start,
            .end = spans[i].end > spans[i].start ? spans[i].end : spans[i].start,
            .name = spans[i].name,
            .category = kind == TARE_KIND_SPAN ? (uint32_t)TARE__EXPORT_COMPLETE : kind,
            .complete = &spans[i],
        };
        status = place_complete(out, &spans[i], &made.place);
        out->spans++;
        if (!status)
            status = out->format->complete(out->to, &made);
    }
    return status;
}

/* ---- marks, counters, samples -------------------------------------------------------------------------- */
static int put_mark(void *context, tare__replay_stream *stream, uint32_t name, uint64_t ticks)
{
    tare__exporter *out = context;
    int status = go_to(out, stream->id);
    return status ? status : out->format->mark(out->to, &out->here, name, ticks);
}

static int put_counter(void *context, tare__replay_stream *stream, uint32_t name, uint64_t ticks, double value)
{
    tare__exporter *out = context;
    if (!isfinite(value)) { /* cannot be drawn */
        out->values_left_out++;
        return 0;
    }
    int status = go_to(out, stream->id);
    return status ? status : out->format->counter(out->to, &out->here, name, ticks, value);
}

static int64_t pid_of_series(const tare__exporter *out, const tare__trace_series *series)
{
    int64_t pid = tare__gauge_pid(series);
    const tare__trace_process *process = pid ? tare__lanes_process_of_pid(&out->lanes, pid) : NULL;
    return process ? tare__lanes_pid(&out->lanes, process) : pid ? pid : TARE__LANES_MACHINE;
}

static int put_samples(void *context, uint32_t id, const uint64_t *ticks, const int64_t *values, uint32_t n)
{
    tare__exporter *out = context;
    const tare__trace_series *series = tare__trace_series_at(out->trace, id);
    if (!series) {
        out->values_left_out += n;
        return 0;
    }
    int64_t pid = pid_of_series(out, series);
    tare__text_clear(&out->name);
    tare__gauge_name(series, &out->name);
    out->text.failed |= out->name.failed;
    int status = 0;
    for (uint32_t i = 0; i < n && status >= 0; i++) {
        tare__gauge_point point;
        status = tare__gauge_draw(&out->gauges, out->trace, series, ticks[i], values[i], &point);
        if (status > 0)
            status = out->format->sample(out->to, pid, series, &out->name, &point);
    }
    return status;
}

/* ---- the output ---------------------------------------------------------------------------------------- */
static int look_ahead(const tare__exporter *out)
{
    const tare__replay_visitor ahead = {.context = out->to, .complete = out->format->look_ahead};
    return ahead.complete ? tare__trace_replay(out->trace, &ahead, out->error)
                          : tare__trace_prescan(out->trace, out->error);
}

static int put_events(tare__exporter *out)
{
    const tare__export_format *format = out->format;
    const tare__replay_visitor visitor = {.context = out,
                                          .span_bytes = sizeof(open_span),
                                          .begin = begin_span,
                                          .end = end_span,
                                          .mark = format->mark ? put_mark : NULL,
                                          .counter = format->counter ? put_counter : NULL,
                                          .number = take_number,
                                          .complete = format->complete ? put_completes : NULL,
                                          .samples = format->sample ? put_samples : NULL,
                                          .drop = drop_span};
    return tare__trace_replay(out->trace, &visitor, out->error);
}

static int put_all(tare__exporter *out)
{
    int status = look_ahead(out);
    if (status)
        return status;
    if (tare__lanes_open(&out->lanes, out->trace))
        return tare__no_memory(out->error);
    if (out->format->head)
        status = out->format->head(out->to);
    if (!status)
        status = put_processes(out);
    if (!status)
        status = put_threads(out);
    if (!status && out->format->sample)
        status = put_sampled(out);
    if (!status)
        status = put_events(out);
    if (!status && out->format->tail)
        status = out->format->tail(out->to);
    return status ? status : tare__emit_flush(&out->text, out->sink, out->error);
}

int tare__export(tare__exporter *out, const tare__export_format *format, void *to, tare__trace *trace,
                 const tare__emit_sink *sink, tare__error *error)
{
    *out = (tare__exporter){.trace = trace, .sink = sink, .error = error, .format = format, .to = to};
    int status = put_all(out);
    tare__lanes_close(&out->lanes);
    tare__gauges_free(&out->gauges);
    tare__text_free(&out->name);
    tare__text_free(&out->scratch);
    tare__text_free(&out->text);
    return status;
}
