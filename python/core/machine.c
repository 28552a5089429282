/* machine: readings of /proc/stat, diskstats, net/dev, meminfo and statm. No descriptor is kept open: these are read a
 * few times per second, and the program may close a kept descriptor and reuse its number.
 * Any thread; the shared reading is guarded by the interpreter's lock. Must not know blocks. */
#define _GNU_SOURCE
#include "machine.h"
#include "readings.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sample/cgroup.h"

#define TEXT_MAX 32768

static void read_cpu(tare__py_machine *to)
{
    char text[512]; /* the first line, of all CPUs */
    int64_t ticks[TARE__CPU_COLUMNS] = {0};
    tare__scan all = tare__scan_of(text, tare__sample_read("", "/proc/stat", text, sizeof text)), line;
    if (!tare__scan_line(&all, &line) || !tare__scan_skip(&line, "cpu ") ||
        tare__line_numbers(&line, ticks, TARE__CPU_COLUMNS) < TARE__CPU_COLUMNS_MIN)
        return;
    for (int i = 0; i < TARE__CPU_COLUMNS; i++)
        to->cpu_total += (uint64_t)ticks[i];
    to->cpu_idle = (uint64_t)ticks[TARE__CPU_IDLE];
    to->cpu_iowait = (uint64_t)ticks[TARE__CPU_IOWAIT];
    to->has |= TARE__PY_CPU;
}

/* Checked once for each name: the check takes as long as reading all disks. */
static bool is_counted(tare__scan word)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        char name[32];
        bool counted;
    } known[256];
    static size_t n;
    char name[32];
    size_t i = 0;
    snprintf(name, sizeof name, "%.*s", (int)(word.end - word.at), word.at);
    pthread_mutex_lock(&lock);
    while (i < n && strcmp(known[i].name, name) != 0)
        i++;
    bool counted = i < n ? known[i].counted : !tare__disk_is_spare(name) && tare__disk_is_whole("", name);
    if (i == n && n < sizeof known / sizeof *known) {
        memcpy(known[n].name, name, sizeof name);
        known[n++].counted = counted;
    }
    pthread_mutex_unlock(&lock);
    return counted;
}

static void read_disks(tare__py_machine *to)
{
    char *text = malloc(TEXT_MAX);
    int got = text ? tare__sample_read("", "/proc/diskstats", text, TEXT_MAX) : 0;
    tare__scan all = tare__scan_of(text, got), line;
    while (to->disks < TARE__PY_DISKS_MAX && tare__scan_line(&all, &line)) {
        int64_t numbers[TARE__DISK_COLUMNS];
        if (is_counted(tare__line_disk(&line)) &&
            tare__line_numbers(&line, numbers, TARE__DISK_COLUMNS) == TARE__DISK_COLUMNS)
            to->disk_ms[to->disks++] = (uint32_t)numbers[TARE__DISK_BUSY_MS];
    }
    if (to->disks)
        to->has |= TARE__PY_DISK;
    free(text);
}

static void read_network(tare__py_machine *to)
{
    char *text = malloc(TEXT_MAX);
    int got = text ? tare__sample_read("", "/proc/self/net/dev", text, TEXT_MAX) : 0;
    tare__scan all = tare__scan_of(text, got), line, name;
    while (tare__scan_line(&all, &line)) {
        int64_t numbers[TARE__NET_COLUMNS];
        if (!tare__line_network(&line, &name) ||
            tare__line_numbers(&line, numbers, TARE__NET_COLUMNS) < TARE__NET_COLUMNS)
            continue;
        to->has |= TARE__PY_NETWORK;
        if (tare__scan_is(name, "lo"))
            continue;
        to->received += (uint64_t)numbers[TARE__NET_RECEIVED];
        to->sent += (uint64_t)numbers[TARE__NET_SENT];
    }
    free(text);
}

static void read_memory(tare__py_machine *to)
{
    static const char *const keys[] = {"MemTotal", "MemAvailable"};
    char text[512];
    int64_t kilobytes[2];
    tare__scan_keys(text, tare__sample_read("", "/proc/meminfo", text, sizeof text), keys, 2, kilobytes);
    if (kilobytes[0] < 0 || kilobytes[1] < 0)
        return;
    to->memory_total = (uint64_t)kilobytes[0] * 1024;
    to->memory_available = (uint64_t)kilobytes[1] * 1024;
    to->has |= TARE__PY_MEMORY;
}

