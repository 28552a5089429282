"""A model's latency, throughput, memory and use of the machine, each measured in separate runs."""
import functools
import gc
import math
import os
import statistics
import time
from typing import Any, Callable, Dict, List, Optional

from ... import _core, _engine
from ..._core import Missing, Recorder, quantile
from ...torch import _gpu_memory

QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))
WARM_MOST = 20      # upper limit, as a multiple of the requested warm-up, until runs are steady
WARM_SECONDS = 10.0
WINDOWS = 10        # of throughput
WINDOW_SECONDS = 0.02
WINDOWS_SECONDS = 5.0  # of all of them: enough on a machine that became busy meanwhile
SAMPLING_SECONDS = 0.2  # of sampling memory and machine: a few of the kernel's ticks
SAMPLING_RUNS = 10000


def interval(values: List[float], q: float) -> Any:
    """{"low", "high"} of a quantile at 95 %, or Missing."""
    low, high, needed = _core.quantile_interval(values, q)
    if needed is not None:
        return Missing(f"too few runs for an interval: {len(values)}, {needed} are needed")
    return {"low": low, "high": high}


def spread(values: List[float], unit: str) -> Dict[str, Any]:
    """Quantiles with their intervals; the values stay in it, in their order."""
    none = Missing("one run has no deviation")
    out: Dict[str, Any] = {"unit": unit, "count": len(values), "mean": math.fsum(values) / len(values),
                           "std": statistics.stdev(values) if len(values) > 1 else none,
                           "min": min(values), "max": max(values)}
    for name, q in QUANTILES:
        out[name] = quantile(values, q)
    out["intervals"] = {name: interval(values, q) for name, q in QUANTILES}
    mild, severe = _engine.outliers(values)
    out["outliers"] = {"mild": mild, "severe": severe}
    out["samples"] = list(values)
    return out


class Collections:
    """Counts runs of Python's garbage collector: it is not disabled, and its runs are reported."""

    def __init__(self) -> None:
        self.before = self._count()

    @staticmethod
    def _count() -> int:
        return sum(one["collections"] for one in gc.get_stats())

    def reported(self) -> Dict[str, Any]:
        return {"enabled": gc.isenabled(), "collections": self._count() - self.before}


def warm(call: Callable[[], Any], settle: Any, runs: int) -> Dict[str, Any]:
    """At least `runs` runs, and more until they are steady."""
    if runs == 0:
        return {"runs": 0, "steady": Missing("there was no warm-up"), "seconds": 0.0}
    seconds, steady, _, cv = _core.warm_up(call, runs, max(WARM_MOST * runs, 200), settle=settle,
                                           most_s=WARM_SECONDS)
    reported = {"runs": len(seconds), "steady": steady, "seconds": math.fsum(seconds), "first_ms": 1e3 * seconds[0],
                "variation": cv if cv == cv else Missing("too few runs to tell")}
    if not steady:
        took = _core.unit(reported["seconds"], "s")
        reported["note"] = (f"times were not steady after {len(seconds)} runs and {took} of warm-up: the machine may "
                            "have other work, or the model may still be changing")
    return reported


def latency(call: Callable[[], Any], settle: Any, runs: int) -> Dict[str, Any]:
    """Milliseconds of single runs; on a GPU, waits after each."""
    collected = Collections()
    seconds = _core.timed_runs(call, runs, settle=settle)
    out = spread([1e3 * one for one in seconds], "ms")
    out["synchronized"] = "after every run" if settle is not None else "not needed: a call ends with its work"
    out["gc"] = collected.reported()
    return out


def throughput(call: Callable[[], Any], settle: Any, typical_s: float, runs: int,
               units: Dict[str, Optional[int]]) -> Dict[str, Any]:
    """Consecutive runs in windows; on a GPU, waits once per window."""
    each = max(1, min(100_000, math.ceil(WINDOW_SECONDS / typical_s))) if typical_s > 0 else 1000
    windows = _core.timed_runs(call, max(1, min(WINDOWS, runs)), each=each, settle=settle,
                               most_s=max(WINDOWS_SECONDS, 2 * typical_s))
    rates = [each / one for one in windows if one > 0]
    if not rates:
        none = Missing("the clock saw no time pass")
        return {f"{name}_per_second": none for name in ("requests", "samples", "tokens", "images")}
    typical = quantile(rates, 0.5)
    bounds = interval(rates, 0.5)
    out: Dict[str, Any] = {"requests_per_second": typical}
    why = {"samples": "the input has no first dimension to count", "tokens": "the input is no text",
           "images": "the input is no image"}
    for name, reason in why.items():
        count = units.get(name)
        out[f"{name}_per_second"] = typical * count if count is not None else Missing(reason)
    out["interval"] = bounds if isinstance(bounds, Missing) else {
        "low": bounds["low"] * (units.get("samples") or 1), "high": bounds["high"] * (units.get("samples") or 1)}
    out["windows"] = len(windows)
    out["runs_per_window"] = each
    out["synchronized"] = "once a window" if settle is not None else "not needed: a call ends with its work"
    out["rates"] = rates
    return out


# ---- memory and machine --------------------------------------------------------------------------------------------

