/* samples: runs the samplers and writes their values to blocks of the trace.
 * One thread. A block at least every second, so that a kill loses no more.
 * Must not know what is measured, except for processes killed by the OOM killer. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector.h"

#define LIST_INTERVAL_NS 200000000u /* if only the list of processes is used */
#define LATE_NS 5000000u             /* a sample that took longer was interrupted */
#define BUDGET_MAX 0.25             /* of one core, if very short intervals are requested */

/* ---- from the samplers ------------------------------------------------------------------------------------- */

static const char *keep_text(tare__sampling *sampling, const char *text, uint32_t bytes)
{
    uint32_t id = tare__intern_add(sampling->texts, text, bytes);
    return id == TARE__INTERN_NONE ? NULL : tare__intern_text(sampling->texts, id, NULL);
}

static void note_fresh(tare__sampling *sampling, uint32_t id)
{
    for (size_t i = sampling->fresh_count; i > 0 && i + 8 > sampling->fresh_count; i--)
        if (sampling->fresh[i - 1] == id)
            return; /* changed twice in a row: the newest is written */
    if (tare__array_fit(&sampling->fresh, &sampling->fresh_room, sampling->fresh_count + 1, sizeof *sampling->fresh))
        sampling->fresh[sampling->fresh_count++] = id;
}

static void take_series(void *context, const tare__series *series)
{
    tare__sampling *sampling = context;
    if (series->id == 0 ||
        !tare__array_fit_zeroed(&sampling->series, &sampling->series_room, series->id, sizeof *series))
        return;
    tare__series kept = *series;
    kept.metric = keep_text(sampling, series->metric, series->metric_bytes);
    kept.label = keep_text(sampling, series->label, series->label_bytes);
    kept.absent = keep_text(sampling, series->absent, series->absent_bytes);
    if (!kept.metric || !kept.label || !kept.absent)
        return;
    sampling->series[series->id - 1] = kept;
    if (series->id > sampling->series_count)
        sampling->series_count = series->id;
    note_fresh(sampling, series->id);
    const char *kills = tare__metric_of(TARE__M_OOM_KILLS)->name;
    if (series->subject == TARE__SUBJECT_CONTAINER && series->metric_bytes == strlen(kills) &&
        memcmp(series->metric, kills, series->metric_bytes) == 0)
        sampling->oom_series = series->id;
}

static void take_value(void *context, uint32_t series, int64_t value)
{
    tare__sampling *sampling = context;
    if (tare__array_fit(&sampling->values, &sampling->value_room, sampling->value_count + 1, sizeof *sampling->values))
        sampling->values[sampling->value_count++] = (tare__sample_value){value, series};
    if (series != sampling->oom_series)
        return;
    if (!sampling->oom_known)
        sampling->oom_first = value;
    sampling->oom_known = true;
    sampling->oom_last = value;
}

static void ignore_series(void *context, const tare__series *series)
{
    (void)context, (void)series;
}

static void ignore_value(void *context, uint32_t series, int64_t value)
{
    (void)context, (void)series, (void)value;
}

/* ---- into the file ----------------------------------------------------------------------------------------- */

static void seal_series(tare__collector *collector)
{
    tare__sampling *sampling = &collector->sampling;
    tare__series *told = sampling->fresh_count ? malloc(sampling->fresh_count * sizeof *told) : NULL;
    if (!told)
        return; /* they wait; all are written again at the end */
    uint32_t n = 0;
    for (size_t i = 0; i < sampling->fresh_count; i++)
        told[n++] = sampling->series[sampling->fresh[i] - 1];
    tare__series_seal(told, n, collector->squeezer, &collector->block);
    sampling->fresh_count = 0;
    free(told);
}

void tare__sampling_flush(tare__collector *collector)
{
    tare__sampling *sampling = &collector->sampling;
    if (!sampling->samples || (tare__samples_values(sampling->samples) == 0 && sampling->fresh_count == 0))
        return;
    tare__text_clear(&collector->block);
    tare__squeezer_level(collector->squeezer, 1);
    seal_series(collector);
    tare__samples_seal(sampling->samples, collector->squeezer, &collector->block);
    tare__writer_append(&collector->writer, &collector->block);
    sampling->sealed_ns = tare__monotonic_ns();
}

/* ---- ticks ------------------------------------------------------------------------------------------------- */

uint64_t tare__sampling_due_ns(const tare__collector *collector)
{
    return collector->sampling.set ? tare__sample_due_ns(collector->sampling.set) : UINT64_MAX;
}

/* All values of one sample go into one block. */
static void keep_values(tare__collector *collector, uint64_t ticks)
{
    tare__sampling *sampling = &collector->sampling;
    if (tare__samples_values(sampling->samples) + sampling->value_count > TARE__SAMPLES_VALUES_MAX)
        tare__sampling_flush(collector);
    if (!tare__samples_tick(sampling->samples, ticks)) {
        tare__sampling_flush(collector);
        tare__samples_tick(sampling->samples, ticks);
    }
    for (size_t i = 0; i < sampling->value_count; i++)
        tare__samples_put(sampling->samples, sampling->values[i].series, sampling->values[i].value);
}

