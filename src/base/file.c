/* file: reads and writes whole buffers despite short counts and interruptions.
 * Owned by the calling thread; the offsets are the caller's, the descriptor may be shared.
 * Must not know what is in the files. */
#define _GNU_SOURCE /* SEEK_DATA */
#include "base.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/resource.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 8, "files larger than 2 GiB");

int tare__write_all(int fd, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t done = write(fd, at, bytes);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -EIO; /* 0 would loop forever */
        at += done;
        bytes -= (size_t)done;
    }
    return 0;
}

int tare__pwrite_all(int fd, const void *data, size_t bytes, uint64_t offset)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t done = pwrite(fd, at, bytes, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -EIO;
        at += done;
        bytes -= (size_t)done;
        offset += (uint64_t)done;
    }
    return 0;
}

int tare__pread_all(int fd, void *data, size_t bytes, uint64_t offset, size_t *got)
{
    char *at = data;
    *got = 0;
    while (*got < bytes) {
        ssize_t done = pread(fd, at + *got, bytes - *got, (off_t)(offset + *got));
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        if (done == 0)
            break;
        *got += (size_t)done;
    }
    return 0;
}

uint64_t tare__file_data(int fd, uint64_t offset)
{
    off_t at = lseek(fd, (off_t)offset, SEEK_DATA);
    if (at < 0)
        return errno == ENXIO ? UINT64_MAX : offset; /* or a file system that does not know */
    return (uint64_t)at;
}

bool tare__is_scarce(int fd)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && (rlim_t)fd >= limit.rlim_cur / 2;
}

const char *tare__temporary_folder(void)
{
    const char *reported = getenv("TMPDIR");
    return reported && *reported ? reported : "/tmp";
}
