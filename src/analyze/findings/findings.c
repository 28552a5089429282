/* findings: runs the rules over the tables and sorts the findings, worst first.
 * Owned by the thread that analyzes.
 * Must not know what any rule checks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

/* ---- writing a finding ----------------------------------------------------------------------- */
tare__finding *tare__finding_add(findings *out, tare__severity severity)
{
    /* The last row is a spare: it is overwritten repeatedly, and never shown. */
    size_t at = out->n < FINDINGS_MAX - 1 ? out->n++ : FINDINGS_MAX - 1;
    out->now = &out->rows[at];
    *out->now = (tare__finding){.id = out->rule_id, .severity = severity, .title = "", .evidence = "", .advice = "",
                                .gain = NAN, .gain_how = "", .from_ns = NAN, .to_ns = NAN, .line_share = NAN,
                                .figures = out->figures[at]};
    out->order[at] = out->rule;
    return out->now;
}

bool tare__finding_has(const findings *out, const char *id)
{
    for (size_t i = 0; i < out->n; i++)
        if (strcmp(out->rows[i].id, id) == 0)
            return true;
    return false;
}

/* Adds a sentence, after a space if there is text already. */
static void say(findings *out, const char **text, const char *format, va_list args)
{
    tare__text made = {0};
    char sentence[2048];
    if (vsnprintf(sentence, sizeof sentence, format, args) < 0)
        return;
    tare__text_string(&made, *text);
    if (**text)
        tare__text_string(&made, " ");
    tare__text_string(&made, sentence);
    const char *copy = made.failed ? NULL : tare__arena_copy(out->arena, made.data, made.length);
    tare__text_free(&made);
    if (copy)
        *text = copy;
    else
        out->failed = true;
}

#define SAY(which)                                                       \
    void tare__say_##which(findings *out, const char *format, ...)       \
    {                                                                    \
        va_list args;                                                    \
        va_start(args, format);                                          \
        say(out, &out->now->which, format, args);                        \
        va_end(args);                                                    \
    }
SAY(title)
SAY(evidence)
SAY(advice)

void tare__say_gain(findings *out, double gain, const char *how, ...)
{
    va_list args;
    va_start(args, how);
    say(out, &out->now->gain_how, how, args);
    va_end(args);
    if (!isnan(gain))
        out->now->gain = gain;
}

void tare__say_when(findings *out, double from_ns, double to_ns)
{
    out->now->from_ns = from_ns;
    out->now->to_ns = to_ns;
}

void tare__say_figure(findings *out, const char *name, double value, tare__metric_unit unit)
{
    tare__evidence *figures = out->figures[out->now - out->rows];
    if (out->now->n_figures < FIGURES_MAX && !isnan(value))
        figures[out->now->n_figures++] = (tare__evidence){name, value, unit};
}

/* ---- formatting of values -------------------------------------------------------------------- */
shown tare__show_time(double ns)
{
    shown result;
    tare__unit_time(result.text, ns);
    return result;
}

shown_counted tare__show_counted(double value, const char *one, const char *many)
{
    shown_counted result;
    tare__unit_counted(result.text, value, one, many);
    return result;
}

shown tare__show(double value, tare__metric_unit unit)
{
    shown result;
    tare__schema_show(result.text, value, unit);
    return result;
}

shown_name tare__show_name(const char *name)
{
    shown_name result;
    tare__text_fit(result.text, sizeof result.text, name, 48);
    return result;
}

/* ---- order ----------------------------------------------------------------------------------- */
static const rule *rule_of(const findings *all, size_t row)
{
    return all->order[row] < tare__rule_count ? &tare__rule_table[all->order[row]] : NULL;
}

/* Severity, then danger to the run, then gain, then the order of the rules. */
static bool comes_before(const findings *all, size_t a, size_t b)
{
    const tare__finding *x = &all->rows[a], *y = &all->rows[b];
    if (x->severity != y->severity)
        return x->severity > y->severity;
    bool x_endangers = rule_of(all, a) && rule_of(all, a)->endangers;
    bool y_endangers = rule_of(all, b) && rule_of(all, b)->endangers;
    if (x_endangers != y_endangers)
        return x_endangers;
    double x_gain = isnan(x->gain) ? -1 : x->gain, y_gain = isnan(y->gain) ? -1 : y->gain;
    if (x_gain != y_gain)
        return x_gain > y_gain;
    return all->order[a] < all->order[b];
}

static bool has_id(const findings *all, size_t row, const char *id)
{
    return !all->rows[row].source && strcmp(all->rows[row].id, id) == 0;
}

/* Rows by place, worst first; stable. */
static size_t sort_rows(const findings *all, size_t places[FINDINGS_MAX])
{
    size_t n = 0;
    for (size_t row = 0; row < all->n; row++) {
        size_t at = n++;
        for (; at > 0 && comes_before(all, row, places[at - 1]); at--)
            places[at] = places[at - 1];
        places[at] = row;
    }
    return n;
}

static size_t place_of(const findings *all, const size_t *places, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++)
        if (has_id(all, places[i], id))
            return i;
    return n;
}

static void move_place(size_t *places, size_t from, size_t to)
{
    size_t row = places[from];
    memmove(places + from, places + from + 1, (to - from) * sizeof *places);
    places[to] = row;
}

/* A symptom listed before its cause moves directly after it; one that the cause covers completely is dropped. The
 * pairs have no cycles, so a few rounds are enough. */
static size_t put_causes_first(const findings *all, size_t *places, size_t n)
{
    for (size_t round = 0; round < tare__rule_pair_count; round++) {
        bool moved = false;
        for (size_t i = 0; i < tare__rule_pair_count; i++) {
            const rule_pair *pair = &tare__rule_pairs[i];
            size_t cause = place_of(all, places, n, pair->cause);
            size_t symptom = place_of(all, places, n, pair->symptom);
            if (cause == n || symptom == n)
                continue;
            if (pair->dropped)
                move_place(places, symptom, --n);
            else if (symptom < cause)
                move_place(places, symptom, cause);
            moved |= pair->dropped || symptom < cause;
        }
        if (!moved)
            break;
    }
    return n;
}

static int keep(tare__analysis *analysis, const findings *all)
{
    size_t places[FINDINGS_MAX];
    size_t n = put_causes_first(all, places, sort_rows(all, places));
    tare__finding *rows = tare__arena_alloc(analysis->arena, (n + 1) * sizeof *rows);
    if (!rows)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++) {
        rows[i] = all->rows[places[i]];
        size_t bytes = rows[i].n_figures * sizeof(tare__evidence);
        tare__evidence *figures = tare__arena_alloc(analysis->arena, bytes);
        if (!figures)
            return TARE_E_MEMORY;
        if (bytes)
            memcpy(figures, rows[i].figures, bytes);
        rows[i].figures = figures;
    }
    analysis->findings = rows;
    analysis->n_findings = n;
    return 0;
}

int tare__analyze_findings(tare__analysis *analysis, const tare__analysis *steady, const tare__rules *rules)
{
    findings *all = calloc(1, sizeof *all);
    if (!all)
        return TARE_E_MEMORY;
    all->arena = analysis->arena;
    for (size_t i = 0; i < tare__rule_count; i++) {
        all->rule = (uint16_t)i;
        all->rule_id = tare__rule_table[i].id;
        tare__rule_table[i].evaluate(all, steady && !tare__rule_table[i].whole ? steady : analysis);
    }
    if (rules)
        tare__user_rules_evaluate(all, analysis, rules);
    int status = all->failed ? TARE_E_MEMORY : keep(analysis, all);
    free(all);
    return status;
}
