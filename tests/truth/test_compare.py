"""Comparisons and checks: every number of their JSON against arithmetic on inputs that are known exactly
(reference.py)."""
import json
import math
import os
import random

import numpy
import pytest

import reference
from truth import Figure, exact, relative

WHOLE = ("run.", "step", "epoch", "model.")
PARTS = ("span:", "layer:", "operator:", "kernel:")
DIGITS = relative(1e-5)  # six digits are written
BY_PAIRS = "all pairs of the samples in the input files"
SIDES = "arithmetic on the input files"

TABLES = "arithmetic on the tables of both runs"

FIGURES = [
    Figure("compare:figures[].baseline", "value of a figure before: the median", "numpy.median", relative(1e-12)),
    Figure("compare:figures[].candidate", "value of a figure after: the median", "numpy.median", relative(1e-12)),
    Figure("compare:figures[].baseline_total", "its total before; of several runs their mean", SIDES, relative(1e-12)),
    Figure("compare:figures[].candidate_total", "its total after; of several runs their mean", SIDES, relative(1e-12)),
    Figure("compare:figures[].baseline_n", "calls behind it before, of all runs", SIDES, exact),
    Figure("compare:figures[].candidate_n", "calls behind it after, of all runs", SIDES, exact),
    Figure("compare:figures[].baseline_samples", "samples of the baseline that were tested", SIDES, exact),
    Figure("compare:figures[].candidate_samples", "samples of the candidate that were tested", SIDES, exact),
    Figure("compare:figures[].cost", "what the change adds to the run", SIDES, relative(1e-9)),
    Figure("compare:figures[].change", "candidate over baseline, less 1; of pairs their Hodges-Lehmann ratio", SIDES,
           DIGITS),
    Figure("compare:figures[].low", "lower end of the 95 % interval of the change",
           "ratios that the test does not reject", DIGITS),
    Figure("compare:figures[].high", "upper end of the 95 % interval of the change",
           "ratios that the test does not reject", DIGITS),
    Figure("compare:figures[].p", "p of Mann-Whitney's test; of pairs Wilcoxon's", "all orders, all signs; SciPy",
           DIGITS),
    Figure("compare:figures[].p_adjusted", "p corrected for testing many", "Benjamini-Hochberg's definition; SciPy",
           DIGITS),
    Figure("compare:figures[].effect", "Cliff's delta; of one run among several its place", BY_PAIRS, DIGITS),
    Figure("compare:only_baseline[].value", "value of a figure that only the baseline has", SIDES, exact),
    Figure("compare:only_baseline[].total", "its total", SIDES, exact),
    Figure("compare:only_baseline[].n", "calls behind it", SIDES, exact),
    Figure("compare:only_candidate[].value", "value of a figure that only the candidate has", SIDES, exact),
    Figure("compare:only_candidate[].total", "its total", SIDES, exact),
    Figure("compare:only_candidate[].n", "calls behind it", SIDES, exact),
    Figure("compare:functions[].baseline", "share of a function's self time before", TABLES, relative(1e-6)),
    Figure("compare:functions[].candidate", "share of a function's self time after", TABLES, relative(1e-6)),
    Figure("compare:functions[].change", "difference of the shares", TABLES, relative(1e-6)),
    *[Figure("compare:counts." + word, f"figures with the verdict {word}",
             "the rule of docs/CHECK.md on the values above", exact)
      for word in ("worse", "better", "different", "inconclusive", "same")],
    Figure("compare:ab.rounds", "rounds made", "traces in the folder of --keep", exact),
    Figure("compare:ab.rounds_max", "rounds at most", "--rounds", exact),
    Figure("compare:ab.change", "ratio of elapsed times, less 1", "all averages of pairs of the kept traces", DIGITS),
    Figure("compare:ab.low", "lower end of its interval, at the level of this round", "all averages, all signs",
           DIGITS),
    Figure("compare:ab.high", "upper end of its interval, at the level of this round", "all averages, all signs",
           DIGITS),
    Figure("compare:ab.p", "p of Wilcoxon's signed ranks", "all signs; SciPy", DIGITS),
    Figure("compare:ab.p_needed", "what p has to reach after this round", "Lan-DeMets spending, integrated on a grid",
           relative(1e-3)),
    Figure("check:figures[].baseline", "value of a figure in the baseline", "numpy.median", relative(1e-12)),
    Figure("check:figures[].candidate", "value of a figure now", "numpy.median", relative(1e-12)),
    Figure("check:figures[].change", "now over baseline, less 1", SIDES, DIGITS),
    Figure("check:figures[].low", "lower end of the 95 % interval of the change",
           "ratios that the test does not reject", DIGITS),
    Figure("check:figures[].high", "upper end of the 95 % interval of the change",
           "ratios that the test does not reject", DIGITS),
    Figure("check:figures[].p", "p of Mann-Whitney's test", "all orders; SciPy", DIGITS),
    Figure("check:figures[].p_adjusted", "p corrected for testing many", "Benjamini-Hochberg's definition; SciPy",
           DIGITS),
    Figure("check:figures[].effect", "how often now is above baseline, less how often below", BY_PAIRS, DIGITS),
    Figure("check:figures[].baseline_samples", "values of the baseline that were tested", SIDES, exact),
    Figure("check:figures[].candidate_samples", "values of now that were tested", SIDES, exact),
    *[Figure("check:counts." + word, f"figures with the outcome {word}",
             "the rule of docs/CHECK.md on the values above", exact)
      for word in ("failed", "inconclusive", "cleared", "changed", "improved", "passed", "absent")],
]


