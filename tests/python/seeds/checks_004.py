"""Document 004, performance monitoring: a check for every snippet, in its order."""
import re
import shlex
import time

import pytest
import tare

import seed_fill as fill
from seed_blocks import ROOT
from seed_list import check

TRAINER = "conf/trainer/synthetic_with_memory.yaml"
STATISTICS = ("total_epoch_time", "avg_epoch_time", "total_batch_time", "avg_batch_time", "min_batch_time",
              "max_batch_time", "num_batches", "num_epochs")
GPU = r"(?:GPU (?:\d+\.\d|n/a)(?:MB)?)"
BATCH = re.compile(rf"  Batch (\d+): \d+\.\d{{3}}s, {GPU}, CPU \d+\.\dMB, loss=(\d+\.\d{{6}})")


def _monitor_of(snippet):
    """The monitor that a trainer's YAML asks for."""
    import yaml
    path = snippet.write(TRAINER, snippet.text)
    with_yaml = yaml.safe_load(snippet.text)
    assert list(with_yaml) == ["trainer_params"]
    return tare.EpochPerformanceMonitor.from_config(path), with_yaml["trainer_params"]


def _train(monitor, batches=7, epochs=1, work=lambda index: None, loss=0.25):
    for _ in range(epochs):
        monitor.on_epoch_start()
        for index in range(batches):
            monitor.on_batch_start(index)
            work(index)
            monitor.on_batch_end(index, loss)
        monitor.on_epoch_end()


def _kinds(monitor):
    return {found.kind: found for found in monitor.bottlenecks()}


@check("004", "Enable in Training Config")
def enable(snippet):
    monitor, _ = _monitor_of(snippet)
    assert monitor.enabled and monitor.verbose_batches == 5


RUN = """
import sys, tare
given = dict(word.lstrip("-").split("=") for word in sys.argv[1:])
settings = f"conf/trainer/{given['trainer']}.yaml"
epoch = tare.EpochPerformanceMonitor.from_config(settings)
weights = [0.0] * 8

def descend(batch):
    loss = 0.0
    for x in batch:
        apart = sum(w * x for w in weights) - 3 * x
        loss += apart * apart / len(batch)
        weights[:] = [w - 0.01 * apart * x for w in weights]
    return loss

def batches():
    return [[0.1 * (i + j) for j in range(8)] for i in range(7)]

if given["config-name"].endswith("_physical_experiment"):
    monitor = tare.PerformanceMonitor(enabled=epoch.enabled)
    with monitor.track("load_ground_truth"):
        data = batches()
    with monitor.track("optimization"):
        losses = [descend(batch) for _ in range(50) for batch in data]
    monitor.print_summary()
    assert losses[-1] < losses[0]
else:
    epoch.on_epoch_start()
    for index, batch in enumerate(batches()):
        epoch.on_batch_start(index)
        epoch.on_batch_end(index, descend(batch))
    epoch.on_epoch_end()
"""


@check("004", "Run Training")
def run_training(snippet):
    """Both command lines as they are: a trainer that makes its monitor from the file which its last word names, with
    keys of its own in it, and prints what the document shows of each."""
    snippet.write("run.py", RUN)
    commands = [shlex.split(line) for line in snippet.commands()]
    assert len(commands) == 2 and all(words[:2] == ["python", "run.py"] for words in commands)
    outputs = []
    for words, trainer in zip(commands, ("Synthetic Trainer", "Physical Trainer")):
        name = words[-1].partition("trainer=")[2]
        snippet.write(f"conf/trainer/{name}.yaml", snippet.other(trainer) + "  learning_rate: 0.01\n")
        outputs.append(snippet.python(*words[1:]))
    assert [int(found[0]) for found in BATCH.findall(outputs[0])] == [0, 1, 2, 3, 4], outputs[0]
    theirs = [_form(line) for line in snippet.other("Example Output (Synthetic)").splitlines() if line.strip() != "..."]
    ours = [_form(line) for line in outputs[0].splitlines()]
    assert ours == theirs[:1] * 5 + theirs[-2:]
    _same_table(snippet.other("Example Output (Physical)"), outputs[1], ["load_ground_truth", "optimization", "TOTAL"])


