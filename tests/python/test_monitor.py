"""PerformanceMonitor, track_performance, monitor_performance."""
import asyncio
import builtins
import gc
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import types
import weakref

import pytest

import tare
from tare import _core
from tare.torch import _gpu_memory
from waiting import until

RULE = "=" * 90
LINE = "-" * 90


def busy(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


@pytest.fixture
def without(monkeypatch):
    """Makes modules look absent."""
    def hide(*names):
        real = builtins.__import__

        def refuse(name, *rest, **named):
            if name.split(".")[0] in names:
                raise ImportError(f"No module named {name!r}")
            return real(name, *rest, **named)
        monkeypatch.setattr(builtins, "__import__", refuse)
        for name in list(sys.modules):
            if name.split(".")[0] in names:
                monkeypatch.delitem(sys.modules, name)
    return hide


# ---- blocks --------------------------------------------------------------------------------------------------

def test_blocks_are_listed_in_order_with_their_time_and_memory():
    monitor = tare.PerformanceMonitor()
    with monitor.track("load"):
        kept = bytearray(64 << 20)
        kept[::4096] = b"x" * len(kept[::4096])
    with monitor.track("think"):
        busy(0.02)
    load, think = monitor.get_metrics()
    assert (load.operation, think.operation) == ("load", "think")
    assert think.duration_seconds >= 0.02
    assert 60 < load.cpu_delta_mb < 80
    assert load.cpu_peak_mb > 60
    assert monitor.get_total_time() == pytest.approx(load.duration_seconds + think.duration_seconds)
    assert monitor.get_operation_time("think") == pytest.approx(think.duration_seconds)


def test_a_block_inside_another_is_not_counted_twice():
    monitor = tare.PerformanceMonitor()
    with monitor.track("outer"):
        with monitor.track("inner"):
            busy(0.02)
    inner, outer = monitor.get_metrics()
    assert outer.duration_seconds >= inner.duration_seconds >= 0.02
    assert monitor.get_total_time() == pytest.approx(outer.self_seconds + inner.duration_seconds)
    assert monitor.get_total_time() <= outer.duration_seconds


def test_an_exception_passes_through_and_the_block_is_kept_as_failed():
    monitor = tare.PerformanceMonitor()
    with pytest.raises(ZeroDivisionError):
        with monitor.track("broken"):
            1 // 0
    assert [metric.failed for metric in monitor.get_metrics()] == [True]


def test_aggregates_are_summed_and_not_listed():
    monitor = tare.PerformanceMonitor()
    for _ in range(50):
        with monitor.track("step", aggregate=True):
            pass
    with monitor.track("one"):
        pass
    assert [metric.operation for metric in monitor.get_metrics()] == ["one"]
    aggregates = monitor.get_aggregates()
    assert list(aggregates) == ["step"]
    step = aggregates["step"]
    assert step.count == 50 and 0 < step.min_s <= step.mean_s <= step.max_s <= step.total_s
    assert monitor.get_operation_time("step") == step.total_s


def test_sums_are_exact_beyond_what_is_kept():
    monitor = tare.PerformanceMonitor(keep=3)
    for index in range(10):
        with monitor.track("a"):
            busy(0.001)
    assert len(monitor.get_metrics()) == 3
    assert monitor.get_operation_time("a") >= 0.010
    assert monitor.get_total_time() >= 0.010


def test_metrics_of_a_name():
    monitor = tare.PerformanceMonitor()
    for name in "aba":
        with monitor.track(name):
            pass
    assert [metric.operation for metric in monitor.get_metrics("a")] == ["a", "a"]
    with pytest.raises(KeyError, match="no operation 'data_lodaing' was tracked"):
        monitor.get_metrics("data_lodaing")
    with monitor.track("data_loading"):
        pass
    with pytest.raises(KeyError, match="did you mean 'data_loading'"):
        monitor.get_operation_time("data_lodaing")
    with pytest.raises(TypeError, match="name is text"):
        monitor.get_metrics(3)


def test_clear_forgets():
    monitor = tare.PerformanceMonitor()
    with monitor.track("a"):
        pass
    monitor.record_metrics()
    monitor.clear()
    assert monitor.get_metrics() == [] and monitor.get_total_time() == 0
    assert monitor.get_summary()["memory"]["count"] == 0
    with pytest.raises(KeyError):
        monitor.get_operation_time("a")


def test_threads_and_tasks_do_not_mix():
    monitor = tare.PerformanceMonitor()

    def work():
        for _ in range(200):
            with monitor.track("outer", aggregate=True):
                with monitor.track("inner", aggregate=True):
                    pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert monitor.get_aggregates()["inner"].count == 800

    async def task(seconds):
        with monitor.track(f"task {seconds}"):
            await asyncio.sleep(seconds)

    async def main():
        await asyncio.gather(task(0.05), task(0.01))
    asyncio.run(main())
    assert monitor.get_operation_time("task 0.05") >= 0.045
    assert monitor.get_operation_time("task 0.01") < monitor.get_operation_time("task 0.05")


def test_memory_readings_can_be_left_out():
    monitor = tare.PerformanceMonitor(memory=False)
    with monitor.track("a"):
        pass
    delta = monitor.get_metrics()[0].cpu_delta_mb
    assert isinstance(delta, tare.Missing) and "memory=False" in delta.reason


def test_disabled_measures_nothing_and_says_so():
    monitor = tare.PerformanceMonitor(enabled=False)
    with monitor.track("a"):
        with monitor.track("a", aggregate=True):
            pass
    assert monitor.track("a") is monitor.track("b")  # nothing is made
    assert monitor.get_metrics() == [] and monitor.bottlenecks() == []
    assert isinstance(monitor.get_total_time(), tare.Missing)
    assert monitor.get_operation_time("a").reason == "monitoring is disabled"
    monitor.start_monitoring()
    monitor.record_metrics()
    monitor.stop_monitoring()
    assert monitor.get_summary()["cpu"]["mean"].reason == "monitoring is disabled"


def test_disabled_lets_exceptions_through():
    with pytest.raises(ValueError):
        with tare.PerformanceMonitor(enabled=False).track("a"):
            raise ValueError


@pytest.mark.parametrize("call, error", [
    (lambda monitor: monitor.track(), TypeError),
    (lambda monitor: monitor.track("a", True, 3), TypeError),
    (lambda monitor: monitor.track("a", agregate=True), TypeError),
    (lambda monitor: monitor.track("a", name="b"), TypeError),
    (lambda monitor: monitor.track(7), TypeError),
    (lambda monitor: monitor.start_monitoring(interval=0), ValueError),
    (lambda monitor: monitor.start_monitoring(interval=-1), ValueError),
    (lambda monitor: monitor.start_monitoring(interval=math.nan), ValueError),
    (lambda monitor: monitor.start_monitoring(interval="1"), TypeError),
    (lambda monitor: monitor.plot_metrics("x.png"), RuntimeError),
])
def test_bad_input_is_refused_and_the_monitor_goes_on(call, error):
    monitor = tare.PerformanceMonitor()
    with pytest.raises(error):
        call(monitor)
    with monitor.track("after"):
        pass
    assert [metric.operation for metric in monitor.get_metrics()] == ["after"]
    assert monitor.get_summary()["cpu"]["count"] == 0


@pytest.mark.parametrize("device, number", [(0, 0), (2, 2), ("cuda", 0), ("cuda:3", 3), (None, 0), ("cpu", -1)])
def test_devices(device, number):
    assert tare.PerformanceMonitor(device=device).device == number
    assert tare.EpochPerformanceMonitor(device=device).device == number
    assert tare.track_performance("block", device=device).device == number
    assert tare.PerformanceProfiler(device=device).device == number


@pytest.mark.parametrize("device, error", [(-1, ValueError), ("tpu", ValueError), ("cuda:x", ValueError),
                                           (1.5, TypeError), (True, TypeError)])
def test_devices_that_are_none(device, error):
    for made in (tare.PerformanceMonitor, tare.PerformanceProfiler, tare.EpochPerformanceMonitor):
        with pytest.raises(error, match="device"):
            made(device=device)


def test_the_cpu_is_a_device_everywhere(capsys):
    """As text and as torch has it; a monitor of a GPU that is not there has its figures missing with the reason."""
    kinds = ["cpu", "cpu:0"]
    if "torch" in sys.modules:
        kinds.append(sys.modules["torch"].device("cpu"))
    for device in kinds:
        with tare.track_performance("block", device=device):
            pass
        tare.monitor_performance("function", device=device)(len)([1])
        epoch = tare.EpochPerformanceMonitor(device=device)
        epoch.on_epoch_start(), epoch.on_batch_start(0), epoch.on_batch_end(0), epoch.on_epoch_end()
    assert capsys.readouterr().out.count("GPU n/a") >= 3 * len(kinds)


# ---- printed ---------------------------------------------------------------------------------------------------

class Result:
    """A finished block with given values."""

    def __init__(self, name, seconds, cpu_mb):
        self.name, self.wall_s, self.self_s, self.rss_delta = name, seconds, seconds, cpu_mb * 2 ** 20


def metric(name, seconds, cpu_mb, gpu_mb=None, gpu_peak_mb=None):
    reading = None
    if gpu_mb is not None:
        reading = _gpu_memory.Reading()
        reading.delta, reading.peak = gpu_mb * 2 ** 20, gpu_peak_mb * 2 ** 20
    return tare.Metric(Result(name, seconds, cpu_mb), reading)


def test_the_table_of_blocks_has_the_guides_layout():
    from tare.seeds._tables import block_table
    lines = block_table([metric("data loading", 0.450, 523.1, 0.0, 0.0),
                         metric("model forward", 0.850, 45.2, 1250.3, 2880.5)], 1.42)
    assert lines == [
        RULE, "PERFORMANCE SUMMARY", RULE,
        "Operation                      Time (s)     CPU (MB)        GPU (MB)        GPU Peak", LINE,
        "data loading                        0.450         +523.1           +0.0         0.0",
        "model forward                       0.850          +45.2        +1250.3      2880.5", LINE,
        "TOTAL                               1.420s", RULE]


def test_without_a_gpu_its_columns_say_so(monkeypatch, capsys):
    monkeypatch.setattr(_core, "gpu_memory", lambda device: "no NVIDIA driver")
    from tare.seeds._tables import block_table
    assert block_table([metric("load_ground_truth", 0.396, 76.9)], 0.396)[5] == (
        "load_ground_truth                   0.396          +76.9            n/a         n/a")


def test_the_table_of_aggregates_has_the_guides_layout():
    from tare.seeds._tables import aggregate_table

    def one(count, total, mean, least, most):
        return types.SimpleNamespace(count=count, total_s=total, mean_s=mean, min_s=least, max_s=most)
    assert aggregate_table({"batch_forward": one(150, 15.234, 0.102, 0.085, 0.425),
                            "batch_backward": one(150, 8.451, 0.056, 0.048, 0.112)}) == [
        RULE, "AGGREGATE STATISTICS (for repeated operations)", RULE,
        "Operation                      Count    Total (s)    Mean (s)     Min (s)      Max (s)", LINE,
        "batch_forward                  150      15.234       0.102        0.085        0.425",
        "batch_backward                 150       8.451       0.056        0.048        0.112", RULE]


def test_print_summary(capsys):
    monitor = tare.PerformanceMonitor()
    with monitor.track("a" * 60):
        pass
    with monitor.track("step", aggregate=True):
        pass
    monitor.print_summary()
    out = capsys.readouterr().out
    assert "PERFORMANCE SUMMARY" in out and "AGGREGATE" not in out and "Aggregated operations: 1" in out
    assert re.search(r"^a{29}…      +0\.000 ", out, re.M)
    monitor.print_summary(show_aggregate=True)
    out = capsys.readouterr().out
    assert out.index("PERFORMANCE SUMMARY") < out.index("AGGREGATE STATISTICS")
    tare.PerformanceMonitor(enabled=False).print_summary()
    assert capsys.readouterr().out == "Performance monitoring is disabled\n"


def test_only_aggregates_print_only_their_table(capsys):
    monitor = tare.PerformanceMonitor()
    with monitor.track("step", aggregate=True):
        pass
    monitor.print_summary(show_aggregate=True)
    assert "PERFORMANCE SUMMARY" not in capsys.readouterr().out


def test_html_is_escaped():
    monitor = tare.PerformanceMonitor()
    with monitor.track("<script>"):
        pass
    with monitor.track("a&b", aggregate=True):
        pass
    text = monitor._repr_html_()
    assert "&lt;script&gt;" in text and "a&amp;b" in text and "<script>" not in text


# ---- handed on --------------------------------------------------------------------------------------------------

def test_csv_json_pandas(tmp_path, monkeypatch):
    monkeypatch.setattr(_core, "gpu_memory", lambda device: "no NVIDIA driver")
    monitor = tare.PerformanceMonitor()
    with monitor.track("load, then sort"):
        pass
    with monitor.track("step", aggregate=True):
        pass
    monitor.record_metrics()
    head, row = monitor.to_csv().splitlines()
    assert head == "operation,duration_seconds,cpu_delta_mb,gpu_delta_mb,gpu_peak_mb,device_seconds"
    assert row.startswith('"load, then sort",') and row.endswith(",n/a,n/a,n/a")
    assert monitor.to_csv(tmp_path / "a.csv") is None
    assert (tmp_path / "a.csv").read_text() == monitor.to_csv()
    data = json.loads(monitor.to_json())
    assert data["metrics"][0]["gpu_peak_mb"] is None
    assert data["metrics"][0]["gpu_peak_mb_reason"] == "no NVIDIA driver"
    assert data["aggregates"]["step"]["count"] == 1
    assert data["summary"]["memory"]["mean"] > 0
    monitor.to_json(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text())["aggregates"]
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "a.json"]  # no drafts are left
    pandas = pytest.importorskip("pandas")
    frame = monitor.to_pandas()
    assert list(frame.operation) == ["load, then sort"] and pandas.isna(frame.gpu_delta_mb[0])
    assert str(frame.duration_seconds.dtype) == "float64"


