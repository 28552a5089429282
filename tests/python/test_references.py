"""Nothing is left behind: counted in references by a debug build of Python, in memory blocks by any other."""
import gc
import sys

import pytest
import tare
from tare import _core

held = getattr(sys, "gettotalrefcount", sys.getallocatedblocks)


def spans():
    span = tare.span("hot")
    for _ in range(1000):
        with span:
            pass
        with tare.span("numbered", samples=2):
            pass


def profilers():
    profiler = tare.PerformanceProfiler()
    with profiler.profile("a"), profiler.profile("b", samples=3):
        pass
    profiler.get_metrics(), profiler.get_metrics("a"), profiler.get_timing_breakdown()


def profilers_with_everything():
    profiler = tare.PerformanceProfiler(track_gpu=True, track_carbon=True, detailed_memory=True, track_cpu_temp=True,
                                        track_network=True, track_system=True, enable_line_profiling=True)
    with profiler.profile("a"):
        pass
    profiler.get_metrics("a").to_dict()


def monitors():
    monitor = tare.PerformanceMonitor()
    with monitor.track("a"), monitor.track("b", aggregate=True):
        pass
    monitor.record_metrics()
    monitor.get_summary(), monitor.summary(True)


def samplers():
    sampler = _core.Sampler(60, _core.MACHINE_CPU | _core.MACHINE_RSS, lambda: 1.0)
    sampler.acquire()
    sampler.sample()
    sampler.summary(), sampler.series(1), sampler.running, sampler.count
    sampler.release()


def devices():
    _core.gpu_joules(0), _core.gpu_celsius(0), _core.gpu_load(0, 1.0), _core.gpu_memory(0)


def mistakes():
    for wrong in (lambda: _core.Sampler(-1, 1), lambda: _core.Sampler(1, 1).summary("x"), lambda: tare.span(3),
                  lambda: tare.PerformanceProfiler(memory_interval=-1), lambda: _core.gpu_load(0, -1.0),
                  lambda: tare.PerformanceProfiler().get_metrics("none")):
        with pytest.raises((TypeError, ValueError, KeyError)):
            wrong()


@pytest.mark.parametrize("work", [spans, profilers, profilers_with_everything, monitors, samplers, devices, mistakes])
def test_nothing_is_left_behind(work):
    counts = []
    for _ in range(9):
        for _ in range(60):
            work()
        gc.collect()
        counts.append(held())
    # A single thing lost each time would be 60 and more in every round; caches of the interpreter fill up once.
    assert min(after - before for before, after in zip(counts, counts[1:])) < 50, counts
