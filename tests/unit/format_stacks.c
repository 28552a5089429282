/* Tests of src/format/stacks.c, stack_tables.c and stack_samples.c: round trips, limits, damage, no memory.
 * One thread.
 * Must not know the other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base_failing.h"
#include "format/format.h"
#include "format/stacks_inner.h"
#include "tare.h"

/* What the blocks of a text contain. */
#define SEEN_MAX 40000u
typedef struct seen {
    tare__stack_function functions[SEEN_MAX + 1];
    tare__stack_thread threads[SEEN_MAX + 1];
    struct { uint32_t caller, function; uint64_t line; } stacks[SEEN_MAX + 1];
    uint32_t function_count, thread_count, stack_count, blocks;
    tare__stack_sample samples[TARE__STACK_SAMPLES_MAX];
    uint32_t sample_count;
    tare__arena *texts;
} seen;
static seen *got;
static tare__squeezer *squeezer;
static tare__stacks *stacks;

static int setup(void **state)
{
    (void)state;
    got = calloc(1, sizeof *got);
    got->texts = tare__arena_new();
    squeezer = tare__squeezer_new();
    stacks = tare__stacks_new();
    return got->texts && squeezer && stacks ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    allocations_left = -1;
    tare__arena_free(got->texts);
    free(got);
    tare__squeezer_free(squeezer);
    tare__stacks_free(stacks);
    return 0;
}

/* Numbers follow each other: a row is seen once, in order. */
static void see_function(void *context, uint32_t number, const tare__stack_function *function)
{
    seen *to = context;
    assert_int_equal(number, ++to->function_count);
    assert_true(number <= SEEN_MAX);
    to->functions[number] = *function;
    to->functions[number].name = tare__arena_copy(to->texts, function->name, function->name_bytes);
    to->functions[number].file = tare__arena_copy(to->texts, function->file, function->file_bytes);
}

static void see_thread(void *context, uint32_t number, const tare__stack_thread *thread)
{
    seen *to = context;
    assert_int_equal(number, ++to->thread_count);
    to->threads[number] = *thread;
    to->threads[number].name = tare__arena_copy(to->texts, thread->name, thread->name_bytes);
}

static void see_stack(void *context, uint32_t number, uint32_t caller, uint32_t function, uint64_t line)
{
    seen *to = context;
    assert_int_equal(number, ++to->stack_count);
    assert_true(caller < number && function <= to->function_count);
    to->stacks[number].caller = caller;
    to->stacks[number].function = function;
    to->stacks[number].line = line;
}

static void read_blocks(const tare__text *out, size_t from)
{
    tare__block_header header;
    const tare__stacks_sink sink = {see_function, see_thread, see_stack, got};
    for (size_t at = from; at < out->length; at += sizeof header + header.payload_bytes) {
        memcpy(&header, out->data + at, sizeof header);
        assert_null(tare__block_header_check(&header));
        const uint8_t *payload = (const uint8_t *)out->data + at + sizeof header;
        got->blocks++;
        if (header.kind == TARE__BLOCK_STACKS) {
            assert_int_equal(header.first_ticks, 0);
            assert_int_equal(tare__stacks_read(&header, payload, squeezer, &sink), 0);
        } else {
            assert_int_equal(header.kind, TARE__BLOCK_STACK_SAMPLES);
            assert_int_equal(
                tare__stack_samples_read(&header, payload, squeezer, got->samples, &got->sample_count), 0);
            assert_int_equal(got->samples[0].ticks, header.first_ticks);
            assert_int_equal(got->samples[got->sample_count - 1].ticks, header.last_ticks);
        }
    }
}

static void seal(tare__text *out)
{
    size_t from = out->length;
    assert_int_equal(tare__stacks_seal(stacks, squeezer, out), 0);
    read_blocks(out, from);
}

static uint32_t add_function(uint32_t kind, const char *name, const char *file, uint32_t line)
{
    tare__stack_function function = {.kind = kind,
                                     .first_line = line,
                                     .name = name,
                                     .file = file,
                                     .name_bytes = (uint32_t)strlen(name),
                                     .file_bytes = (uint32_t)strlen(file)};
    return tare__stacks_function(stacks, &function);
}

