/* sequential: tests of pairs, once or after every pair with a controlled error rate.
 * Owned by the calling thread; scratch memory is freed before it returns.
 * Must not know what is measured. */
#include "inner.h"

#include <stdlib.h>
#include <string.h>

/* ---- Wilcoxon's signed ranks --------------------------------------------------------------------- */
static int by_size(const void *left, const void *right)
{
    double a = fabs(*(const double *)left), b = fabs(*(const double *)right);
    return (a > b) - (a < b);
}

/* For logs sorted by size: twice the rank of each, where ties share their mean rank, and twice the sum of those
 * above 0. */
static double rank_twice(const double *logs, size_t n, unsigned *ranks)
{
    double above = 0;
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && fabs(logs[to]) == fabs(logs[from]);)
            to++;
        for (size_t i = from; i < to; i++) {
            ranks[i] = (unsigned)(from + to + 1);
            above += logs[i] > 0 ? ranks[i] : 0;
        }
    }
    return above;
}

/* P(sum <= last) if each rank counts or does not with equal probability. */
static double sums_below(const unsigned *ranks, size_t n, size_t last)
{
    double *chances = calloc(last + 1, sizeof *chances), sum = 0;
    if (!chances)
        return NAN;
    chances[0] = 1;
    for (size_t i = 0; i < n; i++)
        for (size_t at = last + 1; at-- > 0;)
            chances[at] = chances[at] / 2 + (at >= ranks[i] ? chances[at - ranks[i]] / 2 : 0);
    for (size_t at = 0; at <= last; at++)
        sum += chances[at];
    free(chances);
    return sum;
}

/* `logs` are sorted by size, without zeros. */
static double signed_rank_p(const double *logs, size_t n)
{
    unsigned *ranks = malloc((n + 1) * sizeof *ranks);
    double all = (double)n * ((double)n + 1), p = NAN;
    if (!ranks || n == 0) {
        free(ranks);
        return ranks ? 1 : NAN;
    }
    double above = rank_twice(logs, n, ranks), less = fmin(above, all - above);
    if (n <= TARE__EXACT_SIGNS) {
        p = fmin(1, 2 * sums_below(ranks, n, (size_t)less));
    } else {
        double squares = 0;
        for (size_t i = 0; i < n; i++)
            squares += (double)ranks[i] * ranks[i];
        p = fmin(1, 2 * tare__normal_above((all / 2 - less - 1) / sqrt(squares / 4))); /* 1: half a rank, twice */
    }
    free(ranks);
    return p;
}

/* Number of averages below the interval; 0: no interval reaches the confidence. */
static size_t averages_outside(size_t n, double confidence)
{
    double all = (double)n * ((double)n + 1) / 2, tail = (1 - confidence) / 2;
    if (n > TARE__EXACT_SIGNS) {
        double spread = sqrt(all * (2 * (double)n + 1) / 12);
        return (size_t)fmax(0, floor(all / 2 + tare__normal_quantile(tail) * spread));
    }
    size_t half = (size_t)(all / 2), count = 0;
    double *chances = calloc(half + 1, sizeof *chances), sum = 0;
    if (!chances)
        return 0;
    chances[0] = 1;
    for (size_t rank = 1; rank <= n; rank++)
        for (size_t at = half + 1; at-- > 0;)
            chances[at] = chances[at] / 2 + (at >= rank ? chances[at - rank] / 2 : 0);
    while (count <= half && (sum += chances[count]) <= tail)
        count++;
    free(chances);
    return count;
}

/* The averages of all pairs of logs, including each with itself. */
static void estimate(const double *logs, size_t n, tare__estimate *ratio)
{
    size_t all = n * (n + 1) / 2, made = 0, outside = averages_outside(n, ratio->confidence);
    double *averages = malloc(all * sizeof *averages);
    if (!averages)
        return;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++)
            averages[made++] = (logs[i] + logs[j]) / 2;
    tare__sort(averages, all);
    ratio->value = exp(tare__quantile_sorted(averages, all, 0.5));
    if (outside) {
        ratio->low = exp(averages[outside - 1]);
        ratio->high = exp(averages[all - outside]);
    }
    free(averages);
}

