/* rules_loop: time in steps outside of loaders and phases of the model; time between steps; whether steps wait for a
 * GPU. Owned by the thread that analyzes.
 * Must not know how phases were recorded. */
#include <math.h>
#include <string.h>

#include "training.h"

typedef struct sums {
    double all_ns, named_ns, steps;
} sums;

/* Inside a step but outside its phases: time in a phase counts there. */
static bool is_beside_phases(const tare__analysis *of, const tare__span_row *row)
{
    for (uint32_t at = row->parent; at != TARE__NO_ROW; at = of->spans[at].parent) {
        if (of->spans[at].kind == TARE_KIND_STEP)
            return true;
        if (of->spans[at].kind == TARE_KIND_PHASE || tare__span_is_reported(of->spans[at].name))
            return false;
    }
    return false;
}

/* False: no steps with phases, or too few. */
static bool sums_of(const tare__analysis *of, sums *sum)
{
    *sum = (sums){0};
    for (size_t i = 0; i < of->n_spans; i++)
        if (tare__span_is_reported(of->spans[i].name) && is_beside_phases(of, &of->spans[i]))
            sum->named_ns += of->spans[i].total_ns;
    for (size_t i = 0; i < of->n_steps; i++) {
        const tare__step_course *course = &of->steps[i].course;
        for (size_t bin = 0; course->phases && bin < course->n_bins; bin++) {
            sum->all_ns += course->bins[bin].total_ns;
            sum->steps += (double)course->bins[bin].steps;
            for (size_t part = 0; part < course->n_parts; part++)
                sum->named_ns += course->bins[bin].parts_ns[part];
        }
    }
    sum->named_ns = fmin(sum->named_ns, sum->all_ns);
    return of->run.clock_known && sum->steps >= limit(LIMIT_FEWEST_STEPS) && sum->all_ns > 0;
}

/* Maximum number of Python threads besides the training thread. */
static double python_threads(const tare__analysis *of)
{
    for (size_t i = 0; i < of->n_counters; i++)
        if (strcmp(of->counters[i].name, "python.threads") == 0)
            return of->counters[i].max;
    return 0;
}

/* If loading already runs in the background, the advice must not be to move it there. */
static void advise(findings *out, const tare__analysis *of, bool line)
{
    const char *what = line ? "that line" : "the code between the optimizer's step and the next forward";
    tare__fact_row workers;
    if (tare__fact_sum(of, "torch.loader.workers", &workers) && workers.max >= 1)
        tare__say_advice(out,
                         "Batches are loaded by %s already. Make %s cheaper, or do it less often than in every step.",
                         tare__show_counted(workers.max, "DataLoader worker", NULL).text, what);
    else if (python_threads(of) >= 1)
        tare__say_advice(out,
                         "If %s waits for another thread of the program, make that thread's work cheaper, or split it "
                         "over several processes. Else make it cheaper, or do it less often than in every step.", what);
    else
        tare__say_advice(out,
                         "If %s loads data, load the next batch while the model computes: in a worker process "
                         "or a thread. Else make it cheaper, or do it less often than in every step.",
                         what);
}

static double gain_outside_model(const tare__analysis *rank, const void *context)
{
    sums sum;
    (void)context;
    sums_of(rank, &sum);
    return tare__beside_gpu(rank, (sum.all_ns - sum.named_ns) / fmax(rank->run.elapsed_ns, sum.all_ns));
}

static bool is_outside_model(tare__open_spans spans, const void *context)
{
    (void)context;
    return tare__open_kind(spans, TARE_KIND_STEP) && !tare__open_kind(spans, TARE_KIND_PHASE) &&
           !tare__open_start(spans, TARE__SYNC) && !tare__open_start(spans, TARE__CHECKPOINT) &&
           !tare__open_start(spans, TARE__WORKERS);
}

void tare__rule_outside_model(findings *out, const tare__analysis *of)
{
    sums sum;
    if (!sums_of(of, &sum))
        return;
    double other = sum.all_ns - sum.named_ns, share = other / sum.all_ns;
    if (!(share > limit(LIMIT_OUTSIDE_MODEL)))
        return;
    tare__finding_add(out, TARE__WARNING);
    tare__say_title(out, "%s of step time is spent outside the model", percent(share).text);
    tare__say_evidence(out,
                       "%s of %s in %s steps went neither into a DataLoader, forward, backward, optimizer or "
                       "torch.save nor into waiting for a GPU.", tare__show_time(other).text,
                       tare__show_time(sum.all_ns).text, count(sum.steps).text);
    const tare__hot_question question = {
        .within = is_outside_model, /* of steps as they were recorded: what is between them may be in their spans */
        .most_ns = other,
        .time = "the time in steps outside the model"};
    advise(out, of, tare__say_line(out, of, &question, "step", NULL, " there"));
    tare__say_rank_gain(out, of, gain_outside_model, NULL, "all of that time (Amdahl's law)");
    tare__say_figure(out, "share", share, TARE__SHOW_SHARE);
    tare__say_figure(out, "outside", other / 1e9, TARE__SHOW_SECONDS);
}