def test_a_file_that_cannot_be_written(tmp_path):
    monitor = tare.PerformanceMonitor()
    monitor.record_metrics()
    for write in (monitor.to_csv, monitor.to_json):
        with pytest.raises(OSError):
            write(tmp_path / "none" / "a.csv")


def test_without_pandas_and_matplotlib_a_sentence(without, tmp_path):
    monitor = tare.PerformanceMonitor()
    monitor.record_metrics()
    without("pandas", "matplotlib")
    with pytest.raises(ImportError, match="needs pandas: pip install pandas"):
        monitor.to_pandas()
    with pytest.raises(ImportError, match="need matplotlib: pip install matplotlib"):
        monitor.plot_metrics(tmp_path / "a.png")
    assert os.listdir(tmp_path) == []


# ---- bottlenecks -------------------------------------------------------------------------------------------------

class Recorded:
    """A recorder whose operations took given seconds: {name: (self, total, least, most, count)}."""

    def __init__(self, **operations):
        self.operations = operations

    def names(self):
        return list(self.operations)

    def aggregate(self, name):
        fields = ("self_s", "total_s", "min_s", "max_s", "count")
        one = types.SimpleNamespace(name=name, p95_s=float("nan"), **dict(zip(fields, self.operations[name])))
        one.mean_s = one.total_s / one.count
        return one


