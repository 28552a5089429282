/* Tests of how the history is shown: text, JSON, CSV and page against golden files; hostile names; refusing sinks and
 * failing memory. One thread.
 * Must not know where runs are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base_failing.h"
#include "emit_golden.h"
#include "tare.h"

#define START 1763211590123456789u /* 2025-11-15 12:59:50 UTC */

static const char *const tags[] = {"nightly", "gpu"};
static tare__kept rows[] = {
    {.id = "3f2a91c4000000000000000000000000",
     .kind = "run",
     .command = "python3 train.py --epochs 3 --learning-rate 0.01",
     .directory = "/work",
     .host = "vm",
     .machine = "5b8916a9",
     .cpu_model = "A CPU",
     .revision = "f41d3fb00000 on main",
     .trace = "/data/train.tare",
     .dirty = 1,
     .status = 0,
     .when_ns = START,
     .elapsed_ns = 2.41e9,
     .tags = tags,
     .n_tags = 2},
    {.id = "00c0ffee000000000000000000000000",
     .kind = "model",
     .command = "=cmd <b>\"&'\x01\xff",
     .dirty = -1,
     .status = -1,
     .when_ns = 0,
     .elapsed_ns = NAN},
    {.id = "deadbeef000000000000000000000000",
     .kind = "run",
     .command = "./serve",
     .dirty = 0,
     .status = 137,
     .signal = 9,
     .when_ns = START - 86400000000000u,
     .elapsed_ns = 1e6},
};
static const tare__kept_list runs = {.rows = rows, .n = TARE__COUNT_OF(rows), .id_digits = 7};
static tare__figures *figures;
static tare__kept_point points[20];
static tare__kept_change changes[] = {{10, 1e6, 1.3e6, 0.0001}};
static tare__kept_trend trend_rows[] = {
    {.name = "step",
     .unit = "ns",
     .better = TARE__LOWER,
     .points = points,
     .n = 20,
     .changes = changes,
     .n_changes = 1,
     .id_digits = 7},
    {.name = "<script>alert('x')</script>",
     .unit = "<i>/s",
     .better = TARE__NEITHER,
     .points = points,
     .n = 1,
     .id_digits = 7},
};
static const tare__kept_trends trends = {
    .rows = trend_rows, .n = 2, .command = "python3 <train>.py", .machine = "5b8916a9"};

static int set_up(void **state)
{
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    static const double samples[] = {1, 2, 4};
    figures = tare__figures_new("run");
    const tare__figure all[] = {
        {.name = "run.elapsed",
         .unit = "ns",
         .better = TARE__LOWER,
         .value = 2.41e9,
         .total = 2.41e9,
         .n = 1},
        {.name = "step",
         .unit = "ns",
         .per = "step",
         .better = TARE__LOWER,
         .value = 2,
         .total = 7,
         .n = 3,
         .each = 1,
         .samples = samples,
         .n_samples = 3},
        {.name = "model.flops", .unit = "", .exact = true, .value = 4089184256.0, .total = NAN, .n = 1},
        {.name = "span:a very long name of a span inside of another one/and another one/innermost",
         .unit = "samples/s",
         .better = TARE__HIGHER,
         .value = 812.5,
         .total = NAN,
         .n = 12345},
        {.name = "metric:share", .unit = "share", .value = 0.25, .total = NAN, .n = 1},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(all); i++)
        if (tare__figures_add(figures, &all[i]) != 0)
            return -1;
    for (size_t i = 0; i < 20; i++) {
        points[i] = (tare__kept_point){.when_ns = START + i * 3600000000000u,
                                       .value = (i < 10 ? 1e6 : 1.3e6) + 1000.0 * (double)(i % 3),
                                       .revision = i == 10 ? "<abc> on main" : NULL};
        snprintf(points[i].id, sizeof points[i].id, "%08zx000000000000000000000000", i);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tare__figures_free(figures);
    return 0;
}

/* What can be shown, by number; false: this format does not show it. */
static bool show(const char *format, int what, const tare__emit_sink *sink, int *status)
{
    const tare__history_emitter *emitter = tare__history_find(format);
    const tare__emit_options options = {.width = 80, .pretty = true};
    tare__error error;
    assert_non_null(emitter);
    if (what == 0 && emitter->list)
        *status = emitter->list(&runs, &options, sink, &error);
    else if (what == 1 && emitter->show)
        *status = emitter->show(&(tare__kept_run){&rows[0], figures}, &options, sink, &error);
    else if (what == 2 && emitter->trend)
        *status = emitter->trend(&trends, &options, sink, &error);
    else
        return false;
    return true;
}

static const char *const formats[] = {"text", "json", "csv", "html"};
static const char *const whats[] = {"list", "show", "trend"};

static void outputs_are_as_before(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) { /* the page has the report's style in it: it is looked at below */
        for (int what = 0; what < 3; what++) {
            kept to = {.refuse = 0};
            tare__emit_sink sink = sink_of(&to);
            char name[64];
            int status;
            if (!show(formats[i], what, &sink, &status))
                continue;
            assert_int_equal(status, 0);
            snprintf(name, sizeof name, "history_%s.%s", whats[what],
                     strcmp(formats[i], "text") == 0 ? "txt" : formats[i]);
            assert_golden(name, &to.text);
            tare__text_free(&to.text);
        }
    }
}

