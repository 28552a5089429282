/* rules_gpu: GPUs that are idle, out of memory, hot or faulty. Only those that the run used.
 * Owned by the thread that analyzes.
 * Must not know NVML, except for the numbers of its throttle reasons. */
#include <inttypes.h>
#include <math.h>

#include "rules.h"

/* nvmlClocksEventReasonSwThermalSlowdown, …HwThermalSlowdown, and HwSlowdown, which heat or power may have set. */
#define SW_THERMAL  0x20u
#define HW_THERMAL  0x40u
#define HW_SLOWDOWN 0x08u

static const tare__metric_row *next_used(const tare__analysis *of, size_t *at, tare__metric metric)
{
    const tare__metric_row *row;
    while ((row = tare__rows_next(of, at, metric, TARE__SUBJECT_GPU)))
        if (tare__gpu_used(of, row->key))
            return row;
    return NULL;
}

/* The time in which processes of the run used the GPU; the whole sampled time if that is not known. */
static void used_span(const tare__analysis *of, const tare__metric_row *gpu, double *from, double *to)
{
    const tare__metric_row *row;
    *from = INFINITY;
    *to = -INFINITY;
    for (size_t at = 0; (row = tare__rows_next(of, &at, TARE__M_MEMORY_USED, TARE__SUBJECT_GPU_PROCESS));) {
        if (row->owner != gpu->key)
            continue;
        *from = fmin(*from, row->from_ns);
        *to = fmax(*to, row->to_ns);
    }
    if (!(*to > *from)) {
        *from = gpu->from_ns;
        *to = gpu->to_ns;
    }
}

/* The busy curve while the run was on the GPU. */
static bool busy_curve(const tare__analysis *of, const tare__metric_row *row, curve *curve)
{
    double from, to;
    size_t kept = 0;
    if (!tare__curve_of(row, curve))
        return false;
    used_span(of, row, &from, &to);
    for (size_t i = 0; i < curve->n; i++)
        if (curve->points[i].at + curve->points[i].lasts > from && curve->points[i].at < to)
            curve->points[kept++] = curve->points[i];
    curve->n = kept;
    return tare__curve_enough(curve) && curve->n >= limit(LIMIT_GPU_SAMPLES);
}

void tare__rule_gpu_busy(findings *out, const tare__analysis *of)
{
    const tare__metric_row *row;
    for (size_t at = 0; (row = next_used(of, &at, TARE__M_GPU_BUSY));) {
        curve curve;
        if (!busy_curve(of, row, &curve))
            continue;
        double mean = tare__curve_mean(&curve);
        if (!(mean < limit(LIMIT_GPU_BUSY)))
            continue;
        stretch idle = tare__curve_below(&curve, limit(LIMIT_GPU_BUSY));
        tare__finding_add(out, TARE__WARNING);
        tare__say_when(out, idle.from_ns, idle.to_ns);
        tare__say_title(out, "GPU %" PRIu64 " was busy %s of steady state", row->key, percent(mean).text);
        tare__say_evidence(out,
                           "A kernel ran on %s for %s of the time in which the run used it; for %s it was below %s.",
                           tare__show_name(row->label).text, percent(mean).text, tare__show_time(idle.held_ns).text,
                           percent(limit(LIMIT_GPU_BUSY)).text);
        tare__say_advice(
            out,
            tare__has_loader(of)
                ? "Keep the GPU supplied: DataLoader num_workers and pin_memory=True, copies with non_blocking=True, a "
                  "larger batch, torch.compile or CUDA graphs for many small launches, no .item() in the loop."
                : tare__imported(of, "torch")
                ? "Keep the GPU supplied: load the next batch while the model computes, copies with non_blocking=True, "
                  "a larger batch, torch.compile or CUDA graphs for many small launches, no .item() in the loop."
                : "Keep the GPU supplied: load and copy data ahead, use larger batches, and synchronize less often.");
        if (mean >= limit(LIMIT_GPU_IDLE))
            tare__say_gain(out, fmin((1 - mean) * tare__curve_length(&curve) / of->run.elapsed_ns, 1),
                           "the time in which no kernel ran, if the same kernels ran without a break");
        else
            tare__say_gain(out, NAN, "not predicted: hardly any kernel ran on it");
        tare__say_figure(out, "busy", mean, TARE__SHOW_SHARE);
        tare__say_figure(out, "gpu", (double)row->key, TARE__SHOW_COUNT);
    }
}

