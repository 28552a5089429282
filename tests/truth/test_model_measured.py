"""What `tare model` measures, against the onnxruntime package timed by hand in the same test, ONNX Runtime's own
profile, NumPy over the samples, and what the model itself saw of its inputs."""
import json
import statistics
import sys
import time

import pytest
from truth import Figure, at_least, at_most, bracketed, exact, relative

onnx = pytest.importorskip("onnx", reason="onnx is not installed for this Python")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed for this Python")

import numpy  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

BY_HAND = "onnxruntime.InferenceSession timed with time.perf_counter before and after"
BY_NUMPY = "NumPy over samples_ns"
ROW = "model:measured.configurations[]."
LAYER = "model:measured.layers."
FIGURES = [
    Figure(ROW + "latency.p50_ns", "median time of a run", BY_HAND, bracketed(1.0)),
    Figure(ROW + "latency.p95_ns", "95th percentile", BY_NUMPY, relative(1e-6)),
    Figure(ROW + "latency.p99_ns", "99th percentile", BY_NUMPY, relative(1e-6)),
    Figure(ROW + "latency.p50_interval.low_ns", "interval of the median", BY_NUMPY, at_most),
    Figure(ROW + "latency.p50_interval.high_ns", "interval of the median", BY_NUMPY, at_least),
    Figure(ROW + "latency.min_ns", "shortest run", BY_NUMPY, exact),
    Figure(ROW + "latency.max_ns", "longest run", BY_NUMPY, exact),
    Figure(ROW + "latency.mean_ns", "mean of the runs", BY_NUMPY, relative(1e-6)),
    Figure(ROW + "latency.deviation_ns", "standard deviation", BY_NUMPY, relative(1e-6)),
    Figure(ROW + "latency.runs", "timed runs", "--runs", exact),
    Figure(ROW + "latency.samples_ns[]", "time of each run", "how many --runs asks for", exact),
    Figure(ROW + "throughput[].value", "samples a second, median of windows",
           "runs and batch over the sum of the runs' times, the median of windows", at_most),
    Figure(ROW + "batch", "samples of a run", "--batch", exact),
    Figure(ROW + "threads", "threads within an operator", "--threads", exact),
    Figure(ROW + "warmup_runs", "runs before the timed ones", "--warmup", exact),
    Figure(ROW + "first_run_ns", "the first run", BY_NUMPY.replace("samples_ns", "the shortest of samples_ns"),
           at_least),
    Figure(ROW + "load_ns", "time to load the model", "a second session of the same file in one process, timed by hand",
           bracketed(4.0)),
    Figure(ROW + "runtime_load_ns", "start of the runtime", "its library has to be loaded: 1 ms", at_least),
    Figure(ROW + "memory.loaded_bytes", "resident memory with the model loaded", "that before, and the weights",
           at_least),
    Figure(ROW + "memory.before_bytes", "resident memory before the model", "that with the model loaded", at_most),
    Figure(ROW + "memory.peak_bytes", "peak resident memory while running",
           "that with the model loaded, and one output", at_least),
    Figure(LAYER + "rows[].share", "shares of all layers, their sum", "1", relative(1e-9)),
    Figure(LAYER + "rows[].calls", "calls in a run", "trips of the loop that the model has", exact),
    Figure(LAYER + "rows[].macs", "multiply-accumulates of a layer in a run", "arithmetic by hand", exact),
    Figure(LAYER + "rows[].time_ns", "time of a layer in a run: the largest share",
           "the layer that a profile read by hand has as the longest", exact),
    Figure(LAYER + "total_ns", "time of all layers in a run",
           "the median run under ONNX Runtime's profile, read by hand", bracketed(2.0)),
    Figure(LAYER + "profile_slowdown", "profiled time of all layers over the latency without profiling",
           "total_ns over the p50 of samples_ns by NumPy", relative(1e-6)),
    Figure("model:inputs[].fill (as it arrives)", "what the model got",
           "an Identity of the input, read by --post", exact),
]
WIDE, TRIPS = 768, 20


def of(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def saved(folder, name, nodes, inputs, outputs, weights):
    path = folder / f"{name}.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, name, inputs, outputs, weights),
                                opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


def heavy(folder):
    """Four products of [batch, WIDE] and [WIDE, WIDE]."""
    names = ["x", "a", "b", "c", "y"]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]], name=f"mm{i}") for i in range(4)]
    weights = [numpy_helper.from_array(numpy.full((WIDE, WIDE), 1e-3 + i, numpy.float32), f"w{i}") for i in range(4)]
    return saved(folder, "heavy", nodes, [of("x", TensorProto.FLOAT, ["batch", WIDE])],
                 [of("y", TensorProto.FLOAT, ["batch", WIDE])], weights)


