/* rules_torch: rules on phases and facts of torch programs: what waits for what, and which optimizations are not used.
 * They read only what the package records under `tare run` (docs/TORCH.md).
 * Owned by the thread that analyzes. Must not know how it was recorded. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "training.h"

/* Location of a fact: " at FILE:LINE" after `before`; "" if it has none, since then the line is not certain. */
typedef struct place {
    char text[TARE__NAME_TEXT_MAX + 32];
} place;

static place place_of(const char *before, const tare__fact_row *fact)
{
    place found = {""};
    if (fact->file)
        snprintf(found.text, sizeof found.text, "%s at %s:%u", before, fact->file, (unsigned)fact->line);
    return found;
}

/* ---- loading --------------------------------------------------------------------------------- */
/* How data is loaded, as far as known. */
typedef struct loading {
    bool known;      /* a DataLoader recorded its workers; else the program loads data in another way */
    double workers;  /* 0: the training process loads */
    double load_ns;  /* of one worker; measured if there are workers, else all of the waiting time */
    double busy;     /* share of their time in which the workers load; NaN: not known */
    double loaders;  /* loaders that provide batches for one step, each with separate workers */
    double starts_ns; /* time to start and stop workers; 0 if they are persistent */
    bool contended;  /* other processes use CPUs that the job could use */
    int then;        /* recommended number of workers; 0: their number is not the bottleneck */
} loading;

/* Time that the workers took for the batches of the steps. Batches of other loops over a loader are not
 * distinguished, so each batch counts as the mean of all. NaN: not recorded. */
static double measured_load(const tare__analysis *of, const training *sum)
{
    named loads = tare__sum_named(of, "load samples", false);
    return loads.calls > 0 ? loads.total_ns / loads.calls * fmin(sum->batches, loads.calls) : NAN;
}

/* The number of workers that hides loading behind compute, at most one per core. If that many are already loading
 * all the time, twice as many: that helps if loading waits for a disk or a network, but not if it waits for a CPU
 * used by another process. */
static int workers_to_try(const loading *of, double compute_ns, double cores)
{
    double enough = compute_ns > 0 ? ceil(of->load_ns / compute_ns) : INFINITY, most = fmax(2, fmin(floor(cores), 16));
    if (of->busy < limit(LIMIT_WORKERS_BUSY))
        return 0;
    if (of->workers >= most)
        return of->contended ? 0 : (int)fmin(2 * of->workers, 64);
    return (int)fmin(fmax(enough, fmax(2, of->workers + 1)), most);
}

/* Time waiting for workers to start and stop; the part inside waiting for a batch counts there. */
static double starts_of(const tare__analysis *of, double *calls)
{
    double ns = 0;
    *calls = 0;
    for (size_t i = 0; i < of->n_spans; i++) {
        const tare__span_row *row = &of->spans[i];
        if (strncmp(row->name, TARE__WORKERS, strlen(TARE__WORKERS)) != 0)
            continue;
        ns += tare__span_is_in(of, row, TARE_KIND_PHASE) ? 0 : row->total_ns;
        *calls += (double)row->calls;
    }
    return ns;
}

static loading loading_of(const tare__analysis *of, const training *sum)
{
    tare__fact_row reported;
    bool known = tare__fact_sum(of, "torch.loader.workers", &reported);
    double cores = of->usage.cores_allowed > 0 ? of->usage.cores_allowed : 1;
    loading found = {.known = known, .workers = known ? reported.max : 0, .load_ns = sum->data_ns, .busy = NAN};
    /* Batches per backward pass: several backward passes per step are gradient accumulation. */
    found.loaders = fmax(1, round(sum->batches / fmax(1, fmax(sum->steps, sum->backwards))));
    found.starts_ns = starts_of(of, &(double){0});
    found.contended = tare__kept_off_cpu(of) >= limit(LIMIT_WAITING_FOR_CPU);
    if (found.workers >= 1) {
        double measured = measured_load(of, sum);
        found.load_ns = isnan(measured) ? sum->steps_ns * found.workers : measured;
        found.busy = fmin(measured / (sum->steps_ns * found.workers), 1);
    }
    found.then = workers_to_try(&found, sum->steps_ns - sum->data_ns, cores);
    return found;
}

