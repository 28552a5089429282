/* compare: matches figures by name, tests each pair, corrects for multiple testing, lists figures on one side only.
 * Owned by the calling thread.
 * Must not know how a comparison is shown. */
#include "compare.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "stat/stat.h"

#define CONFIDENCE   0.95
/* ---- words ------------------------------------------------------------------------------------ */
const char *tare__section_word(tare__section section)
{
    static const char *const words[] = {"whole", "spans", "layers", "operators", "kernels", "counters", "metrics"};
    return words[section];
}

const char *tare__effect_word(double cliffs_delta)
{
    double size = fabs(cliffs_delta);
    if (isnan(size))
        return NULL;
    return size < 0.147 ? "negligible" : size < 0.33 ? "small" : size < 0.474 ? "medium" : "large";
}

tare__section tare__section_of(const char *name, const char **rest)
{
    static const struct {
        const char *start;
        tare__section section;
        bool cut; /* remove the prefix: the section says it already */
    } starts[] = {
        {"span:", TARE__SECTION_SPANS, true},       {"task:", TARE__SECTION_SPANS, false},
        {"request:", TARE__SECTION_SPANS, false},   {"track:", TARE__SECTION_SPANS, false},
        {"aggregate:", TARE__SECTION_SPANS, false}, {"layer:", TARE__SECTION_LAYERS, true},
        {"operator:", TARE__SECTION_OPERATORS, true}, {"kernel:", TARE__SECTION_KERNELS, true},
        {"counter:", TARE__SECTION_COUNTERS, true}, {"metric:", TARE__SECTION_METRICS, true},
    };
    *rest = name;
    for (size_t i = 0; i < TARE__COUNT_OF(starts); i++) {
        size_t length = strlen(starts[i].start);
        if (strncmp(name, starts[i].start, length) != 0)
            continue;
        *rest = starts[i].cut ? name + length : name;
        return starts[i].section;
    }
    return TARE__SECTION_WHOLE;
}

/* ---- one figure ------------------------------------------------------------------------------- */
/* A figure inside a step costs its change in every step; for others, the number of calls matters as well. */
static double cost_of(const tare__figure *base, const tare__figure *head)
{
    if (base->per && strcmp(base->per, "step") == 0)
        return (head->value - base->value) * (double)base->n_samples * (double)base->each;
    return head->total - base->total;
}

static bool is_of_runs(const tare__figure *figure)
{
    return figure->per && strcmp(figure->per, "run") == 0;
}

/* Position of a single value among several: the share of these below it minus the share above. */
static double place_among(const tare__figure *many, double one)
{
    double below = 0, above = 0;
    for (size_t i = 0; i < many->n_samples; i++) {
        below += many->samples[i] < one;
        above += many->samples[i] > one;
    }
    return many->n_samples ? (below - above) / (double)many->n_samples : NAN;
}

/* 0 or TARE_E_MEMORY. */
static int compare_figure(tare__compared *row, const tare__comparison *made, const tare__compare_options *options,
                          double *scratch)
{
    const tare__figure *base = row->base, *head = row->head;
    tare__allowance gate = tare__decide_gate(base, head, made->min_change, tare__decide_load(made->base, made->head));
    row->section = tare__section_of(base->name, &row->name);
    row->cost = cost_of(base, head);
    if (options->decided && strcmp(base->name, options->decided) == 0) {
        row->decision = *options->decision;
        return 0;
    }
    /* A round without a value on one side leaves no gap in its samples: pairing would combine different rounds. */
    bool paired = options->paired && base->n_samples == made->base->runs && head->n_samples == made->head->runs;
    row->decision = tare__decide_figures(base, head, paired, &gate, scratch);
    if (tare__decide_ran_out(&row->decision, scratch))
        return TARE_E_MEMORY;
    if (row->decision.why == TARE__WHY_ONE_AND_MANY) {
        row->decision.effect = is_of_runs(base) ? place_among(base, head->value) : -place_among(head, base->value);
        row->decision.n_base = is_of_runs(base) ? base->n_samples : 1;
        row->decision.n_head = is_of_runs(head) ? head->n_samples : 1;
    }
    return 0;
}

/* Thousands of spans must not obscure the main figures: figures form families, and each family of parts is corrected
 * separately for multiple testing. */
static int adjust(tare__comparison *made, const tare__compare_options *options)
{
    tare__decision **family = malloc((made->n + 1) * sizeof(tare__decision *));
    int status = family ? 0 : TARE_E_MEMORY;
    for (int i = 1; i < TARE__FAMILIES && !status; i++) {
        size_t n = 0;
        for (size_t k = 0; k < made->n; k++)
            if (tare__decide_family(made->rows[k].base->name) == i &&
                !(options->decided && strcmp(made->rows[k].base->name, options->decided) == 0))
                family[n++] = &made->rows[k].decision;
        status = tare__decide_adjust(family, n);
    }
    free(family);
    return status;
}

