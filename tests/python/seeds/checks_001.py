"""Document 001, the code profiling and optimization system: a check for every snippet, in its order."""
import dataclasses
import gc
import json
import logging
import re
import time

import pytest
import tare
from tare.seeds import optimize

import seed_fill as fill
from seed_blocks import ROOT
from seed_list import check, nothing

TORCH = ("torch",)


def _config(**settings):
    return tare.ProfilingConfig(**{"save_profiles": False, "monitor_gpu": False, **settings})


def _profiler(**settings):
    return tare.CodeProfiler(_config(**settings))


def _profiled():
    """A CodeProfiler that has profiled a training, and its report."""
    profiler = _profiler()
    return profiler, profiler.profile_training_pipeline(fill.model(), fill.loader(), num_steps=3)


def _sentences(values):
    assert all(isinstance(value, str) and len(value) > 10 for value in values), values


@check("001", "1. ProfilingConfig")
def config_class(snippet):
    """Every field of the document is a field of ours, of the same type and with the same default."""
    done = snippet.run(dataclass=dataclasses.dataclass, profiler=tare)
    theirs = {field.name: field for field in dataclasses.fields(done["ProfilingConfig"])}
    ours = {field.name: field for field in dataclasses.fields(tare.ProfilingConfig)}
    assert done["ProfilingConfig"] is not tare.ProfilingConfig and len(theirs) == 14
    for name, field in theirs.items():
        assert ours[name].default == field.default, name
        if field.type is bool:
            assert ours[name].type in (bool, "bool"), name
            with pytest.raises(TypeError, match=name):
                tare.ProfilingConfig(**{name: "yes"})


@check("001", "Basic Profiling Setup")
def setup(snippet):
    done = snippet.run()
    config = done["config"]
    assert config.use_torch_profiler and config.profile_data_loading and config.enable_optimizations
    assert config.save_profiles
    assert isinstance(done["profiler"], tare.CodeProfiler) and done["profiler"].config is config
    with pytest.raises(TypeError, match="save_profiles"):
        tare.create_profiling_config(save_profile=True)


@check("001", "Profile Training Pipeline", needs=TORCH)
def pipeline(snippet):
    model = fill.model()
    before = [value.clone() for value in model.parameters()]
    done = snippet.run(profiler=_profiler(), model=model, dataloader=fill.loader(160, 16))
    report = done["pipeline_report"]
    assert report["data_loading"]["total_batches"] == 10  # as many as there are, of the 50 that were asked for
    assert all(fill.torch.equal(old, new) for old, new in zip(before, model.parameters()))
    _sentences(done["data_bottlenecks"])
    _sentences(done["recommendations"])
    applied = done["model_optimizations"]
    assert applied["total_optimizations"] == len(applied["optimizations_applied"])
    assert done.lines == [f"Found {len(done['data_bottlenecks'])} data loading bottlenecks",
                          f"Applied {applied['total_optimizations']} optimizations"]


@check("001", "Profile Specific Functions", needs=TORCH)
def functions(snippet):
    done = snippet.run(torch=fill.torch, profiler=_profiler(), dummy_data=fill.torch.ones(16))
    profile = done["function_profile"]
    assert float(profile["result"]) == 16 * sum(range(1000))
    assert profile["execution_time"] > 0 and abs(profile["memory_delta"]) < 1000
    assert done.lines == [f"Execution time: {profile['execution_time']:.4f}s",
                          f"Memory delta: {profile['memory_delta']:.2f} MB"]
    assert not profile["functions"] and "table=True" in profile["functions"].reason


def _are_improvements(found):
    """Both figures tell the same gain, and each is either measured or missing with a reason."""
    time_percent, factor = found["time_improvement_percent"], found["speedup_factor"]
    assert factor > 0 and time_percent == pytest.approx(100 * (1 - 1 / factor), abs=1e-6)
    memory = found["memory_improvement_percent"]
    assert memory <= 100 or isinstance(memory, tare.Missing) and memory.reason


@check("001", "Benchmark Optimizations", needs=TORCH)
def benchmark(snippet):
    done = snippet.run(profiler=_profiler(), model=fill.model(), dataloader=fill.loader(160, 16))
    found = done["improvements"]
    _are_improvements(found)
    assert done.lines == [f"Time improvement: {found['time_improvement_percent']:.2f}%",
                          f"Memory improvement: {found['memory_improvement_percent']:.2f}%",
                          f"Speedup factor: {found['speedup_factor']:.2f}x"]
    results = done["benchmark_results"]
    ratio = results["original"]["total_time"] / results["optimized"]["total_time"]
    assert ratio == pytest.approx(found["speedup_factor"])


