/* csv: one file a table, for spreadsheets and data frames: RFC 4180, UTF-8, units in the columns' names. docs/EXPORT.md.
 * Owned by the calling thread; writes in pieces.
 * Must not know how the tables were made, nor where the files are. */
#include "csv.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "flush.h"
#include "tare.h"

/* ---- cells --------------------------------------------------------------------------------------------- */
static void separate(csv *to)
{
    if (to->cells++)
        tare__text_append(&to->text, ",", 1);
}

/* A spreadsheet takes these at the start of a cell for a formula; a single quote before them makes it text. */
static bool looks_like_formula(const char *text)
{
    return *text && strchr("=+-@\t\r", *text);
}

void tare__csv_text(csv *to, const char *text)
{
    separate(to);
    if (!text || !*text)
        return;
    size_t length = strlen(text);
    bool quoted = strpbrk(text, ",\"\r\n") || *text == ' ' || text[length - 1] == ' ';
    if (quoted)
        tare__text_append(&to->text, "\"", 1);
    if (looks_like_formula(text))
        tare__text_append(&to->text, "'", 1);
    for (size_t at = 0, size; at < length; at += size ? size : 1) {
        uint32_t code;
        size = tare__utf8_decode(text + at, length - at, &code);
        tare__text_append(&to->text, size ? text + at : "\xef\xbf\xbd", size ? size : 3);
        if (text[at] == '"')
            tare__text_append(&to->text, "\"", 1);
    }
    if (quoted)
        tare__text_append(&to->text, "\"", 1);
}

void tare__csv_double(csv *to, double value)
{
    separate(to);
    if (!isfinite(value))
        return;
    tare__json json;
    tare__json_begin(&json, &to->text, false);
    tare__json_double(&json, value);
}

void tare__csv_ns(csv *to, double ns)
{
    tare__csv_double(to, fabs(ns) < 1e12 ? round(ns * 1000) / 1000 : ns);
}

void tare__csv_count(csv *to, uint64_t value)
{
    separate(to);
    tare__text_format(&to->text, "%" PRIu64, value);
}

void tare__csv_signed(csv *to, int64_t value)
{
    separate(to);
    tare__text_format(&to->text, "%" PRId64, value);
}

void tare__csv_absent(csv *to)
{
    separate(to);
}

/* 0 stands for what is not known. */
static void known(csv *to, int64_t value)
{
    if (value)
        tare__csv_signed(to, value);
    else
        tare__csv_absent(to);
}

static void row_or_none(csv *to, uint32_t row)
{
    if (row == TARE__NO_ROW)
        tare__csv_absent(to);
    else
        tare__csv_count(to, row);
}

static void yes_or_no(csv *to, bool value)
{
    tare__csv_text(to, value ? "true" : "false");
}

void tare__csv_end_row(csv *to)
{
    tare__text_append(&to->text, "\r\n", 2);
    to->cells = 0;
    if (!to->status)
        to->status = tare__emit_flush_piece(&to->text, to->sink, to->error);
}

static const char *word(const char *const *words, size_t n, uint32_t at)
{
    return at < n && words[at] ? words[at] : "unknown";
}
#define WORD(words, at) word(words, TARE__COUNT_OF(words), at)

static void durations(csv *to, const tare__durations *each)
{
    const double values[] = {each->min_ns, each->mean_ns, each->max_ns, each->p50_ns, each->p95_ns, each->p99_ns};
    for (size_t i = 0; i < TARE__COUNT_OF(values); i++)
        tare__csv_ns(to, values[i]);
}
#define DURATIONS "min_ns,mean_ns,max_ns,p50_ns,p95_ns,p99_ns"

static const char *group_name(const tare__analysis *from, uint32_t group)
{
    return group < from->n_groups ? from->groups[group].name : NULL;
}

/* ---- spans, steps --------------------------------------------------------------------------------------- */
static const char *const kinds[] = {
    [0] = "others", [TARE_KIND_SPAN] = "span", [TARE_KIND_STEP] = "step", [TARE_KIND_EPOCH] = "epoch"};

static void put_path(const tare__analysis *from, uint32_t row, tare__text *path)
{
    uint32_t way[512], n = 0;
    for (; row < from->n_spans && n < TARE__COUNT_OF(way); row = from->spans[row].parent)
        way[n++] = row;
    while (n--) {
        tare__text_string(path, from->spans[way[n]].name);
        tare__text_string(path, n ? "/" : "");
    }
}

