/* rules_curves: samples of a metric as a curve over time: sums, means, and where a condition holds.
 * Owned by the thread that analyzes.
 * Must not know what the rules conclude from it. */
#include <math.h>

#include "rules.h"

/* ---- rows ------------------------------------------------------------------------------------ */
const tare__metric_row *tare__rows_next(const tare__analysis *of, size_t *at, tare__metric metric,
                                        tare__subject_kind subject)
{
    while (*at < of->n_metrics) {
        const tare__metric_row *row = &of->metrics[(*at)++];
        if (row->known == (uint32_t)metric && row->subject == (uint32_t)subject && row->n > 0)
            return row;
    }
    return NULL;
}

const tare__metric_row *tare__rows_first(const tare__analysis *of, tare__metric metric, tare__subject_kind subject)
{
    size_t at = 0;
    return tare__rows_next(of, &at, metric, subject);
}

static bool same_subject(const tare__metric_row *a, const tare__metric_row *b)
{
    return a->subject == b->subject && a->key == b->key && a->owner == b->owner;
}

/* Rows of one subject are adjacent. */
const tare__metric_row *tare__rows_beside(const tare__analysis *of, const tare__metric_row *row, tare__metric metric)
{
    size_t at = (size_t)(row - of->metrics);
    while (at > 0 && same_subject(&of->metrics[at - 1], row))
        at--;
    for (; at < of->n_metrics && same_subject(&of->metrics[at], row); at++)
        if (of->metrics[at].known == (uint32_t)metric && of->metrics[at].n > 0)
            return &of->metrics[at];
    return NULL;
}

/* ---- curves ---------------------------------------------------------------------------------- */
bool tare__curve_of(const tare__metric_row *row, curve *curve)
{
    curve->n = 0;
    if (!row || row->n == 0)
        return false;
    for (size_t i = 0; row->points && i < row->n_points && curve->n < TARE__POINTS_MAX; i++) {
        const tare__metric_point *point = &row->points[i];
        if (point->lasts_ns > 0 && isfinite(point->mean))
            curve->points[curve->n++] = (curve_point){point->at_ns, point->lasts_ns, point->mean};
    }
    if (!row->points && isfinite(row->mean) && row->to_ns > row->from_ns)
        curve->points[curve->n++] = (curve_point){row->from_ns, row->to_ns - row->from_ns, row->mean};
    return curve->n > 0;
}