def test_shares_name_the_bottleneck():
    monitor = tare.PerformanceMonitor()
    monitor._recorder = Recorded(data_loading=(6.0, 6.0, 6.0, 6.0, 1), transform=(3.0, 3.0, 1.0, 1.5, 2),
                                 save=(0.3, 0.3, 0.1, 0.2, 2))
    found = monitor.bottlenecks()
    kinds = {(one.operation, one.kind, one.severity) for one in found}
    assert ("data_loading", "share", "bottleneck") in kinds
    assert ("data_loading", "loading", "bottleneck") in kinds
    assert ("transform", "share", "consider") in kinds
    assert not any(one.operation == "save" for one in found)
    assert str(found[0]) == "BOTTLENECK: data_loading (64.5%)"
    assert any("num_workers" in advice for one in found for advice in one.advice)


def test_a_parents_share_is_its_own_time():
    monitor = tare.PerformanceMonitor()
    monitor._recorder = Recorded(epoch=(1.0, 10.0, 10.0, 10.0, 1), forward=(9.0, 9.0, 1.0, 3.0, 5))
    assert [(one.operation, one.kind) for one in monitor.bottlenecks()] == [
        ("forward", "share"), ("forward", "forward"), ("forward", "variance")]


def test_real_blocks_have_bottlenecks():
    monitor = tare.PerformanceMonitor()
    with monitor.track("all there is"):
        busy(0.001)
    assert [str(found) for found in monitor.bottlenecks()] == ["BOTTLENECK: all there is (100.0%)"]


