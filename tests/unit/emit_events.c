/* Tests of the raw stream: every kind of event from a trace made with the codec, gaps, odd names, damage,
 * failing sinks and memory. One thread.
 * Must not know rings. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "base_failing.h"
#include "emit_golden.h"
#include "trace/trace.h"

enum { LOAD = 1, FORWARD, BACKWARD, MARKED, LOSS, SAMPLES, ODD, STREAM7 };

#define T0 UINT64_C(1000000)

static tare__text file;
static tare__squeezer *squeezer;
static tare__events_encoder *encoder;

static void add_fields(tare__block_kind kind, uint32_t stream, tare__text *fields)
{
    assert_int_equal(tare__fields_seal(kind, stream, fields, &file), 0);
    tare__text_clear(fields);
}

static void add_head(void)
{
    static const char command[] = "./prog";
    tare__file_header header;
    tare__text fields = {0};
    tare__file_header_make(&header);
    tare__text_append(&file, (const char *)&header, sizeof header);
    tare__field_bytes(&fields, TARE__FIELD_COMMAND, command, sizeof command);
    tare__field_number(&fields, TARE__FIELD_CLOCK_KIND, TARE__CLOCK_MONOTONIC);
    tare__field_number(&fields, TARE__FIELD_START_TICKS, T0);
    add_fields(TARE__BLOCK_RUN, 0, &fields);
    tare__text_free(&fields);
}

/* After the events, so that names, process and thread are only known by a look ahead. */
static void add_tables(void)
{
    static const tare__file_name names[] = {
        {LOAD, TARE_KIND_SPAN, 1, "load", "a.c", 4, 3},
        {FORWARD, TARE_KIND_SPAN, 2, "forward", "", 7, 0},
        {BACKWARD, TARE_KIND_SPAN, 3, "backward", "", 8, 0},
        {MARKED, TARE_KIND_MARK, 4, "here", "", 4, 0},
        {LOSS, TARE_KIND_COUNTER, 5, "loss", "", 4, 0},
        {SAMPLES, TARE_KIND_NUMBER, 6, "samples", "", 7, 0},
        {ODD, TARE_KIND_SPAN, 7, "a\tb\nc\\d\x1b[1m\xc2\x9b\xff\xc3\xa9", "", 17, 0},
        {STREAM7, TARE__NAME_TRACK + TARE_TRACK_GPU, 0, "stream 7", "", 8, 0}};
    static const uint8_t id[TARE__ID_BYTES] = {1};
    tare__text fields = {0};
    assert_int_equal(tare__names_seal(names, sizeof names / sizeof *names, squeezer, &file), 0);
    tare__field_number(&fields, TARE__FIELD_PROCESS, 1);
    tare__field_bytes(&fields, TARE__FIELD_PROCESS_ID, id, sizeof id);
    tare__field_number(&fields, TARE__FIELD_PID, 4120);
    add_fields(TARE__BLOCK_PROCESS, 0, &fields);
    tare__field_number(&fields, TARE__FIELD_STREAM, 1);
    tare__field_number(&fields, TARE__FIELD_STREAM_PROCESS, 1);
    tare__field_number(&fields, TARE__FIELD_TID, 4121);
    add_fields(TARE__BLOCK_STREAM, 1, &fields);
    tare__text_free(&fields);
}

static void add_end(void)
{
    tare__text fields = {0};
    tare__field_number(&fields, TARE__FIELD_END_TICKS, T0 + 10000);
    add_fields(TARE__BLOCK_END, 0, &fields);
    tare__text_free(&fields);
}

static void seal(uint32_t stream, uint32_t ordinal, const tare__span_stack *open)
{
    tare__block_header header = {.stream = stream, .ordinal = ordinal};
    static const tare__span_stack none;
    assert_int_equal(tare__events_seal(encoder, squeezer, open ? open : &none, &header, &file), 0);
    tare__events_reset(encoder, 0);
}

static void event(tare__op op, uint32_t name, uint64_t at)
{
    tare__events_add(encoder, op, name, T0 + at);
}

static void value(tare__op op, uint32_t name, uint64_t at, double number)
{
    tare__events_add_value(encoder, op, name, T0 + at, number);
}

