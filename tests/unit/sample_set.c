/* sample_set: series, intervals and the budget of a set, over samplers made for it.
 * One thread. Defines the table of samplers itself, in place of the real one.
 * Must not know the real samplers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sample/sample.h"

#define MS UINT64_C(1000000)

/* ---- samplers of the test ---------------------------------------------------------------------------------- */
static uint64_t clock_ns, tick_costs_ns; /* each tick of the fast one costs so much */
static unsigned fast_ticks, slow_ticks, opened, closed;
static void (*in_tick)(tare__sample_set *set);

static void open_one(tare__sample_set *set, void *state)
{
    (void)set;
    assert_int_equal(*(char *)state, 0);
    *(char *)state = 7;
    opened++;
}

static void tick_fast(tare__sample_set *set, void *state, uint64_t now_ns)
{
    (void)now_ns;
    assert_int_equal(*(char *)state, 7);
    clock_ns += tick_costs_ns;
    fast_ticks++;
    if (in_tick)
        in_tick(set);
}

static void tick_slow(tare__sample_set *set, void *state, uint64_t now_ns)
{
    (void)set, (void)state, (void)now_ns;
    slow_ticks++;
}

static void close_one(void *state)
{
    assert_int_equal(*(char *)state, 7);
    closed++;
}

static const tare__sampler fast = {"fast", 1, 1, open_one, tick_fast, close_one, NULL};
static const tare__sampler slow = {"slow", 10, 1, open_one, tick_slow, close_one, NULL};

const tare__sampler *tare__sampler_at(size_t index)
{
    return index == 0 ? &fast : index == 1 ? &slow : NULL;
}

/* ---- a sink that writes down ------------------------------------------------------------------------------- */
static struct {
    unsigned told, values;
    uint32_t last_id, last_value_of;
    int64_t last_value;
    char metric[64], label[64], absent[64];
    uint32_t subject;
    uint64_t key, owner;
} heard;

static void hear_series(void *context, const tare__series *series)
{
    assert_ptr_equal(context, &heard);
    heard.told++;
    heard.last_id = series->id;
    heard.subject = series->subject;
    heard.key = series->key;
    heard.owner = series->owner;
    snprintf(heard.metric, sizeof heard.metric, "%.*s", (int)series->metric_bytes, series->metric);
    snprintf(heard.label, sizeof heard.label, "%.*s", (int)series->label_bytes, series->label);
    snprintf(heard.absent, sizeof heard.absent, "%.*s", (int)series->absent_bytes, series->absent);
}

static void hear_value(void *context, uint32_t series, int64_t value)
{
    assert_ptr_equal(context, &heard);
    heard.values++;
    heard.last_value_of = series;
    heard.last_value = value;
}

static uint64_t fake_clock(void)
{
    return clock_ns;
}

static tare__sample_set *open_set(tare__sample_options options)
{
    static const tare__sample_sink sink = {hear_series, hear_value, &heard};
    memset(&heard, 0, sizeof heard);
    clock_ns = tick_costs_ns = 0;
    fast_ticks = slow_ticks = opened = closed = 0;
    in_tick = NULL;
    options.root = "";
    options.cost_clock = fake_clock;
    tare__sample_set *set = tare__sample_open(&options, &sink);
    assert_non_null(set);
    return set;
}

/* ---- series ------------------------------------------------------------------------------------------------ */

static void test_series_are_numbered_and_found_again(void **state)
{
    (void)state;
    tare__sample_set *set = open_set((tare__sample_options){0});
    tare__subject one = {TARE__SUBJECT_PROCESS, 10, 77, "a"}, other = {TARE__SUBJECT_PROCESS, 10, 78, "a"};
    assert_int_equal(tare__sample_series_of(set, TARE__M_RSS, &one), 1);
    assert_string_equal(heard.metric, "memory.rss");
    assert_string_equal(heard.label, "a");
    assert_int_equal(heard.key, 10);
    assert_int_equal(heard.owner, 77);
    assert_int_equal(tare__sample_series_of(set, TARE__M_CPU_USER, &one), 2);
    assert_int_equal(tare__sample_series_of(set, TARE__M_RSS, &other), 3);
    assert_int_equal(tare__sample_series_of(set, TARE__M_RSS, &one), 1);
    assert_int_equal(heard.told, 3);
    tare__sample_close(set);
}

