/* Tests of the store on SQLite: what goes in comes out, filters, ids, trends, tags, pruning, and files that are no
 * history, damaged, or of a newer version.
 * One thread, in a folder of its own. Must not know the commands. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/inner.h"
#include "tare.h"

static char folder[64], place[128];
static tare__error error;
static const tare__store_options writing = {.create = true, .writes = true, .patience_ms = 5000};
static const tare__store_options reading = {.patience_ms = 5000};

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tare-store.XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(place, sizeof place, "%s/deep/er/history.db", folder);
    error.text[0] = '\0';
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static tare__store *open_store(void)
{
    tare__store *store = NULL;
    int status = tare__store_open(place, &writing, &store, &error);
    if (status)
        fail_msg("%s", error.text);
    return store;
}

#define DAY 86400000000000u

/* Run number i: its id begins with i as four hexadecimal digits. */
static tare__kept make_run(unsigned i)
{
    static const char *const tags[] = {"nightly", "gpu"};
    tare__kept run = {.kind = "run",
                      .command = i % 2 ? "python3 train.py --lr 0.1" : "./serve 100%",
                      .directory = "/work",
                      .host = i % 3 ? "alpha" : "beta",
                      .machine = i % 3 ? "m1" : "m2",
                      .revision = i < 5 ? "0123456789ab on main" : "fedcba987654 on main",
                      .trace = "/data/train.tare",
                      .dirty = (int)(i % 3) - 1,
                      .status = i == 4 ? -1 : (int)(i % 2),
                      .signal = i == 7 ? 9 : 0,
                      .when_ns = (i + 1) * DAY,
                      .elapsed_ns = i == 3 ? NAN : 1e9 + i,
                      .tags = tags,
                      .n_tags = i % 4 == 0 ? 2 : 0};
    snprintf(run.id, sizeof run.id, "%04x0000000000000000000000000000", i);
    return run;
}

static tare__figures *make_figures(unsigned i)
{
    double samples[TARE__FIGURE_SAMPLES_MAX];
    tare__figures *figures = tare__figures_new("run");
    for (size_t j = 0; j < TARE__COUNT_OF(samples); j++)
        samples[j] = (double)j;
    tare__figure elapsed = {.name = "run.elapsed",
                            .unit = "ns",
                            .better = TARE__LOWER,
                            .value = 100.0 + i + (i >= 10 ? 50 : 0),
                            .total = NAN,
                            .n = 1};
    tare__figure step = {.name = "step",
                         .unit = "ns",
                         .per = "step",
                         .better = TARE__LOWER,
                         .value = 7.25,
                         .total = 1e6,
                         .n = 1000,
                         .each = 1,
                         .samples = samples,
                         .n_samples = TARE__COUNT_OF(samples)};
    tare__figure flops = {
        .name = "model.flops", .unit = "", .exact = true, .value = 4089184256.0, .total = NAN, .n = 1};
    assert_int_equal(tare__figures_add(figures, &elapsed), 0);
    assert_int_equal(tare__figures_add(figures, &step), 0);
    assert_int_equal(tare__figures_add(figures, &flops), 0);
    return figures;
}

static void put_runs(tare__store *store, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        tare__kept run = make_run(i);
        tare__figures *figures = make_figures(i);
        bool added = false;
        int status = tare__store_put(store, &run, figures, &added, &error);
        if (status)
            fail_msg("%s", error.text);
        assert_true(added);
        tare__figures_free(figures);
    }
}

static tare__kept_list list(tare__store *store, tare__store_filter filter)
{
    tare__kept_list runs;
    if (tare__store_list(store, &filter, &runs, &error))
        fail_msg("%s", error.text);
    return runs;
}

static size_t count(tare__store *store, tare__store_filter filter)
{
    tare__kept_list runs = list(store, filter);
    size_t n = runs.n;
    tare__store_list_free(&runs);
    return n;
}

