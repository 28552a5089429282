/* ort_result: figures of one configuration from the data of its process: quantiles, rates, memory; and which
 * configurations are the best trade-offs. Pure but for the arena.
 * Must not know how anything was run. */
#define _GNU_SOURCE
#include "ort_inner.h"

#include <math.h>
#include <string.h>

#include "tare.h"

#define WINDOWS_MAX 20u
#define CONFIDENCE  0.95

static double *copy_of(const double *values, size_t n, tare__arena *arena)
{
    double *copy = tare__arena_alloc(arena, (n + 1) * sizeof *copy);
    if (copy && n)
        memcpy(copy, values, n * sizeof *copy);
    return copy;
}

static int label_outliers(tare__runner_times *times, tare__arena *arena)
{
    tare__outlier *labels = tare__arena_alloc(arena, (times->n + 1) * sizeof *labels);
    return labels ? tare__outliers_tukey(times->samples_ns, times->n, labels, &times->outliers) : TARE_E_MEMORY;
}

/* Quantiles and related figures. 0 or TARE_E_MEMORY. */
static int times_of(const double *samples, size_t n, tare__arena *arena, tare__runner_times *times)
{
    static const double shares[TARE__RUNNER_QUANTILES] = {0.5, 0.95, 0.99};
    tare__moments moments = {0};
    *times = (tare__runner_times){.n = n};
    if (n == 0)
        return 0;
    times->samples_ns = copy_of(samples, n, arena);
    double *sorted = copy_of(samples, n, arena);
    if (!times->samples_ns || !sorted)
        return TARE_E_MEMORY;
    tare__sort(sorted, n);
    for (size_t i = 0; i < n; i++)
        tare__moments_add(&moments, samples[i]);
    times->min_ns = sorted[0];
    times->max_ns = sorted[n - 1];
    times->mean_ns = moments.mean;
    times->deviation_ns = tare__moments_deviation(&moments);
    for (size_t i = 0; i < TARE__RUNNER_QUANTILES; i++) {
        times->quantile_ns[i] = tare__quantile_sorted(sorted, n, shares[i]);
        times->interval[i] = tare__quantile_interval(sorted, n, shares[i], CONFIDENCE);
    }
    return label_outliers(times, arena);
}

/* ---- rates ---------------------------------------------------------------------------------------------------- */
/* Over windows of the whole time, including the time between runs: not the inverse of a latency. The value is that
 * of the median window, to which the interval refers: a pause of the machine affects one window. */
static int fill_rate(tare__runner_rate *rate, const char *unit, double each, const tare__board *board,
                     tare__arena *arena)
{
    size_t n = board->run_done, windows = n < WINDOWS_MAX ? n : WINDOWS_MAX;
    const double *begin = board->values;
    double *values = tare__arena_alloc(arena, 2 * windows * sizeof *values + 1);
    double end = board->end_ns > 0 ? board->end_ns : begin[n - 1] + board->values[board->runs_room + n - 1];
    if (!values)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < windows; i++) {
        size_t from = i * n / windows, to = (i + 1) * n / windows;
        double ns = (to < n ? begin[to] : end) - begin[from];
        values[i] = values[windows + i] = ns > 0 ? (double)(to - from) * each / ns * 1e9 : NAN;
    }
    tare__sort(values + windows, windows);
    tare__interval interval = tare__quantile_interval(values + windows, windows, 0.5, CONFIDENCE);
    *rate = (tare__runner_rate){.unit = unit, .value = tare__quantile_sorted(values + windows, windows, 0.5),
                                .windows = values, .n_windows = windows, .low = interval.low, .high = interval.high};
    return 0;
}

static int fill_rates(tare__runner_result *result, const tare__board *board, const tare__ort_tensor *tensors, size_t n,
                      tare__arena *arena)
{
    const struct {
        const char *unit;
        double each;
    } all[] = {{"tokens/s", (double)tare__ort_tokens(tensors, n)},
               {"images/s", (double)tare__ort_images(tensors, n)},
               {"samples/s", result->batch > 0 ? (double)result->batch : 1.0},
               {"requests/s", 1.0}};
    for (size_t i = 0; i < TARE__COUNT_OF(all); i++) {
        if (!(all[i].each > 0))
            continue;
        int status = fill_rate(&result->rates[result->n_rates], all[i].unit, all[i].each, board, arena);
        if (status)
            return status;
        result->n_rates++;
    }
    return 0;
}

