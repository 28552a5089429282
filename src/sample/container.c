/* container: limits of the job (CPU and memory limits of its control groups, its CPUs), usage of its group,
 * and how often it was throttled or killed. The set's thread owns it.
 * Must not know which program created the groups. */
#define _GNU_SOURCE
#include "cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SLOW_NS 1000000000u  /* limits and memberships rarely change */
#define EARLY_NS 2000000000u /* … but a launcher (systemd-run --scope) moves itself before it executes the program */
#define STAT_SHARE 500       /* the kernel computes memory.stat at each read: at most once in this many ticks */

/* ---- files of both versions -------------------------------------------------------------------------- */
typedef struct place {
    const char *file; /* NULL: not in this version */
    const char *key;  /* key of a line in it; NULL: the file is one number */
    int64_t times;
} place;

typedef struct figure {
    tare__metric metric;
    tare__controller controller, v1; /* controller that determines the version; where version 1 has the file */
    bool own;                        /* of the process's own group, even if one above has the limit */
    place places[3];                 /* by version */
} figure;

#define CPU TARE__CGROUP_CPU, TARE__CGROUP_CPU
#define MEMORY TARE__CGROUP_MEMORY, TARE__CGROUP_MEMORY
/* Values of one file are adjacent: it is read once. Version 1 counts kills in the victim's own group. */
static const figure figures[] = {
    {TARE__M_CPU_USAGE, TARE__CGROUP_CPU, TARE__CGROUP_CPUACCT, false,
     {{0}, {"cpuacct.usage", NULL, 1}, {"cpu.stat", "usage_usec", 1000}}},
    {TARE__M_CPU_PERIODS, CPU, false, {{0}, {"cpu.stat", "nr_periods", 1}, {"cpu.stat", "nr_periods", 1}}},
    {TARE__M_CPU_THROTTLED_PERIODS, CPU, false,
     {{0}, {"cpu.stat", "nr_throttled", 1}, {"cpu.stat", "nr_throttled", 1}}},
    {TARE__M_CPU_THROTTLED, CPU, false,
     {{0}, {"cpu.stat", "throttled_time", 1}, {"cpu.stat", "throttled_usec", 1000}}},
    {TARE__M_MEMORY_USED, MEMORY, false, {{0}, {"memory.usage_in_bytes", NULL, 1}, {"memory.current", NULL, 1}}},
    {TARE__M_MEMORY_PEAK, MEMORY, false, {{0}, {"memory.max_usage_in_bytes", NULL, 1}, {"memory.peak", NULL, 1}}},
    {TARE__M_OOM, MEMORY, false, {{0}, {0}, {"memory.events", "oom", 1}}},
    {TARE__M_OOM_KILLS, MEMORY, true,
     {{0}, {"memory.oom_control", "oom_kill", 1}, {"memory.events", "oom_kill", 1}}},
    {TARE__M_SWAPPED, MEMORY, false, {{0}, {"memory.stat", "total_swap", 1}, {"memory.swap.current", NULL, 1}}},
    {TARE__M_RSS_ANON, MEMORY, false, {{0}, {"memory.stat", "total_rss", 1}, {"memory.stat", "anon", 1}}},
    {TARE__M_RSS_FILE, MEMORY, false, {{0}, {"memory.stat", "total_cache", 1}, {"memory.stat", "file", 1}}},
};
enum { FIGURES = TARE__COUNT_OF(figures), FIRST_OF_STAT = FIGURES - 3 };

typedef struct container {
    uint64_t first_ns, slow_due_ns, stat_due_ns;
    uint64_t moves; /* each group it was in is a separate subject */
    tare__cgroups groups;
    tare__cgroup_limit cpu, memory;
    int64_t memory_total; /* of the machine; NONE: unknown */
    int cpus;
    char label[TARE__PATH_BYTES];
    uint32_t cpu_limit, memory_limit;
    uint32_t series[FIGURES];
    char path[FIGURES][TARE__PATH_BYTES + 64]; /* "": no such file */
    int fd[FIGURES];
    bool found, pressed;
    tare__pressure pressure;
    char text[16384];
} container;

static const char *root_of(tare__sample_set *set)
{
    return tare__sample_options_of(set)->root;
}

static pid_t target_of(tare__sample_set *set)
{
    return tare__sample_options_of(set)->target;
}

static int64_t memory_of_machine(const char *root)
{
    static const char *const key[1] = {"MemTotal"};
    char text[4096];
    int64_t kib, bytes;
    tare__scan_keys(text, tare__sample_read(root, "/proc/meminfo", text, sizeof text), key, 1, &kib);
    return tare__scan_times(kib, 1024, &bytes) ? bytes : TARE__SCAN_NONE;
}

/* ---- limits ------------------------------------------------------------------------------------------ */

