"""PerformanceMonitor and its friends where there is a GPU: a torch that only counts, a driver that looks like one."""
import os
import re
import shutil
import subprocess
import sys

import pytest


# ---- a GPU, by a torch that only counts ----------------------------------------------------------------------------

class Cuda:
    """The part of torch.cuda that is asked, with memory that tests set."""

    def __init__(self):
        self.allocated = self.peak = self.reserved = 0
        self.free, self.total = 3 * 2 ** 30, 8 * 2 ** 30
        self.clock_ms = 0.0
        self.done = self.ready = True

    def take(self, mb):
        self.allocated += int(mb * 2 ** 20)
        self.peak = max(self.peak, self.allocated)
        self.reserved = max(self.reserved, self.allocated)

    def is_initialized(self):
        return self.ready

    def memory_allocated(self, device):
        return self.allocated

    def memory_reserved(self, device):
        return self.reserved

    def max_memory_allocated(self, device):
        return self.peak

    def reset_peak_memory_stats(self, device):
        self.peak = self.allocated

    def current_stream(self, device):
        return None

    def mem_get_info(self, device):
        return self.free, self.total

    def Event(self, enable_timing):
        cuda = self

        class Event:
            def record(self, stream):
                self.at = cuda.clock_ms

            def query(self):
                return cuda.done

            def elapsed_time(self, other):
                return other.at - self.at
        return Event()


GPU_SCRIPT = """
import sys, types
sys.path[:0] = {path!r}
from test_monitor_gpu import Cuda
torch = types.ModuleType("torch")
torch.version = types.SimpleNamespace(cuda="12.4")
torch.cuda = cuda = Cuda()
torch.backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(benchmark=True))
sys.modules["torch"] = torch
import tare
"""


def with_gpu(code):
    """Runs the code in an interpreter whose torch counts as the class above does."""
    script = GPU_SCRIPT.format(path=[os.path.dirname(__file__), *sys.path]) + code
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_parents_gpu_peak_is_not_lost_by_its_child():
    with_gpu("""
monitor = tare.PerformanceMonitor()
with monitor.track("outer"):
    cuda.take(900); cuda.take(-800)
    with monitor.track("inner"):
        cuda.take(50); cuda.take(-30)
with monitor.track("after"):
    pass
with monitor.track("summed", aggregate=True):
    cuda.take(5)
inner, outer, after = monitor.get_metrics()
assert (inner.operation, inner.gpu_delta_mb, inner.gpu_peak_mb) == ("inner", 20, 150)
assert (outer.gpu_delta_mb, outer.gpu_peak_mb) == (120, 900)
assert (after.gpu_delta_mb, after.gpu_peak_mb) == (0, 120)
""")


def test_a_block_in_which_the_gpu_comes_into_use():
    """The first one of most programs: it makes the model."""
    with_gpu("""
cuda.ready = False
profiler = tare.PerformanceProfiler(track_gpu=True)
with profiler.profile("outer"), tare.track_performance("all", print_result=False) as tracked:
    cuda.ready = True
    cuda.take(900); cuda.take(-800)
    with profiler.profile("inner"):
        cuda.take(50); cuda.take(-30)
assert profiler.get_metrics("outer").memory.peak_gpu_mb == 900
assert profiler.get_metrics("inner").memory.peak_gpu_mb == 150
assert (tracked.metric.gpu_delta_mb, tracked.metric.gpu_peak_mb) == (120, 900)
assert isinstance(tracked.metric.device_seconds, tare.Missing)
cuda.ready = False
with profiler.profile("none"):
    pass
assert isinstance(profiler.get_metrics("none").memory.peak_gpu_mb, tare.Missing)
""")


def test_device_time_is_never_waited_for():
    with_gpu("""
monitor = tare.PerformanceMonitor()
with monitor.track("forward"):
    cuda.clock_ms += 250
cuda.done = False
(metric,) = monitor.get_metrics()
assert isinstance(metric.device_seconds, tare.Missing) and "not finished" in metric.device_seconds.reason
cuda.done = True
assert metric.device_seconds == 0.25 and metric.duration_seconds < 0.25
assert not any(found.kind == "forward" for found in monitor.bottlenecks())
""")