/* If the collector is preempted during a sample, values of different times would be stored as simultaneous, and
 * rates would be wrong. Such a sample is discarded, but not two in a row. */
static bool sample_was_late(const tare__sampling *sampling, uint64_t took_ns)
{
    uint64_t bound = sampling->interval_ns / 8;
    return !sampling->late && took_ns > (bound > LATE_NS ? bound : LATE_NS);
}

bool tare__sampling_tick(tare__collector *collector, bool last)
{
    tare__sampling *sampling = &collector->sampling;
    uint64_t now = tare__monotonic_ns();
    if (!sampling->set || (!last && now < tare__sample_due_ns(sampling->set)))
        return false;
    uint64_t ticks = tare__clock_ticks(collector->folder.page->clock);
    sampling->value_count = 0;
    if (last)
        tare__sample_tick_all(sampling->set, now);
    else
        tare__sample_tick(sampling->set, now);
    sampling->late = !last && sample_was_late(sampling, tare__monotonic_ns() - now);
    if (sampling->samples && !sampling->late)
        keep_values(collector, ticks);
    tare__tree_update(collector);
    if (now - sampling->sealed_ns >= TARE__SEAL_NS)
        tare__sampling_flush(collector);
    return true;
}

/* ---- processes killed by the OOM killer ------------------------------------------------------------------- */

static int64_t killed_on_machine(void)
{
    char text[16384];
    if (tare__sample_read("", "/proc/vmstat", text, sizeof text) <= 0)
        return -1;
    const char *line = strstr(text, "\noom_kill ");
    return line ? strtoll(line + 10, NULL, 10) : -1;
}

/* The count of the job's own control group is certain. The machine's count may include other processes: it is used
 * only together with a death by SIGKILL. */
bool tare__sampling_oom(const tare__collector *collector, bool killed)
{
    const tare__sampling *sampling = &collector->sampling;
    if (sampling->oom_known && sampling->oom_last > sampling->oom_first)
        return true;
    return killed && sampling->oom_machine >= 0 && killed_on_machine() > sampling->oom_machine;
}

/* ---- opening, closing -------------------------------------------------------------------------------------- */

uint64_t tare__sampling_interval_ns(uint64_t asked_ns)
{
    if (asked_ns == TARE__RUN_NO_SAMPLES)
        return 0;
    if (asked_ns == 0)
        return TARE__SAMPLE_INTERVAL_NS;
    return asked_ns < TARE__SAMPLE_INTERVAL_MIN_NS ? TARE__SAMPLE_INTERVAL_MIN_NS : asked_ns;
}

/* Shorter intervals than the default get a proportionally larger budget. */
static double budget_for(uint64_t interval_ns)
{
    double budget = TARE__SAMPLE_BUDGET;
    if (interval_ns < TARE__SAMPLE_INTERVAL_NS)
        budget *= (double)TARE__SAMPLE_INTERVAL_NS / (double)interval_ns;
    return budget < BUDGET_MAX ? budget : BUDGET_MAX;
}

void tare__sampling_open(tare__collector *collector, pid_t target, const tare__record_options *options)
{
    tare__sampling *sampling = &collector->sampling;
    sampling->interval_ns = tare__sampling_interval_ns(options->interval_ns);
    tare__reserve_take(collector);
    tare__sample_options wanted = {.root = "", .target = target, .self = getpid(),
                                   .interval_ns = sampling->interval_ns, .left_out = options->samplers_left_out,
                                   .budget = budget_for(sampling->interval_ns)};
    tare__sample_sink sink = {take_series, take_value, sampling};
    sampling->oom_machine = killed_on_machine();
    sampling->texts = tare__intern_new();
    sampling->samples = sampling->interval_ns ? tare__samples_new() : NULL;
    if (!sampling->samples || !sampling->texts) {
        wanted.only_list = true;
        wanted.interval_ns = LIST_INTERVAL_NS;
        wanted.budget = TARE__SAMPLE_BUDGET;
        sink = (tare__sample_sink){ignore_series, ignore_value, NULL};
    }
    sampling->set = tare__sample_open(&wanted, &sink);
    sampling->sealed_ns = tare__monotonic_ns();
    tare__sampling_tick(collector, true);
}

void tare__sampling_free(tare__collector *collector)
{
    tare__sampling *sampling = &collector->sampling;
    tare__sample_close(sampling->set);
    tare__samples_free(sampling->samples);
    tare__intern_free(sampling->texts);
    free(sampling->series);
    free(sampling->values);
    free(sampling->fresh);
    memset(sampling, 0, sizeof *sampling);
}