static void add_every_kind(void)
{
    event(TARE__OP_END, 0, 5); /* nothing is open */
    event(TARE__OP_BEGIN, LOAD, 10);
    event(TARE__OP_BEGIN, ODD, 20);
    value(TARE__OP_NUMBER, SAMPLES, 20, 32);
    event(TARE__OP_END, 0, 30);
    event(TARE__OP_NEXT, FORWARD, 40);
    event(TARE__OP_MARK, MARKED, 45);
    value(TARE__OP_COUNTER, LOSS, 46, 0.1);
    value(TARE__OP_COUNTER, LOSS, 47, -1e300);
    seal(1, 0, NULL);
    event(TARE__OP_BEGIN, BACKWARD, 50);
    event(TARE__OP_BEGIN, LOAD, 60);
    event(TARE__OP_END_OF, FORWARD, 70); /* and with it what is inside */
    event(TARE__OP_END_OF, FORWARD, 80); /* is not open any more */
    event(TARE__OP_NEXT, LOAD, 90);
    event(TARE__OP_BEGIN, LOAD, 95);
    value(TARE__OP_LOST_ENDS, 0, 95, 5);
    event(TARE__OP_BEGIN, 99, 100); /* a name that the file does not describe */
    seal(1, 1, NULL);
}

static void add_completes(void)
{
    static const tare__complete_span spans[] = {
        {.name = FORWARD, .track = STREAM7, .start = T0 + 300, .end = T0 + 450, .id = 7, .flow = 9},
        {.name = LOAD, .start = T0 + 100, .end = T0 + 100, .parent = 7}};
    tare__block_header header = {.stream = 2};
    assert_int_equal(tare__complete_seal(spans, 2, squeezer, &header, &file), 0);
}

/* ---- reading ------------------------------------------------------------------------------------- */
static tare__trace *open_file(void)
{
    char path[] = "/tmp/tare-emit-events.XXXXXX";
    tare__trace *trace = NULL;
    tare__error error = {""};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(tare__write_all(fd, file.data, file.length), 0);
    close(fd);
    int status = tare__trace_open(path, &trace, &error);
    unlink(path);
    assert_int_equal(status, 0);
    return trace;
}

static tare__text render(void)
{
    kept kept = {0};
    tare__error error = {""};
    tare__emit_sink sink = sink_of(&kept);
    tare__emit_options options = {0};
    tare__emit_input input = {.trace = open_file()};
    assert_int_equal(tare__emit_events.emit(&input, &options, &sink, &error), 0);
    tare__trace_close(input.trace);
    return kept.text;
}

static int set_up(void **state)
{
    (void)state;
    squeezer = tare__squeezer_new();
    encoder = tare__events_encoder_new();
    add_head();
    return squeezer && encoder ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    tare__text_free(&file);
    tare__squeezer_free(squeezer);
    tare__events_encoder_free(encoder);
    return 0;
}

static void every_kind_has_its_line(void **state)
{
    (void)state;
    add_every_kind();
    add_completes();
    add_tables();
    add_end();
    tare__text text = render();
    assert_golden("events.txt", &text);
    tare__text_free(&text);
}

static void after_a_gap_the_listed_spans_are_open(void **state)
{
    (void)state;
    tare__span_stack open = {0};
    tare__span_stack_push(&open, LOAD, T0 + 1);
    tare__span_stack_push(&open, FORWARD, T0 + 2);
    event(TARE__OP_BEGIN, BACKWARD, 10);
    seal(1, 0, NULL);
    event(TARE__OP_END, 0, 30); /* ends FORWARD: BACKWARD belonged to blocks that are gone */
    event(TARE__OP_END, 0, 40);
    event(TARE__OP_END, 0, 50);
    seal(1, 7, &open);
    add_tables();
    tare__text text = render();
    assert_string_equal(text.data, "# time_ns\tpid\ttid\tkind\tname\textras\n"
                                   "10\t4120\t4121\tbegin\tbackward\tdepth=0\n"
                                   "30\t4120\t4121\tend\tforward\tdur_ns=28\tdepth=1\n"
                                   "40\t4120\t4121\tend\tload\tdur_ns=39\tdepth=0\n"
                                   "50\t4120\t4121\tend\t(not known)\tunmatched=1\n");
    tare__text_free(&text);
    tare__span_stack_free(&open);
}

