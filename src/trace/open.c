/* open: opens a .tare file, validates its head, and provides the window through which all of it is read.
 * Owned by the calling thread. The file is not mapped: truncation while it is read must not raise SIGBUS.
 * Must not know what blocks mean. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inner.h"
#include "tare.h"

#define WINDOW_BYTES ((size_t)512 << 10)
#define GLANCE_BYTES ((size_t)4096) /* enough for a header and a small payload */

/* ---- window -------------------------------------------------------------------------------------- */
static int widen_window(tare__trace *trace, size_t bytes)
{
    if (bytes <= trace->buffer_room)
        return 0;
    uint8_t *wider = realloc(trace->buffer, bytes);
    if (!wider)
        return TARE_E_MEMORY;
    trace->buffer = wider;
    trace->buffer_room = bytes;
    return 0;
}

int tare__trace_window(tare__trace *trace, uint64_t offset, size_t bytes, const uint8_t **data, size_t *got,
                       tare__error *error)
{
    uint64_t into = offset - trace->buffer_offset;
    if (offset < trace->buffer_offset || into > trace->buffer_bytes || trace->buffer_bytes - into < bytes) {
        if (widen_window(trace, bytes))
            return tare__fail(error, TARE_E_MEMORY, "out of memory while reading %s", trace->path);
        size_t want = trace->scanning ? GLANCE_BYTES : trace->buffer_room;
        if (want < bytes)
            want = bytes;
        if (want > trace->size - offset)
            want = (size_t)(trace->size - offset);
        trace->buffer_bytes = 0;
        trace->buffer_offset = offset;
        int failed = tare__pread_all(trace->fd, trace->buffer, want, offset, &trace->buffer_bytes);
        if (failed)
            return tare__fail(error, TARE_E_SYSTEM, "%s: reading at byte %llu failed: %s", trace->path,
                              (unsigned long long)offset, strerror(-failed));
        if (trace->buffer_bytes < want) /* truncated while being read */
            trace->size = offset + trace->buffer_bytes;
        into = 0;
    }
    *data = trace->buffer + into;
    *got = trace->buffer_bytes - into < bytes ? trace->buffer_bytes - into : bytes;
    return 0;
}

/* ---- head ---------------------------------------------------------------------------------------- */
/* Whether a block starts right after the file header: then it is a .tare file even if its header is damaged. */
static int block_follows(tare__trace *trace, bool *follows, tare__error *error)
{
    const uint8_t *data;
    size_t got;
    tare__block_header header;
    *follows = false;
    if (trace->size < sizeof(tare__file_header) + sizeof header)
        return 0;
    int status = tare__trace_window(trace, sizeof(tare__file_header), sizeof header, &data, &got, error);
    if (status || got < sizeof header)
        return status;
    memcpy(&header, data, sizeof header);
    *follows = tare__block_header_check(&header) == NULL;
    return 0;
}

static int judge_damaged_head(tare__trace *trace, bool has_magic, tare__error *error)
{
    bool follows;
    int status = block_follows(trace, &follows, error);
    if (status)
        return status;
    if (follows) {
        trace->header_damaged = true;
        return 0;
    }
    if (has_magic)
        return tare__fail(error, TARE_E_INPUT,
                          "%s: the header at byte 0 is damaged and no block follows it",
                          trace->path);
    return tare__fail(error, TARE_E_INPUT, "%s is not a trace: there is no trace header at byte 0", trace->path);
}

