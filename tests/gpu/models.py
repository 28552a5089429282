"""What ModelProfiler tells of models on a GPU, against torch's own events, counters and profiler.

usage: python tests/gpu/models.py [DEVICE]

Run by tools/gpu-check. A line a check: `ok` or `FAIL`, and what was seen. Exit status 1 when one failed.
"""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
import warnings

import torch
from torch import nn

import tare

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cuda"
MIB = 1 << 20
failed = []


def expect(good, what):
    print("%s %s" % ("ok  " if good else "FAIL", what), flush=True)
    if not good:
        failed.append(what)
    return good


def near(ours, theirs, part):
    return abs(ours - theirs) <= part * abs(theirs)


def there(value):
    return value is not None and not isinstance(value, tare.Missing)


def attempt(check):
    """An exception is a check that failed, not the end of the others."""
    try:
        check()
    except Exception:
        expect(False, "%s ended in\n%s" % (check.__name__, traceback.format_exc()))


class Heavy(nn.Module):
    """Products that keep a GPU busy for long after the host has asked for them."""

    def __init__(self, width=4096, depth=8):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(width, width) for _ in range(depth)])
        self.head = nn.Linear(width, 16)

    def forward(self, x):
        return self.head(self.layers(x))


class Copies(nn.Module):
    """A copy there and a copy back in every run."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1024, 1024)

    def forward(self, x):
        there_and_back = x.cpu().to(x.device)
        return self.layer(there_and_back)


class Makes(nn.Module):
    """Makes a tensor on the device that it was traced or exported with."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(256, 256)

    def forward(self, x):
        return self.layer(x) + torch.arange(256, device=x.device, dtype=x.dtype)


