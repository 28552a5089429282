/* power_find: finds the files with the CPU's temperature and energy.
 * Any thread: no state.
 * Must not know series. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>

#include "base/base.h"
#include "files.h"

#define ENTRIES_MAX 128

static void line_of(const char *root, const char *folder, const char *entry, const char *file, char *out, size_t room)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%.63s/%s", folder, entry, file);
    tare__machine_line(root, path, out, room);
}

/* ---- temperature ------------------------------------------------------------------------------------------- */
bool tare__sensor_is_cpu(const char *chip)
{
    static const char *const chips[] = {"coretemp", "k10temp", "k8temp", "zenpower", "cpu_thermal", "cputemp", "cpu"};
    return TARE__IS_ONE_OF(chip, chips);
}

static size_t add_inputs(const char *root, const char *chip, tare__power_file *files, size_t room)
{
    char folder[80];
    tare__entry inputs[ENTRIES_MAX];
    size_t found = 0;
    snprintf(folder, sizeof folder, "/sys/class/hwmon/%.40s", chip);
    int n = tare__machine_list(root, folder, "temp", inputs, ENTRIES_MAX);
    for (int i = 0; i < n && found < room; i++) {
        const char *under = strchr(inputs[i].name, '_');
        if (!under || strcmp(under, "_input") != 0)
            continue;
        tare__power_file *file = &files[found++];
        *file = (tare__power_file){.lap = 0};
        snprintf(file->path, sizeof file->path, "%s/%.40s", folder, inputs[i].name);
        snprintf(file->label, sizeof file->label, "%.63s", inputs[i].name);
    }
    return found;
}

static size_t add_zones(const char *root, tare__power_file *files, size_t room)
{
    static const char *const types[] = {"x86_pkg_temp", "cpu-thermal", "cpu_thermal", "acpitz", "soc_thermal"};
    static const char folder[] = "/sys/class/thermal";
    tare__entry zones[ENTRIES_MAX];
    size_t found = 0;
    int n = tare__machine_list(root, folder, "thermal_zone", zones, ENTRIES_MAX);
    for (int i = 0; i < n && found < room; i++) {
        char type[40];
        line_of(root, folder, zones[i].name, "type", type, sizeof type);
        if (!TARE__IS_ONE_OF(type, types))
            continue;
        tare__power_file *file = &files[found++];
        *file = (tare__power_file){.lap = 0};
        snprintf(file->path, sizeof file->path, "%s/%.63s/temp", folder, zones[i].name);
        snprintf(file->label, sizeof file->label, "%s", type);
    }
    return found;
}

size_t tare__power_temperatures(const char *root, tare__power_file *files, size_t room)
{
    static const char folder[] = "/sys/class/hwmon";
    tare__entry chips[ENTRIES_MAX];
    size_t found = 0;
    int n = tare__machine_list(root, folder, "hwmon", chips, ENTRIES_MAX);
    for (int i = 0; i < n; i++) {
        char name[32];
        line_of(root, folder, chips[i].name, "name", name, sizeof name);
        if (tare__sensor_is_cpu(name))
            found += add_inputs(root, chips[i].name, files + found, room - found);
    }
    return found ? found : add_zones(root, files, room);
}

/* ---- energy ------------------------------------------------------------------------------------------------ */
/* "package-0"; for a zone inside another, intel-rapl:0:1, "package-0 dram". False: not counted. */
static bool label_of(const char *root, const char *entry, char out[64])
{
    char outer[48], name[24], above[32] = "";
    line_of(root, TARE__POWER_ENERGY, entry, "name", name, sizeof name);
    if (strncmp(name, "package", 7) != 0 && strncmp(name, "dram", 4) != 0)
        return false;
    snprintf(outer, sizeof outer, "%.47s", entry);
    char *colon = strrchr(outer, ':');
    if (colon && colon != strchr(outer, ':')) {
        *colon = '\0';
        line_of(root, TARE__POWER_ENERGY, outer, "name", above, sizeof above);
    }
    snprintf(out, 64, "%s%s%s", above, *above ? " " : "", name);
    return true;
}

int tare__power_energies(const char *root, tare__power_file *files, size_t room)
{
    tare__entry entries[ENTRIES_MAX];
    int n = tare__machine_list(root, TARE__POWER_ENERGY, "intel-rapl:", entries, ENTRIES_MAX), failure;
    size_t found = 0;
    for (int i = 0; i < n && found < room; i++) {
        tare__power_file *file = &files[found];
        char path[128];
        if (!label_of(root, entries[i].name, file->label))
            continue;
        snprintf(file->path, sizeof file->path, TARE__POWER_ENERGY "/%.48s/energy_uj", entries[i].name);
        snprintf(path, sizeof path, TARE__POWER_ENERGY "/%.48s/max_energy_range_uj", entries[i].name);
        file->lap = tare__machine_number(root, path, NULL, &failure);
        found++;
    }
    return n < 0 ? n : (int)found;
}

const char *tare__power_why(int failure, const char *path, char out[256])
{
    if (failure != -EACCES && failure != -EPERM)
        return tare__machine_why(failure, path, out);
    snprintf(out, 256, "RAPL counters require root since Linux 5.10: run as root, or %s", TARE__POWER_FIX);
    return out;
}
