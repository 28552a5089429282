/* Tests of the CSV tables, read back by a strict reader of RFC 4180: every table there, rows as wide as their header,
 * absent values empty with a reason, names that are formulas, refusing files and memory. One thread.
 * Must not know traces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base_failing.h"
#include "emit_golden.h"
#include "model/model.h"
#include "emit_sample.h"
#include "tare.h"

/* ---- a folder in memory ------------------------------------------------------------------------------------ */
#define FILES_MAX 64
typedef struct folder {
    struct {
        char name[64];
        kept kept;
    } files[FILES_MAX];
    size_t n;
    tare__emit_sink sink;
    unsigned opens, closes, refuse_open, refuse_close, refuse_write;
    bool open;
} folder;

static const tare__emit_sink *open_file(void *context, const char *name)
{
    folder *to = context;
    assert_false(to->open);
    assert_true(to->n < FILES_MAX);
    if (++to->opens == to->refuse_open)
        return NULL;
    snprintf(to->files[to->n].name, sizeof to->files[to->n].name, "%s", name);
    to->files[to->n].kept.refuse = to->opens == to->refuse_write;
    to->sink = sink_of(&to->files[to->n++].kept);
    to->open = true;
    return &to->sink;
}

static int close_file(void *context)
{
    folder *to = context;
    assert_true(to->open);
    to->open = false;
    return ++to->closes == to->refuse_close ? -1 : 0;
}

static int write_tables(folder *to, const tare__analysis *analysis, tare__error *error)
{
    tare__emit_files files = {open_file, close_file, to};
    return tare__emit_csv(&tare__document_report, analysis, &files, error);
}

static void free_folder(folder *from)
{
    for (size_t i = 0; i < from->n; i++)
        tare__text_free(&from->files[i].kept.text);
}

/* ---- a strict reader --------------------------------------------------------------------------------------- */
#define CELLS_MAX 48
typedef struct row {
    char cells[CELLS_MAX][700];
    size_t n;
} row;

/* Reads a row; NULL at the end. Fails the test on what RFC 4180 does not allow. */
static const char *read_row(const char *at, row *to)
{
    memset(to, 0, sizeof *to);
    if (!*at)
        return NULL;
    for (;;) {
        assert_true(to->n < CELLS_MAX);
        char *cell = to->cells[to->n++];
        size_t length = 0;
        bool quoted = *at == '"';
        at += quoted;
        while (quoted ? (*at != '"' || at[1] == '"') : !strchr(",\r\n\"", *at)) {
            assert_true(*at && length + 1 < sizeof to->cells[0]);
            cell[length++] = *at;
            at += quoted && *at == '"' ? 2 : 1;
        }
        at += quoted;
        if (*at == '\r' && at[1] == '\n')
            return at + 2;
        assert_true(*at++ == ',');
    }
}

static const char *table_of(const folder *from, const char *name)
{
    for (size_t i = 0; i < from->n; i++)
        if (strcmp(from->files[i].name, name) == 0)
            return from->files[i].kept.text.data;
    fail_msg("no file %s", name);
    return NULL;
}

/* The cell of the first row in which `key` is `value`. */
static const char *cell_where(const folder *from, const char *table, const char *key, const char *value,
                              const char *column)
{
    static row head, line;
    const char *at = read_row(table_of(from, table), &head);
    size_t key_at = 0, column_at = 0;
    while (key_at < head.n && strcmp(head.cells[key_at], key))
        key_at++;
    while (column_at < head.n && strcmp(head.cells[column_at], column))
        column_at++;
    assert_true(key_at < head.n && column_at < head.n);
    while ((at = read_row(at, &line)) != NULL)
        if (strcmp(line.cells[key_at], value) == 0)
            return line.cells[column_at];
    fail_msg("%s: no row in which %s is %s", table, key, value);
    return NULL;
}

static folder write_whole(const tare__analysis *analysis)
{
    folder to = {.n = 0};
    tare__error error = {""};
    assert_int_equal(write_tables(&to, analysis, &error), 0);
    assert_int_equal(to.opens, to.closes);
    return to;
}

/* ---- tests --------------------------------------------------------------------------------------------------- */
static size_t rows_in(const folder *from, const char *table)
{
    static row line;
    size_t rows = 0, columns = 0;
    for (const char *at = table_of(from, table); (at = read_row(at, &line)) != NULL; rows++) {
        columns = rows ? columns : line.n;
        if (line.n != columns)
            fail_msg("%s: row %zu has %zu cells, not %zu", table, rows, line.n, columns);
    }
    return rows - 1;
}

