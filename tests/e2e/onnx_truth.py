"""What others say of the models of onnx_models.py, as JSON on standard output.

usage: onnx_truth.py FOLDER SHAPED,SHAPED,... COUNTED,COUNTED,... RUN,RUN,...     run by a Python that has onnx

One process, since importing what it needs takes longer than all the rest: writes every model into FOLDER, then tells
the shapes that onnx infers of those that are SHAPED, the MACs that onnx-tool counts of those that are COUNTED (null
where there is no onnx-tool), the shapes that come out of ONNX Runtime of those that are RUN with symbols as 3 (null
where there is none), and where onnx keeps the models that it ships.
"""
import contextlib
import io
import json
import os
import sys

import numpy as np
import onnx
import onnx_models

INPUTS = {"mobilenetv2": {"image": (1, 3, 224, 224)}, "conv_grouped": {"x": (1, 8, 16, 16)},
          "conv_transposed": {"x": (1, 4, 8, 8)}}


def shapes(path):
    model = onnx.shape_inference.infer_shapes(onnx.load(path, load_external_data=False), data_prop=True)
    found = {}
    for info in [*model.graph.value_info, *model.graph.output]:
        if info.type.HasField("tensor_type") and info.type.tensor_type.HasField("shape"):
            dims = info.type.tensor_type.shape.dim
            found[info.name] = [dim.dim_value if dim.HasField("dim_value") else None for dim in dims]
    return found


def macs(path, inputs):
    """Without the biases, which onnx-tool takes for multiplications."""
    try:
        import onnx_tool
    except ImportError:
        return None
    with contextlib.redirect_stdout(io.StringIO()):
        model = onnx_tool.Model(path)
        model.graph.shape_infer({name: np.zeros(shape, np.float32) for name, shape in inputs.items()})
        model.graph.profile()
    total = 0
    for node in model.graph.nodemap.values():
        if node.op_type in ("Conv", "MatMul", "Gemm"):
            bias = np.prod(model.graph.tensormap[node.output[0]].shape) if len(node.input) > 2 else 0
            total += node.macs[0] - bias
    return int(total)


def ran(path):
    try:
        import onnxruntime
    except ImportError:
        return None
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
    given = {}
    for one in session.get_inputs():
        shape = [3 if isinstance(dim, str) else dim for dim in one.shape]
        given[one.name] = np.full(shape, "a b", object) if one.type == "tensor(string)" else np.ones(shape,
                                                                                                     kinds[one.type])
    return [list(one.shape) for one in session.run(None, given)]


def main():
    folder, shaped, counted, run = sys.argv[1:]
    for make in (*onnx_models.MODELS.values(), *onnx_models.SMALL.values()):
        make().save(folder)
    with open(os.path.join(folder, "outside.data"), "wb") as file:
        file.write(bytes(1024))
    path = lambda name: os.path.join(folder, name + ".onnx")
    json.dump({"shapes": {name: shapes(path(name)) for name in shaped.split(",")},
               "macs": {name: macs(path(name), INPUTS[name]) for name in counted.split(",")},
               "ran": {name: ran(path(name)) for name in run.split(",")},
               "shipped": os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")}, sys.stdout)


main()
