/* Tests of the HTML page's data: what stands in it, that no text can leave its place, what is packed reads back,
 * limits are told, failing sinks and memory. How it looks and works is tested in a browser (tests/browser).
 * One thread.
 * Must not know traces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base_failing.h"
#include "emit/run/html.h"
#include "emit/run/html_page.h"
#include "emit_golden.h"
#include "emit_sample.h"
#include "emit_stack_tree.h"
#include "tare.h"

#define ATTACK "</script><img src=x onerror=alert(1)>&\xe2\x80\xa8\xe2\x80\xa9"

static const tare__lane lanes[] = {{"main", "train", 1, 1, 0, 2, 10},
                                   {ATTACK, "train", 1, 2, TARE_TRACK_GPU, 1, 2}};
static const char *const names[] = {"step", ATTACK};
static const tare__box boxes[] = {
    {0, 0, 0, 1, 100.5, 300, 300, false},  {0, 0, 1, 1, 400.5, 5e12, 5e12, false},
    {0, 1, 1, 7, 150, 200, 100, true},     {1, 0, 0, 1, 0, 0, 0, false},
    {1, 0, 0, 3, 3000, 1000, 1000, false},
};
static const tare__timeline timeline = {.lanes = lanes,
                                        .n_lanes = 2,
                                        .boxes = boxes,
                                        .n_boxes = COUNT(boxes),
                                        .names = names,
                                        .n_names = 2,
                                        .spans = 13,
                                        .merged_spans = 10,
                                        .left_out_spans = 5,
                                        .resolution_ns = 100};

static int render_with(const tare__analysis *analysis, const tare__timeline *lines,
                       const tare__html_limits *limits, kept *kept)
{
    tare__error error = {""};
    tare__emit_sink sink = sink_of(kept);
    const tare__emit_input input = {.analysis = analysis, .timeline = lines};
    return tare__html_write(&input, limits, &sink, &error);
}

/* The data of a page, between what stands before and after it. */
static char *data_of(const tare__analysis *analysis, const tare__timeline *lines,
                     const tare__html_limits *limits)
{
    kept kept = {0};
    assert_int_equal(render_with(analysis, lines, limits, &kept), 0);
    size_t before = tare__html_before_data_bytes, after = tare__html_after_data_bytes;
    assert_true(kept.text.length > before + after);
    assert_memory_equal(kept.text.data, tare__html_before_data, before);
    assert_memory_equal(kept.text.data + kept.text.length - after, tare__html_after_data, after);
    size_t length = kept.text.length - before - after;
    char *data = strndup(kept.text.data + before, length);
    assert_non_null(data);
    tare__text_free(&kept.text);
    return data;
}

static const tare__html_limits *const usual = &tare__html_limits_of_a_page;

/* ---- the page around the data ------------------------------------------------------------------- */
static void the_page_may_connect_to_nothing(void **state)
{
    (void)state;
    assert_memory_equal(tare__html_before_data, "<!doctype html>", 15);
    const char *policy = strstr(tare__html_before_data, "content=\"default-src 'none'; script-src 'sha256-");
    assert_non_null(policy);
    assert_non_null(strstr(policy, "style-src 'sha256-"));
    const char *const forbidden[] = {
        "unsafe-inline", "unsafe-eval", "http:", "https:", "src=\"", "url(", "@import"};
    for (size_t i = 0; i < COUNT(forbidden); i++)
        assert_null(strstr(tare__html_before_data, forbidden[i]));
    assert_memory_equal(tare__html_after_data, "</script>", 9);
    /* Names get into the page as text: no way in which a string becomes markup or a program. */
    const char *const risky[] = {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                                 "Function(", "fetch(",    "XMLHttpRequest",     "import("};
    for (size_t i = 0; i < COUNT(risky); i++)
        assert_null(strstr(tare__html_after_data, risky[i]));
}

