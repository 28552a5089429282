/* import_file: the bytes of a foreign trace, decompressed if they are gzip.
 * Owned by the thread that imports.
 * Must not know what the bytes mean. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import.h"
#include "tare.h"

/* A manual build, as by tools/gpu-check, may omit zlib: then gzip is reported as invalid JSON. */
#ifdef TARE__ZLIB
#include <zlib.h>
#else
typedef struct plain_file {
    int fd;
} * gzFile;
enum { Z_OK = 0 };

static gzFile gzdopen(int fd, const char *mode)
{
    (void)mode;
    gzFile file = malloc(sizeof *file);
    if (file)
        file->fd = fd;
    return file;
}

static void gzbuffer(gzFile file, unsigned bytes)
{
    (void)file, (void)bytes;
}

static int gzread(gzFile file, void *into, unsigned bytes)
{
    ssize_t got;
    do
        got = read(file->fd, into, bytes);
    while (got < 0 && errno == EINTR);
    return (int)got;
}

static void gzerror(gzFile file, int *code)
{
    (void)file;
    *code = Z_OK;
}

static off_t gzoffset(gzFile file)
{
    return lseek(file->fd, 0, SEEK_CUR);
}

static void gzclose_r(gzFile file)
{
    close(file->fd);
    free(file);
}
#endif

#define BUFFER_BYTES (128u << 10)

struct tare__import_file {
    gzFile file;
    uint64_t bytes;
};

int tare__import_open(const char *path, tare__import_file **file, tare__error *error)
{
    struct stat about;
    *file = NULL;
    int fd, status = tare__input_stream(path, &fd, error);
    if (status)
        return status;
    if (fstat(fd, &about) != 0)
        about.st_mode = 0;
    tare__import_file *opened = calloc(1, sizeof *opened);
    gzFile stream = opened ? gzdopen(fd, "rb") : NULL;
    if (!stream) {
        close(fd);
        free(opened);
        return tare__fail(error, TARE_E_MEMORY, "out of memory");
    }
    gzbuffer(stream, BUFFER_BYTES);
    opened->file = stream;
    opened->bytes = S_ISREG(about.st_mode) ? (uint64_t)about.st_size : 0;
    *file = opened;
    return 0;
}

/* Bytes read before an error are returned before the error. */
int64_t tare__import_read(void *context, void *into, size_t bytes)
{
    tare__import_file *file = context;
    int got = gzread(file->file, into, bytes < INT32_MAX ? (unsigned)bytes : INT32_MAX);
    if (got > 0)
        return got;
    int code = 0;
    gzerror(file->file, &code);
    return code == Z_OK && got == 0 ? 0 : -1;
}

uint64_t tare__import_done(const tare__import_file *file, uint64_t *of)
{
    off_t at = gzoffset(file->file);
    *of = file->bytes;
    return at < 0 ? 0 : (uint64_t)at;
}

void tare__import_close(tare__import_file *file)
{
    if (!file)
        return;
    gzclose_r(file->file);
    free(file);
}
