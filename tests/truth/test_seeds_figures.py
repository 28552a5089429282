"""Figures of the classes that measure loaders, training steps and models as functions: what they show against clocks
inside of the very calls that they make, and against arithmetic."""
import json
import math
import statistics
import time

import pytest

import tare
from truth import Figure, at_most, bracketed, exact, relative

numpy = pytest.importorskip("numpy")

INSIDE = "`time.perf_counter()` inside of each call, and from one call to the next"
BY_HAND = "arithmetic by hand"
COUNT = "the program's own count"
LOADER, MODEL = "python:DataLoadingProfiler.", "python:ModelProfiler."
TRAINING, CONTEST = "python:CodeProfiler.training.", "python:CodeProfiler.benchmark_optimizations."
TIME = bracketed(0.02)
STEP = bracketed(0.02)

FIGURES = [
    Figure(LOADER + "total_batches", "batches taken", COUNT, exact),
    Figure(LOADER + "total_samples", "samples in them", COUNT, exact),
    Figure(LOADER + "samples_per_batch", "samples a batch", BY_HAND, exact),
    Figure(LOADER + "bytes_per_batch", "bytes a batch", BY_HAND, exact),
    Figure(LOADER + "first_batch_time", "wait for the first batch", INSIDE, TIME),
    Figure(LOADER + "avg_loading_time", "mean wait for a batch, without the first", INSIDE, TIME),
    Figure(LOADER + "min", "shortest wait", INSIDE, TIME),
    Figure(LOADER + "max", "longest wait", INSIDE, TIME),
    Figure(LOADER + "p50", "median wait", INSIDE + ", NumPy's `quantile`", TIME),
    Figure(LOADER + "p95", "95th percentile of the waits", INSIDE + ", NumPy's `quantile`", TIME),
    Figure(LOADER + "std", "deviation of the waits", INSIDE, TIME),
    Figure(LOADER + "variance", "its square", BY_HAND, relative(1e-9)),
    Figure(LOADER + "throughput", "batches a second", INSIDE, TIME),
    Figure(LOADER + "samples_per_second", "samples a second", INSIDE, TIME),
    Figure(TRAINING + "steps", "training steps", COUNT, exact),
    Figure(TRAINING + "step_time.mean", "mean time of a step with its loading, without the first", INSIDE, STEP),
    Figure(TRAINING + "step_time.p50", "its median", INSIDE, STEP),
    Figure(TRAINING + "step_time.min", "shortest step", INSIDE, STEP),
    Figure(TRAINING + "step_time.max", "longest step", INSIDE, STEP),
    Figure(TRAINING + "throughput", "steps a second", INSIDE, STEP),
    Figure(TRAINING + "samples_per_second", "samples a second", INSIDE, STEP),
    Figure(TRAINING + "phases.data_loading.mean_s", "mean wait for a batch", INSIDE, STEP),
    Figure(TRAINING + "phases.data_loading.share_percent", "its share of a step", BY_HAND, relative(1e-6)),
    Figure(CONTEST + "total_time", "median time of a round", BY_HAND + " on the rounds", relative(1e-9)),
    Figure(CONTEST + "avg_step_time", "time of a step", BY_HAND + " on the rounds", relative(1e-9)),
    Figure(CONTEST + "throughput", "steps a second", BY_HAND + " on the rounds", relative(1e-9)),
    Figure(CONTEST + "samples_per_second", "samples a second", BY_HAND + " on the rounds", relative(1e-9)),
    Figure(CONTEST + "speedup_factor", "original over optimized time of a step", BY_HAND, relative(1e-9)),
    Figure(MODEL + "latency.count", "runs", COUNT, exact),
    Figure(MODEL + "latency.mean", "mean time of a run, ms", INSIDE, TIME),
    Figure(MODEL + "latency.min", "shortest run, ms", INSIDE, TIME),
    Figure(MODEL + "latency.max", "longest run, ms", INSIDE, TIME),
    Figure(MODEL + "latency.p50", "median of the runs, ms", INSIDE + ", NumPy's `quantile`", TIME),
    Figure(MODEL + "latency.p90", "90th percentile, ms", INSIDE + ", NumPy's `quantile`", TIME),
    Figure(MODEL + "latency.p95", "95th percentile, ms", INSIDE + ", NumPy's `quantile`", TIME),
    Figure(MODEL + "latency.p99", "99th percentile, ms", INSIDE + ", NumPy's `quantile`", TIME),
    Figure(MODEL + "latency.std", "deviation of the runs, ms", INSIDE, TIME),
    Figure(MODEL + "throughput.requests_per_second", "median rate of the windows", INSIDE, TIME),
    Figure(MODEL + "throughput.samples_per_second", "samples of all requests", BY_HAND, relative(1e-9)),
    Figure(MODEL + "input.batch_size", "samples of a request", COUNT, exact),
    Figure("python:diagnose_performance_issues", "findings at, above and below the thresholds", COUNT, exact),
    Figure("python:ScalingModel.slope", "growth a size", "values made of a line", relative(1e-9)),
    Figure("python:ScalingModel.intercept", "value at size 0", "values made of a line", relative(1e-9)),
    Figure("python:ScalingModel.predict", "value at another size", "values made of a line", relative(1e-9)),
    Figure("python:ScalingModel.largest", "largest size below a limit", "values made of a line", relative(1e-6)),
    Figure("python:compare_reports.rows[].ratio", "second over first", BY_HAND, relative(1e-12)),
    Figure("python:AdaptiveProfiler.get_coverage.seen", "blocks", COUNT, exact),
    Figure("python:AdaptiveProfiler.get_coverage.measured", "blocks that were measured", "all blocks", at_most),
]


