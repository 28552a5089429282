/* html_tables: steps, epochs, aggregates, counters, marks, tracks, threads, processes: a row a line.
 * Owned by the calling thread.
 * Must not know how the tables were made. */
#include "html.h"

#include <math.h>

/* ---- steps -------------------------------------------------------------------------------------- */
static void put_slowest(tare__html *page, const tare__step_row *row)
{
    tare__json_array(&page->json);
    for (size_t i = 0; i < row->n_slowest; i++) {
        const tare__slow_step *slow = &row->slowest[i];
        tare__json_array(&page->json);
        if (slow->has_index)
            tare__json_unsigned(&page->json, slow->index);
        else
            tare__json_null(&page->json);
        tare__html_ns(page, slow->duration_ns);
        tare__html_ns(page, slow->start_at_ns);
        tare__json_end_array(&page->json);
    }
    tare__json_end_array(&page->json);
}

/* From where, how wide, how many beyond the last, and the counts. */
static void put_bins(tare__html *page, const tare__step_bins *bins)
{
    bool empty = !isfinite(bins->width_ns);
    tare__json_array(&page->json);
    tare__html_figure(page, bins->from_ns);
    tare__html_figure(page, bins->width_ns);
    tare__json_unsigned(&page->json, bins->over);
    for (size_t i = 0; i < TARE__STEP_BINS && !empty; i++)
        tare__json_unsigned(&page->json, bins->counts[i]);
    tare__json_end_array(&page->json);
}

#define COURSES 6u /* kinds of steps that the page draws, the largest */

static bool is_drawn(const tare__html *page, const tare__step_row *row)
{
    size_t larger = 0;
    for (size_t i = 0; i < page->analysis->n_steps; i++)
        larger += page->analysis->steps[i].total_ns > row->total_ns;
    return row->course.n_bins > 1 && larger < COURSES;
}

static void put_parts(tare__html *page, const tare__step_course *course)
{
    tare__json_array(&page->json);
    for (size_t i = 0; i < course->n_parts; i++)
        tare__json_string(&page->json, course->parts[i]);
    tare__json_end_array(&page->json);
}

/* Names of parts, whether they are phases, and a list a bin: steps, from, to, total, each part. */
static void put_course(tare__html *page, const tare__step_row *row)
{
    const tare__step_course *course = &row->course;
    if (!is_drawn(page, row)) {
        tare__json_null(&page->json);
        return;
    }
    tare__json_array(&page->json);
    put_parts(page, course);
    tare__json_bool(&page->json, course->phases);
    for (size_t i = 0; i < course->n_bins; i++) {
        const tare__course_bin *bin = &course->bins[i];
        tare__json_array(&page->json);
        tare__json_unsigned(&page->json, bin->steps);
        tare__html_ns(page, bin->from_ns);
        tare__html_ns(page, bin->to_ns);
        tare__html_ns(page, bin->total_ns);
        for (size_t part = 0; part < course->n_parts; part++)
            tare__html_ns(page, bin->parts_ns[part]);
        tare__json_end_array(&page->json);
    }
    tare__json_end_array(&page->json);
}

static void put_step_row(tare__html *page, const tare__step_row *row)
{
    tare__json_string(&page->json, row->name);
    tare__json_unsigned(&page->json, row->count);
    tare__json_unsigned(&page->json, row->unfinished);
    tare__html_ns(page, row->total_ns);
    tare__html_durations(page, &row->each);
    tare__html_figure(page, row->per_second);
    tare__html_ns(page, row->first_ns);
    tare__html_ns(page, row->rest_p50_ns);
    tare__html_ns(page, row->p50.low_ns);
    tare__html_ns(page, row->p50.high_ns);
    tare__html_ns(page, row->p95.low_ns);
    tare__html_ns(page, row->p95.high_ns);
    put_slowest(page, row);
    put_bins(page, &row->bins);
    tare__html_numbers(page, row->numbers, row->n_numbers);
    put_course(page, row);
}

static void put_step(tare__html *page, size_t index)
{
    put_step_row(page, &page->analysis->steps[index]);
}

static void put_epoch(tare__html *page, size_t index)
{
    put_step_row(page, &page->analysis->epochs[index]);
}

/* ---- the rest ----------------------------------------------------------------------------------- */
static void put_aggregate(tare__html *page, size_t index)
{
    const tare__aggregate_row *row = &page->analysis->aggregates[index];
    tare__json_string(&page->json, row->name);
    tare__json_unsigned(&page->json, row->calls);
    tare__json_unsigned(&page->json, row->timed);
    tare__json_bool(&page->json, row->estimated);
    tare__html_ns(page, row->total_ns);
    tare__html_durations(page, &row->each);
    tare__json_string(&page->json, row->file);
    tare__json_unsigned(&page->json, row->line);
}