static uint32_t add_thread(int64_t pid, int64_t tid, const char *name)
{
    tare__stack_thread thread = {.pid = pid,
                                 .tid = tid,
                                 .start_time = 5000 + (uint64_t)pid,
                                 .name = name,
                                 .name_bytes = (uint32_t)strlen(name),
                                 .main = pid == tid};
    return tare__stacks_thread(stacks, &thread);
}

static uint64_t random_state = 7;
static uint64_t draw(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return below ? (random_state >> 20) % below : 0;
}

/* ---- tables ------------------------------------------------------------------------------------------------ */
static void equal_content_has_one_number(void **state)
{
    (void)state;
    char name[] = "forward", same[] = "forward";
    uint32_t first = add_function(TARE__FRAME_PYTHON, name, "net.py", 10);
    assert_int_equal(first, 1);
    assert_int_equal(add_function(TARE__FRAME_PYTHON, same, "net.py", 10), 1);
    assert_int_equal(add_function(TARE__FRAME_NATIVE, name, "net.py", 10), 2);
    assert_int_equal(add_function(TARE__FRAME_PYTHON, name, "net.py", 11), 3);
    assert_int_equal(add_function(TARE__FRAME_PYTHON, name, "", 10), 4);
    assert_int_equal(add_function(TARE__FRAME_PYTHON, "", "net.py", 10), 5);
    assert_int_equal(add_thread(100, 100, "python"), 1);
    assert_int_equal(add_thread(100, 101, "python"), 2);
    assert_int_equal(add_thread(100, 100, "renamed"), 3);
    assert_int_equal(add_thread(100, 100, "python"), 1);
    assert_int_equal(tare__stacks_push(stacks, 0, 1, 12), 1);
    assert_int_equal(tare__stacks_push(stacks, 1, 2, 12), 2);
    assert_int_equal(tare__stacks_push(stacks, 1, 2, UINT64_C(1) << 40), 3);
    assert_int_equal(tare__stacks_push(stacks, 0, 1, 12), 1);
    assert_int_equal(tare__stacks_push(stacks, 1, 2, 12), 2);
    assert_int_equal(tare__stacks_push(stacks, 3, 0, 0), 4); /* its function was refused */
    assert_int_equal(tare__stacks_refused(stacks), 0);
}

static void tables_come_back(void **state)
{
    (void)state;
    tare__text out = {0};
    add_function(TARE__FRAME_PYTHON, "main", "a.py", 1);
    add_function(TARE__FRAME_PYTHON, "step", "a.py", 40);
    add_function(TARE__FRAME_NOTE, "garbage collection", "", 0);
    add_function(TARE__FRAME_PYTHON, "late", "a.py", UINT32_MAX);
    add_thread(1 << 22, 1 << 22, "python");
    add_thread(1 << 22, -1, "");
    tare__stacks_push(stacks, 0, 1, 7);
    tare__stacks_push(stacks, 1, 4, UINT64_MAX);
    tare__stacks_push(stacks, 1, 0, 0);
    seal(&out);
    assert_int_equal(got->blocks, 1);
    assert_int_equal(got->function_count, 4);
    assert_string_equal(got->functions[2].name, "step");
    assert_string_equal(got->functions[2].file, "a.py");
    assert_string_equal(got->functions[3].file, "");
    assert_int_equal(got->functions[3].kind, TARE__FRAME_NOTE);
    assert_string_equal(got->functions[4].file, "a.py");
    assert_int_equal(got->functions[4].first_line, UINT32_MAX);
    assert_int_equal(got->thread_count, 2);
    assert_int_equal(got->threads[1].pid, 1 << 22);
    assert_true(got->threads[1].main && !got->threads[2].main);
    assert_int_equal(got->threads[2].tid, -1);
    assert_int_equal(got->threads[2].start_time, 5000 + (1 << 22));
    assert_string_equal(got->threads[1].name, "python");
    assert_int_equal(got->stack_count, 3);
    assert_int_equal(got->stacks[2].caller, 1);
    assert_int_equal(got->stacks[2].function, 4);
    assert_true(got->stacks[2].line == UINT64_MAX);
    assert_int_equal(got->stacks[3].function, 0);
    /* Only what is new is written. */
    size_t before = out.length;
    seal(&out);
    assert_int_equal(out.length, before);
    add_function(TARE__FRAME_KERNEL, "futex_wait", "", 0);
    tare__stacks_push(stacks, 3, 5, 1);
    seal(&out);
    assert_int_equal(got->blocks, 2);
    assert_string_equal(got->functions[5].name, "futex_wait");
    assert_int_equal(got->stacks[4].caller, 3);
    tare__text_free(&out);
}

