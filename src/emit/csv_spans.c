/* csv_spans: the tables of spans, steps, numbers, aggregates, counters, marks and tracks.
 * Owned by the calling thread.
 * Must not know how the tables were made. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "csv.h"
#include "tare.h"

static void durations(csv *to, const tare__durations *each)
{
    const double values[] = {each->min_ns, each->mean_ns, each->max_ns,
                             each->p50_ns, each->p95_ns,  each->p99_ns};
    for (size_t i = 0; i < TARE__COUNT_OF(values); i++)
        tare__csv_ns(to, values[i]);
}

static const char *group_name(const tare__analysis *from, uint32_t group)
{
    return group < from->n_groups ? from->groups[group].name : NULL;
}

/* ---- spans, steps --------------------------------------------------------------------------------------- */
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

void tare__csv_put_spans(csv *to, const tare__analysis *from)
{
    tare__text path = {0};
    for (size_t i = 0; i < from->n_spans && !to->status; i++) {
        const tare__span_row *row = &from->spans[i];
        tare__text_clear(&path);
        put_path(from, (uint32_t)i, &path);
        to->text.failed |= path.failed;
        tare__csv_count(to, i);
        tare__csv_row(to, row->parent);
        tare__csv_count(to, row->depth);
        tare__csv_text(to, group_name(from, row->group));
        tare__csv_text(to, path.data);
        tare__csv_text(to, row->name);
        tare__csv_text(to, row->kind ? tare__span_kind_word(row->kind) : "others");
        tare__csv_text(to, row->file);
        tare__csv_known(to, row->file ? row->line : 0);
        tare__csv_count(to, row->calls);
        tare__csv_count(to, row->still_open);
        tare__csv_count(to, row->end_lost);
        tare__csv_count(to, row->left_open);
        tare__csv_count(to, row->continued);
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
        tare__csv_count(to, row->job_count);
        tare__csv_count(to, row->ranks);
        tare__csv_count(to, row->unfinished);
        tare__csv_ns(to, row->total_ns);
        durations(to, &row->each);
        tare__csv_flag(to, row->exact);
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

void tare__csv_put_steps(csv *to, const tare__analysis *from)
{
    put_step_rows(to, from, from->steps, from->n_steps);
}

void tare__csv_put_epochs(csv *to, const tare__analysis *from)
{
    put_step_rows(to, from, from->epochs, from->n_epochs);
}

static void put_slow_rows(csv *to, const tare__analysis *from, const char *table, const tare__step_row *rows,
                          size_t n)
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
            tare__csv_row(to, slow->thread);
            tare__csv_end_row(to);
        }
    }
}

void tare__csv_put_slowest(csv *to, const tare__analysis *from)
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
        tare__csv_flag(to, rows[i].estimated);
        tare__csv_count(to, rows[i].inspected);
        tare__csv_end_row(to);
    }
}

void tare__csv_put_numbers(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_spans; i++)
        put_number_rows(to, "spans", i, from->spans[i].numbers, from->spans[i].n_numbers);
    for (size_t i = 0; i < from->n_steps; i++)
        put_number_rows(to, "steps", i, from->steps[i].numbers, from->steps[i].n_numbers);
    for (size_t i = 0; i < from->n_epochs; i++)
        put_number_rows(to, "epochs", i, from->epochs[i].numbers, from->epochs[i].n_numbers);
}

/* ---- the other tables of spans --------------------------------------------------------------------------- */
void tare__csv_put_aggregates(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_aggregates && !to->status; i++) {
        const tare__aggregate_row *row = &from->aggregates[i];
        tare__csv_text(to, row->name);
        tare__csv_text(to, row->file);
        tare__csv_known(to, row->file ? row->line : 0);
        tare__csv_count(to, row->every);
        tare__csv_count(to, row->calls);
        tare__csv_count(to, row->timed);
        tare__csv_flag(to, row->estimated);
        tare__csv_ns(to, row->total_ns);
        durations(to, &row->each);
        tare__csv_text(to, row->timed ? NULL : "none was timed");
        tare__csv_end_row(to);
    }
}

void tare__csv_put_counters(csv *to, const tare__analysis *from)
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

void tare__csv_put_marks(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_marks && !to->status; i++) {
        tare__csv_text(to, from->marks[i].name);
        tare__csv_count(to, from->marks[i].n);
        tare__csv_ns(to, from->marks[i].first_at_ns);
        tare__csv_ns(to, from->marks[i].last_at_ns);
        tare__csv_end_row(to);
    }
}

void tare__csv_put_tracks(csv *to, const tare__analysis *from)
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
