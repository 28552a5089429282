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

PAIRS, STEPS = (3, 60) if rows.QUICK else (12, 100)


# ---- the program that trains -------------------------------------------------------------------------------------

def yardstick():
    """Work of the kind that a step is, in which Tare has no hook: machines change their speed, and so does this."""
    import torch
    left, right = torch.randn(256, 128), torch.randn(128, 128)

    def work():
        values = left
        for _ in range(150):
            values = torch.tanh(values @ right) + left
        return values
    return work


def train():
    """CPU of the process for each step, its one busy thread and whatever Tare adds beside it, in yardsticks."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    step, work = training.transformer(), yardstick()
    data = TensorDataset(torch.randn(8 * STEPS, 32, 128), torch.randint(0, 10, (8 * STEPS,)))
    ratios, steps, from_s = [], [], time.process_time()
    with torch.no_grad():
        work()
    for batch, labels in DataLoader(data, batch_size=8):
        step(batch, labels)
        to_s = time.process_time()
        with torch.no_grad():
            work()
        after_s = time.process_time()
        ratios.append((to_s - from_s) / (after_s - to_s))
        steps.append(to_s - from_s)
        from_s = time.process_time()
    json.dump([statistics.median(ratios[5:]), statistics.median(steps[5:])], sys.stdout)  # the first ones warm up


# ---- figures -----------------------------------------------------------------------------------------------------

def run(before, folder):
    env = {key: value for key, value in os.environ.items() if key != "TARE_BENCH_ROWS"}
    done = subprocess.run([*before, sys.executable, os.path.abspath(__file__), "train"], cwd=folder, env=env,
                          check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def figures(folder):
    from tare import _command
    recorded = [_command.find(), "run", "-q", "-f", "-o", os.path.join(folder, "run.tare"), "--"]
    ratios, bare_ms = [], []
    for turn in range(PAIRS):
        order = ([], recorded) if turn % 2 else (recorded, [])
        found = {bool(before): run(before, folder) for before in order}
        ratios.append(found[True][0] / found[False][0])
        bare_ms.append(found[False][1] * 1000)
    cost = Figure("torch: phases and steps, over bare", "%", 1.5)
    middle = (statistics.median(ratios) - 1) * 100
    spread = [100 * (quantile - 1) for quantile in statistics.quantiles(ratios, n=4, method="inclusive")]
    cost.add(max(middle, 0.0),
             f"{middle:+.2f} %, the middle half of {PAIRS} pairs {spread[0]:+.2f} to {spread[2]:+.2f} %; "
             f"{statistics.median(bare_ms):.1f} ms of CPU a step")
    return [cost]


if __name__ == "__main__":
    training.main(Figure("torch: phases and steps, over bare", "%", 1.5), train, figures)
