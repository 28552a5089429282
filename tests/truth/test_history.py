"""The history: numbers of `tare history list`, `show` and `trend` against the runs that were put into it, whose values
are known exactly, and against a covariance matrix written out for p of a change (reference.py)."""
import json
import random
import time

import numpy

import reference
from truth import Figure, bracketed, exact, relative

FILE = "the imported file"
FIGURES = [
    Figure("history:runs[].elapsed_ns", "time the run took",
           "the imported file; a clock inside and outside of a real run", bracketed()),
    Figure("history:run.elapsed_ns", "time the run took", FILE, exact),
    Figure("history:figures.figures[].value", "value of a figure", FILE, exact),
    Figure("history:figures.figures[].total", "its total", FILE, exact),
    Figure("history:figures.figures[].n", "calls behind it", FILE, exact),
    Figure("history:figures.figures[].samples[]", "its samples; of more than 128 means of neighbours", FILE,
           relative(1e-12)),
    Figure("history:trends[].points[].value", "value of the figure in a run", FILE, exact),
    Figure("history:trends[].last", "value of the figure in the last run", FILE, exact),
    Figure("history:trends[].last_change", "the last change of its level", "numpy.median", relative(1e-10)),
    Figure("history:trends[].changes[].change", "new level over the one before, less 1", "numpy.median",
           relative(1e-10)),
    Figure("history:trends[].revisions[].at", "first point of a revision", "order of the imported runs", exact),
    Figure("history:trends[].revisions[].runs", "runs of a revision", FILE, exact),
    Figure("history:trends[].revisions[].value", "their median", "numpy.median", relative(1e-12)),
    Figure("history:trends[].revisions[].min", "the least of them", FILE, exact),
    Figure("history:trends[].revisions[].max", "the most of them", FILE, exact),
    Figure("history:trends[].changes[].at", "first point on a new level", "where the values were made to change",
           exact),
    Figure("history:trends[].changes[].before", "median of the revisions on the level before", "numpy.median",
           relative(1e-12)),
    Figure("history:trends[].changes[].after", "median of the revisions on the new level", "numpy.median",
           relative(1e-12)),
    Figure("history:trends[].changes[].p", "p of the change against noise that may drift",
           "generalized least squares with the covariance written out; SciPy", relative(1e-4)),
]


def figure(name, value, **more):
    return {"name": name, "unit": "ns", "better": "lower", "exact": False, "value": value, "total": value, "n": 1,
            **more}


def line(number, figures, revision=None, dirty=False, elapsed=None):
    when = 1790000000 * 10 ** 9 + number * 60 * 10 ** 9
    head = {"command": "python3 train.py", "host": "box", "cpu_model": "cpu", "machine": "0123456789abcdef",
            "revision": revision, "when_ns": when}
    return json.dumps({
        "schema": {"name": "tare-history", "version": 1},
        "run": {"id": "%032x" % (number + 1), "kind": "run", "directory": "/x", "dirty": dirty, "exit_status": 0,
                "elapsed_ns": elapsed, "tags": [], **head},
        "figures": {"tare_baseline": 1, "kind": "run", "runs": 1, "notes": [], "figures": figures, **head}})


def fill(bench, lines):
    path = bench.folder / "runs.jsonl"
    path.write_text("\n".join(lines) + "\n")
    bench.call(bench.command, "history", "import", path)


def ask(bench, *words):
    return json.loads(bench.call(bench.command, "history", *words, "--json").out)


def test_runs_and_their_figures(bench, truth):
    draw = random.Random(1)
    elapsed = [draw.randrange(10 ** 6, 10 ** 12) for _ in range(12)]
    samples = [draw.randrange(10 ** 6, 10 ** 7) for _ in range(301)]
    few = [draw.random() for _ in range(128)]
    rows = [figure("run.elapsed", elapsed[-1]),
            figure("step", 5000001.5, total=1.75e9, n=301, per="call", each=1, samples=samples),
            figure("counter:loss", 0.1, total=0.3, n=128, per="value", each=1, samples=few)]
    fill(bench, [line(i, rows, elapsed=value) for i, value in enumerate(elapsed)])
    listed = ask(bench, "list")["runs"]
    truth.check("history:runs[].elapsed_ns", shown=[row["elapsed_ns"] for row in listed],
                true=[(value, value) for value in reversed(elapsed)])
    shown = ask(bench, "show", "last")
    truth.check("history:run.elapsed_ns", shown=shown["run"]["elapsed_ns"], true=elapsed[-1])
    kept = {row["name"]: row for row in shown["figures"]["figures"]}
    assert set(kept) == {row["name"] for row in rows}
    for row in rows:
        for key in ("value", "total", "n"):
            truth.check(f"history:figures.figures[].{key}", shown=kept[row["name"]][key], true=row[key])
    by = 4  # 301 in twos are 150, still more than 128
    assert kept["step"]["each"] == by and kept["counter:loss"]["each"] == 1
    truth.check("history:figures.figures[].samples[]", shown=kept["step"]["samples"],
                true=[sum(samples[i * by:i * by + by]) / by for i in range(75)])
    truth.check("history:figures.figures[].samples[]", shown=kept["counter:loss"]["samples"], true=few)


