"""Document 003, model profiling: its snippets in its order, on small models of the kinds it names."""
import csv
import functools
import json
import os
import re
import shlex

import tare

import seed_fill as fill
import seed_list

TORCH = ("torch",)


def check(*key, needs):
    """One thread, and a short measurement: those of others that spin on a busy machine are not what is tested."""
    def decorate(function):
        @functools.wraps(function)
        def alone(snippet):
            from tare.seeds.model import _measure
            threads, setting = fill.torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS")
            seconds, _measure.SAMPLING_SECONDS = _measure.SAMPLING_SECONDS, 0.02
            fill.torch.set_num_threads(1)
            os.environ["OMP_NUM_THREADS"] = "1"  # of what the snippet starts
            try:
                function(snippet)
            finally:
                fill.torch.set_num_threads(threads)
                _measure.SAMPLING_SECONDS = seconds
                os.environ.pop("OMP_NUM_THREADS")
                if setting is not None:
                    os.environ["OMP_NUM_THREADS"] = setting
        return seed_list.check(*key, needs=needs)(alone)
    return decorate


class _Transformer:
    """A transformer so small that a hundred runs are nothing: with an embedding, attention and an MLP by name."""

    @staticmethod
    def made():
        nn = fill.torch.nn

        class Attention(nn.Module):
            def __init__(self):
                super().__init__()
                self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

            def forward(self, x):
                q, k, v = self.qkv(x).chunk(3, -1)
                return self.out(nn.functional.scaled_dot_product_attention(q, k, v))

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding, self.attention = nn.Embedding(1000, 16), Attention()
                self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

            def forward(self, ids):
                x = self.embedding(ids)
                x = x + self.attention(x)
                return x + self.mlp(x)
        fill.torch.manual_seed(0)
        return Model().eval()


def _saved(snippet, name="path/to/model"):
    """The model as a file, where a snippet looks for it."""
    path = snippet.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    torch = fill.torch
    batch = torch.export.Dim("batch", max=64)
    program = torch.export.export(_Transformer.made(), (torch.zeros(2, 8, dtype=torch.long), ),
                                  dynamic_shapes={"ids": {0: batch}})
    torch.export.save(program, str(path) + ".pt2")
    (path.parent / (path.name + ".pt2")).rename(path)
    return path


def _ids(batch=2):
    return fill.torch.randint(0, 1000, (batch, 8))


def _here(snippet):
    """Where torch sees no GPU, "cuda" is "cpu"."""
    if not fill.torch.cuda.is_available():
        assert '"cuda"' in snippet.text
        snippet.text = snippet.text.replace('device="cuda"', 'device="cpu"')


def _profiler(runs=5):
    profiler = tare.ModelProfiler(_Transformer.made())
    profiler.profile(_ids(), num_runs=runs, warmup_runs=1)
    return profiler


@check("003", "Built-in Profiler", needs=TORCH)
def built_in(snippet):
    """A model from a path, in fp16, a hundred runs after ten or more of warm-up."""
    _saved(snippet)
    _here(snippet)
    results = snippet.run(sample_data=_ids())["profile_results"]
    assert results["latency"]["count"] == 100 and results["warmup"]["runs"] >= 10
    assert results["model"]["precision"]["requested"] == "fp16"
    executed = results["model"]["precision"]["executed"]["operators"]
    assert executed["fp16"] == 4  # the products of layers; torch's own attention may compute in fp32, which is said
    assert ("fp32" in executed) == any("fp16 was requested" in note for note in results["notes"])
    assert results["model"]["parameters"] == sum(one.numel() for one in _Transformer.made().parameters())


@check("003", "Performance Benchmarking", needs=TORCH)
def benchmarking(snippet):
    """Four configurations, each measured as it says."""
    rows = snippet.run(profiler=_profiler())["benchmark_results"]
    assert [row["status"] for row in rows] == ["measured"] * 4
    assert [row["input"]["batch_size"] for row in rows] == [1, 4, 8, 16]
    executed = [row["model"]["precision"]["executed"]["operators"] for row in rows]
    assert ["fp16" in one for one in executed] == [False, False, True, True]
    assert all(row["latency"]["p50"] > 0 < row["throughput"]["samples_per_second"] for row in rows)
    assert any("trade-off" in row["best"] for row in rows)


