/* make_codec_seeds: writes the seed corpus of fuzz_codec, a block of each kind, into the folder given.
 * One thread.
 * Must not know the fuzzer, but for its first byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/format.h"

static const char *folder;

/* A block as an input that has its header, too. */
static void save(const char *name, const tare__text *out)
{
    char path[4096];
    tare__block_header header;
    memcpy(&header, out->data, sizeof header);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fputc(16 | header.kind, file) == EOF ||
        fwrite(out->data, 1, out->length, file) != out->length || fclose(file)) {
        perror(path);
        exit(1);
    }
}

static void check(int status)
{
    if (status) {
        fprintf(stderr, "sealing failed: %d\n", status);
        exit(1);
    }
}

static void save_events(tare__squeezer *squeezer, const char *name, unsigned spans, uint64_t gap)
{
    tare__events_encoder *encoder = tare__events_encoder_new();
    tare__span_stack open = {0};
    tare__block_header header = {.stream = 1};
    tare__text out = {0};
    uint64_t ticks = 100000;
    check(!encoder || tare__span_stack_push(&open, 3, 5) || tare__span_stack_push(&open, 300, 50));
    for (unsigned i = 0; i < spans; i++) {
        tare__events_add(encoder, TARE__OP_BEGIN, 1 + i * 97 % 400, ticks += i % 50);
        if (i % 7 == 0)
            tare__events_add_value(encoder, TARE__OP_NUMBER, 5, 0, i % 2 ? 32 : 0.5);
        if (i % 11 == 0)
            tare__events_add(encoder, TARE__OP_NEXT, 70000, ticks += gap);
        ticks += i % 17 ? gap : gap * 999;
        tare__events_add(encoder, i % 13 ? TARE__OP_END : TARE__OP_END_OF, 2, ticks);
    }
    tare__events_add(encoder, TARE__OP_MARK, 6, ticks);
    tare__events_add_value(encoder, TARE__OP_COUNTER, 7, ticks + 1, -3.25);
    tare__events_add_value(encoder, TARE__OP_LOST_ENDS, 0, 0, 2);
    check(tare__events_seal(encoder, squeezer, &open, &header, &out));
    save(name, &out);
    tare__span_stack_free(&open);
    tare__events_encoder_free(encoder);
    tare__text_free(&out);
}

static void save_complete(tare__squeezer *squeezer)
{
    tare__complete_span spans[60];
    tare__block_header header = {.stream = 1};
    tare__text out = {0};
    for (unsigned i = 0; i < 60; i++)
        spans[i] = (tare__complete_span){.name = 1 + i % 3, .track = i % 2 * 9, .id = i, .flow = i / 9,
                                         .start = 10000 + i * 77 % 1000, .end = 20000 + i, .parent = i / 2};
    check(tare__complete_seal(spans, 60, squeezer, &header, &out));
    save("complete", &out);
    tare__text_free(&out);
}

static void save_names(tare__squeezer *squeezer)
{
    tare__file_name names[40];
    tare__text out = {0};
    for (uint32_t i = 0; i < 40; i++)
        names[i] = (tare__file_name){.id = i * 2 + 1, .kind = 1 + i % 7, .line = i * 10, .text = "forward",
                                     .text_bytes = i % 8, .file = "model/train.c", .file_bytes = 13};
    check(tare__names_seal(names, 40, squeezer, &out));
    save("names", &out);
    tare__text_free(&out);
}

static void save_aggregates(tare__squeezer *squeezer)
{
    static uint32_t buckets[TARE__CELL_BUCKETS];
    tare__aggregate aggregates[5];
    tare__block_header header = {.stream = 1};
    tare__text out = {0};
    for (unsigned i = 0; i < TARE__CELL_BUCKETS; i += 5)
        buckets[i] = i * i + 1;
    for (uint32_t i = 0; i < 5; i++)
        aggregates[i] = (tare__aggregate){.name = i + 1, .every = i, .count = 1000, .timed = 900,
                                          .total = 12345678, .min = 3, .max = 99999, .buckets = buckets};
    check(tare__aggregates_seal(aggregates, 5, squeezer, &header, &out));
    save("aggregates", &out);
    tare__text_free(&out);
}

static void save_series(tare__squeezer *squeezer)
{
    tare__series series[40];
    tare__text out = {0};
    for (uint32_t i = 0; i < 40; i++)
        series[i] = (tare__series){.id = i * 2 + 1, .unit = 1 + i % 10, .kind = 1 + i % 3, .subject = 1 + i % 12,
                                   .key = 1000 + i, .owner = i % 4, .metric = "memory.rss", .metric_bytes = 10,
                                   .label = "python3", .label_bytes = i % 8, .absent = "no permission",
                                   .absent_bytes = i % 5 ? 0 : 13};
    check(tare__series_seal(series, 40, squeezer, &out));
    save("series", &out);
    tare__text_free(&out);
}