static void test_a_label_names_a_disk_and_only_describes_a_process(void **state)
{
    (void)state;
    tare__sample_set *set = open_set((tare__sample_options){0});
    tare__subject sda = {TARE__SUBJECT_DISK, 0, 0, "sda"}, sdb = {TARE__SUBJECT_DISK, 0, 0, "sdb"};
    assert_int_equal(tare__sample_series_of(set, TARE__M_DISK_BUSY, &sda), 1);
    assert_int_equal(tare__sample_series_of(set, TARE__M_DISK_BUSY, &sdb), 2);
    tare__subject before = {TARE__SUBJECT_PROCESS, 5, 1, "sh"}, after = {TARE__SUBJECT_PROCESS, 5, 1, "python"};
    tare__subject unnamed = {TARE__SUBJECT_PROCESS, 5, 1, NULL};
    assert_int_equal(tare__sample_series_of(set, TARE__M_RSS, &before), 3);
    assert_int_equal(tare__sample_series_of(set, TARE__M_RSS, &after), 3);
    assert_int_equal(heard.told, 4);
    assert_string_equal(heard.label, "python");
    assert_int_equal(tare__sample_series_of(set, TARE__M_RSS, &unnamed), 3);
    assert_int_equal(heard.told, 4); /* nothing new was said */
    tare__sample_close(set);
}

static void test_a_reason_is_told_once_and_a_value_takes_it_back(void **state)
{
    (void)state;
    tare__sample_set *set = open_set((tare__sample_options){0});
    uint32_t id = tare__sample_series_of(set, TARE__M_LOAD, &(tare__subject){.kind = TARE__SUBJECT_SYSTEM});
    tare__sample_absent(set, id, "no such file");
    assert_int_equal(heard.told, 2);
    assert_string_equal(heard.absent, "no such file");
    tare__sample_absent(set, id, "no such file");
    assert_int_equal(heard.told, 2);
    tare__sample_absent(set, id, "ended");
    assert_int_equal(heard.told, 3);
    tare__sample_put(set, id, -5);
    assert_int_equal(heard.told, 4);
    assert_string_equal(heard.absent, "");
    assert_int_equal(heard.last_value_of, id);
    assert_int_equal(heard.last_value, -5);
    tare__sample_put(set, 0, 1); /* a series that was refused */
    tare__sample_put(set, 999, 1);
    tare__sample_absent(set, 0, "x");
    assert_int_equal(heard.values, 1);
    tare__sample_close(set);
}

static void test_the_number_of_series_is_bounded(void **state)
{
    (void)state;
    tare__sample_set *set = open_set((tare__sample_options){0});
    unsigned threads = 0, processes = 0, gpus = 0;
    for (uint64_t i = 0; i < 20000; i++)
        threads += tare__sample_series_of(set, TARE__M_CPU_USER,
                                          &(tare__subject){TARE__SUBJECT_THREAD, i + 1, 1, "t"}) != 0;
    for (uint64_t i = 0; i < 20000; i++)
        processes += tare__sample_series_of(set, TARE__M_CPU_USER,
                                            &(tare__subject){TARE__SUBJECT_PROCESS, i + 1, 1, "p"}) != 0;
    for (uint64_t i = 0; i < 20000; i++)
        gpus += tare__sample_series_of(set, TARE__M_GPU_BUSY, &(tare__subject){TARE__SUBJECT_GPU, i, 0, "g"}) != 0;
    assert_int_equal(threads, 16000);
    assert_int_equal(processes, 3000);
    assert_int_equal(gpus, 1000); /* threads and processes cannot take the room of others */
    assert_int_equal(tare__sample_series_of(set, TARE__M_CPU_USER,
                                            &(tare__subject){TARE__SUBJECT_THREAD, 16000, 1, "t"}), 16000);
    tare__sample_close(set);
}

