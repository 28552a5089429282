/* roofline: operators relative to the machine's peak performance.
 * Owned by the thread that analyzes.
 * Must not know how peaks were measured, nor how FLOPs were counted. */
#include "analyze/inner.h"

#include <math.h>
#include <string.h>

static const char no_peaks[] = "the peaks of the machine were not measured (tare run --shapes)";
static const char other_device[] = "it ran on a GPU, and the peaks are the CPU's";
static const char no_type[] = "no peak is measured for its type";
static const char too_many_flops[] =
    "it is faster than the peak: its kernel executes fewer operations than its formula counts";
static const char too_many_bytes[] = "it is faster than caches and memory: it does not move all bytes of its tensors";

/* "f32[8,64] i64[3]; bf16[8,64]": the highest peak among the types used for computation. */
static double peak_of(const tare__peaks *peaks, const char *shapes)
{
    double highest = NAN;
    for (const char *at = shapes; (at = strchr(at, '[')) != NULL; at++) {
        const char *from = at;
        while (from > shapes && from[-1] != ' ')
            from--;
        int type = tare__peak_find(from, (size_t)(at - from));
        if (type >= 0 && peaks->flops[type] > 0)
            highest = fmax(highest, peaks->flops[type]); /* fmax ignores NaN */
    }
    return highest;
}

/* An impossible share is not shown: the counted FLOPs or bytes do not match the operator. */
static double share_of(double share, const char *impossible, const char **absent)
{
    if (!(share > 1))
        return share;
    *absent = impossible;
    return NAN;
}

static void set_against(tare__operator_row *row, const tare__peaks *peaks)
{
    row->of_peak_flops = row->of_peak_bytes = NAN;
    if (!row->shapes)
        row->of_peak_absent = row->shapes_absent;
    else if (strstr(row->shapes, " on "))
        row->of_peak_absent = other_device;
    else if (!(peaks->level_per_s[TARE__PEAK_LEVELS - 1] > 0))
        row->of_peak_absent = no_peaks;
    if (!row->shapes || row->of_peak_absent)
        return;
    double peak = peak_of(peaks, row->shapes), each = row->calls ? row->bytes / (double)row->calls : NAN;
    if (isnan(peak))
        row->of_peak_absent = no_type;
    row->of_peak_flops = share_of(row->flops_per_s / peak, too_many_flops, &row->of_peak_absent);
    /* Based on the mean of the calls: calls of several sizes take longer together, never less. */
    if (each > 0)
        row->of_peak_bytes = share_of(tare__peaks_move_s(peaks, each) * row->bytes_per_s / each, too_many_bytes,
                                      &row->of_peak_absent);
}

void tare__analyze_roofline(tare__analysis *analysis)
{
    tare__operator_row *rows = (tare__operator_row *)analysis->operators;
    for (size_t i = 0; i < analysis->n_operators; i++)
        set_against(&rows[i], &analysis->run.peaks);
}
