/* rules_memory: memory that grows, is nearly exhausted, or was swapped out.
 * Owned by the thread that analyzes.
 * Must not know how memory was measured. */
#include <math.h>

#include "rules.h"

/* ---- growth ---------------------------------------------------------------------------------- */
#define PARTS_MAX 48u /* parts of the window for the trend … */
#define RISES     8u  /* … and for the check that it rises throughout */

typedef struct growth {
    double from_ns, to_ns; /* the window: without the warm-up */
    double mean, last;
    tare__trend trend; /* bytes a ns */
    double grown;      /* by the trend, over the window */
} growth;

typedef struct part {
    double at, mean, least;
} part;

/* Equal parts of a window; false: one of them is empty. */
static bool cut(const curve *curve, double from, double to, part *parts, size_t n)
{
    double lasts[PARTS_MAX] = {0};
    for (size_t i = 0; i < n; i++)
        parts[i] = (part){from + (to - from) * ((double)i + 0.5) / (double)n, 0, INFINITY};
    for (size_t i = 0; i < curve->n; i++) {
        const curve_point *point = &curve->points[i];
        double middle = point->at + point->lasts / 2;
        if (middle < from || middle >= to)
            continue;
        size_t at = (size_t)((middle - from) / (to - from) * (double)n);
        at = at < n ? at : n - 1;
        parts[at].mean += point->value * point->lasts;
        parts[at].least = fmin(parts[at].least, point->value);
        lasts[at] += point->lasts;
    }
    for (size_t i = 0; i < n; i++) {
        if (!(lasts[i] > 0))
            return false;
        parts[i].mean /= lasts[i];
    }
    return true;
}

/* By the minima of at least three equal parts of the time: a single allocation that is kept rises once; memory that is
 * freed repeatedly does not raise the minimum of a part; memory loaded at the start has stopped rising. `least` is the
 * growth that counts in a part; of eight parts, two may lack it. */
static bool rises_throughout(const part *parts, size_t n, double least)
{
    double average = (parts[n - 1].least - parts[0].least) / (double)(n - 1);
    double late = parts[n - 1].least - parts[n - 3].least;
    size_t rising = 0;
    for (size_t i = 1; i < n; i++)
        rising += parts[i].least - parts[i - 1].least >= fmax(0.25 * average, least);
    return average > 0 && rising * (RISES - 1) >= (n - 1) * (RISES - 3) && late >= 0.5 * average;
}

static bool rises_all_along(const curve *curve, double from, double to)
{
    part parts[PARTS_MAX];
    return cut(curve, from, to, parts, RISES) && rises_throughout(parts, RISES, 0);
}

bool tare__grows_throughout(const double *snapshots, size_t n, double threshold)
{
    part parts[4];
    size_t n_parts = n >= 8 ? 4 : 3;
    if (n < 3)
        return false;
    for (size_t i = 0; i < n_parts; i++) {
        parts[i].least = INFINITY;
        for (size_t at = i * n / n_parts; at < (i + 1) * n / n_parts; at++)
            parts[i].least = fmin(parts[i].least, snapshots[at]);
    }
    return rises_throughout(parts, n_parts, limit(LIMIT_GROWTH_PART) * threshold);
}

static bool find_growth(const curve *curve, growth *found)
{
    part parts[PARTS_MAX];
    double x[PARTS_MAX], y[PARTS_MAX];
    if (curve->n < 4)
        return false;
    /* The last sample may be of a process that is exiting. */
    const curve_point *first = &curve->points[0], *last = &curve->points[curve->n - 2];
    double to = last->at + last->lasts;
    double from = first->at + limit(LIMIT_GROWTH_WARM_UP) * (to - first->at);
    size_t n = 0;
    for (size_t i = 0; i + 1 < curve->n; i++)
        n += curve->points[i].at >= from;
    n = n / 2 < PARTS_MAX ? n / 2 : PARTS_MAX;
    if (to - from < limit(LIMIT_GROWTH_SHORTEST) || n < 6 || !cut(curve, from, to, parts, n))
        return false;
    *found = (growth){.from_ns = from, .to_ns = to, .last = last->value};
    for (size_t i = 0; i < n; i++) {
        x[i] = parts[i].at;
        y[i] = parts[i].mean;
        found->mean += parts[i].mean / (double)n;
    }
    found->trend = tare__trend_of(x, y, n);
    found->grown = fmin(found->trend.slope * (to - from), last->value - parts[0].least); /* at most as observed */
    return found->trend.low > 0 && found->trend.fit >= limit(LIMIT_GROWTH_FIT) && rises_all_along(curve, from, to);
}

