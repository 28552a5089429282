/* define: macros for the files that define columns and tables. Included by those only.
 * Constant; any thread.
 * Must not know output formats. */
#ifndef TARE_ANALYZE_SCHEMA_DEFINE_H
#define TARE_ANALYZE_SCHEMA_DEFINE_H

#include <math.h>

#include "schema.h"

/* The tables of a report, in order. To add one, add a line here and its array in one of the report_*.c. */
#define TARE__REPORT_TABLES(X) \
    X(run) X(notes) X(own) X(usage) X(phases) X(findings) X(groups) \
    X(spans) X(steps) X(epochs) X(operators) X(modules) X(aggregates) X(counters) \
    X(marks) X(facts) X(tracks) X(threads) X(processes) X(metrics) \
    X(lines) X(span_lines) X(functions) X(packages) X(sampled_imports) X(sampled_threads) X(stacks)
#define TARE__DECLARE_TABLE(name) extern const tare__table tare__table_##name;
TARE__REPORT_TABLES(TARE__DECLARE_TABLE)
/* Tables nested in tables of several documents. */
extern const tare__schema_column tare__sentence_columns[1]; /* of a const char * */
#define TARE__BASELINE_COLUMNS 11u
extern const tare__schema_column tare__baseline_columns[TARE__BASELINE_COLUMNS]; /* of tare__figures */
extern const tare__table tare__table_sentences, tare__table_peaks;

/* ---- computed values ------------------------------------------------------------------------------- */
#define MADE(name, row_type, expression)                                     \
    static tare__value name(tare__cells *cells, const void *at, size_t index) \
    {                                                                        \
        const row_type *row = at;                                            \
        (void)cells;                                                         \
        (void)index;                                                         \
        return expression;                                                   \
    }

static inline const char *tare__word(const char *const *words, size_t n, size_t at)
{
    return at < n && words[at] ? words[at] : "other";
}
#define WORD(words, at) tare__word(words, TARE__COUNT_OF(words), at)

/* ---- columns --------------------------------------------------------------------------------------- */
#define AT(member)            offsetof(R, member)
#define C(member, how, in, ...) {#member, TARE__STORED_##how, TARE__SHOW_##in, .at = AT(member), .meaning = __VA_ARGS__}
/* With a name that differs from the member's. */
#define N(named, member, how, in, ...)                                                       \
    {                                                                                        \
        named, TARE__STORED_##how, TARE__SHOW_##in, .at = AT(member), .meaning = __VA_ARGS__ \
    }
/* Computed by a function. */
#define M(named, how, in, function, ...) \
    {named, TARE__STORED_MADE_##how, TARE__SHOW_##in, .make = function, .meaning = __VA_ARGS__}
#define L(named, how, member, counted, of, ...)                                                                 \
    {                                                                                                           \
        named, TARE__STORED_##how, TARE__SHOW_NOTHING, .at = AT(member), .count_at = AT(counted), .table = &of, \
                                                       .meaning = __VA_ARGS__                                   \
    }
/* In a struct that a pointer in the row refers to. */
#define T(named, pointer, type, member, how, in, ...)                                                      \
    {                                                                                                      \
        named, TARE__STORED_##how, TARE__SHOW_##in, .through = AT(pointer) + 1, .at = offsetof(type, member), \
                                                    .meaning = __VA_ARGS__                                 \
    }
#define TABLE(named, of_shape, columns_of, row, what) \
    {.name = named, .shape = TARE__SHAPE_##of_shape, .meaning = what, .columns = columns_of, \
     .n_columns = TARE__COUNT_OF(columns_of), .row_bytes = sizeof(row)}
/* … of a document about `of`. */
#define ROWS_IN(named, columns_of, row, of, member, counted, what) \
    {.name = named, .shape = TARE__SHAPE_ROWS, .meaning = what, .columns = columns_of, \
     .n_columns = TARE__COUNT_OF(columns_of), .row_bytes = sizeof(row), .at = offsetof(of, member), \
     .count_at = offsetof(of, counted)}
#define DOCUMENT(document, named, is_version, is_minor, list) \
    const tare__document tare__document_##document = {named, is_version, is_minor, list, TARE__COUNT_OF(list)}

/* … of the report itself. */
#define ROWS_OF(named, columns_of, row, ...) \
    {.name = #named, .shape = TARE__SHAPE_ROWS, .columns = columns_of, .meaning = __VA_ARGS__, \
     .n_columns = TARE__COUNT_OF(columns_of), .row_bytes = sizeof(row), .at = offsetof(tare__analysis, named), \
     .count_at = offsetof(tare__analysis, n_##named)}
#define SINGLE(named, member, columns_of, what) \
    {.name = named, .shape = TARE__SHAPE_SINGLE, .meaning = what, .columns = columns_of, \
     .n_columns = TARE__COUNT_OF(columns_of), .at = offsetof(tare__analysis, member)}

/* On pages: in the cell of the preceding column; in the data of the page of a run, but not in its tables; not at
 * all. */
#define UNDER       .page = TARE__PAGE_UNDER
#define HIDDEN      .page = TARE__PAGE_HIDDEN
#define NOT_IN_PAGE .page = TARE__PAGE_NOT
#define IN_UNIT     .unit_by = "unit"
#define AT_LEAST(flag) .prefix = "≥ ", .prefix_by = flag

#define DURATIONS                                                  \
    N("min_ns", each.min_ns, NS, NS, "shortest call", HIDDEN),     \
        N("mean_ns", each.mean_ns, NS, NS, "mean of a call", NOT_TIMED),  \
        N("p50_ns", each.p50_ns, NS, NS, "median call", NOT_TIMED),       \
        N("p95_ns", each.p95_ns, NS, NS, "95th percentile", NOT_TIMED),   \
        N("p99_ns", each.p99_ns, NS, NS, "99th percentile", NOT_TIMED),   \
        N("max_ns", each.max_ns, NS, NS, "longest call", NOT_TIMED)
#define NOT_TIMED .absent = "no call was timed"

#define PLACE                                                                    \
    C(file, TEXT, NOTHING, "source file of the call site", .label = "Call site", \
      .absent = "call site not recorded"),                                       \
        M("line", COUNT, NOTHING, place_line, "line in `file`", UNDER, .between = ":")

#endif
