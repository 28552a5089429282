/* Tests of what a report shows of sampled stacks: golden text and JSON of a trace, widths, failing memory.
 * One thread.
 * Must not know how the tables are made. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <time.h>

#include "analyze_helper.h"
#include "base_failing.h"
#include "emit_golden.h"
#include "stacks_builder.h"

#define APP "/home/user/app/"
#define LIB "/usr/lib/python3.12/"
#define SITE "/home/user/app/.venv/lib/python3.12/site-packages/"

/* A program that fetches and parses while a pool resizes images and a worker waits. */
static tare__analysis *fetch(builder **made)
{
    builder *b = *made = builder_new();
    static const char command[] = "python\0fetch.py";
    tare__field_bytes(&b->fields, TARE__FIELD_COMMAND, command, sizeof command);
    build_string(b, TARE__FIELD_HOST, "host");
    build_string(b, TARE__FIELD_WRITER, "tare 0.1.0");
    build_string(b, TARE__FIELD_DIRECTORY, "/home/user/app");
    build_number(b, TARE__FIELD_START_REALTIME, UINT64_C(1700000000000000000));
    build_number(b, TARE__FIELD_CLOCK_KIND, TARE__CLOCK_TSC);
    build_number(b, TARE__FIELD_START_TICKS, BUILD_START);
    build_number(b, TARE__FIELD_CPUS, 2);
    build_fields(b, TARE__BLOCK_RUN, 0);
    build_clock(b);
    stacks_builder s = stacks_start(b);
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread"), pool = stacks_thread(&s, 77, 78, 5, "ThreadPool_0");
    uint32_t idle = stacks_thread(&s, 77, 79, 5, "QueueFeeder");
    uint32_t module = stacks_python(&s, 0, "<module>", APP "fetch.py", 90);
    uint32_t import = stacks_python(&s, 0, "<module>", APP "fetch.py", 3);
    uint32_t pandas = stacks_python(&s, import, "<module>", SITE "pandas/__init__.py", 19);
    uint32_t get = stacks_python(&s, module, "get", APP "fetch.py", 31);
    uint32_t receive = stacks_python(&s, get, "SocketIO.readinto", LIB "socket.py", 705);
    uint32_t parse = stacks_python(&s, module, "Parser.parse_all_the_items", APP "lib/parser/items.py", 42);
    uint32_t json = stacks_python(&s, parse, "JSONDecoder.raw_decode", LIB "json/decoder.py", 353);
    uint32_t retry = stacks_python(&s, module, "retry", APP "fetch.py", 17);
    uint32_t run = stacks_python(&s, 0, "Thread.run", LIB "threading.py", 982);
    uint32_t resize = stacks_python(&s, run, "resize", APP "images.py", 12);
    uint32_t pil = stacks_python(&s, resize, "Image.resize", SITE "PIL/Image.py", 2300);
    uint32_t wait = stacks_python(&s, run, "Queue.get", LIB "queue.py", 171);
    uint32_t gc = stacks_frame(&s, parse, TARE__FRAME_NOTE, "garbage collection", "", 0, 0);
    stacks_samples(&s, main, pandas, TARE__STATE_RUNNING, 7);
    stacks_samples(&s, main, receive, TARE__STATE_NETWORK, 62);
    stacks_samples(&s, main, json, TARE__STATE_RUNNING, 12);
    stacks_samples(&s, main, json, TARE__STATE_GIL, 3);
    stacks_samples(&s, main, parse, TARE__STATE_RUNNING, 6);
    stacks_samples(&s, main, gc, TARE__STATE_RUNNING, 4);
    stacks_samples(&s, main, retry, TARE__STATE_SLEEP, 5);
    stacks_full(&s, main, 0, TARE__STATE_RUNNING, TARE__SAMPLE_TORN, 10 * MS, 0, 0);
    stacks_samples(&s, pool, pil, TARE__STATE_RUNNING, 40);
    stacks_samples(&s, pool, resize, TARE__STATE_RUNNING, 3);
    stacks_samples(&s, pool, wait, TARE__STATE_LOCK, 57);
    stacks_samples(&s, idle, wait, TARE__STATE_LOCK, 100);
    stacks_done(&s);
    build_end(b, BUILD_START + 2 * 1000 * MS);
    return analyze(b);
}

static tare__text emit(const tare__emitter *emitter, const tare__analysis *analysis, tare__emit_options options)
{
    kept kept = {0};
    tare__error error = {""};
    tare__emit_sink sink = sink_of(&kept);
    tare__emit_input input = {.analysis = analysis};
    options.width = options.width ? options.width : TARE__EMIT_WIDTH;
    assert_int_equal(emitter->emit(&input, &options, &sink, &error), 0);
    return kept.text;
}

static void check(const char *name, const tare__emitter *emitter, const tare__analysis *of, tare__emit_options options)
{
    tare__text text = emit(emitter, of, options);
    assert_golden(name, &text);
    tare__text_free(&text);
}

static void reports_are_as_they_were(void **state)
{
    (void)state;
    builder *b;
    tare__analysis *of = fetch(&b);
    check("stacks.txt", &tare__emit_text, of, (tare__emit_options){0});
    check("stacks-all-72.txt", &tare__emit_text, of, (tare__emit_options){.all = true, .width = 72});
    check("stacks.json", &tare__emit_json, of, (tare__emit_options){.pretty = true});
    done(b, of);
}

static void every_width_is_kept(void **state)
{
    (void)state;
    builder *b;
    tare__analysis *of = fetch(&b);
    for (unsigned width = TARE__EMIT_WIDTH_MIN; width <= TARE__EMIT_WIDTH_MAX; width += 7) {
        tare__text text = emit(&tare__emit_text, of, (tare__emit_options){.width = width, .all = true});
        for (const char *at = text.data; *at;) {
            size_t length = strcspn(at, "\n"), columns = tare__text_columns(at, length);
            if (columns > width)
                fail_msg("%zu columns on a page of %u: %.*s", columns, width, (int)length, at);
            at += length + (at[length] == '\n');
        }
        tare__text_free(&text);
    }
    done(b, of);
}

static int drop(void *context, const void *data, size_t bytes)
{
    (void)context;
    (void)data;
    (void)bytes;
    return 0;
}

static void out_of_memory_is_said(void **state)
{
    (void)state;
    builder *b;
    tare__analysis *of = fetch(&b);
    tare__emit_sink sink = {.write = drop};
    tare__emit_input input = {.analysis = of};
    tare__emit_options options = {.width = 80, .all = true};
    int failures = 0;
    for (int n = 0;; n++) {
        tare__error error = {""};
        allocations_left = n;
        int status = tare__emit_text.emit(&input, &options, &sink, &error);
        allocations_left = -1;
        if (status == 0)
            break;
        failures++;
        assert_int_equal(status, TARE_E_MEMORY);
        assert_string_equal(error.text, "out of memory");
    }
    assert_true(failures > 5);
    done(b, of);
}

int main(void)
{
    setenv("TZ", "UTC", 1);
    tzset();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_are_as_they_were),
        cmocka_unit_test(every_width_is_kept),
        cmocka_unit_test(out_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
