# runner: what the measuring loop of `tare model` adds to a run of ONNX Runtime, against its C interface called bare.
# One process. Must not know how tare works inside: it runs programs.
"""Figures of the loop that measures models."""
import glob
import os
import statistics
import subprocess
import sys

from figures import BUILD, Void, plain, program

ONNX = os.environ.get("TARE_ONNX", os.path.join(BUILD, "onnx", "bin", "python"))

# Layers of 64: from a run that is little but the call itself to one of some 100 microseconds.
MAKE = """
import sys, numpy as np, onnx
from onnx import TensorProto as T, helper, numpy_helper
path, layers = sys.argv[1], int(sys.argv[2])
random = np.random.default_rng(0)
nodes, weights, last = [], [], "x"
for i in range(layers):
    weights.append(numpy_helper.from_array(random.standard_normal((64, 64)).astype(np.float32), f"w{i}"))
    nodes += [helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"]), helper.make_node("Tanh", [f"m{i}"], [f"t{i}"])]
    last = f"t{i}"
graph = helper.make_graph(nodes, "mlp", [helper.make_tensor_value_info("x", T.FLOAT, [1, 64])],
                          [helper.make_tensor_value_info(last, T.FLOAT, [1, 64])], weights)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
"""


def library():
    found = glob.glob(os.path.join(os.path.dirname(os.path.dirname(ONNX)), "lib", "python3*", "site-packages",
                                   "onnxruntime", "capi", "libonnxruntime.so.1.*"))
    if not found:
        raise Void(f"there is no onnxruntime beside {ONNX}")
    return found[0]


def figures(figure, recorder, quick):
    """(figures, what measures them), in order."""
    made = []
    for layers, what in ((1, "a model of one layer"), (40, "a model of 40 layers")):
        mine = [figure(f"measuring loop, {what}: added to a run", "ns", 2000), figure("  as a share of it", "%")]
        made.append((mine, lambda mine=mine, layers=layers: against_bare(*mine, recorder.folder, layers, quick)))
    return made


def against_bare(added, share, folder, layers, quick):
    if not os.path.exists(ONNX):
        raise Void(f"there is no {ONNX}")
    path = os.path.join(folder, f"mlp{layers}.onnx")
    subprocess.run([ONNX, "-c", MAKE, path, str(layers)], check=True)
    # Batches of some 200 us, and many of them: what else the machine does then meets few.
    output = plain(program("runner", library(), path, 200 if quick else 2000, 40 // layers + 1))
    batches = [tuple(map(float, line.split())) for line in output.splitlines()]
    bare = statistics.median((before + after) / 2 for before, _, after in batches)
    extra = statistics.median(ours - (before + after) / 2 for before, ours, after in batches)
    added.limit = max(2000, bare / 100)
    added.add(extra, f"a run takes {bare / 1e3:.1f} us")
    share.add(100 * extra / bare)


if __name__ == "__main__":
    sys.exit("run it as bench/run --only runner")
