"""Blocks of the Python classes: what they show against the clocks, counters and files of the kernel, read by the test
itself, and against arithmetic."""
import json
import math
import mmap
import os
import random
import statistics
import subprocess
import sys
import threading
import time

import pytest

import tare
from tare import _parts, _sensors
from truth import Figure, absolute, at_most, bracketed, exact, relative

MB = 1 << 20
INSIDE = "`time.perf_counter()` just inside and just outside of the block"
CPU = "`time.thread_time()` just inside and just outside of the block"
PROCESS_CPU = "`getrusage(RUSAGE_SELF)` just inside and just outside of the block"
STATM = "`/proc/self/statm`, read by the test before and after"
MADE = "memory of a known size, mapped and touched by the test"
STAT = "`/proc/stat`, read by the test before and after"
BY_HAND = "arithmetic by hand"
SORTED = "`time.perf_counter()` around each block, sorted"
COUNT = "the program's own count"
FILES = "files of a made-up machine"
TIME, CPU_TIME = bracketed(0.02), bracketed(0.02)
PROFILER = "python:PerformanceProfiler."
MONITOR = "python:PerformanceMonitor."

FIGURES = [
    Figure(PROFILER + "timing.wall_time_s", "time on the host", INSIDE, TIME),
    Figure(PROFILER + "timing.cpu_time_s", "CPU time of the thread that ran the block", CPU, CPU_TIME),
    Figure(PROFILER + "timing.process_cpu_time_s", "CPU time of all threads of the process", PROCESS_CPU, bracketed(0.05)),
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
    Figure(PROFILER + "timing.device_time_s", "time on the GPU's clock", "a stand-in of torch.cuda whose clock the test sets",
           relative(1e-9)),
    Figure(PROFILER + "memory.peak_ram_mb", "most resident memory in the block", MADE, absolute(4, "MB")),
    Figure(PROFILER + "memory.ram_before_mb", "resident memory at its begin", STATM, absolute(2, "MB")),
    Figure(PROFILER + "memory.ram_after_mb", "resident memory at its end", STATM, absolute(2, "MB")),
    Figure(PROFILER + "memory.growth_mb", "what it grew by", MADE, absolute(2, "MB")),
    Figure(PROFILER + "memory.average_ram_mb", "mean over time of its samples", MADE + ", half of the time", absolute(12, "MB")),
    Figure(PROFILER + "memory.anonymous_mb", "of it, memory of no file", "`/proc/self/smaps_rollup`", absolute(4, "MB")),
    Figure(PROFILER + "memory.file_mb", "of it, pages of files", "`/proc/self/smaps_rollup`", absolute(4, "MB")),
    Figure(PROFILER + "memory.peak_gpu_mb", "most memory of torch on the GPU", "a stand-in of torch.cuda", exact),
    Figure(PROFILER + "get_memory_timeline", "largest sample of memory", MADE, absolute(4, "MB")),
    Figure(PROFILER + "get_current_memory", "resident memory now", STATM, absolute(2, "MB")),
    Figure(PROFILER + "compute.estimated_flops, by calls of modules", "operations of a network without a switch", BY_HAND, exact),
    Figure(PROFILER + "compute.module_calls", "calls of modules in the estimate", COUNT, exact),
    Figure(PROFILER + "compute.module_calls_counted", "of them, those that were counted", "1 to all calls", bracketed(0)),
    Figure(PROFILER + "compute.gpu_utilization_percent", "how busy the GPU was", "a stand-in of the driver", exact),
    Figure(PROFILER + "system.cpu_percent", "how busy the machine's CPUs were", STAT, absolute(15, "points")),
    Figure(PROFILER + "system.process_cpu_percent", "CPU time of the process, 100 for one CPU", PROCESS_CPU, bracketed(0.05)),
    Figure(PROFILER + "system.disk_io_wait_percent", "CPUs idle while a disk works", STAT, absolute(15, "points")),
    Figure(PROFILER + "system.disk_io_percent", "how long the busiest disk worked", "`/proc/diskstats`", absolute(15, "points")),
    Figure(PROFILER + "system.memory_percent", "how full the machine's memory is", "`/proc/meminfo`", absolute(8, "points")),
    Figure(PROFILER + "system.peak_cpu_percent", "largest sample of the CPUs", "100 %", at_most),
    Figure(PROFILER + "system.peak_memory_percent", "largest sample of the memory", "`/proc/meminfo`", absolute(10, "points")),
    Figure(PROFILER + "throughput", "samples a second", BY_HAND + " on the block's time", relative(1e-9)),
    Figure(PROFILER + "samples", "samples counted", COUNT, exact),
    Figure(PROFILER + "temperature.cpu_celsius", "hottest sensor at the end", FILES, exact),
    Figure(PROFILER + "temperature.cpu_max_celsius", "hottest sample in the block", FILES, exact),
    Figure(PROFILER + "temperature.gpu_celsius", "GPU at the end", "a stand-in of the driver", exact),
    Figure(PROFILER + "temperature.gpu_max_celsius", "hottest sample of the GPU", "a stand-in of the driver", exact),
    Figure(PROFILER + "network.bytes_received", "received by all interfaces but the loopback", "`/proc/net/dev`",
           bracketed(0)),
    Figure(PROFILER + "network.bytes_sent", "sent by all interfaces but the loopback", "`/proc/net/dev`", bracketed(0)),
    Figure(PROFILER + "energy.cpu_joules", "energy of the CPU packages", FILES, relative(1e-9)),
    Figure(PROFILER + "energy.total_joules", "energy of all that is counted", FILES, relative(1e-9)),
    Figure(PROFILER + "energy.gpu_joules", "energy of the GPU", "a stand-in of the driver", bracketed(0)),
    Figure(PROFILER + "carbon.grams_co2", "grams at the stated intensity", BY_HAND, relative(1e-9)),
    Figure(PROFILER + "carbon.intensity_g_per_kwh", "the intensity asked for", "the test's own number", exact),
    Figure(PROFILER + "custom[]", "what a hook of the user's measured", "the test's own number", exact),
    Figure(PROFILER + "get_timing_breakdown", "time of a name without inner blocks", INSIDE, TIME),
    Figure(PROFILER + "get_current_system_stats.cpu_percent", "CPUs since it was last asked", STAT, absolute(15, "points")),
    Figure(PROFILER + "get_current_system_stats.memory_percent", "memory now", "`/proc/meminfo`", absolute(8, "points")),
    Figure(PROFILER + "get_current_system_stats.disk_io_wait_percent", "CPUs idle while a disk works", STAT,
           absolute(15, "points")),
    Figure(PROFILER + "get_system_report.avg_cpu_percent", "CPUs over all samples", STAT, absolute(20, "points")),
    Figure(PROFILER + "get_system_report.peak_cpu_percent", "largest sample of the CPUs", "100 %", at_most),
    Figure(PROFILER + "get_system_report.avg_memory_percent", "memory over all samples", "`/proc/meminfo`",
           absolute(10, "points")),
    Figure(PROFILER + "get_system_report.peak_memory_percent", "largest sample of the memory", "`/proc/meminfo`",
           absolute(10, "points")),
    Figure(PROFILER + "get_system_report.samples", "samples taken", BY_HAND + " on the interval and the time", bracketed(0.5)),
    Figure(PROFILER + "get_line_profile[].hits", "times a line began", COUNT, exact),
    Figure(PROFILER + "get_line_profile[].time_s", "time of a line that sleeps", "`time.perf_counter()` around it",
           bracketed(0.02)),
    Figure(PROFILER + "get_line_profile[].time_percent", "its share of the block", BY_HAND, absolute(1, "points")),
    Figure(PROFILER + "get_line_profile[].line_number", "its number", "the code object's line numbers", exact),
    Figure(MONITOR + "duration_seconds", "time on the host", INSIDE, TIME),
    Figure(MONITOR + "self_seconds", "without the blocks inside it", INSIDE, TIME),
    Figure(MONITOR + "cpu_delta_mb", "what the process's memory grew by", MADE, absolute(2, "MB")),
    Figure(MONITOR + "cpu_peak_mb", "most resident memory in the block", MADE, absolute(4, "MB")),
    Figure(MONITOR + "gpu_delta_mb", "what torch's memory on the GPU grew by", "a stand-in of torch.cuda", exact),
    Figure(MONITOR + "gpu_peak_mb", "most memory of torch on the GPU in the block", "a stand-in of torch.cuda", exact),
    Figure(MONITOR + "device_seconds", "time on the GPU's clock", "a stand-in of torch.cuda", relative(1e-9)),
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
    Figure(MONITOR + "get_summary.gpu_memory.mean", "GPU memory in GB", "a stand-in of torch.cuda", relative(1e-9)),
    Figure(MONITOR + "get_summary[].min_mean_p95_max", "min <= mean, p95 <= max, in order", BY_HAND, exact),
    Figure(MONITOR + "get_summary[].std", "standard deviation of the samples", "Python's `statistics` on the drawn series",
           relative(1e-6)),
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
    Figure("python:ProductionProfiler.memory_mb", "most resident memory in the block", STATM, absolute(4, "MB")),
    Figure("python:ProductionProfiler.requests_processed", "requests of the last hour", COUNT, exact),
    Figure("python:ProductionProfiler.average_latency", "mean of the latencies given", BY_HAND, relative(1e-9)),
    Figure("python:ProductionProfiler.p95_latency", "95th percentile of the latencies given", "NumPy's `quantile`", relative(1e-9)),
    Figure("python:ProductionProfiler.sla_violations", "latencies above the SLA", COUNT, exact),
    Figure("python:profile_function.execution_time", "time of the function, without a tracer (table=False)", INSIDE, TIME),
    Figure("python:profile_function.execution_time, traced", "share of the traced time that is left after the tracer's cost",
           "CPU time of the same calls without a tracer, over that with one", bracketed(0.5)),
    Figure("python:profile_function.traced_time", "time with the tracer", INSIDE, TIME),
    Figure("python:profile_function.memory_delta", "what the process's memory grew by, MB", MADE, absolute(2, "MB")),
    Figure("python:profile_function.functions[].calls", "calls of a function", COUNT, exact),
    Figure("python:profile_function.functions[].primitive_calls", "calls that are no recursion", COUNT, exact),
    Figure("python:profile_function.functions[].total_s", "time of a function that sleeps", "`time.perf_counter()` around it",
           bracketed(0.02)),
    Figure("python:profile_function.functions[].self_s", "its own time", "`time.perf_counter()` around it", bracketed(0.02)),
    Figure("python:detect_memory_leak.growth_mb", "last less first snapshot", BY_HAND, exact),
    Figure("python:detect_memory_leak.growing_percent", "share of steps that went up", BY_HAND, relative(1e-9)),
    Figure("python:detect_memory_leak.leak", "whether it is a leak", "series made with and without one", exact),
    Figure("python:plan_capacity.waiting_ms", "mean wait for a free replica", "a simulation of the queue", bracketed(0.2)),
    Figure("python:plan_capacity.response_ms", "filling, waiting and running", BY_HAND, relative(1e-9)),
    Figure("python:measure_scaling.rows[].peak_mb", "memory that a call adds at its peak", MADE, absolute(4, "MB")),
    Figure("python:measure_scaling.rows[].median_s", "median time of a call", "`time.perf_counter()` in the function",
           bracketed(0.5)),
    Figure("python:wait4.ru_maxrss", "the system's own peak of a process with blocks", "the same process without blocks, KiB",
           relative(0.05)),
]


