/* rules_spans: operations that take most of the time; data loading, forward and backward as shares of the steps.
 * Owned by the thread that analyzes.
 * Must not know where spans come from. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hot.h"

/* ---- phases: meaning of names (listed in docs/FINDINGS.md) ----------------------------------- */
typedef enum phase { LOADING, FORWARD, BACKWARD, PHASES } phase;

/* In lower case, without spaces and punctuation: data_loading, Data-Loading and dataLoading are the same. */
static const struct {
    phase phase;
    bool starts; /* match a prefix of the name */
    const char *name;
} phase_names[] = {
    {LOADING, false, "dataloading"},
    {LOADING, false, "dataload"},
    {LOADING, false, "loaddata"},
    {LOADING, false, "dataloader"},
    {LOADING, false, "loadbatch"},
    {LOADING, false, "batchloading"},
    {LOADING, false, "nextbatch"},
    {LOADING, false, "getbatch"},
    {LOADING, false, "fetch"},
    {LOADING, false, "fetchbatch"},
    {LOADING, false, "fetchdata"},
    {LOADING, false, "datafetch"},
    {LOADING, false, "fetching"},
    {LOADING, false, "datawait"},
    {LOADING, false, "waitfordata"},
    {LOADING, false, "inputpipeline"},
    {LOADING, false, "dataloadernext"},
    {LOADING, false, "loadsamples"}, /* of torch's loader, as the package names it */
    {LOADING, true, "enumeratedataloader"}, /* as torch names its loaders' spans */
    {FORWARD, false, "forward"},
    {FORWARD, false, "forwardpass"},
    {FORWARD, false, "modelforward"},
    {FORWARD, false, "fwd"},
    {BACKWARD, false, "backward"},
    {BACKWARD, false, "backwardpass"},
    {BACKWARD, false, "lossbackward"},
    {BACKWARD, false, "bwd"},
};

/* Only the part after the last '/' counts: "train/data_loading". */
static void plain_name(const char *name, char out[64])
{
    size_t n = 0;
    for (const char *at = tare__last_part(name); *at && n < 63; at++)
        if (isalnum((unsigned char)*at))
            out[n++] = (char)tolower((unsigned char)*at);
    out[n] = '\0';
}

/* A span of kind PHASE may be named just "data". */
static phase phase_of(const char *name, uint32_t kind)
{
    char plain[64];
    plain_name(name, plain);
    if (kind == TARE_KIND_PHASE && strcmp(plain, "data") == 0)
        return LOADING;
    for (size_t i = 0; i < TARE__COUNT_OF(phase_names); i++) {
        const char *wanted = phase_names[i].name;
        if (phase_names[i].starts ? strncmp(plain, wanted, strlen(wanted)) == 0 : strcmp(plain, wanted) == 0)
            return phase_names[i].phase;
    }
    return PHASES;
}

const char *tare__phase_of_name(const char *name, uint32_t kind)
{
    static const char *const words[PHASES + 1] = {
        [LOADING] = "loading", [FORWARD] = "forward", [BACKWARD] = "backward"};
    return words[phase_of(name, kind)];
}

/* ---- time of a phase ------------------------------------------------------------------------- */
typedef struct phase_time {
    double inside_ns, outside_ns; /* of steps */
    double steps_ns, top_ns;      /* of all outermost steps; of all outermost spans */
    const char *name;             /* the one with most time */
    double most_ns;
} phase_time;

static bool has_above(const tare__analysis *of, const tare__span_row *row, uint32_t kind, phase phase)
{
    for (uint32_t at = row->parent; at != TARE__NO_ROW; at = of->spans[at].parent)
        if (of->spans[at].kind == kind ||
            (phase != PHASES && phase_of(of->spans[at].name, of->spans[at].kind) == phase))
            return true;
    return false;
}

#define NO_KIND UINT32_MAX

