/* lines: parses lines of /proc/stat, diskstats and net/dev, and finds whole disks.
 * Any thread: no state.
 * Must not know series. */
#define _GNU_SOURCE
#include <stdio.h>

#include "base/base.h"
#include "files.h"

size_t tare__line_numbers(tare__scan *line, int64_t *numbers, size_t room)
{
    size_t n = 0;
    while (n < room && tare__scan_number(line, &numbers[n]))
        n++;
    return n;
}

tare__scan tare__line_disk(tare__scan *line)
{
    tare__scan_word(line);
    tare__scan_word(line);
    return tare__scan_word(line);
}

bool tare__disk_is_whole(const char *root, const char *name)
{
    char path[128], file[64];
    snprintf(file, sizeof file, "%s", name);
    for (char *c = file; *c; c++)
        if (*c == '/')
            *c = '!'; /* sysfs writes cciss/c0d0 this way */
    snprintf(path, sizeof path, "/sys/block/%s", file);
    if (!tare__machine_exists(root, path))
        return false;
    snprintf(path, sizeof path, "/sys/block/%s/slaves", file);
    tare__entry entries[3]; /* also excludes "." and ".." */
    int n = tare__machine_list(root, path, "", entries, 3);
    return n < 3;
}

bool tare__disk_is_spare(const char *name)
{
    static const char *const spare[] = {"loop", "ram", "zram", "fd", "sr", "nbd"};
    for (size_t i = 0; i < TARE__COUNT_OF(spare); i++)
        if (strncmp(name, spare[i], strlen(spare[i])) == 0)
            return true;
    return false;
}

/* Old kernels have no space after the colon. */
bool tare__line_network(tare__scan *line, tare__scan *name)
{
    tare__scan_blanks(line);
    const char *colon = line->at < line->end ? memrchr(line->at, ':', (size_t)(line->end - line->at)) : NULL;
    if (!colon)
        return false;
    *name = (tare__scan){line->at, colon};
    line->at = colon + 1;
    return true;
}