static void put_spans(csv *to, const tare__analysis *from)
{
    tare__text path = {0};
    for (size_t i = 0; i < from->n_spans && !to->status; i++) {
        const tare__span_row *row = &from->spans[i];
        tare__text_clear(&path);
        put_path(from, (uint32_t)i, &path);
        to->text.failed |= path.failed;
        tare__csv_count(to, i);
        row_or_none(to, row->parent);
        tare__csv_count(to, row->depth);
        tare__csv_text(to, group_name(from, row->group));
        tare__csv_text(to, path.data);
        tare__csv_text(to, row->name);
        tare__csv_text(to, WORD(kinds, row->kind));
        tare__csv_text(to, row->file);
        known(to, row->file ? row->line : 0);
        tare__csv_count(to, row->calls);
        tare__csv_count(to, row->still_open);
        tare__csv_count(to, row->end_lost);
        tare__csv_count(to, row->left_open);
        tare__csv_ns(to, row->total_ns);
        tare__csv_ns(to, row->self_ns);
        tare__csv_ns(to, row->raw_self_ns);
        tare__csv_double(to, row->share);
        durations(to, &row->each);
        tare__csv_end_row(to);
    }
    tare__text_free(&path);
}

static void put_step_rows(csv *to, const tare__analysis *from, const tare__step_row *rows, size_t n)
{
    for (size_t i = 0; i < n && !to->status; i++) {
        const tare__step_row *row = &rows[i];
        uint64_t needed = row->p95.needed ? row->p95.needed : row->p50.needed;
        char reason[64] = "";
        if (needed)
            snprintf(reason, sizeof reason, "too few: %" PRIu64 " needed", needed);
        else if (isnan(row->p95.low_ns))
            snprintf(reason, sizeof reason, "%s", row->exact ? "not known" : "too many to keep each");
        tare__csv_text(to, row->name);
        tare__csv_text(to, group_name(from, row->group));
        tare__csv_count(to, row->count);
        tare__csv_count(to, row->unfinished);
        tare__csv_ns(to, row->total_ns);
        durations(to, &row->each);
        yes_or_no(to, row->exact);
        tare__csv_ns(to, row->p50.low_ns);
        tare__csv_ns(to, row->p50.high_ns);
        tare__csv_ns(to, row->p95.low_ns);
        tare__csv_ns(to, row->p95.high_ns);
        tare__csv_text(to, reason);
        tare__csv_double(to, row->per_second);
        tare__csv_ns(to, row->count ? row->first_ns : NAN);
        tare__csv_ns(to, row->rest_p50_ns);
        tare__csv_end_row(to);
    }
}

static void put_steps(csv *to, const tare__analysis *from)
{
    put_step_rows(to, from, from->steps, from->n_steps);
}

static void put_epochs(csv *to, const tare__analysis *from)
{
    put_step_rows(to, from, from->epochs, from->n_epochs);
}
#define STEP_COLUMNS                                                                                              \
    "name,group,count,unfinished,total_ns," DURATIONS                                                             \
    ",exact,p50_low_ns,p50_high_ns,p95_low_ns,p95_high_ns,interval_absent,per_second,first_ns,rest_p50_ns"

static void put_slow_rows(csv *to, const tare__analysis *from, const char *table, const tare__step_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < rows[i].n_slowest && !to->status; k++) {
            const tare__slow_step *slow = &rows[i].slowest[k];
            tare__csv_text(to, table);
            tare__csv_text(to, rows[i].name);
            tare__csv_text(to, group_name(from, rows[i].group));
            tare__csv_count(to, k + 1);
            if (slow->has_index)
                tare__csv_count(to, slow->index);
            else
                tare__csv_absent(to);
            tare__csv_ns(to, slow->start_at_ns);
            tare__csv_ns(to, slow->duration_ns);
            row_or_none(to, slow->thread);
            tare__csv_end_row(to);
        }
    }
}

static void put_slowest(csv *to, const tare__analysis *from)
{
    put_slow_rows(to, from, "steps", from->steps, from->n_steps);
    put_slow_rows(to, from, "epochs", from->epochs, from->n_epochs);
}

/* ---- numbers attached to spans and steps ----------------------------------------------------------------- */
static void put_number_rows(csv *to, const char *table, size_t row, const tare__number_row *rows, size_t n)
{
    for (size_t i = 0; i < n && !to->status; i++) {
        tare__csv_text(to, table);
        tare__csv_count(to, row);
        tare__csv_text(to, rows[i].name);
        tare__csv_count(to, rows[i].n);
        tare__csv_double(to, rows[i].sum);
        tare__csv_double(to, rows[i].rate);
        tare__csv_end_row(to);
    }
}

