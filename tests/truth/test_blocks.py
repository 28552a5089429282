"""PerformanceProfiler: what blocks show against clocks that the test reads itself, and against arithmetic."""
import threading
import time

import pytest

import tare
from blocks import (INSIDE, CPU, PROCESS_CPU, BY_HAND, SORTED, COUNT, TIME, CPU_TIME, PROFILER, spin, Timed, added,
                    quantile)
from truth import Figure, absolute, bracketed, exact, relative

FIGURES = [
    Figure(PROFILER + "timing.wall_time_s", "time on the host", INSIDE, TIME),
    Figure(PROFILER + "timing.cpu_time_s", "CPU time of the thread that ran the block", CPU, CPU_TIME),
    Figure(PROFILER + "timing.process_cpu_time_s", "CPU time of all threads of the process", PROCESS_CPU,
           bracketed(0.05)),
    Figure(PROFILER + "timing.self_time_s", "time in no inner block", INSIDE, TIME),
    Figure(PROFILER + "timing.excluded_s", "time of measuring inside the block, in none of its times",
           "a switch whose begin and end take a known CPU time", bracketed(0.05)),
    Figure(PROFILER + "timing.count", "blocks of a name", COUNT, exact),
    Figure(PROFILER + "timing.failed", "blocks that an exception left", COUNT, exact),
    Figure(PROFILER + "timing.mean_s", "mean of all blocks of a name", SORTED, TIME),
    Figure(PROFILER + "timing.min_s", "shortest block of a name", SORTED, TIME),
    Figure(PROFILER + "timing.max_s", "longest block of a name", SORTED, TIME),
    Figure(PROFILER + "timing.p50_s", "median of all blocks of a name", SORTED, TIME),
    Figure(PROFILER + "timing.p95_s", "95th percentile of all blocks of a name", SORTED, TIME),
    Figure(PROFILER + "timing.p99_s", "99th percentile of all blocks of a name", SORTED, TIME),
    Figure(PROFILER + "compute.estimated_flops, by calls of modules", "operations of a network without a switch",
           BY_HAND, exact),
    Figure(PROFILER + "compute.module_calls", "calls of modules in the estimate", COUNT, exact),
    Figure(PROFILER + "compute.module_calls_counted", "of them, those that were counted", "1 to all calls",
           bracketed(0)),
    Figure(PROFILER + "throughput", "samples a second", BY_HAND + " on the block's time", relative(1e-9)),
    Figure(PROFILER + "samples", "samples counted", COUNT, exact),
    Figure(PROFILER + "custom[]", "what a hook of the user's measured", "the test's own number", exact),
    Figure(PROFILER + "get_timing_breakdown", "time of a name without inner blocks", INSIDE, TIME),
    Figure(PROFILER + "get_line_profile[].hits", "times a line began", COUNT, exact),
    Figure(PROFILER + "get_line_profile[].time_s", "time of a line that sleeps", "`time.perf_counter()` around it",
           bracketed(0.02)),
    Figure(PROFILER + "get_line_profile[].time_percent", "its share of the block", BY_HAND, absolute(1, "points")),
    Figure(PROFILER + "get_line_profile[].line_number", "its number", "the code object's line numbers", exact),
    Figure(PROFILER + "system.process_cpu_percent", "CPU time of the process, 100 for one CPU", PROCESS_CPU,
           bracketed(0.05)),
]


def test_times(truth):
    profiler = tare.PerformanceProfiler()
    helper_done = threading.Event()

    def two_threads():
        helper = threading.Thread(target=lambda: (sum(i * i for i in range(400_000)), helper_done.set()))
        helper.start()
        spin(0.2)
        helper.join()
    one = Timed().run(profiler.profile("two threads"), two_threads)
    timing = profiler.get_metrics().timing
    truth.check(PROFILER + "timing.wall_time_s", timing.wall_time_s, one.wall[0])
    truth.check(PROFILER + "timing.cpu_time_s", timing.cpu_time_s, one.cpu[0])
    low, high = one.process[0]
    truth.check(PROFILER + "timing.process_cpu_time_s", timing.process_cpu_time_s, (low - 0.02, high + 0.02))  # ticks
    assert timing.process_cpu_time_s > timing.cpu_time_s
    wall = timing.wall_time_s
    truth.check(PROFILER + "system.process_cpu_percent", profiler.get_metrics().system.process_cpu_percent,
                (100 * (low - 0.02) / wall, 100 * (high + 0.02) / wall))

    many = Timed()
    for number in range(60):
        many.run(profiler.profile("many"), lambda: spin(0.0005 * (1 + number % 10)))
    with pytest.raises(KeyError):
        with profiler.profile("fails"):
            raise KeyError
    told = profiler.get_metrics("many").timing
    truth.check(PROFILER + "timing.count", told.count, 60)
    truth.check(PROFILER + "timing.failed", profiler.get_metrics("fails").timing.failed, 1)
    truth.check(PROFILER + "timing.wall_time_s", told.wall_time_s, added(many.wall))
    truth.check(PROFILER + "timing.cpu_time_s", told.cpu_time_s, added(many.cpu))
    truth.check(PROFILER + "timing.mean_s", told.mean_s, tuple(value / 60 for value in added(many.wall)))
    truth.check(PROFILER + "timing.min_s", told.min_s, quantile(many.wall, 0))
    truth.check(PROFILER + "timing.max_s", told.max_s, quantile(many.wall, 1))
    for name, q in (("p50_s", 0.5), ("p95_s", 0.95), ("p99_s", 0.99)):
        truth.check(PROFILER + "timing." + name, getattr(told, name), quantile(many.wall, q))