@check("001", "Real-time Metrics")
def metrics(snippet):
    profiler = _profiler()
    done = snippet.run(profiler=profiler)
    profiler.performance_monitor.stop_monitoring()
    summary = done["summary"]
    assert set(summary) >= {"cpu", "memory", "gpu_memory"}
    assert 0 < summary["memory"]["mean"] <= summary["memory"]["max"] <= 100
    for name in ("cpu", "gpu_memory"):
        value = summary[name]["mean"]
        assert 0 <= value <= 100 or isinstance(value, tare.Missing) and value.reason
    assert done.lines == [f"CPU usage: {summary['cpu']['mean']:.1f}%",
                          f"Memory usage: {summary['memory']['mean']:.1f}%",
                          f"GPU memory: {summary['gpu_memory']['mean']:.2f} GB"]


@check("001", "Performance Visualization", needs=("matplotlib",))
def plot(snippet):
    profiler = _profiler()
    for _ in range(3):
        fill.spin(0.01)
        profiler.performance_monitor.record_metrics()
    snippet.run(profiler=profiler)
    image = (snippet.folder / "performance_metrics.png").read_bytes()
    assert image[:8] == b"\x89PNG\r\n\x1a\n" and len(image) > 2000


@check("001", "Data Loading Bottlenecks", needs=TORCH)
def loading(snippet):
    class Sluggish(fill.torch.utils.data.Dataset):
        def __len__(self):
            return 24

        def __getitem__(self, index):
            fill.nap(0.02)
            return fill.torch.zeros(fill.INPUTS)
    loader = fill.torch.utils.data.DataLoader(Sluggish(), batch_size=8)
    done = snippet.run(profiler=_profiler(), dataloader=loader)
    stats = done["data_stats"]
    assert stats["total_batches"] == 3 and stats["avg_loading_time"] >= 8 * 0.02
    assert stats["throughput"] == pytest.approx(1 / stats["avg_loading_time"])
    assert 0 <= stats["avg_preprocessing_time"] <= stats["avg_loading_time"]
    assert done["bottlenecks"] and any("worker" in found for found in done["bottlenecks"])
    _sentences(done["bottlenecks"])
    found = [line for line in done.lines if any(line.endswith(sentence) for sentence in done["bottlenecks"])]
    assert len(found) == len(done["bottlenecks"]) == len(done.lines) - 1
    assert done["optimizations"]["num_workers"] > 0
    assert done.lines[-1] == f"Suggested optimizations: {done['optimizations']}"


@check("001", "Model Performance Bottlenecks", needs=TORCH)
def model_bound(snippet):
    profiler, _ = _profiled()
    done = snippet.run(profiler=profiler)
    summary = done["profile_summary"]
    assert summary["total_time"] > 0 and summary["cpu_time"] > 0
    assert summary["cuda_time"] > 0 or isinstance(summary["cuda_time"], tare.Missing)
    bound = "GPU-bound" if summary["cuda_time"] > summary["cpu_time"] else "CPU-bound"
    assert bound in done.lines[0]
    top = summary["top_operations"]
    assert any("addmm" in operation["name"] or "linear" in operation["name"] for operation in top)
    assert done.lines[1:] == [f"{one['name']}: {one['cpu_time']:.3f}s CPU, {one['cuda_time']:.3f}s CUDA"
                              for one in top[:5]]
    assert sum(one["cpu_time"] for one in top) <= summary["cpu_time"] * 1.000001


def _waiting(reason):
    """A model that by construction waits 20 ms a run, unless `reason` says that it need not."""
    class Waiting(fill.torch.nn.Module):
        def __init__(self):
            super().__init__()
            fill.torch.manual_seed(0)
            self.layer = fill.torch.nn.Linear(fill.INPUTS, fill.CLASSES)

        def forward(self, batch):
            if not reason():
                time.sleep(0.02)
            return self.layer(batch)
    return Waiting()


def _seen(snippet, model):
    """The model after the pipeline of the document was profiled, as the reader's is by now."""
    text = snippet.text
    snippet.text = snippet.other("Profile Training Pipeline")
    snippet.run(profiler=_profiler(enable_optimizations=False, use_torch_profiler=False), model=model,
                dataloader=fill.loader(48, 16))
    snippet.text = text
    return model


def _untouched(model, before):
    return all(fill.torch.equal(old, new) for old, new in zip(before, model.state_dict().values()))


