/* clock: converts ticks to nanoseconds since the start of the run, using the syncs the collector wrote.
 * Owned by the thread that opened the trace.
 * Must not know events. */
#include <stdlib.h>

#include "inner.h"
#include "tare.h"

#define SYNCS_A_BLOCK_MAX 65536u

/* Keeps memory bounded for any file: when the table is full, every other sync is dropped, and from then on only every
 * second, fourth, … is kept, so that they stay evenly spaced. In a long file the syncs are then minutes apart, over
 * which clock drift is still linear. */
static void thin_syncs(tare__trace *trace)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < trace->n_syncs; i += 2)
        trace->syncs[kept++] = trace->syncs[i];
    trace->n_syncs = kept;
    trace->sync_stride *= 2;
}

/* A sync that does not advance is a repeated or an invalid one and is ignored. The newest sync is always kept, at least
 * until the next one arrives. */
static void add_sync(tare__trace *trace, const tare__clock_sync *sync)
{
    if (trace->n_syncs) {
        const tare__clock_sync *last = &trace->syncs[trace->n_syncs - 1];
        if (sync->ticks <= last->ticks || sync->monotonic_ns <= last->monotonic_ns)
            return;
        if (!trace->last_sync_stays)
            trace->n_syncs--;
    }
    if (trace->n_syncs == TARE__SYNCS_MAX)
        thin_syncs(trace);
    trace->last_sync_stays = trace->syncs_seen++ % trace->sync_stride == 0;
    trace->syncs[trace->n_syncs++] = *sync;
}

int tare__trace_add_syncs(tare__trace *trace, const tare__trace_block *block)
{
    uint32_t n, room = block->header.count;
    if (room > block->header.payload_bytes || room > SYNCS_A_BLOCK_MAX)
        return TARE_E_INPUT;
    tare__clock_sync *syncs = malloc((room + 1) * sizeof *syncs);
    if (!syncs)
        return TARE_E_MEMORY;
    int status = tare__clock_read(&block->header, block->payload, syncs, room, &n);
    for (uint32_t i = 0; !status && i < n; i++)
        add_sync(trace, &syncs[i]);
    free(syncs);
    return status;
}

static double slope(uint64_t ticks0, uint64_t ns0, uint64_t ticks1, uint64_t ns1)
{
    if (ticks1 <= ticks0 || ns1 <= ns0)
        return 0;
    return (double)(ns1 - ns0) / (double)(ticks1 - ticks0);
}

/* Fallback for fewer than two syncs: the wall clock at start and end. */
static double slope_of_realtime(const tare__trace *trace)
{
    uint64_t ticks0 = trace->run.start_ticks, ns0 = trace->run.start_realtime_ns;
    if (ticks0 && ns0 && trace->end.ticks && trace->end.realtime_ns)
        return slope(ticks0, ns0, trace->end.ticks, trace->end.realtime_ns);
    if (ticks0 && ns0 && trace->n_syncs)
        return slope(ticks0, ns0, trace->syncs[0].ticks, trace->syncs[0].realtime_ns);
    return 0;
}

/* 0 if not recorded in the file. */
static double known_slope(const tare__trace *trace)
{
    if (trace->run.clock == TARE__CLOCK_MONOTONIC)
        return 1;
    if (trace->n_syncs < 2)
        return slope_of_realtime(trace);
    const tare__clock_sync *first = trace->syncs, *last = &trace->syncs[trace->n_syncs - 1];
    return slope(first->ticks, first->monotonic_ns, last->ticks, last->monotonic_ns);
}

bool tare__trace_clock_known(const tare__trace *trace)
{
    return known_slope(trace) > 0;
}

double tare__trace_tick_ns(const tare__trace *trace)
{
    double known = known_slope(trace);
    return known > 0 ? known : 1;
}

static double distance(uint64_t from, uint64_t to)
{
    return to >= from ? (double)(to - from) : -(double)(from - to);
}

/* The last sync at or before `ticks`; there are two or more. */
static uint32_t sync_before(const tare__trace *trace, uint64_t ticks)
{
    uint32_t low = 0, high = trace->n_syncs;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (trace->syncs[middle].ticks <= ticks)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Nanoseconds since the first sync. Outside of the range of the syncs the average rate is used. */
static double since_first_sync(const tare__trace *trace, uint64_t ticks)
{
    const tare__clock_sync *first = trace->syncs;
    uint32_t at = sync_before(trace, ticks);
    const tare__clock_sync *sync = &trace->syncs[at];
    double rate;
    if (at + 1 == trace->n_syncs || ticks < first->ticks)
        rate = tare__trace_tick_ns(trace);
    else
        rate = slope(sync->ticks, sync->monotonic_ns, sync[1].ticks, sync[1].monotonic_ns);
    return (double)(sync->monotonic_ns - first->monotonic_ns) + distance(sync->ticks, ticks) * rate;
}

/* If the start of the run is missing, the earliest known time is used instead. */
static uint64_t start_ticks(const tare__trace *trace)
{
    if (trace->run.start_ticks)
        return trace->run.start_ticks;
    if (trace->n_syncs)
        return trace->syncs[0].ticks;
    return trace->first_ticks == UINT64_MAX ? 0 : trace->first_ticks;
}

double tare__trace_ns(const tare__trace *trace, uint64_t ticks)
{
    uint64_t start = start_ticks(trace);
    if (trace->run.clock == TARE__CLOCK_MONOTONIC || trace->n_syncs < 2)
        return distance(start, ticks) * tare__trace_tick_ns(trace);
    return since_first_sync(trace, ticks) - since_first_sync(trace, start);
}
