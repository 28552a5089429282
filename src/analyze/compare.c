/* compare: matches figures by name, tests each pair, corrects for testing many, says what is only in one of them.
 * Owned by the calling thread.
 * Must not know how a comparison is shown. */
#include "compare.h"

#include <stdlib.h>
#include <string.h>

#include "analyze.h"
#include "stat/stat.h"

#define CONFIDENCE   0.95
#define LEAST_ONE    0.05 /* runs differ by so much that have nothing else to do … */
#define LEAST_MANY   0.01 /* … and where it was measured how much, this is small enough to leave alone */
#define VALUES_FEW   4u   /* with fewer a side no p can be below 0.05 */
#define BLOCKS       20u  /* of one run: neighbours are alike, so that medians of blocks are tested */
#define EFFECT_LEAST 0.33 /* of figures without a ratio: from "medium" on */

/* ---- words ------------------------------------------------------------------------------------ */
const char *tare__verdict_word(tare__verdict verdict)
{
    static const char *const words[] = {"same", "better", "worse", "different", "unknown"};
    return words[verdict];
}

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
        bool cut; /* the section says it */
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
static double median_of(double *values, size_t n)
{
    tare__sort(values, n);
    return tare__quantile_sorted(values, n, 0.5);
}

/* Samples of one run follow each other: a slow second slows them all, and a thousand of them say little more than a
 * few. Their medians by blocks are as good as independent. */
static size_t thin(double *values, size_t n)
{
    if (n <= BLOCKS)
        return n;
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t from = n * i / BLOCKS, to = n * (i + 1) / BLOCKS;
        values[i] = median_of(values + from, to - from); /* `from` is never below i */
    }
    return BLOCKS;
}

static bool to_logs(const double *values, size_t n, double *logs)
{
    for (size_t i = 0; i < n; i++) {
        if (!(values[i] > 0))
            return false;
        logs[i] = log(values[i]);
    }
    return true;
}

typedef struct scratch {
    size_t pairs; /* runs a side that belong together, one by one; 0: none do */
    double base[TARE__FIGURE_SAMPLES_MAX], head[TARE__FIGURE_SAMPLES_MAX];
    double log_base[TARE__FIGURE_SAMPLES_MAX], log_head[TARE__FIGURE_SAMPLES_MAX];
} scratch;

static void find_ratio(const scratch *values, tare__compared *row, const tare__compare_options *options)
{
    tare__estimate ratio = {NAN, NAN, NAN, options->confidence, 0};
    if (row->n_base == values->pairs && row->n_head == values->pairs) {
        ratio = tare__paired_ratio(values->base, values->head, row->n_base, options->confidence);
    } else {
        /* Hodges and Lehmann's shift of logarithms: its interval belongs to the test whose p stands beside it. */
        tare__estimate shift =
            tare__shift(values->log_base, row->n_base, values->log_head, row->n_head, options->confidence);
        ratio.value = exp(shift.value);
        ratio.low = exp(shift.low);
        ratio.high = exp(shift.high);
    }
    row->change = ratio.value - 1;
    row->low = ratio.low - 1;
    row->high = ratio.high - 1;
}

static void test_samples(scratch *values, tare__compared *row, const tare__compare_options *options)
{
    double sorted[TARE__FIGURE_SAMPLES_MAX];
    memcpy(sorted, values->base, row->n_base * sizeof *sorted);
    row->base_value = median_of(sorted, row->n_base);
    memcpy(sorted, values->head, row->n_head * sizeof *sorted);
    row->head_value = median_of(sorted, row->n_head);
    tare__rank_test test = tare__mann_whitney(values->base, row->n_base, values->head, row->n_head);
    row->p = test.p;
    row->effect = test.cliffs_delta;
    if (to_logs(values->base, row->n_base, values->log_base) && to_logs(values->head, row->n_head, values->log_head))
        find_ratio(values, row, options);
}

static void change_of_values(tare__compared *row)
{
    double base = row->base->value, head = row->head->value;
    row->change = base > 0 && head >= 0 ? head / base - 1 : NAN;
}

/* What is in a step costs in every step; what is not, by how often it ran as well. */
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

static const char *why_not(const tare__figure *base, const tare__figure *head)
{
    if (is_of_runs(base) != is_of_runs(head))
        return "one run against several: what varies inside a run cannot stand for what varies between runs";
    return base->n_samples && head->n_samples ? "counted in different ways: by calls in one, by steps in the other"
                                              : "one value a side";
}

