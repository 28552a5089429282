"""What `tare model --static` says of a file, against torch's own counter, shapes that ONNX Runtime saw, sums over the
file's tensors, and arithmetic by hand."""
import json
import math
import os
import warnings

import pytest
from truth import Figure, at_most, exact, relative

torch = pytest.importorskip("torch", reason="torch is not installed for this Python")
onnx = pytest.importorskip("onnx", reason="onnx is not installed for this Python")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed for this Python")

import numpy  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

BY_TORCH = "torch's FlopCounterMode on the module that was exported, by 2"
BY_RUN = "shapes in ONNX Runtime's profile of a run of the same file"
BY_FILE = "sums over the tensors that the onnx package reads from the file"
BY_HAND = "arithmetic by hand"
FIGURES = [
    Figure("model:total.macs", "multiply-accumulates of a run", f"{BY_TORCH}; {BY_RUN}", exact),
    Figure("model:total.flops", "floating-point operations of a run", BY_TORCH.replace(", by 2", ""), exact),
    Figure("model:total.at_least", "whether MACs and FLOPs are a lower bound", BY_HAND, exact),
    Figure("model:total.other_at_least", "whether other operations are a lower bound", BY_HAND, exact),
    Figure("model:total.macs (at least)", "MACs where not all are counted", BY_RUN, at_most),
    Figure("model:total.other_operations", "operations of everything else", BY_HAND, exact),
    Figure("model:total.parameters", "parameters", "sum over the module's parameters", exact),
    Figure("model:total.weight_bytes", "bytes of weights and constants", BY_FILE, exact),
    Figure("model:total.output_bytes", "bytes of all tensors that are made", BY_HAND, exact),
    Figure("model:total.nodes", "nodes of the graph", "the onnx package", exact),
    Figure("model:total.nodes_not_counted", "nodes without a cost", BY_HAND, exact),
    Figure("model:total.activation_peak_bytes", "most bytes of tensors that are live at once", BY_HAND, exact),
    Figure("model:total.activation_sum_bytes", "bytes of all tensors that are made, and of the inputs", BY_HAND, exact),
    Figure("model:file_bytes", "size of the file", "os.stat", exact),
    Figure("model:external_bytes", "size of files that hold external data", "os.stat", exact),
    Figure("model:external_files", "files that hold external data", BY_HAND, exact),
    Figure("model:layers[].macs", "multiply-accumulates of a node", BY_RUN, exact),
    Figure("model:layers[].share", "its share of the model's MACs", BY_RUN, relative(1e-12)),
    Figure("model:layers[].times", "how often a node runs", BY_RUN, exact),
    Figure("model:operators[].nodes", "nodes of an operator", "the onnx package", exact),
    Figure("model:operators[].macs", "multiply-accumulates of an operator", BY_RUN, exact),
    Figure("model:operators[].share", "its share of the model's MACs", BY_RUN, relative(1e-12)),
    Figure("model:weights_by_type[].tensors", "tensors of a type", BY_FILE, exact),
    Figure("model:weights_by_type[].elements", "elements of a type", BY_FILE, exact),
    Figure("model:weights_by_type[].bytes", "bytes of a type", BY_FILE, exact),
    Figure("model:inputs[].bytes", "bytes of an input", BY_HAND, exact),
    Figure("model:inputs[].fill.values[]", "values that are generated", BY_HAND, exact),
    Figure("model:dimensions[].value", "what an open dimension is assumed to be", BY_HAND, exact),
]


# ---- models ---------------------------------------------------------------------------------------------------------
class Padded(nn.Module):
    """Padding at run time, as TensorFlow does it: the older exporter writes it as a chain of small integer tensors."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, 2), nn.Conv2d(8, 16, 5, 2, groups=8)
        self.line = nn.Conv1d(16, 4, 3)

    def forward(self, x):
        x = self.first(functional.pad(x, (1, 2, 0, 1)))
        x = self.second(functional.pad(functional.relu(x), (2, 2, 2, 2), mode="reflect"))
        x = functional.pad(x.flatten(2), (3, 3), mode="replicate")
        return self.line(functional.pad(x, (-1, 4), value=1.0))


class Named(nn.Module):
    """A Hugging Face model called by the names of its inputs; its first output."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs)), return_dict=True)[0]


