/* user_evaluate: evaluates user rules over the rows of their tables: one finding for each row that matches.
 * Owned by the thread that analyzes.
 * Must not know how rules are written. */
#include <math.h>
#include <string.h>

#include "analyze/findings/rules.h"
#include "user_rules.h"

typedef struct place {
    tare__cells *with;
    const tare__rules *rules;
    const void *row;
    size_t index;
} place;

/* ---- expressions ----------------------------------------------------------------------------- */
/* Patterns with * and ?; time is at most the product of both lengths. */
static bool is_like(const char *text, const char *pattern)
{
    const char *star = NULL, *retry = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            retry = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static truth truth_of(bool yes)
{
    return yes ? YES : NO;
}

/* An absent value compares as unknown, not as false: "not (x > 1)" must not hold for a missing x either. */
static truth compare_texts(node_op op, const char *a, const char *b)
{
    if (!a || !b)
        return UNKNOWN;
    bool like = op == OP_LIKE || op == OP_NOT_LIKE;
    bool same = like ? is_like(a, b) : strcmp(a, b) == 0;
    return truth_of(op == OP_EQUAL || op == OP_LIKE ? same : !same);
}

static truth compare_truths(node_op op, truth a, truth b)
{
    return a == UNKNOWN || b == UNKNOWN ? UNKNOWN : truth_of((op == OP_EQUAL) == (a == b));
}

static truth compare_numbers(node_op op, double a, double b)
{
    if (isnan(a) || isnan(b))
        return UNKNOWN;
    switch (op) {
    case OP_LESS: return truth_of(a < b);
    case OP_LESS_EQUAL: return truth_of(a <= b);
    case OP_MORE: return truth_of(a > b);
    case OP_MORE_EQUAL: return truth_of(a >= b);
    case OP_EQUAL: return truth_of(a == b);
    default: return truth_of(a != b);
    }
}

static double calculate(node_op op, double a, double b)
{
    double result = op == OP_ADD ? a + b : op == OP_SUBTRACT ? a - b : op == OP_MULTIPLY ? a * b : a / b;
    return isfinite(result) ? result : NAN;
}

static truth both(truth a, truth b)
{
    return a == NO || b == NO ? NO : a == UNKNOWN || b == UNKNOWN ? UNKNOWN : YES;
}

static truth either(truth a, truth b)
{
    return a == YES || b == YES ? YES : a == UNKNOWN || b == UNKNOWN ? UNKNOWN : NO;
}

static bool is_known(value value)
{
    return value.type == VALUE_NUMBER ? !isnan(value.number)
           : value.type == VALUE_TEXT ? value.text != NULL
                                      : value.truth != UNKNOWN;
}

/* Recursion is bounded by the parser's limit on depth. */
static value evaluate(const place *at, uint32_t index)
{
    const user_node *node = &at->rules->nodes[index];
    value result = {.type = node->type,
                    .unit = node->unit,
                    .number = node->number,
                    .text = node->text,
                    .truth = node->truth};
    if (node->op <= OP_TRUTH)
        return result;
    if (node->op == OP_COLUMN)
        return tare__user_cell(at->with, node->column, at->row, at->index);
    if (node->op == OP_KNOWN) {
        result.truth = truth_of(is_known(tare__user_cell(at->with, node->column, at->row, at->index)));
        return result;
    }
    value a = evaluate(at, node->left), b = a;
    if (node->op != OP_NEGATE && node->op != OP_NOT)
        b = evaluate(at, node->right);
    if (node->op == OP_NEGATE)
        result.number = -a.number;
    else if (node->op <= OP_DIVIDE)
        result.number = calculate(node->op, a.number, b.number);
    else if (node->op == OP_NOT)
        result.truth = a.truth == UNKNOWN ? UNKNOWN : truth_of(a.truth == NO);
    else if (node->op == OP_AND)
        result.truth = both(a.truth, b.truth);
    else if (node->op == OP_OR)
        result.truth = either(a.truth, b.truth);
    else if (a.type == VALUE_TEXT)
        result.truth = compare_texts(node->op, a.text, b.text);
    else if (a.type == VALUE_TRUTH)
        result.truth = compare_truths(node->op, a.truth, b.truth);
    else
        result.truth = compare_numbers(node->op, a.number, b.number);
    if (result.unit == UNIT_ANY && a.type == VALUE_NUMBER)
        result.unit = a.unit;
    return result;
}

/* ---- sentences ------------------------------------------------------------------------------- */
static void put_number(tare__text *out, const value *value, piece_format format)
{
    static const piece_format by_unit[] = {
        [UNIT_ANY] = AS_COUNT,     [UNIT_COUNT] = AS_COUNT, [UNIT_TIME] = AS_TIME,  [UNIT_BYTES] = AS_BYTES,
        [UNIT_SHARE] = AS_PERCENT, [UNIT_CORES] = AS_COUNT, [UNIT_RATE] = AS_COUNT,
    };
    char text[TARE__UNIT_BYTES];
    if (isnan(value->number)) {
        tare__text_string(out, "n/a");
        return;
    }
    switch (format == AS_IT_IS ? by_unit[value->unit] : format) {
    case AS_PERCENT: tare__unit_percent(text, value->number); break;
    case AS_BYTES: tare__unit_bytes(text, value->number); break;
    case AS_TIME: tare__unit_time(text, value->number); break;
    case AS_NUMBER: tare__text_double(text, sizeof text, 'g', 6, value->number); break;
    default: tare__unit_count(text, value->number); break;
    }
    tare__text_string(out, text);
}

static void put_value(tare__text *out, const value *value, piece_format format)
{
    static const char *const truths[] = {"no", "yes"};
    if (value->type == VALUE_NUMBER)
        put_number(out, value, format);
    else if (!is_known(*value))
        tare__text_string(out, "n/a");
    else
        tare__text_string(out, value->type == VALUE_TEXT ? tare__show_name(value->text).text : truths[value->truth]);
}

static const char *keep(findings *out, tare__text *text)
{
    const char *copy = text->failed ? NULL : tare__arena_copy(out->arena, text->data ? text->data : "", text->length);
    if (!copy)
        out->failed = true;
    tare__text_free(text);
    return copy ? copy : "";
}

static const char *write_sentence(findings *out, const place *at, user_sentence sentence)
{
    tare__text text = {0};
    for (uint32_t i = sentence.first; i < sentence.first + sentence.n; i++) {
        const user_piece *piece = &at->rules->pieces[i];
        if (piece->text) {
            tare__text_string(&text, piece->text);
            continue;
        }
        value value = evaluate(at, piece->node);
        put_value(&text, &value, piece->format);
    }
    return keep(out, &text);
}

/* ---- evidence: the columns that the condition reads, in this row ----------------------------- */
static const tare__metric_unit figure_units[] = {
    [UNIT_ANY] = TARE__SHOW_COUNT,   [UNIT_COUNT] = TARE__SHOW_COUNT, [UNIT_TIME] = TARE__SHOW_SECONDS,
    [UNIT_BYTES] = TARE__SHOW_BYTES, [UNIT_SHARE] = TARE__SHOW_SHARE, [UNIT_CORES] = TARE__SHOW_CORES,
    [UNIT_RATE] = TARE__SHOW_PER_S,
};

typedef struct shown_columns {
    const tare__schema_column *columns[FIGURES_MAX];
    size_t n;
} shown_columns;

static void collect(const tare__rules *rules, uint32_t index, shown_columns *found)
{
    const user_node *node = &rules->nodes[index];
    if (node->op >= OP_NEGATE) {
        collect(rules, node->left, found);
        if (node->op != OP_NEGATE && node->op != OP_NOT)
            collect(rules, node->right, found);
        return;
    }
    if (!node->column || found->n == FIGURES_MAX)
        return;
    for (size_t i = 0; i < found->n; i++)
        if (found->columns[i] == node->column)
            return;
    found->columns[found->n++] = node->column;
}

static void tell_columns(findings *out, const place *at, const user_rule *rule)
{
    shown_columns found = {.n = 0};
    tare__text text = {0};
    if (rule->where != NO_NODE)
        collect(at->rules, rule->where, &found);
    collect(at->rules, rule->when, &found);
    tare__text_format(&text, "In the table %s: ", rule->table->name);
    for (size_t i = 0; i < found.n; i++) {
        value value = tare__user_cell(at->with, found.columns[i], at->row, at->index);
        tare__text_format(&text, "%s%s ", i ? ", " : "", found.columns[i]->name);
        put_value(&text, &value, AS_IT_IS);
        if (value.type == VALUE_NUMBER)
            tare__say_figure(out, found.columns[i]->name, value.unit == UNIT_TIME ? value.number / 1e9 : value.number,
                             figure_units[value.unit]);
    }
    tare__text_string(&text, ".");
    out->now->evidence = keep(out, &text);
}

/* ---- rules ----------------------------------------------------------------------------------- */
static void tell(findings *out, const place *at, const user_rule *rule)
{
    tare__finding *finding = tare__finding_add(out, rule->severity);
    tare__text source = {0};
    tare__text_format(&source, "%s:%u", at->rules->name, rule->line);
    finding->source = keep(out, &source);
    finding->id = tare__arena_copy(out->arena, rule->name, strlen(rule->name));
    if (!finding->id) {
        out->failed = true;
        finding->id = "";
    }
    finding->title = write_sentence(out, at, rule->say);
    tell_columns(out, at, rule);
    if (rule->evidence.n)
        finding->evidence = write_sentence(out, at, rule->evidence);
    if (rule->advice.n)
        finding->advice = write_sentence(out, at, rule->advice);
    finding->gain_how = "not predicted: the rule does not say";
    if (rule->gain == NO_NODE)
        return;
    finding->gain = evaluate(at, rule->gain).number;
    if (!isnan(finding->gain))
        finding->gain = fmin(fmax(finding->gain, 0), 1);
    finding->gain_how =
        isnan(finding->gain) ? "not predicted: what the rule needs for it is absent" : "as the rule says";
}

static bool holds(const place *at, uint32_t node)
{
    return node == NO_NODE || evaluate(at, node).truth == YES;
}

static void evaluate_rule(findings *out, tare__cells *with, const tare__rules *rules, const user_rule *rule)
{
    size_t n = tare__table_rows(with->of, rule->table), reported = 0, first = out->n;
    for (size_t i = 0; i < n; i++) {
        place at = {with, rules, tare__table_row(with->of, rule->table, i), i};
        if (!holds(&at, rule->where) || !holds(&at, rule->when))
            continue;
        if (reported++ < USER_PER_RULE)
            tell(out, &at, rule);
    }
    if (reported > USER_PER_RULE && out->n > first) {
        out->now = &out->rows[out->n - 1]; /* not the spare row */
        tare__say_evidence(out, "It holds for %zu more rows.", reported - USER_PER_RULE);
    }
}

void tare__user_rules_evaluate(findings *out, const tare__analysis *of, const tare__rules *rules)
{
    tare__cells with;
    tare__cells_begin(&with, of);
    for (size_t i = 0; i < rules->n_rules && !out->failed; i++) {
        out->rule = (uint16_t)(tare__rule_count + i);
        out->rule_id = rules->rules[i].name;
        evaluate_rule(out, &with, rules, &rules->rules[i]);
    }
}
