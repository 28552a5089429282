/* place: keeps the collector off the CPUs where the program records. The scheduler tends to put it there (its
 * timer fires where it last ran), and both then alternate: the program loses time and its buffer fills up.
 * One thread. Must not know what is recorded. */
#define _GNU_SOURCE
#include "collector.h"

#define CHECK_NS 20000000u

void tare__note_busy_cpu(tare__collector *collector, int cpu)
{
    if (cpu >= 0 && cpu < CPU_SETSIZE)
        CPU_SET(cpu, &collector->busy_cpus);
}

void tare__move_aside(tare__collector *collector)
{
    uint64_t now = tare__monotonic_ns();
    if (now - collector->place_ns < CHECK_NS)
        return;
    collector->place_ns = now;
    if (CPU_COUNT(&collector->own_cpus) == 0 &&
        sched_getaffinity(0, sizeof collector->own_cpus, &collector->own_cpus) != 0)
        return;
    cpu_set_t others;
    CPU_AND(&others, &collector->own_cpus, &collector->busy_cpus);
    CPU_XOR(&others, &collector->own_cpus, &others); /* available CPUs except the busy ones */
    bool busy = CPU_COUNT(&collector->busy_cpus) > 0, better = CPU_COUNT(&others) > 0;
    if (busy && better)
        collector->aside = sched_setaffinity(0, sizeof others, &others) == 0;
    else if (collector->aside && sched_setaffinity(0, sizeof others, &collector->own_cpus) == 0)
        collector->aside = false;
    CPU_ZERO(&collector->busy_cpus);
}
