"""Document 000, PerformanceProfiler: a check for every snippet, in its order."""
import json
import re
import time
import warnings

import pytest
import tare

import seed_fill as fill
from seed_list import check
from seed_run import give_back

CLOSE = 1.001  # two clocks are compared


def _missing(value, reason):
    assert isinstance(value, tare.Missing) and value.reason == reason, (value, getattr(value, "reason", None))
    assert f"{value:.1f}" == "n/a" and not value > 0 and not value < 70


def _covers(wall_s, spent_s):
    """The block lasted at least as long as what ran in it says of itself."""
    assert wall_s * CLOSE >= spent_s > 0, (wall_s, spent_s)


@check("000", "Simple Profiling")
def simple(snippet):
    model = fill.Estimator(keeps_mb=48)
    give_back()  # as before every block: what other tests left must not be counted as there before
    before = tare.PerformanceProfiler().get_current_memory()
    done = snippet.run(model=model, X_train=fill.plain_batch(64), y_train=[float(n) for n in range(64)])
    metrics = done["metrics"]
    _covers(metrics.timing.wall_time_s, model.spent)
    assert metrics.memory.peak_ram_mb >= before + 40
    assert metrics.name == "training_loop"
    assert done.lines == [f"Peak RAM: {metrics.memory.peak_ram_mb:.1f} MB",
                          f"Wall Time: {metrics.timing.wall_time_s:.3f}s"]


@check("000", "Advanced Configuration")
def advanced(snippet):
    profiler = snippet.run()["profiler"]
    with profiler.profile("block"):
        kept = fill.touched(8)
        fill.spin(0.01)
    metrics = profiler.get_metrics()
    assert metrics.memory.average_ram_mb > 0 and metrics.memory.anonymous_mb >= len(kept) / fill.MB
    _missing(metrics.network.bytes_received, "track_network=False")
    _missing(metrics.carbon.grams_co2, "track_carbon=False")
    degrees = metrics.temperature.cpu_celsius
    assert -50 < degrees < 150 or isinstance(degrees, tare.Missing) and degrees.reason != "track_cpu_temp=False"
    gpu = metrics.memory.peak_gpu_mb
    assert gpu >= 0 or isinstance(gpu, tare.Missing) and gpu.reason != "track_gpu=False"


@check("000", "Memory Leak Detection")
def leak(snippet):
    leaking = fill.Slow(0.0, keeps_mb=16)
    done = snippet.run(train_epoch=leaking)
    assert leaking.calls == 10 and len(done["memory_snapshots"]) == 10
    growth = done["memory_growth"]
    assert 100 < growth < 400, growth
    assert done.out.count(f"{growth:.1f}MB") == 1
    steady = fill.Slow(0.0)
    quiet = snippet.run(train_epoch=steady)
    assert quiet["memory_growth"] < 100 and quiet.out == ""


@check("000", "GPU Memory Tracking", needs=("torch",))
def gpu_memory(snippet):
    """Without a GPU: the program runs on, every comparison is False, every figure is n/a. With one: figures."""
    if fill.torch.cuda.is_available():
        done = snippet.run(MyModel=fill.model, criterion=fill.torch.nn.CrossEntropyLoss(), dataloader=fill.batches(3),
                           target=fill.target())
        assert 0 < done["gpu_memory"] < 1
        peak, = re.findall(r"^Peak GPU Memory: (\d+\.\d) MB$", done.out, re.M)
        assert float(peak) == round(done["metrics"].memory.peak_gpu_mb, 1)
        assert re.search(r"^GPU Utilization: (\d+\.\d|n/a)%$", done.out, re.M)
        return

    class OnHost(fill.torch.nn.Linear):
        def cuda(self):
            return self

    class Tensor:
        def __init__(self, value):
            self.value = value

        def cuda(self):
            return self.value
    done = snippet.run(MyModel=lambda: OnHost(fill.INPUTS, fill.CLASSES), criterion=fill.torch.nn.CrossEntropyLoss(),
                       dataloader=[Tensor(each) for each in fill.batches(3)], target=Tensor(fill.target()))
    assert done.lines == ["Peak GPU Memory: n/a MB", "GPU Utilization: n/a%"]
    assert "GPU" in done["gpu_memory"].reason or "CUDA" in done["gpu_memory"].reason or "NVIDIA" in \
        done["gpu_memory"].reason, done["gpu_memory"].reason
    assert done["metrics"].timing.wall_time_s > 0


