/* json: every table as strict JSON; the schema is docs/JSON.md.
 * Owned by the calling thread.
 * Must not know how the tables were made, nor where the bytes go. */
#include "json_writer.h"

#include <stdio.h>
#include <string.h>

#define SCHEMA_NAME    "tare-report"
#define SCHEMA_VERSION 1
#define SCHEMA_MINOR   3 /* grows when keys are added */
/* A path is as long as the row is deep: all paths of a deep recursion would be its square. */
#define PATH_DEPTH_MAX 255u

/* ---- values -------------------------------------------------------------------------------------- */
static void put_numbers(writer *to, const tare__number_row *rows, size_t n)
{
    tare__json_key(&to->json, "numbers");
    tare__json_array(&to->json);
    for (size_t i = 0; i < n; i++) {
        tare__json_object(&to->json);
        put_string(to, "name", rows[i].name);
        put_unsigned(to, "count", rows[i].n);
        put_double(to, "sum", rows[i].sum);
        put_double(to, "per_second", rows[i].rate);
        put_bool(to, "estimated", rows[i].estimated);
        put_unsigned(to, "inspected", rows[i].inspected);
        tare__json_end_object(&to->json);
    }
    tare__json_end_array(&to->json);
}

static void put_place(writer *to, const char *file, uint32_t line)
{
    put_string(to, "file", file);
    put_known(to, "line", file ? line : 0);
}

/* ---- run ----------------------------------------------------------------------------------------- */
static void put_arguments(writer *to, const tare__run_table *run)
{
    tare__json_key(&to->json, "arguments");
    tare__json_array(&to->json);
    for (size_t i = 0; i < run->n_arguments; i++)
        tare__json_string(&to->json, run->arguments[i]);
    tare__json_end_array(&to->json);
}

static void put_damage(writer *to, const tare__run_table *run)
{
    put_unsigned(to, "dropped_spans", run->dropped_spans);
    put_unsigned(to, "dropped_others", run->dropped_others);
    put_unsigned(to, "rotated_spans", run->rotated_spans);
    put_ns(to, "rotated_before_at_ns", run->rotated_before_at_ns);
    put_unsigned(to, "damaged_blocks", run->damaged_blocks);
    put_unsigned(to, "damaged_bytes", run->damaged_bytes);
    put_unsigned(to, "damaged_spans", run->damaged_spans);
    put_unsigned(to, "unknown_blocks", run->unknown_blocks);
    put_unsigned(to, "names_refused", run->names_refused);
    tare__json_key(&to->json, "refused_processes");
    tare__json_object(&to->json);
    put_unsigned(to, "space", run->refused_space);
    put_unsigned(to, "abi", run->refused_abi);
    put_unsigned(to, "system", run->refused_system);
    put_unsigned(to, "copy", run->refused_copy);
    tare__json_end_object(&to->json);
    put_unsigned(to, "left_running", run->left_running);
    put_string(to, "write_error", run->write_error);
}

static void put_peaks(writer *to, const tare__peaks *peaks)
{
    double f32 = peaks->flops[TARE__PEAK_F32], memory = peaks->level_per_s[TARE__PEAK_LEVELS - 1];
    put_double(to, "peak_flops_per_second", f32 > 0 ? f32 : NAN);
    put_double(to, "peak_bytes_per_second", memory > 0 ? memory : NAN);
    tare__json_key(&to->json, "peaks");
    tare__peaks_json(peaks, &to->json);
}

static void put_run(writer *to)
{
    const tare__run_table *run = &to->analysis->run;
    tare__json_key(&to->json, "run");
    tare__json_object(&to->json);
    put_string(to, "command", run->command);
    put_arguments(to, run);
    put_string(to, "directory", run->directory);
    put_string(to, "host", run->host);
    put_known(to, "cpus", run->cpus);
    put_string(to, "cpu_model", run->cpu_model);
    put_double(to, "memory_bytes", run->memory_bytes > 0 ? run->memory_bytes : NAN);
    put_peaks(to, &run->peaks);
    put_string(to, "gpus", run->gpus);
    put_string(to, "kernel", run->kernel);
    put_string(to, "system", run->system);
    put_string(to, "revision", run->revision);
    put_string(to, "writer", run->writer);
    put_known(to, "start_realtime_ns", (int64_t)run->start_realtime_ns);
    put_ns(to, "elapsed_ns", run->elapsed_ns);
    put_bool(to, "finished", run->finished);
    put_bool(to, "salvaged", run->salvaged);
    put_bool(to, "clock_known", run->clock_known);
    tare__json_key(&to->json, "exit_status");
    if (run->status < 0)
        tare__json_null(&to->json);
    else
        tare__json_signed(&to->json, run->status);
    put_known(to, "signal", run->signal);
    put_bool(to, "oom_killed", run->oom_killed);
    put_known(to, "attached", run->attached);
    put_unsigned(to, "spans", run->spans);
    put_damage(to, run);
    tare__json_end_object(&to->json);
}