/* More than fits into a block, also by the length of the texts. */
static void large_tables_come_back(void **state)
{
    (void)state;
    tare__text out = {0};
    static char name[4001], file[4100];
    memset(file, 'f', sizeof file - 1);
    for (uint32_t i = 0; i < SEEN_MAX; i++) {
        int bytes = snprintf(name, sizeof name, "function %u", i);
        if (i % 40 == 0)
            memset(name + bytes, 'x', sizeof name - 1 - (size_t)bytes);
        assert_int_equal(add_function(1 + i % 4, name, i % 3 ? "b.py" : file, i), i + 1);
        assert_int_equal(add_thread(i / 100, i, name), i + 1);
        assert_int_equal(tare__stacks_push(stacks, (uint32_t)draw(i + 1), (uint32_t)draw(i + 2), i), i + 1);
        memset(name, 0, sizeof name);
    }
    seal(&out);
    assert_true(got->blocks > 3);
    assert_int_equal(got->function_count, SEEN_MAX);
    assert_int_equal(got->thread_count, SEEN_MAX);
    assert_int_equal(got->stack_count, SEEN_MAX);
    assert_int_equal(got->functions[41].name_bytes, 4000);
    assert_int_equal(got->functions[42].file_bytes, 4);
    assert_int_equal(got->functions[1].file_bytes, TARE__NAME_TEXT_MAX); /* the end of it */
    assert_string_equal(got->functions[SEEN_MAX].name, "function 39999");
    assert_int_equal(got->threads[SEEN_MAX].tid, SEEN_MAX - 1);
    assert_int_equal(tare__stacks_refused(stacks), 0);
    tare__text_free(&out);
}

static void limits_refuse_and_count(void **state)
{
    (void)state;
    char name[32];
    for (uint32_t i = 0; i < TARE__STACK_FUNCTIONS_MAX; i++) {
        snprintf(name, sizeof name, "%u", i);
        assert_int_equal(add_function(1, name, "", 0), i + 1);
    }
    assert_int_equal(add_function(1, "one more", "", 0), 0);
    assert_int_equal(add_function(1, "7", "", 0), 8);
    for (uint32_t i = 0; i < TARE__STACK_THREADS_MAX; i++)
        assert_int_equal(add_thread(1, i, "t"), i + 1);
    assert_int_equal(add_thread(2, 1, "t"), 0);
    for (uint32_t i = 0; i < TARE__STACKS_MAX; i++)
        assert_int_equal(tare__stacks_push(stacks, i, 1, i), i + 1);
    assert_int_equal(tare__stacks_push(stacks, 0, 2, 0), 0);
    assert_int_equal(tare__stacks_push(stacks, 3, 1, 3), 4);
    assert_int_equal(tare__stacks_refused(stacks), 3);
}

static void texts_are_limited(void **state)
{
    (void)state;
    static char name[4001];
    uint32_t kept = 0;
    memset(name, 'n', sizeof name - 1);
    for (uint32_t i = 0; i < 10000; i++) {
        snprintf(name, 16, "%015u", i);
        name[15] = 'n';
        kept += add_function(1, name, "", 0) != 0;
    }
    assert_int_equal(kept, TARE__STACK_TEXTS_MAX / 4000);
    assert_int_equal(tare__stacks_refused(stacks), 10000 - kept);
    assert_true(add_function(1, "short", "", 0) != 0);
}

