/* clock: CPU frequencies, and the number of thermal throttling events.
 * The set's thread owns it.
 * Must not know nominal frequencies. */
#define _GNU_SOURCE
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>

#define CPUS "/sys/devices/system/cpu"
#define CPUS_MAX 512
#define ASKED_MAX 64 /* CPUs whose clock is read; if there are more, evenly spread ones */
#define CPUINFO_BYTES 65536
#define HEAT_MAX (INT64_C(1) << 40) /* larger values are invalid */

/* A counter of thermal throttling: of a core, or of a package, which each of its CPUs repeats. */
typedef struct heat {
    char path[80];
    int64_t last;
} heat;

typedef struct clock_part {
    int cpus[ASKED_MAX];
    size_t n_cpus; /* 0: /proc/cpuinfo */
    heat *heats;
    size_t n_heats, heats_room;
    uint32_t frequency;
    tare__counter throttle;
    char *text; /* of /proc/cpuinfo */
} clock_part;

/* ---- finding ----------------------------------------------------------------------------------------- */

/* Numbers of the existing CPUs; the folder also has "cpufreq" and "cpuidle". */
static size_t list_cpus(const char *root, int *out)
{
    tare__entry *entries = malloc(2 * CPUS_MAX * sizeof *entries);
    size_t found = 0;
    int n = entries ? tare__machine_list(root, CPUS, "cpu", entries, 2 * CPUS_MAX) : 0;
    for (int i = 0; i < n && found < CPUS_MAX; i++) {
        int64_t number = tare__scan_only(entries[i].name + 3, (int)strlen(entries[i].name + 3));
        if (number >= 0 && number < 1 << 20)
            out[found++] = (int)number;
    }
    free(entries);
    return found;
}

static int64_t of_cpu(const char *root, int cpu, const char *file)
{
    char path[128];
    int failure;
    snprintf(path, sizeof path, CPUS "/cpu%d/%s", cpu, file);
    return tare__machine_number(root, path, NULL, &failure);
}

static void add_heat(clock_part *part, const char *root, int cpu, const char *file)
{
    int64_t count = of_cpu(root, cpu, file);
    if (count < 0 || count > HEAT_MAX ||
        !tare__array_fit(&part->heats, &part->heats_room, part->n_heats + 1, sizeof *part->heats))
        return;
    heat *heat = &part->heats[part->n_heats++];
    heat->last = count;
    snprintf(heat->path, sizeof heat->path, CPUS "/cpu%d/%s", cpu, file);
}