static void put_notes(writer *to)
{
    const tare__run_table *run = &to->analysis->run;
    tare__json_key(&to->json, "notes");
    tare__json_array(&to->json);
    for (size_t i = 0; i < run->n_notes; i++)
        tare__json_string(&to->json, run->notes[i]);
    tare__json_end_array(&to->json);
}

/* ---- spans --------------------------------------------------------------------------------------- */
static const char *kind_name(uint32_t kind)
{
    return kind ? tare__span_kind_word(kind) : "others";
}

static void put_path(writer *to, size_t index)
{
    const tare__span_row *rows = to->analysis->spans;
    const char *names[PATH_DEPTH_MAX + 1];
    size_t n = 0;
    tare__json_key(&to->json, "path");
    if (rows[index].depth > PATH_DEPTH_MAX) {
        tare__json_null(&to->json);
        return;
    }
    for (size_t at = index; n < TARE__COUNT_OF(names); at = rows[at].parent) {
        names[n++] = rows[at].name;
        if (rows[at].parent == TARE__NO_ROW)
            break;
    }
    tare__json_array(&to->json);
    while (n > 0)
        tare__json_string(&to->json, names[--n]);
    tare__json_end_array(&to->json);
}

static void put_span(writer *to, size_t index)
{
    const tare__span_row *row = &to->analysis->spans[index];
    put_string(to, "name", row->name);
    put_string(to, "kind", kind_name(row->kind));
    put_unsigned(to, "calls", row->calls);
    put_ns(to, "total_ns", row->total_ns);
    put_ns(to, "self_ns", row->self_ns);
    put_ns(to, "raw_self_ns", row->raw_self_ns);
    put_durations(to, &row->each);
    put_double(to, "share", row->share);
    put_unsigned(to, "depth", row->depth);
    put_row_index(to, "parent", row->parent);
    put_path(to, index);
    put_row_index(to, "group", row->group);
    put_place(to, row->file, row->line);
    put_unsigned(to, "still_open", row->still_open);
    put_unsigned(to, "end_lost", row->end_lost);
    put_unsigned(to, "left_open", row->left_open);
    put_unsigned(to, "continued", row->continued);
    put_numbers(to, row->numbers, row->n_numbers);
}

static void put_group(writer *to, size_t index)
{
    const tare__group_row *row = &to->analysis->groups[index];
    put_string(to, "name", row->name);
    put_row_index(to, "process", row->process);
    put_row_index(to, "thread", row->thread);
    put_unsigned(to, "first_span", row->first_row);
    put_unsigned(to, "spans", row->n_rows);
    put_ns(to, "total_ns", row->total_ns);
}

/* ---- steps, epochs ------------------------------------------------------------------------------- */
static void put_interval(writer *to, const char *key, const tare__step_interval *interval)
{
    tare__json_key(&to->json, key);
    tare__json_object(&to->json);
    put_ns(to, "low_ns", interval->low_ns);
    put_ns(to, "high_ns", interval->high_ns);
    if (!isfinite(interval->low_ns)) {
        char reason[64] = "too many to keep each";
        if (interval->needed > 0)
            snprintf(reason, sizeof reason, "too few: %" PRIu64 " needed", interval->needed);
        put_string(to, "reason", reason);
    }
    tare__json_end_object(&to->json);
}

static void put_slowest(writer *to, const tare__step_row *row)
{
    tare__json_key(&to->json, "slowest");
    tare__json_array(&to->json);
    for (size_t i = 0; i < row->n_slowest; i++) {
        const tare__slow_step *slow = &row->slowest[i];
        tare__json_object(&to->json);
        tare__json_key(&to->json, "index");
        if (slow->has_index)
            tare__json_unsigned(&to->json, slow->index);
        else
            tare__json_null(&to->json);
        put_ns(to, "duration_ns", slow->duration_ns);
        put_ns(to, "start_at_ns", slow->start_at_ns);
        put_row_index(to, "thread", slow->thread);
        tare__json_end_object(&to->json);
    }
    tare__json_end_array(&to->json);
}

static void put_step_row(writer *to, const tare__step_row *row)
{
    put_string(to, "name", row->name);
    put_row_index(to, "group", row->group);
    put_unsigned(to, "count", row->count);
    put_unsigned(to, "job_count", row->job_count);
    put_unsigned(to, "ranks", row->ranks);
    put_unsigned(to, "unfinished", row->unfinished);
    put_ns(to, "total_ns", row->total_ns);
    put_durations(to, &row->each);
    put_bool(to, "exact", row->exact);
    put_interval(to, "p50_interval", &row->p50);
    put_interval(to, "p95_interval", &row->p95);
    put_double(to, "per_second", row->per_second);
    put_ns(to, "first_ns", row->first_ns);
    put_ns(to, "rest_p50_ns", row->rest_p50_ns);
    put_slowest(to, row);
    put_numbers(to, row->numbers, row->n_numbers);
}

