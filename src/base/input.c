/* input: opens user-named files for reading, without blocking or opening a device: a file that is not regular
 * is refused before it is opened. Owned by the calling thread; not in libtare.
 * Must not know what is in the files. */
#define _GNU_SOURCE
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tare.h"

int tare__descriptor_named(const char *path)
{
    static const char *const standard[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (size_t i = 0; i < TARE__COUNT_OF(standard); i++)
        if (strcmp(path, standard[i]) == 0)
            return (int)i;
    for (size_t i = 0; i < TARE__COUNT_OF(folders); i++) {
        const char *digits = path + strlen(folders[i]);
        if (strncmp(path, folders[i], strlen(folders[i])) == 0 && *digits && strlen(digits) < 7 &&
            strspn(digits, "0123456789") == strlen(digits))
            return atoi(digits);
    }
    return -1;
}

const char *tare__not_a_file(unsigned mode)
{
    return S_ISREG(mode)    ? NULL
           : S_ISDIR(mode)  ? "a folder"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

static bool is_stream(int fd)
{
    struct stat about;
    return fstat(fd, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

/* Checked first, since opening a device may have effects; and again, since the name may refer to another file by
 * then. */
int tare__input_open(const char *path, bool streams, const char **is)
{
    struct stat about;
    int failure, open_already = streams ? tare__descriptor_named(path) : -1;
    *is = NULL;
    if (open_already >= 0 && is_stream(open_already)) {
        int copy = fcntl(open_already, F_DUPFD_CLOEXEC, 3);
        return copy < 0 ? -errno : copy;
    }
    if (stat(path, &about) != 0)
        return -errno;
    *is = tare__not_a_file(about.st_mode);
    if (*is)
        return -EINVAL;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    failure = fstat(fd, &about) != 0 ? errno : 0;
    *is = failure ? NULL : tare__not_a_file(about.st_mode);
    if (!failure && !*is)
        return fd;
    close(fd);
    return failure ? -failure : -EINVAL;
}

static int open_with_sentence(const char *path, bool streams, int *fd, tare__error *error)
{
    const char *is;
    *fd = tare__input_open(path, streams, &is);
    if (*fd >= 0)
        return 0;
    if (is)
        return tare__fail(error, TARE_E_INPUT, "cannot read '%.200s': it is %s, not a regular file%s", path, is,
                          streams && strcmp(is, "a pipe") == 0 ? "; redirect it to standard input and pass /dev/stdin"
                                                               : "");
    return tare__fail(error, *fd == -EACCES || *fd == -EPERM ? TARE_E_PERMISSION : TARE_E_INPUT,
                      "cannot read '%.200s': %s", path, strerror(-*fd));
}

int tare__input_file(const char *path, int *fd, tare__error *error)
{
    return open_with_sentence(path, false, fd, error);
}

int tare__input_stream(const char *path, int *fd, tare__error *error)
{
    return open_with_sentence(path, true, fd, error);
}