def looped(folder):
    """A loop of TRIPS products, with a branch in it."""
    then = helper.make_graph([helper.make_node("MatMul", ["x_in", "w"], ["t"], name="product")], "then", [],
                             [of("t", TensorProto.FLOAT, [8, WIDE])])
    other = helper.make_graph([helper.make_node("Identity", ["x_in"], ["e"], name="nothing")], "else", [],
                              [of("e", TensorProto.FLOAT, [8, WIDE])])
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["on"], name="on"),
                              helper.make_node("If", ["always"], ["x_out"], name="branch", then_branch=then,
                                               else_branch=other)],
                             "body", [of("i", TensorProto.INT64, []), of("go", TensorProto.BOOL, []),
                                      of("x_in", TensorProto.FLOAT, [8, WIDE])],
                             [of("on", TensorProto.BOOL, []), of("x_out", TensorProto.FLOAT, [8, WIDE])])
    nodes = [helper.make_node("Greater", ["flag", "zero"], ["always"], name="greater"),
             helper.make_node("Loop", ["trips", "", "x"], ["y"], name="loop", body=body)]
    weights = [numpy_helper.from_array(numpy.full((WIDE, WIDE), 1e-3, numpy.float32), "w"),
               numpy_helper.from_array(numpy.array(0), "zero"), numpy_helper.from_array(numpy.array(TRIPS), "trips")]
    return saved(folder, "looped", nodes, [of("x", TensorProto.FLOAT, [8, WIDE]), of("flag", TensorProto.INT64, [])],
                 [of("y", TensorProto.FLOAT, None)], weights)


def measured(bench, path, *words):
    # The command looks for the package of the environment that is active.
    runtime = {"TARE_ONNXRUNTIME": str(__import__("pathlib").Path(onnxruntime.__file__).parent / "capi")}
    done = bench.call(bench.command, "model", "--json", "--no-history", *words, path, env=runtime)
    return json.loads(done.out)


def options(profile=None):
    made = onnxruntime.SessionOptions()
    made.intra_op_num_threads, made.log_severity_level = 1, 4
    if profile is not None:
        made.enable_profiling, made.profile_file_prefix = True, str(profile)
    return made


def timed(path, feeds, runs=60):
    """(Median of runs, time to load it a second time) in nanoseconds."""
    load = []
    for _ in range(2):
        begin = time.perf_counter()
        session = onnxruntime.InferenceSession(str(path), options(), providers=["CPUExecutionProvider"])
        load.append(1e9 * (time.perf_counter() - begin))
    took = []
    for _ in range(runs + 10):
        begin = time.perf_counter()
        session.run(None, feeds)
        took.append(1e9 * (time.perf_counter() - begin))
    return statistics.median(took[10:]), load[1]


