/* Tests of src/trace/stacks.c: tables of functions, stacks and threads, and samples that refer to them, in whole and in
 * damaged files. One thread.
 * Must not know what the samples are used for. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base_failing.h"
#include "trace/trace.h"
#include "trace_builder.h"

static tare__trace *open_scanned(builder *b)
{
    tare__trace *trace;
    assert_int_equal(tare__trace_open(build_file(b), &trace, NULL), 0);
    assert_int_equal(tare__trace_prescan(trace, NULL), 0);
    return trace;
}

/* The next block of samples; false at the end. */
static bool next_samples(tare__trace *trace, const tare__stack_sample **samples, uint32_t *n)
{
    tare__trace_block block;
    while (tare__trace_next(trace, &block, NULL) > 0)
        if (block.header.kind == TARE__BLOCK_STACK_SAMPLES) {
            assert_int_equal(tare__trace_stack_samples(trace, &block, samples, n), 0);
            return true;
        }
    return false;
}

/* Two blocks of tables with samples after each; where the second begins in *second. */
static builder *two_parts(size_t *second)
{
    builder *b = builder_new();
    build_run(b);
    build_clock(b);
    uint32_t main = build_thread(b, 77, "python"), step = build_frame(b, build_frame(b, 0, "main", 12), "step", 34);
    build_stack_sample(b, (tare__stack_sample){.ticks = 2000, .thread = main, .stack = step,
                                               .state = TARE__STATE_RUNNING, .flags = TARE__SAMPLE_HAS_GIL});
    build_stack_sample(b, (tare__stack_sample){.ticks = 22000, .thread = main, .stack = step, .wall_ns = 10000,
                                               .cpu_ns = 9000, .queue_ns = 500});
    build_stacks_seal(b);
    uint32_t worker = build_thread(b, 78, "worker"), load = build_frame(b, step, "load", 56);
    build_stack_sample(b, (tare__stack_sample){.ticks = 42000, .thread = worker, .stack = load});
    build_stack_sample(b, (tare__stack_sample){.ticks = 42001, .thread = main, .stack = step});
    *second = build_stacks_seal(b);
    build_end(b, 50000);
    return b;
}

static void tables_are_told(void **state)
{
    (void)state;
    size_t second;
    builder *b = two_parts(&second);
    tare__trace *trace = open_scanned(b);
    assert_int_equal(tare__trace_damage_of(trace)->unknown, 0);
    assert_int_equal(tare__trace_function_count(trace), 3);
    assert_int_equal(tare__trace_stack_count(trace), 3);
    assert_int_equal(tare__trace_thread_count(trace), 2);
    assert_null(tare__trace_stack_at(trace, 0));
    assert_null(tare__trace_stack_at(trace, 4));
    assert_null(tare__trace_stack_at(trace, UINT32_MAX));
    const tare__trace_stack *load = tare__trace_stack_at(trace, 3), *step = tare__trace_stack_at(trace, load->caller);
    assert_int_equal(load->line, 56);
    assert_string_equal(tare__trace_function_at(trace, load->function)->name, "load");
    assert_string_equal(tare__trace_function_at(trace, step->function)->name, "step");
    assert_string_equal(tare__trace_function_at(trace, step->function)->file, "train.py");
    assert_int_equal(tare__trace_function_at(trace, step->function)->first_line, 10);
    assert_int_equal(tare__trace_function_at(trace, step->function)->kind, TARE__FRAME_PYTHON);
    assert_int_equal(tare__trace_stack_at(trace, step->caller)->caller, 0);
    const tare__trace_thread *main = tare__trace_thread_at(trace, 1), *worker = tare__trace_thread_at(trace, 2);
    assert_true(main->main && !worker->main);
    assert_int_equal(worker->pid, 77);
    assert_int_equal(worker->tid, 78);
    assert_int_equal(worker->start_time, 4000);
    assert_string_equal(worker->name, "worker");
    tare__trace_close(trace);
    builder_free(b);
}