def _form(line):
    """A line with its figures made alike, digits after the point kept. A GPU that is not there reads n/a."""
    line = re.sub(r"\d+(\.\d+)?", lambda match: "#" + (f".{len(match.group(1)) - 1}" if match.group(1) else ""), line)
    line = re.sub(r"(?<=GPU )n/a(?!MB)", "#.1MB", line)
    return re.sub(r"n/a(?= reserved)|(?<=peak )n/a", "#MB", line)


@check("004", "Example Output (Synthetic)")
def synthetic_output(snippet):
    theirs = [_form(line) for line in snippet.text.splitlines() if line.strip() != "..."]
    ours = snippet.printed(lambda: _train(tare.EpochPerformanceMonitor(verbose_batches=2), batches=3))
    assert [_form(line) for line in ours.splitlines()] == theirs


def _columns(line, name):
    """Where each figure of a row ends."""
    return [match.end() for match in re.finditer(r"\S+", line[30:])] if line.startswith(name) else None


def _same_table(theirs, ours, names):
    """Titles, heads and rules are equal to the letter, rows to the column."""
    theirs, ours = theirs.rstrip("\n").splitlines(), ours.rstrip("\n").splitlines()
    assert len(theirs) == len(ours)
    rows = 0
    for one, other in zip(theirs, ours):
        name = next((name for name in names if one.startswith(name)), None)
        if name is None:
            assert other == one
        else:
            rows += 1
            assert _columns(other, name) == _columns(one, name), (one, other)
    assert rows == len(names)


def _two_blocks(names):
    monitor = tare.PerformanceMonitor()
    for name in names:
        with monitor.track(name):
            fill.spin(0.001)
    return monitor


@check("004", "Example Output (Physical)")
def physical_output(snippet):
    names = ["load_ground_truth", "optimization"]
    _same_table(snippet.text, snippet.printed(_two_blocks(names).print_summary), [*names, "TOTAL"])


@check("004", "1. PerformanceMonitor (Detailed Analysis)")
def detailed(snippet):
    load = fill.Slow(0.002, gives=fill.plain_batch(8), keeps_mb=24)
    done = snippet.run(load_large_dataset=load, preprocess=fill.Slow(0.001, gives=lambda data: data),
                       model=fill.PlainModel())
    monitor = done["monitor"]
    metrics = monitor.get_metrics()
    assert [metric.operation for metric in metrics] == ["data loading", "preprocessing", "model forward"]
    assert metrics[0].duration_seconds * 1.001 >= load.spent and metrics[0].cpu_delta_mb >= 20
    assert len(done["output"]) == 8
    assert monitor.get_total_time() == pytest.approx(sum(metric.duration_seconds for metric in metrics), rel=1e-6)
    _same_table(snippet.other(snippet.block.heading, 2), done.out, [*(m.operation for m in metrics), "TOTAL"])
    assert f"TOTAL{monitor.get_total_time():>36.3f}s" in done.lines


@check("004", "1. PerformanceMonitor (Detailed Analysis)", 2)
def detailed_output(snippet):
    names = ["data loading", "preprocessing", "model forward"]
    _same_table(snippet.text, snippet.printed(_two_blocks(names).print_summary), [*names, "TOTAL"])


