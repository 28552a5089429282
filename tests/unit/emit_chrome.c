/* Tests of Chrome's trace events: counts equal to the span table's, spans nested on their lanes, golden output,
 * damage, failing sinks and memory. One thread.
 * Must not know how the emitter works. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base_failing.h"
#include "emit_export.h"

static uint64_t count_of(const tare__text *text, const char *words)
{
    uint64_t n = 0;
    for (const char *at = text->data; (at = strstr(at, words)) != NULL; at++)
        n++;
    return n;
}

static uint64_t spans_of(const tare__text *text)
{
    return count_of(text, "{\"ph\":\"X\"") + count_of(text, "{\"ph\":\"b\"") -
           count_of(text, "\"cat\":\"restored\"");
}

static void counts_are_equal(void **state)
{
    (void)state;
    for (size_t i = 0; i < TARE__COUNT_OF(export_cases); i++) {
        const export_case *one = &export_cases[i];
        tare__text text = export_case_of(&tare__emit_chrome, one);
        if (spans_of(&text) != one->spans || count_of(&text, "\"cat\":\"restored\"") != one->restored)
            fail_msg("%s: %llu spans and %llu restored", one->name, (unsigned long long)spans_of(&text),
                     (unsigned long long)count_of(&text, "\"cat\":\"restored\""));
        assert_int_equal(count_of(&text, "\"ph\":\"b\""), count_of(&text, "\"ph\":\"e\""));
        tare__text_free(&text);
    }
}

static void old_files_have_equal_counts(void **state)
{
    (void)state;
    static const char *const names[] = {"format-1.0.tare", "format-1.1.tare", "format-1.2.tare"};
    for (size_t i = 0; i < TARE__COUNT_OF(names); i++) {
        char path[512];
        tare__trace *trace;
        tare__analysis *analysis;
        tare__error error = {""};
        fixture_path(path, names[i]);
        assert_int_equal(tare__trace_open(path, &trace, &error), 0);
        assert_int_equal(tare__analyze(trace, &(tare__analyze_options){0}, &analysis, &error), 0);
        tare__text text = export_path(&tare__emit_chrome, path);
        assert_true(analysis->run.spans > 0);
        assert_int_equal(spans_of(&text), analysis->run.spans);
        tare__text_free(&text);
        tare__analysis_free(analysis);
        tare__trace_close(trace);
    }
}

/* ---- lanes ------------------------------------------------------------------------------------------------ */
typedef struct slice {
    long long pid, tid, begin, end; /* ns */
} slice;

static int by_place(const void *left, const void *right)
{
    const slice *a = left, *b = right;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->end < b->end) - (a->end > b->end);
}

static double number_after(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    assert_non_null(at);
    return strtod(at + strlen(key), NULL);
}

static size_t slices_of(const tare__text *text, slice *slices, size_t room)
{
    size_t n = 0;
    for (const char *at = text->data; (at = strstr(at, "{\"ph\":\"X\"")) != NULL; at++) {
        assert_true(n < room);
        long long ts = llround(1000 * number_after(at, "\"ts\":"));
        long long lasts = llround(1000 * number_after(at, "\"dur\":"));
        assert_true(lasts >= 0);
        slices[n++] = (slice){(long long)number_after(at, "\"pid\":"),
                              (long long)number_after(at, "\"tid\":"), ts, ts + lasts};
    }
    qsort(slices, n, sizeof *slices, by_place);
    return n;
}

/* On a lane a span lies beside another or inside it, never across its end. */
static void spans_never_cross(void **state)
{
    (void)state;
    static slice slices[5000], open[5000];
    for (size_t i = 0; i < TARE__COUNT_OF(export_cases); i++) {
        tare__text text = export_case_of(&tare__emit_chrome, &export_cases[i]);
        size_t n = slices_of(&text, slices, TARE__COUNT_OF(slices)), depth = 0;
        for (size_t k = 0; k < n; k++) {
            const slice *now = &slices[k];
            while (depth && (open[depth - 1].pid != now->pid || open[depth - 1].tid != now->tid ||
                             open[depth - 1].end <= now->begin))
                depth--;
            if (depth && now->end > open[depth - 1].end)
                fail_msg("%s: a span crosses the end of another", export_cases[i].name);
            open[depth++] = *now;
        }
        tare__text_free(&text);
    }
}

