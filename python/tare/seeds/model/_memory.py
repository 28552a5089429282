"""A model's memory: allocations and frees, live memory over a run, and memory that remains after it."""
from typing import Any, Dict, List

from ... import _core, _engine
from ..._core import Missing
from ...torch import _native, _state
from ._measure import fragmentation

POINTS = 500  # of a course of memory
RUNS = 10     # over which growth is measured


def activation_bytes(runner: Any, inputs: Any) -> Any:
    """Peak memory of the tensors of one run, above the level before it, by torch's count."""
    if hasattr(runner, "activation"):
        return runner.activation(inputs)
    if not hasattr(runner, "model"):
        return Missing(f"{runner.kind}: single tensors are not counted")
    if runner.where.type == "cuda":
        return _cuda_activation(runner, inputs)
    reported = _profiled(runner, inputs)
    if isinstance(reported, Missing):
        return reported
    return _native.highest(reported["changes"])


def _cuda_activation(runner: Any, inputs: Any) -> Any:
    from ...torch import _gpu_memory
    call, settle = runner.call(inputs), runner.settle()
    peaks = _gpu_memory.peaks(runner.where.index or 0)
    with runner.running():
        call()
        settle()
        reading = peaks.begin()
        result = call()
        settle()
        del result
        peaks.end(reading)
    return reading.peak - reading.before


def _profiled(runner: Any, inputs: Any) -> Any:
    """(time, bytes) of every allocation and free of one run, and the operators they were in; or Missing."""
    from torch import profiler as native
    if _native.another_active():
        return Missing("another torch profiler is active")
    call = runner.call(inputs)
    try:
        with runner.running():
            call()
            with _native.own_profile([native.ProfilerActivity.CPU], profile_memory=True) as reported:
                result = call()
                del result
            changes = _native.memory_changes(reported)
    except Exception as error:
        return Missing(f"torch's profiler could not count memory: {_state.first_line(error)}")
    rows = [{"name": event.key, "calls": event.count, "bytes": event.self_cpu_memory_usage}
            for event in reported.key_averages() if getattr(event, "self_cpu_memory_usage", 0) > 0]
    return {"changes": changes, "operators": sorted(rows, key=lambda row: -row["bytes"])[:20]}


def _course(changes: List[Any]) -> List[List[float]]:
    """[milliseconds, live bytes], downsampled: the highest of neighbouring points."""
    live, points = 0, []
    begun = changes[0][0] if changes else 0
    for at, change in changes:
        live += change
        points.append([(at - begun) / 1e6, live])
    step = -(-len(points) // POINTS) if points else 1
    return [max(points[at:at + step], key=lambda one: one[1]) for at in range(0, len(points), step)]


def _snapshot(what: str, runner: Any) -> Dict[str, Any]:
    reported = _core.heap()
    none = Missing("the allocator does not report it (glibc's does, since 2.33)")
    out = {"at": what, "rss_bytes": _core.rss(), "heap_bytes": none if reported is None else reported[0],
           "heap_in_use_bytes": none if reported is None else reported[1],
           "mapped_bytes": none if reported is None else reported[2]}
    if runner.device.startswith("cuda") and hasattr(runner, "model"):
        import torch
        out["gpu_allocated_bytes"] = torch.cuda.memory_allocated(runner.where)
        out["gpu_reserved_bytes"] = torch.cuda.memory_reserved(runner.where)
    return out


def profile(runner: Any, inputs: Any, allocations: bool, deallocations: bool, snapshots: bool) -> Dict[str, Any]:
    """The requested parts."""
    shots = [_snapshot("before", runner)]
    call, settle = runner.call(inputs), runner.settle()
    with runner.running():
        _core.timed_runs(call, 1, settle=settle)
        shots.append(_snapshot("after the first run", runner))
        for number in range(RUNS):
            _core.timed_runs(call, 1, settle=settle)
            shots.append(_snapshot(f"after run {number + 2}", runner))
    out: Dict[str, Any] = {"fragmentation": fragmentation(), "growth": _growth(shots)}
    if allocations or deallocations:
        out.update(_tracked(runner, inputs, allocations, deallocations))
    if snapshots:
        out["snapshots"] = shots
    return out


def _growth(shots: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Growth of memory from run to run; a leak if the interval is above 0."""
    later = [float(one["rss_bytes"]) for one in shots[1:]]
    slope, low, high, _ = _engine.trend(list(range(len(later))), later)
    return {"bytes_per_run": slope, "low": low, "high": high, "grows": bool(low > 0)}


def _tracked(runner: Any, inputs: Any, allocations: bool, deallocations: bool) -> Dict[str, Any]:
    if not hasattr(runner, "model"):
        none = Missing(f"{runner.kind}: single allocations are not reported; see growth and snapshots")
        return {key: none for key, wanted in (("allocations", allocations), ("deallocations", deallocations),
                                              ("activation_peak_bytes", True)) if wanted}
    if runner.where.type == "cuda":
        return _tracked_cuda(runner, inputs, allocations, deallocations)
    reported = _profiled(runner, inputs)
    if isinstance(reported, Missing):
        return {"allocations": reported, "deallocations": reported, "activation_peak_bytes": reported}
    changes = reported["changes"]
    out: Dict[str, Any] = {"activation_peak_bytes": _native.highest(changes)}
    if allocations:
        taken = [change for _, change in changes if change > 0]
        out["allocations"] = {"count": len(taken), "bytes": sum(taken), "largest": max(taken, default=0),
                              "by_operator": reported["operators"]}
        out["course"] = _course(changes)
    if deallocations:
        given = [-change for _, change in changes if change < 0]
        out["deallocations"] = {"count": len(given), "bytes": sum(given),
                                "kept_bytes": sum(change for _, change in changes)}
    return out


def _tracked_cuda(runner: Any, inputs: Any, allocations: bool, deallocations: bool) -> Dict[str, Any]:
    import torch
    call, settle = runner.call(inputs), runner.settle()
    with runner.running():
        call()
        settle()
        before = torch.cuda.memory_stats(runner.where)
        result = call()
        settle()
        del result
        after = torch.cuda.memory_stats(runner.where)

    def between(name: str) -> int:
        return int(after.get(name, 0)) - int(before.get(name, 0))
    out: Dict[str, Any] = {"activation_peak_bytes": _cuda_activation(runner, inputs),
                           "inactive_split_bytes": int(after.get("inactive_split_bytes.all.current", 0))}
    if allocations:
        out["allocations"] = {"count": between("allocation.all.allocated"),
                              "bytes": between("allocated_bytes.all.allocated"),
                              "from_driver": between("segment.all.allocated")}
    if deallocations:
        out["deallocations"] = {"count": between("allocation.all.freed"), "bytes": between("allocated_bytes.all.freed"),
                                "kept_bytes": between("allocated_bytes.all.current")}
    return out