static void put_numbers(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_spans; i++)
        put_number_rows(to, "spans", i, from->spans[i].numbers, from->spans[i].n_numbers);
    for (size_t i = 0; i < from->n_steps; i++)
        put_number_rows(to, "steps", i, from->steps[i].numbers, from->steps[i].n_numbers);
    for (size_t i = 0; i < from->n_epochs; i++)
        put_number_rows(to, "epochs", i, from->epochs[i].numbers, from->epochs[i].n_numbers);
}

/* ---- the other tables of spans --------------------------------------------------------------------------- */
static void put_aggregates(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_aggregates && !to->status; i++) {
        const tare__aggregate_row *row = &from->aggregates[i];
        tare__csv_text(to, row->name);
        tare__csv_text(to, row->file);
        known(to, row->file ? row->line : 0);
        tare__csv_count(to, row->every);
        tare__csv_count(to, row->calls);
        tare__csv_count(to, row->timed);
        yes_or_no(to, row->estimated);
        tare__csv_ns(to, row->total_ns);
        durations(to, &row->each);
        tare__csv_text(to, row->timed ? NULL : "none was timed");
        tare__csv_end_row(to);
    }
}

static void put_counters(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_counters && !to->status; i++) {
        const tare__counter_row *row = &from->counters[i];
        const double values[] = {row->first, row->last, row->min, row->mean, row->max};
        tare__csv_text(to, row->name);
        tare__csv_count(to, row->n);
        for (size_t k = 0; k < TARE__COUNT_OF(values); k++)
            tare__csv_double(to, values[k]);
        tare__csv_ns(to, row->first_at_ns);
        tare__csv_ns(to, row->last_at_ns);
        tare__csv_end_row(to);
    }
}

static void put_marks(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_marks && !to->status; i++) {
        tare__csv_text(to, from->marks[i].name);
        tare__csv_count(to, from->marks[i].n);
        tare__csv_ns(to, from->marks[i].first_at_ns);
        tare__csv_ns(to, from->marks[i].last_at_ns);
        tare__csv_end_row(to);
    }
}

static void put_tracks(csv *to, const tare__analysis *from)
{
    static const char *const track_kinds[] = {[0] = "thread",
                                              [TARE_TRACK_TASK] = "task",
                                              [TARE_TRACK_GPU] = "gpu",
                                              [TARE_TRACK_REQUEST] = "request",
                                              [TARE_TRACK_OTHER] = "other"};
    for (size_t i = 0; i < from->n_tracks && !to->status; i++) {
        const tare__track_row *row = &from->tracks[i];
        tare__csv_text(to, row->track);
        tare__csv_text(to, WORD(track_kinds, row->track_kind));
        tare__csv_text(to, row->name);
        tare__csv_count(to, row->calls);
        tare__csv_ns(to, row->total_ns);
        tare__csv_ns(to, row->self_ns);
        durations(to, &row->each);
        tare__csv_count(to, row->flows);
        tare__csv_count(to, row->children);
        tare__csv_end_row(to);
    }
}

/* ---- processes, threads ---------------------------------------------------------------------------------- */
static void put_processes(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_processes && !to->status; i++) {
        const tare__process_row *row = &from->processes[i];
        tare__csv_count(to, i);
        tare__csv_count(to, row->number);
        known(to, row->pid);
        known(to, row->parent_pid);
        known(to, row->inner_pid);
        tare__csv_text(to, row->command);
        yes_or_no(to, row->joined);
        tare__csv_text(to, row->not_joined);
        tare__csv_text(to, row->unreadable);
        tare__csv_ns(to, row->joined_at_ns);
        tare__csv_ns(to, row->left_at_ns);
        if (row->has_exit_status)
            tare__csv_signed(to, row->exit_status);
        else
            tare__csv_absent(to);
        tare__csv_count(to, row->threads);
        tare__csv_count(to, row->spans);
        tare__csv_count(to, row->dropped_spans);
        tare__csv_count(to, row->dropped_others);
        tare__csv_ns(to, row->busy_ns);
        tare__csv_end_row(to);
    }
}

static void put_threads(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_threads && !to->status; i++) {
        const tare__thread_row *row = &from->threads[i];
        const uint64_t losses[] = {row->dropped_spans, row->dropped_others, row->unmatched_ends,
                                   row->lost_ends,     row->lost_blocks,    row->skipped_slots};
        tare__csv_count(to, i);
        row_or_none(to, row->process);
        known(to, row->process < from->n_processes ? from->processes[row->process].pid : 0);
        tare__csv_count(to, row->stream);
        known(to, row->tid);
        tare__csv_text(to, row->name);
        tare__csv_count(to, row->spans);
        tare__csv_count(to, row->events);
        tare__csv_ns(to, row->busy_ns);
        tare__csv_ns(to, row->first_at_ns);
        tare__csv_ns(to, row->last_at_ns);
        for (size_t k = 0; k < TARE__COUNT_OF(losses); k++)
            tare__csv_count(to, losses[k]);
        tare__csv_end_row(to);
    }
}