@check("001", "Mixed Precision Training", needs=TORCH)
@fill.one_thread()
def mixed_precision(snippet):
    """Applied where it is measured faster and as right as before; else the model stays, and the summary says why."""
    torch = fill.torch
    unfit = optimize.half_error()
    for reason, wins in ((lambda: torch.is_autocast_enabled("cpu"), True),
                         (lambda: not torch.is_autocast_enabled("cpu"), False)):
        model, batch = _seen(snippet, _waiting(reason)), fill.batch()
        before = [one.clone() for one in model.state_dict().values()]
        done = snippet.run(config=_config(use_mixed_precision=False), model=model, profile_summary={})
        applied, summary = done["summary"]["optimizations_applied"], done["summary"]
        assert done.lines == [f"Applied optimizations: {applied}"] and _untouched(model, before)
        if unfit:
            assert summary["skipped"][0]["reason"] == unfit and done["optimized_model"] is model
        elif wins:
            assert len(applied) == 1 and applied[0].startswith("Mixed precision")
            assert summary["details"][0]["speedup"] > 1.03
            assert summary["details"][0]["evidence"]["half_precision_operators"] > 0
            plain, half = model(batch), done["optimized_model"](batch)
            assert not torch.equal(half, plain) and torch.allclose(half, plain, rtol=0.1, atol=0.05)
        else:
            assert applied == [] and done["optimized_model"] is model
            assert summary["rejected"][0]["reason"].startswith("slower: ")
    model = fill.model()  # never run: there is nothing to measure it on
    done = snippet.run(config=_config(), model=model, profile_summary={})
    assert done["optimized_model"] is model and done.lines == ["Applied optimizations: []"]
    assert unfit or "needs an input" in done["summary"]["advice"][0]["reason"]


@check("001", "JIT Compilation", needs=TORCH)
@fill.one_thread()
def compiled(snippet):
    """Compiled, by dynamo's own count, where that is measured faster; otherwise the model stays as it is."""
    torch = fill.torch
    reason = optimize.compiler_error()
    model, batch = _seen(snippet, _waiting(torch.compiler.is_compiling)), fill.batch()
    done = snippet.run(config=_config(use_mixed_precision=False), model=model)
    summary = done["profiler"].model_optimizer.get_optimization_summary()
    if reason:
        assert done["optimized_model"] is model and summary["skipped"][0]["reason"] == reason
        return
    assert summary["optimizations_applied"] == ["torch.compile"] and summary["details"][0]["speedup"] > 1.03
    counters = torch._dynamo.utils.counters["stats"]
    torch._dynamo.reset()
    before = counters["unique_graphs"]
    expected = model(batch)
    assert counters["unique_graphs"] == before
    assert torch.allclose(done["optimized_model"](batch), expected, atol=1e-5)
    assert counters["unique_graphs"] > before
    model = fill.model()  # never run
    done = snippet.run(config=_config(use_mixed_precision=False), model=model)
    assert done["optimized_model"] is model
    advice = done["profiler"].model_optimizer.get_optimization_summary()["advice"]
    assert [one["name"] for one in advice] == ["torch.compile"]


@check("001", "Memory Optimizations", needs=TORCH)
@fill.one_thread()
def memory(snippet):
    """Checkpointing is switched on where a training step is measured to take less memory with it."""
    nn = fill.torch.nn

    class Checkpointing(nn.Module):
        on = 0

        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Sequential(nn.Linear(fill.INPUTS, 256), *(nn.Tanh() for _ in range(8)),
                                                      nn.Linear(256, fill.INPUTS)) for _ in range(4))

        def gradient_checkpointing_enable(self):
            self.on += 1

        def forward(self, batch):
            for layer in self.layers:
                batch = (fill.torch.utils.checkpoint.checkpoint(layer, batch, use_reentrant=False)
                         if self.on and self.training else layer(batch))
            return batch
    profiler, model = _profiler(), _seen(snippet, Checkpointing())
    done = snippet.run(profiler=profiler, model=model)
    assert done["model"] is model and model.on == 1 and len(done.lines) == 1
    summary = profiler.model_optimizer.get_optimization_summary()
    assert summary["optimizations_applied"] == ["Gradient checkpointing"]
    detail = summary["details"][0]
    assert detail["optimized_mb"] < detail["original_mb"] and detail["evidence"]["module_calls_recomputed"] == 4 * 11
    never_run, other = _profiler(), Checkpointing()
    snippet.run(profiler=never_run, model=other)
    assert other.on == 0
    assert "needs an input" in never_run.model_optimizer.get_optimization_summary()["advice"][0]["reason"]
    plain = snippet.run(profiler=_profiler(), model=fill.model())
    assert plain.out == ""