static bool seen_before(const int64_t *ids, size_t n, int64_t id)
{
    for (size_t i = 0; i < n && id >= 0; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* CPUs of one core, and of one package, share one counter. */
static void find_heats(clock_part *part, const char *root, const int *cpus, size_t n)
{
    int64_t packages[CPUS_MAX], cores[CPUS_MAX];
    for (size_t i = 0; i < n; i++) {
        packages[i] = of_cpu(root, cpus[i], "topology/physical_package_id");
        int64_t core = of_cpu(root, cpus[i], "topology/core_id");
        bool known = packages[i] >= 0 && packages[i] < INT32_MAX && core >= 0 && core < INT32_MAX;
        cores[i] = known ? packages[i] << 32 | core : -1;
        if (!seen_before(packages, i, packages[i]))
            add_heat(part, root, cpus[i], "thermal_throttle/package_throttle_count");
        if (!seen_before(cores, i, cores[i]))
            add_heat(part, root, cpus[i], "thermal_throttle/core_throttle_count");
    }
}

static void find_clocks(clock_part *part, const char *root, const int *cpus, size_t n)
{
    size_t step = (n + ASKED_MAX - 1) / ASKED_MAX;
    for (size_t i = 0; i < n; i += step)
        if (of_cpu(root, cpus[i], "cpufreq/scaling_cur_freq") > 0)
            part->cpus[part->n_cpus++] = cpus[i];
    if (part->n_cpus == 0)
        part->text = malloc(CPUINFO_BYTES);
}

static void open_clock(tare__sample_set *set, void *state)
{
    clock_part *part = state;
    const char *root = tare__sample_options_of(set)->root;
    int cpus[CPUS_MAX];
    size_t n = list_cpus(root, cpus);
    find_heats(part, root, cpus, n);
    find_clocks(part, root, cpus, n);
    part->frequency = tare__machine_series(set, TARE__M_CPU_FREQUENCY);
    part->throttle.series = tare__machine_series(set, TARE__M_THROTTLE_EVENTS);
    if (part->n_heats == 0)
        tare__sample_absent(set, part->throttle.series,
                            "the kernel does not count it here (" CPUS "/cpu0/thermal_throttle is not there)");
}

/* ---- reading ----------------------------------------------------------------------------------------- */

static int64_t mean_of_cpufreq(const clock_part *part, const char *root)
{
    int64_t sum = 0, n = 0;
    for (size_t i = 0; i < part->n_cpus; i++) {
        int64_t khz = of_cpu(root, part->cpus[i], "cpufreq/scaling_cur_freq");
        if (khz > 0 && khz < 1000000000) {
            sum += khz * 1000;
            n++;
        }
    }
    return n ? sum / n : -1;
}

/* "cpu MHz\t\t: 2300.000" per CPU; with very many CPUs only the first ones. */
static int64_t mean_of_cpuinfo(char *text, const char *root)
{
    if (!text)
        return -1;
    int got = tare__sample_read(root, "/proc/cpuinfo", text, CPUINFO_BYTES);
    tare__scan rest = tare__scan_of(text, got), line;
    int64_t sum = 0, n = 0, mhz;
    while (tare__scan_line(&rest, &line)) {
        if (!tare__scan_skip(&line, "cpu MHz"))
            continue;
        tare__scan_blanks(&line);
        if (tare__scan_skip(&line, ":") && tare__scan_number(&line, &mhz) && mhz > 0 && mhz < 1000000) {
            sum += mhz * 1000000;
            n++;
        }
    }
    return n ? sum / n : -1;
}

static int64_t mean_of(const clock_part *part, const char *root)
{
    return part->n_cpus ? mean_of_cpufreq(part, root) : mean_of_cpuinfo(part->text, root);
}

static void tick_clock(tare__sample_set *set, void *state, uint64_t now_ns)
{
    (void)now_ns;
    clock_part *part = state;
    const char *root = tare__sample_options_of(set)->root;
    int64_t hertz = mean_of(part, root), sum = 0;
    if (hertz > 0)
        tare__sample_put(set, part->frequency, hertz);
    else
        tare__sample_absent(set, part->frequency, "clock unavailable in cpufreq and /proc/cpuinfo");
    for (size_t i = 0; i < part->n_heats; i++) {
        int failure;
        heat *heat = &part->heats[i];
        int64_t count = tare__machine_number(root, heat->path, NULL, &failure);
        if (count >= heat->last && count <= HEAT_MAX)
            heat->last = count; /* for an offline CPU the last value is kept */
        sum += heat->last;
    }
    if (part->n_heats)
        tare__counter_hold(set, &part->throttle, sum);
}

static void close_clock(void *state)
{
    clock_part *part = state;
    free(part->heats);
    free(part->text);
}

static void doctor_clock(const char *root, tare__sample_check_sink *sink, void *context)
{
    clock_part part = {0};
    int cpus[CPUS_MAX];
    size_t n = list_cpus(root, cpus);
    find_heats(&part, root, cpus, n);
    find_clocks(&part, root, cpus, n);
    int64_t hertz = mean_of(&part, root);
    if (hertz > 0)
        tare__machine_check(sink, context, "power", "cpufreq", part.n_cpus ? TARE__SAMPLE_WORKS : TARE__SAMPLE_PARTLY,
                            "", part.n_cpus ? "%.2f GHz now" : "%.2f GHz in /proc/cpuinfo, which may be the nominal "
                            "clock", (double)hertz / 1e9);
    else
        tare__machine_check(sink, context, "power", "cpufreq", TARE__SAMPLE_FAILS, "",
                            "clock unavailable in cpufreq and /proc/cpuinfo");
    if (part.n_heats)
        tare__machine_check(sink, context, "power", "thermal_throttle", TARE__SAMPLE_WORKS, "", "%zu counter%s",
                            part.n_heats, part.n_heats == 1 ? "" : "s");
    else
        tare__machine_check(sink, context, "power", "thermal_throttle", TARE__SAMPLE_FAILS, "",
                            "not counted by the kernel: a virtual machine, or not an Intel CPU");
    close_clock(&part);
}

const tare__sampler tare__part_clock = {
    .name = "clock",
    .every = 10,
    .state_bytes = sizeof(clock_part),
    .open = open_clock,
    .tick = tick_clock,
    .close = close_clock,
    .doctor = doctor_clock,
};