/* ---- intervals ------------------------------------------------------------------------------------------------- */

static void test_intervals(void **state)
{
    (void)state;
    tare__sample_set *set = open_set((tare__sample_options){0});
    assert_int_equal(opened, 2);
    assert_int_equal(tare__sample_due_ns(set), 0); /* at once */
    uint64_t now = 1000 * MS;
    for (int i = 0; i < 21; i++) {
        tare__sample_tick(set, now);
        assert_int_equal(tare__sample_due_ns(set), now + 100 * MS);
        now = tare__sample_due_ns(set);
    }
    assert_int_equal(fast_ticks, 21);
    assert_int_equal(slow_ticks, 3);
    tare__sample_tick_all(set, now + 1);
    assert_int_equal(fast_ticks, 22);
    assert_int_equal(slow_ticks, 4);
    tare__sample_close(set);
    assert_int_equal(closed, 2);
}

static void test_a_late_tick_does_not_hurry_those_after_it(void **state)
{
    (void)state;
    tare__sample_set *set = open_set((tare__sample_options){.interval_ns = 10 * MS});
    tare__sample_tick(set, 1000 * MS);
    tare__sample_tick(set, 1013 * MS);
    assert_int_equal(tare__sample_due_ns(set), 1020 * MS); /* in step */
    tare__sample_tick(set, 1500 * MS);
    assert_int_equal(tare__sample_due_ns(set), 1510 * MS);
    tare__sample_close(set);
}

static void test_a_sampler_left_out(void **state)
{
    (void)state;
    tare__sample_set *set = open_set((tare__sample_options){.left_out = 1u << 1});
    assert_int_equal(opened, 1);
    tare__sample_tick_all(set, 1);
    assert_int_equal(slow_ticks, 0);
    tare__sample_close(set);
    set = open_set((tare__sample_options){.only_list = true});
    tare__sample_tick_all(set, 1);
    assert_int_equal(fast_ticks, 1); /* the first is who knows the list */
    assert_int_equal(slow_ticks, 0);
    assert_int_equal(heard.told, 0);
    tare__sample_close(set);
}

static void test_intervals_have_a_least(void **state)
{
    (void)state;
    tare__sample_set *set = open_set((tare__sample_options){.interval_ns = 1});
    assert_int_equal(tare__sample_cost_of(set).interval_ns, TARE__SAMPLE_INTERVAL_MIN_NS);
    tare__sample_close(set);
}

/* ---- the budget -------------------------------------------------------------------------------------------- */

static uint64_t tick_times(tare__sample_set *set, unsigned n, uint64_t now)
{
    for (unsigned i = 0; i < n; i++) {
        tare__sample_tick(set, now);
        now = tare__sample_due_ns(set);
    }
    return now;
}

static void test_dear_ticks_come_less_often_and_cheap_ones_come_back(void **state)
{
    (void)state;
    tare__sample_set *set = open_set((tare__sample_options){0});
    assert_int_equal(tare__sample_tick_budget_ns(set), 500000); /* 0.5 % of 100 ms */
    tick_costs_ns = 400000;
    uint64_t now = tick_times(set, 50, 1);
    assert_int_equal(tare__sample_cost_of(set).interval_ns, 100 * MS);
    tick_costs_ns = 5 * MS; /* ten times what it may be */
    now = tick_times(set, 80, now);
    tare__sample_cost cost = tare__sample_cost_of(set);
    assert_in_range(cost.interval_ns, 900 * MS, 1000 * MS);
    assert_true((double)tick_costs_ns / (double)cost.interval_ns < 0.0056);
    tick_costs_ns = 100000;
    now = tick_times(set, 80, now);
    cost = tare__sample_cost_of(set);
    assert_int_equal(cost.interval_ns, 100 * MS);
    assert_true(cost.longest_ns >= 900 * MS);
    assert_int_equal(cost.cpu_ns, clock_ns);
    assert_string_equal(heard.metric, "sample.interval");
    assert_int_equal(heard.last_value, 100 * MS);
    tare__sample_close(set);
}

