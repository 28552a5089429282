/* machine: shared by the samplers of machine, container and sensors: parts, increasing series, files of one number.
 * The set's thread owns it all.
 * Must not know the internals of the set. */
#ifndef TARE_SAMPLE_MACHINE_H
#define TARE_SAMPLE_MACHINE_H

#include "sample.h"

/* ---- parts: samplers within a sampler (parts.c) ------------------------------------------------------------- */
extern const tare__sampler tare__part_cpu, tare__part_memory, tare__part_disk, tare__part_network,
    tare__part_pressure;/* of system */
extern const tare__sampler tare__part_sensor, tare__part_rapl, tare__part_clock; /* of power */

/* Values of the whole machine: no key, no label. */
uint32_t tare__machine_series(tare__sample_set *set, tare__metric metric);

/* ---- counters that only grow ------------------------------------------------------------------------- */
typedef struct tare__counter {
    uint32_t series;
    int64_t last, base;
} tare__counter;
/* The kernel's idle times may decrease slightly: keep the last value. */
void tare__counter_hold(tare__sample_set *set, tare__counter *counter, int64_t value);
/* A device was replaced, or its counter wrapped: continue from the last value. `lap`: where it wraps; 0: unknown. */
void tare__counter_count(tare__sample_set *set, tare__counter *counter, int64_t value, int64_t lap);

/* ---- devices that may appear and disappear: disks, network interfaces -------------------------------- */
#define TARE__DEVICES_MAX 2048u /* by name, including excluded ones */
#define TARE__DEVICES_TOLD_MAX 256u
#define TARE__DEVICE_FIGURES 6
typedef struct tare__device {
    char name[64];
    bool kept, told, seen; /* included; has series; present in this tick */
    tare__counter counters[TARE__DEVICE_FIGURES];
} tare__device;
typedef struct tare__devices {
    tare__subject_kind kind;
    const tare__metric *metrics;
    size_t n_metrics;
    tare__device *all;
    size_t n, room, next, told;
    bool (*wanted)(const char *root, const char *name); /* called once per name */
    uint32_t none[TARE__DEVICE_FIGURES];                /* series without a name: why there is no device at all */
} tare__devices;
/* The device of this name; NULL: excluded, or no space. Fast if called in the same order each tick. */
tare__device *tare__devices_find(tare__sample_set *set, tare__devices *devices, tare__scan name);
void tare__devices_put(tare__sample_set *set, tare__devices *devices, tare__device *device, const int64_t *values);
/* After a tick: devices that were not found are absent. */
void tare__devices_sweep(tare__sample_set *set, tare__devices *devices, const char *none);
void tare__devices_close(tare__devices *devices);

/* ---- pressure: of the machine and of a control group ------------------------------------------------- */
#define TARE__PRESSURES 5
typedef struct tare__pressure {
    uint32_t series[TARE__PRESSURES];
    int fd[3];
    bool gone[3];
    char path[3][TARE__PATH_BYTES];
} tare__pressure;
/* Files are folder + "cpu", "memory", "io" + suffix. */
void tare__pressure_open(tare__sample_set *set, tare__pressure *pressure, const char *folder, const char *suffix,
                         const tare__subject *subject);
void tare__pressure_tick(tare__sample_set *set, tare__pressure *pressure);
void tare__pressure_close(tare__pressure *pressure);

/* ---- doctor ------------------------------------------------------------------------------------------ */
void tare__machine_check(tare__sample_check_sink *sink, void *context, const char *sampler, const char *source,
                         tare__sample_state state, const char *fix, const char *detail, ...) TARE__PRINTF(7, 8);

#endif