static phase_time time_of(const tare__analysis *of, phase phase)
{
    phase_time sum = {0};
    for (size_t i = 0; i < of->n_spans; i++) {
        const tare__span_row *row = &of->spans[i];
        if (row->parent == TARE__NO_ROW)
            sum.top_ns += row->total_ns;
        if (row->kind == TARE_KIND_STEP && !has_above(of, row, TARE_KIND_STEP, PHASES))
            sum.steps_ns += row->total_ns;
        if (phase_of(row->name, row->kind) != phase || has_above(of, row, NO_KIND, phase))
            continue;
        if (has_above(of, row, TARE_KIND_STEP, PHASES))
            sum.inside_ns += row->total_ns;
        else
            sum.outside_ns += row->total_ns;
        if (row->total_ns > sum.most_ns) {
            sum.most_ns = row->total_ns;
            sum.name = row->name;
        }
    }
    return sum;
}

/* Loading between steps belongs to the loop like loading inside them; but if steps load data themselves, loading
 * between them is for something else: an evaluation. Steps and loading together exceed the run only if they overlap,
 * and overlapping time is already hidden. */
static double loading_share(const tare__analysis *of, const phase_time *time, double *lost_ns)
{
    double outside = time->steps_ns > 0 && time->inside_ns > 0 ? 0 : time->outside_ns;
    if (!(time->steps_ns > 0)) {
        *lost_ns = fmin(outside, of->run.elapsed_ns);
        return time->top_ns > 0 ? outside / time->top_ns : NAN;
    }
    if (time->steps_ns + outside > 1.02 * of->run.elapsed_ns)
        outside = fmax(0, of->run.elapsed_ns - time->steps_ns);
    *lost_ns = fmin(time->inside_ns + outside, of->run.elapsed_ns);
    return (time->inside_ns + outside) / (time->steps_ns + outside);
}

static double compute_share(const phase_time *time)
{
    double all = time->steps_ns > 0 ? time->steps_ns : time->top_ns;
    double part = time->steps_ns > 0 ? time->inside_ns : time->outside_ns;
    return all > 0 ? part / all : NAN;
}

static bool long_enough(const tare__analysis *of)
{
    return of->run.clock_known && of->run.elapsed_ns >= limit(LIMIT_SHORTEST_SPANS);
}

/* In a loop too short for a steady state, the first iterations include the cost of startup. */
static bool has_few_steps(const tare__analysis *of)
{
    double steps = 0;
    for (size_t i = 0; i < of->n_steps; i++)
        steps += (double)of->steps[i].count;
    return of->n_steps && steps < limit(LIMIT_FEWEST_STEPS);
}

static bool has_steps(const tare__analysis *of)
{
    for (size_t i = 0; i < of->n_steps; i++)
        if (of->steps[i].count)
            return true;
    return false;
}

static double gain_of_loading(const tare__analysis *rank, const void *context)
{
    double lost_ns = NAN;
    phase_time time = time_of(rank, LOADING);
    loading_share(rank, &time, &lost_ns);
    double whole_ns = fmax(rank->run.elapsed_ns, time.steps_ns);
    return tare__beside_gpu(rank, tare__saved_by_workers(lost_ns, whole_ns - lost_ns, lost_ns, *(const int *)context) /
                                      whole_ns);
}

static bool is_in_phase(tare__open_spans spans, const void *context)
{
    for (; spans.path; spans.path = tare__open_outer(spans))
        if (phase_of(tare__open_innermost(spans), tare__open_innermost_kind(spans)) == *(const phase *)context)
            return true;
    return false;
}

static void say_phase_line(findings *out, const tare__analysis *of, phase phase, const char *time)
{
    const tare__hot_question question = {.within = is_in_phase, .context = &phase, .time = time};
    tare__say_hot(out, of, &question);
}