static void put_step(writer *to, size_t index)
{
    put_step_row(to, &to->analysis->steps[index]);
}

static void put_epoch(writer *to, size_t index)
{
    put_step_row(to, &to->analysis->epochs[index]);
}

/* ---- the rest ------------------------------------------------------------------------------------ */
static void put_aggregate(writer *to, size_t index)
{
    const tare__aggregate_row *row = &to->analysis->aggregates[index];
    put_string(to, "name", row->name);
    put_unsigned(to, "calls", row->calls);
    put_unsigned(to, "timed", row->timed);
    put_unsigned(to, "every", row->every);
    put_bool(to, "estimated", row->estimated);
    put_ns(to, "total_ns", row->total_ns);
    put_durations(to, &row->each);
    put_place(to, row->file, row->line);
}

static void put_counter(writer *to, size_t index)
{
    const tare__counter_row *row = &to->analysis->counters[index];
    put_string(to, "name", row->name);
    put_unsigned(to, "count", row->n);
    put_double(to, "first", row->first);
    put_double(to, "last", row->last);
    put_double(to, "min", row->min);
    put_double(to, "mean", row->mean);
    put_double(to, "max", row->max);
    put_ns(to, "first_at_ns", row->first_at_ns);
    put_ns(to, "last_at_ns", row->last_at_ns);
}

static void put_mark(writer *to, size_t index)
{
    const tare__mark_row *row = &to->analysis->marks[index];
    put_string(to, "name", row->name);
    put_unsigned(to, "count", row->n);
    put_ns(to, "first_at_ns", row->first_at_ns);
    put_ns(to, "last_at_ns", row->last_at_ns);
}

static void put_track(writer *to, size_t index)
{
    static const char *const kinds[] = {"thread", "task", "gpu", "request", "other"};
    const tare__track_row *row = &to->analysis->tracks[index];
    tare__json_put_string(&to->json, "track", row->track_kind ? row->track : NULL);
    put_string(to, "track_kind", row->track_kind < TARE__COUNT_OF(kinds) ? kinds[row->track_kind] : "other");
    put_string(to, "name", row->name);
    put_unsigned(to, "calls", row->calls);
    put_ns(to, "total_ns", row->total_ns);
    put_ns(to, "self_ns", row->self_ns);
    put_durations(to, &row->each);
    put_unsigned(to, "flows", row->flows);
    put_unsigned(to, "children", row->children);
}

static void put_thread(writer *to, size_t index)
{
    const tare__thread_row *row = &to->analysis->threads[index];
    put_string(to, "name", row->name);
    put_known(to, "tid", row->tid);
    put_row_index(to, "process", row->process);
    put_unsigned(to, "stream", row->stream);
    put_unsigned(to, "spans", row->spans);
    put_unsigned(to, "events", row->events);
    put_ns(to, "busy_ns", row->busy_ns);
    put_ns(to, "first_at_ns", row->first_at_ns);
    put_ns(to, "last_at_ns", row->last_at_ns);
    put_unsigned(to, "dropped_spans", row->dropped_spans);
    put_unsigned(to, "dropped_others", row->dropped_others);
    put_unsigned(to, "unmatched_ends", row->unmatched_ends);
    put_unsigned(to, "lost_ends", row->lost_ends);
    put_unsigned(to, "lost_blocks", row->lost_blocks);
    put_unsigned(to, "skipped_slots", row->skipped_slots);
}

static void put_process(writer *to, size_t index)
{
    const tare__process_row *row = &to->analysis->processes[index];
    put_unsigned(to, "number", row->number);
    put_known(to, "pid", row->pid);
    put_known(to, "parent_pid", row->parent_pid);
    put_known(to, "inner_pid", row->inner_pid);
    put_string(to, "command", row->command);
    tare__json_key(&to->json, "rank");
    if (row->has_rank)
        tare__json_unsigned(&to->json, row->rank);
    else
        tare__json_null(&to->json);
    put_bool(to, "joined", row->joined);
    put_string(to, "not_joined", row->not_joined);
    put_string(to, "unreadable", row->unreadable);
    put_ns(to, "joined_at_ns", row->joined_at_ns);
    put_ns(to, "left_at_ns", row->left_at_ns);
    tare__json_key(&to->json, "wait_status");
    if (row->has_exit_status)
        tare__json_signed(&to->json, row->exit_status);
    else
        tare__json_null(&to->json);
    put_unsigned(to, "threads", row->threads);
    put_unsigned(to, "spans", row->spans);
    put_unsigned(to, "dropped_spans", row->dropped_spans);
    put_unsigned(to, "dropped_others", row->dropped_others);
    put_ns(to, "busy_ns", row->busy_ns);
}

