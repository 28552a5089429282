/* step_course: composition of steps over the run, in a bounded number of bins.
 * Owned by the thread that analyzes.
 * Must not know how steps are recorded, nor how the course is drawn. */
#include <stdlib.h>
#include <string.h>

#include "analyze/inner.h"

#define COURSES_MAX 64u /* names of steps; each takes 29 KiB */

/* ---- parts of steps that are open ---------------------------------------------------------------- */
/* A stack: parts of an inner step are above those of the outer steps. */
typedef struct open_part {
    uint64_t ticks;
    uint32_t name;  /* canon */
    uint32_t depth; /* of its step */
    part_kind kind;
} open_part;

typedef struct open_parts {
    size_t n;
    open_part rows[4 * TARE__COURSE_PARTS];
} open_parts;

/* The row of a part; beyond the maximum per step, the row of all others; NULL: too many nested steps are open. */
static open_part *row_of(open_parts *parts, uint32_t depth, uint32_t name, part_kind kind)
{
    size_t of_step = 0;
    for (size_t i = parts->n; i && parts->rows[i - 1].depth == depth; i--, of_step++)
        if (parts->rows[i - 1].name == name && parts->rows[i - 1].kind == kind)
            return &parts->rows[i - 1];
    if (of_step >= TARE__COURSE_PARTS - PART_KINDS && name != CANON_OTHERS)
        return row_of(parts, depth, CANON_OTHERS, kind); /* one of each kind */
    if (parts->n == TARE__COUNT_OF(parts->rows))
        return NULL;
    parts->rows[parts->n] = (open_part){0, name, depth, kind};
    return &parts->rows[parts->n++];
}

bool tare__span_is_reported(const char *name)
{
    return strncmp(name, TARE__CHECKPOINT, strlen(TARE__CHECKPOINT)) == 0 ||
           strncmp(name, TARE__WORKERS, strlen(TARE__WORKERS)) == 0;
}

static void add_aside(const work *work, stream *stream, uint32_t name, uint64_t ticks)
{
    const char *text = work->names.rows[name].text;
    if (strcmp(text, "forward") == 0)
        stream->since_step.forward += ticks;
    else if (strcmp(text, "data") == 0 || tare__span_is_reported(text))
        stream->since_step.reported += ticks;
}

int tare__analyze_part(work *work, stream *stream, const frame *top, uint64_t now)
{
    const frame *step = top - 1;
    while (step > work->frames && work->names.rows[step->node->name].kind != TARE_KIND_STEP)
        step--;
    if (top[-1].node == top->node) /* a node that merges its children includes what is inside it */
        return 0;
    if (step == work->frames) {
        add_aside(work, stream, top->node->name, now - top->span.begin);
        return 0;
    }
    if (!stream->parts)
        stream->parts = calloc(1, sizeof *stream->parts);
    if (!stream->parts)
        return TARE_E_MEMORY;
    part_kind kind = top->node->flags & NODE_PHASE ? PART_PHASE : top - 1 == step ? PART_DIRECT : PART_WAIT;
    open_part *row = row_of(stream->parts, (uint32_t)(step - work->frames), top->node->name, kind);
    if (row)
        row->ticks += now - top->span.begin;
    return 0;
}

/* ---- the course ---------------------------------------------------------------------------------- */
static void halve(course *course)
{
    for (size_t i = 0; i < course->n; i += 2) {
        course_bin sum = course->bins[i];
        const course_bin *other = i + 1 < course->n ? &course->bins[i + 1] : NULL;
        if (other) {
            sum.steps += other->steps;
            sum.total += other->total;
            sum.from = other->from < sum.from ? other->from : sum.from;
            sum.to = other->to > sum.to ? other->to : sum.to;
            for (size_t part = 0; part < course->n_names; part++)
                sum.parts[part] += other->parts[part];
        }
        course->bins[i / 2] = sum;
    }
    course->n = (course->n + 1) / 2;
    course->each *= 2;
}

static course_bin *bin_for(course *course, const slow_step *step)
{
    bool full = course->n == 0 || course->bins[course->n - 1].steps >= course->each;
    if (full && course->n == TARE__COURSE_BINS) {
        halve(course);
        full = course->bins[course->n - 1].steps >= course->each;
    }
    if (full)
        course->bins[course->n++] = (course_bin){.from = step->begin};
    return &course->bins[course->n - 1];
}

/* The index of a part by name; the last indexes are for all names beyond the maximum. */
static size_t place_of(course *course, uint32_t name, part_kind kind)
{
    for (size_t i = 0; i < course->n_names; i++)
        if (course->names[i] == name && course->kinds[i] == kind)
            return i;
    if (course->n_names >= TARE__COURSE_PARTS - PART_KINDS && name != CANON_OTHERS)
        return place_of(course, CANON_OTHERS, kind);
    course->names[course->n_names] = name;
    course->kinds[course->n_names] = kind;
    return course->n_names++;
}