def touch(size):
    data = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, size, 4096):
        data[at] = 1
    return data


def spin(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MB


def stat():
    with open("/proc/stat") as file:
        numbers = [int(word) for word in file.readline().split()[1:9]]
    return sum(numbers), numbers[3], numbers[4]


def machine_between(before, after):
    """(busy, waiting for disks) percent."""
    whole, idle, waiting = (new - old for new, old in zip(after, before))
    return 100 * (whole - idle - waiting) / whole, 100 * waiting / whole


def memory_percent():
    with open("/proc/meminfo") as file:
        found = {line.split(":")[0]: int(line.split()[1]) for line in file}
    return 100 * (1 - found["MemAvailable"] / found["MemTotal"])


def disks():
    with open("/proc/diskstats") as file:
        return {line.split()[2]: int(line.split()[12]) for line in file}


def traffic():
    with open("/proc/net/dev") as file:
        rows = [line.replace(":", ": ").split() for line in file if ":" in line]
    return tuple(sum(int(row[column]) for row in rows if row[0] != "lo:") for column in (1, 9))


class Timed:
    """The truth of blocks: (inside, outside) seconds by each of three clocks."""

    def __init__(self):
        self.wall, self.cpu, self.process = [], [], []

    @staticmethod
    def clocks():
        import resource
        used = resource.getrusage(resource.RUSAGE_SELF)
        return time.perf_counter(), time.thread_time(), used.ru_utime + used.ru_stime

    def run(self, block, work):
        outer = self.clocks()
        with block:
            inner = self.clocks()
            work()
            inner_end = self.clocks()
        outer_end = self.clocks()
        for at, to in enumerate((self.wall, self.cpu, self.process)):
            to.append((inner_end[at] - inner[at], outer_end[at] - outer[at]))
        return self


def added(pairs):
    return sum(low for low, _ in pairs), sum(high for _, high in pairs)


def quantile(pairs, q):
    """Nearest rank; a histogram's bucket beside it is allowed for by the bound."""
    at = max(0, math.ceil(q * len(pairs)) - 1)
    return sorted(low for low, _ in pairs)[at], sorted(high for _, high in pairs)[at]


# ---- PerformanceProfiler -------------------------------------------------------------------------------------------

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


def test_memory(truth):
    profiler = tare.PerformanceProfiler(detailed_memory=True, memory_interval=0.01)
    before = resident()
    with profiler.profile("grows"):
        inside = resident()
        data = touch(128 * MB)
        time.sleep(0.15)
        data.close()
        time.sleep(0.15)
        kept = touch(32 * MB)
    memory = profiler.get_metrics().memory
    truth.check(PROFILER + "memory.ram_before_mb", memory.ram_before_mb, inside)
    truth.check(PROFILER + "memory.ram_after_mb", memory.ram_after_mb, resident())
    truth.check(PROFILER + "memory.growth_mb", memory.growth_mb, 32)
    truth.check(PROFILER + "memory.peak_ram_mb", memory.peak_ram_mb, inside + 128)
    truth.check(PROFILER + "get_memory_timeline", max(mb for _, mb in profiler.get_memory_timeline()), inside + 128)
    seen = profiler.get_memory_timeline()
    mean = sum((one[0] - other[0]) * one[1] for one, other in zip(seen[1:], seen)) / (seen[-1][0] - seen[0][0])
    truth.check(PROFILER + "memory.average_ram_mb", memory.average_ram_mb, mean)
    assert inside + 20 < memory.average_ram_mb < inside + 128
    with open("/proc/self/smaps_rollup") as file:
        found = {line.split(":")[0]: int(line.split()[1]) for line in file if "kB" in line}
    truth.check(PROFILER + "memory.anonymous_mb", memory.anonymous_mb, found["Anonymous"] / 1024)
    truth.check(PROFILER + "memory.file_mb", memory.file_mb, (found["Rss"] - found["Anonymous"]) / 1024)
    truth.check(PROFILER + "get_current_memory", profiler.get_current_memory(), resident())
    kept.close()

    with profiler.profile("below the earlier peak"):  # the mark does not rise: sampled
        inside = resident()
        data = touch(64 * MB)
        time.sleep(0.1)
        data.close()
    below = profiler.get_metrics().memory
    truth.check(PROFILER + "memory.peak_ram_mb", below.peak_ram_mb, inside + 64)
    assert "lower bound" in below.peak_ram_note and before > 0


def test_the_system(truth):
    profiler = tare.PerformanceProfiler(track_system=True, system_interval=0.1, track_network=True)
    profiler.get_current_system_stats()
    time.sleep(0.12)
    before, disk, began = stat(), disks(), time.monotonic()
    outside = traffic()
    with profiler.profile("machine"):
        inside = traffic()
        spin(0.5)
        time.sleep(0.5)
        inside_end = traffic()
    outside_end, after = traffic(), stat()
    elapsed_ms = 1000 * (time.monotonic() - began)
    system, network = profiler.get_metrics().system, profiler.get_metrics().network
    busy, waiting = machine_between(before, after)
    truth.check(PROFILER + "system.cpu_percent", system.cpu_percent, busy)
    truth.check(PROFILER + "system.disk_io_wait_percent", system.disk_io_wait_percent, waiting)
    if not isinstance(system.disk_io_percent, tare.Missing):
        most = max(100 * (now - disk.get(name, now)) / elapsed_ms for name, now in disks().items())
        truth.check(PROFILER + "system.disk_io_percent", system.disk_io_percent, min(most, 100.0))
    else:
        truth.check(PROFILER + "system.disk_io_percent", 0.0, 0.0)  # a machine without a disk of its own
    truth.check(PROFILER + "system.memory_percent", system.memory_percent, memory_percent())
    truth.check(PROFILER + "system.peak_cpu_percent", system.peak_cpu_percent, 100.0)
    truth.check(PROFILER + "system.peak_memory_percent", system.peak_memory_percent, memory_percent())
    for at, name in enumerate(("bytes_received", "bytes_sent")):
        low, high = inside_end[at] - inside[at], outside_end[at] - outside[at]
        truth.check(PROFILER + "network." + name, getattr(network, name), (low, high + 0))
    stats, now = profiler.get_current_system_stats(), stat()
    busy_now, waiting_now = machine_between(before, now)
    truth.check(PROFILER + "get_current_system_stats.cpu_percent", stats.cpu_percent, busy_now)
    truth.check(PROFILER + "get_current_system_stats.memory_percent", stats.memory_percent, memory_percent())
    truth.check(PROFILER + "get_current_system_stats.disk_io_wait_percent", stats.disk_io_wait_percent, waiting_now)
    report = profiler.get_system_report()
    truth.check(PROFILER + "get_system_report.avg_cpu_percent", report.avg_cpu_percent, busy)
    truth.check(PROFILER + "get_system_report.peak_cpu_percent", report.peak_cpu_percent, 100.0)
    truth.check(PROFILER + "get_system_report.avg_memory_percent", report.avg_memory_percent, memory_percent())
    truth.check(PROFILER + "get_system_report.peak_memory_percent", report.peak_memory_percent, memory_percent())
    truth.check(PROFILER + "get_system_report.samples", report.samples, (5, 2 + elapsed_ms / 100))


def test_flops():
    torch = pytest.importorskip("torch")
    profiler = tare.PerformanceProfiler(estimate_flops=True)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 5))
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
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 5))
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
    with profiler.profile("checkpoint"):  # the model is called again in the backward pass, up to the input of its last layer
        for _ in range(10):
            torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).sum().backward()
    again = profiler.get_metrics().compute
    truth.check(PROFILER + "compute.estimated_flops, by calls of modules",
                [forward.estimated_flops, training.estimated_flops, again.estimated_flops],
                [40 * (convolution + linear), 40 * (2 * convolution + 3 * linear), 10 * (3 * convolution + 3 * linear)])
    truth.check(PROFILER + "compute.module_calls", [forward.module_calls, training.module_calls, again.module_calls], [40, 40, 10])
    truth.check(PROFILER + "compute.module_calls_counted", [forward.module_calls_counted, training.module_calls_counted],
                [(1, 40)] * 2)


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(str(text))


