/* phases: finds startup, steady state and shutdown of a run, and the parts of startup. Determined only here; rules and
 * outputs read the result. Owned by the thread that analyzes.
 * Must not know what is concluded from them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/inner.h"

#define WARM_UP_RATIO  1.5   /* a first step this many times the median of the others is warm-up … */
#define WARM_UP_LEAST  5u    /* … if there are at least this many steps, … */
#define WARM_UP_PART   10u   /* … and warm-up is at most one in this many */
#define CHAIN_GAP_NS   1e8   /* imports this close together form a chain, … */
#define CHAIN_GAP      0.25  /* … or closer than this share of the time so far */
#define SPANS_COVER    0.5   /* of the run: minimum for spans to determine startup and shutdown */
#define LEAST_APART    0.01  /* of the run: shorter phases are merged into steady state, … */
#define LEAST_APART_NS 1e7   /* … and so are these */
#define IMPORTS_MAX    512u

/* ---- steps ------------------------------------------------------------------------------------------- */
static bool is_outermost(const work *work, const frame *frame)
{
    for (const struct frame *above = frame - 1; above > work->frames; above--)
        if (work->names.rows[above->node->name].kind == TARE_KIND_STEP)
            return false;
    return true;
}

int tare__analyze_phase_step(work *work, stream *stream, const frame *frame, uint64_t now)
{
    if (!stream->first_steps)
        stream->first_steps = calloc(1, sizeof *stream->first_steps);
    first_steps *first = stream->first_steps;
    if (!first)
        return TARE_E_MEMORY;
    first->last_end = now > first->last_end ? now : first->last_end;
    if (first->n == FIRST_STEPS || !is_outermost(work, frame)) {
        first->all += first->n == FIRST_STEPS;
        return 0;
    }
    first->begins[first->n] = frame->span.begin;
    first->ends[first->n] = now;
    first->names[first->n++] = frame->node->name;
    first->all++;
    return 0;
}

/* The median of the other steps of the same name, in ns; NaN: not known. */
static double median_of(const work *work, const tare__analysis *analysis, const stream *stream, uint32_t name)
{
    const char *text = work->names.rows[name].text;
    for (size_t i = 0; i < analysis->n_steps; i++)
        if ((analysis->steps[i].group == stream->group || analysis->steps[i].group == TARE__NO_ROW) &&
            strcmp(analysis->steps[i].name, text) == 0)
            return analysis->steps[i].rest_p50_ns;
    return NAN;
}

/* The number of a stream's first steps that are warm-up. */
static size_t warm_up_of(const work *work, const tare__analysis *analysis, const stream *stream)
{
    const first_steps *first = stream->first_steps;
    double tick_ns = tare__trace_tick_ns(work->trace);
    size_t most = first->all < WARM_UP_LEAST ? 0 : first->all / WARM_UP_PART, n = 0;
    most = first->all >= WARM_UP_LEAST && most == 0 ? 1 : most;
    most = most < first->n ? most : first->n ? first->n - 1 : 0;
    while (n < most && (double)(first->ends[n] - first->begins[n]) * tick_ns >
                           WARM_UP_RATIO * median_of(work, analysis, stream, first->names[n]))
        n++;
    return n;
}

typedef struct bounds {
    uint64_t from, to; /* ticks of steady state; to 0: not known from this source */
    uint64_t warm_up_from, warm_up_steps;
    bool after; /* spans follow the last step */
} bounds;

/* From the first steady step of any thread to the end of the last step, or of later spans of the same thread: an
 * evaluation, a checkpoint. */
static bounds bounds_by_steps(const work *work, const tare__analysis *analysis)
{
    bounds found = {.from = UINT64_MAX};
    for (size_t i = 0; i < work->n_streams; i++) {
        const stream *stream = work->streams[i];
        if (!stream->first_steps || !stream->first_steps->n)
            continue;
        size_t warm_up = warm_up_of(work, analysis, stream);
        if (stream->first_steps->begins[warm_up] < found.from) {
            found.from = stream->first_steps->begins[warm_up];
            found.warm_up_from = stream->first_steps->begins[0];
            found.warm_up_steps = warm_up;
        }
        found.to = stream->first_steps->last_end > found.to ? stream->first_steps->last_end : found.to;
        found.after |= stream->last_finished > stream->first_steps->last_end;
        found.to = stream->last_finished > found.to ? stream->last_finished : found.to;
    }
    return found;
}

