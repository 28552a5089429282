/* rules_cpu: CPU limits, too many threads, a single busy thread, other load on the machine.
 * Owned by the thread that analyzes.
 * Must not know how CPU time was measured. */
#include <math.h>

#include "hot.h"

/* "2 cores", "0.50 cores", "1 core" */
static shown cores(double value)
{
    shown result = tare__show(value, TARE__SHOW_CORES);
    for (char *at = result.text; value == 1 && *at; at++)
        if (at[0] == 's' && !at[1])
            *at = '\0';
    return result;
}

/* ---- the limit of a container ---------------------------------------------------------------- */
void tare__rule_throttled(findings *out, const tare__analysis *of)
{
    const tare__metric_row *hit = tare__rows_first(of, TARE__M_CPU_THROTTLED_PERIODS, TARE__SUBJECT_CONTAINER);
    const tare__metric_row *periods = tare__rows_first(of, TARE__M_CPU_PERIODS, TARE__SUBJECT_CONTAINER);
    const tare__metric_row *held = tare__rows_first(of, TARE__M_CPU_THROTTLED, TARE__SUBJECT_CONTAINER);
    if (!hit || !periods || !(periods->total >= limit(LIMIT_THROTTLED_LEAST)))
        return;
    double share = hit->total / periods->total, elapsed = of->run.elapsed_ns / 1e9;
    if (!(share > limit(LIMIT_THROTTLED_INFO)))
        return;
    tare__finding_add(out, share > limit(LIMIT_THROTTLED_WARNING) ? TARE__WARNING : TARE__INFO);
    tare__say_when_above(out, hit, 1e-9);
    tare__say_title(out, "The CPU limit of %s throttled the job in %s of the periods",
                    cores(of->usage.cores_allowed).text, percent(share).text);
    tare__say_evidence(out, "In %s of %s enforcement periods the job had used up its CPU quota and was throttled.",
                       count(hit->total).text, count(periods->total).text);
    if (held) {
        tare__say_evidence(out, "Throttled time: %s, summed over CPUs.",
                           tare__show(held->total, TARE__SHOW_SECONDS).text);
        tare__say_gain(out, fmin(fmin(held->total / elapsed, share), 1),
                       "the smaller of throttled time and throttled periods, if the limit were never hit");
    } else {
        tare__say_gain(out, NAN, "not predicted: the throttled time is unavailable");
    }
    tare__say_advice(out,
                     "Raise the limit (docker --cpus, Kubernetes resources.limits.cpu), or start no more threads than "
                     "it allows (OMP_NUM_THREADS%s%s).", tare__imported(of, "torch") ? ", torch.set_num_threads()" : "",
                     tare__has_loader(of) ? ", num_workers" : "");
    tare__say_figure(out, "throttled_share", share, TARE__SHOW_SHARE);
    tare__say_figure(out, "throttled_periods", hit->total, TARE__SHOW_COUNT);
    tare__say_figure(out, "periods", periods->total, TARE__SHOW_COUNT);
    tare__say_figure(out, "throttled", held ? held->total : NAN, TARE__SHOW_SECONDS);
    tare__say_figure(out, "cores_allowed", of->usage.cores_allowed, TARE__SHOW_CORES);
}

/* ---- all CPUs in use ------------------------------------------------------------------------- */
void tare__rule_cpu_high(findings *out, const tare__analysis *of)
{
    curve curve;
    double allowed = of->usage.cores_allowed;
    if (!(allowed > 0) || !tare__tree_cores(of, &curve) || !tare__curve_enough(&curve))
        return;
    stretch high = tare__curve_above(&curve, limit(LIMIT_CPU_WARNING) * allowed);
    bool full = high.share >= limit(LIMIT_HELD);
    if (!full)
        high = tare__curve_above(&curve, limit(LIMIT_CPU_INFO) * allowed);
    if (!(high.share >= limit(LIMIT_HELD)))
        return;
    bool gpu = tare__any_gpu_used(of);
    /* A container's limit applies on average over its period, and a job may be moved into a container while it runs. */
    double mean = fmin(tare__curve_mean(&curve) / allowed, 1), held = fmin(high.mean / allowed, 1);
    tare__finding_add(out, full && gpu ? TARE__WARNING : TARE__INFO);
    tare__say_when(out, high.from_ns, high.to_ns);
    tare__say_title(out, "CPU-bound: %s of the %s available to the job were busy", percent(held).text,
                    cores(allowed).text);
    tare__say_evidence(out,
                       "For %s (%s of steady state) at least %s of the available CPU time was used; %s on average.",
                       tare__show_time(high.held_ns).text, percent(high.share).text,
                       percent(limit(full ? LIMIT_CPU_WARNING : LIMIT_CPU_INFO)).text, percent(mean).text);
    const tare__hot_question question = {
        .states = TARE__ON_CPU, .time = "the time of threads that run or wait for a CPU"};
    tare__say_hot(out, of, &question);
    tare__say_advice(
        out,
        gpu ? "The GPU may wait for the CPU: preprocess ahead of time or on the GPU, or give the job more cores."
            : out->now->file ? "Reduce the work: start with that line; use vectorized or compiled code, or more cores."
            : "Reduce the work: start with the spans that take most of the time; use vectorized or compiled code, or "
              "more cores.");
    tare__say_gain(out, NAN, "not predicted: how the work scales to more cores is unknown");
    tare__say_figure(out, "share", mean, TARE__SHOW_SHARE);
    tare__say_figure(out, "held", high.share, TARE__SHOW_SHARE);
    tare__say_figure(out, "cores_allowed", allowed, TARE__SHOW_CORES);
}