def test_sensors(truth, tmp_path):
    write(tmp_path, "class/hwmon/hwmon0/name", "coretemp\n")
    write(tmp_path, "class/hwmon/hwmon0/temp1_input", 41000)
    write(tmp_path, "class/powercap/intel-rapl:0/name", "package-0\n")
    write(tmp_path, "class/powercap/intel-rapl:0/max_energy_range_uj", 1_000_000_000)
    write(tmp_path, "class/powercap/intel-rapl:0/energy_uj", 999_000_000)
    profiler = tare.PerformanceProfiler(track_cpu_temp=True, track_carbon=True, carbon_intensity=300.0)
    for part in profiler._parts:
        if isinstance(part, _parts.Temperature):
            part.degrees = _parts.Degrees(_sensors.CpuTemperature(str(tmp_path)).read)
        else:
            part.cpu = _sensors.CpuEnergy(str(tmp_path))
    with profiler.profile("hot"):
        write(tmp_path, "class/hwmon/hwmon0/temp1_input", 88000)
        time.sleep(0.4)
        write(tmp_path, "class/hwmon/hwmon0/temp1_input", 52000)
        write(tmp_path, "class/powercap/intel-rapl:0/energy_uj", 35_000_000)  # it began again at 1,000 J
    metrics = profiler.get_metrics()
    truth.check(PROFILER + "temperature.cpu_max_celsius", metrics.temperature.cpu_max_celsius, 88.0)
    truth.check(PROFILER + "temperature.cpu_celsius", metrics.temperature.cpu_celsius, 52.0)
    truth.check(PROFILER + "energy.cpu_joules", metrics.energy.cpu_joules, 36.0)
    truth.check(PROFILER + "energy.total_joules", metrics.energy.total_joules, 36.0)
    truth.check(PROFILER + "carbon.grams_co2", metrics.carbon.grams_co2, 36.0 / 3.6e6 * 300)
    truth.check(PROFILER + "carbon.intensity_g_per_kwh", metrics.carbon.intensity_g_per_kwh, 300.0)


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


