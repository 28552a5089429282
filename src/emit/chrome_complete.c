/* chrome_complete: complete spans on lanes of their own, and the arrows of their flows.
 * Owned by the calling thread.
 * Must not know how lanes are found. */
#include "chrome.h"

#include <inttypes.h>

#include "tare.h"

#define FLOWS_MAX (1u << 18) /* so many have arrows */

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
    tare__chrome_begin_event(to, phase);
    PUT(to, ",\"cat\":\"flow\",\"name\":\"flow\",\"id\":");
    tare__text_format(&to->text, "\"0x%" PRIx64 "\",\"ts\":", span->flow);
    tare__chrome_put_us(to, tare__chrome_ns_of(to, span->start));
    tare__chrome_put_place(to, to->pid, tare__lanes_lane_tid(lane));
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
        /* As text: readers that take numbers as doubles would change it. */
        tare__text_format(&to->text, "%s\"%s\":\"%" PRIu64 "\"", any ? "," : ",\"args\":{", ids[i].key,
                          ids[i].value);
        any = true;
    }
    if (any)
        PUT(to, "}");
}

static int put_async_end(chrome *to, const tare__complete_span *span, int64_t end_ns)
{
    tare__chrome_begin_named(to, "e", "complete", span->name, end_ns);
    tare__chrome_put_place(to, to->pid, to->tid);
    tare__text_format(&to->text, ",\"id\":\"0x%" PRIx64 "\"", to->async);
    return tare__chrome_end_event(to);
}

static int put_complete(chrome *to, const tare__complete_span *span, uint32_t lane)
{
    uint64_t end = span->end > span->start ? span->end : span->start;
    int64_t begin_ns = tare__chrome_ns_of(to, span->start), end_ns = tare__chrome_ns_of(to, end);
    to->spans++;
    tare__chrome_begin_named(to, lane ? "X" : "b", "complete", span->name, begin_ns);
    if (lane) {
        PUT(to, ",\"dur\":");
        tare__chrome_put_us(to, end_ns > begin_ns ? end_ns - begin_ns : 0);
    } else {
        tare__text_format(&to->text, ",\"id\":\"0x%" PRIx64 "\"", ++to->async);
    }
    tare__chrome_put_place(to, to->pid, lane ? tare__lanes_lane_tid(lane) : to->tid);
    put_ids(to, span);
    int status = tare__chrome_end_event(to);
    if (!status && !lane)
        status = put_async_end(to, span, end_ns > begin_ns ? end_ns : begin_ns);
    return status || !span->flow ? status : put_flow(to, span, lane);
}

static int put_lane(chrome *to, uint32_t lane, uint32_t stream, uint32_t track)
{
    int64_t pid = tare__lanes_pid_of_stream(&to->lanes, stream), tid = tare__lanes_lane_tid(lane);
    tare__text_clear(&to->scratch);
    tare__lanes_lane_name(&to->lanes, lane, stream, track, &to->scratch);
    int status = tare__chrome_put_about(to, "thread_name", pid, tid, &to->scratch, 0);
    return status ? status : tare__chrome_put_about(to, "thread_sort_index", pid, tid, NULL, tid);
}

int tare__chrome_put_completes(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n)
{
    chrome *to = context;
    int status = tare__chrome_at_stream(to, stream);
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