@check("003", "Profiling Workflow", needs=TORCH)
def workflow(snippet):
    """The six boxes of the drawing, in its order, each seen in what a profile leaves behind."""
    boxes = re.findall(r"\[(.+?)\]", snippet.text)
    assert boxes == ["Model Loading", "Warmup Runs", "Profile Runs", "Metric Collection", "Analysis",
                     "Report Generation"]
    profiler = tare.ModelProfiler(_saved(snippet))
    results = profiler.profile(num_runs=3, warmup_runs=2)
    assert profiler.runner.kind == "torch.export file" and results["warmup"]["runs"] >= 2
    assert results["latency"]["count"] == 3 and results["memory"]["peak"] > 0
    assert isinstance(profiler.advise(), list)
    with snippet.inside():
        profiler.generate_html_report("report.html")
        assert "latency" in (snippet.folder / "report.html").read_text()


@check("003", "1. Layer-wise Profiling", needs=TORCH)
def layers(snippet):
    """Attention, MLP and embedding by a part of their names."""
    told = snippet.run(profiler=_profiler(), sample_data=_ids())["layer_profiles"]["patterns"]
    assert list(told) == ["attention", "mlp", "embedding"]
    assert [one["layers"] for one in told.values()] == [1, 1, 1]
    assert told["mlp"]["flops"] == 2 * (2 * 16 * 16 * 32) and told["embedding"]["parameters"] == 16000
    assert all(0 < one["time_ms"] and 0 < one["percent"] for one in told.values())


@check("003", "2. Memory Profiling", needs=TORCH)
def memory(snippet):
    """Allocations, deallocations and snapshots of the last input's run."""
    told = snippet.run(profiler=_profiler())["memory_profile"]
    assert told["allocations"]["count"] > 0 and told["allocations"]["by_operator"]
    assert told["deallocations"]["bytes"] == told["allocations"]["bytes"] and told["snapshots"]
    assert told["activation_peak_bytes"] > 0 and 0 <= told["fragmentation"] < 1


@check("003", "3. GPU Profiling", needs=TORCH)
def gpu(snippet):
    """Kernels, transfers and ranges; without a GPU each is absent with the reason."""
    told = snippet.run(profiler=_profiler())["gpu_profile"]
    assert {"kernels", "memory_transfers", "nvtx"} <= set(told)
    if not told["available"]:
        assert all(isinstance(told[name], tare.Missing) and told[name].reason for name in ("kernels", "nvtx"))


@check("003", "HTML Report", needs=TORCH)
def html(snippet):
    snippet.run(profiler=_profiler())
    text = (snippet.folder / "profiling_report.html").read_text()
    assert text.startswith("<!doctype html>") and "<svg" in text and "All figures" in text


@check("003", "JSON Report", needs=TORCH)
def json_report(snippet):
    profiler = _profiler()
    text = snippet.run(profiler=profiler)["results_json"]
    told = json.loads((snippet.folder / "profiling_results.json").read_text())
    assert json.loads(text) == told and told["latency"]["mean"] == profiler.results["latency"]["mean"]
    assert told["latency"]["intervals"]["p99"] is None and "too few" in told["missing"]["latency.intervals.p99"]


@check("003", "CSV Export", needs=TORCH)
def csv_export(snippet):
    profiler = _profiler()
    snippet.run(profiler=profiler)
    with open(snippet.folder / "profiling_metrics.csv", newline="") as file:
        rows = {(row["section"], row["metric"]): row for row in csv.DictReader(file)}
    assert float(rows["memory", "peak"]["value"]) == profiler.results["memory"]["peak"]
    assert float(rows["latency", "p95"]["value"]) == profiler.results["latency"]["p95"]


class _Wide:
    """By construction within both thresholds of the document, or beyond one: four layers of 64 MB are read for every
    sample, which no machine does a thousand times a second."""

    @staticmethod
    def made(inputs):
        nn = fill.torch.nn
        if inputs < 100:
            return nn.Linear(inputs, 4).eval()
        return nn.Sequential(*(nn.Linear(inputs, inputs) for _ in range(4))).eval()


