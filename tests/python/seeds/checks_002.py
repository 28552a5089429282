"""Document 002, profiling with torch's profiler, TensorFlow and TensorBoard: its snippets in its order."""
import contextlib
import functools
import json
import pathlib
import re
import shutil

import tare

import seed_fill as fill
from seed_list import check, waits


@contextlib.contextmanager
def _any_device():
    """Where torch sees no GPU, .cuda() leaves things where they are."""
    torch = fill.torch
    if torch.cuda.is_available():
        yield
        return
    kept = torch.Tensor.cuda, torch.nn.Module.cuda
    torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *given, **named: self
    try:
        yield
    finally:
        torch.Tensor.cuda, torch.nn.Module.cuda = kept


class _Training:
    """What the document's placeholders stand for: a model, its optimizer, and a step of real training, on the GPU
    where there is one."""

    def __init__(self):
        torch = fill.torch
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model, self.steps = fill.model().to(self.device), 0
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.target, self.criterion = fill.target().to(self.device), torch.nn.CrossEntropyLoss()

    def step(self, batch):
        self.steps += 1
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(batch.to(self.device)), self.target[:len(batch)])
        loss.backward()
        self.optimizer.step()
        return loss


def _run(snippet, **names):
    import tare.profiler as profiler
    with _any_device():
        return snippet.run(**{"torch": fill.torch, "profiler": profiler, **names})


def _counts(prof):
    return {row.key: row.count for row in prof.key_averages()}


def _layers_run(folder):
    """At least how often a layer of the model ran, in each trace of a folder: by its operator, or in a profile of the
    GPU alone, which has no operators, by kernels."""
    found = []
    for path in sorted(pathlib.Path(folder).glob("*.pt.trace.json")):
        events = json.loads(path.read_text())["traceEvents"]
        operators = sum(event.get("name") == "aten::linear" for event in events)
        found.append(operators or sum(event.get("cat") == "kernel" for event in events))
    return found


class _OnGpu:
    """A profile of what runs inside, by tare: its kernels, copies and calls of CUDA, counted by name."""

    def __enter__(self):
        import tare.profiler as profiler
        kinds = profiler.ProfilerActivity
        self.profile = profiler.profile(activities=[kinds.CPU, kinds.CUDA])
        self.profile.__enter__()
        return self

    def __exit__(self, *error):
        fill.torch.cuda.synchronize()
        self.profile.__exit__(*error)
        self.kernels, self.copies, self.calls = [], [], []
        for event in self.profile.events():
            on_device, name = "CUDA" in str(event.device_type), event.name
            copy = name.startswith(("Memcpy", "Memset"))
            (self.copies if on_device and copy else self.kernels if on_device else self.calls).append(name)

    def copied(self, way):
        return sum(way in name for name in self.copies)


def _traces(folder):
    """The names of all events of each trace in a folder."""
    found = [json.loads(path.read_text()) for path in sorted(pathlib.Path(folder).glob("*.pt.trace.json"))]
    return [[event.get("name") for event in one["traceEvents"]] for one in found]


def _with_stacks(function):
    """Once more where torch stumbles: with_stack=True at times leaves names in freed memory (torch 2.13; its own
    profiler alone, too), which are no text then."""
    @functools.wraps(function)
    def tried(snippet):
        for _ in range(4):
            with contextlib.suppress(UnicodeDecodeError):
                return function(snippet)
            shutil.rmtree(snippet.folder / "runs")
        return function(snippet)
    return tried


@check("002", "Basic Profiling", needs=("torch",))
@_with_stacks
def basic(snippet):
    """Eleven steps, and one file with the operators of all of them."""
    loader = [(fill.batch(), fill.target()) for _ in range(12)]
    done = _run(snippet, MyModel=fill.model, train_loader=loader, F=fill.torch.nn.functional)
    counts = _counts(done["prof"])
    assert counts["aten::linear"] == 22 and counts["aten::cross_entropy_loss"] == 11
    names, = _traces(snippet.folder / "runs/profiler")
    assert names.count("aten::linear") == 22
    shaped = done["prof"].key_averages(group_by_input_shape=True)
    assert any([16, fill.INPUTS] in row.input_shapes for row in shaped if row.key == "aten::linear")