tare__sequential tare__paired_test(const double *base, const double *head, size_t n, double confidence)
{
    tare__sequential out = {.ratio = {NAN, NAN, NAN, confidence, 0}, .p = NAN};
    double *logs = malloc((n ? n : 1) * sizeof *logs);
    size_t pairs = 0, equal = 0;
    for (size_t i = 0; logs && i < n; i++)
        if (base[i] > 0 && head[i] > 0 && isfinite(base[i]) && isfinite(head[i]))
            logs[pairs++] = log(head[i] / base[i]);
    out.ratio.n = pairs;
    if (pairs) {
        estimate(logs, pairs, &out.ratio);
        qsort(logs, pairs, sizeof *logs, by_size);
        while (equal < pairs && logs[equal] == 0)
            equal++;
        out.p = signed_rank_p(logs + equal, pairs - equal);
    }
    free(logs);
    return out;
}

/* ---- how much error each interim test may spend -------------------------------------------------- */
#define CELLS     240  /* even */
#define INTERIMS_MAX 60.0
#define SPENT_BY(alpha, n, most) ((alpha) * pow((double)(n) / (double)(most), 3))

/* The sum of the measurements, as long as no interim test has decided: its range and density. */
typedef struct path {
    double from, step;
    double density[CELLS + 1];
} path;

static double weight_of(int i) /* Simpson's */
{
    return i == 0 || i == CELLS ? 1.0 / 3 : i % 2 ? 4.0 / 3 : 2.0 / 3;
}

/* Probability that the next sum, `spread` away, lies beyond `limit` on either side. */
static double beyond(const path *at, double spread, double limit)
{
    double sum = 0;
    for (int i = 0; i <= CELLS; i++) {
        double place = at->from + i * at->step;
        sum += weight_of(i) * at->density[i] *
               (tare__normal_above((limit - place) / spread) + tare__normal_above((limit + place) / spread));
    }
    return sum * at->step;
}

static double find_limit(const path *at, double spread, double chance, double most)
{
    double low = 0, high = most;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (beyond(at, spread, middle) > chance)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static void move(path *at, double spread, double limit)
{
    path next = {.from = -limit, .step = 2 * limit / CELLS};
    for (int i = 0; i <= CELLS; i++) {
        double place = next.from + i * next.step, sum = 0;
        for (int k = 0; k <= CELLS; k++) {
            double away = (place - at->from - k * at->step) / spread;
            if (fabs(away) < 8)
                sum += weight_of(k) * at->density[k] * exp(-away * away / 2);
        }
        next.density[i] = sum * at->step / (spread * sqrt(2 * 3.14159265358979323846));
    }
    *at = next;
}

/* The first interim test: the number of pairs at which all on one side would be significant. */
static size_t first_interim(size_t most, double alpha)
{
    size_t n = 1;
    while (n <= most && ldexp(2, -(int)n) > SPENT_BY(alpha, n, most))
        n++;
    return n;
}

void tare__sequential_make(tare__sequential_plan *plan, size_t most, double alpha)
{
    most = most < TARE__SEQUENTIAL_MOST ? most : TARE__SEQUENTIAL_MOST;
    memset(plan, 0, sizeof *plan);
    plan->most = most;
    path at = {0, 0, {0}};
    size_t n = first_interim(most, alpha), last = 0, apart = (size_t)ceil((double)most / INTERIMS_MAX);
    for (double spent = 0; n <= most; n = n < most && n + apart > most ? most : n + apart) {
        double whole = sqrt((double)n), may = SPENT_BY(alpha, n, most), limit;
        if (!last) {
            limit = -tare__normal_quantile(may / 2) * whole;
            at = (path){.from = -limit, .step = 2 * limit / CELLS};
            for (int i = 0; i <= CELLS; i++) {
                double z = (at.from + i * at.step) / whole;
                at.density[i] = exp(-z * z / 2) / (whole * sqrt(2 * 3.14159265358979323846));
            }
        } else {
            double spread = sqrt((double)(n - last));
            limit = find_limit(&at, spread, may - spent, 9 * whole);
            move(&at, spread, limit);
        }
        plan->level[n] = 2 * tare__normal_above(limit / whole);
        spent = may;
        last = n;
    }
}

double tare__sequential_level(const tare__sequential_plan *plan, size_t n)
{
    return n <= plan->most ? plan->level[n] : 0;
}