static void what_is_unknown_is_refused(void **state)
{
    (void)state;
    tare__text out = {0};
    assert_int_equal(tare__stacks_push(stacks, 1, 0, 0), 0);
    assert_int_equal(tare__stacks_push(stacks, 0, 1, 0), 0);
    assert_true(tare__stacks_sample(stacks, &(tare__stack_sample){.ticks = 1, .thread = 0}));
    assert_true(tare__stacks_sample(stacks, &(tare__stack_sample){.ticks = 1, .thread = 1}));
    assert_int_equal(tare__stacks_pending(stacks), 0);
    assert_int_equal(tare__stacks_refused(stacks), 4);
    add_thread(1, 1, "t");
    assert_true(tare__stacks_sample(stacks, &(tare__stack_sample){.ticks = 1, .thread = 1, .stack = 9}));
    assert_int_equal(tare__stacks_refused(stacks), 5);
    seal(&out);
    assert_int_equal(got->sample_count, 1);
    assert_int_equal(got->samples[0].stack, 0);
    tare__text_free(&out);
}

/* ---- samples ----------------------------------------------------------------------------------------------- */
#define THREADS 8u

static void make_stacks(uint32_t leaves)
{
    char name[32];
    for (uint32_t i = 0; i < THREADS; i++) {
        snprintf(name, sizeof name, "worker %u", i);
        add_thread(4000, 4000 + i, name);
    }
    for (uint32_t i = 0; i < leaves; i++) {
        snprintf(name, sizeof name, "f%u", i);
        add_function(TARE__FRAME_PYTHON, name, i % 5 ? "/usr/lib/python3/torch/nn/modules/module.py" : "train.py", i);
        tare__stacks_push(stacks, i ? (uint32_t)draw(i < 5 ? i + 1 : 5) : 0, i + 1, i * 7 % 300);
    }
}

static void assert_samples(const tare__stack_sample *expected, uint32_t n)
{
    assert_int_equal(got->sample_count, n);
    for (uint32_t i = 0; i < n; i++) {
        const tare__stack_sample *one = &got->samples[i], *other = &expected[i];
        assert_true(one->ticks == other->ticks && one->thread == other->thread && one->stack == other->stack &&
                    one->state == other->state && one->flags == other->flags && one->wall_ns == other->wall_ns &&
                    one->cpu_ns == other->cpu_ns && one->queue_ns == other->queue_ns);
    }
}

static void samples_come_back(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 2, 100, TARE__STACK_SAMPLES_MAX};
    static tare__stack_sample samples[TARE__STACK_SAMPLES_MAX];
    static const uint64_t edges[] = {0, 1, UINT64_MAX, UINT64_MAX / 2, UINT64_MAX / 2 + 1};
    tare__text out = {0};
    make_stacks(100);
    for (size_t c = 0; c < TARE__COUNT_OF(counts) * 2; c++) {
        bool wild = c % 2;
        uint64_t ticks = wild ? 0 : 123456789;
        uint32_t n = counts[c / 2];
        for (uint32_t i = 0; i < n; i++) {
            samples[i] = (tare__stack_sample){
                .ticks = ticks,
                .thread = 1 + (uint32_t)draw(THREADS),
                .stack = (uint32_t)draw(101),
                .state = wild ? (uint32_t)draw(UINT32_MAX) : (uint32_t)draw(TARE__STATE_COUNT),
                .flags = wild ? (uint32_t)draw(UINT32_MAX) : (uint32_t)draw(8),
                .wall_ns = wild ? edges[draw(5)] : 10000000,
                .cpu_ns = wild ? edges[draw(5)] : draw(10000000),
                .queue_ns = wild ? edges[draw(5)] : draw(2) * 7,
            };
            ticks += wild ? draw(UINT64_MAX / TARE__STACK_SAMPLES_MAX) : draw(30000);
            assert_true(tare__stacks_sample(stacks, &samples[i]));
        }
        assert_int_equal(tare__stacks_pending(stacks), n);
        assert_true(n < TARE__STACK_SAMPLES_MAX || !tare__stacks_sample(stacks, &samples[0]));
        seal(&out);
        assert_int_equal(tare__stacks_pending(stacks), 0);
        assert_samples(samples, n);
    }
    assert_int_equal(tare__stacks_refused(stacks), 0);
    tare__text_free(&out);
}

static void samples_are_sorted_by_time(void **state)
{
    (void)state;
    tare__text out = {0};
    static const uint64_t ticks[] = {50, 40, 60, 40, 10, 60};
    static const uint32_t threads[] = {5, 2, 4, 1, 3, 6}; /* in order of time, then as they came */
    make_stacks(1);
    for (uint32_t i = 0; i < 6; i++)
        tare__stacks_sample(stacks, &(tare__stack_sample){.ticks = ticks[i], .thread = i + 1});
    seal(&out);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(got->samples[i].thread, threads[i]);
    tare__text_free(&out);
}

