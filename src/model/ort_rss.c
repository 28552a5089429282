/* ort_rss: resident memory of a process, from the kernel's files. Any thread.
 * Must not know who asks. */
#define _GNU_SOURCE
#include "ort_child.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_small(const char *path, char *out, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, out, room - 1);
    if (fd >= 0)
        close(fd);
    out[got > 0 ? got : 0] = '\0';
    return got > 0;
}

double tare__rss_now(int pid)
{
    char path[64], text[256];
    unsigned long long size, resident;
    if (pid)
        snprintf(path, sizeof path, "/proc/%d/statm", pid);
    else
        snprintf(path, sizeof path, "/proc/self/statm");
    if (!read_small(path, text, sizeof text) || sscanf(text, "%llu %llu", &size, &resident) != 2)
        return NAN;
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

double tare__rss_peak(void)
{
    static char text[8192];
    const char *line = read_small("/proc/self/status", text, sizeof text) ? strstr(text, "VmHWM:") : NULL;
    return line ? strtod(line + 6, NULL) * 1024 : NAN;
}

bool tare__rss_reset_peak(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, "5", 1) == 1;
    if (fd >= 0)
        close(fd);
    return done;
}