# ---- with a GPU that counts ----------------------------------------------------------------------------------------

GPU = """
import json, sys, types
sys.path[:0] = {path!r}
from test_monitor_gpu import Cuda
torch = types.ModuleType("torch")
torch.version = types.SimpleNamespace(cuda="12.4")
torch.cuda = cuda = Cuda()
torch.backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(benchmark=True))
sys.modules["torch"] = torch
import tare
from tare import _core, _parts
told = iter((83.0,))
energies = iter((1000.0, 1050.0))
_core.gpu_load = lambda device, since: 83.0
_core.gpu_joules = lambda device: next(energies)
now = [60.0]
_core.gpu_celsius = lambda device: now[0]
profiler = tare.PerformanceProfiler(track_gpu=True, track_carbon=True)
monitor = tare.PerformanceMonitor()
cuda.take(100)
with monitor.track("queues"), profiler.profile("queues"):
    cuda.take(700); cuda.take(-300)
    cuda.clock_ms += 818
    now[0] = 85.0
    import time; time.sleep(0.4)
    now[0] = 70.0
metrics, (metric,) = profiler.get_metrics(), monitor.get_metrics()
_core.gpu_memory = lambda device: (1 << 30, 8 << 30)  # there is a driver; what torch has is asked of torch
monitor.record_metrics()
print(json.dumps(dict(device=metrics.timing.device_time_s, peak=metrics.memory.peak_gpu_mb,
                      load=metrics.compute.gpu_utilization_percent, celsius=metrics.temperature.gpu_celsius,
                      hottest=metrics.temperature.gpu_max_celsius, joules=metrics.energy.gpu_joules,
                      seconds=metric.device_seconds, delta=metric.gpu_delta_mb, most=metric.gpu_peak_mb,
                      gb=monitor.get_summary()["gpu_memory"]["mean"])))
"""