/* Eight threads every 10 ms, with a clock of 2.3 GHz: six wait with an unchanged stack, two run. */
typedef struct course {
    uint64_t now, before[THREADS + 1];
    uint32_t stack[THREADS + 1], stacks;
} course;

static void fill_second(course *course)
{
    uint64_t *before = course->before;
    uint32_t *stack = course->stack;
    for (uint32_t tick = 0; tick < 100; tick++) {
        uint64_t ticks = course->now + draw(120000);
        for (uint32_t thread = 1; thread <= THREADS; thread++) {
            bool runs = thread <= 2;
            if (!stack[thread] || (runs && draw(4)))
                stack[thread] = 1 + (uint32_t)draw(course->stacks);
            ticks += 8000 + draw(25000);
            uint64_t wall = before[thread] ? (uint64_t)((double)(ticks - before[thread]) / 2.3) + draw(400) : 0;
            before[thread] = ticks;
            tare__stack_sample sample = {
                .ticks = ticks,
                .thread = thread,
                .stack = stack[thread],
                .state = runs ? draw(10) ? TARE__STATE_RUNNING : TARE__STATE_GIL : TARE__STATE_LOCK,
                .flags = runs && draw(2) ? TARE__SAMPLE_HAS_GIL : 0,
                .wall_ns = wall,
                .cpu_ns = runs ? draw(3) ? wall - draw(wall / 50 + 1) : draw(wall + 1) : 0,
                .queue_ns = runs && !draw(10) ? draw(2000000) : 0,
            };
            assert_true(tare__stacks_sample(stacks, &sample));
        }
        course->now += 23000000;
    }
}

static void samples_are_small(void **state)
{
    (void)state;
    tare__text out = {0};
    course course = {.now = 1000000000, .stacks = 2000};
    make_stacks(2000);
    seal(&out);
    size_t tables = out.length;
    for (int second = 0; second < 10; second++) {
        fill_second(&course);
        seal(&out);
    }
    size_t bytes = out.length - tables;
    print_message("%.2f bytes per sample, %.1f bytes per stack\n", (double)bytes / 8000, (double)tables / 2000);
    assert_true(bytes < 10 * 20000);
    tare__text_free(&out);
}

/* ---- no memory --------------------------------------------------------------------------------------------- */
static void a_failed_seal_keeps_everything(void **state)
{
    (void)state;
    course course = {.now = 1000000000, .stacks = 500};
    make_stacks(500);
    fill_second(&course);
    for (int fails_at = 0; fails_at < 100; fails_at++) {
        tare__squeezer *one = tare__squeezer_new();
        tare__text out = {0};
        tare__text_string(&out, "before");
        allocations_left = fails_at;
        int status = tare__stacks_seal(stacks, one, &out);
        allocations_left = -1;
        tare__squeezer_free(one);
        assert_true(status == 0 || status == TARE_E_MEMORY);
        if (status == 0) {
            assert_int_equal(tare__stacks_pending(stacks), 0);
            read_blocks(&out, 6);
            assert_int_equal(got->stack_count, 500);
            assert_int_equal(got->sample_count, 800);
            tare__text_free(&out);
            return;
        }
        assert_int_equal(out.length, 6);
        assert_string_equal(out.data, "before");
        assert_int_equal(tare__stacks_pending(stacks), 800);
        tare__text_free(&out);
    }
    fail_msg("it never had enough");
}

static void what_was_not_written_is_repeated(void **state)
{
    (void)state;
    tare__text out = {0}, lost = {0};
    make_stacks(10);
    seal(&out);
    add_function(TARE__FRAME_PYTHON, "lost", "", 0);
    tare__stacks_push(stacks, 0, 11, 1);
    tare__stacks_sample(stacks, &(tare__stack_sample){.ticks = 1, .thread = 1, .stack = 11});
    assert_int_equal(tare__stacks_seal(stacks, squeezer, &lost), 0);
    tare__stacks_unseal(stacks);
    assert_int_equal(tare__stacks_pending(stacks), 0);
    add_function(TARE__FRAME_PYTHON, "new", "", 0);
    seal(&out);
    assert_int_equal(got->function_count, 12);
    assert_int_equal(got->stack_count, 11);
    assert_string_equal(got->functions[11].name, "lost");
    tare__text_free(&out);
    tare__text_free(&lost);
}