# ---- input files ---------------------------------------------------------------------------------------------
def figure(name, value=None, unit="ns", better="lower", **more):
    row = {"name": name, "unit": unit, "better": better, "exact": False, "value": value, "total": value, "n": 1, **more}
    return {key: row[key]
            for key in ("name", "unit", "better", "exact", "value", "total", "n", "per", "each", "samples")
            if key in row}


def write(bench, name, figures, **more):
    path = bench.folder / name
    path.write_text(json.dumps({"tare_baseline": 1, "kind": "run", "command": "python3 train.py", "host": "box",
                                "machine": "0123456789abcdef", "runs": 1, "notes": [], "figures": figures, **more}))
    return path


def noisy(draw, middle, noise):
    return round(middle * math.exp(draw.gauss(0, noise)))


def many_runs(seed, runs, faster):
    """Runs of a program; `faster` has a factor for some figures."""
    draw = random.Random(seed)
    made = []
    for run in range(runs):
        def value(name, middle, noise):
            return noisy(draw, middle * faster.get(name, 1), noise)

        elapsed, cpu, steps = value("run.elapsed", 9e9, 0.01), value("run.cpu", 7e9, 0.02), 40 + run
        step = value("step", 2e8, 0.03)
        rows = [figure("run.elapsed", elapsed), figure("run.cpu", cpu),
                figure("run.peak_rss", value("run.peak_rss", 3e9, 0.001), "bytes"),
                figure("run.io_write", [0, 4096, 8192][draw.randrange(3)] * (1 + 3 * ("run.io_write" in faster)),
                       "bytes"),
                figure("step", step, total=step * steps, n=steps),
                figure("step.samples/s", value("step.samples/s", 800, 0.01), "", "higher"),
                figure("model.macs", 123456789 + 1000 * ("model.macs" in faster), "", exact=True),
                figure("model.unit", 5, "ms" if "model.unit" in faster else "s"),
                figure("model.none", None if "model.none" in faster else 5, "s", total=None),
                figure("counter:loss", value("counter:loss", 1e6, 0.002), "", "neither"),
                figure("metric:gpu.busy[GPU 0]", draw.randrange(60, 66) - 12 * ("metric:gpu.busy" in faster), "%",
                       "higher"),
                figure("metric:memory.rss", value("metric:memory.rss", 2e9, 0.01), "bytes")]
        for i, name in enumerate(("span:load", "span:train/forward", "layer:encoder.0", "layer:encoder.1",
                                  "operator:aten::mm", "operator:aten::add", "kernel:gemm", "kernel:tiny")):
            calls = (i + 1) * steps
            one = value(name, 500 if name == "kernel:tiny" else 1e6 * (i + 1), 0.02 * (i + 1))
            rows.append(figure(name, one, total=one * calls, n=calls))
        made.append(rows)
    return made


