/* csv: one file a table, for spreadsheets and data frames: RFC 4180, UTF-8, units in the columns' names.
 * Owned by the calling thread; writes in pieces. docs/EXPORT.md tells the columns.
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

void tare__csv_known(csv *to, int64_t value)
{
    if (value)
        tare__csv_signed(to, value);
    else
        tare__csv_absent(to);
}

void tare__csv_row(csv *to, uint32_t row)
{
    if (row == TARE__NO_ROW)
        tare__csv_absent(to);
    else
        tare__csv_count(to, row);
}

void tare__csv_flag(csv *to, bool value)
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

const char *tare__csv_word(const char *const *words, size_t n, uint32_t at)
{
    return at < n && words[at] ? words[at] : "unknown";
}

#define DURATIONS "min_ns,mean_ns,max_ns,p50_ns,p95_ns,p99_ns"
#define STEP_COLUMNS                                  \
    "name,group,count,job_count,ranks,unfinished,total_ns," DURATIONS \
    ",exact,p50_low_ns,p50_high_ns,p95_low_ns,p95_high_ns,interval_absent,per_second,first_ns,rest_p50_ns"
#define METRIC_COLUMNS "metric,subject,key,owner,label"

/* ---- files ------------------------------------------------------------------------------------------------ */
#define KEY_COLUMNS "key,value,unit,absent"
static const struct table {
    const char *name, *columns;
    void (*put)(csv *to, const tare__analysis *from);
} tables[] = {
    {"run.csv", KEY_COLUMNS, tare__csv_put_run},
    {"usage.csv", KEY_COLUMNS, tare__csv_put_usage},
    {"phases.csv", KEY_COLUMNS, tare__csv_put_phases},
    {"tare.csv", KEY_COLUMNS, tare__csv_put_own},
    {"findings.csv", "row,id,severity,title,evidence,advice,gain_share,gain_how,from_ns,to_ns,source",
     tare__csv_put_findings},
    {"figures.csv", "finding_row,finding_id,name,value,unit", tare__csv_put_figures},
    {"spans.csv",
     "row,parent_row,depth,group,path,name,kind,file,line,calls,still_open,end_lost,left_open,continued,total_ns,self_"
     "ns,"
     "raw_self_ns,share," DURATIONS,
     tare__csv_put_spans},
    {"steps.csv", STEP_COLUMNS, tare__csv_put_steps},
    {"epochs.csv", STEP_COLUMNS, tare__csv_put_epochs},
    {"slowest.csv", "table,name,group,rank,index,start_at_ns,duration_ns,thread_row", tare__csv_put_slowest},
    {"numbers.csv", "table,row,name,count,sum,per_second,estimated,inspected", tare__csv_put_numbers},
    {"operators.csv",
     "name,phase,direction,calls,total_ns,self_ns,raw_self_ns,share," DURATIONS
     ",step_self_ns,per_step_ns,step_share,module,modules,pair,paired,pair_total_ns,unpaired,"
     "shapes,flops,bytes_estimate,flops_per_second,bytes_per_second_estimate,"
     "of_peak_flops,of_peak_bytes,of_peak_absent,recomputed,shapes_absent",
     tare__csv_put_operators},
    {"modules.csv",
     "row,parent_row,depth,path,calls,total_ns,self_ns,operators_ns,share,backward_calls,backward_ns",
     tare__csv_put_modules},
    {"module_operators.csv", "module_row,path,name,direction,calls,total_ns,self_ns", tare__csv_put_module_operators},
    {"aggregates.csv", "name,file,line,every,calls,timed,estimated,total_ns," DURATIONS ",absent",
     tare__csv_put_aggregates},
    {"counters.csv", "name,count,first,last,min,mean,max,first_at_ns,last_at_ns", tare__csv_put_counters},
    {"marks.csv", "name,count,first_at_ns,last_at_ns", tare__csv_put_marks},
    {"tracks.csv", "track,track_kind,name,calls,total_ns,self_ns," DURATIONS ",flows,children",
     tare__csv_put_tracks},
    {"processes.csv",
     "row,number,pid,parent_pid,inner_pid,command,joined,not_joined,unreadable,joined_at_ns,left_at_ns,wait_"
     "status,"
     "threads,spans,dropped_spans,dropped_others,busy_ns,rank",
     tare__csv_put_processes},
    {"threads.csv",
     "row,process_row,pid,stream,tid,name,spans,events,busy_ns,first_at_ns,last_at_ns,dropped_spans,dropped_"
     "others,"
     "unmatched_ends,lost_ends,lost_blocks,skipped_slots",
     tare__csv_put_threads},
    {"metrics.csv",
     METRIC_COLUMNS
     ",kind,unit,total_unit,count,min,mean,max,first,last,total,max_at_ns,from_ns,to_ns,absent",
     tare__csv_put_metrics},
    {"points.csv", METRIC_COLUMNS ",unit,at_ns,lasts_ns,min,mean,max", tare__csv_put_points},
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