static course *course_of(work *work, steps *steps)
{
    if (!steps->course && work->n_courses < COURSES_MAX) {
        steps->course = calloc(1, sizeof *steps->course);
        if (steps->course)
            *steps->course = (course){.each = 1};
        work->n_courses += steps->course != NULL;
    }
    return steps->course;
}

int tare__analyze_take_parts(work *work, stream *stream, uint32_t depth, steps *steps, const slow_step *step)
{
    open_parts *parts = stream->parts;
    if (work->names.rows[work->frames[depth].node->name].kind != TARE_KIND_STEP)
        return 0;
    course *course = steps ? course_of(work, steps) : NULL;
    if (steps && !course && work->n_courses < COURSES_MAX)
        return TARE_E_MEMORY;
    course_bin *bin = course ? bin_for(course, step) : NULL;
    if (bin) {
        uint64_t end = step->begin + step->duration;
        bin->steps++;
        bin->total += step->duration;
        bin->from = step->begin < bin->from ? step->begin : bin->from;
        bin->to = end > bin->to ? end : bin->to;
    }
    /* Deeper parts belong to steps whose end was lost. */
    for (; parts && parts->n && parts->rows[parts->n - 1].depth >= depth; parts->n--) {
        const open_part *row = &parts->rows[parts->n - 1];
        if (steps && row->depth == depth && row->kind == PART_PHASE &&
            strcmp(work->names.rows[row->name].text, "backward") == 0)
            stream->backward_ticks += row->ticks;
        if (!steps && row->depth == depth)
            add_aside(work, stream, row->name, row->ticks); /* the step was retracted */
        if (bin && row->depth == depth)
            bin->parts[place_of(course, row->name, row->kind)] += row->ticks;
    }
    return 0;
}

/* ---- table --------------------------------------------------------------------------------------- */
typedef struct chosen {
    uint64_t total;
    size_t at; /* in the course */
} chosen;

TARE__ORDER(by_total_descending, chosen, TARE__FALLING(total) TARE__RISING(at))

/* Phases if there are any, with waits for a GPU outside of them: the GPU then runs the work launched by the phases.
 * Else the spans directly inside. */
static size_t choose(const work *work, const course *course, bool phases, chosen *to)
{
    size_t n = 0;
    for (size_t i = 0; i < course->n_names; i++) {
        part_kind kind = course->kinds[i];
        bool waits = strncmp(work->names.rows[course->names[i]].text, TARE__SYNC, strlen(TARE__SYNC)) == 0;
        if (phases ? kind == PART_DIRECT && !waits : kind == PART_WAIT)
            continue;
        to[n] = (chosen){0, i};
        for (size_t bin = 0; bin < course->n; bin++)
            to[n].total += course->bins[bin].parts[i];
        n++;
    }
    qsort(to, n, sizeof *to, by_total_descending);
    return n;
}

static int fill_parts(const work *work, const course *course, const chosen *chosen, size_t n,
                      tare__arena *arena, tare__step_course *to)
{
    const char **parts = tare__arena_alloc(arena, (n + 1) * sizeof *parts);
    if (!parts)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++) {
        uint32_t name = course->names[chosen[i].at];
        parts[i] = name == CANON_OTHERS ? NULL : copied(arena, work->names.rows[name].text);
    }
    to->parts = parts;
    to->n_parts = n;
    return 0;
}

static int fill_bins(const work *work, const course *course, const chosen *chosen, size_t n,
                     tare__arena *arena, tare__step_course *to)
{
    double tick_ns = tare__trace_tick_ns(work->trace);
    tare__course_bin *bins = tare__arena_alloc(arena, (course->n + 1) * sizeof *bins);
    double *parts = tare__arena_alloc(arena, (course->n * n + 1) * sizeof *parts);
    if (!bins || !parts)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < course->n; i++, parts += n) {
        const course_bin *from = &course->bins[i];
        bins[i] =
            (tare__course_bin){from->steps, tare__trace_ns(work->trace, from->from),
                               tare__trace_ns(work->trace, from->to), (double)from->total * tick_ns, parts};
        for (size_t part = 0; part < n; part++)
            parts[part] = (double)from->parts[chosen[part].at] * tick_ns;
    }
    to->bins = bins;
    to->n_bins = course->n;
    return 0;
}

int tare__analyze_step_course(const work *work, const steps *steps, tare__arena *arena, tare__step_row *row)
{
    const course *course = steps->course;
    chosen chosen[TARE__COURSE_PARTS];
    if (!course)
        return 0;
    for (size_t i = 0; i < course->n_names; i++)
        row->course.phases |= course->kinds[i] == PART_PHASE;
    size_t n = choose(work, course, row->course.phases, chosen);
    int status = fill_parts(work, course, chosen, n, arena, &row->course);
    return status ? status : fill_bins(work, course, chosen, n, arena, &row->course);
}