def event_ms(model, x, runs=30):
    """Time of a run on the GPU's own clock."""
    times = []
    with torch.inference_mode():
        for _ in range(10):
            model(x)
        for _ in range(runs):
            torch.cuda.synchronize()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            model(x)
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end))
    return sorted(times)[runs // 2]


def check_figures():
    model, x = Heavy(), torch.randn(2048, 4096)
    profiler = tare.ModelProfiler(model, device=DEVICE)
    results = profiler.profile(x, num_runs=50)
    here = next(model.parameters()).device
    expect(here.type == "cpu" and model.training, "the module that was given is where it was (%s)" % here)
    on_gpu = Heavy().to(DEVICE).eval()
    on_gpu.load_state_dict(model.state_dict())
    theirs = event_ms(on_gpu, x.to(DEVICE))
    latency, rate = results["latency"], results["throughput"]
    expect(near(latency["p50"], theirs, 0.15), "latency %.3f ms; by the GPU's clock %.3f ms" % (latency["p50"], theirs))
    expect(latency["synchronized"] == "after every run" and rate["synchronized"] == "once a window",
           "latency waits %s, throughput %s" % (latency["synchronized"], rate["synchronized"]))
    expect(near(rate["samples_per_second"], 2048e3 / theirs, 0.15), "throughput %.0f samples/s; by the GPU's clock %.0f"
           % (rate["samples_per_second"], 2048e3 / theirs))
    expect(results["end_to_end"]["p50"] > latency["p50"], "end to end %.3f ms, with copies there and back" %
           results["end_to_end"]["p50"])
    flops = 2 * 2048 * 4096 * (8 * 4096 + 16)
    expect(results["model"]["flops"] == flops, "FLOPs: %s, by hand %d" % (results["model"]["flops"], flops))
    reached = results["compute"]["flops_per_second"] / 1e12
    expect(1 < reached < 1000, "%.1f TFLOP/s" % reached)
    weights = sum(one.numel() * 4 for one in model.parameters())
    memory = results["memory"]
    expect(memory["source"].startswith("torch") and memory["peak"] > weights,
           "memory: peak %.0f MiB (%s), the weights are %.0f MiB" % (memory["peak"] / MIB, memory["source"],
                                                                     weights / MIB))
    with torch.inference_mode():
        held = x.to(DEVICE)
        on_gpu(held)
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        on_gpu(held)
        torch.cuda.synchronize()
        most = torch.cuda.max_memory_allocated() - before
    expect(there(memory["activation"]) and near(memory["activation"], most, 0.02),
           "activations: %s bytes, torch's own peak %d" % (memory["activation"], most))
    expect(there(memory["average"]) and memory["average"] <= memory["peak"],
           "average memory %.0f MiB, fragmentation %s" % (memory["average"] / MIB, memory["fragmentation"]))
    shares = []

    def share(*_):
        stats = torch.cuda.memory_stats(DEVICE)
        shares.append(1 - stats["allocated_bytes.all.current"] / stats["reserved_bytes.all.current"])

    watched = Heavy()
    watched.register_forward_pre_hook(share)  # at the begin of a run, and so at the end of the one before
    shown = tare.ModelProfiler(watched, device=DEVICE).profile(x, num_runs=30)["memory"]["fragmentation"]
    expect(there(shown) and min(abs(shown - one) for one in shares) < 0.02 and max(shares) > 0.02,
           "fragmentation %s; by torch's statistics %.3f to %.3f in the runs" % (shown, min(shares), max(shares)))
    busy = results["gpu"]["utilization_percent"]
    expect(there(busy) and 0 <= busy <= 100, "busy while it ran: %s %%" % busy)
    print(results)


def check_precisions():
    x = torch.randn(2048, 4096)
    found = {}
    for precision in ("fp32", "fp16", "bf16"):
        profiler = tare.ModelProfiler(Heavy(), device=DEVICE, precision=precision)
        results = profiler.profile(x, num_runs=30)
        found[precision] = results["latency"]["p50"]
        executed = results["model"]["precision"]["executed"]
        expect(set(executed["operators"]) == {precision}, "%s was executed as %s: %.3f ms" % (
            precision, executed, found[precision]))
    expect(found["fp16"] < found["fp32"] and found["bf16"] < found["fp32"], "half precision is faster: %s" % found)


def check_configurations():
    profiler = tare.ModelProfiler(Heavy(1024, 4), device=DEVICE)
    profiler.profile(torch.randn(8, 1024), num_runs=20)
    rows = profiler.benchmark([{"batch_size": 1}, {"batch_size": 512}, {"batch_size": 512, "precision": "bf16"},
                               {"batch_size": 64, "device": "cpu"}, {"batch_size": 1 << 26}, {"device": "cuda:63"}],
                              num_runs=20)
    for row in rows:
        told = row["latency"]
        print("     %s: %s %s %s" % (row["configuration"], row["status"], "%.3f ms" % told["p50"] if there(told) else
                                     row["reason"], row["best"]))
    expect([row["status"] for row in rows] == ["measured"] * 4 + ["refused"] * 2, "of six configurations four fit")
    expect("memory" in rows[4]["reason"] and "63" in rows[5]["reason"], "too large and no such GPU: both are said")
    expect(rows[3]["model"]["device"] == "cpu", "one of them ran on the CPU")
    again = profiler.profile(num_runs=20)
    expect(there(again["latency"]["p50"]), "and the profiler goes on after it")
    print(profiler.plan_capacity(5000, latency_ms=20))


def check_layers():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 4,
                                  enable_nested_tensor=False)
    profiler = tare.ModelProfiler(model, device=DEVICE)
    results = profiler.profile(torch.randn(16, 256, 512), num_runs=30)
    told = profiler.profile_layers(layer_names=["linear1", "layers.*"])
    whole = profiler.profile_layers()
    print("     %s; %s" % (told["note"], {key: (value["layers"], value["time_ms"])
                                          for key, value in told["patterns"].items()}))
    expect(near(whole["unwatched_ms"], results["latency"]["p50"], 0.3), "a run takes %.3f ms, as it was %.3f ms" % (
        whole["unwatched_ms"], results["latency"]["p50"]))
    expect(whole["total_ms"] < 1.25 * whole["unwatched_ms"] or "watched like this" in whole["note"],
           "with its layers watched %.3f ms: %s" % (whole["total_ms"], whole["note"]))
    own = sum(row["self_ms"] for row in whole["layers"])
    expect(own <= whole["total_ms"] * 1.05, "their own times add up to %.3f ms" % own)
    blocks = [row for row in whole["layers"] if row["type"] == "TransformerEncoderLayer"]
    expect(len(blocks) == 4 and all(near(row["time_ms"], whole["total_ms"] / 4, 0.3) for row in blocks),
           "four alike blocks: %s ms" % ["%.3f" % row["time_ms"] for row in blocks])
    expect(told["patterns"]["layers.*"]["layers"] == 4, "a pattern sums the outermost layers")