static int64_t cpu_limit_of(const container *container)
{
    int64_t cpus = container->cpus * (int64_t)1000, quota = container->cpu.value;
    if (quota < 0)
        return cpus;
    return cpus > 0 && cpus < quota ? cpus : quota;
}

/* NONE: unknown. */
static int64_t memory_limit_of(const container *container)
{
    int64_t total = container->memory_total, limit = container->memory.value;
    if (limit < 0)
        return total;
    return total >= 0 && total < limit ? total : limit;
}

static bool has_limit(const container *container)
{
    return container->cpu.value >= 0 ||
           (container->memory.value >= 0 && memory_limit_of(container) == container->memory.value);
}

static void read_limits(container *container, const char *root, pid_t target)
{
    tare__cgroup_cpu_limit(root, &container->groups, &container->cpu);
    tare__cgroup_memory_limit(root, &container->groups, &container->memory);
    container->cpus = tare__cgroup_cpus(root, target, &container->groups, container->cpus);
}

/* "no limit", or the path of the process's group where it has a limit. */
static void write_label(const container *container, char out[TARE__PATH_BYTES])
{
    const tare__cgroups *groups = &container->groups;
    bool by_memory = container->memory.value >= 0 && memory_limit_of(container) == container->memory.value;
    const char *path = groups->of[by_memory ? TARE__CGROUP_MEMORY : TARE__CGROUP_CPU].path;
    snprintf(out, TARE__PATH_BYTES, "%s", has_limit(container) ? path : "no limit");
}

static void put_limits(tare__sample_set *set, const container *container)
{
    int64_t cpu = cpu_limit_of(container), memory = memory_limit_of(container);
    if (cpu > 0)
        tare__sample_put(set, container->cpu_limit, cpu);
    else
        tare__sample_absent(set, container->cpu_limit, "the number of CPUs is unavailable");
    if (memory >= 0)
        tare__sample_put(set, container->memory_limit, memory);
    else
        tare__sample_absent(set, container->memory_limit, "/proc/meminfo has no such value");
}

/* ---- series and files of a group --------------------------------------------------------------------- */

/* Usage is read where the limit is, so that both can be compared: a group above has it for all below. */
static const char *folder_of(const container *container, const figure *figure)
{
    const tare__cgroup *of = container->groups.of, *group = &of[figure->controller];
    const tare__cgroup *at = group->version == 1 ? &of[figure->v1] : group;
    bool elsewhere = strcmp(at->folder, group->folder) != 0;
    if (elsewhere || (figure->own && group->version == 1))
        return at->folder;
    return figure->controller == TARE__CGROUP_CPU ? container->cpu.folder : container->memory.folder;
}

/* Version 1 may count a process's CPU time in a group that is not the one with the limit. */
static bool counted_elsewhere(const container *container, const figure *figure)
{
    const tare__cgroup *of = container->groups.of;
    return of[figure->controller].version == 1 && strcmp(of[figure->v1].path, of[figure->controller].path) != 0;
}

static void tell_figure(tare__sample_set *set, container *container, size_t i)
{
    const figure *figure = &figures[i];
    int version = container->groups.of[figure->controller].version;
    const char *file = figure->places[version].file;
    container->path[i][0] = '\0';
    container->fd[i] = -1;
    if (version == 0)
        tare__sample_absent(set, container->series[i], container->groups.why);
    else if (!file)
        tare__sample_absent(set, container->series[i], "not counted by cgroup v1");
    else if (counted_elsewhere(container, figure))
        tare__sample_absent(set, container->series[i], "counted in another control group than the limited one");
    else
        snprintf(container->path[i], sizeof container->path[i], "%s/%s", folder_of(container, figure), file);
}

/* Only version 2 has pressure; in hybrid setups its group may differ from that of the limits. */
static bool has_pressure(const tare__cgroup of[TARE__CONTROLLERS])
{
    const tare__cgroup *unified = &of[TARE__CGROUP_UNIFIED];
    return unified->version == 2 && (strcmp(unified->path, of[TARE__CGROUP_MEMORY].path) == 0 ||
                                     strcmp(unified->path, of[TARE__CGROUP_CPU].path) == 0);
}

static void tell_pressure(tare__sample_set *set, container *container, const tare__subject *subject)
{
    const tare__cgroup *of = container->groups.of, *unified = &of[TARE__CGROUP_UNIFIED];
    tare__pressure_open(set, &container->pressure, unified->folder, ".pressure", subject);
    container->pressed = has_pressure(of);
    bool any = of[TARE__CGROUP_MEMORY].version + of[TARE__CGROUP_CPU].version > 0;
    for (size_t i = 0; i < TARE__PRESSURES && !container->pressed; i++)
        tare__sample_absent(set, container->pressure.series[i],
                            any ? "pressure requires cgroup v2; the limits are in cgroup v1"
                                : container->groups.why);
}

