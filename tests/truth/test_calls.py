"""profile_function, detect_memory_leak, plan_capacity and measure_scaling against clocks, known constructions and
simulations; the system's own peak of a process with blocks."""
import json
import math
import os
import random
import subprocess
import sys
import time

import tare
from blocks import MB, INSIDE, MADE, BY_HAND, COUNT, TIME, touch, spin
from truth import Figure, absolute, bracketed, exact, relative

FIGURES = [
    Figure("python:profile_function.execution_time", "time of the function", INSIDE, TIME),
    Figure("python:profile_function.traced_time", "time with the tracer", INSIDE, TIME),
    Figure("python:profile_function.memory_delta", "what the process's memory grew by, MB", MADE, absolute(2, "MB")),
    Figure("python:profile_function.functions[].calls", "calls of a function", COUNT, exact),
    Figure("python:profile_function.functions[].primitive_calls", "calls that are no recursion", COUNT, exact),
    Figure("python:profile_function.functions[].total_s", "time of a function that sleeps",
           "`time.perf_counter()` around it", bracketed(0.02)),
    Figure("python:profile_function.functions[].self_s", "its own time", "`time.perf_counter()` around it",
           bracketed(0.02)),
    Figure("python:detect_memory_leak.growth_mb", "last less first snapshot", BY_HAND, exact),
    Figure("python:detect_memory_leak.growing_percent", "share of steps that went up", BY_HAND, relative(1e-9)),
    Figure("python:detect_memory_leak.leak", "whether it is a leak", "series made with and without one", exact),
    Figure("python:plan_capacity.waiting_ms", "mean wait for a free replica", "a simulation of the queue",
           bracketed(0.2)),
    Figure("python:plan_capacity.response_ms", "filling, waiting and running", BY_HAND, relative(1e-9)),
    Figure("python:measure_scaling.rows[].peak_mb", "memory that a call adds at its peak", MADE, absolute(4, "MB")),
    Figure("python:measure_scaling.rows[].median_s", "median time of a call", "`time.perf_counter()` in the function",
           bracketed(0.5)),
    Figure("python:wait4.ru_maxrss", "the system's own peak of a process with blocks",
           "the same process without blocks, KiB", relative(0.05)),
]


def leaf():
    begun = time.perf_counter()
    time.sleep(0.01)
    return time.perf_counter() - begun


def tree(depth):
    return leaf() if depth == 0 else tree(depth - 1)


def test_functions(truth):
    of = "python:profile_function."
    inside = []

    def timed():
        begun = time.perf_counter()
        spin(0.05)
        inside.append(time.perf_counter() - begun)
    outside = time.perf_counter()
    told = tare.profile_function(timed)
    truth.check(of + "execution_time", told["execution_time"], (inside[0], time.perf_counter() - outside))
    inside.clear()
    outside = time.perf_counter()
    told = tare.FunctionProfiler(table=True)(timed)
    truth.check(of + "traced_time", told["traced_time"], (inside[0], time.perf_counter() - outside))
    kept = []
    truth.check(of + "memory_delta", tare.profile_function(lambda: kept.append(touch(48 * MB)))["memory_delta"], 48)
    outside = time.perf_counter()
    told = tare.FunctionProfiler(table=True)(tree, 4)
    whole = time.perf_counter() - outside
    rows = {row["function"].rpartition(".")[2]: row for row in told["functions"]}
    truth.check(of + "functions[].calls", [rows["tree"]["calls"], rows["leaf"]["calls"]], [5, 1])
    truth.check(of + "functions[].primitive_calls", [rows["tree"]["primitive_calls"], rows["leaf"]["primitive_calls"]],
                [1, 1])
    truth.check(of + "functions[].total_s", rows["leaf"]["total_s"], (told["result"], whole))
    sleeps = next(row for row in told["functions"] if "sleep" in row["function"])
    truth.check(of + "functions[].self_s", sleeps["self_s"], (0.01, told["result"]))