_IO = {"disk_read_bytes": "read_bytes", "disk_written_bytes": "write_bytes", "read_calls_bytes": "rchar",
       "write_calls_bytes": "wchar"}


def fragmentation() -> Any:
    """The unused share of the C library's heap."""
    reported = _core.heap()
    if reported is None:
        return Missing("the allocator does not report it (glibc's does, since 2.33)")
    held, used, _ = reported
    return (held - used) / held if held > 0 else Missing("there is no heap")


def usage(runner: Any, call: Callable[[], Any], settle: Any, typical_s: float) -> Dict[str, Any]:
    """Memory, CPU, waiting and I/O, sampled while the model runs, in separate runs from the timed ones."""
    runs = max(2, min(SAMPLING_RUNS, math.ceil(SAMPLING_SECONDS / max(typical_s, 1e-6))))
    system = _core.MACHINE_CPU | _core.MACHINE_DISK | _core.MACHINE_NETWORK | _core.MACHINE_MEMORY
    recorder = Recorder(keep=1, system=system)
    cuda = _cuda_number(runner)
    sampler = _core.Sampler(0.001 if typical_s < 0.02 else 0.01, _core.MACHINE_RSS,
                            None if cuda is None else functools.partial(_gpu_memory.used_bytes, cuda))
    peaks = _gpu_memory.peaks(cuda) if cuda is not None else None
    gpu = peaks.begin() if peaks is not None else None
    waits, io, begun, delay = _core.waits(), _core.process_io(), time.time(), _core.run_delay()
    block = recorder.block("model_usage")
    sampler.acquire()
    try:
        with block:
            done = len(_core.timed_runs(call, runs, settle=settle, most_s=5 * SAMPLING_SECONDS + 2 * typical_s))
    finally:
        sampler.release()
        if peaks is not None:
            peaks.end(gpu)
    after, io_after, kept_off = _core.waits(), _core.process_io(), _core.run_delay() - delay
    seen = recorder.last()
    reported = sampler.summary()
    average = {name: (reported.get(name) or {}).get("average", math.nan) for name in ("rss", "gpu_memory")}
    most = (reported.get("rss") or {}).get("max", math.nan)
    return {"runs": done, "memory": _memory(seen, average, most, gpu, cuda),
            "cpu": _cpu(seen, waits, after, done, kept_off),
            "io": {**{name: io_after[of] - io[of] for name, of in _IO.items()}, "network_received_bytes": seen.received,
                   "network_sent_bytes": seen.sent, "iowait_percent": seen.iowait_percent,
                   "note": "disk and calls are this process's, the network is the machine's"},
            "gpu": {"utilization_percent": Missing("the model cannot be run on a GPU") if cuda is None
                    else _core.gpu_load(cuda, begun)}}


def _cuda_number(runner: Any) -> Optional[int]:
    if not runner.device.startswith("cuda") or _gpu_memory.torch_in_use() is None:
        return None
    return int(runner.device.partition(":")[2] or 0)


def _read(average: float) -> float:
    return average if average == average else Missing("no reading of memory fell into the runs")


def _memory(seen: Any, average: Dict[str, float], most: float, gpu: Any, cuda: Optional[int]) -> Dict[str, Any]:
    peak = int(most) if most > seen.rss_peak else seen.rss_peak  # it was sampled more often than a block is
    out: Dict[str, Any] = {"before": seen.rss_before, "process_peak": peak, "added": peak - seen.rss_before,
                           "fragmentation": fragmentation(), "process_average": _read(average["rss"])}
    out["peak"], out["average"], out["source"] = peak, out["process_average"], "the process's resident memory"
    if gpu is not None:
        out.update(peak=gpu.peak, added=gpu.peak - gpu.before, source="torch's count on the GPU",
                   average=_read(average["gpu_memory"]), fragmentation=_gpu_fragmentation(cuda))
    if seen.rss_peak_note:
        out["note"] = seen.rss_peak_note
    return out


def _gpu_fragmentation(cuda: Optional[int]) -> Any:
    import torch
    held = torch.cuda.memory_reserved(cuda)
    return 1 - torch.cuda.memory_allocated(cuda) / held if held else Missing("torch has reserved nothing")


def _cpu(seen: Any, before: Any, after: Any, runs: int, kept_off: Any) -> Dict[str, Any]:
    cpus = len(os.sched_getaffinity(0))
    wall = seen.wall_s
    busy = seen.process_cpu_percent / 100
    faults, from_disk, waited, pushed = (now - then for now, then in zip(after, before))
    off = max(0.0, 100 * (1 - busy)) if busy <= 1 else 0.0
    runnable: Any = kept_off
    if not isinstance(kept_off, Missing) and wall > 0:  # of the thread that runs the model
        runnable = min(100 * kept_off / wall, 100.0)
        off = max(0.0, off - runnable)
    return {"process_percent": 100 * busy, "machine_percent": seen.cpu_percent, "cpus": cpus,
            "parallelism": busy, "waiting_percent": busy if isinstance(busy, Missing) else off,
            "preempted_percent": runnable,
            "page_faults_per_run": faults / runs, "disk_faults_per_run": from_disk / runs,
            "waits_per_run": waited / runs, "preemptions_per_run": pushed / runs}
