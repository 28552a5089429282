/* Tests of src/base/units.c: what people read, at every border of rounding, and what they write.
 * One thread.
 * Must not know other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>

#include "base/base.h"
#include "tare.h"

typedef const char *unit_writer(char out[TARE__UNIT_BYTES], double value);

typedef struct sample {
    double value;
    const char *expected;
} sample;

static void expect_all(unit_writer *write, const sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char out[TARE__UNIT_BYTES];
        assert_ptr_equal(write(out, samples[i].value), out);
        assert_string_equal(out, samples[i].expected);
    }
}

static void shows_times(void **state)
{
    (void)state;
    static const sample samples[] = {
        {0, "0 ns"},          {-0.0, "0 ns"},        {812, "812 ns"},        {12.5, "12.5 ns"},
        {0.25, "0.25 ns"},    {9.996, "10.0 ns"},    {999.4, "999 ns"},      {999.6, "1.00 µs"},
        {1000, "1.00 µs"},    {1240, "1.24 µs"},     {31.04e6, "31.0 ms"},   {999.4e6, "999 ms"},
        {999.6e6, "1.00 s"},  {2.41e9, "2.41 s"},    {59.94e9, "59.9 s"},    {59.96e9, "1m 00s"},
        {60e9, "1m 00s"},     {724e9, "12m 04s"},    {3599.4e9, "59m 59s"},  {3599.6e9, "1h 00m"},
        {11220e9, "3h 07m"},  {86369e9, "23h 59m"},  {86371e9, "1d 00h"},    {190800e9, "2d 05h"},
        {-812, "-812 ns"},    {-2.41e9, "-2.41 s"},  {-724e9, "-12m 04s"},   {-190800e9, "-2d 05h"},
        {NAN, "n/a"},         {INFINITY, "n/a"},     {-INFINITY, "n/a"},     {8.64e13 * 5e6, "5e+06 d"},
    };
    expect_all(tare__unit_time, samples, TARE__COUNT_OF(samples));
}

static void shows_bytes(void **state)
{
    (void)state;
    static const sample samples[] = {
        {0, "0 B"},           {512, "512 B"},          {1023, "1023 B"},     {1023.6, "1.00 KiB"},
        {1024, "1.00 KiB"},   {1536, "1.50 KiB"},      {31 << 20, "31.0 MiB"}, {1047552, "1023 KiB"},
        {1048575, "1.00 MiB"}, {2587718779.0, "2.41 GiB"}, {0x1p60, "1.00 EiB"}, {0x1p75, "3.28e+04 EiB"},
        {-1536, "-1.50 KiB"}, {12.5, "12.5 B"},        {NAN, "n/a"},
    };
    expect_all(tare__unit_bytes, samples, TARE__COUNT_OF(samples));
}

static void shows_counts(void **state)
{
    (void)state;
    static const sample samples[] = {
        {0, "0"},             {-0.0, "0"},          {812, "812"},         {1000, "1,000"},
        {12345, "12,345"},    {99999, "99,999"},    {99999.4, "99,999"},  {99999.6, "100k"},
        {123456, "123k"},     {999499, "999k"},     {999501, "1.00M"},    {1.24e6, "1.24M"},
        {31.04e9, "31.0G"},   {2e12, "2.00T"},      {2e18, "2.00E"},      {2e22, "2e+04E"},
        {0.25, "0.25"},       {1.5, "1.50"},        {12.34, "12.3"},      {123.4, "123"},
        {1234.6, "1,235"},    {0.00123, "0.00123"}, {-12345, "-12,345"},  {-0.25, "-0.25"},
        {-1234567, "-1.23M"}, {NAN, "n/a"},
    };
    expect_all(tare__unit_count, samples, TARE__COUNT_OF(samples));
}

static void shows_percents(void **state)
{
    (void)state;
    static const sample samples[] = {
        {0, "0.0 %"},       {-0.0, "0.0 %"},      {1e-9, "<0.1 %"},     {0.00099, "<0.1 %"}, {0.001, "0.1 %"},
        {0.123, "12.3 %"},  {0.9994, "99.9 %"},   {0.9996, "100 %"},    {1, "100 %"},        {2.5, "250 %"},
        {-0.123, "-12.3 %"}, {-1e-9, ">-0.1 %"},  {1e30, "1e+32 %"},    {NAN, "n/a"},
    };
    expect_all(tare__unit_percent, samples, TARE__COUNT_OF(samples));
}

static void shows_changes(void **state)
{
    (void)state;
    static const sample samples[] = {
        {0, "0.0 %"},          {-0.0, "0.0 %"},      {0.0004, "0.0 %"},    {-0.0004, "0.0 %"}, {0.0006, "+0.1 %"},
        {0.123, "+12.3 %"},    {-0.123, "-12.3 %"},  {0.9994, "+99.9 %"},  {0.9996, "+100 %"}, {-1, "-100 %"},
        {9.99, "+999 %"},      {13.2, "x14.2"},      {199, "x200"},        {1e30, "x1e+30"},   {-1e30, "-1e+32 %"},
        {INFINITY, "from 0"},  {-INFINITY, "below 0"}, {NAN, "n/a"},
    };
    expect_all(tare__unit_change, samples, TARE__COUNT_OF(samples));
}

static void shows_values_in_their_unit(void **state)
{
    (void)state;
    static const struct {
        const char *unit;
        double value;
        const char *whole, *number;
    } samples[] = {
        {"ns", 31.04e6, "31.0 ms", "31.0 ms"},          {"s", 0.031, "31.0 ms", "31.0 ms"},
        {"bytes", 1536, "1.50 KiB", "1.50 KiB"},        {"bytes/s", 1536, "1.50 KiB/s", "1.50 KiB"},
        {"share", 0.43, "43.0 %", "43.0 %"},            {"", 12345, "12,345", "12,345"},
        {"samples/s", 812, "812 samples/s", "812"},     {"°C", 61.5, "61.5 °C", "61.5"},
        {"a\nb", 1, "1 a?b", "1"},                      {"samples/s", NAN, "n/a", "n/a"},
        {"ns", INFINITY, "n/a", "n/a"},
        {"a unit that is far too long to be shown", 1, "1 a unit that …to be shown", "1"},
        {"中中中中中中中中中中中中中中中", 1, "1 中中中中中中…中中中中中", "1"},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(samples); i++) {
        char out[TARE__VALUE_BYTES];
        assert_string_equal(tare__unit_value(out, samples[i].unit, samples[i].value), samples[i].whole);
        assert_string_equal(tare__unit_number(out, samples[i].unit, samples[i].value), samples[i].number);
        if (isfinite(samples[i].value))
            assert_int_equal(tare__unit_is_said(samples[i].unit), strcmp(samples[i].whole, samples[i].number) == 0);
    }
}

static void the_largest_numbers_fit(void **state)
{
    (void)state;
    static unit_writer *const writers[] = {tare__unit_time,    tare__unit_bytes,  tare__unit_count,
                                           tare__unit_percent, tare__unit_change, tare__unit_points};
    for (size_t i = 0; i < TARE__COUNT_OF(writers); i++)
        for (double value = DBL_MIN; isfinite(value); value *= 1.7) {
            char out[TARE__UNIT_BYTES];
            writers[i](out, -value);
            size_t length = strlen(out);
            if (length > 16)
                fail_msg("%a takes %zu bytes", value, length);
        }
}

typedef int quantity_reader(const char *string, const char *what, uint64_t *value, tare__error *error);

typedef struct quantity {
    const char *string;
    uint64_t expected;
} quantity;

static void expect_read(quantity_reader *read, const quantity *quantities, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 77;
        tare__error error = {.text = ""};
        if (read(quantities[i].string, "--x", &value, &error) != 0)
            fail_msg("%s", error.text);
        if (value != quantities[i].expected)
            fail_msg("%s was read as %llu", quantities[i].string, (unsigned long long)value);
    }
}

static void reads_bytes(void **state)
{
    (void)state;
    static const quantity quantities[] = {
        {"512", 512},          {"0", 0},             {"512B", 512},       {"64K", 65536},
        {"64k", 65536},        {"64KiB", 65536},     {"64 KiB", 65536},   {"64kb", 64000},
        {"100MB", 100000000},  {"2G", UINT64_C(2) << 30}, {"1T", UINT64_C(1) << 40},
        {"1.5K", 1536},        {"0.1K", 102},        {"3TB", UINT64_C(3000000000000)},
        {"18446744073709551615", UINT64_MAX}, {"16777215.5T", (UINT64_C(33554431) << 39)},
        {"0.00000000000000000000000000001T", 0},
    };
    expect_read(tare__parse_bytes, quantities, TARE__COUNT_OF(quantities));
}

static void reads_durations(void **state)
{
    (void)state;
    static const quantity quantities[] = {
        {"500ms", 500000000}, {"60s", UINT64_C(60000000000)}, {"60", UINT64_C(60000000000)},
        {"5m", UINT64_C(300000000000)}, {"5min", UINT64_C(300000000000)}, {"2h", UINT64_C(7200000000000)},
        {"1d", UINT64_C(86400000000000)}, {"1.5s", 1500000000}, {"0.1", 100000000}, {"7ns", 7},
        {"7us", 7000}, {"7µs", 7000}, {"0", 0}, {"1.000000001s", 1000000001},
        {"18446744073709551615ns", UINT64_MAX},
    };
    expect_read(tare__parse_duration, quantities, TARE__COUNT_OF(quantities));
}

static void expect_refused(quantity_reader *read, const char *string, const char *why)
{
    uint64_t value = 77;
    tare__error error = {.text = ""};
    if (read(string, "--max-size", &value, &error) != TARE_E_USAGE)
        fail_msg("'%s' was accepted", string);
    assert_int_equal(value, 77);
    assert_int_equal(strncmp(error.text, "--max-size: '", 13), 0);
    if (!strstr(error.text, why))
        fail_msg("'%s': %s", string, error.text);
    assert_int_equal(read(string, "--max-size", &value, NULL), TARE_E_USAGE);
}

static void refuses_the_rest_with_a_sentence(void **state)
{
    (void)state;
    static const char *const neither[] = {
        "",   " ",  "K",   "-1",  "+1",  "1.",   ".5",  "1..5", "1e3", "0x10",
        "1 ", " 1", "1KK", "1Kx", "1,5", "1  K", "1sK", "nan",  "inf", "1.5.5",
    };
    for (size_t i = 0; i < TARE__COUNT_OF(neither); i++) {
        expect_refused(tare__parse_bytes, neither[i], "is not a size");
        expect_refused(tare__parse_duration, neither[i], "is not a duration");
    }
    expect_refused(tare__parse_bytes, "5s", "is not a size");
    expect_refused(tare__parse_duration, "5K", "is not a duration");
    expect_refused(tare__parse_bytes, "18446744073709551616", "too large");
    expect_refused(tare__parse_bytes, "16777216T", "too large");
    expect_refused(tare__parse_bytes, "99999999999999999999999999G", "too large");
    expect_refused(tare__parse_bytes, "99999999999999999999999999x", "is not a size");
    expect_refused(tare__parse_duration, "213504d", "too long");
}

/* What the sentences call the most is accepted. */
static void the_named_limits_are_true(void **state)
{
    (void)state;
    static const quantity bytes[] = {{"16777215T", UINT64_C(16777215) << 40}};
    static const quantity durations[] = {{"213503d", UINT64_C(213503) * UINT64_C(86400000000000)}};
    expect_read(tare__parse_bytes, bytes, 1);
    expect_read(tare__parse_duration, durations, 1);
}

static void counts_have_their_noun(void **state)
{
    (void)state;
    char out[TARE__COUNTED_BYTES];
    assert_string_equal(tare__unit_counted(out, 1, "wait", NULL), "1 wait");
    assert_string_equal(tare__unit_counted(out, 0, "wait", NULL), "0 waits");
    assert_string_equal(tare__unit_counted(out, 12345, "figure", NULL), "12,345 figures");
    assert_string_equal(tare__unit_counted(out, 1, "process was", "processes were"), "1 process was");
    assert_string_equal(tare__unit_counted(out, 2, "process was", "processes were"), "2 processes were");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_have_their_noun),
        cmocka_unit_test(shows_times),
        cmocka_unit_test(shows_bytes),
        cmocka_unit_test(shows_counts),
        cmocka_unit_test(shows_percents),
        cmocka_unit_test(shows_changes),
        cmocka_unit_test(shows_values_in_their_unit),
        cmocka_unit_test(the_largest_numbers_fit),
        cmocka_unit_test(reads_bytes),
        cmocka_unit_test(reads_durations),
        cmocka_unit_test(refuses_the_rest_with_a_sentence),
        cmocka_unit_test(the_named_limits_are_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