static void no_text_leaves_its_place(void **state)
{
    (void)state;
    tare__span_row rows[2] = {train_spans[0], train_spans[11]};
    rows[0].n_rows = 0;
    rows[0].name = rows[1].name = ATTACK;
    tare__analysis analysis = train;
    analysis.spans = rows;
    analysis.n_spans = 2;
    analysis.run.command = analysis.run.host = ATTACK;
    char *data = data_of(&analysis, &timeline, usual);
    assert_null(strpbrk(data, "<>&"));
    assert_null(strstr(data, "\xe2\x80\xa8"));
    assert_null(strstr(data, "\xe2\x80\xa9"));
    assert_non_null(strstr(data, "\"command\":\"\\u003c/script\\u003e\\u003cimg src=x onerror=alert(1)\\u003e"
                                 "\\u0026\\u2028\\u2029\""));
    free(data);
}

static void what_is_absent_is_null(void **state)
{
    (void)state;
    tare__timeline nothing = {.resolution_ns = NAN};
    char *data = data_of(&damaged, &nothing, usual);
    assert_null(strstr(data, "nan"));
    assert_null(strstr(data, "inf"));
    assert_non_null(strstr(data, "\"elapsed_ns\":null"));
    assert_non_null(strstr(data, "\"exit_status\":null"));
    assert_non_null(strstr(data, "\"command\":null"));
    assert_non_null(strstr(data, "\"own_ns\":null"));
    assert_non_null(
        strstr(data, "\"lanes\":{\"columns\":[\"name\",\"process\",\"pid\",\"tid\",\"track_kind\",\"depth\","
                     "\"spans\"],\"rows\":[],\"left_out\":0}"));
    free(data);
}

/* ---- packed ------------------------------------------------------------------------------------- */
typedef struct unpacked {
    unsigned char bytes[512];
    size_t n, at;
} unpacked;

static unpacked unpack(const char *data, const char *after)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unpacked made = {.n = 0};
    const char *at = strstr(data, after);
    assert_non_null(at);
    uint32_t bits = 0;
    unsigned held = 0;
    for (at += strlen(after); *at != '"' && *at != '='; at++) {
        const char *digit = strchr(digits, *at);
        assert_true(digit && made.n < sizeof made.bytes);
        bits = bits << 6 | (uint32_t)(digit - digits);
        held += 6;
        if (held >= 8)
            made.bytes[made.n++] = (unsigned char)(bits >> (held -= 8));
    }
    return made;
}

static uint64_t varint(unpacked *from)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(from->at < from->n);
        unsigned char byte = from->bytes[from->at++];
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
}

static unsigned share(unpacked *from)
{
    assert_true(from->at + 2 <= from->n);
    unsigned value = from->bytes[from->at] | (unsigned)from->bytes[from->at + 1] << 8;
    from->at += 2;
    return value;
}

static void boxes_read_back(void **state)
{
    (void)state;
    char *data = data_of(&train, &timeline, usual);
    assert_non_null(strstr(data, "\"rows\":[0,0,2,0,1,1,1,0,2],\"packed\":\""));
    assert_non_null(strstr(data, "\"spans\":13,\"merged\":10,\"left_out\":5,\"resolution\":100}"));
    unpacked from = unpack(data, "1,0,2],\"packed\":\"");
    uint64_t end = 0;
    for (size_t i = 0; i < COUNT(boxes); i++) {
        end = i == 2 || i == 3 ? 0 : end; /* a new row */
        uint64_t start = end + varint(&from);
        end = start + varint(&from);
        assert_int_equal(start, (uint64_t)boxes[i].at_ns);
        assert_int_equal(end, (uint64_t)(boxes[i].at_ns + boxes[i].lasts_ns));
        assert_int_equal(varint(&from), boxes[i].name);
        uint64_t merged = varint(&from);
        assert_int_equal(merged, boxes[i].calls > 1 ? 2 * boxes[i].calls + boxes[i].mixed : 0);
        if (merged > 0)
            assert_int_equal(share(&from), i == 2 ? 32768 : 65535);
    }
    assert_int_equal(from.at, from.n);
    free(data);
}

