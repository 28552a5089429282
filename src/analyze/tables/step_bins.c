/* step_bins: distribution of step durations, in bins of equal width.
 * Owned by the thread that analyzes.
 * Must not know how steps are recorded, nor how bins are drawn. */
#include "analyze/inner.h"

/* The bins extend beyond the median by this many times the distance from the median to p95; longer steps are
 * counted, not drawn: otherwise one slow first step would compress all others into one bin. */
#define TAIL 4.0

static void add(tare__step_bins *bins, double ns, uint64_t times)
{
    double at = bins->width_ns > 0 ? (ns - bins->from_ns) / bins->width_ns : 0;
    if (at > TARE__STEP_BINS + 1e-9)
        bins->over += times;
    else
        bins->counts[at < 0 ? 0 : at >= TARE__STEP_BINS ? TARE__STEP_BINS - 1 : (size_t)at] += times;
}

void tare__analyze_step_bins(const steps *steps, double tick_ns, tare__step_row *row)
{
    tare__step_bins *bins = &row->bins;
    *bins = (tare__step_bins){.from_ns = NAN, .width_ns = NAN};
    if (steps->count == 0)
        return;
    double end = row->each.p50_ns + TAIL * (row->each.p95_ns - row->each.p50_ns);
    if (!(end < row->each.max_ns) || !(end > row->each.min_ns))
        end = row->each.max_ns;
    bins->from_ns = row->each.min_ns;
    bins->width_ns = (end - row->each.min_ns) / TARE__STEP_BINS;
    for (size_t i = 0; i < steps->n_exact; i++)
        add(bins, (double)steps->exact[i] * tick_ns, 1);
    for (uint32_t i = 0; i < steps->hist.length; i++) {
        uint32_t bucket = steps->hist.first + i;
        double low = (double)tare__hist_low(bucket, steps->hist.bits);
        double middle = (low + (double)tare__hist_high(bucket, steps->hist.bits)) / 2 * tick_ns;
        if (steps->hist.counts[i])
            add(bins, middle < row->each.max_ns ? middle : row->each.max_ns, steps->hist.counts[i]);
    }
}
