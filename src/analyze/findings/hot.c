/* hot: adds up stack samples by line, within the spans, threads and states that a finding is about.
 * Owned by the thread that analyzes.
 * Must not know the rules. */
#include "hot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/tables/sampled.h"

#define OWN_CODE 0.05 /* with less own code than this, lines of libraries count as well */
#define INNER    0.5  /* of the line's time: in the function that is named */
#define MOST 1.25 /* of the time that a finding is about */

/* ---- spans --------------------------------------------------------------------------------------- */
const char *tare__open_innermost(tare__open_spans spans)
{
    return spans.of->paths[spans.path].name;
}

uint32_t tare__open_innermost_kind(tare__open_spans spans)
{
    return spans.of->paths[spans.path].kind;
}

uint32_t tare__open_outer(tare__open_spans spans)
{
    return spans.of->paths[spans.path].outer;
}

bool tare__open_kind(tare__open_spans spans, uint32_t kind)
{
    for (uint32_t at = spans.path; at; at = spans.of->paths[at].outer)
        if (spans.of->paths[at].kind == kind)
            return true;
    return false;
}

bool tare__open_name(tare__open_spans spans, uint32_t kind, const char *name)
{
    for (uint32_t at = spans.path; at; at = spans.of->paths[at].outer)
        if ((!kind || spans.of->paths[at].kind == kind) && strcmp(spans.of->paths[at].name, name) == 0)
            return true;
    return false;
}

bool tare__open_start(tare__open_spans spans, const char *start)
{
    for (uint32_t at = spans.path; at; at = spans.of->paths[at].outer)
        if (strncmp(spans.of->paths[at].name, start, strlen(start)) == 0)
            return true;
    return false;
}

bool tare__in_name(tare__open_spans spans, const void *name)
{
    return tare__open_name(spans, 0, name);
}

bool tare__in_phase(tare__open_spans spans, const void *name)
{
    return tare__open_name(spans, TARE_KIND_PHASE, name);
}

bool tare__in_start(tare__open_spans spans, const void *start)
{
    return tare__open_start(spans, start);
}

bool tare__directly_in(tare__open_spans spans, const void *name)
{
    return spans.path && strcmp(spans.of->paths[spans.path].name, name) == 0;
}

bool tare__is_leading(const tare__analysis *of, const tare__sampled_thread_row *thread, const void *context)
{
    (void)of;
    (void)context;
    return thread->leading;
}

tare__hot_question tare__of_phase(const char *name, const char *time)
{
    return (tare__hot_question){.within = tare__in_phase, .context = name, .time = time};
}

/* ---- sums ---------------------------------------------------------------------------------------- */
typedef struct sums {
    const tare__analysis *of;
    const tare__uses *uses;
    const tare__hot_question *question;
    bool *threads, *paths;        /* which ones count */
    double *own_ns, *line_ns;     /* by line: innermost own, innermost */
    double *function_ns;          /* by function: of the one of these that is used */
    double all_ns, in_own_ns;
    uint64_t samples;
} sums;

static double time_of(const sums *sums, const use *row, tare__state_times *of)
{
    *of = (tare__state_times){{0}};
    tare__analyze_sampled_times(&sums->uses->splits[row->thread], row->state, row->wall_ns, row->cpu_ns, of);
    if (!sums->question->states)
        return row->wall_ns;
    double ns = 0;
    for (uint32_t i = 0; i < TARE__STATE_COUNT; i++) {
        of->ns[i] = sums->question->states >> i & 1u ? of->ns[i] : 0;
        ns += of->ns[i];
    }
    return ns;
}

static bool counts(const sums *sums, const use *row)
{
    return sums->threads[row->thread] && sums->paths[row->path];
}

static void choose(sums *sums)
{
    const tare__hot_question *question = sums->question;
    for (size_t i = 0; i < sums->of->n_sampled_threads; i++)
        sums->threads[i] =
            !question->thread || question->thread(sums->of, &sums->of->sampled_threads[i], question->context);
    for (uint32_t i = 0; i < sums->uses->n_paths; i++)
        sums->paths[i] =
            !question->within || question->within((tare__open_spans){sums->uses, i}, question->context);
}