def part(name, percent, self_percent=0.0):
    from tare.seeds._bottlenecks import Part
    return Part(name, self_percent, percent)


@pytest.mark.parametrize("name, percent, kind", [
    ("data_loading", 30.1, "loading"), ("data loading", 30.0, None), ("load_model", 90, None),
    ("forward_pass", 50.1, "forward"), ("model forward", 50.0, None),
    ("backward_pass", 40.1, "backward"), ("backward", 40.0, None), ("other", 100, None),
    # As the findings on spans classify them, which do not look for words inside a name.
    ("next_batch", 90, "loading"), ("train/getBatch", 90, "loading"), ("workload", 90, None), ("upload", 90, None),
    ("feedforward", 90, None), ("reload", 90, None), ("fwd", 90, "forward"),
])
def test_limits_of_the_phases(name, percent, kind):
    from tare.seeds._bottlenecks import shares
    assert [one.kind for one in shares([part(name, percent)])] == ([kind] if kind else [])


def test_shares_at_their_limits():
    from tare.seeds._bottlenecks import shares
    found = shares([part("a", 50, 50.0), part("b", 20, 20.0), part("c", 50.1, 50.1)])
    assert [(one.operation, one.severity) for one in found] == [("c", "bottleneck"), ("a", "consider")]


def test_variance_needs_more_than_twice():
    from tare.seeds._bottlenecks import variance
    assert variance("step", 1.0, 2.0, 5) == []
    assert variance("step", 1.0, 3.0, 1) == []
    (found,) = variance("step", 1.0, 2.5, 5)
    assert found.value == 2.5 and "2.5 times the fastest" in found.text
    assert any("shapes" in advice for advice in found.advice)
    assert any("augmentation" in advice for advice in found.advice)


