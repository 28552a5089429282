/* chrome_complete: complete spans on separate lanes, and the arrows of their flows.
 * Owned by the calling thread.
 * Must not know how lanes are found. */
#include "chrome.h"

#include <inttypes.h>

#include "tare.h"

#define FLOWS_MAX (1u << 18) /* flows with arrows */

int tare__chrome_note_flows(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n)
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

int tare__chrome_put_complete(void *context, const tare__export_span *span)
{
    chrome *to = context;
    to->async += !span->place.lane;
    int status = span->place.lane ? put_on_lane(to, span) : put_async(to, "b", span);
    if (!status && !span->place.lane)
        status = put_async(to, "e", span);
    return status || !span->complete->flow ? status : put_flow(to, span);
}
