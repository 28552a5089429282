"""ModelProfiler on real models: torch modules, files of every kind, Hugging Face folders, ONNX Runtime."""
import json
import sys
import types
import zipfile

import pytest
import tare
from torch_parts import torch

from tare.seeds.model import _measure

RUNS = {"num_runs": 10, "warmup_runs": 2}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads of others that spin on a busy machine are not what is tested, nor is it how long one looks."""
    before, seconds, window = torch.get_num_threads(), _measure.SAMPLING_SECONDS, _measure.WINDOW_SECONDS
    torch.set_num_threads(1)
    _measure.SAMPLING_SECONDS, _measure.WINDOW_SECONDS = 0.02, 0.002
    yield
    torch.set_num_threads(before)
    _measure.SAMPLING_SECONDS, _measure.WINDOW_SECONDS = seconds, window


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.drop = torch.nn.Dropout(0.5)
        self.head = torch.nn.Linear(8 * 8 * 8, 10)

    def forward(self, x):
        return self.head(self.drop(self.conv(x)).flatten(1))


BATCH = 2
CONV = 2 * BATCH * 8 * 8 * 8 * 3 * 9
HEAD = 2 * BATCH * 8 * 8 * 8 * 10
PARAMETERS = 3 * 8 * 9 + 8 + 8 * 8 * 8 * 10 + 10


def images(batch=BATCH):
    return torch.randn(batch, 3, 8, 8)


def files(folder):
    """The same model in every kind of file."""
    model = Net().eval()
    torch.jit.script(model).save(str(folder / "script.pt"))
    exported = torch.export.export(model, (images(), ), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    torch.export.save(exported, str(folder / "model.pt2"))
    torch.save(model.state_dict(), str(folder / "weights.pt"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    files(made)
    return made


# ---- modules -------------------------------------------------------------------------------------------------------

def test_a_module_is_counted_exactly_and_not_changed():
    model = Net().train()
    model.head.eval()
    before = {name: one.clone() for name, one in model.state_dict().items()}
    batch, state = images(), torch.get_rng_state()
    profiler = tare.ModelProfiler(model)
    results = profiler.profile(batch, **RUNS)
    told = results["model"]
    assert told["flops"] == CONV + HEAD and told["macs"] == told["flops"] // 2
    assert told["parameters"] == told["trainable_parameters"] == PARAMETERS
    assert told["parameter_bytes"] == told["size_bytes"] == 4 * PARAMETERS
    assert told["precision"]["executed"] == {"operators": {"fp32": 2}, "casts": 0}
    assert results["input"]["batch_size"] == results["input"]["images"] == BATCH
    assert results["input"]["arrays"] == [{"name": "x", "shape": [BATCH, 3, 8, 8], "type": "float32"}]
    assert results["throughput"]["images_per_second"] == pytest.approx(
        BATCH * results["throughput"]["requests_per_second"])
    # What a run needs at most: input and output of a layer live together.
    assert 4 * BATCH * 8 * 8 * 8 <= results["memory"]["activation"] <= 4 * 4 * BATCH * 8 * 8 * 8
    assert results["memory"]["per_sample"] == results["memory"]["activation"] / BATCH
    assert results["compute"]["flops_per_second"] == pytest.approx(
        told["flops"] / (results["latency"]["p50"] / 1e3))
    assert model.training and model.drop.training and not model.head.training
    assert all(torch.equal(before[name], one) for name, one in model.state_dict().items())
    assert torch.equal(state, torch.get_rng_state()) and all(one.grad is None for one in model.parameters())
    assert not model._forward_hooks and not model.conv._forward_hooks


def test_shared_weights_count_once():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8, bias=False), torch.nn.Linear(8, 8, bias=False))
    model[1].weight = model[0].weight
    assert tare.ModelProfiler(model).runner.facts()["parameters"] == 64
    model[1].weight = torch.nn.Parameter(model[0].weight.detach())  # another object on the same memory
    assert tare.ModelProfiler(model).runner.facts()["parameters"] == 64


@pytest.mark.parametrize("data", [
    lambda: images(), lambda: (images(), torch.tensor([1, 2])), lambda: {"x": images(), "labels": torch.zeros(2)},
    lambda: images().numpy(), lambda: images().double()])
def test_inputs_of_every_kind(data):
    results = tare.ModelProfiler(Net()).profile(data(), num_runs=2, warmup_runs=0)
    assert results["input"]["batch_size"] == BATCH


def test_lists_of_numbers_are_one_input():
    model = torch.nn.Linear(3, 1)
    results = tare.ModelProfiler(model).profile([[1.0, 2, 3], [4, 5, 6]], num_runs=2, warmup_runs=0)
    assert results["input"]["arrays"][0]["shape"] == [2, 3]


def test_what_cannot_be_run_gets_a_sentence():
    profiler = tare.ModelProfiler(Net())
    with pytest.raises(TypeError, match="pass input_data"):
        profiler.profile()
    with pytest.raises(RuntimeError, match="Net .* cannot be run on this input"):
        profiler.profile(torch.randn(1, 5), **RUNS)
    with pytest.raises(TypeError, match="no key of the input"):
        profiler.profile({"y": images()})
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="device 'cuda': .*device=\"cpu\" runs here"):
            tare.ModelProfiler(Net(), device="cuda")


def test_a_precision_is_really_executed_and_the_model_stays():
    model = Net()
    results = tare.ModelProfiler(model, precision="fp16").profile(images(), **RUNS)
    assert results["model"]["precision"] == {"requested": "fp16", "executed": {"operators": {"fp16": 2}, "casts": 0}}
    assert results["model"]["parameter_bytes"] == 2 * PARAMETERS and results["notes"] == []
    assert all(one.dtype == torch.float32 for one in model.parameters())


def test_a_precision_that_is_not_the_models_all_through_is_told(monkeypatch):
    monkeypatch.setattr("tare.seeds.model._torch._trial", lambda *_: "")
    class Mixed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

        def forward(self, x):
            return torch.nn.functional.linear(self.one(x).float(), self.two.weight.float())
    results = tare.ModelProfiler(Mixed(), precision="fp16").profile(torch.randn(2, 8), **RUNS)
    executed = results["model"]["precision"]["executed"]
    assert executed["operators"] == {"fp16": 1, "fp32": 1} and executed["casts"] == 2
    assert any("fp16 was requested" in note for note in results["notes"])


def test_a_precision_that_would_end_the_process_is_refused(monkeypatch):
    from tare.seeds.model import _torch
    monkeypatch.setattr(_torch, "_TRIAL", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    monkeypatch.setattr(_torch, "_trial", _torch._trial.__wrapped__)  # others keep what they tried
    with pytest.raises(ValueError, match="fp16 cannot be executed on this CPU: .*SIGILL"):
        tare.ModelProfiler(Net(), precision="fp16")


def test_the_gpu_is_absent_with_a_reason():
    profiler = tare.ModelProfiler(Net(), device="cpu")
    told = profiler.gpu_profile(track_kernels=True, track_memory_transfers=True, profile_nvtx=True, input_data=images())
    assert told["available"] is False and "cpu" in told["reason"]
    for name in ("kernels", "memory_transfers", "nvtx", "device_ms", "busy_percent"):
        assert isinstance(told[name], tare.Missing) and told[name].reason == told["reason"]
    assert "nvtx" not in profiler.gpu_profile(profile_nvtx=False)


class Gpu:
    """The part of torch.cuda that is asked, on a machine without one: it counts, and its clock goes on by itself."""

    def __init__(self, monkeypatch):
        self.waited, self.ms, self.pushed, self.popped = 0, 0.0, [], 0
        self.allocated = self.peak = 1 << 20
        gpu, cuda = self, torch.cuda

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self, stream=None):
                gpu.ms += 1
                self.at = gpu.ms

            def query(self):
                return True

            def elapsed_time(self, other):
                return other.at - self.at
        for name, value in {
                "is_initialized": lambda: True, "synchronize": self.wait, "Event": Event,
                "current_stream": lambda device=None: None, "memory_allocated": lambda device=None: gpu.allocated,
                "memory_reserved": lambda device=None: 4 << 20, "max_memory_allocated": lambda device=None: 3 << 20,
                "reset_peak_memory_stats": lambda device=None: None,
                "get_device_properties": lambda device=None: types.SimpleNamespace(total_memory=80 << 30),
                "memory_stats": lambda device=None: {"allocation.all.allocated": gpu.waited}}.items():
            monkeypatch.setattr(cuda, name, value)
        monkeypatch.setattr(cuda.nvtx, "range_push", self.pushed.append)
        monkeypatch.setattr(cuda.nvtx, "range_pop", self.pop)

    def wait(self, device=None):
        self.waited += 1

    def pop(self):
        self.popped += 1


def on_a_gpu(monkeypatch):
    """A profiler of a model that thinks it is on a GPU."""
    gpu, profiler = Gpu(monkeypatch), tare.ModelProfiler(Net())
    runner = profiler.runner
    runner.device, runner.where = "cuda:0", torch.device("cuda", 0)
    monkeypatch.setattr(runner, "_placed", lambda inputs: inputs)
    return gpu, profiler


def test_on_a_gpu_latency_waits_for_every_run_and_throughput_once_a_window(monkeypatch):
    gpu, profiler = on_a_gpu(monkeypatch)
    call, settle = profiler.runner.call(profiler._take(images())), profiler.runner.settle()
    told = _measure.latency(call, settle, 7)
    assert gpu.waited == 1 + 7 and told["synchronized"] == "after every run"
    gpu.waited = 0
    told = _measure.throughput(call, settle, 0.001, 5, {"samples": 2})
    assert gpu.waited == 1 + told["windows"] and told["runs_per_window"] == 2
    assert told["synchronized"] == "once a window"


def test_on_a_gpu_memory_is_the_gpus(monkeypatch):
    gpu, profiler = on_a_gpu(monkeypatch)
    results = profiler.profile(images(), **RUNS)
    memory = results["memory"]
    assert memory["peak"] == 3 << 20 and memory["source"] == "torch's count on the GPU"
    assert memory["added"] == memory["activation"] == 2 << 20 and memory["fragmentation"] == 0.75
    assert memory["average"] == 1 << 20 and memory["process_peak"] > 3 << 20
    assert results["end_to_end"]["count"] == 10  # the way to the device and back
    told = profiler.memory_profile()
    assert told["allocations"]["count"] == 1 and told["snapshots"][0]["gpu_allocated_bytes"] == 1 << 20


def test_on_a_gpu_layers_have_the_devices_time(monkeypatch):
    _, profiler = on_a_gpu(monkeypatch)
    told = profiler.profile_layers(images(), num_runs=3)
    assert "device time" in told["note"]
    # The clock goes on by one at each mark: 2 around each of three layers, and one around all of them.
    assert {row["name"]: row["time_ms"] for row in told["layers"]} == {"conv": 1, "drop": 1, "head": 1}
    assert told["total_ms"] == 7


def test_on_a_gpu_kernels_and_copies_are_told_apart(monkeypatch):
    from tare.seeds.model import _gpu
    gpu, profiler = on_a_gpu(monkeypatch)

    def event(cat, name, ts, dur, **args):
        return {"cat": cat, "name": name, "ts": ts, "dur": dur, "args": args}

    class Told:
        def export_chrome_trace(self, path):
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"traceEvents": [
                    event("kernel", "gemm", 1000, 2000, **{"est. achieved occupancy %": 40}),
                    event("kernel", "gemm", 2500, 1000, **{"est. achieved occupancy %": 60}), {"ph": "M", "name": "x"},
                    event("gpu_memcpy", "Memcpy HtoD", 0, 500, bytes=1_000_000), event("cpu_op", "aten::mm", 0, 9),
                    event("gpu_memset", "Memset", 4000, 250)]}, file)
    found = _gpu._device_events(Told())
    assert _gpu._busy_ms(found) == 0.5 + 2.5 + 0.25  # both products ran at once for half a millisecond
    assert _gpu._kernels(found) == [{"name": "gemm", "calls": 2, "total_ms": 3.0, "occupancy_percent": 50}]
    copy, fill = _gpu._copies(found)
    assert copy == {"name": "Memcpy HtoD", "calls": 1, "total_ms": 0.5, "bytes": 1_000_000, "gb_per_second": 2.0}
    assert isinstance(fill["bytes"], tare.Missing) and isinstance(fill["gb_per_second"], tare.Missing)
    from tare import _engine
    from tare.seeds.model import _html
    section, = _html._kernels({"available": True, "device_ms": 3.25, "run_ms": 5.0, "note": "one run",
                               "kernels": _gpu._kernels(found), "memory_transfers": [copy, fill]})
    page = _engine.page("gpu", "", [section]).decode()
    assert "50 %" in page and "2 GB/s" in page and "Busy for 3.25 ms of 5.00 ms" in page and "n/a" not in page
    runner = profiler.runner
    ranges = _gpu._ranges(runner, runner.call(profiler._take(images())), runner.settle())
    assert ranges["names"] == gpu.pushed == ["Net", "conv", "drop", "head"] and gpu.popped == 4


# ---- layers --------------------------------------------------------------------------------------------------------

def test_layers_have_their_time_parameters_and_operations():
    profiler = tare.ModelProfiler(Net())
    told = profiler.profile_layers(images(), num_runs=5)
    rows = {row["name"]: row for row in told["layers"]}
    assert set(rows) == {"conv", "drop", "head"} and rows["conv"]["type"] == "Conv2d"
    assert rows["conv"]["flops"] == CONV and rows["head"]["flops"] == HEAD
    assert isinstance(rows["drop"]["flops"], tare.Missing) and rows["drop"]["parameters"] == 0
    assert rows["head"]["parameters"] == 5130 and rows["conv"]["output_bytes"] == 4 * BATCH * 8 * 8 * 8
    assert all(row["calls"] == 1 and 0 < row["self_ms"] <= row["time_ms"] <= told["total_ms"] * 100
               for row in rows.values())


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
        self.mlp = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.mlp(self.attention(self.attention(x)))


def test_names_of_layers_are_patterns():
    model = torch.nn.Sequential(Block(), Block())
    told = tare.ModelProfiler(model).profile_layers(torch.randn(4, 8), ["attention", "*.mlp", "linear", "none"])
    sums = told["patterns"]
    assert sums["attention"]["layers"] == 2 and sums["*.mlp"]["layers"] == 2 and sums["linear"]["layers"] == 6
    # An attention runs twice in a block, and what is inside of it is in its figures once.
    assert sums["attention"]["flops"] == 2 * 2 * 2 * 2 * 4 * 8 * 8 and sums["attention"]["parameters"] == 2 * 2 * 72
    assert sums["none"]["layers"] == 0 and "no layer matches 'none'" in sums["none"]["time_ms"].reason
    assert {row["name"] for row in told["layers"]} >= {"0.attention", "0.attention.1", "1.mlp"}
    assert next(row for row in told["layers"] if row["name"] == "0.attention")["calls"] == 2
    with pytest.raises(TypeError, match="layer_names"):
        tare.ModelProfiler(model).profile_layers(torch.randn(4, 8), [3])


# ---- memory --------------------------------------------------------------------------------------------------------

def test_memory_is_told_allocation_by_allocation():
    profiler = tare.ModelProfiler(torch.nn.Sequential(torch.nn.Linear(64, 4096), torch.nn.ReLU()))
    told = profiler.memory_profile(input_data=torch.randn(16, 64))
    one = 4 * 16 * 4096
    assert told["allocations"]["bytes"] >= 2 * one and told["allocations"]["largest"] >= one
    assert told["deallocations"]["kept_bytes"] == 0 and told["deallocations"]["bytes"] == told["allocations"]["bytes"]
    assert 2 * one <= told["activation_peak_bytes"] < 3 * one
    assert any(row["name"] == "aten::addmm" and row["bytes"] >= one for row in told["allocations"]["by_operator"])
    assert max(point[1] for point in told["course"]) == told["activation_peak_bytes"]
    assert told["snapshots"][0]["at"] == "before" and told["snapshots"][0]["rss_bytes"] > 0
    less = profiler.memory_profile(track_allocations=False, track_deallocations=False, memory_snapshots=False)
    assert not {"allocations", "deallocations", "snapshots"} & set(less)


def test_what_a_model_keeps_is_seen_to_grow():
    class Leaky(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.kept = []

        def forward(self, x):
            self.kept.append(torch.ones(1 << 20))
            return x
    profiler = tare.ModelProfiler(Leaky())
    growth = profiler.memory_profile(False, False, False, input_data=torch.zeros(1))["growth"]
    assert growth["grows"] and growth["bytes_per_run"] > 3 << 20


# ---- configurations ------------------------------------------------------------------------------------------------

def test_configurations_are_measured_or_refused():
    profiler = tare.ModelProfiler(Net())
    profiler.profile(images(4), **RUNS)
    rows = profiler.benchmark([{"batch_size": 1, "precision": "fp32"}, {"batch_size": 8, "precision": "fp16"},
                               {"batch_size": 3, "threads": 1}, {"precision": "int8"}, {"device": "cuda:7"}],
                              num_runs=4, warmup_runs=1)
    assert [row["status"] for row in rows] == ["measured"] * 3 + ["refused"] * 2
    assert [row["input"]["batch_size"] for row in rows[:3]] == [1, 8, 3]
    assert rows[1]["model"]["precision"] == {"requested": "fp16", "executed": {"operators": {"fp16": 2}, "casts": 0}}
    assert rows[1]["model"]["flops"] == 8 * (CONV + HEAD) // BATCH
    assert "quantize" in rows[3]["reason"] and isinstance(rows[3]["latency"], tare.Missing)
    named = [name for row in rows for name in row["best"]]
    assert named.count("latency") == named.count("throughput") == named.count("memory") == 1 <= named.count("trade-off")


def test_a_failing_batch_is_a_row_not_an_end():
    class Fixed(torch.nn.Module):
        def forward(self, x):
            return x.view(2, 3)
    profiler = tare.ModelProfiler(Fixed())
    profiler.profile(torch.zeros(2, 3), **RUNS)
    rows = profiler.benchmark([{"batch_size": 2}, {"batch_size": 4}], num_runs=2, warmup_runs=0)
    assert [row["status"] for row in rows] == ["measured", "refused"] and "size 12" in rows[1]["reason"]


def test_everything_at_once(tmp_path):
    model = torch.nn.Sequential(torch.nn.Embedding(50, 16), torch.nn.Linear(16, 16), torch.nn.GELU(),
                                torch.nn.Linear(16, 4))
    profiler = tare.ModelProfiler(model)
    results = profiler.profile(torch.randint(0, 50, (4, 12)), detailed_analysis=True, **RUNS)
    assert results["input"]["tokens"] == 48
    assert results["throughput"]["tokens_per_second"] == pytest.approx(12 * results["throughput"]["samples_per_second"])
    assert results["layers"]["layers"] and results["memory_profile"]["allocations"]["count"] > 0
    assert any(row["name"] == "aten::gelu" for row in results["operators"])
    assert results["dependencies"]["blocking_operators"] == []
    assert [row["configuration"]["batch_size"] for row in results["batch_sweep"]] == [4, 8, 16]
    assert all(one["text"] and one["id"] for one in results["advice"])
    told = json.loads(profiler.export_json(tmp_path / "all.json"))
    assert told["benchmark"] and told["layers"]["layers"] and told["figures"]["tare_baseline"] == 1
    profiler.export_csv(tmp_path / "all.csv")
    assert "layer,1,time_ms," in (tmp_path / "all.csv").read_text()
    profiler.generate_html_report(tmp_path / "all.html")
    text = (tmp_path / "all.html").read_text()
    assert "Configurations" in text and "Layers" in text and "batch_size=16" in text


def test_what_blocks_is_named():
    class Asks(torch.nn.Module):
        def forward(self, x):
            return x if x.sum().item() > 0 else -x
    results = tare.ModelProfiler(Asks()).profile(torch.ones(4), detailed_analysis=True, num_runs=2, warmup_runs=0)
    assert any(row["name"] == "aten::item" for row in results["dependencies"]["blocking_operators"])


# ---- advice --------------------------------------------------------------------------------------------------------

def advice_of(results, rows=(), layers=None, memory=None):
    from tare.seeds.model._advice import advise
    return {one.id: one for one in advise(results, rows, layers, memory)}


@pytest.fixture(scope="module")
def plain():
    return tare.ModelProfiler(Net()).profile(images(), **RUNS)


def with_parts(results, **parts):
    return {**results, **{name: {**results.get(name, {}), **part} if isinstance(part, dict) else part
                          for name, part in parts.items()}}


def row(batch, rate, latency, **more):
    return {"status": "measured", "configuration": {"batch_size": batch, **more}, "best": [],
            "throughput": {"samples_per_second": rate}, "latency": {"p50": latency}}


def test_advice_rests_on_what_was_measured(plain):
    assert "quantization" not in advice_of(plain)
    big = with_parts(plain, model={"parameters": 10 ** 8, "parameter_bytes": 4 * 10 ** 8, "flops": 2 * 10 ** 8})
    told = advice_of(big)["quantization"]
    assert told.evidence["flops_per_byte"] == 0.5 and "381 MiB" in told and "estimate" in told.gain
    batched = advice_of(plain, [row(1, 100.0, 10.0), row(8, 400.0, 20.0)])["dynamic-batching"]
    assert batched.evidence["gain"] == 4 and "4.00 times the throughput, measured" == batched.gain
    assert "small-batches" in advice_of(plain, [row(1, 100.0, 10.0), row(8, 101.0, 80.0)])
    faster = advice_of(plain, [row(1, 100.0, 10.0, precision="fp32"), row(1, 200.0, 5.0, precision="bf16")])
    assert faster["precision-bf16"].evidence["gain"] == 2
    assert "precision-not-fp16" in advice_of(plain, [row(1, 1.0, 10.0), row(1, 1.0, 20.0, precision="fp16")])
    assert "memory-pooling" in advice_of(with_parts(plain, cpu={"page_faults_per_run": 10 ** 6}))
    assert "memory-pooling" not in advice_of(with_parts(plain, cpu={"page_faults_per_run": 1}))
    assert "sharding" in advice_of(with_parts(plain, model={"parameter_bytes": 10 ** 15, "parameters": 10 ** 15}))
    assert "sharding" not in advice_of(plain)
    operators = [{"name": "aten::gelu", "calls": 10, "self_us": 600.0}, {"name": "aten::mm", "calls": 1,
                                                                        "self_us": 400.0}]
    assert advice_of(with_parts(plain, operators=operators))["fusion"].evidence["elementwise_share"] == 0.6
    heavy = [{"name": name, "calls": 1, "self_us": 400.0} for name in ("aten::mm", "aten::addmm", "aten::expand")]
    assert "fusion" not in advice_of(with_parts(plain, operators=heavy))
    short = [{"name": name, "calls": 20, "self_us": 500.0} for name in ("aten::mm", "aten::addmm")]
    assert "shorter than 30.0 µs" in advice_of(with_parts(plain, operators=short))["fusion"]
    late = with_parts(plain, latency={"count": 100, "min": 1.0, "p50": 1.5, "p95": 2.0, "max": 4.0})
    assert advice_of(late)["uneven-runs"].startswith("Find what makes runs slow: 5 % of them take 2.00 ms")
    assert "uneven-runs" not in advice_of(with_parts(late, latency={**late["latency"], "p95": 1.8}))
    grows = {"growth": {"grows": True, "bytes_per_run": 1e6, "low": 9e5, "high": 1.1e6}}
    assert "growth" in advice_of(plain, memory=grows)
    activations = with_parts(plain, memory={"activation": 10 ** 9})
    assert "checkpointing" in advice_of(activations)


# ---- files ---------------------------------------------------------------------------------------------------------

def test_torchscript(folder):
    profiler = tare.ModelProfiler(folder / "script.pt")
    results = profiler.profile(images(), **RUNS)
    assert results["model"]["kind"] == "TorchScript file" and results["model"]["flops"] == CONV + HEAD
    assert results["model"]["parameters"] == PARAMETERS
    assert results["model"]["size_bytes"] == (folder / "script.pt").stat().st_size
    told = profiler.profile_layers(layer_names=["linear"])
    assert told["patterns"]["linear"]["layers"] == 1 and "operators" in told["note"]


def test_torch_export(folder):
    profiler = tare.ModelProfiler(folder / "model.pt2")
    results = profiler.profile(**RUNS)  # with the example that is in the file
    assert results["model"]["kind"] == "torch.export file" and results["model"]["flops"] == CONV + HEAD
    assert results["input"]["is_generated"] and any("was generated" in note for note in results["notes"])
    told = profiler.profile_layers(layer_names=["conv", "head"])
    assert {row["name"]: row["type"] for row in told["layers"]} == {"conv": "Conv2d", "head": "Linear"}
    rows = profiler.benchmark([{"batch_size": 4}], num_runs=2, warmup_runs=0)
    assert rows[0]["status"] == "measured"


def test_a_path_given_to_profile_is_a_model(folder):
    profiler = tare.ModelProfiler(Net())
    results = profiler.profile(str(folder / "model.pt2"), **RUNS)
    assert results["model"]["kind"] == "torch.export file" and profiler.results is results


def test_a_path_given_to_profile_is_run_on_the_last_input(folder):
    """A TorchScript file tells no shapes: without the input there is nothing to run it on."""
    profiler = tare.ModelProfiler(Net())
    profiler.profile(images(3), **RUNS)
    results = profiler.profile(str(folder / "script.pt"), **RUNS)
    assert results["input"]["batch_size"] == 3 and not results["input"]["is_generated"]
    assert profiler.profile(str(folder / "model.pt2"), **RUNS)["input"]["batch_size"] == 3
    fresh = tare.ModelProfiler(folder / "model.pt2")
    assert fresh.profile(**RUNS)["input"]["is_generated"]
    with pytest.raises(TypeError, match="pass input_data"):  # one that was made up for a model is none for another
        fresh.profile(str(folder / "script.pt"), **RUNS)


def test_devices_of_a_model():
    for device in ("cpu", "cpu:0", torch.device("cpu")):
        assert tare.ModelProfiler(Net(), device=device).runner.device == "cpu"
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match='"cpu" runs here'):
            tare.ModelProfiler(Net(), device="cuda")


def test_files_that_are_no_model(folder, tmp_path):
    with pytest.raises(ValueError, match="without the model's code"):
        tare.ModelProfiler(folder / "weights.pt")
    whole = (folder / "script.pt").read_bytes()
    (tmp_path / "cut.pt").write_bytes(whole[:len(whole) // 2])
    with pytest.raises(ValueError, match="cut.pt"):
        tare.ModelProfiler(tmp_path / "cut.pt")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(ValueError, match="is an archive, but"):
        tare.ModelProfiler(tmp_path / "other.zip")


# ---- Hugging Face --------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def hugging_face(tmp_path_factory):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed for this Python")
    folder = tmp_path_factory.mktemp("hub")
    torch.manual_seed(0)
    transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=2, n_embd=16, n_head=2, vocab_size=64, n_positions=32, bos_token_id=0, eos_token_id=1,
        pad_token_id=2)).save_pretrained(folder / "gpt")
    transformers.BertModel(transformers.BertConfig(
        num_hidden_layers=1, hidden_size=16, num_attention_heads=2, intermediate_size=32,
        vocab_size=64)).save_pretrained(folder / "bert")
    return folder


def test_a_folder_that_generates(hugging_face):
    profiler = tare.ModelProfiler(hugging_face / "gpt")
    results = profiler.profile(**RUNS)
    assert results["model"]["kind"] == "Hugging Face folder" and results["input"]["tokens"] == 16
    # The head is the embedding: once. 64 tokens and 32 positions of 16, two blocks, a norm.
    assert results["model"]["parameters"] == sum(one.numel() for one in profiler.runner.model.parameters())
    told = results["generation"]
    assert told["new_tokens"] == 16 and told["time_to_first_token"]["count"] == 10
    assert told["time_between_tokens"]["count"] == 10 * 15
    assert told["time_to_first_token"]["min"] > 0 < told["tokens_per_second"]
    few = profiler.profile_generation(max_new_tokens=3, num_runs=2)
    assert few["new_tokens"] == 3 and few["time_between_tokens"]["count"] == 4
    full = torch.zeros(1, 32, dtype=torch.long)
    with pytest.raises(ValueError, match="fills all 32 positions"):
        profiler.profile_generation({"input_ids": full})
    assert "fills all" in profiler.profile({"input_ids": full}, **RUNS)["generation"].reason


def test_padding_is_no_token(hugging_face):
    profiler = tare.ModelProfiler(hugging_face / "gpt")
    ids = torch.tensor([[5, 6, 7, 2, 2, 2], [2, 8, 2, 9, 2, 2]])
    assert profiler.runner.units(profiler.runner.take({"input_ids": ids}))["tokens"] == 6
    mask = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]])
    assert profiler.runner.units(profiler.runner.take({"input_ids": ids, "attention_mask": mask}))["tokens"] == 6
    assert profiler.runner.units(profiler.runner.take(ids))["tokens"] == 6


def test_a_folder_that_does_not_generate(hugging_face, tmp_path):
    profiler = tare.ModelProfiler(hugging_face / "bert")
    results = profiler.profile(torch.randint(0, 64, (4, 8)), **RUNS)
    assert "generation" not in results and results["input"]["tokens"] == 32
    with pytest.raises(TypeError, match="does not generate"):
        profiler.profile_generation()
    rows = profiler.benchmark([{"sequence_length": 16, "batch_size": 2}], num_runs=2, warmup_runs=0)
    assert rows[0]["input"]["tokens"] == 32
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="cannot be loaded"):
        tare.ModelProfiler(tmp_path)


# ---- ONNX ----------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def onnx_file(tmp_path_factory):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed for this Python")
    onnx = pytest.importorskip("onnx", reason="onnx is not installed for this Python")
    from onnx import TensorProto, helper, numpy_helper
    numpy = pytest.importorskip("numpy")
    chance = numpy.random.default_rng(0)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product"),
         helper.make_node("Relu", ["y"], ["z"], name="act")],
        "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 16])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["batch", 8])],
        [numpy_helper.from_array(chance.standard_normal((16, 8)).astype("float32"), "w")])
    path = tmp_path_factory.mktemp("onnx") / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


def test_an_onnx_file_is_run(onnx_file):
    profiler = tare.ModelProfiler(onnx_file)
    results = profiler.profile(**RUNS)
    assert results["model"]["kind"] == "ONNX file" and results["input"]["batch_size"] == 1
    assert results["model"]["size_bytes"] == onnx_file.stat().st_size and results["latency"]["min"] > 0
    assert results["model"]["precision"]["executed"]["operators"] == {"fp32": 1}
    assert results["model"]["flops"] == 2 * 16 * 8 and results["model"]["parameters"] == 16 * 8
    assert results["memory"]["activation"] > 0 and "estimate" in results["memory"]["activation_source"]
    told = profiler.profile_layers()
    assert [row["type"] for row in told["layers"]][0] in ("MatMul", "FusedMatMul", "Gemm", "FusedGemm")
    rows = profiler.benchmark([{"batch_size": 4}, {"threads": 1}, {"precision": "bf16"}], num_runs=3, warmup_runs=0)
    assert [row["status"] for row in rows] == ["measured", "measured", "refused"]
    assert rows[0]["input"]["batch_size"] == 4 and rows[0]["model"]["flops"] == 4 * 2 * 16 * 8
    assert "export the model" in rows[2]["reason"]
    assert profiler.memory_profile()["growth"] and isinstance(profiler.memory["allocations"], tare.Missing)


def test_an_onnx_file_tells_the_precision_it_was_really_run_in(onnx_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)  # the engine converts it
    results = tare.ModelProfiler(onnx_file, precision="fp16").profile(**RUNS)
    executed = results["model"]["precision"]["executed"]
    assert set(executed["operators"]) <= {"fp16", "fp32"}
    assert ("fp32" in executed["operators"]) == any("fp16 was requested" in note for note in results["notes"])


def test_inputs_of_an_onnx_file_are_generated_by_the_engine(onnx_file):
    from tare import _engine
    ((name, kind, shape, data),) = _engine.model_inputs(onnx_file, 3, 0)
    assert (name, kind, shape, len(data)) == ("x", "float32", [3, 16], 3 * 16 * 4)
    assert _engine.model_inputs(onnx_file, 3, 0)[0][3] == data != _engine.model_inputs(onnx_file, 3, 1)[0][3]
    made = tare.ModelProfiler(onnx_file).runner.generated_input(3)["x"]
    assert made.shape == (3, 16) and made.tobytes() == data
    with pytest.raises(ValueError, match="nowhere.onnx"):
        _engine.model_json("nowhere.onnx", 0, [])
    with pytest.raises(ValueError, match="the limit"):
        _engine.model_json(onnx_file, 0, [("x", [1] * 65, ())])


def test_onnx_inputs_that_do_not_fit(onnx_file, tmp_path):
    profiler = tare.ModelProfiler(onnx_file)
    with pytest.raises(TypeError, match="also needs x"):
        profiler.profile({"y": torch.zeros(1, 16)})
    with pytest.raises(ValueError, match="2 dimensions"):
        profiler.profile(torch.zeros(16))
    with pytest.raises(RuntimeError, match="cannot be run on this input"):
        profiler.profile(torch.zeros(1, 17), **RUNS)
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(onnx_file.read_bytes()[:60])
    with pytest.raises(ValueError, match="broken.onnx cannot be loaded"):
        tare.ModelProfiler(broken).profile()


def test_without_onnxruntime_it_is_said(onnx_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match="pip install onnxruntime"):
        tare.ModelProfiler(onnx_file).profile()


def test_an_onnx_file_on_a_gpu_that_the_runtime_cannot_use(onnx_file, monkeypatch):
    """ONNX Runtime would run it on the CPU without a word."""
    import onnxruntime
    profiler = tare.ModelProfiler(onnx_file, device="cuda")
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        with pytest.raises(RuntimeError, match="no CUDA provider"):
            profiler.profile()
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(profiler.runner, "_provider", lambda runtime: ["CPUExecutionProvider"])
    with pytest.raises(RuntimeError, match="could not load its CUDA provider"):
        profiler.profile()


def test_the_machine_is_the_commands(onnx_file, bench):
    """A baseline of one is no other machine's for the other."""
    from tare.seeds.model import _figures
    told = json.loads(bench.call(bench.command, "model", "--static", "--json", onnx_file).out)["figures"]
    here = _figures.machine()
    assert (here["host"], here["cpu_model"], here["fingerprint"]) == (told["host"], told["cpu_model"], told["machine"])