def test_leaks(truth):
    of = "python:detect_memory_leak."
    values = [1000, 1040, 1035, 1090, 1150, 1190, 1240, 1300]
    report = tare.detect_memory_leak(values)
    truth.check(of + "growth_mb", report.growth_mb, 300)
    truth.check(of + "growing_percent", report.growing_percent, 600 / 7)
    n = 40
    series = {True: [[20 * i for i in range(n)], [20 * i + 60 * (i % 3) for i in range(n)]],
              False: [[500 * (i >= 20) for i in range(n)], [100 * (i % 5) for i in range(n)],
                      [min(i, 8) * 100 for i in range(n)], [0] * n, [500 * (i >= n - 1) for i in range(n)]]}
    for leaks, many in series.items():
        for one in many:
            truth.check(of + "leak", bool(tare.detect_memory_leak([2000 + value for value in one])), leaks)


def simulated(busy, batch, chance, gamma, batches=60_000):
    waited = total = 0.0
    for _ in range(batches):
        total += waited
        comes = sum(chance.expovariate(batch * busy) for _ in range(batch))
        waited = max(0.0, waited + chance.gammavariate(gamma, 1 / gamma) - comes)
    return total / batches


def test_plans(truth):
    for batch in (1, 4):
        mean, gamma = 8.0, 4.0  # a run's mean in ms, and the shape of its distribution
        rate = batch / mean * 1e3
        row = {"throughput": {"samples_per_second": rate, "requests_per_second": rate}, "input": {"batch_size": batch},
               "latency": {"mean": mean, "std": mean / math.sqrt(gamma), "p50": mean}, "memory": {"peak": 1 << 30}}
        plan = tare.plan_capacity(row, requests_per_second=2.4 * rate, utilization=0.8)
        wait = mean * simulated(plan.utilization, batch, random.Random(7), gamma)
        truth.check("python:plan_capacity.waiting_ms", plan.waiting_ms, (0.9 * wait, 1.1 * wait))
        filling = (batch - 1) / 2 / (2.4 * rate / plan.replicas) * 1e3
        truth.check("python:plan_capacity.response_ms", plan.response_ms, filling + plan.waiting_ms + mean)


SCALING = """
import json, mmap, time, tare
inside = {}
def work(size):
    begun = time.perf_counter()
    data = mmap.mmap(-1, size << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, size << 20, 4096):
        data[at] = 1
    data.close()
    inside.setdefault(size, []).append(time.perf_counter() - begun)
told = tare.measure_scaling(work, [40, 60, 80], repeats=3)
print(json.dumps([told.rows, [sorted(inside[row["size"]][-3:])[1] for row in told.rows]]))
"""


def test_scaling(truth):
    done = subprocess.run([sys.executable, "-c", SCALING], stdout=subprocess.PIPE, text=True, timeout=60, check=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    rows, inside = json.loads(done.stdout)
    truth.check("python:measure_scaling.rows[].median_s", [row["median_s"] for row in rows],
                [(one, 1.05 * one + 0.02) for one in inside])
    truth.check("python:measure_scaling.rows[].peak_mb", [row["peak_mb"] for row in rows], [40, 60, 80])


def test_the_systems_own_peak(truth):
    code = ("import mmap\ndata = mmap.mmap(-1, 300 << 20)\nfor at in range(0, 300 << 20, 4096): data[at] = 1\n"
            "data.close()\nimport tare\nmonitor = tare.PerformanceMonitor()\nprofiler = tare.PerformanceProfiler()\n")
    blocks = "with monitor.track('a'), profiler.profile('b'): pass\n"
    peaks = []
    for text in (code, code + blocks):
        process = subprocess.Popen([sys.executable, "-c", text],
                                   env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        assert status == 0
        peaks.append(usage.ru_maxrss)
    truth.check("python:wait4.ru_maxrss", peaks[1], peaks[0])