static void points_are_merged_and_read_back(void **state)
{
    (void)state;
    tare__metric_point points[10];
    for (int i = 0; i < 10; i++)
        points[i] = (tare__metric_point){i * 100, 100, i, i + 1, i == 3 ? 90 : i + 2};
    const tare__counter_line line = {"loss", points, 10};
    tare__timeline lines = timeline;
    lines.counters = &line;
    lines.n_counters = 1;
    tare__html_limits few = *usual;
    few.points = 4 * 16;
    char *data = data_of(&train, &lines, &few);
    assert_non_null(
        strstr(data, "\"name\":\"loss\",\"points\":{\"n\":10,\"low\":0,\"high\":90,\"packed\":\""));
    free(data);

    kept kept = {0};
    tare__html page = {.sink = &(tare__emit_sink){.write = keep, .context = &kept}};
    tare__json_begin(&page.json, &page.text, false);
    tare__html_points(&page, points, 10, 4);
    assert_non_null(strstr(page.text.data, "{\"n\":4,\"low\":0,\"high\":90,\"packed\":\""));
    unpacked from = unpack(page.text.data, "\"packed\":\"");
    const double means[] = {2, 5, 8, 10}, most[] = {4, 90, 10, 11};
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(varint(&from), 0); /* each begins where the one before ended */
        assert_int_equal(varint(&from), i < 3 ? 300 : 100);
        assert_int_equal(share(&from), (unsigned)(i * 3 / 90.0 * 65535 + 0.5));
        assert_int_equal(share(&from), (unsigned)(means[i] / 90.0 * 65535 + 0.5));
        assert_int_equal(share(&from), (unsigned)(most[i] / 90.0 * 65535 + 0.5));
    }
    assert_int_equal(from.at, from.n);
    tare__text_free(&page.text);
}

/* ---- limits ------------------------------------------------------------------------------------- */
static size_t count_of(const char *data, const char *what)
{
    size_t n = 0;
    for (const char *at = data; (at = strstr(at, what)); at++)
        n++;
    return n;
}

static void small_rows_are_left_out_and_counted(void **state)
{
    (void)state;
    crowd *crowd = make_crowd(false); /* 40 chains of 50 */
    tare__html_limits few = {.spans = 500, .rows = 100, .points = 1000};
    char *data = data_of(&crowd->tables, &timeline, &few);
    const char *end_of_spans = strstr(data, "],\"left_out\":");
    assert_non_null(strstr(data, "\"spans\":{\"label\""));
    size_t left_out = 0;
    assert_int_equal(sscanf(strstr(strstr(data, "\"spans\":{\"label\""), "],\"left_out\":"),
                            "],\"left_out\":%zu", &left_out),
                     1);
    assert_true(left_out >= 1500 && left_out < 1600);
    /* Whatever is kept has its parent: chains stay whole from the top. */
    assert_non_null(strstr(data, "[\"span0\",10,1000000000,"));
    assert_non_null(end_of_spans);
    const char *threads = strstr(data, "\"threads\":{\"label\"");
    assert_non_null(threads);
    assert_non_null(strstr(threads, "],\"left_out\":900}"));
    assert_true(count_of(threads, "\"loader\"") <= 100);
    free(data);
    free_crowd(crowd);
}

static void only_what_is_drawn_has_points(void **state)
{
    (void)state;
    static tare__metric_point points[64];
    for (int i = 0; i < 64; i++)
        points[i] = (tare__metric_point){i * 1e6, 1e6, 1, 2, 3};
    tare__metric_row rows[] = {
        {.metric = "cpu.user",
         .subject = TARE__SUBJECT_THREAD,
         .points = points,
         .n_points = 64,
         .n = 64,
         .label = ""},
        {.metric = "cpu.user",
         .subject = TARE__SUBJECT_TREE,
         .points = points,
         .n_points = 64,
         .n = 64,
         .label = ""},
        {.metric = "power",
         .subject = 999,
         .absent = "why not",
         .label = "",
         .known = TARE__METRIC_COUNT,
         .max = NAN},
    };
    tare__analysis analysis = train;
    analysis.metrics = rows;
    analysis.n_metrics = COUNT(rows);
    char *data = data_of(&analysis, &timeline, usual);
    const char *metrics = strstr(data, "\"metrics\":{");
    assert_non_null(metrics);
    assert_non_null(strstr(metrics, "[\"cpu.user\",\"thread\","));
    assert_non_null(strstr(metrics, "[\"cpu.user\",\"tree\","));
    assert_non_null(strstr(metrics, "[\"power\",\"other\",\"\",0,0,\"other\",\"count\",\"why not\",0,0,null,"));
    assert_int_equal(count_of(metrics, "\"packed\""), 2); /* the program's line, and the boxes */
    free(data);
}

