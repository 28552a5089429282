/* machine: shared by the samplers of machine, container and sensors. The set's thread owns it all.
 * Must not know any file of the kernel by name. */
#define _GNU_SOURCE
#include "machine.h"

#include <stdarg.h>
#include <stdio.h>

uint32_t tare__machine_series(tare__sample_set *set, tare__metric metric)
{
    return tare__sample_series_of(set, metric, &(tare__subject){.kind = TARE__SUBJECT_SYSTEM});
}

/* ---- counters ---------------------------------------------------------------------------------------- */

void tare__counter_hold(tare__sample_set *set, tare__counter *counter, int64_t value)
{
    if (value > counter->last)
        counter->last = value;
    tare__sample_put(set, counter->series, counter->last);
}

void tare__counter_count(tare__sample_set *set, tare__counter *counter, int64_t value, int64_t lap)
{
    int64_t sum;
    if (value < counter->last)
        counter->base += lap > 0 ? lap : counter->last;
    counter->last = value;
    if (!__builtin_add_overflow(counter->base, value, &sum))
        tare__sample_put(set, counter->series, sum);
}

/* ---- doctor ------------------------------------------------------------------------------------------ */

void tare__machine_check(tare__sample_check_sink *sink, void *context, const char *sampler, const char *source,
                         tare__sample_state state, const char *fix, const char *detail, ...)
{
    tare__sample_check check = {.sampler = sampler, .source = source, .state = state};
    va_list args;
    va_start(args, detail);
    vsnprintf(check.detail, sizeof check.detail, detail, args);
    va_end(args);
    snprintf(check.fix, sizeof check.fix, "%s", fix);
    sink(context, &check);
}