static void add_up(sums *sums)
{
    tare__state_times of;
    for (size_t i = 0; i < sums->uses->n; i++) {
        const use *row = &sums->uses->rows[i];
        if (!counts(sums, row) || (sums->question->own && row->own_line == TARE__NO_ROW))
            continue;
        double ns = time_of(sums, row, &of);
        sums->all_ns += ns;
        sums->samples += ns > 0 ? row->samples : 0;
        if (row->own_line != TARE__NO_ROW) {
            sums->own_ns[row->own_line] += ns;
            sums->in_own_ns += ns;
        }
        if (row->line != TARE__NO_ROW)
            sums->line_ns[row->line] += ns;
    }
}

/* ---- the line ------------------------------------------------------------------------------------ */
static uint32_t most_of(const double *ns, size_t n)
{
    uint32_t most = TARE__NO_ROW;
    for (uint32_t i = 0; i < n; i++)
        if (ns[i] > (most == TARE__NO_ROW ? 0 : ns[most]))
            most = i;
    return most;
}

/* States, innermost function and package of a line. False: out of memory. */
static bool describe(const sums *sums, uint32_t line, tare__hot *found)
{
    const tare__uses *uses = sums->uses;
    double *functions = calloc(uses->n_functions + 1, sizeof *functions);
    double *packages = calloc(uses->n_packages + 1, sizeof *packages);
    for (size_t i = 0; i < uses->n && functions && packages; i++) {
        const use *row = &uses->rows[i];
        tare__state_times of;
        if (!counts(sums, row) || (found->own ? row->own_line : row->line) != line)
            continue;
        double ns = time_of(sums, row, &of);
        for (uint32_t state = 0; state < TARE__STATE_COUNT; state++)
            found->of.ns[state] += of.ns[state];
        functions[row->inner] += ns;
        found->imports += row->imports ? ns / found->ns : 0;
        if (row->package != TARE__NO_ROW)
            packages[row->package] += ns;
    }
    bool fine = functions && packages;
    uint32_t inner = fine ? most_of(functions, uses->n_functions) : TARE__NO_ROW;
    uint32_t package = fine ? most_of(packages, uses->n_packages) : TARE__NO_ROW;
    if (inner != TARE__NO_ROW && inner != uses->lines[line].in && functions[inner] >= INNER * found->ns &&
        !uses->functions[inner].own) {
        found->inner = uses->functions[inner].name;
        found->inner_file = uses->functions[inner].file;
    }
    if (package != TARE__NO_ROW && packages[package] >= INNER * found->ns)
        found->package = uses->packages[package];
    free(functions);
    free(packages);
    for (uint32_t i = 0; i < TARE__STATE_COUNT; i++)
        found->state = found->of.ns[i] > found->of.ns[found->state] ? i : found->state;
    found->state_share = found->of.ns[found->state] / found->ns;
    return fine;
}

static uint32_t choose_line(sums *sums, const double *ns)
{
    const tare__uses *uses = sums->uses;
    for (size_t i = 0; i < uses->n_lines; i++)
        sums->function_ns[uses->lines[i].in] += ns[i];
    if (!sums->question->by_function)
        return most_of(ns, uses->n_lines);
    uint32_t function = most_of(sums->function_ns, uses->n_functions), most = TARE__NO_ROW;
    for (uint32_t i = 0; i < uses->n_lines; i++)
        if (uses->lines[i].in == function && ns[i] > (most == TARE__NO_ROW ? 0 : ns[most]))
            most = i;
    return most;
}