/* ---- more threads than cores ----------------------------------------------------------------- */
/* Whether several processes are busy, each with one thread. */
static bool one_thread_each(const tare__analysis *of)
{
    size_t processes = 0;
    for (size_t i = 0; i < of->n_metrics; i++) {
        const tare__metric_row *row = &of->metrics[i];
        if (row->known != TARE__M_THREADS_RUNNING || row->subject != TARE__SUBJECT_PROCESS || row->n == 0)
            continue;
        if (row->mean > 1.1)
            return false;
        processes += row->mean > 0.5;
    }
    return processes > 1;
}

void tare__rule_crowded(findings *out, const tare__analysis *of)
{
    curve running;
    double allowed = of->usage.cores_allowed;
    double forced = of->usage.switches_forced / (of->run.elapsed_ns / 1e9);
    if (!(allowed > 0) || !(forced >= limit(LIMIT_CROWDED_SWITCHES) * fmin(allowed, 8)) ||
        !tare__tree_curve(of, TARE__M_THREADS_RUNNING, &running) || !tare__curve_enough(&running))
        return;
    stretch crowded = tare__curve_above(&running, limit(LIMIT_CROWDED) * allowed);
    if (!(crowded.share >= limit(LIMIT_HELD)))
        return;
    tare__finding_add(out, TARE__WARNING);
    tare__say_when(out, crowded.from_ns, crowded.to_ns);
    tare__say_title(out, "%s runnable threads share %s", count(round(crowded.mean)).text, cores(allowed).text);
    tare__say_evidence(out,
                       "For %s (%s of steady state) more than %s threads of the job per core were runnable; threads "
                       "were preempted %s times per second.", tare__show_time(crowded.held_ns).text,
                       percent(crowded.share).text, count(limit(LIMIT_CROWDED)).text, count(forced).text);
    int fit = (int)fmax(1, floor(allowed));
    if (one_thread_each(of))
        tare__say_advice(out, "Start no more worker processes than cores (%d): each has one busy thread.", fit);
    else if (tare__imported(of, "torch"))
        tare__say_advice(out,
                         "Start no more threads than cores in all processes together: OMP_NUM_THREADS=%d, "
                         "torch.set_num_threads(%d)%s.", fit, fit,
                         tare__has_loader(of) ? ", and num_workers times the threads of each worker" : "");
    else
        tare__say_advice(out, "Start no more threads than cores in all processes together (OMP_NUM_THREADS=%d).", fit);
    tare__say_gain(out, NAN, "not predicted: the cost of switching depends on caches and barriers; measure it");
    tare__say_figure(out, "threads_running", crowded.mean, TARE__SHOW_COUNT);
    tare__say_figure(out, "cores_allowed", allowed, TARE__SHOW_CORES);
    tare__say_figure(out, "forced_switches", forced, TARE__SHOW_PER_S);
}

/* ---- a single busy thread -------------------------------------------------------------------- */
typedef struct busiest {
    const tare__metric_row *thread; /* its row of user time; NULL: threads were not sampled */
    double seconds, all_seconds;
} busiest;

static busiest busiest_of(const tare__analysis *of, tare__subject_kind subject)
{
    busiest found = {NULL, 0, 0};
    const tare__metric_row *user, *system;
    for (size_t at = 0; (user = tare__rows_next(of, &at, TARE__M_CPU_USER, subject));) {
        system = tare__rows_beside(of, user, TARE__M_CPU_SYSTEM);
        if (!system || isnan(user->total) || isnan(system->total))
            continue;
        double seconds = user->total + system->total;
        found.all_seconds += seconds;
        if (seconds > found.seconds) {
            found.seconds = seconds;
            found.thread = user;
        }
    }
    return found;
}

