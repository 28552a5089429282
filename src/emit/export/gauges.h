/* gauges: sampled series in the form that viewers draw: a name, an owner, a unit, a value at a time.
 * Owned by the calling thread; used inside emit only.
 * Must not know the formats. */
#ifndef TARE_EMIT_GAUGES_H
#define TARE_EMIT_GAUGES_H

#include "base/base.h"
#include "trace/trace.h"

typedef struct tare__gauge_point {
    uint64_t ticks;
    double value;
} tare__gauge_point;

typedef struct tare__gauges {
    struct tare__gauge_state {
        uint64_t ticks;
        int64_t value;
        bool seen;
    } * states; /* by series: the previous sample */
    size_t room;
} tare__gauges;

void tare__gauges_free(tare__gauges *gauges);

/* The unit of what is drawn: "bytes", "bytes_per_s", "cores", … */
const char *tare__gauge_unit(const tare__trace_series *series);
/* "disk.read nvme0n1"; for a process just "memory.rss". */
void tare__gauge_name(const tare__trace_series *series, tare__text *name);
/* The process it belongs to; 0: the machine. */
int64_t tare__gauge_pid(const tare__trace_series *series);

bool tare__gauge_seen(const tare__gauges *gauges, uint32_t id); /* a series had a sample */
/* What a sample adds to the drawing: for a gauge its value, for a total the rate since the previous sample, from there
 * on.
 * 1: *point is set; 0: nothing (a total's first sample, or it was reset); TARE_E_MEMORY. */
int tare__gauge_draw(tare__gauges *gauges, const tare__trace *trace, const tare__trace_series *series,
                     uint64_t ticks, int64_t value, tare__gauge_point *point);

#endif