static void say_workers(findings *out, const loading *by)
{
    if (by->workers == 0) {
        tare__say_evidence(
            out, "num_workers is 0: the training process loads each batch itself and does not compute meanwhile.");
        return;
    }
    const char *few = by->workers == 1 ? "worker was" : "workers were";
    if (isnan(by->busy))
        tare__say_evidence(out, "num_workers is %s.", count(by->workers).text);
    else
        tare__say_evidence(out,
                           "num_workers is %s; the %s loading batches of these steps for %s in total, %s of %s time.",
                           count(by->workers).text, few, tare__show_time(by->load_ns).text, percent(by->busy).text,
                           by->workers == 1 ? "its" : "their");
    if (by->starts_ns > 0)
        tare__say_evidence(out, "Starting and ending workers took %s.", tare__show_time(by->starts_ns).text);
    if (by->contended)
        tare__say_evidence(out, "Other processes took CPU time that the job could have used.");
}

/* More workers would presumably also be given to the loaders of evaluations. The compute time of these is at most
 * the time outside of steps and outside of such waiting. */
static double saved_aside(const tare__analysis *rank, const training *sum, const loading *by)
{
    double rest_ns = fmax(0, rank->run.elapsed_ns - sum->steps_ns - sum->aside_ns);
    bool known = by->then && by->workers == 0; /* all of the loading time is waiting */
    return known ? tare__saved_by_workers(sum->aside_ns, rest_ns, sum->aside_ns, by->then) : sum->aside_ns;
}

/* Workers continue to load between steps, until two batches of each are ready (prefetch_factor). */
static double loaded_between(const tare__analysis *rank, const training *sum, double load_ns)
{
    double between_ns = 0, gaps = 0;
    for (size_t i = 0; i < rank->n_steps; i++) {
        between_ns += rank->steps[i].between_ns;
        gaps += (double)rank->steps[i].gaps;
    }
    return sum->batches > 0 ? fmin(between_ns, gaps * 2 * load_ns / sum->batches) : 0;
}

/* The gain of more workers if their number is the bottleneck; else the gain of eliminating all waiting. */
static double gain_of_workers(const tare__analysis *rank, const void *context)
{
    const loading *by = context;
    training sum;
    tare__training_of(rank, &sum);
    loading own = loading_of(rank, &sum);
    double besides_ns = sum.steps_ns - sum.data_ns + loaded_between(rank, &sum, own.load_ns);
    double saved = by->then ? fmin(sum.data_ns, tare__saved_by_workers(sum.data_ns, besides_ns, own.load_ns,
                                                                       by->then * own.loaders))
                            : sum.data_ns;
    saved += saved_aside(rank, &sum, by) + own.starts_ns;
    return tare__beside_gpu(rank, tare__of_steady(rank, &sum, saved));
}

static void predict_workers(findings *out, const tare__analysis *of, const training *sum, const loading *by)
{
    char how[320] = "all of the waiting; the number of workers is not what limits it";
    if (by->then)
        snprintf(how, sizeof how,
                 "with num_workers=%d%s a step takes the longer of its compute (%s) and of its loading divided by the "
                 "workers%s, if loading does not compete with the training process for CPUs",
                 by->then, by->loaders > 1 ? " in each loader" : "",
                 tare__show_time((sum->steps_ns - sum->data_ns) / sum->steps).text,
                 sum->aside_ns > 0 ? ", evaluations likewise" : "");
    tare__say_rank_gain(out, of, gain_of_workers, by, how);
}

/* The rank that waits longest, since the others wait for it; the tables themselves if they are of one process. */
static const tare__analysis *waits_longest(const tare__analysis *of, training *sum)
{
    const tare__analysis *longest = of;
    double most = 0;
    for (size_t i = 0; i < of->n_ranks; i++) {
        training own;
        tare__training_of(&of->ranks[i], &own);
        if (own.data_ns > most && own.steps > 0) {
            most = own.data_ns;
            longest = &of->ranks[i];
            *sum = own;
        }
    }
    return longest;
}

static void say_rank(findings *out, const tare__analysis *rank, const training *own, double share)
{
    if (rank->n_processes != 1 || !rank->processes->has_rank || !(own->data_ns > 1.25 * share * own->steps_ns))
        return;
    tare__say_evidence(out, "Rank %llu waits longest, for %s of %s, and the other ranks wait for it.",
                       (unsigned long long)rank->processes->rank, tare__show_time(own->data_ns).text,
                       tare__show_time(own->steps_ns).text);
}

