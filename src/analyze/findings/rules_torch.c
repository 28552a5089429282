/* rules_torch: what phases, marks and counters of a torch program tell: who waits for whom, and which faster way is
 * left unused. They read what the package notes under `tare run` (docs/TORCH.md) and nothing else.
 * Owned by the thread that analyzes. Must not know how it was noted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

static shown percent(double share)
{
    return tare__show(share, TARE__SHOW_SHARE);
}

static shown count(double value)
{
    return tare__show(value, TARE__SHOW_COUNT);
}

/* ---- rows ------------------------------------------------------------------------------------ */
static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static const tare__mark_row *mark_of(const tare__analysis *of, const char *start)
{
    for (size_t i = 0; i < of->n_marks; i++)
        if (starts_with(of->marks[i].name, start))
            return &of->marks[i];
    return NULL;
}

static const tare__counter_row *counter_of(const tare__analysis *of, const char *name)
{
    for (size_t i = 0; i < of->n_counters; i++)
        if (strcmp(of->counters[i].name, name) == 0)
            return &of->counters[i];
    return NULL;
}

static bool is_in(const tare__analysis *of, const tare__span_row *row, uint32_t kind)
{
    for (uint32_t at = row->parent; at != TARE__NO_ROW; at = of->spans[at].parent)
        if (of->spans[at].kind == kind)
            return true;
    return false;
}

/* Spans of a name; where that ends with a blank, of all that begin with it. */
typedef struct named {
    double total_ns, calls;
    const tare__span_row *most; /* a row of the call site with most of the time; NULL: there are none */
    double most_ns;             /* … of all its rows, in steps and outside */
} named;

#define SITES_MAX 128u /* as many as are recorded; beyond, the last one has the others' time too */

static bool same_site(const tare__span_row *one, const tare__span_row *other)
{
    bool same_file = one->file && other->file ? strcmp(one->file, other->file) == 0 : one->file == other->file;
    return one->line == other->line && same_file && strcmp(one->name, other->name) == 0;
}

static named sum_named(const tare__analysis *of, const char *name, bool in_steps)
{
    named sum = {0};
    struct {
        const tare__span_row *row;
        double ns;
    } sites[SITES_MAX];
    size_t n_sites = 0;
    bool begins = name[strlen(name) - 1] == ' ';
    for (size_t i = 0; i < of->n_spans; i++) {
        const tare__span_row *row = &of->spans[i];
        if (!(begins ? starts_with(row->name, name) : strcmp(row->name, name) == 0) ||
            (in_steps && !is_in(of, row, TARE_KIND_STEP)))
            continue;
        sum.total_ns += row->total_ns;
        sum.calls += (double)row->calls;
        size_t at = 0;
        while (at < n_sites && at < SITES_MAX - 1 && !same_site(sites[at].row, row))
            at++;
        if (at == n_sites) {
            sites[n_sites].row = row;
            sites[n_sites++].ns = 0;
        }
        sites[at].ns += row->total_ns;
    }
    for (size_t i = 0; i < n_sites; i++)
        if (!sum.most || sites[i].ns > sum.most_ns) {
            sum.most = sites[i].row;
            sum.most_ns = sites[i].ns;
        }
    return sum;
}

static double number_on(const tare__span_row *row, const char *name)
{
    for (size_t i = 0; i < row->n_numbers; i++)
        if (strcmp(row->numbers[i].name, name) == 0)
            return row->numbers[i].sum;
    return 0;
}

/* ---- phases ---------------------------------------------------------------------------------- */
/* Of training: inside of steps, and of waiting for batches also between them. */
typedef struct training {
    double steps_ns, data_ns, copy_ns, forward_ns, backward_ns, optimizer_ns;
    double copied, unpinned; /* bytes */
    double steps, fastest_ns, batches, backwards;
} training;

static void add_phase(training *sum, const tare__span_row *row)
{
    if (strcmp(row->name, "data") == 0) {
        sum->data_ns += row->total_ns;
        sum->batches += (double)row->calls;
    } else if (strcmp(row->name, "forward") == 0)
        sum->forward_ns += row->total_ns;
    else if (strcmp(row->name, "backward") == 0) {
        sum->backward_ns += row->total_ns;
        sum->backwards += (double)row->calls;
    } else if (strcmp(row->name, "optimizer") == 0)
        sum->optimizer_ns += row->self_ns; /* a closure's phases are inside */
    else if (strcmp(row->name, "copy") == 0) {
        sum->copy_ns += row->total_ns;
        sum->copied += number_on(row, "bytes");
        sum->unpinned += number_on(row, "unpinned bytes");
    }
}

