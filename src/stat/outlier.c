/* outlier: labels values far from the others; nothing is dropped.
 * Owned by the calling thread; scratch memory is freed before it returns.
 * Must not know what the values measure. */
#include "inner.h"

#include <stdlib.h>

#include "tare.h"

#define TUKEY_MILD   1.5
#define TUKEY_SEVERE 3.0
#define MAD_MILD     5.1891 /* 3.5 / 0.6745: Iglewicz and Hoaglin, "How to detect and handle outliers" */
#define MAD_SEVERE   14.826 /* ten standard deviations of a normal distribution */

typedef struct fences {
    double low, high; /* from where distance counts */
    double scale;     /* unit of the distance; 0: nothing is far */
    double mild, severe;
} fences;

static void label(const double *values, size_t n, const fences *fences, tare__outlier *labels, size_t *found)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        double off = fmax(fences->low - values[i], values[i] - fences->high);
        labels[i] = !(fences->scale > 0)                   ? TARE__OUTLIER_NONE
                    : off > fences->severe * fences->scale ? TARE__OUTLIER_SEVERE
                    : off > fences->mild * fences->scale   ? TARE__OUTLIER_MILD
                                                           : TARE__OUTLIER_NONE;
        count += labels[i] != TARE__OUTLIER_NONE;
    }
    if (found)
        *found = count;
}

int tare__outliers_tukey(const double *values, size_t n, tare__outlier *labels, size_t *found)
{
    double *sorted = tare__stat_sorted(values, n);
    if (!sorted)
        return TARE_E_MEMORY;
    fences fences = {tare__quantile_sorted(sorted, n, 0.25), tare__quantile_sorted(sorted, n, 0.75), 0,
                     TUKEY_MILD, TUKEY_SEVERE};
    fences.scale = fences.high - fences.low;
    free(sorted);
    label(values, n, &fences, labels, found);
    return 0;
}

int tare__outliers_mad(const double *values, size_t n, tare__outlier *labels, size_t *found)
{
    double *sorted = tare__stat_sorted(values, n);
    if (!sorted)
        return TARE_E_MEMORY;
    double median = tare__quantile_sorted(sorted, n, 0.5);
    for (size_t i = 0; i < n; i++)
        sorted[i] = fabs(sorted[i] - median);
    tare__sort(sorted, n);
    fences fences = {median, median, tare__quantile_sorted(sorted, n, 0.5), MAD_MILD, MAD_SEVERE};
    free(sorted);
    label(values, n, &fences, labels, found);
    return 0;
}
