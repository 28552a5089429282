/* limits: resource limits of a process: quotas and limits of its control groups, its available CPUs.
 * The set's thread owns it.
 * Must not know what it uses. */
#define _GNU_SOURCE
#include "cgroup.h"

#include <stdio.h>
#include <unistd.h>

#define THREADS_MAX 64

static int64_t number_in(const char *root, const char *folder, const char *file)
{
    char path[TARE__PATH_BYTES + 64];
    int failure;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return tare__machine_number(root, path, NULL, &failure);
}

/* ---- CPU quota, in thousandths of a core; -1: none --------------------------------------------------- */

static int64_t milli_of(int64_t quota, int64_t period)
{
    int64_t milli;
    if (quota <= 0 || period <= 0 || !tare__scan_times(quota, 1000, &milli))
        return -1;
    return milli / period > 0 ? milli / period : 1;
}

/* "200000 100000", "max 100000" */
static int64_t quota_v2(const char *root, const char *folder)
{
    char path[TARE__PATH_BYTES + 64], text[64];
    int64_t quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    tare__scan scan = tare__scan_of(text, tare__sample_read(root, path, text, sizeof text));
    if (!tare__scan_number(&scan, &quota) || !tare__scan_number(&scan, &period))
        return -1;
    return milli_of(quota, period);
}

static int64_t quota_v1(const char *root, const char *folder)
{
    return milli_of(number_in(root, folder, "cpu.cfs_quota_us"), number_in(root, folder, "cpu.cfs_period_us"));
}

/* ---- memory limit; -1: none -------------------------------------------------------------------------- */

static int64_t memory_v2(const char *root, const char *folder)
{
    int64_t bytes = number_in(root, folder, "memory.max"); /* "max" is not a number */
    return bytes >= 0 ? bytes : -1;
}

static int64_t memory_v1(const char *root, const char *folder)
{
    int64_t bytes = number_in(root, folder, "memory.limit_in_bytes");
    return bytes >= 0 && bytes < INT64_MAX / 2 ? bytes : -1; /* "none" is INT64_MAX, rounded down to pages */
}

/* ---- over all groups above the process's --------------------------------------------------------------- */

static void smallest(const char *root, const tare__cgroup *group,
                     int64_t (*limit_of)(const char *root, const char *folder), tare__cgroup_limit *out)
{
    char folder[TARE__PATH_BYTES];
    out->value = -1;
    memcpy(out->folder, group->folder, sizeof out->folder);
    memcpy(folder, group->folder, sizeof folder);
    if (group->version == 0)
        return;
    do {
        int64_t value = limit_of(root, folder);
        if (value >= 0 && (out->value < 0 || value < out->value)) {
            out->value = value;
            memcpy(out->folder, folder, sizeof out->folder);
        }
    } while (tare__cgroup_climb(group, folder));
}

void tare__cgroup_cpu_limit(const char *root, const tare__cgroups *groups, tare__cgroup_limit *out)
{
    const tare__cgroup *group = &groups->of[TARE__CGROUP_CPU];
    smallest(root, group, group->version == 1 ? quota_v1 : quota_v2, out);
}

/* Version 1 also reports the limit of groups that are not visible here. */
static int64_t hierarchical_v1(const char *root, const tare__cgroup *group)
{
    static const char *const key[1] = {"hierarchical_memory_limit"};
    char path[TARE__PATH_BYTES + 64], text[8192];
    int64_t bytes;
    snprintf(path, sizeof path, "%s/memory.stat", group->folder);
    tare__scan_keys(text, tare__sample_read(root, path, text, sizeof text), key, 1, &bytes);
    return bytes >= 0 && bytes < INT64_MAX / 2 ? bytes : -1;
}

void tare__cgroup_memory_limit(const char *root, const tare__cgroups *groups, tare__cgroup_limit *out)
{
    const tare__cgroup *group = &groups->of[TARE__CGROUP_MEMORY];
    smallest(root, group, group->version == 1 ? memory_v1 : memory_v2, out);
    if (group->version != 1)
        return;
    int64_t above = hierarchical_v1(root, group);
    if (above >= 0 && (out->value < 0 || above < out->value))
        out->value = above;
}