/* ---- gaps ------------------------------------------------------------------------------------ */
typedef struct gaps {
    double total_ns, longest_from, longest_to, spanned_ns;
    unsigned n;
} gaps;

/* Idle stretches between the first and the last work. */
static gaps find_gaps(const curve *curve)
{
    gaps found = {0, NAN, NAN, 0, 0};
    size_t first = 0, last = curve->n;
    while (first < last && curve->points[first].value < limit(LIMIT_GPU_IDLE))
        first++;
    while (last > first && curve->points[last - 1].value < limit(LIMIT_GPU_IDLE))
        last--;
    for (size_t i = first; i < last;) {
        size_t end = i;
        while (end < last && curve->points[end].value < limit(LIMIT_GPU_IDLE))
            end++;
        if (end == i) {
            i++;
            continue;
        }
        double from = curve->points[i].at, to = curve->points[end - 1].at + curve->points[end - 1].lasts;
        i = end;
        if (to - from < limit(LIMIT_GPU_GAP))
            continue;
        found.n++;
        found.total_ns += to - from;
        if (!(to - from <= found.longest_to - found.longest_from)) {
            found.longest_from = from;
            found.longest_to = to;
        }
    }
    if (last > first)
        found.spanned_ns = curve->points[last - 1].at + curve->points[last - 1].lasts - curve->points[first].at;
    return found;
}

