/* kineto_ids: numbers operators as Kineto does, and finds which operator started what on a GPU.
 * Owned by the calling thread; memory grows with threads, open spans and flows.
 * Must not know the format. */
#include "kineto.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tare.h"

#define FLOWS_MAX (1u << 20) /* flows that are connected */

/* ---- numbers of operators -------------------------------------------------------------------------------- */
bool tare__kineto_is_operator(uint32_t kind)
{
    return kind == TARE_KIND_OPERATOR || kind == TARE_KIND_PHASE;
}

void tare__kineto_ids_begin(tare__kineto_ids *ids, uint32_t kind, const uint32_t *around, uint32_t *own)
{
    memcpy(own, around, TARE__KINETO_NUMBERS * sizeof *own);
    if (tare__kineto_is_operator(kind))
        own[TARE__KINETO_OPERATOR] = ++ids->last[TARE__KINETO_OPERATOR];
    if (kind == TARE_KIND_MODULE)
        own[TARE__KINETO_MODULE] = ++ids->last[TARE__KINETO_MODULE];
}

void tare__kineto_ids_rewind(tare__kineto_ids *ids)
{
    memset(ids->last, 0, sizeof ids->last);
}

void tare__kineto_ids_free(tare__kineto_ids *ids)
{
    if (ids->flows)
        tare__intern_free(ids->flows);
    free(ids->of_flow);
    free(ids->with_events);
}

/* ---- contents of the trace --------------------------------------------------------------------------------- */
typedef struct reading {
    tare__kineto_ids *ids;
    tare__trace *trace;
} reading;

static int note_process(reading *read, uint32_t stream)
{
    tare__kineto_ids *ids = read->ids;
    const tare__trace_stream *row = tare__trace_stream_at(read->trace, stream);
    size_t before = ids->processes_room, number = row ? row->process : 0;
    if (!tare__array_fit(&ids->with_events, &ids->processes_room, number + 1, sizeof *ids->with_events))
        return TARE_E_MEMORY;
    memset(ids->with_events + before, 0, (ids->processes_room - before) * sizeof *ids->with_events);
    ids->with_events[number] = true;
    return 0;
}

typedef struct open_span {
    tare__replay_span span;
    uint32_t own[TARE__KINETO_NUMBERS];
} open_span;

static int begin_span(void *context, tare__replay_stream *stream, tare__replay_span *span, tare__replay_begin how)
{
    reading *read = context;
    open_span *open = (open_span *)span;
    const tare__trace_name *name = tare__trace_name_at(read->trace, span->name);
    uint32_t kind = name && how != TARE__REPLAY_RESTORED ? name->kind : TARE_KIND_SPAN;
    tare__kineto_ids_begin(read->ids, kind, open[-1].own, open->own);
    return note_process(read, stream->id);
}

static int take_number(void *context, tare__replay_stream *stream, tare__replay_span *innermost, uint32_t name,
                       uint64_t ticks, double value)
{
    reading *read = context;
    tare__kineto_ids *ids = read->ids;
    (void)stream;
    (void)ticks;
    if (!innermost || name != ids->flow_name || !(value > 0 && value < 0x1p53) ||
        tare__intern_count(ids->flows) >= FLOWS_MAX)
        return 0;
    uint64_t flow = (uint64_t)value;
    uint32_t at = tare__intern_add(ids->flows, (const char *)&flow, sizeof flow);
    if (at == TARE__INTERN_NONE ||
        !tare__array_fit(&ids->of_flow, &ids->flows_room, (size_t)at + 1, sizeof *ids->of_flow))
        return TARE_E_MEMORY;
    ids->of_flow[at] = ((open_span *)innermost)->own[TARE__KINETO_OPERATOR];
    return 0;
}

static int take_complete(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n)
{
    (void)spans;
    return n ? note_process(context, stream) : 0;
}

static uint32_t find_flow_name(const tare__trace *trace)
{
    size_t n;
    const tare__trace_name *names = tare__trace_names(trace, &n);
    for (size_t i = 0; i < n; i++)
        if (names[i].kind == TARE_KIND_NUMBER && names[i].text && strcmp(names[i].text, TARE__NAME_FLOW) == 0)
            return names[i].id;
    return 0;
}

int tare__kineto_ids_read(tare__kineto_ids *ids, tare__trace *trace, tare__error *error)
{
    reading read = {ids, trace};
    const tare__replay_visitor visitor = {.context = &read,
                                          .span_bytes = sizeof(open_span),
                                          .begin = begin_span,
                                          .number = take_number,
                                          .complete = take_complete};
    *ids = (tare__kineto_ids){.flows = tare__intern_new()};
    int status = ids->flows ? tare__trace_prescan(trace, error) : TARE_E_MEMORY;
    if (!status) {
        ids->flow_name = find_flow_name(trace);
        status = tare__trace_replay(trace, &visitor, error);
    }
    if (status == TARE_E_MEMORY)
        tare__fail(error, status, "out of memory");
    return status;
}

uint32_t tare__kineto_id_of_flow(const tare__kineto_ids *ids, uint64_t flow)
{
    uint32_t at = tare__intern_find(ids->flows, (const char *)&flow, sizeof flow);
    return at == TARE__INTERN_NONE ? 0 : ids->of_flow[at];
}

/* ---- tracks -------------------------------------------------------------------------------------------------- */
static const char *read_number(const char *at, int64_t *value)
{
    while (*at && !isdigit((unsigned char)*at))
        at++;
    char *end;
    *value = *at ? (int64_t)strtoll(at, &end, 10) : 0;
    return *at ? end : at;
}

bool tare__gpu_track(const tare__trace *trace, uint32_t track, int64_t *device, int64_t *stream)
{
    const tare__trace_name *name = track ? tare__trace_name_at(trace, track) : NULL;
    if (!name || name->kind != TARE__NAME_TRACK + TARE_TRACK_GPU || !name->text)
        return false;
    const char *rest = read_number(name->text, device);
    read_number(rest, stream);
    return true;
}
