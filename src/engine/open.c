/* open: opens a trace for reading, after adding the data that a killed recording left in memory.
 * One thread.
 * Must not know who reads it. */
#define _GNU_SOURCE
#include "engine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/collect.h"

#define RULES_MAX_BYTES (1u << 20)

typedef struct listener {
    tare_engine_notice *notice; /* may be NULL */
    void *context;
} listener;

__attribute__((format(printf, 2, 3))) static void tell(const listener *to, const char *format, ...)
{
    char sentence[1024];
    va_list words;
    if (!to->notice)
        return;
    va_start(words, format);
    vsnprintf(sentence, sizeof sentence, format, words);
    va_end(words);
    to->notice(to->context, sentence);
}

/* ---- data left by a killed collector --------------------------------------------------------------- */
static void say_salvaged(const listener *to, const tare__salvaged *saved, const char *folder)
{
    char spans[TARE__COUNTED_BYTES];
    if (saved->still_recording) {
        tell(to, "still being recorded; showing the file so far");
        return;
    }
    if (saved->finished)
        return;
    tell(to, "%s%s still in memory %s now in %s", saved->killed ? "the recording was interrupted; " : "",
         tare__unit_counted(spans, (double)saved->spans, "span that was", "spans that were"),
         saved->spans == 1 ? "is" : "are", saved->trace);
    if (saved->damaged_blocks)
        tell(to, "%s of the file (%llu bytes) skipped",
             tare__unit_counted(spans, (double)saved->damaged_blocks, "damaged block", NULL),
             (unsigned long long)saved->damaged_bytes);
    if (saved->unread_rings)
        tell(to, "%s of recorded processes could not be read; kept in %s",
             tare__unit_counted(spans, (double)saved->unread_rings, "file", NULL), folder);
    if (saved->alive)
        tell(to, "a recorded process is still running; run this command again for later events");
    else if (saved->noted)
        tell(to, "`tare clean` removes the session folder, %s", folder);
    else if (!saved->unread_rings)
        tell(to, "the session folder was kept: %s; `tare clean --all %s` removes it",
             saved->damaged_blocks ? "the file is damaged" : "it belongs to another file", folder);
}

/* A trace may be untrusted: if it names a folder that does not exist, nothing is reported beyond the report itself; any
 * other folder is verified by tare__salvage. */
static bool is_there(const char *folder)
{
    struct stat info;
    return folder && folder[0] == '/' && lstat(folder, &info) == 0;
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Finishes an unfinished trace whose session still exists. True: the trace must be opened again. */
static bool finish_trace(const listener *to, tare__trace *trace)
{
    tare__salvaged saved;
    tare__error error = {""};
    const tare__trace_end *end = tare__trace_end_of(trace);
    const tare__trace_run *run = tare__trace_run_of(trace);
    bool more = !end->present || end->unread_rings || (end->salvaged && end->left_running);
    if (!more || !run->present || !is_there(run->folder))
        return false;
    if (tare__salvage(run->folder, tare__trace_path(trace), &saved, &error)) {
        tell(to, "events in memory could not be saved: %s", error.text);
        return false;
    }
    say_salvaged(to, &saved, run->folder);
    return !saved.still_recording && !saved.finished;
}

static int open_trace(const listener *to, const char *path, tare__trace **trace, tare__error *error)
{
    int status = tare__trace_open(path, trace, error);
    if (status)
        return status;
    status = tare__trace_prescan(*trace, error);
    if (!status && finish_trace(to, *trace)) {
        tare__trace_close(*trace);
        *trace = NULL;
        status = tare__trace_open(path, trace, error);
    }
    return status;
}

int tare__engine_open(const char *path, tare_engine_notice *notice, void *context, tare__trace **trace,
                      tare__error *error)
{
    tare__salvaged saved;
    const listener to = {notice, context};
    if (!is_folder(path))
        return open_trace(&to, path, trace, error);
    int status = tare__salvage(path, NULL, &saved, error);
    if (status)
        return status;
    say_salvaged(&to, &saved, path);
    return tare__trace_open(saved.trace, trace, error);
}

/* ---- rules ---------------------------------------------------------------------------------------- */
int tare__engine_read_rules(const char *path, tare__rules **rules, tare__error *error)
{
    int fd, status = tare__input_stream(path, &fd, error);
    if (status)
        return status;
    FILE *file = fdopen(fd, "r");
    char *text = file ? malloc(RULES_MAX_BYTES + 1) : NULL;
    size_t bytes = text ? fread(text, 1, RULES_MAX_BYTES + 1, file) : 0;
    if (!text)
        status = tare__fail(error, TARE_E_MEMORY, "out of memory");
    else if (ferror(file))
        status = tare__fail(error, TARE_E_INPUT, "cannot read '%.200s': %s", path, strerror(errno));
    else if (bytes > RULES_MAX_BYTES)
        status = tare__fail(error, TARE_E_INPUT, "'%.200s' is larger than %u bytes", path, RULES_MAX_BYTES);
    else
        status = tare__rules_parse(text, bytes, path, rules, error);
    free(text);
    if (file)
        fclose(file);
    else
        close(fd);
    return status;
}