@check("002", "Profiler Configuration", needs=("torch",))
def configuration(snippet):
    """Twice three steps are recorded, each time into a file of its own; shapes, memory and FLOPs are there."""
    training = _Training()
    done = _run(snippet, train_loader=fill.batches(12), train_step=training.step)
    first, second = _traces(snippet.folder / "runs/profiler")
    assert first.count("aten::linear") == second.count("aten::linear") == 2 * 3
    row, = [row for row in done["prof"].key_averages() if row.key == "aten::addmm"]
    assert row.count == 6 and row.flops == 3 * 2 * 16 * 16 * (fill.INPUTS + fill.CLASSES)
    assert training.device == "cuda" or row.cpu_memory_usage == 3 * 4 * 16 * (16 + fill.CLASSES)
    assert training.device == "cpu" or row.device_memory_usage >= 3 * 4 * 16 * (16 + fill.CLASSES)
    assert "ProfilerStep*" in _counts(done["prof"]) and training.steps == 12
    for path in (snippet.folder / "runs/profiler").glob("*.pt.trace.json"):  # what it asks for is in the files, too
        events = json.loads(path.read_text())["traceEvents"]
        shapes = [event["args"]["Input Dims"] for event in events if event.get("name") == "aten::addmm"]
        assert [[16, fill.INPUTS], [fill.INPUTS, 16]] in [one[1:3] for one in shapes]
        assert any(event.get("name") == "[memory]" and event["args"]["Bytes"] for event in events)
        assert any(event.get("cat") == "python_function" for event in events)


def _images():
    torch = fill.torch
    return torch.nn.Sequential(torch.nn.Conv2d(3, 2, 16, stride=16), torch.nn.ReLU())


@check("002", "Profile Inference", needs=("torch",))
def inference(snippet):
    """A hundred inputs, no backward pass."""
    with_gpu = fill.torch.cuda.is_available()
    done = _run(snippet, model=_images().cuda() if with_gpu else _images())
    counts = _counts(done["prof"])
    assert counts.get("aten::conv2d", 100) == counts.get("aten::relu", 100) == 100
    assert with_gpu or "aten::conv2d" in counts
    assert not with_gpu or sum(counts.values()) >= 200
    assert not [name for name in counts if "Backward" in name]
    assert len(_traces(snippet.folder / "runs/inference_profiler")) == 1


@check("002", "Analyze Profile Data", needs=("torch",))
def analyze(snippet):
    """The table by device time, which says why there is none, and a trace that a browser opens."""
    import tare.profiler as profiler
    training = _Training()
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]) as prof:
        training.step(fill.batch())
    done = snippet.run(prof=prof)
    assert "aten::" in done.out and "Self CPU time total" in done.out
    if not fill.torch.cuda.is_available():
        assert re.search(r"cuda_time_total: n/a \(.+\)", done.out)
    assert "aten::addmm" in (snippet.folder / "trace.json").read_text()


waits("002", "Profile with Callback", "TensorFlow")
waits("002", "Programmatic Profiling", "TensorFlow")
waits("002", "Profile Custom Training Loop", "TensorFlow")


@check("002", "Monitor GPU Usage", needs=("torch",))
@_with_stacks
def gpu_usage(snippet):
    """Asked for the GPU alone: without one, operators of the CPU, and why there is no more."""
    training = _Training()
    done = _run(snippet, train_loader=fill.batches(3), model=training.model, criterion=training.criterion,
                target=training.target, optimizer=training.optimizer)
    assert len(_traces(snippet.folder / "runs/gpu_profile")) == 1
    if not fill.torch.cuda.is_available():
        row = [row for row in done["prof"].key_averages() if row.key == "aten::linear"][0]
        assert row.count == 6 and row.cuda_time_total != row.cuda_time_total and "CUDA" in row.cuda_time_total.reason


