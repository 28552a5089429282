# models: analyzing ONNX files: time and memory, against onnx-tool.
# One process. Must not know how tare works inside: it runs programs.
"""Figures of `tare model --static`."""
import os
import statistics
import subprocess
import sys
import time

from figures import BUILD, TARE, Void

ONNX = os.environ.get("TARE_ONNX", os.path.join(BUILD, "onnx", "bin", "python"))
WRITER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e", "onnx_models.py")

# Loading and counting only: what Python takes to import it is not counted.
COUNT = """
import contextlib, io, sys, time
import numpy as np, onnx_tool
path, name, kind, *shape = sys.argv[1:]
begin = time.monotonic()
with contextlib.redirect_stdout(io.StringIO()):
    model = onnx_tool.Model(path)
    model.graph.shape_infer({name: np.zeros([int(size) for size in shape], kind)})
    model.graph.profile()
print("COUNTED", time.monotonic() - begin, int(model.graph.macs[0]))
"""
ACCEPTED = {"mobilenetv2": ("image", "float32", 1, 3, 224, 224), "resnet50": ("image", "float32", 1, 3, 224, 224)}


def figures(figure, recorder, quick):
    """(figures, what measures them), in order."""
    large = [figure("analyzing an ONNX file of 500 MB, warm", "ms", 50),
             figure("  most resident memory", "MiB", 32 << 20)]
    made = [(large, lambda: large_file(*large, recorder.folder, 3 if quick else 20))]
    for name in ("mobilenetv2",) if quick else ACCEPTED:
        mine = [figure(f"analyzing {name}, faster than onnx-tool", "x", 50, at_least=True)]
        made.append((mine, lambda mine=mine, name=name: against_onnx_tool(*mine, recorder.folder, name,
                                                                          1 if quick else 3)))
    return made


def need(module):
    probe = f"import importlib.util as u; exit(not u.find_spec('{module}'))"
    if not os.path.exists(ONNX) or subprocess.run([ONNX, "-c", probe]).returncode:
        raise Void(f"{ONNX} has no {module}")


def write(folder, name, *how):
    subprocess.run([ONNX, WRITER, *how, folder, name], check=True, stdout=subprocess.DEVNULL)
    return os.path.join(folder, name + ".onnx")


def timed(*words):
    begin = time.monotonic()
    subprocess.run([TARE, *words], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def analyze(path):
    return timed("model", "--static", "--json", path)


def peak_of_report(path):
    """Bytes: while nobody takes the report, which is longer than a pipe, its writer waits and can be looked at."""
    process = subprocess.Popen([TARE, "model", "--static", "--json", path], stdout=subprocess.PIPE, bufsize=0)
    process.stdout.read(1)
    with open(f"/proc/{process.pid}/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    process.communicate()
    return peak * 1024


def large_file(took, memory, folder, rounds):
    """Real bytes on the disk: a hole would be no page of the file's own."""
    need("onnx")
    path = write(folder, "gpt2", "--inline")
    with open(path, "r+b") as file:
        for _ in iter(lambda: touch(file), 0):
            pass
    analyze(path)
    times = sorted(analyze(path) for _ in range(rounds))
    took.add(statistics.median(times) * 1e3,
             f"{os.path.getsize(path) / 1e6:.0f} MB; best {times[0] * 1e3:.1f} ms, the process with it")
    memory.add(peak_of_report(path))
    os.remove(path)


def touch(file, piece=16 << 20):
    """Writes what is read over itself, so that no holes are left. Bytes."""
    at = file.tell()
    data = file.read(piece)
    file.seek(at)
    return file.write(data)


def against_onnx_tool(faster, folder, name, rounds):
    need("onnx_tool")
    path = write(folder, name)
    for _ in range(rounds):
        whole, start = min(analyze(path) for _ in range(5)), min(timed("version") for _ in range(5))
        ours = max(whole - start, 1e-5)  # theirs is without its start and imports, too
        done = subprocess.run([ONNX, "-c", COUNT, path, *map(str, ACCEPTED[name])], stdout=subprocess.PIPE, text=True)
        lines = [line.split() for line in done.stdout.splitlines() if line.startswith("COUNTED")]
        if not lines:
            raise Void("onnx-tool could not count it")
        theirs = float(lines[0][1])
        faster.add(theirs / ours, f"{ours * 1e3:.1f} ms against {theirs * 1e3:.0f} ms, both without startup; "
                                  f"{theirs / whole:.0f}x including ours")


if __name__ == "__main__":
    sys.exit("run it as bench/run --only models")
