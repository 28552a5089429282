/* figures: lists of figures: creation, joining, lookup, and alignment for a comparison.
 * Owned by the calling thread.
 * Must not know files, nor how figures are shown. */
#include "figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "stat/stat.h"

/* ---- creation -------------------------------------------------------------------------------------- */
tare__figures *tare__figures_new(const char *kind)
{
    tare__arena *arena;
    tare__figures *made = tare__arena_start(sizeof *made, &arena);
    if (!made)
        return NULL;
    *made = (tare__figures){.kind = tare__arena_copy(arena, kind, strlen(kind)), .arena = arena, .runs = 1,
                            .index = tare__intern_new()};
    if (made->kind && made->index)
        return made;
    tare__figures_free(made);
    return NULL;
}

void tare__figures_free(tare__figures *figures)
{
    if (!figures)
        return;
    free(figures->rows);
    free(figures->notes);
    tare__intern_free(figures->index);
    tare__arena_free(figures->arena);
}

static int fail(tare__figures *figures)
{
    figures->failed = true;
    return TARE_E_MEMORY;
}

const char *tare__figures_text(tare__figures *figures, const char *text)
{
    const char *copy = text ? tare__arena_copy(figures->arena, text, strlen(text)) : NULL;
    figures->failed |= text && !copy;
    return copy;
}

int tare__figures_note(tare__figures *figures, const char *sentence)
{
    const char *copy = tare__figures_text(figures, sentence);
    if (!copy || !tare__array_fit(&figures->notes, &figures->notes_room, figures->n_notes + 1, sizeof(char *)))
        return fail(figures);
    figures->notes[figures->n_notes++] = copy;
    return 0;
}

/* Means of `by` consecutive samples; an incomplete last group is dropped. */
static size_t coarsen(const double *from, size_t n, uint64_t by, double *into)
{
    size_t made = (size_t)(n / by);
    for (size_t i = 0; i < made; i++) {
        double sum = 0;
        for (size_t k = 0; k < by; k++)
            sum += from[i * by + k];
        into[i] = sum / (double)by;
    }
    return made;
}

static int find_median(const double *values, size_t n, double *median)
{
    double *sorted = malloc((n + 1) * sizeof *sorted);
    if (!sorted)
        return TARE_E_MEMORY;
    memcpy(sorted, values, n * sizeof *sorted);
    tare__sort(sorted, n);
    *median = tare__quantile_sorted(sorted, n, 0.5);
    free(sorted);
    return 0;
}

static int keep_samples(tare__figures *figures, tare__figure *row, const tare__figure *from)
{
    uint64_t by = 1;
    while (from->n_samples / by > TARE__FIGURE_SAMPLES_MAX)
        by *= 2;
    double *kept = tare__arena_alloc(figures->arena, (size_t)(from->n_samples / by) * sizeof *kept);
    if (!kept)
        return TARE_E_MEMORY;
    row->n_samples = coarsen(from->samples, from->n_samples, by, kept);
    row->samples = kept;
    row->each = (from->each ? from->each : 1) * by;
    return isnan(row->value) ? find_median(kept, row->n_samples, &row->value) : 0;
}

int tare__figures_add(tare__figures *figures, const tare__figure *figure)
{
    uint32_t at = tare__intern_add(figures->index, figure->name, strlen(figure->name));
    if (at == TARE__INTERN_NONE ||
        !tare__array_fit(&figures->rows, &figures->room, figures->n + 1, sizeof(tare__figure)))
        return fail(figures);
    if (at < figures->n)
        return 0;
    tare__figure row = *figure;
    row.name = tare__figures_text(figures, figure->name);
    row.unit = tare__figures_text(figures, figure->unit ? figure->unit : "");
    row.per = tare__figures_text(figures, figure->n_samples ? figure->per : NULL);
    row.samples = NULL;
    row.n_samples = 0;
    row.each = 0;
    if (!figures->failed && figure->n_samples && keep_samples(figures, &row, figure))
        fail(figures);
    figures->rows[figures->n++] = row;
    return figures->failed ? TARE_E_MEMORY : 0;
}

int tare__figures_add_named(tare__figures *figures, const tare__figure *figure, tare__text *name)
{
    tare__figure named = *figure;
    named.name = name->data;
    int status = name->failed ? fail(figures) : tare__figures_add(figures, &named);
    tare__text_free(name);
    return status;
}

void tare__figures_are_of_one_run(tare__figures *figures)
{
    for (size_t i = 0; i < figures->n; i++)
        if (figures->rows[i].per && strcmp(figures->rows[i].per, "run") == 0)
            figures->rows[i].per = "call";
}

const tare__figure *tare__figures_find(const tare__figures *figures, const char *name)
{
    uint32_t at = tare__intern_find(figures->index, name, strlen(name));
    return at < figures->n ? &figures->rows[at] : NULL;
}

const char *tare__better_word(tare__better better)
{
    return better == TARE__LOWER ? "lower" : better == TARE__HIGHER ? "higher" : "neither";
}

/* ---- machines -------------------------------------------------------------------------------------- */
static uint64_t mix(uint64_t hash, const char *text)
{
    for (; text && *text; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001B3); /* FNV-1a */
    return (hash ^ 0xFF) * UINT64_C(0x100000001B3);
}

