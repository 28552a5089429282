/* rules_ranks: one process of a distributed job keeps the others waiting.
 * Owned by the thread that analyzes.
 * Must not know how ranks were told. */
#include <math.h>
#include <stdlib.h>

#include "rules.h"

/* What a rank does by itself in a step. Ranks wait for each other where gradients are summed up, in the backward
 * pass: with it, all of them would look alike. */
static double own_ns(const tare__process_row *row)
{
    return (row->steps_ns - row->backward_ns) / (double)row->steps;
}

static bool takes_part(const tare__process_row *row)
{
    return row->has_rank && (double)row->steps >= limit(LIMIT_FEWEST_STEPS);
}

static int by_value(const void *a, const void *b)
{
    const double *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* The median of all but the slowest; NaN: no memory, or nobody else. */
static double others_ns(const tare__analysis *of, const tare__process_row *slowest)
{
    double *values = malloc((of->n_processes + 1) * sizeof *values);
    size_t n = 0;
    for (size_t i = 0; values && i < of->n_processes; i++)
        if (takes_part(&of->processes[i]) && &of->processes[i] != slowest)
            values[n++] = own_ns(&of->processes[i]);
    if (n)
        qsort(values, n, sizeof *values, by_value);
    double median = n ? (values[(n - 1) / 2] + values[n / 2]) / 2 : NAN;
    free(values);
    return median;
}

void tare__rule_straggler(findings *out, const tare__analysis *of)
{
    const tare__process_row *slowest = NULL;
    for (size_t i = 0; of->run.clock_known && i < of->n_processes; i++) {
        const tare__process_row *row = &of->processes[i];
        if (takes_part(row) && (!slowest || own_ns(row) > own_ns(slowest)))
            slowest = row;
    }
    double others = slowest ? others_ns(of, slowest) : NAN;
    double own = slowest ? own_ns(slowest) : NAN, lost = own - others;
    if (!(own > limit(LIMIT_STRAGGLER) * others) ||
        !(lost > limit(LIMIT_STRAGGLER_LOST) * slowest->steps_ns / (double)slowest->steps))
        return;
    tare__finding *finding = tare__finding_add(out, TARE__WARNING);
    tare__finding_say(out, &finding->title, "Rank %llu keeps the others waiting: %s of its own in a step, theirs %s",
                      (unsigned long long)slowest->rank, tare__show_time(own).text, tare__show_time(others).text);
    tare__finding_say(out, &finding->evidence,
                      "Outside of the backward pass, in which ranks wait for each other, process %lld took %s a step "
                      "on average over %s steps; the median of the other ranks is %s.",
                      (long long)slowest->pid, tare__show_time(own).text,
                      tare__show((double)slowest->steps, TARE__SHOW_COUNT).text, tare__show_time(others).text);
    tare__finding_say(out, &finding->advice,
                      "tare report --by process shows its phases beside the others'. Give each rank as much data, "
                      "and as long samples; look for others on its cores or its disk.");
    finding->gain = fmin(lost * (double)slowest->steps / of->run.elapsed_ns, 1);
    tare__finding_say(out, &finding->gain_how, "if it were as fast as the others");
    tare__finding_figure(out, finding, "own", own / 1e9, TARE__SHOW_SECONDS);
    tare__finding_figure(out, finding, "others", others / 1e9, TARE__SHOW_SECONDS);
    tare__finding_figure(out, finding, "rank", (double)slowest->rank, TARE__SHOW_COUNT);
}