static int check_head(tare__trace *trace, tare__error *error)
{
    const uint8_t *data;
    size_t got;
    tare__file_header header;
    if (trace->size == 0)
        return tare__fail(error, TARE_E_INPUT,
                          "%s is empty: it ends at byte 0, before anything was recorded", trace->path);
    int status = tare__trace_window(trace, 0, sizeof header, &data, &got, error);
    if (status)
        return status;
    size_t magic_bytes = got < sizeof header.magic ? got : sizeof header.magic;
    bool has_magic = memcmp(data, TARE__FILE_MAGIC, magic_bytes) == 0;
    if (got < sizeof header && has_magic)
        return tare__fail(error, TARE_E_INPUT,
                          "%s ends at byte %llu, inside its header: nothing was recorded", trace->path,
                          (unsigned long long)got);
    if (got < sizeof header)
        return judge_damaged_head(trace, false, error);
    memcpy(&header, data, sizeof header);
    if (!has_magic || header.crc != tare__crc32c(0, &header, offsetof(tare__file_header, crc)))
        return judge_damaged_head(trace, has_magic, error);
    if (header.major != TARE__FILE_MAJOR)
        return tare__fail(error, TARE_E_VERSION,
                          "%s has format version %u (at byte 8); this program reads version %u: use %s Tare",
                          trace->path, header.major, TARE__FILE_MAJOR,
                          header.major > TARE__FILE_MAJOR ? "a newer" : "an older");
    return 0;
}

/* ---- open, close --------------------------------------------------------------------------------- */
static int fail_open(const char *path, int error_number, tare__error *error)
{
    int status = error_number == ENOENT || error_number == ENOTDIR ? TARE_E_INPUT
                 : error_number == EACCES || error_number == EPERM ? TARE_E_PERMISSION
                                                                   : TARE_E_SYSTEM;
    return tare__fail(error, status, "%s: %s", path, strerror(error_number));
}

static int open_file(tare__trace *trace, int fd, tare__error *error)
{
    struct stat about;
    const char *is = NULL;
    errno = 0;
    trace->fd = fd < 0 ? tare__input_open(trace->path, false, &is) : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (trace->fd >= 0 && fstat(trace->fd, &about) == 0)
        is = tare__not_a_file(about.st_mode);
    else if (!is)
        return fail_open(trace->path, fd < 0 && trace->fd < 0 ? -trace->fd : errno, error);
    if (is)
        return tare__fail(error, TARE_E_INPUT, "%s is %s, not a trace file", trace->path, is);
    trace->size = (uint64_t)about.st_size;
    trace->user = about.st_uid;
    return check_head(trace, error);
}

int tare__trace_open_at(int fd, const char *path, tare__trace **result, tare__error *error)
{
    *result = NULL;
    tare__trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return tare__fail(error, TARE_E_MEMORY, "out of memory while opening %s", path);
    trace->fd = -1;
    trace->path = strdup(path);
    trace->squeezer = tare__squeezer_new();
    trace->name_texts = tare__arena_new();
    trace->files = tare__intern_new();
    trace->series_texts = tare__intern_new();
    trace->fact_keys = tare__intern_new();
    trace->stack_texts = tare__intern_new();
    trace->syncs = malloc(TARE__SYNCS_MAX * sizeof *trace->syncs);
    int status = widen_window(trace, WINDOW_BYTES);
    if (!trace->path || !trace->squeezer || !trace->name_texts || !trace->files || !trace->series_texts ||
        !trace->fact_keys || !trace->stack_texts || !trace->syncs || status) {
        tare__trace_close(trace);
        return tare__fail(error, TARE_E_MEMORY, "out of memory while opening %s", path);
    }
    tare__trace_init_tables(trace);
    status = open_file(trace, fd, error);
    if (status) {
        tare__trace_close(trace);
        return status;
    }
    tare__trace_rewind(trace);
    *result = trace;
    return 0;
}

int tare__trace_open(const char *path, tare__trace **result, tare__error *error)
{
    return tare__trace_open_at(-1, path, result, error);
}

void tare__trace_close(tare__trace *trace)
{
    if (!trace)
        return;
    if (trace->fd >= 0)
        close(trace->fd);
    tare__trace_free_tables(trace);
    tare__squeezer_free(trace->squeezer);
    tare__arena_free(trace->name_texts);
    tare__intern_free(trace->files);
    tare__intern_free(trace->series_texts);
    tare__intern_free(trace->fact_keys);
    tare__intern_free(trace->stack_texts);
    free(trace->stack_samples);
    free(trace->syncs);
    free(trace->buffer);
    free(trace->path);
    free(trace);
}

unsigned tare__trace_user(const tare__trace *trace)
{
    return trace->user;
}

const char *tare__trace_path(const tare__trace *trace)
{
    return trace->path;
}
