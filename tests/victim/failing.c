/* failing: a library to load before the others: the nth allocation or system call of the command fails.
 * TARE_FAIL names the kind (memory, call), TARE_FAIL_AT the number; with TARE_FAIL_COUNT, a file, how many there were.
 * Must not know what calls it. */
#undef _FILE_OFFSET_BITS /* each name for itself */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes), *__libc_calloc(size_t n, size_t bytes),
    *__libc_realloc(void *old, size_t bytes);

static _Atomic long count;
static long at = -1;
static int kind; /* 0: not decided, 1: memory, 2: calls, 3: neither */

static void decide(void)
{
    const char *what = environ ? getenv("TARE_FAIL") : NULL;
    if (!environ)
        return;
    kind = 3;
    if (!what || strcmp(program_invocation_short_name, "tare") != 0)
        return;
    kind = strcmp(what, "memory") == 0 ? 1 : 2;
    at = getenv("TARE_FAIL_AT") ? atol(getenv("TARE_FAIL_AT")) : -1;
}

static int fails(int of)
{
    if (!kind)
        decide();
    return kind == of && atomic_fetch_add(&count, 1) + 1 == at;
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = kind == 1 || kind == 2 ? getenv("TARE_FAIL_COUNT") : NULL;
    char text[32];
    long n = count;
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    int length = snprintf(text, sizeof text, "%ld\n", n);
    if (fd >= 0 && syscall(SYS_write, fd, text, (size_t)length) < 0)
        _exit(97);
}

void *malloc(size_t bytes)
{
    return fails(1) ? (errno = ENOMEM, NULL) : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    return fails(1) ? (errno = ENOMEM, NULL) : __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return fails(1) ? (errno = ENOMEM, NULL) : __libc_realloc(old, bytes);
}

#define FAIL(error)                                                                                    \
    do {                                                                                               \
        if (fails(2)) {                                                                                \
            errno = (error);                                                                           \
            return -1;                                                                                 \
        }                                                                                              \
    } while (0)

static int open_at(int dir, const char *path, int flags, unsigned mode)
{
    FAIL(EMFILE);
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

#define MODE_OF(flags, mode)                                                                           \
    va_list more;                                                                                      \
    va_start(more, flags);                                                                             \
    unsigned mode = (flags) & (O_CREAT | O_TMPFILE) ? va_arg(more, unsigned) : 0;                      \
    va_end(more)

int open(const char *path, int flags, ...)
{
    MODE_OF(flags, mode);
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    MODE_OF(flags, mode);
    return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    MODE_OF(flags, mode);
    return open_at(dir, path, flags, mode);
}

int openat64(int dir, const char *path, int flags, ...)
{
    MODE_OF(flags, mode);
    return open_at(dir, path, flags, mode);
}

static void *map(void *wanted, size_t bytes, int prot, int flags, int fd, off_t offset)
{
    if (fails(2)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, wanted, bytes, prot, flags, fd, offset);
}

void *mmap(void *wanted, size_t bytes, int prot, int flags, int fd, off_t offset)
{
    return map(wanted, bytes, prot, flags, fd, offset);
}

void *mmap64(void *wanted, size_t bytes, int prot, int flags, int fd, off_t offset)
{
    return map(wanted, bytes, prot, flags, fd, offset);
}

#define CALL3(type, name, number, error, A, B, C)                                                      \
    type name(A a, B b, C c)                                                                           \
    {                                                                                                  \
        FAIL(error);                                                                                   \
        return (type)syscall(number, a, b, c);                                                         \
    }
#define CALL4(type, name, number, error, A, B, C, D)                                                   \
    type name(A a, B b, C c, D d)                                                                      \
    {                                                                                                  \
        FAIL(error);                                                                                   \
        return (type)syscall(number, a, b, c, d);                                                      \
    }

CALL3(ssize_t, read, SYS_read, EIO, int, void *, size_t)
CALL3(ssize_t, write, SYS_write, EIO, int, const void *, size_t)
CALL4(ssize_t, pread64, SYS_pread64, EIO, int, void *, size_t, off_t)
CALL4(ssize_t, pwrite64, SYS_pwrite64, ENOSPC, int, const void *, size_t, off_t)
CALL4(int, fallocate64, SYS_fallocate, ENOSPC, int, int, off_t, off_t)
CALL3(int, socket, SYS_socket, EMFILE, int, int, int)

int ftruncate64(int fd, off_t bytes)
{
    FAIL(EIO);
    return (int)syscall(SYS_ftruncate, fd, bytes);
}

int posix_fallocate64(int fd, off_t from, off_t bytes)
{
    return fails(2) ? ENOSPC : syscall(SYS_fallocate, fd, 0, from, bytes) == 0 ? 0 : errno;
}

int signalfd(int fd, const sigset_t *set, int flags)
{
    FAIL(EMFILE);
    return (int)syscall(SYS_signalfd4, fd, set, 8, flags);
}

int fstat64(int fd, struct stat64 *about)
{
    FAIL(EIO);
    return (int)syscall(SYS_newfstatat, fd, "", about, AT_EMPTY_PATH);
}