def test_the_commands_read_what_python_wrote(tmp_path, bench):
    profiler = tare.ModelProfiler(Net())
    profiler.profile(images(), **RUNS)
    profiler.export_json(tmp_path / "now.json")
    done = bench.call(bench.command, "check", "--baseline", tmp_path / "now.json", tmp_path / "now.json")
    assert "passed" in done.out
    told = json.loads((tmp_path / "now.json").read_text())
    for row in told["figures"]["figures"]:
        row["value"] -= row["name"] == "model.parameters"
    (tmp_path / "base.json").write_text(json.dumps(told))
    done = bench.call(bench.command, "check", "--baseline", tmp_path / "base.json", tmp_path / "now.json", status=1)
    assert "model.parameters" in done.out


# ---- the command ---------------------------------------------------------------------------------------------------

def test_the_command_gates(folder, tmp_path, monkeypatch, capsys):
    from tare.seeds.model._command import main
    monkeypatch.chdir(tmp_path)
    words = ["--model-path", str(folder / "model.pt2"), "--runs", "8", "--warmup", "1", "--output-dir"]
    assert main([*words, "out", "--threshold", "latency:100s", "throughput:0.001samples/s", "--history", "past"]) == 0
    out = capsys.readouterr().out
    assert "holds" in out and "broken" not in out and "written: out" in out and "trend: " in out
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"profiling_results.json", "profiling_metrics.csv", "profiling_report.html"}
    assert main([*words, "out2", "-q", "--threshold", "latency:1ns", "p99:100s", "--baseline",
                 "out/profiling_results.json", "--regression", "1000"]) == 1
    out = capsys.readouterr().out
    assert "latency:1ns" in out and "broken" in out and "%" in out and "written" not in out
    base = json.loads((tmp_path / "out/profiling_results.json").read_text())
    for row in base["figures"]["figures"]:
        if row["name"] == "model.parameters":
            row["value"] -= 1
    (tmp_path / "smaller.json").write_text(json.dumps(base))
    assert main([*words, "out3", "-q", "--baseline", "smaller.json", "--regression", "1000"]) == 1
    assert "regression: model.parameters" in capsys.readouterr().out
    for more, sentence in ((["--baseline", "none.json"], "there is no baseline none.json"),
                           (["--input-shape", "1x9"], "cannot be run on this input"),
                           (["--input", "none.npy"], "there is no input none.npy")):
        assert main([*words, "out4", *more]) == 3
        assert sentence in capsys.readouterr().err
    for more in (["--batch-size", "0"], ["--input-shape", "axb"], ["--runs", "-1"], ["--input-shape", "1x2:colour"]):
        with pytest.raises(SystemExit) as ended:
            main([*words, "out5", *more])
        assert ended.value.code == 2 and "tare profile: " in capsys.readouterr().err
    assert main([*words, "out6", "--json", "--batch-size", "1,4", "--input-shape", "x=3x3x8x8"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["input"]["batch_size"] == 3 and [row["input"]["batch_size"] for row in told["benchmark"]] == [1, 4]


def test_nothing_is_printed(bench):
    """torch's profiler, which counts memory, logs its starts and stops."""
    done = bench.python("""
        import torch, tare
        model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
        tare.ModelProfiler(model).profile(torch.ones(4, 16), num_runs=5)
        """)
    assert (done.out, done.err) == ("", "")