FASTER = {"run.elapsed": 1.2, "run.cpu": 0.85, "run.io_write": 1, "model.macs": 1, "model.unit": 1, "model.none": 1,
          "counter:loss": 1.1, "metric:gpu.busy": 1, "span:train/forward": 1.09, "layer:encoder.0": 1.12,
          "operator:aten::mm": 0.8, "kernel:gemm": 1.3, "kernel:tiny": 1.6, "step.samples/s": 1.01}


def join(runs):
    """One figure of several runs: its value is their median, a sample is of a run."""
    joined = {}
    for name in dict.fromkeys(row["name"] for rows in runs for row in rows):
        rows = [row for some in runs for row in some if row["name"] == name and row["value"] is not None]
        first = [row for some in runs for row in some if row["name"] == name][0]
        values = [row["value"] for row in rows]
        totals = [row["total"] for row in rows]
        joined[name] = {**first, "value": float(numpy.median(values)) if values else None, "samples": values,
                        "total": sum(totals) / len(totals) if totals and None not in totals else None,
                        "n": sum(row["n"] for row in rows), "per": "run", "each": 1}
    return joined


def coarser(samples, by):
    return [sum(samples[i:i + by]) / by for i in range(0, len(samples) - by + 1, by)]


def alone(rows):
    """One run: its value, else the median of its samples."""
    return {row["name"]: {**row,
                          "value": row["value"] if row["value"] is not None else float(numpy.median(row["samples"]))}
            for row in rows}