def test_a_gpu(truth):
    here = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python")
    done = subprocess.run([sys.executable, "-c", GPU.format(path=[here, *sys.path])], stdout=subprocess.PIPE, text=True,
                          timeout=60, check=True)
    told = json.loads(done.stdout.splitlines()[-1])
    truth.check(PROFILER + "timing.device_time_s", told["device"], 0.818)
    truth.check(PROFILER + "memory.peak_gpu_mb", told["peak"], 800.0)
    truth.check(PROFILER + "compute.gpu_utilization_percent", told["load"], 83.0)
    truth.check(PROFILER + "temperature.gpu_celsius", told["celsius"], 70.0)
    truth.check(PROFILER + "temperature.gpu_max_celsius", told["hottest"], 85.0)
    truth.check(PROFILER + "energy.gpu_joules", told["joules"], (50.0, 50.0))
    truth.check(MONITOR + "device_seconds", told["seconds"], 0.818)
    truth.check(MONITOR + "gpu_delta_mb", told["delta"], 400.0)
    truth.check(MONITOR + "gpu_peak_mb", told["most"], 800.0)
    truth.check(MONITOR + "get_summary.gpu_memory.mean", told["gb"], 500 / 1024)


# ---- PerformanceMonitor and the others -----------------------------------------------------------------------------

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
    truth.check(MONITOR + "get_total_time", monitor.get_total_time() - monitor.get_operation_time("spike"), (low * 0.999, high))
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