/* More workers do not help if workers are partly idle, or waiting for CPUs. */
static void advise_loading(findings *out, const tare__analysis *of, const loading *by)
{
    if (by->known && by->then)
        tare__say_advice(
            out, "Set DataLoader(num_workers=%d, persistent_workers=True) to load while the model computes.", by->then);
    else if (by->known && by->contended && !(by->busy < limit(LIMIT_WORKERS_BUSY)))
        tare__say_advice(out,
                         "More workers do not help while other processes take the CPUs: run on an idle machine, or "
                         "make loading cheaper (precompute it, or cache its result).");
    else if (by->known)
        tare__say_advice(out,
                          "The workers have time left, so that more of them do not help. %s a larger prefetch_factor; "
                          "smaller samples, which are cheaper to copy between processes.",
                          of->n_epochs && of->epochs[0].count > 1
                              ? "Set persistent_workers=True, so that they are not restarted for each epoch; try"
                              : "Try");
    else
        tare__say_advice(out,
                         "Load the next batch while the model computes: in %d worker processes or in a thread, and "
                         "keep a few batches ready.", by->then);
}

/* Loaders of an evaluation between steps are not what training waits for. */
static bool is_data_of_step(tare__open_spans spans, const void *context)
{
    (void)context;
    return tare__open_kind(spans, TARE_KIND_STEP) && tare__open_name(spans, TARE_KIND_PHASE, "data");
}

/* Workers load while the training process waits: their lines matter, not its. */
static void say_loading(findings *out, const tare__analysis *of, const loading *by)
{
    const tare__hot_question workers = {
        .within = tare__in_name, .context = "load", .time = "the time in which workers load batches"};
    const tare__hot_question waits = {.within = is_data_of_step, .time = "the time waiting for batches"};
    tare__hot hot;
    bool load = by->workers > 0 && (tare__hot_line(of, &workers, &hot) || tare__has_line(of, "load"));
    tare__say_line(out, of, load ? &workers : &waits, load ? "load" : "data", NULL, "");
}

void tare__rule_loader_bound(findings *out, const tare__analysis *of)
{
    training sum;
    if (!tare__training_of(of, &sum) || !(sum.data_ns > limit(LIMIT_WAITS_FOR_DATA) * sum.steps_ns) ||
        !tare__compute_is_idle(of))
        return;
    training own = sum;
    const tare__analysis *rank = waits_longest(of, &own);
    loading by = loading_of(rank, &own);
    double share = sum.data_ns / sum.steps_ns;
    tare__finding_add(out, TARE__WARNING);
    tare__say_title(out, "Training waits for data for %s of step time", percent(share).text);
    tare__say_evidence(out, "%s of %s in %s steps was spent waiting for the next batch.",
                       tare__show_time(sum.data_ns).text, tare__show_time(sum.steps_ns).text, count(sum.steps).text);
    if (rank != of)
        say_rank(out, rank, &own, share);
    if (by.known)
        say_workers(out, &by);
    say_loading(out, of, &by);
    advise_loading(out, of, &by);
    predict_workers(out, of, &own, &by);
    tare__say_figure(out, "share", share, TARE__SHOW_SHARE);
    tare__say_figure(out, "waiting", sum.data_ns / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "workers", by.known ? by.workers : NAN, TARE__SHOW_COUNT);
    tare__say_figure(out, "workers_busy", by.busy, TARE__SHOW_SHARE);
    tare__say_figure(out, "workers_to_try", by.then ? by.then : NAN, TARE__SHOW_COUNT);
}

static double gain_of_restarts(const tare__analysis *rank, const void *context)
{
    (void)context;
    return tare__beside_gpu(rank, starts_of(rank, &(double){0}) / rank->run.elapsed_ns);
}

void tare__rule_worker_restarts(findings *out, const tare__analysis *of)
{
    training sum;
    double calls, share = tare__gain_of_ranks(of, gain_of_restarts, NULL, &(const tare__analysis *){NULL});
    double ns = starts_of(of, &calls);
    if (tare__finding_has(out, "loader-bound") || !tare__training_of(of, &sum) || calls < 4 ||
        !(share > limit(LIMIT_WORKER_RESTARTS)))
        return;
    tare__finding_add(out, TARE__WARNING);
    tare__say_title(out, "Starting and ending DataLoader workers takes %s of steady-state time", percent(share).text);
    tare__say_evidence(out, "Training waited for it for %s (starts and ends: %s).", tare__show_time(ns).text,
                       count(calls).text);
    const tare__hot_question starts = {
        .within = tare__in_start, .context = TARE__WORKERS, .time = "the time in which workers start and end"};
    tare__say_hot(out, of, &starts);
    tare__say_advice(out,
                     "Set DataLoader(persistent_workers=True), so that workers are not restarted for each epoch.");
    tare__say_rank_gain(out, of, gain_of_restarts, NULL, "all of that time (Amdahl's law)");
    tare__say_figure(out, "share", share, TARE__SHOW_SHARE);
    tare__say_figure(out, "starting", ns / 1e9, TARE__SHOW_SECONDS);
}

