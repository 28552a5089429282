"""tare.profiler, the drop-in for torch.profiler, and the summary of tare's PyTorchProfiler: a program that times
itself, allocates known sizes and computes products of known cost."""
import json
import time

import pytest
from truth import Figure, bracketed, exact

pytest.importorskip("torch.nn", reason="torch is not installed")
import torch  # noqa: E402

CLOCK = "`time.perf_counter()` in the program, just inside and just outside of each block"
COUNT = "the program's own count"
SIZES = "arithmetic on the sizes that the program allocates"
TIME = bracketed(0.03)

FIGURES = [
    Figure("profiler:key_averages[].count", "calls of an operator or block", COUNT, exact),
    Figure("profiler:key_averages[].cpu_time_total", "time of all calls (`CPU total`)", CLOCK, TIME),
    Figure("profiler:key_averages[].cpu_time", "mean of all calls (`CPU time avg`)", CLOCK, TIME),
    Figure("profiler:key_averages[].self_cpu_time_total", "total less the blocks inside (`Self CPU`)", CLOCK, TIME),
    Figure("profiler:key_averages.self_cpu_time_total", "sum of all self times", CLOCK, TIME),
    Figure("profiler:key_averages.total_average.count", "calls of all rows", COUNT, exact),
    Figure("profiler:key_averages[].cpu_memory_usage", "bytes allocated less bytes freed (`CPU Mem`)", SIZES, exact),
    Figure("profiler:key_averages[].self_cpu_memory_usage", "the same, without what is called", SIZES, exact),
    Figure("profiler:key_averages[].flops", "FLOPs of a product (`Total FLOPs`)", "2 m n k by hand", exact),
    Figure("profiler:key_averages[].input_shapes", "shapes of an operator's inputs", "the program's own tensors",
           exact),
    Figure("profiler:events[].cpu_time_total", "time of one call", CLOCK, TIME),
    Figure("profiler:events[].count", "calls one by one", COUNT, exact),
    Figure("profiler:trace.memory_events", "`[memory]` events of the exported trace",
           "allocations that the program keeps", exact),
    Figure("profiler:trace.bytes", "bytes of these events", SIZES, exact),
    Figure("profiler:trace.shapes", "products with `Input Dims` in the exported trace", COUNT, exact),
    Figure("profiler:trace.python_functions", "`python_function` events of the program's own function", COUNT, exact),
    Figure("python:get_profile_summary.total_time", "time of the block", CLOCK, TIME),
    Figure("python:get_profile_summary.cpu_time", "time in operators and blocks", CLOCK, TIME),
    Figure("python:get_profile_summary.peak_tensor_bytes", "largest sum of living tensors", SIZES, exact),
    Figure("python:get_profile_summary.top_operations[].calls", "calls of an operator or block", COUNT, exact),
    Figure("python:get_profile_summary.top_operations[].cpu_time", "total less what is called", CLOCK, TIME),
    Figure("python:get_profile_summary.top_operations[].cpu_time_total", "time of all calls", CLOCK, TIME),
    Figure("python:get_profile_summary.top_operations[].memory_bytes", "bytes allocated by the operator itself", SIZES,
           exact),
]
clock = time.perf_counter
CALLS = 12


class Times:
    """Of a block: between the readings inside of it and those around it."""

    def __init__(self):
        self.inside, self.outside = [], []

    def around(self, block, work):
        before = clock()
        with block:
            begun = clock()
            work()
            self.inside.append(clock() - begun)
        self.outside.append(clock() - before)

    def us(self, scale=1e6):
        return sum(self.inside) * scale, sum(self.outside) * scale


def nested(record_function):
    """Blocks "outer" that sleep and hold two blocks "inner"; (Times of outer, of inner)."""
    outer, inner = Times(), Times()

    def work():
        time.sleep(0.004)
        for _ in range(2):
            inner.around(record_function("inner"), lambda: time.sleep(0.003))
    for _ in range(CALLS):
        outer.around(record_function("outer"), work)
    return outer, inner


def less(one, other):
    """What is left of an interval without another."""
    return max(one[0] - other[1], 0.0), one[1] - other[0]


