/* put: creates output files and renames them to their final name. Owned by the calling thread; not in libtare.
 * Must not know what is in the files. */
#define _GNU_SOURCE
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_TRIED 100

/* Like mkostemp, in an open directory: O_EXCL makes it safe, whatever the name. */
static int make_at(int folder, char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    char *at = name + strlen(name) - 6;
    int fd = -1;
    for (int i = 0; i < NAMES_TRIED && fd < 0 && (i == 0 || errno == EEXIST); i++) {
        unsigned char bytes[6];
        if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
            return -1;
        for (size_t k = 0; k < sizeof bytes; k++)
            at[k] = letters[bytes[k] % (sizeof letters - 1)];
        fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    return fd;
}

int tare__file_make_at(int folder, const char *path, unsigned mode, char **name)
{
    if (asprintf(name, "%s.XXXXXX", path) < 0) {
        *name = NULL;
        return -ENOMEM;
    }
    int fd = make_at(folder, *name), failure = errno;
    if (fd < 0) {
        free(*name);
        *name = NULL;
        return -failure;
    }
    mode_t mask = umask(0);
    umask(mask);
    if ((mode & ~(unsigned)mask) != 0600)
        fchmod(fd, (mode_t)mode & ~mask);
    return fd;
}

int tare__file_make(const char *path, unsigned mode, char **name)
{
    return tare__file_make_at(AT_FDCWD, path, mode, name);
}

int tare__file_put_at(int folder, int fd, const char *name, const char *path, bool whole)
{
    int failure = 0;
    if (whole && fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
        failure = errno;
    if (!failure && renameat(folder, name, folder, path) != 0)
        failure = errno;
    if (failure)
        unlinkat(folder, name, 0);
    return -failure;
}

int tare__file_put(int fd, const char *name, const char *path, bool whole)
{
    return tare__file_put_at(AT_FDCWD, fd, name, path, whole);
}