/* ---- one result ----------------------------------------------------------------------------------------------- */
static void fill_memory(tare__runner_result *result, const tare__board *board, const tare__child_seen *seen)
{
    double sum = seen->rss_sum;
    size_t samples = seen->samples;
    const double ends[] = {board->rss_first_bytes, board->rss_last_bytes};
    for (size_t i = 0; i < TARE__COUNT_OF(ends); i++)
        if (!isnan(ends[i])) {
            sum += ends[i];
            samples++;
        }
    result->memory_before_bytes = board->before_bytes;
    result->memory_loaded_bytes = board->loaded_bytes;
    result->memory_load_peak_bytes = board->load_peak_bytes;
    result->memory_peak_bytes = board->peak_bytes;
    result->memory_average_bytes = samples ? sum / (double)samples : NAN;
    double added = board->peak_bytes - board->loaded_bytes; /* NaN stays NaN */
    result->memory_per_sample_bytes =
        isnan(added) ? NAN : (added > 0 ? added : 0) / (double)(result->batch > 0 ? result->batch : 1);
}

static int fill_beside(tare__runner_result *result, const tare__board *board, tare__arena *arena)
{
    size_t n = board->beside_done;
    int status = times_of(board->beside_ns, n, arena, &result->end_to_end);
    if (!status)
        status = times_of(board->pre_ns, n, arena, &result->pre);
    return status ? status : times_of(board->post_ns, n, arena, &result->post);
}

static const char *why_not(const tare__board *board, const tare__child_seen *seen, tare__arena *arena)
{
    tare__text text = {0};
    if (board->status || seen->death[0])
        tare__text_format(&text, "%s%s%s", board->status ? board->error.text : seen->death,
                          seen->words[0] ? "; the last words were: " : "", seen->words);
    const char *copy = text.length ? tare__arena_copy(arena, text.data, text.length) : NULL;
    tare__text_free(&text);
    return copy;
}

int tare__result_fill(tare__runner_result *result, const tare__board *board, const tare__child_seen *seen,
                      const tare__ort_tensor *tensors, size_t n_tensors, tare__arena *arena)
{
    result->failure = why_not(board, seen, arena);
    result->runtime_ns = board->runtime_ns;
    result->load_ns = board->load_ns;
    result->first_ns = board->first_ns;
    result->warmup = board->warm_done;
    result->steady = board->steady;
    result->warm_cv = board->warm_cv;
    result->ran = board->run_done > 0;
    fill_memory(result, board, seen);
    int status = times_of(board->values + board->runs_room, board->run_done, arena, &result->latency);
    if (!status && result->ran)
        status = fill_rates(result, board, tensors, n_tensors, arena);
    return status ? status : fill_beside(result, board, arena);
}

/* ---- the best of several -------------------------------------------------------------------------------------- */
/* In steps of 2 %: smaller differences are within the measurement error. */
static double step_of(double value)
{
    return value > 0 ? floor(log(value) / log(1.02) + 0.5) : INFINITY;
}

static void costs_of(const tare__runner_result *result, double costs[3])
{
    double rate = NAN;
    for (size_t i = 0; i < result->n_rates; i++)
        if (strcmp(result->rates[i].unit, "samples/s") == 0)
            rate = result->rates[i].value;
    costs[0] = step_of(result->latency.quantile_ns[TARE__RUNNER_P50]);
    costs[1] = -step_of(rate);
    costs[2] = step_of(result->memory_peak_bytes);
}

static bool dominates(const tare__runner_result *a, const tare__runner_result *b)
{
    double of_a[3], of_b[3];
    bool better = false;
    costs_of(a, of_a);
    costs_of(b, of_b);
    for (size_t i = 0; i < 3; i++) {
        if (of_a[i] > of_b[i])
            return false;
        better |= of_a[i] < of_b[i];
    }
    return better;
}

void tare__results_mark_best(tare__runner_result *results, size_t n)
{
    size_t ran = 0;
    for (size_t i = 0; i < n; i++)
        ran += results[i].ran;
    for (size_t i = 0; i < n; i++) {
        results[i].best = results[i].ran && ran > 1;
        for (size_t j = 0; j < n && results[i].best; j++)
            results[i].best = !results[j].ran || !dominates(&results[j], &results[i]);
    }
}
