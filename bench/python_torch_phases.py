# python_torch_phases: a small transformer that trains on a CPU, bare and under default `tare run` in turn: what phases
# and steps cost.
# One thread. Must not know how phases are found.
"""usage: python bench/python_torch_phases.py"""
import json
import os
import statistics
import subprocess
import sys
import time

import rows
import training
from figures import Figure

PAIRS, STEPS = (3, 60) if rows.QUICK else (10, 200)


# ---- the program that trains -------------------------------------------------------------------------------------

def train():
    """CPU seconds of the process for each step: its one busy thread, and whatever Tare adds beside it."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    step = training.transformer()
    data = TensorDataset(torch.randn(8 * STEPS, 32, 128), torch.randint(0, 10, (8 * STEPS,)))
    times, from_s = [], time.process_time()
    for batch, labels in DataLoader(data, batch_size=8):
        step(batch, labels)
        to_s = time.process_time()
        times.append(to_s - from_s)
        from_s = to_s
    json.dump(times[5:], sys.stdout)  # the first ones warm up


# ---- figures -----------------------------------------------------------------------------------------------------

def undisturbed(times):
    """Of steps that share a core with others: what the quicker half takes, on average."""
    ordered = sorted(times)
    return statistics.mean(ordered[:max(len(ordered) // 2, 1)])


def run(before, folder):
    env = {key: value for key, value in os.environ.items() if key != "TARE_BENCH_ROWS"}
    done = subprocess.run([*before, sys.executable, os.path.abspath(__file__), "train"], cwd=folder, env=env, check=True,
                          stdout=subprocess.PIPE, text=True)
    return undisturbed(json.loads(done.stdout))


def figures(folder):
    from tare import _command
    recorded = [_command.find(), "run", "-q", "-f", "-o", os.path.join(folder, "run.tare"), "--"]
    ratios, bare_ms = [], []
    for turn in range(PAIRS):
        order = ([], recorded) if turn % 2 else (recorded, [])
        seconds = {bool(before): run(before, folder) for before in order}
        ratios.append(seconds[True] / seconds[False])
        bare_ms.append(seconds[False] * 1000)
    cost = Figure("torch: phases and steps, over bare", "%", 1.5)
    middle = (statistics.median(ratios) - 1) * 100
    spread = [100 * (quantile - 1) for quantile in statistics.quantiles(ratios, n=4, method="inclusive")]
    cost.add(max(middle, 0.0), f"{middle:+.2f} %, the middle half of {PAIRS} pairs {spread[0]:+.2f} to {spread[2]:+.2f} %; "
             f"{statistics.median(bare_ms):.1f} ms of CPU a step")
    return [cost]


if __name__ == "__main__":
    training.main(Figure("torch: phases and steps, over bare", "%", 1.5), train, figures)