/* ---- between steps --------------------------------------------------------------------------- */
typedef struct between {
    double all_ns, ns, longest_ns, gaps; /* from the first step to the last; of that outside of steps, and not
                                          * covered by other rules */
    double forward_ns;                   /* of that: forward passes */
} between;

static between between_of(const tare__analysis *of)
{
    between sum = {0};
    for (size_t i = 0; i < of->n_steps; i++) {
        sum.all_ns += of->steps[i].from_first_ns;
        sum.ns += of->steps[i].between_ns - of->steps[i].between_reported_ns; /* these have separate rules */
        sum.forward_ns += of->steps[i].between_forward_ns;
        sum.longest_ns += of->steps[i].longest_gap_ns;
        sum.gaps += (double)of->steps[i].gaps;
    }
    sum.ns = fmax(sum.ns, 0);
    sum.forward_ns = fmin(sum.forward_ns, sum.ns);
    return sum;
}

static double gain_outside_steps(const tare__analysis *rank, const void *context)
{
    between sum = between_of(rank);
    (void)context;
    return tare__beside_gpu(rank, sum.ns / fmax(rank->run.elapsed_ns, sum.all_ns));
}

static bool is_between_steps(tare__open_spans spans, const void *context)
{
    (void)context;
    return !tare__open_kind(spans, TARE_KIND_STEP) && !tare__in_phase(spans, "data") &&
           !tare__open_start(spans, TARE__CHECKPOINT) && !tare__open_start(spans, TARE__WORKERS);
}

/* A single long gap is an evaluation or a pause; only several gaps are a property of the program. Steps with several
 * names may be nested or concurrent, so that the time between them is not known. */
void tare__rule_outside_steps(findings *out, const tare__analysis *of)
{
    between sum = between_of(of);
    double share = sum.ns / sum.all_ns;
    if (!of->run.clock_known || of->n_steps != 1 || (double)of->steps[0].count < limit(LIMIT_FEWEST_STEPS) ||
        sum.gaps < 2 || !(sum.ns - sum.longest_ns > limit(LIMIT_OUTSIDE_STEPS) * sum.all_ns))
        return;
    tare__finding_add(out, TARE__INFO); /* evaluation and data collection are not faults */
    tare__say_title(out, "%s of the time between the first and the last step is outside steps", percent(share).text);
    tare__say_evidence(out, "%s of %s went into no step and no DataLoader, between %s.", tare__show_time(sum.ns).text,
                       tare__show_time(sum.all_ns).text,
                       tare__show_counted((double)of->steps[0].count, "step", NULL).text);
    if (sum.forward_ns > 0.01 * sum.ns)
        tare__say_evidence(out, "For %s of it models computed without training.", tare__show_time(sum.forward_ns).text);
    const tare__hot_question question = {
        .within = is_between_steps, .thread = tare__is_leading, .time = "the time outside steps"};
    bool line = tare__say_line(out, of, &question, "between", "evaluation ", " there");
    tare__say_advice(out,
                     "If %s collects data or evaluates, do it in larger batches, less often, or in other processes "
                     "while the model trains.", line ? "that line" : "the code between the steps");
    tare__say_rank_gain(out, of, gain_outside_steps, NULL, "all of that time (Amdahl's law)");
    tare__say_figure(out, "share", share, TARE__SHOW_SHARE);
    tare__say_figure(out, "outside", sum.ns / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "forward", sum.forward_ns / 1e9, TARE__SHOW_SECONDS);
}

/* ---- steps on a GPU -------------------------------------------------------------------------- */
static bool is_in_step(const tare__analysis *of, const tare__span_row *row)
{
    for (uint32_t at = row->parent; at != TARE__NO_ROW; at = of->spans[at].parent)
        if (of->spans[at].kind == TARE_KIND_STEP)
            return true;
    return false;
}

/* Steps that end before the GPU has finished the work they queued: the first steps do not wait at all, later ones
 * wait for space in its queue. */
bool tare__steps_only_queue(const tare__analysis *of)
{
    double steps = 0, waits = 0;
    for (size_t i = 0; i < of->n_steps; i++)
        steps += of->steps[i].course.phases ? (double)of->steps[i].count : 0;
    for (size_t i = 0; i < of->n_spans && steps > 0; i++)
        if (strncmp(of->spans[i].name, TARE__SYNC, strlen(TARE__SYNC)) == 0 && is_in_step(of, &of->spans[i]))
            waits += (double)of->spans[i].calls;
    return steps > 0 && waits < 0.5 * steps && tare__any_gpu_used(of);
}