def test_parts_of_a_block(truth):
    profiler = tare.PerformanceProfiler()
    profiler.add_hook("mine", lambda: 3.0, end=lambda before: before + 0.25)
    outer, inner = Timed(), Timed()
    outer.run(profiler.profile("outer", samples=640),
              lambda: (spin(0.05), inner.run(profiler.profile("inner"), lambda: spin(0.05))))
    low, high = (outer.wall[0][0] - inner.wall[0][1], outer.wall[0][1] - inner.wall[0][0])
    metrics = profiler.get_metrics("outer")
    truth.check(PROFILER + "timing.self_time_s", metrics.timing.self_time_s, (low, high))
    truth.check(PROFILER + "get_timing_breakdown", profiler.get_timing_breakdown()["outer"], (low, high))
    truth.check(PROFILER + "get_timing_breakdown", profiler.get_timing_breakdown()["inner"], inner.wall[0])
    truth.check(PROFILER + "samples", metrics.samples, 640)
    truth.check(PROFILER + "throughput", metrics.throughput, 640 / metrics.timing.wall_time_s)
    truth.check(PROFILER + "custom[]", metrics.custom["mine"], 3.25)


def test_what_measuring_costs(truth):
    profiler = tare.PerformanceProfiler(track_carbon=True)
    part, begun = profiler._parts[0], time.perf_counter
    begin, end, took = part.begin, part.end, []

    def slow(call):
        def called(*given):
            at = begun()
            spin(0.05)
            result = call(*given)
            took.append(begun() - at)
            return result
        return called
    part.begin, part.end = slow(begin), slow(end)
    with profiler.profile("outer"):
        took.clear()
        with profiler.profile("inner"):
            spin(0.02)
    inner = took[0] + took[1]  # the third is the outer block's end, which is behind it
    outer = profiler.get_metrics("outer").timing
    truth.check(PROFILER + "timing.excluded_s", outer.excluded_s, (inner, inner + 0.1 + 0.2 * inner))
    truth.check(PROFILER + "timing.cpu_time_s", outer.cpu_time_s, (0.02, 0.04))


def test_flops():
    torch = pytest.importorskip("torch")
    profiler = tare.PerformanceProfiler(estimate_flops=True)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                                torch.nn.Linear(8 * 36, 5))
    x = torch.randn(4, 3, 8, 8)
    with torch.no_grad(), profiler.profile("forward"):
        model(x)
    metrics = profiler.get_metrics()
    by_hand = 2 * 4 * 8 * 6 * 6 * 3 * 3 * 3 + 2 * 4 * 8 * 36 * 5
    parameters = sum(one.numel() for one in model.parameters())
    # the rows of these are in test_flops.py
    assert metrics.compute.estimated_flops == by_hand
    assert metrics.compute.parameters == parameters
    assert metrics.compute.flops_per_param == pytest.approx(by_hand / parameters, rel=1e-9)
    assert metrics.compute.flops_per_second == pytest.approx(by_hand / metrics.timing.wall_time_s, rel=1e-9)


def test_flops_by_calls_of_modules(truth):
    torch = pytest.importorskip("torch")
    profiler = tare.PerformanceProfiler()
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                                torch.nn.Linear(8 * 36, 5))
    x = torch.randn(4, 3, 8, 8)
    convolution, linear = 2 * 4 * 8 * 6 * 6 * 3 * 3 * 3, 2 * 4 * 8 * 36 * 5
    with torch.no_grad(), profiler.profile("forward"):
        for _ in range(40):
            model(x)
    forward = profiler.get_metrics().compute
    with profiler.profile("training"):
        for _ in range(40):
            model(x).sum().backward()
    training = profiler.get_metrics().compute
    # The model is called again in the backward pass, up to the input of its last layer.
    with profiler.profile("checkpoint"):
        for _ in range(10):
            torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).sum().backward()
    again = profiler.get_metrics().compute
    truth.check(PROFILER + "compute.estimated_flops, by calls of modules",
                [forward.estimated_flops, training.estimated_flops, again.estimated_flops],
                [40 * (convolution + linear), 40 * (2 * convolution + 3 * linear), 10 * (3 * convolution + 3 * linear)])
    truth.check(PROFILER + "compute.module_calls", [forward.module_calls, training.module_calls, again.module_calls],
                [40, 40, 10])
    truth.check(PROFILER + "compute.module_calls_counted",
                [forward.module_calls_counted, training.module_calls_counted], [(1, 40)] * 2)


SLEEPER = """
import time
spent, at = [], []

def work(profiler):
    for i in range(20):
        at.append(time.perf_counter()); time.sleep(0.005); spent.append(time.perf_counter())
    return [later - earlier for earlier, later in zip(at, spent)]
"""


def test_lines(truth, tmp_path):
    file = tmp_path / "sleeper.py"
    file.write_text(SLEEPER)
    space = {}
    code = compile(SLEEPER + "\n\ndef block(profiler):\n    with profiler.profile('lines'):\n"
                             "        return work(profiler)\n", str(file), "exec")
    exec(code, space)
    profiler = tare.PerformanceProfiler(enable_line_profiling=True)
    slept = space["block"](profiler)
    line = max(profiler.get_line_profile(), key=lambda one: one.time_s if one.function.endswith("work") else 0)
    number = next(at for at, text in enumerate(SLEEPER.splitlines(), 1) if "sleep(" in text)
    truth.check(PROFILER + "get_line_profile[].line_number", line.line_number, number)
    truth.check(PROFILER + "get_line_profile[].hits", line.hits, 20)
    truth.check(PROFILER + "get_line_profile[].time_s", line.time_s, (sum(slept), sum(slept) + 0.02))
    truth.check(PROFILER + "get_line_profile[].time_percent", line.time_percent,
                100 * line.time_s / profiler.get_metrics().timing.wall_time_s)
