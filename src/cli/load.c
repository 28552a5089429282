/* load: opens what a word names and makes figures of it: a trace is analysed, JSON is read.
 * One thread.
 * Must not know what is done with the figures. */
#define _GNU_SOURCE
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tare.h"
#include "trace/trace.h"

#define JSON_MAX_BYTES ((off_t)1 << 30)

static int of_trace(const char *path, tare__figures **figures, tare__error *error)
{
    tare__trace *trace = NULL;
    tare__analysis *analysis = NULL;
    tare__analyze_options options = {.by = TARE__BY_RUN, .samples = true};
    int status = tare__trace_open(path, &trace, error);
    if (!status)
        status = tare__analyze(trace, &options, &analysis, error);
    if (!status && (status = tare__figures_of_analysis(analysis, figures)))
        tare__fail(error, status, "out of memory");
    tare__analysis_free(analysis);
    tare__trace_close(trace);
    return status;
}

static int of_json(int fd, off_t bytes, const char *path, tare__figures **figures, tare__error *error)
{
    if (bytes > JSON_MAX_BYTES)
        return tare__fail(error, TARE_E_INPUT, "'%s' is larger than a baseline can be", path);
    char *text = malloc((size_t)bytes + 1);
    size_t got = 0;
    if (!text)
        return tare__fail(error, TARE_E_MEMORY, "out of memory");
    int failure = tare__pread_all(fd, text, (size_t)bytes, 0, &got);
    int status = failure ? tare__fail(error, TARE_E_SYSTEM, "cannot read '%s': %s", path, strerror(-failure))
                         : tare__figures_read_json(text, got, path, figures, error);
    free(text);
    return status;
}

/* JSON says so with its first character, and no trace begins like that. */
static bool is_json(int fd)
{
    char start[256];
    size_t got = 0;
    tare__pread_all(fd, start, sizeof start, 0, &got);
    size_t at = 0;
    if (got >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0)
        at = 3;
    while (at < got && strchr(" \t\r\n", start[at]) && start[at])
        at++;
    return at < got && (start[at] == '{' || start[at] == '[');
}

int tare__cli_load_figures(const char *path, tare__figures **figures, tare__error *error)
{
    struct stat about;
    *figures = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return tare__fail(error, TARE_E_INPUT, "cannot open '%s': %s", path, strerror(errno));
    bool json = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && is_json(fd);
    int status = json ? of_json(fd, about.st_size, path, figures, error) : 0;
    close(fd);
    return json ? status : of_trace(path, figures, error);
}

int tare__cli_load_runs(char *const *paths, size_t n, tare__figures **figures, tare__error *error)
{
    if (n == 1)
        return tare__cli_load_figures(paths[0], figures, error);
    tare__figures **runs = calloc(n + 1, sizeof(*runs));
    int status = runs ? 0 : tare__fail(error, TARE_E_MEMORY, "out of memory");
    *figures = NULL;
    for (size_t i = 0; i < n && !status; i++)
        status = tare__cli_load_figures(paths[i], &runs[i], error);
    if (!status && (status = tare__figures_join((const tare__figures *const *)runs, n, figures)))
        tare__fail(error, status, "out of memory");
    for (size_t i = 0; runs && i < n; i++)
        tare__figures_free(runs[i]);
    free(runs);
    return status;
}

int tare__cli_load_exit(int status)
{
    if (status == TARE_E_USAGE)
        return TARE__EXIT_USAGE;
    return status == TARE_E_MEMORY ? TARE__EXIT_FAILED : TARE__EXIT_INPUT;
}