void tare__rule_single_worker(findings *out, const tare__analysis *of)
{
    training sum;
    tare__fact_row workers;
    if (!tare__fact_sum(of, "torch.loader.workers", &workers) || workers.max > 1 ||
        !tare__training_of(of, &sum) || !tare__compute_is_idle(of) ||
        !(sum.data_ns > limit(LIMIT_SINGLE_WORKER) * sum.steps_ns))
        return;
    training own = sum;
    loading by = loading_of(waits_longest(of, &own), &own);
    if (!by.then) /* the worker has idle time */
        return;
    by.then = 2;
    tare__finding_add(out, TARE__INFO);
    tare__say_title(out, "Batches are loaded by %s for %s of step time",
                    workers.max > 0 ? "one worker" : "the training process itself",
                    percent(sum.data_ns / sum.steps_ns).text);
    tare__say_evidence(out, "num_workers is %s; %s of %s was spent waiting for batches.", count(workers.max).text,
                       tare__show_time(sum.data_ns).text, tare__show_time(sum.steps_ns).text);
    say_loading(out, of, &by);
    tare__say_advice(out, "Set DataLoader(num_workers=2, persistent_workers=True).");
    predict_workers(out, of, &own, &by);
    tare__say_figure(out, "waiting", sum.data_ns / 1e9, TARE__SHOW_SECONDS);
}

/* ---- devices --------------------------------------------------------------------------------- */
static double gain_of_copies(const tare__analysis *rank, const void *context)
{
    training sum;
    (void)context;
    tare__training_of(rank, &sum);
    return tare__beside_gpu(rank, tare__of_steady(rank, &sum, sum.copy_ns));
}

void tare__rule_unpinned(findings *out, const tare__analysis *of)
{
    training sum;
    if (!tare__training_of(of, &sum) || !(sum.copy_ns > limit(LIMIT_COPIES) * sum.steps_ns) ||
        !(sum.unpinned > limit(LIMIT_UNPINNED) * sum.copied))
        return;
    tare__finding_add(out, TARE__WARNING);
    tare__say_title(out, "Copies to the GPU from pageable memory take %s of step time",
                    percent(sum.copy_ns / sum.steps_ns).text);
    tare__say_evidence(out,
                       "%s of %s copied in steps came from memory that is not pinned; the host spent %s in copies.",
                       bytes(sum.unpinned).text, bytes(sum.copied).text, tare__show_time(sum.copy_ns).text);
    tare__say_advice(out, "%s and copy with tensor.to(device, non_blocking=True): the copy then overlaps with compute.",
                     tare__has_loader(of) ? "Set DataLoader(pin_memory=True)" : "Pin the memory of batches "
                                                                                 "(tensor.pin_memory())");
    tare__say_rank_gain(out, of, gain_of_copies, NULL,
                        "the time the host spends in copies, if all of it overlapped with compute");
    tare__say_figure(out, "unpinned", sum.unpinned, TARE__SHOW_BYTES);
    tare__say_figure(out, "copying", sum.copy_ns / 1e9, TARE__SHOW_SECONDS);
}

static double gain_of_waits(const tare__analysis *rank, const void *context)
{
    training sum;
    (void)context;
    tare__training_of(rank, &sum);
    double blocked = tare__sum_named(rank, TARE__SYNC, true).total_ns;
    return tare__beside_gpu(rank, tare__of_steady(rank, &sum, fmin(blocked, fmax(0, sum.steps_ns - blocked))));
}

