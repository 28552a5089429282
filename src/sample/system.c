/* system: the whole machine: CPUs, memory, disks, network, pressure; each part in a separate file.
 * The set's thread owns it.
 * Must not know what any part reads. */
#include "machine.h"

static const tare__sampler *const parts[] = {
    &tare__part_cpu, &tare__part_memory, &tare__part_disk, &tare__part_network, &tare__part_pressure,
};

static void open_system(tare__sample_set *set, void *state)
{
    tare__parts_open(set, state, parts, TARE__COUNT_OF(parts));
}

static void tick_system(tare__sample_set *set, void *state, uint64_t now_ns)
{
    tare__parts_tick(set, state, parts, TARE__COUNT_OF(parts), now_ns);
}

static void close_system(void *state)
{
    tare__parts_close(state, parts, TARE__COUNT_OF(parts));
}

static void doctor_system(const char *root, tare__sample_check_sink *sink, void *context)
{
    for (size_t i = 0; i < TARE__COUNT_OF(parts); i++)
        parts[i]->doctor(root, sink, context);
}

const tare__sampler tare__sampler_system = {
    .name = "system",
    .every = 1,
    .state_bytes = sizeof(tare__parts),
    .open = open_system,
    .tick = tick_system,
    .close = close_system,
    .doctor = doctor_system,
};