@check("003", "Automated Profiling", needs=TORCH)
def automated(snippet):
    """The command of the workflow, with its module's name changed and nothing else: its thresholds are checked."""
    torch = fill.torch
    command = snippet.text.split("run: |")[1].replace("\\\n", " ")
    words = shlex.split(command.replace("-m model_evaluation.pipeline", "-m tare"))
    assert words[:4] == ["python", "-m", "tare", "profile"]
    assert words[-3:] == ["--threshold", "latency:100ms", "throughput:1000samples/s"]
    path = snippet.folder / "models/latest"
    path.parent.mkdir()
    for inputs, status, held in ((8, 0, 2), (4096, 1, 1)):
        program = torch.export.export(_Wide.made(inputs), (torch.zeros(1, inputs),))
        torch.export.save(program, str(path) + ".pt2")
        (path.parent / "latest.pt2").replace(path)
        out = snippet.python(*words[1:], status=status)
        assert out.count("holds") == held, out
        written = {one.name for one in (snippet.folder / "profiling_results").iterdir()}
        assert written >= {"profiling_results.json", "profiling_metrics.csv", "profiling_report.html"}
        told = json.loads((snippet.folder / "profiling_results/profiling_results.json").read_text())
        assert (told["throughput"]["samples_per_second"] >= 1000) == (status == 0)
        assert told["latency"]["count"] == 100


@check("003", "Performance Regression Detection", needs=TORCH)
def regressions(snippet):
    """The path of a model to a profiler that has an input already: it is run on that input, and compared with itself
    made a tenth of its size and a tenth as slow, and with itself."""
    path = _saved(snippet, "model")
    profiler = tare.ModelProfiler(path)
    profiler.profile(input_data=_ids(3), num_runs=20, warmup_runs=2)
    told = json.loads(profiler.export_json(snippet.folder / "baseline_profiling.json"))
    names = {"profiler": profiler, "model_path": str(path), "load_baseline": tare.load_baseline,
             "detect_regressions": tare.detect_regressions}
    for row in told["figures"]["figures"]:
        if row["name"].startswith(("model.parameters", "model.latency")):
            row["value"] /= 10
            row["samples"] = [one / 10 for one in row.get("samples", ())]
    (snippet.folder / "baseline_profiling.json").write_text(json.dumps(told))
    done = snippet.run(**names)
    assert "Performance regressions detected" in done.out and "model.parameters" in done.out
    assert done["current_results"]["input"]["batch_size"] == 3 and not done["current_results"]["input"]["is_generated"]
    for row in told["figures"]["figures"]:
        row["value"] *= 100 if row["better"] == "lower" else 1e-3 if row["better"] == "higher" else 10
        row["samples"] = []
    (snippet.folder / "baseline_profiling.json").write_text(json.dumps(told))
    done = snippet.run(**names)
    assert (list(done["regressions"]), done.out) == ([], "")


@check("003", "Example Profiling Session", needs=("torch", "transformers"))
def session(snippet):
    """BERT, tiny and of random weights, from a folder; what it prints is what was measured."""
    import transformers
    torch = fill.torch
    torch.manual_seed(0)
    transformers.BertModel(transformers.BertConfig(
        num_hidden_layers=1, hidden_size=16, num_attention_heads=2, intermediate_size=32, vocab_size=1000)
    ).save_pretrained(snippet.folder / "models/bert-base-uncased")
    _here(snippet)
    done = snippet.run()
    results = done["results"]
    assert results["input"]["batch_size"] == 32 and results["input"]["tokens"] == 32 * 128
    assert done.lines == [f"Average Latency: {results['latency']['mean']:.2f}ms",
                          f"Throughput: {results['throughput']['samples_per_second']:.0f} samples/s",
                          f"Peak Memory: {results['memory']['peak'] / 1024 ** 3:.2f} GB"]
    assert results["layers"]["layers"] and results["latency"]["mean"] > 0 < results["memory"]["peak"]
    assert "<svg" in (snippet.folder / "bert_profiling_report.html").read_text()