# ---- the machine over time ------------------------------------------------------------------------------------

def test_monitoring_reads_the_machine():
    monitor = tare.PerformanceMonitor()
    monitor.start_monitoring(interval=0.01)
    with pytest.raises(RuntimeError, match="already running"):
        monitor.start_monitoring()
    until(lambda: busy(0.01) or monitor.get_summary()["cpu"]["count"] >= 10, "ten samples", pause=0)
    monitor.stop_monitoring()
    monitor.stop_monitoring()  # once more does no harm
    summary = monitor.get_summary()
    assert list(summary) == ["cpu", "memory", "gpu_memory"]
    assert summary["memory"]["count"] >= 10
    for name in ("cpu", "memory"):
        values = summary[name]
        assert 0 <= values["min"] <= values["mean"] <= values["max"] <= 100
        assert values["min"] <= values["p95"] <= values["max"]
    assert summary["cpu"]["max"] > 0
    count = summary["memory"]["count"]
    time.sleep(0.05)
    assert monitor.get_summary()["memory"]["count"] == count  # it has stopped


def test_the_gpus_memory_is_absent_with_a_reason(monkeypatch):
    monkeypatch.setattr(_core, "gpu_memory", lambda device: "no NVIDIA driver")
    monitor = tare.PerformanceMonitor()
    monitor.record_metrics()
    mean = monitor.get_summary()["gpu_memory"]["mean"]
    assert mean.reason == "no NVIDIA driver" and f"{mean:.2f} GB" == "n/a GB"