static void every_table_is_there(void **state)
{
    (void)state;
    folder to = write_whole(&train);
    const struct {
        const char *name;
        size_t rows;
    } tables[] = {
        {"spans.csv", train.n_spans},
        {"steps.csv", train.n_steps},
        {"epochs.csv", train.n_epochs},
        {"aggregates.csv", train.n_aggregates},
        {"counters.csv", train.n_counters},
        {"marks.csv", train.n_marks},
        {"facts.csv", train.n_facts},
        {"tracks.csv", train.n_tracks},
        {"processes.csv", train.n_processes},
        {"threads.csv", train.n_threads},
        {"metrics.csv", train.n_metrics},
        {"findings.csv", train.n_findings},
        {"steps_slowest.csv", 3},
        {"epochs_slowest.csv", 1},
        {"spans_numbers.csv", 5},
        {"steps_numbers.csv", 2},
        {"epochs_numbers.csv", 0},
        {"notes.csv", train.run.n_notes},
    };
    for (size_t i = 0; i < COUNT(tables); i++)
        if (rows_in(&to, tables[i].name) != tables[i].rows)
            fail_msg("%s has %zu rows", tables[i].name, rows_in(&to, tables[i].name));
    for (size_t i = 0; i < to.n; i++)
        rows_in(&to, to.files[i].name);
    free_folder(&to);
}

static void values_are_as_in_the_tables(void **state)
{
    (void)state;
    folder to = write_whole(&train);
    assert_string_equal(cell_where(&to, "spans.csv", "name", "matmul", "path"),
                        "train/epoch/step/forward/matmul");
    assert_string_equal(cell_where(&to, "spans.csv", "name", "matmul", "parent"), "3");
    assert_string_equal(cell_where(&to, "spans.csv", "name", "matmul", "total_ns"), "1270000000");
    assert_string_equal(cell_where(&to, "spans.csv", "name", "train", "parent"), "");
    assert_string_equal(cell_where(&to, "spans.csv", "name", "train", "self_ns"), "1200000");
    assert_string_equal(cell_where(&to, "spans.csv", "name", "(others)", "kind"), "others");
    assert_string_equal(cell_where(&to, "counters.csv", "name", "loss", "last"), "0.184");
    assert_string_equal(cell_where(&to, "steps_numbers.csv", "name", "tokens", "sum"), "4900000");
    assert_string_equal(cell_where(&to, "run.csv", "key", "exit_status", "value"), "0");
    assert_string_equal(cell_where(&to, "run.csv", "key", "start_realtime_ns", "value"), "1767323045000000000");
    assert_string_equal(cell_where(&to, "run.csv", "key", "cpus", "unit"), "count");
    assert_string_equal(cell_where(&to, "threads.csv", "tid", "4121", "name"), "");
    free_folder(&to);
}

static void what_is_absent_is_empty_and_says_why(void **state)
{
    (void)state;
    folder to = write_whole(&train);
    assert_string_equal(cell_where(&to, "aggregates.csv", "name", "rare", "total_ns"), "");
    assert_string_equal(cell_where(&to, "aggregates.csv", "name", "rare", "timed"), "0");
    assert_string_equal(cell_where(&to, "epochs.csv", "name", "epoch", "p95_interval_low_ns"), "");
    assert_string_equal(cell_where(&to, "epochs.csv", "name", "epoch", "p95_interval_reason"), "too few steps");
    assert_string_equal(cell_where(&to, "epochs.csv", "name", "epoch", "p95_interval_needed"), "72");
    assert_string_equal(cell_where(&to, "processes.csv", "pid", "4133", "not_joined"),
                        "it runs as another user, who may not open the session");
    assert_string_equal(cell_where(&to, "processes.csv", "pid", "4133", "joined_at_ns"), "");
    free_folder(&to);
    to = write_whole(&damaged);
    assert_string_equal(cell_where(&to, "run.csv", "key", "command", "value"), "");
    assert_string_equal(cell_where(&to, "run.csv", "key", "command", "absent"), "the trace does not contain it");
    assert_string_equal(cell_where(&to, "run.csv", "key", "exit_status", "value"), "");
    free_folder(&to);
}

