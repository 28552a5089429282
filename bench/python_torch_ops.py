# python_torch_ops: recording torch's operators against torch.profiler with CPU activity, on a small transformer that
# trains: bare, with Tare and with torch.profiler in turn, in one process that records.
# One thread. Must not know how operators are recorded.
"""usage: python bench/python_torch_ops.py"""
import json
import os
import statistics
import subprocess
import sys
import time

import rows
import training
from figures import Figure

TURNS, STEPS = (4, 6) if rows.QUICK else (12, 10)
LARGE_US = 50  # operators this long on average are compared by their time
# What an operator takes is compared where it is not mostly the sum of what its observers add to many small ones.
MODELS = {"small": {}, "wide": {"width": 256, "layers": 2, "samples": 16, "length": 64}}


# ---- the program that trains -------------------------------------------------------------------------------------

def timed(step):
    """CPU seconds of a step: all of it is one thread's, and others on the machine do not count."""
    from_s = time.thread_time()
    step()
    return time.thread_time() - from_s


def with_tare(step):
    """(bare, recorded) seconds: a step each in turn, since a machine changes its speed from one moment to the next."""
    from tare.torch import operators
    bare, recorded = [], []
    for _ in range(STEPS):
        bare.append(timed(step))
        if not operators.start():
            raise RuntimeError(operators.why_not())
        try:
            recorded.append(timed(step))
        finally:
            operators.stop()
    return bare, recorded