/* ---- metrics ---------------------------------------------------------------------------------------------- */
static const char *const units[] = {
    [TARE__SHOW_COUNT] = "count",     [TARE__SHOW_BYTES] = "bytes",   [TARE__SHOW_SHARE] = "share",
    [TARE__SHOW_CORES] = "cores",     [TARE__SHOW_SECONDS] = "s",     [TARE__SHOW_CELSIUS] = "celsius",
    [TARE__SHOW_WATTS] = "watts",     [TARE__SHOW_JOULES] = "joules", [TARE__SHOW_HERTZ] = "hertz",
    [TARE__SHOW_BITS] = "bits",       [TARE__SHOW_BYTES_PER_S] = "bytes_per_s",
    [TARE__SHOW_PER_S] = "per_s",
};
static const char *const subjects[] = {
    [TARE__SUBJECT_SYSTEM] = "system",       [TARE__SUBJECT_CPU] = "cpu",
    [TARE__SUBJECT_DISK] = "disk",           [TARE__SUBJECT_NETWORK] = "network",
    [TARE__SUBJECT_CONTAINER] = "container", [TARE__SUBJECT_TREE] = "tree",
    [TARE__SUBJECT_PROCESS] = "process",     [TARE__SUBJECT_THREAD] = "thread",
    [TARE__SUBJECT_SENSOR] = "sensor",       [TARE__SUBJECT_GPU] = "gpu",
    [TARE__SUBJECT_GPU_PROCESS] = "gpu_process", [TARE__SUBJECT_TARE] = "tare",
};
#define METRIC_COLUMNS "metric,subject,key,owner,label"

static void metric_of(csv *to, const tare__metric_row *row)
{
    tare__csv_text(to, row->metric);
    tare__csv_text(to, WORD(subjects, row->subject));
    tare__csv_count(to, row->key);
    tare__csv_count(to, row->owner);
    tare__csv_text(to, row->label);
}

static void put_metrics(csv *to, const tare__analysis *from)
{
    static const char *const metric_kinds[] = {
        [TARE__METRIC_GAUGE] = "gauge", [TARE__METRIC_TOTAL] = "total", [TARE__METRIC_PEAK] = "peak"};
    for (size_t i = 0; i < from->n_metrics && !to->status; i++) {
        const tare__metric_row *row = &from->metrics[i];
        const double values[] = {row->min, row->mean, row->max, row->first, row->last, row->total};
        const double times[] = {row->max_at_ns, row->from_ns, row->to_ns};
        metric_of(to, row);
        tare__csv_text(to, WORD(metric_kinds, row->kind));
        tare__csv_text(to, WORD(units, row->unit));
        tare__csv_text(to, row->kind == TARE__METRIC_TOTAL ? WORD(units, row->total_unit) : NULL);
        tare__csv_count(to, row->n);
        for (size_t k = 0; k < TARE__COUNT_OF(values); k++)
            tare__csv_double(to, row->n ? values[k] : NAN);
        for (size_t k = 0; k < TARE__COUNT_OF(times); k++)
            tare__csv_ns(to, row->n ? times[k] : NAN);
        tare__csv_text(to, row->absent);
        tare__csv_end_row(to);
    }
}

static void put_points(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_metrics; i++) {
        const tare__metric_row *row = &from->metrics[i];
        for (size_t k = 0; k < row->n_points && !to->status; k++) {
            const tare__metric_point *point = &row->points[k];
            metric_of(to, row);
            tare__csv_text(to, WORD(units, row->unit));
            tare__csv_ns(to, point->at_ns);
            tare__csv_ns(to, point->lasts_ns);
            tare__csv_double(to, point->min);
            tare__csv_double(to, point->mean);
            tare__csv_double(to, point->max);
            tare__csv_end_row(to);
        }
    }
}