@pytest.mark.parametrize("details", [{}, {"record_shapes": True}], ids=["Tare records", "torch records"])
def test_times(truth, details):
    import tare.profiler as profiler
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], **details) as prof:
        outer, inner = nested(profiler.record_function)
    averages = prof.key_averages()
    rows = {row.key: row for row in averages}
    for key, times, count in (("outer", outer, CALLS), ("inner", inner, 2 * CALLS)):
        truth.check("profiler:key_averages[].count", rows[key].count, count)
        truth.check("profiler:key_averages[].cpu_time_total", rows[key].cpu_time_total, times.us())
        truth.check("profiler:key_averages[].cpu_time", rows[key].cpu_time,
                    tuple(value / count for value in times.us()))
    truth.check("profiler:key_averages[].self_cpu_time_total", rows["inner"].self_cpu_time_total, inner.us())
    truth.check("profiler:key_averages[].self_cpu_time_total", rows["outer"].self_cpu_time_total,
                less(outer.us(), inner.us()))
    truth.check("profiler:key_averages.self_cpu_time_total", averages.self_cpu_time_total, outer.us())
    truth.check("profiler:key_averages.total_average.count", averages.total_average().count, 3 * CALLS)
    for name, times in (("outer", outer), ("inner", inner)):
        events = [event for event in prof.events() if event.name == name]
        truth.check("profiler:events[].count", len(events), len(times.inside))
        truth.check("profiler:events[].cpu_time_total", [event.cpu_time_total for event in events],
                    [(a * 1e6, b * 1e6) for a, b in zip(times.inside, times.outside)])


def allocate(kept, sizes):
    for size in sizes:
        kept.append(torch.empty(size, dtype=torch.uint8))


def test_memory_shapes_and_flops(truth, tmp_path):
    import tare.profiler as profiler
    left, right = torch.ones(30, 40), torch.ones(40, 50)
    kept, sizes = [], [1 << 16, 1 << 20, 3 << 18]
    left.mm(right)
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], record_shapes=True, profile_memory=True,
                          with_stack=True, with_flops=True) as prof:
        allocate(kept, sizes)
        for _ in range(4):
            kept.append(left.mm(right))
    rows = {row.key: row for row in prof.key_averages()}
    product = 30 * 50 * 4
    for field in ("cpu_memory_usage", "self_cpu_memory_usage"):
        truth.check("profiler:key_averages[]." + field, getattr(rows["aten::empty"], field), sum(sizes))
        truth.check("profiler:key_averages[]." + field, getattr(rows["aten::mm"], field), 4 * product)
    truth.check("profiler:key_averages[].flops", rows["aten::mm"].flops, 4 * 2 * 30 * 50 * 40)
    shaped = [row for row in prof.key_averages(group_by_input_shape=True) if row.key == "aten::mm"]
    truth.check("profiler:key_averages[].input_shapes", str(shaped[0].input_shapes[:2]), "[[30, 40], [40, 50]]")
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    memory = [event["args"]["Bytes"] for event in events if event["name"] == "[memory]"]
    truth.check("profiler:trace.memory_events", len(memory), len(sizes) + 4)
    truth.check("profiler:trace.bytes", sum(memory), sum(sizes) + 4 * product)
    truth.check("profiler:trace.shapes", sum(event["name"] == "aten::mm" and "Input Dims" in event["args"]
                                             for event in events), 4)
    truth.check("profiler:trace.python_functions", sum(event.get("cat") == "python_function" and
                                                       event["name"].endswith(": allocate") for event in events), 1)


def test_summary(truth):
    from torch.profiler import record_function

    from tare.seeds.torchprofiler import PyTorchProfiler
    from tare.config import ProfilingConfig
    config = ProfilingConfig()
    config.profile_memory = True
    one = PyTorchProfiler(config)
    kept, sizes, block = [], [1 << 20, 1 << 19], Times()

    def work():
        nonlocal outer, inner
        allocate(kept, sizes)
        del kept[:]
        allocate(kept, sizes[:1])
        outer, inner = nested(record_function)
    outer = inner = None
    block.around(one.profile(), work)
    summary = one.get_profile_summary()
    truth.check("python:get_profile_summary.total_time", summary["total_time"], block.us(1))
    truth.check("python:get_profile_summary.peak_tensor_bytes", summary["peak_tensor_bytes"], sum(sizes))
    rows = {row["name"]: row for row in summary["top_operations"]}
    for name, times, count in (("outer", outer, CALLS), ("inner", inner, 2 * CALLS)):
        truth.check("python:get_profile_summary.top_operations[].calls", rows[name]["calls"], count)
        truth.check("python:get_profile_summary.top_operations[].cpu_time_total", rows[name]["cpu_time_total"],
                    times.us(1))
    truth.check("python:get_profile_summary.top_operations[].cpu_time", rows["outer"]["cpu_time"],
                less(outer.us(1), inner.us(1)))
    truth.check("python:get_profile_summary.top_operations[].memory_bytes", rows["aten::empty"]["memory_bytes"],
                sum(sizes) + sizes[0])
    low, high = outer.us(1)
    empties = rows["aten::empty"]["cpu_time"]
    truth.check("python:get_profile_summary.cpu_time", summary["cpu_time"], (low + empties, high + empties))