/* ---- what is said ------------------------------------------------------------------------------------------ */
static void expect_words(const char *name, const char *const *words, size_t n)
{
    tare__text text = export_case_of(&tare__emit_chrome, case_named(name));
    for (size_t i = 0; i < n; i++)
        if (!strstr(text.data, words[i]))
            fail_msg("%s: not there: %s\n%.3000s", name, words[i], text.data);
    tare__text_free(&text);
}
#define EXPECT(name, ...)                                  \
    expect_words(name, (const char *const[]){__VA_ARGS__}, \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void every_kind_has_its_event(void **state)
{
    (void)state;
    EXPECT(
        "nested",
        "{\"ph\":\"M\",\"pid\":77,\"tid\":77,\"name\":\"thread_name\",\"args\":{\"name\":\"main\"}}",
        "{\"ph\":\"X\",\"cat\":\"span\",\"name\":\"outer\",\"ts\":0.500,\"dur\":0.025,\"pid\":77,\"tid\":77,"
        "\"args\":{\"samples\":32}}",
        "\"cat\":\"step\",\"name\":\"step\",\"ts\":0.510,\"dur\":0.015");
    EXPECT("over blocks",
           "\"name\":\"step\",\"ts\":0.550,\"dur\":0.050,\"pid\":77,\"tid\":77,\"args\":{\"samples\":15}");
    EXPECT(
        "left open",
        "\"name\":\"other\",\"ts\":0.510,\"dur\":0.005,\"pid\":77,\"tid\":77,\"args\":{\"(end)\":\"left open",
        "\"name\":\"step\",\"ts\":0.530,\"dur\":0,\"pid\":77,\"tid\":77,\"args\":{\"(end)\":\"open at the "
        "end");
    EXPECT("ends lost", "\"(end)\":\"lost",
           "{\"ph\":\"i\",\"cat\":\"mark\",\"name\":\"saved\",\"ts\":0.515,");
    EXPECT("unknown people", "\"name\":\"unknown process\"", "\"name\":\"(name 99)\"",
           "\"args\":{\"value\":-1.5}", "\"values_left_out\":1");
    EXPECT("overlapping", "{\"ph\":\"s\",\"cat\":\"flow\"", "{\"ph\":\"f\",\"cat\":\"flow\"", "\"bp\":\"e\"",
           "\"name\":\"stream 7 (2)\"", "\"id\":\"400\"");
}

static void the_whole_is_as_it_was(void **state)
{
    (void)state;
    builder *b = build_single();
    ends_lost(b);
    two_processes(b);
    build_complete_and_aggregate(b);
    tare__text text = export_path(&tare__emit_chrome, build_file(b));
    assert_golden("chrome.json", &text);
    tare__text_free(&text);
    builder_free(b);
}

/* Two that had one pid, two that had one tid: each has a number of its own. */
static void numbers_are_not_shared(void **state)
{
    (void)state;
    tare__text text = export_case_of(&tare__emit_chrome, case_named("two processes"));
    assert_int_equal(count_of(&text, "\"pid\":77,\"tid\":77,\"name\":\"thread_name\""), 1);
    assert_int_equal(count_of(&text, "\"name\":\"outer\",\"ts\":1,\"dur\":0.150,\"pid\":77,\"tid\":77"), 1);
    assert_int_equal(
        count_of(&text, "\"name\":\"outer\",\"ts\":1,\"dur\":0.150,\"pid\":77,\"tid\":1073741827"), 1);
    assert_int_equal(count_of(&text, "\"name\":\"outer\",\"ts\":1,\"dur\":0.150,\"pid\":1073741826"), 1);
    tare__text_free(&text);
}

/* A total is drawn as its rate, from the sample before on; where it shrinks it starts anew. */
static void samples_are_counters(void **state)
{
    (void)state;
    EXPECT("sampled",
           "\"name\":\"memory.rss\",\"ts\":0.500,\"pid\":77,\"tid\":0,\"args\":{\"bytes\":1048576}",
           "\"name\":\"cpu.user cpu 3\",\"ts\":0.500,\"pid\":1073741823,\"tid\":0,\"args\":{\"cores\":0.5}",
           "\"name\":\"cpu.user cpu 3\",\"ts\":1000.500,\"pid\":1073741823,\"tid\":0,\"args\":{\"cores\":1}",
           "\"pid\":4711,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"helper \\\"quoted\\\"\"}",
           "{\"what\":\"power package\",\"reason\":\"no permission\"}");
    tare__text text = export_case_of(&tare__emit_chrome, case_named("sampled"));
    assert_int_equal(count_of(&text, "\"name\":\"cpu.user cpu 3\""), 2);
    tare__text_free(&text);
}

/* ---- damage, refusals ----------------------------------------------------------------------------------------- */
static void flipped_bits_keep_the_counts(void **state)
{
    (void)state;
    flip_bits(&tare__emit_chrome, spans_of);
}

static void limit_memory(long allocations)
{
    allocations_left = allocations;
}

static void refusals_are_passed_on(void **state)
{
    (void)state;
    refuse_and_fail(&tare__emit_chrome, limit_memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_equal),       cmocka_unit_test(old_files_have_equal_counts),
        cmocka_unit_test(spans_never_cross),      cmocka_unit_test(every_kind_has_its_event),
        cmocka_unit_test(the_whole_is_as_it_was), cmocka_unit_test(numbers_are_not_shared),
        cmocka_unit_test(samples_are_counters),   cmocka_unit_test(flipped_bits_keep_the_counts),
        cmocka_unit_test(refusals_are_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