void tare__rule_loading(findings *out, const tare__analysis *of)
{
    if (!long_enough(of) || !tare__compute_is_idle(of))
        return;
    double lost_ns = NAN;
    phase_time time = time_of(of, LOADING);
    double share = loading_share(of, &time, &lost_ns);
    if (!(share > limit(LIMIT_LOADING)))
        return;
    /* Without steps, most of a loop may be outside of all spans. */
    if (!has_steps(of) && !(lost_ns > limit(LIMIT_LOADING) * of->run.elapsed_ns))
        return;
    tare__finding_add(out, TARE__WARNING);
    bool steps = time.steps_ns > 0;
    tare__say_title(out, "Data loading takes %s of %s", percent(share).text, steps ? "step time" : "span time");
    tare__say_evidence(
        out, "%s was spent in spans that load data (most of it in %s), of %s in %s.", tare__show_time(lost_ns).text,
        tare__show_name(time.name ? time.name : "").text,
        tare__show_time(steps ? time.steps_ns + lost_ns - fmin(lost_ns, time.inside_ns) : time.top_ns).text,
        steps ? "steps and the loading between them" : "all spans");
    say_phase_line(out, of, LOADING, "the time in spans that load data");
    int workers = (int)fmax(2, fmin(of->usage.cores_allowed > 0 ? of->usage.cores_allowed : 2, 8));
    if (tare__has_loader(of))
        tare__say_advice(out,
                         "Load while the model computes: DataLoader(num_workers=%d, persistent_workers=True); decode "
                         "and augment ahead of time; store the data in few large files.", workers);
    else
        tare__say_advice(out,
                         "Load the next data while the program computes: %d background workers with a queue of a few "
                         "batches; decode ahead of time; store the data in few large files.", workers);
    char how[160];
    snprintf(how, sizeof how,
             "with %d workers that load in the background an iteration takes the longer of its compute and of its "
             "loading divided by them", workers);
    tare__say_rank_gain(out, of, gain_of_loading, &workers, how);
    tare__say_figure(out, "share", share, TARE__SHOW_SHARE);
    tare__say_figure(out, "loading", lost_ns / 1e9, TARE__SHOW_SECONDS);
}

static double gain_of_compute(const tare__analysis *rank, const void *context)
{
    phase_time time = time_of(rank, *(const phase *)context);
    return (time.steps_ns > 0 ? time.inside_ns : time.outside_ns) / fmax(rank->run.elapsed_ns, time.steps_ns);
}

/* Ranks end the backward pass together: the additional time of one rank there is waiting, which remains. */
static void without_waiting(findings *out, const tare__analysis *of)
{
    double least = of->n_ranks ? tare__least_backward_ns(of) / of->run.elapsed_ns : NAN;
    if (!(least < out->now->gain))
        return;
    out->now->gain = least;
    out->now->gain_how = "";
    tare__say_gain(out, NAN,
                   "all of its time in the rank with the least of it (Amdahl's law): the other ranks wait in it");
}

/* Host time of asynchronous work is not its duration: not applicable if a GPU was used. */
static void check_compute(findings *out, const tare__analysis *of, phase phase, rule_limit which,
                            const char *what, const char *advice)
{
    if (!long_enough(of) || tare__any_gpu_used(of))
        return;
    phase_time time = time_of(of, phase);
    double share = compute_share(&time), spent = time.steps_ns > 0 ? time.inside_ns : time.outside_ns;
    if (!(share > limit(which)))
        return;
    tare__finding_add(out, TARE__INFO);
    tare__say_title(out, "The %s pass takes %s of %s", what, percent(share).text,
                    time.steps_ns > 0 ? "step time" : "span time");
    tare__say_evidence(out, "%s was spent in spans of the %s pass (most of it in %s), of %s.",
                       tare__show_time(spent).text, what, tare__show_name(time.name ? time.name : "").text,
                       tare__show_time(time.steps_ns > 0 ? time.steps_ns : time.top_ns).text);
    say_phase_line(out, of, phase, phase == FORWARD ? "the time in forward passes" : "the time in backward passes");
    tare__say_advice(out, "%s", advice);
    tare__say_rank_gain(out, of, gain_of_compute, &phase, "all of its time (Amdahl's law)");
    if (phase == BACKWARD)
        without_waiting(out, of);
    tare__say_figure(out, "share", share, TARE__SHOW_SHARE);
    tare__say_figure(out, "spent", spent / 1e9, TARE__SHOW_SECONDS);
}