/* ---- failures ----------------------------------------------------------------------------------- */
static void a_refusing_sink_ends_it(void **state)
{
    (void)state;
    crowd *crowd = make_crowd(true);
    unsigned writes = 1;
    for (;; writes++) {
        kept kept = {.refuse = writes};
        int status = render_with(&crowd->tables, &timeline, usual, &kept);
        bool refused = kept.writes == writes;
        assert_true(kept.writes <= writes);
        tare__text_free(&kept.text);
        assert_int_equal(status, refused ? TARE_E_SYSTEM : 0);
        if (!refused)
            break;
    }
    assert_true(writes > 3);
    free_crowd(crowd);
}

static int drop(void *context, const void *data, size_t bytes)
{
    (void)context, (void)data, (void)bytes;
    return 0;
}

/* ---- sampled stacks ------------------------------------------------------------------------------ */
static void stacks_are_packed(void **state)
{
    (void)state;
    static stack_sample sample;
    tare__analysis analysis = train;
    add_stacks(&analysis, &sample, stacks_hostile, COUNT(stacks_hostile));
    char *data = data_of(&analysis, &timeline, usual);
    assert_null(strpbrk(data, "<>&"));
    const char *stacks = strstr(data, "\"stacks\":{");
    assert_non_null(stacks);
    assert_non_null(strstr(stacks, "\"nodes\":3,"));
    unpacked read = unpack(stacks, "\"packed\":\"");
    /* Depth, thread, function, line, running, other states: state and time. Functions are numbered with all nodes. */
    static const uint64_t expected[] = {0, 0, 1, 5, 600000000, 0,
                                        1, 2, 6, 300000000, 1, TARE__STATE_NETWORK, 100000000,
                                        1, 3, 0, 50000000, 0};
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_int_equal(varint(&read), expected[i]);
    assert_int_equal(read.at, read.n);
    free(data);
    data = data_of(&train, &timeline, usual);
    assert_non_null(strstr(data, "\"stacks\":null"));
    free(data);
}

static void out_of_memory_is_said(void **state)
{
    (void)state;
    tare__html_limits few = {.spans = 4, .rows = 100, .points = 1000};
    tare__emit_sink sink = {.write = drop};
    static stack_sample sample;
    tare__analysis analysis = train;
    const tare__emit_input input = {.analysis = &analysis, .timeline = &timeline};
    int failures = 0;
    add_stacks(&analysis, &sample, stacks_made, COUNT(stacks_made));
    for (;; failures++) {
        tare__error error = {""};
        allocations_left = failures;
        int status = tare__html_write(&input, &few, &sink, &error);
        allocations_left = -1;
        if (status == 0)
            break;
        assert_int_equal(status, TARE_E_MEMORY);
        assert_string_equal(error.text, "out of memory");
    }
    assert_true(failures > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_may_connect_to_nothing),
        cmocka_unit_test(no_text_leaves_its_place),
        cmocka_unit_test(what_is_absent_is_null),
        cmocka_unit_test(boxes_read_back),
        cmocka_unit_test(points_are_merged_and_read_back),
        cmocka_unit_test(small_rows_are_left_out_and_counted),
        cmocka_unit_test(only_what_is_drawn_has_points),
        cmocka_unit_test(a_refusing_sink_ends_it),
        cmocka_unit_test(stacks_are_packed),
        cmocka_unit_test(out_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