/* One thread has nearly all CPU time. Where threads were not sampled: a process with a single thread. */
static busiest single_thread(const tare__analysis *of)
{
    busiest found = busiest_of(of, TARE__SUBJECT_THREAD);
    if (!found.thread) {
        found = busiest_of(of, TARE__SUBJECT_PROCESS);
        const tare__metric_row *threads = found.thread ? tare__rows_beside(of, found.thread, TARE__M_THREADS) : NULL;
        if (!threads || threads->max > 1)
            found.thread = NULL;
    }
    if (found.thread && found.seconds < limit(LIMIT_ONE_THREAD) * found.all_seconds)
        found.thread = NULL;
    return found;
}

typedef struct one_core_view {
    const tare__metric_row *gpus[16]; /* utilization of the GPUs that the run uses */
    size_t n_gpus;
} one_core_view;

/* A thread that waits for a busy GPU spins, which does not count as work. */
static bool gpu_works(const one_core_view *view, const curve_point *point)
{
    for (size_t i = 0; i < view->n_gpus; i++)
        if (tare__row_mean(view->gpus[i], point->at, point->at + point->lasts) >= limit(LIMIT_GPU_WORKS))
            return true;
    return false;
}

/* By CPU time received: for a thread that is preempted, the CPU time it would have used is not known. */
static bool is_one_core(const curve_point *point, const void *context)
{
    return point->value >= limit(LIMIT_ONE_CORE_LEAST) && point->value <= limit(LIMIT_ONE_CORE_MOST) &&
           !gpu_works(context, point);
}

static one_core_view view_of(const tare__analysis *of)
{
    const tare__metric_row *row;
    one_core_view view = {.n_gpus = 0};
    for (size_t at = 0; (row = tare__rows_next(of, &at, TARE__M_GPU_BUSY, TARE__SUBJECT_GPU));)
        if (view.n_gpus < TARE__COUNT_OF(view.gpus) && tare__gpu_used(of, row->key))
            view.gpus[view.n_gpus++] = row;
    return view;
}

/* Cores available to the job: used and idle ones, at most the allowed number. */
static double cores_free(const tare__analysis *of, double used)
{
    const tare__metric_row *idle = tare__rows_first(of, TARE__M_CPU_IDLE, TARE__SUBJECT_SYSTEM);
    const tare__metric_row *iowait = tare__rows_first(of, TARE__M_CPU_IOWAIT, TARE__SUBJECT_SYSTEM);
    if (!idle || isnan(idle->mean))
        return of->usage.cores_allowed;
    return fmin(of->usage.cores_allowed, used + idle->mean + (iowait && iowait->mean > 0 ? iowait->mean : 0));
}

static void advise_spreading(findings *out, const tare__analysis *of, int cores)
{
    if (tare__imported(of, "torch") && tare__has_loader(of))
        tare__say_advice(out,
                         "Use more cores: torch.set_num_threads(%d) or a larger OMP_NUM_THREADS for operators, "
                         "DataLoader(num_workers=%d) for loading.", cores, (int)fmin(cores, 8));
    else if (tare__imported(of, "torch"))
        tare__say_advice(out,
                         "Use more cores: torch.set_num_threads(%d) or a larger OMP_NUM_THREADS for operators, a "
                         "process pool for Python code.", cores);
    else if (tare__is_python(of))
        tare__say_advice(out,
                         "Use more cores: a process pool (concurrent.futures.ProcessPoolExecutor(%d)) for Python "
                         "code, or a library that computes in parallel (OMP_NUM_THREADS=%d). Python threads share one "
                         "interpreter lock.", cores, cores);
    else
        tare__say_advice(out, "Split the work over %d threads or processes.", cores);
}

static bool has_tid(const tare__analysis *of, const tare__sampled_thread_row *thread, const void *context)
{
    (void)of;
    return (uint64_t)thread->tid == *(const uint64_t *)context;
}

static bool has_pid(const tare__analysis *of, const tare__sampled_thread_row *thread, const void *context)
{
    (void)of;
    return (uint64_t)thread->pid == *(const uint64_t *)context;
}

