/* sources: reads the hottest lines from the user's own Python files, and from nothing else: a trace may come from
 * someone else and name any file.
 * One thread.
 * Must not know how lines are shown. */
#define _GNU_SOURCE
#include "sources.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tare.h"

#define FILE_BYTES_MAX ((off_t)1 << 20)
#define LINE_BYTES_MAX 240u

static bool is_python(const char *path)
{
    size_t length = strlen(path);
    return path[0] == '/' && length > 4 && strcmp(path + length - 3, ".py") == 0;
}

/* A descriptor; -1: it must not be shown. */
static int open_source(const char *file, uint64_t before_ns, off_t *bytes)
{
    char real[PATH_MAX];
    const char *is;
    struct stat about;
    tare__error unused = {""};
    if (!is_python(file) || !tare__trust_real(file, real, &unused) || !is_python(real))
        return -1;
    int fd = tare__input_open(real, false, &is);
    if (fd < 0)
        return -1;
    bool fine = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
                about.st_size <= FILE_BYTES_MAX && tare__trust_file(fd) == NULL &&
                (uint64_t)about.st_mtim.tv_sec * 1000000000u + (uint64_t)about.st_mtim.tv_nsec <= before_ns;
    *bytes = fine ? about.st_size : 0;
    if (fine)
        return fd;
    close(fd);
    return -1;
}

/* All of it, with a NUL behind it; NULL: it must not be shown. *failed: out of memory. */
static char *read_source(const char *file, uint64_t before_ns, size_t *bytes, bool *failed)
{
    off_t size = 0;
    int fd = open_source(file, before_ns, &size);
    if (fd < 0)
        return NULL;
    char *text = malloc((size_t)size + 1);
    *failed = !text;
    if (text && tare__pread_all(fd, text, (size_t)size, 0, bytes) == 0) {
        text[*bytes] = '\0';
    } else {
        free(text);
        text = NULL;
    }
    close(fd);
    return text;
}

/* Without its indentation; NULL: no such line, or out of memory. */
static char *copy_line(const char *text, size_t bytes, uint32_t line, bool *failed)
{
    const char *at = text, *end = text + bytes;
    for (uint32_t i = 1; i < line && at; i++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    if (!at || at >= end || line == 0)
        return NULL;
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    stop = stop ? stop : end;
    while (at < stop && (*at == ' ' || *at == '\t'))
        at++;
    size_t length = (size_t)(stop - at) < LINE_BYTES_MAX ? (size_t)(stop - at) : LINE_BYTES_MAX;
    char *copy = strndup(at, length);
    *failed = *failed || !copy;
    return copy;
}

bool tare__cli_sources_read(const tare__trace *trace, const tare__analysis *analysis, char **texts, size_t n)
{
    bool failed = false;
    memset(texts, 0, n * sizeof *texts);
    if (!analysis->run.start_realtime_ns || tare__trace_user(trace) != geteuid())
        return true;
    n = n < analysis->n_lines ? n : analysis->n_lines;
    for (size_t i = 0; i < n && !failed; i++) {
        const char *file = analysis->lines[i].file;
        size_t bytes = 0, first = 0;
        while (first < i && file && (!analysis->lines[first].file || strcmp(analysis->lines[first].file, file) != 0))
            first++;
        if (!file || first < i)
            continue; /* read with the first line of its file */
        char *text = read_source(file, analysis->run.start_realtime_ns, &bytes, &failed);
        for (size_t k = i; k < n && text; k++)
            if (analysis->lines[k].file && strcmp(analysis->lines[k].file, file) == 0)
                texts[k] = copy_line(text, bytes, analysis->lines[k].line, &failed);
        free(text);
    }
    return !failed;
}

void tare__cli_sources_free(char **texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(texts[i]);
}
