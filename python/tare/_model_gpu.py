"""What a model does on a GPU: kernels, copies, ranges for other tools; or why nothing can be told."""
import contextlib
from typing import Any, Dict, Iterator, List

from . import _core, _torchprofiler, _torchstate
from ._core import Missing


def why_not(runner: Any) -> str:
    """Why there is nothing to tell of a GPU; "" when there is."""
    if not runner.device.startswith("cuda"):
        return f"the model runs on {runner.device}, not on a GPU"
    if not hasattr(runner, "model"):
        return f"{runner.kind}: kernels are told of torch models only"
    return ""


def profile(runner: Any, inputs: Any, kernels: bool, transfers: bool, nvtx: bool) -> Dict[str, Any]:
    """The parts that were asked for; Missing without a GPU."""
    reason = why_not(runner)
    wanted = [name for name, asked in (("kernels", kernels), ("memory_transfers", transfers), ("nvtx", nvtx)) if asked]
    if not reason and _torchprofiler.another_active():
        reason = "another torch profiler is active"
    if reason:
        none = Missing(reason)
        return {"available": False, "reason": reason, "device_ms": none, "busy_percent": none,
                **{name: none for name in wanted}}
    return _profiled(runner, inputs, wanted)


def _profiled(runner: Any, inputs: Any, wanted: List[str]) -> Dict[str, Any]:
    from torch import profiler as native
    call, settle = runner.call(inputs), runner.settle()
    with runner.running():
        call()
        settle()
        with native.profile(activities=[native.ProfilerActivity.CPU, native.ProfilerActivity.CUDA]) as told:
            spent, = _core.timed_runs(call, 1, settle=settle)
    kinds = _device_events(told)
    busy = sum(row["total_ms"] for rows in kinds.values() for row in rows)
    out: Dict[str, Any] = {"available": True, "device_ms": busy, "run_ms": 1e3 * spent,
                           "busy_percent": 100 * busy / (1e3 * spent) if spent > 0 else Missing("no time passed"),
                           "note": "one run under torch's profiler; streams that run at once add up"}
    if not busy:
        out["note"] = "torch's profiler saw no work on the GPU"
    if "kernels" in wanted:
        out["kernels"] = kinds["kernel"]
    if "memory_transfers" in wanted:
        out["memory_transfers"] = kinds["copy"]
    if "nvtx" in wanted:
        out["nvtx"] = _ranges(runner, call, settle)
    return out


def _device_events(told: Any) -> Dict[str, List[Dict[str, Any]]]:
    """Kernels and copies by name: calls, time, bytes where they are told."""
    found: Dict[str, Dict[str, Dict[str, Any]]] = {"kernel": {}, "copy": {}}
    for event in told.profiler.kineto_results.events():
        if "CUDA" not in str(event.device_type()):
            continue
        name = event.name()
        kind = "copy" if name.startswith(("Memcpy", "Memset")) else "kernel"
        row = found[kind].setdefault(name, {"name": name, "calls": 0, "total_ms": 0.0})
        row["calls"] += 1
        row["total_ms"] += event.duration_ns() / 1e6
        size = getattr(event, "nbytes", lambda: 0)()
        if kind == "copy" and size:
            row["bytes"] = row.get("bytes", 0) + size
    return {kind: sorted(rows.values(), key=lambda row: -row["total_ms"]) for kind, rows in found.items()}


@contextlib.contextmanager
def _named_ranges(model: Any, ranges: List[str]) -> Iterator[None]:
    """An NVTX range around each module, for whichever tool listens."""
    import torch
    handles = []

    def push(name: str) -> Any:
        def begin(*_: Any) -> None:
            torch.cuda.nvtx.range_push(name)
            ranges.append(name)
        return begin

    def pop(*_: Any) -> None:
        torch.cuda.nvtx.range_pop()
    for name, module in model.named_modules():
        handles += [module.register_forward_pre_hook(push(name or type(module).__name__)),
                    module.register_forward_hook(pop)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _ranges(runner: Any, call: Any, settle: Any) -> Any:
    seen: List[str] = []
    try:
        with runner.running(), _named_ranges(runner.model, seen):
            call()
            settle()
    except Exception as error:
        return Missing(f"no NVTX ranges: {_torchstate.first_line(error)}")
    return {"ranges": len(seen), "names": list(dict.fromkeys(seen)),
            "note": "a run with an NVTX range around each module, for Nsight Systems or `tare run`"}