/* ---- in and out ------------------------------------------------------------------------------------- */
static void runs_come_out_as_they_went_in(void **state)
{
    (void)state;
    tare__store *store = open_store();
    put_runs(store, 8);
    tare__kept_list runs = list(store, (tare__store_filter){0});
    assert_int_equal(runs.n, 8);
    assert_int_equal(runs.id_digits, 7);
    for (unsigned i = 0; i < 8; i++) {
        tare__kept want = make_run(i), *got = &runs.rows[7 - i];
        assert_string_equal(got->id, want.id);
        assert_string_equal(got->command, want.command);
        assert_string_equal(got->host, want.host);
        assert_string_equal(got->machine, want.machine);
        assert_string_equal(got->revision, want.revision);
        assert_string_equal(got->trace, want.trace);
        assert_null(got->cpu_model);
        assert_int_equal(got->dirty, want.dirty);
        assert_int_equal(got->status, want.status);
        assert_int_equal(got->signal, want.signal);
        assert_true(got->when_ns == want.when_ns);
        assert_true(isnan(want.elapsed_ns) ? isnan(got->elapsed_ns) : got->elapsed_ns == want.elapsed_ns);
        assert_int_equal(got->n_tags, want.n_tags);
        if (want.n_tags)
            assert_string_equal(got->tags[0], "gpu"); /* in order */
    }
    tare__store_list_free(&runs);
    tare__store_close(store);
}

static void figures_come_out_with_thinned_samples(void **state)
{
    (void)state;
    tare__store *store = open_store();
    put_runs(store, 1);
    tare__kept run = make_run(0);
    tare__figures *figures;
    assert_int_equal(tare__store_figures(store, &run, &figures, &error), 0);
    assert_int_equal(figures->n, 3);
    const tare__figure *step = tare__figures_find(figures, "step"),
                       *flops = tare__figures_find(figures, "model.flops");
    assert_true(step->value == 7.25 && step->total == 1e6 && step->n == 1000 && step->better == TARE__LOWER);
    assert_string_equal(step->per, "step");
    assert_int_equal(step->n_samples, 125); /* 1,000 in groups of eight */
    assert_int_equal(step->each, 8);
    assert_true(step->samples[0] == 3.5 && step->samples[124] == 995.5);
    assert_true(flops->exact && flops->value == 4089184256.0 && isnan(flops->total) && !flops->samples);
    assert_string_equal(flops->unit, "");
    tare__figures_free(figures);
    tare__store_close(store);
}

static void a_run_is_kept_once(void **state)
{
    (void)state;
    tare__store *store = open_store();
    put_runs(store, 2);
    tare__kept run = make_run(1);
    bool added = true;
    run.command = "another";
    assert_int_equal(tare__store_put(store, &run, NULL, &added, &error), 0);
    assert_false(added);
    assert_int_equal(count(store, (tare__store_filter){.command = "another"}), 0);
    /* Figures that it lacks are added; those it has stay. */
    tare__figures *more = tare__figures_new("run"), *got;
    assert_int_equal(
        tare__figures_add(more,
                          &(tare__figure){.name = "late", .unit = "ns", .value = 5, .total = NAN, .n = 1}),
        0);
    assert_int_equal(
        tare__figures_add(
            more, &(tare__figure){.name = "run.elapsed", .unit = "ns", .value = 5, .total = NAN, .n = 1}),
        0);
    assert_int_equal(tare__store_put(store, &run, more, &added, &error), 0);
    assert_false(added);
    assert_int_equal(tare__store_figures(store, &run, &got, &error), 0);
    assert_int_equal(got->n, 4);
    assert_true(tare__figures_find(got, "late")->value == 5 &&
                tare__figures_find(got, "run.elapsed")->value == 101);
    tare__figures_free(more);
    tare__figures_free(got);
    tare__store_close(store);
}

static void odd_texts_are_kept(void **state)
{
    (void)state;
    tare__store *store = open_store();
    tare__kept run = make_run(1);
    char *longer = calloc(1, 100001);
    memset(longer, 'x', 100000);
    run.command = longer;
    run.directory = "/a\xff/b'; DROP TABLE tare_run; --";
    run.host = "";
    assert_int_equal(tare__store_put(store, &run, NULL, NULL, &error), 0);
    tare__kept_list runs = list(store, (tare__store_filter){0});
    assert_int_equal(runs.n, 1);
    assert_string_equal(runs.rows[0].directory, "/a\xEF\xBF\xBD/b'; DROP TABLE tare_run; --");
    assert_string_equal(runs.rows[0].host, "");
    assert_true(strlen(runs.rows[0].command) <= 2000);
    tare__store_list_free(&runs);
    free(longer);
    tare__store_close(store);
}

