/* rules_loop: steps that spend much of their time outside of loaders, forward, backward and optimizer.
 * Owned by the thread that analyzes.
 * Must not know how phases were noted. */
#include <math.h>
#include <string.h>

#include "rules.h"

typedef struct sums {
    double all_ns, named_ns, steps;
} sums;

/* False: no steps with phases, or too few to tell. */
static bool sums_of(const tare__analysis *of, sums *sum)
{
    *sum = (sums){0};
    for (size_t i = 0; i < of->n_steps; i++) {
        const tare__step_course *course = &of->steps[i].course;
        for (size_t bin = 0; course->phases && bin < course->n_bins; bin++) {
            sum->all_ns += course->bins[bin].total_ns;
            sum->steps += (double)course->bins[bin].steps;
            for (size_t part = 0; part < course->n_parts; part++)
                sum->named_ns += course->bins[bin].parts_ns[part];
        }
    }
    return of->run.clock_known && sum->steps >= limit(LIMIT_FEWEST_STEPS) && sum->all_ns > 0;
}

/* The line with most of the stack samples that were in a step and in no phase of it; NULL: there are none. */
static const tare__aggregate_row *line_of(const tare__analysis *of, double *share)
{
    static const char start[] = "step @ ";
    const tare__aggregate_row *most = NULL;
    double all = 0;
    for (size_t i = 0; i < of->n_aggregates; i++) {
        const tare__aggregate_row *row = &of->aggregates[i];
        if (!row->file || strncmp(row->name, start, sizeof start - 1) != 0 || !(row->total_ns > 0))
            continue;
        all += row->total_ns;
        if (!most || row->total_ns > most->total_ns)
            most = row;
    }
    *share = most ? most->total_ns / all : NAN;
    return most;
}

static void say_line(findings *out, tare__finding *finding, const tare__analysis *of)
{
    double share;
    const tare__aggregate_row *line = line_of(of, &share);
    const char *function = line ? strrchr(line->name, ' ') : NULL;
    if (line)
        tare__finding_say(out, &finding->evidence, "%s of the stack samples there are at %s:%u, in %s.",
                          tare__show(share, TARE__SHOW_SHARE).text, line->file, (unsigned)line->line,
                          function ? function + 1 : "?");
    tare__finding_say(out, &finding->advice,
                      "If %s loads data, load the next batch while the model computes: in a DataLoader with workers, or "
                      "in a thread. Else make it cheaper, or do it less often than in every step.",
                      line ? "that line" : "the code between the optimizer's step and the next forward");
}

void tare__rule_outside_model(findings *out, const tare__analysis *of)
{
    sums sum;
    if (!sums_of(of, &sum))
        return;
    double other = sum.all_ns - sum.named_ns, share = other / sum.all_ns;
    if (!(share > limit(LIMIT_OUTSIDE_MODEL)))
        return;
    tare__finding *finding = tare__finding_add(out, TARE__WARNING);
    tare__finding_say(out, &finding->title, "%s of step time is spent outside the model",
                      tare__show(share, TARE__SHOW_SHARE).text);
    tare__finding_say(out, &finding->evidence,
                      "%s of %s in %s steps went neither into a DataLoader nor into forward, backward or optimizer.",
                      tare__show_time(other).text, tare__show_time(sum.all_ns).text,
                      tare__show(sum.steps, TARE__SHOW_COUNT).text);
    say_line(out, finding, of);
    finding->gain = fmin(other / fmax(of->run.elapsed_ns, sum.all_ns), 1);
    tare__finding_say(out, &finding->gain_how, "all of that time (Amdahl's law)");
    tare__finding_figure(out, finding, "share", share, TARE__SHOW_SHARE);
    tare__finding_figure(out, finding, "outside", other / 1e9, TARE__SHOW_SECONDS);
}