static void put_counter(tare__html *page, size_t index)
{
    const tare__counter_row *row = &page->analysis->counters[index];
    tare__json_string(&page->json, row->name);
    tare__json_unsigned(&page->json, row->n);
    tare__html_figure(page, row->first);
    tare__html_figure(page, row->last);
    tare__html_figure(page, row->min);
    tare__html_figure(page, row->mean);
    tare__html_figure(page, row->max);
    tare__html_ns(page, row->first_at_ns);
    tare__html_ns(page, row->last_at_ns);
}

static void put_mark(tare__html *page, size_t index)
{
    const tare__mark_row *row = &page->analysis->marks[index];
    tare__json_string(&page->json, row->name);
    tare__json_unsigned(&page->json, row->n);
    tare__html_ns(page, row->first_at_ns);
    tare__html_ns(page, row->last_at_ns);
}

static void put_track(tare__html *page, size_t index)
{
    static const char *const kinds[] = {"thread", "task", "GPU", "request", "other"};
    const tare__track_row *row = &page->analysis->tracks[index];
    tare__json_string(&page->json, row->track_kind ? row->track : "(recording thread)");
    tare__json_string(&page->json,
                      row->track_kind < TARE__COUNT_OF(kinds) ? kinds[row->track_kind] : "other");
    tare__json_string(&page->json, row->name);
    tare__json_unsigned(&page->json, row->calls);
    tare__html_ns(page, row->total_ns);
    tare__html_durations(page, &row->each);
}

static void put_thread(tare__html *page, size_t index)
{
    const tare__thread_row *row = &page->analysis->threads[index];
    tare__json_string(&page->json, row->name);
    tare__html_known(page, row->tid);
    tare__html_row(page, row->process);
    tare__json_unsigned(&page->json, row->spans);
    tare__html_ns(page, row->busy_ns);
    tare__html_ns(page, row->first_at_ns);
    tare__html_ns(page, row->last_at_ns);
    tare__json_unsigned(&page->json, row->dropped_spans);
}

static void put_process(tare__html *page, size_t index)
{
    const tare__process_row *row = &page->analysis->processes[index];
    tare__html_known(page, row->pid);
    tare__html_known(page, row->parent_pid);
    tare__json_string(&page->json, row->label);
    tare__json_bool(&page->json, row->joined);
    tare__json_string(&page->json, row->joined ? row->unreadable : row->not_joined);
    tare__html_ns(page, row->joined_at_ns);
    tare__html_ns(page, row->left_at_ns);
    if (row->has_exit_status)
        tare__json_signed(&page->json, row->exit_status);
    else
        tare__json_null(&page->json);
    tare__json_unsigned(&page->json, row->threads);
    tare__json_unsigned(&page->json, row->spans);
    tare__html_ns(page, row->busy_ns);
    tare__json_unsigned(&page->json, row->dropped_spans);
}

#define STEP_COLUMNS                                                                                   \
    "name count unfinished total min mean p50 p95 p99 max per_second first rest_p50 p50_low p50_high " \
    "p95_low "                                                                                         \
    "p95_high slowest bins numbers course"

void tare__html_tables(tare__html *page)
{
    const tare__analysis *analysis = page->analysis;
    const struct {
        const char *key, *columns;
        size_t n;
        tare__html_put_row *put;
    } tables[] = {
        {"steps", STEP_COLUMNS, analysis->n_steps, put_step},
        {"epochs", STEP_COLUMNS, analysis->n_epochs, put_epoch},
        {"aggregates", "name calls timed estimated total min mean p50 p95 p99 max file line",
         analysis->n_aggregates, put_aggregate},
        {"counters", "name n first last min mean max first_at last_at", analysis->n_counters, put_counter},
        {"marks", "name n first_at last_at", analysis->n_marks, put_mark},
        {"tracks", "track kind name calls total min mean p50 p95 p99 max", analysis->n_tracks, put_track},
        {"threads", "name tid process spans busy first_at last_at dropped", analysis->n_threads, put_thread},
        {"processes", "pid parent_pid command joined why from to wait_status threads spans busy dropped",
         analysis->n_processes, put_process},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(tables); i++) {
        size_t n = tables[i].n < page->limits->rows ? tables[i].n : page->limits->rows;
        tare__html_table(page, tables[i].key, tables[i].columns, n, tables[i].n - n, tables[i].put);
    }
}