/* ---- filters and ids -------------------------------------------------------------------------------- */
static void filters_let_through_what_they_say(void **state)
{
    (void)state;
    tare__store *store = open_store();
    const char *both[] = {"nightly", "gpu"}, *none[] = {"nightly", "other"};
    put_runs(store, 12);
    assert_int_equal(count(store, (tare__store_filter){.command = "TRAIN.py"}), 6);
    assert_int_equal(count(store, (tare__store_filter){.command = "%"}),
                     6); /* a percent sign, not anything */
    assert_int_equal(count(store, (tare__store_filter){.command = "_"}), 0);
    assert_int_equal(count(store, (tare__store_filter){.exact_command = "./serve 100%"}), 6);
    assert_int_equal(count(store, (tare__store_filter){.host = "beta"}), 4);
    assert_int_equal(count(store, (tare__store_filter){.host = "bet"}), 0);
    assert_int_equal(count(store, (tare__store_filter){.machine = "m1", .command = "serve"}), 4);
    assert_int_equal(count(store, (tare__store_filter){.revision = "0123"}), 5);
    assert_int_equal(count(store, (tare__store_filter){.revision = "123"}), 0);
    assert_int_equal(count(store, (tare__store_filter){.tags = both, .n_tags = 2}), 3);
    assert_int_equal(count(store, (tare__store_filter){.tags = none, .n_tags = 2}), 0);
    assert_int_equal(count(store, (tare__store_filter){.since_ns = 10 * DAY}), 3);
    assert_int_equal(count(store, (tare__store_filter){.before_ns = 10 * DAY}), 9);
    assert_int_equal(count(store, (tare__store_filter){.kind = "model"}), 0);
    assert_int_equal(count(store, (tare__store_filter){.ended_well = true}),
                     6); /* one of them is not known */
    assert_int_equal(count(store, (tare__store_filter){.limit = 5}), 5);
    tare__kept_list runs = list(store, (tare__store_filter){.limit = 2, .skip = 1});
    assert_int_equal(runs.n, 2);
    assert_string_equal(runs.rows[0].id, make_run(10).id);
    tare__store_list_free(&runs);
    tare__store_close(store);
}

static void ids_are_found_as_git_does(void **state)
{
    (void)state;
    tare__store *store = open_store();
    put_runs(store, 12);
    static const struct {
        const char *word;
        int run; /* -1: none */
        const char *says;
    } tries[] = {
        {"000b", 11, NULL},
        {"000B0", 11, NULL},
        {"last", 11, NULL},
        {"last~3", 8, NULL},
        {"00", -1, "is ambiguous: 000b"},
        {"dead", -1, "no run 'dead'"},
        {"xyz", -1, "is not a run id"},
        {"", -1, "is not a run id"},
        {"last~12", -1, "the history has fewer runs"},
        {"last~x", -1, "is not a run"},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(tries); i++) {
        tare__kept_list runs;
        int status = tare__store_find(store, tries[i].word, &runs, &error);
        if (tries[i].run < 0) {
            assert_int_equal(status, TARE_E_USAGE);
            if (!strstr(error.text, tries[i].says))
                fail_msg("'%s': %s", tries[i].word, error.text);
            continue;
        }
        assert_int_equal(status, 0);
        assert_string_equal(runs.rows[0].id, make_run((unsigned)tries[i].run).id);
        tare__store_list_free(&runs);
    }
    tare__store_close(store);
}