/* Names of every kind that could break a row, or be run by a spreadsheet. */
static void odd_names_are_quoted(void **state)
{
    (void)state;
    static const struct {
        const char *name, *written;
    } odd[] = {
        {"a,b", "\"a,b\""},
        {"say \"hi\"", "\"say \"\"hi\"\"\""},
        {"two\r\nlines", "\"two\r\nlines\""},
        {"=1+1", "'=1+1"},
        {"+x", "'+x"},
        {"-x", "'-x"},
        {"@sum", "'@sum"},
        {"\tx", "'\tx"},
        {"=a,\"b\"", "\"'=a,\"\"b\"\"\""},
        {" blank ", "\" blank \""},
        {"\xff\xc3\xa9", "\xef\xbf\xbd\xc3\xa9"},
        {"plain", "plain"},
    };
    for (size_t i = 0; i < COUNT(odd); i++) {
        const tare__mark_row mark = {odd[i].name, 1, 5, 7};
        tare__analysis one = {.marks = &mark, .n_marks = 1};
        folder to = write_whole(&one);
        char wanted[128];
        snprintf(wanted, sizeof wanted, "row,name,count,first_at_ns,last_at_ns\r\n0,%s,1,5,7\r\n", odd[i].written);
        assert_string_equal(table_of(&to, "marks.csv"), wanted);
        free_folder(&to);
    }
}

static void metrics_findings_and_usage(void **state)
{
    (void)state;
    static const tare__metric_point points[] = {{0, 1e8, 1, 1.5, 2}, {1e8, 1e8, 2, 2, 2}};
    static const tare__metric_row metrics[] = {
        {.metric = "memory.rss",
         .subject = TARE__SUBJECT_PROCESS,
         .key = 77,
         .owner = 5,
         .label = "train",
         .kind = TARE__METRIC_GAUGE,
         .unit = TARE__SHOW_BYTES,
         .n = 2,
         .min = 1,
         .mean = 1.75,
         .max = 2,
         .max_at_ns = 5,
         .first = 1,
         .last = 2,
         .total = NAN,
         .from_ns = 0,
         .to_ns = 2e8,
         .points = points,
         .n_points = 2},
        {.metric = "power",
         .subject = TARE__SUBJECT_SENSOR,
         .label = "package",
         .kind = TARE__METRIC_GAUGE,
         .unit = TARE__SHOW_WATTS,
         .min = NAN,
         .absent = "no permission"},
    };
    static const tare__evidence figures[] = {{"slope", 12.5, TARE__SHOW_BYTES_PER_S}};
    static const tare__finding findings[] = {{.id = "memory-growth",
                                              .severity = TARE__CRITICAL,
                                              .title = "grows",
                                              .evidence = "it, too",
                                              .advice = "free",
                                              .gain = NAN,
                                              .gain_how = "no time is lost",
                                              .from_ns = NAN,
                                              .to_ns = NAN,
                                              .figures = figures,
                                              .n_figures = 1}};
    tare__analysis one = {
        .metrics = metrics,
        .n_metrics = 2,
        .findings = findings,
        .n_findings = 1,
        .usage = {.cpu_seconds = 2.5, .energy_joules = NAN, .absent_energy = "no RAPL here"}};
    folder to = write_whole(&one);
    assert_int_equal(rows_in(&to, "metrics_points.csv"), 2);
    assert_string_equal(cell_where(&to, "metrics_points.csv", "at_ns", "100000000", "mean"), "2");
    assert_string_equal(cell_where(&to, "metrics_points.csv", "at_ns", "100000000", "metric_row"), "0");
    assert_string_equal(cell_where(&to, "metrics_points.csv", "at_ns", "100000000", "metric"), "memory.rss");
    assert_string_equal(cell_where(&to, "metrics.csv", "metric", "memory.rss", "mean"), "1.75");
    assert_string_equal(cell_where(&to, "metrics.csv", "metric", "memory.rss", "subject"), "process");
    assert_string_equal(cell_where(&to, "metrics.csv", "metric", "power", "min"), "");
    assert_string_equal(cell_where(&to, "metrics.csv", "metric", "power", "absent"), "no permission");
    assert_string_equal(cell_where(&to, "findings.csv", "id", "memory-growth", "severity"), "critical");
    assert_string_equal(cell_where(&to, "findings.csv", "id", "memory-growth", "gain"), "");
    assert_string_equal(cell_where(&to, "findings.csv", "id", "memory-growth", "gain_how"),
                        "no time is lost");
    assert_string_equal(cell_where(&to, "findings_figures.csv", "name", "slope", "unit"), "bytes_per_s");
    assert_string_equal(cell_where(&to, "usage.csv", "key", "cpu_seconds", "value"), "2.5");
    assert_string_equal(cell_where(&to, "usage.csv", "key", "energy_joules", "value"), "");
    assert_string_equal(cell_where(&to, "usage.csv", "key", "energy_joules", "absent"), "no RAPL here");
    free_folder(&to);
}

