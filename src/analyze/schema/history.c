/* history: tables of runs in the history, and of trends of their figures.
 * Constant; any thread.
 * Must not know output formats. */
#include "define.h"

MADE(kept_id, tare__kept, tare__value_text(row->id))
MADE(kept_when, tare__kept, tare__value_text(tare__kept_iso(cells->text, row->when_ns)))
MADE(kept_dirty, tare__kept,
     row->dirty < 0 ? (tare__value){.type = TARE__TYPE_ABSENT} : tare__value_flag(row->dirty))
MADE(kept_tags, tare__kept, ((tare__value){.type = TARE__TYPE_TEXTS, .count = row->n_tags, .texts = row->tags}))

#define R tare__kept
static const tare__schema_column run_columns[] = {
    M("id", TEXT, NOTHING, kept_id, "32 hexadecimal digits", .key = true),
    C(kind, TEXT, NOTHING, "`run` or `model`"),
    M("when", TEXT, NOTHING, kept_when, "its start: `2026-11-15T12:39:50.123456789Z`"),
    C(when_ns, U64_OR_0, DATE, "its start, since 1970-01-01 UTC"),
    C(command, TEXT, NOTHING, "command line"),
    C(directory, TEXT, NOTHING, "working directory"),
    C(host, TEXT, NOTHING, "host name"),
    C(machine, TEXT, NOTHING, "fingerprint of the machine"),
    C(cpu_model, TEXT, NOTHING, "CPU model"),
    C(revision, TEXT, NOTHING, "git revision of `directory`"),
    M("dirty", FLAG, NOTHING, kept_dirty, "tracked files differed from the revision"),
    N("exit_status", status, INT_OR_LESS, NOTHING, "exit status"),
    C(signal, INT_OR_0, NOTHING, "signal that ended the program"),
    C(elapsed_ns, NS, NS, "duration of the run"),
    C(trace, TEXT, NOTHING, "path of the trace"),
    M("tags", TEXTS, NOTHING, kept_tags, "words given by `--tag`", .between = " "),
};
#undef R
static const tare__table runs =
    ROWS_IN("runs", run_columns, tare__kept, tare__kept_list, rows, n, "a run, the newest first");
static const tare__table run = {.name = "run", .shape = TARE__SHAPE_SINGLE, .meaning = "the run",
                                .columns = run_columns, .n_columns = TARE__COUNT_OF(run_columns),
                                .through = offsetof(tare__kept_run, run) + 1};
static const tare__table figures = {.name = "figures", .shape = TARE__SHAPE_SINGLE,
                                    .meaning = "its figures, as `tare baseline save` writes them",
                                    .columns = tare__baseline_columns, .n_columns = TARE__BASELINE_COLUMNS,
                                    .through = offsetof(tare__kept_run, figures) + 1};

/* ---- trends --------------------------------------------------------------------------------------------------- */
/* The change that begins at this point of the enclosing trend; NULL: none. */
static const tare__kept_change *change_at(const tare__cells *cells, size_t point)
{
    const tare__kept_trend *trend = cells->parent;
    for (size_t i = 0; i < trend->n_changes; i++)
        if (trend->changes[i].at == point)
            return &trend->changes[i];
    return NULL;
}

static tare__value point_figure(tare__cells *cells, size_t index, size_t member)
{
    const tare__kept_change *change = change_at(cells, index);
    return tare__value_number(change ? *(const double *)(const void *)((const char *)change + member) : NAN);
}
/* Values inside a trend have the unit of the trend. */
#define OF_TREND .unit_by = "unit"
#define NO_VALUE ((tare__value){.type = TARE__TYPE_ABSENT})
MADE(point_id, tare__kept_point, tare__value_text(row->id))
MADE(point_when, tare__kept_point, tare__value_text(tare__kept_iso(cells->text, row->when_ns)))
MADE(point_before, tare__kept_point, row ? point_figure(cells, index, offsetof(tare__kept_change, before)) : NO_VALUE)
MADE(point_after, tare__kept_point, row ? point_figure(cells, index, offsetof(tare__kept_change, after)) : NO_VALUE)
MADE(point_p, tare__kept_point, row ? point_figure(cells, index, offsetof(tare__kept_change, p)) : NO_VALUE)

#define R tare__kept_point
static const tare__schema_column point_columns[] = {
    M("id", TEXT, NOTHING, point_id, "the run"),
    M("when", TEXT, NOTHING, point_when, "its start: `2026-11-15T12:39:50.123456789Z`"),
    C(when_ns, U64_OR_0, DATE, "its start, since 1970-01-01 UTC"),
    C(revision, TEXT, NOTHING, "its git revision"),
    C(value, DOUBLE, NOTHING, "the figure"),
    M("before", NUMBER, NOTHING, point_before,
      "of the first run on a new level: median of the level before; else null"),
    M("after", NUMBER, NOTHING, point_after, "… and of the new level"),
    M("p", NUMBER, NOTHING, point_p, "… and p of the change"),
};
#undef R
static const tare__table points =
    TABLE("points", ROWS, point_columns, tare__kept_point, "a run, the oldest first, runs of one revision together");

static const tare__kept_point *point_of(const tare__cells *cells, size_t at)
{
    return &((const tare__kept_trend *)cells->parent)->points[at];
}
MADE(group_revision, tare__kept_group, tare__value_text(point_of(cells, row->from)->revision))

