/* Fuzzes the importer: any bytes as a foreign trace; what it writes must open and analyze without damage. One thread.
 * Must not know the formats. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "trace/trace.h"

static void analyze(const char *path)
{
    tare__error error;
    tare__trace *trace = NULL;
    tare__analysis *analysis = NULL;
    const tare__analyze_options options = {0};
    if (tare__trace_open(path, &trace, &error) || tare__analyze(trace, &options, &analysis, &error))
        __builtin_trap();
    const tare__trace_damage *damage = tare__trace_damage_of(trace);
    if (damage->blocks || damage->torn || damage->unknown)
        __builtin_trap();
    tare__analysis_free(analysis);
    tare__trace_close(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static int fd = -1;
    static tare__import_report report;
    char path[64];
    tare__error error = {""};
    tare__memory_source from = {data, bytes};
    if (fd < 0)
        fd = memfd_create("import", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    /* Few at a time, so that runs are merged; those go to a file of their own beside the output. */
    tare__import_options options = {
        .output = path, .overwrite = true, .input_name = "fuzz", .records_max = 1u << 12};
    if (tare__import(tare__memory_read, &from, &options, &report, &error) == 0)
        analyze(path);
    return 0;
}
