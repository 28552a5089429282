"""Peaks of the machine: no library reaches them, and good ones come near. Shares of a peak are at most 1."""
import json
import subprocess

from truth import Figure, absolute, at_least, bracketed

LIBRARY = "the best of several products of torch (oneDNN, MKL) and NumPy (OpenBLAS)"
WITHIN = bracketed()
FIGURES = [
    Figure("run:run.peak_flops_per_second", "most operations a second in single precision",
           LIBRARY + "; at most 5 times that, by CPU time", WITHIN),
    Figure("run:run.peak_bytes_per_second", "most bytes a second from and to memory",
           "copies, sums and additions of torch and NumPy over 160 MiB, less 10 % for what other programs take "
           "meanwhile; at most 5 times that, by CPU time", WITHIN),
    Figure("run:run.peaks.f32", "most operations a second in float32", LIBRARY, at_least),
    Figure("run:run.peaks.f64", "most operations a second in float64", LIBRARY, at_least),
    Figure("run:run.peaks.f16", "most operations a second in float16", LIBRARY, at_least),
    Figure("run:run.peaks.bf16", "most operations a second in bfloat16", LIBRARY, at_least),
    Figure("run:run.peaks.int8", "most operations a second in int8", LIBRARY, at_least),
    Figure("run:run.peaks.levels[].bytes_per_second", "most bytes a second from and to a cache, or memory",
           "copies, sums and additions of torch at half of its size, less 10 %", at_least),
    Figure("run:run.peaks.levels[].bytes", "what the caches of a level hold", "getconf(1)", at_least),
    Figure("run:operators[].of_peak_flops", "share of the peak of its type",
           "FLOPs of the shapes by hand, over the time and the peak", absolute(1e-9)),
    Figure("run:operators[].of_peak_bytes", "share of what caches and memory can feed",
           "bytes of the shapes by hand over the bandwidth of each level, over the time", absolute(1e-9)),
    Figure("model:measured.layers.peaks.f32", "most operations a second in float32, on the threads that were used",
           LIBRARY, at_least),
    *[Figure("model:measured.layers.peaks." + kind, "the same in " + kind, LIBRARY, at_least)
      for kind in ("f64", "f16", "bf16", "int8")],
    Figure("model:measured.layers.peaks.levels[].bytes", "what the caches of a level hold", "getconf(1), of level 1",
           at_least),
    Figure("model:measured.layers.rows[].bytes", "bytes that a layer moves",
           "shapes by hand, without or with the weights", bracketed()),
    Figure("model:measured.layers.rows[].flops_per_second", "operations a second of a layer",
           "the product's FLOPs by hand, over its time", absolute(1e3)),
    Figure("model:measured.layers.peaks.levels[].bytes_per_second",
           "most bytes a second, on the threads that were used",
           "copies, sums and additions of torch over 160 MiB, less 10 %", at_least),
    Figure("model:measured.layers.rows[].of_roof", "share of the roof",
           "the product's FLOPs by hand, over the time and the peak", absolute(1e-9)),
    Figure("model:measured.layers.rows[].roof_flops_per_second", "operations a second at the roof",
           "the product's FLOPs by hand, over the longer of computing and moving at the peaks", absolute(1e3)),
]