void tare__rule_sync_points(findings *out, const tare__analysis *of)
{
    training sum;
    if (!tare__training_of(of, &sum))
        return;
    named waits = tare__sum_named(of, TARE__SYNC, true);
    double all = waits.total_ns, calls = waits.calls;
    const tare__span_row *most = waits.most;
    if (!most || !(all > limit(LIMIT_SYNC) * sum.steps_ns))
        return;
    tare__finding_add(out, TARE__WARNING);
    tare__say_title(out, "The program waits for the GPU for %s of step time, at %s", percent(all / sum.steps_ns).text,
                    most->name + strlen(TARE__SYNC));
    tare__say_evidence(out,
                       "In %s steps it read a value %s that the GPU had not computed yet, and was blocked for %s; %s "
                       "of it at %s:%u.", count(sum.steps).text, tare__show_counted(calls, "time", NULL).text,
                       tare__show_time(all).text, tare__show_time(waits.most_ns).text, most->file ? most->file : "?",
                       (unsigned)most->line);
    tare__say_location(out, most->file, most->line);
    tare__say_advice(out,
                     "Keep values on the GPU and read them every N steps (loss.detach(), not loss.item()); use "
                     "torch.where instead of if tensor; copy with non_blocking=True.");
    tare__say_rank_gain(out, of, gain_of_waits, NULL,
                        "the smaller of the time blocked and of the host's other work: both then overlap, and the "
                        "GPU's own work in the time blocked stays");
    tare__say_figure(out, "blocked", all / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "waits", calls, TARE__SHOW_COUNT);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */
/* If every rank saves a checkpoint, they do so concurrently: the longest one counts. */
static double gain_of_named(const tare__analysis *rank, const void *name)
{
    return tare__beside_gpu(rank, tare__sum_named(rank, name, false).total_ns / rank->run.elapsed_ns);
}

void tare__rule_checkpoints(findings *out, const tare__analysis *of)
{
    training sum;
    if (!tare__training_of(of, &sum))
        return;
    named saves = tare__sum_named(of, TARE__CHECKPOINT, false);
    double all = saves.total_ns, calls = saves.calls;
    const tare__span_row *most = saves.most;
    double share = tare__gain_of_ranks(of, gain_of_named, TARE__CHECKPOINT, &(const tare__analysis *){NULL});
    if (!most || !(share > limit(LIMIT_CHECKPOINTS)))
        return;
    tare__finding_add(out, TARE__WARNING);
    tare__say_title(out, "Checkpoints take %s of steady state, at %s:%u", percent(share).text,
                    most->file ? tare__base_name(most->file) : "?", (unsigned)most->line);
    tare__say_evidence(out, "torch.save took %s in %s of %s; %s of it at %s:%u.", tare__show_time(all).text,
                       tare__show_counted(calls, "call", NULL).text, tare__show_time(of->run.elapsed_ns).text,
                       tare__show_time(saves.most_ns).text, most->file ? most->file : "?", (unsigned)most->line);
    tare__say_location(out, most->file, most->line);
    tare__say_advice(out,
                     "Save less often, save only what is needed, or write in the background: copy the state to host "
                     "memory, and let a thread or torch.distributed.checkpoint.async_save write it.");
    tare__say_rank_gain(out, of, gain_of_named, TARE__CHECKPOINT, "all of the time in torch.save (Amdahl's law)");
    tare__say_figure(out, "saving", all / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "saves", calls, TARE__SHOW_COUNT);
    tare__say_figure(out, "share", share, TARE__SHOW_SHARE);
}

/* ---- compute --------------------------------------------------------------------------------- */
typedef struct operators {
    double calls, total_ns;
} operators;

static bool is_in_compute(const tare__analysis *of, const tare__span_row *row)
{
    for (uint32_t at = row->parent; at != TARE__NO_ROW; at = of->spans[at].parent)
        if (of->spans[at].kind == TARE_KIND_PHASE &&
            (strcmp(of->spans[at].name, "forward") == 0 || strcmp(of->spans[at].name, "backward") == 0))
            return tare__span_is_in(of, &of->spans[at], TARE_KIND_STEP);
    return false;
}

/* Outermost operators called by forward and backward, including the operators they call: most of the time of a
 * composite operator is in its callees. Operators of loaders do not belong to the model. */
static operators operators_in_steps(const tare__analysis *of)
{
    operators sum = {0};
    for (size_t i = 0; i < of->n_spans; i++)
        if (of->spans[i].kind == TARE_KIND_OPERATOR && !tare__span_is_in(of, &of->spans[i], TARE_KIND_OPERATOR) &&
            is_in_compute(of, &of->spans[i])) {
            sum.calls += (double)of->spans[i].calls;
            sum.total_ns += of->spans[i].total_ns;
        }
    return sum;
}

/* Uses the recorded operators; without them the autograd nodes: each stands for one operator of the forward pass and
 * one of the backward pass, for every backward pass of a step. The time is that of the fastest step, since others
 * may have been preempted. But if graphs differ, the fastest step has the smallest graph: then the time of the
 * backward passes of the sampled graphs is used. */
void tare__rule_small_operators(findings *out, const tare__analysis *of)
{
    training sum;
    if (tare__any_gpu_used(of) || !tare__training_of(of, &sum))
        return;
    operators all = operators_in_steps(of);
    tare__fact_row sampled, timed, cpu;
    const tare__fact_row *nodes = tare__fact_sum(of, "torch.graph.nodes", &sampled) ? &sampled : NULL;
    bool exact = all.calls > 0;
    double spent = sum.forward_ns + sum.backward_ns, share = spent / sum.steps_ns;
    double a_step = exact ? all.calls / sum.steps : nodes ? 2 * nodes->mean * sum.backwards / sum.steps : 0;
    double each = exact ? all.total_ns / all.calls : a_step > 0 ? share * sum.fastest_ns / a_step : NAN;
    bool differ = !exact && nodes && nodes->max > 1.1 * nodes->min;
    if (differ) {
        double mean_ns = sum.backward_ns / sum.backwards, sampled_ns = mean_ns;
        if (tare__fact_sum(of, "torch.graph.backward_seconds", &timed))
            sampled_ns = timed.mean * 1e9;
        double cpu_ns = sampled_ns; /* CPU time is better: it excludes preemption */
        if (tare__fact_sum(of, "torch.graph.backward_cpu_seconds", &cpu))
            cpu_ns = cpu.mean * 1e9;
        each = cpu_ns * spent / sum.backward_ns / (2 * nodes->mean);
        a_step *= mean_ns / sampled_ns;
    }
    if (!(each < limit(LIMIT_SMALL_OPERATOR)) || a_step < limit(LIMIT_MANY_OPERATORS) ||
        !(share > limit(LIMIT_SMALL_SHARE)))
        return;
    tare__finding_add(out, TARE__WARNING);
    tare__say_title(out,
                      exact ? "A step consists of %s operators of %s each"
                            : "A step consists of many small operators: estimated %s of %s each",
                      count(round(a_step)).text, tare__show_time(each).text);
    tare__say_evidence(
        out,
        exact ? "%s operators took %s on average; launching one costs some microseconds, whatever it computes. Forward "
                "and backward take %s of step time."
        : differ ? "The autograd graph of a sampled loss has %s nodes on average, which is an estimate of two "
                   "operators each; in "
                   "the steps of these losses an operator then takes %s. "
                   "Launching one costs some microseconds, whatever it computes. Forward and backward take %s of step "
                   "time."
                 : "The autograd graph of a loss has %s nodes, which is an estimate of two operators each; in the "
                   "fastest step "
                   "an operator then takes %s. "
                   "Launching one costs some microseconds, whatever it computes. Forward and backward take %s of step "
                   "time.",
        count(round(exact ? all.calls : nodes->mean)).text, tare__show_time(each).text, percent(share).text);
    const tare__hot_question forward = tare__of_phase("forward", "the time in forward passes");
    tare__say_line(out, of, &forward, "forward", NULL, "");
    tare__say_advice(out,
                     "Replace Python loops over parts of a tensor by operations on the whole tensor (cumsum, einsum, "
                     "torch.vmap, a larger batch); torch.compile fuses what is left.");
    tare__say_gain(out, NAN,
                   "not predicted: how much of an operator's time is launching it, and what the same work takes in "
                   "few operators, is not known; measure it");
    tare__say_figure(out, "operators", a_step, TARE__SHOW_COUNT);
    tare__say_figure(out, "each", each / 1e9, TARE__SHOW_SECONDS);
}

void tare__rule_fp32(findings *out, const tare__analysis *of)
{
    training sum;
    const tare__fact_row *fact = tare__fact_find(of, "torch.fp32");
    if (!fact || !tare__training_of(of, &sum))
        return;
    double spent = sum.forward_ns + sum.backward_ns;
    bool gpu = fact->text && strcmp(fact->text, "cuda") == 0;
    if (!(spent > limit(LIMIT_FP32) * sum.steps_ns))
        return;
    tare__finding_add(out, TARE__INFO);
    tare__say_title(out, "Matrix products run in full float32 where a faster precision is available");
    tare__say_evidence(out, "%s. Forward and backward take %s of step time.",
                       gpu ? "fp32 on cuda: TensorFloat-32 is off" : "fp32 on cpu: bfloat16 units (AMX) are not used",
                       percent(spent / sum.steps_ns).text);
    tare__say_advice(
        out,
        gpu ? "Call torch.set_float32_matmul_precision(\"high\") for TensorFloat-32, or use torch.autocast(\"cuda\", "
              "dtype=torch.bfloat16). Check that the loss does not change."
            : "Use torch.autocast(\"cpu\", dtype=torch.bfloat16). Check that the loss does not change.");
    tare__say_gain(out, NAN, "not predicted: it depends on the share of matrix products in the compute; measure it");
}

/* Of the time of a fact in seconds: what is in steady state, where the tables are restricted to that. */
static double part_ns(const tare__analysis *of, const tare__fact_row *fact)
{
    double sum = fact->mean * (double)fact->count * 1e9, from = fact->first_at_ns - fact->first * 1e9;
    const tare__phase *steady = &of->phases.steady;
    if (!of->whole)
        return sum;
    return fmin(sum, fmax(0, fmin(fact->last_at_ns, steady->to_ns) - fmax(from, steady->from_ns)));
}

/* A backward graph is compiled at the first backward pass, after its forward graph: this takes additional time, but
 * is not another recompilation. `rank`: of one rank only; may be NULL. */
static double recompiling_ns(const tare__analysis *of, const tare__analysis *rank, double *n)
{
    double ns = 0;
    *n = 0;
    for (size_t i = 0; i < of->n_facts; i++) {
        const tare__fact_row *fact = &of->facts[i];
        bool forward = strcmp(fact->key, "torch.recompile") == 0;
        if ((!forward && strcmp(fact->key, "torch.recompile.backward") != 0) ||
            (rank && (fact->process == TARE__NO_ROW || of->processes[fact->process].number != rank->processes->number)))
            continue;
        *n += forward ? (double)fact->count : 0;
        ns += part_ns(of, fact);
    }
    return ns;
}

static double gain_of_recompiling(const tare__analysis *rank, const void *context)
{
    const tare__analysis *all = context;
    double n;
    return recompiling_ns(all, all->n_ranks ? rank : NULL, &n) / rank->run.elapsed_ns;
}

/* Counted over the whole run, since recompilations extend the detected startup; the gain is of steady state. */
void tare__rule_recompiles(findings *out, const tare__analysis *of)
{
    const tare__analysis *whole = of->whole ? of->whole : of;
    double calls, unused, all = recompiling_ns(whole, NULL, &calls), steady = recompiling_ns(of, NULL, &unused);
    double share = all / whole->run.elapsed_ns;
    if (!of->run.clock_known || calls < limit(LIMIT_RECOMPILES) || !(share > limit(LIMIT_RECOMPILING)))
        return;
    tare__finding_add(out, TARE__WARNING);
    tare__say_title(out, "torch.compile recompiled %s times", count(calls).text);
    tare__say_evidence(out, "Recompiling took %s (%s of the run).", tare__show_time(all).text, percent(share).text);
    tare__say_advice(out,
                     "Run with TORCH_LOGS=recompiles to see why. For shapes that differ: "
                     "torch.compile(dynamic=True), mark_dynamic, or pad to a few sizes. Turn Python numbers that "
                     "change between calls into tensors.");
    if (steady > 0)
        tare__say_rank_gain(out, of, gain_of_recompiling, of, "the time spent recompiling in steady state");
    else
        tare__say_gain(out, NAN, "not predicted: all of it was before steady state");
    tare__say_figure(out, "recompiles", calls, TARE__SHOW_COUNT);
    tare__say_figure(out, "spent", all / 1e9, TARE__SHOW_SECONDS);
}

static double gain_of_optimizer(const tare__analysis *rank, const void *context)
{
    training sum;
    (void)context;
    tare__training_of(rank, &sum);
    return tare__of_steady(rank, &sum, sum.optimizer_ns);
}

void tare__rule_unfused(findings *out, const tare__analysis *of)
{
    training sum;
    const tare__fact_row *fact = tare__fact_find(of, "torch.unfused");
    if (!fact || !tare__training_of(of, &sum) || !(sum.optimizer_ns > limit(LIMIT_OPTIMIZER) * sum.steps_ns))
        return;
    tare__finding_add(out, TARE__INFO);
    tare__say_title(out, "The optimizer updates tensors one by one, for %s of step time",
                    percent(sum.optimizer_ns / sum.steps_ns).text);
    tare__say_evidence(out, "%s: %s tensors one by one; it took %s of %s.", fact->text ? fact->text : "the optimizer",
                       count(fact->value).text, tare__show_time(sum.optimizer_ns).text,
                       tare__show_time(sum.steps_ns).text);
    tare__say_advice(out, "Pass fused=True to the optimizer: it then updates all parameters in one pass.");
    tare__say_rank_gain(out, of, gain_of_optimizer, NULL,
                        "all of the optimizer's time; a fused update keeps a part of it");
    tare__say_figure(out, "optimizer", sum.optimizer_ns / 1e9, TARE__SHOW_SECONDS);
}

/* ---- memory ---------------------------------------------------------------------------------- */
/* total += loss: the sum retains the graphs of all losses in it. */
static void summed_losses(findings *out, const tare__analysis *of)
{
    const tare__fact_row *fact = tare__fact_find(of, "torch.losses.summed");
    if (!fact || !fact->text)
        return;
    tare__finding_add(out, TARE__WARNING);
    tare__say_title(out, "The autograd graph of every loss is retained in a sum%s", place_of(",", fact).text);
    tare__say_evidence(out,
                       "The graph of %s held %s additions when last checked, and grew. Memory grows with every step.",
                       fact->text, count(fact->max).text);
    tare__say_advice(out, "Add the value, not the tensor: %s += loss.detach(), or loss.item() on a CPU.", fact->text);
    tare__say_gain(out, NAN, "not predicted: it costs memory, not time");
    tare__say_figure(out, "additions", fact->max, TARE__SHOW_COUNT);
}

void tare__rule_kept_losses(findings *out, const tare__analysis *of)
{
    const tare__fact_row *fact = tare__fact_find(of, "torch.losses.kept");
    if (!fact) {
        summed_losses(out, of);
        return;
    }
    tare__finding_add(out, TARE__WARNING);
    tare__say_title(out, "Losses are kept with their autograd graph%s", place_of(",", fact).text);
    tare__say_evidence(out,
                       "%s of the last 16 losses still held their autograd graph%s%s. Memory grows with every step.",
                       count(fact->max).text, fact->text ? "; they are in " : "", fact->text ? fact->text : "");
    tare__say_advice(out, "Keep the value, not the tensor: %s.append(loss.detach()), or loss.item() on a CPU.",
                     fact->text ? fact->text : "losses");
    tare__say_gain(out, NAN, "not predicted: it costs memory, not time");
    tare__say_figure(out, "kept", fact->max, TARE__SHOW_COUNT);
}

void tare__rule_growing_graph(findings *out, const tare__analysis *of)
{
    tare__fact_row nodes;
    if (!tare__fact_find(of, "torch.graph.retained"))
        return; /* inputs or models grow: no backward pass goes through an earlier step */
    if (!tare__fact_sum(of, "torch.graph.nodes", &nodes) || nodes.count < 3 ||
        !(nodes.value > limit(LIMIT_GRAPH_GROWTH) * nodes.first) ||
        nodes.value != nodes.max || nodes.first != nodes.min)
        return;
    tare__finding_add(out, TARE__WARNING);
    tare__say_title(out, "The autograd graph of a loss grows from %s to %s nodes", count(nodes.first).text,
                    count(nodes.value).text);
    tare__say_evidence(
        out, "Backward passes with retain_graph=True go through more and more nodes: they include earlier steps.");
    const tare__hot_question backward = tare__of_phase("backward", "the time in backward passes");
    tare__say_line(out, of, &backward, "backward", NULL, "");
    tare__say_advice(out,
                     "Detach what is carried from step to step (hidden states, running sums of losses): state = "
                     "state.detach().");
    tare__say_gain(out, NAN, "not predicted: the cost grows with the length of the run");
    tare__say_figure(out, "first", nodes.first, TARE__SHOW_COUNT);
    tare__say_figure(out, "last", nodes.value, TARE__SHOW_COUNT);
}

/* ---- threads --------------------------------------------------------------------------------- */
static void say_setter(findings *out, const tare__analysis *of)
{
    const tare__fact_row *fact = tare__fact_find(of, "torch.set_num_threads");
    if (fact && fact->file)
        tare__say_evidence(out, "torch.set_num_threads(%s) is called%s.", count(fact->value).text,
                           place_of("", fact).text);
}

/* Derived from the setting alone: even if threads are oversubscribed only briefly, that part of the run is the one
 * that matters. */
void tare__rule_torch_threads(findings *out, const tare__analysis *of)
{
    training sum;
    tare__fact_row threads;
    double cores = of->usage.cores_allowed;
    if (!tare__fact_sum(of, "torch.threads", &threads) || !(cores > 0) ||
        !(threads.value > limit(LIMIT_CROWDED) * cores) ||
        !tare__training_of(of, &sum) || tare__any_gpu_used(of))
        return;
    tare__finding_add(out, TARE__WARNING);
    tare__say_title(out, "torch uses %s threads on %s", count(threads.value).text,
                    tare__show(cores, TARE__SHOW_CORES).text);
    tare__say_evidence(out,
                       "Each operator is split over %s threads and waits for the last of them; only %s can run at a "
                       "time.", count(threads.value).text, count(floor(cores)).text);
    say_setter(out, of);
    tare__say_advice(out,
                     "Call torch.set_num_threads(%d), or set OMP_NUM_THREADS=%d and remove the call. Several "
                     "processes share the cores.", (int)fmax(1, floor(cores)), (int)fmax(1, floor(cores)));
    tare__say_gain(out, NAN, "not predicted: the cost of switching depends on caches and barriers; measure it");
    tare__say_figure(out, "threads", threads.value, TARE__SHOW_COUNT);
    tare__say_figure(out, "cores_allowed", cores, TARE__SHOW_CORES);
}