void tare__rule_one_core(findings *out, const tare__analysis *of)
{
    curve curve;
    double allowed = of->usage.cores_allowed;
    if (!(allowed >= 2) || !tare__tree_cores(of, &curve) || !tare__curve_enough(&curve))
        return;
    busiest one = single_thread(of);
    one_core_view view = view_of(of);
    stretch alone = tare__curve_where(&curve, is_one_core, &view);
    double available = cores_free(of, alone.mean);
    if (!one.thread || !(alone.share >= limit(LIMIT_HELD)) || !(available >= alone.mean + limit(LIMIT_CORES_FREE)))
        return;
    bool is_thread = one.thread->subject == TARE__SUBJECT_THREAD;
    tare__finding_add(out, TARE__INFO); /* an opportunity, not a fault */
    tare__say_when(out, alone.from_ns, alone.to_ns);
    tare__say_title(out, "One thread does the work: %s of %s in use", count(alone.mean).text, cores(allowed).text);
    tare__say_evidence(out, "For %s (%s of steady state) the program used about one core; %s were available to it.",
                       tare__show_time(alone.held_ns).text, percent(alone.share).text, cores(available).text);
    tare__say_evidence(out, "%s of its CPU time is %s %llu (%s)", percent(one.seconds / one.all_seconds).text,
                       is_thread ? "thread" : "process", (unsigned long long)one.thread->key,
                       tare__show_name(one.thread->label).text);
    if (is_thread)
        tare__say_evidence(out, "of process %llu.", (unsigned long long)one.thread->owner);
    else
        tare__say_evidence(out, "with its single thread.");
    if (of->usage.threads_max > 1.5 * of->usage.processes_max)
        tare__say_evidence(out, "The other threads (up to %s in all) wait.", count(of->usage.threads_max).text);
    const tare__hot_question question = {.thread = is_thread ? has_tid : has_pid, .context = &one.thread->key,
                                     .states = TARE__ON_CPU, .time = is_thread ? "its time on a CPU" : "its CPU time"};
    tare__say_hot(out, of, &question);
    advise_spreading(out, of, (int)fmax(2, floor(available)));
    tare__say_gain(out, fmax(0, fmin(1, alone.share * (1 - alone.mean / available))),
                   "if the work of these %s were spread over the %s that were available, without any loss",
                   tare__show_time(alone.held_ns).text, cores(available).text);
    tare__say_figure(out, "cores", alone.mean, TARE__SHOW_CORES);
    tare__say_figure(out, "cores_allowed", allowed, TARE__SHOW_CORES);
    tare__say_figure(out, "cores_available", available, TARE__SHOW_CORES);
    tare__say_figure(out, "held", alone.share, TARE__SHOW_SHARE);
    tare__say_figure(out, "thread_share", one.seconds / one.all_seconds, TARE__SHOW_SHARE);
    tare__say_figure(out, is_thread ? "tid" : "pid", (double)one.thread->key, TARE__SHOW_COUNT);
}

/* ---- other load on the machine --------------------------------------------------------------- */
/* Cores that other processes used. NaN: not known. */
static double others_used(const tare__analysis *of, double own)
{
    const tare__metric_row *user = tare__rows_first(of, TARE__M_CPU_USER, TARE__SUBJECT_SYSTEM);
    const tare__metric_row *system = tare__rows_first(of, TARE__M_CPU_SYSTEM, TARE__SUBJECT_SYSTEM);
    return user && system ? fmax(0, user->mean + system->mean - own) : NAN;
}

static void say_others(findings *out, const tare__analysis *of, double own)
{
    double others = others_used(of, own);
    if (others > 0)
        tare__say_evidence(out, "Other processes used %s.", cores(others).text);
}

typedef struct contention {
    double steal, waits; /* share of time in which a task waited for a CPU; NaN: not reported by the kernel */
    double used, wanted; /* cores; NaN: too few samples */
    double could;        /* of those wanted: allowed for the job */
    bool stolen, crowded;
} contention;

/* The job got less CPU than it could have used, and others used it: by the kernel's pressure figures; without these,
 * if others used CPUs while none was idle. */