/* False: no training loop was found, or too little of it to tell. */
static bool training_of(const tare__analysis *of, training *sum)
{
    double between_ns = 0, between = 0;
    *sum = (training){0};
    if (!of->run.clock_known)
        return false;
    for (size_t i = 0; i < of->n_spans; i++) {
        const tare__span_row *row = &of->spans[i];
        bool inside = is_in(of, row, TARE_KIND_STEP);
        if (row->kind == TARE_KIND_STEP && !inside) {
            sum->steps_ns += row->total_ns;
            sum->steps += (double)row->calls;
            sum->fastest_ns = row->each.min_ns;
        }
        if (row->kind != TARE_KIND_PHASE)
            continue;
        if (inside)
            add_phase(sum, row);
        else if (strcmp(row->name, "data") == 0 && is_in(of, row, TARE_KIND_EPOCH)) {
            between_ns += row->total_ns;
            between += (double)row->calls;
        }
    }
    if (sum->data_ns == 0) { /* steps that the program marks behind the loader; else it is an evaluation's */
        sum->data_ns = between_ns;
        sum->batches = between;
        sum->steps_ns += between_ns;
    }
    return sum->steps >= limit(LIMIT_FEWEST_STEPS) && sum->steps_ns > 0;
}

/* A time inside the steps of one process as a share of steady state; threads may have their steps at the same time. */
static double of_steady(const tare__analysis *rank, const training *sum, double ns)
{
    return fmin(ns / fmax(rank->run.elapsed_ns, sum->steps_ns), 1);
}

/* ---- lines ----------------------------------------------------------------------------------- */
/* The line of the program that most stack samples of a phase are at; NULL: there are none. */
static const tare__aggregate_row *line_of(const tare__analysis *of, const char *phase, double *share)
{
    const tare__aggregate_row *most = NULL;
    double all = 0;
    for (size_t i = 0; i < of->n_aggregates; i++) {
        const tare__aggregate_row *row = &of->aggregates[i];
        size_t length = strlen(phase);
        if (!row->file || strncmp(row->name, phase, length) != 0 ||
            strncmp(row->name + length, " @ ", 3) != 0 || !(row->total_ns > 0))
            continue;
        all += row->total_ns;
        if (!most || row->total_ns > most->total_ns)
            most = row;
    }
    *share = most ? most->total_ns / all : NAN;
    return most;
}

static void say_line(findings *out, tare__finding *finding, const tare__analysis *of, const char *phase)
{
    double share;
    const tare__aggregate_row *line = line_of(of, phase, &share);
    if (!line)
        return;
    const char *function = strrchr(line->name, ' ');
    tare__finding_say(out, &finding->evidence, "%s of the stack samples are at %s:%u, in %s.",
                      percent(share).text, line->file, (unsigned)line->line, function ? function + 1 : "?");
}

/* " at FILE:LINE" of a mark; "" where it has none: no line is certain. */
static const char *place_of(const tare__mark_row *mark)
{
    const char *at = strstr(mark->name, " at ");
    return at ? at : "";
}

/* ---- loading --------------------------------------------------------------------------------- */
/* How the loading is done, as far as that is known. */
typedef struct loading {
    bool known;      /* a DataLoader told its workers; else the program loads by itself, or another way */
    double workers;  /* 0: the training process loads */
    double load_ns;  /* of one worker; measured where there are workers, else all of the waiting */
    double busy;     /* share of their time in which the workers load; NaN: not known */
    bool contended;  /* other processes take CPUs that the job could use */
    int then;        /* workers to try; 0: their number is not what limits */
} loading;

/* Time that the workers took for the batches of the steps: those of other loops over a loader are not told apart, so
 * each batch counts as the mean of all. NaN: not recorded. */
static double measured_load(const tare__analysis *of, const training *sum)
{
    named loads = sum_named(of, "load samples", false);
    return loads.calls > 0 ? loads.total_ns / loads.calls * fmin(sum->batches, loads.calls) : NAN;
}

/* As many workers as hide the loading behind the compute, within reason: as many as there are cores. Where that many
 * load all the time already, twice as many, which helps where loading waits for a disk or a network, and not where it
 * waits for a CPU that another process has. */
static int workers_to_try(const loading *of, double compute_ns, double cores)
{
    double enough = compute_ns > 0 ? ceil(of->load_ns / compute_ns) : INFINITY, most = fmax(2, fmin(floor(cores), 16));
    if (of->busy < limit(LIMIT_WORKERS_BUSY))
        return 0;
    if (of->workers >= most)
        return of->contended ? 0 : (int)fmin(2 * of->workers, 64);
    return (int)fmin(fmax(enough, fmax(2, of->workers + 1)), most);
}