def with_torch(step, seen):
    """The same, with bare steps before and after: it cannot be switched at every step."""
    from torch.profiler import ProfilerActivity, profile
    bare = [timed(step) for _ in range(STEPS // 2)]
    profiler = profile(activities=[ProfilerActivity.CPU])
    profiler.start()
    recorded = [timed(step) for _ in range(STEPS)]
    from_s = time.perf_counter()
    profiler.stop()
    table = profiler.key_averages()
    table.table(sort_by="self_cpu_time_total", row_limit=15)
    seen["report_s"].append(time.perf_counter() - from_s)
    for row in table:
        seen["operators"][row.key] = seen["operators"].get(row.key, 0) + row.count
    for event in profiler.events():
        seen["durations_us"].setdefault(event.name, []).append(event.cpu_time_total)
    profiler.export_chrome_trace("torch.json")
    seen["json_bytes"].append(os.path.getsize("torch.json"))
    return bare + [timed(step) for _ in range(STEPS // 2)], recorded


def nothing_seen():
    return {"report_s": [], "operators": {}, "durations_us": {}, "json_bytes": []}


def train(model):
    step = training.same_batch(**MODELS[model])
    seen = nothing_seen()
    turns = {"tare": [], "torch": []}
    for _ in range(5):
        step()
    with_torch(step, nothing_seen())  # its first use sets much up
    for _ in range(TURNS):
        turns["tare"].append(with_tare(step))
        turns["torch"].append(with_torch(step, seen))
    with open("seen.json", "w") as out:
        json.dump({"turns": turns, **seen}, out)


# ---- figures -----------------------------------------------------------------------------------------------------

def tare_command():
    from tare import _command
    return _command.find()


def record(folder, model):
    """(what torch.profiler saw, Tare's report, durations by name, seconds of a report, bytes of the trace)."""
    command, trace = tare_command(), os.path.join(folder, "run.tare")
    env = {key: value for key, value in os.environ.items() if key != "TARE_BENCH_ROWS"}
    subprocess.run([command, "run", "-f", "-q", "--ops", "--no-sampling", "-o", trace, "--", sys.executable,
                    os.path.abspath(__file__), "train", model], cwd=folder, env={**env, "TARE_TORCH": "0"}, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    report_s = []
    for _ in range(5):
        from_s = time.perf_counter()
        subprocess.run([command, "report", trace], check=True, stdout=subprocess.DEVNULL)
        report_s.append(time.perf_counter() - from_s)
    text = subprocess.run([command, "report", "--json", trace], check=True, stdout=subprocess.PIPE, text=True).stdout
    with open(os.path.join(folder, "seen.json")) as seen:
        return (json.load(seen), json.loads(text), durations(command, trace), statistics.median(report_s),
                os.path.getsize(trace))


def durations(command, trace):
    """{name: microseconds of each call}, from the raw stream."""
    found = {}
    stream = subprocess.Popen([command, "report", "--events", trace], stdout=subprocess.PIPE, text=True)
    for line in stream.stdout:
        cells = line.rstrip("\n").split("\t")
        if cells[3] == "end":
            found.setdefault(cells[4], []).append(float(cells[5].partition("=")[2]) / 1000)
    return found


def operators_of(report):
    found = {}
    for row in report["operators"]:
        found[row["name"]] = found.get(row["name"], 0) + row["calls"]
    return found


def typical(values):
    """Their sum without the longest half: a call that lost its core says nothing of the observer."""
    ordered = sorted(values)
    return sum(ordered[:max(len(ordered) // 2, 1)])


def overhead(seen):
    """{mode: what it adds, as a share of a bare step}, each turn against its own bare steps; milliseconds of those."""
    cost = {mode: statistics.median(statistics.median(recorded) / statistics.median(bare) - 1
                                    for bare, recorded in turns)
            for mode, turns in seen["turns"].items()}
    return cost, 1000 * statistics.median(second for bare, _ in seen["turns"]["tare"] for second in bare)


def figures(folder):
    return [*of_small(folder), of_wide(folder)]


def of_wide(folder):
    seen, _, lasted, _, _ = record(folder, "wide")
    away = Figure("operators: time of those of 50 µs and more, away from torch.profiler's", "%", 3)
    pairs = [(typical(lasted[name]), typical(values)) for name, values in seen["durations_us"].items()
             if statistics.median(values) >= LARGE_US and len(lasted.get(name, ())) == len(values)]
    summed = sum(mine for mine, _ in pairs) / sum(other for _, other in pairs)
    each = [mine / other for mine, other in pairs]
    cost, bare_ms = overhead(seen)
    away.add(abs(summed - 1) * 100, f"{len(pairs)} operators, {min(each):.3f} to {max(each):.3f}; captured/bare "
             f"{1 + cost['tare']:.3f}, torch's {1 + cost['torch']:.3f}, of {bare_ms:.1f} ms a step")
    return away


def of_small(folder):
    seen, report, _, report_s, trace_bytes = record(folder, "small")
    ours, theirs = operators_of(report), seen["operators"]
    cost, bare_ms = overhead(seen)
    ratio = Figure("operators: overhead, of torch.profiler's", "x", 0.5)
    ratio.add(cost["tare"] / cost["torch"],
              f"{cost['tare']:.1%} against {cost['torch']:.1%} of {bare_ms:.1f} ms of CPU a step")
    differ = sorted(name for name in set(ours) | set(theirs) if ours.get(name, 0) != theirs.get(name, 0))
    told = [f"{name} {ours.get(name, 0)} for {theirs.get(name, 0)}" for name in differ]
    counts = Figure("operators: names with other counts than torch.profiler's", "", 0)
    counts.add(len(differ), f"of {len(theirs)}" + (": " + ", ".join(told[:4]) if told else ""))
    smaller = Figure("operators: file smaller than torch.profiler's JSON", "x", 20, at_least=True)
    smaller.add(sum(seen["json_bytes"]) / trace_bytes, f"{trace_bytes / 1024:.0f} KiB for {TURNS * STEPS} steps")
    faster = Figure("operators: stop to report, faster than torch.profiler", "x", 10, at_least=True)
    faster.add(sum(seen["report_s"]) / report_s, f"{report_s * 1000:.0f} ms for {TURNS * STEPS} steps")
    return [ratio, counts, smaller, faster]


if __name__ == "__main__":
    training.main(Figure("operators of torch", ""), train, figures)