def check_gpu_profile():
    heavy = tare.ModelProfiler(Heavy(2048, 6), device=DEVICE)
    heavy.profile(torch.randn(4096, 2048), num_runs=20)
    told = heavy.gpu_profile(profile_nvtx=True)
    products = sum(row["calls"] for row in told["kernels"] if "gemm" in row["name"].lower() or
                   "sm90" in row["name"] or "cutlass" in row["name"].lower())
    expect(told["available"] and products == 7, "kernels of seven products: %s" % [
        (row["name"][:48], row["calls"], round(row["total_ms"], 3)) for row in told["kernels"][:4]])
    expect(50 < told["busy_percent"] <= 105, "busy %.0f %% of a run of %.2f ms under torch's profiler" % (
        told["busy_percent"], told["run_ms"]))
    expect(told["nvtx"]["ranges"] == 9 and "layers.0" in told["nvtx"]["names"], "ranges: %s" % told["nvtx"])
    copies = tare.ModelProfiler(Copies(), device=DEVICE)
    copies.profile(torch.randn(4096, 1024), num_runs=20)
    moved = copies.gpu_profile()["memory_transfers"]
    sizes = {row["name"]: row.get("bytes") for row in moved}
    expect(any("DtoH" in name for name in sizes) and any("HtoD" in name for name in sizes), "copies: %s" % sizes)
    expect(all(size == 4096 * 1024 * 4 for name, size in sizes.items() if "Memcpy" in name), "their bytes; %s GB/s" % [
        round(row["gb_per_second"], 1) for row in moved])
    expect(all(there(row["occupancy_percent"]) for row in told["kernels"][:2]), "occupancy: %s" % [
        row["occupancy_percent"] for row in told["kernels"][:2]])


def check_memory():
    profiler = tare.ModelProfiler(Heavy(1024, 4), device=DEVICE)
    told = profiler.memory_profile(input_data=torch.randn(1024, 1024))
    taken, given = told["allocations"], told["deallocations"]
    expect(taken["count"] >= 5 and taken["bytes"] >= 5 * 1024 * 16 * 4, "allocations of a run: %s" % taken)
    expect(given["kept_bytes"] == 0, "all was given back: %s" % given)
    expect(told["snapshots"][-1]["gpu_allocated_bytes"] > 0 and not told["growth"]["grows"],
           "snapshots, no growth: %s" %
           told["snapshots"][-1])


def check_how_full():
    """get_current_gpu_memory() against CUDA's own count, before and after 2 GiB more."""
    if DEVICE == "cpu":
        return
    profiler = tare.PerformanceProfiler(track_gpu=True, device=DEVICE)
    held = []
    for _ in range(2):
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info(DEVICE)
        ours = profiler.get_current_gpu_memory()
        expect(abs(ours - (1 - free / total)) < 0.002, "get_current_gpu_memory() %.4f, 1 - free/total %.4f" % (
            ours, 1 - free / total))
        held.append(torch.zeros(2 << 30, dtype=torch.uint8, device=DEVICE))
    without = tare.PerformanceProfiler(track_gpu=True, device="cpu").get_current_gpu_memory()
    expect(not there(without), "device=\"cpu\" has no GPU memory: %s" % getattr(without, "reason", without))