@check("004", "2. Aggregated Operations")
def aggregated(snippet):
    backward = fill.Slow(0.0)
    done = snippet.run(dataloader=[fill.plain_batch(4)] * 15, model=fill.PlainModel(),
                       loss=type("Loss", (), {"backward": lambda self: backward()})())
    found = done["monitor"].get_aggregates()
    assert list(found) == ["batch_forward", "batch_backward"] and backward.calls == 150
    for one in found.values():
        assert one.count == 150 and one.min_s <= one.mean_s <= one.max_s <= one.total_s
        assert one.mean_s == pytest.approx(one.total_s / 150)
    _same_table(snippet.other(snippet.block.heading, 2), done.out, list(found))
    row = next(line.split() for line in done.lines if line.startswith("batch_forward"))
    one = found["batch_forward"]
    assert row[1:] == ["150", *(f"{value:.3f}" for value in (one.total_s, one.mean_s, one.min_s, one.max_s))]


@check("004", "2. Aggregated Operations", 2)
def aggregated_output(snippet):
    monitor = tare.PerformanceMonitor()
    for _ in range(150):
        for name in ("batch_forward", "batch_backward"):
            with monitor.track(name, aggregate=True):
                pass
    ours = snippet.printed(lambda: monitor.print_summary(show_aggregate=True))
    _same_table(snippet.text, ours, ["batch_forward", "batch_backward"])


def _is_performance_line(lines, name, theirs):
    """The lines of one measured block. The GPU's second line is there only when a GPU is."""
    assert _form(lines[0]).replace(name, "NAME") == _form(theirs[0]), (lines, theirs)
    rest = lines[1:]
    assert rest == [] and "GPU n/a" in lines[0] or [_form(line) for line in rest] == [_form(theirs[1])]


def _sample(snippet):
    text = snippet.other("3. Context Manager (Quick Profiling)", 2).replace("critical_operation", "NAME")
    return text.replace("GPU +", "GPU ").splitlines()


def _plain(lines):
    return [line.replace("GPU +", "GPU ").replace("GPU -", "GPU ").replace("CPU -", "CPU +") for line in lines]


@check("004", "3. Context Manager (Quick Profiling)")
def context(snippet):
    work = fill.Slow(0.003, gives=7, keeps_mb=16)
    done = snippet.run(expensive_function=work)
    assert done["result"] == 7
    _is_performance_line(_plain(done.lines), "critical_operation", _sample(snippet))
    seconds, grown = re.match(r"\[Performance\] \w+: ([\d.]+)s, CPU ([+-][\d.]+)MB", done.out).groups()
    assert float(seconds) + 0.001 >= work.spent and float(grown) >= 12


@check("004", "3. Context Manager (Quick Profiling)", 2)
def context_output(snippet):
    def block():
        with tare.track_performance("critical_operation"):
            fill.spin(0.001)
    ours = snippet.printed(block).splitlines()
    _is_performance_line(_plain(ours), "critical_operation", _sample(snippet))


@check("004", "4. Function Decorator")
def decorator(snippet):
    done = snippet.run(data=[1], result="processed")
    assert done["result"] == "processed" and done["process_batch"].__name__ == "process_batch"
    _is_performance_line(_plain(done.lines), "data processing", _sample(snippet))


@check("004", "5. EpochPerformanceMonitor (Training Loops)")
def epochs(snippet):
    read = []

    class Loss:
        def item(self):
            read.append(1)
            return 0.125
    work = fill.Slow(0.001)
    done = snippet.run(epochs=2, dataloader=range(7), loss=Loss(), work=work, said={"training code": "work()"})
    assert BATCH.findall(done.out) == [(str(index), "0.125000") for index in range(5)] * 2
    assert len(read) == 10  # a loss is read for the batches that are shown, and for no other
    stats = done["monitor"].get_statistics()
    assert (stats["num_batches"], stats["num_epochs"], work.calls) == (14, 2, 14)
    assert stats["total_epoch_time"] >= stats["total_batch_time"] >= work.spent / 1.001
    assert len(done.lines) == 14 and done.lines[-1].startswith("  Batch timing: avg=")


