/* stacks_within: the table of lines by span: which lines take the time inside spans of a name.
 * Owned by the thread that analyzes.
 * Must not know how samples and spans are joined. */
#include <stdlib.h>
#include <string.h>

#include "sampled.h"

#define SPANS_MAX 200u /* with most sampled time */
#define LINES_OF  10u  /* of each */
#define OWN_CODE  0.05 /* with less own code than this, lines of libraries are listed */

typedef struct part { /* of the time inside spans of a name: of a line, in one innermost function */
    uint32_t span, line, inner;
    bool own;
    uint64_t samples;
    double wall_ns;
    tare__state_times of;
} part;

typedef struct spans {
    const tare__uses *uses;
    part *parts;
    size_t n, room;
    tare__index index;
    uint32_t *first;  /* by path: the first path with its name and kind */
    uint32_t *seen;   /* by path: use that was added to it last, + 1 */
    double *all_ns, *own_ns; /* by first path */
} spans;

static bool is_listed(uint32_t kind)
{
    return kind == TARE_KIND_SPAN || kind == TARE_KIND_STEP || kind == TARE_KIND_EPOCH || kind == TARE_KIND_PHASE;
}

TARE__SAME(is_part, part, TARE__EQUAL(span) && TARE__EQUAL(line) && TARE__EQUAL(inner) && TARE__EQUAL(own))

static bool add_part(spans *to, const part *more)
{
    uint32_t hash = (uint32_t)tare__hash_mix(tare__hash_mix(more->span, more->line), more->inner * 2 + more->own);
    uint32_t row = tare__index_find(&to->index, hash, is_part, to->parts, more);
    if (row == TARE__INDEX_NONE) {
        row = (uint32_t)to->n;
        if (!tare__array_fit(&to->parts, &to->room, to->n + 1, sizeof *to->parts) ||
            !tare__index_add(&to->index, hash, row))
            return false;
        to->parts[to->n++] = (part){.span = more->span, .line = more->line, .inner = more->inner, .own = more->own};
    }
    to->parts[row].samples += more->samples;
    to->parts[row].wall_ns += more->wall_ns;
    for (uint32_t i = 0; i < TARE__STATE_COUNT; i++)
        to->parts[row].of.ns[i] += more->of.ns[i];
    return true;
}

/* Time counts once in spans of a name that are open twice. */
static bool add_use(spans *to, uint32_t number)
{
    const use *row = &to->uses->rows[number];
    part more = {.inner = row->inner, .samples = row->samples, .wall_ns = row->wall_ns};
    tare__analyze_sampled_times(&to->uses->splits[row->thread], row->state, row->wall_ns, row->cpu_ns,
                                &more.of);
    bool fine = true;
    for (uint32_t path = row->path; path && fine; path = to->uses->paths[path].outer) {
        more.span = to->first[path];
        if (!is_listed(to->uses->paths[path].kind) || to->seen[more.span] == number + 1)
            continue;
        to->seen[more.span] = number + 1;
        to->all_ns[more.span] += row->wall_ns;
        more.own = true;
        more.line = row->own_line;
        if (row->own_line != TARE__NO_ROW) {
            to->own_ns[more.span] += row->wall_ns;
            fine = add_part(to, &more);
        }
        more.own = false;
        more.line = row->line;
        fine = fine && (row->line == TARE__NO_ROW || add_part(to, &more));
    }
    return fine;
}

static bool find_names(spans *to)
{
    tare__intern *names = tare__intern_new();
    uint32_t *first = calloc(to->uses->n_paths, sizeof *first);
    bool fine = names && first;
    for (uint32_t i = 1; i < to->uses->n_paths && fine; i++) {
        const use_path *path = &to->uses->paths[i];
        uint32_t known = tare__intern_count(names), id = tare__intern_add(names, path->name, strlen(path->name));
        fine = id != TARE__INTERN_NONE;
        if (fine && id == known)
            first[id] = i;
        to->first[i] = fine ? first[id] : 0;
    }
    tare__intern_free(names);
    free(first);
    return fine;
}

