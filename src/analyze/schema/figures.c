/* figures: tables of the figures of a run or a model, and of comparisons and checks of two lists.
 * Constant; any thread.
 * Must not know output formats. */
#include "define.h"

/* ---- a list of figures ------------------------------------------------------------------------------------------ */
static const tare__schema_column sample_columns[] = {
    {"sample", TARE__STORED_DOUBLE, TARE__SHOW_NOTHING, .meaning = "a sample, in the figure's unit"},
};
static const tare__table samples = TABLE("samples", VALUES, sample_columns, double, "a sample, in the figure's unit");

MADE(figure_better, tare__figure, tare__value_text(tare__better_word(row->better)))

#define R tare__figure
static const tare__schema_column figure_columns[] = {
    C(name, TEXT, NOTHING, "name: `step`, `span:train/forward`, `model.latency[batch=4]`", .key = true),
    C(unit, TEXT, NOTHING, "unit of `value`, `total` and `samples`: `ns`, `bytes`, `samples/s`; empty: none"),
    M("better", TEXT, NOTHING, figure_better, "`lower`, `higher` or `neither`"),
    C(exact, BOOL, NOTHING, "the same on every run and machine: FLOPs, parameters, bytes of a file"),
    C(at_least, BOOL, NOTHING, "a lower bound: not everything could be counted"),
    C(value, DOUBLE, NOTHING, "the median of the samples, or the figure"),
    C(total, DOUBLE, NOTHING, "its cost over the run"),
    C(n, U64, COUNT, "calls, steps or values behind it"),
    C(per, TEXT, NOTHING, "what one sample is of: `call`, `step`, `run`, `sample`; null: there are none"),
    C(each, U64_OR_0, COUNT, "calls, steps or values behind one sample, which is their mean; a power of two"),
    L("samples", ROWS, samples, n_samples, samples, "samples in order, at most 1,000"),
};
#undef R
const tare__table tare__table_figures = TABLE("figures", ROWS, figure_columns, tare__figure, "a figure");

MADE(baseline_version, tare__figures, tare__value_count(TARE__BASELINE_VERSION, row != NULL))

#define R tare__figures
const tare__schema_column tare__baseline_columns[TARE__BASELINE_COLUMNS] = {
    M("tare_baseline", COUNT, NOTHING, baseline_version, "version of the format: 1"),
    C(kind, TEXT, NOTHING, "`run`, `runs`, `model` or `baseline`"),
    C(command, TEXT, NOTHING, "command line"),
    C(host, TEXT, NOTHING, "host name"),
    C(cpu_model, TEXT, NOTHING, "CPU model"),
    C(revision, TEXT, NOTHING, "git revision"),
    C(machine, TEXT, NOTHING, "fingerprint of the machine: host, CPU model, CPUs, memory, kernel"),
    C(when_ns, U64_OR_0, DATE, "start, since 1970-01-01 UTC"),
    C(runs, U64, COUNT, "runs behind it: above 1, samples are one a run"),
    L("notes", ROWS, notes, n_notes, tare__table_sentences, "what is missing"),
    L("figures", ROWS, rows, n, tare__table_figures, "the figures"),
};
#undef R
static const tare__table baseline_file = {.name = "baseline",
                                          .shape = TARE__SHAPE_TOP,
                                          .meaning = "a run, several runs or a model as a list of figures",
                                          .columns = tare__baseline_columns,
                                          .n_columns = TARE__COUNT_OF(tare__baseline_columns)};

static const tare__table *const baseline_tables[] = {&baseline_file};
DOCUMENT(baseline, NULL, 0, 0, baseline_tables);

/* ---- sides ------------------------------------------------------------------------------------------------------ */
static bool side_is_there(const void *row)
{
    return ((const tare__side *)row)->figures != NULL;
}

MADE(side_runs, tare__side, tare__value_count(row->figures->runs ? row->figures->runs : 1, true))

