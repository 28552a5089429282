/* make_trace_seeds: writes the seed corpus of fuzz_trace: small whole traces of every kind of block.
 * Takes the folder to write to; needs -Itests/unit. One thread.
 * Must not know how traces are read. */
#define _GNU_SOURCE
#include "trace_builder.h"

static void save(builder *b, const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    builder_check(!file || fwrite(b->file.data, 1, b->file.length, file) != b->file.length || fclose(file));
}

static void people(builder *b)
{
    build_run(b);
    build_clock(b);
    build_process(b, 1, 77);
    build_stream(b, 1, 1, 77, "main");
    build_stream(b, 2, 1, 78, "worker");
    build_name(b, 1, TARE_KIND_STEP, "step");
    build_name(b, 2, TARE_KIND_SPAN, "load");
    build_name(b, 3, TARE_KIND_NUMBER, "index");
    build_name(b, 4, TARE_KIND_COUNTER, "loss");
    build_name(b, 5, TARE__NAME_TRACK + TARE_TRACK_GPU, "gpu");
}

static void spans(builder *b)
{
    for (uint32_t stream = 1; stream <= 2; stream++) {
        b->stream = stream;
        uint64_t t = 2000;
        for (int i = 0; i < 6; i++) {
            BEGIN(1, t += 100);
            NUMBER(3, i);
            BEGIN(2, t += 100);
            NEXT(2, t += 300);
            COUNTER(4, t += 10, 0.5 * i);
            MARK(2, t += 10);
            if (i == 3)
                build_seal(b);
            END(t += 10);
            if (i == 4)
                LOST(1);
            else
                END_OF(1, t += 10);
        }
        build_seal(b);
    }
}

static void others(builder *b)
{
    const tare__complete_span complete[] = {{.name = 2, .track = 5, .start = 5000, .end = 5400, .flow = 1},
                                            {.name = 2, .track = 0, .start = 4000, .end = 4100, .parent = 2}};
    tare__block_header header = {.stream = 1};
    builder_check(tare__complete_seal(complete, 2, b->squeezer, &header, &b->file));
    uint32_t buckets[TARE__CELL_BUCKETS] = {[20] = 3};
    tare__aggregate cell = {2, 4, 12, 3, 132, 44, 44, buckets};
    builder_check(tare__aggregates_seal(&cell, 1, b->squeezer, &header, &b->file));
}

static void samples(builder *b)
{
    build_series(b, 1, TARE__M_RSS, TARE__SUBJECT_TREE, 0, "");
    build_series(b, 2, TARE__M_CPU_USER, TARE__SUBJECT_TREE, 0, "");
    build_series(b, 3, TARE__M_RSS_PEAK, TARE__SUBJECT_PROCESS, 77, "train");
    build_series_absent(b, 4, TARE__M_ENERGY, TARE__SUBJECT_SENSOR, 0, 0, "package-0", "needs root");
    build_series(b, 5, TARE__M_GPU_BUSY, TARE__SUBJECT_GPU, 0, "H200");
    for (uint64_t tick = 0; tick < 8; tick++) {
        build_tick(b, 2000 + tick * 1000);
        build_sample(b, 1, (int64_t)tick * 4096);
        build_sample(b, 2, (int64_t)tick * 900);
        build_sample(b, 3, 100000);
        if (tick % 3)
            build_sample(b, 5, 870);
    }
    build_samples_seal(b);
}

static void stacks(builder *b)
{
    uint32_t main = build_thread(b, 77, "python"), worker = build_thread(b, 78, "worker");
    for (uint32_t part = 0; part < 2; part++) {
        uint32_t step = build_frame(b, build_frame(b, 0, "<module>", 5), part ? "evaluate" : "step", 20);
        for (uint32_t i = 0; i < 12; i++)
            build_stack_sample(b, (tare__stack_sample){.ticks = 2000 + (part * 12 + i) * 200, .stack = step,
                                                       .thread = i % 2 ? main : worker, .state = 1 + i % 3,
                                                       .wall_ns = i > 1 ? 200 : 0, .cpu_ns = i % 2 * 150});
        build_stacks_seal(b);
    }
}

int main(int n, char **arguments)
{
    if (n != 2)
        return 2;
    builder *b = builder_new();
    people(b);
    save(b, arguments[1], "people");
    spans(b);
    save(b, arguments[1], "unfinished");
    others(b);
    samples(b);
    build_end(b, 100000);
    save(b, arguments[1], "whole");
    builder_free(b);
    b = builder_new();
    people(b);
    stacks(b);
    build_end(b, 100000);
    save(b, arguments[1], "stacks");
    builder_free(b);
    return 0;
}
