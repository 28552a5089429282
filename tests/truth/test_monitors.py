"""PerformanceMonitor, track_performance, EpochPerformanceMonitor and ProductionProfiler against clocks that the test
reads itself, and against arithmetic."""
import random
import statistics
import time

import pytest

import tare
from blocks import (MB, INSIDE, STATM, MADE, STAT, BY_HAND, SORTED, COUNT, TIME, MONITOR, touch, spin, resident,
                    stat, machine_between, memory_percent, Timed, added, quantile)
from truth import Figure, absolute, exact, relative

FIGURES = [
    Figure(MONITOR + "duration_seconds", "time on the host", INSIDE, TIME),
    Figure(MONITOR + "self_seconds", "without the blocks inside it", INSIDE, TIME),
    Figure(MONITOR + "cpu_delta_mb", "what the process's memory grew by", MADE, absolute(2, "MB")),
    Figure(MONITOR + "cpu_peak_mb", "peak resident memory in the block", MADE, absolute(4, "MB")),
    Figure(MONITOR + "get_total_time", "time in all blocks", INSIDE, TIME),
    Figure(MONITOR + "get_operation_time", "time in all blocks of a name", INSIDE, TIME),
    Figure(MONITOR + "get_aggregates[].count", "blocks of a name", COUNT, exact),
    Figure(MONITOR + "get_aggregates[].total_s", "their time", SORTED, TIME),
    Figure(MONITOR + "get_aggregates[].mean_s", "their mean", SORTED, TIME),
    Figure(MONITOR + "get_aggregates[].min_s", "the shortest", SORTED, TIME),
    Figure(MONITOR + "get_aggregates[].max_s", "the longest", SORTED, TIME),
    Figure(MONITOR + "get_aggregates[].p50_s", "their median", SORTED, TIME),
    Figure(MONITOR + "get_aggregates[].p95_s", "their 95th percentile", SORTED, TIME),
    Figure(MONITOR + "get_aggregates[].p99_s", "their 99th percentile", SORTED, TIME),
    Figure(MONITOR + "get_summary.cpu.mean", "CPUs while it monitored", STAT, absolute(20, "points")),
    Figure(MONITOR + "get_summary.memory.mean", "memory while it monitored", "`/proc/meminfo`", absolute(10, "points")),
    Figure(MONITOR + "get_summary[].min_mean_p95_max", "min <= mean, p95 <= max, in order", BY_HAND, exact),
    Figure(MONITOR + "get_summary[].std", "standard deviation of the samples",
           "Python's `statistics` on the drawn series", relative(1e-6)),
    Figure(MONITOR + "get_summary[].count", "readings taken", COUNT, exact),
    Figure("python:track_performance.duration_seconds", "time on the host", INSIDE, TIME),
    Figure("python:EpochPerformanceMonitor.total_epoch_time", "time of all epochs", INSIDE, TIME),
    Figure("python:EpochPerformanceMonitor.avg_epoch_time", "mean time of an epoch", INSIDE, TIME),
    Figure("python:EpochPerformanceMonitor.total_batch_time", "time of all batches", SORTED, TIME),
    Figure("python:EpochPerformanceMonitor.avg_batch_time", "mean time of a batch", SORTED, TIME),
    Figure("python:EpochPerformanceMonitor.min_batch_time", "shortest batch", SORTED, TIME),
    Figure("python:EpochPerformanceMonitor.max_batch_time", "longest batch", SORTED, TIME),
    Figure("python:EpochPerformanceMonitor.num_batches", "batches", COUNT, exact),
    Figure("python:EpochPerformanceMonitor.num_epochs", "epochs", COUNT, exact),
    Figure("python:ProductionProfiler.internal_latency", "time of the request's block", INSIDE, TIME),
    Figure("python:ProductionProfiler.memory_mb", "peak resident memory in the block", STATM, absolute(4, "MB")),
    Figure("python:ProductionProfiler.requests_processed", "requests of the last hour", COUNT, exact),
    Figure("python:ProductionProfiler.average_latency", "mean of the latencies given", BY_HAND, relative(1e-9)),
    Figure("python:ProductionProfiler.p95_latency", "95th percentile of the latencies given", "NumPy's `quantile`",
           relative(1e-9)),
    Figure("python:ProductionProfiler.sla_violations", "latencies above the SLA", COUNT, exact),
]