@check("000", "Detailed Timing Breakdown")
def breakdown(snippet):
    steps = {name: fill.Slow(0.002 * (n + 1), gives=name)
             for n, name in enumerate(("load_data", "preprocess", "train_model", "evaluate"))}
    done = snippet.run(**steps)
    report = done["timing_report"]
    assert set(report) == {"complete_pipeline", "data_loading", "preprocessing", "training", "evaluation"}
    for name, step in zip(("data_loading", "preprocessing", "training", "evaluation"), steps.values()):
        _covers(report[name], step.spent)
    shares = [float(share) for share in re.findall(r"^\w+: \d+\.\d{3}s \((\d+\.\d)%\)$", done.out, re.M)]
    assert len(shares) == 5 and abs(sum(shares) - 100) < 0.5, shares
    whole = done["profiler"].get_metrics("complete_pipeline").timing.wall_time_s
    assert sum(report.values()) <= whole * CLOSE  # what the profiler itself took is in none of them
    assert done["results"] == "evaluate"


@check("000", "Performance Bottleneck Detection")
def bottleneck(snippet):
    prelude = "def slow_function():\n    values = [1]\n    total = sum(range(3_000_000))\n    return total\n\n"
    done = snippet.run(prelude=prelude)
    slow = [line for line in done["line_profile"] if "sum(range" in line.source]
    assert [line.line_number for line in slow] == [3] and slow[0].time_percent > 50, slow
    assert slow[0] in done["bottlenecks"]
    assert done.lines == [f"Bottleneck at line {line.line_number}: {line.time_percent:.1f}% of time"
                          for line in done["bottlenecks"]]
    assert all(line.time_percent > 10 for line in done["bottlenecks"])


@check("000", "Model Complexity Analysis", needs=("torch",))
def complexity(snippet):
    done = snippet.run()
    flops = 2 * 32 * (784 * 512 + 512 * 10)
    parameters = 784 * 512 + 512 + 512 * 10 + 10
    assert done["metrics"].compute.estimated_flops == flops
    assert done.lines == [f"Estimated FLOPs: {flops:,}", f"FLOPs per parameter: {flops / parameters:.2f}"]


@check("000", "Throughput Analysis", needs=("torch",))
def throughput(snippet):
    done = snippet.run(torch=fill.torch, model=fill.model(784, 10))
    found = done["throughput_results"]
    assert list(found) == [16, 32, 64, 128] and all(value > 0 for value in found.values())
    for size, value in found.items():
        wall = done["profiler"].get_metrics(f"batch_size_{size}").timing.wall_time_s
        assert value == pytest.approx(10 * size / wall)
    best = done["optimal_batch"]
    assert done.lines == [f"Optimal batch size: {best} ({max(found.values()):.1f} samples/s)"]


@check("000", "Model Architecture Comparison", needs=("torch", "pandas"))
def architectures(snippet):
    nn = fill.torch.nn

    def train_model(model, data, epochs):
        for _ in range(epochs):
            fill.train_epoch(model, data)

    def convolution():
        return nn.Sequential(nn.Unflatten(1, (1, fill.INPUTS)), nn.Conv1d(1, 4, 3), nn.ReLU(), nn.Flatten(),
                             nn.Linear(4 * (fill.INPUTS - 2), fill.CLASSES))
    names = {"SimpleMLPModel": fill.model, "CNNModel": convolution, "DeepMLPModel": lambda: nn.Sequential(
        nn.Linear(fill.INPUTS, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, fill.CLASSES))}
    done = snippet.run(train_model=train_model, train_data=fill.loader(), **names)
    frame = done["comparison_df"]
    assert list(frame.index) == ["simple_mlp", "deep_mlp", "cnn"]
    assert list(frame.columns) == ["memory", "time", "flops"]
    assert (frame["time"].astype(float) > 0).all() and (frame["memory"].astype(float) > 1).all()
    # A layer with n weights takes 2n a sample forward, 2n for its weights backward, and 2n for its inputs where the
    # layer before it learns, too. 5 epochs of 64 samples.
    wide = fill.CLASSES * 4 * (fill.INPUTS - 2)
    kernel = 4 * 3 * (fill.INPUTS - 2)
    first, last = fill.INPUTS * 16, 16 * fill.CLASSES
    deep = (fill.INPUTS * 32, 32 * 32, 32 * fill.CLASSES)
    expected = {"simple_mlp": 4 * first + 6 * last, "deep_mlp": 4 * deep[0] + 6 * sum(deep[1:]),
                "cnn": 4 * kernel + 6 * wide}
    assert {name: result["flops"] for name, result in done["results"].items()} == {
        name: 5 * 64 * each for name, each in expected.items()}
    assert [line.split()[0] for line in done.lines[1:]] == list(frame.index)
    assert [float(line.split()[-1]) for line in done.lines[1:]] == [5 * 64 * expected[name] for name in frame.index]