def hugging_face(kind, config, names, inputs, **more):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed for this Python")
    torch.manual_seed(0)
    model = getattr(transformers, kind)(getattr(transformers, config)(**more))
    return Named(model.eval(), names), inputs, names


def padded():
    return Padded().eval(), (torch.rand(1, 3, 33, 35),), ["x"]


def mobile():
    return hugging_face("MobileNetV2ForImageClassification", "MobileNetV2Config", ["pixel_values"],
                        (torch.rand(1, 3, 96, 96),), image_size=96, tf_padding=True, num_labels=10)


def swin():
    return hugging_face("SwinModel", "SwinConfig", ["pixel_values"], (torch.rand(1, 3, 70, 70),), image_size=70,
                        patch_size=4, embed_dim=16, depths=[2, 1], num_heads=[2, 4], window_size=4,
                        attn_implementation="eager")


def gpt():
    return hugging_face("GPT2LMHeadModel", "GPT2Config", ["input_ids", "attention_mask"],
                        (torch.randint(0, 99, (2, 12)), torch.ones(2, 12, dtype=torch.long)), n_embd=32, n_layer=2,
                        n_head=2, vocab_size=100, n_positions=32, use_cache=False, attn_implementation="eager")


EXPORTED = {"padded-script": (padded, False, False), "padded-script-open": (padded, False, True),
            "padded-dynamo": (padded, True, False), "mobile-script": (mobile, False, False),
            "swin-script-open": (swin, False, True), "gpt-script-open": (gpt, False, True),
            "gpt-dynamo": (gpt, True, False)}


def export(model, inputs, names, path, dynamo, opened):
    axes = {name: {d: f"{name}_{d}" for d in range(one.ndim) if d != 1 or one.ndim == 2}
            for name, one in zip(names, inputs)} if opened else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, inputs, str(path), dynamo=dynamo, input_names=names, output_names=["out"],
                          verbose=False,
                          **({"opset_version": 17, "dynamic_axes": axes} if not dynamo else {"external_data": False}))


# ---- truths ---------------------------------------------------------------------------------------------------------
def told(bench, path, *words):
    done = bench.call(bench.command, "model", "--static", "--json", *words, path)
    return json.loads(done.out)