@check("002", "Optimize GPU Utilization", needs=("GPU",))
def gpu_utilization(snippet):
    """The good step copies without waiting and computes in half precision; tare's profile shows both."""
    training = _Training()
    done = _run(snippet, model=training.model, criterion=training.criterion, target=training.target, loss=None)
    batch = fill.batch().pin_memory()
    done["train_step"](batch)
    with _OnGpu() as good:
        loss = done["train_step"](batch)
    with _OnGpu() as bad:
        done["train_step_slow"](fill.batch())
    assert loss.item() > 0
    assert good.copied("HtoD") == bad.copied("HtoD") == 1 and good.copied("Pinned") == 1
    assert "aten::autocast" in good.calls or any("_to_copy" in name for name in good.calls)
    assert len(good.kernels) > len(bad.kernels) > 0  # casts, and the loss


@check("002", "Reduce CPU-GPU Synchronization", needs=("GPU",))
def synchronization(snippet):
    """Whatever the document says of its good loop, .item() waits in it as well: tare counts both."""
    training = _Training()
    loader = fill.batches(2)
    with _OnGpu() as seen:
        done = _run(snippet, train_loader=loader, train_step=training.step, total_loss=0.0)
    waits_seen = seen.calls.count("aten::item")
    assert waits_seen == 100 * 2 + 2 and seen.calls.count("cudaStreamSynchronize") >= waits_seen
    assert len([line for line in done.lines if line.startswith("Loss: ")]) == 2 and done["avg_loss"] > 0


@check("002", "Track Memory Allocation", needs=("torch",))
def memory_allocation(snippet):
    """What operators took."""
    training = _Training()
    done = _run(snippet, train_loader=fill.batches(3), train_step=training.step)
    names, = _traces(snippet.folder / "runs/memory_profile")
    if fill.torch.cuda.is_available():  # of the GPU alone torch has no operators, and so none that take memory
        assert names and sum(_counts(done["prof"]).values()) >= 6
        return
    row = [row for row in done["prof"].key_averages() if row.key == "aten::addmm"][0]
    assert row.count == 6
    assert row.cpu_memory_usage == 3 * 4 * 16 * (16 + fill.CLASSES)


@check("002", "Find Memory Leaks", needs=("GPU",))
def memory_leaks(snippet):
    """torch's history of the GPU's memory is what it is without tare, which tells the growth itself."""
    torch, training, kept = fill.torch, _Training(), []

    def leaking_step(batch):
        training.step(batch)
        kept.append(torch.zeros(4 << 20, dtype=torch.uint8, device="cuda"))
    assert "enabled=True" in snippet.text  # which torch takes no longer together with max_entries
    snippet.text = snippet.text.replace("enabled=True", 'enabled="all"')
    profiler = tare.PerformanceProfiler(track_gpu=True)
    with profiler.profile("training"):
        done = _run(snippet, train_loader=fill.batches(4), train_step=leaking_step)
    torch.cuda.memory._record_memory_history(enabled=None)
    assert done["snapshot"]["segments"] and (snippet.folder / "memory_snapshot.pickle").stat().st_size > 1000
    metrics = profiler.get_metrics("training")
    assert 16 <= metrics.memory.peak_gpu_mb < 4096