@check("001", "Data Loading Recommendations", needs=TORCH)
def recommendations(snippet):
    profiler = _profiler()
    stats = profiler.data_loading_profiler.profile_dataloader(fill.loader(), 4)
    slow = {**stats, "avg_loading_time": 5.0, "throughput": 0.2, "wait_percent": 80.0}
    machine = {"cpu": {"mean": 40.0, "max": 60.0}, "memory": {"mean": 95.0, "max": 97.0}, "gpu_memory": {}}
    done = snippet.run(profiler=profiler, data_stats=slow, performance_summary=machine,
                       profile_summary={"total_time": 9.0, "cpu_time": 1.0, "cuda_time": 8.0, "top_operations": []})
    advice = done["recommendations"]
    _sentences(advice)
    assert done.lines == [f"{number}. {sentence}" for number, sentence in enumerate(advice, 1)]
    assert any("num_workers" in sentence for sentence in advice) and any("emory" in sentence for sentence in advice)
    missing = tare.Missing("nothing was measured")
    quiet = snippet.run(profiler=profiler, data_stats={**stats, "avg_loading_time": 1e-6, "wait_percent": 0.0},
                        performance_summary={}, profile_summary={"cpu_time": missing, "cuda_time": missing})
    assert not any("num_workers" in sentence for sentence in quiet["recommendations"])


@check("001", "Before vs After Optimization", needs=TORCH)
def before_after(snippet):
    done = snippet.run(profiler=_profiler(), model=fill.model(), dataloader=fill.loader(160, 16))
    for name in ("original_metrics", "optimized_metrics"):
        _are_improvements(done[name]["improvements"])
    found = done["improvements"]
    assert [line.split(": ")[1] for line in done.lines[1:]] == [
        f"{found['time_improvement_percent']:.2f}%", f"{found['memory_improvement_percent']:.2f}%",
        f"{found['speedup_factor']:.2f}x"]


@check("001", "Saved Results", needs=TORCH)
def saved(snippet):
    """After a training was profiled with save_profiles, the report is in the folder that the snippet names."""
    config = _config(save_profiles=True, output_dir=str(snippet.folder / "profiles"))
    report = tare.CodeProfiler(config).profile_training_pipeline(fill.model(), fill.loader(), num_steps=2)
    done = snippet.run(config=config)
    assert done.lines == [f"Results saved to: {config.output_dir}"]
    read = [json.loads(path.read_text(encoding="utf-8")) for path in (snippet.folder / "profiles").rglob("*.json")]
    reports = [one for one in read if isinstance(one, dict) and "recommendations" in one]
    assert len(reports) == 1 and [one["text"] for one in reports[0]["recommendations"]] == report["recommendations"]


@check("001", "Report Structure", needs=TORCH)
def report_keys(snippet):
    """Every key of the document's report is in ours, with a value of its kind, or missing with a reason."""
    theirs = json.loads(re.sub(r"\[\.\.\.\]", "[]", snippet.text))
    _, ours = _profiled()
    assert list(ours)[:len(theirs)] == list(theirs)
    for name, part in theirs.items():
        if name == "data_optimizations":  # keywords of a DataLoader that are worth a change here, perhaps none
            options = {"batch_size": 4, **ours[name]}
            assert fill.torch.utils.data.DataLoader(fill.dataset(), **options).batch_size == options["batch_size"]
        else:
            _same_kind(part, ours[name], name)


def _same_kind(theirs, ours, path):
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), path
        for name, value in theirs.items():
            assert name in ours, f"{path}.{name}"
            _same_kind(value, ours[name], f"{path}.{name}")
    elif isinstance(theirs, list):
        assert isinstance(ours, list), path
    elif isinstance(theirs, (int, float)):
        assert isinstance(ours, (int, float)), path
        assert ours >= 0 or isinstance(ours, tare.Missing) and ours.reason, path


@check("001", "Custom Profiling Schedules", needs=TORCH)
def schedules(snippet):
    """torch's own action is accepted, and ours in its place is the same."""
    for also in ((), ("torch.profiler",)):
        config = snippet.run(also=also, config=_config(record_shapes=False, profile_memory=False))["config"]
        assert config.action(0) is tare.ProfilerAction.RECORD_AND_SAVE
        assert config.record_shapes and config.profile_memory and config.with_stack
        report = tare.CodeProfiler(config).profile_training_pipeline(fill.model(), fill.loader(), num_steps=2)
        assert report["model_profiling"]["top_operations"]


