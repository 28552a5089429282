/* sequential: pairs looked at one after the other, with an error that stays what it is however often one looks.
 * Pure functions; any thread.
 * Must not know what is measured. */
#include "stat.h"

#include <stdlib.h>

/* What a bet on each share alike has gained after n pairs, `above` of which were above:
 * 2^n B(above + 1, n - above + 1). */
static double gain_of(double above, double n)
{
    return exp(n * log(2) + lgamma(above + 1) + lgamma(n - above + 1) - lgamma(n + 2));
}

/* The bet on a share of a half, of pairs that are not equal. */
static double p_of(const double *logs, size_t n)
{
    double above = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        above += logs[i] > 0;
        count += logs[i] != 0;
    }
    double gain = gain_of(above, count);
    return gain > 1 ? 1 / gain : 1;
}

/* From the k-th smallest to the k-th largest: a median outside would have as few as k - 1 pairs on one side. */
static void find_interval(const double *sorted, size_t n, double confidence, tare__estimate *ratio)
{
    size_t k = 0;
    while (2 * k < n && gain_of((double)k, (double)n) >= 1 / (1 - confidence))
        k++;
    if (k == 0)
        return;
    ratio->low = exp(sorted[k - 1]);
    ratio->high = exp(sorted[n - k]);
}

tare__sequential tare__sequential_ratio(const double *base, const double *head, size_t n, double confidence)
{
    tare__sequential out = {.ratio = {NAN, NAN, NAN, confidence, 0}, .p = NAN};
    double *logs = malloc((n ? n : 1) * sizeof *logs);
    size_t pairs = 0;
    for (size_t i = 0; logs && i < n; i++)
        if (base[i] > 0 && head[i] > 0 && isfinite(base[i]) && isfinite(head[i]))
            logs[pairs++] = log(head[i] / base[i]);
    out.ratio.n = pairs;
    if (pairs) {
        out.p = p_of(logs, pairs);
        tare__sort(logs, pairs);
        out.ratio.value = exp(tare__quantile_sorted(logs, pairs, 0.5));
        find_interval(logs, pairs, confidence, &out.ratio);
    }
    free(logs);
    return out;
}
