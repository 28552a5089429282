/* cuts: a trace cut at every STEP-th byte, the longest cut first, each opened, analyzed and shown in this process.
 * One thread. Says which cut broke the promise: a sentence with the byte, or what is left and what is missing.
 * Must not know who writes traces, nor what is in this one. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emit/emit.h"
#include "trace/trace.h"

static char path[64]; /* of the copy that is cut */

/* ---- events without their times, which the last clock sync of a trace still refines ------------------------ */
static int keep(void *context, const void *data, size_t bytes)
{
    tare__text_append(context, data, bytes);
    return 0;
}

/* A line without its time, process and thread, which later blocks tell, and without its duration. */
static void strip_line(tare__text *out, const char *line, size_t length)
{
    const char *end = line + length;
    for (int field = 0; field < 3 && line < end; field++) {
        const char *tab = memchr(line, '\t', (size_t)(end - line));
        line = tab ? tab + 1 : end;
    }
    const char *duration = memmem(line, (size_t)(end - line), "\tdur_ns=", 8);
    if (duration) {
        const char *after = memchr(duration + 1, '\t', (size_t)(end - duration - 1));
        tare__text_append(out, line, (size_t)(duration - line));
        line = after ? after : end;
    }
    tare__text_append(out, line, (size_t)(end - line));
    tare__text_append(out, "\n", 1);
}

static int events_of(tare__trace *trace, tare__text *out, tare__error *error)
{
    tare__text shown = {0};
    tare__emit_sink sink = {keep, &shown};
    tare__emit_input input = {.trace = trace};
    tare__emit_options options = {.width = TARE__EMIT_WIDTH};
    int status = tare__emit_events.emit(&input, &options, &sink, error);
    tare__text_clear(out);
    for (size_t at = 0; !status && at < shown.length;) {
        const char *line = shown.data + at, *end = memchr(line, '\n', shown.length - at);
        size_t length = end ? (size_t)(end - line) : shown.length - at;
        if (*line != '#')
            strip_line(out, line, length);
        at += length + 1;
    }
    if (shown.failed || out->failed)
        status = tare__fail(error, TARE_E_MEMORY, "out of memory");
    tare__text_free(&shown);
    return status;
}

/* ---- what is promised -------------------------------------------------------------------------------------- */
static bool told(const tare__run_table *run)
{
    static const char *const words[] = {"byte", "damage", "unfinished", "missing"};
    for (size_t i = 0; i < run->n_notes; i++)
        for (size_t word = 0; word < TARE__COUNT_OF(words); word++)
            if (strstr(run->notes[i], words[word]))
                return run->damaged_blocks > 0 || run->damaged_bytes > 0 || !run->finished;
    return false;
}

static const char *check_analysis(tare__trace *trace, tare__error *error)
{
    tare__analysis *analysis;
    tare__analyze_options options = {.by = TARE__BY_RUN};
    if (tare__analyze(trace, &options, &analysis, error))
        return "could not be analyzed";
    const char *wrong = told(&analysis->run) ? NULL : "does not say what is missing";
    tare__analysis_free(analysis);
    return wrong;
}

static const char *check_events(tare__trace *trace, const tare__text *whole, tare__error *error)
{
    tare__text seen = {0};
    const char *wrong = NULL;
    if (events_of(trace, &seen, error))
        wrong = "could not be shown";
    else if (seen.length > whole->length || (seen.length && memcmp(seen.data, whole->data, seen.length) != 0))
        wrong = "shows events that the whole has not";
    tare__text_free(&seen);
    return wrong;
}

static const char *check_refusal(int status, size_t cut, const tare__error *error)
{
    char byte[32];
    snprintf(byte, sizeof byte, "byte %zu", cut);
    if (status != TARE_E_INPUT || cut >= sizeof(tare__file_header))
        return "was refused";
    return strstr(error->text, byte) ? NULL : "was refused without the byte";
}

/* NULL: it kept the promise. */
static const char *check_cut(size_t cut, const tare__text *whole, tare__error *error)
{
    tare__trace *trace;
    int status = tare__trace_open(path, &trace, error);
    if (status)
        return check_refusal(status, cut, error);
    const char *wrong = cut < sizeof(tare__file_header) ? "has no header and was opened" : NULL;
    if (!wrong)
        wrong = check_analysis(trace, error);
    if (!wrong)
        wrong = check_events(trace, whole, error);
    tare__trace_close(trace);
    return wrong;
}

/* ---- the copy ---------------------------------------------------------------------------------------------- */
/* Its bytes; 0 with a sentence when there is none. */
static size_t copy_file(const char *from, int *fd, tare__error *error)
{
    FILE *in = fopen(from, "rb");
    static char bytes[1 << 20];
    size_t n = in ? fread(bytes, 1, sizeof bytes, in) : 0;
    if (in)
        fclose(in);
    *fd = memfd_create("cuts", MFD_CLOEXEC);
    if (n == 0 || n == sizeof bytes || *fd < 0 || tare__pwrite_all(*fd, bytes, n, 0)) {
        tare__fail(error, TARE_E_INPUT, "'%.200s' could not be copied, or has 1 MiB and more", from);
        return 0;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", *fd);
    return n;
}

static int read_whole(tare__text *whole, tare__error *error)
{
    tare__trace *trace;
    int status = tare__trace_open(path, &trace, error);
    if (status)
        return status;
    status = events_of(trace, whole, error);
    tare__trace_close(trace);
    return status;
}

int main(int argc, char **argv)
{
    tare__error error = {""};
    tare__text whole = {0};
    int fd = -1, cuts = 0, broken = 0;
    long step = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    if (step < 1) {
        fprintf(stderr, "usage: cuts FILE STEP\n");
        return 2;
    }
    size_t bytes = copy_file(argv[1], &fd, &error);
    if (bytes == 0 || read_whole(&whole, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 3;
    }
    /* Only ever shorter: the copy is not written again. */
    for (size_t cut = bytes - 1; cut < bytes; cut -= (size_t)step, cuts++) {
        error.text[0] = 0;
        const char *wrong = ftruncate(fd, (off_t)cut) ? "could not be made" : check_cut(cut, &whole, &error);
        if (wrong && broken++ < 20)
            printf("cut at byte %zu: %s: %s\n", cut, wrong, error.text);
    }
    printf("%d cuts, %d broken\n", cuts, broken);
    tare__text_free(&whole);
    return broken > 0;
}