/* Where the one lies among the others: how many of these are below it, less how many above, seen from base. */
static double place_among(const tare__figure *many, double one)
{
    double below = 0, above = 0;
    for (size_t i = 0; i < many->n_samples; i++) {
        below += many->samples[i] < one;
        above += many->samples[i] > one;
    }
    return many->n_samples ? (below - above) / (double)many->n_samples : NAN;
}

static void compare_samples(scratch *values, tare__compared *row, const tare__compare_options *options)
{
    const tare__figure *base = row->base, *head = row->head;
    if (!tare__figures_align(base, head, values->base, &row->n_base, values->head, &row->n_head)) {
        row->n_base = is_of_runs(base) ? base->n_samples : 1;
        row->n_head = is_of_runs(head) ? head->n_samples : 1;
        row->why = why_not(base, head);
        if (is_of_runs(base) && !is_of_runs(head))
            row->effect = place_among(base, head->value);
        else if (is_of_runs(head) && !is_of_runs(base))
            row->effect = -place_among(head, base->value);
        return;
    }
    if (!is_of_runs(base)) {
        row->n_base = thin(values->base, row->n_base);
        row->n_head = thin(values->head, row->n_head);
    }
    if (row->n_base < VALUES_FEW || row->n_head < VALUES_FEW)
        row->why = "too few values";
    else
        test_samples(values, row, options);
}

static void compare_figure(scratch *values, tare__compared *row, const tare__compare_options *options)
{
    row->section = tare__section_of(row->base->name, &row->name);
    row->change = row->low = row->high = row->p = row->adjusted = row->effect = NAN;
    row->base_value = row->base->value;
    row->head_value = row->head->value;
    row->cost = cost_of(row->base, row->head);
    row->verdict = TARE__VERDICT_UNKNOWN;
    if (strcmp(row->base->unit, row->head->unit) != 0) {
        row->why = "in different units";
        return;
    }
    if (isnan(row->base->value) || isnan(row->head->value)) {
        row->why = "absent";
        return;
    }
    if (!(row->base->exact && row->head->exact))
        compare_samples(values, row, options);
    if (isnan(row->change))
        change_of_values(row);
}

/* ---- many figures: of twenty that did not change, one has p below 0.05 ------------------------ */
static int by_p(const void *a, const void *b)
{
    const tare__compared *left = *(tare__compared *const *)a, *right = *(tare__compared *const *)b;
    return left->p < right->p ? -1 : left->p > right->p;
}

/* What a user looks at first must not drown in a thousand spans: three families, each corrected by itself. */
static int family_of(tare__section section)
{
    return section == TARE__SECTION_WHOLE ? 0 : section < TARE__SECTION_COUNTERS ? 1 : 2;
}

static int adjust(tare__comparison *made)
{
    tare__compared **tested = malloc((made->n + 1) * sizeof(tare__compared *));
    if (!tested)
        return TARE_E_MEMORY;
    for (int family = 0; family < 3; family++) {
        size_t n = 0;
        for (size_t i = 0; i < made->n; i++)
            if (!isnan(made->rows[i].p) && family_of(made->rows[i].section) == family)
                tested[n++] = &made->rows[i];
        qsort(tested, n, sizeof *tested, by_p);
        double least = 1;
        for (size_t rank = n; rank > 0; rank--) {
            double adjusted = tested[rank - 1]->p * (double)n / (double)rank;
            least = adjusted < least ? adjusted : least;
            tested[rank - 1]->adjusted = least;
        }
    }
    free(tested);
    return 0;
}

static bool is_difference(const tare__compared *row, const tare__comparison *made)
{
    if (!(row->adjusted < 1 - made->confidence))
        return false;
    if (isnan(row->change)) /* no ratio: values of 0 or below */
        return fabs(row->effect) >= EFFECT_LEAST;
    bool beyond = isnan(row->low) || isnan(row->high) || row->low > 0 || row->high < 0;
    return beyond && fabs(row->change) >= made->least;
}

static tare__verdict direction_of(const tare__compared *row)
{
    double by = isnan(row->change) || row->change == 0 ? row->head->value - row->base->value : row->change;
    tare__better better = row->base->better;
    if (better == TARE__NEITHER)
        return TARE__VERDICT_DIFFERENT;
    return (by < 0) == (better == TARE__LOWER) ? TARE__VERDICT_BETTER : TARE__VERDICT_WORSE;
}