/* ---- trends ----------------------------------------------------------------------------------------- */
static void a_trend_has_its_change(void **state)
{
    (void)state;
    tare__store *store = open_store();
    tare__kept_trend trend;
    put_runs(store, 24);
    assert_int_equal(
        tare__store_trend(store, &(tare__store_filter){.limit = 20}, "run.elapsed", &trend, &error), 0);
    assert_int_equal(trend.n, 20);
    assert_string_equal(trend.unit, "ns");
    assert_int_equal(trend.better, TARE__LOWER);
    assert_string_equal(trend.points[0].id, make_run(4).id); /* the oldest of the newest twenty */
    assert_true(trend.points[0].value == 104 && trend.points[19].value == 173);
    for (size_t i = 0; i < trend.n; i++) { /* runs of one revision are one group: nothing changes inside it */
        trend.points[i].revision = i % 3 ? "abc on main" : "abc";
        trend.points[i].dirty = 0;
    }
    assert_int_equal(tare__kept_find_changes(&trend), 0);
    assert_true(trend.n_groups == 1 && trend.groups[0].n == 20 && trend.n_changes == 0);
    assert_true(trend.groups[0].least == 104 && trend.groups[0].most == 173);
    free(trend.groups);
    free(trend.changes);
    trend.groups = NULL;
    trend.changes = NULL;
    trend.n_groups = 0;
    for (size_t i = 0; i < trend.n; i++) /* whose files differ from it are not */
        trend.points[i].dirty = 1;
    assert_int_equal(tare__kept_find_changes(&trend), 0);
    assert_int_equal(trend.n_groups, 20);
    bool found = false;
    for (size_t i = 0; i < trend.n_changes; i++)
        found = found || trend.changes[i].at == 6; /* run 10 is 50 above */
    assert_true(found);
    tare__store_trend_free(&trend);
    assert_int_equal(tare__store_trend(store, &(tare__store_filter){0}, "nothing", &trend, &error),
                     TARE__STORE_NONE);
    tare__arena *arena = tare__arena_new();
    tare__store_name *names;
    size_t n;
    assert_int_equal(tare__store_names(store, &(tare__store_filter){.limit = 3}, arena, &names, &n, &error),
                     0);
    assert_int_equal(n, 3);
    assert_int_equal(names[0].runs, 3);
    tare__arena_free(arena);
    tare__store_close(store);
}

/* ---- changing --------------------------------------------------------------------------------------- */
static void tags_go_on_and_off(void **state)
{
    (void)state;
    tare__store *store = open_store();
    const char *tags[] = {"b", "a", "b"};
    put_runs(store, 2);
    tare__kept run = make_run(1);
    assert_int_equal(tare__store_tag(store, run.id, tags, 3, false, &error), 0);
    assert_int_equal(count(store, (tare__store_filter){.tags = tags, .n_tags = 2}), 1);
    assert_int_equal(tare__store_tag(store, run.id, tags, 1, true, &error), 0);
    assert_int_equal(count(store, (tare__store_filter){.tags = tags, .n_tags = 1}), 0);
    assert_int_equal(count(store, (tare__store_filter){.tags = tags + 1, .n_tags = 1}), 1);
    tare__store_close(store);
}

static int take_count(void *context, const tare__sql_value *columns, size_t n)
{
    (void)n;
    *(int64_t *)context = columns[0].integer;
    return 0;
}

static int64_t rows_of(tare__store *store, const char *sql)
{
    int64_t n = -1;
    assert_int_equal(tare__store_run(store, sql, NULL, 0, take_count, &n, NULL, &error), 0);
    return n;
}

static void pruning_keeps_what_it_should(void **state)
{
    (void)state;
    tare__store *store = open_store();
    uint64_t removed;
    put_runs(store, 12); /* 0, 4 and 8 are tagged */
    tare__store_prune keep = {.keep = 2};
    assert_int_equal(tare__store_prune_runs(store, &keep, true, &removed, &error), 0);
    assert_int_equal(removed, 7);
    assert_int_equal(count(store, (tare__store_filter){0}), 12); /* a dry run */
    assert_int_equal(tare__store_prune_runs(store, &keep, false, &removed, &error), 0);
    assert_int_equal(removed, 7);
    assert_int_equal(count(store, (tare__store_filter){0}), 5);
    assert_int_equal(rows_of(store, "SELECT count(*) FROM tare_figure"), 15);
    tare__store_prune old = {.keep = UINT64_MAX, .before_ns = 9 * DAY, .tagged = true};
    assert_int_equal(tare__store_prune_runs(store, &old, false, &removed, &error), 0);
    assert_int_equal(removed, 2); /* 0 and 4; 8 began on the day */
    tare__store_prune all = {.keep = 0, .tagged = true};
    assert_int_equal(tare__store_prune_runs(store, &all, false, &removed, &error), 0);
    assert_int_equal(rows_of(store, "SELECT count(*) FROM tare_text"), 0);
    assert_int_equal(rows_of(store, "SELECT count(*) FROM tare_tag"), 0);
    tare__store_close(store);
}

/* ---- what is wrong with a place ---------------------------------------------------------------------- */
static void expect(const char *path, const tare__store_options *options, int status, const char *says)
{
    tare__store *store = NULL;
    error.text[0] = '\0';
    int got = tare__store_open(path, options, &store, &error);
    if (got != status || !strstr(error.text, says) || strchr(error.text, '\n'))
        fail_msg("%s: %d, %s", path, got, error.text);
    tare__store_close(store);
}