static void without_memory_rows_are_refused(void **state)
{
    (void)state;
    for (int fails_at = 0; fails_at < 60; fails_at++) {
        allocations_left = fails_at;
        tare__stacks *few = tare__stacks_new();
        uint64_t refused = 0;
        if (few) {
            const tare__stack_function function = {.kind = 1, .name = "f", .name_bytes = 1};
            const tare__stack_thread thread = {.tid = 1, .name = "t", .name_bytes = 1};
            refused += tare__stacks_function(few, &function) == 0;
            refused += tare__stacks_thread(few, &thread) == 0;
            for (uint32_t i = 0; i < 200; i++)
                refused += tare__stacks_push(few, 0, 0, i) == 0;
            assert_int_equal(tare__stacks_refused(few), refused);
        }
        allocations_left = -1;
        bool enough = few && refused == 0;
        tare__stacks_free(few);
        if (enough)
            return;
    }
    fail_msg("it never had enough");
}

/* ---- damage ------------------------------------------------------------------------------------------------ */
static uint32_t rows_taken;
static volatile uint64_t text_sum; /* texts are readable to their end */

static uint64_t sum_of(const char *text, uint32_t bytes)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < bytes; i++)
        sum += (uint8_t)text[i];
    return sum;
}

static void check_function(void *context, uint32_t number, const tare__stack_function *function)
{
    (void)context;
    rows_taken++;
    assert_true(number && number <= TARE__STACK_FUNCTIONS_MAX);
    text_sum += sum_of(function->name, function->name_bytes) + sum_of(function->file, function->file_bytes);
}

static void check_thread(void *context, uint32_t number, const tare__stack_thread *thread)
{
    (void)context;
    rows_taken++;
    assert_true(number && number <= TARE__STACK_THREADS_MAX);
    text_sum += sum_of(thread->name, thread->name_bytes);
}

static void check_stack(void *context, uint32_t number, uint32_t caller, uint32_t function, uint64_t line)
{
    (void)context;
    (void)line;
    rows_taken++;
    assert_true(number && number <= TARE__STACKS_MAX && caller < number && function <= TARE__STACK_FUNCTIONS_MAX);
}

/* Refused without a row passed on, or read within bounds. */
static int read_damaged(const tare__block_header *header, const uint8_t *payload)
{
    static tare__stack_sample samples[TARE__STACK_SAMPLES_MAX];
    const tare__stacks_sink sink = {check_function, check_thread, check_stack, NULL};
    uint32_t n = 0;
    int status;
    rows_taken = 0;
    if (header->kind == TARE__BLOCK_STACKS) {
        status = tare__stacks_read(header, payload, squeezer, &sink);
        assert_int_equal(rows_taken, status ? 0 : header->count);
        return status;
    }
    status = tare__stack_samples_read(header, payload, squeezer, samples, &n);
    assert_int_equal(n, status ? 0 : header->count);
    for (uint32_t i = 0; i < n; i++)
        assert_true(samples[i].thread && samples[i].thread <= TARE__STACK_THREADS_MAX &&
                    samples[i].stack <= TARE__STACKS_MAX && samples[i].ticks <= header->last_ticks &&
                    samples[i].ticks >= (i ? samples[i - 1].ticks : header->first_ticks));
    return status;
}

