/* rules_disk: a program that waits for disks, a saturated disk, a network that loses packets.
 * Owned by the thread that analyzes.
 * Must not know how any of it was measured. */
#include <math.h>

#include "hot.h"

static shown rate_of(double bytes, double elapsed_ns)
{
    return tare__show(bytes / (elapsed_ns / 1e9), TARE__SHOW_BYTES_PER_S);
}

/* Bytes read and written by the job itself; NaN: not known. */
static double own_bytes(const tare__analysis *of)
{
    return of->usage.disk_read_bytes + of->usage.disk_write_bytes;
}

static bool moves_much(const tare__analysis *of)
{
    return own_bytes(of) >= limit(LIMIT_DISK_BYTES) * (of->run.elapsed_ns / 1e9);
}

/* ---- the program waits ----------------------------------------------------------------------- */

/* Threads wait for a disk, and no more threads than these are running. */
static bool only_waits(const curve_point *point, const void *context)
{
    const tare__metric_row *running = context;
    double runs = running ? tare__row_mean(running, point->at, point->at + point->lasts) : NAN;
    return point->value >= 0.5 && !(runs > point->value);
}

/* If the kernel reports it, the pressure of this container shows the same without samples of thread states. */
static double container_pressure(const tare__analysis *of)
{
    const tare__metric_row *row = tare__rows_first(of, TARE__M_PRESSURE_IO, TARE__SUBJECT_CONTAINER);
    return row ? row->mean : NAN;
}

static void say_traffic(findings *out, const tare__analysis *of)
{
    const tare__usage_table *usage = &of->usage;
    if (isfinite(usage->disk_read_bytes) && isfinite(usage->disk_write_bytes))
        tare__say_evidence(out, "It read %s from disks (%s) and wrote %s (%s).", bytes(usage->disk_read_bytes).text,
                           rate_of(usage->disk_read_bytes, of->run.elapsed_ns).text,
                           bytes(usage->disk_write_bytes).text,
                           rate_of(usage->disk_write_bytes, of->run.elapsed_ns).text);
    if (usage->faults_major > 100)
        tare__say_evidence(out, "%s page faults waited for a disk.", count(usage->faults_major).text);
}

static bool mostly_writes(const tare__analysis *of)
{
    return of->usage.disk_write_bytes > of->usage.disk_read_bytes;
}

static void advise_disk(findings *out, const tare__analysis *of)
{
    if (mostly_writes(of))
        tare__say_advice(out,
                         "Write less often, in larger blocks and in the background (fsync once at the end, not for "
                         "each record), to local storage.");
    else
        tare__say_advice(
            out,
            tare__has_loader(of)
                ? "Read ahead (DataLoader num_workers, prefetch_factor) and in larger blocks (shards instead of many "
                  "small files), from local storage; cache in memory what every epoch reads again."
                : "Read ahead in the background and in larger blocks, from local storage; cache in memory what is read "
                  "again.");
}

/* On a crowded machine a program that waits for a disk then waits for a CPU, so the disk's share of the run is
 * small; its share of the time without waiting for a CPU is not. */
static bool waits_by_ticks(const tare__analysis *of, const stretch *waits)
{
    curve cores;
    double used = tare__tree_cores(of, &cores) ? tare__curve_mean(&cores) : NAN;
    return waits->share >= limit(LIMIT_DISK_WAIT) ||
           (waits->share >= limit(LIMIT_DISK_WAIT_LEAST) &&
            waits->share / (waits->share + used) >= limit(LIMIT_DISK_WAIT_OF_OWN) && moves_much(of));
}

static void say_disk_line(findings *out, const tare__analysis *of)
{
    const tare__hot_question question = {.states = 1u << TARE__STATE_DISK, .time = "the time waiting for disks"};
    tare__say_hot(out, of, &question);
}