static contention contention_of(const tare__analysis *of)
{
    curve own, want;
    contention found = {tare__machine_share(of, TARE__M_CPU_STEAL), tare__pressure_of(of, TARE__M_PRESSURE_CPU),
                        NAN, NAN, NAN, false, false};
    if (tare__tree_cores(of, &own) && tare__tree_curve(of, TARE__M_THREADS_RUNNING, &want) &&
        tare__curve_enough(&own) && tare__curve_enough(&want)) {
        found.used = tare__curve_mean(&own);
        found.wanted = tare__curve_mean(&want);
        if (of->usage.threads_max >= 1) /* short-lived processes may be counted twice */
            found.wanted = fmin(found.wanted, of->usage.threads_max);
        found.could = fmin(found.wanted, of->usage.cores_allowed);
    }
    const tare__metric_row *idle = tare__rows_first(of, TARE__M_CPU_IDLE, TARE__SUBJECT_SYSTEM);
    double others = others_used(of, found.used), least = limit(LIMIT_WAITING_FOR_CPU);
    bool full =
        isnan(found.waits) ? others >= least && idle && idle->mean < least : found.waits > limit(LIMIT_PRESSURE_CPU);
    bool own_doing = found.wanted > of->usage.cores_allowed && !(others >= least);
    found.stolen = found.steal > limit(LIMIT_STEAL);
    found.crowded = full && !own_doing && found.could - found.used >= least && found.used < 0.9 * found.could;
    return found;
}

void tare__rule_shared_machine(findings *out, const tare__analysis *of)
{
    contention by = contention_of(of);
    bool whole = isnan(by.used) && of->whole; /* steady state is too short; the machine is the same */
    by = whole ? contention_of(of->whole) : by;
    double steal = by.steal, waits = by.waits, used = by.used, wanted = by.wanted;
    bool stolen = by.stolen, crowded = by.crowded;
    if (!stolen && !crowded)
        return;
    double gain = crowded ? (by.could - used) / fmax(by.could, 1) : steal; /* a thread's share of the time */
    /* The program is not at fault: the finding is about how reliable its times are. */
    tare__finding_add(out, TARE__INFO);
    if (stolen)
        tare__say_title(out, "Shared machine: the hypervisor took %s of its CPU time", percent(steal).text);
    else
        tare__say_title(out, "Shared machine: the job got %s of the %s it could have used", count(used).text,
                        cores(by.could).text);
    if (stolen)
        tare__say_evidence(out, "Steal time is %s of this machine's CPU time.", percent(steal).text);
    if (crowded) {
        tare__say_evidence(out,
                           "The job may use %s. Its threads were runnable for %s and ran on %s: the difference is "
                           "preemption, not waiting.", cores(of->usage.cores_allowed).text, cores(wanted).text,
                           cores(used).text);
        if (!isnan(waits))
            tare__say_evidence(out, "Some task waited for a CPU %s of the time.", percent(waits).text);
        say_others(out, whole ? of->whole : of, used);
        if (whole)
            tare__say_evidence(out, "Measured over the whole run: steady state is too short.");
    }
    tare__say_advice(out,
                     "Times of this run include time lost to other processes: measure on an idle machine, or pin the "
                     "job to cores (taskset, cpuset), before you compare them.");
    if (whole)
        tare__say_gain(out, NAN, "not predicted: steady state has too few samples");
    else
        tare__say_gain(out, gain, "the time in which its threads were runnable and did not run");
    tare__say_figure(out, "steal", steal, TARE__SHOW_SHARE);
    tare__say_figure(out, "pressure", waits, TARE__SHOW_SHARE);
    tare__say_figure(out, "cores", used, TARE__SHOW_CORES);
    tare__say_figure(out, "threads_running", wanted, TARE__SHOW_COUNT);
}

/* ---- heat ------------------------------------------------------------------------------------ */
void tare__rule_cpu_hot(findings *out, const tare__analysis *of)
{
    const tare__metric_row *events = tare__rows_first(of, TARE__M_THROTTLE_EVENTS, TARE__SUBJECT_SYSTEM);
    const tare__metric_row *clock = tare__rows_first(of, TARE__M_CPU_FREQUENCY, TARE__SUBJECT_SYSTEM);
    if (!events || !(events->total > 0))
        return;
    tare__finding_add(out, TARE__WARNING);
    tare__say_when_above(out, events, 1e-9);
    tare__say_title(out, "The CPU was throttled %s because of heat",
                    tare__show_counted(events->total, "time", NULL).text);
    tare__say_evidence(out, "Its thermal throttle counter grew by %s.", count(events->total).text);
    if (clock)
        tare__say_evidence(out, "Its clock was between %s and %s.", tare__show(clock->min, TARE__SHOW_HERTZ).text,
                           tare__show(clock->max, TARE__SHOW_HERTZ).text);
    tare__say_advice(
        out, "Check cooling and power limit. Times of this run cannot be compared with those of a cool machine.");
    tare__say_gain(out, NAN, "not predicted: the clock without throttling is unknown");
    tare__say_figure(out, "events", events->total, TARE__SHOW_COUNT);
}