def test_blocks_with_queued_work_say_that_they_hold_host_time():
    out = with_gpu("""
profiler = tare.PerformanceProfiler(track_gpu=True)
monitor = tare.PerformanceMonitor()
for name, ms in (("queues", 818), ("waits", 0)):
    with monitor.track(name), profiler.profile(name):
        cuda.clock_ms += ms
cuda.done = False
for timing in (profiler.get_metrics().timing, profiler.get_metrics("queues").timing):
    assert "not finished" in timing.device_time_s.reason
monitor.print_summary()
cuda.done = True
assert profiler.get_metrics("queues").timing.device_time_s == 0.818
assert profiler.get_metrics("queues").timing.wall_time_s < 0.5
with profiler.profile("queues"):
    cuda.clock_ms += 100
assert abs(profiler.get_metrics("queues").timing.device_time_s - 0.918) < 1e-9
assert profiler.get_metrics().timing.device_time_s == 0.1
monitor.print_summary()
plain = tare.PerformanceProfiler()
with plain.profile("x"):
    pass
assert "host time only" in plain.get_metrics().timing.device_time_s.reason
with tare.track_performance("queues"):
    cuda.clock_ms += 818
""")
    unfinished, finished = out.split("PERFORMANCE SUMMARY")[1:]
    assert "host time" in unfinished and "n/a (the GPU has not finished" in unfinished
    assert "queues                         0.818s" in finished and "  waits" not in finished.split("host time")[1]
    assert "host time only: GPU time 0.818s" in finished


def test_cuda_time_has_every_kernel_once():
    """A recorded table of torch's: operators with the time of their kernels, the kernels, a span around them."""
    import enum
    import types

    from tare.seeds.torchprofiler import PyTorchProfiler

    class Kind(enum.Enum):
        CPU, CUDA = 0, 1

    def row(key, kind, device_us, own_us, count=1, **more):
        return types.SimpleNamespace(key=key, device_type=kind, count=count, self_cpu_time_total=5.0,
                                     cpu_time_total=5.0,
                                     self_device_time_total=own_us, device_time_total=device_us, **more)
    rows = [row("aten::linear", Kind.CPU, 90_000, 0), row("aten::addmm", Kind.CPU, 90_000, 90_000),
            row("forward", Kind.CPU, 140_000, 0),
            row("forward", Kind.CUDA, 140_000, 140_000, is_user_annotation=True),
            row("ampere_sgemm", Kind.CUDA, 90_000, 90_000, 3), row("Memcpy HtoD", Kind.CUDA, 50_000, 50_000)]
    made = PyTorchProfiler()
    made._reset(None)
    made._seconds = 0.187
    made._collect(types.SimpleNamespace(key_averages=lambda: rows))
    told = made.get_profile_summary()
    assert told["cuda_time"] == pytest.approx(0.14) and told["cuda_time"] <= told["total_time"]
    assert [row["name"] for row in told["top_kernels"]] == ["ampere_sgemm", "Memcpy HtoD"]
    assert {row["name"] for row in told["top_operations"]} == {"aten::linear", "aten::addmm", "forward"}
    assert sum(row["cuda_time"] for row in told["top_operations"]) == pytest.approx(0.09)
    old = PyTorchProfiler()
    old._reset(None)
    old._collect(types.SimpleNamespace(key_averages=lambda: [rows[0], rows[1]]))  # a torch that lists no kernels
    assert old.get_profile_summary()["cuda_time"] == pytest.approx(0.09)


def test_lines_with_a_gpu():
    out = with_gpu("""
with tare.track_performance("critical_operation"):
    cuda.take(1024.3); cuda.take(-512.3)
monitor = tare.EpochPerformanceMonitor(verbose_batches=1)
monitor.on_epoch_start()
monitor.on_batch_start(0); monitor.on_batch_end(0)
monitor.on_epoch_end()
assert monitor.cudnn_benchmark is True
""")
    lines = out.splitlines()
    assert re.fullmatch(r"\[Performance\] critical_operation: 0\.\d{3}s, CPU [+-]\d+\.\dMB, GPU \+512\.0MB", lines[0])
    assert lines[1] == "              GPU peak: 1024.3MB"
    assert re.fullmatch(r"  Batch 0: 0\.\d{3}s, GPU 512\.0MB, CPU \d+\.\dMB", lines[2])
    assert re.fullmatch(r"  Epoch end: 0\.\d{3}s total, GPU 512\.0MB, 1024MB reserved, peak 1024MB", lines[3])


def test_a_framework_that_fails_does_not_stop_the_program():
    with_gpu("""
def fail(*arguments):
    raise RuntimeError("CUDA error: an illegal memory access was encountered")
cuda.memory_allocated = cuda.Event = cuda.reset_peak_memory_stats = fail
monitor = tare.PerformanceMonitor()
with monitor.track("a"):
    pass
(metric,) = monitor.get_metrics()
assert "illegal memory access" in metric.gpu_delta_mb.reason
""")


# ---- the driver, by a library that looks like it -----------------------------------------------------------------