@check("000", "Hyperparameter Impact Analysis", needs=("torch",))
def hyperparameters(snippet):
    seen = []

    def train_with_optimizer(model, optimizer):
        for samples, labels in fill.loader(32):
            optimizer.zero_grad()
            loss = fill.torch.nn.functional.cross_entropy(model(samples), labels)
            loss.backward()
            optimizer.step()
        seen.append(optimizer.param_groups[0]["lr"])
    done = snippet.run(torch=fill.torch, model=fill.model(), train_with_optimizer=train_with_optimizer,
                       get_final_accuracy=lambda: 0.5)
    assert seen == [0.001, 0.01, 0.1]
    for rate, line in zip(seen, done.lines):
        impact = done["performance_impact"][rate]
        assert impact["convergence_time"] > 0 and impact["memory_usage"] > 1
        assert line == f"LR {rate}: Efficiency = {0.5 / impact['convergence_time']:.4f} acc/second"
    assert len(done.lines) == 3


@check("000", "Resource Utilization Tracking")
def resources(snippet):
    train = fill.Slow(0.001)
    done = snippet.run(train_epoch=train)
    assert train.calls == 100
    stats, report = done["system_stats"], done["system_report"]
    for value in (stats.cpu_percent, stats.memory_percent, stats.disk_io_percent):
        assert 0 <= value <= 100 or isinstance(value, tare.Missing) and value.reason
    assert 0 <= report.avg_cpu_percent <= 100 and 0 < report.peak_memory_percent <= 100
    assert done.lines[-2:] == [f"Average CPU usage: {report.avg_cpu_percent:.1f}%",
                               f"Peak memory usage: {report.peak_memory_percent:.1f}%"]
    # Each alert is printed when its threshold is passed and only then: given figures, the same lines.
    told = {}
    for cpu, memory, disk in ((91, 86, 81), (90, 85, 80), (tare.Missing("x"),) * 3):
        class Given(tare.PerformanceProfiler):
            def get_current_system_stats(self, cpu=cpu, memory=memory, disk=disk):
                return type("Stats", (), {"cpu_percent": cpu, "memory_percent": memory, "disk_io_percent": disk})
        told[str(cpu)] = len(snippet.run(train_epoch=fill.Slow(0), PerformanceProfiler=Given).lines) - 2
    assert told == {"91": 300, "90": 0, "n/a": 0}


@check("000", "Automated Performance Regression Detection")
def regression(snippet):
    """The class that the document sketches is tare's; its own sketch has no context manager."""
    alerts = []

    class Detector(tare.PerformanceRegressionDetector):
        def alert_regression(self, operation, baseline_time, current_time, *rest):
            alerts.append((operation, baseline_time, current_time))

    def run(baseline, work):
        (snippet.folder / "baseline_metrics.json").write_text(json.dumps(baseline))
        alerts.clear()
        snippet.run(ours=("PerformanceRegressionDetector",), train_model=work, PerformanceRegressionDetector=Detector)
    work = fill.Slow(0.02)
    run({"model_training": {"wall_time_s": 0.001}}, work)
    (operation, baseline_time, current_time), = alerts
    assert (operation, baseline_time) == ("model_training", 0.001)
    _covers(current_time, work.spent)
    run({"model_training": {"wall_time_s": 3600.0}}, fill.Slow(0))
    assert alerts == []
    (snippet.folder / "baseline_metrics.json").write_text(json.dumps({"model_training": {"wall_time_s": 0.001}}))
    with pytest.warns(tare.PerformanceRegressionWarning, match="model_training took"):  # tare's own class as it is
        snippet.run(ours=("PerformanceRegressionDetector",), train_model=work)

    def broken():
        raise OSError("the data is gone")
    with pytest.raises(OSError, match="the data is gone"):
        run({"model_training": {"wall_time_s": 1e-9}}, broken)
    assert alerts == []
    with pytest.raises(KeyError):
        run({"something_else": {"wall_time_s": 1.0}}, fill.Slow(0))


class _App:
    """As much of a web framework as the snippet asks for."""

    def __init__(self):
        self.routes = {}

    def route(self, path):
        def enter(function):
            self.routes[path] = function
            return function
        return enter


@check("000", "Production Monitoring Dashboard")
def production(snippet):
    """The class of the document as it stands there, on our profiler; and tare's own in its place."""
    for ours in ((), ("ProductionProfiler",)):
        app, numbers, model = _App(), iter(range(1000)), fill.Estimator().fit([[0]], [3.0])
        request = type("Request", (), {"json": [[1.0]]})
        done = snippet.run(ours=ours, app=app, time=time, model=model, request=request,
                           generate_request_id=lambda: next(numbers))
        answers = [app.routes["/predict"]() for _ in range(20)]
        assert answers == [{"prediction": [3.0]}] * 20
        production = done["prod_profiler"]
        assert isinstance(production, tare.ProductionProfiler) == bool(ours)
        assert [entry["request_id"] for entry in production.metrics_log] == list(range(20))
        for entry in production.metrics_log:
            assert set(entry) - {"cpu_percent_reason"} == {"timestamp", "request_id", "internal_latency",
                                                           "user_facing_latency", "memory_mb", "cpu_percent"}
            if ours:
                assert json.loads(json.dumps(entry), parse_constant=pytest.fail) == entry
            assert 0 < entry["internal_latency"] <= entry["user_facing_latency"] * CLOSE + 1e-3
            assert entry["memory_mb"] > 1
        _hourly(production, ours)