def run_macs(folder, path, feeds):
    """({node: MACs}, {node: calls}) by the shapes that ONNX Runtime saw, with nothing fused."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_profiling, options.log_severity_level = True, 4
    options.profile_file_prefix = str(folder / "seen")
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    session.run(None, feeds)
    with open(session.end_profiling(), encoding="utf-8") as file:
        events = json.load(file)
    macs, calls = {}, {}
    for event in events:
        if event.get("cat") != "Node" or not event["name"].endswith("_kernel_time"):
            continue
        name, about = event["name"][:-len("_kernel_time")], event["args"]
        into, out = ([list(one.values())[0] for one in about[key]] for key in ("input_type_shape", "output_type_shape"))
        cost = {"Conv": lambda: math.prod(out[0]) * math.prod(into[1][1:]),
                "MatMul": lambda: math.prod(out[0]) * into[0][-1],
                "Gemm": lambda: math.prod(out[0]) * (math.prod(into[0]) // out[0][0])}.get(about["op_name"],
                                                                                           lambda: 0)()
        macs[name] = macs.get(name, 0) + cost
        calls[name] = calls.get(name, 0) + 1
    return macs, calls


def saved(folder, name, nodes, inputs, outputs, weights, **more):
    graph = helper.make_graph(nodes, name, inputs, outputs, weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    path = folder / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path), **more)
    return path


def of(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def weight(name, *shape):
    return numpy_helper.from_array(numpy.full(shape, 0.01, numpy.float32), name)


# ---- exported models ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", EXPORTED)
def test_exported_models(truth, bench, name):
    make, dynamo, opened = EXPORTED[name]
    model, inputs, names = make()
    path = bench.folder / "model.onnx"
    export(model, inputs, names, path, dynamo, opened)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(*inputs)
    words = [word for one, array in zip(names, inputs) if opened
             for word in ("--shape", f"{one}={','.join(map(str, array.shape))}")]
    found = told(bench, path, *words)
    total = found["total"]
    truth.check("model:total.flops", total["flops"], counter.get_total_flops())
    truth.check("model:total.macs", total["macs"], counter.get_total_flops() // 2)
    truth.check("model:total.at_least", total["at_least"], False)
    truth.check("model:total.other_at_least", total["other_at_least"], False)
    truth.check("model:total.nodes_not_counted", total["nodes_not_counted"], 0)
    if make is padded:  # exporters merge, copy and precompute the weights of the others
        truth.check("model:total.parameters", total["parameters"], sum(one.numel() for one in model.parameters()))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feeds = {one.name: array.numpy() for one, array in zip(session.get_inputs(), inputs)}
    macs, calls = run_macs(bench.folder, path, feeds)
    truth.check("model:total.macs", total["macs"], sum(macs.values()))
    for layer in found["layers"]:
        if layer["node"] in macs:
            truth.check("model:layers[].macs", layer["macs"], macs[layer["node"]])
            truth.check("model:layers[].share", layer["share"], macs[layer["node"]] / sum(macs.values()))
            truth.check("model:layers[].times", layer["times"], calls[layer["node"]])
    for row in found["operators"]:
        if row["op"] in ("Conv", "MatMul", "Gemm"):
            truth.check("model:operators[].macs", row["macs"],
                        sum(macs[one["node"]] for one in found["layers"] if one["op"] == row["op"]))
            truth.check("model:operators[].share", row["share"], row["macs"] / sum(macs.values()))
    loaded = onnx.load(str(path))
    truth.check("model:total.nodes", total["nodes"], len(loaded.graph.node))
    for row in found["operators"]:
        truth.check("model:operators[].nodes", row["nodes"], sum(one.op_type == row["op"] for one in loaded.graph.node))
    for shown, array in zip(found["inputs"], inputs):
        truth.check("model:inputs[].bytes", shown["bytes"], array.numel() * array.element_size())


# ---- files ----------------------------------------------------------------------------------------------------------
def test_sizes_of_files_and_weights(truth, bench):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="up"),
             helper.make_node("MatMul", ["y", "v"], ["z"], name="down"),
             helper.make_node("Reshape", ["z", "to"], ["out"], name="flat")]
    weights = [weight("w", 40, 300), weight("v", 300, 20),
               numpy_helper.from_array(numpy.array([-1], numpy.int64), "to")]
    ends = [of("x", TensorProto.FLOAT, [3, 40])], [of("out", TensorProto.FLOAT, [60])]
    inside = saved(bench.folder, "inside", nodes, *ends, weights)
    outside = saved(bench.folder, "outside", nodes, *ends, weights, save_as_external_data=True, location="outside.data",
                    size_threshold=1024)
    for path, beside in ((inside, []), (outside, [bench.folder / "outside.data"])):
        found = told(bench, path)
        truth.check("model:file_bytes", found["file_bytes"], os.stat(path).st_size)
        truth.check("model:external_bytes", found["external_bytes"], sum(os.stat(one).st_size for one in beside))
        truth.check("model:external_files", found["external_files"], len(beside))
        truth.check("model:total.parameters", found["total"]["parameters"], 40 * 300 + 300 * 20)
        truth.check("model:total.weight_bytes", found["total"]["weight_bytes"], 4 * (40 * 300 + 300 * 20) + 8)
        arrays = [numpy_helper.to_array(one, str(bench.folder)) for one in onnx.load(str(path)).graph.initializer]
        for row in found["weights_by_type"]:
            same = [one for one in arrays if one.dtype.name == row["type"]]
            truth.check("model:weights_by_type[].tensors", row["tensors"], len(same))
            truth.check("model:weights_by_type[].elements", row["elements"], sum(one.size for one in same))
            truth.check("model:weights_by_type[].bytes", row["bytes"], sum(one.nbytes for one in same))
        # y is live with x, which the caller holds, and with z; out is z under another shape
        truth.check("model:total.output_bytes", found["total"]["output_bytes"], 4 * 3 * (300 + 20))
        truth.check("model:total.activation_peak_bytes", found["total"]["activation_peak_bytes"],
                    4 * 3 * (40 + 300 + 20))
        truth.check("model:total.activation_sum_bytes", found["total"]["activation_sum_bytes"], 4 * 3 * (40 + 300 + 20))
        truth.check("model:total.other_operations", found["total"]["other_operations"], 0)
    text = bench.call(bench.command, "model", "--static", outside).out
    assert "of external data in 1 file" in text and "18,000 parameters" in text


class Scaled(nn.Module):
    """Numbers of the program beside parameters of one element."""

    def __init__(self):
        super().__init__()
        self.first, self.last, self.scale = nn.Linear(8, 8), nn.Linear(8, 1), nn.Parameter(torch.tensor([0.3]))
        self.slope = nn.PReLU()

    def forward(self, x):
        x = self.slope((self.first(x) * 0.5 + 1.0) / 3.0 * self.scale)
        x = torch.where(x > 0.1, x, torch.full_like(x, -3.0))
        return self.last(torch.clamp(x, 0, 6)) + torch.tensor([7.0])


@pytest.mark.parametrize("dynamo", [False, True])
def test_numbers_of_the_program_are_no_parameters(truth, bench, dynamo):
    model, path = Scaled().eval(), bench.folder / "scaled.onnx"
    export(model, (torch.rand(2, 8),), ["x"], path, dynamo, False)
    found = json.loads(bench.call(bench.command, "model", "--static", "--json", path).out)
    truth.check("model:total.parameters", found["total"]["parameters"], sum(one.numel() for one in model.parameters()))
    assert found["total"]["activation_peak_bytes"] <= found["total"]["activation_sum_bytes"]


# ---- what is not counted --------------------------------------------------------------------------------------------
def test_what_is_not_counted_is_a_lower_bound(truth, bench):
    """Rows that only the values tell how many there are: the product behind them cannot be counted before the run."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="known"),
             helper.make_node("NonZero", ["y"], ["at"], name="find"),
             helper.make_node("Transpose", ["at"], ["turned"], name="turn", perm=[1, 0]),
             helper.make_node("Cast", ["turned"], ["picked"], name="cast", to=TensorProto.FLOAT),
             helper.make_node("MatMul", ["picked", "v"], ["z"], name="open"),
             helper.make_node("Relu", ["z"], ["out"], name="relu")]
    path = saved(bench.folder, "rows", nodes, [of("x", TensorProto.FLOAT, [5, 8])],
                 [of("out", TensorProto.FLOAT, None)], [weight("w", 8, 6), weight("v", 2, 3)])
    found = told(bench, path)
    macs, _ = run_macs(bench.folder, path, {"x": numpy.ones((5, 8), numpy.float32)})
    assert macs["open"] == 30 * 2 * 3 and found["total"]["macs"] == macs["known"] == 5 * 8 * 6
    truth.check("model:total.macs (at least)", found["total"]["macs"], sum(macs.values()))
    truth.check("model:total.at_least", found["total"]["at_least"], True)
    truth.check("model:total.other_at_least", found["total"]["other_at_least"], True)
    truth.check("model:total.nodes_not_counted", found["total"]["nodes_not_counted"], 2)
    assert [(one["name"], one["at_least"], one["other_at_least"]) for one in found["not_counted"]] == [
        ("open", True, False), ("relu", False, True)]
    assert "at least 240 MACs" in bench.call(bench.command, "model", "--static", path).out
    assert ">≥ 240<" in bench.call(bench.command, "model", "--static", "--html", path).out
    results = __import__("tare").ModelProfiler(path).profile(num_runs=3, warmup_runs=0)
    assert results["model"]["flops_at_least"] and results["model"]["not_counted"][0]["name"] == "open"
    assert "at least 480" in str(results)


