/* import_into: the file of a run, to which events of the program's own profiler in that run are added: which numbers
 * are in use, which process is which, and how a time maps to its clock. One thread.
 * Must not know what the events are. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "import_inner.h"
#include "trace.h"

/* Clocks are read one after the other, and realtime is adjusted occasionally. */
#define SLACK_NS 1000000000u

static void find_numbers(tare__import_base *base)
{
    size_t n;
    const tare__trace_name *names = tare__trace_names(base->trace, &n);
    for (size_t i = 0; i < n; i++)
        if (names[i].id > base->names && names[i].id < TARE__TRACE_IDS_MAX)
            base->names = names[i].id;
    for (size_t i = 0; i < tare__trace_stream_count(base->trace); i++) {
        uint32_t id = tare__trace_stream_row(base->trace, i)->id;
        if (id > base->streams)
            base->streams = id;
    }
    const tare__trace_process *processes = tare__trace_processes(base->trace, &n);
    for (size_t i = 0; i < n; i++)
        if (processes[i].number > base->processes)
            base->processes = processes[i].number;
}

static int read_clock(tare__import_base *base, tare__error *error)
{
    const tare__trace_run *run = tare__trace_run_of(base->trace);
    const tare__trace_end *end = tare__trace_end_of(base->trace);
    base->tick_ns = tare__trace_tick_ns(base->trace);
    base->start_ticks = run->start_ticks;
    base->start_realtime_ns = run->start_realtime_ns;
    base->end_realtime_ns = end->realtime_ns;
    base->end_offset = end->offset;
    if (!end->present || !base->start_ticks || !base->start_realtime_ns || !tare__trace_clock_known(base->trace))
        return tare__fail(error, TARE_E_INPUT, "%s is unfinished or has no clock: nothing can be added to it",
                          base->path);
    return 0;
}

/* Nothing may follow its END block: it would be lost. */
static int read_end(tare__import_base *base, tare__error *error)
{
    const char *is;
    int fd = tare__input_open(base->path, false, &is);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (fd >= 0 && !file)
        close(fd);
    char piece[4096];
    size_t got = 0;
    bool read = file && fseek(file, (long)base->end_offset, SEEK_SET) == 0 &&
                (got = fread(piece, 1, sizeof piece, file)) > 0 && feof(file);
    tare__block_header header;
    if (read && got >= sizeof header) {
        memcpy(&header, piece, sizeof header);
        read = !tare__block_header_check(&header) && header.kind == TARE__BLOCK_END &&
               sizeof header + header.payload_bytes == got;
    } else {
        read = false;
    }
    if (file)
        fclose(file);
    if (!read)
        return tare__fail(error, TARE_E_INPUT, "%s is not a complete trace", base->path);
    tare__text_append(&base->end, piece, got);
    return base->end.failed ? tare__fail(error, TARE_E_MEMORY, "out of memory") : 0;
}

int tare__import_base_open(tare__importer *importer, tare__import_base *base)
{
    tare__error *error = importer->error;
    base->path = importer->options->into;
    int status = tare__trace_open(base->path, &base->trace, error);
    if (!status)
        status = tare__trace_prescan(base->trace, error);
    if (!status)
        status = read_clock(base, error);
    if (!status)
        status = read_end(base, error);
    if (status)
        return status;
    find_numbers(base);
    importer->base = base;
    importer->names_before = base->names;
    return 0;
}

void tare__import_base_close(tare__import_base *base)
{
    tare__trace_close(base->trace);
    tare__text_free(&base->end);
}

/* ---- times ------------------------------------------------------------------------------------------------ */
static int64_t realtime_of(const tare__importer *importer, int64_t ns)
{
    int64_t sum;
    return __builtin_add_overflow(ns, importer->has_base ? importer->base_ns : 0, &sum) ? 0 : sum;
}

int tare__import_base_check(const tare__importer *importer)
{
    const tare__import_base *base = importer->base;
    int64_t first = realtime_of(importer, importer->first_ns), last = realtime_of(importer, importer->last_ns);
    if (first < (int64_t)(base->start_realtime_ns - SLACK_NS) ||
        (base->end_realtime_ns && last > (int64_t)(base->end_realtime_ns + SLACK_NS)))
        return tare__fail(importer->error, TARE_E_INPUT, "the times in '%.200s' are not from this run",
                          importer->options->input_name);
    return 0;
}

uint64_t tare__import_base_ticks(const tare__importer *importer, int64_t ns)
{
    const tare__import_base *base = importer->base;
    double since = (double)(realtime_of(importer, ns) - (int64_t)base->start_realtime_ns) / base->tick_ns;
    double ticks = (double)base->start_ticks + since;
    if (ticks < 1)
        return 1;
    return since < 0 ? base->start_ticks - (uint64_t)-since : base->start_ticks + (uint64_t)since;
}

/* ---- who ---------------------------------------------------------------------------------------------------- */
/* If a pid was used twice, the last one. A program in a container knows only its inner pid. */
uint32_t tare__import_base_process(const tare__importer *importer, int64_t pid)
{
    size_t n;
    const tare__trace_process *rows = tare__trace_processes(importer->base->trace, &n);
    uint32_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (rows[i].joined && (rows[i].inner_pid ? rows[i].inner_pid : rows[i].pid) == pid)
            found = rows[i].number;
    return found;
}

int tare__import_base_tell(tare__importer *importer)
{
    const char *file = importer->options->input_name;
    importer->base_fact =
        (tare__fact){.key = tare__import_name(importer, TARE__NAME_FACT, TARE__FACT_PROFILER_READ,
                                              strlen(TARE__FACT_PROFILER_READ)),
                     .file = tare__import_name(importer, TARE__NAME_FACT, file, strlen(file)),
                     .value = NAN};
    return importer->base_fact.key && importer->base_fact.file
               ? 0
               : tare__fail(importer->error, TARE_E_MEMORY, "out of memory");
}
