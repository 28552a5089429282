/* Tests of the store without memory: each allocation of ours fails in turn, a status comes back, and what was kept
 * before is there and whole. One thread, in a folder of its own. (SQLite's own allocations do not fail here.)
 * Must not know the commands. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base_failing.h"
#include "store/store.h"
#include "tare.h"

static char folder[64], place[128];
static tare__figures *figures;
static const tare__store_options writing = {.create = true, .writes = true, .patience_ms = 5000};
static const char *const tags[] = {"a", "b"};

static tare__kept run_of(unsigned i)
{
    tare__kept run = {.kind = "run",
                      .command = "true",
                      .host = "vm",
                      .machine = "m",
                      .dirty = -1,
                      .when_ns = i + 1,
                      .elapsed_ns = 1,
                      .tags = tags,
                      .n_tags = 2};
    snprintf(run.id, sizeof run.id, "%08x000000000000000000000000", i);
    return run;
}

static int set_up(void **state)
{
    (void)state;
    static const double samples[] = {1, 2, 3};
    strcpy(folder, "/tmp/tare-store-memory.XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(place, sizeof place, "%s/history.db", folder);
    figures = tare__figures_new("run");
    tare__figure step = {.name = "step", .unit = "ns", .per = "step", .value = 2, .total = 6, .n = 3, .each = 1,
                         .samples = samples, .n_samples = 3};
    return tare__figures_add(figures, &step);
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    tare__figures_free(figures);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* Everything that is done with a store, until something fails. */
static int all_of_it(unsigned number, tare__error *error)
{
    tare__store *store = NULL;
    tare__kept run = run_of(number);
    tare__kept_list runs;
    tare__kept_trend trend;
    tare__figures *got = NULL;
    int status = tare__store_open(place, &writing, &store, error);
    if (!status)
        status = tare__store_put(store, &run, figures, NULL, error);
    if (!status)
        status = tare__store_tag(store, run.id, tags, 2, true, error);
    if (!status)
        status = tare__store_list(store, &(tare__store_filter){.command = "true", .revision = NULL}, &runs, error);
    if (!status) {
        tare__store_list_free(&runs);
        status = tare__store_figures(store, &run, &got, error);
    }
    if (!status) {
        tare__figures_free(got);
        status = tare__store_trend(store, &(tare__store_filter){0}, "step", &trend, error);
    }
    if (!status) {
        status = tare__kept_find_changes(&trend);
        tare__store_trend_free(&trend);
    }
    tare__store_close(store);
    return status;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    tare__error error;
    assert_int_equal(all_of_it(0, &error), 0); /* the library is loaded, the tables are made */
    int status = TARE_E_MEMORY;
    unsigned kept = 1, n = 0;
    for (; status; n++) {
        allocations_left = (long)n;
        status = all_of_it(kept, &error);
        allocations_left = -1;
        assert_true(status == 0 || status == TARE_E_MEMORY);
        assert_true(n < 10000);
        tare__store *store;
        tare__kept_list runs;
        assert_int_equal(tare__store_open(place, &writing, &store, &error), 0);
        assert_int_equal(tare__store_list(store, &(tare__store_filter){0}, &runs, &error), 0);
        assert_true(runs.n == kept || runs.n == kept + 1);
        kept = (unsigned)runs.n;
        for (size_t i = 0; i < runs.n; i++) {
            tare__figures *got;
            assert_int_equal(tare__store_figures(store, &runs.rows[i], &got, &error), 0);
            assert_int_equal(got->n, 1); /* whole or not at all */
            tare__figures_free(got);
        }
        tare__store_list_free(&runs);
        tare__store_close(store);
    }
    assert_true(n > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(every_allocation_fails_once, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
