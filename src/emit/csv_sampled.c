/* csv_sampled: the tables of processes, threads, metrics and findings.
 * Owned by the calling thread.
 * Must not know how the tables were made. */
#include <math.h>

#include "csv.h"
#include "tare.h"

/* ---- processes, threads ---------------------------------------------------------------------------------- */
void tare__csv_put_processes(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_processes && !to->status; i++) {
        const tare__process_row *row = &from->processes[i];
        tare__csv_count(to, i);
        tare__csv_count(to, row->number);
        tare__csv_known(to, row->pid);
        tare__csv_known(to, row->parent_pid);
        tare__csv_known(to, row->inner_pid);
        tare__csv_text(to, row->command);
        tare__csv_flag(to, row->joined);
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
        if (row->has_rank)
            tare__csv_count(to, row->rank);
        else
            tare__csv_absent(to);
        tare__csv_end_row(to);
    }
}

void tare__csv_put_threads(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_threads && !to->status; i++) {
        const tare__thread_row *row = &from->threads[i];
        const uint64_t losses[] = {row->dropped_spans, row->dropped_others, row->unmatched_ends,
                                   row->lost_ends,     row->lost_blocks,    row->skipped_slots};
        tare__csv_count(to, i);
        tare__csv_row(to, row->process);
        tare__csv_known(to, row->process < from->n_processes ? from->processes[row->process].pid : 0);
        tare__csv_count(to, row->stream);
        tare__csv_known(to, row->tid);
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
    [TARE__SHOW_COUNT] = "count",
    [TARE__SHOW_BYTES] = "bytes",
    [TARE__SHOW_SHARE] = "share",
    [TARE__SHOW_CORES] = "cores",
    [TARE__SHOW_SECONDS] = "s",
    [TARE__SHOW_CELSIUS] = "celsius",
    [TARE__SHOW_WATTS] = "watts",
    [TARE__SHOW_JOULES] = "joules",
    [TARE__SHOW_HERTZ] = "hertz",
    [TARE__SHOW_BITS] = "bits",
    [TARE__SHOW_BYTES_PER_S] = "bytes_per_s",
    [TARE__SHOW_PER_S] = "per_s",
};

static void metric_of(csv *to, const tare__metric_row *row)
{
    tare__csv_text(to, row->metric);
    tare__csv_text(to, tare__subject_word(row->subject));
    tare__csv_count(to, row->key);
    tare__csv_count(to, row->owner);
    tare__csv_text(to, row->label);
}

void tare__csv_put_metrics(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_metrics && !to->status; i++) {
        const tare__metric_row *row = &from->metrics[i];
        const double values[] = {row->min, row->mean, row->max, row->first, row->last, row->total};
        const double times[] = {row->max_at_ns, row->from_ns, row->to_ns};
        metric_of(to, row);
        tare__csv_text(to, tare__metric_kind_word(row->kind));
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

void tare__csv_put_points(csv *to, const tare__analysis *from)
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
void tare__csv_put_findings(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_findings && !to->status; i++) {
        const tare__finding *row = &from->findings[i];
        tare__csv_count(to, i);
        tare__csv_text(to, row->id);
        tare__csv_text(to, tare__severity_word(row->severity));
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

void tare__csv_put_figures(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_findings; i++) {
        for (size_t k = 0; k < from->findings[i].n_figures && !to->status; k++) {
            const tare__evidence *figure = &from->findings[i].figures[k];
            tare__csv_count(to, i);
            tare__csv_text(to, from->findings[i].id);
            tare__csv_text(to, figure->name);
            tare__csv_double(to, figure->value);
            tare__csv_text(to, WORD(units, figure->unit));
            tare__csv_end_row(to);
        }
    }
}