@check("004", "Strategy 1: Compare Operation Times")
def strategy_times(snippet):
    done = snippet.run(load_data=fill.Slow(0.03), preprocess=fill.Slow(0.012), model=fill.Slow(0.0),
                       post_process=fill.Slow(0.0, gives="result"))
    monitor, total = done["monitor"], done["total_time"]
    assert done["result"] == "result" and total == monitor.get_total_time()
    shares = {metric.operation: 100 * metric.duration_seconds / total for metric in monitor.get_metrics()}
    assert list(shares) == ["data_loading", "preprocessing", "model_forward", "post_processing"]
    told = [(match.group(1), match.group(2)) for match in re.finditer(r": (\w+) \((\d+\.\d)%\)$", done.out, re.M)]
    assert told == [(name, f"{share:.1f}") for name, share in shares.items() if share > 20]
    found = {found.operation: found.severity for found in monitor.bottlenecks() if found.kind == "share"}
    assert found == {name: "bottleneck" if share > 50 else "consider" for name, share in shares.items() if share > 20}


@check("004", "Strategy 2: Analyze Batch Timing Variance")
def strategy_variance(snippet):
    """As it stands, nothing was trained: every figure is n/a and nothing is raised. After a training: figures."""
    done = snippet.run()
    assert [line.rpartition(": ")[2] for line in done.lines] == ["n/as"] * 3

    def trained(enabled):
        monitor = tare.EpochPerformanceMonitor(enabled=enabled, verbose_batches=0)
        _train(monitor, 6, work=lambda index: fill.spin(0.02 if index == 3 else 0.001))
        return monitor
    done = snippet.run(EpochPerformanceMonitor=trained)
    stats = done["stats"]
    assert stats["min_batch_time"] <= stats["avg_batch_time"] <= stats["max_batch_time"]
    figures = [line for line in done.lines if line.endswith("s") and "batch time" in line]
    assert [line.rpartition(": ")[2] for line in figures] == [
        f"{stats[key]:.3f}s" for key in ("avg_batch_time", "min_batch_time", "max_batch_time")]
    ratio = stats["max_batch_time"] / stats["min_batch_time"]
    assert done["variance_ratio"] == ratio
    assert (f"({ratio:.1f}x)" in done.out) == (ratio > 2) == ("variance" in _kinds(done["monitor"]))


@check("004", "Strategy 3: Profile Different Configurations")
def strategy_configurations(snippet):
    train = fill.Slow(gives=lambda size: fill.spin(0.1 / size))
    done = snippet.run(train_with_batch_size=train)
    results = done["results"]
    assert [given[0][0] for given in train.given] == list(results) == [8, 16, 32, 64]
    assert all(results[size] * 1.001 >= 0.1 / size for size in results)
    best = min(results, key=results.get)
    assert done.lines == [f"Optimal batch size: {best} ({results[best]:.3f}s)"]


@check("004", "1. Data Loading is Slow", needs=("torch",))
def slow_loading(snippet):
    """The three options are what tare advises where loading takes more than 30 % of the time."""
    made = []

    def data_loader(dataset, **options):
        made.append(options)
        if options.get("prefetch_factor"):  # which torch takes of a loader with workers only
            options = {"num_workers": 1, **options}
        return fill.torch.utils.data.DataLoader(dataset, **options)
    done = snippet.run(DataLoader=data_loader, dataset=fill.dataset())
    assert done["dataloader"].prefetch_factor == 2
    monitor = _two_blocks(["data_loading"])
    advice = " ".join(_kinds(monitor)["loading"].advice)
    for options in made:
        name, = set(options) - {"batch_size"}
        assert name in advice


