/* machine: what the samplers of machine, container and sensors share: groups of parts, series that only grow,
 * files of one number. The set's thread owns it all.
 * Must not know the set's inside. */
#ifndef TARE_SAMPLE_MACHINE_H
#define TARE_SAMPLE_MACHINE_H

#include "sample.h"
#include "scan.h"

/* ---- parts: samplers behind a sampler -------------------------------------------------------------------
 * A part that is expensive (/proc/stat of 256 CPUs, a sensor behind a slow bus) must not take the beat from the
 * others: each is looked at so seldom that it takes at most this share of the time. */
#define TARE__PART_SHARE 500 /* one of so many */
#define TARE__PARTS_MAX 8
typedef struct tare__parts {
    void *state[TARE__PARTS_MAX]; /* NULL: no memory for it */
    uint64_t due_ns[TARE__PARTS_MAX];
} tare__parts;
void tare__parts_open(tare__sample_set *set, tare__parts *parts, const tare__sampler *const *table, size_t n);
void tare__parts_tick(tare__sample_set *set, tare__parts *parts, const tare__sampler *const *table, size_t n,
                      uint64_t now_ns);
void tare__parts_close(tare__parts *parts, const tare__sampler *const *table, size_t n);

extern const tare__sampler tare__part_cpu, tare__part_memory, tare__part_disk, tare__part_network,
    tare__part_pressure;/* of system */
extern const tare__sampler tare__part_sensor, tare__part_rapl, tare__part_clock; /* of power */

/* Parts of the machine are the machine's: no key, no label. */
uint32_t tare__machine_series(tare__sample_set *set, tare__metric metric);

/* ---- counters that only grow ------------------------------------------------------------------------- */
typedef struct tare__counter {
    uint32_t series;
    int64_t last, base;
} tare__counter;
/* The kernel's idle times may step back a little: hold. */
void tare__counter_hold(tare__sample_set *set, tare__counter *counter, int64_t value);
/* A device came anew, or its counter wrapped: go on from where it was. `lap`: where it wraps; 0: unknown. */
void tare__counter_count(tare__sample_set *set, tare__counter *counter, int64_t value, int64_t lap);

/* ---- devices that come and go: disks, network interfaces --------------------------------------------- */
#define TARE__DEVICES_MAX 2048u /* known by name, also those left out */
#define TARE__DEVICES_TOLD_MAX 256u
#define TARE__DEVICE_FIGURES 6
typedef struct tare__device {
    char name[64];
    bool kept, told, seen; /* wanted; has series; in the text of this tick */
    tare__counter counters[TARE__DEVICE_FIGURES];
} tare__device;
typedef struct tare__devices {
    tare__subject_kind kind;
    const tare__metric *metrics;
    size_t n_metrics;
    tare__device *all;
    size_t n, room, next, told;
    bool (*wanted)(const char *root, const char *name); /* asked once a name */
    uint32_t none[TARE__DEVICE_FIGURES];                /* series without a name: why there is no device at all */
} tare__devices;
/* The device of this name; NULL: not wanted, or no room. Quick when asked in the same order each tick. */
tare__device *tare__devices_find(tare__sample_set *set, tare__devices *devices, tare__scan name);
void tare__devices_put(tare__sample_set *set, tare__devices *devices, tare__device *device, const int64_t *values);
/* After a tick: those that were not found again are absent. */
void tare__devices_sweep(tare__sample_set *set, tare__devices *devices, const char *none);
void tare__devices_close(tare__devices *devices);

/* ---- files ------------------------------------------------------------------------------------------- */
#define TARE__PATH_BYTES 1024
/* Number in a file; NONE with errno's negative in *failure (0: no number stands there). `fd` may be NULL. */
int64_t tare__machine_number(const char *root, const char *path, int *fd, int *failure);
/* First line of a file without its end; "" when it cannot be had. */
void tare__machine_line(const char *root, const char *path, char *out, size_t room);
/* The reason: the failure's words, or that the file does not hold what it should (failure 0). */
const char *tare__machine_why(int failure, const char *path, char out[256]);
void tare__machine_close(int *fd);
/* Names in a folder that begin with `prefix`, in order of the numbers in them. How many (at most `room`), or a
 * negative errno. */
typedef struct tare__entry {
    char name[64];
} tare__entry;
int tare__machine_list(const char *root, const char *folder, const char *prefix, tare__entry *out, size_t room);
bool tare__machine_exists(const char *root, const char *path);
bool tare__machine_virtual(const char *root); /* no sensors are to be expected */

/* ---- lines of /proc, for the samplers and for the Python package, which reads them for blocks ----------- */
/* Numbers up to the first that is none; how many. */
size_t tare__line_numbers(tare__scan *line, int64_t *numbers, size_t room);
/* After "cpu" in /proc/stat: ticks; guests are in user and nice already. Kernels have at least the first four. */
enum { TARE__CPU_USER, TARE__CPU_NICE, TARE__CPU_SYSTEM, TARE__CPU_IDLE, TARE__CPU_IOWAIT, TARE__CPU_IRQ,
       TARE__CPU_SOFTIRQ, TARE__CPU_STEAL, TARE__CPU_COLUMNS };
#define TARE__CPU_COLUMNS_MIN 4u
/* "254 0 vda 318255 …" of /proc/diskstats: its name, and the line after it: reads, merged, sectors, ms, writes, merged,
 * sectors, ms, under way, busy ms, queue ms. */
tare__scan tare__line_disk(tare__scan *line);
enum { TARE__DISK_READS = 0, TARE__DISK_READ_SECTORS = 2, TARE__DISK_WRITES = 4, TARE__DISK_WRITTEN_SECTORS = 6,
       TARE__DISK_BUSY_MS = 9, TARE__DISK_QUEUE_MS = 10, TARE__DISK_COLUMNS };
/* Partitions are not in /sys/block. What lies on other disks (LVM, RAID, encryption) is no whole disk either: its bytes
 * are those disks' bytes, and would count twice. */
bool tare__disk_is_whole(const char *root, const char *name);
bool tare__disk_is_spare(const char *name); /* of a kind that a kernel makes dozens of that nobody uses */
/* "  eth0: 123 4 …" of /proc/net/dev: its name, and the line after it: received bytes, packets, errors, dropped, …; sent
 * bytes, …. False: another line. */
bool tare__line_network(tare__scan *line, tare__scan *name);
enum { TARE__NET_RECEIVED = 0, TARE__NET_SENT = 8, TARE__NET_COLUMNS = 16 };

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
