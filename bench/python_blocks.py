# python_blocks: what a measured block costs, against a block that measures nothing and against the readings alone.
# One process. Must not know how blocks are measured.
"""usage: python bench/python_blocks.py   (with the package installed for this interpreter)"""
import os
import time
import timeit

from figures import Figure

QUICK = os.environ.get("TARE_BENCH_QUICK") == "1"
ROUNDS, NUMBER = (3, 10000) if QUICK else (7, 50000)


def seconds(code, names):
    """CPU time of this thread: what others do on the machine is not in it."""
    return timeit.timeit(code, globals=names, number=NUMBER, timer=time.thread_time) / NUMBER


def readings():
    """What two readings of time and memory cost a program that keeps the file open."""
    statm = os.open("/proc/self/statm", os.O_RDONLY)
    return {"os": os, "statm": statm, "time": time}


def measure():
    import tare
    bare, full = tare.Recorder(memory=False, cpu=False), tare.Recorder()
    names = {"off": tare.Recorder(enabled=False), "bare": bare, "memory": tare.Recorder(cpu=False), "full": full,
             "profiler": tare.PerformanceProfiler()}
    floor = Figure("with a block that measures nothing", "ns")
    only_time = Figure("block(aggregate=True), time only", "µs", 1.0)
    with_memory = Figure("block(aggregate=True), time, memory and its peak", "µs", 5.0)
    everything = Figure("block, time, memory, peak and CPU, kept", "µs")
    profiled = Figure("PerformanceProfiler.profile", "µs")
    against = Figure("time, memory and peak against the bare readings in Python", "x")
    for _ in range(ROUNDS):
        floor.add(seconds('with off.block("x"): pass', names) * 1e9)
        only_time.add(seconds('with bare.block("x", True): pass', names) * 1e6)
        with_memory.add(seconds('with memory.block("x", True): pass', names) * 1e6)
        everything.add(seconds('with full.block("x"): pass', names) * 1e6)
        profiled.add(seconds('with profiler.profile("x"): pass', names) * 1e6)
        plain = seconds("os.pread(statm, 99, 0); time.perf_counter(); os.pread(statm, 99, 0); time.perf_counter()",
                        readings())
        against.add(with_memory.values[-1] / 1e6 / plain)
    return [floor, only_time, with_memory, everything, profiled, against]


def main():
    figures = measure()
    try:
        from rows import show
    except ImportError:
        for figure in figures:
            print(*figure.cells(), sep="  ")
    else:
        show(figures)


if __name__ == "__main__":
    main()
