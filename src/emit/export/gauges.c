/* gauges: sampled series in the form that viewers draw: a name, an owner, a unit, a value at a time.
 * Owned by the calling thread.
 * Must not know the formats. */
#include "gauges.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tare.h"

/* By tare__unit_kind. A total is drawn as its rate per second. */
static const struct drawn {
    const char *gauge, *rate;
    double scale;
} units[] = {
    [TARE__IN_NONE] = {"value", "per_s", 1},         [TARE__IN_COUNT] = {"count", "per_s", 1},
    [TARE__IN_BYTE] = {"bytes", "bytes_per_s", 1},   [TARE__IN_NS] = {"s", "s_per_s", 1e-9},
    [TARE__IN_PERMILLE] = {"share", "per_s", 1e-3},  [TARE__IN_MILLICELSIUS] = {"celsius", "per_s", 1e-3},
    [TARE__IN_MILLIWATT] = {"watts", "per_s", 1e-3}, [TARE__IN_MICROJOULE] = {"joules", "watts", 1e-6},
    [TARE__IN_HERTZ] = {"hertz", "per_s", 1},        [TARE__IN_MILLI] = {"value", "per_s", 1e-3},
    [TARE__IN_BITS] = {"bits", "per_s", 1},
};

static const struct drawn *drawn_of(const tare__trace_series *series)
{
    return &units[series->unit < TARE__COUNT_OF(units) ? series->unit : TARE__IN_NONE];
}

const char *tare__gauge_unit(const tare__trace_series *series)
{
    bool total = series->kind == TARE__METRIC_TOTAL, cpu = strncmp(series->metric, "cpu.", 4) == 0;
    if (cpu && ((total && series->unit == TARE__IN_NS) || series->unit == TARE__IN_MILLI))
        return "cores";
    return total ? drawn_of(series)->rate : drawn_of(series)->gauge;
}

int64_t tare__gauge_pid(const tare__trace_series *series)
{
    if (series->subject == TARE__SUBJECT_PROCESS || series->subject == TARE__SUBJECT_GPU_PROCESS)
        return (int64_t)series->key;
    return series->subject == TARE__SUBJECT_THREAD ? (int64_t)series->owner : 0;
}

void tare__gauge_name(const tare__trace_series *series, tare__text *name)
{
    static const char *const words[] = {
        [TARE__SUBJECT_CPU] = "cpu", [TARE__SUBJECT_THREAD] = "thread", [TARE__SUBJECT_GPU] = "gpu"};
    uint32_t subject = series->subject;
    bool worded = subject < TARE__COUNT_OF(words) && words[subject];
    tare__text_string(name, series->metric);
    if (subject == TARE__SUBJECT_PROCESS)
        return; /* the label is the command, which is already the name of the process */
    if (subject == TARE__SUBJECT_TREE)
        tare__text_string(name, " of all processes");
    if (subject == TARE__SUBJECT_TARE)
        tare__text_string(name, " of tare");
    if (subject == TARE__SUBJECT_CONTAINER) {
        tare__text_string(name,
                          " of the container"); /* the label is its path, or states that it has no limit */
        return;
    }
    if (subject == TARE__SUBJECT_GPU_PROCESS)
        tare__text_format(name, " on gpu %" PRIu64, series->owner);
    else if (worded)
        tare__text_format(name, " %s %" PRIu64, words[subject], series->key);
    if (series->label && series->label[0] && subject != TARE__SUBJECT_GPU_PROCESS)
        tare__text_format(name, " %s", series->label);
}

void tare__gauges_free(tare__gauges *gauges)
{
    free(gauges->states);
}

static struct tare__gauge_state *state_of(tare__gauges *gauges, uint32_t id)
{
    bool fits = tare__array_fit_zeroed(&gauges->states, &gauges->room, (size_t)id + 1, sizeof *gauges->states);
    return fits ? &gauges->states[id] : NULL;
}

bool tare__gauge_seen(const tare__gauges *gauges, uint32_t id)
{
    return id < gauges->room && gauges->states[id].seen;
}

int tare__gauge_draw(tare__gauges *gauges, const tare__trace *trace, const tare__trace_series *series,
                     uint64_t ticks, int64_t value, tare__gauge_point *point)
{
    double scale = drawn_of(series)->scale;
    *point = (tare__gauge_point){ticks, (double)value * scale};
    struct tare__gauge_state *last = state_of(gauges, series->id);
    if (!last)
        return TARE_E_MEMORY;
    struct tare__gauge_state before = *last;
    *last = (struct tare__gauge_state){ticks, value, true};
    if (series->kind != TARE__METRIC_TOTAL)
        return 1;
    if (!before.seen || value < before.value || ticks <= before.ticks)
        return 0;
    double seconds = (tare__trace_ns(trace, ticks) - tare__trace_ns(trace, before.ticks)) / 1e9;
    if (!(seconds > 0))
        return 0;
    *point = (tare__gauge_point){before.ticks, ((double)value - (double)before.value) * scale / seconds};
    return 1;
}