/* The first point that ends after an instant. */
static size_t point_at(const tare__metric_row *row, double at_ns)
{
    size_t low = 0, high = row->n_points;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (row->points[middle].at_ns + row->points[middle].lasts_ns <= at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double tare__row_mean(const tare__metric_row *row, double from_ns, double to_ns)
{
    double sum = 0, known = 0;
    if (!row->points) {
        double from = fmax(from_ns, row->from_ns), to = fmin(to_ns, row->to_ns);
        return to - from >= 0.5 * (to_ns - from_ns) ? row->mean : NAN;
    }
    for (size_t i = point_at(row, from_ns); i < row->n_points && row->points[i].at_ns < to_ns; i++) {
        const tare__metric_point *point = &row->points[i];
        double overlap = fmin(to_ns, point->at_ns + point->lasts_ns) - fmax(from_ns, point->at_ns);
        if (!(overlap > 0) || !isfinite(point->mean))
            continue;
        sum += overlap * point->mean;
        known += overlap;
    }
    return known > 0 && known >= 0.5 * (to_ns - from_ns) ? sum / known : NAN;
}

/* Adds another row, point by point; where that row has no value the sum has none, or is unchanged if `stays` (for
 * subjects that did not exist at that time). */
static void add(curve *curve, const tare__metric_row *row, bool stays)
{
    size_t kept = 0;
    for (size_t i = 0; i < curve->n; i++) {
        curve_point point = curve->points[i];
        double other = tare__row_mean(row, point.at, point.at + point.lasts);
        if (isnan(other) && !stays)
            continue;
        point.value += isnan(other) ? 0 : other;
        curve->points[kept++] = point;
    }
    curve->n = kept;
}

double tare__curve_length(const curve *curve)
{
    double known = 0;
    for (size_t i = 0; i < curve->n; i++)
        known += curve->points[i].lasts;
    return known;
}

double tare__curve_mean(const curve *curve)
{
    double sum = 0, known = tare__curve_length(curve);
    for (size_t i = 0; i < curve->n; i++)
        sum += curve->points[i].value * curve->points[i].lasts;
    return known > 0 ? sum / known : NAN;
}

bool tare__curve_enough(const curve *curve)
{
    return curve->n >= limit(LIMIT_FEWEST_SAMPLES) && tare__curve_length(curve) >= limit(LIMIT_SHORTEST_RUN);
}

/* ---- intervals ------------------------------------------------------------------------------- */
stretch tare__curve_where(const curve *curve, stretch_test *test, const void *context)
{
    stretch all = {.share = NAN, .from_ns = NAN, .to_ns = NAN, .mean = NAN};
    double sum = 0, from = NAN, to = NAN;
    for (size_t i = 0; i < curve->n; i++) {
        const curve_point *point = &curve->points[i];
        all.known_ns += point->lasts;
        if (!test(point, context)) {
            from = NAN;
            continue;
        }
        all.held_ns += point->lasts;
        sum += point->value * point->lasts;
        /* A gap of more than one sample ends an interval: the values in it are not known. */
        if (isnan(from) || point->at - to > point->lasts) {
            from = point->at;
            all.times++;
        }
        to = point->at + point->lasts;
        if (!(to - from <= all.to_ns - all.from_ns)) {
            all.from_ns = from;
            all.to_ns = to;
        }
    }
    if (all.known_ns > 0)
        all.share = all.held_ns / all.known_ns;
    if (all.held_ns > 0)
        all.mean = sum / all.held_ns;
    return all;
}

static bool is_above(const curve_point *point, const void *level)
{
    return point->value >= *(const double *)level;
}

static bool is_below(const curve_point *point, const void *level)
{
    return point->value < *(const double *)level;
}

stretch tare__curve_above(const curve *curve, double level)
{
    return tare__curve_where(curve, is_above, &level);
}

stretch tare__curve_below(const curve *curve, double level)
{
    return tare__curve_where(curve, is_below, &level);
}

void tare__say_when_above(findings *out, const tare__metric_row *row, double level)
{
    curve curve;
    if (!tare__curve_of(row, &curve))
        return;
    stretch when = tare__curve_above(&curve, level);
    tare__say_when(out, when.from_ns, when.to_ns);
}

/* ---- the program ----------------------------------------------------------------------------- */
static bool cores_of(const tare__analysis *of, const tare__metric_row *user, curve *curve)
{
    const tare__metric_row *system = tare__rows_beside(of, user, TARE__M_CPU_SYSTEM);
    if (!system || !tare__curve_of(user, curve))
        return false;
    add(curve, system, false);
    return curve->n > 0;
}

bool tare__tree_cores(const tare__analysis *of, curve *curve)
{
    const tare__metric_row *user = tare__rows_first(of, TARE__M_CPU_USER, TARE__SUBJECT_TREE);
    return user && cores_of(of, user, curve);
}

bool tare__tree_curve(const tare__analysis *of, tare__metric metric, curve *curve)
{
    if (tare__curve_of(tare__rows_first(of, metric, TARE__SUBJECT_TREE), curve))
        return true;
    const tare__metric_row *row, *longest = NULL;
    for (size_t at = 0; (row = tare__rows_next(of, &at, metric, TARE__SUBJECT_PROCESS));)
        if (!longest || row->to_ns - row->from_ns > longest->to_ns - longest->from_ns)
            longest = row;
    if (!tare__curve_of(longest, curve))
        return false;
    for (size_t at = 0; (row = tare__rows_next(of, &at, metric, TARE__SUBJECT_PROCESS));)
        if (row != longest)
            add(curve, row, true);
    return true;
}

double tare__kept_off_cpu(const tare__analysis *of)
{
    curve own, want;
    if (!tare__tree_cores(of, &own) || !tare__tree_curve(of, TARE__M_THREADS_RUNNING, &want) ||
        !tare__curve_enough(&own) || !tare__curve_enough(&want))
        return of->whole ? tare__kept_off_cpu(of->whole) : NAN; /* a short steady state: the machine is the same */
    return fmax(0, tare__curve_mean(&want) - tare__curve_mean(&own));
}

static double mean_of(const tare__analysis *of, tare__metric metric)
{
    const tare__metric_row *row = tare__rows_first(of, metric, TARE__SUBJECT_SYSTEM);
    return row ? row->mean : NAN;
}

double tare__cores_taken(const tare__analysis *of)
{
    curve own;
    if (!tare__tree_cores(of, &own) || !tare__curve_enough(&own))
        return of->whole ? tare__cores_taken(of->whole) : NAN; /* a short steady state: the machine is the same */
    double idle = mean_of(of, TARE__M_CPU_IDLE) + fmax(0, mean_of(of, TARE__M_CPU_IOWAIT));
    double others = mean_of(of, TARE__M_CPU_USER) + mean_of(of, TARE__M_CPU_SYSTEM) - tare__curve_mean(&own);
    /* or not reported by the kernel */
    bool waits = !(tare__pressure_of(of, TARE__M_PRESSURE_CPU) <= limit(LIMIT_PRESSURE_CPU));
    return waits && idle < limit(LIMIT_CORES_FREE) && others >= limit(LIMIT_WAITING_FOR_CPU) ? others : NAN;
}

double tare__cpu_wait_ns(const tare__analysis *of)
{
    curve own, want;
    if (!tare__tree_cores(of, &own) || !tare__tree_curve(of, TARE__M_THREADS_RUNNING, &want) ||
        !tare__curve_enough(&own) || !tare__curve_enough(&want))
        return NAN;
    double wanted = fmin(tare__curve_mean(&want), of->usage.cores_allowed); /* fmin ignores NaN */
    return fmax(0, wanted - tare__curve_mean(&own)) * of->run.elapsed_ns;
}

/* In a container the driver may hide which process uses GPU memory; only then is its growth the criterion. */
static bool gpu_processes_hidden(const tare__analysis *of)
{
    for (size_t i = 0; i < of->n_metrics; i++)
        if (of->metrics[i].subject == TARE__SUBJECT_GPU_PROCESS && of->metrics[i].n == 0)
            return true;
    return false;
}

bool tare__gpu_used(const tare__analysis *of, uint64_t gpu)
{
    of = of->whole ? of->whole : of;
    const tare__metric_row *row;
    for (size_t at = 0; (row = tare__rows_next(of, &at, TARE__M_MEMORY_USED, TARE__SUBJECT_GPU_PROCESS));)
        if (row->owner == gpu)
            return true;
    if (!gpu_processes_hidden(of))
        return false;
    for (size_t at = 0; (row = tare__rows_next(of, &at, TARE__M_MEMORY_USED, TARE__SUBJECT_GPU));)
        if (row->key == gpu && row->max - row->first >= limit(LIMIT_GPU_USED_BYTES))
            return true;
    return false;
}

bool tare__any_gpu_used(const tare__analysis *of)
{
    of = of->whole ? of->whole : of;
    const tare__metric_row *row;
    for (size_t at = 0; (row = tare__rows_next(of, &at, TARE__M_MEMORY_USED, TARE__SUBJECT_GPU));)
        if (tare__gpu_used(of, row->key))
            return true;
    return tare__rows_first(of, TARE__M_MEMORY_USED, TARE__SUBJECT_GPU_PROCESS) != NULL;
}

/* ---- the machine ----------------------------------------------------------------------------- */
double tare__pressure_of(const tare__analysis *of, tare__metric metric)
{
    const tare__metric_row *row = tare__rows_first(of, metric, TARE__SUBJECT_CONTAINER);
    if (!row)
        row = tare__rows_first(of, metric, TARE__SUBJECT_SYSTEM);
    return row ? row->mean : NAN;
}

double tare__machine_share(const tare__analysis *of, tare__metric metric)
{
    static const tare__metric parts[] = {TARE__M_CPU_USER, TARE__M_CPU_SYSTEM, TARE__M_CPU_IDLE,
                                         TARE__M_CPU_IOWAIT, TARE__M_CPU_STEAL};
    const tare__metric_row *requested = tare__rows_first(of, metric, TARE__SUBJECT_SYSTEM);
    double all = 0;
    for (size_t i = 0; i < TARE__COUNT_OF(parts); i++) {
        const tare__metric_row *row = tare__rows_first(of, parts[i], TARE__SUBJECT_SYSTEM);
        if (row)
            all += row->total;
    }
    bool enough = requested && requested->n >= limit(LIMIT_FEWEST_SAMPLES) &&
                  requested->to_ns - requested->from_ns >= limit(LIMIT_SHORTEST_RUN);
    return enough && all > 0 ? requested->total / all : NAN;
}
