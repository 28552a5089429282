/* own_profiler: adds the output of the program's own torch.profiler to the trace of the run in which it was written.
 * One thread. All messages go to standard error.
 * Must not know what is in these files. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording.h"
#include "trace/trace.h"

/* Each file is read completely; a program that writes more than this is not expected to need them in the trace. */
#define FILES_MAX 256u

static void add_one(const char *me, const char *path, const char *trace)
{
    tare__error error = {""};
    tare__import_file *file = NULL;
    static tare__import_report report; /* large: not on the stack */
    tare__import_options options = {.into = trace, .input_name = path};
    int status = tare__import_open(path, &file, &error);
    if (!status)
        status = tare__import(tare__import_read, file, &options, &report, &error);
    tare__import_close(file);
    if (status)
        tare__cli_say(me, "the output of the program's own profiler was not imported: %s",
                      error.text[0] ? error.text : tare_status_text(status));
}

/* Its events are older than the file's last ones, and would be removed first by rotation. */
static bool keeps_all(const tare__cli_recording *recording)
{
    return recording->record.max_bytes == 0 && recording->record.last_ns == 0;
}

/* A file that was rewritten in each cycle is listed once; one that no longer exists was temporary. */
static void add_all(const char *me, const char *trace, const tare__text *paths)
{
    unsigned files = 0;
    for (const char *at = paths->data; at < paths->data + paths->length; at += strlen(at) + 1)
        if (access(at, F_OK) == 0 && files++ < FILES_MAX)
            add_one(me, at, trace);
    if (files > FILES_MAX)
        tare__cli_say(me, "the program's own profiler wrote %u files; the first %u were imported", files, FILES_MAX);
}

/* Each path is terminated by NUL and listed once: several processes may have written the same file. */
static int find_paths(const char *path, tare__text *paths)
{
    tare__error error = {""};
    tare__trace *trace = NULL;
    tare__intern *seen = tare__intern_new();
    size_t n = 0;
    int status = seen ? tare__trace_open(path, &trace, &error) : TARE_E_MEMORY;
    if (!status)
        status = tare__trace_prescan(trace, &error);
    const tare__trace_fact *facts = status ? NULL : tare__trace_facts(trace, &n);
    for (size_t i = 0; i < n; i++) {
        const char *named = tare__trace_fact_text(trace, facts[i].file);
        uint32_t before = tare__intern_count(seen);
        if (named && tare__trace_fact_is(trace, &facts[i], TARE__FACT_PROFILER_WROTE) &&
            tare__intern_add(seen, named, strlen(named)) == before)
            tare__text_append(paths, named, strlen(named) + 1);
    }
    tare__trace_close(trace);
    tare__intern_free(seen);
    return status;
}

uint64_t tare__cli_import_profiler(const tare__cli_recording *recording, const char *me, const tare__run_result *result)
{
    tare__text paths = {0};
    uint64_t bytes = result->trace_bytes;
    struct stat now;
    if (find_paths(result->trace, &paths) == 0 && !paths.failed && paths.length) {
        if (keeps_all(recording)) {
            add_all(me, result->trace, &paths);
            bytes = stat(result->trace, &now) == 0 ? (uint64_t)now.st_size : bytes;
        } else {
            tare__cli_say(me, "with --max-size or --last, the output of the program's own profiler is not imported");
        }
    }
    tare__text_free(&paths);
    return bytes;
}