/* From outermost spans, if those of a thread cover most of the run. */
static bounds bounds_by_spans(const work *work, double elapsed_ns)
{
    bounds found = {.from = UINT64_MAX};
    double tick_ns = tare__trace_tick_ns(work->trace), covered = 0;
    for (size_t i = 0; i < work->n_streams; i++) {
        const stream *stream = work->streams[i];
        if (!stream->last_span_end)
            continue;
        covered = (double)stream->busy * tick_ns > covered ? (double)stream->busy * tick_ns : covered;
        found.from = stream->first_span < found.from ? stream->first_span : found.from;
        found.to = stream->last_span_end > found.to ? stream->last_span_end : found.to;
    }
    if (!(covered >= SPANS_COVER * elapsed_ns))
        found.to = 0;
    return found;
}

/* ---- imports ----------------------------------------------------------------------------------------- */
typedef struct import {
    double from, to; /* ns */
    char module[64]; /* top-level name */
    bool inside;
} import;

typedef struct imports {
    import *rows;
    size_t n;
    double ready_ns; /* when the first interpreter was ready; NaN: not recorded by any Python process */
    double exit_ns;  /* when the last program ended; NaN: not recorded */
    bool of_first;   /* lines are of the first process, … */
    bool first_ended; /* … which recorded its end */
} imports;

static void take_line(imports *all, const char *line)
{
    char kind[8], name[128] = "";
    unsigned long long from, to = 0;
    int read = sscanf(line, "%7[a-z] %llu %llu %127[^ \n]", kind, &from, &to, name);
    if (read >= 2 && strcmp(kind, "python") == 0) {
        double ready = (double)from * 1e3;
        all->of_first = isnan(all->ready_ns) || ready < all->ready_ns;
        all->ready_ns = all->of_first ? ready : all->ready_ns;
        all->first_ended = all->first_ended && !all->of_first;
    } else if (read >= 2 && strcmp(kind, "exit") == 0) {
        double ended = (double)from * 1e3;
        all->exit_ns = isnan(all->exit_ns) || ended > all->exit_ns ? ended : all->exit_ns;
        all->first_ended = all->first_ended || all->of_first;
    } else if (read == 4 && to >= from && all->n < IMPORTS_MAX) {
        import *row = &all->rows[all->n++];
        *row = (import){.from = (double)from * 1e3, .to = (double)to * 1e3, .inside = strcmp(kind, "inside") == 0};
        size_t length = strcspn(name, ".");
        length = length < sizeof row->module - 1 ? length : sizeof row->module - 1;
        memcpy(row->module, name, length);
    }
}

TARE__ORDER(by_from, import, TARE__RISING(from))

static int load_imports(const work *work, imports *all)
{
    size_t n;
    const tare__trace_process *processes = tare__trace_processes(work->trace, &n);
    *all = (imports){.rows = calloc(IMPORTS_MAX, sizeof *all->rows), .ready_ns = NAN, .exit_ns = NAN};
    if (!all->rows)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++) {
        all->of_first = false;
        for (const char *line = processes[i].imports; line && *line; line += line[0] == '\n') {
            take_line(all, line);
            line += strcspn(line, "\n");
        }
    }
    qsort(all->rows, all->n, sizeof *all->rows, by_from);
    return 0;
}

/* The end of the initial chain of imports: those in close succession. NaN: there are none. */
static double chain_end(const imports *all)
{
    double end = all->ready_ns;
    for (size_t i = 0; i < all->n; i++) {
        double gap = CHAIN_GAP * end > CHAIN_GAP_NS ? CHAIN_GAP * end : CHAIN_GAP_NS;
        if (all->rows[i].from > end + gap)
            break;
        end = all->rows[i].to > end ? all->rows[i].to : end;
    }
    return end;
}

/* Time before an instant in which any process was importing. */
static double importing_until(const imports *all, double until_ns)
{
    double sum = 0, seen = 0;
    for (size_t i = 0; i < all->n; i++) {
        double from = all->rows[i].from > seen ? all->rows[i].from : seen;
        double to = all->rows[i].to < until_ns ? all->rows[i].to : until_ns;
        if (to > from)
            sum += to - from;
        seen = all->rows[i].to > seen ? all->rows[i].to : seen;
    }
    return sum;
}