@check("002", "Optimize Memory Usage", needs=("torch",))
def memory(snippet):
    """Accumulated gradients and checkpointing, measured: results are those of the same code unmeasured."""
    torch = fill.torch
    model, steps = fill.model(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = optimizer.step
    optimizer.step = lambda: (steps.append(1), step())
    profiler = tare.PerformanceProfiler()
    with profiler.profile("training"):
        done = snippet.run(torch=torch, model=model, optimizer=optimizer, train_loader=fill.batches(8),
                           criterion=torch.nn.CrossEntropyLoss(), target=fill.target(),
                           intermediate_tensor=torch.zeros(4))
    assert len(steps) == 8 // done["accumulation_steps"] == 2
    assert "intermediate_tensor" not in done.names
    batch = fill.batch()
    assert torch.equal(done["custom_forward"](model, batch), model(batch))
    metrics = profiler.get_metrics("training")
    assert metrics.timing.wall_time_s > 0 and metrics.memory.peak_ram_mb >= metrics.memory.ram_before_mb


@check("002", "Identify Slow Operations", needs=("torch",))
def slow_operations(snippet):
    """The table it prints has its columns, and no more rows than it asks for."""
    training = _Training()
    done = _run(snippet, train_loader=fill.batches(3), train_step=training.step)
    lines = done.out.splitlines()
    assert "Name" in lines[1] and "CPU total" in lines[1] and "# of Calls" in lines[1]
    calls = [line for line in lines if re.search(r"\d+(us|ms|s)\b.* \d+  ", line)]
    assert 0 < len(calls) <= 20


@check("002", "Optimize Data Loading", needs=("torch",))
def loading(snippet):
    """What the document calls good runs and is timed as tare times it; of what it calls bad, tare says so."""
    torch = fill.torch
    profiler = tare.PerformanceProfiler()
    with profiler.profile("loading"):
        done = snippet.run(torch=torch, dataset=fill.dataset(96))
    seconds, = re.findall(r"\A[\w ]+: (\d+\.\d\d)s\n\Z", done.out)
    assert profiler.get_metrics("loading").timing.wall_time_s >= float(seconds) - 0.01
    single = done["train_loader"]
    assert single.num_workers == 0 and len(single) == 3
    parts = tare.CodeProfiler(tare.ProfilingConfig(save_profiles=False)).data_loading_profiler
    stats = parts.profile_dataloader(single, 3)
    assert stats["total_batches"] == 3 and stats["throughput"] > 0
    slow = {**stats, "avg_loading_time": 10.0, "throughput": 0.1}
    assert any("worker" in found for found in parts.identify_bottlenecks(slow))
    advised = parts.optimize_dataloader(single, slow)
    assert advised["num_workers"] >= 1
    options = {"batch_size": 32, **advised}
    assert isinstance(torch.utils.data.DataLoader(fill.dataset(96), **options), torch.utils.data.DataLoader)


@check("002", "Profile Specific Operations", needs=("torch",))
def specific(snippet):
    """Three blocks, in the table beside the operators, and around them in the trace."""
    import tare.profiler as profiler
    training = _Training()
    with profiler.profile() as prof:
        done = _run(snippet, preprocess=lambda batch: batch * 2, batch=fill.batch().to(training.device),
                    model=training.model, criterion=training.criterion, target=training.target)
    counts = _counts(prof)
    for name in ("data_preprocessing", "forward_pass", "loss_computation"):
        assert counts[name] == 1
    parents = {event.name: event.cpu_parent.name for event in prof.events() if event.cpu_parent}
    assert parents["aten::linear"] == "forward_pass" and parents["aten::mul"] == "data_preprocessing"
    assert done["loss"].requires_grad


@check("002", "Mixed Precision Training", needs=("GPU",))
def mixed_precision(snippet):
    """The loop trains, and the profile of it has its kernels."""
    training = _Training()

    def train_with_mixed_precision():
        with fill.torch.autocast("cuda"):
            training.criterion(training.model(fill.batch().cuda()), training.target).backward()
    before = [one.clone() for one in training.model.parameters()]
    done = _run(snippet, train_loader=fill.batches(3), optimizer=training.optimizer, model=training.model,
                criterion=training.criterion, target=training.target,
                train_with_mixed_precision=train_with_mixed_precision)
    assert any(not fill.torch.equal(a, b) for a, b in zip(before, training.model.parameters()))
    runs, = _layers_run(snippet.folder / "runs/mixed_precision")
    assert runs >= 2 and done["scaler"].get_scale() > 0


@check("002", "Kernel Fusion", needs=("GPU",))
def fusion(snippet):
    """One kernel against one for each operator, as tare counts them."""
    import math
    torch, F = fill.torch, fill.torch.nn.functional
    x = torch.randn(1 << 16, device="cuda")
    done = _run(snippet, F=F, x=x, math=math)
    assert torch.allclose(done["output"], F.gelu(x, approximate="tanh"), atol=1e-5)
    fused = done["fused_gelu"]
    for _ in range(3):  # torch.jit compiles at the second call
        fused(x)
    with _OnGpu() as one:
        F.gelu(x)
    with _OnGpu() as apart:
        0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    with _OnGpu() as scripted:
        fused(x)
    assert len(one.kernels) == 1 and len(apart.kernels) >= 7 and len(scripted.kernels) <= len(apart.kernels)


@check("002", "Reduce Host-Device Transfers", needs=("GPU",))
def transfers(snippet):
    """One copy in the good loop; one there and two back in every round of the bad one. tare counts them."""
    training = _Training()
    data = fill.batch()
    good, bad = snippet.text.split("# ❌")
    snippet.text = good
    with _OnGpu() as few:
        done = _run(snippet, data=data, model=training.model, criterion=training.criterion, target=training.target)
    snippet.text = "#" + bad
    with _OnGpu() as many:
        _run(snippet, data=data, model=training.model, criterion=training.criterion, target=training.target)
    assert done["data"].is_cuda and few.copied("HtoD") == 1 and few.copied("DtoH") == 0
    assert many.copied("HtoD") == 100 and many.copied("DtoH") == 200


@check("002", "Batch Size Optimization", needs=("torch",))
def batch_sizes(snippet):
    """A folder for each batch size, and in each the steps that there were."""
    torch, training = fill.torch, _Training()
    training.target = fill.target(256).to(training.device)
    done = _run(snippet, DataLoader=torch.utils.data.DataLoader, dataset=fill.dataset(256, labels=False),
                train_step=training.step)
    for size in (16, 32, 64, 128, 256):
        runs, = _layers_run(snippet.folder / f"runs/bs{size}")
        assert runs >= 2 * min(11, 256 // size)
    assert fill.torch.cuda.is_available() or _counts(done["prof"])["aten::linear"] == 2


def _left_out(snippet):
    """What the document leaves out of profile(...)."""
    assert "profiler.profile(...)" in snippet.text
    snippet.text = snippet.text.replace("profiler.profile(...)", "profiler.profile(with_flops=False)")


@check("002", "1. Profile Representative Workloads", needs=("torch",))
def representative(snippet):
    """Both run; the last profile is that of the single step."""
    training = _Training()
    _left_out(snippet)
    done = _run(snippet, train_loader=fill.batches(2), train_step=training.step, single_batch=fill.batch())
    assert training.steps == 7 and _counts(done["prof"])["aten::linear"] == 2


@check("002", "2. Profile Periodically", needs=("torch",))
def periodically(snippet):
    """In every tenth epoch there is a file, in the others none."""
    training = _Training()
    for epoch in (0, 1, 10):
        _run(snippet, epoch=epoch, train_epoch=lambda: training.step(fill.batch()) if epoch % 10 == 0 else None)
    for epoch in (0, 10):
        runs, = _layers_run(snippet.folder / f"runs/epoch{epoch}")
        assert runs >= 2
    assert not (snippet.folder / "runs/epoch1").exists()


@check("002", "3. Compare Before/After Optimizations", needs=("torch",))
def before_and_after(snippet):
    """Two profiles, one after the other; the second is of the second only."""
    training = _Training()
    _left_out(snippet)
    done = _run(snippet, baseline_train=lambda: [training.step(batch) for batch in fill.batches(3)],
                optimized_train=lambda: training.step(fill.batch()))
    assert training.steps == 4 and _counts(done["prof"])["aten::linear"] == 2


@check("002", "4. Profile Inference", needs=("torch",))
def production_inference(snippet):
    """A thousand requests; the share of the run's slowest ones can be had from the events."""
    requests, device = [], _Training().device
    done = _run(snippet, model=fill.model().to(device),
                get_production_request=lambda: requests.append(1) or fill.batch(1).to(device))
    runs, = _layers_run(snippet.folder / "runs/inference")
    assert len(requests) == 1000 and runs >= 2000
    assert device == "cuda" or _counts(done["prof"])["aten::linear"] == 2000