static void tell_series(tare__sample_set *set, container *container)
{
    tare__subject subject = {.kind = TARE__SUBJECT_CONTAINER, .key = container->moves, .label = container->label};
    container->cpu_limit = tare__sample_series_of(set, TARE__M_CPU_LIMIT, &subject);
    container->memory_limit = tare__sample_series_of(set, TARE__M_MEMORY_LIMIT, &subject);
    for (size_t i = 0; i < FIGURES; i++) {
        container->series[i] = tare__sample_series_of(set, figures[i].metric, &subject);
        tell_figure(set, container, i);
    }
    tell_pressure(set, container, &subject);
}

static void find(tare__sample_set *set, container *container)
{
    tare__cgroup_find(root_of(set), target_of(set), &container->groups);
    read_limits(container, root_of(set), target_of(set));
    write_label(container, container->label);
    tell_series(set, container);
    container->found = true;
}

static void forget(container *container)
{
    for (size_t i = 0; i < FIGURES && container->found; i++)
        tare__machine_close(&container->fd[i]);
    if (container->found)
        tare__pressure_close(&container->pressure);
    container->found = false;
}

static void leave(tare__sample_set *set, container *container)
{
    static const char why[] = "the program moved to another control group, or its limits changed";
    for (size_t i = 0; i < FIGURES; i++)
        tare__sample_absent(set, container->series[i], why);
    for (size_t i = 0; i < TARE__PRESSURES; i++)
        tare__sample_absent(set, container->pressure.series[i], why);
    tare__sample_absent(set, container->cpu_limit, why);
    tare__sample_absent(set, container->memory_limit, why);
    forget(container);
    container->moves++;
}

/* ---- ticks ------------------------------------------------------------------------------------------- */

/* The top group of version 2 has no limits and therefore no files for them. */
static const char *why_not(const container *container, size_t i, int failure, char out[256])
{
    const tare__cgroup *group = &container->groups.of[figures[i].controller];
    const char *path = container->path[i], *file = strrchr(path, '/') + 1;
    bool top = (size_t)(file - 1 - path) <= group->mount_bytes;
    if (failure == -ENODEV)
        return "the control group was removed";
    if (group->version == 2 && (failure == -ENOENT || failure == 0))
        snprintf(out, 256,
                 top ? "the top control group has no %s"
                     : "the control group has no %s: its controller "
                       "is not enabled there, or the kernel is older",
                 file);
    else
        tare__machine_why(failure, path, out);
    return out;
}

static void put_figure(tare__sample_set *set, const container *container, size_t i, int got)
{
    const place *place = &figures[i].places[container->groups.of[figures[i].controller].version];
    char why[256];
    int64_t value;
    if (place->key)
        tare__scan_keys(container->text, got, &place->key, 1, &value);
    else
        value = tare__scan_only(container->text, got);
    if (tare__scan_times(value, place->times, &value)) {
        tare__sample_put(set, container->series[i], value);
        return;
    }
    tare__sample_absent(set, container->series[i], why_not(container, i, got < 0 ? got : 0, why));
}

static void tick_figures(tare__sample_set *set, container *container, size_t from, size_t to)
{
    int got = 0;
    const char *path_before = "";
    for (size_t i = from; i < to; i++) {
        const char *path = container->path[i];
        if (!*path)
            continue;
        if (strcmp(path, path_before) != 0)
            got = tare__sample_pread(root_of(set), path, &container->fd[i], container->text, sizeof container->text);
        path_before = path;
        put_figure(set, container, i, got);
    }
}

static void follow(tare__sample_set *set, container *container)
{
    leave(set, container);
    find(set, container);
    put_limits(set, container);
}

/* A removed group keeps the last known limits. */
static bool is_removed(tare__sample_set *set, const tare__cgroup *group)
{
    return group->version > 0 && !tare__machine_exists(root_of(set), group->folder);
}

static void update_limits(tare__sample_set *set, container *container)
{
    if (is_removed(set, &container->groups.of[TARE__CGROUP_CPU]) ||
        is_removed(set, &container->groups.of[TARE__CGROUP_MEMORY]))
        return;
    char label[TARE__PATH_BYTES];
    tare__cgroup_limit cpu = container->cpu, memory = container->memory;
    read_limits(container, root_of(set), target_of(set));
    write_label(container, label);
    if (strcmp(label, container->label) != 0 || strcmp(cpu.folder, container->cpu.folder) != 0 ||
        strcmp(memory.folder, container->memory.folder) != 0)
        follow(set, container);
    else
        put_limits(set, container);
}