static loading loading_of(const tare__analysis *of, const training *sum)
{
    const tare__counter_row *told = counter_of(of, "torch.loader.workers");
    double cores = of->usage.cores_allowed > 0 ? of->usage.cores_allowed : 1;
    loading found = {.known = told != NULL, .workers = told ? told->max : 0, .load_ns = sum->data_ns, .busy = NAN};
    found.contended = tare__kept_off_cpu(of) >= limit(LIMIT_WAITING_FOR_CPU);
    if (found.workers >= 1) {
        double measured = measured_load(of, sum);
        found.load_ns = isnan(measured) ? sum->steps_ns * found.workers : measured;
        found.busy = fmin(measured / (sum->steps_ns * found.workers), 1);
    }
    found.then = workers_to_try(&found, sum->steps_ns - sum->data_ns, cores);
    return found;
}

static void say_workers(findings *out, tare__finding *finding, const loading *by)
{
    if (by->workers == 0) {
        tare__finding_say(out, &finding->evidence,
                          "num_workers is 0: the training process loads each batch itself and does not compute "
                          "meanwhile.");
        return;
    }
    const char *few = by->workers == 1 ? "worker was" : "workers were";
    if (isnan(by->busy))
        tare__finding_say(out, &finding->evidence, "num_workers is %s.", count(by->workers).text);
    else
        tare__finding_say(out, &finding->evidence,
                          "num_workers is %s; the %s loading batches of these steps for %s in total, %s of %s time.",
                          count(by->workers).text, few, tare__show_time(by->load_ns).text, percent(by->busy).text,
                          by->workers == 1 ? "its" : "their");
    if (by->contended)
        tare__finding_say(out, &finding->evidence, "Other processes took CPU time that the job could have used.");
}

/* The gain of more workers, where their number limits: else that of no waiting at all. */
static double gain_of_workers(const tare__analysis *rank, const void *context)
{
    const loading *by = context;
    training sum;
    training_of(rank, &sum);
    double saved = by->then ? tare__saved_by_workers(sum.data_ns, sum.steps_ns - sum.data_ns,
                                                     loading_of(rank, &sum).load_ns, by->then)
                            : sum.data_ns;
    return tare__beside_gpu(rank, of_steady(rank, &sum, saved));
}

static void predict_workers(findings *out, tare__finding *finding, const tare__analysis *of, const training *sum,
                            const loading *by)
{
    char how[320] = "all of the waiting; the number of workers is not what limits it";
    if (by->then)
        snprintf(how, sizeof how,
                 "with num_workers=%d a step takes the longer of its compute (%s) and of its loading divided by the "
                 "workers, "
                 "if loading does not compete with the training process for CPUs",
                 by->then, tare__show_time((sum->steps_ns - sum->data_ns) / sum->steps).text);
    tare__finding_gain(out, finding, of, gain_of_workers, by, how);
}

/* The rank that waits longest, since the others wait for it; the tables themselves where they are of one process. */
static const tare__analysis *waits_longest(const tare__analysis *of, training *sum)
{
    const tare__analysis *longest = of;
    double most = 0;
    for (size_t i = 0; i < of->n_ranks; i++) {
        training own;
        training_of(&of->ranks[i], &own);
        if (own.data_ns > most && own.steps > 0) {
            most = own.data_ns;
            longest = &of->ranks[i];
            *sum = own;
        }
    }
    return longest;
}

static void say_rank(findings *out, tare__finding *finding, const tare__analysis *rank, const training *own,
                     double share)
{
    if (rank->n_processes != 1 || !rank->processes->has_rank || !(own->data_ns > 1.25 * share * own->steps_ns))
        return;
    tare__finding_say(out, &finding->evidence,
                      "Rank %llu waits longest, for %s of %s, and the other ranks wait for it.",
                      (unsigned long long)rank->processes->rank, tare__show_time(own->data_ns).text,
                      tare__show_time(own->steps_ns).text);
}

/* Workers that are idle part of the time, or kept off their CPUs, are not made faster by more of them. */
static void advise_loading(findings *out, tare__finding *finding, const tare__analysis *of, const loading *by)
{
    if (by->known && by->then)
        tare__finding_say(out, &finding->advice,
                          "Set DataLoader(num_workers=%d, persistent_workers=True) to load while the model computes.",
                          by->then);
    else if (by->known && by->contended && !(by->busy < limit(LIMIT_WORKERS_BUSY)))
        tare__finding_say(
            out, &finding->advice,
            "More workers do not help while other processes take the CPUs: run on an idle machine, or make "
            "loading cheaper (precompute it, or cache its result).");
    else if (by->known)
        tare__finding_say(out, &finding->advice,
                          "The workers have time left, so that more of them do not help. %s a larger prefetch_factor; "
                          "smaller samples, which are cheaper to copy between processes.",
                          of->n_epochs && of->epochs[0].count > 1
                              ? "Set persistent_workers=True, so that they are not started for each epoch anew; try"
                              : "Try");
    else
        tare__finding_say(
            out, &finding->advice,
            "Load the next batch while the model computes: a torch.utils.data.DataLoader with num_workers=%d, "
            "or a background thread that keeps a few batches ready.",
            by->then);
}