static void save_samples(tare__squeezer *squeezer, const char *name, uint32_t n_series, uint32_t ticks)
{
    tare__samples *samples = tare__samples_new();
    tare__text out = {0};
    check(!samples);
    for (uint32_t tick = 0; tick < ticks; tick++) {
        check(!tare__samples_tick(samples, 1000000 + (uint64_t)tick * 230000));
        for (uint32_t i = 0; i < n_series; i++)
            if (i % 3 == 0 || tick % (i + 1) == 0)
                check(!tare__samples_put(samples, i * 2 + 1, (int64_t)tick * i * 4096 - i));
    }
    check(tare__samples_seal(samples, squeezer, &out));
    save(name, &out);
    tare__samples_free(samples);
    tare__text_free(&out);
}

static void save_facts(tare__squeezer *squeezer)
{
    tare__fact facts[30];
    tare__block_header header = {.stream = 1};
    tare__text out = {0};
    for (uint32_t i = 0; i < 30; i++)
        facts[i] = (tare__fact){.key = 1 + i % 4, .file = i % 3, .text = i % 2 * 300, .line = i * 11,
                                .ticks = 70000 - i * 13, .value = i * 0.5};
    check(tare__facts_seal(facts, 30, squeezer, &header, &out));
    save("facts", &out);
    tare__text_free(&out);
}

/* Seals what is new: tables alone, or samples alone. */
static void save_sealed(tare__stacks *stacks, tare__squeezer *squeezer, const char *name)
{
    tare__text out = {0};
    check(tare__stacks_seal(stacks, squeezer, &out));
    save(name, &out);
    tare__text_free(&out);
}

static void save_stack_samples(tare__stacks *stacks, tare__squeezer *squeezer, const char *name, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const tare__stack_sample sample = {.ticks = 5000 + (uint64_t)i * 2300, .thread = 1 + i % 3,
                                           .stack = i % 3 ? 5 : i % 30, .state = i % 4, .flags = i % 7 == 0,
                                           .wall_ns = i > 2 ? 3000 : 0, .cpu_ns = i % 3 ? 0 : 2900 + i,
                                           .queue_ns = i % 9 ? 0 : 77};
        check(!tare__stacks_sample(stacks, &sample));
    }
    save_sealed(stacks, squeezer, name);
}

static void save_stacks(tare__squeezer *squeezer)
{
    tare__stacks *stacks = tare__stacks_new();
    check(!stacks);
    for (uint32_t i = 0; i < 30; i++) {
        const tare__stack_function function = {.kind = 1 + i % 4, .first_line = i * 10, .name = "forward_and_backward",
                                               .name_bytes = 1 + i % 20, .file = i % 4 ? "model/train.py" : "a.py",
                                               .file_bytes = i % 9 ? 4 : 0};
        const tare__stack_thread thread = {.pid = 4000, .tid = 4000 + i % 5, .start_time = 99, .name = "worker",
                                           .name_bytes = i % 5, .main = i % 5 == 0};
        tare__stacks_thread(stacks, &thread);
        tare__stacks_push(stacks, i / 2, tare__stacks_function(stacks, &function), i * 10 + i % 3);
        if (i == 0)
            save_sealed(stacks, squeezer, "stacks-one");
    }
    save_sealed(stacks, squeezer, "stacks-some");
    save_stack_samples(stacks, squeezer, "stack-samples-one", 1);
    save_stack_samples(stacks, squeezer, "stack-samples-some", 90);
    tare__stacks_free(stacks);
}

static void save_plain(void)
{
    const tare__clock_sync syncs[2] = {{1000, 500000, 1700000000000000000},
                                       {2300001000, 1000500000, 1700000001000000000}};
    tare__text out = {0}, fields = {0};
    check(tare__clock_seal(syncs, 2, &out));
    save("clock", &out);
    tare__text_clear(&out);
    tare__field_string(&fields, TARE__FIELD_WRITER, "tare");
    tare__field_number(&fields, TARE__FIELD_START_TICKS, 123456789);
    tare__field_bytes(&fields, TARE__FIELD_COMMAND, "ls\0-l\0", 6);
    check(tare__fields_seal(TARE__BLOCK_RUN, 0, &fields, &out));
    save("run", &out);
    tare__text_free(&fields);
    tare__text_free(&out);
}

int main(int count, char **arguments)
{
    tare__squeezer *squeezer = tare__squeezer_new();
    if (count != 2 || !squeezer) {
        fprintf(stderr, "usage: make_codec_seeds FOLDER\n");
        return 2;
    }
    folder = arguments[1];
    save_events(squeezer, "events-none", 0, 1);
    save_events(squeezer, "events-few", 5, 30);
    save_events(squeezer, "events-some", 300, 30);
    save_events(squeezer, "events-wide", 60, UINT64_C(3000000000));
    save_complete(squeezer);
    save_names(squeezer);
    save_aggregates(squeezer);
    save_series(squeezer);
    save_samples(squeezer, "samples-one", 1, 1);
    save_samples(squeezer, "samples-some", 12, 10);
    save_facts(squeezer);
    save_stacks(squeezer);
    save_plain();
    tare__squeezer_free(squeezer);
    return 0;
}
