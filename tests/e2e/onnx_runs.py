"""Small models to be run: writes them into a folder. Runs in the environment with onnx and onnxruntime.

usage: onnx_runs.py FOLDER"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper
from onnx_models import SMALL

RANDOM = np.random.default_rng(0)
KINDS = {np.float32: T.FLOAT, np.float16: T.FLOAT16}


def weights(name, shape, kind=np.float32):
    return numpy_helper.from_array((RANDOM.standard_normal(shape) * 0.1).astype(kind), name)


def save(path, nodes, inputs, outputs, initializers, **more):
    graph = helper.make_graph(nodes, path.stem, inputs, outputs, initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, **more), path)


def images(path, kind=np.float32, batch="batch"):
    """Two convolutions and a classifier."""
    nodes = [helper.make_node("Conv", ["image", "w1"], ["a"], name="conv1", pads=[1] * 4, strides=[2, 2]),
             helper.make_node("Relu", ["a"], ["b"], name="relu1"),
             helper.make_node("Conv", ["b", "w2"], ["c"], name="conv2", pads=[1] * 4, strides=[2, 2]),
             helper.make_node("GlobalAveragePool", ["c"], ["d"], name="pool"),
             helper.make_node("Flatten", ["d"], ["e"], name="flat"),
             helper.make_node("MatMul", ["e", "w3"], ["logits"], name="fc")]
    save(path, nodes, [helper.make_tensor_value_info("image", KINDS[kind], [batch, 3, 32, 32])],
         [helper.make_tensor_value_info("logits", KINDS[kind], [batch, 10])],
         [weights("w1", (16, 3, 3, 3), kind), weights("w2", (32, 16, 3, 3), kind), weights("w3", (32, 10), kind)])


def blocks(path, named):
    """Channels that are no multiple of eight, which the runtime fills up; two convolutions meet in a sum."""
    def node(op, *words, **more):
        return helper.make_node(op, *words, name=words[1][0] + "_node" if named else "", **more)
    nodes = [node("Conv", ["x", "w1"], ["a"], pads=[1] * 4), node("Relu", ["a"], ["b"]),
             node("Conv", ["b", "w2"], ["c"], pads=[1] * 4), node("Conv", ["b", "w3"], ["d"]),
             node("Add", ["c", "d"], ["e"]), node("Relu", ["e"], ["f"]),
             node("Conv", ["f", "w4"], ["g"], pads=[1] * 4, group=20), node("Sigmoid", ["g"], ["h"]),
             node("Mul", ["g", "h"], ["i"]), node("Conv", ["i", "w5"], ["y"]), node("Softmax", ["y"], ["z"], axis=1)]
    save(path, nodes, [helper.make_tensor_value_info("x", T.FLOAT, [1, 3, 24, 24])],
         [helper.make_tensor_value_info("z", T.FLOAT, [1, 3, 24, 24])],
         [weights("w1", (12, 3, 3, 3)), weights("w2", (20, 12, 3, 3)), weights("w3", (20, 12, 1, 1)),
          weights("w4", (20, 1, 3, 3)), weights("w5", (3, 20, 1, 1))])


def words(path):
    """A table of 50 words, which an id outside of it makes fail, a mask, and a product."""
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["x"], name="embed"),
             helper.make_node("Cast", ["attention_mask"], ["m"], to=T.FLOAT, name="cast"),
             helper.make_node("Unsqueeze", ["m", "axis"], ["mask"], name="widen"),
             helper.make_node("Mul", ["x", "mask"], ["y"], name="hide"),
             helper.make_node("MatMul", ["y", "w"], ["z"], name="project")]
    shape = ["batch", "sequence"]
    save(path, nodes, [helper.make_tensor_value_info("input_ids", T.INT64, shape),
                       helper.make_tensor_value_info("attention_mask", T.INT64, shape)],
         [helper.make_tensor_value_info("z", T.FLOAT, [*shape, 16])],
         [weights("table", (50, 16)), weights("w", (16, 16)), numpy_helper.from_array(np.array([2]), "axis")])


def fails(path):
    """Loads, and then finds that it cannot reshape what it got."""
    nodes = [helper.make_node("NonZero", ["x"], ["where"], name="find"),
             helper.make_node("Reshape", ["where", "shape"], ["y"], name="impossible")]
    save(path, nodes, [helper.make_tensor_value_info("x", T.FLOAT, [2, 3])],
         [helper.make_tensor_value_info("y", T.INT64, None)], [numpy_helper.from_array(np.array([7, 11]), "shape")])


def mixed(path):
    """What a conversion to half precision has to mind: scales that stay, constants of every kind, casts."""
    nodes = [helper.make_node("Constant", [], ["scales"], name="scales", value=numpy_helper.from_array(
                 np.array([1, 1, 2, 2], np.float32))),
             helper.make_node("Resize", ["x", "", "scales"], ["a"], name="resize", mode="nearest"),
             helper.make_node("Constant", [], ["half"], name="half", value_float=0.5),
             helper.make_node("Mul", ["a", "half"], ["b"], name="halve"),
             helper.make_node("Constant", [], ["steps"], name="steps", value_floats=[float(i) for i in range(16)]),
             helper.make_node("Add", ["b", "steps"], ["c"], name="climb"),
             helper.make_node("Shape", ["c"], ["shape"], name="shape"),
             helper.make_node("ConstantOfShape", ["shape"], ["zeros"], name="zeros"),
             helper.make_node("Add", ["c", "zeros"], ["d"], name="stay"),
             helper.make_node("Cast", ["shape"], ["sizes"], name="sizes", to=T.FLOAT),
             helper.make_node("ReduceMax", ["sizes"], ["most"], name="most", keepdims=0),
             helper.make_node("Div", ["d", "most"], ["e"], name="scale"),
             helper.make_node("Conv", ["e", "w"], ["y"], name="conv"),
             helper.make_node("ArgMax", ["y"], ["where"], name="where", axis=1)]
    listed = helper.make_tensor("w", T.FLOAT, [4, 3, 1, 1], [0.3 * i for i in range(12)])  # not as raw bytes
    save(path, nodes, [helper.make_tensor_value_info("x", T.FLOAT, ["batch", 3, 8, 8])],
         [helper.make_tensor_value_info("y", T.FLOAT, ["batch", 4, 16, 16]),
          helper.make_tensor_value_info("where", T.INT64, ["batch", 1, 16, 16])], [listed])


def beside(path):
    """Its weights are in another file."""
    images(path)
    onnx.save(onnx.load(path), path, save_as_external_data=True, location=path.stem + ".data", size_threshold=0)


def branches(path):
    def branch(factor):
        made = helper.make_node("Constant", [], ["z"], value_float=factor)
        return helper.make_graph([made], f"b{factor}", [], [helper.make_tensor_value_info("z", T.FLOAT, [])])
    nodes = [helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
             helper.make_node("Greater", ["sum", "sum"], ["more"]),
             helper.make_node("If", ["more"], ["f"], then_branch=branch(1.0), else_branch=branch(2.0)),
             helper.make_node("Mul", ["x", "f"], ["y"])]
    save(path, nodes, [helper.make_tensor_value_info("x", T.FLOAT, [2, 3])],
         [helper.make_tensor_value_info("y", T.FLOAT, [2, 3])], [])


def unknown(path):
    nodes = [helper.make_node("Mystery", ["x"], ["y"], name="what", domain="nobody.knows")]
    save(path, nodes, [helper.make_tensor_value_info("x", T.FLOAT, [2, 3])],
         [helper.make_tensor_value_info("y", T.FLOAT, [2, 3])], [])


def open_everywhere(path):
    """Every dimension has a name; only the weights tell how many channels there are."""
    nodes = [helper.make_node("Conv", ["image", "w"], ["a"], name="conv", pads=[1] * 4, group=2),
             helper.make_node("GlobalAveragePool", ["a"], ["b"], name="pool"),
             helper.make_node("Flatten", ["b"], ["y"], name="flat"),
             helper.make_node("MatMul", ["row", "v"], ["z"], name="fc")]
    save(path, nodes, [helper.make_tensor_value_info("image", T.FLOAT, ["n", "channels", "height", "width"]),
                       helper.make_tensor_value_info("row", T.FLOAT, ["n", None])],
         [helper.make_tensor_value_info("y", T.FLOAT, ["n", "features"]),
          helper.make_tensor_value_info("z", T.FLOAT, ["n", 5])], [weights("w", (8, 3, 3, 3)), weights("v", (7, 5))])


def of_no_tensors(folder):
    """Inputs and outputs that no values can be made up for."""
    row = helper.make_tensor_type_proto(T.FLOAT, ["n", 3])
    kinds = {"sequence": helper.make_sequence_type_proto(row), "optional": helper.make_optional_type_proto(row)}
    ops = {"sequence": helper.make_node("ConcatFromSequence", ["x"], ["y"], axis=0),
           "optional": helper.make_node("OptionalGetElement", ["x"], ["y"])}
    for name, kind in kinds.items():
        save(folder / f"{name}.onnx", [ops[name]], [helper.make_value_info("x", kind)],
             [helper.make_tensor_value_info("y", T.FLOAT, ["n", 3])], [])
    save(folder / "string.onnx", [helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action="LOWER")],
         [helper.make_tensor_value_info("x", T.STRING, ["n"])], [helper.make_tensor_value_info("y", T.STRING, None)],
         [])
    save(folder / "pieces.onnx", [helper.make_node("SplitToSequence", ["x"], ["y"], axis=0)],
         [helper.make_tensor_value_info("x", T.FLOAT, [4, 3])],
         [helper.make_tensor_sequence_value_info("y", T.FLOAT, None)], [])


def imitated(path):
    """For the look-alike runtime, which reads what to do in the name of the producer."""
    save(path, [helper.make_node("MatMul", ["x", "w"], ["y"], name="fc")],
         [helper.make_tensor_value_info("x", T.FLOAT, ["batch", 4])],
         [helper.make_tensor_value_info("y", T.FLOAT, ["batch", 4])], [weights("w", (4, 4))], producer_name=path.stem)


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    images(folder / "images.onnx")
    images(folder / "half.onnx", np.float16)
    images(folder / "fixed.onnx", batch=1)
    blocks(folder / "blocks.onnx", True)
    blocks(folder / "blocks_unnamed.onnx", False)
    words(folder / "words.onnx")
    fails(folder / "fails.onnx")
    unknown(folder / "unknown.onnx")
    mixed(folder / "mixed.onnx")
    beside(folder / "beside.onnx")
    branches(folder / "branches.onnx")
    open_everywhere(folder / "open.onnx")
    SMALL["sized_by_floats"]().save(folder)
    of_no_tensors(folder)
    for word in ("crash-load", "crash-run", "exit-run", "kill-profile", "plain"):
        imitated(folder / f"{word}.onnx")