void tare__rule_loader_bound(findings *out, const tare__analysis *of)
{
    training sum;
    if (!training_of(of, &sum) || !(sum.data_ns > limit(LIMIT_WAITS_FOR_DATA) * sum.steps_ns) ||
        !tare__compute_is_idle(of))
        return;
    training own = sum;
    const tare__analysis *rank = waits_longest(of, &own);
    loading by = loading_of(rank, &own);
    double share = sum.data_ns / sum.steps_ns;
    tare__finding *finding = tare__finding_add(out, TARE__WARNING);
    tare__finding_say(out, &finding->title, "Training waits for data for %s of step time", percent(share).text);
    tare__finding_say(out, &finding->evidence, "%s of %s in %s steps was spent waiting for the next batch.",
                      tare__show_time(sum.data_ns).text, tare__show_time(sum.steps_ns).text, count(sum.steps).text);
    if (rank != of)
        say_rank(out, finding, rank, &own, share);
    if (by.known)
        say_workers(out, finding, &by);
    say_line(out, finding, of, by.workers > 0 && line_of(of, "load", &(double){0}) ? "load" : "data");
    advise_loading(out, finding, of, &by);
    predict_workers(out, finding, of, &own, &by);
    tare__finding_figure(out, finding, "share", share, TARE__SHOW_SHARE);
    tare__finding_figure(out, finding, "waiting", sum.data_ns / 1e9, TARE__SHOW_SECONDS);
    tare__finding_figure(out, finding, "workers", by.known ? by.workers : NAN, TARE__SHOW_COUNT);
    tare__finding_figure(out, finding, "workers_busy", by.busy, TARE__SHOW_SHARE);
    tare__finding_figure(out, finding, "workers_to_try", by.then ? by.then : NAN, TARE__SHOW_COUNT);
}

void tare__rule_single_worker(findings *out, const tare__analysis *of)
{
    training sum;
    const tare__counter_row *workers = counter_of(of, "torch.loader.workers");
    if (!workers || workers->max > 1 || !training_of(of, &sum) || !tare__compute_is_idle(of) ||
        !(sum.data_ns > limit(LIMIT_SINGLE_WORKER) * sum.steps_ns))
        return;
    training own = sum;
    loading by = loading_of(waits_longest(of, &own), &own);
    if (!by.then) /* one that has time left */
        return;
    by.then = 2;
    tare__finding *finding = tare__finding_add(out, TARE__INFO);
    tare__finding_say(out, &finding->title, "Batches are loaded by %s for %s of step time",
                      workers->max > 0 ? "one worker" : "the training process itself",
                      percent(sum.data_ns / sum.steps_ns).text);
    tare__finding_say(out, &finding->evidence, "num_workers is %s; %s of %s was spent waiting for batches.",
                      count(workers->max).text, tare__show_time(sum.data_ns).text,
                      tare__show_time(sum.steps_ns).text);
    tare__finding_say(out, &finding->advice, "Set DataLoader(num_workers=2, persistent_workers=True).");
    predict_workers(out, finding, of, &own, &by);
    tare__finding_figure(out, finding, "waiting", sum.data_ns / 1e9, TARE__SHOW_SECONDS);
}

/* ---- devices --------------------------------------------------------------------------------- */
static double gain_of_copies(const tare__analysis *rank, const void *context)
{
    training sum;
    (void)context;
    training_of(rank, &sum);
    return tare__beside_gpu(rank, of_steady(rank, &sum, sum.copy_ns));
}

void tare__rule_unpinned(findings *out, const tare__analysis *of)
{
    training sum;
    if (!training_of(of, &sum) || !(sum.copy_ns > limit(LIMIT_COPIES) * sum.steps_ns) ||
        !(sum.unpinned > limit(LIMIT_UNPINNED) * sum.copied))
        return;
    tare__finding *finding = tare__finding_add(out, TARE__WARNING);
    tare__finding_say(out, &finding->title, "Copies to the GPU from pageable memory take %s of step time",
                      percent(sum.copy_ns / sum.steps_ns).text);
    tare__finding_say(out, &finding->evidence,
                      "%s of %s copied in steps came from memory that is not pinned; the host spent %s in copies.",
                      tare__show(sum.unpinned, TARE__SHOW_BYTES).text,
                      tare__show(sum.copied, TARE__SHOW_BYTES).text, tare__show_time(sum.copy_ns).text);
    tare__finding_say(
        out, &finding->advice,
        "Set DataLoader(pin_memory=True) and copy with tensor.to(device, non_blocking=True): the copy then overlaps "
        "with compute.");
    tare__finding_gain(out, finding, of, gain_of_copies, NULL,
                       "the time the host spends in copies, if all of it overlapped with compute");
    tare__finding_figure(out, finding, "unpinned", sum.unpinned, TARE__SHOW_BYTES);
    tare__finding_figure(out, finding, "copying", sum.copy_ns / 1e9, TARE__SHOW_SECONDS);
}