def test_a_monitor(truth):
    monitor = tare.PerformanceMonitor()
    outer, inner, kept = Timed(), Timed(), []
    base = resident()
    outer.run(monitor.track("outer"), lambda: (spin(0.02), kept.append(touch(40 * MB)),
                                               inner.run(monitor.track("inner"), lambda: spin(0.03))))
    spike = []
    with monitor.track("spike"):
        spike.append(touch(400 * MB))
        spike.pop().close()
    inner_metric, metric, spiked = monitor.get_metrics()
    truth.check(MONITOR + "duration_seconds", metric.duration_seconds, outer.wall[0])
    truth.check(MONITOR + "duration_seconds", inner_metric.duration_seconds, inner.wall[0])
    own = (outer.wall[0][0] - inner.wall[0][1], outer.wall[0][1] - inner.wall[0][0])
    truth.check(MONITOR + "self_seconds", metric.self_seconds, own)
    truth.check(MONITOR + "cpu_delta_mb", metric.cpu_delta_mb, 40)
    truth.check(MONITOR + "cpu_peak_mb", spiked.cpu_peak_mb, base + 440)
    assert spiked.cpu_peak_note is None
    truth.check(MONITOR + "get_operation_time", monitor.get_operation_time("outer"), outer.wall[0])
    low, high = outer.wall[0]
    truth.check(MONITOR + "get_total_time", monitor.get_total_time() - monitor.get_operation_time("spike"),
                (low * 0.999, high))
    many = Timed()
    for number in range(50):
        many.run(monitor.track("many", aggregate=True), lambda: spin(0.0005 * (1 + number % 7)))
    sums = monitor.get_aggregates()["many"]
    truth.check(MONITOR + "get_aggregates[].count", sums.count, 50)
    truth.check(MONITOR + "get_aggregates[].total_s", sums.total_s, added(many.wall))
    truth.check(MONITOR + "get_aggregates[].mean_s", sums.mean_s, tuple(one / 50 for one in added(many.wall)))
    for name, q in (("min_s", 0), ("max_s", 1), ("p50_s", 0.5), ("p95_s", 0.95), ("p99_s", 0.99)):
        truth.check(MONITOR + "get_aggregates[]." + name, getattr(sums, name), quantile(many.wall, q))


def test_monitoring(truth):
    monitor = tare.PerformanceMonitor()
    before = stat()
    for _ in range(12):
        spin(0.03)
        time.sleep(0.03)
        monitor.record_metrics()
    busy, _ = machine_between(before, stat())
    summary = monitor.get_summary()
    truth.check(MONITOR + "get_summary.cpu.mean", summary["cpu"]["mean"], busy)
    truth.check(MONITOR + "get_summary.memory.mean", summary["memory"]["mean"], memory_percent())
    truth.check(MONITOR + "get_summary[].count", summary["memory"]["count"], 12)
    series = monitor._sampler.series()
    for name in ("cpu", "memory"):
        one, values = summary[name], [value for value in series[name] if value == value]
        ordered = one["min"] <= one["mean"] <= one["max"] and one["min"] <= one["p95"] <= one["max"]
        truth.check(MONITOR + "get_summary[].min_mean_p95_max", ordered, True)
        truth.check(MONITOR + "get_summary[].std", one["std"], statistics.stdev(values))


def test_one_block(truth, capsys):
    block = tare.track_performance("one")
    timed = Timed().run(block, lambda: spin(0.03))
    truth.check("python:track_performance.duration_seconds", block.metric.duration_seconds, timed.wall[0])
    assert f"[Performance] one: {block.metric.duration_seconds:.3f}s" in capsys.readouterr().out


def test_epochs(truth, capsys):
    monitor, epochs, batches = tare.EpochPerformanceMonitor(verbose_batches=0), [], []
    for _ in range(3):
        outside = time.perf_counter()
        monitor.on_epoch_start()
        inside = time.perf_counter()
        for index in range(8):
            around = time.perf_counter()
            monitor.on_batch_start(index)
            within = time.perf_counter()
            spin(0.002 * (1 + index % 4))
            ended = time.perf_counter() - within
            monitor.on_batch_end(index)
            batches.append((ended, time.perf_counter() - around))
        ended = time.perf_counter() - inside
        monitor.on_epoch_end()
        epochs.append((ended, time.perf_counter() - outside))
    told, of = monitor.get_statistics(), "python:EpochPerformanceMonitor."
    truth.check(of + "total_epoch_time", told["total_epoch_time"], added(epochs))
    truth.check(of + "avg_epoch_time", told["avg_epoch_time"], tuple(one / 3 for one in added(epochs)))
    truth.check(of + "total_batch_time", told["total_batch_time"], added(batches))
    truth.check(of + "avg_batch_time", told["avg_batch_time"], tuple(one / 24 for one in added(batches)))
    truth.check(of + "min_batch_time", told["min_batch_time"], quantile(batches, 0))
    truth.check(of + "max_batch_time", told["max_batch_time"], quantile(batches, 1))
    truth.check(of + "num_batches", told["num_batches"], 24)
    truth.check(of + "num_epochs", told["num_epochs"], 3)


@pytest.mark.filterwarnings("ignore::tare.SlaViolationWarning")
def test_requests(truth):
    numpy = pytest.importorskip("numpy")
    production, chance, given = tare.ProductionProfiler(sla_s=0.5), random.Random(3), []
    timed = Timed().run(production.profile_request("a"), lambda: spin(0.02))
    entry = production.log_metrics("a", 0.4)
    given.append(0.4)
    for number in range(99):
        given.append(chance.expovariate(3))
        production.log_metrics(number, given[-1])
    told, of = production.generate_hourly_report(), "python:ProductionProfiler."
    truth.check(of + "internal_latency", entry["internal_latency"], timed.wall[0])
    truth.check(of + "memory_mb", entry["memory_mb"], resident())
    truth.check(of + "requests_processed", told["requests_processed"], 100)
    truth.check(of + "average_latency", told["average_latency"], sum(given) / 100)
    truth.check(of + "p95_latency", told["p95_latency"], float(numpy.quantile(given, 0.95)))
    truth.check(of + "sla_violations", told["sla_violations"], sum(one > 0.5 for one in given))