def loop_of(step, *inputs):
    body = helper.make_graph(
        [helper.make_node("MatMul", ["x_in", "w"], ["x_out"], name=step),
         helper.make_node("Identity", ["go"], ["on"], name="on")],
        "body",
        [of("i", TensorProto.INT64, []), of("go", TensorProto.BOOL, []), of("x_in", TensorProto.FLOAT, [1, 16])],
        [of("on", TensorProto.BOOL, []), of("x_out", TensorProto.FLOAT, [1, 16])], [])
    return helper.make_node("Loop", list(inputs), ["out"], name="loop", body=body)


def test_iterations_of_a_loop(truth, bench):
    """As many as a length that is generated says, as many as -i says, or one of an unknown number."""
    nodes = [helper.make_node("Gather", ["table", "input"], ["rows"], name="look"),
             helper.make_node("ReduceMean", ["rows"], ["first"], name="mean", axes=[1], keepdims=0),
             helper.make_node("ReduceMax", ["input_lengths"], ["often"], name="most", keepdims=0),
             loop_of("step", "often", "", "first")]
    path = saved(bench.folder, "speech", nodes,
                 [of("input", TensorProto.INT64, ["batch", "phonemes"]),
                  of("input_lengths", TensorProto.INT64, ["batch"])],
                 [of("out", TensorProto.FLOAT, [1, 16])], [weight("table", 50, 16), weight("w", 16, 16)])
    for words, length in (((), 128), (("--dim", "phonemes=40"), 40), (("-i", "input_lengths=9"), 9)):
        found = told(bench, path, *words)
        ids = numpy.zeros((1, 40 if length == 40 else 128), numpy.int64)
        macs, calls = run_macs(bench.folder, path, {"input": ids, "input_lengths": numpy.array([length])})
        truth.check("model:total.macs", found["total"]["macs"], sum(macs.values()))
        step = next(one for one in found["layers"] if one["node"] == "step")
        truth.check("model:layers[].times", step["times"], calls["step"])
        truth.check("model:total.at_least", found["total"]["at_least"], False)
    nodes[2] = helper.make_node("ArgMax", ["scores"], ["at"], name="most", axis=0, keepdims=0)
    unknown = saved(bench.folder, "unknown", [*nodes[:3], loop_of("step", "at", "", "first")],
                    [of("input", TensorProto.INT64, [1, 4]), of("scores", TensorProto.FLOAT, [9])],
                    [of("out", TensorProto.FLOAT, [1, 16])], [weight("table", 50, 16), weight("w", 16, 16)])
    found = told(bench, unknown)
    macs, _ = run_macs(bench.folder, unknown, {"input": numpy.zeros((1, 4), numpy.int64),
                                               "scores": numpy.arange(9, dtype=numpy.float32)})
    assert found["total"]["macs"] == 16 * 16 and macs["step"] == 8 * 16 * 16
    truth.check("model:total.macs (at least)", found["total"]["macs"], sum(macs.values()))
    truth.check("model:total.at_least", found["total"]["at_least"], True)