static void text_fits_a_terminal(void **state)
{
    (void)state;
    for (int what = 0; what < 3; what++) {
        kept to = {.refuse = 0};
        tare__emit_sink sink = sink_of(&to);
        int status;
        assert_true(show("text", what, &sink, &status));
        for (const char *line = to.text.data; *line; line += strcspn(line, "\n") + 1) {
            size_t bytes = strcspn(line, "\n");
            if (tare__text_columns(line, bytes) > 80)
                fail_msg("%.*s", (int)bytes, line);
            for (size_t i = 0; i < bytes; i++)
                assert_true((unsigned char)line[i] >= ' ');
        }
        tare__text_free(&to.text);
    }
}

static void names_are_no_markup(void **state)
{
    (void)state;
    kept to = {.refuse = 0};
    tare__emit_sink sink = sink_of(&to);
    int status;
    assert_true(show("html", 2, &sink, &status));
    assert_int_equal(status, 0);
    const char *body = strstr(to.text.data, "<body>");
    assert_non_null(strstr(to.text.data, "color-scheme"));
    assert_null(strstr(body, "<script"));
    assert_null(strstr(body, "<i>"));
    assert_null(strstr(body, "<abc>"));
    assert_null(strstr(body, "<train>"));
    assert_non_null(strstr(body, "&lt;script&gt;alert(&#39;x&#39;)"));
    assert_non_null(strstr(body, "+30.1 %") ? body : strstr(body, "+30.0 %"));
    size_t dots = 0;
    for (const char *at = body; (at = strstr(at, "<circle")); at++)
        dots++;
    assert_int_equal(dots, 21);
    const char *course = strstr(body, "<path class=\"course\"");
    assert_non_null(course); /* a line through all of them */
    size_t joined = 0;
    for (const char *at = strchr(course, 'M'); *at != '/'; at++)
        joined += *at == 'L';
    assert_int_equal(joined, 19);
    assert_non_null(strstr(body, "<line class=\"level\""));
    assert_non_null(strstr(body, "<text class=\"size worse\""));
    assert_null(strstr(to.text.data, "unsafe-inline"));
    assert_null(strstr(body, " style="));
    tare__text_free(&to.text);
}

static void refusals_come_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < TARE__COUNT_OF(formats); i++)
        for (int what = 0; what < 3; what++) {
            kept to = {.refuse = 1};
            tare__emit_sink sink = sink_of(&to);
            int status = 0;
            if (show(formats[i], what, &sink, &status))
                assert_int_equal(status, TARE_E_SYSTEM);
            tare__text_free(&to.text);
        }
}

static void memory_that_fails_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < TARE__COUNT_OF(formats); i++)
        for (int what = 0; what < 3; what++) {
            kept whole = {.refuse = 0};
            tare__emit_sink of_whole = sink_of(&whole);
            int good = 0;
            bool shown = show(formats[i], what, &of_whole, &good);
            for (long n = 0; shown; n++) {
                kept to = {.refuse = 0};
                tare__emit_sink sink = sink_of(&to);
                int status = 0;
                allocations_left = n;
                shown = show(formats[i], what, &sink, &status);
                bool enough = allocations_left > 0;
                allocations_left = -1;
                assert_true(status == TARE_E_MEMORY ||
                            (status == 0 && (to.text.failed || to.text.length == whole.text.length)));
                tare__text_free(&to.text);
                if (enough)
                    break;
                assert_true(n < 10000);
            }
            tare__text_free(&whole.text);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_as_before),     cmocka_unit_test(text_fits_a_terminal),
        cmocka_unit_test(names_are_no_markup),       cmocka_unit_test(refusals_come_back),
        cmocka_unit_test(memory_that_fails_is_told),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
