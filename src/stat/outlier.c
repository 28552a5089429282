/* outlier: labels values far from the others; nothing is dropped.
 * Owned by the calling thread; scratch memory is freed before it returns.
 * Must not know what the values measure. */
#include "inner.h"

#include <stdlib.h>

#include "tare.h"

#define MILD   1.5
#define SEVERE 3.0

int tare__outliers_tukey(const double *values, size_t n, tare__outlier *labels, size_t *found)
{
    double *sorted = tare__stat_sorted(values, n);
    if (!sorted)
        return TARE_E_MEMORY;
    double low = tare__quantile_sorted(sorted, n, 0.25), high = tare__quantile_sorted(sorted, n, 0.75);
    double range = high - low; /* 0: nothing is far */
    size_t count = 0;
    free(sorted);
    for (size_t i = 0; i < n; i++) {
        double off = fmax(low - values[i], values[i] - high);
        labels[i] = !(range > 0) || !(off > MILD * range) ? TARE__OUTLIER_NONE
                    : off > SEVERE * range                ? TARE__OUTLIER_SEVERE
                                                          : TARE__OUTLIER_MILD;
        count += labels[i] != TARE__OUTLIER_NONE;
    }
    if (found)
        *found = count;
    return 0;
}