static void samples_are_told(void **state)
{
    (void)state;
    size_t second;
    const tare__stack_sample *samples;
    uint32_t n;
    builder *b = two_parts(&second);
    for (int scanned = 0; scanned < 2; scanned++) { /* the tables precede the samples also without prescan */
        tare__trace *trace;
        assert_int_equal(tare__trace_open(build_file(b), &trace, NULL), 0);
        assert_int_equal(scanned ? tare__trace_prescan(trace, NULL) : 0, 0);
        assert_true(next_samples(trace, &samples, &n));
        assert_int_equal(n, 2);
        assert_int_equal(samples[0].stack, 2);
        assert_int_equal(samples[0].state, TARE__STATE_RUNNING);
        assert_int_equal(samples[0].flags, TARE__SAMPLE_HAS_GIL);
        assert_int_equal(samples[1].ticks, 22000);
        assert_int_equal(samples[1].wall_ns, 10000);
        assert_int_equal(samples[1].cpu_ns, 9000);
        assert_int_equal(samples[1].queue_ns, 500);
        assert_true(next_samples(trace, &samples, &n));
        assert_int_equal(samples[0].thread, 2);
        assert_int_equal(samples[0].stack, 3);
        assert_false(next_samples(trace, &samples, &n));
        assert_int_equal(tare__trace_damage_of(trace)->last_ticks, 42001);
        tare__trace_close(trace);
    }
    builder_free(b);
}

/* The first block of tables is lost: what is left refers to nothing, and stays bounded. */
static void a_lost_table_leaves_zeros(void **state)
{
    (void)state;
    size_t second;
    const tare__stack_sample *samples;
    uint32_t n;
    builder *b = two_parts(&second);
    size_t at = sizeof(tare__file_header);
    tare__block_header header;
    for (;; at += sizeof header + header.payload_bytes) {
        memcpy(&header, b->file.data + at, sizeof header);
        if (header.kind == TARE__BLOCK_STACKS)
            break;
    }
    b->file.data[at + sizeof header + 5] ^= 1;
    tare__trace *trace = open_scanned(b);
    assert_int_equal(tare__trace_damage_of(trace)->blocks, 0); /* of the cursor, which starts again */
    assert_null(tare__trace_stack_at(trace, 1));
    assert_null(tare__trace_function_at(trace, 1));
    assert_int_equal(tare__trace_stack_count(trace), 3);
    assert_int_equal(tare__trace_stack_at(trace, 3)->caller, 2); /* without a row */
    assert_int_equal(tare__trace_stack_at(trace, 3)->function, 3);
    assert_true(next_samples(trace, &samples, &n));
    assert_int_equal(samples[0].thread, 0);
    assert_int_equal(samples[0].stack, 0);
    assert_int_equal(samples[1].wall_ns, 10000);
    assert_true(next_samples(trace, &samples, &n));
    assert_int_equal(samples[0].thread, 2);
    assert_int_equal(samples[0].stack, 3);
    assert_int_equal(samples[1].thread, 0);
    assert_int_equal(samples[1].stack, 0);
    assert_int_equal(tare__trace_damage_of(trace)->blocks, 1);
    tare__trace_close(trace);
    builder_free(b);
}

/* A function that is not in the file, a block that the codec refuses. */
static void wrong_tables_are_noticed(void **state)
{
    (void)state;
    builder *b = builder_new();
    build_run(b);
    tare__block_header header = {.kind = TARE__BLOCK_STACKS, .count = 1};
    static const char stack_of_function_9[] = {0, 0, 5, 1, 0, 0, /* columns */ 0, 0, 0, 0, 1, 2, 1, 2, 1, 2, 0, 0, 0,
                                               0, 0, 0, 0, 0, /* caller 4 */ 1, 18, 33};
    size_t at = tare__block_begin(&b->file);
    tare__text_append(&b->file, stack_of_function_9, sizeof stack_of_function_9);
    builder_check(tare__block_end(&b->file, at, &header, 0));
    header.count = 2; /* not what is in it */
    at = tare__block_begin(&b->file);
    tare__text_append(&b->file, stack_of_function_9, sizeof stack_of_function_9);
    builder_check(tare__block_end(&b->file, at, &header, 0));
    tare__trace *trace = open_scanned(b);
    assert_int_equal(tare__trace_stack_count(trace), 5);
    assert_int_equal(tare__trace_stack_at(trace, 5)->caller, 4);
    assert_int_equal(tare__trace_stack_at(trace, 5)->function, 0);
    assert_int_equal(tare__trace_stack_at(trace, 5)->line, 33);
    assert_null(tare__trace_stack_at(trace, 4));
    assert_int_equal(tare__trace_damage_of(trace)->blocks, 1);
    tare__trace_close(trace);
    builder_free(b);
}

