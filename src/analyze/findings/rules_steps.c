/* rules_steps: variance of steps, and a slow first step.
 * Owned by the thread that analyzes.
 * Must not know what a step does. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "rules.h"

/* ---- the first step -------------------------------------------------------------------------- */
static void tell_first(findings *out, const tare__analysis *of, const tare__step_row *row)
{
    double cost = row->first_ns - row->rest_p50_ns, of_run = cost / of->run.elapsed_ns;
    tare__finding_add(out, of_run > limit(LIMIT_FIRST_STEP_OF_RUN) ? TARE__WARNING : TARE__INFO);
    tare__say_title(out, "The first %s took %s, %s times the median of the others", tare__show_name(row->name).text,
                    tare__show_time(row->first_ns).text, count(row->first_ns / row->rest_p50_ns).text);
    tare__say_evidence(out, "The first took %s; the median of the other %s is %s. It cost %s more.",
                       tare__show_time(row->first_ns).text,
                       tare__show((double)row->timed - row->first_timed, TARE__SHOW_COUNT).text,
                       tare__show_time(row->rest_p50_ns).text, tare__show_time(cost).text);
    for (size_t i = 0; i < row->n_slowest; i++) {
        if (row->slowest[i].duration_ns != row->first_ns)
            continue;
        tare__say_when(out, row->slowest[i].start_at_ns, row->slowest[i].start_at_ns + row->first_ns);
        break;
    }
    tare__say_advice(
        out,
        tare__imported(of, "torch")
            ? "Warm-up (caches, allocators, torch.compile, cudnn.benchmark, starting worker processes) counts as "
              "startup. Leave it out of measurements; cache compiled kernels between runs."
            : "Warm-up (caches, allocators, compilers) counts as startup. Leave it out of measurements.");
    tare__say_gain(out, NAN, "not predicted: gains are shares of steady-state time, and it is before that");
    tare__say_figure(out, "first", row->first_ns / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "median", row->rest_p50_ns / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "ratio", row->first_ns / row->rest_p50_ns, TARE__SHOW_COUNT);
}

void tare__rule_first_step(findings *out, const tare__analysis *of)
{
    for (size_t i = 0; of->run.clock_known && i < of->n_steps; i++) {
        const tare__step_row *row = &of->steps[i];
        if (row->count >= limit(LIMIT_FEWEST_STEPS) &&
            row->first_ns > limit(LIMIT_FIRST_STEP_RATIO) * row->rest_p50_ns &&
            row->first_ns - row->rest_p50_ns >= limit(LIMIT_FIRST_STEP_COST))
            tell_first(out, of, row);
    }
}

/* ---- variance of steps ----------------------------------------------------------------------- */
typedef struct slow {
    tare__slow_step steps[TARE__SLOWEST];
    size_t n;
    double excess_ns; /* beyond the median */
} slow;

/* The slowest steps, except the first of all and the first of each rank, model or trial. */
static slow slow_ones(const tare__step_row *row)
{
    slow found = {.n = 0};
    bool first_seen = false;
    for (size_t i = 0; i < row->n_slowest; i++) {
        bool first = !first_seen && row->slowest[i].duration_ns == row->first_ns;
        first_seen |= first;
        if (first || row->slowest[i].partial)
            continue;
        found.steps[found.n++] = row->slowest[i];
        found.excess_ns += fmax(0, row->slowest[i].duration_ns - row->rest_p50_ns);
    }
    return found;
}

/* Without the first step, which may have begun after its loading. */
static double fastest_of(const tare__step_row *row)
{
    return row->rest_min_ns > 0 ? row->rest_min_ns : row->each.min_ns;
}

