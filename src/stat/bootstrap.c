/* bootstrap: confidence intervals of a statistic by resampling (BCa).
 * Owned by the calling thread; scratch memory is freed before it returns.
 * Must not know what the values measure. */
#include "inner.h"

#include <stdlib.h>
#include <string.h>

#include "tare.h"

#define SAMPLES_MAX 2

/* One or two samples, each resampled separately, and the statistic. */
typedef struct problem {
    double *sorted[SAMPLES_MAX];
    size_t n[SAMPLES_MAX];
    size_t samples;
    double (*of)(double *const *sorted, const size_t *n, void *with);
    void *with;
} problem;

typedef struct scratch {
    double *drawn[SAMPLES_MAX]; /* a resample, ascending */
    uint32_t *times;            /* how often each value was drawn */
    double *results;            /* of all resamples */
} scratch;

double tare__statistic_mean(const double *sorted, size_t n, void *with)
{
    double sum = 0;
    (void)with;
    for (size_t i = 0; i < n; i++)
        sum += sorted[i];
    return n ? sum / (double)n : NAN;
}

double tare__statistic_median(const double *sorted, size_t n, void *with)
{
    (void)with;
    return tare__quantile_sorted(sorted, n, 0.5);
}

double tare__statistic_quantile(const double *sorted, size_t n, void *with)
{
    return tare__quantile_sorted(sorted, n, *(const double *)with);
}

/* Values drawn are counted and listed in order: cheaper than sorting each resample. */
static void draw(const double *sorted, size_t n, tare__random *random, uint32_t *times, double *into)
{
    memset(times, 0, n * sizeof(*times));
    for (size_t i = 0; i < n; i++)
        times[tare__random_below(random, n)]++;
    for (size_t i = 0; i < n; i++)
        for (uint32_t left = times[i]; left; left--)
            *into++ = sorted[i];
}

static void resample(const problem *problem, scratch *scratch, unsigned resamples, uint64_t seed)
{
    tare__random random;
    tare__random_seed(&random, seed);
    for (unsigned i = 0; i < resamples; i++) {
        for (size_t s = 0; s < problem->samples; s++)
            draw(problem->sorted[s], problem->n[s], &random, scratch->times, scratch->drawn[s]);
        scratch->results[i] = problem->of(scratch->drawn, problem->n, problem->with);
    }
}

/* What one sample adds to the acceleration: the statistic without each of its values in turn. */
static void jackknife(const problem *problem, scratch *scratch, size_t which, double *cubes, double *squares)
{
    size_t n = problem->n[which];
    double *const kept = scratch->drawn[which];
    double *samples[SAMPLES_MAX];
    size_t sizes[SAMPLES_MAX];
    tare__moments moments = {0};
    memcpy(samples, problem->sorted, sizeof samples);
    memcpy(sizes, problem->n, sizeof sizes);
    samples[which] = kept;
    sizes[which] = n - 1;
    double *without = malloc(n * sizeof(*without));
    if (!without)
        return; /* an acceleration of 0: bias-corrected only */
    memcpy(kept, problem->sorted[which] + 1, (n - 1) * sizeof(*kept));
    for (size_t i = 0; i < n; i++) {
        if (i)
            kept[i - 1] = problem->sorted[which][i - 1];
        without[i] = problem->of(samples, sizes, problem->with);
        tare__moments_add(&moments, without[i]);
    }
    for (size_t i = 0; i < n; i++) {
        double part = (moments.mean - without[i]) * (double)(n - 1) / (double)n;
        *squares += part * part;
        *cubes += part * part * part;
    }
    free(without);
}

static double acceleration(const problem *problem, scratch *scratch)
{
    double cubes = 0, squares = 0;
    for (size_t s = 0; s < problem->samples; s++)
        jackknife(problem, scratch, s, &cubes, &squares);
    return squares > 0 ? cubes / (6 * squares * sqrt(squares)) : 0;
}

/* Position of the bound for `z` in the distribution of resamples. */
static double moved(double bias, double accelerated, double z)
{
    double sum = bias + z;
    return tare__normal_above(-(bias + sum / (1 - accelerated * sum)));
}