#define R tare__side
#define S(member, how, in, ...) T(#member, figures, tare__figures, member, how, in, __VA_ARGS__)
static const tare__schema_column side_columns[] = {
    C(name, TEXT, NOTHING, "file or run, as given"),
    S(kind, TEXT, NOTHING, "`run`, `runs`, `model` or `baseline`"),
    M("runs", COUNT, COUNT, side_runs, "runs behind it"),
    S(command, TEXT, NOTHING, "command line"),
    S(host, TEXT, NOTHING, "host name"),
    S(cpu_model, TEXT, NOTHING, "CPU model"),
    S(revision, TEXT, NOTHING, "git revision"),
    S(machine, TEXT, NOTHING, "fingerprint of the machine"),
    S(when_ns, U64_OR_0, DATE, "start, since 1970-01-01 UTC"),
    {"notes", TARE__STORED_ROWS, TARE__SHOW_NOTHING, .through = AT(figures) + 1, .at = offsetof(tare__figures, notes),
     .count_at = offsetof(tare__figures, n_notes), .table = &tare__table_sentences, .meaning = "what is missing"},
};
#undef R
#define SIDE(view, member, what) \
    {.name = #member, .shape = TARE__SHAPE_SINGLE, .page = TARE__PAGE_NOT, .meaning = what, .columns = side_columns, \
     .n_columns = TARE__COUNT_OF(side_columns), .at = offsetof(view, member), .present = side_is_there}
#define SENTENCES(named, of, pointer, type, member, counted, what) \
    {.name = named, .shape = TARE__SHAPE_VALUES, .meaning = what, .columns = tare__sentence_columns, .n_columns = 1, \
     .row_bytes = sizeof(const char *), .through = offsetof(of, pointer) + 1, .at = offsetof(type, member), \
     .count_at = offsetof(type, counted)}

