/* Tests of analyze/threshold: what is read, what is refused and with which sentence, which figures are meant.
 * One thread. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/analyze.h"
#include "tare.h"

static tare__threshold parsed(const char *word)
{
    tare__threshold threshold = {.name = "none"};
    tare__error error = {""};
    if (tare__threshold_parse(word, "--threshold", &threshold, &error) != 0)
        fail_msg("%s: %s", word, error.text);
    return threshold;
}

static void limits(void **state)
{
    (void)state;
    static const struct {
        const char *word, *name, *unit;
        double value;
    } cases[] = {
        {"latency:100ms", "latency", "ns", 1e8},
        {"p99:1.5s", "p99", "ns", 1.5e9},
        {"step:250us", "step", "ns", 250e3},
        {"step:250 µs", "step", "ns", 250e3},
        {"run.elapsed:5m", "run.elapsed", "ns", 300e9},
        {"throughput:1000samples/s", "throughput", "samples/s", 1000},
        {"throughput:1000/s", "throughput", "/s", 1000},
        {"memory:2GB", "memory", "bytes", 2e9},
        {"memory:2GiB", "memory", "bytes", 2147483648.0},
        {"memory:64M", "memory", "bytes", 67108864},
        {"metric:memory.rss:10MB", "metric:memory.rss", "bytes", 1e7},
        {"operator:aten::mm:3ms", "operator:aten::mm", "ns", 3e6},
        {"counter:loss:0.25", "counter:loss", "", 0.25},
        {"model.parameters:25557032", "model.parameters", "", 25557032},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(cases); i++) {
        tare__threshold threshold = parsed(cases[i].word);
        assert_string_equal(threshold.name, cases[i].name);
        assert_string_equal(threshold.unit, cases[i].unit);
        assert_int_equal(threshold.kind, TARE__THRESHOLD_LIMIT);
        assert_true(threshold.value == cases[i].value);
    }
}

static void changes(void **state)
{
    (void)state;
    tare__threshold threshold = parsed("step:5%");
    assert_int_equal(threshold.kind, TARE__THRESHOLD_CHANGE);
    assert_true(threshold.value == 0.05 && isnan(threshold.floor));
    threshold = parsed("metric:memory.rss:12.5%,64MiB");
    assert_string_equal(threshold.name, "metric:memory.rss");
    assert_true(threshold.value == 0.125 && threshold.floor == 67108864);
    assert_string_equal(threshold.floor_unit, "bytes");
    assert_true(parsed("model.flops:0%").value == 0);
    assert_true(parsed("*:5 %,1ms").floor == 1e6);
}

static void refusals(void **state)
{
    (void)state;
    static const char *const words[] = {
        "",
        "step",
        "step:",
        ":5%",
        "step:%",
        "step:fast",
        "step:5%%",
        "step:-5%",
        "step:5%,",
        "step:5%,5%",
        "step:5,1ms",
        "step:100parsecs",
        "step:1e3",
        "step:.",
        "step:5ms%",
        "step:nan",
        "step:99999999999999999999d",
        "step:20000%",
        "step:5%,1ms,2ms",
        "step:1/2/3abcdefghijklmnopqrstuvwxyzabcdefghij",
        "step:5% ,,1ms",
    };
    for (size_t i = 0; i < TARE__COUNT_OF(words); i++) {
        tare__threshold threshold = {.name = "untouched"};
        tare__error error = {""};
        if (tare__threshold_parse(words[i], "--threshold", &threshold, &error) != TARE_E_USAGE)
            fail_msg("'%s' was taken", words[i]);
        assert_string_equal(threshold.name, "untouched");
        assert_non_null(strstr(error.text, "--threshold: "));
    }
    char longest[600];
    memset(longest, 'x', sizeof longest);
    memcpy(longest + sizeof longest - 4, ":5%", 4);
    tare__threshold threshold;
    assert_int_equal(tare__threshold_parse(longest, "--threshold", &threshold, NULL), TARE_E_USAGE);
}

static void limits_of_a_figure(void **state)
{
    (void)state;
    static const struct {
        const char *word, *unit;
        double value; /* NaN: refused */
    } cases[] = {
        {"latency:100ms", "ns", 1e8},          {"latency:100", "ns", NAN},     {"latency:5%", "ns", NAN},
        {"latency:2GB", "ns", NAN},            {"memory:2G", "bytes", 2147483648.0}, {"memory:2", "bytes", NAN},
        {"parameters:25.5M", "", 25.5e6},      {"flops:2T", "", 2e12},         {"flops:7", "", 7},
        {"flops:M", "", NAN},                  {"flops:1ms", "", NAN},         {"flops:1MM", "", NAN},
        {"throughput:5tokens/s", "/s", 5},     {"throughput:5/s", "/s", 5},    {"throughput:5", "/s", 5},
        {"throughput:5parsecs/s", "/s", NAN},  {"throughput:5ms", "/s", NAN},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(cases); i++) {
        tare__threshold threshold = {.name = "untouched"};
        tare__error error = {""};
        int status = tare__threshold_parse_of(cases[i].word, cases[i].unit, "the threshold", &threshold, &error);
        if (isnan(cases[i].value) ? status != TARE_E_USAGE : status || threshold.value != cases[i].value)
            fail_msg("%s: %d, %g, %s", cases[i].word, status, threshold.value, error.text);
        assert_true(!status || (strstr(error.text, "the threshold: ") && strcmp(threshold.name, "untouched") == 0));
    }
    char longest[600];
    memset(longest, 'x', sizeof longest);
    memcpy(longest + sizeof longest - 4, ":5M", 4);
    tare__threshold threshold;
    assert_int_equal(tare__threshold_parse_of(longest, "", "the threshold", &threshold, NULL), TARE_E_USAGE);
}

static bool names(const char *pattern, const char *figure)
{
    tare__threshold threshold = {.name = ""};
    strcpy(threshold.name, pattern);
    return tare__threshold_names(&threshold, figure);
}

static void names_and_patterns(void **state)
{
    (void)state;
    assert_true(names("step", "step") && !names("step", "steps") && !names("step", "ste"));
    assert_true(names("*", "") && names("*", "anything") && names("span:*", "span:train/forward"));
    assert_true(names("span:*/forward", "span:a/forward/forward") &&
                !names("span:*/forward", "span:forward"));
    assert_true(names("*aten::*mm", "operator:aten::addmm") && !names("*aten::*mm", "operator:aten::addmm_"));
    assert_true(names("a*b*c", "aXbbYcc") && !names("a*b*c", "aXcYb"));
}

static void units_that_fit(void **state)
{
    (void)state;
    assert_true(tare__threshold_fits("ns", "ns") && !tare__threshold_fits("ns", "bytes"));
    assert_true(tare__threshold_fits("/s", "samples/s") && tare__threshold_fits("", "tokens/s"));
    assert_true(tare__threshold_fits("samples/s", "samples/s") &&
                !tare__threshold_fits("tokens/s", "samples/s"));
    assert_true(tare__threshold_fits("", "") && !tare__threshold_fits("", "ns"));
    assert_true(tare__threshold_fits("", "share") && !tare__threshold_fits("", "bytes"));
    assert_true(tare__threshold_fits("", "W") && !tare__threshold_fits("ns", "W"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),
        cmocka_unit_test(changes),
        cmocka_unit_test(refusals),
        cmocka_unit_test(limits_of_a_figure),
        cmocka_unit_test(names_and_patterns),
        cmocka_unit_test(units_that_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