def spin(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def brackets(marks, scale=1.0):
    """Of (begin, end) in calls: at least the time inside, at most that since the call before ended to when the next
    began."""
    low = [scale * (end - begin) for begin, end in marks[1:-1]]
    high = [scale * (after[0] - before[1]) for before, after in zip(marks, marks[2:])]
    return low, high


def deviations(low, high):
    """Bounds of the deviation of values between these: it is a norm."""
    middle = statistics.stdev(low)
    most = math.sqrt(sum((b - a) ** 2 for a, b in zip(low, high)) / (len(low) - 1))
    return max(0.0, middle - most), middle + most


def quantiles(low, high, q):
    return float(numpy.quantile(low, q)), float(numpy.quantile(high, q))


class Loader:
    """Batches of 8 samples of 5 floats; each takes a while, of which it keeps the clock's readings."""

    def __init__(self, make, count=12):
        self.make, self.count, self.passes = make, count, []

    def __iter__(self):
        marks = []
        self.passes.append(marks)
        for number in range(self.count):
            begun = time.perf_counter()
            spin(0.002 + 0.003 * (number % 4))
            batch = self.make()
            marks.append((begun, time.perf_counter()))
            yield batch
        marks.append((time.perf_counter(),) * 2)

    def __len__(self):
        return self.count


def test_loaders(truth):
    loader = Loader(lambda: numpy.zeros((8, 5), dtype="float32"))
    stats = tare.DataLoadingProfiler().profile_dataloader(loader, 20)
    low, high = brackets(loader.passes[0])
    n = len(low)
    truth.check(LOADER + "total_batches", stats["total_batches"], 12)
    truth.check(LOADER + "total_samples", stats["total_samples"], 96)
    truth.check(LOADER + "samples_per_batch", stats["samples_per_batch"], 8)
    truth.check(LOADER + "bytes_per_batch", stats["bytes_per_batch"], 160)
    (begun, ended), (then, _) = loader.passes[0][:2]
    truth.check(LOADER + "first_batch_time", stats["first_batch_time"], (ended - begun, then - begun + 0.001))
    truth.check(LOADER + "avg_loading_time", stats["avg_loading_time"], (sum(low) / n, sum(high) / n))
    truth.check(LOADER + "min", stats["min"], (min(low), min(high)))
    truth.check(LOADER + "max", stats["max"], (max(low), max(high)))
    truth.check(LOADER + "p50", stats["p50"], quantiles(low, high, 0.5))
    truth.check(LOADER + "p95", stats["p95"], quantiles(low, high, 0.95))
    truth.check(LOADER + "std", stats["std"], deviations(low, high))
    truth.check(LOADER + "variance", stats["variance"], stats["std"] ** 2)
    truth.check(LOADER + "throughput", stats["throughput"], (n / sum(high), n / sum(low)))
    truth.check(LOADER + "samples_per_second", stats["samples_per_second"], (8 * n / sum(high), 8 * n / sum(low)))


def test_training(truth):
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(5, 2)
    loader = Loader(lambda: torch.zeros(8, 5), 8)

    ends = []

    def step(net, batch):
        net(batch).sum().backward()
        spin(0.004)
        ends.append(time.perf_counter())
    config = tare.ProfilingConfig(save_profiles=False)
    training = tare.CodeProfiler(config).profile_training_pipeline(model, loader, 8, step_fn=step)["training"]
    marks = loader.passes[1]
    truth.check(TRAINING + "steps", training["steps"], 8)
    # A step is from the request for its batch to the next one. At least: from the loader's first to the step's last
    # line; at most: from the last line of the step before to where the loader makes the next batch.
    begins, made = [begun for begun, _ in marks], [ended for _, ended in marks]
    done = [min(end for end in ends if end > at) for at in made[:8]]
    least = [done[i] - begins[i] for i in range(1, 8)]
    whole = [(begins[i + 1] if i + 1 < len(begins) else math.inf) - done[i - 1] for i in range(1, 8)]
    whole = [one if math.isfinite(one) else least[-1] + 0.5 for one in whole]
    shown = training["step_time"]
    n = len(whole)
    truth.check(TRAINING + "step_time.mean", shown["mean"], (sum(least) / n, sum(whole) / n))
    truth.check(TRAINING + "step_time.p50", shown["p50"], quantiles(least, whole, 0.5))
    truth.check(TRAINING + "step_time.min", shown["min"], (min(least), min(whole)))
    truth.check(TRAINING + "step_time.max", shown["max"], (max(least), max(whole)))
    truth.check(TRAINING + "throughput", training["throughput"], (n / sum(whole), n / sum(least)))
    truth.check(TRAINING + "samples_per_second", training["samples_per_second"],
                (8 * n / sum(whole), 8 * n / sum(least)))
    loading = training["phases"]["data_loading"]
    low = [made[i] - begins[i] for i in range(1, 8)]
    most = [done[i] - 0.004 - done[i - 1] for i in range(1, 8)]  # a step spins for so long
    truth.check(TRAINING + "phases.data_loading.mean_s", loading["mean_s"], (sum(low) / n, sum(most) / n))
    truth.check(TRAINING + "phases.data_loading.share_percent", loading["share_percent"],
                100 * loading["mean_s"] / shown["mean"])


def test_contest(truth):
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randint(0, 4, (32,)))
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    config = tare.ProfilingConfig(save_profiles=False, profile_data_loading=False)
    report = tare.CodeProfiler(config).benchmark_optimizations(
        model, torch.utils.data.DataLoader(data, batch_size=8), 4, loss_fn=torch.nn.functional.cross_entropy, rounds=3)
    for side in ("original", "optimized"):
        shown = report[side]
        typical = statistics.median(shown["rounds"])
        truth.check(CONTEST + "total_time", shown["total_time"], typical)
        truth.check(CONTEST + "avg_step_time", shown["avg_step_time"], typical / 4)
        truth.check(CONTEST + "throughput", shown["throughput"], 4 / typical)
        truth.check(CONTEST + "samples_per_second", shown["samples_per_second"], 32 / typical)
    truth.check(CONTEST + "speedup_factor", report["improvements"]["speedup_factor"],
                report["original"]["avg_step_time"] / report["optimized"]["avg_step_time"])