def check_optimizations():
    """Mixed precision of a model that is large enough: applied only where it was measured faster, with its evidence."""
    model = nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(4))).to(DEVICE)
    before = [one.clone() for one in model.parameters()]
    optimizer = tare.ModelOptimizer(tare.ProfilingConfig())
    x = torch.randn(2048, 4096, device=DEVICE)
    expect(optimizer.optimize_model(model, {}) is model, "without an input nothing is applied")
    optimizer.optimize_model(model, {}, x)
    summary = optimizer.get_optimization_summary()
    for one in summary["details"]:
        expect(one["speedup"] > 1.03 and one["evidence"],
               "%s: %.2fx, %s" % (one["name"], one["speedup"], one["evidence"]))
    for one in summary["rejected"] + summary["skipped"]:
        expect(bool(one["reason"]), "%s: %s" % (one["name"], one["reason"]))
    expect(all(torch.equal(old, new) for old, new in zip(before, model.parameters())), "the weights stay as they were")


def check_files(folder):
    def of_file(path, x, what):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            profiler = tare.ModelProfiler(path, device=DEVICE)
            results = profiler.profile(x, num_runs=20)
            layers = profiler.profile_layers()["layers"]
            told = profiler.gpu_profile()
        expect(results["model"]["device"].startswith(DEVICE) and results["memory"]["source"].startswith("torch"),
               "%s (%s) on %s: %.3f ms" % (what, results["model"]["kind"], results["model"]["device"],
                                           results["latency"]["p50"]))
        expect(layers and told["kernels"], "%s: %d layers, %d kernels" % (what, len(layers), len(told["kernels"])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script, program = os.path.join(folder, "script.pt"), os.path.join(folder, "program.pt2")
        torch.jit.script(Heavy(512, 4)).save(script)
        torch.export.save(torch.export.export(Heavy(512, 4).eval(), (torch.randn(8, 512),)), program)
        makes = os.path.join(folder, "makes.pt2")
        torch.export.save(torch.export.export(Makes().eval(), (torch.randn(8, 256),)), makes)
    of_file(script, torch.randn(8, 512), "TorchScript")
    of_file(program, None, "torch.export")
    of_file(makes, None, "torch.export that makes tensors")


def check_generation(folder):
    import transformers
    transformers.utils.logging.set_verbosity_error()
    config = transformers.GPT2Config(n_layer=12, n_head=12, n_embd=768, vocab_size=50257)
    where = os.path.join(folder, "gpt2")
    transformers.GPT2LMHeadModel(config).save_pretrained(where)
    profiler = tare.ModelProfiler(where, device=DEVICE, precision="fp16")
    results = profiler.profile(torch.randint(0, 50257, (4, 128)), num_runs=20)
    told = results["generation"]
    if not expect(there(told), "a GPT-2 in fp16 generates: %s" % (told if not there(told) else "")):
        return
    first, between = told["time_to_first_token"]["p50"], told["time_between_tokens"]["p50"]
    expect(0 < between < 1000 and first > 0 and told["new_tokens"] == 16 and told["batch_size"] == 4,
           "first token after %.2f ms, then one in %.2f ms, %.0f tokens/s" % (first, between,
                                                                             told["tokens_per_second"]))
    with torch.inference_mode():
        model = transformers.GPT2LMHeadModel.from_pretrained(where).to(DEVICE, torch.float16).eval()
        ids = torch.randint(0, 50257, (4, 128), device=DEVICE)

        def whole(tokens):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            model.generate(ids, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0)
            end.record()
            torch.cuda.synchronize()
            return begin.elapsed_time(end)
        whole(16)
        rounds = []  # in turn: decoding waits for the host, which may be busy with other work
        for _ in range(9):
            ours = profiler.profile_generation(ids.cpu(), 16, num_runs=1)["time_between_tokens"]["mean"]
            rounds.append((ours, (whole(16) - whole(1)) / 15))
    ours, theirs = (sorted(column)[4] for column in zip(*rounds))
    expect(near(ours, theirs, 0.35), "between tokens %.2f ms; by the GPU's clock %.2f ms, nine times in turn" % (
        ours, theirs))
    expect(there(results["throughput"]["tokens_per_second"]), "%.0f tokens/s through forward" %
           results["throughput"]["tokens_per_second"])


def check_whole_and_files_written(folder):
    profiler = tare.ModelProfiler(Heavy(1024, 4), device=DEVICE)
    results = profiler.profile(torch.randn(64, 1024), num_runs=30, detailed_analysis=True)
    expect(results["gpu_profile"]["available"] and results["operators"], "detailed analysis: %s" % sorted(results))
    for advice in profiler.advise():
        print("     advice: %s (%s)" % (advice, advice.gain))
    for name, write in (("one.json", profiler.export_json), ("one.csv", profiler.export_csv),
                        ("one.html", profiler.generate_html_report)):
        write(os.path.join(folder, name))
    with open(os.path.join(folder, "one.json"), encoding="utf-8") as file:
        told = json.load(file)
    expect(told["model"]["device"].startswith(DEVICE) and told["gpu_profile"]["kernels"], "its JSON has the kernels")
    keep = os.environ.get("TARE_GPU_KEEP")
    if keep:
        with open(os.path.join(folder, "one.html"), encoding="utf-8") as page, \
                open(os.path.join(keep, "model.html"), "w", encoding="utf-8") as out:
            out.write(page.read())
    slower = tare.ModelProfiler(Heavy(1024, 8), device=DEVICE)
    slower.profile(torch.randn(64, 1024), num_runs=30)
    slower.export_json(os.path.join(folder, "two.json"))
    found = profiler.detect_regressions(tare.load_baseline(os.path.join(folder, "one.json")), slower.results)
    expect(any("latency" in one.name for one in found),
           "a deeper model is slower: %s" % [str(one) for one in found][:2])


def check_command(folder):
    program = os.path.join(folder, "program.pt2")
    words = [sys.executable, "-m", "tare", "profile", "--model-path", program, "--output-dir",
             os.path.join(folder, "out"), "--device", DEVICE, "--threshold"]
    good = subprocess.run([*words, "latency:10s"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect(good.returncode == 0, "python -m tare profile --device %s: %s" % (DEVICE, good.stdout[-400:]))
    broken = subprocess.run([*words, "latency:1ns"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect(broken.returncode == 1, "a broken threshold has status %d: %s" % (broken.returncode, broken.stdout[-300:]))


def check_onnx(folder):
    try:
        import onnxruntime
    except ImportError:
        print("     no onnxruntime here")
        return
    from onnx import TensorProto, helper
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 64])])
    path = os.path.join(folder, "relu.onnx")
    with open(path, "wb") as file:
        file.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                     ir_version=8).SerializeToString())
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            results = tare.ModelProfiler(path, device=DEVICE).profile(num_runs=10)
            expect("CUDAExecutionProvider" in onnxruntime.get_available_providers() and
                   results["model"]["device"].startswith("cuda"), "an ONNX file on %s: %.3f ms" % (
                       results["model"]["device"], results["latency"]["p50"]))
        except RuntimeError as error:
            expect("CUDA" in str(error), "an ONNX file: %s" % error)


def main():
    print("torch %s on %s" % (torch.__version__, torch.cuda.get_device_name(0) if DEVICE != "cpu" else "cpu"))
    with tempfile.TemporaryDirectory(prefix="tare-models-") as folder:
        for check in (check_figures, check_precisions, check_configurations, check_layers, check_gpu_profile,
                      check_memory, check_how_full, check_optimizations):
            attempt(check)
        for check in (check_files, check_generation, check_whole_and_files_written, check_command, check_onnx):
            def in_folder(check=check):
                check(folder)
            in_folder.__name__ = check.__name__
            attempt(in_folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
