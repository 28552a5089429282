/* saved: whether a ring is still written to, and the mark in a session folder that names the trace with all its
 * data.
 * One thread. Must not know what is in a trace. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector.h"

bool tare__ring_in_use(int fd)
{
    if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
        fcntl(fd, F_SETLEASE, F_UNLCK);
        return false;
    }
    if (errno == EAGAIN)
        return true;
    tare__ring *ring = mmap(NULL, sizeof *ring, PROT_READ, MAP_SHARED, fd, 0);
    struct stat about;
    bool lives = false;
    if (ring != MAP_FAILED && fstat(fd, &about) == 0 && about.st_size >= (off_t)sizeof *ring)
        lives = tare__process_runs(ring->pid);
    if (ring != MAP_FAILED)
        munmap(ring, sizeof *ring);
    return lives;
}

/* The mark that salvaging leaves when all data are in a trace: identifies that file, which must still exist. */
bool tare__saved_in(int dir, char trace[TARE__PATH_BYTES])
{
    char word[TARE__PATH_BYTES + 128] = "";
    uint64_t device, inode, bytes;
    int at = 0, fd = openat(dir, TARE__SAVED_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, word, sizeof word - 1);
    if (fd >= 0)
        close(fd);
    if (got <= 0 || sscanf(word, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %n", &device, &inode, &bytes, &at) != 3 ||
        at == 0)
        return false;
    word[strcspn(word + at, "\n") + (size_t)at] = '\0';
    struct stat about;
    snprintf(trace, TARE__PATH_BYTES, "%s", word + at);
    return stat(trace, &about) == 0 && S_ISREG(about.st_mode) && (uint64_t)about.st_dev == device &&
           (uint64_t)about.st_ino == inode && (uint64_t)about.st_size >= bytes;
}

bool tare__mark_saved(const tare__folder *folder, int trace, const char *path)
{
    struct stat about;
    char whole[4096];
    int dir = tare__folder_open(folder->path, NULL);
    if (dir < 0)
        return false;
    unlinkat(dir, TARE__SAVED_FILE, 0); /* from an earlier attempt */
    int fd = fstat(trace, &about) != 0 || !realpath(path, whole) || strlen(whole) >= TARE__PATH_BYTES
                 ? -1
                 : openat(dir, TARE__SAVED_FILE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
        dprintf(fd, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", (uint64_t)about.st_dev, (uint64_t)about.st_ino,
                (uint64_t)about.st_size, whole);
        close(fd);
    }
    close(dir);
    return fd >= 0;
}