static void update_groups(tare__sample_set *set, container *container, uint64_t now_ns)
{
    bool slow = now_ns >= container->slow_due_ns;
    if (container->first_ns == 0)
        container->first_ns = now_ns;
    if (slow)
        container->slow_due_ns = now_ns + SLOW_NS;
    if ((slow || now_ns - container->first_ns < EARLY_NS) &&
        tare__cgroup_moved(root_of(set), target_of(set), &container->groups))
        follow(set, container);
    else if (slow)
        update_limits(set, container);
}

static void open_container(tare__sample_set *set, void *state)
{
    container *container = state;
    container->memory_total = memory_of_machine(root_of(set));
    find(set, container);
}

static void tick_container(tare__sample_set *set, void *state, uint64_t now_ns)
{
    container *container = state;
    update_groups(set, container, now_ns);
    tick_figures(set, container, 0, FIRST_OF_STAT);
    if (now_ns >= container->stat_due_ns) {
        uint64_t before = tare__sample_cost_clock(set);
        tick_figures(set, container, FIRST_OF_STAT, FIGURES);
        container->stat_due_ns = now_ns + (tare__sample_cost_clock(set) - before) * STAT_SHARE;
    }
    if (container->pressed)
        tare__pressure_tick(set, &container->pressure);
}

static void close_container(void *state)
{
    forget(state);
}

/* ---- doctor ------------------------------------------------------------------------------------------ */

static void check_limits(const container *container, tare__sample_check_sink *sink, void *context)
{
    char memory[TARE__UNIT_BYTES];
    const tare__cgroup *of = container->groups.of;
    if (of[TARE__CGROUP_CPU].version == 0 && of[TARE__CGROUP_MEMORY].version == 0) {
        tare__machine_check(sink, context, "container", "control groups", TARE__SAMPLE_FAILS,
                            "sudo mount -t cgroup2 cgroup2 /sys/fs/cgroup", "%s", container->groups.why);
        return;
    }
    tare__machine_check(sink, context, "container", "control groups", TARE__SAMPLE_WORKS, "",
                        "version %d for CPU, %d for memory; a job may use %.2f cores, %s%s",
                        of[TARE__CGROUP_CPU].version, of[TARE__CGROUP_MEMORY].version,
                        (double)cpu_limit_of(container) / 1000,
                        tare__unit_bytes(memory, (double)memory_limit_of(container)),
                        has_limit(container) ? "" : " (no limit)");
}

static void check_memory(const container *container, const char *root, tare__sample_check_sink *sink, void *context)
{
    const tare__cgroup *group = &container->groups.of[TARE__CGROUP_MEMORY];
    char path[TARE__PATH_BYTES + 64], fix[256] = "";
    const char *file = group->version == 1 ? "memory.usage_in_bytes" : "memory.current";
    bool top = strlen(group->folder) <= group->mount_bytes;
    if (group->version == 0)
        return;
    snprintf(path, sizeof path, "%s/%s", group->folder, file);
    bool works = tare__machine_exists(root, path);
    if (!works && !top)
        snprintf(fix, sizeof fix, "echo +memory | sudo tee %.150s/../cgroup.subtree_control", group->folder);
    if (works)
        tare__machine_check(sink, context, "container", file, TARE__SAMPLE_WORKS, "", "memory of the group %.150s",
                            group->path);
    else
        tare__machine_check(sink, context, "container", file, TARE__SAMPLE_PARTLY, fix,
                            top ? "the top control group has no %s"
                                : "the control group has no %s: its controller is not enabled there", file);
}

static void check_pressure(const container *container, const char *root, tare__sample_check_sink *sink, void *context)
{
    const tare__cgroup *group = &container->groups.of[TARE__CGROUP_UNIFIED];
    char path[TARE__PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/memory.pressure", group->folder);
    bool own = has_pressure(container->groups.of);
    if (own && tare__machine_exists(root, path))
        tare__machine_check(sink, context, "container", "pressure", TARE__SAMPLE_WORKS, "",
                            "time the group lost waiting for CPU, memory and disks");
    else
        tare__machine_check(sink, context, "container", "pressure", TARE__SAMPLE_FAILS, "",
                            own ? "no pressure of control groups in this kernel (see /proc/pressure)"
                                : "requires cgroup v2; the limits are in cgroup v1");
}

static void doctor_container(const char *root, tare__sample_check_sink *sink, void *context)
{
    container *probe = calloc(1, sizeof *probe);
    if (!probe)
        return;
    probe->memory_total = memory_of_machine(root);
    tare__cgroup_find(root, 0, &probe->groups);
    read_limits(probe, root, 0);
    check_limits(probe, sink, context);
    check_memory(probe, root, sink, context);
    check_pressure(probe, root, sink, context);
    free(probe);
}

const tare__sampler tare__sampler_container = {
    .name = "container",
    .every = 1,
    .state_bytes = sizeof(container),
    .open = open_container,
    .tick = tick_container,
    .close = close_container,
    .doctor = doctor_container,
};