/* ---- the tare line ------------------------------------------------------------------------------- */
static void put_own_reasons(writer *to, const tare__own_table *own)
{
    tare__json_key(&to->json, "reasons");
    tare__json_object(&to->json);
    if (!isfinite(own->own_ns))
        put_string(to, "own_ns", "the cost of an event was not calibrated in this run");
    if (!isfinite(own->collector_cpu_ns))
        put_string(to, "collector_cpu_ns", "the trace has no end, which tells it");
    if (!isfinite(own->sampler_cpu_ns))
        put_string(to, "sampler_cpu_ns", "nothing was sampled, or the trace has no end");
    tare__json_end_object(&to->json);
}

static void put_own(writer *to)
{
    const tare__own_table *own = &to->analysis->own;
    tare__json_key(&to->json, "tare");
    tare__json_object(&to->json);
    put_ns(to, "own_ns", own->own_ns);
    put_ns(to, "taken_off_ns", own->taken_off_ns);
    put_double(to, "share", own->share);
    put_ns(to, "recorded_ns", own->recorded_ns);
    put_ns(to, "collector_cpu_ns", own->collector_cpu_ns);
    put_ns(to, "sampler_cpu_ns", own->sampler_cpu_ns);
    put_ns(to, "interval_ns", own->interval_ns);
    put_ns(to, "longest_interval_ns", own->longest_interval_ns);
    put_double(to, "pair_ns", own->pair_ns); /* a cost of one event is no whole number */
    put_double(to, "inner_ns", own->inner_ns);
    put_double(to, "next_ns", own->next_ns);
    put_double(to, "aggregate_ns", own->aggregate_ns);
    put_unsigned(to, "spans", own->spans);
    put_unsigned(to, "chained_spans", own->chained_spans);
    put_unsigned(to, "marks", own->marks);
    put_unsigned(to, "counters", own->counters);
    put_unsigned(to, "numbers", own->numbers);
    put_unsigned(to, "complete_spans", own->complete_spans);
    put_unsigned(to, "aggregate_calls", own->aggregate_calls);
    put_unsigned(to, "aggregate_timed", own->aggregate_timed);
    put_own_reasons(to, own);
    tare__json_end_object(&to->json);
}

/* ---- the whole ----------------------------------------------------------------------------------- */
static void put_schema(writer *to)
{
    tare__json_key(&to->json, "schema");
    tare__json_object(&to->json);
    put_string(to, "name", SCHEMA_NAME);
    put_unsigned(to, "version", SCHEMA_VERSION);
    put_unsigned(to, "minor", SCHEMA_MINOR);
    tare__json_end_object(&to->json);
}

static int emit_json(const tare__emit_input *input, const tare__emit_options *options,
                     const tare__emit_sink *sink, tare__error *error)
{
    const tare__analysis *analysis = input->analysis;
    writer to = {.analysis = analysis, .all = options->all, .sink = sink, .error = error};
    tare__json_begin(&to.json, &to.text, options->pretty);
    tare__json_object(&to.json);
    put_schema(&to);
    put_run(&to);
    put_notes(&to);
    put_own(&to);
    tare__json_put_usage(&to);
    tare__json_put_phases(&to);
    tare__json_put_findings(&to);
    put_list(&to, "groups", analysis->n_groups, put_group);
    put_list(&to, "spans", analysis->n_spans, put_span);
    put_list(&to, "steps", analysis->n_steps, put_step);
    put_list(&to, "epochs", analysis->n_epochs, put_epoch);
    tare__json_put_operators(&to);
    put_list(&to, "aggregates", analysis->n_aggregates, put_aggregate);
    put_list(&to, "counters", analysis->n_counters, put_counter);
    put_list(&to, "marks", analysis->n_marks, put_mark);
    put_list(&to, "tracks", analysis->n_tracks, put_track);
    put_list(&to, "threads", analysis->n_threads, put_thread);
    put_list(&to, "processes", analysis->n_processes, put_process);
    tare__json_put_metrics(&to);
    tare__json_end_object(&to.json);
    tare__text_string(&to.text, "\n");
    if (!to.status)
        to.status = tare__emit_flush(&to.text, sink, error);
    tare__text_free(&to.text);
    return to.status;
}

const tare__emitter tare__emit_json = {
    .name = "json",
    .description = "for machines: every table, as docs/JSON.md specifies",
    .needs = TARE__EMIT_TABLES,
    .emit = emit_json,
};
