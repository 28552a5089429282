/* steps: durations of steps and epochs: all of them while there are few, then a histogram; and the slowest ones.
 * Owned by the thread that analyzes.
 * Must not know how steps are recorded. */
#include <stdlib.h>
#include <string.h>

#include "analyze/inner.h"

#define EXACT_MAX ((size_t)65536)       /* of one table */
#define EXACT_ALL_MAX ((size_t)524288)  /* of all tables together */
#define TABLES_MAX ((size_t)1024)

/* ---- while reading ------------------------------------------------------------------------------- */
static steps *steps_of(work *work, uint32_t name, uint32_t group)
{
    for (size_t i = 0; i < work->n_steps; i++)
        if (work->steps[i].name == name && work->steps[i].group == group)
            return &work->steps[i];
    if (work->n_steps >= TABLES_MAX) {
        work->steps_refused = true;
        return NULL;
    }
    if (!tare__array_fit(&work->steps, &work->steps_room, work->n_steps + 1, sizeof *work->steps))
        return NULL;
    steps *fresh = &work->steps[work->n_steps++];
    *fresh = (steps){.name = name, .group = group, .min = UINT64_MAX, .first_begin = UINT64_MAX};
    fresh->hist.bits = TARE__HIST_BITS_MAX;
    return fresh;
}

static int make_coarse(work *work, steps *steps)
{
    int status = 0;
    for (size_t i = 0; i < steps->n_exact && !status; i++)
        status = tare__hist_add(&steps->hist, steps->exact[i], 1);
    work->exact_values -= steps->n_exact;
    free(steps->exact);
    steps->exact = NULL;
    steps->n_exact = steps->exact_room = 0;
    steps->coarse = true;
    return status;
}

static int keep_duration(work *work, steps *steps, uint64_t duration)
{
    if (!steps->coarse && (steps->n_exact == EXACT_MAX || work->exact_values >= EXACT_ALL_MAX)) {
        int status = make_coarse(work, steps);
        if (status)
            return status;
    }
    if (steps->coarse)
        return tare__hist_add(&steps->hist, duration, 1);
    if (!tare__array_fit(&steps->exact, &steps->exact_room, steps->n_exact + 1, sizeof *steps->exact))
        return TARE_E_MEMORY;
    steps->exact[steps->n_exact++] = duration;
    work->exact_values++;
    return 0;
}

static void keep_if_slow(steps *steps, const slow_step *step)
{
    size_t at = steps->n_slowest;
    while (at && steps->slowest[at - 1].duration < step->duration)
        at--;
    if (at == TARE__SLOWEST)
        return;
    if (steps->n_slowest < TARE__SLOWEST)
        steps->n_slowest++;
    memmove(&steps->slowest[at + 1], &steps->slowest[at], (steps->n_slowest - 1 - at) * sizeof *step);
    steps->slowest[at] = *step;
}

/* Removes the index of the step at this depth, and those of deeper ones. */
static bool take_index(stream *stream, uint32_t depth, open_index *index)
{
    bool found = false;
    while (stream->n_indexes && stream->indexes[stream->n_indexes - 1].depth >= depth) {
        *index = stream->indexes[--stream->n_indexes];
        found = index->depth == depth;
    }
    return found;
}

bool tare__analyze_is_taken_back(const stream *stream, uint32_t depth)
{
    for (uint32_t at = stream->n_indexes; at && stream->indexes[at - 1].depth >= depth; at--)
        if (stream->indexes[at - 1].depth == depth)
            return stream->indexes[at - 1].taken_back;
    return false;
}

double tare__analyze_open_index(const stream *stream, uint32_t depth)
{
    for (uint32_t at = stream->n_indexes; at && stream->indexes[at - 1].depth >= depth; at--)
        if (stream->indexes[at - 1].depth == depth)
            return stream->indexes[at - 1].taken_back ? -1 : (double)stream->indexes[at - 1].index;
    return NAN;
}

