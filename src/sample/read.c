/* read: reads small files of /proc and /sys, by path or with a cached descriptor; and explains failures.
 * Any thread: no state.
 * Must not know what is in the files. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sample.h"

#define PATH_BYTES 4096
/* The kernel returns such files page by page and ends a piece only where the next line would not fit: a piece this
 * short is complete, and the read that would confirm it can be saved. */
#define SHORT_BYTES 1024
#define NOT_KEPT 4 /* descriptors: for folders, and files that are open for a moment only */

static int open_below(const char *root, const char *path)
{
    char whole[PATH_BYTES];
    const char *name = path;
    if (root && root[0]) {
        int length = snprintf(whole, sizeof whole, "%s%s", root, path);
        if (length < 0 || (size_t)length >= sizeof whole)
            return -ENAMETOOLONG;
        name = whole;
    }
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

static int read_all(int fd, char *out, size_t room)
{
    size_t got = 0;
    while (got + 1 < room) {
        ssize_t n = pread(fd, out + got, room - 1 - got, (off_t)got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        got += (size_t)n;
        if (n < SHORT_BYTES)
            break;
    }
    out[got] = '\0';
    return (int)got;
}

int tare__sample_read(const char *root, const char *path, char *out, size_t room)
{
    out[0] = '\0';
    int fd = open_below(root, path);
    if (fd < 0)
        return fd;
    int got = read_all(fd, out, room);
    close(fd);
    return got;
}

bool tare__sample_failed_here(int got)
{
    return got == -EMFILE || got == -ENFILE || got == -ENOMEM || got == -EINTR;
}

static bool is_one_of_the_last(int fd)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           (rlim_t)fd + NOT_KEPT >= limit.rlim_cur;
}

int tare__sample_pread(const char *root, const char *path, int *fd, char *out, size_t room)
{
    out[0] = '\0';
    if (*fd < -1)
        return *fd == -2 ? -ENOENT : *fd + 2;
    if (*fd == -1) {
        int opened = open_below(root, path);
        if (opened < 0) {
            if (!tare__sample_failed_here(opened))
                *fd = opened - 2;
            return opened;
        }
        if (is_one_of_the_last(opened)) {
            int got = read_all(opened, out, room);
            close(opened);
            return got;
        }
        *fd = opened;
    }
    return read_all(*fd, out, room);
}

static const struct {
    int failure;
    const char *words;
} reasons[] = {
    {ENOENT, "%s does not exist"},
    {ENOTDIR, "%s does not exist"},
    {EACCES, "%s: permission denied"},
    {EPERM, "%s: permission denied"},
    {ESRCH, "ended"},
    {EMFILE, "%s: too many files are open"},
    {ENFILE, "%s: too many files are open on this machine"},
};

const char *tare__sample_why(int failure, const char *path, char out[256])
{
    int number = failure < 0 ? -failure : failure;
    for (size_t i = 0; i < TARE__COUNT_OF(reasons); i++)
        if (reasons[i].failure == number) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(out, 256, reasons[i].words, path);
#pragma GCC diagnostic pop
            return out;
        }
    snprintf(out, 256, "%.180s: %.60s", path, strerror(number));
    return out;
}