static void samples_of_another_block_are_refused(void **state)
{
    (void)state;
    const tare__stack_sample *samples;
    uint32_t n = 7;
    builder *b = builder_new();
    build_run(b);
    tare__trace *trace;
    tare__trace_block block;
    assert_int_equal(tare__trace_open(build_file(b), &trace, NULL), 0);
    assert_int_equal(tare__trace_next(trace, &block, NULL), 1);
    assert_int_equal(tare__trace_stack_samples(trace, &block, &samples, &n), TARE_E_INPUT);
    assert_int_equal(n, 0);
    tare__trace_close(trace);
    builder_free(b);
}

/* Any byte flipped, with right checksums: nothing but bounded numbers. */
static void damage_is_bounded(void **state)
{
    (void)state;
    size_t second;
    builder *b = two_parts(&second);
    for (size_t at = second; at < b->file.length; at++) {
        tare__trace *trace;
        const tare__stack_sample *samples;
        uint32_t n;
        char before = b->file.data[at];
        tare__text copy = {0};
        tare__text_append(&copy, b->file.data, b->file.length);
        copy.data[at] = (char)(before ^ 0x41);
        for (size_t block = sizeof(tare__file_header); block + 64 <= copy.length;) {
            tare__block_header header;
            memcpy(&header, copy.data + block, sizeof header);
            if (header.payload_bytes > copy.length - block - 64)
                break;
            tare__block_header_seal(&header, copy.data + block + 64);
            memcpy(copy.data + block, &header, sizeof header);
            block += 64 + header.payload_bytes;
        }
        assert_int_equal(tare__trace_open(build_bytes(b, copy.data, copy.length), &trace, NULL), 0);
        assert_int_equal(tare__trace_prescan(trace, NULL), 0);
        for (uint32_t i = 1; i <= tare__trace_stack_count(trace) && i < 100; i++) {
            const tare__trace_stack *stack = tare__trace_stack_at(trace, i);
            assert_true(!stack || (stack->caller < i && (!stack->function ||
                                                         tare__trace_function_at(trace, stack->function))));
        }
        tare__trace_block block;
        while (tare__trace_next(trace, &block, NULL) > 0)
            if (block.header.kind == TARE__BLOCK_STACK_SAMPLES &&
                tare__trace_stack_samples(trace, &block, &samples, &n) == 0)
                for (uint32_t i = 0; i < n; i++)
                    assert_true((!samples[i].thread || tare__trace_thread_at(trace, samples[i].thread)) &&
                                (!samples[i].stack || tare__trace_stack_at(trace, samples[i].stack)));
        tare__trace_close(trace);
        tare__text_free(&copy);
    }
    builder_free(b);
}

static void without_memory_it_says_so(void **state)
{
    (void)state;
    size_t second;
    builder *b = two_parts(&second);
    const char *path = build_file(b);
    for (int fails_at = 0; fails_at < 200; fails_at++) {
        tare__trace *trace = NULL;
        tare__trace_block block;
        const tare__stack_sample *samples;
        uint32_t n, seen = 0;
        allocations_left = fails_at;
        int status = tare__trace_open(path, &trace, NULL);
        status = status ? status : tare__trace_prescan(trace, NULL);
        while (!status && tare__trace_next(trace, &block, NULL) > 0)
            if (block.header.kind == TARE__BLOCK_STACK_SAMPLES) {
                status = tare__trace_stack_samples(trace, &block, &samples, &n);
                seen += n;
            }
        allocations_left = -1;
        assert_true(status == 0 || status == TARE_E_MEMORY);
        tare__trace_close(trace);
        if (status == 0) {
            assert_int_equal(seen, 4);
            builder_free(b);
            return;
        }
    }
    fail_msg("it never had enough");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_told),
        cmocka_unit_test(samples_are_told),
        cmocka_unit_test(a_lost_table_leaves_zeros),
        cmocka_unit_test(wrong_tables_are_noticed),
        cmocka_unit_test(samples_of_another_block_are_refused),
        cmocka_unit_test(damage_is_bounded),
        cmocka_unit_test(without_memory_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