static void bound(const problem *problem, scratch *scratch, unsigned resamples, tare__estimate *out)
{
    double *results = scratch->results;
    double below = 0;
    for (unsigned i = 0; i < resamples; i++)
        below += results[i] < out->value ? 1 : results[i] == out->value ? 0.5 : 0;
    tare__sort(results, resamples);
    if (isnan(results[resamples - 1]) || isnan(out->value))
        return;
    double bias = tare__normal_quantile(below / resamples);
    double accelerated = acceleration(problem, scratch);
    double tail = tare__normal_quantile((1 - out->confidence) / 2);
    if (isinf(bias)) /* all on one side: no correction is possible */
        bias = accelerated = 0;
    out->low = tare__quantile_sorted(results, resamples, moved(bias, accelerated, tail));
    out->high = tare__quantile_sorted(results, resamples, moved(bias, accelerated, -tail));
}

static void release(problem *problem, scratch *scratch)
{
    for (size_t s = 0; s < problem->samples; s++) {
        free(problem->sorted[s]);
        free(scratch->drawn[s]);
    }
    free(scratch->times);
    free(scratch->results);
}

static bool prepare(problem *problem, scratch *scratch, const double *const *values, unsigned resamples)
{
    size_t most = 1;
    bool whole = true;
    for (size_t s = 0; s < problem->samples; s++) {
        size_t n = problem->n[s];
        most = n > most ? n : most;
        problem->sorted[s] = tare__stat_sorted(values[s], n);
        scratch->drawn[s] = malloc((n ? n : 1) * sizeof(double));
        whole = whole && problem->sorted[s] && scratch->drawn[s];
    }
    scratch->times = malloc(most * sizeof(*scratch->times));
    scratch->results = malloc(resamples * sizeof(*scratch->results));
    return whole && scratch->times && scratch->results;
}

static int estimate(problem *problem, const double *const *values, unsigned resamples, uint64_t seed,
                    tare__estimate *out)
{
    scratch scratch = {0};
    int status = prepare(problem, &scratch, values, resamples) ? 0 : TARE_E_MEMORY;
    bool enough = true;
    for (size_t s = 0; s < problem->samples; s++)
        enough = enough && problem->n[s] >= TARE__BOOTSTRAP_MIN;
    if (!status)
        out->value = problem->of(problem->sorted, problem->n, problem->with);
    if (!status && enough) {
        resample(problem, &scratch, resamples, seed);
        bound(problem, &scratch, resamples, out);
    }
    release(problem, &scratch);
    return status;
}

/* ---- one sample ------------------------------------------------------------------------------------------ */
typedef struct single {
    tare__statistic *of;
    void *with;
} single;

static double of_single(double *const *sorted, const size_t *n, void *with)
{
    const single *single = with;
    return single->of(sorted[0], n[0], single->with);
}

int tare__bootstrap(const double *values, size_t n, tare__statistic *of, void *with, unsigned resamples,
                    double confidence, uint64_t seed, tare__estimate *out)
{
    single single = {of, with};
    problem problem = {.n = {n}, .samples = 1, .of = of_single, .with = &single};
    *out = (tare__estimate){NAN, NAN, NAN, confidence, n};
    if (!(confidence > 0 && confidence < 1) || !resamples)
        return TARE_E_USAGE;
    return estimate(&problem, &values, resamples, seed, out);
}

/* ---- two samples ----------------------------------------------------------------------------------------- */
static double of_medians(double *const *sorted, const size_t *n, void *with)
{
    double base = tare__statistic_median(sorted[0], n[0], with);
    double head = tare__statistic_median(sorted[1], n[1], with);
    return base > 0 && head > 0 ? head / base : NAN;
}

tare__estimate tare__median_ratio(const double *base, size_t n, const double *head, size_t m,
                                  double confidence, uint64_t seed)
{
    problem problem = {.n = {n, m}, .samples = 2, .of = of_medians};
    const double *values[] = {base, head};
    tare__estimate out = {NAN, NAN, NAN, confidence, n < m ? n : m};
    if (confidence > 0 && confidence < 1)
        (void)estimate(&problem, values, TARE__BOOTSTRAP_GOOD, seed, &out);
    return out;
}