/* Deeper than a block lists: what is known is that they were there. */
static void spans_not_listed_are_counted(void **state)
{
    (void)state;
    tare__span_stack open = {0};
    for (uint32_t i = 0; i < TARE__STACK_LISTED + 3; i++)
        tare__span_stack_push(&open, LOAD, T0 + 1);
    event(TARE__OP_BEGIN, FORWARD, 10);
    event(TARE__OP_END, 0, 20);
    event(TARE__OP_END, 0, 30);
    event(TARE__OP_NEXT, BACKWARD, 40);
    value(TARE__OP_LOST_ENDS, 0, 40, 3);
    event(TARE__OP_END, 0, 50);
    seal(1, 7, &open);
    add_tables();
    tare__text text = render();
    assert_string_equal(text.data, "# time_ns\tpid\ttid\tkind\tname\textras\n"
                                   "10\t4120\t4121\tbegin\tforward\tdepth=4099\n"
                                   "20\t4120\t4121\tend\tforward\tdur_ns=10\tdepth=4099\n"
                                   "30\t4120\t4121\tend\t(not known)\tdepth=4098\n"
                                   "40\t4120\t4121\tnext\tbackward\tdepth=4097\n"
                                   "40\t4120\t4121\tdropped-ends\t\tvalue=3\tdepth=4095\n"
                                   "50\t4120\t4121\tend\tload\tdur_ns=49\tdepth=4094\n");
    tare__text_free(&text);
    tare__span_stack_free(&open);
}

static void damage_is_told_and_stepped_over(void **state)
{
    (void)state;
    event(TARE__OP_BEGIN, LOAD, 10);
    size_t start = file.length;
    seal(1, 0, NULL);
    file.data[file.length - 1] ^= 1;
    event(TARE__OP_MARK, MARKED, 20);
    seal(1, 1, NULL);
    add_tables();
    tare__text text = render();
    char wanted[256];
    snprintf(wanted, sizeof wanted, "the first at byte %zu\n", start);
    assert_non_null(strstr(text.data, "# damage: 1 block ("));
    assert_non_null(strstr(text.data, wanted));
    assert_non_null(strstr(text.data, "20\t4120\t4121\tmark\there\n"));
    assert_null(strstr(text.data, "begin"));
    tare__text_free(&text);
}

static void a_refusing_sink_ends_it(void **state)
{
    (void)state;
    for (int block = 0; block < 4; block++) {
        for (int i = 0; i < 4000; i++)
            event(TARE__OP_MARK, MARKED, (uint64_t)i);
        seal(1, (uint32_t)block, NULL);
    }
    add_completes();
    add_tables();
    tare__trace *trace = open_file();
    unsigned writes = 1;
    for (;; writes++) {
        kept kept = {.refuse = writes};
        tare__error error = {""};
        tare__emit_sink sink = sink_of(&kept);
        tare__emit_options options = {0};
        tare__emit_input input = {.trace = trace};
        int status = tare__emit_events.emit(&input, &options, &sink, &error);
        bool refused = kept.writes == writes;
        tare__text_free(&kept.text);
        assert_int_equal(status, refused ? TARE_E_SYSTEM : 0);
        assert_string_equal(error.text, "");
        if (!refused)
            break;
    }
    assert_true(writes > 3);
    tare__trace_close(trace);
}

static void out_of_memory_is_said(void **state)
{
    (void)state;
    add_every_kind();
    add_completes();
    add_tables();
    int failures = 0;
    for (;; failures++) {
        kept kept = {0};
        tare__error error = {""};
        tare__emit_sink sink = sink_of(&kept);
        tare__emit_options options = {0};
        tare__emit_input input = {.trace = open_file()};
        allocations_left = failures;
        int status = tare__emit_events.emit(&input, &options, &sink, &error);
        allocations_left = -1;
        tare__trace_close(input.trace);
        tare__text_free(&kept.text);
        if (status == 0)
            break;
        assert_true(status < 0);
    }
    assert_true(failures > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_kind_has_its_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(after_a_gap_the_listed_spans_are_open, set_up, tear_down),
        cmocka_unit_test_setup_teardown(spans_not_listed_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_is_told_and_stepped_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_refusing_sink_ends_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(out_of_memory_is_said, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
