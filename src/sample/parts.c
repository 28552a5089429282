/* parts: the samplers of the machine and of its sensors, each with parts in separate files. CPU clocks are among the
 * sensors since they change as slowly, and depend on temperature and power.
 * The set's thread owns it. Must not know what any part reads. */
#include "machine.h"

#include <stdlib.h>

/* An expensive part (/proc/stat of 256 CPUs, a sensor on a slow bus) must not delay the others: each is read only as
 * often as it takes at most this share of the time. */
#define PART_SHARE 500 /* one in this many */
#define PARTS_MAX  8

typedef const tare__sampler *const table[PARTS_MAX]; /* NULL after the last */
typedef struct parts {
    void *state[PARTS_MAX]; /* NULL: out of memory */
    uint64_t due_ns[PARTS_MAX];
} parts;

static void open_parts(tare__sample_set *set, parts *parts, table of)
{
    for (size_t i = 0; of[i]; i++) {
        parts->state[i] = calloc(1, of[i]->state_bytes);
        if (parts->state[i])
            of[i]->open(set, parts->state[i]);
    }
}

static void tick_parts(tare__sample_set *set, parts *parts, table of, uint64_t now_ns)
{
    uint64_t before = tare__sample_cost_clock(set);
    for (size_t i = 0; of[i]; i++) {
        if (!parts->state[i] || now_ns < parts->due_ns[i])
            continue;
        of[i]->tick(set, parts->state[i], now_ns);
        uint64_t after = tare__sample_cost_clock(set);
        parts->due_ns[i] = now_ns + (after - before) * PART_SHARE;
        before = after;
    }
}

static void close_parts(parts *parts, table of)
{
    for (size_t i = 0; of[i]; i++) {
        if (parts->state[i])
            of[i]->close(parts->state[i]);
        free(parts->state[i]);
    }
}

#define SAMPLER_OF_PARTS(word, interval, ...)                                                                          \
    static table parts_of_##word = {__VA_ARGS__};                                                                      \
    static void open_##word(tare__sample_set *set, void *state) { open_parts(set, state, parts_of_##word); }           \
    static void tick_##word(tare__sample_set *set, void *state, uint64_t now_ns)                                       \
    {                                                                                                                  \
        tick_parts(set, state, parts_of_##word, now_ns);                                                               \
    }                                                                                                                  \
    static void close_##word(void *state) { close_parts(state, parts_of_##word); }                                     \
    static void doctor_##word(const char *root, tare__sample_check_sink *sink, void *context)                          \
    {                                                                                                                  \
        for (size_t i = 0; parts_of_##word[i]; i++)                                                                    \
            parts_of_##word[i]->doctor(root, sink, context);                                                           \
    }                                                                                                                  \
    const tare__sampler tare__sampler_##word = {#word,       interval,    sizeof(parts), open_##word,                  \
                                                tick_##word, close_##word, doctor_##word};

SAMPLER_OF_PARTS(system, 1, &tare__part_cpu, &tare__part_memory, &tare__part_disk, &tare__part_network,
                 &tare__part_pressure)
SAMPLER_OF_PARTS(power, 10, &tare__part_sensor, &tare__part_rapl, &tare__part_clock)
