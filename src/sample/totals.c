/* totals: total usage of all processes of the tree, including ended ones.
 * One thread: the set's.
 * Must not know how a process is read. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "watch.h"

#define CPU_SLACK_NS 20000000 /* the kernel rounds times of reaped children down to its ticks */

int64_t tare__watch_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* The process that may have waited for it: the nearest ancestor that still exists. */
static tare__watched *heir_of(tare__watch *watch, const tare__watched *process)
{
    pid_t parent = process->stat.parent;
    for (int depth = 0; depth < 64; depth++) {
        tare__watched *above = tare__watch_find(watch, parent);
        if (!above || !above->gone)
            return above;
        parent = above->stat.parent;
    }
    return NULL;
}

static void why_unknown(const tare__watched *process, int which, char out[256])
{
    char words[256];
    const char *reason = tare__watch_reason(process, which, words);
    snprintf(out, 256, "unavailable for %.40s: %.190s", process->stat.name, reason ? reason : "cannot be read");
}

/* The usage of an ended process is included in that of the process that waited for it. If that has not grown enough,
 * no process waited for it (an orphan, or a parent that ignores SIGCHLD), and it is kept here. */
void tare__totals_keep_ended(tare__totals *totals, tare__watch *watch)
{
    for (size_t k = 0; k < watch->count; k++) {
        tare__watched *process = &watch->processes[k];
        if (!process->gone)
            continue;
        tare__watched *heir = heir_of(watch, process);
        if (process->io_failure && (!heir || heir->io_failure) && !totals->io_unknown[0])
            why_unknown(process, TARE__W_IO_READ, totals->io_unknown);
        for (int i = 0; i < TARE__W_LASTING; i++) {
            int64_t slack = i < 2 ? CPU_SLACK_NS : 0;
            if (heir && tare__watch_add(heir->waited[i], slack) >= process->lasting[i]) {
                heir->waited[i] -= process->lasting[i];
                if (!heir->inherits_exactly)
                    heir->inherited[i] = tare__watch_add(heir->inherited[i], process->lasting[i]);
            } else {
                totals->ended[i] = tare__watch_add(totals->ended[i], process->lasting[i]);
            }
        }
    }
}

typedef struct tree_sum {
    int64_t value[TARE__W_IN_TREE];
    const tare__watched *unknown[TARE__W_IN_TREE]; /* one whose value is unknown */
    bool skip[TARE__W_IN_TREE];
    int64_t processes, pss;
    bool pss_known;
} tree_sum;

static void add_up(const tare__totals *totals, const tare__watch *watch, tree_sum *sum)
{
    memset(sum, 0, sizeof *sum);
    memcpy(sum->value, totals->ended, sizeof totals->ended);
    sum->pss_known = true;
    for (size_t k = 0; k < watch->count; k++) {
        const tare__watched *process = &watch->processes[k];
        if (process->gone)
            continue;
        for (int i = 0; i < TARE__W_LASTING; i++) {
            sum->value[i] = tare__watch_add(sum->value[i], process->lasting[i]);
            if (i >= TARE__W_IO_READ && process->io_failure) /* at its last reading, if it has ended */
                sum->unknown[i] = process;
        }
        if (process->ended)
            continue;
        sum->processes++;
        if (process->unread) {
            memset(sum->skip, true, sizeof sum->skip);
            continue;
        }
        for (int i = TARE__W_LASTING; i < TARE__W_IN_TREE; i++) {
            if (process->value[i] != TARE__NO_VALUE)
                sum->value[i] = tare__watch_add(sum->value[i], process->value[i]);
            else if (process->many_threads)
                sum->skip[i] = true; /* not due */
        }
        sum->pss_known = sum->pss_known && process->value[TARE__W_PSS] != TARE__NO_VALUE;
        if (process->value[TARE__W_PSS] != TARE__NO_VALUE)
            sum->pss += process->value[TARE__W_PSS];
    }
}

static uint32_t series_of(tare__sample_set *set, uint32_t *series, tare__metric metric)
{
    if (!*series)
        *series = tare__sample_series_of(set, metric, &(tare__subject){.kind = TARE__SUBJECT_TREE});
    return *series;
}

static void put_now(tare__sample_set *set, tare__totals *totals, const tree_sum *sum, uint64_t now_ns)
{
    tare__sample_now *now = tare__sample_now_put(set);
    int64_t cpu = tare__watch_add(totals->told[TARE__W_USER], totals->told[TARE__W_SYSTEM]);
    if (totals->last_ns && now_ns > totals->last_ns)
        now->tree_cores = (double)(cpu - totals->last_cpu_ns) / (double)(now_ns - totals->last_ns);
    now->tree_rss_bytes = sum->processes ? (double)sum->value[TARE__W_RSS] : NAN;
    totals->last_cpu_ns = cpu;
    totals->last_ns = now_ns;
}

static void put_no_tree(tare__sample_set *set, tare__totals *totals)
{
    for (int i = 0; i < TARE__W_IN_TREE; i++)
        tare__sample_absent(set, series_of(set, &totals->series[i], tare__watch_metric(i)),
                            "the program ended before the first sample");
}

void tare__totals_put(tare__sample_set *set, tare__totals *totals, const tare__watch *watch, uint64_t now_ns,
                      bool pss)
{
    tree_sum sum;
    if (!watch->target_start) {
        put_no_tree(set, totals);
        return;
    }
    add_up(totals, watch, &sum);
    for (int i = 0; i < TARE__W_IN_TREE; i++) {
        uint32_t series = series_of(set, &totals->series[i], tare__watch_metric(i));
        char reason[256];
        if (sum.skip[i] || (sum.processes == 0 && i >= TARE__W_LASTING))
            continue; /* without processes there is no value, not even 0 */
        bool io_unknown = totals->io_unknown[0] && i >= TARE__W_IO_READ && i < TARE__W_LASTING;
        if (sum.unknown[i] || io_unknown) {
            if (sum.unknown[i])
                why_unknown(sum.unknown[i], i, reason);
            tare__sample_absent(set, series, sum.unknown[i] ? reason : totals->io_unknown);
            continue;
        }
        if (i < TARE__W_LASTING) { /* it never decreases, whatever was attributed to reaped children */
            if (sum.value[i] < totals->told[i])
                sum.value[i] = totals->told[i];
            totals->told[i] = sum.value[i];
        }
        tare__sample_put(set, series, sum.value[i]);
    }
    tare__sample_put(set, series_of(set, &totals->processes_series, TARE__M_PROCESSES), sum.processes);
    if (pss && sum.pss_known && sum.processes)
        tare__sample_put(set, series_of(set, &totals->pss_series, TARE__M_PSS), sum.pss);
    if (!sum.skip[TARE__W_USER])
        put_now(set, totals, &sum, now_ns);
}