# Rates by the wall clock are what a library reaches, and no peak may be below. On a machine with other work they are
# too low to be near the peak: for that, by CPU time, `threads` of them at once. Two threads that share a core reach
# that rate one after the other only.
RATES = """
import json, os, subprocess, time, numpy, torch

def rate(work, amount, threads=1, times=5):
    work()
    best, best_cpu = 0.0, 0.0
    for _ in range(times):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        work()
        best = max(best, amount / (time.perf_counter() - begin))
        best_cpu = max(best_cpu, amount / (time.process_time() - begin_cpu))
    return best, best_cpu * threads

def products(threads):
    torch.set_num_threads(threads)
    found = {}
    for name, kind, n in (("f32", torch.float32, 768), ("f64", torch.float64, 512), ("f16", torch.float16, 256),
                          ("bf16", torch.bfloat16, 256)):
        a, b = torch.randn(n, n).to(kind), torch.randn(n, n).to(kind)
        found[name] = rate(lambda: torch.mm(a, b), 2 * n ** 3, threads)
    a = torch.randint(-8, 8, (512, 512), dtype=torch.int8)
    found["int8"] = rate(lambda: torch._int_mm(a, a), 2 * 512 ** 3, threads)
    return found

def moved(threads, size):
    torch.set_num_threads(threads)
    a, b = torch.ones(size // 8), torch.ones(size // 8)
    calls = max(1, (1 << 23) // size)
    def many(work):
        def all_of_them():
            for _ in range(calls):
                work()
        return all_of_them
    each = size // 2 * calls
    rates = [rate(many(lambda: b.copy_(a)), 2 * each, threads), rate(many(lambda: a.sum()), each, threads),
             rate(many(lambda: b.add_(a)), 3 * each, threads)]
    return tuple(max(one) for one in zip(*rates))
"""

TRAINING = RATES + """
torch.set_num_threads(len(os.sched_getaffinity(0)))
model = torch.nn.Sequential(torch.nn.Linear(512, 768, bias=False), torch.nn.ReLU(),
                            torch.nn.Linear(768, 64, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(256, 512)
from tare.torch import operators
for _ in range(6):
    optimizer.zero_grad()
    model(data).square().sum().backward()
    optimizer.step()
operators.stop()
threads = len(os.sched_getaffinity(0))
found = products(threads)
x = numpy.ones((768, 768), "f")
found["f32"] = tuple(max(one) for one in zip(found["f32"], rate(lambda: x @ x, 2 * 768 ** 3)))
found["memory"] = moved(threads, 160 << 20)
for name, level in (("L1", 1), ("L2", 2), ("L3", 3)):
    words = ["getconf", "LEVEL%d_%sCACHE_SIZE" % (level, "D" if level == 1 else "")]
    found[name + " bytes"] = int(subprocess.run(words, capture_output=True).stdout or 0)
    if found[name + " bytes"]:
        found[name] = moved(1, min(found[name + " bytes"], 32 << 20) // 2)
print(json.dumps(found))
"""


def least_seconds(levels, size):
    """What bytes need at least when caches hold as many of them as they can."""
    seconds = 0.0
    for level in levels:
        here = min(size, level["bytes"]) if level["bytes"] is not None else size
        seconds, size = seconds + here / level["bytes_per_second"], size - here
    return seconds


def test_no_library_beats_the_peaks_and_none_is_far_below(truth, bench):
    done = bench.measured(TRAINING, run=("--shapes",))
    found, run = json.loads(done.out.splitlines()[-1]), done.json["run"]
    peaks = run["peaks"]
    for name in ("f32", "f64", "f16", "bf16", "int8"):
        truth.check("run:run.peaks." + name, peaks[name], found[name][0])
    truth.check("run:run.peak_flops_per_second", run["peak_flops_per_second"], (found["f32"][0], 5 * found["f32"][1]))
    truth.check("run:run.peak_bytes_per_second", run["peak_bytes_per_second"],
                (0.9 * found["memory"][0], 5 * found["memory"][1]))
    assert [level["name"] for level in peaks["levels"]][-1] == "memory"
    for level in peaks["levels"]:
        if found.get(level["name"]):
            truth.check("run:run.peaks.levels[].bytes_per_second", level["bytes_per_second"],
                        0.9 * found[level["name"]][0])
        # In a virtual machine getconf has all of the host's caches of level 3.
        if level["name"] in ("L1", "L2") and found[level["name"] + " bytes"]:
            truth.check("run:run.peaks.levels[].bytes", level["bytes"], found[level["name"] + " bytes"])

    rows = done.json["operators"]
    for row in rows:
        assert all(row[name] is None or 0 <= row[name] <= 1 for name in ("of_peak_flops", "of_peak_bytes")), row
    # In the backward pass: the gradients of both weights, and of the input of the second.
    row = next(one for one in rows if one["name"] == "aten::mm" and one["direction"] == "backward")
    first, second, inner = (768, 256, 512), (64, 256, 768), (256, 64, 768)
    sizes = [m * k + k * n + m * n for m, k, n in (first, second, inner)]
    flops = sum(2 * m * k * n for m, k, n in (first, second, inner))
    per_second = flops / 3 / (row["flops"] / row["flops_per_second"] / row["calls"])
    assert abs(row["flops"] / row["calls"] - flops / 3) < 1
    truth.check("run:operators[].of_peak_flops", row["of_peak_flops"], per_second / peaks["f32"])
    size = 4 * sum(sizes) / 3
    share = least_seconds(peaks["levels"], size) / (row["flops"] / row["flops_per_second"] / row["calls"])
    truth.check("run:operators[].of_peak_bytes", row["of_peak_bytes"], share)


