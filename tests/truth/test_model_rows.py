"""Rows of `tare model` for two layers whose figures are known by hand, and the figures of a measured run that follow
from its own samples."""
import json
import pathlib

import pytest

from truth import Figure, at_least, at_most, bracketed, exact, relative

numpy = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

HAND = "a product of 8 x 64 by 64 x 32 and a ReLU, by hand"
ROW = "model:measured.configurations[]."
FIGURES = [
    *[Figure(f"model:{table}.{name}", words, HAND, exact)
      for table in ("layers[]", "operators[]")
      for name, words in (("flops", "operations, twice the MACs"), ("other_operations", "operations besides"),
                          ("output_bytes", "bytes of what it makes"), ("parameters", "weights"),
                          ("weight_bytes", "bytes of weights"))],
    Figure("model:layers[].output.bytes", "bytes of the first tensor it makes", HAND, exact),
    Figure("model:layers[].output.shape[]", "shape of the first tensor it makes", HAND, exact),
    Figure("model:operators[].not_counted", "layers without a rule or shape", HAND, exact),
    Figure("model:outputs[].bytes", "bytes of an output", HAND, exact),
    Figure("model:outputs[].shape[]", "shape of an output", HAND, exact),
    *[Figure("model:weights_by_use[]." + name, words, HAND, exact)
      for name, words in (("tensors", "tensors by what they are for"), ("elements", "their elements"),
                          ("bytes", "their bytes"))],
    Figure("model:figures.figures[].value", "value of a figure for comparisons", "the tables of the same output",
           exact),
    Figure("model:figures.figures[].total", "sum of its samples", "the samples of the same row", relative(1e-6)),
    Figure("model:figures.figures[].n", "how many samples it has", "--runs", exact),
    Figure("model:figures.figures[].samples[]", "times of single runs", "the latency's samples in the same output",
           exact),
    Figure(ROW + "latency.outliers", "runs far from the others", "Tukey's fences of NumPy's quartiles", exact),
    Figure(ROW + "throughput[].low", "lower end of its interval", "the windows of the same row", bracketed()),
    Figure(ROW + "throughput[].high", "upper end of its interval", "the windows of the same row", bracketed()),
    Figure(ROW + "throughput[].windows[]", "rates of windows", "batch over the shortest run", at_most),
    Figure(ROW + "memory.average_bytes", "mean resident memory while it ran", "before and peak of the same row",
           bracketed()),
    Figure(ROW + "memory.load_peak_bytes", "peak while loading", "resident memory before", at_least),
    Figure(ROW + "memory.per_sample_bytes", "memory of a sample", "peak less before, over the batch", at_most),
    Figure(ROW + "precision.casts_inserted", "casts that the runtime added", "a float32 model needs none", exact),
    Figure(ROW + "precision.casts_share", "time in casts", "a float32 model needs none", exact),
    Figure("model:measured.layers.runs", "runs under the runtime's profiler", "at least one", at_least),
    Figure("model:measured.thresholds[].value", "the figure that a limit is for",
           "the latency's median in the same output", exact),
]


def test_two_layers(truth, bench):
    helper = onnx.helper
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="fc"), helper.make_node("Relu", ["y"], ["z"], name="relu")],
        "g",
        [helper.make_tensor_value_info("x", 1, ["batch", 64])], [helper.make_tensor_value_info("z", 1, ["batch", 32])],
        [onnx.numpy_helper.from_array(numpy.ones((64, 32), dtype=numpy.float32), "w")])
    path = bench.folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    answer = json.loads(bench.call(bench.command, "model", "--json", "--no-history", "--batch", "8", "--runs", "50",
                                   "--threshold", "latency:10s", "--", path,
                                   env={"TARE_ONNXRUNTIME": str(pathlib.Path(runtime.__file__).parent / "capi")}).out)
    true = {"flops": [2 * 8 * 64 * 32, 0], "other_operations": [0, 8 * 32], "output_bytes": [8 * 32 * 4] * 2,
            "parameters": [64 * 32, 0], "weight_bytes": [64 * 32 * 4, 0]}
    for table, key, names in (("layers", "name", ("fc", "relu")), ("operators", "op", ("MatMul", "Relu"))):
        rows = {row[key]: row for row in answer[table]}
        for name, values in true.items():
            truth.check(f"model:{table}[].{name}", [rows[one][name] for one in names], values)
    for row in answer["layers"]:
        truth.check("model:layers[].output.bytes", row["output"]["bytes"], 8 * 32 * 4)
        truth.check("model:layers[].output.shape[]", row["output"]["shape"], [8, 32])
    truth.check("model:operators[].not_counted", [row["not_counted"] for row in answer["operators"]], [0, 0])
    truth.check("model:outputs[].bytes", answer["outputs"][0]["bytes"], 8 * 32 * 4)
    truth.check("model:outputs[].shape[]", answer["outputs"][0]["shape"], [8, 32])
    for name, value in (("tensors", 1), ("elements", 64 * 32), ("bytes", 64 * 32 * 4)):
        truth.check("model:weights_by_use[]." + name, sum(row[name] for row in answer["weights_by_use"]), value)

    [row] = answer["measured"]["configurations"]
    samples = row["latency"]["samples_ns"]
    figures = {one["name"]: one for one in answer["figures"]["figures"]}
    latency = next(one for name, one in figures.items() if name.startswith("model.latency["))
    truth.check("model:figures.figures[].value", [figures["model.macs"]["value"], figures["model.parameters"]["value"]],
                [8 * 64 * 32, 64 * 32])
    truth.check("model:figures.figures[].n", latency["n"], 50)
    truth.check("model:figures.figures[].samples[]", latency["samples"], samples)
    truth.check("model:figures.figures[].total", latency["total"], sum(samples))
    low, high = numpy.percentile(samples, [25, 75])
    truth.check(ROW + "latency.outliers", row["latency"]["outliers"],
                sum(not low - 1.5 * (high - low) <= one <= high + 1.5 * (high - low) for one in samples))
    for rate in row["throughput"]:
        if rate["unit"] != "samples/s":
            continue
        assert rate["windows"]
        ends = (min(rate["windows"]), max(rate["windows"]))
        if rate["low"] is not None:
            truth.check(ROW + "throughput[].low", rate["low"], ends)
            truth.check(ROW + "throughput[].high", rate["high"], ends)
        truth.check(ROW + "throughput[].windows[]", rate["windows"], [8e9 / min(samples) * 1.05] * len(rate["windows"]))
    memory = row["memory"]
    truth.check(ROW + "memory.average_bytes", memory["average_bytes"],
                (memory["before_bytes"] * 0.9, memory["peak_bytes"]))
    truth.check(ROW + "memory.load_peak_bytes", memory["load_peak_bytes"], memory["before_bytes"])
    truth.check(ROW + "memory.per_sample_bytes", memory["per_sample_bytes"], memory["peak_bytes"] / 8)
    truth.check(ROW + "precision.casts_inserted", row["precision"]["casts_inserted"], 0)
    truth.check(ROW + "precision.casts_share", row["precision"]["casts_share"], 0)
    truth.check("model:measured.layers.runs", answer["measured"]["layers"]["runs"], 1)
    truth.check("model:measured.thresholds[].value", answer["measured"]["thresholds"][0]["value"],
                row["latency"]["p50_ns"])