@check("001", "Memory Profiling", needs=TORCH)
def memory_profiling(snippet):
    config = _config(profile_memory=False, monitor_memory=False)
    assert snippet.run(config=config)["config"] is config
    assert config.profile_memory and config.monitor_memory and config.monitor_gpu
    report = tare.CodeProfiler(config).profile_training_pipeline(fill.model(), fill.loader(), num_steps=3)
    assert 0 < report["performance_monitoring"]["memory"]["mean"] <= 100
    assert report["model_profiling"]["peak_tensor_bytes"] > 0


@check("001", "Function-level Profiling", needs=TORCH)
def function_level(snippet):
    torch = fill.torch
    model, batch = fill.model(), fill.batch()

    def train(net, samples, optimizer):
        net(samples).square().mean().backward()
        optimizer.step()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    done = snippet.run(profiler=_profiler(), model=model, batch=batch, train=train, optimizer=optimizer,
                       said={"training logic": "train(model, batch, optimizer)"})
    found = done["profile_results"]
    assert done.lines == [f"Training step took: {found['execution_time']:.4f}s"] and found["execution_time"] > 0
    assert model[0].weight.grad is not None
    names = str(tare.FunctionProfiler(table=True)(train, model, batch, optimizer)["functions"])
    assert "backward" in names


@check("001", "1. Profiling Overhead", needs=TORCH)
def overhead(snippet):
    config = snippet.run(config=_config())["config"]
    assert not config.use_torch_profiler and not config.profile_data_loading
    report = tare.CodeProfiler(config).profile_training_pipeline(fill.model(), fill.loader(), num_steps=2)
    for value in (report["model_profiling"]["total_time"], report["data_loading"]["avg_loading_time"]):
        assert isinstance(value, tare.Missing) and value.reason


@check("001", "2. Memory Issues During Profiling", needs=TORCH)
def fewer_steps(snippet):
    done = snippet.run(torch=fill.torch, gc=gc)
    loader = fill.loader(80, done["batch_size"])
    stats = _profiler().data_loading_profiler.profile_dataloader(loader, done["num_steps"])
    assert stats["total_batches"] == 5 and stats["samples_per_batch"] == 8


@check("001", "3. Profiler Errors")
def errors(snippet):
    """Nothing profiled yet is no error but missing figures; what a profiler raises is caught, as in the document."""
    profiler = _profiler()
    summary = snippet.run(profiler=profiler, logger=logging.getLogger("seed"))["profile_summary"]
    assert isinstance(summary["cpu_time"], tare.Missing) and summary["top_operations"] == []

    class Broken:
        def get_profile_summary(self):
            raise RuntimeError("no profile")
    told = []
    logger = type("Logger", (), {"warning": staticmethod(told.append)})
    done = snippet.run(profiler=type("Profiler", (), {"pytorch_profiler": Broken()}), logger=logger)
    assert done["profile_summary"] == {} and len(told) == 1 and told[0].endswith("no profile")


MODULES = {"pillow": "PIL"}


def _needs_none_of(snippet, packages):
    """The package declares no dependency, and importing all its classes imports none of these packages."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert not re.search(r"^dependencies\s*=", text, re.M)
    code = ("import sys, tare\n"
            "tare.PerformanceProfiler, tare.PerformanceMonitor, tare.CodeProfiler, tare.EpochPerformanceMonitor\n"
            "print(*sorted({name.partition('.')[0] for name in sys.modules}))\n")
    loaded = set(snippet.python("-c", code).split())
    assert "tare" in loaded and "sys" in loaded
    assert not loaded & {MODULES.get(name, name) for name in packages}, loaded


@check("001", "Core Requirements")
def requirements(snippet):
    packages = re.findall(r"^([a-z]+)>=[\d.]+", snippet.text, re.M)
    assert len(packages) == 8
    _needs_none_of(snippet, packages)


@check("001", "Optional Dependencies")
def optional(snippet):
    packages = re.findall(r"^([a-z]+)>=[\d.]+", snippet.text, re.M)
    assert len(packages) == 3
    _needs_none_of(snippet, packages)


@check("001", "Installation")
def installation(snippet):
    """What the document has to be installed, tare does without: each is used when it is there."""
    lines = [line.split() for line in snippet.commands()]
    assert all(words[:2] == ["pip", "install"] for words in lines)
    packages = [word for words in lines[1:] for word in words[2:]]
    assert {"torch", "psutil", "matplotlib"} <= set(packages)
    _needs_none_of(snippet, packages)


nothing("001", "Citation")
