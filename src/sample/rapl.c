/* rapl: energy of CPU packages and their memory, as the CPU counts it (/sys/class/powercap).
 * The set's thread owns it.
 * Must not know what energy costs. */
#define _GNU_SOURCE
#include "machine.h"

#include <errno.h>
#include <stdio.h>

#define FOLDER "/sys/class/powercap"
#define ZONES_MAX 32
#define FIX "sudo chmod a+r " FOLDER "/intel-rapl:*/energy_uj"

/* Packages and memory only: cores and graphics are inside of a package, and psys has the package in it. The same
 * counters seen another way (intel-rapl-mmio) are left out by the name's colon. AMD's are called so, too. */
static const char *const counted[] = {"package", "dram"};

typedef struct zone {
    char path[96];
    int fd;
    int64_t lap; /* the counter starts again from 0 here */
    tare__counter counter;
} zone;

typedef struct rapl_part {
    zone zones[ZONES_MAX];
    size_t n;
} rapl_part;

static bool is_counted(const char *name)
{
    for (size_t i = 0; i < TARE__COUNT_OF(counted); i++)
        if (strncmp(name, counted[i], strlen(counted[i])) == 0)
            return true;
    return false;
}

static void file_of(const char *entry, const char *file, char out[96])
{
    snprintf(out, 96, FOLDER "/%.48s/%s", entry, file);
}

/* "package-0"; of a zone inside another, intel-rapl:0:1, "package-0 dram". False: not one to count. */
static bool label_of(const char *root, const char *entry, char out[64])
{
    char path[96], outer[48], name[24], above[32] = "";
    file_of(entry, "name", path);
    tare__machine_line(root, path, name, sizeof name);
    if (!is_counted(name))
        return false;
    snprintf(outer, sizeof outer, "%.47s", entry);
    char *colon = strrchr(outer, ':');
    if (colon && colon != strchr(outer, ':')) {
        *colon = '\0';
        file_of(outer, "name", path);
        tare__machine_line(root, path, above, sizeof above);
    }
    snprintf(out, 64, "%s%s%s", above, *above ? " " : "", name);
    return true;
}

static int list_zones(const char *root, tare__entry entries[ZONES_MAX * 2])
{
    return tare__machine_list(root, FOLDER, "intel-rapl:", entries, ZONES_MAX * 2);
}

static void add_zone(tare__sample_set *set, rapl_part *part, const char *root, const char *entry)
{
    char label[64], path[96];
    int failure;
    if (part->n == ZONES_MAX || !label_of(root, entry, label))
        return;
    zone *zone = &part->zones[part->n++];
    zone->fd = -1;
    file_of(entry, "energy_uj", zone->path);
    file_of(entry, "max_energy_range_uj", path);
    zone->lap = tare__machine_number(root, path, NULL, &failure);
    zone->counter.series = tare__sample_series_of(
        set, TARE__M_ENERGY, &(tare__subject){.kind = TARE__SUBJECT_SENSOR, .label = label});
}

static const char *why_none(int failure, char out[256])
{
    if (failure == -EACCES || failure == -EPERM)
        return tare__machine_why(failure, FOLDER, out);
    return "no energy counters (RAPL) are to be seen here: a virtual machine has none, a kernel may lack the module "
           "intel_rapl_msr";
}

static void open_rapl(tare__sample_set *set, void *state)
{
    rapl_part *part = state;
    tare__entry entries[ZONES_MAX * 2];
    const char *root = tare__sample_options_of(set)->root;
    int n = list_zones(root, entries);
    for (int i = 0; i < n; i++)
        add_zone(set, part, root, entries[i].name);
    if (part->n)
        return;
    char why[256];
    tare__subject nobody = {.kind = TARE__SUBJECT_SENSOR, .label = "package"};
    tare__sample_absent(set, tare__sample_series_of(set, TARE__M_ENERGY, &nobody), why_none(n, why));
}

static const char *why_not(int failure, const char *path, char out[256])
{
    if (failure != -EACCES && failure != -EPERM)
        return tare__machine_why(failure, path, out);
    snprintf(out, 256, "energy counters need root since Linux 5.10: as root, or %s", FIX);
    return out;
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
        int64_t energy = tare__machine_number(root, zone->path, &zone->fd, &failure);
        if (energy >= 0)
            tare__counter_count(set, &zone->counter, energy, zone->lap);
        else
            tare__sample_absent(set, zone->counter.series, why_not(failure, zone->path, why));
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
    tare__entry entries[ZONES_MAX * 2];
    int n = list_zones(root, entries), failure = 0, seen = 0, read = 0, denied = 0;
    for (int i = 0; i < n; i++) {
        char label[64], path[96];
        if (!label_of(root, entries[i].name, label))
            continue;
        seen++;
        file_of(entries[i].name, "energy_uj", path);
        read += tare__machine_number(root, path, NULL, &failure) >= 0;
        denied += failure == -EACCES || failure == -EPERM;
    }
    char why[256];
    if (seen == 0)
        tare__machine_check(sink, context, "power", "RAPL", TARE__SAMPLE_FAILS,
                            tare__machine_virtual(root) ? "" : "sudo modprobe intel_rapl_msr", "%s",
                            why_none(n, why));
    else if (denied)
        tare__machine_check(sink, context, "power", "RAPL", read ? TARE__SAMPLE_PARTLY : TARE__SAMPLE_FAILS, FIX,
                            "energy counters need root since Linux 5.10");
    else
        tare__machine_check(sink, context, "power", "RAPL", read == seen ? TARE__SAMPLE_WORKS : TARE__SAMPLE_PARTLY,
                            "", "energy of %d of %d packages and memories", read, seen);
}

const tare__sampler tare__part_rapl = {
    .name = "rapl",
    .what = "energy of CPU packages and memory",
    .beats = 10,
    .state_bytes = sizeof(rapl_part),
    .open = open_rapl,
    .tick = tick_rapl,
    .close = close_rapl,
    .doctor = doctor_rapl,
};