/* Out of memory, or with too many nested steps, the index is not known; nothing else depends on it. */
void tare__analyze_step_index(stream *stream, uint32_t depth, double value)
{
    open_index before;
    take_index(stream, depth, &before);
    bool taken_back = value == -1;
    if (!stream->indexes)
        stream->indexes = calloc(OPEN_INDEXES, sizeof *stream->indexes);
    if (!stream->indexes || stream->n_indexes == OPEN_INDEXES || !(taken_back || (value >= 0 && value < 0x1p63)))
        return;
    stream->indexes[stream->n_indexes++] = (open_index){taken_back ? 0 : (uint64_t)value, depth, taken_back};
}

/* Time between the previous step and this one: for a partial step, including its unrecorded part. */
static void add_gap(step_use *use, const slow_step *step, uint64_t ticks, const aside *in)
{
    uint64_t gap = use->count && step->begin > use->last_end ? step->begin - use->last_end : 0;
    use->in_steps += ticks;
    use->between += gap;
    use->between_in.forward += gap ? in->forward : 0;
    use->between_in.reported += gap ? in->reported : 0;
    use->gaps += gap > 0;
    use->longest_gap = gap > use->longest_gap ? gap : use->longest_gap;
}

/* Durations are of complete steps. Those of partial steps are kept until there is a complete one. */
static int take_duration(work *work, steps *steps, const slow_step *step)
{
    uint64_t whole = steps->count - steps->partial; /* this one is already counted */
    if (step->partial && whole)
        return 0;
    if (!step->partial && whole == 1 && !steps->coarse) {
        work->exact_values -= steps->n_exact;
        steps->n_exact = 0;
        steps->timed = steps->timed_total = steps->max = 0;
        steps->min = UINT64_MAX;
    }
    steps->timed++;
    steps->timed_total += step->duration;
    steps->min = step->duration < steps->min ? step->duration : steps->min;
    steps->max = step->duration > steps->max ? step->duration : steps->max;
    return keep_duration(work, steps, step->duration);
}

int tare__analyze_step(work *work, stream *stream, const frame *frame, uint32_t depth, uint64_t now, how_ended how)
{
    slow_step step = {.duration = now - frame->span.begin, .begin = frame->span.begin, .stream = stream};
    open_index index = {0};
    step.has_index = take_index(stream, depth, &index);
    step.index = index.index;
    bool none = step.has_index && index.taken_back;
    steps *steps = none ? NULL : steps_of(work, frame->node->name, stream->group);
    struct steps *counts = how == ENDED ? steps : NULL;
    int status = tare__analyze_take_parts(work, stream, depth, counts, &step);
    uint64_t inspected = counts ? counts->inspected : 0, left_out = counts ? counts->left_out : 0,
             partial = counts ? counts->partial : 0, outermost = counts ? counts->outermost : 0;
    if (!status)
        status = tare__analyze_take_numbers(work, stream, depth, counts, step.duration);
    if (none)
        return status;
    if (!steps || status)
        return status || work->steps_refused ? status : TARE_E_MEMORY;
    if (how != ENDED) {
        steps->unfinished++;
        return 0;
    }
    if (work->names.rows[frame->node->name].kind == TARE_KIND_STEP) {
        stream->steps++;
        stream->step_ticks += step.duration;
        status = tare__analyze_phase_step(work, stream, frame, now);
        if (status)
            return status;
    }
    step_use *use = tare__analyze_step_use(stream, (size_t)(steps - work->steps));
    if (!use)
        return TARE_E_MEMORY;
    step.partial = steps->partial > partial;
    if (steps->outermost > outermost)
        add_gap(use, &step, steps->outermost - outermost, &stream->since_step);
    stream->since_step = (aside){0};
    use->count++;
    uint64_t begin = step.partial ? now : step.begin; /* the duration of a partial step is not known */
    use->first_begin = begin < use->first_begin ? begin : use->first_begin;
    use->last_end = now > use->last_end ? now : use->last_end;
    use->inspected |= steps->inspected > inspected;
    use->left_out += steps->left_out > left_out;
    steps->count++;
    steps->total += step.duration;
    if (step.begin < steps->first_begin) {
        steps->first_begin = step.begin;
        steps->first_duration = step.duration;
        steps->first_partial = step.partial;
    }
    keep_if_slow(steps, &step);
    return take_duration(work, steps, &step);
}

