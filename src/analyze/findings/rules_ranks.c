/* rules_ranks: a slow process of a distributed job that others wait for; the combined gain of several ranks.
 * Owned by the thread that analyzes.
 * Must not know how ranks were determined. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

/* ---- gains ----------------------------------------------------------------------------------- */
#define COLD 0.1 /* additional share of what is saved, at most: ranks that wait less have warm caches */

typedef struct ranked {
    const tare__analysis *rank;
    double from_ns, to_ns; /* its first and last event */
    double own, sum;       /* its gain; and including ranks that ran before it */
    double bound;          /* of the gain of all ranks that run at the same time */
} ranked;

typedef struct passes {
    double total_ns;
    double least_ns; /* if each pass were as fast as the fastest one */
} passes;

/* phase: NULL for all phases. */
static passes passes_of(const tare__analysis *rank, const char *phase)
{
    passes sum = {0};
    for (size_t i = 0; i < rank->n_spans; i++) {
        const tare__span_row *row = &rank->spans[i];
        if (row->kind != TARE_KIND_PHASE || (phase && strcmp(row->name, phase) != 0) || !(row->each.min_ns >= 0))
            continue;
        sum.total_ns += row->total_ns;
        sum.least_ns += fmin((double)row->calls * row->each.min_ns, row->total_ns);
    }
    return sum;
}

/* Time in passes beyond that of the fastest one: in the backward pass it may be waiting for other ranks, which ends
 * with the cause of their delay; other passes are slower after a wait, with cold caches. */
static double waiting_ns(const tare__analysis *rank)
{
    static const char *const phases[] = {"forward", "backward", "optimizer"};
    double sum = 0;
    for (size_t i = 0; i < TARE__COUNT_OF(phases); i++) {
        passes one = passes_of(rank, phases[i]);
        sum += one.total_ns - one.least_ns;
    }
    return sum;
}

static double waiting_share(const tare__analysis *rank)
{
    return rank->processes->has_rank && rank->run.elapsed_ns > 0 ? waiting_ns(rank) / rank->run.elapsed_ns : 0;
}

static ranked rank_at(const tare__analysis *rank, rank_gain *gain, const void *context)
{
    ranked row = {.rank = rank, .from_ns = INFINITY, .to_ns = -INFINITY, .own = fmax(0, gain(rank, context))};
    for (size_t i = 0; i < rank->n_threads; i++) { /* NaN for a thread without events, which fmin and fmax ignore */
        row.from_ns = fmin(row.from_ns, rank->threads[i].first_at_ns);
        row.to_ns = fmax(row.to_ns, rank->threads[i].last_at_ns);
    }
    return row;
}

/* Ranks wait for the slowest, which may be a different rank each time: a rank gains its own saving and its waiting
 * for others; but at most the sum of the savings of all ranks. */
static void bound_with_waiting(ranked *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double together = 0;
        for (size_t j = 0; j < n; j++)
            together += rows[j].from_ns < rows[i].to_ns && rows[i].from_ns < rows[j].to_ns ? rows[j].own : 0;
        rows[i].bound = fmax(rows[i].own, fmin(rows[i].own + waiting_share(rows[i].rank), (1 + COLD) * together));
    }
}

TARE__ORDER(by_begin, ranked, TARE__RISING(from_ns))

double tare__gain_of_ranks(const tare__analysis *of, rank_gain *gain, const void *context, const tare__analysis **most)
{
    *most = NULL;
    if (!of->n_ranks)
        return fmin(gain(of, context), 1);
    ranked *rows = malloc(of->n_ranks * sizeof *rows);
    double largest = 0, one = 0;
    if (!rows)
        return NAN;
    for (size_t i = 0; i < of->n_ranks; i++)
        rows[i] = rank_at(&of->ranks[i], gain, context);
    qsort(rows, of->n_ranks, sizeof *rows, by_begin);
    bound_with_waiting(rows, of->n_ranks);
    for (size_t i = 0; i < of->n_ranks; i++) {
        double before = 0;
        for (size_t j = 0; j < i; j++)
            before = rows[j].to_ns <= rows[i].from_ns ? fmax(before, rows[j].sum) : before;
        rows[i].sum = before + rows[i].bound;
        largest = fmax(largest, rows[i].sum);
        *most = rows[i].bound > one ? rows[i].rank : *most;
        one = fmax(one, rows[i].bound);
    }
    *most = largest > one * (1 + 1e-9) ? NULL : *most;
    free(rows);
    return fmin(largest, 1);
}

