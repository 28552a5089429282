/* stacks: sampled stacks of a trace as lines of text; with a seed, a trace of generated ones, and what was put into it.
 * One thread. Shows what is in the file, not what is made of it.
 * Must not know how stacks are taken. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/trace.h"

static int fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    return 3;
}

/* ---- show -------------------------------------------------------------------------------------------------- */
static void show_tables(const tare__trace *trace)
{
    for (uint32_t i = 1; i <= tare__trace_function_count(trace); i++) {
        const tare__trace_function *row = tare__trace_function_at(trace, i);
        if (row)
            printf("function\t%u\t%u\t%u\t%s\t%s\n", i, row->kind, row->first_line, row->name, row->file);
    }
    for (uint32_t i = 1; i <= tare__trace_thread_count(trace); i++) {
        const tare__trace_thread *row = tare__trace_thread_at(trace, i);
        if (row)
            printf("thread\t%u\t%" PRId64 "\t%" PRId64 "\t%" PRIu64 "\t%d\t%s\n", i, row->pid, row->tid,
                   row->start_time, row->main, row->name);
    }
    for (uint32_t i = 1; i <= tare__trace_stack_count(trace); i++) {
        const tare__trace_stack *row = tare__trace_stack_at(trace, i);
        if (row)
            printf("stack\t%u\t%u\t%u\t%" PRIu64 "\n", i, row->caller, row->function, row->line);
    }
}

static void show_samples(const tare__stack_sample *samples, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        printf("sample\t%" PRIu64 "\t%u\t%u\t%u\t%u\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", samples[i].ticks,
               samples[i].thread, samples[i].stack, samples[i].state, samples[i].flags, samples[i].wall_ns,
               samples[i].cpu_ns, samples[i].queue_ns);
}

static int show(const char *path)
{
    tare__error error = {""};
    tare__trace *trace;
    tare__trace_block block;
    const tare__stack_sample *samples;
    uint32_t n;
    if (tare__trace_open(path, &trace, &error) || tare__trace_prescan(trace, &error))
        return fail(error.text);
    show_tables(trace);
    int more, status = 0;
    while ((more = tare__trace_next(trace, &block, &error)) > 0)
        if (block.header.kind == TARE__BLOCK_STACK_SAMPLES) {
            status = tare__trace_stack_samples(trace, &block, &samples, &n) ? 3 : status;
            show_samples(samples, n);
        }
    tare__trace_close(trace);
    return more < 0 ? fail(error.text) : status;
}

/* ---- generate ---------------------------------------------------------------------------------------------- */
#define THREADS 12u
#define DEPTH 20u

static uint64_t random_state;
static uint64_t draw(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 24) % below;
}

/* A new stack of one frame more, printed as kind:name:file:first line@line. */
static uint32_t push(tare__stacks *stacks, uint32_t caller)
{
    static const char *const files[] = {"", "train.py", "/usr/lib/libtorch.so", "net/модель.py"};
    char name[32];
    uint64_t which = draw(40), line = which % 4 == 2 ? draw(UINT64_C(1) << 40) % 5 * UINT64_C(77777777777) : draw(6);
    const char *file = files[which % 4];
    const tare__stack_function function = {
        .kind = 1 + (uint32_t)which % 4,
        .first_line = (uint32_t)(which * which * 31),
        .name = name,
        .name_bytes = (uint32_t)snprintf(name, sizeof name, "f%" PRIu64, which),
        .file = file,
        .file_bytes = (uint32_t)strlen(file),
    };
    printf("\t%u:%s:%s:%u@%" PRIu64, function.kind, name, file, function.first_line, line);
    return tare__stacks_push(stacks, caller, tare__stacks_function(stacks, &function), line);
}

/* One sample, printed by content: no numbers of tables. */
static void put_sample(tare__stacks *stacks, uint64_t ticks, uint64_t *before)
{
    char name[32];
    uint64_t which = draw(THREADS);
    const tare__stack_thread thread = {
        .pid = 5000 - (int64_t)(which / 4) * 1000,
        .tid = 5000 + (int64_t)which * 7,
        .start_time = 123456 + which / 4,
        .name = name,
        .name_bytes = which % 3 ? (uint32_t)snprintf(name, sizeof name, "worker %" PRIu64, which) : 0,
        .main = which % 4 == 0,
    };
    name[thread.name_bytes] = '\0';
    tare__stack_sample sample = {
        .ticks = ticks,
        .thread = tare__stacks_thread(stacks, &thread),
        .state = (uint32_t)draw(draw(2) ? 2 : TARE__STATE_COUNT),
        .flags = draw(3) ? 0 : (uint32_t)draw(8),
        .wall_ns = draw(20) ? (ticks - before[which]) * 10 / 23 + draw(3) : draw(UINT64_MAX),
        .cpu_ns = draw(2) ? 0 : draw(draw(50) ? 9000000 : UINT64_MAX),
        .queue_ns = draw(10) ? 0 : draw(2000000),
    };
    before[which] = ticks;
    printf("given\t%" PRIu64 "\t%" PRId64 "\t%" PRId64 "\t%" PRIu64 "\t%d\t%s\t%u\t%u\t%" PRIu64 "\t%" PRIu64
           "\t%" PRIu64, ticks, thread.pid, thread.tid, thread.start_time, thread.main, name, sample.state,
           sample.flags, sample.wall_ns, sample.cpu_ns, sample.queue_ns);
    for (uint64_t depth = draw(4) ? draw(3) : draw(DEPTH); depth > 0; depth--)
        sample.stack = push(stacks, sample.stack);
    printf("\n");
    tare__stacks_sample(stacks, &sample);
}

static void put_frame_of_file(tare__text *file)
{
    tare__file_header header;
    tare__text fields = {0};
    tare__file_header_make(&header);
    tare__text_append(file, (const char *)&header, sizeof header);
    tare__field_number(&fields, TARE__FIELD_START_TICKS, 1000);
    tare__fields_seal(TARE__BLOCK_RUN, 0, &fields, file);
    tare__text_free(&fields);
}

static int generate(const char *path, uint64_t seed)
{
    tare__text file = {0};
    tare__squeezer *squeezer = tare__squeezer_new();
    tare__stacks *stacks = tare__stacks_new();
    uint64_t ticks = 1000000, before[THREADS] = {0};
    random_state = seed;
    if (!squeezer || !stacks)
        return fail("out of memory");
    put_frame_of_file(&file);
    for (uint64_t block = 3 + draw(4); block > 0; block--) {
        for (uint64_t n = draw(4) ? draw(200) : draw(2); n > 0; n--)
            put_sample(stacks, ticks += draw(3) ? draw(30000) : draw(30000000), before);
        if (tare__stacks_seal(stacks, squeezer, &file))
            return fail("cannot seal");
    }
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(file.data, 1, file.length, out) != file.length || fclose(out) || tare__stacks_refused(stacks))
        return fail("cannot write");
    tare__text_free(&file);
    tare__stacks_free(stacks);
    tare__squeezer_free(squeezer);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return generate(argv[1], strtoull(argv[2], NULL, 10));
    return argc == 2 ? show(argv[1]) : fail("usage: stacks FILE [SEED]");
}