static void write_file(const char *name, const char *text, size_t bytes)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fwrite(text, 1, bytes, file);
    fclose(file);
}

static void places_that_are_no_history(void **state)
{
    (void)state;
    char path[256];
    expect(place, &reading, TARE__STORE_NONE, "");
    snprintf(path, sizeof path, "%s/notes.db", folder);
    write_file(
        path,
        "these are my notes, and they are longer than the head of a database, I should think, by far......\n",
        98);
    expect(path, &writing, TARE_E_INPUT, "is not an SQLite database");
    expect(path, &reading, TARE_E_INPUT, "is not an SQLite database");
    snprintf(path, sizeof path, "%s/notes.db/history.db", folder);
    expect(path, &writing, TARE_E_SYSTEM, "cannot create the directory");
    expect(folder, &writing, TARE_E_SYSTEM, "cannot open the history");
    expect("/proc/nowhere/history.db", &writing, TARE_E_SYSTEM, "cannot create the directory");
}

static void others_databases_are_left_alone(void **state)
{
    (void)state;
    tare__store *store = open_store();
    assert_int_equal(tare__store_run(store, "PRAGMA application_id=12345", NULL, 0, NULL, NULL, NULL, &error),
                     0);
    tare__store_close(store);
    expect(place, &writing, TARE_E_INPUT, "is a database of another application");
}

static void a_newer_schema_is_refused(void **state)
{
    (void)state;
    tare__store *store = open_store();
    put_runs(store, 1);
    assert_int_equal(tare__store_run(store, "PRAGMA user_version=99", NULL, 0, NULL, NULL, NULL, &error), 0);
    tare__store_close(store);
    expect(place, &writing, TARE_E_VERSION, "schema 99; this one supports up to 1");
    expect(place, &reading, TARE_E_VERSION, "was written by a newer version");
}

/* Damage anywhere: whatever is done, a status comes back, never a crash, and a sentence on one line. */
static void damage_has_a_sentence(void **state)
{
    (void)state;
    tare__store *store = open_store();
    put_runs(store, 40);
    assert_int_equal(rows_of(store, "PRAGMA wal_checkpoint(TRUNCATE)"), 0);
    tare__store_close(store);
    struct stat about;
    assert_int_equal(stat(place, &about), 0);
    unsigned refused = 0;
    for (off_t at = 4096; at < about.st_size; at += 4096) {
        FILE *file = fopen(place, "r+");
        char page[4096], broken[4096];
        fseek(file, at, SEEK_SET);
        assert_int_equal(fread(page, 1, sizeof page, file), sizeof page);
        memset(broken, 0xa5, sizeof broken);
        fseek(file, at, SEEK_SET);
        fwrite(broken, 1, sizeof broken, file);
        fflush(file);
        tare__kept_list runs;
        tare__kept run = make_run(1000);
        tare__figures *figures = make_figures(1);
        error.text[0] = '\0';
        int status = tare__store_open(place, &writing, &store, &error);
        if (!status) {
            if (tare__store_list(store, &(tare__store_filter){.command = "train"}, &runs, &error) == 0)
                tare__store_list_free(&runs);
            status = tare__store_put(store, &run, figures, NULL, &error);
            tare__store_prune_runs(store, &(tare__store_prune){.keep = 1000000}, true, &(uint64_t){0}, NULL);
            tare__store_close(store);
        }
        refused += status != 0;
        if (status)
            assert_true(error.text[0] && !strchr(error.text, '\n'));
        tare__figures_free(figures);
        char log[160];
        snprintf(log, sizeof log, "%s-wal", place);
        unlink(log);
        fseek(file, at, SEEK_SET);
        fwrite(page, 1, sizeof page, file);
        fclose(file);
    }
    assert_true(refused > 0);
}

