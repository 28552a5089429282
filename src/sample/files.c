/* files: files of one number or one line, folders of devices, whole disks.
 * Any thread: no state.
 * Must not know series. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "files.h"

int64_t tare__machine_number(const char *root, const char *path, int *fd, int *failure)
{
    char text[64];
    int got = fd ? tare__sample_pread(root, path, fd, text, sizeof text)
                 : tare__sample_read(root, path, text, sizeof text);
    *failure = got < 0 ? got : 0;
    return tare__scan_only(text, got);
}

void tare__machine_line(const char *root, const char *path, char *out, size_t room)
{
    int got = tare__sample_read(root, path, out, room);
    size_t length = got > 0 ? strcspn(out, "\n") : 0;
    while (length > 0 && tare__scan_blank(out[length - 1]))
        length--;
    out[length] = '\0';
    for (size_t i = 0; i < length; i++) /* labels are displayed */
        if ((unsigned char)out[i] < ' ' || (unsigned char)out[i] > '~')
            out[i] = '?';
}

const char *tare__machine_why(int failure, const char *path, char out[256])
{
    if (failure)
        return tare__sample_why(failure, path, out);
    snprintf(out, 256, "%.180s has no such value", path);
    return out;
}

void tare__machine_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

bool tare__machine_exists(const char *root, const char *path)
{
    char whole[2 * TARE__PATH_BYTES];
    int length = snprintf(whole, sizeof whole, "%s%s", root, path);
    return length > 0 && (size_t)length < sizeof whole && access(whole, F_OK) == 0;
}

bool tare__machine_virtual(const char *root)
{
    char text[4096];
    return tare__sample_read(root, "/proc/cpuinfo", text, sizeof text) > 0 && strstr(text, " hypervisor") != NULL;
}

/* "temp2_input" before "temp10_input". */
static int by_number(const void *a, const void *b)
{
    return strverscmp(((const tare__entry *)a)->name, ((const tare__entry *)b)->name);
}

int tare__machine_list(const char *root, const char *folder, const char *prefix, tare__entry *out, size_t room)
{
    char whole[2 * TARE__PATH_BYTES];
    snprintf(whole, sizeof whole, "%s%s", root, folder);
    DIR *dir = opendir(whole);
    if (!dir)
        return -errno;
    size_t n = 0, bytes = strlen(prefix);
    for (const struct dirent *entry; n < room && (entry = readdir(dir)) != NULL;)
        if (strncmp(entry->d_name, prefix, bytes) == 0 && strlen(entry->d_name) < sizeof out->name)
            snprintf(out[n++].name, sizeof out->name, "%.63s", entry->d_name);
    closedir(dir);
    qsort(out, n, sizeof *out, by_number);
    return (int)n;
}