static bool worth_telling(const growth *growth)
{
    double a_minute = growth->trend.slope * 60e9 / growth->mean;
    return growth->grown >= limit(LIMIT_GROWTH_BYTES) ||
           (a_minute >= limit(LIMIT_GROWTH_A_MINUTE) && growth->grown >= limit(LIMIT_GROWTH_LEAST));
}

/* Memory left until the limit; NaN: not known. */
static double room_left(const tare__analysis *of, const growth *growth)
{
    double room = of->usage.memory_allowed_bytes - growth->last;
    const tare__metric_row *free = tare__rows_first(of, TARE__M_MEMORY_AVAILABLE, TARE__SUBJECT_SYSTEM);
    if (free)
        room = isnan(room) ? free->last : fmin(room, free->last);
    return room > 0 ? room : isnan(room) ? NAN : 0;
}

/* The process that grows most, and its slope. */
static const tare__metric_row *who_grows(const tare__analysis *of, tare__metric metric, double *slope)
{
    const tare__metric_row *row, *most = NULL;
    curve curve;
    growth growth;
    for (size_t at = 0; (row = tare__rows_next(of, &at, metric, TARE__SUBJECT_PROCESS));) {
        if (!row->points || !tare__curve_of(row, &curve) || !find_growth(&curve, &growth))
            continue;
        if (!most || growth.trend.slope > *slope) {
            most = row;
            *slope = growth.trend.slope;
        }
    }
    return most;
}

static void say_prediction(findings *out, const growth *growth, double room)
{
    double left_ns = room / growth->trend.slope, seen_ns = growth->to_ns - growth->from_ns;
    if (isnan(left_ns)) {
        tare__say_evidence(out, "When memory runs out is unknown: its limit is unknown.");
        return;
    }
    tare__say_evidence(out, "At this rate the remaining %s last for %s%s.", bytes(room).text,
                       tare__show_time(left_ns).text,
                       left_ns > limit(LIMIT_GROWTH_FURTHEST) * seen_ns ? " (extrapolated far beyond this run)" : "");
    tare__say_figure(out, "time_to_limit", left_ns / 1e9, TARE__SHOW_SECONDS);
    if (left_ns <= limit(LIMIT_GROWTH_FURTHEST) * seen_ns)
        out->now->severity = TARE__CRITICAL;
}

static void tell_growth(findings *out, const tare__analysis *of, tare__metric metric, const growth *growth)
{
    double own_slope = NAN, rate = growth->trend.slope * 1e9;
    const tare__metric_row *who = who_grows(of, metric, &own_slope);
    tare__finding_add(out, TARE__WARNING);
    tare__say_when(out, growth->from_ns, growth->to_ns);
    tare__say_title(out, "Memory grows steadily by %s per second", bytes(rate).text);
    if (who)
        tare__say_evidence(out, "Process %llu (%s) grows by %s per second.", (unsigned long long)who->key,
                           tare__show_name(who->label).text, bytes(own_slope * 1e9).text);
    tare__say_evidence(out,
                       "%s of all processes grew by %s from %s to %s, to %s. The slope is %s per second (95 %% "
                       "confidence: %s to %s; R² %s).",
                       metric == TARE__M_RSS_ANON ? "Anonymous memory" : "Resident memory", bytes(growth->grown).text,
                       tare__show_time(growth->from_ns).text, tare__show_time(growth->to_ns).text,
                       bytes(growth->last).text, bytes(rate).text, bytes(growth->trend.low * 1e9).text,
                       bytes(growth->trend.high * 1e9).text, count(growth->trend.fit).text);
    say_prediction(out, growth, room_left(of, growth));
    tare__say_advice(
        out,
        tare__has_loader(of)
            ? "Find what is kept from step to step: losses or outputs with their autograd graph (use .item() or "
              ".detach()), unbounded lists and caches, Python objects in DataLoader workers (use arrays). Data that is "
              "being loaded stops growing by itself."
        : tare__imported(of, "torch")
            ? "Find what is kept from step to step: losses or outputs with their autograd graph (use .item() or "
              ".detach()), unbounded lists and caches. Data that is being loaded stops growing by itself."
            : "Find what is kept: unbounded lists and caches, references that are never dropped. Data that is being "
              "loaded stops growing by itself.");
    tare__say_gain(out, NAN, "no gain in time: a run that goes on like this runs out of memory");
    tare__say_figure(out, "slope", rate, TARE__SHOW_BYTES_PER_S);
    tare__say_figure(out, "slope_low", growth->trend.low * 1e9, TARE__SHOW_BYTES_PER_S);
    tare__say_figure(out, "slope_high", growth->trend.high * 1e9, TARE__SHOW_BYTES_PER_S);
    tare__say_figure(out, "fit", growth->trend.fit, TARE__SHOW_COUNT);
    tare__say_figure(out, "grown", growth->grown, TARE__SHOW_BYTES);
    if (who)
        tare__say_figure(out, "pid", (double)who->key, TARE__SHOW_COUNT);
}