TARE__ORDER(by_total, tare__import_row, TARE__FALLING(total_ns) TARE__BY_TEXT(module))

/* One row per module; time shared by several imports belongs to the one that began first. */
static int import_table(const imports *all, tare__analysis *analysis)
{
    tare__phase_table *phases = &analysis->phases;
    tare__import_row *rows = tare__arena_alloc(analysis->arena, (all->n + 1) * sizeof *rows);
    double seen = 0;
    if (!rows)
        return TARE_E_MEMORY;
    phases->imports = rows;
    for (size_t i = 0; i < all->n; i++) {
        const import *each = &all->rows[i];
        double from = each->from > seen ? each->from : seen;
        size_t at = 0;
        while (at < phases->n_imports && strcmp(rows[at].module, each->module) != 0)
            at++;
        if (at == phases->n_imports)
            rows[phases->n_imports++] = (tare__import_row){copied(analysis->arena, each->module), each->from, 0};
        if (!each->inside && each->to > from) {
            rows[at].total_ns += each->to - from;
            seen = each->to;
        }
    }
    qsort(rows, phases->n_imports, sizeof *rows, by_total);
    return 0;
}

/* ---- table ------------------------------------------------------------------------------------------- */
static const char *sentence(tare__arena *arena, const char *format, unsigned long long n)
{
    char text[256];
    snprintf(text, sizeof text, format, n);
    return copied(arena, text);
}

static double compile_time(const tare__analysis *analysis)
{
    double sum = 0;
    for (size_t i = 0; i < analysis->n_facts; i++) {
        const tare__fact_row *fact = &analysis->facts[i];
        if (strcmp(fact->key, "torch.compile") == 0 || strcmp(fact->key, "torch.compile.backward") == 0)
            sum += fact->mean * (double)fact->count * 1e9;
    }
    return sum > 0 ? sum : NAN;
}

typedef struct limits {
    double from_ns, to_ns;       /* of steady state */
    uint64_t from_ticks, to_ticks; /* 0: only the time is known */
    double warm_up_from_ns;      /* NaN: no step is warm-up */
    bool shutdown;               /* the begin of shutdown is known */
} limits;

static uint64_t ticks_at(const work *work, double ns)
{
    return tare__trace_run_of(work->trace)->start_ticks + (uint64_t)(ns / tare__trace_tick_ns(work->trace) + 0.5);
}

static void find_limits(const work *work, tare__analysis *analysis, const imports *imported, limits *found)
{
    tare__phase_table *phases = &analysis->phases;
    tare__arena *arena = analysis->arena;
    double elapsed = analysis->run.elapsed_ns;
    bounds steps = bounds_by_steps(work, analysis), spans = bounds_by_spans(work, elapsed);
    double chain = chain_end(imported);
    phases->shutdown.how = "unknown: nothing marks the end of the work";
    if (analysis->run.rotated_spans) {
        *found = (limits){analysis->run.rotated_before_at_ns, elapsed, 0, 0, NAN, false};
        phases->startup.how = "unknown: the events of startup were dropped (--max-size, --last)";
        phases->steady.how = "all remaining events";
    } else if (steps.to) {
        *found = (limits){tare__trace_ns(work->trace, steps.from), tare__trace_ns(work->trace, steps.to), steps.from,
                          steps.to, steps.warm_up_steps ? tare__trace_ns(work->trace, steps.warm_up_from) : NAN, true};
        phases->warm_up_steps = steps.warm_up_steps;
        phases->startup.how = steps.warm_up_steps == 1 ? "until the first steady step; one warm-up step precedes it"
                              : steps.warm_up_steps
                                  ? sentence(arena, "until the first steady step; %llu warm-up steps precede it",
                                             (unsigned long long)steps.warm_up_steps)
                                  : "until the first step";
        phases->steady.how = steps.after ? "from the first steady step to the end of the last span after the steps"
                                         : "from the first steady step to the end of the last step";
        phases->shutdown.how =
            steps.after ? "from the end of the last span after the steps on" : "from the end of the last step on";
    } else if (spans.to) {
        *found = (limits){tare__trace_ns(work->trace, spans.from), tare__trace_ns(work->trace, spans.to), spans.from,
                          spans.to, NAN, true};
        bool later = chain > found->from_ns;
        phases->startup.how = later ? "until the imports at the start ended" : "until the first span";
        phases->steady.how = later ? "from the last import at the start to the end of the last span"
                                   : "from the first span to the end of the last one";
        phases->shutdown.how = "from the end of the last span on";
        if (later) {
            found->from_ns = chain;
            found->from_ticks = 0;
        }
    } else if (chain > 0) {
        bool ended = imported->first_ended && imported->exit_ns >= chain;
        *found = (limits){chain, ended ? imported->exit_ns : elapsed, 0, 0, NAN, ended};
        phases->startup.how = "until the imports at the start ended";
        phases->steady.how = ended ? "from the imports at the start to the end of the program"
                                   : "all of the run after the imports at the start";
        if (ended)
            phases->shutdown.how = "from the end of the program on: the interpreter shuts down";
    } else {
        *found = (limits){0, elapsed, 0, 0, NAN, false};
        phases->startup.how = "unknown: no steps, spans or imports were recorded";
        phases->steady.how = "the whole run: its phases are unknown";
    }
    if (analysis->run.attached && !analysis->run.rotated_spans) {
        phases->startup.how = "before Tare attached to the process";
        found->warm_up_from_ns = NAN;
        phases->warm_up_steps = 0;
    }
}

