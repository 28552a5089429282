/* Reports, figures and checks through tare_engine.h: what is written, refused writers, every allocation failed in turn.
 * One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base_failing.h"
#include "emit_sample.h"
#include "engine/engine.h"
#include "tare.h"

typedef struct sink {
    char text[1 << 20];
    size_t length;
    int files;
    bool refuses;
} sink;

static sink out;

static int take(void *context, const void *data, size_t bytes)
{
    sink *to = context;
    if (to->refuses || bytes > sizeof to->text - 1 - to->length)
        return -1;
    memcpy(to->text + to->length, data, bytes);
    to->length += bytes;
    to->text[to->length] = '\0';
    return 0;
}

static int open_file(void *context, const char *name)
{
    assert_true(strlen(name) > 0);
    ((sink *)context)->files++;
    return 0;
}

static const tare_engine_files files = {open_file, take, &out};
static char error[TARE_ENGINE_ERROR];

static void reset(bool refuses)
{
    memset(&out, 0, sizeof out);
    out.refuses = refuses;
    error[0] = '\0';
}

/* ---- reports ------------------------------------------------------------------------------------------- */
static void formats_of_tables(void **state)
{
    (void)state;
    const tare_engine_report report = {.analysis = (tare__analysis *)&train, .path = "train.tare"};
    reset(false);
    assert_int_equal(tare_engine_emit(&report, "json", 0, take, &out, error), 0);
    assert_int_equal(out.text[0], '{');
    reset(false);
    assert_int_equal(tare_engine_emit(&report, "text", 1, take, &out, error), 0);
    assert_non_null(strstr(out.text, "forward"));
    reset(false);
    assert_int_equal(tare_engine_emit_files(&report, "csv", &files, error), 0);
    assert_true(out.files > 5 && out.length > 0);
}

static void what_cannot_be_shown(void **state)
{
    (void)state;
    const tare_engine_report report = {.analysis = (tare__analysis *)&train, .path = "/nonexistent/train.tare"};
    static const char *const formats[] = {"json", "text"};
    for (size_t i = 0; i < TARE__COUNT_OF(formats); i++) {
        reset(true);
        assert_int_equal(tare_engine_emit(&report, formats[i], 0, take, &out, error), TARE_E_SYSTEM);
        assert_true(error[0]);
    }
    assert_int_equal(tare_engine_emit_files(&report, "csv", &files, error), TARE_E_SYSTEM);
    reset(false);
    assert_int_equal(tare_engine_emit(&report, "spam", 0, take, &out, error), TARE_E_USAGE);
    assert_string_equal(error, "unknown format 'spam'");
    assert_int_equal(tare_engine_emit_files(&report, "json", &files, error), TARE_E_USAGE);
    assert_true(tare_engine_emit(&report, "events", 0, take, &out, error) < 0);
    assert_non_null(strstr(error, "/nonexistent/train.tare"));
    assert_true(tare_engine_emit_files(&report, "tensorboard", &files, error) < 0);
    assert_true(tare_engine_import("/nonexistent/x.json", "x.tare", error) < 0);
    assert_non_null(strstr(error, "/nonexistent/x.json"));
}

/* ---- figures ------------------------------------------------------------------------------------------- */
static const char *figures_of(char into[4096], double factor)
{
    char samples[2048] = "";
    for (int i = 0; i < 40; i++)
        snprintf(samples + strlen(samples), sizeof samples - strlen(samples), "%s%.0f", i ? "," : "",
                 factor * (1e7 + 1e4 * (i % 9)));
    snprintf(into, 4096,
             "{\"tare_baseline\":1,\"kind\":\"model\",\"machine\":\"here\",\"runs\":1,\"figures\":[{\"name\":"
             "\"model.latency\",\"unit\":\"ns\",\"better\":\"lower\",\"exact\":false,\"value\":null,\"total\":null,"
             "\"n\":40,\"per\":\"call\",\"each\":1,\"samples\":[%s]}]}",
             samples);
    return into;
}

static int check(double factor, double share, const tare_engine_gate *gates, size_t n)
{
    char base[4096], head[4096];
    figures_of(base, 1);
    figures_of(head, factor);
    return tare_engine_check(base, strlen(base), head, strlen(head), share, gates, n, take, &out, error);
}

static void figures_are_read_and_written(void **state)
{
    (void)state;
    char text[4096];
    figures_of(text, 1);
    reset(false);
    assert_int_equal(tare_engine_figures(text, strlen(text), "base.json", take, &out, error), 0);
    assert_non_null(strstr(out.text, "\"value\":10035000"));
    assert_int_equal(tare_engine_figures("{}", 2, "base.json", take, &out, error), TARE_E_INPUT);
    assert_non_null(strstr(error, "base.json"));
    reset(true);
    assert_int_equal(tare_engine_figures(text, strlen(text), "base.json", take, &out, error), TARE_E_SYSTEM);
}

static void checks_by_the_default_and_by_name(void **state)
{
    (void)state;
    char name[300];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    reset(false);
    assert_int_equal(check(1.15, NAN, NULL, 0), 0);
    assert_non_null(strstr(out.text, "\"outcome\":\"failed\""));
    reset(false);
    assert_int_equal(check(1.15, 0.2, NULL, 0), 0);
    assert_non_null(strstr(out.text, "\"outcome\":\"passed\""));
    reset(false);
    assert_int_equal(check(1.15, NAN, &(tare_engine_gate){"model.*", 0.2}, 1), 0);
    assert_non_null(strstr(out.text, "\"outcome\":\"passed\""));
    assert_int_equal(check(1.15, NAN, &(tare_engine_gate){name, 0.2}, 1), TARE_E_USAGE);
}

static void this_machine(void **state)
{
    (void)state;
    reset(false);
    assert_int_equal(tare_engine_machine(take, &out, error), 0);
    assert_non_null(strstr(out.text, "\"fingerprint\":\""));
}

/* ---- memory -------------------------------------------------------------------------------------------- */
static int one(int which)
{
    const tare_engine_report report = {.analysis = (tare__analysis *)&train, .path = "train.tare"};
    char text[4096];
    switch (which) {
    case 0: return tare_engine_emit(&report, "text", 0, take, &out, error);
    case 1: figures_of(text, 1); return tare_engine_figures(text, strlen(text), "base.json", take, &out, error);
    default: return check(1.15, NAN, &(tare_engine_gate){"model.*", 0.2}, 1);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        int failures = 0;
        for (;; failures++) {
            reset(false);
            allocations_left = failures;
            int status = one(which);
            allocations_left = -1;
            if (!status)
                break;
            assert_int_equal(status, TARE_E_MEMORY);
            assert_true(error[0]);
        }
        assert_true(failures > 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_of_tables),
        cmocka_unit_test(what_cannot_be_shown),
        cmocka_unit_test(figures_are_read_and_written),
        cmocka_unit_test(checks_by_the_default_and_by_name),
        cmocka_unit_test(this_machine),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