void tare__rule_forward(findings *out, const tare__analysis *of)
{
    check_compute(
        out, of, FORWARD, LIMIT_FORWARD, "forward",
        "This is usual for inference. To make it cheaper, try mixed precision, compilation or a smaller model.");
}

void tare__rule_backward(findings *out, const tare__analysis *of)
{
    check_compute(out, of, BACKWARD, LIMIT_BACKWARD, "backward",
                  "It usually takes twice the forward pass. To make it cheaper, try mixed precision, or freeze "
                  "layers that need no training.");
}

/* ---- operations ------------------------------------------------------------------------------ */
typedef struct operations {
    tare__intern *names;
    double *self_ns;
    uint64_t *calls;
    uint32_t *kinds;
    uint32_t n;
    double all_ns;
} operations;

static void free_operations(operations *all)
{
    tare__intern_free(all->names);
    free(all->self_ns);
    free(all->calls);
    free(all->kinds);
}

/* If a program marks its steps, only time inside them counts: other threads, which mostly wait, add no cost to
 * steps. */
static bool in_a_step(const tare__analysis *of, const tare__span_row *row)
{
    while (row->kind != TARE_KIND_STEP && row->kind != TARE_KIND_EPOCH) {
        if (row->parent == TARE__NO_ROW)
            return false;
        row = &of->spans[row->parent];
    }
    return true;
}

static bool add_up(const tare__analysis *of, operations *all)
{
    bool has_steps = of->n_steps > 0 || of->n_epochs > 0;
    *all = (operations){.names = tare__intern_new(),
                        .self_ns = calloc(of->n_spans, sizeof(double)),
                        .calls = calloc(of->n_spans, sizeof(uint64_t)),
                        .kinds = calloc(of->n_spans, sizeof(uint32_t))};
    if (!all->names || !all->self_ns || !all->calls || !all->kinds)
        return false;
    for (size_t i = 0; i < of->n_spans; i++) {
        const tare__span_row *row = &of->spans[i];
        if (has_steps && !in_a_step(of, row))
            continue;
        uint32_t id = tare__intern_add(all->names, row->name, strlen(row->name));
        if (id == TARE__INTERN_NONE)
            return false;
        all->self_ns[id] += row->self_ns;
        all->calls[id] += row->calls;
        all->kinds[id] = row->kind;
        all->all_ns += row->self_ns;
    }
    all->n = tare__intern_count(all->names);
    return true;
}

/* Whether another rule covers it and has reported it. */
static bool reported_elsewhere(const findings *out, const tare__analysis *of, const char *name, uint32_t kind)
{
    static const struct {
        phase phase;
        const char *id;
    } reported[] = {{LOADING, "data-loading"}, {LOADING, "loader-bound"}, {LOADING, "single-worker"},
                {FORWARD, "forward"}, {BACKWARD, "backward"}};
    if (strncmp(name, TARE__SYNC, strlen(TARE__SYNC)) == 0)
        return true; /* waiting is not work: sync-points reports its gain */
    if (strncmp(name, TARE__WORKERS, strlen(TARE__WORKERS)) == 0)
        return tare__finding_has(out, "loader-bound") || tare__finding_has(out, "worker-restarts");
    if (kind == TARE_KIND_STEP) /* its self time is outside of the model */
        return tare__finding_has(out, "outside-model");
    if (kind == TARE_KIND_EPOCH) /* … and that of an epoch is between its steps */
        return tare__finding_has(out, "outside-steps");
    phase phase = phase_of(name, kind);
    if (phase == LOADING && !tare__compute_is_idle(of))
        return true; /* hidden by the work of a GPU */
    for (size_t i = 0; phase != PHASES && i < out->n; i++)
        for (size_t j = 0; j < TARE__COUNT_OF(reported); j++)
            if (reported[j].phase == phase && strcmp(out->rows[i].id, reported[j].id) == 0)
                return true;
    return false;
}