def blocks(samples):
    edges = [len(samples) * i // 20 for i in range(21)]
    return [float(numpy.median(samples[a:b])) for a, b in zip(edges, edges[1:])] if len(samples) > 20 else samples


# ---- what has to come out ------------------------------------------------------------------------------------
def family(name):
    return "whole" if name.startswith(WHOLE) else "parts" if name.startswith(PARTS) else "others"


def aligned(base, head):
    """Samples that are tested; without any where these are of different things."""
    if base["exact"] and head["exact"] or base["unit"] != head["unit"] or base.get("per") != head.get("per"):
        return [], []
    one, other = base.get("samples", []), head.get("samples", [])
    if not one or not other:
        return [], []
    each = max(base["each"], head["each"])
    one, other = coarser(one, each // base["each"]), coarser(other, each // head["each"])
    return (one, other) if base["per"] == "run" else (blocks(one), blocks(other))


def floor_of(row):
    if row["exact"] or family(row["name"]) == "parts":
        return 0
    return {"ns": 1000, "bytes": 2 ** 20}.get(row["unit"], 0)


def verdict(base, head, row, gate):
    """The rule of docs/CHECK.md."""
    n, m = row["baseline_samples"], row["candidate_samples"]
    change = row["change"]
    if base["unit"] != head["unit"] or change is None:
        return "inconclusive"
    enough = row["p"] is not None and 2 / math.comb(n + m, n) <= 0.02
    if not base["exact"] and not enough:
        return "inconclusive"
    gate = 0 if base["exact"] else gate
    if abs(change) <= gate or change == 0 or abs(head["value"] - base["value"]) <= floor_of(base):
        return "same"
    if not base["exact"]:
        apart = row["low"] > 0 or row["high"] < 0 if row["low"] is not None else row["effect"] * change > 0
        if row["p_adjusted"] > 0.02 or not apart:
            return "same"
    if base["better"] == "neither":
        return "different"
    return "worse" if (change > 0) == (base["better"] == "lower") else "better"


def change_of(base, head):
    if base["value"] is None or head["value"] is None:
        return None
    if base["value"] == head["value"]:
        return 0
    return (head["value"] - base["value"]) / abs(base["value"]) if base["value"] else None  # infinite is not in JSON


def expected(base, head, gate, named=()):
    """Every number of every row, and the verdicts."""
    rows, calls = {}, []
    for name in base:
        if name not in head:
            continue
        one, other = aligned(base[name], head[name])
        row = {"baseline": base[name]["value"], "candidate": head[name]["value"], "baseline_samples": len(one),
               "candidate_samples": len(other), "change": change_of(base[name], head[name]),
               "low": None, "high": None, "p": None, "effect": None}
        if one:
            row["p"], row["effect"] = reference.mann_whitney(one, other), reference.cliffs_delta(one, other)
            ties = len(set(one + other)) < len(one + other)
            calls.append((row["p"], ["mannwhitneyu", [one, other, "asymptotic" if ties else "exact"]]))
            interval = reference.ratio_interval(one, other) if min(one + other) > 0 else None
            if interval:
                row["low"], row["high"] = min(interval[0], row["change"]), max(interval[1], row["change"])
        row["p_adjusted"] = row["p"]
        rows[name] = row
    for part in ("parts", "others"):
        names = [name for name in rows if family(name) == part and rows[name]["p"] is not None and name not in named]
        values = [rows[name]["p"] for name in names]
        adjusted = reference.benjamini_hochberg(values)
        if values:
            calls.append((adjusted, ["benjamini_hochberg", [values]]))
        for name, p in zip(names, adjusted):
            rows[name]["p_adjusted"] = p
    theirs = reference.by_scipy([call for _, call in calls])
    if theirs:
        for (own, call), other in zip(calls, theirs):
            assert numpy.allclose(own, other, rtol=1e-9), call
    for name, row in rows.items():
        row["verdict"] = verdict(base[name], head[name], row, gate)
    return rows


def hold(truth, prefix, shown, row, names):
    for key, of in names.items():
        if row[of] is None:
            assert shown[key] is None, (shown["name"], key, shown[key])
        else:
            truth.check(f"{prefix}:figures[].{key}", shown=shown[key], true=row[of])


COMPARED = {key: key for key in ("baseline", "candidate", "baseline_samples", "candidate_samples", "change", "low",
                                 "high", "p", "p_adjusted",
                                 "effect", "baseline_n", "candidate_n", "baseline_total", "candidate_total", "cost")}
CHECKED = {key: key for key in ("baseline", "candidate", "change", "low", "high", "p", "p_adjusted", "effect",
                                "baseline_samples", "candidate_samples")}


def hold_comparison(truth, done, base, head, rows):
    shown = {row["name"]: row for row in done["figures"]}
    assert set(shown) == set(rows)
    for name, row in rows.items():
        one, other = base[name], head[name]
        in_steps = one.get("per") == "step"
        if in_steps:
            cost = (other["value"] - one["value"]) * len(one["samples"]) * one["each"]
        else:
            cost = None if one["total"] is None or other["total"] is None else other["total"] - one["total"]
        row = {**row, "baseline_n": one["n"], "candidate_n": other["n"], "baseline_total": one["total"],
               "candidate_total": other["total"], "cost": cost}
        hold(truth, "compare", shown[name], row, COMPARED)
        assert shown[name]["verdict"] == row["verdict"], (name, row)
    for word in ("worse", "better", "different", "inconclusive", "same"):
        truth.check("compare:counts." + word, shown=done["counts"][word],
                    true=sum(row["verdict"] == word for row in rows.values()))


@pytest.fixture
def runs(bench):
    """Files of 6 runs before and 7 after, with what is in them."""
    before, after = many_runs(1, 6, {}), many_runs(101, 7, FASTER)
    before = [[*rows, figure("run.energy", 50 + i, "J"), figure("span:old", 7 * i + 3, n=i + 1)]
              for i, rows in enumerate(before)]
    after = [[*rows, figure("span:new", 100 + i, n=2, total=200 + i)] for i, rows in enumerate(after)]
    files = {side: [write(bench, f"{side}{i}.json", rows) for i, rows in enumerate(some)]
             for side, some in (("before", before), ("after", after))}
    return files, join(before), join(after)


def compare(bench, *words):
    return json.loads(bench.call(bench.command, "compare", "--json", *words).out)


def test_several_runs(bench, truth, runs):
    files, base, head = runs
    done = compare(bench, "--baseline", *files["before"], "--candidate", *files["after"])
    rows = expected(base, head, 0.05)
    words = [row["verdict"] for row in rows.values()]
    assert set(words) == {"worse", "better", "different", "same", "inconclusive"}, "the inputs have all kinds"
    assert any(row["p"] <= 0.02 < row["p_adjusted"] for row in rows.values() if row["p"] is not None)
    hold_comparison(truth, done, base, head, rows)
    for side, mine, other in (("only_baseline", base, head), ("only_candidate", head, base)):
        assert {row["name"] for row in done[side]} == set(mine) - set(other) and done[side]
        for row in done[side]:
            for key in ("value", "total", "n"):
                truth.check(f"compare:{side}[].{key}", shown=row[key], true=mine[row["name"]][key])


def one_run(seed, factor, steps):
    draw = random.Random(seed)
    times = [noisy(draw, 3e7 * factor, 0.05) for _ in range(steps)]
    parts = [noisy(draw, 8e6 * factor ** 3, 0.04) for _ in range(steps)]
    few = [noisy(draw, 5e5, 0.1) for _ in range(9)]
    by = 2 if steps > 1000 else 1  # a file has at most 1,000 samples: means of two
    return [figure("run.elapsed", sum(times) + 10 ** 9),
            figure("step", float(numpy.median(times)), total=sum(times), n=steps, per="call", each=by,
                   samples=coarser(times, by)),
            figure("span:train/forward", None, total=sum(parts), n=3 * steps, per="step", each=by,
                   samples=coarser(parts, by)),
            figure("span:save", float(numpy.median(few)), total=sum(few), n=9, per="call", each=1, samples=few),
            figure("counter:zero", 0, "", "neither", total=None, n=25, per="value", each=1,
                   samples=[float(draw.randrange(3)) for _ in range(25)])]


def test_one_run_a_side(bench, truth):
    """Medians of 20 blocks; samples of one step against means of two."""
    before, after = one_run(3, 1, 1500), one_run(4, 1.1, 415)
    done = compare(bench, write(bench, "before.json", before), write(bench, "after.json", after))
    base, head = alone(before), alone(after)
    rows = expected(base, head, 0.10)
    assert rows["step"]["baseline_samples"] == rows["step"]["candidate_samples"] == 20
    hold_comparison(truth, done, base, head, rows)


def test_one_run_among_several(bench, truth):
    before = many_runs(5, 6, {})
    after = one_run(6, 1, 50)
    done = compare(bench, "--baseline", *[write(bench, f"{i}.json", rows) for i, rows in enumerate(before)],
                   "--candidate",
                   write(bench, "one.json", after))
    base = join(before)
    for row in done["figures"]:
        if row["name"] in ("run.elapsed", "step"):
            one, many = alone(after)[row["name"]]["value"], base[row["name"]]["samples"]
            truth.check("compare:figures[].effect", shown=row["effect"],
                        true=(sum(value < one for value in many) - sum(value > one for value in many)) / len(many))
            truth.check("compare:figures[].baseline_samples", shown=row["baseline_samples"], true=6)
            truth.check("compare:figures[].candidate_samples", shown=row["candidate_samples"], true=1)
            assert row["p"] is None and row["verdict"] == "inconclusive"


# ---- two commands in turn ------------------------------------------------------------------------------------
def hold_pairs(bench, truth, done, folder, most):
    def figures(trace):
        path = bench.folder / "one.json"
        bench.call(bench.command, "baseline", "save", "-q", trace, "-o", path)
        return json.loads(path.read_text())["figures"]

    sides = [[figures(trace) for trace in sorted(folder.glob(side + ".*.tare"))] for side in ("baseline", "candidate")]
    n = len(sides[0])
    assert len(sides[1]) == n
    base, head = map(join, sides)
    before, after = base["run.elapsed"]["samples"], head["run.elapsed"]["samples"]
    ab, needed = done["ab"], reference.levels(most).get(n)
    truth.check("compare:ab.rounds", shown=ab["rounds"], true=n)
    truth.check("compare:ab.rounds_max", shown=ab["rounds_max"], true=most)
    truth.check("compare:ab.change", shown=ab["change"], true=reference.paired_ratio(before, after))
    p = reference.wilcoxon(before, after)
    theirs = reference.by_scipy([["wilcoxon", [[math.log(h / b) for b, h in zip(before, after)]]]])
    assert theirs is None or math.isclose(theirs[0], p, rel_tol=1e-9)
    truth.check("compare:ab.p", shown=ab["p"], true=p)
    truth.check("compare:ab.p_needed", shown=ab["p_needed"], true=needed)
    interval = reference.paired_interval(before, after, ab["p_needed"])
    truth.check("compare:ab.low", shown=ab["low"], true=interval[0])
    truth.check("compare:ab.high", shown=ab["high"], true=interval[1])
    for row in done["figures"]:  # the one that decides, and those that are tested once
        one, other = base[row["name"]]["samples"], head[row["name"]]["samples"]
        if len(one) != n or len(other) != n or not one or min(one + other) <= 0 or row["exact"]:
            continue
        decides = row["name"] == "run.elapsed"
        interval = reference.paired_interval(one, other, ab["p_needed"] if decides else 0.05)
        truth.check("compare:figures[].p", shown=row["p"], true=reference.wilcoxon(one, other))
        truth.check("compare:figures[].change", shown=row["change"], true=reference.paired_ratio(one, other))
        truth.check("compare:figures[].low", shown=row["low"], true=interval[0])
        truth.check("compare:figures[].high", shown=row["high"], true=interval[1])
        truth.check("compare:figures[].effect", shown=row["effect"], true=reference.cliffs_delta(one, other))
        truth.check("compare:figures[].baseline", shown=row["baseline"], true=base[row["name"]]["value"])
    return p, needed


def test_two_commands_that_differ(bench, truth):
    done = compare(bench, "--ab", "-q", "--rounds", "12", "--warmup", "0", "--keep", bench.folder / "kept",
                   "sleep 0.01", "sleep 0.3")
    p, needed = hold_pairs(bench, truth, done, bench.folder / "kept", 12)
    assert done["ab"]["clear"] and p <= needed


def test_two_commands_that_do_not(bench, truth):
    """All rounds, with --min-change 0, and the level after four looks (a false alarm may end it before)."""
    done = compare(bench, "--ab", "-q", "--rounds", "12", "--warmup", "0", "--min-change", "0%", "--keep",
                   bench.folder / "kept", "true", "true")
    p, needed = hold_pairs(bench, truth, done, bench.folder / "kept", 12)
    assert done["ab"]["clear"] == (p <= needed) and (p <= needed or done["ab"]["rounds"] == 12)


# ---- checks --------------------------------------------------------------------------------------------------
MAIN = ("run.elapsed", "run.cpu", "run.peak_rss", "step", "model.")


def outcome(name, base, head, row, gate, named):
    if row is None or row["change"] is None and base["unit"] == head["unit"]:
        return "absent"
    gated = name in named or base["better"] != "neither" and (name.startswith(MAIN) or base["exact"])
    if row["verdict"] == "worse":
        return "failed" if gated else "changed"
    if row["verdict"] == "different":
        return "failed" if name in named else "changed"
    if row["verdict"] == "better":
        return "improved"
    if row["verdict"] == "inconclusive" and gated:
        worse = row["change"] > 0 if base["better"] == "lower" else row["change"] < 0
        if base["unit"] != head["unit"] or worse and abs(row["change"]) > gate:
            return "inconclusive"
    return "passed"


def hold_check(truth, done, base, head, rows, gate, named=()):
    shown = {row["name"]: row for row in done["figures"]}
    assert set(shown) == set(base) | set(head)
    counts = dict.fromkeys(done["counts"], 0)
    for name in shown:
        if name in rows:
            hold(truth, "check", shown[name], rows[name], CHECKED)
        else:
            assert shown[name]["p"] is None and shown[name]["change"] is None
        counts[outcome(name, base.get(name), head.get(name), rows.get(name), gate, named)] += 1
    for word, count in counts.items():
        truth.check("check:counts." + word, shown=done["counts"][word], true=count)
    return counts


def test_check(bench, truth, runs):
    files, base, head = runs
    baseline = bench.folder / "baseline.json"
    bench.call(bench.command, "baseline", "save", "-q", *files["before"], "-o", baseline)
    done = json.loads(bench.call(bench.command, "check", "--json", "-b", baseline, *files["after"], status=1).out)
    counts = hold_check(truth, done, base, head, expected(base, head, 0.05), 0.05)
    assert all(counts[word] for word in counts if word != "cleared"), counts


def test_check_of_a_span_that_a_threshold_names(bench, truth, runs):
    """It is no longer one of many."""
    files, base, head = runs
    baseline = bench.folder / "baseline.json"
    bench.call(bench.command, "baseline", "save", "-q", *files["before"], "-o", baseline)
    done = json.loads(bench.call(bench.command, "check", "--json", "-b", baseline, "-t", "span:train/forward:5%",
                                 *files["after"], status=1).out)
    named = ("span:train/forward",)
    rows = expected(base, head, 0.05, named)
    assert rows[named[0]]["p"] == rows[named[0]]["p_adjusted"]
    hold_check(truth, done, base, head, rows, 0.05, named)


def test_check_of_one_run(bench, truth):
    before, after = one_run(7, 1, 300), one_run(8, 1.2, 300)
    done = json.loads(bench.call(bench.command, "check", "--json", "-b", write(bench, "before.json", before),
                                 write(bench, "after.json", after), status=1).out)
    base, head = alone(before), alone(after)
    counts = hold_check(truth, done, base, head, expected(base, head, 0.10), 0.10)
    assert counts["failed"] and counts["inconclusive"], counts


def test_a_figure_that_another_run_clears(bench, truth):
    slow = write(bench, "slow.json", [figure("run.elapsed", 10 ** 12)])
    done = json.loads(bench.call(bench.command, "check", "--json", "-t", "run.elapsed:600s", "--rerun", "true",
                                 slow).out)
    truth.check("check:counts.cleared", shown=done["counts"]["cleared"], true=1)


# ---- functions of stack samples ---------------------------------------------------------------------------
MIXED = """
import sys, time
def one(until):
    while time.perf_counter() < until: pass
def other(until):
    while time.perf_counter() < until: pass
share = float(sys.argv[1])
begin = time.perf_counter()
one(begin + share)
other(begin + 1)
"""


def test_functions_of_two_runs(bench, truth):
    """Against the shares in the tables of each run, which tests of stacks compare with the truth."""
    sides = []
    for name, share in (("before", "0.8"), ("after", "0.2")):
        done = bench.measured(MIXED, share)
        done.trace.rename(bench.folder / (name + ".tare"))
        sides.append({})
        for row in done.json["functions"]:
            key = (row["function"], os.path.basename(row["file"] or ""))
            sides[-1][key] = sides[-1].get(key, 0) + (row["self_share"] or 0)
    rows = {(row["function"], row["file"]): row
            for row in compare(bench, bench.folder / "before.tare", bench.folder / "after.tare")["functions"]}
    keys = {key for key in set(sides[0]) | set(sides[1])
            if abs(sides[1].get(key, 0) - sides[0].get(key, 0)) >= 0.0025}
    assert set(rows) == keys and {("one", "script.py"), ("other", "script.py")} <= keys
    for key, row in rows.items():
        before, after = (side.get(key, 0) for side in sides)
        truth.check("compare:functions[].baseline", shown=row["baseline"], true=before)
        truth.check("compare:functions[].candidate", shown=row["candidate"], true=after)
        truth.check("compare:functions[].change", shown=row["change"], true=after - before)