void tare__rule_disk_bound(findings *out, const tare__analysis *of)
{
    curve disk;
    bool seen = tare__tree_curve(of, TARE__M_THREADS_DISK_WAIT, &disk) && tare__curve_enough(&disk);
    const tare__metric_row *running = tare__rows_first(of, TARE__M_THREADS_RUNNING, TARE__SUBJECT_TREE);
    stretch waits = {.share = NAN, .from_ns = NAN, .to_ns = NAN};
    if (seen)
        waits = tare__curve_where(&disk, only_waits, running);
    double pressure = container_pressure(of);
    bool by_ticks = waits_by_ticks(of, &waits);
    bool by_pressure = of->run.elapsed_ns >= limit(LIMIT_SHORTEST_RUN) &&
                       pressure >= limit(LIMIT_DISK_WAIT) && moves_much(of);
    if (!by_ticks && !by_pressure)
        return;
    double share = by_ticks ? waits.share : pressure;
    tare__finding_add(out, share >= limit(LIMIT_DISK_WAIT_CRITICAL) ? TARE__CRITICAL : TARE__WARNING);
    tare__say_when(out, waits.from_ns, waits.to_ns);
    tare__say_title(out, "Disk-bound: it waits for disks for %s of steady state", percent(share).text);
    if (by_ticks)
        tare__say_evidence(out, "For %s (%s of steady state) threads of it waited for a disk and no more of them ran.",
                           tare__show_time(waits.held_ns).text, percent(waits.share).text);
    if (pressure >= limit(LIMIT_DISK_WAIT_LEAST))
        tare__say_evidence(out, "Some task of its container waited for a disk for %s of the time.",
                           percent(pressure).text);
    say_traffic(out, of);
    say_disk_line(out, of);
    advise_disk(out, of);
    tare__say_gain(out, fmin(share, 1), "the time it waited, if all of it overlapped with compute");
    tare__say_figure(out, "waiting", waits.share, TARE__SHOW_SHARE);
    tare__say_figure(out, "pressure", pressure, TARE__SHOW_SHARE);
    tare__say_figure(out, "read", of->usage.disk_read_bytes, TARE__SHOW_BYTES);
    tare__say_figure(out, "written", of->usage.disk_write_bytes, TARE__SHOW_BYTES);
}

/* ---- the disk is saturated ------------------------------------------------------------------- */
static double device_bytes(const tare__analysis *of, const tare__metric_row *busy)
{
    const tare__metric_row *read = tare__rows_beside(of, busy, TARE__M_DISK_READ);
    const tare__metric_row *written = tare__rows_beside(of, busy, TARE__M_DISK_WRITE);
    return read && written ? read->total + written->total : NAN;
}

static void tell_busy(findings *out, const tare__analysis *of, const tare__metric_row *busy,
                      const stretch *held, bool full)
{
    const tare__metric_row *queue = tare__rows_beside(of, busy, TARE__M_DISK_QUEUE);
    double moved = device_bytes(of, busy), own = own_bytes(of);
    bool others = isfinite(own) && (!moves_much(of) || own < 0.1 * moved);
    tare__finding_add(out, full && !others ? TARE__WARNING : TARE__INFO);
    tare__say_when(out, held->from_ns, held->to_ns);
    tare__say_title(out, "Disk %s was busy for %s of steady state%s", tare__show_name(busy->label).text,
                    percent(busy->mean).text, others ? " with I/O of other processes" : "");
    tare__say_evidence(out, "For %s (%s of steady state) it had requests in flight more than %s of the time.",
                       tare__show_time(held->held_ns).text, percent(held->share).text,
                       percent(limit(full ? LIMIT_DISK_BUSY_WARNING : LIMIT_DISK_BUSY_INFO)).text);
    if (isfinite(moved))
        tare__say_evidence(out, "It moved %s.", rate_of(moved, busy->to_ns - busy->from_ns).text);
    if (queue)
        tare__say_evidence(out, "Its mean queue length was %s.", count(queue->mean).text);
    if (isfinite(own))
        tare__say_evidence(out, "The job itself read and wrote %s.", bytes(own).text);
    if (others)
        tare__say_advice(out, "Find what else uses this disk, or keep the data on another one.");
    else
        advise_disk(out, of);
    tare__say_gain(
        out, NAN, "not predicted: a busy disk may serve several requests at once, and the program may not wait for it");
    tare__say_figure(out, "busy", busy->mean, TARE__SHOW_SHARE);
    tare__say_figure(out, "held", held->share, TARE__SHOW_SHARE);
    tare__say_figure(out, "queue", queue ? queue->mean : NAN, TARE__SHOW_COUNT);
    tare__say_figure(out, "own", own, TARE__SHOW_BYTES);
}

