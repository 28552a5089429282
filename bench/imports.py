# imports: importing torch.profiler's traces and reporting, against HolisticTraceAnalysis loading them.
# One process. Must not know how tare works inside: it runs programs.
"""Figures of `tare import`."""
import os
import subprocess
import sys
import time

from figures import BUILD, TARE, Void, peak_of

TORCH = os.environ.get("TARE_TORCH", os.path.join(BUILD, "python", "venv", "bin", "python"))
READERS = os.environ.get("TARE_READERS", os.path.join(BUILD, "readers", "bin", "python"))

# A small transformer in training, seen as torch's users see it: shapes, memory and Python's functions.
TRAIN = """
import sys, torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule
torch.set_num_threads(1)
layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
model = nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(64, 8))
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
data = torch.randn(8, 16, 64)
steps = int(sys.argv[2])
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=steps, repeat=1),
             record_shapes=True, profile_memory=True, with_stack=True,
             on_trace_ready=lambda one: one.export_chrome_trace(sys.argv[1])) as profiler:
    for _ in range(steps + 1):
        model(data).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        profiler.step()
"""

# Loading only: what Python takes to import it is not counted, its memory is.
LOAD = """
import sys, time
from hta.trace_analysis import TraceAnalysis
begin = time.monotonic()
analysis = TraceAnalysis(trace_dir=sys.argv[1])
print("LOADED", time.monotonic() - begin, sum(len(frame) for frame in analysis.t.traces.values()))
"""


def figures(figure, recorder, quick):
    """(figures, what measures them), in order."""
    hta = [figure("import and report of torch.profiler's JSON, faster than HTA loads it", "x", 5, at_least=True),
           figure("  its most memory against HTA's", "x", 0.1), figure("  the trace against the JSON", "x", 0.05)]
    large = [figure("import of a large JSON, most memory", "MiB", 64 << 20), figure("  of it a second", "MB/s")]
    return [(hta, lambda: against_hta(*hta, recorder.folder, 5 if quick else 40, 1 if quick else 3)),
            (large, lambda: large_file(*large, recorder.folder, 30 if quick else 1000))]


def need(python, module):
    if not os.path.exists(python):
        raise Void(f"there is no {python}")
    if subprocess.run([python, "-c", f"import importlib.util as u; exit(not u.find_spec('{module}'))"]).returncode:
        raise Void(f"{module} is not installed for {python}")


def timed(*command):
    begin = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begin


def load_with_hta(folder):
    done = subprocess.run([READERS, "-c", LOAD, folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("LOADED")]
    if not lines:
        raise Void("HTA could not load it")
    return float(lines[0][1]), int(lines[0][2])


def against_hta(faster, memory, size, folder, steps, rounds):
    need(TORCH, "torch")
    need(READERS, "hta")
    place = os.path.join(folder, "hta")
    os.makedirs(place)
    source, trace = os.path.join(place, "one.json"), os.path.join(folder, "one.tare")
    subprocess.run([TORCH, "-c", TRAIN, source, str(steps)], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    make = [TARE, "import", "--quiet", "--force", "-o", trace, source]
    show = [TARE, "report", trace]
    for _ in range(rounds):
        ours = timed(*make) + timed(*show)
        theirs, rows = load_with_hta(place)
        faster.add(theirs / ours, f"{os.path.getsize(source) / 1e6:.0f} MB; {ours:.2f} s against {theirs:.2f} s")
    ours = max(peak_of(make, "VmHWM"), peak_of(show, "VmHWM"))
    theirs = peak_of([READERS, "-c", LOAD, place], "VmHWM")
    memory.add(ours / theirs, f"{ours / 2**20:.0f} MiB against {theirs / 2**20:.0f} MiB, {rows:,} rows")
    size.add(os.path.getsize(trace) / os.path.getsize(source))


def write_large(path, megabytes):
    """As torch writes them: two threads, kernels, steps; each step's events from the last to the first."""
    shapes = '"Input Dims": [[640, 64], [], []], "Input type": ["float", "Scalar", "Scalar"], "Ev Idx": '
    with open(path, "w") as out:
        out.write('{"schemaVersion": 1, "baseTimeNanoseconds": 1790857026000000000, "traceEvents": [\n')
        written, number, step = 0, 0, 0
        while written < megabytes * 1e6:
            base, lines = 3879841297011 + step * 10010, []
            for k in range(200):
                at = base + k * 50
                for thread in (100, 101):
                    for begin, length in ((0, 40), (5, 20)):
                        number += 1
                        lines.append('{"ph": "X", "cat": "cpu_op", "name": "aten::op%d", "pid": 100, "tid": %d, '
                                     '"ts": %d.125, "dur": %d.5, "args": {"External id": %d, %s%d}},\n' %
                                     ((number * 7 + step) % 300, thread, at + begin, length, number, shapes, number))
                lines.append('{"ph": "X", "cat": "kernel", "name": "void gemm_%d<float>(int)", "pid": 0, "tid": 7, '
                             '"ts": %d.5, "dur": 30.25, "args": {"device": 0, "stream": 7, "correlation": %d}},\n' %
                             (k % 40, at + 20, number))
            lines.append('{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 100, "tid": 100, '
                         '"ts": %d, "dur": 10000, "args": {}},\n' % (step, base - 1))
            step += 1
            text = "".join(reversed(lines))
            written += out.write(text)
        out.write('{"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "args": {"name": "python"}}]}\n')


def large_file(memory, speed, folder, megabytes):
    source, trace = os.path.join(folder, "large.json"), os.path.join(folder, "large.tare")
    write_large(source, megabytes)
    command = [TARE, "import", "--quiet", "--force", "-o", trace, source]
    begin = time.monotonic()
    memory.add(peak_of(command, "VmHWM"), f"{os.path.getsize(source) / 1e9:.2f} GB")
    speed.add(os.path.getsize(source) / 1e6 / (time.monotonic() - begin))
    os.remove(source)


if __name__ == "__main__":
    sys.exit("run it as bench/run --only import")