static void damage_block(const uint8_t *block)
{
    tare__block_header header, wrong;
    memcpy(&header, block, sizeof header);
    uint8_t *payload = malloc(header.payload_bytes);
    memcpy(payload, block + sizeof header, header.payload_bytes);
    assert_int_equal(read_damaged(&header, payload), 0);
    static const uint8_t flips[] = {0x01, 0x80, 0x55, 0xFF};
    for (uint32_t at = 0; at < header.payload_bytes; at++)
        for (size_t i = 0; i < sizeof flips; i++) {
            payload[at] ^= flips[i];
            int status = read_damaged(&header, payload);
            assert_true(status == 0 || status == TARE_E_INPUT);
            payload[at] ^= flips[i];
        }
    for (uint32_t cut = 0; cut < header.payload_bytes; cut++) {
        uint8_t *exact = malloc(cut + 1); /* a read beyond it is found by the sanitizer */
        memcpy(exact, payload, cut);
        wrong = header;
        wrong.payload_bytes = cut;
        assert_int_equal(read_damaged(&wrong, exact), TARE_E_INPUT);
        free(exact);
    }
    wrong = header;
    wrong.count++;
    assert_int_equal(read_damaged(&wrong, payload), TARE_E_INPUT);
    wrong.count = UINT32_MAX;
    assert_int_equal(read_damaged(&wrong, payload), TARE_E_INPUT);
    wrong.count = 0;
    assert_int_equal(read_damaged(&wrong, payload), TARE_E_INPUT);
    wrong = header;
    wrong.flags = 1;
    assert_int_equal(read_damaged(&wrong, payload), TARE_E_INPUT);
    wrong = header;
    wrong.kind = TARE__BLOCK_FACTS;
    assert_int_equal(tare__stacks_read(&wrong, payload, squeezer, NULL), TARE_E_INPUT);
    assert_int_equal(read_damaged(&wrong, payload), TARE_E_INPUT);
    free(payload);
}

static void damage_is_noticed_or_harmless(void **state)
{
    (void)state;
    for (uint32_t leaves = 3; leaves <= 60; leaves += 57) { /* stored as they are, and compressed */
        tare__text out = {0};
        tare__block_header header;
        make_stacks(leaves);
        uint64_t ticks = 1000;
        for (uint32_t i = 0; i < leaves * 3; i++)
            tare__stacks_sample(stacks, &(tare__stack_sample){.ticks = ticks += draw(9999),
                                                              .thread = 1 + i % THREADS,
                                                              .stack = (uint32_t)draw(leaves + 1),
                                                              .state = (uint32_t)draw(12),
                                                              .wall_ns = draw(100000),
                                                              .cpu_ns = draw(2) * draw(100000),
                                                              .queue_ns = draw(2) * draw(1000)});
        assert_int_equal(tare__stacks_seal(stacks, squeezer, &out), 0);
        unsigned blocks = 0;
        for (size_t at = 0; at < out.length; at += sizeof header + header.payload_bytes, blocks++) {
            memcpy(&header, out.data + at, sizeof header);
            damage_block((const uint8_t *)out.data + at);
        }
        assert_int_equal(blocks, 2);
        tare__text_free(&out);
    }
}

/* A block of varints, each column uncompressed. */
typedef struct made {
    tare__text payload;
    tare__block_header header;
} made;

static int read_made(made *made, const char *const *columns, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tare__varint_put(&made->payload, bytes[i]);
        if (bytes[i])
            tare__varint_put(&made->payload, (uint64_t)bytes[i] * 2);
    }
    for (size_t i = 0; i < n; i++)
        tare__text_append(&made->payload, columns[i], bytes[i]);
    made->header.payload_bytes = (uint32_t)made->payload.length;
    int status = read_damaged(&made->header, (const uint8_t *)made->payload.data);
    tare__text_free(&made->payload);
    return status;
}

/* A block of one stack: its number, callers back, function (zigzag). */
static int read_one_stack(uint64_t number, const char *up, uint8_t up_bytes, const char *function,
                          uint8_t function_bytes)
{
    made made = {.header = {.kind = TARE__BLOCK_STACKS, .count = 1}};
    const uint64_t ranges[] = {0, 0, number, 1, 0, 0};
    const char *const columns[15] = {[4] = up, [5] = function, [6] = "\x05"};
    const uint8_t bytes[15] = {[4] = up_bytes, [5] = function_bytes, [6] = 1};
    for (size_t i = 0; i < 6; i++)
        tare__varint_put(&made.payload, ranges[i]);
    return read_made(&made, columns, bytes, 15);
}