/* ---- findings --------------------------------------------------------------------------------------------- */
static void put_findings(csv *to, const tare__analysis *from)
{
    static const char *const severities[] = {
        [TARE__INFO] = "info", [TARE__WARNING] = "warning", [TARE__CRITICAL] = "critical"};
    for (size_t i = 0; i < from->n_findings && !to->status; i++) {
        const tare__finding *row = &from->findings[i];
        tare__csv_count(to, i);
        tare__csv_text(to, row->id);
        tare__csv_text(to, WORD(severities, row->severity));
        tare__csv_text(to, row->title);
        tare__csv_text(to, row->evidence);
        tare__csv_text(to, row->advice);
        tare__csv_double(to, row->gain);
        tare__csv_text(to, row->gain_how);
        tare__csv_ns(to, row->from_ns);
        tare__csv_ns(to, row->to_ns);
        tare__csv_text(to, row->source);
        tare__csv_end_row(to);
    }
}

static void put_figures(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_findings; i++) {
        for (size_t k = 0; k < from->findings[i].n_figures && !to->status; k++) {
            const tare__figure *figure = &from->findings[i].figures[k];
            tare__csv_count(to, i);
            tare__csv_text(to, from->findings[i].id);
            tare__csv_text(to, figure->name);
            tare__csv_double(to, figure->value);
            tare__csv_text(to, WORD(units, figure->unit));
            tare__csv_end_row(to);
        }
    }
}

/* ---- files ------------------------------------------------------------------------------------------------ */
#define KEY_COLUMNS "key,value,unit,absent"
static const struct table {
    const char *name, *columns;
    void (*put)(csv *to, const tare__analysis *from);
} tables[] = {
    {"run.csv", KEY_COLUMNS, tare__csv_put_run},
    {"usage.csv", KEY_COLUMNS, tare__csv_put_usage},
    {"tare.csv", KEY_COLUMNS, tare__csv_put_own},
    {"findings.csv",
     "row,id,severity,title,evidence,advice,gain_share,gain_how,from_ns,to_ns,source", put_findings},
    {"figures.csv", "finding_row,finding_id,name,value,unit", put_figures},
    {"spans.csv",
     "row,parent_row,depth,group,path,name,kind,file,line,calls,still_open,end_lost,left_open,total_ns,self_ns,"
     "raw_self_ns,share," DURATIONS,
     put_spans},
    {"steps.csv", STEP_COLUMNS, put_steps},
    {"epochs.csv", STEP_COLUMNS, put_epochs},
    {"slowest.csv", "table,name,group,rank,index,start_at_ns,duration_ns,thread_row", put_slowest},
    {"numbers.csv", "table,row,name,count,sum,per_second", put_numbers},
    {"aggregates.csv", "name,file,line,every,calls,timed,estimated,total_ns," DURATIONS ",absent", put_aggregates},
    {"counters.csv", "name,count,first,last,min,mean,max,first_at_ns,last_at_ns", put_counters},
    {"marks.csv", "name,count,first_at_ns,last_at_ns", put_marks},
    {"tracks.csv", "track,track_kind,name,calls,total_ns,self_ns," DURATIONS ",flows,children", put_tracks},
    {"processes.csv",
     "row,number,pid,parent_pid,inner_pid,command,joined,not_joined,unreadable,joined_at_ns,left_at_ns,wait_status,"
     "threads,spans,dropped_spans,dropped_others,busy_ns",
     put_processes},
    {"threads.csv",
     "row,process_row,pid,stream,tid,name,spans,events,busy_ns,first_at_ns,last_at_ns,dropped_spans,dropped_others,"
     "unmatched_ends,lost_ends,lost_blocks,skipped_slots",
     put_threads},
    {"metrics.csv",
     METRIC_COLUMNS ",kind,unit,total_unit,count,min,mean,max,first,last,total,max_at_ns,from_ns,to_ns,absent", put_metrics},
    {"points.csv", METRIC_COLUMNS ",unit,at_ns,lasts_ns,min,mean,max", put_points},
};

static int put_table(const struct table *table, const tare__analysis *from, csv *to)
{
    tare__text_string(&to->text, table->columns);
    tare__csv_end_row(to);
    if (!to->status)
        table->put(to, from);
    return to->status ? to->status : tare__emit_flush(&to->text, to->sink, to->error);
}

int tare__emit_csv(const tare__analysis *analysis, const tare__emit_files *files, tare__error *error)
{
    csv to = {.error = error};
    int status = 0;
    for (size_t i = 0; i < TARE__COUNT_OF(tables) && !status; i++) {
        to.sink = files->open(files->context, tables[i].name);
        if (!to.sink) {
            status = TARE_E_SYSTEM;
            break;
        }
        status = put_table(&tables[i], analysis, &to);
        if (files->close(files->context) != 0 && !status)
            status = TARE_E_SYSTEM;
    }
    tare__text_free(&to.text);
    return status;
}