void tare__say_rank_gain(findings *out, const tare__analysis *of, rank_gain *gain, const void *context, const char *how)
{
    const tare__analysis *most;
    double bound = tare__gain_of_ranks(of, gain, context, &most);
    out->failed |= of->n_ranks && isnan(bound); /* out of memory */
    tare__say_gain(out, bound, "%s", how);
    if (most && most->processes->has_rank)
        tare__say_gain(out, NAN, "(of rank %llu, which has most of it)", (unsigned long long)most->processes->rank);
    else if (most)
        tare__say_gain(out, NAN, "(of process %lld, which has most of it)", (long long)most->processes->pid);
}

/* ---- the slowest ----------------------------------------------------------------------------- */
/* Time per step that a rank computes. Ranks wait for each other where gradients are reduced, in the backward pass:
 * including it would make all ranks look equal. */
static double own_ns(const tare__process_row *row)
{
    return (row->steps_ns - row->backward_ns) / (double)row->steps;
}

static bool takes_part(const tare__process_row *row)
{
    return row->has_rank && (double)row->steps >= limit(LIMIT_FEWEST_STEPS);
}

TARE__ORDER(by_value, double, TARE__RISING_VALUE)

double tare__least_backward_ns(const tare__analysis *of)
{
    double least = NAN;
    for (size_t i = 0; i < of->n_processes; i++) {
        const tare__process_row *row = &of->processes[i];
        if (!takes_part(row))
            continue;
        for (size_t j = 0; j < i; j++)
            if (takes_part(&of->processes[j]) && of->processes[j].rank == row->rank)
                return NAN; /* jobs that ran one after the other */
        least = fmin(least, row->backward_ns);
    }
    return least;
}

/* The median of all but the slowest; NaN: out of memory, or there are no other ranks. */
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

/* Time of its backward passes if it had as much to compute as the other rank: reduced in the same proportion as its
 * forward passes. A rank with more data takes longer in both, but in the backward pass that is indistinguishable
 * from waiting. */
static double backward_like(const tare__analysis *slowest, const tare__analysis *other)
{
    double own = passes_of(slowest, "forward").total_ns / (double)slowest->processes->steps;
    double foreign = passes_of(other, "forward").total_ns / (double)other->processes->steps;
    return passes_of(slowest, "backward").least_ns / (double)slowest->processes->steps *
           (own > foreign ? foreign / own : 1);
}

/* Lower bound of a step of the job once the slowest rank is as fast as the other: phases take as long as the fastest
 * one seen, since there is no waiting and caches are warm. */
static double fastest_step_ns(const tare__analysis *slowest, const tare__analysis *other)
{
    passes all = passes_of(other, NULL), backward = passes_of(other, "backward");
    double steps = (double)other->processes->steps;
    double outside = fmax(0, other->processes->steps_ns - all.total_ns); /* outside of phases: unchanged */
    return (outside + all.least_ns - backward.least_ns) / steps +
           fmin(backward.least_ns / steps, backward_like(slowest, other));
}

static double saved_ns(const tare__analysis *of, const tare__process_row *slowest)
{
    double saved = 0;
    const tare__analysis *own = NULL;
    for (size_t i = 0; i < of->n_ranks && !own; i++)
        own = of->ranks[i].processes->pid == slowest->pid ? &of->ranks[i] : NULL;
    for (size_t i = 0; own && i < of->n_ranks; i++)
        if (takes_part(of->ranks[i].processes) && &of->ranks[i] != own)
            saved = fmax(saved, slowest->steps_ns - (double)slowest->steps * fastest_step_ns(own, &of->ranks[i]));
    return saved;
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
    tare__finding_add(out, TARE__WARNING);
    tare__say_title(out, "Rank %llu delays the others: %s of its own work per step, theirs %s",
                    (unsigned long long)slowest->rank, tare__show_time(own).text, tare__show_time(others).text);
    tare__say_evidence(out,
                       "Outside of the backward pass, in which ranks wait for each other, process %lld took %s per "
                       "step on average over %s steps; the median of the other ranks is %s.", (long long)slowest->pid,
                       tare__show_time(own).text, tare__show((double)slowest->steps, TARE__SHOW_COUNT).text,
                       tare__show_time(others).text);
    tare__say_advice(out,
                     "tare report --by process shows its phases beside the others'. Give each rank as much data, and "
                     "as long samples; look for others on its cores or its disk.");
    double saved = fmax(fmin((1 + COLD) * lost, own) * (double)slowest->steps, saved_ns(of, slowest));
    tare__say_gain(out, fmin(saved / of->run.elapsed_ns, 1), "if it were as fast as the others");
    tare__say_figure(out, "own", own / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "others", others / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "rank", (double)slowest->rank, TARE__SHOW_COUNT);
}
