/* own: Tare's overhead: the time of the recorder, by the costs that each process measured when it joined.
 * Owned by the thread that analyzes.
 * Must not know how spans are corrected for it. */
#include "analyze/inner.h"

#define COST_UNIT 256.0 /* costs are recorded in 1/256 ticks */

static cost cost_of(const tare__own_cost *reported)
{
    return (cost){true, reported->pair / COST_UNIT, reported->inner / COST_UNIT, reported->next / COST_UNIT,
                  reported->aggregate / COST_UNIT};
}

static void add_weighted(cost *sum, const cost *one, double weight)
{
    sum->known = true;
    sum->pair += one->pair * weight;
    sum->inner += one->inner * weight;
    sum->next += one->next * weight;
    sum->aggregate += one->aggregate * weight;
}

/* Processes of one run on one machine have nearly the same costs: where their spans are merged, the average weighted
 * by spans is subtracted. A stream without spans counts as one span, so that a cost is known wherever one was
 * measured. */
static cost average_cost(const work *work)
{
    cost sum = {0};
    double weights = 0;
    for (size_t i = 0; i < work->n_streams; i++) {
        const stream *stream = work->streams[i];
        const tare__trace_process *process = tare__trace_process_at(work->trace, stream->process);
        if (!process || !process->has_cost)
            continue;
        cost one = cost_of(&process->cost);
        double weight = (double)stream->spans + 1;
        add_weighted(&sum, &one, weight);
        weights += weight;
    }
    if (weights > 0) {
        cost average = {0};
        add_weighted(&average, &sum, 1 / weights);
        return average;
    }
    return sum;
}

cost tare__analyze_cost(const work *work, uint32_t number)
{
    const tare__trace_process *process = tare__trace_process_at(work->trace, number);
    return process && process->has_cost ? cost_of(&process->cost) : work->average;
}

/* Marks, counters, numbers and complete spans are not calibrated separately: each writes its slots with at most one
 * timestamp, as a chained span does, and is counted as one. For sampled aggregates only the timed calls have a
 * relevant cost. */
static double own_ticks(const work *work, const stream *stream)
{
    cost cost = tare__analyze_cost(work, stream->process);
    double others = (double)(stream->marks + stream->counters + stream->numbers + stream->complete);
    return (double)(stream->spans - stream->chained) * cost.pair + ((double)stream->chained + others) * cost.next +
           (double)stream->aggregate_timed * cost.aggregate;
}

static void add_stream(const work *work, const stream *stream, tare__own_table *own)
{
    double tick_ns = tare__trace_tick_ns(work->trace);
    own->spans += stream->spans - stream->chained;
    own->chained_spans += stream->chained;
    own->marks += stream->marks;
    own->counters += stream->counters;
    own->numbers += stream->numbers;
    own->complete_spans += stream->complete;
    own->aggregate_calls += stream->aggregate_calls;
    own->aggregate_timed += stream->aggregate_timed;
    own->own_ns += own_ticks(work, stream) * tick_ns;
    if (stream->last > stream->first) /* first is UINT64_MAX when nothing was read */
        own->recorded_ns += (double)(stream->last - stream->first) * tick_ns;
}

/* Before the spans table, which subtracts the average. */
int tare__analyze_own_table(work *work, tare__analysis *analysis)
{
    tare__own_table *own = &analysis->own;
    const tare__trace_end *end = tare__trace_end_of(work->trace);
    double tick_ns = tare__trace_tick_ns(work->trace);
    work->average = average_cost(work);
    for (size_t i = 0; i < work->n_streams; i++)
        add_stream(work, work->streams[i], own);
    if (work->has_strays)
        add_stream(work, &work->stray, own);
    bool known = work->average.known;
    own->pair_ns = known ? work->average.pair * tick_ns : NAN;
    own->inner_ns = known ? work->average.inner * tick_ns : NAN;
    own->next_ns = known ? work->average.next * tick_ns : NAN;
    own->aggregate_ns = known ? work->average.aggregate * tick_ns : NAN;
    own->own_ns = known ? own->own_ns : NAN;
    own->collector_cpu_ns = end->has_collector_cpu ? (double)end->collector_cpu_ns : NAN;
    own->sampler_cpu_ns = end->has_sampler_cpu ? (double)end->sampler_cpu_ns : NAN;
    uint64_t interval = tare__trace_run_of(work->trace)->interval_ns;
    own->interval_ns = interval ? (double)interval : NAN;
    bool stretched = interval && end->stretched_ns > interval;
    own->longest_interval_ns = stretched ? (double)end->stretched_ns : own->interval_ns;
    /* More than the total time: the measured cost of an event is wrong. */
    own->share = own->recorded_ns > 0 && !(own->own_ns > own->recorded_ns) ? own->own_ns / own->recorded_ns : NAN;
    return 0;
}