void tare__rule_memory_growth(findings *out, const tare__analysis *of)
{
    static const tare__metric metrics[] = {TARE__M_RSS_ANON, TARE__M_RSS};
    curve curve;
    growth growth;
    for (size_t i = 0; i < TARE__COUNT_OF(metrics); i++) {
        if (!tare__tree_curve(of, metrics[i], &curve))
            continue;
        if (find_growth(&curve, &growth) && worth_telling(&growth))
            tell_growth(out, of, metrics[i], &growth);
        return; /* the more precise metric is known: the other one adds nothing */
    }
}

/* ---- nearly exhausted ------------------------------------------------------------------------ */
typedef struct most {
    double bytes, at_ns;
    const char *whose;
} most;

/* Memory that counts against the limit. The sum over processes counts shared memory several times, so the
 * container's own figure has priority; the page cache is excluded, since it can be reclaimed. */
static most most_memory(const tare__analysis *of)
{
    const tare__metric_row *own = tare__rows_first(of, TARE__M_RSS_ANON, TARE__SUBJECT_CONTAINER);
    const tare__metric_row *tree = tare__rows_first(of, TARE__M_RSS, TARE__SUBJECT_TREE);
    double allowed = of->usage.memory_allowed_bytes;
    if (own)
        return (most){own->max, own->max_at_ns, "the container's processes"};
    if (of->usage.tree_rss_max_bytes <= allowed)
        return (most){of->usage.tree_rss_max_bytes, tree ? tree->max_at_ns : NAN, "all processes"};
    return (most){of->usage.rss_peak_bytes, of->usage.rss_peak_at_ns, "the largest process"};
}

void tare__rule_memory_high(findings *out, const tare__analysis *of)
{
    most most = most_memory(of);
    double share = most.bytes / of->usage.memory_allowed_bytes;
    if (!(share > limit(LIMIT_MEMORY_INFO)))
        return;
    tare__severity severity = share > limit(LIMIT_MEMORY_CRITICAL)  ? TARE__CRITICAL
                              : share > limit(LIMIT_MEMORY_WARNING) ? TARE__WARNING
                                                                    : TARE__INFO;
    tare__finding_add(out, severity);
    curve curve;
    if (tare__tree_curve(of, TARE__M_RSS, &curve)) {
        stretch high = tare__curve_above(&curve, limit(LIMIT_MEMORY_INFO) * of->usage.memory_allowed_bytes);
        tare__say_when(out, high.from_ns, high.to_ns);
    }
    tare__say_title(out, "Memory reached %s of the available %s", percent(share).text,
                    bytes(of->usage.memory_allowed_bytes).text);
    tare__say_evidence(out, "Up to %s was in use by %s; the limit is %s.", bytes(most.bytes).text, most.whose,
                       bytes(of->usage.memory_allowed_bytes).text);
    if (isfinite(most.at_ns))
        tare__say_evidence(out, "That was at %s.", tare__show_time(most.at_ns).text);
    if (of->usage.rss_peak_process)
        tare__say_evidence(out, "The largest process is %s with %s%s.",
                           tare__show_name(of->usage.rss_peak_process).text,
                           of->usage.rss_peak_at_least ? "at least " : "", bytes(of->usage.rss_peak_bytes).text);
    tare__say_advice(
        out,
        tare__has_loader(of)
            ? "Use a smaller batch, gradient checkpointing or fewer DataLoader workers (each holds prefetch_factor "
              "batches); map data instead of loading it; or raise the limit."
        : tare__imported(of, "torch")
            ? "Use a smaller batch or gradient checkpointing; map data instead of loading it; or raise the limit."
            : "Process the data in smaller parts, map files instead of loading them, or raise the limit.");
    tare__say_gain(out, NAN, "no gain in time: it keeps the run from being killed");
    tare__say_figure(out, "share", share, TARE__SHOW_SHARE);
    tare__say_figure(out, "used", most.bytes, TARE__SHOW_BYTES);
    tare__say_figure(out, "allowed", of->usage.memory_allowed_bytes, TARE__SHOW_BYTES);
}