void tare__rule_gpu_gaps(findings *out, const tare__analysis *of)
{
    const tare__metric_row *row;
    for (size_t at = 0; (row = next_used(of, &at, TARE__M_GPU_BUSY));) {
        curve curve;
        if (!busy_curve(of, row, &curve))
            continue;
        gaps gaps = find_gaps(&curve);
        double share = gaps.spanned_ns > 0 ? gaps.total_ns / gaps.spanned_ns : NAN;
        if (!(share >= limit(LIMIT_GPU_GAPS_INFO)))
            continue;
        tare__finding_add(out, share >= limit(LIMIT_GPU_GAPS_WARNING) ? TARE__WARNING : TARE__INFO);
        tare__say_when(out, gaps.longest_from, gaps.longest_to);
        tare__say_title(out, "GPU %" PRIu64 " was idle for %s (%u gap%s)", row->key,
                        tare__show_time(gaps.total_ns).text, gaps.n, gaps.n == 1 ? "" : "s");
        tare__say_evidence(out,
                           "Gaps of half a second or more without a kernel take %s of the time between its first and "
                           "last kernel; the longest is %s, from %s on.", percent(share).text,
                           tare__show_time(gaps.longest_to - gaps.longest_from).text,
                           tare__show_time(gaps.longest_from).text);
        tare__say_advice(
            out,
            tare__has_loader(of)
                ? "See in the timeline what the program does in the gaps: data loading, evaluation on the CPU, writing "
                  "checkpoints (do it in the background), or workers restarted each epoch (persistent_workers=True)."
                : "See in the timeline what the program does in the gaps, and do it in the background.");
        tare__say_gain(out, fmin(gaps.total_ns / of->run.elapsed_ns, 1),
                       "the gaps, if what is done in them ran in the background");
        tare__say_figure(out, "gaps", gaps.n, TARE__SHOW_COUNT);
        tare__say_figure(out, "idle", share, TARE__SHOW_SHARE);
        tare__say_figure(out, "gpu", (double)row->key, TARE__SHOW_COUNT);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */
void tare__rule_gpu_memory(findings *out, const tare__analysis *of)
{
    const tare__metric_row *row;
    for (size_t at = 0; (row = next_used(of, &at, TARE__M_MEMORY_USED));) {
        const tare__metric_row *total = tare__rows_beside(of, row, TARE__M_MEMORY_TOTAL);
        double share = total ? row->max / total->last : NAN;
        if (!(share > limit(LIMIT_GPU_MEMORY)))
            continue;
        tare__finding_add(out, TARE__WARNING);
        tare__say_when_above(out, row, limit(LIMIT_GPU_MEMORY) * total->last);
        tare__say_title(out, "GPU %" PRIu64 " memory reached %s of %s", row->key, percent(share).text,
                        bytes(total->last).text);
        tare__say_evidence(out, "Up to %s was in use, at %s. Memory that a framework caches counts as used.",
                           bytes(row->max).text, tare__show_time(row->max_at_ns).text);
        tare__say_advice(
            out,
            tare__imported(of, "torch")
                ? "Use a smaller batch with gradient accumulation, gradient checkpointing or mixed precision; set "
                  "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True against fragmentation."
                : "Use smaller batches or a lower precision, or free what is no longer needed.");
        tare__say_gain(out, NAN, "no gain in time: it keeps the run from failing");
        tare__say_figure(out, "share", share, TARE__SHOW_SHARE);
        tare__say_figure(out, "used", row->max, TARE__SHOW_BYTES);
        tare__say_figure(out, "gpu", (double)row->key, TARE__SHOW_COUNT);
    }
}

void tare__rule_gpu_errors(findings *out, const tare__analysis *of)
{
    const tare__metric_row *row;
    for (size_t at = 0; (row = next_used(of, &at, TARE__M_GPU_ECC));) {
        if (!(row->total > 0))
            continue;
        tare__finding_add(out, TARE__CRITICAL);
        tare__say_title(out, "GPU %" PRIu64 " had %s uncorrected memory errors", row->key, count(row->total).text);
        tare__say_evidence(out, "Its count of uncorrected errors grew by %s during the run.", count(row->total).text);
        tare__say_advice(out,
                         "Do not trust the results of this run. Take the GPU out of service and check it (nvidia-smi "
                         "-q -d ECC,PAGE_RETIREMENT).");
        tare__say_gain(out, NAN, "no gain in time: results may be wrong");
        tare__say_figure(out, "errors", row->total, TARE__SHOW_COUNT);
        tare__say_figure(out, "gpu", (double)row->key, TARE__SHOW_COUNT);
    }
}

/* ---- heat ------------------------------------------------------------------------------------ */
/* Minimum and maximum of merged samples are real samples; their mean is not. */
static double hot_share(const tare__metric_row *row, double *from, double *to)
{
    double hot = 0, all = 0;
    *from = *to = NAN;
    for (size_t i = 0; row->points && i < row->n_points; i++) {
        const tare__metric_point *point = &row->points[i];
        uint64_t least = (uint64_t)fmax(point->min, 0), most = (uint64_t)fmax(point->max, 0);
        uint64_t thermal = SW_THERMAL | HW_THERMAL | HW_SLOWDOWN;
        double part = ((least & thermal) != 0) * 0.5 + ((most & thermal) != 0) * 0.5;
        all += point->lasts_ns;
        hot += part * point->lasts_ns;
        if (part > 0) {
            *from = isnan(*from) ? point->at_ns : *from;
            *to = point->at_ns + point->lasts_ns;
        }
    }
    return all > 0 ? hot / all : NAN;
}

void tare__rule_gpu_hot(findings *out, const tare__analysis *of)
{
    const tare__metric_row *row;
    for (size_t at = 0; (row = next_used(of, &at, TARE__M_GPU_THROTTLE));) {
        double from, to, share = hot_share(row, &from, &to);
        const tare__metric_row *heat = tare__rows_beside(of, row, TARE__M_TEMPERATURE);
        const tare__metric_row *clock = tare__rows_beside(of, row, TARE__M_GPU_CLOCK);
        if (row->n < limit(LIMIT_FEWEST_SAMPLES) || !(share >= limit(LIMIT_GPU_SLOWED)))
            continue;
        tare__finding_add(out, TARE__WARNING);
        tare__say_when(out, from, to);
        tare__say_title(out, "GPU %" PRIu64 " was thermally throttled for %s of steady state", row->key,
                        percent(share).text);
        tare__say_evidence(out,
                           "The driver reported heat or a hardware slowdown as the reason for a lower clock for %s of "
                           "the time.", percent(share).text);
        if (heat)
            tare__say_evidence(out, "Its temperature reached %s.", tare__show(heat->max, TARE__SHOW_CELSIUS).text);
        tare__say_advice(
            out, "Check its cooling; a lower power limit (nvidia-smi -pl) often costs less speed than throttling.");
        if (clock && clock->max > 0)
            tare__say_gain(
                out, fmin(share, 1 - clock->mean / clock->max), "its mean clock of %s against its highest of %s",
                tare__show(clock->mean, TARE__SHOW_HERTZ).text, tare__show(clock->max, TARE__SHOW_HERTZ).text);
        else
            tare__say_gain(out, NAN, "not predicted: its clock is unavailable");
        tare__say_figure(out, "share", share, TARE__SHOW_SHARE);
        tare__say_figure(out, "temperature", heat ? heat->max : NAN, TARE__SHOW_CELSIUS);
        tare__say_figure(out, "gpu", (double)row->key, TARE__SHOW_COUNT);
    }
}