def test_the_gpus_memory_is_in_gb(monkeypatch):
    monkeypatch.setattr(_core, "gpu_memory", lambda device: (3 * 2 ** 30, 8 * 2 ** 30))
    monitor = tare.PerformanceMonitor()
    monitor.start_monitoring(interval=0.005)
    until(lambda: monitor.get_summary()["gpu_memory"]["count"] >= 3, "three samples", pause=0.005)
    monitor.stop_monitoring()
    assert monitor.get_summary()["gpu_memory"]["mean"] == 3.0


def test_a_short_time_is_read_too_and_a_new_start_forgets():
    monitor = tare.PerformanceMonitor()
    monitor.start_monitoring(interval=60)
    monitor.stop_monitoring()
    assert monitor.get_summary()["memory"]["count"] == 2  # the beginning and the end
    monitor.start_monitoring(interval=60)
    assert monitor.get_summary()["memory"]["count"] == 1
    monitor.stop_monitoring()


def test_record_metrics_reads_once():
    monitor = tare.PerformanceMonitor()
    assert "nothing was recorded" in monitor.get_summary()["cpu"]["mean"].reason
    for _ in range(3):
        monitor.record_metrics()
    assert monitor.get_summary()["memory"]["count"] == 3


def test_long_monitoring_keeps_its_memory():
    read = iter(range(20000))
    sampler = _core.Sampler(60, _core.MACHINE_MEMORY, lambda: next(read))
    for _ in range(20000):
        sampler.sample()
    series = sampler.series()
    assert 4096 <= len(series["at_ns"]) <= 8192
    assert series["at_ns"] == sorted(series["at_ns"])
    assert series["gpu_memory"][-4096:] == list(range(20000 - 4096, 20000))  # the newest as they were
    older = series["gpu_memory"][:-4096]
    assert older == sorted(older) and older[0] < 10 and all(math.isfinite(value) for value in older)
    summary = sampler.summary()
    assert summary["memory"]["count"] == sampler.count == 20000
    assert summary["gpu_memory"]["mean"] == pytest.approx(9999.5) and summary["gpu_memory"]["max"] == 19999
    since = sampler.summary(series["at_ns"][1])["gpu_memory"]  # through what is older: its peak is not lost
    assert since["max"] == 19999 and since["average"] == pytest.approx(sum(range(20000)) / 20000, rel=0.5)


def test_a_sampler_that_goes_while_its_own_thread_asks():
    code = """
import gc, sys, threading, time
from tare import _core
done = threading.Event()
class Holder:
    pass
def make():
    holder = Holder()
    def ask():
        if threading.current_thread() is not threading.main_thread():
            held.clear()  # the last reference, given up by the sampler's thread
            done.set()
        return 1.0
    holder.sampler = _core.Sampler(0.001, _core.MACHINE_MEMORY, ask)
    holder.sampler.acquire()
    return holder
held = []
held.append(make())
assert done.wait(30)
time.sleep(0.05)
print("well")
"""
    done = subprocess.run([sys.executable, "-X", "dev", "-c", code], timeout=60, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "well\n", "")