/* ---- rows --------------------------------------------------------------------------------------------------- */
TARE__ORDER(by_line, part, TARE__RISING(span) TARE__RISING(line) TARE__FALLING(wall_ns) TARE__RISING(inner))

/* Largest spans first, then their largest lines. */
TARE__ORDER(by_time, tare__span_line_row, TARE__FALLING(span_ns) TARE__RISING(path) TARE__FALLING(ns)
            TARE__BY_TEXT_IF_ANY(file) TARE__RISING(line))

static tare__span_line_row row_of(const spans *from, const part *part)
{
    const use_line *line = &from->uses->lines[part->line];
    return (tare__span_line_row){.span = from->uses->paths[part->span].name,
                                 .path = part->span,
                                 .kind = from->uses->paths[part->span].kind,
                                 .file = line->file,
                                 .line = line->line,
                                 .function = line->function,
                                 .own = part->own,
                                 .span_ns = from->all_ns[part->span]};
}

/* Parts of a line follow each other, the innermost function with most of its time first. */
static size_t make_rows(const spans *from, tare__span_line_row *rows)
{
    size_t n = 0;
    for (size_t i = 0; i < from->n; i++) {
        const part *part = &from->parts[i];
        bool own = from->own_ns[part->span] >= OWN_CODE * from->all_ns[part->span];
        if (part->own != own)
            continue;
        bool same = n > 0 && rows[n - 1].path == part->span && rows[n - 1].number == part->line;
        if (!same) {
            const use_function *inner = &from->uses->functions[part->inner];
            rows[n] = row_of(from, part);
            rows[n].number = part->line;
            rows[n++].inner = own && !inner->own ? inner->name : NULL;
        }
        tare__span_line_row *row = &rows[n - 1];
        row->samples += part->samples;
        row->ns += part->wall_ns;
        for (uint32_t k = 0; k < TARE__STATE_COUNT; k++)
            row->of.ns[k] += part->of.ns[k];
    }
    return n;
}

static size_t cut_rows(tare__span_line_row *rows, size_t n)
{
    size_t kept = 0, names = 0, lines = 0;
    for (size_t i = 0; i < n; i++) {
        bool first = !i || rows[i].path != rows[i - 1].path;
        names += first;
        lines = first ? 1 : lines + 1;
        rows[i].share = rows[i].ns / rows[i].span_ns;
        if (names <= SPANS_MAX && lines <= LINES_OF)
            rows[kept++] = rows[i];
    }
    return kept;
}

static int finish(spans *from, tare__analysis *analysis)
{
    tare__span_line_row *rows = calloc(from->n + 1, sizeof *rows);
    if (!rows)
        return TARE_E_MEMORY;
    if (from->n)
        qsort(from->parts, from->n, sizeof *from->parts, by_line);
    size_t n = make_rows(from, rows), kept = 0;
    if (n)
        qsort(rows, n, sizeof *rows, by_time);
    kept = cut_rows(rows, n);
    tare__span_line_row *copy = tare__arena_alloc(analysis->arena, (kept + 1) * sizeof *copy);
    if (copy && kept)
        memcpy(copy, rows, kept * sizeof *copy);
    free(rows);
    analysis->span_lines = copy;
    analysis->n_span_lines = copy ? kept : 0;
    return copy ? 0 : TARE_E_MEMORY;
}

int tare__analyze_span_lines(tare__analysis *analysis)
{
    spans to = {.uses = analysis->uses};
    size_t n = to.uses->n_paths;
    if (n < 2)
        return 0; /* no spans */
    to.first = calloc(n, sizeof *to.first);
    to.seen = calloc(n, sizeof *to.seen);
    to.all_ns = calloc(n, sizeof *to.all_ns);
    to.own_ns = calloc(n, sizeof *to.own_ns);
    bool fine = to.first && to.seen && to.all_ns && to.own_ns && find_names(&to);
    for (uint32_t i = 0; i < to.uses->n && fine; i++)
        fine = add_use(&to, i);
    int status = fine ? finish(&to, analysis) : TARE_E_MEMORY;
    tare__index_free(&to.index);
    free(to.parts);
    free(to.first);
    free(to.seen);
    free(to.all_ns);
    free(to.own_ns);
    return status;
}