def test_models(truth):
    marks = []

    def function(batch):
        begun = time.perf_counter()
        spin(0.0005 + 0.0005 * (len(marks) % 7))
        marks.append((begun, time.perf_counter()))
        return batch
    results = tare.ModelProfiler(function).profile(numpy.zeros((6, 3), dtype="float32"), num_runs=60, warmup_runs=5)
    shown, rate = results["latency"], results["throughput"]
    first = 1 + results["warmup"]["runs"]
    found = None
    for start in {first, first - 1}:  # whether the first call is one of the warm-up
        low, high = brackets(marks[start - 1:start + 61], 1e3)
        if min(low) <= shown["min"] <= min(high) and max(low) <= shown["max"] <= max(high):
            found = start
    assert found is not None, (first, shown)
    low, high = brackets(marks[found - 1:found + 61], 1e3)
    truth.check(MODEL + "latency.count", shown["count"], 60)
    truth.check(MODEL + "latency.mean", shown["mean"], (sum(low) / 60, sum(high) / 60))
    truth.check(MODEL + "latency.min", shown["min"], (min(low), min(high)))
    truth.check(MODEL + "latency.max", shown["max"], (max(low), max(high)))
    for name, q in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)):
        truth.check(MODEL + "latency." + name, shown[name], quantiles(low, high, q))
    truth.check(MODEL + "latency.std", shown["std"], deviations(low, high))
    each, slow, fast = rate["runs_per_window"], [], []
    for window in range(rate["windows"]):
        start = found + 60 + window * each
        mine = marks[start:start + each]
        fast.append(each / (mine[-1][1] - mine[0][0]))
        slow.append(each / (marks[start + each][0] - marks[start - 1][1]))
    truth.check(MODEL + "throughput.requests_per_second", rate["requests_per_second"], quantiles(slow, fast, 0.5))
    truth.check(MODEL + "throughput.samples_per_second", rate["samples_per_second"], 6 * rate["requests_per_second"])
    truth.check(MODEL + "input.batch_size", results["input"]["batch_size"], 6)