# ---- functions, leaks, plans ---------------------------------------------------------------------------------------

def leaf():
    begun = time.perf_counter()
    time.sleep(0.01)
    return time.perf_counter() - begun


def tree(depth):
    return leaf() if depth == 0 else tree(depth - 1)


def calls(count):
    for _ in range(count):
        abs(-1)
        empty()


def empty():
    pass


def test_functions(truth):
    of = "python:profile_function."
    inside = []

    def timed():
        begun = time.perf_counter()
        spin(0.05)
        inside.append(time.perf_counter() - begun)
    outside = time.perf_counter()
    told = tare.FunctionProfiler(table=False)(timed)
    truth.check(of + "execution_time", told["execution_time"], (inside[0], time.perf_counter() - outside))
    inside.clear()
    outside = time.perf_counter()
    told = tare.profile_function(timed)
    truth.check(of + "traced_time", told["traced_time"], (inside[0], time.perf_counter() - outside))
    kept = []
    truth.check(of + "memory_delta", tare.profile_function(lambda: kept.append(touch(48 * MB)))["memory_delta"], 48)
    outside = time.perf_counter()
    told = tare.profile_function(tree, 4)
    whole = time.perf_counter() - outside
    rows = {row["function"].rpartition(".")[2]: row for row in told["functions"]}
    truth.check(of + "functions[].calls", [rows["tree"]["calls"], rows["leaf"]["calls"]], [5, 1])
    truth.check(of + "functions[].primitive_calls", [rows["tree"]["primitive_calls"], rows["leaf"]["primitive_calls"]],
                [1, 1])
    truth.check(of + "functions[].total_s", rows["leaf"]["total_s"], (told["result"], whole))
    sleeps = next(row for row in told["functions"] if "sleep" in row["function"])
    truth.check(of + "functions[].self_s", sleeps["self_s"], (0.01, told["result"]))


def test_the_tracers_cost(truth):
    """In CPU time, which a busy machine disturbs less: what is left of the traced time, against what should be."""
    import cProfile
    shown, true = [], []
    for _ in range(7):
        begun = time.thread_time()
        calls(5000)
        plain = time.thread_time() - begun
        tracer = cProfile.Profile()
        begun = time.thread_time()
        tracer.enable()
        calls(5000)
        tracer.disable()
        true.append(plain / (time.thread_time() - begun))
        told = tare.profile_function(calls, 5000)
        shown.append(told["execution_time"] / told["traced_time"])
    truth.check("python:profile_function.execution_time, traced", statistics.median(shown),
                (min(true), max(true) + 0.1))


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
        process = subprocess.Popen([sys.executable, "-c", text], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        assert status == 0
        peaks.append(usage.ru_maxrss)
    truth.check("python:wait4.ru_maxrss", peaks[1], peaks[0])