static void impossible_numbers_are_refused(void **state)
{
    (void)state;
    assert_int_equal(read_one_stack(1, "\0", 1, "\0", 1), 0);
    assert_int_equal(read_one_stack(2, "\1", 1, "\2", 1), 0);
    assert_int_equal(read_one_stack(TARE__STACKS_MAX, "\1", 1, "\2", 1), 0);
    assert_int_equal(read_one_stack(0, "\0", 1, "\0", 1), TARE_E_INPUT);
    assert_int_equal(read_one_stack(TARE__STACKS_MAX + 1, "\0", 1, "\0", 1), TARE_E_INPUT);
    assert_int_equal(read_one_stack(UINT64_MAX, "\0", 1, "\0", 1), TARE_E_INPUT);
    assert_int_equal(read_one_stack(1, "\1", 1, "\0", 1), TARE_E_INPUT); /* its caller would be 0 */
    assert_int_equal(read_one_stack(2, "\2", 1, "\0", 1), TARE_E_INPUT);
    assert_int_equal(read_one_stack(2, "\5", 1, "\0", 1), TARE_E_INPUT);
    assert_int_equal(read_one_stack(1, "\0", 1, "\1", 1), TARE_E_INPUT);  /* function -1 */
    assert_int_equal(read_one_stack(1, "\0", 1, "\x80\x80\x20", 3), 0);   /* the last function */
    assert_int_equal(read_one_stack(1, "\0", 1, "\x82\x80\x20", 3), TARE_E_INPUT);
}

/* A block of one sample. */
static int read_one_sample(uint64_t rate, char parts, const char *thread, uint8_t thread_bytes, const char *stack,
                           uint8_t stack_bytes)
{
    made made = {.header = {.kind = TARE__BLOCK_STACK_SAMPLES, .count = 1, .first_ticks = 9, .last_ticks = 9}};
    const char *const columns[9] = {&parts, "\0", thread, stack};
    const uint8_t bytes[9] = {1, 1, thread_bytes, stack_bytes};
    tare__varint_put(&made.payload, rate);
    return read_made(&made, columns, bytes, 9);
}

static void impossible_samples_are_refused(void **state)
{
    (void)state;
    assert_int_equal(read_one_sample(0, 0, "\2", 1, "", 0), 0);
    assert_int_equal(read_one_sample(0, 1, "\2", 1, "\2", 1), 0);
    assert_int_equal(read_one_sample((UINT64_C(1) << 40) - 1, 0, "\2", 1, "", 0), 0);
    assert_int_equal(read_one_sample(UINT64_C(1) << 40, 0, "\2", 1, "", 0), TARE_E_INPUT);
    assert_int_equal(read_one_sample(0, 32, "\2", 1, "", 0), TARE_E_INPUT);
    assert_int_equal(read_one_sample(0, 0, "\0", 1, "", 0), TARE_E_INPUT);
    assert_int_equal(read_one_sample(0, 0, "\1", 1, "", 0), TARE_E_INPUT);
    assert_int_equal(read_one_sample(0, 0, "\x80\x80\x08", 3, "", 0), 0); /* the last thread */
    assert_int_equal(read_one_sample(0, 0, "\x82\x80\x08", 3, "", 0), TARE_E_INPUT);
    assert_int_equal(read_one_sample(0, 1, "\2", 1, "\x80\x80\x80\x01", 4), 0); /* the last stack */
    assert_int_equal(read_one_sample(0, 1, "\2", 1, "\x82\x80\x80\x01", 4), TARE_E_INPUT);
    assert_int_equal(read_one_sample(0, 1, "\2", 1, "\1", 1), TARE_E_INPUT); /* stack -1 */
    assert_int_equal(read_one_sample(0, 0, "\2", 1, "\2", 1), TARE_E_INPUT); /* a value that no sample has */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(equal_content_has_one_number),
        TEST(tables_come_back),
        TEST(large_tables_come_back),
        TEST(limits_refuse_and_count),
        TEST(texts_are_limited),
        TEST(what_is_unknown_is_refused),
        TEST(samples_come_back),
        TEST(samples_are_sorted_by_time),
        TEST(samples_are_small),
        TEST(a_failed_seal_keeps_everything),
        TEST(what_was_not_written_is_repeated),
        TEST(without_memory_rows_are_refused),
        TEST(damage_is_noticed_or_harmless),
        TEST(impossible_numbers_are_refused),
        TEST(impossible_samples_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