/* ---- decisions, the same in a comparison and a check ------------------------------------------------------------- */
#define DECIDED(kind) \
    MADE(kind##_verdict, R, tare__value_text(tare__verdict_word(row->decision.verdict))) \
    MADE(kind##_effect_size, R, tare__value_text(tare__effect_word(row->decision.effect)))
#define DECISION(kind)                                                                                               \
    M("verdict", TEXT, NOTHING, kind##_verdict,                                                                      \
      "`same` (no significant change), `better`, `worse`, `different` (neither way is better) or `inconclusive`",    \
      .mark = true, .words = "same=no significant change"),                                                          \
        M("reason", TEXT, NOTHING, kind##_reason, "why, in half a sentence", UNDER,                                  \
          .words = "significant=|not significant=|equal="),                                                          \
        N("baseline", decision.base, DOUBLE, NOTHING, "value of the baseline, in `unit`", IN_UNIT,                   \
          AT_LEAST("baseline_at_least")),                                                                            \
        N("candidate", decision.head, DOUBLE, NOTHING, "value of the candidate", IN_UNIT,                            \
          AT_LEAST("candidate_at_least")),                                                                           \
        T("baseline_at_least", base, tare__figure, at_least, BOOL, NOTHING, "`baseline` is a lower bound",           \
          NOT_IN_PAGE),                                                                                              \
        T("candidate_at_least", head, tare__figure, at_least, BOOL, NOTHING, "`candidate` is a lower bound",         \
          NOT_IN_PAGE),                                                                                              \
        N("change", decision.change, DOUBLE, CHANGE, "`candidate` / `baseline` - 1; below it its 95 % interval",     \
          .absent = "one side has no value, or the baseline is 0"),                                                  \
        N("low", decision.low, DOUBLE, CHANGE, "lower bound of the 95 % interval of `change`; null: too few samples", \
          UNDER),                                                                                                    \
        N("high", decision.high, DOUBLE, CHANGE, "upper bound", UNDER, .between = " … ")
#define TESTED(kind)                                                                                                 \
    N("p", decision.p, DOUBLE, P,                                                                                \
          "p of Mann-Whitney's test; for alternating commands, of Wilcoxon's signed ranks; null: not tested",        \
          NOT_IN_PAGE),                                                                                              \
        N("p_adjusted", decision.adjusted, DOUBLE, P,                                                                \
          "p of Mann-Whitney's test; for alternating commands, of Wilcoxon's signed ranks. Corrected for testing "   \
          "many parts at once", .label = "p"),                                                                       \
        N("effect", decision.effect, DOUBLE, NOTHING,                                                                \
          "Cliff's delta: how often a sample of the candidate is above one of the baseline, minus how often below; " \
          "of one run against several, where it lies among them"),                                                   \
        M("effect_size", TEXT, NOTHING, kind##_effect_size, "`negligible`, `small`, `medium` or `large`", UNDER,     \
          .words = "negligible="),                                                                                   \
        N("baseline_samples", decision.n_base, U64, COUNT, "samples of the baseline that were tested", NOT_IN_PAGE), \
        N("candidate_samples", decision.n_head, U64, COUNT, "samples of the candidate that were tested", NOT_IN_PAGE)

/* ---- a comparison ------------------------------------------------------------------------------------------------ */
MADE(compared_section, tare__compared, tare__value_text(tare__section_word(row->section)))
MADE(compared_better, tare__compared, tare__value_text(tare__better_word(row->base->better)))
MADE(compared_exact, tare__compared, tare__value_flag(row->base->exact && row->head->exact))
MADE(compared_reason, tare__compared, tare__value_text(tare__why_text(row->decision.why)))

#define R tare__compared
DECIDED(compared)
#define BASE(named, member, how, in, ...) T(named, base, tare__figure, member, how, in, __VA_ARGS__)
#define HEAD(named, member, how, in, ...) T(named, head, tare__figure, member, how, in, __VA_ARGS__)
static const tare__schema_column compared_columns[] = {
    BASE("name", name, TEXT, NOTHING, "name of the figure", .key = true, .label = "Figure"),
    M("section", TEXT, NOTHING, compared_section,
      "`whole`, `spans`, `layers`, `operators`, `kernels`, `counters` or `metrics`", NOT_IN_PAGE),
    BASE("unit", unit, TEXT, NOTHING, "unit of the values; empty: none", NOT_IN_PAGE),
    M("better", TEXT, NOTHING, compared_better, "`lower`, `higher` or `neither`", NOT_IN_PAGE),
    M("exact", FLAG, NOTHING, compared_exact, "the same on every run and machine"),
    DECISION(compared),
    C(cost, DOUBLE, CHANGE, "what the change adds to the run, in `unit`; below 0: it saves", IN_UNIT),
    TESTED(compared),
    BASE("baseline_total", total, DOUBLE, NOTHING, "cost over the run, of the baseline", NOT_IN_PAGE),
    HEAD("candidate_total", total, DOUBLE, NOTHING, "cost over the run, of the candidate", NOT_IN_PAGE),
    BASE("per", per, TEXT, NOTHING, "what one sample is of", NOT_IN_PAGE),
    BASE("baseline_n", n, U64, COUNT, "calls, steps or values behind the baseline", NOT_IN_PAGE),
    HEAD("candidate_n", n, U64, COUNT, "… behind the candidate", NOT_IN_PAGE),
};
#undef R

#define R const tare__figure *
#define F(member, how, in, ...) \
    {#member, TARE__STORED_##how, TARE__SHOW_##in, .through = 1, .at = offsetof(tare__figure, member), \
     .meaning = __VA_ARGS__}
static const tare__schema_column only_columns[] = {
    F(name, TEXT, NOTHING, "name of the figure", .key = true, .label = "Figure"),
    F(unit, TEXT, NOTHING, "its unit; empty: none", NOT_IN_PAGE),
    F(value, DOUBLE, NOTHING, "the figure", IN_UNIT),
    F(total, DOUBLE, NOTHING, "its cost over the run", IN_UNIT),
    F(n, U64, COUNT, "calls, steps or values behind it", NOT_IN_PAGE),
};
#undef R

#define R tare__compared_function
static const tare__schema_column function_columns[] = {
    C(function, TEXT, NOTHING, "qualified name", .key = true),
    C(file, TEXT, NOTHING, "its file, without directories; empty: not known", .key = true),
    N("baseline", base, DOUBLE, SHARE, "share of active time in the function itself; 0: not sampled",
      .label = "Baseline (self)"),
    N("candidate", head, DOUBLE, SHARE, "… of the candidate", .label = "Candidate (self)"),
    C(change, DOUBLE, CHANGE, "`candidate` - `baseline`", .label = "Change (points)"),
};
#undef R

MADE(compare_same, tare__comparison,
     tare__value_count(row->n - row->worse - row->better - row->different - row->inconclusive, true))
MADE(compare_answer, tare__compare_view, tare__value_text(row->answer))

#define R tare__comparison
static const tare__schema_column verdict_columns[] = {
    C(worse, U64, COUNT, "figures that got worse", .label = "Got worse"),
    C(better, U64, COUNT, "figures that got better", .label = "Got better"),
    C(different, U64, COUNT, "figures that changed, where neither way is better",
      .label = "Different"),
    M("same", COUNT, COUNT, compare_same, "figures without significant change", .label = "No significant change"),
    C(inconclusive, U64, COUNT, "figures for which the data is not enough"),
};
#undef R
static const tare__table counted_verdicts = {.name = "counts", .shape = TARE__SHAPE_SINGLE,
                                             .meaning = "figures by verdict", .columns = verdict_columns,
                                             .n_columns = TARE__COUNT_OF(verdict_columns),
                                             .through = offsetof(tare__compare_view, comparison) + 1};

#define R tare__compare_view
static const tare__schema_column compare_columns[] = {
    M("answer", TEXT, NOTHING, compare_answer, "the answer, as the text report has it", NOT_IN_PAGE),
    T("confidence", comparison, tare__comparison, confidence, DOUBLE, SHARE, "of the intervals", NOT_IN_PAGE),
    T("min_change", comparison, tare__comparison, min_change, DOUBLE, SHARE, "smaller changes do not count",
      NOT_IN_PAGE),
};
#undef R
static const tare__table compare_top = {.name = "comparison", .shape = TARE__SHAPE_TOP, .meaning = "the comparison",
                                        .columns = compare_columns, .n_columns = TARE__COUNT_OF(compare_columns)};

MADE(ab_baseline, tare__compare_ab, tare__value_text(row->commands[0]))
MADE(ab_candidate, tare__compare_ab, tare__value_text(row->commands[1]))

#define R tare__compare_ab
static const tare__schema_column ab_columns[] = {
    M("baseline_command", TEXT, NOTHING, ab_baseline, "command line of the baseline"),
    M("candidate_command", TEXT, NOTHING, ab_candidate, "command line of the candidate"),
    C(figure, TEXT, NOTHING, "the figure that decides: `run.elapsed`"),
    C(rounds, U64, COUNT, "rounds that were run"),
    N("rounds_max", wanted, U64, COUNT, "rounds at most"),
    C(change, DOUBLE, SHARE, "`candidate` / `baseline` - 1 of that figure"),
    C(low, DOUBLE, SHARE, "lower bound of the interval of `change`"),
    C(high, DOUBLE, SHARE, "upper bound"),
    C(p, DOUBLE, NOTHING, "p of Wilcoxon's signed ranks"),
    N("p_needed", level, DOUBLE_OR_0, NOTHING, "what `p` has to reach after this round; null: too early"),
    C(clear, BOOL, NOTHING, "the question is decided"),
    C(interrupted, BOOL, NOTHING, "the comparison was interrupted"),
    C(answer, TEXT, NOTHING, "the answer"),
};
#undef R
static const tare__table ab = {.name = "ab", .shape = TARE__SHAPE_SINGLE, .page = TARE__PAGE_NOT,
                               .meaning = "two commands that were run alternately; null: recorded runs were compared",
                               .columns = ab_columns, .n_columns = TARE__COUNT_OF(ab_columns),
                               .through = offsetof(tare__compare_view, ab) + 1};

static const tare__table compare_baseline = SIDE(tare__compare_view, baseline, "what is compared against");
static const tare__table compare_candidate = SIDE(tare__compare_view, candidate, "what is compared");
#define OF_COMPARISON(named, columns_of, row, member, counted, ...)                                               \
    {.name = named, .shape = TARE__SHAPE_ROWS, .columns = columns_of, .meaning = __VA_ARGS__,                       \
     .n_columns = TARE__COUNT_OF(columns_of), .row_bytes = sizeof(row),                                            \
     .through = offsetof(tare__compare_view, comparison) + 1, .at = offsetof(tare__comparison, member),            \
     .count_at = offsetof(tare__comparison, counted)}
static const tare__table compare_warnings = SENTENCES("warnings", tare__compare_view, comparison, tare__comparison,
                                                      warnings, n_warnings, "what limits the answer");
const tare__table tare__table_compared = OF_COMPARISON("figures", compared_columns, tare__compared, rows, n,
                                                       "a figure of both sides, by section, then by absolute cost");
static const tare__table only_baseline =
    OF_COMPARISON("only_baseline", only_columns, const tare__figure *, only_base, n_only_base,
                  "a figure that the candidate does not have", .label = "Baseline only");
static const tare__table only_candidate =
    OF_COMPARISON("only_candidate", only_columns, const tare__figure *, only_head, n_only_head,
                  "a figure that the baseline does not have", .label = "Candidate only");

static const tare__table functions = OF_COMPARISON(
    "functions", function_columns, tare__compared_function, functions, n_functions,
    "a function whose share of the active time of stack samples changed by 0.25 percentage points or more, by absolute "
    "change; of one run on each side", .label = "Functions");

static const tare__table *const compare_tables[] = {&compare_top, &compare_baseline, &compare_candidate,
                                                    &counted_verdicts, &compare_warnings, &ab, &tare__table_compared,
                                                    &only_baseline, &only_candidate, &functions};
DOCUMENT(compare, "tare-compare", 1, 1, compare_tables);

/* ---- a check ----------------------------------------------------------------------------------------------------- */
MADE(checked_outcome, tare__check_row, tare__value_text(tare__outcome_word(row->outcome)))
MADE(checked_reason, tare__check_row, tare__value_text(row->reason))
MADE(checked_gate, tare__check_row, tare__value_number(row->gated ? row->decision.requested.gate.share : NAN))
MADE(checked_floor, tare__check_row, tare__value_number(row->gated ? row->decision.requested.gate.floor : NAN))
MADE(checked_limit, tare__check_row, tare__value_number(row->has_limit ? row->limit : NAN))

#define R tare__check_row
DECIDED(checked)
static const tare__schema_column checked_columns[] = {
    C(name, TEXT, NOTHING, "name of the figure", .key = true),
    C(unit, TEXT, NOTHING, "unit of the values; empty: none"),
    M("outcome", TEXT, NOTHING, checked_outcome,
      "`failed`, `inconclusive` (beyond the gate with too few samples, or a lower bound), `cleared` (not confirmed by "
      "running it again), `changed` (not gated), `improved`, `passed` or `absent` (on one side only)"),
    DECISION(checked),
    TESTED(checked),
    C(gated, BOOL, NOTHING, "its change may fail the check"),
    M("gate", NUMBER, SHARE, checked_gate, "by more than this share; null: not gated"),
    M("floor", NUMBER, NOTHING, checked_floor, "and by more than this amount, in `unit`"),
    M("limit", NUMBER, NOTHING, checked_limit, "its limit, in `unit`; null: no limit"),
};
#undef R

#define OUTCOME(named, outcome, what) \
    {named, TARE__STORED_U64, TARE__SHOW_COUNT, .at = TARE__OUTCOME_##outcome * sizeof(size_t), .meaning = what}
static const tare__schema_column outcome_columns[] = {
    OUTCOME("failed", FAILED, "figures that failed"),
    OUTCOME("inconclusive", INCONCLUSIVE, "figures for which the data is not enough"),
    OUTCOME("cleared", CLEARED, "figures whose failure was not confirmed"),
    OUTCOME("changed", CHANGED, "figures that changed and are not gated"),
    OUTCOME("improved", IMPROVED, "figures that got better"),
    OUTCOME("passed", PASSED, "figures that passed"),
    OUTCOME("absent", ABSENT, "figures on one side only"),
};
static const tare__table counted_outcomes = {.name = "counts", .shape = TARE__SHAPE_SINGLE,
                                             .meaning = "figures by outcome", .columns = outcome_columns,
                                             .n_columns = TARE__COUNT_OF(outcome_columns),
                                             .through = offsetof(tare__check_view, check) + 1,
                                             .at = offsetof(tare__check, count)};

MADE(check_passed, tare__check_view, tare__value_flag(tare__check_passed(row->check)))
MADE(check_gate, tare__check_view, tare__value_number(row->check->base ? row->check->share : NAN))

#define R tare__check_view
static const tare__schema_column check_columns[] = {
    M("passed", FLAG, NOTHING, check_passed, "what the exit status says"),
    T("rerun", check, tare__check, rerun, BOOL, NOTHING,
      "what failed was run again; its values are those of the last runs"),
    T("other_machine", check, tare__check, other_machine, BOOL, NOTHING,
      "the baseline is of another machine, or does not say of which"),
    M("gate", NUMBER, SHARE, check_gate, "what most figures may change by; null: only limits were checked"),
};
#undef R
static const tare__table check_top = {.name = "check", .shape = TARE__SHAPE_TOP, .meaning = "the check",
                                      .columns = check_columns, .n_columns = TARE__COUNT_OF(check_columns)};
static const tare__table check_baseline =
    SIDE(tare__check_view, baseline, "what is checked against; null: only limits were checked");
static const tare__table check_candidate = SIDE(tare__check_view, candidate, "what is checked");
static const tare__table check_warnings = SENTENCES("warnings", tare__check_view, check, tare__check, warnings,
                                                    n_warnings, "what limits the answer");
static const tare__table check_figures = {.name = "figures", .shape = TARE__SHAPE_ROWS,
                                          .meaning = "a figure, what failed first", .columns = checked_columns,
                                          .n_columns = TARE__COUNT_OF(checked_columns),
                                          .row_bytes = sizeof(tare__check_row),
                                          .through = offsetof(tare__check_view, check) + 1,
                                          .at = offsetof(tare__check, rows), .count_at = offsetof(tare__check, n)};

static const tare__table *const check_tables[] = {&check_top, &check_baseline, &check_candidate, &counted_outcomes,
                                                  &check_warnings, &check_figures};
DOCUMENT(check, "tare-check", 1, 1, check_tables);
