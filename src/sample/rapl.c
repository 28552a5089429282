/* rapl: energy of CPU packages and their memory, as counted by the CPU (/sys/class/powercap).
 * The set's thread owns it.
 * Must not know what energy costs. */
#define _GNU_SOURCE
#include "machine.h"

#include <errno.h>

#define FOLDER TARE__POWER_ENERGY
#define ZONES_MAX 32

typedef struct zone {
    tare__power_file file;
    int fd;
    tare__counter counter;
} zone;

typedef struct rapl_part {
    zone zones[ZONES_MAX];
    size_t n;
} rapl_part;

static const char *why_none(int failure, char out[256])
{
    if (failure == -EACCES || failure == -EPERM)
        return tare__machine_why(failure, FOLDER, out);
    return "RAPL counters unavailable: virtual machine, or kernel module intel_rapl_msr not loaded";
}

static void open_rapl(tare__sample_set *set, void *state)
{
    rapl_part *part = state;
    tare__power_file files[ZONES_MAX];
    int n = tare__power_energies(tare__sample_options_of(set)->root, files, ZONES_MAX);
    for (int i = 0; i < n; i++) {
        tare__subject subject = {.kind = TARE__SUBJECT_SENSOR, .label = files[i].label};
        part->zones[part->n++] = (zone){
            .file = files[i], .fd = -1, .counter.series = tare__sample_series_of(set, TARE__M_ENERGY, &subject)};
    }
    if (part->n)
        return;
    char why[256];
    tare__subject nobody = {.kind = TARE__SUBJECT_SENSOR, .label = "package"};
    tare__sample_absent(set, tare__sample_series_of(set, TARE__M_ENERGY, &nobody), why_none(n, why));
}

static void tick_rapl(tare__sample_set *set, void *state, uint64_t now_ns)
{
    (void)now_ns;
    rapl_part *part = state;
    const char *root = tare__sample_options_of(set)->root;
    for (size_t i = 0; i < part->n; i++) {
        zone *zone = &part->zones[i];
        char why[256];
        int failure;
        int64_t energy = tare__machine_number(root, zone->file.path, &zone->fd, &failure);
        if (energy >= 0)
            tare__counter_count(set, &zone->counter, energy, zone->file.lap);
        else
            tare__sample_absent(set, zone->counter.series, tare__power_why(failure, zone->file.path, why));
    }
}

static void close_rapl(void *state)
{
    rapl_part *part = state;
    for (size_t i = 0; i < part->n; i++)
        tare__machine_close(&part->zones[i].fd);
}

static void doctor_rapl(const char *root, tare__sample_check_sink *sink, void *context)
{
    tare__power_file files[ZONES_MAX];
    int seen = tare__power_energies(root, files, ZONES_MAX), failure = 0, read = 0, denied = 0;
    for (int i = 0; i < seen; i++) {
        read += tare__machine_number(root, files[i].path, NULL, &failure) >= 0;
        denied += failure == -EACCES || failure == -EPERM;
    }
    char why[256];
    if (seen <= 0)
        tare__machine_check(sink, context, "power", "RAPL", TARE__SAMPLE_FAILS,
                            tare__machine_virtual(root) ? "" : "sudo modprobe intel_rapl_msr", "%s",
                            why_none(seen, why));
    else if (denied)
        tare__machine_check(sink, context, "power", "RAPL", read ? TARE__SAMPLE_PARTLY : TARE__SAMPLE_FAILS,
                            TARE__POWER_FIX, "RAPL counters require root since Linux 5.10");
    else
        tare__machine_check(sink, context, "power", "RAPL", read == seen ? TARE__SAMPLE_WORKS : TARE__SAMPLE_PARTLY,
                            "", "energy of %d of %d packages and memories", read, seen);
}

const tare__sampler tare__part_rapl = {
    .name = "rapl",
    .every = 10,
    .state_bytes = sizeof(rapl_part),
    .open = open_rapl,
    .tick = tick_rapl,
    .close = close_rapl,
    .doctor = doctor_rapl,
};