def test_a_sample_rate_takes_its_branch(truth, bench):
    def branch(name, table):
        return helper.make_graph([helper.make_node("MatMul", ["input", table], [f"{name}_y"], name=name)], name, [],
                                 [of(f"{name}_y", TensorProto.FLOAT, [1, None])])
    nodes = [helper.make_node("Equal", ["sr", "rate"], ["wide"], name="equal"),
             helper.make_node("If", ["wide"], ["out"], name="if", then_branch=branch("at_16k", "w"),
                              else_branch=branch("at_8k", "v"))]
    path = saved(bench.folder, "voice", nodes,
                 [of("input", TensorProto.FLOAT, [1, 512]), of("sr", TensorProto.INT64, [])],
                 [of("out", TensorProto.FLOAT, None)],
                 [weight("w", 512, 30), weight("v", 512, 7), numpy_helper.from_array(numpy.array(16000), "rate")])
    for words, rate in (((), 16000), (("-i", "sr=8000"), 8000)):
        found = told(bench, path, *words)
        feeds = {"input": numpy.zeros((1, 512), numpy.float32), "sr": numpy.array(rate)}
        truth.check("model:total.macs", found["total"]["macs"], sum(run_macs(bench.folder, path, feeds)[0].values()))
        truth.check("model:total.at_least", found["total"]["at_least"], False)


