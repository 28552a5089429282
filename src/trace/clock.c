/* clock: ticks to nanoseconds since the start of the run, by the beats the collector wrote.
 * Owned by the thread that opened the trace.
 * Must not know events. */
#include <stdlib.h>

#include "inner.h"
#include "tare.h"

#define BEATS_A_BLOCK_MAX 65536u

/* Any file keeps to the same memory: when the room is full every other beat goes, and from then on only every
 * second, fourth, … is kept, so that they stay evenly apart. A long file has its beats minutes apart, where
 * the clocks' drift is still a straight line. */
static void thin_beats(tare__trace *trace)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < trace->n_beats; i += 2)
        trace->beats[kept++] = trace->beats[i];
    trace->n_beats = kept;
    trace->beat_stride *= 2;
}

/* Beats that do not go forward are old ones told again, or nonsense. The newest is always there, if only
 * until the next one comes. */
static void add_beat(tare__trace *trace, const tare__clock_beat *beat)
{
    if (trace->n_beats) {
        const tare__clock_beat *last = &trace->beats[trace->n_beats - 1];
        if (beat->ticks <= last->ticks || beat->monotonic_ns <= last->monotonic_ns)
            return;
        if (!trace->last_beat_stays)
            trace->n_beats--;
    }
    if (trace->n_beats == TARE__BEATS_MAX)
        thin_beats(trace);
    trace->last_beat_stays = trace->beats_seen++ % trace->beat_stride == 0;
    trace->beats[trace->n_beats++] = *beat;
}

int tare__trace_add_beats(tare__trace *trace, const tare__trace_block *block)
{
    uint32_t n, room = block->header.count;
    if (room > block->header.payload_bytes || room > BEATS_A_BLOCK_MAX)
        return TARE_E_INPUT;
    tare__clock_beat *beats = malloc((room + 1) * sizeof *beats);
    if (!beats)
        return TARE_E_MEMORY;
    int status = tare__clock_read(&block->header, block->payload, beats, room, &n);
    for (uint32_t i = 0; !status && i < n; i++)
        add_beat(trace, &beats[i]);
    free(beats);
    return status;
}

static double slope(uint64_t ticks0, uint64_t ns0, uint64_t ticks1, uint64_t ns1)
{
    if (ticks1 <= ticks0 || ns1 <= ns0)
        return 0;
    return (double)(ns1 - ns0) / (double)(ticks1 - ticks0);
}

/* With fewer than two beats the wall clock of start and end must do. */
static double slope_of_realtime(const tare__trace *trace)
{
    uint64_t ticks0 = trace->run.start_ticks, ns0 = trace->run.start_realtime_ns;
    if (ticks0 && ns0 && trace->end.ticks && trace->end.realtime_ns)
        return slope(ticks0, ns0, trace->end.ticks, trace->end.realtime_ns);
    if (ticks0 && ns0 && trace->n_beats)
        return slope(ticks0, ns0, trace->beats[0].ticks, trace->beats[0].realtime_ns);
    return 0;
}

/* 0 when the file does not tell. */
static double known_slope(const tare__trace *trace)
{
    if (trace->run.clock == TARE__CLOCK_MONOTONIC)
        return 1;
    if (trace->n_beats < 2)
        return slope_of_realtime(trace);
    const tare__clock_beat *first = trace->beats, *last = &trace->beats[trace->n_beats - 1];
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

/* The last beat at or before `ticks`; there are two or more. */
static uint32_t beat_before(const tare__trace *trace, uint64_t ticks)
{
    uint32_t low = 0, high = trace->n_beats;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (trace->beats[middle].ticks <= ticks)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Nanoseconds since the first beat; outside of the beats by the average rate. */
static double since_first_beat(const tare__trace *trace, uint64_t ticks)
{
    const tare__clock_beat *first = trace->beats;
    uint32_t at = beat_before(trace, ticks);
    const tare__clock_beat *beat = &trace->beats[at];
    double rate;
    if (at + 1 == trace->n_beats || ticks < first->ticks)
        rate = tare__trace_tick_ns(trace);
    else
        rate = slope(beat->ticks, beat->monotonic_ns, beat[1].ticks, beat[1].monotonic_ns);
    return (double)(beat->monotonic_ns - first->monotonic_ns) + distance(beat->ticks, ticks) * rate;
}

/* Where the run's own start is lost, the earliest thing known stands for it. */
static uint64_t start_ticks(const tare__trace *trace)
{
    if (trace->run.start_ticks)
        return trace->run.start_ticks;
    if (trace->n_beats)
        return trace->beats[0].ticks;
    return trace->first_ticks == UINT64_MAX ? 0 : trace->first_ticks;
}

double tare__trace_ns(const tare__trace *trace, uint64_t ticks)
{
    uint64_t start = start_ticks(trace);
    if (trace->run.clock == TARE__CLOCK_MONOTONIC || trace->n_beats < 2)
        return distance(start, ticks) * tare__trace_tick_ns(trace);
    return since_first_beat(trace, ticks) - since_first_beat(trace, start);
}