@check("004", "2. First Batch is Slow", needs=("torch",))
def slow_first(snippet):
    """A first batch that takes longer is found, and after the warm-up of the document it is a batch like others."""
    torch = fill.torch
    net, modes = fill.model(), []

    def model(batch):
        modes.append(torch.is_grad_enabled())
        return net(batch)
    done = snippet.run(torch=torch, dataloader=fill.batches(4), model=model, device="cpu",
                       said={"actual training": "model(batch)"})
    assert modes == [False, True, True, True, True] and done["dummy_batch"].shape == (16, fill.INPUTS)
    monitor = tare.EpochPerformanceMonitor(verbose_batches=0)
    snippet.printed(lambda: _train(monitor, 4, work=lambda index: fill.spin(0.2 if index == 0 else 0.0)))
    assert _kinds(monitor)["first batch"].value > 2


@check("004", "3. Forward Pass is Slow", needs=("torch",))
def slow_forward(snippet):
    torch = fill.torch
    net, batch = fill.model(), fill.batch()
    monitor = tare.PerformanceMonitor()
    with monitor.track("forward_pass"):
        done = snippet.run(model=net, input=batch)
    assert torch.equal(done["output"], net(batch))
    if torch.cuda.is_available():
        return  # host time says nothing there, and the rule is silent
    advice = " ".join(_kinds(monitor)["forward"].advice)
    assert "precision" in advice and "checkpoint" in advice and "smaller model" in advice


@check("004", "4. Backward Pass is Slow", needs=("torch",))
def slow_backward(snippet):
    torch = fill.torch
    net = fill.model()
    before = [value.clone() for value in net.parameters()]

    def model(batch):
        return net(batch).square().mean()
    monitor = tare.PerformanceMonitor()
    with monitor.track("backward_pass"):
        snippet.run(torch=torch, autocast=torch.cuda.amp.autocast, model=model, input=fill.batch(),
                    mini_batches=fill.batches(4), optimizer=torch.optim.SGD(net.parameters(), lr=0.1))
    assert not all(torch.equal(old, new) for old, new in zip(before, net.parameters()))
    if torch.cuda.is_available():
        return
    advice = " ".join(_kinds(monitor)["backward"].advice)
    assert "accumulated" in advice and "precision" in advice


@check("004", "5. High Variance Between Batches")
def variance(snippet):
    """The block is advice in comments: tare gives the same, for batches that differ more than twofold."""
    assert all(line.startswith("#") for line in snippet.text.splitlines() if line)
    snippet.run()
    monitor = tare.EpochPerformanceMonitor(verbose_batches=0)
    snippet.printed(lambda: _train(monitor, 4, work=lambda index: fill.spin(0.05 if index == 2 else 0.0)))
    stats = monitor.get_statistics()
    assert stats["max_batch_time"] > 2 * stats["min_batch_time"]
    advice = " ".join(_kinds(monitor)["variance"].advice)
    assert "shapes" in advice and "augmentation" in advice


@check("004", "Development Phase")
def development(snippet):
    monitor, _ = _monitor_of(snippet)
    assert monitor.enabled and monitor.verbose_batches == 10


@check("004", "Production Phase")
def in_production(snippet):
    monitor, _ = _monitor_of(snippet)
    assert not monitor.enabled
    assert snippet.printed(lambda: _train(monitor)) == ""
    assert monitor.get_statistics()["num_batches"] == 0


@check("004", "Research/Analysis Phase", needs=("pandas",))
def research(snippet):
    done = snippet.run(said={"run experiments": "experiments(monitor)"}, experiments=_experiments)
    frame, metrics = done["metrics_df"], done["monitor"].get_metrics()
    assert list(frame.columns) == ["operation", "time", "cpu_mb", "gpu_mb"]
    assert list(frame["operation"]) == ["load", "train", "train"]
    assert list(frame["time"]) == [metric.duration_seconds for metric in metrics]
    import pandas
    read = pandas.read_csv(snippet.folder / "performance_metrics.csv", index_col=0)
    assert list(read["operation"]) == list(frame["operation"])
    assert list(read["time"]) == pytest.approx(list(frame["time"]))


def _experiments(monitor):
    for name in ("load", "train", "train"):
        with monitor.track(name):
            fill.spin(0.001)