FAKE_DRIVER = """
#include <stdlib.h>
#include <string.h>
typedef struct { unsigned long long total, free, used; } memory;
int nvmlInit_v2(void) { return getenv("FAKE_FAILURE") ? 9 : 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = (void *)(size_t)(index + 1);
    return index > 1 ? 2 : 0;
}
int nvmlDeviceGetHandleByUUID(const char *name, void **device)
{
    *device = (void *)2;
    return strcmp(name, "GPU-b") ? 2 : 0;
}
int nvmlDeviceGetMemoryInfo(void *device, memory *info)
{
    info->used = (size_t)device << 30;
    info->total = 8ull << 30;
    info->free = info->total - info->used;
    return 0;
}
const char *nvmlErrorString(int result) { return result == 9 ? "Driver Not Loaded" : "Invalid Argument"; }
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "fake.c").write_text(FAKE_DRIVER)
    subprocess.run([compiler, "-shared", "-fPIC", str(folder / "fake.c"), "-o", str(folder / "fake.so")], check=True)
    return str(folder / "fake.so")


def ask_driver(code, **environment):
    done = subprocess.run([sys.executable, "-c", "import tare\nfrom tare import _core\n" + code],
                          stdout=subprocess.PIPE, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment})
    assert done.returncode == 0
    return done.stdout.strip()


def test_the_drivers_memory(driver):
    gib = 2 ** 30
    ask = "print(*(_core.gpu_memory(n) for n in range(3)), sep=';')"
    assert ask_driver(ask, TARE_NVML=driver) == (
        f"({gib}, {8 * gib});({2 * gib}, {8 * gib});GPU 2: NVML: Invalid Argument (2)")
    assert ask_driver(ask, TARE_NVML=driver, CUDA_VISIBLE_DEVICES="1,GPU-b") == (
        f"({2 * gib}, {8 * gib});({2 * gib}, {8 * gib});CUDA_VISIBLE_DEVICES names no device 2")
    assert "the NVIDIA driver is not loaded" in ask_driver(ask, TARE_NVML=driver, FAKE_FAILURE="1")
    assert "no NVIDIA driver" in ask_driver(ask, TARE_NVML="/no such file")


def test_how_full_a_gpu_is(driver):
    """1 - free/total: by CUDA where torch uses it, by the driver where not, missing with the reason without either."""
    assert ask_driver("print(tare.PerformanceProfiler(track_gpu=True, device=1).get_current_gpu_memory())",
                      TARE_NVML=driver) == "0.25"
    with_gpu("""
for device in (0, "cuda", "cuda:0"):
    profiler = tare.PerformanceProfiler(track_gpu=True, device=device)
    assert profiler.get_current_gpu_memory() == 1 - 3 / 8
cuda.free = 0
assert profiler.get_current_gpu_memory() == 1
profiler = tare.PerformanceProfiler(track_gpu=True, device="cpu")
assert 'device="cpu"' in profiler.get_current_gpu_memory().reason
""")


def test_a_monitor_of_the_cpu_measures_no_gpu():
    with_gpu("""
monitor = tare.PerformanceMonitor(device="cpu")
cuda.reset_peak_memory_stats = cuda.Event = None  # to be called by nobody
with monitor.track("block"):
    cuda.take(100)
metric, = monitor.get_metrics()
for value in (metric.gpu_delta_mb, metric.gpu_peak_mb, metric.device_seconds):
    assert isinstance(value, tare.Missing) and 'device="cpu"' in value.reason, value
monitor.record_metrics()
assert 'device="cpu"' in monitor.get_summary()["gpu_memory"]["mean"].reason
profiler = tare.PerformanceProfiler(track_gpu=True, track_carbon=True, device="cpu")
with profiler.profile("block"):
    pass
metrics = profiler.get_metrics()
for value in (metrics.memory.peak_gpu_mb, metrics.compute.gpu_utilization_percent, metrics.temperature.gpu_celsius):
    assert 'device="cpu"' in value.reason, value
""")


def test_monitoring_asks_the_driver_without_torch(driver):
    assert ask_driver("m = tare.PerformanceMonitor(device=1); m.record_metrics()\n"
                      "print(m.get_summary()['gpu_memory']['mean'])", TARE_NVML=driver) == "2.0"


def test_a_program_without_cuda_has_no_gpu_values_of_blocks(driver):
    assert ask_driver("m = tare.PerformanceMonitor()\nwith m.track('a'): pass\n"
                      "print(repr(m.get_metrics()[0].gpu_delta_mb))", TARE_NVML=driver) == "n/a (CUDA was not in use)"