def test_a_monitor_that_is_dropped_ends_its_thread():
    monitor = tare.PerformanceMonitor()
    monitor.start_monitoring(interval=0.001)
    sampler, gone = monitor._sampler, weakref.ref(monitor)
    del monitor
    gc.collect()
    assert gone() is None and not sampler.running


def test_an_interpreter_ends_while_monitoring_runs():
    done = subprocess.run([sys.executable, "-c", "import tare; m = tare.PerformanceMonitor(); "
                           "m.start_monitoring(0.001)"], timeout=60,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""),
                    reason="a thread started in a forked child can find the sanitizer's own allocator locked")
def test_a_forked_child_has_no_thread_and_can_start_one():
    monitor = tare.PerformanceMonitor()
    monitor.start_monitoring(interval=0.001)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert not monitor._sampler.running
            monitor.stop_monitoring()
            monitor.start_monitoring(interval=0.001)
            monitor.stop_monitoring()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    monitor.stop_monitoring()


def test_plots(tmp_path):
    pytest.importorskip("matplotlib")
    monitor = tare.PerformanceMonitor()
    for _ in range(5):
        monitor.record_metrics()
    monitor.plot_metrics(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    monitor.plot_metrics(str(tmp_path / "b.svg"))
    assert b"<svg" in (tmp_path / "b.svg").read_bytes()
    with pytest.raises(OSError):
        monitor.plot_metrics(tmp_path / "none" / "a.png")
    with pytest.raises(ValueError, match="an image is one of png"):
        monitor.plot_metrics(tmp_path / "a.txt")
    assert sorted(os.listdir(tmp_path)) == ["a.png", "b.svg"]


def test_a_line_at_100_percent_is_inside_the_axes(tmp_path, monkeypatch):
    figure_module = pytest.importorskip("matplotlib.figure")
    from tare.integrations import _plots
    kept = []

    class Kept(figure_module.Figure):
        def savefig(self, *args, **kwargs):
            kept.append(self)
            return super().savefig(*args, **kwargs)
    monkeypatch.setattr(figure_module, "Figure", Kept)
    _plots.plot_series({"time_s": [0.0, 1.0, 2.0], "cpu": [100.0, 100.0, 100.0], "memory": [0.0, 0.0, 0.0],
                       "gpu_memory": [1.0, 2.0, 2.0]}, tmp_path / "a.png")
    (figure,) = kept
    for axis in figure.axes:
        low, high = axis.get_ylim()
        height = axis.get_window_extent().height
        for value in axis.lines[0].get_ydata():  # the line and its markers are a few points wide
            assert (value - low) / (high - low) * height >= 3 or value == 0 == low
            assert (high - value) / (high - low) * height >= 3


# ---- one block, a function ----------------------------------------------------------------------------------------

LINE_OF = r"\[Performance\] {}: \d\.\d{{3}}s, CPU [+-]\d+\.\dMB, GPU n/a\n"


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(_core, "gpu_memory", lambda device: "no NVIDIA driver")
    monkeypatch.setattr(_core, "gpu_used", lambda: False)


def test_track_performance_prints_a_line(capsys, no_gpu):
    with tare.track_performance("critical_operation") as block:
        busy(0.01)
    assert re.fullmatch(LINE_OF.format("critical_operation"), capsys.readouterr().out)
    assert block.metric.duration_seconds >= 0.01
    with tare.track_performance("quiet", print_result=False, device=0) as block:
        with tare.track_performance("inner", print_result=False):
            busy(0.002)
    assert capsys.readouterr().out == ""
    assert block.metric.operation == "quiet" and block.metric.duration_seconds >= 0.002


def test_track_performance_with_an_exception(capsys, no_gpu):
    with pytest.raises(KeyError):
        with tare.track_performance("broken"):
            raise KeyError("x")
    assert ", failed: KeyError" in capsys.readouterr().out


def test_track_performance_refuses(no_gpu):
    with pytest.raises(TypeError):
        tare.track_performance(5)
    block = tare.track_performance("a", print_result=False)
    with block:
        with pytest.raises(RuntimeError, match="already open"):
            block.__enter__()
    with block:  # again, after its end
        pass


def test_monitor_performance_of_a_function(capsys, no_gpu):
    @tare.monitor_performance("data processing")
    def process(a, b=1):
        """Processes."""
        return a + b
    assert process(2, b=3) == 5 and process.__doc__ == "Processes."
    assert re.fullmatch(LINE_OF.format("data processing"), capsys.readouterr().out)

    @tare.monitor_performance
    def bare():
        return 1
    assert bare() == 1
    assert "bare: " in capsys.readouterr().out


def test_monitor_performance_of_recursion(capsys, no_gpu):
    @tare.monitor_performance("fact", device=0)
    def factorial(n):
        return n * factorial(n - 1) if n else 1
    assert factorial(3) == 6
    assert capsys.readouterr().out.count("[Performance] fact") == 4


def test_monitor_performance_of_coroutines_and_generators(capsys, no_gpu):
    @tare.monitor_performance("wait")
    async def wait():
        await asyncio.sleep(0.02)
        return 7
    assert asyncio.run(wait()) == 7
    out = capsys.readouterr().out
    assert float(re.search(r": (\d\.\d+)s", out).group(1)) >= 0.018

    @tare.monitor_performance("items")
    def items():
        got = yield 1
        yield got
        return "end"
    generator = items()
    assert next(generator) == 1 and generator.send("x") == "x"
    assert capsys.readouterr().out == ""  # not before its end
    with pytest.raises(StopIteration) as end:
        next(generator)
    assert end.value.value == "end" and "[Performance] items" in capsys.readouterr().out

    @tare.monitor_performance("stream")
    async def stream():
        yield 1
        yield 2

    async def collect():
        return [item async for item in stream()]
    assert asyncio.run(collect()) == [1, 2]
    assert "[Performance] stream" in capsys.readouterr().out


def test_monitor_performance_refuses():
    with pytest.raises(TypeError):
        tare.monitor_performance(5)
    with pytest.raises(TypeError):
        tare.monitor_performance("a")(5)


# ---- all of it

def test_many_monitors_and_blocks_leave_nothing():
    def use():
        monitor = tare.PerformanceMonitor(keep=10)
        for index in range(20):
            with monitor.track(f"a{index % 3}"):
                pass
        monitor.record_metrics()
        monitor.get_metrics()
        monitor.get_summary()
    for _ in range(50):
        use()
    gc.collect()
    before, rss = len(gc.get_objects()), _core.rss()
    for _ in range(1000):
        use()
    gc.collect()
    assert len(gc.get_objects()) <= before + 20
    assert _core.rss() - rss < 4 << 20


def test_the_six_examples_run():
    script = pathlib.Path(__file__).resolve().parents[2] / "examples" / "performance_monitoring_examples.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, timeout=120,
                          env=environment)
    assert done.returncode == 0
    for words in ("PERFORMANCE SUMMARY", "AGGREGATE STATISTICS", "[Performance] critical_operation",
                  "[Performance] data processing", "Batch timing:", "32 batches in 2 epochs"):
        assert words in done.stdout, words
    assert re.search(r"^(BOTTLENECK|Consider optimizing): ", done.stdout, re.M)  # of four, one has a quarter or more
    assert subprocess.run([sys.executable, str(script), "7"], stderr=subprocess.PIPE, env=environment).returncode == 2