@check("004", "Synthetic Trainer")
def synthetic(snippet):
    monitor, given = _monitor_of(snippet)
    assert monitor.enabled and monitor.verbose_batches == 5
    assert given["batch_size"] == 32 and given["num_workers"] == 4  # the trainer's own, passed over


@check("004", "Physical Trainer")
def physical(snippet):
    monitor, given = _monitor_of(snippet)
    assert monitor.enabled and monitor.verbose_batches == 5 and given["epochs"] == 50
    snippet.text = snippet.text.replace("memory_monitor_batches", "memory_monitor_batchs") + "  grid: 64\n"
    with pytest.warns(UserWarning, match="memory_monitor_batches.*'grid'"):
        monitor, _ = _monitor_of(snippet)
    assert monitor.enabled


@check("004", "PerformanceMonitor")
def monitor_reference(snippet):
    work = fill.Slow(0.002)
    cleared = []

    class Watched(tare.PerformanceMonitor):
        def clear(self):
            cleared.append((self.get_total_time(), self.get_operation_time("operation_name")))
            super().clear()
    done = snippet.run(PerformanceMonitor=Watched, said={"code to profile": "work()"}, work=work)
    assert cleared[0][0] == cleared[0][1] and cleared[0][0] * 1.001 >= work.spent > 0
    assert done["monitor"].get_metrics() == [] and done["monitor"].get_total_time() == 0
    assert "operation_name" in done.out
    with pytest.raises(KeyError):
        done["monitor"].get_operation_time("operation_name")


@check("004", "EpochPerformanceMonitor")
def epoch_reference(snippet):
    done = snippet.run(batch_idx=0)
    described = dict(re.findall(r"'(\w+)': (float|int)", snippet.text))
    assert tuple(described) == STATISTICS
    assert {key: type(value).__name__ for key, value in done["stats"].items()} == described
    assert done["stats"]["num_batches"] == done["stats"]["num_epochs"] == 1
    assert done.lines[0].startswith("  Batch 0: ") and "loss" not in done.lines[0]


@check("004", "Context Managers & Decorators")
def reference(snippet):
    calls = []
    done = snippet.run(said={"code": "work()"}, work=lambda: calls.append(1))
    assert len(calls) == 1
    done["my_function"]()
    assert len(calls) == 2
    _is_performance_line(_plain(done.lines), "operation", _sample(snippet))


@check("004", '"My timing seems wrong"', needs=("GPU",))
def asynchronous(snippet):
    """What the document measures by hand, tare's block measures by itself: its time on the device."""
    torch = fill.torch
    a = torch.randn(4096, 4096, device="cuda")

    def operation():
        for _ in range(20):
            torch.mm(a, a)
    operation()
    torch.cuda.synchronize()
    monitor = tare.PerformanceMonitor(device="cuda")
    with monitor.track("operation"):
        operation()
    torch.cuda.synchronize()
    snippet.text = snippet.text.replace("# ... operation ...", "operation()")
    done = snippet.run(torch=torch, time=time, operation=operation)
    by_hand, told = done["end"] - done["start"], monitor.get_metrics()[0]
    assert 0.5 * by_hand < told.device_seconds < 1.5 * by_hand, (by_hand, told.device_seconds)


@check("004", "Examples")
def examples(snippet):
    command, = snippet.commands()
    program, path = command.replace("\\", "/").split()
    assert program == "python"
    out = snippet.python(ROOT / path)
    told = re.findall(r"^(?:=+ )?(\d)\. ", out, re.M)
    assert told == list("123456"), out
    for words in ("PERFORMANCE SUMMARY", "AGGREGATE STATISTICS", "[Performance]", "  Batch 0: "):
        assert words in out, words
    # Of four operations one has a quarter of the time: something is always found.
    assert re.search(r"^(BOTTLENECK|Consider optimizing): \w+ \(\d+\.\d%\)$", out, re.M), out