static void fill_parts(const imports *imported, const limits *found, tare__phase_table *phases)
{
    double startup = phases->startup.to_ns - phases->startup.from_ns;
    phases->interpreter_ns = phases->imports_ns = phases->preparation_ns = phases->warm_up_ns = NAN;
    if (isnan(startup))
        return;
    phases->warm_up_ns = isnan(found->warm_up_from_ns) ? 0 : found->from_ns - found->warm_up_from_ns;
    double before = startup - phases->warm_up_ns, used = 0; /* before: until the first step */
    if (!isnan(imported->ready_ns)) {
        phases->interpreter_ns = imported->ready_ns < before ? imported->ready_ns : before;
        phases->imports_ns = importing_until(imported, before);
        used = phases->interpreter_ns + phases->imports_ns;
    }
    phases->preparation_ns = before > used ? before - used : 0;
}

static bool worth_a_part(const tare__phase *phase, double elapsed_ns)
{
    double lasts = phase->to_ns - phase->from_ns;
    return lasts >= LEAST_APART * elapsed_ns && lasts >= LEAST_APART_NS;
}

int tare__analyze_phases_table(work *work, tare__analysis *analysis, window *steady)
{
    tare__phase_table *phases = &analysis->phases;
    double elapsed = analysis->run.elapsed_ns;
    imports imported;
    limits found = {0};
    *phases = (tare__phase_table){.startup = {NAN, NAN, NULL}, .steady = {0, elapsed, NULL},
                                  .shutdown = {NAN, NAN, NULL}};
    *steady = (window){0};
    int status = load_imports(work, &imported);
    if (!status)
        status = import_table(&imported, analysis);
    if (!status)
        find_limits(work, analysis, &imported, &found);
    phases->imports_known = !status && !isnan(imported.ready_ns);
    if (!status && elapsed > 0) {
        found.to_ns = found.to_ns > elapsed ? elapsed : found.to_ns;
        found.from_ns = found.from_ns > found.to_ns ? found.to_ns : found.from_ns < 0 ? 0 : found.from_ns;
        phases->steady = (tare__phase){found.from_ns, found.to_ns, phases->steady.how};
        if (found.from_ns > 0 && !analysis->run.rotated_spans && !analysis->run.attached)
            phases->startup = (tare__phase){0, found.from_ns, phases->startup.how};
        if (found.shutdown)
            phases->shutdown = (tare__phase){found.to_ns, elapsed, phases->shutdown.how};
        phases->compile_ns = compile_time(analysis);
        fill_parts(&imported, &found, phases);
    }
    if (!status && (worth_a_part(&phases->startup, elapsed) || worth_a_part(&phases->shutdown, elapsed) ||
                    found.from_ns > LEAST_APART * elapsed))
        *steady = (window){found.from_ticks ? found.from_ticks : ticks_at(work, found.from_ns),
                           found.to_ticks ? found.to_ticks : ticks_at(work, found.to_ns), found.from_ns, found.to_ns};
    free(imported.rows);
    return tare__arena_failed(analysis->arena) ? TARE_E_MEMORY : status;
}