def test_latency_memory_and_load(truth, bench):
    path, feeds = heavy(bench.folder), {"x": numpy.ones((8, WIDE), numpy.float32)}
    for attempt in range(10):  # a machine that is busier in between is measured again
        before = timed(path, feeds)
        found = measured(bench, path, "--batch", "8", "--threads", "1", "--runs", "120", "--warmup", "10",
                         "--no-layers")
        after = timed(path, feeds)
        row = found["measured"]["configurations"][0]
        between = [(min(one), max(one)) for one in zip(before, after)]
        if all(low / 2 <= shown <= 2 * high for shown, (low, high) in
               zip((row["latency"]["p50_ns"], row["load_ns"]), between)):
            break
    latency, memory = row["latency"], row["memory"]
    truth.check(ROW + "latency.p50_ns", latency["p50_ns"], between[0])
    truth.check(ROW + "load_ns", row["load_ns"], between[1])
    samples = numpy.array(latency["samples_ns"])
    truth.check(ROW + "latency.runs", latency["runs"], 120)
    truth.check(ROW + "latency.samples_ns[]", len(samples), 120)
    truth.check(ROW + "latency.min_ns", latency["min_ns"], float(samples.min()))
    truth.check(ROW + "latency.max_ns", latency["max_ns"], float(samples.max()))
    truth.check(ROW + "latency.mean_ns", latency["mean_ns"], float(samples.mean()))
    truth.check(ROW + "latency.deviation_ns", latency["deviation_ns"], float(samples.std(ddof=1)))
    for name, share in (("p95", 95), ("p99", 99)):
        truth.check(ROW + f"latency.{name}_ns", latency[f"{name}_ns"], float(numpy.percentile(samples, share)))
    truth.check(ROW + "latency.p50_interval.low_ns", latency["p50_interval"]["low_ns"], float(numpy.median(samples)))
    truth.check(ROW + "latency.p50_interval.high_ns", latency["p50_interval"]["high_ns"], float(numpy.median(samples)))
    rate = next(one for one in row["throughput"] if one["unit"] == "samples/s")
    count = len(rate["windows"])
    busy = [samples[i * 120 // count:(i + 1) * 120 // count] for i in range(count)]
    median = float(numpy.median([8 * len(one) / (one.sum() / 1e9) for one in busy]))
    truth.check(ROW + "throughput[].value", rate["value"], median)
    assert rate["value"] > 0.2 * median  # what lies between runs is little
    assert rate["low"] <= rate["value"] <= rate["high"]
    truth.check(ROW + "batch", row["batch"], 8)
    truth.check(ROW + "threads", row["threads"], 1)
    truth.check(ROW + "warmup_runs", row["warmup_runs"], 10)
    truth.check(ROW + "first_run_ns", row["first_run_ns"], float(samples.min()))
    truth.check(ROW + "runtime_load_ns", row["runtime_load_ns"], 1e6)
    truth.check(ROW + "memory.before_bytes", memory["before_bytes"], memory["loaded_bytes"])
    truth.check(ROW + "memory.loaded_bytes", memory["loaded_bytes"], memory["before_bytes"] + 4 * 4 * WIDE * WIDE * 0.9)
    truth.check(ROW + "memory.peak_bytes", memory["peak_bytes"], 0.9 * memory["loaded_bytes"])


def by_hand(folder, path, feeds, runs=10):
    """The longest nodes of each run by name, without what is inside of others; and the median sum."""
    session = onnxruntime.InferenceSession(str(path), options(folder / "by_hand"), providers=["CPUExecutionProvider"])
    for _ in range(runs + 1):
        session.run(None, feeds)
    with open(session.end_profiling(), encoding="utf-8") as file:
        events = json.load(file)
    nodes = [one for one in events if one.get("cat") == "Node" and one["name"].endswith("_kernel_time")]
    own = {}
    for one in nodes:
        name, end = one["name"][:-len("_kernel_time")], one["ts"] + one["dur"]
        holds = one["args"]["op_name"] in ("If", "Loop")
        inside = [other for other in nodes if holds and other is not one and one["ts"] <= other["ts"]
                  and other["ts"] + other["dur"] <= end]
        # those directly inside: not inside of another one that is inside
        direct = [other for other in inside if not any(
            third is not other and third["args"]["op_name"] in ("If", "Loop") and third["ts"] <= other["ts"]
            and other["ts"] + other["dur"] <= third["ts"] + third["dur"] for third in inside)]
        own[name] = own.get(name, 0) + one["dur"] - sum(other["dur"] for other in direct)
    whole = [one["dur"] for one in events if one.get("cat") == "Session" and one["name"] == "model_run"]
    return max(own, key=own.get), 1e3 * statistics.median(whole[1:])


def test_layers_of_a_loop_with_a_branch(truth, bench):
    path = looped(bench.folder)
    feeds = {"x": numpy.ones((8, WIDE), numpy.float32), "flag": numpy.array(1)}
    longest, before = by_hand(bench.folder, path, feeds)
    found = measured(bench, path, "--threads", "1", "--runs", "5", "--warmup", "1", "-i", "flag=1")
    _, after = by_hand(bench.folder, path, feeds)
    layers = found["measured"]["layers"]
    rows = {one["name"]: one for one in layers["rows"]}
    truth.check(LAYER + "rows[].share", sum(one["share"] for one in layers["rows"]), 1.0)
    assert all(0 <= one["share"] <= 1 for one in layers["rows"])
    truth.check(LAYER + "rows[].calls", [rows["product"]["calls"], rows["branch"]["calls"], rows["loop"]["calls"]],
                [TRIPS, TRIPS, 1])
    truth.check(LAYER + "rows[].macs", rows["product"]["macs"], TRIPS * 8 * WIDE * WIDE)
    truth.check(LAYER + "rows[].time_ns", max(rows, key=lambda name: rows[name]["time_ns"]), longest)
    assert rows["loop"]["time_ns"] < rows["product"]["time_ns"]  # its own time, not that of its nodes
    truth.check(LAYER + "total_ns", layers["total_ns"], (min(before, after), max(before, after)))
    assert found["total"]["macs"] == TRIPS * 8 * WIDE * WIDE and not found["total"]["at_least"]


def test_rates_of_short_nodes(truth, bench):
    """Thousands of nodes of a microsecond: the profiler takes longer than they do, and their rates would be its."""
    step = helper.make_graph(
        [helper.make_node("MatMul", ["state", "weight"], ["next"], name="product"),
         helper.make_node("Identity", ["goes_on"], ["still"], name="still")], "step",
        [of("turn", TensorProto.INT64, []), of("goes_on", TensorProto.BOOL, []),
         of("state", TensorProto.FLOAT, [1, 4])],
        [of("still", TensorProto.BOOL, []), of("next", TensorProto.FLOAT, [1, 4])])
    graph = helper.make_graph(
        [helper.make_node("Loop", ["trips", "yes", "x"], ["y"], name="loop", body=step)], "short",
        [of("x", TensorProto.FLOAT, [1, 4])], [of("y", TensorProto.FLOAT, [1, 4])],
        [numpy_helper.from_array(numpy.array(2000), "trips"), numpy_helper.from_array(numpy.array(True), "yes"),
         numpy_helper.from_array(numpy.eye(4, dtype=numpy.float32), "weight")])
    path = bench.folder / "short.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    found = measured(bench, path, "--threads", "1", "--runs", "9", "--warmup", "1")["measured"]
    layers, samples = found["layers"], found["configurations"][0]["latency"]["samples_ns"]
    truth.check(LAYER + "profile_slowdown", layers["profile_slowdown"],
                layers["total_ns"] / float(numpy.median(samples)))
    assert layers["profile_slowdown"] > 1.5, layers["profile_slowdown"]  # 10 to 20 on machines seen
    product = next(row for row in layers["rows"] if row["name"] == "product")
    assert product["macs"] == 2000 * 16
    assert product["flops_per_second"] is None and product["of_roof"] is None and product["of_roof_absent"]


ECHO = """
import json, sys, types, numpy as np
pipe = types.SimpleNamespace(read=sys.stdin.buffer.read)
names, seen = sys.argv[2:], {}
while True:
    try:
        for name in names:
            seen[name] = np.lib.format.read_array(pipe).tolist()
    except Exception:
        break
    with open(sys.argv[1], "w") as file:
        json.dump(seen, file)
    print("done", flush=True)
"""


def test_generated_inputs_arrive(truth, bench):
    kinds = {"sr": (TensorProto.INT64, []), "audio": (TensorProto.FLOAT, ["batch", "samples"]),
             "audio_lengths": (TensorProto.INT64, ["batch"]), "scales": (TensorProto.FLOAT, [3]),
             "attention_mask": (TensorProto.INT64, [1, 5]), "position_ids": (TensorProto.INT64, [2, 4])}
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"], name=f"copy_{name}") for name in kinds]
    path = saved(bench.folder, "echo", nodes, [of(name, *one) for name, one in kinds.items()],
                 [of(f"{name}_out", one[0], None) for name, one in kinds.items()], [])
    script, seen = bench.script(ECHO), bench.folder / "seen.json"
    wanted = {"sr": 16000, "audio_lengths": [16000], "scales": [0.667, 1.0, 0.8], "attention_mask": [[1] * 5],
              "position_ids": [[0, 1, 2, 3]] * 2}
    for words, changed in (((), {}), (("-i", "sr=8000", "-i", "audio_lengths=7"), {"sr": 8000, "audio_lengths": [7]})):
        measured(bench, path, "--runs", "2", "--warmup", "0", "--no-layers", *words, "--post",
                 " ".join([sys.executable, str(script), str(seen), *kinds]))
        shown = json.loads(seen.read_text())
        shown["scales"] = [round(one, 6) for one in shown["scales"]]
        for name, value in {**wanted, **changed}.items():
            truth.check("model:inputs[].fill (as it arrives)", json.dumps(shown[name]), json.dumps(value))
        assert len(shown["audio"][0]) == 16000 and 0.5 < numpy.std(shown["audio"][0]) < 2