int tare__figures_set_machine(tare__figures *figures, const char *host, const char *cpu_model, uint32_t cpus,
                              double memory_bytes, const char *kernel)
{
    char text[64];
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    if (!host && !cpu_model && !kernel)
        return 0;
    hash = mix(mix(mix(hash, host), cpu_model), kernel);
    /* Memory reserved by the kernel varies slightly between boots. */
    snprintf(text, sizeof text, "%" PRIu32 " %.0f", cpus, memory_bytes >= 0 ? memory_bytes / 0x1p30 : 0.0);
    hash = mix(hash, text);
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    figures->machine = tare__figures_text(figures, text);
    return figures->machine ? 0 : TARE_E_MEMORY;
}

/* ---- joining runs ------------------------------------------------------------------------------------ */
static bool is_new(const tare__figures *made, const tare__figure *figure)
{
    return tare__intern_find(made->index, figure->name, strlen(figure->name)) == TARE__INTERN_NONE;
}

static void join_figure(const tare__figures *const *runs, size_t n, const tare__figure *first, double *values,
                        tare__figures *into)
{
    tare__figure joined = *first;
    size_t found = 0;
    double total = 0;
    joined.n = 0;
    for (size_t i = 0; i < n; i++) {
        const tare__figure *row = tare__figures_find(runs[i], first->name);
        if (!row || isnan(row->value))
            continue;
        values[found++] = row->value;
        total += row->total;
        joined.n += row->n;
        joined.at_least |= row->at_least;
    }
    joined.per = "run";
    joined.each = 1;
    joined.value = NAN; /* becomes their median */
    joined.total = found ? total / (double)found : NAN; /* per run: the other side may have more or fewer runs */
    joined.samples = values;
    joined.n_samples = found;
    tare__figures_add(into, &joined);
}

static const char *common(const tare__figures *const *runs, size_t n, size_t offset)
{
    const char *first;
    memcpy(&first, (const char *)runs[0] + offset, sizeof first);
    for (size_t i = 1; i < n; i++) {
        const char *text;
        memcpy(&text, (const char *)runs[i] + offset, sizeof text);
        if (!text || !first || strcmp(text, first) != 0)
            return NULL;
    }
    return first;
}

static void join_texts(const tare__figures *const *runs, size_t n, tare__figures *into)
{
    static const size_t texts[] = {offsetof(tare__figures, command), offsetof(tare__figures, host),
                                   offsetof(tare__figures, cpu_model), offsetof(tare__figures, revision),
                                   offsetof(tare__figures, machine)};
    for (size_t i = 0; i < TARE__COUNT_OF(texts); i++) {
        const char *copy = tare__figures_text(into, common(runs, n, texts[i]));
        memcpy((char *)into + texts[i], &copy, sizeof copy);
    }
    bool known = false;
    for (size_t i = 0; i < n; i++)
        known |= runs[i]->machine != NULL;
    if (!into->machine && n > 1 && known)
        tare__figures_note(into, "its runs are of different machines");
}

static void join_all(const tare__figures *const *runs, size_t n, double *values, tare__figures *into)
{
    join_texts(runs, n, into);
    for (size_t i = 0; i < n; i++) {
        uint64_t first = runs[i]->first_ns ? runs[i]->first_ns : runs[i]->when_ns;
        into->first_ns = first && (!into->first_ns || first < into->first_ns) ? first : into->first_ns;
        into->when_ns = runs[i]->when_ns > into->when_ns ? runs[i]->when_ns : into->when_ns;
        for (size_t k = 0; k < runs[i]->n && !into->failed; k++)
            if (is_new(into, &runs[i]->rows[k]))
                join_figure(runs, n, &runs[i]->rows[k], values, into);
        for (size_t k = 0; k < runs[i]->n_notes; k++)
            tare__figures_note(into, runs[i]->notes[k]);
    }
    into->runs = n;
}

/* Joined models remain of kind "model", so that comparisons treat them as such. */
static const char *kind_of(const tare__figures *const *runs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(runs[i]->kind, "model") != 0)
            return "runs";
    return "model";
}

int tare__figures_join(const tare__figures *const *runs, size_t n, tare__figures **figures)
{
    tare__figures *made = tare__figures_new(n ? kind_of(runs, n) : "runs");
    double *values = malloc((n + 1) * sizeof *values);
    bool there = made && values && n;
    if (there)
        join_all(runs, n, values, made);
    free(values);
    return tare__figures_hand_over(made, !there, figures);
}

int tare__figures_hand_over(tare__figures *made, bool failed, tare__figures **figures)
{
    failed = failed || made->failed;
    if (failed)
        tare__figures_free(made);
    *figures = failed ? NULL : made;
    return failed ? TARE_E_MEMORY : 0;
}

/* ---- alignment --------------------------------------------------------------------------------------- */
static bool same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

bool tare__figures_align(const tare__figure *a, const tare__figure *b, double *base, size_t *n_base, double *head,
                         size_t *n_head)
{
    *n_base = *n_head = 0;
    if (!a->n_samples || !b->n_samples || !same_text(a->per, b->per) || !same_text(a->unit, b->unit))
        return false;
    uint64_t each = a->each > b->each ? a->each : b->each;
    if (!a->each || !b->each || each % a->each || each % b->each)
        return false;
    *n_base = coarsen(a->samples, a->n_samples, each / a->each, base);
    *n_head = coarsen(b->samples, b->n_samples, each / b->each, head);
    return *n_base && *n_head;
}