void tare__rule_disk_busy(findings *out, const tare__analysis *of)
{
    const tare__metric_row *row, *worst = NULL;
    for (size_t at = 0; (row = tare__rows_next(of, &at, TARE__M_DISK_BUSY, TARE__SUBJECT_DISK));)
        if (!worst || row->mean > worst->mean)
            worst = row;
    curve curve;
    if (!tare__curve_of(worst, &curve) || !tare__curve_enough(&curve))
        return;
    stretch full = tare__curve_above(&curve, limit(LIMIT_DISK_BUSY_WARNING));
    stretch high = tare__curve_above(&curve, limit(LIMIT_DISK_BUSY_INFO));
    if (full.share >= limit(LIMIT_HELD))
        tell_busy(out, of, worst, &full, true);
    else if (high.share >= limit(LIMIT_HELD))
        tell_busy(out, of, worst, &high, false);
}

/* ---- network --------------------------------------------------------------------------------- */
void tare__rule_network_errors(findings *out, const tare__analysis *of)
{
    const tare__metric_row *row;
    for (size_t at = 0; (row = tare__rows_next(of, &at, TARE__M_NET_ERRORS, TARE__SUBJECT_NETWORK));) {
        if (!(row->total >= limit(LIMIT_NETWORK_ERRORS)) || !(row->mean >= limit(LIMIT_NETWORK_ERRORS_RATE)))
            continue;
        tare__finding_add(out, TARE__WARNING);
        tare__say_when_above(out, row, 1e-9);
        tare__say_title(out, "%s packets of %s were dropped or damaged", count(row->total).text,
                        tare__show_name(row->label).text);
        tare__say_evidence(out, "The device counted %s errors and drops, %s on average.",
                           count(row->total).text, tare__show(row->mean, TARE__SHOW_PER_S).text);
        tare__say_advice(out, "Check cable, switch and driver (ethtool -S %s), and the size of the receive queue.",
                         tare__show_name(row->label).text);
        tare__say_gain(out, NAN, "not predicted: how long transfers were stalled is unknown");
        tare__say_figure(out, "errors", row->total, TARE__SHOW_COUNT);
        tare__say_figure(out, "rate", row->mean, TARE__SHOW_PER_S);
    }
}

/* ---- waiting for disks, as the CPUs see it --------------------------------------------------- */
void tare__rule_iowait(findings *out, const tare__analysis *of)
{
    double share = tare__machine_share(of, TARE__M_CPU_IOWAIT);
    /* iowait is of the whole machine: it is not relevant for a job that transfers little. */
    if (!(share > limit(LIMIT_IOWAIT)) || (isfinite(own_bytes(of)) && !moves_much(of)))
        return;
    tare__finding_add(out, TARE__WARNING);
    tare__say_when_above(out, tare__rows_first(of, TARE__M_CPU_IOWAIT, TARE__SUBJECT_SYSTEM),
                         limit(LIMIT_IOWAIT) * fmax(of->run.cpus, 1));
    tare__say_title(out, "The CPUs were idle in iowait for %s of the time", percent(share).text);
    tare__say_evidence(out, "%s of the machine's CPU time is iowait: idle while some process waited for a disk.",
                       percent(share).text);
    say_disk_line(out, of);
    tare__say_advice(out,
                     "Read ahead in larger blocks, from faster or local storage; cache in memory what is read again.");
    tare__say_gain(out, NAN, "not predicted: iowait counts idle CPUs whole machine, not time of the job");
    tare__say_figure(out, "iowait", share, TARE__SHOW_SHARE);
}