#define R tare__kept_group
static const tare__schema_column group_columns[] = {
    M("revision", TEXT, NOTHING, group_revision, "git revision"),
    N("at", from, U64, COUNT, "its first row in `points`"),
    N("runs", n, U64, COUNT, "its runs"),
    C(value, DOUBLE, NOTHING, "their median"),
    N("min", least, DOUBLE, NOTHING, "smallest value"),
    N("max", most, DOUBLE, NOTHING, "largest value"),
};
#undef R
static const tare__table revisions = TABLE("revisions", ROWS, group_columns, tare__kept_group, "runs of one revision");

MADE(change_id, tare__kept_change, tare__value_text(point_of(cells, row->at)->id))
MADE(change_revision, tare__kept_change, tare__value_text(point_of(cells, row->at)->revision))
MADE(change_when, tare__kept_change,
     tare__value_count(point_of(cells, row->at)->when_ns, point_of(cells, row->at)->when_ns))
static tare__value verdict_on(const tare__kept_trend *trend, const tare__kept_change *change)
{
    const char *word = change ? tare__kept_verdict(trend->better, change->before, change->after) : "";
    return tare__value_text(*word ? word : NULL);
}
static tare__value share_of(const tare__kept_change *change)
{
    double more = change ? change->after - change->before : NAN;
    return tare__value_number(more == 0 ? 0 : more / fabs(change ? change->before : NAN));
}
MADE(change_verdict, tare__kept_change, verdict_on(cells->parent, row))
MADE(change_share, tare__kept_change, share_of(row))

#define R tare__kept_change
static const tare__schema_column change_columns[] = {
    M("when_ns", COUNT, DATE, change_when, "start of the first run on the new level, since 1970-01-01 UTC",
      .label = "Changed"),
    M("change", NUMBER, CHANGE, change_share, "`after` / `before` - 1", .label = "By"),
    M("verdict", TEXT, NOTHING, change_verdict, "`better` or `worse`; null: neither", UNDER, .between = " ",
      .mark = true),
    C(before, DOUBLE, NOTHING, "median of the level before", .label = "Level before", OF_TREND),
    C(after, DOUBLE, NOTHING, "median of the new level", .label = "Level after", OF_TREND),
    C(p, DOUBLE, P, "p of the change", NOT_IN_PAGE),
    C(at, U64, COUNT, "row in `points` of that run", NOT_IN_PAGE),
    M("id", TEXT, HASH, change_id, "that run", .label = "First run"),
    M("revision", TEXT, HASH, change_revision, "its git revision", .absent = "not known"),
};
#undef R
const tare__table tare__table_changes =
    TABLE("changes", ROWS, change_columns, tare__kept_change, "a change of the figure's level");

static const tare__kept_change *last_change(const tare__kept_trend *trend)
{
    return trend->n_changes ? &trend->changes[trend->n_changes - 1] : NULL;
}
MADE(trend_last, tare__kept_trend, tare__value_number(row->n ? row->points[row->n - 1].value : NAN))
MADE(trend_change, tare__kept_trend, share_of(last_change(row)))
MADE(trend_verdict, tare__kept_trend, verdict_on(row, last_change(row)))
MADE(trend_better, tare__kept_trend, tare__value_text(tare__better_word((tare__better)row->better)))

#define R tare__kept_trend
static const tare__schema_column trend_columns[] = {
    C(name, TEXT, NOTHING, "name of the figure", .key = true, .label = "Figure"),
    C(unit, TEXT, NOTHING, "its unit", .key = true, NOT_IN_PAGE),
    M("better", TEXT, NOTHING, trend_better, "`lower`, `higher` or `neither`", NOT_IN_PAGE),
    L("points", ROWS, points, n, points, "its values, the oldest first", .label = "Runs"),
    M("last", NUMBER, NOTHING, trend_last, "its value in the last run", IN_UNIT, .label = "Last run"),
    M("last_change", NUMBER, CHANGE, trend_change, "the last change of its level; null: none", .absent = "none"),
    M("last_verdict", TEXT, NOTHING, trend_verdict, "`better` or `worse`; null: neither", UNDER, .between = " ",
      .mark = true),
    L("changes", ROWS, changes, n_changes, tare__table_changes, "where its level changed"),
    L("revisions", ROWS, groups, n_groups, revisions, "the same by revision", NOT_IN_PAGE),
};
#undef R
const tare__table tare__table_trends = ROWS_IN("trends", trend_columns, tare__kept_trend, tare__kept_trends, rows, n,
                                              "a figure in the course of many runs");

#define R tare__kept_trends
static const tare__schema_column shared_columns[] = {
    C(command, TEXT, NOTHING, "command line that all runs share; null: they may differ"),
    C(machine, TEXT, NOTHING, "machine that all runs share; null: they may differ"),
};
#undef R
static const tare__table shared = {.name = "trend", .shape = TARE__SHAPE_TOP, .meaning = "what the runs share",
                                   .columns = shared_columns, .n_columns = TARE__COUNT_OF(shared_columns)};

static const tare__table *const list_tables[] = {&runs};
DOCUMENT(history_list, "tare-history", 1, 1, list_tables);
static const tare__table *const show_tables[] = {&run, &figures};
DOCUMENT(history_show, "tare-history", 1, 1, show_tables);
static const tare__table *const trend_tables[] = {&shared, &tare__table_trends};
DOCUMENT(history_trend, "tare-history", 1, 1, trend_tables);