/* ---- table --------------------------------------------------------------------------------------- */
static tare__step_interval interval_of(const double *sorted, size_t n, double q)
{
    tare__interval interval = tare__quantile_interval(sorted, n, q, 0.95);
    return (tare__step_interval){interval.low, interval.high, interval.needed};
}

/* The median without one value, which must be among them. */
static double median_without(double *sorted, size_t n, double value)
{
    size_t at = 0;
    while (at + 1 < n && sorted[at] < value)
        at++;
    memmove(sorted + at, sorted + at + 1, (n - 1 - at) * sizeof *sorted);
    return tare__quantile_sorted(sorted, n - 1, 0.5);
}

static int exact_figures(const steps *steps, double tick_ns, tare__step_row *row)
{
    size_t n = steps->n_exact;
    double *sorted = malloc((n + 1) * sizeof *sorted);
    if (!sorted)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        sorted[i] = (double)steps->exact[i] * tick_ns;
    tare__sort(sorted, n);
    row->exact = true;
    row->each.p50_ns = tare__quantile_sorted(sorted, n, 0.5);
    row->each.p95_ns = tare__quantile_sorted(sorted, n, 0.95);
    row->each.p99_ns = tare__quantile_sorted(sorted, n, 0.99);
    row->p50 = interval_of(sorted, n, 0.5);
    row->p95 = interval_of(sorted, n, 0.95);
    if (!row->first_timed)
        row->rest_p50_ns = row->each.p50_ns;
    else if (n > 1)
        row->rest_p50_ns = median_without(sorted, n, (double)steps->first_duration * tick_ns);
    if (!isnan(row->rest_p50_ns))
        row->rest_min_ns = sorted[0];
    free(sorted);
    return 0;
}

static void slowest_of(const work *work, const steps *steps, double tick_ns, tare__step_row *row)
{
    row->n_slowest = steps->n_slowest;
    for (size_t i = 0; i < steps->n_slowest; i++) {
        const slow_step *slow = &steps->slowest[i];
        row->slowest[i] = (tare__slow_step){
            .duration_ns = (double)slow->duration * tick_ns,
            .start_at_ns = tare__trace_ns(work->trace, slow->begin),
            .index = slow->index,
            .has_index = slow->has_index,
            .partial = slow->partial,
            .thread = slow->stream->row,
        };
    }
}

/* Seconds that the number of steps and the sums of numbers are divided by: the time in steps, concurrent steps
 * counted once, so that samples/s is steps/s times the samples per step, in whichever step a prefetching loader
 * delivers them. Time between steps (evaluation, unrecorded parts), and inspected and partial steps, count in
 * neither. If all steps were inspected, these are used. */
typedef struct rated {
    double seconds; /* 0: there are none */
    uint64_t steps, of_job;
    bool all;
} rated;

static rated rated_steps(const steps *steps, const step_job *job, double tick_ns)
{
    bool all = steps->left_out == steps->count && !steps->partial;
    uint64_t left_out = all ? 0 : steps->left_out, ticks = steps->outermost - (all ? 0 : steps->left_out_ticks);
    uint64_t of_job = all ? job->count : job->whole;
    return (rated){(double)ticks / job->at_once * tick_ns / 1e9, steps->count - left_out, of_job, all};
}

/* A number recorded only in inspected steps is assumed to be the same in the others: FLOP/s is FLOPs per step times
 * steps/s. */
static double rate_of(const step_number *number, const step_job *job, const rated *rated)
{
    if (!(rated->seconds > 0) || !rated->steps)
        return NAN;
    if (number->inspected)
        return number->sum / ((double)job->inspections * rated->seconds / (double)rated->steps);
    return (rated->all ? number->sum : number->sum - number->left_out) / rated->seconds;
}

