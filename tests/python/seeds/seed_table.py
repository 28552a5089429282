"""docs/SEEDS.md: one row a snippet, made of the list and of what its checks came to."""
from typing import Dict, Iterable

from seed_blocks import ROOT
from seed_list import Entry, Key

PATH = ROOT / "docs" / "SEEDS.md"
_HEAD = """\
# The seed documents, snippet by snippet

Five documents say what Tare's Python package has to do. Every fenced block in them is run, or read where it is
configuration or output, by `tests/python/seeds/`, and what came of it is asserted on. This table is written by
`python tests/python/seeds/make_table.py`; a test fails when it is not the truth.

- **passes**: it runs, and what it prints, returns or leaves behind is right. Changed are its import line, which names
  tare, and its placeholders, which are real small models and data; where a document sketches a class that tare
  provides, it is tare's that is used. Snippets that use torch, pandas or matplotlib need it installed. Where torch
  sees no GPU, `.cuda()` in a snippet leaves model and data where they are, and `device="cuda"` is `"cpu"`.
- **passes on a GPU**: without one there is nothing in it to run. `tools/gpu-check` runs these, and all the others once
  more with a GPU, on a machine that has one; elsewhere they are skipped.
- **waits for …**: it needs what is not there yet. What can be had of it today is run all the same.
- **nothing to run**: a block that is neither code nor output.

"""


# What 001 lists as planned or as research: no snippets, but promised all the same. (row, what does it, its test)
PLANNED = (
    ("Custom profiling hooks", "`PerformanceProfiler.add_hook`", "test_extend.py::test_a_hook_measures_around_blocks"),
    ("Custom bottleneck rules", "`bottleneck_rule`, `CodeProfiler.add_rule`, `report(rules=)`",
     "test_extend.py::test_rules_of_epochs_and_of_traces"),
    ("Performance regression detection", "`PerformanceRegressionDetector`",
     "test_production.py::test_a_regression_is_told"),
    ("Automated optimization", "`ModelOptimizer.optimize_model`, `CodeProfiler.benchmark_optimizations`: applied, "
     "measured, kept only where they help", "test_optimize.py::test_what_helps_is_kept_and_really_faster"),
    ("MLflow, Weights & Biases", "`log_to_mlflow`, `log_to_wandb`", "test_extend.py::test_mlflow_gets_the_figures"),
    ("Adaptive profiling", "`AdaptiveProfiler`", "test_extend.py::test_short_blocks_are_measured_now_and_then"),
    ("Predictive modelling", "`measure_scaling`, `ScalingModel`",
     "test_extend.py::test_memory_is_predicted_from_real_measurements"),
    ("Cross-platform comparison", "`compare_reports`", "test_extend.py::test_two_saved_reports_side_by_side"),
    ("Real-time suggestions", "`Suggestions`",
     "test_extend.py::test_suggestions_from_the_trace_that_is_being_written"),
    ("Distributed profiling", "waits for `tare merge`", ""),
)


def _planned() -> str:
    rows = [f"| {row} | {what} | {f'`{test}`' if test else ''} |" for row, what, test in PLANNED]
    return ("\n## What 001 plans\n\nIts lists of planned and of research features have no snippets; what there is of "
            "them:\n\n| feature | state | tested by |\n|---|---|---|\n" + "\n".join(rows) + "\n")


def _count(states: Iterable[str]) -> str:
    counts: Dict[str, int] = {}
    for state in states:
        counts[state] = counts.get(state, 0) + 1
    return "\n".join(f"| {state} | {counts[state]} |" for state in sorted(counts))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def render(entries: Iterable[Entry], failed: Iterable[Key] = ()) -> str:
    """The page's text. A snippet whose check failed is told as failing, whatever the list says."""
    failed = set(failed)
    rows = [(entry.key, "FAILS" if entry.key in failed else entry.state) for entry in entries]
    lines = [f"| {key[0]} | {_cell(key[1])} | {key[2]} | {state} |" for key, state in rows]
    return (_HEAD + "| state | snippets |\n|---|---:|\n" + _count(state for _, state in rows)
            + f"\n| all | {len(rows)} |\n\n| document | heading | number | state |\n|---|---|---:|---|\n"
            + "\n".join(lines) + "\n" + _planned())
