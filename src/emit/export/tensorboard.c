/* tensorboard: which files TensorBoard's plugins expect, and what is in each.
 * Owned by the calling thread.
 * Must not know the inside of the formats. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tensorboard.h"

#define FILES_MAX  12u /* processes that get a file */
#define NAME_BYTES 512

/* Times are relative to this, so that a double represents them to the nanosecond. The same for all ranks of a job,
 * unless one of these instants, which are 104 days apart, falls between their starts. */
#define BASE_NS (UINT64_C(1) << 53)

/* ---- names -------------------------------------------------------------------------------------------------- */
/* The host, in a form that is valid in a file name. */
static void put_host(const tare__trace *trace, char out[128])
{
    const char *host = tare__trace_run_of(trace)->host;
    snprintf(out, 128, "%.100s", host && host[0] ? host : "tare");
    for (char *at = out; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '-' && *at != '_')
            *at = '_';
}

/* TensorBoard treats any folder with a .pt.trace.json as a run; HolisticTraceAnalysis reads all .json files of one. The
 * first recognizes launches only as "runtime", the second only as "cuda_runtime". */
static const struct reader {
    const char *folder, *ending, *launches;
} readers[] = {{"", ".pt.trace.json", "runtime"}, {"hta/", ".json", "cuda_runtime"}};

static void name_kineto(const tare__trace *trace, const tare__trace_process *process,
                        const struct reader *reader, char out[NAME_BYTES])
{
    char host[128];
    put_host(trace, host);
    snprintf(out, NAME_BYTES, "%s%s_%" PRId64 ".%" PRIu64 "%s", reader->folder, host,
             process ? process->pid : 0, tare__trace_run_of(trace)->start_realtime_ns, reader->ending);
}

static void name_xplane(const tare__trace *trace, char out[NAME_BYTES])
{
    char host[128], run[32] = "tare";
    time_t start = (time_t)(tare__trace_run_of(trace)->start_realtime_ns / 1000000000u);
    struct tm parts;
    put_host(trace, host);
    if (start && gmtime_r(&start, &parts))
        strftime(run, sizeof run, "%Y_%m_%d_%H_%M_%S", &parts);
    snprintf(out, NAME_BYTES, "plugins/profile/%s/%s.xplane.pb", run, host);
}

/* ---- ranks --------------------------------------------------------------------------------------------------- */
/* From its field; before that existed, imports put "(rank 3)" into a process's arguments. -1: unknown. */
static int64_t rank_of(const tare__trace_process *process)
{
    if (process && process->has_rank && process->rank <= INT32_MAX)
        return (int64_t)process->rank;
    const char *at = process ? process->arguments : NULL;
    for (size_t left = at ? process->arguments_bytes : 0; left > 0;) {
        int rank;
        size_t length = strnlen(at, left);
        if (length < left && sscanf(at, "(rank %d)", &rank) == 1 && rank >= 0)
            return rank;
        length += length < left;
        at += length;
        left -= length;
    }
    return -1;
}

/* ---- files ---------------------------------------------------------------------------------------------------- */
static int write_kineto(tare__trace *trace, tare__kineto_ids *ids, tare__kineto_file *file,
                        const struct reader *reader, const tare__emit_files *files, tare__error *error)
{
    char name[NAME_BYTES];
    const tare__trace_process *process = tare__trace_process_at(trace, file->process);
    int64_t told = rank_of(process);
    file->rank = told >= 0 || file->ranks == 1 ? told : file->rank;
    file->launches = reader->launches;
    name_kineto(trace, process, reader, name);
    const tare__emit_sink *sink = files->open(files->context, name);
    if (!sink)
        return TARE_E_SYSTEM;
    int status = tare__emit_kineto(trace, ids, file, sink, error);
    return status ? status : files->close(files->context);
}

static uint32_t count_processes(const tare__kineto_ids *ids)
{
    uint32_t n = 0;
    for (size_t i = 0; i < ids->processes_room; i++)
        n += ids->with_events[i];
    return n;
}

static int write_all(tare__trace *trace, tare__kineto_ids *ids, const tare__emit_files *files, tare__error *error)
{
    char name[NAME_BYTES];
    uint64_t start = tare__trace_run_of(trace)->start_realtime_ns;
    tare__kineto_file file = {.rank = 0, .ranks = count_processes(ids), .base_ns = start / BASE_NS * BASE_NS};
    int status = 0;
    for (size_t i = 0; i < ids->processes_room && !status && file.rank < FILES_MAX; i++) {
        if (!ids->with_events[i])
            continue;
        tare__kineto_file one = file;
        one.process = (uint32_t)i;
        for (size_t k = 0; k < TARE__COUNT_OF(readers) && !status; k++)
            status = write_kineto(trace, ids, &one, &readers[k], files, error);
        file.rank++;
    }
    if (status)
        return status;
    name_xplane(trace, name);
    const tare__emit_sink *sink = files->open(files->context, name);
    if (!sink)
        return TARE_E_SYSTEM;
    status = tare__emit_xplane(trace, sink, error);
    return status ? status : files->close(files->context);
}

int tare__emit_tensorboard(tare__trace *trace, const tare__emit_files *files, tare__error *error)
{
    tare__kineto_ids ids;
    int status = tare__kineto_ids_read(&ids, trace, error);
    if (!status)
        status = write_all(trace, &ids, files, error);
    tare__kineto_ids_free(&ids);
    return status;
}