/* ---- CPUs -------------------------------------------------------------------------------------------- */

static int cpus_in(const char *root, const char *path)
{
    char text[4096];
    int got = tare__sample_read(root, path, text, sizeof text);
    return got > 0 ? tare__scan_cpus(text, got) : -1;
}

static int cpuset_of(const char *root, const tare__cgroup *group)
{
    static const char *const files[3][2] = {
        {"", ""}, {"cpuset.effective_cpus", "cpuset.cpus"}, {"cpuset.cpus.effective", "cpuset.cpus"}};
    int cpus = -1;
    for (size_t i = 0; i < 2 && cpus <= 0 && group->version > 0; i++) {
        char path[TARE__PATH_BYTES + 64];
        snprintf(path, sizeof path, "%s/%s", group->folder, files[group->version][i]);
        cpus = cpus_in(root, path);
    }
    return cpus;
}

/* "Cpus_allowed:\tffff,00000001", 32 CPUs per word: the words, lowest first. Their number; 0: unavailable. */
#define PIECES 64
static size_t allowed_in(const char *root, const char *status, uint32_t pieces[PIECES])
{
    char text[16384];
    tare__scan rest = tare__scan_of(text, tare__sample_read(root, status, text, sizeof text)), line;
    while (tare__scan_line(&rest, &line)) {
        if (!tare__scan_skip(&line, "Cpus_allowed:"))
            continue;
        size_t n = 0;
        uint32_t piece = 0, shift = 0;
        for (const char *c = line.end; c-- > line.at && n < PIECES;) {
            uint32_t digit = *c >= '0' && *c <= '9' ? (uint32_t)(*c - '0') : (uint32_t)((*c | 32) - 'a' + 10);
            if (digit < 16 && shift < 32) {
                piece |= digit << shift;
                shift += 4;
                continue;
            }
            pieces[n++] = piece;
            piece = shift = 0;
            if (*c != ',')
                return n;
        }
        if (shift > 0 && n < PIECES)
            pieces[n++] = piece;
        return n;
    }
    return 0;
}

static int count_of(const uint32_t pieces[PIECES])
{
    int count = 0;
    for (size_t i = 0; i < PIECES; i++)
        count += __builtin_popcount(pieces[i]);
    return count;
}

/* A program may bind its first thread to one CPU and others to others (OpenMP does): unless the first one may run on
 * as many CPUs as before, all threads are checked. */
static int affinity_of(const char *root, pid_t target, int before)
{
    char path[128], folder[64];
    uint32_t all[PIECES] = {0}, one[PIECES] = {0};
    snprintf(folder, sizeof folder, target > 0 ? "/proc/%d" : "/proc/self", (int)target);
    snprintf(path, sizeof path, "%s/status", folder);
    if (allowed_in(root, path, all) == 0)
        return before; /* it ended */
    if (before > 0 && count_of(all) >= before)
        return count_of(all);
    tare__entry threads[THREADS_MAX];
    snprintf(path, sizeof path, "%s/task", folder);
    int n = tare__machine_list(root, path, "", threads, THREADS_MAX);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/task/%.20s/status", folder, threads[i].name);
        memset(one, 0, sizeof one);
        size_t pieces = threads[i].name[0] == '.' ? 0 : allowed_in(root, path, one);
        for (size_t j = 0; j < pieces; j++)
            all[j] |= one[j];
    }
    return count_of(all);
}

int tare__cgroup_cpus(const char *root, pid_t target, const tare__cgroups *groups, int before)
{
    int online = cpus_in(root, "/sys/devices/system/cpu/online");
    if (online <= 0)
        online = (int)sysconf(_SC_NPROCESSORS_ONLN);
    const int found[] = {online, cpuset_of(root, &groups->of[TARE__CGROUP_CPUSET]),
                         affinity_of(root, target, before)};
    int least = 0;
    for (size_t i = 0; i < TARE__COUNT_OF(found); i++)
        if (found[i] > 0 && (least == 0 || found[i] < least))
            least = found[i];
    return least;
}
