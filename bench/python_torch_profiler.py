# python_torch_profiler: tare.profiler against torch.profiler on the same training, in turn in one process: from the
# end of the steps to the printed table, the file, and what a block of record_function costs.
# One thread. Must not know how either records.
"""usage: python bench/python_torch_profiler.py"""
import importlib.util
import os
import statistics
import sys
import tempfile
import time
import warnings

import rows
import training
from figures import Figure

ROUNDS, STEPS, BLOCKS = (3, 10, 2000) if rows.QUICK else (9, 40, 20000)


def profiled(module, step):
    """(the profile, seconds from its stop to its table)."""
    prof = module.profile(activities=[module.ProfilerActivity.CPU])
    prof.start()
    for _ in range(STEPS):
        step()
    from_s = time.perf_counter()
    prof.stop()
    prof.key_averages().table(sort_by="cpu_time_total", row_limit=10)
    return prof, time.perf_counter() - from_s


def block_ns(module):
    """What a block costs while the module records nothing: as most programs run it."""
    record = module.record_function
    from_ns = time.perf_counter_ns()
    for _ in range(BLOCKS):
        with record("block"):
            pass
    return (time.perf_counter_ns() - from_ns) / BLOCKS


def measure(figures, folder):
    import torch.profiler as theirs

    import tare.profiler as ours
    table, file, blocks = figures
    step = training.same_batch(width=64, layers=2, samples=4, length=16)
    step()
    for number in range(ROUNDS + 1):
        (other, their_s), (own, own_s) = profiled(theirs, step), profiled(ours, step)
        if number == 0:
            continue  # what both import
        paths = [os.path.join(folder, "%d%s" % (number, ending)) for ending in (".json", ".tare")]
        other.export_chrome_trace(paths[0])
        own.export_trace(paths[1])
        sizes = [os.path.getsize(path) for path in paths]
        table.add(their_s / own_s)
        file.add(sizes[0] / sizes[1])
        blocks.add(block_ns(theirs) / block_ns(ours))
        table.note = f"{their_s * 1e3:.0f} to {own_s * 1e3:.0f} ms"
        file.note = f"{sizes[0] / 1e3:.0f} to {sizes[1] / 1e3:.0f} kB"
    blocks.note = f"{statistics.median([block_ns(theirs) for _ in range(3)]):.0f} ns, torch's"


def main():
    figures = [Figure("torch.profiler from stop() to its table, against tare.profiler", "x", 10, at_least=True),
               Figure("torch.profiler's JSON, against the trace of tare.profiler", "x", 20, at_least=True),
               Figure("torch's record_function, against tare.profiler's", "x", 5, at_least=True)]
    if importlib.util.find_spec("torch") is None:
        for one in figures:
            one.reason = "torch is not installed"
    else:
        warnings.simplefilter("ignore")
        with tempfile.TemporaryDirectory() as folder:
            measure(figures, folder)
    rows.show(figures)


if __name__ == "__main__":
    sys.exit(main())