static void a_full_disk_has_a_sentence(void **state)
{
    (void)state;
    tare__store *store = open_store();
    put_runs(store, 1);
    assert_true(rows_of(store, "PRAGMA max_page_count=20") > 0);
    tare__kept run = make_run(0);
    int status = 0;
    for (unsigned i = 1; i < 2000 && !status; i++) {
        tare__figures *figures = make_figures(i);
        run = make_run(i);
        status = tare__store_put(store, &run, figures, NULL, &error);
        tare__figures_free(figures);
    }
    assert_int_equal(status, TARE_E_SPACE);
    assert_non_null(strstr(error.text, "no space left for the history"));
    size_t kept = count(store, (tare__store_filter){0}); /* what came before is whole */
    assert_int_equal(rows_of(store, "SELECT count(*) FROM tare_figure"), 3 * (int64_t)kept);
    tare__store_close(store);
}

/* ---- places ----------------------------------------------------------------------------------------- */
static void settings_name_places(void **state)
{
    (void)state;
    char out[TARE__STORE_PLACE_BYTES], shown[300];
    bool off;
    static const struct {
        const char *setting, *place;
    } tries[] = {
        {"/some/folder", "/some/folder/history.db"},
        {"/some/folder/", "/some/folder/history.db"},
        {"/some/file.db", "/some/file.db"},
        {"runs.sqlite3", "runs.sqlite3"},
        {"/tmp", "/tmp/history.db"},
        {"postgres://u:secret@h/d", "postgres://u:secret@h/d"},
        {NULL, "/data/tare/history.db"},
        {"", "/data/tare/history.db"},
    };
    setenv("XDG_DATA_HOME", "/data", 1);
    for (size_t i = 0; i < TARE__COUNT_OF(tries); i++) {
        assert_int_equal(tare__store_place(tries[i].setting, out, &off, &error), 0);
        assert_false(off);
        assert_string_equal(out, tries[i].place);
    }
    setenv("XDG_DATA_HOME", "relative", 1);
    setenv("HOME", "/home/me", 1);
    assert_int_equal(tare__store_place(NULL, out, &off, &error), 0);
    assert_string_equal(out, "/home/me/.local/share/tare/history.db");
    unsetenv("XDG_DATA_HOME");
    unsetenv("HOME");
    assert_int_equal(tare__store_place(NULL, out, &off, &error), TARE_E_USAGE);
    assert_int_equal(tare__store_place("OFF", out, &off, &error), 0);
    assert_true(off);
    assert_int_equal(tare__store_place("mysql://h/d", out, &off, &error), TARE_E_USAGE);
    tare__store_shown("postgres://u:sec@ret@host:5/d?sslpassword=x", shown, sizeof shown);
    assert_string_equal(shown, "postgres://u@host:5/d");
    tare__store_shown("/a/b.db", shown, sizeof shown);
    assert_string_equal(shown, "/a/b.db");
}

static void made_ids_differ(void **state)
{
    (void)state;
    char a[TARE__KEPT_ID_DIGITS + 1], b[TARE__KEPT_ID_DIGITS + 1];
    tare__kept_make_id("host", "command", "/folder", 1000, 0, a);
    tare__kept_make_id("host", "command", "/folder", 1000, 0, b);
    assert_string_equal(a, b);
    assert_int_equal(strspn(a, "0123456789abcdef"), TARE__KEPT_ID_DIGITS);
    tare__kept_make_id("host", "command", "/folder", 1001, 0, b);
    assert_memory_not_equal(a, b, 7);
    tare__kept_make_id("hostc", "ommand", "/folder", 1000, 0, b);
    assert_memory_not_equal(a, b, 7);
    tare__kept_make_id(NULL, NULL, NULL, 1000, 0, b);
    assert_memory_not_equal(a, b, 7);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(runs_come_out_as_they_went_in),
        IN_FOLDER(figures_come_out_with_thinned_samples),
        IN_FOLDER(a_run_is_kept_once),
        IN_FOLDER(odd_texts_are_kept),
        IN_FOLDER(filters_let_through_what_they_say),
        IN_FOLDER(ids_are_found_as_git_does),
        IN_FOLDER(a_trend_has_its_change),
        IN_FOLDER(tags_go_on_and_off),
        IN_FOLDER(pruning_keeps_what_it_should),
        IN_FOLDER(places_that_are_no_history),
        IN_FOLDER(others_databases_are_left_alone),
        IN_FOLDER(a_newer_schema_is_refused),
        IN_FOLDER(damage_has_a_sentence),
        IN_FOLDER(a_full_disk_has_a_sentence),
        cmocka_unit_test(settings_name_places),
        cmocka_unit_test(made_ids_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