MODEL = """
import onnx, numpy
from onnx import TensorProto, helper, numpy_helper
n = 512
weights = [numpy_helper.from_array(numpy.random.rand(n, n).astype("f") / n, "w%d" % i) for i in range(3)]
nodes = [helper.make_node("MatMul", ["x%d" % i, "w%d" % i], ["x%d" % (i + 1)], "product%d" % i) for i in range(3)]
value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [n, n])
graph = helper.make_graph(nodes, "products", [value("x0")], [value("x3")], weights)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "products.onnx")
"""


def test_layers_are_below_their_roof(truth, bench):
    bench.python(MODEL)
    runtime = bench.python("""
import glob, onnxruntime, os
print(glob.glob(os.path.join(os.path.dirname(onnxruntime.__file__), "capi", "libonnxruntime.so*"))[0])
""").out.strip()
    for _ in range(5):  # without rates where other processes made the profiled runs slower than the others
        done = bench.call(bench.command, "model", "--json", "-n", "10", "--threads", "1", "--runtime", runtime,
                          "products.onnx")
        layers = json.loads(done.out)["measured"]["layers"]
        if layers["profile_slowdown"] <= 1.5:
            break
    found = json.loads(bench.python(RATES + 'print(json.dumps({**products(1), "memory": moved(1, 160 << 20)}))').out)
    peaks, operations, size = layers["peaks"], 2 * 512 ** 3, 4 * 3 * 512 ** 2
    for name in ("f32", "f64", "f16", "bf16", "int8"):
        truth.check("model:measured.layers.peaks." + name, peaks[name], found[name][0])
    words = ["getconf", "LEVEL1_DCACHE_SIZE"]
    truth.check("model:measured.layers.peaks.levels[].bytes", peaks["levels"][0]["bytes"],
                int(subprocess.run(words, stdout=subprocess.PIPE).stdout or 0))
    truth.check("model:measured.layers.peaks.levels[].bytes_per_second", peaks["levels"][-1]["bytes_per_second"],
                0.9 * found["memory"][0])
    rows = [row for row in layers["rows"] if row["op"] == "MatMul"]
    assert len(rows) == 3
    for row in rows:
        least = max(operations / peaks["f32"], least_seconds(peaks["levels"], row["bytes"]))
        # The weights may be the runtime's.
        truth.check("model:measured.layers.rows[].bytes", row["bytes"], (size * 2 / 3, size))
        truth.check("model:measured.layers.rows[].flops_per_second", row["flops_per_second"],
                    operations / (row["time_ns"] / 1e9))
        truth.check("model:measured.layers.rows[].of_roof", row["of_roof"], least / (row["time_ns"] / 1e9))
        truth.check("model:measured.layers.rows[].roof_flops_per_second", row["roof_flops_per_second"],
                    operations / least)