def test_diagnoses(truth):
    def part(**values):
        return type("Part", (), values)

    def found(ram, cpu, gpu, waiting):
        return len(tare.diagnose_performance_issues(part(
            memory=part(peak_ram_mb=ram), system=part(cpu_percent=cpu, disk_io_wait_percent=waiting),
            compute=part(gpu_utilization_percent=gpu))))
    quiet = (16000, 95, 70, 20)
    cases = {quiet: 0, (16000.1, 95, 70, 20): 1, (16000, 95.1, 70, 20): 1, (16000, 95, 69.9, 20): 1,
             (16000, 95, 70, 20.1): 1, (16001, 96, 69, 21): 4}
    truth.check("python:diagnose_performance_issues", [found(*case) for case in cases], list(cases.values()))


def test_lines_through_sizes(truth):
    sizes = [8, 16, 32, 64, 128, 256]
    model = tare.ScalingModel(sizes, [3 + 0.25 * size for size in sizes], "s")
    truth.check("python:ScalingModel.slope", model.slope, 0.25)
    truth.check("python:ScalingModel.intercept", model.intercept, 3.0)
    truth.check("python:ScalingModel.predict", [model.predict(1000).value, model.predict(0).value], [253.0, 3.0])
    truth.check("python:ScalingModel.largest", model.largest(103.0), 400.0)


def test_reports_of_two_machines(truth, tmp_path):
    profiler, files = tare.PerformanceProfiler(), []
    for name, seconds in (("a", 0.002), ("b", 0.004)):
        profiler.clear()
        with profiler.profile("block"):
            spin(seconds)
        files.append(tmp_path / (name + ".json"))
        profiler.to_json(str(files[-1]))
    rows = tare.compare_reports(*files).rows
    read = [json.loads(file.read_text())["names"]["block"]["timing"]["wall_time_s"] for file in files]
    ratios = [row["ratio"] for row in rows if row["figure"].endswith("timing.wall_time_s")]
    truth.check("python:compare_reports.rows[].ratio", ratios, [read[1] / read[0]])


def test_coverage(truth):
    profiler = tare.AdaptiveProfiler(budget=0.01)
    for _ in range(3000):
        with profiler.profile("block"):
            pass
    coverage = profiler.get_coverage("block")
    truth.check("python:AdaptiveProfiler.get_coverage.seen", coverage.seen, 3000)
    truth.check("python:AdaptiveProfiler.get_coverage.measured", coverage.measured, coverage.seen)
    assert 0 < coverage.measured
