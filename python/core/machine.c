/* machine: readings of /proc/stat, diskstats, net/dev, meminfo and statm. No descriptor is kept: these are read a
 * few times a second, and a kept one may become another file's.
 * Any thread; the shared reading is guarded by the interpreter's lock. Must not know blocks. */
#define _GNU_SOURCE
#include "machine.h"
#include "readings.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 32768

/* The file's beginning as text; false: not readable. */
static bool slurp(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    while (fd >= 0 && n < room - 1) {
        ssize_t got = read(fd, text + n, room - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    text[n] = 0;
    return n > 0;
}

static void read_cpu(tare__py_machine *to)
{
    char text[512]; /* the first line, of all CPUs */
    unsigned long long v[8] = {0};
    if (!slurp("/proc/stat", text, sizeof text) ||
        sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
               &v[7]) < 4)
        return;
    for (int i = 0; i < 8; i++)
        to->cpu_total += v[i];
    to->cpu_idle = v[3];
    to->cpu_iowait = v[4];
    to->has |= TARE__PY_CPU;
}

/* Partitions are counted by their disk, and loop and ram disks by the disk below. */
static bool is_disk(const char *name)
{
    static const char *const others[] = {"loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(name, others[i], strlen(others[i])) == 0)
            return false;
    size_t n = strlen(name);
    bool digit = n && name[n - 1] >= '0' && name[n - 1] <= '9';
    if (strncmp(name, "nvme", 4) == 0 || strncmp(name, "mmcblk", 6) == 0)
        return !strchr(name + 4, 'p');
    return !digit;
}

static void read_disks(tare__py_machine *to)
{
    char *text = malloc(TEXT_MAX);
    if (!text || !slurp("/proc/diskstats", text, TEXT_MAX)) {
        free(text);
        return;
    }
    for (char *line = text, *next; line && *line && to->disks < TARE__PY_DISKS_MAX; line = next) {
        char name[64];
        unsigned busy;
        if ((next = strchr(line, '\n')))
            *next++ = 0;
        if (sscanf(line, "%*u %*u %63s %*u %*u %*u %*u %*u %*u %*u %*u %*u %u", name, &busy) == 2 && is_disk(name))
            to->disk_ms[to->disks++] = busy;
    }
    if (to->disks)
        to->has |= TARE__PY_DISK;
    free(text);
}

static void read_network(tare__py_machine *to)
{
    char *text = malloc(TEXT_MAX);
    if (!text || !slurp("/proc/self/net/dev", text, TEXT_MAX)) {
        free(text);
        return;
    }
    for (char *line = text, *next; line && *line; line = next) {
        unsigned long long received, sent;
        if ((next = strchr(line, '\n')))
            *next++ = 0;
        char *colon = strchr(line, ':');
        if (!colon)
            continue;
        line += strspn(line, " ");
        if (sscanf(colon + 1, "%llu %*u %*u %*u %*u %*u %*u %*u %llu", &received, &sent) != 2)
            continue;
        to->has |= TARE__PY_NETWORK;
        if (strncmp(line, "lo:", 3) == 0)
            continue;
        to->received += received;
        to->sent += sent;
    }
    free(text);
}

static void read_memory(tare__py_machine *to)
{
    char text[512];
    unsigned long long total, available;
    if (!slurp("/proc/meminfo", text, sizeof text))
        return;
    const char *line = strstr(text, "MemAvailable:");
    if (!line || sscanf(text, "MemTotal: %llu", &total) != 1 || sscanf(line, "MemAvailable: %llu", &available) != 1)
        return;
    to->memory_total = total * 1024;
    to->memory_available = available * 1024;
    to->has |= TARE__PY_MEMORY;
}

static void read_rss(tare__py_machine *to)
{
    char text[160];
    unsigned long long pages;
    if (!slurp("/proc/self/statm", text, sizeof text) || sscanf(text, "%*u %llu", &pages) != 1)
        return;
    to->rss = pages * (uint64_t)sysconf(_SC_PAGESIZE);
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
    static uint32_t asked;
    uint64_t now = tare__py_clock_ns();
    if (!recent.at_ns || now - recent.at_ns > RECENT_NS || (what & ~asked)) {
        tare__py_machine_read(&recent, what);
        asked = what;
    }
    *machine = recent;
}