static void judge(tare__compared *row, const tare__comparison *made)
{
    bool comparable =
        strcmp(row->base->unit, row->head->unit) == 0 && !isnan(row->base->value) && !isnan(row->head->value);
    if (comparable && row->base->exact && row->head->exact)
        row->verdict = row->base->value == row->head->value ? TARE__VERDICT_SAME : direction_of(row);
    else if (!isnan(row->p))
        row->verdict = is_difference(row, made) ? direction_of(row) : TARE__VERDICT_SAME;
}

static void count_verdict(tare__comparison *made, tare__verdict verdict)
{
    made->better += verdict == TARE__VERDICT_BETTER;
    made->worse += verdict == TARE__VERDICT_WORSE;
    made->different += verdict == TARE__VERDICT_DIFFERENT;
    made->unknown += verdict == TARE__VERDICT_UNKNOWN;
}

/* ---- order ------------------------------------------------------------------------------------ */
static double size_of(double value)
{
    return isnan(value) ? -1 : fabs(value);
}

/* Costs of one unit can be put in order; the units of the whole are put in order of the figures themselves. */
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

static int by_total(const void *a, const void *b)
{
    const tare__figure *left = *(const tare__figure *const *)a, *right = *(const tare__figure *const *)b;
    double of_left = size_of(left->total), of_right = size_of(right->total);
    if (of_left != of_right)
        return of_left < of_right ? 1 : -1;
    return strcmp(left->name, right->name);
}

/* ---- all of it -------------------------------------------------------------------------------- */
static int match(tare__comparison *made, const tare__compare_options *options)
{
    const tare__figures *base = made->base, *head = made->head;
    scratch *values = malloc(sizeof *values);
    made->rows = calloc(base->n + 1, sizeof *made->rows);
    made->only_base = calloc(base->n + 1, sizeof(tare__figure *));
    made->only_head = calloc(head->n + 1, sizeof(tare__figure *));
    if (values)
        values->pairs = options->paired && base->runs == head->runs ? (size_t)base->runs : 0;
    int status = values && made->rows && made->only_base && made->only_head ? 0 : TARE_E_MEMORY;
    for (size_t i = 0; i < base->n && !status; i++) {
        const tare__figure *other = tare__figures_find(head, base->rows[i].name);
        if (!other) {
            made->only_base[made->n_only_base++] = &base->rows[i];
            continue;
        }
        tare__compared *row = &made->rows[made->n++];
        row->base = &base->rows[i];
        row->head = other;
        compare_figure(values, row, options);
    }
    for (size_t i = 0; i < head->n && !status; i++)
        if (!tare__figures_find(base, head->rows[i].name))
            made->only_head[made->n_only_head++] = &head->rows[i];
    free(values);
    return status ? status : adjust(made);
}

static int fill(tare__comparison *made, const tare__compare_options *options)
{
    int status = match(made, options);
    if (status)
        return status;
    for (size_t i = 0; i < made->n; i++) {
        judge(&made->rows[i], made);
        count_verdict(made, made->rows[i].verdict);
    }
    qsort(made->rows, made->n, sizeof *made->rows, by_section);
    qsort(made->only_base, made->n_only_base, sizeof *made->only_base, by_total);
    qsort(made->only_head, made->n_only_head, sizeof *made->only_head, by_total);
    return tare__compare_warn(made, options->paired); /* two commands on purpose */
}

int tare__compare(const tare__figures *base, const tare__figures *head, const tare__compare_options *options,
                  tare__comparison **comparison)
{
    tare__compare_options asked = options ? *options : (tare__compare_options){.least = NAN};
    asked.confidence = asked.confidence > 0 && asked.confidence < 1 ? asked.confidence : CONFIDENCE;
    if (isnan(asked.least))
        asked.least = base->runs > 1 && head->runs > 1 ? LEAST_MANY : LEAST_ONE;
    tare__arena *arena = tare__arena_new();
    tare__comparison *made = arena ? tare__arena_alloc(arena, sizeof *made) : NULL;
    *comparison = NULL;
    if (!made) {
        tare__arena_free(arena);
        return TARE_E_MEMORY;
    }
    *made = (tare__comparison){
        .base = base, .head = head, .confidence = asked.confidence, .least = asked.least, .arena = arena};
    int status = fill(made, &asked);
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
