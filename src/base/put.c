/* put: makes output files and puts them in their place. Owned by the calling thread; not in libtare.
 * Must not know what is in the files. */
#define _GNU_SOURCE
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int tare__file_make(const char *path, unsigned mode, char **name)
{
    if (asprintf(name, "%s.XXXXXX", path) < 0) {
        *name = NULL;
        return -ENOMEM;
    }
    int fd = mkostemp(*name, O_CLOEXEC), failure = errno; /* O_EXCL, 0600 */
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

int tare__file_put(int fd, const char *name, const char *path, bool whole)
{
    int failure = 0;
    if (whole && fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
        failure = errno;
    if (!failure && rename(name, path) != 0)
        failure = errno;
    if (failure)
        unlink(name);
    return -failure;
}
