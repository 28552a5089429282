/* power: temperatures, power, energy, clocks; each part in a separate file. CPU clocks
 * are included since they change as slowly, and depend on temperature and power.
 * The set's thread owns it. Must not know what any part reads. */
#include "machine.h"

static const tare__sampler *const parts[] = {&tare__part_sensor, &tare__part_rapl, &tare__part_clock};

static void open_power(tare__sample_set *set, void *state)
{
    tare__parts_open(set, state, parts, TARE__COUNT_OF(parts));
}

static void tick_power(tare__sample_set *set, void *state, uint64_t now_ns)
{
    tare__parts_tick(set, state, parts, TARE__COUNT_OF(parts), now_ns);
}

static void close_power(void *state)
{
    tare__parts_close(state, parts, TARE__COUNT_OF(parts));
}

static void doctor_power(const char *root, tare__sample_check_sink *sink, void *context)
{
    for (size_t i = 0; i < TARE__COUNT_OF(parts); i++)
        parts[i]->doctor(root, sink, context);
}

const tare__sampler tare__sampler_power = {
    .name = "power",
    .every = 10,
    .state_bytes = sizeof(tare__parts),
    .open = open_power,
    .tick = tick_power,
    .close = close_power,
    .doctor = doctor_power,
};