static void count_verdict(tare__comparison *made, tare__verdict verdict)
{
    made->better += verdict == TARE__VERDICT_BETTER;
    made->worse += verdict == TARE__VERDICT_WORSE;
    made->different += verdict == TARE__VERDICT_DIFFERENT;
    made->inconclusive += verdict == TARE__VERDICT_INCONCLUSIVE;
}

/* ---- order ------------------------------------------------------------------------------------ */
static double size_of(double value)
{
    return isnan(value) ? -1 : fabs(value);
}

/* Costs are comparable only within one unit; sections with several units keep the order of the base figures. */
static int by_section(const void *a, const void *b)
{
    const tare__compared *left = a, *right = b;
    if (left->section != right->section)
        return left->section < right->section ? -1 : 1;
    if (left->section == TARE__SECTION_WHOLE || left->section >= TARE__SECTION_COUNTERS)
        return left->base < right->base ? -1 : left->base > right->base;
    double of_left = size_of(left->cost), of_right = size_of(right->cost);
    if (of_left != of_right)
        return of_left < of_right ? 1 : -1;
    return strcmp(left->name, right->name);
}

#define SIZE_OF_TOTAL(row) size_of((row)->total)
TARE__ORDER_OF_POINTERS(by_total, tare__figure, TARE__FALLING_BY(SIZE_OF_TOTAL) TARE__BY_TEXT(name))

/* ---- entry point ------------------------------------------------------------------------------ */
static int match(tare__comparison *made, const tare__compare_options *options)
{
    const tare__figures *base = made->base, *head = made->head;
    double *scratch = malloc(2 * TARE__FIGURE_SAMPLES_MAX * sizeof *scratch);
    made->rows = calloc(base->n + 1, sizeof *made->rows);
    made->only_base = calloc(base->n + 1, sizeof(tare__figure *));
    made->only_head = calloc(head->n + 1, sizeof(tare__figure *));
    int status = scratch && made->rows && made->only_base && made->only_head ? 0 : TARE_E_MEMORY;
    for (size_t i = 0; i < base->n && !status; i++) {
        const tare__figure *other = tare__figures_find(head, base->rows[i].name);
        if (!other) {
            made->only_base[made->n_only_base++] = &base->rows[i];
            continue;
        }
        tare__compared *row = &made->rows[made->n++];
        row->base = &base->rows[i];
        row->head = other;
        status = compare_figure(row, made, options, scratch);
    }
    for (size_t i = 0; i < head->n && !status; i++)
        if (!tare__figures_find(base, head->rows[i].name))
            made->only_head[made->n_only_head++] = &head->rows[i];
    free(scratch);
    return status ? status : adjust(made, options);
}

static int fill(tare__comparison *made, const tare__compare_options *options)
{
    int status = match(made, options);
    if (status)
        return status;
    for (size_t i = 0; i < made->n; i++)
        count_verdict(made, made->rows[i].decision.verdict);
    qsort(made->rows, made->n, sizeof *made->rows, by_section);
    qsort(made->only_base, made->n_only_base, sizeof *made->only_base, by_total);
    qsort(made->only_head, made->n_only_head, sizeof *made->only_head, by_total);
    return tare__compare_warn(made, options->paired); /* when paired, two commands were compared on purpose */
}

int tare__compare(const tare__figures *base, const tare__figures *head, const tare__compare_options *options,
                  tare__comparison **comparison)
{
    tare__compare_options requested = options ? *options : (tare__compare_options){.min_change = NAN};
    if (isnan(requested.min_change))
        requested.min_change = requested.paired ? TARE__GATE_SHARE_TURN : tare__decide_share(base, head);
    tare__arena *arena;
    tare__comparison *made = tare__arena_start(sizeof *made, &arena);
    *comparison = NULL;
    if (!made)
        return TARE_E_MEMORY;
    *made = (tare__comparison){
        .base = base, .head = head, .confidence = CONFIDENCE, .min_change = requested.min_change, .arena = arena};
    int status = fill(made, &requested);
    if (status)
        tare__comparison_free(made);
    else
        *comparison = made;
    return status;
}

void tare__comparison_free(tare__comparison *comparison)
{
    if (!comparison)
        return;
    free(comparison->rows);
    free(comparison->only_base);
    free(comparison->only_head);
    free(comparison->warnings);
    tare__arena_free(comparison->arena);
}