static double gain_of_waits(const tare__analysis *rank, const void *context)
{
    training sum;
    (void)context;
    training_of(rank, &sum);
    double blocked = sum_named(rank, TARE__SYNC, true).total_ns;
    return tare__beside_gpu(rank, of_steady(rank, &sum, fmin(blocked, fmax(0, sum.steps_ns - blocked))));
}

void tare__rule_sync_points(findings *out, const tare__analysis *of)
{
    training sum;
    if (!training_of(of, &sum))
        return;
    named waits = sum_named(of, TARE__SYNC, true);
    double all = waits.total_ns, calls = waits.calls;
    const tare__span_row *most = waits.most;
    if (!most || !(all > limit(LIMIT_SYNC) * sum.steps_ns))
        return;
    tare__finding *finding = tare__finding_add(out, TARE__WARNING);
    tare__finding_say(out, &finding->title, "The program waits for the GPU for %s of step time, at %s",
                      percent(all / sum.steps_ns).text, most->name + strlen(TARE__SYNC));
    tare__finding_say(
        out, &finding->evidence,
        "In %s steps it read a value %s that the GPU had not computed yet, and was blocked for %s; %s of it at "
        "%s:%u.",
        count(sum.steps).text, tare__show_counted(calls, "time", NULL).text, tare__show_time(all).text,
        tare__show_time(waits.most_ns).text, most->file ? most->file : "?", (unsigned)most->line);
    tare__finding_say(
        out, &finding->advice,
        "Keep values on the GPU and read them every N steps (loss.detach(), not loss.item()); use torch.where instead "
        "of if tensor; copy with non_blocking=True.");
    tare__finding_gain(
        out, finding, of, gain_of_waits, NULL,
        "the smaller of the time blocked and of the host's other work: both then overlap, and the GPU's own "
        "work in the time blocked stays");
    tare__finding_figure(out, finding, "blocked", all / 1e9, TARE__SHOW_SECONDS);
    tare__finding_figure(out, finding, "waits", calls, TARE__SHOW_COUNT);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */
#define CHECKPOINT "checkpoint: "

/* Where each rank saves, they do so at once: the longest of them counts. */
static double gain_of_named(const tare__analysis *rank, const void *name)
{
    return tare__beside_gpu(rank, sum_named(rank, name, false).total_ns / rank->run.elapsed_ns);
}

void tare__rule_checkpoints(findings *out, const tare__analysis *of)
{
    training sum;
    if (!training_of(of, &sum))
        return;
    named saves = sum_named(of, CHECKPOINT, false);
    double all = saves.total_ns, calls = saves.calls;
    const tare__span_row *most = saves.most;
    double share = tare__gain_of_ranks(of, gain_of_named, CHECKPOINT, &(const tare__analysis *){NULL});
    if (!most || !(share > limit(LIMIT_CHECKPOINTS)))
        return;
    const char *at = strstr(most->name, " at ");
    tare__finding *finding = tare__finding_add(out, TARE__WARNING);
    tare__finding_say(out, &finding->title, "Checkpoints take %s of steady state, at %s", percent(share).text,
                      at ? at + 4 : "?");
    tare__finding_say(out, &finding->evidence, "torch.save took %s in %s of %s; %s of it at %s:%u.",
                      tare__show_time(all).text, tare__show_counted(calls, "call", NULL).text,
                      tare__show_time(of->run.elapsed_ns).text, tare__show_time(saves.most_ns).text,
                      most->file ? most->file : "?", (unsigned)most->line);
    tare__finding_say(out, &finding->advice,
                      "Save less often, save only what is needed, or write in the background: copy the state to host "
                      "memory, and let a thread or torch.distributed.checkpoint.async_save write it.");
    tare__finding_gain(out, finding, of, gain_of_named, CHECKPOINT, "all of the time in torch.save (Amdahl's law)");
    tare__finding_figure(out, finding, "saving", all / 1e9, TARE__SHOW_SECONDS);
    tare__finding_figure(out, finding, "saves", calls, TARE__SHOW_COUNT);
    tare__finding_figure(out, finding, "share", share, TARE__SHOW_SHARE);
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
            return is_in(of, &of->spans[at], TARE_KIND_STEP);
    return false;
}

/* Those that forward and backward call, each with all that it calls in turn: what an operator that calls others costs
 * is mostly theirs, and a loader's are none of the model's. */
static operators operators_in_steps(const tare__analysis *of)
{
    operators sum = {0};
    for (size_t i = 0; i < of->n_spans; i++)
        if (of->spans[i].kind == TARE_KIND_OPERATOR && !is_in(of, &of->spans[i], TARE_KIND_OPERATOR) &&
            is_in_compute(of, &of->spans[i])) {
            sum.calls += (double)of->spans[i].calls;
            sum.total_ns += of->spans[i].total_ns;
        }
    return sum;
}

/* By the recorded operators; without them by autograd's nodes: one for each operator of the forward, and one more
 * that it stands for in the backward, for each backward of a step. The fastest step counts: others may have been kept
 * off their core. But where graphs differ it has the smallest one: the time of the backwards of the sampled graphs
 * counts. */
void tare__rule_small_operators(findings *out, const tare__analysis *of)
{
    training sum;
    if (tare__any_gpu_used(of) || !training_of(of, &sum))
        return;
    operators all = operators_in_steps(of);
    const tare__counter_row *nodes = counter_of(of, "torch.graph.nodes");
    bool exact = all.calls > 0;
    double spent = sum.forward_ns + sum.backward_ns, share = spent / sum.steps_ns;
    double a_step = exact ? all.calls / sum.steps : nodes ? 2 * nodes->mean * sum.backwards / sum.steps : 0;
    double each = exact ? all.total_ns / all.calls : a_step > 0 ? share * sum.fastest_ns / a_step : NAN;
    const tare__counter_row *timed = counter_of(of, "torch.graph.backward_seconds"),
                            *cpu = counter_of(of, "torch.graph.backward_cpu_seconds");
    bool differ = !exact && nodes && nodes->max > 1.1 * nodes->min;
    if (differ) {
        double mean_ns = sum.backward_ns / sum.backwards, sampled_ns = timed ? timed->mean * 1e9 : mean_ns;
        double cpu_ns = cpu ? cpu->mean * 1e9 : sampled_ns; /* without the time in which it was kept off its core */
        each = cpu_ns * spent / sum.backward_ns / (2 * nodes->mean);
        a_step *= mean_ns / sampled_ns;
    }
    if (!(each < limit(LIMIT_SMALL_OPERATOR)) || a_step < limit(LIMIT_MANY_OPERATORS) ||
        !(share > limit(LIMIT_SMALL_SHARE)))
        return;
    tare__finding *finding = tare__finding_add(out, TARE__WARNING);
    tare__finding_say(out, &finding->title,
                      exact ? "A step consists of %s operators of %s each"
                            : "A step consists of many small operators: estimated %s of %s each",
                      count(round(a_step)).text, tare__show_time(each).text);
    tare__finding_say(
        out, &finding->evidence,
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
    say_line(out, finding, of, "forward");
    tare__finding_say(
        out, &finding->advice,
        "Replace Python loops over parts of a tensor by operations on the whole tensor (cumsum, einsum, torch.vmap, a "
        "larger batch); torch.compile fuses what is left.");
    tare__finding_say(out, &finding->gain_how,
                      "not predicted: how much of an operator's time is launching it, and what the same work takes in "
                      "few operators, is not known; measure it");
    tare__finding_figure(out, finding, "operators", a_step, TARE__SHOW_COUNT);
    tare__finding_figure(out, finding, "each", each / 1e9, TARE__SHOW_SECONDS);
}

void tare__rule_fp32(findings *out, const tare__analysis *of)
{
    training sum;
    const tare__mark_row *mark = mark_of(of, "torch.fp32 on ");
    if (!mark || !training_of(of, &sum))
        return;
    double spent = sum.forward_ns + sum.backward_ns;
    bool gpu = starts_with(mark->name, "torch.fp32 on cuda");
    if (!(spent > limit(LIMIT_FP32) * sum.steps_ns))
        return;
    tare__finding *finding = tare__finding_add(out, TARE__INFO);
    tare__finding_say(out, &finding->title,
                      "Matrix products run in full float32 where a faster precision is available");
    tare__finding_say(out, &finding->evidence, "%s. Forward and backward take %s of step time.",
                      mark->name + strlen("torch."), percent(spent / sum.steps_ns).text);
    tare__finding_say(
        out, &finding->advice,
        gpu ? "Call torch.set_float32_matmul_precision(\"high\") for TensorFloat-32, or use torch.autocast(\"cuda\", "
              "dtype=torch.bfloat16). Check that the loss does not change."
            : "Use torch.autocast(\"cpu\", dtype=torch.bfloat16). Check that the loss does not change.");
    tare__finding_say(out, &finding->gain_how,
                      "not predicted: it depends on the share of matrix products in the compute; measure it");
}

/* A backward graph is compiled at the first backward, after its forward: more time, but no other recompilation. */
static double recompiling_ns(const tare__analysis *of)
{
    return sum_named(of, "torch.recompile", false).total_ns + sum_named(of, "torch.recompile backward", false).total_ns;
}

static double gain_of_recompiling(const tare__analysis *rank, const void *context)
{
    (void)context;
    return recompiling_ns(rank) / rank->run.elapsed_ns;
}

/* Counted over the whole run, since recompilations lengthen what then looks like startup; the gain is of steady
 * state. */
void tare__rule_recompiles(findings *out, const tare__analysis *of)
{
    const tare__analysis *whole = of->whole ? of->whole : of;
    double calls = sum_named(whole, "torch.recompile", false).calls;
    double all = recompiling_ns(whole), steady = recompiling_ns(of);
    double share = all / whole->run.elapsed_ns;
    if (!of->run.clock_known || calls < limit(LIMIT_RECOMPILES) || !(share > limit(LIMIT_RECOMPILING)))
        return;
    tare__finding *finding = tare__finding_add(out, TARE__WARNING);
    tare__finding_say(out, &finding->title, "torch.compile recompiled %s times", count(calls).text);
    tare__finding_say(out, &finding->evidence, "Recompiling took %s (%s of the run).", tare__show_time(all).text,
                      percent(share).text);
    tare__finding_say(
        out, &finding->advice,
        "Run with TORCH_LOGS=recompiles to see why. For shapes that differ: torch.compile(dynamic=True), "
        "mark_dynamic, or pad to a few sizes. Turn Python numbers that change between calls into tensors.");
    if (steady > 0) {
        tare__finding_gain(out, finding, of, gain_of_recompiling, NULL, "the time spent recompiling in steady state");
    } else {
        tare__finding_say(out, &finding->gain_how, "not predicted: all of it was before steady state");
    }
    tare__finding_figure(out, finding, "recompiles", calls, TARE__SHOW_COUNT);
    tare__finding_figure(out, finding, "spent", all / 1e9, TARE__SHOW_SECONDS);
}

static double gain_of_optimizer(const tare__analysis *rank, const void *context)
{
    training sum;
    (void)context;
    training_of(rank, &sum);
    return of_steady(rank, &sum, sum.optimizer_ns);
}

void tare__rule_unfused(findings *out, const tare__analysis *of)
{
    training sum;
    const tare__mark_row *mark = mark_of(of, "torch.unfused ");
    if (!mark || !training_of(of, &sum) || !(sum.optimizer_ns > limit(LIMIT_OPTIMIZER) * sum.steps_ns))
        return;
    tare__finding *finding = tare__finding_add(out, TARE__INFO);
    tare__finding_say(out, &finding->title,
                      "The optimizer updates tensors one by one, for %s of step time",
                      percent(sum.optimizer_ns / sum.steps_ns).text);
    tare__finding_say(out, &finding->evidence, "%s; it took %s of %s.", mark->name + strlen("torch.unfused "),
                      tare__show_time(sum.optimizer_ns).text, tare__show_time(sum.steps_ns).text);
    tare__finding_say(out, &finding->advice,
                      "Pass fused=True to the optimizer: it then updates all parameters in one pass.");
    tare__finding_gain(out, finding, of, gain_of_optimizer, NULL,
                       "all of the optimizer's time; a fused update keeps a part of it");
    tare__finding_figure(out, finding, "optimizer", sum.optimizer_ns / 1e9, TARE__SHOW_SECONDS);
}

/* ---- memory ---------------------------------------------------------------------------------- */
/* What a mark names between its start and " at ", or its end. */
static void name_in(const tare__mark_row *mark, const char *start, char name[128])
{
    const char *from = mark->name + strlen(start), *to = strstr(from, " at ");
    snprintf(name, 128, "%.*s", to ? (int)(to - from) : 127, strcmp(from, "?") == 0 ? "" : from);
}

/* total += loss: the sum's history is that of all losses in it. */
static void summed_losses(findings *out, const tare__analysis *of)
{
    const tare__mark_row *mark = mark_of(of, "torch.summed ");
    const tare__counter_row *sums = counter_of(of, "torch.losses.summed");
    char name[128];
    if (!mark || !sums)
        return;
    name_in(mark, "torch.summed ", name);
    tare__finding *finding = tare__finding_add(out, TARE__WARNING);
    tare__finding_say(out, &finding->title, "The autograd graph of every loss is retained in a sum%s%s",
                      *place_of(mark) ? "," : "", place_of(mark));
    tare__finding_say(out, &finding->evidence,
                      "The graph of %s held %s additions when last checked, and grew. Memory grows with every step.",
                      name, count(sums->max).text);
    tare__finding_say(out, &finding->advice,
                      "Add the value, not the tensor: %s += loss.detach(), or loss.item() on a CPU.",
                      name);
    tare__finding_say(out, &finding->gain_how, "not predicted: it costs memory, not time");
    tare__finding_figure(out, finding, "additions", sums->max, TARE__SHOW_COUNT);
}

void tare__rule_kept_losses(findings *out, const tare__analysis *of)
{
    const tare__mark_row *mark = mark_of(of, "torch.kept ");
    const tare__counter_row *kept = counter_of(of, "torch.losses.kept");
    char name[128];
    if (!mark || !kept) {
        summed_losses(out, of);
        return;
    }
    name_in(mark, "torch.kept ", name);
    tare__finding *finding = tare__finding_add(out, TARE__WARNING);
    tare__finding_say(out, &finding->title, "Losses are kept with their autograd graph%s%s",
                      *place_of(mark) ? "," : "", place_of(mark));
    tare__finding_say(
        out, &finding->evidence,
        "Up to %s of the last 16 losses still held their autograd graph, checked %s%s%s. Memory grows with every step.",
        count(kept->max).text, tare__show_counted((double)kept->n, "time", NULL).text, *name ? "; they are in " : "",
        name);
    tare__finding_say(
        out, &finding->advice,
        "Keep the value, not the tensor: %s.append(loss.detach()), or loss.item() on a CPU.",
        *name ? name : "losses");
    tare__finding_say(out, &finding->gain_how, "not predicted: it costs memory, not time");
    tare__finding_figure(out, finding, "kept", kept->max, TARE__SHOW_COUNT);
}

void tare__rule_growing_graph(findings *out, const tare__analysis *of)
{
    const tare__counter_row *nodes = counter_of(of, "torch.graph.nodes");
    if (!counter_of(of, "torch.graph.retained")) /* inputs grow, or models: no backward goes through an earlier step */
        return;
    if (!nodes || nodes->n < 3 || !(nodes->last > limit(LIMIT_GRAPH_GROWTH) * nodes->first) ||
        nodes->last != nodes->max || nodes->first != nodes->min)
        return;
    tare__finding *finding = tare__finding_add(out, TARE__WARNING);
    tare__finding_say(out, &finding->title, "The autograd graph of a loss grows from %s to %s nodes",
                      count(nodes->first).text, count(nodes->last).text);
    tare__finding_say(
        out, &finding->evidence,
        "Backward passes with retain_graph=True go through more and more nodes: they include earlier steps.");
    say_line(out, finding, of, "backward");
    tare__finding_say(
        out, &finding->advice,
        "Detach what is carried from step to step (hidden states, running sums of losses): state = state.detach().");
    tare__finding_say(out, &finding->gain_how, "not predicted: the cost grows with the length of the run");
    tare__finding_figure(out, finding, "first", nodes->first, TARE__SHOW_COUNT);
    tare__finding_figure(out, finding, "last", nodes->last, TARE__SHOW_COUNT);
}

/* ---- threads --------------------------------------------------------------------------------- */
static void say_setter(findings *out, tare__finding *finding, const tare__analysis *of)
{
    const tare__mark_row *mark = mark_of(of, "torch.set_num_threads(");
    const char *end = mark ? strchr(mark->name, ')') : NULL;
    if (end)
        tare__finding_say(out, &finding->evidence, "%.*s) is called%s.", (int)(end - mark->name),
                          mark->name, place_of(mark));
}

/* Known from the setting alone: however short the part of the run in which they crowd, it is the part that counts. */
void tare__rule_torch_threads(findings *out, const tare__analysis *of)
{
    training sum;
    const tare__counter_row *threads = counter_of(of, "torch.threads");
    double cores = of->usage.cores_allowed;
    if (!threads || !(cores > 0) || !(threads->last > limit(LIMIT_CROWDED) * cores) ||
        !training_of(of, &sum) || tare__any_gpu_used(of))
        return;
    tare__finding *finding = tare__finding_add(out, TARE__WARNING);
    tare__finding_say(out, &finding->title, "torch uses %s threads on %s", count(threads->last).text,
                      tare__show(cores, TARE__SHOW_CORES).text);
    tare__finding_say(
        out, &finding->evidence,
        "Each operator is split over %s threads and waits for the last of them; only %s can run at a time.",
        count(threads->last).text, count(floor(cores)).text);
    say_setter(out, finding, of);
    tare__finding_say(
        out, &finding->advice,
        "Call torch.set_num_threads(%d), or set OMP_NUM_THREADS=%d and remove the call. Several processes share the "
        "cores.",
        (int)fmax(1, floor(cores)), (int)fmax(1, floor(cores)));
    tare__finding_say(out, &finding->gain_how,
                      "not predicted: the cost of switching depends on caches and barriers; measure it");
    tare__finding_figure(out, finding, "threads", threads->last, TARE__SHOW_COUNT);
    tare__finding_figure(out, finding, "cores_allowed", cores, TARE__SHOW_CORES);
}
