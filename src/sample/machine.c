/* machine: shared by the samplers of machine, container and sensors. The set's thread owns it all.
 * Must not know any file of the kernel by name. */
#define _GNU_SOURCE
#include "machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- parts ------------------------------------------------------------------------------------------- */

void tare__parts_open(tare__sample_set *set, tare__parts *parts, const tare__sampler *const *table, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        parts->state[i] = calloc(1, table[i]->state_bytes);
        if (parts->state[i])
            table[i]->open(set, parts->state[i]);
    }
}

void tare__parts_tick(tare__sample_set *set, tare__parts *parts, const tare__sampler *const *table, size_t n,
                      uint64_t now_ns)
{
    uint64_t before = tare__sample_cost_clock(set);
    for (size_t i = 0; i < n; i++) {
        if (!parts->state[i] || now_ns < parts->due_ns[i])
            continue;
        table[i]->tick(set, parts->state[i], now_ns);
        uint64_t after = tare__sample_cost_clock(set);
        parts->due_ns[i] = now_ns + (after - before) * TARE__PART_SHARE;
        before = after;
    }
}

void tare__parts_close(tare__parts *parts, const tare__sampler *const *table, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (parts->state[i])
            table[i]->close(parts->state[i]);
        free(parts->state[i]);
    }
}

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