static int put_numbers(const work *work, const steps *steps, const step_job *job, tare__arena *arena,
                       tare__step_row *row)
{
    bool epochs = work->names.rows[steps->name].kind == TARE_KIND_EPOCH;
    tare__number_row *made = tare__arena_alloc(arena, (steps->n_numbers + 1) * sizeof *made);
    if (!made)
        return TARE_E_MEMORY;
    rated rated = rated_steps(steps, job, tare__trace_tick_ns(work->trace));
    for (size_t i = 0; i < steps->n_numbers; i++) {
        const step_number *number = &steps->numbers[i];
        if (number->inspected && epochs)
            continue; /* one step says nothing about an epoch */
        made[row->n_numbers++] = (tare__number_row){
            .name = copied(arena, work->names.rows[number->name].text),
            .n = number->n,
            .sum = number->sum,
            .rate = rate_of(number, job, &rated),
            .estimated = number->inspected,
            .inspected = number->inspected ? job->inspections : 0,
        };
    }
    tare__analyze_sort_numbers(made, row->n_numbers);
    row->numbers = made;
    return 0;
}

static int fill_row(work *work, const steps *steps, tare__analysis *analysis, tare__step_row *row)
{
    step_job job;
    int status = tare__analyze_step_job(work, (size_t)(steps - work->steps), &job);
    if (status)
        return status;
    double tick_ns = tare__trace_tick_ns(work->trace);
    *row = (tare__step_row){
        .name = copied(analysis->arena, work->names.rows[steps->name].text),
        .group = steps->group,
        .count = steps->count,
        .job_count = job.count,
        .ranks = job.ranks,
        .unfinished = steps->unfinished,
        .partial = steps->partial,
        .total_ns = (double)steps->total * tick_ns,
        .timed = steps->timed,
        .timed_ns = (double)steps->timed_total * tick_ns,
        .first_timed = steps->count && (!steps->first_partial || steps->partial == steps->count),
        .each = tare__analyze_durations(work, &steps->hist, steps->min, steps->max, (double)steps->timed_total,
                                        steps->timed),
        .p50 = {NAN, NAN, 0},
        .p95 = {NAN, NAN, 0},
        .per_second = NAN,
        .first_ns = NAN,
        .rest_p50_ns = NAN,
        .rest_min_ns = NAN,
        .from_first_ns = (double)(job.in_steps + job.between) * tick_ns,
        .between_ns = (double)job.between * tick_ns,
        .between_forward_ns = (double)job.between_in.forward * tick_ns,
        .between_reported_ns = (double)job.between_in.reported * tick_ns,
        .longest_gap_ns = (double)job.longest_gap * tick_ns,
        .gaps = job.gaps,
    };
    if (steps->count) {
        rated rated = rated_steps(steps, &job, tick_ns);
        row->per_second = rated.seconds > 0 ? (double)rated.of_job / rated.seconds : NAN;
        row->first_ns = (double)steps->first_duration * tick_ns;
        row->rest_p50_ns = steps->coarse ? row->each.p50_ns : NAN; /* one of 65,536 values does not change the median */
    }
    slowest_of(work, steps, tick_ns, row);
    status = steps->coarse ? 0 : exact_figures(steps, tick_ns, row);
    tare__analyze_step_bins(steps, tick_ns, row);
    if (!status)
        status = tare__analyze_step_course(work, steps, analysis->arena, row);
    return status ? status : put_numbers(work, steps, &job, analysis->arena, row);
}

static int fill_rows(work *work, tare__analysis *analysis, uint32_t kind, const tare__step_row **rows, size_t *n)
{
    tare__step_row *made = tare__arena_alloc(analysis->arena, work->n_steps * sizeof *made);
    int status = made ? 0 : TARE_E_MEMORY;
    *n = 0;
    for (size_t i = 0; i < work->n_steps && !status; i++)
        if (work->names.rows[work->steps[i].name].kind == kind)
            status = fill_row(work, &work->steps[i], analysis, &made[(*n)++]);
    *rows = made;
    return status;
}

int tare__analyze_steps_table(work *work, tare__analysis *analysis)
{
    int status = fill_rows(work, analysis, TARE_KIND_STEP, &analysis->steps, &analysis->n_steps);
    if (!status)
        status = fill_rows(work, analysis, TARE_KIND_EPOCH, &analysis->epochs, &analysis->n_epochs);
    return status;
}