static void read_rss(tare__py_machine *to)
{
    char text[160];
    int64_t pages[2];
    tare__scan all = tare__scan_of(text, tare__sample_read("", "/proc/self/statm", text, sizeof text));
    if (tare__line_numbers(&all, pages, 2) < 2)
        return;
    to->rss = (uint64_t)pages[1] * (uint64_t)sysconf(_SC_PAGESIZE);
    to->has |= TARE__PY_RSS;
}

void tare__py_machine_read(tare__py_machine *to, uint32_t what)
{
    memset(to, 0, sizeof *to);
    to->at_ns = tare__py_clock_ns();
    if (what & TARE__PY_CPU)
        read_cpu(to);
    if (what & TARE__PY_DISK)
        read_disks(to);
    if (what & TARE__PY_NETWORK)
        read_network(to);
    if (what & TARE__PY_MEMORY)
        read_memory(to);
    if (what & TARE__PY_RSS)
        read_rss(to);
}

/* ---- between two ------------------------------------------------------------------------------------------- */

static double percent(double part, double whole)
{
    return whole > 0 ? fmin(fmax(100 * part / whole, 0), 100) : NAN;
}

/* That of the busiest disk. */
static double disk_percent(const tare__py_machine *from, const tare__py_machine *to)
{
    double most = NAN, elapsed_ms = (double)(to->at_ns - from->at_ns) / 1e6;
    if (from->disks != to->disks)
        return NAN;
    for (uint32_t i = 0; i < to->disks; i++)
        most = fmax(most, percent((double)(uint32_t)(to->disk_ms[i] - from->disk_ms[i]), elapsed_ms));
    return most;
}

tare__py_usage tare__py_machine_between(const tare__py_machine *from, const tare__py_machine *to)
{
    tare__py_usage usage = {NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    uint32_t both = from->has & to->has;
    bool long_enough = to->at_ns - from->at_ns >= TARE__PY_SHORTEST_NS;
    if ((both & TARE__PY_CPU) && long_enough) {
        double total = (double)(to->cpu_total - from->cpu_total);
        double idle = (double)(to->cpu_idle - from->cpu_idle), waiting = (double)(to->cpu_iowait - from->cpu_iowait);
        usage.cpu_percent = percent(total - idle - waiting, total);
        usage.iowait_percent = percent(waiting, total);
    }
    if ((both & TARE__PY_DISK) && long_enough)
        usage.disk_percent = disk_percent(from, to);
    if (both & TARE__PY_NETWORK) {
        usage.received = (double)(to->received - from->received);
        usage.sent = (double)(to->sent - from->sent);
    }
    if (to->has & TARE__PY_MEMORY)
        usage.memory_percent = percent((double)(to->memory_total - to->memory_available), (double)to->memory_total);
    if (to->has & TARE__PY_RSS)
        usage.rss = (double)to->rss;
    return usage;
}

/* ---- the shared one ---------------------------------------------------------------------------------------- */

#define RECENT_NS 5000000u

void tare__py_machine_recent(tare__py_machine *machine, uint32_t what)
{
    static tare__py_machine recent;
    static uint32_t requested;
    uint64_t now = tare__py_clock_ns();
    if (!recent.at_ns || now - recent.at_ns > RECENT_NS || (what & ~requested)) {
        tare__py_machine_read(&recent, what);
        requested = what;
    }
    *machine = recent;
}

/* ---- what this process may use ------------------------------------------------------------------------------ */

int tare__py_cpus(void)
{
    tare__cgroups groups;
    tare__cgroup_limit quota;
    tare__cgroup_find("", 0, &groups);
    tare__cgroup_cpu_limit("", &groups, &quota);
    int cpus = tare__cgroup_cpus("", 0, &groups, 0), most = quota.value < 0 ? cpus : (int)((quota.value + 999) / 1000);
    return most < cpus ? most : cpus;
}
