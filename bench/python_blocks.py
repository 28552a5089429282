# python_blocks: what a measured block costs, against a block that measures nothing and against the readings alone.
# One process. Must not know how blocks are measured.
"""usage: python bench/python_blocks.py   (with the package installed for this interpreter)"""
import os
import time

import rows
from figures import Figure
from timing import around_nothing, around_work, seconds

ROUNDS, NUMBER = (5, 5000) if rows.QUICK else (15, 20000)


def measure():
    import tare
    bare, full = tare.Recorder(memory=False, cpu=False), tare.Recorder()
    names = {"off": tare.Recorder(enabled=False), "bare": bare, "memory": tare.Recorder(cpu=False), "full": full,
             "profiler": tare.PerformanceProfiler()}
    # what two readings of time and memory cost a program that keeps the file open
    readings = {"os": os, "statm": os.open("/proc/self/statm", os.O_RDONLY), "time": time}
    floor = Figure("with a block that measures nothing", "ns")
    only_time = Figure("block(aggregate=True), time only", "µs", 1.0)
    with_memory = Figure("block(aggregate=True), time, memory and its peak", "µs", 5.0)
    everything = Figure("block, time, memory, peak and CPU, kept", "µs")
    profiled = Figure("PerformanceProfiler.profile", "µs")
    against = Figure("time, memory and peak against the bare readings in Python", "x")
    for _ in range(ROUNDS):
        floor.add(around_nothing('off.block("x")', names, NUMBER) * 1e9)
        only_time.add(around_nothing('bare.block("x", True)', names, NUMBER) * 1e6)
        with_memory.add(around_work('memory.block("x", True)', names, NUMBER) * 1e6)
        everything.add(around_work('full.block("x")', names, NUMBER) * 1e6)
        profiled.add(around_work('profiler.profile("x")', names, NUMBER) * 1e6)
        plain = seconds("os.pread(statm, 99, 0); time.perf_counter(); os.pread(statm, 99, 0); time.perf_counter()",
                        readings, NUMBER)
        against.add(with_memory.values[-1] / 1e6 / plain)
    os.close(readings["statm"])
    return [floor, only_time, with_memory, everything, profiled, against]


if __name__ == "__main__":
    rows.show(measure())