void tare__rule_memory_large(findings *out, const tare__analysis *of)
{
    const tare__usage_table *usage = &of->usage;
    if (!isnan(usage->memory_allowed_bytes) || !(usage->rss_peak_bytes > limit(LIMIT_MEMORY_LARGE)))
        return;
    tare__finding_add(out, TARE__INFO);
    tare__say_title(out, "A process used %s of memory", bytes(usage->rss_peak_bytes).text);
    tare__say_evidence(out, "%s used up to %s. The limit of the job is unknown.",
                       usage->rss_peak_process ? tare__show_name(usage->rss_peak_process).text : "The largest process",
                       bytes(usage->rss_peak_bytes).text);
    tare__say_advice(out, "Process the data in smaller parts, or map files instead of loading them.");
    tare__say_gain(out, NAN, "no gain in time");
    tare__say_figure(out, "used", usage->rss_peak_bytes, TARE__SHOW_BYTES);
}

/* ---- swap ------------------------------------------------------------------------------------ */
static double total_of(const tare__analysis *of, tare__metric metric)
{
    const tare__metric_row *row = tare__rows_first(of, metric, TARE__SUBJECT_SYSTEM);
    return row ? row->total : NAN;
}

static void tell_swap(findings *out, const tare__analysis *of, double own, double in, double away, const stretch *when)
{
    double rate = in / of->run.elapsed_ns * 1e9, waits = tare__pressure_of(of, TARE__M_PRESSURE_MEMORY);
    bool ours = own >= limit(LIMIT_SWAPPED);
    tare__finding_add(out, !ours ? TARE__INFO : rate >= limit(LIMIT_SWAP_HEAVY) ? TARE__CRITICAL : TARE__WARNING);
    if (ours)
        tare__say_title(out, "%s of its memory was swapped out", bytes(own).text);
    else
        tare__say_title(out, "The machine swapped %s during the run", bytes(in + away).text);
    if (isfinite(own))
        tare__say_evidence(out, "Up to %s of the job's memory was swapped out.", bytes(own).text);
    if (isfinite(in) && isfinite(away))
        tare__say_evidence(out, "The machine swapped %s in and %s out.", bytes(in).text, bytes(away).text);
    tare__say_when(out, when->from_ns, when->to_ns);
    tare__say_advice(
        out,
        ours ? "Use less memory (smaller batches, fewer processes) or more RAM; more swap does not help."
             : "Other processes caused it: run the job where more memory is free.");
    if (ours && isfinite(waits))
        tare__say_gain(out, fmin(waits, 1), "some task waited for memory for %s of the time (pressure)",
                       percent(waits).text);
    else
        tare__say_gain(out, NAN, ours ? "not predicted: how long tasks waited for memory is unavailable"
                                      : "not predicted: it is not the job's memory");
    tare__say_figure(out, "swapped", own, TARE__SHOW_BYTES);
    tare__say_figure(out, "swapped_in", in, TARE__SHOW_BYTES);
    tare__say_figure(out, "swapped_out", away, TARE__SHOW_BYTES);
}

void tare__rule_swap(findings *out, const tare__analysis *of)
{
    curve curve;
    double own = NAN, in = total_of(of, TARE__M_SWAP_IN), away = total_of(of, TARE__M_SWAP_OUT);
    stretch when = {.from_ns = NAN, .to_ns = NAN};
    if (tare__tree_curve(of, TARE__M_SWAPPED, &curve)) {
        when = tare__curve_above(&curve, limit(LIMIT_SWAPPED));
        for (size_t i = 0; i < curve.n; i++)
            own = isnan(own) ? curve.points[i].value : fmax(own, curve.points[i].value);
    }
    if (own >= limit(LIMIT_SWAPPED) || in + away >= limit(LIMIT_SWAP_TRAFFIC))
        tell_swap(out, of, own, in, away, &when);
}
