# python_monitor: what PerformanceMonitor costs a block, against an empty context manager in C and against psutil.
# One process. Must not know how blocks are measured.
"""usage: python bench/python_monitor.py   (with the package installed for this interpreter)"""
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import time
import timeit

from figures import Figure

QUICK = os.environ.get("TARE_BENCH_QUICK") == "1"
ROUNDS, NUMBER = (3, 20000) if QUICK else (7, 100000)


def empty_context(folder):
    """The peer's type, compiled for this interpreter."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "empty_context.c")
    compiler = shlex.split(os.environ.get("CC", "cc"))
    target = os.path.join(folder, "empty_context" + sysconfig.get_config_var("EXT_SUFFIX"))
    subprocess.run([*compiler, "-O2", "-fPIC", "-shared", "-I" + sysconfig.get_path("include"), source, "-o", target],
                   check=True)
    sys.path.insert(0, folder)
    import empty_context as module
    return module.Empty


def with_psutil():
    """A block as a tracker on psutil measures it; None without psutil."""
    try:
        import psutil
    except ImportError:
        return None
    process = psutil.Process()

    class Track:
        __slots__ = ("name", "start", "before", "kept")

        def __init__(self, name, kept):
            self.name, self.kept = name, kept

        def __enter__(self):
            self.before = process.memory_info().rss
            self.start = time.perf_counter()

        def __exit__(self, *exception):
            took = time.perf_counter() - self.start
            self.kept[:] = [(self.name, took, process.memory_info().rss - self.before)]
    return Track


def nanoseconds(block, names, number=NUMBER):
    return seconds(f"with {block}: pass", names, number) / number * 1e9


def seconds(code, names, number):
    """CPU time of this thread: what others do on the machine is not in it."""
    return timeit.timeit(code, globals=names, number=number, timer=time.thread_time)


def measure(names, psutil_tracker):
    """The figures, every round's peers measured beside each other."""
    floor = Figure("with Empty(\"name\"), an empty context manager in C", "ns")
    off = Figure("track, disabled, against it", "x", 1.0)
    bare = Figure("track(aggregate=True) without memory readings", "µs", 1.0)
    full = Figure("track(aggregate=True) with memory readings", "µs", 5.0)
    listed = Figure("track with memory readings, listed one by one", "µs")
    batch = Figure("on_batch_start and on_batch_end", "µs")
    peer = Figure("the same readings by psutil, against track", "x", 30.0, at_least=True)
    for _ in range(ROUNDS):
        empty = nanoseconds('Empty("x")', names)
        floor.add(empty)
        off.add(nanoseconds('off.track("x")', names) / empty)
        bare.add(nanoseconds('bare.track("x", aggregate=True)', names) / 1e3)
        full.add(nanoseconds('full.track("x", aggregate=True)', names, NUMBER // 5) / 1e3)
        listed.add(nanoseconds('full.track("y")', names, NUMBER // 5) / 1e3)
        batch.add(seconds("epoch.on_batch_start(9); epoch.on_batch_end(9)", names, NUMBER) / NUMBER * 1e6)
        if psutil_tracker:
            peer.add(nanoseconds('Track("x", kept)', {"Track": psutil_tracker, "kept": []}, NUMBER // 50) / 1e3
                     / full.values[-1])
    peer.reason = "psutil is not installed"
    return [floor, off, bare, full, listed, batch, peer]


def main():
    import tare
    with tempfile.TemporaryDirectory() as folder:
        names = {"Empty": empty_context(folder), "off": tare.PerformanceMonitor(enabled=False),
                 "bare": tare.PerformanceMonitor(memory=False), "full": tare.PerformanceMonitor(),
                 "epoch": tare.EpochPerformanceMonitor(verbose_batches=0)}
        names["epoch"].on_epoch_start()
        figures = measure(names, with_psutil())
    try:
        from rows import show
    except ImportError:
        for figure in figures:
            print(*figure.cells(), sep="  ")
    else:
        show(figures)


if __name__ == "__main__":
    main()