static void refusing_files_end_it(void **state)
{
    (void)state;
    folder whole = write_whole(&train);
    for (unsigned i = 1; i <= whole.opens; i++) {
        for (unsigned what = 0; what < 3; what++) {
            folder to = {.refuse_open = what == 0 ? i : 0,
                         .refuse_write = what == 1 ? i : 0,
                         .refuse_close = what == 2 ? i : 0};
            tare__error error = {""};
            assert_int_equal(write_tables(&to, &train, &error), TARE_E_SYSTEM);
            assert_string_equal(error.text, "");
            assert_int_equal(to.opens, i);
            assert_false(to.open);
            free_folder(&to);
        }
    }
    free_folder(&whole);
}

static void out_of_memory_is_said(void **state)
{
    (void)state;
    long failures = 0;
    for (int status = -1; status; failures++) {
        folder to = {.n = 0};
        tare__error error = {""};
        allocations_left = failures;
        status = write_tables(&to, &train, &error);
        allocations_left = -1;
        assert_true(status == 0 || status == TARE_E_MEMORY);
        free_folder(&to);
    }
    assert_true(failures > 3);
}

/* ---- docs/EXPORT.md ---------------------------------------------------------------------------------------- */
static void tell_file(tare__text *to, const char *name, const char *head)
{
    tare__text_format(to, "| `%s` | ", name);
    for (const char *at = head; *at != '\r'; at += strcspn(at, "\r,") + (at[strcspn(at, "\r,")] == ','))
        tare__text_format(to, "%s`%.*s`", at == head ? "" : ", ", (int)strcspn(at, "\r,"), at);
    tare__text_string(to, " |\n");
}

static void tell_files(const char *name, const tare__document *document, const void *of)
{
    tare__error error = {""};
    folder *all = calloc(1, sizeof *all);
    tare__text part = {0};
    assert_non_null(all);
    assert_int_equal(tare__emit_csv(document, of, &(tare__emit_files){open_file, close_file, all}, &error), 0);
    tare__text_string(&part, "| file | columns |\n|---|---|\n");
    for (size_t i = 0; i < all->n; i++)
        tell_file(&part, all->files[i].name, all->files[i].kept.text.data);
    assert_part_of_document("EXPORT.md", name, "emit_csv", &part);
    tare__text_free(&part);
    free_folder(all);
    free(all);
}

static void the_documentation_lists_files_and_columns(void **state)
{
    (void)state;
    static const tare__model_report report;
    static const tare__model_measured measured;
    static const tare__figures figures;
    tare__analysis whole = train;
    whole.phases.steady.how = "all of it";
    tell_files("report", &tare__document_report, &whole);
    tell_files("model", &tare__document_model,
               &(tare__model_view){.report = &report, .measured = &measured, .figures = &figures});
    static const struct {
        const char *command, *table;
        const tare__document *document;
    } commands[] = {{"tare history list", "runs", &tare__document_history_list},
                    {"tare history show", "figures", &tare__document_baseline},
                    {"tare history trend", "trends_points", &tare__document_history_trend}};
    static const union {
        tare__kept_list list;
        tare__figures figures;
        tare__kept_trends trends;
    } nothing;
    tare__text part = {0};
    tare__text_string(&part, "| command | columns |\n|---|---|\n");
    for (size_t i = 0; i < TARE__COUNT_OF(commands); i++) {
        kept got = {0};
        tare__error error = {""};
        tare__emit_sink sink = sink_of(&got);
        assert_int_equal(tare__emit_csv_table(commands[i].document, &nothing, commands[i].table, &sink, &error), 0);
        tell_file(&part, commands[i].command, got.text.data);
        tare__text_free(&got.text);
    }
    assert_part_of_document("EXPORT.md", "history", "emit_csv", &part);
    tare__text_free(&part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_is_there),
        cmocka_unit_test(values_are_as_in_the_tables),
        cmocka_unit_test(what_is_absent_is_empty_and_says_why),
        cmocka_unit_test(odd_names_are_quoted),
        cmocka_unit_test(metrics_findings_and_usage),
        cmocka_unit_test(refusing_files_end_it),
        cmocka_unit_test(the_documentation_lists_files_and_columns),
        cmocka_unit_test(out_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
