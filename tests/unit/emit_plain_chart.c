/* Tests of src/emit/plain_chart.c: round steps in every unit, places inside the chart, words that are no markup.
 * One thread.
 * Must not know the pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "emit/plain_chart.h"

static const char *show(char out[TARE__CHART_WORD], const char *unit, double value)
{
    snprintf(out, TARE__CHART_WORD, "%g %s", value, unit);
    return out;
}

static tare__chart scaled(const char *unit, double low, double high)
{
    tare__chart chart = {.unit = unit, .show = show, .top = 10, .height = 134};
    tare__chart_scale(&chart, low, high);
    return chart;
}

static void expect(const char *unit, double low, double high, double from, double to, double step)
{
    tare__chart chart = scaled(unit, low, high);
    assert_true(fabs(chart.low - from) < step / 1e6);
    assert_true(fabs(chart.high - to) < step / 1e6);
    assert_true(fabs(chart.step - step) < step / 1e6);
}

static void steps_are_round(void **state)
{
    (void)state;
    expect("", 0, 7, 0, 8, 2);
    expect("", 0, 100, 0, 100, 50);
    expect("", 187, 233, 180, 240, 20);
    expect("ns", 9.3e6, 11.1e6, 9e6, 11.5e6, 0.5e6);
    expect("ns", 0, 200e9, 0, 240e9, 60e9);             /* minutes */
    expect("ns", 0, 4 * 3600e9, 0, 4 * 3600e9, 3600e9); /* hours */
    expect("bytes", 3.2 * 1048576, 3.9 * 1048576, 3.2 * 1048576, 4 * 1048576, 0.2 * 1048576);
    expect("", -3, 5, -4, 6, 2);
}

static void small_spans_do_not_look_large(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        double values[] = {1e6, 42, 0};
        tare__chart chart = scaled("", values[i], values[i]);
        assert_true(chart.low <= values[i] && values[i] <= chart.high);
        assert_true(chart.low >= 0 && chart.high > chart.low);
        assert_true(chart.high - chart.low >= 0.04 * values[i]);
    }
    tare__chart nothing = scaled("", INFINITY, -INFINITY);
    assert_true(nothing.low == 0 && nothing.high > 0 && nothing.step > 0);
    assert_true(scaled("", 1, 10).low == 0); /* from 0 where that costs little */
}

static void values_beyond_are_at_the_end(void **state)
{
    (void)state;
    tare__chart chart = scaled("", 0, 100);
    assert_true(fabs(tare__chart_up(&chart, 0) - 110) < 1e-9);
    assert_true(fabs(tare__chart_up(&chart, 50) - 60) < 1e-9);
    assert_true(fabs(tare__chart_up(&chart, 1e9) - 10) < 1e-9);
    assert_true(fabs(tare__chart_up(&chart, -1e9) - 110) < 1e-9);
}

static double at(const void *of, size_t i, bool across)
{
    const double *values = of;
    return across ? (double)i / 2 : values[i];
}

static void a_course_goes_through_its_values(void **state)
{
    (void)state;
    static const double values[] = {0, 100, 50};
    tare__text out = {0};
    tare__chart chart = scaled("<b>", 0, 100);
    chart.out = &out;
    tare__chart_open(&chart, "a \"<name>\"");
    tare__chart_course(&chart, "course", values, 3, at, NULL);
    tare__chart_course(&chart, "band", values, 3, at, at);
    tare__chart_close(&chart);
    assert_false(out.failed);
    assert_non_null(strstr(out.data, "d=\"M0.0 110.0L500.0 10.0L1000.0 60.0\""));
    assert_non_null(strstr(out.data, "L1000.0 60.0L1000.0 60.0L500.0 10.0L0.0 110.0z\""));
    assert_non_null(strstr(out.data, "aria-label=\"a &quot;&lt;name&gt;&quot;\""));
    assert_null(strstr(out.data, "<b>"));
    assert_non_null(strstr(out.data, ">0 &lt;b&gt;</text>"));
    assert_null(strstr(out.data, " style="));
    tare__text_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_round),
        cmocka_unit_test(small_spans_do_not_look_large),
        cmocka_unit_test(values_beyond_are_at_the_end),
        cmocka_unit_test(a_course_goes_through_its_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