static void test_one_dear_tick_is_no_reason(void **state)
{
    (void)state;
    tare__sample_set *set = open_set((tare__sample_options){0});
    tick_costs_ns = 20000;
    uint64_t now = tick_times(set, 50, 1);
    tick_costs_ns = 3 * MS;
    now = tick_times(set, 1, now);
    tick_costs_ns = 20000;
    tick_times(set, 1, now);
    assert_int_equal(tare__sample_cost_of(set).longest_ns, 100 * MS);
    tare__sample_close(set);
}

static void test_the_first_and_last_sample_do_not_count(void **state)
{
    (void)state;
    tare__sample_set *set = open_set((tare__sample_options){0});
    tick_costs_ns = 50 * MS;
    for (int i = 0; i < 20; i++)
        tare__sample_tick_all(set, (uint64_t)i + 1);
    assert_int_equal(tare__sample_cost_of(set).interval_ns, 100 * MS);
    assert_int_equal(tare__sample_cost_of(set).cpu_ns, 20 * 50 * MS);
    tare__sample_close(set);
}

static void test_however_dear_it_goes_on(void **state)
{
    (void)state;
    tare__sample_set *set = open_set((tare__sample_options){0});
    tick_costs_ns = 5000 * MS;
    tick_times(set, 100, 1);
    assert_int_equal(tare__sample_cost_of(set).interval_ns, 10000 * MS);
    tare__sample_close(set);
}

/* ---- what is looked up ------------------------------------------------------------------------------------- */

static void add_two(tare__sample_set *set)
{
    for (int i = 1; i <= 3; i++)
        tare__sample_process_add(set)->pid = i;
    tare__sample_process_drop(set, 0);
    tare__sample_now_put(set)->tree_cores = 1.5;
}

static void test_processes_and_what_is_now(void **state)
{
    (void)state;
    size_t n;
    tare__sample_set *set = open_set((tare__sample_options){0});
    assert_true(isnan(tare__sample_now_of(set).tree_cores));
    assert_true(isnan(tare__sample_now_of(set).gpu_busy));
    tare__sample_processes(set, &n);
    assert_int_equal(n, 0);
    in_tick = add_two;
    tare__sample_tick(set, 1);
    const tare__sampled_process *list = tare__sample_processes(set, &n);
    assert_int_equal(n, 2);
    assert_int_equal(list[0].pid, 3);
    assert_int_equal(list[1].pid, 2);
    assert_true(tare__sample_now_of(set).tree_cores == 1.5);
    tare__sample_close(set);
    tare__sample_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_series_are_numbered_and_found_again),
        cmocka_unit_test(test_a_label_names_a_disk_and_only_describes_a_process),
        cmocka_unit_test(test_a_reason_is_told_once_and_a_value_takes_it_back),
        cmocka_unit_test(test_the_number_of_series_is_bounded),
        cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_a_late_tick_does_not_hurry_those_after_it),
        cmocka_unit_test(test_a_sampler_left_out),
        cmocka_unit_test(test_intervals_have_a_least),
        cmocka_unit_test(test_dear_ticks_come_less_often_and_cheap_ones_come_back),
        cmocka_unit_test(test_one_dear_tick_is_no_reason),
        cmocka_unit_test(test_the_first_and_last_sample_do_not_count),
        cmocka_unit_test(test_however_dear_it_goes_on),
        cmocka_unit_test(test_processes_and_what_is_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