def _hourly(production, ours):
    alerts = []
    production.alert_sla_violation = alerts.append
    for latency in (2.0, 2.5):
        with production.profile_request("late"):
            pass
        production.log_metrics("late", latency)
    assert [entry["user_facing_latency"] for entry in alerts] == [2.5]
    report = production.generate_hourly_report()
    latencies = sorted(entry["user_facing_latency"] for entry in production.metrics_log)
    assert set(report) >= {"requests_processed", "average_latency", "p95_latency", "sla_violations"}
    assert report["requests_processed"] == 22 and report["sla_violations"] == 1
    assert report["average_latency"] == pytest.approx(sum(latencies) / 22)
    assert latencies[19] <= report["p95_latency"] <= latencies[21]


@check("000", "1. Profile Representative Workloads")
def representative(snippet):
    model, sample = fill.PlainModel(), fill.plain_batch(64)
    load = fill.Slow(0.003, gives=sample)
    done = snippet.run(load_production_sample=load, model=model)
    assert model.calls == 1 and done["production_batch"] is sample
    _covers(done["profiler"].get_metrics("realistic_workload").timing.wall_time_s, load.spent)
    with pytest.raises(KeyError):
        done["profiler"].get_metrics("toy_example")


@check("000", "2. Use Warm-up Runs")
def warm_up(snippet):
    cold = fill.Slow(0.0005)
    done = snippet.run(model=cold, sample_input=fill.plain_batch(4))
    assert cold.calls == 103
    timing = done["profiler"].get_metrics("warmed_up_inference").timing
    assert timing.wall_time_s >= 100 * 0.0005 / CLOSE and timing.cpu_time_s > 0


@check("000", "3. Profile Both Training and Inference", needs=("torch",))
def both(snippet):
    model, modes = fill.model(), []

    def train_one_epoch(net, data):
        modes.append(net.training)
        fill.train_epoch(net, data)

    def evaluate_model(net, data):
        modes.append(net.training or fill.torch.is_grad_enabled())
        for samples, _ in data:
            net(samples)
    done = snippet.run(torch=fill.torch, model=model, train_loader=fill.loader(64), test_loader=fill.loader(32),
                       train_one_epoch=train_one_epoch, evaluate_model=evaluate_model)
    assert modes == [True, False]
    training, inference = done["training_metrics"], done["inference_metrics"]
    assert training.throughput == pytest.approx(64 / training.timing.wall_time_s)
    assert inference.throughput == pytest.approx(32 / inference.timing.wall_time_s)
    assert done.lines == [f"Training throughput: {training.throughput} samples/s",
                          f"Inference throughput: {inference.throughput} samples/s"]


def _figures(ram, cpu, gpu, waiting):
    def part(**values):
        return type("Part", (), values)
    return part(memory=part(peak_ram_mb=ram), system=part(cpu_percent=cpu, disk_io_wait_percent=waiting),
                compute=part(gpu_utilization_percent=gpu))


@check("000", "Common Performance Issues")
def issues(snippet):
    """tare's own rules and those of the document come to the same findings, also where nothing was measured."""
    profiler = tare.PerformanceProfiler()
    with profiler.profile("block"):
        fill.spin(0.001)
    done = snippet.run(profiler=profiler)
    theirs, ours = done["diagnose_performance_issues"], tare.diagnose_performance_issues
    absent = tare.Missing("no GPU")
    cases = [profiler.get_metrics(), _figures(16001, 96, 69, 21), _figures(16000, 95, 70, 20),
             _figures(100, 50, absent, 0), _figures(absent, absent, absent, absent), _figures(20000, 10, 90, 50)]
    assert [_kinds(theirs(case)) for case in cases] == [_kinds(ours(case)) for case in cases]
    assert [len(ours(case)) for case in cases[1:]] == [4, 0, 0, 0, 2]
    assert len(done.lines) == len(theirs(cases[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = snippet.run(ours=("diagnose_performance_issues",), profiler=profiler)
    assert len(own.lines) == len(ours(cases[0]))


def _kinds(found):
    return [re.split(r" - |:", issue)[0] for issue in found]
