/* Tests of the text report: golden pages, widths, folding, colours, control characters, failing sinks and
 * memory. One thread.
 * Must not know traces. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <time.h>

#include "base_failing.h"
#include "emit_golden.h"
#include "emit_sample.h"

static tare__text render(const tare__analysis *analysis, tare__emit_options options)
{
    kept kept = {0};
    tare__error error = {""};
    tare__emit_sink sink = sink_of(&kept);
    tare__emit_input input = {.analysis = analysis};
    options.width = options.width ? options.width : TARE__EMIT_WIDTH;
    assert_int_equal(tare__emit_text.emit(&input, &options, &sink, &error), 0);
    return kept.text;
}

static size_t widest_line(const tare__text *text, size_t *lines)
{
    size_t widest = 0;
    *lines = 0;
    for (const char *at = text->data; *at;) {
        size_t length = strcspn(at, "\n"), columns = tare__text_columns(at, length);
        widest = columns > widest ? columns : widest;
        at += length + (at[length] == '\n');
        ++*lines;
    }
    return widest;
}

static void check_golden(const char *name, const tare__analysis *analysis, tare__emit_options options)
{
    size_t lines;
    options.trace = "run of today.tare";
    tare__text text = render(analysis, options);
    assert_golden(name, &text);
    assert_true(widest_line(&text, &lines) <= (options.width ? options.width : TARE__EMIT_WIDTH));
    assert_true(options.all || lines < 59);
    tare__text_free(&text);
}

static void pages_are_as_they_were(void **state)
{
    (void)state;
    check_golden("train.txt", &train, (tare__emit_options){0});
    check_golden("train-all-raw.txt", &train, (tare__emit_options){.all = true, .raw = true});
    check_golden("train-120.txt", &train, (tare__emit_options){.width = 120});
    check_golden("train-72.txt", &train, (tare__emit_options){.width = 72});
    check_golden("train-colour.txt", &train, (tare__emit_options){.colour = true});
    check_golden("damaged.txt", &damaged, (tare__emit_options){0});
}

static void crowds_fit_a_page(void **state)
{
    (void)state;
    size_t lines;
    for (int grouped = 0; grouped < 2; grouped++) {
        crowd *crowd = make_crowd(grouped);
        check_golden(grouped ? "crowd-by-thread.txt" : "crowd.txt", &crowd->tables, (tare__emit_options){0});
        tare__text text = render(&crowd->tables, (tare__emit_options){.all = true});
        assert_true(widest_line(&text, &lines) <= TARE__EMIT_WIDTH);
        assert_true(lines > CROWD_TREES * CROWD_DEPTH);
        assert_null(strstr(text.data, "more"));
        tare__text_free(&text);
        free_crowd(crowd);
    }
}

static void every_width_is_kept(void **state)
{
    (void)state;
    for (unsigned width = TARE__EMIT_WIDTH_MIN; width <= TARE__EMIT_WIDTH_MAX; width += 7) {
        size_t lines;
        tare__text text = render(&train, (tare__emit_options){.width = width, .all = true});
        size_t widest = widest_line(&text, &lines);
        if (widest > width)
            fail_msg("%zu columns on a page of %u:\n%s", widest, width, text.data);
        tare__text_free(&text);
    }
}

static void names_move_no_cursor(void **state)
{
    (void)state;
    for (int colour = 0; colour < 2; colour++) {
        tare__text text = render(&train, (tare__emit_options){.all = true, .colour = colour});
        for (size_t i = 0; i < text.length; i++)
            assert_true((unsigned char)text.data[i] >= 0x20 || text.data[i] == '\n' ||
                        (colour && text.data[i] == '\x1b'));
        assert_null(strstr(text.data, "\x1b[31m")); /* the one in a name; none of ours is red */
        tare__text_free(&text);
    }
}

static void colours_change_nothing_else(void **state)
{
    (void)state;
    tare__text plain = render(&train, (tare__emit_options){0});
    tare__text coloured = render(&train, (tare__emit_options){.colour = true});
    tare__text stripped = {0};
    for (const char *at = coloured.data; *at; at++) {
        if (*at == '\x1b')
            at = strchr(at, 'm');
        else
            tare__text_append(&stripped, at, 1);
    }
    assert_true(coloured.length > plain.length);
    assert_string_equal(stripped.data, plain.data);
    tare__text_free(&plain);
    tare__text_free(&coloured);
    tare__text_free(&stripped);
}

static void a_refusing_sink_ends_it(void **state)
{
    (void)state;
    tare__emit_input input = {.analysis = &train};
    tare__emit_options options = {.width = 80};
    unsigned writes = 1;
    for (;; writes++) {
        kept kept = {.refuse = writes};
        tare__error error = {""};
        tare__emit_sink sink = sink_of(&kept);
        int status = tare__emit_text.emit(&input, &options, &sink, &error);
        bool refused = kept.writes == writes;
        tare__text_free(&kept.text);
        if (!refused) {
            assert_int_equal(status, 0);
            break;
        }
        assert_int_equal(status, TARE_E_SYSTEM);
        assert_string_equal(error.text, "");
    }
    assert_int_equal(writes, 2); /* one page, handed on whole */
}

static int drop(void *context, const void *data, size_t bytes)
{
    (void)context, (void)data, (void)bytes;
    return 0;
}

static void out_of_memory_is_said(void **state)
{
    (void)state;
    crowd *crowd = make_crowd(false);
    tare__emit_sink sink = {.write = drop};
    tare__emit_input inputs[] = {{.analysis = &train}, {.analysis = &crowd->tables}};
    tare__emit_options options = {.width = 80};
    for (int i = 0; i < 2; i++) {
        int failures = 0;
        for (int n = 0;; n++) {
            tare__error error = {""};
            allocations_left = n;
            int status = tare__emit_text.emit(&inputs[i], &options, &sink, &error);
            allocations_left = -1;
            if (status == 0)
                break;
            failures++;
            assert_int_equal(status, TARE_E_MEMORY);
            assert_string_equal(error.text, "out of memory");
        }
        assert_true(failures > 3);
    }
    free_crowd(crowd);
}

static void formats_are_found_by_name(void **state)
{
    (void)state;
    assert_ptr_equal(tare__emit_find("html"), &tare__emit_html);
    assert_ptr_equal(tare__emit_find("text"), &tare__emit_text);
    assert_null(tare__emit_find("csv"));
}

int main(void)
{
    setenv("TZ", "UTC", 1);
    tzset();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_as_they_were),      cmocka_unit_test(crowds_fit_a_page),
        cmocka_unit_test(every_width_is_kept),         cmocka_unit_test(names_move_no_cursor),
        cmocka_unit_test(colours_change_nothing_else), cmocka_unit_test(a_refusing_sink_ends_it),
        cmocka_unit_test(out_of_memory_is_said),       cmocka_unit_test(formats_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