def test_a_quantized_lstm(truth, bench):
    node = helper.make_node("DynamicQuantizeLSTM", ["x", "W", "R", "", "", "", "", "", "ws", "wz", "rs", "rz"], ["out"],
                            domain="com.microsoft", hidden_size=8, name="lstm", direction="bidirectional")
    small = [numpy_helper.from_array(numpy.ones(shape, numpy.int8), name)
             for name, shape in (("W", (2, 4, 32)), ("R", (2, 8, 32)), ("wz", (2,)), ("rz", (2,)))]
    path = saved(bench.folder, "lstm", [node], [of("x", TensorProto.FLOAT, [10, 3, 4])],
                 [of("out", TensorProto.FLOAT, None)], [*small, weight("ws", 2), weight("rs", 2)])
    found = told(bench, path)
    # 10 steps, 3 samples, 2 directions, 4 gates of 8, each of 4 inputs and of 8 of the state
    truth.check("model:total.macs", found["total"]["macs"], 10 * 3 * 2 * 4 * 8 * (4 + 8))
    truth.check("model:total.parameters", found["total"]["parameters"], 2 * 32 * (4 + 8))
    assert found["outputs"][0]["shape"] == [10, 2, 3, 8]


# ---- generated inputs -----------------------------------------------------------------------------------------------
def test_generated_values_and_sizes(truth, bench):
    inputs = {"sr": (TensorProto.INT64, [], [16000]), "text": (TensorProto.INT64, ["batch", "phonemes"], None),
              "text_lengths": (TensorProto.INT64, ["batch"], [128]),
              "scales": (TensorProto.FLOAT, [3], [0.667, 1, 0.8]),
              "attention_mask": (TensorProto.INT64, ["batch", "phonemes"], [1]),
              "token_type_ids": (TensorProto.INT64, [1, 6], [0]),
              "use_cache_branch": (TensorProto.BOOL, [1], [0]), "state": (TensorProto.FLOAT, [2, 1, 8], [0])}
    sizes = {"line": [1, 3, 48, "w"], "image": [1, 3, "high", "wide"], "wave": ["n", "samples"]}
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"], name=f"copy_{name}") for name in (*inputs, *sizes)]
    path = saved(bench.folder, "named", nodes,
                 [of(name, kind, shape) for name, (kind, shape, _) in inputs.items()]
                 + [of(name, TensorProto.FLOAT, shape) for name, shape in sizes.items()],
                 [of(f"{name}_out", kind, None) for name, kind in
                  [*((name, one[0]) for name, one in inputs.items()), *((name, TensorProto.FLOAT) for name in sizes)]],
                 [])
    found = told(bench, path)
    shown = {one["name"]: one for one in found["inputs"]}
    for name, (_, _, values) in inputs.items():
        if values is not None:
            truth.check("model:inputs[].fill.values[]", shown[name]["fill"]["values"], values)
    assert shown["text"]["fill"]["kind"] == "integers" and shown["image"]["fill"]["kind"] == "uniform"
    # With a state: a step of a voice detector.
    wanted = {"batch": 1, "phonemes": 128, "w": 320, "high": 224, "wide": 224, "samples": 512, "n": 1}
    for one in found["dimensions"]:
        truth.check("model:dimensions[].value", one["value"], wanted[one["name"]])
    assert all(one["assumed"] for one in found["dimensions"])
    given = {one["name"]: one for one in told(bench, path, "-i", "sr=8000", "-i", "text=1,2,3")["inputs"]}
    assert given["sr"]["fill"]["values"] == [8000] and given["text"]["shape"] == [1, 3]