/* Timed steps except the first one. */
static double rest_of(const tare__step_row *row)
{
    return (double)row->timed - row->first_timed;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Slow steps at equal distances suggest work done every n-th step. Returns n; 0: no pattern. Three random steps
 * often have a common distance: so either nearly all steps at that distance must be slow, or nearly all of the
 * slowest steps kept must have it. A step run by several ranks counts once. */
static uint64_t distance_of(const slow *slow, const tare__step_row *row)
{
    uint64_t divisor = 0, known[TARE__SLOWEST];
    size_t n = 0;
    if (slow->n < 3)
        return 0;
    double least = (row->rest_p50_ns + slow->steps[2].duration_ns) / 2; /* below, it is jitter */
    for (size_t i = 0; i < slow->n && slow->steps[i].duration_ns > least; i++) {
        uint64_t index = slow->steps[i].index;
        size_t at = 0;
        while (at < n && known[at] != index)
            at++;
        if (!slow->steps[i].has_index)
            return 0;
        if (at < n)
            continue;
        known[n++] = index;
        divisor = common_divisor(divisor, index > known[0] ? index - known[0] : known[0] - index);
    }
    bool all = n >= 3 && divisor && row->job_count / divisor <= n + 1;
    /* If every 20th step is slow, so is the 95th percentile. */
    bool usual = divisor <= 20 ? row->each.p95_ns > least : divisor > 100 || row->each.p99_ns > least;
    return divisor >= 5 && (all || (n >= TARE__SLOWEST - 1 && usual)) ? divisor : 0;
}

static void say_slow_ones(findings *out, const slow *slow, double median_ns)
{
    for (size_t i = 0; i < slow->n && i < 3; i++) {
        const tare__slow_step *step = &slow->steps[i];
        if (step->duration_ns <= median_ns)
            break;
        if (step->has_index)
            tare__say_evidence(out, "Step %" PRIu64 " at %s took %s.", step->index,
                               tare__show_time(step->start_at_ns).text, tare__show_time(step->duration_ns).text);
        else
            tare__say_evidence(out, "One at %s took %s.", tare__show_time(step->start_at_ns).text,
                               tare__show_time(step->duration_ns).text);
    }
}

/* Upper bound of the time of steps beyond the median: their total minus a lower bound of what remains. At least the
 * lower edge of its bin remains of each step, up to the median; at least the median remains of half of the steps,
 * and the fastest of the others. Faster steps do not compensate. Without bins, the mean minus the median. */
static double excess_of(const tare__step_row *row, double lost_ns)
{
    const tare__step_bins *bins = &row->bins;
    double median = row->rest_p50_ns, fastest = row->each.min_ns, high_excess = 0, stays = 0;
    uint64_t n = bins->over;
    for (size_t i = 0; i < TARE__STEP_BINS; i++) {
        double low = bins->from_ns + (double)i * bins->width_ns, high = low + bins->width_ns;
        high_excess += (double)bins->counts[i] * fmax(0, high - median);
        stays += (double)bins->counts[i] * fmin(fmax(low, fastest), median);
        n += bins->counts[i];
    }
    if (n != row->timed || !(bins->width_ns > 0))
        return lost_ns;
    stays = fmax(stays + (double)bins->over * median, floor((double)n / 2) * (median + fastest));
    double excess = fmax(0, row->timed_ns - stays);
    return fmax(lost_ns, bins->over ? excess : fmin(excess, high_excess));
}

/* For the steps of a name, their time beyond the median of the same process. */
static double gain_of_variance(const tare__analysis *rank, const void *name)
{
    double saved = 0, all = 0;
    for (size_t i = 0; i < rank->n_steps; i++) {
        const tare__step_row *row = &rank->steps[i];
        if (strcmp(row->name, name) != 0)
            continue;
        double rest = rest_of(row), mean = (row->timed_ns - (row->first_timed ? row->first_ns : 0)) / rest;
        saved += rest > 0 ? excess_of(row, fmax(0, mean - row->rest_p50_ns) * rest) : 0;
        all += row->total_ns;
    }
    return tare__beside_gpu(rank, saved / fmax(rank->run.elapsed_ns, all));
}

static void tell_variance(findings *out, const tare__analysis *of, const tare__step_row *row, const slow *slow)
{
    double rest = rest_of(row), fastest = fastest_of(row), ratio = slow->steps[0].duration_ns / fastest;
    double tail = row->each.p95_ns / row->each.p50_ns;
    uint64_t distance = distance_of(slow, row);
    double taken = tare__cores_taken(of);
    bool runnable = tare__kept_off_cpu(of) >= limit(LIMIT_PREEMPTED), preempted = runnable || taken > 0;
    tare__finding_add(out, tail > limit(LIMIT_STEP_TAIL) && !preempted ? TARE__WARNING : TARE__INFO);
    tare__say_when(out, slow->steps[0].start_at_ns, slow->steps[0].start_at_ns + slow->steps[0].duration_ns);
    tare__say_title(out, "The slowest %s took %s times as long as the fastest", tare__show_name(row->name).text,
                    count(ratio).text);
    tare__say_evidence(out, "Of %s, without the first: fastest %s, median %s, slowest %s; p95 is %s times the median.",
                       count(rest).text, tare__show_time(fastest).text, tare__show_time(row->rest_p50_ns).text,
                       tare__show_time(slow->steps[0].duration_ns).text, count(tail).text);
    say_slow_ones(out, slow, row->rest_p50_ns);
    if (distance)
        tare__say_evidence(out, "The slow ones come every %" PRIu64 " steps.", distance);
    if (runnable)
        tare__say_evidence(out, "Threads of the job were runnable and did not run: other processes may be the cause.");
    else if (preempted)
        tare__say_evidence(out, "Other processes used %s and left no CPU idle: waiting for a CPU may be the cause.",
                           tare__show(taken, TARE__SHOW_CORES).text);
    tare__say_advice(
        out,
        distance ? "Find what is done every N steps (logging, evaluation, checkpoints); do it less often or in the "
                   "background."
        : preempted
            ? "Measure on an idle machine, or pin the job to cores (taskset, cpuset), before you look for a cause "
              "in the program."
            : "Likely causes: inputs of different sizes (pad batches, or sort them by length), random augmentation, "
              "loading that cannot keep up, garbage collection, or other processes on the machine.");
    tare__say_rank_gain(out, of, gain_of_variance, row->name, "what slow steps took beyond the median step");
    tare__say_figure(out, "ratio", ratio, TARE__SHOW_COUNT);
    tare__say_figure(out, "fastest", fastest / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "slowest", slow->steps[0].duration_ns / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "tail", tail, TARE__SHOW_COUNT);
}

/* A single slow one in a million is ignored: what slow ones cost must be significant. */
bool tare__is_uneven(const tare__evenness *of)
{
    bool costs = of->p95_ns > limit(LIMIT_STEP_TAIL) * of->p50_ns || of->excess > limit(LIMIT_STEP_EXCESS);
    return of->count >= limit(LIMIT_FEWEST_STEPS) && of->slowest_ns > limit(LIMIT_STEP_RATIO) * of->fastest_ns &&
           of->slowest_ns >= limit(LIMIT_STEP_SHORTEST) && costs;
}

void tare__rule_step_variance(findings *out, const tare__analysis *of)
{
    for (size_t i = 0; of->run.clock_known && i < of->n_steps; i++) {
        const tare__step_row *row = &of->steps[i];
        slow slow = slow_ones(row);
        if (slow.n == 0)
            continue;
        const tare__evenness steps = {.count = (double)row->count,
                                       .fastest_ns = fastest_of(row),
                                       .p50_ns = row->each.p50_ns,
                                       .p95_ns = row->each.p95_ns,
                                       .slowest_ns = slow.steps[0].duration_ns,
                                       .excess = slow.excess_ns / row->total_ns};
        if (tare__is_uneven(&steps))
            tell_variance(out, of, row, &slow);
    }
}