def test_time_of_a_real_run(bench, truth):
    """A clock in the program begins later and ends before, one around the command begins earlier and ends after."""
    code = "import sys, time; a = time.monotonic_ns(); time.sleep(0.3); print(time.monotonic_ns() - a)"
    start = time.monotonic_ns()
    done = bench.call(bench.command, "run", "-q", "--", "python3", "-c", code, hooked=True)
    outside = time.monotonic_ns() - start
    truth.check("history:runs[].elapsed_ns", shown=ask(bench, "list")["runs"][0]["elapsed_ns"],
                true=(int(done.out.split()[-1]), outside))


def hold_trend(truth, trend, groups, changes):
    """`groups`: values of the runs of each revision, in order; `changes`: the groups at which a level begins."""
    first = [sum(len(group) for group in groups[:i]) for i in range(len(groups))]
    middle = [float(numpy.median(group)) for group in groups]
    truth.check("history:trends[].points[].value", shown=[row["value"] for row in trend["points"]],
                true=[value for group in groups for value in group])
    for key, true in (("at", first), ("runs", [len(group) for group in groups]), ("value", middle),
                      ("min", [min(group) for group in groups]), ("max", [max(group) for group in groups])):
        truth.check(f"history:trends[].revisions[].{key}", shown=[row[key] for row in trend["revisions"]], true=true)
    truth.check("history:trends[].changes[].at", shown=[row["at"] for row in trend["changes"]],
                true=[first[at] for at in changes])
    edges = [0, *changes, len(groups)]
    levels = [float(numpy.median(middle[a:b])) for a, b in zip(edges, edges[1:])]
    truth.check("history:trends[].changes[].before", shown=[row["before"] for row in trend["changes"]],
                true=levels[:-1])
    truth.check("history:trends[].changes[].after", shown=[row["after"] for row in trend["changes"]], true=levels[1:])
    shares = [after / before - 1 for before, after in zip(levels, levels[1:])]
    truth.check("history:trends[].changes[].change", shown=[row["change"] for row in trend["changes"]], true=shares)
    if shares:
        truth.check("history:trends[].last_change", shown=trend["last_change"], true=shares[-1])
    else:
        assert trend["last_change"] is None
    truth.check("history:trends[].last", shown=trend["last"], true=groups[-1][-1])
    truth.check("history:trends[].changes[].p", shown=[row["p"] for row in trend["changes"]],
                true=reference.step_p(middle, changes))


def test_a_step_in_plain_noise(bench, truth):
    draw = random.Random(2)
    values = [round(1e9 * (1 if i < 14 else 1.15) * (1 + draw.uniform(-0.03, 0.03))) for i in range(25)]
    fill(bench, [line(i, [figure("run.elapsed", value)], f"{i:040x} on main") for i, value in enumerate(values)])
    trend, = ask(bench, "trend", "run.elapsed")["trends"]
    hold_trend(truth, trend, [[value] for value in values], [14])


def test_two_steps_and_runs_of_one_revision(bench, truth):
    """Three runs a revision, made in turn, so that runs of one revision lie apart; the level moves twice, not by much
    more than the noise."""
    draw = random.Random(5)
    levels = [1e8] * 9 + [1.12e8] * 8 + [1.02e8] * 9
    groups = [[round(level * (1 + draw.uniform(-0.04, 0.04))) for _ in range(1 + i % 3)]
              for i, level in enumerate(levels)]
    # All first runs come first.
    runs = sorted((turn, i) for i, group in enumerate(groups) for turn in range(len(group)))
    fill(bench, [line(number, [figure("step", groups[i][turn])], f"{i + 1:040x} on main")
                 for number, (turn, i) in enumerate(runs)])
    trend, = ask(bench, "trend", "step")["trends"]
    hold_trend(truth, trend, groups, [9, 17])


def test_runs_of_changed_files_stand_alone(bench, truth):
    values = [100 + i for i in range(8)]
    fill(bench, [line(i, [figure("step", value)], "a" * 40 + " on main", dirty=i % 2 == 1)
                 for i, value in enumerate(values)])
    trend, = ask(bench, "trend", "step")["trends"]
    assert trend["changes"] == []
    groups = [[100, 102, 104, 106], [101], [103], [105], [107]]
    truth.check("history:trends[].points[].value", shown=[row["value"] for row in trend["points"]],
                true=[value for group in groups for value in group])
    truth.check("history:trends[].revisions[].value", shown=[row["value"] for row in trend["revisions"]],
                true=[103, 101, 103, 105, 107])