static double gain_of_operation(const tare__analysis *rank, const void *name)
{
    double self = 0;
    bool has_steps = rank->n_steps > 0 || rank->n_epochs > 0;
    for (size_t i = 0; i < rank->n_spans; i++)
        if (strcmp(rank->spans[i].name, name) == 0 && (!has_steps || in_a_step(rank, &rank->spans[i])))
            self += rank->spans[i].self_ns;
    return tare__beside_gpu(rank, self / rank->run.elapsed_ns);
}

static void tell_operation(findings *out, const tare__analysis *of, const operations *all, uint32_t id)
{
    double share = all->self_ns[id] / all->all_ns;
    const char *name = tare__intern_text(all->names, id, NULL);
    bool frame = all->kinds[id] == TARE_KIND_STEP || all->kinds[id] == TARE_KIND_EPOCH;
    tare__finding_add(out, TARE__INFO); /* not a fault: one operation is always the largest */
    tare__say_title(out, "%s accounts for %s of %s (self)", tare__show_name(name).text, percent(share).text,
                    of->n_steps || of->n_epochs ? "step time" : "span time");
    tare__say_evidence(out, "Its self time, without the spans inside it, is %s of %s in all spans%s (calls: %s).",
                       tare__show_time(all->self_ns[id]).text, tare__show_time(all->all_ns).text,
                       of->n_steps || of->n_epochs ? " of steps and epochs" : "",
                       tare__show((double)all->calls[id], TARE__SHOW_COUNT).text);
    if (tare__any_gpu_used(of))
        tare__say_evidence(out, "This is host time; work that it launched on a GPU is not in it.");
    const tare__hot_question question = {.within = tare__directly_in, .context = name, .time = "that time"};
    bool line = tare__say_hot(out, of, &question);
    if (line)
        tare__say_advice(out, "Optimize %s at %s first: do it less often, ahead of time, in larger batches or in the "
                              "background.", tare__show_name(out->now->function).text,
                         tare__show_place(of, out->now->file, out->now->line).text);
    else if (frame)
        tare__say_advice(out, "This time is in no span inside it: put spans around its parts to see which take it.");
    else
        tare__say_advice(out,
                         "Optimize this first: do it less often, ahead of time, in larger batches or in the "
                         "background. Spans inside it show which part takes the time.");
    if (frame)
        tare__say_gain(out, NAN, "not predicted: no span tells what this time is spent on");
    else if (tare__any_gpu_used(of) && phase_of(name, all->kinds[id]) != LOADING)
        tare__say_gain(out, NAN, "not predicted: work that it launched on a GPU is not in its time");
    else
        tare__say_rank_gain(out, of, gain_of_operation, name, "all of its self time (Amdahl's law)");
    if (!frame && phase_of(name, all->kinds[id]) == BACKWARD)
        without_waiting(out, of);
    tare__say_figure(out, "share", share, TARE__SHOW_SHARE);
    tare__say_figure(out, "self", all->self_ns[id] / 1e9, TARE__SHOW_SECONDS);
    tare__say_figure(out, "calls", (double)all->calls[id], TARE__SHOW_COUNT);
}

/* Runs after the rules of the phases, whose findings it does not repeat. Needs at least two names to compare. */
void tare__rule_operations(findings *out, const tare__analysis *of)
{
    operations all;
    if (!long_enough(of) || of->n_spans < 2 || has_few_steps(of))
        return;
    if (!add_up(of, &all))
        out->failed = true;
    for (uint32_t id = 0; !out->failed && all.n > 1 && id < all.n; id++)
        if (all.self_ns[id] > limit(LIMIT_OPERATION_INFO) * all.all_ns && all.kinds[id] != 0 &&
            all.self_ns[id] > limit(LIMIT_OPERATION_OF_RUN) * of->run.elapsed_ns &&
            !reported_elsewhere(out, of, tare__intern_text(all.names, id, NULL), all.kinds[id]))
            tell_operation(out, of, &all, id);
    free_operations(&all);
}