static bool find(sums *sums, tare__hot *found)
{
    choose(sums);
    add_up(sums);
    bool own = sums->in_own_ns >= OWN_CODE * sums->all_ns;
    const double *ns = own ? sums->own_ns : sums->line_ns;
    uint32_t line = choose_line(sums, ns);
    double least = (sums->question->by_function ? 0.1 : 1) * limit(LIMIT_HOT_LINE) * sums->all_ns;
    if (line == TARE__NO_ROW || (double)sums->samples < limit(LIMIT_HOT_SAMPLES) ||
        !(ns[line] >= least) || !sums->uses->lines[line].file)
        return false;
    *found = (tare__hot){.file = sums->uses->lines[line].file,
                         .function = sums->uses->lines[line].function,
                         .line = sums->uses->lines[line].line,
                         .own = own,
                         .samples = sums->samples,
                         .ns = ns[line],
                         .all_ns = sums->all_ns,
                         .share = ns[line] / sums->all_ns,
                         .function_share = sums->function_ns[sums->uses->lines[line].in] / sums->all_ns};
    return describe(sums, line, found);
}

bool tare__hot_line(const tare__analysis *of, const tare__hot_question *question, tare__hot *found)
{
    const tare__uses *uses = of->uses;
    if (!uses)
        return false;
    sums sums = {.of = of, .uses = uses, .question = question};
    sums.threads = calloc(of->n_sampled_threads + 1, sizeof *sums.threads);
    sums.paths = calloc(uses->n_paths + 1, sizeof *sums.paths);
    sums.own_ns = calloc(uses->n_lines + 1, sizeof *sums.own_ns);
    sums.line_ns = calloc(uses->n_lines + 1, sizeof *sums.line_ns);
    sums.function_ns = calloc(uses->n_functions + 1, sizeof *sums.function_ns);
    /* Without memory the finding has no line: the tables were made, and it stands without one. */
    bool known = sums.threads && sums.paths && sums.own_ns && sums.line_ns && sums.function_ns &&
                 find(&sums, found);
    free(sums.threads);
    free(sums.paths);
    free(sums.own_ns);
    free(sums.line_ns);
    free(sums.function_ns);
    return known;
}

/* ---- sentences ----------------------------------------------------------------------------------- */
tare__place_text tare__show_place(const tare__analysis *of, const char *file, uint32_t line)
{
    tare__place_text place;
    snprintf(place.text, sizeof place.text, "%.400s:%u", tare__source_name(of, file), (unsigned)line);
    return place;
}

/* Tables of steady state are freed before the findings are. NULL: none, or out of memory. */
static const char *keep_text(const findings *out, const char *text)
{
    return text ? tare__arena_copy(out->arena, text, strlen(text)) : NULL;
}

void tare__say_hot_line(findings *out, const tare__analysis *of, const tare__hot *hot, const char *time)
{
    char part[TARE__VALUE_BYTES + 8] = "", inner[300] = "", name[1024];
    if (hot->state_share < 0.9)
        snprintf(part, sizeof part, "%s of it ", percent(hot->state_share).text);
    if (hot->inner)
        snprintf(inner, sizeof inner, " in %s",
                 tare__show_name(tare__short_function(hot->inner, name, sizeof name)).text);
    tare__say_evidence(out, "By stack samples, %s of %s (%s of %s) is %s at %s, %s%s%s.", percent(hot->share).text,
                       time, tare__show_time(hot->ns).text, tare__show_time(hot->all_ns).text,
                       tare__show_name(hot->function).text, tare__show_place(of, hot->file, hot->line).text, part,
                       tare__wait_phrase(hot->state, hot->inner, hot->inner_file), inner);
    out->now->file = keep_text(out, hot->file);
    out->now->function = keep_text(out, hot->function);
    out->now->line = hot->line;
    out->now->line_share = hot->share;
    out->now->line_state = hot->state;
    out->now->inner = keep_text(out, hot->inner);
}

void tare__say_location(findings *out, const char *file, uint32_t line)
{
    if (out->now->file || !file || !line)
        return;
    out->now->file = keep_text(out, file);
    out->now->line = line;
}

bool tare__say_hot(findings *out, const tare__analysis *of, const tare__hot_question *question)
{
    tare__hot hot;
    if (!tare__hot_line(of, question, &hot))
        return false;
    if (question->most_ns > 0 && hot.all_ns > MOST * question->most_ns)
        return false;
    tare__say_hot_line(out, of, &hot, question->time);
    return true;
}
