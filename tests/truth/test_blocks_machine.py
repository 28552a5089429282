"""PerformanceProfiler and PerformanceMonitor: memory, the machine, sensors and a GPU, against the kernel's files and
stand-ins."""
import json
import os
import subprocess
import sys
import time

import tare
from tare.seeds import _parts
from blocks import (MB, STATM, MADE, STAT, BY_HAND, FILES, PROFILER, MONITOR, touch, spin,
                    resident, stat, machine_between, memory_percent, disks, traffic)
from truth import Figure, absolute, at_most, bracketed, exact, relative

FIGURES = [
    Figure(PROFILER + "timing.device_time_s", "time on the GPU's clock",
           "a stand-in of torch.cuda whose clock the test sets", relative(1e-9)),
    Figure(PROFILER + "memory.peak_ram_mb", "peak resident memory in the block", MADE, absolute(4, "MB")),
    Figure(PROFILER + "memory.ram_before_mb", "resident memory at its begin", STATM, absolute(2, "MB")),
    Figure(PROFILER + "memory.ram_after_mb", "resident memory at its end", STATM, absolute(2, "MB")),
    Figure(PROFILER + "memory.growth_mb", "what it grew by", MADE, absolute(2, "MB")),
    Figure(PROFILER + "memory.average_ram_mb", "mean over time of its samples", MADE + ", half of the time",
           absolute(12, "MB")),
    Figure(PROFILER + "memory.anonymous_mb", "of it, memory of no file", "`/proc/self/smaps_rollup`",
           absolute(4, "MB")),
    Figure(PROFILER + "memory.file_mb", "of it, pages of files", "`/proc/self/smaps_rollup`", absolute(4, "MB")),
    Figure(PROFILER + "memory.peak_gpu_mb", "most memory of torch on the GPU", "a stand-in of torch.cuda", exact),
    Figure(PROFILER + "get_memory_timeline", "largest sample of memory", MADE, absolute(4, "MB")),
    Figure(PROFILER + "get_current_memory", "resident memory now", STATM, absolute(2, "MB")),
    Figure(PROFILER + "compute.gpu_utilization_percent", "how busy the GPU was", "a stand-in of the driver", exact),
    Figure(PROFILER + "system.cpu_percent", "how busy the machine's CPUs were", STAT, absolute(15, "points")),
    Figure(PROFILER + "system.disk_io_wait_percent", "CPUs idle while a disk works", STAT, absolute(15, "points")),
    Figure(PROFILER + "system.disk_io_percent", "how long the busiest disk worked", "`/proc/diskstats`",
           absolute(15, "points")),
    Figure(PROFILER + "system.memory_percent", "how full the machine's memory is", "`/proc/meminfo`",
           absolute(8, "points")),
    Figure(PROFILER + "system.peak_cpu_percent", "largest sample of the CPUs", "100 %", at_most),
    Figure(PROFILER + "system.peak_memory_percent", "largest sample of the memory", "`/proc/meminfo`",
           absolute(10, "points")),
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
    Figure(PROFILER + "get_current_system_stats.cpu_percent", "CPUs since it was last asked", STAT,
           absolute(15, "points")),
    Figure(PROFILER + "get_current_system_stats.memory_percent", "memory now", "`/proc/meminfo`",
           absolute(8, "points")),
    Figure(PROFILER + "get_current_system_stats.disk_io_wait_percent", "CPUs idle while a disk works", STAT,
           absolute(15, "points")),
    Figure(PROFILER + "get_system_report.avg_cpu_percent", "CPUs over all samples", STAT, absolute(20, "points")),
    Figure(PROFILER + "get_system_report.peak_cpu_percent", "largest sample of the CPUs", "100 %", at_most),
    Figure(PROFILER + "get_system_report.avg_memory_percent", "memory over all samples", "`/proc/meminfo`",
           absolute(10, "points")),
    Figure(PROFILER + "get_system_report.peak_memory_percent", "largest sample of the memory", "`/proc/meminfo`",
           absolute(10, "points")),
    Figure(PROFILER + "get_system_report.samples", "samples taken", BY_HAND + " on the interval and the time",
           bracketed(0.5)),
    Figure(MONITOR + "gpu_delta_mb", "what torch's memory on the GPU grew by", "a stand-in of torch.cuda", exact),
    Figure(MONITOR + "gpu_peak_mb", "most memory of torch on the GPU in the block", "a stand-in of torch.cuda", exact),
    Figure(MONITOR + "device_seconds", "time on the GPU's clock", "a stand-in of torch.cuda", relative(1e-9)),
    Figure(MONITOR + "get_summary.gpu_memory.mean", "GPU memory in GB", "a stand-in of torch.cuda", relative(1e-9)),
]


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


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(str(text))


def test_sensors(truth, tmp_path):
    write(tmp_path, "sys/class/hwmon/hwmon0/name", "coretemp\n")
    write(tmp_path, "sys/class/hwmon/hwmon0/temp1_input", 41000)
    write(tmp_path, "sys/class/powercap/intel-rapl:0/name", "package-0\n")
    write(tmp_path, "sys/class/powercap/intel-rapl:0/max_energy_range_uj", 1_000_000_000)
    write(tmp_path, "sys/class/powercap/intel-rapl:0/energy_uj", 999_000_000)
    profiler = tare.PerformanceProfiler(track_cpu_temp=True, track_carbon=True, carbon_intensity=300.0)
    for part in profiler._parts:
        if isinstance(part, _parts.Temperature):
            part.degrees = _parts.cpu_degrees(str(tmp_path))
        else:
            part.cpu = _parts.CpuEnergy(str(tmp_path))
    with profiler.profile("hot"):
        write(tmp_path, "sys/class/hwmon/hwmon0/temp1_input", 88000)
        time.sleep(0.4)
        write(tmp_path, "sys/class/hwmon/hwmon0/temp1_input", 52000)
        write(tmp_path, "sys/class/powercap/intel-rapl:0/energy_uj", 35_000_000)  # it began again at 1,000 J
    metrics = profiler.get_metrics()
    truth.check(PROFILER + "temperature.cpu_max_celsius", metrics.temperature.cpu_max_celsius, 88.0)
    truth.check(PROFILER + "temperature.cpu_celsius", metrics.temperature.cpu_celsius, 52.0)
    truth.check(PROFILER + "energy.cpu_joules", metrics.energy.cpu_joules, 36.0)
    truth.check(PROFILER + "energy.total_joules", metrics.energy.total_joules, 36.0)
    truth.check(PROFILER + "carbon.grams_co2", metrics.carbon.grams_co2, 36.0 / 3.6e6 * 300)
    truth.check(PROFILER + "carbon.intensity_g_per_kwh", metrics.carbon.intensity_g_per_kwh, 300.0)


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
from tare import _core
from tare.seeds import _parts
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
