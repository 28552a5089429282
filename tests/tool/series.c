/* series: a trace's series and samples as lines of text, for the end-to-end tests.
 * One thread. Shows what is in the file, not what is made of it.
 * Must not know who writes traces. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "trace/trace.h"

static tare__trace *trace;

static void show_values(void *context, uint32_t series, const uint64_t *ticks, const int64_t *values, uint32_t n)
{
    (void)context;
    for (uint32_t i = 0; i < n; i++)
        printf("value\t%u\t%.0f\t%" PRId64 "\n", series, tare__trace_ns(trace, ticks[i]), values[i]);
}

static void show_series(void)
{
    size_t n;
    const tare__trace_series *rows = tare__trace_series_rows(trace, &n);
    for (size_t i = 0; i < n; i++)
        printf("series\t%u\t%s\t%u\t%" PRIu64 "\t%" PRIu64 "\t%s\t%s\n", rows[i].id, rows[i].metric, rows[i].subject,
               rows[i].key, rows[i].owner, rows[i].label, rows[i].absent ? rows[i].absent : "");
}

static void show_text(const char *key, const char *text)
{
    if (text)
        printf("%s\t%s\n", key, text);
}

static void show_number(const char *key, uint64_t number)
{
    printf("%s\t%" PRIu64 "\n", key, number);
}

static void show_run(void)
{
    const tare__trace_run *run = tare__trace_run_of(trace);
    const tare__trace_end *end = tare__trace_end_of(trace);
    show_text("kernel", run->kernel);
    show_text("system", run->system);
    show_text("revision", run->revision);
    show_text("gpus", run->gpus);
    show_number("memory", run->memory_bytes);
    show_number("interval", run->interval_ns);
    show_number("attached", run->attached);
    if (run->has_carbon)
        show_number("carbon", run->carbon);
    show_number("finished", end->present);
    if (end->has_sampler_cpu)
        show_number("sampler_cpu", end->sampler_cpu_ns);
    show_number("stretched", end->stretched_ns);
    if (end->has_child) {
        show_number("child_user", end->child_user_ns);
        show_number("child_system", end->child_system_ns);
        show_number("child_peak", end->child_peak_bytes);
    }
    show_number("oom_killed", end->oom_killed);
}

int main(int argc, char **argv)
{
    tare__error error = {""};
    tare__trace_block block;
    tare__squeezer *squeezer = tare__squeezer_new();
    if (argc != 2 || !squeezer || tare__trace_open(argv[1], &trace, &error) || tare__trace_prescan(trace, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 3;
    }
    show_run();
    show_series();
    int more, status = 0;
    while ((more = tare__trace_next(trace, &block, &error)) > 0)
        if (block.header.kind == TARE__BLOCK_SAMPLES &&
            tare__samples_read(&block.header, block.payload, squeezer, show_values, NULL))
            status = 3;
    tare__trace_close(trace);
    tare__squeezer_free(squeezer);
    return more < 0 ? 3 : status;
}
